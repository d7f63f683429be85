"""What a report says of whether systems looked at the items themselves: what gold labels tell of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from consilience.data import Predictions
from consilience.errors import UnsupportedRequest
from consilience.evaluation.adjustment import scoring_of
from consilience.inference.fitting import Fit
from consilience.models.intervals import LEVEL
from consilience.models.truth.against_gold import LEAST_ITEMS, tail, unused_gold
from consilience.models.truth.classes import marginals
from consilience.models.truth.truth import Marginals
from consilience.pages import More, Table
from consilience.pages.run import is_vote
from consilience.printing import joined
from consilience.rounding import probability

_SIDES = 1.96  # standard deviations of the logarithm of the dependence, in either direction
_MOST_NAMED = 4


class Beside(NamedTuple):
    """How many gold labels a system has right, beside how many it would have, were it made from the annotations.

    Parameters
    ----------
    right, items : how many it has right, and of how many.
    expected : how many it would have, and at either end of how far annotators may err together, the lowest first.
    chance : how probable it is then to have as many or more, and at those ends, the lowest first.
    """

    right: int
    items: int
    expected: tuple[float, float, float]
    chance: tuple[float, float, float]


class Looked(NamedTuple):
    """What gold labels tell of whether a system looked at the items itself.

    Parameters
    ----------
    name : of the system.
    all : by all gold labels.
    named : by those that some annotator of the item gave, where that is not all: the others may be wrong.
    level : of a probability, below which it is told.
    """

    name: str
    all: Beside
    named: Beside | None
    level: float

    @property
    def told(self) -> bool:
        """Whether it is right too often for predictions made from the annotations, at either end of the range."""
        return self.all.chance[2] < self.level

    @property
    def surely(self) -> bool:
        """Whether that is so by the gold labels alone that some annotator gave."""
        return self.told and (self.named is None or self.named.chance[2] < self.level)


class Choices(NamedTuple):
    """What systems say of items first.

    Parameters
    ----------
    names : of the systems.
    place : codes of the items that all of them predict.
    code : what each system says of each of these.
    """

    names: tuple[str, ...]
    place: np.ndarray
    code: np.ndarray

    def giving(self, item: int, label: int) -> list[str] | None:
        """Return the systems that give an item a label; None of an item that not all predict."""
        own = np.flatnonzero(self.place == item)
        if not len(own):
            return None
        return [name for name, one in zip(self.names, self.code[:, own[0]], strict=True) if one == label]


def choices(fit: Fit, systems: Mapping[str, Predictions], policies: Mapping[str, Any]) -> Choices | None:
    """Return what systems say of items first; None where they do not name one label each."""
    try:
        _, scoring, _ = scoring_of(fit, list(systems.values()), "top-1", **policies)
    except UnsupportedRequest:
        return None
    if scoring.first_choice is None:
        return None
    return Choices(tuple(systems), np.asarray(scoring.place), np.asarray(scoring.first_choice))


def looked(fit: Fit, said: Choices | None, unknown: Sequence[str], doubtful: Sequence[int]) -> tuple[Looked, ...]:
    """Set the gold labels that systems have right beside those that they would, were they made from the annotations.

    Such a system knows no more of an item than the annotations, so that its label is right with the probability that
    the fit gives that label, and how many are right is a sum of independent Bernoulli variables. Where the dependence
    of annotators was learned from gold labels, these are the probabilities without the item's own. Nothing of a vote,
    which has no such probabilities, of few gold labels, or where a fit knows no range of the dependence.

    Parameters
    ----------
    fit : of labels.
    said : what the systems say.
    unknown : the systems of which nobody says where their predictions come from. Of several any is told to have looked
        by chance alone in one case of twenty at most, as far as the fit holds.
    doubtful : codes of the items whose gold label none of their annotators gave.
    """
    truth: Any = fit.truth
    gold = unused_gold(fit.resolved)
    if gold is None or said is None or is_vote(fit) or truth.probabilities_at is None:
        return ()
    known = gold[said.place] >= 0
    item = said.place[known]
    if len(item) < LEAST_ITEMS:
        return ()
    stated = truth.held_out if truth.held_out is not None else marginals(truth)
    readings = [stated, *(truth.probabilities_at(z) for z in (-_SIDES, _SIDES))]
    firm = ~np.isin(item, doubtful)
    found = []
    for name, code in zip(said.names, said.code[:, known], strict=True):
        if name in unknown:
            right = code == gold[item]
            each = [_probability(one, item, code) for one in readings]
            named = None if firm.all() else _beside(right[firm], [one[firm] for one in each])
            found.append(Looked(name, _beside(right, each), named, (1 - LEVEL) / len(unknown)))
    return tuple(found)


def _beside(right: np.ndarray, each: Sequence[np.ndarray]) -> Beside:
    """Set what is right beside what each reading expects."""
    number = int(right.sum())
    chances = [tail(1 - one, number) for one in each]
    return Beside(number, len(right), _with_ends([float(one.sum()) for one in each]), _with_ends(chances))


def _with_ends(values: Sequence[float]) -> tuple[float, float, float]:
    return values[0], min(values), max(values)


def _probability(stated: Marginals, item: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Return the stated probability of one label of each of some items."""
    found = np.asarray(stated.unnamed)[item].astype(float)
    for place, (one, label) in enumerate(zip(item.tolist(), code.tolist(), strict=True)):
        rows = slice(*stated.first[one : one + 2])
        own = np.asarray(stated.probability[rows])[np.asarray(stated.code[rows]) == label]
        found[place] = own[0] if len(own) else found[place]
    return np.clip(found, 0.0, 1.0)


