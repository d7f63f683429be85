"""The skeleton of the contributor's page is a member like any other; the battery runs over it too (tests/laws)."""

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import consilience as cs
from consilience.data import Annotations
from consilience.errors import ConsilienceWarning, UnsupportedRequest
from tests.loading import load

ITEM, LABEL = np.array([0, 0, 0, 1, 1]), np.array([1, 1, 0, 0, 0])


@pytest.fixture(scope="module")
def skeleton():
    return load("docs/developer/skeleton_member.py")


@pytest.fixture
def answers():
    return Annotations.from_codes(ITEM, np.arange(5), LABEL, items=["a", "b", "c"])


def test_answers_are_added_to_the_prior(skeleton, answers):
    fit = cs.fit(skeleton.MODEL, answers, reliability=2, prior_answers=0.5)
    np.testing.assert_allclose(fit.posterior.share, [[4.5, 2.5], [0.5, 4.5], [0.5, 0.5]])
    table = fit.shares()
    assert table["item"].tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(table["mean"], [4.5 / 7, 0.1, 0.5])
    np.testing.assert_allclose(table["upper"], stats.beta(*fit.posterior.share.T).ppf(0.975), rtol=1e-6)
    assert fit.labels()["label"].tolist() == ["1", "0", "0"]
    assert [note.text for note in fit.findings()] == [
        "1 of 3 items have fewer than two answers: the prior says as much of them"
    ]


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_another_family_of_priors_goes_to_nuts(skeleton, answers):
    with pytest.warns(ConsilienceWarning, match="fitted by nuts; no exact posterior: site 'share'.*Beta.*Uniform"):
        fit = cs.fit(skeleton.MODEL, answers, skeleton.Priors(share=dist.Uniform(0.0, 1.0)), draws=200, warmup=200)
    same = cs.fit(skeleton.MODEL, answers).shares()["mean"]
    summary = fit.summary()
    assert np.abs((fit.shares()["mean"] - same) / summary["mcse"]).max() < 5


def test_a_prior_that_looks_at_data_simulates(skeleton):
    """There are no data yet, but their sizes are known."""
    priors = skeleton.Priors(share=lambda data: dist.Beta(float(data.num_items), data.num_annotators * data.num_labels))
    data, values = skeleton.simulate(jax.random.key(0), priors, num_items=4000, num_annotators=2)
    assert (data.num_items, data.num_annotators, data.num_labels) == (4000, 2, 2)
    mean = 4000 / 4004
    error = np.sqrt(mean * (1 - mean) / 4005 / 4000)
    assert abs(values["share"].mean() - mean) < 5 * error
    _, wide = skeleton.simulate(jax.random.key(0), num_items=4000, prior_answers=3.0)
    assert abs(wide["share"].var() * 28 - 1) < 5 * np.sqrt(2 / 4000)


def test_three_labels_are_refused(skeleton):
    with pytest.raises(UnsupportedRequest, match="takes two labels, and the data have 3"):
        cs.fit(skeleton.MODEL, Annotations.from_codes([0], [0], [2]))
