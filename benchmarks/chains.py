"""Coreference as a posterior of partitions against its bars: `python -m benchmarks chains [--only PART …]`.

Parts, each of rows that are kept: ``model``, annotations drawn from the whole model; ``litbank``, simulated crowds on
LitBank (Paun and others 2018); ``starts``, one of these by a chain that starts at the best links of each mention, as
the first one of a fit does, and by one that starts at the truth; ``witness``, systems as one more annotator. That draws
are those of all partitions of small documents is a test of the suite. Only seeds from 100 on were looked at while the
sampler was made.
"""

from __future__ import annotations

import argparse
import functools
import time
import warnings
from collections.abc import Callable
from typing import Any, cast

import numpy as np

import consilience as cs
from benchmarks.mpa import STAND_IN
from benchmarks.mpa_coverage import SILVER, SYSTEM, calibration, coverage, covered, moved_links, system_links
from benchmarks.recording import Bar, Kept, Recording, at_least, at_most, between, run_parts, tell_bars, tell_commits
from consilience.data.codes import object_array
from consilience.data.mentions import MENTION_TYPES, Mentions
from consilience.evaluation.chains import said_links, spans_of
from consilience.models.mpa import MODEL
from consilience.models.mpa.partition import sampler
from consilience.models.mpa.partition.annotators import BIN, BIN_NEW, FIRST_RANK, KINDS, LIMIT, LOWEST_RANK, WIDTH
from consilience.models.mpa.partition.state import texts_of
from consilience.models.mpa.partition.truth import PartitionLabels
from consilience.models.mpa.scenarios import SYNTHETIC_PROFILES, _shared_out
from consilience.models.truth.chains import NEW, follow_links

PARTS = {
    "model": "Annotations drawn from the whole model", "litbank": "LitBank",
    "starts": "LitBank, one chain from two starts",
    "witness": "Systems with a tenth of the true links moved, and copies of the silver chains with a twentieth moved",
}  # fmt: skip
"""With their titles."""

_SCENARIOS = ("synthetic-uniform", "synthetic-sparse", "profiles-uniform", "profiles-sparse")
_CHOSEN_BY = 5  # seeds by which the correlation of documents was chosen
_TODAY = dict(zip(_SCENARIOS, (46, 16, 75, 58), strict=True))
"""Documents covered by `coreference="links"`, per cent: what a posterior of partitions must not fall below."""

_FIELD = np.array([0.5, 1.0, 0.2, 0.3, -2.0, -2.0])
_SWEEPS = 300
_NEAREST, _CONCENTRATION = 0.9, 8.0
_COPY_MOVED = 0.05


