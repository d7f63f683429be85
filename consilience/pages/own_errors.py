"""What a report of views says of the answers of one expert that go against the clusters: which, and how they lie."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from consilience.printing import counted, joined, numbered
from consilience.rounding import p_value

_FEWEST = 5  # answers that are expected of a pair of clusters, for a test
_CLEAR = 0.05


def kinds_in_words(fit: Any, against: Any, who: Any) -> str:
    """Say how many of an expert's answers of either kind go against the clusters.

    Parameters
    ----------
    fit : of views.
    against : table of the answers of all experts that do.
    who : the name of the expert.
    """
    own, one_cluster = against[against["expert"] == who], _of_one_cluster(fit, who)
    apart = int((own["together"] > 0.5).sum())
    return (
        f"{who} calls {len(own) - apart:,} of {counted(int((~one_cluster).sum()), 'pairs')} in different clusters "
        f"together, and {apart:,} of {int(one_cluster.sum()):,} in one cluster apart"
    )


def spread_in_words(fit: Any, who: Any) -> str:
    """Say whether what an expert calls together of different clusters piles up on some of these; empty of few."""
    data, own = fit.data, _told_by(fit, who)
    view = int(fit.truth.view_probability[_code(fit, who)].argmax())
    label, together = fit.truth.consensus(view), data.scale[np.asarray(data.together)[own]] > 0.5
    ends = np.stack([label[np.asarray(one)[own]] for one in (data.item_a, data.item_b)])
    low, high = np.sort(ends, axis=0)
    found = [
        (one, other, int((here & together).sum()), int(here.sum()))
        for one, other in itertools.combinations(np.unique(label).tolist(), 2)
        if (here := (low == one) & (high == other)).any()
    ]
    wrong, asked = np.array([row[2] for row in found]), np.array([row[3] for row in found])
    if len(found) < 2 or wrong.sum() * asked.min() < _FEWEST * asked.sum():
        return ""
    from scipy import stats

    chance = float(stats.chi2_contingency(np.stack([wrong, asked - wrong])).pvalue)
    told = joined([
        f"{bad:,} of {number:,} ({numbered(one)} with {numbered(other)})" for one, other, bad, number in found
    ])  # fmt: skip
    if chance >= _CLEAR:
        means = "They do not clearly concentrate on some clusters, as they would if this expert merged two clusters"
    else:
        means = "They concentrate on some clusters, so this expert may sort the items in another way"
    return f"By pair of clusters, the “together” errors are {told}. {means} (chi-square test, {p_value(chance)})."


def _of_one_cluster(fit: Any, who: Any) -> np.ndarray:
    """Return of each answer of an expert that is not even whether its items are more probably together than apart."""
    data, own = fit.data, _told_by(fit, who)
    ends = (np.asarray(one)[own] for one in (data.item_a, data.item_b, data.expert))
    return np.asarray(fit.truth.pair_probability(*ends).sum(axis=1) > 0.5)


def _told_by(fit: Any, who: Any) -> np.ndarray:
    """Return which answers are those of an expert that say together or apart, and are not even."""
    scale = fit.data.scale[np.asarray(fit.data.together)]
    return (np.asarray(fit.data.expert) == _code(fit, who)) & np.isfinite(scale) & (scale != 0.5)


def _code(fit: Any, who: Any) -> int:
    names = fit.truth.names("expert", fit.truth.num_experts)
    return int(np.flatnonzero(names == who)[0])
