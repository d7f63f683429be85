"""Who is together in the draws of a Gibbs sampler, what its candidates leave out, and whether its model holds."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from consilience.arrays import Int
from consilience.data.records import Records
from consilience.models.block_linkage.gibbs.outside import LinksOutside, links_outside
from consilience.models.block_linkage.hidden_links import CandidateRule
from consilience.models.block_linkage.likelihoods import LIKELIHOODS
from consilience.models.block_linkage.misfit import Misfit, misfit
from consilience.models.block_linkage.model import Linkable, wide_parameters
from consilience.models.block_linkage.overlap import overlap_doubt
from consilience.models.block_linkage.parameters import Parameters, value_codes
from consilience.models.truth.partitions import DrawnPartitions
from consilience.rounding import written


class DrawnLinks(DrawnPartitions):
    """Stored partitions of a Gibbs sampler, and how far to trust them, which is computed once, when it is asked for.

    Parameters
    ----------
    draws : of the sites, ``(draw, …)``; ``cluster`` has equal integers where records are together.
    data : what was fitted.
    threshold : of the candidates: pairs with log odds above minus this could be linked.
    components : the groups of candidates, where only records of one group could be linked.
    """

    def __init__(
        self, draws: Mapping[str, Any], data: Records, *, threshold: float, components: Linkable | None = None
    ) -> None:
        super().__init__(np.asarray(draws["cluster"]))
        self.draws, self.data, self.threshold, self.components = draws, data, threshold, components

    @functools.cached_property
    def outside(self) -> LinksOutside:
        """Links expected among the pairs that could not be linked."""
        return links_outside(self.draws, self.data, self.threshold, components=self.components)

    @functools.cached_property
    def misfit(self) -> Misfit:
        """Whether linked records differ as the model predicts it, at the means of its parameters."""
        return _misfit(self)

    @property
    def links_outside(self) -> float:
        """How many links are expected that could not be made; NaN where the candidates were given."""
        return self.outside.number

    @property
    def found_share(self) -> float:  # type: ignore[override]
        """Of all links, those expected among the candidates."""
        return self.outside.share

    @property
    def given_up(self) -> Linkable | None:
        """What was cut to make the groups small; None where there are none."""
        return self.components

    def expected_outside(self) -> dict[str, tuple[float, str]]:
        """Return what is expected of the pairs that could not be linked, in numbers and words."""
        return {
            "links_outside": (self.links_outside, "expected links that are not among them"),
            "disagreement": (self.misfit.disagreement, "disagreement of data and model, 0 to 1"),
        }

    @property
    def doubt(self) -> str:  # type: ignore[override]
        """Why the interval is not to be trusted."""
        return "; ".join(filter(None, [self.misfit.words if self.misfit.fails else "", overlap_doubt(self.data)]))

    @property
    def basis(self) -> str:  # type: ignore[override]
        """What the number of entities rests on."""
        errors = "error classes" if "class_share" in self.draws else "independent errors"
        if np.isnan(self.links_outside):
            return f"{errors}; the pairs given"
        graph = f"pairs with log odds above {written(-self.threshold, 'g')}"
        if self.components is not None:
            sizes = [size for size, number in enumerate(self.components.num_components, 2) if number]
            graph += f" in groups of at most {max(sizes, default=1)}"
        return f"{errors}; {graph}, {self.links_outside:,.1f} links expected outside"


def _misfit(truth: DrawnLinks) -> Misfit:
    draws, data = truth.draws, truth.data
    share, distortion, classes = (
        np.mean(draws[site], axis=0, dtype=float) if site in draws else np.zeros(0)
        for site in ("value_share", "distortion", "class_share")
    )
    # Error classes alone ask how many records entities have, and they are drawn together with that.
    sizes = np.mean(draws["size_share"], axis=0, dtype=float) if len(classes) else np.ones(2)
    parameters = Parameters(share, distortion, 1.0, sizes, classes)
    rule = CandidateRule(wide_parameters(data), truth.threshold, LIKELIHOODS["hit-miss"], None)
    pairs = truth.pairs()
    return misfit(
        value_codes(data.value, data.first_value)[:, [pairs.first, pairs.second]].transpose(1, 0, 2),
        pairs.probability, parameters, LIKELIHOODS["error-classes" if len(classes) else "hit-miss"], data.first_value,
        lambda drawn: rule.passes(drawn, data.first_value),
    )  # fmt: skip


def label_free(samples: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return draws of the hyperparameters and of the numbers of entities and of pairs together, ``(chain, draw, …)``.

    Labels of clusters mean nothing by themselves. The other sites are as they were.
    """
    cluster = np.asarray(samples["cluster"])
    flat = cluster.reshape(-1, cluster.shape[-1])
    entities = (flat == np.arange(flat.shape[1])).sum(axis=1)
    pairs = np.array([_pairs(one) for one in flat], int)
    kept = {site: values for site, values in samples.items() if site != "cluster"}
    shape = cluster.shape[:2]
    return {**kept, "num_entities": entities.reshape(shape), "num_pairs": pairs.reshape(shape)}


def _pairs(cluster: Int[np.ndarray, " record"]) -> int:
    """Return how many pairs are together."""
    size = np.bincount(cluster)
    return int((size * (size - 1) // 2).sum())
