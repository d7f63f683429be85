r"""EM for Plackett-Luce: the most plausible weights, and the maximum-likelihood estimate beside every posterior.

With the arrival times of `consilience.models.plackett_luce.likelihood` as missing data, the weight of a class needs two
numbers: n, how many reports list the class before all is said, and E, its expected exposure, the time during which it
could have arrived. By Fisher's identity the exposure is in the gradient of the likelihood,

.. math::

    \lambda_k E_k = n_k - \partial \log L / \partial \log \lambda_k ,

so that the E-step is one gradient, whatever the ties. Without ties this is the MM algorithm of Hunter (2004).

The likelihood knows no scale, so that the objective is a function of the shares θ = λ / Σλ alone:

.. math::

    \sum_k (\alpha_k - 1) \log \theta_k + \gamma \log L .

With A = Σ(α_k - 1), the term -A log Σλ lies above its tangent, and one step is

.. math::

    \lambda_k \leftarrow \frac{\alpha_k - 1 + \gamma n_k}{A / \sum \lambda + \gamma E_k}.

| symbol | name | shape |
|---|---|---|
| θ | ``plausibility``, ``other`` | (entry,), (item,): all classes that nobody named together |
| α - 1 | ``excess``, ``other_excess`` | (entry,), (item,): zero with the default priors |
| n | ``listed`` | (entry,) |
| γ | ``reliability`` | scalar |

With the default priors, all shapes one, this is maximum likelihood. That estimate lies on the boundary: classes that
nobody named have no share, and where everybody ranks one class below another its share tends to zero.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Bool, Float, Key
from consilience.data.rankings import Rankings
from consilience.errors import UnsupportedRequest
from consilience.models.interface import Ascent
from consilience.models.plackett_luce.layout import layout
from consilience.models.plackett_luce.likelihood import log_likelihood, log_sum
from consilience.models.plackett_luce.priors import gamma_shapes, num_unnamed
from consilience.models.posterior import Estimate, Posterior
from consilience.models.sites import Resolved
from consilience.models.squarem import extrapolated, step_length
from consilience.models.truth import Entries, PointTruth
from consilience.notes import Remedy

# An extrapolation multiplies no share by more than e^5, and has to gain something: shares that tend to zero would run
# away on rounding errors.
_FARTHEST = 5.0
_WORTHWHILE = 1e-9


class Problem(NamedTuple):
    """What the steps read; the symbols are in the table above. ``has_other``: some class of the item is unnamed."""

    data: Rankings
    listed: Float[Array, " entry"]
    excess: Float[Array, " entry"]
    other_excess: Float[Array, " item"]
    has_other: Bool[Array, " item"]
    reliability: Float[Array, ""]


class State(NamedTuple):
    """Logarithms of the shares; those of an item sum to one. -inf is a share of zero."""

    log_plausibility: Float[Array, " entry"]
    log_other: Float[Array, " item"]


def prepare(resolved: Resolved) -> Problem:
    """Collect what the steps read.

    Raises
    ------
    NotConjugate : a prior is no Gamma distribution, or the rates differ.
    UnsupportedRequest : there is no mode, since a shape is below one; or the tempering is that of the weights.
    """
    settings = resolved.settings
    if settings.tempering != "likelihood":
        raise UnsupportedRequest(
            "EM maximises the likelihood to the power of the reliability, and tempering is "
            f"'{settings.tempering}'; use {{tempering}}, or {{method}}",
            Remedy("tempering", "likelihood"), Remedy("method", "nuts"),
        )  # fmt: skip
    return _problem(resolved.data, *gamma_shapes(resolved), settings.reliability)


def _problem(
    data: Rankings, shape: Float[np.ndarray, " entry"], other_shape: Float[np.ndarray, " item"], reliability: float
) -> Problem:
    has_other = np.asarray(num_unnamed(data)) > 0
    smallest = min(shape.min(initial=np.inf), other_shape[has_other].min(initial=np.inf))
    if smallest < 1:
        raise UnsupportedRequest(
            f"a Gamma prior of shape {smallest:g} has no mode: its density is infinite at weight zero; "
            "give shapes of one or more, or sample the posterior with {method}", Remedy("method", "gibbs"),
        )  # fmt: skip
    dtype = jnp.result_type(float)
    numbers = (layout(data).wins, shape - 1, np.where(has_other, other_shape - 1, 0.0))
    listed, excess, other_excess = (jnp.asarray(n, dtype) for n in numbers)
    return Problem(data, listed, excess, other_excess, jnp.asarray(has_other), jnp.asarray(reliability, dtype))


def start(key: Key | None, problem: Problem) -> State:
    """Return equal shares of all named classes, and of the others as one; ties apart there is one maximum."""
    return _normalised(jnp.zeros_like(problem.listed), jnp.zeros_like(problem.other_excess), problem)


def step(state: State, problem: Problem) -> tuple[State, Float[Array, " item"]]:
    """Do two EM steps, an extrapolation of them and a third step from there; in logarithms, each item by itself.

    The extrapolation (`consilience.models.squarem`) makes linear convergence of the shares that tend to zero as
    one over the number of steps. It is undone for the items whose objective it does not raise.

    Returns
    -------
    the next state, and each item's objective at the state that came in. It never decreases.
    """
    item = problem.data.entry_item
    first, before = _em_step(state, problem)
    second, objective = _em_step(first, problem)

    def norm(direction: State) -> Array:
        named = jax.ops.segment_sum(direction.log_plausibility**2, item, problem.data.num_items)
        return jnp.sqrt(named + direction.log_other**2)

    change = jax.tree.map(_difference, first, state)
    bend = jax.tree.map(lambda a, b, c: _difference(a, b) - c, second, first, change)
    length = step_length(norm(change), norm(bend))
    extrapolate = functools.partial(extrapolated, farthest=_FARTHEST)
    far = _normalised(
        extrapolate(state.log_plausibility, change.log_plausibility, bend.log_plausibility, length[item]),
        extrapolate(state.log_other, change.log_other, bend.log_other, length),
        problem,
    )
    third, far_objective = _em_step(far, problem)
    better = far_objective > objective + _WORTHWHILE
    state = State(
        jnp.where(better[item], third.log_plausibility, second.log_plausibility),
        jnp.where(better, third.log_other, second.log_other),
    )
    return state, before


def sites(state: State, problem: Problem) -> dict[str, Array]:
    """Return the shares: ``plausibility`` of each entry and ``other`` of each item."""
    return {"plausibility": jnp.exp(state.log_plausibility), "other": jnp.exp(state.log_other)}


def _em_step(state: State, problem: Problem) -> tuple[State, Float[Array, " item"]]:
    """Do one EM step; returns also each item's objective before it."""
    data, reliability = problem.data, problem.reliability
    likelihood, pull_back = jax.vjp(lambda *logs: log_likelihood(data, *logs), *state)
    slope, other_slope = pull_back(jnp.ones_like(likelihood))
    item = jnp.asarray(data.entry_item)
    log_prior = _times(problem.excess, state.log_plausibility)
    objective = jax.ops.segment_sum(log_prior, item, data.num_items)
    objective += _times(problem.other_excess, state.log_other) + reliability * likelihood

    total_excess = jax.ops.segment_sum(problem.excess, item, data.num_items) + problem.other_excess

    def updated(log_share: Array, count: Array, excess: Array, total_excess: Array, slope: Array) -> Array:
        # The difference is a rounding error where a share is negligible; it must not become negative.
        exposed = jnp.maximum(count - slope, jnp.finfo(slope.dtype).eps * count)
        shape, rate = excess + reliability * count, total_excess * jnp.exp(log_share) + reliability * exposed
        moves = (shape > 0) & (log_share > -jnp.inf)
        ratio = jnp.where(moves, shape, 1.0) / jnp.where(moves, rate, 1.0)
        return jnp.where(moves, log_share + jnp.log(ratio), -jnp.inf)

    log_weight = updated(state.log_plausibility, problem.listed, problem.excess, total_excess[item], slope)
    log_other = updated(state.log_other, jnp.zeros_like(other_slope), problem.other_excess, total_excess, other_slope)
    # Of an item of which nobody says anything, no share is better than another.
    silent = jnp.isneginf(_log_totals(log_weight, log_other, problem))
    log_weight = jnp.where(silent[item], state.log_plausibility, log_weight)
    return _normalised(log_weight, jnp.where(silent, state.log_other, log_other), problem), objective


