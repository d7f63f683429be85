"""What is asked of every fit, through the public front door alone; an ask that is refused leaves the error's name."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import consilience as cs
from consilience.models.posterior import Estimate
from tests.golden.cases import Case, Study
from tests.golden.figures import Figure, compact, flat

__all__ = ["SETTINGS", "figures_of", "fitted", "parts"]

Asks = dict[str, Callable[[], Any]]

SETTINGS = {"draws": 50, "chains": 2, "warmup": 50, "max_steps": 50}


def fitted(member: str, case: Case, study: Study, method: str, seed: int) -> Any:
    """Fit a member to the data of a case."""
    options = {**case.options, **case.by_method.get(method, {})}
    return cs.fit(member, study.data, method=method, seed=seed, progress=False, **SETTINGS, **options)


def figures_of(fit: Any, study: Study, sites: Iterable[str], tables: Iterable[str]) -> dict[str, Figure]:
    """Return all figures of a fit.

    Parameters
    ----------
    sites : names of what `parts` of the posterior returns; what was drawn is among the draws.
    tables : names of tables.
    """
    # Draws are draws to a comparison: of the generic methods one metric will do.
    compared = study.metrics[: 1 if fit.method in ("nuts", "svi") else 2]
    asked: Asks = {
        "result": lambda: str(fit.result),
        "objective": lambda: fit.elbo,
        "k_hat": lambda: _number(fit.k_hat() if fit.method == "cavi" else None),
        **{f"posterior {site}": lambda site=site: parts(fit.posterior)[site] for site in sites},
        "draws": lambda: _moments(fit),
        "summary": lambda: fit.summary()[["quantity", "mean"]],
        **{f"table {name}": lambda name=name: fit.table(name) for name in tables},
        **{f"evaluate {metric}": lambda metric=metric: _evaluated(fit, study, metric) for metric in study.metrics},
        **{f"compare {metric}": lambda metric=metric: _comparison(fit, study, metric) for metric in compared},
        "certainty": lambda: _score(cs.certainty(fit)),
        **_OF_KIND[study.kind](fit, study),
    }
    found: dict[str, Figure] = {}
    for ask, answer in asked.items():
        try:
            found |= {name: compact(value) for name, value in flat(answer(), ask).items()}
        except Exception as problem:  # the name of the error is the figure
            found[ask] = {"refused": type(problem).__name__}
    return found


def parts(posterior: Any) -> dict[str, Any]:
    """Return the parameters by site, those of a factor of the house by field, and what is hidden."""
    found: dict[str, Any] = {}
    for sites, factor in getattr(posterior, "factors", {}).items():
        if dataclasses.is_dataclass(factor):
            found |= {field.name: getattr(factor, field.name) for field in dataclasses.fields(factor)}
        else:
            found[sites] = posterior.value(sites)
    if isinstance(posterior, Estimate):
        found.update({site: posterior.value(site) for site in posterior.sites})
    return {**found, **posterior.hidden}


def _mean(values: Any) -> dict[str, np.ndarray]:
    """Return moments over chains and draws, ``(chain, draw, …)``."""
    values = np.asarray(values, float)
    return {"mean": values.mean((0, 1)), "sd": values.std((0, 1))}


def _moments(fit: Any) -> dict[str, Any]:
    """Return moments of all sites as they are exported."""
    group = fit.to_arviz()["posterior"]
    return {str(site): _mean(group[site].values) for site in group.data_vars}


def _evaluated(truth: Any, study: Study, metric: str) -> dict[str, Any]:
    found = _score(cs.evaluate(truth, next(iter(study.systems.values())), metric))
    if study.kind in ("partition", "views") and metric != study.metrics[0]:
        del found["items"]  # those of records are the same for all metrics
    return found


def _score(score: Any) -> dict[str, Any]:
    return {"value": score.value, "sd": score.sd, "point": _number(score.point), "items": np.asarray(score.items)}


def _count(count: Any) -> dict[str, Any]:
    return {"value": count.value, "sd": count.sd, "point": _number(count.point)}


def _comparison(fit: Any, study: Study, metric: str) -> dict[str, Any]:
    found = cs.compare(fit, study.systems, metric)
    table = found.table.drop(columns=["rank", "rank_by_point_estimate"], errors="ignore")
    if metric != study.metrics[0]:
        return {"table": table}
    return {"table": table, "pairs": found.pairs[["a", "b", "difference", "sd", "p_a_beats_b"]]}


def _agreement(fit: Any) -> dict[str, Any]:
    found = cs.agreement(fit)
    return {"value": found.value, "sd": found.sd, "observed": found.observed, "predictive": found.predictive.mean()}


def _number(value: Any) -> float | None:
    with contextlib.suppress(TypeError, ValueError):
        return float(value)
    return None


# What is asked of one kind of truth alone.


def _of_classes(fit: Any, study: Study) -> Asks:
    return {
        "certainty exact": lambda: _score(cs.certainty(fit, exact=True)),
        "certainty of two": lambda: _score(cs.certainty(fit, 2)),
        "next labels": lambda: cs.next_labels(fit),
        "agreement": lambda: _agreement(fit),
    }


def _of_chains(fit: Any, study: Study) -> Asks:
    return {"next labels": lambda: cs.next_labels(fit), "silver": lambda: np.asarray(cs.silver_chains(fit).entity)}


def _of_partition(fit: Any, study: Study) -> Asks:
    system = next(iter(study.systems.values()))
    records = list(study.data.records)
    return {
        "expected scores": lambda: cs.expected_scores(fit, system),
        "entities": lambda: _count(cs.num_entities(fit)),
        "entity probability": lambda: cs.entity_probability(fit, [records[:2], records[2:3], records[4:6]]),
    }


def _of_views(fit: Any, study: Study) -> Asks:
    return {
        "views": lambda: _count(fit.num_views()),
        **{f"view {metric}": lambda metric=metric: _evaluated(fit.partition(0), study, metric)
           for metric in study.metrics},
        **{f"expert {metric}": lambda metric=metric: _evaluated(fit.partition_of_expert("e0"), study, metric)
           for metric in study.metrics},
        "view compare": lambda: _comparison(fit.partition(0), study, study.metrics[0]),
    }  # fmt: skip


_OF_KIND = {"classes": _of_classes, "chains": _of_chains, "partition": _of_partition, "views": _of_views}
