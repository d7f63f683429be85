"""What a report says of views: how many there are, who has which and how reliably, their clusters, what to ask next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import special

from consilience import views_figures
from consilience.errors import NotConjugate, UnsupportedRequest
from consilience.models.intervals import ends
from consilience.models.truth.views import ladders_apart
from consilience.pages import SURE, Action, Page, Section, Table
from consilience.pages.clusters_apart import most_apart, most_telling
from consilience.pages.crowd import shown_annotators
from consilience.pages.run import line_of
from consilience.pages.systems import in_words
from consilience.printing import counted, numbered
from consilience.rounding import probability, written

_MOST_EXPERTS, _MOST_VIEWS = 40, 6
_MOST_ROWS, _FEW_ROWS, _MOST_POINTS, _MOST_DRAWS = 15, 8, 4_000, 200
_LOOKED_AT = 1_000    # Answers that go against the others.
_MOST_NAMES, _MOST_UNSURE = 60, 20    # Items of a cluster that are named, and uncertain ones that are drawn.
_FEW_TRIPS = 10       # Round trips of replicas, below which they say less than that ladders agree.
_MOST_FEATURES = 4    # Of the table of features of each view.
_MOST_FOUND = 3       # Views of which the first screen tells.
_WITHIN = 1.0         # Nats.
_LEAST_GAIN = 0.005   # Nats: below, another answer tells next to nothing.
_TO_ASK = (
    ("Pairs to ask next", "Ask these pairs next"),
    ("Answers worth asking again", "Ask again where answers contradict the others"),
    ("Answers against the others", "Look at the answers that contradict the others"),
)
"""What to do, by the title of its section; one without such pairs has another title."""

_LISTED = (
    "Items are listed under their most probable cluster, the surest first; a probability below "
    f"{SURE} stands behind the item. All: “consilience table RUN views”."
)
_TOO_NARROW = (
    "These are intervals of coordinate ascent, which are too narrow: on data drawn from the model those of 90 % held "
    "65 %, and pairs of experts who share a view with a probability of 0.98 did so in 62 of 100. Method gibbs has "
    "wider ones."
)


def views_page(fit: Any, systems: Mapping[str, Any], *, risk: Any, **others: Any) -> Page:
    """Return the page of views; for the parameters see `consilience.reporting.report`.

    Raises
    ------
    UnsupportedRequest : systems or groups of classes are given.
    """
    if systems or risk is not None:
        raise UnsupportedRequest("the report of views has no systems; score partitions by evaluate, view by view")
    data, count = fit.data, fit.num_views()
    low, high = count.interval
    frame = fit.table("experts")
    unsure, against = int(_not_sure(frame["probability"]).sum()), len(fit.table("contradictions", limit=_LOOKED_AT))
    parts, expected = views_sections(fit), _expected_against(fit, frame)
    hoped = "" if expected is None else f", {expected:,.0f} expected from the estimated error rates"
    most, spread = _most_probable(count), "" if high == low else f" ({low:,.0f} to {high:,.0f}, 95 %)"
    named = counted(most, "views").partition(" ")[2]
    number = {f"{named}, with probability {_share_of(fit, count, most)}{spread}": f"{most:,}"}
    return Page(
        f"Views of {counted(data.num_experts, 'experts')}", line_of(fit), parts, numbers={
            **number, "experts": data.num_experts, "experts without a sure view": unsure,
            f"answers against the model{hoped}": f"{'≥ ' if against == _LOOKED_AT else ''}{against:,}",
        },
        findings=[
            f"{data.num_experts - unsure:,} of {counted(data.num_experts, 'experts')} belong to a view with a "
            f"probability of {SURE} or more, as far as the model holds. {_how_many(fit, count)}. "
            f"{_clusters_allowed(fit)}.",
            *(f"{_named(fit, view)}: {_sizes_of(fit, view)}." for view in _held(fit.truth)[:_MOST_FOUND]),
        ],
        actions=[
            Action("See which items belong together", section=f"View {numbered(0)}"),
            *(Action(words, section=part.title) for part in parts for title, words in _TO_ASK if part.title == title),
            Action("See how reliable each expert is", section="How reliable each expert is"),
            Action("Write the cluster of each item:", "consilience table RUN views --csv clusters.csv"),
        ],
    )  # fmt: skip


def _not_sure(probability: Any) -> Any:
    """Return whether a probability is below what counts as sure, as it is written: with two digits."""
    return np.round(probability, 2) < SURE


def _most_probable(count: Any) -> int:
    return int(np.bincount(np.asarray(count.draws, int)).argmax())


def _effective_draws(fit: Any, drawn: int) -> float:
    """Return what draws are worth, by the quantity of the fit that has the fewest effective ones."""
    return drawn if fit.worst is None else min(drawn, fit.worst.size)


def _share_of(fit: Any, count: Any, number: float) -> str:
    """Write how probable a number of views is, counted among draws."""
    drawn = len(count.draws)
    share = np.mean(np.asarray(count.draws) == number)
    return probability(share, 2 + (drawn >= 10_000), _effective_draws(fit, drawn))


def _how_many(fit: Any, count: Any) -> str:
    """Say how many views there are."""
    (low, high), most = count.interval, _most_probable(count)
    spread = "" if low == high else f"; 95 % of draws have {low:,.0f} to {high:,.0f}"
    is_ = "There is" if most == 1 else "There are"
    return f"{is_} {counted(most, 'views')} with probability {in_words(_share_of(fit, count, most))}{spread}"


def _clusters_allowed(fit: Any) -> str:
    """Say how many clusters a view may have, and whether somebody chose that or the evidence."""
    most, compared = counted(fit.truth.most_clusters, "clusters"), fit.table("evidence")
    if len(compared) < 2:
        return f"A view has {most} at most because so many were asked for: how many there are was not inferred"
    row, last = compared.loc[compared["clusters"] == fit.truth.most_clusters].iloc[0], compared["clusters"].max()
    known = in_words(probability(float(row["probability"])))
    return f"Of 2 to {last} clusters of a view {most} have the most evidence, probability {known}"


def _expected_against(fit: Any, frame: Any) -> float | None:
    """Return how many answers would go against the model by the experts' mean error rates; None of graded answers."""
    data = fit.data
    if data.num_answers != 2 or data.order is not None:
        return None
    expert = np.asarray(data.expert)
    together = fit.truth.pair_probability(np.asarray(data.item_a), np.asarray(data.item_b), expert).sum(axis=1)
    by_expert = frame.loc[np.arange(len(frame))]
    sensitivity, specificity = (by_expert[name].to_numpy(float)[expert] for name in ("sensitivity", "specificity"))
    says = together * sensitivity + (1 - together) * (1 - specificity)
    return float(np.where(together > 0.5, 1 - says, says).sum())


