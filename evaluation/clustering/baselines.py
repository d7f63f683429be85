r"""What views of experts are compared with: clusterings of items from pairs that experts judged, one view at a time.

Each takes the answers of experts who are known to judge the same view, `of_experts`, and the right number of clusters.
Only `meta_clustering` looks for the groups of experts. Features are taken as they stand: standardise them first. The
methods are written from their papers, since packages that have them do not run on current versions of what they need,
or refuse answers that contradict each other, as those of people do. Spectral clustering of features and logistic
regression are those of scikit-learn (the extra `clustering`).

* `itml`: a metric under which items that are together are near and others far (Davis and others 2007), then k-means.
* `mpc_k_means`: k-means that pays for pairs that it breaks, and learns a metric (Bilenko and others 2004).
* `cspa`: spectral clustering of how often items are said to be together (Strehl and Ghosh 2002).
* `semi_crowd`: the same shares, doubtful ones completed at low rank, and a metric from them (Yi and others 2012).
* `k_means`, `nearest_spectral` and `logistic_regression` (which sees the true labels): the floor, and the ceiling of
  what features tell.

CSPA knows of no items but those that somebody put together with others: the label of the rest is -1. All random starts
are of the seed given.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse
from scipy.spatial.distance import pdist

from consilience.arrays import Float, Int
from consilience.data import Constraints
from consilience.data.codes import codes_of
from consilience.errors import NotInstalled, UnknownName, UnsupportedRequest
from consilience.evaluation.partitions import contingency, score

_STARTS = 10
_NEIGHBOURS = 10
_PASSES = 3
_FEWEST_SHARED = 20
_MOST_FOR_PERCENTILES = 2000


# By name ------------------------------------------------------------------------------------------------------------


def baseline(
    name: str, data: Constraints, clusters: int, *, experts: Any = None, standardize: bool = True, seed: int = 0,
    truth: Any = None,
) -> Int[np.ndarray, " item"]:  # fmt: skip
    """Cluster items by a method of one view.

    Parameters
    ----------
    name : str
        Itml, mpc-k-means, cspa or semi-crowd, which read the answers; k-means or spectral, of the features alone; or
        logistic-regression, of features and the truth: what features tell at most. The last two are scikit-learn's.
    data : Constraints
        Answers and features.
    clusters : int
        How many.
    experts : sequence, optional
        Ids or codes of those whose answers count, who should have one view; all by default.
    standardize : bool, default True
        Whether features are brought to mean 0 and standard deviation 1.
    seed : int, default 0
        Of random starts.
    truth : array of int, shape (item,), optional
        The true cluster of each item, from 0, in the order of the data; -1 where it is not known. For logistic-
        regression alone.

    Returns
    -------
    int array ``(item,)``
        The cluster of each item, in the order of the data; -1 where a method knows nothing of an item.

    Raises
    ------
    UnknownName : there is no such method or expert.
    UnsupportedRequest : answers are grades, or some say nothing; or a truth is given to another method, or to none.
    NotInstalled : the method is scikit-learn's, and that is not there.

    Examples
    --------
    >>> import consilience as cs
    >>> label = cs.baseline("itml", cs.example("answers.csv"), clusters=3)
    >>> len(label), len(set(label.tolist()))
    (60, 3)
    """
    methods: dict[str, Any] = {
        "cspa": cspa, "itml": itml, "k-means": lambda data, *rest: k_means(data.feature, *rest),
        "mpc-k-means": mpc_k_means, "semi-crowd": semi_crowd,
        "spectral": lambda data, *rest: nearest_spectral(data.feature, *rest),
        "logistic-regression": lambda data, *_: logistic_regression(data.feature, np.asarray(truth)),
    }  # fmt: skip
    if name not in methods:
        raise UnknownName(f"no baseline is called '{name}'; there are {', '.join(methods)}")
    if (truth is not None) != (name == "logistic-regression"):
        raise UnsupportedRequest("logistic-regression needs truth=, the cluster of each item; no other baseline does")
    if data.num_answers > 2:
        raise UnsupportedRequest("baselines read answers together and apart; leave out grades and dont_know")
    if experts is not None:
        data = of_experts(data, codes_of(list(experts), data.experts, data.num_experts, "expert"))
    if standardize and data.num_features:
        spread = data.feature.std(axis=0)
        data = data.replace(feature=(data.feature - data.feature.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
    return methods[name](data, clusters, seed)


# Answers --------------------------------------------------------------------------------------------------------------


def of_experts(data: Constraints, experts: Int[np.ndarray, " chosen"]) -> Constraints:
    """Return the answers of some experts; codes stay."""
    own = np.isin(data.expert, experts)
    columns = {name: getattr(data, name)[own] for name in ("expert", "item_a", "item_b", "together")}
    return data.replace(**columns, num_constraints=int(own.sum()))


def shares(data: Constraints) -> tuple[Int[np.ndarray, "2 pair"], Float[np.ndarray, " pair"]]:
    """Return the pairs that somebody judged, and the share of the answers that say together."""
    code = data.item_a.astype(np.int64) * data.num_items + data.item_b
    pair, place, number = np.unique(code, return_inverse=True, return_counts=True)
    return np.stack(np.divmod(pair, data.num_items)), np.bincount(place, data.together) / number


def majority(data: Constraints) -> tuple[Int[np.ndarray, "2 pair"], np.ndarray]:
    """Return one answer for each pair, that of most; pairs whose answers are tied are left out."""
    pair, share = shares(data)
    kept = share != 0.5
    return pair[:, kept], share[kept] > 0.5


# k-means --------------------------------------------------------------------------------------------------------------


def k_means(
    feature: Float[np.ndarray, "item feature"], num_clusters: int, seed: int = 0
) -> Int[np.ndarray, " item"]:
    """Return the best of thirty runs of Lloyd's steps from k-means++ centres; some clusters may stay empty."""
    random = np.random.default_rng(seed)
    found = [_lloyd(feature, _spread_centres(feature, num_clusters, random)) for _ in range(3 * _STARTS)]
    return min(found, key=lambda one: one[1])[0]


