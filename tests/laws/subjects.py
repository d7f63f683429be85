"""Whom the battery tries: members with their rows, how they are fitted and asked, and data at the edges.

A subject of either kind has `fit`, `draws`, `degenerate` and `check`: laws that need no more are those of every member.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpyro import handlers

import consilience as cs
from consilience import models
from consilience.data import Annotations, Rankings, Records
from consilience.errors import UnsupportedRequest
from consilience.evaluation.partition_scores import num_entities
from consilience.models.truth import Ranked
from consilience.models.truth.labels import LabelTruth
from consilience.models.truth.truth import Mass
from tests.laws.cases import CASES, RECORD_CASES, Case, RecordCase
from tests.loading import load

# Name in CASES -> file with a MODEL, relative to the repository, of members that are not in the registry.
OTHERS: dict[str, str] = {"yes-no": "docs/developer/skeleton_member.py"}

RECORDS = [name for name in models.names() if models.place(name).takes == ("Records",)]
# Of constraints the truth is several partitions at once: `test_symmetries` and their member's own tests hold its laws.
ITEMS = [name for name in models.names() if models.place(name).takes[0] not in ("Records", "Constraints")] + [*OTHERS]


def member_of(name):
    """Return a registered member, or one in a file that belongs to no package."""
    return models.member(name) if name not in OTHERS else load(OTHERS[name]).MODEL


def subject_of(name):
    """Return a member and its row."""
    kind, rows = (RecordSubject, RECORD_CASES) if name in RECORDS else (ItemSubject, CASES)
    if name not in rows:
        pytest.fail(f"'{name}' has no row in tests/laws/cases.py")
    return kind(member_of(name), rows[name])


def latent(model, key, *given, **options):
    """Return a draw of the latent sites of a model."""
    trace = handlers.trace(handlers.seed(model, key)).get_trace(*given, **options)
    sites = (site for site in trace.values() if site["type"] == "sample" and not site["is_observed"])
    return {site["name"]: site["value"] for site in sites}


# ---- members of items and their classes ----


DEGENERATE = {
    "one item": {"item": [0, 0], "annotator": [0, 1], "value": [0, 1], "block": [0, 0]},
    "one annotation": {"item": [0], "annotator": [0], "value": [1], "block": [0]},
    "one class": {"item": [0, 0, 1], "annotator": [0, 1, 0], "value": [0, 0, 0], "block": [0, 0, 0]},
    "an annotator who says one thing": {
        "item": [0, 1, 2, 0], "annotator": [0, 0, 0, 1], "value": [1, 1, 1, 0], "block": [0, 0, 0, 0],
    },
    "an item without annotations": {"item": [0, 2], "annotator": [0, 0], "value": [1, 0], "block": [0, 0]},
    "an unseen class": {"item": [0, 0, 1], "annotator": [0, 1, 0], "value": [0, 2, 2], "block": [0, 0, 0]},
    "all tied": {"item": [0, 0, 1, 1], "annotator": [0, 1, 0, 1], "value": [0, 1, 1, 0], "block": [0, 0, 0, 0]},
    "duplicates": {"item": [0, 0, 0], "annotator": [0, 0, 0], "value": [1, 1, 1], "block": [0, 0, 0]},
    "a million classes": {"item": [0, 1, 1], "annotator": [0, 0, 1], "value": [999_999, 3, 4], "block": [0, 0, 0]},
}  # fmt: skip


def top_of_draws(fitted):
    return np.concatenate([block.real for block in fitted.truth.blocks(Ranked(1))])


def outputs(fitted):
    """Return the numbers of all tables by item and the exact certainty, in the order of the items' ids."""
    numbers = []
    for name in fitted.member.table_names:
        if "item" not in {column.name for column in fitted.member.table(name).columns}:
            continue
        table = fitted.table(name).sort_values("item", kind="stable").drop(columns=["item", "label"], errors="ignore")
        numbers.append(table.select_dtypes("number").to_numpy(float).ravel())
    try:
        numbers.append(cs.certainty(fitted, exact=True).table.sort_values("item")["certainty"].to_numpy())
    except UnsupportedRequest:
        pass
    return np.concatenate(numbers)


