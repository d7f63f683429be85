"""What every benchmark writes: Markdown to read, JSON to compare, figures as SVG, and on what machine it was measured.

A `Recording` is filled from top to bottom, in the order in which a reader meets it, and written at the end. What takes
hours is measured row by row, and the rows are `Kept`.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

RESULTS = Path(__file__).parent / "results"

_PACKAGES = ("jax", "jaxlib", "numpyro", "numpy", "scipy", "pandas")


def machine() -> dict[str, Any]:
    """Return where and with what a benchmark ran: date, processor, cores, versions and commit."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in _PACKAGES},
        "commit": _commit(),
    }


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    if described.is_file():
        for line in described.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _commit() -> str:
    """Return the commit of the checkout; "-dirty" says that files were changed since, other than results themselves."""
    try:
        commit = _git("rev-parse", "--short", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":/", f":(exclude){RESULTS}")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit}-dirty" if changed else commit


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=RESULTS.parent, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def markdown_table(rows: list[dict[str, Any]], digits: int = 3) -> str:
    """Return rows as a Markdown table; the columns are those of the first row.

    Parameters
    ----------
    rows : at least one; equal keys.
    digits : decimals of numbers that are not whole.
    """
    columns = list(rows[0])
    cells = [[_cell(row[column], digits) for column in columns] for row in rows]
    numeric = [all(isinstance(row[column], int | float | None) for row in rows) for column in columns]
    rule = ["---:" if right else "---" for right in numeric]
    return "\n".join("| " + " | ".join(line) + " |" for line in (columns, rule, *cells))


def _cell(value: Any, digits: int) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "–"
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def panels(columns: int, rows: int = 1, width: float = 4.6, height: float = 3.4) -> tuple[Any, Any]:
    """Return a figure of panels, each of this size in inches, and its axes, an array ``(row, column)``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def grouped(rows: list[dict[str, Any]], names: Sequence[str]) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Return rows by the values of some columns, in the order in which these come first."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


class Recording:
    """The record of one run.

    Parameters
    ----------
    name : of the benchmark; also of its folder under `RESULTS`.
    title : heading of the Markdown file.
    command : how to run it again.
    folder : where to write; ``RESULTS / name`` by default.
    """

    def __init__(self, name: str, title: str, command: str, folder: Path | None = None) -> None:
        self.folder = RESULTS / name if folder is None else folder
        self._lines = [f"# {title}", f"`{command}`"]
        self._content: dict[str, Any] = {"benchmark": name, "command": command, "machine": machine(), "tables": {}}
        self._figures: dict[str, Any] = {}

    def section(self, title: str) -> None:
        """Start a section."""
        print(f"\n## {title}", flush=True)
        self._lines.append(f"## {title}")

    def say(self, text: str) -> None:
        """Add a paragraph or a list."""
        print(f"\n{text}", flush=True)
        self._lines.append(text)

    def table(self, name: str, rows: list[dict[str, Any]], digits: int = 3) -> None:
        """Add a table; in the JSON file it stands under its name, with all digits."""
        self.data(name, rows)
        self.say(markdown_table(self._content["tables"][name], digits))

    def data(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Add rows to the JSON file alone."""
        self._content["tables"][name] = [{column: _plain(value) for column, value in row.items()} for row in rows]

    def figure(self, name: str, figure: Any, caption: str) -> None:
        """Add a matplotlib figure, written as ``name.svg``."""
        self._figures[name] = figure
        self._lines += [f"![{caption}]({name}.svg)", f"*{caption}*"]

    def write(self) -> None:
        """Write ``results.md``, ``results.json`` and the figures."""
        import matplotlib

        from consilience.drawing import STYLE

        self.folder.mkdir(parents=True, exist_ok=True)
        described = "; ".join(f"{name} {value}" for name, value in self._content["machine"].items())
        lines = [*self._lines[:2], f"Measured: {described}.", *self._lines[2:]]
        (self.folder / "results.md").write_text("\n\n".join(lines) + "\n", encoding="utf-8")
        content = json.dumps(self._content, indent=1, ensure_ascii=False, allow_nan=False)
        (self.folder / "results.json").write_text(content + "\n", encoding="utf-8")
        # A fixed salt and no date: the same figure is the same file.
        with matplotlib.rc_context({**STYLE, "svg.hashsalt": "consilience"}):
            for name, figure in self._figures.items():
                path = self.folder / f"{name}.svg"
                figure.savefig(path, metadata={"Date": None}, facecolor="white", bbox_inches="tight", dpi=120)
        print(f"\nwritten to {self.folder}")


