"""The numbers of the 1979 table, which Dawid and Skene printed and which later programs reproduce."""

import jax
import numpy as np
import pytest

import consilience as cs


@pytest.fixture(scope="module")
def data():
    return cs.load("dawid-skene-1979")


def test_em_is_the_estimate_of_1979(data):
    with jax.enable_x64(True):
        fit = cs.fit("dawid-skene", data, method="em", tolerance=1e-14)
    np.testing.assert_allclose(fit.elbo[:2], [-205.091138, -194.550952], atol=1e-6)
    np.testing.assert_allclose(fit.elbo[-1], -192.890881, atol=1e-6)
    np.testing.assert_allclose(fit.prevalence()["share"], [0.3996, 0.4220, 0.1118, 0.0667], atol=5e-5)
    assert fit.labels()["label"].value_counts().to_dict() == {"1": 18, "2": 19, "3": 5, "4": 3}
    assert fit.prevalence()["lower"].isna().all()


def test_cavi_ends_at_the_known_bound(data):
    with jax.enable_x64(True):
        fit = cs.fit("dawid-skene", data, tolerance=1e-14)
    np.testing.assert_allclose(fit.elbo[-1], -284.598957, atol=1e-6)
    np.testing.assert_allclose(fit.prevalence()["share"], [0.4023, 0.4343, 0.1225, 0.0409], atol=5e-5)
    assert fit.labels()["label"].value_counts().to_dict() == {"1": 19, "2": 20, "3": 5, "4": 1}
