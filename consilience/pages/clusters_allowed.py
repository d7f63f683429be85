"""What a report says of how many clusters a view may have: as given, or as the evidence has it."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.pages import Table
from consilience.pages.systems import in_a_row, in_words
from consilience.printing import counted
from consilience.rounding import probability, written

_ERRORS, _NATS = 2.0, 3.0
"""Standard errors, and nats (odds of 20 to 1), by which log evidences must differ for numbers to be told apart."""

_SMALL = 0.2
"""Nats: with smaller standard errors of log evidences, probabilities have two digits."""

_FIXED = "\N{NO-BREAK SPACE}"


def clusters_allowed(fit: Any) -> str:
    """Say how many clusters a view may have, and whether somebody chose that or the evidence."""
    compared = fit.table("evidence")
    most = fit.truth.most_clusters
    if len(compared) < 2:
        given = f"That a view has {counted(most, 'clusters')} at most was given and not found"
        return f"{given}: nothing here says how many there are"
    tried = f"Of 2 to {compared['clusters'].max()} clusters, the most that a view may have,"
    near = compared["clusters"][~_apart(compared, most)]
    if len(near) == 1:
        known = in_words(probability(float(compared["probability"][compared["clusters"] == most].iloc[0]), 2))
        return f"{tried} {most} have the most evidence (probability {known})"
    return (
        f"{tried} the evidence cannot tell {_listed(near.tolist())} apart: it differs by less than "
        f"{_ERRORS:g} standard errors, or {_NATS:g} nats. This page is of the run with at most {most}, whose estimate "
        "is the highest"
    )


def _listed(numbers: list[int]) -> str:
    """Write numbers in increasing order: three or more in a row by their ends."""
    *first, last = numbers
    if len(first) > 1 and last - first[0] == len(first):
        return f"{first[0]} to {last}"
    return in_a_row([*map(str, numbers)])


def _apart(compared: Any, most: int) -> Any:
    """Return which numbers of clusters have clearly less evidence than the one that was taken."""
    value, error = (compared[name].to_numpy(float) for name in ("log_evidence", "standard_error"))
    taken = compared["clusters"].to_numpy() == most
    return value[taken] - value > np.maximum(_ERRORS * np.hypot(error, error[taken]), _NATS) * ~taken


def fewest(fit: Any) -> int:
    """Return the fewest clusters that the evidence does not rule out."""
    compared = fit.table("evidence")
    return int(compared["clusters"][~_apart(compared, fit.truth.most_clusters)].min())


def evidence(fit: Any) -> list[Any]:
    """Tabulate how probable each number of clusters is, of those that were compared."""
    import pandas

    compared, most = fit.table("evidence"), fit.truth.most_clusters
    value, error = (compared[name].to_numpy(float) for name in ("log_evidence", "standard_error"))
    taken = compared["clusters"].to_numpy() == most
    below = np.hypot(error, error[taken])
    shown = pandas.DataFrame({
        "clusters at most": compared["clusters"], "log evidence": _with_errors(value, error),
        f"less than with {most}": np.where(taken, "–", _with_errors(value[taken] - value, below)),
        "told apart": np.where(taken, "taken", np.where(_apart(compared, most), "yes", "no")),
    })  # fmt: skip
    shown.attrs["numbers"] = tuple(shown.columns[1:3])
    words = (
        f"{clusters_allowed(fit)}. Before any answer all are as probable. Log evidence is the logarithm of how "
        "probable the answers are with so many clusters, in nats; ± is the standard error that the sampler leaves, "
        "from its runs, and itself rough where these are few. "
    )
    near, texts = ~_apart(compared, most), {}
    if near.sum() == 1 or error[near].max() < _SMALL:
        words += "“Probability” is averaged over these errors."
        shown["probability"] = compared["probability"].to_numpy()
        texts = {"probability": [probability(value, 2) for value in shown["probability"]]}
    else:
        words += "With such errors no probability of these numbers is known."
    return [words, Table(shown, "How many clusters a view may have.", texts=texts)]


def _with_errors(values: np.ndarray, errors: np.ndarray) -> list[str]:
    return [f"{written(value, '.1f')}{_FIXED}±{_FIXED}{error:.1f}" for value, error in zip(values, errors, strict=True)]
