"""The sampler as a method of the member: through fit, in every form, refused, saved, and what it says of itself."""

import dataclasses
import importlib.util
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import consilience as cs
from consilience.errors import ConsilienceWarning, DiagnosticWarning, NotConjugate, UnsupportedRequest
from consilience.models.block_linkage import MODEL, Priors, simulate
from consilience.models.block_linkage.gibbs.hyperparameters import Counts, draw_fields, draw_hyperparameters
from consilience.models.block_linkage.gibbs.links import redraw_links
from consilience.models.block_linkage.gibbs.problem import LinkProblem, State, wide_pairs
from consilience.models.block_linkage.gibbs.sampler import prepare, start, sweep, wide_threshold
from consilience.models.block_linkage.gibbs.value_prior import most_probable_concentration


@pytest.fixture(scope="module")
def records():
    return simulate(3, num_records=120, num_values=(61, 83, 40, 12), size_share=(0.8, 0.15, 0.05), num_sources=2)[0]


def quietly(records, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiagnosticWarning)
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


def test_without_numba_links_are_not_drawn_slowly_in_silence(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    many = simulate(3, num_records=600, num_values=(61, 83, 40, 12))[0]
    with pytest.warns(ConsilienceWarning, match=r"drawn by Python.*pip install 'consilience\[compiled\]'"):
        prepared(many)


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
        f"hit-miss errors; pairs with log odds above -10, {outside:,.1f} links expected outside; effective sample size "
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


def test_a_saved_fit_is_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    again = cs.load_fit(tmp_path / "run")
    np.testing.assert_array_equal(again.posterior.cluster, fitted.posterior.cluster)
    assert again.findings() == fitted.findings()


def test_what_it_takes(records):
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
    assert len(np.unique(problem.source)) == records.num_records


def test_data_of_like_size_share_a_program():
    problems = [prepared(simulate(seed, num_records=200, num_values=(40, 30, 20, 12))[0]) for seed in (1, 2)]
    assert len({int(problem.first_neighbour[-1]) for problem in problems}) == 2, "else the test would tell nothing"
    shapes = [jax.tree.map(np.shape, dataclasses.asdict(problem)) for problem in problems]
    assert shapes[0] == shapes[1]


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


@pytest.mark.parametrize("double", [False, True])
def test_a_sweep_in_both_precisions(records, double):
    with jax.enable_x64(double):
        problem, random = prepared(records), np.random.default_rng(0)
        state = start(random, problem)
        after = sweep(random, state, problem)
    for values, type_ in zip(jax.tree.leaves(after), jax.tree.leaves(state), strict=True):
        assert values.dtype == type_.dtype
        assert np.isfinite(values).all()
    assert after.distortion.dtype == (np.float64 if double else np.float32)
    assert after.cluster.dtype == np.int32


# ---- the posterior ----

NUMBER, LARGEST, VALUES = 5, 3, (3, 4)
FIELD = np.repeat([0, 1], VALUES)
PRIOR = {
    "value_concentration": np.array(0.8), "distortion": np.array([[2.0, 6.0], [1.0, 3.0]]),
    "intensity": np.array([4.0, 1.0]), "size_share": np.array([4.0, 2.0, 1.0]),
}  # fmt: skip


def drawn_from_the_prior(num_sets, seed=0):
    """Draw θ, b, m, μ, partition and records given that there are five of these; other numbers are refused."""
    generator = np.random.default_rng(seed)
    tried = 40 * num_sets
    intensity = generator.gamma(PRIOR["intensity"][0], 1 / PRIOR["intensity"][1], tried)
    size_share = generator.dirichlet(PRIOR["size_share"], tried)
    size = 1 + (generator.random((tried, NUMBER, 1)) > np.cumsum(size_share, axis=1)[:, None, :-1]).sum(axis=2)
    entities = generator.poisson(intensity)
    there = np.arange(NUMBER) < entities[:, None]
    fits = np.flatnonzero(((size * there).sum(axis=1) == NUMBER) & (entities <= NUMBER))[:num_sets]
    assert len(fits) == num_sets
    intensity, size_share = intensity[fits], size_share[fits]
    entity = np.stack([np.repeat(np.arange(NUMBER), own) for own in size[fits] * there[fits]])
    entity = generator.permuted(entity, axis=1)
    concentration, beta = PRIOR["value_concentration"], PRIOR["distortion"]
    share = [generator.dirichlet(np.full(values, concentration), num_sets) for values in VALUES]
    share = np.concatenate(share, axis=1)
    distortion = generator.beta(*beta.T, (num_sets, len(VALUES)))
    first = (entity[:, :, None] == entity[:, None]).argmax(axis=1)
    value = np.empty((num_sets, NUMBER, len(VALUES)), np.int32)
    for field, begin in enumerate(np.cumsum((0, *VALUES))[:-1]):
        end = np.cumsum(share[:, begin : begin + VALUES[field]], axis=1)
        true, other = (
            begin + (generator.random((num_sets, NUMBER, 1)) > end[:, None, :-1]).sum(axis=2) for _ in range(2)
        )
        true = np.take_along_axis(true, first, axis=1)
        wrong = generator.random((num_sets, NUMBER)) < distortion[:, field, None]
        value[:, :, field] = np.where(wrong, other, true)
    value[generator.random(value.shape) < 0.1] = -1
    return State(first.astype(np.int32), share, distortion, intensity, size_share), value


def functions_of(state, value):
    """Return statistics of the hyperparameters, the partition and the records together, ``(set, statistic)``."""
    together = state.cluster[:, :, None] == state.cluster[:, None]
    agree = (value[:, :, None] == value[:, None]) & (value >= 0)[:, :, None]
    upper = np.triu(np.ones((NUMBER, NUMBER), bool), 1)
    number = (state.cluster == np.arange(NUMBER)).sum(axis=1)
    pairs = (together & upper).sum(axis=(1, 2))
    agreeing = (agree & (together & upper)[..., None]).sum(axis=(1, 2))
    agreeing_at_all = (agree & upper[..., None]).sum(axis=(1, 2))
    shown = np.take_along_axis(state.value_share, np.maximum(value.reshape(len(value), -1), 0), axis=1).mean(axis=1)
    log_share = np.log(np.maximum(state.size_share, 1e-3))
    columns = [
        number, pairs, state.intensity, state.intensity**2, state.intensity * number, shown, *log_share.T,
        *state.distortion.T, *(state.distortion**2).T, *(state.distortion * agreeing_at_all).T, *agreeing.T,
        *(state.distortion * agreeing).T, *(state.value_share**2).T, *(log_share * pairs[:, None]).T,
    ]  # fmt: skip
    return np.stack(columns, axis=1)


def largest_z(swept, *, links=redraw_links, rest=draw_hyperparameters, num_sets=20_000, sweeps=2):
    """Return the largest |z| of the statistics, after some sweeps against before.

    Parameters and records are drawn from the prior, so that sweeps of a right sampler leave all their statistics as
    they are, those of both together included.
    """
    with jax.enable_x64(True):
        state, value = drawn_from_the_prior(num_sets)
        edges = np.array([(one, other) for one in range(NUMBER) for other in range(NUMBER) if one != other])
        first = np.arange(NUMBER + 1) * (NUMBER - 1)
        problem = LinkProblem(
            value=value[0], field=FIELD, source=np.arange(NUMBER), first_neighbour=first, neighbour=edges[:, 1],
            **PRIOR,
        )  # fmt: skip
        after = swept(links, rest, state, problem, value, sweeps)
        moved = functions_of(after, value) - functions_of(state, value)
    return np.abs(moved.mean(axis=0) / (moved.std(axis=0) / np.sqrt(num_sets))).max()


def test_the_joint_distribution(swept):
    """Geweke (2004), Getting it right; given the number of records."""
    assert largest_z(swept) < 5


def _every_value_once(key, cluster, state, problem):
    """Count every value that a record shows for θ: what plug-in shares of the records do."""
    drawn = draw_hyperparameters(key, cluster, state, problem)
    counts = Counts(jnp.zeros(7).at[problem.value].add(problem.value >= 0), jnp.zeros((2, 2)))
    share, _ = draw_fields(key, counts, problem.field, problem.value_concentration, problem.distortion)
    return drawn._replace(value_share=share)


def _agreeing_is_never_distorted(key, cluster, state, problem):
    """Take every record for distorted that differs from the first one of its cluster, and no other."""
    drawn, first = draw_hyperparameters(key, cluster, state, problem), problem.value[cluster]
    both = (problem.value >= 0) & (first >= 0) & (cluster != np.arange(NUMBER))[:, None]
    same = problem.value == first
    counts = jnp.stack([(both & ~same).sum(axis=0), (both & same).sum(axis=0)], axis=1)
    counts = Counts(jnp.zeros(7), counts.astype(float))
    _, rate = draw_fields(key, counts, problem.field, problem.value_concentration, problem.distortion)
    return drawn._replace(distortion=rate)


def _one_entity_fewer(key, cluster, state, problem):
    """Draw m as if there were an entity fewer."""
    rate = problem.intensity - jnp.array([1.0, 0.0])
    return draw_hyperparameters(key, cluster, state, dataclasses.replace(problem, intensity=rate))


def _without_sizes(random, state, problem):
    """Forget the factor n + 1 of joining."""
    weight = state.size_share / np.cumprod(np.arange(1.0, LARGEST + 1))
    return redraw_links(random, state._replace(size_share=weight), problem)


def _with_values_of_records(random, state, problem):
    """Take values for equally common."""
    return redraw_links(random, state._replace(value_share=1 / np.asarray(VALUES, float)[FIELD]), problem)


@pytest.mark.parametrize(
    "mutant",
    [
        dict(rest=_every_value_once), dict(rest=_agreeing_is_never_distorted), dict(rest=_one_entity_fewer),
        dict(links=_without_sizes), dict(links=_with_values_of_records),
    ],
    ids=["every-value", "agreeing", "one-fewer", "sizes", "equal-values"],
)  # fmt: skip
@pytest.mark.slow
def test_the_joint_distribution_catches_mistakes(mutant, swept):
    assert largest_z(swept, **mutant) > 6
