"""What a report says of views: how many there are, who has which and how reliably, their clusters, what to ask next."""

from __future__ import annotations

import functools
import math
import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np

from consilience import first_figures, views_figures
from consilience.errors import UnsupportedRequest
from consilience.inference.posterior import LEAST_ESS
from consilience.pages import MOST_ACTIONS, SURE, Action, Heading, Page, Section, Table, capital, gains
from consilience.pages.answers_against import by_expert, most_contrary, table_by_expert, tile_of_most
from consilience.pages.clusters_allowed import clusters_allowed, evidence, is_found, most_otherwise
from consilience.pages.clusters_together import shares_together, together_blocks
from consilience.pages.common_pairs import common_pairs
from consilience.pages.features_of_views import by_features, feature_table, picture
from consilience.pages.items import effective_draws
from consilience.pages.items_of_views import (
    clusters_table,
    items_section,
    sizes_in_words,
    sizes_of_clusters,
    title_of_items,
)
from consilience.pages.own_errors import kinds_in_words, spread_in_words
from consilience.pages.reliability import MOST_EXPERTS, maybe_mute, reliability_section
from consilience.pages.run import changed, line_of, own_priors
from consilience.pages.runs_of_views import (
    NUMBER_TITLE,
    agreement_of_runs,
    disagree,
    how_chains_moved,
    if_none_missed,
    missed,
    passes,
    restart_words,
    search_again,
    views_verdict,
    why_missed,
)
from consilience.pages.silent_items import shown_codes, silent_items
from consilience.pages.systems import in_words
from consilience.pages.views_measured import MEASURED_AT, TRUST, not_sure, trust_of
from consilience.pages.without_one import HOW, without_one
from consilience.printing import counted, joined, numbered, percent
from consilience.rounding import probability

_MOST_VIEWS = 6
_MOST_ROWS, _FEW_ROWS = 15, 8
_LOOKED_AT = 1_000    # Answers that go against the others.
_MOST_SIZES = 5       # Of clusters in a key figure.
_MOST_DRAWN = 15      # Experts whose views are drawn on the first screen.
_MOST_FOUND = 2       # Views, and uncertain experts, of which the first screen tells.
_NO_CHANGE = "the clusters would hardly change if any one were asked again"
_WORTH_ASKING = "Answers worth asking again"


def views_page(fit: Any, systems: Mapping[str, Any], *, risk: Any, **others: Any) -> Page:
    """Return the page of views; for the parameters see `consilience.reporting.report`.

    Raises
    ------
    UnsupportedRequest : systems or groups of classes are given.
    """
    if systems or risk is not None:
        raise UnsupportedRequest("the report of views has no systems; score partitions by evaluate, view by view")
    found = _Found(fit)
    parts, held = _sections(found), _held(fit.truth)
    actions = _actions(found, parts)
    return Page(
        f"Views of {counted(fit.data.num_experts, 'experts')}", line_of(fit), parts, numbers=_numbers(found),
        verdict=views_verdict(found, held), figure=_first_figure(found),
        findings=[
            *_who_and_what(found, held),
            f"{clusters_allowed(fit, held, _place_of(_other_clusters(fit), actions))}.",
            " ".join([*_mute(found), *_contrary(found), gains.surer(found.asked, found.open)][:2]),
        ],
        actions=actions, method=how_chains_moved(fit),
    )  # fmt: skip


def _actions(found: _Found, parts: list[Section]) -> list[Action]:
    """Return what to do next; where items of one view lie comes first, unless the run is not to be used as it is."""
    fit = found.fit
    return [
        *(longer := _more_draws(fit)),
        *([] if longer and disagree(fit) else _search_again(fit)),
        *(Action("See which items belong together", section=title_of_items(view)) for view in _held(fit.truth)[:1]),
        *_ask_again(found),
        Action("Save the clusters of items:", "consilience table RUN views --csv clusters.csv"),
        *_check(found),
        *[Action("Ask again where answers contradict the others", section=_WORTH_ASKING)] * bool(found.worth),
        *(Action("Ask these pairs next; all:", "consilience table RUN questions", part.title) for part in parts
          if part.title == "Pairs to ask next" and (found.open or found.asked["gain"].max() >= gains.WORTH)),
        *_other_clusters(fit),
        Action("See how reliable each expert is", section="How reliable each expert is"),
    ]  # fmt: skip


