"""One row per member: how the battery gets data for it. A new member of the zoo adds a row here.

A `Case` says how to make data from plain codes, so that laws can permute items, annotators, classes and rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpyro.distributions as dist
from scipy import special, stats

from consilience.data import Annotations, Rankings, Ratings
from consilience.errors import InvalidPrior, NotConjugate, UnsupportedRequest

__all__ = ["CASES", "RECORD_CASES", "Case", "RecordCase"]


@dataclass(frozen=True, kw_only=True)
class Case:
    """What the battery needs to know of a member.

    Parameters
    ----------
    rows : the columns ``item, annotator, value`` of a small data set, and ``block`` where it holds rankings.
    sizes : number of ``items``, ``annotators`` and ``classes``.
    options : of the member.
    refuses : degenerate data sets, by name, for which the documented answer is an error, and its class.
    moments : function of (data, options) -> {site: (mean, sd)} of the exact posterior, by brute force.
    certainty : function of (data, options) -> probability of the leading class of each item, by brute force; asked for
        data of at most two classes.
    doubles : option that stands for giving every row that many times, or None.
    """

    rows: Mapping[str, np.ndarray]
    sizes: Mapping[str, int]
    options: Mapping[str, Any] = field(default_factory=dict)
    refuses: Mapping[str, type[Exception]] = field(default_factory=dict)
    moments: Callable[..., Mapping[str, tuple[np.ndarray, np.ndarray]]] | None = None
    certainty: Callable[..., np.ndarray] | None = None
    doubles: str | None = None

    def make(self, contract: type, rows: Mapping[str, Any] | None = None, **names: Any) -> Any:
        """Build the data contract from rows; ``names`` are ids or sizes that replace those of the case."""
        rows = {name: np.asarray(values) for name, values in (rows or self.rows).items()}
        sizes = {f"num_{name}": size for name, size in self.sizes.items()}
        if contract is Annotations:
            sizes["num_labels"] = sizes.pop("num_classes")
            weight = rows.get("weight")
            return Annotations.from_codes(
                rows["item"], rows["annotator"], rows["value"], weight=weight, **(sizes | names)
            )
        if contract is Ratings:
            return Ratings.from_codes(rows["item"], rows["annotator"], rows["value"], **(sizes | names))
        if contract is Rankings:
            return _rankings(rows, sizes | names)
        raise NotImplementedError(f"the battery cannot make {contract.__name__}; teach Case.make")


def _rankings(rows: Mapping[str, np.ndarray], names: Mapping[str, Any]) -> Rankings:
    """Every (item, annotator) pair is one report."""
    pair = np.stack([rows["item"], rows["annotator"]], axis=1)
    reports, report = np.unique(pair, axis=0, return_inverse=True)
    return Rankings.from_codes(*reports.T, np.ravel(report), rows["block"], rows["value"], **names)


# ---- brute force, each member's own ----

GRID = np.linspace(0, 1, 401)


def _simplex() -> tuple[np.ndarray, np.ndarray]:
    """Return midpoints of a grid over the simplex of three classes, and the area of a cell."""
    middle = (GRID[1:] + GRID[:-1]) / 2
    first, share = np.meshgrid(middle, middle, indexing="ij")
    second = (1 - first) * share
    points = np.stack([first, second, 1 - first - second], axis=-1).reshape(-1, 3)
    return points, ((1 - first) * (GRID[1] - GRID[0]) ** 2).ravel()


def _on_simplex(log_density: np.ndarray, points: np.ndarray, area: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations of all classes of one item, and P(leads)."""
    weight = np.exp(log_density - log_density.max()) * area
    weight /= weight.sum()
    mean = weight @ points
    return mean, np.sqrt(weight @ (points - mean) ** 2)


