"""How often annotators agree: the sparse probability of agreement, and the coefficients that people compare it to.

`agreement` is the front; what it returns computes its tables from the files below, each of which can be used alone.

| file | what it holds |
|---|---|
| `counts` | label counts of items from columns of codes, 10⁸ of them |
| `weighting` | how much an item counts, by its number of annotations |
| `sparse_probability` | SPA, by label too, and whether weights may be used |
| `jackknife` | standard errors, and intervals of shares |
| `annotators` | annotators as random, one by one, and in pairs |
| `bayesian_bootstrap` | intervals of coefficients |
| `chance`, `coefficients` | corrections for chance: kappa, Fleiss, Conger, Cohen, Scott, AC1, alpha |
| `monitoring`, `planning` | while annotations arrive, and before more are bought |
| `posterior` | agreement as draws of the truth imply it |
| `result` | what `agreement` returns |

References
----------
J. Nørregaard and L. Derczynski. Sparse probability of agreement. arXiv:2208.06161 (2022).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from consilience.data.accept import as_contract, is_source
from consilience.data.annotations import Annotations
from consilience.data.mentions import Mentions
from consilience.data.problems import check_option
from consilience.data.rankings import Rankings
from consilience.data.ratings import Ratings
from consilience.errors import UnsupportedRequest
from consilience.evaluation.agreement.counts import LabelCounts, rows_of
from consilience.evaluation.agreement.jackknife import check_level
from consilience.evaluation.agreement.posterior import PosteriorAgreement, posterior_agreement
from consilience.evaluation.agreement.result import TABLES, Agreement
from consilience.evaluation.agreement.weighting import SCHEMES, check_scheme, weight_function
from consilience.models.truth import CLASSES, Truth, truth_of
from consilience.notes import Remedy

__all__ = ["SCHEMES", "TABLES", "Agreement", "LabelCounts", "PosteriorAgreement", "agreement"]


def agreement(
    source: Any,
    weights: str = "annotations_m1",
    *,
    columns: Mapping[str, str] | None = None,
    read: Mapping[str, Any] | None = None,
    annotators: str = "fixed",
    shares: Any = None,
    values: Any = None,
    ordinal: bool = False,
    level: float = 0.95,
    duplicates: str = "error",
    first: int | None = None,
    num_predictive: int = 200,
    most_simulated: int | None = None,
    seed: int = 0,
    exact: bool | None = None,
) -> Any:
    """Measure how often annotators agree.

    Parameters
    ----------
    source : path, data frame, dict of columns or list of rows
        Annotations or mentions, or a table of them that their reader takes as it is; or `LabelCounts`, for columns too
        large to be anything else; or a fit (or `Truth`) of plausibilities, for the agreement that its draws imply.
    weights : str, default "annotations_m1"
        How much an item counts by its number of annotations: ``flat``, ``annotations``, ``annotations_m1``, ``edge``,
        ``inv_var`` (the same as ``edge``), ``inv_var_class``, or ``exch``, which knows that items differ and wants a
        few hundred of them. `flat` is always reported beside it.
    columns : dict of str to str, optional
        Names of columns of a table that is not read yet, such as ``{"item": "row_id"}``.
    read : dict of str to Any, optional
        How else it is read, such as ``{"layout": "wide"}``; keywords of the reader.
    annotators : str, default "fixed"
        ``fixed``, the standard error over items, for what these annotators do; or ``random``, over items and
        annotators, for what annotators like these would do. The second can be ten times as large.
    shares : array, optional
        Class distribution for ``inv_var_class``, shape ``(label,)``; the pooled shares by default.
    values : array, str or dict, optional
        Numbers that the labels stand for, shape ``(label,)``, or ``labels`` where they are numbers themselves; for
        Krippendorff's alpha on an ordinal, interval or ratio scale. A mapping gives them by label.
    ordinal : bool, default False
        Whether the labels have an order, that in which they are listed, for alpha on an ordinal scale. Read words with
        ``labels=`` in their order, or they are in that of the alphabet.
    level : float, default 0.95
        Of the intervals.
    duplicates : str, default "error"
        What to do when an annotator labels an item again: "error" refuses, "first" keeps the first, "keep" counts every
        row.
    first : int, optional
        Measure the first so many annotations of each item alone, rows being in order of arrival. Where further ones
        were asked for because the first differed, these are the ones that say how often annotators agree.
    exact : bool, optional
        Of a fit, whether in closed form, which is the default where there is one; False takes draws.
    num_predictive, seed : int
        Of a fit: how many data sets are drawn from the posterior predictive, and from which seed.
    most_simulated : int, optional
        Annotations, in all these data sets; of more, labels are checked on some items taken at random.

    Returns
    -------
    Agreement or PosteriorAgreement
        The second of a fit.

    Raises
    ------
    UnsupportedRequest : for repeated annotations, weights that are not whole numbers, or what the source does not hold
        or has no meaning for it.
    UnknownName : for a name of weights or a policy that there is none of.

    Examples
    --------
    >>> import consilience as cs
    >>> found = cs.agreement(cs.load("dawid-skene-1979"), duplicates="first")
    >>> bool(found.interval[0] < found.value < found.interval[1])
    True
    """
    settings: dict[str, Any] = {
        "weights": weights, "annotators": annotators, "shares": shares, "values": values, "ordinal": ordinal,
        "level": level,
    }  # fmt: skip
    asked = settings | {"duplicates": duplicates, "first": first}
    usual = inspect.signature(agreement).parameters
    told = {name: value for name, value in asked.items() if not (np.isscalar(value) or value is None)}
    told |= {name: value for name, value in asked.items() if name not in told and value != usual[name].default}
    if isinstance(source, LabelCounts):
        return Agreement(source, told=told, **settings)
    if is_source(source) or columns is not None or read:
        source = as_contract(source, Annotations, Mentions, duplicates=duplicates, read=read, columns=columns)
    told |= {"file": name} if (name := getattr(source, "file", "")) else {}
    annotations = _annotations_of(source)
    if annotations is not None:
        kept = _first_annotations(_without_repeats(annotations, duplicates), first)
        return Agreement(LabelCounts.of_annotations(kept), kept, told=told, **settings)
    if isinstance(source, Ratings):
        text = "ratings are numbers; give their table, with {columns} and {values}, for Krippendorff's alpha"
        raise UnsupportedRequest(text, Remedy("columns", {"label": "rating"}), Remedy("values", "labels"))
    if isinstance(source, Rankings):
        raise UnsupportedRequest(
            "the agreement of Rankings is not that of labels; see annotator_agreement and annotator_overlap, or give a "
            "fit of them"
        )
    if not isinstance(source, Truth) and not hasattr(source, "truth"):
        raise UnsupportedRequest(
            f"agreement is measured of annotations or of a fit, not of {type(source).__name__}; give a table that "
            "read_annotations takes"
        )
    _refuse_for_fit(
        weights, level, annotators=annotators != "fixed", values=values is not None, ordinal=ordinal,
        first=first is not None, duplicates=duplicates != "error",
    )  # fmt: skip
    annotations = _annotations_of(getattr(source, "data", None))
    # Weights that are no numbers of annotations cannot be annotated again: nothing is checked.
    checked = annotations is not None and not (np.asarray(annotations.weight) % 1).any()
    counts = LabelCounts.of_annotations(annotations) if checked else None
    weight = None if counts is None else weight_function(weights, counts, shares)
    truth: Any = truth_of(source).read_as(CLASSES.name)
    return posterior_agreement(
        truth, counts, weight, scheme=weights, num_predictive=num_predictive, most_simulated=most_simulated,
        seed=seed, level=level, exact=exact,
    )  # fmt: skip


def _annotations_of(given: Any) -> Any:
    """Return annotations, those of mentions with a label's antecedent as part of it; None of anything else."""
    given = given.to_annotations() if isinstance(given, Mentions) else given
    return given if isinstance(given, Annotations) else None