def views_sections(fit: Any) -> list[Section]:
    """Return the sections of a fit of expert-views."""
    frame = fit.table("experts")
    order = np.lexsort([-frame["weight"], frame["view"]])
    return [
        _grouping(fit, frame, order), _number(fit), _reliability(fit, frame.iloc[order]), *_views(fit),
        _contradictions(fit), _questions(fit), *_silent(fit),
    ]  # fmt: skip


# How many views -------------------------------------------------------------------------------------------------------


def _number(fit: Any) -> Section:
    count, restarts = fit.num_views(), fit.table("restarts")
    words = f"{_how_many(fit, count)}: so many have an expert, over draws of the posterior, as far as the model holds."
    blocks: list[Any] = [words]
    low, high = count.interval  # a single bar would say less than these words
    drawn = [views_figures.number_of_views(count)] if low < high else list[Any]()
    if len(restarts) > 1:
        blocks.append(_restart_words(restarts))
        drawn.append(views_figures.restart_bounds(restarts))
    elif not len(restarts):
        blocks.append(_ladder_words(fit))
    if len(fit.table("evidence")) < 2:
        blocks.append(f"{_clusters_allowed(fit)}. clusters=\"auto\" compares the evidence of 2, 3, … clusters.")
    return Section("How many views", [*blocks, *([drawn] if drawn else [])], _how_many(fit, count).lower())


def _ladder_words(fit: Any) -> str:
    words = "These are draws of a sampler; how it mixed is said under “What was run”."
    trips = np.asarray(fit.posterior.hidden.get("ladder_trips", ()))
    if not len(trips) or fit.options.get("rungs") == 1:
        return words
    number, apart = int(trips.sum()), ladders_apart(fit.posterior.value("view_of_expert"), len(trips))
    begun = f"{number:,} times a grouping" if number else "No grouping"
    words += (
        f" It moved on {counted(len(trips), 'ladders')}, from a rung that ignores the answers to one that believes "
        f"them in full. {begun} begun on the first of these came down to the last"
    )
    if number < _FEW_TRIPS and np.isfinite(apart):
        words += (
            ", which is rare where the grouping is sure. What speaks for this one is that the ladders agree, one begun "
            "at draws of the prior, the other where the best of several searches ended: on how probably two experts "
            f"share a view they differ by {apart:.2f} at most"
        )
    return words + (
        ". In simulations, on data drawn from the model, 90 % intervals of accuracies held 90 %, and pairs of experts "
        "who share a view with a probability of 0.93 did so in 92 of 100."
    )


