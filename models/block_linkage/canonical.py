r"""What an entity looks like: of each field the two most probable true values.

The true value of a field of an entity is v with probability :math:`P(y = v) \propto \theta_v (1 + (1 - b) / (b
\theta_v))^{n_v}`, where :math:`n_v` of its records show v (hit-miss likelihood, distortions summed out).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.arrays import Float, Int
from consilience.data.records import Records
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.starting import hyperparameters
from consilience.models.interface import Column, Table
from consilience.models.posterior import Posterior
from consilience.models.sites import Resolved
from consilience.models.truth.partitions import PartitionTruth


def canonical(
    posterior: Posterior, resolved: Resolved, truth: PartitionTruth, *, limit: int | None = None
) -> dict[str, np.ndarray]:
    """Return the true values of all entities of the estimate: of each field the most probable one and the next.

    ``values`` is how many different values its records show; a field that all of them lack has no row. The runner-up
    may be a value that none of them shows; it is empty where the field has one value only.

    Parameters
    ----------
    limit : of so many entities alone, those with the most records; the values of all are in memory together.

    Raises
    ------
    UnsupportedRequest : ``limit`` is no whole number above 0.
    """
    data: Records = resolved.data
    shown = _shown(data, *_limited(truth.estimate(), limit))
    value_share, distortion = hyperparameters(posterior, data)
    share, own = value_share[shown.value], distortion[shown.cell % data.num_fields]
    log_weight = np.log(share) + shown.number * np.log1p((1 - own) / (own * share))
    # The values of each cell, the most probable first.
    order = np.lexsort((-log_weight, shown.cell))
    cell, value, log_weight = shown.cell[order], shown.value[order], log_weight[order]
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    lengths = np.diff(np.append(starts, len(cell)))
    highest = log_weight[starts]
    weight = np.exp(log_weight - np.repeat(highest, lengths))
    # The values that no record shows have together what is left of one.
    whole = np.add.reduceat(weight, starts) + np.exp(-highest) * (1 - np.add.reduceat(share[order], starts))
    second = np.minimum(starts + 1, len(cell) - 1)
    seen = np.where(lengths > 1, weight[second], 0.0)
    unseen, common = _most_common_unseen(cell[starts], shown, value_share, data)
    likely = np.where(unseen >= 0, np.exp(-highest) * common, 0.0)
    runner_up = np.where(seen >= likely, np.where(lengths > 1, value[second], -1), unseen)
    texts = np.append(np.asarray(data.values, object), [""])
    return {
        "entity": (cell[starts] // data.num_fields).astype(np.int32),
        "field": (cell[starts] % data.num_fields).astype(np.int32),
        "value": texts[value[starts]], "probability": 1 / whole,
        "runner_up": texts[runner_up], "runner_up_probability": np.maximum(seen, likely) / whole, "values": lengths,
    }  # fmt: skip


CANONICAL = Table(
    name="canonical", help="The true values of all entities: of each field the most probable one and the next.",
    columns=(
        Column("entity", "record"), Column("field", "field"), Column("value"), Column("probability"),
        Column("runner_up", help="the next most probable value"), Column("runner_up_probability"),
        Column("values", help="how many different ones the records show"),
    ),
    make=canonical,
)  # fmt: skip


class _Shown(NamedTuple):
    """Which values the records of an entity show in a field: sorted by cell, which is a field of an entity, and value.

    Parameters
    ----------
    cell : entity times number of fields plus field.
    value : its place among the values of all fields.
    number : how many records show it.
    """

    cell: Int[np.ndarray, " shown"]
    value: Int[np.ndarray, " shown"]
    number: Int[np.ndarray, " shown"]


def _limited(
    cluster: Int[np.ndarray, " record"], limit: int | None
) -> tuple[Int[np.ndarray, " chosen"], Int[np.ndarray, " chosen"]]:
    """Return the records of so many of the largest clusters, and the cluster of each."""
    record = np.arange(len(cluster))
    if limit is None:
        return record, cluster
    if not isinstance(limit, int | np.integer) or limit < 1:
        raise UnsupportedRequest(f"limit={limit!r} entities cannot be shown; give a whole number above 0")
    number = np.bincount(cluster, minlength=len(cluster))
    among = np.zeros(len(cluster), bool)
    among[np.argsort(-number, kind="stable")[:limit]] = True
    record = np.flatnonzero(among[cluster])
    return record, cluster[record]


def _shown(data: Records, record: Int[np.ndarray, " chosen"], cluster: Int[np.ndarray, " chosen"]) -> _Shown:
    """Return what some records show, of which each is in a cluster."""
    code = np.asarray(data.value)[:, record]
    field, place = np.nonzero(code >= 0)
    value = code[field, place] + np.asarray(data.first_value)[field]
    cell = cluster[place].astype(np.int64) * data.num_fields + field
    key, number = np.unique(cell * data.num_values + value, return_counts=True)
    return _Shown(*np.divmod(key, data.num_values), number)


def _most_common_unseen(
    cells: Int[np.ndarray, " cell"], shown: _Shown, value_share: Float[np.ndarray, " value"], data: Records
) -> tuple[Int[np.ndarray, " cell"], Float[np.ndarray, " cell"]]:
    """Return of each cell the most common value of its field that no record shows there, -1 for none; and its share."""
    first = np.asarray(data.first_value)
    by_share = np.lexsort((-value_share, np.repeat(np.arange(data.num_fields), np.diff(first))))
    field = cells % data.num_fields
    key = shown.cell * data.num_values + shown.value
    found, open_, rank = np.full(len(cells), -1), np.arange(len(cells)), 0
    while len(open_):  # at most once more than a cell shows values
        open_ = open_[first[field[open_]] + rank < first[field[open_] + 1]]
        candidate = by_share[first[field[open_]] + rank]
        wanted = cells[open_] * data.num_values + candidate
        known = key[np.minimum(np.searchsorted(key, wanted), len(key) - 1)] == wanted
        found[open_[~known]] = candidate[~known]
        open_, rank = open_[known], rank + 1
    return found, np.where(found >= 0, value_share[found], 0.0)
