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
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from consilience.arrays import Array, Float, Int, Key
from consilience.models.mpa.candidates import Candidates, Tables, candidates_of, labelled
from consilience.models.mpa.crowd import CandidateCrowd, Profiles
from consilience.models.mpa.gibbs import LogBeta, draw_betas, log_odds_given
from consilience.models.mpa.joint import joint_log_weight, likeliest_concentration, log_errors
from consilience.models.mpa.priors import SITES, beta_mean
from consilience.models.mpa.updates import padded_tables, typed
from consilience.models.posterior import Posterior
from consilience.models.rows import padded_rows, padded_size, repeated_rows
from consilience.models.sites import Resolved
from consilience.models.special import finite_log
from consilience.models.truth import Entries, LabelDraws, LabelProbabilities
from consilience.models.truth.classes import Lead
from consilience.models.truth.labels import LabelTruth

# Draws of the parameters over which the labels of a posterior in closed form are averaged, at most: their error is then
# a fourteenth of what the parameters leave open, and they take no longer than the ascent did.
_MOST_DRAWS = 200


class _CandidateTruth(LabelTruth):
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

    def _lead(self) -> Lead:
        pairs = self.candidates
        rank = -pairs.seen if self.last_of_equals else pairs.label
        order = np.lexsort((rank, -self.score, pairs.item))
        best = order[np.searchsorted(pairs.item, np.arange(self.num_units))]
        return Lead(pairs.label[best], self.probability[best], self.probability[best])


class ApproximateLabels(_CandidateTruth, LabelProbabilities):
    """Labels of a posterior in closed form.

    The label of an item is the candidate of the largest log-odds, as in the paper. Where two are about equal the other
    one may have the larger mean probability, by a little.
    """


class DrawnLabels(_CandidateTruth, LabelDraws):
    """Labels drawn given each draw of the parameters. The label of an item is its most probable candidate."""


def truth(posterior: Posterior, resolved: Resolved, *, key: Key, num_draws: int) -> LabelTruth:
    """Return draws of the label of each item; of mentions, its classes are all labels that occur.

    Parameters
    ----------
    key, num_draws : of a posterior in closed form, how many draws to make; as many draws of its parameters, or 200,
        are averaged over.
    """
    data, settings = resolved.data, resolved.settings
    joint = settings.decisions == "joint"
    found = candidates_of(data, settings.candidates, settings.gold)
    entries = Entries.of(found.item, found.label, found.num_items, found.num_labels)
    key_parameters, key_labels, key_crowd = jax.random.split(key, 3)
    tables = typed(found.tables)
    sites = tuple(typed(np.asarray(getattr(posterior, site))) for site in SITES)
    odds = posterior.hidden.get("log_odds")
    if odds is not None:
        own = _of_classes(sites, found.tables.classes)
        averaged = min(num_draws, _MOST_DRAWS)
        errors = _errors(found, tables, beta_mean(own[0]), beta_mean(own[1])) if joint else None
        pairs = _padded(found, errors)
        q = own[0], *(repeated_rows(one, len(pairs.tables.yes)) for one in own[1:])
        mean = _mean_probability(key_parameters, q, *pairs[:3], pairs.num_items, averaged)
        probability = np.asarray(mean, float)[: len(found.item)]
        labels: _CandidateTruth = ApproximateLabels(entries, probability, key=key_labels, num_draws=num_draws)
        odds = np.asarray(odds, float)
        labels.phi = special.expit(odds)
        labels.score = labels.phi if settings.author else odds if errors is None else probability
        profiles = Profiles(own[1], own[2], key_crowd)
    else:
        errors = None
        if joint:
            prevalence, sensitivity = (site[..., found.tables.classes].mean(axis=0) for site in sites[:2])
            errors = _errors(found, tables, prevalence, sensitivity)
        pairs = _padded(found, errors)
        drawn = sites[0], *(repeated_rows(one, len(pairs.tables.yes), axis=1) for one in sites[1:])
        label, *means = _drawn(key_labels, drawn, *pairs)
        labels = DrawnLabels(np.asarray(label)[:, : found.num_items], found.num_labels)
        labels.probability, labels.phi = (np.asarray(mean, float)[: len(found.item)] for mean in means)
        labels.score = labels.probability
        sensitivity, specificity = (site[..., found.tables.classes] for site in sites[1:])
        profiles = Profiles(sensitivity, specificity, None)
    labels.crowd = CandidateCrowd(profiles, labels.num_draws, found, data)
    labels.candidates, labels.last_of_equals = found, bool(settings.author)
    # Of mentions these are other ids than the data have.
    labels.ids = {"item": labelled(data).items, "class": found.labels}
    return labels


class _Pairs(NamedTuple):
    """What the programs below read of the candidates, and what pads them: of an item after the last."""

    tables: Tables
    errors: Float[Array, " pair"] | None
    item: Int[Array, " pair"]
    label: Int[Array, " pair"]
    num_items: int


def _padded(found: Candidates, errors: Float[Array, " pair"] | None) -> _Pairs:
    """Pad the candidates, so that data of like size share the programs; on the host."""
    tables, num_items = typed(padded_tables(found.tables)), padded_size(found.num_items + 1)
    size = len(tables.pair_class)
    errors = None if errors is None else padded_rows(np.asarray(errors), size)
    item, label = padded_rows(found.item, size, num_items - 1), padded_rows(found.label, size)
    return _Pairs(tables, errors, item, label, num_items)


def _of_classes(sites: tuple[Array, ...], classes: Int[Array, " class"]) -> tuple[Array, Array, Array]:
    """Return the Beta parameters of the classes that occur."""
    prevalence, sensitivity, specificity = sites
    return prevalence[classes], sensitivity[:, classes], specificity[:, classes]


def _errors(
    found: Candidates, tables: Tables, prevalence: Float[Array, " class"], sensitivity: Float[Array, "annotator class"]
) -> Float[Array, " pair"]:
    """Return the log probability of the errors of each pair, from estimates of the parameters."""
    tables = tables._replace(classes=jnp.arange(len(tables.classes)))
    nothing = jnp.zeros_like(tables.pair_counts)
    weight = joint_log_weight(_log_beta_variable(prevalence), _log_beta_variable(sensitivity), nothing, tables)
    errors = log_errors(found, likeliest_concentration(found, np.asarray(weight)))
    return jnp.asarray(errors, jnp.result_type(float))


def _softmax(odds: Float[Array, " pair"], item: Int[Array, " pair"], num_items: int) -> Float[Array, " pair"]:
    """Normalise within each item."""
    highest = jax.ops.segment_max(odds, item, num_items, indices_are_sorted=True)
    weight = jnp.exp(odds - highest[item])
    return weight / jax.ops.segment_sum(weight, item, num_items, indices_are_sorted=True)[item]


@functools.partial(jax.jit, static_argnames=("num_items", "num_draws"))
def _mean_probability(
    key: Key, q: tuple[Array, Array, Array], tables: Tables, errors: Float[Array, " pair"] | None,
    item: Int[Array, " pair"], num_items: int, num_draws: int,
) -> Float[Array, " pair"]:  # fmt: skip
    """Average the softmax over draws of prevalence and profiles from q."""
    tables = tables._replace(classes=jnp.arange(len(tables.classes)))

    def add(number: Any, total: Array) -> Array:
        drawn = draw_betas(jax.random.fold_in(key, number), q)
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
    return LogBeta(finite_log(value), finite_log(1 - value))
