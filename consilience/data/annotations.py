"""Annotations: one label by one annotator for one item, in a long table.

`read_annotations` reads files and data frames in three layouts. The long one has one row per annotation. The wide one
has one row per item and one column per annotator, empty where that annotator did not look. Counts have one row per item
and one column per label, with no word on who gave it.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from consilience.data.cells import Table
from consilience.data.codes import (
    Names,
    as_array,
    as_names,
    as_numbers,
    check_codes,
    check_lengths,
    compact,
    names_or_codes,
    object_array,
    ones,
    recode,
    repeated,
    sized,
    sorted_names,
)  # fmt: skip
from consilience.data.columns import (
    ANNOTATOR,
    ITEM,
    Column,
    choose_columns,
    choose_columns_or_layout,
    say_what_is_ignored,
)
from consilience.data.contract import Contract, codes, ids, of_file, per, size, values
from consilience.data.files import holds_coded
from consilience.data.memory import release
from consilience.data.policies import (
    check_writing,
    filled_rows,
    keep_repeated,
    known_rows,
    require_rows,
    said_first,
    warn_of_writing,
)
from consilience.data.problems import Problems, check_option, warn_input
from consilience.data.tables import read_table
from consilience.errors import UnknownName, UnsupportedRequest
from consilience.notes import Remedy

_UNKNOWN = (Remedy("labels"), Remedy("unknown", "drop"))


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Annotations(Contract):
    """Labels from a crowd, as codes; made by `read_annotations`, `from_codes` or `from_counts`.

    Parameters
    ----------
    item, label : int32, shape ``(annotation,)``
        Codes into ``items`` and ``labels``.
    annotator : int32, shape ``(annotation,)``
        Code into ``annotators``, -1 where only counts are known.
    weight : float64, shape ``(annotation,)``
        How many times the row counts. One where the file has no weights.
    gold : int32, shape ``(item,)``
        The known label of an item or -1; ``None`` where the input has no such column.
    group : int32, shape ``(annotator,)``
        Code into ``groups`` of those who share a source with the annotator, or -1; ``None`` where no column says so.
    num_annotations, num_items, num_annotators, num_labels : int
        sizes.
    items, annotators, labels, groups : sequence, optional
        Object arrays of the user's own ids, in code order; ``None`` in a copy that went through JAX.

    Examples
    --------
    >>> import consilience as cs
    >>> data = cs.Annotations.from_codes(
    ...     item=[0, 0, 1], annotator=[0, 1, 0], label=[1, 1, 0], items=["a", "b"], labels=["no", "yes"]
    ... )
    >>> data
    Annotations(annotations=3, items=2, annotators=2, labels=2)
    >>> data.labels[data.label].tolist()
    ['yes', 'yes', 'no']
    >>> cs.Annotations.from_counts([[3, 0], [1, 2]], labels=["no", "yes"]).weight.tolist()
    [3.0, 1.0, 2.0]
    """

    columns = (
        ITEM,
        ANNOTATOR,
        Column("label", ("answer", "response", "agg_label"), "label", "what the annotator says"),
        Column("gold", ("truth", "true_label", "ground_truth"), "label", "the known label of the item", optional=True),
        Column("weight", help="how many times the row counts", optional=True),
        Column("group", (), "group", "who shares a source with the annotator", optional=True),
    )
    reader = "read_annotations"
    agreements = ("left-out", "pairs")
    rows = "annotation"
    item: Any = codes("item")
    annotator: Any = codes("annotator", missing=True)
    label: Any = codes("label")
    weight: Any = values()
    gold: Any = per("item", codes="label", missing=True, default=None)
    group: Any = per("annotator", codes="group", missing=True, later=True, default=None)
    num_annotations: int = size()
    num_items: int = size()
    num_annotators: int = size()
    num_labels: int = size()
    items: Any = ids("item")
    annotators: Any = ids("annotator")
    labels: Any = ids("label", "class")
    groups: Any = ids("group", later=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.weight, np.ndarray) and len(self.weight) and (self.weight == 1.0).all():
            object.__setattr__(self, "weight", ones(len(self.weight)))

    def _table(self, rows: slice = slice(None)) -> dict[str, np.ndarray]:
        found = super()._table(rows)
        if (np.asarray(self.weight) == 1).all():
            del found["weight"]
        return found

    @classmethod
    def from_codes(
        cls, item: ArrayLike, annotator: ArrayLike | None, label: ArrayLike, *,
        weight: ArrayLike | None = None, gold: ArrayLike | None = None, group: ArrayLike | None = None,
        items: Names | None = None, annotators: Names | None = None, labels: Names | None = None,
        groups: Names | None = None,
        num_items: int | None = None, num_annotators: int | None = None, num_labels: int | None = None,
    ) -> Self:  # fmt: skip
        """Make annotations from integer codes.

        Parameters
        ----------
        item, annotator, label : ArrayLike
            Whole numbers from 0, shape ``(annotation,)``; ``annotator=None`` where nobody knows who labelled.
        weight : ArrayLike, optional
            Finite and not negative, shape ``(annotation,)``; one where absent.
        gold : shape ``(item,)``
            The known label or -1.
        group : shape ``(annotator,)``
            Those of one code share a source, and those of -1 share none.
        items, annotators, labels, groups : Names, optional
            Ids in code order; the codes as texts where absent.
        num_items, num_annotators, num_labels : int, optional
            Sizes; where absent, those of the ids, or else just large enough for the codes.
        """
        problems = Problems("the codes")
        item, num_items = sized(problems, "item", item, items, num_items)
        label, num_labels = sized(problems, "label", label, labels, num_labels)
        if annotator is None:
            annotator, num_annotators = np.full(len(item), -1, np.int32), num_annotators or 0
        else:
            annotator, num_annotators = sized(problems, "annotator", annotator, annotators, num_annotators)
        weight = ones(len(item)) if weight is None else as_numbers(problems, weight, "weight")
        remedy = "give one entry per annotation"
        check_lengths(problems, remedy, item=item, annotator=annotator, label=label, weight=weight)
        refused = ~(np.isfinite(weight) & (weight >= 0))
        message, remedy = "a weight has to be finite and not negative", "correct or leave out the row"
        problems.add_each(refused, message, remedy, column="weight", values=weight)
        if gold is not None:
            gold = check_codes(problems, "gold", gold, num_labels, lowest=-1)
            if len(gold) != num_items:
                remedy = "give one entry per item, -1 where unknown"
                problems.add(f"gold has {len(gold)} entries for {num_items} items", remedy)
        if group is not None:
            group = check_codes(problems, "group", group, None if groups is None else len(groups), lowest=-1)
            if len(group) != num_annotators:
                remedy = "give one entry per annotator, -1 for one without group"
                problems.add(f"group has {len(group)} entries for {num_annotators} annotators", remedy)
        if not len(item):
            problems.add("there are no annotations", "check where the codes come from")
        problems.raise_any()
        return cls(
            item=item, annotator=annotator, label=label, weight=weight, gold=gold, group=group,
            num_annotations=len(item), num_items=num_items, num_annotators=num_annotators, num_labels=num_labels,
            items=names_or_codes(items, num_items, "items"),
            annotators=names_or_codes(annotators, num_annotators, "annotators"),
            labels=names_or_codes(labels, num_labels, "labels"),
            groups=None if group is None else names_or_codes(groups, int(group.max(initial=-1)) + 1, "groups"),
        )  # fmt: skip

    @classmethod
    def from_counts(
        cls, counts: ArrayLike, *, items: Names | None = None, labels: Names | None = None,
        gold: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Make annotations from how often each item got each label; the annotators stay unknown.

        Parameters
        ----------
        counts : ArrayLike
            Finite and not negative, shape ``(item, label)``. Each that is not zero becomes one row with that weight.
        items, labels : Names, optional
            Ids in code order; the codes as texts where absent.
        gold : shape ``(item,)``
            The known label or -1.
        """
        problems = Problems("the counts")
        counts = as_array(problems, counts)
        if counts.ndim != 2 or counts.dtype.kind not in "iuf":
            message = f"a two-dimensional array of numbers is expected, not {counts.dtype} of shape {counts.shape}"
            raise problems.fail(message, "pass one row per item and one column per label")
        for item, label in np.argwhere(~(np.isfinite(counts) & (counts >= 0)))[:1000].tolist():
            remedy = "correct it; zero stands for 'never'"
            place = {"row": f"item {item}", "column": f"label {label}", "value": counts[item, label]}
            problems.add("a count has to be finite and not negative", remedy, **place)
        problems.raise_any()
        item_codes, label_codes = np.nonzero(counts)
        return cls.from_codes(
            item_codes, None, label_codes, weight=counts[item_codes, label_codes], gold=gold,
            items=items, labels=labels, num_items=counts.shape[0], num_labels=counts.shape[1],
        )  # fmt: skip

    def grouped(self, groups: Mapping[str, str]) -> Self:
        """Return these annotations with groups of annotators who share a source; groups that they had are forgotten.

        Parameters
        ----------
        groups : dict of str to str
            Annotator to group, by the user's ids; who is not named shares a source with nobody.

        Raises
        ------
        UnknownName : for an annotator whom the data do not have.

        Examples
        --------
        >>> import consilience as cs
        >>> data = cs.Annotations.from_codes([0, 0], [0, 1], [1, 1], annotators=["judge", "copy"])
        >>> data.grouped({"judge": "L", "copy": "L"}).group.tolist()
        [0, 0]
        """
        ids = np.arange(self.num_annotators) if self.annotators is None else self.annotators
        known = {str(name): code for code, name in enumerate(ids)}
        if unknown := [str(name) for name in groups if str(name) not in known]:
            listed = ", ".join(map(repr, unknown[:10]))
            raise UnknownName(f"{{annotator_groups}} names {listed}, who did not annotate", Remedy("annotator_groups"))
        names = {name: code for code, name in enumerate(dict.fromkeys(map(str, groups.values())))}
        codes = np.full(self.num_annotators, -1, np.int32)
        for annotator, group in groups.items():
            codes[known[str(annotator)]] = names[str(group)]
        return self.replace(group=codes, groups=object_array(list(names)))

    def joined(self, other: Annotations, *, duplicates: str = "keep") -> Self:
        """Return these annotations followed by others, which are of the same items and annotators where their ids are.

        Items, annotators, labels and groups that are new come after those that are known; labels that were sorted stay
        so. What either says of the gold label of an item, or of the group of an annotator, holds.

        Parameters
        ----------
        other : Annotations
            Further annotations.
        duplicates : str, default "keep"
            What to do when one of them is by an annotator who labelled the item before: "keep" counts every row,
            "first" keeps the first, "error" refuses.

        Raises
        ------
        InputError : gold labels or groups contradict each other, or rows repeat that may not.

        Examples
        --------
        >>> import consilience as cs
        >>> table = {"item": ["a", "a"], "annotator": ["Ann", "Bob"], "label": ["yes", "yes"]}
        >>> more = {"item": ["a", "b"], "annotator": ["Cho", "Ann"], "label": ["no", "yes"]}
        >>> both = cs.read_annotations(table).joined(cs.read_annotations(more))
        >>> both
        Annotations(annotations=4, items=2, annotators=3, labels=2)
        >>> both.labels[both.label].tolist()
        ['yes', 'yes', 'no', 'yes']
        """
        check_option("duplicates", duplicates, ("keep", "first", "error"))
        problems = Problems("the new annotations")
        items = _Joined.of(self.items, self.num_items, other.items, other.num_items)
        annotators = _Joined.of(self.annotators, self.num_annotators, other.annotators, other.num_annotators)
        labels = _Joined.of(self.labels, self.num_labels, other.labels, other.num_labels, in_order=True)
        known = set() if self.labels is None else set(self.labels)
        warn_of_writing(sorted(labels.names, key=lambda name: name not in known), known)
        item, annotator = items.rows(self.item, other.item), annotators.rows(self.annotator, other.annotator)
        keep = _kept(problems, len(self.item), item, annotator, duplicates)
        gold = items.said(problems, "gold", self.gold, other.gold, labels)
        groups = _Joined.of(self.groups, _number(self.group), other.groups, _number(other.group))
        group = annotators.said(problems, "group", self.group, other.group, groups)
        problems.raise_any()
        return type(self)(
            item=item[keep], annotator=annotator[keep], label=labels.rows(self.label, other.label)[keep],
            weight=np.concatenate([self.weight, other.weight])[keep], gold=gold, group=group,
            num_annotations=int(keep.sum()), num_items=len(items.names), num_annotators=len(annotators.names),
            num_labels=len(labels.names), items=object_array(items.names), annotators=object_array(annotators.names),
            labels=object_array(labels.names), groups=None if group is None else object_array(groups.names),
        )  # fmt: skip

    @classmethod
    def recognises(cls, source: Any) -> bool:
        """Return whether a source is a folder of parts that `code` wrote."""
        return holds_coded(source)

    @classmethod
    @of_file
    def read(
        cls, source: Any, *, columns: Mapping[str, str] | None = None, labels: Names | None = None,
        missing: str = "error", duplicates: str = "keep", unknown: str = "error", layout: str = "long",
    ) -> Annotations:  # fmt: skip
        """Read labels from a crowd.

        Parameters
        ----------
        source : path, data frame, dict of columns or list of rows
            A path (CSV, TSV, JSON, JSON lines, Parquet), a data frame or a dict of columns; or a folder that `code`
            wrote, which takes no further arguments. Ids and labels are text: "01" is not "1", "NA" is a label, only an
            empty cell is missing.
        columns : dict of str to str, optional
            Column names for "item", "annotator", "label", "gold", "weight" and "group" where the table has names of its
            own. Layouts other than "long" know "item" alone; by default their first column.
        labels : Names, optional
            The closed list of labels, in order. By default the labels that occur, sorted (by value where all are whole
            numbers).
        missing : str, default "error"
            "error", or "drop" to leave out rows whose label is empty. An empty item or annotator is always an error.
        duplicates : str, default "keep"
            What to do when an annotator labels an item again: "keep" counts every row, "first" keeps the first, "error"
            refuses.
        unknown : str, default "error"
            "error", or "drop" to leave out rows whose label is not in ``labels``.
        layout : str, default "long"
            "long" (one row per annotation), "wide" (one row per item, one column per annotator, empty where not
            annotated) or "counts" (one row per item, one column per label, an empty cell is zero).

        Returns
        -------
        annotations
            Items and annotators in the order of their first appearance.

        Raises
        ------
        InputError
            With every problem found, each with its line or row, column, value and remedy.
        UnsupportedRequest
            Arguments say how to read a folder that is coded already.

        Examples
        --------
        >>> import consilience as cs
        >>> table = {"item": ["a", "a", "b"], "annotator": ["Ann", "Bob", "Ann"], "label": ["yes", "yes", "no"]}
        >>> data = cs.read_annotations(table)
        >>> data
        Annotations(annotations=3, items=2, annotators=2, labels=2)
        >>> data.labels.tolist()
        ['no', 'yes']

        A table with a row for each item and a column for each annotator:

        >>> cs.read_annotations({"item": ["a", "b"], "Ann": ["yes", "no"], "Bob": ["yes", ""]}, layout="wide")
        Annotations(annotations=3, items=2, annotators=2, labels=2)
        """
        check_option("missing", missing, ("error", "drop"))
        check_option("duplicates", duplicates, ("keep", "first", "error"))
        check_option("unknown", unknown, ("error", "drop"))
        check_option("layout", layout, ("long", "wide", "counts"))
        if cls.recognises(source):
            given = [columns, labels, missing, duplicates, unknown, layout]
            if given != [None, None, "error", "keep", "error", "long"]:
                raise UnsupportedRequest(f"{source} was coded already; give columns, labels and policies to `code`")
            # Named only: what reads a folder makes annotations, and imports this file.
            coded = importlib.import_module("consilience.data.coded")
            return cast(Annotations, coded.read_coded(source))
        closed = None if labels is None else as_names(labels, "labels")
        if layout == "counts":
            return _read_counts(source, columns, closed, unknown)
        if layout == "wide":
            return _read_wide(source, columns, closed, unknown)
        found = _read_long(source, columns, closed, missing, duplicates, unknown)
        release(found.num_annotations)
        return found


