r"""The agreement gate: whether annotators agree about the items at all, before a model believes them.

With U and V of `gate_sums`, :math:`z = U / \sqrt V` over all pairs of annotators. Where everybody labels without a look
at the items z has mean zero and variance one; public crowds have 28 to 238, and below 3 nothing tells signal from
chance. An annotator's own :math:`z_j` sums over her pairs alone. Of three annotators or more z is taken without each
pair, too: two who copy each other look like signal, and only they do.

Gold labels play no part. An annotator of one item, and one who says the same of all items, contribute nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from consilience.arrays import Bool, Float
from consilience.data.annotations import Annotations
from consilience.models.crowd.gate_sums import Sums, by_items, by_pairs, label_rates
from consilience.models.crowd.shares import Shares
from consilience.notes import Level, Note, Remedy

LEAST = 3.0
"""The z below which nothing tells signal from chance: noise has it in at most 17 of 1000 sets."""

BY_CHANCE = "the agreement of ", " with the others is not clearly above chance"
"""What stands before and after the names of annotators who may agree with others by chance: pages look for it."""

ERRORS = "errors of annotators"
"""What remarks are about that follow from one cause: what a model takes annotators' errors to be."""

BLIND = 2.0
"""The z of an annotator below which agreement with the others is not clearly above chance."""

_OPPOSED = -3.0
_NAMED = 5  # annotators in one sentence

# More annotators are not looked at pair by pair: one pair of 1275 cannot carry the signal unseen.
_MOST_FOR_PAIRS = 50
# Above, the square of the labels is more work than the pairs of annotators that meet.
_MOST_LABELS = 64
# Of V, in units of what it is of an annotator with herself: what is smaller is a rounding error.
_ROUNDING = 1e-12
# How many times as probable as any label that was given another one has to be: equal ones differ by rounding.
_MORE = 1.001

# Items with several labels that have to be unanimous before that is remarkable.
_FEWEST_UNANIMOUS = 20
# Annotators, and how many of them to an item, that may be items in truth.
_MANY, _OUTNUMBERED = 50, 3


@dataclass(frozen=True, eq=False)
class Signal:
    """What tells signal from chance in the annotations.

    Parameters
    ----------
    z : agreement beyond chance in its standard deviations; NaN where it is not defined.
    annotator_z : shape ``(annotator,)``; of each annotator with all others, NaN where it is not defined.
    z_without_pair, pair : the smallest z without one pair of annotators, and their codes; NaN and ``None`` unless 3 to
        50 annotators can be compared with others.
    reason : why z is not defined; empty where it is.
    """

    z: float
    annotator_z: Float[np.ndarray, " annotator"]
    z_without_pair: float = np.nan
    pair: tuple[int, int] | None = None
    reason: str = ""

    @property
    def fires(self) -> bool:
        """Whether nothing tells signal from chance."""
        return not self.z >= LEAST

    @property
    def rests_on_pair(self) -> bool:
        """Whether there is signal, and none without one pair of annotators."""
        return not self.fires and self.pair is not None and not self.z_without_pair >= LEAST

    @property
    def blind(self) -> Bool[np.ndarray, " annotator"]:
        """Who does not clearly agree with the others more than chance."""
        return self.annotator_z < BLIND

    @property
    def weak(self) -> bool:
        """Whether either is so: the labels of an item then count as one."""
        return self.fires or self.rests_on_pair