def dirichlet_moments(data: Annotations, options: Mapping[str, Any]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Integrate prior times likelihood over the simplex of three classes, item by item."""
    points, area = _simplex()
    results = []
    for item in range(data.num_items):
        log_density = (options["alpha"] - 1) * np.log(points).sum(-1)
        for label, weight in zip(data.label[data.item == item], data.weight[data.item == item], strict=True):
            log_density += options["reliability"] * weight * np.log(points[:, label])
        results.append(_on_simplex(log_density, points, area))
    return {"plausibility": tuple(np.array(part) for part in zip(*results, strict=True))}


def beta_certainty(data: Annotations, options: Mapping[str, Any]) -> np.ndarray:
    """P(argmax) for two classes: an incomplete beta function."""
    votes = np.zeros((data.num_items, 2))
    np.add.at(votes, (data.item, data.label), options["reliability"] * data.weight)
    a, b = (votes + options["alpha"]).T
    return np.maximum(special.betainc(a, b, 0.5), special.betainc(b, a, 0.5))


def beta_moments(data: Annotations, options: Mapping[str, Any]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Integrate the likelihood of two labels over a line, with a uniform prior."""
    share = (np.arange(20_000) + 0.5) / 20_000
    yes = np.bincount(data.item, data.weight * (data.label == 1), data.num_items)[:, None]
    no = np.bincount(data.item, data.weight * (data.label == 0), data.num_items)[:, None]
    weight = share**yes * (1 - share) ** no
    weight /= weight.sum(axis=1, keepdims=True)
    mean = weight @ share
    return {"share": (mean, np.sqrt((weight * (share - mean[:, None]) ** 2).sum(axis=1)))}


def uniform_certainty(data: Annotations, options: Mapping[str, Any]) -> np.ndarray:
    """P(argmax) of yes-no answers with a uniform prior."""
    return beta_certainty(data, {"reliability": 1.0, "alpha": 1.0})


def tie_certainty(data: Annotations, options: Mapping[str, Any]) -> np.ndarray:
    """P(a label wins the vote), of the label that is most likely to: one over the number of tied labels."""
    votes = np.zeros((data.num_items, data.num_labels))
    np.add.at(votes, (data.item, data.label), data.weight)
    return 1 / (votes == votes.max(axis=1, keepdims=True)).sum(axis=1)


def prirn_moments(data: Rankings, options: Mapping[str, Any]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Beta marginals of the Dirichlet(γ IRN), with IRN by loops over reports, blocks and classes (equation 14)."""
    weight = np.zeros((data.num_items, data.num_classes))
    for report, block, entry in zip(data.report, data.block, data.entry, strict=True):
        size = np.sum((data.report == report) & (data.block == block))
        weight[data.report_item[report], data.entry_class[entry]] += 1 / ((block + 1) * size)
    weight /= weight.sum(1, keepdims=True)
    a = options["reliability"] * weight[data.entry_item, data.entry_class]
    marginal = stats.beta(a, options["reliability"] - a)
    return {"plausibility": (marginal.mean(), marginal.std())}


def normal_moments(data: Ratings, options: Mapping[str, Any]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Integrate the joint density over a grid of means and log variances, with the default prior."""
    posterior = _normal_grid(data)
    moments = {}
    for site, values in (("mean", posterior["mean"]), ("variance", posterior["variance"])):
        mean = (posterior["weight"] * values).sum((1, 2))
        square = (posterior["weight"] * (values - mean[:, None, None]) ** 2).sum((1, 2))
        moments[site] = mean, np.sqrt(square)
    return moments


def normal_certainty(data: Ratings, options: Mapping[str, Any]) -> np.ndarray:
    """P(mean on the more probable side), on the same grid."""
    posterior = _normal_grid(data)
    below = (posterior["weight"] * (posterior["mean"] < options["threshold"])).sum((1, 2))
    return np.maximum(below, 1 - below)


def _normal_grid(data: Ratings) -> dict[str, np.ndarray]:
    import jax

    from consilience.models.normal_inverse_gamma import moments

    with jax.enable_x64(True):
        prior = moments(data)
    location, strength, shape, scale = (float(value) for value in prior)
    mean = np.linspace(-12, 12, 2401)[:, None]  # the threshold lies between two nodes
    log_variance = np.linspace(-8, 8, 321)[None, :]
    variance = np.exp(log_variance)
    log_density = stats.invgamma(shape, scale=scale).logpdf(variance) + log_variance
    log_density = log_density + stats.norm(location, np.sqrt(variance / strength)).logpdf(mean)
    weights = []
    for item in range(data.num_items):
        total = log_density.copy()
        for rating in data.rating[data.item == item]:
            total += stats.norm(mean, np.sqrt(variance)).logpdf(rating)
        weight = np.exp(total - total.max())
        weights.append(weight / weight.sum())
    return {"mean": mean + 0 * variance, "variance": variance + 0 * mean, "weight": np.array(weights)}


# ---- the rows ----

_LABELS = {
    "item": np.array([0, 0, 0, 1, 1, 2, 2, 2, 3]),
    "annotator": np.array([0, 1, 2, 0, 1, 0, 1, 2, 2]),
    "value": np.array([0, 0, 1, 2, 1, 2, 2, 2, 0]),
}
_RATINGS = {**_LABELS, "value": np.array([1.0, 2.0, 0.5, -1.0, 0.5, -2.0, -2.5, -1.0, 0.3])}
_RANKINGS = {
    "item": np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2]),
    "annotator": np.array([0, 0, 0, 1, 0, 1, 1, 2, 2, 2]),
    "value": np.array([0, 1, 2, 1, 3, 3, 0, 1, 2, 3]),
    "block": np.array([0, 1, 1, 0, 0, 0, 1, 0, 0, 0]),
}

