"""The laws that every member of the zoo obeys, as far as it declares the parts; what it lacks is skipped by name."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pandas
import pytest
from numpyro.infer.util import log_density

import consilience as cs
from consilience.data import Annotations, Rankings
from consilience.inference.results import Result
from tests.laws.subjects import AT_THE_EDGE, DEGENERATE, latent, outputs, subject_of, top_of_draws

# Short runs are poor, and say so; what they say has tests of its own.
pytestmark = [
    pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning"),
    pytest.mark.filterwarnings("ignore::consilience.errors.InputWarning"),
]


def need(part, what):
    if not part:
        pytest.skip(f"the member has no {what}")


def exact_fit(subject, data=None, **options):
    need(subject.member.engine("exact"), "exact posterior")
    return subject.fit(data, method="exact", **options)


# ---- laws of every member ----


def test_the_same_seed_gives_the_same_bits_also_after_loading(any_subject, tmp_path):
    draws = any_subject.draws
    first, second = any_subject.fit(seed=7), any_subject.fit(seed=7)
    assert draws(first).tobytes() == draws(second).tobytes() == draws(first).tobytes()
    first.save(tmp_path / "run")
    loaded = cs.load_fit(tmp_path / "run", model=any_subject.member)
    assert draws(loaded).tobytes() == draws(first).tobytes()
    for name in first.member.table_names:
        pandas.testing.assert_frame_equal(loaded.table(name), first.table(name), check_exact=True)
    if first.truth.num_draws > 1:
        one, other = (any_subject.fit_of_doubtful_data(seed) for seed in (7, 8))
        assert draws(one).tobytes() != draws(other).tobytes()


@pytest.mark.parametrize(("name", "what"), AT_THE_EDGE, ids=["-".join(case) for case in AT_THE_EDGE])
def test_data_at_the_edge(name, what):
    subject = subject_of(name)
    data = subject.degenerate(what)
    if what in subject.case.refuses:
        with pytest.raises(subject.case.refuses[what], match=r"\w{3}"):
            subject.fit(data)
    else:
        subject.check(subject.fit(data, draws=100))


def test_models_fits_and_data_are_copied_and_pickled(any_subject):
    def copies(one):
        return pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)

    fitted, draws = any_subject.fit(), any_subject.draws
    for member in copies(any_subject.member):
        assert draws(any_subject._replace(member=member).fit()).tobytes() == draws(fitted).tobytes()
    table = min(any_subject.tables)
    for other in copies(fitted):
        assert draws(other).tobytes() == draws(fitted).tobytes()
        assert other.table(table).equals(fitted.table(table))
    for data in copies(fitted.data):
        assert data.fingerprint() == fitted.data.fingerprint()
    leaves, structure = jax.tree.flatten(fitted.data)
    again = jax.tree.unflatten(structure, leaves)
    assert all(one is two for one, two in zip(leaves, jax.tree.leaves(again), strict=True))


def test_what_is_declared_is_consistent(any_subject):
    member, fitted = any_subject.member, any_subject.fit()
    assert (member.density is not None) == bool({"nuts", "svi"} & set(member.methods))
    assert len(set(member.methods)) == len(member.methods)
    assert any_subject.tables <= set(member.table_names)
    assert member.paper.lstrip().startswith("@")
    assert all(field.help for field in member.settings.fields())
    for name in member.table_names:
        assert len(fitted.table(name).columns) > 1


# ---- exact oracle ----


def test_exact_moments_are_those_of_brute_force(subject):
    member, case = subject
    need(case.moments, "brute-force moments")
    fitted, num_draws = exact_fit(subject), 20_000
    samples = fitted.samples(num_draws)
    for site, (mean, sd) in case.moments(fitted.data, case.options).items():
        draws = samples[site][0]
        error = sd / np.sqrt(num_draws)
        assert np.abs((draws.mean(0) - mean) / error).max() < 5, site
        # The error of a variance, from the fourth moment of the draws.
        squares = (draws - mean) ** 2
        assert np.abs((squares.mean(0) - sd**2) / (squares.std(0) / np.sqrt(num_draws))).max() < 5, site


def test_exact_certainty_is_that_of_brute_force(subject):
    member, case = subject
    need(case.certainty, "brute-force certainty")
    rows = dict(case.rows)
    names = {}
    if member.takes[0] is Annotations:
        rows["value"], names = np.minimum(rows["value"], 1), {"num_labels": 2}
    fitted = exact_fit(subject, subject.make(rows, **names))
    exact = cs.certainty(fitted, exact=True).items
    # The grid over means and variances is good to a few 1e-5; incomplete beta functions to rounding.
    np.testing.assert_allclose(exact, case.certainty(fitted.data, case.options), atol=1e-4 if not names else 1e-10)


def test_draws_agree_with_exact_certainty(subject):
    fitted = exact_fit(subject, draws=20_000)
    need(fitted.truth.num_draws > 1, "draws: it is a point estimate")
    exact, drawn = cs.certainty(fitted, exact=True), cs.certainty(fitted)
    error = np.sqrt(np.maximum(exact.items * (1 - exact.items), 1e-12) / fitted.draws)
    # The largest of several frequencies is biased upwards, by less than an error where two are about equal.
    assert np.abs((drawn.items - exact.items) / error).max() < 6
    assert drawn.sd == pytest.approx(exact.sd, rel=0.05)


def test_exact_posterior_and_nuts_agree(subject):
    need(subject.member.density, "density")
    exact, nuts = exact_fit(subject), subject.fit(method="nuts", chains=4, draws=500, warmup=500)
    assert_summaries_agree(exact, nuts)
    frequencies = [cs.certainty(one).items for one in (exact, nuts)]
    error = np.sqrt(0.25 / 200 + 0.25 / 400)  # 200 draws, and at least 400 effective ones
    assert np.abs(frequencies[0] - frequencies[1]).max() < 5 * error


def test_gibbs_and_nuts_agree(subject):
    need(subject.member.engine("gibbs"), "Gibbs sampler")
    # The priors of simulations, where a member has such: those that are learned the sampler takes from the ascent.
    own = subject.member.simulation and subject.member.simulation.priors
    priors = None if own is None else own()
    hand, nuts = (subject.fit(priors=priors, method=method, draws=1000, warmup=500) for method in ("gibbs", "nuts"))
    assert_summaries_agree(hand, nuts)
    assert hand.summary()["r_hat"].max() < 1.01


def test_a_sampler_that_is_stopped_before_its_first_draw_says_so(subject):
    """Whatever there is to say of a fit, where nothing is known of it yet."""
    need(subject.member.engine("gibbs"), "Gibbs sampler")
    fitted = subject.fit(method="gibbs", draws=20, warmup=200, time_limit=0.0)
    assert fitted.result is Result.interrupted
    assert fitted.is_empty
    assert all(note.words() for note in fitted.findings())


def test_a_sampler_that_goes_on_ends_as_if_it_had_never_stopped(subject, tmp_path):
    """Also with what it took from an ascent, which no checkpoint holds."""
    need(subject.member.engine("gibbs"), "Gibbs sampler")
    settings = {"method": "gibbs", "draws": 20, "warmup": 20, "chains": 2, "checkpoint": tmp_path / "kept"}
    whole = subject.fit(**settings)
    assert subject.fit(time_limit=0.0, **settings).result is Result.interrupted
    again = subject.fit(resume=True, **settings)
    assert again.result is whole.result
    for site, draws in whole.posterior.chains.items():
        np.testing.assert_array_equal(again.posterior.chains[site], draws)


def assert_summaries_agree(exact, sampled):
    table, other = exact.summary(20_000).set_index("quantity"), sampled.summary().set_index("quantity")
    common = table.index.intersection(other.index)
    assert len(common) == len(table)
    error = np.hypot(table["mcse"], other["mcse"])[common]
    assert ((table["mean"] - other["mean"])[common].abs() / error).max() < 5


@pytest.mark.slow
def test_svi_reports_how_far_it_is_off(subject):
    """A mean-field guide is not gated on its moments, but its mean lies within the posterior, and k-hat is there."""
    need(subject.member.density, "density")
    exact, svi = exact_fit(subject), subject.fit(method="svi", draws=1000)
    assert np.isfinite(svi.run.k_hat)
    assert len(svi.elbo) == svi.run.steps
    table, other = (one.summary().set_index("quantity") for one in (exact, svi))
    common = table.index.intersection(other.index)
    assert ((table["mean"] - other["mean"])[common].abs() / table["sd"][common]).max() < 1


# ---- invariances ----


def test_ids_do_not_matter_to_numbers(subject):
    member, case = subject
    data = subject.make()
    renamed = subject.make(items=[f"fäll {i}" for i in range(data.num_items)])
    first, second = subject.fit(data), subject.fit(renamed)
    np.testing.assert_array_equal(outputs(first), outputs(second))
    assert second.labels()["item"].tolist() == list(renamed.items)
    assert top_of_draws(first).tobytes() == top_of_draws(second).tobytes()


def test_every_row_twice_is_twice_the_reliability(subject):
    member, case = subject
    need(case.doubles, "option that stands for repeated rows")
    twice = {name: np.tile(values, 2) for name, values in case.rows.items()}
    doubled = outputs(exact_fit(subject, **{case.doubles: 2 * case.options[case.doubles]}))
    np.testing.assert_allclose(outputs(exact_fit(subject, subject.make(twice))), doubled, atol=1e-10)
    if member.takes[0] is Annotations:
        weighted = {**case.rows, "weight": np.full(len(case.rows["item"]), 2.0)}
        np.testing.assert_allclose(outputs(exact_fit(subject, subject.make(weighted))), doubled, atol=1e-10)


# ---- determinism, compilation, precision ----


def test_equal_shapes_compile_nothing(subject, compilations):
    member, case = subject

    def work(rows, seed):
        fitted = subject.fit(subject.make(rows), seed=seed)
        return cs.certainty(fitted).value, cs.certainty(fitted).table, fitted.labels()

    work(case.rows, 0)
    compilations.clear()
    rows = dict(case.rows)
    rows["value"] = case.sizes["classes"] - 1 - rows["value"] if "classes" in case.sizes else 1.1 * rows["value"]
    work(rows, 1)
    assert not compilations


def test_double_precision_changes_no_exact_number(subject):
    single = outputs(exact_fit(subject))
    with jax.enable_x64(True):
        fitted = exact_fit(subject)
        double = outputs(fitted)
        top = top_of_draws(fitted)
    np.testing.assert_allclose(single, double, rtol=1e-12)
    assert np.all((top >= 0) & (top < fitted.truth.num_classes))


# ---- odd data ----


def test_an_item_without_annotations_has_the_prior(subject):
    member, case = subject
    name = "an item without annotations"
    need(name not in case.refuses, "answer for items without annotations: it says so in an error")
    rows = DEGENERATE[name]
    key = {Annotations: "num_labels", Rankings: "num_classes"}.get(member.takes[0])
    sizes = {"num_items": 3, **({key: 2} if key else {})}
    hurry = {"tolerance": 1e-4} if member.methods[0] == "cavi" else {}  # else thousands of steps
    labels = subject.fit(subject.make(rows, **sizes), **hurry).labels().set_index("item").loc["1"]
    other = {**rows, "value": [0, 1]}  # what others received plays no part, up to the data's own default prior
    again = subject.fit(subject.make(other, **sizes), **hurry).labels().set_index("item").loc["1"]
    # Draws have an error of their own: five of them, of 200 draws or more.
    error = 1e-9 if member.engine("exact") else 5 * np.sqrt(0.25 / 200)
    assert labels["certainty"] == pytest.approx(again["certainty"], abs=error)
    if key:
        assert labels["certainty"] == pytest.approx(0.5, abs=error)


def test_unicode_ids(subject):
    data = subject.make()
    names = ["naïve", "患者", "🙂", "a b\tc"][: data.num_items]
    fitted = subject.fit(subject.make(items=names))
    assert fitted.labels()["item"].tolist() == names
    assert not sites_by_item(fitted) or any("患者" in text for text in fitted.summary(100)["quantity"])


def sites_by_item(fitted):
    """Return the sites of which a summary names the items; a member may know items by its tables alone."""
    dims = fitted.member.sites.dims
    return [site for site in fitted.samples(2) if {"item", "entry"} & set(dims[site])]


# ---- ArviZ ----


def test_arviz_has_the_users_ids(subject):
    member, case = subject
    need(member.sites.dims, "draws of its sites")
    data = subject.make()
    fitted = subject.fit(subject.make(items=[f"case {i}" for i in range(data.num_items)]))
    tree = fitted.to_arviz(draws=30)
    for site in fitted.samples(30):
        array = tree["posterior"][site]
        assert array.dims[:2] == ("chain", "draw")
        for dim in array.dims[2:]:
            assert any("case 1" in str(value) for value in array.coords[dim].values) or dim != "item"
    assert tree.attrs["model"] == member.name
    summary = fitted.summary(30)
    assert len(summary) == sum(values[0, 0].size for values in fitted.samples(30).values())
    assert summary["quantity"].str.contains("case 1").any() == bool(sites_by_item(fitted))


# ---- programming interface ----


def test_data_may_be_on_a_device(subject):
    data = subject.make()
    moved = jax.tree.map(jnp.asarray, data)
    assert moved.items is None
    np.testing.assert_allclose(outputs(subject.fit(moved)), outputs(subject.fit(data)), atol=1e-5)


def test_the_density_under_transformations(subject):
    with jax.enable_x64(True):
        check_density(subject)


def check_density(subject):
    member, case = subject
    need(member.density, "density")
    fitted = subject.fit(draws=10)
    priors = () if fitted.priors is None else (fitted.priors,)
    other = subject.make({**case.rows, "annotator": case.rows["annotator"][::-1].copy()})
    if jax.tree.map(jnp.shape, other) != jax.tree.map(jnp.shape, fitted.data):
        other = fitted.data

    def density(data, values):
        return log_density(member.model, (data, *priors), fitted.options, values)[0]

    values = latent(member.model, jax.random.key(0), fitted.data, *priors, **fitted.options)
    plain = [density(data, values) for data in (fitted.data, other)]
    assert np.isfinite(plain).all()
    np.testing.assert_allclose(jax.jit(density)(fitted.data, values), plain[0], rtol=1e-9)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), fitted.data, other)
    np.testing.assert_allclose(jax.vmap(density, in_axes=(0, None))(stacked, values), plain, rtol=1e-9)
    assert jax.eval_shape(density, fitted.data, values).shape == ()
    gradient = jax.grad(lambda values: density(fitted.data, values))(values)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


def test_simulated_data_can_be_fitted(subject):
    member, case = subject
    need(member.simulation, "simulation")
    data, values = member.simulate(jax.random.key(0), num_items=5, num_annotators=3, **case.options)
    again, _ = member.simulate(jax.random.key(0), num_items=5, num_annotators=3, **case.options)
    assert data.fingerprint() == again.fingerprint()
    assert isinstance(data, member.takes)
    assert data.num_items == 5
    fitted = subject.fit(data)
    assert np.isfinite(outputs(fitted)).all()
    for site, value in values.items():
        if member.sites.dims.get(site, ("entry",)) != ("entry",):  # true values are dense where the sites are ragged
            assert fitted.samples(10)[site].shape[2:] == np.shape(value)


def test_sites_and_hidden_values_are_declared(subject):
    fitted, sites = subject.fit(), subject.member.sites
    for name, values in fitted.samples(5).items():
        assert name in sites, f"site '{name}' has no named dimensions"
        assert values.ndim >= 2
    # Of a crowd that agrees no more than chance there are draws, and nothing beside them; other settings hide others.
    assert set(fitted.posterior.hidden) <= set(sites.hidden)
    assert bool(fitted.posterior.hidden) == bool(sites.hidden and not fitted.has_draws)
