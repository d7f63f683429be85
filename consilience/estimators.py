"""Estimators in the habits of crowd-kit and scikit-learn: options in the constructor, then ``fit`` and its outcome.

Each is a model of a crowd behind crowd-kit's calls. What is fitted is the `Fit` that `consilience.fit` returns; it is
kept in ``fit_``, with all the tables and intervals for which crowd-kit has no place. Nothing is imported of
scikit-learn, whose ``clone`` needs `get_params` and the constructor alone. They are no transformers: data are long
tables with one row per annotation, not a row per sample.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas

from consilience.data.accept import as_contract, own_ids
from consilience.data.annotations import Annotations
from consilience.data.cells import cell_text
from consilience.errors import InputError, InputProblem
from consilience.inference.fitting import Fit, fit
from consilience.models import dawid_skene, glad, mace, majority_vote, one_coin
from consilience.models.interface import Model, Table
from consilience.models.settings import unknown_option

_OF_A_RUN = {
    one.name: one.replace(kind=one.POSITIONAL_OR_KEYWORD if one.name == "method" else one.KEYWORD_ONLY)
    for one in sorted(inspect.signature(fit).parameters.values(), key=lambda one: one.name != "method")
    if one.kind is not one.VAR_KEYWORD and one.name not in ("model", "data", "truth", "read", "columns")
}
"""The options of `fit` that an estimator has too, ``method`` first: all that are not about which model and data."""


class Estimator:
    """A model of a crowd with the options of its fit; the base of all estimators.

    A subclass names its model, which takes annotations and has labels for its truth. The options are those of
    `consilience.fit` and the settings of the model, of which ``consilience models NAME`` and the signature tell. The
    constructor stores them as they are; values are checked by `fit`.

    Attributes
    ----------
    fit_ : the `Fit`. It and all that follow are there after `fit`; they have the user's own values of tasks, workers
        and labels where the data are a data frame, columns or rows, and texts where they are a file.
    labels_ : Series, task -> the most probable label; of equal ones the first in order.
    probas_ : DataFrame, task × label; rows add up to one.
    skills_ : Series, worker -> how often she is right.
    errors_ : DataFrame, (worker, label that is given) × true label; each worker's columns add up to one. This is the
        transpose of ``fit_.confusion()``, and has rows of labels that the worker never gave too. Only of models with a
        table ``confusion``.
    priors_ : Series, label -> its share of the tasks. Only of models with a table ``prevalence``.
    """

    _model: ClassVar[Model]
    _other_defaults: ClassVar[Mapping[str, Any]] = {}  # where crowd-kit's habit differs from the model's
    _options: ClassVar[dict[str, inspect.Parameter]] = {}

    def __init_subclass__(cls) -> None:
        cls._options = dict(_OF_A_RUN)
        for one in cls._model.settings.fields():
            default = cls._other_defaults.get(one.name, one.default)
            cls._options[one.name] = inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=default)
        cls.__signature__ = inspect.Signature(list(cls._options.values()))  # type: ignore[attr-defined]

    def __init__(self, method: str = "auto", **settings: Any) -> None:
        self._check_names(settings)
        given = {"method": method, **settings}
        vars(self).update({name: given.get(name, one.default) for name, one in self._options.items()})

    def __repr__(self) -> str:
        told = [
            f"{name}={value!r}" for name, value in self.get_params().items()
            if repr(value) != repr(self._options[name].default)
        ]  # fmt: skip
        return f"{type(self).__name__}({', '.join(told)})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options by name; ``deep`` changes nothing, as no option is an estimator."""
        return {name: getattr(self, name) for name in self._options}

    def set_params(self, **settings: Any) -> Self:
        """Set options by name, and return the estimator; what was fitted stays until `fit` is called.

        Raises
        ------
        UnknownName : there is no such option.
        """
        self._check_names(settings)
        vars(self).update(settings)
        return self

    def _check_names(self, settings: Mapping[str, Any]) -> None:
        for name in settings:
            if name not in self._options:
                raise unknown_option(name, type(self).__name__, self._options)

    def fit(self, data: Any, true_labels: Mapping[Any, Any] | pandas.Series | None = None) -> Self:
        """Infer the labels, and return the estimator.

        Parameters
        ----------
        data : a data frame with the columns ``task``, ``worker``, ``label`` or ``item``, ``annotator``, ``label``; its
            other columns of annotations, such as ``weight`` and ``gold``, count too. Or anything else that
            `read_annotations` reads, or what it returns where columns have other names.
        true_labels : task -> known label, for some tasks. They are taken for true in this fit, as ``gold="use"`` does,
            in the place of a column ``gold``. Tasks that nobody annotated are left out.

        Raises
        ------
        InputError : the data cannot be read, or a true label is none that was given to some task.
        UnknownName, UnsupportedRequest : as `consilience.fit`.
        """
        options = self.get_params()
        annotations = as_contract(data, Annotations, whose=type(self).__name__)
        if true_labels is not None:
            annotations, options["gold"] = _with_gold(annotations, true_labels), "use"
        found = fit(self._model, annotations, **options)
        for name in [name for name in vars(self) if name.endswith("_")]:
            del vars(self)[name]  # what an earlier fit left
        self._ids = {dimension: pandas.Index(ids) for dimension, ids in own_ids(data, annotations).items()}
        self.fit_ = found
        return self

    def fit_predict(self, data: Any, true_labels: Mapping[Any, Any] | pandas.Series | None = None) -> pandas.Series:
        """Return ``labels_`` after `fit`, which see."""
        return self.fit(data, true_labels).labels_

    def fit_predict_proba(
        self, data: Any, true_labels: Mapping[Any, Any] | pandas.Series | None = None
    ) -> pandas.DataFrame:
        """Return ``probas_`` after `fit`, which see."""
        return self.fit(data, true_labels).probas_

    # ---- the outcome, in crowd-kit's shapes

    fit_: Fit
    _ids: dict[str, pandas.Index]

    @functools.cached_property
    def labels_(self) -> pandas.Series:
        """The most probable label of each task."""
        found = self._columns("labels", "label")
        tasks = self._index("item", "task")[found["item"]]
        return pandas.Series(self._ids["label"][found["label"]], index=tasks, name="agg_label")

    @functools.cached_property
    def probas_(self) -> pandas.DataFrame:
        """The probability of each label of each task."""
        truth: Any = self.fit_.truth
        found = truth.label_probabilities()
        dense = np.zeros((len(self._ids["item"]), len(self._ids["label"])))
        dense[found.unit, found.code] = found.probability
        return pandas.DataFrame(dense, index=self._index("item", "task"), columns=self._index("label", "label"))

    @functools.cached_property
    def skills_(self) -> pandas.Series:
        """How often each worker is right."""
        found = self._columns("annotators", "accuracy")
        workers = self._index("annotator", "worker")[found["annotator"]]
        return pandas.Series(found["accuracy"], index=workers, name="skill")

    @functools.cached_property
    def errors_(self) -> pandas.DataFrame:
        """How probably each worker gives each label, by the true label."""
        found = self._columns("confusion", "probability")
        workers, labels = self._ids["annotator"], self._ids["label"]
        dense = np.zeros((len(workers), len(labels), len(labels)))
        dense[found["annotator"], found["label"], found["true_label"]] = found["probability"]
        index = pandas.MultiIndex.from_product([workers, labels], names=["worker", "label"])
        return pandas.DataFrame(dense.reshape(-1, len(labels)), index=index, columns=labels)

    @functools.cached_property
    def priors_(self) -> pandas.Series:
        """The share of each label among the tasks."""
        found = self._columns("prevalence", "share")
        return pandas.Series(found["share"], index=self._index("label", "label")[found["label"]], name="prior")

    def _columns(self, table: str, value: str) -> dict[str, np.ndarray]:
        """Return a table of the fit in codes; AttributeError where there is no fit, or no table with this column."""
        named = {one.name: one.columns for one in self.fit_.member.tables if isinstance(one, Table)}
        if value not in {column.name for column in named.get(table, ())}:
            raise AttributeError(f"{table}: {value}")
        return self.fit_.table_columns(table, codes=True)

    def _index(self, dimension: str, name: str) -> pandas.Index:
        return self._ids[dimension].rename(name)

    if not TYPE_CHECKING:  # so that static tools know of a misspelt name

        def __getattr__(self, name: str) -> Any:
            # Of names that do not exist, and of properties for which there is no fit or no table.
            kind, of_fits = type(self).__name__, isinstance(getattr(type(self), name, None), functools.cached_property)
            if name == "fit_" or (of_fits and "fit_" not in vars(self)):
                # Where scikit-learn is there its own error, which is an AttributeError too.
                error = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", AttributeError)
                raise error(f"this {kind} is not fitted, and has no {name}; call its fit(data) first")
            why = ": its model says nothing of the kind" if of_fits else ""
            raise AttributeError(f"{kind} has no attribute {name!r}{why}")


