"""The density with the linkage summed out, the likelihood of clusters and partitions drawn, against sums by hand."""

import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro import handlers
from numpyro.infer.util import log_density as joint_density
from scipy import stats
from scipy.special import gammaln

from consilience.errors import InvalidPrior, NotConjugate
from consilience.models.block_linkage.enumeration import size_terms
from consilience.models.block_linkage.gibbs.problem import State
from consilience.models.hit_miss import MODEL, gibbs, model
from consilience.models.hit_miss.model import drawn_clusters, log_records, log_sum_over_links
from consilience.models.hit_miss.priors import Priors, equal_sizes, hyperpriors
from tests.models.records import records_of

pytestmark = pytest.mark.usefixtures("double_precision")

PARTS = ((0, 1, 2), (3, 4))


ALL = (tuple(range(6)),)
SETTINGS = [
    {"prior": "labels"},
    {"prior": "labels", "components": PARTS},
    {"prior": "labels", "components": ((0, 1), (2, 3), (4, 5)), "restriction": "across"},
    {"prior": "partitions", "restriction": "across"},
    {"prior": "entities", "components": PARTS},
    {"prior": "entities", "restriction": "within", "largest": 2},
]


QUICK = SETTINGS[1], SETTINGS[3], SETTINGS[5]


def slowly(quick):
    return [pytest.param(one, marks=() if one in quick else pytest.mark.slow) for one in SETTINGS]


def name(settings):
    return " ".join(map(str, settings.values()))


def p_value(cluster, tiny):
    """Return the p-value of a chi-square test; partitions that are rare are taken together."""
    place = {one.tobytes(): number for number, one in enumerate(tiny.partitions.astype(np.int64))}
    drawn = [place[one.tobytes()] for one in cluster.astype(np.int64)]  # of one that is not allowed there is none
    observed = np.bincount(drawn, minlength=len(tiny.partitions))
    expected = tiny.probability * len(cluster)
    rare = expected < 10
    observed, expected = (np.append(numbers[~rare], numbers[rare].sum()) for numbers in (observed, expected))
    kept = expected > 0
    return stats.chisquare(observed[kept], expected[kept]).pvalue


@pytest.mark.parametrize("settings", slowly(QUICK), ids=name)
def test_sweeps_draw_partitions_as_often_as_they_are_probable(tiny, settings, monkeypatch):
    """Of chains that begin at exact draws, and of some that begin with all records apart."""
    made, random, sweep = tiny(**settings), np.random.default_rng(0), inspect.unwrap(gibbs.GIBBS.sweep)
    monkeypatch.setattr(gibbs, "prepared", lambda resolved: resolved.replace(data=made.data))
    problem = gibbs.prepare(MODEL.resolve(made.records, None, made.settings))
    known = made.state if problem.prior == "entities" else made.state._replace(intensity=None, size_share=None)

    def ended(begun, sweeps):
        cluster = begun
        for _ in range(sweeps):  # with θ, b, m and μ as they were
            cluster = sweep(random, known._replace(cluster=cluster), problem).cluster
        return cluster

    begun = made.partitions[random.choice(len(made.partitions), 1000, p=made.probability)].astype(np.int32)
    drawn = np.array([ended(one, 2) for one in begun])
    assert p_value(drawn, made) > 1e-5
    assert (drawn != begun).any(axis=1).mean() > 0.2  # it also moves
    assert p_value(np.array([ended(made.state.cluster, 12) for _ in range(200)]), made) > 1e-5


@pytest.mark.parametrize("settings", slowly(QUICK[:1]), ids=name)
def test_partitions_are_drawn_given_what_nuts_drew(tiny, settings):
    made = tiny(**settings)
    sites = {site: np.tile(values, (3000, *[1] * np.ndim(values))) for site, values in zip(
        ("value_share", "distortion", "intensity", "size_share"), made.state[1:5], strict=True
    )}  # fmt: skip
    sites["intensity"] = sites["intensity"].ravel()
    given = {"prior": made.settings["prior"], "largest": made.settings["largest"]}
    assert p_value(drawn_clusters(made.data, sites, key=jax.random.key(1), **given), made) > 1e-5


def test_likelihoods_of_clusters_are_those_worked_by_hand():
    share, value = np.array([0.6, 0.3, 0.1, 0.7, 0.3]), np.array([[2, 2, 0], [0, -1, 1]])
    problem = gibbs.prepare(MODEL.resolve(records_of(value, sizes=(3, 2)), None, {}))

    def likelihood(cluster, distortion):
        return np.exp(gibbs.log_likelihood(State(np.array(cluster), share, np.array(distortion)), problem))

    second = 0.7 * (0.7 + 0.3 * 0.7) * 0.3 * 0.3 + 0.3 * 0.3 * 0.7 * (0.7 + 0.3 * 0.3)
    found = [likelihood(cluster, (0.1, 0.3)) for cluster in ([0, 1, 2], [0, 0, 2], [0, 1, 0], [0, 0, 0])]
    expected = [0.1 * 0.1 * 0.6 * 0.21, 0.0829 * 0.6 * 0.21, 0.0114 * 0.1 * second, 0.005028 * second]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("largest", [1, 6, 40, 120])
