r"""Metrics of one prediction against one draw of the truth, by name.

A metric is a pure function of one item and one draw: the draw's classes from the most plausible downwards ("truth"),
and the system's classes from its first choice downwards ("prediction"). What is lifted over items, draws and systems is
lifted elsewhere, by `jax.vmap`, so that adding a metric means writing one small function. Notation: $Y_j$ are the $j$
most plausible classes of the draw, $C_k$ the first $k$ classes of the prediction; a prediction may be shorter than $k$,
and then $C_k$ is all of it. An empty prediction scores 0.

All functions here take their depths from the shapes of their arguments. Codes below 0 never match: -1 stands after the
end of a list, -2 in a prediction is a class that the data do not know, which fills a place and is wrong.

References
----------
D. Stutz et al. Evaluating AI systems under uncertain ground truth: a case study in dermatology. arXiv:2307.02191
(2023), section 3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import jax.numpy as jnp

from consilience.arrays import Array, Bool, Float, Int
from consilience.errors import UnknownName
from consilience.evaluation.rank_distances import footrule_score, kendall_score

__all__ = ["METRIC_FORMS", "Metric", "resolve"]


# Class codes, best first: as many as the metric needs of a draw or of a prediction.
_Places = Int[Array, " _"]


@dataclass(frozen=True)
class Metric:
    """How one prediction is scored against one draw; pass your own wherever a name is accepted.

    Parameters
    ----------
    name : what a user types, "top-3".
    title : what tables and figures print, "top-3 accuracy".
    truth_depth : how many of the draw's classes the score needs, best first.
    prediction_depth : how many positions of the prediction the score needs.
    score : function of ``truth``, int32 ``(truth_depth,)``, -1 where the data have fewer classes, and ``prediction``,
        int32 ``(prediction_depth,)``, -1 after its end and -2 for a class unknown to the data. Returns a float scalar
        in [0, 1]. It has to work under `jax.jit` and `jax.vmap`.
    reference : where it is defined.
    tied_score : the same for a point estimate, which may tie classes: function of its ``classes`` and ``buckets``,
        int32 ``(place,)`` with -1 at the end, and ``prediction``. None where ties are broken by the lowest class code.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> metric = Metric("same-pair", "both first", 2, 2, lambda truth, prediction: jnp.all(truth == prediction) * 1.0)
    >>> float(metric.score(jnp.array([4, 1]), jnp.array([4, 1])))
    1.0
    """

    name: str
    title: str
    truth_depth: int
    prediction_depth: int
    score: Callable[[Array, Array], Array]
    reference: str = ""
    tied_score: Callable[[Array, Array, Array], Array] | None = None


def resolve(metric: str | Metric) -> Metric:
    """Return the metric of this name; a `Metric` is returned as it is.

    Parameters
    ----------
    metric : a name of one of the forms in `METRIC_FORMS`, such as "top-3", or a `Metric`.

    Returns
    -------
    Metric : the same object for the same name, so that compiled functions can be keyed by it.

    Raises
    ------
    UnknownName : the text lists the forms.

    Examples
    --------
    >>> resolve("top-3").title
    'top-3 accuracy'
    """
    return metric if isinstance(metric, Metric) else _parse(metric)


@cache
def _parse(name: str) -> Metric:
    for form, (_, build) in _FORMS.items():
        match = re.fullmatch(re.sub(r"\b[kj]\b", r"([1-9][0-9]*)", form), name, flags=re.ASCII)
        sizes = [int(size) for size in match.groups()] if match else []
        # Sizes come as k, j: more target classes than places could never all be found.
        if match and sizes == sorted(sizes, reverse=True):
            return build(*sizes)
    forms = "\n".join(f"  {form:20} {line}" for form, line in METRIC_FORMS.items())
    raise UnknownName(f"no metric is called {name!r}; write one of these with numbers for k and j, 1 or more:\n{forms}")


def _target_accuracy(truth: _Places, prediction: _Places) -> Float[Array, ""]:
    """Return whether all targets are predicted; the targets are all classes where there are fewer than targets."""
    found = jnp.any(_matches(truth, prediction), axis=1)
    return _as_float(jnp.all(found | (truth < 0)) & found[0])


def _set_accuracy(truth: _Places, prediction: _Places) -> Float[Array, ""]:
    return _as_float(_overlaps(truth, prediction)[-1] == 1)


def _overlap(truth: _Places, prediction: _Places) -> Float[Array, ""]:
    return _overlaps(truth, prediction)[-1]


def _average_overlap(truth: _Places, prediction: _Places) -> Float[Array, ""]:
    return jnp.mean(_overlaps(truth, prediction))


def _kendall(truth: _Places, prediction: _Places) -> Float[Array, ""]:
    return _kendall_tied(truth, jnp.arange(truth.shape[0]), prediction)


def _kendall_tied(truth: _Places, buckets: _Places, prediction: _Places) -> Float[Array, ""]:
    order = jnp.arange(prediction.shape[0])
    return _unless_empty(kendall_score(truth, buckets, prediction, order, at=order.size), truth, prediction)


def _footrule(truth: _Places, prediction: _Places) -> Float[Array, ""]:
    return _footrule_tied(truth, jnp.arange(truth.shape[0]), prediction)


def _footrule_tied(truth: _Places, buckets: _Places, prediction: _Places) -> Float[Array, ""]:
    order = jnp.arange(prediction.shape[0])
    return _unless_empty(footrule_score(truth, buckets, prediction, order, at=order.size), truth, prediction)


def _unless_empty(score: Float[Array, ""], truth: _Places, prediction: _Places) -> Float[Array, ""]:
    return jnp.where((truth[0] != -1) & (prediction[0] != -1), score, 0)


def _overlaps(truth: _Places, prediction: _Places) -> Float[Array, " size"]:
    """Return size(C_k intersected with Y_c) / c, c = size of C_k, for every k from 1 to the length of both."""
    places = jnp.arange(truth.shape[0])
    reached = jnp.where(_matches(truth, prediction), jnp.maximum(places[:, None], places[None, :]), places.size)
    # A class is in both sets of size c once c exceeds its worse place in the two lists.
    sizes = jnp.cumsum(prediction != -1)
    common = jnp.sum(jnp.min(reached, axis=1)[None, :] < sizes[:, None], axis=1)
    return common / jnp.maximum(sizes, 1)


def _matches(truth: _Places, prediction: _Places) -> Bool[Array, "target place"]:
    return (truth[:, None] == prediction[None, :]) & (truth[:, None] >= 0)


def _as_float(condition: Bool[Array, ""]) -> Float[Array, ""]:
    return jnp.asarray(condition, dtype=float)


_PAPER = "Stutz et al. 2023, arXiv:2307.02191"
_FAGIN = "Fagin et al. 2003, Comparing top k lists"
_Form = tuple[str, Callable[..., Metric]]

_FORMS: Mapping[str, _Form] = {
    "accuracy": (
        "the most plausible class is the first one predicted (top-1)",
        lambda: _parse("top-1"),
    ),
    "top-k": (
        "the most plausible class is among the first k predicted",
        lambda k: Metric(f"top-{k}", f"top-{k} accuracy", 1, k, _target_accuracy, f"{_PAPER}, equation 8"),
    ),
    "top-k-target-j": (
        "the j most plausible classes, j <= k, are all among the first k predicted",
        lambda k, j: Metric(
            f"top-{k}-target-{j}",
            f"top-{k} accuracy, {j} target{'s' if j > 1 else ''}",
            j,
            k,
            _target_accuracy,
            f"{_PAPER}, text before equation 7",
        ),
    ),
    "set-k": (
        "the first k predicted are, as a set, the k most plausible classes",
        lambda k: Metric(f"set-{k}", f"set-{k} accuracy", k, k, _set_accuracy, f"{_PAPER}, equation 9"),
    ),
    "overlap-k": (
        "share of the first k predicted that are among the k most plausible classes",
        lambda k: Metric(f"overlap-{k}", f"overlap@{k}", k, k, _overlap, f"{_PAPER}, equations 10 and 11"),
    ),
    "average-overlap-k": (
        "mean of overlap-1 to overlap-k",
        lambda k: Metric(
            f"average-overlap-{k}", f"average overlap@{k}", k, k, _average_overlap, f"{_PAPER}, equation 12"
        ),
    ),
    "ao-k": (
        "short for average-overlap-k",
        lambda k: _parse(f"average-overlap-{k}"),
    ),
    "kendall-k": (
        "1 - normalised Kendall distance (penalty 1/2) between the two ordered lists of k",
        lambda k: Metric(f"kendall-{k}", f"Kendall score@{k}", k, k, _kendall, f"{_FAGIN}, K^(1/2)", _kendall_tied),
    ),
    "footrule-k": (
        "1 - normalised footrule distance between the two ordered lists of k",
        lambda k: Metric(
            f"footrule-{k}", f"footrule score@{k}", k, k, _footrule, f"{_FAGIN}, F^(l), l = k + 1", _footrule_tied
        ),
    ),
}

METRIC_FORMS: Mapping[str, str] = MappingProxyType({form: line for form, (line, _) in _FORMS.items()})
"""What each form of name stands for, in one line; k and j are numbers."""
