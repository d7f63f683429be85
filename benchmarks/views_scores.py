"""What `benchmarks views` measures of one data set: views, grouping of experts, answers held out, calibration.

Labels from three sources are never mixed in one row: those of expert-views that have seen answers about the item, those
that it predicts from features alone, and those of the baselines.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import consilience as cs
from benchmarks import clustering_baselines as baselines
from benchmarks.views_data import Known
from consilience.data import Constraints
from consilience.evaluation import views
from consilience.evaluation.partitions import contingency, score
from consilience.models.expert_views.simulation import Experts

OURS, FROM_FEATURES = "expert-views", "expert-views, from features"
META = "meta clustering + ITML"

_SHARE_HELD_OUT = 0.2
_PAIRS = 20_000


def fitted(data: Constraints, clusters: int, seed: int = 0, restarts: int = 20, **settings: Any) -> tuple[Any, float]:
    """Return a fit, and the CPU seconds that it took, compilation included."""
    began = time.process_time()
    with warnings.catch_warnings():
        # What is thin in these data, and how far restarts agree, is what the benchmark reports.
        warnings.simplefilter("ignore")
        fit = cs.fit("expert-views", data, clusters=clusters, restarts=restarts, seed=seed, **settings)
    return fit, time.process_time() - began


def ours(known: Known, data: Constraints, experts: Experts, seed: int) -> tuple[list[dict[str, Any]], Any]:
    """Return rows of expert-views, with labels that saw answers and labels from features; and the fit."""
    fit, seconds = fitted(data, max(known.clusters), seed)
    truth = fit.truth
    own = views.view_of_truth(truth.view_probability, experts.view_of_expert)
    seen = truth.cluster_probability.argmax(axis=2)
    seen[truth.silent] = -1
    predicted = truth.memberships(truth.standardised(known.feature)).argmax(axis=2)
    grouping = views.grouping_scores(
        truth.view_probability.argmax(axis=1)[None], views.same_view(truth.view_probability), experts.view_of_expert
    )
    shared = {
        "grouping ARI": float(grouping.ari[0]), "views": int(grouping.num_views[0]),
        "grouping log score": grouping.log_score, "CPU s": seconds,
    }  # fmt: skip
    return [
        _row(name, np.stack([label[:, view] for view in own]), known) | shared
        for name, label in ((OURS, seen), (FROM_FEATURES, predicted))
    ], fit


def single_views(
    known: Known, data: Constraints, experts: Experts, seed: int, methods: list[str]
) -> Iterator[dict[str, Any]]:
    """Yield rows of the methods of one view, which are told the groups of experts, and of meta clustering."""
    groups = [np.flatnonzero(experts.view_of_expert == view) for view in range(len(known.label))]
    for name in methods:
        began = time.process_time()
        labels = [
            baselines.METHODS[name](baselines.of_experts(data, group), clusters, seed)
            for group, clusters in zip(groups, known.clusters, strict=True)
        ]
        yield _row(f"{name}, groups known", np.stack(labels), known) | {"CPU s": time.process_time() - began}
    if len(known.label) > 1:
        yield from _meta_clustering(known, data, experts, seed)
    began = time.process_time()
    labels = [baselines.k_means(known.feature, clusters, seed) for clusters in known.clusters]
    yield _row("k-means", np.stack(labels), known) | {"CPU s": time.process_time() - began}
    began = time.process_time()
    labels = [baselines.logistic_regression(known.feature, label) for label in known.label]
    yield _row("logistic regression on the truth", np.stack(labels), known) | {"CPU s": time.process_time() - began}


def _meta_clustering(known: Known, data: Constraints, experts: Experts, seed: int) -> Iterator[dict[str, Any]]:
    """Yield rows of three similarities of experts; the best of them, of their clusterings, goes on to find views."""
    clusters = max(known.clusters)
    for name, measure in (("agreement", baselines.agreement_rate), ("kappa", baselines.kappa)):
        group = baselines.meta_clustering(measure(data), seed)
        yield {"method": f"meta clustering, {name}", **_grouping(group, experts)}
    began = time.process_time()
    similarity, _ = baselines.by_clusterings(data, clusters, seed)
    group = baselines.meta_clustering(similarity, seed)
    number = np.unique(group)
    found = [baselines.itml(baselines.of_experts(data, np.flatnonzero(group == one)), clusters, seed) for one in number]
    own = views.view_of_truth((group[:, None] == number).astype(float), experts.view_of_expert)
    row = _row(META, np.stack([found[view] for view in own]), known)
    yield row | _grouping(group, experts) | {"CPU s": time.process_time() - began}


def _grouping(group: np.ndarray, experts: Experts) -> dict[str, Any]:
    ari = score(contingency(group[None], experts.view_of_expert[None]), "ari")
    return {"grouping ARI": float(ari[0]), "views": len(np.unique(group))}


def _row(name: str, label: np.ndarray, known: Known) -> dict[str, Any]:
    """Return scores of one clustering for each true view, of the items that have a label."""
    row: dict[str, Any] = {"method": name}
    for view, (found, truth) in enumerate(zip(label, known.label, strict=True), 1):
        row[f"NMI {view}"] = one_view(found, truth, "nmi")
        row[f"AMI {view}"] = one_view(found, truth, "ami")
    return row | {"labelled": float((label >= 0).mean())}


def one_view(found: np.ndarray, truth: np.ndarray, metric: str) -> float:
    """Score one clustering against another."""
    return float(views.view_scores(found[None, None], truth[None], metric)[0, 0, 0])


def held_out(known: Known, data: Constraints, experts: Experts, seed: int) -> Iterator[dict[str, Any]]:
    """Fit all but a fifth of the pairs, and yield mean scores of the answers to these, by what predicts them."""
    held = views.held_out_pairs(data.item_a, data.item_b, _SHARE_HELD_OUT, seed)
    trained, rest = _rows(data, ~held), _rows(data, held)
    fit, _ = fitted(trained, max(known.clusters), seed)
    truth, pair, expert = fit.truth, (rest.item_a, rest.item_b), rest.expert
    accuracies = [_means(getattr(fit.posterior, site)) for site in ("sensitivity", "specificity")]
    feature = truth.memberships(truth.standardised(known.feature))
    in_truth = (known.label[:, pair[0]] == known.label[:, pair[1]]).T.astype(float)
    view = np.eye(len(known.label))[experts.view_of_expert]
    probabilities = {
        OURS: views.answer_probability(truth.pair_probability(*pair), truth.view_probability, *accuracies, expert),
        FROM_FEATURES: views.answer_probability(
            views.together(feature, *pair), truth.view_probability, *accuracies, expert
        ),
        "own share": views.own_share(trained.expert, trained.together, data.num_experts)[expert],
        "truth known": views.answer_probability(in_truth, view, experts.sensitivity, experts.specificity, expert),
    }
    for name, probability in probabilities.items():
        scores = views.answer_scores(probability, rest.together)
        yield {"probability": name, "log score": float(scores.log_score.mean()), "Brier": float(scores.brier.mean())}


def _rows(data: Constraints, kept: np.ndarray) -> Constraints:
    columns = {name: getattr(data, name)[kept] for name in ("expert", "item_a", "item_b", "together")}
    return data.replace(**columns, num_constraints=int(kept.sum()))


def _means(parameters: Any) -> np.ndarray:
    values = np.asarray(parameters, float)
    return values[:, 0] / values.sum(axis=1)


def calibration(known: Known, fit: Any, experts: Experts, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how probably random judged items are together in the views of the experts, and whether they are."""
    truth, random = fit.truth, np.random.default_rng(seed)
    own = views.view_of_truth(truth.view_probability, experts.view_of_expert)
    one, other = random.choice(truth.judged, (2, _PAIRS))
    one, other = one[one != other], other[one != other]
    probability = truth.pair_probability(one, other)
    return (
        np.concatenate([probability[:, view] for view in own]),
        np.concatenate([label[one] == label[other] for label in known.label]),
    )
