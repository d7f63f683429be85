r"""Sparse probability of agreement (SPA): how often two annotators of an item agree, whatever number annotated it.

.. math:: \text{SPA} = \sum_i k_i P_i / \sum_i k_i, \qquad P_i = \frac{\sum_c n_{ic} (n_{ic} - 1)}{n_i (n_i - 1)}

over the items with :math:`n_i \ge 2` (Nørregaard & Derczynski 2022). With all items annotated equally often
every scheme gives the probability of agreement. The weights k depend on :math:`n_i` alone (`weighting`).

Weights rest on an assumption: that the number of annotations has nothing to do with the agreement. Where an
adjudicator is asked after two annotators differed, it fails, and every scheme estimates something else. `dependence`
looks for that.

References
----------
J. Nørregaard and L. Derczynski. Sparse probability of agreement. arXiv:2208.06161 (2022).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse, special

from consilience.arrays import Bool, Float
from consilience.evaluation.agreement.counts import LabelCounts, Patterns
from consilience.evaluation.agreement.jackknife import jackknife_of_ratios, jackknife_sd, ratio, wilson_interval
from consilience.evaluation.agreement.weighting import WeightFunction, weight_function

# Fewest and most items of either kind for the test of items with one annotation: more tell no more.
_FEWEST_TESTED, _MOST_TESTED = 10, 1 << 17

# The test takes a matrix of labels by labels.
_MOST_LABELS = 1000

# |z| above which the number of annotations is said to depend on the agreement.
_MOST_Z = 2.0

# A difference between two schemes that is smaller is none.
_ROUNDING = 1e-12


class SparseAgreement(NamedTuple):
    """An estimate of SPA.

    Parameters
    ----------
    value : NaN where no item has two annotations.
    sd : jackknife standard error over items; NaN with fewer than two usable items.
    lower, upper : Wilson interval at the effective sample size.
    effective : Kish's effective number of items.
    """

    value: float
    sd: float
    lower: float
    upper: float
    effective: float


def sparse_agreement(patterns: Patterns, weight: WeightFunction, level: float = 0.95) -> SparseAgreement:
    """Estimate SPA with items random: these annotators, items like these.

    Parameters
    ----------
    patterns : of a `LabelCounts`.
    weight : k(n); see `weight_function`.
    level : of the interval.
    """
    k, count = weight(patterns.size), patterns.multiplicity
    total = (count * k).sum()
    if not total > 0:
        return SparseAgreement(*[float("nan")] * 5)
    value = float((count * k * patterns.agreement).sum() / total)
    effective = float(total**2 / (count * k**2).sum())
    sd = jackknife_sd(left_out_items(patterns, weight), count)
    return SparseAgreement(value, sd, *wilson_interval(value, sd, effective, level), effective)


def terms(size: np.ndarray, pairs: np.ndarray, weight: WeightFunction) -> tuple[np.ndarray, np.ndarray]:
    """Return what items of these sizes and agreeing pairs add to Σk and to ΣkP."""
    k = weight(size)
    return k, k * pairs / np.maximum(size * (size - 1.0), 1)


def left_out(
    patterns: Patterns, weight: WeightFunction, k: Float[np.ndarray, " unit"], agreeing: Float[np.ndarray, " unit"]
) -> Float[np.ndarray, " unit"]:
    """Return SPA without so much of Σk and of ΣkP; NaN where nothing is left."""
    total, total_agreeing = (patterns.multiplicity @ term for term in terms(patterns.size, patterns.pairs, weight))
    return ratio(total_agreeing - agreeing, total - k, 1e-12 * total)


def left_out_items(patterns: Patterns, weight: WeightFunction) -> Float[np.ndarray, " pattern"]:
    """Return SPA without one item of each pattern; NaN where no other item is left."""
    return left_out(patterns, weight, *terms(patterns.size, patterns.pairs, weight))


class Dependence(NamedTuple):
    """Whether the number of annotations of an item depends on their agreement: `edge` minus `flat`, in standard errors.

    Parameters
    ----------
    difference : SPA with `edge` weights minus SPA with `flat` weights.
    sd : its jackknife standard error.
    z : difference / sd (a Hausman test: without dependence both estimate the same); NaN where all items are annotated
        equally often or agree equally often, or are too few.
    single_items : items with one annotation, which have no agreement.
    single_p : p-value of the test that their labels are those of the other items; NaN where there is nothing to test,
        and with more than 1,000 labels.
    """

    difference: float
    sd: float
    z: float
    single_items: int
    single_p: float

    @property
    def found(self) -> bool:
        """Whether there is a sign of dependence."""
        return self.of_agreement or self.single_p < 0.01

    @property
    def of_agreement(self) -> bool:
        """Whether items with more annotations agree more, or less, so that weights change what is estimated."""
        return abs(self.z) > _MOST_Z

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        single = ""
        if self.single_p < 0.01:
            single = (
                f" The {self.single_items:,} items with a single annotation have other labels than the rest "
                f"(p = {self.single_p:.2g}); nothing is known of the agreement on them."
            )
        if np.isnan(self.z) and abs(self.difference) < _ROUNDING:
            return f"Weights make no difference: items that count are annotated, or agree, equally often.{single}"
        if np.isnan(self.z):
            return f"Too few items tell whether the number of annotations depends on the agreement; use flat.{single}"
        if self.of_agreement:
            way = "more" if self.z > 0 else "less"
            return (
                f"Items with more annotations agree {way} (edge - flat = {self.difference:+.4f}, z = {self.z:+.1f}): "
                "weighting changes what is estimated here; use flat. If annotations were added because the first ones "
                f"differed, no weighting repairs it; measure the first two of every item (first=2).{single}"
            )
        return (
            "No sign that the number of annotations depends on the agreement "
            f"(edge - flat = {self.difference:+.4f}, z = {self.z:+.1f}).{single}"
        )


def dependence(counts: LabelCounts) -> Dependence:
    """Look for signs that the number of annotations depends on the agreement.

    A rank correlation would not do: the shape of the distribution of P depends on n even where its mean does not.
    """
    patterns = counts.patterns
    edge, flat = (weight_function(scheme, counts) for scheme in ("edge", "flat"))
    difference = sparse_agreement(patterns, edge).value - sparse_agreement(patterns, flat).value
    sd = jackknife_sd(left_out_items(patterns, edge) - left_out_items(patterns, flat), patterns.multiplicity)
    varied = len(np.unique(patterns.size)) > 1 and sd > _ROUNDING
    single_items = int((counts.size == 1).sum())
    z = difference / sd if varied else float("nan")
    return Dependence(difference, sd, z, single_items, _single_p(counts))


def _single_p(counts: LabelCounts) -> float:
    """Test whether items with one annotation have the label shares of the others, with items as the units.

    The squared distance of the shares is set against a multiple of a chi-square with its mean and its variance under
    equal shares. A Wald test, which inverts the covariance, rejects far too often where some labels are rare.
    """
    usable, single = _spread(counts.size >= 2), _spread(counts.size == 1)
    num_usable, num_single = int(usable.sum()), int(single.sum())
    if min(num_usable, num_single) < _FEWEST_TESTED or not 2 <= counts.num_labels <= _MOST_LABELS:
        return float("nan")
    item, label, number = counts.entries_of(usable | single)
    single_share = np.bincount(label[single[item]], minlength=counts.num_labels) / num_single
    of_usable = usable[item]
    item, label, number = item[of_usable], label[of_usable], number[of_usable]
    share = number / counts.size[item]
    mean = np.bincount(label, share, counts.num_labels) / num_usable
    rows = sparse.csr_array((share, (item, label)), (counts.num_items, counts.num_labels))
    pooled = (num_usable * mean + num_single * single_share) / (num_usable + num_single)
    covariance = ((rows.T @ rows).toarray() / num_usable - np.outer(mean, mean)) / num_usable
    covariance += (np.diag(pooled) - np.outer(pooled, pooled)) / num_single
    expected, squares = np.trace(covariance), (covariance**2).sum()
    if not squares > 0:
        return float("nan")
    return float(special.chdtrc(expected**2 / squares, ((single_share - mean) ** 2).sum() * expected / squares))


def _spread(items: Bool[np.ndarray, " item"]) -> Bool[np.ndarray, " item"]:
    """Keep some of these items, evenly spread, where there are more than a test can use."""
    step = -(-int(items.sum()) // _MOST_TESTED)
    if step <= 1:
        return items
    kept = np.zeros_like(items)
    kept[np.flatnonzero(items)[::step]] = True
    return kept


def specific_agreement(counts: LabelCounts, weight: WeightFunction, level: float = 0.95) -> dict[str, np.ndarray]:
    r"""Estimate for each label how often a second annotator gives it, when a first one did.

    .. math:: \text{SA}(c) = \sum_i k_i \frac{n_{ic} (n_{ic} - 1)}{n_i (n_i - 1)} / \sum_i k_i \frac{n_{ic}}{n_i}

    SPA is the mean of SA(c) over labels, weighted by their shares.

    Returns
    -------
    Columns of a table with one row a label: ``label`` (code), ``annotations``, ``share`` (its weighted share),
    ``agreement``, ``sd``, ``lower``, ``upper``; NaN for labels that no usable item has.
    """
    item, label, number = counts.entries
    usable = counts.size[item] >= 2
    item, label, number = item[usable], label[usable], number[usable]
    size = counts.size[item].astype(float)
    base = weight(size) * number / size
    agreeing = base * (number - 1) / (size - 1)
    num_labels = counts.num_labels
    value, sd = jackknife_of_ratios(label, agreeing, base, num_labels, int(counts.patterns.num_items))
    total, squares = (np.bincount(label, values, num_labels) for values in (base, base**2))
    lower, upper = wilson_interval(value, sd, ratio(total**2, squares), level)
    k_total = counts.patterns.multiplicity @ weight(counts.patterns.size)
    return {
        "label": np.arange(num_labels), "annotations": counts.label_totals, "share": ratio(total, k_total),
        "agreement": value, "sd": sd, "lower": lower, "upper": upper,
    }  # fmt: skip
