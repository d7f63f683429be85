r"""One label per item: the truth of the mention-pair model, and what it says of each candidate.

In the model any number of an item's candidates may be true, each by itself: :math:`\varphi` is the probability that one
is. The truth is one label per item, and given that exactly one candidate is true its probability is the softmax of the
log-odds,

.. math::

    P(m) \propto \varphi_m / (1 - \varphi_m) .

It is taken at each draw of the parameters: those that a sampler kept, or draws of what coordinate ascent ended with.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int, Key
from consilience.models.mpa.candidates import Candidates, Tables, candidates_of
from consilience.models.mpa.cavi import Posterior
from consilience.models.mpa.gibbs import LogBeta, draw_betas, log_odds_given
from consilience.models.truth import Entries, LabelDraws, LabelProbabilities, Truth

__all__ = ["ApproximateLabels", "DrawnLabels", "truth"]

# Draws of the parameters over which the labels of a posterior in closed form are averaged, at most: their error is then
# a fourteenth of what the parameters leave open, and they take no longer than the ascent did.
_MOST_DRAWS = 200


class _CandidateTruth(Truth):
    """What both kinds of truth know of the candidates.

    Attributes
    ----------
    candidates : the pairs of items and labels.
    phi : shape ``(pair,)``; the probability that a candidate is true, whatever the others are.
    probability : shape ``(pair,)``; that it is the one that is true, normalised within an item.
    score : shape ``(pair,)``; the leading label has the largest.
    last_of_equals : whether the label that was seen last leads among equal ones, and not that of the lowest code.
    """

    candidates: Candidates
    phi: np.ndarray
    probability: np.ndarray
    score: np.ndarray
    last_of_equals: bool = False

    def leading(self) -> dict[str, np.ndarray]:
        """Tabulate the label of each item; see `Truth.leading`."""
        pairs = self.candidates
        rank = -pairs.seen if self.last_of_equals else pairs.label
        order = np.lexsort((rank, -self.score, pairs.item))
        best = order[np.searchsorted(pairs.item, np.arange(self.num_items))]
        probability = self.probability[best]
        return {
            "item": np.arange(self.num_items), "label": pairs.label[best], "probability": probability,
            "certainty": probability,
        }  # fmt: skip


class ApproximateLabels(_CandidateTruth, LabelProbabilities):
    """Labels of a posterior in closed form. The label of an item is the candidate of the largest log-odds."""


class DrawnLabels(_CandidateTruth, LabelDraws):
    """Labels drawn given each draw of the parameters. The label of an item is its most probable candidate."""


def truth(
    posterior: Any, data: Any, *, key: Key, num_draws: int, candidates: str = "observed", author: int = 0
) -> Truth:
    """Return draws of the label of each item; of mentions, its classes are all labels that occur.

    Parameters
    ----------
    posterior : `Posterior`, or draws of the model's sites.
    data : `Mentions` or `Annotations`.
    key, num_draws : of a posterior in closed form, how many draws to make; as many draws of its parameters, or 200,
        are averaged over.
    candidates, author : as in the fit.
    """
    found = candidates_of(data, candidates)
    entries = Entries.of(found.item, found.label, found.num_items, found.num_labels)
    key_parameters, key_labels = jax.random.split(key)
    tables = _typed(found.tables)
    if isinstance(posterior, Posterior):
        own = _typed(_of_classes(posterior, found.tables.classes))
        averaged = min(num_draws, _MOST_DRAWS)
        mean = _mean_probability(key_parameters, own, tables, found.item, found.num_items, averaged)
        probability = np.asarray(mean, float)
        labels: _CandidateTruth = ApproximateLabels(entries, probability, key=key_labels, num_draws=num_draws)
        odds = np.asarray(posterior.log_odds, float)
        labels.phi = _sigmoid(odds)
        labels.score = labels.phi if author else odds
    else:
        sites = tuple(_typed(np.asarray(posterior[site])) for site in ("prevalence", "sensitivity", "specificity"))
        label, probability, phi = _drawn(key_labels, sites, tables, found.item, found.label, found.num_items)
        labels = DrawnLabels(np.asarray(label), found.num_labels)
        labels.probability, labels.phi = np.asarray(probability, float), np.asarray(phi, float)
        labels.score = labels.probability
    labels.candidates, labels.last_of_equals = found, bool(author)
    labels.classes = found.labels
    return labels


def _typed(part: Any) -> Any:
    """Turn floats into JAX's default float type."""
    dtype = jnp.result_type(float)
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if leaf.dtype.kind == "f" else leaf, part)


