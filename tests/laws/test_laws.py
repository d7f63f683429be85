"""The laws that every member of the zoo obeys, as far as it declares the parts; what it lacks is skipped by name."""

import copy
import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro import handlers
from numpyro.infer.util import log_density

import consilience as cs
from consilience.data import Annotations, Rankings
from consilience.errors import UnsupportedRequest
from consilience.models.truth import Ranked
from consilience.models.truth.labels import LabelTruth
from consilience.models.truth.truth import Mass

# Short runs are poor, and say so; what they say has tests of its own.
pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")


def need(part, what):
    if not part:
        pytest.skip(f"the member has no {what}")


def make(subject, rows=None, **names):
    member, case = subject
    return case.make(member.takes[0], rows, **names)


def fit(subject, data=None, **options):
    member, case = subject
    return cs.fit(member, make(subject) if data is None else data, **{"draws": 200, **case.options, **options})


def exact_fit(subject, data=None, **options):
    need(subject[0].engine("exact"), "exact posterior")
    return fit(subject, data, method="exact", **options)


def top_of_draws(fitted):
    return np.concatenate([block.real for block in fitted.truth.blocks(Ranked(1))])


def outputs(fitted):
    """Return the numbers of all tables by item and the exact certainty, in the order of the items' ids."""
    numbers = []
    for table in map(fitted.table, fitted.member.table_names):
        if "item" not in table:
            continue
        table = table.sort_values("item", kind="stable").drop(columns=["item", "label"], errors="ignore")
        numbers.append(table.select_dtypes("number").to_numpy(float).ravel())
    try:
        numbers.append(cs.certainty(fitted, exact=True).table.sort_values("item")["certainty"].to_numpy())
    except UnsupportedRequest:
        pass
    return np.concatenate(numbers)


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
    fitted = exact_fit(subject, make(subject, rows, **names))
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
    need(subject[0].density, "density")
    exact, nuts = exact_fit(subject), fit(subject, method="nuts", chains=4, draws=500, warmup=500)
    assert_summaries_agree(exact, nuts)
    frequencies = [cs.certainty(one).items for one in (exact, nuts)]
    error = np.sqrt(0.25 / 200 + 0.25 / 400)  # 200 draws, and at least 400 effective ones
    assert np.abs(frequencies[0] - frequencies[1]).max() < 5 * error


def test_gibbs_and_nuts_agree(subject):
    need(subject[0].engine("gibbs"), "Gibbs sampler")
    hand, nuts = (fit(subject, method=method, draws=1000, warmup=500) for method in ("gibbs", "nuts"))
    assert_summaries_agree(hand, nuts)
    assert hand.summary()["r_hat"].max() < 1.01


def assert_summaries_agree(exact, sampled):
    table, other = exact.summary(20_000).set_index("quantity"), sampled.summary().set_index("quantity")
    common = table.index.intersection(other.index)
    assert len(common) == len(table)
    error = np.hypot(table["mcse"], other["mcse"])[common]
    assert ((table["mean"] - other["mean"])[common].abs() / error).max() < 5


@pytest.mark.slow
def test_svi_reports_how_far_it_is_off(subject):
    """A mean-field guide is not gated on its moments, but its mean lies within the posterior, and k-hat is there."""
    need(subject[0].density, "density")
    exact, svi = exact_fit(subject), fit(subject, method="svi", draws=1000)
    assert np.isfinite(svi.run.k_hat)
    assert len(svi.elbo) == svi.run.steps
    table, other = (one.summary().set_index("quantity") for one in (exact, svi))
    common = table.index.intersection(other.index)
    assert ((table["mean"] - other["mean"])[common].abs() / table["sd"][common]).max() < 1


# ---- invariances ----


def test_ids_do_not_matter_to_numbers(subject):
    member, case = subject
    data = make(subject)
    renamed = make(subject, items=[f"fäll {i}" for i in range(data.num_items)])
    first, second = fit(subject, data), fit(subject, renamed)
    np.testing.assert_array_equal(outputs(first), outputs(second))
    assert second.labels()["item"].tolist() == list(renamed.items)
    assert top_of_draws(first).tobytes() == top_of_draws(second).tobytes()


