"""The density with the linkage summed out, and the likelihood of a cluster, against sums by hand."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro import handlers
from numpyro.infer.util import log_density as joint_density
from scipy.special import gammaln

from consilience.errors import InvalidPrior, NotConjugate
from consilience.models.block_linkage.enumeration import size_terms
from consilience.models.hit_miss import MODEL, model
from consilience.models.hit_miss.links import draw_all_links, log_sum_over_links
from consilience.models.hit_miss.marginal import log_marginals, shown
from consilience.models.hit_miss.model import log_records
from consilience.models.hit_miss.priors import Priors, equal_sizes, hyperpriors

pytestmark = pytest.mark.usefixtures("double_precision")

PARTS = ((0, 1, 2), (3, 4))


@jax.jit
def relative_marginals(inside, value, share, distortion, field):
    return log_marginals(inside, shown(value, share, distortion, field))


def test_hit_miss_marginals_are_those_worked_by_hand():
    share, value = np.array([0.6, 0.3, 0.1]), np.array([[2], [2], [0]])
    inside = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1]], bool)
    relative = relative_marginals(inside, value, share, np.array([0.1]), np.zeros(3, int))
    alone = np.where(inside, share[value[:, 0]], 1).prod(axis=1)
    np.testing.assert_allclose(np.exp(relative) * alone, [0.1, 0.0829, 0.0114, 0.005028], rtol=1e-10)


@pytest.mark.parametrize("largest", [1, 6, 40, 120])
def test_sizes_of_every_partition_weigh_the_same_in_single_precision(largest):
    terms = size_terms(jnp.ones((), jnp.float32), jnp.asarray(equal_sizes(largest), jnp.float32), largest, jnp)
    np.testing.assert_allclose(terms, 0, atol=1e-3)


def test_marginals_of_sets_leave_other_records_and_missing_values_out():
    share, distortion = np.array([0.6, 0.3, 0.1, 0.7, 0.3]), np.array([0.1, 0.3])
    value, field = np.array([[2, 3], [2, -1], [0, 4]]), np.array([0, 0, 0, 1, 1])
    inside = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 0]], bool)
    second = (0.7 * (0.7 + 0.3 * 0.7) * 0.3 * 0.3 + 0.3 * 0.3 * 0.7 * (0.7 + 0.3 * 0.3)) / (0.7 * 0.3)
    expected = np.log([0.0829 / 0.01, 0.0114 / 0.06 * second, 1.0])
    np.testing.assert_allclose(relative_marginals(inside, value, share, distortion, field), expected, atol=1e-12)


@pytest.mark.parametrize("prior", ["labels", "partitions", "entities"])
@pytest.mark.parametrize(
    ("components", "restriction"), [((tuple(range(6)),), "none"), (PARTS, "none"), (PARTS, "across")]
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
    up, down = (density(made.state.value_share, made.state.distortion.at[0].add(s)) for s in (step, -step))
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
    keys = jax.random.split(jax.random.key(0), 20_000)
    drawn = np.asarray(jax.jit(jax.vmap(lambda key: draw_all_links(key, log_weight, 5)))(keys))
    total = sum(cells.values())
    for cell, own in cells.items():
        share = own / total
        error = np.sqrt(max(share * (1 - share), 0) / len(drawn))
        assert abs((drawn == cell).all(axis=1).mean() - share) <= 5 * error, cell


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
