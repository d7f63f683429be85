"""Gold labels as a setting of the crowd models: whether the true label of an item is taken as known."""

from __future__ import annotations

from typing import Any

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
