"""What every kernel of the mention-pair model needs: log-odds of the pairs, counts given them, tables in its layout."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int
from consilience.models.interface import Total, unsharded
from consilience.models.mpa.candidates import Tables
from consilience.models.rows import copies, divide_rows, padded_rows, padded_size, sorted_order, sum_rows

# Log-odds of what is known: finite, and so large that the probability is 0 or 1 in any precision.
_CERTAIN = 1e4

# Of pairs and groups, of rows that are asked and chosen, and of annotators.
_LEAST_PAIRS, _LEAST_ROWS, _LEAST_ANNOTATORS = 64, 1024, 16


class Counts(NamedTuple):
    """How many pairs are true and how annotators decided on them; sums of probabilities, or of draws.

    Parameters
    ----------
    true, false : shape ``(class,)``; pairs.
    true_yes, true_no, false_yes, false_no : shape ``(annotator, class)``; decisions, by whether the pair is true.
    """

    true: Float[Array, " class"]
    false: Float[Array, " class"]
    true_yes: Float[Array, "annotator class"]
    true_no: Float[Array, "annotator class"]
    false_yes: Float[Array, "annotator class"]
    false_no: Float[Array, "annotator class"]


def typed(part: Any) -> Any:
    """Return arrays with their floats in JAX's default float type."""
    dtype = jnp.result_type(float)
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if leaf.dtype.kind == "f" else leaf, part)


def by_pair(tables: Tables) -> Tables:
    """Return the tables with what was chosen in the order of the pairs; on the host."""
    order = sorted_order(tables.chosen_pair)
    return tables._replace(
        chosen_pair=tables.chosen_pair[order], chosen_cell=tables.chosen_cell[order],
        chosen_weight=tables.chosen_weight[order],
    )  # fmt: skip


def padded_tables(tables: Tables) -> Tables:
    """Return the tables with pairs, groups, rows and annotators that count for nothing; on the host.

    So data of like size share their programs. What pads is known not to be true, and comes last.
    """
    pairs = padded_size(len(tables.pair_class), _LEAST_PAIRS)
    groups = padded_size(len(tables.group_size), _LEAST_PAIRS)
    asked, chosen = (padded_size(len(rows), _LEAST_ROWS) for rows in (tables.asked_group, tables.chosen_pair))
    annotators = padded_size(len(tables.yes), _LEAST_ANNOTATORS)
    sizes = {"pair": (pairs, 0), "asked": (asked, 0), "chosen": (chosen, 0), "yes": (annotators, 0),
             "no": (annotators, 0), "group": (groups, 0.0), "known": (pairs, -2.0), "classes": (len(tables.classes), 0),
             "pair_group": (pairs, groups - 1), "asked_group": (asked, groups - 1),
             "chosen_pair": (chosen, pairs - 1)}  # fmt: skip
    found = {}
    for name, values in tables._asdict().items():
        size, fill = sizes[name if name in sizes else name.split("_")[0]]
        found[name] = padded_rows(values, size, fill)
    return Tables(**found)


def is_real(tables: Tables) -> Array:
    """Return which pairs do not pad, ``(pair,)``."""
    return tables.known > -2


