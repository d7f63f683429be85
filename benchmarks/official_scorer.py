"""The official scorer of coreference, a Perl program that the user brings, and small random files to compare it by.

Pradhan et al. (2014), ACL. It reads CoNLL-2012 and prints per cents, cut after two decimals.
"""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.speed import seconds_of_children
from consilience.data.conll import read_conll
from consilience.evaluation.coreference_scores import score_coreference

OFFICIAL = {"muc": "muc", "b3": "bcub", "ceafe": "ceafe", "ceafm": "ceafm", "blanc": "blanc"}
"""Our names of the scores that it has, and its own."""

CUT = 0.0101
"""Per cent points by which a score may differ because of the digits that it cuts off."""


class OfficialScore(NamedTuple):
    """What the official scorer prints of one score, and how long it took.

    Parameters
    ----------
    shares : recall, precision and F in per cent, cut after two decimals.
    sums : numerator and denominator of recall, and of precision; of BLANC none, of which it prints ratios.
    cpu, wall : seconds.
    """

    shares: tuple[float, ...]
    sums: tuple[float, ...]
    cpu: float
    wall: float


def official_score(
    folder: Path, metric: str, key: Path, response: Path, limit: float | None = None
) -> OfficialScore | None:
    """Run the official scorer for one score of all documents.

    Parameters
    ----------
    folder : with ``scorer.pl`` and ``lib/``.
    metric : our name of the score.
    key, response : CoNLL-2012 files.
    limit : seconds of wall clock; None is returned where it takes longer.
    """
    command = ["perl", "-I", str(folder / "lib"), str(folder / "scorer.pl"), OFFICIAL[metric], str(key), str(response),
               "none"]  # fmt: skip
    before, began = seconds_of_children(), time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    cpu, wall = seconds_of_children() - before, time.perf_counter() - began
    head = "BLANC: " if metric == "blanc" else "Coreference: "
    line = [line for line in done.stdout.splitlines() if line.startswith(head)][-1]
    number = r"(-?[\d.]+(?:e[+-]?\d+)?)"
    sums = [float(value) for pair in re.findall(rf"\({number} / {number}\)", line) for value in pair]
    shares = tuple(float(value) for value in re.findall(rf"{number}%", line))
    return OfficialScore(shares, () if metric == "blanc" else tuple(sums), cpu, wall)


def random_document(random: np.random.Generator, repeated: bool) -> tuple[int, list[tuple[int, int, int]]]:
    """Return the length of a small document and its mentions: first and last token, and entity.

    Parameters
    ----------
    repeated : whether a span may stand in several entities.
    """
    length = int(random.integers(3, 8))
    mentions: list[tuple[int, int, int]] = []
    for _ in range(random.integers(1, 8)):
        start = int(random.integers(length))
        end = int(random.integers(start, min(length, start + 2)))
        entity = int(random.integers(3))
        same_span = any(one[:2] == (start, end) for one in mentions)
        # Mentions of one entity that overlap cannot be told apart in a file.
        overlaps = any(one[2] == entity and one[0] <= end and start <= one[1] for one in mentions)
        if not overlaps and (repeated or not same_span):
            mentions.append((start, end, entity))
    return length, mentions


def write_random(path: Path, documents: list[tuple[int, list[tuple[int, int, int]]]]) -> None:
    """Write such documents as CoNLL-2012."""
    lines = []
    for number, (length, mentions) in enumerate(documents):
        cells: list[list[str]] = [[] for _ in range(length)]
        for start, end, entity in sorted(mentions, key=lambda one: (one[0], -one[1])):
            cells[start].append(f"({entity})" if start == end else f"({entity}")
        for start, end, entity in sorted(mentions, key=lambda one: (one[1], -one[0])):
            if start != end:
                cells[end].append(f"{entity})")
        lines.append(f"#begin document (d{number});")
        lines += [f"d\t0\t{token}\tw\t{'|'.join(cell) or '-'}" for token, cell in enumerate(cells)]
        lines.append("#end document")
    path.write_text("\n".join(lines) + "\n")


def different(perl: Path, key: Path, response: Path) -> list[str]:
    """Return the scores of which ours differs from the official scorer's by more than what it cuts off."""
    scores = score_coreference(read_conll(key), read_conll(response))
    different = []
    for metric in OFFICIAL:
        found = official_score(perl, metric, key, response)
        if found is None or np.abs(100 * np.array(scores[metric]) - found.shares).max() > CUT:
            different.append(metric)
    return different
