"""Estimators in the habits of crowd-kit and scikit-learn: options in the constructor, then ``fit`` and its outcome.

Each is a model behind crowd-kit's calls. What is fitted is the `Fit` that `consilience.fit` or `link` returns; it is
kept in ``fit_``, with all the tables and intervals for which crowd-kit has no place. Nothing is imported of
scikit-learn, whose ``clone`` needs `get_params` and the constructor alone. They are no transformers: data are long
tables with one row per annotation, not a row per sample.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas

from consilience.data.accept import as_contract, own_ids
from consilience.data.annotations import Annotations
from consilience.data.cells import cell_text
from consilience.errors import InputError, InputProblem, UnsupportedRequest
from consilience.inference.fitting import Fit, fit
from consilience.linking import link
from consilience.models import (
    block_linkage,
    dawid_skene,
    dirichlet,
    glad,
    mace,
    majority_vote,
    mpa,
    one_coin,
    plackett_luce,
)
from consilience.models.interface import Model, Table
from consilience.models.settings import unknown_option
from consilience.models.truth.classes import label_masses

_NO_OPTIONS = ("model", "data", "sources", "truth", "read", "settings")
"""What functions that fit a model take and an estimator does not: what is about which model and data."""


class Estimator:
    """A model with the options of its fit; the base of all estimators.

    A subclass names its model. The options are those of the function that fits it and the settings of the model, of
    which ``consilience models NAME`` and the signature tell. The constructor stores them as they are; values are
    checked by `fit`.

    Attributes
    ----------
    fit_ : the `Fit`. It and all that follow are there after `fit`.
    labels_ : Series; what is most probably true of each task or record.
    loss_history_ : list of float; the objective after each step that climbs it, by the number of rows. It is
        crowd-kit's, and rises in spite of the name. Only of methods that climb: cavi, em and svi.
    """

    _model: ClassVar[Model]
    _calls: ClassVar[tuple[Callable[..., Fit], ...]] = (fit,)  # whose keywords are options, the later ones' defaults
    _other_defaults: ClassVar[Mapping[str, Any]] = {}  # where crowd-kit's habit differs from the model's
    _options: ClassVar[dict[str, inspect.Parameter]] = {}

    def __init_subclass__(cls) -> None:
        if "_model" not in vars(cls):
            return
        named = (one for call in cls._calls for one in inspect.signature(call).parameters.values())
        without = _NO_OPTIONS if Annotations in cls._model.takes else (*_NO_OPTIONS, "annotator_groups")
        without = without if link in cls._calls else (*without, "columns")
        keyword = inspect.Parameter.KEYWORD_ONLY
        found = {one.name: one.replace(kind=keyword) for one in named if one.name not in without}
        for one in cls._model.settings.fields():
            default = cls._other_defaults.get(one.name, one.default)
            found[one.name] = inspect.Parameter(one.name, keyword, default=default)
        first = found.pop("method").replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
        cls._options = {"method": first, **found}
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
        """Infer what is true, and return the estimator.

        Parameters
        ----------
        data : what the model takes, as its reader returns it or reads it. Of annotations a data frame with the columns
            ``task``, ``worker``, ``label`` or ``item``, ``annotator``, ``label``; its other columns of annotations,
            such as ``weight`` and ``gold``, count too. Of rankings with ``item``, ``annotator``, ``class``, ``rank``;
            of records what `link` takes.
        true_labels : task -> known label, for some tasks, of models with an option ``gold``. They are taken for true
            in this fit, as ``gold="use"`` does, in the place of a column ``gold``. Tasks that nobody annotated are left
            out.

        Raises
        ------
        InputError : the data cannot be read, or a true label is none that was given to some task.
        UnknownName, UnsupportedRequest : as of the function that fits; or the model takes no label as known.
        """
        options = self.get_params()
        if true_labels is not None and "gold" not in options:
            raise UnsupportedRequest(f"{type(self).__name__} takes no label as known; leave out true_labels")
        found, ids = self._fitted(data, true_labels, options)
        for name in [name for name in vars(self) if name.endswith("_")]:
            del vars(self)[name]  # what an earlier fit left
        self._ids, self.fit_ = ids, found
        return self

    def fit_predict(self, data: Any, true_labels: Mapping[Any, Any] | pandas.Series | None = None) -> pandas.Series:
        """Return ``labels_`` after `fit`, which see."""
        return self.fit(data, true_labels).labels_

    # ---- the outcome

    fit_: Fit
    _ids: dict[str, pandas.Index]

    def _fitted(self, data: Any, true_labels: Any, options: dict[str, Any]) -> tuple[Fit, dict[str, pandas.Index]]:
        """Return the fit, and the user's own ids by dimension."""
        raise NotImplementedError

    @property
    def labels_(self) -> pandas.Series:
        """What is most probably true of each task or record."""
        raise NotImplementedError

    @property
    def loss_history_(self) -> list[float]:
        """The objective after each step, by the number of rows."""
        if self.fit_.elbo is None:
            raise AttributeError("loss_history_")
        return list((np.asarray(self.fit_.elbo, float) / len(self.fit_.data)).tolist())

    if not TYPE_CHECKING:  # so that static tools know of a misspelt name

        def __getattr__(self, name: str) -> Any:
            # Of names that do not exist, and of properties for which there is no fit, no table or no objective.
            own = getattr(type(self), name, None)
            kind, of_fits = type(self).__name__, isinstance(own, property | functools.cached_property)
            if name == "fit_" or (of_fits and "fit_" not in vars(self)):
                # Where scikit-learn is there its own error, which is an AttributeError too.
                error = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", AttributeError)
                raise error(f"this {kind} is not fitted, and has no {name}; call its fit(data) first")
            why = ": its model or its method says nothing of the kind" if of_fits else ""
            raise AttributeError(f"{kind} has no attribute {name!r}{why}")