def divide_tables(tables: Tables, number: int) -> tuple[Tables, Int[np.ndarray, " shard"]]:
    """Divide the pairs among shards, stacked on a new first axis; pairs of one group stay together. On the host.

    Each shard ends with a group of its own, to which belongs all that pads it.

    Parameters
    ----------
    tables : as `by_pair` returns them.
    number : of shards, about equally many pairs each.

    Returns
    -------
    the tables, and how many pairs of each shard are real.
    """
    tables = jax.tree.map(np.asarray, tables)
    num_pairs, num_groups = len(tables.pair_class), len(tables.group_size)
    cuts = np.linspace(0, num_pairs, number + 1).astype(int)
    first_group = np.append(tables.pair_group[np.minimum(cuts[:-1], num_pairs - 1)], num_groups)
    first_group[0] = 0
    first_pair = np.searchsorted(tables.pair_group, first_group)
    size = int(np.diff(first_group).max()) + 1

    def local(group: np.ndarray, begin: np.ndarray) -> np.ndarray:
        """Count from the beginning of the shard; what pads it goes to the end."""
        return np.where(group < 0, size - 1, group - begin[:-1, None]).astype(np.int32)

    pairs = divide_rows(
        (tables.pair_class, tables.pair_group, tables.pair_counts, tables.known), first_pair, (0, -1, 0.0, -2.0)
    )
    asked = divide_rows(_asked(tables), np.searchsorted(tables.asked_group, first_group), (-1, 0, 0.0))
    chosen = divide_rows(_chosen(tables), np.searchsorted(tables.chosen_pair, first_pair), (-1, 0, 0.0))
    chosen_pair = np.where(chosen[0] < 0, pairs[0].shape[1] - 1, chosen[0] - first_pair[:-1, None]).astype(np.int32)
    yes, no, classes = copies((tables.yes, tables.no, tables.classes), number)
    parts = Tables(
        pair_class=pairs[0], pair_group=local(pairs[1], first_group), pair_counts=pairs[2], known=pairs[3],
        group_size=divide_rows(tables.group_size, first_group, 0.0, length=size),
        asked_group=local(asked[0], first_group), asked_cell=asked[1], asked_weight=asked[2],
        chosen_pair=chosen_pair, chosen_cell=chosen[1], chosen_weight=chosen[2], yes=yes, no=no, classes=classes,
    )  # fmt: skip
    return parts, np.diff(first_pair)


_Rows = tuple[Any, Any, Any]


def _asked(tables: Tables) -> _Rows:
    return tables.asked_group, tables.asked_cell, tables.asked_weight


def _chosen(tables: Tables) -> _Rows:
    return tables.chosen_pair, tables.chosen_cell, tables.chosen_weight


def log_odds(
    prior: Float[Array, " class"],
    yes: Float[Array, "annotator class"],
    no: Float[Array, "annotator class"],
    tables: Tables,
) -> Float[Array, " pair"]:
    """Return the log-odds that each candidate is true (Paun et al. 2018, equations 8 and 9).

    Parameters
    ----------
    prior : log-odds of a candidate about which nobody was asked.
    yes, no : what a decision adds to them.
    """
    given, more = jnp.ravel(no), jnp.ravel(yes - no)

    def of(table: Array) -> Any:
        def look_up(rows: _Rows) -> tuple[Array, Array]:
            place, cell, weight = rows
            return place, weight * table[cell]

        return look_up

    of_group = sum_rows(of(given), _asked(tables), tables.group_size.shape, given.dtype)
    of_pair = sum_rows(of(more), _chosen(tables), tables.pair_class.shape, given.dtype)
    odds = prior[tables.pair_class] + of_group[tables.pair_group] + of_pair
    return jnp.where(tables.known == 0, odds, tables.known * _CERTAIN)


def counts(true: Float[Array, " pair"], tables: Tables, total: Total = unsharded) -> Counts:
    """Count pairs and decisions.

    Parameters
    ----------
    true : probability that each candidate is true, or 0 and 1.
    tables : pairs and decisions.
    total : sums over the shards of divided tables.
    """
    num_classes, shape = len(tables.classes), tables.yes.shape

    def of(values: Array) -> Any:
        def look_up(rows: _Rows) -> tuple[Array, Array]:
            place, cell, weight = rows
            return cell, weight * values[place]

        return look_up

    pairs = tables.pair_class, tables.pair_counts, true
    both = sum_rows(
        lambda pairs: (pairs[0], pairs[1][:, None] * jnp.stack([pairs[2], jnp.ones_like(pairs[2])], axis=1)),
        pairs, (num_classes, 2), true.dtype,
    )  # fmt: skip
    of_group = jax.ops.segment_sum(true, tables.pair_group, len(tables.group_size), indices_are_sorted=True)
    asked = sum_rows(of(of_group), _asked(tables), (tables.yes.size,), true.dtype).reshape(shape)
    yes = sum_rows(of(true), _chosen(tables), (tables.yes.size,), true.dtype).reshape(shape)
    both, asked, true_yes = total((both, asked, yes))
    of_class, all_of_class = both.T
    # Differences of sums may fall below zero by rounding.
    true_no = jnp.maximum(asked - true_yes, 0)
    return Counts(
        true=of_class, false=jnp.maximum(all_of_class - of_class, 0), true_yes=true_yes, true_no=true_no,
        false_yes=jnp.maximum(tables.yes - true_yes, 0), false_no=jnp.maximum(tables.no - true_no, 0),
    )  # fmt: skip
