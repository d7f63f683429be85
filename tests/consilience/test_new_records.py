"""New records beside a fit: as a fit of all under the same hyperparameters, read and cleaned as the fit was."""

import numpy as np
import pytest

import consilience as cs
from consilience.errors import InputError, InputWarning, UnsupportedRequest
from consilience.models.block_linkage.new_records import _extended_shares, linked_beside
from consilience.models.posterior import Estimate

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")

SHARED = ("value_share", "distortion", "size_share", "intensity", "class_share", "source_share")


def some_of(records, number):
    """Return the first records, with the values of all."""
    return records.replace(
        value=records.value[:, :number], source=records.source[:number], records=records.records[:number],
        num_records=number, entity=records.entity[:number],
    )  # fmt: skip


def with_hyperparameters(fit, other):
    """Return the posterior of a fit with the hyperparameters of another one."""
    take = {name: getattr(other.posterior, name) for name in SHARED}
    sites = {name: take.get(name, getattr(fit.posterior, name)) for name in fit.posterior.sites}
    hidden = {name: take.get(name, values) for name, values in fit.posterior.hidden.items()}
    return Estimate(sites, hidden)


@pytest.mark.parametrize("likelihood", ["hit-miss", "error-classes"])
@pytest.mark.parametrize("restriction", ["none", "across"])
def test_new_records_are_linked_as_in_a_fit_of_all(likelihood, restriction):
    """With the same hyperparameters, parts that hold a new record have the same partitions; nothing is missing.

    Of missing values a join finds nearly all candidates, and other ones where it looks a little further.
    """
    records = cs.simulate_records(
        400, num_values=(60, 80, 40, 12), size_share=(0.6, 0.3, 0.1), num_files=2, seed=2
    )
    order = np.random.default_rng(0).permutation(records.num_records)
    records = records.replace(
        value=records.value[:, order], source=records.source[order], entity=records.entity[order],
        records=records.records[order],
    )  # fmt: skip
    choice = {"likelihood": likelihood, "restriction": restriction, "draws": 5}
    whole = cs.fit("block-linkage", records, **choice)
    number = records.num_records - 40
    before = cs.fit("block-linkage", some_of(records, number), **choice)
    partition, touched = linked_beside(with_hyperparameters(before, whole), before.resolved, records)
    every, found = whole.truth.pairs(), partition.pairs()
    inside = np.isin(every.first, touched) & np.isin(every.second, touched)
    np.testing.assert_array_equal(touched[found.first], every.first[inside])
    np.testing.assert_array_equal(touched[found.second], every.second[inside])
    np.testing.assert_allclose(found.probability, every.probability[inside], atol=1e-6)
    assert len(found.first) > 20
    assert (np.isin(every.first, touched) == np.isin(every.second, touched)).all(), "no part is divided"
    estimate = whole.truth.estimate()
    np.testing.assert_array_equal(touched[partition.estimate()], estimate[touched])


def test_new_values_are_worth_half_a_record():
    fitted = cs.read_records({"id": list("abc"), "name": ["Ann", "Bob", "Ann"], "town": ["Ulm", "", "Bonn"]})
    share = _extended_shares(fitted, np.array([0.6, 0.4, 0.5, 0.5]), np.array([0, 4, 7]))
    np.testing.assert_allclose(share, [0.6, 0.4, 1 / 6, 1 / 6, 0.5, 0.5, 1 / 4])


def people(number=40):
    """Return a table in which some are there twice, in other writing."""
    first = [f"{'BCDFG'[k % 5]}{'aeiou'[k // 5 % 5]}{'lmnrs'[k // 25]}o" for k in range(number)]
    born = [f"{1 + k % 28:02d}/{1 + k % 12:02d}/{1940 + k}" for k in range(number)]
    town = [("Ulm", "Bonn", "Kiel", "Jena", "Mölln")[k % 5] for k in range(number)]
    again = range(0, number, 3)
    return {
        "person": [f"p{k}" for k in range(number)] + [f"q{k}" for k in again],
        "first name": first + [first[k].upper() for k in again],
        "born": born + [born[k] for k in again], "town": town + [town[k] for k in again],
        "street": [f"street {k % 11}" for k in range(number)] + [f"street {k % 11}" for k in again],
    }  # fmt: skip


@pytest.fixture(scope="module")
def linked():
    return cs.link({"old": people()}, id="person", fields={
        "first name": "string", "born": "date", "town": "category", "street": "string"}, draws=10)  # fmt: skip


