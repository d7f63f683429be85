"""Consilience: truth that nobody observed directly, inferred with its uncertainty, and evaluation against that.

>>> import consilience as cs
>>> annotations = cs.load("dawid-skene-1979")
>>> fit = cs.fit("dirichlet", annotations)
>>> print(cs.certainty(fit).value > 0.5)
True

Names are looked up when they are first used: importing this package imports neither JAX nor pandas.
"""

from __future__ import annotations

import importlib
from typing import Any

from consilience._version import __version__

_HOME = {
    "consilience.data": (
        "Annotations", "Chains", "ClassMap", "Mentions", "Partition", "Predictions", "Rankings", "Ratings", "Records",
        "Verdicts", "load", "read_annotations", "read_class_map", "read_conll", "read_constraints", "read_mas_xml",
        "read_mentions", "read_partition", "read_predictions", "read_rankings", "read_ratings", "read_records",
        "read_verdicts", "write_conll", "write_mentions", "write_records",
    ),
    "consilience.data.samples": ("example",),
    "consilience.data.coding": ("code",),
    "consilience.data.coded": ("shards",),
    "consilience.inference.compilation": ("keep_compiled",),
    "consilience.inference.fitting": ("Fit", "fit"),
    "consilience.inference.loading": ("load_fit",),
    "consilience.evaluation.adjustment": ("adjusted", "evaluate"),
    "consilience.evaluation.agreement": ("Agreement", "PosteriorAgreement", "agreement"),
    "consilience.evaluation.certainties": ("certainty", "expected_risk"),
    "consilience.evaluation.comparison": ("compare",),
    "consilience.evaluation.leaderboard": ("Comparison",),
    "consilience.evaluation.clustering.baselines": ("baseline",),
    "consilience.evaluation.conformal_sets": ("Conformal", "conformal"),
    "consilience.evaluation.coreference_scores": ("CoreferenceScores", "score_coreference"),
    "consilience.evaluation.classes": ("Metric",),
    "consilience.evaluation.partition_scores": (
        "PartitionScores", "entity_probability", "expected_scores", "num_entities", "score_partition",
    ),
    "consilience.evaluation.another_label": ("next_labels",),
    "consilience.evaluation.scores": ("Score", "correlation"),
    "consilience.evaluation.silver": ("SilverChains", "silver_chains"),
    "consilience.models.mpa.scenarios": ("simulate_mentions",),
    "consilience.models.block_linkage": ("engines",),
    "consilience.models.block_linkage.simulation": ("simulate_records",),
    "consilience.evaluation.leave_one_out": ("annotator_agreement",),
    "consilience.evaluation.rank_overlap": ("annotator_overlap",),
    "consilience.linking": ("link",),
    "consilience.sweeping": ("sweep",),
    "consilience.checking": ("Check", "check"),
    "consilience.reporting": ("report",),
    "consilience.estimators": (
        "DawidSkene", "Dirichlet", "GLAD", "Linker", "MACE", "MPA", "MajorityVote", "OneCoin", "PlackettLuce",
    ),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = ["__version__", *_MODULE_OF]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'consilience' has no attribute '{name}'")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
