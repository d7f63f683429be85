r"""Coordinate ascent on the evidence lower bound of the Dawid-Skene model.

The approximation is :math:`q(T)\, q(p)\, q(\Theta)` with :math:`q(p) = \mathrm{Dir}(\nu)` and
:math:`q(\Theta_{jt}) = \mathrm{Dir}(\chi_{jt})`. One step, from responsibilities :math:`q_i(t) = q(T_i = t)`:

.. math::

    \nu_t = a_t + \sum_i q_i(t), \qquad \chi_{jtl} = A_{tl} + \sum_{n: j_n = j, l_n = l} w_n\, q_{i_n}(t), \qquad
    \log q_i(t) = \mathrm{E} \log p_t + \sum_n w_n \mathrm{E} \log \Theta_{j_n t l_n} + \text{const}.

With :math:`\mathrm{E} \log x_k = \psi(c_k) - \psi(\sum c)` for :math:`x \sim \mathrm{Dir}(c)`. Given the best ν and χ
for some responsibilities the bound is, with H the entropy and B the normaliser of a Dirichlet distribution,

.. math::

    \sum_i H(q_i) + \log \frac{B(\nu)}{B(a)} + \sum_{jt} \log \frac{B(\chi_{jt})}{B(A_t)},

which is what a step returns. It starts from vote shares, which name every class by the label that it is.

| symbol | name | shape |
|---|---|---|
| q_i(t) | ``responsibility`` | (item, class) |
| ν | ``prevalence`` | (class,) |
| χ | ``confusion`` | (annotator, class, label) |
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.special import digamma, entr

from consilience.arrays import Array, Float, Key
from consilience.models.dawid_skene.layout import (
    Problem,
    class_by_class,
    confusion_counts,
    is_real,
    log_joint,
    prepare,
    shard,
    vote_shares,
)
from consilience.models.interface import Ascent, Terms, Total, unsharded
from consilience.models.posterior import Closed
from consilience.models.sites import Resolved
from consilience.models.special import log_normaliser


class Concentrations(NamedTuple):
    """Parameters of q(p) and q(Θ)."""

    prevalence: Float[Array, " class"]
    confusion: Float[Array, "annotator class label"]


def start(key: Key | None, problem: Problem, total: Total = unsharded) -> Float[Array, "item class"]:
    """Return the vote shares as responsibilities."""
    return vote_shares(problem.rows, len(problem.prevalence), total)


def step(
    responsibility: Float[Array, "item class"], problem: Problem, total: Total = unsharded
) -> tuple[Float[Array, "item class"], Terms]:
    """Update ν and χ, then the responsibilities.

    Returns
    -------
    the next responsibilities, and the terms of the bound between the two updates. It never decreases.
    """
    best = concentrations(responsibility, problem, total)
    size = best.prevalence.sum()

    def expected_logs(prevalence: Array, rows: Array) -> tuple[Array, Array]:
        return digamma(prevalence) - digamma(size), digamma(rows) - digamma(rows.sum(axis=-1, keepdims=True))

    joint = log_joint(*class_by_class(expected_logs, *best), problem.rows)
    return jax.nn.softmax(joint, axis=-1) * is_real(problem.rows), _bound(responsibility, best, problem)


def concentrations(
    responsibility: Float[Array, "item class"], problem: Problem, total: Total = unsharded
) -> Concentrations:
    """Return the best ν and χ for given responsibilities."""
    counts = total((
        responsibility.sum(axis=0), confusion_counts(responsibility, problem.rows, len(problem.confusion))
    ))  # fmt: skip
    return Concentrations(problem.prevalence + counts[0], problem.confusion + counts[1])


def sites(responsibility: Float[Array, "item class"], problem: Problem, total: Total = unsharded) -> dict[str, Array]:
    """Return concentrations of ``prevalence`` and ``confusion``, and the ``responsibility``."""
    return {**concentrations(responsibility, problem, total)._asdict(), "responsibility": responsibility}


def finish(values: dict[str, Any], resolved: Resolved) -> Closed:
    """Return q(p) and q(Θ), and the responsibilities."""
    factors = {site: dist.Dirichlet(values[site]) for site in ("prevalence", "confusion")}
    return Closed(factors, {"responsibility": values["responsibility"]})


CAVI = Ascent(name="cavi", prepare=prepare, start=start, step=step, sites=sites, finish=finish, shard=shard)


def _bound(responsibility: Float[Array, "item class"], best: Concentrations, problem: Problem) -> Terms:
    prevalence = log_normaliser(best.prevalence) - log_normaliser(problem.prevalence)
    confusion = log_normaliser(best.confusion) - log_normaliser(problem.confusion)
    return Terms(entr(responsibility).sum(axis=-1), jnp.append(confusion.ravel(), prevalence))
