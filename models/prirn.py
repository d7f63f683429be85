r"""Probabilistic inverse rank normalisation: Dirichlet plausibilities around IRN (Stutz et al. 2023, section 4.2).

.. math::

    \theta_i \sim \mathrm{Dirichlet}(\gamma\,\mathrm{IRN}_i + \alpha).

| symbol | name | shape |
|---|---|---|
| θ | ``plausibility`` | (entry,) when α = 0, (item, class) otherwise |
| IRN | see `consilience.models.irn` | (entry,) |
| γ | ``reliability`` | scalar, or as many as ranked something in item i |
| α | ``alpha`` | scalar, added to every class; 0 in the paper, 0.01 in the authors' notebook |

This states a posterior directly: there is no likelihood and hence nothing to simulate from. γ is the *total*
concentration, as it were the number of annotators, and not a power per annotation: it cannot be compared with the
reliability of `dirichlet` or `plackett-luce`. By default it is the number of annotators who ranked something in the
item: a number above it, as in the paper, claims more than they said. With α = 0 only classes that somebody named have
any mass. As γ grows the posterior shrinks to the point estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from consilience.arrays import Array, Float, Key
from consilience.data.rankings import Rankings
from consilience.models import irn, settings
from consilience.models.dirichlet import LABELS, RaggedDirichlet
from consilience.models.dirichlet import MODEL as DIRICHLET
from consilience.models.interface import Exact, Generic, Model
from consilience.models.posterior import Closed, Posterior
from consilience.models.settings import setting
from consilience.models.sites import Resolved, Site, Sites
from consilience.models.truth import DirichletTruth, Entries, PlausibilityDraws, PointTruth
from consilience.models.truth.classes import ClassTruth

__all__ = ["MODEL", "Settings", "model"]

ANNOTATORS = "annotators"
"""The reliability by which an item counts as having the annotators that it has."""


@dataclass(frozen=True, kw_only=True)
class Settings(settings.Settings):
    """Settings of `prirn`; see the fields."""

    reliability: float | str = setting(
        ANNOTATORS, "how many annotators an item counts as having, the concentration of the Dirichlet: a number, "
        "or as many as ranked something in it", above=0.0, words=(ANNOTATORS,),
    )  # fmt: skip
    rank_weights: str = irn.weights_setting()
    alpha: float = setting(0.0, "concentration added to every class", at_least=0.0)


def density(resolved: Resolved) -> None:
    """State the density.

    Without α the number of classes differs between items, and a Dirichlet vector of any length is a normalised
    vector of independent Gamma variables: one long vector of these serves all items.
    """
    data, own = resolved.data, resolved.settings
    total = jax.ops.segment_sum(irn.row_weights(data, own.rank_weights), data.entry, data.num_entries)
    per_item = jax.ops.segment_sum(total, data.entry_item, data.num_items)
    concentration = _reliability(data, own.reliability)[data.entry_item] * total / per_item[data.entry_item]
    if own.alpha > 0:
        cells = jnp.full((data.num_items, data.num_classes), own.alpha)
        cells = cells.at[data.entry_item, data.entry_class].add(concentration)
        with numpyro.plate("item", data.num_items):
            numpyro.sample("plausibility", dist.Dirichlet(cells))
        return
    with numpyro.plate("entry", data.num_entries):
        weight = numpyro.sample("weight", dist.Gamma(concentration, 1.0))
    sums = jax.ops.segment_sum(weight, data.entry_item, data.num_items)
    numpyro.deterministic("plausibility", weight / sums[data.entry_item])


def _reliability(data: Rankings, given: float | str) -> Float[Array, " item"]:
    """Return the concentration of each item."""
    if given != ANNOTATORS:
        return jnp.full(data.num_items, float(given))
    ranks = jax.ops.segment_sum(jnp.ones(data.num_rows), data.report, data.num_reports) > 0
    return jax.ops.segment_sum(ranks * 1.0, data.report_item, data.num_items)


def annotators_of(data: Rankings) -> Float[np.ndarray, " item"]:
    """Return how many ranked something in each item."""
    ranks = np.bincount(data.report, minlength=data.num_reports) > 0
    return np.bincount(np.asarray(data.report_item)[ranks], minlength=data.num_items).astype(float)


def exact(resolved: Resolved) -> Closed:
    """Return the Dirichlet posterior of all items."""
    own, entries, data = resolved.settings, _entries(resolved.data), resolved.data
    trusted = annotators_of(data)[data.entry_item] if own.reliability == ANNOTATORS else own.reliability
    concentration = trusted * irn.inverse_rank_normalisation(data, own.rank_weights) + own.alpha
    return Closed({
        "plausibility": RaggedDirichlet(
            entries.first, entries.class_, concentration, own.alpha, entries.num_classes, per_entry=own.alpha == 0
        )
    })  # fmt: skip


def _entries(data: Rankings) -> Entries:
    return Entries.of(data.entry_item, data.entry_class, data.num_items, data.num_classes)


def truth(posterior: Posterior, resolved: Resolved, *, key: Key, num_draws: int) -> ClassTruth:
    """Return draws of the plausibilities: of the exact posterior, or those stored for the site ``plausibility``."""
    entries, plausibility = _entries(resolved.data), posterior.plausibility
    draws: ClassTruth
    if posterior.form == "closed":
        concentration, unnamed = plausibility.concentration, plausibility.unnamed
        draws = DirichletTruth(entries, concentration, unnamed, key=key, num_draws=num_draws)
    elif plausibility.ndim == 3:
        draws = PlausibilityDraws.dense(plausibility)
    else:
        with np.errstate(divide="ignore"):
            draws = PlausibilityDraws(entries, np.log(plausibility))
    draws.point = PointTruth(entries, irn.inverse_rank_normalisation(resolved.data, resolved.settings.rank_weights))
    return draws


MODEL = Model(
    name="prirn",
    title="plausibilities of partial rankings with ties, Dirichlet around inverse rank normalisation",
    paper=DIRICHLET.paper,
    takes=(Rankings,),
    settings=Settings,
    sites=Sites(Site("plausibility", plates=("entry",)), Site("weight", plates=("entry",))),
    density=density,
    engines=(Exact(solve=exact), Generic(name="nuts"), Generic(name="svi")),
    truth=truth,
    tables=(LABELS,),
)
model = MODEL.model
