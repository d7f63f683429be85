"""What a report says of rated items along their scale, and of annotators who rate higher or lower than others."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from consilience import first_figures
from consilience.evaluation.scores import Score
from consilience.inference.fitting import Fit
from consilience.pages import SURE, Action, Bar, Bars, Code, More, Section, Table, tile
from consilience.pages.items import MOST_BARS, below, how_counted
from consilience.pages.more_ratings import COLUMN, MoreRatings
from consilience.pages.next_steps import by_command, fit_again
from consilience.pages.offsets import Offsets, short
from consilience.pages.run import fitting_lines
from consilience.pages.sides import (
    OF_OTHERS,
    SURE_LEVEL,
    Sides,
    Without,
    close_calls,
    how_probably,
    sides_of,
)
from consilience.pages.spread_of_ratings import SIMULATED, Spread
from consilience.printing import counted
from consilience.rounding import decimals, probability, within, written

_WITHOUT = "without-offsets"  # a folder

_ALIKE = 1.05  # Widths of bars whose ratio is less look the same.

_HELD = {True: 94, False: 91}  # per cent of the intervals of items, by whether offsets were taken off
_MEASURED = f"{SIMULATED} In 1,000 such data sets, 95 % intervals of items contained the mean by"
_HELD_OF_OTHERS = (
    f"{SIMULATED} In 250 such data sets, 95 % intervals of items contained the mean over all annotators of that kind "
    "in 96 % of cases, and 80 % intervals in 82 %. Misses come together, because the same annotators move all means: "
    "in 4 % of the data sets fewer than 80 % of the 95 % intervals contained it."
)


def scale_sections(
    fit: Any, best: Score, offsets: Offsets, without: Without | None, spread: Spread, wanted: MoreRatings
) -> list[Section]:  # fmt: skip
    """Return the sections on rated items along their scale, on what annotators add to it, and on their spread.

    Parameters
    ----------
    fit, best : of ratings, and the certainties of its sides.
    offsets, without : of annotators, and the fit without them.
    spread : of the ratings.
    wanted : how many more ratings open items take.
    """
    threshold, found = float(fit.options["threshold"]), sides_of(fit, best, without)
    names, item = fit.table("means")["item"], np.asarray(fit.data.item)
    high, low, open_ = found.counts
    gist = f"{high:,} above {threshold:g} and {low:,} below at a certainty of {SURE:g} or more, {open_:,} open"
    taken = without is not None or offsets.taken
    words = (
        f"A dot is the estimated mean of an item, and its bar contains the mean with a probability of "
        f"{100 * SURE_LEVEL:.0f} %. The dashed line is the threshold. Grey items are open: their side is less than "
        f"{100 * SURE:.0f} % certain. Thin lines are single ratings"
        f"{', with the offsets of annotators removed' * taken}."
    )
    how = (
        f"An estimated mean is {_moved_towards(fit)}. It estimates the mean of many ratings of this item by "
        f"{_whose_mean(offsets, without)}. {_bars_alike(found.ends[0], found.ends[1], item)}"
    )
    more = [More("What the bars are", [how]), *wanted.blocks(), *_if_otherwise(names, best, found, without)]
    shown = _table_of_items(fit, found, offsets, without, wanted)
    write = ["To save these means and certainties:", Code(sides_command(fit), "To write them")]
    blocks = [
        words, _scale(fit, found, without), extremes_words(fit, found, offsets, without),
        _sure_of(fit, best, offsets, without), More("All items in a table", [shown]), *more, *write,
    ]  # fmt: skip
    apart = [_offsets(fit, offsets, without)] if len(offsets.mean) else []
    return [Section("Items", blocks, gist), *apart, *spread.sections(told=bool(apart))]


def _scale(fit: Any, found: Sides, without: Without | None) -> Bars:
    """Draw the items along the scale, those whose side is least certain."""
    data = fit.data if without is None else without.fit.data
    names, item, rating = fit.table("means")["item"], np.asarray(data.item), np.asarray(data.rating, float)
    form = f".{decimals(0.0, float(np.median(found.ends[1] - found.ends[0])))}f"
    drawn = np.argsort(found.certainty, kind="stable")[:MOST_BARS]
    drawn = drawn[np.argsort(-found.mean[drawn], kind="stable")]
    rows = [
        Bar(
            str(names.iloc[place]), float(found.mean[place]),
            f"{written(float(found.mean[place]), form)}, {found.names[place]} "
            f"({probability(float(found.certainty[place]))})",
            interval=(float(found.inner[0, place]), float(found.inner[1, place])), ticks=rating[item == place].tolist(),
        )
        for place in drawn.tolist()
    ]  # fmt: skip
    which = "" if len(drawn) == len(names) else f" The {len(drawn)} with the least certain side are drawn."
    heads = ("item", "rating", "mean, side (certainty)")
    threshold = float(fit.options["threshold"])
    clear = f"{100 * SURE_LEVEL:.0f} %: clear of {threshold:g} means {100 * SURE:.0f} % certain"
    caption = f"Items along the scale, highest first, with intervals ({clear}).{which}"
    return Bars(rows, caption, heads, threshold)


def _table_of_items(
    fit: Any, found: Sides, offsets: Offsets, without: Without | None, wanted: MoreRatings
) -> Table:  # fmt: skip
    import pandas

    item, rating = np.asarray(fit.data.item), np.asarray(fit.data.rating, float)
    number = np.bincount(item, minlength=len(found.mean))
    known = np.where(number > 0, number, np.nan)
    table = pandas.DataFrame({
        "item": fit.table("means")["item"], "side": found.names,
        "certainty of the side": found.certainty, "mean": found.mean, "95 % from": found.ends[0], "to": found.ends[1],
        "ratings": number, "plain mean": np.bincount(item, rating, len(number)) / known,
    })  # fmt: skip
    order = np.argsort(found.certainty, kind="stable")
    texts = {"certainty of the side": [probability(one) for one in found.certainty[order].tolist()]}
    if wanted.number.any():
        table[COLUMN] = wanted.number
        texts[COLUMN] = [wanted.texts[one] for one in order.tolist()]
    taken = "; annotator offsets are removed from the mean" * (without is not None)
    taken += "; annotator offsets are removed from the ratings" * offsets.taken
    return Table(table.iloc[order], f"Items, least certain side first{taken}.", of="sides", texts=texts)


def _if_otherwise(names: Any, best: Score, found: Sides, without: Without | None) -> list[More]:
    """Tabulate what certainties would be of other annotators than those of the page; nothing where these are one."""
    import pandas

    if without is None:
        return []
    order = np.argsort(found.certainty, kind="stable")
    columns = {
        OF_OTHERS: found.certainty, "for these annotators alone": without.top.items,
        "if annotators rated alike": best.items,
    }  # fmt: skip
    frame = pandas.DataFrame({"item": names, **columns}).iloc[order]
    texts = {name: [probability(one) for one in values[order].tolist()] for name, values in columns.items()}
    words = (
        "This page uses the first column, for items and for systems. The second assumes that only the ratings of these "
        "annotators matter. The third is the fit itself, whose tables “labels” and “means” assume that annotators rate "
        "alike."
    )
    table = Table(frame, "Certainty of the side under three assumptions.", texts=texts)
    return [More("Certainties under other assumptions", [words, table])]


def _sure_of(fit: Any, best: Score, offsets: Offsets, without: Without | None) -> str:
    """Say where certainties come from, and what they take for granted."""
    how = how_counted(best, fit.truth, "side")
    if without is not None:
        return (
            f"Certainties are {OF_OTHERS}: annotator offsets are removed before the fit, and certainties are lowered "
            "(intervals widened) by how far other annotators would move all means together."
        )
    whose = f"They are {offsets.condition}." if offsets.taken else "The fit assumes that annotators rate alike."
    return f"{how} {whose}".strip()


def sides_command(fit: Fit) -> str:
    """Return the line that writes what the page says of the items to a file."""
    return "consilience table RUN sides --csv sides.csv" if fit.folder else "fit.sides().to_csv('sides.csv')"


def ratings_verdict(fit: Fit, found: Sides, offsets: Offsets, without: Without | None) -> str:
    """Say of how many items the side is known, and of whom that is."""
    threshold = float(fit.options["threshold"])
    high, low, open_ = found.counts
    rest = f"; report the other {open_:,} as open" if open_ and high + low else "; report all as open" * bool(open_)
    number = counted(high + low + open_, "items")
    sure = f"with at least {100 * SURE:.0f} % certainty, {low:,} below"
    return f"Of {number}, {high:,} are each above {threshold:g} {sure}, {_of_whom(offsets, without)}{rest}."


def _of_whom(offsets: Offsets, without: Without | None) -> str:
    """Say, inside a sentence, of whom certainties are."""
    if without is not None:
        return OF_OTHERS
    return f"by {offsets.these} alone" if offsets.taken else "if annotators rate alike"


def ratings_figure(fit: Fit, found: Sides) -> Any:
    """Draw the items by their mean, in the colours of what is known of their sides."""
    names = fit.table("means")["item"].tolist()
    threshold = float(fit.options["threshold"])
    return first_figures.items_by_mean(names, found.mean, found.inner, found.above, threshold, SURE)


def _bars_alike(lower: np.ndarray, upper: np.ndarray, item: np.ndarray) -> str:
    """Say why the bars are of different widths, or of nearly one."""
    width, number = upper - lower, np.bincount(item, minlength=len(lower))
    learnt = "The spread of the ratings of one item is learned from all items"
    of_each = [width[number == one] for one in np.unique(number)]
    compared = [one for one in of_each if len(one) > 1]
    alike = all(one.max() < _ALIKE * one.min() for one in compared)
    if not alike or 2 * sum(map(len, compared)) < len(width):
        more = "more ratings, and closer ones, make" if np.ptp(number) else "closer ratings make"
        return f"{learnt} and its own ratings; {more} a narrower bar."
    learnt += ", which show no clear difference here"
    if width.max() > _ALIKE * width.min():
        return f"{learnt}: the width of a bar depends mainly on the number of ratings."
    each = f", and each has {counted(int(number[0]), 'ratings')}" if not np.ptp(number) else ""
    return f"{learnt}{each}: so the bars are of nearly one width."


def _whose_mean(offsets: Offsets, without: Without | None) -> str:
    """Say of whom ratings are that bars are about the mean of."""
    if without is not None:
        return f"many annotators of the same kind as {offsets.these}"
    if offsets.taken:
        return f"{offsets.these}, whose offsets are taken for known (in simulation {_HELD[True]} % held it)"
    if offsets.furthest is None:
        return "annotators like these, if they are alike"
    return f"annotators like these, if they were alike (in simulation with offsets {_HELD[False]} % held it)"


def _moved_towards(fit: Any) -> str:
    """Say where estimated means lie, between those of the ratings and what the prior expects."""
    of_all = "mean" in fit.resolved.learned_priors
    towards = "the mean of all items" if of_all else "the prior mean"
    return f"pulled from the mean of its ratings towards {towards}, more strongly if it has few ratings"


def sides_words(fit: Any, found: Sides, offsets: Offsets, without: Without | None, *, systems: bool) -> str:
    """Say how far all means may be off together, and which sides are close calls; empty of neither.

    Where annotators are taken for alike their offsets are part of the spread within items, and what is stated is no
    surer for it: in 147 simulations of 40 items and 5 annotators with offsets of 5, 4 ratings of each with errors of 7,
    the side was right in .885 (standard error .004), .874 stated. With offsets taken off, .905 stated, .891 were right
    of the mean by annotators like these: the offsets of these five do not add up to 0 in truth.
    """
    near = close_calls(fit.table("means")["item"].to_numpy(), found.above)
    return f"{_moved_together(offsets, without, systems=systems)}{near}".strip()


def not_the_posterior(without: Without | None, *, systems: bool) -> str:
    """Say that the page's numbers are not the posterior of the fit, where they are not; else nothing."""
    if without is None:
        return ""
    scores, too = (", certainties and scores of systems", ", and cs.compare scores systems by it") if systems else (
        " and certainties", ""
    )  # fmt: skip
    return (
        f"The means{scores} on this page are not this posterior: they are {OF_OTHERS} (see Items). The tables "
        f"“labels” and “means” of the fit have the posterior itself{too}."
    )


