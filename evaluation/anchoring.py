r"""Scores by gold labels of some units, made sharper by what annotators or judges say of all of them.

With y the score of a unit under its gold label, G the units that have one, and p the score under annotators or judges,

.. math:: \hat\theta_a = \bar y_G + \lambda_a (\bar p - \bar p_G), \quad
          \lambda_a = \frac{\mathrm{cov}_a + \kappa \bar v \lambda}{\mathrm{var}_a + \kappa \bar v}, \quad
          \kappa = 10 / |G|, \quad \bar v = \mathrm{mean}_a \mathrm{var}_a, \quad
          \lambda = \sum_a \mathrm{cov}_a / \sum_a \mathrm{var}_a

of a system a: prediction-powered inference with the slope of a regression, drawn towards one of all systems. Whatever
the errors behind p are, it is right where G is a random sample, or one of known probabilities :math:`\pi`, whose units
count :math:`1/\pi`. In a draw all means have the weights of the Bayesian bootstrap, the slope is computed anew, and the
means over G have the pseudo-unit of `consilience.evaluation.unit_sums`.

References
----------
Angelopoulos et al. (2023), Prediction-powered inference, Science 382; PPI++, arXiv:2311.01453.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import special

from consilience.arrays import Bool, Float
from consilience.data.problems import check_option
from consilience.data.verdicts import Verdicts
from consilience.errors import UnsupportedRequest
from consilience.evaluation.agreement.jackknife import check_level
from consilience.evaluation.leaderboard import Comparison
from consilience.evaluation.unit_sums import REPLICATES, pseudo_scores, pseudo_weights, resampled, weighted_sums
from consilience.models.intervals import LEVEL, ends
from consilience.models.truth.against_gold import LEAST_ITEMS
from consilience.models.truth.verdicts import probability_of_right
from consilience.notes import Remedy

# Pseudo-units at the common slope; gold units below which P(best) is good for one digit;
# standard errors by which a random sample hardly ever differs.
_RIDGE, _FEW, _APART = 10, 200, 3

NOT_RANDOM = "differ from the others; the estimate assumes that they are a random sample."
"""What is said of gold units that are none."""

Scores = Float[np.ndarray, "system unit"]


class Anchored(NamedTuple):
    """Estimates ``(system,)`` and their draws ``(system, replicate)``.

    Draws are of the score in the population of units, of that on these units, and of what other units change; ``worth``
    is how many gold units alone would say as much.
    """

    value: np.ndarray
    draws: np.ndarray
    truth_draws: np.ndarray
    item_draws: np.ndarray
    worth: float


def anchored(
    y: Scores, p: Scores, gold: Bool[np.ndarray, "system unit"], *, probability: Scores | None = None,
    bounds: tuple[float, float] | None = (0.0, 1.0), level: float = LEVEL, seed: int = 0,
) -> Anchored:  # fmt: skip
    """Estimate mean scores; see the module.

    Parameters
    ----------
    y, p, gold : scores under gold labels (where there is none, anything) and under annotators; who has a gold label.
    probability : with which a unit was chosen to have one; equal where None.
    bounds : between which scores lie; None leaves the pseudo-unit out.
    level : of intervals that are to hold as Student's t with |G| - 2 degrees of freedom.

    Examples
    --------
    >>> y, p = np.array([[1.0, 0.0, 0.0, 0.0]]), np.array([[0.9, 0.4, 0.8, 0.7]])
    >>> anchored(y, p, np.array([[True, True, False, False]])).value.round(3).tolist()
    [0.6]
    """
    counted = gold.sum(axis=1)
    weight = np.where(gold, 1.0 if probability is None else 1 / np.where(gold, probability, 1.0), 0.0)
    weight *= (weight.sum(axis=1) / np.square(weight).sum(axis=1))[:, None]  # their sum is Kish's effective number
    size = weight.sum(axis=1)[:, None]
    of_gold = np.where(gold, weight * y, 0.0).sum(axis=1, keepdims=True) / size
    y, p = np.where(gold, y - of_gold, 0.0), p - p.mean(axis=1, keepdims=True)
    rows = np.stack([weight, weight * y, weight * p, weight * y * p, weight * p * p, p], axis=1)
    sums, total = weighted_sums(rows.reshape(-1, rows.shape[2]), seed, REPLICATES)
    sums = sums.reshape(*rows.shape[:2], REPLICATES)
    extra = np.zeros(REPLICATES) if bounds is None else pseudo_weights(seed, REPLICATES)
    score = pseudo_scores(seed, len(p), REPLICATES, bounds or (0.0, 1.0)) - of_gold
    _, moved, _ = _regression(rows.sum(axis=2)[..., None], size, 0.0, 0.0)
    mean_y, on_these, slope = _regression(sums, size, extra, score)
    drawn, value = on_these + slope * sums[:, 5] / total, of_gold + moved
    free, upper, share = np.maximum(size - 2, 1), ends(level)[1], counted[:, None] / p.shape[1]
    wider = np.sqrt(size / free) * special.stdtrit(free, upper) / special.ndtri(upper)
    # Of the variance, the sample of gold units adds on these units that of the residuals times 1 - |G|/n, and other
    # units would add that of y over G times |G|/n.
    return Anchored(
        value=value[:, 0], draws=value + wider * (drawn - moved),
        truth_draws=value + wider * np.sqrt(1 - share) * (on_these - moved),
        item_draws=value + wider * np.sqrt(share) * mean_y, worth=effective_gold(counted, mean_y, drawn),
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


def _quotient(above: Any, below: Any) -> np.ndarray:
    """Return a ratio of (co)variances; 0 where nothing varies but by rounding."""
    return np.where(below > 1e-12, above / np.maximum(below, 1e-12), 0.0)


def effective_gold(counted: Any, alone: np.ndarray, together: np.ndarray) -> float:
    """Return how many gold units would say as much: their number times the ratio of variances of draws, on average."""
    return float(np.mean(counted * _quotient(alone.var(axis=1), together.var(axis=1))))


def not_random(p: Scores, gold: Bool[np.ndarray, "system unit"]) -> bool:
    """Return whether the mean of p differs between gold units and others by more than three standard errors."""
    some = gold.any(axis=1) & ~gold.all(axis=1)
    p, gold = p[some], gold[some]
    weight = [own / own.sum(axis=1, keepdims=True) for own in (gold, ~gold)]
    mean = [(own * p).sum(axis=1, keepdims=True) for own in weight]
    by_unit = (weight[0] * (p - mean[0]) - weight[1] * (p - mean[1])).sum(axis=0)
    return bool(abs((mean[0] - mean[1]).sum()) > _APART * np.sqrt(np.square(by_unit).sum()) + 1e-9)


def compare_anchored(
    y: Scores, p: Scores, gold: Bool[np.ndarray, "system unit"], *, systems: tuple[str, ...], title: str,
    probability: Scores | None = None, bounds: tuple[float, float] | None = (0.0, 1.0),
    points: np.ndarray | None = None, unit: str = "item", level: float = LEVEL, seed: int = 0,
) -> Comparison:  # fmt: skip
    """Rank systems by gold labels of some units and what annotators or judges say of all; see `anchored`.

    Raises
    ------
    UnsupportedRequest : a system has fewer than 20 gold units.
    """
    check_level(level)
    least, few = gold.sum(axis=1).min(), systems[gold.sum(axis=1).argmin()]
    if least < LEAST_ITEMS:
        text = f"{LEAST_ITEMS} gold {unit}s at least are needed, and '{few}' has {least}; label more, or {{gold}}"
        raise UnsupportedRequest(text, Remedy("gold", "ignore"))
    found = anchored(y, p, gold, probability=probability, bounds=bounds, level=level, seed=seed)
    notes = [f"The scores are as precise as with {found.worth:,.0f} gold {unit}s alone."] if found.worth else []
    if least < _FEW:
        notes.append(f"P(best) is rough (too sure below {_FEW} gold {unit}s).")
    if probability is None and not_random(p, gold):
        notes.append(f"Gold {unit}s {NOT_RANDOM}")
    return Comparison(
        systems=systems, title=f"{title}, anchored on {least:,} gold {unit}s", draws=found.draws,
        values=np.clip(found.value, *(bounds or (-np.inf, np.inf))), alone=p.mean(axis=1), provenance=("any",) * len(p),
        truth_draws=found.truth_draws, item_draws=found.item_draws, points=points, num_items=p.shape[1], unit=unit,
        level=level, notes=tuple(notes), limits=bounds or (-np.inf, np.inf), digits=1 if least < _FEW else 2,
        mcse=np.zeros(len(systems)),
    )  # fmt: skip


def compare_verdicts(
    verdicts: Verdicts, *, gold: str = "ignore", anchor: str = "verdicts", missing: str = "error", level: float = LEVEL,
    seed: int = 0,
) -> Comparison:  # fmt: skip
    """Rank systems by the share of their outputs that is right.

    Parameters
    ----------
    gold : ``use`` anchors shares on gold labels, of a random sample of the outputs or with a ``gold_probability``;
        ``ignore`` has the shares as the judges see them, and names no best system.
    anchor : what stands for the verdicts beside gold labels: their mean, or the ``latent-class`` probability.
    missing : ``drop`` compares on the items of which the output of every system was judged.

    Raises
    ------
    UnsupportedRequest : outputs were not judged; there are no gold labels, or fewer than 20 of a system; or a latent
        class is asked for without them, or of verdicts by one judge, or between right and wrong.
    """
    check_level(level)
    check_option("gold", gold, ("ignore", "use"))
    check_option("anchor", anchor, ("verdicts", "latent-class"))
    if gold == "use" and verdicts.gold is None:
        text = "the verdicts have no gold labels; give a column 'gold' for 20 items or more, or {gold}"
        raise UnsupportedRequest(text, Remedy("gold", "ignore"))
    if gold == "ignore" and anchor != "verdicts":
        text = "{anchor} stands beside gold labels; give {gold}, or leave it out"
        raise UnsupportedRequest(text, Remedy("anchor", anchor), Remedy("gold", "use"))
    share, kept = verdicts.shares(missing)
    share, title, systems = share[:, kept], "share of right outputs", tuple(map(str, verdicts.systems))
    if gold == "use":
        labels, chance = verdicts.gold[:, kept], verdicts.gold_probability
        return compare_anchored(
            labels, share if anchor == "verdicts" else probability_of_right(verdicts)[:, kept], ~np.isnan(labels),
            systems=systems, title=title, probability=None if chance is None else chance[:, kept],
            points=share.mean(axis=1), level=level, seed=seed,
        )  # fmt: skip
    draws = resampled(share[:, None], seed, REPLICATES, (0.0, 1.0))[:, 0]
    values, notes = share.mean(axis=1), ["No verdict tells how far judges err: these intervals are of what they say."]
    if verdicts.gold is not None:
        notes.append("There are gold labels, which were not used.")
    return Comparison(
        systems=systems, title=f"{title} as the judges see it", values=values, draws=draws, item_draws=draws,
        truth_draws=np.repeat(values[:, None], 2, axis=1), points=None, num_items=share.shape[1], limits=(0.0, 1.0),
        level=level, notes=tuple(notes), ranked=False, mcse=np.zeros(len(systems)),
    )  # fmt: skip
