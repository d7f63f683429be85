"""Lines that go on from a fit and run as they are: commands where it is in a folder, Python where in memory."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special

from consilience.evaluation.agreement.jackknife import wilson
from consilience.inference.fitting import Fit
from consilience.models import MEMBERS
from consilience.models.intervals import ends
from consilience.notes import Remedy
from consilience.pages.gold_needed import needed
from consilience.pages.run import changed
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
    settings, name = (given if model else changed(fit) | given), model or fit.member.name
    if by_command(fit, model):
        flags = [Remedy(one, value).words("flags") for one, value in settings.items()]
        flags = [*flags, *fit.data.reading_flags, *reading]
        return " ".join(["consilience fit", name, shlex.quote(fit.attributes["data_file"]), *flags, f"-o {output}"])
    named = repr(name) if name in MEMBERS else name
    return f"cs.fit({', '.join([named, 'data', *(f'{one}={value!r}' for one, value in settings.items())])})"


def compare_again(fit: Fit, systems: Mapping[str, Any], **given: str) -> str:
    """Return the line that compares systems, in that order, in another way; of none, files to put in their place."""
    if fit.folder:
        files = [shlex.quote(system.file or f"{name}.csv") for name, system in systems.items()]
        files = [*files[:_MOST_FILES], *["…"] * (len(files) > _MOST_FILES)] or ["SYSTEM_A.csv", "SYSTEM_B.csv"]
        return " ".join(["consilience compare RUN", *files, *(f"--{one} {word}" for one, word in given.items())])
    named = "predictions" if systems else "{'a': 'SYSTEM_A.csv', 'b': 'SYSTEM_B.csv'}"
    return f"cs.compare({', '.join(['fit', named, *(f'{one}={word!r}' for one, word in given.items())])})"


def whose_columns(fit: Fit, systems: Mapping[str, Any]) -> str:
    """Say what files a line of `compare_again` takes, where these are not those that were read; else empty."""
    unread = not systems or (fit.folder and not all(system.file for system in systems.values()))
    return f" ({_OF_SIDES if fit.data.rows == 'rating' else COLUMNS})" if unread else ""


def decided(fit: Fit, number: int, apart: float = 1.0) -> str:
    """Say how to score systems of which nobody says where they come from, where no reader takes gold labels.

    Parameters
    ----------
    fit : of rankings or ratings.
    number : how many items there are.
    apart : on which share of them the first choices of the first two systems differ.
    """
    few = 20
    number = number if number <= 2 * few else few
    which = "the items" if number > few else f"{few} random items"
    half = float(np.diff(wilson(0.5, number))[0]) / 2
    two = special.ndtri(ends()[1])
    lead = min(two * np.sqrt(apart / number), apart)
    left = f"{counted(number, 'items')} {'leaves' if number == 1 else 'leave'} a doubt of up to ± {half:.2f} of a score"
    if apart > 0:
        left += f" and ± {lead:.2f} of the lead"
        enough = needed(_LEAD, max(apart, _LEAD))
        found = f"; to find a lead of {_LEAD:g} in four of five cases takes about {round(enough, -1):,.0f}"
        left += found * bool(enough > number)
    if fit.data.rows == "report":
        return (
            "Have more annotators rank the items: the surer the most plausible class is, the less it matters where "
            "predictions come from. Where one class turns out to be the right one, count instead how often each system "
            f"has it first: {left}"
        )
    return (
        f"Have {which} decided for certain, and count how many each system has right, so that annotators' errors no "
        f"longer matter: {left}"
    )
