"""What restriction="across" does to the prior of a partition: records of one source are of different entities.

An entity of s records has them from s sources, which are a set A with probability prod(φ_a, a in A) / e_s(φ), where φ
are shares of the sources and e_s is the elementary symmetric polynomial of degree s. In which order its records have
these sources tells nothing. Over all entities the products are the same for every partition, so that an entity of s
records has the factor 1 / (s! e_s(φ)) beside that of its size. Without it links between sources would be expected as
seldom as if records of one source could be linked, too: of two sources of about one size half as often.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.arrays import Array, Float, Int

_ROUNDS = 50
_TOLERANCE = 1e-6
_UPDATES = 3    # of shares of three or more sources in a sweep


def log_factors(share: Float[Array, " source"], largest: int, xp: Any = np) -> Float[Array, " size"]:
    """Return -log(s! e_s(φ)) for s = 1, 2, …, ``largest``; 0 of sizes beyond the number of sources.

    Parameters
    ----------
    share : φ, adding up to one.
    largest : how many records an entity may have.
    xp : NumPy, or JAX, where it is differentiable.
    """
    known = min(largest, len(share))
    log_ways = xp.log(elementary(share, known, xp)[1:]) + np.cumsum(np.log(np.arange(1, known + 1)))
    return xp.concatenate([-log_ways, xp.zeros(largest - known)])


def elementary(
    share: Float[Array, " source"], highest: int | None = None, xp: Any = np
) -> Float[Array, " degrees_and_none"]:  # fmt: skip
    """Return the elementary symmetric polynomials of degrees 0, 1, …, ``highest``; as many as there are numbers.

    Examples
    --------
    >>> elementary(np.array([0.5, 0.3, 0.2])).round(6).tolist()
    [1.0, 1.0, 0.31, 0.03]
    """
    found = xp.eye(1, 1 + (len(share) if highest is None else highest))[0]
    for one in share:
        found = _with(one, found, xp)
    return found


def _with(one: Any, polynomials: Float[Array, " degrees_and_none"], xp: Any = np) -> Float[Array, " degrees_and_none"]:
    """Return the polynomials of one number more."""
    return polynomials + one * xp.concatenate([xp.zeros(1), polynomials[:-1]])


def starting_share(records: Int[np.ndarray, " source"]) -> Float[np.ndarray, " source"]:
    """Return the shares of the records that each source has, with one more record of each."""
    return (records + 1.0) / (records + 1.0).sum()


def draw_share(
    random: np.random.Generator,
    share: Float[np.ndarray, " source"],
    cluster: Int[np.ndarray, " record"],
    source: Int[np.ndarray, " record"],
) -> Float[np.ndarray, " source"]:
    """Draw the shares of the sources given the entities; uniform on the simplex before any record.

    Of two sources they are Dirichlet, of as many records as there are in entities of one record. Of more, φ = λ / Σ λ
    with λ exponential beforehand. With numbers u_s ~ Gamma(K_s, e_s(λ)) for the K_s entities of s records, λ_a of a
    source with n_a records is Gamma(n_a + 1, 1 + Σ u_s e_{s-1}(λ without a)); these updates keep the distribution of φ.

    Parameters
    ----------
    random : source of random numbers.
    share : φ as drawn before.
    cluster : the entity of each record.
    source : the source of each record.
    """
    records = np.bincount(source, minlength=len(share))
    sizes = np.bincount(np.bincount(cluster))
    if len(share) == 2:
        return random.dirichlet(np.maximum(records - sizes[2:3].sum(), 0) + 1.0)
    sizes = sizes[: len(share) + 1]
    degree = 1 + np.flatnonzero(sizes[1:])
    weight = share * random.gamma(len(share))
    for _ in range(_UPDATES):
        before = elementary(np.zeros(0), len(sizes) - 1)
        after = [before]
        for one in weight[::-1]:
            after.append(_with(one, after[-1]))
        auxiliary = random.gamma(sizes[degree], 1 / after.pop()[degree])
        for place, number in enumerate(records):
            without = np.convolve(before, after.pop())
            weight[place] = random.gamma(number + 1, 1 / (1 + auxiliary @ without[degree - 1]))
            before = _with(weight[place], before)
    return weight / weight.sum()


def most_probable(
    records: Int[np.ndarray, " source"], sizes: Float[np.ndarray, " sizes_and_none"]
) -> Float[np.ndarray, " source"]:
    """Return the most probable shares of sources, with one more record of each: no share is zero.

    Parameters
    ----------
    records : how many there are of each source.
    sizes : how many entities have 0, 1, … records, or are expected to.
    """
    share = records / records.sum()
    highest = int(np.flatnonzero(sizes[: len(records) + 1]).max())
    for _ in range(_ROUNDS):
        whole = elementary(share, highest)
        # How many records of a source are expected, each as many times as its share is; polynomials without the source.
        expected, without = np.zeros(len(share)), np.ones(len(share))
        for size in range(1, highest + 1):
            expected += sizes[size] * without / whole[size]
            without = whole[size] - share * without
        new = (records + 1) / (expected + len(records))  # where the gradient on the simplex vanishes
        new /= new.sum()
        if np.abs(new - share).max() < _TOLERANCE:
            return new
        share = new
    return share
