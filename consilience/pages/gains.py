"""What a report of views says of how much another answer is expected to tell."""

from __future__ import annotations

import math
from typing import Any

EVEN = math.log(2)
"""Nats that settle an even question."""

LEAST = 0.01 * EVEN
"""A gain below it tells next to nothing."""

WORTH = 0.1 * EVEN
"""With a smaller gain an answer is not called worth asking."""

SCALE = "100 % would settle a pair that is as probably together as apart"


def in_per_cent(gain: float) -> str:
    """Write what an answer is expected to tell as a share of what settles an even question."""
    return f"{100 * gain / EVEN:.0f} %"


def surer(asked: Any, open_: int) -> str:
    """Say which answers would make clusters surer, as far as the model tells.

    Parameters
    ----------
    asked : the questions that were looked at, with their gains, the largest first.
    open_ : how many items have no sure cluster.
    """
    if asked.empty or asked["gain"].iloc[0] < LEAST:
        return "If the model is right, more answers about the pairs examined would hardly change the clusters."
    best = asked.iloc[0]
    if not open_ and best["gain"] < WORTH:
        return (
            "If the model is right, more answers would tell little: the best of the pairs examined has a gain of "
            f"{in_per_cent(best['gain'])}, where {SCALE}."
        )
    return (
        f"More answers would make the clusters more certain. The best of the pairs examined is {best['item_a']} and "
        f"{best['item_b']}, asked of {best['expert']}: expected gain {in_per_cent(best['gain'])}, where {SCALE}."
    )
