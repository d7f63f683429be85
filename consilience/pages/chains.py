"""What a report says of coreference: the text with its chains, ambiguous mentions, and systems scored by the crowd."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from consilience import figures, first_figures
from consilience.data import Chains
from consilience.data.codes import object_array
from consilience.data.conll_text import match_documents
from consilience.data.mentions import MENTION_TYPES
from consilience.data.words import read_words
from consilience.drawing import PALETTE, shown_name, styled
from consilience.errors import UnsupportedRequest
from consilience.evaluation.adjustment import evaluate
from consilience.evaluation.chains import DOCUMENT_CORRELATION, WRITTEN
from consilience.evaluation.comparison import compare
from consilience.evaluation.scores import Score
from consilience.evaluation.silver import SilverChains, silver_chains
from consilience.models.intervals import ends
from consilience.models.truth import CHAINS, truth_of
from consilience.notes import Level
from consilience.pages import SURE, Alert, Code, Section, Span, Table, Text
from consilience.pages.chains_by_gold import ChainsByGold, chains_by_gold
from consilience.pages.close_calls import called, close_calls, doubtful_labels, few_draws, half_width
from consilience.pages.gold import BesideGold
from consilience.pages.gold_chains import GoldScores, gold_entities, gold_scores, mark_gold
from consilience.pages.items import below, digits_of, effective_draws, leading_classes
from consilience.pages.systems import rounded
from consilience.pages.whole_chains import (
    Decided,
    Whole,
    best_to_decide,
    numbers_in_text,
    of_whole_chains,
    whole_chains,
)
from consilience.printing import counted, joined
from consilience.rounding import decimals

Words = Mapping[int, Sequence[str]]  # of the documents that a text has, by their codes
_METRICS = ("conll", "muc", "b3", "ceafe", "lea")
_SCORES = (
    "All scores are F, the harmonic mean of precision and recall, from 0 to 1. MUC counts the links that form "
    "chains, B³ the mentions that chains share, CEAF-e chains after the best pairing, and LEA all links in each chain. "
    "CoNLL is the mean of the first three."
)
_OF_PARTITIONS = (
    "They usually understate a system that reads the text itself. To treat such a system as another annotator:"
)
_LEVELS = {
    True: "Intervals against the crowd are nominally 95 % and often too narrow. Only 90 % intervals were checked, on "
    "40 simulated crowds of LitBank (fiction with known chains), for the scores of the most likely chains. They "
    "contained the true score for 79 to 93 % of documents.",
    False: "Intervals against the crowd are nominally 95 %. They allow for errors that documents have in common: a "
    f"correlation of {DOCUMENT_CORRELATION:g}, chosen by 20 simulated crowds of LitBank (fiction with known chains). "
    "On 20 others, 90 % intervals of the scores of the most likely chains contained the true score in 19. Scores were "
    "0.001 to 0.012 too high on average. Intervals of 95 % and of other systems were not checked.",
}
"""What was measured of intervals, by whether there is a single document."""
_WITNESS = "consilience evaluate RUN --predictions SYSTEM.conll --responses annotator"
_OF_LINKS = (
    "The draws treat links of different mentions as independent, which they are not. In simulations a perfect system "
    "scored up to 0.16 below 1, and no interval was reliable, so none is given. Compare systems with each other, not "
    "with 1."
)
_MEAN = "mean F of MUC, B³ and CEAF-e", "the mean of the scores MUC, B³ and CEAF-e, from 0 to 1"
_ONE = "One document does not show how scores would differ on other documents."

_FIRST_OF = {
    True: "They are right only for systems that know no more than the crowd.",
    False: "Links were drawn one by one, so scores have no interval and a perfect system scores up to 0.16 below 1. "
    "Compare systems with each other.",
}
"""What a reader must know of them, by whether whole chains were drawn."""

_IN_LEGEND = {
    "value, with 95 % interval": "against the crowd (nominal 95 % interval)",
    "against the point estimate": "against the most likely chains",
}

# Documents whose text is shown, and mentions or tokens of each.
_MOST_DOCUMENTS, _MOST_TOKENS = 5, 1_500

_MOST_LISTED = 2  # mentions that are named
_MOST_DRAWN = 10  # mentions


def split_systems(systems: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Chains]]:
    """Divide systems into those that predict classes of items, and those that predict chains."""
    chains = {name: system for name, system in systems.items() if system.kind == CHAINS.name}
    return {name: system for name, system in systems.items() if name not in chains}, chains


class FoundChains(NamedTuple):
    """The chains of a fit of mentions.

    Parameters
    ----------
    chains : of the most probable links.
    whole : how probable they are as a whole; None where draws of single links do not tell.
    gold : the chains beside gold chains; None where none are known.
    first : the mention to decide first; None where that would not tell, or is not known.
    few : that draws are few, in words, and what they leave open; nothing where they are enough.
    doubtful : the labels that are most likely to be wrong, or are so by gold, in words; nothing of none.
    """

    chains: SilverChains
    whole: Whole | None
    gold: ChainsByGold | None
    first: Decided | None = None
    few: Sequence[str] = ()
    doubtful: Sequence[str] = ()

    @property
    def finding(self) -> list[str]:
        """Name doubtful labels; say how many of the sure chains are gold chains, if known, and how well draws tell."""
        by_gold = [] if self.whole is None or self.gold is None else self.gold.finding(self.whole)
        return [*self.doubtful, *by_gold, *self.few]


def found_chains(fit: Any, named: Any, top: Score) -> FoundChains | None:
    """Return the chains of a fit of mentions; None of a fit of anything else.

    Parameters
    ----------
    fit : the fit.
    named : its truth, as `worded` writes it.
    top : certainty of the leading label of each mention.
    """
    try:
        chains = silver_chains(fit)
    except UnsupportedRequest:
        return None
    draws = effective_draws(fit, top)
    of_few = truth_of(fit).num_draws, draws
    close = close_calls(top.items, draws)
    doubtful = doubtful_labels(fit.data, named, top.items, draws)
    if chains.together is None or not chains.num_entities:  # Draws of single links tell nothing of whole chains.
        return FoundChains(chains, None, None, few=few_draws(*of_few, 0, int(close.sum())), doubtful=doubtful)
    whole = of_whole_chains(truth_of(fit), chains, draws)
    first = best_to_decide(truth_of(fit), chains, top.items)
    few = few_draws(*of_few, int(whole.close.sum()), int(close.sum()))
    return FoundChains(chains, whole, chains_by_gold(fit, named, chains), first, few, doubtful)


def chain_sections(
    fit: Any, named: Any, top: Score, words: Words, found: FoundChains | None, gold: BesideGold | None = None
) -> tuple[list[Section], dict[str, Any]]:  # fmt: skip
    """Return the sections on the chains of a fit of mentions, and its key figures; nothing of a fit of anything else.

    Parameters
    ----------
    fit, named, top : as of `found_chains`, which makes ``found``.
    words : those of `words_of`.
    gold : the fit beside gold labels.
    """
    if found is None:
        return [], {}
    chains, number = found.chains, below(top)
    of = counted(len(chains.entity), "mentions")
    draws, together = effective_draws(fit, top), None
    unsure = f"of {of} uncertain (best label below {SURE}{called(int(close_calls(top.items, draws).sum()))})"
    if found.whole is not None:
        told, every = ((), "") if found.gold is None else (found.gold.told, found.gold.every)
        digits, few = digits_of(top, named), any("This run is short" in one for one in found.few)
        together = whole_chains(named, chains, found.whole, digits, told, every, few=few)
    numbers: dict[str, Any] = {**_entities(fit, chains), unsure: number}
    numbers |= {} if gold is None else dict(list(gold.figures.items())[:1])
    parts = [_text(named, chains, top, words, draws), *([] if together is None else [together])]
    parts[-1] = dataclasses.replace(parts[-1], blocks=[*parts[-1].blocks, *_to_write(fit)])
    if "ambiguous" in fit.member.table_names:
        readings = fit.table("ambiguous")
        number = readings["item"].nunique()
        numbers |= {"mentions with two readings true at once": number} if number else {}
        what = "Mentions with two or more readings that are each more likely true than false, the most even first."
        table = Table(readings.rename(columns={
            "item": "mention", "label": "candidate reading", "chosen_by": "chosen by", "phi": "true by itself"
        }), "Mentions with two candidate readings.", of="ambiguous")  # fmt: skip
        gist = f"{number:,} of {counted(len(chains.entity), 'mentions')}"
        parts += [Section("Mentions with two readings", [what, table], gist)] if number else []
    return parts, numbers


def what_to_read(named: Any, top: Score, data: Any, draws: float, found: FoundChains | None = None) -> str:
    """Say what to look for in the text: mentions that are uncertain, and those whose gold label is another.

    Parameters
    ----------
    named, top : as of `found_chains`.
    data : mentions.
    draws : effective ones.
    found : has the mention to decide first, and what that may gain.
    """
    close, apart = close_calls(top.items, draws), np.fromiter(_by_gold(named, data), int)
    told = [
        f"{_listed(named.names()[own])} {words[len(own) > 1]}"
        for own, words in (
            (np.flatnonzero((top.items < SURE) & ~close), ("is uncertain (dashed)", "are uncertain (dashed)")),
            (np.flatnonzero(close), ("is a close call (dashed)", "are close calls (dashed)")),
            (apart, ("differs from its gold label (≠)", "differ from their gold labels (≠)")),
        ) if len(own)
    ]  # fmt: skip
    first = None if found is None else found.first
    gain = "" if first is None else first.words(named.names()[first.mention])
    return f"Read the text{': ' * bool(told)}{joined(told) if told else ''}{gain}"


def _listed(names: Sequence[str]) -> str:
    """Name mentions, or count them."""
    if len(names) > _MOST_LISTED:
        return counted(len(names), "mentions")
    return " and ".join(f"“{name}”" for name in names)


def _to_write(fit: Any) -> list[Any]:
    """Say how to write the chains to a file; nothing where mentions have no place in a text."""
    if fit.data.start is None:
        return []
    line = "cs.write_conll(cs.silver_chains(fit), 'chains.conll')"
    return ["To write these chains as CoNLL:", Code("consilience chains RUN --to conll" if fit.folder else line)]


def mentions_verdict(
    fit: Any, top: Score, found: FoundChains, gold: BesideGold | None, scored: ChainScores
) -> str:  # fmt: skip
    """Say how far the chains may be used, and whether they tell which system is better; empty of a poor fit.

    Parameters
    ----------
    fit, top : of mentions, and the certainty of their leading labels.
    found : its chains.
    gold : the fit beside gold labels.
    scored : the systems.
    """
    if any(note.level is Level.error for note in fit.findings()) or truth_of(fit).num_draws == 1:
        return ""
    many = f"{len(found.chains.entity) - below(top):,} of {counted(len(found.chains.entity), 'links')}"
    if found.whole is not None:
        many = f"{int(found.whole.sure.sum()):,} of {counted(found.chains.num_entities, 'chains')}"
        close = int((found.whole.sure & found.whole.close).sum())
        many += f" ({close:,} {'a close call' if close == 1 else 'close calls'})" * bool(close)
    sure = f"The model is at least {100 * SURE:.0f} % certain of {many}"
    if found.whole is not None and found.gold is not None:
        sure += found.gold.clause(found.whole)
    elif gold is None:
        sure += ", but no gold label checks that"
    elif gold.beside:
        sure += ", but gold labels contradict that"
    return f"{sure}{f'; {scored.verdict}' if scored.verdict else ''}."


def mentions_figure(named: Any, top: Score, found: FoundChains | None, scored: ChainScores) -> Any:
    """Return the figure of the first screen: chains beside gold, the scores of systems, or the least certain mentions.

    None where none of these is known.
    """
    if found is not None and found.whole is not None and found.gold is not None:
        return _chains_figure(named, found.chains, found.whole, found.gold)
    if scored.figure is not None:
        return scored.figure
    open_ = np.flatnonzero(top.items < SURE)
    if not len(open_):
        return None
    shown = open_[np.argsort(top.items[open_], kind="stable")][:_MOST_DRAWN]
    which = "" if len(shown) == len(open_) else f", the {len(shown)} least certain of {len(open_):,}"
    return first_figures.least_certain(named.names()[shown], top.items[shown], f"Uncertain mentions{which}", SURE)


def _chains_figure(named: Any, chains: SilverChains, whole: Whole, gold: ChainsByGold) -> Any:
    """Draw how probable chains are, the least probable first, in the marks of whether they are gold chains."""
    shown = np.flatnonzero(gold.known)
    shown = shown[np.argsort(whole.probability[shown], kind="stable")][:_MOST_DRAWN]
    first = np.array([int(np.argmax(chains.entity == one)) for one in shown])
    which = "" if len(shown) == gold.known.sum() else f": the {len(shown)} least probable of {gold.known.sum():,}"
    names = [f"{shown_name(name)} …" if size > 1 else name for name, size in zip(
        named.names()[first], np.bincount(chains.entity[chains.entity >= 0])[shown], strict=True
    )]  # fmt: skip
    return first_figures.chains_beside_gold(
        names, whole.probability[shown], gold.same[shown], f"Chains by first mention{which}", SURE,
        error=half_width(whole.probability[shown], whole.draws[shown]),
    )


def _entities(fit: Any, chains: SilverChains) -> dict[str, str]:
    """Return how many entities the text below has; with the interval of draws, where they are of chains."""
    name = "chains"
    if chains.together is not None:
        low, high = np.quantile(np.asarray(fit.posterior.value("num_entities"), float), ends())
        name += f" ({low:,.0f} to {high:,.0f}, 95 %)"
    if (known := gold_entities(fit)) is not None:
        name += f"; {known:,} in the gold labels"
    return {name: f"{chains.num_entities:,}"}


def words_of(data: Any, source: Any) -> Words:
    """Return the words that `read_words` finds; raises UnsupportedRequest for data that are not of mentions."""
    if source is not None and data.unit != "mention":
        raise UnsupportedRequest("text= shows mentions in their documents, and this fit has none")
    if source is None or data.start is None:
        return {}
    names = [str(one) for one in (range(data.num_documents) if data.documents is None else data.documents)]
    words = read_words(source)
    known = list(words.values())
    return {code: known[place] for code, place in enumerate(match_documents(names, words)) if place >= 0}


_WRITTEN = {"DN": "new", "DO": "→ {}", "PR": "property of {}", "NR": "refers to nothing"}


def worded(fit: Any, truth: Any, words: Words) -> Any:
    """Return a truth whose mentions and labels are written for people, in the words where there are any."""
    if fit.data.unit != "mention":
        return truth
    data, labels = fit.data, fit.truth.read_as(CHAINS.name).labels
    names = [str(name) for name in truth.names()]
    for place, code in enumerate(np.asarray(data.document).tolist()):
        if code in words and (said := words[code][data.start[place] : data.end[place] + 1]):
            names[place] = f"{shown_name(' '.join(said))} ({names[place]})"
    codes = zip(labels.type.tolist(), labels.antecedent.tolist(), strict=True)
    written = [_WRITTEN[MENTION_TYPES[kind]].format(names[aim]) for kind, aim in codes]
    named = copy.copy(truth)
    named.ids = {**truth.ids, "item": object_array(names), "class": object_array(written)}
    return named


def _text(named: Any, chains: SilverChains, top: Score, words: Words, draws: float) -> Section:
    """Show the documents with most uncertain mentions, each mention in the colour of its chain."""
    data, certainty = chains.data, top.items
    document, close = np.asarray(data.document), close_calls(certainty, draws)
    unsure = np.bincount(document[certainty < SURE], minlength=data.num_documents)
    chosen = np.argsort(-unsure, kind="stable")[: min(_MOST_DOCUMENTS, data.num_documents)]
    sure = (certainty >= SURE) & ~close
    names = [str(one) for one in (range(data.num_documents) if data.documents is None else data.documents)]
    blocks: list[Any] = [
        "Colours and numbers show chains. Point at or tap a mention to see its labels. A wrong link also moves the "
        "mentions that link to it."
    ]
    if not words:
        why = "pass them as text= of the report" if data.start is not None else "mentions have no start and end"
        blocks.append(f"The words of the documents are not known ({why}). The text shows the ids of mentions instead.")
    by_gold = _by_gold(named, data)
    number = np.append(numbers_in_text(chains), 0)[chains.entity]
    if number[np.isin(document, chosen)].max(initial=0) > len(PALETTE):
        blocks[0] += f" From chain {len(PALETTE) + 1} on, colours repeat with thicker lines."
    blocks[0] += _BRACKETS * _end_together(data, words, chosen)
    blocks.append(_key(number, sure, close, by_gold))
    for code in chosen.tolist():
        own = np.flatnonzero(document == code)[:_MOST_TOKENS]
        tokens = words[code][:_MOST_TOKENS] if code in words else [str(one) for one in named.names()[own]]
        ends = (data.start, data.end) if code in words else (_places(len(certainty), own),) * 2
        title = f"Document “{names[code]}”: {unsure[code]:,} of {counted(len(own), 'mentions')} uncertain"
        title += called(int(close[own].sum()))
        said = leading_classes(named, own, draws=draws, digits=digits_of(top, named))
        readings = zip(named.names()[own], said, own.tolist(), strict=True)
        told = object_array([f"{name}: {one}{by_gold.get(item, '')}" for name, one, item in readings])
        ids = _ids(data) if code in words else None
        blocks.append(Text(title, tokens, _spans(number, sure, own, told, ends, len(tokens), by_gold, ids)))
    gist = f"{int(unsure.sum()):,} of {counted(len(document), 'mentions')} uncertain"
    gist += f"{called(int(close.sum()))}; {counted(chains.num_entities, 'chains')}"
    return Section("Text", blocks, gist)


_BRACKETS = " If two mentions end at the same word, brackets enclose the longer one, whose line is the lower one."


def _key(number: np.ndarray, sure: np.ndarray, close: np.ndarray, by_gold: Container[int]) -> Text:
    """Return what lines under mentions mean, by examples of those there are."""
    known = by_gold if isinstance(by_gold, dict) else {}
    first = int(number.max(initial=0) > 0)
    shown = [("chain", 1, True, False)] * bool((number > 0).any())
    shown += [("single mention", 0, True, False)] * bool((number == 0).any())
    doubt = f"best label below {SURE}{' or a close call' * bool(close.any())}"
    shown += [(doubt, first, False, False)] * bool((~sure).any())
    shown += [("gold label differs", first, True, True)] * bool(known)
    tokens = [one for text, *_ in shown for one in (text, "·")][:-1]
    spans = [
        Span(2 * at, 2 * at, chain, is_sure, text, wrong) for at, (text, chain, is_sure, wrong) in enumerate(shown)
    ]
    return Text("Key", tokens, spans)


def _ids(data: Any) -> list[str]:
    """Return the names of mentions, as the data have them."""
    names = range(data.num_mentions) if data.mentions is None else data.mentions
    return [str(one).rpartition("/")[2] for one in names]


def _end_together(data: Any, words: Words, documents: np.ndarray) -> bool:
    """Return whether two mentions of some documents whose words are known end at one word."""
    known = np.isin(np.asarray(data.document), [code for code in documents.tolist() if code in words])
    if data.end is None or not known.any():
        return False
    ends = np.stack([np.asarray(one)[known] for one in (data.document, data.end)])
    return bool(len(np.unique(ends, axis=1).T) < known.sum())


def _by_gold(named: Any, data: Any) -> dict[int, str]:
    """Return what to say of mentions of which another label is gold."""
    gold = data.gold_codes
    if gold is None:
        return {}
    labels = named.ids["class"]
    apart = np.flatnonzero((np.asarray(gold) >= 0) & (np.asarray(gold) != named.lead.label))
    return {item: f"; gold: {labels[gold[item]]}" for item in apart.tolist()}


def _places(number: int, own: np.ndarray) -> np.ndarray:
    place = np.zeros(number, int)
    place[own] = np.arange(len(own))
    return place


def _spans(
    number: np.ndarray, sure: np.ndarray, own: np.ndarray, told: np.ndarray, ends: Sequence[Any], length: int,
    wrong: Container[int], ids: Sequence[str] | None = None,
) -> list[Span]:  # fmt: skip
    """Underline the mentions of a document; those that are not sure, or wrong, with their names, where words stand."""
    start, end = (np.asarray(one)[own] for one in ends)
    own, told, start, end = (values[end < length] for values in (own, told, start, end))
    rows = zip(start.tolist(), end.tolist(), number[own].tolist(), own.tolist(), told, strict=True)
    return [
        Span(first, last, chain, bool(sure[item]), said, item in wrong,
             ids[item] if ids is not None and (item in wrong or not sure[item]) else "")
        for first, last, chain, item, said in rows
    ]  # fmt: skip


class ChainScores(NamedTuple):
    """What a page says of systems that predict chains: a section, a key figure, what was found, and what to know first.

    Parameters
    ----------
    sections, numbers, findings, alerts, figure : parts of a `Page`; none where there is no system.
    verdict : whether one of several systems is better, as the end of a sentence.
    """

    sections: list[Section]
    numbers: dict[str, str]
    findings: list[str]
    alerts: list[Alert]
    verdict: str = ""
    figure: Any = None


def chain_scores(fit: Any, systems: Mapping[str, Chains], metrics: Sequence[str], *, singletons: bool) -> ChainScores:
    """Score systems that predict chains against draws of the chains of a fit.

    Parameters
    ----------
    fit : of mentions.
    systems : by name.
    metrics : that are asked for, the first for the key figure; CoNLL and what it is made of by default.
    singletons : whether entities of one mention count.
    """
    if not systems:
        return ChainScores([], {}, [], [])
    of_chains, metrics = hasattr(truth_of(fit), "witnessed"), list(metrics or _METRICS)
    board = compare(fit, systems, metric=metrics[0], singletons=singletons)
    alone = board.num_items == 1  # a single document tells nothing of others: what is uncertain is its truth
    board = board.of_these() if alone else board
    gold = gold_scores(fit, systems, metrics, singletons)
    table = board.table
    # Of few draws, whose intervals are wide, no score against the crowd has a third digit.
    digits = min(map(decimals, table["lower"], table["upper"])) if of_chains else 3
    scores = {name: evaluate(fit, systems[name], metrics, singletons=singletons) for name in table["system"]}
    if gold is not None:
        scores = {name: scores[name] for name in gold.order(metrics[0], scores)}
    every = _all_scores(scores, gold, of_chains=of_chains)
    first, (named, _, meaning) = table.iloc[0], board.title.partition(", ")
    meaning = f" ({meaning.replace(*_MEAN)})" if meaning else ""
    value, low, high = (f"{first[one]:.{digits}f}" for one in ("value", "lower", "upper"))
    between = f" ({low} to {high}, nominal 95 %{', often too narrow' * alone})" if of_chains else ""
    number, said, blocks = {f"{named} of “{first['system']}”{between}": value}, [], []
    if of_chains:
        point = f"{every['against the most likely chains'].iloc[0]:.{digits}f}"
        leads = ""
        if len(table) > 1:
            gap, other = f"{first['value'] - table['value'].iloc[1]:.{digits}f}", table["system"].iloc[1]
            leads = f" It leads “{other}” by {gap}; no reliable interval of this lead is known."
        said = [
            f"Against the crowd's chains{' of this document' if alone else ''}, “{first['system']}” scores {value} in "
            f"{named}{meaning if gold is None else ''}{between}, and {point} against the most likely chains.{leads}"
        ]
        blocks = [_LEVELS[alone], _by_crowd(board, named, digits, metrics[0], gold)]
    told: list[Any] = [
        f"{_SCORES} Entities of one mention are {'included' if singletons else 'excluded'}.",
        f"Scores against the crowd are means over draws of its chains. {_OF_PARTITIONS if of_chains else _OF_LINKS}",
        *[Code(_WITNESS, "To count a system as a witness")] * of_chains,
    ]
    caption = f"Systems against the crowd's chains{'' if gold is None else ' and gold'}, by all scores"
    of_crowd = [str(one) for one in every if one not in ("system", "metric", "against gold")]
    by_gold = _gold_texts(scores, metrics, gold)
    by_all = Table(every, f"{caption}.", texts=rounded(every, digits, *of_crowd) | by_gold)
    limits = "Scores against the crowd's chains have limits.", _FIRST_OF[of_chains]
    alerts = [Alert(limits[0], [f"{limits[1]} See Systems."], Level.warning)]
    before: list[Any] = [_ONE] if alone and gold is None else []
    verdict = "the crowd alone does not tell which system is better" if len(table) > 1 else ""
    if gold is not None:
        ahead, verdict = gold.best(metrics[0]), gold.verdict(metrics[0])
        value, _, spread = gold.text(ahead, metrics[0]).partition(" ")
        known = f" ({spread.strip('[]').replace(', ', ' to ')}, 95 %)" if spread else ""
        number = {f"{named} of “{ahead}” against gold{known}{gold.ahead(metrics[0])}": value}
        said = [gold.words(metrics[0], named, meaning)]
        other = gold.otherwise(metrics[0], f"{named}{meaning}", table, digits) if of_chains else []
        # Of no haste, as the first screen is by gold; of whole chains the words below the table have what limits them.
        limited = " ".join([*other, *([] if of_chains else limits)])
        before, alerts = [gold.how, *[limited] * bool(limited)], []
    drawn = _leaderboard(board, metrics[0], gold) if of_chains else None
    before += [drawn] * (of_chains and gold is not None)  # else on the first screen
    section = Section("Systems", [*before, *blocks, *told, by_all], " ".join(reversed(*number.items())))
    return ChainScores([section], number, said, alerts, verdict, drawn)


@styled
def _leaderboard(board: Any, metric: str, gold: GoldScores | None) -> Any:
    """Draw the leaderboard by the crowd's chains, for the first screen; the parameters are those of `_by_crowd`."""
    drawn = figures.leaderboard(board)
    for text in drawn.get_legend().get_texts():
        text.set_text(_IN_LEGEND.get(text.get_text(), text.get_text()))
    if gold is not None:
        mark_gold(drawn, [gold.scores[name][metric] for name in board.table["system"]])
    drawn.set_title(f"Scores of {counted(len(board.table), 'systems')}", loc="left")
    return drawn


