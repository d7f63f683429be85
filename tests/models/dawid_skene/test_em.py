"""EM: the likelihood in closed form and never falling, zeros that stay, and rows that nothing tells."""

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.data import Annotations
from consilience.errors import UnsupportedRequest
from consilience.models.dawid_skene import MODEL, Diagonal, Priors, simulate


def log_likelihood(prevalence, confusion, data):
    """Return the log likelihood by a loop over items, classes and rows."""
    total = 0.0
    for item in range(data.num_items):
        joint = prevalence.copy()
        for row in np.flatnonzero(data.item == item):
            joint *= confusion[data.annotator[row], :, data.label[row]] ** data.weight[row]
        total += np.log(joint.sum())
    return total


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
@pytest.mark.parametrize("seed", range(5))
def test_the_likelihood_never_falls_and_is_that_of_the_estimate(seed):
    with jax.enable_x64(True):
        data, _ = simulate(jax.random.key(seed), Priors(), num_items=30, num_annotators=4, annotations_per_item=3)
        fit = cs.fit(MODEL, data, method="em", max_steps=15, tolerance=0)
    assert len(fit.elbo) == 15
    assert np.all(np.diff(fit.elbo) >= -50 * np.finfo(float).eps * np.abs(fit.elbo[1:]))
    # The objective is that of the estimate before the last step, so that the estimate is no worse.
    reached = log_likelihood(fit.posterior.prevalence, fit.posterior.confusion, data)
    assert reached >= fit.elbo[-1] - 1e-9
    with jax.enable_x64(True):
        longer = cs.fit(MODEL, data, method="em", max_steps=16, tolerance=0)
    np.testing.assert_allclose(reached, longer.elbo[-1], rtol=1e-12)


def test_zeros_stay_and_rows_that_nothing_tells_are_uniform():
    # Nobody ever gave label 2, and annotator 1 saw no item of class 0.
    data = Annotations.from_codes(
        [0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 0, 1], [0, 0, 1, 1, 1, 1], num_items=3, num_annotators=2, num_labels=3
    )
    fit = cs.fit(MODEL, data, method="em")
    np.testing.assert_array_equal(fit.prevalence()["share"].to_numpy()[2], 0)
    table = fit.confusion().set_index(["annotator", "class"])
    np.testing.assert_allclose(table.loc[("1", "0"), "probability"], 1 / 3, rtol=1e-6)
    np.testing.assert_array_equal(table.loc[("1", "0"), "annotations"], 0)
    np.testing.assert_allclose(table.loc[("0", "1"), "probability"], [0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(fit.labels()["probability"], 1, atol=1e-6)


def test_other_priors_are_refused():
    data, _ = simulate(jax.random.key(0), Priors(), num_items=5, num_annotators=3)
    with pytest.raises(UnsupportedRequest, match="1979"):
        cs.fit(MODEL, data, Priors(confusion=Diagonal(2.0)), "em")
