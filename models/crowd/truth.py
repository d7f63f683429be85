r"""The labels of a fitted crowd: probabilities of coordinate ascent and EM, draws of samplers; tempered.

The errors of the annotators of one item are dependent: hard and misleading items are wrong for several at once. A model
that multiplies their labels as independent evidence is too certain, whatever finds its posterior. So the probabilities
of the labels are raised to the power :math:`\gamma_i = 1 / (1 + (n_i - 1) \rho)` and normalised (see
`consilience.models.crowd.dependence`): of samplers those of each draw, from which the label is then drawn. What is said
of annotators stays as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int, Key
from consilience.errors import UnsupportedRequest
from consilience.models.crowd.agreement import Parameters, ParametersOf, crowd_of
from consilience.models.crowd.channel import Channel, joint
from consilience.models.crowd.dependence import (
    DEFAULT,
    FEWEST_GOLD,
    SPREAD,
    Dependence,
    cross_fitted,
    exponents,
    learned,
)
from consilience.models.crowd.dependence import tempered as temper
from consilience.models.crowd.gate import signal
from consilience.models.crowd.gibbs import draw_labels
from consilience.models.crowd.groups import counted_by_group
from consilience.models.crowd.simplices import logs_of_variables
from consilience.models.crowd.votes import Votes, votes_of
from consilience.models.gold import known_gold, require_gold
from consilience.models.keys import key_pair, split_key
from consilience.models.posterior import Posterior
from consilience.models.rows import padded_rows
from consilience.models.sites import Resolved
from consilience.models.truth import LabelDraws, LabelProbabilities
from consilience.models.truth.entries import code_dtype
from consilience.models.truth.labels import LabelTruth
from consilience.models.truth.truth import Marginals
from consilience.notes import Remedy

TruthOf = Callable[..., LabelTruth]


def truth_of(
    parameters_of: ParametersOf, hidden: str, dependence: float = DEFAULT, spread: float = SPREAD
) -> TruthOf:
    """Return the function that makes the truth of a fit.

    Parameters
    ----------
    parameters_of : makes the parameters of the crowd, with their channel.
    hidden : name of the probabilities of the labels in the posterior.
    dependence, spread : the intra-item correlation where neither the user nor gold labels say, and the standard
        deviation of its logarithm between crowds.
    """

    def truth(posterior: Posterior, resolved: Resolved, *, key: Key, num_draws: int) -> LabelTruth:
        """Return the labels of a fit: with their probabilities, or drawn given each draw's parameters."""
        key_label, key_crowd = key_pair(key)
        probability = posterior.hidden.get(hidden)
        if probability is not None:
            probability = np.asarray(probability, float)
        elif posterior.form == "draws":
            num_draws = len(next(iter(posterior.draws().values())))
        parameters = parameters_of(posterior, counted_by_group(resolved), key_crowd, num_draws)
        mean = probability if probability is not None else _mean_probability(parameters)
        found = dependence_of(posterior, resolved, mean, dependence, spread)
        weight = item_weights(resolved)
        power = exponents(weight, found.rho)
        crowd = crowd_of(parameters, num_draws)
        if probability is None:
            keys = split_key(key_label, num_draws)
            stored, votes = parameters.padded_stored(), votes_of(parameters.resolved)
            padded_power = padded_rows(power, votes.num_items)
            label = _labels_of_draws(parameters.channel, parameters.sites, keys, stored, votes, padded_power)
            own = np.asarray(label)[:, : resolved.data.num_items]
            drawn: LabelTruth = LabelDraws(own, resolved.data.num_labels, crowd)
        else:
            shown = temper(probability, power)
            made = LabelProbabilities.possible if parameters.is_listed else LabelProbabilities.dense
            drawn = made(shown, key=key_label, num_draws=num_draws, crowd=crowd)
        drawn.dependence, drawn.signal = found, signal(resolved.data) if resolved.data.is_whole else None
        drawn.untempered, drawn.worth = mean, power
        if found.spread > 0:
            drawn.probabilities_at = lambda z: Marginals.dense(temper(mean, exponents(weight, found.at(z))))
        drawn.certainty_if_independent = float(mean.max(axis=1).mean())
        if found.source == "gold":
            drawn.held_out = _held_out(mean, resolved)
        return drawn

    return truth


