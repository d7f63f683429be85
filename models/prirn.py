r"""Probabilistic inverse rank normalisation: Dirichlet plausibilities around IRN (Stutz et al. 2023, section 4.2).

.. math::

    \theta_i \sim \mathrm{Dirichlet}(\gamma\,\mathrm{IRN}_i + \alpha).

| symbol | name | shape |
|---|---|---|
| θ | ``plausibility`` | (entry,) when α = 0, (item, class) otherwise |
| IRN | see `consilience.models.irn` | (entry,) |
| γ | ``reliability`` | scalar |
| α | ``alpha`` | scalar, added to every class; 0 in the paper, 0.01 in the authors' notebook |

This states a posterior directly: there is no likelihood and hence nothing to simulate from. γ is the *total*
concentration, as it were the number of annotators, and not a power per annotation: it cannot be compared with the
reliability of `dirichlet` or `plackett-luce`. With α = 0 only classes that somebody named have any mass. As γ grows
the posterior shrinks to the point estimate.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from consilience.arrays import Array, Key
from consilience.data.rankings import Rankings
from consilience.models import irn
from consilience.models.dirichlet import MODEL as DIRICHLET
from consilience.models.dirichlet import Posterior
from consilience.models.interface import Model, Option
from consilience.models.truth import DirichletTruth, Entries, PlausibilityDraws, PointTruth, Truth

__all__ = ["MODEL", "exact", "model", "truth"]


def model(
    data: Rankings, priors: None = None, *, reliability: float = 20.0, weights: str = "equation-14", alpha: float = 0.0
) -> None:
    """State the density as a NumPyro model.

    Without α the number of classes differs between items, and a Dirichlet vector of any length is a normalised
    vector of independent Gamma variables: one long vector of these serves all items.
    """
    total = jax.ops.segment_sum(irn.row_weights(data, weights), data.entry, data.num_entries)
    per_item = jax.ops.segment_sum(total, data.entry_item, data.num_items)
    concentration = reliability * total / per_item[data.entry_item]
    if alpha > 0:
        cells = jnp.full((data.num_items, data.num_classes), alpha)
        cells = cells.at[data.entry_item, data.entry_class].add(concentration)
        with numpyro.plate("item", data.num_items):
            numpyro.sample("plausibility", dist.Dirichlet(cells))
        return
    with numpyro.plate("entry", data.num_entries):
        weight = numpyro.sample("weight", dist.Gamma(concentration, 1.0))
    sums = jax.ops.segment_sum(weight, data.entry_item, data.num_items)
    numpyro.deterministic("plausibility", weight / sums[data.entry_item])


def exact(data: Rankings, priors: None = None, *, reliability: float, weights: str, alpha: float) -> Posterior:
    """Return the Dirichlet posterior of all items; ``votes`` holds IRN, the point estimate."""
    entries = Entries.of(data.entry_item, data.entry_class, data.num_items, data.num_classes)
    plausibility = irn.inverse_rank_normalisation(data, weights)
    concentration = reliability * plausibility + alpha
    return Posterior(entries.first, entries.class_, concentration, np.asarray(alpha, float), plausibility)


def truth(posterior: Any, data: Rankings, *, key: Key, num_draws: int, **options: Any) -> Truth:
    """Return draws of the plausibilities: of the exact posterior, or those stored for the site ``plausibility``."""
    entries = Entries.of(data.entry_item, data.entry_class, data.num_items, data.num_classes)
    draws: Truth
    if isinstance(posterior, Posterior):
        draws = DirichletTruth(entries, posterior.concentration, float(posterior.unnamed), key=key, num_draws=num_draws)
    elif posterior["plausibility"].ndim == 3:
        draws = PlausibilityDraws.dense(posterior["plausibility"])
    else:
        with np.errstate(divide="ignore"):
            draws = PlausibilityDraws(entries, np.log(posterior["plausibility"]))
    draws.point = PointTruth(entries, irn.inverse_rank_normalisation(data, options["weights"]))
    return draws


def draw(posterior: Posterior, data: Rankings, *, key: Key, num_draws: int, **options: Any) -> dict[str, Array]:
    """Return draws of the plausibilities: ``(draw, entry)`` when α = 0, else ``(draw, item, class)``."""
    item = np.repeat(np.arange(data.num_items), np.diff(posterior.first))
    if posterior.unnamed == 0:
        concentration = jnp.asarray(posterior.concentration)
        weight = jax.random.loggamma(key, concentration, (num_draws, len(item)))
        highest = jax.vmap(lambda row: jax.ops.segment_max(row, item, data.num_items))(weight)
        weight = jnp.exp(weight - highest[:, item])
        sums = jax.vmap(lambda row: jax.ops.segment_sum(row, item, data.num_items))(weight)
        return {"plausibility": weight / sums[:, item]}
    cells = jnp.full((data.num_items, data.num_classes), float(posterior.unnamed))
    cells = cells.at[item, posterior.entry_class].set(posterior.concentration)
    return {"plausibility": jax.random.dirichlet(key, cells, (num_draws, data.num_items))}


def labels(posterior: Any, data: Rankings, truth: Truth) -> dict[str, np.ndarray]:
    """Table of the most plausible class of each item: its mean plausibility, and the probability that it leads."""
    return truth.leading()


MODEL = Model(
    name="prirn",
    title="plausibilities of partial rankings with ties, Dirichlet around inverse rank normalisation",
    citation=DIRICHLET.citation,
    data=Rankings,
    methods=("exact", "nuts", "svi"),
    model=model,
    options=(
        Option(
            name="reliability", kind=float, default=20.0, minimum=0.0, above=True,
            help="total concentration of the Dirichlet, as it were the number of annotators",
        ),
        irn.WEIGHTS,
        Option(name="alpha", kind=float, default=0.0, minimum=0.0, help="concentration added to every class"),
    ),
    posterior=Posterior,
    exact=exact,
    draw=draw,
    truth=truth,
    tables={"labels": labels},
    dims={"plausibility": ("entry",), "weight": ("entry",)},
)  # fmt: skip
