"""The tables of `benchmarks linkage` that set methods and likelihoods beside each other: `smered` and `fields`.

Broderick and Steorts (2014) promise a comparison of their coordinate ascent with SMERED and make none. Here all models
of records link the same lists, each in a fresh process.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.linkage_process import run_process
from benchmarks.recording import Recording

RLDATA_FIELDS = ("fname_c1", "lname_c1", "by", "bm", "bd")
"""All but the second parts of names, which are mostly empty."""

_GIBBS = {"draws": 700, "warmup": 200, "chains": 2}
_METHODS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("CAVI, dense, A = .3", "dirichlet-entity", {"support": "dense", "start": "records", "concentration": 0.3}),
    ("CAVI, anchored, A = .25", "dirichlet-entity", {"support": "anchored", "start": "records", "concentration": 0.25}),
    ("EM", "block-linkage", {"method": "em"}),
    ("EM, error classes", "block-linkage", {"method": "em", "likelihood": "error-classes"}),
    ("Gibbs", "block-linkage", {"method": "gibbs", **_GIBBS}),
    ("Gibbs, error classes", "block-linkage", {"method": "gibbs", "likelihood": "error-classes", **_GIBBS}),
    ("Gibbs, labels", "hit-miss", {"prior": "labels", **_GIBBS}),
    ("Gibbs, entities", "hit-miss", {"prior": "entities", **_GIBBS}),
)
"""How each is called, the model, and the options of the fit."""

_MOST_DENSE = 2000  # records: an entity for each of them takes memory and time in the square of their number

_NAMES, _DATE = RLDATA_FIELDS[:2], RLDATA_FIELDS[2:]
_FIELDS = {
    "all by equality": {}, "names as texts": dict.fromkeys(_NAMES, "string"),
    "names as texts, parts of the date as numbers": {
        **dict.fromkeys(_NAMES, "string"), **dict.fromkeys(_DATE, "number"),
    },
    "all as texts": dict.fromkeys(RLDATA_FIELDS, "string"),
}  # fmt: skip


def compare_models(record: Recording, lists: Mapping[str, Path]) -> None:
    """Record what each model finds in lists of records, and what it takes.

    Parameters
    ----------
    lists : names and CSV files, with the columns ``id``, fields and ``entity``.
    """
    record.say(
        "Every row is a fresh process that links a list: RLdata500 with five fields, and simulated records of the "
        "model hit-miss with six. `dirichlet-entity` is the model of Broderick and Steorts (2014), dense as they state "
        "it and anchored as it is fast, each at a concentration A near its best on RLdata500; `hit-miss` is SMERED's "
        "model with a sampler that is exact, `labels` its prior, under which N records make 0.63 N entities "
        "whatever they show; `block-linkage` sums more out. F1 is of pairs in the estimated partition, which has 'MAP' "
        "entities; mean and 95 % interval are of the draws of Gibbs samplers, and with EM of the doubt about links "
        f"alone. Gibbs: {_GIBBS['chains']} chains of {_GIBBS['draws']} draws after {_GIBBS['warmup']} sweeps. CPU "
        "seconds are of the fit, compilation included; ESS is the effective number of draws of the number of entities. "
        "SMERED's paper reports 3.5 hours for 10⁶ iterations on 60,000 records, on a machine of its time: its program "
        f"was not run here. Dense coordinate ascent is left out above {_MOST_DENSE:,} records."
    )
    rows = []
    for data, path in lists.items():
        with path.open(encoding="utf-8", newline="") as stream:
            number = sum(1 for _ in csv.reader(stream)) - 1
        for name, model, options in _METHODS:
            if options.get("support") != "dense" or number <= _MOST_DENSE:
                found = run_process("method", path, model, json.dumps(options))
                del found["log evidence"]
                rows.append({"data": data, "model": model, "method": name, **found})
    record.table("smered", rows)


def compare_fields(record: Recording, path: Path) -> None:
    """Record what `block-linkage` by EM finds in RLdata500 with fields that are compared by similarity.

    Parameters
    ----------
    path : CSV file with the columns ``id``, five fields and ``entity``.
    """
    record.say(
        "`block-linkage` by EM on RLdata500, 450 entities. Log evidence compares the rows: the higher, the better they "
        "describe the records."
    )
    rows = []
    for name, similar in _FIELDS.items():
        row = run_process("method", path, "block-linkage", json.dumps({"method": "em", "similar": similar}))
        columns = ("P", "R", "F1", "MAP", "mean", "true", "log evidence", "CPU s")
        rows.append({"fields": name, **{column: row[column] for column in columns}})
    record.table("fields", rows)
