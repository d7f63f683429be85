"""What `benchmarks views` measures of one data set: views, grouping of experts, answers held out, calibration.

Labels from three sources are never mixed in one row: those of expert-views that have seen answers about the item, those
that it predicts from features alone, and those of the baselines. A true view is compared with the view that holds most
of its experts, since numbers of views have no meaning.

References
----------
Vinh, Epps and Bailey (2010), Journal of Machine Learning Research 11: adjusted mutual information.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

import consilience as cs
from benchmarks.views_data import Known
from benchmarks.views_experts import Experts
from consilience.arrays import Bool, Float, Int
from consilience.data import Constraints
from consilience.evaluation.clustering import baselines
from consilience.evaluation.partitions import contingency, score

OURS, FROM_FEATURES = "expert-views", "expert-views, from features"
META = "meta clustering + ITML"

_SHARE_HELD_OUT = 0.2
_PAIRS = 20_000

# Probabilities below this are scored as this: no finite number of draws tells an event of it from an impossible one.
_LEAST_PROBABILITY = 1e-10


def fitted(
    data: Constraints, clusters: int, seed: int = 0, restarts: int = 20, method: str = "cavi", **settings: Any
) -> tuple[Any, float]:
    """Return a fit, and the CPU seconds that it took, compilation included."""
    began = time.process_time()
    with warnings.catch_warnings():
        # What is thin in these data, and how far restarts agree, is what the benchmark reports.
        warnings.simplefilter("ignore")
        fit = cs.fit("expert-views", data, method=method, clusters=clusters, restarts=restarts, seed=seed, **settings)
    return fit, time.process_time() - began


def ours(known: Known, data: Constraints, experts: Experts, seed: int) -> tuple[list[dict[str, Any]], Any]:
    """Return rows of expert-views, with labels that saw answers and labels from features; and the fit."""
    fit, seconds = fitted(data, max(known.clusters), seed)
    truth = fit.truth
    own = view_of_truth(truth.view_probability, experts.view_of_expert)
    seen = truth.cluster_probability.argmax(axis=2)
    seen[truth.silent] = -1
    predicted = truth.memberships(truth.standardised(known.feature)).argmax(axis=2)
    shared = {
        **_grouping(truth.view_probability.argmax(axis=1), experts),
        "grouping log score": grouping_log_score(truth.view_probability, experts.view_of_expert), "CPU s": seconds,
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
    own = view_of_truth((group[:, None] == number).astype(float), experts.view_of_expert)
    row = _row(META, np.stack([found[view] for view in own]), known)
    yield row | _grouping(group, experts) | {"CPU s": time.process_time() - began}


def _grouping(group: np.ndarray, experts: Experts) -> dict[str, Any]:
    ari = score(contingency(group[None], experts.view_of_expert[None]), "ari")
    return {"grouping ARI": float(ari[0]), "views": len(np.unique(group))}


def _row(name: str, label: np.ndarray, known: Known) -> dict[str, Any]:
    """Return scores of one clustering for each true view, of the items that have a label."""
    row: dict[str, Any] = {"method": name}
    for view, (found, truth) in enumerate(zip(label, known.label, strict=True), 1):
        row[f"NMI {view}"] = mutual_information(found, truth)
        row[f"AMI {view}"] = adjusted_mutual_information(found, truth)
    return row | {"labelled": float((label >= 0).mean())}


def view_of_truth(
    view_probability: Float[np.ndarray, "expert view"], view_of_expert: Int[np.ndarray, " expert"]
) -> Int[np.ndarray, " truth"]:
    """Return for each true view the view that most of its experts are thought to have, by sums of probabilities."""
    member = np.eye(int(view_of_expert.max()) + 1)[view_of_expert]
    return (member.T @ view_probability).argmax(axis=1)


def mutual_information(found: Int[np.ndarray, " item"], truth: Int[np.ndarray, " item"]) -> float:
    """Return the normalised mutual information (NMI) of two clusterings of the items that have a label, not -1."""
    return float(score(contingency(found[None], truth[None]), "nmi")[0])


def adjusted_mutual_information(found: Int[np.ndarray, " item"], truth: Int[np.ndarray, " item"]) -> float:
    """Return the mutual information of two clusterings beyond chance, as a share of what can be had.

    Chance is the mean over all ways to put the items that have a label, not -1, into clusters of the same sizes. It is
    1 for equal clusterings, and 0 on average for unrelated ones.
    """
    kept = (found >= 0) & (truth >= 0)
    if not kept.any():
        return float("nan")
    table = stats.contingency.crosstab(found[kept], truth[kept]).count
    number, one, other = table.sum(), table.sum(axis=1), table.sum(axis=0)

    def shares(both: np.ndarray) -> np.ndarray:
        return special.xlogy(both / number, number * both / (one[:, None, None] * other[:, None]))

    information, best = shares(table[..., None]).sum(), (stats.entropy(one) + stats.entropy(other)) / 2
    both = np.arange(min(one.max(), other.max()) + 1)
    chance = (stats.hypergeom.pmf(both, number, one[:, None, None], other[:, None]) * shares(both)).sum()
    # Equal clusterings that leave nothing to chance, such as one cluster, are 0 / 0.
    return 1.0 if np.isclose(best, chance) else float((information - chance) / (best - chance))


def grouping_log_score(
    view_probability: Float[np.ndarray, "expert view"], truth: Int[np.ndarray, " expert"]
) -> float:
    """Return the mean over pairs of experts of the log probability of what is true, the same view or not; 0 is best."""
    one, other = np.triu_indices(len(truth), 1)
    probability = (view_probability[one] * view_probability[other]).sum(axis=1)
    return answer_scores(probability, truth[one] == truth[other])["log score"]


# Answers and pairs ----------------------------------------------------------------------------------------------------


def held_out(known: Known, data: Constraints, experts: Experts, seed: int) -> Iterator[dict[str, Any]]:
    """Fit all but a fifth of the pairs, and yield mean scores of the answers to these, by what predicts them."""
    held = held_out_pairs(data.item_a, data.item_b, _SHARE_HELD_OUT, seed)
    trained, rest = _rows(data, ~held), _rows(data, held)
    fit, _ = fitted(trained, max(known.clusters), seed)
    truth, pair, expert = fit.truth, (rest.item_a, rest.item_b), rest.expert
    accuracies = [_means(getattr(fit.posterior, site)) for site in ("sensitivity", "specificity")]
    feature = truth.memberships(truth.standardised(known.feature))
    from_features = np.einsum("pvk,pvk->pv", feature[rest.item_a], feature[rest.item_b])
    in_truth = (known.label[:, pair[0]] == known.label[:, pair[1]]).T.astype(float)
    view = np.eye(len(known.label))[experts.view_of_expert]
    probabilities = {
        OURS: answer_probability(truth.pair_probability(*pair), truth.view_probability, *accuracies, expert),
        FROM_FEATURES: answer_probability(from_features, truth.view_probability, *accuracies, expert),
        "own share": own_share(trained.expert, trained.together, data.num_experts)[expert],
        "truth known": answer_probability(in_truth, view, experts.sensitivity, experts.specificity, expert),
    }
    for name, probability in probabilities.items():
        yield {"probability": name, **answer_scores(probability, rest.together)}


def held_out_pairs(
    item_a: Int[np.ndarray, " answer"], item_b: Int[np.ndarray, " answer"], share: float, seed: int = 0
) -> Bool[np.ndarray, " answer"]:
    """Choose a share of the pairs at random, and return which answers are to them.

    All answers to a pair go together, since one expert's tells much of another's; its items may be in either order.
    """
    pairs = np.sort(np.stack([item_a, item_b]), axis=0)
    distinct, place = np.unique(pairs, axis=1, return_inverse=True)
    number = distinct.shape[1]
    chosen = np.zeros(number, bool)
    chosen[np.random.default_rng(seed).permutation(number)[: round(share * number)]] = True
    return chosen[place.ravel()]


def answer_probability(
    pair_together: Float[np.ndarray, "answer view"], view_probability: Float[np.ndarray, "expert view"],
    sensitivity: Float[np.ndarray, " expert"], specificity: Float[np.ndarray, " expert"],
    expert: Int[np.ndarray, " answer"],
) -> Float[np.ndarray, " answer"]:  # fmt: skip
    r"""Return how probably experts say that pairs are together.

    That is :math:`\sum_g \phi_g [A_g \alpha + (1 - A_g)(1 - \beta)]`, with the probability A that the pair of an
    answer is together in view g.
    """
    sensitive, specific = sensitivity[expert, None], specificity[expert, None]
    says_together = pair_together * sensitive + (1 - pair_together) * (1 - specific)
    return (view_probability[expert] * says_together).sum(axis=1)


def answer_scores(probability: Float[np.ndarray, " answer"], answer: np.ndarray) -> dict[str, float]:
    """Return mean log score and Brier score of the probabilities that answers are together; 0 is best.

    Both are proper: nothing but the true probability has a better expectation.
    """
    given = np.where(answer, probability, 1 - probability)
    log_score = np.log(np.maximum(given, _LEAST_PROBABILITY)).mean()
    return {"log score": float(log_score), "Brier": float(((1 - given) ** 2).mean())}


def own_share(expert: Int[np.ndarray, " answer"], answer: np.ndarray, num_experts: int) -> Float[np.ndarray, " expert"]:
    """Return the share of each expert's answers that say together, half an answer of either kind added: a baseline."""
    return (np.bincount(expert, answer, num_experts) + 0.5) / (np.bincount(expert, minlength=num_experts) + 1)


