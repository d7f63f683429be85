"""`consilience demo`: six small studies that need no network and no file, as a page and a few lines each.

Two use the printed tables that the package ships; four simulate their data, so that the truth, which nobody has in
practice, can be laid beside what was inferred.
"""

from __future__ import annotations

import itertools
import os
import textwrap
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy import stats

import consilience as cs
from consilience import demo_figures, figures, linkage_figures
from consilience.data import Annotations, Predictions
from consilience.demo_figures import RELIABILITIES, TOY_LABELS
from consilience.demo_words import (
    CODE,
    COMMANDS,
    DEFAULT_PRIOR,
    FIRST,
    FLAT_PRIOR,
    OWN_PRIOR,
    RELIABILITY,
    YOURS,
    against_the_votes,
    by_priors,
    doubts,
    in_brackets,
    of_a_vote,
    of_the_prior,
    other_assumptions,
    sure_of_another,
    to_one_side,
    truth_among,
    who_is_first,
    whom_to_look_at,
)
from consilience.errors import ConsilienceWarning, DiagnosticWarning
from consilience.evaluation.agreement.jackknife import wilson
from consilience.evaluation.leaderboard import Comparison
from consilience.inference.fitting import Fit
from consilience.models import block_linkage, dirichlet, normal_inverse_gamma
from consilience.models.intervals import ends
from consilience.output import check_output
from consilience.pages import SURE, Action, Code, Page, Section, Table, capital, write_page
from consilience.pages.gold import SOURCES
from consilience.pages.run import METHODS
from consilience.printing import counted, percent, percents, rows_of, table_text
from consilience.rounding import at_most, probability


class Study(NamedTuple):
    """One study.

    Parameters
    ----------
    section : its part of the page.
    table : that of the section, for the terminal.
    words : what the table says, for the terminal.
    number : of the first screen, by what it is.
    finding : for the first screen, in a sentence.
    verdict, figure : of the page, where the study has the one thing to be said first.
    ran : what was run, by what it is.
    """

    section: Section
    table: Table
    words: str
    number: Mapping[str, Any] = MappingProxyType({})
    finding: str = ""
    verdict: str = ""
    figure: Any = None
    ran: Mapping[str, Any] = MappingProxyType({})


def run(path: str | os.PathLike, *, force: bool = False) -> None:
    """Run all studies, print a short table of each, and write the page."""
    check_output(path, force=force)
    began = time.perf_counter()
    print("Consilience: an unobserved truth, many noisy reports of it. Six small studies, no network needed.")
    studies = []
    for number, study in enumerate(STUDIES, 1):
        studies.append(study())
        table = studies[-1].table
        print(f"\n{number}. {studies[-1].section.title}\n{textwrap.fill(studies[-1].words, 100)}\n")
        print(table_text(rows_of(table.frame.assign(**table.texts)), limit=None), flush=True)
    line = (
        "Six studies that need no data of your own. Nobody knows the truth of the first two, which are printed tables; "
        "the other four simulate data, so that it is known. Leaderboard, Ratings and People draw their data from the "
        "model that is then fitted: they show what it does where it is right, not that it is right of other data."
    )
    yours = Section("Now yours", [YOURS, Code("\n".join(COMMANDS.values()), "Commands to begin with")])
    page = Page(
        "Consilience: six small studies", line, [*(study.section for study in studies), yours, _what_was_run(studies)],
        numbers=dict(itertools.chain.from_iterable(study.number.items() for study in studies)),
        findings=[study.finding for study in studies if study.finding],
        verdict=" ".join(study.verdict for study in studies if study.verdict),
        figure=next((study.figure for study in studies if study.figure is not None), None),
        actions=[Action(words, command) for words, command in itertools.islice(COMMANDS.items(), FIRST)],
    )  # fmt: skip
    write_page(page, path, force=force)
    print(f"\nwrote {path} after {time.perf_counter() - began:.0f} s; open it in a browser")


