"""The laws that every member obeys whose data are records: of partitions, where items and classes have no meaning."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density

import consilience as cs
from consilience.errors import UnknownName
from consilience.evaluation.partition_scores import num_entities
from consilience.models.diagnostics import convergence
from consilience.models.interface import Generic
from tests.laws.subjects import PEOPLE, latent, read

pytestmark = [
    pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning"),
    pytest.mark.filterwarnings("ignore::consilience.errors.InputWarning"),
]

LINKED = {("r0", "r1"), ("r2", "r3"), ("r5", "r6")}


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
    fitted = record_subject.fit()
    assert "num_entities" in fitted.member.measure_names
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
    fitted = record_subject.fit(records)
    assert cs.score_partition(fitted, records)["cluster-f1"] > 0.8
    for site in set(values) & set(fitted.samples(5)):
        assert np.isfinite(values[site]).all()


def test_draws_are_as_frequent_as_pairs_are_probable(record_subject):
    fitted = record_subject.fit(draws=2000)
    cluster, pairs = fitted.truth.clusters(), fitted.truth.pairs()
    frequency = (cluster[:, pairs.first] == cluster[:, pairs.second]).mean(axis=0)
    error = np.sqrt(pairs.probability * (1 - pairs.probability) / 2000)
    assert (np.abs(frequency - pairs.probability) <= 5 * error + 1e-3).all()


# ---- determinism, compilation, precision ----


def test_records_of_equal_shapes_compile_nothing(record_subject, compilations):
    def work(seed):
        # Codes of other values, as many as before.
        code = np.random.default_rng(seed).permutation(len(PEOPLE["id"]))
        fitted = record_subject.fit(read({name: np.array(values)[code] for name, values in PEOPLE.items()}), seed=seed)
        return fitted.entities(), fitted.pairs(), fitted.truth.num_clusters()

    work(0)
    compilations.clear()
    work(0)
    assert not compilations


def test_double_precision_changes_no_probability(record_subject):
    single = record_subject.fit()
    with jax.enable_x64(True):
        double = record_subject.fit()
    assert_equal_answers(single, double, 1e-4)
    assert links_of(single) == links_of(double)


# ---- invariances ----


def test_the_order_of_fields_does_not_matter(record_subject):
    fields = ["street", "name", "city", "year"]
    assert_equal_answers(record_subject.fit(), record_subject.fit(read(fields=fields)))


def test_ids_and_values_are_names_alone(record_subject):
    renamed = {name: [value and f"{value} {name}" for value in values] for name, values in PEOPLE.items()}
    renamed["id"] = names = [f"fäll {place} 患者" for place in range(len(PEOPLE["id"]))]
    one, other = record_subject.fit(), record_subject.fit(read(renamed))
    assert one.truth.clusters().tobytes() == other.truth.clusters().tobytes()
    assert other.entities()["record"].tolist() == names
    assert_equal_answers(one, other, 0.0, rename=dict(zip(PEOPLE["id"], names, strict=True)))


def test_a_field_that_all_records_lack_changes_nothing(record_subject):
    fields = ["name", "year", "city", "street"]
    records = read({**PEOPLE, "mail": [""] * 10}, fields=[*fields, "mail"])
    assert_equal_answers(record_subject.fit(), record_subject.fit(records))


# ---- priors and options ----


def test_priors_are_swapped(record_subject):
    member, case = record_subject
    assert pairs_of(record_subject.fit(priors=case.other_priors(member))) != pairs_of(record_subject.fit())
    wrong, error = case.refuses_prior
    with pytest.raises(error, match=r"\w{3}"):
        record_subject.fit(priors=wrong(member), method=member.methods[0])


def test_unknown_options_are_refused(record_subject):
    with pytest.raises(UnknownName, match="no option 'thresold'"):
        record_subject.fit(thresold=3)


# ---- generic inference ----


@pytest.mark.slow
def test_nuts_fits_tiny_data(record_subject):
    """The joint density alone: the draws stand for partitions, and answer what other fits do."""
    tiny = read({name: values[:3] for name, values in PEOPLE.items()})
    fitted = record_subject.fit(tiny, method="nuts", draws=60, chains=1, warmup=60, progress=False)
    assert np.isfinite(fitted.summary()["mean"]).all()
    assert fitted.truth.clusters().shape == (60, 3)
    probability = pairs_of(fitted)
    assert probability[("r0", "r1")] > probability.get(("r0", "r2"), 0)
    again = record_subject.fit(tiny, method="nuts", draws=60, chains=1, warmup=60, progress=False)
    assert again.truth.clusters().tobytes() == fitted.truth.clusters().tobytes()


def test_the_density_of_records_under_transformations(record_subject):
    member, _ = record_subject
    tiny = read({name: values[:3] for name, values in PEOPLE.items()})
    with jax.enable_x64(True):
        fitted = record_subject.fit(tiny)
        generic = next(engine for engine in member.engines if isinstance(engine, Generic))
        resolved = fitted.resolved if generic.prepare is None else generic.prepare(fitted.resolved)

        def density(resolved, values):
            return log_density(member.density, (resolved,), {}, values)[0]

        values = jax.jit(functools.partial(latent, member.density))(jax.random.key(0), resolved)
        plain, gradient = jax.jit(jax.value_and_grad(density, argnums=1))(resolved, values)
        assert np.isfinite(plain)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
        stacked = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), resolved)
        both = jax.jit(jax.vmap(density, (0, None)))(stacked, values)
        np.testing.assert_allclose(both, [plain, plain], rtol=1e-9)


# ---- ArviZ ----


def test_arviz_has_the_sites(record_subject):
    fitted = record_subject.fit()
    if not fitted.posterior.sites:
        pytest.skip("the member has no draws of its sites")
    tree = fitted.to_arviz(draws=30)
    for site, values in fitted.samples(30).items():
        assert tree["posterior"][site].shape == values.shape
        assert len(fitted.member.sites.dims.get(site, ())) == values.ndim - 2
