"""What a report says of the items of a view: its clusters, and in which one each item most probably is."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.models.intervals import ends
from consilience.pages import Table
from consilience.pages.views_measured import not_sure
from consilience.printing import counted, numbered, percent
from consilience.rounding import probability

_MOST_DRAWS = 200
_MOST_ITEMS, _FEW_ITEMS = 500, 6  # Of a view that are listed, and of a cluster that are named as its surest ones.


def clusters_table(fit: Any, view: int) -> list[Any]:
    """Tabulate the clusters of a view, each with its size and surest items; say how many clusters are empty."""
    import pandas

    truth = fit.truth
    drawn = truth.clusters(view, slice(None, None, max(truth.num_draws // _MOST_DRAWS, 1)))  # of all chains
    label, sure = _labels(truth, view)
    names, rows = truth.names(), list[dict[str, Any]]()
    for cluster in np.unique(label).tolist():
        own = np.flatnonzero(label == cluster)
        own = own[np.argsort(-sure[own], kind="stable")]
        low, high = np.quantile((drawn == cluster).sum(axis=1), ends(), method="inverted_cdf")
        rows.append({
            "cluster": numbered(cluster), "items": len(own), "not sure": int(not_sure(sure[own]).sum()),
            "items in 95 % of draws": f"{low:,.0f} to {high:,.0f}" if high > low else f"{low:,.0f}",
            "the surest": ", ".join(map(str, names[own[:_FEW_ITEMS]])) + ", …" * (len(own) > _FEW_ITEMS),
        })  # fmt: skip
    frame = pandas.DataFrame(rows)
    frame.attrs["numbers"] = ("items in 95 % of draws",)
    caption = f"Clusters of view {numbered(view)}; all items stand at the end of this section."
    return [Table(frame, caption), *_empty_clusters(truth, drawn, label)]


def _empty_clusters(truth: Any, drawn: np.ndarray, label: np.ndarray) -> list[str]:
    known = np.unique(label)
    empty = truth.most_clusters - len(known)
    if not empty:
        return []
    most = np.quantile((~np.isin(drawn, known)).sum(axis=1), ends()[1], method="inverted_cdf")
    return [
        f"Of the {truth.most_clusters} clusters that a view may have {empty} {'is' if empty == 1 else 'are'} empty "
        f"({counted(int(most), 'items')} or fewer in {percent(ends()[1])} of draws)."
    ]


def items_table(fit: Any, view: int, draws: float) -> list[Any]:
    """Tabulate the items of a view with their clusters: those of a cluster next to each other, the surest first.

    Parameters
    ----------
    draws : effective ones: nothing surer is written.
    """
    import pandas

    truth = fit.truth
    label, sure = _labels(truth, view)
    kept = np.argsort(sure, kind="stable")[:_MOST_ITEMS]
    order = kept[np.lexsort([kept, -sure[kept], label[kept]])]
    which = "Items" if len(order) == len(sure) else f"The {len(order):,} least sure of {len(sure):,} items"
    words = (
        f"{which}, each in its most probable cluster, the surest of a cluster first. All: “consilience table RUN "
        "views”, which numbers views and clusters from 1 as this page does; files of CSV and JSON number them from 0."
    )
    columns = {"item": truth.names()[order], "cluster": numbered(label[order]), "probability": sure[order]}
    texts = {"probability": [probability(one, draws=draws) for one in sure[order]]}
    frame = pandas.DataFrame({name: list(values) for name, values in columns.items()})
    return [words, Table(frame, f"Items of view {numbered(view)}.", texts=texts, parted="cluster")]


def _labels(truth: Any, view: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the most probable cluster of each item, and how probable it is."""
    return truth.consensus(view), truth.cluster_probability[:, view].max(axis=1)
