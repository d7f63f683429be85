"""Pages: one self-contained HTML file each: a first screen with what to know, and sections that open and close.

A page needs nothing but itself. Figures are inline SVG, styles are inline, and the one script is ``report.js``, which
sorts and filters tables and shows details; a policy in the head allows it by its hash and forbids everything else, such
as fetching anything. All text is escaped by the template engine. Without scripts everything is there and can be read.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.resources
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from consilience.drawing import ON_DARK, PALETTE
from consilience.errors import UnsupportedRequest
from consilience.notes import Level
from consilience.output import GENERATOR, check_output, write_output
from consilience.pages.columns import are_ends, in_one
from consilience.pages.vectors import svg_of
from consilience.printing import counted
from consilience.progress import steps
from consilience.rounding import decimals, within, written

SURE = 0.9
"""What is less certain is called uncertain on pages."""

MOST_ROWS = 1_000
"""Rows of a table that a page shows."""

_MOST_NUMBERS, _MOST_FINDINGS, _OPEN = 4, 4, 2

MOST_ACTIONS = 5
"""Steps that a page shows."""

_KNOWN_FILES = {"ITEMS.csv": "the features file of this run"}  # that commands name

_COLOURS = (PALETTE, ON_DARK)

# Columns and rows of a table that may become blocks on a phone, and letters that a row of one has room for.
_FEWEST_COLUMNS, _MOST_STACKED, _ON_A_PHONE = 5, 12, 40

_NUMBERS_APART = 9  # per cent of a scale, between two numbers that are read apart on a narrow screen
_CODE_OR_INTERVAL = r"(?s)(?P<code><(pre|code)\b.*?</\2>)|\[[\u2212\d.,]+, [\u2212\d.,]+\]"
_GAP = 2  # pixels between words and the line below them, and between lines

# Blocks ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Code:
    """Text to be shown as it is, in a fixed-width face, and its name for those who hear the page."""

    text: str
    name: str = "Code"


@dataclass(frozen=True)
class Heading:
    """The title of a part of a section."""

    text: str


@dataclass(frozen=True)
class More:
    """What opens on a click inside a section: detail for those who ask for it.

    Parameters
    ----------
    title : what it says, or what it is about.
    blocks : as of a `Section`.
    """

    title: str
    blocks: Sequence[Any]


@dataclass(frozen=True)
class Alert:
    """What a reader must know before anything else, as a box.

    Parameters
    ----------
    title : one line.
    texts : a paragraph each.
    level : red for an error, amber for a warning.
    about : as of a `Note`: those about the same make one box.
    """

    title: str
    texts: Sequence[str]
    level: Level = Level.error
    about: str = ""


@dataclass(frozen=True)
class Table:
    """A table that can be sorted and filtered, of at most `MOST_ROWS` rows, the first ones.

    Parameters
    ----------
    frame : data frame; ``attrs["numbers"]`` names columns of numbers that are written as texts.
    caption : what it shows.
    tips : by column, a detail of each row, shown on hover and focus.
    of : the fit's table that has all rows, where these are not all.
    total : how many these are; the rows of the frame by default.
    texts : by column, how its values are written; the frame has the numbers to sort by.
    parted : the column at whose changes a line is drawn, between groups of rows.
    """

    frame: Any
    caption: str
    tips: Mapping[str, Sequence[str]] = field(default_factory=dict)
    of: str = ""
    total: int | None = None
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    parted: str = ""


class Bar(NamedTuple):
    """A row of `Bars`: a bar from ``start`` to ``value``; with the ends of an interval, a dot in it, grey on the line.

    Parameters
    ----------
    label : of the row.
    value : where the bar ends, or the dot.
    text : the numbers, in words.
    start : where the bar begins.
    interval : its two ends.
    ticks : single values, such as ratings.
    """

    label: str
    value: float
    text: str
    start: float = 0.0
    interval: tuple[float, float] | None = None
    ticks: Sequence[float] = ()


@dataclass(frozen=True)
class Bars:
    """Rows of bars over one scale, such as a waterfall or means with intervals; drawn in HTML, without a script.

    Parameters
    ----------
    rows : the bars.
    caption : what they show.
    heads : of the labels, the scale and the numbers.
    line : a place on the scale that is marked, such as a threshold.
    reach : places that the scale holds in any case, such as those of other bars that it is compared with.
    words : writes a place on the scale.
    """

    rows: Sequence[Bar]
    caption: str
    heads: tuple[str, str, str]
    line: float = 0.0
    reach: Sequence[float] = ()
    words: Callable[[float], str] = functools.partial(written, form="g")


class Span(NamedTuple):
    """Tokens of a `Text` that are underlined.

    Parameters
    ----------
    start, end : first and last token.
    number : shown behind them; it gives the colour too. With 0, none is shown and the line is thin and grey.
    sure : a dashed line where not.
    tip : detail, on hover and focus.
    wrong : whether something else is known to be true, which ≠ behind the number says.
    name : shown behind the number, of spans that other texts of the page name.
    """

    start: int
    end: int
    number: int
    sure: bool
    tip: str
    wrong: bool = False
    name: str = ""


@dataclass(frozen=True)
class Text:
    """A text with spans that may hold others; a span that crosses another is left out.

    Parameters
    ----------
    title : of the text.
    tokens : its words.
    spans : in any order.
    """

    title: str
    tokens: Sequence[str]
    spans: Sequence[Span]


@dataclass(frozen=True)
class Section:
    """A part of a page, which opens and closes.

    Parameters
    ----------
    title : heading.
    blocks : what is in it, in order: a text is a paragraph (``markupsafe.Markup`` stays as it is, anything else is
        escaped), a data frame a `Table` of the section's name, a matplotlib Figure or Axes a figure, a list of those a
        row of figures, a dict a row of named key figures; and the blocks of this module.
    gist : its result in one clause, beside the heading.
    open : whether it begins open; the first ones of a page do.
    """

    title: str
    blocks: Sequence[Any] = ()
    gist: str = ""
    open: bool = False

    @property
    def link(self) -> str:
        """The name of its place in the page."""
        return "-".join("".join(one if one.isalnum() and one.isascii() else " " for one in self.title).lower().split())


class Action(NamedTuple):
    """What to do next: words, with a command to type or the title of a section to go to."""

    words: str
    command: str = ""
    section: str = ""


@dataclass(frozen=True)
class Page:
    """A page: its first screen, and the sections.

    Parameters
    ----------
    title : of the page.
    line : what it is about: sizes, model, method, date.
    sections : parts of the page.
    verdict : what the data allow to say, or not, in one sentence.
    alerts : what to read before anything else.
    numbers : key figures, by what they are; at most four.
    findings : what else there is to know; four are shown.
    figure : one of some 4.2 by 3 inches, beside the findings.
    actions : what to do next; five are shown, those whose section the page has.
    run : the folder of the fit, for ``RUN`` in commands, where it is known.
    method : what the section on what was run says of the method, beside what it says of every one.
    begins_open : how many sections, the first ones, begin open.
    """

    title: str
    line: str
    sections: Sequence[Section] = ()
    verdict: str = ""
    alerts: Sequence[Alert] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)
    findings: Sequence[str] = ()
    figure: Any = None
    actions: Sequence[Action] = ()
    run: str = ""
    method: str = ""
    begins_open: int = _OPEN


# The page -------------------------------------------------------------------------------------------------------------


@functools.cache
def script() -> str:
    """Return the script of the pages, as it stands in ``report.js``."""
    return importlib.resources.files("consilience").joinpath("templates", "report.js").read_text(encoding="utf-8")


def write_page(page: Page, path: str | os.PathLike, *, force: bool = False) -> Path:
    """Write a self-contained HTML page.

    Parameters
    ----------
    page : what to write.
    path, force : see `consilience.output.write_output`; a page of ours is replaced.

    Returns
    -------
    The path that was written.

    Raises
    ------
    OutputRefused : where the file must not be written.
    UnsupportedRequest : a section holds what is no block.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    check_output(path, force=force)
    environment = Environment(
        loader=PackageLoader("consilience"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    count = itertools.count(1)
    digest = base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()
    places = [f"{number}-{part.link}".rstrip("-") for number, part in enumerate(page.sections, 1)]
    links = dict(zip((part.title for part in page.sections), places, strict=True))
    sections: list[dict[str, Any]] = []
    with steps(len(page.sections), "report", "section") as bar:
        for place, (part, link) in enumerate(zip(page.sections, places, strict=True)):
            blocks = [_rendered(block, part.title, count) for block in part.blocks]
            opens = part.open or place < page.begins_open
            shown = {"title": part.title, "gist": part.gist, "link": link, "open": opens}
            sections.append({**shown, "blocks": _beside_figures(blocks)})
            bar.to(place + 1)
    _tell_apart(_every_block(block for part in sections for block in part["blocks"]))
    actions = [one for one in page.actions if not one.section or one.section in links][:MOST_ACTIONS]
    html = environment.get_template("report.html").render(
        page=page, generator=GENERATOR, script=Markup(script()), digest=digest, links=links,  # noqa: S704
        alerts=[_rendered(alert, "", count) for alert in page.alerts],
        numbers=[(name, _text(value)) for name, value in itertools.islice(page.numbers.items(), _MOST_NUMBERS)],
        figure=None if page.figure is None else _rendered(page.figure, "", count),
        findings=page.findings[:_MOST_FINDINGS], actions=actions, stand_ins=_stand_ins(actions, page.run),
        sections=sections, colours=["; ".join(f"--{name}: {one}" for name, one in of.items()) for of in _COLOURS],
    )  # fmt: skip
    if page.run:
        html = re.sub(r"(?<=consilience )(\w+) RUN\b", lambda found: f"{found[1]} {escape(page.run)}", html)
    html = re.sub(r"(?<=\d) (%|× ?)", lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), html)
    html = re.sub(_CODE_OR_INTERVAL, lambda found: found["code"] or found[0].replace(" ", "\N{NO-BREAK SPACE}"), html)
    html = re.sub(r"(?<=&[gl]t;) (?=0\.\d)", "\N{NO-BREAK SPACE}", html)
    return write_output(path, lambda stream: stream.write(html.encode(errors="replace")), force=force)


def _stand_ins(actions: Sequence[Action], run: str) -> str:
    """Say what words in capitals stand for in commands; empty where there are none."""
    found = re.findall(r"(?<![\w.-])[A-Z][A-Z_]+(?:\.\w+)?(?!\w)", " ".join(one.command for one in actions))
    known = [one for one in dict.fromkeys(found) if one in _KNOWN_FILES]
    files = [one for one in dict.fromkeys(found) if one not in ("RUN", *known)]
    said = ["RUN is the folder in which the fit is saved"] * ("RUN" in found and not run)
    said += [f"{' and '.join(files)} {'is a file' if len(files) == 1 else 'are files'} of yours"] * bool(files)
    said += [f"{one} is {_KNOWN_FILES[one]}" for one in known]
    words = f"In these commands {', and '.join(said)}." if said else ""
    python = [one for one in ("cs.", "fit.") if any(action.command.startswith(one) for action in actions)]
    of = f"{' or '.join(python)} are Python; fit, data and predictions are what this page was made of."
    return f"{words}{f' Lines that begin with {of}' * bool(python)}".strip()


def _beside_figures(blocks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put each figure that is alone in its row beside the texts in front of it, or else beside those that follow it.

    A text that ends with a colon stays with what it announces.
    """
    rows: list[dict[str, Any]] = []
    for block in blocks:
        last: dict[str, Any] = rows[-1] if rows else {"kind": ""}
        explains = block["kind"] == "text" and not block["text"].endswith(":")
        if _is_alone(block):
            texts = list(itertools.takewhile(lambda one: one["kind"] == "text", reversed(rows)))[::-1]
            rows[len(rows) - len(texts) :] = [{"kind": "beside", "cells": [texts, [block]]} if texts else block]
        elif explains and _is_alone(last):
            rows[-1] = {"kind": "beside", "cells": [[last], [block]]}
        elif explains and last["kind"] == "beside" and _is_alone(last["cells"][0][0]):
            last["cells"][1].append(block)
        else:
            rows.append(block)
    return rows


def _is_alone(block: Mapping[str, Any]) -> bool:
    """Return whether a block is one figure in a row of its own."""
    return block["kind"] == "figures" and len(block["figures"]) == 1


def _every_block(blocks: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield blocks, and those that open inside of them."""
    for block in blocks:
        yield block
        yield from _every_block(block.get("blocks", ()))


def _tell_apart(blocks: Iterable[dict[str, Any]]) -> None:
    """Add a number to a name that stood before, in place, for names tell regions apart."""
    seen: dict[str, int] = {}
    for block in blocks:
        if "caption" in block:
            seen[block["caption"]] = number = seen.get(block["caption"], 0) + 1
            block["caption"] += f" ({number})" if number > 1 else ""


def _rendered(block: Any, title: str, count: Iterator[int]) -> dict[str, Any]:
    """Return a block as the template takes it."""
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    match block:
        case str():
            return {"kind": "text", "text": block}
        case Heading():
            return {"kind": "heading", "text": block.text}
        case Code():
            return {"kind": "code", "text": block.text, "caption": block.name}
        case More():
            inside = [_rendered(one, block.title, count) for one in block.blocks]
            return {"kind": "fold", "title": block.title, "blocks": _beside_figures(inside)}
        case Alert():
            return {"kind": "alert", "title": block.title, "texts": list(block.texts), "level": block.level.name}
        case Table():
            return {"kind": "table", **_table(block)}
        case Bars():
            return {"kind": "bars", **_bars(block)}
        case Text():
            return {"kind": "words", "title": block.title, "text": _marked(block)}
        case pandas.DataFrame():
            return {"kind": "table", **_table(Table(block, title))}
        case Axes() | Figure():
            return _rendered([block], title, count)
        case Mapping():
            return {"kind": "facts", "facts": [(str(name), _text(value)) for name, value in block.items()]}
        case list() | tuple():
            drawn = [one.figure if isinstance(one, Axes) else one for one in block]
            return {"kind": "figures", "figures": [svg_of(figure, f"f{next(count)}-") for figure in drawn]}
    raise UnsupportedRequest(
        f"a block is {type(block).__name__}; give a text, a data frame, a figure, a list of figures, a dict, or one of "
        "the blocks of consilience.pages"
    )


def _table(table: Table) -> dict[str, Any]:
    frame, caption = table.frame.iloc[:MOST_ROWS], table.caption
    total = len(table.frame) if table.total is None else table.total
    if len(frame) < total:
        more = f"; all: consilience table RUN {table.of}" if table.of else ""
        caption += f" Shown are {len(frame):,} of {total:,}{more}"
    columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
    as_numbers = frame.attrs.get("numbers", ())
    numeric = [column.dtype.kind in "iufb" or column.name in as_numbers for column in columns]
    digits = _digits(columns)
    texts = [
        list(table.texts.get(str(column.name), ()))[: len(frame)] or _texts(column, worth)
        for column, worth in zip(columns, digits, strict=True)
    ]
    known = [place for place, shown in enumerate(texts) if not shown or set(shown) - {"", "–"}]  # the others are empty
    columns, texts = ([one[place] for place in known] for one in (columns, texts))
    columns, texts, numeric = in_one(columns, texts, [numeric[place] for place in known])
    tips = [table.tips.get(str(column.name), ()) for column in columns]
    rows = zip(*([
        (text, _full(value), detail[row] if len(detail) else "")
        for row, (value, text) in enumerate(zip(column, shown, strict=True))
    ] for column, shown, detail in zip(columns, texts, tips, strict=True)), strict=True)  # fmt: skip
    heads = [str(column.name) for column in columns]
    part = frame[table.parted].tolist() if table.parted else [0] * len(frame)
    begins = [place > 0 and one != part[place - 1] for place, one in enumerate(part)]
    stacked = any(begins) or _is_wide(heads, texts)
    shown = {"columns": heads, "numeric": numeric, "rows": list(rows), "begins": begins, "stacked": stacked}
    return {"caption": caption, **shown}


def _is_wide(heads: Sequence[str], texts: Sequence[Sequence[str]]) -> bool:
    """Return whether a table of a few rows is wider than a phone, on which each row then becomes a block of its own."""
    if len(heads) < _FEWEST_COLUMNS or len(texts[0]) > _MOST_STACKED:
        return False
    words = [max((len(word) for word in head.split()), default=0) for head in heads]
    return sum(1 + max(1 + head, *map(len, own)) for head, own in zip(words, texts, strict=True)) > _ON_A_PHONE


def _digits(columns: Sequence[Any]) -> list[int]:
    """Return how many digits after the point columns get: what the table's intervals, of shares or not, are worth."""
    share = [column.dtype.kind == "f" and bool((column.abs().fillna(0) <= 1).all()) for column in columns]
    found: dict[bool, list[int]] = {True: [], False: []}
    for place, (low, high) in enumerate(itertools.pairwise(columns)):
        if are_ends(low, high) and low.dtype.kind == high.dtype.kind == "f" and np.isfinite(high - low).any():
            found[share[place] and share[place + 1]].append(decimals(0.0, float(np.nanmedian(high - low))))
    return [max(found[one], default=3) for one in share]


def _texts(column: Any, digits: int) -> list[str]:
    """Write a column; floats that are all whole numbers, such as counts, as whole numbers."""
    known = column[np.isfinite(column)] if column.dtype.kind == "f" else column[:0]
    if len(known) and not np.mod(known, 1).any() and np.abs(known).max() > 1:  # below, it is a share
        return [_text(int(value)) if np.isfinite(value) else _text(value) for value in column]
    return [_text(value, digits) for value in column]


def _full(value: Any) -> str:
    """Return a number of which the text does not show all, to sort by; empty for anything else."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number) or not np.isfinite(value):
        return ""
    return repr(value.item() if isinstance(value, np.number) else value)


def _text(value: Any, digits: int = 3) -> str:
    """Write a value as tables show it: with so many digits after the point, of large numbers one; thousands apart."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return written(value, ",")
    if isinstance(value, float | np.floating):
        digits = digits if abs(float(value)) < 100 else min(digits, 1)
        return written(value, f"z,.{digits}f") if np.isfinite(value) else "–" if np.isnan(value) else written(value, "")
    return "–" if value is None else str(value)


def _bars(bars: Bars) -> dict[str, Any]:
    """Return the places of all marks in per cent of the scale."""
    from matplotlib.ticker import MaxNLocator

    ends = [bars.line, *bars.reach]
    for row in bars.rows:
        ends += [row.value, *(row.interval or (row.start,)), *row.ticks]
    low, high = min(ends), max(ends)
    room = 0.03 * (high - low or 1.0)

    def place(value: float) -> float:
        return round(100 * (value - low + room) / (high - low + 2 * room), 2)

    rows = []
    for row in bars.rows:
        marks = [("tick", place(tick), 0.0) for tick in row.ticks]
        left, right = (place(end) for end in sorted(row.interval or (row.start, row.value)))
        side = "" if left >= place(bars.line) else " low" if right <= place(bars.line) else " open"
        look = f"interval{side}" if row.interval else "less" if row.value < row.start else "more"
        marks += [(look, left, round(right - left, 2))] if right > left else []
        marks += [(f"dot{side}", place(row.value), 0.0)] if row.interval else []
        rows.append((row.label, marks, row.text, repr(float(row.value if row.interval else row.value - row.start))))
    ticks = [MaxNLocator(most, steps=[1, 2, 5, 10]).tick_values(low, high) for most in (5, 7)]
    numbers = next((one for one in ticks if np.isclose(one, bars.line).any()), ticks[0])  # with the line, if it can
    kept = [one for one in numbers if low <= one <= high and abs(place(one) - place(bars.line)) > _NUMBERS_APART]
    axis = [(place(one), bars.words(one)) for one in (bars.line, *kept)]
    return {"caption": bars.caption, "heads": bars.heads, "rows": rows, "line": place(bars.line), "axis": axis}


def _marked(text: Text) -> Any:
    """Return the words of a text with elements around its spans, the line of each below those of the spans in it."""
    from markupsafe import Markup

    opens: dict[int, list[Span]] = {}
    for span in sorted(text.spans, key=lambda one: (one.start, -one.end)):
        opens.setdefault(span.start, []).append(span)
    parts: list[Any] = []
    inside: list[tuple[Span, int]] = []  # and where in the parts each begins
    depth: list[int] = []  # of each: pixels below the words that the lines of spans in it take
    for place, token in enumerate(text.tokens):
        parts.append(Markup(" ") if place else Markup(""))
        for span in opens.get(place, ()):
            if not inside or span.end <= inside[-1][0].end:
                inside.append((span, len(parts)))
                depth.append(_GAP)
                parts.append(Markup(""))
        parts.append(Markup("{}").format(token))
        last, bracket = place == len(text.tokens) - 1, ""
        while inside and (last or inside[-1][0].end <= place):
            (own, begin), below = inside.pop(), depth.pop()
            # The next chains of a colour have wider lines.
            width = 2 + 2 * min((own.number - 1) // len(PALETTE), 2) if own.number else 1
            parts[begin] = _opening(own, below, width) + "[" * bool(bracket)
            behind = " ".join(one for one in (f"{own.number or ''}{'≠' * own.wrong}", own.name) if one)
            parts.append(Markup("{}{}</span>").format(bracket, Markup("<sub>{}</sub>" * bool(behind)).format(behind)))
            depth[-1:] = [max(one, below + width + _GAP) for one in depth[-1:]]
            bracket = "]"  # of two mentions that end at one word the longer one is in brackets
    return Markup("").join(parts)


def _opening(span: Span, below: int, width: int) -> Any:
    """Return the tag that begins a span, with a line of some width so many pixels below its words."""
    from markupsafe import Markup

    colour = [*PALETTE, "soft"][(span.number - 1) % len(PALETTE) if span.number else -1]
    style = f"--chain:var(--{colour});border-bottom-width:{width}px;padding-bottom:{below}px"
    return Markup('<span class="mark{}" style="{}" data-tip="{}">').format(" unsure" * (not span.sure), style, span.tip)


def tile(name: str, value: float, low: float, high: float, more: str = "") -> dict[str, str]:
    """Return a key figure with its interval of 95 %, and what more is to be said of that."""
    text, *ends = within(value, low, high)
    return {f"{name} ({ends[0]} to {ends[1]}, 95 %{more})": text}


def capital(text: str) -> str:
    """Write a text with a capital in front."""
    return text[:1].upper() + text[1:]


def joined(sections: Sequence[Section], title: str, gist: str = "") -> list[Section]:
    """Return one section of several, each under a heading of its own; none of none."""
    blocks = [block for part in sections for block in (Heading(part.title), *part.blocks)]
    return [Section(title, blocks, gist)] if sections else []


def sizes(counts: Mapping[str, int], *names: str) -> str:
    """Write sizes in words, those that are known and not zero."""
    return ", ".join(counted(int(counts[name]), name) for name in names if counts.get(name))
