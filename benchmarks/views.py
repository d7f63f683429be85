"""Clustering views from uncertain experts (Chang et al. 2017) against clusterings of one view and meta clustering.

`python -m benchmarks views [--sweeps [NAME …]] [--restarts] [--coverage] [--scale]` and `[--authors CHECKOUT --python2
INTERPRETER]`.

Experts are simulated, since no public data have several people judge pairs of items whose views are known: 600 items of
two views in features of their own, ten experts with accuracies from .7 to .9. Which pairs they judge is one of three
protocols (`benchmarks.views_experts`). In the authors' own, ``group``, the experts of a view share
their pairs, so that the pairs alone tell the groups; ``all`` gives methods that compare answers a fair chance.

Methods of one view are told which experts have it, and all methods the number of clusters. Each seed draws items and
experts anew. Data that come with packages (`--data`) need scikit-learn.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from benchmarks.recording import Recording, grouped
from benchmarks.views_authors import RECORDED, run_authors, scored
from benchmarks.views_data import DATA, PACKAGED, Known, load
from benchmarks.views_experts import PROTOCOLS, Experts, simulate_experts
from benchmarks.views_runs import coverage, restarts, scale
from benchmarks.views_scores import (
    PairReliability,
    calibration,
    fitted,
    held_out,
    mutual_information,
    ours,
    reliability_of_pairs,
    single_views,
    view_of_truth,
)
from consilience.evaluation.clustering import baselines
from consilience.models.expert_views.priors import PAPER_PRIORS

_ACCURACIES = (0.55, 0.65, 0.75, 0.85, 0.95)
_PAIRS = (25, 60, 100, 200, 300)
_EXPERTS = (4, 10, 20, 40)
_SWEEPS = ("accuracy", "pairs", "experts")

_STATED = {
    "three-clusters": "two views of three clusters, 2 + 2 features and 2 of noise",
    "k-views": "three views of four clusters that overlap, 9 features and 4 of noise",
    "two-digits": "two handwritten digits side by side: left 0 to 3, right 4, 6, 7 or 9; 20 principal components",
    "digit-parity": "handwritten digits: which, and whether even; 20 principal components",
    "wine": "wines of three growers, one view",
    "breast-cancer": "benign and malignant tumours, one view",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="data sets a row (10)")
    parser.add_argument("--data", nargs="*", choices=DATA, default=["three-clusters"], metavar="NAME",
                        help=f"{', '.join(DATA)}; the last {len(PACKAGED)} come with scikit-learn")  # fmt: skip
    parser.add_argument("--protocols", nargs="+", choices=PROTOCOLS, default=PROTOCOLS, metavar="NAME")
    parser.add_argument("--methods", nargs="*", choices=baselines.METHODS, default=list(baselines.METHODS),
                        metavar="NAME", help="of one view; SemiCrowd takes most of the time")  # fmt: skip
    parser.add_argument("--sweeps", nargs="*", choices=_SWEEPS, metavar="NAME",
                        help=f"what is changed, one thing at a time: {', '.join(_SWEEPS)}; by default all")  # fmt: skip
    parser.add_argument("--restarts", action="store_true", help="how many restarts find the best bound")
    parser.add_argument("--coverage", action="store_true", help="intervals of the experts' accuracies")
    parser.add_argument(
        "--scale", type=int, nargs="*", metavar="RESTARTS",
        help="100,000 items and up to a million answers; by default with 1 restart, and at a million with 20",
    )
    parser.add_argument("--authors", type=Path, metavar="CHECKOUT", help="of the authors' program")
    parser.add_argument("--python2", metavar="INTERPRETER", help="a Python 2 that can run it")


def run(arguments: argparse.Namespace) -> None:
    """Measure, print and record."""
    record = Recording("views", "Several views from uncertain experts", arguments.command, arguments.output)
    record.say(
        "NMI and AMI of each true view with the view that most of its experts are thought to have; adjusted Rand index "
        "of the grouping of experts; mean (standard deviation) over seeds. Three kinds of labels: of judged items, "
        "with what was answered about them; of all items, from features alone; and of the baselines, of all items that "
        "have a label. Methods of one view are told which experts have it."
    )
    for name in arguments.data:
        _known_views(record, name, arguments)
        record.write()  # hours of work: nothing is lost when the next part is interrupted
    if arguments.sweeps is not None:
        _sweeps(record, arguments)
        record.write()
    if arguments.restarts:
        record.section("Restarts")
        record.say(
            "Restarts warm up by the tied bound or by the likelihood of pairs. Shares of them within 1 and 10 nats of "
            "the best pruned bound of both, and with the true grouping of experts; CPU seconds without compilation."
        )
        record.table("restarts", list(restarts()))
        record.write()
    if arguments.coverage:
        record.section("Intervals of accuracies")
        record.say(
            "Intervals of the sensitivity and specificity of ten experts, protocol own: the share of 90 % and of 95 % "
            "intervals that hold the true accuracy. Drawn are the answers, of accuracies from .7 to .9 and the two "
            "views of three-clusters; the accuracies too, from the prior of the fit; or everything, views and clusters "
            "included. Beta(10, 1) is the paper's prior, of mean .91 and the weight of eleven answers. Learned: the "
            "Beta distribution that makes the answers of all experts most probable."
        )
        record.table("coverage", list(coverage(arguments.seeds)))
        record.write()
    if arguments.scale is not None:
        record.section("Scale")
        record.say(
            "Fits of simulated data, 10 views of 5 clusters and 20 features, in single precision: warm-up and 40 "
            "sweeps, from answers in memory to the posterior. Seconds with compilation; in a sweep, without."
        )
        record.table("scale", list(scale(arguments.scale or (1, 20))))
        record.write()
    _authors(record, arguments)
    record.write()


# Views, protocol by protocol ------------------------------------------------------------------------------------------


def _known_views(record: Recording, name: str, arguments: argparse.Namespace) -> None:
    record.section(name)
    record.say(f"{_STATED[name].capitalize()}. Each expert judges 300 pairs that are together and 300 that are apart.")
    rows: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    for protocol in arguments.protocols:
        found = _measured(name, {"protocol": protocol}, {"protocol": protocol}, arguments)
        rows += found.rows
        answers += found.answers
        pairs += _reliability(protocol, found.pairs)
    record.data(f"{name}-sets", rows)
    record.data(f"{name}-answers-sets", answers)
    record.table(name, _means(rows, ["protocol", "method"]))
    record.say(
        "Answers to a fifth of the pairs, held out for all experts: mean log score (0 is best) and Brier score of the "
        "probability that is given them. Own share: how often the expert says together. Truth known: views and "
        "accuracies, the best that can be expected."
    )
    record.table(f"{name}-answers", _means(answers, ["protocol", "probability"]))
    record.say(
        "Random pairs of judged items by how probably they are together in the views of the experts, and the share of "
        "them that is; all seeds. The error is the mean distance of the two over pairs."
    )
    record.table(f"{name}-pairs", pairs)


class _Measured(NamedTuple):
    """What is measured of data sets: rows of labels, rows of answers that were held out, and pairs, of all seeds."""

    rows: list[dict[str, Any]]
    answers: list[dict[str, Any]]
    pairs: PairReliability


def _measured(name: str, is_: dict[str, Any], options: dict[str, Any], arguments: argparse.Namespace) -> _Measured:
    """Measure a data set for each seed, with options of `simulate_experts`; rows begin with what it is and the seed."""
    rows: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []
    pairs = []
    for seed in range(arguments.seeds):
        known, set_ = load(name, seed), {**is_, "seed": seed}
        data, experts = simulate_experts(known.label, known.feature, seed=seed, **options)
        of_ours, fit = ours(known, data, experts, seed)
        rows += [set_ | row for row in (*of_ours, *single_views(known, data, experts, seed, arguments.methods))]
        answers += [set_ | row for row in held_out(known, data, experts, seed)]
        pairs.append(calibration(known, fit, experts, seed))
        nmi = ", ".join(f"{value:.3f}" for column, value in of_ours[0].items() if column.startswith("NMI"))
        print(name, *(f"{what} {value}" for what, value in set_.items()), f"NMI {nmi}", sep=", ", flush=True)
    together = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return _Measured(rows, answers, reliability_of_pairs(*together))


def _reliability(protocol: str, bins: PairReliability) -> list[dict[str, Any]]:
    return [
        {
            "protocol": protocol, "probability": f"{place / 10:.1f} to {(place + 1) / 10:.1f}",
            "pairs": int(bins.number[place]), "mean probability": float(bins.probability[place]),
            "together": float(bins.together[place]), "error, all bins": bins.error,
        }
        for place in range(len(bins.number))
    ]  # fmt: skip


def _means(rows: list[dict[str, Any]], by: list[str]) -> list[dict[str, Any]]:
    """Return mean (standard deviation) of all columns but the seed, by the values of some; a dash for nothing."""
    columns = list(dict.fromkeys(column for row in rows for column in row if column not in (*by, "seed")))
    table = []
    for key, own in grouped(rows, by).items():
        cells = {column: _cell([row[column] for row in own if column in row]) for column in columns}
        table.append(dict(zip(by, key, strict=True)) | cells)
    return table


def _cell(values: list[float]) -> str:
    if not values:
        return "–"
    deviation = f" ({np.std(values, ddof=1):.3f})" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{deviation}"


# Sweeps ---------------------------------------------------------------------------------------------------------------


def _sweeps(record: Recording, arguments: argparse.Namespace) -> None:
    record.section("Sweeps")
    record.say(
        "Three clusters, protocol own. One thing is changed at a time from ten experts with accuracies from .7 to .9 "
        "and 60 + 60 pairs each: the accuracy of all, the number of pairs of either kind, the number of experts. Then "
        "the scores of answers that were held out, and how far the probability that two items are together is from the "
        "share that is, over random pairs of judged items."
    )
    settings: list[tuple[str, float, dict[str, Any]]] = [
        *(("accuracy", value, {"sensitivity": value}) for value in _ACCURACIES),
        *(("pairs", value, {"num_together": value, "num_apart": value}) for value in _PAIRS),
        *(("experts", value, _experts(value)) for value in _EXPERTS),
    ]
    rows: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    chosen = [one for one in settings if one[0] in (arguments.sweeps or _SWEEPS)]
    for sweep, value, changed in chosen:
        options = {"num_together": 60, "num_apart": 60, "protocol": "own"} | changed
        found = _measured("three-clusters", {"sweep": sweep, "value": value}, options, arguments)
        rows += found.rows
        answers += found.answers
        jax.clear_caches()  # the next sets have programs of their own
        number = int(found.pairs.number.sum())
        pairs.append({"sweep": sweep, "value": value, "pairs": number, "mean distance": found.pairs.error})
    record.data("sweeps-sets", rows)
    record.data("sweeps-answers-sets", answers)
    record.table("sweeps", _means(rows, ["sweep", "value", "method"]))
    record.table("sweeps-answers", _means(answers, ["sweep", "value", "probability"]))
    record.table("sweeps-pairs", pairs)


def _experts(number: int) -> dict[str, Any]:
    accuracy = np.resize([0.9, 0.85, 0.8, 0.75, 0.7], number // 2)
    return {
        "view_of_expert": np.repeat([0, 1], number // 2).tolist(),
        "sensitivity": np.concatenate([accuracy, accuracy[::-1]]).tolist(),
    }


# The authors' program -------------------------------------------------------------------------------------------------


def _authors(record: Recording, arguments: argparse.Namespace) -> None:
    record.section("The authors' program")
    if arguments.authors is None or arguments.python2 is None:
        record.say(RECORDED)
        return
    known = load("three-clusters")
    data, experts = simulate_experts(known.label, known.feature)
    theirs = run_authors(data, arguments.authors, arguments.python2, clusters=3, views=5)
    bound, label = scored(data, theirs)
    seconds = float(theirs.seconds.sum())
    theirs_best = int(bound.argmax())
    races = [_Race("authors' program", bound, seconds, label[theirs_best], theirs.phi[theirs_best])]
    for name, options in (("expert-views, tied as theirs", {"responsibilities": "tied"}), ("expert-views", {})):
        for _ in range(2):  # the first one compiles
            fit, own_seconds = fitted(data, 3, priors=PAPER_PRIORS, **options)
        truth = fit.truth
        predicted = truth.memberships(truth.standardised(known.feature)).argmax(axis=2)
        bounds = np.asarray(fit.posterior.restart_bound, float)
        races.append(_Race(name, bounds, own_seconds, predicted.T, truth.view_probability))
    record.say(
        "Three clusters, protocol group, seed 0, the paper's prior; 20 starts each, in this run. All are scored by our "
        "pruned bound, in which clusters tied to the mean weights are a smaller family. CPU seconds of theirs are sums "
        "over starts; ours are without compilation. NMI of labels from features alone, of the best start. Expected "
        "seconds are those of a start over the share of starts that get so far: as high as the best of the authors' "
        "program, or within 1 nat of the best of all. Goal: a hundredth of theirs."
    )
    record.table("authors", [_raced(race, races, known, experts) for race in races])
    record.data("authors-starts", [
        {"start": start, "pruned bound": float(bound[start]), "CPU s": float(theirs.seconds[start]),
         "evaluations": int(theirs.evaluations[start])} for start in range(len(bound))
    ])  # fmt: skip


class _Race(NamedTuple):
    """What a program reached.

    Parameters
    ----------
    name : of the program.
    bound : of each start.
    seconds : CPU seconds of all.
    label, view_probability : of the best start, ``(view, item)`` and ``(expert, view)``.
    """

    name: str
    bound: np.ndarray
    seconds: float
    label: np.ndarray
    view_probability: np.ndarray


def _raced(race: _Race, races: list[_Race], known: Known, experts: Experts) -> dict[str, Any]:
    """Return a row of the table."""
    bound, a_start = race.bound, race.seconds / len(race.bound)
    own = view_of_truth(race.view_probability, experts.view_of_expert)

    def expected(height: float) -> float | str:
        share = float((bound >= height).mean())
        return a_start / share if share else "never"

    return {
        "program": race.name, "starts": len(bound), "best bound": float(bound.max()),
        "median": float(np.median(bound)),
        **{f"NMI {view + 1}": mutual_information(race.label[one], known.label[view]) for view, one in enumerate(own)},
        "CPU s": race.seconds, "CPU s a start": a_start,
        "expected s to theirs": expected(races[0].bound.max()),
        "expected s to the best": expected(max(other.bound.max() for other in races) - 1),
    }  # fmt: skip