# Data are frozen, and equal to themselves alone.
@functools.lru_cache(maxsize=1)
def signal(data: Annotations) -> Signal:
    """Return what tells signal from chance in the annotations.

    Parameters
    ----------
    data : the annotations; rows of one annotator on one item are averaged by their weights.

    Examples
    --------
    >>> import consilience as cs
    >>> found = signal(cs.load("dawid-skene-1979"))
    >>> round(found.z, 2), found.weak
    (18.38, False)
    """
    shares = Shares.of(data)
    annotator_z, undefined = np.full(data.num_annotators, np.nan), functools.partial(Signal, np.nan)
    kept = _comparable(shares)
    if not kept.any():
        return undefined(annotator_z, reason=_reason(shares))
    some = shares.by(kept)
    few = some.num_annotators <= _MOST_FOR_PAIRS
    sums = (by_pairs if few or some.num_labels > _MOST_LABELS else by_items)(some)
    agreement, variance = sums.agreement, sums.variance
    if agreement.ndim == 2:
        agreement, variance = agreement.sum(axis=1), variance.sum(axis=1)
    defined = variance > _ROUNDING * sums.own
    if not defined.any():
        return undefined(annotator_z, reason=_reason(shares))
    annotator_z[np.flatnonzero(kept)[defined]] = agreement[defined] / np.sqrt(variance[defined])
    total, spread = agreement[defined].sum() / 2, variance[defined].sum() / 2
    z = float(total / np.sqrt(spread))
    if not few or defined.sum() < 3:
        return Signal(z, annotator_z)
    without, pair = _without_pair(sums, total, spread, np.flatnonzero(defined))
    one, other = (int(np.flatnonzero(kept)[code]) for code in pair)
    return Signal(z, annotator_z, without, (one, other))


def _comparable(shares: Shares) -> np.ndarray:
    """Return which annotators vary, and meet another one who does."""
    number, rates = label_rates(shares)
    squares, meets = np.zeros(len(number)), np.zeros(len(number))
    for _, part in shares.parts():
        squares += np.bincount(part.annotator, part.share**2, len(number))
    trace = np.divide(squares, number, out=np.zeros(len(number)), where=number > 0) - rates.power(2).sum(axis=1)
    varies = trace > _ROUNDING
    for _, part in shares.parts():
        cells = part.first
        cells = cells[varies[part.annotator[cells]]]
        met = np.bincount(part.item[cells], minlength=part.num_items)[part.item[cells]] > 1
        meets += np.bincount(part.annotator[cells], met, len(number))
    return meets > 0


def _without_pair(sums: Sums, total: float, spread: float, some: np.ndarray) -> tuple[float, tuple[int, int]]:
    """Return the smallest z without a pair of some annotators, and the pair."""
    agreement, variance = sums.agreement.toarray(), sums.variance.toarray()
    one, other = (some[side] for side in np.triu_indices(len(some), 1))
    # Three annotators who can be compared have two pairs at least, so that something is left.
    z = (total - agreement[one, other]) / np.sqrt(spread - variance[one, other])
    least = int(np.argmin(z))
    return float(z[least]), (int(one[least]), int(other[least]))


def _reason(shares: Shares) -> str:
    """Return why nobody can be compared with anybody."""
    cells = shares.first
    if not len(cells):
        return "nobody knows who gave which label"
    if len(np.unique(shares.annotator)) == 1:
        return "there is one annotator"
    if np.bincount(shares.item[cells]).max() == 1:
        return "no item has labels of two annotators"
    if len(np.unique(shares.label)) == 1:
        return "all labels are the same"
    return "no two annotators of the same items vary in their labels"


def unanimous_notes(data: Annotations) -> Iterator[Note]:
    """Yield what there is to say where all labels of every item are the same."""
    unanimous = _unanimous(data)
    several = int(unanimous.sum())
    if several >= _FEWEST_UNANIMOUS and several == _of_several(data).sum():
        yield Note(
            Level.warning,
            f"all labels of each of {several:,} items are the same: copies of one source would look like this, and are "
            "right no more often than that source; only gold labels can tell",
        )


def overruled_notes(
    data: Annotations, probability: Float[np.ndarray, "item class"], is_known: Bool[np.ndarray, " item"] | bool
) -> Iterator[Note]:
    """Yield what there is to say where a label that no annotator of an item gave is its most probable one.

    Parameters
    ----------
    data : the annotations.
    probability : of the labels of their items, as if annotators erred independently.
    is_known : whether the fit took the label of an item as known.
    """
    given = np.zeros(data.num_items)
    item = np.asarray(data.item)
    np.maximum.at(given, item, probability[item, np.asarray(data.label)])
    several = _of_several(data)
    overruled = np.flatnonzero(several & ~np.asarray(is_known) & (probability.max(axis=1) > given * _MORE))
    if len(overruled):
        names = np.arange(data.num_items) if data.items is None else data.items
        first = ", ".join(str(names[item]) for item in overruled[:3])
        unanimous = int(_unanimous(data)[overruled].sum())
        agreed = f", although all annotators of {unanimous:,} of these agree" if unanimous else ""
        yield Note(
            Level.warning,
            f"nobody gave the label that the model takes for the most probable, of {len(overruled):,} of "
            f"{int(several.sum()):,} items with several labels ({first}{', …' if len(overruled) > 3 else ''}): the "
            f"errors that it takes annotators to make outweigh what they said{agreed}; look at these items",
            about=ERRORS,
        )