def _place_of(those: list[Action], actions: list[Action]) -> int:
    """Return the number of a step among those that a page shows; 0 where it has none."""
    shown = actions[:MOST_ACTIONS]
    return shown.index(those[0]) + 1 if those and those[0] in shown else 0


def _who_and_what(found: _Found, held: list[int]) -> list[str]:
    """Say how many views there are and how large their clusters are, unless key figures have it."""
    fit, more = found.fit, f"{missed(found.fit)}{_without_view(found)}".strip()
    if _all_in_tiles(found):
        return [more] * bool(more)
    return [
        f"{_how_many(found)}. {more}".strip(),
        " ".join(f"{_named(fit, view)}: {_sizes_of(fit, view)}." for view in held[:_MOST_FOUND])
        + f" {counted(len(held) - _MOST_FOUND, 'more views')} below." * (len(held) > _MOST_FOUND)
        + f" Clearly assigned means with a probability of {SURE} or more, by the model.",
    ]


def _all_in_tiles(found: _Found) -> bool:
    """Return whether key figures have the sizes of the clusters: of one view, where all is sure."""
    sure = ~not_sure(found.experts["probability"])
    return bool(sure.all() and not found.open and len(_held(found.fit.truth)) == 1)


def _first_figure(found: _Found) -> Any:
    """Draw who has which view; of a single one its items by features, or how often experts call them together."""
    fit, truth = found.fit, found.fit.truth
    held = _held(truth)
    if _views_are_first(found):
        return _views_of_experts(found, np.lexsort([-found.experts["weight"], found.experts["view"]]))
    if len(held) != 1 or not fit.data.num_features:
        shares = shares_together(fit, held[0]) if len(held) == 1 else None
        return None if shares is None else first_figures.said_together(*shares)
    return by_features(fit, held[0])[-1]


class _Found:
    """What a page of views says in several places, each computed once."""

    def __init__(self, fit: Any) -> None:
        self.fit, self.count, self.experts = fit, fit.num_views(), fit.table("experts")
        self.against = fit.table("contradictions", limit=_LOOKED_AT)
        again = self.against[self.against["gain"] >= gains.LEAST]
        self.again = again.sort_values("gain", ascending=False, kind="stable")
        self.worth = int((again["gain"] >= gains.WORTH).sum())
        # Not counted where not all are known.
        self.of_whom = by_expert(self.experts, self.against if len(self.against) < _LOOKED_AT else self.against[:0])
        self.asked = fit.table("questions")
        self.most = int(np.bincount(np.asarray(self.count.draws, int)).argmax())
        # Those of coordinate ascent are in closed form.
        self.draws = effective_draws(fit, self.count) if fit.has_draws else np.inf
        chance = fit.truth.cluster_probability[:, _held(fit.truth)]
        self.open = int(not_sure(chance.max(axis=2)).any(axis=1).sum())

    @functools.cached_property
    def without(self) -> str:
        """Say whether clusters change without the expert who clearly errs most; empty where there are several views."""
        held = _held(self.fit.truth)
        return without_one(self.fit, self.of_whom["expert"].iloc[0], held[0]) if len(held) == 1 else ""


