r"""Scores by gold labels of some units, made sharper by what annotators or judges say of all of them.

With y the score of a unit under its gold label, G the units that have one, and p the score under the annotators,

.. math:: \hat\theta_a = \bar y_G + \lambda_a (\bar p - \bar p_G), \quad
          \lambda_a = \frac{\mathrm{cov}_a + \kappa \bar v \lambda}{\mathrm{var}_a + \kappa \bar v}, \quad
          \kappa = 10 / |G|, \quad \bar v = \mathrm{mean}_a \mathrm{var}_a, \quad
          \lambda = \sum_a \mathrm{cov}_a / \sum_a \mathrm{var}_a,

of a system a: prediction-powered inference, whose :math:`\lambda` is that of a regression, drawn towards one of all
systems. Whatever the annotators' errors are, it is right where G is a random sample, or one of known probabilities
:math:`\pi`, whose units count :math:`1/\pi`. Draws are of the Bayesian bootstrap: all means have the same weights of
units, :math:`\lambda` is computed anew, and the means over G have the pseudo-unit of `consilience.evaluation.unit_sums`.

References
----------
Angelopoulos et al. (2023), Prediction-powered inference, Science 382; PPI++, arXiv:2311.01453.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from consilience.arrays import Bool, Float
from consilience.data.problems import first_of
from consilience.errors import UnsupportedRequest
from consilience.evaluation.comparison import Comparison
from consilience.evaluation.unit_sums import alike, pseudo_scores, pseudo_weights, weighted_sums
from consilience.models.intervals import LEVEL, ends
from consilience.models.truth.against_gold import LEAST_ITEMS

# Replicates of the weights; gold units that the common λ counts as; below how many gold units P(best) is said to one
# digit; standard errors by which a random sample hardly ever differs.
REPLICATES, _RIDGE, _FEW, _APART = 1000, 10, 200, 3


class Anchored(NamedTuple):
    """Scores by gold labels and annotators together.

    Parameters
    ----------
    value : the estimate.
    draws : of the score in the population of units.
    truth_draws, item_draws : of that on these units, and of what other units would change.
    worth : of gold units alone, how many would say as much.
    """

    value: Float[np.ndarray, " system"]
    draws: Float[np.ndarray, "system replicate"]
    truth_draws: Float[np.ndarray, "system replicate"]
    item_draws: Float[np.ndarray, "system replicate"]
    worth: float


def anchored(
    y: Float[np.ndarray, "system unit"], p: Float[np.ndarray, "system unit"], gold: Bool[np.ndarray, "system unit"], *,
    probability: Any = None, bounds: tuple[float, float] | None = (0.0, 1.0), level: float = LEVEL, seed: int = 0,
    number: int = REPLICATES,
) -> Anchored:  # fmt: skip
    """Estimate mean scores; see the module.

    Parameters
    ----------
    y : scores under gold labels; where there is none, anything.
    p : scores under the annotators.
    gold : which units have a gold label.
    probability : shape ``(system, unit)``; with which a unit was chosen to have one; equal where None.
    bounds : between which scores lie; None leaves the pseudo-unit out.
    level : of the intervals, which are to hold as Student's t with |G| - 2 degrees of freedom.
    seed, number : of the weights.

    Examples
    --------
    >>> p = np.array([[0.9, 0.4, 0.8, 0.7]])
    >>> found = anchored(np.array([[1.0, 0.0, 0.0, 0.0]]), p, np.array([[True, True, False, False]]))
    >>> found.value.round(3).tolist()
    [0.6]
    """
    counted, units = gold.sum(axis=1), gold.shape[1]
    weight = np.where(gold, 1.0 if probability is None else 1 / np.where(gold, probability, 1.0), 0.0)
    weight *= (weight.sum(axis=1) / np.square(weight).sum(axis=1))[:, None]  # their sum is Kish's effective number
    size, first = weight.sum(axis=1)[:, None], alike(np.where(gold, y, 0.0), p, weight)
    of_gold = np.where(gold, weight * y, 0.0).sum(axis=1, keepdims=True) / size
    y, p = np.where(gold, y - of_gold, 0.0), p - p.mean(axis=1, keepdims=True)
    rows = np.stack([weight, weight * y, weight * p, weight * y * p, weight * p * p, p], axis=1)
    sums, total = weighted_sums(rows.reshape(-1, units), seed, number)
    sums = sums.reshape(*rows.shape[:2], number)
    extra = np.zeros(number) if bounds is None else pseudo_weights(seed, number)
    score = pseudo_scores(seed, len(p), number, bounds or (0.0, 1.0)) - of_gold
    _, moved, _ = _regression(rows.sum(axis=2)[..., None], size, 0.0, 0.0)
    mean_y, on_these, slope = _regression(sums, size, extra, score)
    drawn, value = on_these + slope * sums[:, 5] / total, of_gold + moved
    free, upper, share = np.maximum(size - 2, 1), ends(level)[1], counted[:, None] / units
    wider = np.sqrt(size / free) * special.stdtrit(free, upper) / special.ndtri(upper)
    # Of the variance, the sample of gold units adds on these units that of the residuals times 1 - |G|/n, and other
    # units would add that of y over G times |G|/n.
    return Anchored(
        value=value[first, 0], draws=(value + wider * (drawn - moved))[first],
        truth_draws=(value + wider * np.sqrt(1 - share) * (on_these - moved))[first],
        item_draws=(value + wider * np.sqrt(share) * mean_y)[first],
        worth=effective_gold(counted, mean_y[first], drawn[first]),
    )  # fmt: skip


def _regression(sums: np.ndarray, size: np.ndarray, extra: Any, score: Any) -> tuple[np.ndarray, ...]:
    """Return the mean of y over G, the same moved to where the mean of p is 0, and the slope on p."""
    total, y, p, yp, pp = np.moveaxis(sums[:, :5], 1, 0)
    covariance, variance = (yp - y * p / total) / total, (pp - p * p / total) / total
    ridge = _RIDGE / size * variance.mean(axis=0)
    pooled = _quotient(covariance.sum(axis=0), variance.sum(axis=0))
    slope = _quotient(covariance + ridge * pooled, variance + ridge)
    mean_y = (y + extra * score) / (total + extra)
    return mean_y, mean_y - slope * p / (total + extra), slope


def _quotient(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Return a slope on what varies, and 0 on what does not but for rounding."""
    varies = below > 1e-12
    return np.where(varies, above / np.where(varies, below, 1.0), 0.0)


