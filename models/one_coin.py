r"""One coin: every annotator is right with a probability of her own, and else gives any other label.

.. math::

    p \sim \mathrm{Dir}(1, \ldots, 1), \qquad \theta_j \sim \mathrm{Beta}(a, b), \qquad
    l_n = T_{i_n} \text{ with probability } \theta_{j_n}, \text{ else uniform over the other labels}.

a ~ Gamma(3, .5) and b ~ Gamma(2, .5) (shape, rate) are learned from all annotators by coordinate ascent, where the
sampler leaves them (empirical Bayes); priors of one's own fix them. It has one number an annotator and needs few data,
but knows no bias: where annotators lean to one label it can lose 30 points of accuracy to `dawid-skene`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.special import digamma

from consilience.models.beta_priors import BetaPrior, LearnedBeta, towards_most_probable
from consilience.models.crowd.channel import Channel
from consilience.models.crowd.channel import CrowdSettings as Settings
from consilience.models.crowd.evidence import Lifted
from consilience.models.crowd.member import crowd_member
from consilience.models.dirichlet import Symmetric
from consilience.models.sites import Site

__all__ = ["MODEL", "Priors", "Settings", "model", "simulate"]


@dataclass(frozen=True, kw_only=True)
class Priors:
    """``prevalence``, event shape ``(class,)``, and ``accuracy``, the probability that an annotator is right."""

    prevalence: dist.Distribution | Callable[[Any], dist.Distribution] = Symmetric(1.0)
    accuracy: dist.Distribution | Callable[[Any], dist.Distribution] = LearnedBeta()


def _evidence(logs: Any, num_labels: int) -> Lifted:
    # An estimate of zero stays finite: the lift of a certain annotator would be infinite, and two of them no number.
    own = jnp.maximum(logs["accuracy"], jnp.log(jnp.finfo(logs["accuracy"].dtype).tiny))
    base = jnp.repeat(own[:, 1:] - jnp.log(num_labels - 1.0), num_labels, axis=1)
    return Lifted(base, own[:, :1] - base)


def _counts(right: Any, logs: Any, given: Any, key: Any) -> dict[str, Any]:
    own = jnp.minimum(right, given).sum(axis=1)
    return {"accuracy": jnp.stack([own, given.sum(axis=1) - own], axis=1)}


def _pooled(prior: Any, counts: Any, hyper: Any) -> dict[str, Any]:
    """Take three fixed-point steps towards the most probable a and b."""
    found = prior["accuracy"][0]
    for _ in range(3):
        found = towards_most_probable(found, counts["accuracy"], hyper, digamma)
    return {**prior, "accuracy": jnp.broadcast_to(found, prior["accuracy"].shape)}


CHANNEL = Channel(_evidence, _counts, fewest_labels=2, pooled=_pooled, hyper=LearnedBeta.of("accuracy"))
MODEL = crowd_member(
    name="one-coin", title="labels by annotators who each are right with one probability", priors=Priors,
    paper="""@article{zhang2016spectral,
  title   = {Spectral Methods Meet {EM}: A Provably Optimal Algorithm for Crowdsourcing},
  author  = {Zhang, Yuchen and Chen, Xi and Zhou, Dengyong and Jordan, Michael I.},
  journal = {Journal of Machine Learning Research},
  volume  = {17}, pages = {1--44}, year = {2016}
}""",
    channel=CHANNEL, settings=Settings, testing_priors=lambda: Priors(accuracy=BetaPrior(6.0, 3.0)),
    sites=(
        Site("prevalence", event=("class",), family=dist.Dirichlet),
        Site("accuracy", plates=("annotator",), family=dist.Beta, prior_plates=("annotator",)),
    ),
)  # fmt: skip
model, simulate = MODEL.model, MODEL.simulate
