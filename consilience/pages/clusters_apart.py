"""Two directions of the features of items in which the clusters of a view lie most apart, for a figure of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from consilience.drawing import shown_name
from consilience.printing import numbered

_NAMED = 3        # Features that are named at an axis.
_ALONE = 0.9      # Share of the squared loadings with which a feature stands for a whole direction.
_FIXED = "\u00a0"  # A space at which no line ends.
_FIRST = f"probability of cluster {numbered(0)}"


class Plane(NamedTuple):
    """Two directions in which the clusters of a view lie most apart.

    Parameters
    ----------
    place : of each item, float64, shape ``(item, 2)``, in the units of the file.
    names : of the two directions: a feature, or a sum of several.
    """

    place: np.ndarray
    names: tuple[str, str]


def most_telling(feature: np.ndarray, names: Any, weight: np.ndarray, probability: np.ndarray) -> Plane:
    """Choose the two directions of the features along which the log odds of the clusters differ most.

    They span the plane of the two largest principal components of the logits, turned in it so that each has few
    features (varimax). Where one feature has nearly all of a direction, that feature itself is shown. Weights of two
    clusters, or of one feature, have a single direction: the other one is the probability of the first cluster.

    Parameters
    ----------
    feature : shape ``(item, feature)``, as they stand in the file.
    names : of the features.
    weight : per unit of each feature, shape ``(feature, cluster)``, as in ``fit.directions()``.
    probability : of the clusters, shape ``(item, cluster)``.
    """
    scale = feature.std(axis=0)
    per_unit = 1 / np.where(scale > 0, scale, 1)
    loading = weight * scale[:, None]
    _, _, components = np.linalg.svd((feature - feature.mean(axis=0)) @ weight, full_matrices=False)
    if np.linalg.matrix_rank(loading) < 2:
        along = loading @ components[0]
        place, name = _direction(feature, names, along / np.linalg.norm(along), per_unit)
        return Plane(np.stack([place, probability[:, 0]], axis=1), (name, _FIRST))
    basis = _varimax(np.linalg.qr(loading @ components[:2].T)[0])
    basis = basis[:, np.argsort(-np.linalg.norm(basis.T @ loading, axis=1))]
    (first, name), (second, other) = (_direction(feature, names, column, per_unit) for column in basis.T)
    return Plane(np.stack([first, second], axis=1), (name, other))


def most_apart(feature: np.ndarray, names: Any, probability: np.ndarray) -> Plane:
    """Choose the two features that differ most between clusters; of a single one, the probability of a cluster too."""
    share = probability / np.maximum(probability.sum(axis=0), 1e-12)
    mean = share.T @ feature
    between = probability.mean(axis=0) @ (mean - feature.mean(axis=0)) ** 2
    variance = feature.var(axis=0)
    order = np.argsort(-between / np.where(variance > 0, variance, np.inf), kind="stable")[:2]
    first, *others = (_feature_name(names[one]) for one in order)
    if others:
        return Plane(feature[:, order], (first, others[0]))
    return Plane(np.stack([feature[:, 0], probability[:, 0]], axis=1), (first, _FIRST))


def _varimax(basis: np.ndarray) -> np.ndarray:
    """Turn two orthonormal columns so that their squares vary most; in closed form (Kaiser 1958)."""
    a, b = basis.T
    u, v = a**2 - b**2, 2 * a * b
    number = len(a)
    across = 2 * (u @ v - u.sum() * v.sum() / number)
    along = (u**2 - v**2).sum() - (u.sum() ** 2 - v.sum() ** 2) / number
    angle = np.arctan2(across, along) / 4
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return np.asarray(basis @ turn)


def _direction(feature: np.ndarray, names: Any, along: np.ndarray, per_unit: np.ndarray) -> tuple[np.ndarray, str]:
    """Return the places of the items along a direction of unit length in standardised features, and its name."""
    order = np.argsort(-np.abs(along), kind="stable")
    if along[order[0]] ** 2 >= _ALONE:
        return feature[:, order[0]], _feature_name(names[order[0]])
    slope = along * per_unit * np.sign(along[order[0]])
    words = " ".join(
        f"{'−' if slope[one] < 0 else '+'}{_FIXED}{abs(slope[one]):.2g}{_FIXED}×{_FIXED}{_feature_name(names[one])}"
        for one in order[:_NAMED]
    ).removeprefix(f"+{_FIXED}")
    rest = int((along[order[_NAMED:]] != 0).sum())
    return feature @ slope, words + (f" +{_FIXED}{rest}{_FIXED}lesser" if rest else "")


def _feature_name(name: Any) -> str:
    """Write the name of a feature so that nobody takes it for a number."""
    return f"feature {name}" if str(name).isdigit() else shown_name(name)
