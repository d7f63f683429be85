"""How fast coreference is scored beside the official scorer and the package scorch, and whether the scores are equal.

`python -m benchmarks coreference [--perl FOLDER] [--peer PYTHON] [--check N]`. The official scorer is the Perl program
of Pradhan et al. (2014); its folder has ``scorer.pl`` and ``lib/``, and ``perl`` has to be there. Every measurement
runs in a process of its own. CPU seconds are compared: wall seconds depend on what else the machine does.

Two responses are scored against the key. 'System' is the key with some mentions moved to other entities, some left out
and some made up; 'majority vote' are silver chains of simulated annotations. LEA, which neither peer has, is not
compared.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import consilience as cs
from benchmarks.official_scorer import (
    CUT,
    OFFICIAL,
    OfficialScore,
    different,
    official_score,
    random_document,
    write_random,
)
from benchmarks.recording import Recording
from benchmarks.speed import last_line
from consilience.commands.coreference import read_key
from consilience.data.conll import Chains, read_conll
from consilience.data.conll_writer import write_conll
from consilience.errors import InputWarning, UnsupportedRequest
from consilience.evaluation.chains import share
from consilience.evaluation.coreference_scores import CoreferenceScores, score_coreference

SCORCH = {"muc": "muc", "b3": "b_cubed", "ceafe": "ceaf_e", "ceafm": "ceaf_m", "blanc": "blanc"}
"""The functions of scorch."""

_SIX = ("muc", "b3", "ceafe", "ceafm", "blanc", "lea")
_GOAL = 50

# What the other interpreter runs, document by document, since scorch averages documents where the official scorer adds
# their numerators and denominators.
_PEER = """
import json, sys, time
from importlib.metadata import version
from scorch import scores
began = time.process_time()
with open(sys.argv[1]) as file:
    documents = [[[set(entity) for entity in side] for side in document] for document in json.load(file)]
row = {"version": version("scorch"), "reading": time.process_time() - began, "seconds": {}, "scores": {}}
for name, function in json.loads(sys.argv[2]).items():
    began = time.process_time()
    found = [getattr(scores, function)(key, response) for key, response in documents]
    row["seconds"][name] = time.process_time() - began
    row["scores"][name] = found
print(json.dumps(row))
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--perl", type=Path, metavar="FOLDER", help="the official scorer, with scorer.pl and lib/")
    parser.add_argument("--peer", metavar="PYTHON", help="a Python interpreter that has scorch; none by default")
    parser.add_argument("--key", default="litbank", help="a CoNLL file, a folder of them, or public data (litbank)")
    parser.add_argument("--seed", type=int, default=0, help="of the responses and the draws (0)")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="of the official scorer (600)")
    parser.add_argument("--repeats", type=int, default=3, help="processes of ours and of scorch; medians count (3)")
    parser.add_argument("--draws", type=int, default=1000, help="chains to score at once; 0 for none of it (1000)")
    parser.add_argument("--check", type=int, default=0, metavar="N", help="random files of each kind (0)")


