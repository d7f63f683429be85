r"""A skeleton to copy for a new member: yes-no answers with a Beta posterior (docs/contributing.md walks through it).

Annotators answer a question about each item with one of two labels. The share of annotators who would say the second
label is the item's plausibility:

.. math:: p_i \sim \mathrm{Beta}(a, b), \qquad y_{ir} \sim \mathrm{Bernoulli}(p_i).

| symbol | name | shape |
|---|---|---|
| p | ``share`` | (item,) |
| a, b | the concentrations of ``Priors.share`` | scalars, 1 each by default |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from consilience.arrays import Float
from consilience.data import Annotations
from consilience.errors import NotConjugate, UnsupportedRequest
from consilience.models.interface import Model, checked_prior
from consilience.models.truth import DirichletTruth, Entries, PlausibilityDraws, PointTruth, Truth

__all__ = ["MODEL", "Posterior", "Priors", "exact", "model", "simulate", "truth"]


def uniform(data: Any) -> dist.Beta:
    """Return the default prior: every share is as likely as any other."""
    return dist.Beta(1.0, 1.0)


# 2. What a researcher swaps: each field a NumPyro distribution, or a function of the data that returns one.
@dataclass(frozen=True, kw_only=True)
class Priors:
    """What the model believes before any answer.

    Parameters
    ----------
    share : distribution of an item's share, event shape ``()``.
    """

    share: dist.Distribution | Callable[[Any], dist.Distribution] = uniform


# 3. The single truth about the joint density.
def model(data: Annotations, priors: Priors | None = None) -> None:
    """State the joint density of shares and answers as a NumPyro model."""
    prior = checked_prior("share", (priors or Priors()).share, data, ())
    with numpyro.plate("item", data.num_items):
        share = numpyro.sample("share", prior)
    answers = dist.Bernoulli(share[data.item]).log_prob(data.label)
    numpyro.factor("answers", jnp.sum(data.weight * answers))


# 4. The kernel: here a conjugate update; a Gibbs or CAVI member has its conditionals in this place.
class Posterior(NamedTuple):
    """Beta posteriors: ``concentration``, float64, ``(item, label)``, and ``votes``, the same shape."""

    concentration: Float[np.ndarray, "item label"]
    votes: Float[np.ndarray, "item label"]


def exact(data: Annotations, priors: Priors) -> Posterior:
    """Return the exact posterior, Beta(a + answers, b + answers).

    Raises
    ------
    NotConjugate : the prior of ``share`` is not a Beta distribution.
    UnsupportedRequest : there are not two labels.
    """
    if data.num_labels != 2:
        raise UnsupportedRequest(f"'yes-no' takes two labels, and the data have {data.num_labels}; use 'dirichlet'")
    prior = checked_prior("share", priors.share, data, ())
    if not isinstance(prior, dist.Beta):
        raise NotConjugate("site 'share': the exact posterior needs a Beta prior")
    votes = np.zeros((data.num_items, 2))
    np.add.at(votes, (data.item, data.label), data.weight)
    return Posterior(votes + np.array([prior.concentration0, prior.concentration1], float), votes)


# 6. What the paper calls true, as draws: here plausibilities of both labels. Tables are named functions.
def truth(posterior: Any, data: Annotations, *, key: Any, num_draws: int) -> Truth:
    """Return draws of the plausibilities, from the exact posterior or from stored draws of the site ``share``."""
    entries = Entries.dense(data.num_items, 2)
    draws: Truth
    if isinstance(posterior, Posterior):
        draws = DirichletTruth(entries, posterior.concentration.ravel(), 0.0, key=key, num_draws=num_draws)
    else:
        draws = PlausibilityDraws.dense(np.stack([1 - posterior["share"], posterior["share"]], axis=-1))
    draws.point = PointTruth(entries, exact(data, Priors()).votes.ravel())
    return draws


def draw(posterior: Posterior, data: Annotations, *, key: Any, num_draws: int) -> dict[str, Any]:
    """Return draws of the shares, ``(draw, item)``."""
    no, yes = posterior.concentration.T
    return {"share": jax.random.beta(key, yes, no, (num_draws, data.num_items))}


def labels(posterior: Any, data: Annotations, truth: Truth) -> dict[str, np.ndarray]:
    """Table of the more plausible label of each item."""
    return truth.leading()


# 7. Data from the prior predictive, for calibration, demonstrations and benchmarks.
def simulate(
    key: Any, priors: Priors | None = None, *, num_items: int = 100, num_annotators: int = 10
) -> tuple[Annotations, dict[str, np.ndarray]]:
    """Draw shares from the prior and an answer of every annotator for every item."""
    key_share, key_answer = jax.random.split(key)
    prior = checked_prior("share", (priors or Priors()).share, None, ())
    share = prior.expand((num_items,)).sample(key_share)
    answer = jax.random.bernoulli(key_answer, share[:, None], (num_items, num_annotators))
    item, annotator = np.indices((num_items, num_annotators)).reshape(2, -1)
    data = Annotations.from_codes(item, annotator, np.asarray(answer, int).ravel(), num_labels=2)
    return data, {"share": np.asarray(share)}


# 8. The value that the registry names.
MODEL = Model(
    name="yes-no",
    title="yes-no answers with a Beta posterior, a skeleton to copy",
    citation="""@book{gelman2013bayesian,
  title     = {Bayesian Data Analysis},
  author    = {Gelman, Andrew and Carlin, John B. and Stern, Hal S. and Dunson, David B. and Vehtari, Aki and
               Rubin, Donald B.},
  edition   = {3},
  publisher = {CRC Press},
  year      = {2013}
}""",
    data=Annotations,
    methods=("exact", "nuts", "svi"),
    model=model,
    priors=Priors,
    posterior=Posterior,
    exact=exact,
    draw=draw,
    truth=truth,
    tables={"labels": labels},
    dims={"share": ("item",)},
    simulate=simulate,
    independent_items=True,
)
