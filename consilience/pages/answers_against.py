"""What a report of views says of whose answers go against the clusters."""

from __future__ import annotations

from typing import Any

from scipy import special

from consilience.evaluation.agreement.jackknife import wilson
from consilience.models.intervals import LEVEL
from consilience.pages import Table
from consilience.printing import percent, percents

_MOST_EXPERTS = 15
_FEWEST = 5  # Answers of an expert who is named.


def by_expert(experts: Any, against: Any) -> Any:
    """Count the answers of each expert that go against the clusters, the largest share first.

    Parameters
    ----------
    experts : table of the experts, with the number of their answers.
    against : table of all answers that go against the clusters.
    """
    import pandas

    number = experts["answers"].to_numpy(float)
    contrary = against["expert"].value_counts().reindex(experts["expert"], fill_value=0).to_numpy()
    known = number > 0
    share = contrary[known] / number[known]
    low, high = wilson(share, number[known])
    frame = pandas.DataFrame({
        "expert": experts["expert"].to_numpy()[known], "answers": number[known].astype(int),
        "against the clusters": contrary[known], "share": share, "95 % from": low, "to": high,
    })  # fmt: skip
    return frame.sort_values(["share", "answers"], ascending=[False, False], kind="stable", ignore_index=True)


def table_by_expert(frame: Any) -> list[Any]:
    """Return the table of `by_expert` with what to know of it; nothing of one expert."""
    if len(frame) < 2:
        return []
    shown = frame.head(_MOST_EXPERTS)
    cut = f", of {len(frame):,} experts the {len(shown)} with the largest share" * (len(shown) < len(frame))
    words = (
        f"The experts who gave them{cut} (95 % Wilson intervals for independent answers). The clusters were made from "
        "these same answers, and the intervals take the clusters as known. Experts with more estimated errors count "
        "less in the clusters:"
    )
    texts = {name: [percent(value) for value in shown[name]] for name in ("share", "95 % from", "to")}
    return [words, Table(shown, "Answers that contradict the clusters, by expert.", of="", texts=texts)]


def most_contrary(frame: Any, *, share: bool = True) -> str:
    """Say who clearly gave more of them than the others, with the share of these answers if asked; empty of nobody.

    That is so where the interval of the share lies above that of all others together; both hold 95 % for as many
    experts as there are at once (Bonferroni).
    """
    if len(frame) < 2:
        return ""
    first, rest = frame.iloc[0], frame.iloc[1:]
    others = float(rest["against the clusters"].sum() / rest["answers"].sum())
    quantile = special.ndtri(1 - (1 - LEVEL) / 2 / len(frame))
    low, _ = wilson(first["share"], first["answers"], quantile)
    _, high = wilson(others, rest["answers"].sum(), quantile)
    if low <= high or first["against the clusters"] < _FEWEST:
        return ""
    apart = f"; of the other experts' answers, {percent(others)} do"
    if share:
        apart = f" ({percent(first['share'])} of this expert's answers; the other experts: {percent(others)})"
    return (
        f"{first['expert']} gave {first['against the clusters']:,} of the {frame['against the clusters'].sum():,} "
        f"answers that contradict the clusters{apart}"
    )


def tile_of_most(frame: Any) -> dict[str, str]:
    """Return the key figure on the expert with the largest share of them; nothing of one expert, or of no answers."""
    if len(frame) < 2:
        return {}
    first = frame.iloc[0]
    ends = percents(float(first["95 % from"]), float(first["to"]))
    named = f"of {first['expert']}'s answers contradict the clusters"
    return {f"{named} ({ends}, 95 %, if the clusters are right)": percent(float(first["share"]))}