def _moved_together(offsets: Offsets, without: Without | None, *, systems: bool) -> str:
    """Say how far all means may be off together, and in what that is counted in; or nothing."""
    half = offsets.half if without is None else without.offsets.half
    if offsets.taken or not np.isfinite(half):
        return ""
    what = f"certainties{' and scores of systems' * systems}"
    known = f"{what} {'do not ' * (without is None)}include this"
    few = f"With only {counted(offsets.known, 'annotators')}"
    return f" {few}, all means may be off together by up to {short(half)} (95 %); {known}."


def extremes_words(fit: Any, found: Sides, offsets: Offsets, without: Without | None) -> str:
    """Name the items with the lowest and the highest estimate, and say how probably they are what they seem."""
    names, ends = fit.table("means")["item"], [int(at(found.mean)) for at in (np.argmax, np.argmin)]
    high, low = ("“{}” ({}; {} to {}, 95 %)".format(names.iloc[one], *within(*found.bounds(one))) for one in ends)
    said = f"{low} has the lowest estimate, and {high} the highest."
    if len(names) < 2:
        return said
    highest, lowest = how_probably(fit if without is None else without.fit, *ends)
    alike = ", if annotators rate alike" * (not offsets.taken and without is None)
    return (
        f"{said} “{names.iloc[ends[1]]}” has the lowest mean of all items with probability {lowest}, and "
        f"“{names.iloc[ends[0]]}” the highest with probability {highest}{alike}."
    )


