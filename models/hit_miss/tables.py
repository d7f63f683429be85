"""What diagnostics of hit-miss are about: no names of clusters, but how many there are and who is together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from consilience.arrays import Int
from consilience.models.block_linkage.gibbs.truth import label_free
from consilience.models.sites import Resolved
from consilience.models.truth.partitions import DrawnPartitions

_MOST_PAIRS = 50
_LOOKED_AT = 200  # draws in which pairs are looked for


def name_free(samples: Mapping[str, np.ndarray], resolved: Resolved) -> dict[str, np.ndarray]:
    """Return hyperparameters, numbers of entities and of pairs, and whether the most doubtful pairs are together.

    Parameters
    ----------
    samples : draws ``(chain, draw, …)`` by site.
    """
    if "cluster" not in samples:
        return dict(samples)
    cluster = np.asarray(samples["cluster"])
    first, second = _doubtful(cluster.reshape(-1, cluster.shape[2]))
    return label_free(samples) | {"together": (cluster[:, :, first] == cluster[:, :, second]).astype(float)}


def _doubtful(cluster: Int[np.ndarray, "draw record"]) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs that are most nearly as often together as apart, among those that ever are together."""
    if not len(cluster):
        return np.zeros(0, int), np.zeros(0, int)
    some = np.unique(np.linspace(0, len(cluster) - 1, _LOOKED_AT).round().astype(int))
    pairs = DrawnPartitions(cluster[some]).pairs()
    doubtful = np.flatnonzero(pairs.probability < 1)
    order = np.argsort(np.abs(pairs.probability[doubtful] - 0.5), kind="stable")
    chosen = np.sort(doubtful[order[:_MOST_PAIRS]])
    return pairs.first[chosen], pairs.second[chosen]
