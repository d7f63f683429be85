"""What a page of a fit says of how annotators agree: with the others, in pairs, and as the fit expects or does not."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import numpy as np

from consilience import figures
from consilience.errors import UnsupportedRequest
from consilience.evaluation.agreement import agreement
from consilience.evaluation.leave_one_out import agreement_by_annotator, annotator_agreement, naming
from consilience.evaluation.rank_agreement import RankAgreement
from consilience.evaluation.scores import Score
from consilience.inference.fitting import Fit
from consilience.models.crowd.gate import ERRORS
from consilience.models.truth import Truth
from consilience.notes import Level
from consilience.pages import Alert, Bar, Bars, More, Section, joined, rankings_agree
from consilience.pages.agreement import agreement_sections, predictive_section
from consilience.pages.items import MOST_BARS, class_word
from consilience.pages.run import is_vote
from consilience.printing import counted

# Annotations that are simulated to check the agreement; and how many data sets: enough to tell a p-value of .05.
_MOST_SIMULATED, _DATA_SETS = 1 << 22, (40, 200)


def agreement_parts(
    fit: Fit, truth: Truth, top: Score, ranked: RankAgreement | None = None
) -> tuple[list[Section], list[Alert]]:
    """Say how annotators agree: each with the others together, in pairs, and as the fit expects or does not.

    Parameters
    ----------
    fit, truth, top : the fit, its truth, and the certainty of the top class.
    ranked : how far annotators of rankings rank alike.
    """
    if "left-out" not in fit.data.agreements:
        return [], []
    data: Any = fit.data
    left_out = annotator_agreement(data, fit.options.get("rank_weights", "equation-14"))
    several = int(np.isfinite(left_out.items).sum())
    if not several:
        return [], []
    first = "that the other annotators of the item gave most often"
    if fit.data.rows == "report":
        first = "that leads among the item's other annotators, whose lower ranks count less"
    blocks: list[Any] = [
        f"Leave-one-out agreement is how often an annotator names the {class_word(fit)} {first}; if several lead, any "
        f"of them counts. It is {left_out.value:.3f} on average over {counted(several, 'items')} with two annotators "
        "or more."
    ]
    each: list[Any] = []
    gist = f"leave-one-out agreement {left_out.value:.3f}"
    if fit.data.rows == "report":
        gist, blocks[0], each = _of_rankings(fit, first, left_out.value, several)
        if ranked is not None:
            gist = f"Kendall's tau {rankings_agree.tau_words(ranked)}; {gist}"
            blocks.insert(0, rankings_agree.in_section(ranked))
    if truth.num_draws > 1 and not is_vote(fit):
        blocks[-1] += " Leave-one-out agreement uses no model; certainty should increase with it."
        blocks.append(figures.certainty_by_agreement(top, left_out))
    blocks += each
    pairs, check, said = _pairwise_agreement(fit)
    if not (pairs or check):
        return [Section("Agreement with the others", blocks, gist)], said
    title = "Agreement and model check" if check else "Agreement of annotators"
    parts = joined([Section("Agreement with the others", blocks), *check], title, gist)
    closed = [More(f"{part.title}{': ' * bool(part.gist)}{part.gist}", part.blocks) for part in pairs]
    return [dataclasses.replace(part, blocks=[*part.blocks, *closed]) for part in parts], said


def _of_rankings(fit: Fit, first: str, value: float, several: int) -> tuple[str, str, list[Any]]:
    """Say how rankings agree: in a line, in sentences, and of each annotator.

    Parameters
    ----------
    fit : of rankings.
    first : which class of the others' it is about.
    value, several : how often it is named, of how many items.
    """
    data: Any = fit.data
    weights = fit.options.get("rank_weights", "equation-14")
    beside, each = naming(data, weights), agreement_by_annotator(data, weights)
    least, most = (f"{end:.1f}" for end in (each.classes.min(), each.classes.max()))
    named = f"{least} to {most}" if least != most else f"{least} each"
    gist = f"same first choice as the others {beside.first:.2f}, by chance {beside.first_at_random:.2f}"
    chance = rankings_agree.chance_words(each, beside.first_at_random)
    words = (
        f"In {beside.first:.2f} of the rankings, an annotator's first choice (alone or tied) is the class {first}; "
        f"chance would give {beside.first_at_random:.2f}.{chance} Leave-one-out agreement is how often an annotator "
        f"names that class at any rank; if several classes lead, any of them counts. It is {value:.2f} on average over "
        f"{counted(several, 'items')} with two annotators or more, but long rankings make it high by chance: naming as "
        f"many of the {data.num_classes:,} classes at random gives {beside.at_random:.2f} if one class leads."
    )
    how = (
        "For each annotator: how often the first choice is that class, and how often the annotator names it at any "
        "rank. The line marks what chance would give for first choices. Annotators who name more classes name it more "
        f"easily; on average they name {named}."
    )
    return gist, words, [how, first_choice_bars(each, beside.first_at_random)]


def first_choice_bars(frame: Any, at_random: float) -> Bars:
    """Draw how often the first choice of each annotator is what the others put first.

    Parameters
    ----------
    frame : of `agreement_by_annotator`.
    at_random : how often it would be by chance.
    """
    rows = [
        Bar(
            str(one.annotator), one.first, f"{one.first:.2f} ({one.lower:.2f} to {one.upper:.2f}) of "
            f"{counted(int(one.rankings), 'rankings')}; at any rank {one.agreement:.2f}",
            interval=(one.lower, one.upper),
        )
        for one in frame.sort_values("first", kind="stable").head(MOST_BARS).itertuples()
    ]  # fmt: skip
    heads = ("annotator", "same first choice", "share (95 %)")
    return Bars(rows, "Agreement of each annotator, the lowest first.", heads, line=at_random, reach=(0.0, 1.0))


def _pairwise_agreement(fit: Fit) -> tuple[list[Section], list[Section], list[Alert]]:
    """Return sections on the agreement in pairs, one on what the fit expects of it, and what that says."""
    if "pairs" not in fit.data.agreements:
        return [], [], []
    data: Any = fit.data
    parts: list[Section] = []
    check: list[Section] = []
    said: list[Alert] = []
    # Weights of rows may be no numbers of annotations, and a truth may not say how often annotators agree.
    with contextlib.suppress(UnsupportedRequest):
        # The model was fitted to every row; the report is about the same ones.
        parts += agreement_sections(agreement(data, duplicates="keep"))
    with contextlib.suppress(UnsupportedRequest):
        number = int(np.clip(_MOST_SIMULATED // max(data.num_annotations, 1), *_DATA_SETS))
        found = agreement(fit, num_predictive=number, most_simulated=_MOST_SIMULATED)
        check.append(predictive_section(found, fit.truth.dependence))
        if found.unexpected:
            about = ERRORS if found.predictive_p > 0.5 else ""  # what is agreed on more than expected
            said.append(Alert("The fit does not expect this agreement.", [found.verdict], Level.warning, about))
    return parts, check, said
