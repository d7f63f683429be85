"""Predictions: what a system says of each item, as an ordered list of classes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consilience.data.cells import Table
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
from consilience.data.contract import Contract, array, ids, size
from consilience.data.files import name_of
from consilience.data.policies import filled_rows, keep_repeated, known_rows, require_rows
from consilience.data.problems import Problems, check_option, counted, warn_input
from consilience.data.tables import read_table
from consilience.notes import Remedy


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Predictions(Contract):
    """Ordered lists of classes, one per item; made by `read_predictions`, `from_scores` or `from_lists`.

    Parameters
    ----------
    ranked : int32, shape ``(item, position)``; class codes, best first, -1 after the end of a shorter list. Scores or
        ranks that are equal are ordered by the lowest class code. -2 stands for a class that a data set does not have
        (`align`), which is never true.
    num_items, num_positions, num_classes : sizes.
    items, classes : object arrays of the user's own ids, in code order; ``None`` in a copy that went through JAX.
    name : what to call the system in tables.

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
        Column("score", ("probability", "confidence"), help="higher is better", optional=True),
        Column("rank", ("position",), help="1 is best", optional=True),
    )
    reader = "read_predictions"
    kind: ClassVar[str] = "classes"

    ranked: Any = array()
    num_items: int = size()
    num_positions: int = size()
    num_classes: int = size()
    items: Any = ids("item")
    classes: Any = ids("class")
    name: Any = ids()

    @classmethod
    def from_scores(
        cls, scores: ArrayLike, *, items: Names | None = None, classes: Names | None = None, name: str | None = None,
        depth: int | None = None,
    ) -> Self:  # fmt: skip
        """Order the classes of each item by their scores.

        Parameters
        ----------
        scores : not NaN, shape ``(item, class)``; higher is better.
        items, classes : ids in code order; the codes as texts where absent.
        name : what to call the system.
        depth : how many classes to keep per item; all where absent.
        """
        problems = Problems("the scores")
        scores = as_array(problems, scores)
        if scores.ndim != 2 or scores.dtype.kind not in "iuf" or 0 in scores.shape:
            message = f"a two-dimensional array of numbers is expected, not {scores.dtype} of shape {scores.shape}"
            raise problems.fail(message, "pass one row per item and one column per class")
        for item, class_ in np.argwhere(np.isnan(scores))[:1000].tolist():
            problems.add("the score is not a number", "give a score", row=f"item {item}", column=f"class {class_}")
        if depth is not None and depth < 1:
            problems.add(f"depth is {depth}", "keep at least one class")
        problems.raise_any()
        # Descending and stable, so that equal scores stay in the order of their codes; negation would wrap integers.
        ranked = scores.shape[1] - 1 - np.argsort(scores[:, ::-1], axis=1, kind="stable")[:, ::-1]
        return cls._from_ranked(ranked[:, :depth], scores.shape[1], items, classes, name)

    @classmethod
    def from_lists(
        cls, lists: Sequence[Sequence[Any]], *, items: Names | None = None, classes: Names | None = None,
        name: str | None = None,
    ) -> Self:  # fmt: skip
        """Take ordered lists of class ids, one per item.

        Parameters
        ----------
        lists : for each item the ids of its classes, best first; lists may differ in length and be empty.
        items : ids in order; the positions as texts where absent.
        classes : the closed list of class ids in order. By default those that occur, sorted.
        name : what to call the system.
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
        cls, ranked: np.ndarray, num_classes: int, items: Names | None, classes: Names | None, name: str | None
    ) -> Self:
        problems = Problems("the predictions")
        for what, names, expected in (("items", items, len(ranked)), ("classes", classes, num_classes)):
            if names is not None and len(names) != expected:
                problems.add(f"there are {expected} {what} but {len(names)} ids", "make them agree")
        problems.raise_any()
        return cls(
            ranked=np.ascontiguousarray(ranked, dtype=np.int32),
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
        items, classes : the ids of the data set, in code order.
        missing : "error", or "drop" where items of the data set without a prediction are not to be evaluated.
        unknown : "error" (a guard against typing errors), or "keep": a predicted class that the data set does not have
            becomes -2, which is never true, and predictions for items that it does not have are left out with a
            warning.

        Returns
        -------
        predictions : row ``i`` is item ``i`` of the data set; all -1 where it is missing.
        kept : bool, shape ``(item,)``; which items of the data set have a prediction.
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
        return self._from_ranked(ranked, len(classes), items, classes, self.name), kept

    @classmethod
    def read(
        cls, source: Any, *, columns: Mapping[str, str] | None = None, classes: Names | str | os.PathLike | None = None,
        name: str | None = None, missing: str = "error", duplicates: str = "error", unknown: str = "error",
    ) -> Predictions:  # fmt: skip
        """Read what a system says of each item.

        Parameters
        ----------
        source : a path (CSV, TSV, JSON, JSON lines, Parquet), a data frame or a dict of columns, with the columns item
            and class (or label), and a score (higher is better) or a rank (1 is best) where an item has several
            classes.
        columns : column names for "item", "class", "score" and "rank" where the table has names of its own.
        classes : the closed list of classes in order, or the path of a text file with one per line. By default the
            classes that occur, sorted.
        name : what to call the system; by default the name of the file without its ending.
        missing : "error", or "drop" to leave out rows with an empty class, score or rank.
        duplicates : "error", or "first" to keep the first row where a class of an item (or, without scores and ranks,
            an item) occurs again.
        unknown : "error", or "drop" to leave out rows whose class is not in ``classes``.

        Returns
        -------
        predictions : items in the order of their first appearance. Equal scores or ranks are ordered by the lowest
            class code.

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
        closed = None if classes is None else as_names(classes, "classes")
        table = read_table(source, choose_columns(Predictions.columns, columns))
        order_column = _order_column(table, columns or {})
        item, items = table.texts("item", required=True)
        code, named = table.texts("class")
        order = closed or sorted_names(named)
        code = recode(code, named, order)
        keep = filled_rows(table, "class", missing)
        if order_column is not None:
            keep &= filled_rows(table, order_column, missing)
        keep &= known_rows(table, "class", code, unknown, "classes")
        what = "item" if order_column is None else "item and class"
        keep &= keep_repeated(table, keep, (item,) if order_column is None else (item, code), duplicates, what)
        value = np.zeros(table.num_rows) if order_column is None else table.numbers(order_column)
        table.problems.raise_any()
        require_rows(table, keep)
        item, item_ids = compact(item[keep], items)
        code, value = code[keep], value[keep] * (-1.0 if order_column == "score" else 1.0)
        sequence = np.lexsort((code, value, item))
        item, code = item[sequence], code[sequence]
        first = np.searchsorted(item, np.arange(len(item_ids)))
        ranked = _grid(item, np.arange(len(item)) - first[item], code, len(item_ids))
        return Predictions._from_ranked(ranked, len(order), item_ids, order, name_of(source) if name is None else name)


read_predictions = Predictions.read


def _grid(item: np.ndarray, position: np.ndarray, code: np.ndarray, num_items: int) -> np.ndarray:
    """Place codes in a rectangle filled with -1."""
    ranked = np.full((num_items, int(position.max(initial=0)) + 1), -1, np.int32)
    ranked[item, position] = code
    return ranked


def _order_column(table: Table, columns: Mapping[str, str]) -> str | None:
    """Return which column orders the classes of an item."""
    found = [role for role in ("score", "rank") if role in table.columns]
    given = [role for role in found if role in columns]
    if len(found) == 2 and len(given) != 1:
        remedy = "pass {columns} or {columns} to say which one orders the classes"
        remedies = (Remedy("columns", {"score": ...}), Remedy("columns", {"rank": ...}))
        raise table.problems.fail("there is a score and a rank", remedy, *remedies)
    return next(iter(given or found), None)
