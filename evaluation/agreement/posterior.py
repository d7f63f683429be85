r"""How often annotators agree as a model's posterior implies it, and whether the observed agreement fits to that.

Two annotators who give class c with plausibility :math:`\lambda_{ic}`, independently, agree on item i with probability
:math:`\sum_c \lambda_{ic}^2`. Each draw of the truth implies such a probability for each item, and overall their mean,
in which items count alike. It takes no second annotation of an item, and it stays right, if the model is, where SPA
does not: where more annotations were asked for because the first ones differed.

Where the model was fitted to annotations, it can be checked. For a draw of the truth, as many annotations as each item
has are simulated from its plausibilities, and their sparse probability of agreement is computed as the observed one is.
Over draws that gives the posterior predictive distribution of SPA. The classes of an item that nobody named are
simulated as one: the pairs of annotations within it that agree are taken as a binomial number with the right mean,
which leaves out that pairs depend on each other. Whatever decided on the numbers of annotations, the simulation takes
them as given. Where it was the agreement of the first ones, SPA is higher than the model expects with `flat` weights
and lower with `edge` weights. Where the truth is one label an item and the model knows the errors of the annotators,
each of them labels their items anew, given the labels of the draw.

The p-value of this check is cautious. The data are used twice, so that under a true model it lies closer to 1/2 than a
uniform number does, and below a with a probability of at most 2a (Meng 1994). With a truth of a single draw from the
posterior it is exactly uniform, up to ties.

References
----------
X.-L. Meng. Posterior predictive p-values. The Annals of Statistics 22 (1994).
B. Phipson and G. K. Smyth. Permutation p-values should never be zero. Statistical Applications in Genetics and
Molecular Biology 9 (2010).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from consilience.arrays import Float, Int
from consilience.errors import UnsupportedRequest
from consilience.evaluation.agreement.counts import LabelCounts
from consilience.evaluation.agreement.weighting import WeightFunction, weight_function
from consilience.models.truth import LabelTruth, Plausibilities, Truth

__all__ = ["PosteriorAgreement", "posterior_agreement"]

# Numbers that a simulation holds at a time in each of its arrays.
_NUMBERS = 1 << 18

# Two values of SPA that differ by less are equal: the order of a sum may change the last digits.
_TIE = 1e-12



@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PosteriorAgreement:
    """The probability that two annotators agree, as draws of the truth imply it.

    Parameters
    ----------
    items : float64, shape ``(item,)``; the mean over draws.
    item_lower, item_upper : float64, shape ``(item,)``; the central interval over draws. NaN with a single draw.
    draws : float64, shape ``(draw,)``; the mean over items, which count alike. Where annotations are known, items
        without any are left out of it.
    num_items : how many items are in that mean.
    level : of the intervals.
    ids : the user's ids of the items, or None.
    scheme : name of the weights of ``observed`` and ``predictive``, or None.
    observed : SPA of the annotations. NaN where they are not known, or no item has two.
    predictive : float64, shape ``(replicate,)``; SPA of as many simulated annotations. Empty where there is nothing to
        compare it to.
    """

    items: np.ndarray
    item_lower: np.ndarray
    item_upper: np.ndarray
    draws: np.ndarray
    num_items: int
    level: float = 0.95
    ids: Any = None
    scheme: str | None = None
    observed: float = float("nan")
    predictive: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def value(self) -> float:
        """Mean over items and draws."""
        return float(self.draws.mean())

    @property
    def sd(self) -> float:
        """Standard deviation over draws; NaN with a single one."""
        return float(np.std(self.draws, ddof=1)) if len(self.draws) > 1 else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """Central interval over draws; NaN with a single one."""
        return _interval(self.draws, self.level)

    @property
    def predictive_interval(self) -> tuple[float, float]:
        """Where the model expects the observed SPA."""
        return _interval(self.predictive, self.level)

    @property
    def predictive_p(self) -> float:
        """Share of the simulated SPAs at or below the observed one: near 0 the annotators agree less than expected."""
        return _share(self.predictive <= self.observed + _TIE)

    @property
    def two_sided_p(self) -> float:
        """Twice the smaller tail, at or beyond the observed SPA, which itself counts as simulated: never 0."""
        number = len(self.predictive)
        tail = min(self.predictive_p, _share(self.predictive >= self.observed - _TIE))
        return min(1.0, 2 * (number * tail + 1) / (number + 1)) if number else float("nan")

    @property
    def verdict(self) -> str:
        """Whether the model expects the observed agreement, in words; empty where nothing was simulated."""
        if not len(self.predictive):
            return ""
        (low, high), p = self.predictive_interval, self.two_sided_p
        numbers = f"observed {self.observed:.4f} ({self.scheme}), expected {low:.4f} to {high:.4f}, p = {p:.2g}"
        if p >= 1 - self.level:
            return f"The annotators agree as the model expects: {numbers}."
        if self.predictive_p > 0.5:
            return (
                f"The annotators agree more than the model expects: {numbers}. Its prior spreads plausibilities or "
                "annotators' errors too far, a reliability is too low, annotations are not independent, or how many "
                "annotations an item has depended on their agreement."
            )
        return (
            f"The annotators agree less than the model expects: {numbers}. Its prior makes plausibilities or "
            "annotators too sharp, a reliability is too high, or how many annotations an item has depended on their "
            "agreement."
        )

    @property
    def table(self) -> Any:
        """Data frame with one row an item: ``item, agreement, lower, upper``."""
        import pandas

        ids = np.arange(len(self.items)) if self.ids is None else self.ids
        columns = {"item": ids, "agreement": self.items, "lower": self.item_lower, "upper": self.item_upper}
        return pandas.DataFrame(columns)

    def row(self) -> dict[str, Any]:
        """Return the figures as one row of a table."""
        (low, high), expected = self.interval, self.predictive_interval
        return {
            "value": self.value, "sd": self.sd, "lower": low, "upper": high, "items": self.num_items,
            "weights": self.scheme, "observed": self.observed, "expected_lower": expected[0],
            "expected_upper": expected[1], "p": self.two_sided_p, "verdict": self.verdict,
        }  # fmt: skip

    def __repr__(self) -> str:
        text = f"Two annotators agree with probability {self.value:.4f}, as the posterior implies"
        if len(self.draws) > 1:
            low, high = self.interval
            text += f" ({100 * self.level:g} % of the draws in [{low:.4f}, {high:.4f}])"
        return f"{text}; {self.num_items:,} items, which count alike.\n{self.verdict}".rstrip()


def _interval(draws: np.ndarray, level: float) -> tuple[float, float]:
    if len(draws) < 2:
        return float("nan"), float("nan")
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _share(chosen: np.ndarray) -> float:
    return float(chosen.mean()) if len(chosen) else float("nan")


def posterior_agreement(
    truth: Truth,
    counts: LabelCounts | None = None,
    weight: WeightFunction | None = None,
    scheme: str = "annotations_m1",
    *,
    num_predictive: int = 200,
    seed: int = 0,
    level: float = 0.95,
) -> PosteriorAgreement:
    """Return how often two annotators agree as draws of the truth imply it, and check the model by the observed SPA.

    Parameters
    ----------
    truth : of plausibilities, or of labels that knows the errors of its annotators; a point estimate is a truth of one
        draw.
    counts : of the annotations that the model was fitted to, labels being the classes of the truth. None where reports
        are no single labels: then nothing is checked.
    weight : k(n) of SPA; by default that of the scheme. Weights that depend on the data are those of the observed data
        throughout.
    scheme : name of the weights.
    num_predictive : how many data sets to simulate. They take draws of the truth at equal distances, several times each
        where there are fewer.
    seed : of the simulation.
    level : of the intervals.

    Raises
    ------
    UnsupportedRequest : for a truth of labels without annotators' errors, or counts of other items or classes.
    UnknownName : for another scheme.
    """
    if counts is None:
        implied = _Implied(truth, np.ones(truth.num_items, bool), level)
        for block in truth.agreement():
            implied.add(block.items, np.asarray(block.values)[: block.num_items])
        return implied.result(truth.items)
    _require_same_sizes(truth, counts)
    if num_predictive < 0:
        raise UnsupportedRequest(f"num_predictive is {num_predictive}; give a whole number, 0 for no check")
    implied = _Implied(truth, counts.size > 0, level)
    pair_weight = _pair_weight(counts, weight or weight_function(scheme, counts))
    if isinstance(truth, LabelTruth):
        for block in truth.agreement():
            implied.add(block.items, np.asarray(block.values)[: block.num_items])
        total = _annotated_again(truth, counts, pair_weight, num_predictive, seed)
    else:
        predictive = _Predictive(truth.num_draws, counts.size, pair_weight, num_predictive, seed)
        for plausibilities in truth.plausibilities():
            items = plausibilities.items
            implied.add(items, np.asarray(plausibilities.agreement())[: items.stop - items.start])
            predictive.add(plausibilities)
        total = predictive.total
    if not pair_weight.any():
        return implied.result(truth.items, scheme=scheme)
    observed = float(pair_weight @ counts.pairs)
    return implied.result(truth.items, scheme=scheme, observed=observed, predictive=total)


def _annotated_again(
    truth: LabelTruth, counts: LabelCounts, pair_weight: np.ndarray, number: int, seed: int
) -> Float[np.ndarray, " replicate"]:
    """Let the annotators of the data label the items of each draw anew, and return SPA of what they say."""
    assert truth.crowd is not None  # or it would not have said how often annotators agree
    draws = np.arange(number) * truth.num_draws // number
    label = np.empty((number, truth.num_items), np.int32)
    for block in truth.labels():
        label[:, block.items] = np.asarray(block.values)[: block.num_items, draws].T
    random, (item, _, count) = np.random.default_rng(seed), counts.columns
    sizes = {"num_items": counts.num_items, "num_labels": counts.num_labels}
    again = (truth.crowd.annotate(random, int(draw), label[place]) for place, draw in enumerate(draws))
    return np.array([pair_weight @ LabelCounts.of_codes(item, given, count, **sizes).pairs for given in again])


def _require_same_sizes(truth: Truth, counts: LabelCounts) -> None:
    if (counts.num_items, counts.num_labels) != (truth.num_items, truth.num_classes):
        raise UnsupportedRequest(
            f"the annotations have {counts.num_items} items and {counts.num_labels} labels, the truth "
            f"{truth.num_items} and {truth.num_classes}; give the annotations that the model was fitted to"
        )


def _pair_weight(counts: LabelCounts, weight: WeightFunction) -> Float[np.ndarray, " item"]:
    """Return what an ordered pair of equal annotations of each item adds to SPA; 0 where there is no pair."""
    k = weight(counts.size)
    return np.divide(k, k.sum() * counts.size * (counts.size - 1.0), out=np.zeros(len(k)), where=k > 0)


class _Implied:
    """What each draw implies, summed over the blocks of one pass; ``counted`` says which items are in the mean."""

    def __init__(self, truth: Truth, counted: np.ndarray, level: float) -> None:
        self.counted, self.level = counted, level
        self.total = np.zeros(truth.num_draws)
        self.items, self.lower, self.upper = (np.full(truth.num_items, np.nan) for _ in range(3))

    def add(self, items: slice, agreement: Float[np.ndarray, "item draw"]) -> None:
        agreement = agreement.astype(float)
        self.total += agreement[self.counted[items]].sum(axis=0)
        self.items[items] = agreement.mean(axis=1)
        if agreement.shape[1] > 1:
            ends = [(1 - self.level) / 2, (1 + self.level) / 2]
            self.lower[items], self.upper[items] = np.quantile(agreement, ends, axis=1)

    def result(self, ids: Any, **check: Any) -> PosteriorAgreement:
        number = int(self.counted.sum())
        return PosteriorAgreement(
            items=self.items, item_lower=self.lower, item_upper=self.upper,
            draws=self.total / number if number else np.full(len(self.total), np.nan), num_items=number,
            level=self.level, ids=ids, **check,
        )  # fmt: skip


class _Predictive:
    """SPA of simulated annotations, summed over the blocks of one pass; ``total`` has shape ``(replicate,)``."""

    def __init__(self, num_draws: int, size: np.ndarray, pair_weight: np.ndarray, number: int, seed: int) -> None:
        self.size, self.pair_weight = size, pair_weight
        self.draws = np.arange(number) * num_draws // number
        self.random = np.random.default_rng(seed)
        self.total = np.zeros(number)

    def add(self, block: Plausibilities) -> None:
        weight = self.pair_weight[block.items]
        items = np.flatnonzero(weight)
        first = np.searchsorted(np.asarray(block.segment), np.arange(len(weight) + 1))
        entries = first[items], np.diff(first)[items]
        arrays = [np.asarray(values) for values in (block.named, block.other, block.other_agreement)]
        rows = max(1, _NUMBERS // max(len(values) for values in arrays))
        for start in range(0, len(self.draws), rows):
            here = slice(start, start + rows)
            named, other, other_agreement = (values[:, self.draws[here]].astype(float) for values in arrays)
            pairs = _agreeing_pairs(
                self.random, self.size[block.items][items], *entries, named, other[items], other_agreement[items]
            )
            self.total[here] += weight[items] @ pairs


def _agreeing_pairs(
    random: np.random.Generator,
    size: Int[np.ndarray, " item"],
    start: Int[np.ndarray, " item"],
    num_named: Int[np.ndarray, " item"],
    named: Float[np.ndarray, "entry draw"],
    other: Float[np.ndarray, "item draw"],
    other_agreement: Float[np.ndarray, "item draw"],
) -> Float[np.ndarray, "item draw"]:
    """Simulate annotations of items, of which the entries begin at ``start``, and count ordered pairs that agree."""
    # The number of a class, given those of the classes before it, is binomial: one class of every item at a time.
    places = [np.flatnonzero(num_named > place) for place in range(num_named.max(initial=0))]
    # The mass of a class and of all after it, summed from the last one on: differences from 1 would be rounding errors.
    rest, given = other.copy(), []
    for place, items in reversed(list(enumerate(places))):
        share = named[start[items] + place]
        rest[items] += share
        given.append(np.divide(share, rest[items], out=np.zeros_like(share), where=rest[items] > 0))
    left = np.repeat(size[:, None], other.shape[1], axis=1)
    pairs = np.zeros(other.shape)
    for items, probability in zip(places, reversed(given), strict=True):
        number = random.binomial(left[items], probability)
        left[items] -= number
        pairs[items] += number * (number - 1)
    return pairs + 2 * random.binomial(left * (left - 1) // 2, other_agreement)
