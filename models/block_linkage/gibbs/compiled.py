r"""Links by a record sweep in machine code, for CPUs: the same chain as `redraw_scan`, a hundred times as fast.

All forms in which links are drawn have one target. Given θ, b, m and μ, a partition Π of the records has the weight

.. math:: \prod_{C \in \Pi} m \, |C|! \, \mu_{|C|} \prod_f m_f(C)

with the hit-miss likelihood :math:`m_f`, true values and distortions summed out, **if** every cluster C is connected in
the graph of candidates, has at most as many records as μ has sizes, and has no two records of one source; and else the
weight zero. A sweep takes one record after the other out of its cluster and draws where it goes. If the rest of its
cluster is not connected without it, it stays, because every other choice has weight zero. Else it may be alone, with
weight :math:`m \mu_1`, or join any cluster C of n < S records that holds a neighbour and none of its source, with

.. math:: (n + 1) \frac{\mu_{n+1}}{\mu_n}
          \prod_{f \text{ observed}} \Big[ b_f + (1 - b_f) \frac{r_f(x)^{n_x}}{Z_f(C)} \Big], \quad
          r_f(v) = 1 + \frac{1 - b_f}{b_f \theta_{fv}}, \quad
          Z_f(C) = 1 + \sum_{v \in C} \theta_{fv} (r_f(v)^{n_v} - 1),

where :math:`n_v` members of C show v. This is the ratio of the weights with and without the record, the common factor
:math:`\theta_x` left out. With error classes it is that of `error_class_sweep`.

It is a call to the host from a JAX program. Chains that are vectorised run in one thread each.
"""

from __future__ import annotations

import importlib.util
import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Int, Key
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.gibbs.problem import LinkProblem, State

__all__ = ["is_compiled_available", "redraw_compiled"]


def is_compiled_available() -> bool:
    """Return whether numba is installed, without which there is no machine code."""
    return importlib.util.find_spec("numba") is not None


def redraw_compiled(key: Key, state: State, problem: LinkProblem) -> Int[Array, " record"]:
    """Draw the links anew, given all else: every record once, in their order.

    Equal keys give equal bits, however many chains run beside each other.

    Parameters
    ----------
    key : random key.
    state : of one chain. No cluster may have more records than there are sizes.
    problem : the neighbours of each record in increasing order; no layout is needed.

    Returns
    -------
    cluster : int32, shape ``(record,)``; each cluster named by the code of its first record.

    Raises
    ------
    UnsupportedRequest : numba is not installed.
    """
    if not is_compiled_available():
        raise UnsupportedRequest(
            "links are drawn in the form 'compiled' by numba, which is not installed: pip install "
            "'consilience[compiled]', or take the form 'scan' for a few thousand records and 'pairs' for more"
        )
    return jax.pure_callback(
        _sweep_chains,
        jax.ShapeDtypeStruct(state.cluster.shape, jnp.int32),
        (
            jax.random.bits(key, (2,), jnp.uint32),
            tuple(part for part in state if part is not None),
            (problem.value, problem.field, problem.source, problem.first_neighbour, problem.neighbour),
        ),
        vmap_method="expand_dims",
    )  # fmt: skip


_STATE_AXES, _PROBLEM_AXES = (1, 1, 1, 0, 1, 1), (2, 1, 1, 1, 1)
"""Of cluster, θ, b, m, μ and, with error classes, π of one chain; of values, fields, sources and neighbours."""


def _sweep_chains(given: Any) -> Int[np.ndarray, "*chains record"]:
    """Sweep on the host; arrays that all chains share have length one along the axes of chains."""
    seed, state, problem = given
    sweep_chains = _sweep_of(with_classes=len(state) == len(_STATE_AXES))
    arrays = [np.asarray(array) for array in (seed, *state, *problem)]
    axes = (1, *_STATE_AXES[: len(state)], *_PROBLEM_AXES)
    leading = [array.shape[: array.ndim - own] for array, own in zip(arrays, axes, strict=True)]
    chains = np.broadcast_shapes(*leading)
    number, num_state = math.prod(chains), 1 + len(state)
    one_problem = all(math.prod(own) == 1 for own in leading[num_state:])
    for place, (array, own) in enumerate(zip(arrays, leading, strict=True)):
        rest = array.shape[len(own) :]
        if place < num_state or not one_problem:
            # A copy, so that there is one machine code for all: arrays of JAX are read-only.
            dtype = np.float64 if array.dtype.kind == "f" else array.dtype
            arrays[place] = np.array(np.broadcast_to(array, chains + rest), dtype, order="C").reshape(-1, *rest)
        else:
            arrays[place] = np.ascontiguousarray(array).reshape(1, *rest)
        arrays[place].flags.writeable = False
    swept = np.empty((number, arrays[1].shape[-1]), np.int32)
    num_threads = min(number, os.cpu_count() or 1)
    bounds = [number * place // num_threads for place in range(num_threads + 1)]
    if num_threads == 1:
        sweep_chains(0, number, *arrays, swept)
    else:
        with ThreadPoolExecutor(num_threads) as threads:
            list(threads.map(lambda begin, end: sweep_chains(begin, end, *arrays, swept), bounds[:-1], bounds[1:]))
    return swept.reshape(*chains, -1)


def _sweep_of(*, with_classes: bool) -> Any:
    """Return the machine code of a likelihood, which is compiled, or read from disk, when it is asked for."""
    if with_classes:
        from consilience.models.block_linkage.gibbs import error_class_sweep

        return error_class_sweep.sweep_chains
    from consilience.models.block_linkage.gibbs import record_sweep

    return record_sweep.sweep_chains
