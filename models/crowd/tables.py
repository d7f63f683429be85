"""Tables of a fitted crowd: labels, and who is reliable at what; written once over any channel.

**Intervals** are central. Of draws they are quantiles. Coordinate ascent takes labels and parameters for independent,
and its own intervals are too narrow: here labels are drawn from what it ended with and parameters given these labels,
200 times (imputation), which is wider, and still somewhat too narrow where data are few; those of ``method="gibbs"``
allow for more. Accuracies by `dawid-skene` are of two models, see `pooled`. The estimate of EM has none.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from scipy.sparse import csr_array

from consilience.arrays import Array, Float, Int
from consilience.data.annotations import Annotations
from consilience.errors import TooLarge
from consilience.models.crowd.agreement import ParametersOf, Quantity, annotation_counts, average_of, of_logs, rows_of
from consilience.models.crowd.channel import Channel
from consilience.models.crowd.gate import signal
from consilience.models.crowd.groups import counted_by_group
from consilience.models.crowd.imputation import Imputation
from consilience.models.crowd.own_labels import counted_accuracy, realised_accuracy
from consilience.models.crowd.pairs import annotator_pairs
from consilience.models.crowd.simplices import Tree
from consilience.models.crowd.votes import MOST_NUMBERS
from consilience.models.gold import GOLD_COLUMNS, gold_record
from consilience.models.interface import Column, Measure, Table
from consilience.models.intervals import LEVEL, ends
from consilience.models.keys import any_key
from consilience.models.label_tables import INTERVAL, LABELS, PROBABILITIES
from consilience.models.posterior import Interval, Posterior
from consilience.models.rows import numpy_of, padded_size, repeated_rows
from consilience.models.sites import Resolved
from consilience.models.truth.labels import LabelTruth
from consilience.notes import Remedy

_IMPUTATIONS = 200
# Numbers of imputed tables that are held at a time: 2^24 in float64 are 128 MiB.
_MOST_NUMBERS = 1 << 24
# Rows of a table of confusion matrices: more are gigabytes that nobody reads.
_MOST_ROWS = 1 << 25

Accuracy = Callable[["Asked", Interval], Interval]

# ---- quantities of annotators


def right_of(evidence: Any, log_prevalence: Any, prevalence: Any) -> Float[Array, " annotator"]:
    """Return how often each annotator is right on an item drawn by the prevalence: that of the draw where there is."""
    right, share = evidence.right(), prevalence if log_prevalence is None else _prevalence(evidence, log_prevalence)
    return right @ share.astype(right.dtype)


def _prevalence(evidence: Any, log_prevalence: Any) -> Float[Array, " class"]:
    return numpy_of(log_prevalence).exp(log_prevalence)


class Asked:
    """What the tables of a fit are made of.

    Parameters
    ----------
    parameters_of : makes the parameters of a fit, with their channel.
    posterior, resolved, truth : of the fit.
    level : probability of intervals.
    """

    def __init__(
        self, parameters_of: ParametersOf, posterior: Posterior, resolved: Resolved, truth: LabelTruth,
        level: float = LEVEL,
    ) -> None:  # fmt: skip
        self.posterior, self.resolved, self.truth = posterior, resolved, truth
        self.level, self.data = level, resolved.data
        self.key = any_key()  # of imputations: a table is the same whenever it is asked for
        self.parameters = parameters_of(posterior, resolved, self.key, _IMPUTATIONS)

    @property
    def prevalence(self) -> Float[np.ndarray, " class"]:
        """How frequent each label is among the items, as if annotators erred independently."""
        return np.asarray(self.truth.untempered).mean(axis=0)

    def summary(self, quantity: Quantity, *given: Any, numbers: int = 1) -> Interval:
        """Return mean and interval of a quantity that is linear in each simplex; see the module on intervals.

        Of a quantity of so many numbers that draws of it would not fit, there is no interval.
        """
        too_many = numbers * _IMPUTATIONS > MOST_NUMBERS
        if self.posterior.form == "estimate" or too_many or not self.parameters.has_intervals:
            mean = np.asarray(self.parameters.mean(quantity, *given), float)
            unknown = np.full(mean.shape, np.nan)
            return Interval(mean, unknown, unknown, unknown)
        draws = self._imputed(quantity, given) if self.parameters.is_closed else self.parameters.over(quantity, *given)
        draws = np.asarray(draws, float)
        stored = self.posterior.form == "draws"
        mean = draws.mean(axis=0) if stored else np.asarray(self.parameters.mean(quantity, *given))
        lower, upper = np.quantile(draws, ends(self.level), axis=0)
        return Interval(mean, draws.std(axis=0), np.minimum(lower, mean), np.maximum(upper, mean))

    def rows(self, annotators: Int[np.ndarray, " chosen"]) -> Interval:
        """Return the probabilities of labels by annotator and class, some annotators at a time."""
        each = self.data.num_labels**2
        size = max(_MOST_NUMBERS // (_IMPUTATIONS * each), 1)
        padded = len(annotators)
        if not (self.parameters.is_dense and self.parameters.is_closed):  # programs are of a size
            padded = padded_size(padded, min(size, self.parameters.num_annotators))
        chosen = repeated_rows(annotators, padded) if len(annotators) else annotators
        starts = range(0, len(annotators), size)
        parts = [self.summary(rows_of, chosen[start : start + size], numbers=each) for start in starts]
        if not parts:
            return Interval(*(np.zeros((0, self.data.num_labels, self.data.num_labels)) for _ in Interval._fields))
        return Interval(*(np.concatenate(part)[: len(annotators)] for part in zip(*parts, strict=True)))

    def _imputed(self, quantity: Quantity, given: tuple) -> np.ndarray:
        """Return a quantity of imputed parameters, ``(draw, …)``."""
        fixed = self.parameters.channel, quantity, self.data.num_labels
        numbers = sum(np.size(own) for own in self.parameters.concentrations.values())
        block = max(min(_MOST_NUMBERS // max(numbers, 1), _IMPUTATIONS), 1)
        trees = (self._imputations(start, block) for start in range(0, _IMPUTATIONS, block))
        of_trees = _of_trees_on_host if self.parameters.is_dense else _of_trees
        return np.concatenate([np.asarray(of_trees(*fixed, tree, given)) for tree in trees])

    def _imputations(self, start: int, number: int) -> Tree:
        """Return parameters drawn given labels that were drawn, ``(draw, …)``; all of them are kept with the truth."""
        if self.truth in _ALL_IMPUTATIONS:
            return _ALL_IMPUTATIONS[self.truth]
        found = self._imputation.trees(start, number)
        if number == _IMPUTATIONS:
            _ALL_IMPUTATIONS[self.truth] = found
        return found

    @functools.cached_property
    def _imputation(self) -> Imputation:
        parameters, data = self.parameters, counted_by_group(self.resolved).data
        probability = np.asarray(self.truth.untempered)
        return Imputation(
            parameters.channel, parameters.concentrations, data, probability, parameters.is_dense, self.key
        )  # fmt: skip


# Several tables of a fit are made of the same imputations.
_ALL_IMPUTATIONS: weakref.WeakKeyDictionary[LabelTruth, Tree] = weakref.WeakKeyDictionary()


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _of_trees(channel: Channel, quantity: Quantity, num_labels: int, trees: Tree, given: tuple) -> Any:
    return jax.vmap(lambda logs: of_logs(channel, quantity, num_labels, logs, given))(trees)


def _of_trees_on_host(channel: Channel, quantity: Quantity, num_labels: int, trees: Tree, given: tuple) -> Any:
    each = (dict(zip(trees, own, strict=True)) for own in zip(*trees.values(), strict=True))
    return np.stack([of_logs(channel, quantity, num_labels, logs, given) for logs in each])


# ---- tables of annotators


def annotators_table(
    parameters_of: ParametersOf, extra: Callable[[Asked], dict[str, np.ndarray]] | None = None,
    accuracy: Accuracy | None = None,
) -> Callable:  # fmt: skip
    """Return the ``make`` of the table of annotators; see `tables_of`."""

    def annotators(
        posterior: Posterior, resolved: Resolved, truth: LabelTruth, level: float = LEVEL
    ) -> dict[str, np.ndarray]:
        """Return how much each annotator annotated, how reliable she is, and how often she was right on her items.

        Parameters
        ----------
        level : probability of the intervals.
        """
        asked, data = Asked(parameters_of, posterior, resolved, truth, level), resolved.data
        share, share_lower, share_upper = realised_accuracy(truth, data, level)
        if asked.parameters.is_listed:
            found = counted_accuracy(np.asarray(truth.untempered), data, level)
        else:
            every = asked.summary(right_of, asked.prevalence)
            found = Interval(*(values[: data.num_annotators] for values in every))
            found = found if accuracy is None else accuracy(asked, found)
        return {
            "annotator": np.arange(data.num_annotators), "annotations": annotation_counts(data),
            "accuracy": found.mean, "lower": found.lower, "upper": found.upper,
            "share_right": share, "share_lower": share_lower, "share_upper": share_upper,
            "agreement_z": signal(data).annotator_z, **gold_record(data), **({} if extra is None else extra(asked)),
        }  # fmt: skip

    return annotators


def _require_few(size: int, what_helps: str = "", *remedies: Remedy) -> None:
    if size > _MOST_ROWS:
        raise TooLarge(f"the table has {size:,} rows, which is too many{what_helps}", *remedies)


def _confusion_table(parameters_of: ParametersOf) -> Callable:
    def confusion(
        posterior: Posterior, resolved: Resolved, truth: LabelTruth,
        annotators: Int[np.ndarray, " chosen"] | None = None, level: float = LEVEL,
    ) -> dict[str, np.ndarray]:  # fmt: skip
        """Return how probably an annotator gives an item of a class a label.

        ``annotations`` is how many items of the class she is expected to have annotated: where it is zero, the row is
        the prior, and of EM, which has none, uniform. Of very many labels, those that occur are listed.

        Parameters
        ----------
        annotators : codes of those to tabulate; all by default.
        level : probability of the intervals.
        """
        asked, data = Asked(parameters_of, posterior, resolved, truth, level), resolved.data
        chosen = np.arange(data.num_annotators) if annotators is None else np.asarray(annotators)
        if (occurring := asked.parameters.confusion(chosen)) is not None:
            number = _annotations_by_class(data, np.asarray(truth.untempered), annotators)
            return {**occurring, "annotations": number[occurring["annotator"], occurring["true_label"]]}
        what_helps = "; choose fewer annotators by {annotators}", Remedy("annotators")
        _require_few(len(chosen) * data.num_labels**2, *what_helps)
        found = asked.rows(chosen)
        place, class_, label = np.indices(found.mean.shape).reshape(3, -1)
        number = _annotations_by_class(data, np.asarray(truth.untempered), annotators)[chosen[place], class_]
        columns = {"probability": found.mean, "lower": found.lower, "upper": found.upper}
        codes = {"annotator": chosen[place], "true_label": class_, "label": label, "annotations": number}
        return codes | {name: values.ravel() for name, values in columns.items()}

    return confusion


def _crowd_table(parameters_of: ParametersOf) -> Callable:
    def crowd(
        posterior: Posterior, resolved: Resolved, truth: LabelTruth, level: float = LEVEL
    ) -> dict[str, np.ndarray]:
        r"""Return how the crowd as a whole labels items of each class.

        That is :math:`\sum_j s_j p_j(l \mid t)` with :math:`s_j` the parts of all annotations. The column
        ``annotations`` is how many annotations are expected to be of items of the class.
        """
        asked, data = Asked(parameters_of, posterior, resolved, truth, level), resolved.data
        of_items = np.bincount(np.asarray(data.item), np.asarray(data.weight, float), data.num_items)
        number = of_items @ np.asarray(truth.untempered)
        if (occurring := asked.parameters.crowd(asked.parameters.share)) is not None:
            return {**occurring, "annotations": number[occurring["true_label"]]}
        _require_few(data.num_labels**2)
        found = asked.summary(average_of, asked.parameters.share, numbers=data.num_labels**2)
        class_, label = np.indices(found.mean.shape).reshape(2, -1)
        columns = {"probability": found.mean, "lower": found.lower, "upper": found.upper}
        codes = {"true_label": class_, "label": label, "annotations": number[class_]}
        return codes | {name: values.ravel() for name, values in columns.items()}

    return crowd


def _prevalence_table(parameters_of: ParametersOf) -> Callable:
    def prevalence(
        posterior: Posterior, resolved: Resolved, truth: LabelTruth, level: float = LEVEL
    ) -> dict[str, np.ndarray]:
        """Return the shares of the classes; where the model does not learn them, those of the labels of the items."""
        asked = Asked(parameters_of, posterior, resolved, truth, level)
        number = resolved.data.num_labels
        found = Interval(asked.prevalence, *(np.full(number, np.nan) for _ in range(3)))
        if resolved.settings.learns_prevalence:
            found = asked.summary(_prevalence)
        return {"label": np.arange(number), "share": found.mean, "lower": found.lower, "upper": found.upper}

    return prevalence


def _bias_table(parameters_of: ParametersOf) -> Callable:
    def bias(posterior: Posterior, resolved: Resolved, truth: LabelTruth) -> dict[str, np.ndarray]:
        """Return how much more often each annotator gives each label than her items have it."""
        data = resolved.data
        columns = (np.asarray(column) for column in (data.item, data.annotator, data.label, data.weight))
        item, annotator, label, weight = columns
        shape = data.num_annotators, data.num_labels
        cell = annotator.astype(np.int64) * data.num_labels + label
        given = np.bincount(cell, weight, data.num_annotators * data.num_labels).reshape(shape)
        number = np.where(given.sum(axis=1) > 0, given.sum(axis=1), np.nan)[:, None]
        expected = _annotations_by_class(data, np.asarray(truth.untempered), None) / number
        who, code = np.indices(shape).reshape(2, -1)
        return {
            "annotator": who, "label": code, "given": (given / number).ravel(), "expected": expected.ravel(),
            "bias": (given / number - expected).ravel(),
        }  # fmt: skip

    return bias


def pairs_table(parameters_of: ParametersOf) -> Callable:
    """Return the ``make`` of the table of pairs of annotators."""

    def pairs(posterior: Posterior, resolved: Resolved, truth: LabelTruth) -> dict[str, np.ndarray]:
        """Return pairs of annotators with what they agree and what the model expects, the largest |z| first."""
        parameters = parameters_of(posterior, resolved, any_key(), _IMPUTATIONS)
        return annotator_pairs(resolved.data, np.asarray(truth.untempered), parameters.agreement())

    return pairs


def _annotations_by_class(
    data: Annotations, probability: Float[np.ndarray, "item class"], chosen: Int[np.ndarray, " chosen"] | None
) -> Float[np.ndarray, "annotator class"]:
    """Return the expected numbers of annotations; zeros of annotators who are not chosen. None chooses all."""
    rows = slice(None) if chosen is None else np.flatnonzero(np.isin(data.annotator, chosen))
    item, annotator, weight = (np.asarray(column)[rows] for column in (data.item, data.annotator, data.weight))
    return csr_array((weight, (annotator, item)), shape=(data.num_annotators, data.num_items)) @ probability


GROUPINGS = Measure(
    name="groupings", help="How well all is explained if two of up to 10 annotators share a source.",
    place="consilience.groupings:groupings",
    columns=(
        Column("annotator_a", "annotator"), Column("annotator_b", "annotator"),
        Column("worst_z", help="largest |z| of all other pairs, the two counting as one"),
        Column("log_score", help="on gold labels, in nats"),
        Column("right", help="share of gold labels that are hit"),
    ),
)  # fmt: skip
"""Which annotators may share a source; a pair at a time."""


def tables_of(
    parameters_of: ParametersOf, extra: Callable[[Asked], dict[str, np.ndarray]] | None = None,
    extra_columns: tuple[Column, ...] = (), accuracy: Accuracy | None = None,
) -> tuple[Table | Measure, ...]:  # fmt: skip
    """Return the tables that every crowd has.

    Parameters
    ----------
    parameters_of : makes the parameters of a fit.
    extra, extra_columns : further columns of the table of annotators, and the function that makes them.
    accuracy : what to say of accuracies, of what the fit itself says of them.
    """
    return (
        LABELS,
        PROBABILITIES,
        Table(
            name="annotators", help="How reliable each annotator is, and how often she was right on her own items.",
            make=annotators_table(parameters_of, extra, accuracy),
            columns=(
                Column("annotator", "annotator"), Column("annotations", help="sum of weights"),
                Column("accuracy", help="share of right labels on items drawn by the prevalence"), *INTERVAL,
                Column("share_right", help="share of her own labels that equal the truth"),
                Column("share_lower", help="end of its central interval"), Column("share_upper", help="its other end"),
                Column("agreement_z", help="agreement with others beyond chance, in standard errors"),
                *GOLD_COLUMNS, *extra_columns,
            ),
        ),
        Table(
            name="confusion", help="How probably an annotator gives an item of a class a label.",
            make=_confusion_table(parameters_of),
            columns=(
                Column("annotator", "annotator"), Column("true_label", "class"), Column("label", "class"),
                Column("annotations", help="items of the class that she is expected to have annotated"),
                Column("probability", help="of the label"), *INTERVAL,
            ),
        ),
        Table(
            name="crowd", help="How the crowd as a whole labels items of each class.", make=_crowd_table(parameters_of),
            columns=(
                Column("true_label", "class"), Column("label", "class"),
                Column("annotations", help="expected number of annotations of items of the class"),
                Column("probability", help="of the label"), *INTERVAL,
            ),
        ),
        Table(
            name="prevalence", help="The shares of the classes among items.", make=_prevalence_table(parameters_of),
            columns=(Column("label", "class"), Column("share", help="of the items"), *INTERVAL),
        ),
        Table(
            name="bias", help="How much more often each annotator gives each label than her items have it.",
            make=_bias_table(parameters_of),
            columns=(
                Column("annotator", "annotator"), Column("label", "class"), Column("given", help="share of her labels"),
                Column("expected", help="share of her items that have it"), Column("bias", help="given less expected"),
            ),
        ),
        Table(
            name="annotator_pairs", help="How often two annotators agree, and how often the model expects them to.",
            make=pairs_table(parameters_of),
            columns=(
                Column("annotator_a", "annotator"), Column("annotator_b", "annotator"),
                Column("items", help="that both labelled"), Column("agreement", help="observed, a share"),
                Column("expected", help="by the model"), Column("excess", help="agreement less expected"),
                Column("z", help="the excess in standard errors"),
            ),
        ),
        GROUPINGS,
    )  # fmt: skip
