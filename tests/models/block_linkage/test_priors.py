"""Priors of distortion: one for all fields or one for each, and what is said of others."""

import numpy as np
import numpyro.distributions as dist
import pytest

import consilience as cs
from consilience.errors import InvalidPrior, UnsupportedRequest
from consilience.models.block_linkage import MODEL, Priors, RareDistortion
from consilience.models.block_linkage.priors import Hyperprior

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")

TABLE = {"id": list("abcd"), "name": ["ada", "ada", "max", "max"], "city": ["x", "x", "y", "y"]}


def test_one_for_all_fields_or_one_for_each(simulate):
    records = simulate(200, numbers=(20, 30), exponents=(0, 0))
    for a, b, expected in ((1, 99, [[1, 99]] * 2), ([1, 5], 9, [[1, 9], [5, 9]]), ((1, 5), [9, 5], [[1, 9], [5, 5]])):
        prior = RareDistortion(a, b)
        assert Hyperprior.of(MODEL.resolve(records, Priors(distortion=prior))).distortion.tolist() == expected
        made = prior(records)
        assert isinstance(made, dist.Beta)
        assert made.batch_shape == (() if isinstance(a, int) else (2,))
        # Through NumPyro's distribution it is the same.
        through = Hyperprior.of(MODEL.resolve(records, Priors(distortion=made))).distortion
        np.testing.assert_allclose(through, expected)


def test_a_strong_prior_is_kept(simulate, fit_em):
    records = simulate(300, numbers=(20, 30, 40), exponents=(0, 0, 0))
    strong = fit_em(records, Priors(distortion=RareDistortion(a=[1, 1, 3e6], b=[9, 9, 7e6])))
    assert strong.distortion[2] == pytest.approx(0.3, abs=1e-3)
    assert (strong.distortion[:2] < 0.2).all()


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (RareDistortion(a=[1, 2, 3]), "has 3 numbers a; give one for all fields, or one for each of the 2 fields that"),
        (RareDistortion(b=[1]), r"1 numbers b; .* compared: name, city, as in RareDistortion\(a=\[1, 1, 5\]"),
        (RareDistortion(a=-1), "has a=-1; give numbers above 0"),
        (RareDistortion(a="few"), "has a='few'; give numbers above 0"),
        (RareDistortion(b=[[1], [1, 2]]), "give numbers above 0"),
        (dist.Beta(np.ones(3), 9.0), r"batch shape \(3,\), expected \(\) or \(2,\), one distribution for each field"),
    ],
)
def test_what_does_not_fit_the_fields(prior, message):
    with pytest.raises(InvalidPrior, match=message):
        cs.link(TABLE, priors=Priors(distortion=prior))


def test_other_things_are_no_priors():
    with pytest.raises(UnsupportedRequest, match=r"priors= is a dict; give .* Priors\(distortion=RareDistortion"):
        cs.link(TABLE, priors={"distortion": 0.1})


def test_link_takes_priors():
    fit = cs.link(TABLE, priors=Priors(distortion=RareDistortion(a=[1, 7e6], b=[9, 3e6])), draws=10)
    assert fit.posterior.distortion[1] == pytest.approx(0.7, abs=1e-3)


@pytest.mark.parametrize("value", [-1.0, 0, np.inf, "x", [1.0, 2.0]])
def test_a_concentration_of_values_that_is_no_positive_number_is_refused(value):
    with pytest.raises(InvalidPrior, match="value_share is .*; give a positive finite number"):
        Priors(value_share=value)
