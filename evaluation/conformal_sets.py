r"""Sets of classes that hold the truth as often as asked, where the truth is uncertain: `conformal`.

With :math:`E_i(k)` the nonconformity of class k of item i, and :math:`m_i(k)` the posterior mean that k is its label
(`label_masses`), t is the smallest nonconformity with

.. math::

    \sum_{i=1}^n \sum_{k: E_i(k) \le t} m_i(k) \ge (n + 1) \cdot \mathrm{level},

or infinite, and the set of an item its classes with :math:`E(k) \le t`. The set of a new item that is exchangeable
with these holds the level of its mass or more on average: the same threshold of all n + 1 items is symmetric in them,
so that this holds for it, and t is no smaller. Nothing is sampled.

References
----------
Romano, Sesia and Candès (2020), Classification with valid and adaptive coverage. Stutz et al. (2023), Conformal
prediction under ambiguous ground truth, arXiv:2307.09302. Angelopoulos et al. (2022), arXiv:2208.02814.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import Float
from consilience.data.accept import as_contract
from consilience.data.predictions import Predictions
from consilience.data.problems import check_option
from consilience.errors import UnsupportedRequest
from consilience.evaluation.classes import align
from consilience.models.truth import CLASSES, truth_of
from consilience.models.truth.classes import label_masses


@dataclass(frozen=True, kw_only=True, eq=False)
class Conformal:
    """Sets of classes; made by `conformal`.

    Parameters
    ----------
    level, score : float
        What was asked for.
    threshold : float
        Largest nonconformity within a set; infinite where sets hold all classes.
    coverage, size : float
        Means over the items of the fit: the posterior mass of a set, and how many classes are in it.
    table : pandas.DataFrame
        Data frame with one row for each of them: ``item``, ``classes`` (most probable first) and ``size``.
    classes : numpy.ndarray
        All ids, in code order.

    Examples
    --------
    >>> import consilience as cs
    >>> fit = cs.fit("dirichlet", cs.Annotations.from_counts([[3, 0], [1, 2]], labels=["no", "yes"]))
    >>> system = cs.Predictions.from_scores([[0.9, 0.1], [0.3, 0.7]], classes=["no", "yes"], probabilities=True)
    >>> cs.conformal(fit, system, level=0.5).sets(system)["classes"].tolist()
    [('no',), ('yes',)]
    """

    level: float
    score: str
    threshold: float
    coverage: float
    size: float
    table: Any
    classes: np.ndarray

    def sets(self, predictions: Predictions, *, unknown: str = "error") -> Any:
        """Return the sets of other items by the same system, as ``table`` has them; ``unknown`` as of `conformal`."""
        known, _ = predictions.align(predictions.items, self.classes, unknown=unknown)
        return _table(known, nonconformity(known, self.score) <= self.threshold)

    def __repr__(self) -> str:
        return (
            f"conformal sets, level {self.level:g}, {self.score} {self.threshold:.4f}, {len(self.table):,} items: "
            f"{self.size:.2f} classes on average, with {self.coverage:.4f} of the posterior mass\n"
            f"guarantee: of an item like these, annotated like these, the set has {self.level:g} or more of that mass "
            "on average. Of predictions made from the annotations, that is how often it holds the truth. Sets of a "
            "system that looked at the items itself hold it more often, and are larger than need be."
        )


def conformal(
    fit: Any, predictions: Any, level: float = 0.9, score: str = "threshold", *, missing: str = "error",
    unknown: str = "error",
) -> Conformal:  # fmt: skip
    """Find sets of classes that hold the uncertain truth of an item with a given probability.

    Parameters
    ----------
    fit : Fit
        A fit of classes of items, or a `Truth`.
    predictions : Predictions, or what is read as such
        Probabilities of one system (`read_predictions` with ``scores="probabilities"``), or a source of them.
    level : float, default 0.9
        How much of the truth a set is to hold on average, between 0 and 1.
    score : str, default "threshold"
        The nonconformity. "threshold", 1 - q of a class of probability q, has the smallest sets; "cumulative", the
        probability of the classes that the system ranks before it, larger ones where the system is less sure.
    missing, unknown : str
        As of `evaluate`.

    Returns
    -------
    Conformal
        The sets, in ``table``, and how often they hold the truth.

    Raises
    ------
    UnsupportedRequest : the level is none, the truth is not of classes, or there are no probabilities.

    Examples
    --------
    >>> import consilience as cs
    >>> fit = cs.fit("dirichlet", cs.Annotations.from_counts([[3, 0], [1, 2]], items=["a", "b"], labels=["no", "yes"]))
    >>> system = {"item": ["a", "a", "b"], "class": ["no", "yes", "yes"], "probability": [0.9, 0.1, 0.8]}
    >>> cs.conformal(fit, system, level=0.5).table
      item classes  size
    0    a   (no,)     1
    1    b  (yes,)     1
    """
    check_option("score", score, ("threshold", "cumulative"))
    if not 0 < level < 1:
        raise UnsupportedRequest(f"level is {level:g}; give how much of the truth a set is to hold, such as 0.9")
    given = as_contract(predictions, Predictions, whose="conformal", scores="probabilities")
    truth: Any = truth_of(fit).read_as(CLASSES.name)
    aligned, kept = align(truth, given, missing=missing, unknown=unknown)
    found, mass = nonconformity(aligned, score), label_masses(truth)
    threshold = smallest_threshold(found[kept], mass[kept], level)
    held = found <= threshold
    table = _table(aligned, held)[kept].reset_index(drop=True)
    return Conformal(
        level=level, score=score, threshold=threshold, coverage=float((mass * held)[kept].sum(axis=1).mean()),
        size=float(table["size"].mean()), table=table, classes=aligned.classes,
    )  # fmt: skip


def nonconformity(predictions: Predictions, score: str) -> Float[np.ndarray, "item class"]:
    """Return how badly each class goes with what the system says of an item; equal ones are ordered by their codes."""
    q = predictions.class_probabilities()
    if score == "threshold":
        return 1 - q
    order, found = np.argsort(-q, axis=1, kind="stable"), np.empty_like(q)
    ordered = np.take_along_axis(q, order, axis=1)
    np.put_along_axis(found, order, np.cumsum(ordered, axis=1) - ordered, axis=1)
    return found


def smallest_threshold(
    found: Float[np.ndarray, "item class"], mass: Float[np.ndarray, "item class"], level: float
) -> float:
    """Return the smallest nonconformity up to which the masses of n items sum to ``(n + 1) * level``; or infinity."""
    order = np.argsort(found, axis=None, kind="stable")
    # A sum that is short of it by rounding errors has reached it.
    reached = np.searchsorted(np.cumsum(mass.ravel()[order]), (len(mass) + 1) * level - 1e-9)
    return float(found.ravel()[order[reached]]) if reached < len(order) else np.inf


def _table(predictions: Predictions, chosen: np.ndarray) -> Any:
    import pandas

    order = np.argsort(-predictions.class_probabilities(), axis=1, kind="stable")
    sets = [tuple(predictions.classes[own[mask[own]]]) for own, mask in zip(order, chosen, strict=True)]
    return pandas.DataFrame({"item": predictions.items, "classes": sets, "size": chosen.sum(axis=1)})