def rating_numbers(
    fit: Fit, found: Sides, offsets: Offsets, without: Without | None, spread: Spread, *, systems: bool
) -> dict[str, Any]:  # fmt: skip
    """Return the key figures of ratings: their mean with other annotators, how sure sides are, and their reliability.

    Parameters
    ----------
    fit, found : and what is said of its items.
    offsets, without, spread : of annotators, the fit without them, and of the ratings.
    systems : whether figures of systems follow, so that there is no place for a third one.
    """
    of, whose = counted(len(found.mean), "items"), f", by {offsets.these} alone" * offsets.taken
    side = f"side of {fit.options['threshold']:g} less than {100 * SURE:.0f} % certain"
    numbers: dict[str, Any] = {f"of {of} open ({side}){whose}": found.counts[2]}
    numbers |= {f"mean certainty of the sides{whose}": f"{found.certainty.mean():.3f}"}
    if systems:
        return numbers
    middle, half = float(found.mean.mean()), (offsets if without is None else without.offsets).half
    if np.isfinite(half):
        numbers = tile("mean of the items", middle, middle - half, middle + half, f", {OF_OTHERS}") | numbers
    return numbers | spread.figure


def unchecked(offsets: Offsets, without: Without | None) -> str:
    """Say that nothing checks means of items, but for what looks at suppositions of the model."""
    if not len(offsets.mean):
        return "nothing here checks the fit"
    if offsets.taken:
        return "nothing here checks the means, or that an annotator has the same offset on every item"
    if without is not None:
        return "nothing here checks the means"
    alike = "they may" if offsets.furthest is None else "they do not"
    assumed = "The model assumes that annotators rate alike"
    return f"nothing here checks the means. {assumed}; {alike} (see Annotator offsets)"


