"""What surrounds the program, as hostile as it gets: each part in a process of its own, also as nobody in particular.

``tracebacks``, ``hangs`` and ``silent errors`` are to be none, killed runs identical to those left alone, and payloads
in names never run. Parts that need root, a browser, Spark or other interpreters are measured where there is one.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.hostile_runs import SAMPLERS
from benchmarks.recording import Bar, Kept, Recording, run_parts, tell_bars, tell_commits
from benchmarks.speed import last_line

PARTS = (
    "outputs", "full", "inputs", "changing", "names", "kills", "signals", "writers", "resumed", "forged", "memory",
    "fits", "threads", "forked", "notebook", "install", "bounds",
)  # fmt: skip
_ROOT = Path(__file__).parents[1]
_BY_USER = ("outputs", "full", "inputs", "changing")
_NOBODY = 65534
_FORGED, _READS, _FITS, _MEGABYTES = 400, 200, 500, (400, 800, 1600, 3200, 6400)
_BOUNDS_TESTS = (
    "tests/consilience/test_output.py", "tests/consilience/test_command_outputs.py", "tests/consilience/test_cli.py",
    "tests/consilience/test_link_command.py", "tests/inference/test_saved.py", "tests/inference/test_fitting.py",
    "tests/inference/test_gibbs.py", "tests/inference/test_nuts.py", "tests/inference/test_svi.py",
)  # fmt: skip

_USED = (
    "--version", "demo -o demo.html", "data example sample", "fit dawid-skene sample/labels.csv --quiet -o run",
    "report run -o page.html", "link sample/clinic.csv sample/register.csv --quiet -o linked",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--again", action="store_true", help="measure anew what is kept of earlier runs")
    parser.add_argument("--kills", type=int, default=20, metavar="N", help="of each sampler and engine (20)")
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, metavar="NAME", help="those of the part kills (all)")
    parser.add_argument("--browser", default="", metavar="COMMAND", help="Chromium, which opens the pages of names")


def run(arguments: argparse.Namespace) -> None:
    """Measure the parts that are asked for, and record all that is kept."""

    def measures(kept: Kept) -> dict[str, Callable[[], Any]]:
        return {name: functools.partial(_measure, name, kept, arguments) for name in PARTS}

    run_parts("hostile", "Hostile surroundings", arguments, measures, _tell)


def _measure(part: str, kept: Kept, arguments: argparse.Namespace) -> None:
    if part in ("install", "bounds"):
        kept.row(part, (part,), {"install": _installed, "bounds": _lowest}[part])
        return
    with _prepared() as made:
        if part in _BY_USER:
            for user in ("nobody", "root") if os.geteuid() == 0 else ("user",):
                kept.row(part, (user,), functools.partial(_by_user, part, made, user))
        elif part == "names":
            kept.row(part, (part,), lambda: _row("files", part, made, arguments.browser))
        elif part == "kills":
            for sampler in arguments.samplers or SAMPLERS:
                if sampler.endswith("spark") and not _has("pyspark"):
                    continue
                kept.row(part, (sampler,), functools.partial(_row, "runs", part, made, sampler, arguments.kills))
        elif part == "signals":
            for kind in ("SIGINT", "SIGTERM"):
                kept.row(part, (kind,), functools.partial(_row, "runs", part, made, kind, arguments.kills))
        else:
            more = {"writers": (10,), "forged": (_FORGED,), "memory": _MEGABYTES, "fits": (_FITS,), "threads": (4,)}
            kept.row(part, (part,), lambda: _row("runs", part, made, *more.get(part, ())))


def _has(package: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(package) is not None


@contextlib.contextmanager
def _prepared() -> Iterator[Path]:
    """Make inputs of all commands, and fits of them, in a folder that everybody may write to."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "made")
        made.mkdir()
        _row("files", "prepare", made)
        subprocess.run(["chmod", "-R", "a+rwX", folder], check=True)
        try:
            yield made
        finally:
            subprocess.run(["chmod", "-R", "u+rwX", folder], check=True)


