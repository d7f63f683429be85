"""The mention-pair model on simulated annotations of coreference (Paun et al. 2018), laid out as Tables 2 and 5.

`python -m benchmarks mpa [--table 2|5] [--key KEY] [--profiles FILE]`. The key says which mentions corefer: LitBank by
default, a CoNLL file or folder in its place; the paper's is the CoNLL-2012 test set, which has to be licensed. Each
scenario is simulated anew for each seed.

The paper's 89 profiles of players are not printed, so that the scenarios ``profiles-…`` need a table. A stand-in is
`benchmarks/pd_like_profiles.csv`: 89 made-up profiles with the mean sensitivities in DO and DN (.508, .737), the lump
below .10 in DO and the correlation (.03) of the estimates that the author published with his program; their spreads are
our guess.

Dawid-Skene and MACE want a closed list of labels. The labels that a mention got are numbered for them by recency: 0 is
DN, 1 the nearest antecedent among them, 2 the next.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import consilience as cs
from benchmarks.crowd_public import probabilities
from benchmarks.mpa_coverage import SILVER, SYSTEM, calibration, coverage, coverage_means
from benchmarks.recording import Recording
from consilience.commands.coreference import read_key
from consilience.data import Annotations, Mentions
from consilience.data.conll import Chains
from consilience.evaluation.chains import CONLL, conll, score
from consilience.evaluation.overlap import overlap
from consilience.models.mpa.scenarios import SCENARIOS, simulate_mentions
from consilience.models.truth import leading
from consilience.models.truth.chains import follow_links

STAND_IN = Path(__file__).parent / "pd_like_profiles.csv"

BEST, EXPECTED = "majority vote, best of ten", "majority vote"
MPA, JOINT = "MPA", "MPA, joint, learned"

TABLE_2 = {
    "synthetic-uniform": {BEST: (85.09, 0.52), MPA: (90.12, 0.52)},
    "synthetic-sparse": {BEST: (76.55, 0.46), MPA: (85.92, 0.60)},
    "profiles-uniform": {BEST: (89.26, 0.47), MPA: (97.38, 0.28)},
    "profiles-sparse": {BEST: (82.72, 0.56), MPA: (94.36, 0.33)},
}
"""Accuracies in per cent that Paun et al. (2018) print, with standard deviations over ten simulated sets."""

TABLE_5 = {
    "synthetic-uniform": {BEST: (87.12, 72.33, 73.55, 77.67, 0.47), MPA: (91.44, 77.75, 80.37, 83.19, 0.75)},
    "synthetic-sparse": {BEST: (80.47, 64.23, 64.09, 69.59, 0.32), MPA: (88.07, 72.25, 74.12, 78.15, 0.66)},
    "profiles-uniform": {BEST: (90.02, 77.41, 79.73, 82.39, 0.58), MPA: (97.31, 91.57, 94.23, 94.37, 0.68)},
    "profiles-sparse": {BEST: (84.20, 69.56, 71.39, 75.05, 0.53), MPA: (94.47, 84.83, 88.70, 89.33, 0.52)},
}
"""F1 of MUC, B3, CEAF-e and their mean, in per cent, and the standard deviation of the mean."""

DRAWS = 200
"""Of the chains of each mention-pair model."""

_NONE = -2      # no label of the mention has this number
_TITLES = {"muc": "MUC", "b3": "B3", "ceafe": "CEAFe"}


# ---- methods ----


class Measured(NamedTuple):
    """What a method says of each mention of one simulated set.

    Parameters
    ----------
    method : its name in the tables.
    antecedent : shape ``(round, mention)``; code of a mention, or -1 for DN. More than one round where ties are broken
        at random.
    accuracy : share of mentions with the right antecedent.
    fit : of the mention-pair model.
    """

    method: str
    antecedent: np.ndarray
    accuracy: float
    fit: Any = None


def majority_vote(mentions: Mentions) -> Iterator[Measured]:
    """Yield the round that has most mentions right, and all ten with the accuracy that is expected."""
    fit = _fit("majority-vote", mentions.to_annotations(), draws=10)
    label = np.concatenate([block.real for block in fit.truth.labels()]).T
    rounds = mentions.label_codes().antecedent[label]
    right = (rounds == mentions.gold_antecedent).mean(axis=1)
    best = int(right.argmax())
    yield Measured(BEST, rounds[best : best + 1], float(right[best]))
    yield Measured(EXPECTED, rounds, float(fit.accuracy()["expected"].iloc[0]))


def mention_pairs(name: str, **options: Any) -> Callable[[Mentions], Iterator[Measured]]:
    """Return what fits the mention-pair model."""

    def measure(mentions: Mentions) -> Iterator[Measured]:
        fit = _fit("mpa", mentions, coreference="links", draws=DRAWS, **options)
        label = np.asarray(leading(fit.truth)["label"])
        yield _measured(name, mentions.label_codes().antecedent[label], mentions)._replace(fit=fit)

    return measure


def closed_labels(name: str, member: str, **options: Any) -> Callable[[Mentions], Iterator[Measured]]:
    """Return what fits a model of a closed list of labels; they are numbers by recency."""

    def measure(mentions: Mentions) -> Iterator[Measured]:
        annotations, antecedent = by_recency(mentions)
        probability = probabilities(_fit(member, annotations, **options).truth)
        # A model may believe in a number that the mention has no antecedent for.
        label = np.where(antecedent > _NONE, probability, -1).argmax(axis=1)
        yield _measured(name, antecedent[np.arange(mentions.num_mentions), label], mentions)

    return measure


METHODS: tuple[Callable[[Mentions], Iterator[Measured]], ...] = (
    majority_vote,
    closed_labels("Dawid-Skene by recency", "dawid-skene"),
    closed_labels("MACE by recency", "mace", candidates="observed"),
    mention_pairs(MPA),
    mention_pairs("MPA, learned", hyperparameters="learned"),
    mention_pairs(JOINT, hyperparameters="learned", decisions="joint"),
)


def by_recency(mentions: Mentions) -> tuple[Annotations, np.ndarray]:
    """Give the labels that each mention got numbers: 0 for DN, then its antecedents, the nearest first.

    Returns
    -------
    annotations : of these numbers. They have gold labels only where somebody gave them.
    antecedent : shape ``(mention, label)``; what each number stands for: a mention, -1 for DN, -2 for nothing.
    """
    mention, given = np.asarray(mentions.mention, np.int64), np.asarray(mentions.antecedent)
    width = mentions.num_mentions + 1
    # Farther antecedents have lower codes, and -1 stands for DN: sorted down within the mention, the nearest is first.
    pair, place = np.unique(mention * width + (mentions.num_mentions - 1 - given), return_inverse=True)
    item, target = pair // width, mentions.num_mentions - 1 - pair % width
    number = np.where(target < 0, 0, np.arange(len(pair)) - np.searchsorted(item, item) + 1)
    antecedent = np.full((mentions.num_mentions, int(number.max()) + 1), _NONE)
    antecedent[item, number] = target
    same = target == np.asarray(mentions.gold_antecedent)[item]
    gold = np.full(mentions.num_mentions, -1)
    gold[item[same]] = number[same]
    annotations = Annotations.from_codes(
        mentions.mention, mentions.annotator, number[place], gold=gold, num_items=mentions.num_mentions,
        num_annotators=mentions.num_annotators, num_labels=antecedent.shape[1],
    )  # fmt: skip
    return annotations, antecedent


def _measured(name: str, antecedent: np.ndarray, mentions: Mentions) -> Measured:
    return Measured(name, antecedent[None], float((antecedent == mentions.gold_antecedent).mean()))


def _fit(member: str, data: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        # Few annotations of an annotator, and dispersed tables: known of these data, and said in the record.
        warnings.simplefilter("ignore")
        return cs.fit(member, data, **options)


# ---- scores ----


def chain_scores(antecedent: np.ndarray, mentions: Mentions) -> dict[str, float]:
    """Return the scores of the chains that links make, in per cent, means over rounds; singletons are left out.

    Parameters
    ----------
    antecedent : shape ``(round, mention)``; a code of a mention, or -1 where the mention begins a chain.
    """
    key = follow_links(np.asarray(mentions.gold_antecedent)[None])
    found = overlap(key, follow_links(antecedent), np.asarray(mentions.document), singletons=False)
    scores: dict[str, float] = {}
    for metric in CONLL:
        of_metric = score(found, metric)
        parts = {"P": of_metric.precision, "R": of_metric.recall, "F1": of_metric.f1}
        scores |= {f"{_TITLES[metric]} {part}": 100 * float(values.mean()) for part, values in parts.items()}
    return scores | {"Avg. F1": 100 * float(conll(found).mean())}


def measured(mentions: Mentions, chains: bool) -> list[tuple[dict[str, Any], Measured]]:
    """Return for each method a row (accuracy in per cent, CPU seconds, and scores of chains if asked for) and more."""
    rows = []
    for method in METHODS:
        began = time.process_time()
        for found in method(mentions):
            row = {"method": found.method, "accuracy": 100 * found.accuracy, "CPU s": time.process_time() - began}
            rows.append((row | (chain_scores(found.antecedent, mentions) if chains else {}), found))
            began = time.process_time()
    return rows


# ---- the benchmark ----


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--table", type=int, choices=(2, 5), help="one of the paper's tables; both by default")
    parser.add_argument("--key", default="litbank", help="a CoNLL file, a folder of them, or public data (litbank)")
    parser.add_argument("--profiles", type=Path, metavar="FILE", help=f"columns DO, DN, such as {STAND_IN.name}")
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="simulated sets a scenario (10)")
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=SCENARIOS, metavar="NAME")
    parser.add_argument(
        "--coverage", action=argparse.BooleanOptionalAction, default=True,
        help="whether scores over draws of the chains hold the true ones (yes; it takes most of the time)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> None:
    """Simulate, fit, print and record."""
    key = read_key(arguments.key)
    title = "The mention-pair model on simulated annotations"
    record = Recording("mpa", title, arguments.command, arguments.output)
    chosen = [name for name in arguments.scenarios if arguments.profiles or not name.startswith("profiles")]
    record.say(_about_key(key, arguments))
    record.say(_about_profiles(arguments))
    rows, of_labels, of_scores = [], [], []
    for scenario in chosen:
        for seed in range(arguments.seeds):
            mentions = simulate_mentions(
                key, scenario, profiles=arguments.profiles if scenario.startswith("profiles") else None, seed=seed
            )
            found = measured(mentions, chains=arguments.table != 2)
            set_ = {"scenario": scenario, "seed": seed}
            rows += [set_ | row for row, _ in found]
            shown = ", ".join(f"{row['method']} {row['accuracy']:.2f}" for row, _ in found)
            print(f"{scenario}, seed {seed}: {shown}", flush=True)
            for _, one in found if arguments.coverage else ():
                if one.method in (MPA, JOINT):
                    of_fit = set_ | {"fit": one.method}
                    of_labels.append(of_fit | calibration(one.fit))
                    of_scores += [of_fit | row for row in coverage(one.fit, seed)]
    if not rows:
        record.say("No scenario was left to run.")
        record.write()
        return
    record.data("sets", rows)
    if arguments.table != 5:
        _accuracies(record, rows, chosen)
    if arguments.table != 2:
        _chains(record, rows, chosen)
    if of_scores:
        _coverage(record, of_labels, of_scores)
    record.section("Seconds")
    record.say("CPU seconds of a fit with its compilation, and of choosing labels; means over all sets.")
    seconds = {name: _values(rows, "CPU s", method=name) for name in _methods(rows) if name != EXPECTED}
    record.table("seconds", [{name: float(values.mean()) for name, values in seconds.items()}], digits=1)
    record.write()


def _about_key(key: Chains, arguments: argparse.Namespace) -> str:
    sizes = np.bincount(key.entity[key.entity >= 0])
    return (
        f"Key: {arguments.key}, {key.num_documents:,} documents, {key.num_mentions:,} mentions, {len(sizes):,} "
        f"entities. {(sizes == 1).sum():,} of these have one mention, and are kept in the simulation; the others have "
        f"{sizes[sizes > 1].mean():.1f} on average. The published figures are of the CoNLL-2012 test set, which has no "
        "entities of one mention. Each mention has ten annotations and each annotator twenty; seeds from 0 to "
        f"{arguments.seeds - 1}. All scores in per cent, standard deviations over seeds."
    )


def _about_profiles(arguments: argparse.Namespace) -> str:
    if arguments.profiles is None:
        return "The scenarios with profiles of players were left out: the paper's are not printed (--profiles FILE)."
    about = f"The profiles of players are those of {arguments.profiles.name}; the paper's 89 are not printed."
    if arguments.profiles.resolve() != STAND_IN:
        return about
    return (
        f"{about} They are made up, with the mean sensitivities in DO and DN (.508, .737) and the correlation (.03) of "
        "the estimates that the author published with his program: rows of these scenarios do not repeat the paper's."
    )


def _accuracies(record: Recording, rows: list[dict[str, Any]], scenarios: list[str]) -> None:
    record.section("Table 2: mentions with the right label")
    record.say(
        "Mean accuracy (standard deviation). Majority vote: the best of ten random rounds, as in the paper, and what "
        "one round is expected to have. By recency: labels are numbered within a mention, as said above. MPA: "
        "coordinate ascent under uniform priors, as in the paper; with learned hyperparameters; and with these and one "
        "label from choices among the candidates (`decisions=\"joint\"`)."
    )
    table = []
    for scenario in scenarios:
        cells = {name: _cell(_values(rows, "accuracy", scenario=scenario, method=name)) for name in _methods(rows)}
        published = {f"paper: {name}": f"{mean:.2f} ({sd:.2f})" for name, (mean, sd) in TABLE_2[scenario].items()}
        table.append({"scenario": scenario, **cells, **published})
    record.table("table-2", table)


def _chains(record: Recording, rows: list[dict[str, Any]], scenarios: list[str]) -> None:
    record.section("Table 5: chains")
    record.say(
        "Chains of the most probable link of each mention, without those of one mention on both sides. Majority vote, "
        "best of ten: the round with most mentions right; the other row is the mean of the ten rounds."
    )
    columns = [*(f"{title} {part}" for title in _TITLES.values() for part in ("P", "R", "F1")), "Avg. F1"]
    table = []
    for scenario in scenarios:
        for method in _methods(rows):
            values = {name: _values(rows, name, scenario=scenario, method=method) for name in columns}
            lines = {"avg.": np.mean, "s.d.": _deviation}
            *printed, deviation = TABLE_5[scenario].get(method, (None,) * 5)
            theirs = {"avg.": printed, "s.d.": [None, None, None, deviation]}
            for line, summary in lines.items():
                own = {name: float(summary(values[name])) for name in columns}
                published = dict(zip(_PAPER_COLUMNS, theirs[line], strict=True))
                table.append({"scenario": scenario, "method": method, "": line, **own, **published})
    record.table("table-5", table, digits=2)


def _coverage(record: Recording, of_labels: list[dict[str, Any]], of_scores: list[dict[str, Any]]) -> None:
    record.section("Scores under uncertain chains")
    record.say(
        "The score of a response against the crowd: its CoNLL score against each of "
        f"{DRAWS} draws of the chains, their mean (UA) and their middle 90 %. The true score is that against the true "
        f"chains. {MPA} is as published, '{JOINT}' the calibrated variant. The response 'silver chains' is the fit's "
        "own; 'system' has the true links with 10 % of them moved at random, and no knowledge of the crowd. It agrees "
        "with the truth where the crowd errs, so that it scores better against the truth than against draws even of a "
        "fit that is right; the silver chains test the fit alone. 'Covered': "
        "the interval holds the true score, for whole data sets and (in per cent) for single documents; 90 % would be "
        "right. 'Below' and 'above': documents whose true score lies outside. 'Width' is of the whole sets' intervals."
    )
    table = coverage_means(of_scores)
    record.table("coverage", table, digits=1)
    record.data("coverage-sets", of_scores)
    record.say(_verdict(table))
    record.section("Are the labels as probable as they are right?")
    rows = []
    for scenario in dict.fromkeys(row["scenario"] for row in of_labels):
        for fit in (MPA, JOINT):
            own = [row for row in of_labels if row["scenario"] == scenario and row["fit"] == fit]
            names = [name for name in own[0] if name not in ("scenario", "seed", "fit")]
            means = {name: float(np.mean([row[name] for row in own])) for name in names}
            rows.append({"scenario": scenario, "fit": fit, **means})
    record.say(
        "Most probable labels that are right, and their mean probability, in per cent. 'Shared': links whose "
        "antecedent has another link too, in per cent. 'Squares': sum of squared sizes of entities, in all documents. "
        "Both of the true chains, of the silver ones, and means over draws."
    )
    record.table("label-calibration", rows, digits=2)
    record.data("label-calibration-sets", of_labels)
    record.say(
        "Labels that are as probable as they are right do not make chains so. Draws take links of different mentions "
        "as independent. But a true link goes to the nearest mention of its entity, so that no two share an "
        "antecedent, and one wrong link cuts or joins whole entities. Draws share antecedents, and scatter the "
        "mentions of long entities: the true chains are not like any of them."
    )


def _verdict(table: list[dict[str, Any]]) -> str:
    """Say whether the intervals hold what they promise."""
    lines = []
    for fit in (MPA, JOINT):
        for response in (SILVER, SYSTEM):
            covered = [row["documents covered"] for row in table if (row["fit"], row["response"]) == (fit, response)]
            lines.append(
                f"{fit}, {response}: intervals of 90 % hold the true scores of {min(covered):.0f} to "
                f"{max(covered):.0f} % of the documents."
            )
    reached = min(row["documents covered"] for row in table if row["fit"] == JOINT) >= 90
    missed = (
        "**The goal of 90 % is missed**: as they stand, these intervals are not to be read as what is known of the "
        "true score."
    )
    return " ".join([*lines, "The goal of 90 % is reached." if reached else missed])


_PAPER_COLUMNS = tuple(f"paper: {name}" for name in ("MUC F1", "B3 F1", "CEAFe F1", "Avg. F1"))


def _methods(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["method"] for row in rows))


def _values(rows: list[dict[str, Any]], column: str, **wanted: str) -> np.ndarray:
    return np.array([row[column] for row in rows if all(row[name] == value for name, value in wanted.items())])


def _deviation(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


def _cell(values: np.ndarray) -> str:
    deviation = f" ({_deviation(values):.2f})" if len(values) > 1 else ""
    return f"{values.mean():.2f}{deviation}"