class Aggregator(Estimator):
    """A model of classes of tasks, as annotators name or rank them, in crowd-kit's shapes; see `Estimator`.

    Attributes
    ----------
    labels_ : Series, task -> the most probable label; of equal ones the first in order. This and all that follow have
        the user's own values of tasks, workers and labels where the data are a data frame, columns or rows, and texts
        where they are a file.
    probas_ : DataFrame, task × label; rows add up to one. Of plausibilities their means.
    skills_ : Series, worker -> how often she is right. Only of models with accuracies.
    errors_ : DataFrame, (worker, label that is given) × true label; each worker's columns add up to one. This is the
        transpose of ``fit_.confusion()``, and has rows of labels that the worker never gave too. Only of models with a
        table ``confusion``.
    priors_ : Series, label -> its share of the tasks. Only of models with a table ``prevalence``.
    """

    def _fitted(self, data: Any, true_labels: Any, options: dict[str, Any]) -> tuple[Fit, dict[str, pandas.Index]]:
        taken = as_contract(data, self._model.takes[0], whose=type(self).__name__)
        if true_labels is not None:
            taken, options["gold"] = _with_gold(taken, true_labels), "use"
        ids = {dimension: pandas.Index(values) for dimension, values in own_ids(data, taken).items()}
        return fit(self._model, taken, **options), {**ids, "label": ids.get("label", ids["class"])}

    def fit_predict_proba(
        self, data: Any, true_labels: Mapping[Any, Any] | pandas.Series | None = None
    ) -> pandas.DataFrame:
        """Return ``probas_`` after `fit`, which see."""
        return self.fit(data, true_labels).probas_

    @functools.cached_property
    def labels_(self) -> pandas.Series:
        """The most probable label of each task."""
        found = self._columns("labels", "label")
        tasks = self._index("item", "task")[found["item"]]
        return pandas.Series(self._ids["label"][found["label"]], index=tasks, name="agg_label")

    @functools.cached_property
    def probas_(self) -> pandas.DataFrame:
        """The probability of each label of each task, or its mean plausibility."""
        truth: Any = self.fit_.truth
        tasks, labels = self._index("item", "task"), self._index("label", "label")
        return pandas.DataFrame(label_masses(truth), index=tasks, columns=labels)

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


class DawidSkene(Aggregator):
    """Dawid and Skene's model, its `probas_` tempered for workers who err together; ``dependence=0`` leaves that out.

    Each worker has a confusion matrix. crowd-kit's labels are those of ``method="em"``; see `Aggregator` for what there
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


class MACE(Aggregator):
    """Workers who know or guess, its `probas_` tempered for those who err together; ``dependence=0`` leaves that out.

    ``skills_`` are shares of right labels, guesses that hit included; how often a worker knows the label is
    ``fit_.annotators()["competence"]``. See `Aggregator` for what there is after `fit`.

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


class OneCoin(Aggregator):
    """Workers of one accuracy each, its `probas_` tempered for those who err together; ``dependence=0`` does not.

    crowd-kit's ``OneCoinDawidSkene``, whose ``skills_`` are these accuracies. It knows no worker who leans to one
    label; `DawidSkene` does. See `Aggregator` for what there is after `fit`.

    Examples
    --------
    >>> import consilience as cs
    >>> model = cs.OneCoin().fit(cs.load("dawid-skene-1979"))
    >>> model.skills_.index.tolist()
    ['1', '2', '3', '4', '5']
    """

    _model = one_coin.MODEL