def _row(module: str, part: str, made: Path, *more: Any, before: tuple[str, ...] = ()) -> dict[str, Any]:
    words = [sys.executable, "-W", "ignore", "-m", f"benchmarks.hostile_{module}", part, str(made), *map(str, more)]
    environment = {**os.environ, "PYTHONPATH": str(_ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return last_line([*before, *words], environment=environment)


def _by_user(part: str, made: Path, user: str) -> dict[str, Any]:
    """Measure a part as a user: by ``setpriv`` as nobody in particular, with a small disk that is mounted for it."""
    before = ("setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups") if user == "nobody" else ()
    if part == "changing":
        return _row("files", part, made, _READS, before=before)
    if part != "full":
        return _row("files", part, made, before=before)
    disk = made.parent / f"disk-{user}"
    disk.mkdir()
    mounted = os.geteuid() == 0 and not subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k,mode=777", "tmpfs", disk], capture_output=True, check=False
    ).returncode  # fmt: skip
    try:
        if mounted:
            with contextlib.suppress(OSError), open(disk / "filled", "wb", 0) as file:
                while True:
                    file.write(bytes(1024))
        return _row("files", part, made, disk if mounted else "", before=before)
    finally:
        if mounted:
            subprocess.run(["umount", disk], check=True)


# ---- what is installed ----


def _environment(folder: Path, packages: list[str]) -> Path:
    """Make a virtual environment with packages, and return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True, stderr=subprocess.DEVNULL)
    return python


def _installed() -> dict[str, Any]:
    """Build an sdist, a wheel from it, and the demo from that, in an environment that knows nothing of the checkout."""
    with tempfile.TemporaryDirectory() as folder:
        source, place = Path(folder, "source"), Path(folder)
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=_ROOT, check=True, capture_output=True).stdout
        source.mkdir()
        subprocess.run(["tar", "-x"], cwd=source, input=archive, check=True)
        builder = _environment(place / "builder", ["build"])
        subprocess.run(
            [builder, "-m", "build", "--outdir", place / "dist", source], check=True, stdout=subprocess.DEVNULL
        )
        found: dict[str, Any] = {}
        for kind in ("*.whl", "*.tar.gz"):
            package = next((place / "dist").glob(kind))
            python = _environment(place / f"use{kind[-3:]}", [str(package)])
            bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            cwd = place / f"cwd{kind[-3:]}"
            cwd.mkdir()
            codes = [
                subprocess.run(
                    [python.with_name("consilience"), *words.split()],
                    cwd=cwd,
                    env=bare,
                    capture_output=True,
                    check=False,
                ).returncode
                for words in _USED
            ]
            found |= {f"{kind} kB": package.stat().st_size >> 10, f"{kind} commands": len(codes),
                      f"{kind} succeeded": sum(code in (0, 3) for code in codes)}  # fmt: skip
        return found


def lowest(settings: dict[str, Any]) -> list[str]:
    """Return the lowest versions that the project allows, of what it needs and of what its tests need."""
    listed = [*settings["dependencies"], *settings["optional-dependencies"]["test"]]
    bounds = {match[1]: match[2] for one in listed if (match := re.fullmatch(r"([\w-]+)>=([\d.]+)", one))}
    # pip's == fills up with zeros: 2.2 is 2.2.0.
    return [f"{name}=={version}" for name, version in bounds.items()]


def _lowest() -> dict[str, Any]:
    """Run the demo and a short list of tests with the lowest versions."""
    settings = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    packages = lowest(settings)
    with tempfile.TemporaryDirectory() as folder:
        python = _environment(Path(folder, "lowest"), packages)
        environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
        demo = subprocess.run(
            [python, "-m", "consilience", "demo", "-o", f"{folder}/demo.html"],
            env=environment,
            capture_output=True,
            check=False,
        )
        # What the newest of other libraries say of the lowest is no error.
        command = [python, "-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider"]
        command += ["-W", "ignore::DeprecationWarning", *_BOUNDS_TESTS]
        tests = subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True, check=False)
    last = tests.stdout.strip().splitlines()[-1]
    count = {
        word: int(match[1]) if (match := re.search(rf"(\d+) {word}", last)) else 0
        for word in ("passed", "failed", "error")
    }
    return {"versions": ", ".join(packages), "demo": demo.returncode, **count}


# ---- the record ----


def _none(kept: Kept, name: str, parts: tuple[str, ...], columns: tuple[str, ...]) -> Bar:
    rows = [row for part in parts for row in kept.rows(part).values()]
    number = sum(row.get(column) or 0 for row in rows for column in columns)
    return Bar(name, "0", str(number) if rows else None, number == 0 if rows else None)


def _all(kept: Kept, name: str, part: str, good: str, of: str) -> Bar:
    rows = list(kept.rows(part).values())
    found, asked = sum(row[good] for row in rows), sum(row[of] for row in rows)
    return Bar(name, "all", f"{found:,} of {asked:,}" if rows else None, found == asked if rows else None)


def _bars(kept: Kept) -> list[Bar]:
    tried = tuple(part for part in PARTS if part not in ("kills", "fits", "threads", "notebook", "install", "bounds"))
    rows = kept.rows("fits").get(("fits",))
    grown, flat = None, None
    if rows is not None:
        growth = {
            name: rows[f"most {name}, second half"] / rows[f"most {name}, first half"] for name in ("MB", "mappings")
        }
        grown, flat = f"MB × {growth['MB']:.2f}, mappings × {growth['mappings']:.2f}", max(growth.values()) <= 1.1
    few = [name for (name,), row in kept.rows("kills").items() if row["kills"] < 20]
    done = len(kept.rows("kills"))
    return [
        _none(kept, "tracebacks", tried, ("tracebacks",)), _none(kept, "hangs", tried, ("hangs",)),
        _none(kept, "silent errors", tried, ("silent errors",)),
        Bar("samplers and engines killed 20 times", f"{len(SAMPLERS)}", f"{done - len(few)}" if done else None,
            done - len(few) == len(SAMPLERS) if done else None),
        _all(kept, "killed runs that end identical", "kills", "identical", "runs"),
        _all(kept, "interrupted runs that end identical", "signals", "identical", "runs"),
        Bar("growth of the most held, from 250 fits to the next 250", "within a tenth", grown, flat),
        _all(kept, "fits in threads identical", "threads", "identical", "fits"),
        _all(kept, "checks of a notebook", "notebook", "passed", "checks"),
        _none(kept, "payloads run", ("names",), ("executed", "executed in a browser")),
        _none(kept, "tests that fail with the lowest versions", ("bounds",), ("failed", "error", "demo")),
    ]  # fmt: skip


def _tell(record: Recording, kept: Kept) -> None:
    tell_bars(record, _bars(kept))
    for part in PARTS:
        rows = kept.rows(part)
        if not rows:
            continue
        record.section(part)
        plain = [{name: value for name, value in row.items() if not isinstance(value, list)} for row in rows.values()]
        record.table(part, [{"what": " ".join(key), **row} for key, row in zip(rows, plain, strict=True)])
        record.data(f"{part}, in full", [{"what": " ".join(key), **row} for key, row in rows.items()])
        wrong = [f"* {line}" for row in rows.values() for line in row.get("wrong", ())]
        if wrong:
            record.say("\n".join(wrong))
    tell_commits(record, kept, PARTS)