def _offsets(fit: Fit, found: Offsets, without: Without | None) -> Section:
    import pandas

    low, high = found.ends()
    apart = int(((low > 0) | (high < 0)).sum())
    digits = decimals(0.0, float(np.median(high - low)))
    rows, form = [], f"+.{digits}f"
    for name, *numbers in itertools.islice(zip(found.names, found.mean, low, high, strict=True), MOST_BARS):
        mean, *ends = map(float, numbers)
        text = "{} ({} to {})".format(*(written(one, form) for one in (mean, *ends)))
        rows.append(Bar(str(name), mean, text, interval=(ends[0], ends[1])))
    taken = "can be removed from the ratings"
    if found.taken or without is not None:
        taken = f"was removed from the ratings before the {'fit' if found.taken else 'means here were computed'}"
    words = (
        "The gap is how much higher an annotator rates than the others do on the same items, with its 95 % interval. "
        "The offset is how much higher the annotator rates than the mean of all annotators, by least squares. It is "
        f"usually smaller, because the annotator counts in that mean. The offset {taken}."
    )
    before = ", before offsets were removed" * found.taken
    caption = f"Gap between each annotator and the others{before}, highest first."
    blocks: list[Any] = [words, Bars(rows, caption, ("annotator", "gap", "mean (95 %)")), _held(found, without)]
    both = {"gap to the others": found.mean, "offset from the mean of all": found.from_all}
    frame = pandas.DataFrame({"annotator": found.names, "ratings": found.number, **both})
    texts = {name: [written(one, form) for one in values] for name, values in both.items()}
    blocks.append(Table(frame, "Gap and offset of each annotator.", texts=texts))
    blocks += [] if without is None else [_changed(fit, found, without)]
    if found.furthest is not None:
        blocks += [
            f"To fit again{'' if by_command(fit) else ' in Python'} for {found.these} alone, without their offsets:",
            Code(_lines_without_offsets(fit), "To take the offsets off"),
        ]
    gist = f"{apart} of {len(found.mean):,} annotators rate{'s' * (apart == 1)} higher or lower than the others"
    return Section("Annotator offsets", blocks, f"{gist}, removed before the fit" if found.taken else gist)