def run(arguments: argparse.Namespace) -> None:
    """Measure, print and record."""
    _check_peers(arguments)
    key = read_key(arguments.key)
    record = Recording("coreference", "Scoring of coreference", arguments.command, arguments.output)
    responses = {"system": perturbed(key, arguments.seed), "majority vote": _silver(key, arguments.seed)}
    record.say(
        f"Key: {arguments.key}, {key.num_documents:,} documents, {key.num_mentions:,} mentions, {key.num_entities:,} "
        "entities. Responses: 'system', the key with 10 % of the mentions moved to the entity of another mention of "
        "the document, 5 % left out and as many made up; 'majority vote', silver chains of simulated annotations "
        "('synthetic-uniform'). In both a mention that would overlap one of its own entity has an entity of its own, "
        "since files cannot tell such mentions apart. All programs read the same files of three columns. Other work "
        "ran on the machine: read CPU seconds."
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_conll(key, folder / "key.conll")
        measured = [_measure(label, response, folder, arguments) for label, response in responses.items()]
        _ours(record, measured)
        if arguments.perl:
            _against_official(record, measured, arguments.limit)
        if arguments.peer:
            _against_scorch(record, measured)
        if arguments.draws:
            _draws(record, folder, arguments)
    if arguments.perl and arguments.check:
        _check(record, arguments.perl, arguments.check, arguments.seed)
    record.write()


def _check_peers(arguments: argparse.Namespace) -> None:
    if arguments.perl and not (arguments.perl / "scorer.pl").is_file():
        raise UnsupportedRequest(f"there is no scorer.pl in {arguments.perl}; give --perl the official scorer's folder")
    commands = {"scorch": [arguments.peer, "-c", "import scorch"]} if arguments.peer else {}
    commands |= {"perl": ["perl", "-v"]} if arguments.perl else {}
    for name, command in commands.items():
        try:
            subprocess.run(command, capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise UnsupportedRequest(f"{' '.join(command)!r} does not run; install {name}, or do without it") from error


# ---- responses ----


def perturbed(key: Chains, seed: int, moved: float = 0.1, dropped: float = 0.05, invented: float = 0.05) -> Chains:
    """Return the key as a system might have found it.

    Parameters
    ----------
    key : the true entities.
    seed : of the random numbers.
    moved : share of mentions that go to the entity of another mention of their document, at random.
    dropped : share of mentions that are left out.
    invented : share of mentions beside which another one of one token is made up, at a place of the document where the
        key has no such mention, in the entity of the former.
    """
    random = np.random.default_rng(seed)
    document, start, end = (np.asarray(values, np.int64) for values in (key.document, key.start, key.end))
    entity = np.array(key.entity, np.int64)
    first, beyond = np.searchsorted(document, document), np.searchsorted(document, document, side="right")
    chosen = random.random(len(entity)) < moved
    entity = np.where(chosen, entity[random.integers(first, beyond)], entity)
    length = int(end.max()) + 1
    copied = np.flatnonzero(random.random(len(entity)) < invented)
    place = random.integers(0, end[beyond[copied] - 1] + 1)
    code = document[copied] * length + place
    known = np.isin(code, (document * length + start)[start == end])
    _, unique = np.unique(code, return_index=True)
    added = np.setdiff1d(unique, np.flatnonzero(known))
    kept = random.random(len(entity)) >= dropped
    columns = zip(
        (document, start, end, entity), (document[copied], place, place, entity[copied]), strict=True
    )
    document, start, end, entity = (np.concatenate([old[kept], new[added]]) for old, new in columns)
    return apart(Chains.from_spans(document, start, end, entity, documents=key.documents))


def _silver(key: Chains, seed: int) -> Chains:
    """Return the chains of a majority vote of simulated annotations."""
    from consilience.models.mpa.scenarios import simulate_mentions

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = cs.fit("majority-vote", simulate_mentions(key, "synthetic-uniform", seed=seed), draws=10)
    return apart(cs.silver_chains(fit).to_chains())


def apart(chains: Chains) -> Chains:
    """Give each mention that overlaps one before it of its own entity an entity of its own."""
    document, start, end, entity = (np.asarray(values) for values in (
        chains.document, chains.start, chains.end, chains.entity
    ))  # fmt: skip
    # Mentions are sorted by where they begin. Entities one after the other, the largest end so far is of the same
    # entity where that of each entity is shifted beyond those before.
    order = np.argsort(entity, kind="stable")
    shift = entity[order].astype(np.int64) * (int(end.max(initial=0)) + 2)
    reached = np.maximum.accumulate(end[order] + shift)
    overlaps = np.zeros(len(order), bool)
    overlaps[order[1:]] = (start[order] + shift)[1:] <= reached[:-1]
    overlaps &= entity >= 0
    new = np.where(overlaps, entity.max(initial=-1) + np.cumsum(overlaps), entity)
    _, codes = np.unique(new, return_inverse=True)
    return Chains.from_spans(document, start, end, codes, documents=chains.documents)


# ---- measurements ----


class Measured(NamedTuple):
    """One response: our scores of it, and what everybody took.

    Parameters
    ----------
    ours : medians of our seconds.
    official : by name of the score; None where the limit was passed.
    scorch : what the other interpreter printed, seconds as medians.
    """

    name: str
    response: Chains
    scores: CoreferenceScores
    ours: dict[str, float]
    official: dict[str, OfficialScore | None]
    scorch: dict[str, Any]


def _measure(name: str, response: Chains, folder: Path, arguments: argparse.Namespace) -> Measured:
    path = folder / f"{name.replace(' ', '-')}.conll"
    write_conll(response, path)
    key, read = read_conll(folder / "key.conll"), read_conll(path)
    runs = [_in_own_process("score", str(folder / "key.conll"), str(path)) for _ in range(arguments.repeats)]
    ours = {part: float(np.median([one[part] for one in runs])) for part in runs[0]}
    print(name, json.dumps(ours), flush=True)
    official = {}
    for metric in OFFICIAL if arguments.perl else ():
        official[metric] = official_score(arguments.perl, metric, folder / "key.conll", path, arguments.limit)
        print(metric, official[metric], flush=True)
    peer = _scorch(arguments.peer, key, read, folder, arguments.repeats) if arguments.peer else {}
    return Measured(name, read, score_coreference(key, read), ours, official, peer)


def _scorch(peer: str, key: Chains, response: Chains, folder: Path, repeats: int) -> dict[str, Any]:
    path = folder / "documents.json"
    path.write_text(json.dumps(_documents(key, response)))
    runs = [last_line([peer, "-c", _PEER, str(path), json.dumps(SCORCH)]) for _ in range(repeats)]
    seconds = {metric: float(np.median([one["seconds"][metric] for one in runs])) for metric in SCORCH}
    print("scorch", json.dumps(seconds), flush=True)
    return runs[0] | {"seconds": seconds, "reading": float(np.median([one["reading"] for one in runs]))}


def _documents(key: Chains, response: Chains) -> list[list[list[list[int]]]]:
    """Return for each document the entities of key and response; mentions are one number each."""
    length = int(max(np.max(side.end, initial=0) for side in (key, response))) + 1
    code = {name: place for place, name in enumerate(key.documents)}
    documents: list[list[list[list[int]]]] = [[[], []] for _ in key.documents]
    for side, chains in enumerate((key, response)):
        entity = np.asarray(chains.entity)
        order = np.argsort(entity, kind="stable")
        order = order[entity[order] >= 0]
        mention = np.asarray(chains.start, np.int64) * length + np.asarray(chains.end)
        begins = np.flatnonzero(np.diff(entity[order], prepend=-1))
        for of_entity in np.split(order, begins[1:]) if len(order) else ():
            name = chains.documents[int(chains.document[of_entity[0]])]
            documents[code[name]][side].append(mention[of_entity].tolist())
    return documents


# ---- what is recorded ----


def _ours(record: Recording, measured: list[Measured]) -> None:
    record.section("Ours")
    record.say(
        "`score_coreference(read_conll(key), read_conll(response))`: mentions, MUC, B³, CEAF-e, CEAF-m, BLANC and LEA "
        "of each document and of all. Medians of fresh processes, CPU seconds. 'Start': interpreter and imports. 'Once "
        "more': the second call in a process. Scores in per cent."
    )
    parts = ("start", "read key", "read response", "score", "score once more", "peak, MB")
    record.table("ours", [{"response": one.name, **{part: one.ours[part] for part in parts}} for one in measured])
    rows = [
        {"response": one.name, "mentions": one.response.num_mentions, "entities": one.response.num_entities}
        | {metric: 100 * float(one.scores[metric].f1) for metric in _SIX} | {"conll": 100 * one.scores.conll}
        for one in measured
    ]
    record.table("scores", rows, digits=2)


def _against_official(record: Recording, measured: list[Measured], limit: float) -> None:
    record.section("Against the official scorer")
    record.say(
        "Equal: the largest difference of recall, precision and F from what it prints, in per cent points; it cuts "
        f"after two decimals, so that up to {CUT} is none. 'Of sums': the largest relative difference from the "
        "numerators and denominators that it prints (of BLANC it prints ratios). Its seconds are of one process a "
        "score."
    )
    rows = [
        {"response": one.name, "score": metric, **_official_row(one, metric), "limit": limit}
        for one in measured for metric in OFFICIAL
    ]  # fmt: skip
    shown = [{name: value for name, value in row.items() if name != "limit"} for row in rows]
    record.table("official", shown, digits=4)
    late = [f"{row['score']} of '{row['response']}'" for row in rows if row["CPU s"] is None]
    if late:
        record.say(f"Stopped after {limit:g} seconds, and left out below: {', '.join(late)}.")
    record.say(
        "From files to scores, CPU seconds: all of its scores that ended, over ours for reading both files and all "
        "scores. 'With start': also our interpreter and imports, as one command. 'Next response': the key was read "
        "before, as in a program that scores many responses."
    )
    record.table("ratios-official", [row for one in measured for row in _official_ratios(one)], digits=2)
    whole = [_official_ratios(one)[0] for one in measured]
    _goal(record, "the official scorer, all scores from files", [row["ratio"] for row in whole])
    started = " and ".join(f"{row['ratio with start']:.1f}" for row in whole)
    rest = " and ".join(f"{_official_ratios(one)[1]['ratio']:.1f}" for one in measured)
    record.say(
        f"With the start of our interpreter, for one response, it is {started} times less; without BLANC, which takes "
        f"the official scorer most of its time, and without the start {rest} times."
    )


def _official_row(one: Measured, metric: str) -> dict[str, Any]:
    found = one.official[metric]
    if found is None:
        return dict.fromkeys(("difference", "of sums", "equal", "CPU s", "wall s"))
    ours = 100 * np.array(one.scores[metric])
    difference = float(np.abs(ours - found.shares).max())
    of_sums = None
    if found.sums:
        own = one.scores.sums[metric].sum(axis=1)
        of_sums = float(np.max(np.abs(own - found.sums) / np.maximum(np.abs(own), 1)))
    return {
        "difference": difference, "of sums": of_sums, "equal": difference <= CUT, "CPU s": found.cpu,
        "wall s": found.wall,
    }  # fmt: skip


def _official_ratios(one: Measured) -> list[dict[str, Any]]:
    """Return a row for all scores, and one for all but BLANC, which takes it the longest."""
    ours = one.ours
    next_one = ours["read response"] + ours["score"]
    whole = next_one + ours["read key"]
    rows = []
    for which, left_out in (("all", ()), ("all but BLANC", ("blanc",))):
        seconds = [found.cpu for metric, found in one.official.items() if found and metric not in left_out]
        rows.append({
            "response": one.name, "its scores": which, "CPU s": sum(seconds), "ours": whole,
            "ratio": sum(seconds) / whole, "ratio with start": sum(seconds) / (whole + ours["start"]),
            "ratio, next response": sum(seconds) / next_one,
        })  # fmt: skip
    return rows


def _against_scorch(record: Recording, measured: list[Measured]) -> None:
    record.section("Against scorch")
    record.say(
        f"scorch {measured[0].scorch['version']}, its functions on sets of numbers in memory, document by document, "
        "without its reading; ours is `score_coreference` of chains in memory, which also matches the mentions and has "
        "LEA. CPU seconds. 'Difference': the largest of recall, precision and F of single documents, in per cent "
        "points. scorch's own command averages documents by their sizes and adds mentions that only the response has "
        "to the key, so that its numbers for a whole data set differ from the official scorer's."
    )
    rows = []
    for one in measured:
        for metric in SCORCH:
            own = 100 * np.array(share(metric, one.scores.sums[metric])).T
            difference = float(np.abs(own - 100 * np.array(one.scorch["scores"][metric])).max())
            rows.append({
                "response": one.name, "score": metric, "difference": difference,
                "CPU s": one.scorch["seconds"][metric],
            })  # fmt: skip
    record.table("scorch", rows, digits=4)
    ratios = []
    for one in measured:
        theirs = sum(one.scorch["seconds"].values())
        first, later = one.ours["score"], one.ours["score once more"]
        ratios.append({
            "response": one.name, "CPU s of five scores": theirs, "ours, first": first, "ours, once more": later,
            "ratio, first": theirs / first, "ratio": theirs / later,
        })  # fmt: skip
    record.table("ratios-scorch", ratios, digits=3)
    _goal(record, "scorch", [row["ratio, first"] for row in ratios])


def _goal(record: Recording, peer: str, ratios: list[float]) -> None:
    verdict = "reached" if min(ratios) >= _GOAL else "**missed**"
    record.say(
        f"The goal of {_GOAL} times less CPU a response than {peer}: {verdict} "
        f"({' and '.join(f'{ratio:.1f}' for ratio in ratios)})."
    )


def _draws(record: Recording, folder: Path, arguments: argparse.Namespace) -> None:
    record.section(f"{arguments.draws:,} draws of the chains")
    record.say(
        "MPA is fitted to simulated annotations ('synthetic-uniform'), and the response 'system' is scored against "
        "each draw of its chains (`sums_over_draws`: labels are drawn, links followed, and each document of each draw "
        "scored). The draws come from a fit whose labels were drawn once before, so that nothing is compiled. 'CoNLL' "
        "needs three scores, 'six' is all of them with LEA. Peak memory is of the whole process, so far."
    )
    words = ("draws", str(folder / "key.conll"), str(folder / "system.conll"), str(arguments.draws),
             str(arguments.seed))  # fmt: skip
    row = _in_own_process(*words)
    record.table("draws", [row], digits=1)
    verdict = "reached" if row["CoNLL, wall s"] < 60 and row["six, wall s"] < 60 else "**missed**"
    record.say(f"The goal of less than a minute: {verdict}.")


def _check(record: Recording, perl: Path, number: int, seed: int) -> None:
    record.section("Random files, against the official scorer")
    record.say(
        f"{number} pairs of random files of each kind, of one or two documents with at most seven mentions: in how "
        f"many a score differs by more than {CUT} per cent points. Of a span that the key lacks, and that is in "
        "several entities of the response, BLANC of the official scorer counts a pair once, and ours as often as it "
        "stands there."
    )
    random = np.random.default_rng(seed)
    sides = {"the key": (True, False), "the response": (False, True), "both": (True, True)}
    kinds = {"neither": (False, False), **sides}
    rows = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # Spans that are repeated, which is what is looked at.
        warnings.simplefilter("ignore", InputWarning)
        for kind, repeated in kinds.items():
            differ = dict.fromkeys(OFFICIAL, 0)
            for _ in range(number):
                size = int(random.integers(1, 3))
                paths = [Path(folder) / f"{side}.conll" for side in ("key", "response")]
                for path, again in zip(paths, repeated, strict=True):
                    write_random(path, [random_document(random, again) for _ in range(size)])
                for metric in different(perl, *paths):
                    differ[metric] += 1
            rows.append({"repeated spans in": kind, "pairs of files": number, **differ})
            print(json.dumps(rows[-1]), flush=True)
    record.table("random", rows)


# ---- what runs in processes of its own ----


def _in_own_process(*words: str) -> dict[str, Any]:
    return last_line([sys.executable, "-m", "benchmarks.coreference_process", *words])