def effective_gold(
    counted: Any, of_gold: Float[np.ndarray, "system replicate"], draws: Float[np.ndarray, "system replicate"]
) -> float:
    """Return how many gold units alone would say as much: their number times the ratio of variances, on average.

    Parameters
    ----------
    counted : how many gold units there are, of each system.
    of_gold, draws : of the score by these alone, and with what annotators say of all units.
    """
    alone, together = of_gold.var(axis=1), draws.var(axis=1)
    return float(np.mean(counted * np.where(together > 0, alone / np.where(together > 0, together, 1.0), 1.0)))


def linearised(
    value: Callable[[np.ndarray], np.ndarray], sums: Float[np.ndarray, "system part unit"], over: Bool[np.ndarray, " unit"]
) -> Float[np.ndarray, "system unit"]:
    r"""Return scores of units whose mean over some of them is the score of these, such as an F over documents.

    The score g of the mean sums :math:`\bar s` over these units moves to the first order by
    :math:`J (s_i - \bar s)` towards a unit; see Särndal, Swensson & Wretman (1992), Model assisted survey sampling, 5.5.

    Parameters
    ----------
    value : the score from sums ``(part, system, …)``; the same of sums that are all multiplied by a number.
    sums : of each unit.
    over : the units whose mean is to be the score.

    Examples
    --------
    >>> sums = np.array([[[1.0, 2.0], [2.0, 2.0]]])
    >>> linearised(lambda parts: parts[0] / parts[1], sums, np.array([True, True])).round(6).tolist()
    [[0.5, 1.0]]
    """
    mean = sums[:, :, over].mean(axis=2, keepdims=True)
    step = 1e-4 / sums.shape[2]
    ahead, behind = (value(np.moveaxis(mean + sign * step * (sums - mean), 1, 0)) for sign in (1, -1))
    return value(np.moveaxis(mean, 1, 0)) + (ahead - behind) / (2 * step)


def not_random(p: Float[np.ndarray, "system unit"], gold: Bool[np.ndarray, "system unit"]) -> Bool[np.ndarray, " system"]:
    """Return of which systems p differs between gold units and others by more than three standard errors."""
    mean, variance = np.zeros((2, len(p))), np.zeros((2, len(p)))
    for row, own in enumerate((gold, ~gold)):
        number = np.maximum(own.sum(axis=1), 1)
        mean[row] = (p * own).sum(axis=1) / number
        variance[row] = (np.square(p - mean[row][:, None]) * own).sum(axis=1) / number**2
    apart = np.abs(mean[0] - mean[1]) > _APART * np.sqrt(variance.sum(axis=0)) + 1e-9
    return np.asarray(apart & (~gold).any(axis=1))


def compare_anchored(
    y: Float[np.ndarray, "system unit"], p: Float[np.ndarray, "system unit"], gold: Bool[np.ndarray, "system unit"], *,
    systems: tuple[str, ...], title: str, probability: Any = None, bounds: tuple[float, float] | None = (0.0, 1.0),
    points: np.ndarray | None = None, unit: str = "item", level: float = LEVEL, seed: int = 0,
) -> Comparison:  # fmt: skip
    """Rank systems by gold labels of some units and what annotators or judges say of all.

    Parameters
    ----------
    y, p, gold, probability, bounds, level, seed : see `anchored`.
    systems, title, points, unit : see `Comparison`; the title gets the number of gold units.

    Raises
    ------
    UnsupportedRequest : a system has fewer than 20 gold units.
    """
    counted = gold.sum(axis=1)
    if counted.min() < LEAST_ITEMS:
        few = f"system {systems[counted.argmin()]!r} has {counted.min()}"
        raise UnsupportedRequest(
            f"{LEAST_ITEMS} gold {unit}s at least anchor scores, and {few}; label more of them, or leave out the gold labels"
        )
    found = anchored(y, p, gold, probability=probability, bounds=bounds, level=level, seed=seed)
    notes = [f"as good as {found.worth:,.0f} gold {unit}s"]
    if counted.min() < _FEW:
        notes.append(f"below {_FEW} gold {unit}s P(best) is too sure where scores are high; read it to one digit")
    if probability is None and (odd := not_random(p, gold)).any():
        named = first_of(np.asarray(systems, object)[odd])
        notes.append(f"gold {unit}s differ from the others; the estimate assumes that they are a random sample ({named})")
    return Comparison(
        systems=systems, title=f"{title}, anchored on {counted.min():,} gold {unit}s", values=found.value,
        draws=found.draws, truth_draws=found.truth_draws, item_draws=found.item_draws, points=points,
        num_items=p.shape[1], unit=unit, level=level, notes=tuple(notes),
        limits=(-np.inf, np.inf) if bounds is None else bounds,
    )  # fmt: skip
