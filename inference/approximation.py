"""The approximation that CAVI ends with, beside the posterior itself: its draws start NUTS, their weights give k-hat.

The factors of the approximation are Dirichlet and Beta distributions, independent of each other. They are drawn on the
host, in float64 and in logarithms: that takes no compilation, and a share so close to one that it would round to one
still has a density.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.infer.util import log_density
from scipy import special

from consilience.arrays import Key
from consilience.errors import NotConjugate, UnsupportedRequest
from consilience.inference.ascent import run_ascent
from consilience.inference.compilation import quick_options
from consilience.inference.posterior import k_hat
from consilience.models.interface import Model
from consilience.models.posterior import parameters
from consilience.models.sites import Resolved

MOST_NUMBERS = 20_000
"""With more annotations, or parameters of factors, ``Fit.diagnostics()`` does not compute k-hat: it would take longer
than the ascent did. ``Fit.k_hat()`` does."""

_FEWEST_DRAWS, _MOST_DRAWS = 200, 1000
# Annotations and parameters that are looked at, over all draws: a fraction of a second's work.
_MOST_WORK = 1_000_000
# A start need not be the end of the ascent.
_MOST_SWEEPS = 200


def has_all_factors(member: Model, posterior: Any) -> bool:
    """Return whether a posterior is independent Dirichlet and Beta distributions of all that the density draws."""
    if posterior.form != "closed" or not _may_have_all_factors(member):
        return False
    drawn = {site.name for site in member.sites if site.family is not None}
    known = all(isinstance(factor, dist.Dirichlet | dist.Beta) for factor in posterior.factors.values())
    return known and drawn == set(posterior.factors)


def _may_have_all_factors(member: Model) -> bool:
    """Return whether all families that the member declares are those of such factors; known before anything is run."""
    families = {site.family for site in member.sites} - {None}
    return member.density is not None and bool(families) and families <= {dist.Dirichlet, dist.Beta}


def approximation_k_hat(
    member: Model, posterior: Any, resolved: Resolved, *, key: Key, most_numbers: int | None = None
) -> float | None:
    """Return the Pareto k-hat of what coordinate ascent ended with (Yao et al. 2018).

    Parameters
    ----------
    member, resolved : what was fitted.
    posterior : the approximation.
    key : of its draws, of which there are 200 to 1,000.
    most_numbers : of annotations, and of parameters; None for any number.

    Returns
    -------
    None where it is not computed: where the factors are not all that is unknown, and of more annotations or parameters
    than that.

    References
    ----------
    Yao, Vehtari, Simpson & Gelman (2018), Yes, but Did It Work?: Evaluating Variational Inference, ICML.
    """
    if not has_all_factors(member, posterior):
        return None
    numbers = sum(int(np.prod(factor.shape())) for factor in posterior.factors.values())
    size = max(resolved.data.size_of("annotation") or 0, numbers, 1)
    if most_numbers is not None and size > most_numbers:
        return None
    num_draws = int(np.clip(_MOST_WORK // size, _FEWEST_DRAWS, _MOST_DRAWS))
    return k_hat(log_weights(member, posterior, resolved, key=key, num_draws=num_draws))


def chain_starts(member: Model, resolved: Resolved, *, key: Key, chains: int) -> dict[str, np.ndarray] | None:
    """Return a draw of the approximation for each chain of another method, ``(chain, …)`` by site.

    Chains that start anywhere may each stay in a mirror mode of their own, where true and false, or the classes, have
    exchanged their names; coordinate ascent starts on the sensible side.

    Returns
    -------
    None where there is no approximation: of members whose ascent leaves some sites out, and of priors that are not
    conjugate.
    """
    ascent = member.engine("cavi")
    if ascent is None or not _may_have_all_factors(member):
        return None
    key_run, key_draws = jax.random.split(key)
    try:
        problem = ascent.prepare(resolved)
    except (NotConjugate, UnsupportedRequest):
        return None
    run = run_ascent(ascent, problem, key=key_run, max_steps=_MOST_SWEEPS, progress=False)
    posterior: Any = ascent.finish({name: values[0, 0] for name, values in run.samples.items()}, resolved)
    if not has_all_factors(member, posterior):
        return None
    drawn, _ = draw_factors(posterior.factors, key_draws, chains)
    dtype = jnp.result_type(float)
    # Off the ends by more than the spacing of the floats that the chains are made of, or a start had no finite density.
    edge = float(jnp.finfo(dtype).eps)
    return {site: np.clip(values, edge, 1 - edge).astype(dtype) for site, values in drawn.items()}


def log_weights(member: Model, posterior: Any, resolved: Resolved, *, key: Key, num_draws: int) -> np.ndarray:
    """Return log joint density minus log density of the approximation at draws of it, float64, ``(draw,)``.

    Both densities are those of the sites in their own supports; the joint one is the member's NumPyro model.
    """
    sites, own = draw_factors(posterior.factors, key, num_draws)
    with jax.enable_x64(True):
        joint = _joint_densities(member.density)(sites, resolved)
    return np.asarray(joint, float) - own


def draw_factors(
    factors: Mapping[str, dist.Distribution], key: Key, num_draws: int
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Draw from independent Dirichlet and Beta distributions.

    Parameters
    ----------
    factors : the distributions by site, of any batch shape.
    key : random key.
    num_draws : how many draws.

    Returns
    -------
    float64 draws by site ``(draw, …)``, and the log densities of the draws ``(draw,)``.
    """
    random = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    drawn, density = {}, np.zeros(num_draws)
    for site, factor in factors.items():
        concentration = parameters(factor).astype(float)  # of a Beta distribution those of a share and of the rest
        shape = (num_draws, *concentration.shape)
        # Gamma(a) = Gamma(a + 1) U^(1/a), which in logarithms cannot underflow.
        log_gamma = np.log(random.standard_gamma(concentration + 1, shape))
        log_gamma -= random.standard_exponential(shape) / concentration
        log_share = log_gamma - special.logsumexp(log_gamma, axis=-1, keepdims=True)
        constant = special.gammaln(concentration.sum(axis=-1)) - special.gammaln(concentration).sum(axis=-1)
        terms = constant + ((concentration - 1) * log_share).sum(axis=-1)
        density += terms.reshape(num_draws, -1).sum(axis=1)
        share = np.exp(log_share)
        drawn[site] = _inside(share[..., 0] if isinstance(factor, dist.Beta) else share)
    return drawn, density


def _inside(share: np.ndarray) -> np.ndarray:
    """Keep shares off the ends of their support, where a density may be infinite."""
    return np.clip(share, np.finfo(float).tiny, 1 - np.finfo(float).eps)


@functools.lru_cache(maxsize=32)
def _joint_densities(density: Any) -> Callable[[Mapping[str, np.ndarray], Any], jax.Array]:
    """Return the compiled log joint density of each draw ``(draw, …)`` of the sites, and what was resolved."""

    def densities(sites: Any, resolved: Any) -> Any:
        def one(sites: Any) -> Any:
            fixed = handlers.substitute(handlers.seed(density, 0), data=sites)
            return log_density(fixed, (resolved,), {}, {})[0]

        return jax.lax.map(one, sites)

    return jax.jit(densities, compiler_options=quick_options())
