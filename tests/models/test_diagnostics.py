"""The vectorised diagnostics against ArviZ, one scalar at a time, and against what must be true of them."""

import time

import numpy as np
import pytest

from consilience.models.diagnostics import convergence


def autoregressive(rng, coefficient, shape):
    noise = rng.normal(size=shape)
    values = np.empty(shape)
    values[:, 0] = noise[:, 0]
    for step in range(1, shape[1]):
        values[:, step] = coefficient * values[:, step - 1] + noise[:, step]
    return values


def scalars(num_chains, num_draws):
    """Draws of very different kinds, stacked on the last axis."""
    rng = np.random.default_rng(num_chains * num_draws)
    shape = (num_chains, num_draws)
    return np.stack(
        [
            rng.normal(size=shape),
            autoregressive(rng, 0.9, shape),
            autoregressive(rng, -0.7, shape),
            rng.exponential(size=shape) ** 3,
            rng.integers(0, 3, shape).astype(float),
            rng.normal(size=shape) + np.arange(num_chains)[:, None],
            rng.normal(size=shape) * (1 + np.arange(num_chains)[:, None]),
            np.cumsum(rng.normal(size=shape), axis=1),
            np.full(shape, 2.0),
        ],
        axis=-1,
    )


@pytest.mark.parametrize(("num_chains", "num_draws"), [(4, 100), (4, 101), (2, 13), (1, 50), (3, 4), (2, 8)])
@pytest.mark.parametrize(
    ("ours", "theirs", "options"),
    [
        ("r_hat", "rhat", {"method": "rank"}),
        ("ess_bulk", "ess", {"method": "bulk"}),
        ("ess_tail", "ess", {"method": "tail", "prob": (0.05, 0.95)}),
        ("ess_mean", "ess", {"method": "mean"}),
        ("mcse_mean", "mcse", {"method": "mean"}),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # ArviZ divides by zero for the constant
def test_numbers_are_those_of_arviz(num_chains, num_draws, ours, theirs, options):
    import arviz

    draws = scalars(num_chains, num_draws)
    reference = getattr(arviz, theirs)
    expected = [np.asarray(reference(draws[..., i], **options)).item() for i in range(draws.shape[-1])]
    np.testing.assert_allclose(getattr(convergence(draws), ours), expected, rtol=1e-7)


def test_shapes_and_missing_numbers():
    draws = np.random.default_rng(0).normal(size=(2, 60, 3, 4))
    draws[1, 7, 2, 3] = np.nan
    for numbers in convergence(draws):
        assert numbers.shape == (3, 4)
        assert np.isnan(numbers[2, 3])
        assert np.isfinite(np.delete(numbers.ravel(), -1)).all()
    assert np.isnan(convergence(draws[:, :3])).all()
    assert np.shape(convergence(draws[:, :, :0])) == (5, 0, 4)


def test_one_chain_has_no_r_hat():
    one = convergence(np.random.default_rng(0).normal(size=(1, 60, 3)))
    assert np.isnan(one.r_hat).all()
    assert np.isfinite(one._replace(r_hat=one.ess_bulk)).all()


def test_chains_that_disagree_are_found():
    rng = np.random.default_rng(1)
    draws = rng.normal(size=(4, 500, 2))
    draws[0, :, 1] += 1.0
    agree, disagree = convergence(draws).r_hat
    assert agree < 1.01 < disagree


def test_batches_give_the_same_numbers_and_ten_thousand_scalars_are_quick(monkeypatch):
    from consilience.models import diagnostics

    draws = np.random.default_rng(2).normal(size=(2, 100, 10_000)).astype(np.float32)
    began = time.process_time()
    whole = convergence(draws)
    assert time.process_time() - began < 5  # ArviZ takes more than half a minute
    monkeypatch.setattr(diagnostics, "_BATCH_VALUES", 2 * 100 * 999)
    np.testing.assert_array_equal(convergence(draws), whole)
