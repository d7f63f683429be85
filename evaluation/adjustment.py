"""Uncertainty-adjusted metrics: any metric of (one draw of the truth, a prediction), averaged over draws: `evaluate`.

Where the truth has the distribution of the score in closed form, that is taken in the place of draws.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from consilience.data.accept import as_class_map, as_system
from consilience.data.classes import ClassMap
from consilience.data.conll import as_chains
from consilience.data.problems import check_option
from consilience.deprecation import renamed
from consilience.errors import UnsupportedRequest
from consilience.evaluation import chains, partitions  # noqa: F401 - where metrics are registered
from consilience.evaluation.classes import Metric, mapped_groups, resolve
from consilience.evaluation.engine import ByGroup, PerUnit, Scoring, Totals, fold
from consilience.evaluation.independent import Moments, mean_quantiles
from consilience.evaluation.registry import METRICS
from consilience.evaluation.scores import Score
from consilience.models.truth import CHAINS, CLASSES, Ranked, Truth, truth_of
from consilience.notes import Remedy

SUPPOSITIONS = {
    "ignored": 'of a system that knows no more than the crowd; responses="annotator" counts the system as a witness',
    "annotator": "the system is a witness, whose errors are independent of the crowd's",
}
"""What titles say of a system's part in a posterior of partitions."""

_LEFT_OUT = (
    "Not in this interval: whether the system looked at the {0}s itself, which makes it better than this score{1}, and "
    "that other {0}s might have been drawn. compare counts these, as far as is possible."
)
_EXACT = ", exact"  # in titles of scores in closed form
_TOGETHER = ", how much the annotators err together"


def adjusted(metric: str | Metric) -> Callable[[Any, Any], Score]:
    """Lift a metric of one draw and one prediction to fits: ``adjusted(metric)(fit, predictions)`` is a `Score`.

    Parameters
    ----------
    metric : str or Metric
        As of `evaluate`.

    Returns
    -------
    callable
        ``(fit, predictions)`` -> `Score`.

    Examples
    --------
    >>> import consilience as cs
    >>> labels = cs.Annotations.from_counts([[3, 0], [1, 2]], labels=["no", "yes"])
    >>> system = cs.Predictions.from_lists([["no"], ["yes"]], classes=["no", "yes"])
    >>> top_2 = cs.adjusted("top-2")
    >>> both = cs.Predictions.from_lists([["no", "yes"], ["yes", "no"]], classes=["no", "yes"])
    >>> print(f"{top_2(cs.fit('dirichlet', labels), both).value:.2f}")
    1.00
    """
    chosen = resolve(metric)
    return lambda fit, predictions: evaluate(fit, predictions, metric=chosen)