def _what_was_run(studies: Sequence[Study]) -> Section:
    """Return the section with models, seeds and versions, and the line that makes the page again."""
    import pandas

    rows = [{"study": study.section.title, **study.ran} for study in studies if study.ran]
    table = Table(pandas.DataFrame(rows), "The studies, and what each was computed with.")
    software = f"consilience {cs.__version__}, JAX {jax.__version__}, NumPyro {version('numpyro')}"
    again = ["To make this page again:", Code("consilience demo -o demo.html", "To make this page again")]
    return Section("What was run", [table, f"Computed with {software}.", *again], software)


def _ran(fit: Fit, data: str) -> dict[str, Any]:
    """Say what a fit was computed with."""
    model = f"{fit.member.name} by {METHODS.get(fit.method, fit.method)}"
    return {"data": data, "model and method": model, "seed of the fit": fit.seed, "draws": fit.draws}



# ---- 1: whose label can be trusted ----


_ABOUT = {0.0: " (independent looks)"}


def anaesthetists() -> Study:
    """Study the table of Dawid and Skene (1979): which labels of a crowd can be trusted."""
    import pandas

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)  # the page says it
        fit = cs.fit("dawid-skene", cs.load("dawid-skene-1979"))
    certainty = cs.certainty(fit)
    votes = _votes(fit.data)
    table = fit.labels()[["item", "label", "certainty"]].assign(votes=[_tally(row, fit.data.labels) for row in votes])
    table = table.rename(columns={"item": "patient", "label": "grade"})
    least = table.sort_values("certainty", kind="stable").head(8).reset_index(drop=True)
    size, rho = fit.data.num_items, fit.dependence.rho
    others = other_assumptions(fit)
    every = {value: int((sure >= SURE).sum()) for value, sure in (others.certainties | {rho: certainty.items}).items()}
    words = (
        f"Five anaesthetists graded the fitness of {size} patients from 1 to 4; the first one looked three times. "
        "Nobody knows the right grades. From how the five agree a model learns what each of them confuses, and how "
        "certain (probable) each grade is. The least certain patients:"
    )
    leaves = against_the_votes(fit.data.labels, fit.data.items, votes, fit.labels()["label"])
    weighs = " ".join(f"{capital(one.words())}." for one in fit.findings())
    given = (
        "Two things the model cannot learn here and takes as given. One is the prior, which errors it expects before "
        f"any data: {others.without_prior}. The other is the dependence, how far those who look at one patient err "
        f"together. It is taken to be {rho:g}, {SOURCES[fit.dependence.source]}; the range of sure grades below is "
        f"that of the values tried, and no bound. {others.grades}"
    )
    tried = pandas.DataFrame(
        [{"dependence": f"{value:g}{_ABOUT.get(value, '')}{', assumed' * (value == rho)}", "sure grades": every[value]}
         for value in sorted(every)]
    )  # fmt: skip
    fewest, most = min(every.values()), max(every.values())
    shown = Table(least, "The patients whose grade is least certain.")
    crowd = figures.probability_matrix(fit.table("crowd"), "What the five say of each grade", amount="annotations")
    again, advice = whom_to_look_at(fit.labels(), certainty.items, others)
    section = Section(
        "Anaesthetists: which labels of a crowd can be trusted?",
        [
            words, shown, f"{leaves} {weighs}".strip(), given,
            Table(tried, f"Patients with a sure grade (certainty {SURE} or more), by the dependence."),
            [figures.sorted_certainty(certainty, unit="patient"), crowd],
            "Data: Dawid and Skene (1979).", Code(CODE["anaesthetists"], "This study in Python"), advice,
        ],
        f"{again} of {size} patients to be looked at again",
    )  # fmt: skip
    sure = (
        f"Anaesthetists: of {size} patients have a sure grade (certainty {SURE} or more), by how far graders are taken "
        "to err together"
    )
    number = {sure: f"{fewest} to {most}"}
    finding = (
        f"Anaesthetists: {fewest} to {most} of {size} patients have a sure grade, by how far looks at one patient err "
        f"together ({len(every)} values tried, which are no bounds); the data do not tell. Without a prior, what the "
        f"model expects of errors before any data, {counted(len(others.changed), 'patients')} would get another grade."
    )
    return Study(section, shown, words, number, finding, ran=_ran(fit, "printed table"))