def _numbers(found: _Found) -> dict[str, Any]:
    """Return the key figures; where all is sure, sizes of the clusters and who errs most in place of what is sure."""
    fit, held = found.fit, _held(found.fit.truth)
    number, (low, high) = fit.data.num_experts, found.count.interval
    spread = "" if high == low else f" ({low:,.0f} to {high:,.0f}, 95 %)"
    named = counted(found.most, "views").partition(" ")[2]
    meant = f"({'one way' if found.most == 1 else 'ways'} to sort the items)"
    numbers: dict[str, Any] = {f"{named} {meant}, {_how_surely(found)}{spread}": f"{found.most:,}"}
    most = "" if is_found(fit) else f", given at most {fit.truth.most_clusters} clusters a view"
    if _all_in_tiles(found):
        sizes = [size for size, _ in sizes_of_clusters(fit.truth, held[0]).values()]
        what = f"items in {counted(len(sizes), 'clusters')}, all clearly assigned (probability {SURE} or more){most}"
        numbers[what] = " + ".join(f"{size:,}" for size in sizes) if len(sizes) <= _MOST_SIZES else f"{sum(sizes):,}"
        numbers |= tile_of_most(found.of_whom)
    else:
        sure = int((~not_sure(found.experts["probability"])).sum())
        numbers[f"of {counted(number, 'experts')} with a clear view (probability {SURE} or more)"] = sure
        sure_items = f"of {counted(fit.truth.num_units, 'items')} clearly assigned{_in_all(held)}{most}"
        numbers[sure_items] = fit.truth.num_units - found.open
    against = f"{'≥ ' if len(found.against) == _LOOKED_AT else ''}{found.worth or len(found.against):,}"
    return numbers | {f"of {counted(fit.data.num_constraints, 'answers')} {_called(found)}": against}


def _ask_again(found: _Found) -> list[Action]:
    """Return the advice to speak with the expert who errs most, where one clearly does, by the pairs in question."""
    if not most_contrary(found.of_whom):
        return []
    who, number = found.of_whom[["expert", "against the clusters"]].iloc[0]
    words = (
        f"Ask {who} whether the question was clear. This may show why {who} disagrees; it would hardly change the "
        f"clusters. The file has the {number:,} answers in question:"
    )
    if found.worth:
        words = f"Ask {who} whether the question was clear. The file has the {number:,} answers in question:"
    rows = f"contradictions --expert {shlex.quote(str(who))} --csv contradictions.csv"
    return [Action(words, f"consilience table RUN {rows}")]


def _check(found: _Found) -> list[Action]:
    """Return the advice to check clusters by what is known, where more answers would tell next to nothing."""
    if found.open or found.worth or (len(found.asked) and found.asked["gain"].max() >= gains.WORTH):
        return []
    words = "Compare the clusters with what you know of some or all items; KNOWN.csv has the columns item and cluster"
    return [Action(f"{words}:", "consilience score KNOWN.csv clusters.csv --columns record=item --unknown keep")]


def _in_all(held: list[int]) -> str:
    return "" if len(held) < 2 else " in every view"


def _share_of(found: _Found) -> str:
    """Write how probable the most probable number of views is, counted among draws."""
    drawn = np.asarray(found.count.draws)
    draws = effective_draws(found.fit, found.count)
    return probability(np.mean(drawn == found.most), 2 + (len(drawn) >= 10_000), draws)


def _how_surely(found: _Found) -> str:
    """Say how probable that number is; only in which share of draws, where no chain went all the way."""
    share = _share_of(found)
    if passes(found.fit) != 0:
        return f"probability {in_words(share)}"
    sign, _, number = share.rpartition(" ")
    more = {">": "more than ", "<": "less than "}.get(sign, "")
    return f"in {more}{100 * float(number):.3g} % of draws"


def _called(found: _Found) -> str:
    """Say what of the answers against the others is counted: those worth asking again, where there are any."""
    if found.worth:
        return "may be worth asking again"
    return f"{'contradicts' if len(found.against) == 1 else 'contradict'} the clusters"


def _how_many(found: _Found) -> str:
    """Say how many views there are."""
    (low, high), number = found.count.interval, found.fit.data.num_experts
    spread = "" if low == high else f" ({low:,.0f} to {high:,.0f} in 95 % of draws)"
    who = "The expert has" if number == 1 else f"The {number:,} experts have"
    return f"{who} {counted(found.most, 'views')}, {_how_surely(found)}{spread}"


def _without_view(found: _Found) -> str:
    """Say whose view is uncertain, with a space behind it; empty where all are sure."""
    frame = found.experts[not_sure(found.experts["probability"])].sort_values("probability", kind="stable")
    if frame.empty:
        return ""
    named = zip(frame["expert"], frame["view"], frame["probability"], strict=True)
    texts = [f"{name} (view {numbered(view)}, {one:.2f})" for name, view, one in named]
    who = f"{counted(len(frame), 'experts')} {'has' if len(frame) == 1 else 'have'}"
    more = f" and {len(texts) - _MOST_FOUND:,} more" if len(texts) > _MOST_FOUND else ""
    return f"{who} an uncertain view (probability below {SURE}): {', '.join(texts[:_MOST_FOUND])}{more}. "