def _mentions(link: np.ndarray, document: np.ndarray, rows: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Mentions:
    """Return mentions of one token each; rows are mention, annotator and link."""
    mention, annotator, given = (np.asarray(one, np.int32) for one in rows)
    number, (new, old) = len(link), (MENTION_TYPES.index(one) for one in ("DN", "DO"))
    annotators, documents = int(annotator.max(initial=0)) + 1, int(document.max()) + 1
    return Mentions(
        mention=mention, annotator=annotator, type=np.where(given < 0, new, old).astype(np.int32), antecedent=given,
        gold_type=np.where(link < 0, new, old).astype(np.int32), gold_antecedent=link.astype(np.int32),
        document=document.astype(np.int32), start=np.arange(number, dtype=np.int32),
        end=np.arange(number, dtype=np.int32), num_annotations=len(mention), num_mentions=number,
        num_annotators=annotators, num_documents=documents,
        mentions=object_array(f"m{one}" for one in range(number)),
        annotators=object_array(f"a{one}" for one in range(annotators)),
        documents=object_array(f"d{one}" for one in range(documents)),
    )  # fmt: skip


def drawn_mentions(seed: int, documents: int = 50, length: int = 60) -> Mentions:
    """Return annotations drawn from the whole model: partitions, profiles, λ and errors."""
    random = np.random.default_rng(seed)
    document, number = np.repeat(np.arange(documents), length), documents * length
    nothing = np.zeros(0, int)
    texts = texts_of(_mentions(np.full(number, NEW), document, (nothing, nothing, nothing)), "ignore")
    empty = sampler.problem_of(texts, any_antecedent=True, rungs=1)._replace(learns=False)
    chain = sampler.begun(empty, np.full(number, NEW))
    chain = chain._replace(parameters=chain.parameters._replace(field=_FIELD))
    for _ in range(_SWEEPS):
        chain = sampler.sweep(random, chain, empty)
    place = chain.place[0]
    link, entity = place["link"].astype(int), place["entity"].astype(int)
    annotator = _shared_out(number, 10, 20, random)
    skills = np.array(SYNTHETIC_PROFILES)[:, ::-1] - 0.05  # new, old; points of the grid
    skill = skills[random.integers(len(skills), size=annotator.max() + 1)]
    base = np.zeros((KINDS, len(LOWEST_RANK)))
    base[1:, BIN_NEW] = 0.3
    base[:, FIRST_RANK:] = 0.6 ** np.arange(len(LOWEST_RANK) - FIRST_RANK)
    base *= _CONCENTRATION / base.sum(axis=1, keepdims=True)
    given = np.empty(annotator.shape, int)
    for mention in range(number):
        low, kind = mention - mention % length, int(link[mention] >= 0)
        earlier = np.arange(mention - 1, low - 1, -1)
        own = entity[earlier] == entity[mention]
        other, members = earlier[~own], earlier[own][1:]
        bins = BIN[np.minimum(np.arange(1, len(other) + 1), LIMIT)]
        each = base[kind, bins] / np.minimum(len(other) - LOWEST_RANK[bins] + 1, WIDTH[bins])
        labels = np.append(other, NEW) if kind else other
        each = np.append(each, base[1, BIN_NEW]) if kind else each
        right = random.random(annotator.shape[1]) < skill[annotator[mention], kind]
        right |= len(labels) == 0
        named = np.full(annotator.shape[1], link[mention])
        if len(members):
            far = random.random(len(named)) > _NEAREST
            named[far] = random.choice(members, far.sum())
        if len(labels):
            share = random.dirichlet(each)
            named[~right] = random.choice(labels, (~right).sum(), p=share)
        given[mention] = named
    rows = np.repeat(np.arange(number), annotator.shape[1]), annotator.ravel(), given.ravel()
    return _mentions(link, document, rows)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--sets", type=int, default=10, metavar="N", help="sets drawn from the model, and seeds")
    parser.add_argument("--scenarios", nargs="+", choices=_SCENARIOS, default=list(_SCENARIOS), metavar="NAME")
    parser.add_argument("--again", action="store_true", help="measure anew what is kept of earlier runs")


def run(arguments: argparse.Namespace) -> None:
    """Measure the parts that are asked for, and record all that is kept."""

    def measures(kept: Kept) -> dict[str, Callable[[], Any]]:
        return {
            "model": lambda: _model(kept, arguments.sets), "litbank": lambda: _litbank(kept, arguments),
            "starts": lambda: _starts(kept), "witness": lambda: _witnesses(kept, arguments),
        }  # fmt: skip

    run_parts("chains", "Coreference as a posterior of partitions", arguments, measures, _tell)


def _model(kept: Kept, sets: int) -> None:
    for seed in range(sets):
        kept.row("model", (seed,), lambda seed=seed: _measured(drawn_mentions(seed), seed))


def _litbank(kept: Kept, arguments: argparse.Namespace) -> None:
    key = cs.load("litbank")
    for seed in range(arguments.sets):
        for scenario in arguments.scenarios:
            profiles_ = STAND_IN if scenario.startswith("profiles") else None
            measure = functools.partial(_simulated, key, scenario, profiles_, seed)
            kept.row("litbank", (scenario, seed), measure)


def _starts(kept: Kept) -> None:
    for start in ("best links", "truth"):
        kept.row("starts", ("synthetic-uniform", 0, start), functools.partial(_started, start))


def _started(start: str) -> dict[str, Any]:
    """Run one chain as a fit does, and return what it says alone."""
    mentions, began = cs.simulate_mentions(cs.load("litbank"), "synthetic-uniform", seed=0), time.process_time()
    resolved = MODEL.resolve(mentions, None, {"coreference": "partition"})
    problem, random = sampler.prepare(resolved), np.random.default_rng(0)
    chain = sampler.start(random, problem)
    if start == "truth":
        chain = sampler.begun(problem, texts_of(mentions, "use").known)
    kept, rates, run = [], [], sampler.starts(resolved)
    for done in range(1, run.warmup + run.draws + 1):
        chain = sampler.sweep(random, chain, problem)
        if done <= run.warmup:
            chain = sampler.warmed(chain, problem, done, run.warmup)
        else:
            kept.append(sampler.sites(chain, problem)["link"])
            rates.append(chain.rates / max(chain.since, 1))
    found, seconds = PartitionLabels({"link": np.stack(kept)[None]}, resolved), time.process_time() - began
    true = spans_of(mentions, follow_links(np.asarray(mentions.gold_antecedent)[None])[0])
    silver = spans_of(mentions, found.chains.estimate())
    return {
        "labels right": 100 * float((found.lead.label == found.of_mentions.gold).mean()),
        "said": 100 * float(found.lead.probability.mean()),
        "silver CoNLL": 100 * cs.score_coreference(true, silver, singletons=False).conll,
        "swap rate": float(np.min(rates[-1])), "CPU s": seconds,
    }  # fmt: skip


def _witnesses(kept: Kept, arguments: argparse.Namespace) -> None:
    """Measure systems on sets of the model and, of seed 0, on LitBank."""
    key = cs.load("litbank")
    for scenario in ("model", *arguments.scenarios):
        for seed in range(arguments.sets if scenario == "model" else 1):
            profiles_ = STAND_IN if scenario.startswith("profiles") else None
            measure = functools.partial(_witnessed, scenario, seed, key, profiles_)
            kept.row("witness", (scenario, seed), measure)


def _witnessed(scenario: str, seed: int, key: Any, table: Any) -> dict[str, Any]:
    """Return scores of a system that looked for itself, and of one made from the crowd's chains, either way."""
    if scenario == "model":
        mentions = drawn_mentions(seed)
    else:
        mentions = cs.simulate_mentions(key, scenario, profiles=table, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = cs.fit("mpa", mentions, coreference="partition", seed=seed)
    silver, draws = cs.silver_chains(fit), cast(Any, fit.truth)
    copied = moved_links(mentions, silver.labels.antecedent[silver.label], seed, _COPY_MOVED)
    links = np.stack([np.asarray(mentions.gold_antecedent), system_links(mentions, seed), copied])
    truth, system, copy = (spans_of(mentions, entity) for entity in follow_links(links))
    row = {}
    for name, response in (("system", system), ("copy", copy)):
        asked = draws.witnessed(said_links(mentions, response))
        for labels, how in ((draws, "ignored"), (asked, "annotator")):
            found = covered(truth, response, labels, False)
            row |= {
                f"{name}, {how}": found["UA"], f"{name}, documents covered, {how}": found["documents covered"],
                f"{name}, documents below, {how}": found["documents below"],
            }  # fmt: skip
        row[f"{name}, true"] = found["true"]
    return row


def _simulated(key: Any, scenario: str, table: Any, seed: int) -> dict[str, Any]:
    return _measured(cs.simulate_mentions(key, scenario, profiles=table, seed=seed), seed)


def _measured(mentions: Mentions, seed: int) -> dict[str, Any]:
    """Fit, and return what is right, what is said, and what intervals of the silver chains and of a system hold."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = cs.fit("mpa", mentions, coreference="partition", seed=seed)
    seconds = time.process_time() - began
    of_labels = calibration(fit)
    scores = {row["response"]: row for row in coverage(fit, seed) if not row["singletons"]}
    silver, system = scores[SILVER], scores[SYSTEM]
    return {
        "labels right": of_labels["labels right"], "said": of_labels["mean probability"],
        "silver CoNLL": silver["true"], "expected": silver["UA"], "low": silver["low"], "high": silver["high"],
        "held": 100 * float(silver["covered"]), "documents covered": silver["documents covered"],
        "below": silver["documents below"], "above": silver["documents above"],
        "covered, system": system["documents covered"],
        "squares, draws": of_labels["squares, draws"], "squares, true": of_labels["squares, true"],
        "swap rate": float(np.mean(fit.posterior.hidden["swap_rate"][:, -1])), "CPU s": seconds,
    }  # fmt: skip


def _means(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _tell(record: Recording, kept: Kept) -> None:
    record.say(
        "All by `cs.fit(\"mpa\", mentions, coreference=\"partition\")` with nothing tuned; labels in per cent, scores "
        "without entities of one mention, intervals of nominal 90 %. 'Low' and 'high' are of all documents together, "
        "whose errors are correlated (`DOCUMENT_CORRELATION`, chosen by the seeds 0 to 4 of LitBank). Sets up to seed "
        "9 were measured without; their quantiles were taken further from the mean afterwards, by the same formula."
    )
    found = {part: kept.rows(part) for part in PARTS}
    for part, title in PARTS.items():
        if not found[part]:
            continue
        record.section(title)
        rows = [{"set": " ".join(map(str, key))} | row for key, row in found[part].items()]
        record.table(part, rows, 2)
    tell_bars(record, _bars(found))
    record.section("Commits")
    tell_commits(record, kept, list(PARTS))


def _bars(found: dict[str, dict[tuple[Any, ...], dict[str, Any]]]) -> list[Bar]:
    bars: list[Bar] = []
    if found["model"]:
        mean = _means(list(found["model"].values()))
        bars += [
            between(f"model, {len(found['model'])} sets: documents covered, %", 85, 95, mean["documents covered"], 1),
            at_most("… said - right, points", 0.5, abs(mean["said"] - mean["labels right"])),
        ]  # fmt: skip
    for scenario in _SCENARIOS:
        rows = [row for key, row in found["litbank"].items() if key[0] == scenario]
        if not rows:
            continue
        mean, name = _means(rows), f"{scenario}, {len(rows)} seeds"
        if scenario.endswith("uniform"):
            right, conll = (97, 89) if scenario.startswith("synthetic") else (99, 95)
            bars += [at_least(f"{name}: labels right, %", right, mean["labels right"]),
                     at_least("… silver CoNLL", conll, mean["silver CoNLL"])]  # fmt: skip
        bars += [at_most(f"{name}: said - right, points", 0.5, abs(mean["said"] - mean["labels right"])),
                 at_least("… documents covered, %, goal", 80, mean["documents covered"], 1),
                 at_least("… documents covered, %, today's", _TODAY[scenario], mean["documents covered"], 1),
                 at_most("… CPU s", 300, mean["CPU s"], 0)]  # fmt: skip
    later = [row["held"] for key, row in found["litbank"].items() if key[1] >= _CHOSEN_BY]
    if later:
        name = f"LitBank, {len(later)} sets of seeds from {_CHOSEN_BY} on: intervals of all documents that hold, %"
        bars.append(at_least(name, 80, float(np.mean(later)), 1))
    if len(started := [row["silver CoNLL"] for row in found["starts"].values()]) > 1:
        bars.append(at_most("two starts: silver CoNLL apart, points", 1, float(np.ptp(started))))
    for scenario in ("model", *_SCENARIOS):
        if rows := [row for key, row in found["witness"].items() if key[0] == scenario]:
            name = f"{scenario}, {len(rows)} sets: documents covered of a system as a witness, %"
            bars.append(at_least(name, 65, _means(rows)["system, documents covered, annotator"], 1))
    return bars
