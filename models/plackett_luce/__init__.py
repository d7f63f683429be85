r"""Plackett-Luce plausibilities from partial rankings with ties and unranked classes (Stutz et al. 2023, section 4.3).

An annotator names classes one after another without replacement, each time with probability proportional to its
weight. A report with ties is every order that is compatible with it, and classes that it does not name come after all
that it names:

.. math::

    \lambda_{ik} \sim \mathrm{Gamma}(\alpha, \beta), \qquad
    p(b_{ir} \mid \lambda_i) = \prod_l \; \sum_{\text{orders of block } l} \; \prod_{k} \frac{\lambda_{ik}}{Z_{irk}},
    \qquad \theta_i = \lambda_i / \textstyle\sum_k \lambda_{ik},

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
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro

from consilience.arrays import Array, Float, Key
from consilience.data.rankings import Rankings
from consilience.models.dirichlet import MODEL as DIRICHLET
from consilience.models.interface import Model, Option
from consilience.models.plackett_luce.em import EM, maximum_likelihood
from consilience.models.plackett_luce.gibbs import GIBBS
from consilience.models.plackett_luce.likelihood import log_likelihood
from consilience.models.plackett_luce.priors import (
    OneClass,
    PerUnnamedClass,
    Priors,
    num_unnamed,
    weight_priors,
)
from consilience.models.plackett_luce.simulation import simulate
from consilience.models.truth import Entries, OtherMass, PlausibilityDraws, PointTruth, Truth

__all__ = ["MODEL", "OneClass", "PerUnnamedClass", "Priors", "log_likelihood", "model", "simulate", "truth"]


def _named(alpha: float) -> dict[str, OneClass]:
    return {"weight": OneClass(alpha)}


def _unnamed(alpha: float) -> dict[str, OneClass]:
    return {"other": OneClass(alpha)}


def _any_class_alike() -> Priors:
    return Priors.exchangeable(1.0)


def model(
    data: Rankings,
    priors: Priors | None = None,
    *,
    reliability: float = 1.0,
    tempering: str = "likelihood",
    alpha_split: float = 1.0,
) -> None:
    """State the joint density of weights and reports as a NumPyro model; ``alpha_split`` has no part in it."""
    weight_prior, other_prior = weight_priors(priors or Priors(), data)
    weight = jnp.zeros(0)
    if data.num_entries:
        with numpyro.plate("entry", data.num_entries):
            weight = numpyro.sample("weight", weight_prior)
    with numpyro.plate("item", data.num_items):
        other_weight = numpyro.sample("other_weight", other_prior)
    other = jnp.where(num_unnamed(data) > 0, other_weight, 0.0)
    total = jax.ops.segment_sum(weight, data.entry_item, data.num_items) + other
    numpyro.deterministic("plausibility", weight / total[data.entry_item])
    numpyro.deterministic("other", other / total)
    power, exponent = (reliability, 1.0) if tempering == "likelihood" else (1.0, reliability)
    log_weight, log_other = exponent * _log(weight), exponent * _log(other_weight)
    with numpyro.plate("item", data.num_items):
        numpyro.factor("reports", power * log_likelihood(data, log_weight, log_other))


def _log(weight: Float[Array, " any"]) -> Float[Array, " any"]:
    """Take logarithms that stay finite, and so do their gradients, where a small shape makes a weight underflow."""
    return jnp.log(jnp.maximum(weight, jnp.finfo(weight.dtype).tiny))


def log_likelihood_of_sites(
    sites: Mapping[str, Array], data: Rankings, *, reliability: float = 1.0, **options: Any
) -> Float[Array, " item"]:
    """Return γ log p(reports | plausibility, other) of each item; the likelihood knows no scale of the weights."""
    return reliability * log_likelihood(data, _log(sites["plausibility"]), _log(sites["other"]))


def truth(posterior: Any, data: Rankings, *, key: Key, num_draws: int, alpha_split: float, **options: Any) -> Truth:
    """Return draws of the plausibilities; the point estimate beside them is that of maximum likelihood."""
    entries = Entries.of(data.entry_item, data.entry_class, data.num_items, data.num_classes)
    plausibility, other = np.asarray(posterior["plausibility"]), np.asarray(posterior["other"])
    with np.errstate(divide="ignore"):
        draws = PlausibilityDraws(entries, np.log(plausibility), OtherMass(np.log(other), alpha_split, key))
    draws.point = functools.partial(_estimate, entries, data)
    return draws


def _estimate(entries: Entries, data: Rankings) -> PointTruth:
    return PointTruth(entries, maximum_likelihood(data))


def labels(posterior: Any, data: Rankings, truth: Truth) -> dict[str, np.ndarray]:
    """Table of the most plausible class of each item: its mean plausibility, and the probability that it leads."""
    return truth.leading()


def plausibilities(posterior: Any, data: Rankings, truth: Truth) -> dict[str, np.ndarray]:
    """Table of the named classes: mean plausibility and central 95 % interval."""
    columns = {"item": np.asarray(data.entry_item), "label": np.asarray(data.entry_class)}
    return columns | _intervals(posterior["plausibility"])


def others(posterior: Any, data: Rankings, truth: Truth) -> dict[str, np.ndarray]:
    """Table of the summed plausibility of each item's unnamed classes."""
    return {"item": np.arange(data.num_items), "classes": np.asarray(num_unnamed(data))} | _intervals(
        posterior["other"]
    )


def _intervals(draws: np.ndarray) -> dict[str, np.ndarray]:
    lower, upper = np.quantile(draws, [0.025, 0.975], axis=0)
    return {"mean": draws.mean(0, dtype=float), "lower": lower, "upper": upper}


MODEL = Model(
    name="plackett-luce",
    title="plausibilities of partial rankings with ties and unranked classes, sampled from the exact likelihood",
    citation=DIRICHLET.citation,
    data=Rankings,
    methods=("gibbs", "nuts", "svi", "em"),
    model=model,
    priors=Priors,
    prior_options={
        "alpha": ("Gamma shape of the weight of a named class: 1", _named),
        "alpha_other": ("Gamma shape of the summed weight of all classes that nobody named: 1", _unnamed),
    },
    options=(
        Option(
            name="reliability", kind=float, default=1.0, minimum=0.0, above=True,
            help="how much each report is trusted: the power of its likelihood",
        ),
        Option(
            name="tempering", kind=str, default="likelihood", choices=("likelihood", "power"),
            help="what the reliability is a power of: the likelihood, or each weight (the paper's tempered variant)",
        ),
        Option(
            name="alpha_split", kind=float, default=1.0, minimum=0.0, above=True,
            help="how the mass of the unnamed classes divides among them: a symmetric Dirichlet with this number",
        ),
    ),
    gibbs=GIBBS,
    em=EM,
    truth=truth,
    tables={"labels": labels, "plausibilities": plausibilities, "others": others},
    dims={"plausibility": ("entry",), "weight": ("entry",), "other": ("item",), "other_weight": ("item",)},
    simulate=simulate,
    testing_priors=_any_class_alike,
    independent_items=True,
    log_likelihood=log_likelihood_of_sites,
)  # fmt: skip
