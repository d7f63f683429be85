r"""Links by a record sweep, record after record, in machine code.

Given θ, b, m and μ, a partition Π of the records has the weight

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
:math:`\theta_x` left out. That of error classes is in `record_sweep`.
"""

from __future__ import annotations

import importlib.util

import numpy as np

from consilience.arrays import Int
from consilience.models.block_linkage.gibbs.problem import LinkProblem, State


def has_machine_code() -> bool:
    """Return whether numba is installed, without which Python runs the sweep."""
    return importlib.util.find_spec("numba") is not None


def redraw_links(random: np.random.Generator, state: State, problem: LinkProblem) -> Int[np.ndarray, " record"]:
    """Draw the links anew, given all else: every record once, in their order.

    Parameters
    ----------
    random : of which one number is taken for each record.
    state : of one chain; it stays as it is. No cluster may have more records than there are sizes.
    problem : the neighbours of each record in increasing order.

    Returns
    -------
    cluster : int32, shape ``(record,)``; each cluster named by the code of its first record.

    Raises
    ------
    ValueError : a cluster has more records than there are sizes.
    """
    # Machine code is compiled, or read from disk, when it is first asked for.
    from consilience.models.block_linkage.gibbs import record_sweep

    # Copies in double precision, and views that cannot be written: there is one machine code for all of them.
    shares = [np.array(values, float) for values in (state.value_share, state.distortion)]
    of_sizes = float(state.intensity), np.array(state.size_share, float)
    classes = None if state.class_share is None else np.array(state.class_share, float)
    given = random.random(len(state.cluster)), np.array(state.cluster, np.int32), *shares, *of_sizes, classes
    graph = problem.value, problem.field, problem.source, problem.first_neighbour, problem.neighbour
    data = [np.ascontiguousarray(values, np.int32).view() for values in graph]
    for values in data:
        values.flags.writeable = False
    return record_sweep.sweep(*given, *data)
