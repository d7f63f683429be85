"""How probably two items of a view are together, as a picture of all pairs beside what experts said of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from consilience import views_figures
from consilience.evaluation.agreement.jackknife import ratio
from consilience.pages.runs_of_views import if_none_missed
from consilience.pages.systems import in_words
from consilience.printing import counted, percent
from consilience.rounding import probability

_MOST_CLUSTERS = 8  # that the first screen draws
_MOST_ITEMS = 200  # More could not be told apart.
_SURE = 0.9  # Less sure pairs are drawn as the model has them.
_SHOWN = "each row and each column is an item; items of one cluster are next to each other"


class _Pairs(NamedTuple):
    """Pairs of the items that are drawn, in their order.

    Parameters
    ----------
    together : shape ``(item, item)``; how probably two are.
    said, times : shape ``(item, item)``; sum of the answers of the experts of the view, 1 together, and their number.
    label : shape ``(item,)``; the cluster of each.
    """

    together: np.ndarray
    said: np.ndarray
    times: np.ndarray
    label: np.ndarray

    @property
    def sure(self) -> bool:
        """Whether the model is so sure of each pair that a figure of its probabilities shows the clusters alone."""
        same = self.label[:, None] == self.label
        return bool(np.where(same, self.together, 1 - self.together).min() > _SURE)


def together_blocks(fit: Any, view: int) -> list[Any]:
    """Return the picture of all pairs of items of a view, or of some, with what it shows in numbers."""
    number = fit.truth.num_units
    shown = np.arange(number)
    if number > _MOST_ITEMS:
        shown = np.sort(np.random.default_rng(0).choice(number, _MOST_ITEMS, replace=False))
    if len(shown) < 2:
        return []
    pairs = _pairs(fit, view, shown)
    cut = f" {len(shown)} random items of {number:,} are shown." if len(shown) < number else ""
    drawn = [] if pairs.sure else [views_figures.pairs_by_model(pairs.together, pairs.label)]
    where = "In both figures" if drawn else "In the figure of pairs"
    words = f"{where} {_SHOWN}.{cut} {_of_pairs(pairs, if_none_missed(fit))} {_of_answers(pairs)}"
    said = ratio(pairs.said, pairs.times)
    np.fill_diagonal(said, 1.0)
    return [words.strip(), [*drawn, views_figures.pairs_by_experts(said, pairs.label)]]


def shares_together(fit: Any, view: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return how often experts of a view say together of two items of each cluster, and last of different clusters.

    With the number of these answers. None of a single cluster, or of more than a figure shows; not a number where
    nobody was asked.
    """
    data, label = fit.data, fit.truth.consensus(view)
    known, code = np.unique(label, return_inverse=True)
    if not 1 < len(known) <= _MOST_CLUSTERS:
        return None
    answer = data.scale[np.asarray(data.together)]
    own = (fit.truth.view_probability.argmax(axis=1) == view)[np.asarray(data.expert)] & np.isfinite(answer)
    one, other = (code[np.asarray(ends)[own]] for ends in (data.item_a, data.item_b))
    where = np.where(one == other, one, len(known))
    said, times = (np.bincount(where, weights, len(known) + 1) for weights in (answer[own], None))
    return ratio(said, times), times


def _pairs(fit: Any, view: int, shown: np.ndarray) -> _Pairs:
    truth, data = fit.truth, fit.data
    label, sure = truth.consensus(view)[shown], truth.cluster_probability[shown, view].max(axis=1)
    shown = shown[np.lexsort([-sure, label])]
    one, other = np.triu_indices(len(shown), 1)
    together = np.ones((len(shown), len(shown)))
    together[one, other] = together[other, one] = truth.pair_probability(shown[one], shown[other])[:, view]
    place = np.full(truth.num_units, -1)
    place[shown] = np.arange(len(shown))
    own = truth.view_probability.argmax(axis=1) == view
    a, b = place[np.asarray(data.item_a)], place[np.asarray(data.item_b)]
    answer = data.scale[np.asarray(data.together)]
    kept = own[np.asarray(data.expert)] & (a >= 0) & (b >= 0) & np.isfinite(answer)
    a, b = np.minimum(a, b)[kept], np.maximum(a, b)[kept]
    said, times = np.zeros(together.shape), np.zeros(together.shape)
    np.add.at(said, (a, b), answer[kept])
    np.add.at(times, (a, b), 1)
    return _Pairs(together, said + said.T, times + times.T, np.sort(label))


def _of_pairs(pairs: _Pairs, if_: str) -> str:
    """Say how probably pairs are together within clusters and between them, and on which condition."""
    upper = np.triu(np.ones(pairs.together.shape, bool), 1)
    same = pairs.label[:, None] == pairs.label
    found = [(words, probability(float(pairs.together[upper & which].mean()), 2)) for which, words in (
        (same, "two items of one cluster"), (~same, "two items of different clusters"),
    ) if (upper & which).any()]  # fmt: skip
    said = " and for ".join(f"{words} {in_words(value)}" for words, value in found)
    return f"The average probability of being together is for {said}{if_}." if said else ""


def _of_answers(pairs: _Pairs) -> str:
    """Say how often experts agree with the clusters."""
    same, parts = pairs.label[:, None] == pairs.label, []
    for which, words in ((same, "of one cluster"), (~same, "of different clusters")):
        said, times = (np.triu(one * which, 1).sum() for one in (pairs.said, pairs.times))
        if times:
            parts.append(f"{percent(said / times)} of {counted(int(times), 'answers')} about items {words}")
    return f"Experts say “together” in {' and in '.join(parts)}." if parts else ""
