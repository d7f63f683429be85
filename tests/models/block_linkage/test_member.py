"""Block-linkage as a member of the zoo: through fit, its tables by hand, saved and loaded, and by NUTS."""

import copy
import dataclasses

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.errors import UnsupportedRequest
from consilience.inference.stored_posterior import posterior_arrays
from consilience.models.block_linkage import entity_interval, simulate
from consilience.models.block_linkage.enumeration import pairs_within
from consilience.models.block_linkage.model import enumerate_linkable, linkable
from consilience.models.block_linkage.truth import drawn_partitions

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")


@pytest.fixture(scope="module")
def records():
    return simulate(3, num_records=300, num_values=(60, 80, 40, 12), size_share=(0.8, 0.15, 0.05), num_sources=2)[0]


@pytest.fixture(scope="module")
def fitted(records):
    return cs.fit("block-linkage", records, draws=400)


@pytest.fixture
def simulated(request):
    """Return the function of the conftest that draws records: its name is that of the member's own, imported here."""
    return request.getfixturevalue("simulate")


def test_tables_agree_with_each_other(fitted, records):
    entities, pairs = fitted.entities(), fitted.pairs()
    assert entities["record"].tolist() == records.records.tolist()
    assert pairs["probability"].is_monotonic_decreasing
    together = entities.groupby("entity").size()
    assert len(together) == int(fitted.num_entities().point)
    scores = cs.score_partition(fitted, records)
    assert scores["pairwise-f1"] > 0.7


def test_matching_sets_name_the_records(fitted):
    table, found = fitted.matching_sets().set_index("record"), fitted.truth.matching_sets()
    names = fitted.data.records
    several = np.flatnonzero(np.diff(found.first) == np.diff(found.first).max())[0]
    members = names[found.member[found.first[several] : found.first[several + 1]]]
    assert table.loc[names[several], "matching_set"] == " + ".join(members)
    assert fitted.entity_probability(list(members)) == pytest.approx(table.loc[names[several], "probability"])
    assert (table["records"] == table["matching_set"].str.count(r" \+ ") + 1).all()
    assert set(table["entity"]) <= set(table.index)
    # Records of one shared entity have one set.
    assert (table.groupby("entity")["matching_set"].nunique() == 1).all()


def test_entities_by_size(fitted):
    table = fitted.clusters()
    assert (table["size"] * table["estimate"]).sum() == fitted.data.num_records
    assert (table["size"] * table["mean"]).sum() == pytest.approx(fitted.data.num_records)
    assert table["mean"].sum() == pytest.approx(fitted.truth.num_clusters().mean())
    expected = fitted.truth.size_counts()[table["size"] - 1]
    # Draws of a sum of independent counts: their mean is within its error of what is expected.
    assert (np.abs(table["mean"] - expected) <= 5 * np.sqrt(expected / fitted.draws)).all()


def test_patterns_count_all_entities(fitted):
    table, number = fitted.patterns(), fitted.num_entities().value
    assert set(table["sources"]) <= {"file_1", "file_2", "file_1 + file_2"}
    assert table["entities"].sum() == pytest.approx(number)


def test_canonical_values_are_by_bayes_rule(fitted, records):
    """Of each field of an entity by the sum over all values that it may have."""
    table, entities = fitted.canonical(), fitted.truth.estimate()
    share, distortion = fitted.posterior.value_share, fitted.posterior.distortion
    code = {name: place for place, name in enumerate(records.records)}
    for _, row in table.head(40).iterrows():
        field = records.fields.tolist().index(row["field"])
        own = records.value[field, entities == code[row["entity"]]]
        of_field = share[records.first_value[field] : records.first_value[field + 1]]
        b = distortion[field]
        weight = of_field.copy()
        for value in own[own >= 0]:
            weight *= np.where(np.arange(len(weight)) == value, 1 - b + b * of_field, b * of_field[value])
        weight /= weight.sum()
        second = np.argsort(-weight, kind="stable")[1]
        assert row["runner_up_probability"] == pytest.approx(weight[second], rel=1e-6)
        values = records.vocabulary(row["field"]).tolist()
        assert weight[values.index(row["runner_up"])] == pytest.approx(weight[second])
        assert row["probability"] == pytest.approx(weight.max(), rel=1e-6)
        assert row["value"] == records.vocabulary(row["field"])[weight.argmax()]
        assert row["values"] == len(set(own[own >= 0].tolist()))


