"""Sentences of the demonstration that depend on what its studies found."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import consilience as cs
from consilience.errors import ConsilienceWarning
from consilience.notes import Level
from consilience.pages import capital
from consilience.printing import counted, percent
from consilience.rounding import probability

FIRST = 4
COMMANDS = {
    "Write the sample files:": "consilience data example sample && cd sample",
    "Learn labels, and who can be trusted:": "consilience fit dawid-skene labels.csv -o run",
    "Compare systems, with the gold labels:": "consilience compare run system_a.csv system_b.csv --gold use",
    "See it all as a page:": "consilience report run --predictions system_a.csv system_b.csv -o report.html",
    "Link records": "consilience link clinic.csv register.csv --restriction across -o linked",
    "Find views": "consilience fit expert-views answers.csv --features items.csv --clusters 3 -o views",
}
"""What to do next, the first ones on the first screen."""

YOURS = (
    "These commands run on the sample files, and with the names of your own files on those. Coreference, which has no "
    "sample file, is fitted by consilience fit mpa mentions.csv -o mentions."
)

CODE = {
    "anaesthetists": """import consilience as cs
fit = cs.fit("dawid-skene", cs.load("dawid-skene-1979"))  # with dependence=0 looks are independent
print(fit.labels())""",
    "dermatologists": """import consilience as cs
cases, systems = cs.load("stutz-2023-cases"), cs.load("stutz-2023-predictions")
fit = cs.fit("prirn", cases, reliability=30, rank_weights="published-code", draws=10_000)
print(cs.evaluate(fit, systems["A"], "top-3", missing="drop").table)""",
    "leaderboard": """from consilience.demo import simulated_leaderboard
found = simulated_leaderboard(seed=0)
table, order = found.comparison.table, found.comparison.order
print(table.assign(true_accuracy=found.true_scores[order]))""",
    "toy": """import consilience as cs
votes = [[0, 0, 5], [1, 2, 2], [1, 1, 3]]
data = cs.Annotations.from_counts(votes, labels=["Benign 1", "Benign 2", "Cancer"])
for reliability in (0.5, 1, 2, 5, 10):
    fit = cs.fit("dirichlet", data, reliability=reliability)
    print(reliability, cs.certainty(fit, exact=True).items)""",
    "ratings": """import jax
import consilience as cs
from consilience.models import normal_inverse_gamma
data, truth = normal_inverse_gamma.simulate(jax.random.key(4), num_items=120, num_annotators=5, threshold=0.0)
fit = cs.fit("normal-inverse-gamma", data, threshold=0.0)
print(fit.means())""",
    "people": """import consilience as cs
from consilience.demo import simulated_people
fit = cs.fit("block-linkage", simulated_people(seed=7), restriction="across")
print(fit.num_entities())""",
}
"""Each study as lines of Python that run as they are, by the name of its function."""

RELIABILITY = (
    "What to do with this: the reliability is for how many independent annotators one annotation counts, and these "
    "data do not tell it. Take it as 1 or less where annotators share what misleads them. Call an example settled only "
    "if it is so at the lowest reliability that you would defend, and say which that is. Where some items have gold "
    "labels, fit.calibration() shows at each reliability whether labels are right as often as they are said to be."
)


def doubts(fit: Any) -> list[str]:
    """Say what a fit warns of."""
    return [f"{capital(note.words())}." for note in fit.findings() if note.level > Level.note]


def in_turn(numbers: Mapping[float, int]) -> str:
    """Say how many grades would be certain at each dependence."""
    words = {value: f"{value:g}{'' if value else ' (independent looks)'}" for value in numbers}
    *first, last = (f"{number} at {words[value]}" for value, number in numbers.items())
    return f"it would be {', '.join(first)} and {last}"


_DEPENDENCES = (0.0, 0.1, 0.5)
"""Others than the one that the model assumes."""


def under_other_assumptions(fit: Any) -> tuple[dict[float, np.ndarray], str, tuple[str, str]]:
    """Return certainties at other dependences, and say which grades are others there, and which by EM."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)  # the page says it
        fits: dict[float, Any] = {value: cs.fit("dawid-skene", fit.data, dependence=value) for value in _DEPENDENCES}
        without: Any = cs.fit("dawid-skene", fit.data, method="em")
    grades = [one.labels()["label"] for one in (fit, *fits.values())]
    certainties = {value: cs.certainty(one).items for value, one in fits.items()}
    return certainties, same_grades(grades), grades_without_prior(fit.labels(), without.labels())