def _by_crowd(board: Any, named: str, digits: int, metric: str, gold: GoldScores | None) -> Table:
    """Return the table of the leaderboard by the crowd's chains.

    Parameters
    ----------
    board : the leaderboard.
    named, metric : of its scores, in words and by name in code.
    digits : after the point.
    gold : scores against gold chains, where these are known.
    """
    table, begins = board.table, "nominal 95 % from"
    if gold is not None:
        table = table.set_index("system", drop=False).loc[gold.order(metric, table["system"])]
    value = named if gold is None else "against the crowd"
    names = {"system": "system", "value": value, "lower": begins, "upper": "to"}
    shown = table[list(names)].rename(columns=names)
    if gold is not None:
        shown.insert(1, "against gold", [gold.scores[name][metric] for name in table["system"]])
    by = "the crowd's" if gold is None else "the gold"
    caption = f"{named} of systems, the best by {by} chains first."
    texts = rounded(shown, digits, value, begins, "to") | _gold_texts(shown["system"], [metric], gold)
    return Table(shown, caption, texts=texts)


def _gold_texts(names: Iterable[str], metrics: Sequence[str], gold: GoldScores | None) -> dict[str, list[str]]:
    """Write the column of scores against gold, with their intervals; nothing where no gold chains are known."""
    return {} if gold is None else {"against gold": [gold.text(name, one) for name in names for one in metrics]}


def _all_scores(scores: Mapping[str, Mapping[str, Score]], gold: GoldScores | None, *, of_chains: bool) -> Any:
    """Tabulate all scores of systems: against gold chains where these are known, and against those of the crowd.

    Parameters
    ----------
    scores : against the crowd's chains, by system and by metric.
    gold : against gold chains.
    of_chains : whether whole chains were drawn.
    """
    import pandas

    rows = []
    for name, of_system in scores.items():
        for metric, score in of_system.items():
            row: dict[str, Any] = {"system": name, "metric": WRITTEN.get(metric, metric)}
            row |= {} if gold is None else {"against gold": gold.scores[name][metric]}
            row["against the crowd"] = score.value
            row |= dict(zip(("nominal 95 % from", "to"), score.interval, strict=True)) if of_chains else {}
            rows.append(row | {"against the most likely chains": score.point})
    return pandas.DataFrame(rows)
