"""The vectorised diagnostics against ArviZ, one scalar at a time, and against what must be true of them."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.models.diagnostics import convergence, first_look


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


def slow_ess(values):
    """Return the effective sample size of ``(chain, draw)`` with every lag summed one by one (equations 10 to 13)."""
    num_chains, num_draws = values.shape
    centred = values - values.mean(axis=1, keepdims=True)
    lags = [(centred[:, lag:] * centred[:, : num_draws - lag]).sum() / values.size for lag in range(num_draws)]
    spread = lags[0] + (values.mean(axis=1).var(ddof=1) if num_chains > 1 else 0)
    correlation = 1 - (lags[0] * num_draws / (num_draws - 1) - np.array(lags)) / spread
    correlation[0] = 1.0
    tau, least, pair = -1.0, np.inf, 0
    while pair < (num_draws - 1) // 2 - 1 and correlation[2 * pair : 2 * pair + 2].sum() > 0:
        least = min(least, correlation[2 * pair : 2 * pair + 2].sum())
        tau, pair = tau + 2 * least, pair + 1
    last = correlation[2 * pair]
    tau += last if correlation[2 * pair : 2 * pair + 2].sum() >= 0 else max(last, 0)
    return values.size / max(tau, 1 / np.log10(values.size))


@pytest.mark.parametrize("num_draws", [5, 15, 16, 31, 63, 64, 65, 300])
@pytest.mark.parametrize("coefficient", [-0.9, 0.0, 0.7, 0.93, 0.99])
def test_sequences_of_any_length_end_where_they_should(num_draws, coefficient):
    from consilience.models.diagnostics import _ess

    draws = np.stack([autoregressive(np.random.default_rng(seed), coefficient, (4, num_draws)) for seed in range(20)])
    np.testing.assert_allclose(_ess(draws), [slow_ess(one) for one in draws], rtol=1e-10)


@given(seed=st.integers(0, 999), coefficient=st.floats(-0.5, 0.6), num_draws=st.integers(100, 300))
@settings(max_examples=25)
def test_the_first_look_ranks_as_the_diagnostics_do(seed, coefficient, num_draws):
    rng = np.random.default_rng(seed)
    shape = (4, num_draws)
    draws = np.stack([autoregressive(rng, coefficient, shape) for _ in range(30)], axis=-1)
    draws[0, :, 7] += 40.0  # one chain elsewhere
    draws[0, :, 8] *= 40.0  # one chain wider: the mean does not tell
    draws[:, :, 9] = autoregressive(rng, 0.999, shape)
    r_hat, size = first_look(draws)
    assert set(np.argsort(-r_hat)[:3]) >= {7, 8}
    assert set(np.argsort(size)[:3]) >= {7, 9}
    np.testing.assert_array_equal(first_look(3 - 2 * draws)[0].argmax(), r_hat.argmax())


def test_a_first_look_at_nothing_tells_nothing():
    draws = np.random.default_rng(0).normal(size=(2, 50, 3))
    draws[0, 3, 1] = np.inf
    draws[:, :, 2] = 1.0
    r_hat, size = first_look(draws)
    assert np.isfinite(r_hat[0])
    assert np.isnan(r_hat[1:]).all()
    assert np.isnan(size[1])
    assert size[2] == np.inf  # a constant is known
    assert np.isnan(first_look(draws[:, :3])).all()
