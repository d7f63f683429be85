"""The laws that every member obeys whose data are records: of partitions, where items and classes have no meaning."""

import copy
import pickle
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro import handlers
from numpyro.infer.util import log_density

import consilience as cs
from consilience.data import Records
from consilience.errors import DiagnosticWarning, UnknownName
from consilience.evaluation.partition_scores import num_entities
from consilience.inference.diagnostics import convergence
from consilience.models.interface import Generic

pytestmark = [
    pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning"),
    pytest.mark.filterwarnings("ignore::consilience.errors.InputWarning"),
]

PEOPLE = {
    "id": [f"r{number}" for number in range(10)],
    "name": ["vogt", "vogt", "born", "born", "lang", "noll", "noll", "witt", "kern", "hahn"],
    "year": ["1951", "1951", "1960", "1960", "1947", "1972", "1972", "1980", "1981", "1982"],
    "city": ["bonn", "bonn", "jena", "jena", "bonn", "kiel", "", "trier", "ulm", "jena"],
    "street": ["elm", "elm", "oak", "oak", "fir", "yew", "yew", "lime", "box", "bay"],
}
LINKED = {("r0", "r1"), ("r2", "r3"), ("r5", "r6")}


def read(columns=None, **settings):
    return cs.read_records(columns or PEOPLE, **settings)


def two_files(columns=PEOPLE):
    """Every other record is in a second file."""
    return read([{name: values[start::2] for name, values in columns.items()} for start in (0, 1)])


def fit(subject, records=None, **options):
    member, case = subject
    return cs.fit(member, read() if records is None else records, **{"draws": 100, **case.options, **options})


def pairs_of(fitted):
    """Return the probabilities of pairs by ids; pairs next to impossible are left out."""
    table = fitted.pairs()
    rows = zip(table["record_a"], table["record_b"], table["probability"], strict=True)
    return {tuple(sorted((one, other))): probability for one, other, probability in rows if probability > 1e-3}


def links_of(fitted):
    """Return the pairs of the estimate by ids."""
    return {pair for pair, linked in _estimated(fitted).items() if linked}


def _estimated(fitted):
    entity = dict(zip(*fitted.entities()[["record", "entity"]].to_numpy().T, strict=True))
    names = sorted(entity)
    return {(one, other): entity[one] == entity[other] for one in names for other in names if one < other}


def assert_equal_answers(one, other, tolerance=1e-5, rename=None):
    """Compare the probabilities of pairs; those that draws say in units of their Monte Carlo error."""
    first, second = pairs_of(one), pairs_of(other)
    if rename is not None:
        first = {tuple(sorted(rename[name] for name in pair)): value for pair, value in first.items()}
    if one.has_draws and tolerance:
        pairs = sorted(first.keys() | second.keys())
        first, second = ({pair: known.get(pair, 0.0) for pair in pairs} for known in (first, second))
        allowed = tolerance + 5 * np.hypot(*(_errors(fitted, pairs) for fitted in (one, other)))
        assert (np.abs(np.array([*first.values()]) - [*second.values()]) <= allowed).all()
        return
    assert first.keys() == second.keys()
    np.testing.assert_allclose([first[pair] for pair in first], [second[pair] for pair in first], atol=tolerance)


def _errors(fitted, pairs):
    """Return the Monte Carlo errors of frequencies of pairs, and no less than one draw."""
    place = {name: code for code, name in enumerate(fitted.data.records)}
    first, second = np.array([[place[name] for name in pair] for pair in pairs]).T
    cluster = fitted.truth.clusters()
    error = convergence((cluster[None, :, first] == cluster[None, :, second]).astype(float)).mcse_mean
    return np.fmax(error, 1 / len(cluster))


# ---- what comes out ----


def test_it_finds_the_entities(record_subject):
    fitted = fit(record_subject)
    assert links_of(fitted) == LINKED
    entities = fitted.entities()
    assert entities["record"].tolist() == PEOPLE["id"]
    assert entities["certainty"].between(0, 1 + 1e-9).all()
    assert num_entities(fitted).value == pytest.approx(7, abs=1.5)
    assert len(fitted.pairs())


def test_simulated_records_can_be_fitted(record_subject):
    member, _ = record_subject
    if member.simulation is None:
        pytest.skip("the member has no simulation")
    records, values = member.simulate(jax.random.key(0), num_records=60)
    again, _ = member.simulate(jax.random.key(0), num_records=60)
    assert records.fingerprint() == again.fingerprint()
    fitted = fit(record_subject, records)
    assert cs.score_partition(fitted, records)["cluster-f1"] > 0.8
    for site in set(values) & set(fitted.samples(5)):
        assert np.isfinite(values[site]).all()


def test_draws_are_as_frequent_as_pairs_are_probable(record_subject):
    fitted = fit(record_subject, draws=2000)
    cluster, pairs = fitted.truth.clusters(), fitted.truth.pairs()
    frequency = (cluster[:, pairs.first] == cluster[:, pairs.second]).mean(axis=0)
    error = np.sqrt(pairs.probability * (1 - pairs.probability) / 2000)
    assert (np.abs(frequency - pairs.probability) <= 5 * error + 1e-3).all()


