"""Rankings: partial orders with ties, such as differential diagnoses, one report by one annotator for one item.

A report orders some classes in blocks: the classes of a block are tied, block 0 is ranked first, and the classes that it does not
name are unranked, below all blocks. Long rows hold the named classes; `entry` joins the rows that name the same class of the
same item, which is all that an item's plausibilities can depend on.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from consilience.data.contract import Contract, array, ids, size

__all__ = ["Rankings"]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Rankings(Contract):
    """Partial rankings with ties; made by `read_rankings` or `from_nested`.

    Parameters
    ----------
    report_item, report_annotator : int32, shape ``(report,)``; who ranked what. Sorted by item. A report may rank nothing.
    report : int32, shape ``(row,)``, sorted; the report that a row belongs to.
    block : int32, shape ``(row,)``; dense 0-based rank of the block within its report. Non-decreasing within a report.
    block_size : int32, shape ``(row,)``; number of classes tied in the row's block.
    entry : int32, shape ``(row,)``; the (item, class) pair that the row names.
    entry_item, entry_class : int32, shape ``(entry,)``; the distinct named pairs, sorted by item, then class.
    num_rows, num_reports, num_entries, num_items, num_annotators, num_classes : sizes.
    items, annotators, classes : object arrays of the user's own ids, in code order; ``None`` in a copy that went through JAX.
    """

    report_item: Any = array()
    report_annotator: Any = array()
    report: Any = array()
    block: Any = array()
    block_size: Any = array()
    entry: Any = array()
    entry_item: Any = array()
    entry_class: Any = array()
    num_rows: int = size()
    num_reports: int = size()
    num_entries: int = size()
    num_items: int = size()
    num_annotators: int = size()
    num_classes: int = size()
    items: Any = ids()
    annotators: Any = ids()
    classes: Any = ids()
