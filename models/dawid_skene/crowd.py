r"""How a crowd with given confusion matrices agrees with itself, and how it would annotate again.

Two different annotators, taken in proportion to :math:`s_j`, their parts of all annotations, give an item of class t
the same label with probability

.. math:: \frac{\sum_l \big[ (\sum_j s_j \Theta_{jtl})^2 - \sum_j s_j^2 \Theta_{jtl}^2 \big]}{1 - \sum_j s_j^2}.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int, Key
from consilience.data.annotations import Annotations
from consilience.models.random import log_gamma
from consilience.models.truth import Crowd

__all__ = [
    "agreement_by_class",
    "average_confusion",
    "crowd_of_draws",
    "crowd_of_posterior",
    "draw_confusion",
    "several_annotators",
    "shares",
]


def several_annotators(data: Annotations) -> bool:
    """Return whether there are two annotators who could agree."""
    return bool(np.count_nonzero(shares(data)) > 1)


def crowd_of_draws(confusion: Float[Array, "draw annotator class label"], data: Annotations, num_draws: int) -> Crowd:
    """Return the crowd of stored draws, or of one estimate that stands for all draws."""
    agreement = _agreement_of_draws(jnp.asarray(confusion), jnp.asarray(shares(data), jnp.result_type(float)))
    of_draw = functools.partial(_stored, np.asarray(confusion))
    repeated = np.broadcast_to(agreement, (num_draws, agreement.shape[1]))
    return Crowd(np.asarray(repeated, float), functools.partial(_annotate, of_draw, data))


def crowd_of_posterior(
    concentration: Float[Array, "annotator class label"], data: Annotations, key: Key, num_draws: int
) -> Crowd:
    """Return the crowd of draws that are made when they are needed, one at a time."""
    concentration = jnp.asarray(concentration)
    share = jnp.asarray(shares(data), concentration.dtype)
    agreement = _agreement_of_posterior(jax.random.split(key, num_draws), concentration, share)
    of_draw = functools.partial(_drawn, key, num_draws, np.asarray(concentration))
    return Crowd(np.asarray(agreement, float), functools.partial(_annotate, of_draw, data))


def draw_confusion(
    key: Key, concentration: Float[Array, "annotator class label"]
) -> Float[Array, "annotator class label"]:
    """Draw confusion matrices of all annotators."""
    return jnp.exp(jax.nn.log_softmax(log_gamma(key, concentration), axis=-1))


def agreement_by_class(
    confusion: Float[Array, "annotator class label"], share: Float[Array, " annotator"]
) -> Float[Array, " class"]:
    """Return how often two different annotators give an item of each class the same label; see above."""
    together = jnp.tensordot(share, confusion, 1)
    oneself = jnp.tensordot(share**2, (confusion**2).sum(axis=-1), 1)
    return ((together**2).sum(axis=-1) - oneself) / (1 - (share**2).sum())


def average_confusion(
    rows: Float[Array, "draw annotator class label"], data: Annotations
) -> Float[np.ndarray, "class label"]:
    r"""Return the posterior mean of :math:`\sum_j s_j \Theta_{jtl}`: how the crowd as a whole labels items of a class.

    Parameters
    ----------
    rows : draws of the confusion matrices; or, as one draw, their Dirichlet concentrations, whose shares are the mean.
    """
    rows = np.asarray(rows)
    of_annotator = (rows / rows.sum(axis=-1, keepdims=True)).mean(axis=0, dtype=float)
    return np.tensordot(shares(data), of_annotator, 1)


@jax.jit
def _agreement_of_draws(
    confusion: Float[Array, "draw annotator class label"], share: Float[Array, " annotator"]
) -> Float[Array, "draw class"]:
    return jax.lax.map(lambda draw: agreement_by_class(draw, share), confusion)


@jax.jit
def _agreement_of_posterior(
    keys: Key, concentration: Float[Array, "annotator class label"], share: Float[Array, " annotator"]
) -> Float[Array, "draw class"]:
    return jax.lax.map(lambda key: agreement_by_class(draw_confusion(key, concentration), share), keys)


def shares(data: Annotations) -> Float[np.ndarray, " annotator"]:
    """Return the part of all annotations that each annotator made, weights summed."""
    amount = np.bincount(np.asarray(data.annotator), np.asarray(data.weight, float), data.num_annotators)
    return amount / max(amount.sum(), np.finfo(float).tiny)


def _stored(
    confusion: Float[np.ndarray, "draw annotator class label"], draw: int
) -> Float[np.ndarray, "annotator class label"]:
    return confusion[draw % len(confusion)]


def _drawn(
    key: Key, num_draws: int, concentration: Float[np.ndarray, "annotator class label"], draw: int
) -> Float[np.ndarray, "annotator class label"]:
    return np.asarray(_draw_confusion(jax.random.split(key, num_draws)[draw], concentration))


_draw_confusion = jax.jit(draw_confusion)


def _annotate(
    confusion_of: Callable[[int], np.ndarray],
    data: Annotations,
    random: np.random.Generator,
    draw: int,
    label: Int[np.ndarray, " item"],
) -> Int[np.ndarray, " annotation"]:
    """Draw annotations of the same items by the same annotators, by the inverse of the distribution functions."""
    below = np.cumsum(np.asarray(confusion_of(draw), float), axis=-1)
    num_classes, num_labels = below.shape[1:]
    below = (below / below[..., -1:]).reshape(-1, num_labels)
    row = np.asarray(data.annotator, np.int64) * num_classes + label[np.asarray(data.item)]
    # The functions one after the other, each one higher than the one before, are one that never decreases.
    steps = (below + np.arange(len(below))[:, None]).ravel()
    return np.searchsorted(steps, row + random.random(len(row)), side="right") - row * num_labels
