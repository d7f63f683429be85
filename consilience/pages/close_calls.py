"""What a report says of probabilities that too few draws leave on neither side of what counts as sure."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.arrays import Bool
from consilience.evaluation.agreement.jackknife import wilson
from consilience.inference.posterior import LEAST_ESS
from consilience.pages import SURE
from consilience.pages.items import leading_classes
from consilience.printing import counted
from consilience.rounding import probability

_MOST_DOUBTFUL = 2  # labels that are named, and as many that are wrong


def close_calls(share: Any, draws: Any) -> Bool[np.ndarray, " share"]:
    """Return which shares of draws other draws may put on the other side of what counts as sure.

    These are the ones whose 95 % interval (Wilson) holds it, which covers only that draws are few.

    Parameters
    ----------
    share : counted among draws.
    draws : how many independent ones that was, for all or for each; infinite of what was not counted.
    """
    share, draws = np.broadcast_arrays(np.asarray(share, float), np.asarray(draws, float))
    low, high = wilson(share, np.maximum(draws, 1))
    return np.isfinite(draws) & (low < SURE) & (high > SURE)


def half_width(share: Any, draws: Any) -> Any:
    """Return half of that interval."""
    low, high = wilson(np.asarray(share, float), np.maximum(np.asarray(draws, float), 1))
    return (high - low) / 2


def called(number: int) -> str:
    """Say how many close calls there are, with a separator in front; empty of none."""
    return f"; {counted(number, 'close calls')}" if number else ""


def few_draws(num_draws: int, draws: float, chains: int, mentions: int) -> list[str]:
    """Say how well a run tells probabilities, where it is short or leaves close calls; nothing otherwise.

    Parameters
    ----------
    num_draws, draws : how many there are, and as how many independent ones they count at least.
    chains, mentions : how many whole chains are close calls, and how many labels of mentions.
    """
    said = []
    if draws < LEAST_ESS:
        said.append(
            f"This run is short: its {num_draws:,} draws count as {draws:,.0f} independent ones, and {LEAST_ESS} are "
            f"recommended. A probability of {SURE} is therefore known to about ± {half_width(SURE, draws):.2f}."
        )
    what = [counted(number, name) for number, name in ((chains, "chains"), (mentions, "mentions")) if number]
    if what:
        number = counted(chains + mentions, "close calls")
        said.append(f"{number} may cross {SURE} with more draws: {' and '.join(what)}.")
    return [" ".join(said)] * bool(said)


def doubtful_labels(data: Any, named: Any, certainty: Any, draws: float) -> list[str]:
    """Name the least certain labels of mentions, and those that are wrong by gold; nothing where there are none.

    Parameters
    ----------
    data : mentions.
    named : the truth, as a page writes it.
    certainty : of the leading label of each mention.
    draws : how many effective ones there are.
    """
    names, lead, labels = named.names(), named.lead.label, named.ids["class"]
    order, told = np.argsort(certainty, kind="stable"), []
    open_ = order[((certainty < SURE) | close_calls(certainty, draws))[order]][:_MOST_DOUBTFUL]
    if len(open_):
        which = "label (→ is a link) is" if len(open_) == 1 else "labels (→ is a link) are"
        said = zip(names[open_], leading_classes(named, open_, draws=draws), strict=True)
        told = [f"The most doubtful {which} {'; '.join(f'“{name}”: {label}' for name, label in said)}."]
    gold = lead if data.gold_codes is None else np.asarray(data.gold_codes)
    if len(wrong := order[((gold >= 0) & (gold != lead))[order]][::-1][:_MOST_DOUBTFUL]):
        apart = [
            f"“{names[item]}”, {labels[lead[item]]} ({probability(certainty[item], 2, draws)}) instead of "
            f"{labels[gold[item]]}" for item in wrong.tolist()
        ]  # fmt: skip
        told.append(f"Wrong by gold: {'; '.join(apart)}.")
    return [" ".join(told)] * bool(told)
