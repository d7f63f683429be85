"""The two sums that every kernel of the mention-pair model needs: log-odds of the pairs, and counts given them."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from consilience.arrays import Array, Float
from consilience.models.mpa.candidates import Tables

__all__ = ["Counts", "counts", "log_odds"]

# Log-odds of what is known: finite, and so large that the probability is 0 or 1 in any precision.
_CERTAIN = 1e4


class Counts(NamedTuple):
    """How many pairs are true and how annotators decided on them; sums of probabilities, or of draws.

    Parameters
    ----------
    true, false : shape ``(class,)``; pairs.
    true_yes, true_no, false_yes, false_no : shape ``(annotator, class)``; decisions, by whether the pair is true.
    """

    true: Float[Array, " class"]
    false: Float[Array, " class"]
    true_yes: Float[Array, "annotator class"]
    true_no: Float[Array, "annotator class"]
    false_yes: Float[Array, "annotator class"]
    false_no: Float[Array, "annotator class"]


def log_odds(
    prior: Float[Array, " class"],
    yes: Float[Array, "annotator class"],
    no: Float[Array, "annotator class"],
    tables: Tables,
) -> Float[Array, " pair"]:
    """Return the log-odds that each candidate is true (Paun et al. 2018, equations 8 and 9).

    Parameters
    ----------
    prior : log-odds of a candidate about which nobody was asked.
    yes, no : what a decision adds to them.
    """
    # Without the barrier XLA evaluates the digammas behind these tables anew for every decision.
    prior, yes, no = jax.lax.optimization_barrier((prior, jnp.ravel(yes), jnp.ravel(no)))
    asked = tables.asked_weight * no[tables.asked_cell]
    of_group = jax.ops.segment_sum(asked, tables.asked_group, len(tables.group_size), indices_are_sorted=True)
    chosen = tables.chosen_weight * (yes - no)[tables.chosen_cell]
    of_pair = jax.ops.segment_sum(chosen, tables.chosen_pair, len(tables.pair_class))
    odds = prior[tables.pair_class] + of_group[tables.pair_group] + of_pair
    return jnp.where(tables.known == 0, odds, tables.known * _CERTAIN)


def counts(true: Float[Array, " pair"], tables: Tables) -> Counts:
    """Count pairs and decisions.

    Parameters
    ----------
    true : probability that each candidate is true, or 0 and 1.
    """
    num_classes, size = len(tables.classes), tables.yes.size
    of_class = jax.ops.segment_sum(tables.pair_counts * true, tables.pair_class, num_classes)
    all_of_class = jax.ops.segment_sum(tables.pair_counts, tables.pair_class, num_classes)
    of_group = jax.ops.segment_sum(true, tables.pair_group, len(tables.group_size))
    asked = jax.ops.segment_sum(tables.asked_weight * of_group[tables.asked_group], tables.asked_cell, size)
    yes = jax.ops.segment_sum(tables.chosen_weight * true[tables.chosen_pair], tables.chosen_cell, size)
    true_yes = yes.reshape(tables.yes.shape)
    # Differences of sums may fall below zero by rounding.
    true_no = jnp.maximum(asked.reshape(tables.no.shape) - true_yes, 0)
    return Counts(
        true=of_class, false=jnp.maximum(all_of_class - of_class, 0), true_yes=true_yes, true_no=true_no,
        false_yes=jnp.maximum(tables.yes - true_yes, 0), false_no=jnp.maximum(tables.no - true_no, 0),
    )  # fmt: skip
