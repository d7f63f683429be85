r"""Is a sampler right? Geweke's joint-distribution test and simulation-based calibration; neither knows any model.

Both use that parameters drawn from the prior, with data drawn given them, are draws of the joint distribution
:math:`p(\theta)\,p(y \mid \theta)`, whatever the model is.

**Joint-distribution test** (Geweke 2004). A sweep of a correct sampler leaves :math:`p(\theta \mid y)` as it is, and
drawing the data anew leaves :math:`p(y \mid \theta)` as it is, so that the two in turns stay at the joint distribution
from which the chain started. The mean of any function along a chain minus its value at the start then has expectation
zero. Many independent chains, each with a start of its own, give the standard error of that difference without any
estimate of autocorrelation. An error of the sampler compounds from round to round, which makes this the sharper of the
two tests. Second moments and the log likelihood show errors that no first moment shows.

**Simulation-based calibration** (Talts et al. 2018). The rank of a true value among draws of its posterior is uniform.
It sees the whole of an inference method: start, warm-up, thinning, approximation. A quantity with ties, such as a
label, needs its ties broken at random; without that a correct sampler fails.

References
----------
Geweke (2004), Getting it right: joint distribution tests of posterior simulators, JASA 99(467).
Talts, Betancourt, Simpson, Vehtari & Gelman (2018), Validating Bayesian inference algorithms with simulation-based
calibration, arXiv:1804.06788.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from consilience.arrays import Array, Float, Int, Key
from consilience.errors import NonFinite

# The chi-square distribution of the statistic needs some expected ranks in every bin.
_FEWEST_IN_A_BIN, _MOST_BINS = 20, 20


# ---- Geweke's joint-distribution test ----


@dataclass(frozen=True, kw_only=True, eq=False)
class JointDistributionTest:
    """How far the functions moved from the joint distribution, in units of their own standard error.

    Parameters
    ----------
    functions : their names.
    difference : float64, shape ``(function,)``; mean along the chains minus the value at their start.
    standard_error : float64, shape ``(function,)``.
    num_chains : how many independent chains there were.
    """

    functions: tuple[str, ...]
    difference: np.ndarray
    standard_error: np.ndarray
    num_chains: int

    @property
    def z(self) -> Float[np.ndarray, " function"]:
        """Difference over standard error; infinite where all chains moved by exactly the same, or to NaN."""
        # A function that never moved, such as a constant, says nothing against the sampler.
        unmoved = np.where(self.difference == 0, 0.0, np.inf)
        z = np.divide(self.difference, self.standard_error, out=unmoved, where=self.standard_error > 0)
        return np.where(np.isnan(z), np.inf, z)

    @property
    def largest(self) -> float:
        """Largest |z| of all functions; a correct sampler stays below 4.5 (p = 7e-6 for each function)."""
        return float(np.abs(self.z).max())

    @property
    def table(self) -> Any:
        """Data frame with the columns ``function, difference, standard_error, z``."""
        import pandas

        columns = {"difference": self.difference, "standard_error": self.standard_error, "z": self.z}
        return pandas.DataFrame({"function": self.functions, **columns})


def joint_distribution_test(
    key: Key,
    start: Callable[[Key], tuple[Any, Any]],
    sweep: Callable[[Key, Any, Any], Any],
    resimulate: Callable[[Key, Any, Any], tuple[Any, Any]],
    functions: Callable[[Any, Any], Mapping[str, Array]],
    *,
    rounds: int,
) -> JointDistributionTest:
    """Run Geweke's test on many independent chains at once.

    All functions work on the whole batch of chains. ``values`` and ``data`` are what the functions make of them: any
    PyTree, also one that carries a sampler's auxiliary variables.

    Parameters
    ----------
    start : ``start(key)`` -> (values, data), every chain a draw of the prior and of data given it.
    sweep : ``sweep(key, values, data)`` -> values, one or more sweeps of the sampler that is tested.
    resimulate : ``resimulate(key, values, data)`` -> (values, data), data drawn anew given the values; auxiliary
        variables that depend on the data are redrawn with them.
    functions : ``functions(values, data)`` -> dict of arrays ``(chain,)``; see `with_second_moments`.
    rounds : how often to sweep, with new data in between; one round asks whether a sweep leaves the posterior of given
        data as it is.
    """
    values, data = start(jax.random.fold_in(key, 0))
    first = _evaluated(functions, values, data)
    total = {name: np.zeros_like(value) for name, value in first.items()}
    for number in range(1, rounds + 1):
        key_sweep, key_data = jax.random.split(jax.random.fold_in(key, number))
        values = sweep(key_sweep, values, data)
        for name, value in _evaluated(functions, values, data).items():
            total[name] += value
        if number < rounds:
            values, data = resimulate(key_data, values, data)
    moved = np.stack([total[name] / rounds - first[name] for name in first])
    num_chains = moved.shape[1]
    return JointDistributionTest(
        functions=tuple(first), difference=moved.mean(axis=1),
        standard_error=moved.std(axis=1, ddof=1) / np.sqrt(num_chains), num_chains=num_chains,
    )  # fmt: skip


def _evaluated(functions: Callable, values: Any, data: Any) -> dict[str, np.ndarray]:
    return {name: np.asarray(value, np.float64) for name, value in functions(values, data).items()}


def with_second_moments(
    quantities: Mapping[str, Float[Array, " chain"]],
) -> dict[str, Float[Array, " chain"]]:
    """Return each quantity, its square, and the products of all pairs.

    Products show what means and variances hide, such as two variables drawn with one random key. The log likelihood
    belongs among the quantities. Few of them are enough: ten give 65 functions.

    Parameters
    ----------
    quantities : by name, shape ``(chain,)``.
    """
    squares = {f"{name}^2": value**2 for name, value in quantities.items()}
    products = {
        f"{one} × {other}": quantities[one] * quantities[other] for one, other in itertools.combinations(quantities, 2)
    }
    return {**quantities, **squares, **products}


# ---- simulation-based calibration ----


def rank_statistics(
    key: Key, true: Float[Array, "replication quantity"], draws: Float[Array, "replication draw quantity"]
) -> Int[np.ndarray, "replication quantity"]:
    """Count the draws below each true value; of draws that equal it, a random number counts as below.

    Parameters
    ----------
    key : breaks the ties.
    true : the values from which the data of each replication were simulated.
    draws : of the posterior of each replication, independent of each other: thinned where they come from a chain.

    Returns
    -------
    int64 ranks ``(replication, quantity)``, 0 to the number of draws; uniform where the posterior is right.

    Raises
    ------
    NonFinite : a true value or a draw is not finite.
    """
    true, draws = np.asarray(true), np.asarray(draws)
    if not (np.isfinite(true).all() and np.isfinite(draws).all()):
        raise NonFinite("a rank needs finite values, and some of the true values or draws are not finite")
    below = (draws < true[:, None]).sum(axis=1)
    ties = (draws == true[:, None]).sum(axis=1)
    return np.asarray(below + np.asarray(jax.random.randint(key, ties.shape, 0, jnp.asarray(ties) + 1)), np.int64)


def pit_values(
    ranks: Int[np.ndarray, "replication quantity"], num_draws: int
) -> Float[np.ndarray, "replication quantity"]:
    """Return ranks as probability integral transforms in (0, 1), which ArviZ's ``plot_ecdf_pit`` takes."""
    return (ranks + 0.5) / (num_draws + 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Uniformity:
    """Whether ranks are uniform: p-values of two tests for each quantity.

    Parameters
    ----------
    chi_square : shape ``(quantity,)``; sees lumps anywhere.
    kolmogorov_smirnov : shape ``(quantity,)``; sees shifts and wrong spreads. A p-value above 0.001 says that the
        empirical distribution function lies inside its simultaneous band of 99.9 %.
    """

    chi_square: np.ndarray
    kolmogorov_smirnov: np.ndarray

    @property
    def smallest(self) -> float:
        """Smallest p-value of all quantities and both tests, times their number (Bonferroni), at most 1."""
        both = np.concatenate([self.chi_square, self.kolmogorov_smirnov])
        return float(min(1.0, both.min() * both.size))


def uniformity(ranks: Int[np.ndarray, "replication quantity"], num_draws: int) -> Uniformity:
    """Test whether ranks among ``num_draws`` draws are uniform on 0, …, num_draws.

    The Kolmogorov–Smirnov p-values are those of a continuous distribution and so a little too large for ranks.
    """
    num_replications = len(ranks)
    num_bins = max(2, min(_MOST_BINS, num_replications // _FEWEST_IN_A_BIN, num_draws + 1))
    bin_of_rank = np.arange(num_draws + 1) * num_bins // (num_draws + 1)
    expected = np.bincount(bin_of_rank, minlength=num_bins) * num_replications / (num_draws + 1)
    uniform = np.arange(1, num_draws + 2) / (num_draws + 1)
    chi_square, deviation = [], []
    for column in ranks.T:
        count = np.bincount(column, minlength=num_draws + 1)
        chi_square.append(stats.chisquare(np.bincount(bin_of_rank, count, num_bins), expected).pvalue)
        deviation.append(np.abs(count.cumsum() / num_replications - uniform).max())
    return Uniformity(
        chi_square=np.array(chi_square), kolmogorov_smirnov=stats.kstwo.sf(np.array(deviation), num_replications)
    )
