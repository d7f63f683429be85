"""Systems scored on the sides of rated items, for other annotators of the same kind: by what the page says of items."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from consilience.data import Predictions
from consilience.evaluation.comparison import TOO_NARROW, compare
from consilience.evaluation.leaderboard import Comparison
from consilience.evaluation.unit_sums import doubt_draws
from consilience.models.truth import Entries, LabelDraws, LabelProbabilities, PointTruth
from consilience.models.truth.truth import Truth
from consilience.pages.remembered import remembering
from consilience.pages.sides import Without

_AT = np.arange(-3.0, 4.0)  # standard deviations, of a normal law, by which all means may be off together
_FEW_DRAWS = 100  # of sides where means are off by so much, of which the mean score is wanted alone


def sides_as_truth(fit: Any, without: Without) -> Truth:
    """Return the sides of the page as what systems are scored against: draws in which all means move together.

    Parameters
    ----------
    fit, without : of ratings, and the fit without the offsets of annotators.
    """
    truth = LabelDraws(without.moved.drawn(fit.truth.num_draws, fit.seed or 0), 2)
    side = without.sides.above >= 0.5
    truth.point = PointTruth(Entries.dense(len(side), 2), np.stack([~side, side], axis=1).astype(float).ravel())
    truth.ids = dict(fit.truth.ids)
    return remembering(truth)


def allowing_for_moves(
    comparison: Comparison, fit: Any, without: Without, systems: Mapping[str, Predictions], metric: Any,
    policies: Mapping[str, Any],
) -> Comparison:  # fmt: skip
    """Return a comparison whose own looks allow for it, too, that all means may be off together.

    In 218 simulations of 40 items and 6 annotators with offsets of 0.5, means of 1 and errors of 0.7, intervals of 95 %
    of all items like these held the accuracy of a system that looked itself (0.9) in 209, and that of one made from the
    ratings in 211; by the fit itself, which takes annotators for alike, in 199 and 201.

    Parameters
    ----------
    comparison : by `sides_as_truth`, where the scores of predictions made from the annotations allow for that.
    fit, without, systems, metric, policies : by what was compared, and how.
    """
    if comparison.own_values is None or comparison.own_draws is None:
        return comparison
    points = []
    for deviations in _AT:
        above = without.moved.moved_above(deviations)
        truth = LabelProbabilities.dense(
            np.stack([1 - above, above], axis=1), key=jax.random.key(0), num_draws=_FEW_DRAWS
        )
        truth.ids = dict(fit.truth.ids)
        moved: Any = compare(truth, systems, metric=metric, provenance="independent", **policies)
        points.append(moved.own_values)
    each = np.stack(points)  # (move, form, system)
    number = comparison.own_draws.shape[2]
    doubt = np.stack([doubt_draws(_AT, each[:, form], fit.seed or 0, number) for form in range(each.shape[1])])
    notes = tuple(note for note in comparison.notes if note != TOO_NARROW)
    return dataclasses.replace(comparison, own_draws=comparison.own_draws + doubt, notes=notes)
