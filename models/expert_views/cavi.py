"""Coordinate ascent with many restarts: warm-up, sweeps, and moves that merge views; the best restart is kept.

All restarts go through the same phases together, and the host calls one of three programs: a step of the warm-up, a
sweep, or a move. A restart whose bound stands still
keeps its state. The objective is the best pruned bound that any restart has had; before the sweeps it is that of the
starts. Restarts may be divided among devices: each has all of the data, and the draws of a restart depend on its
number alone.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Bool, Float, Int, Key
from consilience.errors import NotConjugate, UnsupportedRequest
from consilience.models.expert_views.bound import pruned_bound
from consilience.models.expert_views.judgements import judgements
from consilience.models.expert_views.likelihood import answer_table
from consilience.models.expert_views.moves import merged, ordered
from consilience.models.expert_views.posterior import finished
from consilience.models.expert_views.problem import Problem, Q, problem_of, restart_by_restart
from consilience.models.expert_views.settings import check_clusters
from consilience.models.expert_views.tied import tied_sweep
from consilience.models.expert_views.updates import agreement, sweep, update_sticks
from consilience.models.expert_views.warmup import NUM_STEPS, WarmUp, begin, finish, warm_up
from consilience.models.interface import Ascent, Shards, Terms, Total, unsharded
from consilience.models.rows import copies
from consilience.models.sites import Resolved
from consilience.notes import Remedy

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
    FINISH = 1
    SWEEP = 2
    MERGE = 3
    TRIAL = 4
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


def prepare(resolved: Resolved) -> Problem:
    """Return the problem of all restarts.

    Raises
    ------
    NotConjugate : a prior is no Beta distribution, the link is not the linear one with normal weights, or experts are
        spammers.
    UnsupportedRequest : there are more clusters than items in pairs, or other answers than together and apart.
    """
    chosen, given = resolved.settings, resolved.given
    found, standard = judgements(resolved.data, bool(chosen.standardize))
    check_clusters(chosen.clusters, len(found.item), "coordinate ascent")
    if given.logits is not None or given.weight is not None:
        raise NotConjugate(
            "site 'weight': coordinate ascent needs the linear link with normal weights of mean zero; a link or a "
            "prior of your own is sampled with {method}", Remedy("method", "gibbs"),
        )  # fmt: skip
    if chosen.experts == "spammer":
        text = "{experts}: knowledge and guess have no conjugate update; take {method}"
        raise NotConjugate(text, Remedy("experts", "spammer"), Remedy("method", "gibbs"))
    if found.said.shape[1] > 2:
        text = "coordinate ascent takes answers together and apart of pairs shown in one way; take {method}"
        raise UnsupportedRequest(text, Remedy("method", "gibbs"))
    sensitivity, specificity = (resolved.concentration(answer_table(resolved).sites[place]) for place in (0, -1))
    return problem_of(
        found, standard, sensitivity, specificity, clusters=chosen.clusters, views=resolved.size("view"),
        restarts=chosen.restarts, concentration=given.concentration, weight_scale=given.weight_scale,
        responsibilities=chosen.responsibilities, bound=chosen.bound, experts=chosen.experts,
    )  # fmt: skip


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
    dtype, num_experts = problem.feature.dtype, len(problem.num_together)
    deviation = max(shapes[0] - 1, 1) ** -0.5

    def of_restart(number: Array) -> tuple[Array, Array]:
        key_weight, key_view = jax.random.split(jax.random.fold_in(key, number))
        weight = deviation * jax.random.normal(key_weight, (settings.views, *shapes), dtype)
        # Shares of exponential numbers have a flat Dirichlet distribution.
        share = jax.random.exponential(key_view, (num_experts, settings.views), dtype)
        return weight, share / share.sum(-1, keepdims=True)

    weight, phi = jax.vmap(of_restart)(_own(problem))
    own = settings.views if settings.per_view else 1
    q = Q(
        eta=jax.nn.softmax(jnp.einsum("nd,rgdk->nrgk", problem.feature, weight), axis=-1),
        tilt=jnp.zeros((settings.clusters, len(phi), settings.views, len(problem.feature)), dtype),
        weight_mean=weight,
        weight_variance=jnp.full_like(weight, _FIRST_VARIANCE),
        phi=phi,
        sensitivity=jnp.broadcast_to(problem.sensitivity[:, None], (len(phi), num_experts, own, 2)),
        specificity=jnp.broadcast_to(problem.specificity[:, None], (len(phi), num_experts, own, 2)),
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
    return jnp.asarray([0, 2, 1, 2, 1, 2, 2], jnp.int32)[state.phase]


def step(state: State, problem: Problem, total: Total = unsharded, part: int = 0) -> tuple[State, Terms]:
    """Do what is next, which is of a part; the objective is the best bound of the restarts so far."""
    with jax.default_matmul_precision("highest"):
        state = (_warm_up, _sweep, _move)[part](state, problem)
    bounds = _all_bounds(state, problem, total)
    # Before the sweeps bounds are those of the starts, and those of trials may yet be gone back on.
    valid = (state.phase == Phase.SWEEP) | (state.phase == Phase.DECIDE)
    best = jnp.where(valid, jnp.maximum(state.best, bounds.max()), state.best)
    state = _next_phase(state._replace(best=best), problem, total)
    return state, Terms(jnp.zeros(0, best.dtype), best[None])


def _warm_up(state: State, problem: Problem) -> State:
    def of_step(index: Array, carry: tuple[Q, WarmUp]) -> tuple[Q, WarmUp]:
        return warm_up(*carry, state.steps * _ADAM_STEPS + index, problem)

    q, warm = jax.lax.fori_loop(0, _ADAM_STEPS, of_step, (state.q, state.warm))
    return state._replace(q=q, warm=warm)


def _move(state: State, problem: Problem) -> State:
    branch = jnp.asarray([0, 0, 0, 1, 0, 2, 3], jnp.int32)[state.phase]
    return jax.lax.switch(branch, [_finish, _merge, _decide, lambda state, _: state], state, problem)


def _finish(state: State, problem: Problem) -> State:
    return state._replace(q=update_sticks(ordered(finish(state.q, problem)), problem))


def _sweep(state: State, problem: Problem) -> State:
    """Sweep once; of sweeps, but not of trials, restarts that stand still keep their state."""
    trial = state.phase == Phase.TRIAL
    frozen = trial & (state.steps < _FROZEN_SWEEPS)
    q, found = (tied_sweep if problem.settings.tied else sweep)(state.q, problem, frozen)
    bound = pruned_bound(q, found, problem)
    resting = ~trial & (state.quiet >= _QUIET_SWEEPS)
    least = jnp.where(state.round == _ROUNDS, _LEAST_CHANGE, _LEAST_CHANGE_BEFORE) * problem.num_answers
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
    better = state.possible & (state.bound > state.kept_bound + _LEAST_CHANGE_BEFORE * problem.num_answers)
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
        Phase.SWEEP,
        jnp.where(~moving | (steps == _MOST_SWEEPS), after_sweeps, Phase.SWEEP),
        Phase.TRIAL,
        jnp.where(steps == _FROZEN_SWEEPS + _FREE_SWEEPS, Phase.DECIDE, Phase.TRIAL),
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
    feature_mean, feature_scale : shape ``(feature,)``; by which features were standardised.
    """
    bounds = _all_bounds(state, problem, total)
    mine = _own(problem) == bounds.argmax()

    one = _chosen(mine, state.q, jax.tree.map(jnp.zeros_like, state.q))
    one = restart_by_restart(lambda axis, values: total(values.sum(axis, keepdims=True)), one)
    num_experts, own = one.sensitivity.shape[1:3]
    shape = (num_experts, own, 2) if problem.settings.per_view else (num_experts, 2)
    return {
        "sensitivity": one.sensitivity[0].reshape(shape),
        "specificity": one.specificity[0].reshape(shape),
        "stick": one.stick[0],
        "view_probability": one.phi[0],
        "weight_mean": one.weight_mean[0],
        "weight_variance": one.weight_variance[0],
        "cluster_probability": one.eta[:, 0],
        "restart_bound": bounds,
        "restart_view_probability": _everywhere(ordered(state.q).phi, problem, total),
        "feature_mean": jnp.asarray(problem.mean),
        "feature_scale": jnp.asarray(problem.scale),
    }


def lengths(problem: Problem) -> dict[str, int]:
    """Return how many rows of the sites are no padding; on the host."""
    return {"cluster_probability": int(problem.num_judged)}


CAVI = Ascent(
    name="cavi", prepare=prepare, start=start, step=step, part=part, sites=sites, finish=finished, settled=settled,
    shard=shard, lengths=lengths,
)  # fmt: skip
