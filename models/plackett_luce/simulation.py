r"""Partial rankings with ties from Plackett-Luce: what a report looks like where every class has a known weight.

Every class k of an item arrives after an exponential time of rate λ_k, and an annotator reports the first few in order
of arrival. How many blocks there are and how large is a fixed design that knows nothing of the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int, Key
from consilience.data.rankings import Rankings
from consilience.errors import UnsupportedRequest
from consilience.models.plackett_luce.priors import OneClass, PerUnnamedClass, Priors
from consilience.models.random import log_gamma
from consilience.models.rows import padded_size, repeated_rows
from consilience.models.sites import Resolved

DESIGN = ((1,), (2, 1), (1, 1), (3,), (1, 2))
"""Sizes of the blocks of a report, in turn; a block of two, a tie of three, blocks above and below others."""

def draw_data(
    key: Key, resolved: Resolved, sizes: Mapping[str, int], values: Mapping[str, Any] | None = None
) -> tuple[Rankings, dict[str, np.ndarray]]:
    """Draw weights from the prior and from them one report per item and annotator.

    This is possible for an exchangeable prior alone, in which the weights of all classes are Gamma(α, 1). The priors
    of the authors give one weight to all unnamed classes together: which classes these are is known only after the
    reports, so that they tell no story of how reports arise. The settings have no part in how reports arise.

    Parameters
    ----------
    key, resolved : the priors have to be ``Priors.exchangeable(α)``.
    sizes : ``num_items, num_annotators, num_classes``.
    values : true values as this function returns them: keep their weights, and draw the reports alone anew.

    Returns
    -------
    data : all annotators report on all items; at least one class of every report is not listed.
    values : ``weight`` and ``plausibility``, the weights' shares, both ``(item, class)``; ``time``, shape ``(row,)``:
        when the class of a row arrived, counted from the end of the block before.

    Raises
    ------
    UnsupportedRequest : the priors are not exchangeable.
    """
    alpha = _exchangeable_shape(resolved.given)
    known = None if values is None else np.asarray(values["weight"])
    num_items, num_classes = (sizes["num_items"], sizes["num_classes"]) if known is None else known.shape
    size = padded_size(num_items)  # simulations of like size share a program
    known = None if known is None else repeated_rows(known, size)
    drawn = _drawn((size, sizes["num_annotators"], num_classes), key, alpha, known)
    weight, arrival = (np.asarray(part)[:num_items] for part in drawn)
    data, time = _race(arrival)
    return data, {"weight": weight, "plausibility": weight / weight.sum(axis=1, keepdims=True), "time": time}


@jax.jit(static_argnums=0)
def _drawn(
    shape: tuple[int, int, int], key: Key, alpha: float | Array, weight: Float[Array, "item class"] | None
) -> tuple[Float[Array, "item class"], Float[Array, "item annotator class"]]:
    """Draw the weights unless they are known, and when each class arrives for every annotator."""
    key_weight, key_race = jax.random.split(key)
    if weight is None:
        log_weight = log_gamma(key_weight, jnp.full((shape[0], shape[2]), alpha))
        weight = jnp.maximum(jnp.exp(log_weight), jnp.finfo(log_weight.dtype).tiny)
    return weight, jax.random.exponential(key_race, shape, weight.dtype) / weight[:, None, :]


def _exchangeable_shape(priors: Priors) -> float:
    weight, other = priors.weight, priors.other
    if isinstance(weight, OneClass) and isinstance(other, PerUnnamedClass) and weight.shape == other.shape:
        return weight.shape
    raise UnsupportedRequest(
        "reports can be simulated only where all classes, named or not, have one prior; "
        "give Priors.exchangeable(alpha), for instance alpha=1"
    )


def _race(arrival: Float[np.ndarray, "item annotator class"]) -> tuple[Rankings, Float[np.ndarray, " row"]]:
    """Report the classes that arrive first, and when they arrived."""
    num_items, num_annotators, num_classes = arrival.shape
    block_at = _blocks(num_classes)
    width = block_at.shape[1]
    class_ = np.argsort(arrival, axis=-1)[..., :width]
    arrival = np.take_along_axis(arrival, class_, axis=-1)

    item, annotator = np.indices((num_items, num_annotators))
    block = block_at[(item + annotator) % len(DESIGN)]
    # The last arrival of the block before; blocks are in order of arrival.
    earlier = block[..., :, None] > block[..., None, :]
    stage_start = np.where(earlier & (block >= 0)[..., None, :], arrival[..., None, :], 0).max(axis=-1, initial=0)
    time = np.maximum(arrival - stage_start, np.finfo(arrival.dtype).tiny)

    report = np.broadcast_to(np.arange(num_items * num_annotators).reshape(num_items, num_annotators, 1), block.shape)
    listed = block >= 0
    report, block, class_, time = report[listed], block[listed], class_[listed], time[listed]
    order = np.lexsort((class_, block, report))
    data = Rankings.from_codes(
        item.ravel(), annotator.ravel(), report[order], block[order], class_[order],
        num_items=num_items, num_annotators=num_annotators, num_classes=num_classes,
    )  # fmt: skip
    return data, time[order]


def _blocks(num_classes: int) -> Int[np.ndarray, "design position"]:
    """Return the block of each position of each design, -1 where it lists no more; one class always stays unlisted."""
    width = min(max(map(sum, DESIGN)), num_classes - 1)
    blocks = np.full((len(DESIGN), width), -1)
    for design, sizes in enumerate(DESIGN):
        block = np.repeat(np.arange(len(sizes)), sizes)[:width]
        blocks[design, : len(block)] = block
    return blocks
