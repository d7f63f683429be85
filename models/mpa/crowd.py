r"""How often a crowd with given profiles agrees with itself, and how it would annotate again.

In the model an annotator decides on each candidate of an item by itself: yes to the true candidate t, of class h, with
probability :math:`\alpha_{jh}`, and to any other with :math:`1 - \beta_{jh}`. An annotation names exactly one, and
annotator j is taken to choose in these proportions,

.. math::

    P_j(m \mid t) \propto \begin{cases} \alpha_{jh} & m = t, \\ 1 - \beta_{jh} & m \ne t, \end{cases}

h being the class of m. The profiles, learnt from annotations of which each names one candidate, are how often that
happens, and these proportions keep it so: an annotator of :math:`\alpha = \beta = 0.7` chooses the right one of two
candidates in 7 of 10 cases. To condition the independent decisions on exactly one yes would put odds in the place of
probabilities, and count every no twice: it makes 84 % of those 70 %, and an agreement of 70 % of one of 50 % in a
simulated crowd.

It depends on the item by the number of its candidates of each class: items with the same numbers are alike, and few
numbers occur. A *kind* is such a set of numbers with the class of the true candidate.

Two different annotators, taken in proportion to :math:`s_j`, their parts of all annotations, give an item the same
label with probability

.. math:: \frac{\sum_m \left[ (\sum_j s_j P_j(m \mid t))^2 - \sum_j s_j^2 P_j(m \mid t)^2 \right]}{1 - \sum_j s_j^2}.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Bool, Float, Int, Key
from consilience.errors import TooLarge
from consilience.models.mpa.candidates import Candidates, labelled
from consilience.models.mpa.gibbs import draw_betas
from consilience.models.rows import ranges
from consilience.models.special import finite_log
from consilience.models.truth import Crowd, Entries
from consilience.models.truth.classes import Rows

# Draws of the parameters over which choices are averaged, at most.
_MOST_DRAWS = 200

# Gains of certainty that are sums of rounding errors; they would order the items that nothing could change.
_ROUNDING = 1e-6

# Numbers of one draw that are held at a time: choices of all annotators in items of all kinds.
_MOST_NUMBERS = 1 << 26


class Kinds(NamedTuple):
    """What there is to choose from in items of each kind.

    Parameters
    ----------
    of_pair : shape ``(pair,)``; the kind of an item of which this candidate is the true one.
    true_class : shape ``(kind,)``; position of the class of the true candidate.
    kind : shape ``(choice,)``, increasing.
    class_ : shape ``(choice,)``; position of the class of what is chosen.
    is_true : shape ``(choice,)``; whether the true candidate is what is chosen.
    number : shape ``(choice,)``; of such candidates.
    """

    of_pair: Int[Array, " pair"]
    true_class: Int[Array, " kind"]
    kind: Int[Array, " choice"]
    class_: Int[Array, " choice"]
    is_true: Bool[Array, " choice"]
    number: Int[Array, " choice"]


def kinds_of(found: Candidates) -> Kinds:
    """Return the kinds of items."""
    tables = found.tables
    group_of_pair, size = np.asarray(tables.pair_group), np.asarray(tables.group_size, np.int64)
    first_pair = np.searchsorted(group_of_pair, np.arange(len(size)))
    item, class_ = found.item[first_pair], tables.pair_class[first_pair]
    first = np.searchsorted(item, np.arange(found.num_items + 1))
    numbers = _same_numbers(class_ * (size.max(initial=0) + 1) + size, first)
    _, shown, of_item = np.unique(numbers, return_index=True, return_inverse=True)
    # The groups of one item stand for those of all items of its kind.
    lengths = np.diff(first)[shown]
    begin = np.cumsum(lengths) - lengths
    group, place = first[shown].repeat(lengths) + ranges(lengths), ranges(lengths)
    of_pair = begin[of_item[found.item]] + (group_of_pair - first[found.item])
    # Every group of an item, with each of its groups as that of the true candidate.
    squared = lengths.repeat(lengths)
    true, chosen = np.arange(len(group)).repeat(squared), (np.arange(len(group)) - place).repeat(squared)
    chosen = chosen + ranges(squared)
    number = np.concatenate([np.ones(len(group), np.int64), size[group[chosen]] - (chosen == true)])
    kind, is_true = np.concatenate([np.arange(len(group)), true]), np.arange(len(number)) < len(group)
    of_choice = class_[group[np.concatenate([np.arange(len(group)), chosen])]]
    order = np.lexsort((is_true, of_choice, kind))
    order = order[number[order] > 0]
    return Kinds(of_pair, class_[group], kind[order], of_choice[order], is_true[order], number[order])


def _same_numbers(token: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return a code for each item, the same for items that have the same tokens; the tokens of an item are in order."""
    length = np.diff(first)
    code = np.unique(length, return_inverse=True)[1].astype(np.int64)
    for place in range(length.max(initial=0)):
        has = np.flatnonzero(length > place)
        both = np.stack([code[has], token[first[has] + place]])
        code[has] = len(length) * (place + 1) + np.unique(both, axis=1, return_inverse=True)[1]
    return code


