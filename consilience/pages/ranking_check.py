"""What a page of rankings says of whether the model expects how often annotators put the same class first."""

from __future__ import annotations

from typing import Any

from consilience.evaluation.first_choices import FirstChoices, first_choices
from consilience.inference.fitting import Fit
from consilience.notes import Level
from consilience.pages import Alert, Section, capital
from consilience.printing import counted
from consilience.rounding import p_value

_HOW = (
    "For each draw of the plausibilities, rankings are simulated from the model: a class comes first with a "
    "probability equal to its plausibility. The plausibilities were learned from the same rankings, so this check may "
    "miss a problem; a fit that passes it may still be wrong."
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
        f"two annotators of an item put the same class first in {found.observed:.2f} of pairs; the fit expects "
        f"{found.drawn.mean():.2f} ({low:.2f} to {high:.2f}, 95 %)"
    )
    if not found.unexpected:
        return f"{said}. This agreement is only a weak check, as the fit learned from the same rankings"
    way = "more" if found.observed > found.drawn.mean() else "less"
    return f"{said}, so annotators agree {way} than it expects ({p_value(found.p, 2)})"


def check_section(found: FirstChoices | None) -> tuple[list[Section], list[Alert]]:
    """Return the section on the check, and an alert where the fit does not expect what was found; nothing of None."""
    if found is None:
        return [], []
    words = f"On average over {counted(found.items, 'items')}, {in_words(found)}."
    gist = f"same first choice {'not ' * found.unexpected}as often as the fit expects"
    about = "The fit does not expect this agreement."
    told = f"{capital(in_words(found))}. Its plausibilities and certainties may be wrong."
    said = [Alert(about, [told], Level.warning)] if found.unexpected else []
    return [Section("Model check", [words, _HOW], gist)], said
