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
from scipy import special

from consilience.arrays import Array, Float, Int, Key
from consilience.data.annotations import Annotations
from consilience.models.crowds import annotation_shares, several_annotators
from consilience.models.random import log_gamma
from consilience.models.truth import Crowd
from consilience.models.truth.classes import Rows

# So few labels are counted off one by one, which is faster than a search among the steps of all annotators.
_FEW_LABELS = 32


def crowd_of_draws(confusion: Float[Array, "draw annotator class label"], data: Annotations, num_draws: int) -> Crowd:
    """Return the crowd of stored draws, or of one estimate that stands for all draws."""
    agreement = functools.partial(_stored_agreement, confusion, data, num_draws)
    of_draw = functools.partial(_stored, np.asarray(confusion))
    return _crowd(np.asarray(confusion), data, agreement, of_draw)


def crowd_of_posterior(
    concentration: Float[Array, "annotator class label"], data: Annotations, key: Key, num_draws: int
) -> Crowd:
    """Return the crowd of draws that are made when they are needed, one at a time."""
    agreement = functools.partial(_drawn_agreement, concentration, data, key, num_draws)
    of_draw = functools.partial(_drawn, key, np.asarray(concentration, float))
    moments = functools.partial(agreement_moments, np.asarray(concentration, float), data)
    return _crowd(np.asarray(concentration)[None], data, agreement, of_draw, moments)


def _crowd(
    rows: Float[np.ndarray, "draw annotator class label"], data: Annotations, agreement: Callable[[], np.ndarray],
    of_draw: Callable[[int], np.ndarray], moments: Callable[[], tuple[np.ndarray, np.ndarray]] | None = None,
) -> Crowd:  # fmt: skip
    confusion = functools.partial(average_confusion, rows, data)
    if not several_annotators(data):
        return Crowd(confusion)
    return Crowd(confusion, agreement, functools.partial(_annotate, of_draw, data), moments)


def _stored_agreement(
    confusion: Float[Array, "draw annotator class label"], data: Annotations, num_draws: int
) -> Float[np.ndarray, "draw class"]:
    found = _agreement_of_draws(jnp.asarray(confusion), jnp.asarray(annotation_shares(data), jnp.result_type(float)))
    return np.broadcast_to(np.asarray(found, float), (num_draws, found.shape[1]))


def _drawn_agreement(
    concentration: Float[Array, "annotator class label"], data: Annotations, key: Key, num_draws: int
) -> Float[np.ndarray, "draw class"]:
    concentration = jnp.asarray(concentration)
    share = jnp.asarray(annotation_shares(data), concentration.dtype)
    return np.asarray(_agreement_of_posterior(jax.random.split(key, num_draws), concentration, share), float)


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
    return np.tensordot(annotation_shares(data), of_annotator, 1)


def agreement_moments(
    concentration: Float[np.ndarray, "annotator class label"], data: Annotations
) -> tuple[Float[np.ndarray, " class"], Float[np.ndarray, " class"]]:
    r"""Return the means and variances of `agreement_by_class` over the posterior, in closed form.

    With :math:`\mu_j` and :math:`C_j` the mean and covariance of the Dirichlet row :math:`\Theta_{jt}`, rows being
    independent, :math:`\sum_{i \ne j} s_i s_j \Theta_{it} \cdot \Theta_{jt}` has the variance
    :math:`4 \sum_j s_j^2 b_j^T C_j b_j + 2 \sum_{i \ne j} s_i^2 s_j^2 \mathrm{tr}(C_i C_j)`,
    :math:`b_j = \sum_{i \ne j} s_i \mu_i`.

    Parameters
    ----------
    concentration : of the Dirichlet distributions.
    data : whose annotators, taken by how much they annotate, agree.
    """
    share = annotation_shares(data)[:, None, None]
    total = concentration.sum(axis=-1, keepdims=True)
    mean = concentration / total
    together = (share * mean).sum(axis=0)
    others = together - share * mean
    # bᵀCb, C = (diag(μ) - μμᵀ) / (total + 1).
    projected = ((mean * others**2).sum(axis=-1) - (mean * others).sum(axis=-1) ** 2) / (total + 1)[..., 0]
    # The traces of all pairs are those of products of Σ s²C with itself, less those of everybody with themselves.
    scale = share**2 / (total + 1)
    weighted = scale * mean
    sums = -np.einsum("jtk,jtl->tkl", weighted, mean)
    diagonal = np.arange(mean.shape[-1])
    sums[:, diagonal, diagonal] += weighted.sum(axis=0)
    squares = mean**2
    own = scale[..., 0] ** 2 * (squares.sum(axis=-1) * (1 + squares.sum(axis=-1)) - 2 * (squares * mean).sum(axis=-1))
    variance = 4 * (share[..., 0] ** 2 * projected).sum(axis=0) + 2 * ((sums**2).sum(axis=(1, 2)) - own.sum(axis=0))
    rest = 1 - (share**2).sum()
    expected = (share * mean * others).sum(axis=(0, 2)) / rest
    return expected, np.maximum(variance, 0.0) / rest**2


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


def _stored(
    confusion: Float[np.ndarray, "draw annotator class label"], draw: int
) -> Float[np.ndarray, "annotator class label"]:
    return confusion[draw % len(confusion)]


def _drawn(
    key: Key, concentration: Float[np.ndarray, "annotator class label"], draw: int
) -> Float[np.ndarray, "annotator class label"]:
    """Draw confusion matrices on the host, in logarithms, which do not vanish: a single draw is no work to compile."""
    random = np.random.default_rng([*np.asarray(jax.random.key_data(key)).ravel(), draw])
    # A gamma variable is one of a shape larger by one, times a power of a uniform one.
    log = np.log(random.standard_gamma(concentration + 1.0))
    log += np.log1p(-random.random(concentration.shape)) / concentration
    return special.softmax(log, axis=-1)


def _annotate(
    confusion_of: Callable[[int], np.ndarray],
    data: Annotations,
    random: np.random.Generator,
    draw: int,
    label: Int[np.ndarray, " item"],
    rows: Rows,
) -> Int[np.ndarray, " annotation"]:
    """Draw annotations of the same items by the same annotators, by the inverse of the distribution functions."""
    who, item = np.asarray(data.annotator)[rows], np.asarray(data.item)[rows]
    below = np.cumsum(np.asarray(confusion_of(draw), float), axis=-1)
    num_classes, num_labels = below.shape[1:]
    below = (below / below[..., -1:]).reshape(-1, num_labels)
    row = who.astype(np.int64) * num_classes + label[item]
    if num_labels <= _FEW_LABELS:
        uniform, given = random.random(len(row)), np.zeros(len(row), np.int64)
        for end in below.T[:-1]:
            given += end[row] <= uniform
        return given
    # The functions one after the other, each one higher than the one before, are one that never decreases.
    steps = (below + np.arange(len(below))[:, None]).ravel()
    return np.searchsorted(steps, row + random.random(len(row)), side="right") - row * num_labels
