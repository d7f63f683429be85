"""How much of the spread of ratings is items, offsets of annotators, and the rest; and how many ratings an item needs.

A rating is the sum of a mean, an effect of its item, one of its annotator, and a rest, each drawn independently. The
variances are those of Henderson's method 3: sums of squares of each effect given the other one are set equal to what is
expected of them. Of complete data that is the two-way analysis of variance, and the share of items ICC(2,1) of Shrout
and Fleiss; of others no estimate needs the ratings to be complete.

Henderson (1953), Estimation of variance and covariance components, Biometrics 9; Shrout & Fleiss (1979), Intraclass
correlations: uses in assessing rater reliability, Psychological Bulletin 86; McGraw & Wong (1996), Forming inferences
about some intraclass correlation coefficients, Psychological Methods 1; Weerahandi (1993), Generalized confidence
intervals, JASA 88.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from consilience.arrays import Float
from consilience.data.offsets import annotator_offsets
from consilience.data.ratings import Ratings
from consilience.models.intervals import ends

_DRAWS = 10_000


class Components(NamedTuple):
    """Variances of the parts of a rating: of items, of annotators, and of the rest; none is below 0.

    Parameters
    ----------
    variance : shape ``(3,)``.
    drawn : shape ``(draw, 3)``; draws of them, whose quantiles are ends of generalized confidence intervals.
    ratings : how many an item has on average.
    """

    variance: Float[np.ndarray, " part"]
    drawn: Float[np.ndarray, "draw part"]
    ratings: float

    @property
    def shares(self) -> Float[np.ndarray, "part 3"]:
        """Of each part its share in the sum, and the ends of the interval of 95 % of that."""
        total = self.drawn.sum(axis=1, keepdims=True)
        low, high = np.quantile(self.drawn / total, ends(), axis=0)
        return np.stack([self.variance / self.variance.sum(), low, high], axis=1)

    def single(self, *, offsets: bool) -> tuple[float, float, float]:
        """Return the reliability of one rating, the intraclass correlation, and the ends of its interval of 95 %.

        Parameters
        ----------
        offsets : whether those of annotators count as errors, ICC(2,1); or are known and taken off, ICC(3,1).
        """
        value, *drawn = (_of_items(one, offsets) for one in (self.variance, self.drawn))
        low, high = np.quantile(drawn[0], ends())
        return float(value), float(low), float(high)


def _of_items(variance: np.ndarray, offsets: bool) -> np.ndarray:
    """Return the share of the items in what errors and they add up to."""
    errors = variance[..., 2] + offsets * variance[..., 1]
    return np.asarray(variance[..., 0] / (variance[..., 0] + errors))


def reliability_of_mean(single: float, ratings: float) -> float:
    """Return the reliability of the mean of several ratings, by that of one (Spearman 1910, Brown 1910).

    Examples
    --------
    >>> reliability_of_mean(0.5, 4)
    0.8
    """
    return ratings * single / (1 + (ratings - 1) * single)


def ratings_needed(single: float, reliability: float) -> float:
    """Return how many ratings make a mean so reliable, a whole number; infinite where none does.

    Examples
    --------
    >>> ratings_needed(0.5, 0.8), ratings_needed(0.0, 0.8)
    (4.0, inf)
    """
    if single <= 0:
        return math.inf
    needed = reliability / (1 - reliability) * (1 - single) / single
    return float(max(math.ceil(round(needed, 9)), 1))


def variance_components(data: Ratings) -> Components | None:
    """Return the variances of the parts of ratings, before offsets were taken off; None where they cannot be told.

    They can be where items and annotators differ in more than one way, and ratings are left to tell errors by.
    """
    item, who, rating = np.asarray(data.item), np.asarray(data.annotator), np.asarray(data.rating, float)
    rating = rating if data.offset is None else rating + np.asarray(data.offset, float)[who]
    size = data.num_items, data.num_annotators
    pairs, times = np.unique(item.astype(np.int64) * size[1] + who, return_counts=True)
    of_pair = pairs // size[1], pairs % size[1]
    items, annotators = (len(np.unique(one)) for one in of_pair)
    parts = _parts(*of_pair, size)
    free = np.array([items - parts, annotators - parts, len(rating) - items - annotators + parts])
    if (free < 1).any():
        return None
    both = _squares(item, rating - annotator_offsets(item, who, rating, size)[who])
    squares = np.array([_squares(who, rating) - both, _squares(item, rating) - both, both])
    if not both > 0:
        return None
    # How many times the variance of a part its sum of squares is expected to hold.
    given = (who, of_pair[1]), (item, of_pair[0])
    weight = [len(rating) - (times**2 / np.bincount(every)[code]).sum() for every, code in given]
    chi = np.random.default_rng(0).chisquare(free, (_DRAWS, 3))
    found = (_solved(squares / one, free, weight) for one in (free, chi))
    return Components(next(found), next(found), len(rating) / items)


def _solved(mean: np.ndarray, free: np.ndarray, weight: list[float]) -> np.ndarray:
    """Return the variances whose mean squares these are expected to be, by the last one, which is the rest."""
    rest = mean[..., 2]
    found = [np.maximum(mean[..., one] - rest, 0) * free[one] / weight[one] for one in range(2)]
    return np.stack([*found, rest], axis=-1)


def _squares(code: np.ndarray, values: np.ndarray) -> float:
    """Return the sum of the squares about the mean of each code."""
    number = np.maximum(np.bincount(code), 1)
    return float(np.square(values - (np.bincount(code, values) / number)[code]).sum())


def _parts(item: np.ndarray, annotator: np.ndarray, size: tuple[int, int]) -> int:
    """Return into how many parts items and annotators fall that nobody's ratings connect."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(item)), (item, size[0] + annotator)), shape=(sum(size),) * 2)
    alone = sum(size) - len(np.unique(item)) - len(np.unique(annotator))  # without any rating
    return int(connected_components(graph, directed=False)[0]) - alone