def test_sizes_of_every_partition_weigh_the_same_in_single_precision(largest):
    terms = size_terms(jnp.ones((), jnp.float32), jnp.asarray(equal_sizes(largest), jnp.float32), largest, jnp)
    np.testing.assert_allclose(terms, 0, atol=1e-3)


@pytest.mark.parametrize("prior", ["labels", "partitions", "entities"])
@pytest.mark.parametrize(
    ("components", "restriction"), [(ALL, "none"), (PARTS, "none"), (PARTS, "across")]
)
def test_the_density_is_the_sum_over_partitions(tiny, prior, components, restriction):
    made = tiny(prior, components, restriction)
    given = made.state[1:3], made.state.size_share, made.state.intensity
    density = jax.jit(functools.partial(log_records, prior=prior))(made.data, *given[0], *given[1:])
    # The paper's prior is given without N!.
    constant = gammaln(7.0) if prior == "labels" else 0.0
    np.testing.assert_allclose(density + constant, made.log_total, rtol=1e-10)


def test_the_density_is_differentiable_where_partitions_are_impossible(tiny):
    made = tiny("labels", ((0, 1), (2, 3, 4)), "across")

    @jax.jit
    def density(share, distortion):
        return log_records(
            made.data, share, distortion, made.state.size_share, made.state.intensity, prior="labels"
        )

    gradients = jax.jit(jax.grad(density, (0, 1)))(made.state.value_share, made.state.distortion)
    step = 1e-6
    up, down = (density(made.state.value_share, made.state.distortion + [s, 0, 0]) for s in (step, -step))
    np.testing.assert_allclose(gradients[1][0], (up - down) / (2 * step), rtol=1e-5)
    assert all(np.isfinite(one).all() for one in gradients)


def test_sums_of_links_are_those_of_all_combinations():
    log_weight = jnp.log(jnp.array([[1.0, 2.0, 0.5], [1.0, 0.3, 0.0], [0.0, 1.0, 0.0]]))
    weight = np.exp(log_weight)
    cells = {
        (a, b, c): weight[0, a] * weight[1, b] * weight[2, c] / np.exp(gammaln(a + b + c + 1.0))
        for a in range(3) for b in range(3) for c in range(3)
    }  # fmt: skip
    log_sum = jax.jit(lambda given: log_sum_over_links(given, 5))(log_weight)
    np.testing.assert_allclose(log_sum, np.log(sum(cells.values())), rtol=1e-12)


def test_the_model_has_its_sites_and_density(tiny):
    made = tiny("entities")
    priors = Priors(value_share=0.7)
    trace = handlers.trace(handlers.seed(model, 0)).get_trace(made.data, priors, prior="entities", largest=4)
    values = {name: site["value"] for name, site in trace.items() if site["type"] == "sample" and name != "records"}
    assert set(values) == {"distortion", "value_log_weight", "size_log_odds", "intensity"}
    density, trace = joint_density(model, (made.data, priors), {"prior": "entities", "largest": 4}, values)
    own = sum(
        float(np.sum(trace[name]["fn"].log_prob(value))) for name, value in values.items()
    ) + log_records(
        made.data, trace["value_share"]["value"], values["distortion"], trace["size_share"]["value"],
        values["intensity"], prior="entities",
    )  # fmt: skip
    np.testing.assert_allclose(density, own, rtol=1e-10)
    for prior in ("labels", "partitions"):
        trace = handlers.trace(handlers.seed(model, 0)).get_trace(made.data, priors, prior=prior, largest=4)
        assert {"size_log_odds", "intensity"}.isdisjoint(trace)


def test_priors_are_checked(tiny):
    import numpyro.distributions as dist

    for wrong in (0.0, -1.0, np.inf, "one", None):
        with pytest.raises(InvalidPrior, match="positive finite"):
            Priors(value_share=wrong)
    data = tiny().data
    odd = Priors(intensity=dist.LogNormal(0.0, 1.0))
    with pytest.raises(NotConjugate, match="intensity"):
        hyperpriors(MODEL.resolve(data, odd, {"prior": "entities", "largest": 4}))
    assert hyperpriors(MODEL.resolve(data, odd, {"largest": 4})).size_share.shape == (4,)