def _votes(data: Annotations) -> np.ndarray:
    """Return how often each item got each label, ``(item, label)``."""
    cell = np.asarray(data.item) * data.num_labels + np.asarray(data.label)
    return np.bincount(cell, data.weight, data.num_items * data.num_labels).reshape(data.num_items, -1)


def _tally(votes: np.ndarray, labels: Any) -> str:
    return ", ".join(f"{count:g}× {label}" for count, label in zip(votes, labels, strict=True) if count)


# ---- 2: differential diagnoses ----

_PRINTED_SCORES = {
    ("1026", "A"): 0.52, ("1026", "B"): 0.99, ("1057", "A"): 0.41, ("1057", "D"): 0.61, ("357", "A"): 0.40,
    ("357", "B"): 0.62,
}  # fmt: skip
"""Uncertainty-adjusted top-3 accuracy with PrIRN that Stutz et al. (2023) print in Figures 5 and 15."""


_RANK_WEIGHTS = {"published-code": "weights of their program", "equation-14": "weights of their equation 14"}


def dermatologists() -> Study:
    """Study three differential diagnoses of Stutz et al. (2023) under both weightings of ranks."""
    import pandas

    cases, systems = cs.load("stutz-2023-cases"), cs.load("stutz-2023-predictions")
    fits = {
        weights: cs.fit("prirn", cases, reliability=30, rank_weights=weights, draws=10_000)
        for weights in ("published-code", "equation-14")
    }
    scores = {weights: _scores_by_case(fit, systems) for weights, fit in fits.items()}
    table = pandas.DataFrame(
        [
            {"case": item, "system": system, "printed in the paper": printed}
            | {f"here, {_RANK_WEIGHTS[weights]}": values[item, system] for weights, values in scores.items()}
            for (item, system), printed in _PRINTED_SCORES.items()
        ]
    )
    computed = [f"here, {of}" for of in _RANK_WEIGHTS.values()]
    gap, other = ((table["printed in the paper"] - table[of]).abs().max() for of in computed)
    words = (
        "Dermatologists listed possible diagnoses, some tied, for three cases. Is the most plausible diagnosis among "
        "the three that a system predicts? Averaged over draws of the plausibilities, the answer is a number between "
        "0 and 1. With the rank weights of the authors' published code it differs from the paper's figures by at most "
        f"{at_most(gap, 3)}; with the weights of the paper's equation 14, which share a rank between ties, by up to "
        f"{at_most(other, 3)}. Uncertainty-adjusted top-3 accuracy:"
    )
    as_printed = {"printed in the paper": [f"{value:.2f}" for value in table["printed in the paper"]]}
    shown = Table(table, "Uncertainty-adjusted top-3 accuracy, printed and computed here.", texts=as_printed)
    fit = fits["published-code"]
    drawn = [demo_figures.plausibilities(fit, item, place) for place, item in enumerate(cases.items)]
    section = Section(
        "Dermatologists: three differential diagnoses",
        [
            words, shown, drawn,
            "Each dot is one draw of how plausible a diagnosis is; bars are the point estimate (inverse rank "
            "normalisation) that standard practice would take for the truth. Data and printed values: Stutz et al. "
            "(2023), Figures 5 and 15.", Code(CODE["dermatologists"], "This study in Python"),
            "What to do with this: before you compare systems on rankings with ties, say which weights you use, and "
            f"look whether the other ones would change who is first. {who_is_first(table, computed)}",
        ],
        f"scores agree with the printed ones to {at_most(gap, 3)} or better with the weights of the published code; "
        f"with the paper's formula they differ by up to {at_most(other, 3)}",
    )  # fmt: skip
    return Study(section, shown, words, ran=_ran(fit, "printed table"))


def _scores_by_case(fit: Fit, systems: dict[str, Predictions]) -> dict[tuple[str, str], float]:
    tables = {name: cs.evaluate(fit, system, "top-3", missing="drop").table for name, system in systems.items()}
    return {(row["item"], name): row["score"] for name, table in tables.items() for row in rows_of(table)}


# ---- 3: a leaderboard whose truth is known ----