class ItemSubject(NamedTuple):
    """A member whose truth is one of classes, and its row."""

    member: Any
    case: Case
    tables = {"labels"}
    draws = staticmethod(top_of_draws)

    def make(self, rows=None, **names):
        return self.case.make(self.member.takes[0], rows, **names)

    def fit(self, data=None, **options):
        data = self.make() if data is None else data
        return cs.fit(self.member, data, **{"draws": 200, **self.case.options, **options})

    def fit_of_doubtful_data(self, seed):
        """Return a fit whose draws differ with the seed."""
        return self.fit(seed=seed)

    def degenerate(self, name):
        rows = DEGENERATE[name]
        classes = 10**6 if name == "a million classes" else 1 + max(rows["value"]) + (name == "an unseen class")
        key = {Annotations: "num_labels", Rankings: "num_classes"}.get(self.member.takes[0])
        if name == "duplicates" and self.member.takes[0] is Rankings:
            rows = {column: values[:1] for column, values in rows.items()}  # a report names a class once
        return self.make(rows, num_items=1 + max(rows["item"]), num_annotators=2, **({key: classes} if key else {}))

    def check(self, fitted):
        assert np.isfinite(outputs(fitted)).all()
        labels, truth = fitted.labels(), fitted.truth
        assert labels["probability"].between(0, 1 + 1e-6).all()
        assert labels["certainty"].between(1e-7, 1 + 1e-9).all()
        for block in truth.blocks(Mass(np.arange(truth.num_classes) % 2, 2)):
            np.testing.assert_allclose(block.real.sum(-1), 1, atol=1e-6)
        if truth.num_classes == 1:
            np.testing.assert_allclose(labels["certainty"], 1, rtol=1e-12)
        depth = 1 if isinstance(truth, LabelTruth) else min(2, truth.num_classes)
        ranking = np.concatenate([block.real for block in truth.blocks(Ranked(depth))])
        assert np.all((ranking >= 0) & (ranking < truth.num_classes))
        assert np.all(np.diff(np.sort(ranking, axis=-1)) > 0)


# ---- members of records ----

PEOPLE = {
    "id": [f"r{number}" for number in range(10)],
    "name": ["vogt", "vogt", "born", "born", "lang", "noll", "noll", "witt", "kern", "hahn"],
    "year": ["1951", "1951", "1960", "1960", "1947", "1972", "1972", "1980", "1981", "1982"],
    "city": ["bonn", "bonn", "jena", "jena", "bonn", "kiel", "", "trier", "ulm", "jena"],
    "street": ["elm", "elm", "oak", "oak", "fir", "yew", "yew", "lime", "box", "bay"],
}


def read(columns=None, **settings):
    return cs.read_records(columns or PEOPLE, **settings)


def huge_field():
    """Three records whose only field may have a million values."""
    return Records(
        value=np.array([[999_999, 3, 999_999]], np.int32), source=np.zeros(3, np.int32),
        first_value=np.array([0, 1_000_000], np.int32), num_records=3, num_fields=1, num_sources=1,
        num_values=1_000_000, records=np.array(["a", "b", "c"], object),
    )  # fmt: skip


DEGENERATE_RECORDS = {
    "one record": lambda: read({name: values[:1] for name, values in PEOPLE.items()}),
    "two records": lambda: read({name: values[:2] for name, values in PEOPLE.items()}),
    "all identical": lambda: read({"id": ["a", "b", "c", "d"], "name": ["x"] * 4, "year": ["1"] * 4}),
    "all different": lambda: read({"id": ["a", "b", "c"], "name": ["x", "y", "z"]}),
    "nothing in a field": lambda: read({**PEOPLE, "mail": [""] * 10}),
    "a record without values": lambda: read({"id": ["a", "b", "c"], "name": ["x", "x", ""], "year": ["1", "1", ""]}),
    "two files": lambda: read([{name: values[start::2] for name, values in PEOPLE.items()} for start in (0, 1)]),
    "a file each": lambda: read([{"id": ["a"], "name": ["x"]}, {"id": ["b"], "name": ["x"]}]),
    "a million values": huge_field,
}


class RecordSubject(NamedTuple):
    """A member whose truth is a partition of records, and its row."""

    member: Any
    case: RecordCase
    tables = {"entities", "pairs", "review"}

    def draws(self, fitted):
        return fitted.truth.clusters()

    def make(self):
        return read()

    def fit(self, data=None, **options):
        data = self.make() if data is None else data
        return cs.fit(self.member, data, **{"draws": 100, **self.case.options, **options})

    def fit_of_doubtful_data(self, seed):
        """Return a fit whose draws differ with the seed."""
        return self.fit(read({**PEOPLE, "street": PEOPLE["street"][::-1]}), seed=seed, draws=1000)

    def degenerate(self, name):
        return DEGENERATE_RECORDS[name]()

    def check(self, fitted):
        num_records = fitted.data.num_records
        entities, pairs = fitted.entities(), fitted.pairs()
        assert len(entities) == num_records
        assert entities["certainty"].between(0, 1 + 1e-9).all()
        assert pairs["probability"].between(0, 1 + 1e-9).all()
        count = num_entities(fitted)
        assert 1 <= count.value <= num_records + 1e-6
        assert 1 <= count.interval[0] <= count.interval[1] <= num_records  # the mean of few draws may be outside
        cluster = fitted.truth.clusters()
        assert cluster.shape == (100, num_records)
        assert (np.take_along_axis(cluster, cluster, axis=1) == cluster).all()  # clusters have their first one's name
        assert (cluster <= np.arange(num_records)).all()


AT_THE_EDGE = [(name, what) for name in ITEMS for what in DEGENERATE]
AT_THE_EDGE += [(name, what) for name in RECORDS for what in DEGENERATE_RECORDS]
"""Each member with the name of each of its degenerate data sets."""
