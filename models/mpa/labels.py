r"""One label per item: the truth of the mention-pair model, and what it says of each candidate.

In the model any number of an item's candidates may be true, each by itself: :math:`\varphi` is the probability that one
is. The truth is one label per item, and given that exactly one candidate is true its probability is the softmax of the
log-odds,

.. math::

    P(m) \propto \varphi_m / (1 - \varphi_m) .

It is taken at each draw of the parameters: those that a sampler kept, or draws of what coordinate ascent ended with.
With ``decisions="joint"`` it is that of `joint` instead, which is as sure as it is right.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int, Key
from consilience.models.mpa.candidates import Candidates, Tables, candidates_of
from consilience.models.mpa.cavi import Posterior
from consilience.models.mpa.crowd import Kinds, Profiles, crowd_of, kinds_of, mean_choice, several_annotators
from consilience.models.mpa.gibbs import LogBeta, draw_betas, log_odds_given
from consilience.models.mpa.joint import joint_log_weight, likeliest_concentration, log_errors
from consilience.models.mpa.updates import typed
from consilience.models.truth import Block, Crowd, Entries, LabelDraws, LabelProbabilities, LabelTruth, Truth, pad

__all__ = ["ApproximateLabels", "DrawnLabels", "truth"]

# Draws of the parameters over which the labels of a posterior in closed form are averaged, at most: their error is then
# a fourteenth of what the parameters leave open, and they take no longer than the ascent did.
_MOST_DRAWS = 200

# Gains of certainty that are sums of rounding errors; they would order the items that nothing could change.
_ROUNDING = 1e-6


class _CandidateTruth(LabelTruth):
    """What both kinds of truth know of the candidates.

    Attributes
    ----------
    candidates : the pairs of items and labels.
    phi : shape ``(pair,)``; the probability that a candidate is true, whatever the others are.
    probability : shape ``(pair,)``; that it is the one that is true, normalised within an item.
    score : shape ``(pair,)``; the leading label has the largest.
    last_of_equals : whether the label that was seen last leads among equal ones, and not that of the lowest code.
    data, profiles : the annotations, and the profiles of those who made them.
    """

    candidates: Candidates
    phi: np.ndarray
    probability: np.ndarray
    score: np.ndarray
    last_of_equals: bool = False
    data: Any
    profiles: Profiles

    @functools.cached_property
    def kinds(self) -> Kinds:
        """What there is to choose from in each item."""
        return kinds_of(self.candidates)

    def make_crowd(self) -> Crowd:
        """Return how the annotators choose among the candidates."""
        return crowd_of(self.profiles, self.num_draws, self.candidates, self.kinds, self.data)

    def agreement(self) -> Iterator[Block]:
        """Yield how often two annotators agree on an item with each draw's label; see `Truth.agreement`."""
        if self.crowd is None:
            yield from super().agreement()
            return
        for block in self.labels():
            label, items = np.asarray(block.values)[: block.num_items], np.arange(self.num_items)[block.items]
            kind = np.asarray(self.kinds.of_pair)[self._pair(items[:, None], label)]
            values = self.crowd.agreement[np.arange(self.num_draws), kind]
            yield Block(block.items, jnp.asarray(pad(values, len(block.values), 0.0), jnp.result_type(float)))

    def gain_of_another_label(self) -> Float[np.ndarray, " item"]:
        """Return how much more certain each item is expected to be; see `LabelTruth.gain_of_another_label`.

        The new label is one of the candidates of the item.
        """
        pairs, kinds = self.candidates, self.kinds
        number = min(self.num_draws, _MOST_DRAWS)
        choice = mean_choice(self.profiles, number, pairs, kinds)
        entries = Entries.of(pairs.item, pairs.label, pairs.num_items, pairs.num_labels)
        gain = np.empty(self.num_items)
        for items, slots, *_ in entries.blocks(int(np.diff(entries.first).max())):
            size = np.diff(entries.first)[items]
            first = np.cumsum(size) - size
            # Each candidate as the label that comes in, with each candidate of its item as the true one.
            squared = size.repeat(size)
            given = np.arange(size.sum()).repeat(squared)
            true = first.repeat(size**2) + np.arange(len(given)) - (np.cumsum(squared) - squared).repeat(squared)
            probability = self.probability[slots]
            joint = probability[true] * choice[self._choice(slots, given, true)]
            best = np.maximum.reduceat(joint, np.cumsum(squared) - squared)
            gain[items] = np.add.reduceat(best, first) - np.maximum.reduceat(probability, first)
        return np.where(gain > _ROUNDING, gain, 0.0)

    def _choice(self, slots: slice, given: np.ndarray, true: np.ndarray) -> np.ndarray:
        """Return which choice it is to name a candidate where another one, or the same, is true."""
        kinds, class_ = self.kinds, np.asarray(self.candidates.tables.pair_class)[slots]
        size = 1 + int(class_.max(initial=0)) + int(np.max(kinds.class_, initial=0))
        known = 2 * (np.asarray(kinds.kind, np.int64) * size + kinds.class_) + kinds.is_true
        kind = np.asarray(kinds.of_pair, np.int64)[slots][true]
        return np.searchsorted(known, 2 * (kind * size + class_[given]) + (given == true))

    def _pair(self, item: np.ndarray, label: np.ndarray) -> np.ndarray:
        """Return the pairs of items and labels."""
        pairs = self.candidates
        known = pairs.item.astype(np.int64) * pairs.num_labels + pairs.label
        return np.searchsorted(known, item.astype(np.int64) * pairs.num_labels + label)

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
    """Labels of a posterior in closed form.

    The label of an item is the candidate of the largest log-odds, as in the paper. Where two are about equal the other
    one may have the larger mean probability, by a little.
    """


