"""What `consilience.agreement` returns for annotations: the headline, how far to trust it, and the tables behind it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from consilience.data.annotations import Annotations
from consilience.errors import UnknownName, UnsupportedRequest
from consilience.evaluation.agreement.alpha import finite_numbers, krippendorff_alpha
from consilience.evaluation.agreement.alpha_of_others import alpha_interval, alpha_two_way_sd
from consilience.evaluation.agreement.annotators import TwoWay, annotator_table, pair_table, sharing_most, two_way_sd
from consilience.evaluation.agreement.chance import Coefficient
from consilience.evaluation.agreement.coefficients import coefficients
from consilience.evaluation.agreement.counts import LabelCounts, rows_of
from consilience.evaluation.agreement.jackknife import check_level, wilson_interval
from consilience.evaluation.agreement.monitoring import confidence_sequence, learning_curve
from consilience.evaluation.agreement.planning import Plan, plan
from consilience.evaluation.agreement.sparse_probability import (
    Dependence,
    SparseAgreement,
    dependence,
    sparse_agreement,
    specific_agreement,
)
from consilience.evaluation.agreement.weighting import (
    PAPER_SCHEMES,
    SCHEMES,
    WeightFunction,
    check_scheme,
    weight_function,
)
from consilience.notebook import html
from consilience.notes import Level, Note, Remedy

TABLES = ("schemes", "labels", "annotators", "pairs", "items", "coefficients", "curve", "monitor")
"""Names of the tables of an `Agreement`."""


# The standard error over annotators takes about a second for so many annotations.
_QUICKLY_SUMMED = 10**6

# Numbers of so many values that are equal in so small a share of pairs are measures, and no classes.
_MANY_VALUES, _SELDOM = 20, 0.05

# An interval cannot know a class that fewer items show.
_FEW_ITEMS = 5


class Agreement:
    """The agreement of annotators: the sparse probability of agreement (SPA) under one scheme, and all around it.

    Made by `consilience.agreement`. Everything beyond the headline is computed when it is asked for.

    Parameters
    ----------
    counts : LabelCounts
        Label counts of the items.
    annotations : Annotations, optional
        One row per annotation, in order of arrival; ``None`` where only counts are at hand.
    weights, annotators, shares, values, ordinal, level : str
        See `consilience.agreement`.
    told : dict[str, Any], optional
        For the page: the ``file``, where known, and the keywords that are not at their default.

    Examples
    --------
    >>> import consilience as cs
    >>> found = cs.agreement(cs.Annotations.from_counts([[3, 0], [1, 2]]))
    >>> round(found.value, 4)  # three pairs of three agree on the first item, and one of three on the second
    0.6667
    """

    def __init__(
        self,
        counts: LabelCounts,
        annotations: Annotations | None = None,
        *,
        weights: str = "annotations_m1",
        annotators: str = "fixed",
        shares: Any = None,
        values: Any = None,
        ordinal: bool = False,
        level: float = 0.95,
        told: Mapping[str, Any] | None = None,
    ) -> None:
        check_scheme(weights)
        if annotators not in ("fixed", "random"):
            raise UnsupportedRequest(f"annotators is {annotators!r}; give 'fixed' or 'random'")
        check_level(level)
        self.counts, self.annotations, self.weights, self.level = counts, annotations, weights, level
        self.annotators_random, self.told = annotators == "random", dict(told or {})
        self._shares, self._values, self._ordinal = shares, _checked_values(values, counts), ordinal
        if shares is not None and (weights != "inv_var_class" or np.shape(shares) != (counts.num_labels,)):
            raise UnsupportedRequest(
                f"shares are those of the {counts.num_labels} classes, one a label, for {{weights}}; leave them out "
                "for other weights", Remedy("weights", "inv_var_class"),
            )  # fmt: skip
        if self.annotators_random:
            self._identified("annotators='random'")

    # ---- the headline ----

    @property
    def value(self) -> float:
        """SPA under the chosen weights; NaN where no item has two annotations."""
        return self._estimate.value

    @property
    def sd(self) -> float:
        """Standard error: over items, or over items and annotators."""
        return self._estimate.sd

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson interval at the effective sample size."""
        return self._estimate.lower, self._estimate.upper

    @property
    def interval_of_others(self) -> tuple[float, float] | None:
        """The same for annotators like these, where it is known who gave each label, and it takes no time.

        None too where none of them can be left out, as of two.
        """
        if not self.annotators_random and not self._tells_annotators:
            return None
        other = copy.copy(self)
        other.annotators_random = True
        other.__dict__.pop("_estimate", None)  # of these annotators
        return other.interval if np.isfinite(other.interval).all() else None

    @cached_property
    def alpha_interval_of_others(self) -> tuple[float, float] | None:
        """The interval of nominal alpha for annotators like these, where `interval_of_others` is known too."""
        if not self._tells_annotators:
            return None
        both = alpha_two_way_sd(self.counts, self._identified("a standard error over annotators"))
        own = krippendorff_alpha(self.counts, level=self.level)
        low, high = alpha_interval(own.value, both.sd, min(self.num_usable, both.num_annotators), self.level)
        # No narrower than for these annotators, which the bootstrap knows better where labels are rare.
        return (min(low, own.lower), max(high, own.upper)) if np.isfinite([low, high]).all() else None

    @cached_property
    def flat(self) -> SparseAgreement:
        """SPA with equal weights, which needs no assumption on the number of annotations."""
        return self._of_scheme("flat")

    @cached_property
    def dependence(self) -> Dependence:
        """Whether the number of annotations of an item depends on their agreement; look before weights are used."""
        return dependence(self.counts)

    @cached_property
    def two_way(self) -> TwoWay:
        """Standard errors over items, over annotators, and over both."""
        return two_way_sd(self.counts, self._identified("a standard error over annotators"), self._weight(self.weights))

    @cached_property
    def num_usable(self) -> int:
        """How many items have two annotations or more."""
        return int((self.counts.size >= 2).sum())

    @cached_property
    def hardly_equal(self) -> bool:
        """Whether labels are numbers of many values that hardly ever are equal, so that SPA says nothing."""
        if not self.num_usable or self.counts.num_labels < _MANY_VALUES or self.flat.value > _SELDOM:
            return False
        return self._values is not None or _are_numbers(self.counts)

    @property
    def measured(self) -> bool:
        """Whether the labels stand for numbers, as the user said."""
        return self._values is not None

    @cached_property
    def alpha_of_numbers(self) -> Coefficient:
        """Krippendorff's alpha of the values that the labels stand for, on an interval scale."""
        return krippendorff_alpha(self.counts, "interval", self._values, self.level)

    # ---- tables ----

    @property
    def table(self) -> Any:
        """Data frame with one row an item: ``item, annotations, agreement, weight``."""
        size = self.counts.size
        columns = {
            "item": np.arange(len(size)), "annotations": size, "agreement": self.counts.agreement,
            "weight": self._weight(self.weights)(size.astype(float)),
        }  # fmt: skip
        return self._named(columns, item=self.counts.items)

    def schemes(self) -> Any:
        """Tabulate SPA under every weighting scheme: ``scheme, value, sd, lower, upper, effective_items``."""
        import pandas

        rows = [(scheme, *self._of_scheme(scheme)) for scheme in SCHEMES]
        return pandas.DataFrame(rows, columns=["scheme", "value", "sd", "lower", "upper", "effective_items"])

    def labels(self) -> Any:
        """Tabulate the specific agreement of each label: how often a second annotator gives it when a first one did.

        Columns ``label, annotations, share, agreement, sd, lower, upper``; intervals over items.
        """
        columns = specific_agreement(self.counts, self._weight(self.weights), self.level)
        return self._named(columns, label=self.counts.labels)

    def annotators(self) -> Any:
        """Tabulate how often each annotator agrees with the others of an item."""
        annotations = self._identified("the table of annotators")
        columns = annotator_table(self.counts, annotations, self.level)
        return self._named(columns, annotator=annotations.annotators)

    def pairs(self, most: int | None = None) -> Any:
        """Tabulate every two annotators with items in common: agreement, Cohen's kappa, Scott's pi.

        Parameters
        ----------
        most : int, optional
            Of so many annotators alone, who share most items with others; ``attrs["annotators"]`` then says how many
            share any.
        """
        annotations, number = self._identified("the table of pairs of annotators"), None
        if most is not None:
            chosen, number = sharing_most(annotations, most)
            annotations = rows_of(annotations, np.flatnonzero(np.isin(np.asarray(annotations.annotator), chosen)))
        names = annotations.annotators
        table = self._named(pair_table(annotations, self.level), annotator_a=names, annotator_b=names)
        if number is not None:
            table.attrs["annotators"] = number
        return table

    def items(self) -> Any:
        """Return the table of items; see ``table``."""
        return self.table

    def coefficients(self) -> Any:
        """Tabulate the classical coefficients.

        Columns ``coefficient, convention, value, sd, lower, upper, observed, expected``. All values are
        (observed - expected) / (1 - expected); standard errors and intervals are over items, for these annotators also
        where ``annotators`` is "random". Alpha on an interval or ratio scale needs ``values``, on an ordinal one values
        or an order. See also `notes`.
        """
        import pandas

        rows = coefficients(self.counts, self.annotations, self._values, self.level, ordinal=self._ordinal)
        return pandas.DataFrame(rows).rename(columns={"name": "coefficient"})

    @property
    def notes(self) -> tuple[Note, ...]:
        """What to know of the coefficients: that fewer than five items show another class than the most frequent."""
        item, label, _ = self.counts.entries
        rare = label != np.argmax(self.counts.label_totals) if len(label) else label > 0
        number, classes = (np.count_nonzero(np.bincount(codes[rare])) for codes in (item, label))
        if number >= _FEW_ITEMS or not self.num_usable or self.counts.num_labels < 2:
            return ()
        what = "a class" if classes < 2 else "classes"
        return (Note(Level.note, f"kappa and alpha depend on {what} that {number} items show"),)

    def curve(self, schemes: Sequence[str] = PAPER_SCHEMES[:4], num_points: int = 200) -> Any:
        """Tabulate SPA as annotations arrived, in the order of their rows.

        Columns ``num_annotations``, ``num_items`` (those with two annotations so far), and one for each scheme.
        """
        annotations = self._in_order("the learning curve")
        weights = {scheme: self._weight(scheme) for scheme in schemes}
        return self._named(learning_curve(annotations, weights, num_points))

    def monitor(self, tightest_at: int = 500, num_points: int = 200) -> Any:
        """Tabulate a confidence sequence over items in their order, valid however often one looks.

        Weights that are learnt from the data (`inv_var_class`, `exch`) are those of all data at every point: for a
        decision that is to be taken on the way, choose one of the others.

        Parameters
        ----------
        tightest_at : int, default 500
            The number of items at which the band is narrowest relative to a fixed-sample interval.
        num_points : int, default 200
            Rows of the table.
        """
        annotations = self._in_order("monitoring")
        weight = self._weight(self.weights)
        columns = confidence_sequence(annotations, weight, self.level, tightest_at, num_points)
        return self._named(columns)

    def plan(self, budget: int | None = None, width: float | None = None, per_item: int | None = None) -> Plan:
        """Say how to spend further annotations; see `planning.plan`."""
        return plan(self.counts, budget, width, per_item, self.level)

    def tabulate(self, name: str) -> Any:
        """Return a table by its name, one of `TABLES`."""
        if name not in TABLES:
            raise UnknownName(f"no table is called {name!r}; choose one of {', '.join(TABLES)}")
        return getattr(self, name)()

    def row(self) -> dict[str, Any]:
        """Return the headline as one row of a table."""
        low, high = self.interval
        return {
            "weights": self.weights, "value": self.value, "sd": self.sd, "lower": low, "upper": high,
            "annotators": "random" if self.annotators_random else "fixed", "usable_items": self.num_usable,
            "items": self.counts.num_items, "annotations": self.counts.num_annotations,
            "flat": self.flat.value, "flat_lower": self.flat.lower, "flat_upper": self.flat.upper,
            "dependence_z": self.dependence.z, "verdict": str(self.dependence),
        }  # fmt: skip

    def _repr_html_(self) -> str:
        return html(repr(self), (), self.schemes(), "Tables: labels(), annotators(), pairs(), items(), coefficients()")

    def __repr__(self) -> str:
        usable = f"{self.num_usable:,} of {self.counts.num_items:,} items have two annotations or more"
        if not self.num_usable:
            return f"sparse probability of agreement: undefined; {usable}"
        lines = [f"{self.weights}: {self._text(self._estimate)}"]
        if self.weights != "flat":
            lines.append(f"flat: {self._text(self.flat)}")
        whom = "annotators like these" if self.annotators_random else "these annotators"
        lines.append(f"{usable}; intervals for items like these and {whom}")
        if not self.annotators_random and (others := self.interval_of_others):
            ends = f"[{others[0]:.4f}, {others[1]:.4f}]"
            lines.append(f"for annotators like these {100 * self.level:.4g} % in {ends} (annotators='random')")
        return "\n".join([*self._before(), "sparse probability of agreement", *lines, str(self.dependence)])

    def _before(self) -> list[str]:
        """Say first how numbers agree that hardly ever are equal."""
        if not self.hardly_equal:
            return []
        told = f"the labels are numbers with {self.counts.num_labels:,} values, which hardly ever are equal: "
        if self._values is None:
            return [f"{told}values='labels' measures how far they are apart, by Krippendorff's alpha"]
        alpha = f"Krippendorff's alpha, interval scale: {self._text(self.alpha_of_numbers)}"
        return [alpha, f"{told}how often they are, which follows, says nothing of agreement"]

    @property
    def _tells_annotators(self) -> bool:
        """Whether a summary says what other annotators would change: where they are known, and it takes no time."""
        data = self.annotations
        known = data is not None and (np.asarray(data.annotator) >= 0).all()
        return bool(known) and self.counts.num_annotations <= _QUICKLY_SUMMED

    def _text(self, estimate: SparseAgreement | Coefficient) -> str:
        if np.isnan(estimate.sd):
            return f"{estimate.value:.4f}, no interval from so few items"
        ends = f"[{estimate.lower:.4f}, {estimate.upper:.4f}]"
        return f"{estimate.value:.4f} ± {estimate.sd:.4f}, {100 * self.level:.4g} % in {ends}"

    # ---- how it is computed ----

    @cached_property
    def _estimate(self) -> SparseAgreement:
        return self._of_scheme(self.weights)

    def _weight(self, scheme: str) -> WeightFunction:
        return weight_function(scheme, self.counts, self._shares)

    def _of_scheme(self, scheme: str) -> SparseAgreement:
        weight = self._weight(scheme)
        estimate = sparse_agreement(self.counts.patterns, weight, self.level)
        if not self.annotators_random or np.isnan(estimate.value):
            return estimate
        both = two_way_sd(self.counts, self._identified("a standard error over annotators"), weight)
        # The fewer of items and annotators limit what is known of the standard error.
        effective = min(estimate.effective, both.num_annotators)
        low, high = wilson_interval(estimate.value, both.sd, effective, self.level)
        return estimate._replace(sd=both.sd, lower=low, upper=high)

    def _in_order(self, what: str) -> Annotations:
        if self.annotations is None or (np.asarray(self.annotations.weight) != 1).any():
            raise UnsupportedRequest(
                f"{what} needs one row per annotation, in order of arrival; only counts are at hand"
            )
        return self.annotations

    def _identified(self, what: str) -> Annotations:
        if self.annotations is None or (np.asarray(self.annotations.annotator) < 0).any():
            raise UnsupportedRequest(f"{what} needs to know who gave each label; only counts are at hand")
        return self.annotations

    @staticmethod
    def _named(columns: dict[str, Any], **ids: Any) -> Any:
        """Make a data frame, with the user's ids in place of codes."""
        import pandas

        named = {name: np.asarray(names)[columns[name]] for name, names in ids.items() if names is not None}
        return pandas.DataFrame({**columns, **named})


