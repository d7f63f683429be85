"""What the benchmark `coreference` measures in fresh processes: `python -m benchmarks.coreference_process WHAT …`.

Nothing is imported here that scoring does not need, so that the seconds of the start are those of scoring.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

from benchmarks.speed import peak_memory_mb, timed


def _score(key_path: str, response_path: str) -> dict[str, float]:
    # Reading imports it where nobody has, which is part of the start.
    import jax  # noqa: F401

    from consilience.data.conll import read_conll
    from consilience.evaluation.coreference_scores import score_coreference

    start, chains = time.process_time(), {}
    row = {"start": start}
    for name, path in (("key", key_path), ("response", response_path)):
        _, row[f"read {name}"] = timed(lambda name=name, path=path: chains.update({name: read_conll(path)}))
    for part in ("score", "score once more"):
        row[f"{part}, wall s"], row[part] = timed(lambda: repr(score_coreference(chains["key"], chains["response"])))
    return row | {"peak, MB": peak_memory_mb()}


def _draws(key_path: str, response_path: str, draws: str, seed: str) -> dict[str, float]:
    import consilience as cs
    from consilience.data.conll import read_conll
    from consilience.models.mpa.scenarios import simulate_mentions

    key, response = read_conll(key_path), read_conll(response_path)
    mentions = simulate_mentions(key, "synthetic-uniform", seed=int(seed))
    made: dict[str, Any] = {}

    def fit() -> None:
        made["fit"] = cs.fit("mpa", mentions, coreference="links", draws=int(draws))
        for _ in made["fit"].truth.labels():
            pass

    row = {"draws": int(draws)}
    row["fit, wall s"], row["fit, CPU s"] = timed(fit)
    row["fit, peak MB"] = peak_memory_mb()
    for name, metrics in (("CoNLL", ("conll",)), ("six", ("muc", "b3", "ceafe", "ceafm", "blanc", "lea"))):
        wall, cpu = timed(lambda metrics=metrics: cs.evaluate(made["fit"], response, list(metrics)))
        row |= {f"{name}, wall s": wall, f"{name}, CPU s": cpu, f"{name}, peak MB": peak_memory_mb()}
    return row


def _main(what: str, *words: str) -> None:
    warnings.simplefilter("ignore")
    print(json.dumps({"score": _score, "draws": _draws}[what](*words)))


if __name__ == "__main__":
    _main(*sys.argv[1:])