def _rows(data: Constraints, kept: np.ndarray) -> Constraints:
    columns = {name: getattr(data, name)[kept] for name in ("expert", "item_a", "item_b", "together")}
    return data.replace(**columns, num_constraints=int(kept.sum()))


def _means(parameters: Any) -> np.ndarray:
    values = np.asarray(parameters, float)
    return values[:, 0] / values.sum(axis=1)


def calibration(known: Known, fit: Any, experts: Experts, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how probably random judged items are together in the views of the experts, and whether they are."""
    truth, random = fit.truth, np.random.default_rng(seed)
    own = view_of_truth(truth.view_probability, experts.view_of_expert)
    one, other = random.choice(truth.judged, (2, _PAIRS))
    one, other = one[one != other], other[one != other]
    probability = truth.pair_probability(one, other)
    return (
        np.concatenate([probability[:, view] for view in own]),
        np.concatenate([label[one] == label[other] for label in known.label]),
    )


class PairReliability(NamedTuple):
    """Pairs by how probably they are together, in ten bins of equal width.

    Parameters
    ----------
    number : pairs in each bin.
    probability : their mean probability; NaN in an empty bin.
    together : the share of them that is together.
    error : mean distance of the two over pairs, the expected calibration error.
    """

    number: Int[np.ndarray, " bin"]
    probability: Float[np.ndarray, " bin"]
    together: Float[np.ndarray, " bin"]
    error: float


def reliability_of_pairs(probability: Float[np.ndarray, " pair"], truth: Bool[np.ndarray, " pair"]) -> PairReliability:
    """Compare probabilities of being together with what is true."""
    bin_ = np.clip((probability * 10).astype(int), 0, 9)
    number = np.bincount(bin_, minlength=10)
    with np.errstate(invalid="ignore"):
        mean, share = (np.bincount(bin_, values, 10) / number for values in (probability, truth))
    error = np.nansum(number * np.abs(mean - share)) / max(number.sum(), 1)
    return PairReliability(number, mean, share, float(error))
