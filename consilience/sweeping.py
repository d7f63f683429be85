"""Sweeps over reliabilities: how much of a conclusion depends on how far one trusts the annotators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from consilience.data.accept import as_class_map, as_contract, as_systems
from consilience.deprecation import renamed
from consilience.evaluation.adjustment import evaluate
from consilience.evaluation.certainties import certainty, expected_risk
from consilience.inference.fitting import fit
from consilience.inference.own_model import as_member


@renamed
def sweep(
    model: Any,
    data: Any,
    reliability: Sequence[float],
    *,
    top: Sequence[int] = (1,),
    class_groups: Any = None,
    systems: Mapping[str, Any] | None = None,
    metrics: Sequence[Any] = ("top-1",),
    exact: bool = False,
    **settings: Any,
) -> Any:
    """Fit and score at several reliabilities.

    Parameters
    ----------
    model, data, **settings : Model, data and keyword arguments
        As for `fit`; a path, a data frame, a dict of columns or a list of rows is read once.
    reliability : sequence of float
        Values of the option ``reliability``.
    top : sequence of int, optional
        Sizes of the top sets whose certainty is measured.
    class_groups : ClassMap or source of one, optional
        Groups of classes, as a `ClassMap` or what `read_class_map` reads; adds the certainty of the group and, for
        groups that are numbers, the expected risk.
    systems : dict of str to Any, optional
        Predictions by name, each as `evaluate` takes it; adds each metric of each system.
    metrics : sequence of Any, optional
        For the systems.
    exact : bool, default False
        Measure the certainty of the top class by quadrature too; all else is measured by draws.

    Returns
    -------
    pandas.DataFrame
        With the columns ``reliability, system, score, value, sd, lower, upper, worst, best, point_estimate,
        items``.

    Examples
    --------
    >>> import consilience as cs
    >>> data = cs.Annotations.from_counts([[3, 0], [1, 2]], labels=["no", "yes"])
    >>> table = cs.sweep("dirichlet", data, [1, 10], draws=100)
    >>> table["score"].tolist()
    ['certainty of the top class', 'certainty of the top class']
    >>> table["value"].is_monotonic_increasing
    True
    """
    import pandas

    member = as_member(model, None)
    data, rows = as_contract(data, *member.takes, whose=f"'{member.name}'"), []
    for value in reliability:
        fitted = fit(model, data, reliability=value, **settings)
        class_groups = as_class_map(fitted, class_groups)  # read once
        systems = as_systems(fitted, systems) if systems else {}
        scores = [("", score) for score in certainty(fitted, top=list(top), exact=False).values()]
        if exact:
            scores.append(("", certainty(fitted, exact=True)))
        if class_groups is not None:
            for rule in ("top", "sum"):
                scores.append(("", certainty(fitted, class_groups=class_groups, group_rule=rule, exact=False)))
            scores += [("", expected_risk(fitted, class_groups))] if class_groups.score is not None else []
        for name, predictions in systems.items():
            scores += [(name, score) for score in evaluate(fitted, predictions, list(metrics), exact=False).values()]
        rows += [{"reliability": value, "system": name, **score.row()} for name, score in scores]
    return pandas.DataFrame(rows)