def dependence_of(
    posterior: Posterior, resolved: Resolved, probability: Float[np.ndarray, "item class"], default: float,
    spread: float,
) -> Dependence:  # fmt: skip
    """Return how much the labels of an item err together: as given, learned from gold labels, or assumed.

    Parameters
    ----------
    posterior, resolved : of the fit.
    probability : of the labels, as if annotators erred independently.
    default, spread : where nothing else is said.

    Raises
    ------
    UnsupportedRequest : it is to be told from the data, of which other processes hold more; or from gold labels that
        the data do not have.
    """
    asked = resolved.settings.dependence
    if not isinstance(asked, str):
        return Dependence(float(asked), "given", 0)
    if not resolved.data.is_whole and posterior.form != "estimate":
        raise UnsupportedRequest(
            "the items of one process do not tell how much labels err together; give {dependence} as a number, or save "
            "the fit and load it with load_fit in one process",
            Remedy("dependence", DEFAULT),
        )
    require_gold(resolved)
    gold = known_gold(resolved)
    if asked == "auto" and posterior.form == "estimate":
        return Dependence(0.0, "default", 0)
    if asked == "gold" or len(gold) >= FEWEST_GOLD:
        rho, doubt = learned(probability[gold], item_weights(resolved)[gold], np.asarray(resolved.data.gold)[gold])
        return Dependence(rho, "gold", len(gold), doubt)
    if signal(resolved.data).weak:
        return Dependence(1.0, "alert", 0)
    return Dependence(default, "default", 0, spread)


def item_weights(resolved: Resolved) -> Float[np.ndarray, " item"]:
    """Return the weight of the annotations of each item."""
    data = counted_by_group(resolved).data
    return np.bincount(np.asarray(data.item), np.asarray(data.weight, float), data.num_items)


def _held_out(probability: Float[np.ndarray, "item class"], resolved: Resolved) -> Marginals:
    """Return the probabilities of items with gold, tempered by what the gold of others says; of the rest nothing."""
    gold = known_gold(resolved)
    found = cross_fitted(probability[gold], item_weights(resolved)[gold], np.asarray(resolved.data.gold)[gold])
    first = np.zeros(len(probability) + 1, np.int64)
    first[gold + 1] = found.shape[1]
    code = np.tile(np.arange(found.shape[1], dtype=np.int32), len(gold))
    return Marginals(np.cumsum(first), code, found.ravel(), np.zeros(len(probability)))


def _mean_probability(parameters: Parameters) -> Float[np.ndarray, "item class"]:
    """Return the mean of the probabilities of the labels over draws."""
    own, votes = parameters, votes_of(parameters.resolved)
    found = _mean_over_draws(own.channel, own.sites, own.padded_stored(), votes)
    return np.asarray(found, float)[: own.resolved.data.num_items]


@functools.partial(jax.jit, static_argnums=(0, 1))
def _mean_over_draws(channel: Channel, sites: Any, stored: Any, votes: Votes) -> Float[Array, "item class"]:
    def add(total: Any, values: Any) -> tuple[Any, None]:
        log_joint, _ = joint(channel, logs_of_variables(values, sites), votes)
        return total + jax.nn.softmax(log_joint, axis=-1), None

    empty = jnp.zeros((votes.num_items, votes.num_labels), votes.dtype)
    return jax.lax.scan(add, empty, stored)[0] / len(jax.tree.leaves(stored)[0])


@functools.partial(jax.jit, static_argnums=(0, 1))
def _labels_of_draws(
    channel: Channel, sites: Any, keys: Key, stored: Any, votes: Votes, power: Float[Array, " item"]
) -> Int[Array, "draw item"]:
    power = jnp.asarray(power, votes.dtype)[:, None]

    def of_draw(one: tuple[Key, Any]) -> Array:
        key, values = one
        log_joint, _ = joint(channel, logs_of_variables(values, sites), votes)
        # The power of what is ruled out stays zero, and a label that is known stays so.
        weight = jnp.where(jnp.isfinite(log_joint), power * jax.nn.log_softmax(log_joint, axis=-1), -jnp.inf)
        return draw_labels(key, weight).astype(code_dtype(votes.num_labels))

    return jax.lax.map(of_draw, (keys, stored))
