"""What a report says of rated items along their scale, and of annotators who rate higher or lower than others."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from consilience import first_figures
from consilience.data.offsets import annotator_offsets
from consilience.evaluation.certainties import certainty
from consilience.evaluation.scores import Score
from consilience.inference.fitting import Fit
from consilience.inference.fitting import fit as infer
from consilience.models.intervals import ends
from consilience.pages import SURE, Action, Bar, Bars, Code, More, Section, Table, tile
from consilience.pages.items import MOST_BARS, below, how_counted
from consilience.pages.next_steps import by_command, fit_again
from consilience.pages.run import fitting_lines
from consilience.pages.sides import WITH_OTHERS, above_with_others, counts_of_sides, sides_by_name
from consilience.pages.spread_of_ratings import Spread
from consilience.printing import counted
from consilience.rounding import decimals, probability, within, written

_DRAWS = 4000  # of all means together, of few items
_MOST_DRAWN = 1 << 24  # means in these draws

_WITHOUT = "without-offsets"  # a folder

_MOST_OFF = 2  # annotators with offsets who are named beside the first

_ALIKE = 1.05  # Widths of bars whose ratio is less look the same.


def scale_sections(fit: Any, best: Score, offsets: Offsets, without: Without | None, spread: Spread) -> list[Section]:
    """Return the sections on rated items along their scale, on what annotators add to it, and on their spread.

    Parameters
    ----------
    fit, best : of ratings, and the certainties of its sides.
    offsets, without : of annotators, and what would follow without them.
    spread : of the ratings.
    """
    frame, threshold = fit.table("means"), float(fit.options["threshold"])
    item, rating = np.asarray(fit.data.item), np.asarray(fit.data.rating, float)
    above = above_threshold(fit, best, without)
    sure_of_side = np.maximum(above, 1 - above)
    order = np.argsort(sure_of_side, kind="stable")
    drawn = order[:MOST_BARS]
    drawn = drawn[np.argsort(-frame["mean"].to_numpy()[drawn], kind="stable")]
    rows = [
        Bar(
            str(frame["item"].iloc[place]), float(frame["mean"].iloc[place]),
            "{} ({} to {})".format(*within(*frame[["mean", "lower", "upper"]].iloc[place])),
            interval=(float(frame["lower"].iloc[place]), float(frame["upper"].iloc[place])),
            ticks=rating[item == place].tolist(), ring=None if without is None else float(without.mean[place]),
        )
        for place in drawn.tolist()
    ]  # fmt: skip
    which = "" if len(drawn) == len(frame) else f" Drawn are the {len(drawn)} whose side is least certain."
    words = (
        "A dot is the estimated mean of an item"
        f"{'; a ring is that mean with the offsets of annotators taken off' * (without is not None)}. The bar is a "
        f"95 % interval. Thin lines are single ratings{', offsets taken off' * offsets.taken}; the dashed line is the "
        f"threshold, {threshold:g}."
    )
    how = (
        f"An estimated mean is {_moved_towards(fit)}. The bar is the 95 % interval of the mean of many ratings of this "
        f"item by {_whose_mean(offsets)}. {_bars_alike(frame, item)}"
    )
    heads = ("item", "rating", "mean (95 %)")
    scale = Bars(rows, f"Items along the scale, the highest first.{which}", heads, threshold)
    table = frame.drop(columns="variance").rename(columns={"lower": "95 % from", "upper": "to"})
    table.insert(1, "side", np.where(above >= 0.5, "above", "below"))
    table.insert(2, "certainty of the side", sure_of_side)
    number = np.bincount(item, minlength=len(frame))
    known = np.where(number > 0, number, np.nan)
    table = table.assign(ratings=number, **{"plain mean": np.bincount(item, rating, len(frame)) / known})
    sure = {"certainty of the side": sure_of_side}
    if without is not None:
        table["mean, offsets off"] = without.mean
        sure |= {"its certainty, offsets off": without.certainty, "certainty, if annotators were alike": best.items}
        table = table.assign(**sure)
    texts = {name: [probability(one) for one in values[order].tolist()] for name, values in sure.items()}
    taken = "; offsets of annotators are taken off the ratings" * offsets.taken
    shown = Table(table.iloc[order], f"Items, the least certain side first{taken}.", of="means", texts=texts)
    high, low, open_ = counts_of_sides(above)
    gist = f"{high:,} surely above {threshold:g}, {low:,} surely below, {open_:,} open"
    named = sides_by_name(frame["item"].to_numpy(), above, threshold)
    write = ["To write these means to a file:", Code(_means_command(fit), "To write the means")]
    blocks = [*named, words, scale, More("What the bars are", [how]), extremes_words(fit, offsets), shown]
    items = Section("Items", [*blocks, _sure_of(fit, best, offsets, without), *write], gist)
    apart = [_offsets(fit, offsets, without)] if len(offsets.mean) else []
    return [items, *apart, *spread.sections()]


def above_threshold(fit: Any, best: Score, without: Without | None) -> np.ndarray:
    """Return how probably the mean of each item is above the threshold: with other annotators, where offsets are sure.

    Parameters
    ----------
    fit, best : of ratings, and the certainties of its sides.
    without : what would follow without the offsets of annotators.
    """
    if without is not None:
        return without.above
    mean = fit.table("means")["mean"].to_numpy()
    return np.where(mean >= float(fit.options["threshold"]), best.items, 1 - best.items)


def _sure_of(fit: Any, best: Score, offsets: Offsets, without: Without | None) -> str:
    """Say where certainties come from, and what they take for granted."""
    how = how_counted(best, fit.truth, "side")
    if without is not None:
        return (
            f"{how} The certainty of the side is {WITH_OTHERS}: that of a fit with the offsets taken off, of which "
            " all means may move up or down together. The last two columns are of the mean by "
            f"{offsets.these}, and of the fit of this page, which takes annotators for alike."
        )
    whose = f"They are {offsets.condition}." if offsets.taken else "The fit takes annotators for alike."
    return f"{how} {whose}".strip()


def _means_command(fit: Fit) -> str:
    return "consilience table RUN means --csv means.csv" if fit.folder else "fit.means().to_csv('means.csv')"


def ratings_verdict(fit: Fit, best: Score, offsets: Offsets, without: Without | None) -> str:
    """Say of how many items the side is known, and of whom that is."""
    threshold = float(fit.options["threshold"])
    high, low, open_ = counts_of_sides(above_threshold(fit, best, without))
    whose = WITH_OTHERS if without is not None else offsets.condition
    rest = f"; report the other {open_:,} as open" if open_ and high + low else "; report all as open" * bool(open_)
    number = counted(high + low + open_, "items")
    sure = f"At a certainty of {SURE:g} or more {high:,} of {number} are above {threshold:g} and {low:,} below"
    return f"{sure}, {whose}{rest}."


def ratings_figure(fit: Fit, best: Score, without: Without | None) -> Any:
    """Draw the items by their mean, in the colours of what is known of their sides."""
    above = above_threshold(fit, best, without)
    return first_figures.items_by_mean(fit.table("means"), above, float(fit.options["threshold"]), SURE)


def _bars_alike(frame: Any, item: np.ndarray) -> str:
    """Say why the bars are of different widths, or of nearly one."""
    width, number = (frame["upper"] - frame["lower"]).to_numpy(), np.bincount(item, minlength=len(frame))
    learnt = "How far ratings of one item spread is learnt from those of all items"
    of_each = [width[number == one] for one in np.unique(number)]
    compared = [one for one in of_each if len(one) > 1]
    alike = all(one.max() < _ALIKE * one.min() for one in compared)
    if not alike or 2 * sum(map(len, compared)) < len(width):
        more = "more ratings, and closer ones, make" if np.ptp(number) else "closer ratings make"
        return f"{learnt} and its own; {more} a narrower bar."
    learnt += ", and here they show no clear difference between items"
    if width.max() > _ALIKE * width.min():
        return f"{learnt}: how wide a bar is depends on little but the number of ratings."
    each = f", and each has {counted(int(number[0]), 'ratings')}" if not np.ptp(number) else ""
    return f"{learnt}{each}: so the bars are of nearly one width."


def _whose_mean(offsets: Offsets) -> str:
    """Say of whom ratings are that bars are about the mean of."""
    if offsets.taken:
        return f"{offsets.these}, whose offsets are taken for known (in simulation {_HELD[True]} % held it)"
    if offsets.furthest is None:
        return "annotators like these, if they are alike"
    return f"annotators like these, if they were alike (in simulation with offsets {_HELD[False]} % held it)"


def _moved_towards(fit: Any) -> str:
    """Say where estimated means lie, between those of the ratings and what the prior expects."""
    of_all = "mean" in fit.resolved.learned_priors
    towards = "that of all items" if of_all else "what the prior expects"
    return f"moved from the mean of its ratings towards {towards}, the further the fewer ratings it has"


class Offsets(NamedTuple):
    """How much higher annotators rate than the others of their items, an entry each, before anything is taken off.

    Parameters
    ----------
    names : of those with two such ratings or more.
    number : of the ratings.
    mean, error : of that difference, the gap to the others, and its standard error.
    from_all : by least squares, how much higher they rate than the mean of all, the offset: what is taken off.
    half : of the interval of 95 % of the mean over items, were these annotators drawn from many; NaN of one alone.
    known : how many annotators rate an item together with others.
    taken : whether the ratings that were fitted are without them; see `Ratings.without_offsets`.
    """

    names: np.ndarray
    number: np.ndarray
    mean: np.ndarray
    error: np.ndarray
    from_all: np.ndarray
    half: float
    known: int
    taken: bool = False

    @property
    def these(self) -> str:
        """The annotators, in words."""
        return f"these {counted(self.known, 'annotators')}"

    def ends(self, chance: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the intervals of the means."""
        half = special.stdtrit(self.number - 1, 1 - chance / 2) * self.error
        return self.mean - half, self.mean + half

    @property
    def furthest(self) -> int | None:
        """Who is surest to rate higher or lower than others; None where that may be chance, or is taken off."""
        if self.taken:
            return None
        low, high = self.ends(0.05 / max(len(self.mean), 1))
        one = int(np.argmax(np.maximum(low, -high))) if len(low) else 0
        return one if len(low) and not low[one] <= 0 <= high[one] else None

    @property
    def condition(self) -> str:
        """Say under which condition certainties hold: none of them knows of offsets."""
        return f"of the mean by {self.these}" if self.taken else "if annotators are alike"

    @property
    def finding(self) -> list[str]:
        """Say who rates highest or lowest of all, where that is no chance."""
        if self.taken:
            return [self.taken_off]
        if (one := self.furthest) is None:
            return []
        low, high = (float(end[one]) for end in self.ends())
        _, *texts = within(self.mean[one], *sorted((abs(low), abs(high))))
        return [
            f"“{self.names[one]}” rates {_higher(float(self.mean[one]), decimals(low, high))} than the others on the "
            f"same items ({' to '.join(texts)}, 95 %){self._others(one)}. The means are not corrected for that."
        ]

    def _others(self, named: int) -> str:
        """Say who else rates higher or lower than the others by intervals of 95 %, those furthest off first."""
        low, high = self.ends()
        apart = [one for one in np.flatnonzero((low > 0) | (high < 0)).tolist() if one != named]
        apart.sort(key=lambda one: -abs(self.mean[one]))
        told = [
            f"“{self.names[one]}” {_higher(float(self.mean[one]), decimals(low[one], high[one]))}"
            for one in apart[:_MOST_OFF]
        ]
        told += [f"{len(apart) - _MOST_OFF:,} more differ"] * (len(apart) > _MOST_OFF)
        return f"; {' and '.join([', '.join(told[:-1]), told[-1]] if len(told) > 1 else told)}" if told else ""

    @property
    def taken_off(self) -> str:
        """Say what means of items are of where offsets were taken off."""
        all_ = f" With others like them all means would move up or down together, by up to {_short(self.half)} (95 %)."
        return (
            "How much higher than the others each annotator rates was taken off the ratings before the fit, so means "
            f"are by {self.these}.{all_ * bool(np.isfinite(self.half))}"
        )


