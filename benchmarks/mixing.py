"""How well the Plackett-Luce sampler mixes on the released cases, and what the prior of unnamed classes does."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import consilience as cs
from benchmarks.recording import Recording
from consilience.data import Rankings
from consilience.errors import DiagnosticWarning
from consilience.models.plackett_luce import Priors

_CHAINS = 4
_GOAL = 1.01


def mixing(record: Recording, cases: Rankings, reliabilities: tuple[float, ...], seed: int) -> None:
    """Record R-hat and effective sample sizes of all classes of all cases, by reliability."""
    record.section("Mixing of the Plackett-Luce sampler")
    record.say(
        f"{_CHAINS} chains after 500 sweeps each; rank-normalised split R-hat and bulk effective sample size of the "
        "plausibility of every class that somebody named, and of all others together. A case counts by its worst "
        f"class. The goal: R-hat below {_GOAL} for 99 % of the cases at reliability 10."
    )
    settings = [(reliability, 1000) for reliability in reliabilities] + [(max(reliabilities), 4000)]
    record.table("mixing", [_mixing_row(cases, *setting, seed) for setting in settings], digits=4)


def _mixing_row(cases: Rankings, reliability: float, draws: int, seed: int) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiagnosticWarning)  # what they say is what the table is about
        fit = cs.fit("plackett-luce", cases, reliability=reliability, chains=_CHAINS, draws=draws, seed=seed)
    summary = fit.summary()
    of_entry = summary["quantity"].str.startswith("plausibility[").to_numpy()
    item = np.empty(len(summary), int)
    item[of_entry], item[~of_entry] = cases.entry_item, np.arange(cases.num_items)
    ess, r_hat = summary["ess_bulk"].to_numpy(), summary["r_hat"].to_numpy()
    worst_ess, worst_r_hat = np.full(cases.num_items, np.inf), np.zeros(cases.num_items)
    np.minimum.at(worst_ess, item, ess)
    np.maximum.at(worst_r_hat, item, r_hat)
    return {
        "reliability": reliability, "draws": _CHAINS * draws,
        "ESS median": float(np.median(ess)), "ESS 5 %": float(np.quantile(ess, 0.05)), "ESS least": float(ess.min()),
        "worst class of a case, median": float(np.median(worst_ess)),
        "worst class of a case, 5 %": float(np.quantile(worst_ess, 0.05)),
        "R-hat largest": float(worst_r_hat.max()),
        f"cases with R-hat above {_GOAL}": float(np.mean(worst_r_hat > _GOAL)),
    }  # fmt: skip


def prior_of_unnamed_classes(record: Recording, cases: Rankings, seed: int) -> None:
    """Record how certainty depends on the prior mass of the classes that nobody named."""
    record.section("The prior of the classes that nobody named")
    record.say(
        "What the weight of all unnamed classes of a case together is believed to be before any report: Gamma(α, 1), "
        "where the weight of a named class is Gamma(1, 1). The authors take α = 1, one class's worth. 'As any class' "
        "gives each of the 419 conditions, named or not, the same prior; the last row scales that to one class's worth "
        "in all. Shares and certainties are means over the cases, 4 chains of 250 draws."
    )
    rows = []
    for reliability in (1, 3, 10):
        for name, settings in _priors(cases.num_classes).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DiagnosticWarning)
                fit = cs.fit("plackett-luce", cases, reliability=reliability, draws=250, seed=seed, **settings)
            top = cs.certainty(fit, top=(1, 2, 3), exact=False)
            rows.append({
                "reliability": reliability, "prior": name, "share of unnamed": float(fit.posterior.other.mean()),
                **{f"top-{number}": score.value for number, score in top.items()},
                "cases below 0.99": int((top[1].items < 0.99).sum()),
            })  # fmt: skip
    record.table("prior-of-unnamed", rows, digits=4)


def _priors(num_classes: int) -> dict[str, dict[str, Any]]:
    shares = {f"α = {alpha:g}": {"alpha_other": alpha} for alpha in (0.1, 0.5, 1.0, 2.0, 5.0)}
    each = 1 / num_classes
    return shares | {
        "as any class, Gamma(1, 1)": {"priors": Priors.exchangeable(1.0), "alpha_split": 1.0},
        "as any class, Gamma(1/419, 1)": {"priors": Priors.exchangeable(each), "alpha_split": each},
    }
