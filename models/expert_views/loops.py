# mypy: allow-untyped-defs
"""The two loops of the sampler over answers and items, as machine code; the first axis is the rung of a ladder."""

from __future__ import annotations

import math

import numpy as np

from consilience.models.machine_code import machine_code


@machine_code
def count_together(cluster, first, second, answer_expert, answer_pair, said, counts):
    """Add up what each expert says of the pairs that are together, in each view.

    Parameters
    ----------
    cluster : ``(rung, view, item)``.
    first, second : ``(pair,)``; items.
    answer_expert, answer_pair : ``(answer,)``; sorted by expert.
    said : ``(1 or rung, answer, kind)``; how often the expert gave each answer. Rungs may have answers of their own.
    counts : ``(rung, expert, view, kind)``, zeros; filled.
    """
    rungs, views, items = cluster.shape
    of_item = np.empty((items, views), cluster.dtype)    # the views of an item lie together
    for rung in range(rungs):
        of_answers, total = said[rung if len(said) > 1 else 0], counts[rung]
        for view in range(views):
            for item in range(items):
                of_item[item, view] = cluster[rung, view, item]
        for answer in range(len(answer_pair)):
            pair, of_expert = answer_pair[answer], total[answer_expert[answer]]
            one, other = of_item[first[pair]], of_item[second[pair]]
            for kind in range(said.shape[2]):
                number = of_answers[answer, kind]
                if number:
                    for view in range(views):
                        of_expert[view, kind] += number * (one[view] == other[view])


@machine_code
def draw_clusters(
    uniform, cluster, logits, gain, view_of_expert, answer_expert, answer_pair, said, begin, neighbour, neighbour_pair,
):  # fmt: skip
    """Draw the cluster of every item in every view given those of its neighbours, one after the other, in place.

    Parameters
    ----------
    uniform : ``(rung, view, item)``; random numbers in [0, 1).
    cluster : ``(rung, view, item)``; changed.
    logits : ``(rung, view, cluster, item)``.
    gain : ``(rung, expert, kind)``; what each answer of an expert adds for a pair to be together, in nats.
    view_of_expert : ``(rung, expert)``.
    begin, neighbour, neighbour_pair : of the items, where their lists begin, the other ends and the pairs.
    """
    rungs, views, clusters, items = logits.shape
    pull, total, pulled = np.empty((views, begin[-1] // 2)), np.empty(clusters), np.empty(views, np.bool_)
    for rung in range(rungs):
        of_answers = said[rung if len(said) > 1 else 0]
        pull[:], pulled[:] = 0.0, False
        for answer in range(len(answer_pair)):
            expert, added = answer_expert[answer], 0.0
            for kind in range(said.shape[2]):
                added += of_answers[answer, kind] * gain[rung, expert, kind]
            view = view_of_expert[rung, expert]
            pull[view, answer_pair[answer]] += added
            pulled[view] |= added != 0.0
        for view in range(views):
            of_view, of_pair = cluster[rung, view], pull[view]
            for item in range(items):
                for k in range(clusters):
                    total[k] = logits[rung, view, k, item]
                if pulled[view]:
                    for at in range(begin[item], begin[item + 1]):
                        total[of_view[neighbour[at]]] += of_pair[neighbour_pair[at]]
                highest, whole, drawn = total[0], 0.0, 0
                for k in range(1, clusters):
                    highest = max(highest, total[k])
                for k in range(clusters):
                    # In single precision: twice as fast, and a probability is wrong by a ten millionth of itself.
                    whole += math.exp(np.float32(total[k] - highest))
                    total[k] = whole
                threshold = uniform[rung, view, item] * whole
                for k in range(clusters - 1):  # all of them: a loop that ends early would be guessed wrongly
                    drawn += total[k] <= threshold
                of_view[item] = drawn
