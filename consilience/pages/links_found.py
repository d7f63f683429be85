"""Which share of the links a fit of records has found, as it expects, and of which links."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.evaluation.partition_scores import expected_scores


def found_of_all(fit: Any) -> tuple[float, str]:
    """Return which share of links is in the estimate, as the model expects, and of which links: of all if it knows."""
    recall, among_seen = expected_scores(fit).recall, fit.truth.found_share
    if fit.data.candidate is None and np.isfinite(among_seen):
        return recall * among_seen, "all links"
    return recall, f"links {among(fit)}"


def among(fit: Any) -> str:
    """Say among which pairs links were looked for."""
    return "among the compared pairs" if fit.data.candidate is None else "among the pairs given"


def pairs_of_records(data: Any) -> tuple[int, int]:
    """Return how many pairs of records there are, between files and within one."""
    size, in_file = data.num_records, np.bincount(np.asarray(data.source)).astype(int)
    within = int((in_file * (in_file - 1) // 2).sum())
    return size * (size - 1) // 2 - within, within
