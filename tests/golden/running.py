"""Record the figures of a member, and check them."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from consilience import models
from tests.golden.asks import SETTINGS, figures_of, fitted, parts
from tests.golden.cases import CASES, Case
from tests.golden.figures import Figure, difference, with_spread

__all__ = ["FOLDER", "check", "record"]

FOLDER = Path(__file__).parent / "figures"
# Runs with other seeds, from which the Monte Carlo errors are known.
_OTHER_SEEDS = (1, 2, 3)


def _runs(member: str) -> Iterator[tuple[str, Case, str]]:
    """Yield the name of each run, its case and its method."""
    for name, case in CASES[member].items():
        for method in case.methods or models.member(member).methods:
            yield f"{name} {method}", case, method


def record(member: str) -> None:
    """Write the figures of a member, as they are now."""
    runs = {}
    for run, case, method in _runs(member):
        began, study = time.perf_counter(), case.study()
        fit = fitted(member, case, study, method, 0)
        sites, tables = list(parts(fit.posterior)), list(fit.member.table_names)
        figures = figures_of(fit, study, sites, tables)
        others = [
            figures_of(fitted(member, case, study, method, seed), study, sites, tables) for seed in _OTHER_SEEDS
        ]
        runs[run] = {
            "sites": sites, "tables": tables,
            "figures": {
                name: with_spread(figure, [other.get(name) for other in others]) for name, figure in figures.items()
            },
        }  # fmt: skip
        refused = sum("refused" in figure for figure in figures.values())
        print(
            f"{member}, {run}: {len(figures)} figures, {refused} refused, {time.perf_counter() - began:.1f} s",
            flush=True,
        )
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{member}.json").write_text(_written({"settings": SETTINGS, "runs": runs}), encoding="utf-8")


def _written(content: dict[str, Any]) -> str:
    """Return JSON with one line a figure, so that a change of one is seen as one."""
    lines = ["{", f'"settings": {json.dumps(content["settings"])},', '"runs": {']
    for number, (run, found) in enumerate(content["runs"].items()):
        lines += [f"{json.dumps(run)}: {{", *(f'"{part}": {json.dumps(found[part])},' for part in ("sites", "tables"))]
        figures = [
            f"{json.dumps(name)}: {json.dumps(figure, separators=(',', ':'))}"
            for name, figure in found["figures"].items()
        ]
        lines += ['"figures": {', ",\n".join(figures), "}", "}," if number < len(content["runs"]) - 1 else "}"]
    return "\n".join([*lines, "}", "}", ""])


def check(member: str, *, strict: bool = False) -> bool:
    """Fit a member anew, print what differs, and return whether all figures hold."""
    path = FOLDER / f"{member}.json"
    if not path.exists():
        print(f"{member}: nothing is recorded; python -m tests.golden record {member}")
        return False
    recorded, holds = json.loads(path.read_text(encoding="utf-8"))["runs"], True
    known = {run: (case, method) for run, case, method in _runs(member)}
    for run in dict.fromkeys([*recorded, *known]):
        if run not in recorded or run not in known:
            print(f"{member}, {run}: {'not recorded' if run in known else 'recorded, and there is no such run'}")
            holds = False
            continue
        began, (case, method) = time.perf_counter(), known[run]
        holds &= _check_run(f"{member}, {run}", recorded[run], member, case, method, began, strict)
    return holds


def _check_run(
    title: str, recorded: dict[str, Any], member: str, case: Case, method: str, began: float, strict: bool
) -> bool:
    study = case.study()
    try:
        fit = fitted(member, case, study, method, 0)
    except Exception as problem:
        print(f"{title}: no fit: {type(problem).__name__}: {problem}")
        return False
    now = figures_of(fit, study, recorded["sites"], recorded["tables"])
    found = {name: difference(figure, _like(name, now)) for name, figure in recorded["figures"].items()}
    number = Counter(one.verdict for one in found.values())
    parts = [
        f"{number[verdict]} {words}" for verdict, words in (
            ("bits", "equal to the bit"), ("close", "within 1e-6"), ("noise", "within Monte Carlo error"),
            ("answers", "answered that were refused"), ("beyond", "DIFFER"),
        ) if number[verdict]
    ]  # fmt: skip
    print(f"{title}: {', '.join(parts)} ({time.perf_counter() - began:.1f} s)", flush=True)
    for verdict in ("answers", "noise", "beyond"):
        for name, one in found.items():
            if one.verdict == verdict:
                print(f"    {'  ' if verdict != 'beyond' else '! '}{name}: {one.words}")
    return not number["beyond"] and not (strict and number["noise"])


def _like(name: str, now: dict[str, Figure]) -> Figure | None:
    """Return the figure of a name; of a whole ask that was refused or is now, what stands for it."""
    if name in now:
        return now[name]
    for other, figure in now.items():
        if name.startswith(f"{other}.") and "refused" in figure:  # it was answered in parts
            return figure
        if other.startswith(f"{name}."):  # it was refused as a whole
            return figure
    return None