def _contrary(found: _Found) -> list[str]:
    """Say whose answers go against the others, where one expert has clearly more of them; empty otherwise.

    And, where there is one view, whether the clusters change without the answers of that expert.
    """
    if not (who := most_contrary(found.of_whom, share=not _all_in_tiles(found))):
        return []
    return [f"{who}.", *[found.without] * bool(found.without)]


def _other_clusters(fit: Any) -> list[Action]:
    """Offer to compare numbers of clusters, or to fit another that the evidence leaves open and that is not alike."""
    if fit.method != "gibbs":
        return []
    if len(fit.table("evidence")) < 2:
        command = f"{_again(fit, clusters='auto')} -o compared"
        known = len(fit.table("evidence")) and not own_priors(fit)  # a chain without tempering has no evidence
        return [Action("Compare numbers of clusters:", command)] if known else []
    other = most_otherwise(fit)
    if not other or own_priors(fit):
        return []
    command = _again(fit, clusters=other)
    return [Action(f"See how up to {other} clusters sort the items:", f"{command} -o other-clusters")]


def _more_draws(fit: Any) -> list[Action]:
    """Offer the command that draws enough, where too few are effective."""
    worst = fit.worst if fit.method == "gibbs" else None
    if worst is None or not worst.short or not worst.size > 0:
        return []
    draws = math.ceil(LEAST_ESS / worst.size) * fit.draws
    if own_priors(fit):  # a command may not know them
        return [Action(f"Ask for more draws, by draws={draws} in the lines of Python", section="What was run")]
    return [Action("Ask for more draws:", f"{_again(fit)} --draws {draws} -o longer")]


def _search_again(fit: Any) -> list[Action]:
    """Offer the command that settles how many views there are, where the search for others left that open."""
    if fit.method != "gibbs" or (wanted := search_again(fit)) is None:
        return []
    words, options = wanted
    if own_priors(fit):  # a command may not know them
        named = joined(f"{name}={value}" for name, value in options.items())
        return [Action(f"{words}: {named} in the lines of Python", section="What was run")]
    return [Action(f"{words}:", f"{_again(fit, **options)} -o searched-again")]