# ---- determinism, compilation, precision ----


def test_the_same_seed_gives_the_same_bits_also_after_loading(record_subject, tmp_path):
    first, second = fit(record_subject, seed=7), fit(record_subject, seed=7)
    assert first.truth.clusters().tobytes() == second.truth.clusters().tobytes() == first.truth.clusters().tobytes()
    first.save(tmp_path / "run")
    loaded = cs.load_fit(tmp_path / "run", model=record_subject[0])
    assert loaded.truth.clusters().tobytes() == first.truth.clusters().tobytes()
    for name in first.member.table_names:
        assert loaded.table(name).equals(first.table(name)), name
    doubtful = read({**PEOPLE, "street": PEOPLE["street"][::-1]})
    drawn, other = (fit(record_subject, doubtful, seed=seed, draws=1000).truth.clusters() for seed in (7, 8))
    assert drawn.tobytes() != other.tobytes()


def test_records_of_equal_shapes_compile_nothing(record_subject):
    events = []

    def note(event, duration, **details):
        if "backend_compile" in event:
            events.append(event)

    def work(seed):
        # Codes of other values, as many as before.
        code = np.random.default_rng(seed).permutation(len(PEOPLE["id"]))
        fitted = fit(record_subject, read({name: np.array(values)[code] for name, values in PEOPLE.items()}), seed=seed)
        return fitted.entities(), fitted.pairs(), fitted.truth.num_clusters()

    work(0)
    jax.monitoring.register_event_duration_secs_listener(note)
    jax.jit(lambda x: x + 2)(jnp.arange(7)).block_until_ready()
    assert events
    events.clear()
    work(0)
    assert not events


def test_double_precision_changes_no_probability(record_subject):
    single = fit(record_subject)
    with jax.enable_x64(True):
        double = fit(record_subject)
    assert_equal_answers(single, double, 1e-4)
    assert links_of(single) == links_of(double)


# ---- invariances ----


def test_the_order_of_fields_does_not_matter(record_subject):
    fields = ["street", "name", "city", "year"]
    assert_equal_answers(fit(record_subject), fit(record_subject, read(fields=fields)))


def test_ids_and_values_are_names_alone(record_subject):
    renamed = {name: [value and f"{value} {name}" for value in values] for name, values in PEOPLE.items()}
    renamed["id"] = names = [f"fäll {place} 患者" for place in range(len(PEOPLE["id"]))]
    one, other = fit(record_subject), fit(record_subject, read(renamed))
    assert one.truth.clusters().tobytes() == other.truth.clusters().tobytes()
    assert other.entities()["record"].tolist() == names
    assert_equal_answers(one, other, 0.0, rename=dict(zip(PEOPLE["id"], names, strict=True)))


def test_a_field_that_all_records_lack_changes_nothing(record_subject):
    fields = ["name", "year", "city", "street"]
    records = read({**PEOPLE, "mail": [""] * 10}, fields=[*fields, "mail"])
    assert_equal_answers(fit(record_subject), fit(record_subject, records))


# ---- priors and options ----


def test_priors_are_swapped(record_subject):
    member, case = record_subject
    assert pairs_of(fit(record_subject, priors=case.other_priors(member))) != pairs_of(fit(record_subject))
    wrong, error = case.refuses_prior
    with pytest.raises(error, match=r"\w{3}"):
        fit(record_subject, priors=wrong(member), method=member.methods[0])


def test_unknown_options_are_refused(record_subject):
    with pytest.raises(UnknownName, match="no option 'thresold'"):
        fit(record_subject, thresold=3)


# ---- generic inference ----


@pytest.mark.slow
def test_nuts_fits_tiny_data(record_subject):
    """The joint density alone: the draws stand for partitions, and answer what other fits do."""
    tiny = read({name: values[:3] for name, values in PEOPLE.items()})
    fitted = fit(record_subject, tiny, method="nuts", draws=60, chains=1, warmup=60, progress=False)
    assert np.isfinite(fitted.summary()["mean"]).all()
    assert fitted.truth.clusters().shape == (60, 3)
    probability = pairs_of(fitted)
    assert probability[("r0", "r1")] > probability.get(("r0", "r2"), 0)
    again = fit(record_subject, tiny, method="nuts", draws=60, chains=1, warmup=60, progress=False)
    assert again.truth.clusters().tobytes() == fitted.truth.clusters().tobytes()