def _checked_values(values: Any, counts: LabelCounts) -> np.ndarray | None:
    """Return the numbers that labels stand for, one a label."""
    if values is None:
        return None
    if isinstance(values, Mapping):
        values = _of_labels(values, counts)
    if isinstance(values, str):
        if values != "labels":
            raise UnsupportedRequest(f"values is {values!r}; give 'labels', or one number for each label")
        values = _numbers(counts)
    return finite_numbers(values, counts.num_labels)


def _of_labels(values: Mapping[Any, float], counts: LabelCounts) -> list[float]:
    """Bring numbers by label into the order of the labels."""
    labels = list(range(counts.num_labels) if counts.labels is None else counts.labels)
    if unknown := [name for name in values if name not in labels]:
        raise UnsupportedRequest(f"values names {unknown[0]!r}; the labels are {', '.join(map(str, labels))}")
    if missing := [str(label) for label in labels if label not in values]:
        raise UnsupportedRequest(f"values lacks {', '.join(missing)}; give a number for every label")
    return [values[label] for label in labels]


def _are_numbers(counts: LabelCounts) -> bool:
    """Return whether labels are finite numbers, as texts; codes without names are not."""
    try:
        return counts.labels is not None and bool(np.isfinite(_numbers(counts)).all())
    except UnsupportedRequest:
        return False


def _numbers(counts: LabelCounts) -> list[float]:
    names = range(counts.num_labels) if counts.labels is None else counts.labels
    try:
        return [float(name) for name in names]
    except ValueError:
        words = ", ".join(map(str, names[:5]))
        raise UnsupportedRequest(f"the labels are not numbers: {words}; give a number for each of them") from None
