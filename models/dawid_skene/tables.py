"""Tables of a Dawid-Skene fit: who is reliable at what, with central 95 % intervals.

The functions take what inference ended with: the `Posterior` of CAVI, draws of a sampler, or the one estimate of EM,
which has no intervals.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from consilience.arrays import Float, Int
from consilience.data.annotations import Annotations
from consilience.models.dawid_skene.crowd import shares
from consilience.models.truth import LabelProbabilities, Truth

__all__ = ["accuracy", "annotators", "confusion", "crowd", "labels", "prevalence", "probabilities"]

_ENDS = np.array([0.025, 0.975])


def labels(posterior: Any, data: Annotations, truth: Truth) -> dict[str, np.ndarray]:
    """Table of the most probable label of each item."""
    return truth.leading()


def probabilities(posterior: Any, data: Annotations, truth: Any) -> dict[str, np.ndarray]:
    """Table of how probable each label of each item is; of a sampler's fit, those labels that were drawn."""
    entries, probability = truth.label_probabilities()
    return {"item": entries.item, "label": entries.class_, "probability": probability}


def annotators(posterior: Any, data: Annotations, truth: Truth) -> dict[str, np.ndarray]:
    """Table of how much each annotator annotated, and how often she is right on an item drawn by the prevalence."""
    amount = np.bincount(np.asarray(data.annotator), np.asarray(data.weight, float), data.num_annotators)
    mean, lower, upper = accuracy(posterior)
    return {
        "annotator": np.arange(data.num_annotators), "annotations": amount,
        "accuracy": mean, "lower": lower, "upper": upper,
    }  # fmt: skip


def confusion(
    posterior: Any, data: Annotations, truth: Truth, annotators: Int[np.ndarray, " chosen"] | None = None
) -> dict[str, np.ndarray]:
    """Table of confusion matrices: how probably the annotator gives an item of the class the label.

    ``annotations`` is how many items of the class she is expected to have annotated: where it is zero, the row is the
    prior, and of EM, which has none, uniform.

    Parameters
    ----------
    annotators : codes of those to tabulate; all by default.
    """
    chosen = np.arange(data.num_annotators) if annotators is None else np.asarray(annotators)
    mean, lower, upper = _site(posterior, "confusion", chosen)
    place, class_, label = np.indices(mean.shape).reshape(3, -1)
    number = _annotations_by_class(data, truth, annotators)[chosen[place], class_]
    columns = {"probability": mean, "lower": lower, "upper": upper}
    codes = {"annotator": chosen[place], "class": class_, "label": label, "annotations": number}
    return codes | {name: values.ravel() for name, values in columns.items()}


def crowd(posterior: Any, data: Annotations, truth: Truth) -> dict[str, np.ndarray]:
    r"""Table of how the crowd as a whole labels items of each class, :math:`\sum_j s_j \Theta_{jtl}`, s_j parts of all.

    ``annotations`` is how many annotations are expected to be of items of the class. Of the closed form, mean and
    variance are exact, and the interval is that of the Beta distribution that has them.
    """
    share = shares(data)
    if isinstance(posterior, dict):
        mean, lower, upper = _of_draws(np.tensordot(posterior["confusion"], share, ([1], [0])))
    else:
        rows = np.asarray(posterior.confusion, float)
        total = rows.sum(axis=-1, keepdims=True)
        each = rows / total
        mean = np.tensordot(share, each, 1)
        variance = np.tensordot(share**2, each * (1 - each) / (total + 1), 1)
        lower, upper = _ends_of_moments(mean, variance)
    class_, label = np.indices(mean.shape).reshape(2, -1)
    of_items = np.bincount(np.asarray(data.item), np.asarray(data.weight, float), data.num_items)
    number = (of_items @ _label_probabilities(truth))[class_]
    columns = {"probability": mean, "lower": lower, "upper": upper}
    codes = {"class": class_, "label": label, "annotations": number}
    return codes | {name: values.ravel() for name, values in columns.items()}


def prevalence(posterior: Any, data: Annotations, truth: Truth) -> dict[str, np.ndarray]:
    """Table of the shares of the classes among items."""
    mean, lower, upper = _site(posterior, "prevalence")
    return {"label": np.arange(data.num_labels), "share": mean, "lower": lower, "upper": upper}


