"""Is the end of an ascent a saddle? Where annotators contradict each other, equal shares may be one.

Two annotators who always disagree leave every label at one half: nothing moves an ascent that starts from votes, though
each of the two being right is a better solution. A step aside tells: if the objective then rises above where it was,
the ascent stood on a saddle, and several solutions are as good.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from consilience.models.crowd.ascent import State
from consilience.models.crowd.simplices import padded_tree, simplices, used_sites
from consilience.models.interface import Ascent
from consilience.models.posterior import Posterior
from consilience.models.sites import Resolved
from consilience.notes import Level, Note, Remedy

_STEPS = 100
# How far aside: parameters change by so much at random, as their logarithms.
_ASIDE = 0.1
# Nats: more than an ascent that has converged could gain on its own way.
_RISE = 0.1


def rise_beside(ascent: Ascent, posterior: Posterior, resolved: Resolved, hidden: str) -> float:
    """Return by how much the objective rises above the end of an ascent from parameters a little different, in nats.

    Parameters
    ----------
    ascent : of a channel, by which was fitted.
    posterior, resolved : of the fit.
    hidden : name of the probabilities of the labels in the posterior.
    """
    used = used_sites(resolved)
    values = {site.name: np.asarray(posterior.value(site.name)) for site in used}
    problem = ascent.prepare(resolved)
    dtype = problem.votes.dtype
    values = values if posterior.form == "closed" else simplices(values, used)
    size = problem.votes.num_annotators
    tree = padded_tree({site: np.asarray(own, dtype) for site, own in values.items()}, size)
    label = np.zeros((problem.votes.num_items, problem.votes.num_labels), dtype)
    label[: resolved.data.num_items] = posterior.hidden[hidden]
    learned = {site: posterior.hidden.get(f"prior.{site}", own) for site, own in problem.prior.items()}
    learned = padded_tree({site: np.asarray(own, dtype) for site, own in learned.items()}, size)
    prior = learned if len(problem.hyper) else {}
    state = State(tree, label, prior, np.zeros((), np.int32))
    random = np.random.default_rng(0)
    noise = {site: np.exp(_ASIDE * random.uniform(-1, 1, own.shape)).astype(dtype) for site, own in tree.items()}
    aside = {site: own * noise[site] for site, own in tree.items()}
    before, after = _heights(ascent, state, state._replace(tree=aside), problem)
    return float(after - before)


@functools.partial(jax.jit, static_argnums=0)
def _heights(ascent: Ascent, end: State, beside: State, problem: Any) -> tuple[Any, Any]:
    """Return the objective at the end of the ascent, and after steps from beside it."""
    moved = jax.lax.fori_loop(0, _STEPS, lambda _, state: ascent.step(state, problem)[0], beside)
    return ascent.step(end, problem)[1].sum(), ascent.step(moved, problem)[1].sum()


def saddle_notes(ascent: Ascent, posterior: Posterior, resolved: Resolved, hidden: str) -> Iterator[Note]:
    """Say so where an ascent stands on a saddle."""
    rise = rise_beside(ascent, posterior, resolved, hidden)
    if rise > _RISE:
        yield Note(
            Level.warning,
            f"the ascent stands on a saddle: from parameters a little different its objective rises by {rise:.1f}; "
            "several solutions are as good, and {method} samples them",
            (Remedy("method", "gibbs"),),
        )