def _again(fit: Any, **given: Any) -> str:
    """Return the command that fits the data again, with other options."""
    file = shlex.quote(fit.attributes.get("data_file", "ANSWERS.csv"))
    features = f"--features {shlex.quote(fit.attributes.get('features_file', 'ITEMS.csv'))}"
    words = [file, *[features] * bool(fit.data.num_features)]
    words += [f"--{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in (changed(fit) | given).items()]
    return f"consilience fit {fit.member.name} {' '.join(words)}"


def _mute(found: _Found) -> list[str]:
    """Say whose answers may tell nothing."""
    names = maybe_mute(found.experts)
    return [f"{names} may carry no information: the 95 % interval of the weight includes 0."] if names else []


def views_sections(fit: Any) -> list[Section]:
    """Return the sections of a fit of expert-views."""
    return _sections(_Found(fit))


def _sections(found: _Found) -> list[Section]:
    fit, frame = found.fit, found.experts
    order = np.lexsort([-frame["weight"], frame["view"]])
    first = [_grouping(found, order), *_views(found)]
    first = [*first[1:], first[0]] if _all_in_tiles(found) else first  # where of experts there is little to tell
    return [
        *first, _number(found), reliability_section(fit, frame.iloc[order]), _contradictions(found),
        *_questions(found), *silent_items(fit),
    ]  # fmt: skip


# How many views -------------------------------------------------------------------------------------------------------


def _number(found: _Found) -> Section:
    fit, count, restarts = found.fit, found.count, found.fit.table("restarts")
    words = (
        "Each posterior draw counts the views that some expert has. The share of draws is the probability, if the "
        "model is right and the sampler missed no other number."
    )
    low, high = count.interval
    blocks: list[Any] = [words if low == high else f"{_how_many(found)}. {words}", *why_missed(fit)]
     # a single bar would say less than these words
    drawn = [views_figures.number_of_views(count, draws=effective_draws(fit, count))] if low < high else list[Any]()
    if len(restarts) > 1:
        blocks.append(restart_words(restarts))
        drawn.append(views_figures.restart_bounds(restarts))
    elif not len(restarts):
        blocks.append(agreement_of_runs(fit))
        blocks += [TRUST] * (fit.truth.most_clusters == MEASURED_AT and fit.data.num_features > 0)
    if len(fit.table("evidence")) > 1:  # else a finding and a step say so
        blocks += [Heading("How many clusters a view may have"), *evidence(fit)]
    gist = f"{counted(found.most, 'views')}, {_how_surely(found)}"
    return Section(NUMBER_TITLE, [*blocks, *([drawn] if drawn else [])], gist)


# The experts ----------------------------------------------------------------------------------------------------------


def _grouping(found: _Found, order: np.ndarray) -> Section:
    fit, frame, truth = found.fit, found.experts, found.fit.truth
    shown = _shown_views(truth)
    words = _without_view(found)
    if fit.method == "cavi":
        words += "Coordinate ascent is too certain of views if experts gave few answers."
    blocks: list[Any] = [words.strip()] if words else []
    if nobodys := np.setdiff1d(truth.used_views(), _held(truth)).tolist():
        blocks.append(
            f"{capital(_listed_views(nobodys))} probably {'exists' if len(nobodys) == 1 else 'exist'}, but no expert "
            "most probably has it: the answers do not show which views there are, and a view like this has no section."
        )
    if apart := np.setdiff1d(shown, [*_held(truth), *nobodys]).tolist():
        who = truth.names("expert", truth.num_experts)[truth.view_probability[:, apart].max(axis=1) >= 0.005]
        named = ", ".join(map(str, who[:_MOST_FOUND])) + (", …" if len(who) > _MOST_FOUND else "")
        listed = _listed_views(apart)
        blocks.append(
            f"No expert most probably has {listed}, so {'it has' if len(apart) == 1 else 'they have'} no section: "
            f"{'it covers' if len(apart) == 1 else 'they cover'} the few draws in which {named} "
            f"{'has' if len(who) == 1 else 'have'} a separate view."
        )
    if _views_are_first(found):
        blocks.append("The figure at the top shows how probable each view is for each expert; empty: below 0.005.")
    elif len(shown) > 1:
        blocks.append("How probably each expert has each view; cells below 0.005 are empty.")
        if len(order) > MOST_EXPERTS:
            least = np.argsort(frame["probability"].to_numpy(), kind="stable")[:MOST_EXPERTS]
            order = order[np.isin(order, least)]
            blocks.append(f"The {MOST_EXPERTS} of {len(frame):,} experts with the least certain view are shown.")
        blocks.append(_views_of_experts(found, order))
    else:
        known = in_words(probability(float(frame["probability"].min()), 2, found.draws))
        blocks.append(
            f"{'Every' if len(frame) > 1 else 'The'} expert has view {numbered(shown[0])} with a probability "
            f"{known}{if_none_missed(fit)}; no other view reaches 0.005."
        )
    sure = len(frame) - int(not_sure(frame["probability"]).sum())
    gist = f"{sure:,} of {counted(len(frame), 'experts')} with a clear view"
    return Section("Which experts share a view", [*blocks, *common_pairs(fit)], gist)


def _shown_views(truth: Any) -> np.ndarray:
    """Return the views that some expert has with a probability that is written."""
    return np.flatnonzero(truth.view_probability.max(axis=0) >= 0.005)


def _views_of_experts(found: _Found, order: np.ndarray) -> Any:
    """Draw how probably each of some experts has each view."""
    import pandas

    truth, frame = found.fit.truth, found.experts
    shown = _shown_views(truth)
    cells = pandas.DataFrame(truth.view_probability[np.ix_(order, shown)], frame["expert"].iloc[order], shown)
    return views_figures.expert_views(cells, draws=found.draws)


def _views_are_first(found: _Found) -> bool:
    """Return whether the first screen draws who has which view: of several views and not too many experts."""
    return 1 < len(_held(found.fit.truth)) and len(found.experts) <= _MOST_DRAWN


def _listed_views(views: list[int]) -> str:
    return f"view{'' if len(views) == 1 else 's'} {', '.join(str(numbered(view)) for view in views)}"


# The views ------------------------------------------------------------------------------------------------------------


def _views(found: _Found) -> list[Section]:
    fit, used = found.fit, _held(found.fit.truth)
    sections = []
    for number, view in enumerate(used[:_MOST_VIEWS]):
        words = f"{_named(fit, view)}: the experts in brackets most probably have this view."
        if number == 0 and len(used) > _MOST_VIEWS:
            words = f"The {_MOST_VIEWS} of {len(used)} views with most experts are shown. {words}"
        trust = trust_of(fit, view, measured=number == 0)
        drawn = picture(fit, view, found.draws, at_top=len(used) == 1)
        blocks = [words, *drawn, *clusters_table(fit, view), trust]
        blocks += [*together_blocks(fit, view), *feature_table(fit, view)]
        sections.append(Section(f"View {numbered(view)}", blocks, _sizes_of(fit, view)))
        sections.append(items_section(fit, view, found.draws))
    return sections


def _held(truth: Any) -> list[int]:
    """Return the views that are more probably used than not and that some expert most probably has."""
    used = truth.used_views()
    return [view for view in used.tolist() if view in truth.view_probability.argmax(axis=1)]


def _named(fit: Any, view: int) -> str:
    """Return the number of a view with the experts whose view it most probably is."""
    own = np.flatnonzero(fit.truth.view_probability.argmax(axis=1) == view)
    names = ", ".join(map(str, fit.truth.names("expert", fit.truth.num_experts)[own[:10]]))
    return f"View {numbered(view)} ({names}{f', …, {len(own)} experts' if len(own) > 10 else ''})"


def _sizes_of(fit: Any, view: int) -> str:
    """Say how large the clusters of a view are, and how many items have no sure one."""
    truth = fit.truth
    number = len(np.unique(truth.consensus(view)))
    unsure = int(not_sure(truth.cluster_probability[:, view].max(axis=1)).sum())
    are = "is" if unsure == 1 else "are"
    without = f"{counted(unsure, 'items')} {are} not clearly assigned" if unsure else "all clearly assigned"
    return (
        f"{counted(truth.num_units, 'items')} in {counted(number, 'clusters')} ({sizes_in_words(truth, view)}); "
        f"{without}"
    )


# What to look at, and what to ask -------------------------------------------------------------------------------------


def _contradictions(found: _Found) -> Section:
    table, number = found.against, found.fit.data.num_constraints
    again = found.again
    title = _WORTH_ASKING if found.worth else "Answers that contradict the clusters"
    if not len(table):
        return Section("Contradictions", ["No answer contradicts the clusters."])
    least = "At least " if len(table) == _LOOKED_AT else ""
    words = (
        f"{least}{len(table):,} of {counted(number, 'answers')} ({percent(len(table) / number)}) "
        f"{'contradicts' if len(table) == 1 else 'contradict'} what all answers together make more probable. If the "
        "clusters are right, these answers are errors. “Probability” is how probably this expert, who sometimes errs, "
        "gives this answer; “together” is how probably the two items are in one cluster of this expert's view."
    )
    listed, first = _as_written(table), list[Any]()
    if most_contrary(found.of_whom):
        first = _of_one(found, found.of_whom["expert"].iloc[0])
    else:
        which = f"{_the('least probable', listed['probability'], 'probability')}:"
        first = [which, _shown_pairs(found, listed.head(_FEW_ROWS).drop(columns="gain"), "The least probable answers.")]
    whose = table_by_expert(found.of_whom) if len(table) < _LOOKED_AT else []
    gist = f"{len(table):,} of {number:,}, " + (f"{found.worth:,} may be worth asking again" if found.worth
                                                else _NO_CHANGE)  # fmt: skip
    if not found.worth:
        return Section(title, [words, *whose, *first], gist)
    looked = "these" if len(table) < _LOOKED_AT else f"the {_LOOKED_AT:,} least probable"
    gain = (
        f"“Gain” is how much another answer is expected to tell about the pair; {gains.SCALE}. It assumes that the "
        f"best expert of the view answers again, independently. Of {looked} answers, {found.worth:,} "
        f"{'has' if found.worth == 1 else 'have'} a gain of {gains.in_per_cent(gains.WORTH)} or more; for the rest, "
        "the other answers have almost settled the question. "
        f"{_the('with the largest gain', again['gain'] / gains.EVEN, 'gain')}:"
    )
    most = _shown_pairs(found, again.head(_FEW_ROWS), "Those with the largest gain.")
    return Section(title, [words, *whose, gain, most, *first], gist)


def _of_one(found: _Found, who: Any) -> list[Any]:
    """Tabulate answers of one expert that go against the clusters: the least probable ones of either kind."""
    own = found.against[found.against["expert"] == who]
    apart = own["together"] > 0.5
    words = f"{kinds_in_words(found.fit, found.against, who)}. {spread_in_words(found.fit, who)}".strip()
    blocks: list[Any] = [words, *[f"The comparison without {who}, under Findings, {HOW}"] * bool(found.without)]
    for which, name in ((~apart, "together, in different clusters"), (apart, "apart, in one cluster")):
        if which.any():
            listed = _as_written(own[which])
            shown = listed.head(_FEW_ROWS // 2).drop(columns="gain")
            ties = _ties(listed["probability"], len(shown), "probability")
            if listed["probability"].round(3).nunique() == 1 < len(listed):
                ties = ", which all tie"
            caption = f"Least probable answers of {who} that say {name}: {len(shown)} of {len(listed)}{ties}."
            blocks.append(_shown_pairs(found, shown, caption))
    return blocks


def _as_written(table: Any) -> Any:
    """Order answers by their probability as it is written, and ties by the names of the items."""
    keys = ["probability", "item_a", "item_b"]
    return table.sort_values(
        keys, key=lambda column: column.round(3) if column.name == "probability" else column.astype(str), kind="stable"
    )


def _the(which: str, values: Any, what: str) -> str:
    """Name the rows of a sorted table that are shown, and say how many more are like the last of them."""
    if len(values) < 2:
        return f"The one {which}"
    number = min(len(values), _FEW_ROWS)
    return f"The {number} {which}{_ties(values, number, what)}"


def _ties(values: Any, number: int, what: str) -> str:
    """Say how many rows below the first of a sorted table tie with the last of these; empty of none."""
    alike = int((values.iloc[number:].round(3) == round(values.iloc[number - 1], 3)).sum())  # as it is written
    return f"; {alike:,} more {'has' if alike == 1 else 'have'} the same {what} as the last one shown" if alike else ""


def _questions(found: _Found) -> list[Section]:
    table = found.asked
    title = "Pairs to ask next"
    if not len(table) or table["gain"].max() < gains.LEAST:
        return []  # the findings say so
    shown = _without_repeats(table[table["gain"] >= gains.LEAST])
    words = (
        "The pairs for which one more answer is expected to tell most, and the expert to ask. “Together” is how "
        "probably the two items are in one cluster of this view, and “gain” is how much the answer is expected to tell "
        f"about that; {gains.SCALE}. Only random pairs were examined. Of {counted(len(table), 'pairs')} found, "
        f"{'this is the best' if len(shown) == 1 else f'these are the {len(shown)} best'} with no item twice in a "
        "view, because one answer also tells about other pairs. All: “consilience table RUN questions”, with the gain "
        f"in nats ({gains.EVEN:.2f} nats are 100 %)."
    )
    gist = f"the best answer has a gain of {gains.in_per_cent(table['gain'].max())}"
    return [Section(title, [words, _shown_pairs(found, shown, "Pairs for which an answer tells most.")], gist)]


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


def _shown_pairs(found: _Found, table: Any, caption: str) -> Table:
    names = [name for name in ("probability", "together") if name in table]
    texts = {name: [probability(one, draws=found.draws) for one in table[name]] for name in names}
    if "gain" in table:
        texts["gain"] = [percent(one / gains.EVEN) for one in table["gain"]]
    return Table(shown_codes(table).rename(columns=lambda name: name.replace("_", " ")), caption, texts=texts)


def _frame(columns: dict[str, Any]) -> Any:
    import pandas

    return pandas.DataFrame({name: list(values) for name, values in columns.items()})