read_annotations = Annotations.read


# ---- annotations that are joined ----


class _Joined(NamedTuple):
    """The ids of two contracts as one list.

    Parameters
    ----------
    names : those of the first, and those of the second that it lacks.
    one, other : int32; the place of each id of either among them, and a last entry -1 for what has none.
    """

    names: list[str]
    one: np.ndarray
    other: np.ndarray

    @classmethod
    def of(
        cls, one: Names | None, num_one: int, other: Names | None, num_other: int, *, in_order: bool = False
    ) -> _Joined:
        """Join the ids, or the codes as texts; ``in_order`` sorts them where the first ones were sorted."""
        first, second = (
            list(map(str, range(number)) if names is None else names)
            for names, number in ((one, num_one), (other, num_other))
        )
        names = list(dict.fromkeys([*first, *second]))
        if in_order and first == sorted_names(first):
            names = sorted_names(names)
        return cls(names, *(recode(np.append(np.arange(len(own)), -1), own, names) for own in (first, second)))

    def rows(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return the codes of the rows of both."""
        return np.concatenate([self.one[np.asarray(one)], self.other[np.asarray(other)]])

    def said(
        self, problems: Problems, column: str, one: np.ndarray | None, other: np.ndarray | None, codes: _Joined
    ) -> np.ndarray | None:
        """Return what either says of each of these ids, as codes into others; -1 where neither does."""
        if one is None and other is None:
            return None
        told = np.full((2, len(self.names)), -1, np.int32)
        for row, own, places, given in ((0, one, self.one, codes.one), (1, other, self.other, codes.other)):
            if own is not None:
                told[row, places[:-1]] = given[np.asarray(own)]
        differs = (told >= 0).all(axis=0) & (told[0] != told[1])
        of = "item" if column == "gold" else "annotator"
        values = np.asarray([*codes.names, ""], object)[told[1]]
        message, remedy = f"this {column} contradicts what is known of the {of}", f"keep one {column} for each {of}"
        place = [f"{of} {name}" for name in self.names].__getitem__
        problems.add_each(differs, message, remedy, column=column, place=place, values=values)
        return np.where(told[0] >= 0, told[0], told[1])


def _number(codes: np.ndarray | None) -> int:
    return 0 if codes is None else int(np.max(codes, initial=-1)) + 1


def _kept(problems: Problems, earlier: int, item: np.ndarray, annotator: np.ndarray, duplicates: str) -> np.ndarray:
    """Apply the policy for rows that repeat, and return which rows stay; the earlier ones do."""
    known, again = annotator >= 0, np.zeros(len(item), bool)
    again[known] = repeated(item[known], annotator[known])
    again[:earlier] = False
    if duplicates == "error":
        remedy, message = "leave it out, or pass {duplicates}", "an earlier row has the same item and annotator"
        place = "row {} (counted from 0)".format
        problems.add_each(again[earlier:], message, remedy, Remedy("duplicates", "first"), place=place)
    elif again.any():
        done = "all were counted" if duplicates == "keep" else "the first of each was kept"
        text = f"{again.sum():,} new rows have the same item and annotator as an earlier row; {done} ({{duplicates}})"
        warn_input(text, Remedy("duplicates", duplicates))
    return ~again if duplicates == "first" else np.ones(len(item), bool)


# ---- files and data frames ----


def _read_long(
    source: Any, columns: Mapping[str, str] | None, closed: list[str] | None, missing: str, duplicates: str,
    unknown: str,
) -> Annotations:  # fmt: skip
    choose, names = choose_columns_or_layout(Annotations.columns, columns), list[str]()

    def noted(found: list[str], problems: Problems) -> dict[str, int]:
        names[:] = found
        return choose(found, problems)

    table = read_table(source, noted)
    say_what_is_ignored(names, {role: cells.name for role, cells in table.columns.items()})
    item, items = table.texts("item", required=True)
    annotator, annotators = table.texts("annotator", required=True)
    label, labels = table.texts("label")
    gold, golds = table.texts("gold") if "gold" in table.columns else (None, [])
    order = closed or sorted_names(dict.fromkeys([*labels, *golds]))
    if closed is None:
        check_writing(table, labels, golds)
    label = recode(label, labels, order)
    weight = _read_weights(table)
    group, groups = table.texts("group") if "group" in table.columns else (None, None)
    group = None if group is None else _group_of_annotators(table, annotator, len(annotators), group)
    gold = None if gold is None else _gold_of_items(table, item, len(items), recode(gold, golds, order))
    keep = filled_rows(table, "label", missing) & known_rows(table, "label", label, unknown, "labels")
    keep &= keep_repeated(table, keep, (item, annotator), duplicates, "item and annotator")
    table.problems.raise_any()
    require_rows(table, keep)
    rows = slice(None) if keep.all() else keep
    item, item_ids = compact(item[rows], items)
    annotator, annotator_ids = compact(annotator[rows], annotators)
    gold = None if gold is None else gold[recode(np.arange(len(item_ids)), item_ids, items)]
    group = None if group is None else group[recode(np.arange(len(annotator_ids)), annotator_ids, annotators)]
    return Annotations(
        item=item, annotator=annotator, label=label[rows], weight=weight[rows], gold=gold, group=group,
        num_annotations=len(item), num_items=len(item_ids), num_annotators=len(annotator_ids), num_labels=len(order),
        items=item_ids, annotators=annotator_ids, labels=object_array(order),
        groups=None if groups is None else object_array(groups),
    )  # fmt: skip


def _read_weights(table: Table) -> np.ndarray:
    if "weight" not in table.columns:
        return ones(table.num_rows)
    weight = table.numbers("weight", what="a finite weight, not negative,")
    table.flag(weight < 0, "weight", "a finite weight, not negative, is expected", "correct it or delete the row")
    table.flag(table.empty("weight"), "weight", "the weight is empty", "fill it in; 1 counts the row once")
    return np.where(weight >= 0, weight, 1.0)


def _gold_of_items(table: Table, item: np.ndarray, num_items: int, gold: np.ndarray) -> np.ndarray:
    """Return the gold label of each item; rows may repeat it or leave it empty, but not contradict each other."""
    remedy = "correct it or add it to the list"
    table.flag(gold == -2, "gold", "this gold label is not in {labels}", remedy, Remedy("labels"))
    of_item, conflict = said_first(gold, (gold >= 0) & (item >= 0), item, num_items)
    message = "this gold label contradicts an earlier row of the same item"
    table.flag(conflict, "gold", message, "keep one gold label per item")
    return of_item


def _group_of_annotators(table: Table, annotator: np.ndarray, num_annotators: int, group: np.ndarray) -> np.ndarray:
    """Return the group of each annotator; rows may repeat it or leave it empty, but not contradict each other."""
    of_annotator, conflict = said_first(group, (group >= 0) & (annotator >= 0), annotator, num_annotators)
    message = "this group contradicts an earlier row of the same annotator"
    table.flag(conflict, "group", message, "keep one group per annotator, or rename the column if it is something else")
    return of_annotator


def _read_grid(source: Any, columns: Mapping[str, str] | None) -> tuple[Table, np.ndarray, list[str], list[str]]:
    """Read a table with one row per item; return it with item codes, item ids and the other columns."""
    choose = choose_columns((ITEM,), columns)
    first: list[str] = []

    def choose_all(names: list[str], problems: Problems) -> dict[str, int]:
        named = {name: position for position, name in enumerate(names) if name or position == 0}
        own = columns or any(name.casefold() == "item" for name in names)
        first.append(names[choose(names, problems)["item"]] if own else names[0] if names else "")
        if len(named) < 2:
            raise problems.fail("a column of items and at least one more column are expected", "check the layout")
        return named

    table = read_table(source, choose_all)
    item, items = table.texts(first[0], required=True)
    table.flag(repeated(item) & (item >= 0), first[0], "this item has a row already", "keep one row per item")
    return table, item, items, [name for name in table.columns if name != first[0]]


def _read_wide(
    source: Any, columns: Mapping[str, str] | None, closed: list[str] | None, unknown: str
) -> Annotations:
    table, item, items, annotators = _read_grid(source, columns)
    cells = [table.texts(name) for name in annotators]
    order = closed or sorted_names({name for _, names in cells for name in names})
    if closed is None:
        warn_of_writing(order)
    if not order:
        raise table.problems.fail("every cell is empty", "check the layout")
    label = np.stack([recode(codes, names, order) for codes, names in cells], axis=1)
    for position, name in enumerate(annotators):
        if unknown == "error":
            remedy = "correct it, add it to the list, or pass {unknown}"
            table.flag(label[:, position] == -2, name, "this label is not in {labels}", remedy, *_UNKNOWN)
    table.problems.raise_any()
    if (label == -2).any():
        warn_input(f"{(label == -2).sum():,} labels outside {{labels}} were left out ({{unknown}})", *_UNKNOWN)
    row, annotator = np.nonzero(label >= 0)
    return Annotations.from_codes(
        item[row], annotator, label[row, annotator], items=items, annotators=annotators, labels=order
    )


def _read_counts(
    source: Any, columns: Mapping[str, str] | None, closed: list[str] | None, unknown: str
) -> Annotations:
    table, item, items, found = _read_grid(source, columns)
    order = closed or found
    extra, absent = [name for name in found if name not in order], [name for name in order if name not in found]
    for name in absent[:1]:
        message, remedy = f"there is no column for the label {name!r}", "correct {labels} or add the column"
        table.problems.add(message, remedy, Remedy("labels"))
    if extra and unknown == "error":
        remedy = "correct it, add it to the list, or pass {unknown}"
        table.problems.add("this column is not in {labels}", remedy, *_UNKNOWN, column=extra[0])
    table.problems.raise_any()
    counts = np.stack([table.numbers(name, what="a count") for name in order], axis=1)
    for name, own in zip(order, counts.T, strict=True):
        table.flag(own < 0, name, "a count cannot be negative", "correct it")
    table.problems.raise_any()
    if not np.nansum(counts):
        raise table.problems.fail("every count is zero", "check that this is the file you meant")
    return Annotations.from_counts(np.nan_to_num(counts), items=items, labels=order)
