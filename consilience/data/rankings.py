"""Rankings: partial orders with ties, such as differential diagnoses, one report by one annotator for one item.

A report orders some classes in blocks: the classes of a block are tied, block 0 is ranked first, and the classes that
it does not name are unranked, below all blocks. Long rows hold the named classes; `entry` joins the rows that name the
same class of the same item, which is all that an item's plausibilities can depend on.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from consilience.data.cells import Table, cell_text
from consilience.data.codes import (
    Names,
    as_names,
    as_numbers,
    check_codes,
    check_lengths,
    names_or_codes,
    recode,
    repeated,
    sized,
    sorted_names,
)  # fmt: skip
from consilience.data.columns import ANNOTATOR, CLASS, ITEM, Column, choose_columns
from consilience.data.contract import Contract, array, codes, ids, moved, of_file, size
from consilience.data.files import find_file, read_json
from consilience.data.policies import flag_or_warn, keep_repeated, known_rows
from consilience.data.problems import KEPT_PER_KIND, Problems, check_option
from consilience.data.tables import read_table
from consilience.notes import Remedy


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Rankings(Contract):
    """Partial rankings with ties; made by `read_rankings` or `from_nested`.

    Parameters
    ----------
    report_item, report_annotator : int32, shape ``(report,)``
        Who ranked what. Sorted by item. A report may rank nothing.
    report : int32, shape ``(row,)``
        Sorted; the report that a row belongs to.
    block : int32, shape ``(row,)``
        Dense 0-based rank of the block within its report. Non-decreasing within a report.
    block_size : int32, shape ``(row,)``
        Number of classes tied in the row's block.
    entry : int32, shape ``(row,)``
        The (item, class) pair that the row names.
    entry_item, entry_class : int32, shape ``(entry,)``
        The distinct named pairs, sorted by item, then class.
    unlisted_report, unlisted_entry : int32, shape ``(unlisted,)``
        Sorted by report, then entry; for each report the entries of its item that it does not list. They are stored
        because the mass ranked below a block has to be a sum over what remains: the item's total minus what was listed
        would lose all digits where little remains.
    num_rows, num_tied, num_reports, num_entries, num_unlisted, num_items, num_annotators, num_classes : int
        Sizes; ``num_tied`` is the number of rows in blocks of two classes and more.
    items, annotators, classes : sequence, optional
        Object arrays of the user's own ids, in code order; ``None`` in a copy that went through JAX.

    Examples
    --------
    >>> import consilience as cs
    >>> rankings = cs.Rankings.from_nested([[[["flu"], ["cold"]], [["flu", "cold"]]]])  # the second annotator ties them
    >>> rankings
    Rankings(rows=4, reports=2, entries=2, items=1, annotators=2, classes=2)
    >>> rankings.block.tolist()
    [0, 1, 0, 0]
    """

    columns = (
        ITEM,
        ANNOTATOR,
        CLASS,
        Column("rank", ("position",), help="1 is best, equal ranks are tied; a class without a row is unranked"),
    )
    reader = "read_rankings"
    agreements = ("left-out",)
    rows = "report"
    report_item: Any = codes("item")
    report_annotator: Any = codes("annotator")
    report: Any = array(shape=("num_rows",), codes="num_reports")
    block: Any = array(shape=("num_rows",), codes="num_rows")
    block_size: Any = array(shape=("num_rows",))
    entry: Any = array(shape=("num_rows",), codes="num_entries")
    entry_item: Any = array(shape=("num_entries",), codes="num_items")
    entry_class: Any = array(shape=("num_entries",), codes="num_classes")
    unlisted_report: Any = array(shape=("num_unlisted",), codes="num_reports")
    unlisted_entry: Any = array(shape=("num_unlisted",), codes="num_entries")
    num_rows: int = size()
    num_tied: int = size(derived=True)
    num_reports: int = size()
    num_entries: int = size()
    num_unlisted: int = size(derived=True)
    num_items: int = size()
    num_annotators: int = size()
    num_classes: int = size()
    items: Any = ids("item")
    annotators: Any = ids("annotator")
    classes: Any = ids("class")

    def _table(self, rows: slice = slice(None)) -> dict[str, np.ndarray]:
        report, entry = (np.asarray(codes)[rows] for codes in (self.report, self.entry))
        codes = {
            "item": np.asarray(self.report_item)[report], "annotator": np.asarray(self.report_annotator)[report],
            "class": np.asarray(self.entry_class)[entry],
        }  # fmt: skip
        found = {name: self._called(values, name) for name, values in codes.items()}
        return {**found, "rank": np.asarray(self.block)[rows] + 1}

    @classmethod
    def from_codes(
        cls, report_item: ArrayLike, report_annotator: ArrayLike, report: ArrayLike, block: ArrayLike,
        class_: ArrayLike, *,
        num_items: int | None = None, num_annotators: int | None = None, num_classes: int | None = None,
        items: Names | None = None, annotators: Names | None = None, classes: Names | None = None,
    ) -> Self:  # fmt: skip
        """Make rankings from integer codes, in any order of the rows and reports.

        Parameters
        ----------
        report_item, report_annotator : ArrayLike
            Whole numbers from 0, shape ``(report,)``.
        report, class_ : ArrayLike
            Whole numbers from 0, shape ``(row,)``; which report names which class. A class occurs once per report.
        block : ArrayLike
            Any numbers, shape ``(row,)``; smaller is ranked higher, equal is tied. They need not be dense.
        num_items, num_annotators, num_classes : int, optional
            Sizes; where absent, those of the ids, or else just large enough for the codes.
        items, annotators, classes : Names, optional
            Ids in code order; the codes as texts where absent.
        """
        problems = Problems("the codes")
        report_item, num_items = sized(problems, "item", report_item, items, num_items)
        report_annotator, num_annotators = sized(problems, "annotator", report_annotator, annotators, num_annotators)
        class_code, num_classes = sized(problems, "class", class_, classes, num_classes)
        row_report = check_codes(problems, "report", report, len(report_item))
        position = as_numbers(problems, block, "block")
        remedy = "give one entry per report and row"
        check_lengths(problems, remedy, report_item=report_item, report_annotator=report_annotator)
        check_lengths(problems, remedy, report=row_report, block=position, **{"class": class_code})
        if not np.isfinite(position).all():
            remedy = "number the blocks of a report from 0"
            problems.add("the blocks are not all finite numbers", remedy, column="block")
        if not len(report_item):
            problems.add("there are no reports", "check where the codes come from")
        problems.raise_any()
        for row in np.flatnonzero(repeated(row_report, class_code))[:KEPT_PER_KIND].tolist():
            place = {"row": f"position {row}", "column": "class", "value": class_code[row]}
            problems.add(f"report {row_report[row]} names this class twice", "name each class once per report", **place)
        problems.raise_any()
        return cls._of_checked(
            report_item, report_annotator, row_report, position, class_code,
            num_items=num_items, num_annotators=num_annotators, num_classes=num_classes,
            items=names_or_codes(items, num_items, "items"),
            annotators=names_or_codes(annotators, num_annotators, "annotators"),
            classes=names_or_codes(classes, num_classes, "classes"),
        )  # fmt: skip

    @classmethod
    def _of_checked(
        cls, report_item: np.ndarray, report_annotator: np.ndarray, row_report: np.ndarray, position: np.ndarray,
        class_code: np.ndarray, *, num_classes: int, **named: Any,
    ) -> Self:  # fmt: skip
        """Sort reports and rows, and find the entries, of codes that fit each other."""
        by_item = np.argsort(report_item, kind="stable")
        report_item, report_annotator = report_item[by_item], report_annotator[by_item]
        row_report = np.argsort(by_item)[row_report].astype(np.int32)
        order = np.lexsort((class_code, position, row_report))
        row_report, class_code = row_report[order], class_code[order]
        block, block_size = _dense_blocks(row_report, position[order])
        pairs = report_item[row_report].astype(np.int64) * num_classes + class_code
        entries, entry = np.unique(pairs, return_inverse=True)
        entry_item, entry_class = np.divmod(entries, max(num_classes, 1))
        unlisted_report, unlisted_entry = _unlisted(report_item, row_report, entry, entry_item)
        return cls(
            report_item=report_item, report_annotator=report_annotator,
            report=row_report, block=block, block_size=block_size, entry=entry.astype(np.int32),
            entry_item=entry_item.astype(np.int32), entry_class=entry_class.astype(np.int32),
            unlisted_report=unlisted_report, unlisted_entry=unlisted_entry,
            num_rows=len(row_report), num_tied=int(np.count_nonzero(block_size > 1)), num_reports=len(report_item),
            num_entries=len(entries), num_unlisted=len(unlisted_report), num_classes=num_classes, **named,
        )  # fmt: skip

    @classmethod
    def from_nested(
        cls, nested: Any, *, classes: Names | str | os.PathLike | None = None, items: Names | None = None
    ) -> Rankings:
        """Make rankings from nested lists: case > annotator > block > class.

        Parameters
        ----------
        nested : sequence
            The cases, a list or a dict ``{case id: …}``; each case a list or a dict of annotators; each annotator a
            list of blocks, best first; each block a list of tied classes, all texts or all codes. In lists, the
            position is the id.
        classes : Names, str or path, optional
            Ids of the classes in code order, or the path of a text file with one per line. Without it, the texts that
            occur, sorted; or every code up to the largest.
        items : Names, optional
            Ids of the cases where ``nested`` is a list.
        """
        return _from_nested(nested, Problems("the nested lists"), classes, items)

    @classmethod
    @of_file
    def read(
        cls, source: Any, *, columns: Mapping[str, str] | None = None, classes: Names | str | os.PathLike | None = None,
        missing: str = "error", duplicates: str = "error", unknown: str = "error",
    ) -> Rankings:  # fmt: skip
        """Read partial rankings with ties.

        Parameters
        ----------
        source : path, data frame, dict of columns or list of rows
            A table (path, data frame or dict of columns) with one row per ranked class; or a JSON file of nested lists,
            case > annotator > block > class, as `Rankings.from_nested` takes them.
        columns : dict of str to str, optional
            Column names for "item", "annotator", "class" and "rank" where the table has names of its own. A rank is a
            positive number, 1 is best, equal ranks are tied, gaps do not matter; a class without a row is unranked. A
            row without class and rank stands for an annotator who ranks nothing.
        classes : Names, str or path, optional
            The closed list of classes in order, or the path of a text file with one class per line. By default the
            classes that occur, sorted.
        missing : str, default "error"
            "error", or "drop" to take a class with an empty rank for unranked.
        duplicates : str, default "error"
            "error", or "first" to keep the first row where an annotator ranks a class of an item again.
        unknown : str, default "error"
            "error", or "drop" to leave out rows whose class is not in ``classes`` (tables only).

        Returns
        -------
        rankings
            Items and annotators in the order of their first appearance.

        Examples
        --------
        >>> import consilience as cs
        >>> cs.read_rankings({
        ...     "item": ["a", "a", "a"],
        ...     "annotator": ["Ann", "Ann", "Bob"],
        ...     "class": ["flu", "cold", "flu"],
        ...     "rank": [1, 2, 1],
        ... })
        Rankings(rows=3, reports=2, entries=2, items=1, annotators=2, classes=2)
        """
        check_option("missing", missing, ("error", "drop"))
        check_option("duplicates", duplicates, ("first", "error"))
        check_option("unknown", unknown, ("error", "drop"))
        nested = None if columns else _nested_content(source)
        if nested is not None:
            return _from_nested(nested[0], nested[1], classes, None)
        table = read_table(source, choose_columns(Rankings.columns, columns))
        closed = None if classes is None else as_names(classes, "classes")
        return _from_table(table, closed, missing, duplicates, unknown)

    @classmethod
    def recognises(cls, source: Any) -> bool:
        """Return whether a source is a JSON file of nested lists."""
        return _nested_content(source) is not None

    def coordinates(self) -> dict[str, np.ndarray]:
        """Return the names of what numbers lie along; an entry is called by its item and its class."""
        names = super().coordinates()
        if {"item", "class"} <= names.keys():
            items, classes = names["item"][self.entry_item], names["class"][self.entry_class]
            names["entry"] = np.char.add(np.char.add(items, ": "), classes)
        return names

    def _moved(self, dimension: str, permutation: np.ndarray) -> Self:
        """Make the rows anew, on whose order and codes all other arrays depend."""
        own = super()._moved(dimension, permutation)
        report = moved(np.asarray(self.report), (), "report", dimension, permutation)
        classes = moved(np.asarray(self.entry_class)[self.entry], (), "class", dimension, permutation)
        return own._of_rows(own.report_item, own.report_annotator, report, self.block, classes)

    def repeated(self, number: int) -> Self:
        """Return the rankings with every report so many times."""
        report = np.arange(number)[:, None] * self.num_reports + np.asarray(self.report)
        items, annotators, block, classes = (
            np.tile(array, number)
            for array in (self.report_item, self.report_annotator, self.block, np.asarray(self.entry_class)[self.entry])
        )
        return self._of_rows(items, annotators, report.ravel(), block, classes)

    def _of_rows(self, *rows: Any) -> Self:
        """Make rankings of other reports and rows, of the same things and with their ids."""
        kept = ("num_items", "num_annotators", "num_classes", "items", "annotators", "classes")
        return self._of_checked(*map(np.asarray, rows), **{name: getattr(self, name) for name in kept})


read_rankings = Rankings.read


def _dense_blocks(report: np.ndarray, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return, for rows sorted by report and block, the 0-based rank of each row's block and the block's size."""
    if not len(report):
        return np.empty(0, np.int32), np.empty(0, np.int32)
    new_report = np.concatenate([[True], report[1:] != report[:-1]])
    new_block = new_report | np.concatenate([[True], block[1:] != block[:-1]])
    number = np.cumsum(new_block) - 1
    first_of_report = number[np.maximum.accumulate(np.where(new_report, np.arange(len(report)), 0))]
    return (number - first_of_report).astype(np.int32), np.bincount(number)[number].astype(np.int32)


