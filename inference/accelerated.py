"""Ascents that leap: the steps of a member, and between them proposals much further ahead, taken back where they fall.

The arithmetic is that of `consilience.models.squarem`. One cycle, with the member's step F and its objective:

| step | from | what is done then |
|---|---|---|
| plain | x₁ = F(x₀) | x₂ = F(x₁) and with it the proposal x', from which the next step starts |
| proposed | x' | the objective at x' is at least that at x₁: x' is the new x₀, and F(x') the new x₁ |
| | | it is lower, or not finite: on from x₂, with a fourth of the limit of α |

So an accepted cycle takes two steps, and one that was taken back three. The limit is four times larger after a proposal
that used all of it. No proposal is made that the chunk would end before: between chunks the state is always one that a
plain step returned, and needs no proof.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from consilience.arrays import Array, Bool, Float
from consilience.models.interface import Ascent
from consilience.models.squarem import proposal

# The limit of α is this many times larger or smaller from one proposal to the next, and never more than that.
_FACTOR, _LARGEST = 4.0, 2.0**40

# A step that gains less than this, relative to the objective, is at its end: nothing is proposed from it, because
# rounding alone would decide whether the proposal is any better, differently on other numbers of devices. In float32 it
# is the spacing of floats.
_WORTHWHILE = 1e-13


class Journey(NamedTuple):
    """Where an accelerated ascent is; all that its next step needs.

    Parameters
    ----------
    state : of the member, from which the next step starts.
    before : coordinates from which the last step started that was not taken back; x₀.
    middle, last : x₁ and x₂ of the proposal that the next step looks at; of no use where there is none.
    sums : the sums of terms of the objective at the last point that was not taken back.
    limit : the largest α.
    proposed : whether ``state`` is a proposal.
    used : whether its α is the limit.
    """

    state: Any
    before: Any
    middle: Any
    last: Any
    sums: Float[Array, " block"]
    limit: Float[Array, ""]
    proposed: Bool[Array, ""]
    used: Bool[Array, ""]


def may_leap(ascent: Ascent, state: Any, problem: Any) -> bool:
    """Return whether proposals are allowed: the member gives coordinates, and the driver says when to stop."""
    stops_itself = ascent.settled is not None and ascent.settled(state, problem) is not None
    return ascent.coordinates is not None and ascent.at is not None and not stops_itself


def journey_from(ascent: Ascent, state: Any, step: Callable[[Any], tuple[Any, dict[str, Array]]]) -> Journey:
    """Return the start of an accelerated ascent at a state; inside of a program."""
    assert ascent.coordinates is not None
    here, terms = ascent.coordinates(state), jax.eval_shape(step, state)[1]["terms"]
    nothing = jnp.full(terms.shape, -jnp.inf, terms.dtype)
    no = jnp.zeros((), bool)
    return Journey(state, here, here, here, nothing, jnp.ones((), terms.dtype), no, no)


def leap(
    ascent: Ascent, journey: Journey, step: Callable[[Any], tuple[Any, dict[str, Array]]], may_propose: Any
) -> tuple[Journey, dict[str, Array]]:
    """Take a step, and go on from where it leads, from a proposal, or from before a proposal that was no good.

    Parameters
    ----------
    step : ``step(state)`` -> (state, output with the sums of the objective as ``terms``, those of all shards).
    may_propose : whether at least two more steps are taken before anyone looks.

    Returns
    -------
    the journey, and the output with ``refused``: whether this step is taken back.
    """
    assert ascent.coordinates is not None
    assert ascent.at is not None
    here = ascent.coordinates(journey.state)
    after, output = step(journey.state)
    there, sums = ascent.coordinates(after), output["terms"]
    # The difference of each block first: of two large sums it would be lost in float32.
    gain = (sums - journey.sums).sum()
    refused = journey.proposed & ~(gain >= 0)
    plain = ~journey.proposed

    far, length = proposal(journey.before, here, there, journey.limit)
    used = length >= journey.limit
    least = max(_WORTHWHILE, float(jnp.finfo(sums.dtype).eps)) * (jnp.abs(sums.sum()) + sums.size)
    propose = plain & may_propose & (length > 1) & (gain > least)
    target = _where(refused, journey.last, far)
    widened = jnp.where(journey.proposed, journey.used, used & (length <= 1))
    limit = jnp.where(widened, journey.limit * _FACTOR, journey.limit)
    limit = jnp.where(refused, journey.limit / _FACTOR, limit)
    return Journey(
        state=_where(refused | propose, ascent.at(target, after), after),
        before=_where(refused, journey.middle, here),
        middle=_where(propose, here, journey.middle),
        last=_where(propose, there, journey.last),
        sums=jnp.where(refused, journey.sums, sums),
        limit=jnp.clip(limit, 1.0, _LARGEST),
        proposed=propose,
        used=used,
    ), {**output, "refused": refused}


def _where(condition: Bool[Array, ""], one: Any, other: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), one, other)
