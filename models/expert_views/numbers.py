"""Which numbers of clusters the estimates of their evidence leave open, and which of them is taken."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from consilience.arrays import Bool, Float
from consilience.models.truth.views import Sorting, pairs_apart

ERRORS, NATS = 2.0, 3.0
"""Standard errors, and nats (odds of 20 to 1), by which log evidences must differ for numbers to be told apart."""

ALIKE = 0.01
"""Share of the pairs of items: where fewer are sorted otherwise, two numbers sort the items alike."""


def left_open(value: Float[np.ndarray, " number"], error: Float[np.ndarray, " number"]) -> Bool[np.ndarray, " number"]:
    """Return which numbers of clusters do not lie clearly below the one with the highest estimate.

    Parameters
    ----------
    value, error : log evidence with each number of clusters, in nats, and its standard error.
    """
    most = value.argmax()
    return value[most] - value <= np.maximum(ERRORS * np.hypot(error, error[most]), NATS)


def taken(
    value: Float[np.ndarray, " number"], error: Float[np.ndarray, " number"], sorted_by: Sequence[Sorting]
) -> int:
    """Return the place of the number that is taken: the fewest left open that sort the items as the highest one does.

    The fewest that are left open would do harm where they join clusters that are apart. In 24 simulations of 2 to 6
    clusters, with evidence by ladders alone, the mean adjusted Rand index to the truth was .840 with the highest
    estimate, .839 with this one and .814 with the fewest; the number was that of the truth in 16, 18 and 16. In 24
    others of 2 to 5 clusters, many with few answers, and the evidence of today, it was in 15, 15 and 13.

    Parameters
    ----------
    value, error : log evidence with each number of clusters, fewest first, and its standard error.
    sorted_by : how the fit with each number sorts the items.
    """
    most = sorted_by[int(value.argmax())]
    alike = [pairs_apart(one, most) <= ALIKE for one in sorted_by]
    return int(np.flatnonzero(left_open(value, error) & alike)[0])