def _refuse_for_fit(weights: str, level: float, **given: bool) -> None:
    """Refuse what makes no sense of a fit; ``given`` says which options of annotations were."""
    check_scheme(weights)
    check_level(level)
    if meaningless := [name for name, is_given in given.items() if is_given]:
        raise UnsupportedRequest(f"no meaning for a fit: {', '.join(meaningless)}; give the annotations instead")


def _without_repeats(annotations: Annotations, duplicates: str) -> Annotations:
    """Apply the policy for annotators who label an item again."""
    check_option("duplicates", duplicates, ("error", "first", "keep"))
    item, annotator = np.asarray(annotations.item), np.asarray(annotations.annotator)
    if duplicates == "keep" or (annotator < 0).any():
        return annotations
    pair = item.astype(np.int64) * annotations.num_annotators + annotator
    _, first = np.unique(pair, return_index=True)
    # A row of weight 2 is an annotator who said the same twice.
    heavy = np.flatnonzero(np.asarray(annotations.weight) > 1)
    repeats = len(pair) - len(first) + len(heavy)
    if not repeats:
        return annotations
    if duplicates == "error":
        place = np.concatenate([np.setdiff1d(np.arange(len(pair)), first), heavy])[0]
        items, names = annotations.items, annotations.annotators
        whose = f"annotator {annotator[place] if names is None else repr(names[annotator[place]])}"
        what = f"item {item[place] if items is None else repr(items[item[place]])}"
        raise UnsupportedRequest(
            f"{repeats:,} annotations repeat an annotator on an item (the first: {whose} on {what}), who would agree "
            "with herself; pass {duplicates} to keep the first of each, or {duplicates} to count every row",
            Remedy("duplicates", "first"), Remedy("duplicates", "keep"),
        )  # fmt: skip
    kept = rows_of(annotations, np.sort(first))
    return kept.replace(weight=np.minimum(kept.weight, 1.0))


def _first_annotations(annotations: Annotations, first: int | None) -> Annotations:
    """Keep the first so many annotations of each item."""
    if first is None:
        return annotations
    if first < 2:
        raise UnsupportedRequest(f"first is {first}; give a whole number, 2 or more: one annotation agrees with nobody")
    if (np.asarray(annotations.annotator) < 0).any() or (np.asarray(annotations.weight) != 1).any():
        raise UnsupportedRequest("first needs one row per annotation, in order of arrival; only counts are at hand")
    item = np.asarray(annotations.item)
    order = np.argsort(item, kind="stable")
    place = np.arange(len(item)) - np.searchsorted(item[order], item[order])
    return rows_of(annotations, np.sort(order[place < first]))
