"""What a report of views says of the clusters without the answers of the expert whose answers go most against them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from consilience.errors import ConsilienceError, ConsilienceWarning
from consilience.pages.run import own_priors

_MOST_ANSWERS = 5_000  # of data that are fitted again for a page
_SHORT = {"draws": 100, "warmup": 100, "chains": 1}
HOW = f"comes from a short run of the sampler ({_SHORT['draws']} draws)."
_ROWS = ("expert", "item_a", "item_b", "together", "order")  # columns of answers


def without_one(fit: Any, who: Any, view: int) -> str:
    """Say how many items are in another cluster without the answers of an expert; empty where that is not looked at.

    That is by a short run of the sampler, with as many clusters at most, on the items that others judged too.

    Parameters
    ----------
    fit : of views, of which one is held.
    who : the name of the expert.
    view : the one that is held.
    """
    if fit.method != "gibbs" or own_priors(fit) or fit.data.num_constraints > _MOST_ANSWERS or fit.data.num_experts < 3:
        return ""
    data = _without(fit.data, who)
    other = _fitted_again(fit, data)
    if other is None or not len(used := other.truth.used_views()):
        return ""
    judged = np.unique([data.item_a, data.item_b])
    one, two = fit.truth.consensus(view)[judged], other.truth.consensus(int(used[0]))[judged]
    moved = moved_items(one, two)
    judged_too = " that others judged" * (len(judged) < fit.truth.num_units)
    if not moved:
        return f"Without the answers of {who}, all {len(judged):,} items{judged_too} stay in their clusters."
    change = "changes its cluster" if moved == 1 else "change their clusters"
    return f"Without the answers of {who}, {moved:,} of {len(judged):,} items{judged_too} {change}."


def moved_items(one: np.ndarray, other: np.ndarray) -> int:
    """Return how many items are in other clusters, whose numbers are matched so that this is as few as can be."""
    table = np.zeros((one.max() + 1, other.max() + 1), int)
    np.add.at(table, (one, other), 1)
    return len(one) - int(table[linear_sum_assignment(-table)].sum())


def _without(data: Any, who: Any) -> Any:
    """Return the answers of all other experts."""
    kept = np.asarray(data.expert) != [*map(str, data.experts)].index(str(who))
    columns = {name: np.asarray(getattr(data, name))[kept] for name in _ROWS if getattr(data, name) is not None}
    return data.replace(**columns, num_constraints=int(kept.sum()))


def _fitted_again(fit: Any, data: Any) -> Any:
    """Fit other answers with as many clusters at most as were taken, in a short run; None where that is refused."""
    from consilience.inference.fitting import fit as fit_again

    chosen = fit.options | _SHORT | {"clusters": fit.truth.most_clusters}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        try:
            return fit_again(fit.member.name, data, method=fit.method, seed=fit.seed, **chosen)
        except ConsilienceError:
            return None
