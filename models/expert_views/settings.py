"""The settings of `expert-views`: how many views and clusters, which kind of experts, how they are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.errors import UnsupportedRequest
from consilience.models import settings
from consilience.models.settings import REQUIRED, setting
from consilience.notes import Remedy

_MOST_CLUSTERS = int(np.iinfo(np.int8).max)
"""Of a view: the numbers of clusters are kept in a byte for each item and draw."""

EXPERTS = ("two-coin", "symmetric", "per-view", "spammer")
"""Kinds of experts; `consilience.models.expert_views.likelihood` has the sites that are drawn of each."""

FORMS = ("exact", "pair", "enumerate")
"""What may become of the clusters."""


@dataclass(frozen=True, kw_only=True)
class Settings(settings.Settings):
    """Settings of `expert-views`; see the fields."""

    clusters: int | str = setting(
        REQUIRED, "most clusters of a view; auto takes the number of 2, 3, … by its evidence", words=("auto",),
        at_least=2.0,
    )  # fmt: skip
    views: int = setting(0, "most views; 0 stands for half as many as experts, and one more", at_least=0.0)
    ladders: int = setting(2, "of the tempered sampler, each with a start of its own", at_least=1.0)
    rungs: int = setting(0, "of a ladder; 0 adapts them, and 1 is a chain without tempering", at_least=0.0)
    restarts: int = setting(20, "of coordinate ascent; the best one is kept", at_least=1.0)
    responsibilities: str = setting(
        "free", "probabilities of clusters in cavi: of each item by itself, or those of the mean weights, as in the "
        "authors' program", choices=("free", "tied"),
    )  # fmt: skip
    bound: str = setting(
        "tilted", "of the expected log-sum-exp in cavi: a close one, or the paper's", choices=("tilted", "jensen")
    )
    experts: str = setting(
        "two-coin", "how they err: in two ways, in one, in ways of each view, or by guessing what they do not know",
        choices=EXPERTS,
    )  # fmt: skip
    cluster: str = setting(
        "exact", "for nuts and svi, which cannot draw clusters: pair is another model, in which every answer draws the "
        "clusters of its items anew; enumerate sums over all clusters of a handful of items", choices=FORMS,
    )  # fmt: skip
    standardize: int = setting(1, "0 takes features as they stand, such as those with two values", choices=(0, 1))
    concentration: float | None = setting(
        None, "of the sticks; the more, the more views (1)", sets=("concentration", float)
    )
    weight_scale: float | None = setting(
        None, "standard deviation of the weights, per standard deviation of a feature (1)",
        sets=("weight_scale", float),
    )  # fmt: skip

    def sizes(self, data: Any) -> dict[str, int]:
        """Return how many views there may be, and clusters of each.

        Raises
        ------
        UnsupportedRequest : there are more views than experts.
        """
        if self.views > data.num_experts > 0:
            raise UnsupportedRequest(
                f"there are {data.num_experts} experts, each with one view, and views is {self.views}; give "
                f"{data.num_experts} at most"
            )
        usual = min(data.num_experts, max(2, (data.num_experts + 1) // 2 + 1))
        found: dict[str, Any] = {"view": self.views or max(1, usual), "cluster": self.clusters}
        return found


def check_clusters(clusters: int | str, num_judged: int, what: str = "the density") -> None:
    """Refuse more clusters than there are items to be in them, or than their numbers have room for.

    Parameters
    ----------
    what : has no evidence, by which numbers of clusters could be compared.

    Raises
    ------
    UnsupportedRequest : there are more clusters than judged items, or more than 127, or they are to be compared.
    """
    if isinstance(clusters, str):
        text = f"{{clusters}} compares evidence, which {what} does not have; use {{method}}, or give a number"
        raise UnsupportedRequest(text, Remedy("clusters", "auto"), Remedy("method", "gibbs"))
    if clusters > _MOST_CLUSTERS:
        raise UnsupportedRequest(f"clusters is {clusters}; a view may have {_MOST_CLUSTERS} of them at most")
    if clusters > num_judged:
        raise UnsupportedRequest(
            f"clusters is {clusters}, and experts judged {num_judged} items; give {num_judged} clusters of a view at "
            "most"
        )