def _higher(value: float, digits: int) -> str:
    return f"{written(abs(value), f',.{digits}f')} {'lower' if value < 0 else 'higher'}"


def _short(half: float) -> str:
    return written(half, f".{decimals(0.0, 2 * half)}f")


def sides_words(fit: Any, offsets: Offsets, without: Without | None) -> str:
    """Say how many items lie on which side of the threshold, and how far all means may be off together.

    Where annotators rate higher or lower than others that is part of the spread within items, and what is stated is no
    surer for it: in 147 simulations of 40 items and 5 annotators with offsets of 5, 4 ratings of each with errors of 7,
    the side was right in .885 (standard error .004), .874 stated. With offsets taken off, .905 stated, .891 were right
    of the mean by annotators like these: the offsets of these five do not add up to 0 in truth.
    """
    frame, threshold = fit.table("means"), float(fit.options["threshold"])
    mean = frame["mean"].to_numpy()
    above = int((mean >= threshold).sum())
    return (
        f"{above:,} of {counted(len(mean), 'items')} {'is' if above == 1 else 'are'} above {threshold:g} and "
        f"{len(mean) - above:,} below, by their estimated means.{_moved_together(offsets, without)}"
    )


def _moved_together(offsets: Offsets, without: Without | None) -> str:
    """Say how far all means may be off together, and whether that is counted in; or nothing."""
    if offsets.taken or not np.isfinite(offsets.half):
        return ""
    known = "certainties count that in" if without is not None else "certainties do not count that in"
    return f" All means may be off together by up to {_short(offsets.half)} (95 %); {known}."