def test_every_row_twice_is_twice_the_reliability(subject):
    member, case = subject
    need(case.doubles, "option that stands for repeated rows")
    twice = {name: np.tile(values, 2) for name, values in case.rows.items()}
    doubled = outputs(exact_fit(subject, **{case.doubles: 2 * case.options[case.doubles]}))
    np.testing.assert_allclose(outputs(exact_fit(subject, make(subject, twice))), doubled, atol=1e-10)
    if member.takes[0] is Annotations:
        weighted = {**case.rows, "weight": np.full(len(case.rows["item"]), 2.0)}
        np.testing.assert_allclose(outputs(exact_fit(subject, make(subject, weighted))), doubled, atol=1e-10)


# ---- determinism, compilation, precision ----


def test_the_same_seed_gives_the_same_bits_also_after_loading(subject, tmp_path):
    first, second = fit(subject, seed=7), fit(subject, seed=7)
    assert top_of_draws(first).tobytes() == top_of_draws(second).tobytes() == top_of_draws(first).tobytes()
    first.save(tmp_path / "run")
    loaded = cs.load_fit(tmp_path / "run", model=subject[0])
    assert top_of_draws(loaded).tobytes() == top_of_draws(first).tobytes()
    np.testing.assert_array_equal(outputs(loaded), outputs(first))
    if first.truth.num_draws > 1:
        assert top_of_draws(fit(subject, seed=8)).tobytes() != top_of_draws(first).tobytes()


def test_equal_shapes_compile_nothing(subject, compilations):
    member, case = subject

    def work(rows, seed):
        fitted = fit(subject, make(subject, rows), seed=seed)
        return cs.certainty(fitted).value, cs.certainty(fitted).table, fitted.labels()

    work(case.rows, 0)
    compilations.clear()
    rows = dict(case.rows)
    rows["value"] = case.sizes["classes"] - 1 - rows["value"] if "classes" in case.sizes else 1.1 * rows["value"]
    work(rows, 1)
    assert not compilations


@pytest.fixture
def compilations():
    """Return a list that grows with every program that XLA compiles."""
    events = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, duration, **details: events.append(event) if "backend_compile" in event else None
    )
    jax.jit(lambda x: x + 1)(jnp.arange(7)).block_until_ready()
    assert events, "jax no longer reports compilations under this name"
    return events


def test_double_precision_changes_no_exact_number(subject):
    single = outputs(exact_fit(subject))
    with jax.enable_x64(True):
        fitted = exact_fit(subject)
        double = outputs(fitted)
        top = top_of_draws(fitted)
    np.testing.assert_allclose(single, double, rtol=1e-12)
    assert np.all((top >= 0) & (top < fitted.truth.num_classes))


# ---- degenerate data ----

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


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_data(subject, name):
    member, case = subject
    rows = DEGENERATE[name]
    classes = 10**6 if name == "a million classes" else 1 + max(rows["value"]) + (name == "an unseen class")
    key = {Annotations: "num_labels", Rankings: "num_classes"}.get(member.takes[0])
    if name == "duplicates" and member.takes[0] is Rankings:
        rows = {column: values[:1] for column, values in rows.items()}  # a report names a class once
    data = make(subject, rows, num_items=1 + max(rows["item"]), num_annotators=2, **({key: classes} if key else {}))
    if name in case.refuses:
        with pytest.raises(case.refuses[name], match=r"\w{3}"):
            fit(subject, data)
        return
    fitted = fit(subject, data, draws=100)
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


def test_an_item_without_annotations_has_the_prior(subject):
    member, case = subject
    name = "an item without annotations"
    need(name not in case.refuses, "answer for items without annotations: it says so in an error")
    rows = DEGENERATE[name]
    key = {Annotations: "num_labels", Rankings: "num_classes"}.get(member.takes[0])
    sizes = {"num_items": 3, **({key: 2} if key else {})}
    labels = fit(subject, make(subject, rows, **sizes)).labels().set_index("item").loc["1"]
    other = {**rows, "value": [0, 1]}  # what others received plays no part, up to the data's own default prior
    again = fit(subject, make(subject, other, **sizes)).labels().set_index("item").loc["1"]
    # Draws have an error of their own: five of them, of 200 draws or more.
    error = 1e-9 if member.engine("exact") else 5 * np.sqrt(0.25 / 200)
    assert labels["certainty"] == pytest.approx(again["certainty"], abs=error)
    if key:
        assert labels["certainty"] == pytest.approx(0.5, abs=error)


