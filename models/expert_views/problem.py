"""What the steps of coordinate ascent read: judgements in rows of equal width, priors, numbers of the restarts.

Sums over ragged lists, such as the answers of an expert, are what a sweep spends its time on. Here every list is cut
into rows of one width, padded at its end: the sum within a row is a dense one, and only few sums of rows are left to be
added to their owners.

Compiling takes longer than most fits, so arrays are padded to sizes that data of like size share: with items whose
features, the one of the offset among them, are zeros, which add nothing to the bound or to any sum; with pairs of
nobody's answers; and with empty rows and chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import betaln

from consilience.arrays import Array, Float, Int
from consilience.models.expert_views.judgements import Colour, Judgements, Standard
from consilience.models.rows import padded_rows, padded_size, sorted_order

OfItems = Float[Array, "judged restart view cluster"]
"""Of each item; those of one item lie together."""

OfClusters = Float[Array, "cluster restart view judged"]
"""Of each item too, in the order in which exponentials are fast."""

OfPairs = Float[Array, "pair restart view"]
"""Of each pair of items."""

OfWeights = Float[Array, "restart view column cluster"]
"""Of each weight."""

# What a sum of a row costs beyond its entries, and a chunk of rows beyond its rows, about, as a number of entries or
# rows; and how wide and long they may be.
_ROW_COST, _WIDEST = 4, 64
_CHUNK_COST, _LONGEST = 64, 4096

# The number of chunks is a multiple of this, so that data of like size share a program.
_CHUNKS = 4


@jax.tree_util.register_static
@dataclass(frozen=True, kw_only=True)
class Settings:
    """Sizes and choices that are part of the program.

    Parameters
    ----------
    clusters, views : how many, in each view and at all.
    tied : whether cluster probabilities are those of the mean weights (the authors' program) and not free.
    tilted : whether expected log-sum-exps are bounded by the tilted bound and not by Jensen's.
    symmetric : whether sensitivity and specificity are one number.
    per_view : whether an expert has accuracies of his own in each view.
    """

    clusters: int
    views: int
    tied: bool
    tilted: bool
    symmetric: bool
    per_view: bool


class Rows(NamedTuple):
    """Answers in rows of equal width, each row of one owner: an expert, or a pair.

    Parameters
    ----------
    owner : shape ``(row,)``; increasing, every owner at least once.
    other : shape ``(row, width)``; the pairs of an expert's answers, or the experts of a pair's.
    together, apart : shape ``(row, width)``; how often said so; zeros pad.
    """

    owner: Int[Array, " row"]
    other: Int[Array, "row width"]
    together: Float[Array, "row width"]
    apart: Float[Array, "row width"]


class Schedule(NamedTuple):
    """The pairs of all items in rows, colour after colour, in chunks of rows of one colour.

    Parameters
    ----------
    node : shape ``(chunk, row)``; the item of a row. The number of items pads here and in ``complete``.
    other, pair : shape ``(chunk, row, width)``; other ends and pairs. The number of pairs pads.
    complete : shape ``(chunk, row)``; the items whose last row is in the chunk, at the front.
    """

    node: Int[Array, "chunk row"]
    other: Int[Array, "chunk row width"]
    pair: Int[Array, "chunk row width"]
    complete: Int[Array, "chunk row"]


class Problem(NamedTuple):
    """What the steps read.

    Parameters
    ----------
    feature : shape ``(judged, column)``; standardised features and ones; zeros pad.
    first, second : shape ``(pair,)``; places among the judged items.
    by_expert, by_pair : the answers; of pairs there is one more, without answers, to which the schedule's padding goes.
    schedule : the neighbours of all items.
    num_together, num_apart : shape ``(expert,)``.
    num_answers : scalar.
    sensitivity, specificity : shape ``(expert, 2)``; Beta parameters of the priors. Symmetric experts have the first.
    log_prior : shape ``(expert, 2)``; their normalisers, log B of sensitivity and of specificity.
    concentration, weight_scale : scalars; of the sticks, and standard deviation of the weights.
    num_judged : scalar; how many items are no padding.
    restart : shape ``(restart,)``; the numbers of all restarts.
    tied, paired : shapes ``(row,)``; numbers of those that warm up by the tied bound and by the likelihood of pairs,
        of this shard. The number of restarts pads.
    mean, scale : shape ``(feature,)``; by which the features were standardised.
    settings : what is part of the program.
    """

    feature: Float[Array, "judged column"]
    first: Int[Array, " pair"]
    second: Int[Array, " pair"]
    by_expert: Rows
    by_pair: Rows
    schedule: Schedule
    num_together: Float[Array, " expert"]
    num_apart: Float[Array, " expert"]
    num_answers: Float[Array, ""]
    sensitivity: Float[Array, "expert 2"]
    specificity: Float[Array, "expert 2"]
    log_prior: Float[Array, "expert 2"]
    concentration: Float[Array, ""]
    weight_scale: Float[Array, ""]
    num_judged: Int[Array, ""]
    restart: Int[Array, " restart"]
    tied: Int[Array, " tied"]
    paired: Int[Array, " paired"]
    mean: Float[Array, " feature"]
    scale: Float[Array, " feature"]
    settings: Settings


class Q(NamedTuple):
    """Parameters of the distribution that approximates the posterior, of all restarts.

    Parameters
    ----------
    eta : shape ``(judged, restart, view, cluster)``; probabilities of the clusters.
    tilt : shape ``(cluster, restart, view, judged)``; of the bound of expected log-sum-exps, zeros for Jensen's.
    weight_mean, weight_variance : shape ``(restart, view, column, cluster)``.
    phi : shape ``(restart, expert, view)``; probabilities of the views.
    sensitivity, specificity : shape ``(restart, expert, own, 2)``; Beta parameters. ``own`` is the view for experts
        with accuracies per view, and else of size one.
    stick : shape ``(restart, view - 1, 2)``; Beta parameters.
    """

    eta: OfItems
    tilt: OfClusters
    weight_mean: OfWeights
    weight_variance: OfWeights
    phi: Float[Array, "restart expert view"]
    sensitivity: Float[Array, "restart expert own 2"]
    specificity: Float[Array, "restart expert own 2"]
    stick: Float[Array, "restart stick 2"]


def restart_by_restart(function: Callable[..., Any], *some: Q) -> Q:
    """Return a q of which each field is ``function(axis, *fields)``, the axis being that of the restarts."""
    axes = (int(name in ("eta", "tilt")) for name in Q._fields)
    return Q(*(function(axis, *own) for axis, *own in zip(axes, *some, strict=True)))


def problem_of(
    judgements: Judgements, standard: Standard, sensitivity: Float[Array, "expert 2"],
    specificity: Float[Array, "expert 2"], *, clusters: int, views: int, restarts: int = 20, concentration: float = 1.0,
    weight_scale: float = 1.0, responsibilities: str = "free", bound: str = "tilted", experts: str = "two-coin",
) -> Problem:  # fmt: skip
    """Return the problem, floats in JAX's default type; on the host.

    Parameters
    ----------
    judgements, standard : as `judgements` returns them.
    sensitivity, specificity : Beta parameters of the priors.
    clusters, views, restarts : how many.
    concentration, weight_scale : of the sticks, and standard deviation of the weights.
    responsibilities, bound, experts : the options of the member.
    """
    num_tied = restarts if responsibilities == "tied" else restarts // 2
    num_experts, num_items = judgements.num_experts, padded_size(len(judgements.item))
    num_pairs = padded_size(len(judgements.first))
    answers = judgements.answer_expert, judgements.answer_pair
    log_prior = np.stack([betaln(*np.asarray(prior).T) for prior in (sensitivity, specificity)], axis=-1)
    problem = Problem(
        feature=padded_rows(judgements.feature, num_items),
        first=padded_rows(judgements.first, num_pairs),
        second=padded_rows(judgements.second, num_pairs),
        by_expert=_rows(*answers, judgements, num_experts),
        by_pair=_rows(*answers[::-1], judgements, num_pairs + 1),
        schedule=_schedule(judgements.colours, num_items, num_pairs),
        num_together=judgements.number[:, 1].astype(float),
        num_apart=judgements.number[:, 0].astype(float),
        num_answers=np.asarray(float(judgements.number.sum())),
        sensitivity=np.asarray(sensitivity, float),
        specificity=np.asarray(specificity, float),
        log_prior=log_prior,
        concentration=np.asarray(float(concentration)),
        weight_scale=np.asarray(float(weight_scale)),
        num_judged=np.asarray(len(judgements.item)),
        restart=np.arange(restarts, dtype=np.int32),
        tied=np.arange(num_tied, dtype=np.int32),
        paired=np.arange(num_tied, restarts, dtype=np.int32),
        mean=standard.mean,
        scale=standard.scale,
        settings=Settings(
            clusters=clusters, views=views, tied=responsibilities == "tied", tilted=bound == "tilted",
            symmetric=experts == "symmetric", per_view=experts == "per-view",
        ),
    )  # fmt: skip
    dtype = jnp.result_type(float)
    return jax.tree.map(lambda leaf: leaf.astype(dtype if leaf.dtype.kind == "f" else np.int32), problem)


def _rows(owner: np.ndarray, other: np.ndarray, judgements: Judgements, number: int) -> Rows:
    order = sorted_order(owner)
    begin = np.searchsorted(owner[order], np.arange(number + 1))
    width = _best(np.diff(begin), _WIDEST, _ROW_COST)
    of_row, place = _cut(np.diff(begin), width)
    # One row for each owner needs no sums of rows.
    num_rows = number if len(of_row) == number else padded_size(len(of_row))

    def padded(values: np.ndarray, dtype: Any) -> np.ndarray:
        table = np.zeros(num_rows * width, dtype)
        table[place] = values[order]
        return table.reshape(-1, width)

    return Rows(
        padded_rows(of_row, num_rows, number - 1), padded(other, np.int32), padded(judgements.said[:, 1], float),
        padded(judgements.said[:, 0], float),
    )  # fmt: skip


def _schedule(colours: tuple[Colour, ...], num_items: int, num_pairs: int) -> Schedule:
    node = np.concatenate([colour.node for colour in colours])
    degree = np.concatenate([np.bincount(colour.edge_node, minlength=len(colour.node)) for colour in colours])
    width = _best(degree, _WIDEST, _ROW_COST)
    of_row, place = _cut(degree, width)
    colour_of_row = np.repeat(np.arange(len(colours)), [len(colour.node) for colour in colours])[of_row]
    rows_of_colour = np.bincount(colour_of_row)
    length = _best(rows_of_colour, _LONGEST, _CHUNK_COST)
    # Rows of a colour fill chunks of their own.
    of_chunk, row_place = _cut(rows_of_colour, length)
    num_chunks = -(-padded_size(len(of_chunk)) // _CHUNKS) * _CHUNKS
    row_node = np.full(num_chunks * length, num_items, np.int32)
    row_node[row_place] = node[of_row]
    slot = row_place[place // width] * width + place % width

    def padded(values: list[np.ndarray], fill: int) -> np.ndarray:
        table = np.full(len(row_node) * width, fill, np.int32)
        table[slot] = np.concatenate(values)
        return table.reshape(num_chunks, length, width)

    last_row = row_place[np.append(np.flatnonzero(np.diff(of_row)), len(of_row) - 1)]
    num_complete = np.bincount(last_row // length, minlength=num_chunks)
    complete = np.full((num_chunks, length), num_items, np.int32)
    complete[np.arange(length) < num_complete[:, None]] = node
    return Schedule(
        row_node.reshape(-1, length),
        padded([colour.edge_other for colour in colours], 0),
        padded([colour.edge_pair for colour in colours], num_pairs),
        complete,
    )


def _best(sizes: np.ndarray, largest: int, cost: int) -> int:
    """Return the width, a power of four, at which lists of these sizes cost the least when cut and padded."""
    widths = 4 ** np.arange(int(np.log2(largest)) // 2 + 1)
    costs = [np.maximum(-(-sizes // width), 1).sum() * (width + cost) for width in widths]
    return int(widths[np.argmin(costs)])


def _cut(sizes: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Cut lists into rows, at least one each.

    Returns
    -------
    the list of each row, and the place of each entry of all lists in the rows, row after row.
    """
    rows = np.maximum(-(-sizes // width), 1)
    of_row = np.repeat(np.arange(len(sizes)), rows).astype(np.int32)
    first = (np.cumsum(rows) - rows) * width
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return of_row, np.repeat(first, sizes) + within