_ALPHA = 0.4
_PRIORS: dict[str, dict[str, Any]] = {DEFAULT_PRIOR: {}, OWN_PRIOR: {"alpha": _ALPHA}, FLAT_PRIOR: {"alpha": 1.0}}


class Simulated(NamedTuple):
    """A crowd and systems of which everything is known.

    Parameters
    ----------
    data : what the crowd said.
    truth : int, shape ``(item,)``; the label that is most plausible in truth.
    fits, comparisons : what is inferred without it, by the name of the prior: the default first, which a user gets.
    true_scores : by system, the share of items on which it names the true label.
    """

    data: Annotations
    truth: np.ndarray
    fits: dict[str, Fit]
    comparisons: dict[str, Comparison]
    true_scores: dict[str, float]


def simulated_leaderboard(seed: int, num_items: int = 400) -> Simulated:
    """Simulate a crowd of five and three systems that know only what the annotators said, and compare these.

    Parameters
    ----------
    seed : of everything that is drawn.
    num_items : that the crowd labels.
    """
    priors = dirichlet.Priors(plausibility=dirichlet.Symmetric(_ALPHA))
    key = jax.random.key(seed)
    data, values = dirichlet.simulate(key, priors, num_items=num_items, num_annotators=5, num_labels=4)
    truth = values["plausibility"].argmax(axis=1)
    answers = _answers(data, np.random.default_rng(seed))
    systems = {name: _as_predictions(data, labels, name) for name, labels in answers.items()}
    fits = {name: cs.fit("dirichlet", data, **given) for name, given in _PRIORS.items()}
    # All that they know is what the crowd said; the true accuracy is that of these items, and so is the score.
    found = {name: cs.compare(fit, systems, provenance="annotations").of_these() for name, fit in fits.items()}
    return Simulated(data, truth, fits, found, {name: (own == truth).mean() for name, own in answers.items()})


