"""Differential diagnoses: the evaluation of Stutz and others (2023) on their released data.

The paper has no tables; what its figures show is measured here, printed values are set beside ours. A model with its
options is one entry of `VARIANTS`, such as PrIRN with either weighting.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import consilience as cs
from benchmarks import dermatology_figures as figures
from benchmarks import mixing, speed
from benchmarks.left_out import evaluate_left_out, leave_out
from benchmarks.recording import Recording
from consilience.data import ClassMap, Predictions, Rankings
from consilience.errors import InputError, InputProblem
from consilience.evaluation.classes import resolve

METRICS = ("top-1", "top-3", "set-2", "set-3", "average-overlap-3", "kendall-3", "footrule-3")
TITLE = "Evaluating AI systems under uncertain ground truth: dermatology"


# What the paper prints in Figures 5 and 15: UA top-3 accuracy by case and system.
PRINTED = (("1026", "A"), ("1026", "B"), ("1057", "A"), ("1057", "D"), ("357", "A"), ("357", "B"))


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A model with the options that are studied.

    Parameters
    ----------
    model : name of the member.
    reliabilities : the paper's five.
    medium : the one of Figures 5, 7, 8, 13 and 15; the paper marks it in a plot only, but its printed values fit the
        third.
    options : of the model.
    weights : of inverse rank normalisation, for the leave-one-out agreement that goes with it.
    paper : UA top-3 accuracies of `PRINTED`.
    prototype : the same, of another implementation, with 20,000 draws (Plackett-Luce) or 40,000 (PrIRN).
    chains : how many make up the draws; 0 for an exact posterior.
    """

    model: str
    reliabilities: tuple[float, ...]
    medium: float
    options: dict[str, Any]
    weights: str
    paper: tuple[float, ...]
    prototype: tuple[float, ...]
    chains: int = 0

    def fit(self, cases: Rankings, reliability: float, arguments: argparse.Namespace) -> Any:
        """Fit to the cases; the chains of a sampler share the draws."""
        chains = {"chains": self.chains, "draws": arguments.draws // self.chains} if self.chains else {}
        settings = {"draws": arguments.draws, "seed": arguments.seed, **chains, **self.options}
        return cs.fit(self.model, cases, reliability=reliability, **settings)


_PRIRN = {"model": "prirn", "reliabilities": (10, 20, 30, 50, 100), "medium": 30}
_PRIRN_PAPER = (0.52, 0.99, 0.41, 0.61, 0.40, 0.62)

VARIANTS = {
    "plackett-luce": Variant(
        model="plackett-luce", reliabilities=(1, 2, 3, 5, 10), medium=3, options={}, weights="published-code", chains=4,
        paper=(0.70, 1.00, 0.39, 0.58, 0.27, 0.42), prototype=(0.689, 1.000, 0.422, 0.577, 0.241, 0.379),
    ),
    "prirn published-code": Variant(
        **_PRIRN, options={"rank_weights": "published-code"}, weights="published-code", paper=_PRIRN_PAPER,
        prototype=(0.538, 0.981, 0.399, 0.599, 0.393, 0.586),
    ),
    "prirn equation-14": Variant(
        **_PRIRN, options={"rank_weights": "equation-14"}, weights="equation-14", paper=_PRIRN_PAPER,
        prototype=(0.648, 0.972, 0.123, 0.876, 0.745, 0.807),
    ),
}  # fmt: skip
MODELS = {
    "all": tuple(VARIANTS),
    "plackett-luce": ("plackett-luce",),
    "prirn": ("prirn published-code", "prirn equation-14"),
}
"""The variants of each study; the first one is drawn where a figure shows one only."""


@dataclass(frozen=True)
class Setting:
    """One variant at one reliability, fitted and measured.

    Parameters
    ----------
    variant, reliability : which one.
    fit : of the model.
    top : certainties of the top 1, 2 and 3 classes, from draws.
    risk : certainty of the risk of the top class, from draws.
    summed : of the largest summed risk.
    expected : expected risk.
    exact, risk_exact : certainty of the top class and of its risk by quadrature; None where the model has none.
    """

    variant: str
    reliability: float
    fit: Any
    top: tuple[Any, ...]
    risk: Any
    summed: Any
    expected: Any
    exact: Any
    risk_exact: Any

    @property
    def label(self) -> dict[str, Any]:
        """The first columns of every table."""
        return {"model": self.variant, "reliability": self.reliability}

    @property
    def certainty(self) -> Any:
        """Certainty of the top class, exact where it can be."""
        return self.top[0] if self.exact is None else self.exact

    @property
    def risk_certainty(self) -> Any:
        """Certainty of the risk of the top class, exact where it can be."""
        return self.risk if self.risk_exact is None else self.risk_exact


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--model", choices=MODELS, default="all", help="the models of the plausibilities (all)")
    parser.add_argument("--draws", type=int, default=1000, help="draws of the truth; the paper takes 1000")
    parser.add_argument("--seed", type=int, default=0, help="of the draws")
    parser.add_argument(
        "--predictions", type=Path, nargs="+", default=[], metavar="FILE",
        help="scores of systems, one text file each with a row a case and a column a condition, such as the files "
        "dermatology_predictions0.txt to 3.txt of the authors' repository",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> None:
    """Measure, print and record."""
    cases, risk = cs.load("dermatology-ddx"), cs.load("dermatology-ddx-risk")
    systems = {path.stem: read_scores(path, cases) for path in arguments.predictions}
    variants = {name: VARIANTS[name] for name in MODELS[arguments.model]}
    alone = arguments.model != "all"
    record = Recording(
        f"dermatology-{arguments.model}" if alone else "dermatology",
        f"{TITLE}, {arguments.model}" if alone else TITLE,
        arguments.command,
        arguments.output,
    )
    record.say(
        f"Data: {cases.num_items:,} cases, {cases.num_reports:,} differential diagnoses by up to "
        f"{cases.num_annotators} annotators a case, {cases.num_classes} conditions. M = {arguments.draws} draws, "
        f"seed {arguments.seed}; those of Plackett-Luce are of four chains, after 500 sweeps each. Reference: D. Stutz "
        "and others, Evaluating AI systems under uncertain ground truth: a case study in dermatology, arXiv:2307.02191 "
        "(2023)."
    )
    settings = [
        _measure(variant, reliability, cases, risk, arguments)
        for variant in variants
        for reliability in VARIANTS[variant].reliabilities
    ]
    _certainty(record, settings)
    _risk(record, settings, cases, risk)
    _agreement(record, settings, cases)
    _printed_cases(record, settings, cases)
    if "plackett-luce" in variants:
        mixing.mixing(record, cases, VARIANTS["plackett-luce"].reliabilities, arguments.seed)
        mixing.prior_of_unnamed_classes(record, cases, arguments.seed)
    human = _annotators(record, settings, arguments, cases)
    _systems(record, settings, systems)
    _figures(record, settings, cases, risk, human)
    if arguments.model == "prirn":
        _speed(record)
    _differences(record)
    record.write()


def only(cases: Rankings, chosen: Iterable[str]) -> Rankings:
    """Return the chosen cases, with all classes."""
    items = [int(np.flatnonzero(cases.items == case)[0]) for case in chosen]
    reports = np.flatnonzero(np.isin(cases.report_item, items))
    rows = np.flatnonzero(np.isin(cases.report, reports))
    new_item = np.searchsorted(sorted(items), cases.report_item[reports])
    return Rankings.from_codes(
        new_item, cases.report_annotator[reports], np.searchsorted(reports, cases.report[rows]), cases.block[rows],
        cases.entry_class[cases.entry[rows]], items=cases.items[sorted(items)], annotators=cases.annotators,
        classes=cases.classes,
    )  # fmt: skip


def read_scores(path: Path, cases: Rankings) -> Predictions:
    """Read the scores of a system, one row a case and one column a condition.

    Raises
    ------
    InputError
        If the file cannot be read or has another shape.
    """
    expected = f"{cases.num_items} rows of {cases.num_classes} numbers are expected, one a case and one a condition"
    remedy = "give the files dermatology_predictions0.txt to 3.txt of the authors' repository, or of that form"
    try:
        scores = np.loadtxt(path, ndmin=2)
    except (OSError, ValueError) as error:
        raise InputError(InputProblem(f"{expected}; {error}", remedy, file=str(path))) from None
    if scores.shape != (cases.num_items, cases.num_classes):
        found = f"this file has {scores.shape[0]} rows of {scores.shape[1]}"
        raise InputError(InputProblem(f"{expected}; {found}", remedy, file=str(path)))
    return Predictions.from_scores(scores, items=cases.items, classes=cases.classes, depth=10, name=path.stem)


def _measure(
    variant: str, reliability: float, cases: Rankings, risk: ClassMap, arguments: argparse.Namespace
) -> Setting:
    fit = VARIANTS[variant].fit(cases, reliability, arguments)
    exact = not VARIANTS[variant].chains
    return Setting(
        variant,
        reliability,
        fit,
        tuple(cs.certainty(fit, top=(1, 2, 3), exact=False).values()),
        cs.certainty(fit, class_groups=risk, exact=False),
        cs.certainty(fit, class_groups=risk, group_rule="sum", exact=False),
        cs.expected_risk(fit, risk),
        cs.certainty(fit, exact=True) if exact else None,
        cs.certainty(fit, class_groups=risk, exact=True) if exact else None,
    )


def _medium(settings: list[Setting]) -> dict[str, Setting]:
    """Return the setting of medium reliability of each variant."""
    return {
        setting.variant: setting for setting in settings if setting.reliability == VARIANTS[setting.variant].medium
    }


def _value(score: Any) -> float | None:
    return None if score is None else score.value


# ---- sections ----


def _certainty(record: Recording, settings: list[Setting]) -> None:
    record.section("Certainty (Figures 6, 7 left and 14)")
    record.say(
        "Mean over the cases of how often the draws agree on the top class, or on the set of the top 2 or 3; exact: by "
        "quadrature. The largest of several frequencies is biased upwards, by about 0.001 with 1,000 draws. "
        "The last columns count cases by their certainty, exact where it can be, and give its lower quartile over the "
        "cases."
    )
    record.table("certainty", [
        {
            **setting.label,
            "top-1": setting.top[0].value, "top-1 exact": _value(setting.exact),
            "top-2 set": setting.top[1].value, "top-3 set": setting.top[2].value,
            "cases below 0.99": int((setting.certainty.items < 0.99).sum()),
            "cases below 0.9": int((setting.certainty.items < 0.9).sum()),
            "lower quartile": float(np.quantile(setting.certainty.items, 0.25)),
        }
        for setting in settings
    ], digits=4)  # fmt: skip
    record.say(
        "The paper: certainty rises with reliability; for at least a quarter of the cases it is well below 1. Cases "
        "whose certainty stays below 0.99 at every reliability, and rises by less than 0.01 from the second "
        "highest to the highest reliability (the paper, Figure 14: for at least 250 cases more reliability does not "
        f"raise the certainty): {_saturated(settings)}."
    )


def _saturated(settings: list[Setting]) -> str:
    """Count the cases whose certainty does not rise any more."""
    counts = []
    for variant in dict.fromkeys(setting.variant for setting in settings):
        *_, before, last = [setting.certainty.items for setting in settings if setting.variant == variant]
        counts.append(f"{((last < 0.99) & (last < before + 0.01)).sum():,} with {variant}")
    return ", ".join(counts)


def _risk(record: Recording, settings: list[Setting], cases: Rankings, risk: ClassMap) -> None:
    record.section("Risk (Figures 8 and 12)")
    record.say(
        "Certainty of the risk (low 0, medium 1, high 2) of the top class, and of the risk with the largest summed "
        "plausibility; expected risk, averaged over draws and cases; share of the cases whose expected risk is more "
        "than 0.05 away from 0, 1 and 2."
    )
    record.table("risk", [
        {
            **setting.label,
            "risk of the top class": setting.risk.value, "the same, exact": _value(setting.risk_exact),
            "largest summed risk": setting.summed.value,
            "risk certainty below 0.99": int((setting.risk_certainty.items < 0.99).sum()),
            "expected risk": setting.expected.value, "sd over draws": setting.expected.sd,
            "between the risks": float(np.mean(_between(setting.expected.items))),
        }
        for setting in settings
    ], digits=4)  # fmt: skip
    record.say(
        "The paper: the risk is more certain than the condition, but still uncertain for many cases; the expected risk "
        "of most cases is neither 0, 1 nor 2. Cases by the risk of their top class under inverse rank normalisation:"
    )
    record.table("cases-by-risk", [
        {
            "weights": variant, "risk": name, "cases": int(chosen.sum()),
            "annotators per case": float(figures.annotators_per_case(cases)[chosen].mean()),
            "conditions per case": float(figures.conditions_per_case(cases)[chosen].mean()),
        }
        for variant in dict.fromkeys(VARIANTS[setting.variant].weights for setting in settings)
        for name, chosen in figures.by_risk(cases, risk, variant).items()
    ], digits=2)  # fmt: skip
    record.say("The paper (histograms only): high-risk cases have fewer annotators and more conditions.")


def _between(expected: np.ndarray) -> np.ndarray:
    return np.abs(expected[:, None] - np.arange(3)).min(axis=1) > 0.05


def _agreement(record: Recording, settings: list[Setting], cases: Rankings) -> None:
    record.section("Agreement of annotators (Figure 13) and of models (Figure 7, left)")
    agreement = {weights: cs.annotator_agreement(cases, weights) for weights in ("published-code", "equation-14")}
    overlap = cs.annotator_overlap(cases, at=3)
    record.say(
        "Leave-one-out agreement: how often an annotator lists a class that the others together put first by inverse "
        "rank normalisation (for Plackett-Luce with the published code's weights), averaged over the annotators of a "
        "case and over the cases with two annotators or more. The paper prints its correlation with certainty under "
        f"Plackett-Luce, 0.85. Mean average overlap@3 between the annotators of a case: {overlap.value:.4f} "
        "(no published counterpart)."
    )
    record.table("agreement", [
        {
            **setting.label, "agreement": agreement[VARIANTS[setting.variant].weights].value,
            "correlation with certainty": cs.correlation(
                setting.certainty, agreement[VARIANTS[setting.variant].weights]
            ),
            "overlap's correlation with certainty": cs.correlation(setting.certainty, overlap),
        }
        for setting in settings
    ])  # fmt: skip
    medium = list(_medium(settings).values())
    if len(medium) > 1:
        record.say("Correlation of the certainties of two models at medium reliability (the paper, Plackett-Luce and "
                   "PrIRN: 0.9):")  # fmt: skip
        record.table("correlation-of-models", [
            {
                "model": f"{one.variant}, {one.reliability:g}",
                "other model": f"{other.variant}, {other.reliability:g}",
                "correlation": cs.correlation(one.certainty, other.certainty),
            }
            for one, other in itertools.combinations(medium, 2)
        ])  # fmt: skip


def _printed_cases(record: Recording, settings: list[Setting], cases: Rankings) -> None:
    record.section("The cases that the paper prints (Figures 5 and 15)")
    record.say(
        "UA top-3 accuracy at medium reliability, per case. The paper's values are from 1,000 draws and printed with "
        "two digits; 'prototype' is another implementation with more draws. 'Exact' is by quadrature, and for "
        "Plackett-Luce from a run of 40,000 draws over these cases alone, whose error is about 0.003."
    )
    rows = []
    printed = only(cases, dict.fromkeys(case for case, _ in PRINTED))
    predictions = cs.load("stutz-2023-predictions")
    for name, setting in _medium(settings).items():
        variant = VARIANTS[name]
        long_settings = {"reliability": setting.reliability, "draws": 10_000}
        long_run = cs.fit(variant.model, printed, **long_settings) if variant.chains else None
        for number, (case, system) in enumerate(PRINTED):
            score = cs.evaluate(setting.fit, predictions[system], metric="top-3", missing="drop", exact=False)
            position = int(np.flatnonzero(cases.items == case)[0])
            if long_run is None:
                exact_score = cs.evaluate(setting.fit, predictions[system], metric="top-3", missing="drop", exact=True)
                exact = exact_score.items[position]
            else:
                long_score = cs.evaluate(long_run, predictions[system], metric="top-3", missing="drop", exact=False)
                exact = long_score.items[int(np.flatnonzero(printed.items == case)[0])]
            rows.append({
                "model": name, "case": case, "prediction": system, "paper": variant.paper[number],
                "prototype": variant.prototype[number], "measured": score.items[position], "exact": exact,
            })  # fmt: skip
    record.table("printed-cases", rows)


def _annotators(record: Recording, settings: list[Setting], arguments: argparse.Namespace, cases: Rankings) -> Any:
    """Evaluate left-out annotators; returns their scores by (variant, reliability)."""
    record.section("Annotators as systems: a human baseline")
    left_out = leave_out(cases)
    record.say(
        "Each annotator's own differential, evaluated as a prediction against the truth that the *other* annotators of "
        f"the case determine: {len(left_out.case):,} left-out reports of "
        f"{len(np.unique(left_out.case)):,} cases with two annotators or more, averaged over the annotators of a case, "
        "then over cases. This measures dermatologists and not the paper's four classifiers; the numbers have no "
        "published counterpart. The truth has one annotator less than elsewhere in this file. A list shorter than a "
        "metric's k is scored at its own length, and most annotators list one or two conditions. The spread is over "
        "draws of the truth; the pairings of a case are drawn independently."
    )
    metrics = [resolve(name) for name in METRICS]
    human, rows = {}, []
    for setting in settings:
        fit = VARIANTS[setting.variant].fit(left_out.others, setting.reliability, arguments)
        scores = human[setting.variant, setting.reliability] = evaluate_left_out(fit.truth, left_out, metrics)
        rows += [{**setting.label, "metric": name, **score.row()} for name, score in scores.items()]
    record.data("annotators-all", rows)
    record.table("annotators", [
        {"model": variant, "reliability": reliability, **{name: score.value for name, score in scores.items()}}
        for (variant, reliability), scores in human.items()
    ])  # fmt: skip
    record.say("Spread over draws and point estimate at medium reliability:")
    record.table("annotators-medium", [
        {
            "model": row["model"], "metric": row["metric"], "value": row["value"], "sd": row["sd"],
            "worst draw": row["worst"], "best draw": row["best"], "against the point estimate": row["point_estimate"],
        }
        for row in rows if row["reliability"] == VARIANTS[row["model"]].medium
    ], digits=4)  # fmt: skip
    return human


def _systems(record: Recording, settings: list[Setting], systems: dict[str, Predictions]) -> None:
    """Score the systems that the user brought, if any (Figures 6 and 7)."""
    record.section("Systems (Figures 6 and 7)")
    if not systems:
        record.say(
            "The scores of the paper's four classifiers are in the authors' repository and not among the public files "
            "that this benchmark fetches: `--predictions FILE…` adds their leaderboard and figures. Without "
            "them, Figures 6 and 7 show the left-out annotators."
        )
        return
    metrics = ["top-3", "set-2", "set-3", "average-overlap-3"]
    scored, rows = {}, []
    for setting in settings:
        for name, predictions in systems.items():
            scores = cs.evaluate(setting.fit, predictions, metric=metrics, exact=False)
            rows += [{**setting.label, "system": name, "metric": key, **one.row()} for key, one in scores.items()]
            scored[setting.variant, setting.reliability, name] = scores
    record.say("The scores that were given, on the released cases (the paper: 1,939 cases).")
    record.table("systems", [
        {key: row[key] for key in ("model", "reliability", "system", "metric", "value", "sd", "point_estimate")}
        for row in rows
    ], digits=4)  # fmt: skip
    for variant, setting in _medium(settings).items():
        comparison = cs.compare(setting.fit, systems, metric="top-3", exact=False)
        record.say(f"Leaderboard by UA top-3 accuracy, {variant}, reliability {setting.reliability:g}:")
        record.table(f"leaderboard-{variant}", comparison.table.to_dict("records"), digits=4)
        record.figure(f"leaderboard-{variant}", figures.leaderboard(comparison), f"Leaderboard, {variant}")
        own = {name: scored[variant, setting.reliability, name]["top-3"] for name in systems}
        record.figure(f"figure-7-systems-{variant}", figures.figure_7(own), f"Figure 7 middle and right, {variant}")
    names = list(systems)
    by_system = {name: {key[:2]: one for key, one in scored.items() if key[2] == name} for name in names}
    record.figure("figure-6-systems", figures.metrics_by_reliability(by_system, metrics), "Figure 6: the systems given")


def _figures(
    record: Recording, settings: list[Setting], cases: Rankings, risk: ClassMap, human: Any
) -> None:
    record.section("Figures")
    medium = _medium(settings)
    main = next(iter(medium.values()))
    at_medium = f"{main.variant}, reliability {main.reliability:g}"
    printed = list(dict.fromkeys(case for case, _ in PRINTED))
    record.figure(
        "figure-5-15", figures.printed_cases(main.fit, printed),
        f"Figures 5 and 15: draws of the plausibilities (dots) and point estimates (bars), {at_medium}",
    )  # fmt: skip
    record.figure(
        "figure-6-certainty", figures.certainty_by_reliability(settings),
        "Figure 6, left: certainty over reliability, one panel a model",
    )  # fmt: skip
    record.figure(
        "figure-6-annotators", figures.metrics_by_reliability({"left-out annotators": human}, list(METRICS)),
        "Figure 6, right, for left-out annotators in place of classifiers: UA metrics over reliability, ± sd over "
        "draws; crosses: against the point estimate",
    )  # fmt: skip
    record.figure(
        "figure-7-left", figures.sorted_beside({name: setting.certainty for name, setting in medium.items()}),
        "Figure 7, left: certainty of the top class, cases sorted by the first model (the paper sorts by "
        "Plackett-Luce), medium reliability",
    )  # fmt: skip
    scores = {name: human[name, setting.reliability]["top-3"] for name, setting in medium.items()}
    record.figure(
        "figure-7-annotators", figures.figure_7(scores),
        "Figure 7, middle and right, for left-out annotators: UA top-3 accuracy of each case, and of the "
        "data set over draws, medium reliability",
    )  # fmt: skip
    record.figure(
        "figure-8", figures.figure_8(main.certainty, main.risk_certainty, main.expected),
        f"Figure 8: certainty of the risk beside that of the condition; expected risk, {at_medium}",
    )  # fmt: skip
    record.figure(
        "figure-12", figures.figure_12(cases, risk),
        "Figure 12: annotators and conditions per case, by the risk of the top class under equation 14",
    )  # fmt: skip
    record.figure(
        "figure-13", figures.figure_13(main.certainty, cs.annotator_agreement(cases, VARIANTS[main.variant].weights)),
        f"Figure 13: certainty against leave-one-out agreement, {at_medium}",
    )  # fmt: skip
    record.figure(
        "figure-14", figures.figure_14(settings), "Figure 14: sorted certainty, one curve a reliability"
    )


def _speed(record: Recording) -> None:
    record.section("Speed and memory")
    seconds = speed.measure()
    record.say(
        "PrIRN, in a process of its own: one reliability (30) for all cases, that is the fit and the certainties of "
        "the top class and of the sets of two and three, from 1,000 draws of every case in one pass. CPU seconds count "
        "all cores; 'first' includes compilation, 'later' is the median of five calls. The draws and their top three "
        "alone, without counting, are stated too. The wall seconds depend on what else the machine does. Peak memory "
        "is that of the whole process, with the interpreter, JAX and the compiler. For Plackett-Luce see `python -m "
        "benchmarks plackett_luce`."
    )
    record.table("speed", [
        {"what": "import", "CPU s": seconds["import_cpu_seconds"], "wall s": seconds["import_seconds"]},
        {"what": "read the data", "CPU s": None, "wall s": seconds["read_seconds"]},
        {"what": "first", "CPU s": seconds["first_call_cpu_seconds"], "wall s": seconds["first_call_seconds"]},
        {"what": "later", "CPU s": seconds["warm_cpu_seconds"], "wall s": seconds["warm_seconds"]},
        {"what": "later, fastest of five", "CPU s": seconds["warm_cpu_seconds_fastest"], "wall s": None},
        {"what": "the draws alone", "CPU s": seconds["one_pass_cpu_seconds"], "wall s": seconds["one_pass_seconds"]},
    ], digits=2)  # fmt: skip
    record.data("speed-all", [seconds])
    record.say(
        f"Peak memory: {seconds['peak_memory_mb']:.0f} MB. Peer in the same run: a dense `jax.random.dirichlet` "
        "over all 419 conditions with 0.01 added to each, which is how the published code draws, takes "
        f"{seconds['peer_cpu_seconds_per_draw']:.2f} CPU s for one draw of all cases (5 draws timed, without "
        f"compilation); 1,000 draws extrapolate to {seconds['peer_cpu_seconds_extrapolated'] / 60:.0f} minutes, "
        f"{seconds['peer_ratio']:,.0f} times the above, before any certainty is counted. Stored, they would take "
        "1,947 × 419 × 1,000 × 4 bytes = 3.3 GB. An earlier timing of the authors' own function gave 2.6 CPU s a draw, "
        "that is 43 minutes for 1,000."
    )


def _differences(record: Recording) -> None:
    record.section("What differs from the paper, and why")
    record.say(
        "- **Cases.** 1,947 are released; the paper says 1,939. It also says that every case has three annotators or "
        "more; 157 of the released ones have one or two.\n"
        "- **Weights.** The paper prints equation 14, 1/(i |b|) for a class of the i-th block b; its published code "
        "computes 1/i. Only the second reproduces the printed values: with equation 14 the cases 1057 and 357, whose "
        "annotators tie classes, are far off. Both are recorded; the library's default is equation 14.\n"
        "- **α.** The paper has none; the authors' notebook adds 0.01 to every class. Here it is 0.\n"
        "- **Monte Carlo.** The paper's numbers are of 1,000 draws: one standard deviation of a per-case value near "
        "0.5 is 0.016, and rounding adds 0.005. 'Exact' has neither.\n"
        "- **Top-j certainty.** The paper's equation 5 is the certainty of the top-j *set*, recorded here; the "
        "published code counts the class at rank j.\n"
        "- **Plackett-Luce's sampler.** The paper's text combines the arrival times of all classes with the number of "
        "annotators who named a class, which is not the posterior; its published code draws from the posterior, but "
        "mixes slowly. Here only the times up to the last listed class are drawn.\n"
        "- **Classifiers.** The scores of the paper's networks are used only when they are given with `--predictions`."
    )