def _with_gold(annotations: Annotations, true_labels: Mapping[Any, Any] | pandas.Series) -> Annotations:
    """Return annotations with these gold labels in the place of their own."""
    items, labels = ({text: code for code, text in enumerate(one)} for one in (annotations.items, annotations.labels))
    gold = np.full(annotations.num_items, -1, np.int32)
    for task, label in true_labels.items():
        item, text = items.get(cell_text(task)[0]), cell_text(label)[0]
        if item is None or not text:
            continue
        if text not in labels:
            remedy = "give it in a column 'gold' of the data, which may hold labels that nobody gave"
            raise InputError(InputProblem("nobody gave this true label to any task", remedy, value=text))
        gold[item] = labels[text]
    return annotations.replace(gold=gold)


class DawidSkene(Estimator):
    """Dawid and Skene's model, its `probas_` tempered for workers who err together; ``dependence=0`` leaves that out.

    Each worker has a confusion matrix. crowd-kit's labels are those of ``method="em"``; see `Estimator` for what there
    is after `fit`.

    Examples
    --------
    >>> import consilience as cs
    >>> model = cs.DawidSkene().fit(cs.load("dawid-skene-1979"))
    >>> model.labels_[["1", "2", "5"]].tolist()
    ['1', '3', '2']
    >>> model.probas_.shape, model.errors_.loc["2"].shape
    ((45, 4), (4, 4))
    """

    _model = dawid_skene.MODEL


