"""The sampler as a method of the member: through fit, in every form, refused, saved, and what it says of itself."""

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.errors import NotConjugate, UnsupportedRequest
from consilience.models.block_linkage import MODEL, Priors, simulate
from consilience.models.block_linkage.gibbs.problem import wide_pairs
from consilience.models.block_linkage.gibbs.sampler import prepare, start, sweep, wide_threshold
from consilience.models.block_linkage.gibbs.value_prior import most_probable_concentration

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")


@pytest.fixture(scope="module")
def records():
    return simulate(3, num_records=120, num_values=(61, 83, 40, 12), size_share=(0.8, 0.15, 0.05), num_sources=2)[0]


def quietly(records, **settings):
    return cs.fit("block-linkage", records, method="gibbs", **{"warmup": 100} | settings)


@pytest.fixture(scope="module")
def fitted(records):
    return quietly(records, draws=300, chains=2)


@pytest.mark.parametrize("empty", [0, 3])
def test_a_field_that_is_empty_in_every_record_changes_nothing(records, empty):
    value = np.asarray(records.value).copy()
    value[empty] = -1
    size = np.diff(records.first_value)
    size[empty] = 0
    without = records.replace(value=value, first_value=np.append(0, np.cumsum(size)), num_values=int(size.sum()))
    found = quietly(without, draws=20, warmup=20, chains=2)
    assert all(np.isfinite(values).all() for values in found.posterior.chains.values())
    assert found.num_entities().value > 0


def prepared(records, priors=None, **settings):
    return prepare(MODEL.resolve(records, priors, settings))


def test_sites_and_truth(fitted, records):
    """Sites are those of the NumPyro model and the clusters; the truth has the clusters that were drawn."""
    sites = {site: values.shape for site, values in fitted.posterior.chains.items()}
    assert sites == {
        "cluster": (2, 300, 120), "value_share": (2, 300, records.num_values), "distortion": (2, 300, 4),
        "intensity": (2, 300), "size_share": (2, 300, 6),
    }  # fmt: skip
    cluster = fitted.posterior.cluster
    assert cluster.dtype == np.int32
    np.testing.assert_array_equal(fitted.truth.clusters(), cluster)
    share = np.add.reduceat(fitted.posterior.value_share, records.first_value[:-1], axis=1)
    np.testing.assert_allclose(share, 1, rtol=1e-5)
    assert cs.score_partition(fitted, records)["pairwise-f1"] > 0.8


def test_diagnostics_are_about_numbers_not_labels(fitted):
    table = fitted.summary().set_index("quantity")
    assert "num_entities" in table.index
    assert "num_pairs" in table.index
    assert not table.index.str.contains("cluster|value_share").any()
    count = fitted.num_entities()
    assert table.loc["num_entities", "mean"] == pytest.approx(count.value)
    size = np.bincount(fitted.truth.clusters(slice(0, 1))[0])
    first = MODEL.sites.summarised(fitted.samples(), fitted.resolved)
    assert first["num_pairs"][0, 0] == (size * (size - 1) // 2).sum()
    assert first["num_entities"][0, 0] == np.count_nonzero(size)


def test_the_interval_carries_its_label(fitted):
    count, table = fitted.num_entities(), fitted.summary().set_index("quantity")
    assert not count.links_alone
    outside = fitted.truth.links_outside
    assert count.basis == (
        f"independent errors; pairs with log odds above −10, {outside:,.1f} links expected outside; "
        "effective sample size "
        f"{table['ess_bulk']['num_entities']:,.0f}"
    )
    assert f"as far as the model holds ({count.basis})" in repr(count)


def test_every_table(fitted):
    for name in MODEL.table_names:
        assert len(fitted.table(name)), name
    lost = fitted.loss().set_index("quantity")["value"]
    assert lost["threshold"] == 10
    assert 0.99 < lost["found_share"] <= 1
    assert lost["entities"] == pytest.approx(fitted.num_entities().value)


def test_a_saved_chain_is_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    again = cs.load_fit(tmp_path / "run")
    np.testing.assert_array_equal(again.posterior.cluster, fitted.posterior.cluster)
    assert again.findings() == fitted.findings()


def test_what_the_sampler_refuses(records):
    with pytest.raises(UnsupportedRequest, match="error classes, which the likelihood 'dirichlet-multinomial'"):
        prepared(records, likelihood="dirichlet-multinomial")
    from numpyro import distributions as dist

    with pytest.raises(NotConjugate, match="site 'distortion': the updates need a Beta prior"):
        prepared(records, Priors(distortion=dist.Uniform()))


def test_the_graph(records, make_records):
    """Pairs as they were asked for; and more of them where values are missing."""
    value = np.asarray(records.value).copy()
    assert wide_threshold(records) == 10
    value[0, 0] = -1
    assert wide_threshold(make_records(value)) == 12
    assert wide_threshold(make_records(value), 7.0) == 7
    problem = prepared(records, wide=5.0)
    pairs = wide_pairs(records, threshold=5.0)
    assert problem.first_neighbour[-1] == 2 * len(pairs.first) < 2 * len(wide_pairs(records, threshold=10.0).first)
    for one, other in zip(pairs.first[:20], pairs.second[:20], strict=True):
        begin, end = problem.first_neighbour[one : one + 2]
        assert other in problem.neighbour[begin:end]
    across = prepared(records, restriction="across")
    np.testing.assert_array_equal(across.source, records.source)
    assert not len(problem.source)


def test_no_two_records_of_a_file(records):
    fitted = quietly(records, draws=20, chains=2, restriction="across")
    cluster, source = fitted.truth.clusters(), np.asarray(records.source)
    first, second = np.triu_indices(len(source), 1)
    together = cluster[:, first] == cluster[:, second]
    assert together.any()
    assert not together[:, source[first] == source[second]].any()


def test_priors_of_values(records):
    """None stands for the most probable concentration of each field; a number is taken as it is."""
    learned = most_probable_concentration(np.asarray(records.value), np.asarray(records.first_value))
    found = prepared(records).value_concentration
    np.testing.assert_allclose(found[: len(learned)], learned, rtol=1e-6)
    assert (found > 0).all()
    assert prepared(records, Priors(value_share=2.0)).value_concentration == 2.0


@pytest.mark.parametrize("likelihood", ["hit-miss", "error-classes"])
@pytest.mark.parametrize("double", [False, True])
def test_a_sweep_in_both_precisions(records, double, likelihood):
    with jax.enable_x64(double):
        problem, random = prepared(records, likelihood=likelihood), np.random.default_rng(0)
        state = start(random, problem)
        after = sweep(random, state, problem)
    for values, before in zip(jax.tree.leaves(after), jax.tree.leaves(state), strict=True):
        assert values.dtype == before.dtype
        assert np.isfinite(values[: records.num_values] if values.ndim else values).all()
    assert after.distortion.dtype == (np.float64 if double else np.float32)
    assert after.cluster.dtype == np.int32
