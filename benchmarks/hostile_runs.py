"""Runs that are killed, interrupted, repeated, starved of memory, or share a process or a folder with others.

Each command runs in a process of its own, forked from one that has imported the library and has used no device: what
is measured is what a user's process does, without the seconds of its imports.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SAMPLERS = {
    "dawid-skene gibbs": "fit dawid-skene labels.csv --method gibbs --draws 3000 --warmup 500",
    "mace gibbs": "fit mace labels.csv --method gibbs --draws 3000 --warmup 500",
    "one-coin gibbs": "fit one-coin labels.csv --method gibbs --draws 3000 --warmup 500",
    "mpa gibbs": "fit mpa mentions.csv --method gibbs --draws 3000 --warmup 500",
    "plackett-luce gibbs": "fit plackett-luce rankings.csv --method gibbs --draws 3000 --warmup 500",
    "block-linkage gibbs": "link people.csv --method gibbs --draws 2000",
    "hit-miss gibbs": "fit hit-miss people.csv --method gibbs --draws 2000 --warmup 500",
    "expert-views gibbs": "fit expert-views pairs.csv --clusters 2 --views 2 --method gibbs --draws 500 --warmup 100",
    "dawid-skene cavi": "fit dawid-skene labels.csv --method cavi --tolerance 0 --max-steps 4000",
    "mace em": "fit mace labels.csv --method em --tolerance 0 --max-steps 4000",
    "dirichlet-entity cavi": "fit dirichlet-entity people.csv --method cavi --tolerance 0 --max-steps 2000",
    "dawid-skene nuts": "fit dawid-skene labels.csv --method nuts --draws 300 --warmup 200 --chains 2",
    "block-linkage nuts": "link people.csv --method nuts --draws 300",
    "dawid-skene svi": "fit dawid-skene labels.csv --method svi --max-steps 4000",
    "linkage numpy": "link people.csv --engine local", "linkage duckdb": "link people.csv --engine duckdb",
    "linkage spark": "link people.csv --engine spark",
}  # fmt: skip
_NO_RESUME = ("linkage numpy", "linkage duckdb", "linkage spark")
_OPTIONS = ["--quiet", "-o"]


def ready(made: Path, name: str) -> Path:
    """Return a folder of its own with the inputs of all runs."""
    folder = made.parent / name.replace(" ", "-")
    folder.mkdir()
    for file in made.glob("*.csv"):
        shutil.copy(file, folder)
    random = np.random.default_rng(3)
    rows = [f"i{item},a{reader},{label},{place}" for item in range(8) for reader in range(3)
            for place, label in enumerate(random.permutation(list("wxyz")), start=1)]  # fmt: skip
    (folder / "rankings.csv").write_text("\n".join(["item,annotator,class,rank", *rows]) + "\n")
    os.chdir(folder)
    return folder


def warm() -> None:
    """Import all that commands import, and use no device."""
    import consilience.cli
    import consilience.inference.fitting
    import consilience.linking
    import consilience.models
    import consilience.reporting

    for name in consilience.models.names():
        consilience.models.member(name)


def started(words: list[str], out: Path, before: Callable[[], None] = lambda: None) -> int:
    """Fork a process that runs a command, and return its id; its output goes to files."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    os.setpgid(0, 0)
    code = 99
    with open(out.with_suffix(".out"), "wb", 0) as first, open(out.with_suffix(".err"), "wb", 0) as second:
        os.dup2(first.fileno(), 1)
        os.dup2(second.fileno(), 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            from consilience.cli import main

            before()
            code = main(words)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


def ended(pid: int, seconds: float = 300.0) -> int | None:
    """Return the exit code of a process, minus the signal that ended it, None of one that had to be killed."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def often() -> None:
    """Let checkpoints be written after every chunk, so that a run of seconds has many."""
    from consilience.inference import checkpoints

    checkpoints._SECONDS_TO_FIRST, checkpoints._SHARE = 0.0, 0
    checkpoints.Checkpoint.__init__.__kwdefaults__["seconds"] = 0.02


def numbers(folder: Path) -> dict[str, bytes]:
    """Return all arrays of a saved fit as bytes, and what its text says of the result; of links the tables too."""
    inner = folder / "fit" if (folder / "fit").is_dir() else folder
    text = json.loads((inner / "fit.json").read_text())
    found = {name: json.dumps(text[name]).encode() for name in ("result", "options", "seed", "sizes")}
    with np.load(inner / text["arrays"]) as arrays:
        found |= {name: arrays[name].tobytes() for name in arrays.files}
    for table in folder.glob("*.csv"):
        found[table.name] = table.read_bytes()
    for table in folder.glob("*.parquet"):
        import pyarrow.parquet

        found[table.name] = pyarrow.parquet.read_table(table).to_pandas().to_csv().encode()
    return found


def kills(made: Path, sampler: str, number: int) -> dict[str, Any]:
    """Kill a run by signal 9 at random moments, go on, and compare what it saves with that of a run left alone."""
    folder = ready(made, f"kills-{sampler}")
    warm()
    words = [*SAMPLERS[sampler].split(), *_OPTIONS]
    again = [] if sampler in _NO_RESUME else ["--resume"]
    seconds = []
    for _ in range(2):  # the second finds compiled programs
        shutil.rmtree(folder / "whole", ignore_errors=True)
        began = time.monotonic()
        code = ended(started([*words, "whole"], folder / "log", often))
        seconds.append(time.monotonic() - began)
        if code not in (0, 3):
            raise RuntimeError((folder / "log.err").read_text()[-500:])
    whole, random = numbers(folder / "whole"), np.random.default_rng(7)
    killed = identical = runs = gone_on = 0
    wrong: list[str] = []
    while killed < number:
        target = folder / f"run-{runs}"
        runs += 1
        for _ in range(60):
            held = [] if again else ["--force"] if target.exists() else []
            pid = started([*words, str(target), *again, *held], folder / "log", often)
            if killed < number:
                deadline = time.monotonic() + float(random.uniform(0.02, 1.0)) * seconds[-1]
                while time.monotonic() < deadline and not os.waitid(
                    os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT
                ):
                    time.sleep(0.002)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
            code = ended(pid)
            killed += code == -signal.SIGKILL
            gone_on += (target / "checkpoint" / "checkpoint.json").exists() or (target / "fit" / "checkpoint").exists()
            if code != -signal.SIGKILL:
                break
        said = (folder / "log.err").read_text()
        # Killed after all was written: there is nothing to go on with, and it says so.
        if code not in (0, 3) and "that is complete" not in said and "with no run that did not end" not in said:
            wrong.append(said[-300:])
            break
        same = numbers(target) == whole
        identical += same
        if not same:
            other = numbers(target)
            wrong.append(f"run {runs} differs in {[name for name in whole if other.get(name) != whole[name]][:5]}")
        left = [path.name for path in target.rglob("*") if path.name.endswith(".part") or "checkpoint" in path.name]
        if left:
            wrong.append(f"left {left[:3]}")
    return {"kills": killed, "runs": runs, "identical": identical, "kills after a checkpoint": gone_on, "wrong": wrong}


def signals(made: Path, kind: str, number: int) -> dict[str, Any]:
    """Interrupt a run at random moments, Ctrl-C or SIGTERM, and go on: exit codes, tracebacks, identical results."""
    folder = ready(made, f"signals-{kind}")
    warm()
    words = [*SAMPLERS["dawid-skene gibbs"].split(), *_OPTIONS]
    for _ in range(2):
        shutil.rmtree(folder / "whole", ignore_errors=True)
        began = time.monotonic()
        ended(started([*words, "whole"], folder / "log", often))
        seconds = time.monotonic() - began
    whole, random = numbers(folder / "whole"), np.random.default_rng(11)
    codes: dict[str, int] = {}
    stopped = tracebacks = identical = runs = 0
    wrong: list[str] = []
    while stopped < number:
        runs += 1
        target = folder / f"run-{runs}"
        for _ in range(60):
            pid = started([*words, str(target), "--resume"], folder / "log", often)
            if stopped < number:
                time.sleep(float(random.uniform(0.05, 1.0)) * seconds)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, getattr(signal, kind))
            code = ended(pid)
            err = (folder / "log.err").read_text()
            if "Traceback" in err:
                tracebacks += 1
                wrong.append(err.strip()[-300:])
            codes[str(code)] = codes.get(str(code), 0) + 1
            stopped += code in (130, -signal.SIGTERM)
            if code not in (130, -signal.SIGTERM):
                break
        if code not in (0, 3):
            wrong.append(f"exit code {code}: {err[-200:]}")
            break
        identical += numbers(target) == whole
    return {"stopped": stopped, "runs": runs, "identical": identical, "tracebacks": tracebacks,
            "exit codes": json.dumps(codes), "wrong": wrong[:5]}  # fmt: skip


def writers(made: Path, number: int) -> dict[str, Any]:
    """Let two commands write to one place at once: what is there in the end is whole, and of one that said so."""
    folder = ready(made, "writers")
    warm()
    commands = {
        "fit": ("fit dawid-skene labels.csv --method gibbs --draws 200 --warmup 20 --seed {} --quiet -o {}", "folder"),
        "link": ("link people.csv --draws 20 --seed {} --quiet -o {}", "folder"),
        "table": ("simulate records --records 30 --seed {} -o {}.csv", "file"),
    }  # fmt: skip
    told = {"both": 0, "one": 0, "none": 0}
    tracebacks, wrong = 0, []
    for name, (words, kind) in commands.items():
        alone = []
        for seed in (0, 1):
            ended(started(words.format(seed, f"alone-{name}-{seed}").split(), folder / f"log-{seed}"))
            target = folder / f"alone-{name}-{seed}"
            alone.append(numbers(target) if kind == "folder" else target.with_suffix(".csv").read_bytes())
        for n in range(number):
            target = folder / f"{name}-{n}"
            pids = [started(words.format(seed, target).split(), folder / f"log-{seed}") for seed in (0, 1)]
            codes = [ended(pid) for pid in pids]
            errors = [(folder / f"log-{seed}.err").read_text() for seed in (0, 1)]
            tracebacks += sum("Traceback" in err for err in errors)
            done = [seed for seed in (0, 1) if codes[seed] in (0, 3)]
            told[("none", "one", "both")[len(done)]] += 1
            found = None
            try:
                found = numbers(target) if kind == "folder" else target.with_suffix(".csv").read_bytes()
            except Exception as error:
                if done:
                    wrong.append(f"{name}: {error!r}")
            if done and found is not None and found not in [alone[seed] for seed in done]:
                wrong.append(f"{name}: of no one who said success; codes {codes}")
            wrong += [err.strip()[-200:] for err in errors if "Traceback" in err]
    return {**{f"{key} succeeded": value for key, value in told.items()}, "tracebacks": tracebacks,
            "silent errors": len(wrong) - tracebacks, "wrong": wrong[:8]}  # fmt: skip


def resumed(made: Path) -> dict[str, Any]:
    """Ask to go on with an interrupted run with other data, options, versions, or with files that were damaged."""
    folder = ready(made, "resumed")
    warm()
    words = [*SAMPLERS["dawid-skene gibbs"].split(), "--quiet", "-o", "run"]

    def stop() -> None:
        often()
        from consilience.inference import checkpoints

        write, count = checkpoints.Checkpoint.write, itertools.count()

        def write_and_stop(self: Any, *args: Any, **more: Any) -> None:
            write(self, *args, **more)
            if next(count) == 4:
                os.kill(os.getpid(), signal.SIGKILL)

        checkpoints.Checkpoint.write = write_and_stop  # type: ignore[method-assign]

    ended(started(words, folder / "log", stop))
    shutil.copytree("run", "left")
    labels = (folder / "labels.csv").read_text()
    text = json.loads((folder / "left/checkpoint/checkpoint.json").read_text())
    files = sorted(path.name for path in (folder / "left/checkpoint").iterdir() if path.name != "lock")

    def edit(path: str, change: Callable[[bytes], bytes]) -> Callable[[], None]:
        file = folder / "run/checkpoint" / path
        return lambda: file.write_bytes(change(file.read_bytes())) and None

    def of_text(**changes: Any) -> Callable[[], None]:
        return edit("checkpoint.json", lambda content: json.dumps({**text, **changes}).encode())

    cases: dict[str, tuple[list[str], Callable[[], Any]]] = {
        "other data": ([], lambda: (folder / "labels.csv").write_text(labels.replace("cat", "dog", 1))),
        "more data": ([], lambda: (folder / "labels.csv").write_text(labels + "i0,a99,cat\n")),
        "seed": (["--seed", "1"], lambda: None), "draws": (["--draws", "3001"], lambda: None),
        "chains": (["--chains", "3"], lambda: None), "precision": (["--x64"], lambda: None),
        "method": (["--method", "cavi"], lambda: None), "warm-up": (["--warmup", "499"], lambda: None),
        "a later version": ([], of_text(format=99)), "an earlier version": ([], of_text(format=0)),
        "a forged step": ([], of_text(step=3)), "no text": ([], edit("checkpoint.json", lambda content: b"")),
        "a list": ([], edit("checkpoint.json", lambda content: b"[]")),
        "deep": ([], edit("checkpoint.json", lambda content: b"[" * 100_000)),
    }  # fmt: skip
    for name in files:
        cases |= {f"{name} torn": ([], edit(name, lambda content: content[: len(content) // 2])),
                  f"{name} flipped": ([], edit(name, lambda old: old[:99] + bytes([old[99] ^ 4]) + old[100:])),
                  f"{name} gone": ([], lambda name=name: (folder / "run/checkpoint" / name).unlink())}  # fmt: skip
    refused, tracebacks, wrong, started_afresh = 0, 0, [], 0
    for name, (more, change) in cases.items():
        shutil.rmtree("run")
        shutil.copytree("left", "run")
        (folder / "labels.csv").write_text(labels)
        change()
        before = {path.name: path.read_bytes() for path in (folder / "run/checkpoint").iterdir()}
        code = ended(started([*words, *more, "--resume"], folder / "log"))
        err = (folder / "log.err").read_text()
        tracebacks += "Traceback" in err
        refused += code == 1
        if name == "checkpoint.json gone" and code in (0, 3):
            started_afresh += 1  # nothing says that there was a run
        elif code != 1 or "Traceback" in err:
            wrong.append(f"{name}: exit code {code} {err.strip()[-200:]}")
        elif {path.name: path.read_bytes() for path in (folder / "run/checkpoint").iterdir()} != before:
            wrong.append(f"{name}: refused, and changed the checkpoint")
    return {"inputs": len(cases), "refused": refused, "started afresh": started_afresh, "tracebacks": tracebacks,
            "silent errors": len(wrong) - tracebacks, "wrong": wrong[:8]}  # fmt: skip


def memory(made: Path, megabytes: list[int]) -> dict[str, Any]:
    """Run commands in processes that may not take more memory; what succeeds is right, the rest says why."""
    folder = ready(made, "memory")
    rows = "".join(f"i{n % 50_000},a{n % 211},{'xyz'[n % 3]}\n" for n in range(400_000))
    (folder / "many.csv").write_text("item,annotator,label\n" + rows)
    commands = {"table": "simulate records --records 2000 -o t{}.csv", "labels": "agreement many.csv",
                "fit": "fit dawid-skene many.csv --method em --duplicates keep --quiet -o f{}",
                "link": "link people.csv --quiet -o l{}"}  # fmt: skip
    counts = {"inputs": 0, "succeeded": 0, "said why": 0, "tracebacks": 0, "ended by the system": 0}
    wrong = []
    for limit, (name, words) in itertools.product(megabytes, commands.items()):
        counts["inputs"] += 1

        def starve(limit: int = limit) -> None:
            resource.setrlimit(resource.RLIMIT_AS, (limit << 20, limit << 20))

        done = subprocess.run(
            [sys.executable, "-m", "consilience", *words.format(limit).split()], capture_output=True, text=True,
            preexec_fn=starve, timeout=300,
        )  # fmt: skip
        last = (done.stderr.strip().splitlines() or [""])[-1]
        if done.returncode in (0, 3):
            counts["succeeded"] += 1
        elif done.returncode < 0 or done.returncode > 128:
            counts["ended by the system"] += 1
            wrong.append(f"{name}, {limit} MB: signal {done.returncode}: {last[:150]}")
        elif "Traceback" in done.stderr:
            counts["tracebacks"] += 1
            wrong.append(f"{name}, {limit} MB: {last[:200]}")
        else:
            counts["said why"] += 1
    return {**counts, "wrong": wrong[:12]}


def fits(number: int) -> dict[str, Any]:
    """Fit data of many sizes one after the other in this process; what it holds may not grow."""
    import gc

    import jax

    import consilience as cs
    from consilience.data import Annotations

    random = np.random.default_rng(0)
    seen = []
    methods = [
        ("dawid-skene", "em"),
        ("mace", "em"),
        ("dirichlet", "exact"),
        ("dawid-skene", "cavi"),
        ("majority-vote", "exact"),
    ]
    for n in range(number):
        items, annotators, labels = (
            int(random.integers(5, 400)),
            int(random.integers(2, 12)),
            int(random.integers(2, 5)),
        )
        rows = int(random.integers(items, 4 * items))
        data = Annotations.from_codes(
            random.integers(0, items, rows), random.integers(0, annotators, rows), random.integers(0, labels, rows),
            num_items=items, num_annotators=annotators, num_labels=labels,
        )  # fmt: skip
        name, method = methods[n % len(methods)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = cs.fit(
                name,
                data,
                method=method,
                draws=20,
                progress=False,
                **({"max_steps": 5} if method in ("em", "cavi") else {}),
            )
            fitted.labels()
        del fitted, data
        gc.collect()
        seen.append({
            "MB": _resident() >> 20, "mappings": sum(1 for _ in open("/proc/self/maps")),
            "arrays": len(jax.live_arrays()), "threads": threading.active_count(),
            "files": len(os.listdir("/proc/self/fd")),
        })  # fmt: skip
    # Programs are let go of from time to time, so that what is held goes up and down.
    halves = [seen[: number // 2], seen[number // 2 :]]
    most = [{name: max(one[name] for one in half) for name in half[0]} for half in halves]
    return {"fits": number, **{f"most {name}, first half": value for name, value in most[0].items()},
            **{f"most {name}, second half": value for name, value in most[1].items()},
            "MB": [one["MB"] for one in seen], "mappings": [one["mappings"] for one in seen]}  # fmt: skip


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def threads(number: int) -> dict[str, Any]:
    """Fit in several threads at once, and compare with what each gives alone."""
    import consilience as cs

    kinds = (("dawid-skene", "em"), ("dawid-skene", "gibbs"), ("dirichlet", "exact"), ("mace", "cavi"))
    jobs = [(name, method, seed) for name, method in kinds for seed in range(number)]
    data = cs.example("labels.csv")

    def one(job: tuple[str, str, int]) -> bytes:
        name, method, seed = job
        fitted = cs.fit(
            name,
            data,
            method=method,
            seed=seed,
            draws=30,
            progress=False,
            **({"warmup": 20} if method == "gibbs" else {}),
        )
        return cs.certainty(fitted).items.tobytes() + fitted.labels().to_csv().encode()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = {job: one(job) for job in jobs}
        found: dict[Any, Any] = {}

        def work(job: Any) -> None:
            try:
                found[job] = one(job)
            except BaseException as error:
                found[job] = repr(error)

        workers = [threading.Thread(target=work, args=(job,)) for job in jobs]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(600)
    wrong = [
        f"{job}: {found.get(job) if isinstance(found.get(job), str) else 'other numbers'}"
        for job in jobs
        if found.get(job) != alone[job]
    ]
    return {"fits": len(jobs), "identical": len(jobs) - len(wrong), "wrong": wrong[:5]}


def forked() -> dict[str, Any]:
    """Fork a process that has fitted, and fit in the child: the same numbers, or an error, and no endless wait."""
    import consilience as cs

    data = cs.example("labels.csv")
    outcome = {"same": 0, "said why": 0, "hangs": 0, "tracebacks": 0}
    wrong = []
    for name, method in (("dirichlet", "exact"), ("dawid-skene", "em"), ("mace", "gibbs")):
        options = {"draws": 30, "progress": False, **({"warmup": 20} if method == "gibbs" else {})}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = cs.certainty(cs.fit(name, data, method=method, **options)).items.tobytes()
            reading, writing = os.pipe()
            pid = os.fork()
            if not pid:
                said = b"?"
                try:
                    said = cs.certainty(cs.fit(name, data, method=method, **options)).items.tobytes()
                    said = b"same" if said == expected else b"other"
                except cs.errors.ConsilienceError:
                    said = b"why"
                except BaseException:
                    said = traceback.format_exc()[-200:].encode()
                finally:
                    os.write(writing, said)
                    os._exit(0)
        os.close(writing)
        if ended(pid, 120) is None:
            outcome["hangs"] += 1
            wrong.append(f"{name} {method} waits for ever")
        else:
            said = os.read(reading, 1000)
            kind = {b"same": "same", b"why": "said why"}.get(said, "tracebacks")
            outcome[kind] += 1
            if kind == "tracebacks":
                wrong.append(said.decode())
        os.close(reading)
    return {**outcome, "wrong": wrong}


def notebook() -> dict[str, Any]:
    """Do as a notebook does: text streams without bytes, a loop that runs, cells that are interrupted, pages shown."""
    import consilience as cs
    from consilience.cli import main

    signal.signal(signal.SIGINT, signal.default_int_handler)  # of what runs in the background shells ignore it
    data, wrong = cs.example("labels.csv"), []

    class Text(io.StringIO):
        encoding = "UTF-8"

    async def cell() -> Any:
        return cs.fit("dawid-skene", data, method="em", draws=20, progress=True)

    with warnings.catch_warnings(), contextlib.redirect_stdout(Text()) as shown, contextlib.redirect_stderr(Text()):
        warnings.simplefilter("ignore")
        fitted = asyncio.run(cell())
        page = fitted.labels()._repr_html_()
        checks = {
            "a fit in a running loop": len(fitted.labels()) == 150, "a fit that shows itself": "<script" not in page,
            "a command in a cell": main(["models"]) == 0 and "dawid-skene" in shown.getvalue(),
            "a command that is wrong": main(["fit", "nobody", "x.csv", "-o", "y"]) != 0,
            "a page to standard output": main(["data", "describe", "dawid-skene-1979", "--json"]) == 0,
        }  # fmt: skip

        def stop(steps: int, number: int) -> None:
            if steps > 100:
                os.kill(os.getpid(), signal.SIGINT)

        part = cs.fit("dawid-skene", data, method="gibbs", draws=200_000, warmup=10, chains=1, progress=stop)
        checks["a cell that is interrupted keeps its draws"] = str(part.result) == "interrupted" and not part.is_empty
        checks["the next cell runs"] = len(cs.fit("dirichlet", data, draws=5).labels()) == 150
    wrong = [name for name, good in checks.items() if not good]
    return {"checks": len(checks), "passed": len(checks) - len(wrong), "wrong": wrong}


def forged(made: Path, number: int) -> dict[str, Any]:
    """Flip bits, cut and change the words of fits of each contract: refused by name, or the same fit."""
    import consilience as cs
    from consilience.errors import ConsilienceError
    from consilience.inference.durable import text_digest

    random = np.random.default_rng(5)
    counts = {"inputs": 0, "refused": 0, "tracebacks": 0, "silent errors": 0}
    wrong = []
    for name in ("run", "crowd", "linked/fit", "views", "chains"):
        folder = made.parent / f"forged-{name.replace('/', '-')}"
        shutil.copytree(made / name, folder)
        text = folder / "fit.json"
        arrays = next(folder.glob("arrays-*.npz"))
        whole, told = arrays.read_bytes(), text.read_bytes()
        expected = _shown(cs.load_fit(folder))
        for n in range(number):
            text.write_bytes(told)
            arrays.write_bytes(whole)
            way = ("flip arrays", "flip text", "cut arrays", "words")[n % 4]
            same_needed = True
            if way == "flip arrays":
                arrays.write_bytes(_flipped(whole, random))
            elif way == "flip text":
                text.write_bytes(_flipped(told, random))
            elif way == "cut arrays":
                arrays.write_bytes(whole[: int(random.integers(len(whole)))])
            else:
                content = json.loads(told)
                del content["text_sha256"]
                content = _strange(content, random)
                content = {**content, "text_sha256": text_digest(content)} if isinstance(content, dict) else content
                text.write_text(json.dumps(content))
                same_needed = False
            counts["inputs"] += 1
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = _shown(cs.load_fit(folder))
                if same_needed and found != expected:
                    counts["silent errors"] += 1
                    wrong.append(f"{name}: {way} gave another fit")
            except ConsilienceError:
                counts["refused"] += 1
            except Exception:
                counts["tracebacks"] += 1
                wrong.append(f"{name}: {way}: {traceback.format_exc().strip()[-250:]}")
    return {**counts, "wrong": wrong[:10]}


def _shown(fitted: Any) -> bytes:
    return fitted.table(next(iter(fitted.member.table_names))).to_csv().encode()


def _flipped(content: bytes, random: Any) -> bytes:
    damaged = bytearray(content)
    damaged[int(random.integers(len(content)))] ^= 1 << int(random.integers(8))
    return bytes(damaged)


def _strange(value: Any, random: Any) -> Any:
    """Return JSON with one of its values, at any depth, replaced or left out."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        name = sorted(value)[int(random.integers(len(value)))]
        if random.random() < 0.2:
            return {key: one for key, one in value.items() if key != name}
        return {**value, name: _strange(value[name], random)}
    if isinstance(value, list) and value and random.random() < 0.7:
        at = int(random.integers(len(value)))
        return [*value[:at], _strange(value[at], random), *value[at + 1 :]]
    strange = [None, -1, 0, 10**30, 0.5, "", "x" * 1000, [], {}, [[]], True, "\ud800", {"": {}}, "../x", "os:system"]
    return strange[int(random.integers(len(strange)))]


def main(words: list[str]) -> None:
    """Run a part, and print its row."""
    part, made, *more = words
    place = Path(made)
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "kills": lambda: kills(place, more[0], int(more[1])), "signals": lambda: signals(place, more[0], int(more[1])),
        "writers": lambda: writers(place, int(more[0])), "resumed": lambda: resumed(place),
        "memory": lambda: memory(place, list(map(int, more))), "fits": lambda: fits(int(more[0])),
        "threads": lambda: threads(int(more[0])), "forked": forked, "notebook": notebook,
        "forged": lambda: forged(place, int(more[0])),
    }  # fmt: skip
    warnings.simplefilter("ignore")
    print(json.dumps(parts[part]()))


if __name__ == "__main__":
    main(sys.argv[1:])
