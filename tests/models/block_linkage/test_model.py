"""The NumPyro model: the linkage summed out, against brute force and against EM's evidence."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import log_density as joint_density

import consilience as cs
from consilience.errors import InvalidPrior, UnsupportedRequest
from consilience.models.block_linkage import MODEL, model
from consilience.models.block_linkage.em import log_base, log_prior
from consilience.models.block_linkage.enumeration import enumerate_blocks_jax, set_partitions, size_terms
from consilience.models.block_linkage.likelihoods import LIKELIHOODS
from consilience.models.block_linkage.linkage import Linkage
from consilience.models.block_linkage.model import linkable, log_density
from consilience.models.block_linkage.parameters import Parameters, value_codes
from consilience.models.block_linkage.priors import Hyperprior, Priors

VALUES = np.array([[0, 0, 1, 1, 2, -1], [0, 0, 0, 1, 1, 1], [3, 3, -1, 4, 5, 5]])
SIZES = np.array([0.6, 0.25, 0.15])

pytestmark = pytest.mark.usefixtures("double_precision")


def ways(size, shares):
    """Return s! of s records in any order, or 1 / e_s(φ) of records of s different sources."""
    if not len(shares):
        return math.factorial(size)
    return 1 / sum(math.prod(chosen) for chosen in itertools.combinations(shares, size))


def density_by_clusters(records, parameters, likelihood, allowed=lambda cluster: True):
    """Sum over all set partitions, each a product over its clusters."""
    total = 0.0
    of_sources = parameters.source_share[records.source] if len(parameters.source_share) else np.ones(1)
    table = np.append(parameters.value_share, 1)
    codes = value_codes(records.value, records.first_value)
    for labels in set_partitions(records.num_records):
        weight = 1.0
        for label in range(labels.max() + 1):
            cluster = np.flatnonzero(labels == label)
            size = len(cluster)
            if size > len(parameters.size_share) or not allowed(cluster):
                weight = 0.0
                break
            own = codes[:, cluster].T[:, :, None]
            marginal = LIKELIHOODS[likelihood].log_marginals(own, table[own], parameters.distortion, np)[-1, 0]
            share = np.prod(table[own])
            weight *= parameters.intensity * ways(size, parameters.source_share) * parameters.size_share[size - 1]
            weight *= share * math.exp(marginal)
        total += weight
    apart = -parameters.intensity - math.lgamma(records.num_records + 1)
    return math.log(total) + apart + float(np.log(of_sources).sum())


def parameters_of(records):
    return Parameters(linkable(records).share, np.array([0.1, 0.3, 0.2]), 4.0, SIZES)


def jax_density(data, parameters, likelihood="hit-miss"):
    share, distortion, intensity, sizes = map(jnp.asarray, parameters[:4])
    sources = jnp.asarray(parameters.source_share) if len(parameters.source_share) else None
    given = share, distortion, sizes, intensity, None, sources
    return jax.jit(lambda *given: log_density(data, *given, likelihood=likelihood))(*given)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_of_few_records_all_partitions_are_summed(make_records, likelihood):
    records = make_records(VALUES)
    parameters = parameters_of(records)
    expected = density_by_clusters(records, parameters, likelihood)
    assert np.isclose(jax_density(linkable(records), parameters, likelihood), expected, rtol=1e-12)


def test_restrictions_leave_partitions_out(make_records):
    source = np.array([0, 1, 0, 1, 1, 0])
    records = make_records(VALUES, source=source)
    parameters = parameters_of(records)
    rules = {
        "across": lambda cluster: len(set(source[cluster])) == len(cluster),
        "within": lambda cluster: len(set(source[cluster])) == 1,
    }
    for restriction, allowed in rules.items():
        expected = density_by_clusters(records, parameters, "hit-miss", allowed)
        density = jax_density(linkable(records, restriction=restriction), parameters)
        assert np.isclose(density, expected, rtol=1e-12)
        assert density < jax_density(linkable(records), parameters)


@pytest.mark.parametrize("share", [(0.7, 0.3), (0.5, 0.3, 0.2)])
def test_records_of_one_source_are_apart_in_the_prior_too(make_records, share):
    source = np.array([0, 1, 0, 1, len(share) - 1, 0])
    records = make_records(VALUES, source=source)
    parameters = parameters_of(records)._replace(source_share=np.array(share))
    expected = density_by_clusters(
        records, parameters, "hit-miss", lambda cluster: len(set(source[cluster])) == len(cluster)
    )
    assert np.isclose(jax_density(linkable(records, restriction="across"), parameters), expected, rtol=1e-12)


def test_em_ends_where_shares_of_sources_are_most_probable(make_records):
    source = np.array([0, 1, 0, 1, 2, 0])
    records = make_records(VALUES, source=source).replace(candidate=np.stack(np.triu_indices(6, 1), axis=1))
    found = cs.fit("block-linkage", records, restriction="across", threshold=50, likelihood="hit-miss").posterior
    data = linkable(records.replace(candidate=None), restriction="across")
    parameters = Linkage.of(found).parameters()

    def log_posterior(change):
        share = parameters.source_share * np.exp(change)
        share /= share.sum()
        return jax_density(data, parameters._replace(source_share=share)) + np.log(share).sum()

    best = log_posterior(np.zeros(3))
    for change in 0.1 * np.vstack([np.eye(3), -np.eye(3)]):
        assert log_posterior(change) < best


def test_of_many_records_it_is_the_evidence_of_em(simulate, fit_em):
    records = simulate(1_000)
    posterior = fit_em(records)
    parameters = posterior.parameters()
    data = linkable(records)
    apart = log_base(records, parameters)
    density = float(jax_density(data, parameters))
    evidence = posterior.evidence[-1] - log_prior(Hyperprior.of(MODEL.resolve(records)), parameters)
    assert evidence - apart > 100
    # Their candidates were found with different hyperparameters.
    assert np.isclose(density - apart, evidence - apart, rtol=5e-3)


def test_gradients_of_the_linkage_density(make_records):
    records = make_records(VALUES)
    data, parameters = linkable(records), parameters_of(records)

    @jax.jit
    def density(vector):
        distortion, sizes, intensity = vector[:3], vector[3:6], vector[6]
        return log_density(data, jnp.asarray(parameters.value_share), distortion, sizes, intensity)

    start = jnp.concatenate([jnp.asarray(parameters.distortion), jnp.asarray(SIZES), jnp.array([4.0])])
    gradient = jax.grad(density)(start)
    step = 1e-6
    for place, unit in enumerate(np.eye(len(start))):
        slope = (density(start + step * unit) - density(start - step * unit)) / (2 * step)
        assert np.isclose(gradient[place], slope, rtol=1e-6)


def test_the_model_is_priors_and_density(make_records):
    records = make_records(VALUES)
    sites = {"distortion": np.array([0.1, 0.3, 0.2]), "size_share": SIZES, "intensity": np.array(4.0)}
    sizes = dist.Dirichlet(np.array([1.0, 0.5, 0.3]))
    data = linkable(records)
    log_odds = np.log(SIZES[:-1]) - np.log(np.cumsum(SIZES[::-1])[::-1][1:])
    for priors in (Priors(), Priors(value_share=0.3), Priors(size_share=Shares(sizes))):
        values = dict(sites)
        if priors.size_share == Priors().size_share:
            del values["size_share"]
            values["size_log_odds"] = log_odds
        share = data.share
        if priors.value_share is not None:
            values["value_log_weight"] = np.log(np.linspace(0.5, 2.0, records.num_values))
            weight = np.exp(values["value_log_weight"])
            share = weight / np.bincount(data.field, weight)[data.field]
        total, trace = joint_density(model, (data, priors), {"largest": 3}, values)
        assert np.allclose(trace["size_share"]["value"], SIZES, rtol=1e-12)
        expected = jax_density(data, Parameters(share, sites["distortion"], 4.0, SIZES))
        expected += dist.Beta(1.0, 9.0).log_prob(sites["distortion"]).sum() + dist.Gamma(1.0, 1 / 6).log_prob(4.0)
        expected += sizes.log_prob(SIZES)
        if "size_log_odds" in values:
            first = jnp.asarray(log_odds)
            expected += jnp.linalg.slogdet(jax.jacobian(shares_of)(first)[:-1])[1]
        if priors.value_share is not None:
            # Of a logarithm: the density of the weight, times the weight.
            expected += (dist.Gamma(0.3, 1.0).log_prob(weight) + np.log(weight)).sum()
        assert np.isclose(total, expected, rtol=1e-10)


class Shares(dist.Distribution):
    """A prior of shares that is no Dirichlet distribution to look at."""

    support = dist.constraints.simplex

    def __init__(self, inner):
        self.inner = inner
        super().__init__(event_shape=inner.event_shape)

    def sample(self, key, sample_shape=()):
        return self.inner.sample(key, sample_shape)

    def log_prob(self, value):
        return self.inner.log_prob(value)


def shares_of(log_odds):
    """Break a stick by these odds."""
    share, rest = [], 1.0
    for odds in log_odds:
        share.append(rest * jax.nn.sigmoid(odds))
        rest = rest * jax.nn.sigmoid(-odds)
    return jnp.stack([*share, rest])


def test_shares_of_no_consequence_do_not_underflow(make_records):
    """In single precision, where the prior itself has shares far below what that can hold."""
    data = linkable(make_records(VALUES))
    with jax.enable_x64(False):
        sites = {
            "distortion": np.full(3, 0.1), "size_log_odds": np.array([2.0, 5.0, 120.0, 3.0, -150.0]), "intensity": 4.0,
        }  # fmt: skip
        density = jax.value_and_grad(lambda sites: joint_density(model, (data, Priors()), {}, sites)[0])
        value, slope = density(jax.tree.map(jnp.float32, sites))
    assert np.isfinite(value)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))


def test_records_are_prepared_outside_of_programs(make_records):
    records = make_records(VALUES)
    sites = {"distortion": np.full(3, 0.1), "size_log_odds": np.zeros(5), "intensity": np.array(4.0)}

    def density(data):
        return joint_density(model, (data, Priors()), {}, sites)[0]

    assert np.isclose(jax.jit(density)(linkable(records)), density(records))
    with pytest.raises(UnsupportedRequest, match="linkable"):
        jax.jit(density)(records)


def test_priors_of_wrong_shapes(make_records):
    records = make_records(VALUES)
    wrong = [
        Priors(distortion=dist.Beta(np.ones(2), np.ones(2))),
        Priors(size_share=dist.Dirichlet(np.ones(4))),
        Priors(intensity=dist.Gamma(np.ones(2), 1.0)),
    ]
    for priors in wrong:
        with pytest.raises(InvalidPrior), handlers.seed(rng_seed=0):
            model(records, priors)


def test_nuts_with_the_linkage_summed_out_agrees_with_enumeration(make_records):
    """Pairs are as probable on average over the draws of NUTS as on a grid over the only hyperparameter left free."""
    records = make_records(VALUES[:, :4])
    data = linkable(records)
    fixed = np.full(3, 0.1), np.array([0.7, 0.3])

    def one_site(data):
        intensity = numpyro.sample("intensity", dist.Gamma(4.0, 1.0))
        share, distortion, sizes = map(jnp.asarray, (data.share, *fixed))
        numpyro.factor("records", log_density(data, share, distortion, sizes, intensity))

    mcmc = MCMC(NUTS(one_site), num_warmup=200, num_samples=1_000, progress_bar=False)
    mcmc.run(jax.random.key(0), data)
    drawn = np.array(mcmc.get_samples()["intensity"])

    def pairs_of(intensity):
        terms = size_terms(intensity, jnp.asarray(fixed[1]), 4, jnp)
        share, distortion = jnp.asarray(data.share), jnp.asarray(fixed[0])
        values = jnp.asarray(data.value.T[:, :, None])
        return enumerate_blocks_jax(values, share, distortion, terms, LIKELIHOODS["hit-miss"]).pair[:, 0]

    def density(intensity):
        share, distortion, sizes = map(jnp.asarray, (data.share, *fixed))
        return log_density(data, share, distortion, sizes, intensity) + dist.Gamma(4.0, 1.0).log_prob(intensity)

    grid = np.linspace(0.01, 25, 400)
    log_weight = np.asarray(jax.jit(jax.vmap(density))(grid))
    weight = np.exp(log_weight - log_weight.max())
    every = jax.jit(jax.vmap(pairs_of))
    exact = weight @ np.asarray(every(grid)) / weight.sum()
    of_draws = np.asarray(every(drawn))
    error = of_draws.std(axis=0) / np.sqrt(np.asarray(effective_sample_size(of_draws[None])))
    assert (np.abs(of_draws.mean(axis=0) - exact) < 5 * error + 1e-4).all()
    assert error.max() < 0.01
    assert of_draws.std(axis=0).max() > 0.02