def test_every_entity_has_its_canonical_values(fitted, records):
    """Entities of one record too; only a field that all of its records lack is left out."""
    every = fitted.canonical()
    assert len(every) == records.num_fields * int(fitted.num_entities().point)
    size = fitted.entities()["entity"].value_counts(sort=False)
    largest = size.index[np.argsort(-size, kind="stable")[:3]]
    few = fitted.canonical(limit=3)
    assert few.equals(every[every["entity"].isin(largest)].reset_index(drop=True))
    with pytest.raises(UnsupportedRequest, match="limit=0 entities"):
        fitted.canonical(limit=0)


def test_a_field_of_one_value_has_no_runner_up():
    table = {"id": list("abc"), "name": ["ada", "ada", "max"], "city": ["x", "", "x"]}
    with pytest.warns(cs.errors.InputWarning, match="no other value than 'x'"):
        records = cs.read_records(table)
    found = fitted_quietly(records).canonical().set_index(["entity", "field"])
    assert found.loc["c", "city"][["value", "runner_up", "runner_up_probability"]].tolist() == ["x", "", 0]
    assert found.loc["c", "name"][["value", "runner_up"]].tolist() == ["max", "ada"]


def test_records_lead_back_to_their_files():
    """Ids that several files have; one that only looks like that; and files that share none."""
    clinic = {"id": ["1", "2", "clinic:9"], "name": ["ada", "max", "eva"]}
    other = {"id": ["1", "2", "4"], "name": ["ada", "ida", "max"]}
    table = fitted_quietly(cs.read_records({"clinic": clinic, "other": other})).entities()
    assert table["record"].tolist() == ["clinic:1", "clinic:2", "clinic:9", "other:1", "other:2", "4"]
    assert table["original_id"].tolist() == ["1", "2", "clinic:9", "1", "2", "4"]
    assert table["file"].tolist() == ["clinic"] * 3 + ["other"] * 3


def test_what_the_interval_holds(fitted, simulated, monkeypatch):
    """That of the links alone where too few are linked to tell more; none where next to nothing was looked at."""
    assert "as far as the model holds (independent errors" in repr(fitted.num_entities())
    monkeypatch.setattr(entity_interval, "MOST_RECORDS", 50)
    count = fitted_quietly(simulated(100)).num_entities()
    assert count.links_alone
    assert not count.no_interval
    assert "by the doubt about links alone, too narrow" in repr(count)
    assert "as far as the model holds (Laplace's method after EM)" in repr(fitted_quietly(fitted.data).num_entities())
    unlinked = fitted_quietly(cs.read_records({"id": list("abc"), "name": ["ada", "max", "eva"]}), threshold=-9.0)
    assert unlinked.num_entities().no_interval
    assert "without an interval" in repr(unlinked.num_entities())


def loss_of(fitted):
    return fitted.loss().set_index("quantity")["value"]


def fitted_quietly(records, **options):
    return cs.fit("block-linkage", records, draws=10, **options)


def test_what_the_candidates_leave_out(simulated):
    fitted = fitted_quietly(simulated(5_000, distortion=0.08))
    table, posterior = loss_of(fitted), fitted.posterior
    assert table["completed"] == 1
    assert table["found_share"] == posterior.found_share
    assert table["disagreement"] == posterior.disagreement <= 0.1
    assert table["entities"] == fitted.truth.num_clusters_moments()[0]
    assert table["entities_corrected"] == fitted.truth.corrected_num_clusters() < table["entities"]
    (note,) = [note.text for note in fitted.findings() if "links among the compared pairs" in note.text]
    assert f"{100 * table['found_share']:.1f} %" in note
    assert f"about {table['entities'] - table['entities_corrected']:,.1f} more links are expected" in note


def test_no_corrected_number_where_the_model_does_not_fit(simulated, records):
    """One error in every duplicate; too few pairs to tell; candidates of the user's own."""
    together = fitted_quietly(simulated(3_000, distortion=0.0, one_error=True), likelihood="hit-miss")
    pair = {"record_a": records.records[:1], "record_b": records.records[1:2]}
    given = fitted_quietly(records.with_candidates(pair))
    for one, words in (
        (together, "but the linked pairs do not look as it expects: the number of entities is not corrected"),
        (fitted_quietly(simulated(100)), "but too few pairs are linked to tell whether it fits"),
        (given, "the candidates were given: how many links are not among them is not known"),
    ):
        table = loss_of(one)
        assert np.isnan(table["entities_corrected"])
        assert table["completed"] == 0
        assert any(words in note.text for note in one.findings())
    assert loss_of(together)["disagreement"] > 0.1
    assert np.isnan(loss_of(given)["found_share"])


