"""What to do next with linked records: one command with all that speaks for it, the review on its base, and others."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from consilience.evaluation.partition_scores import num_entities
from consilience.notes import Remedy
from consilience.pages import Action, capital
from consilience.pages.agreement_by_chance import Weighed
from consilience.pages.dates_in_parts import in_parts, split_dates
from consilience.pages.linkage_first import written_files
from consilience.pages.links_within import across_files, pairs_in_doubt, parted, rarely_within, within_too
from consilience.pages.run import changed, kinds_of
from consilience.pages.typing_errors import TEXTS, Typos
from consilience.printing import joined

_SIMILAR = {**dict.fromkeys(TEXTS, "string"), "date": "date"}  # types of fields, and by what values may be nearly equal
_COMPARED = {**dict.fromkeys(TEXTS, "texts"), "date": "dates"}
_KINDS = ("string", "typo", "number", "date")  # of similarity, by name: texts are found to be such
_AGAIN = "linked-again"
_ACROSS = " --restriction across"


def next_steps(fit: Any, own: Weighed, typos: Typos) -> list[Action]:
    """Return what to do next: to link again with all options that the run speaks for, and to go on from there.

    Parameters
    ----------
    fit : of records.
    own : what fields weigh.
    typos : the pairs in doubt that are equal but for typing errors.
    """
    kinds = kinds_of(fit.attributes.get("fields", ""))
    files = " ".join(shlex.quote(one) for one in fit.attributes.get("files", [])) or "FILES"
    named = {} if (given := fit.attributes.get("id", "id")) == "id" or ", " in given else {"id": given}
    flags = "".join(f" {Remedy(*one).words('flags')}" for one in (named | changed(fit)).items())
    fields = f" --fields {shlex.quote(fit.attributes['fields_given'])}" if "fields_given" in fit.attributes else ""
    similar = _similar(kinds, typos) if "similar" not in fit.attributes else ""
    across = within_too(fit) and rarely_within(fit)
    parts = in_parts(fit, own, kinds)
    files, fields = parts or (files, fields)
    options = _ACROSS * across + (similar * (typos.number > 0) or _as_given(fit, dates=parts is None))
    link = f"consilience link {files}{flags}{fields}{options}"
    spoken = across or typos.number > 0 or parts is not None
    again = "link the split files" if parts else "link again"
    best = [Action(_recommended(fit, typos, again, across=across), f"{link} -o {_AGAIN}")] if spoken else []
    words = "Write same or different in its answer column, then link with your answers:"
    answered = [Action(words, f"{link} --labels review.csv -o decided")]
    answered *= fit.method == "em" and "labels" not in fit.attributes
    return [
        *split_dates(fit, own, kinds),
        *best,
        _review(fit, _AGAIN if best else ""),
        *answered,
        _result(fit),
        *([] if across else across_files(fit, link)),
        *(_by_similarity(kinds, similar, link) if similar and not typos.number else []),
        Action("See how much each field counts", section="Match weights"),
        Action("Choose a threshold", section="Threshold curve"),
    ]  # fmt: skip


def _recommended(fit: Any, typos: Typos, again: str, *, across: bool) -> str:
    """Say what to link again with, and what speaks for it; ``again`` are the words for what to do."""
    how = f"with {joined(f'“{name}”' for name in typos.fields)} compared by similarity" if typos.number else ""
    if not across:
        return f"{capital(again)} {how}, as {typos.words}{_no_interval(fit)}:" if how else f"{capital(again)}:"
    if_ = "If no file contains the same entity (such as a person) twice"
    words = f"{if_}, {again} only between files{how and f', {how}'}"
    why = "; ".join(one for one in (parted(fit), typos.words) if one)
    return f"{words}{why and f'. {capital(why)}'}{_no_interval(fit) if how else ''}:"


def _no_interval(fit: Any) -> str:
    """Say that intervals are lost by a comparison by similarity, where there are any; empty otherwise."""
    count = num_entities(fit)
    if count.no_interval or count.links_alone:
        return ""
    return ". The result then has no intervals (leave out --similar to keep them)"


def _review(fit: Any, again: str) -> Action:
    """Advise to decide on pairs by hand, of this run or of the one that links again."""
    if again:
        words = "List the pairs that are then still in doubt, to decide them by hand:"
        return Action(words, f"consilience review {again} -o review.csv")
    words = f"List the {pairs_in_doubt(fit)}, to decide them by hand:"
    return Action(words, "consilience review RUN -o review.csv", "Review list")


def _result(fit: Any) -> Action:
    """Say where the entities stand, or how to write them."""
    if files := written_files(fit):
        return Action(f"Find the result in {' and '.join(files)}", section="Links")
    return Action("Write the entities:", "consilience table RUN entities --csv entities.csv")


def _similar(kinds: Mapping[str, str], typos: Typos) -> str:
    """Return the option to compare values by similarity: those with typing errors, or all compared for equality."""
    fields = [name for name in kinds if kinds[name] in _SIMILAR and (name in typos.fields or not typos.fields)]
    named = ",".join(f"{name}={_SIMILAR[kinds[name]]}" for name in fields)
    return f" --similar {shlex.quote(named)}" if fields else ""


def _as_given(fit: Any, *, dates: bool) -> str:
    """Return the option by which the run compared values by similarity, with dates or not; empty where none is left."""
    kinds = kinds_of(fit.attributes.get("similar", ""))
    named = ",".join(f"{name}={kind}" for name, kind in kinds.items() if kind in _KINDS and (dates or kind != "date"))
    return f" --similar {shlex.quote(named)}" if named else ""


def _by_similarity(kinds: Mapping[str, str], similar: str, link: str) -> list[Action]:
    """Offer to compare values by similarity where no typing errors were found."""
    what = " and ".join(dict.fromkeys(words for kind, words in _COMPARED.items() if kind in kinds.values()))
    words = f"Compare {what} by similarity, so that typing errors count less:"
    return [Action(words, f"{link}{similar} -o linked-by-similarity")]
