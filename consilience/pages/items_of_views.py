"""What a report says of the items of a view: its clusters, and in which one each item most probably is."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.models.intervals import ends
from consilience.pages import Section, Table
from consilience.pages.runs_of_views import if_none_missed
from consilience.pages.systems import in_words
from consilience.pages.views_measured import not_sure
from consilience.printing import counted, numbered, percent
from consilience.rounding import probability

_MOST_DRAWS = 200
_SURE = 0.99  # of an item's cluster, above which nothing is told apart
_MOST_ITEMS, _FEW_ITEMS = 500, 3  # Of a view that are listed, and of a cluster that are named as its surest ones.
_MOST_NAMED = 100  # Of a cluster, of the surest.
_WHERE_ALL = "“consilience table RUN views --csv clusters.csv” writes all, with views and clusters numbered as here."
_GIST = "the most probable cluster of each"


def clusters_table(fit: Any, view: int) -> list[Any]:
    """Tabulate the clusters of a view, each with its size and surest items; say how many clusters are empty."""
    import pandas

    truth = fit.truth
    label, sure = _labels(truth, view)
    names, rows = truth.names(), list[dict[str, Any]]()
    for cluster, (number, size) in sizes_of_clusters(truth, view).items():
        own = np.flatnonzero(label == cluster)
        own = own[np.argsort(-sure[own], kind="stable")]
        rows.append({
            "cluster": numbered(cluster), "items": number, "not clearly assigned": int(not_sure(sure[own]).sum()),
            "size, 95 % of draws": size,
            "most certain": ", ".join(map(str, names[own[:_FEW_ITEMS]])) + ", …" * (len(own) > _FEW_ITEMS),
        })  # fmt: skip
    frame = pandas.DataFrame(rows)
    if _all_sure(sure):  # then the first items of a cluster are no surer than others
        frame = frame.drop(columns="most certain")
    frame.attrs["numbers"] = ("size, 95 % of draws",)
    caption = f"Clusters of view {numbered(view)}; “{title_of_items(view)}” lists all items."
    return [Table(frame, caption), *_empty_clusters(truth, _drawn(truth, view), label)]


def _all_sure(sure: np.ndarray) -> bool:
    """Return whether every item is in its most probable cluster as surely as is worth a word."""
    return bool((sure >= _SURE).all())


def sizes_of_clusters(truth: Any, view: int) -> dict[int, tuple[int, str]]:
    """Return of each cluster of a view how many items most probably are in it, and how many in 95 % of draws."""
    label, drawn, found = truth.consensus(view), _drawn(truth, view), dict[int, tuple[int, str]]()
    for cluster in np.unique(label).tolist():
        low, high = np.quantile((drawn == cluster).sum(axis=1), ends(), method="inverted_cdf")
        size = f"{low:,.0f} to {high:,.0f}" if high > low else f"{low:,.0f}"
        found[cluster] = int((label == cluster).sum()), size
    return found


def sizes_in_words(truth: Any, view: int) -> str:
    """Write how large the clusters of a view are: ranges where draws differ."""
    found = [size for _, size in sizes_of_clusters(truth, view).values()]
    which = f" in {100 * (ends()[1] - ends()[0]):.0f} % of draws" if any(" to " in size for size in found) else ""
    return f"{' + '.join(found)}{which}"


def _drawn(truth: Any, view: int) -> np.ndarray:
    """Return some draws of the clusters of all items, of all chains."""
    return np.asarray(truth.clusters(view, slice(None, None, max(truth.num_draws // _MOST_DRAWS, 1))))


def title_of_items(view: int) -> str:
    """Return the title of the section that lists the items of a view."""
    return f"Items of view {numbered(view)}"


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


def items_section(fit: Any, view: int, draws: float) -> Section:
    """List the items of a view with their clusters: those of a cluster next to each other, the surest first.

    Parameters
    ----------
    draws : effective ones: nothing surer is written.
    """
    label, sure = _labels(fit.truth, view)
    texts, surest = _surest(sure, draws)
    title = title_of_items(view)
    if 2 * surest.sum() > len(sure):  # the same number in most rows would tell nothing
        rest = np.flatnonzero(~surest)
        rest = rest[np.argsort(sure[rest], kind="stable")][:_MOST_ITEMS]
        then = ", then the others" * (len(rest) > 0)
        which = "All" if surest.all() else f"{int(surest.sum()):,} of"
        words = (
            f"{which} {counted(len(sure), 'items')} are in their most probable cluster with a "
            f"probability {in_words(texts[surest][0])}{if_none_missed(fit)}. They are listed by cluster{then}. "
            f"{_WHERE_ALL}"
        )
        others = [_items(fit.truth, rest, label, sure, draws, f"{title} with lower probability.")] if len(rest) else []
        return Section(title, [words, _names(fit.truth, label, surest, title), *others], _GIST)
    kept = np.argsort(sure, kind="stable")[:_MOST_ITEMS]
    order = kept[np.lexsort([kept, -sure[kept], label[kept]])]
    which = "Items" if len(order) == len(sure) else f"The {len(order):,} least certain of {len(sure):,} items"
    words = f"{which}, each in its most probable cluster, the most certain of a cluster first. {_WHERE_ALL}"
    blocks = [words, _items(fit.truth, order, label, sure, draws, f"{title}.", parted="cluster")]
    return Section(title, blocks, _GIST)


def _surest(sure: np.ndarray, draws: float) -> tuple[np.ndarray, np.ndarray]:
    """Return how the probability of each item is written, and which have the highest as it is written."""
    texts = np.array([probability(one, draws=draws) for one in sure])
    return texts, texts == texts[sure.argmax()]


def _names(truth: Any, label: np.ndarray, chosen: np.ndarray, title: str) -> Table:
    """Name the chosen items of each cluster."""
    import pandas

    names, rows = truth.names(), list[dict[str, Any]]()
    for cluster in np.unique(label[chosen]).tolist():
        own = np.flatnonzero(chosen & (label == cluster))
        named = ", ".join(map(str, names[own[:_MOST_NAMED]]))
        more = f" and {len(own) - _MOST_NAMED:,} more" * (len(own) > _MOST_NAMED)
        rows.append({"cluster": numbered(cluster), "number": len(own), "items": f"{named}{more}"})
    return Table(pandas.DataFrame(rows), f"{title}, by cluster.")


def _items(
    truth: Any, order: np.ndarray, label: np.ndarray, sure: np.ndarray, draws: float, caption: str, parted: str = ""
) -> Table:
    import pandas

    columns = {"item": truth.names()[order], "cluster": numbered(label[order]), "probability": sure[order]}
    texts = {"probability": [probability(one, draws=draws) for one in sure[order]]}
    frame = pandas.DataFrame({name: list(values) for name, values in columns.items()})
    return Table(frame, caption, texts=texts, parted=parted)


def _labels(truth: Any, view: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the most probable cluster of each item, and how probable it is."""
    return truth.consensus(view), truth.cluster_probability[:, view].max(axis=1)
