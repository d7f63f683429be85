"""What a report says of coreference: the chains, mentions with two readings, and systems scored against the crowd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from consilience.data import Chains
from consilience.errors import UnsupportedRequest
from consilience.evaluation.adjustment import evaluate
from consilience.evaluation.silver import silver_chains
from consilience.models.truth import CHAINS
from consilience.pages import Section

_METRICS = ("conll", "muc", "b3", "ceafe", "lea")
_MOST_ROWS = 40


def split_systems(systems: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Chains]]:
    """Divide systems into those that predict classes of items, and those that predict chains."""
    chains = {name: system for name, system in systems.items() if system.kind == CHAINS.name}
    return {name: system for name, system in systems.items() if name not in chains}, chains


def ambiguity_sections(fit: Any) -> list[Section]:
    """Return a section on the chains of a fit of mentions, with the mentions that may well have two readings."""
    try:
        chains = silver_chains(fit)
    except UnsupportedRequest:
        return []
    facts = {"mentions": len(chains.entity), "entities": chains.num_entities}
    facts["refer to nothing"] = int((chains.entity < 0).sum())
    words = (
        "Mentions with the most probable link of each followed to chains. Where a link is uncertain, so are all "
        "mentions that hang on it."
    )
    blocks: list[Any] = [words, facts]
    if "ambiguous" in fit.member.table_names:
        readings = fit.table("ambiguous")
        number = readings["item"].nunique()
        words = "Mentions of which two or more readings are each more probably true than not, the most even first:"
        blocks.append(f"{words} {number:,}.")
        if number:
            blocks.append(readings.head(_MOST_ROWS).rename(columns={"item": "mention", "label": "reading"}))
    return [Section("Chains", blocks)]


def chain_score_sections(
    fit: Any, systems: Mapping[str, Chains], metrics: Sequence[str], *, singletons: bool
) -> list[Section]:
    """Return a section on systems that predict chains, scored against draws of the chains of a fit."""
    if not systems:
        return []
    import pandas

    rows = []
    for name, system in systems.items():
        for metric, score in evaluate(fit, system, list(metrics or _METRICS), singletons=singletons).items():
            low, high = score.interval
            rows.append({
                "system": name, "metric": metric, "score": score.value, "95 % from": low, "to": high,
                "against the most likely chains": score.point,
            })  # fmt: skip
    words = (
        f"Scores over draws of the chains, singletons {'included' if singletons else 'excluded'}: the interval is what "
        "the annotations leave open. "
        "Draws take the links of different mentions for independent, so that errors add up along chains less than they "
        "may in truth."
    )
    return [Section("Systems against the crowd's chains", [words, pandas.DataFrame(rows)])]
