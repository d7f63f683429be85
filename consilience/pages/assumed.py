"""What a report says of a reliability that is assumed: what would follow, were annotators trusted less or more."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from consilience.data import Predictions
from consilience.errors import NotConjugate, UnsupportedRequest
from consilience.evaluation.adjustment import evaluate
from consilience.evaluation.certainties import certainty
from consilience.evaluation.classes import Metric
from consilience.evaluation.scores import Score
from consilience.inference.fitting import Fit
from consilience.inference.fitting import fit as infer
from consilience.models.intervals import ends
from consilience.pages import SURE, Action, Table
from consilience.pages.items import below, class_word, effective_draws
from consilience.pages.next_steps import fit_again
from consilience.printing import counted, joined

_CHOOSE = (
    "The reliability is as how many independent annotators each one counts, and these data do not show it. Take 1 or "
    "less where annotators share what misleads them, as a common training or the same poor picture; more only where "
    "you know that they are nearly always right. Where some items have gold labels, see whether labels are right as "
    "often as they are said to be."
)

_BY_TRUST = "depending on how far annotators are trusted"

_FACTOR = 3.0  # by which annotators are trusted less, and more

# A sampler is run again where that takes little beside the page, with a part of the draws where it takes longer.
_FEW_SECONDS, _MOST_SECONDS, _PART, _FEWEST = 5.0, 30.0, 4, 50


class Assumed(NamedTuple):
    """What follows from a reliability.

    Parameters
    ----------
    reliability : as it is set.
    top : certainty of the top class.
    scores : of each system, of predictions made from the annotations.
    draws : how many independent ones certainties were counted among; infinite where they were not counted.
    """

    reliability: float
    top: Score
    scores: dict[str, float]
    draws: float = np.inf

    @property
    def fewest_and_most(self) -> tuple[int, int]:
        """Between how many and how many items are unsure, as far as the draws tell."""
        error = special.ndtri(ends()[1]) * np.sqrt(SURE * (1 - SURE) / max(self.draws, 1))
        first, last = (dataclasses.replace(self.top, items=self.top.items + one) for one in (error, -error))
        return below(first), below(last)

    @property
    def unsure(self) -> str:
        """Say how many items are unsure, or a range of it where the draws leave that open."""
        fewest, most = self.fewest_and_most
        return f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"


def assumed_words(fit: Fit, found: Sequence[Assumed] = ()) -> str:
    """Return what all certainties rest on, where the user sets it and no data tell; and what others ``found`` give."""
    if (trusted := fit.options.get("reliability")) is None:
        return ""
    if not found:
        return f", at reliability {trusted:g} (assumed; the higher, the more annotators are trusted)"
    every = [one.top.value for one in found]
    return f" ({min(every):.2f} to {max(every):.2f}, {_BY_TRUST})"


def unsure_words(found: Sequence[Assumed]) -> str:
    """Return how many items are unsure at other reliabilities; nothing where none was tried."""
    every = [end for one in found for end in one.fewest_and_most]
    return f" ({min(every):,} to {max(every):,}, {_BY_TRUST})" if found else ""


def at_other_reliabilities(fit: Fit, systems: Mapping[str, Predictions], metrics: Sequence[Metric]) -> list[Assumed]:
    """Return what follows if annotators are trusted a third as much, and three times as much.

    Nothing where none is assumed, or where it would take long; not one of these that the method does not take.

    Parameters
    ----------
    fit : of classes of items.
    systems, metrics : predictions by name, and by what they are scored, the first one alone.
    """
    if fit.options.get("reliability") is None:
        return []
    given: dict[str, Any] = {"draws": fit.draws}
    if fit.method == "gibbs" and fit.attributes.get("seconds", _MOST_SECONDS) < _MOST_SECONDS:
        warmup = fit.attributes.get("warmup", fit.draws)
        part = 1 if fit.attributes["seconds"] < _FEW_SECONDS else _PART
        given = {"draws": max(fit.draws // part, _FEWEST), "warmup": max(warmup // min(part, 2), _FEWEST)}
        given["chains"] = fit.attributes.get("chains", 1)
    elif fit.method != "exact":
        return []
    found = []
    for reliability in others(fit):
        options = {**fit.options, "reliability": reliability}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of so few draws; they are told with a digit less
            try:
                other = infer(fit.member, fit.data, fit.priors, fit.method, seed=fit.seed, **given, **options)
            except (NotConjugate, UnsupportedRequest):
                continue
        truth: Any = other.truth
        scores, top = {name: evaluate(truth, one, metrics[0]).value for name, one in systems.items()}, certainty(truth)
        found.append(Assumed(reliability, top, scores, effective_draws(other, top)))
    return found


def others(fit: Fit) -> list[float]:
    """Return the reliabilities that are tried beside the one that is assumed."""
    trusted = fit.options["reliability"]
    return [float(f"{one:.2g}") for one in (trusted / _FACTOR, _FACTOR * trusted)]


def _to_try(fit: Fit) -> float:
    """Return one that every method takes: of ties the Gibbs sampler takes whole numbers alone."""
    less, more = others(fit)
    return more if fit.method == "gibbs" else less


def finding(fit: Fit, own: Assumed, found: Sequence[Assumed], metrics: Sequence[Metric]) -> str:
    """Say what rests on the reliability; empty where none is assumed. Parameters are those of `reliability_table`."""
    if fit.options.get("reliability") is None:
        return ""
    settings = {one.name: one.metadata for one in dataclasses.fields(fit.resolved.settings)}
    meant, _, _ = settings["reliability"]["help"].partition(":")
    words = (
        f"The reliability, {meant}, is assumed to be {fit.options['reliability']:g} and not learned, which no interval "
        "includes"
    )
    if not found:
        return f"{words}. All certainties and scores rest on it: fit with {_to_try(fit):g}, say, to see how far."
    top, of = own.top, counted(len(own.top.items), "items")
    told = joined([f"{one.unsure} at {one.reliability:g}" for one in found])
    return f"{words}. With it {below(top):,} of {of} have a certainty below {SURE}; they would be {told}."


def _order(own: Assumed, found: Sequence[Assumed], metrics: Sequence[Metric]) -> str:
    """Say which system has the highest mean at which reliability, by the digits of the table; empty of one or none."""
    if len(own.scores) < 2:
        return ""
    at: dict[tuple[str, ...], list[str]] = {}
    for one in sorted([own, *found], key=lambda one: one.reliability):
        shown = {name: f"{value:.2f}" for name, value in one.scores.items()}
        first = tuple(name for name, text in shown.items() if text == max(shown.values()))
        at.setdefault(first, []).append(f"{one.reliability:g}")
    what = f" In {metrics[0].title}, as if predictions were made from the annotations,"
    if len(at) == 1:
        (first,) = at
        return f"{what} {_who(first)} at all of these."
    return f"{what} {'; '.join(f'{_who(first)} at {joined(where)}' for first, where in at.items())}."


def _who(first: Sequence[str]) -> str:
    """Say who leads, or how many tie."""
    if len(first) == 1:
        return f"“{first[0]}” leads"
    return f"{joined([f'“{name}”' for name in first]) if len(first) == 2 else f'{len(first)} systems'} tie"


def reliability_table(fit: Fit, own: Assumed, found: Sequence[Assumed], metrics: Sequence[Metric]) -> list[Any]:
    """Tabulate what follows from each reliability; nothing where no other one was tried.

    Parameters
    ----------
    fit : of classes of items.
    own : what follows from the one that is assumed.
    found : from others.
    metrics : of the scores.
    """
    import pandas

    if not found:
        return []
    rows = [
        {
            "reliability": f"{one.reliability:g}{' (assumed)' if one is own else ''}",
            f"mean certainty of the top {class_word(fit)}": one.top.value,
            f"items below {SURE}": f"{below(one.top):,}" if one is own else one.unsure,
            **{f"{metrics[0].title} of {name}": value for name, value in one.scores.items()},
        }
        for one in sorted([own, *found], key=lambda one: one.reliability)
    ]  # fmt: skip
    frame = pandas.DataFrame(rows)
    frame.attrs["numbers"] = ("reliability", f"items below {SURE}")
    texts = {str(name): [f"{one:.2f}" for one in frame[name]] for name in frame if frame[name].dtype.kind == "f"}
    scored = "; scores as if predictions were made from these annotations" * bool(own.scores)
    words = f"{_CHOOSE}{_order(own, found, metrics)}"
    return [words, Table(frame, f"What rests on the reliability{scored}.", texts=texts)]


def actions(fit: Fit, found: Sequence[Assumed]) -> list[Action]:
    """Return how to see what rests on it; none where nothing is assumed, or a table has what follows from others."""
    if fit.options.get("reliability") is None or found:
        return []
    command = fit_again(fit, output="other", reliability=_to_try(fit))
    return [Action("See what rests on the assumed reliability:", command)]
