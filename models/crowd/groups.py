"""Groups: annotators who share a source, and whose labels of one item count as one annotation.

A model takes annotators for independent given the true label. A judge and its copy are not: together they outvote one
who looks for herself. Where it is known who shares a source, every row of an item by a member of group g has its weight
divided by how many members of g labelled the item, so that the group has the weight of one of them.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from consilience.arrays import Float, Int
from consilience.data.annotations import Annotations
from consilience.models.sites import Resolved


def group_weights(data: Annotations, groups: Int[np.ndarray, " annotator"]) -> Float[np.ndarray, " annotation"]:
    """Return the weight of each row where the members of a group count as one.

    Parameters
    ----------
    data : the annotations. Rows of weight zero are no annotation of their item.
    groups : shape ``(annotator,)``; code of the group, -1 for none, as `Annotations.group` has them.

    Examples
    --------
    Three annotators label an item, and the first two share a source:

    >>> data = Annotations.from_codes([0, 0, 0], [0, 1, 2], [1, 1, 0])
    >>> group_weights(data, np.array([0, 0, -1])).tolist()
    [0.5, 0.5, 1.0]
    """
    item, annotator = np.asarray(data.item, np.int64), np.asarray(data.annotator, np.int64)
    weight = np.asarray(data.weight, float)
    # The last place is for rows of nobody known, whose code is -1.
    group = np.append(np.asarray(groups, np.int64), -1)[annotator]
    counts = (group >= 0) & (weight > 0)
    num_groups = int(group.max(initial=-1)) + 1
    # Each member on each item once, however many rows she has there.
    cell, first = np.unique(item[counts] * data.num_annotators + annotator[counts], return_index=True)
    here = (item * num_groups + group)[counts]
    together, place = np.unique(here, return_inverse=True)
    members = np.bincount(place[first], minlength=len(together))
    divided = weight.copy()
    divided[counts] /= members[place]
    return divided


def counted_by_group(resolved: Resolved) -> Resolved:
    """Return what was resolved with the weights of `group_weights` in the data, where annotators share sources."""
    if resolved.data.group is None:
        return resolved
    return resolved.replace(data=_weighed(resolved.data))


# Data are frozen, and equal to themselves alone.
@functools.lru_cache(maxsize=1)
def _weighed(data: Annotations) -> Annotations:
    return dataclasses.replace(data, weight=group_weights(data, data.group), group=None, groups=None)