def looked_blocks(found: Sequence[Looked], doubt: str = "", *, folded: bool = False) -> list[Any]:
    """Return what gold labels tell of that, and how it was tested; nothing where it was not.

    Parameters
    ----------
    found : of each system.
    doubt : a sentence on what speaks against the probabilities of the fit.
    folded : whether all of it opens on a click.
    """
    import pandas

    if not found:
        return []
    how = (
        "If predictions were made from these annotations, they are right as often as the fit expects of their labels. "
        "p is the probability that as many or more are then right, if the fit is right. The ranges are for how often "
        f"annotators may make the same errors (95 %). {_rule(found)}"
    )
    rows = []
    for one in found:
        for beside, which in ((one.all, "all"), (one.named, "those that an annotator gave")):
            if beside is not None:
                expected, *ends = (f"{value:.1f}" for value in beside.expected)
                chance, *others = (probability(value) for value in beside.chance)
                rows.append((
                    one.name, f"{which}, {beside.items:,}", beside.right, expected, " to ".join(ends), chance,
                    " to ".join(others),
                ))  # fmt: skip
    columns = ["system", "gold labels", "right", "expected", "range of expected", "p", "range of p"]
    frame = pandas.DataFrame(rows, columns=columns)
    frame.attrs["numbers"] = tuple(columns[3:])
    caption = "Gold labels that each system matches, and the number expected if it was made from these annotations."
    title, so = "How gold labels test whether systems looked at the items themselves", [_so(found, doubt)]
    tested = More(title, [*so * folded, how, Table(frame, caption)])
    return [*so * (not folded), tested]


def _rule(found: Sequence[Looked]) -> str:
    """Say when a system is said to have looked, as `Looked.surely` has it, and when that is open."""
    level = f"{found[0].level:.2g}{_shared(found[0].level)}"
    doubt = "What speaks against the fit is said with the result, and changes no rule."
    if all(one.named is None for one in found):
        return f"A system is said to have looked at the items itself if its whole range of p is below {level}. {doubt}"
    return (
        "A system has two rows: a gold label that no annotator gave may be wrong, and the second row leaves these out. "
        "A system is said to have looked at the items itself if its whole range of p is below the limit in both rows. "
        "If that is so in the first row only, it is open; otherwise gold labels do not show it. The limit is "
        f"{level}. {doubt}"
    )


def _shared(level: float) -> str:
    """Say how many systems share the level of one test; empty of one."""
    number = round((1 - LEVEL) / level)
    return f" ({1 - LEVEL:.2g}, shared by {number:,} systems)" if number > 1 else ""


def _so(found: Sequence[Looked], doubt: str) -> str:
    """Say what follows."""
    if_holds, checked = "if the probabilities of the fit are right", f" {doubt}" * bool(doubt)
    surely = [f"“{one.name}”" for one in found if one.surely]
    open_ = [f"“{one.name}”" for one in found if one.told and not one.surely]
    others = [f"“{one.name}”" for one in found if not one.told]
    if not surely and not open_:
        return "Gold labels do not show whether the systems looked at the items themselves."
    words = []
    if surely:
        words.append(
            f"Gold labels suggest that {' and '.join(surely[:_MOST_NAMED])} looked at the items "
            f"{'themselves' if len(surely) > 1 else 'itself'}, {if_holds} and these items are "
            "a random sample. They do not show how independent its errors are."
        )
    if open_:
        words.append(
            f"Whether {joined(open_[:_MOST_NAMED])} looked at the items {'themselves' if len(open_) > 1 else 'itself'} "
            f"is open: gold labels suggest it only {if_holds} and if the gold labels that no annotator gave are "
            "right."
        )
    if others:
        words.append(f"Gold labels do not show it of {joined(others[:_MOST_NAMED])}.")
    return f"{' '.join(words)}{checked}"
