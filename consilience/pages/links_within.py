"""What a report says of links between files and within one, and of the records in doubt, on its first screen."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from consilience.models.truth.partitions import pairs_together
from consilience.pages import Action, capital
from consilience.pages.links_found import pairs_of_records
from consilience.pages.record_pairs import DOUBTFUL, SHOWN, doubtful_records, most_in_doubt, near_cut
from consilience.printing import counted, joined
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
        f"{between:,} of {counted(of_between, 'pairs')} of records in different files {_are(between)} linked, and "
        f"{within:,} of {of_within:,} in the same file. The model starts by assuming that both are equally likely"
    )
    return [f"{said}.{_dropped(fit, linked, counts) if _is_rare(*counts) else ''}"]


def _dropped(fit: Any, linked: tuple[np.ndarray, np.ndarray], counts: tuple[tuple[int, int], ...]) -> str:
    """Say how probable links within a file are if pairs there are linked as rarely as their number allows; or nothing.

    Parameters
    ----------
    fit : of records.
    linked : the two records of each link.
    counts : links and pairs of records, between files and within one.
    """
    (between, of_between), (within, of_within) = counts
    most = float(special.gammaincinv(within + 1, 0.95))
    moved = np.log(most / of_within) - np.log((between + within) / (of_between + of_within)) if within else 0.0
    if moved >= 0:
        return ""
    source = np.asarray(fit.data.source)
    own = fit.truth.pairs().of(*(ends[source[linked[0]] == source[linked[1]]] for ends in linked)).max()
    after = special.expit(special.logit(min(own, 1 - 1e-12)) + moved)
    which = "that link" if within == 1 else "the most certain of these links"
    return (
        f" If pairs in the same file are linked at the highest rate that {within:,} of {of_within:,} allows (95 %), "
        f"{which} falls from {probability(own, 2)} to {probability(float(after), 2)}."
    )


def across_files(fit: Any, link: str) -> list[Action]:
    """Return the advice to link only between files, with the links that this would part; none where no other may be.

    ``link`` is the command, with the files and the options of the run.
    """
    if not within_too(fit):
        return []
    why = parted(fit)
    words = "If no file contains the same entity (such as a person) twice, link only between files"
    words = f"{words}{why and f'. {capital(why)}'}:"
    return [Action(words, f"{link} --restriction across -o linked-across")]


def parted(fit: Any) -> str:
    """Say which links are within a file, as what linking between files parts; empty of none."""
    source, names = np.asarray(fit.data.source), np.asarray(fit.data.records, object)
    one, other = _linked(fit)
    own = source[one] == source[other]
    number = int(own.sum())
    if not number:
        return ""
    if number > _MOST_NAMED:
        return f"this removes the {number:,} links within a file"
    named = zip(names[one[own]], names[other[own]], fit.truth.pairs().of(one[own], other[own]), strict=True)
    return f"this separates {joined(f'{a} and {b} (linked with probability {probability(p, 2)})' for a, b, p in named)}"


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


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _is_rare(in_several: tuple[int, int], in_one: tuple[int, int]) -> bool:
    (between, of_between), (within, of_within) = in_several, in_one
    return between > 0 and within * of_between <= _RARE * between * of_within


def in_doubt(fit: Any, surer: np.ndarray) -> list[str]:
    """Say how many records are in doubt, apart from those in links that are surer than stated, and which pair most.

    Parameters
    ----------
    fit : of records.
    surer : which records are in such links; see `surer_records`.
    """
    doubtful, pairs = doubtful_records(fit), fit.truth.pairs()
    if not len(doubtful) or not len(pairs.probability):
        return []
    known, number = int(surer[doubtful].sum()), len(doubtful)
    one, other = (np.array([record]) for record in most_in_doubt(fit))
    names, of_both = np.asarray(fit.data.records, object), float(pairs.of(one, other)[0])
    then = f" With equal values weighed as above, {number - known:,} would remain." * bool(known)
    return [
        f"{number:,} of {counted(fit.data.num_records, 'records')} {'has' if number == 1 else 'have'} a certainty "
        f"below {DOUBTFUL}.{then} The least certain pair is {names[one[0]]} and {names[other[0]]} "
        f"({near_cut(of_both)})."
    ]


def pairs_in_doubt(fit: Any) -> str:
    """Say how many pairs are in doubt, and what that means."""
    chance = fit.truth.pairs().probability
    number = int(((chance > SHOWN) & (chance < DOUBTFUL)).sum())
    return f"{counted(number, 'pairs')} in doubt (probability {SHOWN} to {DOUBTFUL})"