def _squared_distances(feature: np.ndarray, centre: np.ndarray) -> np.ndarray:
    return ((feature[:, None] - centre) ** 2).sum(axis=-1)


def _spread_centres(feature: np.ndarray, num_clusters: int, random: np.random.Generator) -> np.ndarray:
    """Draw items as centres, each in proportion to its squared distance from the nearest one so far."""
    centre = feature[random.integers(len(feature), size=1)]
    while len(centre) < num_clusters:
        weight = _squared_distances(feature, centre).min(axis=1) + 1e-300
        centre = np.concatenate([centre, feature[random.choice(len(feature), 1, p=weight / weight.sum())]])
    return centre


def _lloyd(feature: np.ndarray, centre: np.ndarray, most_steps: int = 300) -> tuple[np.ndarray, float]:
    """Return labels, and the sum of squared distances from the centres."""
    label = np.full(len(feature), -1)
    for _ in range(most_steps):
        distance = _squared_distances(feature, centre)
        before, label = label, distance.argmin(axis=1)
        if (label == before).all():
            break
        centre = _means(feature, label, centre)
    return label, float(distance.min(axis=1).sum())


def _means(feature: np.ndarray, label: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Return the means of clusters; an empty one stays where it was."""
    member = np.eye(len(before))[label]
    size = member.sum(axis=0)[:, None]
    return np.where(size > 0, member.T @ feature / np.maximum(size, 1), before)


# Of scikit-learn -----------------------------------------------------------------------------------------------------


def logistic_regression(
    feature: Float[np.ndarray, "item feature"], label: Int[np.ndarray, " item"]
) -> Int[np.ndarray, " item"]:
    """Return what a multinomial logistic regression on true labels makes of the features of all items.

    Weights have standard normal priors, as in the model, and offsets have none. Items with the label -1 have none.

    Raises
    ------
    NotInstalled : scikit-learn is not there.
    """
    known = np.asarray(label) >= 0
    fitted = _scikit_learn("linear_model").LogisticRegression(max_iter=1000).fit(feature[known], label[known])
    return np.asarray(fitted.predict(feature), int)


def nearest_spectral(
    feature: Float[np.ndarray, "item feature"], num_clusters: int, seed: int = 0
) -> Int[np.ndarray, " item"]:
    """Return a spectral clustering of the graph of the items' ten nearest neighbours by features.

    Raises
    ------
    NotInstalled : scikit-learn is not there.
    """
    found = _scikit_learn("cluster").SpectralClustering(
        num_clusters, affinity="nearest_neighbors", n_neighbors=min(_NEIGHBOURS, len(feature)), random_state=seed
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        return np.asarray(found.fit_predict(feature), int)


def _scikit_learn(module: str) -> Any:
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ImportError as error:
        text = "this baseline is scikit-learn's, which is not installed; pip install 'consilience[clustering]'"
        raise NotInstalled(text) from error


# A metric from pairs --------------------------------------------------------------------------------------------------


def itml(data: Constraints, num_clusters: int, seed: int = 0) -> Int[np.ndarray, " item"]:
    """Learn a metric from the majority's answers by information-theoretic metric learning, and run k-means under it.

    Squared distances of pairs together are to be below the fifth percentile of all pairs of items, others above the
    95th, with slack (gamma 1); a thousand cycles at most.
    """
    metric = _itml_metrics(data.feature, [majority(data)])[0]
    return k_means(data.feature @ np.linalg.cholesky(metric), num_clusters, seed)


def _itml_metrics(feature: np.ndarray, answers: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return a metric for each set of pairs, ``(set, feature, feature)``, all learned side by side."""
    longest = max(len(together) for _, together in answers)
    difference = np.zeros((len(answers), longest, feature.shape[1]))  # pairs of equal items pad, and are skipped
    sign = np.ones((len(answers), longest))
    for place, (pair, together) in enumerate(answers):
        order = np.argsort(~together, kind="stable")
        difference[place, : len(order)] = feature[pair[0, order]] - feature[pair[1, order]]
        sign[place, : len(order)] = np.where(together[order], 1.0, -1.0)
    some = feature
    if len(feature) > _MOST_FOR_PERCENTILES:
        some = feature[np.random.default_rng(0).choice(len(feature), _MOST_FOR_PERCENTILES, replace=False)]
    near, far = np.percentile(pdist(some, "sqeuclidean"), (5, 95))
    with jax.enable_x64(True):
        return np.asarray(jax.vmap(_project, (0, 0, None, None))(difference, sign, near, far))


@jax.jit
def _project(difference: jax.Array, sign: jax.Array, near: jax.Array, far: jax.Array) -> jax.Array:
    """Project the identity onto the bounds of the distances, one pair after the other, until multipliers stand still.

    Parameters
    ----------
    difference : ``(pair, feature)``, of the items of a pair.
    sign : ``(pair,)``; 1 where they are together, -1 where apart.
    """
    gamma, tolerance, most_cycles = 1.0, 1e-3, 1000

    def one(metric: jax.Array, pair: tuple[jax.Array, ...]) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        v, delta, bound, multiplier = pair
        along = metric @ v
        p = v @ along
        used = p > 1e-12
        alpha = jnp.minimum(multiplier, delta / 2 * (1 / jnp.where(used, p, 1.0) - gamma / bound))
        alpha = jnp.where(used, alpha, 0.0)
        beta = delta * alpha / (1 - delta * alpha * p)
        bound = gamma * bound / (gamma + delta * alpha * bound)
        return metric + beta * jnp.outer(along, along), (bound, multiplier - alpha)

    def cycle(state: Any) -> Any:
        number, metric, bound, multiplier, _ = state
        metric, (bound, after) = jax.lax.scan(one, metric, (difference, sign, bound, multiplier))
        norm = jnp.linalg.norm(after) + jnp.linalg.norm(multiplier)
        moved = jnp.abs(after - multiplier).sum() / jnp.where(norm > 0, norm, 1.0)
        return number + 1, metric, bound, after, moved

    def goes_on(state: Any) -> jax.Array:
        return (state[0] < most_cycles) & (state[-1] >= tolerance)

    start = (0, jnp.eye(difference.shape[1]), jnp.where(sign > 0, near, far), jnp.zeros(len(sign)), jnp.inf)
    return jax.lax.while_loop(goes_on, cycle, start)[1]


def mpc_k_means(data: Constraints, num_clusters: int, seed: int = 0) -> Int[np.ndarray, " item"]:
    """Run metric pairwise constrained k-means on the majority's answers: one diagonal metric for all clusters.

    The transitive closure of the answers is not taken: those of people contradict each other. In every step items are
    assigned afresh, one after the other in random order, since labels that stay from step to step hold each other
    where they are. The best step of ten starts counts. Where items are in many pairs of one answer each, wrong answers
    outweigh the features: the objective is then lower at wrong clusters than at the true ones.
    """
    feature = np.asarray(data.feature)
    pair, together = majority(data)
    random = np.random.default_rng(seed)
    found = [
        _constrained_k_means(feature, pair, together, _spread_centres(feature, num_clusters, random), random)
        for _ in range(_STARTS)
    ]
    return min(found, key=lambda one: one[1])[0]


def _constrained_k_means(
    feature: np.ndarray, pair: np.ndarray, together: np.ndarray, centre: np.ndarray, random: np.random.Generator,
    steps: int = 50,
) -> tuple[np.ndarray, float]:  # fmt: skip
    """Return the labels of the step with the least objective, and that."""
    square = (feature[pair[0]] - feature[pair[1]]) ** 2  # (pair, feature)
    widest = np.ptp(feature, axis=0) ** 2
    paid_when_broken = np.where(together[:, None], square, widest - square)  # the nearer items apart, the more
    metric = np.ones(feature.shape[1])
    found = []
    for _ in range(steps):
        price = np.where(together, -1, 1) * (paid_when_broken @ metric)
        distance = ((feature[:, None] - centre) ** 2) @ metric
        label = _greedily(distance, pair, price, random.permutation(len(feature)))
        centre = _means(feature, label, centre)
        broken = together != (label[pair[0]] == label[pair[1]])
        spread = ((feature - centre[label]) ** 2).sum(axis=0) + paid_when_broken[broken].sum(axis=0)
        metric = len(feature) / np.maximum(spread, 1e-12)
        found.append((label, float(spread @ metric - len(feature) * np.log(metric).sum())))
    return min(found, key=lambda one: one[1])


def _greedily(
    distance: Float[np.ndarray, "item cluster"], pair: np.ndarray, price: Float[np.ndarray, " pair"], order: np.ndarray
) -> Int[np.ndarray, " item"]:
    """Assign one item after the other to the cluster that costs least: first given those before it, then given all.

    Parameters
    ----------
    price : of having both items of a pair in one cluster; below 0 for pairs that are together.
    """
    cost = distance.copy()
    ends = np.concatenate([pair, pair[::-1]], axis=1)
    by_item = np.argsort(ends[0], kind="stable")
    neighbour, price = ends[1, by_item], np.tile(price, 2)[by_item]
    first = np.searchsorted(ends[0, by_item], np.arange(len(distance) + 1)).tolist()
    label = np.full(len(distance), -1)
    for item in np.tile(order, 1 + _PASSES).tolist():
        chosen, before = int(cost[item].argmin()), label[item]
        if chosen != before:
            own = slice(first[item], first[item + 1])
            np.add.at(cost[:, chosen], neighbour[own], price[own])
            if before >= 0:
                np.subtract.at(cost[:, before], neighbour[own], price[own])
            label[item] = chosen
    return label


# Shares of answers ----------------------------------------------------------------------------------------------------


def cspa(data: Constraints, num_clusters: int, seed: int = 0) -> Int[np.ndarray, " item"]:
    """Cluster the shares of the answers that put items together by their leading eigenvectors."""
    item, affinity, _ = _share_matrix(data)
    linked = affinity.sum(axis=1) > 0
    label = np.full(data.num_items, -1)
    label[item[linked]] = spectral_clustering(affinity[np.ix_(linked, linked)], num_clusters, seed)
    return label


def _share_matrix(data: Constraints) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the items that are judged, the shares of pairs of them, ``(item, item)``, and which pairs are judged."""
    pair, share = shares(data)
    item, place = np.unique(pair, return_inverse=True)
    place = place.reshape(pair.shape)
    affinity = np.zeros((len(item), len(item)))
    known = np.zeros(affinity.shape, bool)
    for one, other in (place, place[::-1]):
        affinity[one, other] = share
        known[one, other] = True
    return item, affinity, known


def spectral_clustering(
    affinity: Float[np.ndarray, "item item"], num_clusters: int, seed: int = 0
) -> Int[np.ndarray, " item"]:
    """Run k-means on the leading eigenvectors of the normalised affinity, rows of length one; degrees are positive."""
    scale = 1 / np.sqrt(affinity.sum(axis=1))
    _, vectors = np.linalg.eigh(affinity * scale[:, None] * scale)
    return k_means(_unit_rows(vectors[:, -num_clusters:]), num_clusters, seed)


def _unit_rows(rows: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norm > 0, norm, 1)


def semi_crowd(data: Constraints, num_clusters: int, seed: int = 0) -> Int[np.ndarray, " item"]:
    """Complete the certain shares by a matrix of low rank, learn a metric from it, and run k-means under it.

    Shares of 0 and of .8 and more are certain: with one answer a pair, all are. Takes the cube of the judged items.
    """
    item, share, known = _share_matrix(data)
    known &= (share <= 0) | (share >= 0.8)
    np.fill_diagonal(known, True)
    certain = np.where(known, share >= 0.8, 0.0)
    np.fill_diagonal(certain, 1.0)
    complete = np.clip(_low_rank(certain, known), 0, 1)
    feature = np.asarray(data.feature)
    own = feature[item]
    inverse = np.linalg.inv(own.T @ own + 1e-3 * len(own) * np.eye(own.shape[1]))
    value, vector = np.linalg.eigh(inverse @ (own.T @ complete @ own) @ inverse)
    return k_means(feature @ vector * np.sqrt(np.maximum(value, 0)), num_clusters, seed)


def _low_rank(data: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return F of low rank with F + E equal to the known entries, E sparse, by augmented Lagrangians.

    Everything is symmetric, so that singular values are eigenvalues but for their sign.
    """
    weight = 1 / np.sqrt(known.mean() * len(data))
    step = 1.25 / np.linalg.norm(data, 2)
    error, multiplier = np.zeros_like(data), np.zeros_like(data)
    size = np.linalg.norm(data)
    while True:
        value, vector = np.linalg.eigh(data - error + multiplier / step)
        low = vector * (np.sign(value) * np.maximum(np.abs(value) - 1 / step, 0)) @ vector.T
        rest = data - low + multiplier / step
        shrunk = np.sign(rest) * np.maximum(np.abs(rest) - weight / step, 0)
        error = np.where(known, shrunk, rest)
        away = data - low - error
        if np.linalg.norm(away) < 1e-6 * size:
            return low
        multiplier += step * away
        step *= 1.1


METHODS: dict[str, Callable[[Constraints, int, int], np.ndarray]] = {
    "ITML": itml,
    "MPCKMeans": mpc_k_means,
    "CSPA": cspa,
    "SemiCrowd": semi_crowd,
}
"""Clusterings of one view: functions of answers, number of clusters and seed."""


# Groups of experts ----------------------------------------------------------------------------------------------------


def meta_clustering(similarity: Float[np.ndarray, "expert expert"], seed: int = 0) -> Int[np.ndarray, " expert"]:
    """Group experts by how similar they are, as many groups as the largest gap of the eigenvalues says.

    Parameters
    ----------
    similarity : 0 and more; NaN where nothing is known, which counts as 0 here for want of anything better.
    """
    affinity = np.nan_to_num(similarity)
    np.fill_diagonal(affinity, 0)
    degree = affinity.sum(axis=1)
    scale = np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    value, vector = np.linalg.eigh(np.eye(len(affinity)) - affinity * scale[:, None] * scale)
    gaps = np.diff(value[:-1])
    number = int(gaps.argmax()) + 1 if len(gaps) else 1
    return k_means(_unit_rows(vector[:, :number]), number, seed)


def agreement_rate(data: Constraints) -> Float[np.ndarray, "expert expert"]:
    """Return the share of the pairs judged by two experts on which they agree; NaN where they share none."""
    both, _, table = _shared_answers(data)
    with np.errstate(invalid="ignore"):
        return (table["together"] + table["apart"]) / both


def kappa(data: Constraints) -> Float[np.ndarray, "expert expert"]:
    """Return Cohen's kappa of two experts, at least 0; NaN where they share fewer than twenty pairs."""
    both, ever, table = _shared_answers(data)
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = (table["together"] + table["apart"]) / both
        share = ever / both  # of "together" among what the row's expert says of the pairs shared with the column's
        chance = share * share.T + (1 - share) * (1 - share.T)
        found = np.where(chance < 1, (observed - chance) / (1 - chance), 1.0)
    return np.where(both >= _FEWEST_SHARED, np.maximum(found, 0), np.nan)


def _shared_answers(data: Constraints) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Return of two experts the pairs that both judge, those of them that the first puts together, and agreements."""
    code = data.item_a.astype(np.int64) * data.num_items + data.item_b
    pair, place = np.unique(code, return_inverse=True)
    shape = (len(pair), data.num_experts)
    # An expert who contradicts himself on a pair says nothing of it.
    vote = sparse.coo_array((2 * data.together - 1, (place, data.expert)), shape=shape).tocsc().sign()
    together, apart = (vote > 0).astype(float), (vote < 0).astype(float)
    table = {"together": (together.T @ together).toarray(), "apart": (apart.T @ apart).toarray()}
    crossed = (together.T @ apart).toarray()
    return table["together"] + table["apart"] + crossed + crossed.T, table["together"] + crossed, table


def by_clusterings(
    data: Constraints, num_clusters: int, seed: int = 0
) -> tuple[Float[np.ndarray, "expert expert"], Int[np.ndarray, "expert item"]]:
    """Return how much the clusterings of two experts have in common (NMI), and the clustering of each by `itml`."""
    answers = [majority(of_experts(data, np.array([expert]))) for expert in range(data.num_experts)]
    metrics = _itml_metrics(data.feature, answers)
    label = np.stack([k_means(data.feature @ np.linalg.cholesky(metric), num_clusters, seed) for metric in metrics])
    return np.stack([score(contingency(label, one[None]), "nmi") for one in label]), label