@renamed
def evaluate(
    fit: Any,
    predictions: Any,
    metric: str | Metric | Sequence[str | Metric] | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    class_groups: Any = None,
    missing: str = "error",
    unknown: str = "error",
    singletons: bool = True,
    exact: bool | None = None,
    responses: str = "ignored",
) -> Any:
    """Score predictions against an uncertain truth.

    Parameters
    ----------
    fit : Fit
        A fit, or a `Truth`.
    predictions : Predictions, or what is read as such
        Of one system: classes of items; the coreference chains of documents (`read_conll`), which need a fit of
        mentions with spans; or the entities of records (`read_partition`), which need a fit of records. A path, a data
        frame or a dict of columns is read by the reader that goes with the fit.
    metric : str, Metric, sequence of str or Metric, optional
        A name such as ``top-3``, a `Metric`, or a list of them; ``top-1`` by default. For chains ``conll``, the
        default, ``muc``, ``b3``, ``ceafe``, ``ceafm``, ``blanc``, ``lea``, ``mentions``, ``non-referring``: F values,
        or with ``-recall`` or ``-precision`` behind the name. For records ``pairwise-f1``, the default, and the others
        of `consilience.evaluation.partitions.names`. Of predicted probabilities ``log``, ``brier``, ``soft-f1``,
        ``jsd`` and ``ece-15``; see `consilience.evaluation.soft_metrics`.
    columns : dict of str to str, optional
        Names of columns of predictions that are not read yet, such as ``{"class": "predicted"}``.
    class_groups : ClassMap or source of one, optional
        Groups of classes (risk categories), as a `ClassMap` or what `read_class_map` reads: adds ``by_group``, the
        score given the group of the draw's top class, beside the usual version, the items selected by the group of the
        point estimate's top class.
    missing : str, default "error"
        ``drop`` leaves out items, or records, without a prediction.
    unknown : str, default "error"
        ``keep`` counts predicted classes that the data do not have as wrong; records that they do not have are left
        out.
    singletons : bool, default True
        Of chains, whether entities of one mention count.
    exact : bool, optional
        By default in closed form where there is one, which is of ``top-k`` against labels of a closed form or Dirichlet
        plausibilities; True refuses what has none; False takes draws.
    responses : str, default "ignored"
        Of chains, against a posterior of partitions: "ignored", the score of a system that knows no more than the
        crowd; "annotator" counts the system as a witness whose errors are independent of the crowd's given the truth,
        and draws the partitions again. A system that was made from the crowd's chains violates that, and gets too good
        a score.

    Returns
    -------
    Score or dict
        One score, or a dict of them by name if a list was given.

    Raises
    ------
    UnsupportedRequest : the fit is of another kind than the predictions, or has no closed form and one was asked for.
    UnknownName : there is no such metric.

    Examples
    --------
    >>> import consilience as cs
    >>> labels = cs.Annotations.from_counts([[3, 0], [1, 2]], labels=["no", "yes"])
    >>> fit = cs.fit("dirichlet", labels)
    >>> system = cs.Predictions.from_lists([["no"], ["yes"]], classes=["no", "yes"])
    >>> score = cs.evaluate(fit, system)
    >>> print(f"{score.value:.3f}")
    0.849
    >>> score.point  # against the label that most annotators gave
    1.0
    """
    system = as_system(fit, predictions, columns)
    kind = METRICS[system.kind].kind
    groups = as_class_map(fit, class_groups)
    if groups is not None and kind is not CLASSES:
        text = f"{{class_groups}} groups the classes of items, and {kind.unit}s have none; leave it out"
        raise UnsupportedRequest(text, Remedy("class_groups"))
    if groups is not None and exact:
        raise UnsupportedRequest("scores by group have no closed form, only draws; leave out exact=True (or --exact)")
    truth, told = answered(fit, kind.name, system, responses)
    chosen: Any = kind.metric if metric is None else metric
    metrics = list(chosen) if isinstance(chosen, list | tuple) else [chosen]
    if groups is not None and (soft := [resolve(one).name for one in metrics if resolve(one).needs != "ranks"]):
        text = f"{', '.join(soft)} has no scores by group; leave out {{class_groups}}"
        raise UnsupportedRequest(text, Remedy("class_groups"))
    settings = {"missing": missing, "unknown": unknown, "singletons": singletons}
    name = None if kind.unit == "mention" else system.name
    found: dict[str, Score] = {}
    if exact is not False and groups is None:
        # A closed form is that of one metric.
        for one in metrics:
            scoring = METRICS[kind.name](truth, [system], [one], **settings)
            moments = scoring.exact()
            if moments is not None:
                found |= {own: _exact_score(scoring, moments, own, name) for own in scoring.values}
            elif exact:
                require_exact(None, ", ".join(scoring.values))
    rest = [one for one in metrics if _name(kind.name, one) not in found]
    if rest:
        found |= _drawn_scores(METRICS[kind.name](truth, [system], rest, **settings), truth, name, groups)
    ordered = {name: found[name] for name in (_name(kind.name, one) for one in metrics)}
    if told:
        ordered = {name: dataclasses.replace(own, title=f"{own.title}; {told}") for name, own in ordered.items()}
    if truth.num_draws > 1 and responses == "ignored":
        left_out = _LEFT_OUT.format(kind.unit, _TOGETHER if truth.probabilities_at is not None else "")
        stated = _supposed if kind is CLASSES else str
        ordered = {
            name: dataclasses.replace(own, title=stated(own.title), notes=(left_out,)) for name, own in ordered.items()
        }
    return ordered if isinstance(metric, list | tuple) else next(iter(ordered.values()))


def _supposed(title: str) -> str:
    """Say in a title what scores of classes suppose; what follows is how they were computed."""
    plain = title.removesuffix(_EXACT)
    return f"{plain} if made from the annotations{title[len(plain) :]}"


def answered(fit: Any, kind: str, system: Any, responses: str) -> tuple[Truth, str]:
    """Return the truth, and what titles say of the system's part in it.

    Raises
    ------
    UnsupportedRequest : the system is to be a witness of what is no posterior of partitions.
    """
    check_option("responses", responses, ("ignored", "annotator"))
    if kind != CHAINS.name or not hasattr(truth_of(fit), "witnessed"):
        if responses == "annotator":
            raise UnsupportedRequest(
                "a system is a witness of chains alone, of a posterior of partitions; fit mpa with "
                'coreference="partition", or leave out {responses}', Remedy("responses"),
            )  # fmt: skip
        return _read(fit, kind), ""
    if responses == "ignored":
        return _read(fit, kind), SUPPOSITIONS[responses]
    given: Any = truth_of(fit)
    links = chains.said_links(given.mentions, as_chains(system))
    return _read(given.witnessed(links), kind), SUPPOSITIONS[responses]


