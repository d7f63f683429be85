"""Class maps: which group each class belongs to, such as the risk of a diagnosis."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from consilience.data.cells import number
from consilience.data.codes import (
    Names,
    as_names,
    as_numbers,
    names_or_codes,
    object_array,
    recode,
    sized,
    sorted_names,
)
from consilience.data.columns import CLASS, Column, choose_columns
from consilience.data.contract import Contract, array, ids, of_file, size
from consilience.data.files import read_lines
from consilience.data.policies import said_first
from consilience.data.problems import Problems
from consilience.data.tables import read_table
from consilience.notes import Remedy


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ClassMap(Contract):
    """A group for every class; made by `read_class_map` or `from_codes`.

    Parameters
    ----------
    group : int32, shape ``(class,)``
        Code into ``groups``.
    score : float64, shape ``(group,)``
        The number that names the group; ``None`` where some group's name is no number.
    num_classes, num_groups : int
        sizes.
    classes, groups : sequence, optional
        Object arrays of the user's own ids, in code order; ``None`` in a copy that went through JAX.

    Examples
    --------
    >>> import consilience as cs
    >>> risk = cs.ClassMap.from_codes([0, 0, 1], classes=["mole", "wart", "melanoma"], groups=["low", "high"])
    >>> risk
    ClassMap(classes=3, groups=2)
    >>> risk.groups[risk.group].tolist()
    ['low', 'low', 'high']
    """

    columns = (CLASS, Column("group", ("risk", "category"), "group", "the group to which the class belongs"))
    reader = "read_class_map"
    group: Any = array()
    score: Any = array(default=None)
    num_classes: int = size()
    num_groups: int = size()
    classes: Any = ids("class")
    groups: Any = ids("group")

    def _table(self, rows: slice = slice(None)) -> dict[str, np.ndarray]:
        codes = {"class": np.arange(self.num_classes), "group": np.asarray(self.group)}
        return {name: self._called(values[rows], name) for name, values in codes.items()}

    @classmethod
    def from_codes(
        cls, group: ArrayLike, *, classes: Names | None = None, groups: Names | None = None,
        score: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Make a class map from the group code of each class.

        Parameters
        ----------
        group : ArrayLike
            Whole numbers from 0, shape ``(class,)``.
        classes, groups : Names, optional
            Ids in code order; the codes as texts where absent.
        score : ArrayLike, optional
            Finite, shape ``(group,)``, in any unit such as risk; where absent, the names of the groups if all are
            numbers.
        """
        problems = Problems("the class map")
        group, num_groups = sized(problems, "group", group, groups, None)
        if classes is not None and len(classes) != len(group):
            problems.add(f"there are {len(group)} groups but {len(classes)} classes", "give one group per class")
        if not len(group):
            problems.add("there are no classes", "give the group of every class")
        problems.raise_any()
        names = names_or_codes(groups, num_groups, "groups")
        if score is None and groups is not None:
            numbers = np.array([number(name) for name in names])
            score = numbers if np.isfinite(numbers).all() else None
        elif score is not None:
            score = as_numbers(problems, score, "score")
            if score.shape != (num_groups,) or not np.isfinite(score).all():
                raise problems.fail(f"{num_groups} finite scores are expected", "give one per group")
        return cls(
            group=group, score=score, num_classes=len(group), num_groups=num_groups,
            classes=names_or_codes(classes, len(group), "classes"), groups=names,
        )  # fmt: skip

    def align(self, classes: Names) -> ClassMap:
        """Return the map for the classes of a data set, in their order.

        A class that the map lacks is an `InputError`.
        """
        names = as_names(classes, "classes")
        position = recode(np.arange(len(names)), names, self.classes)
        problems = Problems("the class map")
        message, remedy = "the map has no group for this class", "add the class to the map"
        for name in itertools.compress(names, position < 0):
            problems.add(message, remedy, column="class", value=name)
        problems.raise_any()
        group = np.asarray(self.group)[position]
        return self.replace(group=group, num_classes=len(names), classes=object_array(names))

    @classmethod
    @of_file
    def read(
        cls, source: Any, *, classes: Names | str | os.PathLike | None = None, columns: Mapping[str, str] | None = None
    ) -> ClassMap:
        """Read which group each class belongs to.

        Parameters
        ----------
        source : path, data frame, dict of columns or list of rows
            A table with the columns class and group; or a ``.txt`` file with one group per line, for ``classes`` in
            their order.
        classes : Names, str or path, optional
            The classes to cover, in order, or the path of a text file with one per line. By default those of the table.
        columns : dict of str to str, optional
            Column names for "class" and "group" where the table has names of its own.

        Returns
        -------
        class_map
            Groups sorted, by value where all are whole numbers.

        Examples
        --------
        >>> import consilience as cs
        >>> risk = cs.read_class_map({"class": ["mole", "wart", "melanoma"], "group": [0, 0, 1]})
        >>> risk
        ClassMap(classes=3, groups=2)
        >>> risk.score.tolist()
        [0.0, 1.0]
        """
        closed = None if classes is None else as_names(classes, "classes")
        if isinstance(source, str | os.PathLike) and os.fspath(source).lower().endswith((".txt", ".txt.gz")):
            return _from_lines(source, closed)
        table = read_table(source, choose_columns(ClassMap.columns, columns), units=("class", "group"))
        code, names = table.texts("class", required=True)
        group, found = table.texts("group", required=True)
        order = sorted_names(found)
        group = recode(group, found, order)
        group_of_class, differs = said_first(group, code >= 0, code, len(names))
        message = "an earlier row puts the same class into another group"
        table.flag(differs, "group", message, "keep one group per class")
        table.problems.raise_any()
        result = ClassMap.from_codes(group_of_class, classes=names, groups=order)
        return result if closed is None else result.align(closed)


read_class_map = ClassMap.read


def _from_lines(source: str | os.PathLike, classes: list[str] | None) -> ClassMap:
    lines = read_lines(source)
    problems = Problems(str(source))
    if classes is None:
        message = "a list of groups does not say which classes they are for"
        raise problems.fail(message, "pass {classes}", Remedy("classes"))
    if len(lines) != len(classes):
        raise problems.fail(f"{len(classes)} lines are expected, not {len(lines)}", "write one group per class")
    order = sorted_names(set(lines))
    return ClassMap.from_codes(recode(np.arange(len(lines)), lines, order), classes=classes, groups=order)
