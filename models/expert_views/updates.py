r"""The updates of coordinate ascent: each is the exact maximiser of its block of the bound, or searches along a line.

Of an expert m in view g, with :math:`u = E\ln\alpha - E\ln(1-\beta)` and :math:`v = E\ln(1-\alpha) - E\ln\beta`, the
coupling of a pair is :math:`\Lambda_p^g = \sum_m \varphi_{mg}(n_{1,pm} u_m + n_{0,pm} v_m)`: what its answers say for
"together". *Counts* are the answers of each kind that are expected to be on pairs that are together, shape
``(restart, expert, view, kind)``. Expected log-sum-exps of the normal logits have no closed form; with mean m and
variance v of the logits

.. math:: E \ln\sum_k e^{l_k} \le \tfrac12 \sum_k a_k^2 v_k + \ln\sum_k e^{m_k + (1 - 2 a_k) v_k / 2}

for any a (Knowles and Minka 2011); a = 0 is Jensen's bound, which the paper has. All arrays hold all restarts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import digamma

from consilience.arrays import Array, Bool, Float
from consilience.models.expert_views import likelihood
from consilience.models.expert_views.likelihood import Answering
from consilience.models.expert_views.problem import OfClusters, OfItems, OfPairs, OfWeights, Problem, Q, Rows, Schedule

# Lengths that a search along a line tries, one after the other, until the bound does not fall.
_LENGTHS = (1.0, 0.5, 0.25, 0.1, 0.02, 0.0)

# So many parameters of a view are found with the matrix of second derivatives, and more with conjugate gradients.
_MOST_DENSE, _CONJUGATE_STEPS = 150, 10

# Items whose part of the matrix of second derivatives is made at once.
_BLOCK = 2048

# Up to so many clusters a sum over them is written out.
_FEW_CLUSTERS = 16

# Numbers of a table that are made at once.
_NUMBERS = 1 << 17

_PASSES, _ROUNDS, _TILTS, _TIED_STEPS = 2, 3, 3, 3

Counts = Float[Array, "restart expert view kind"]


def logits(weight: OfWeights, problem: Problem) -> OfClusters:
    """Return the logits of the clusters; clusters come first and items last, in which order exponentials are fast."""
    return jnp.einsum("nd,rgdk->krgn", problem.feature, weight)


def variances(variance: OfWeights, problem: Problem) -> OfClusters:
    """Return the variances of the logits, of independent weights."""
    return jnp.einsum("nd,rgdk->krgn", problem.feature**2, variance)


def turned(values: Float[Array, "one restart view other"]) -> Float[Array, "other restart view one"]:
    """Exchange items and clusters: items come first where those of one item are to lie together, else clusters."""
    return jnp.transpose(values, (3, 1, 2, 0))


def over_clusters(values: Float[Array, "cluster ..."]) -> Float[Array, "*rest"]:
    """Sum over clusters."""
    # One after the other: XLA would else make the exponentials of a sum inside of it, number by number, and take five
    # times as long. The program grows with the clusters, so that many of them are summed the slow way.
    return functools.reduce(jnp.add, list(values)) if len(values) <= _FEW_CLUSTERS else values.sum(0)


def over_items(values: Float[Array, "restart view judged"]) -> Float[Array, "restart view"]:
    """Sum over items: a product with ones, for the reason that `over_clusters` has."""
    return values @ jnp.ones(values.shape[-1], values.dtype)


def log_sum_exp(values: Float[Array, "cluster ..."]) -> Float[Array, "*rest"]:
    """Return the logarithm of the sum over clusters."""
    largest = values.max(0)
    return largest + jnp.log(over_clusters(jnp.exp(values - largest)))


def softmax(values: Float[Array, "cluster ..."]) -> Float[Array, "cluster ..."]:
    """Return probabilities of the clusters."""
    share = jnp.exp(values - values.max(0))
    return share / over_clusters(share)


def softmax_bound(mean: Array, variance: Array, tilt: Array) -> Float[Array, "restart view judged"]:
    """Return an upper bound of the expected log-sum-exp."""
    return over_clusters(tilt**2 * variance) / 2 + log_sum_exp(mean + (0.5 - tilt) * variance)


def onto_weights(feature: Float[Array, "judged column"], values: OfClusters) -> OfWeights:
    """Sum over items the products of features and values."""
    return jnp.einsum("nd,krgn->rgdk", feature, values)


def in_blocks(of_row: Callable[[Any], Array], rows: Any, numbers: int) -> Array:
    """Return what a function makes of each row of a table, of so many at once as stay in the cache of a core.

    Parameters
    ----------
    of_row : of one row.
    rows : arrays ``(row, …)``.
    numbers : about how many numbers a row takes.
    """
    length, most = len(jax.tree.leaves(rows)[0]), max(_NUMBERS // numbers, 1)
    # Of blocks of one size nothing is left over, for which another program would be compiled.
    size = max(size for size in range(1, min(most, length) + 1) if length % size == 0)
    return jax.lax.map(of_row, rows, batch_size=size if 2 * size > most or size == length else most)


def sum_rows(values: Float[Array, "row ..."], rows: Rows, number: int) -> Float[Array, "owner ..."]:
    """Sum rows by their owners."""
    if len(rows.owner) == number:
        return values
    return jax.ops.segment_sum(values, rows.owner, number, indices_are_sorted=True)


def same_cluster(eta: OfItems, problem: Problem) -> OfPairs:
    """Return the probabilities that pairs are together."""
    ends = problem.first, problem.second
    return in_blocks(lambda pair: (eta[pair[0]] * eta[pair[1]]).sum(-1), ends, eta[0].size)


def agreement(eta: OfItems, problem: Problem) -> Counts:
    """Return the expected numbers of answers on pairs that are together."""
    same, rows = same_cluster(eta, problem), problem.by_expert

    def of_row(row: Rows) -> Array:
        return jnp.einsum("wc,wrg->crg", row.said, same[row.other])

    sums = in_blocks(of_row, rows, rows.other.shape[1] * same[0].size)
    return jnp.transpose(sum_rows(sums, rows, len(problem.number)), (2, 0, 3, 1))


def answering(log_cells: Float[Array, "*owner site 2"], problem: Problem) -> Answering:
    """Return logarithms of how experts answer, ``(…, kind)``, from those of their accuracies."""
    flat = log_cells.reshape(*log_cells.shape[:-2], -1)
    return Answering(*(flat @ cells.T for cells in problem.cells))


def expected_answering(q: Q, problem: Problem) -> Answering:
    """Return expected logarithms of how experts answer, ``(restart, expert, own, kind)``."""
    return answering(expected_logs(q.accuracy), problem)


def expected_logs(beta: Float[Array, "*batch 2"]) -> Float[Array, "*batch 2"]:
    """Return the expected logarithms of Beta variables, and of one minus them."""
    values = digamma(jnp.concatenate([beta, beta.sum(-1, keepdims=True)], axis=-1))
    return values[..., :2] - values[..., 2:]


def couplings(q: Q, problem: Problem) -> OfPairs:
    """Return what the answers on each pair say for together, and zeros for the pair that pads."""
    answers, rows = expected_answering(q, problem), problem.by_pair
    says = jnp.transpose(q.phi[..., None] * (answers.together - answers.apart), (1, 3, 0, 2))

    def of_row(row: Rows) -> Array:
        return jnp.einsum("wc,wcrg->rg", row.said, says[row.other])

    return sum_rows(in_blocks(of_row, rows, rows.other.shape[1] * says[0].size), rows, len(problem.first) + 1)


def neighbours(eta: OfItems, coupling: OfPairs, problem: Problem) -> OfItems:
    """Return for each item and cluster the sum over its pairs of the coupling times the other's probability."""
    schedule = problem.schedule

    def of_chunk(chunk: Array, field: Array) -> Array:
        return _with_neighbours(field, chunk, eta, coupling, schedule)

    return jax.lax.fori_loop(0, len(schedule.node), of_chunk, jnp.zeros_like(eta))


