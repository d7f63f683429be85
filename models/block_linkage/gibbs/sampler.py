"""The Gibbs sampler of block-linkage: links on a wide graph, then all hyperparameters given the links.

A sweep draws the links given θ, b, μ and m, with the true values and the distortions summed out; then these, for the
clusters of several records; then θ, b, μ and m. With error classes it is heads, classes and errors that are summed out
first and drawn then, and the shares π of the classes are drawn too. Priors of the partition without m and μ, those of
`hit-miss`, leave them out. Nothing is fixed at an estimate: θ taken from the
records counts a value twice that two records of an entity show, and an interval with b fixed is too narrow.

It runs on the host, in machine code of numba and in NumPy: nothing is compiled for the data. The graph of candidates is
that of hit-miss under both likelihoods.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float
from consilience.data.records import Records
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.by_source import draw_share, starting_share
from consilience.models.block_linkage.enumeration import log_size_weights
from consilience.models.block_linkage.error_classes import CLASS_PRIOR, ErrorClasses
from consilience.models.block_linkage.gibbs.problem import LinkProblem, State, wide_pairs
from consilience.models.block_linkage.gibbs.value_prior import most_probable_concentration
from consilience.models.block_linkage.join import CandidatePairs, neighbours
from consilience.models.block_linkage.labels import refuse_labels
from consilience.models.block_linkage.likelihoods import HitMiss, Likelihood
from consilience.models.block_linkage.parameters import value_codes
from consilience.models.block_linkage.priors import Hyperprior
from consilience.models.block_linkage.similar import for_data
from consilience.models.interface import Gibbs
from consilience.models.sites import Resolved
from consilience.notes import Remedy

_WIDE = 10.0            # a threshold of 14 gives the same, 8 costs a sixth of a standard deviation of the number
_WIDE_IF_MISSING = 12.0
_START_DISTORTION = 0.05
_START_DISTORTION_OF_MANY = 0.3
_START_SPREAD = 0.5     # of its logarithm, so that chains start apart
_START_LARGER = 0.2     # share of entities of one record more, against those of a size


def prepare(resolved: Resolved) -> LinkProblem:
    """Return values, the wide graph and the parameters of the priors.

    Raises
    ------
    NotConjugate : priors that are no Beta, Dirichlet and Gamma distributions.
    UnsupportedRequest : a likelihood that is neither hit-miss nor error classes, or fields that are compared by
        similarity.
    """
    refuse_labels(resolved.data, "Gibbs sampling")
    data, settings = resolved.data, resolved.settings
    if data.similar is not None and np.any(data.similar):
        raise UnsupportedRequest(
            "gibbs compares fields for equality; leave out {similar}, or take {method} or {method}",
            Remedy("similar"), Remedy("method", "em"), Remedy("method", "nuts"),
        )
    chosen = _drawn(settings.likelihood, data)
    prior = Hyperprior.of(resolved.replace(given=chosen.priors(resolved.given)))
    threshold = wide_threshold(data, settings.wide)
    pairs = wide_pairs(data, threshold=threshold, restriction=settings.restriction)
    concentration = _value_concentration(data, resolved.given.value_share)
    problem = linked_among(data, pairs, prior, concentration, settings.restriction)
    classes = np.asarray(CLASS_PRIOR, problem.distortion.dtype) if isinstance(chosen, ErrorClasses) else None
    return dataclasses.replace(problem, class_share=classes)


def linked_among(
    data: Records, pairs: CandidatePairs, prior: Hyperprior, value_concentration: Float[np.ndarray, " *value"],
    restriction: str,
) -> LinkProblem:  # fmt: skip
    """Return the problem of records that may be linked by these pairs, with hit-miss errors.

    Parameters
    ----------
    pairs : those that the restriction forbids are not among them.
    prior, value_concentration : parameters of the priors of b, m, μ and θ.
    """
    first_neighbour, neighbour = neighbours(pairs.first, pairs.second, data.num_records)
    dtype = jnp.result_type(float)
    return LinkProblem(
        value=np.ascontiguousarray(value_codes(data.value, data.first_value).T, np.int32),
        field=np.repeat(np.arange(data.num_fields, dtype=np.int32), np.diff(data.first_value)),
        source=np.asarray(data.source if restriction == "across" else (), np.int32),
        num_sources=data.num_sources if restriction == "across" else 0,
        first_neighbour=first_neighbour, neighbour=neighbour,
        value_concentration=np.asarray(value_concentration, dtype), distortion=np.asarray(prior.distortion, dtype),
        intensity=np.asarray(prior.intensity, dtype), size_share=np.asarray(prior.size_share, dtype),
    )  # fmt: skip


def _drawn(likelihood: str | Likelihood, data: Records) -> Likelihood:
    """Return a likelihood of which the sampler knows what to draw."""
    chosen = for_data(likelihood, data, np.zeros(0))
    if type(chosen) not in (HitMiss, ErrorClasses):
        raise UnsupportedRequest(
            f"gibbs draws true values and distortions, or heads and error classes, which the likelihood {likelihood!r} "
            "does not have; take {likelihood} or {likelihood}, or {method} or {method}",
            Remedy("likelihood", "hit-miss"), Remedy("likelihood", "error-classes"),
            Remedy("method", "em"), Remedy("method", "nuts"),
        )  # fmt: skip
    return chosen


def _value_concentration(data: Records, given: float | None) -> Float[np.ndarray, " *value"]:
    """Return one number for all values, or one for each."""
    if given is not None:
        return np.asarray(given, float)
    return most_probable_concentration(np.asarray(data.value), np.asarray(data.first_value))


def wide_threshold(data: Records, wide: float = 0.0) -> float:
    """Return the threshold of the wide graph; 0 leaves it to whether values are missing."""
    return wide or (_WIDE_IF_MISSING if np.any(np.asarray(data.value) < 0) else _WIDE)


def start(random: np.random.Generator, problem: LinkProblem) -> State:
    """Start with every record alone, the values as common as they are among the records, and any small distortion.

    With error classes it is any large one, that of records with many errors, and no class is rare.
    """
    num_records, (num_fields, _) = len(problem.value), problem.distortion.shape
    number = np.bincount(problem.value[problem.value >= 0], minlength=len(problem.field)).astype(float)
    number = np.maximum(number, np.finfo(np.float32).eps)
    share = number / np.bincount(problem.field, number, num_fields)[problem.field]
    noise = np.exp(_START_SPREAD * random.standard_normal(num_fields))
    sizes = _START_LARGER ** np.arange(len(problem.size_share))
    distortion, class_share = _START_DISTORTION * noise, None
    if problem.class_share is not None:
        distortion = _START_DISTORTION_OF_MANY * np.minimum(noise, 2)
        classes = np.exp(_START_SPREAD * random.standard_normal(len(problem.class_share)))
        class_share = classes / classes.sum()
    begun = State(np.arange(num_records, dtype=np.int32), share, distortion, class_share=class_share)
    if problem.prior == "entities":
        intensity = np.asarray(num_records / (1 + _START_LARGER))
        begun = begun._replace(intensity=intensity, size_share=sizes / sizes.sum())
        if problem.num_sources:
            number = np.bincount(problem.source, minlength=problem.num_sources)
            begun = begun._replace(source_share=starting_share(number))
    dtype = problem.value_concentration.dtype
    return jax.tree.map(lambda values: values if values.dtype.kind == "i" else values.astype(dtype), begun)


def sweep(random: np.random.Generator, state: State, problem: LinkProblem) -> State:
    """Draw the links, and all hyperparameters given these."""
    # Machine code is compiled, or read from disk, when it is first asked for.
    from consilience.models.block_linkage import conjugate, densities, sampler

    classes = np.zeros(3) if state.class_share is None else np.asarray(state.class_share, float)
    density = densities.Density(
        densities.HIT_MISS if state.class_share is None else densities.ERROR_CLASSES, problem.field,
        np.asarray(state.value_share, float), np.asarray(state.distortion, float), classes,
    )  # fmt: skip
    graph = sampler.Graph(
        problem.value, np.ones(len(problem.value), np.int32), problem.source, problem.first_neighbour,
        problem.neighbour,
    )  # fmt: skip
    learned = problem.prior == "entities"
    sizes = np.zeros(1 + len(problem.size_share))
    if learned:
        sources = () if state.source_share is None else np.asarray(state.source_share, float)
        sizes = log_size_weights(float(state.intensity), np.asarray(state.size_share, float), sources)
    cluster = sampler.draw(
        random, np.asarray(state.cluster), graph, density, sizes, labelled=problem.prior == "labels",
        splits=problem.splits,
    )[0]  # fmt: skip
    counts = conjugate.draw_counts(random, cluster, problem.value, density)
    value_share, distortion = conjugate.draw_fields(
        random, counts, problem.field, problem.value_concentration, problem.distortion
    )
    intensity, size_share, class_share, source_share = None, None, None, None
    if state.source_share is not None:
        drawn = draw_share(random, np.asarray(state.source_share, float), cluster, problem.source)
        source_share = drawn.astype(problem.size_share.dtype)
    if learned:
        size_share, intensity = conjugate.draw_sizes(random, cluster, problem.size_share, problem.intensity)
    if problem.class_share is not None:
        drawn = conjugate.draw_shares(random, problem.class_share + counts.of_class)
        class_share = drawn.astype(problem.class_share.dtype)
    return State(cluster, value_share, distortion, intensity, size_share, class_share, source_share)


def sites(state: State, problem: LinkProblem) -> dict[str, Array]:
    """Return the sites of the NumPyro model, and who is together."""
    return {site: values for site, values in state._asdict().items() if values is not None}


GIBBS = Gibbs(prepare=prepare, start=start, sweep=sweep, sites=sites, host=True)