def extremes_words(fit: Any, offsets: Offsets) -> str:
    """Name the items with the lowest and the highest estimate, and say how probably they are what they seem."""
    frame = fit.table("means")
    ends = [int(at(frame["mean"].to_numpy())) for at in (np.argmax, np.argmin)]
    high, low = (
        "“{}” ({}; {} to {}, 95 %)".format(row["item"], *within(*row[["mean", "lower", "upper"]]))
        for _, row in frame.iloc[ends].iterrows()
    )
    return (
        f"The lowest estimate is that of {low}, the highest that of {high}."
        f"{_extremes(fit, *ends, taken=offsets.taken)}"
    )


def _extremes(fit: Any, high: int, low: int, *, taken: bool) -> str:
    """Say how probably the items with the highest and the lowest estimate are the highest and the lowest of all.

    Parameters
    ----------
    fit : of ratings.
    high, low : codes of these items.
    taken : whether offsets of annotators were taken off before.
    """
    names = fit.table("means")["item"]
    if len(names) < 2:
        return ""
    number, highest, lowest = _how_probably(fit, high, low)
    alike = "" if taken else ", which takes annotators for alike too,"
    return (
        f" By {number:,} draws of all means from the posterior{alike} "
        f"“{names.iloc[low]}” is the lowest with probability {lowest}, and “{names.iloc[high]}” the highest with "
        f"probability {highest}."
    )


