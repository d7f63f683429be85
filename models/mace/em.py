r"""EM for MACE, with the smoothing of the published program.

.. math::

    \theta_j = \frac{\sum \kappa_n + s}{n_j + 2 s}, \qquad
    \xi_{jl} = \frac{\sum_{l_n = l} (1 - \kappa_n) + s}{\sum (1 - \kappa_n) + C s},

where s is ``smoothing`` over the number C of labels, 0.01 / C as published. What never decreases is the log likelihood
plus :math:`s \sum_j [\log \theta_j + \log (1 - \theta_j) + \sum_l \log \xi_{jl}]`; with s = 0 the likelihood itself.
The priors of the annotators play no part.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy

from consilience.arrays import Array, Float, Int, Key
from consilience.models.interface import Ascent, Terms, Total, unsharded
from consilience.models.mace.likelihood import (
    LogWeights,
    Responsibilities,
    Tables,
    log_weights,
    responsibilities,
    shard,
    tables,
)
from consilience.models.mace.restarts import best_start
from consilience.models.posterior import Estimate
from consilience.models.sites import Resolved


class Problem(NamedTuple):
    """What the steps read: the annotations, the pseudo-count s, and the numbers of the random starts."""

    tables: Tables
    smoothing: Float[Array, ""]
    restart: Int[Array, " restart"]


class State(NamedTuple):
    """θ, 1 - θ and ξ; the second is kept because near one it is not θ's complement in floats."""

    knows: Float[Array, " annotator"]
    guesses: Float[Array, " annotator"]
    guess: Float[Array, "annotator label"]


def prepare(resolved: Resolved) -> Problem:
    """Collect what the steps read."""
    settings = resolved.settings
    pseudo_count = jnp.asarray(settings.smoothing / resolved.data.num_labels, jnp.result_type(float))
    return Problem(tables(resolved), pseudo_count, np.arange(settings.restarts, dtype=np.int32))


def start(key: Key, problem: Problem, total: Total = unsharded) -> State:
    """Return the state after a first step from flat weights, or the best of several starts."""
    return best_start(
        key, problem.restart, problem.tables.counts,
        update=lambda weights: _update(responsibilities(weights, problem.tables, total), problem),
        step=lambda state: step(state, problem, total), total=total,
    )  # fmt: skip


def step(state: State, problem: Problem, total: Total = unsharded) -> tuple[State, Terms]:
    """Return the state after one step, and the terms of the objective at the state that came in."""
    found = responsibilities(_weights(state), problem.tables, total)
    penalty = [xlogy(problem.smoothing, jnp.ravel(probability)) for probability in state]
    return _update(found, problem), Terms(
        found.log_evidence, jnp.concatenate([found.log_guessed.ravel(), *penalty])
    )


def sites(state: State, problem: Problem, total: Total = unsharded) -> dict[str, Array]:
    """Return the estimate, and the probabilities of the labels that it gives."""
    found = responsibilities(_weights(state), problem.tables, total)
    return {"competence": state.knows, "guess": state.guess, "probability": found.probability}


def _weights(state: State) -> LogWeights:
    return log_weights(state.knows, state.guesses, state.guess)


def _update(found: Responsibilities, problem: Problem) -> State:
    smoothing, guessed = problem.smoothing, problem.tables.counts - found.known
    split = jnp.stack([found.known.sum(axis=1), guessed.sum(axis=1)], axis=1)
    knows, guesses = _shares(split + smoothing).T
    return State(knows, guesses, _shares(guessed + smoothing))


def _shares(counts: Float[Array, "annotator kind"]) -> Float[Array, "annotator kind"]:
    """Normalise; equal shares where there is nothing to count."""
    total = counts.sum(axis=1, keepdims=True)
    return jnp.where(total > 0, counts / jnp.where(total > 0, total, 1.0), 1 / counts.shape[1])


def finish(values: dict[str, Any], resolved: Resolved) -> Estimate:
    """Return the estimate, and the probabilities of the labels."""
    return Estimate({site: values[site] for site in ("competence", "guess")}, {"probability": values["probability"]})


EM = Ascent(name="em", prepare=prepare, start=start, step=step, sites=sites, finish=finish, shard=shard)
"""The ascent, for the driver."""