def accuracy(posterior: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Return mean and interval of :math:`\sum_t p_t \Theta_{jtt}`, each float64 of shape ``(annotator,)``.

    Under CAVI mean and variance are exact, and the interval is that of the Beta distribution that has them.
    """
    if isinstance(posterior, dict):
        # Rows of float32 add up to one only nearly, and nobody is right more often than always.
        rows, prevalence = np.asarray(posterior["confusion"]), np.asarray(posterior["prevalence"], float)
        own = np.einsum("djtt->djt", rows) / rows.sum(axis=-1, dtype=float)
        return _of_draws((own * prevalence[:, None]).sum(axis=-1) / prevalence.sum(axis=-1)[:, None])
    first, second = _moments(np.asarray(posterior.prevalence, float))
    rows = np.asarray(posterior.confusion, float)
    own, total = np.einsum("jtt->jt", rows), rows.sum(axis=-1)
    right = own / total
    variance_of_right = right * (1 - right) / (total + 1)
    mean = right @ first
    square = np.einsum("js,jt,st->j", right, right, second) + variance_of_right @ np.diag(second)
    variance = np.maximum(square - mean**2, 0.0)
    return mean, *_ends_of_moments(mean, variance)


def _moments(concentration: Float[np.ndarray, " class"]) -> tuple[np.ndarray, np.ndarray]:
    """Return the means, and the means of all products, of a Dirichlet variable."""
    total = concentration.sum()
    mean = concentration / total
    return mean, (total * np.outer(mean, mean) + np.diag(mean)) / (total + 1)


def _site(posterior: Any, site: str, chosen: Any = slice(None)) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean and interval of each probability of a site, or of the chosen part of it."""
    if isinstance(posterior, dict):
        return _of_draws(np.asarray(posterior[site])[:, chosen])
    own = np.asarray(getattr(posterior, site), float)[chosen]
    total = own.sum(axis=-1, keepdims=True)
    mean = own / total
    return mean, *_beta_ends(own, total - own, mean)


def _ends_of_moments(mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the interval of the Beta distribution with this mean and variance."""
    size = np.divide(mean * (1 - mean), variance, out=np.ones(mean.shape), where=variance > 0) - 1
    return _beta_ends(mean * size, (1 - mean) * size, mean)


def _beta_ends(a: np.ndarray, b: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the intervals; the mean where the distribution is a point."""
    spread = (a > 0) & (b > 0)
    usable = [np.where(spread, values, 1.0) for values in (a, b)]
    lower, upper = (np.where(spread, special.betaincinv(*usable, end), mean) for end in _ENDS)
    return lower, upper


def _of_draws(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mean = draws.mean(axis=0, dtype=float)
    if len(draws) == 1:  # a point estimate
        return mean, np.full(mean.shape, np.nan), np.full(mean.shape, np.nan)
    lower, upper = np.quantile(draws, _ENDS, axis=0)
    return mean, lower, upper


def _annotations_by_class(
    data: Annotations, truth: Truth, chosen: Int[np.ndarray, " chosen"] | None
) -> Float[np.ndarray, "annotator class"]:
    """Return the expected numbers of annotations; zeros of annotators who are not chosen. None chooses all."""
    rows = slice(None) if chosen is None else np.flatnonzero(np.isin(data.annotator, chosen))
    item, annotator, weight = (np.asarray(column)[rows] for column in (data.item, data.annotator, data.weight))
    # Class after class: a table of annotation and class would not fit.
    of_classes = _label_probabilities(truth).T
    counts = [np.bincount(annotator, weight * probability[item], data.num_annotators) for probability in of_classes]
    return np.stack(counts, axis=1)


def _label_probabilities(truth: Truth) -> Float[np.ndarray, "item class"]:
    if isinstance(truth, LabelProbabilities):
        return truth.probability.reshape(truth.num_items, truth.num_classes)
    blocks = truth.grouped(np.arange(truth.num_classes), truth.num_classes)
    return np.concatenate([np.asarray(block.values).mean(axis=1)[: block.num_items] for block in blocks])
