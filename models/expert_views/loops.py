# mypy: allow-untyped-defs
"""The two loops of the sampler over answers and items, as machine code; the first axis is the rung of a ladder."""

from __future__ import annotations

import math

import numpy as np

from consilience.models.machine_code import machine_code


@machine_code
def count_together(cluster, first, second, answer_expert, answer_pair, together, apart, counts):
    """Add up what each expert says of the pairs that are together, in each view.

    Parameters
    ----------
    cluster : ``(rung, view, item)``.
    first, second : ``(pair,)``; items.
    answer_expert, answer_pair : ``(answer,)``; sorted by expert.
    together, apart : ``(1 or rung, answer)``; how often the expert said so. Rungs may have answers of their own.
    counts : ``(rung, expert, view, 2)``, zeros; filled with how often together and apart was said.
    """
    for rung in range(len(cluster)):
        own = rung if len(together) > 1 else 0
        for view in range(cluster.shape[1]):
            of_view, answer = cluster[rung, view], 0
            while answer < len(answer_pair):
                expert, said_together, said_apart = answer_expert[answer], 0.0, 0.0
                while answer < len(answer_pair) and answer_expert[answer] == expert:
                    pair = answer_pair[answer]
                    same = 1.0 if of_view[first[pair]] == of_view[second[pair]] else 0.0
                    said_together += same * together[own, answer]
                    said_apart += same * apart[own, answer]
                    answer += 1
                counts[rung, expert, view, 0], counts[rung, expert, view, 1] = said_together, said_apart


@machine_code
def draw_clusters(
    uniform, cluster, logits, gain, view_of_expert, answer_expert, answer_pair, together, apart, begin, neighbour,
    neighbour_pair,
):  # fmt: skip
    """Draw the cluster of every item in every view given those of its neighbours, one after the other, in place.

    Parameters
    ----------
    uniform : ``(rung, view, item)``; random numbers in [0, 1).
    cluster : ``(rung, view, item)``; changed.
    logits : ``(rung, view, cluster, item)``.
    gain : ``(rung, expert, 2)``; what "together" and "apart" of an expert add for a pair to be together, in nats.
    view_of_expert : ``(rung, expert)``.
    begin, neighbour, neighbour_pair : of the items, where their lists begin, the other ends and the pairs.
    """
    rungs, views, clusters, items = logits.shape
    pull, total = np.empty((views, begin[-1] // 2)), np.empty(clusters)
    for rung in range(rungs):
        own, answers_count = rung if len(together) > 1 else 0, gain[rung].any()
        pull[:] = 0.0
        for answer in range(len(answer_pair)):
            expert = answer_expert[answer]
            pull[view_of_expert[rung, expert], answer_pair[answer]] += (
                together[own, answer] * gain[rung, expert, 0] + apart[own, answer] * gain[rung, expert, 1]
            )
        for view in range(views):
            of_view, of_pair = cluster[rung, view], pull[view]
            used = answers_count and (view_of_expert[rung] == view).any()
            for item in range(items):
                for k in range(clusters):
                    total[k] = logits[rung, view, k, item]
                if used:
                    for at in range(begin[item], begin[item + 1]):
                        total[of_view[neighbour[at]]] += of_pair[neighbour_pair[at]]
                highest, whole = total.max(), 0.0
                for k in range(clusters):
                    whole += math.exp(total[k] - highest)
                    total[k] = whole
                k, threshold = 0, uniform[rung, view, item] * whole
                while k < clusters - 1 and total[k] <= threshold:
                    k += 1
                of_view[item] = k
