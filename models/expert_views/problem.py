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
from consilience.errors import NotConjugate, UnsupportedRequest
from consilience.models.expert_views.judgements import Judgements, judgements
from consilience.models.expert_views.likelihood import answer_table
from consilience.models.expert_views.settings import check_clusters
from consilience.models.rows import padded_rows, padded_size, ranges, sorted_order
from consilience.models.sites import Resolved
from consilience.notes import Remedy

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
    per_view : whether an expert has accuracies of his own in each view.
    """

    clusters: int
    views: int
    tied: bool
    tilted: bool
    per_view: bool


class Rows(NamedTuple):
    """Answers in rows of equal width, each row of one owner: an expert, or a pair.

    Parameters
    ----------
    owner : shape ``(row,)``; increasing, every owner at least once.
    other : shape ``(row, width)``; the pairs of an expert's answers, or the experts of a pair's.
    said : shape ``(row, width, kind)``; how often apart, and together; zeros pad.
    """

    owner: Int[Array, " row"]
    other: Int[Array, "row width"]
    said: Float[Array, "row width kind"]


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
    number : shape ``(expert, kind)``; how often each said apart, and together.
    cells : for which probability of a site an answer counts, of pairs that are apart and that are together; see
        `AnswerTable`.
    prior : shape ``(expert, site, 2)``; Beta parameters, of sensitivity and specificity, or of both as one.
    log_prior : shape ``(expert, site)``; their normalisers, log B.
    concentration, weight_scale : scalars; of the sticks, and standard deviation of the weights.
    num_judged : scalar; how many items are no padding.
    restart : shape ``(restart,)``; the numbers of all restarts.
    tied, paired : shapes ``(row,)``; numbers of those that warm up by the tied bound and by the likelihood of pairs,
        of this shard. The number of restarts pads.
    settings : what is part of the program.
    """

    feature: Float[Array, "judged column"]
    first: Int[Array, " pair"]
    second: Int[Array, " pair"]
    by_expert: Rows
    by_pair: Rows
    schedule: Schedule
    number: Float[Array, "expert kind"]
    cells: Float[Array, "truth kind cell"]
    prior: Float[Array, "expert site 2"]
    log_prior: Float[Array, "expert site"]
    concentration: Float[Array, ""]
    weight_scale: Float[Array, ""]
    num_judged: Int[Array, ""]
    restart: Int[Array, " restart"]
    tied: Int[Array, " tied"]
    paired: Int[Array, " paired"]
    settings: Settings


class Q(NamedTuple):
    """Parameters of the distribution that approximates the posterior, of all restarts.

    Parameters
    ----------
    eta : shape ``(judged, restart, view, cluster)``; probabilities of the clusters.
    tilt : shape ``(cluster, restart, view, judged)``; of the bound of expected log-sum-exps, zeros for Jensen's.
    weight_mean, weight_variance : shape ``(restart, view, column, cluster)``.
    phi : shape ``(restart, expert, view)``; probabilities of the views.
    accuracy : shape ``(restart, expert, own, site, 2)``; Beta parameters. ``own`` is the view for experts with
        accuracies per view, and else of size one.
    stick : shape ``(restart, view - 1, 2)``; Beta parameters.
    """

    eta: OfItems
    tilt: OfClusters
    weight_mean: OfWeights
    weight_variance: OfWeights
    phi: Float[Array, "restart expert view"]
    accuracy: Float[Array, "restart expert own site 2"]
    stick: Float[Array, "restart stick 2"]


def restart_by_restart(function: Callable[..., Any], *some: Q) -> Q:
    """Return a q of which each field is ``function(axis, *fields)``, the axis being that of the restarts."""
    axes = (int(name in ("eta", "tilt")) for name in Q._fields)
    return Q(*(function(axis, *own) for axis, *own in zip(axes, *some, strict=True)))


