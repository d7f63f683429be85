r"""Plackett-Luce plausibilities from partial rankings with ties and unranked classes (Stutz et al. 2023, section 4.3).

An annotator names classes one after another without replacement, each time with probability proportional to its
weight. A report with ties is every order that is compatible with it, and classes that it does not name come after all
that it names:

.. math::

    \lambda_{ik} \sim \mathrm{Gamma}(\alpha, \beta), \qquad
    p(b_{ir} \mid \lambda_i) = \prod_l \; \sum_{\text{orders of block } l} \; \prod_{k} \frac{\lambda_{ik}}{Z_{irk}},
    \qquad \theta_i = \lambda_i / \sum_k \lambda_{ik},

where :math:`Z` is the summed weight of the classes still to be named. The reliability γ is the power of the likelihood:
with an integer γ, every annotator counted γ times.

| symbol | name | shape |
|---|---|---|
| λ of the named classes | ``weight`` | (entry,) |
| Σ λ over the classes of an item that nobody named | ``other_weight`` | (item,) |
| θ of the named classes | ``plausibility`` | (entry,) |
| Σ θ over the others | ``other`` | (item,) |
| γ | ``reliability`` | scalar, set by the user and swept, never estimated |

| file | what it holds |
|---|---|
| `priors` | what is believed of the weights; the most influential choice at low reliability |
| `likelihood` | the exact likelihood, ties of any size by one integral |
| `layout`, `gibbs` | the Gibbs sampler, all items in one program |
| `em` | maximum likelihood and maximum a posteriori |
| `simulation` | reports from the prior predictive |

What was corrected: the paper's text updates a weight with the full arrival times of all annotators *and* the count of
those who named it, which is no posterior of anything; `gibbs` says more. Summing over the orders of a tie needs no
enumeration of subsets (equations 18 to 20): a tied block is a race, see `likelihood`.

``tempering="power"`` is the paper's other proposal for the reliability: λ^γ in the place of λ in the likelihood, where
all classes that nobody named count as one class of weight Σ λ. It re-parameterises the prior and does not concentrate
as repetitions do; it breaks conjugacy, so that NUTS draws.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from consilience.arrays import Array, Float, Key
from consilience.data.rankings import Rankings
from consilience.models import settings
from consilience.models.dirichlet import LABELS
from consilience.models.dirichlet import MODEL as DIRICHLET
from consilience.models.interface import Column, Generic, Model, Simulation, Table
from consilience.models.label_tables import INTERVAL
from consilience.models.plackett_luce.em import EM, maximum_likelihood, point_truth
from consilience.models.plackett_luce.gibbs import GIBBS
from consilience.models.plackett_luce.likelihood import log_likelihood
from consilience.models.plackett_luce.priors import OneClass, PerUnnamedClass, Priors, num_unnamed
from consilience.models.plackett_luce.simulation import draw_data
from consilience.models.posterior import Posterior
from consilience.models.settings import setting
from consilience.models.sites import Resolved, Site, Sites
from consilience.models.special import finite_log
from consilience.models.truth import Entries, PlausibilityDraws, PointTruth
from consilience.models.truth.classes import ClassTruth
from consilience.models.truth.plausibilities import OtherMass

__all__ = ["MODEL", "OneClass", "PerUnnamedClass", "Priors", "Settings", "model", "simulate"]


@dataclass(frozen=True, kw_only=True)
class Settings(settings.Settings):
    """Settings of `plackett-luce`; see the fields."""

    reliability: float = setting(
        1.0, "how many independent rankings each ranking counts as: the power of its likelihood", above=0.0
    )
    tempering: str = setting(
        "likelihood",
        "what the reliability is a power of: the likelihood, or each weight (the paper's tempered variant)",
        choices=("likelihood", "power"),
    )
    alpha_split: float = setting(
        1.0, "how the mass of the unnamed classes divides among them: a symmetric Dirichlet with this number",
        above=0.0,
    )  # fmt: skip
    alpha: float | None = setting(
        None, "Gamma shape of the weight of a named class: 1", above=0.0, sets=("weight", OneClass)
    )
    alpha_other: float | None = setting(
        None, "Gamma shape of the summed weight of all classes that nobody named: 1", above=0.0,
        sets=("other", OneClass),
    )  # fmt: skip


def _any_class_alike() -> Priors:
    return Priors.exchangeable(1.0)


def density(resolved: Resolved) -> None:
    """State the joint density of weights and reports; ``alpha_split`` has no part in it."""
    data, reliability = resolved.data, resolved.settings.reliability
    weight = jnp.zeros(0)
    if data.num_entries:
        with numpyro.plate("entry", data.num_entries):
            weight = numpyro.sample("weight", resolved.prior("weight"))
    with numpyro.plate("item", data.num_items):
        other_weight = numpyro.sample("other_weight", resolved.prior("other_weight"))
    other = jnp.where(num_unnamed(data) > 0, other_weight, 0.0)
    total = jax.ops.segment_sum(weight, data.entry_item, data.num_items) + other
    numpyro.deterministic("plausibility", weight / total[data.entry_item])
    numpyro.deterministic("other", other / total)
    power, exponent = (reliability, 1.0) if resolved.settings.tempering == "likelihood" else (1.0, reliability)
    log_weight, log_other = exponent * finite_log(weight), exponent * finite_log(other_weight)
    with numpyro.plate("item", data.num_items):
        numpyro.factor("reports", power * log_likelihood(data, log_weight, log_other))


def log_likelihood_of_sites(sites: Mapping[str, Array], resolved: Resolved) -> Float[Array, " item"]:
    """Return γ log p(reports | plausibility, other) of each item; the likelihood knows no scale of the weights."""
    log_share = finite_log(sites["plausibility"]), finite_log(sites["other"])
    return resolved.settings.reliability * log_likelihood(resolved.data, *log_share)


def truth(posterior: Posterior, resolved: Resolved, *, key: Key, num_draws: int) -> ClassTruth:
    """Return draws of the plausibilities; the point estimate beside them is that of maximum likelihood."""
    data = resolved.data
    if posterior.form == "estimate":
        return point_truth(posterior, data)
    entries = Entries.of(data.entry_item, data.entry_class, data.num_items, data.num_classes)
    with np.errstate(divide="ignore"):
        log_share, log_other = np.log(posterior.plausibility), np.log(posterior.other)
    draws = PlausibilityDraws(entries, log_share, OtherMass(log_other, resolved.settings.alpha_split, key))
    draws.point = functools.partial(_estimate, entries, data)
    return draws


def _estimate(entries: Entries, data: Rankings) -> PointTruth:
    return PointTruth(entries, maximum_likelihood(data))


def plausibilities(posterior: Posterior, resolved: Resolved, truth: ClassTruth) -> dict[str, np.ndarray]:
    """Return the mean plausibility of each named class, with its central 95 % interval."""
    data = resolved.data
    codes = {"item": np.asarray(data.entry_item), "label": np.asarray(data.entry_class)}
    return codes | posterior.summary("plausibility").columns()


def others(posterior: Posterior, resolved: Resolved, truth: ClassTruth) -> dict[str, np.ndarray]:
    """Return the summed plausibility of each item's unnamed classes."""
    data = resolved.data
    columns = {"item": np.arange(data.num_items), "classes": np.asarray(num_unnamed(data))}
    return columns | posterior.summary("other").columns()


