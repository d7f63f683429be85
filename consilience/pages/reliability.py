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
    "The weight is how much an expert's answers count. At 0 they carry no information, and below 0 they count as the "
    "opposite."
)
_FORMULA = (
    "A “together” multiplies the odds that a pair is together by α / (1 − β), an “apart” divides them by β / (1 − α), "
    "with sensitivity α and specificity β. The weight is the natural logarithm of the product of both factors, "
    "averaged over the posterior of α and β."
)
_TOO_NARROW = (
    "Intervals of coordinate ascent are too narrow: on data simulated from the model, 90 % intervals contained 65 % of "
    "the values, and pairs of experts with a probability of 0.98 of sharing a view did so in 62 of 100 cases. Method "
    "gibbs has wider intervals."
)


def reliability_section(fit: Any, frame: Any) -> Section:
    """Return the section on the experts of a table, in its order."""
    import pandas

    number = len(frame)
    frame = frame.assign(**_prior_intervals(fit, frame))
    words = (
        "Sensitivity is how probably an expert says “together” about items that are together in the expert's view; "
        "specificity is how probably the expert says “apart” about items that are apart. Intervals contain 95 % of the "
        f"posterior{_prior_words(frame)}."
    )
    spammers = frame["expert"][frame["spammer"]].tolist()
    blocks: list[Any] = [words, _WEIGHT]
    if fit.method == "cavi":
        blocks.insert(1, _TOO_NARROW)
    if spammers:
        named = ", ".join(map(str, spammers[:10])) + (", …" if len(spammers) > 10 else "")
        blocks.append(
            f"{counted(len(spammers), 'experts')} probably {'tells' if len(spammers) == 1 else 'tell'} almost nothing, "
            f"or the opposite (sensitivity and specificity add up to less than 1.1): {named}."
        )
    mute = maybe_mute(frame)
    if mute:
        blocks.append(f"{mute} may carry no information: the interval of the weight includes 0.")
    if number > MOST_EXPERTS:
        frame = shown_annotators(frame, "weight", ("weight_lower", "weight_upper"), "answers", MOST_EXPERTS)
        frame = frame.iloc[np.lexsort([-frame["weight"], frame["view"]])]
        blocks.append(
            f"{len(frame)} of {number:,} experts are shown: those with clearly the highest weights, those with clearly "
            "the lowest, and the busiest. All: “consilience table RUN experts”."
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
    gist = f"{counted(len(spammers), 'experts')} probably {tell} almost nothing" if spammers else ""
    if mute and not gist:
        gist = f"{mute} may carry no information"
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
            "; the grey bar behind each is the prior, which holds before any answer. If the two look alike, the "
            "answers told little about the expert"
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
