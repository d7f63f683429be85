"""What a report says of single gold labels: those that nobody gave, and the one that decides how all err together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from consilience.inference.fitting import Fit
from consilience.models.crowd.dependence import exponents, learned_without_each, tempered
from consilience.models.crowd.truth import item_weights
from consilience.models.gold import known_gold
from consilience.pages import SURE
from consilience.pages.looked import Choices
from consilience.printing import counted

_NEAR_ZERO = 0.001  # of a dependence, in logarithms
_MOST_NAMED = 5
_FEWEST = 2  # gold labels, of which one is left out


class Decisive(NamedTuple):
    """The gold label without which the dependence that is learned from all would move furthest.

    Parameters
    ----------
    item : code of its item.
    rho : what would be learned without it.
    lowest, highest : what would be learned without any one.
    far : whether the other gold labels alone say 0, or what is learned is further than its standard error.
    unsure : how many items would have a certainty below `SURE`.
    unnamed : whether no annotator of the item gave the label.
    """

    item: int
    rho: float
    lowest: float
    highest: float
    far: bool
    unsure: int
    unnamed: bool

    def words(self, names: Any) -> str:
        """Say how far what is learned rests on one gold label."""
        if not self.far:
            return f" Without any one of these gold labels it would be {self.lowest:.2f} to {self.highest:.2f}."
        nobody = " (a label that none of its annotators gave)" * self.unnamed
        return (
            f" One gold label decides much of this: without that of “{names[self.item]}”{nobody}, dependence would be "
            f"{self.rho:.2f}."
        )

    def in_finding(self, names: Any) -> str:
        """Say what that does to the number of uncertain items; empty where it is not far."""
        if not self.far:
            return ""
        return f" Without the one gold label of “{names[self.item]}” it would be {self.unsure:,}."


def decisive(fit: Fit) -> Decisive | None:
    """Return the gold label that tells most of how far annotators err together; None where that was not learned."""
    truth: Any = fit.truth
    if truth.dependence is None or truth.dependence.source != "gold":
        return None
    known, weight = known_gold(fit.resolved), item_weights(fit.resolved)
    if len(known) < _FEWEST:
        return None
    codes, own = np.asarray(fit.data.gold_codes)[known], truth.dependence
    without, alone = learned_without_each(truth.untempered[known], weight[known], codes)
    apart = np.abs(np.log(without + _NEAR_ZERO) - np.log(own.rho + _NEAR_ZERO))
    most = int(np.argmax(apart))
    rho = float(without[most])
    far = own.rho > 0 and bool(alone[most] == 0 < np.median(alone) or apart[most] > own.spread)
    sure = tempered(truth.untempered, exponents(weight, rho)).max(axis=1)
    item = int(known[most])
    return Decisive(
        item, rho, float(without.min()), float(without.max()), far, int((sure.round(3) < SURE).sum()),
        item in unnamed_gold(fit),
    )  # fmt: skip


def unnamed_gold(fit: Fit) -> list[int]:
    """Return the codes of the items whose gold label none of their annotators gave."""
    data: Any = fit.data
    if "pairs" not in data.agreements:
        return []
    gold, item = np.asarray(data.gold_codes), np.asarray(data.item)
    given = np.zeros(len(gold), bool)
    given[item[np.asarray(data.label) == gold[item]]] = True
    labelled = np.bincount(item, minlength=len(gold)) > 0
    return np.flatnonzero((gold >= 0) & labelled & ~given).tolist()


def unnamed_words(fit: Fit, names: Any, said: Choices | None = None) -> str:
    """Name these as perhaps wrong, with how many systems say the same; empty where there are none.

    Parameters
    ----------
    fit : of labels.
    names : of all items.
    said : what systems say of items.
    """
    found = unnamed_gold(fit)
    if not found:
        return ""
    gold = np.asarray(fit.data.gold_codes)
    named = ", ".join([f"{names[item]}{_by_systems(said, item, gold[item])}" for item in found[:_MOST_NAMED]])
    more = f", {len(found) - _MOST_NAMED:,} more" * (len(found) > _MOST_NAMED)
    one = len(found) == 1
    of = counted(len(found), f"{fit.data.unit}s")
    if one:
        return f" No annotator gave the gold label of {of}, which may itself be wrong: {named}."
    return f" No annotator gave the gold labels of {of}, which may themselves be wrong: {named}{more}."


def _by_systems(said: Choices | None, item: int, label: int) -> str:
    """Say in brackets how many systems give an item this label; empty where there are none, or not all predict it."""
    if said is None or (giving := said.giving(item, label)) is None:
        return ""
    if len(said.names) == 1:
        return f" (“{said.names[0]}” {'gives it' if giving else 'does not give it either'})"
    if not giving:
        return f" (none of {counted(len(said.names), 'systems')} gives it either)"
    of = counted(len(said.names), "systems")
    if len(giving) == len(said.names):
        return f" ({'both systems' if len(giving) == 2 else f'all {of}'} give it)"
    return f" ({len(giving)} of {of} {'gives' if len(giving) == 1 else 'give'} it)"
