"""What a report says of the agreement of annotators: sections for a page of its own, or for that of a fit."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import numpy as np

from consilience import agreement_figures
from consilience._version import __version__
from consilience.errors import UnsupportedRequest
from consilience.evaluation.agreement import Agreement, PosteriorAgreement
from consilience.evaluation.agreement.differences import Lowest, lowest_annotator, lowest_label
from consilience.evaluation.agreement.weighting import SCHEME_WORDS
from consilience.pages import Code, More, Page, Section, Table
from consilience.pages.agreement_by_gold import BY_GOLD, beside_gold, known_gold, right_by_annotator
from consilience.pages.agreement_first import by_convention, how_items_split, verdict
from consilience.pages.agreement_meeting import meeting_blocks
from consilience.pages.agreement_next import LABELS, LEAST, MOST_ITEMS, lowest_items, next_steps
from consilience.pages.agreement_of_numbers import page_of_numbers
from consilience.pages.agreement_planned import planning
from consilience.pages.agreement_vote import first_figure, of_a_vote, tile_of_a_vote, vote_section, votes_by_split
from consilience.pages.annotators_alike import apart_in_agreement, how_alike
from consilience.pages.run import IN_CODE, today
from consilience.printing import counted, joined
from consilience.rounding import decimals, within, written

_PAPER = """@article{norregaard2022sparse,
  title   = {Sparse Probability of Agreement},
  author  = {N{\\o}rregaard, Jeppe and Derczynski, Leon},
  journal = {arXiv preprint arXiv:2208.06161},
  year    = {2022}
}"""

_MOST_ROWS = 30  # of a table that a page shows; the library and the command have them all

_MOST_FINDINGS = 4  # of a first screen
_MOST_NAMED = 3  # of those than whom the lowest is lower

_THESE, _LIKE_THESE = "these annotators", "annotators like these"  # for whom intervals are

_CONVENTIONS = {
    "bias-reduced": "corrected for the bias of a ratio",
    "pooled": "shares among all labels", "item-mean": "shares in an item, averaged over items",
    "pairable": "shares among labels of items with two or more", "nominal": "labels are the same or not",
    "ordinal": "labels disagree the more the further apart they are in their order",
    "interval": "labels disagree by the square of the difference of their values",
    "ratio": "labels disagree by the square of that difference over the sum of the values",
}  # fmt: skip
"""What conventions of coefficients mean."""

_COEFFICIENTS = {
    "percent agreement": "The probability that two annotations of an item are the same label. This is SPA without "
    "weights, and nothing is subtracted for chance.",
    "kappa": "Chance agreement is the probability that two labels of different items are the same.",
    "Fleiss' kappa": "Chance agreement is the probability that two labels are the same if each is drawn at random with "
    "the frequencies of all labels.",
    "Conger's kappa": "Chance agreement is the probability that two annotators agree if each draws labels at random "
    "with the frequencies of that annotator.",
    "Cohen's kappa": "For two annotators: chance agreement is the probability that they agree if each draws labels at "
    "random with the frequencies of that annotator.",
    "Scott's pi": "For two annotators: chance agreement is the probability that they agree if both draw labels at "
    "random with the frequencies of the two together.",
    "Gwet's AC1": "Chance agreement is estimated to be small if one label is much more frequent than the others.",
    "Krippendorff's alpha": "Chance agreement is the probability that two labels are the same if both are drawn at "
    "random from all annotations, without putting the first back.",
}
"""What coefficients call chance agreement."""

_SAME = 1e-12  # values of schemes that differ by less are one
_DIGITS = 3  # of coefficients


def agreement_page(found: Agreement) -> Page:
    """Return the page on the agreement of annotators alone."""
    counts, (low, high) = found.counts, found.interval
    known = {"items": counts.num_items, "annotations": counts.num_annotations, "labels": counts.num_labels}
    if found.annotations is not None and found.annotations.num_annotators:
        known["annotators"] = found.annotations.num_annotators
    sizes = ", ".join(counted(size, name) for name, size in known.items())
    line = f"{sizes} · sparse probability of agreement · {today()}"
    file = found.told.get("file", "")
    title = f"Agreement of annotators on {counted(counts.num_items, 'items')}{f', from {file}' if file else ''}"
    if not found.num_usable:
        said = "No item has two annotations, so that nothing is known of the agreement."
        return Page(title, line, findings=[said])
    if found.hardly_equal:
        return page_of_numbers(found, title, f"{sizes} · {today()}", [_run(found)])
    alike = _alike(found.schemes())
    name = "agreement (SPA)" if alike else f"agreement (SPA, {SCHEME_WORDS[found.weights]})"
    numbers: dict[str, Any] = {}
    # The wider interval: most readers want to know of other annotators.
    others = found.interval_of_others
    (low, high), hold = others or found.interval, f"{100 * found.level:g} %"
    value, *ends = within(found.value, low, high)
    numbers[f"{name}{_for_whom(found)}"] = value
    first, judged = f"Two annotators give an item the same label with a probability of {value}", ""
    chance = found.coefficients()
    alpha = chance[chance["coefficient"].str.contains("alpha")]
    if len(alpha):
        expected = f"{alpha['expected'].iloc[0]:.2f}"
        own = alpha[["value", "lower", "upper"]].iloc[0].tolist()
        numbers["agreement of random labels with these frequencies"] = expected
        first += f" ({expected} for random labels)"
        of_alpha = (own[0], *(found.alpha_interval_of_others or own[1:]))
        whose = "with similar annotators" if found.alpha_interval_of_others else f"for {_THESE}"
        numbers |= _of_alpha(of_alpha, whose, hold)
        judged = verdict(*of_alpha)
    votes = votes_by_split(found)
    numbers |= tile_of_a_vote(votes)
    if found.num_usable < counts.num_items:
        numbers["items with two annotations or more"] = found.num_usable
    findings = [
        f"{first}. {_to_quote_of_both(found)}", *([_by_weights(found)] * found.dependence.found), *of_a_vote(votes),
        *beside_gold(found), *_who_agrees_least(found), how_items_split(found),
    ]  # fmt: skip
    sections = [*agreement_sections(found, items=True), _run(found)]
    actions = next_steps(found, sections)
    return Page(
        title, line, sections, verdict=judged, numbers=numbers, findings=findings[:_MOST_FINDINGS],
        figure=first_figure(votes), actions=actions,
    )  # fmt: skip


def _of_alpha(value: tuple[float, float, float], whose: str, hold: str) -> dict[str, str]:
    """Return the key figure of alpha.

    Parameters
    ----------
    value : alpha and the ends of its interval.
    whose, hold : for whom that is, and its level, in words.
    """
    alpha, low, high = within(*value)
    return {f"Krippendorff's alpha ({low} to {high}, {hold} {whose}); 0 is chance, 1 is full agreement": alpha}


def _to_quote_of_both(found: Agreement) -> str:
    """Say which interval to quote."""
    hold = f"{100 * found.level:g} %"
    if not found.interval_of_others:
        _, *ends = within(found.value, *found.interval)
        return f"The interval is {ends[0]} to {ends[1]} ({hold} for {_whose(found)})."
    value, *ends = within(found.value, *found.interval_of_others)
    return f"To say how often two annotators agree, quote {value} ({ends[0]} to {ends[1]}, {hold})."


def _for_whom(found: Agreement) -> str:
    """Write the interval for similar annotators and that for these; the one there is where the other is not known."""
    hold = f"{100 * found.level:g} %"
    if not found.interval_of_others:
        _, *ends = within(found.value, *found.interval)
        return f", for {_whose(found)} ({ends[0]} to {ends[1]}, {hold})"
    every = (*found.interval_of_others, *found.interval)
    *ends, low, high = (written(one, f"z.{decimals(*found.interval_of_others)}f") for one in every)
    keep = f"{low} to {high} if you keep these {found.two_way.num_annotators:,}"
    return f": {ends[0]} to {ends[1]} ({hold}) if you hired similar annotators; {keep}"


def _by_weights(found: Agreement) -> str:
    """Say whether the agreement hangs on how many annotations items have, and which value to use then."""
    if not found.dependence.of_agreement:
        return str(found.dependence)
    way = "more" if found.dependence.z > 0 else "less"
    if found.weights == "flat":
        return f"Items with more annotations agree {way}: weights of items would change what is estimated."
    value, *ends = within(found.flat.value, found.flat.lower, found.flat.upper)
    return (
        f"Items with more annotations agree {way}, so that the numbers above hang on the weights of items. The one to "
        f"use is SPA with all items alike: {value} ({ends[0]} to {ends[1]}, {100 * found.level:g} % for "
        f"{_whose(found)})."
    )


def _who_agrees_least(found: Agreement) -> list[str]:
    """Say whether annotators differ in how often they agree, and who agrees least; nothing of one, or where unknown."""
    with contextlib.suppress(UnsupportedRequest):
        each = found.annotators()
        if len(each := each[each["pairs"] > 0]) > 1:
            first, told = _lowest_row(each, "annotator", _lowest_annotator(found))
            value, *ends = within(first["agreement"], first["lower"], first["upper"])
            said = f"{value} ({ends[0]} to {ends[1]}, {100 * found.level:g} %)"
            told = told.partition(", but not")[0]  # the section on annotators says it
            return [f"{apart_in_agreement(found)}“{first['annotator']}” agrees least with the others, {said}{told}."]
    return []


def agreement_sections(found: Agreement, *, items: bool = False) -> list[Section]:
    """Return the sections on agreement: by scheme, label, annotator and time, corrected for chance, and planned.

    Parts that the data cannot give, such as those on annotators where only counts are known, are left out.

    Parameters
    ----------
    found : the agreement.
    items : whether to show those that agree least, which labels meet, and gold labels by annotator; a page on a fit has
        tables of its own.
    """
    if not found.num_usable:
        return []
    parts = [
        _schemes(found), vote_section(found) if items else None, _labels(found, meeting=items),
        _items(found) if items else None,
        _annotators(found, by_gold=items), _arrival(found),
        _chance(found), planning(found),
    ]  # fmt: skip
    return [part for part in parts if part is not None]


def _schemes(found: Agreement) -> Section:
    schemes = found.schemes()
    gist = _for_both(found.value, found.interval, None if found.annotators_random else found.interval_of_others)
    both = found.interval_of_others and not found.annotators_random
    whose = "Both {:g} % intervals are for" if both else "The {:g} % interval is for"
    intervals = f"{whose.format(100 * found.level)} items like these{f' and {_whose(found)}' * (not both)}."
    words = (
        f"The sparse probability of agreement (SPA) averages the agreement of {_usable(found)}. “Sparse” "
        f"means that not every annotator has to label every item.{_without_weights(found)} {intervals}"
    )
    said, shown = [words], list[Any]()
    if not _alike(schemes):
        how = "Schemes differ in how much an item counts by its number of annotations; flat counts all items alike."
        said += [how, str(found.dependence)]
        schemes = schemes.assign(weights=schemes["scheme"].map(SCHEME_WORDS))
        whose = _whose(found)
        shown = [Table(_words(schemes, found), f"Agreement by weighting scheme, with intervals for {whose}.")]
        title = "Agreement by weighting scheme"
        shown.append(agreement_figures.agreement_by_name(schemes, "scheme", "value", title, whose=whose))
    return Section("Agreement", [*said, *shown], f"SPA {gist}")


def _usable(found: Agreement) -> str:
    """Say of which items agreement is known."""
    if found.num_usable == found.counts.num_items:
        return f"all {found.num_usable:,} items"
    return f"the {found.num_usable:,} items with two annotations or more, of {found.counts.num_items:,}"


def _without_weights(found: Agreement) -> str:
    """Say what SPA is without weights, and whether weights make a difference here."""
    flat = within(found.flat.value, *(found.interval_of_others or found.interval))[0]
    said = f" Without weights of items it is the percent agreement, {flat}"
    alike = abs(found.flat.value - found.value) < _SAME
    return f"{said}; weights make no difference here." if alike else f"{said} here."


def _alike(schemes: Any) -> bool:
    """Return whether weights change nothing, as where all items have as many annotations."""
    return float(np.ptp(schemes[["value", "lower", "upper"]], axis=0).max()) < _SAME


def _labels(found: Agreement, *, meeting: bool) -> Section:
    labels = found.labels()
    ordered = labels.sort_values("annotations", ascending=False, kind="stable")
    words = (
        "How often a second annotator gives a label when a first one did. Rare labels agree less by chance alone: "
        "what two annotators who label at random would reach is the share of the label."
    )
    drawn = agreement_figures.agreement_by_name(
        ordered.head(_MOST_ROWS), "label", "agreement", "Agreement on each label, most frequent first", chance="share",
        whose=_THESE,
    )  # fmt: skip
    table = Table(_words(ordered, found), f"Labels, the most frequent first, with intervals for {_THESE}.")
    lowest = lowest_label(found.counts, found._weight(found.weights), found.level)
    gist = _least(labels, "label", "least on", lowest)
    words += _how_told(found, "labels") * (lowest is not None)
    met = meeting_blocks(found) if meeting else []
    return Section(LABELS, [words, table, drawn, *_left_out(ordered, "labels"), *met], gist)


def _items(found: Agreement) -> Section | None:
    """Show the items on which annotators agree least, with their labels; all that tie, as far as these are few."""
    table, (least, tied) = found.items(), lowest_items(found)
    usable = table[found.counts.size >= 2]
    if len(usable) < 2:
        return None
    shown = table.iloc[least]
    alike = int(np.isclose(usable["agreement"], shown["agreement"].iloc[-1]).sum())
    beyond = alike - int(np.isclose(shown["agreement"], shown["agreement"].iloc[-1]).sum())
    words = (
        "The share of the pairs of annotations of an item that are the same label, lowest first; ties: more "
        "annotations first. Such items may be hard or unclear, or annotators erred: agreement does not tell which."
    )
    if beyond:
        agree = "agrees" if beyond == 1 else "agree"
        words += f" {counted(beyond, 'more items')} {agree} as little as the last of these."
    frame = shown.assign(labels=_tallies(found, least))[["item", "labels", "annotations", "agreement"]]
    if (known := known_gold(found)).any():
        data: Any = found.annotations
        names = np.arange(data.num_labels) if data.labels is None else data.labels
        gold = [str(names[data.gold[one]]) if known[one] else "–" for one in least.tolist()]
        frame.insert(2, "gold label", gold)
    tables: list[Any] = [Table(frame.head(MOST_ITEMS), "Items, the lowest agreement first.", of="")]
    if len(frame) > MOST_ITEMS:
        rest = frame.iloc[MOST_ITEMS:]
        title = f"{counted(len(rest), 'more items')} with the same agreement"
        tables.append(More(title, [Table(rest, "The others that tie.", of="")]))
    value = written(float(shown["agreement"].iloc[0]), ".3f")
    gist = f"of {counted(len(usable), 'items')} {tied:,} {'has' if tied == 1 else 'have'} the least, {value}"
    return Section(LEAST, [words, *tables], gist)


def _tallies(found: Agreement, items: np.ndarray) -> list[str]:
    """Write how often each of some items got each label, the most frequent first."""
    item, label, count = found.counts.entries
    names = np.arange(found.counts.num_labels) if found.counts.labels is None else found.counts.labels
    texts = []
    for one in items:
        own = np.flatnonzero(item == one)
        own = own[np.argsort(-count[own], kind="stable")]
        texts.append(", ".join(f"{count[cell]:g}× {names[label[cell]]}" for cell in own))
    return texts


def _annotators(found: Agreement, *, by_gold: bool) -> Section | None:
    try:
        annotators, pairs = found.annotators(), found.pairs(most=agreement_figures.MOST_ANNOTATORS)
    except UnsupportedRequest:
        return None
    if not (annotators["pairs"] > 0).any():
        return None
    busiest = annotators[annotators["pairs"] > 0].sort_values("pairs", ascending=False, kind="stable")
    ordered = _first(busiest).sort_values("agreement", kind="stable")
    words = (
        "How often each annotator agrees with the other annotators of the same items, lowest first. An annotator who "
        "agrees with few need not be wrong."
    )
    title, few = "Agreement of annotators, lowest first", agreement_figures.FEW_ITEMS
    drawn = [agreement_figures.agreement_by_name(ordered, "annotator", "agreement", title, whose=_THESE)]
    if len(pairs) and (median := pairs["items"].median()) >= few:
        drawn.append(agreement_figures.annotator_matrix(pairs))
        matrix = f"In the matrix, colour is agreement; grey numbers without it are of fewer than {few} common items."
        if (number := int((annotators["pairs"] > 0).sum())) > (most := agreement_figures.MOST_ANNOTATORS):
            matrix += f" It has the {most} who share most items with others, of {number:,}: more could not be read."
    else:
        shared = f"{median:g} items in common, in the median" if len(pairs) else "no items in common"
        matrix = f"Two of those who share most items have {shared}: too few for a matrix of pairs."
    rest = _left_out(busiest, "annotators, with fewer annotations,")
    every, lowest = busiest.sort_values("agreement", kind="stable"), _lowest_annotator(found)
    gist = _least(every, "annotator", "lowest", lowest)
    words += _how_told(found, "annotators") * (lowest is not None)
    right, texts = right_by_annotator(found) if by_gold else (np.zeros(0), {})
    columns = ["annotator", *texts, "agreement", "lower", "upper", "sd", "annotations", "pairs"]
    every = every.assign(**{name: right[every.index] for name in texts})[columns]
    words += BY_GOLD * bool(texts)
    texts = {name: [of_all[code] for code in every.index] for name, of_all in texts.items()}
    caption = f"Annotators, the lowest agreement first, with intervals of agreement for {_THESE}."
    table = Table(_words(every, found), caption, texts=texts)
    return Section("Annotators", [words, *how_alike(found, by_gold=by_gold), matrix, table, *rest, drawn], gist)


def _least(frame: Any, name: str, what: str, lowest: Lowest | None) -> str:
    """Say which row agrees least, and than which others it does so beyond chance, where that was tested.

    Parameters
    ----------
    frame : the table, by the codes of its rows.
    name : the column of their names.
    what : before the name of the row.
    lowest : how it was tested.
    """
    first, told = _lowest_row(frame, name, lowest)
    return f"{what} “{first[name]}”, {_with_ends(first['agreement'], first['lower'], first['upper'])}{told}"


def _lowest_row(frame: Any, name: str, lowest: Lowest | None) -> tuple[Any, str]:
    """Return the row that agrees least, and than which others it does so; see `_least`."""
    first = frame.loc[frame["agreement"].idxmin()]
    tested = lowest is not None and lowest.group == first.name
    return first, _than(lowest, frame[name]) if tested and lowest is not None else ""


def _than(lowest: Lowest, names: Any) -> str:
    """Say than which others the lowest is lower beyond chance; a few are named, by the names of all."""
    one, number = lowest.others == 1, len(lowest.below)
    if not number:
        return f"; that {'the other is' if one else f'the {lowest.others} others are'} higher may be chance"
    if number == lowest.others:
        return f", clearly lower than {'the other' if one else f'all {number} others'}"
    rest = lowest.others - number
    if number <= _MOST_NAMED:
        named = joined([f"“{names[code]}”" for code in lowest.below])
        return f", clearly lower than {named}, but not than {f'the {rest} others' if rest > 1 else 'the other'}"
    return f", clearly lower than {number} of {lowest.others} others"


def _lowest_annotator(found: Agreement) -> Lowest | None:
    data: Any = found.annotations
    return lowest_annotator(found.counts, data, found.level)


def _how_told(found: Agreement, what: str) -> str:
    """Say how one is told to be lower than others."""
    return (
        f" Differences between {what} are tested item by item. If all {what} were alike, any two would be told apart "
        f"in about {100 * (1 - found.level):.3g} % of such data at most (Bonferroni, approximate)."
    )


def _whose(found: Agreement, others: tuple[float, float] | None = None) -> str:
    """Say for whom an interval is: that of the headline, or ``others`` for annotators like these."""
    return _LIKE_THESE if others or found.annotators_random else _THESE


def _for_both(value: float, own: tuple[float, float], others: tuple[float, float] | None) -> str:
    """Write a value with its interval for these annotators and, where it is known, that for others, in like digits."""
    if not others:
        return _with_ends(value, *own)
    text, *ends = (written(one, f"z.{decimals(*others)}f") for one in (value, *own, *others))
    return f"{text} [{ends[0]}, {ends[1]}] for {_THESE}, [{ends[2]}, {ends[3]}] for others like them"


def _with_ends(value: float, low: float, high: float) -> str:
    value_text, *ends = within(value, low, high)
    return f"{value_text} [{ends[0]}, {ends[1]}]"


def _arrival(found: Agreement) -> Section | None:
    try:
        curve, monitor = found.curve(), found.monitor()
    except UnsupportedRequest:
        return None
    if _sorted_by_item(found.annotations):
        return None
    words = "The rows of the data, taken as the order of arrival."
    if _alike(found.schemes()):
        curve = curve[["num_annotations", "num_items", "flat"]]
    drawn = [agreement_figures.learning_curve(curve)]
    if (given := np.isfinite(monitor["lower"])).any():
        drawn.append(agreement_figures.monitoring(monitor, level=found.level))
        words += (
            f" The confidence sequence, in the second figure and for {_THESE}, begins at item "
            f"{monitor['items'][given].iloc[0]:,}. From there on it holds at all times at once, approximately and "
            "if items come in random order: one may look as often as one likes, and stop when it is narrow enough."
        )
    last, gist = monitor[["agreement", "lower", "upper"]].iloc[-1], ""
    if len(drawn) > 1:
        digits = decimals(*(found.interval_of_others or found.interval))  # as many as the first screen has
        value, *ends = (written(one, f"z.{digits}f") for one in last)
        gist = f"at the end of the confidence sequence {value} [{ends[0]}, {ends[1]}], for {_THESE}"
    return Section("As annotations arrived", [words, drawn], gist)


def _sorted_by_item(data: Any) -> bool:
    """Return whether rows are sorted by the names of items, as texts or by the numbers in them."""
    code = np.asarray(data.item)
    begins = np.flatnonzero(np.diff(code, prepend=-1))
    if len(begins) != len(np.unique(code)):
        return False
    names = begins.tolist() if data.items is None else [str(data.items[one]) for one in code[begins]]
    return names in (sorted(names), sorted(names, key=_with_numbers))


def _with_numbers(name: Any) -> list[tuple[bool, Any]]:
    """Return a key by which texts are sorted with the numbers in them as numbers."""
    parts = re.split(r"(\d+)", str(name))
    return [(place % 2 == 1, int(part) if place % 2 else part) for place, part in enumerate(parts)]


def _chance(found: Agreement) -> Section:
    frame = found.coefficients()
    import pandas

    # Conventions whose numbers are written alike are one row.
    numbers = frame[["coefficient", "value", "sd", "lower", "upper", "observed", "expected"]]
    rows = [(row[0], *np.round(row[1:], _DIGITS)) for row in numbers.fillna(-9.0).to_numpy().tolist()]
    alike = frame.groupby(pandas.Series(rows, frame.index), sort=False)["convention"].transform(_each_once)
    frame = frame.assign(convention=alike)[~pandas.Series(rows, frame.index).duplicated()]
    is_alpha = frame["coefficient"].str.contains("alpha")
    words = "These coefficients are 1 if annotators always agree, and 0 if they agree as often as by chance."
    alpha = frame.loc[is_alpha, ["value", "lower", "upper"]]
    value, *ends = alpha.iloc[0] if len(alpha) else (np.nan,) * 3
    told = _for_both(value, (ends[0], ends[1]), found.alpha_interval_of_others)
    gist = f"Krippendorff's alpha {told}" if len(alpha) else ""
    others = (
        "Coefficients differ in what they call agreement by chance, as the last table says, and in how they treat "
        "items with few annotations. Compare values of the same coefficient only."
    )
    meant = Table(_meaning(frame), "What the coefficients are.", of="")
    if not len(alpha):
        table = Table(_words(frame, found), f"Coefficients, with intervals for {_THESE}.")
        return Section("Corrected for chance", [f"{words} {others}", *map(str, found.notes), table, meant], gist)
    words += f" {_to_quote(frame, is_alpha)} {by_convention(told.partition(' ')[0])}"
    quoted = _quoted(frame[is_alpha], found)
    rest = Table(_words(frame[~is_alpha], found), f"Other coefficients, with intervals for {_THESE}.")
    return Section(
        "Corrected for chance",
        [words, quoted, *map(str, found.notes), others, rest, meant], gist,
    )


def _quoted(alpha: Any, found: Agreement) -> Table:
    """Tabulate alpha as it is to be quoted: with the wider interval first where it is known, as on the first screen."""
    import pandas

    first, others = alpha.iloc[0], found.alpha_interval_of_others
    ends = {_THESE if not found.annotators_random else _LIKE_THESE: (first["lower"], first["upper"])}
    if others:
        ends = {f"{_LIKE_THESE} (to quote)": others, _THESE: (first["lower"], first["upper"])}
    digits = f"z.{decimals(*next(iter(ends.values())))}f"
    rows = [(whose, first["value"], *own) for whose, own in ends.items()]
    frame = pandas.DataFrame(rows, columns=["interval for", "alpha", f"{100 * found.level:g} % from", "to"])
    texts = {name: [written(value, digits) for value in frame[name]] for name in frame.columns[1:]}
    convention = f" ({first['convention']})" if first["convention"] else ""
    return Table(frame, f"The coefficient to quote: Krippendorff's alpha{convention}.", texts=texts)


def _each_once(conventions: Any) -> str:
    """Join names of conventions, which may be several themselves."""
    return ", ".join(dict.fromkeys(", ".join(conventions).split(", ")))


def _to_quote(frame: Any, is_alpha: Any) -> str:
    """Say which coefficient to quote and why, and how far the others that are corrected for chance are from it."""
    words = (
        "To say how far they agree beyond chance, quote Krippendorff's alpha: it is defined for any number of "
        "annotators, also if not all label every item, and the convention below is about it."
    )
    value = frame.loc[is_alpha, "value"].iloc[0]
    rest = frame.loc[~is_alpha & ~frame["coefficient"].isin(["percent agreement"]), "value"].dropna()
    if not len(rest):
        return words
    apart = float((rest - value).abs().max())
    far = "less than 0.001" if apart < 0.0005 else f"at most {apart:.3f}"
    return f"{words} The other coefficients that are corrected for chance differ from it by {far} here."


def _meaning(frame: Any) -> Any:
    """Say of each coefficient of a table what it calls chance, and what its conventions mean."""
    import pandas

    rows = []
    for coefficient, convention in zip(frame["coefficient"], frame["convention"], strict=True):
        told = [f"{name}: {what}" for name, what in _CONVENTIONS.items() if name in str(convention).split(", ")]
        own = f" ({'; '.join(told)})" * bool(told)
        rows.append((coefficient, f"{_COEFFICIENTS[coefficient].removesuffix('.')}{own}."))
    return pandas.DataFrame(rows, columns=["coefficient", "what it is"]).drop_duplicates()


def _run(found: Agreement) -> Section:
    """Return the section on what was run, with the lines that do it again."""
    import pandas

    told = {name: value for name, value in found.told.items() if name != "file"}
    given = "".join(f", {name}={value!r}" if np.isscalar(value) else f", {name}=…" for name, value in told.items())
    whose = _whose(found)
    wider = found.interval_of_others and not found.hardly_equal
    whose += "; of SPA and alpha on the first screen for annotators like these too" if wider else ""
    rows = [
        ("measure", "Krippendorff's alpha" if found.hardly_equal else "sparse probability of agreement (SPA)", ""),
        ("weights of items", SCHEME_WORDS[found.weights], f"weights={told['weights']!r}" if "weights" in told else ""),
        ("intervals", f"{100 * found.level:g} %, for items like these and {whose}", f"level={found.level:g}"),
        ("software", f"consilience {__version__}", ""),
    ]  # fmt: skip
    data, file = found.annotations, found.told.get("file")
    hashed = "" if data is None else f"{data.fingerprint()[:12]}…"
    rows += [("data", file, "")] if file else []
    rows += [("hash of the data", hashed, "")] if hashed else []
    read = f"data = cs.read_annotations({file!r})" if file else "data = …"
    lines = f"{read}{f'  # hash {hashed}' if hashed else ''}\nfound = cs.agreement(data{given})\n"
    table = Table(pandas.DataFrame(rows, columns=["what", "value", IN_CODE]), "What was measured.")
    code = Code(f"import consilience as cs\n\n{lines}cs.report(found, path='agreement.html')", "To reproduce it")
    return Section(
        "What was run", [table, "To reproduce it:", code, "Please cite:", Code(_PAPER, "To cite it")],
        f"SPA by consilience {__version__}",
    )


def predictive_section(found: PosteriorAgreement, dependence: Any = None) -> Section:
    """Return the section that sets the observed agreement beside what a fitted model expects.

    Parameters
    ----------
    found : what it expects, of annotators whose errors are independent.
    dependence : of annotators, as certainties of labels suppose it; None where they suppose none.
    """
    blocks: list[Any] = [line for line in str(found).splitlines() if line]
    if dependence is not None and dependence.rho > 0:
        blocks.append(
            "The simulated annotators err independently: this does not check how much they err together, for which "
            f"certainties suppose dependence {dependence.rho:.2f}."
        )
    if len(found.predictive) and np.isfinite(found.observed):
        blocks.append(agreement_figures.predictive_check(found))
    return Section("Whether the model expects this agreement", blocks)


def _words(frame: Any, found: Agreement) -> Any:
    """Return a table with words for a header."""
    names = {"lower": f"{100 * found.level:g} % from", "upper": "to", "sd": "standard error"}
    return frame.rename(columns=lambda name: names.get(name, name.replace("_", " ")))


def _first(frame: Any) -> Any:
    return frame.head(_MOST_ROWS)


def _left_out(frame: Any, what: str) -> list[str]:
    return [f"{len(frame) - _MOST_ROWS:,} more {what} are not drawn."] if len(frame) > _MOST_ROWS else []
