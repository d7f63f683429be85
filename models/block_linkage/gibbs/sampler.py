"""The Gibbs sampler of block-linkage: links on a wide graph, then all hyperparameters given the links.

A sweep draws the links given θ, b, μ and m, with the true values and the distortions summed out; then these, for the
clusters of several records; then θ, b, μ and m. With error classes it is heads, classes and errors that are summed out
first and drawn then, and the shares π of the classes are drawn too. Nothing is fixed at an estimate: θ taken from the
records counts a value twice that two records of an entity show, and an interval with b fixed is too narrow.

Links are drawn in one of three forms that have the same target: `compiled` record by record on the processor, `scan`
the same in JAX, and `pairs` many at once on accelerators, under hit-miss alone. The graph of candidates is that of
hit-miss under both likelihoods.
"""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import coo_array

from consilience.arrays import Array, Float, Int, Key
from consilience.data.records import Records
from consilience.errors import ConsilienceWarning, UnsupportedRequest
from consilience.models.block_linkage.error_classes import CLASS_PRIOR, ErrorClasses
from consilience.models.block_linkage.gibbs.compiled import is_compiled_available, redraw_compiled
from consilience.models.block_linkage.gibbs.error_classes import draw_class_hyperparameters
from consilience.models.block_linkage.gibbs.hyperparameters import draw_hyperparameters
from consilience.models.block_linkage.gibbs.pairs import pair_layout, redraw_pairs
from consilience.models.block_linkage.gibbs.problem import LinkProblem, State, wide_pairs
from consilience.models.block_linkage.gibbs.scan import redraw_scan, scan_layout
from consilience.models.block_linkage.gibbs.value_prior import most_probable_concentration
from consilience.models.block_linkage.join import CandidatePairs
from consilience.models.block_linkage.likelihoods import HitMiss, Likelihood
from consilience.models.block_linkage.priors import Priors, hyperprior
from consilience.models.block_linkage.similar import for_data
from consilience.models.interface import Gibbs
from consilience.models.rows import padded_rows, padded_size

__all__ = ["FORMS", "GIBBS", "lengths", "prepare", "sites", "start", "sweep", "wide_threshold"]

_REDRAW = {"compiled": redraw_compiled, "scan": redraw_scan, "pairs": redraw_pairs}

FORMS = ("auto", *_REDRAW)
"""In which links are drawn."""

_WIDE = 10.0            # a threshold of 14 gives the same, 8 costs a sixth of a standard deviation of the number
_WIDE_IF_MISSING = 12.0
_QUICK = 500            # records for which any form is quick
_MOST_SCANNED = 3000    # records for which `scan` is not too slow
_START_DISTORTION = 0.05
_START_DISTORTION_OF_MANY = 0.3
_START_SPREAD = 0.5     # of its logarithm, so that chains start apart
_START_LARGER = 0.2     # share of entities of one record more, against those of a size


def prepare(
    data: Records, priors: Priors, *, likelihood: str | Likelihood = "hit-miss", restriction: str = "none",
    largest: int = 6, wide: float = 0.0, links: str = "auto", **options: Any,
) -> LinkProblem:  # fmt: skip
    """Return values, the wide graph and the parameters of the priors.

    Parameters
    ----------
    likelihood : "hit-miss", or "error-classes".
    restriction : which records may be together, a name in `RESTRICTIONS`.
    largest : most records of an entity.
    wide : pairs with log odds above minus this may be linked; 0 stands for 10, or 12 where values are missing.
    links : a name in `FORMS`.
    options : of the other methods.

    Raises
    ------
    NotConjugate : priors that are no Beta, Dirichlet and Gamma distributions.
    UnsupportedRequest : another likelihood, error classes in the form `pairs`, or fields that are compared by
        similarity.
    """
    if getattr(data, "similar", None) is not None and np.any(data.similar):
        raise UnsupportedRequest(
            "gibbs compares fields for equality; leave out similar=, or take method='em' or 'nuts'"
        )
    chosen = _drawn(likelihood, data)
    with_classes = isinstance(chosen, ErrorClasses)
    prior = hyperprior(chosen.priors(priors), data, largest)
    pairs = wide_pairs(data, threshold=wide_threshold(data, wide), restriction=restriction)
    first_neighbour, neighbour = _neighbours(pairs, data.num_records)
    form = _form(links, data.num_records, with_classes)
    codes = np.where(data.value >= 0, data.value + data.first_value[:-1, None], -1).T
    dtype = jnp.result_type(float)
    # Padded, so that data of like size share a program.
    field = np.repeat(np.arange(data.num_fields, dtype=np.int32), np.diff(data.first_value))
    return LinkProblem(
        value=np.ascontiguousarray(codes, np.int32),
        field=padded_rows(field, padded_size(len(field)), data.num_fields),
        source=np.asarray(data.source if restriction == "across" else np.arange(data.num_records), np.int32),
        first_neighbour=first_neighbour, neighbour=padded_rows(neighbour, padded_size(len(neighbour))),
        layout=_layout(form, first_neighbour, neighbour, pairs, data.num_records),
        value_concentration=_value_concentration(data, priors).astype(dtype),
        distortion=np.asarray(prior.distortion, dtype), intensity=np.asarray(prior.intensity, dtype),
        size_share=np.asarray(prior.size_share, dtype), form=form,
        class_share=np.asarray(CLASS_PRIOR, dtype) if with_classes else None,
    )  # fmt: skip