def test_new_records_are_read_and_cleaned_as_those_of_the_fit(linked):
    """Names of columns, case, accents and dates in another writing; the day first, as the fit has it."""
    old = people()
    new = {
        "person": ["n1", "n2"], "First_Name": [old["first name"][4].upper(), "Zzz"],
        "born": ["5.5.1944", "01/02/1999"], "town": ["MOLLN", "Ulm"], "street": ["street 4", "n/a"],
    }  # fmt: skip
    table = linked.link_new(new)
    assert table[["record", "entity", "merged"]].values.tolist() == [["n1", "p4", "p4"], ["n2", "n2", ""]]
    assert table["probability"][0] > 0.9
    assert table["probability"][1] > 0.99


def test_a_record_that_joins_two_entities():
    """The fit keeps two persons apart, whom a third record makes one."""
    own = {
        "name": ["Ann", "Ann"], "dog": ["Rex", "Rex"], "town": ["Ulm", "Bonn"], "year": ["1950", "1951"],
        "job": ["smith", "baker"],
    }  # fmt: skip
    table = {field: [f"{field} {k % 14}" for k in range(42)] + values for field, values in own.items()}
    fit = cs.link(table | {"id": [f"r{k}" for k in range(42)] + ["a", "b"]}, draws=5)
    entities = fit.entities().set_index("record")["entity"]
    assert (entities["a"], entities["b"]) == ("a", "b")
    new = {"id": ["x", "y"], "name": ["Ann", "name 3"], "dog": ["Rex", "dog 3"], "town": ["Ulm", "town 3"],
           "year": ["1951", "year 3"], "job": ["baker", ""]}  # fmt: skip
    found = fit.link_new(new)
    assert found[["record", "entity", "merged"]].values.tolist() == [["x", "a", "a + b"], ["y", "r3", "r3"]]


def test_a_loaded_fit_links_the_same(linked, tmp_path):
    old = people()
    new = {name: values[:3] for name, values in old.items()} | {"person": ["n1", "n2", "n3"]}
    linked.save(tmp_path / "run")
    table = linked.link_new(new)
    assert table.equals(cs.load_fit(tmp_path / "run").link_new(new))
    assert table["entity"].tolist() == ["p0", "p1", "p2"]


def test_names_that_the_fit_has(linked):
    new = {name: values[:2] for name, values in people().items()}
    assert linked.link_new({"left": new})["record"].tolist() == ["left:p0", "left:p1"]
    assert linked.link_new([new])["record"].tolist() == ["new 0:p0", "new 0:p1"]
    fields = {"born": new["born"], "town": new["town"]}
    assert linked.link_new(fields | {"id": ["a", "b"]}, id="id")["record"].tolist() == ["a", "b"]
    with pytest.raises(InputError, match="the new records have none of the fields of the fit: first name, born"):
        linked.link_new({"person": ["a"], "nothing": ["b"]})


def test_similar_fields_stay_similar():
    table = people()
    fit = cs.link(table, id="person", similar={"first name": "string"}, draws=5)
    name = table["first name"][7]
    new = {field: [values[7]] for field, values in table.items()} | {"person": ["n"], "first name": [f"{name}x"]}
    found = fit.link_new(new)
    plain = cs.link(table, id="person", draws=5).link_new(new)
    assert found["entity"][0] == "p7"
    assert found["probability"][0] > plain["probability"][0] or plain["entity"][0] != "p7"


def test_labels_of_the_fit_hold(linked):
    table = people()
    labels = {"record_a": ["p1"], "record_b": ["p2"], "answer": ["same"]}
    fit = cs.link(table, id="person", labels=labels, draws=5)
    new = {field: [values[2]] for field, values in table.items()} | {"person": ["n"]}
    found = fit.link_new(new)
    assert found["entity"][0] == "p1"
    assert found["merged"][0] == "p1"


def test_what_is_refused_and_warned_of(linked):
    table = people()
    many = {field: values[:8] for field, values in table.items()} | {"person": [f"n{k}" for k in range(8)]}
    with pytest.warns(InputWarning, match="8 new records beside 54: what was learned .* may no longer hold"):
        linked.link_new(many)
    one = {field: values[:1] for field, values in table.items()} | {"person": ["n"]}
    pairs = {"record_a": ["p0"], "record_b": ["q0"]}
    with pytest.raises(UnsupportedRequest, match="say nothing of new records; link all records again"):
        cs.link(table, id="person", pairs=pairs, draws=5).link_new(one)
    own = cs.link(table, id="person", clean={"town": str.lower}, draws=5)
    with pytest.raises(UnsupportedRequest, match="the fit cleaned town by functions of yours"):
        own.link_new(one)
    assert own.link_new(one, clean={"town": str.lower})["entity"].tolist() == ["p0"]
