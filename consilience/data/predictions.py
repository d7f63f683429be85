"""Predictions: what a system says of each item, as an ordered list of classes."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consilience.data.cells import Table, is_missing, number
from consilience.data.codes import (
    Names,
    as_array,
    as_names,
    compact,
    names_or_codes,
    recode,
    repeated,
    sorted_names,
)  # fmt: skip
from consilience.data.columns import CLASS, ITEM, Column, choose_columns
from consilience.data.contract import Contract, array, ids, of_file, size
from consilience.data.files import name_of
from consilience.data.policies import filled_rows, keep_repeated, known_rows, require_rows
from consilience.data.problems import Problems, check_option, counted, warn_input
from consilience.data.tables import read_table
from consilience.errors import InputError, UnsupportedRequest
from consilience.notes import Remedy


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Predictions(Contract):
    """Ordered lists of classes, one per item; made by `read_predictions`, `from_scores` or `from_lists`.

    Parameters
    ----------
    ranked : int32, shape ``(item, position)``
        Class codes, best first, -1 after the end of a shorter list. Scores or ranks that are equal are ordered by the
        lowest class code. -2 stands for a class that a data set does not have (`align`), which is never true.
    probability : float32, shape ``(item, position)``
        What the system gives each of these classes, 0 after the end of a list. An item sums to 1, or to less where its
        list is shorter than the classes are many: the rest is spread evenly over classes that are not listed. ``None``
        where the system says in which order classes come, and no more.
    num_items, num_positions, num_classes : int
        sizes.
    items, classes : sequence, optional
        Object arrays of the user's own ids, in code order; ``None`` in a copy that went through JAX.
    name : str, optional
        What to call the system in tables.

    Examples
    --------
    >>> import consilience as cs
    >>> cs.Predictions.from_lists([["flu", "cold"], ["cold"]], classes=["cold", "flu"]).ranked.tolist()
    [[1, 0], [0, -1]]
    >>> cs.Predictions.from_scores([[0.2, 0.8], [0.9, 0.1]], classes=["cold", "flu"]).ranked.tolist()
    [[1, 0], [0, 1]]
    """

    columns = (
        ITEM,
        CLASS,
        Column("score", ("probability", "confidence", "prob", "proba", "p"), help="higher is better", optional=True),
        Column("rank", ("position",), help="1 is best", optional=True),
    )
    reader = "read_predictions"
    kind: ClassVar[str] = "classes"

    ranked: Any = array()
    probability: Any = array(later=True, default=None)
    num_items: int = size()
    num_positions: int = size()
    num_classes: int = size()
    items: Any = ids("item")
    classes: Any = ids("class")
    name: Any = ids()

    def _table(self, rows: slice = slice(None)) -> dict[str, np.ndarray]:
        ranked = np.asarray(self.ranked)[rows]
        item, position = np.nonzero(ranked != -1)
        called = self._called(np.where(ranked < -1, -1, ranked)[item, position], "class")
        found = {"item": self._called(np.arange(self.num_items)[rows][item], "item"), "class": called}
        if self.probability is not None:
            return {**found, "score": np.asarray(self.probability)[rows][item, position]}
        return {**found, "rank": position + 1} if self.num_positions > 1 else found

    @classmethod
    def from_scores(
        cls, scores: ArrayLike, *, items: Names | None = None, classes: Names | None = None, name: str | None = None,
        depth: int | None = None, probabilities: bool = False,
    ) -> Self:  # fmt: skip
        """Order the classes of each item by their scores.

        Parameters
        ----------
        scores : ArrayLike
            Not NaN, shape ``(item, class)``; higher is better.
        items, classes : Names, optional
            Ids in code order; the codes as texts where absent.
        name : str, optional
            What to call the system.
        depth : int, optional
            How many classes to keep per item; all where absent.
        probabilities : bool, default False
            Whether the scores are probabilities, which are kept: not negative, and those of an item sum to 1 within
            0.001.

        Raises
        ------
        InputError : the scores are no numbers, or no probabilities; the text names item and class.

        Examples
        --------
        >>> import consilience as cs
        >>> system = cs.Predictions.from_scores([[0.25, 0.75]], classes=["cold", "flu"], probabilities=True)
        >>> system.probability.tolist()
        [[0.75, 0.25]]
        """
        problems = Problems("the scores")
        scores = as_array(problems, scores)
        if scores.ndim != 2 or scores.dtype.kind not in "iuf" or 0 in scores.shape:
            message = f"a two-dimensional array of numbers is expected, not {scores.dtype} of shape {scores.shape}"
            raise problems.fail(message, "pass one row per item and one column per class")
        for item, class_ in np.argwhere(np.isnan(scores))[:1000].tolist():
            problems.add("the score is not a number", "give a score", row=f"item {item}", column=f"class {class_}")
        for item, class_ in np.argwhere(scores < 0)[:1000].tolist() if probabilities else ():
            problems.add(*_NEGATIVE, row=f"item {item}", column=f"class {class_}", value=scores[item, class_])
        if depth is not None and depth < 1:
            problems.add(f"depth is {depth}", "keep at least one class")
        problems.raise_any()
        if probabilities:
            scores = _normalised(problems, np.asarray(scores, float), np.ones(len(scores), bool), "item {}".format)
        # Descending and stable, so that equal scores stay in the order of their codes; negation would wrap integers.
        ranked = scores.shape[1] - 1 - np.argsort(scores[:, ::-1], axis=1, kind="stable")[:, ::-1]
        ranked = ranked[:, :depth]
        kept = np.take_along_axis(scores, ranked, axis=1) if probabilities else None
        return cls._from_ranked(ranked, scores.shape[1], items, classes, name, kept)

    @classmethod
    def from_lists(
        cls, lists: Sequence[Sequence[Any]], *, items: Names | None = None, classes: Names | None = None,
        name: str | None = None,
    ) -> Self:  # fmt: skip
        """Take ordered lists of class ids, one per item.

        Parameters
        ----------
        lists : sequence[sequence of Any]
            For each item the ids of its classes, best first; lists may differ in length and be empty.
        items : Names, optional
            Ids in order; the positions as texts where absent.
        classes : Names, optional
            The closed list of class ids in order. By default those that occur, sorted.
        name : str, optional
            What to call the system.
        """
        problems = Problems("the lists")
        if isinstance(lists, str) or any(isinstance(entry, str) or not hasattr(entry, "__len__") for entry in lists):
            raise problems.fail("a list of lists of class ids is expected", "pass one list per item, best class first")
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        named = [str(class_).strip() for entry in lists for class_ in entry]
        order = as_names(classes, "classes") if classes is not None else sorted_names(set(named))
        code = recode(np.arange(len(named)), named, order)
        item = np.repeat(np.arange(len(lists)), lengths)

        def place(row: int) -> str:
            return f"item {item[row]}"

        message, remedy = "this class is not in {classes}", "correct it or add it to the list"
        problems.add_each(code < 0, message, remedy, Remedy("classes"), place=place, values=named)
        twice = repeated(item, code) & (code >= 0)
        problems.add_each(twice, "the class occurs twice", "list it once", place=place, values=named)
        if not named:
            problems.add("nothing is predicted", "check where the lists come from")
        problems.raise_any()
        position = np.arange(len(item)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return cls._from_ranked(_grid(item, position, code, len(lists)), len(order), items, order, name)

    @classmethod
    def _from_ranked(
        cls, ranked: np.ndarray, num_classes: int, items: Names | None, classes: Names | None, name: str | None,
        probability: np.ndarray | None = None,
    ) -> Self:  # fmt: skip
        problems = Problems("the predictions")
        for what, names, expected in (("items", items, len(ranked)), ("classes", classes, num_classes)):
            if names is not None and len(names) != expected:
                problems.add(f"there are {expected} {what} but {len(names)} ids", "make them agree")
        problems.raise_any()
        return cls(
            ranked=np.ascontiguousarray(ranked, dtype=np.int32),
            probability=None if probability is None else np.ascontiguousarray(probability, dtype=np.float32),
            num_items=ranked.shape[0], num_positions=ranked.shape[1], num_classes=num_classes,
            items=names_or_codes(items, len(ranked), "items"),
            classes=names_or_codes(classes, num_classes, "classes"),
            name="predictions" if name is None else str(name),
        )  # fmt: skip

    def align(
        self, items: Names, classes: Names, *, missing: str = "error", unknown: str = "error"
    ) -> tuple[Predictions, np.ndarray]:
        """Re-code the predictions to the items and classes of a data set. Ids are compared as texts.

        Parameters
        ----------
        items, classes : Names
            The ids of the data set, in code order.
        missing : str, default "error"
            "error", or "drop" where items of the data set without a prediction are not to be evaluated.
        unknown : str, default "error"
            "error" (a guard against typing errors), or "keep": a predicted class that the data set does not have
            becomes -2, which is never true, and predictions for items that it does not have are left out with a
            warning.

        Returns
        -------
        predictions
            Row ``i`` is item ``i`` of the data set; all -1 where it is missing.
        kept
            Bool, shape ``(item,)``; which items of the data set have a prediction.
        """
        check_option("missing", missing, ("error", "drop"))
        check_option("unknown", unknown, ("error", "keep"))
        items, classes = as_names(items, "items"), as_names(classes, "classes")
        problems = Problems(f"predictions '{self.name}'")
        source = recode(np.arange(len(items)), items, self.items)
        class_code = recode(np.arange(self.num_classes), self.classes, classes)
        kept = source >= 0
        foreign = sorted_names(set(self.items) - set(items))
        used = np.zeros(self.num_classes, bool)
        used[np.asarray(self.ranked)[np.asarray(self.ranked) >= 0]] = True
        unknown_classes = [name for name, bad in zip(self.classes, used & (class_code < 0), strict=True) if bad]
        absent = [name for name, found in zip(items, kept, strict=True) if not found]
        if missing == "error" and absent:
            remedy = "pass {missing} to leave them out"
            problems.add(counted("items of the data have no prediction", absent), remedy, Remedy("missing", "drop"))
        if unknown == "error" and foreign:
            remedy = "correct them, or pass {unknown} to leave them out"
            problems.add(counted("predicted items are not in the data", foreign), remedy, Remedy("unknown", "keep"))
        if unknown == "error" and unknown_classes:
            message = counted("predicted classes are not in the data", unknown_classes)
            remedy = "correct them, or pass {unknown} to count them as wrong"
            problems.add(message, remedy, Remedy("unknown", "keep"))
        if not kept.any():
            problems.add("no item of the data has a prediction", "check that the ids of the items agree")
        problems.raise_any()
        if foreign:
            warn_input(counted("predicted items are not in the data and were left out", foreign))
        ranked = np.full((len(items), self.num_positions), -1, np.int32)
        ranked[kept] = np.append(class_code, [-2, -1]).astype(np.int32)[np.asarray(self.ranked)[source[kept]]]
        probability = None
        if self.probability is not None:
            probability = np.zeros(ranked.shape, np.float32)
            probability[kept] = np.asarray(self.probability)[source[kept]]
        return self._from_ranked(ranked, len(classes), items, classes, self.name, probability), kept

    def class_probabilities(self, items: slice = slice(None)) -> np.ndarray:
        """Return the probability of each class, as a table.

        Parameters
        ----------
        items : slice, optional
            Of which items.

        Returns
        -------
        float64, shape ``(item, class)``
            What is given to classes that a data set does not have (-2) is left out.

        Raises
        ------
        UnsupportedRequest : the predictions are no probabilities.
        """
        rest = self.unlisted_probability(items)
        ranked, probability = np.asarray(self.ranked)[items], np.asarray(self.probability)[items]
        found, listed = np.repeat(rest[:, None], self.num_classes, axis=1), ranked >= 0
        found[np.nonzero(listed)[0], ranked[listed]] = probability[listed]
        return found

    def unlisted_probability(self, items: slice = slice(None)) -> np.ndarray:
        """Return the probability of each class that is not in the list of an item, float64 ``(item,)``.

        Raises
        ------
        UnsupportedRequest : the predictions are no probabilities.
        """
        if self.probability is None:
            text = f"'{self.name}' says in which order classes come, not how probable they are; read the scores with"
            raise UnsupportedRequest(f"{text} {{scores}}", Remedy("scores", "probabilities"))
        ranked = np.asarray(self.ranked)[items]
        rest = 1 - np.asarray(self.probability, float)[items].sum(axis=1)
        number = self.num_classes - (ranked >= 0).sum(axis=1)
        given = (rest > _NOTHING) & (number > 0) & (ranked != -1).any(axis=1)
        return np.where(given, rest / np.maximum(number, 1), 0.0)

    @classmethod
    @of_file
    def read(
        cls, source: Any, *, columns: Mapping[str, str] | None = None, classes: Names | str | os.PathLike | None = None,
        name: str | None = None, missing: str = "error", duplicates: str = "error", unknown: str = "error",
        scores: str = "ranks",
    ) -> Predictions:  # fmt: skip
        """Read what a system says of each item.

        Parameters
        ----------
        source : path, data frame, dict of columns or list of rows
            A path (CSV, TSV, JSON, JSON lines, Parquet), a data frame or a dict of columns, with the columns item and
            class (or label), and a score (higher is better) or a rank (1 is best) where an item has several classes. Or
            with a row for each item: the column item, and one of scores for each class. Or a JSON object of
            item -> class.
        columns : dict of str to str, optional
            Column names for "item", "class" (or "label"), "score" and "rank" where the table has names of its own.
        classes : Names, str or path, optional
            The closed list of classes in order, or the path of a text file with one per line. By default the classes
            that occur, sorted.
        name : str, optional
            What to call the system; by default the name of the file without its ending.
        missing : str, default "error"
            "error", or "drop" to leave out rows with an empty class, score or rank.
        duplicates : str, default "error"
            "error", or "first" to keep the first row where a class of an item (or, without scores and ranks, an item)
            occurs again.
        unknown : str, default "error"
            "error", or "drop" to leave out rows whose class is not in ``classes``.
        scores : str, default "ranks"
            "ranks", where they order the classes; or "probabilities", which are kept: not negative, and those of an
            item sum to 1 within 0.001. They may sum to less where not all classes are listed; the rest is then spread
            evenly over the others.

        Returns
        -------
        predictions
            Items in the order of their first appearance. Equal scores or ranks are ordered by the lowest class code.

        Raises
        ------
        InputError : what is wrong with the table, row by row, or with the probabilities of an item.
        UnknownName : an option has none of its values.

        Examples
        --------
        >>> import consilience as cs
        >>> table = {"item": ["a", "a", "b"], "class": ["flu", "cold", "cold"], "rank": [1, 2, 1]}
        >>> predictions = cs.read_predictions(table)
        >>> predictions
        Predictions(items=2, positions=2, classes=2)
        >>> predictions.ranked.tolist()
        [[1, 0], [0, -1]]
        """
        check_option("missing", missing, ("error", "drop"))
        check_option("duplicates", duplicates, ("first", "error"))
        check_option("unknown", unknown, ("error", "drop"))
        check_option("scores", scores, ("ranks", "probabilities"))
        closed = None if classes is None else as_names(classes, "classes")
        if columns is not None and "class" not in columns:
            columns = {"class" if role == "label" else role: name for role, name in columns.items()}
        choose = _Columns(columns)
        table = read_table(source, choose, units=("item", "class"))
        probable = scores == "probabilities"
        if "class" not in table.columns:
            return _read_wide(table, choose, closed, name_of(source) if name is None else name, probable)
        order_column = _probability_column(table) if probable else _order_column(table, columns or {})
        item, items = table.texts("item", required=True)
        code, named = table.texts("class")
        order = closed or sorted_names(named)
        code = recode(code, named, order)
        keep = filled_rows(table, "class", missing)
        if order_column is not None:
            keep &= filled_rows(table, order_column, missing)
        keep &= known_rows(table, "class", code, unknown, "classes")
        if order_column is None:
            _refuse_unread_scores(table, item, code, choose.unread)
        what = "item" if order_column is None else "item and class"
        keep &= keep_repeated(table, keep, (item,) if order_column is None else (item, code), duplicates, what)
        value = np.zeros(table.num_rows) if order_column is None else table.numbers(order_column)
        if probable:
            table.flag(value < 0, "score", *_NEGATIVE)
        table.problems.raise_any()
        require_rows(table, keep)
        item, item_ids = compact(item[keep], items)
        code, value = code[keep], value[keep] * (-1.0 if order_column == "score" else 1.0)
        sequence = np.lexsort((code, value, item))
        item, code = item[sequence], code[sequence]
        first = np.searchsorted(item, np.arange(len(item_ids)))
        place = np.arange(len(item)) - first[item]
        ranked, probability = _grid(item, place, code, len(item_ids)), None
        if probable:
            probability = np.zeros(ranked.shape)
            probability[item, place] = -value[sequence]
            whole = (ranked >= 0).sum(axis=1) == len(order)
            probability = _normalised(table.problems, probability, whole, lambda row: f"item {item_ids[row]!r}")
        called = name_of(source) if name is None else name
        return Predictions._from_ranked(ranked, len(order), item_ids, order, called, probability)


read_predictions = Predictions.read


class _Columns:
    """Finds the columns of predictions among the names of a table: those that are declared, or one for each class.

    Parameters
    ----------
    columns : role to column name, for tables with other names than are declared.
    """

    def __init__(self, columns: Mapping[str, str] | None) -> None:
        self.declared = choose_columns(Predictions.columns, columns)
        item = {role: name for role, name in (columns or {}).items() if role == "item"}
        self.items = choose_columns((ITEM,), item) if len(item) == len(columns or {}) else None
        self.names: list[str] = []
        self.unread: list[str] = []

    def __call__(self, names: list[str], problems: Problems) -> dict[str, int]:
        self.names = names
        roles = {one for column in Predictions.columns[1:] for one in (column.name, *column.aliases)}
        if self.items is not None and not roles & {name.casefold() for name in names}:
            with contextlib.suppress(InputError):
                item = self.items(names, Problems(None))["item"]
                classes = {name: at for at, name in enumerate(names) if name and at != item}
                if len(classes) > 1:
                    return {"item": item, **{f"{_OF_CLASS}{name}": at for name, at in classes.items()}}
        found = self.declared(names, problems)
        self.unread = [name for at, name in enumerate(names) if name and at not in found.values()]
        return found


_OF_CLASS = "score of "


def _read_wide(
    table: Table, choose: _Columns, closed: list[str] | None, name: str | None, probable: bool
) -> Predictions:
    """Make predictions of a table with a row for each item and a column of scores for each class."""
    roles = [role for role in table.columns if role != "item"]
    if not all(is_missing(one) or np.isfinite(number(one)) for role in roles for one in table.columns[role].values):
        choose.declared(choose.names, table.problems)  # raises: these are no scores
    item, items = table.texts("item", required=True)
    table.flag(repeated(item) & (item >= 0), "item", "this item has a row already", "keep one row per item")
    order = [table.columns[role].name for role in roles]
    if closed is not None and set(closed) != set(order):
        text = "the columns beside that of the items are not {classes}"
        raise table.problems.fail(text, "name a column after each class", Remedy("classes"))
    for role in roles:
        table.flag(table.empty(role), role, "the score is empty", "give a score")
    scores = np.stack([table.numbers(f"{_OF_CLASS}{one}") for one in closed or order], axis=1)
    table.problems.raise_any()
    return Predictions.from_scores(scores, items=items, classes=closed or order, name=name, probabilities=probable)


def _refuse_unread_scores(table: Table, item: np.ndarray, code: np.ndarray, unread: list[str]) -> None:
    """Refuse several classes of an item where nothing orders them, but a column was not read that may."""
    several = np.flatnonzero(repeated(item) & ~repeated(item, code) & (item >= 0))
    if len(several) and unread:
        message = f"{len(np.unique(item[several])):,} items have several classes, and no column says in which order"
        named = Remedy("columns", {"score": unread[0]})
        message += f"; is {unread[0]!r} the score?"
        raise table.problems.fail(message, "pass {columns}", named, row=table.place(int(several[0])))


def _grid(item: np.ndarray, position: np.ndarray, code: np.ndarray, num_items: int) -> np.ndarray:
    """Place codes in a rectangle filled with -1."""
    ranked = np.full((num_items, int(position.max(initial=0)) + 1), -1, np.int32)
    ranked[item, position] = code
    return ranked


_NEGATIVE = "the probability is negative", "give probabilities, 0 or more"

# Probabilities are written with so many digits that an item sums to one only nearly, and kept with seven: what such a
# sum is short of is no probability of further classes.
_ROUNDED, _NOTHING = 1e-3, 1e-6


def _normalised(
    problems: Problems, probability: np.ndarray, whole: np.ndarray, place: Callable[[int], str]
) -> np.ndarray:
    """Return probabilities ``(item, position)`` that sum to one where all classes are listed, and else to no more."""
    total = probability.sum(axis=1)
    wrong = (total > 1 + _ROUNDED) | whole & (total < 1 - _ROUNDED)
    message, remedy = "the probabilities of this item do not sum to 1", "give some that do within 0.001"
    problems.add_each(wrong, message, remedy, place=place, values=total.round(6))
    problems.raise_any()
    return probability / np.where(whole | (total > 1), total, 1.0)[:, None]


def _probability_column(table: Table) -> str:
    """Return the column of the probabilities."""
    if "score" not in table.columns:
        remedy = "add a column score (or probability), or say with {columns} which it is"
        raise table.problems.fail("there is no column of probabilities", remedy, Remedy("columns", {"score": ...}))
    return "score"


def _order_column(table: Table, columns: Mapping[str, str]) -> str | None:
    """Return which column orders the classes of an item."""
    found = [role for role in ("score", "rank") if role in table.columns]
    given = [role for role in found if role in columns]
    if len(found) == 2 and len(given) != 1:
        remedy = "pass {columns} or {columns} to say which one orders the classes"
        remedies = (Remedy("columns", {"score": ...}), Remedy("columns", {"rank": ...}))
        raise table.problems.fail("there is a score and a rank", remedy, *remedies)
    return next(iter(given or found), None)
