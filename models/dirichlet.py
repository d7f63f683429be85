r"""Dirichlet plausibilities from single labels (Stutz et al. 2023, sections 3.1 and 4.1: toy data, CIFAR-10H).

Each annotator names one class. The plausibilities of an item have a Dirichlet prior, and the reliability γ says how
much a label is trusted, as a power of the likelihood:

.. math::

    \theta_i \sim \mathrm{Dirichlet}(\alpha), \qquad
    p(b_i \mid \theta_i) = \prod_r \theta_{i, b_{ir}}^{\gamma w_{ir}}, \qquad
    \theta_i \mid b_i \sim \mathrm{Dirichlet}(\gamma s_i + \alpha).

| symbol | name | shape |
|---|---|---|
| θ | ``plausibility`` | (item, label) |
| γ | ``reliability`` | scalar, set by the user and swept, never estimated |
| α | the concentration of ``Priors.plausibility`` | (label,), 0.1 each by default |
| s | ``votes`` | (entry,): weighted counts of the labels that an item received |

The paper prints no α for CIFAR-10H. Any small one gives the certainties it reports: with γ = 1, exactly 176 images
below 0.99 for α = 0.01 and for α = 0.1 (the paper: 178, by Monte Carlo).
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

from consilience.arrays import Array, Float, Int, Key
from consilience.data.annotations import Annotations
from consilience.errors import NotConjugate
from consilience.models.interface import Model, Option, checked_prior
from consilience.models.truth import DirichletTruth, Entries, PlausibilityDraws, PointTruth, Truth

__all__ = ["MODEL", "Posterior", "Priors", "Symmetric", "exact", "model", "simulate", "testing_priors", "truth"]


@dataclass(frozen=True)
class Symmetric:
    """A prior that adds the same number to each label, as a function of the data.

    Parameters
    ----------
    concentration : positive.
    """

    concentration: float

    def __call__(self, data: Any) -> dist.Dirichlet:
        """Return Dirichlet(α, …, α) over the labels of the data."""
        return dist.Dirichlet(jnp.full(data.num_labels, self.concentration))


@dataclass(frozen=True, kw_only=True)
class Priors:
    """What the model believes before any label.

    Parameters
    ----------
    plausibility : distribution of an item's plausibilities, event shape ``(label,)``; Dirichlet(0.1, …, 0.1) by
        default.
    """

    plausibility: dist.Distribution | Callable[[Any], dist.Distribution] = Symmetric(0.1)


def _symmetric(alpha: float) -> dict[str, Symmetric]:
    return {"plausibility": Symmetric(alpha)}


def model(data: Annotations, priors: Priors | None = None, *, reliability: float = 1.0) -> None:
    """State the joint density of plausibilities and labels as a NumPyro model."""
    priors = priors or Priors()
    prior = checked_prior("plausibility", priors.plausibility, data, (data.num_labels,))
    with numpyro.plate("item", data.num_items):
        plausibility = numpyro.sample("plausibility", prior)
    # Small concentrations put plausibilities below the smallest float; the logarithm must stay finite for its gradient.
    floor = jnp.finfo(plausibility.dtype).tiny
    log_plausibility = jnp.log(jnp.maximum(plausibility, floor))[data.item, data.label]
    numpyro.factor("annotations", reliability * jnp.sum(data.weight * log_plausibility))


class Posterior(NamedTuple):
    """Dirichlet posteriors of all items, of which only the labels that an item received are listed.

    Parameters
    ----------
    first : int64, shape ``(item + 1,)``; the entries of item i are ``first[i]:first[i + 1]``.
    entry_class : int32, shape ``(entry,)``; the label of an entry.
    concentration : float64, shape ``(entry,)``.
    unnamed : float64 scalar; concentration of each label without an entry.
    votes : float64, shape ``(entry,)``; weighted number of annotations, the point estimate.
    """

    first: Int[np.ndarray, " boundary"]
    entry_class: Int[np.ndarray, " entry"]
    concentration: Float[np.ndarray, " entry"]
    unnamed: Float[np.ndarray, ""]
    votes: Float[np.ndarray, " entry"]


def exact(data: Annotations, priors: Priors, *, reliability: float) -> Posterior:
    """Return the exact posterior, Dirichlet(γ s + α) per item (Stutz et al. 2023, section 4.1).

    A symmetric prior leaves the labels that nobody gave exchangeable, so that they need not be listed: memory is
    linear in the number of annotations for any number of labels.

    Raises
    ------
    NotConjugate : the prior of site ``plausibility`` is not one Dirichlet distribution for all items.
    """
    with jax.enable_x64():
        prior = checked_prior("plausibility", priors.plausibility, data, (data.num_labels,))
    if not isinstance(prior, dist.Dirichlet) or prior.batch_shape:
        raise NotConjugate("site 'plausibility': the exact posterior needs one Dirichlet prior for all items")
    alpha = np.asarray(prior.concentration, float)
    cell = np.asarray(data.item, np.int64) * data.num_labels + np.asarray(data.label)
    weight = np.asarray(data.weight, float)
    exchangeable = bool(np.all(alpha == alpha[0]))
    named, position = np.unique(cell[weight > 0], return_inverse=True)
    votes = np.bincount(position, weight[weight > 0], len(named)).astype(float)  # whole numbers when empty
    if not exchangeable:
        votes = np.bincount(named, votes, data.num_items * data.num_labels)
        named = np.arange(data.num_items * data.num_labels)
    item, label = np.divmod(named, data.num_labels)
    entries = Entries.of(item, label, data.num_items, data.num_labels)
    unnamed = alpha[0] if exchangeable else 0.0
    return Posterior(entries.first, entries.class_, reliability * votes + alpha[label], np.asarray(unnamed), votes)


def truth(posterior: Any, data: Annotations, *, key: Key, num_draws: int, reliability: float) -> Truth:
    """Return draws of the plausibilities: of the exact posterior, or those stored for the site ``plausibility``."""
    if isinstance(posterior, Posterior):
        entries = Entries(posterior.first, posterior.entry_class, data.num_labels)
        draws: Truth = DirichletTruth(
            entries, posterior.concentration, float(posterior.unnamed), key=key, num_draws=num_draws
        )
        draws.point = PointTruth(entries, posterior.votes)
    else:
        draws = PlausibilityDraws.dense(posterior["plausibility"])
        votes = exact(data, Priors(), reliability=reliability)
        draws.point = PointTruth(Entries(votes.first, votes.entry_class, data.num_labels), votes.votes)
    return draws


def draw(posterior: Posterior, data: Annotations, *, key: Key, num_draws: int, reliability: float) -> dict[str, Array]:
    """Return draws of the plausibilities of all labels, ``(draw, item, label)``; large where there are many labels."""
    entries = Entries(posterior.first, posterior.entry_class, data.num_labels)
    # By JAX, so that its size can be asked for without building it.
    concentration = jnp.full((data.num_items, data.num_labels), float(posterior.unnamed))
    concentration = concentration.at[entries.item, entries.class_].set(posterior.concentration)
    return {"plausibility": jax.random.dirichlet(key, concentration, (num_draws, data.num_items))}


def labels(posterior: Any, data: Annotations, truth: Truth) -> dict[str, np.ndarray]:
    """Table of the most plausible label of each item: its mean plausibility, and the probability that it leads."""
    return truth.leading()


def testing_priors() -> Priors:
    """Return Dirichlet(1, …, 1): under the sparser default NUTS does not reach the classes that an item never got."""
    return Priors(plausibility=Symmetric(1.0))


def simulate(
    key: Key, priors: Priors | None = None, *, num_items: int = 100, num_annotators: int = 10, num_labels: int = 3,
    reliability: float = 1.0,
) -> tuple[Annotations, dict[str, np.ndarray]]:  # fmt: skip
    """Draw plausibilities from the prior and one label per item and annotator from them.

    The reliability is how far an analyst trusts the labels; it has no part in how they arise, and is accepted so
    that simulations of all members are called alike.

    Returns
    -------
    data : all annotators label all items.
    values : ``plausibility``, shape ``(item, label)``.
    """
    key_plausibility, key_label = jax.random.split(key)
    sizes = Annotations.from_codes(
        [0], [0], [0], num_items=num_items, num_annotators=num_annotators, num_labels=num_labels
    )
    prior = checked_prior("plausibility", (priors or Priors()).plausibility, sizes, (num_labels,))
    plausibility = prior.expand((num_items,)).sample(key_plausibility)
    log_plausibility = jnp.log(jnp.maximum(plausibility, jnp.finfo(plausibility.dtype).tiny))
    label = jax.random.categorical(key_label, log_plausibility[:, None, :], shape=(num_items, num_annotators))
    item, annotator = np.indices((num_items, num_annotators)).reshape(2, -1)
    data = Annotations.from_codes(
        item, annotator, np.asarray(label).ravel(),
        num_items=num_items, num_annotators=num_annotators, num_labels=num_labels,
    )  # fmt: skip
    return data, {"plausibility": np.asarray(plausibility)}


MODEL = Model(
    name="dirichlet",
    title="plausibilities of single labels, with an exact Dirichlet posterior",
    citation="""@article{stutz2023evaluating,
  title   = {Evaluating {AI} systems under uncertain ground truth: a case study in dermatology},
  author  = {Stutz, David and Cemgil, Ali Taylan and Roy, Abhijit Guha and Matejovicova, Tatiana and Barsbey, Melih and
             Strachan, Patricia and Schaekermann, Mike and Freyberg, Jan and Rikhye, Rajeev and Freeman, Beverly and
             Matos, Javier Perez and Telang, Umesh and Webster, Dale R. and Liu, Yuan and Corrado, Greg S. and
             Matias, Yossi and Kohli, Pushmeet and Liu, Yun and Doucet, Arnaud and Karthikesalingam, Alan},
  journal = {arXiv preprint arXiv:2307.02191},
  year    = {2023}
}""",
    data=Annotations,
    methods=("exact", "nuts", "svi"),
    model=model,
    priors=Priors,
    prior_options={"alpha": ("number added to each label, the symmetric Dirichlet prior: 0.1", _symmetric)},
    options=(
        Option(
            name="reliability", kind=float, default=1.0, minimum=0.0, above=True,
            help="how much each annotation is trusted: the power of its likelihood",
        ),
    ),
    posterior=Posterior,
    exact=exact,
    draw=draw,
    truth=truth,
    tables={"labels": labels},
    dims={"plausibility": ("item", "label")},
    simulate=simulate,
    testing_priors=testing_priors,
    independent_items=True,
)  # fmt: skip
