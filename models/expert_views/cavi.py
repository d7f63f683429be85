"""Coordinate ascent with many restarts: warm-up, sweeps, and moves that merge views; the best restart is kept.

All restarts go through the same phases together, and the host calls one of three programs: a step of the warm-up, a
sweep, or a move. A restart whose bound stands still keeps its state. The objective is the best pruned bound that any
restart has had; before the sweeps it is that of the starts. Restarts may be divided among devices: each has all of the
data, and the draws of a restart depend on its number alone.

A true view that is split over two is what restarts get wrong most often; merging repairs it. Views are not split on
purpose: restarts begin with more views than are used, and share them out in the warm-up. A view that loses its experts
is dropped by the pruned bound. Tempering the views of the experts in the warm-up found no better optimum in trials.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Bool, Float, Int, Key
from consilience.models.expert_views.bound import FEWEST, entropy, pruned_bound
from consilience.models.expert_views.posterior import finished
from consilience.models.expert_views.problem import OfItems, Problem, Q, prepare, restart_by_restart
from consilience.models.expert_views.updates import agreement, sweep, update_sticks
from consilience.models.expert_views.warmup import NUM_STEPS, WarmUp, begin, finish, warm_up
from consilience.models.interface import Ascent, Shards, Terms, Total, unsharded
from consilience.models.rows import copies

# Steps of Adam in one step of the driver.
_ADAM_STEPS = 5

WARM_UP_STEPS = NUM_STEPS // _ADAM_STEPS + 1
"""Steps of the driver before the first sweep."""

# A restart stands still when so many sweeps in a row change its bound by less than this for each answer, or by less
# than the float type can tell, or by less than this share of what it is below the best one. Before the last move, when
# all that counts is which move to take, less precision does.
_LEAST_CHANGE, _LEAST_CHANGE_BEFORE, _LEAST_SHARE, _QUIET_SWEEPS, _MOST_SWEEPS = 1e-7, 1e-5, 1e-3, 3, 60

# Of a merge move: rounds, and sweeps before and after the views of the experts are free again.
_ROUNDS, _FROZEN_SWEEPS, _FREE_SWEEPS = 4, 3, 12

_FIRST_VARIANCE = 0.01


class Phase(enum.IntEnum):
    """What the next step does."""

    WARM_UP = 0
    SWEEP = 1
    TRIAL = 2
    FINISH = 3
    MERGE = 4
    DECIDE = 5
    DONE = 6


class State(NamedTuple):
    """What the next step needs.

    Parameters
    ----------
    q, bound : of every restart, and its pruned bound.
    kept, kept_bound : the same before a move was tried.
    warm : of the warm-up.
    quiet : sweeps in a row that hardly changed the bound of a restart.
    rank : which pair of views the next move takes.
    possible : of which restarts there is a move.
    phase, steps, round : what is next, how many steps of it there were, and how many rounds of moves.
    best : the best bound so far.
    """

    q: Q
    bound: Float[Array, " row"]
    kept: Q
    kept_bound: Float[Array, " row"]
    warm: WarmUp
    quiet: Int[Array, " row"]
    rank: Int[Array, " row"]
    possible: Bool[Array, " row"]
    phase: Int[Array, ""]
    steps: Int[Array, ""]
    round: Int[Array, ""]
    best: Float[Array, ""]


def shard(problem: Problem, number: int) -> Shards:
    """Divide the restarts among devices, those of each warm-up evenly; on the host."""
    parts = copies(problem, number)
    return Shards(
        parts._replace(
            tied=_dealt(problem.tied, number, len(problem.restart)),
            paired=_dealt(problem.paired, number, len(problem.restart)),
        ),
        {},
    )


def _dealt(restarts: Int[Array, " restart"], number: int, fill: int) -> Int[np.ndarray, "shard row"]:
    dealt = np.full(-(-len(restarts) // number) * number, fill, np.int32)
    dealt[: len(restarts)] = restarts
    return dealt.reshape(number, -1)


def start(key: Key, problem: Problem, total: Total = unsharded) -> State:
    """Return random weights and views of the experts, and accuracies at their priors."""
    settings, shapes = problem.settings, (problem.feature.shape[1], problem.settings.clusters)
    dtype, num_experts = problem.feature.dtype, len(problem.number)
    deviation = max(shapes[0] - 1, 1) ** -0.5

    def of_restart(number: Array) -> tuple[Array, Array]:
        key_weight, key_view = jax.random.split(jax.random.fold_in(key, number))
        weight = deviation * jax.random.normal(key_weight, (settings.views, *shapes), dtype)
        # Shares of exponential numbers have a flat Dirichlet distribution.
        share = jax.random.exponential(key_view, (num_experts, settings.views), dtype)
        return weight, share / share.sum(-1, keepdims=True)

    weight, phi = jax.vmap(of_restart)(_own(problem))
    own, prior = settings.views if settings.per_view else 1, problem.prior[:, None]
    q = Q(
        eta=jax.nn.softmax(jnp.einsum("nd,rgdk->nrgk", problem.feature, weight), axis=-1),
        tilt=jnp.zeros((settings.clusters, len(phi), settings.views, len(problem.feature)), dtype),
        weight_mean=weight,
        weight_variance=jnp.full_like(weight, _FIRST_VARIANCE),
        phi=phi,
        accuracy=jnp.broadcast_to(prior, (len(phi), num_experts, own, *prior.shape[2:])),
        stick=jnp.zeros((len(phi), settings.views - 1, 2), dtype),
    )
    q = update_sticks(q, problem)
    bound = pruned_bound(q, agreement(q.eta, problem), problem)
    zeros, none = jnp.zeros(len(phi), jnp.int32), jnp.zeros((), jnp.int32)
    first_round = none + (_ROUNDS if settings.views == 1 else 0)  # one view has no moves
    state = State(
        q=q, bound=bound, kept=q, kept_bound=bound, warm=begin(q, problem), quiet=zeros, rank=zeros,
        possible=zeros > 0, phase=none, steps=none, round=first_round, best=-jnp.inf * jnp.ones((), dtype),
    )  # fmt: skip
    return state._replace(best=_all_bounds(state, problem, total).max())


def _own(problem: Problem) -> Int[Array, " row"]:
    """Return the numbers of the restarts of this shard."""
    return jnp.concatenate([problem.tied, problem.paired])


def _everywhere(values: Array, problem: Problem, total: Total) -> Array:
    """Return what each shard has of its restarts for all restarts, on every shard."""
    zeros = jnp.zeros((len(problem.restart), *values.shape[1:]), values.dtype)
    return total(zeros.at[_own(problem)].set(values, mode="drop"))


def _all_bounds(state: State, problem: Problem, total: Total) -> Float[Array, " restart"]:
    bounds = _everywhere(state.bound, problem, total)
    return jnp.where(jnp.isnan(bounds), -jnp.inf, bounds)


def part(state: State) -> Int[Array, "*shard"]:
    """Return which program is next: that of the warm-up, of sweeps, or of moves."""
    return (state.phase > Phase.WARM_UP).astype(jnp.int32) + (state.phase > Phase.TRIAL)


def step(state: State, problem: Problem, total: Total = unsharded, part: int = 0) -> tuple[State, Terms]:
    """Do what is next, which is of a part; the objective is the best bound of the restarts so far."""
    with jax.default_matmul_precision("highest"):
        state = (_warm_up, _sweep, _move)[part](state, problem)
    bounds = _all_bounds(state, problem, total)
    # Before the sweeps bounds are those of the starts, and those of trials may yet be gone back on.
    valid = (state.phase == Phase.SWEEP) | (state.phase == Phase.DECIDE)
    best = jnp.where(valid, jnp.maximum(state.best, bounds.max()), state.best)
    state = _next_phase(state._replace(best=best), problem, total)
    # A zero of each shard: XLA gathers no arrays without entries.
    return state, Terms(jnp.zeros(1, best.dtype), best[None])


def _warm_up(state: State, problem: Problem) -> State:
    q, warm = jax.lax.fori_loop(
        0, _ADAM_STEPS, lambda _, carry: warm_up(carry[0], carry[1], problem), (state.q, state.warm)
    )
    return state._replace(q=q, warm=warm)


def _move(state: State, problem: Problem) -> State:
    moves = _finish, _merge, _decide, lambda state, _: state
    return jax.lax.switch(state.phase - Phase.FINISH, moves, state, problem)


def _finish(state: State, problem: Problem) -> State:
    return state._replace(q=update_sticks(ordered(finish(state.q, problem)), problem))


def _sweep(state: State, problem: Problem) -> State:
    """Sweep once; of sweeps, but not of trials, restarts that stand still keep their state."""
    trial = state.phase == Phase.TRIAL
    frozen = trial & (state.steps < _FROZEN_SWEEPS)
    q, found = sweep(state.q, problem, frozen)
    bound = pruned_bound(q, found, problem)
    resting = ~trial & (state.quiet >= _QUIET_SWEEPS)
    least = jnp.where(state.round == _ROUNDS, _LEAST_CHANGE, _LEAST_CHANGE_BEFORE) * problem.number.sum()
    least = jnp.maximum(least, 4 * jnp.finfo(bound.dtype).eps * jnp.abs(bound))
    least = jnp.maximum(least, _LEAST_SHARE * (state.best - bound))
    quiet = jnp.where(jnp.abs(bound - state.bound) <= least, state.quiet + 1, 0)
    return state._replace(
        q=_chosen(resting, state.q, q),
        bound=jnp.where(resting, state.bound, bound),
        quiet=jnp.where(resting, state.quiet, quiet),
    )


def _merge(state: State, problem: Problem) -> State:
    q, possible = merged(state.q, state.rank, problem)
    return state._replace(kept=state.q, kept_bound=state.bound, q=q, possible=possible)


def _decide(state: State, problem: Problem) -> State:
    """Keep the moves that raised the bound by more than sweeps would have, and go back on the others."""
    better = state.possible & (state.bound > state.kept_bound + _LEAST_CHANGE_BEFORE * problem.number.sum())
    q = _chosen(better, update_sticks(ordered(state.q), problem), state.kept)
    return state._replace(
        q=q,
        bound=jnp.where(better, state.bound, state.kept_bound),
        quiet=jnp.where(better, 0, jnp.full_like(state.quiet, _QUIET_SWEEPS)),
        rank=jnp.where(better, 0, state.rank + 1),
    )


def _chosen(first: Bool[Array, " row"], one: Q, other: Q) -> Q:
    """Return of each restart the one or the other."""

    def of_field(axis: int, a: Array, b: Array) -> Array:
        return jnp.where(jnp.expand_dims(first, [at for at in range(a.ndim) if at != axis]), a, b)

    return restart_by_restart(of_field, one, other)


def _next_phase(state: State, problem: Problem, total: Total) -> State:
    """Return the state with what is next, which all shards do together."""
    real = _own(problem) < len(problem.restart)
    moving = total((real & (state.quiet < _QUIET_SWEEPS)).sum()) > 0
    steps = state.steps + 1
    # The last sweeps, of all restarts, follow the last round of moves, or one that none of them gained from.
    decided = state.phase == Phase.DECIDE
    last = jnp.where(decided & ~moving, _ROUNDS, state.round) == _ROUNDS
    after_sweeps = jnp.where(last, Phase.DONE, Phase.MERGE)
    following = jnp.stack([
        jnp.where(steps == WARM_UP_STEPS - 1, Phase.FINISH, Phase.WARM_UP),
        jnp.where(~moving | (steps == _MOST_SWEEPS), after_sweeps, Phase.SWEEP),
        jnp.where(steps == _FROZEN_SWEEPS + _FREE_SWEEPS, Phase.DECIDE, Phase.TRIAL),
        Phase.SWEEP,
        Phase.TRIAL,
        Phase.SWEEP,
        Phase.DONE,
    ])  # fmt: skip
    phase = following[state.phase].astype(jnp.int32)
    return state._replace(
        phase=phase,
        steps=jnp.where(phase == state.phase, steps, 0),
        round=jnp.where(last, _ROUNDS, state.round + (state.phase == Phase.MERGE)),
        quiet=jnp.where(decided & last, 0, state.quiet),
    )


# ---- moves between optima: two views that say the same become one, and views in the order that the sticks prefer ----


def similarity(eta: OfItems, problem: Problem) -> Float[Array, "restart view view"]:
    """Return the normalised mutual information (arithmetic) of the clusters of every two views."""
    own = jnp.where((jnp.arange(len(eta)) < problem.num_judged)[:, None, None, None], eta, 0)  # no padding
    table = jnp.einsum("nrgk,nrhl->rghkl", own, own) / problem.num_judged
    size = own.sum(0) / problem.num_judged
    alone, both = entropy(size).sum(-1), entropy(table).sum((-1, -2))
    total = alone[:, :, None] + alone[:, None]
    return 2 * (total - both) / jnp.maximum(total, jnp.finfo(eta.dtype).tiny)


def merged(q: Q, rank: Int[Array, " restart"], problem: Problem) -> tuple[Q, Bool[Array, " restart"]]:
    """Give the experts of one view to the view whose clusters are the most similar, the smaller to the larger.

    Parameters
    ----------
    rank : which pair of views to take: 0 is the most similar one.

    Returns
    -------
    q, and of which restarts there is such a pair.
    """
    size = q.phi.sum(1)
    number = size.shape[1]
    used = size >= FEWEST
    possible = used[:, :, None] & used[:, None] & jnp.triu(jnp.ones((number, number), bool), 1)
    score = jnp.where(possible, similarity(q.eta, problem), -jnp.inf).reshape(len(size), -1)
    row, best = jnp.arange(len(size)), jnp.argsort(-score, axis=1)
    chosen = best[row, jnp.minimum(rank, number**2 - 1)]
    there = score[row, chosen] > -jnp.inf
    one, other = jnp.divmod(chosen, number)
    larger = size[row, one] >= size[row, other]
    to, out = jnp.where(larger, one, other)[:, None], jnp.where(larger, other, one)[:, None]
    into, outof = (jnp.arange(number) == view for view in (to, out))
    taken = jnp.where(outof[:, None], q.phi, 0).sum(-1, keepdims=True)
    phi = jnp.where(outof[:, None], 0, q.phi + jnp.where(into[:, None], taken, 0))
    return q._replace(phi=jnp.where(there[:, None, None], phi, q.phi)), there


def ordered(q: Q) -> Q:
    """Return q with its views by falling number of experts; of equally many, the one with the first expert first.

    The sticks are to be updated afterwards.
    """
    # Rounded: which of two views with five experts each has 4.9999 is chance.
    number = jnp.round(q.phi.sum(1), 3)
    own = q.phi >= q.phi.max(-1, keepdims=True)
    first = jnp.where(own.any(1), own.argmax(1), q.phi.shape[1])
    order = jnp.lexsort((first, -number), axis=-1)

    def sorted_by(values: Array, axis: int, restart_axis: int = 0) -> Array:
        shape = [1] * values.ndim
        shape[restart_axis], shape[axis] = order.shape
        return jnp.take_along_axis(values, order.reshape(shape), axis=axis)

    return q._replace(
        eta=sorted_by(q.eta, 2, 1), tilt=sorted_by(q.tilt, 2, 1),
        weight_mean=sorted_by(q.weight_mean, 1), weight_variance=sorted_by(q.weight_variance, 1),
        phi=sorted_by(q.phi, 2),
        accuracy=sorted_by(q.accuracy, 2) if q.accuracy.shape[2] > 1 else q.accuracy,
    )  # fmt: skip


# ---- what the driver asks for ----


def settled(state: State, problem: Problem) -> Bool[Array, ""]:
    """Tell whether all is done."""
    return state.phase == Phase.DONE


def sites(state: State, problem: Problem, total: Total = unsharded) -> dict[str, Array]:
    """Return what the best restart ended with, views and clusters under the numbers that it has.

    Returns
    -------
    sensitivity, specificity : shape ``(expert, 2)``; Beta parameters, of experts with accuracies per view
        ``(expert, view, 2)``.
    stick : shape ``(view - 1, 2)``; Beta parameters.
    view_probability : shape ``(expert, view)``.
    weight_mean, weight_variance : shape ``(view, feature + 1, cluster)``.
    cluster_probability : shape ``(judged, view, cluster)``, of the items that occur in a pair.
    restart_bound : shape ``(restart,)``; pruned bounds of all restarts.
    restart_view_probability : shape ``(restart, expert, view)``.
    """
    bounds = _all_bounds(state, problem, total)
    mine = _own(problem) == bounds.argmax()

    one = _chosen(mine, state.q, jax.tree.map(jnp.zeros_like, state.q))
    one = restart_by_restart(lambda axis, values: total(values.sum(axis, keepdims=True)), one)
    accuracy = one.accuracy[0] if problem.settings.per_view else one.accuracy[0, :, 0]
    return {
        "sensitivity": accuracy[..., 0, :],
        "specificity": accuracy[..., -1, :],
        "stick": one.stick[0],
        "view_probability": one.phi[0],
        "weight_mean": one.weight_mean[0],
        "weight_variance": one.weight_variance[0],
        "cluster_probability": one.eta[:, 0],
        "restart_bound": bounds,
        "restart_view_probability": _everywhere(ordered(state.q).phi, problem, total),
    }


def lengths(problem: Problem) -> dict[str, int]:
    """Return how many rows of the sites are no padding; on the host."""
    return {"cluster_probability": int(problem.num_judged)}


CAVI = Ascent(
    name="cavi", prepare=prepare, start=start, step=step, part=part, sites=sites, finish=finished, settled=settled,
    shard=shard, lengths=lengths,
)  # fmt: skip
