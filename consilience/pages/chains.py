"""What a report says of coreference: the chains, mentions with two readings, and systems scored against the crowd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from consilience.data import Chains
from consilience.errors import UnsupportedRequest
from consilience.evaluation.adjustment import evaluate
from consilience.evaluation.silver import silver_chains
from consilience.models.truth import CHAINS, truth_of
from consilience.pages import Section

_METRICS = ("conll", "muc", "b3", "ceafe", "lea")
_MOST_ROWS, _DOUBTFUL = 40, 0.9
_OF_PARTITIONS = (
    "They are of a system that knows no more than the crowd: one that looked at the text is better, and "
    'responses="annotator" of evaluate counts it as a witness. The interval is what the annotations leave open, and '
    "still too sure: in six simulated crowds on LitBank 90 % intervals of the silver chains' score held the true one "
    "for 81 to 92 % of documents, and for all documents together in 2 of 6; it was 0.3 to 0.4 points below the mean."
)
_OF_LINKS = (
    "Draws take the links of different mentions for independent, which they are not: such scores are off by up to 16 "
    "points in simulation, and intervals are not shown, since they would seldom hold the truth."
)


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
        "Silver chains: the most probable link of each mention, followed. Where a link is uncertain, so are all "
        "mentions that hang on it."
    )
    blocks: list[Any] = [words, facts]
    if chains.together is not None:
        number = int((chains.together < _DOUBTFUL).sum())
        blocks.append(
            "The posterior is of whole chains, and no two links go to one mention. Mentions of entities whose links "
            f"hold with a probability below {_DOUBTFUL:.0%}: {number:,}."
        )
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

    of_chains, rows = hasattr(truth_of(fit), "witnessed"), []
    for name, system in systems.items():
        for metric, score in evaluate(fit, system, list(metrics or _METRICS), singletons=singletons).items():
            rows.append({"system": name, "metric": metric, "score": score.value})
            if of_chains:
                rows[-1] |= dict(zip(("95 % from", "to"), score.interval, strict=True))
            rows[-1]["against the silver chains"] = score.point
    words = f"Scores over draws of the chains, singletons {'included' if singletons else 'excluded'}. "
    words += _OF_PARTITIONS if of_chains else _OF_LINKS
    return [Section("Systems against the crowd's chains", [words, pandas.DataFrame(rows)])]