class Kept:
    """Rows that are kept in a file as soon as each is measured, so that a later run goes on from there.

    A row has a part and a key, and says at which commit it was measured. Rows of other commits are taken as they are:
    `commits` says which there are, for the record to tell.

    Parameters
    ----------
    path : of the file, a JSON object a line.
    again : whether to measure what this run asks for anew, also where there is a row.
    """

    def __init__(self, path: Path, *, again: bool = False) -> None:
        self.path, self._again, self._measured, self._commit = path, again, set[tuple[Any, ...]](), _commit()
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        self._rows = {(row["part"], *row["key"]): row for row in map(json.loads, lines)}

    def row(self, part: str, key: Sequence[Any], measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the columns of a row; they are measured where there are none yet.

        Parameters
        ----------
        part, key : which row it is; texts and numbers.
        measure : returns its columns: numbers, texts and lists of them.
        """
        place = (part, *key)
        if place not in self._rows or (self._again and place not in self._measured):
            columns = {name: _plain(value) for name, value in measure().items()}
            self._rows[place] = {"part": part, "key": list(key), "commit": self._commit, "columns": columns}
            self._measured.add(place)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(self._rows[place], allow_nan=False) + "\n")
            print(f"{part}: {', '.join(map(str, key))}", flush=True)
        return self._rows[place]["columns"]

    def rows(self, part: str) -> dict[tuple[Any, ...], dict[str, Any]]:
        """Return the columns of all rows of a part, by their keys."""
        return {place[1:]: row["columns"] for place, row in self._rows.items() if place[0] == part}

    def commits(self, part: str) -> dict[str, int]:
        """Return how many rows of a part were measured at which commit."""
        own = [row["commit"] for row in self._rows.values() if row["part"] == part]
        return {commit: own.count(commit) for commit in dict.fromkeys(own)}


class Bar(NamedTuple):
    """What was asked for, and what was measured: ``None`` before it is."""

    name: str
    asked: str
    measured: str | None
    met: bool | None


def at_most(name: str, bar: float, value: float | None, digits: int = 2) -> Bar:
    """Return a bar that a value must not exceed."""
    return Bar(name, f"≤ {bar:g}", *_compared(value, digits, value is not None and value <= bar))


def at_least(name: str, bar: float, value: float | None, digits: int = 2) -> Bar:
    """Return a bar that a value has to reach."""
    return Bar(name, f"≥ {bar:g}", *_compared(value, digits, value is not None and value >= bar))


def between(name: str, low: float, high: float, value: float | None, digits: int = 2) -> Bar:
    """Return a bar between whose ends a value has to lie."""
    return Bar(name, f"{low:g} to {high:g}", *_compared(value, digits, value is not None and low <= value <= high))


def _compared(value: float | None, digits: int, met: bool) -> tuple[str | None, bool | None]:
    return (None, None) if value is None else (f"{value:.{digits}f}", bool(met))


def tell_bars(record: Recording, every: list[Bar]) -> None:
    """Record the bars, whether they are met or not."""
    record.section("Bars")
    record.table("bars", [{"bar": one.name, "asked for": one.asked, "measured": one.measured or "not measured",
                           "met": {True: "yes", False: "**no**", None: ""}[one.met]} for one in every])  # fmt: skip
    missed = [f"{one.name} ({one.measured}, asked for {one.asked})" for one in every if one.met is False]
    record.say(f"Missed: {'; '.join(missed)}." if missed else "None that was measured is missed.")


def tell_commits(record: Recording, kept: Kept, parts: Sequence[str]) -> None:
    """Record at which commits the rows of parts were measured."""
    commits = {part: kept.commits(part) for part in parts}
    record.table("commits", [{"part": part, "rows": sum(own.values()), "commits": ", ".join(own)}
                             for part, own in commits.items() if own])  # fmt: skip


def run_parts(
    name: str, title: str, arguments: argparse.Namespace, measures: Callable[[Kept], Mapping[str, Callable[[], Any]]],
    tell: Callable[[Recording, Kept], None],
) -> None:  # fmt: skip
    """Measure the parts that are asked for, of what is not kept, and write the report from all that is kept."""
    kept = Kept((arguments.output or RESULTS / name) / "rows.jsonl", again=arguments.again)
    parts = measures(kept)
    for part in arguments.only:
        parts[part]()
    record = Recording(name, title, arguments.command, arguments.output)
    tell(record, kept)
    record.write()


def _plain(value: Any) -> Any:
    """Return what JSON knows: NumPy numbers as Python's, values that are not finite as None; so in lists, too."""
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
