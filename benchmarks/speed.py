"""How long PrIRN takes for all cases at one reliability, and how much memory: measured in a process of its own.

What is timed is what a user calls: `fit`, and the certainties of the top class and of the sets of two and three, from
1,000 draws for every case. Import, reading, the first call (with compilation) and later calls are stated apart;
CPU seconds count every core. The peer is a dense `jax.random.dirichlet` over all classes, which is how the authors'
published code draws; a few of its draws are timed and extrapolated. Run by `python -m benchmarks dermatology`.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_RELIABILITY = 30.0
_DRAWS = 1000
_REPEATS = 5
_PEER_DRAWS = 5


def measure() -> dict[str, Any]:
    """Measure in a fresh process; returns seconds and megabytes by name."""
    return last_line([sys.executable, "-m", "benchmarks.speed"])


def last_line(command: list[str], *, echo: bool = False, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """Run a command from the root of the checkout, and return the JSON object on the last line that it prints.

    Parameters
    ----------
    command : the program and its words.
    echo : whether to print that line too.
    environment : variables of the process; those of this one where it is left out.
    """
    root = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=root, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    line = done.stdout.splitlines()[-1]
    if echo:
        print(line, flush=True)
    return json.loads(line)


def timed(call: Callable[[], Any]) -> tuple[float, float]:
    """Return the wall and CPU seconds of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def seconds_of_children() -> float:
    """Return the CPU seconds, user and system, of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _import() -> None:
    from consilience.evaluation import certainties  # noqa: F401
    from consilience.inference import fitting  # noqa: F401


def _main() -> None:
    measured: dict[str, Any] = {}
    measured["import_seconds"], measured["import_cpu_seconds"] = timed(_import)
    import consilience as cs

    loaded: list[Any] = []
    measured["read_seconds"], _ = timed(lambda: loaded.append(cs.load("dermatology-ddx")))
    cases = loaded[0]

    def one_reliability() -> None:
        fit = cs.fit("prirn", cases, reliability=_RELIABILITY, draws=_DRAWS)
        cs.certainty(fit, top=(1, 2, 3), exact=False)

    measured["first_call_seconds"], measured["first_call_cpu_seconds"] = timed(one_reliability)
    warm = sorted((timed(one_reliability) for _ in range(_REPEATS)), key=lambda seconds: seconds[1])
    measured["warm_seconds"], measured["warm_cpu_seconds"] = warm[len(warm) // 2]
    measured["warm_cpu_seconds_fastest"] = warm[0][1]
    measured["peak_memory_mb"] = peak_memory_mb()
    truth = cs.fit("prirn", cases, reliability=_RELIABILITY, draws=_DRAWS).truth
    passes = [timed(lambda: _one_pass(truth)) for _ in range(_REPEATS)]
    passes.sort(key=lambda seconds: seconds[1])
    measured["one_pass_seconds"], measured["one_pass_cpu_seconds"] = passes[_REPEATS // 2]
    measured["peer_cpu_seconds_per_draw"] = _peer(cases)
    measured["peer_cpu_seconds_extrapolated"] = measured["peer_cpu_seconds_per_draw"] * _DRAWS
    measured["peer_ratio"] = measured["peer_cpu_seconds_extrapolated"] / measured["warm_cpu_seconds"]
    print(json.dumps(measured))


def _one_pass(truth: Any) -> None:
    from consilience.models.truth import Ranked

    for block in truth.blocks(Ranked(3)):
        np.asarray(block.values)


def peak_memory_mb() -> float:
    """Return the largest resident memory of this process so far."""
    status = Path("/proc/self/status")
    if status.exists():
        # Linux's ru_maxrss starts from the memory of the process that forked this one.
        (peak,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) * 1024 / 1e6
    # macOS counts in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def _peer(cases: Any) -> float:
    """Return the CPU seconds of one dense draw of all cases, without compilation; ranking the draw not included."""
    import jax
    import jax.numpy as jnp

    import consilience as cs

    plausibility = cs.fit("irn", cases).posterior.plausibility
    # The authors' notebook adds 0.01 to every class; without it the dense draw would have concentrations of zero.
    cells = jnp.full((cases.num_items, cases.num_classes), 0.01)
    cells = cells.at[cases.entry_item, cases.entry_class].add(_RELIABILITY * plausibility)
    draw = jax.jit(lambda key: jax.random.dirichlet(key, cells, (_PEER_DRAWS, cases.num_items)))
    draw(jax.random.key(0)).block_until_ready()
    _, cpu = timed(lambda: draw(jax.random.key(1)).block_until_ready())
    return cpu / _PEER_DRAWS


if __name__ == "__main__":
    _main()
