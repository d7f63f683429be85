r"""Dependence: how much less than independent evidence the annotations of an item are worth.

Annotators of one item err together: hard and misleading items make them. With intra-item correlation rho of what they
say, n annotations carry as much as :math:`n / (1 + (n - 1) \rho)` independent ones (Kish's design effect). A model that
multiplies n of them is over-certain by that, so that its probabilities q are tempered:

.. math::

    \gamma_i = \frac{1}{1 + (\max(n_i, 1) - 1) \rho}, \qquad
    \tilde q_i(t) = \frac{q_i(t)^{\gamma_i}}{\sum_s q_i(s)^{\gamma_i}}

with n the sum of an item's weights. The most probable label never changes. ``rho=0`` is the model as published, and
``rho=1`` leaves one annotation's worth. Labels alone tell a small part of rho: it comes from other crowds, or is
learned from gold labels, by their likelihood and a prior around the value of other crowds.

The three annotations of .9 that a model makes of an item are worth 1.875 independent ones:

>>> tempered(np.array([[0.9, 0.1]]), exponents(np.array([3.0]), 0.3)).round(6)
array([[0.797907, 0.202093]])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from consilience.arrays import Float, Int
from consilience.models.rows import row_blocks

DEFAULT = 0.3
"""Rho without gold and without an alert. By gold, nine public crowds have .20 to .63, with median .40; .3 stands below
it on purpose, and has the lowest calibration error of .2, .3 and .5."""

SPREAD = 0.4
"""Standard deviation of log rho between crowds. By the rho that fits their gold labels best, the nine lie around .3
with .25 (dawid-skene), .31 (one-coin) and .38 (mace); the next crowd, with a t distribution of nine, a quarter further.
"""

FEWEST_GOLD = 20
"""Gold labels from which rho is learned."""

_GRID = np.concatenate([[0.0], np.geomspace(0.02, 4.0, 24)])
_SPREAD, _OFFSET = 0.7, 0.001  # of log(rho + offset) around the default, in the prior of what is learned
_SMALLEST = 1e-12  # a probability of zero at a gold label would rule out every rho
_BLOCK = 1 << 20  # numbers (rho, item, class), or (item, class), at a time


@dataclass(frozen=True)
class Dependence:
    """The dependence by which a truth is tempered, and where it comes from.

    Parameters
    ----------
    rho : intra-item correlation; 0 where annotations count as independent.
    source : ``default``; ``alert`` where nothing tells signal from chance, and an item counts as one annotation;
        ``gold`` where it was learned; ``given`` by the user.
    gold_items : from how many items with gold labels it was learned.
    spread : standard deviation of log rho, which nobody observed: how far it may be from what it is taken to be.
    """

    rho: float
    source: Literal["default", "alert", "gold", "given"] = "default"
    gold_items: int = 0
    spread: float = 0.0

    def at(self, z: float) -> float:
        """Return the rho that is so many standard deviations away."""
        return self.rho * float(np.exp(self.spread * z))

    @property
    def prior_in_words(self) -> str:
        """What was believed of it before any gold label; empty where it was given, or where nothing tells labels."""
        if self.source == "gold":
            return (
                f"A normal distribution of log(ρ + {_OFFSET:g}) around log {DEFAULT:g}, with standard deviation "
                f"{_SPREAD:g}; what is learned is the most probable ρ"
            )
        if self.source == "default" and self.spread > 0:
            return f"A normal distribution of log ρ around log {self.rho:g}, with standard deviation {self.spread:g}"
        return ""


def exponents(weight_of_item: Float[np.ndarray, " item"], rho: float) -> Float[np.ndarray, " item"]:
    """Return the exponent of each item: what one of its annotations is worth, in independent ones.

    Parameters
    ----------
    weight_of_item : shape ``(item,)``; the sum of the weights of its annotations. Below one it counts as one.
    rho : not negative.
    """
    return 1 / (1 + (np.maximum(np.asarray(weight_of_item, float), 1) - 1) * rho)


def tempered(
    q: Float[np.ndarray, "item class"], exponent: Float[np.ndarray, " item"]
) -> Float[np.ndarray, "item class"]:
    """Return probabilities to a power, divided by their sum.

    Parameters
    ----------
    q : shape ``(item, class)``; each row sums to one. Zeros stay zero.
    exponent : shape ``(item,)``; above 0. Rows with 1 stay as they are, and ``q`` itself comes back where all have it.
    """
    changed = np.asarray(exponent) != 1
    if not changed.any():
        return q
    power, exponent = np.array(q, float), np.asarray(exponent, float)
    for block in row_blocks(len(power), power.shape[1], _BLOCK):
        some = block.start + np.flatnonzero(changed[block])
        # Relative to the largest, so that no row vanishes.
        rows = power[some] / power[some].max(axis=1, keepdims=True)
        rows **= exponent[some, None]
        power[some] = rows / rows.sum(axis=1, keepdims=True)
    return power


def learned(
    q: Float[np.ndarray, "gold_item class"], number: Float[np.ndarray, " gold_item"],
    gold: Int[np.ndarray, " gold_item"],
) -> tuple[float, float]:  # fmt: skip
    r"""Return the rho that maximises the likelihood of gold labels and the prior, and the spread of its logarithm.

    .. math::

        \sum_i \log \tilde q_i(\mathrm{gold}_i) - \frac{(\log(\rho + .001) - \log .3)^2}{2 \cdot .7^2}

    on a grid from 0 to 4, whose steps are equal in the logarithm.

    Parameters
    ----------
    q : shape ``(gold item, class)``; untempered probabilities of the items with gold labels, found without these.
    number : shape ``(gold item,)``; the sums of their weights.
    gold : shape ``(gold item,)``; the known labels.
    """
    score = _log_prior()
    for block in _log_likelihoods(q, number, gold):
        score += block.sum(axis=1)
    weight, log_rho = np.exp(score - score.max()), np.log(_GRID + _OFFSET)
    mean = np.average(log_rho, weights=weight)
    return float(_GRID[np.argmax(score)]), float(np.sqrt(np.average((log_rho - mean) ** 2, weights=weight)))


def learned_without_each(
    q: Float[np.ndarray, "gold_item class"], number: Float[np.ndarray, " gold_item"],
    gold: Int[np.ndarray, " gold_item"],
) -> tuple[Float[np.ndarray, " gold_item"], Float[np.ndarray, " gold_item"]]:  # fmt: skip
    """Return the rho of `learned` without each item, and the same by the gold labels alone, without the prior.

    Where one is far from that of all, a single gold label decides.

    Parameters
    ----------
    q, number, gold : as of `learned`.
    """
    each = np.concatenate([*_log_likelihoods(q, number, gold)], axis=1)
    others = each.sum(axis=1, keepdims=True) - each
    return _GRID[np.argmax(_log_prior()[:, None] + others, axis=0)], _GRID[np.argmax(others, axis=0)]


def _log_prior() -> Float[np.ndarray, " rho"]:
    return -((np.log(_GRID + _OFFSET) - np.log(DEFAULT)) ** 2) / (2 * _SPREAD**2)


def _log_likelihoods(
    q: Float[np.ndarray, "gold_item class"], number: Float[np.ndarray, " gold_item"],
    gold: Int[np.ndarray, " gold_item"],
) -> Iterator[Float[np.ndarray, "rho _"]]:  # fmt: skip
    """Yield the logarithms of the tempered probabilities of the gold labels, for each rho of the grid, by blocks."""
    step = max(_BLOCK // (len(_GRID) * q.shape[1]), 1)
    for begin in range(0, len(gold), step):
        rows = slice(begin, begin + step)
        log_q = np.log(np.maximum(np.asarray(q[rows], float), _SMALLEST))
        log_q -= log_q.max(axis=1, keepdims=True)
        power = np.stack([exponents(number[rows], rho) for rho in _GRID])
        of_gold = power * np.take_along_axis(log_q, np.asarray(gold)[rows, None], axis=1)[:, 0]
        yield of_gold - np.log(np.exp(power[:, :, None] * log_q).sum(axis=2))


def cross_fitted(
    q: Float[np.ndarray, "gold_item class"], number: Float[np.ndarray, " gold_item"],
    gold: Int[np.ndarray, " gold_item"], folds: int = 5,
) -> Float[np.ndarray, "gold_item class"]:  # fmt: skip
    """Return tempered probabilities of the items with gold labels, each by what the others say of rho.

    A rho that was learned from an item cannot say how well calibrated the model is there.

    Parameters
    ----------
    q, number, gold : as of `learned`.
    folds : rho is learned from all but one of so many parts; an item is in that of its position modulo their number.
    """
    fold, probabilities = np.arange(len(gold)) % folds, np.array(q, float)
    for one in range(min(folds, len(gold))):
        own, others = fold == one, fold != one
        rho, _ = learned(q[others], number[others], gold[others])
        probabilities[own] = tempered(q[own], exponents(number[own], rho))
    return probabilities
