"""What a report says of how many clusters a view may have: as given, or as the evidence has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from consilience.models.expert_views.numbers import ALIKE, ERRORS, NATS, left_open
from consilience.pages import More, Table
from consilience.pages.systems import in_words
from consilience.printing import counted, joined, percent
from consilience.rounding import probability, written

_SMALL = 0.2
"""Nats: with smaller standard errors of log evidences, probabilities have two digits."""

_LEAST_SHARE = 0.001
"""Of pairs: below it a share is not written."""

_TWO_DIGITS = 0.05
"""Nats: of smaller standard errors one digit is none."""

_FIXED = "\N{NO-BREAK SPACE}"


def clusters_allowed(fit: Any, held: Sequence[int] = (), steps: int = 0) -> str:
    """Say how many clusters a view may have, whether somebody chose that or the evidence, and what hangs on it.

    Parameters
    ----------
    fit : of views.
    held : the views that some expert most probably has.
    steps : the number of the step that tries more; 0 where there is none.
    """
    compared = fit.table("evidence")
    most = fit.truth.most_clusters
    if len(compared) < 2:
        used = len(np.unique(fit.truth.consensus(held[0]))) if len(held) == 1 else 0
        uses = f"; {used} {'is' if used == 1 else 'are'} used" if used < most else f" and all {used} are used"
        step = f" (step{_FIXED}{steps})" * bool(steps)
        view = "" if used else " for each view"
        return f"At most {counted(most, 'clusters')}{view} were allowed{uses * bool(used)}; more were not tried{step}"
    tried = f"Among 2 to {compared['clusters'].max()} clusters for each view,"
    near = compared["clusters"][_open(compared)]
    if len(near) == 1:
        known = in_words(probability(float(compared["probability"][compared["clusters"] == most].iloc[0]), 2))
        return f"{tried} {most} fits best (probability {known}){alike_in_words(fit)}"
    highest = int(compared["clusters"].iloc[compared["log_evidence"].argmax()])
    why = "which has the highest estimate"
    if highest != most:
        why = f"the smallest number that sorts the items like {highest}, which has the highest estimate"
    return (
        f"{tried} {_listed(near.tolist())} all remain possible: the estimates of their evidence do not separate "
        f"them. This page uses {most}, {why}; {_others(fit)}"
    )


def is_found(fit: Any) -> bool:
    """Return whether numbers of clusters were compared, so that the one that was taken was not merely given."""
    return len(fit.table("evidence")) > 1


def alike_in_words(fit: Any) -> str:
    """Say which numbers of clusters sort the items into the same clusters as the one that was taken; empty of none."""
    compared, most = fit.table("evidence"), fit.truth.most_clusters
    same = compared["clusters"][(compared["clusters"] != most) & (compared["pairs_apart"] == 0)].tolist()
    return f"; {_listed(same)} {'gives' if len(same) == 1 else 'give'} the same clusters" if same else ""


def _others(fit: Any) -> str:
    """Say how otherwise the numbers of clusters that the evidence leaves open sort the items."""
    compared = _others_open(fit)
    number, most = compared["clusters"].tolist(), compared["pairs_apart"].max()
    who = f"the run with {number[0]} sorts" if len(number) == 1 else f"the runs with {_listed(number)} sort"
    if not most:
        return f"{who} the items into the same clusters"
    bound = "at most " if len(number) > 1 or most < _LEAST_SHARE else ""
    return f"{who} {bound}{percent(max(most, _LEAST_SHARE))} of the pairs of items differently"


def _others_open(fit: Any) -> Any:
    """Return the rows of the numbers of clusters that the evidence leaves open beside the one that was taken."""
    compared, most = fit.table("evidence"), fit.truth.most_clusters
    return compared[_open(compared) & (compared["clusters"] != most)]


def _listed(numbers: list[int]) -> str:
    """Write numbers in increasing order: three or more in a row by their ends."""
    *first, last = numbers
    if len(first) > 1 and last - first[0] == len(first):
        return f"{first[0]} to {last}"
    return joined([*map(str, numbers)])


def _open(compared: Any) -> np.ndarray:
    """Return which numbers of clusters the evidence leaves open."""
    return left_open(*(compared[name].to_numpy(float) for name in ("log_evidence", "standard_error")))


def most_otherwise(fit: Any) -> int:
    """Return which number of clusters that the evidence leaves open sorts the items most otherwise; 0 where none does.

    Of several that do the first is taken.
    """
    compared = _others_open(fit)
    if not compared["pairs_apart"].max() > 0:
        return 0
    return int(compared["clusters"].iloc[compared["pairs_apart"].argmax()])


def evidence(fit: Any) -> list[Any]:
    """Tabulate how probable each number of clusters is, of those that were compared."""
    import pandas

    compared, most = fit.table("evidence"), fit.truth.most_clusters
    value, error = (compared[name].to_numpy(float) for name in ("log_evidence", "standard_error"))
    taken, highest, near = compared["clusters"].to_numpy() == most, int(value.argmax()), _open(compared)
    below = _with_errors(value[highest] - value, np.hypot(error, error[highest]))
    shown = pandas.DataFrame({
        "clusters at most": compared["clusters"], "log evidence": _with_errors(value, error),
        "less than the highest": np.where(np.arange(len(value)) == highest, "–", below),
        "open": np.where(taken, "used", np.where(near, "yes", "no")),
        "pairs that differ": np.where(taken, "–", [
            f"< {percent(_LEAST_SHARE)}" if 0 < value < _LEAST_SHARE else percent(value)
            for value in compared["pairs_apart"]
        ]),
    })  # fmt: skip
    shown.attrs["numbers"] = tuple(shown.columns[[1, 2, 4]])
    words = (
        "The table compares how probable the answers are with each number of clusters; before the answers, all numbers "
        "are equally probable. Log evidence is the natural logarithm of that probability: 3 less is a twentieth as "
        "probable. ± is the standard error due to chance in the sampler; it leaves out what the runs never visited, "
        "and diagnostics of the draws, such as R-hat, do not show that. A number stays open unless it is lower than "
        f"the highest by more than {NATS:g} and by more than {ERRORS:g} standard errors of the difference. "
    )
    why = "“Pairs that differ” is the share of pairs of items that are together in one run and apart in the other."
    if near.sum() > 1:
        why += (
            " Of the open numbers, the page uses the smallest that sorts the items like the number with the highest "
            f"estimate, except for less than {percent(ALIKE)} of the pairs: too many clusters may stay empty, but too "
            "few must merge some."
        )
    texts = {}
    if near.sum() == 1 or error[near].max() < _SMALL:
        words += "“Probability” is averaged over these errors."
        shown["probability"] = compared["probability"].to_numpy()
        texts = {"probability": [probability(value, 2) for value in shown["probability"]]}
    else:
        words += "The errors are too large to give probabilities of these numbers."
    table = Table(shown, "Evidence of each number of clusters.", texts=texts)
    return [table, More("How numbers of clusters are compared", [words, why])]


def _with_errors(values: np.ndarray, errors: np.ndarray) -> list[str]:
    two = bool(errors.min() < _TWO_DIGITS)
    digits, least = (".2f", 0.01) if two else (".1f", 0.1)  # no error is written as none
    pairs = zip(values, np.maximum(errors, least), strict=True)
    return [f"{written(value, digits)}{_FIXED}±{_FIXED}{error:{digits}}" for value, error in pairs]
