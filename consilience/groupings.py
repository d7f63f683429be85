"""Which two annotators share a source? Each pair is tried as a group: `Fit.groupings` of models of annotators.

A model takes annotators for independent given the true label, and two who are not are counted twice
(`consilience.models.crowd.groups`). Who they are shows in what is left to explain once they count as one: the agreement
of all other pairs is then what the model expects. Two groupings may explain the labels equally well, a judge and its
copy as well as the two who disagree with both: only gold labels can tell.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.data.annotations import Annotations
from consilience.errors import TooLarge, UnsupportedRequest
from consilience.evaluation.reliability import calibration_score
from consilience.inference.updating import refitted

if TYPE_CHECKING:
    import pandas

# 45 fits; of more annotators a pair that stands out is seen in the table of pairs.
_MOST_ANNOTATORS = 10


def groupings(fit: Any) -> pandas.DataFrame:
    """Fit anew with each pair of annotators as a group, and say how well all others are then explained.

    The groups that the data have stay: an annotator of a group brings it along. Nothing is applied; `fit` does that, by
    ``annotator_groups``.

    Parameters
    ----------
    fit : of a model of annotators, 3 to 10 of them.

    Returns
    -------
    Data frame with the columns ``annotator_a, annotator_b``, ``worst_z`` (the largest |z| of `annotator_pairs` of all
    pairs who are not of one group; NaN where none has 20 items in common), ``log_score`` and ``right`` (against gold
    labels that the fit does not use, see `CalibrationScore`; NaN where there are none). Smallest worst_z first.

    Raises
    ------
    TooLarge : there are more annotators.
    UnsupportedRequest : there are fewer, or all are of one group; or a loaded fit knows its priors in words only.

    Examples
    --------
    >>> import consilience as cs
    >>> fit = cs.fit("dawid-skene", cs.load("dawid-skene-1979"))
    >>> fit.groupings()[["annotator_a", "annotator_b", "worst_z"]].head(2).round(2)
      annotator_a annotator_b  worst_z
    0           1           3     2.49
    1           1           5     2.53
    """
    import pandas

    data = fit.data
    number = data.num_annotators
    if number > _MOST_ANNOTATORS:
        raise TooLarge(
            f"{number:,} annotators make {number * (number - 1) // 2:,} pairs, each of which is a fit; groupings are "
            f"for {_MOST_ANNOTATORS} annotators or fewer. The table annotator_pairs says who agree more than expected"
        )
    group = np.full(number, -1) if data.group is None else np.asarray(data.group)
    pairs = [pair for pair in itertools.combinations(range(number), 2) if not _together(group, *pair)]
    if number < 3 or not pairs:
        raise UnsupportedRequest("a grouping is judged by how the others agree; three annotators apart are needed")
    rows = [_row(refitted(fit, _grouped(data, one, other))) for one, other in pairs]
    one, other = (np.asarray(data.annotators, object)[list(side)] for side in zip(*pairs, strict=True))
    found = pandas.DataFrame(rows)
    found.insert(0, "annotator_a", one)
    found.insert(1, "annotator_b", other)
    return found.sort_values("worst_z", kind="stable", ignore_index=True)


def _together(group: np.ndarray, one: Any, other: Any) -> Any:
    return (group[one] == group[other]) & (group[one] >= 0)


def _grouped(data: Annotations, one: int, other: int) -> Annotations:
    """Return the annotations with two annotators, and whoever shares a source with either, in one group."""
    group = np.full(data.num_annotators, -1) if data.group is None else np.array(data.group)
    own = [code for code in (group[one], group[other]) if code >= 0]
    code = own[0] if own else group.max(initial=-1) + 1
    group[np.isin(group, own)] = code
    group[[one, other]] = code
    names = {name: str(name) for name in np.unique(group[group >= 0])}
    return data.grouped({who: names[own] for who, own in zip(data.annotators, group, strict=True) if own >= 0})


def _row(refit: Any) -> dict[str, float]:
    """Return what one grouping leaves to explain, and how it does on gold labels."""
    pairs = refit.table_columns("annotator_pairs", codes=True)
    apart = ~_together(np.asarray(refit.data.group), pairs["annotator_a"], pairs["annotator_b"])
    size = np.abs(pairs["z"][apart & np.isfinite(pairs["z"])])
    row = {"worst_z": float(size.max()) if len(size) else np.nan, "log_score": np.nan, "right": np.nan}
    try:
        score = calibration_score(refit)
    except UnsupportedRequest:  # no gold labels, or none that the fit left alone
        return row
    return {**row, "log_score": score.log_score, "right": score.right}