def _of_several(data: Annotations) -> Bool[np.ndarray, " item"]:
    """Return which items have labels of two or more."""
    return np.bincount(np.asarray(data.item), np.asarray(data.weight), data.num_items) >= 2


def _unanimous(data: Annotations) -> Bool[np.ndarray, " item"]:
    """Return which items have several labels that are all the same."""
    item, label = np.asarray(data.item), np.asarray(data.label)
    last = np.zeros(data.num_items, np.int64)
    last[item] = label
    differs = np.bincount(item[label != last[item]], minlength=data.num_items) > 0
    return _of_several(data) & ~differs


def swapped_notes(data: Annotations) -> Iterator[Note]:
    """Yield what there is to say where annotators far outnumber items, as they do where the columns are swapped."""
    if data.num_annotators >= _MANY and data.num_annotators > _OUTNUMBERED * data.num_items:
        many = f"{data.num_annotators:,} annotators judge {data.num_items:,} items"
        text = f"{many}; if the two columns are the other way round pass {{columns}}"
        yield Note(Level.note, text, (Remedy("columns"),))


def signal_notes(signal: Signal, names: Sequence[object] | np.ndarray | None) -> Iterator[Note]:
    """Yield what the signal says to a reader.

    Parameters
    ----------
    signal : of the annotations.
    names : the annotators' ids, in code order; None names them by their codes.
    """
    names = np.arange(len(signal.annotator_z)) if names is None else names
    guesses = (
        "the labels and accuracies below are guesses; ask for more annotations an item, or give gold labels for "
        "some items"
    )
    if signal.reason:
        known = "nothing tells whether the annotators agree more than chance would have them"
        yield Note(Level.error, f"{known} ({signal.reason}): {guesses}")
    elif signal.fires:
        chance = f"z = {signal.z:.1f}; below {LEAST:.0f} nothing tells signal from chance"
        how = "less than" if signal.z < _OPPOSED else "no more than"
        yield Note(Level.error, f"the annotators agree {how} chance would have them ({chance}): {guesses}")
    elif signal.rests_on_pair and signal.pair is not None:
        one, other = (names[code] for code in signal.pair)
        text = (
            f"the signal rests on {one} and {other} alone: they agree with each other, and nobody else agrees with "
            "anybody; either both are right or one copies the other; only gold labels can tell"
        )
        yield Note(Level.error, text)
    if len(names) == 2 or np.isfinite(signal.annotator_z).sum() == 2:
        yield Note(Level.warning, "two annotators cannot be checked by a third")
    z = signal.annotator_z
    chosen = signal.blind & (z >= _OPPOSED), z < _OPPOSED
    blind, opposed = ([str(names[code]) for code in np.flatnonzero(one).tolist()] for one in chosen)
    if blind:
        low, high = (f"{end:.1f}" for end in (z[chosen[0]].min(), z[chosen[0]].max()))
        chance = f"{low if low == high else f'{low} to {high}'} standard errors above it, less than {BLIND:.0f}"
        yield Note(Level.note, f"{_listed(blind).join(BY_CHANCE)} ({chance})")
    if opposed:
        agree = "agrees" if len(opposed) == 1 else "agree"
        text = f"{_listed(opposed)} {agree} less than chance would: are the labels used in another order?"
        yield Note(Level.warning, text)


def _listed(names: Sequence[str]) -> str:
    """Name the first annotators, and count the others."""
    more = f" and {len(names) - _NAMED:,} more annotators" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
