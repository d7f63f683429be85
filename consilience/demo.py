"""`consilience demo`: six small studies that need no network and no file, as a page and a few lines each.

Two use the printed tables that the package ships; four simulate their data, so that the truth, which nobody has in
practice, can be laid beside what was inferred.
"""

from __future__ import annotations

import itertools
import os
import textwrap
import time
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
    ALL_COMMANDS,
    AS_IN_CROWDS,
    BEFORE_REPORTING,
    CODE,
    COMMANDS,
    COUNT_PEOPLE,
    DEFAULT_PRIOR,
    FLAT_PRIOR,
    HELD_BY_DEFAULT,
    LEAST_OF_CROWDS,
    OTHER_COMMANDS,
    RELIABILITY,
    WHAT_PRIORS_ARE,
    WHAT_SYSTEMS_DO,
    YOURS,
    against_the_votes,
    by_priors,
    cut_apart,
    in_brackets,
    of_a_vote,
    of_grades,
    of_the_knowing,
    of_the_partition,
    of_the_prior,
    of_the_prior_of_annotators,
    of_ties,
    other_assumptions,
    quietly,
    sure_of_another,
    trusted_and_wrong,
    truth_among,
    who_is_first,
    whom_to_look_at,
)
from consilience.evaluation.agreement.jackknife import wilson
from consilience.evaluation.leaderboard import Comparison
from consilience.inference.fitting import Fit
from consilience.models import block_linkage, dirichlet, normal_inverse_gamma
from consilience.models.intervals import ends
from consilience.output import check_output
from consilience.pages import SURE, Action, Code, More, Page, Section, Table, write_page
from consilience.pages.gold import SOURCES
from consilience.pages.run import METHODS
from consilience.printing import counted, rows_of, table_text
from consilience.rounding import at_most, probability


