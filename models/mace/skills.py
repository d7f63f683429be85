"""Draws of the annotators' skills, of a posterior in closed form or stored, and how a crowd with these skills errs.

Skills of all draws are never built where there is a closed form: each draw is made when it is its turn.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int, Key
from consilience.data.annotations import Annotations
from consilience.models.crowds import annotation_shares, several_annotators
from consilience.models.posterior import Posterior
from consilience.models.random import log_gamma
from consilience.models.truth import Crowd
from consilience.models.truth.classes import Rows


class Skills(NamedTuple):
    """Competence ``(…, annotator)`` and guesses ``(…, annotator, label)``; stored draws have an axis in front."""

    competence: Float[Array, "... annotator"]
    guess: Float[Array, "... annotator label"]


class Drawn(NamedTuple):
    """Draws that are made of a closed form: one for each key; Beta and Dirichlet parameters of each annotator."""

    competence: Float[Array, "annotator 2"]
    guess: Float[Array, "annotator label"]
    keys: Key


Source = Skills | Drawn
"""Where draws of skills come from: stored ones, or a closed form and keys."""


def source(posterior: Posterior, key: Key, num_draws: int) -> Source:
    """Return where the draws come from; stored draws need neither key nor number."""
    if posterior.form == "closed":
        return Drawn(posterior.competence, posterior.guess, jax.random.split(key, num_draws))
    draws = posterior.draws()
    return Skills(jnp.asarray(draws["competence"]), jnp.asarray(draws["guess"]))


def over_draws(function: Callable[[Skills], Any], source: Source) -> Any:
    """Apply a function to the skills of each draw, one after the other; the results get a draw axis in front."""
    if isinstance(source, Drawn):
        return jax.lax.map(lambda key: function(_draw(source.competence, source.guess, key)), source.keys)
    return jax.lax.map(function, source)


@jax.jit
def _draw(competence: Float[Array, "annotator 2"], guess: Float[Array, "annotator label"], key: Key) -> Skills:
    log_share, log_guess = draw_log_skills(key, jnp.asarray(competence).T, jnp.asarray(guess))
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


def crowd(posterior: Posterior, data: Annotations, key: Key, num_draws: int) -> Crowd:
    """Say how the annotators of the data err, in as many draws; those of an estimate are all alike."""
    confusion = partial(average_confusion, posterior, data)
    if not several_annotators(data):
        return Crowd(confusion)
    drawn = source(posterior, key, num_draws)
    return Crowd(confusion, partial(_agreement_of, drawn, data, num_draws), partial(_annotate, drawn, data))


def _agreement_of(source: Source, data: Annotations, num_draws: int) -> Float[np.ndarray, "draw label"]:
    agreement = np.asarray(_agreement_draws(source, annotation_shares(data)))
    return np.broadcast_to(agreement, (num_draws, data.num_labels))


def average_confusion(posterior: Posterior, data: Annotations) -> Float[np.ndarray, "label label"]:
    r"""Return the posterior mean of :math:`\sum_j s_j (\theta_j 1[l = t] + (1 - \theta_j) \xi_{jl})`, s_j parts of all.

    That is how probably an annotator, taken by how much they annotate, gives an item of true label t the label l.
    """
    if posterior.form == "closed":
        competence = posterior.summary("competence").mean
        guessed = (1 - competence)[:, None] * posterior.summary("guess").mean
    else:
        draws = {site: np.asarray(values, float) for site, values in posterior.draws().items()}
        competence = draws["competence"].mean(axis=0)
        guessed = np.einsum("dj,djl->jl", 1 - draws["competence"], draws["guess"]) / len(draws["guess"])
    share = annotation_shares(data)
    return share @ competence * np.eye(data.num_labels) + share @ guessed


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
    source: Source,
    data: Annotations,
    random: np.random.Generator,
    draw: int,
    label: Int[np.ndarray, " item"],
    rows: Rows,
) -> Int[np.ndarray, " annotation"]:
    """Let the annotators of the data label items of given labels, with the skills of one draw."""
    skills = _one(source, draw)
    annotator, item = np.asarray(data.annotator)[rows], np.asarray(data.item)[rows]
    knows = random.random(len(annotator)) < np.asarray(skills.competence, float)[annotator]
    return np.where(knows, np.asarray(label)[item], guesses(random, np.asarray(skills.guess, float), annotator))


def _one(source: Source, draw: int) -> Skills:
    if isinstance(source, Drawn):
        return _draw(source.competence, source.guess, source.keys[draw])
    return jax.tree.map(lambda values: values[draw % len(values)], source)


def guesses(
    random: np.random.Generator, guess: Float[np.ndarray, "annotator label"], annotator: Int[np.ndarray, " annotation"]
) -> Int[np.ndarray, " annotation"]:
    """Draw a guess for each annotation, by one search in the distribution functions of all annotators end to end."""
    below = np.cumsum(guess, axis=1)
    ends = (below / below[:, -1:] + np.arange(len(guess))[:, None]).ravel()
    place = np.searchsorted(ends, annotator + random.random(len(annotator)), side="right")
    return (place - annotator * guess.shape[1]).astype(np.int32)
