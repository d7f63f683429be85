"""Gold labels as an option of the crowd models: whether the true label of an item is taken as known."""

from __future__ import annotations

from typing import Any

from consilience.errors import UnsupportedRequest
from consilience.models.interface import Option

__all__ = ["GOLD", "uses_gold"]

GOLD = Option(
    name="gold", kind=str, default="ignore", choices=("ignore", "use"),
    help="whether the true label of an item is taken as known where the data have a gold label",
)  # fmt: skip
"""The option, the same for every member that has it."""


def uses_gold(data: Any, gold: str) -> bool:
    """Return whether the gold labels of annotations or mentions are used.

    Raises
    ------
    UnsupportedRequest : they are asked for, and the data have none.
    """
    known = data.gold_type if hasattr(data, "gold_type") else data.gold
    if gold == "use" and known is None:
        raise UnsupportedRequest("gold='use' needs data with gold labels, and these have none; use gold='ignore'")
    return gold == "use"