class Study(NamedTuple):
    """One study.

    Parameters
    ----------
    section : its part of the page.
    table : that of the section, for the terminal.
    words : what the table says, for the terminal.
    number : of the first screen, by what it is.
    finding : for the first screen, in a sentence or two; empty where the number says it.
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
        "Consilience estimates the truth from annotators who disagree, and says how sure it is. The first two "
        "studies use published tables, whose truth is unknown. The other four are simulated, so it is known. "
        "Leaderboard, Ratings and People are fitted with the model that drew their data: success there does not prove "
        "that the model works on yours."
    )
    yours = Section("Try it on your data", [
        YOURS, Code(ALL_COMMANDS, "Commands to begin with"), "Ratings, rankings and mentions of a text have no sample "
        "file. With files of your own:", Code(OTHER_COMMANDS, "Commands for other data"),
    ])  # fmt: skip
    page = Page(
        "Consilience: six small studies", line, [*(study.section for study in studies), yours, _what_was_run(studies)],
        numbers=dict(itertools.chain.from_iterable(study.number.items() for study in studies)),
        findings=[study.finding for study in studies if study.finding],
        verdict=" ".join(study.verdict for study in studies if study.verdict),
        figure=next((study.figure for study in studies if study.figure is not None), None),
        actions=[
            *(Action(words, command) for words, command in COMMANDS.items()),
            Action("Fit ratings, rankings or mentions of a text", section=yours.title),
        ],
        begins_open=0,
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


_LEAST = 8  # certain patients in the table

_ABOUT = {0.0: " (independent looks)", 0.63: " (the highest of nine public crowds)"}


def anaesthetists() -> Study:
    """Study the table of Dawid and Skene (1979): which labels of a crowd can be trusted."""
    import pandas

    with quietly():
        fit = cs.fit("dawid-skene", cs.load("dawid-skene-1979"))
    certainty = cs.certainty(fit)
    votes = _votes(fit.data)
    table = fit.labels()[["item", "label", "certainty"]].assign(votes=[_tally(row, fit.data.labels) for row in votes])
    table = table.rename(columns={"item": "patient", "label": "grade"})
    size, rho = fit.data.num_items, fit.dependence.rho
    others = other_assumptions(fit)
    table = table.sort_values("certainty", kind="stable").reset_index(drop=True)
    least = table[(table.index < _LEAST) | table["patient"].isin(others.changed["item"])].reset_index(drop=True)
    every = {value: int((sure >= SURE).sum()) for value, sure in (others.certainties | {rho: certainty.items}).items()}
    words = (
        f"Five anaesthetists graded the fitness of {size} patients from 1 to 4; the first one looked three times. "
        "Nobody knows the right grades. From how the five agree, the model learns which grades each of them confuses "
        "and how probable each grade is: its certainty."
    )
    leaves = against_the_votes(fit.data.labels, fit.data.items, votes, fit.labels()["label"])
    given = (
        f"The dependence says how far anaesthetists who look at the same patient make the same errors. It is {rho:g}, "
        f"{SOURCES[fit.dependence.source]}. The number of sure grades depends on it, and the true dependence may lie "
        f"outside the range tried. {others.grades}"
    )
    prior = [
        f"The prior says which errors the model expects before it sees data: {others.without_prior}.",
        *of_the_prior_of_annotators(fit),
    ]
    tried = pandas.DataFrame(
        [{"dependence": f"{value:g}{_ABOUT.get(value, '')}{', assumed' * (value == rho)}", "sure grades": every[value]}
         for value in sorted(every)]
    )  # fmt: skip
    of_crowds = [number for value, number in every.items() if value >= LEAST_OF_CROWDS]
    fewest, most = min(of_crowds), max(of_crowds)
    shown = Table(least, "Patients whose grade is least certain, or differs without a prior.")
    crowd = figures.probability_matrix(fit.table("crowd"), "What the five say of each grade", amount="annotations")
    again, advice = whom_to_look_at(fit.labels(), certainty.items, others)
    section = Section(
        "Anaesthetists: which labels of a crowd can be trusted?",
        [
            words, shown, leaves, given,
            Table(tried, f"Patients with a sure grade (certainty {SURE} or more), by dependence."),
            [figures.sorted_certainty(certainty, unit="patient"), crowd],
            "A row of the matrix is a true grade; in brackets: how many labels its patients have, by the fit.",
            More(f"Without a prior, {counted(len(others.changed), 'patients')} would get a different grade", prior),
            "Data: Dawid and Skene (1979).", Code(CODE["anaesthetists"], "This study in Python"), advice,
        ],
        f"{again} of {size} patients should be looked at again, if graders make the same errors as often as assumed",
    )  # fmt: skip
    sure = f"Anaesthetists: grades of {size} that are sure (certainty {SURE} or more), {AS_IN_CROWDS}"
    finding = of_grades(every[0.0], size, others)
    return Study(section, shown, words, {sure: f"{fewest} to {most}"}, finding, ran=_ran(fit, "printed table"))


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


_LISTS = 30  # annotators that all lists of a case together count as

_RANK_WEIGHTS = {"published-code": "weights of their program", "equation-14": "weights of their equation 14"}


def dermatologists() -> Study:
    """Study three differential diagnoses of Stutz et al. (2023) under both weightings of ranks."""
    import pandas

    cases, systems = cs.load("stutz-2023-cases"), cs.load("stutz-2023-predictions")
    fits = {
        weights: cs.fit("prirn", cases, reliability=_LISTS, rank_weights=weights, draws=10_000)
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
    moved = at_most((table[computed[0]] - table[computed[1]]).abs().max(), 3)
    gap, other = ((table["printed in the paper"] - table[of]).abs().max() for of in computed)
    words = (
        "Dermatologists listed possible diagnoses for three cases, some of them tied. Is the most plausible diagnosis "
        "among the three that a system predicts? The score is the probability that it is, between 0 and 1."
    )
    ties = (
        "How ties are weighted changes the scores. The authors' published program gives each tied diagnosis the full "
        "weight of its rank; equation 14 of the paper divides that weight among them. The choice moves a score by up "
        f"to {moved}. With the weights of equation 14, scores differ from the printed ones by up to "
        f"{at_most(other, 3)}."
    )
    counts = (
        f"All lists of a case together count as {_LISTS} annotators (reliability={_LISTS}), one of the values "
        f"that the paper tries. With the program's weights, scores then come within {at_most(gap, 3)} of the printed "
        "ones. The reliability of the fourth study is another quantity: it is per annotation."
    )
    as_printed = {"printed in the paper": [f"{value:.2f}" for value in table["printed in the paper"]]}
    shown = Table(table, "Uncertainty-adjusted top-3 accuracy, printed and computed here.", texts=as_printed)
    fit = fits["published-code"]
    drawn = [demo_figures.plausibilities(fit, item, place) for place, item in enumerate(cases.items)]
    section = Section(
        "Dermatologists: three differential diagnoses",
        [
            words, shown, ties, counts, drawn,
            "Each dot is one draw of how plausible a diagnosis is. Bars are the point estimate (inverse rank "
            "normalisation) that is usually taken for the truth. Data and printed values: Stutz et al. (2023), "
            "Figures 5 and 15.", Code(CODE["dermatologists"], "This study in Python"),
            "What to do with this: before you compare systems on rankings with ties, say which weights you use, and "
            f"check whether the other weights would change which system comes first. {who_is_first(table, computed)}",
        ],
        f"how ties are weighted moves a score by up to {moved}",
    )  # fmt: skip
    return Study(section, shown, words, finding=of_ties(moved, table, computed), ran=_ran(fit, "printed table"))


def _scores_by_case(fit: Fit, systems: dict[str, Predictions]) -> dict[tuple[str, str], float]:
    tables = {name: cs.evaluate(fit, system, "top-3", missing="drop").table for name, system in systems.items()}
    return {(row["item"], name): row["score"] for name, table in tables.items() for row in rows_of(table)}


# ---- 3: a leaderboard whose truth is known ----

_ALPHA = 0.4
KNOWING = "knows the truth"
"""The system that does."""

_PRIORS: dict[str, dict[str, Any]] = {DEFAULT_PRIOR: {}, FLAT_PRIOR: {"alpha": 1.0}}


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
    """Simulate a crowd of five, three systems that know only what the annotators said and one that knows the truth.

    Parameters
    ----------
    seed : of everything that is drawn.
    num_items : that the crowd labels.
    """
    priors = dirichlet.Priors(plausibility=dirichlet.Symmetric(_ALPHA))
    key = jax.random.key(seed)
    data, values = dirichlet.simulate(key, priors, num_items=num_items, num_annotators=5, num_labels=4)
    truth = values["plausibility"].argmax(axis=1)
    answers = _answers(data, np.random.default_rng(seed)) | {KNOWING: truth}
    systems = {name: _as_predictions(data, labels, name) for name, labels in answers.items()}
    fits = {name: cs.fit("dirichlet", data, **given) for name, given in _PRIORS.items()}
    # All that three know is what the crowd said; the true accuracy is that of these items, and so is the score.
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
        f"A simulated crowd of five labels {data.num_items} items. Three systems learn from these labels alone; a "
        f"fourth knows the truth. Scored against the majority vote, “{favourite['system']}” has an accuracy of "
        f"{favourite['by majority vote']:.2f}; its true accuracy is {favourite['true accuracy']:.2f}."
    )
    by_prior = {name: own.table.set_index("system") for name, own in found.items()}
    knows = by_prior[DEFAULT_PRIOR].loc[KNOWING]
    told = cs.compare(fit, {KNOWING: _as_predictions(data, simulated.truth, KNOWING)}, provenance="independent")
    (told_row,) = told.of_these().table.itertuples()
    crowds = {name: one for name, one in simulated.true_scores.items() if name != KNOWING}
    drawn = demo_figures.leaderboard_by_priors(found, simulated.true_scores)
    number, verdict, gist = of_a_vote(
        favourite, {name: own.loc[favourite["system"]] for name, own in by_prior.items()}
    )
    code = Code(CODE["leaderboard"], "This study in Python")
    section = Section(
        "Leaderboard: systems whose true accuracy is known",
        [
            words, WHAT_PRIORS_ARE, shown, of_the_knowing(knows, told_row), drawn,
            More("The two priors, and how often their intervals are right", [by_priors(found, crowds, alphas, _ALPHA)]),
            More("What the systems do", [WHAT_SYSTEMS_DO]), code, BEFORE_REPORTING,
        ],
        gist,
    )  # fmt: skip
    first = demo_figures.leaderboard_at_a_glance(found[DEFAULT_PRIOR], simulated.true_scores, told_row)
    ran = _ran(fit, "simulated, seed 0")
    finding = HELD_BY_DEFAULT.format(knows["value"], told_row.value)
    return Study(section, shown, words, number, finding, verdict, first, ran)


def _scores_by_prior(simulated: Simulated) -> Table:
    """Tabulate the true accuracy of each system beside what a vote claims and what the model says by each prior."""
    first, *_ = simulated.comparisons.values()
    frame, claimed = first.table[["system"]], first.table["point_estimate"]
    frame = frame.assign(**{"true accuracy": frame["system"].map(simulated.true_scores), "by majority vote": claimed})
    texts = {name: [f"{one:.2f}" for one in frame[name]] for name in ("true accuracy", "by majority vote")}
    for prior, comparison in simulated.comparisons.items():
        own, column = comparison.table.set_index("system").loc[frame["system"]], f"{prior} (95 %)"
        frame[column], texts[column] = own["value"].to_numpy(), [in_brackets(row) for row in own.itertuples()]
    caption = f"Accuracy on these {simulated.data.num_items} items. The best system under the {DEFAULT_PRIOR} is first."
    return Table(frame, caption, texts=texts)


# ---- 4: how far to trust an annotator ----

_TOY_MEANS, _TOY_SD, _TOY_PRIOR = (-2.0, 0.0, 1.5), 0.8, 0.1


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
    # Each way once is a table of cases, and says nothing of how often annotators agree.
    fits = {value: cs.fit("dirichlet", data, reliability=value, alpha=_TOY_PRIOR) for value in RELIABILITIES}
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
    first = marked["(i) unambiguous"]
    given = TOY_LABELS, votes[list(marked.values())], table, most
    another = sure_of_another(*given)
    words = (
        "Five annotators look at examples along a line x, on which three conditions overlap. Certainty depends on how "
        "far you trust an annotator: the reliability γ. Some examples become certain when you trust more; others "
        f"stay open at every γ, because the annotators disagree. {another}"
    ).strip()
    of_prior = of_the_prior(_TOY_PRIOR, RELIABILITIES[0], certainty[0, first], flat[first])
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
            "Curves are averages over the ways in which five annotators can split. Each triangle shows draws of the "
            "plausibilities after one such split, at reliability 1. The cross is the true plausibility at the x of the "
            "table, where that split is most frequent. After Stutz et al. (2023), Figure 2, with our own parameters.",
            More("What the prior is", [of_prior]),
            Code(CODE["toy"], "This study in Python"), RELIABILITY,
        ],
        "some items become certain when annotators are trusted more; others stay open",
    )  # fmt: skip
    ran = _ran(fits[1.0], "simulated, without random numbers")
    return Study(section, shown, words, finding=trusted_and_wrong(*given), ran=ran)


# ---- 5: ratings ----

_SURE_SIDE, _OPEN_SIDE = "0.95 or more", "below 0.75"


def ratings() -> Study:
    """Study on which side of a threshold the mean of an item lies, with simulated ratings."""
    import pandas

    data, values = normal_inverse_gamma.simulate(jax.random.key(4), num_items=120, num_annotators=5, threshold=0.0)
    fit = cs.fit("normal-inverse-gamma", data, threshold=0.0)
    certainty, means = cs.certainty(fit, exact=True).items, fit.means()
    right = (values["mean"] >= 0) == (fit.posterior.mean_rating >= 0)
    held = (values["mean"] >= means["lower"]) & (values["mean"] <= means["upper"])
    groups = {
        _SURE_SIDE: certainty >= 0.95,
        "0.75 to 0.95": (certainty >= 0.75) & (certainty < 0.95),
        _OPEN_SIDE: certainty < 0.75,
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
    words = (
        f"Five people rate each of {data.num_items} items. Does an item lie above or below the threshold 0? The mean "
        "rating always names a side; the model adds how certain that is. The ratings are drawn from the model that is "
        "fitted, so the right side is known."
    )
    drawn = list(demo_figures.intervals(means, certainty, values["mean"]))
    shown = Table(table, "How certain the model is of the side, and how often the mean rating is on the right side.")
    how = Code(CODE["ratings"], "This study in Python")
    *_, worst = table.itertuples(index=False)
    advice = (
        "What to do with this: before you act on items below 0.75, get more ratings of them. Their mean rating was on "
        "the right side for a share of only {:.3f} ({:.3f} to {:.3f}, 95 %).".format(*worst[3:])
    )
    inside = f"{held.sum():,} of {data.num_items}"
    gist = f"95 % intervals contain the true mean of {inside} items"
    sure, unsure = ((int((~right[groups[name]]).sum()), int(groups[name].sum())) for name in (_SURE_SIDE, _OPEN_SIDE))
    words += (
        f" The 95 % intervals contain the true mean of {inside} items, a share of {held.mean():.3f} ({low:.3f} to "
        f"{high:.3f}, 95 %). The mean rating is on the wrong side for {{:,}} of the {{:,}} items whose side the model "
        "is at least 0.95 certain of, and for {:,} of the {:,} where it is less than 0.75 certain."
    ).format(*sure, *unsure)
    section = Section("Ratings: on a scale, and a threshold", [words, shown, drawn, how, advice], gist)
    number = {"Ratings: items whose 95 % interval contains the true mean": inside}
    return Study(section, shown, words, number, ran=_ran(fit, "simulated, seed 4"))


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
    with quietly():
        fit = cs.fit("block-linkage", records, restriction="across")
    scores, count = cs.score_partition(fit, records), fit.num_entities()
    low, high = count.interval
    known, size = len(np.unique(records.entity)), records.num_records
    # No one is twice in a file, so that two records of one person are one of either file.
    rows = {"people": (known, count.draws), "in both files": (size - known, size - count.draws)}
    table = pandas.DataFrame([
        {"what": name, "truth": truth, "mean of draws": draws.mean()}
        | dict(zip(("95 % from", "to"), np.quantile(draws, ends()), strict=True))
        for name, (truth, draws) in rows.items()
    ])  # fmt: skip
    doubt, mean = f"; {count.doubt}" if count.doubt else "", linkage_figures.mean_number(count)
    words = (
        f"Two files, drawn from the model that is fitted, describe {known:,} people in {size:,} records. One value in "
        "twenty is wrong, one in fifty is missing, and nothing says who is who. By linking them, the model finds "
        f"{mean} people ({low:,.0f} to {high:,.0f}, 95 %{doubt}). {truth_among(known, count)}"
    )
    shown = Table(table, "How many people there are.")
    drawn = linkage_figures.entity_histogram(count, known, unit="people")
    how = Code(CODE["people"], "This study in Python")
    gist = f"{mean} people ({low:,.0f} to {high:,.0f}, 95 %); the truth is {known:,}"
    blocks = [words, shown, of_the_partition(count, scores), drawn, *cut_apart(fit), how, COUNT_PEOPLE]
    section = Section("People: two files to link", blocks, gist)
    number = {f"People in two files (95 % interval); in truth there are {known:,}": f"{low:,.0f} to {high:,.0f}"}
    ran = _ran(fit, "simulated, seed 7") | {"draws": len(count.draws)}
    return Study(section, shown, words, number, ran=ran)


STUDIES: tuple[Callable[[], Study], ...] = (anaesthetists, dermatologists, leaderboard, toy, ratings, people)
"""The studies in their order on the page."""
