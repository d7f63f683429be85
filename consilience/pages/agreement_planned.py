"""What a page of agreement says of more annotations: how much narrower they make intervals, and for whom."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from consilience.errors import UnsupportedRequest
from consilience.evaluation.agreement import Agreement
from consilience.pages import Action, Section, Table
from consilience.pages.agreement_first import TENTATIVE

PLANNING = "What more annotations would give"

_FEWEST = 2  # annotations of an item that agree or not
_WIDTHS = (0.2, 0.1, 0.05, 0.02)  # of intervals; those that are narrower than the present one are planned for


class _Row(NamedTuple):
    """An interval that is planned for, as it stands in the table."""

    whose: str
    width: str
    annotators: str
    per_item: str
    more_items: int
    more_annotations: int


def planning(found: Agreement) -> Section | None:
    """Say how many annotations per item, and what narrower intervals take, for these annotators and for others."""
    import pandas

    try:
        lines = [_best_number(found.plan())]
    except UnsupportedRequest:
        return None
    rows = [*_of_these(found), *_of_others(found)]
    if not rows:
        return Section(PLANNING, lines)
    level = f"{100 * found.level:g} % interval"
    columns = ["interval for", level, "annotators", "annotations per item", "more items", "more annotations in all"]
    frame = pandas.DataFrame(rows, columns=columns)
    texts = {name: list(map(_about, frame[name])) for name in columns[4:]}
    frame.attrs["numbers"] = (level, "annotators", "annotations per item")
    words = f"The interval for these annotators is ± {found.plan().current_width / 2:.2g} now.{_more_annotators(found)}"
    table = Table(frame, "What narrower intervals take, about.", texts=texts)
    first = rows[0]
    gist = f"for these annotators {first.width} takes about {_about(first.more_items)} more items"
    if _both_parts(found):
        gist = "an interval half as wide for annotators like these takes about four times as many of them, and of items"
    return Section(PLANNING, [*lines, words, table], gist)


def narrower(found: Agreement) -> list[Action]:
    """Return the advice to narrow the interval of the first screen, with what it takes; none where not known."""
    _, most = found.alpha_interval_of_others or (0.0, 1.0)
    if most < TENTATIVE:  # no precision would change the verdict
        words = "Make the guidelines clearer, or train annotators, and measure agreement again. More annotations will "
        return [Action(f"{words}not raise alpha; they only make it more exact")]
    if _both_parts(found):
        low, high = found.interval_of_others or found.interval
        annotators, items = 3 * found.two_way.num_annotators, 3 * found.counts.num_items
        words = (
            f"Collect about {_about(3 * found.counts.num_annotations)} more annotations, by {_about(annotators)} more "
            f"annotators on {_about(items)} more items, to halve the interval (now ± {(high - low) / 2:.2g})"
        )
        return [Action(words, section=PLANNING)]
    try:
        rows, now = _of_these(found), found.plan().current_width / 2
    except UnsupportedRequest:
        return []
    return [
        Action(f"Collect about {_about(row.more_annotations)} more annotations, on {_about(row.more_items)} more "
               f"items, to narrow the interval for these annotators from ± {now:.2g} to {row.width}",
               section=PLANNING)
        for row in rows[:1]
    ]  # fmt: skip


def _of_these(found: Agreement) -> list[_Row]:
    """Plan intervals for these annotators: more items, with as many annotations as now or a better number."""
    per_item = max(round(found.counts.num_annotations / max(found.counts.num_items, 1)), 2)
    wide, rows = found.plan().current_width, list[_Row]()
    for width in [one for one in _WIDTHS if one < wide]:
        plan = found.plan(width=width, per_item=per_item)
        for own in (plan.asked, *[plan.best] * _is_better(plan)):
            if own is None or own.more_items is None:
                continue
            number = f"{own.per_item}{' (as now)' if own.per_item == per_item else ' (best)'}"
            half, more = f"± {width / 2:g}", own.more_items
            rows.append(_Row("these annotators", half, "the same", number, more, more * own.per_item))
    return list(dict.fromkeys(rows))


def _of_others(found: Agreement) -> list[_Row]:
    """Plan intervals for annotators like these: more of them and of items alike, so that all parts of it shrink alike.

    These parts, of items, of annotators and of single annotations, are as small as there are many of each: with f times
    as many of all, the variance is one f-th of it.
    """
    others = found.interval_of_others
    if not others or not _both_parts(found):
        return []
    number, counts, wide = found.two_way.num_annotators, found.counts, others[1] - others[0]
    rows = []
    for width in [one for one in _WIDTHS if one < wide]:
        times = (wide / width) ** 2
        items, annotations = (
            int(np.ceil((times - 1) * one)) for one in (counts.num_items, counts.num_annotations)
        )
        annotators = f"{_about(int(np.ceil(times * number)))}, in place of {number:,}"
        rows.append(_Row("annotators like these", f"± {width / 2:g}", annotators, "as now", items, annotations))
    return rows


def _both_parts(found: Agreement) -> bool:
    """Return whether the first screen has an interval for annotators like these, of which both parts are known."""
    return found.interval_of_others is not None and found.two_way.sd > 0  # else all annotators always agree


def _more_annotators(found: Agreement) -> str:
    """Say what more items alone leave of the interval for annotators like these, with a space in front."""
    others = found.interval_of_others
    if not others:
        return " Of other annotators the plan says nothing: these data do not tell how much annotators differ."
    both, half = found.two_way, (others[1] - others[0]) / 2
    if not both.sd:
        return ""
    stays = float(np.sqrt(max(1 - (both.item_sd / both.sd) ** 2, 0.0))) * half
    hardly = f"would leave about ± {stays:.2g}" if stays >= 0.01 * half else "would make that narrower too"
    return (
        f" For annotators like these it is ± {half:.2g}: any number of further items, labelled by the same "
        f"{both.num_annotators:,}, {hardly}. More annotators and more items, as many each as now, narrow both parts of "
        "it; the table has these."
    )


def _is_better(plan: Any) -> bool:
    """Return whether another number of annotations per item is surely better than the one that was asked about."""
    asked = plan.asked.per_item
    return bool(plan.optimum_lower > asked or plan.optimum_upper < asked)


def _best_number(plan: Any) -> str:
    """Say how many annotations of a new item make the most of a budget; no guess where the data give no upper end."""
    if not np.isinf(plan.optimum_upper) or np.isinf(plan.optimum):
        return str(plan)
    least = int(np.floor(plan.optimum_lower))
    if least <= _FEWEST:
        return (
            f"Collect at least {_FEWEST} annotations of each new item, as agreement takes {_FEWEST}. Whether more of "
            "each or more items would narrow the interval faster cannot be told from these data."
        )
    return (
        f"Collect at least {least} annotations of each new item: with fewer, the same number of annotations in all "
        f"gives a wider interval of the agreement ({100 * plan.level:g} % sure)."
    )


def _about(number: int) -> str:
    """Write a number that is planned with three digits; more of them are worth nothing."""
    return f"{int(float(f'{number:.3g}')):,}"
