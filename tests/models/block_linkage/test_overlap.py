"""Fields that say the same, typing errors that hide links, and an interval that holds of the links that are shown."""

import sys
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.errors import ConsilienceWarning, InputWarning
from consilience.evaluation.scores import Count
from consilience.models.block_linkage.gibbs.truth import DrawnLinks
from consilience.models.block_linkage.near_misses import near_misses
from consilience.models.block_linkage.overlap import overlap_doubt, overlaps
from consilience.models.block_linkage.truth import BlockPartition
from consilience.models.truth.partitions import CountedClusters
from consilience.notes import Level

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")

TOWNS = ("Berlin", "Bonn", "Jena", "Kiel", "Ulm", "Trier")
CODES = ("10115", "53111", "07743", "24103", "89073", "54290")


def people(number=500, copies=0.2, typos=0.0, seed=0):
    """Return a table of people of whom some are there twice, with a column of columns that others tell."""
    random = np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    names = ["".join(random.choice(letters, 9)) for _ in range(4 * number)]
    place = random.integers(6, size=number)
    table = {
        "name": random.choice(names, number), "zip": np.array(CODES)[place], "town": np.array(TOWNS)[place],
        "quarter": [f"{CODES[one]}-{random.integers(5)}" for one in place],
        "born": random.integers(1940, 2000, number).astype(str), "team": random.choice(list("abcdefgh"), number),
    }  # fmt: skip
    again = np.concatenate([np.arange(number), random.choice(number, int(copies * number), replace=False)])
    table = {column: np.asarray(values, object)[again] for column, values in table.items()}
    for row in np.flatnonzero((np.arange(len(again)) >= number) & (random.random(len(again)) < typos)):
        text, cut = table["name"][row], random.integers(1, 8)
        table["name"][row] = text[:cut] + text[cut + 1 :]
    return {"id": [f"r{row}" for row in range(len(again))], **table}, again


def columns(table, *names):
    return {name: table[name] for name in ("id", *names)}


def shuffled(records):
    order = np.random.default_rng(1).permutation(records.num_records)
    return records.replace(value=records.value[:, order])


def told(records):
    names = records.fields
    return {(names[one.told], names[one.by], one.both_ways) for one in overlaps(records)}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (("name", "zip", "town", "born"), {("town", "zip", True)}),
        (("town", "born", "zip", "name"), {("zip", "town", True)}),         # of equals the later one
        (("name", "quarter", "town", "born"), {("town", "quarter", False)}),  # a part of a town tells the town
        (("name", "zip", "born", "team"), set()),
        # A person's name tells the town of each copy, and says nothing of other people.
        (("name", "town", "team"), set()),
        (("zip", "town"), set()),  # nothing else tells people apart
    ],
)
def test_fields_that_another_one_tells(fields, expected):
    table, _ = people()
    records = cs.read_records(columns(table, *fields))
    assert told(records) == expected
    assert told(shuffled(records)) == expected
    doubt = overlap_doubt(records)
    assert bool(doubt) == bool(expected)
    for one, other, _ in expected:
        assert one in doubt
        assert other in doubt


@pytest.mark.parametrize("wrong", [0.0, 0.05, 0.3])
def test_a_town_that_is_often_wrong_says_more_than_its_code(wrong):
    table, _ = people(1000)
    random = np.random.default_rng(2)
    moved = random.random(len(table["town"])) < wrong
    table["town"] = np.where(moved, random.choice(TOWNS, len(moved)), table["town"])
    assert bool(told(cs.read_records(columns(table, "name", "zip", "town", "born")))) == (wrong < 0.2)


def test_what_overlaps_costs_of_a_log_odds():
    (found,) = overlaps(cs.read_records(columns(people(3000)[0], "name", "zip", "town", "born")))
    assert found.excess == pytest.approx(np.log(6), abs=0.05)


