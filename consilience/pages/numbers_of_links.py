"""What a report says of how many links there are: the numbers that stand in several places, side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.evaluation.partition_scores import expected_scores
from consilience.pages import Table

SECTION = "Links made and missed"
"""Where they stand."""


def found_of_all(fit: Any) -> tuple[float, str]:
    """Return which share of links is in the estimate, as the model expects, and of which links: of all if it knows."""
    recall, among_seen = expected_scores(fit).recall, fit.truth.found_share
    if fit.data.candidate is None and np.isfinite(among_seen):
        return recall * among_seen, "all links"
    return recall, f"links {among(fit)}"


def among(fit: Any) -> str:
    """Say among which pairs links were looked for."""
    return "among the pairs looked at" if fit.data.candidate is None else "among the pairs given"


def numbers_of_links(fit: Any) -> list[Table]:
    """Tabulate how the numbers of links come from each other, and where they stand; nothing where not all are known."""
    import pandas

    expected, (_, of), counted_in = expected_scores(fit), found_of_all(fit), fit.truth.counted().partitions
    known = np.isfinite(fit.truth.found_share) and fit.truth.found_share > 0
    if of != "all links" or counted_in is None or not (expected.predicted_pairs and expected.recall > 0 and known):
        return []
    right = expected.precision * expected.predicted_pairs
    seen = right / expected.recall
    by_size = counted_in.clusters_by_size()
    records = np.arange(1, by_size.shape[1] + 1)
    drawn = float((by_size @ (records * (records - 1) // 2)).mean())
    draws = "the draws under “Clusters”" if counted_in is not fit.truth else "the draws"
    more = ", which compare more pairs" if counted_in is not fit.truth else ""
    rows = [
        (f"{expected.predicted_pairs:,}", "links made: pairs of records that the estimate joins", "the first screen"),
        (f"{right:,.1f}", "of these right, as the estimate expects", ""),
        (f"{seen:,.1f}", f"links {among(fit)}, made or missed, as it expects", "Match weights"),
        (f"{seen / fit.truth.found_share:,.1f}", "all links, with those among the other pairs, as it expects", ""),
        *_of_two(fit),
        (f"{drawn:,.1f}", f"all links, on average over {draws}{more}", ""),
        (f"{by_size.mean(axis=0)[1]:,.1f}", "entities of two records, on average over the same draws", "Clusters"),
    ]
    frame = pandas.DataFrame(rows, columns=["number", "of what", "stands in"])
    frame.attrs["numbers"] = ("number",)
    return [Table(frame, "Numbers of links on this page, and what each counts.")]


def _of_two(fit: Any) -> list[tuple[str, str, str]]:
    """Return the row of the entities of two records that stand before any comparison; none where it has none."""
    if (known := sizes_expected(fit)) is None:
        return []
    what = "entities of two records, from which the log odds of any pair begin"
    return [(f"{known[1]:,.1f}", what, "Review list")]


def sizes_expected(fit: Any) -> tuple[float, float] | None:
    """Return how many entities of one and of two records the model expects; None of one that has no such numbers."""
    try:
        expected, share = (fit.posterior.value(site) for site in ("intensity", "size_share"))
    except KeyError:
        return None
    alone, paired = float(np.mean(expected)) * np.atleast_2d(share).mean(axis=0)[:2]
    return float(alone), float(paired)


def see(fit: Any) -> str:
    """Return where numbers of links stand side by side, in brackets; empty where they do not."""
    return f" (see “{SECTION}”)" if "loss" in fit.member.table_names and numbers_of_links(fit) else ""
