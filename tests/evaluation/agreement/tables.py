"""What tests of agreement share: tables of counts ``(item, label)``, and oracles that recompute without an item."""

import numpy as np
from hypothesis import strategies as st

from consilience.evaluation.agreement.counts import LabelCounts

TABLE = np.array([[3, 1, 0], [1, 2, 0], [0, 2, 0], [0, 0, 1]])


def counts_of(table):
    table = np.asarray(table)
    item, label = np.nonzero(table)
    return LabelCounts.of_codes(item, label, table[item, label], num_items=len(table), num_labels=table.shape[1])


def tables(most, *, num_labels=3, num_items=(3, 8)):
    """Draw tables with up to so many annotations of each label."""
    row = st.lists(st.integers(0, most), min_size=num_labels, max_size=num_labels)
    return st.lists(row, min_size=num_items[0], max_size=num_items[1]).map(np.array)


def corrected(observed, expected):
    """Return agreement beyond chance."""
    return (observed - expected) / (1 - expected) if expected < 1 - 1e-12 else np.nan


def scatter(values):
    """Return the jackknife standard error from the values without one unit each."""
    return np.sqrt((len(values) - 1) * np.var(values)) if len(values) >= 2 else np.nan