def _read(fit: Any, kind: str) -> Truth:
    """Return the truth of a fit as one of a kind; its draws come from as many chains."""
    given = truth_of(fit)
    truth = given.read_as(kind)
    truth.num_chains = given.num_chains
    return truth


def _name(kind: str, metric: str | Metric) -> str:
    """Return what a metric is called among the results: a short form stands for another name."""
    if kind == CLASSES.name:
        return resolve(metric).name
    return metric if isinstance(metric, str) else metric.name


def require_exact(found: Any, what: str) -> Any:
    """Return a closed form, or refuse by name where there is none.

    Raises
    ------
    UnsupportedRequest : there is none.
    """
    if found is None:
        raise UnsupportedRequest(f"{what} has no closed form here, only draws; leave out exact=True (or --exact)")
    return found


def _exact_score(scoring: Scoring, moments: Moments, name: str, system: str | None) -> Score:
    items = np.full(scoring.rows, np.nan)
    items[scoring.place] = moments.unit[0]
    points = scoring.points(name)
    return Score(
        title=f"{scoring.title(name, system)}{_EXACT}", items=items, draws=np.empty(0),
        exact_sd=float(np.sqrt(max(moments.covariance[0, 0], 0.0))),
        exact_interval=functools.partial(mean_quantiles, moments.unit[0]),
        point=None if points is None else float(points[0]), ids=scoring.ids, label=scoring.label, unit=scoring.row,
    )  # fmt: skip


def _drawn_scores(scoring: Scoring, truth: Any, system: str | None, by: ClassMap | None) -> dict[str, Score]:
    totals, rows = Totals(scoring), {name: PerUnit(scoring, name) for name in scoring.values}
    groups = {}
    if by is not None:
        of_class = mapped_groups(truth, by)
        groups = {name: ByGroup(scoring, name, of_class, len(by.groups)) for name in scoring.values}
    fold(scoring, totals, *rows.values(), *groups.values())
    found = {}
    for name, per_unit in rows.items():
        draws, points = totals.scores(name)[0], scoring.points(name)
        items, errors = per_unit.rows()[0], per_unit.mcse_rows()
        found[name] = Score(
            title=scoring.title(name, system, draws), items=items, draws=draws[~np.isnan(draws)],
            point=None if points is None else float(points[0]), ids=scoring.ids, label=scoring.label, unit=scoring.row,
            item_mean=not scoring.joint and name not in scoring.of_means, num_chains=truth.num_chains,
            item_mcse=None if errors is None else errors[0], widening=scoring.widening,
            notes=scoring.assumes,
            groups=None if by is None else _by_group(groups[name], by, truth, items, scoring.place),
        )  # fmt: skip
    return found


def scoring_of(fit: Any, systems: Sequence[Any], metric: Any, **settings: Any) -> tuple[Truth, Scoring, str]:
    """Return the truth of a fit as systems of one kind need it, what scores them, and the name of the metric."""
    kind = METRICS[systems[0].kind].kind
    truth = _read(fit, kind.name)
    chosen = kind.metric if metric is None else metric
    return truth, METRICS[kind.name](truth, systems, [chosen], **settings), _name(kind.name, chosen)


def _by_group(sums: ByGroup, by: ClassMap, truth: Any, items: np.ndarray, place: np.ndarray) -> dict[str, np.ndarray]:
    """Tabulate the score given the group of each draw's top class, and by the point estimate's."""
    with np.errstate(invalid="ignore", divide="ignore"):
        per_draw = sums.hits / sums.cases
        value = sums.hits.sum(axis=1) / sums.cases.sum(axis=1)
    # A draw that puts no item into a group says nothing about its spread.
    usable = [draws[np.isfinite(draws)] for draws in per_draw]
    sd = np.array([np.std(draws, ddof=1) if len(draws) > 1 else np.nan for draws in usable])
    rows = {
        "group": np.asarray(by.groups, object), "value": value, "sd": sd, "items_expected": sums.cases.mean(axis=1),
    }  # fmt: skip
    point = truth.standard()
    if point is not None:
        top = np.concatenate([block.real[:, 0, 0] for block in point.blocks(Ranked(1))])
        chosen = [place[sums.group[top[place]] == number] for number in range(len(by.groups))]
        rows["value_by_point_estimate"] = np.array([items[own].mean() if len(own) else np.nan for own in chosen])
        rows["items_by_point_estimate"] = np.array([len(own) for own in chosen])
    return rows
