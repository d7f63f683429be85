"""What tests of rankings share: nested blocks of classes, best block first, drawn, padded and as published."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from consilience.data.rankings import Rankings
from consilience.evaluation.rank_distances import BucketOrder


@st.composite
def rankings(draw, num_classes, most=None):
    """Draw a ranking of up to so many classes, in blocks."""
    order = draw(st.permutations(range(num_classes)))[: draw(st.integers(0, num_classes if most is None else most))]
    starts = [True, *draw(st.lists(st.booleans(), min_size=num_classes, max_size=num_classes))]
    blocks = []
    for label, new in zip(order, starts, strict=False):
        if new:
            blocks.append([])
        blocks[-1].append(label)
    return blocks


def padded(ranking, width):
    """Return a ranking as arrays; junk stands in the padding of the blocks on purpose."""
    classes = [label for block in ranking for label in block]
    blocks = [number for number, block in enumerate(ranking) for _ in block]
    tail = width - len(classes)
    return BucketOrder(np.array(classes + [-1] * tail, np.int32), np.array(blocks + [0] * tail, np.int32))


def make(nested, num_classes):
    """Make rankings ``[item][report][block][class]``."""
    return Rankings.from_nested(nested, classes=[f"class {code}" for code in range(num_classes)])


def dermatology():
    """Return the rankings of dermatologists, as published."""
    if "CONSILIENCE_DATA" not in os.environ:
        pytest.skip("CONSILIENCE_DATA is not set")
    path = Path(os.environ["CONSILIENCE_DATA"]) / "dermatology" / "dermatology_selectors.json"
    return json.loads(path.read_text())
