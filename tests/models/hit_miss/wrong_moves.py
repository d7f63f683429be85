"""Mistakes in splits and mergers: a module, the name of a function in it, and what makes the wrong one of the right."""

import numpy as np

from consilience.models.hit_miss import split_merge


def _no_ways_to_split(right):
    return lambda parts, *rest: right(parts, *rest) - (parts[0].sum() - 2) * np.log(2)


NO_WAYS_TO_SPLIT = split_merge, "log_ratio_of_split", _no_ways_to_split
NO_LABELS_IN_ACCEPTANCE = (
    split_merge, "accepted", lambda right: lambda *given, prior: right(*given, prior="partitions")
)  # fmt: skip
