"""What a report of views says of answers alone: how often pairs were asked, and how often experts agree on them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from consilience.evaluation.agreement.jackknife import wilson
from consilience.pages import Heading, Table
from consilience.printing import counted, percent

_MOST_EXPERTS = 60  # whose pairs are looked at
_MOST_ROWS = 15
_MOST_TIMES = 4  # that are told


def common_pairs(fit: Any) -> list[Any]:
    """Say how often pairs were asked, and tabulate how often each two experts say the same of those they share."""
    data = fit.data
    expert, answer = np.asarray(data.expert), data.scale[np.asarray(data.together)]
    ends = np.stack([np.asarray(data.item_a), np.asarray(data.item_b)])
    pair = np.unique(np.sort(ends, axis=0), axis=1, return_inverse=True)[1].ravel()
    words = _times(np.unique(np.stack([pair, expert]), axis=1)[0])
    if data.num_experts < 2 or data.num_experts > _MOST_EXPERTS:
        return [Heading("What experts say of common pairs"), words]
    said = {one: dict(zip(pair[expert == one].tolist(), answer[expert == one].tolist(), strict=True))
            for one in range(data.num_experts)}  # fmt: skip
    rows = []
    for one, other in itertools.combinations(range(data.num_experts), 2):
        both = [key for key in said[one].keys() & said[other].keys()
                if 0.5 not in (said[one][key], said[other][key])]  # fmt: skip
        if both:
            same = sum((said[one][key] > 0.5) == (said[other][key] > 0.5) for key in both)
            rows.append((one, other, len(both), same))
    if not rows:
        return [Heading("What experts say of common pairs"), f"{words} No two experts judged the same pair."]
    cut = f" The {_MOST_ROWS} of {len(rows):,} with most common pairs are shown." * (len(rows) > _MOST_ROWS)
    shown = sorted(rows, key=lambda row: -row[2])[:_MOST_ROWS]
    words += f" The table shows how often two experts agree on pairs that both judged, without a model.{cut}"
    return [Heading("What experts say of common pairs"), words, _table(fit, shown)]


def _times(asked: np.ndarray) -> str:
    """Say how many experts were asked about a pair."""
    times, number = np.unique(np.unique(asked, return_counts=True)[1], return_counts=True)
    told = [f"{count:,} by {counted(time, 'experts')}"
            for time, count in zip(times.tolist(), number.tolist(), strict=True)]  # fmt: skip
    more = int(number[_MOST_TIMES:].sum())
    told = [*told[:_MOST_TIMES], *[f"{more:,} by more"] * (more > 0)]
    return f"Pairs that were judged: {', '.join(told)}."


def _table(fit: Any, rows: list[tuple[int, int, int, int]]) -> Table:
    import pandas

    names = fit.truth.names("expert", fit.truth.num_experts)
    one, other, number, same = np.array(sorted(rows, key=lambda row: row[3] / row[2])).T
    share = same / number
    low, high = wilson(share, number)
    frame = pandas.DataFrame({
        "expert": names[one], "and": names[other], "common pairs": number, "the same": same, "share": share,
        "95 % from": low, "to": high,
    })  # fmt: skip
    texts = {name: [percent(value) for value in frame[name]] for name in ("share", "95 % from", "to")}
    return Table(frame, "Agreement of two experts on pairs that both judged.", texts=texts)
