"""Priors of experts, views and weights: shapes, conjugacy, and what is said when they do not fit."""

import pickle

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from consilience.errors import InvalidPrior, NotConjugate, UnsupportedRequest
from consilience.models.expert_views import MODEL, PAPER_PRIORS, BetaPrior, Priors
from consilience.models.expert_views.priors import weight_prior
from consilience.models.expert_views.simulation import constraints_of

DATA = constraints_of(*np.array([[0, 1, 2], [0, 0, 1], [1, 2, 2], [1, 0, 1]]), np.eye(3)[:, :2], 3)


def resolved_of(priors, clusters=2, **settings):
    return MODEL.resolve(DATA, priors, {"clusters": clusters, **settings})


def beta_parameters(priors):
    return [resolved_of(priors).concentration(site) for site in ("sensitivity", "specificity")]


def shared(data):
    """State a prior with a mean that all experts have in common."""
    mean = numpyro.sample("mean", dist.Beta(2.0, 1.0))
    return dist.Beta(10 * mean, 10 * (1 - mean))


@pytest.mark.parametrize(("priors", "expected"), [(Priors(), [3, 1.5]), (PAPER_PRIORS, [10, 1])])
def test_parameters_of_the_experts_and_the_weights(priors, expected):
    for parameters in beta_parameters(priors):
        np.testing.assert_array_equal(parameters, [expected] * 3)
        assert parameters.dtype == np.float64
    prior = weight_prior(resolved_of(Priors(weight_scale=2.0), 4), 3)
    assert (prior.event_shape, prior.batch_shape) == ((3, 4), ())
    assert prior.log_prob(jnp.ones((3, 4))) == pytest.approx(-12 * (0.125 + np.log(2 * np.sqrt(2 * np.pi))), rel=1e-6)


@pytest.mark.parametrize(
    ("experts", "used"),
    [("two-coin", {"sensitivity", "specificity"}), ("symmetric", {"sensitivity"}), ("spammer", {"knowledge", "guess"})],
)
def test_priors_that_the_kind_of_experts_has_not_are_idle(experts, used):
    of_experts = {"sensitivity", "specificity", "answers_together", "answers_apart", "knowledge", "guess"}
    resolved = pickle.loads(pickle.dumps(resolved_of(Priors(), experts=experts)))
    assert resolved.idle_priors & set(vars(Priors())) == of_experts - used


@pytest.mark.parametrize(
    ("kind", "field", "value", "match"),
    [
        (BetaPrior, "a", -1, r"a of BetaPrior\(a, b\) is -1; give a positive finite number"),
        (BetaPrior, "b", np.inf, r"b of BetaPrior\(a, b\) is inf"),
        (BetaPrior, "b", "many", r"b of BetaPrior\(a, b\) is 'many'"),
        (Priors, "concentration", -1.0, r"concentration is -1\.0; give a positive finite number"),
        (Priors, "weight_scale", 0, "weight_scale is 0; give a positive"),
        (Priors, "sensitivity", "x", "sensitivity is 'x'; give a NumPyro distribution, or a function of the data"),
        (Priors, "guess", None, "guess is None"),
        (Priors, "weight", 1.0, r"weight is 1\.0"),
        (Priors, "logits", 3, "logits is 3; give a function of weights and features, or None"),
    ],
)
def test_priors_that_make_no_sense(kind, field, value, match):
    priors = kind()
    object.__setattr__(priors, field, value)  # the types of arguments are checked in tests before anything else
    with pytest.raises(InvalidPrior, match=match):
        priors.__post_init__()


def test_priors_are_checked_when_they_are_made():
    with pytest.raises(InvalidPrior, match="a of BetaPrior"):
        BetaPrior(-1.0, 2.0)
    with pytest.raises(InvalidPrior, match="concentration is 0"):
        Priors(concentration=0.0)


def test_knowledge_is_believed_in_as_little_as_accuracies():
    own = resolved_of(None).prior("knowledge")
    np.testing.assert_array_equal([own.concentration1, own.concentration0], [3, 1.5])


def test_a_prior_for_each_expert():
    own = Priors(sensitivity=dist.Beta(jnp.array([1.0, 2.0, 3.0]), 1.0), specificity=lambda data: dist.Beta(4.0, 2.0))
    sensitivity, specificity = beta_parameters(own)
    np.testing.assert_array_equal(sensitivity, [[1, 1], [2, 1], [3, 1]])
    np.testing.assert_array_equal(specificity, [[4, 2]] * 3)
    with pytest.raises(InvalidPrior, match=r"'sensitivity' has batch shape \(2,\).*\(3,\), one .* for each expert"):
        beta_parameters(Priors(sensitivity=dist.Beta(jnp.ones(2), 1.0)))
    with pytest.raises(InvalidPrior, match="'specificity' is float"):
        resolved_of(Priors(specificity=lambda data: 0.9)).prior("specificity")


def test_priors_of_experts_that_are_no_beta_distributions():
    with pytest.raises(NotConjugate, match="site 'specificity': the updates need a Beta prior, not Uniform"):
        beta_parameters(Priors(specificity=dist.Uniform(0.5, 1.0)))
    with pytest.raises(NotConjugate, match="site 'sensitivity': .* draws its own"):
        beta_parameters(Priors(sensitivity=shared))


def test_priors_of_weights():
    by_feature = dist.Laplace(jnp.zeros((3, 4)), 1.0).to_event(2)
    assert weight_prior(resolved_of(Priors(weight=by_feature), 4), 3) is by_feature
    with pytest.raises(InvalidPrior, match=r"'weight' has event shape \(3, 4\), expected \(3, 5\)"):
        weight_prior(resolved_of(Priors(weight=by_feature), 5), 3)
    # A link of one's own takes what it takes.
    assert weight_prior(resolved_of(Priors(weight=by_feature, logits=lambda w, x: x @ w[:, :2]), 5), 3) is by_feature
    of_experts = Priors(weight=lambda data: dist.Normal(jnp.zeros(data.num_experts), 1.0), logits=max)
    with pytest.raises(InvalidPrior, match=r"'weight' has batch shape \(3,\).*\.to_event"):
        weight_prior(resolved_of(of_experts, 5), 3)


def test_the_number_of_views():
    sizes = [resolved_of(None).replace(data=DATA.replace(num_experts=number)).size("view") for number in (1, 2, 5, 10)]
    assert sizes == [1, 2, 4, 6]
    assert resolved_of(None, views=3).size("view") == 3
    with pytest.raises(UnsupportedRequest, match="there are 3 experts, .* views is 4; give 3 at most"):
        resolved_of(None, views=4).size("view")
