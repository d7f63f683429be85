"""What a report of views says of how reliable each expert is."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from consilience import views_figures
from consilience.errors import NotConjugate
from consilience.models.intervals import ends
from consilience.pages import More, Section, Table
from consilience.pages.crowd import shown_annotators
from consilience.printing import counted, numbered
from consilience.rounding import written

MOST_EXPERTS = 40
"""Experts that a figure has."""

_MOST_MUTE = 2  # Experts that a finding names.

_WEIGHT = (
    "The weight says how much an expert's answers count. At 0 they tell nothing, and below 0 they are taken for the "
    "opposite of what they say."
)
_FORMULA = (
    "A “together” multiplies the odds that a pair is together by α / (1 − β), an “apart” divides them by β / (1 − α), "
    "with the sensitivity α and the specificity β. The weight is the natural logarithm of the product of both factors, "
    "on average over what α and β may be."
)
_TOO_NARROW = (
    "These are intervals of coordinate ascent, which are too narrow: on data drawn from the model those of 90 % held "
    "65 %, and pairs of experts who share a view with a probability of 0.98 did so in 62 of 100. Method gibbs has "
    "wider ones."
)


def reliability_section(fit: Any, frame: Any) -> Section:
    """Return the section on the experts of a table, in its order."""
    import pandas

    number = len(frame)
    frame = frame.assign(**_prior_intervals(fit, frame))
    words = (
        "Sensitivity is how probably an expert says “together” of items that are together in the expert's view, "
        "specificity how probably “apart” of items that are apart. Intervals hold 95 % of the "
        f"posterior{_prior_words(frame)}."
    )
    spammers = frame["expert"][frame["spammer"]].tolist()
    blocks: list[Any] = [words, _WEIGHT]
    if fit.method == "cavi":
        blocks.insert(1, _TOO_NARROW)
    if spammers:
        named = ", ".join(map(str, spammers[:10])) + (", …" if len(spammers) > 10 else "")
        blocks.append(
            f"Of {counted(len(spammers), 'experts')} sensitivity and specificity more probably than not add up to less "
            f"than 1.1, so that they tell next to nothing, or the opposite of what they say: {named}."
        )
    mute = maybe_mute(frame)
    if mute:
        blocks.append(f"{mute} may tell nothing: the interval of the weight includes 0.")
    if number > MOST_EXPERTS:
        frame = shown_annotators(frame, "weight", ("weight_lower", "weight_upper"), "answers", MOST_EXPERTS)
        frame = frame.iloc[np.lexsort([-frame["weight"], frame["view"]])]
        blocks.append(
            f"Shown are {len(frame)} of {number:,} experts: those who surely weigh most, those who surely weigh least, "
            "and the busiest. All: “consilience table RUN experts”."
        )
    blocks.append(views_figures.reliability(frame))
    columns, texts = {"expert": frame["expert"], "view": numbered(frame["view"])}, {}
    for site in ("sensitivity", "specificity", "weight"):
        spread = zip(frame[f"{site}_lower"], frame[f"{site}_upper"], strict=True)
        digits = 1 if site == "weight" else 2
        columns[site] = frame[site]
        texts[site] = [written(value, f".{digits}f") for value in frame[site]]
        columns[f"95 % of {site}"] = [" to ".join(written(end, f".{digits}f") for end in ends) for ends in spread]
    table = pandas.DataFrame({name: list(values) for name, values in (columns | {"answers": frame["answers"]}).items()})
    table.attrs["numbers"] = [name for name in columns if name.startswith("95 %")]
    tell = "tells" if len(spammers) == 1 else "tell"
    gist = f"{counted(len(spammers), 'experts')} probably {tell} next to nothing" if spammers else ""
    if mute and not gist:
        gist = f"{mute} may tell nothing"
    if not gist and number > 1 and np.isfinite(frame["weight"]).all():
        most, least = (frame.loc[place] for place in (frame["weight"].idxmax(), frame["weight"].idxmin()))
        gist = f"highest weight: {most['expert']}, {_weight_of(most)}; lowest: {least['expert']}, {_weight_of(least)}"
    blocks += [Table(table, "Experts by view.", of="experts", texts=texts), More("What the weight is", [_FORMULA])]
    return Section("How reliable each expert is", blocks, gist)


def maybe_mute(frame: Any) -> str:
    """Name the answers of the experts whose weight may be 0, by its interval; empty where it is of nobody."""
    names = list(map(str, frame["expert"][(frame["weight_lower"] <= 0) & (frame["weight_upper"] >= 0)]))
    if len(names) > _MOST_MUTE:
        return f"The answers of {len(names):,} experts ({', '.join(names[:_MOST_MUTE])}, …)"
    return f"The answers of {' and '.join(names)}" if names else ""


def _weight_of(row: Any) -> str:
    """Write the weight of an expert with its interval."""
    weight, low, high = (written(row[name], ".1f") for name in ("weight", "weight_lower", "weight_upper"))
    return f"{weight} [{low}, {high}]"


def _prior_words(frame: Any) -> str:
    """Say what is drawn of the prior."""
    if "sensitivity_prior_lower" in frame:
        return (
            "; the grey bar behind them is the prior, what was believed of any expert before any answer. Where the two "
            "look alike, the answers have told little of the expert"
        )
    if np.isfinite(frame["sensitivity_prior"].to_numpy(float)).any():
        return "; a tick is the mean of the prior, before any answer"
    return ""


def _prior_intervals(fit: Any, frame: Any) -> dict[str, np.ndarray]:
    """Return the ends of the prior's intervals of the accuracies, where the prior is of known Beta distributions."""
    found: dict[str, np.ndarray] = {}
    kind = fit.options.get("experts", "two-coin")
    if fit.priors is None or kind == "spammer":
        return found
    for site in ("sensitivity", "specificity"):
        try:
            parameters = fit.resolved.concentration("sensitivity" if kind == "symmetric" else site)
        except NotConjugate:
            return {}
        for end, level in zip(("lower", "upper"), ends(), strict=True):
            found[f"{site}_prior_{end}"] = special.betaincinv(*parameters[frame.index].T, level)
    return found
