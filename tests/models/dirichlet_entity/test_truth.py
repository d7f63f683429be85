"""Partitions of `dirichlet-entity`: draws, pairs and clusters in closed form, NUTS, failures that are not hidden."""

import itertools
import pickle

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.data import read_records
from consilience.errors import DiagnosticWarning
from consilience.models.diagnostics import convergence
from consilience.models.dirichlet_entity import MODEL, Priors, canonical
from consilience.models.dirichlet_entity.truth import EntityPartition, failures
from consilience.models.posterior import Closed
from consilience.models.truth.partitions import first_members, pairs_together
from tests.models.records import assignments, german_names, records_of

DRAWS = 4000


def truth_of(rows, **more):
    """Return the truth of responsibilities given as dicts of entity -> probability."""
    first = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int32)
    entity = np.array([entity for row in rows for entity in row], np.int32)
    probability = np.array([value for row in rows for value in row.values()])
    ended = {"first": first, "entity": entity, "probability": probability, "moved": np.ones(len(rows), bool)}
    return EntityPartition(Closed({}, ended), key=jax.random.key(3), num_draws=DRAWS, **more)


@pytest.fixture
def mixed():
    return truth_of([{0: 1.0}, {0: 0.7, 1: 0.3}, {1: 0.2, 2: 0.8}, {0: 0.1, 1: 0.6, 3: 0.3}])


def test_draws_are_those_of_independent_records_and_the_same_every_time(mixed):
    drawn = mixed.entities()
    for record, row in enumerate([{0: 1.0}, {0: 0.7, 1: 0.3}, {1: 0.2, 2: 0.8}, {0: 0.1, 1: 0.6, 3: 0.3}]):
        for entity in range(4):
            p = row.get(entity, 0.0)
            assert abs((drawn[:, record] == entity).mean() - p) <= 5 * np.sqrt(p * (1 - p) / DRAWS)
    every = mixed.clusters()
    np.testing.assert_array_equal(every, [first_members(row) for row in drawn])
    np.testing.assert_array_equal(mixed.clusters(slice(7, 900, 3)), every[7:900:3])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(mixed)).clusters(), every)


def test_pairs_and_whole_clusters_have_the_probabilities_of_all_assignments(mixed):
    rows = [{0: 1.0}, {0: 0.7, 1: 0.3}, {1: 0.2, 2: 0.8}, {0: 0.1, 1: 0.6, 3: 0.3}]
    together, exactly = np.zeros((4, 4)), {}
    for z in itertools.product(*rows):
        p = np.prod([row[entity] for row, entity in zip(rows, z, strict=True)])
        together += p * np.equal.outer(z, z)
        for entity in set(z):
            members = tuple(np.flatnonzero(np.array(z) == entity))
            exactly[members] = exactly.get(members, 0) + p
    pairs = mixed.pairs()
    assert set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)) == {
        (i, j) for i, j in itertools.combinations(range(4), 2) if together[i, j] > 0
    }
    np.testing.assert_allclose(pairs.probability, together[pairs.first, pairs.second], atol=1e-12)
    for partition in ([0, 0, 2, 3], [0, 1, 1, 1], [0, 0, 2, 0], [0, 1, 2, 1]):
        probability = mixed.cluster_probability(np.array(partition))
        wanted = [exactly.get(tuple(np.flatnonzero(np.array(partition) == own)), 0.0) for own in partition]
        np.testing.assert_allclose(probability, wanted, atol=1e-12)
    assert mixed.estimate().tolist() == [0, 0, 2, 3]


def enumerated_pairs(data, concentration, number):
    """Pair probabilities by the sum over all assignments of records to entities."""
    z, log_weight = assignments(data, np.full(data.num_values, concentration), number)
    weight = np.exp(log_weight - log_weight.max())
    return np.einsum("z,zij->ij", weight / weight.sum(), (z[:, :, None] == z[:, None]).astype(float))


VALUE = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [1, -1, 0, -1], [0, 0, 1, 0]], np.int32)


def tiny():
    return records_of(VALUE)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_nuts_has_the_pairs_of_all_assignments_and_cavi_is_on_their_side():
    exact = enumerated_pairs(tiny(), 0.5, 3)
    fit = cs.fit("dirichlet-entity", tiny(), method="nuts", num_entities=3, concentration=0.5, draws=1000, seed=1)
    cluster = fit.truth.clusters().reshape(4, 1000, 4)
    for i, j in itertools.combinations(range(4), 2):
        drawn = (cluster[..., i] == cluster[..., j]).astype(float)
        found = convergence(drawn)
        assert abs(drawn.mean() - exact[i, j]) < 5 * found.mcse_mean
    probability = {pair: exact[pair] for pair in [(0, 1), (0, 2), (1, 2), (0, 3)]}
    for support in ("dense", "anchored"):
        pairs = cs.fit("dirichlet-entity", tiny(), support=support, concentration=0.3).truth.pairs()
        found = dict(zip(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True), pairs.probability, strict=True))
        for pair, p in probability.items():
            assert (found.get(pair, 0.0) > 0.5) == (p > 0.5)
    assert set(fit.table("entities").columns) == {"record", "entity", "certainty"}
    assert fit.table("entities")["certainty"].between(0, 1).all()


