"""How far to trust what a report says of views: what was measured of it, and with which settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.pages import SURE
from consilience.printing import counted

# By `python -m benchmarks views_bars`: items; prior.
MEASURED_AT = 3    # Clusters at most, as many as there were.
_CHECKED = (
    "In simulations from this model, 2,076 of 2,086 items with a probability of 0.9 or more were in the right cluster, "
    "and 95 % intervals contained 176 of 180 sizes. The simulated data had 40 items and two views of three clusters, "
    f"with at most {MEASURED_AT} fitted. Experts who err otherwise than the model assumes, such as by merging two "
    "clusters, can put more items in the wrong cluster than stated."
)
TRUST = (
    "In simulations from this model, 90 % intervals contained 4,308 of 4,800 sensitivities and specificities. Of 725 "
    "pairs of experts with a mean probability of 0.93 of sharing a view, 91.7 % did. The simulated data had 60 items "
    f"with three features, six experts and three views of three clusters, with at most {MEASURED_AT} fitted. "
    "Experts who err otherwise than the model assumes were not simulated."
)
_NOT_CHECKED = "How often such probabilities are right was not measured {}."


def not_sure(probability: Any) -> Any:
    """Return whether a probability is below what counts as sure, as it is written: with two digits."""
    return np.round(probability, 2) < SURE


def trust_of(fit: Any, view: int, *, measured: bool) -> str:
    """Say how far to trust what is stated of items and of the sizes of clusters, and what was measured of it."""
    sure = fit.truth.cluster_probability[:, view].max(axis=1)
    sure = sure[~not_sure(sure)]
    wrong = float((1 - sure).sum())
    expected = f"about {wrong:.0f} of these {len(sure):,} {'is' if wrong < 1.5 else 'are'}"
    if wrong < 1:
        expected = f"less than one of these {len(sure):,} is"
    words = (
        "A clearly assigned item can still be in the wrong cluster: by the model's own probabilities, "
        f"{expected} expected to be."
    )
    if fit.method != "gibbs":
        known = _NOT_CHECKED.format("for this method")
    elif (most := fit.truth.most_clusters) != MEASURED_AT:
        known = _NOT_CHECKED.format(f"for views of at most {counted(most, 'clusters')}")
    else:
        known = _CHECKED
    return f"{words} {known}" if measured else words
