"""Gold labels of items: whether a crowd model takes them as known, and what a fit answers of those it did not use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from consilience.arrays import Int
from consilience.errors import UnsupportedRequest
from consilience.models.interface import Account, Column, Measure
from consilience.models.settings import setting
from consilience.models.truth.against_gold import against_gold, calibration_notes, unused_gold
from consilience.notes import Note, Remedy


def gold_setting() -> Any:
    """Return the setting, the same for every member that has it."""
    return setting(
        "ignore", "whether the true label of an item is taken as known where the data have a gold label",
        choices=("ignore", "use"),
    )  # fmt: skip


def uses_gold(data: Any, gold: str) -> bool:
    """Return whether the gold labels of annotations or mentions are used.

    Raises
    ------
    UnsupportedRequest : they are asked for, and the data have none.
    """
    if gold == "use" and data.gold is None:
        text = "{gold} needs data with gold labels, and these have none; use {gold}"
        raise UnsupportedRequest(text, Remedy("gold", "use"), Remedy("gold", "ignore"))
    return gold == "use"


def require_gold(resolved: Any) -> None:
    """Refuse to learn from gold labels that the data do not have, or that the fit takes as known.

    Raises
    ------
    UnsupportedRequest : there are none to learn from.
    """
    if resolved.settings.dependence == "gold" and not len(known_gold(resolved)):
        raise UnsupportedRequest(
            "{dependence} needs gold labels that the fit does not use, and there are none; give a column 'gold' for "
            "some items, or a number",
            Remedy("dependence", "gold"),
        )


def known_gold(resolved: Any) -> Int[np.ndarray, " known"]:
    """Return the items whose gold label is known and has no part in the fit; none where it has."""
    data = resolved.data
    if data.gold is None or resolved.settings.gold == "use":
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.asarray(data.gold) >= 0)


def gold_record(data: Any) -> dict[str, np.ndarray]:
    """Return how many gold items each annotator labelled, and how many of these labels are right, weights summed."""
    if data.gold is None or not (np.asarray(data.gold) >= 0).any():
        return {}
    gold, annotator = np.asarray(data.gold)[np.asarray(data.item)], np.asarray(data.annotator)
    known = (gold >= 0) & (annotator >= 0)
    weight, who = np.asarray(data.weight, float)[known], annotator[known]
    right, number = weight * (gold == np.asarray(data.label))[known], data.num_annotators
    return {"gold_items": np.bincount(who, weight, number), "gold_right": np.bincount(who, right, number)}


GOLD_COLUMNS = (
    Column("gold_items", help="her annotations of items with gold"),
    Column("gold_right", help="those of them that are right"),
)
"""Of the table of annotators, where the data have gold labels."""


def _says(account: Account) -> Iterable[Note]:
    """Say where the stated probabilities are not what the gold labels bear out."""
    if unused_gold(account.resolved) is None:
        return []
    return calibration_notes(against_gold(account.truth, account.resolved))


GOLD_MEASURES = (
    Measure(
        name="calibration", help="How often labels of each stated certainty are the gold label.",
        place="consilience.evaluation.reliability:calibration", says=_says,
        columns=(
            Column("lower", help="end of the bin of certainties"), Column("upper", help="its other end"),
            Column("items", help="how many have a certainty in it"), Column("certainty", help="their mean"),
            Column("right", help="share of them whose label is the gold label"),
            Column("right_lower", help="end of its 95 % interval (Wilson)"),
            Column("right_upper", help="its other end"),
        ),
    ),
    Measure(
        name="calibration_score", help="How right the stated certainties are, against the gold labels.",
        place="consilience.evaluation.reliability:calibration_score",
    ),
)  # fmt: skip
"""What every fit answers whose truth is classes of items, and whose data can hold gold labels."""
