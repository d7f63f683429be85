"""How annotators agree with each other, as scores of items that can be set beside the certainty of their truth."""

from __future__ import annotations

import numpy as np

from consilience.data.annotations import Annotations
from consilience.data.rankings import Rankings
from consilience.evaluation.leave_one_out import leave_one_out_agreement
from consilience.evaluation.rank_overlap import annotator_average_overlap
from consilience.evaluation.scores import Score


def annotator_agreement(data: Rankings | Annotations, weights: str = "equation-14") -> Score:
    """Measure how often an annotator names the class that the others put first (Stutz et al. 2023, Appendix D).

    Parameters
    ----------
    data : rankings or annotations.
    weights : how ranks are weighted when the others are aggregated; see `consilience.models.irn`.

    Returns
    -------
    Score
        NaN for items with a single annotator. There is no spread over draws: the truth has no part in it.

    Examples
    --------
    >>> import consilience as cs
    >>> rankings = cs.Rankings.from_nested([[[["flu"], ["cold"]], [["flu"], ["cold"]]], [[["cold"]], [["flu"]]]])
    >>> cs.annotator_agreement(rankings).items.tolist()  # they agree on the first item alone
    [1.0, 0.0]
    """
    return _score("leave-one-out annotator agreement", leave_one_out_agreement(data, weights), data)


def annotator_overlap(data: Rankings, at: int = 3) -> Score:
    """Measure the average overlap between the rankings of each pair of annotators (Stutz et al. 2023, Appendix B.5).

    Parameters
    ----------
    data : rankings.
    at : how many places of the rankings are compared.

    Returns
    -------
    Score
        the mean over pairs of annotators, normalised to 1 for equal rankings; NaN for items with a single annotator.

    Examples
    --------
    >>> import consilience as cs
    >>> rankings = cs.Rankings.from_nested([[[["flu"], ["cold"]], [["flu"], ["cold"]]], [[["cold"]], [["flu"]]]])
    >>> cs.annotator_overlap(rankings, at=1).items.tolist()  # the same first place in the first item alone
    [1.0, 0.0]
    """
    return _score(f"average overlap@{at} between annotators", annotator_average_overlap(data, at), data)


def _score(title: str, items: np.ndarray, data: Rankings | Annotations) -> Score:
    return Score(title=title, items=items, draws=np.empty(0), ids=data.items, label="agreement")