def test_a_saved_fit_is_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    again = cs.load_fit(tmp_path / "run")
    assert again.entities().equals(fitted.entities())
    np.testing.assert_array_equal(again.num_entities().draws, fitted.num_entities().draws)
    np.testing.assert_array_equal(again.elbo, fitted.elbo)
    assert repr(again.posterior) == repr(fitted.posterior)


def test_a_saved_fit_counts_more_unseen_pairs_than_any_array_has_entries(fitted, tmp_path):
    number = fitted.data.num_records
    most = number * (number - 1) // 2
    posterior = copy.copy(fitted.posterior)
    posterior.hidden = {**posterior.hidden, "unseen": np.array(most)}
    unseen = dataclasses.replace(fitted, posterior=posterior)
    assert most > max(np.size(values) for values in posterior_arrays(fitted.posterior).values())
    unseen.save(tmp_path / "run")
    assert cs.load_fit(tmp_path / "run").posterior.unseen == most


def test_hyperparameters_go_to_arviz(fitted, records):
    tree = fitted.to_arviz(draws=5)
    assert tree["posterior"]["distortion"].shape == (1, 1, records.num_fields)  # an estimate is one draw


def test_candidates_of_the_user_are_all_that_is_linked(records):
    of_entity = np.flatnonzero(records.entity == np.bincount(records.entity).argmax())[:2]
    first, second = records.records[of_entity]
    given = records.with_candidates({"record_a": [second, first], "record_b": [first, second]})
    assert given.candidate.tolist() == [of_entity.tolist()]
    pairs = fitted_quietly(given).pairs()
    assert pairs[["record_a", "record_b"]].to_numpy().tolist() == [[first, second]]


def test_records_between_files_only(records):
    fitted = cs.fit("block-linkage", records, restriction="across")
    source = dict(zip(records.records, records.source, strict=True))
    pairs = fitted.pairs()
    linked = pairs[pairs["probability"] > 0]
    assert len(linked)
    assert all(source[one] != source[other] for one, other in zip(linked["record_a"], linked["record_b"], strict=True))


def test_partitions_are_drawn_as_probable_as_they_are():
    """Given hyperparameters, over all partitions of seven records."""
    records = simulate(5, num_records=7, num_values=(4, 3), size_share=(0.5, 0.5))[0]
    data, number = linkable(records, threshold=5.0), 4_000
    one = {"distortion": [0.1, 0.2], "size_share": [0.5, 0.3, 0.1, 0.05, 0.03, 0.01, 0.01], "intensity": 4.0}
    sites = {site: np.broadcast_to(value, (number, *np.shape(value))) for site, value in one.items()}
    cluster = drawn_partitions(data, sites, likelihood="hit-miss", key=jax.random.key(0))
    (found,) = enumerate_linkable(data, data.share, *map(np.array, one.values()), "hit-miss")
    first, second = pairs_within(7)
    frequency = (cluster[:, first] == cluster[:, second]).mean(axis=0)
    expected = np.asarray(found.pair)[:, 0]
    error = np.sqrt(expected * (1 - expected) / number)
    assert (np.abs(frequency - expected) <= 5 * error + 1e-4).all()


@pytest.mark.slow
def test_nuts_finds_the_entities_too(records, fitted):
    """With the hyperparameters drawn, entities are as many as by EM, within both spreads."""
    drawn = cs.fit("block-linkage", records, method="nuts", draws=60, chains=1, warmup=100, progress=False)
    one, other = drawn.num_entities(), fitted.num_entities()
    assert abs(one.value - other.value) < 4 * np.hypot(one.sd, other.sd)
    assert drawn.entities()["certainty"].between(0, 1).all()
    assert len(drawn.canonical())
    assert drawn.fields()["distortion"].between(0, 1).all()
    assert cs.score_partition(drawn, records)["pairwise-f1"] > 0.7


def test_engines_are_of_em_alone(records):
    with pytest.raises(UnsupportedRequest, match="'block-linkage' by nuts runs in memory; leave out engine="):
        cs.fit("block-linkage", records, method="nuts", engine="duckdb")
    with pytest.raises(UnsupportedRequest, match="on devices or by an engine; leave out one of the two"):
        cs.fit("block-linkage", records, devices=1, engine="duckdb")


def test_columns_are_those_of_a_table(fitted):
    table, columns, codes = fitted.pairs(), fitted.table_columns("pairs"), fitted.table_columns("pairs", codes=True)
    assert list(columns) == list(table.columns)
    for name, values in columns.items():
        assert values.tolist() == table[name].tolist()
    np.testing.assert_array_equal(fitted.data.records[codes["record_a"]], columns["record_a"])