_SUMMARY = (Column("mean", help="of the plausibility"), *INTERVAL)

TABLES = (
    LABELS,
    Table(
        name="plausibilities", help="The plausibility of each class that somebody named.", make=plausibilities,
        columns=(Column("item", "item"), Column("label", "class"), *_SUMMARY),
    ),
    Table(
        name="others", help="The summed plausibility of the classes of an item that nobody named.", make=others,
        columns=(Column("item", "item"), Column("classes", help="how many these are"), *_SUMMARY),
    ),
)  # fmt: skip


MODEL = Model(
    name="plackett-luce",
    title="plausibilities of partial rankings with ties and unranked classes, sampled from the exact likelihood",
    paper=DIRICHLET.paper,
    takes=(Rankings,),
    settings=Settings,
    priors=Priors,
    sites=Sites(
        Site("weight", plates=("entry",), family=dist.Gamma, prior_plates=("entry",)),
        Site("other_weight", plates=("item",), family=dist.Gamma, prior_plates=("item",), prior="other"),
        Site("plausibility", plates=("entry",)),
        Site("other", plates=("item",)),
    ),
    density=density,
    engines=(GIBBS, Generic(name="nuts"), Generic(name="svi"), EM),
    truth=truth,
    tables=TABLES,
    simulation=Simulation(
        draw=draw_data, empty=Rankings.empty, sizes={"num_items": 100, "num_annotators": 5, "num_classes": 6},
        priors=_any_class_alike, independent_items=True, log_likelihood=log_likelihood_of_sites,
    ),
)  # fmt: skip
model, simulate = MODEL.model, MODEL.simulate
