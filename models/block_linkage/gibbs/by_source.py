"""What restriction="across" does to the prior of a partition: records of one source are of different entities.

An entity of s records has them from s sources, which are a set A with probability prod(φ_a, a in A) / e_s(φ), where φ
are shares of the sources and e_s is the elementary symmetric polynomial of degree s. In which order its records have
these sources tells nothing. Over all entities the products are the same for every partition, so that an entity of s
records has the factor 1 / (s! e_s(φ)) beside that of its size. Without it links between sources would be expected as
seldom as if records of one source could be linked, too: of two sources of about one size half as often.
"""

from __future__ import annotations

import numpy as np

from consilience.arrays import Float, Int

_ROUNDS = 50
_TOLERANCE = 1e-6


def log_factors(
    random: np.random.Generator, cluster: Int[np.ndarray, " record"], source: Int[np.ndarray, " record"], largest: int
) -> Float[np.ndarray, " sizes_and_none"]:
    """Return -log(s! e_s(φ)) for s = 0, 1, …, ``largest``; 0 of sizes beyond the number of sources.

    Of two sources φ is drawn from its conditional distribution, which is Dirichlet: of uniform shares, and of the
    sources of those entities that have one record. Of more it is the most probable one.

    Parameters
    ----------
    random : source of random numbers.
    cluster : the entity of each record.
    source : the source of each record.
    largest : how many records an entity may have.
    """
    records = np.bincount(source)
    records = records[records > 0]
    sizes = np.bincount(np.bincount(cluster), minlength=largest + 1)[: largest + 1]
    if len(records) == 2:
        share = random.dirichlet(np.maximum(records - sizes[2:3].sum(), 0) + 1.0)
    else:
        share = most_probable(records, sizes)
    degrees = elementary(share, min(largest, len(share)))
    factor = np.zeros(largest + 1)
    known = np.arange(2, len(degrees))
    factor[known] = -np.cumsum(np.log(known)) - np.log(degrees[known])
    return factor


def elementary(
    share: Float[np.ndarray, " source"], highest: int | None = None
) -> Float[np.ndarray, " degrees_and_none"]:  # fmt: skip
    """Return the elementary symmetric polynomials of degrees 0, 1, …, ``highest``; as many as there are numbers.

    Examples
    --------
    >>> elementary(np.array([0.5, 0.3, 0.2])).round(6).tolist()
    [1.0, 1.0, 0.31, 0.03]
    """
    found = np.zeros(1 + (len(share) if highest is None else highest))
    found[0] = 1
    for one in share:
        found[1:] += one * found[:-1]
    return found


def most_probable(
    records: Int[np.ndarray, " source"], sizes: Int[np.ndarray, " sizes_and_none"]
) -> Float[np.ndarray, " source"]:
    """Return the most probable shares of sources, with one more record of each: no share is zero.

    Parameters
    ----------
    records : how many there are of each source.
    sizes : how many entities have 0, 1, … records.
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
