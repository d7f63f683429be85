"""What a report says of systems that predict classes: the leaderboard, all their scores, and scores by group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from consilience import figures
from consilience.evaluation.classes import Metric
from consilience.evaluation.comparison import ONE_KIND, TOO_NARROW, of_one_kind
from consilience.evaluation.leaderboard import Comparison
from consilience.evaluation.scores import Score
from consilience.evaluation.without_annotators import ALLOWED, leaves_out_annotators
from consilience.inference.fitting import Fit
from consilience.models.intervals import LEVEL
from consilience.models.truth import Truth
from consilience.pages import Alert, More, Section, Table, capital
from consilience.pages.by_reading import ACCURACIES, figure_by_reading, two_readings
from consilience.pages.by_reading import copied_score as copied_score_of
from consilience.pages.by_reading import own_score as own_score_of
from consilience.pages.gold import MOST_DIGITS, MOST_DIGITS_OF_A_VOTE, SystemsByGold
from consilience.pages.gold_items import if_random
from consilience.pages.items import below, class_word, named_items
from consilience.pages.looked import Choices, looked_blocks
from consilience.pages.other_metrics import Leads
from consilience.pages.run import TOO_LITTLE_SPREAD, fit_word, has_first_screen, is_approximate, is_vote
from consilience.pages.system_scores import FROM_ANNOTATIONS, floats, rounded, score_blocks
from consilience.pages.told_apart import (
    BY_SOURCE,
    ahead_by,
    apart_on,
    is_close,
    leading_by,
    not_shown,
    open_tile,
    which_is_better,
)
from consilience.pages.with_gold import (
    alone_words,
    anchored_numbers,
    anchored_texts,
    anchored_words,
    how_anchored,
    is_open,
)
from consilience.printing import counted
from consilience.rounding import decimals, within, written

_EVEN, _SHARED = 0.5, "; they also allow for what items share, such as annotators' errors"
_NOTHING = 0.05  # of a probability whose other end is as near to 1
_UNTOLD = "cannot be told"  # of P(best)
IF_ONE_KIND = ", if all systems looked at the items or none did"
"""What P(best) supposes where nobody said where predictions come from."""
_POINT, _CROSS = "“Against point estimate” is the score", "The cross is the score"
_TO_QUOTE = "accuracy to quote [95 %]"
_BY_FIT = (
    "The thin lines show the accuracy by the {} alone. The solid ones are for predictions made from these annotations, "
    "for example by training on them: these are right as often as the annotations make probable. The dashed ones are "
    "for a system that looked at the items itself and whose errors are independent of the annotators'."
)


def leaderboard_section(
    comparison: Comparison, top: Score, fit: Fit, said: list[Alert], scores: Mapping[str, Mapping[str, Score]],
    metrics: list[Metric], gold: SystemsByGold, ahead: Leads, choices: Choices | None = None,
) -> Section:  # fmt: skip
    """Return the section on systems.

    Parameters
    ----------
    comparison : of the systems.
    top : certainty of the top class.
    fit : that they are scored against.
    said : alerts on the systems.
    scores : by system and metric.
    metrics : in order.
    gold : of how many gold labels each system hits how many.
    ahead : in which other metrics other systems are ahead of the first.
    choices : what the systems say first, of each item.
    """
    truth: Truth = fit.truth
    together = gold.anchored
    names = _columns(comparison, fit, gold)
    table, told = comparison.table, {"p_best": _p_best_texts(comparison)}
    digits = _digits(fit, 0.0, float((table["upper"] - table["lower"]).median()))
    told["value_own_look"] = comparison.own_texts(digits)
    ends = table[["lower", "upper"]].to_numpy().tolist()
    told["interval"] = [" to ".join(written(end, f"z.{digits}f") for end in one) for one in ends]
    right = {name: str(one) if gold.leads else one.words for name, one in gold.right.items()}
    table = table.assign(**told, by_gold=[right.get(name, "–") for name in table["system"]])
    values = dict(zip(table["system"], comparison.value_texts(digits), strict=True))
    if together is not None:
        both = anchored_texts(together)
        best = dict(zip(both, together.p_best_texts, strict=True))
        table = table.assign(together=table["system"].map(both), p_best=table["system"].map(best))
    order = gold.order(comparison)
    table = table.sort_values("system", key=lambda own: own.map(order.index))
    left_out = {"sd_truth", "sd_shared"} if truth.num_draws == 1 else set()
    left_out |= {"value_alone", "value_own_look"} if comparison.own_draws is None else {"sd_truth", "sd_shared"}
    left_out |= {name for name in names if "rank" in name or name == "p_best"} if len(table) == 1 else set()
    left_out |= {"p_best"} if is_vote(fit) and together is None else set()
    names = {name: words for name, words in names.items() if name not in left_out}
    texts = {names["value"]: [values[name] for name in table["system"]]}
    # What is asked first fits a narrow screen; what it is made of follows.
    chief = ["system", *["by_gold"] * gold.leads, "value", "interval", "p_best"]
    if together is not None:
        chief = ["system", "together", "p_best", "by_gold"]
    parts = [chief, ["system", *(name for name in names if name not in chief)]]
    parts = [[one for one in part if one in names and one in table] for part in parts]
    shown, rest = (table[part].rename(columns=names) for part in parts)
    shown.attrs["numbers"] = rest.attrs["numbers"] = tuple(names.get(name) for name in (*told, "by_gold", "together"))
    ordered = {name: scores[name] for name in order}
    has_matrix = len(table) > 2 and (together is not None or not is_vote(fit))  # of two P(best) says it
    matrix = [figures.beats_matrix(together or comparison, order=order)] if has_matrix else []
    texts_of = {name: one for name, one in texts.items() if name in rest}
    caption = f"What these scores are made of.{_narrow(comparison, fit, gold) * (together is not None)}"
    made_of = Table(rest, caption, texts=rounded(rest, digits, *floats(rest)) | texts_of)
    drawn = _figure(comparison, fit, gold, order)
    above, inside = ([matrix] * bool(matrix), [drawn]) if has_first_screen(fit) else ([[drawn, *matrix]], [])
    blocks = [
        *said, Table(shown, _caption(comparison, fit, gold), texts={k: v for k, v in texts.items() if k in shown}),
        *_side_by_side(comparison, fit, gold, choices, ahead.in_short),
        *above, *_read_first(comparison, fit, gold),
        More("How to read these numbers, and what they are made of", [
            *inside, *_what_is_drawn(comparison, fit, gold), *_how_to_read(comparison, top, fit, gold), made_of
        ]),
        *score_blocks(ordered, metrics, comparison, truth, ahead.words, digits, is_vote(fit)),
    ]  # fmt: skip
    title = "Leaderboard" if len(table) > 1 else "Score of the system"
    return Section(title, blocks, _gist(table.iloc[0], comparison, fit, gold))


def _side_by_side(
    comparison: Comparison, fit: Fit, gold: SystemsByGold, choices: Choices | None, ahead: str
) -> list[str]:
    """Say which score to quote, on how many gold labels each system is right, and where the order is another one.

    Parameters
    ----------
    comparison, fit, gold, choices : as of `leaderboard_section`.
    ahead : in how many metrics each system leads, where others do than the first.
    """
    apart = apart_on(choices, gold.order(comparison)) if len(comparison.table) > 1 else ""
    ahead += " (see Scores of each system)" * bool(ahead)
    orders = [apart, ahead, "" if gold.leads else _by_point(comparison)]
    by_gold = f"{gold}." * (gold.anchored is not None)
    said = [one for one in (_to_quote(fit, gold), by_gold, *(f"{capital(one)}." for one in orders if one)) if one]
    return [" ".join(said)] * bool(said)


def _to_quote(fit: Fit, gold: SystemsByGold) -> str:
    """Say which of several scores to quote; empty where there is one."""
    if gold.leads and gold.anchored is None:
        return f"Quote the share right on gold labels, which does not depend on the {fit_word(fit)}."
    return ""


def _figure(comparison: Comparison, fit: Fit, gold: SystemsByGold, order: list[str]) -> Any:
    """Draw the leaderboard: what leads the table as thick lines, by gold labels where they lead.

    Parameters
    ----------
    comparison, fit, gold : as of `leaderboard_section`.
    order : of the systems.
    """
    held = f"{100 * comparison.level:g} % interval"
    if gold.anchored is not None:
        rows = gold.anchored.table[["system", "value", "lower", "upper"]].itertuples(index=False)
        label = f"to quote, {held}"
        with_gold = figures.WithGold(label, {row[0]: row[1:] for row in rows})
    elif gold.leads:
        right = {name: (own.share, *own.interval) for name, own in gold.right.items()}
        with_gold = figures.WithGold(f"right on gold labels, {held}", right)
    elif fit.data.rows == "rating" and is_open(comparison):
        return figure_by_reading(comparison, order, f"{capital(comparison.title)}, with {held}")
    else:
        narrow = "interval" if too_narrow(comparison, fit) else ""
        return figures.leaderboard(comparison, order=order, interval=narrow)
    return figures.leaderboard(comparison, order=order, gold=with_gold)


def _columns(comparison: Comparison, fit: Fit, gold: SystemsByGold) -> dict[str, str]:
    """Return the columns of the leaderboard, in order, with their headings.

    Parameters
    ----------
    comparison, fit : of the systems, and what they are scored against.
    gold : of how many gold labels each system hits how many.
    """
    leads, together = gold.leads, gold.anchored
    kind = "*" * (_of_one_kind(comparison) and together is None)
    return {
        "system": "system", **({"by_gold": ""} if leads else {}),
        **({"together": _TO_QUOTE, "p_best": ""} if together is not None else {}),
        "value": f"{comparison.title}{f' by the {fit_word(fit)} alone' if leads else ''}",
        "interval": f"{100 * LEVEL:g} % interval, all items like these",
        "p_best": f"P(best){kind}",
        "rank": f"rank by the {fit_word(fit)}" if leads else "rank",
        "by_gold": f"right on {gold.labels} [95 %]" if leads else "right on gold",
        "sd_truth": "sd on these items", "sd_items": "sd from items", "sd_shared": "sd from what items share",
        "value_alone": FROM_ANNOTATIONS, "value_own_look": "if it looked at the items",
        "point_estimate": "against point estimate", "rank_by_point_estimate": "rank by it",
    }  # fmt: skip


def _caption(comparison: Comparison, fit: Fit, gold: SystemsByGold) -> str:
    """Say in which order systems stand, and how narrow intervals are.

    Parameters
    ----------
    comparison, fit : of the systems, and what they are scored against.
    gold : of how many gold labels each system hits how many.
    """
    together = gold.anchored
    by, tied = ("gold labels", "; the first are equal" * gold.tied) if gold.leads else (comparison.title, "")
    caption = f"Systems by {by}, the highest first{tied}"
    if gold.leads and gold.equal:
        caption = f"Systems, equal on gold labels, in the order of the {fit_word(fit)}"
        caption += ", which does not show which is better" * is_close(comparison)
    if together is not None:
        return "Systems by the accuracy to quote, the highest first."
    return f"{caption}.{_narrow(comparison, fit, gold)}"


def _narrow(comparison: Comparison, fit: Fit, gold: SystemsByGold) -> str:
    """Say under a table of scores by the fit how its intervals may be too narrow, with a space in front."""
    narrow = f"are {how_narrow(fit)}" if too_narrow(comparison, fit) else "may be too narrow" * is_approximate(fit)
    return f" Intervals{f' by the {fit_word(fit)}' * gold.leads} {narrow}." if narrow else ""


def _gist(first: Any, comparison: Comparison, fit: Fit, gold: SystemsByGold) -> str:
    """Say in the line of the section what is known of the first system.

    Parameters
    ----------
    first : row of the system in the leaderboard.
    comparison, fit : of the systems, and what they are scored against.
    gold : of how many gold labels each system hits how many.
    """
    several = len(comparison.table) > 1
    undecided = f"; {which_is_better(comparison)} is open"
    if gold.anchored is not None:
        sure = (undecided if is_close(gold.anchored) else f", P(best) {first['p_best']}") * several
        return f"“{first['system']}” {first['together']}{sure}"
    if gold.leads:
        return f"{gold.first} right on gold labels: {first['by_gold']}"
    value, low, high = score_of(comparison, fit)
    gist = f"“{first['system']}” {value} [{low}, {high}]"
    if is_close(comparison):
        gist += undecided
    elif several and not _tells_nothing(comparison) and not is_vote(fit):
        gist += f", P(best) {comparison.p_best_texts[0]}"
    return gist


def _read_first(comparison: Comparison, fit: Fit, gold: SystemsByGold) -> list[Any]:
    """Return the notes of a comparison, the first of which is on where predictions come from, with what gold tells.

    Parameters
    ----------
    comparison, fit : of the systems, and what they are scored against.
    gold : of how many gold labels each system hits how many, and what that tells.
    """
    shown = not is_vote(fit) and gold.anchored is None  # P(best) by the comparison
    notes = [note for note in comparison.notes if (shown or note != ONE_KIND) and note != TOO_NARROW]
    notes = [f"* {note}" if note == ONE_KIND else note for note in notes]
    if not is_open(comparison):
        return notes
    if gold.anchored is not None:
        notes[0] = how_anchored(gold.anchored, fit)
    told = looked_blocks(gold.looked, gold.doubt, folded=gold.anchored is not None)  # which does not depend on it
    return [*notes[:1], *told[:-1], *notes[1:], *told[-1:]]  # what opens stands below what can be read


def _what_is_drawn(comparison: Comparison, fit: Fit, gold: SystemsByGold) -> list[str]:
    """Say what the thin lines of the figure are, where they are beside scores with gold labels; and their order."""
    if gold.anchored is None:
        return []
    return [_BY_FIT.format(fit_word(fit))] * is_open(comparison) + [*filter(None, [_alone(comparison, fit, gold)])]


def _digits(fit: Fit, low: float, high: float) -> int:
    """Return how many digits after the point scores with such an interval get; fewer by a vote, which is off."""
    return min(decimals(low, high), MOST_DIGITS_OF_A_VOTE if is_vote(fit) else MOST_DIGITS)


def score_of(comparison: Comparison, fit: Fit, name: str = "") -> tuple[str, str, str]:
    """Return the score of a system, the first one by default, as a range where readings differ; and its interval."""
    place = comparison.table["system"].tolist().index(name) if name else 0
    row = comparison.table.iloc[place]
    digits = _digits(fit, row["lower"], row["upper"])
    low, high = (written(one, f"z.{digits}f") for one in (row["lower"], row["upper"]))
    return comparison.value_texts(digits)[place], low, high


def own_score(comparison: Comparison, fit: Fit) -> str:
    """Return what the first system scores if it looked at the items itself, with its interval; empty if it cannot."""
    return own_score_of(comparison, _digits(fit, *comparison.table.loc[0, ["lower", "upper"]]))


def copied_score(comparison: Comparison, fit: Fit) -> str:
    """Return what the first system scores if its predictions were made from the annotations, with its interval."""
    return copied_score_of(comparison, _digits(fit, *comparison.table.loc[0, ["lower", "upper"]]))


def leaderboard_numbers(comparison: Comparison, fit: Fit, gold: SystemsByGold) -> dict[str, str]:
    """Return the key figures of a leaderboard: by gold labels first, where there are enough.

    Parameters
    ----------
    comparison, fit : the systems, and what they are scored against.
    gold : of how many gold labels each system hits how many.
    """
    if gold.anchored is not None:
        return anchored_numbers(gold.anchored, comparison.title)
    leads = next(iter(gold.right)) if gold.leads else ""
    first, (value, low, high) = comparison.table.iloc[0], score_of(comparison, fit, leads)
    narrow = bool(too_narrow(comparison, fit))
    title = f"{comparison.title} of “{leads or first['system']}”{f' by the {fit_word(fit)}' if leads else ''}"
    score = {f"{title} [{low}, {high}]": in_words(value)}
    if leads:
        right = gold.right[leads]
        share, *ends = within(right.share, *right.interval)
        return {f"{gold.first}, right on gold labels [{', '.join(ends)}]": share} | score
    if len(comparison.table) == 1 or is_vote(fit):
        return score
    pair = comparison.pairs.iloc[0]
    if len(comparison.table) == 2:
        _, *ends = within(*pair[["difference", "lower", "upper"]])
        ahead = leading_by(comparison)
        if is_close(comparison):
            return score | open_tile(comparison, f"lead {' to '.join(ends)}")
        return score | {f"lead of “{pair['a']}” over “{pair['b']}” [{', '.join(ends)}]": ahead}
    text, less = comparison.p_best_texts[0], "; or less sure" * narrow
    if is_close(comparison):
        return score | open_tile(comparison, f"“{first['system']}” with probability {in_words(text)}{less}")
    best = {f"P(“{first['system']}” is best in {comparison.title}){less}": in_words(text)}
    beats = comparison.probability_text(pair["p_a_beats_b_lower"], pair["p_a_beats_b_upper"])
    return best | {f"P(it beats the runner-up “{pair['b']}”)": in_words(beats)}


def held(fit: Fit) -> str:
    """Say what intervals are, and that those of an approximation may be too narrow."""
    return f"{100 * LEVEL:g} % intervals{', which may be too narrow' * is_approximate(fit)}"


def too_narrow(comparison: Comparison, fit: Fit | None = None) -> str:
    """Say why the intervals of systems are too narrow; empty where nothing says so."""
    if fit is not None and is_vote(fit):
        return "the vote treats every label as certain except ties"
    left_out = "they leave out errors that an annotator makes on many items"
    return left_out if TOO_NARROW in comparison.notes else ""


def how_narrow(fit: Fit) -> str:
    """Say how surely intervals are too narrow, where there is a reason: a vote leaves out what is there for sure."""
    return f"{'' if is_vote(fit) else 'probably '}too narrow"


def _of_one_kind(comparison: Comparison) -> bool:
    """Return whether P(best) supposes that all systems are of one provenance, which nobody said."""
    return is_open(comparison) and of_one_kind(comparison.provenance)


def verdict(comparison: Comparison, fit: Fit, gold: SystemsByGold) -> list[str]:
    """Say in words whether a system is told to be the best, and how sure that is, in a finding or two.

    Parameters
    ----------
    comparison, fit : the systems, and what they are scored against.
    gold : of how many gold labels each system hits how many; where they are enough they are a finding of their own.
    """
    if gold.anchored is not None:
        words = anchored_words(gold.anchored, gold.number, told=has_first_screen(fit))
        return [f"{words}{if_random(fit)}"]
    names, several = comparison.table["system"].tolist(), len(comparison.table) > 1
    if _is_two_readings(comparison, fit, gold):
        digits, right = _digits(fit, *comparison.table.loc[0, ["lower", "upper"]]), _right(fit)
        brackets, words = _what_brackets_are(comparison, fit, ""), two_readings(comparison, digits, right)
        if why := too_narrow(comparison, fit):
            best = "with probability" in opening(comparison, fit)
            sure = " and the probability of being the best is too sure" * best
            brackets = f"The 95 % intervals of systems on this page are {how_narrow(fit)}{sure}, because {why}."
        return [words, brackets] if why else [f"{words} {brackets}"]
    value, low, high = score_of(comparison, fit)
    meant = f" (how often its first choice is {_right(fit)})" if comparison.title in ACCURACIES else ""
    by = f"By the {fit_word(fit)}, on all {counted(comparison.num_items, f'{comparison.unit}s')}, " * gold.leads
    begins = opening(comparison, fit)
    if begins and gold.leads:
        by = f"By the {fit_word(fit)}, {begins[0].lower()}{begins[1:]}"
    elif not has_first_screen(fit):  # whose first sentence it is
        by += begins
    scored = f"scores {in_words(value)} [{low}, {high}] in {comparison.title}{meant}{BY_SOURCE * _is_range(value)}"
    words = f"{by}“{names[0]}” {scored}"
    if several:
        ahead_of = f"ahead of “{names[1]}” by {ahead_by(comparison)}{IF_ONE_KIND * _of_one_kind(comparison)}"
        words += f"; it is {ahead_of}"
        if len(names) == 2 and not gold.leads and not is_vote(fit):  # its score is a key figure
            words = f"{by}in {comparison.title}{meant} “{names[0]}” is {ahead_of}"
            if by.startswith("“"):  # it has the metric and what is supposed
                words = f"{by.removesuffix(': ')}; it leads “{names[1]}” by {ahead_by(comparison)}"
    more = [f"{capital(words)}.", _what_brackets_are(comparison, fit, begins)]
    more += [f"{gold}."] * (bool(gold.right) and not gold.leads)
    return [" ".join(filter(None, more))]


def _right(fit: Fit) -> str:
    """Return what a first choice is that counts."""
    return "the most plausible class" if fit.data.rows == "report" else "right"


def _is_two_readings(comparison: Comparison, fit: Fit, gold: SystemsByGold) -> bool:
    """Return whether all systems have two scores, as nobody said where predictions come from, and no others."""
    if not has_first_screen(fit) or is_vote(fit) or gold.right or not is_open(comparison):
        return False
    return set(comparison.provenance) == {"unknown"} and comparison.title in ACCURACIES


def _alone(comparison: Comparison, fit: Fit, gold: SystemsByGold) -> str:
    """Say what annotations alone make of the first system, where gold labels have it otherwise; else empty."""
    if gold.anchored is None:
        return ""
    name = gold.anchored.table["system"].iloc[0]
    low, high = comparison.table.set_index("system").loc[name, ["lower", "upper"]]
    return alone_words(comparison, gold, gold.anchored, fit, _digits(fit, low, high))


def _what_brackets_are(comparison: Comparison, fit: Fit, begins: str) -> str:
    """Say how probably the brackets of a verdict hold, or why they are too narrow."""
    held = f"{100 * comparison.level:g} %"
    if why := too_narrow(comparison, fit):
        sure = " and the probability of being the best is too sure" * ("with probability" in begins)
        return f"The interval in brackets is {how_narrow(fit)}{sure}, because {why}."
    if is_approximate(fit):
        return f"The {held} intervals in brackets may be too narrow, because {TOO_LITTLE_SPREAD}."
    return f"The brackets are {held} intervals."


def opening(comparison: Comparison, fit: Fit) -> str:
    """Return what a verdict begins with: which system is the best, or that it is not told; empty of one system.

    Parameters
    ----------
    comparison, fit : as of `verdict`.
    """
    table = comparison.table
    if len(table) < 2:
        return ""
    name, first = table["system"].iloc[0], table.iloc[0]
    best = in_words(comparison.probability_text(first["p_best_lower"], first["p_best_upper"]))
    copies = ", if all predictions were made from these annotations" * comparison.takes_for_copies
    if is_close(comparison):
        if _turns(comparison) and not is_vote(fit):
            return (
                f"Which of {counted(len(table), 'systems')} is best depends on whether they looked at the items "
                f"themselves; “{name}” is best with probability {best}: "
            )
        return f"{not_shown(comparison, best)}{copies}: "
    if is_vote(fit):  # too sure by nobody knows how much
        return ""
    kind = IF_ONE_KIND * _of_one_kind(comparison)
    of = f"the best of {counted(len(table), 'systems')} in {comparison.title}"
    return f"“{name}” is {of} with probability {best}{kind}{copies}: "


def _by_point(comparison: Comparison) -> str:
    """Say which system a point estimate would put first, where that is another one; else empty."""
    table = comparison.table
    if "rank_by_point_estimate" not in table or table["rank_by_point_estimate"].iloc[0] == 1:
        return ""
    ahead = table.loc[table["rank_by_point_estimate"] == 1, "system"].iloc[0]
    return f"a point estimate would put “{ahead}” first"


def _tells_nothing(comparison: Comparison, place: int = 0) -> bool:
    """Return whether P(best) of a system, the first one by default, may be next to nothing or all."""
    one = comparison.table.iloc[place]
    return bool(one["p_best_lower"] < _NOTHING and one["p_best_upper"] > 1 - _NOTHING)


def _p_best_texts(comparison: Comparison) -> list[str]:
    """Return P(best) of each system as the table has it; a range that is next to everything tells nothing."""
    texts = comparison.p_best_texts
    return [_UNTOLD if _tells_nothing(comparison, place) else text for place, text in enumerate(texts)]


def _turns(comparison: Comparison) -> bool:
    """Return whether the first system is more probably the best or not by where predictions come from."""
    first = comparison.table.iloc[0]
    straddles = bool(first["p_best_lower"] < _EVEN < first["p_best_upper"])
    return is_open(comparison) and straddles and _is_range(comparison.p_best_texts[0])


def _is_range(text: str) -> bool:
    return "–" in text or " to " in text


def in_words(text: str) -> str:
    """Write a probability, or a range of it, in a sentence."""
    return text.replace("–", " to ").replace("> ", "above ").replace("< ", "below ")


def _how_to_read(comparison: Comparison, top: Score, fit: Fit, gold: SystemsByGold) -> list[str]:
    """Say why scores are uncertain, and what the numbers of a leaderboard are.

    Parameters
    ----------
    comparison : of the systems.
    top, fit : certainty of the top class, and what systems are scored against.
    gold : of how many gold labels each system hits how many.
    """
    truth, repeated = fit.truth, any(note.startswith(ALLOWED) for note in comparison.notes)
    left_out, why = too_narrow(comparison, fit) or (leaves_out_annotators(fit, truth) and not repeated), ""
    if not is_vote(fit) and truth.num_draws == 1:
        why = (
            "This model gives a point estimate without uncertainty about the truth, so the spread of scores comes only "
            f"from the finite number of items{' and from errors that annotators repeat' * repeated}."
        )
    elif not is_vote(fit):  # whose box says that
        why = (
            f"Scores by the {fit_word(fit)} are uncertain because the truth is ({below(top, 0.99):,} of "
            f"{counted(truth.num_units, 'items')} have a certainty below 0.99) and because other items would give "
            "other scores (“sd from items”, by the Bayesian bootstrap)"
            f"{_SHARED * (not left_out)}."
        )
    why += f" The 95 % intervals may be too narrow, because {TOO_LITTLE_SPREAD}." * is_approximate(fit)
    together = gold.anchored
    read = "Systems are sorted by the middle of their range. " if is_open(comparison) else ""
    read = read if together is None else ""
    if is_open(comparison) and any("–" in text[1:] for text in comparison.own_texts(2)):
        read += (
            "The score of a system that looked at the items is a range between two assumptions: either it errs more "
            "often where several classes of an item are plausible, or it knows the class of an item or guesses, "
            "equally often on every item. "
        )
    if together is None and (reach := _reaches_higher(comparison)):
        read += (
            "An interval goes from the lowest end to the highest end over all these assumptions, so the interval of "
            f"“{reach}” can end higher although “{comparison.table['system'].iloc[0]}” is ranked first. "
        )
    if len(comparison.systems) > 1 and (together is not None or not is_vote(fit)):
        shown = together or comparison
        read += (
            "P(best) is the probability that a system is the best of these on the same items; it can be close to 1 "
            f"even if intervals overlap. It was counted over {shown.draws.shape[1]:,} draws, which are worth "
            f"{shown.effective_draws:,.0f} independent ones. "
        )
    if any(map(_is_range, comparison.p_best_texts)) and together is None and not is_vote(fit):
        read += (
            "Where it is a range, it depends on where predictions come from: the range goes from the worst case for "
            "the system to the best case. "
        )
        if _UNTOLD in _p_best_texts(comparison):
            read += f"Where it goes from below {_NOTHING} to above {1 - _NOTHING} it says “{_UNTOLD}”. "
    if comparison.points is not None:
        read += (
            f"{_POINT if gold.leads or fit.data.rows == 'rating' else _CROSS} if the leading "
            f"{class_word(fit)} of each item is taken as the truth{_tied_estimates(top, fit)}. "
        )
        if not is_vote(fit) and (comparison.points > comparison.values).all():
            read += (
                "It is higher than the score of predictions made from the annotations, because the leading "
                f"{class_word(fit)} is right with a probability of {top.value:.2f} on average and not of 1. "
            )
    read += "The share right on gold labels does not depend on a model." * gold.leads
    return [one for one in (why, read) if one]


def _reaches_higher(comparison: Comparison) -> str:
    """Name the system below the first whose interval ends highest, above that of the first; empty where none does.

    Of scores with several readings alone.
    """
    if not is_open(comparison):
        return ""
    highest = comparison.table.loc[comparison.table["upper"].idxmax(), "system"]
    return "" if highest == comparison.table["system"].iloc[0] else str(highest)


def _tied_estimates(top: Score, fit: Fit) -> str:
    """Say of which items the point estimate has several leading classes, of which it names the first.

    Parameters
    ----------
    top, fit : certainty of the top class, and the fit; of votes and rankings.
    """
    truth: Truth = fit.truth
    if is_vote(fit) and (tied := below(top, 1)):
        return (
            f"; for {counted(tied, 'tied items')} it is the tied label that comes first in the list of labels. The "
            "other scores count a tie by its share: with two tied labels, each is right with probability 1/2"
        )
    point: Any = truth.standard() if fit.data.rows == "report" else None
    if point is None or not len(point.tied):
        return ""
    return (
        f"; for {named_items(truth, point.tied, fit.data.unit)}, where several classes tie, it is the first in the "
        "list of classes"
    )