def prepare(resolved: Resolved) -> Problem:
    """Return the problem of all restarts, floats in JAX's default type; on the host.

    Raises
    ------
    NotConjugate : a prior is no Beta distribution, the link is not the linear one with normal weights, or experts are
        spammers.
    UnsupportedRequest : there are more clusters than items in pairs, or other answers than together and apart.
    """
    chosen, given = resolved.settings, resolved.given
    judged, _ = judgements(resolved.data, bool(chosen.standardize))
    check_clusters(chosen.clusters, len(judged.item), "coordinate ascent")
    if given.logits is not None or given.weight is not None:
        raise NotConjugate(
            "site 'weight': coordinate ascent needs the linear link with normal weights of mean zero; a link or a "
            "prior of your own is sampled with {method}", Remedy("method", "gibbs"),
        )  # fmt: skip
    if chosen.experts == "spammer":
        text = "{experts}: knowledge and guess have no conjugate update; take {method}"
        raise NotConjugate(text, Remedy("experts", "spammer"), Remedy("method", "gibbs"))
    if judged.said.shape[1] > 2:
        text = "coordinate ascent takes answers together and apart of pairs shown in one way; take {method}"
        raise UnsupportedRequest(text, Remedy("method", "gibbs"))
    table = answer_table(resolved)
    prior = np.stack([resolved.concentration(site) for site in table.sites], axis=1)
    tied = chosen.responsibilities == "tied"
    num_tied = chosen.restarts if tied else chosen.restarts // 2
    num_items, num_pairs = padded_size(len(judged.item)), padded_size(len(judged.first))
    answers = judged.answer_expert, judged.answer_pair
    problem = Problem(
        feature=padded_rows(judged.feature, num_items),
        first=padded_rows(judged.first, num_pairs),
        second=padded_rows(judged.second, num_pairs),
        by_expert=_rows(*answers, judged.said, judged.num_experts),
        by_pair=_rows(*answers[::-1], judged.said, num_pairs + 1),
        schedule=_schedule(judged, num_items, num_pairs),
        number=judged.number.astype(float),
        cells=table.cells,
        prior=prior,
        log_prior=betaln(prior[..., 0], prior[..., 1]),
        concentration=np.asarray(float(given.concentration)),
        weight_scale=np.asarray(float(given.weight_scale)),
        num_judged=np.asarray(len(judged.item)),
        restart=np.arange(chosen.restarts),
        tied=np.arange(num_tied),
        paired=np.arange(num_tied, chosen.restarts),
        settings=Settings(
            clusters=chosen.clusters, views=resolved.size("view"), tied=tied, tilted=chosen.bound == "tilted",
            per_view=chosen.experts == "per-view",
        ),
    )  # fmt: skip
    dtype = jnp.result_type(float)
    return jax.tree.map(lambda leaf: leaf.astype(dtype if leaf.dtype.kind == "f" else np.int32), problem)


def _rows(owner: np.ndarray, other: np.ndarray, said: np.ndarray, number: int) -> Rows:
    order = sorted_order(owner)
    begin = np.searchsorted(owner[order], np.arange(number + 1))
    width = _best(np.diff(begin), _WIDEST, _ROW_COST)
    of_row, place = _cut(np.diff(begin), width)
    # One row for each owner needs no sums of rows.
    num_rows = number if len(of_row) == number else padded_size(len(of_row))

    def padded(values: np.ndarray, dtype: Any) -> np.ndarray:
        table = np.zeros((num_rows * width, *values.shape[1:]), dtype)
        table[place] = values[order]
        return table.reshape(-1, width, *values.shape[1:])

    return Rows(padded_rows(of_row, num_rows, number - 1), padded(other, np.int32), padded(said, float))


def coloured(begin: Int[np.ndarray, " node_and_one"], neighbour: Int[np.ndarray, " edge"]) -> Int[np.ndarray, " node"]:
    """Return a colour from 0 for each node of a graph, such that no two neighbours have the same.

    Greedily, nodes of the largest degree first, in a plain loop: a million pairs take a second.

    Parameters
    ----------
    begin, neighbour : the neighbours of each node, one list after the other.
    """
    number, degree = len(begin) - 1, np.diff(begin)
    first, other, colour = begin.tolist(), neighbour.tolist(), [-1] * (len(begin) - 1)
    for node in np.lexsort((np.random.default_rng(0).permutation(number), -degree)).tolist():
        taken = {colour[one] for one in other[first[node] : first[node + 1]]}
        colour[node] = next(new for new in range(len(taken) + 1) if new not in taken)
    return np.array(colour, int)


def _schedule(judged: Judgements, num_items: int, num_pairs: int) -> Schedule:
    degree = np.diff(judged.begin)
    colour = coloured(judged.begin, judged.neighbour)
    node = sorted_order(colour)  # colour after colour
    edge = np.repeat(judged.begin[:-1][node], degree[node]) + ranges(degree[node])
    width = _best(degree, _WIDEST, _ROW_COST)
    of_row, place = _cut(degree[node], width)
    rows_of_colour = np.bincount(colour[node][of_row])
    length = _best(rows_of_colour, _LONGEST, _CHUNK_COST)
    # Rows of a colour fill chunks of their own.
    of_chunk, row_place = _cut(rows_of_colour, length)
    num_chunks = -(-padded_size(len(of_chunk)) // _CHUNKS) * _CHUNKS
    row_node = np.full(num_chunks * length, num_items, np.int32)
    row_node[row_place] = node[of_row]
    slot = row_place[place // width] * width + place % width

    def padded(values: np.ndarray, fill: int) -> np.ndarray:
        table = np.full(len(row_node) * width, fill, np.int32)
        table[slot] = values[edge]
        return table.reshape(num_chunks, length, width)

    last_row = row_place[np.append(np.flatnonzero(np.diff(of_row)), len(of_row) - 1)]
    num_complete = np.bincount(last_row // length, minlength=num_chunks)
    complete = np.full((num_chunks, length), num_items, np.int32)
    complete[np.arange(length) < num_complete[:, None]] = node
    return Schedule(
        row_node.reshape(-1, length), padded(judged.neighbour, 0), padded(judged.neighbour_pair, num_pairs), complete
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
    return of_row, np.repeat((np.cumsum(rows) - rows) * width, sizes) + ranges(sizes)