def several_annotators(found: Candidates) -> bool:
    """Return whether there are two annotators who could agree."""
    return bool(np.count_nonzero(_shares(found)) > 1)


def _shares(found: Candidates) -> Float[np.ndarray, " annotator"]:
    tables = found.tables
    amount = np.bincount(tables.chosen_cell // len(tables.classes), tables.chosen_weight, len(tables.yes))
    return amount / max(amount.sum(), np.finfo(float).tiny)


class Profiles(NamedTuple):
    """Profiles of annotators, draw by draw: those of stored draws, or parameters from which they are drawn.

    Parameters
    ----------
    sensitivity, specificity : shape ``(draw, annotator, class)``, or parameters ``(annotator, class, 2)``.
    key : of the draws from parameters; None where the draws are stored.
    """

    sensitivity: Array
    specificity: Array
    key: Key | None

    def log_yes(self, draw: Any) -> tuple[Float[Array, "annotator class"], Float[Array, "annotator class"]]:
        """Return the log probability of a yes to a candidate that is true, and to one that is false."""
        if self.key is None:
            return finite_log(self.sensitivity[draw]), finite_log(1 - self.specificity[draw])
        drawn = draw_betas(jax.random.fold_in(self.key, draw), (self.sensitivity[:0], *self[:2]))
        return drawn[1].one, drawn[2].rest


class CandidateCrowd(Crowd):
    """How the annotators choose among the candidates of each item; the agreement is by kind in the place of by class.

    Parameters
    ----------
    profiles : of the annotators, in the classes that occur.
    num_draws : how many draws there are.
    found, data : candidates, and the data.
    """

    def __init__(self, profiles: Profiles, num_draws: int, found: Candidates, data: Any) -> None:
        self.profiles, self.num_draws, self.found = profiles, num_draws, found
        annotate = functools.partial(_annotate, profiles, found, data)
        if several_annotators(found):
            super().__init__(agreement=self._by_kind, annotate=annotate)
        else:
            super().__init__()

    @functools.cached_property
    def kinds(self) -> Kinds:
        """What there is to choose from in each item.

        Raises
        ------
        UnsupportedRequest : there are too many kinds of items, for what is asked of them.
        """
        return kinds_of(self.found)

    def _by_kind(self) -> Float[np.ndarray, "draw kind"]:
        kinds = _checked(self.kinds, self.found)
        return np.asarray(_agreement(self.profiles, kinds, _shares(self.found), self.num_draws), float)

    def column(self, item: np.ndarray, label: np.ndarray) -> np.ndarray:
        """Return the kind of each item whose true candidate has the label."""
        pairs = self.found
        known = pairs.item.astype(np.int64) * pairs.num_labels + pairs.label
        pair = np.searchsorted(known, item.astype(np.int64) * pairs.num_labels + label)
        return np.asarray(self.kinds.of_pair)[pair]

    def gain(self, truth: Any) -> Float[np.ndarray, " item"]:
        """Return how much more certain each item is expected to be; see `Crowd.gain`.

        The new label is one of the candidates of the item.
        """
        pairs = self.found
        choice = mean_choice(self.profiles, min(self.num_draws, _MOST_DRAWS), pairs, self.kinds)
        entries = Entries.of(pairs.item, pairs.label, pairs.num_items, pairs.num_labels)
        of_pair = truth.probability
        gain = np.empty(truth.num_units)
        for items, slots, *_ in entries.blocks(int(np.diff(entries.first).max())):
            size = np.diff(entries.first)[items]
            first = np.cumsum(size) - size
            # Each candidate as the label that comes in, with each candidate of its item as the true one.
            squared = size.repeat(size)
            given = np.arange(size.sum()).repeat(squared)
            true = first.repeat(size**2) + ranges(squared)
            probability = of_pair[slots]
            joint = probability[true] * choice[self._choice(slots, given, true)]
            best = np.maximum.reduceat(joint, np.cumsum(squared) - squared)
            gain[items] = np.add.reduceat(best, first) - np.maximum.reduceat(probability, first)
        return np.where(gain > _ROUNDING, gain, 0.0)

    def _choice(self, slots: slice, given: np.ndarray, true: np.ndarray) -> np.ndarray:
        """Return which choice it is to name a candidate where another one, or the same, is true."""
        kinds, class_ = self.kinds, np.asarray(self.found.tables.pair_class)[slots]
        size = 1 + int(class_.max(initial=0)) + int(np.max(kinds.class_, initial=0))
        known = 2 * (np.asarray(kinds.kind, np.int64) * size + kinds.class_) + kinds.is_true
        kind = np.asarray(kinds.of_pair, np.int64)[slots][true]
        return np.searchsorted(known, 2 * (kind * size + class_[given]) + (given == true))


def mean_choice(profiles: Profiles, num_draws: int, found: Candidates, kinds: Kinds) -> Float[np.ndarray, " choice"]:
    """Return how probably an annotator, taken by how much they annotate, makes each choice; averaged over draws."""
    return np.asarray(_mean_choice(profiles, _checked(kinds, found), _shares(found), num_draws), float)


def _checked(kinds: Kinds, found: Candidates) -> Kinds:
    num_annotators = len(found.tables.yes)
    if len(kinds.kind) * num_annotators > _MOST_NUMBERS:
        raise TooLarge(
            f"{len(kinds.kind):,} choices between candidates, by {num_annotators:,} annotators, are too many to say "
            "how annotators would choose; use a model of a closed list of labels, such as dawid-skene"
        )
    return kinds


@functools.partial(jax.jit, static_argnames="num_draws")
def _agreement(
    profiles: Profiles, kinds: Kinds, share: Float[Array, " annotator"], num_draws: int
) -> Float[Array, "draw kind"]:
    share = share.astype(profiles.sensitivity.dtype)

    def of_draw(draw: Array) -> Array:
        return agreement_by_kind(choices(*profiles.log_yes(draw), kinds), kinds, share)

    return jax.lax.map(of_draw, jnp.arange(num_draws))


@functools.partial(jax.jit, static_argnames="num_draws")
def _mean_choice(
    profiles: Profiles, kinds: Kinds, share: Float[Array, " annotator"], num_draws: int
) -> Float[Array, " choice"]:
    share = share.astype(profiles.sensitivity.dtype)

    def add(draw: Any, total: Array) -> Array:
        return total + choices(*profiles.log_yes(draw), kinds) @ share

    return jax.lax.fori_loop(0, num_draws, add, jnp.zeros(len(kinds.kind), share.dtype)) / num_draws


def choices(
    if_true: Float[Array, "annotator class"], if_false: Float[Array, "annotator class"], kinds: Kinds
) -> Float[Array, "choice annotator"]:
    """Return how probably each annotator makes each choice, which is one of ``number``; see above."""
    log_yes = jnp.where(kinds.is_true[:, None], if_true.T[kinds.class_], if_false.T[kinds.class_])
    num_kinds = len(kinds.true_class)
    highest = jax.ops.segment_max(log_yes, kinds.kind, num_kinds)
    weight = jnp.exp(log_yes - highest[kinds.kind])
    return weight / jax.ops.segment_sum(kinds.number[:, None] * weight, kinds.kind, num_kinds)[kinds.kind]


def agreement_by_kind(
    chosen: Float[Array, "choice annotator"], kinds: Kinds, share: Float[Array, " annotator"]
) -> Float[Array, " kind"]:
    """Return how often two different annotators give an item of each kind the same label; see above."""
    alike = (chosen @ share) ** 2 - (chosen**2) @ (share**2)
    return jax.ops.segment_sum(kinds.number * alike, kinds.kind, len(kinds.true_class)) / (1 - (share**2).sum())


_log_yes = jax.jit(Profiles.log_yes)


def _annotate(
    profiles: Profiles,
    found: Candidates,
    data: Any,
    random: np.random.Generator,
    draw: int,
    label: Int[np.ndarray, " item"],
    rows: Rows,
) -> Int[np.ndarray, " annotation"]:
    """Draw annotations of the same items by the same annotators: the largest of logarithms with Gumbel variables."""
    if_true, if_false = (np.asarray(part, float) for part in _log_yes(profiles, draw))
    item = np.asarray(labelled(data).item, np.int64)[rows]
    annotator = np.asarray(data.annotator, np.int64)[rows]
    first = np.searchsorted(found.item, np.arange(found.num_items + 1))
    number = np.diff(first)[item]
    row = np.arange(len(item)).repeat(number)
    pair = first[item].repeat(number) + ranges(number)
    cell = annotator[row], np.asarray(found.tables.pair_class)[pair]
    log_yes = np.where(found.label[pair] == label[item][row], if_true[cell], if_false[cell])
    race = log_yes + random.gumbel(size=len(log_yes))
    winner = race == np.maximum.reduceat(race, np.cumsum(number) - number)[row]
    return found.label[pair[winner]]