def _restart_words(restarts: Any) -> str:
    number = len(restarts)
    near = int((restarts["gap"] <= _WITHIN).sum())
    same = int(restarts["same_grouping"].sum())
    words = (
        f"Coordinate ascent began {number} times. {near} of {number} restarts, with the best one, came within "
        f"{_WITHIN:.0f} nat of the best bound; {same} of {number} group the experts as the best one does. Numbers of "
        "the whole page are of the best restart alone, and know nothing of the others. "
    )
    if near > 1:
        return words + "That several starts end at the same bound is a good sign, and no proof that there is no better."
    return words + "None of the others came near: a better one may exist, and more restarts may find it."


# The experts ----------------------------------------------------------------------------------------------------------


def _grouping(fit: Any, frame: Any, order: np.ndarray) -> Section:
    import pandas

    truth = fit.truth
    shown = np.flatnonzero(truth.view_probability.max(axis=0) >= 0.005)
    unsure = _not_sure(frame["probability"].to_numpy())
    words = (
        "How probably each expert has each view; cells below 0.005 are empty. "
        f"The view of {int(unsure.sum()) or 'none'} of the {len(frame):,} experts is uncertain (probability below "
        f"{SURE})."
    )
    if fit.method == "cavi":
        words += " Coordinate ascent is surer of this than it should be where experts gave few answers."
    blocks: list[Any] = [words]
    if nobodys := np.setdiff1d(truth.used_views(), _held(truth)).tolist():
        blocks.append(
            f"Of the views whose use is more probable than not, nobody most probably has {_listed_views(nobodys)}: "
            "the answers do not tell which views there are, and such a view has no section."
        )
    if len(order) > _MOST_EXPERTS:
        least = np.argsort(frame["probability"].to_numpy(), kind="stable")[:_MOST_EXPERTS]
        order = order[np.isin(order, least)]
        blocks.append(f"Shown are the {_MOST_EXPERTS} of {len(frame):,} experts whose view is least certain.")
    cells = truth.view_probability[np.ix_(order, shown)]
    blocks.append(views_figures.expert_views(pandas.DataFrame(cells, frame["expert"].iloc[order], shown)))
    gist = f"{len(frame) - int(unsure.sum())} of {counted(len(frame), 'experts')} have a sure view"
    return Section("Which experts share a view", blocks, gist)


def _listed_views(views: list[int]) -> str:
    return f"view{'' if len(views) == 1 else 's'} {', '.join(str(numbered(view)) for view in views)}"


def _reliability(fit: Any, frame: Any) -> Section:
    number = len(frame)
    frame = frame.assign(**_prior_intervals(fit, frame))
    words = (
        "Sensitivity is how probably an expert says “together” of items that are together in the expert's view, "
        f"specificity how probably “apart” of items that are apart. Intervals hold 95 %{_prior_words(frame)}."
    )
    weight = (
        "The weight adds the log odds of both, log[αβ / ((1 − α)(1 − β))] with the sensitivity α and the specificity "
        "β: how much one “together” and one “apart” of the expert count against those of others. 0 is worth nothing, "
        "below 0 the expert is taken at the opposite of the word."
    )
    spammers = frame["expert"][frame["spammer"]].tolist()
    blocks: list[Any] = [words, weight]
    if fit.method == "cavi":
        blocks.insert(1, _TOO_NARROW)
    if spammers:
        named = ", ".join(map(str, spammers[:10])) + (", …" if len(spammers) > 10 else "")
        blocks.append(
            "Of these experts sensitivity and specificity more probably than not add up to less than 1.1, so that they "
            f"tell next to nothing, or the opposite of what they say: {named} ({len(spammers)} in all)."
        )
    if number > _MOST_EXPERTS:
        frame = shown_annotators(frame, "weight", ("weight_lower", "weight_upper"), "answers", _MOST_EXPERTS)
        frame = frame.iloc[np.lexsort([-frame["weight"], frame["view"]])]
        blocks.append(
            f"Shown are {len(frame)} of {number:,} experts: those who surely weigh most, those who surely weigh least, "
            "and the busiest. All: “consilience table RUN experts”."
        )
    blocks.append(views_figures.reliability(frame))
    columns, texts = {"expert": frame["expert"], "view": numbered(frame["view"])}, {}
    for site in ("sensitivity", "specificity", "weight"):
        spread = zip(frame[f"{site}_lower"], frame[f"{site}_upper"], strict=True)
        digits = 1 if site == "weight" else 2
        columns[site] = frame[site]
        texts[site] = [written(value, f".{digits}f") for value in frame[site]]
        columns[f"95 % of {site}"] = [" to ".join(written(end, f".{digits}f") for end in ends) for ends in spread]
    table = _frame(columns | {"answers": frame["answers"]})
    table.attrs["numbers"] = [name for name in columns if name.startswith("95 %")]
    gist = f"{counted(len(spammers), 'experts')} tell next to nothing" if spammers else ""
    if not gist and number > 1 and np.isfinite(frame["weight"]).all():
        most, least = (frame.loc[place] for place in (frame["weight"].idxmax(), frame["weight"].idxmin()))
        gist = f"{most['expert']} weighs most, {_weight_of(most)}; {least['expert']} least, {_weight_of(least)}"
    blocks.append(Table(table, "Experts by view.", of="experts", texts=texts))
    return Section("How reliable each expert is", blocks, gist)