def _times(excess: Float[Array, " n"], log_share: Float[Array, " n"]) -> Float[Array, " n"]:
    """Multiply, where zero times minus infinity is zero."""
    return excess * jnp.where(excess > 0, log_share, 0.0)


def _normalised(log_weight: Float[Array, " entry"], log_other: Float[Array, " item"], problem: Problem) -> State:
    """Return shares that sum to one per item."""
    total = _log_totals(log_weight, log_other, problem)
    return State(log_weight - total[problem.data.entry_item], jnp.where(problem.has_other, log_other - total, -jnp.inf))


def _log_totals(
    log_weight: Float[Array, " entry"], log_other: Float[Array, " item"], problem: Problem
) -> Float[Array, " item"]:
    named = log_sum(log_weight, jnp.asarray(problem.data.entry_item), problem.data.num_items)
    named = jnp.where(named > -1e29, named, -jnp.inf)
    return jnp.logaddexp(named, jnp.where(problem.has_other, log_other, -jnp.inf))


def point_truth(posterior: Posterior, data: Rankings) -> PointTruth:
    """Return the estimate as a truth without uncertainty, in which the classes that nobody named share equally."""
    plausibility, other = (np.asarray(posterior.value(site), float) for site in ("plausibility", "other"))
    if not other.any():
        entries = Entries.of(data.entry_item, data.entry_class, data.num_items, data.num_classes)
        return PointTruth(entries, plausibility)
    unnamed = np.maximum(np.asarray(num_unnamed(data)), 1)
    share = np.repeat(other / unnamed, data.num_classes)
    share[np.asarray(data.entry_item, np.int64) * data.num_classes + data.entry_class] = plausibility
    return PointTruth(Entries.dense(data.num_items, data.num_classes), share)