def _drawn(likelihood: str | Likelihood, data: Records) -> Likelihood:
    """Return a likelihood of which the sampler knows what to draw."""
    chosen = for_data(likelihood, data, np.zeros(0))
    if type(chosen) not in (HitMiss, ErrorClasses):
        raise UnsupportedRequest(
            f"gibbs draws true values and distortions, or heads and error classes, which the likelihood {likelihood!r} "
            "does not have; take likelihood='hit-miss' or 'error-classes', or method='em' or 'nuts'"
        )
    return chosen


def _value_concentration(data: Records, priors: Priors) -> Float[np.ndarray, " *value"]:
    """Return one number for all values, or one for each and for padding."""
    if priors.value_share is not None:
        return np.asarray(priors.value_share, float)
    learned = most_probable_concentration(np.asarray(data.value), np.asarray(data.first_value))
    return padded_rows(learned, padded_size(len(learned)), 1)


def wide_threshold(data: Records, wide: float = 0.0) -> float:
    """Return the threshold of the wide graph; 0 leaves it to whether values are missing."""
    return wide or (_WIDE_IF_MISSING if np.any(np.asarray(data.value) < 0) else _WIDE)


def _neighbours(
    pairs: CandidatePairs, num_records: int
) -> tuple[Int[np.ndarray, " records_and_one"], Int[np.ndarray, " edge"]]:
    """Return where the neighbours of each record begin, and these, increasing."""
    ends = np.concatenate([pairs.first, pairs.second]), np.concatenate([pairs.second, pairs.first])
    graph = coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(num_records, num_records)).tocsr()
    graph.sort_indices()
    return graph.indptr.astype(np.int32), graph.indices.astype(np.int32)


def _form(links: str, num_records: int, with_classes: bool) -> str:
    """Return the form in which links are drawn; `pairs` knows no error classes."""
    if with_classes and links == "auto" and num_records > _MOST_SCANNED:
        return "compiled"
    if with_classes and links == "pairs":
        raise UnsupportedRequest(
            "links are drawn in the form 'pairs' with likelihood='hit-miss' only; with error classes take the form "
            "'compiled', or 'scan' for a few thousand records"
        )
    if links != "auto":
        return links
    on_cpu = jax.default_backend() == "cpu"
    if is_compiled_available() and on_cpu:
        return "compiled"
    form = "scan" if num_records <= _MOST_SCANNED else "pairs"
    if on_cpu and num_records > _QUICK:
        warnings.warn(
            f"links are drawn by JAX, in the form '{form}', many times slower than by machine code, since numba is not "
            "installed: pip install 'consilience[compiled]'",
            ConsilienceWarning,
            stacklevel=2,
        )
    return form


def _layout(
    form: str, first_neighbour: np.ndarray, neighbour: np.ndarray, pairs: CandidatePairs, num_records: int
) -> Any:
    """Return the arrays of a form; `compiled` needs none."""
    if form == "scan":
        return scan_layout(first_neighbour, neighbour)
    return pair_layout(pairs, num_records) if form == "pairs" else None


def start(key: Key, problem: LinkProblem) -> State:
    """Start with every record alone, the values as common as they are among the records, and any small distortion.

    With error classes it is any large one, that of records with many errors, and no class is rare.
    """
    num_records, (num_fields, _) = len(problem.value), problem.distortion.shape
    dtype = problem.value_concentration.dtype
    number = jnp.zeros(len(problem.field), dtype).at[problem.value].add(problem.value >= 0)
    number = jnp.maximum(number, jnp.finfo(dtype).eps)
    share = number / jax.ops.segment_sum(number, problem.field, num_fields + 1)[problem.field]  # padding is the last
    noise = _START_SPREAD * jax.random.normal(key, (num_fields,), dtype)
    sizes = _START_LARGER ** jnp.arange(len(problem.size_share), dtype=dtype)
    begun = State(
        jnp.arange(num_records, dtype=jnp.int32), share, _START_DISTORTION * jnp.exp(noise),
        jnp.asarray(num_records / (1 + _START_LARGER), dtype), sizes / sizes.sum(),
    )  # fmt: skip
    if problem.class_share is None:
        return begun
    classes = _START_SPREAD * jax.random.normal(jax.random.fold_in(key, 1), problem.class_share.shape, dtype)
    often = _START_DISTORTION_OF_MANY * jnp.minimum(jnp.exp(noise), 2)
    return begun._replace(distortion=often, class_share=jax.nn.softmax(classes))


def sweep(key: Key, state: State, problem: LinkProblem) -> State:
    """Draw the links, and all hyperparameters given these."""
    key_links, key_rest = jax.random.split(key)
    cluster = _REDRAW[problem.form](key_links, state, problem)
    if state.class_share is not None:
        return draw_class_hyperparameters(key_rest, cluster, state, problem)
    return draw_hyperparameters(key_rest, cluster, state.value_share, state.distortion, problem)


def sites(state: State, problem: LinkProblem) -> dict[str, Array]:
    """Return the sites of the NumPyro model, and who is together."""
    return {site: values for site, values in state._asdict().items() if values is not None}


def lengths(problem: LinkProblem) -> dict[str, int]:
    """Return how many values are no padding."""
    return {"value_share": int(np.sum(problem.field < len(problem.distortion)))}


GIBBS = Gibbs(prepare=prepare, start=start, sweep=sweep, sites=sites, lengths=lengths)
