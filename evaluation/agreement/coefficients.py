"""All coefficients of agreement that apply to some data, in one table.

| name | convention | where |
|---|---|---|
| percent agreement | | here: SPA with flat weights |
| kappa | different items; the same, bias-reduced | `chance` |
| Fleiss' kappa | pooled, item-mean, pairable | `chance` |
| Conger's kappa | | `annotator_margins`; where annotators are known |
| Cohen's kappa, Scott's pi | | `annotator_margins`; where exactly two annotators occur |
| Gwet's AC1 | | `chance` |
| Krippendorff's alpha | nominal, ordinal, interval, ratio | `alpha`; beyond nominal with an order or values |
"""

from __future__ import annotations

import numpy as np

from consilience.arrays import Array, Float
from consilience.data.annotations import Annotations
from consilience.evaluation.agreement.alpha import krippendorff_alpha
from consilience.evaluation.agreement.annotator_margins import conger_kappa, present_annotators, two_annotators
from consilience.evaluation.agreement.chance import FLEISS_CONVENTIONS, Coefficient, fleiss_kappa, gwet_ac1, kappa
from consilience.evaluation.agreement.counts import LabelCounts
from consilience.evaluation.agreement.sparse_probability import sparse_agreement
from consilience.evaluation.agreement.weighting import weight_function


def percent_agreement(counts: LabelCounts, level: float = 0.95) -> Coefficient:
    """Estimate Gwet's percent agreement, which is SPA with flat weights; its interval is Wilson's."""
    flat = sparse_agreement(counts.patterns, weight_function("flat", counts), level)
    ends = (flat.lower, flat.upper)
    return Coefficient("percent agreement", "", flat.value, flat.sd, *ends, flat.value, float("nan"))


def coefficients(
    counts: LabelCounts,
    annotations: Annotations | None = None,
    values: Float[Array, " label"] | None = None,
    level: float = 0.95,
    *,
    ordinal: bool = False,
) -> list[Coefficient]:
    """Estimate every coefficient that applies.

    Parameters
    ----------
    annotations : what was counted; needed for those with annotators' own margins.
    values : shape ``(label,)``; what the labels measure. With them come ordinal and interval alpha, and ratio alpha if
        none is negative.
    level : of the intervals.
    ordinal : whether the labels have an order, that of ``values`` or else their own; brings ordinal alpha.

    Returns
    -------
    In the order of the table at the top of this module.
    """
    estimates = [percent_agreement(counts, level), *kappa(counts, weight_function("flat", counts), level)]
    estimates += [fleiss_kappa(counts, convention, level) for convention in FLEISS_CONVENTIONS]
    present = 0 if annotations is None else len(present_annotators(annotations))
    if annotations is not None and present:
        estimates.append(conger_kappa(annotations, level))
    if annotations is not None and present == 2:
        estimates += two_annotators(annotations, level)
    estimates.append(gwet_ac1(counts, level))
    estimates += [krippendorff_alpha(counts, metric, values, level) for metric in _metrics(values, ordinal)]
    return estimates


def _metrics(values: Float[Array, " label"] | None, ordinal: bool) -> list[str]:
    metrics = ["nominal"]
    if values is not None or ordinal:
        metrics.append("ordinal")
    if values is not None:
        metrics.append("interval")
        if not (np.asarray(values) < 0).any():
            metrics.append("ratio")
    return metrics
