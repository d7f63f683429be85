"""Sentences of the demonstration that depend on what its studies found."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import consilience as cs
from consilience.errors import ConsilienceWarning
from consilience.evaluation.agreement.jackknife import wilson
from consilience.pages import SURE, capital
from consilience.printing import counted, joined
from consilience.rounding import at_least, at_most, probability

COMMANDS = {
    "Write the sample files:": "consilience data example sample && cd sample",
    "Estimate labels and annotators' errors:": "consilience fit dawid-skene labels.csv -o run",
    "See the result as a page, with two systems:": "consilience report run --predictions system_a.csv system_b.csv "
    "-o report.html",
    "Link two files of people:": "consilience link clinic.csv register.csv --restriction across -o linked",
}
"""What to do next on the first screen; the last action leads to the section with all commands."""

_MORE_COMMANDS = (
    "consilience compare run system_a.csv system_b.csv --gold use",
    "consilience fit expert-views answers.csv --features items.csv --clusters 3 -o views",
)

ALL_COMMANDS = "\n".join([*COMMANDS.values(), *_MORE_COMMANDS])
"""All that run on the sample files."""

OTHER_COMMANDS = """consilience fit normal-inverse-gamma ratings.csv --threshold 50 -o ratings
consilience fit prirn rankings.csv -o rankings
consilience fit mpa mentions.csv -o mentions"""
"""Of data that have no sample file."""

YOURS = "These commands run on the sample files. Replace the file names to run them on your own."

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
for prior, comparison in found.comparisons.items():
    table = comparison.table
    print(prior, table.assign(true_accuracy=table["system"].map(found.true_scores)))""",
    "toy": """import consilience as cs
votes = [[0, 0, 5], [1, 2, 2], [1, 1, 3]]
data = cs.Annotations.from_counts(votes, labels=["Benign 1", "Benign 2", "Cancer"])
for reliability in (0.5, 1, 2, 5, 10):
    fit = cs.fit("dirichlet", data, reliability=reliability, alpha=0.1)
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
    "What to do with this: the reliability says how many independent annotations each one counts as. These data do "
    "not show what it should be. Set it to 1 or less if the same things mislead all annotators. Call an example "
    "settled only if it is settled at the lowest reliability that you would defend, and say which that is. If some "
    "items have gold labels, fit.calibration() shows at each reliability whether labels are right as often as stated."
)


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Fit without warnings: the page says what they do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        yield


def cut_apart(fit: Any) -> list[str]:
    """Say which pairs of records a linkage gave up, as there are too many ways to group them; nothing of none."""
    groups, _, most, pairs, links = fit.posterior.cut.tolist()
    if not groups:
        return []
    return [
        f"In {counted(int(groups), 'groups')} of similar records, of up to {most:,.0f}, there are too many ways to say "
        "who is who to try them all. These groups were cut at their weakest links. So "
        f"{counted(int(pairs), 'pairs')} of records count as different people, of which {links:.1f} are expected to be "
        "one person."
    ]


def of_the_prior_of_annotators(fit: Any) -> list[str]:
    """Return what the fit says of its prior; later sentences are on accuracies, which the page does not show."""
    return [f"{capital(one.words().partition('. ')[0])}." for one in fit.findings()]


def against_the_votes(labels: Sequence[Any], items: Sequence[Any], votes: np.ndarray, grades: Sequence[Any]) -> str:
    """Say which patients have a grade that fewer give than another one, and by how many votes.

    Parameters
    ----------
    labels : the grades there are.
    items : the patients.
    votes : for each grade, shape ``(patient, grade)``.
    grades : of the patients, by the model.
    """
    named = []
    for item, own, grade in zip(items, votes, grades, strict=True):
        most, given = own.max(), own[list(labels).index(grade)]
        if given < most:
            named.append(f"patient {item} ({grade}; {most:g} of {own.sum():g} say {labels[int(own.argmax())]})")
    if not named:
        return "Every grade is that of most votes."
    one = len(named) == 1
    which = "Only one grade differs" if one else f"{len(named)} grades differ"
    return f"{which} from that of most votes: {'; '.join(named)}."


LEAST_OF_CROWDS = 0.2
"""The lowest dependence of nine public crowds."""

_DEPENDENCES = (0.0, LEAST_OF_CROWDS, 0.5, 0.63)
"""Others than the one that the model assumes: none, and from the lowest to the highest of these crowds."""

AS_IN_CROWDS = "if graders make the same errors as often as nine public crowds do"
"""What a range of dependences means."""


class Others(NamedTuple):
    """What follows from other assumptions than those of a fit.

    Parameters
    ----------
    certainties : of each patient, by the dependence.
    grades : whether grades differ between these, in words.
    changed : a table of the patients who get another grade without a prior, by maximum likelihood, with the columns
        item, label, other and sure, the certainty of that other one.
    """

    certainties: dict[float, np.ndarray]
    grades: str
    changed: Any

    @property
    def without_prior(self) -> str:
        """Say which grades maximum likelihood gives."""
        without = "without one (the maximum likelihood of 1979, by EM)"
        if not len(self.changed):
            return f"{without} the grades are the same"
        named = [f"{row.item} ({row.other}, not {row.label})" for row in self.changed.itertuples()]
        sure = at_least(float(self.changed["sure"].min()), 2)
        get = "gets" if len(named) == 1 else "get"
        told = f"with a certainty of {sure} or more: {', '.join(named)}"
        return f"{without} {counted(len(named), 'patients')} {get} a different grade, {told}"


def other_assumptions(fit: Any) -> Others:
    """Fit at other dependences, and without a prior."""
    with quietly():
        fits: dict[float, Any] = {value: cs.fit("dawid-skene", fit.data, dependence=value) for value in _DEPENDENCES}
        without: Any = cs.fit("dawid-skene", fit.data, method="em").labels()
    grades = [one.labels()["label"] for one in (fit, *fits.values())]
    certainties = {value: cs.certainty(one).items for value, one in fits.items()}
    table = fit.labels().assign(other=without["label"], sure=without["certainty"])
    return Others(certainties, same_grades(grades), table[table["label"] != table["other"]])


def same_grades(grades: Sequence[Any]) -> str:
    """Say of how many patients the grade depends on what is assumed; ``grades`` has those of each assumption."""
    first, *others = (np.asarray(one) for one in grades)
    changed = int(np.any([one != first for one in others], axis=0).sum())
    if changed:
        return f"{changed} of {len(first)} grades change within that range."
    return "The grades are the same throughout that range."


DEFAULT_PRIOR, FLAT_PRIOR = "default prior", "flat prior"
"""Of the leaderboard: what a user gets who sets nothing, and another one."""


def by_priors(
    found: Mapping[str, Any], true: Mapping[str, float], alphas: Mapping[str, float], drawn: float
) -> str:
    """Say what each prior supposes, how many true accuracies intervals contain by each, and which system leads.

    Parameters
    ----------
    found : comparisons of the same systems, by the name of the prior, the default first.
    true : accuracies of the systems that know no more than the crowd said.
    alphas : the number that each prior adds to every label.
    drawn : that with which the data were drawn.
    """
    held, first = [], []
    for one in found.values():
        own = one.table.assign(true=one.table["system"].map(true))
        held.append(int(own["true"].between(own["lower"], own["upper"]).sum()))
        first.append(f"“{own['system'].iloc[0]}”")
    leads = f"Under both, {first[0]} is first" if len(set(first)) == 1 else f"First are {joined(first)} in turn"
    return (
        f"Here the {DEFAULT_PRIOR} adds {alphas[DEFAULT_PRIOR]:.2f} to each label, and the data were drawn with "
        f"{drawn:g}. The {FLAT_PRIOR} adds {alphas[FLAT_PRIOR]:g}: it "
        "expects more disagreement than there is. Their 95 % intervals contain the true accuracy of "
        f"{joined([str(one) for one in held])} of the {len(true)} systems that know only the crowd. {leads}. "
        f"{HELD_BY_PRIORS}"
    )


WHAT_PRIORS_ARE = (
    f"A prior is what the model supposes before it sees a label. The {DEFAULT_PRIOR} learns from the crowd how often "
    f"annotators disagree. The {FLAT_PRIOR} takes all ways in which labels may be plausible for equally probable."
)
"""What is to be known of them before the table."""

WHAT_SYSTEMS_DO = (
    "The system that slips gives the majority label, but a random label on every tenth item. The system that hesitates "
    "picks one of the two leading labels at random where they are at most one vote apart. The third repeats the label "
    "of one annotator, drawn anew for each item. Intervals are for the accuracy on these items, which is known here; "
    "those of consilience compare also allow for other items."
)
"""What there is to know of the systems of the leaderboard."""

BEFORE_REPORTING = (
    "What to do with this: do not report accuracy against a majority vote as if the vote were the truth. Compare "
    "against the fit, try another prior, say where the predictions come from, and have an expert label some items."
)
"""What follows from the leaderboard."""

SIMULATIONS, OF_SYSTEMS = 100, 3
"""Leaderboards that were simulated to count how often intervals hold, and the systems of each that know the crowd."""

HELD = {DEFAULT_PRIOR: 284, FLAT_PRIOR: 191}
"""How many of their intervals, seeds from 0 on, held the true accuracy."""

TOO_HIGH = {DEFAULT_PRIOR: 0.000, FLAT_PRIOR: -0.031}
"""By how much the scores were too high on average."""

HELD_BY_PRIORS = (
    f"One data set does not show how often such intervals are right. {SIMULATIONS} of them (seeds 0 to "
    f"{SIMULATIONS - 1}) have {OF_SYSTEMS * SIMULATIONS} systems that know only the crowd. The interval contained the "
    f"true accuracy {joined([f'{number} times with the {name}' for name, number in HELD.items()])}. On average, "
    f"scores were off by less than {at_most(abs(TOO_HIGH[DEFAULT_PRIOR]) + 5e-4, 3)} with the {DEFAULT_PRIOR}, and "
    f"{-TOO_HIGH[FLAT_PRIOR]:.3f} too low with the {FLAT_PRIOR}."
)
"""What that says of a single data set."""

_OF = OF_SYSTEMS * SIMULATIONS
HELD_BY_DEFAULT = (
    f"Leaderboard: intervals depend on the prior. With the {DEFAULT_PRIOR}, {HELD[DEFAULT_PRIOR]} of {_OF} contained "
    f"the true accuracy; with a {FLAT_PRIOR}, which expects more disagreement than there is, only {HELD[FLAT_PRIOR]}. "
    "Say where predictions come from: a system that knows the truth scores {:.2f} if it is taken to have learned from "
    "the crowd, and {:.2f} if not."
)
"""The finding of the study of systems: how often intervals by another prior are right; the key figure has its own."""


def of_grades(independent: int, size: int, others: Others) -> str:
    """Return the finding of the study of grades: how many are sure, by what is assumed.

    Parameters
    ----------
    independent : that are sure without any dependence.
    size : of the patients.
    others : what follows from other assumptions.
    """
    changed = counted(len(others.changed), "patients")
    return (
        f"Anaesthetists: if graders erred independently, {independent} of {size} grades would be sure. These data "
        "cannot show whether they do. Without a prior, which is what the model expects of graders before it sees data, "
        f"{changed} would get a different grade."
    )


def of_ties(moved: str, table: Any, columns: Sequence[str]) -> str:
    """Return the finding of the study of differential diagnoses; see `who_is_first`."""
    changed, cases = _others_ahead(table, columns), table["case"].nunique()
    leads = f"changes which system leads in {len(changed)} of {cases} cases"
    ahead = f"and {leads}" if changed else f"but changes the leading system in none of {cases} cases"
    return f"Dermatologists: how tied diagnoses are weighted moves a system's score by up to {moved}, {ahead}."


def trusted_and_wrong(labels: Sequence[str], votes: np.ndarray, table: Any, most: str) -> str:
    """Return the finding of the study of reliability: how sure of what is not so trust makes; see `sure_of_another`."""
    led = [row for row, _ in _led_by_another(labels, votes, table)]
    if not led:
        return "Reliability: how certain a condition is depends on how far you trust annotators."
    row = max(led, key=lambda one: one[most])
    return (
        "Reliability: in one example most annotators name a condition that is not the most plausible one. If each "
        f"counts as {most.partition(' = ')[2]} independent annotators, the model is {probability(row[most])} certain "
        f"of that condition; if each counts as one, {probability(row['γ = 1'])}."
    )


def in_brackets(row: Any) -> str:
    """Write the score of a system with its interval."""
    return f"{row.value:.2f} ({row.lower:.2f} to {row.upper:.2f})"


def of_a_vote(system: Any, by_prior: Mapping[str, Any]) -> tuple[dict[str, str], str, str]:
    """Return the key figure on intervals, and the verdict of the page and the gist on the system a vote likes best.

    Parameters
    ----------
    system : its row of the table on the page.
    by_prior : its row of the comparison by each prior, by name; that which a user gets first.
    """
    claimed, true = f"{system['by majority vote']:.2f}", f"{system['true accuracy']:.2f}"
    user, flat = by_prior[DEFAULT_PRIOR], by_prior[FLAT_PRIOR]
    held = (
        f"Leaderboard: 95 % intervals of systems that know only the crowd, in {SIMULATIONS} simulations, that contain "
        "the true accuracy"
    )
    number = {held: f"{HELD[DEFAULT_PRIOR]} of {_OF}"}
    verdict = (
        f"Scored against a majority vote, the simulated system “{system['system']}” has an accuracy of {claimed}. The "
        f"model says {user.value:.2f} ({user.lower:.2f} to {user.upper:.2f}, 95 %); the truth is {true}."
    )
    gist = (
        f"a vote claims {claimed} for a system that has {true}; the model says {in_brackets(user)}, or with a "
        f"{FLAT_PRIOR} {in_brackets(flat)}"
    )
    return number, verdict, gist


def of_the_knowing(known: Any, told: Any) -> str:
    """Say what a system gets that knows the truth.

    Parameters
    ----------
    known : its row of the comparison by the default prior, as if its predictions were made from the annotations.
    told : its row of one that is told that it looked at the items itself.
    """
    return (
        f"The system that knows the truth scores {known.value:.2f}, not 1. The comparison was told that all four "
        "systems know only the annotations, which is false for this one, and then nobody can score above what the "
        f"annotations show. Told that it looked at the items itself (provenance=\"independent\"), the comparison gives "
        f"it {in_brackets(told)}."
    )


def whom_to_look_at(labels: Any, certainty: np.ndarray, others: Others) -> tuple[int, str]:
    """Say which patients to have looked at again, and how many: those who are unsure, or get another grade elsewhere.

    Parameters
    ----------
    labels : the table of the fit, with the column item.
    certainty : of each item.
    others : what follows from other assumptions.
    """
    items = labels["item"].to_numpy()
    unsure = items[np.argsort(certainty, kind="stable")][: int((certainty < SURE).sum())].tolist()
    moved = [item for item in others.changed["item"] if item not in unsure]
    again, most = len(unsure) + len(moved), max(others.certainties)
    of_prior = f", and {', '.join(moved)}, whose grade differs without a prior" * bool(moved)
    low = items[np.argsort(others.certainties[most], kind="stable")][: int((others.certainties[most] < SURE).sum())]
    return again, (
        f"What to do with this: have {counted(again, 'patients')} looked at again: {', '.join(unsure)}, whose "
        f"certainty is below {SURE}{of_prior}. If the dependence may be as high as {most:g}, look again at the "
        f"{len(low)} who are below {SURE} there: {', '.join(map(str, low))}. The other grades are the same "
        "under all that was tried here. That does not make them right: only patients whose grade is known could show "
        "it."
    )


def of_the_prior(prior: float, reliability: float, value: float, flat: float) -> str:
    """Say what the prior of the plausibilities is, and what a flat one gives of example (i)."""
    return (
        f"Before any annotation, the plausibilities have a Dirichlet prior with {prior:g} for each condition: it "
        f"expects one condition to have nearly all the plausibility. With a flat prior, 1 for each, the certainty of "
        f"example (i) at γ = {reliability:g} is {probability(flat)}, not {probability(value)}."
    )


def who_is_first(table: Any, columns: Sequence[str]) -> str:
    """Say in which cases the system with the higher score is another one by the other of two weights."""
    changed, cases = _others_ahead(table, columns), table["case"].nunique()
    if not changed:
        return f"Here they would not: in each of the {cases} cases the same system is ahead under both."
    return f"Here they would in {len(changed)} of {cases} cases: {', '.join(changed)}."


def _others_ahead(table: Any, columns: Sequence[str]) -> list[str]:
    """Return the cases in which another system is ahead by the other of two weights."""
    program, equation = (table.loc[table.groupby("case")[of].idxmax()].set_index("case")["system"] for of in columns)
    return list(program.index[program != equation])


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
        f"{row['example'].partition(' ')[0]} most votes are for {label}, which has a certainty of "
        f"{probability(row[most])} at {most}, but {row['truly on top']} is the most plausible"
        for row, label in _led_by_another(labels, votes, table)
    ]
    return f"Trust makes a label more certain, not more right: in example {'; in '.join(wrong)}. " if wrong else ""


def _led_by_another(labels: Sequence[str], votes: np.ndarray, table: Any) -> list[tuple[Any, str]]:
    """Return the rows in which most votes are for another condition than the one on top, each with that condition."""
    every = ((row, _leader(labels, own)) for (_, row), own in zip(table.iterrows(), votes, strict=True))
    return [(row, label) for row, label in every if label not in ("", row["truly on top"])]


def _leader(labels: Sequence[str], votes: np.ndarray) -> str:
    """Return the condition with most votes; nothing where several have as many."""
    return labels[int(votes.argmax())] if (votes == votes.max()).sum() == 1 else ""


def truth_among(known: int, count: Any) -> str:
    """Say where the true number of people lies in its interval, and how often such intervals held."""
    low, high = count.interval
    return f"The true number lies {'inside' if low <= known <= high else 'outside'} the interval. {HELD_BY_PEOPLE}"


COUNT_PEOPLE = (
    "What to do with this: report the number of people with its interval, not the count of a single linkage, and "
    "check by hand the pairs that are neither surely one person nor surely two."
)
"""The advice of the study of two files."""


def of_the_partition(count: Any, scores: Any) -> str:
    """Say how right the one partition is that a linkage writes."""
    right, found = (f"{scores[f'pairwise-{name}']:.3f}" for name in ("precision", "recall"))
    low, high = count.interval
    outside = "" if low <= count.point <= high else ", which is outside the interval, since it leaves out weak links"
    return (
        f"The single partition that would be written has {count.point:,.0f} people{outside}. Of the pairs that it "
        f"joins, a share of {right} is right; it finds {found} of all pairs that belong together."
    )


FILES, FILES_HELD = 20, 20
"""How many pairs of files were simulated, seeds from 0 on, and in how many the interval held."""

_LEAST_HELD, _MOST_HELD = wilson(FILES_HELD / FILES, FILES)

HELD_BY_PEOPLE = (
    f"In {FILES} simulations like this one (seeds 0 to {FILES - 1}), the 95 % interval contained the true number "
    f"{FILES_HELD} times. With so few simulations the true share may be {_LEAST_HELD:.2f} to "
    f"{_MOST_HELD:.2f}."
)
"""What they say."""
