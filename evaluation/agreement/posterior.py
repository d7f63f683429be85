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

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special

from consilience.arrays import Float, Int
from consilience.errors import UnsupportedRequest
from consilience.evaluation.adjustment import require_exact
from consilience.evaluation.agreement.counts import LabelCounts
from consilience.evaluation.agreement.weighting import SCHEME_WORDS, WeightFunction, weight_function
from consilience.models.intervals import ends
from consilience.models.truth import Ranked
from consilience.models.truth.classes import ClassTruth
from consilience.models.truth.plausibilities import Plausibilities
from consilience.models.truth.truth import Agreement, Block, Marginals, Shares
from consilience.rounding import within

# Numbers that a simulation holds at a time in each of its arrays.
_NUMBERS = 1 << 18

# Two values of SPA that differ by less are equal: the order of a sum may change the last digits.
_TIE = 1e-12

# Halvings of the interval in which a quantile of an item's agreement lies.
_BISECTIONS = 40


# What a prior may have wrong, of annotators who err and of plausibilities.
_TOO_FAR = {
    False: "The prior expects annotators to err more than they do",
    True: "The prior spreads plausibilities too far, the reliability is too low",
}
_TOO_SHARP = {
    False: "The prior expects annotators to err less than they do",
    True: "The prior makes plausibilities too sharp, the reliability is too high",
}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PosteriorAgreement:
    """The probability that two annotators agree, as draws of the truth imply it.

    Parameters
    ----------
    items : float64, shape ``(item,)``
        The mean over draws.
    draws : float64, shape ``(draw,)``
        The mean over items, which count alike. Where annotations are known, items without any are left out of it. Empty
        where it was computed in closed form.
    exact_value, exact_sd : float, optional
        Mean and standard deviation in closed form; None where they are those of the draws.
    bounds : callable, optional
        Makes the central intervals of single items.
    num_items : int
        How many items are in that mean.
    level : float, default 0.95
        Of the intervals.
    ids : sequence, optional
        The user's ids of the items, or None.
    scheme : str, optional
        Name of the weights of ``observed`` and ``predictive``, or None.
    observed : float, default nan
        SPA of the annotations. NaN where they are not known, or no item has two.
    predictive : float64, shape ``(replicate,)``
        SPA of as many simulated annotations. Empty where there is nothing to compare it to.
    checked : int, optional
        How many items ``observed`` and ``predictive`` are of, where they were taken at random; None for all.
    of_shares : bool
        Whether the model is of plausibilities that annotations are drawn by; else of annotators who err.

    Examples
    --------
    >>> import consilience as cs
    >>> fit = cs.fit("dirichlet", cs.Annotations.from_counts([[3, 0], [1, 2]]), draws=100)
    >>> found = cs.agreement(fit)
    >>> found.draws.shape, found.num_items
    ((100,), 2)
    >>> round(found.observed, 4)
    0.6667
    """

    items: np.ndarray
    draws: np.ndarray
    num_items: int
    level: float = 0.95
    ids: Any = None
    scheme: str | None = None
    observed: float = float("nan")
    predictive: np.ndarray = field(default_factory=lambda: np.zeros(0))
    checked: int | None = None
    of_shares: bool = False
    exact_value: float | None = None
    exact_sd: float | None = None
    bounds: Callable[[], tuple[np.ndarray, np.ndarray]] | None = None

    @property
    def value(self) -> float:
        """Mean over items and draws."""
        return float(self.draws.mean()) if self.exact_value is None else self.exact_value

    @property
    def sd(self) -> float:
        """Standard deviation over draws; NaN with a single one."""
        if self.exact_sd is not None:
            return self.exact_sd
        return float(np.std(self.draws, ddof=1)) if len(self.draws) > 1 else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """Central interval over draws, in closed form that of the normal law; NaN with a single draw."""
        if self.exact_sd is not None:
            width = float(special.ndtri((1 + self.level) / 2)) * self.exact_sd
            return max(self.value - width, 0.0), min(self.value + width, 1.0)
        return _interval(self.draws, self.level)

    @property
    def item_lower(self) -> Float[np.ndarray, " item"]:
        """Lower ends of the central intervals of items over draws; NaN with a single draw."""
        return self._bounds[0]

    @property
    def item_upper(self) -> Float[np.ndarray, " item"]:
        """Upper ends of the central intervals of items over draws; NaN with a single draw."""
        return self._bounds[1]

    @functools.cached_property
    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        unknown = np.full(len(self.items), np.nan)
        return (unknown, unknown) if self.bounds is None else self.bounds()

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
    def unexpected(self) -> bool:
        """Whether the observed SPA is beyond where the model expects it: `two_sided_p` below ``1 - level``, .05."""
        return bool(self.two_sided_p < 1 - self.level)

    @property
    def verdict(self) -> str:
        """Whether the model expects the observed agreement, in words; empty where nothing was simulated."""
        if not len(self.predictive):
            return ""
        (low, high), p = self.predictive_interval, self.two_sided_p
        observed, *expected = within(self.observed, low, high)
        how = SCHEME_WORDS.get(str(self.scheme), self.scheme)
        sign = "≤" if p <= 2 / (len(self.predictive) + 1) else "="  # no simulation is beyond what was observed
        numbers = f"observed {observed} ({how}), one set of new labels would show {' to '.join(expected)}"
        numbers += f", p {sign} {p:.2g}"
        if self.checked is not None:
            numbers += f", on {self.checked:,} items taken at random"
        if not self.unexpected:
            return f"The annotators agree as the model expects: {numbers}."
        if self.predictive_p > 0.5:
            return (
                f"The annotators agree more than the model expects: {numbers}. {_TOO_FAR[self.of_shares]}, annotations "
                "are not independent, or how many annotations an item has depended on their agreement."
            )
        return (
            f"The annotators agree less than the model expects: {numbers}. {_TOO_SHARP[self.of_shares]}, or how many "
            "annotations an item has depended on their agreement."
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
        value, low, high = within(self.value, *(self.interval if np.isfinite(self.sd) else (np.nan, np.nan)))
        text = f"By the fit, two annotators give the same label with probability {value}"
        if np.isfinite(self.sd):
            text += f" [{low}, {high}] ({100 * self.level:g} %)"
        return f"{text}; all {self.num_items:,} items count alike.\n{self.verdict}".rstrip()


def _interval(draws: np.ndarray, level: float) -> tuple[float, float]:
    if len(draws) < 2:
        return float("nan"), float("nan")
    low, high = np.quantile(draws, ends(level))
    return float(low), float(high)


def _share(chosen: np.ndarray) -> float:
    return float(chosen.mean()) if len(chosen) else float("nan")


def posterior_agreement(
    truth: ClassTruth,
    counts: LabelCounts | None = None,
    weight: WeightFunction | None = None,
    scheme: str = "annotations_m1",
    *,
    num_predictive: int = 200,
    most_simulated: int | None = None,
    seed: int = 0,
    level: float = 0.95,
    exact: bool | None = None,
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
    most_simulated : annotations, in all these data sets. Of more, where the truth is one label an item, the check is
        of some items taken at random; of all by default.
    seed : of the simulation.
    level : of the intervals.
    exact : by default in closed form where the truth has one; True refuses what has none; False takes draws.

    Raises
    ------
    UnsupportedRequest : for a truth of labels without annotators' errors, or counts of other items or classes.
    UnknownName : for another scheme.
    """
    if counts is not None:
        _require_same_sizes(truth, counts)
    if num_predictive < 0:
        raise UnsupportedRequest(f"num_predictive is {num_predictive}; give a whole number, 0 for no check")
    counted = np.ones(truth.num_units, bool) if counts is None else counts.size > 0
    found = truth.exact(Ranked(1)) if exact is not False and _knows_errors(truth) else None
    if exact:
        require_exact(found, "the agreement that this truth implies")
    implied: _Implied | _ExactlyImplied = _Implied(truth, counted, level)
    if found is not None:
        implied = _ExactlyImplied(truth, found, counted, level)
    ids = truth.ids.get("item")
    if counts is None:
        implied.go_through(truth.blocks(Agreement()))
        return implied.result(ids)
    pair_weight, check = _pair_weight(counts, weight or weight_function(scheme, counts)), dict[str, Any]()
    if truth.answers(Shares()):
        predictive = _Predictive(truth.num_draws, counts.size, pair_weight, num_predictive, seed)
        for block in truth.blocks(Shares()):
            implied.add(block.units, np.asarray(block.values.agreement())[: block.num_units])
            predictive.add(block.values)
        total, check["of_shares"] = predictive.total, True
    else:
        implied.go_through(truth.blocks(Agreement()))
        known = pair_weight.any() and _knows_errors(truth)
        part = _part(counts, pair_weight, num_predictive, most_simulated, seed) if known else None
        if part is not None:
            pair_weight = pair_weight * np.isin(np.arange(len(pair_weight)), part)
            pair_weight /= pair_weight @ (counts.size * (counts.size - 1.0))
            check["checked"] = len(part)
        total = _annotated_again(truth, counts, pair_weight, num_predictive, part, seed) if known else np.zeros(0)
    if not pair_weight.any():
        return implied.result(ids, scheme=scheme)
    observed = float(pair_weight @ counts.pairs)
    return implied.result(ids, scheme=scheme, observed=observed, predictive=total, **check)


def _knows_errors(truth: ClassTruth) -> bool:
    """Return whether it is known how two annotators err."""
    return truth.crowd is not None and truth.crowd.agrees


def _part(
    counts: LabelCounts, pair_weight: np.ndarray, number: int, most: int | None, seed: int
) -> Int[np.ndarray, " chosen"] | None:
    """Choose as many items with pairs as may be simulated; None for all items."""
    rows = len(counts.columns[0])
    if most is None or rows * number <= most:
        return None
    with_pairs = np.flatnonzero(pair_weight)
    amount = max(1, len(with_pairs) * most // (rows * number))
    return np.sort(np.random.default_rng([seed, 1]).choice(with_pairs, amount, replace=False))


def _annotated_again(
    truth: Any, counts: LabelCounts, pair_weight: np.ndarray, number: int, part: np.ndarray | None, seed: int
) -> Float[np.ndarray, " replicate"]:
    """Let the annotators of the data label the items of each draw anew, and return SPA of what they say."""
    draws = np.arange(number) * truth.num_draws // number
    random, (item, _, count) = np.random.default_rng(seed), counts.columns
    num_items, label = counts.num_items, truth.labels_of(draws, part)
    rows: Any = slice(None)
    if part is not None:
        place, full = np.full(num_items, -1), np.zeros(num_items, label.dtype)
        place[part] = np.arange(len(part))
        rows = np.flatnonzero(place[item] >= 0)
        item, count, num_items = place[item[rows]], None if count is None else count[rows], len(part)
        pair_weight = pair_weight[part]
    found = np.empty(number)
    for replicate, draw in enumerate(draws):
        labels = label[replicate]
        if part is not None:
            full[part] = labels
            labels = full
        given = truth.crowd.annotate(random, int(draw), labels, rows)
        again = LabelCounts.of_codes(item, given, count, num_items=num_items, num_labels=counts.num_labels)
        found[replicate] = pair_weight @ again.pairs
    return found


def _require_same_sizes(truth: ClassTruth, counts: LabelCounts) -> None:
    if (counts.num_items, counts.num_labels) != (truth.num_units, truth.num_classes):
        raise UnsupportedRequest(
            f"the annotations have {counts.num_items} items and {counts.num_labels} labels, the truth "
            f"{truth.num_units} and {truth.num_classes}; give the annotations that the model was fitted to"
        )


def _pair_weight(counts: LabelCounts, weight: WeightFunction) -> Float[np.ndarray, " item"]:
    """Return what an ordered pair of equal annotations of each item adds to SPA; 0 where there is no pair."""
    k = weight(counts.size)
    return np.divide(k, k.sum() * counts.size * (counts.size - 1.0), out=np.zeros(len(k)), where=k > 0)


class _Implied:
    """What each draw implies, summed over the blocks of one pass; ``counted`` says which items are in the mean."""

    def __init__(self, truth: ClassTruth, counted: np.ndarray, level: float) -> None:
        self.counted, self.level = counted, level
        self.total = np.zeros(truth.num_draws)
        self.items, self.lower, self.upper = (np.full(truth.num_units, np.nan) for _ in range(3))

    def go_through(self, blocks: Iterator[Block]) -> None:
        """Take in all blocks."""
        for block in blocks:
            self.add(block.units, block.real)

    def add(self, items: slice, agreement: Float[np.ndarray, "item draw"]) -> None:
        """Take in the agreement of some items."""
        agreement = agreement.astype(float)
        self.total += agreement[self.counted[items]].sum(axis=0)
        self.items[items] = agreement.mean(axis=1)
        if agreement.shape[1] > 1:
            self.lower[items], self.upper[items] = np.quantile(agreement, ends(self.level), axis=1)

    def result(self, ids: Any, **check: Any) -> PosteriorAgreement:
        """Return what was found."""
        number = int(self.counted.sum())
        return PosteriorAgreement(
            items=self.items, bounds=lambda: (self.lower, self.upper),
            draws=self.total / number if number else np.full(len(self.total), np.nan), num_items=number,
            level=self.level, ids=ids, **check,
        )  # fmt: skip


class _ExactlyImplied(_Implied):
    r"""The same in closed form, of independent labels whose probabilities r are known.

    With the agreement :math:`a^m_k` of draw m by class, independent of the labels, the mean over I items has the mean
    :math:`\mathrm{mean}_m \sum_i r_i \cdot a^m / I` and the variance
    :math:`\mathrm{Var}_m(\sum_i r_i \cdot a^m / I) + \sum_i [r_i \cdot \mathrm{diag}(A) - r_i^T A r_i] / I^2`,
    :math:`A_{kl} = \mathrm{mean}_m a^m_k a^m_l`. Where the crowd knows the moments of its agreement, they stand for
    the draws.
    """

    def __init__(self, truth: ClassTruth, found: Marginals, counted: np.ndarray, level: float) -> None:
        assert truth.crowd is not None
        self.counted, self.level, self.first = counted, level, found.first
        self.unit, self.probability = found.unit, found.probability
        self.crowd, self.column = truth.crowd, truth.crowd.column(self.unit, found.code)

    def go_through(self, blocks: Iterator[Block]) -> None:
        """Leave the draws alone."""

    def result(self, ids: Any, **check: Any) -> PosteriorAgreement:
        """Return what follows."""
        number, counts = int(self.counted.sum()), self.probability * self.counted[self.unit]
        items, mean, between, within = (self._by_moments if self.crowd.moments else self._by_draws)(counts)
        sd = float(np.sqrt(between + max(within, 0.0)) / max(number, 1))
        return PosteriorAgreement(
            items=items, draws=np.empty(0), num_items=number, level=self.level, ids=ids, bounds=self._bounds,
            exact_value=mean / number if number else float("nan"), exact_sd=sd, **check,
        )  # fmt: skip

    def _by_moments(self, counts: np.ndarray) -> tuple[np.ndarray, float, float, float]:
        """Return items, the sum over those that count, and what crowd and labels add to its variance."""
        assert self.crowd.moments is not None
        mean, variance = self.crowd.moments()
        items = np.bincount(self.unit, self.probability * mean[self.column], len(self.counted))
        amount = np.bincount(self.column, counts, len(mean))
        within = float(amount @ (mean**2 + variance) - np.square(items[self.counted]).sum())
        within -= float(np.square(counts) @ variance[self.column])
        return items, float(amount @ mean), float(amount**2 @ variance), within

    def _by_draws(self, counts: np.ndarray) -> tuple[np.ndarray, float, float, float]:
        """Return the same, from the draws of the crowd."""
        num_items, agreement = len(self.counted), self.crowd.agreement
        items = np.bincount(self.unit, self.probability * agreement.mean(axis=0)[self.column], num_items)
        of_draws = agreement @ np.bincount(self.column, counts, agreement.shape[1])
        between = float(np.var(of_draws, ddof=1)) if len(of_draws) > 1 else 0.0
        within = float(counts @ np.square(agreement).mean(axis=0)[self.column])
        # A = BᵀB with few rows in B, those of the singular values: r A r is the sum of the squares of B r.
        _, size, row = np.linalg.svd(agreement / np.sqrt(len(agreement)), full_matrices=False)
        for value, weights in zip(size, row, strict=True):
            if value > 1e-14 * size[0]:
                of_items = np.bincount(self.unit, counts * value * weights[self.column], num_items)
                within -= float(np.square(of_items).sum())
        return items, float(of_draws.mean()), between, within

    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return quantiles of the agreement of each item, a mixture over draws and labels."""
        ordered = np.sort(self.crowd.agreement, axis=0)
        used, place = np.unique(self.column, return_inverse=True)
        found = []
        for level in ends(self.level):
            low, high = np.full(len(self.counted), ordered.min()), np.full(len(self.counted), ordered.max())
            for _ in range(_BISECTIONS):
                middle = (low + high) / 2
                below = np.empty(len(place))
                wanted = middle[self.unit]
                for number, column in enumerate(used):
                    own = place == number
                    below[own] = np.searchsorted(ordered[:, column], wanted[own], side="right")
                reached = np.bincount(self.unit, self.probability * below, len(low)) >= level * len(ordered)
                low, high = np.where(reached, low, middle), np.where(reached, middle, high)
            found.append(high)
        return found[0], found[1]


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
