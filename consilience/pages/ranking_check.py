"""What a page of rankings says of whether the model expects how often annotators put the same class first."""

from __future__ import annotations

from typing import Any

from consilience.evaluation.first_choices import FirstChoices, first_choices
from consilience.inference.fitting import Fit
from consilience.notes import Level
from consilience.pages import Alert, Section
from consilience.printing import counted
from consilience.rounding import p_value

_HOW = (
    "For each draw of the plausibilities, rankings with as many first choices are drawn as the model says that they "
    "arise: a class comes first with a probability of its plausibility. Plausibilities were learned from the same "
    "rankings, so that this check finds too little rather than too much; that it finds nothing does not make the model "
    "right."
)


def checked(fit: Fit) -> FirstChoices | None:
    """Check a fit of rankings against them; None of other data, of models that cannot draw rankings, or of too many."""
    draws_them = fit.data.rows == "report" and fit.member.simulation is not None
    if not draws_them or fit.options.get("tempering", "likelihood") != "likelihood":
        return None
    data: Any = fit.data
    return first_choices(data, fit.truth, fit.seed)


def in_words(found: FirstChoices) -> str:
    """Say how often annotators put the same class first, beside what the fit expects."""
    low, high = found.interval
    said = (
        f"two annotators of an item put the same class first in {found.observed:.2f} of pairs, and by the fit they "
        f"would in {found.drawn.mean():.2f} ({low:.2f} to {high:.2f}, 95 %)"
    )
    if not found.unexpected:
        return f"{said}: as it expects, which is a weak check, for the fit learned from the same rankings"
    way = "more" if found.observed > found.drawn.mean() else "less"
    return f"{said}: they agree {way} than it expects ({p_value(found.p, 2)})"


def check_section(found: FirstChoices | None) -> tuple[list[Section], list[Alert]]:
    """Return the section on the check, and an alert where the fit does not expect what was found; nothing of None."""
    if found is None:
        return [], []
    words = f"On average over {counted(found.items, 'items')} {in_words(found)}."
    gist = f"same first choice {'not ' * found.unexpected}as often as the fit expects"
    about = "The fit does not expect this agreement."
    told = f"Of the rankings {in_words(found)}. Its plausibilities and certainties may be off."
    said = [Alert(about, [told], Level.warning)] if found.unexpected else []
    return [Section("Model check", [words, _HOW], gist)], said