def test_unicode_ids(subject):
    data = make(subject)
    names = ["naïve", "患者", "🙂", "a b\tc"][: data.num_items]
    fitted = fit(subject, make(subject, items=names))
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
    data = make(subject)
    fitted = fit(subject, make(subject, items=[f"case {i}" for i in range(data.num_items)]))
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


def test_models_fits_and_data_are_copied_and_pickled(subject):
    member, case = subject
    fitted = fit(subject)
    top = top_of_draws(fitted)
    for other in (pickle.loads(pickle.dumps(member)), copy.copy(member), copy.deepcopy(member)):
        assert top_of_draws(fit((other, case))).tobytes() == top.tobytes()
    for other in (pickle.loads(pickle.dumps(fitted)), copy.copy(fitted), copy.deepcopy(fitted)):
        assert top_of_draws(other).tobytes() == top.tobytes()
        assert other.labels().equals(fitted.labels())
    data = fitted.data
    for other in (pickle.loads(pickle.dumps(data)), copy.copy(data), copy.deepcopy(data)):
        assert other.fingerprint() == data.fingerprint()


def test_pickled_data_are_a_pytree_in_another_process(subject, tmp_path):
    (tmp_path / "data.pickle").write_bytes(pickle.dumps(make(subject)))
    text = "import pickle, jax; data = pickle.load(open('data.pickle', 'rb')); assert len(jax.tree.leaves(data)) > 2"
    subprocess.run([sys.executable, "-c", text], check=True, cwd=tmp_path)


def test_data_are_a_pytree(subject):
    data = make(subject)
    leaves, structure = jax.tree.flatten(data)
    again = jax.tree.unflatten(structure, leaves)
    assert all(one is two for one, two in zip(leaves, jax.tree.leaves(again), strict=True))
    moved = jax.tree.map(jnp.asarray, data)
    assert moved.items is None
    np.testing.assert_allclose(outputs(fit(subject, moved)), outputs(fit(subject, data)), atol=1e-5)


def test_the_density_under_transformations(subject):
    with jax.enable_x64(True):
        check_density(*subject)


def check_density(member, case):
    subject = member, case
    need(member.density, "density")
    fitted = fit(subject, draws=10)
    priors = () if fitted.priors is None else (fitted.priors,)
    other = make(subject, {**case.rows, "annotator": case.rows["annotator"][::-1].copy()})
    if jax.tree.map(jnp.shape, other) != jax.tree.map(jnp.shape, fitted.data):
        other = fitted.data

    def latent(key):
        trace = handlers.trace(handlers.seed(member.model, key)).get_trace(fitted.data, *priors, **fitted.options)
        return {
            name: site["value"]
            for name, site in trace.items()
            if site["type"] == "sample" and not site["is_observed"]
        }

    def density(data, values):
        return log_density(member.model, (data, *priors), fitted.options, values)[0]

    values = latent(jax.random.key(0))
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
    fitted = fit(subject, data)
    assert np.isfinite(outputs(fitted)).all()
    for site, value in values.items():
        if member.sites.dims.get(site, ("entry",)) != ("entry",):  # true values are dense where the sites are ragged
            assert fitted.samples(10)[site].shape[2:] == np.shape(value)


def test_what_is_declared_is_consistent(subject):
    member, case = subject
    assert (member.density is not None) == bool({"nuts", "svi"} & set(member.methods))
    assert len(set(member.methods)) == len(member.methods)
    assert "labels" in member.table_names
    assert member.paper.lstrip().startswith("@")
    data = make(subject)
    fitted = fit(subject, data)
    for name, values in fitted.samples(5).items():
        assert name in member.sites, f"site '{name}' has no named dimensions"
        assert values.ndim >= 2
    assert all(field.help for field in member.settings.fields())
    assert set(fitted.posterior.hidden) == set(member.sites.hidden)
