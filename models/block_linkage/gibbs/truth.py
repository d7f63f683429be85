"""Who is together in the draws of the Gibbs sampler, and what the wide graph leaves out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from consilience.arrays import Int
from consilience.models.partition import DrawnPartitions

__all__ = ["DrawnLinks", "label_free"]


class DrawnLinks(DrawnPartitions):
    """Stored partitions of a Gibbs sampler on a wide graph.

    Parameters
    ----------
    cluster : integers, shape ``(draw, record)``; equal where records are together.
    threshold : of the graph: pairs with log odds above minus this could be linked.
    links_outside : how many links are expected outside of the graph; NaN where the candidates were given.
    found_share : of all links, those expected in the graph.
    """

    def __init__(
        self, cluster: Int[np.ndarray, "draw record"], *, threshold: float, links_outside: float, found_share: float
    ) -> None:
        super().__init__(cluster)
        self.threshold, self.links_outside, self.found_share = threshold, links_outside, found_share
        graph = f"pairs with log odds above {-threshold:g}, {links_outside:,.1f} links expected outside"
        self.basis = f"hit-miss errors; {'the pairs given' if np.isnan(links_outside) else graph}"


def label_free(samples: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return draws of the hyperparameters and of the numbers of entities and of pairs together, ``(chain, draw, …)``.

    Labels of clusters mean nothing by themselves. The shares of values are left out as well: they are many, and each
    says next to nothing of the linkage.
    """
    cluster = samples["cluster"]
    flat = cluster.reshape(-1, cluster.shape[-1])
    entities = (flat == np.arange(flat.shape[1])).sum(axis=1)
    pairs = np.array([_pairs(one) for one in flat], int)
    kept = {site: values for site, values in samples.items() if site not in ("cluster", "value_share")}
    shape = cluster.shape[:2]
    return {**kept, "num_entities": entities.reshape(shape), "num_pairs": pairs.reshape(shape)}


def _pairs(cluster: Int[np.ndarray, " record"]) -> int:
    """Return how many pairs are together."""
    size = np.bincount(cluster)
    return int((size * (size - 1) // 2).sum())
