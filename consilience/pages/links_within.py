"""What a report says of links between files and within one, and of the records in doubt, on its first screen."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.models.truth.partitions import pairs_together
from consilience.pages.links_found import pairs_of_records
from consilience.pages.record_pairs import DOUBTFUL, doubtful_records, most_in_doubt
from consilience.pages.typing_errors import Typos
from consilience.printing import counted
from consilience.rounding import probability

_RARE = 0.1  # Of the rate of links between files: links within a file that are as rare may be chance.
_MOST_NAMED = 2


def within_too(fit: Any) -> bool:
    """Return whether records of one file may be linked as well as those of several."""
    return fit.data.num_sources > 1 and fit.resolved.settings.as_dict().get("restriction") == "none"


def between_and_within(fit: Any) -> list[str]:
    """Say how many links, of how many pairs, are between files and within one, where both may be."""
    if not within_too(fit) or not len((linked := _linked(fit))[0]):
        return []
    (between, of_between), (within, of_within) = counts = _counted(fit, *linked)
    said = (
        f"Links between two files: {between:,} of {counted(of_between, 'pairs')} of records; links within one file: "
        f"{within:,} of {of_within:,}"
    )
    if 0 < within <= _MOST_NAMED:
        source, names = np.asarray(fit.data.source), np.asarray(fit.data.records, object)
        own = source[linked[0]] == source[linked[1]]
        one, other = (records[own] for records in linked)
        named = zip(names[one], names[other], fit.truth.pairs().of(one, other), strict=True)
        said += f" ({'; '.join(f'{a} and {b} with {probability(p, 2)}' for a, b, p in named)})"
    said += ". Before it compares them the model takes either kind of pair to be a link as often"
    if _is_rare(*counts):
        said += ", though links within are far rarer here"
    return [f"{said}."]


def links_and_pairs(fit: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the links of the estimate and all pairs of records, between files and within one."""
    return _counted(fit, *_linked(fit))


def _linked(fit: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the two records of each link of the estimate."""
    return np.divmod(pairs_together(np.asarray(fit.truth.estimate())), fit.data.num_records)


def _counted(fit: Any, one: np.ndarray, other: np.ndarray) -> tuple[tuple[int, int], tuple[int, int]]:
    source, (of_between, of_within) = np.asarray(fit.data.source), pairs_of_records(fit.data)
    within = int((source[one] == source[other]).sum())
    return (len(one) - within, of_between), (within, of_within)


def rarely_within(fit: Any) -> bool:
    """Return whether a pair within a file is linked at most a tenth as often as one between files."""
    return _is_rare(*links_and_pairs(fit))


def _is_rare(in_several: tuple[int, int], in_one: tuple[int, int]) -> bool:
    (between, of_between), (within, of_within) = in_several, in_one
    return between > 0 and within * of_between <= _RARE * between * of_within


def in_doubt(fit: Any, typos: Typos) -> list[str]:
    """Say how many records are in doubt, which pair most, and how many of those in ``typos`` only for an error."""
    number = len(doubtful_records(fit))
    pairs = fit.truth.pairs()
    if not number or not len(pairs.probability):
        return []
    one, other = (np.array([record]) for record in most_in_doubt(fit))
    names, of_both = np.asarray(fit.data.records, object), float(pairs.of(one, other)[0])
    return [
        f"{number:,} of {counted(fit.data.num_records, 'records')} {'has' if number == 1 else 'have'} an entity with a "
        f"certainty below {DOUBTFUL}. Most in doubt are {names[one[0]]} and {names[other[0]]}, "
        f"of one entity with probability {probability(of_both, 2)}.{typos.words}"
    ]