def _of_classes(posterior: Posterior, classes: Int[Array, " class"]) -> Posterior:
    return Posterior(
        posterior.prevalence[classes], posterior.sensitivity[:, classes], posterior.specificity[:, classes],
        posterior.log_odds,
    )  # fmt: skip


def _sigmoid(odds: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0, -odds))


def _softmax(odds: Float[Array, " pair"], item: Int[Array, " pair"], num_items: int) -> Float[Array, " pair"]:
    """Normalise within each item."""
    highest = jax.ops.segment_max(odds, item, num_items, indices_are_sorted=True)
    weight = jnp.exp(odds - highest[item])
    return weight / jax.ops.segment_sum(weight, item, num_items, indices_are_sorted=True)[item]


@functools.partial(jax.jit, static_argnames=("num_items", "num_draws"))
def _mean_probability(
    key: Key, q: Posterior, tables: Tables, item: Int[Array, " pair"], num_items: int, num_draws: int
) -> Float[Array, " pair"]:
    """Average the softmax over draws of prevalence and profiles from q."""
    tables = tables._replace(classes=jnp.arange(len(tables.classes)))

    def add(number: Any, total: Array) -> Array:
        drawn = draw_betas(jax.random.fold_in(key, number), (q.prevalence, q.sensitivity, q.specificity))
        return total + _softmax(log_odds_given(*drawn, tables), item, num_items)

    return jax.lax.fori_loop(0, num_draws, add, jnp.zeros_like(tables.pair_counts)) / num_draws


@functools.partial(jax.jit, static_argnames="num_items")
def _drawn(
    key: Key, sites: tuple[Array, Array, Array], tables: Tables, item: Int[Array, " pair"], label: Int[Array, " pair"],
    num_items: int,
) -> tuple[Int[Array, "draw item"], Float[Array, " pair"], Float[Array, " pair"]]:  # fmt: skip
    """Draw a label per item and draw; return the labels, and mean probabilities that each is the one, or is true."""

    def one_draw(totals: Any, draw: Any) -> tuple[Any, Any]:
        number, *values = draw
        prevalence, sensitivity, specificity = map(_log_beta_variable, values)
        odds = log_odds_given(prevalence, sensitivity, specificity, tables)
        probability, phi = totals[0] + _softmax(odds, item, num_items), totals[1] + jax.nn.sigmoid(odds)
        race = odds + jax.random.gumbel(jax.random.fold_in(key, number), odds.shape, odds.dtype)
        winner = race == jax.ops.segment_max(race, item, num_items, indices_are_sorted=True)[item]
        return (probability, phi), jax.ops.segment_max(jnp.where(winner, label, -1), item, num_items)

    num_draws, nothing = len(sites[0]), jnp.zeros_like(tables.pair_counts)
    (probability, phi), labels = jax.lax.scan(one_draw, (nothing, nothing), (jnp.arange(num_draws), *sites))
    return labels, probability / num_draws, phi / num_draws


def _log_beta_variable(value: Float[Array, "*cells"]) -> LogBeta:
    tiny = jnp.finfo(value.dtype).tiny
    return LogBeta(jnp.log(jnp.maximum(value, tiny)), jnp.log(jnp.maximum(1 - value, tiny)))