def test_the_density_under_transformations(record_subject):
    member, _ = record_subject
    tiny = read({name: values[:3] for name, values in PEOPLE.items()})
    with jax.enable_x64(True):
        fitted = fit(record_subject, tiny)
        generic = next(engine for engine in member.engines if isinstance(engine, Generic))
        resolved = fitted.resolved if generic.prepare is None else generic.prepare(fitted.resolved)

        def latent(key, resolved):
            trace = handlers.trace(handlers.seed(member.density, key)).get_trace(resolved)
            return {
                name: site["value"]
                for name, site in trace.items()
                if site["type"] == "sample" and not site["is_observed"]
            }

        def density(resolved, values):
            return log_density(member.density, (resolved,), {}, values)[0]

        values = jax.jit(latent)(jax.random.key(0), resolved)
        plain, gradient = jax.jit(jax.value_and_grad(density, argnums=1))(resolved, values)
        assert np.isfinite(plain)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
        stacked = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), resolved)
        both = jax.jit(jax.vmap(density, (0, None)))(stacked, values)
        np.testing.assert_allclose(both, [plain, plain], rtol=1e-9)


# ---- degenerate data ----


def huge_field():
    """Three records whose only field may have a million values."""
    return Records(
        value=np.array([[999_999, 3, 999_999]], np.int32), source=np.zeros(3, np.int32),
        first_value=np.array([0, 1_000_000], np.int32), num_records=3, num_fields=1, num_sources=1,
        num_values=1_000_000, records=np.array(["a", "b", "c"], object),
    )  # fmt: skip


DEGENERATE = {
    "one record": lambda: read({name: values[:1] for name, values in PEOPLE.items()}),
    "two records": lambda: read({name: values[:2] for name, values in PEOPLE.items()}),
    "all identical": lambda: read({"id": ["a", "b", "c", "d"], "name": ["x"] * 4, "year": ["1"] * 4}),
    "all different": lambda: read({"id": ["a", "b", "c"], "name": ["x", "y", "z"]}),
    "nothing in a field": lambda: read({**PEOPLE, "mail": [""] * 10}),
    "a record without values": lambda: read({"id": ["a", "b", "c"], "name": ["x", "x", ""], "year": ["1", "1", ""]}),
    "two files": two_files,
    "a file each": lambda: read([{"id": ["a"], "name": ["x"]}, {"id": ["b"], "name": ["x"]}]),
    "a million values": huge_field,
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_records(record_subject, name):
    _, case = record_subject
    records = DEGENERATE[name]()
    if name in case.refuses:
        with pytest.raises(case.refuses[name], match=r"\w{3}"):
            fit(record_subject, records)
        return
    fitted = fit(record_subject, records)
    entities, pairs = fitted.entities(), fitted.pairs()
    assert len(entities) == records.num_records
    assert entities["certainty"].between(0, 1 + 1e-9).all()
    assert pairs["probability"].between(0, 1 + 1e-9).all()
    count = num_entities(fitted)
    assert 1 <= count.value <= records.num_records + 1e-6
    assert 1 <= count.interval[0] <= count.interval[1] <= records.num_records  # the mean of few draws may be outside
    cluster = fitted.truth.clusters()
    assert cluster.shape == (100, records.num_records)
    assert (np.take_along_axis(cluster, cluster, axis=1) == cluster).all()  # clusters are named by their first record
    assert (cluster <= np.arange(records.num_records)).all()


# ---- programming interface ----


def test_models_fits_and_records_are_copied_and_pickled(record_subject):
    member, _ = record_subject
    fitted = fit(record_subject)
    for other in (pickle.loads(pickle.dumps(member)), copy.copy(member), copy.deepcopy(member)):
        assert fit((other, record_subject[1])).truth.clusters().tobytes() == fitted.truth.clusters().tobytes()
    for other in (pickle.loads(pickle.dumps(fitted)), copy.copy(fitted), copy.deepcopy(fitted)):
        assert other.truth.clusters().tobytes() == fitted.truth.clusters().tobytes()
        assert other.entities().equals(fitted.entities())
    records = fitted.data
    for other in (pickle.loads(pickle.dumps(records)), copy.copy(records), copy.deepcopy(records)):
        assert other.fingerprint() == records.fingerprint()
    leaves, structure = jax.tree.flatten(records)
    again = jax.tree.unflatten(structure, leaves)
    assert all(one is two for one, two in zip(leaves, jax.tree.leaves(again), strict=True))


def test_arviz_has_the_sites(record_subject):
    fitted = fit(record_subject)
    if not fitted.posterior.sites:
        pytest.skip("the member has no draws of its sites")
    tree = fitted.to_arviz(draws=30)
    for site, values in fitted.samples(30).items():
        assert tree["posterior"][site].shape == values.shape
        assert len(fitted.member.sites.dims.get(site, ())) == values.ndim - 2


def test_what_is_declared_is_consistent(record_subject):
    member, _ = record_subject
    assert (member.density is not None) == bool({"nuts", "svi"} & set(member.methods))
    assert {"entities", "pairs", "review"} <= set(member.table_names)
    assert "num_entities" in member.measure_names
    assert member.paper.lstrip().startswith("@")
    assert all(field.help for field in member.settings.fields())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiagnosticWarning)
        fitted = fit(record_subject)
    for name in member.table_names:
        assert len(fitted.table(name).columns) > 1
