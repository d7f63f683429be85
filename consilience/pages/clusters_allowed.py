"""What a report says of how many clusters a view may have: as given, or as the evidence has it."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.pages import Table
from consilience.pages.systems import in_words
from consilience.printing import counted, numbered
from consilience.rounding import probability

_LEAST_EVIDENCE = 0.05  # Probability of another number of clusters that is named.
_MOST_NAMED = 2


def clusters_allowed(fit: Any) -> str:
    """Say how many clusters a view may have, and whether somebody chose that or the evidence."""
    compared = fit.table("evidence")
    if len(compared) < 2:
        most = counted(fit.truth.most_clusters, "clusters")
        return f"That a view has {most} at most was given and not found: nothing here says how many there are"
    last, taken = compared["clusters"].max(), compared["clusters"] == fit.truth.most_clusters
    others = compared[~taken & (compared["probability"] >= _LEAST_EVIDENCE)]
    others = others.sort_values("probability", ascending=False, kind="stable").head(_MOST_NAMED)
    known = in_words(probability(float(compared["probability"][taken].iloc[0])))
    named = (f"{row.clusters} ({probability(row.probability)})" for row in others.itertuples())
    after = f", then {' and '.join(named)}" if len(others) else ""
    return (
        f"Of 2 to {last} clusters, the most that a view may have, {fit.truth.most_clusters} have the most evidence "
        f"(probability {known}){after}"
    )


def left_empty(fit: Any, held: list[int]) -> str:
    """Say that views need not have as many clusters as they may, where one has fewer."""
    empty = [fit.truth.most_clusters - len(np.unique(fit.truth.consensus(view))) for view in held]
    if not any(empty):
        return ""
    named = ", ".join(f"{one} in view {numbered(view)}" for view, one in zip(held, empty, strict=True) if one)
    return f" Of the {fit.truth.most_clusters} some have no item: {named}."


def evidence(fit: Any) -> list[Any]:
    """Tabulate how probable each number of clusters is, of those that were compared."""
    compared = fit.table("evidence")
    shown = compared[["clusters", "probability"]].rename(columns={"clusters": "clusters at most"})
    texts = {"probability": list(map(probability, shown["probability"]))}
    words = (
        f"{clusters_allowed(fit)}. Before any answer all are as probable. A view need not use all clusters that it may "
        "have: how many have items stands with each view below."
    )
    return [words, Table(shown, "How many clusters a view may have.", texts=texts)]
