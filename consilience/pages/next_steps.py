"""Lines that go on from a fit and run as they are: commands where it is in a folder, Python where in memory."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special

from consilience.evaluation.agreement.jackknife import wilson
from consilience.evaluation.leaderboard import Comparison
from consilience.inference.fitting import Fit
from consilience.models import MEMBERS
from consilience.models.intervals import ends
from consilience.notes import Remedy
from consilience.pages.gold_needed import FIND, SURE, about, needed
from consilience.pages.run import changed, driven
from consilience.pages.told_apart import is_close
from consilience.printing import counted

_MOST_FILES = 4
_LEAD = 0.1  # of which it is said how many items would show it

COLUMNS = "files with the columns item, class and rank, 1 for the first choice"
"""What a file of predictions is."""

_OF_SIDES = "files with the columns item and class, the class being above or below"


def by_command(fit: Fit, model: str = "") -> bool:
    """Return whether the command can fit the data again, by this model or another one: it has their file."""
    return bool(fit.folder and fit.attributes.get("data_file")) and (model or fit.member.name) in MEMBERS


def fit_again(fit: Fit, model: str = "", *, output: str, reading: Sequence[str] = (), **given: Any) -> str:
    """Return the line that fits the data again with other settings, or another model, into a folder of that name.

    Parameters
    ----------
    fit, model : that was made, and the other model.
    output : the folder.
    reading : flags that say how the command reads the data, beside those by which they were read.
    given : the settings.
    """
    given = {name: int(one) if not isinstance(one, str) and one == int(one) else one for name, one in given.items()}
    settings, name = (given if model else driven(fit) | changed(fit) | given), model or fit.member.name
    if by_command(fit, model):
        flags = [Remedy(one, value).words("flags") for one, value in settings.items()]
        flags = [*flags, *fit.data.reading_flags, *reading]
        return " ".join(["consilience fit", name, shlex.quote(fit.attributes["data_file"]), *flags, f"-o {output}"])
    named = repr(name) if name in MEMBERS else name
    return f"cs.fit({', '.join([named, 'data', *(f'{one}={value!r}' for one, value in settings.items())])})"


def fit_and_report(fit: Fit, model: str, systems: Mapping[str, Any]) -> str:
    """Return the line that fits the data by another model and makes the page of it, with the same systems.

    Parameters
    ----------
    fit, model : that was made, and the other model.
    systems : predictions by name.
    """
    again = fit_again(fit, model, output=model)
    if by_command(fit, model):
        scored = ["--predictions", *_files(systems)] * bool(systems)
        return f"{again} && {' '.join(['consilience report', model, *scored, f'-o {model}.html'])}"
    return f"cs.report({again}{', predictions' * bool(systems)}, path='{model}.html')"


def compare_again(fit: Fit, systems: Mapping[str, Any], **given: str) -> str:
    """Return the line that compares systems, in that order, in another way; of none, files to put in their place."""
    if fit.folder:
        files = _files(systems) or ["SYSTEM_A.csv", "SYSTEM_B.csv"]
        return " ".join(["consilience compare RUN", *files, *(f"--{one} {word}" for one, word in given.items())])
    named = "predictions" if systems else "{'a': 'SYSTEM_A.csv', 'b': 'SYSTEM_B.csv'}"
    return f"cs.compare({', '.join(['fit', named, *(f'{one}={word!r}' for one, word in given.items())])})"


def report_again(fit: Fit, systems: Mapping[str, Any], **given: str) -> str:
    """Return the line that makes the page again, with those systems and other settings."""
    if fit.folder:
        flags = [f"--{one} {word}" for one, word in given.items()]
        return " ".join(["consilience report RUN --predictions", *_files(systems), *flags, "-o report.html"])
    named = ", ".join(f"{one}={word!r}" for one, word in given.items())
    return f"cs.report(fit, predictions, {named}, path='report.html')"


def _files(systems: Mapping[str, Any]) -> list[str]:
    """Return the files of systems, the first ones."""
    files = [shlex.quote(system.file or f"{name}.csv") for name, system in systems.items()]
    return [*files[:_MOST_FILES], *["…"] * (len(files) > _MOST_FILES)]


def whose_columns(fit: Fit, systems: Mapping[str, Any]) -> str:
    """Say what files a line of `compare_again` takes, where these are not those that were read; else empty."""
    unread = not systems or (fit.folder and not all(system.file for system in systems.values()))
    return f" ({_OF_SIDES if fit.data.rows == 'rating' else COLUMNS})" if unread else ""


def decided(fit: Fit, number: int, apart: float, comparison: Comparison) -> str:
    """Say how to score systems of which nobody says where they come from, where no reader takes gold labels.

    Parameters
    ----------
    fit : of ratings or rankings.
    number : how many items there are.
    apart : on which share of them the first choices of the first two systems differ.
    comparison : of these systems, whose lead is to be found.
    """
    few = 20
    number = number if number <= 2 * few else few
    which = "each item" if number > few else f"{few} random items"
    what = "decide the true side of" if fit.data.rows == "rating" else "give the right class of"
    half = float(np.diff(wilson(0.5, number))[0]) / 2
    two = special.ndtri(ends()[1])
    lead = min(two * np.sqrt(apart / number), apart)
    left = f"{counted(number, 'items')} {'leaves' if number == 1 else 'leave'} a doubt of up to ± {half:.2f} of a score"
    if apart > 0:
        left += f" and ± {lead:.2f} of the lead"
        seen = max(_LEAD, _least_lead(comparison)[0])
        enough = needed(seen, max(apart, seen))
        found = f"; to find a lead of {seen:g} in four of five cases takes about {round(enough, -1):,.0f}"
        left += found * bool(enough > number)
    return (
        f"Have an expert {what} {which}, and count how many each system has right, so that annotators' errors no "
        f"longer matter: {left}"
    )


def _least_lead(comparison: Comparison) -> tuple[float, str]:
    """Return the lead of the first system over the second, the smallest where it depends on the reading; and which."""
    first, second = map(int, comparison.order[:2])
    least, most = (round(float(one), 2) for one in np.sort(comparison.readings.leads(first, second))[[0, -1]])
    return least, f" (the lowest of {least:.2f} to {most:.2f})" if least < most else " seen here"


def rank_more(comparison: Comparison, apart: float) -> str:
    """Say how many items with rankings would tell the first two systems apart; empty where they are told, or equal.

    An interval of a lead is taken to narrow with the square root of the number of items. What is not known of the items
    at hand has no part in it: were the right class of each known, the lead of all items like these would be no surer.

    Parameters
    ----------
    comparison : of systems, by rankings.
    apart : on which share of the items the first choices of the first two differ.
    """
    if not is_close(comparison):
        return ""
    pair, number = comparison.pairs.iloc[0], comparison.num_items
    half = (pair["upper"] - pair["lower"]) / 2
    seen, which = _least_lead(comparison)

    def enough(lead: float) -> int:
        return about(math.ceil(number * (half * (1 + FIND / SURE) / lead) ** 2))

    if max(seen, _LEAD) == _LEAD and enough(_LEAD) > number:
        found = f"about {enough(_LEAD):,} items would show a lead of {_LEAD:g} four times in five"
        found += f", and about {enough(seen):,} the lead of {seen:.2f}{which}" if 0 < seen < _LEAD else ""
    elif seen > 0 and enough(seen) > number:
        found = f"about {enough(seen):,} items would show the lead of {seen:.2f}{which} four times in five"
    else:
        return ""
    words = f"Have more items ranked, each by as many annotators as now: {found}"
    left = SURE * math.sqrt(apart / number)
    if left <= seen:
        return words
    return (
        f"{words}. More annotators for these {number:,} items are not enough: even if the right class of each were "
        f"known, the lead would be uncertain by up to ± {left:.2f}"
    )
