"""What a report of views says of items that nobody judged, whose clusters are predicted from features."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.pages import SURE, Section, Table
from consilience.pages.views_measured import not_sure
from consilience.printing import counted, numbered
from consilience.rounding import probability

_MOST_ROWS = 15


def silent_items(fit: Any) -> list[Section]:
    """Tabulate the items in no pair whose predicted cluster is least certain; nothing where there are none."""
    truth = fit.truth
    silent = truth.silent
    if not len(silent):
        return []
    table, views = fit.table("views"), truth.used_views()
    table = table.iloc[(silent[:, None] * len(views) + np.arange(len(views))).ravel()]
    least = table.assign(row=np.repeat(silent, len(views))).sort_values("probability", kind="stable")
    shown = least.drop(columns="row").head(_MOST_ROWS)
    words = (
        f"{len(silent):,} of {counted(truth.num_units, 'items')} {'is' if len(silent) == 1 else 'are'} in no pair. "
        "Their clusters are predicted from the features "
        f"alone, with the uncertainty in “probability”; {int(not_sure(table['probability']).sum()):,} of "
        f"{len(table):,} predictions (one for each item and view) are below {SURE}. The {len(shown)} least certain:"
    )
    texts = {"probability": list(map(probability, shown["probability"]))}
    table = Table(shown_codes(shown), "The least certain predictions.", texts=texts)
    return [Section("Items that nobody judged", [words, table])]


def shown_codes(table: Any) -> Any:
    """Return a table with views and clusters as people number them."""
    return table.assign(**{name: numbered(table[name]) for name in ("view", "cluster") if name in table})
