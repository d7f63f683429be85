"""The columns of tables, as contracts declare them: readers, commands, help and error texts follow from these."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of the tables that a contract is read from.

    Parameters
    ----------
    name : what it is called; in any case, and in any place among the columns.
    aliases : what else it may be called, in lower case.
    codes : the dimension of the ids that stand in it, such as ``item``; empty where it holds something else.
    help : what stands in it.
    optional : whether a table may lack it.
    """

    name: str
    aliases: tuple[str, ...] = ()
    codes: str = ""
    help: str = ""
    optional: bool = False


ITEM = Column("item", ("task", "question", "example", "sample", "case"), "item", "what was judged")
ANNOTATOR = Column(
    "annotator", ("worker", "rater", "reader", "coder", "user", "performer"), "annotator", "who judged it"
)
CLASS = Column("class", ("condition", "diagnosis", "label", "agg_label"), "class", "the class")
