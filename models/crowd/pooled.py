"""How accurate annotators are by two models: that of a fit with a row for each class, and `one-coin`.

A prior of confusion matrices that is fixed, and the same for everybody, draws the best annotators down and the worst
ones up, and no interval of its own allows for that. `one-coin` learns from all annotators how accurate to expect each,
but knows no bias towards a label. Neither is right of all crowds, and without gold labels nothing tells which is: each
is given one half, so that intervals are wide where the two do not agree.
"""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from consilience.models import one_coin
from consilience.models.crowd.agreement import Parameters
from consilience.models.crowd.channel import CrowdSettings
from consilience.models.crowd.tables import Asked, right_of
from consilience.models.interface import Ascent
from consilience.models.posterior import Interval, beta_of_moments
from consilience.models.sites import Resolved
from consilience.models.truth.labels import LabelTruth

# Steps of an ascent, and by how much probabilities of labels may move in the last one.
_MOST_STEPS, _STILL = 500, 1e-4

# Of a truth: mean and deviation serve intervals of all levels.
_FOUND: weakref.WeakKeyDictionary[LabelTruth, Interval] = weakref.WeakKeyDictionary()


def with_one_coin(own: Interval, asked: Asked) -> Interval:
    """Return accuracies of which one half is by the fit, and the other by `one-coin` with the same annotations.

    Parameters
    ----------
    own : of the fit.
    asked : of the fit too; of whose level the intervals are, those of Beta distributions with the mixture's moments.
    """
    if asked.truth not in _FOUND:
        _FOUND[asked.truth] = _by_one_coin(asked)
    other = _FOUND[asked.truth]
    mean = (own.mean + other.mean) / 2
    variance = (own.sd**2 + other.sd**2) / 2 + ((own.mean - other.mean) / 2) ** 2
    return beta_of_moments(mean, variance, asked.level)


def _by_one_coin(asked: Asked) -> Interval:
    """Return what one-coin, fitted by coordinate ascent, says of the annotators."""
    member: Any = one_coin.MODEL
    given = {one.name: getattr(asked.resolved.settings, one.name) for one in dataclasses.fields(CrowdSettings)}
    resolved = Resolved(asked.data, CrowdSettings(**given), one_coin.Priors(), member.sites)
    ascent = member.engine("cavi")
    problem = ascent.prepare(resolved)
    lengths = ascent.lengths(problem)
    values = {name: np.asarray(own)[: lengths.get(name)] for name, own in _ended(ascent, problem).items()}
    posterior = ascent.finish(values, resolved)
    truth = member.truth(posterior, resolved, key=asked.key, num_draws=1)
    made = functools.partial(Parameters, one_coin.CHANNEL)
    every = Asked(made, posterior, resolved, truth, asked.level).summary(right_of, asked.prevalence)
    return Interval(*(values[: asked.data.num_annotators] for values in every))


@functools.partial(jax.jit, static_argnums=0)
def _ended(ascent: Ascent, problem: Any) -> Mapping[str, Any]:
    """Return the sites at the end of an ascent."""
    assert ascent.moved is not None
    how_far = ascent.moved

    def goes_on(found: tuple[Any, Any, Any]) -> Any:
        _, number, moved = found
        return (number < _MOST_STEPS) & (moved > _STILL)

    def step(found: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        state, number, _ = found
        following = ascent.step(state, problem)[0]
        return following, number + 1, how_far(state, following)

    begun = ascent.start(None, problem)
    return ascent.sites(jax.lax.while_loop(goes_on, step, (begun, 0, how_far(begun, begun) + 1))[0], problem)