def finish(values: dict[str, Any], resolved: Resolved) -> Estimate:
    """Return the shares."""
    return Estimate(values)


EM = Ascent(name="em", prepare=prepare, start=start, step=step, sites=sites, finish=finish)


# ---- maximum likelihood ----

_TOLERANCE = 1e-6
_MOST_STEPS = 60


def maximum_likelihood(data: Rankings) -> Float[np.ndarray, " entry"]:
    """Return the maximum-likelihood plausibility of each entry, float64, shape ``(entry,)``; an item's sum to one.

    Steps in float64, until no item's log-likelihood gains more than 1e-6 in one, and sixty steps at most. Where nothing
    is known, the shares are equal. Shares that tend to zero stop short of it, in the order of their sizes. With ties
    the estimate need not be unique; then it is the one that EM finds from equal shares.
    """
    with jax.enable_x64(True):
        state = _maximise(_problem(data, np.ones(data.num_entries), np.ones(data.num_items), 1.0))
        return np.exp(np.asarray(state.log_plausibility))


@jax.jit
def _maximise(problem: Problem) -> State:
    def gains(loop: Any) -> Any:
        _, _, gain, number = loop
        return (gain > _TOLERANCE) & (number < _MOST_STEPS)

    def one_step(loop: Any) -> Any:
        state, before, _, number = loop
        state, objective = step(state, problem)
        return state, objective, jnp.max(objective - before), number + 1

    before = jnp.full_like(problem.other_excess, -jnp.inf)
    return jax.lax.while_loop(gains, one_step, (start(None, problem), before, jnp.inf, 0))[0]


def _difference(new: Array, old: Array) -> Array:
    """Subtract logarithms of shares; a share of zero stays where it is."""
    return jnp.where(jnp.isneginf(new), 0.0, new - jnp.where(jnp.isneginf(new), 0.0, old))
