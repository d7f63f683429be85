r"""The parameters of a crowd: a tree of simplices, site -> ``(…, k)``; a probability is a simplex of two.

| tree of | is |
|---|---|
| concentrations | a prior, or what coordinate ascent ends with: :math:`\mathrm{Dir}(c)` of each simplex |
| logarithms | what evidence is made of: of probabilities, or expected ones |
| probabilities | an estimate |

Under :math:`\mathrm{Dir}(c)`, :math:`\mathrm{E} \log x_k = \psi(c_k) - \psi(\sum c)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import digamma
from scipy import special

from consilience.arrays import Array, Key
from consilience.models.beta_priors import beta_of
from consilience.models.random import log_gamma
from consilience.models.rows import repeated_rows
from consilience.models.sites import Resolved, Site
from consilience.models.special import at_once, finite_log, log_normaliser

Tree = dict[str, Any]

PREVALENCE = "prevalence"


def used_sites(resolved: Resolved) -> tuple[Site, ...]:
    """Return the sites of the model under its settings: without the prevalence where that is not learned."""
    learned = resolved.settings.learns_prevalence
    return tuple(site for site in resolved.sites if learned or site.name != PREVALENCE)


def shape_of(site: Site, resolved: Resolved) -> tuple[int, ...]:
    """Return the shape of the simplices of a site."""
    last = tuple(resolved.size(dimension) for dimension in site.event) or (2,)
    return (*(resolved.size(dimension) for dimension in site.plates), *last)


def prior_tree(resolved: Resolved) -> Tree:
    """Return the concentrations of the priors, in the precision of programs; raises `NotConjugate`."""
    dtype = jnp.result_type(float)
    tree = {}
    for site in used_sites(resolved):
        found = resolved.concentration(site.name).astype(dtype)
        given = iter(found.shape)
        axes = tuple(next(given) if plate in site.prior_plates else 1 for plate in site.plates)
        tree[site.name] = np.broadcast_to(found.reshape(*axes, found.shape[-1]), shape_of(site, resolved))
    return tree


def level_tree(resolved: Resolved, value: float, prevalence: float) -> Tree:
    """Return the same concentration everywhere, and another one of the prevalence."""
    dtype = jnp.result_type(float)
    return {
        site.name: np.full(shape_of(site, resolved), prevalence if site.name == PREVALENCE else value, dtype)
        for site in used_sites(resolved)
    }


def padded_tree(tree: Mapping[str, Any], num_annotators: int, axis: int = 0) -> dict[str, Any]:
    """Return a tree for so many annotators, whose axis is given: what pads is like the last one; on the host."""
    return {
        site: own if site == PREVALENCE else repeated_rows(own, num_annotators, axis) for site, own in tree.items()
    }


def expected_logs(tree: Tree) -> Tree:
    """Return the expected logarithms of Dirichlet variables."""
    found = at_once(digamma, {site: (own, own.sum(axis=-1, keepdims=True)) for site, own in tree.items()})
    return {site: each - total for site, (each, total) in found.items()}


def logs(tree: Tree) -> Tree:
    """Return the logarithms of probabilities; that of zero is -inf."""
    return at_once(jnp.log, tree)


def flat_logs(tree: Tree) -> Tree:
    """Return the logarithms of equal shares."""
    return {site: jnp.full(values.shape, -jnp.log(values.shape[-1]), values.dtype) for site, values in tree.items()}


def random_logs(key: Key, tree: Tree) -> Tree:
    """Return logarithms of equal shares times 1 + U(0, 1) / 2, normalised; those of the prevalence stay equal."""
    found = flat_logs(tree)
    for own, site in zip(jax.random.split(key, len(tree)), tree, strict=True):
        if site != PREVALENCE:
            noise = 1 + 0.5 * jax.random.uniform(own, tree[site].shape, tree[site].dtype)
            found[site] = jnp.log(noise / noise.sum(axis=-1, keepdims=True))
    return found


def shares(counts: Tree, smoothing: Tree) -> Tree:
    """Return the most probable simplices of these counts and pseudo-counts; equal shares where there are none."""

    def of_site(values: Array) -> Array:
        total = values.sum(axis=-1, keepdims=True)
        return jnp.where(total > 0, values / jnp.where(total > 0, total, 1.0), 1 / values.shape[-1])

    return {site: of_site(counts[site] + smoothing[site]) for site in counts}


def draw(key: Key, concentrations: Tree) -> Tree:
    """Draw logarithms of Dirichlet variables, all of them in one call: the program of each takes long to compile.

    The variables of an annotator stand together, after the prevalence, so that draws do not depend on what pads.
    """
    ends = {site: own for site, own in concentrations.items() if site != PREVALENCE}
    first = jnp.ravel(concentrations.get(PREVALENCE, jnp.zeros(0)))
    rows = jnp.concatenate([own.reshape(len(own), -1) for own in ends.values()], axis=1)
    gammas = log_gamma(key, jnp.concatenate([first.astype(rows.dtype), rows.ravel()]))
    places = np.cumsum([own[0].size for own in ends.values()])[:-1]
    parts = jnp.split(gammas[first.size :].reshape(rows.shape), places, axis=1)
    drawn: Tree = {site: part.reshape(ends[site].shape) for site, part in zip(ends, parts, strict=True)}
    drawn |= {PREVALENCE: gammas[: first.size]} if first.size else {}
    return {site: jax.nn.log_softmax(drawn[site], axis=-1) for site in concentrations}


def draw_on_host(random: np.random.Generator, concentrations: Mapping[str, np.ndarray]) -> Tree:
    """Draw logarithms of Dirichlet variables in NumPy: a single draw is no work to compile."""
    found = {}
    for site, values in concentrations.items():
        # A gamma variable is one of a shape larger by one, times a power of a uniform one.
        log = np.log(random.standard_gamma(values + 1.0))
        log += np.log1p(-random.random(values.shape)) / values
        found[site] = special.log_softmax(log, axis=-1)
    return found


def divergences(tree: Tree, prior: Tree, expected: Tree) -> Tree:
    """Return the Kullback-Leibler divergence of Dir(tree) from the prior, of each simplex ``(…)``, site by site.

    Parameters
    ----------
    expected : the `expected_logs` of the tree.
    """
    before = {site: jnp.asarray(prior[site]) for site in tree}
    of_prior, own = log_normaliser((before, tree))
    moved = {site: ((values - before[site]) * expected[site]).sum(axis=-1) for site, values in tree.items()}
    return {site: of_prior[site] - own[site] + moved[site] for site in tree}


def variables(tree: Tree, sites: tuple[Site, ...]) -> Tree:
    """Return the variables of the model: of a simplex of two the first share, which earlier fits hold alone."""
    plates = {site.name: len(site.plates) for site in sites if not site.event}
    return {
        site: values[..., 0] if site in plates and np.ndim(values) > plates[site] else values
        for site, values in tree.items()
    }


def simplices(values: Mapping[str, Any], sites: tuple[Site, ...]) -> Tree:
    """Return the simplices of variables of the model."""
    found = {}
    for site in sites:
        own = values[site.name]
        own = own if isinstance(own, jax.Array) else np.asarray(own)
        found[site.name] = own if site.event else (jnp if isinstance(own, jax.Array) else np).stack([own, 1 - own], -1)
    return found


def logs_of_variables(values: Mapping[str, Any], sites: tuple[Site, ...]) -> Tree:
    """Return the logarithms of the simplices of variables, which stay finite where a probability underflows."""
    found = simplices({site.name: jnp.asarray(values[site.name]) for site in sites}, sites)
    return {site: finite_log(own) for site, own in found.items()}


def factors(tree: Mapping[str, Any], sites: tuple[Site, ...]) -> dict[str, dist.Distribution]:
    """Return the Dirichlet and Beta distributions of these concentrations."""
    pairs = {site.name for site in sites if not site.event}
    return {
        site: beta_of(values) if site in pairs else dist.Dirichlet(values)
        for site, values in tree.items()
    }
