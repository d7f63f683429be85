r"""Whether a model of rankings expects the agreement of their first choices: a posterior predictive check.

Two rankings of an item agree by :math:`\sum_k s_k s'_k`, where s shares one among the classes of the first block: two
single first choices agree or not. The mean over pairs of rankings of an item, and over items, is set beside the same
of rankings that are drawn anew: for each draw of the plausibilities, first blocks of the sizes found, whose classes are
drawn without replacement, each with a probability proportional to its plausibility (Plackett-Luce). Plausibilities come
from the same rankings, so that the check is rather too careful.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from consilience.data.rankings import Rankings
from consilience.models.intervals import LEVEL, ends

_LEAST, _MOST = 40, 200  # data sets: enough to tell a p-value of .05, and more than enough
_MOST_VALUES = 1 << 25  # of rankings and classes, in all data sets together
_TIE = 1e-9


class FirstChoices(NamedTuple):
    """How often two rankings of an item have the same first choice, found and expected.

    Parameters
    ----------
    observed : the mean over items.
    drawn : the same of each data set that was drawn.
    items : with two rankings or more.
    """

    observed: float
    drawn: np.ndarray
    items: int

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of 95 % of what was drawn."""
        low, high = np.quantile(self.drawn, ends())
        return float(low), float(high)

    @property
    def p(self) -> float:
        """Twice the smaller tail, at or beyond what was found, which counts as drawn: never 0."""
        less, more = ((side + _TIE >= 0).sum() for side in (self.observed - self.drawn, self.drawn - self.observed))
        return float(min(2 * (min(less, more) + 1) / (len(self.drawn) + 1), 1.0))

    @property
    def unexpected(self) -> bool:
        """Whether the model does not expect what was found."""
        return self.p < 1 - LEVEL


def first_choices(data: Rankings, truth: Any, seed: int = 0) -> FirstChoices | None:
    """Check how often two rankings of an item have the same first choice; None where none has two, or all are many.

    Parameters
    ----------
    data : the rankings.
    truth : plausibilities that a model learned from them, with draws.
    seed : of the rankings that are drawn.
    """
    first = np.asarray(data.block) == 0
    report, class_ = np.asarray(data.report)[first], np.asarray(data.entry_class)[np.asarray(data.entry)[first]]
    size = np.bincount(report, minlength=data.num_reports)
    item = np.asarray(data.report_item)
    ranked = np.bincount(item[size > 0], minlength=data.num_items)
    several = np.flatnonzero(ranked > 1)
    number = min(_MOST_VALUES // max(int(ranked[several].sum()) * data.num_classes, 1), _MOST, truth.num_draws)
    if not len(several) or number < _LEAST:
        return None
    random, places = np.random.default_rng(seed), np.linspace(0, truth.num_draws - 1, number).round().astype(int)
    rows = np.split(np.arange(len(item)), np.searchsorted(item, np.arange(1, data.num_items)))
    observed, drawn = [], []
    for one in several.tolist():
        own = rows[one][size[rows[one]] > 0]
        codes, shares = truth.drawn_shares([one])[0]
        share = _of_all_classes(codes, shares[places], data.num_classes)
        said = np.zeros((len(own), data.num_classes))
        here = np.isin(report, own)
        said[np.searchsorted(own, report[here]), class_[here]] = 1.0
        observed.append(_agreement(said[None])[0])
        drawn.append(_agreement(_drawn_first(share, size[own], random)))
    return FirstChoices(float(np.mean(observed)), np.mean(drawn, axis=0), len(several))


def _of_all_classes(codes: np.ndarray, shares: np.ndarray, number: int) -> np.ndarray:
    """Return plausibilities ``(draw, class)``: the classes without a code have the rest in equal parts."""
    unnamed = np.setdiff1d(np.arange(number), codes)
    share = np.zeros((len(shares), number))
    share[:, codes] = shares[:, : len(codes)]
    rest = np.clip(1 - share.sum(axis=1, keepdims=True), 0.0, None)
    share[:, unnamed] = rest / max(len(unnamed), 1)
    return share


def _drawn_first(share: np.ndarray, size: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Draw the classes of first blocks of some sizes, ``(draw, ranking, class)``: those with the largest Gumbel."""
    with np.errstate(divide="ignore"):
        key = np.log(share)[:, None] + random.gumbel(size=(len(share), len(size), share.shape[1]))
    rank = np.argsort(np.argsort(-key, axis=2), axis=2)
    return (rank < size[:, None]).astype(float)


def _agreement(said: np.ndarray) -> np.ndarray:
    """Return the mean agreement of pairs of rankings, by draw; ``said`` has 1 where a class is a first choice."""
    share = said / said.sum(axis=2, keepdims=True)
    both = np.square(share.sum(axis=1)).sum(axis=1) - np.square(share).sum(axis=(1, 2))
    number = share.shape[1]
    return both / (number * (number - 1))