def _weight_of(row: Any) -> str:
    """Write the weight of an expert with its interval."""
    weight, low, high = (written(row[name], ".1f") for name in ("weight", "weight_lower", "weight_upper"))
    return f"{weight} [{low}, {high}]"


def _prior_words(frame: Any) -> str:
    """Say what is drawn of the prior."""
    if "sensitivity_prior_lower" in frame:
        return (
            "; behind them is what the prior believed before any answer. Where the two look alike, the prior speaks, "
            "and not the expert"
        )
    if np.isfinite(frame["sensitivity_prior"].to_numpy(float)).any():
        return "; a tick is the mean of the prior, before any answer"
    return ""


def _prior_intervals(fit: Any, frame: Any) -> dict[str, np.ndarray]:
    """Return the ends of the prior's intervals of the accuracies, where the prior is of known Beta distributions."""
    found: dict[str, np.ndarray] = {}
    kind = fit.options.get("experts", "two-coin")
    if fit.priors is None or kind == "spammer":
        return found
    for site in ("sensitivity", "specificity"):
        try:
            parameters = fit.resolved.concentration("sensitivity" if kind == "symmetric" else site)
        except NotConjugate:
            return {}
        for end, level in zip(("lower", "upper"), ends(), strict=True):
            found[f"{site}_prior_{end}"] = special.betaincinv(*parameters[frame.index].T, level)
    return found


# The views ------------------------------------------------------------------------------------------------------------


def _views(fit: Any) -> list[Section]:
    used = _held(fit.truth)
    sections = []
    for number, view in enumerate(used[:_MOST_VIEWS]):
        words = f"{_named(fit, view)}: the experts in brackets most probably have it. {_LISTED}"
        if number == 0 and len(used) > _MOST_VIEWS:
            words = f"Shown are {_MOST_VIEWS} of {len(used)} views, those with most experts. {words}"
        blocks = [words, *_clusters(fit, view), *_picture(fit, view), *_feature_table(fit, view)]
        sections.append(Section(f"View {numbered(view)}", blocks, _sizes_of(fit, view)))
    return sections


def _held(truth: Any) -> list[int]:
    """Return the views that are more probably used than not and that some expert most probably has."""
    used = truth.used_views()
    return [view for view in used.tolist() if view in truth.view_probability.argmax(axis=1)]


def _named(fit: Any, view: int) -> str:
    """Return the number of a view with the experts whose view it most probably is."""
    own = np.flatnonzero(fit.truth.view_probability.argmax(axis=1) == view)
    names = ", ".join(map(str, fit.truth.names("expert", fit.truth.num_experts)[own[:10]]))
    return f"View {numbered(view)} ({names}{f', …, {len(own)} in all' if len(own) > 10 else ''})"


def _sizes_of(fit: Any, view: int) -> str:
    """Say how large the clusters of a view are, and how many items have no sure one."""
    truth = fit.truth
    size = np.bincount(truth.consensus(view))
    unsure = int(_not_sure(truth.cluster_probability[:, view].max(axis=1)).sum())
    return (
        f"items in {int((size > 0).sum())} of {truth.most_clusters} possible clusters, "
        f"{' + '.join(f'{one:,}' for one in size[size > 0])}; the cluster of {unsure or 'none'} of "
        f"{counted(truth.num_units, 'items')} is uncertain (probability below {SURE})"
    )