def test_by_default_what_is_said_twice_counts_once_and_the_user_has_the_last_word():
    table, _ = people()
    table = columns(table, "name", "zip", "town", "born")
    with pytest.warns(InputWarning, match="town: says the same as zip.*name both in fields"):
        fit = cs.link(table)
    assert fit.data.fields.tolist() == ["name", "zip", "born"]
    assert not fit.truth.doubt
    with pytest.warns(ConsilienceWarning, match="town and zip say the same"):
        named = cs.link(table, fields=["name", "zip", "town", "born"])
    assert "since town and zip count twice" in repr(named.num_entities())
    assert [note.level for note in named.findings() if "town and zip" in note.text] == [Level.warning]
    # By sampling, too, which knows of the records alone.
    drawn = SimpleNamespace(misfit=SimpleNamespace(fails=False), data=named.data)
    assert "count twice" in DrawnLinks.doubt.fget(drawn)


def test_a_column_that_is_to_be_compared_by_similarity_stays():
    table = columns(people()[0], "name", "zip", "town", "born")
    assert cs.link(table, similar={"town": "string"}).data.fields.tolist() == ["name", "zip", "town", "born"]


def test_addresses_of_mail_are_one_word():
    table, _ = people(100)
    table["mail"] = table["name"] + "." + table["team"] + "@mail.de"
    table["title"] = np.array([f"the book of {name}" for name in table["name"]])
    fit = cs.link(columns(table, "mail", "title", "born", "zip"))
    assert fit.attributes["similar"] == "title (text)"


@pytest.mark.parametrize(("typos", "told"), [(0.0, False), (0.5, True)])
def test_typing_errors_that_hide_links_are_told(typos, told, monkeypatch):
    monkeypatch.setattr(sys.modules[BlockPartition.__module__], "interval_of_entities", lambda *_: None)  # takes long
    table, _ = people(1500, typos=typos, seed=3)
    fit = cs.link(columns(table, "name", "zip", "born", "team"), similar={})
    notes = [note for note in fit.findings() if "nearly alike" in note.text]
    assert bool(notes) == told
    assert ("typing errors hide links" in repr(fit.num_entities())) == told
    if told:
        assert "similar={'name': 'string'}" in notes[0].words()
        assert notes[0].level == Level.warning
        assert fit.truth.near_misses is fit.truth.near_misses  # the notes and the count share them
        (miss,) = near_misses(fit.truth.posterior, fit.data)
        assert fit.truth.near_misses == [miss]
        assert 10 < miss.number < 150  # half of 300 copies have an error
        assert abs(len(miss.example[0]) - len(miss.example[1])) == 1


@pytest.mark.parametrize("point", [0.0, 9.0, 50.0, 99.0, 400.0])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("apart", ["", "for a reason"])
def test_an_estimate_outside_its_interval_says_why(point, seed, apart):
    draws = np.random.default_rng(seed).normal(50, 10 * seed, 100)
    count = Count(
        title="", draws=draws, point=point, expected=np.ones(1), label="", unit="", how="", pointed="{}", apart=apart
    )  # fmt: skip
    low, high = count.interval
    assert ("outside the interval" in repr(count)) == (not low <= point <= high)
    assert bool(count.outside) == (not low <= point <= high)
    if count.outside and apart:
        assert apart in repr(count)


@pytest.mark.parametrize(("away", "told"), [(0, False), (-12, False), (-60, True), (60, True)])
def test_the_interval_is_of_the_links_that_are_shown(away, told, monkeypatch):
    """A sampler that explains the records by other links than EM has is told, and does not give the interval."""
    fit = cs.fit("block-linkage", cs.simulate_records(300, seed=5))
    mean = fit.truth.num_clusters_moments()[0]
    number = np.random.default_rng(0).normal(mean + away, 4, 500).round().astype(int)
    sampled = CountedClusters(number, np.ones(1), False, "sampled")
    monkeypatch.setattr(sys.modules[BlockPartition.__module__], "interval_of_entities", lambda *_: sampled)
    truth = BlockPartition(
        fit.truth.posterior, key=jax.random.key(0), num_draws=500, resolved=fit.truth.resolved
    )  # fmt: skip
    count = cs.num_entities(truth)
    assert (f"by Gibbs sampling there are {number.mean():,.0f}" in count.doubt) == told
    assert ("sampled" in count.basis) == (not told)
    if told:
        low, high = count.interval
        assert low - 1 <= mean <= high + 1
