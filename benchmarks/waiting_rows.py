"""What `python -m benchmarks waiting` measures, each row in a process of its own: ``waiting_rows.py ROW WORD…``.

Nothing but the public library is used, so that an earlier checkout can be measured by the same file. A row prints one
JSON object on its last line. CPU seconds count every core, user and system.
"""

from __future__ import annotations

import contextlib
import functools
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

from benchmarks.speed import peak_memory_mb, timed

LABELS, _PER_ITEM, _ANNOTATORS, _DRAWS = 5, 5, 1000, 1000

# Of two data sets of like size: items, annotators, annotations.
_LIKE = (2_003, 40, 9_300), (1_990, 39, 9_250)

# Of rows on growth, how many draws or steps: the same at every size.
_STEPS = 20
_SMALL = 5_000


def drawn_columns(items: int, annotators: int, number: int, labels: int = 4, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Draw item, annotator and label of annotations; annotators are right with a probability between .5 and .95."""
    random = np.random.default_rng(seed)
    item, annotator = np.sort(random.integers(0, items, number)), random.integers(0, annotators, number)
    truth = random.integers(0, labels, items)
    right = random.random(number) < random.uniform(0.5, 0.95, annotators)[annotator]
    return item, annotator, np.where(right, truth[item], random.integers(0, labels, number))


def _of_columns(columns: tuple[np.ndarray, ...], items: int, annotators: int, labels: int) -> Any:
    import consilience as cs

    return cs.Annotations.from_codes(*columns, num_items=items, num_annotators=annotators, num_labels=labels)


def annotations(number: int) -> Any:
    """Return annotations of `_PER_ITEM` to an item, by `_ANNOTATORS`."""
    items = number // _PER_ITEM
    columns = drawn_columns(items, _ANNOTATORS, number, LABELS)
    return _of_columns((np.repeat(np.arange(items), _PER_ITEM), *columns[1:]), items, _ANNOTATORS, LABELS)


def _fitted(number: int) -> tuple[Any, dict[str, float]]:
    import consilience as cs

    data, made = annotations(number), {}

    def fit() -> None:
        made["fit"] = cs.fit("dawid-skene", data, method="cavi", draws=_DRAWS, progress=False)

    wall, cpu = timed(fit)
    return made["fit"], {"fit, CPU s": cpu, "fit, wall s": wall}


def _calls(fit: Any, folder: str) -> dict[str, Callable[[], Any]]:
    import consilience as cs

    names, random = [str(label) for label in range(LABELS)], np.random.default_rng(0)
    truth = np.asarray(fit.truth.untempered).argmax(axis=1)
    right = random.random((3, len(truth))) < [[0.6], [0.7], [0.8]]
    codes = np.where(right, truth, random.integers(0, LABELS, right.shape))
    systems = {f"system {place}": cs.Predictions.from_scores(np.eye(LABELS)[own], classes=names)
               for place, own in enumerate(codes)}  # fmt: skip
    numbered = iter(range(1000))
    return {
        "certainty": lambda: cs.certainty(fit),
        "compare": lambda: cs.compare(fit, systems),
        "report": lambda: cs.report(fit, path=Path(folder) / f"{next(numbered)}.html"),
        "save": lambda: fit.save(Path(folder) / f"fit-{next(numbered)}"),
    }


def after(name: str, number: str) -> dict[str, Any]:
    """Measure what follows a fit, as a share of it."""
    fit, measured = _fitted(int(number))
    with tempfile.TemporaryDirectory() as folder:
        wall, cpu = timed(_calls(fit, folder)[name])
    return measured | {
        f"{name}, CPU s": cpu, f"{name}, wall s": wall, "of the fit": cpu / measured["fit, CPU s"],
        "peak, MB": peak_memory_mb(),
    }  # fmt: skip


@contextlib.contextmanager
def _programs() -> Iterator[list[float]]:
    """Collect the seconds of every program that is compiled meanwhile."""
    import jax

    seconds: list[float] = []
    is_open = True

    def listen(event: str, duration: float, **_: Any) -> None:
        if is_open and event == "/jax/core/compile/backend_compile_duration":
            seconds.append(duration)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield seconds
    is_open = False


def second(member: str, method: str) -> dict[str, Any]:
    """Measure a first fit of a process, and that of another data set of like size."""
    import consilience as cs

    measured: dict[str, Any] = {}
    for name, (items, annotators, number) in zip(("first", "second"), _LIKE, strict=True):
        data = _of_columns(drawn_columns(items, annotators, number), items, annotators, 4)
        with _programs() as compiled:
            call = functools.partial(cs.fit, member, data, method=method, progress=False)
            _, measured[f"{name}, CPU s"] = timed(call)
        measured[f"{name}, programs"] = len(compiled)
    return measured | {"of the first": measured["second, CPU s"] / measured["first, CPU s"]}


def first(path: str) -> dict[str, Any]:
    """Measure a whole script: imports, a file of annotations, labels; with kept programs where there is a folder."""
    import consilience as cs

    if "KEPT" in os.environ:
        cs.keep_compiled(os.environ["KEPT"])
    imported = time.process_time()
    fit = cs.fit("dawid-skene", cs.read_annotations(path), method="cavi", progress=False)
    fit.labels()
    return {"imports, CPU s": imported, "script, CPU s": time.process_time()}


def plackett_luce(reliability: str, another: str) -> dict[str, Any]:
    """Measure the dermatology cases: a warm fit by one chain, and what another reliability compiles."""
    import consilience as cs

    cases, measured = cs.load("dermatology-ddx"), {}

    def fit(value: float) -> None:
        settings = {"chains": 1, "warmup": 500, "draws": 1000, "progress": False}
        cs.fit("plackett-luce", cases, method="gibbs", reliability=value, **settings)

    _, measured["first, CPU s"] = timed(functools.partial(fit, float(reliability)))
    _, measured["warm, CPU s"] = timed(functools.partial(fit, float(reliability)))
    with _programs() as compiled:
        _, measured["another reliability, CPU s"] = timed(functools.partial(fit, float(another)))
    return measured | {"another reliability, programs": len(compiled)}


def reliabilities(*values: str) -> dict[str, Any]:
    """Measure a sweep over reliabilities beside warm fits of each, and the programs of the sweep."""
    import consilience as cs

    cases, own = cs.load("dermatology-ddx"), [float(value) for value in values]
    settings: dict[str, Any] = {"method": "gibbs", "chains": 1, "warmup": 500, "draws": 1000, "progress": False}
    with _programs() as compiled:
        cs.fit("plackett-luce", cases, reliability=own[0], **settings)
        first = len(compiled)
        for value in own[1:]:
            cs.fit("plackett-luce", cases, reliability=value, **settings)
    fits = [timed(lambda value=value: cs.fit("plackett-luce", cases, reliability=value, **settings))[1]
            for value in own]  # fmt: skip
    _, swept = timed(lambda: cs.sweep("plackett-luce", cases, own, **settings))
    return {
        "programs, the first": first, "programs, all others": len(compiled) - first, "fits, CPU s": sum(fits),
        "sweep, CPU s": swept, "of the fits": swept / sum(fits),
    }  # fmt: skip


def padding(name: str, items: str) -> dict[str, Any]:
    """Measure a step of data a little larger than a padded size, beside one at the exact size."""
    import consilience as cs
    from consilience.models import rows

    data, found = annotations(_PER_ITEM * int(items)), {}
    for words, padded in (("padded", True), ("exact", False)):
        with rows.padding(padded):
            seconds, steps = [], []
            for most in (_STEPS, 2 * _STEPS):
                made: dict[str, Any] = {}

                def fit(most: int = most, made: dict[str, Any] = made) -> None:
                    made["fit"] = cs.fit(name, data, method="cavi", tolerance=0.0, max_steps=most, progress=False)

                seconds.append(min(timed(fit)[1] for _ in range(4)))
                steps.append(len(made["fit"].elbo))
        found[f"{words}, CPU ms a step"] = 1e3 * (seconds[1] - seconds[0]) / (steps[1] - steps[0])
    return found | {"of the exact": found["padded, CPU ms a step"] / found["exact, CPU ms a step"]}


def update(method: str, number: str) -> dict[str, Any]:
    """Measure a fit that goes on with one row in a hundred more, beside a fresh fit of all rows."""
    import consilience as cs

    items, more = int(number) // _PER_ITEM, int(number) // 100
    columns = drawn_columns(items, _ANNOTATORS, int(number) + more, LABELS)
    late = np.zeros(len(columns[0]), bool)
    late[np.random.default_rng(1).choice(len(late), more, replace=False)] = True
    earlier, new, everything = (
        _of_columns(tuple(column[rows] for column in columns), items, _ANNOTATORS, LABELS)
        for rows in (~late, late, slice(None))
    )
    fit = functools.partial(cs.fit, "dawid-skene", method=method, progress=False)
    fresh, updated = fit(everything), fit(earlier).update(new)
    steps, others = len(fresh.elbo), len(updated.elbo)
    ends = float(fresh.elbo[-1]), float(updated.elbo[-1])
    return {
        "fresh, steps": steps, "update, steps": others, "of the fresh": others / steps,
        "objective, above the fresh by": (ends[1] - ends[0]) / abs(ends[0]),
    }  # fmt: skip


def csv(path: str) -> dict[str, Any]:
    """Measure reading a file of annotations, twice."""
    import consilience as cs
    from consilience.data import tables  # noqa: F401

    before, measured = peak_memory_mb(), {}
    for words in ("first read", "second read"):  # the first imports what reads
        measured[f"{words}, wall s"], measured[f"{words}, CPU s"] = timed(lambda: cs.read_annotations(path))
    return measured | {"peak above imports, MB": peak_memory_mb() - before}


def devices(number: str, method: str) -> dict[str, Any]:
    """Measure how far an ascent of MACE on one device and on four of a CPU agree, where it stops by itself."""
    import jax

    jax.config.update("jax_num_cpu_devices", 4)
    import consilience as cs

    data = _of_columns(drawn_columns(int(number) // 5, 40, int(number)), int(number) // 5, 40, 4)
    fits = [cs.fit("mace", data, method=method, devices=count, progress=False) for count in (1, 4)]
    one, four = (np.asarray(fit.truth.untempered) for fit in fits)
    steps = [len(fit.elbo) for fit in fits]
    return {
        "steps, one device": steps[0], "steps, four": steps[1], "probabilities apart": float(np.abs(one - four).max())
    }  # fmt: skip


def memory(path: str, number: str) -> dict[str, Any]:
    """Measure the peak of a whole process from Parquet to labels, above what its imports take, and its way there."""
    import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import consilience as cs

    cs.fit("dawid-skene", annotations(_SMALL), method="cavi", progress=False)  # JAX's own
    before, each, peaks = peak_memory_mb(), 1e6 / int(number), dict[str, float]()

    def passed(stage: str) -> None:
        peaks.setdefault(f"{stage}, B an annotation", (peak_memory_mb() - before) * each)

    data = cs.read_annotations(path)
    passed("read")
    fit = cs.fit("dawid-skene", data, method="cavi", progress=lambda *_: passed("first chunk"))
    passed("fit")
    fit.labels()
    passed("peak")
    return {"imports, MB": before, **peaks}


def _of_member(name: str, number: int) -> tuple[Any, dict[str, Any]]:
    """Return so many rows or cases, and what keeps the work of a fit to them the same at every size."""
    import jax

    from consilience.models import member

    key, steps, draws = jax.random.key(0), {"max_steps": _STEPS}, {"draws": _STEPS, "warmup": 0, "chains": 1}
    model, method = name.split()
    if model in ("irn", "prirn", "plackett-luce"):
        data = member("plackett-luce").simulate(key, num_items=number)[0]
        return data, draws if method == "gibbs" else {"draws": 100}
    if model == "normal-inverse-gamma":
        return member(model).simulate(key, num_items=number)[0], {"draws": 100, "threshold": 0.0}
    if model in ("block-linkage", "dirichlet-entity", "hit-miss"):
        # As many pairs of a record agree at all sizes: of values as frequent as names are, it would be ever more.
        values = number // 4, number // 5, number // 6, number // 10, number // 12
        data = member("block-linkage").simulate(key, num_records=number, num_values=values, exponent=0.0)[0]
        return data, {"em": {}, "cavi": {"max_steps": 2}, "gibbs": draws}[method]
    if model == "expert-views":
        sizes = {"num_items": number, "num_experts": 20, "num_pairs": 5 * number}
        settings = {**steps, "restarts": 1} if method == "cavi" else draws
        return member(model).simulate(key, clusters=3, **sizes)[0], {"clusters": 3, **settings}
    return annotations(number), {"exact": {}, "gibbs": draws}.get(method, steps)


def growth(what: str, number: str) -> dict[str, Any]:
    """Measure a fit by a member and a method, made before, or what follows a fit, called before for a small one."""
    import consilience as cs

    if " " not in what:
        with tempfile.TemporaryDirectory() as folder:
            _calls(_fitted(_SMALL)[0], folder)[what]()
        with tempfile.TemporaryDirectory() as folder:
            return {"CPU s": timed(_calls(_fitted(int(number))[0], folder)[what])[1]}
    data, settings = _of_member(what, int(number))
    model, method = what.split()
    call = functools.partial(cs.fit, model, data, method=method, progress=False, **settings)
    timed(call)
    return {"CPU s": timed(call)[1]}


_ROWS: dict[str, Callable[..., dict[str, Any]]] = {
    "after": after, "second": second, "first": first, "plackett-luce": plackett_luce, "csv": csv, "devices": devices,
    "memory": memory, "growth": growth, "reliabilities": reliabilities, "padding": padding, "update": update,
}  # fmt: skip

if __name__ == "__main__":
    sys.path.pop(0)  # The folder of this file: numba would take its module `coverage` for the package of that name.
    warnings.simplefilter("ignore")
    print(json.dumps(_ROWS[sys.argv[1]](*sys.argv[2:])))
