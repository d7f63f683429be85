"""Ratings: one number by one annotator for one item, in a long table."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from consilience.data.codes import Names, as_numbers, check_lengths, compact, names_or_codes, sized
from consilience.data.columns import ANNOTATOR, ITEM, Column, choose_columns
from consilience.data.contract import Contract, codes, ids, named_after, of_file, per, size, values
from consilience.data.offsets import annotator_offsets
from consilience.data.policies import filled_rows, keep_repeated, require_rows
from consilience.data.problems import Problems, check_option
from consilience.data.tables import read_table


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Ratings(Contract):
    """Numbers from a crowd; made by `read_ratings` or `from_codes`.

    Parameters
    ----------
    item, annotator : int32, shape ``(rating,)``
        Codes into ``items`` and ``annotators``.
    rating : float64, shape ``(rating,)``
        Finite, in the units of the file.
    offset : float64, shape ``(annotator,)``, optional
        What `without_offsets` took off the ratings of each annotator; ``None`` where nothing was.
    num_ratings, num_items, num_annotators : int
        sizes.
    items, annotators : sequence, optional
        Object arrays of the user's own ids, in code order; ``None`` in a copy that went through JAX.

    Examples
    --------
    >>> import consilience as cs
    >>> cs.Ratings.from_codes(item=[0, 0, 1], annotator=[0, 1, 0], rating=[1.5, 2.0, 4.0])
    Ratings(ratings=3, items=2, annotators=2)
    """

    columns = (ITEM, ANNOTATOR, Column("rating", ("score", "value"), help="a number"))
    reader = "read_ratings"
    rows = "rating"
    item: Any = codes("item")
    annotator: Any = codes("annotator")
    rating: Any = values()
    offset: Any = per("annotator", later=True, default=None)
    num_ratings: int = size()
    num_items: int = size()
    num_annotators: int = size()
    items: Any = ids("item")
    annotators: Any = ids("annotator")

    @classmethod
    def from_codes(
        cls, item: ArrayLike, annotator: ArrayLike, rating: ArrayLike, *, items: Names | None = None,
        annotators: Names | None = None, num_items: int | None = None, num_annotators: int | None = None,
    ) -> Self:  # fmt: skip
        """Make ratings from integer codes and finite numbers, each of shape ``(rating,)``.

        Parameters
        ----------
        item, annotator : ArrayLike
            Whole numbers from 0.
        rating : ArrayLike
            finite.
        items, annotators : Names, optional
            Ids in code order; the codes as texts where absent.
        num_items, num_annotators : int, optional
            Sizes; where absent, those of the ids, or else just large enough for the codes.
        """
        problems = Problems("the codes")
        item, num_items = sized(problems, "item", item, items, num_items)
        annotator, num_annotators = sized(problems, "annotator", annotator, annotators, num_annotators)
        rating = as_numbers(problems, rating, "rating")
        check_lengths(problems, "give one entry per rating", item=item, annotator=annotator, rating=rating)
        message, remedy = "a rating has to be finite", "correct or leave out the row"
        problems.add_each(~np.isfinite(rating), message, remedy, column="rating", values=rating)
        if not len(item):
            problems.add("there are no ratings", "check where the codes come from")
        problems.raise_any()
        return cls(
            item=item, annotator=annotator, rating=rating,
            num_ratings=len(item), num_items=num_items, num_annotators=num_annotators,
            items=names_or_codes(items, num_items, "items"),
            annotators=names_or_codes(annotators, num_annotators, "annotators"),
        )  # fmt: skip

    @classmethod
    @of_file
    def read(
        cls,
        source: Any, *, columns: Mapping[str, str] | None = None, missing: str = "error", duplicates: str = "keep",
        without_offsets: bool = False,
    ) -> Ratings:  # fmt: skip
        """Read numbers from a crowd.

        Parameters
        ----------
        source : path, data frame, dict of columns or list of rows
            A path (CSV, TSV, JSON, JSON lines, Parquet), a data frame or a dict of columns.
        columns : dict of str to str, optional
            Column names for "item", "annotator" and "rating" where the table has names of its own.
        missing : str, default "error"
            "error", or "drop" to leave out rows whose rating is empty. An empty item or annotator is always an error.
        duplicates : str, default "keep"
            What to do when an annotator rates an item again: "keep" counts every row, "first" keeps the first, "error"
            refuses.
        without_offsets : bool, default False
            Whether to take off how much higher or lower than the others each annotator rates; see the method of that
            name.

        Returns
        -------
        ratings
            Items and annotators in the order of their first appearance.

        Examples
        --------
        >>> import consilience as cs
        >>> table = {"item": ["a", "a", "b"], "annotator": ["Ann", "Bob", "Ann"], "rating": [1.5, 2, 4]}
        >>> ratings = cs.read_ratings(table)
        >>> ratings
        Ratings(ratings=3, items=2, annotators=2)
        >>> ratings.rating.tolist()
        [1.5, 2.0, 4.0]
        """
        check_option("missing", missing, ("error", "drop"))
        check_option("duplicates", duplicates, ("keep", "first", "error"))
        table = read_table(source, choose_columns(Ratings.columns, columns))
        item, items = table.texts("item", required=True)
        annotator, annotators = table.texts("annotator", required=True)
        rating, keep = table.numbers("rating"), filled_rows(table, "rating", missing)
        keep &= keep_repeated(table, keep, (item, annotator), duplicates, "item and annotator")
        table.problems.raise_any()
        require_rows(table, keep)
        item, item_ids = compact(item[keep], items)
        annotator, annotator_ids = compact(annotator[keep], annotators)
        found = Ratings.from_codes(item, annotator, rating[keep], items=item_ids, annotators=annotator_ids)
        return found.without_offsets() if without_offsets else found

    def without_offsets(self) -> Self:
        """Return ratings from which is taken off how much higher or lower than the others each annotator rates.

        By least squares a rating is the sum of an effect of its item and of its annotator. Offsets are from the mean of
        all annotators: those whom common items connect, be it through others, add up to 0. A fit of these ratings takes
        them for known, and is of the mean by these annotators: of others like them it says nothing.

        Returns
        -------
        ratings
            Of the same items and annotators, in the same units. Their ``offset``, shape ``(annotator,)``, is what was
            taken off; a fit, a saved one too, keeps it with its data.

        Examples
        --------
        >>> import consilience as cs
        >>> table = {"item": ["a", "a", "b", "b"], "annotator": ["Ann", "Bob"] * 2, "rating": [1, 3, 4, 6]}
        >>> ratings = cs.read_ratings(table).without_offsets()
        >>> ratings.rating.tolist()
        [2.0, 2.0, 5.0, 5.0]
        >>> ratings.offset.tolist()
        [-1.0, 1.0]
        """
        item, annotator, rating = np.asarray(self.item), np.asarray(self.annotator), np.asarray(self.rating)
        size = self.num_items, self.num_annotators
        offset = annotator_offsets(item, annotator, np.asarray(rating, float), size)
        known = 0.0 if self.offset is None else np.asarray(self.offset, float)
        rating = (rating - offset[annotator]).astype(rating.dtype)
        return named_after(self.replace(rating=rating, offset=known + offset), self.file)

    @property
    def after_reading(self) -> str:
        """What was done with the ratings after they were read; see `Contract.after_reading`."""
        return "" if self.offset is None else ".without_offsets()"

    @property
    def changed_in_words(self) -> str:
        """The same in words; see `Contract.changed_in_words`."""
        return "" if self.offset is None else ", whose offsets were taken off"

    @property
    def reading_flags(self) -> tuple[str, ...]:
        """The flags by which the command reads these ratings; see `Contract.reading_flags`."""
        return () if self.offset is None else ("--without-offsets",)


read_ratings = Ratings.read
