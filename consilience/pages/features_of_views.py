"""What a report says of a view beside its clusters: where its items lie by their features, and which tell of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience import views_figures
from consilience.errors import UnsupportedRequest
from consilience.pages import Table
from consilience.pages.clusters_apart import most_apart, most_telling
from consilience.pages.views_measured import not_sure
from consilience.printing import numbered
from consilience.rounding import written

_MOST_POINTS = 4_000
_MOST_UNSURE = 20  # items in doubt that are drawn
_MOST_FEATURES = 4  # of the table of features of each view


def picture(fit: Any, view: int, draws: float, *, at_top: bool = False) -> list[Any]:
    """Draw the items of a view over two directions of their features; of none, those whose cluster is least certain.

    Parameters
    ----------
    fit, view : of views.
    draws : effective ones: nothing surer is written.
    at_top : whether the first screen has the figure of features, so that only what there is to know of it is returned.
    """
    if not fit.data.num_features:
        return _unsure(fit, view, draws)
    *told, drawn = by_features(fit, view)
    return [" ".join(["The figure at the top shows the items by their features.", *told])] if at_top else [*told, drawn]


def by_features(fit: Any, view: int) -> list[Any]:
    """Draw the items of a view over two directions of their features, below what there is to know of the figure."""
    data, truth = fit.data, fit.truth
    feature, probability = np.asarray(data.feature), truth.cluster_probability[:, view]
    names = np.arange(data.num_features) if data.features is None else data.features
    try:
        plane = most_telling(feature, names, _weights(fit, view), probability)
        how = "The axes are the directions of the features in which their weights tell the clusters apart most."
        how = how if data.num_features > len(plane.names) else ""
        if any("×" in name for name in plane.names):
            how += " An axis that is a sum of features has the units of none of them."
    except UnsupportedRequest:
        plane, how = most_apart(feature, names, probability), "The axes are what differs most between the clusters."
    shown, cut = np.arange(data.num_items), []
    if data.num_items > _MOST_POINTS:
        shown = np.sort(np.random.default_rng(0).choice(data.num_items, _MOST_POINTS, replace=False))
        cut = [f"Shown are {_MOST_POINTS:,} random items of {data.num_items:,}."]
    judged = np.isin(shown, truth.judged)
    title = f"Items of view {numbered(view)} by cluster"
    drawn = views_figures.clusters(plane.place[shown], probability[shown], judged, plane.names, title)
    words = "Each item has the colour of its most probable cluster, and is the fainter the less certain that is. "
    return [f"{words}{how}".strip(), *cut, drawn]


def _weights(fit: Any, view: int) -> np.ndarray:
    """Return the mean weights of a view, ``(feature, cluster)``, per unit of each feature."""
    table = fit.table("directions", limit=fit.data.num_features)
    table = table[table["view"] == view]
    wide = table.pivot(index="feature", columns="cluster", values="weight")
    names = fit.data.features
    features = range(fit.data.num_features) if names is None else list(names)
    return wide.reindex(features, fill_value=0.0).to_numpy()  # the table leaves out features that are constant


def _unsure(fit: Any, view: int, draws: float) -> list[Any]:
    """Draw the items whose cluster is least certain."""
    import pandas

    truth = fit.truth
    probability = truth.cluster_probability[:, view]
    sure = probability.max(axis=1)
    least = np.argsort(sure, kind="stable")[:_MOST_UNSURE]
    least = least[not_sure(sure[least])]
    if not len(least):
        return []
    frame, title = pandas.DataFrame(probability[least], truth.names()[least]), f"View {numbered(view)}, items in doubt"
    return [views_figures.expert_views(frame, title=title, across="cluster", down="item", draws=draws)]


def feature_table(fit: Any, view: int) -> list[Any]:
    """Tabulate the weights of the features that tell most."""
    import pandas

    if not fit.data.num_features:
        return []
    try:
        table = fit.table("directions", limit=_MOST_FEATURES)
    except UnsupportedRequest:
        return []
    table = table[table["view"] == view]
    # As many digits as the narrowest interval of a feature asks for.
    narrowest = (table["upper"] - table["lower"]).groupby(table["feature"]).transform("min")
    digits = np.clip(1 - np.floor(np.log10(np.maximum(narrowest / 2, 1e-9))), 0, 9).astype(int)
    numbers = zip(table["weight"], table["lower"], table["upper"], digits, strict=True)
    texts = ["{} ({} to {})".format(*(written(one, f"+.{n}f") for one in values)) for *values, n in numbers]
    wide = table.assign(text=texts).pivot(index="feature", columns="cluster", values="text")
    wide = wide.loc[list(dict.fromkeys(table["feature"]))]
    shown, known = len(wide), fit.data.num_features
    which = f"the {shown} of {known:,} features" if shown < known else "the features"
    words = (
        "What one unit of a feature, as it stands in the file, does to the odds of each cluster against the average of "
        "all: +0.7 doubles them, −0.7 halves them (natural logarithms). In brackets are 95 % intervals; listed are "
        f"{which}, those that tell most first:"
    )
    columns = {f"cluster {numbered(cluster)}": wide[cluster].tolist() for cluster in wide.columns}
    frame = pandas.DataFrame({"feature": list(wide.index)} | columns)
    frame.attrs["numbers"] = tuple(columns)
    return [words, Table(frame, f"Weights of the features, view {numbered(view)}.")]
