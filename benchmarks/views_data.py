"""Data with known views, on which `benchmarks views` lets simulated experts judge pairs.

Two are simulated. The others come with scikit-learn: its digits, single ones (which digit, and whether it is even) and
two side by side (the left one, the right one); wines and tumours, which have one view.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.views_experts import Clusterings, k_views, standardised, three_clusters
from consilience.arrays import Float, Int

_COMPONENTS = 20
_LEFT, _RIGHT = (0, 1, 2, 3), (4, 6, 7, 9)


class Known(NamedTuple):
    """Items whose views are known.

    Parameters
    ----------
    name : of the data.
    label : the cluster of each item in each view.
    feature : standardised.
    """

    name: str
    label: Int[np.ndarray, "view item"]
    feature: Float[np.ndarray, "item feature"]

    @property
    def clusters(self) -> list[int]:
        """Number of clusters of each view."""
        return [int(of_view.max()) + 1 for of_view in self.label]


def load(name: str, seed: int = 0) -> Known:
    """Return a data set by name; the seed draws it, where it is drawn."""
    found = DATA[name](seed)
    return Known(name, found.label, found.feature)


def _components(feature: np.ndarray) -> np.ndarray:
    """Return the first principal components, each of standard deviation one."""
    left, _, _ = np.linalg.svd(feature - feature.mean(axis=0), full_matrices=False)
    return standardised(left[:, :_COMPONENTS])


def _two_digits(seed: int, size: int = 800) -> Clusterings:
    from sklearn.datasets import load_digits

    digits, random = load_digits(), np.random.default_rng(seed)
    labels, images = [], []
    for kinds in (_LEFT, _RIGHT):
        label = random.integers(len(kinds), size=size)
        place = np.empty(size, int)
        for code, digit in enumerate(kinds):
            own = np.flatnonzero(label == code)
            place[own] = random.choice(np.flatnonzero(digits.target == digit), len(own))
        labels.append(label)
        images.append(digits.data[place])
    return Clusterings(np.stack(labels), _components(np.concatenate(images, axis=1)))


def _digit_and_parity(seed: int) -> Clusterings:
    from sklearn.datasets import load_digits

    digits = load_digits()
    return Clusterings(np.stack([digits.target, digits.target % 2]), _components(digits.data))


def _one_view(loader: str) -> Callable[[int], Clusterings]:
    def load(seed: int) -> Clusterings:
        from sklearn import datasets

        found: Any = getattr(datasets, loader)()
        return Clusterings(found.target[None], standardised(found.data))

    return load


PACKAGED: dict[str, Callable[[int], Clusterings]] = {
    "two-digits": _two_digits,
    "digit-parity": _digit_and_parity,
    "wine": _one_view("load_wine"),
    "breast-cancer": _one_view("load_breast_cancer"),
}
"""Data that come with scikit-learn."""

DATA: dict[str, Callable[[int], Clusterings]] = {
    "three-clusters": lambda seed: three_clusters(seed=seed),
    "k-views": lambda seed: k_views(seed=seed),
    **PACKAGED,
}
"""Functions of a seed."""