class DrawnLabels(_CandidateTruth, LabelDraws):
    """Labels drawn given each draw of the parameters. The label of an item is its most probable candidate."""


def truth(
    posterior: Any, data: Any, *, key: Key, num_draws: int, candidates: str = "observed", gold: str = "ignore",
    hyperparameters: str = "fixed", decisions: str = "separate", author: int = 0,
) -> Truth:
    """Return draws of the label of each item; of mentions, its classes are all labels that occur.

    Parameters
    ----------
    posterior : `Posterior`, or draws of the model's sites.
    data : `Mentions` or `Annotations`.
    key, num_draws : of a posterior in closed form, how many draws to make; as many draws of its parameters, or 200,
        are averaged over.
    candidates, gold, hyperparameters, decisions, author : as in the fit.
    """
    found = candidates_of(data, candidates, gold)
    entries = Entries.of(found.item, found.label, found.num_items, found.num_labels)
    key_parameters, key_labels, key_crowd = jax.random.split(key, 3)
    tables = typed(found.tables)
    if isinstance(posterior, Posterior):
        own = typed(_of_classes(posterior, found.tables.classes))
        averaged = min(num_draws, _MOST_DRAWS)
        errors = _errors(found, tables, _mean(own.prevalence), _mean(own.sensitivity)) if decisions == "joint" else None
        mean = _mean_probability(key_parameters, own, tables, errors, found.item, found.num_items, averaged)
        probability = np.asarray(mean, float)
        labels: _CandidateTruth = ApproximateLabels(entries, probability, key=key_labels, num_draws=num_draws)
        odds = np.asarray(posterior.log_odds, float)
        labels.phi = _sigmoid(odds)
        labels.score = labels.phi if author else odds if errors is None else probability
        labels.profiles = Profiles(own.sensitivity, own.specificity, key_crowd)
    else:
        sites = tuple(typed(np.asarray(posterior[site])) for site in ("prevalence", "sensitivity", "specificity"))
        errors = None
        if decisions == "joint":
            prevalence, sensitivity = (site[..., found.tables.classes].mean(axis=0) for site in sites[:2])
            errors = _errors(found, tables, prevalence, sensitivity)
        label, probability, phi = _drawn(key_labels, sites, tables, errors, found.item, found.label, found.num_items)
        labels = DrawnLabels(np.asarray(label), found.num_labels)
        labels.probability, labels.phi = np.asarray(probability, float), np.asarray(phi, float)
        labels.score = labels.probability
        sensitivity, specificity = (site[..., found.tables.classes] for site in sites[1:])
        labels.profiles = Profiles(sensitivity, specificity, None)
    labels.data = data
    labels.crowd = labels.make_crowd if several_annotators(found) else None
    labels.candidates, labels.last_of_equals = found, bool(author)
    labels.classes = found.labels
    return labels