def _held(found: Offsets, without: Without | None) -> str:
    """Say how often intervals held what they are of, in simulation."""
    if without is not None:
        return _HELD_OF_OTHERS
    if found.taken:
        return (
            f"The interval of the mean of all items, at the top of the page, is {OF_OTHERS}; no other interval is. "
            f"{_MEASURED} these annotators in {_HELD[True]} % of cases, and the interval of the mean of all items "
            "contained it for other annotators of that kind in 96 %."
        )
    return (
        f"The interval of the mean of all items, at the top of the page, allows for such offsets: it is {OF_OTHERS}. "
        f"{_MEASURED} annotators of the same kind in {_HELD[False]} % of cases. Misses come together, because the same "
        "annotators move all means: in 7 % of the data sets fewer than 80 % of the intervals contained it."
    )


def _changed(fit: Any, found: Offsets, without: Without) -> str:
    """Say what taking the offsets off changes."""
    before, after = fit.table("means")["mean"].to_numpy(), without.sides.mean
    threshold = float(fit.options["threshold"])
    crossed = int(((before >= threshold) != (after >= threshold)).sum())
    digits = decimals(0.0, float(np.median(without.sides.ends[1] - without.sides.ends[0])))
    most = written(float(np.abs(after - before).max()), f".{digits}f")
    why = "With the offsets removed, estimates are pulled less towards the mean of all items: this" * found.cancel
    return (
        f"{why or 'Removing the offsets'} moved means by up to {most}, and {crossed:,} of "
        f"{counted(len(after), 'items')} to the other side. For {found.these} alone the mean certainty of the side "
        f"would be {without.top.value:.3f}, and {below(without.top):,} instead of {without.sides.counts[2]:,} items "
        "would be open."
    )


def to_take_off(fit: Any, found: Offsets, without: Without | None) -> list[Action]:
    """Return the advice to fit without offsets, where an annotator surely has one."""
    if found.furthest is None:
        return []
    how = "" if by_command(fit) else " in Python"
    gain = "" if without is None else (
        f" ({below(without.top):,} instead of {without.sides.counts[2]:,} items would be open; these certainties do "
        "not apply to other annotators)"
    )  # fmt: skip
    words = f"If only {found.these} matter, remove their offsets from the ratings and fit again{how}{gain}"
    if not how:
        return [Action(f"{words}:", _command_without_offsets(fit))]
    return [Action(words, section="Annotator offsets")]


def to_write(fit: Fit) -> list[Action]:
    """Return the advice to write what the page says of the items to a file, where a command does."""
    words = "Save the mean, side and certainty of each item:"
    return [Action(words, sides_command(fit))] * bool(fit.folder)


def _command_without_offsets(fit: Fit) -> str:
    return fit_again(fit, output=_WITHOUT, reading=["--without-offsets"])


def _lines_without_offsets(fit: Fit) -> str:
    if not by_command(fit):
        return without_offsets_code(fit)
    return f"{_command_without_offsets(fit)}\nconsilience report {_WITHOUT} -o {_WITHOUT}.html"


def without_offsets_code(fit: Fit) -> str:
    """Return the lines of Python that fit again with the offsets of annotators taken off, and make the page of it."""
    *before, read, run = fitting_lines(fit).split("\n")
    known = fit.attributes.get("data_file")
    read = f"{read}\ndata = data.without_offsets()" if known else (
        "data = data.without_offsets()  # of the ratings that this page was made of, in memory"
    )
    report = "cs.report(fit, path='without_offsets.html')"
    return "\n".join(["import consilience as cs", "", *before, read, run, report])
