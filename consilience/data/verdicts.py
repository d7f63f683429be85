"""Verdicts: whether one output of one system is right, as one judge says, in a long table."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from consilience.data.cells import Table, number
from consilience.data.codes import Names, as_numbers, check_lengths, compact, names_or_codes, recode, sized
from consilience.data.columns import ANNOTATOR, ITEM, Column, choose_columns
from consilience.data.contract import Contract, codes, ids, of_file, per, size, values
from consilience.data.policies import filled_rows, keep_repeated, require_rows, said_first
from consilience.data.problems import Problems, check_option, first_of, shorten
from consilience.data.tables import read_table
from consilience.errors import UnsupportedRequest
from consilience.notes import Remedy

_RIGHT, _WRONG = ("right", "correct", "true", "yes"), ("wrong", "incorrect", "false", "no")
_WORDS = dict.fromkeys(_RIGHT, 1.0) | dict.fromkeys(_WRONG, 0.0)

# What is wrong with a number, and what to do about it.
_NO_VERDICT = "a number from 0 (wrong) to 1 (right) is expected", "correct or leave out the row"
_ACCEPTED = (
    f"write {', '.join(f'{right} or {wrong}' for right, wrong in zip(_RIGHT, _WRONG, strict=True))}, or a number from "
    "0 to 1; or leave out the rows"
)
_NO_PROBABILITY = "a probability above 0 and at most 1 is expected", "give that with which this gold label was chosen"


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Verdicts(Contract):
    """What judges say of the outputs of systems; made by `read_verdicts` or `from_codes`.

    Parameters
    ----------
    item, system, annotator : int32, shape ``(verdict,)``
        Codes into ``items``, ``systems`` and ``annotators``, who are the judges.
    label : float64, shape ``(verdict,)``
        1 where the output is said to be right, 0 where wrong, or between the two.
    gold : float64, shape ``(system, item)``
        The same as it is known, NaN where it is not; ``None`` where the input has no such column.
    gold_probability : float64, shape ``(system, item)``
        With which an output was chosen to have a gold label, NaN where it has none; ``None`` where the input has no
        such column: then all are equal.
    num_verdicts, num_items, num_systems, num_annotators : int
        sizes.
    items, systems, annotators : sequence, optional
        Object arrays of the user's own ids, in code order; ``None`` in a copy that went through JAX.

    Examples
    --------
    >>> import consilience as cs
    >>> cs.Verdicts.from_codes(item=[0, 1, 0, 1], system=[0, 0, 1, 1], annotator=[0, 0, 0, 0], label=[1, 1, 0, 1])
    Verdicts(verdicts=4, items=2, systems=2, annotators=1)
    """

    columns = (
        ITEM,
        Column("system", ("model", "candidate"), "system", "whose output was judged"),
        Column("annotator", (*ANNOTATOR.aliases, "judge"), "annotator", "who judged it"),
        Column("label", ("verdict", "answer", "score"), help="right or wrong, true or false, 1 or 0, or between them"),
        Column("gold", ("truth", "true_label", "ground_truth"), help="whether the output is right", optional=True),
        Column("gold_probability", help="with which the output was chosen to have a gold label", optional=True),
    )
    reader = "read_verdicts"
    rows = "verdict"
    command = "verdicts"
    item: Any = codes("item")
    system: Any = codes("system")
    annotator: Any = codes("annotator")
    label: Any = values()
    gold: Any = per("system", "item", default=None)
    gold_probability: Any = per("system", "item", default=None)
    num_verdicts: int = size()
    num_items: int = size()
    num_systems: int = size()
    num_annotators: int = size()
    items: Any = ids("item")
    systems: Any = ids("system")
    annotators: Any = ids("annotator")

    def _table(self, rows: slice = slice(None)) -> dict[str, np.ndarray]:
        at = {name: np.asarray(getattr(self, name))[rows] for name in ("item", "system", "annotator")}
        found = {name: self._called(codes, name) for name, codes in at.items()}
        found["label"] = np.asarray(self.label)[rows]
        for name in ("gold", "gold_probability"):
            if (values := getattr(self, name)) is not None:
                found[name] = np.asarray(values)[at["system"], at["item"]]
        return found

    @classmethod
    def from_codes(
        cls, item: ArrayLike, system: ArrayLike, annotator: ArrayLike, label: ArrayLike, *,
        gold: ArrayLike | None = None, gold_probability: ArrayLike | None = None, items: Names | None = None,
        systems: Names | None = None, annotators: Names | None = None, num_items: int | None = None,
        num_systems: int | None = None, num_annotators: int | None = None,
    ) -> Self:  # fmt: skip
        """Make verdicts from integer codes and numbers, each of shape ``(verdict,)``.

        Parameters
        ----------
        item, system, annotator : ArrayLike
            Whole numbers from 0.
        label : ArrayLike
            From 0, wrong, to 1, right.
        gold : shape ``(system, item)``
            The same, NaN where it is not known.
        gold_probability : shape ``(system, item)``
            Above 0 and at most 1 wherever there is a gold label.
        items, systems, annotators : Names, optional
            Ids in code order; the codes as texts where absent.
        num_items, num_systems, num_annotators : int, optional
            Sizes; where absent, those of the ids, or else just large enough.

        Raises
        ------
        InputError : with every problem found.
        """
        problems = Problems("the codes")
        item, num_items = sized(problems, "item", item, items, num_items)
        system, num_systems = sized(problems, "system", system, systems, num_systems)
        annotator, num_annotators = sized(problems, "annotator", annotator, annotators, num_annotators)
        label = as_numbers(problems, label, "label")
        remedy = "give one entry per verdict"
        check_lengths(problems, remedy, item=item, system=system, annotator=annotator, label=label)
        problems.add_each(~((label >= 0) & (label <= 1)), *_NO_VERDICT, column="label", values=label)
        shape = (num_systems, num_items)
        gold, chance = (
            np.full(shape, np.nan) if given is None else _array_of_pairs(problems, name, given, shape)
            for name, given in (("gold", gold), ("gold_probability", gold_probability))
        )
        known, stated = ~np.isnan(gold), gold_probability is not None
        for wrong, complaint, column, numbers in (
            (known & ~((gold >= 0) & (gold <= 1)), _NO_VERDICT, "gold", gold),
            (known & ~((chance > 0) & (chance <= 1)) & stated, _NO_PROBABILITY, "gold_probability", chance),
        ):
            problems.add_each(wrong.ravel(), *complaint, column=column, values=numbers.ravel())
        if not len(item):
            problems.add("there are no verdicts", "check where the codes come from")
        problems.raise_any()
        return cls(
            item=item, system=system, annotator=annotator, label=label, gold=gold if known.any() else None,
            gold_probability=np.where(known, chance, np.nan) if stated and known.any() else None,
            num_verdicts=len(item), num_items=num_items, num_systems=num_systems, num_annotators=num_annotators,
            items=names_or_codes(items, num_items, "items"), systems=names_or_codes(systems, num_systems, "systems"),
            annotators=names_or_codes(annotators, num_annotators, "annotators"),
        )  # fmt: skip

    @property
    def output(self) -> np.ndarray:
        """The place of the output of each verdict in an array ``(system, item)`` that is laid out flat."""
        return np.asarray(self.system, np.int64) * self.num_items + self.item

    def shares(self, missing: str = "error") -> tuple[np.ndarray, np.ndarray]:
        """Return the mean verdict on each output, ``(system, item)``, and the items whose outputs were all judged.

        Parameters
        ----------
        missing : str, default "error"
            "error" refuses where an output was not judged; "drop" leaves its item out.

        Raises
        ------
        UnsupportedRequest : outputs were not judged.
        """
        check_option("missing", missing, ("error", "drop"))
        shape = (self.num_systems, self.num_items)
        said, number = (
            np.bincount(self.output, weight, shape[0] * shape[1]).reshape(shape) for weight in (self.label, None)
        )
        kept = (number > 0).all(axis=0)
        if not kept.any() or (missing == "error" and not kept.all()):
            system, item = np.argwhere(number == 0)[0]
            first = f"that of {self.systems[system]!r} on {self.items[item]!r}"
            text = f"{(number == 0).sum():,} outputs were not judged, such as {first}; "
            text += "{missing} compares on the other items" if kept.any() else "no item has outputs of all systems"
            raise UnsupportedRequest(text, Remedy("missing", "drop"))
        return said / np.maximum(number, 1), np.flatnonzero(kept)

    @classmethod
    @of_file
    def read(
        cls, source: Any, columns: Mapping[str, str] | None = None, *, missing: str = "error", duplicates: str = "keep"
    ) -> Verdicts:
        """Read what judges say of the outputs of systems, and what is known of some of them.

        Parameters
        ----------
        source : path, data frame, dict of columns or list of rows
            A path (CSV, TSV, JSON, JSON lines, Parquet), a data frame or a dict of columns.
        columns : dict of str to str, optional
            Column names for "item", "system", "annotator", "label", "gold" and "gold_probability" where the table has
            names of its own. A label, and a gold label, is right or wrong, correct or incorrect, true or false, yes or
            no, in any case, or a number from 0 to 1.
        missing : str, default "error"
            "error", or "drop" to leave out rows whose label is empty. An empty item, system or annotator is always an
            error; an empty gold label is not known.
        duplicates : str, default "keep"
            What to do when an annotator judges an output again: "keep" counts every row, "first" keeps the first,
            "error" refuses.

        Returns
        -------
        verdicts
            Items, systems and annotators in the order of their first appearance.

        Raises
        ------
        InputError
            With every problem found, each with its line or row, column, value and remedy.

        Examples
        --------
        >>> import consilience as cs
        >>> rows = {"item": ["q1", "q1", "q2", "q2"], "system": ["A", "B", "A", "B"], "annotator": ["judge"] * 4}
        >>> rows |= {"label": ["right", "wrong", "right", 0.5], "gold": ["right", "", "", 0]}
        >>> verdicts = cs.read_verdicts(rows)
        >>> verdicts
        Verdicts(verdicts=4, items=2, systems=2, annotators=1)
        >>> verdicts.gold.tolist()
        [[1.0, nan], [nan, 0.0]]
        """
        check_option("missing", missing, ("error", "drop"))
        check_option("duplicates", duplicates, ("keep", "first", "error"))
        table = read_table(source, choose_columns(Verdicts.columns, columns))
        named = {role: table.texts(role, required=True) for role in ("item", "system", "annotator")}
        by_row = tuple(code for code, _ in named.values())
        label, keep = _verdicts(table, "label"), filled_rows(table, "label", missing)
        keep &= keep_repeated(table, keep, by_row, duplicates, "item, system and annotator")
        gold = _verdicts(table, "gold") if "gold" in table.columns else None
        chance = table.numbers("gold_probability") if "gold_probability" in table.columns else None
        if gold is not None and chance is not None:
            table.flag(~np.isnan(gold) & ~((chance > 0) & (chance <= 1)), "gold_probability", *_NO_PROBABILITY)
        table.problems.raise_any()
        require_rows(table, keep)
        coded: dict[str, Any] = {role: compact(code[keep], names) for role, (code, names) in named.items()}
        used = [recode(np.arange(len(coded[role][1])), coded[role][1], named[role][1]) for role in ("system", "item")]
        of_pairs: dict[str, Any] = {
            role: _of_pairs(table, role, values, by_row[1], by_row[0], [len(named[of][1]) for of in ("system", "item")])
            for role, values in (("gold", gold), ("gold_probability", chance)) if values is not None
        }  # fmt: skip
        table.problems.raise_any()
        return Verdicts.from_codes(
            **{role: code for role, (code, _) in coded.items()}, label=label[keep],
            **{f"{role}s": names for role, (_, names) in coded.items()},
            **{role: dense[np.ix_(*used)] for role, dense in of_pairs.items()},
        )  # fmt: skip


read_verdicts = Verdicts.read


def _verdicts(table: Table, role: str) -> np.ndarray:
    """Read a column of verdicts as numbers from 0 to 1, NaN where a cell is empty; what is none is noted."""
    column = table.columns[role]
    found = [_WORDS.get(str(value).strip().casefold(), number(value)) for value in column.values]
    values = np.array([*found, np.nan])[column.codes]
    rows = np.flatnonzero(~table.empty(role) & ~((values >= 0) & (values <= 1)))
    if len(rows):
        codes = list(dict.fromkeys(column.codes[rows].tolist()))
        listed = first_of(repr(shorten(str(column.values[code]))) for code in codes)
        message = f"{len(rows):,} row{' holds' if len(rows) == 1 else 's hold'} no verdict: {listed}"
        table.problems.add(message, _ACCEPTED, row=table.place(int(rows[0])), column=column.name)
    return values


def _of_pairs(
    table: Table, role: str, values: np.ndarray, system: np.ndarray, item: np.ndarray, shape: list[int]
) -> np.ndarray:
    """Return what rows say of outputs, ``(system, item)``, NaN where none does; contradictions are noted."""
    distinct, code = np.unique(values, return_inverse=True)
    first, differs = said_first(code, ~np.isnan(values), system * shape[1] + item, shape[0] * shape[1])
    message = f"an earlier row has another {role} for this item and system"
    table.flag(differs, role, message, f"keep one {role} for each item and system")
    return np.where(first >= 0, distinct[first], np.nan).reshape(shape)


def _array_of_pairs(problems: Problems, name: str, given: ArrayLike, shape: tuple[int, int]) -> np.ndarray:
    """Return numbers of outputs, or raise where they are none, too few or too many."""
    found = as_numbers(problems, given, name)
    if found.shape != shape:
        remedy = f"give a row for each of {shape[0]} systems with {shape[1]} items, NaN where unknown"
        raise problems.fail(f"{name} has the shape {found.shape}", remedy, column=name)
    return found