def update_clusters(eta: OfItems, mean: OfItems, coupling: OfPairs, problem: Problem) -> OfItems:
    """Return the probabilities of the clusters after one pass over all items, colour by colour.

    Items of one colour are independent of each other given the others, so that this is the pass of one item after the
    other. All items at once would not do: two that should be apart could swap clusters for ever.

    Parameters
    ----------
    mean : mean logits.
    """
    schedule = problem.schedule

    def of_chunk(chunk: Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        eta, field = carry
        field = _with_neighbours(field, chunk, eta, coupling, schedule)
        complete = schedule.complete[chunk]
        return eta.at[complete].set(jax.nn.softmax(field[complete], axis=-1), mode="drop"), field

    return jax.lax.fori_loop(0, len(schedule.node), of_chunk, (eta, mean))[0]


def _with_neighbours(field: Any, chunk: Array, eta: Array, coupling: Array, schedule: Schedule) -> Any:
    """Add what the neighbours in a chunk say."""
    pair, other = schedule.pair[chunk], schedule.other[chunk]
    # Flat: XLA would else look up every number on its own and not row by row, six times slower.
    terms = coupling[pair.ravel()][..., None] * eta[other.ravel()]
    return field.at[schedule.node[chunk]].add(terms.reshape(*pair.shape, *terms.shape[1:]).sum(1), mode="drop")


def update_accuracies(q: Q, counts: Counts, problem: Problem) -> Q:
    """Return q with the best Beta parameters of the accuracies."""
    own, number = q.phi[..., None] * counts, q.phi[..., None] * problem.number[:, None]
    if not problem.settings.per_view:
        own, number = own.sum(2, keepdims=True), problem.number[:, None]
    cells = likelihood.site_counts(own, number, problem.cells)
    return q._replace(accuracy=problem.prior[:, None] + cells.reshape(*cells.shape[:-1], *problem.prior.shape[1:]))


def update_sticks(q: Q, problem: Problem) -> Q:
    """Return q with the best Beta parameters of the sticks."""
    return q._replace(stick=likelihood.stick_parameters(q.phi.sum(1), problem.concentration))


def expected_log_view_weight(q: Q) -> Float[Array, "restart view"]:
    """Return the expected logarithms of the weights of the views."""
    return likelihood.log_view_weight(*jnp.moveaxis(expected_logs(q.stick), -1, 0))


def update_views(q: Q, counts: Counts, problem: Problem) -> Q:
    """Return q with the best probabilities of the views of the experts."""
    fit = likelihood.log_likelihood(counts, expected_answering(q, problem), problem.number)
    return q._replace(phi=jax.nn.softmax(expected_log_view_weight(q)[:, None] + fit, axis=-1))


def update_experts(
    q: Q, counts: Counts, problem: Problem, frozen: Bool[Array, ""] | bool = False, rounds: int = _ROUNDS
) -> Q:
    """Return q after rounds of accuracies, sticks and views of the experts.

    Parameters
    ----------
    frozen : whether the views of the experts stay as they are.
    rounds : how many.
    """

    def of_round(_: Array, q: Q) -> Q:
        q = update_sticks(update_accuracies(q, counts, problem), problem)
        moved = update_views(q, counts, problem)
        return moved._replace(phi=jnp.where(frozen, q.phi, moved.phi))

    return jax.lax.fori_loop(0, rounds, of_round, q)


def update_tilt(q: Q, problem: Problem) -> Q:
    """Return q with a better tilt: steps towards a fixed point, halved for the items at which one would go too far.

    The bound is convex in the tilt, and lowest at the fixed point, which plain steps leave where variances are large.
    """
    mean, variance = logits(q.weight_mean, problem), variances(q.weight_variance, problem)

    def of_step(_: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        tilt, height, length = carry
        moved = tilt + length * (softmax(mean + (0.5 - tilt) * variance) - tilt)
        new = softmax_bound(mean, variance, moved)
        better = new <= height
        return jnp.where(better, moved, tilt), jnp.where(better, new, height), jnp.where(better, length, length / 2)

    height = softmax_bound(mean, variance, q.tilt)
    start = q.tilt, height, jnp.ones_like(height)
    return q._replace(tilt=jax.lax.fori_loop(0, _TILTS, of_step, start)[0])


def update_weight_mean(q: Q, problem: Problem) -> Q:
    """Return q with better means of the weights."""
    mean, eta = logits(q.weight_mean, problem), turned(q.eta)
    shift = (0.5 - q.tilt) * variances(q.weight_variance, problem)
    predicted = softmax(mean + shift)

    def fit(moved: OfClusters) -> Array:
        return over_items(over_clusters(eta * moved) - log_sum_exp(moved + shift))

    return q._replace(weight_mean=newton_step(q.weight_mean, mean, eta - predicted, predicted, fit, problem))


def newton_step(
    weight: OfWeights, mean: OfClusters, slope: OfClusters, predicted: OfClusters,
    fit: Callable[[OfClusters], Array], problem: Problem,
) -> OfWeights:  # fmt: skip
    """Return means of the weights after a step of Newton's method, no longer than it helps.

    Parameters
    ----------
    weight, mean : the means, and the logits that they make.
    slope : derivatives by the logits.
    predicted : see `newton_direction`.
    fit : ``fit(logits)`` -> ``(restart, view)``, what the step is to raise, but for the prior.
    """
    precision = problem.weight_scale**-2
    gradient = onto_weights(problem.feature, slope) - weight * precision
    direction = newton_direction(gradient, predicted, problem)
    change = logits(direction, problem)

    def value(length: Array) -> Array:
        moved = weight + length[..., None, None] * direction
        return fit(mean + length[..., None] * change) - (moved**2).sum((-1, -2)) * precision / 2

    return weight + first_rise(value, gradient)[..., None, None] * direction


def update_weight_variance(q: Q, problem: Problem) -> Q:
    """Return q with better variances of the weights: towards a fixed point, no further than it helps."""
    mean, variance = logits(q.weight_mean, problem), variances(q.weight_variance, problem)
    predicted, precision = softmax(mean + (0.5 - q.tilt) * variance), problem.weight_scale**-2
    curvature = q.tilt**2 + predicted * (1 - 2 * q.tilt)
    target = -jnp.log(precision + onto_weights(problem.feature**2, curvature))
    log_variance = jnp.log(q.weight_variance)

    def moved(length: Array) -> Array:
        return log_variance + length[..., None, None] * (target - log_variance)

    def value(length: Array) -> Array:
        log_moved = moved(length)
        fit = over_items(softmax_bound(mean, variances(jnp.exp(log_moved), problem), q.tilt))
        return -fit - (jnp.exp(log_moved) * precision - log_moved).sum((-1, -2)) / 2

    return q._replace(weight_variance=jnp.exp(moved(first_rise(value, target))))


def newton_direction(gradient: OfWeights, predicted: OfClusters, problem: Problem) -> OfWeights:
    """Return the gradient divided by minus the matrix of second derivatives of a softmax regression.

    Parameters
    ----------
    predicted : the probabilities of the clusters there.
    """
    num_columns, num_clusters = gradient.shape[2:]
    if num_columns * num_clusters > _MOST_DENSE:
        return _conjugate_gradients(gradient, predicted, problem)
    curvature = _curvature(predicted, problem)
    flat = gradient.reshape(*gradient.shape[:2], -1)
    factor = jax.scipy.linalg.cho_factor(curvature, lower=True)
    return jax.scipy.linalg.cho_solve(factor, flat[..., None])[..., 0].reshape(gradient.shape)


def _curvature(predicted: Array, problem: Problem) -> Float[Array, "restart view cell cell"]:
    """Return minus the second derivatives, item blocks summed one after the other."""
    feature, num_clusters = problem.feature, len(predicted)
    number, num_columns = feature.shape
    size = min(_BLOCK, number)
    # Both factors are symmetric: products of two clusters, and of two columns, are made once.
    k, h, of_clusters = _halves(num_clusters)
    d, e, of_columns = _halves(num_columns)

    def of_block(block: Array, total: Array) -> Array:
        begin = jnp.minimum(block * size, number - size)
        new = begin + jnp.arange(size) >= block * size  # the last block overlaps the one before
        x = jnp.where(new[:, None], jax.lax.dynamic_slice_in_dim(feature, begin, size), 0)
        r = jax.lax.dynamic_slice_in_dim(predicted, begin, size, axis=3)
        weight = r[k] * ((k == h)[:, None, None, None] - r[h])
        return total + jnp.einsum("prgn,nc->rgpc", weight, x[:, d] * x[:, e])

    start = jnp.zeros((*predicted.shape[1:3], len(k), len(d)), predicted.dtype)
    half = jax.lax.fori_loop(0, -(-number // size), of_block, start)
    whole = half[:, :, of_clusters[None, :, None, :], of_columns[:, None, :, None]]
    num_cells = num_columns * num_clusters
    prior = jnp.eye(num_cells, dtype=predicted.dtype) * problem.weight_scale**-2
    return whole.reshape(*predicted.shape[1:3], num_cells, num_cells) + prior


def _halves(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pairs of a symmetric table, each once, and which of them each of its cells is."""
    first, second = np.triu_indices(number)
    of_cell = np.zeros((number, number), int)
    of_cell[first, second] = of_cell[second, first] = np.arange(len(first))
    return first, second, of_cell


def _conjugate_gradients(gradient: OfWeights, predicted: OfClusters, problem: Problem) -> OfWeights:
    precision, feature = problem.weight_scale**-2, problem.feature

    def solved(gradient: Array, predicted: Array) -> Array:
        """Solve for one view: the gradient is ``(column, cluster)``, probabilities ``(cluster, judged)``."""
        diagonal = (feature**2).T @ (predicted * (1 - predicted)).T + precision

        def times(vector: Array) -> Array:
            change = predicted * (feature @ vector).T
            return feature.T @ (change - predicted * change.sum(0)).T + precision * vector

        return jax.scipy.sparse.linalg.cg(
            times, gradient, tol=0, maxiter=_CONJUGATE_STEPS, M=lambda vector: vector / diagonal
        )[0]

    return jax.vmap(jax.vmap(solved, (0, 1)), (0, 1))(gradient, predicted)


def first_rise(value: Callable[[Array], Array], like: Array) -> Float[Array, "restart view"]:
    """Return for each restart and view the first length of a list at which the value does not fall; the last is zero.

    Parameters
    ----------
    value : ``value(length)`` -> ``(restart, view)``, of lengths of that shape.
    like : an array ``(restart, view, …)``.
    """
    lengths = jnp.asarray((0.0, *_LENGTHS), like.dtype)
    zeros = jnp.zeros(like.shape[:2], like.dtype)
    slack = 8 * jnp.finfo(like.dtype).eps

    def unfinished(carry: Any) -> Any:
        index, _, _, found = carry
        return (index < len(_LENGTHS)) & ~found.all()

    def try_next(carry: Any) -> Any:
        index, base, length, found = carry
        trial = jnp.where(found, length, lengths[index])
        new = value(trial)
        # The first length is zero, and tells what the value must not fall below.
        good = (new >= base - slack * (1 + jnp.abs(base))) & (index > 0)
        base = jnp.where(index == 0, new, base)
        return index + 1, base, jnp.where(found | good, trial, 0), found | good

    start = jnp.zeros((), jnp.int32), zeros, zeros, jnp.zeros(zeros.shape, bool)
    return jax.lax.while_loop(unfinished, try_next, start)[2]


# ---- the authors' variant: clusters of an item are those of the mean weights alone ----
#
# It is a smaller family: an item cannot react to its own answers. The weights are all that is left to be found, by
# gradient steps that no longer go anywhere where the bound would fall.


def update_tied_weights(q: Q, coupling: OfPairs, problem: Problem) -> Q:
    """Return q with better means of the weights, and the probabilities of the clusters that go with them.

    Parameters
    ----------
    coupling : what the answers on each pair say for together.
    """
    mean, variance = logits(q.weight_mean, problem), variances(q.weight_variance, problem)
    eta, predicted = softmax(mean), softmax(mean + (0.5 - q.tilt) * variance)

    def fit(moved: OfClusters) -> Array:
        # What is expected of the clusters and their entropy make one log-sum-exp.
        of_items = over_items(log_sum_exp(moved) - softmax_bound(moved, variance, q.tilt))
        return of_items + (coupling[:-1] * same_cluster(turned(softmax(moved)), problem)).sum(0)

    slope = tied_slope(eta, coupling, problem) + eta - predicted
    weight = newton_step(q.weight_mean, mean, slope, eta, fit, problem)
    return q._replace(weight_mean=weight, eta=turned(softmax(logits(weight, problem))))


def tied_slope(eta: OfClusters, coupling: OfPairs, problem: Problem) -> OfClusters:
    """Return the derivatives by the logits of what the answers say, where clusters are those of the logits.

    Parameters
    ----------
    coupling : what the answers on each pair say for together, and zeros for the pair that pads.
    """
    field = turned(neighbours(turned(eta), coupling, problem))
    return eta * (field - over_clusters(eta * field))


# ---- all of them ----


def sweep(q: Q, problem: Problem, frozen: Bool[Array, ""] | bool = False) -> tuple[Q, Counts]:
    """Return q after every block was updated once or more, and the counts that hold then.

    Parameters
    ----------
    frozen : whether the views of the experts stay as they are.
    """
    settings = problem.settings
    if settings.tied:
        q = update_experts(q, agreement(q.eta, problem), problem, frozen)
        coupling = couplings(q, problem)
        q = jax.lax.fori_loop(0, _TIED_STEPS, lambda _, q: update_tied_weights(q, coupling, problem), q)
        counts = agreement(q.eta, problem)
    else:
        coupling, mean = couplings(q, problem), turned(logits(q.weight_mean, problem))
        eta = jax.lax.fori_loop(0, _PASSES, lambda _, eta: update_clusters(eta, mean, coupling, problem), q.eta)
        counts = agreement(eta, problem)
        q = update_experts(q._replace(eta=eta), counts, problem, frozen)
    q = update_tilt(q, problem) if settings.tilted else q
    q = q if settings.tied else update_weight_mean(q, problem)
    return update_weight_variance(q, problem), counts
