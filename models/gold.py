"""Gold labels as a setting of the crowd models: whether the true label of an item is taken as known."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.arrays import Int
from consilience.errors import UnsupportedRequest
from consilience.models.settings import setting
from consilience.notes import Remedy


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


def known_gold(resolved: Any) -> Int[np.ndarray, " known"]:
    """Return the items whose gold label is known and has no part in the fit; none where it has."""
    data = resolved.data
    if data.gold is None or resolved.settings.gold == "use":
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.asarray(data.gold) >= 0)
