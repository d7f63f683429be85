r"""Do things happen as often as they are said to? The table of reliability, and scores of a fit against gold labels.

The label of an item that is stated with probability p should be right in a share p of such items. `reliability_table`
has both numbers by bins of p, of labels and of links of records alike. A fit is scored on the items whose gold label it
did not use; where gold labels taught it how certain to be, each of these items is scored without its own.

Wilson (1927), Probable inference, the law of succession, and statistical inference, JASA 22; Brier (1950),
Verification of forecasts expressed in terms of probability, Monthly Weather Review 78; Naeini, Cooper & Hauskrecht
(2015), Obtaining well calibrated probabilities using Bayesian binning, AAAI.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from consilience.arrays import Bool, Float, Int
from consilience.data.pair_labels import read_pair_labels
from consilience.data.predictions import Predictions
from consilience.errors import UnsupportedRequest
from consilience.evaluation.adjustment import scoring_of
from consilience.evaluation.agreement.jackknife import wilson
from consilience.evaluation.engine import PerUnit, fold
from consilience.models.truth import CLASSES, LabelDraws, truth_of
from consilience.models.truth.against_gold import AgainstGold, against_gold, unused_gold
from consilience.notes import Remedy

if TYPE_CHECKING:
    import pandas

TEN_BINS = np.arange(11) / 10
"""Ends of ten equal bins."""

# Most pairs of records are next to sure, in one way or the other: bins are finer there.
_BINS_OF_PAIRS = np.array([0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 1.0])

LEAST_PROBABILITY = 1e-6
"""Probabilities of the gold label below this are taken for it in the log score, or one item would be all of it."""


class CalibrationScore(NamedTuple):
    r"""How right the stated certainties of a fit are, against gold labels that it did not use.

    Parameters
    ----------
    items : how many have such a gold label.
    certainty : mean stated probability of their labels.
    right : share of their labels that are the gold label; of a tie, the share of its labels.
    ece : expected calibration error, :math:`\sum_b (n_b / n) |\bar p_b - \bar r_b|`, over ten equal bins of certainty.
    log_score : mean of -log of the stated probability of the gold label, at least 1e-6; in nats.
    brier : mean of :math:`\sum_t (q_i(t) - 1[t = g_i])^2`, from 0 to 2; q is what is stated of label t, g gold.
    dependence : how far certainty was lowered for annotators who err together; 0 where it was not.
    fitted_on : from how many gold labels that was learned; each item is then scored without its own.
    """

    items: int
    certainty: float
    right: float
    ece: float
    log_score: float
    brier: float
    dependence: float
    fitted_on: int


def reliability_table(
    certainty: Float[np.ndarray, " unit"],
    right: Bool[np.ndarray, " unit"] | Float[np.ndarray, " unit"],
    edges: Float[np.ndarray, " edge"] = TEN_BINS,
) -> pandas.DataFrame:
    """Tabulate how often what is stated with about the same probability is so.

    Parameters
    ----------
    certainty : stated probability of each unit, in [0, 1].
    right : whether it is so; a share, where that is a matter of chance.
    edges : ends of the bins, from 0 to 1; a bin holds its lower end, and the last one both.

    Returns
    -------
    Data frame with the columns ``lower, upper`` (the bin), ``items``, ``certainty`` (mean), ``right`` (share) and
    ``right_lower, right_upper`` (Wilson, 95 %), a row for each bin that holds something.

    Examples
    --------
    >>> import numpy as np
    >>> reliability_table(np.array([0.95, 0.95, 0.62]), np.array([True, False, True])).round(2)
       lower  upper  items  certainty  right  right_lower  right_upper
    0    0.6    0.7      1       0.62    1.0         0.21         1.00
    1    0.9    1.0      2       0.95    0.5         0.09         0.91
    """
    import pandas

    certainty, right = np.asarray(certainty, float), np.asarray(right, float)
    bin_ = np.clip(np.searchsorted(edges, certainty, side="right") - 1, 0, len(edges) - 2)
    number = np.bincount(bin_, minlength=len(edges) - 1)
    has = number > 0
    mean, share = (np.bincount(bin_, values, len(edges) - 1)[has] / number[has] for values in (certainty, right))
    lower, upper = wilson(share, number[has])
    return pandas.DataFrame({
        "lower": edges[:-1][has], "upper": edges[1:][has], "items": number[has], "certainty": mean, "right": share,
        "right_lower": lower, "right_upper": upper,
    })  # fmt: skip


def equal_bins(certainty: Float[np.ndarray, " unit"], least: int = 5, most: int = 10) -> Float[np.ndarray, " edge"]:
    """Return ends of bins that hold about as many units each, and so many at least; equal certainties stay together.

    Parameters
    ----------
    certainty : stated probability of each unit.
    least : units of a bin, if there are so many in all.
    most : bins.

    Examples
    --------
    >>> equal_bins(np.array([0.5, 0.6, 0.7, 0.8, 0.8, 0.9]), least=2)
    array([0.5, 0.7, 0.9])
    """
    values, counts = np.unique(certainty, return_counts=True)
    size, held, edges = max(least, -(-len(certainty) // most)), 0, [values[0]]
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        if held >= size:
            edges.append(value)
            held = 0
        held += count
    if held < least and len(edges) > 1:
        edges.pop()
    return np.array([*edges, values[-1]])


def reliability_of_pairs(pairs: tuple[np.ndarray, ...], entity: Int[np.ndarray, " record"]) -> pandas.DataFrame:
    """Tabulate how often pairs of records of about the same probability are of one entity.

    Parameters
    ----------
    pairs : first record, second record and probability of each pair, as ``truth.pairs()`` has them.
    entity : the known entity of each record, -1 where it is not known.

    Returns
    -------
    As `reliability_table`, of the pairs whose entities are known.
    """
    first, second, probability = pairs
    known = (entity[first] >= 0) & (entity[second] >= 0)
    return reliability_table(probability[known], (entity[first] == entity[second])[known], _BINS_OF_PAIRS)


def calibration_of_labels(fit: Any, labels: Any) -> pandas.DataFrame:
    """Tabulate how often pairs of records are the same entity, by their probability, as a person says.

    Parameters
    ----------
    fit : a fit of records that did not use these labels.
    labels : a table with the columns record_a, record_b and answer, as ``fit.review()`` is where it is filled in. Its
        ``weight`` says for how many pairs each stands. Without a column ``sampled`` all count as drawn at random.

    Returns
    -------
    data frame : of each tenth of probability that has labels, ``probability_bin``, the mean probability ``expected``
        and the share ``observed`` that is the same, both weighted; ``lower`` and ``upper`` (Wilson, 95 %, at the
        effective number of Kish), and ``number``, of labels. A wrong answer counts as it is.

    Raises
    ------
    InputError : the labels cannot be read.
    UnsupportedRequest : all of them were chosen because they were uncertain; or the fit used them.

    Examples
    --------
    >>> import consilience as cs
    >>> fit = cs.fit("block-linkage", cs.simulate_records(40, seed=1))
    >>> fit.calibration(fit.review().assign(answer="same"))["observed"].tolist()  # one candidate
    [1.0]
    """
    import pandas

    answers = read_pair_labels(labels, fit.data.records, fit.data.sources)
    answers.check_as_test(fit.data.labelled)
    stated, weight = cast(Any, truth_of(fit)).pairs().of(answers.first, answers.second), answers.weight
    tenth = np.minimum((stated * 10).astype(int), 9)
    number, whole, squares, expected, observed = (
        np.bincount(tenth, of_label, minlength=10) for of_label in (
            np.ones_like(weight), weight, weight**2, weight * stated, weight * answers.together
        )
    )  # fmt: skip
    has = np.flatnonzero(number)
    share = observed[has] / whole[has]
    lower, upper = wilson(share, whole[has] ** 2 / squares[has])
    return pandas.DataFrame({
        "probability_bin": [f"{one / 10:.1f} to {(one + 1) / 10:.1f}" for one in has],
        "expected": expected[has] / whole[has], "observed": share, "lower": lower, "upper": upper,
        "number": number[has].astype(int),
    })  # fmt: skip


def expected_calibration_error(table: pandas.DataFrame) -> float:
    """Return the mean distance between stated and observed shares of a table of reliability, weighted by items."""
    return float(np.average(np.abs(table["certainty"] - table["right"]), weights=table["items"]))


def calibration(fit: Any) -> pandas.DataFrame:
    """Tabulate how often the labels of a fit are the gold label, by their certainty.

    Parameters
    ----------
    fit : of classes of items.

    Returns
    -------
    As `reliability_table`, of ten equal bins.

    Raises
    ------
    UnsupportedRequest : the data have no gold labels, or the fit used them.

    Examples
    --------
    >>> import consilience as cs
    >>> counts = [[3, 0], [2, 0], [0, 3], [2, 2]]
    >>> fit = cs.fit("majority-vote", cs.Annotations.from_counts(counts, gold=[0, 1, 1, 0]))
    >>> fit.calibration()[["items", "certainty", "right"]].round(2)
       items  certainty  right
    0      1        0.5   0.50
    1      3        1.0   0.67
    """
    found = against_gold(_classes(fit), fit.resolved)
    return reliability_table(found.certainty, found.right)


def calibration_score(fit: Any) -> CalibrationScore:
    """Score the stated certainties of a fit against the gold labels that it did not use.

    Parameters
    ----------
    fit : of classes of items.

    Raises
    ------
    UnsupportedRequest : the data have no gold labels, or the fit used them.

    Examples
    --------
    >>> import consilience as cs
    >>> fit = cs.fit("majority-vote", cs.Annotations.from_counts([[3, 0], [2, 0], [0, 3]], gold=[0, 1, -1]))
    >>> score = fit.calibration_score()
    >>> score.items, score.certainty, score.right, score.brier
    (2, 1.0, 0.5, 1.0)
    """
    truth = _classes(fit)
    return score_of(against_gold(truth, fit.resolved), truth.dependence)


def score_of(found: AgainstGold, dependence: Any = None) -> CalibrationScore:
    """Return the scores of a comparison with gold labels, and how far certainty was lowered for dependence."""
    learned = dependence is not None and dependence.source == "gold"
    return CalibrationScore(
        items=len(found.item), certainty=float(found.certainty.mean()), right=float(found.right.mean()),
        ece=expected_calibration_error(reliability_table(found.certainty, found.right)),
        log_score=float(-np.log(np.maximum(found.of_gold, LEAST_PROBABILITY)).mean()),
        brier=float(found.loss.mean()), dependence=0.0 if dependence is None else float(dependence.rho),
        fitted_on=int(dependence.gold_items or 0) if learned else 0,
    )  # fmt: skip


def _classes(fit: Any) -> Any:
    return truth_of(fit).read_as("classes")


class ByGold(NamedTuple):
    """The score of a system against gold labels.

    Parameters
    ----------
    value : mean over the items that have one.
    spread : its standard error as an estimate of the mean over all items, 0 where all have one.
    items : how many these are.
    """

    value: float
    spread: float
    items: int


def score_by_gold(
    fit: Any, systems: Mapping[str, Predictions], metric: Any, *, missing: str = "error", unknown: str = "error"
) -> dict[str, ByGold]:
    """Score systems against the gold labels that a fit did not use, as if those were the truth.

    Parameters
    ----------
    fit : of classes of items.
    systems : predictions by name.
    metric : of the top label, as in `evaluate`: gold labels rank no classes.
    missing, unknown : see `evaluate`.

    Raises
    ------
    UnsupportedRequest : there are no such gold labels, or the metric needs more than a label.
    """
    scores = {}
    for name, system in systems.items():
        score, has_gold = gold_scores(fit, [system], metric, missing=missing, unknown=unknown)
        if len(items := score[0, has_gold]):
            left = 1 - len(items) / _classes(fit).num_units  # of a sample without replacement
            spread = np.sqrt(items.var() / len(items) * left)
            scores[name] = ByGold(float(items.mean()), float(spread), len(items))
    return scores


def gold_scores(
    fit: Any, systems: Sequence[Predictions], metric: Any, **policies: Any
) -> tuple[Float[np.ndarray, "system item"], Bool[np.ndarray, " item"]]:
    """Score items against the gold labels that a fit did not use, as `adjustment.scoring_of` does against a truth.

    Returns
    -------
    score : of the items that all systems predicted, in the order of a `Scoring`; 0 without a gold label.
    has_gold : which have one.

    Raises
    ------
    UnsupportedRequest : there are no gold labels, or the fit used them; or systems or metric need more than a label.
    """
    resolved = None if truth_of(fit) is fit else fit.resolved
    codes = None if resolved is None else unused_gold(resolved)
    if resolved is not None and codes is None and getattr(resolved.settings, "gold", "ignore") == "use":
        text = "the fit has seen the gold labels; fit with {gold} so that they can check it"
        raise UnsupportedRequest(text, Remedy("gold", "ignore"))
    if codes is None or any(system.kind != CLASSES.name for system in systems):
        raise UnsupportedRequest("no gold labels could check these systems; fit classes of items with a column 'gold'")
    truth = _classes(fit)
    known = LabelDraws(np.maximum(codes, 0)[None], truth.num_classes)
    known.ids = truth.ids
    _, scoring, name = scoring_of(known, systems, metric, **policies)
    found = PerUnit(scoring, name)
    fold(scoring, found)
    has_gold = codes[scoring.place] >= 0
    return np.where(has_gold, found.mean, 0.0), has_gold
