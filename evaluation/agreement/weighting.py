r"""How much an item counts, by its number of annotations: the paper's six schemes and one that knows heterogeneity.

With n annotations drawn from a class distribution p, :math:`N = n(n-1)/2`, :math:`s_j = \sum_c p_c^j`, the variance of
an item's agreement is

.. math:: \operatorname{Var} \hat P(n) = \frac{2 (s_2 - s_2^2) + 4 (n - 2)(s_3 - s_2^2)}{n (n - 1)}.

It follows from the covariance of two pairs of annotations: :math:`s_2 - s_2^2` if they are the same,
:math:`s_3 - s_2^2` if they share one annotation, 0 otherwise. Equations 20 and 22 of the paper are wrong as printed
(the first in its prefactor and its power of two, the second lacks 1/N²); what they abbreviate gives the closed form
above.

Two consequences the paper leaves open. With equally likely classes :math:`s_3 = s_2^2`, so that `inv_var` is `edge`
for every number of classes. And `inv_var_class` is one number,

.. math:: k(n) \propto \frac{n (n - 1)}{1 + \rho (n - 2)}, \qquad \rho = \frac{2 (s_3 - s_2^2)}{s_2 - s_2^2} \in [0, 1],

of which `edge` (ρ = 0), `annotations_m1` (ρ = 1/2) and `annotations` (ρ = 1) are members.

References
----------
J. Nørregaard and L. Derczynski. Sparse probability of agreement. arXiv:2208.06161 (2022).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from consilience.arrays import Float
from consilience.errors import UnknownName, UnsupportedRequest
from consilience.evaluation.agreement.counts import LabelCounts, Patterns

PAPER_SCHEMES = ("flat", "annotations", "annotations_m1", "edge", "inv_var", "inv_var_class")
SCHEMES = (*PAPER_SCHEMES, "exch")
"""Names of the weighting schemes."""

SCHEME_WORDS = {
    "flat": "all items alike", "annotations": "items by annotations", "annotations_m1": "items by annotations less one",
    "edge": "items by pairs of annotations", "inv_var": "items by inverse variance",
    "inv_var_class": "items by inverse variance, given shares of labels",
    "exch": "items by inverse variance, given how they differ",
}  # fmt: skip
"""What each scheme weights, in words."""

WeightFunction = Callable[[np.ndarray], np.ndarray]
"""``k(n)``: from numbers of annotations to weights, elementwise; zero below two annotations. Only ratios matter."""


class Moments(NamedTuple):
    r"""Moments of items with exchangeable labels, class distribution :math:`p_i`, :math:`\mu = E s_2(p_i)`.

    Parameters
    ----------
    mean : μ.
    same : A₂ = μ(1 - μ), the variance of one pair of annotations.
    shared : A₁ = E s₃(p_i) - μ², the covariance of two pairs that share an annotation.
    disjoint : A₀ = Var s₂(p_i), that of two pairs that do not; zero where items are alike.
    """

    mean: float
    same: float
    shared: float
    disjoint: float


def check_scheme(scheme: str) -> None:
    """Refuse what is no name of weights.

    Raises
    ------
    UnknownName : it is not one of `SCHEMES`.
    """
    if scheme not in SCHEMES:
        raise UnknownName(f"no weights are called {scheme!r}; choose one of {', '.join(SCHEMES)}")


def weight_function(scheme: str, counts: LabelCounts, shares: ArrayLike | None = None) -> WeightFunction:
    """Return the weights of a scheme as a function of the number of annotations.

    Parameters
    ----------
    scheme : one of `SCHEMES`.
    counts : `inv_var_class` takes the class distribution from them, `exch` the moments.
    shares : class distribution for `inv_var_class` in place of the pooled shares.

    Raises
    ------
    UnknownName : for another scheme.
    """
    check_scheme(scheme)
    if scheme == "exch":
        moments = exchangeable_moments(counts.patterns)
        return lambda size: _inverse(size, exchangeable_variance(np.maximum(size, 2), moments))
    if scheme == "inv_var_class":
        ratio = rho(class_shares(counts) if shares is None else np.asarray(shares, float))
        return lambda size: np.where(size < 2, 0.0, _pairs(size) / (1 + ratio * np.maximum(size - 2, 0)))
    simple: dict[str, WeightFunction] = {
        "flat": lambda size: np.where(size < 2, 0.0, 1.0),
        "annotations": lambda size: np.where(size < 2, 0.0, size),
        "annotations_m1": lambda size: np.where(size < 2, 0.0, size - 1.0),
        "edge": _pairs,
        # 1 / Var = C² N / (C - 1), with C equally likely classes.
        "inv_var": lambda size: _pairs(size) * counts.num_labels**2 / max(1, counts.num_labels - 1),
    }
    return simple[scheme]


def _pairs(size: np.ndarray) -> np.ndarray:
    return size * (size - 1.0) / 2


def _inverse(size: np.ndarray, variance: np.ndarray) -> np.ndarray:
    # Without any variance all pairs agree, or none: whatever the weights, the estimate is the same.
    inverse = np.divide(1.0, variance, out=np.ones(np.shape(variance)), where=variance > 0)
    return np.where(size < 2, 0.0, inverse)


def class_shares(counts: LabelCounts) -> Float[np.ndarray, " label"]:
    """Return the share of each label among all annotations; equal shares where there are none."""
    if not counts.num_annotations:
        return np.full(counts.num_labels, 1 / max(1, counts.num_labels))
    return counts.label_totals / counts.num_annotations


def rho(shares: ArrayLike) -> float:
    """Return ρ in [0, 1], all that `inv_var_class` depends on; 1 in the limit of a single class.

    Raises
    ------
    UnsupportedRequest : unless the shares are not negative and sum to one.
    """
    shares = np.asarray(shares, float)
    if not (shares >= 0).all() or abs(shares.sum() - 1) > 1e-6:
        raise UnsupportedRequest(f"class shares sum to {shares.sum():g}; give shares, not negative, with the sum 1")
    second, third = (shares**2).sum(), (shares**3).sum()
    # Rounding can put s₃ below s₂², which it never is, or s₂ above one.
    return float(np.clip(2 * (third - second**2) / (second - second**2), 0, 1)) if second < 1 - 1e-12 else 1.0


def exchangeable_variance(size: ArrayLike, moments: Moments) -> Float[np.ndarray, " size"]:
    r"""Return the variance of an item's agreement where items have class distributions of their own, n ≥ 2.

    .. math:: [A_2 + 2 (n - 2) A_1 + \tbinom{n-2}{2} A_0] / N
    """
    size = np.asarray(size, float)
    other = size - 2
    total = moments.same + 2 * other * moments.shared + other * (other - 1) / 2 * moments.disjoint
    return total / (size * (size - 1) / 2)


def exchangeable_moments(patterns: Patterns) -> Moments:
    """Estimate the moments of exchangeable items from unbiased pieces: triples, disjoint pairs, pairs of items.

    The pieces are averages over the items that have enough annotations (two, three, four), and are clipped to what true
    moments satisfy: A₀ ≥ 0, A₁ ≥ A₀, A₂ ≥ 2 A₁ - A₀. A₀ is zero where no item has four; below four it plays no part.
    """
    size, pairs, triples, multiplicity = patterns
    if not len(size):
        return Moments(*[float("nan")] * 4)
    agreement, number = patterns.agreement, patterns.num_items
    total = (multiplicity * agreement).sum()
    mean = total / number
    # μ² from pairs of different items: the square of the mean would be too large by its variance.
    squared = (total**2 - (multiplicity * agreement**2).sum()) / (number * (number - 1)) if number > 1 else mean**2
    falling = size * (size - 1) * (size - 2)
    third = _mean(triples, falling, multiplicity)
    disjoint = _mean(pairs**2 - 4 * triples - 2 * pairs, falling * (size - 3), multiplicity)
    same = max(mean - squared, 0.0)
    between = 0.0 if np.isnan(disjoint) else max(disjoint - squared, 0.0)
    between = min(between, same)
    shared = between if np.isnan(third) else float(np.clip(third - squared, between, (same + between) / 2))
    return Moments(float(mean), float(same), shared, float(between))


def _mean(numerator: np.ndarray, denominator: np.ndarray, multiplicity: np.ndarray) -> float:
    """Average a piece over the items for which it exists."""
    exists = denominator > 0
    if not exists.any():
        return float("nan")
    return float(np.average(numerator[exists] / denominator[exists], weights=multiplicity[exists]))
