"""Tables of a Dawid-Skene fit: who is reliable at what, with central 95 % intervals; the estimate of EM has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from consilience.arrays import Float, Int
from consilience.data.annotations import Annotations
from consilience.models.crowds import INTERVAL, LABELS, PROBABILITIES, annotation_counts, annotation_shares
from consilience.models.interface import Column, Table
from consilience.models.posterior import Interval, Posterior, beta_of_moments
from consilience.models.sites import Resolved
from consilience.models.truth.labels import LabelTruth


def annotators(posterior: Posterior, resolved: Resolved, truth: LabelTruth) -> dict[str, np.ndarray]:
    """Table of how much each annotator annotated, and how often she is right on an item drawn by the prevalence."""
    data = resolved.data
    found = accuracy(posterior)
    return {
        "annotator": np.arange(data.num_annotators), "annotations": annotation_counts(data),
        "accuracy": found.mean, "lower": found.lower, "upper": found.upper,
    }  # fmt: skip


def confusion(
    posterior: Posterior, resolved: Resolved, truth: LabelTruth, annotators: Int[np.ndarray, " chosen"] | None = None
) -> dict[str, np.ndarray]:
    """Table of confusion matrices: how probably the annotator gives an item of the class the label.

    ``annotations`` is how many items of the class she is expected to have annotated: where it is zero, the row is the
    prior, and of EM, which has none, uniform.

    Parameters
    ----------
    annotators : codes of those to tabulate; all by default.
    """
    data = resolved.data
    chosen = np.arange(data.num_annotators) if annotators is None else np.asarray(annotators)
    found = posterior.summary("confusion", where=chosen)
    place, class_, label = np.indices(found.mean.shape).reshape(3, -1)
    number = _annotations_by_class(data, truth, annotators)[chosen[place], class_]
    columns = {"probability": found.mean, "lower": found.lower, "upper": found.upper}
    codes = {"annotator": chosen[place], "class": class_, "label": label, "annotations": number}
    return codes | {name: values.ravel() for name, values in columns.items()}


def crowd(posterior: Posterior, resolved: Resolved, truth: LabelTruth) -> dict[str, np.ndarray]:
    r"""Table of how the crowd as a whole labels items of each class, :math:`\sum_j s_j \Theta_{jtl}`, s_j parts of all.

    ``annotations`` is how many annotations are expected to be of items of the class. Of the closed form, mean and
    variance are exact, and the interval is that of the Beta distribution that has them.
    """
    data = resolved.data
    share = annotation_shares(data)
    if posterior.form == "closed":
        rows = np.asarray(posterior.confusion, float)
        total = rows.sum(axis=-1, keepdims=True)
        each = rows / total
        mean = np.tensordot(share, each, 1)
        found = beta_of_moments(mean, np.tensordot(share**2, each * (1 - each) / (total + 1), 1))
    else:
        found = posterior.summary(lambda draws: np.tensordot(draws["confusion"], share, ([1], [0])))
    class_, label = np.indices(found.mean.shape).reshape(2, -1)
    of_items = np.bincount(np.asarray(data.item), np.asarray(data.weight, float), data.num_items)
    number = (of_items @ _label_probabilities(truth))[class_]
    columns = {"probability": found.mean, "lower": found.lower, "upper": found.upper}
    codes = {"class": class_, "label": label, "annotations": number}
    return codes | {name: values.ravel() for name, values in columns.items()}


def prevalence(posterior: Posterior, resolved: Resolved, truth: LabelTruth) -> dict[str, np.ndarray]:
    """Table of the shares of the classes among items."""
    found = posterior.summary("prevalence")
    return {
        "label": np.arange(resolved.data.num_labels), "share": found.mean, "lower": found.lower, "upper": found.upper
    }


def accuracy(posterior: Posterior) -> Interval:
    r"""Return mean and interval of :math:`\sum_t p_t \Theta_{jtt}`, each float64 of shape ``(annotator,)``.

    Under CAVI mean and variance are exact, and the interval is that of the Beta distribution that has them.
    """
    if posterior.form != "closed":
        return posterior.summary(_accuracy_of_draws)
    first, second = _moments(np.asarray(posterior.prevalence, float))
    rows = np.asarray(posterior.confusion, float)
    own, total = np.einsum("jtt->jt", rows), rows.sum(axis=-1)
    right = own / total
    variance_of_right = right * (1 - right) / (total + 1)
    mean = right @ first
    square = np.einsum("js,jt,st->j", right, right, second) + variance_of_right @ np.diag(second)
    return beta_of_moments(mean, np.maximum(square - mean**2, 0.0))


def _accuracy_of_draws(draws: Mapping[str, Any]) -> Float[np.ndarray, "draw annotator"]:
    # Rows of float32 add up to one only nearly, and nobody is right more often than always.
    rows, prevalence = np.asarray(draws["confusion"]), np.asarray(draws["prevalence"], float)
    own = np.einsum("djtt->djt", rows) / rows.sum(axis=-1, dtype=float)
    return np.asarray((own * prevalence[:, None]).sum(axis=-1) / prevalence.sum(axis=-1)[:, None])


def _moments(concentration: Float[np.ndarray, " class"]) -> tuple[np.ndarray, np.ndarray]:
    """Return the means, and the means of all products, of a Dirichlet variable."""
    total = concentration.sum()
    mean = concentration / total
    return mean, (total * np.outer(mean, mean) + np.diag(mean)) / (total + 1)


def _annotations_by_class(
    data: Annotations, truth: LabelTruth, chosen: Int[np.ndarray, " chosen"] | None
) -> Float[np.ndarray, "annotator class"]:
    """Return the expected numbers of annotations; zeros of annotators who are not chosen. None chooses all."""
    rows = slice(None) if chosen is None else np.flatnonzero(np.isin(data.annotator, chosen))
    item, annotator, weight = (np.asarray(column)[rows] for column in (data.item, data.annotator, data.weight))
    # Class after class: a table of annotation and class would not fit.
    of_classes = _label_probabilities(truth).T
    counts = [np.bincount(annotator, weight * probability[item], data.num_annotators) for probability in of_classes]
    return np.stack(counts, axis=1)


def _label_probabilities(truth: LabelTruth) -> Float[np.ndarray, "item class"]:
    found = truth.label_probabilities()
    dense = np.zeros((truth.num_units, truth.num_classes))
    dense[found.unit, found.code] = found.probability
    return dense


TABLES = (
    LABELS,
    PROBABILITIES,
    Table(
        name="annotators", help="How often each annotator is right on an item drawn by the prevalence.",
        make=annotators,
        columns=(
            Column("annotator", "annotator"), Column("annotations", help="sum of weights"),
            Column("accuracy", help="share of right labels"), *INTERVAL,
        ),
    ),
    Table(
        name="confusion", help="How probably an annotator gives an item of a class a label.", make=confusion,
        columns=(
            Column("annotator", "annotator"), Column("class", "class"), Column("label", "class"),
            Column("annotations", help="items of the class that she is expected to have annotated"),
            Column("probability", help="of the label"), *INTERVAL,
        ),
    ),
    Table(
        name="crowd", help="How the crowd as a whole labels items of each class.", make=crowd,
        columns=(
            Column("class", "class"), Column("label", "class"),
            Column("annotations", help="expected number of annotations of items of the class"),
            Column("probability", help="of the label"), *INTERVAL,
        ),
    ),
    Table(
        name="prevalence", help="The shares of the classes among items.", make=prevalence,
        columns=(Column("label", "class"), Column("share", help="of the items"), *INTERVAL),
    ),
)  # fmt: skip
