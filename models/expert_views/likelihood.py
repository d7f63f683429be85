"""How probable the answers are, given who is together: the part that the NumPyro model and the samplers have in common.

Arrays have the view last, so that gathers over pairs move whole rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from consilience.arrays import Array, Bool, Float, Int
from consilience.models.expert_views.judgements import Judgements


class Answering(NamedTuple):
    """Logarithms of how probably each expert says what, shapes ``(expert, view)``, or ``(expert, 1)`` for all views.

    Parameters
    ----------
    hit : together, of items that are.
    miss : apart, of items that are together.
    rejection : apart, of items that are.
    false_alarm : together, of items that are apart.
    """

    hit: Array
    miss: Array
    rejection: Array
    false_alarm: Array


def answering(sites: Mapping[str, Array], experts: str) -> Answering:
    """Return how experts answer, from the sites that are drawn of experts of this kind."""
    if experts == "spammer":
        knowledge, guess = (sites[site][:, None] for site in ("knowledge", "guess"))
        return spammer_answering(jnp.log(knowledge), jnp.log1p(-knowledge), jnp.log(guess), jnp.log1p(-guess))
    sensitivity = sites["sensitivity"]
    specificity = sensitivity if experts == "symmetric" else sites["specificity"]
    if sensitivity.ndim == 1:
        sensitivity, specificity = sensitivity[:, None], specificity[:, None]
    return Answering(jnp.log(sensitivity), jnp.log1p(-sensitivity), jnp.log(specificity), jnp.log1p(-specificity))


def spammer_answering(knows: Any, knows_not: Any, guesses: Any, guesses_not: Any, numpy: Any = jnp) -> Answering:
    """Return how spammers answer: rightly if they know, else by a guess; from logarithms.

    Parameters
    ----------
    knows, knows_not : of knowing whether the items are together.
    guesses, guesses_not : of saying together without knowing.
    numpy : the module of arrays that they are of.
    """
    miss, false_alarm = knows_not + guesses_not, knows_not + guesses
    return Answering(numpy.logaddexp(knows, false_alarm), miss, numpy.logaddexp(knows, miss), false_alarm)


def log_view_weight(stick: Array, rest: Array) -> Float[Array, " view"]:
    """Return the log prior probability of each view, from logarithms of the broken sticks and of what they leave."""
    left = jnp.concatenate([jnp.zeros(1, rest.dtype), jnp.cumsum(rest)])
    return left.at[:-1].add(stick)


def pairs_together(cluster: Int[Array, "item view"], judged: Judgements) -> Bool[Array, "pair view"]:
    """Return which pairs of items are in one cluster."""
    return cluster[judged.first] == cluster[judged.second]


def together_counts(same: Bool[Array, "pair view"], judged: Judgements) -> Float[Array, "expert view 2"]:
    """Count what each expert says of the pairs that are together: together, apart."""
    said = jnp.stack([judged.together, judged.apart], axis=-1).astype(jnp.result_type(float))
    of_answer = same[judged.answer_pair][..., None] * said[:, None]
    number = judged.num_experts
    return jax.ops.segment_sum(of_answer, judged.answer_expert, number, indices_are_sorted=True)


def log_likelihood(
    counts: Float[Array, "expert view 2"], answers: Answering, judged: Judgements
) -> Float[Array, "expert view"]:
    """Return the log probability of each expert's answers, were each of the views his.

    Parameters
    ----------
    counts : of the answers on pairs that are together, in each view.
    answers : how experts answer.
    judged : the answers.
    """
    hits, misses = counts[..., 0], counts[..., 1]
    false_alarms, rejections = judged.num_together[:, None] - hits, judged.num_apart[:, None] - misses
    right, wrong = hits * answers.hit + rejections * answers.rejection, misses * answers.miss
    return right + wrong + false_alarms * answers.false_alarm


def own_view(values: Float[Array, "expert view"], view_of_expert: Int[Array, " expert"]) -> Float[Array, " expert"]:
    """Return what stands in the column of each expert's own view, or in the only column."""
    if values.shape[1] == 1:
        return values[:, 0]
    chosen: Any = jnp.take_along_axis(values, view_of_expert[:, None], axis=1)
    return chosen[:, 0]