def _picture(fit: Any, view: int) -> list[Any]:
    data, truth = fit.data, fit.truth
    feature = np.asarray(data.feature)
    if not data.num_features:
        return _unsure(fit, view)
    probability = truth.cluster_probability[:, view]
    names = np.arange(data.num_features) if data.features is None else data.features
    try:
        plane = most_telling(feature, names, _weights(fit, view), probability)
        how = "The directions are those in which the weights of the features tell the clusters apart most."
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
    return [words + how, *cut, drawn]


def _weights(fit: Any, view: int) -> np.ndarray:
    """Return the mean weights of a view, ``(feature, cluster)``, per unit of each feature."""
    table = fit.table("directions", limit=fit.data.num_features)
    table = table[table["view"] == view]
    wide = table.pivot(index="feature", columns="cluster", values="weight")
    names = fit.data.features
    features = range(fit.data.num_features) if names is None else list(names)
    return wide.reindex(features, fill_value=0.0).to_numpy()  # the table leaves out features that are constant


def _clusters(fit: Any, view: int) -> list[str]:
    """List the items of each cluster, the surest first, and how many it has over draws."""
    truth = fit.truth
    drawn = truth.clusters(view, slice(0, _MOST_DRAWS))
    label, sure = truth.consensus(view), truth.cluster_probability[:, view].max(axis=1)
    names, listed = truth.names(), []
    for cluster in range(truth.most_clusters):
        own = np.flatnonzero(label == cluster)
        own = own[np.argsort(-sure[own], kind="stable")]
        texts = [f"{names[one]}" + (f" ({sure[one]:.2f})" if _not_sure(sure[one]) else "") for one in own]
        if len(own) > _MOST_NAMES:
            texts = [*texts[: _MOST_NAMES // 2], "…", *texts[-_MOST_NAMES // 2 :]]
        low, high = np.quantile((drawn == cluster).sum(axis=1), ends())
        spread = f" ({low:,.0f} to {high:,.0f} in 95 % of draws)" if high > low else ""
        size = f"{counted(len(own), 'items')}{spread}"
        listed.append(f"Cluster {numbered(cluster)}, {size}: {', '.join(texts) or 'none'}.")
    return listed


def _unsure(fit: Any, view: int) -> list[Any]:
    """Draw the items whose cluster is least certain."""
    import pandas

    probability = fit.truth.cluster_probability[:, view]
    sure = probability.max(axis=1)
    least = np.argsort(sure, kind="stable")[:_MOST_UNSURE]
    least = least[_not_sure(sure[least])]
    if not len(least):
        return []
    frame, title = pandas.DataFrame(probability[least], fit.truth.names()[least]), f"View {numbered(view)}, items"
    return [views_figures.expert_views(frame, title=f"{title} in doubt", across="cluster", down="item")]


def _feature_table(fit: Any, view: int) -> list[Any]:
    """Tabulate the weights of the features that tell most."""
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
    texts = ["{} ({} to {})".format(*(written(one, f"+.{n}f") for one in ends)) for *ends, n in numbers]
    wide = table.assign(text=texts).pivot(index="feature", columns="cluster", values="text")
    wide = wide.loc[list(dict.fromkeys(table["feature"]))]
    words = (
        "What one unit of a feature, as it stands in the file, adds to the log odds of each cluster against the "
        f"average of all, with 95 % intervals; the {len(wide)} features of {fit.data.num_features:,} that tell most:"
    )
    columns = {f"cluster {numbered(cluster)}": wide[cluster].tolist() for cluster in wide.columns}
    frame = _frame({"feature": list(wide.index)} | columns)
    frame.attrs["numbers"] = tuple(columns)
    return [words, Table(frame, f"Weights of the features, view {numbered(view)}.")]


# What to look at, and what to ask -------------------------------------------------------------------------------------


def _contradictions(fit: Any) -> Section:
    table = fit.table("contradictions", limit=_LOOKED_AT)
    again = table[table["gain"] >= _LEAST_GAIN].sort_values("gain", ascending=False, kind="stable")
    title = "Answers worth asking again" if len(again) else "Answers against the others"
    if not len(table):
        return Section("Contradictions", ["No answer goes against what all answers together say."])
    words = (
        f"{'At least ' if len(table) == _LOOKED_AT else ''}{len(table):,} of {fit.data.num_constraints:,} answers go "
        "against what all answers together say. “Probability” is that of the answer as it stands, from this expert, "
        "who errs at times; “together” that the two items are together in what this expert has in mind. The "
        f"{min(len(table), _FEW_ROWS)} least probable:"
    )
    gain = (
        "“Gain” is what another answer, of the best expert of the view, is expected to tell, in nats. Where it is next "
        "to nothing the others have settled the matter"
    )
    first = _shown_pairs(table.head(_FEW_ROWS).drop(columns="gain"), "The least probable answers.")
    gist = f"{len(table):,} of {fit.data.num_constraints:,}, {len(again):,} of which are worth asking again"
    if not len(again):
        settled = "The other answers have settled the matter of all of these: there is no need to ask again."
        return Section(title, [words, first, settled], gist)
    which = "these" if len(table) < _LOOKED_AT else f"the {_LOOKED_AT:,} least probable"
    then = f"{gain}. The {min(len(again), _FEW_ROWS)} of {which} with the largest gain:"
    most = _shown_pairs(again.head(_FEW_ROWS), "Those with the largest gain.")
    return Section(title, [words, first, then, most], gist)


def _questions(fit: Any) -> Section:
    table = fit.table("questions")
    title = "Pairs to ask next"
    if not len(table) or table["gain"].max() < _LEAST_GAIN:
        said = "No pair was found, among random ones, of which another answer would tell anything."
        return Section("More answers", [said], "another answer would tell next to nothing")
    shown = _without_repeats(table)
    words = (
        "Pairs of which one answer is expected to tell most, and the expert to ask. “Together” is how probably the two "
        "are together in this view, and “gain” what the answer is expected to tell of that, in nats; log 2 = 0.69 is "
        "all there is to know. Random candidates were looked at, and not all pairs. Of the "
        f"{len(table):,} that were found these are the {len(shown)} best in which no item comes twice in a view, since "
        "an answer to one pair tells of others. All: “consilience table RUN questions”."
    )
    gist = f"an answer on the best one is expected to tell {table['gain'].max():.2f} nats"
    return Section(title, [words, _shown_pairs(shown, "Pairs of which an answer tells most.")], gist)


def _without_repeats(table: Any) -> Any:
    """Choose the best pairs of each view, as many of each, in which no item comes twice."""
    most = max(_MOST_ROWS // table["view"].nunique(), 1)
    seen: set[Any] = set()
    chosen: list[int] = []
    taken = dict.fromkeys(table["view"], 0)
    for place, (view, a, b) in enumerate(zip(table["view"], table["item_a"], table["item_b"], strict=True)):
        if taken[view] < most and not {(view, a), (view, b)} & seen:
            seen |= {(view, a), (view, b)}
            taken[view] += 1
            chosen.append(place)
    return table.iloc[chosen]


def _shown_pairs(table: Any, caption: str) -> Table:
    texts = {name: list(map(probability, table[name])) for name in ("probability", "together") if name in table}
    return Table(_shown_codes(table).rename(columns=lambda name: name.replace("_", " ")), caption, texts=texts)


def _shown_codes(table: Any) -> Any:
    """Return a table with views and clusters as people number them."""
    return table.assign(**{name: numbered(table[name]) for name in ("view", "cluster") if name in table})


def _silent(fit: Any) -> list[Section]:
    truth = fit.truth
    silent = truth.silent
    if not len(silent):
        return []
    table, views = fit.table("views"), truth.used_views()
    table = table.iloc[(silent[:, None] * len(views) + np.arange(len(views))).ravel()]
    least = table.assign(row=np.repeat(silent, len(views))).sort_values("probability", kind="stable")
    shown = least.drop(columns="row").head(_MOST_ROWS)
    words = (
        f"{len(silent):,} of {truth.num_units:,} items are in no pair. Their clusters are predicted from the features "
        f"alone, and are as uncertain as “probability” says; {int(_not_sure(table['probability']).sum()):,} of "
        f"{len(table):,} predictions (one for each item and view) are below {SURE}. The {len(shown)} least certain:"
    )
    texts = {"probability": list(map(probability, shown["probability"]))}
    table = Table(_shown_codes(shown), "The least certain predictions.", texts=texts)
    return [Section("Items that nobody judged", [words, table])]


def _frame(columns: dict[str, Any]) -> Any:
    import pandas

    return pandas.DataFrame({name: list(values) for name, values in columns.items()})