def _how_probably(fit: Any, high: int, low: int) -> tuple[int, str, str]:
    """Return how many draws of all means there are, and how probably two items are the highest and the lowest."""
    size = fit.data.num_items
    drawn = np.asarray(fit.posterior.draws(min(_DRAWS, max(_MOST_DRAWN // size, 1)))["mean"])
    highest, lowest = (
        probability(float((ends == item).mean()), 2, len(drawn)).replace("> ", "above ").replace("< ", "below ")
        for ends, item in ((drawn.argmax(axis=1), high), (drawn.argmin(axis=1), low))
    )
    return len(drawn), highest, lowest


def offsets_of(data: Any) -> Offsets:
    """Return how much higher annotators of ratings rate than others do, before anything was taken off.

    In the mean over items the offsets of few annotators are the larger part of the error. It is taken from the spread
    of these means, by the t law: annotators are what is drawn. With 5 who have offsets of 3, 40 items and 4 ratings of
    each, with errors of 7, such an interval held the mean of the items in 95 % of 1,500 simulations, and one of
    independent ratings in 60 %. Where offsets were taken off, each annotator has the same weight in the mean.
    """
    item, who, rating = np.asarray(data.item), np.asarray(data.annotator), np.asarray(data.rating, float)
    taken = None if data.offset is None else np.asarray(data.offset, float)
    rating = rating if taken is None else rating + taken[who]
    of_item = np.bincount(item, minlength=data.num_items)
    several = of_item[item] > 1
    others = (np.bincount(item, rating, data.num_items)[item] - rating) / np.maximum(of_item[item] - 1, 1)
    above, whose = (rating - others)[several], who[several]
    number = np.bincount(whose, minlength=data.num_annotators)
    mean = np.bincount(whose, above, len(number)) / np.maximum(number, 1)
    squares = np.bincount(whose, (above - mean[whose]) ** 2, len(number))
    half, known = np.nan, int(np.count_nonzero(number))
    if known > 1:
        # Beside the others, among whom one is not, a difference is larger than from the mean of all.
        variance = np.square((known - 1) / known * mean).sum() / (known - 1)
        weight = np.bincount(who, 1 / of_item[item], len(number)) / np.count_nonzero(of_item)
        if taken is not None:
            variance, weight = taken[number > 0].var(ddof=1), np.full(known, 1 / known)
        half = float(special.stdtrit(known - 1, ends()[1]) * np.sqrt(variance * np.square(weight).sum()))
    names = np.arange(len(number)) if data.annotators is None else np.asarray(data.annotators)
    there = np.flatnonzero(number > 1)
    there = there[np.argsort(-mean[there], kind="stable")]
    error = np.sqrt(squares[there] / (number[there] - 1) / number[there])
    from_all = annotator_offsets(item, who, rating, (data.num_items, data.num_annotators)) if taken is None else taken
    return Offsets(names[there], number[there], mean[there], error, from_all[there], half, known, taken is not None)


def rating_numbers(
    fit: Fit, top: Score, offsets: Offsets, without: Without | None, spread: Spread, *, systems: bool
) -> dict[str, Any]:  # fmt: skip
    """Return the key figures of ratings: their mean with other annotators, how sure sides are, and their reliability.

    Parameters
    ----------
    fit, top : and the certainties of its sides.
    offsets, without, spread : of annotators, what would follow without them, and of the ratings.
    systems : whether figures of systems follow, so that there is no place for a third one.
    """
    middle, half = float(fit.table("means")["mean"].mean()), offsets.half
    like = ", with other annotators like these"
    numbers: dict[str, Any] = {}
    if np.isfinite(half):
        numbers |= tile("mean of the items", middle, middle - half, middle + half, like)
    if offsets.taken:
        like = f", of the mean by {offsets.these}, offsets taken off"
    else:
        like = "" if offsets.furthest is None else f", {offsets.condition if without is None else WITH_OTHERS}"
    side = f"whose side of {fit.options['threshold']:g}, the threshold, is less than 90 % certain"
    above = above_threshold(fit, top, without)
    numbers |= {f"of {counted(len(top.items), 'items')} {side}{like}": counts_of_sides(above)[2]}
    if systems:
        return numbers
    return numbers | {f"mean certainty of the side{like}": f"{np.maximum(above, 1 - above).mean():.3f}"} | spread.figure


def unchecked(offsets: Offsets, without: Without | None) -> str:
    """Say that nothing checks means of items, but for what looks at suppositions of the model."""
    if not len(offsets.mean):
        return "nothing here checks the fit"
    if offsets.taken:
        return "nothing here checks the means, or that the offset of an annotator is the same on every item"
    if without is not None:
        return "nothing here checks the means"
    alike = "they may be" if offsets.furthest is None else "they are not"
    return f"nothing here checks the means. The model takes annotators for alike, which {alike} (see Annotator offsets)"


class Without(NamedTuple):
    """What a fit says of ratings from which the offsets of annotators are taken off, an entry an item.

    Parameters
    ----------
    mean : estimated.
    certainty : of the side.
    top : the certainties, as scores.
    extremes : how probably the items with the highest and the lowest of these means are the highest and the lowest.
    above : how probably the mean by other annotators like these is above the threshold.
    """

    mean: np.ndarray
    certainty: np.ndarray
    top: Score
    extremes: tuple[str, str]
    above: np.ndarray

    def gain(self, fit: Any) -> str:
        """Say how many sides would change, and how many more would be sure."""
        frame, threshold = fit.table("means"), float(fit.options["threshold"])
        crossed = int(((frame["mean"].to_numpy() >= threshold) != (self.mean >= threshold)).sum())
        return (
            f"{crossed:,} of {counted(len(frame), 'items')} would change sides, and {below(self.top):,} instead of "
            f"{counts_of_sides(self.above)[2]:,} would have a side less than 90 % certain"
        )

    def words(self, fit: Any) -> str:
        """Say what would change in a fit with these certainties of the side."""
        frame = fit.table("means")
        mean = frame["mean"].to_numpy()
        digits = decimals(0.0, float((frame["upper"] - frame["lower"]).median()))
        most = written(float(np.abs(self.mean - mean).max()), f".{digits}f")
        leads = " and ".join(
            f"“{then}” would {'still ' * (first == then)}be the {which} (with probability {sure})"
            for which, first, then, sure in (
                (which, *(str(frame["item"].iloc[int(at(one))]) for one in (mean, self.mean)), sure)
                for which, at, sure in zip(("highest", "lowest"), (np.argmax, np.argmin), self.extremes, strict=True)
            )
        )  # fmt: skip
        return (
            f"With the offsets taken off, means of items would move by up to {most}, {self.gain(fit)}; the mean "
            f"certainty of the side would be {self.top.value:.3f}, and {leads}. Those would be means by these "
            "annotators, and not by others like them."
        )


def without_offsets(fit: Any, found: Offsets) -> Without | None:
    """Fit the ratings without the offsets of annotators; None where they may be chance, or that is not quick."""
    data = fit.data
    if found.furthest is None or fit.method != "exact":
        return None
    settings: Any = {"draws": fit.draws, "seed": fit.seed, **fit.options}
    other: Any = infer(fit.member, data.without_offsets(), fit.priors, "exact", **settings)
    top, mean = certainty(other.truth), other.table("means")["mean"].to_numpy()
    _, *extremes = _how_probably(other, int(mean.argmax()), int(mean.argmin()))
    half = offsets_of(other.data).half
    above = above_with_others(other, half, found.known)
    return Without(mean, top.items, top, (extremes[0], extremes[1]), above)


_HELD = {True: 94, False: 91}  # per cent of the intervals of items, by whether offsets were taken off
_MEASURED = (
    "In 1,000 simulations of 40 items and 5 annotators with offsets of 5, 4 ratings of each item with errors of 7, "
    "95 % intervals of items held their mean by"
)


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
    taken = "was taken off the ratings before the fit" if found.taken else "can be taken off the ratings"
    words = (
        "The gap of an annotator is how much higher the annotator rates than the others do on the same items, with the "
        "95 % interval of that average over many such items. The offset is how much higher than the mean of all "
        f"annotators, by least squares. As a rule it is smaller, as the annotator counts in that mean. It {taken}."
    )
    held = (
        "At the top of the page the interval of the mean of all "
        f"items is one with other annotators like these; no other interval is. {_MEASURED} these annotators in "
        f"{_HELD[True]} % of cases, and that of the mean of all items held it with others like them in 96 %."
        if found.taken else
        "In the interval of the mean of all items, "
        "at the top of the page, such offsets count: it holds with other annotators like these. "
        f"{_MEASURED} annotators like these in {_HELD[False]} % of cases. But misses come together, as one set of "
        "annotators shifts all bars alike: in 7 % of the simulations fewer than 80 % of the intervals did."
    )  # fmt: skip
    before = ", before offsets were taken off" * found.taken
    caption = f"Gap of each annotator to the others{before}, the highest first."
    blocks: list[Any] = [words, Bars(rows, caption, ("annotator", "gap", "mean (95 %)")), held]
    both = {"gap to the others": found.mean, "offset from the mean of all": found.from_all}
    frame = pandas.DataFrame({"annotator": found.names, "ratings": found.number, **both})
    texts = {name: [written(one, form) for one in values] for name, values in both.items()}
    blocks.append(Table(frame, "Gap and offset of each annotator.", texts=texts))
    blocks += [] if without is None else [without.words(fit)]
    if found.furthest is not None:
        blocks += [
            f"To fit again{'' if by_command(fit) else ' in Python'} with the offsets taken off the ratings:",
            Code(_lines_without_offsets(fit), "To take the offsets off"),
        ]
    gist = f"{apart} of {len(found.mean):,} annotators rate{'s' * (apart == 1)} higher or lower than the others"
    return Section("Annotator offsets", blocks, f"{gist}, taken off before the fit" if found.taken else gist)


def to_take_off(fit: Any, found: Offsets, without: Without | None) -> list[Action]:
    """Return the advice to fit without offsets, where an annotator surely has one."""
    if found.furthest is None:
        return []
    how = "" if by_command(fit) else " in Python"
    words = f"Fit again{how} with the offsets of annotators taken off, to compare items by {found.these} alone"
    words += "" if without is None else f"; {without.gain(fit)}"
    if not how:
        return [Action(f"{words}:", _command_without_offsets(fit))]
    return [Action(words, section="Annotator offsets")]


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
