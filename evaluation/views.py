"""How many views the experts of a fit have."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.evaluation.scores import Count, by_method
from consilience.models.truth import truth_of
from consilience.models.truth.truth import VIEWS


def num_views(fit: Any) -> Count:
    """Count the views that the experts of a fit have.

    Parameters
    ----------
    fit : a fit of constraints, or its truth.

    Returns
    -------
    Count : ``value``, ``sd``, ``interval`` and ``draws`` are of the number of views that have an expert, ``point``
        that of views that have one more probably than not, and ``table`` has the probability of each number.

    Raises
    ------
    UnsupportedRequest : the fit has no views.
    """
    truth: Any = truth_of(fit).read_as(VIEWS.name)
    draws = np.asarray(truth.num_views())
    return Count(
        title=by_method("number of views", fit), draws=draws.astype(float), point=float(len(truth.used_views())),
        expected=np.bincount(draws)[1:] / len(draws), label="probability", unit="views",
        how="as far as the model holds", pointed="views whose use is more probable than not: {}",
    )  # fmt: skip
