r"""Random starts of an ascent, each climbed a little; the highest goes on.

The flat start, in which nobody is known to be better than anybody else, is among them and wins ties. It is no saddle:
"knows" is tied to the names of the labels, so that an annotator who agrees with others gains at once.

The published program, too, starts ten times, but keeps the start with the largest :math:`\sum_i \log Z_i`. Under
variational Bayes that is not the bound, which has Kullback-Leibler terms besides; here starts are compared by the
objective itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from consilience.arrays import Array, Float, Int, Key
from consilience.models.interface import Terms, Total
from consilience.models.mace.likelihood import LogWeights

# As many sweeps as the published program makes.
_SWEEPS = 50


def flat_weights(counts: Float[Array, "annotator label"]) -> LogWeights:
    """Return weights k = g = 1/2, with every guess equally probable."""
    num_annotators, num_labels = counts.shape
    knows = jnp.full(num_annotators, jnp.log(0.5), counts.dtype)
    return LogWeights(knows, jnp.full(counts.shape, jnp.log(0.5) - jnp.log(num_labels), counts.dtype))


def random_weights(key: Key, counts: Float[Array, "annotator label"]) -> LogWeights:
    """Return flat weights times 1 + U(0, 1) / 2, normalised, as in the published program."""
    key_knows, key_guess = jax.random.split(key)
    knows = 1 + 0.5 * jax.random.uniform(key_knows, (len(counts), 2), counts.dtype)
    guess = 1 + 0.5 * jax.random.uniform(key_guess, counts.shape, counts.dtype)
    log_knows, log_guesses = jnp.log(knows / knows.sum(axis=1, keepdims=True)).T
    return LogWeights(log_knows, log_guesses[:, None] + jnp.log(guess / guess.sum(axis=1, keepdims=True)))


def best_start(
    key: Key,
    restart: Int[Array, " restart"],
    counts: Float[Array, "annotator label"],
    update: Callable[[LogWeights], Any],
    step: Callable[[Any], tuple[Any, Terms]],
    total: Total,
) -> Any:
    """Return the state after the flat start, or the highest of that one and of random starts after 50 sweeps each.

    Parameters
    ----------
    key : of the random starts.
    restart : their numbers; none for the flat start alone.
    counts : tells the shapes.
    update : turns weights into a state.
    step : ``step(state)`` -> (state, terms of the objective).
    total : sums over the shards of a divided problem.
    """
    flat = update(flat_weights(counts))
    if not len(restart):
        return flat

    def climb(state: Any) -> tuple[Any, Any]:
        state = jax.lax.fori_loop(0, _SWEEPS, lambda _, state: step(state)[0], state)
        return state, step(state)[1].sum(total)

    def climb_from(number: Any) -> tuple[Any, Any]:
        return climb(update(random_weights(jax.random.fold_in(key, number), counts)))

    (state, height), (others, heights) = climb(flat), jax.lax.map(climb_from, restart)
    states = jax.tree.map(lambda one, more: jnp.concatenate([one[None], more]), state, others)
    best = jnp.argmax(jnp.concatenate([height[None], heights]))
    return jax.tree.map(lambda values: values[best], states)
