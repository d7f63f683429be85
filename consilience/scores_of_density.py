"""Does a simulation draw from the density? By the score identity, of a member that has both and nothing else to test.

Where parameters θ and data x are drawn from p(θ, x), the score s = ∂ log p(θ, x) / ∂u has expectation zero, and u s has
expectation -1, by partial integration; u are the parameters on the unconstrained scale on which NumPyro samples, so
that no mass is at an edge. Each simulated data set gives one s and one u s + 1 for each number of u. Their means are
compared with zero, one by one and together (Hotelling's T²). The second kind is the sharper where the prior is wide.

That ties the simulation to the density. It does not look at any estimator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.infer.util import potential_energy, unconstrain_fn
from scipy import stats

from consilience.arrays import Float, Key
from consilience.errors import UnsupportedRequest
from consilience.inference.generic import latent_values
from consilience.models.interface import Generic, Model
from consilience.replications import SIZES, Skipped


class Scores(NamedTuple):
    """What was found.

    Parameters
    ----------
    p_value : of Hotelling's T² of all scores.
    table : data frame with a row for each number: ``score, site, mean, z``; ``score`` is such as ``prevalence 1`` for s
        and ``prevalence 1, scale`` for u s + 1.
    """

    p_value: float
    table: Any


def scores_of(member: Model, priors: Any, settings: Mapping[str, Any], *, key: Key, number: int) -> Scores:
    """Compare the density of a member with its simulation.

    Parameters
    ----------
    priors, settings : of both.
    key, number : of the simulated data sets, and how many.

    Raises
    ------
    Skipped : the member lacks a density or a simulation, its simulation keeps a site to itself, or true values lie at
        an edge where the density has no gradient.
    """
    import pandas

    if member.density is None:
        raise Skipped("the member has no density")
    if member.simulation is None:
        raise Skipped("the member cannot simulate data")
    found = {
        (site, kind): values.reshape(number, -1)
        for site, kinds in _scores(member, priors, settings, key, number).items()
        for kind, values in zip(("", ", scale"), kinds, strict=True)
    }
    scores = np.concatenate(list(found.values()), axis=1)
    if not np.isfinite(scores).all():
        raise Skipped("some true values lie at an edge, where the density has no gradient; give priors that avoid it")
    mean, spread = scores.mean(axis=0), scores.std(axis=0, ddof=1)
    table = pandas.DataFrame(
        {
            "score": [f"{site} {n}{kind}" for (site, kind), values in found.items() for n in range(values.shape[1])],
            "site": [site for (site, _), values in found.items() for _ in range(values.shape[1])],
            "mean": mean, "z": np.sqrt(number) * mean / np.where(spread > 0, spread, 1.0),
        }
    )  # fmt: skip
    return Scores(_hotelling(scores), table)


def _hotelling(scores: Float[np.ndarray, "set score"]) -> float:
    """Return the p-value of the hypothesis that all means are zero."""
    number, mean = len(scores), scores.mean(axis=0)
    size, axes = np.linalg.eigh(np.atleast_2d(np.cov(scores, rowvar=False)))
    kept = size > 1e-9 * size.max()
    rank = int(kept.sum())
    statistic = number * ((mean @ axes[:, kept]) ** 2 / size[kept]).sum()
    return float(stats.f.sf(statistic * (number - rank) / (rank * (number - 1)), rank, number - rank))


def _scores(
    member: Model, priors: Any, settings: Mapping[str, Any], key: Key, number: int
) -> dict[str, tuple[np.ndarray, ...]]:
    """Return s and u s + 1 of each data set by site, ``(set, …)``."""
    density: Any = member.density
    simulation: Any = member.simulation
    prepare = next((engine.prepare for engine in member.engines if isinstance(engine, Generic)), None)
    sizes = {name: size for name, size in SIZES.items() if name in simulation.sizes}
    groups: dict[Any, list[Any]] = {}
    for own in jax.random.split(key, number):
        try:
            data, values = member.simulate(own, priors, **sizes, **settings)
        except UnsupportedRequest as problem:
            raise Skipped(str(problem)) from problem
        resolved = member.resolve(data, priors, settings)
        resolved = resolved if prepare is None else prepare(resolved)
        if not groups:
            sites = _sites(density, resolved, values)
        one = jax.tree.map(np.asarray, (resolved, {site: values[site] for site in sites}))
        leaves, structure = jax.tree.flatten(one)
        groups.setdefault((structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves)), []).append(one)

    @jax.jit
    @jax.vmap
    def evaluate(one: Any) -> dict[str, Any]:
        resolved, values = one
        at = unconstrain_fn(density, (resolved,), {}, values)
        scores = jax.grad(lambda at: -potential_energy(density, (resolved,), {}, at))(at)
        return {site: (score, at[site] * score + 1) for site, score in scores.items()}

    # Data sets of one shape share a program.
    found = [evaluate(jax.tree.map(lambda *leaves: jnp.stack(leaves), *group)) for group in groups.values()]

    def joined(site: str, kind: int) -> np.ndarray:
        return np.concatenate([np.asarray(part[site][kind], float) for part in found])

    return {site: (joined(site, 0), joined(site, 1)) for site in sites}


def _sites(density: Any, resolved: Any, values: Mapping[str, Any]) -> list[str]:
    """Return the latent sites of the density, all of which must be among the true values."""
    trace = handlers.trace(handlers.seed(density, jax.random.key(0))).get_trace(resolved)
    latent = [name for name in latent_values(trace) if trace[name]["type"] == "sample"]
    if missing := [site for site in latent if site not in values]:
        raise Skipped(f"the simulation does not tell the true values of {', '.join(missing)}")
    return latent