def _unlisted(
    report_item: np.ndarray, row_report: np.ndarray, entry: np.ndarray, entry_item: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of a report and an entry of its item that the report does not list, sorted."""
    first = np.searchsorted(entry_item, report_item)
    count = np.searchsorted(entry_item, report_item, side="right") - first
    pair_report = np.repeat(np.arange(len(report_item)), count)
    # Entry k of report r is pair k + shift[r].
    shift = np.cumsum(count) - count - first
    unlisted = np.ones(len(pair_report), bool)
    unlisted[entry + shift[row_report]] = False
    pair_entry = np.arange(len(pair_report)) - shift[pair_report]
    return pair_report[unlisted].astype(np.int32), pair_entry[unlisted].astype(np.int32)


# ---- nested lists ----


def _from_nested(nested: Any, problems: Problems, classes: Any, items: Names | None) -> Rankings:
    """Flatten level by level; every level is checked before the next one is opened."""
    closed = None if classes is None else as_names(classes, "classes")
    case_ids, cases = _level([nested], ["the whole"], "case", problems)
    if items is not None:
        case_ids = as_names(items, "items")
        if len(case_ids) != len(cases):
            message = f"there are {len(cases)} cases but {len(case_ids)} items"
            raise problems.fail(message, "give one id per case")
    annotator_ids, reports = _level(cases, [f"case {name}" for name in case_ids], "annotator", problems)
    problems.raise_any()
    report_item = np.repeat(np.arange(len(cases), dtype=np.int32), [len(case) for case in cases])
    annotators = list(dict.fromkeys(annotator_ids))

    def report_place(index: int) -> str:
        return f"case {case_ids[report_item[index]]}, annotator {annotator_ids[index]}"

    blocks, block_report = _open_lists(reports, report_place, "an annotator has to be a list of blocks", problems)

    def block_place(index: int) -> str:
        first = int(np.searchsorted(block_report, block_report[index]))
        return f"{report_place(block_report[index])}, block {index - first}"

    def row_place(row: int) -> str:
        return block_place(row_block[row])

    named, row_block = _open_lists(blocks, block_place, "a block has to be a list of classes", problems)
    is_empty = np.bincount(row_block, minlength=len(blocks)) == 0
    remedy = "delete it; an annotator who ranks nothing is an empty list"
    problems.add_each(is_empty, "the block is empty", remedy, place=block_place)
    problems.raise_any()
    code, order = _class_codes(named, closed, row_place, problems)
    report = block_report[row_block]
    again, remedy = repeated(report, code) & (code >= 0), "name each class once per annotator"
    message = "this annotator has ranked the class already"
    problems.add_each(again, message, remedy, place=row_place, column="class", values=named)
    if not reports:
        problems.add("no annotator ranks anything", "check that this is the file you meant")
    problems.raise_any()
    annotator = recode(np.arange(len(annotator_ids)), annotator_ids, annotators)
    return Rankings.from_codes(
        report_item, annotator, report, row_block, code, items=case_ids, annotators=annotators, classes=order,
        num_items=len(cases),
    )  # fmt: skip


def _level(parents: list[Any], places: list[str], what: str, problems: Problems) -> tuple[list[str], list[Any]]:
    """Open lists or dicts; returns the id of each child (its key, or its position) and the children."""
    names: list[str] = []
    children: list[Any] = []
    for parent, place in zip(parents, places, strict=True):
        if isinstance(parent, Mapping):
            own = [cell_text(key)[0] for key in parent]
            names += own
            children += parent.values()
            if "" in own or len(set(own)) < len(own):
                problems.add(f"the {what} ids have to be distinct and not empty", "correct the keys", row=place)
        elif isinstance(parent, list | tuple):
            names += map(str, range(len(parent)))
            children += parent
        else:
            problems.add(f"a list or object of {what}s is expected", "see read_rankings", row=place, value=parent)
    problems.raise_any()
    return names, children


def _open_lists(
    parents: list[Any], place: Callable[[int], str], expected: str, problems: Problems
) -> tuple[list[Any], np.ndarray]:
    """Open lists that stand on one level; returns their children and the index of each child's parent."""
    for index, parent in enumerate(parents):
        if not isinstance(parent, list | tuple):
            problems.add(expected, "write case > annotator > block > class", row=place(index), value=parent)
    problems.raise_any()
    index_of_parent = np.repeat(np.arange(len(parents)), np.fromiter(map(len, parents), np.int64, len(parents)))
    return list(itertools.chain.from_iterable(parents)), index_of_parent


def _class_codes(
    named: list[Any], closed: list[str] | None, place: Callable[[int], str], problems: Problems
) -> tuple[np.ndarray, list[str]]:
    """Return codes and ids of classes that are all texts or all codes."""

    def report(rows: np.ndarray, message: str, remedy: str, *remedies: Remedy) -> None:
        problems.add_each(rows, message, remedy, *remedies, place=place, column="class", values=named)

    kinds = set(map(type, named))
    if kinds <= {int}:
        # Python integers may exceed any dtype; out-of-range ones become -1 and are reported.
        limit = np.iinfo(np.int32).max if closed is None else len(closed)
        codes = np.array([code if 0 <= code < limit else -1 for code in named], np.int32)
        remedy = "correct the code or pass more classes"
        report(codes < 0, f"class codes from 0 to {limit - 1} are expected", remedy)
        return codes, closed or [str(code) for code in range(int(codes.max(initial=-1)) + 1)]
    if kinds != {str}:
        odd = np.array([type(value) is not str for value in named])
        remedy = "write every class as a text, or every class as its code"
        report(odd, "a class is neither a text nor, as all others, a code", remedy)
        return np.full(len(named), -1, np.int32), []
    texts = [cell_text(value)[0] for value in named]
    order = closed or sorted_names(set(texts) - {""})
    codes = recode(np.arange(len(texts)), texts, order)
    codes[[not text for text in texts]] = -1
    report(codes == -1, "the class is empty or no text", "name the class")
    report(codes == -2, "this class is not in {classes}", "correct it or add it to the list", Remedy("classes"))
    return codes, order


# ---- files and data frames ----


def _nested_content(source: Any) -> tuple[Any, Problems] | None:
    """Return the content of a JSON file unless it is a table, that is, an array of objects with plain values."""
    if not isinstance(source, str | os.PathLike) or not str(source).lower().endswith((".json", ".json.gz")):
        return None
    path, _ = find_file(source, (".json",))
    problems = Problems(str(path))
    content = read_json(path, problems)
    first = content[0] if isinstance(content, list) and content else None
    is_table = isinstance(first, dict) and not all(isinstance(value, list) for value in first.values())
    return None if is_table else (content, problems)


def _from_table(table: Table, closed: list[str] | None, missing: str, duplicates: str, unknown: str) -> Rankings:
    item, items = table.texts("item", required=True)
    annotator, annotators = table.texts("annotator", required=True)
    code, named = table.texts("class")
    order = closed or sorted_names(named)
    code = recode(code, named, order)
    rank = table.numbers("rank", what="a positive rank")
    table.flag(rank <= 0, "rank", "a positive rank is expected", "count ranks from 1, the best")
    ranked = _apply_policies(table, code, missing, unknown)
    ranked &= keep_repeated(table, ranked, (item, annotator, code), duplicates, "item, annotator and class")
    filled = (item >= 0) & (annotator >= 0)
    alone = ~table.empty("class") | ~(repeated(item, annotator) | repeated(item[::-1], annotator[::-1])[::-1])
    remedy = "delete the row; an empty class stands for an annotator who ranks nothing at all"
    table.flag(filled & ~alone, "class", "the class is empty but the annotator has other rows", remedy)
    table.problems.raise_any()
    pairs, report = np.unique(item.astype(np.int64) * len(annotators) + annotator, return_inverse=True)
    return Rankings.from_codes(
        pairs // len(annotators), pairs % len(annotators), report[ranked], rank[ranked], code[ranked],
        items=items, annotators=annotators, classes=order, num_classes=len(order),
    )  # fmt: skip


def _apply_policies(table: Table, code: np.ndarray, missing: str, unknown: str) -> np.ndarray:
    """Return which rows rank a class, after flagging or dropping those that should and do not."""
    no_class, no_rank = table.empty("class"), table.empty("rank")
    table.flag(no_class & ~no_rank, "rank", "there is a rank but no class", "name the class or delete the row")
    flag_or_warn(
        table, no_rank & ~no_class, "class", missing, "the rank of this class is empty",
        "fill it in, or pass {missing} to take the class for unranked",
        "classes with an empty rank were taken for unranked ({missing})", Remedy("missing", "drop"),
    )  # fmt: skip
    return known_rows(table, "class", code, unknown, "classes") & ~no_rank
