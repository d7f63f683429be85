"""What a report says of a reliability that is assumed: what would follow, were annotators trusted less or more."""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

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
from consilience.models.prirn import ANNOTATORS, annotators_of
from consilience.pages import SURE, Action, Table, capital
from consilience.pages.items import below, class_word, effective_draws
from consilience.pages.next_steps import fit_again
from consilience.printing import joined

_CHOOSE = (
    "The reliability says {}, and these data do not show it. Use {} or less if something misleads all annotators "
    "alike, such as the same training or the same poor picture. Use more only if you know that they are nearly always "
    "right. If some items have gold labels, check whether the fit is right as often as its certainties say."
)

_OF_EACH = "the number of annotators of each item"
_FACTOR = 3.0  # by which annotators are trusted less, and more; see _times

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
        if fewest == most:
            return f"{fewest:,}"
        return f"{fewest:,} {'or' if most == fewest + 1 else 'to'} {most:,}"


def assumed_words(fit: Fit, found: Sequence[Assumed] = ()) -> str:
    """Return what all certainties rest on, where the user sets it and no data tell; and what others ``found`` give."""
    if fit.options.get("reliability") is None:
        return ""
    at = f"reliability {trusted(fit):.2g}"
    return f" at {at}{_at_each(found, [f'{one.top.value:.2f}' for one in found])}" if found else f", assuming {at}"


def unsure_words(found: Sequence[Assumed]) -> str:
    """Return how many items are unsure at other reliabilities; nothing where none was tried."""
    return _at_each(found, [one.unsure for one in found])


def _at_each(found: Sequence[Assumed], values: Sequence[str]) -> str:
    """Write what other reliabilities give each, so that it is not taken for an interval."""
    told = "; ".join(f"{value} at {one.reliability:g}" for one, value in zip(found, values, strict=True))
    return f" ({told})" * bool(told)


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


def trusted(fit: Fit) -> float:
    """Return the reliability that is assumed, of items that have their own its mean; 0 where none is."""
    given, data = fit.options.get("reliability", 0.0), cast(Any, fit.data)
    return float(annotators_of(data).mean()) if given == ANNOTATORS else float(given)


def others(fit: Fit) -> list[float]:
    """Return the reliabilities that are tried beside the one that is assumed."""
    return [float(f"{one:.2g}") for one in (trusted(fit) / _FACTOR, _FACTOR * trusted(fit))]


def _to_try(fit: Fit) -> float:
    """Return one that every method takes: of ties the Gibbs sampler takes whole numbers alone."""
    less, more = others(fit)
    return more if fit.method == "gibbs" else less


def finding(fit: Fit, own: Assumed, found: Sequence[Assumed], metrics: Sequence[Metric]) -> str:
    """Say what rests on the reliability; empty where none is assumed. Parameters are those of `reliability_table`."""
    if fit.options.get("reliability") is None:
        return ""
    words = (
        f"The fit assumes a reliability of {_in_full(fit)}; the data do not show it, and no interval allows for "
        "another value."
    )
    if not found:
        return f"{words} All certainties and scores depend on it."
    first, *others = (
        f"at {_times(fit, one)} it ({one.reliability:g}), {one.unsure} item{'s' * (one.unsure != '1')}{{}} (mean "
        f"certainty {one.top.value:.2f})"
        for one in found
    )  # fmt: skip
    first = first.format(f" would have a certainty below {SURE:g}")
    return f"{words} {capital(joined([first, *(one.format('') for one in others)]))}."


def _times(fit: Fit, other: Assumed) -> str:
    """Say by how much annotators are trusted more than assumed, or less."""
    return "three times" if other.reliability > trusted(fit) else "a third of"


def _in_full(fit: Fit) -> str:
    """Return which reliability is assumed, and what that is."""
    if fit.options["reliability"] == ANNOTATORS:
        data: Any = fit.data
        return f"{trusted(fit):.2g}, {_OF_EACH}{' on average' * bool(np.ptp(annotators_of(data)))}"
    return f"{trusted(fit):g} ({_what_it_is(fit)[0]})"


def _what_it_is(fit: Fit) -> tuple[str, str]:
    """Return what the reliability is, and which value has every annotation count as itself: one, or as many as are."""
    (setting,) = (one for one in dataclasses.fields(fit.resolved.settings) if one.name == "reliability")
    meant = re.split("[:,]", setting.metadata["help"])[0]
    return meant, "1" if setting.default == 1 else _OF_EACH


def _order(own: Assumed, found: Sequence[Assumed], metrics: Sequence[Metric]) -> str:
    """Say which system has the highest mean at which reliability, by the digits of the table; empty of one or none."""
    if len(own.scores) < 2:
        return ""
    at: dict[tuple[str, ...], list[str]] = {}
    for one in sorted([own, *found], key=lambda one: one.reliability):
        shown = {name: f"{value:.2f}" for name, value in one.scores.items()}
        first = tuple(name for name, text in shown.items() if text == max(shown.values()))
        at.setdefault(first, []).append(f"{one.reliability:g}")
    what = f" In {metrics[0].title}, if predictions were made from the annotations,"
    if len(at) == 1:
        (first,) = at
        return f"{what} {_who(first)} at all of these reliabilities."
    return f"{what} {'; '.join(f'{_who(first)} at reliability {joined(where)}' for first, where in at.items())}."


def _who(first: Sequence[str]) -> str:
    """Say who leads, or who have the same score."""
    if len(first) == 1:
        return f"“{first[0]}” leads"
    who = joined([f"“{name}”" for name in first]) if len(first) == 2 else f"{len(first)} systems"
    return f"{who} have the same score, to two digits,"


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
            "reliability": f"{one.reliability:.3g}{' (assumed)' if one is own else ''}",
            f"mean certainty of the top {class_word(fit)}": one.top.value,
            f"items below {SURE}": f"{below(one.top):,}" if one is own else one.unsure,
            **{f"{metrics[0].title} of {name}": value for name, value in one.scores.items()},
        }
        for one in sorted([own, *found], key=lambda one: one.reliability)
    ]  # fmt: skip
    frame = pandas.DataFrame(rows)
    frame.attrs["numbers"] = ("reliability", f"items below {SURE}")
    texts = {str(name): [f"{one:.2f}" for one in frame[name]] for name in frame if frame[name].dtype.kind == "f"}
    scored = "; scores assume that predictions were made from the annotations" * bool(own.scores)
    words = (
        f"{_CHOOSE.format(*_what_it_is(fit))} {_examples(found)}.{_order(own, found, metrics)}"
    )
    near = [one for one in found if one.fewest_and_most[0] < one.fewest_and_most[1]]
    if near:
        at = joined([f"{one.reliability:g}" for one in near])
        words += f" At {at} the count is a range: the draws do not show on which side of {SURE} some items are."
    return [words, Table(frame, f"What depends on the reliability{scored}.", texts=texts)]


def _examples(found: Sequence[Assumed]) -> str:
    """Say what the reliabilities are that were tried, and that they are no bounds."""
    if len(found) == 1:
        return "The other one is an example, and no bound"
    return "The other two are examples: a third and three times the assumed one. The right one may lie outside"


def actions(fit: Fit, found: Sequence[Assumed]) -> list[Action]:
    """Return how to see what rests on it; none where nothing is assumed, or a table has what follows from others."""
    if fit.options.get("reliability") is None or found:
        return []
    command = fit_again(fit, output="other", reliability=_to_try(fit))
    return [Action("See what depends on the assumed reliability:", command)]