class MACE(Estimator):
    """Workers who know or guess, its `probas_` tempered for those who err together; ``dependence=0`` leaves that out.

    ``skills_`` are shares of right labels, guesses that hit included; how often a worker knows the label is
    ``fit_.annotators()["competence"]``. See `Estimator` for what there is after `fit`.

    Examples
    --------
    >>> import consilience as cs
    >>> model = cs.MACE(seed=1)
    >>> model
    MACE(seed=1)
    >>> model.fit_predict(cs.load("dawid-skene-1979")).value_counts().index[0]
    '2'
    """

    _model = mace.MODEL


class OneCoin(Estimator):
    """Workers of one accuracy each, its `probas_` tempered for those who err together; ``dependence=0`` does not.

    crowd-kit's ``OneCoinDawidSkene``, whose ``skills_`` are these accuracies. It knows no worker who leans to one
    label; `DawidSkene` does. See `Estimator` for what there is after `fit`.

    Examples
    --------
    >>> import consilience as cs
    >>> model = cs.OneCoin().fit(cs.load("dawid-skene-1979"))
    >>> model.skills_.index.tolist()
    ['1', '2', '3', '4', '5']
    """

    _model = one_coin.MODEL


class GLAD(Estimator):
    """Able workers and difficult tasks, its `probas_` tempered for workers who err together; ``dependence=0`` does not.

    crowd-kit's ``alphas_`` are in ``fit_.annotators()`` and its ``betas_`` in ``fit_.items()``, with intervals. See
    `Estimator` for what there is after `fit`.

    Examples
    --------
    >>> import consilience as cs
    >>> model = cs.GLAD().fit(cs.load("dawid-skene-1979"))
    >>> model.probas_.shape
    (45, 4)
    """

    _model = glad.MODEL


class MajorityVote(Estimator):
    """The label that most workers gave; `probas_` are shares of the votes, never tempered, as by ``dependence=0``.

    Unlike the model, ``uncertainty`` is "shares" here, as crowd-kit has it. Three workers who agree have the
    probability one, whoever they are. See `Estimator` for what there is after `fit`.

    Examples
    --------
    >>> import consilience as cs
    >>> votes = {"task": ["a", "a", "a", "b"], "worker": [1, 2, 3, 1], "label": ["cat", "dog", "cat", "dog"]}
    >>> cs.MajorityVote().fit_predict_proba(votes).round(3).loc["a"].to_dict()
    {'cat': 0.667, 'dog': 0.333}
    """

    _model = majority_vote.MODEL
    _other_defaults: ClassVar[Mapping[str, Any]] = {"uncertainty": "shares"}