class GLAD(Aggregator):
    """Able workers and difficult tasks, its `probas_` tempered for workers who err together; ``dependence=0`` does not.

    crowd-kit's ``alphas_`` are in ``fit_.annotators()`` and its ``betas_`` in ``fit_.items()``, with intervals. See
    `Aggregator` for what there is after `fit`.

    Examples
    --------
    >>> import consilience as cs
    >>> model = cs.GLAD().fit(cs.load("dawid-skene-1979"))
    >>> model.probas_.shape
    (45, 4)
    """

    _model = glad.MODEL


class MajorityVote(Aggregator):
    """The label that most workers gave; `probas_` are shares of the votes, never tempered, as by ``dependence=0``.

    Unlike the model, ``uncertainty`` is "shares" here, as crowd-kit has it. Three workers who agree have the
    probability one, whoever they are. See `Aggregator` for what there is after `fit`.

    Examples
    --------
    >>> import consilience as cs
    >>> votes = {"task": ["a", "a", "a", "b"], "worker": [1, 2, 3, 1], "label": ["cat", "dog", "cat", "dog"]}
    >>> cs.MajorityVote().fit_predict_proba(votes).round(3).loc["a"].to_dict()
    {'cat': 0.667, 'dog': 0.333}
    """

    _model = majority_vote.MODEL
    _other_defaults: ClassVar[Mapping[str, Any]] = {"uncertainty": "shares"}


class MPA(Aggregator):
    """Workers with a sensitivity and a specificity for each kind of label, for labels of an open list.

    Not every worker has to know of every label. Workers have no accuracy here, hence no ``skills_``; what they have is
    ``fit_.annotators()``. See `Aggregator` for what there is after `fit`.

    Examples
    --------
    >>> import consilience as cs
    >>> cs.MPA().fit_predict(cs.load("dawid-skene-1979"))[["1", "2", "5"]].tolist()
    ['1', '3', '2']
    """

    _model = mpa.MODEL


class Dirichlet(Aggregator):
    """Plausibilities of single labels, of workers who may have no names; ``reliability`` says how much labels count.

    ``probas_`` are mean plausibilities: shares of votes with a little of each label, never tempered. How certain a
    label is to be the most plausible is ``fit_.labels()["certainty"]``. See `Aggregator` for what there is after `fit`.

    Examples
    --------
    >>> import consilience as cs
    >>> votes = {"task": ["a", "a", "a", "b"], "worker": [1, 2, 3, 1], "label": ["cat", "dog", "cat", "dog"]}
    >>> cs.Dirichlet().fit_predict_proba(votes).round(3).loc["a"].to_dict()
    {'cat': 0.619, 'dog': 0.381}
    """

    _model = dirichlet.MODEL


class PlackettLuce(Aggregator):
    """Plausibilities of the classes of tasks from rankings, which may be partial and have ties.

    Data are a data frame with the columns ``item``, ``annotator``, ``class`` and ``rank``, or what `read_rankings`
    reads or returns. ``labels_`` is the class that is first most often, and ``probas_`` are mean plausibilities. See
    `Aggregator` for what there is after `fit`.

    Examples
    --------
    >>> import consilience as cs
    >>> reports = {"item": ["a"] * 4, "annotator": [1, 1, 2, 2], "class": ["flu", "cold"] * 2, "rank": [1, 2, 1, 2]}
    >>> cs.PlackettLuce("em").fit_predict(reports).to_dict()
    {'a': 'flu'}
    """

    _model = plackett_luce.MODEL


class Linker(Estimator):
    """Which records are of one entity; options and data are those of `link`.

    ``labels_`` is a Series, record -> entity, with the names that ``fit_.entities()`` has for both: texts.

    Examples
    --------
    >>> import consilience as cs
    >>> people = {
    ...     "id": list("abcdefgh"),
    ...     "name": ["Ann", "Ann", "Bob", "Bob", "Cid", "Dan", "Eve", "Fay"],
    ...     "born": [1980, 1980, 1975, 1975, 1990, 1991, 1960, 1944],
    ...     "town": ["Ulm", "Ulm", "Bonn", "Bonn", "Ulm", "Bonn", "Ulm", "Bonn"],
    ... }
    >>> cs.Linker().fit_predict(people).tolist()
    ['a', 'a', 'c', 'c', 'e', 'f', 'g', 'h']
    """

    _model = block_linkage.MODEL
    _calls = (fit, link)

    def _fitted(self, data: Any, true_labels: Any, options: dict[str, Any]) -> tuple[Fit, dict[str, pandas.Index]]:
        return link(data, **options), {}

    @functools.cached_property
    def labels_(self) -> pandas.Series:
        """The entity of each record."""
        found = self.fit_.table_columns("entities")
        return pandas.Series(found["entity"], index=pandas.Index(found["record"], name="record"), name="entity")
