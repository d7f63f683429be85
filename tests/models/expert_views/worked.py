"""The worked example: four items at the corners of a square, two experts who see one feature each."""

import itertools

import numpy as np

from consilience.models.expert_views.simulation import constraints_of

FEATURE = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
ANSWERS = [
    (0, 0, 1, 1), (0, 2, 3, 1), (0, 0, 2, 0), (0, 1, 3, 0), (0, 0, 3, 1),
    (1, 0, 2, 1), (1, 1, 3, 1), (1, 0, 1, 0), (1, 2, 3, 0),
]  # fmt: skip
DATA = constraints_of(*map(np.array, zip(*ANSWERS, strict=True)), FEATURE, 2)
OPTIONS = {"clusters": 2, "views": 2, "standardize": 0}
VIEWS = np.array(list(itertools.product(range(2), repeat=2)))    # of both experts
PAIRS = np.array(list(itertools.combinations(range(4), 2)))

# Exact, by enumeration and quadrature.
LOG_EVIDENCE, SAME_VIEW, SENSITIVITY = -7.569818, 0.038392, [0.901033, 0.916899]
P_TOGETHER = [
    [0.911521, 0.181828, 0.234925, 0.155884, 0.181828, 0.911521],
    [0.045129, 0.977023, 0.050429, 0.043729, 0.977023, 0.045129],
]