CASES: dict[str, Case] = {
    "dirichlet": Case(
        rows=_LABELS, sizes={"items": 4, "annotators": 3, "classes": 3}, options={"reliability": 1.5, "alpha": 1.3},
        moments=dirichlet_moments, certainty=beta_certainty, doubles="reliability",
    ),
    "yes-no": Case(
        rows={**_LABELS, "value": np.minimum(_LABELS["value"], 1)},
        sizes={"items": 4, "annotators": 3, "classes": 2}, moments=beta_moments, certainty=uniform_certainty,
        refuses=dict.fromkeys(("one class", "an unseen class", "a million classes"), UnsupportedRequest),
    ),
    "normal-inverse-gamma": Case(
        rows=_RATINGS, sizes={"items": 4, "annotators": 3}, options={"threshold": 0.005},
        moments=normal_moments, certainty=normal_certainty,
    ),
    "majority-vote": Case(
        rows=_LABELS, sizes={"items": 4, "annotators": 3, "classes": 3}, certainty=tie_certainty,
    ),
    "mace": Case(rows=_LABELS, sizes={"items": 4, "annotators": 3, "classes": 3}, options={"dependence": 0.0}),
    "dawid-skene": Case(
        rows=_LABELS, sizes={"items": 4, "annotators": 3, "classes": 3}, options={"dependence": 0.0},
        refuses={"a million classes": UnsupportedRequest},
    ),
    "one-coin": Case(
        rows=_LABELS, sizes={"items": 4, "annotators": 3, "classes": 3}, options={"dependence": 0.0},
        refuses={"one class": UnsupportedRequest},
    ),
    "mpa": Case(rows=_LABELS, sizes={"items": 4, "annotators": 3, "classes": 3}),
    "glad": Case(
        rows=_LABELS, sizes={"items": 4, "annotators": 3, "classes": 3}, refuses={"one class": UnsupportedRequest},
    ),
    "irn": Case(
        rows=_RANKINGS, sizes={"items": 3, "annotators": 3, "classes": 4},
        refuses={"an item without annotations": UnsupportedRequest},
    ),
    "prirn": Case(
        rows=_RANKINGS, sizes={"items": 3, "annotators": 3, "classes": 4}, options={"reliability": 8.0},
        moments=prirn_moments, refuses={"an item without annotations": UnsupportedRequest},
    ),
    "plackett-luce": Case(
        rows=_RANKINGS, sizes={"items": 3, "annotators": 3, "classes": 5}, options={"reliability": 2.0},
    ),
}  # fmt: skip
"""The registered members' rows, by name."""


# ---- members whose data are records ----


@dataclass(frozen=True, kw_only=True)
class RecordCase:
    """What the battery needs to know of a member that links records.

    Parameters
    ----------
    options : of the member.
    other_priors : function of the member -> priors that change the answer.
    refuses_prior : function of the member -> priors that it does not take, and the class of the error.
    refuses : degenerate data sets, by name, for which the documented answer is an error, and its class.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    other_priors: Callable[[Any], Any]
    refuses_prior: tuple[Callable[[Any], Any], type[Exception]]
    refuses: Mapping[str, type[Exception]] = field(default_factory=dict)


RECORD_CASES: dict[str, RecordCase] = {
    "block-linkage": RecordCase(
        other_priors=lambda member: member.priors(distortion=dist.Beta(1.0, 200.0)),
        refuses_prior=(lambda member: member.priors(distortion=dist.Uniform(0.0, 1.0)), NotConjugate),
    ),
    "dirichlet-entity": RecordCase(
        other_priors=lambda member: member.priors(concentration=0.4),
        refuses_prior=(lambda member: member.priors(concentration=np.ones(99)), InvalidPrior),
    ),
    "hit-miss": RecordCase(
        options={"chains": 1, "warmup": 100},
        other_priors=lambda member: member.priors(distortion=dist.Beta(50.0, 50.0)),
        refuses_prior=(lambda member: member.priors(distortion=dist.Uniform(0.0, 1.0)), NotConjugate),
        refuses={"a million values": UnsupportedRequest},
    ),
}
"""The registered members' rows, by name."""
