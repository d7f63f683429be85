"""Rankings for the tests of Plackett-Luce: cases of annotators of blocks of class codes."""

import numpy as np

from consilience.data import Rankings


def rankings(cases, num_classes):
    """Return the rankings of cases, an item each."""
    return Rankings.from_nested(cases, classes=[f"class {code}" for code in range(num_classes)])


def random_cases(seed, num_items=60, num_classes=6, most=4):
    """Reports that cut a random order into blocks of one to four; some rank nothing, some everything."""
    rng = np.random.default_rng(seed)

    def report():
        order = rng.permutation(num_classes)[: rng.integers(0, num_classes + 1)]
        return [block.tolist() for block in np.split(order, np.cumsum(rng.integers(1, 4, 3))) if len(block)]

    return [[report() for _ in range(rng.integers(1, most + 1))] for _ in range(num_items)]