def same_grades(grades: Sequence[Any]) -> str:
    """Say of how many patients the grade depends on what is assumed; ``grades`` has those of each assumption."""
    first, *others = (np.asarray(one) for one in grades)
    changed = int(np.any([one != first for one in others], axis=0).sum())
    if changed:
        return f"{changed} of {len(first)} grades differ between these dependences."
    number = {3: "three", 4: "four"}.get(len(grades), len(grades))
    return f"With its prior the grades are the same at all {number}; how sure they are is what differs."


def grades_without_prior(own: Any, other: Any) -> tuple[str, str]:
    """Say how many patients get another grade by maximum likelihood, and which; of two tables of labels."""
    table = own.assign(other=other["label"], sure=other["certainty"])
    table = table[table["label"] != table["other"]]
    without = "EM, the maximum likelihood of 1979, which has no prior,"
    if not len(table):
        return f"{without} gives the same grades.", ""
    named = [
        f"{row.item} ({row.other}, not {row.label}, with {probability(row.sure, 2)})" for row in table.itertuples()
    ]
    number = counted(len(table), "patients")
    return f"{without} gives {number} another grade.", f" They are {', '.join(named)}: the votes alone do not decide."


def of_the_prior(prior: float, reliability: float, value: float, flat: float) -> str:
    """Say what the prior of the plausibilities is, and what a flat one gives of example (i)."""
    return (
        f"Before any annotation the plausibilities have a Dirichlet prior with {prior:g} for each condition, which "
        f"expects one of them to have nearly all; with a flat prior, 1 for each, example (i) has {probability(flat)} "
        f"at γ = {reliability:g} and not {probability(value)}."
    )


def who_is_first(table: Any, columns: Sequence[str]) -> str:
    """Say in which cases the system with the higher score is another one by the other of two weights."""
    program, equation = (table.loc[table.groupby("case")[of].idxmax()].set_index("case")["system"] for of in columns)
    changed = program.index[program != equation].tolist()
    if not changed:
        return f"Here they would not: in each of {len(program)} cases the same of two systems is ahead by both weights."
    return f"Here they would in {len(changed)} of {len(program)} cases: {', '.join(changed)}."


def sure_of_another(labels: Sequence[str], votes: np.ndarray, table: Any, most: str) -> str:
    """Say where most votes are for another condition than the one that is on top in truth, and how sure it becomes.

    Parameters
    ----------
    labels : of the conditions.
    votes : of each row of the table, shape ``(row, condition)``.
    table : with the columns ``example``, ``truly on top`` and the certainty at each reliability.
    most : the column of the largest reliability.
    """
    wrong = [
        f"{row['example'].partition(' ')[0]} most say {label}, which is given {probability(row[most])} at {most}, but "
        f"{row['truly on top']} is the most plausible in truth"
        for row, label in ((row, _leader(labels, own)) for (_, row), own in zip(table.iterrows(), votes, strict=True))
        if label not in ("", row["truly on top"])
    ]
    return f"Trust makes sure and not right: in example {'; in '.join(wrong)}. " if wrong else ""


def _leader(labels: Sequence[str], votes: np.ndarray) -> str:
    """Return the condition with most votes; nothing where several have as many."""
    return labels[int(votes.argmax())] if (votes == votes.max()).sum() == 1 else ""


def truth_among(known: int, count: Any) -> str:
    """Say where the true number of people lies in its interval, and what one data set does not show."""
    low, high = count.interval
    more, fewer = (count.draws > known).mean(), (count.draws < known).mean()
    apart = "more people than in truth: too few links are found" if more > fewer else "fewer people than in truth"
    return (
        f"The true number lies {'inside' if low <= known <= high else 'outside'} the interval, but "
        f"{percent(max(more, fewer))} of the draws have {apart}. One data set does not show whether such intervals "
        "hold as often as they say."
    )