def _answers(data: Annotations, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the label that each system gives each item."""
    votes = _votes(data)
    order = np.argsort(-votes, axis=1, kind="stable")
    first, second = order[:, 0], order[:, 1]
    size = data.num_items
    slip, toss = random.random(size) < 0.1, random.random(size) < 0.5
    close = np.take_along_axis(votes, order, axis=1) @ np.array([1, -1, 0, 0]) <= 1
    reached = votes.cumsum(axis=1) > random.random((size, 1)) * votes.sum(axis=1, keepdims=True)
    return {
        "repeats the crowd, slips anywhere": np.where(slip, random.integers(0, data.num_labels, size), first),
        "hesitates where the crowd does": np.where(close & toss, second, first),
        "repeats one annotator's opinion": reached.argmax(axis=1),
    }


def _as_predictions(data: Annotations, labels: np.ndarray, name: str) -> Predictions:
    named = np.asarray(data.labels)[labels]
    return Predictions.from_lists(named[:, None].tolist(), items=data.items, classes=data.labels, name=name)


def leaderboard() -> Study:
    """Study a simulated crowd and three simulated systems, whose true accuracy is known."""
    simulated = simulated_leaderboard(seed=0)
    data, fit, found = simulated.data, simulated.fits[DEFAULT_PRIOR], simulated.comparisons
    shown = _scores_by_prior(simulated)
    table = shown.frame
    favourite = table.loc[table["by majority vote"].idxmax()]
    alphas = {name: float(one.resolved.concentration("plausibility")[0, 0]) for name, one in simulated.fits.items()}
    words = (
        f"A crowd of five labels {data.num_items} items, and three systems learn from these labels alone. All of it is "
        "simulated, so that the true accuracy of each system is known. Scored against the majority vote, as is usual, "
        f"the system that {favourite['system']} seems to have {favourite['by majority vote']:.2f}; in truth it has "
        f"{favourite['true accuracy']:.2f}. {by_priors(found, simulated.true_scores, alphas)}"
    )
    known = cs.evaluate(fit, _as_predictions(data, simulated.truth, "the truth")).value
    about = (
        "The system that slips gives the majority label, but a random one on every tenth item; the one that hesitates "
        "picks either of the two leading labels where they are at most one vote apart; "
        "the third repeats the label of one annotator, drawn for "
        "each item. An evaluation against annotators alone gives even a system that knows the truth, and whose true "
        f"accuracy is 1, no more than {known:.2f} (by the default prior), and so prefers systems that follow the "
        "crowd. The comparison is told that these systems know nothing but the annotations."
    )
    target = (
        f"Intervals are of the accuracy on these {data.num_items} items, which is known here. Beside them consilience "
        "compare counts that other items would have given other scores."
    )
    advice = (
        "What to do with this: do not report accuracy against a majority vote as if it were the truth; compare against "
        "the fit, try another prior, say where the predictions come from, and have some items labelled by an expert."
    )
    drawn = demo_figures.leaderboard_by_priors(found, simulated.true_scores)
    number, verdict, gist = of_a_vote(favourite, {
        name: own.table.set_index("system").loc[favourite["system"]] for name, own in found.items()
    })  # fmt: skip
    code = Code(CODE["leaderboard"], "This study in Python")
    section = Section(
        "Leaderboard: systems whose true accuracy is known", [words, shown, drawn, about, target, code, advice], gist
    )
    first = demo_figures.leaderboard_at_a_glance(found, simulated.true_scores, DEFAULT_PRIOR, FLAT_PRIOR)
    ran = _ran(fit, "simulated, seed 0")
    return Study(section, shown, words, number, verdict=verdict, figure=first, ran=ran)


def _scores_by_prior(simulated: Simulated) -> Table:
    """Tabulate the true accuracy of each system beside what a vote claims and what the model says by each prior."""
    first, *_ = simulated.comparisons.values()
    frame, claimed = first.table[["system"]], first.table["point_estimate"]
    frame = frame.assign(**{"true accuracy": frame["system"].map(simulated.true_scores), "by majority vote": claimed})
    texts = {name: [f"{one:.2f}" for one in frame[name]] for name in ("true accuracy", "by majority vote")}
    for prior, comparison in simulated.comparisons.items():
        own = comparison.table.assign(p_best_text=comparison.p_best_texts).set_index("system").loc[frame["system"]]
        column, best = f"{prior} [95 %]", f"P(best), {prior}"
        frame[column], texts[column] = own["value"].to_numpy(), [in_brackets(row) for row in own.itertuples()]
        frame[best], texts[best] = own["p_best"].to_numpy(), own["p_best_text"].tolist()
    caption = f"Accuracy on these {simulated.data.num_items} items, the best system by the {DEFAULT_PRIOR} first."
    return Table(frame, caption, texts=texts)


# ---- 4: how far to trust an annotator ----

_TOY_MEANS, _TOY_SD = (-2.0, 0.0, 1.5), 0.8


def toy() -> Study:
    """Study the one-dimensional toy of Stutz et al. (2023), Figure 2, with parameters of our own.

    Five annotators can split in 21 ways over three labels. Each way is one item, and what to expect at a place x is
    the average over them, weighted by how often annotators would split so there.
    """
    import pandas

    x = np.linspace(-4, 4, 200)
    likelihood = np.exp(-0.5 * ((x[:, None] - np.array(_TOY_MEANS)) / _TOY_SD) ** 2)
    plausibility = likelihood / likelihood.sum(axis=1, keepdims=True)
    votes = np.array([(a, b, 5 - a - b) for a in range(6) for b in range(6 - a)])
    frequency = stats.multinomial(5, plausibility[:, None, :]).pmf(votes)
    data = Annotations.from_counts(votes, labels=TOY_LABELS)
    fits = {value: cs.fit("dirichlet", data, reliability=value) for value in RELIABILITIES}
    certainty = np.stack([cs.certainty(fit, exact=True).items for fit in fits.values()])
    marked = {
        "(i) unambiguous": certainty[0].argmax(),
        "(ii) open at every reliability": certainty[-1].argmin(),
        "(iii) certain if annotators are trusted": (certainty[-1] - certainty[0]).argmax(),
    }
    place = {name: frequency[:, split].argmax() for name, split in marked.items()}
    table = pandas.DataFrame(
        [
            {"example": name, "x": x[place[name]], "votes": _tally(votes[split], TOY_LABELS),
             "truly on top": TOY_LABELS[plausibility[place[name]].argmax()]}
            | {f"γ = {value:g}": row[split] for value, row in zip(RELIABILITIES, certainty, strict=True)}
            for name, split in marked.items()
        ]
    )  # fmt: skip
    most = f"γ = {RELIABILITIES[-1]:g}"
    flat = cs.certainty(cs.fit("dirichlet", data, reliability=RELIABILITIES[0], alpha=1), exact=True).items
    prior = float(np.ravel(fits[1.0].resolved.concentration("plausibility"))[0])
    first = marked["(i) unambiguous"]
    another = sure_of_another(TOY_LABELS, votes[list(marked.values())], table, most)
    words = (
        "Five annotators look at examples along a line x, on which three conditions overlap. Certainty depends on how "
        "far one trusts an annotator, the reliability γ: some examples become certain when one trusts more, others "
        "stay open whatever one believes, because the annotators themselves disagree. "
        f"{another}{of_the_prior(prior, RELIABILITIES[0], certainty[0, first], flat[first])} Certainty of the top "
        "condition:"
    )
    drawn = np.asarray(fits[1.0].samples(400)["plausibility"][0])
    triangles = [
        demo_figures.triangle(name, drawn[:, split], plausibility[place[name]]) for name, split in marked.items()
    ]
    texts = {name: list(map(probability, table[name])) for name in map(str, table) if name.startswith("γ")}
    shown = Table(table, "Certainty of the top condition, by reliability.", texts=texts)
    section = Section(
        "Reliability: how much is an annotator to be trusted?",
        [
            words, shown, list(demo_figures.certainty_over(x, frequency @ certainty.T, plausibility)), triangles,
            "Curves are averages over the ways in which five annotators may split. Each triangle holds draws of the "
            "plausibilities after one such split, at reliability 1; the cross is the true plausibility at the x at "
            "which that split is most frequent, the one of the table. After Stutz et al. (2023), Figure 2, with "
            "parameters of our own.", Code(CODE["toy"], "This study in Python"), RELIABILITY,
        ],
        "some items become certain when annotators are trusted more, others stay open",
    )  # fmt: skip
    return Study(section, shown, words, ran=_ran(fits[1.0], "simulated, without random numbers"))


# ---- 5: ratings ----


def ratings() -> Study:
    """Study on which side of a threshold the mean of an item lies, with simulated ratings."""
    import pandas

    data, values = normal_inverse_gamma.simulate(jax.random.key(4), num_items=120, num_annotators=5, threshold=0.0)
    fit = cs.fit("normal-inverse-gamma", data, threshold=0.0)
    certainty, means = cs.certainty(fit, exact=True).items, fit.means()
    right = (values["mean"] >= 0) == (fit.posterior.mean_rating >= 0)
    held = (values["mean"] >= means["lower"]) & (values["mean"] <= means["upper"])
    groups = {
        "0.95 or more": certainty >= 0.95,
        "0.75 to 0.95": (certainty >= 0.75) & (certainty < 0.95),
        "below 0.75": certainty < 0.75,
    }
    table = pandas.DataFrame(
        [
            {"certainty": name, "items": int(chosen.sum()), "mean certainty": certainty[chosen].mean(),
             "mean rating on the right side": right[chosen].mean()}
            | dict(zip(("95 % from", "to"), _wilson(right[chosen]), strict=True))
            for name, chosen in groups.items()
        ]
    )  # fmt: skip
    low, high = _wilson(held)
    share, spread = percent(held.mean()), f" ({percents(low, high)}, 95 %)"
    words = (
        f"Five people rate each of {data.num_items} items; does an item lie above or below the threshold 0? The mean "
        "rating always says yes or no. The model adds how certain that is. These ratings are drawn from the model that "
        "is fitted, so that how often the mean rating is on the right side is known, and stands beside the certainty:"
    )
    drawn = list(demo_figures.intervals(means, certainty, values["mean"]))
    shown = Table(table, "How certain the side is said to be, and how often the mean rating is on it.")
    how = Code(CODE["ratings"], "This study in Python")
    *_, worst = table.itertuples(index=False)
    advice = (
        "What to do with this: get more ratings of the items below 0.75, of which the mean rating put "
        f"{percent(worst[3])} ({percents(*worst[4:])}, 95 %) on the right side, before you act on them."
    )
    gist = f"of {data.num_items} items {share}{spread} have their true mean in its 95 % interval"
    section = Section("Ratings: on a scale, and a threshold", [words, shown, drawn, how, advice], gist)
    number = {f"Ratings: of {data.num_items} items have their true mean in its 95 % interval{spread}": share}
    finding = (
        f"Ratings: of {data.num_items} items the 95 % interval holds the true mean of {held.sum():,}, {share}{spread}."
    )
    return Study(section, shown, words, number, finding, ran=_ran(fit, "simulated, seed 4"))


def _wilson(right: np.ndarray) -> tuple[float, float]:
    """Return the ends of the 95 % interval of a share, Wilson's, from what is so of each item."""
    return wilson(right.mean(), len(right))


# ---- 6: who is the same person ----


def simulated_people(seed: int) -> Any:
    """Simulate two files of the same people, with errors in every field; the records know who is who."""
    records, _ = block_linkage.simulate(
        seed, num_records=600, num_values=(120, 200, 90, 12, 28), exponent=(1.0, 0.9, 0.1, 0.0, 0.0), distortion=0.05,
        missing=0.02, size_share=(0.7, 0.3), num_sources=2, repeats=False,
    )  # fmt: skip
    return records.replace(fields=np.array(["forename", "surname", "year", "month", "day"], object))


def people() -> Study:
    """Link two simulated files of the same people, with errors in every field."""
    import pandas

    records = simulated_people(seed=7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiagnosticWarning)
        fit = cs.fit("block-linkage", records, restriction="across")
    scores, count = cs.score_partition(fit, records), fit.num_entities()
    low, high = count.interval
    known, size = len(np.unique(records.entity)), records.num_records
    # No one is twice in a file, so that two records of one person are one of either file.
    rows = {"people": (known, count.draws), "in both files": (size - known, size - count.draws)}
    table = pandas.DataFrame([
        {"what": name, "in truth": truth, "mean of draws": draws.mean()}
        | dict(zip(("95 % from", "to"), np.quantile(draws, ends()), strict=True))
        for name, (truth, draws) in rows.items()
    ])  # fmt: skip
    doubt, mean = f"; {count.doubt}" if count.doubt else "", linkage_figures.mean_number(count)
    words = (
        f"Two files, drawn from the model that is fitted, describe {known:,} people in {size:,} records; one value in "
        "twenty is wrong, one in fifty missing, and nothing says who is who. Linked by all partitions of small groups "
        f"of candidates, the files hold {mean} people ({low:,.0f} to {high:,.0f}, 95 %{doubt}). In the one partition "
        f"that would be written they are {count.point:,.0f}; of the pairs that it joins "
        f"{percent(scores['pairwise-precision'])} are right, and they are {percent(scores['pairwise-recall'])} of "
        f"those there are. {truth_among(known, count)}"
    )
    shown = Table(table, "How many people there are.")
    drawn = linkage_figures.entity_histogram(count, known)
    how = Code(CODE["people"], "This study in Python")
    advice = (
        "What to do with this: report how many people there are with the interval and not the count of one linkage, "
        "and look yourself at pairs that are neither surely one person nor surely two."
    )
    gist = f"{mean} people [{low:,.0f}, {high:,.0f}]; in truth {known:,}"
    section = Section("People: two files of the same ones", [words, shown, drawn, *doubts(fit), how, advice], gist)
    number = {f"People: in two files, on average ({low:,.0f} to {high:,.0f}, 95 %); in truth {known:,}": mean}
    finding = (
        f"People: two files of {size:,} records with errors hold {mean} people on average, with 95 % between "
        f"{low:,.0f} and {high:,.0f}; in truth {known:,}. {capital(to_one_side(known, count))}."
    )
    ran = _ran(fit, "simulated, seed 7") | {"draws": len(count.draws)}
    return Study(section, shown, words, number, finding, ran=ran)


STUDIES: tuple[Callable[[], Study], ...] = (anaesthetists, dermatologists, leaderboard, toy, ratings, people)
"""The studies in their order on the page."""
