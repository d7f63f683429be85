"""Draws of the annotators' skills, of a posterior in closed form or stored, and how a crowd with these skills errs.

Skills of all draws are never built where there is a closed form: each draw is made when it is its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int, Key
from consilience.data.annotations import Annotations
from consilience.models.mace.cavi import Posterior
from consilience.models.random import log_gamma
from consilience.models.truth import Crowd

__all__ = [
    "Drawn",
    "Skills",
    "Source",
    "annotation_counts",
    "average_confusion",
    "crowd",
    "draw_log_skills",
    "guesses",
    "over_draws",
    "source",
]


class Skills(NamedTuple):
    """Competence ``(…, annotator)`` and guesses ``(…, annotator, label)``; stored draws have an axis in front."""

    competence: Float[Array, "... annotator"]
    guess: Float[Array, "... annotator label"]


class Drawn(NamedTuple):
    """Draws that are made of a closed form: one for each key."""

    posterior: Posterior
    keys: Key


Source = Skills | Drawn
"""Where draws of skills come from: stored ones, or a closed form and keys."""


def source(posterior: Posterior | Mapping[str, Any], key: Key, num_draws: int) -> Source:
    """Return where the draws come from; stored draws need neither key nor number."""
    if isinstance(posterior, Posterior):
        return Drawn(posterior, jax.random.split(key, num_draws))
    return Skills(jnp.asarray(posterior["competence"]), jnp.asarray(posterior["guess"]))


def over_draws(function: Callable[[Skills], Any], source: Source) -> Any:
    """Apply a function to the skills of each draw, one after the other; the results get a draw axis in front."""
    if isinstance(source, Drawn):
        return jax.lax.map(lambda key: function(_draw(source.posterior, key)), source.keys)
    return jax.lax.map(function, source)


@jax.jit
def _draw(posterior: Posterior, key: Key) -> Skills:
    competence = jnp.stack([jnp.asarray(posterior.knows), jnp.asarray(posterior.guesses)])
    log_share, log_guess = draw_log_skills(key, competence, jnp.asarray(posterior.guess))
    return Skills(jnp.exp(log_share[0]), jnp.exp(log_guess))


def draw_log_skills(
    key: Key, competence: Float[Array, "two annotator"], guess: Float[Array, "annotator label"]
) -> tuple[Float[Array, "two annotator"], Float[Array, "annotator label"]]:
    """Draw logarithms of (θ, 1 - θ), Beta, and of ξ, Dirichlet, of these parameters.

    All gamma variables are drawn by one call, since the program of each takes long to compile.
    """
    draws = log_gamma(key, jnp.concatenate([competence.ravel(), guess.ravel()]))
    log_share, log_guess = draws[: competence.size].reshape(competence.shape), draws[competence.size :]
    return jax.nn.log_softmax(log_share, axis=0), jax.nn.log_softmax(log_guess.reshape(guess.shape), axis=1)


def crowd(source: Source, data: Annotations, num_draws: int) -> Crowd:
    """Say how the annotators of the data err, in as many draws; those of an estimate are all alike."""
    count = annotation_counts(data)
    agreement = np.asarray(_agreement_draws(source, count / count.sum()))
    return Crowd(np.broadcast_to(agreement, (num_draws, data.num_labels)), partial(_annotate, source, data))


def average_confusion(
    posterior: Posterior | Mapping[str, Any], data: Annotations
) -> Float[np.ndarray, "label label"]:
    r"""Return the posterior mean of :math:`\sum_j s_j (\theta_j 1[l = t] + (1 - \theta_j) \xi_{jl})`, s_j parts of all.

    That is how probably an annotator, taken by how much they annotate, gives an item of true label t the label l.
    """
    if isinstance(posterior, Posterior):
        knows, guesses, one = (np.asarray(values, float) for values in posterior[:3])
        competence = knows / (knows + guesses)
        guessed = (1 - competence)[:, None] * one / one.sum(axis=1, keepdims=True)
    else:
        competence = np.asarray(posterior["competence"]).mean(axis=0, dtype=float)
        guessed = np.einsum("dj,djl->jl", 1 - np.asarray(posterior["competence"], float), posterior["guess"])
        guessed /= len(posterior["competence"])
    count = annotation_counts(data)
    share = count / max(count.sum(), np.finfo(float).tiny)
    return share @ competence * np.eye(data.num_labels) + share @ guessed


def annotation_counts(data: Annotations) -> Float[np.ndarray, " annotator"]:
    """Return how many annotations each annotator made, weights summed."""
    return np.bincount(np.asarray(data.annotator), np.asarray(data.weight, float), data.num_annotators)


@jax.jit
def _agreement_draws(source: Source, share: Float[Array, " annotator"]) -> Float[Array, "draw label"]:
    return over_draws(partial(_agreement, share=jnp.asarray(share, jnp.result_type(float))), source)


def _agreement(skills: Skills, share: Float[Array, " annotator"]) -> Float[Array, " label"]:
    """Return how often two different annotators agree on an item of each true label.

    With P the probability that an annotator gives a label, it is the sum over labels of (Σ share P)² - Σ (share P)²,
    over one minus the sum of the squared shares. P is the guess, plus the competence at the true label.
    """
    guess = (1 - skills.competence)[:, None] * skills.guess
    mean_guess, mean_competence = share @ guess, share @ skills.competence
    any_two = (mean_guess**2).sum() + 2 * mean_competence * mean_guess + mean_competence**2
    squares = (guess**2).sum(axis=1) + skills.competence**2
    itself = share**2 @ (squares[:, None] + 2 * skills.competence[:, None] * guess)
    return (any_two - itself) / (1 - (share**2).sum())


def _annotate(
    source: Source, data: Annotations, random: np.random.Generator, draw: int, label: Int[np.ndarray, " item"]
) -> Int[np.ndarray, " annotation"]:
    """Let the annotators of the data label items of given labels, with the skills of one draw."""
    skills = _one(source, draw)
    annotator = np.asarray(data.annotator)
    knows = random.random(len(annotator)) < np.asarray(skills.competence, float)[annotator]
    return np.where(knows, np.asarray(label)[data.item], guesses(random, np.asarray(skills.guess, float), annotator))


def _one(source: Source, draw: int) -> Skills:
    if isinstance(source, Drawn):
        return _draw(source.posterior, source.keys[draw])
    return jax.tree.map(lambda values: values[draw % len(values)], source)


def guesses(
    random: np.random.Generator, guess: Float[np.ndarray, "annotator label"], annotator: Int[np.ndarray, " annotation"]
) -> Int[np.ndarray, " annotation"]:
    """Draw a guess for each annotation, by one search in the distribution functions of all annotators end to end."""
    below = np.cumsum(guess, axis=1)
    ends = (below / below[:, -1:] + np.arange(len(guess))[:, None]).ravel()
    place = np.searchsorted(ends, annotator + random.random(len(annotator)), side="right")
    return (place - annotator * guess.shape[1]).astype(np.int32)