def _of_classes(posterior: Posterior, classes: Int[Array, " class"]) -> Posterior:
    return Posterior(
        posterior.prevalence[classes], posterior.sensitivity[:, classes], posterior.specificity[:, classes],
        posterior.log_odds, posterior.sensitivity_prior[classes], posterior.specificity_prior[classes],
    )  # fmt: skip


def _errors(
    found: Candidates, tables: Tables, prevalence: Float[Array, " class"], sensitivity: Float[Array, "annotator class"]
) -> Float[Array, " pair"]:
    """Return the log probability of the errors of each pair, from estimates of the parameters."""
    tables = tables._replace(classes=jnp.arange(len(tables.classes)))
    nothing = jnp.zeros_like(tables.pair_counts)
    weight = joint_log_weight(_log_beta_variable(prevalence), _log_beta_variable(sensitivity), nothing, tables)
    errors = log_errors(found, likeliest_concentration(found, np.asarray(weight)))
    return jnp.asarray(errors, jnp.result_type(float))


def _mean(parameters: Float[Array, "*cells 2"]) -> Float[Array, "*cells"]:
    """Return the mean of Beta variables."""
    return parameters[..., 0] / parameters.sum(axis=-1)


def _sigmoid(odds: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0, -odds))


def _softmax(odds: Float[Array, " pair"], item: Int[Array, " pair"], num_items: int) -> Float[Array, " pair"]:
    """Normalise within each item."""
    highest = jax.ops.segment_max(odds, item, num_items, indices_are_sorted=True)
    weight = jnp.exp(odds - highest[item])
    return weight / jax.ops.segment_sum(weight, item, num_items, indices_are_sorted=True)[item]


@functools.partial(jax.jit, static_argnames=("num_items", "num_draws"))
def _mean_probability(
    key: Key, q: Posterior, tables: Tables, errors: Float[Array, " pair"] | None, item: Int[Array, " pair"],
    num_items: int, num_draws: int,
) -> Float[Array, " pair"]:  # fmt: skip
    """Average the softmax over draws of prevalence and profiles from q."""
    tables = tables._replace(classes=jnp.arange(len(tables.classes)))

    def add(number: Any, total: Array) -> Array:
        drawn = draw_betas(jax.random.fold_in(key, number), (q.prevalence, q.sensitivity, q.specificity))
        weight = (
            log_odds_given(*drawn, tables) if errors is None else joint_log_weight(drawn[0], drawn[1], errors, tables)
        )
        return total + _softmax(weight, item, num_items)

    return jax.lax.fori_loop(0, num_draws, add, jnp.zeros_like(tables.pair_counts)) / num_draws


@functools.partial(jax.jit, static_argnames="num_items")
def _drawn(
    key: Key, sites: tuple[Array, Array, Array], tables: Tables, errors: Float[Array, " pair"] | None,
    item: Int[Array, " pair"], label: Int[Array, " pair"], num_items: int,
) -> tuple[Int[Array, "draw item"], Float[Array, " pair"], Float[Array, " pair"]]:  # fmt: skip
    """Draw a label per item and draw; return the labels, and mean probabilities that each is the one, or is true."""

    def one_draw(totals: Any, draw: Any) -> tuple[Any, Any]:
        number, *values = draw
        prevalence, sensitivity, specificity = map(_log_beta_variable, values)
        odds = log_odds_given(prevalence, sensitivity, specificity, tables)
        weight = odds if errors is None else joint_log_weight(prevalence, sensitivity, errors, tables)
        probability, phi = totals[0] + _softmax(weight, item, num_items), totals[1] + jax.nn.sigmoid(odds)
        race = weight + jax.random.gumbel(jax.random.fold_in(key, number), odds.shape, odds.dtype)
        winner = race == jax.ops.segment_max(race, item, num_items, indices_are_sorted=True)[item]
        return (probability, phi), jax.ops.segment_max(jnp.where(winner, label, -1), item, num_items)

    num_draws, nothing = len(sites[0]), jnp.zeros_like(tables.pair_counts)
    (probability, phi), labels = jax.lax.scan(one_draw, (nothing, nothing), (jnp.arange(num_draws), *sites))
    return labels, probability / num_draws, phi / num_draws


def _log_beta_variable(value: Float[Array, "*cells"]) -> LogBeta:
    tiny = jnp.finfo(value.dtype).tiny
    return LogBeta(jnp.log(jnp.maximum(value, tiny)), jnp.log(jnp.maximum(1 - value, tiny)))
