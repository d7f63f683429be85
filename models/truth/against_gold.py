r"""What a fit says of items whose label is known, beside those labels: whether its probabilities are right.

A label that is stated with probability p should be right in a share p of such items. Of the items whose gold label the
fit did not use, the number of wrong labels E is compared with its distribution if the statements hold and errors are
independent, a sum of Bernoulli variables with probabilities :math:`1 - p_i`. Two rules make notes of it, where there
are 20 such items or more:

* too certain: with the tail :math:`P(\ge E \text{ errors})` and the gap between mean p and the share that is right, a
  tail below .001 with a gap above .01 is an error, a tail below .025 with a gap above .005 a warning. The exact tail
  and no normal one: a single slip among 30 labels at .9999 is eighteen standard errors, and has a tail of .003;
* off in either direction: a gap above .03 and above two standard errors of the share, as they are if the statements
  hold, is a warning. Of a share that was seen they would vanish where all labels are right.

The notes are said by `consilience.inference.result.Fit.findings`, the figures are in
`consilience.evaluation.reliability`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from consilience.arrays import Float, Int
from consilience.errors import UnsupportedRequest
from consilience.models.intervals import ends
from consilience.models.truth.classes import ClassTruth, marginals, most_probable
from consilience.models.truth.truth import Marginals, Ranked
from consilience.notes import Level, Note, Remedy

CALIBRATION = "calibration"
"""What notes of certainties beside gold labels are about."""

LEAST_ITEMS = 20
"""Items with gold labels from which on a note is made of them."""

# Tail and gap of an error and of a warning, whose tail is one side of what a 95 % interval leaves; gap of a warning in
# either direction, and its standard errors.
_ERROR, _WARNING, _OFF = (0.001, 0.01), (ends()[0], 0.005), (0.03, 2.0)

# Bins of stated probability, the worst of which is told; finer where labels are told to be sure.
_EDGES = np.array([0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0])

# Steps of the recursion, and steps times errors: 2e4 items take some fifty milliseconds.
_MOST_ITEMS, _MOST_NUMBERS = 20_000, 1 << 25


class AgainstGold(NamedTuple):
    r"""What a fit says of the items whose gold label it did not use.

    Parameters
    ----------
    item : int64, shape ``(item,)``; which items these are.
    certainty : float64, shape ``(item,)``; the stated probability of the label.
    right : float64, shape ``(item,)``; whether the label is the gold label. Of labels that tie for the most probable
        one, as of a vote, how often it would be, were one of them taken at random: none is the label before another.
    of_gold : float64, shape ``(item,)``; the stated probability of the gold label.
    loss : float64, shape ``(item,)``; :math:`\sum_t (q_t - 1[t = \mathrm{gold}])^2`, the multi-class Brier score.
    """

    item: Int[np.ndarray, " item"]
    certainty: Float[np.ndarray, " item"]
    right: Float[np.ndarray, " item"]
    of_gold: Float[np.ndarray, " item"]
    loss: Float[np.ndarray, " item"]

    @property
    def errors(self) -> float:
        """How many labels are wrong; ties count by their share."""
        return float((1 - self.right).sum())

    @property
    def gap(self) -> float:
        """Mean certainty minus the share of right labels: above zero where the fit is too certain."""
        return float(self.certainty.mean() - self.right.mean())


def unused_gold(resolved: Any) -> Int[np.ndarray, " item"] | None:
    """Return the gold label of each item, -1 where it is not known; None where none is known, or the fit used them.

    Parameters
    ----------
    resolved : data and settings of a fit.
    """
    if getattr(resolved.settings, "gold", "ignore") == "use":
        return None
    gold = resolved.data.gold_codes
    return None if gold is None or not np.any(np.asarray(gold) >= 0) else np.asarray(gold, np.int64)


def against_gold(truth: ClassTruth, resolved: Any) -> AgainstGold:
    """Compare what a fit says with the gold labels that it did not use.

    Where some of them were used to learn how certain to be, ``truth.held_out`` has what is said of each item without
    its own label, and stands for the truth.

    Parameters
    ----------
    truth, resolved : of the fit.

    Raises
    ------
    UnsupportedRequest : the data have no gold labels, or the fit used them; or it broke down.
    """
    gold = unused_gold(resolved)
    if gold is None and resolved.data.gold is not None and np.any(np.asarray(resolved.data.gold) >= 0):
        text = "no gold labels are left to compare with, since the fit used them all; {gold} keeps them for that"
        raise UnsupportedRequest(text, Remedy("gold", "ignore"))
    if gold is None:
        raise UnsupportedRequest(
            "no gold labels; give a column 'gold' for some items (20 are enough to set the certainty right)"
        )
    item = np.flatnonzero(gold >= 0)
    stated = _of_units(marginals(truth) if truth.held_out is None else truth.held_out, item)
    if not np.isfinite(stated.probability).all():
        raise UnsupportedRequest("the run came to numbers that are not finite, so that it states no probabilities")
    if truth.held_out is None:
        label, certainty = truth.lead.label[item], truth.lead.certainty[item]
    else:
        label, certainty = most_probable(stated)
    unit, is_gold = stated.unit, stated.code == gold[item][stated.unit]
    named = np.bincount(unit, is_gold, len(item)) > 0
    of_gold = np.where(named, np.bincount(unit, is_gold * stated.probability, len(item)), stated.unnamed)
    unnamed = truth.num_classes - np.diff(stated.first)
    squares = np.bincount(unit, stated.probability**2, len(item)) + unnamed * stated.unnamed**2
    highest = np.zeros(len(item))
    np.maximum.at(highest, unit, stated.probability)
    leads = stated.probability == highest[unit]
    ties = np.bincount(unit, leads, len(item))
    right = np.where(ties > 1, np.bincount(unit, leads & is_gold, len(item)) / np.maximum(ties, 1), label == gold[item])
    # Means over draws and sums of floats leave [0, 1] by rounding.
    certainty, of_gold = np.clip(certainty, 0.0, 1.0), np.clip(of_gold, 0.0, 1.0)
    return AgainstGold(item, certainty, right, of_gold, squares - 2 * of_gold + 1)


def _of_units(found: Marginals, unit: Int[np.ndarray, " chosen"]) -> Marginals:
    """Return the distributions of some units."""
    number = np.diff(found.first)
    chosen = np.zeros(len(number), bool)
    chosen[unit] = True
    kept = np.repeat(chosen, number)
    first = np.concatenate([[0], np.cumsum(number[unit])])
    return Marginals(first, found.code[kept], found.probability[kept], found.unnamed[unit])


def tail(probability: Float[np.ndarray, " item"], errors: int) -> float:
    r"""Return how probable it is that so many labels or more are wrong, if they are right as often as they say.

    The number of errors is Poisson binomial. The recursion over items keeps the probabilities of 0, …, E - 1 errors,
    and those of E or more in one; all are sums of positive numbers, so that tails of 1e-39 have their digits too.
    Beyond 20,000 items, or 2^25 items times errors, it is the normal distribution with continuity and skewness
    corrected (Edgeworth), whose error is of order 1 / n: exact enough for the rules here, not for far tails.

    Parameters
    ----------
    probability : stated, of each label.
    errors : E, how many are wrong.

    References
    ----------
    Hong (2013), On computing the distribution function for the Poisson binomial distribution, Computational Statistics
    & Data Analysis 59.

    Examples
    --------
    >>> import numpy as np
    >>> print(f"{tail(np.full(30, 0.9999), 1):.7f}")
    0.0029957
    """
    wrong = 1 - np.asarray(probability, float)
    if errors <= 0:
        return 1.0
    if errors > np.count_nonzero(wrong > 0):
        return 0.0
    if len(wrong) > _MOST_ITEMS or len(wrong) * errors > _MOST_NUMBERS:
        return _normal_tail(wrong, errors)
    found = np.zeros(errors + 1)
    found[0] = 1.0
    for one in wrong[wrong > 0].tolist():
        up = found[:-1] * one
        found[:-1] -= up
        found[1:] += up
    return float(found[-1])


def _normal_tail(wrong: Float[np.ndarray, " item"], errors: int) -> float:
    variance = float(np.sum(wrong * (1 - wrong)))
    skewness = float(np.sum(wrong * (1 - wrong) * (1 - 2 * wrong))) / variance**1.5 if variance else 0.0
    score = (errors - 0.5 - float(wrong.sum())) / np.sqrt(variance) if variance else np.inf
    density = np.exp(-(score**2) / 2) / np.sqrt(2 * np.pi)
    lean = skewness * (score**2 - 1) * density / 6 if density else 0.0
    return float(np.clip(special.ndtr(-score) + lean, 0.0, 1.0))


def calibration_notes(found: AgainstGold) -> list[Note]:
    """Return the note on how certain a fit is beside how often it is right; none where these agree, or items are few.

    Parameters
    ----------
    found : the comparison.
    """
    number = len(found.item)
    if number < LEAST_ITEMS:
        return []
    stated, right = float(found.certainty.mean()), float(found.right.mean())
    chance = tail(found.certainty, math.floor(found.errors + 1e-9))  # half an error of a tie is none yet
    for level, (most, least) in ((Level.error, _ERROR), (Level.warning, _WARNING)):
        if chance < most and found.gap > least:
            return [Note(level, _too_high(found), title="The stated probabilities are too high.", about=CALIBRATION)]
    spread = np.sqrt(np.sum(found.certainty * (1 - found.certainty))) / number
    if abs(found.gap) > max(_OFF[0], _OFF[1] * spread):
        way = "more" if found.gap > 0 else "less"
        low, high = (share(float(np.clip(stated + end * _OFF[1] * spread, 0, 1))) for end in (-1, 1))
        text = (
            f"certainty {share(stated)}, right {share(right)} on {number:,} gold items: {way} certain than right; if "
            f"the statements held, {low} to {high} would be right (two standard errors)"
            f"{'; of labels that tie, each counts by its share' * bool(np.mod(found.right, 1).any())}"
        )
        return [Note(Level.warning, text, title="The stated probabilities are off.", about=CALIBRATION)]
    return []


def _too_high(found: AgainstGold) -> str:
    """Say how many labels are right and how many were to be, also of the bin where most are missing."""
    number, expected = len(found.item), float(found.certainty.sum())
    bin_ = np.clip(np.searchsorted(_EDGES, found.certainty, side="right") - 1, 0, len(_EDGES) - 2)
    size, right, hoped = (
        np.bincount(bin_, values, len(_EDGES) - 1) for values in (None, found.right, found.certainty)
    )
    worst = int(np.argmax(hoped - right))
    return (
        f"the stated probabilities are too high: {hits(number - found.errors)} of {number:,} gold items are right "
        f"({share(1 - found.errors / number)}), {expected:,.1f} expected ({share(expected / number)}); of "
        f"{size[worst]:,} items stated at {_EDGES[worst]:g} to {_EDGES[worst + 1]:g}, {hits(right[worst])} right, "
        f"{hoped[worst]:,.1f} expected"
    )


def headline(truth: ClassTruth, resolved: Any) -> str:
    """Return what to read first of a fit of classes: how certain its labels are, and how many gold labels it hits.

    Of plausibilities, whose certainties cost a pass over the draws or a quadrature, only where there are gold labels.

    Parameters
    ----------
    truth, resolved : of the fit.

    Returns
    -------
    Such as ``certainty 0.912 (under independence 0.988); right 0.929 of 800 gold items``; empty where nothing is said.
    A crowd that is wrong together looks certain: that nothing checks it is said beside the number.
    """
    has_gold = unused_gold(resolved) is not None
    if truth.answers(Ranked(2)) and not has_gold:
        return ""
    words = f"certainty {share(float(truth.lead.certainty.mean()))}"
    if truth.certainty_if_independent is not None:
        words += f" (under independence {share(truth.certainty_if_independent)})"
    if not has_gold:
        return f"{words}; no gold labels check it"
    found = against_gold(truth, resolved)
    return f"{words}; right {share(float(found.right.mean()))} of {len(found.item):,} gold items"


def hits(value: float) -> str:
    """Write how many labels are right, of which ties are parts.

    Examples
    --------
    >>> hits(1743.0), hits(24.5)
    ('1,743', '24.5')
    """
    return f"{value:,.1f}".removesuffix(".0")


def share(value: float) -> str:
    """Write a share with three digits.

    Examples
    --------
    >>> share(0.91249), share(1.0), share(0.0)
    ('0.912', '1.000', '0.000')
    """
    return f"{value:.3f}" if np.isfinite(value) else "unknown"
