r"""EM as Dawid and Skene published it in 1979: maximum likelihood, from vote shares, without any prior.

.. math::

    p_t = \frac{1}{I} \sum_i q_i(t), \qquad
    \Theta_{jtl} = \frac{\sum_{n: j_n = j, l_n = l} w_n\, q_{i_n}(t)}{\sum_{n: j_n = j} w_n\, q_{i_n}(t)}, \qquad
    q_i(t) \propto p_t \prod_n \Theta_{j_n t l_n}^{w_n}.

The objective is :math:`\sum_i \log \sum_t p_t \prod_n \Theta_{j_n t l_n}^{w_n}`.

* Zeros are legitimate and final: a label that an annotator never gave to a class has probability zero.
* The rows of an annotator who saw no item of a class decide nothing. They are set uniform; the table ``confusion``
  shows them by ``annotations`` of zero.
* The estimate is that of this start and not always the global maximum. On the 1979 data it has log likelihood -192.89,
  and random starts find -191.57.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float
from consilience.errors import UnsupportedRequest
from consilience.models.dawid_skene import layout
from consilience.models.dawid_skene.cavi import start
from consilience.models.dawid_skene.layout import (
    Problem,
    class_by_class,
    confusion_counts,
    is_real,
    log_joint,
    shard,
)
from consilience.models.interface import Ascent, Total, unsharded
from consilience.models.posterior import Estimate
from consilience.models.sites import Resolved
from consilience.notes import Remedy


def prepare(resolved: Resolved) -> Problem:
    """Collect what the steps read; the priors have no part in them.

    Raises
    ------
    UnsupportedRequest : the priors are not flat, which would be another estimate; and as `layout.prepare`.
    """
    problem = layout.prepare(resolved)
    if np.any(problem.prevalence != 1) or np.any(problem.confusion != 1):
        raise UnsupportedRequest(
            "EM is the maximum-likelihood estimate of 1979, which has no priors; leave them out, or use {method}",
            Remedy("method", "cavi"),
        )
    return problem


def step(
    responsibility: Float[Array, "item class"], problem: Problem, total: Total = unsharded
) -> tuple[Float[Array, "item class"], Float[Array, " item"]]:
    """Maximise over p and Θ, then update the responsibilities.

    Returns
    -------
    the next responsibilities, and each item's log likelihood at the p and Θ between. Their sum never decreases.
    """
    shares = _shares(responsibility, problem, total)
    logs = class_by_class(lambda prevalence, rows: (jnp.log(prevalence), jnp.log(rows)), *shares)
    joint = log_joint(*logs, problem.rows)
    log_likelihood = jax.nn.logsumexp(joint, axis=-1)
    real = is_real(problem.rows)
    return jnp.exp(joint - log_likelihood[:, None]) * real, log_likelihood * real[:, 0]


def sites(responsibility: Float[Array, "item class"], problem: Problem, total: Total = unsharded) -> dict[str, Array]:
    """Return the estimate: ``prevalence``, ``confusion``, and the ``responsibility`` that follows from them."""
    prevalence, confusion = _shares(responsibility, problem, total)
    following = step(responsibility, problem, total)[0]
    return {"prevalence": prevalence, "confusion": confusion, "responsibility": following}


def finish(values: dict[str, Any], resolved: Resolved) -> Estimate:
    """Return the estimate, and the responsibilities."""
    sites = {site: values[site] for site in ("prevalence", "confusion")}
    return Estimate(sites, {"responsibility": values["responsibility"]})


EM = Ascent(name="em", prepare=prepare, start=start, step=step, sites=sites, finish=finish, shard=shard)


def _shares(
    responsibility: Float[Array, "item class"], problem: Problem, total: Total
) -> tuple[Float[Array, " class"], Float[Array, "annotator class label"]]:
    counts, of_class, number = total((
        confusion_counts(responsibility, problem.rows, len(problem.confusion)), responsibility.sum(axis=0),
        is_real(problem.rows).sum(),
    ))  # fmt: skip
    of_row = counts.sum(axis=-1, keepdims=True)
    confusion = jnp.where(of_row > 0, counts / jnp.where(of_row > 0, of_row, 1.0), 1 / counts.shape[-1])
    return of_class / number, confusion