def test_the_names_of_entities_do_not_matter_to_draws():
    random = np.random.default_rng(0)
    weight = random.normal(size=(2, 3, 3, 8))
    order = random.permutation(3)
    both = weight, weight[:, :, order]
    one, other = (canonical({"log_weight": values}, MODEL.resolve(tiny()))["log_weight"] for values in both)
    np.testing.assert_array_equal(one, other)


# ---- failures ----

DIFFERING = tiny().replace(value=np.array([[0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1]], np.int32))


def test_two_records_that_cannot_tell_which_is_the_first_are_said_to_be_tied():
    data = tiny().replace(value=np.array([[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [1, 1, 0, 0]], np.int32))
    with pytest.warns(DiagnosticWarning, match="tied: 2 records"):
        dense = cs.fit("dirichlet-entity", data, support="dense", concentration=0.1)
    assert dense.truth.pairs().probability[0] == pytest.approx(0.5, abs=1e-3)
    anchored = cs.fit("dirichlet-entity", data, concentration=0.1)
    assert anchored.truth.estimate()[:2].tolist() == [0, 0]


def test_a_frozen_result_says_so():
    with pytest.warns(DiagnosticWarning, match="frozen"):
        fit = cs.fit("dirichlet-entity", DIFFERING, concentration=0.05, support="dense", num_entities=4)
    assert any("frozen" in note.text for note in fit.findings())
    assert "frozen" in fit.describe()["notes"]
    assert any("frozen" in problem for problem in fit.diagnostics())


def test_a_diffuse_result_says_so_and_so_does_its_estimate(tmp_path):
    random = np.random.default_rng(0)
    data = tiny().replace(value=random.integers(0, 2, (4, 4)).astype(np.int32))
    with pytest.warns(DiagnosticWarning, match="diffuse"):
        fit = cs.fit("dirichlet-entity", data, concentration=20.0, support="dense", start="random")
    fit.save(tmp_path / "fit")
    loaded = cs.load_fit(tmp_path / "fit")
    for one in (fit, loaded):
        assert any("diffuse" in problem for problem in one.diagnostics())
        with pytest.warns(DiagnosticWarning, match="diffuse"):
            one.truth.estimate()


def test_records_without_candidates_stay_alone_and_it_is_said():
    value = np.tile(np.arange(4, dtype=np.int32), (4, 1))
    data = tiny().replace(value=value, first_value=np.arange(5, dtype=np.int32) * 4, num_values=16)
    with pytest.warns(DiagnosticWarning, match="candidate"):
        fit = cs.fit("dirichlet-entity", data)
    assert fit.truth.estimate().tolist() == [0, 1, 2, 3]
    assert not len(fit.truth.pairs().first)
    np.testing.assert_allclose(fit.truth.cluster_probability(fit.truth.estimate()), 1)


# ---- RLdata500 ----


def f1(cluster, entity):
    found, true = (set(pairs_together(np.asarray(one)).tolist()) for one in (cluster, entity))
    return 2 * len(found & true) / (len(found) + len(true))


@pytest.mark.public_data
class TestRLdata500:
    """Pairwise F1 with five fields; .958 is what the best rule by equality of fields reaches."""

    @pytest.fixture
    def records(self, data_folder):
        return german_names(data_folder)

    @pytest.mark.parametrize(("agree", "concentration", "score"), [(3, 0.25, 0.958), (2, 0.25, 0.958), (3, 0.5, 0.939)])
    def test_anchored(self, records, agree, concentration, score):
        fit = cs.fit("dirichlet-entity", records, agree=agree, concentration=concentration)
        assert f1(fit.truth.estimate(), records.entity) == pytest.approx(score, abs=5e-4)
        assert fit.diagnostics() == []

    def test_dense_is_frozen_at_a_concentration_of_a_quarter(self, records):
        with pytest.warns(DiagnosticWarning, match="frozen"):
            fit = cs.fit("dirichlet-entity", records, support="dense")
        assert f1(fit.truth.estimate(), records.entity) == 0

    @pytest.mark.slow
    def test_dense_moves_at_three_tenths(self, records):
        with jax.enable_x64(True):
            fit = cs.fit("dirichlet-entity", records, support="dense", concentration=0.3)
            with pytest.warns(DiagnosticWarning, match="settled"):
                early = cs.fit("dirichlet-entity", records, support="dense", concentration=0.3, max_steps=40)
        assert f1(fit.truth.estimate(), records.entity) == pytest.approx(0.958, abs=5e-4)
        assert f1(early.truth.estimate(), records.entity) == pytest.approx(0.936, abs=5e-4)

    def test_dense_is_diffuse_at_one(self, records):
        with pytest.warns(DiagnosticWarning, match="diffuse"):
            fit = cs.fit("dirichlet-entity", records, support="dense", concentration=1.0)
        assert failures(fit.posterior)

    def test_all_seven_fields_with_missing_ones_masked(self, data_folder):
        path = data_folder / "rldata" / "RLdata500.csv"
        records = read_records(path, id="rec_id", entity="ent_id", missing_values=("NA",))
        trap = read_records(path, id="rec_id", entity="ent_id")
        scores = [
            f1(cs.fit("dirichlet-entity", one, concentration=0.3).truth.estimate(), one.entity)
            for one in (records, trap)
        ]
        assert scores == pytest.approx([0.958, 0.939], abs=5e-4)

    def test_tables_have_the_users_ids(self, records):
        fit = cs.fit("dirichlet-entity", records)
        entities, pairs, clusters = fit.entities(), fit.pairs(), fit.clusters()
        assert entities["record"].tolist() == list(records.records)
        assert set(entities["entity"]) <= set(records.records)
        assert set(pairs["record_a"]) | set(pairs["record_b"]) <= set(records.records)
        assert clusters["size"].tolist() == [1, 2]
        assert (clusters["size"] * clusters["estimate"]).sum() == 500
        assert (clusters["lower"] <= clusters["upper"]).all()


# ---- the laws that make sense without items and classes ----


def random_records(seed=0):
    random = np.random.default_rng(seed)
    base = random.integers(0, 6, (5, 12))
    value = np.concatenate([base, base[:, :6]], axis=1)
    value[0, 12:] = (value[0, 12:] + random.integers(1, 6, 6)) % 6
    value[3, 8] = -1
    names = np.array([f"r{i}" for i in range(18)], object)
    return records_of(value, [6] * 5, records=names)


@pytest.mark.parametrize("support", ["dense", "anchored"])
def test_the_same_seed_gives_the_same_bits_also_after_loading_and_pickling(support, tmp_path):
    options = {"support": support, "concentration": 0.3}
    fit, again = (cs.fit("dirichlet-entity", random_records(), seed=5, **options) for _ in range(2))
    fit.save(tmp_path / "fit")
    for other in (again, cs.load_fit(tmp_path / "fit"), pickle.loads(pickle.dumps(fit))):
        assert other.truth.clusters().tobytes() == fit.truth.clusters().tobytes()
        for name in fit.member.table_names:
            assert other.table(name).equals(fit.table(name))


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
@pytest.mark.parametrize("support", ["dense", "anchored"])
def test_the_names_and_order_of_what_is_compared_do_not_matter(support):
    """Of an anchored support the order of records does: an entity is that of the first one."""
    random, data = np.random.default_rng(1), random_records()
    order = random.permutation(18) if support == "dense" else np.arange(18)
    renamed = np.append(random.permutation(6), -1)  # missing stays missing
    value = renamed[data.value][random.permutation(5)][:, order].astype(np.int32)
    tables = []
    for one in (data, data.replace(value=value, records=data.records[order])):
        with jax.enable_x64(True):
            fit = cs.fit("dirichlet-entity", one, support=support, concentration=0.3, max_steps=20)
        columns = (fit.pairs()[name] for name in ("record_a", "record_b", "probability"))
        tables.append({frozenset((a, b)): p for a, b, p in zip(*columns, strict=True)})
    every = tables[0].keys() | tables[1].keys()
    differences = [tables[0].get(pair, 0.0) - tables[1].get(pair, 0.0) for pair in every]
    np.testing.assert_allclose(differences, 0, atol=1e-8)
    if support == "anchored":
        linked = {pair for pair, p in tables[0].items() if p > 0.5}
        assert linked >= {frozenset((f"r{i}", f"r{i + 12}")) for i in range(6)}


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
@pytest.mark.parametrize("support", ["dense", "anchored"])
@pytest.mark.parametrize(
    "value", [[[0]], [[-1]], [[0, 0, 0], [0, 0, 0]], [[-1, -1], [0, 1]], [[0, 1, 2, 3]]],
    ids=["one record", "one record, nothing known", "all equal", "a field that nobody has", "all different"],
)  # fmt: skip
def test_degenerate_records(value, support):
    data = records_of(value)
    fit = cs.fit("dirichlet-entity", data, Priors(concentration=0.5), support=support)
    assert np.isfinite(fit.elbo).all()
    assert fit.entities()["certainty"].between(0, 1).all()
    assert len(fit.truth.estimate()) == data.num_records
