"""A truth that draws its rankings once, for the many scores of one report."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from consilience.models.truth import Ranked
from consilience.models.truth.truth import Block, Question

# Rankings of more numbers than this are drawn anew for each score: 2^26 codes take 256 MiB.
_MOST_REMEMBERED = 1 << 26


def remembering(truth: Any) -> Any:
    """Return a truth that draws its rankings once for each depth, for the many scores of one report."""
    if not truth.answers(Ranked(2)) and truth.exact(Ranked(1)) is not None:
        return truth  # nothing is drawn
    other = copy.copy(truth)
    kept: dict[int, list[Block]] = {}

    def blocks(question: Question) -> Iterator[Block]:
        match question:
            case Ranked(depth) if depth * truth.num_units * truth.num_draws <= _MOST_REMEMBERED:
                if depth not in kept:
                    kept[depth] = [one._replace(values=np.asarray(one.values)) for one in truth.blocks(question)]
                return iter(kept[depth])
        return truth.blocks(question)

    other.blocks = blocks
    other.point = truth.standard  # an estimate that is made at its first use serves both
    return other
