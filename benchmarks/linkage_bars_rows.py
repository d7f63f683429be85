"""What `linkage_bars` measures in a fresh process: `python -m benchmarks.linkage_bars_rows PART …` prints a JSON line.

CPU seconds are of the process and of all that it started, such as the JVM of Spark.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

SIMULATED = {
    "num_values": (300, 800, 90, 12, 28, 100), "exponent": (1.0, 0.9, 0.1, 0.0, 0.0, 0.6),
    "size_share": (0.75, 0.19, 0.06), "distortion": 0.05,
}  # fmt: skip
_TICKS = os.sysconf("SC_CLK_TCK")


def _tree_seconds() -> float:
    """Return the CPU seconds of this process and of all below it, living and waited for."""
    parent, used = dict[int, int](), dict[int, float]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = path.read_text().rpartition(")")[2].split()
            own = int(path.parent.name)
            parent[own], used[own] = int(words[1]), sum(map(int, words[11:15])) / _TICKS
    mine = {os.getpid()}
    while more := {own for own, above in parent.items() if above in mine} - mine:
        mine |= more
    return sum(used[own] for own in mine if own in used)


def _peak_mb() -> float:
    (peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) * 1024 / 1e6


@contextlib.contextmanager
def _measured(row: dict[str, Any], name: str = "") -> Iterator[None]:
    wall, cpu = time.perf_counter(), _tree_seconds()
    yield
    row[f"{name}CPU s"], row[f"{name}wall s"] = _tree_seconds() - cpu, time.perf_counter() - wall


def scores(fit: Any, entity: Any) -> dict[str, float]:
    """Return precision, recall and F1 of pairs, and the number of clusters, of the table of entities."""
    table = fit.entities().set_index("record")["entity"]
    found = table.reindex([str(one) for one in entity.index]).to_numpy()
    return _pairwise(found, entity.to_numpy())


def _pairwise(found: Any, true: Any) -> dict[str, float]:
    import pandas

    codes = [pandas.factorize(np.asarray(one, object))[0].astype(np.int64) for one in (found, true)]
    both = codes[0] * (codes[1].max() + 1) + codes[1]
    right, ours, theirs = (_pairs(one) for one in (both, *codes))
    precision, recall = right / max(ours, 1), right / max(theirs, 1)
    return {
        "P": precision, "R": recall, "F1": 2 * right / max(ours + theirs, 1), "clusters": int(codes[0].max() + 1),
        "true": int(codes[1].max() + 1),
    }  # fmt: skip


def _pairs(code: np.ndarray) -> float:
    number = np.unique(code, return_counts=True)[1].astype(float)
    return float((number * (number - 1) / 2).sum())


def _number(fit: Any) -> dict[str, Any]:
    """Return the number of entities as it is printed by default, with its label."""
    count = fit.num_entities()
    low, high = count.interval if count.interval is not None else (np.nan, np.nan)
    return {"mean": float(count.value), "low": float(low), "high": float(high), "said": " ".join(str(count).split())}


def _frame(path: str, *drop: str) -> Any:
    import pandas

    frame = pandas.read_csv(path, dtype=str, keep_default_na=False)
    return frame.drop(columns=list(drop))


def link_file(path: str, identity: str, truth: str, drop: str, words: str) -> dict[str, Any]:
    """Link a CSV file by default, or with settings as JSON, and score it.

    Parameters
    ----------
    path : of the file.
    identity, truth : the columns of the record and of its entity.
    drop : columns that are left out, with commas between them.
    words : settings of `link`, a JSON object.
    """
    import consilience as cs

    frame = _frame(path)
    entity = frame.set_index(identity)[truth]
    frame = frame.drop(columns=[truth, *filter(None, drop.split(","))])
    row: dict[str, Any] = {}
    with _measured(row), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fit = cs.link(frame, id=identity, **json.loads(words))
    row |= scores(fit, entity)
    row |= _number(fit)
    row["warnings"] = [str(one.message)[:300] for one in said]
    loss = fit.loss().set_index("quantity")["value"]
    return row | {"disagreement": float(loss["disagreement"])}


def repeated(distortion: str, words: str) -> dict[str, Any]:
    """Link one record 40 times for each of 30 people, five fields."""
    import consilience as cs

    own = {**SIMULATED, "num_values": SIMULATED["num_values"][:5], "exponent": SIMULATED["exponent"][:5]}
    if float(distortion):
        own |= {"size_share": [0] * 39 + [1.0], "distortion": float(distortion)}
        records = cs.simulate_records(1200, seed=3, **own)
        columns, entity = {name: records.column(name) for name in records.fields}, np.asarray(records.entity)
    else:
        records = cs.simulate_records(30, seed=3, **{**own, "size_share": [1.0]})
        columns = {name: np.repeat(records.column(name), 40) for name in records.fields}
        entity = np.repeat(np.arange(30), 40)
    import pandas

    frame = pandas.DataFrame({"id": [f"r{place}" for place in range(1200)], **columns})
    row: dict[str, Any] = {}
    for name in ("first, ", "second, "):
        with _measured(row, name):
            fit = cs.link(frame, **json.loads(words))
    return row | scores(fit, pandas.Series(entity, index=frame["id"])) | _number(fit)


def formats() -> dict[str, Any]:
    """Link two tables of 300 people that share 100, written in other ways: the case of the specification, made anew."""
    import pandas

    import consilience as cs

    random = np.random.default_rng(11)
    first = ["José", "Łukasz", "Zoë", "Björn", "Anaïs", "Søren", "François", "Márta", "Ana", "Max", "Eva", "Ida", "Jan",
             "Lea", "Tom", "Ben", "Mia", "Noah", "Emma", "Paul"]  # fmt: skip
    last = ["Müller", "O'Neil", "Nuñez", "Weiß", "Ångström", "Dvořák", "Smith", "Jean-Luc", "García", "Novák",
            "Schröder", "Kovács", "Brown", "Jones", "Lopez", "Silva", "Öztürk", "Meyer"]  # fmt: skip
    city = ["Köln", "São Paulo", "Kraków", "London", "Paris", "Graz", "Zürich", "Málaga"]
    number = 500
    people = pandas.DataFrame({
        "first": random.choice(first, number), "last": random.choice(last, number),
        "born": pandas.to_datetime(random.integers(0, 20_000, number), unit="D", origin="1940-01-01"),
        "phone": [f"+44 20 {a:04d} {b:04d}" for a, b in random.integers(1000, 9999, (number, 2))],
        "city": random.choice(city, number),
    })  # fmt: skip
    left, right = people.iloc[:300].copy(), people.iloc[200:].copy()
    right["first"] = [_plain(name).upper() for name in right["first"]]
    right["last"] = [_plain(name).replace("'", "’").lower() for name in right["last"]]
    right["city"] = [_plain(name) + " " for name in right["city"]]
    right["phone"] = ["0" + text[4:].replace(" ", "") for text in right["phone"]]
    right["born"] = right["born"].dt.strftime("%d/%m/%Y")
    left.insert(0, "id", [f"a{place}" for place in range(300)])
    right.insert(0, "id", [f"b{place}" for place in range(300)])
    row: dict[str, Any] = {}
    with _measured(row), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = cs.link({"a": left, "b": right})
    groups = fit.entities().groupby("entity")["record"].agg(set)
    true = {frozenset((f"a{200 + place}", f"b{place}")) for place in range(100)}
    several = [frozenset(own) for own in groups if len(own) > 1]
    return row | {"links of 100": sum(own in true for own in several), "wrong": sum(own not in true for own in several)}


def _plain(name: str) -> str:
    import unicodedata

    name = name.replace("Ł", "L").replace("ł", "l").replace("ø", "o").replace("ß", "ss")
    return "".join(one for one in unicodedata.normalize("NFD", name) if not unicodedata.combining(one))


def coverage(first: str, last: str, records: str, likelihood: str) -> dict[str, Any]:
    """Count how often the interval that is printed by default holds the true number, on simulated sets."""
    import jax

    import consilience as cs

    programs: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, duration, **_: programs.append(event) if event.endswith("backend_compile_duration") else None
    )
    held, bias, width, seconds = [], [], [], []
    for seed in range(int(first), int(last)):
        data = cs.simulate_records(int(records), seed=seed, **SIMULATED)
        true = len(np.unique(np.asarray(data.entity)))
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = cs.fit("block-linkage", data, **({"likelihood": likelihood} if likelihood else {}))
            count = fit.num_entities()
        seconds.append(time.process_time() - began)
        low, high = count.interval
        held.append(low <= true <= high)
        bias.append(float(count.value) - true)
        width.append(float(high - low))
    return {
        "sets": len(held), "held": int(sum(held)), "bias": float(np.mean(bias)), "sd of bias": float(np.std(bias)),
        "width": float(np.mean(width)), "CPU s, first": seconds[0], "CPU s, later": float(np.mean(seconds[1:] or [0])),
        "programs of XLA": len(programs), "said": " ".join(str(count).split()),
    }  # fmt: skip


def candidates(records: str, engine: str, settings: str) -> dict[str, Any]:
    """Find candidates with an engine and with NumPy, at starting values and the threshold 6, and compare them.

    Parameters
    ----------
    records : how many are simulated.
    engine, settings : its name, and a JSON object.
    """
    import consilience as cs
    from consilience.models.block_linkage.em import candidates as found_by
    from consilience.models.block_linkage.likelihoods import LIKELIHOODS
    from consilience.models.block_linkage.starting import starting_parameters

    data = cs.simulate_records(int(records), seed=7, **SIMULATED)
    given = (data, starting_parameters(data, 6), LIKELIHOODS["hit-miss"], 6.0, "none")
    expected, made, row = found_by(*given), getattr(cs.engines, engine)(**json.loads(settings)), dict[str, Any]()
    with _measured(row):
        found = found_by(*given, made)
    same = all(np.array_equal(one, other) for one, other in zip(found[:2], expected[:2], strict=True))
    apart = float(np.abs(found.log_odds - expected.log_odds).max()) if same else np.nan
    return {"pairs": len(found.first), "of NumPy": len(expected.first), "same": same, "log odds apart": apart, **row}


def whole(path: str, engine: str, settings: str) -> dict[str, Any]:
    """Link a Parquet file with an engine, and score it.

    Parameters
    ----------
    path : with the columns id, fields, entity.
    engine : its name.
    settings : of the engine, a JSON object.
    """
    import pyarrow.parquet

    import consilience as cs

    row: dict[str, Any] = {}
    with _measured(row, "whole, "):
        made = getattr(cs.engines, engine)(**json.loads(settings)) if engine != "local" else "local"
        with _measured(row):
            table = cs.link(path, entity="entity", engine=made).entities()
    row["peak, MB"] = _peak_mb()
    table = table if engine == "local" else table.to_arrow().to_pandas()
    truth = pyarrow.parquet.read_table(path, columns=["id", "entity"]).to_pandas()
    found = table.set_index(table["record"].astype(str))["entity"].reindex(truth["id"].astype(str)).to_numpy()
    return row | _pairwise(found, truth["entity"].to_numpy())


def command(path: str, *words: str) -> dict[str, Any]:
    """Run `consilience link` on a file, as it is typed."""
    row: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, _measured(row):
        sys.argv = ["consilience", "link", path, *words, "-o", f"{folder}/linked"]
        from consilience.cli import main

        row["exit"] = int(main() or 0)
    return row | {"peak, MB": _peak_mb()}


PARTS: dict[str, Callable[..., dict[str, Any]]] = {
    "link": link_file, "repeated": repeated, "formats": formats, "coverage": coverage, "whole": whole,
    "candidates": candidates, "command": command,
}  # fmt: skip

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(PARTS[sys.argv[1]](*sys.argv[2:]), default=float))
