"""The day with an accelerator: all that there is to measure on one, unattended, in 45 minutes.

Each line is a process of its own that is ended after four minutes, and its result is written as soon as it is there;
a later run goes on where this one was ended. Lines that time nothing run side by side. ``--small`` runs the list in
small sizes, for a test of the list on a CPU.

| part | what |
|---|---|
| a | the device, and its memory bandwidth by a copy of 4 GB |
| j | the tiny case of each member that an ascent or a closed form fits, against the CPU: the largest difference |
| b | ascents of crowds: compilation, a sweep, bytes, and the share of the bandwidth; of one also with other blocks |
| d, g | Plackett-Luce: sweeps, and certainty by draws in other blocks |
| c, e, f, h | Dawid-Skene by Gibbs; views; linkage by EM, and by Gibbs on the host; k-hat |
| i | the laws of `tests/laws` |
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.recording import RESULTS, Kept, Recording, tell_commits
from benchmarks.speed import timed

_LIMIT = 240.0
_SWEEPS = 20
_EXACTLY = 1e-4
_BLOCKS = (1 << 17, 1 << 20, 1 << 24)
_BLOCKS_OF = ("dawid-skene", "cavi")
_AT_ONCE = 8
_ASCENTS = (*((name, method) for name in ("dawid-skene", "mace") for method in ("em", "cavi")), ("mpa", "cavi"))
_BLOCK_NUMBERS = (1 << 18, 1 << 22, 1 << 26)


class Sizes(NamedTuple):
    """How much is measured: bytes that are copied, annotations, cases, chains, answers, records, draws."""

    copied: int = 4_000_000_000
    annotations: tuple[int, ...] = (1_000_000, 10_000_000, 100_000_000)
    cases: tuple[int, ...] = (1_947, 100_000)
    classes: int = 400
    chains: tuple[int, ...] = (4, 64)
    answers: int = 1_000_000
    records: int = 1_000_000
    records_of_draws: int = 100_000
    draws: int = 100


SMALL = Sizes(4_000_000, (2_000,), (20,), 10, (2,), 500, 300, 100, 5)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--small", action="store_true", help="small sizes, for a test of the list itself")
    parser.add_argument("--only", nargs="+", choices=list(_PARTS), default=list(_PARTS), metavar="PART", help="a … j")
    parser.add_argument("--minutes", type=float, default=45.0, help="after which no line is begun (45)")
    parser.add_argument("--again", action="store_true", help="measure anew what there is a row of")


def run(arguments: argparse.Namespace) -> None:
    """Measure line after line, and write the report after each."""
    sizes, end = SMALL if arguments.small else Sizes(), time.monotonic() + 60 * arguments.minutes
    kept = Kept((arguments.output or RESULTS / "device") / "rows.jsonl", again=arguments.again)

    def measured(line: tuple[str, tuple[Any, ...]]) -> dict[str, Any] | None:
        return None if time.monotonic() > end else _in_own_process(*line, arguments.small)

    for part in arguments.only:
        keys = [key for key in lines(part, sizes) if arguments.again or key not in kept.rows(part)]
        with ThreadPoolExecutor(_AT_ONCE if part == "j" else 1) as pool:
            for key, found in zip(keys, pool.map(measured, [(part, key) for key in keys]), strict=True):
                if found is None:
                    print("the time is over; run this again for the rest")
                    return
                kept.row(part, key, lambda found=found: found)
                _tell(kept, arguments)


def _tell(kept: Kept, arguments: argparse.Namespace) -> None:
    """Write the report of all that is kept."""
    record = Recording("device", "On an accelerator", arguments.command, arguments.output)
    for part, (_, title) in _PARTS.items():
        if rows := kept.rows(part):
            record.section(f"({part}) {title}")
            names = dict.fromkeys(name for row in rows.values() for name in row)
            record.table(part, [{"line": " ".join(map(str, key)), **{name: row.get(name) for name in names}}
                                for key, row in rows.items()])  # fmt: skip
    tell_commits(record, kept, list(_PARTS))
    record.write()


def lines(part: str, sizes: Sizes) -> Iterator[tuple[Any, ...]]:
    """Yield the keys of the lines of a part."""
    if part == "b":
        yield from ((*ascent, number) for number in sizes.annotations for ascent in _ASCENTS)
    elif part == "c":
        yield from ((chains,) for chains in sizes.chains)
    elif part == "d":
        yield from ((cases, chains) for cases in sizes.cases for chains in sizes.chains)
    elif part == "f":
        yield from (("em",), ("gibbs",))
    elif part == "j":
        from tests.laws.cases import CASES

        yield from ((name,) for name in CASES if name != "yes-no")
    else:
        yield ()


def _in_own_process(part: str, key: tuple[Any, ...], small: bool) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.device", part, json.dumps(key), str(int(small))]
    try:
        done = subprocess.run(
            command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=_LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"no end after {_LIMIT:.0f} s"}
    if done.returncode or not done.stdout.strip():
        told = done.stderr.strip().splitlines()
        return {"failed": told[-1][:200] if told else f"exit status {done.returncode}"}
    return json.loads(done.stdout.splitlines()[-1])


# ---- parts, each in its own process ----


def _bandwidth(sizes: Sizes) -> dict[str, Any]:
    """Return what the device is, and how fast it copies; half of the bytes are read and half written."""
    import jax
    import jax.numpy as jnp

    device = jax.devices()[0]
    told = {"backend": jax.default_backend(), "device": device.device_kind, "devices": len(jax.devices())}
    values, add = jnp.zeros(sizes.copied // 8, jnp.float32), jax.jit(lambda values: values + 1)
    add(values).block_until_ready()
    wall, _ = timed(lambda: add(values).block_until_ready())
    return {**told, "jax": jax.__version__, "GB/s": sizes.copied / wall / 1e9}


def _annotations(number: int) -> Any:
    """Simulate five annotations an item, of five labels, three quarters of them right."""
    import consilience as cs

    random, item = np.random.default_rng(0), np.arange(number, dtype=np.int32) // 5
    label = np.where(random.random(number) < 0.75, item % 5, random.integers(0, 5, number, np.int32))
    return cs.Annotations.from_codes(item, random.integers(0, 1000, number, np.int32), label, num_annotators=1000)


def _equality(sizes: Sizes, name: str) -> dict[str, Any]:
    """Return by how much the posterior of a tiny case differs from that of the CPU."""
    import jax

    import consilience as cs
    from consilience.inference.stored_posterior import posterior_arrays
    from consilience.models import member, place
    from tests.laws.cases import CASES

    case, chosen = CASES[name], member(name)
    data = case.make(getattr(importlib.import_module("consilience.data"), place(name).takes[0]))
    method = next((one for one in ("exact", "cavi", "em") if one in chosen.methods), None)
    if method is None:
        return {"method": "draws alone: not compared"}
    settings: dict[str, Any] = {**case.options, "progress": False}
    if method != "exact":
        settings |= {"dtype": "float32", "accelerate": False, "max_steps": 20}
    found = []
    for device in (jax.devices()[0], jax.devices("cpu")[0]):
        with jax.default_device(device):
            fit = cs.fit(name, data, method=method, **settings)
            found.append(posterior_arrays(fit.posterior))
    pairs = [(np.asarray(one, float), np.asarray(found[1][site], float)) for site, one in found[0].items()]
    apart = max(float(np.abs(one - other).max(initial=0)) for one, other in pairs)
    return {"method": method, "apart": apart, "equal": "yes" if apart <= _EXACTLY else "no"}


def _ascent(sizes: Sizes, name: str, method: str, number: int) -> dict[str, Any]:
    """Return what a sweep takes; under other blocks, too."""
    import jax

    from consilience.inference.ascent import _programs
    from consilience.inference.precision import in_dtype, prepared_ascent
    from consilience.models import member, rows

    ascent, chosen = member(name).engine(method), member(name)
    problem, dtype = prepared_ascent(ascent, chosen.resolve(_annotations(number)), None)
    found: dict[str, Any] = {"dtype": dtype, "block": rows.block_rows()}
    with in_dtype(dtype):
        problem = jax.device_put(problem)
        for block in (None, *(_BLOCKS if (name, method) == _BLOCKS_OF else ())):
            if block is not None:
                rows.block_rows = lambda block=block: block
            _programs.cache_clear()
            start, advance, _ = _programs(ascent, None, False)
            state = start(jax.random.key(0), problem)
            began = time.perf_counter()
            program = advance.lower(state, problem, 0, _SWEEPS).compile()
            seconds = time.perf_counter() - began
            state, _ = jax.block_until_ready(program(state, problem, 0, _SWEEPS))
            wall, _ = timed(lambda program=program, state=state: jax.block_until_ready(
                program(state, problem, _SWEEPS, 2 * _SWEEPS)))  # fmt: skip
            sweep = wall / _SWEEPS
            if block is not None:
                found[f"ms, block {block}"] = 1e3 * sweep
                continue
            size = program.memory_analysis()
            read = size.argument_size_in_bytes + size.temp_size_in_bytes
            found |= {"compile, s": seconds, "ms a sweep": 1e3 * sweep, "bytes": read, "GB/s": read / sweep / 1e9}
    return found


def _sampled(name: str, data: Any, chains: int, draws: int, **settings: Any) -> tuple[Any, dict[str, Any]]:
    """Return a fit by Gibbs sampling, the second, and what a sweep takes."""
    import consilience as cs

    fit = functools.partial(cs.fit, name, data, method="gibbs", chains=chains, draws=draws, warmup=draws,
                            progress=False, **settings)  # fmt: skip
    made: dict[str, Any] = {}
    first, _ = timed(lambda: made.update(fit=fit()))
    wall, _ = timed(lambda: made.update(fit=fit()))
    sweep = made["fit"].run.seconds / (2 * draws)
    return made["fit"], {"chains": chains, "first, s": first, "second, s": wall, "ms a sweep": 1e3 * sweep}


def _rankings(cases: int, classes: int) -> Any:
    """Draw rankings: three experts a case, each with a first choice, two that are tied, and one more."""
    import consilience as cs

    report = np.arange(3 * cases)
    first = np.random.default_rng(0).integers(0, classes, (len(report), 1))
    class_ = (first + np.arange(4) * (classes // 5)) % classes
    return cs.Rankings.from_codes(
        report // 3, report % 3, np.repeat(report, 4), np.tile([0, 1, 1, 2], len(report)), class_.ravel(),
        num_classes=classes,
    )  # fmt: skip


def _crowd(sizes: Sizes, chains: int) -> dict[str, Any]:
    return _sampled("dawid-skene", _annotations(min(sizes.annotations[0], 100_000)), chains, sizes.draws)[1]


def _plackett_luce(sizes: Sizes, cases: int, chains: int) -> dict[str, Any]:
    return _sampled("plackett-luce", _rankings(cases, sizes.classes), chains, sizes.draws)[1]


def _certainty(sizes: Sizes) -> dict[str, Any]:
    """Return what certainty by draws takes in blocks of several sizes."""
    import consilience as cs
    from consilience.models.truth import entries

    fit, _ = _sampled("plackett-luce", _rankings(sizes.cases[0], sizes.classes), 4, sizes.draws)
    found: dict[str, Any] = {"block": entries.block_numbers()}
    for numbers in _BLOCK_NUMBERS:
        entries.block_numbers = lambda numbers=numbers: numbers
        cs.certainty(fit, exact=False)
        found[f"s, block {numbers}"], _ = timed(lambda: cs.certainty(fit, exact=False))
    return found


def _views(sizes: Sizes) -> dict[str, Any]:
    """Return what CAVI of many answers takes."""
    import jax

    import consilience as cs
    from consilience.models import member

    experts = 10
    data, _ = member("expert-views").simulate(
        jax.random.key(0), num_items=max(sizes.answers // 50, 50), num_experts=experts,
        num_pairs=sizes.answers // experts, clusters=10,
    )  # fmt: skip
    return _fitted(lambda: cs.fit("expert-views", data, method="cavi", clusters=10, max_steps=_SWEEPS, progress=False))


def _linkage(sizes: Sizes, method: str) -> dict[str, Any]:
    """Return what linkage takes; its sampler runs on the host."""
    import consilience as cs

    if method == "em":
        data = cs.simulate_records(sizes.records)
        return _fitted(lambda: cs.fit("block-linkage", data, method="em", devices=1, progress=False))
    return _sampled("block-linkage", cs.simulate_records(sizes.records_of_draws), 4, sizes.draws)[1]


def _k_hat(sizes: Sizes) -> dict[str, Any]:
    """Return what k-hat takes in double precision."""
    import jax

    import consilience as cs

    with jax.enable_x64(True):
        fit = cs.fit("dawid-skene", _annotations(2_000), method="cavi", progress=False)
        wall, _ = timed(fit.k_hat)
        return {"s": wall, "k-hat": fit.k_hat()}


def _laws(sizes: Sizes) -> dict[str, Any]:
    """Return how the laws of all members end."""
    import jax

    chosen = ["-k", "dirichlet and draws"] if sizes is SMALL else []
    # Where pytest-benchmark is installed, it warns beside xdist, and a warning is an error here.
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:benchmark", "tests/laws",
                           *chosen], capture_output=True, text=True, check=False)  # fmt: skip
    return {"backend": jax.default_backend(), "pytest": done.stdout.strip().splitlines()[-1]}


def _fitted(fit: Callable[[], Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    first, _ = timed(lambda: made.update(fit=fit()))
    wall, _ = timed(lambda: made.update(fit=fit()))
    return {"first, s": first, "second, s": wall, "result": str(made["fit"].result)}


# By letter, in the order in which they are measured: what is most wanted comes first.
_PARTS: dict[str, tuple[Callable[..., dict[str, Any]], str]] = {
    "a": (_bandwidth, "The device"), "j": (_equality, "Tiny cases against the CPU"), "b": (_ascent, "Ascents"),
    "d": (_plackett_luce, "Plackett-Luce"), "g": (_certainty, "Certainty by draws"),
    "c": (_crowd, "Dawid-Skene by Gibbs sampling"), "e": (_views, "Views by CAVI"), "f": (_linkage, "Linkage"),
    "h": (_k_hat, "k-hat"), "i": (_laws, "Laws"),
}  # fmt: skip


def _main(part: str, key: str, small: str) -> None:
    found = _PARTS[part][0](SMALL if int(small) else Sizes(), *json.loads(key))
    import jax

    peak = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use")
    print(json.dumps(found if peak is None else found | {"peak, bytes": peak}))


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    _main(*sys.argv[1:])
