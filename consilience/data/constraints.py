"""Constraints: experts say of pairs of items whether they belong together; a table of numbers describes the items."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from consilience.arrays import Float
from consilience.data.cells import Table
from consilience.data.codes import object_array, recode, repeated
from consilience.data.columns import ITEM, Column, all_columns, choose_columns
from consilience.data.contract import Contract, codes, ids, named_after, of_file, per, size, values
from consilience.data.policies import require_rows
from consilience.data.problems import check_option, first_of, warn_input
from consilience.data.tables import read_table
from consilience.errors import InputError, InputProblem, UnsupportedRequest
from consilience.notes import Remedy

_FEW = 10

ANSWERS = {
    **dict.fromkeys(("together", "must", "must-link", "ml", "same", "1"), 1),
    **dict.fromkeys(("apart", "cannot", "cannot-link", "cl", "different", "0"), 0),
}
"""What an answer may be, in any case: 1 for together, 0 for apart."""

DONT_KNOW = ("dont_know", "don't know", "unknown", "skip", "?")
"""Answers that say nothing of the pair, in any case."""

_NOTHING = -3
_MOST_GRADES = 100


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Constraints(Contract):
    """Pairs of items judged by experts, as codes; made by `read_constraints`.

    Parameters
    ----------
    expert : int32, shape ``(constraint,)``; code into ``experts``.
    item_a, item_b : int32, shape ``(constraint,)``; codes into ``items``, ``item_a < item_b``.
    together : int32, shape ``(constraint,)``; 1 where the expert puts the items together, 0 where apart. Of graded
        answers the grade less one, from apart to together; of answers that say nothing one more than the last.
    order : int32, shape ``(constraint,)``; 0 or 1, in which of two ways the pair was shown; ``None`` where that is not
        known.
    feature : float64, shape ``(item, feature)``, finite, in the units of the file; without columns where the input
        has none.
    num_constraints, num_experts, num_items, num_features : sizes.
    num_grades, num_blanks : how many grades there are, and 1 where the last answer is one that says nothing; ``None``
        where answers are together and apart.
    experts, items, features : object arrays of the user's own ids, in code order; ``None`` in a copy that went
        through JAX.
    """

    columns = (
        Column("expert", ("annotator", "worker", "rater", "user"), "expert", "who judged the pair"),
        Column("item_a", ("i", "a"), "item", "an item"),
        Column("item_b", ("j", "b"), "item", "another item"),
        Column("answer", ("link", "constraint"), "", "together, must, ml, same, 1; apart, cannot, cl, different or 0"),
        Column("order", (), "", "0 or 1, in which of two ways the pair was shown", optional=True),
        Column("question", (), "", "what the expert was asked of the pair", optional=True),
    )
    reader = "read_constraints"
    command = "table"
    rows = "constraint"
    expert: Any = codes("expert")
    item_a: Any = codes("item")
    item_b: Any = codes("item")
    together: Any = values(codes="num_answers")
    feature: Any = per("item", "feature")
    order: Any = per("", codes=2, default=None, later=True)
    num_constraints: int = size()
    num_experts: int = size()
    num_items: int = size()
    num_features: int = size()
    num_grades: int | None = size(later=True)
    num_blanks: int | None = size(later=True)
    experts: Any = ids("expert")
    items: Any = ids("item")
    features: Any = ids("feature")

    @property
    def num_answers(self) -> int:
        """How many different answers there may be."""
        return (self.num_grades or 2) + (self.num_blanks or 0)

    @property
    def answer_names(self) -> np.ndarray:
        """The answers as texts, shape ``(answer,)``."""
        said = ("apart", "together") if self.num_grades in (None, 2) else map(str, range(1, self.num_grades + 1))
        return np.array([*said, *DONT_KNOW[:1] * (self.num_blanks or 0)], object)

    @property
    def num_orders(self) -> int:
        """In how many ways pairs were shown, as far as that is known."""
        return 1 if self.order is None else 2

    @property
    def scale(self) -> Float[np.ndarray, " answer"]:
        """How much each answer says together, from 0 to 1; not a number of one that says nothing."""
        return np.append(np.linspace(0, 1, self.num_grades or 2), [np.nan] * (self.num_blanks or 0))

    def size_of(self, named: str | int) -> int | None:
        """Return how much there is of a dimension; see `Contract.size_of`."""
        return self.num_answers if named in ("answer", "num_answers") else super().size_of(named)

    @property
    def read_from(self) -> str:
        """How the call of its reader is written; see `Contract.read_from`."""
        return "…, features=…" if self.num_features else "…"

    def _table(self, rows: slice = slice(None)) -> dict[str, np.ndarray]:
        found = {
            name: self._called(np.asarray(getattr(self, name))[rows], dimension)
            for name, dimension in (("expert", "expert"), ("item_a", "item"), ("item_b", "item"))
        }
        found["answer"] = self.answer_names[np.asarray(self.together)[rows]]
        return found if self.order is None else {**found, "order": np.asarray(self.order)[rows]}

    @classmethod
    @of_file
    def read(
        cls,
        source: Any, *, features: Any = None, columns: Mapping[str, str] | None = None, duplicates: str = "first",
        grades: int = 0, dont_know: str = "left-out", questions: str = "ignored",
    ) -> Constraints:  # fmt: skip
        """Read what experts say of pairs of items.

        Parameters
        ----------
        source : path, data frame, dict of columns or list of rows
            A table with the columns expert, item_a, item_b and answer: together, must, ml, same or 1; apart, cannot,
            cl, different or 0; or grades. (j, i) is the same pair as (i, j). Answers dont_know, unknown, skip or ? say
            that the expert does not know. Where it has a column order, 0 or 1, experts may answer otherwise if the pair
            is shown the other way round.
        features : path, data frame or dict of columns, optional
            A table with one row per item: a column item and columns of numbers. Items without a constraint are kept.
            Without it, the items are those that occur.
        columns : dict of str to str, optional
            Column names for these where the constraints table has names of its own.
        duplicates : str, default "first"
            What to do when an expert gives the same answer to a pair again: "first" counts it once, "keep" counts every
            row, "error" refuses. Contradictory answers are all kept, with a warning.
        grades : int, default 0
            How many, where answers are whole numbers from 1, apart, to this one, together; 0 where they are not.
        dont_know : str, default "left-out"
            "left-out" counts answers that say nothing and leaves them out, as if how often an expert does not know said
            nothing of the pair; "informative" keeps them: experts may know it the more seldom of pairs that are apart,
            or together.
        questions : str, default "ignored"
            "views" takes an expert for as many as there are questions (a column) that he answers, each with a view and
            accuracies of its own, called "expert: question"; "ignored" for one.

        Returns
        -------
        constraints
            Experts in the order of their first appearance, items in that of the features table.

        Raises
        ------
        InputError : what is wrong with the tables, all of it, with the lines. Features may not be missing, and not all
            of them constant.

        Warns
        -----
        InputWarning : experts with fewer than ten answers or answers of one kind only, a single expert, constant
            features, answers that are left out.

        Examples
        --------
        >>> import warnings
        >>> import consilience as cs
        >>> table = {
        ...     "expert": ["Ann", "Ann", "Bob"], "item_a": ["a", "b", "a"], "item_b": ["b", "c", "c"],
        ...     "answer": ["together", "apart", "apart"],
        ... }
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore", cs.errors.InputWarning)  # of experts with few answers
        ...     constraints = cs.read_constraints(table)
        >>> constraints
        Constraints(constraints=3, experts=2, items=3, features=0)
        """
        check_option("duplicates", duplicates, ("first", "keep", "error"))
        check_option("dont_know", dont_know, ("left-out", "informative"))
        check_option("questions", questions, ("ignored", "views"))
        if not (grades == 0 or 2 <= grades <= _MOST_GRADES):
            text = f"grades is {grades}; give how many there are, 2 to {_MOST_GRADES}, or 0 of answers without grades"
            raise UnsupportedRequest(text)
        table = read_table(source, choose_columns(Constraints.columns, columns))
        expert, experts = _experts(table, questions == "views")
        a, names_a = table.texts("item_a", required=True)
        b, names_b = table.texts("item_b", required=True)
        items, feature_names = list(dict.fromkeys([*names_a, *names_b])), list[str]()
        values, guess = np.empty((len(items), 0)), None
        if features is not None:
            try:
                items, feature_names, values, guess = _read_features(features)
            except InputError as error:  # to be told together with what is wrong with the constraints
                table.problems.found += error.problems
        a, b = recode(a, names_a, items), recode(b, names_b, items)
        for role, code in (("item_a", a), ("item_b", b)):
            table.flag(code == -2, role, "this item is not in the table of features", "correct it or add the item")
        if guess is not None and ((a == -2) | (b == -2)).any():
            table.problems.found.append(guess)
        table.flag((a == b) & (a >= 0), "item_b", "the item is paired with itself", "delete the row")
        together, order = _answers(table, grades), _orders(table)
        a, b = np.minimum(a, b), np.maximum(a, b)
        known = together != _NOTHING
        # What is left out repeats and contradicts nothing.
        alone = np.where(known, a, -3 - np.arange(len(a)))
        shown = np.zeros_like(together) if order is None else order
        keep = _keep_repeated(table, expert, alone, b, shown, together, duplicates)
        keep &= known | (dont_know == "informative")
        table.problems.raise_any()
        require_rows(table, keep)
        kept = int(dont_know == "informative" and not known.all())
        if kept:
            together = np.where(known, together, grades or 2).astype(np.int32)
        elif not known.all():
            did = f"{_rows_that('say', ~known)} that the expert does not know"
            warn_input(f"{did}, of {_counted(len(np.unique(expert[~known])), 'expert')}; left out")
        _warn_of_few(expert[keep], together[keep], experts)
        _warn_of_constant(values, feature_names)
        found = Constraints(
            expert=expert[keep], item_a=a[keep], item_b=b[keep], together=together[keep], feature=values,
            order=None if order is None else order[keep],
            num_constraints=int(keep.sum()), num_experts=len(experts), num_items=len(items),
            num_features=len(feature_names),
            num_grades=(grades or 2) if grades or kept else None, num_blanks=kept if grades or kept else None,
            experts=object_array(experts), items=object_array(items), features=object_array(feature_names),
        )  # fmt: skip
        return named_after(found, features, "features_file")

    def coordinates(self) -> dict[str, np.ndarray]:
        """Return the names of what numbers lie along: features with an offset, and the items that were judged."""
        names = super().coordinates()
        if "feature" in names:
            names["feature"] = np.append(names["feature"], "offset")
        if "item" in names:
            names["judged_item"] = names["item"][np.unique([self.item_a, self.item_b])]
        return names

    def _settled(self) -> Self:
        """Return the pairs with their lower code first."""
        pair = np.sort(np.stack([self.item_a, self.item_b]), axis=0)
        return self.replace(item_a=pair[0], item_b=pair[1])


read_constraints = Constraints.read


def _warn_of_few(expert: np.ndarray, together: np.ndarray, experts: list[str]) -> None:
    """Name the experts of whom the answers say little."""
    number, most = np.bincount(expert, minlength=len(experts)), int(together.max()) + 1
    kinds = np.bincount(np.unique(expert.astype(np.int64) * most + together) // most, minlength=len(experts))
    if len(experts) == 1:
        warn_input("there is one expert, and so one view: what others would say cannot be told")
    few = [experts[code] for code in np.flatnonzero(number < _FEW)]
    if few:
        warn_input(f"{_listed(few, 'expert')} gave fewer than {_FEW} answers, less than the prior weighs")
    one_kind = [experts[code] for code in np.flatnonzero(kinds <= 1)]
    if one_kind:
        said = "said 'together' always or never" if most <= 2 else "gave one answer to all pairs"
        done = f"{said}; how they judge the pairs that are not so is unknown"
        warn_input(f"{_listed(one_kind, 'expert')} {done}")


def _warn_of_constant(values: np.ndarray, names: list[str]) -> None:
    """Name the features that are the same for all items; refuse those that tell no item apart."""
    if len(values) < 2:
        return
    constant = [name for name, column in zip(names, values.T, strict=True) if (column == column[0]).all()]
    if constant and len(constant) == len(names):
        raise InputError(
            InputProblem("all features are the same for all items", "give features that differ, or none at all")
        )
    if constant:
        are, they, tell = ("is", "it", "tells") if len(constant) == 1 else ("are", "they", "tell")
        named = _listed(constant, "feature")
        warn_input(f"{named} {are} the same for all items; {they} {tell} nothing and {are} not used")


def _listed(names: list[str], what: str) -> str:
    return f"{_counted(len(names), what)} ({first_of(map(repr, names))})"


def _places(table: Table, chosen: np.ndarray) -> str:
    """Return which rows are chosen, the first of them by name."""
    return first_of(map(table.place, np.flatnonzero(chosen).tolist()))


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _rows_that(verb: str, chosen: np.ndarray) -> str:
    number = int(chosen.sum())
    return f"{_counted(number, 'row')} {verb}{'s' if number == 1 else ''}"


def _experts(table: Table, questions: bool) -> tuple[np.ndarray, list[str]]:
    """Return the experts; of each question they are others, where there are questions."""
    expert, experts = table.texts("expert", required=True)
    if not questions:
        return expert, experts
    if "question" not in table.columns:
        remedy = "add it, pass {columns}, or leave out questions"
        raise table.problems.fail("there is no column 'question'", remedy, Remedy("columns", {"question": ...}))
    question, names = table.texts("question", required=True)
    known = (expert >= 0) & (question >= 0)
    both = np.where(known, expert * len(names) + question, -1)
    unit, first, code = np.unique(both[known], return_index=True, return_inverse=True)
    order = np.argsort(first)
    found = np.full(len(expert), -1, np.int32)
    found[known] = np.argsort(order)[code]
    return found, [f"{experts[one // len(names)]}: {names[one % len(names)]}" for one in unit[order]]


def _answers(table: Table, grades: int) -> np.ndarray:
    code, texts = table.texts("answer", required=True)
    meant = {str(grade + 1): grade for grade in range(grades)} or ANSWERS
    meant = {**meant, **dict.fromkeys(DONT_KNOW, _NOTHING)}
    together = np.array([*(meant.get(text.casefold(), -1) for text in texts), -2], np.int32)[code]
    wrong, remedy = "the answer is neither 'together' nor 'apart'", f"write one of the two, or {DONT_KNOW[0]}"
    if grades:
        wrong, remedy = f"the answer is no whole number from 1 to {grades}", f"write one, or {DONT_KNOW[0]}"
    table.flag(together == -1, "answer", wrong, remedy)
    return together


def _orders(table: Table) -> np.ndarray | None:
    """Return in which way each pair was shown, or None where there is no such column."""
    if "order" not in table.columns:
        return None
    code, texts = table.texts("order", required=True)
    order = np.array([*({"0": 0, "1": 1}.get(text, -1) for text in texts), -2], np.int32)[code]
    table.flag(order == -1, "order", "the order is neither 0 nor 1", "correct it, or leave the column out")
    return order


def _keep_repeated(
    table: Table, expert: np.ndarray, a: np.ndarray, b: np.ndarray, order: np.ndarray, together: np.ndarray,
    duplicates: str,
) -> np.ndarray:  # fmt: skip
    pair_again = repeated(expert, a, b, order)
    same_again = repeated(expert, a, b, order, together)
    contradictory = pair_again & ~same_again
    if duplicates == "error":
        message = "the expert has given this answer to the pair already"
        remedy = "delete the row, or pass {duplicates}"
        table.flag(same_again, "answer", message, remedy, Remedy("duplicates", "first"))
    elif same_again.any() and not table.problems.found:
        done = "counted once" if duplicates == "first" else "all counted"
        text = f"{_rows_that('repeat', same_again)} an expert's answer to a pair; {done} ({{duplicates}})"
        warn_input(f"{text}: {_places(table, same_again)}", Remedy("duplicates", duplicates))
    if contradictory.any() and not table.problems.found:
        text = f"{_rows_that('contradict', contradictory)} an expert's earlier answer to the same pair; both were kept"
        warn_input(f"{text}: {_places(table, contradictory)}")
    return ~same_again if duplicates == "first" else np.ones(table.num_rows, bool)


def read_features(source: Any) -> tuple[list[str], list[str], np.ndarray]:
    """Read a table of items described by numbers.

    Parameters
    ----------
    source : a table with a column item (or sample, … or else the first column), all other columns numbers.

    Returns
    -------
    items, features : ids, each in the order of the table.
    values : float64, shape ``(item, feature)``.
    """
    return _read_features(source)[:3]


def _read_features(source: Any) -> tuple[list[str], list[str], np.ndarray, InputProblem | None]:
    """Read features; say too where the column of items was guessed, for problems that a wrong guess may explain."""
    table = read_table(source, all_columns)
    names = list(table.columns)
    own = [name for name in names if name.casefold() == "item"]
    own += [name for name in names if name.casefold() in ITEM.aliases]
    key = (own or names)[0] if names else ""
    features = [name for name in names if name != key]
    if not features:
        raise table.problems.fail("a column of items and at least one column of numbers are expected", "add features")
    guess = None
    if not own:
        message = f"column {key!r} was taken for the items, as there is none called 'item'"
        guess = InputProblem(message, "call the column of items 'item'", table.problems.file, column=key)
    code, items = table.texts(key, required=True)
    table.flag(repeated(code) & (code >= 0), key, "this item has a row already", "keep one row per item")
    for name in features:
        table.flag(table.empty(name), name, "the feature is empty", "fill it in; features are not imputed")
    values = np.stack([table.numbers(name) for name in features], axis=1)
    if guess is not None and table.problems.found:
        table.problems.found.insert(0, guess)
    table.problems.raise_any()
    return items, features, values, guess
