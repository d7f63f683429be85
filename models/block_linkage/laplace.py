r"""How uncertain the number of entities is because the hyperparameters are: Laplace's method on a sample of components.

With :math:`\lambda_s = m \mu_s`, numbers of entities of s records are independent and Poisson, so that with η = (log λ,
logit b, and log ratios of the shares of error classes) the score of a component c is a vector :math:`s_c`: its expected
numbers of clusters by size, and the gradient of its log evidence. The number of entities is that of the components and
the links that the threshold hides, :math:`K = E[K] - E[\#_2] (1 - R) / R`, with R the share of links that is found, and

.. math::

    \operatorname{Var}(K) = \sum_c \operatorname{Var}_c(k) + h + g^T I^{-1} g, \qquad g = dK / d\eta, \qquad
    I = \sum_c s_c s_c^T + \text{curvature of the priors},

with a record alone as a component of its own. The number of hidden links is a sum of many rare ones, and so Poisson
with the variance h, its mean. By central differences are the gradients of b and of the shares of classes; those of λ
are covariances within components. The shares of values and of sources count as known.

References
----------
Tierney and Kadane (1986), Accurate approximations for posterior moments and marginal densities.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from consilience.arrays import Float
from consilience.models.block_linkage.choice import thinned
from consilience.models.block_linkage.enumeration import (
    enumerate_blocks,
    partition_clusters,
    subset_sizes,
    terms_under,
)
from consilience.models.block_linkage.error_classes import CLASS_PRIOR
from consilience.models.block_linkage.hidden_links import drawn_share
from consilience.models.block_linkage.parameters import Parameters

_NUM_COMPONENTS = 5000
_STEP = 0.1  # of logits; a twentieth of what the data leave open in a hundred records


def hyperparameter_variance(em: Any, parameters: Parameters) -> float:
    """Return gᵀ I⁻¹ g, the variance of the number of entities by that of the hyperparameters.

    Parameters
    ----------
    em : EM on a sample, with the rule of its candidates.
    parameters : what it learned.
    """
    em = thinned(em, _NUM_COMPONENTS)
    sizes, num_fields = em.largest, len(parameters.distortion)
    num_classes = len(parameters.class_share)
    size = sizes + num_fields + max(num_classes - 1, 0)
    now = _Step.of(em, parameters)
    gradient, of_pairs = np.zeros(size), np.zeros(size)
    gradient[:sizes], of_pairs[:sizes] = now.covariances(em, sizes)
    of_share = np.zeros(size)
    scores = [np.zeros((size, block.values.shape[-1])) for block in em.sample.blocks]
    for score, own in zip(scores, now.sizes, strict=True):
        score[: len(own)] = own
    for place in range(sizes, size):
        up, down = (_Step.of(em, _moved(parameters, place - sizes, step)) for step in (_STEP, -_STEP))
        gradient[place], of_pairs[place], of_share[place] = (
            (one - other) / (2 * _STEP) for one, other in zip(up[:3], down[:3], strict=True)
        )
        for score, one, other in zip(scores, up.log_evidence, down.log_evidence, strict=True):
            score[place] = (one - other) / (2 * _STEP)
    information = em.sample.scale * sum((score @ score.T for score in scores), np.zeros((size, size)))
    information[0, 0] += em.sample.num_alone
    information += _curvature(em, parameters)
    # Of what the threshold hides: E[#2] (1 - R) / R.
    gradient -= of_pairs * (1 - now.share) / now.share - now.pairs * of_share / now.share**2
    return float(gradient @ np.linalg.solve(information, gradient))


class _Step(NamedTuple):
    """What an E-step says.

    Parameters
    ----------
    number, pairs : expected numbers of entities, and of those with two records.
    share : of the links, those found.
    log_evidence : of each block, shape ``(component,)``.
    sizes, partition : of each block, as in `Enumerated`.
    """

    number: float
    pairs: float
    share: float
    log_evidence: list[Float[np.ndarray, " component"]]
    sizes: list[Float[np.ndarray, "size component"]]
    partition: list[Float[np.ndarray, "partition component"]]

    @classmethod
    def of(cls, em: Any, parameters: Parameters) -> _Step:
        """Enumerate the sample."""
        terms = terms_under(parameters, em.largest)
        found = [
            enumerate_blocks(
                block.values, parameters.value_share, parameters.distortion, terms, em.likelihood.at(parameters),
                block.conflict, block.candidates, mesh=em.mesh,
            )
            for block in em.sample.blocks
        ]  # fmt: skip
        number = em.sample.num_alone + em.sample.scale * sum(one.sizes.sum(dtype=float) for one in found)
        pairs = em.sample.scale * sum(one.sizes[1].sum(dtype=float) for one in found)
        seen = em.rule.found(em.records, parameters, em.likelihood)
        share = drawn_share(em.records, parameters, em.likelihood, em.rule) if seen is None else seen.share
        every = ([np.asarray(part, float) for part in parts] for parts in zip(*(one for one in found), strict=True))
        log_evidence, partition, _, sizes = every
        return cls(number, pairs, share, log_evidence, sizes, partition)

    def covariances(self, em: Any, sizes: int) -> tuple[Float[np.ndarray, " size"], Float[np.ndarray, " size"]]:
        """Return covariances of the numbers of entities, and of those with two records, with those of each size."""
        of_all, of_pairs = np.zeros((2, sizes))
        for partition, expected in zip(self.partition, self.sizes, strict=True):
            num_records = len(expected)
            of_size = np.arange(1, num_records + 1)[:, None, None]
            counts = (subset_sizes(num_records)[partition_clusters(num_records)] == of_size).sum(axis=-1)
            second = np.einsum("sp,tp,pc->st", counts, counts, partition) - expected @ expected.T
            of_all[:num_records] += second.sum(axis=0)
            of_pairs[:num_records] += second[1]
        return of_all * em.sample.scale, of_pairs * em.sample.scale


def _moved(parameters: Parameters, place: int, step: float) -> Parameters:
    """Return the parameters with one of the logits of b, or one of the log ratios of classes, further by a step."""
    num_fields = len(parameters.distortion)
    if place < num_fields:
        moved = np.where(np.arange(num_fields) == place, expit(logit(parameters.distortion) + step), 0)
        return parameters._replace(distortion=np.where(moved > 0, moved, parameters.distortion))
    weight = parameters.class_share.copy()
    weight[place - num_fields] *= np.exp(step)
    return parameters._replace(class_share=weight / weight.sum())


def _curvature(em: Any, parameters: Parameters) -> Float[np.ndarray, "coordinate coordinate"]:
    """Return what the priors add to the information: as so many entities, distorted fields and records of classes.

    Of sizes and classes at the mean of the prior. Where hardly any is seen, squares of scores are next to nothing, and
    what balances the prior there, the share of what is not seen, has the curvature of the prior's own counts.
    """
    miss, share = parameters.distortion, (CLASS_PRIOR / CLASS_PRIOR.sum())[: max(len(parameters.class_share) - 1, 0)]
    of_each = [em.prior.size_share[: em.largest], em.prior.distortion.sum(axis=1) * miss * (1 - miss)]
    curvature = np.diag(np.concatenate([*of_each, CLASS_PRIOR.sum() * share]))
    if len(share):
        curvature[-len(share) :, -len(share) :] -= CLASS_PRIOR.sum() * np.outer(share, share)
    return curvature
