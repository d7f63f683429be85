"""Whether intervals of agreement coefficients hold the coefficient of the population: few items, high agreement.

Items have 3, 4 or 5 labels each. Under a `Dirichlet` setting the class distribution of an item is from a Dirichlet
distribution with the shares as mean and a concentration c, so that kappa is 1 / (1 + c). Under `easy` a share of the
items has one class, kept in 97 % of the labels, and the labels of all others are drawn by the shares.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import special

import consilience as cs
from consilience.models.intervals import LEVEL

_KEPT = 0.97

COEFFICIENTS = (
    ("Fleiss' kappa", "pooled"), ("Gwet's AC1", ""), ("Krippendorff's alpha", "nominal"),
    ("kappa", "different items"), ("Conger's kappa", ""), ("Krippendorff's alpha", "interval"),
)  # fmt: skip
"""Names and conventions of the coefficients that are looked at."""


class Setting(NamedTuple):
    """How data are simulated.

    Parameters
    ----------
    items : how many.
    shares : of the classes.
    model : "Dirichlet" or "easy".
    amount : concentration of the Dirichlet distribution, or share of easy items.
    """

    items: int
    shares: tuple[float, ...]
    model: str
    amount: float


_EVEN, _RARE, _THREE = (0.5, 0.5), (0.95, 0.05), (0.8, 0.15, 0.05)

SETTINGS = (
    *(Setting(20, shares, *kind) for shares in (_EVEN, _RARE)
      for kind in (("Dirichlet", 1.0), ("Dirichlet", 0.2), ("easy", 0.9))),
    Setting(20, _THREE, "Dirichlet", 0.2), Setting(100, _RARE, "Dirichlet", 0.2), Setting(100, _RARE, "Dirichlet", 1.0),
    Setting(100, _EVEN, "Dirichlet", 0.2), Setting(100, _THREE, "Dirichlet", 0.2),
)  # fmt: skip


def coefficient_coverage(
    settings: tuple[Setting, ...] = SETTINGS, sets: int = 100, seed: int = 0, level: float = LEVEL
) -> list[dict[str, Any]]:
    """Return a row for each setting and coefficient.

    Parameters
    ----------
    sets : simulated data sets of a setting.
    level : of the intervals.

    Returns
    -------
    Rows with the true coefficient, the share of the sets whose interval holds it, its simulation error, the same of the
    interval of Student's t with the jackknife's standard error, and mean and least width.
    """
    return [row for setting in settings for row in _of_setting(setting, sets, seed, level)]


def _of_setting(setting: Setting, sets: int, seed: int, level: float) -> list[dict[str, Any]]:
    random = np.random.default_rng([seed, *np.frombuffer(repr(setting).encode(), np.uint8)])
    values = np.arange(float(len(setting.shares)))
    tables = [cs.agreement(_simulated(random, setting), values=values, level=level).coefficients() for _ in range(sets)]
    quantile = special.stdtrit(setting.items - 1, (1 + level) / 2)
    rows = []
    for name, convention in COEFFICIENTS:
        true = true_coefficient(setting, name, convention)
        asked = [table[(table.coefficient == name) & (table.convention == convention)] for table in tables]
        value, sd, lower, upper = np.array([one[["value", "sd", "lower", "upper"]].to_numpy()[0] for one in asked]).T
        held = (lower <= true) & (true <= upper)
        half = quantile * sd
        by_t = (value - half <= true) & (true <= np.minimum(1, value + half))
        rows.append({
            **setting._asdict(), "coefficient": f"{name} {convention}".strip(), "true": true, "covered": held.mean(),
            "error": np.sqrt(held.mean() * (1 - held.mean()) / sets), "covered by t": by_t.mean(),
            "width": np.nanmean(upper - lower), "least width": np.nanmin(upper - lower),
        })  # fmt: skip
    return rows


def true_coefficient(setting: Setting, name: str, convention: str) -> float:
    """Return the coefficient of the population, from the moments of the class distributions of items."""
    shares, size = np.array(setting.shares), len(setting.shares)
    if setting.model == "Dirichlet":
        # E θ_c θ_k = (c² s_c s_k + [c = k] c s_c) / (c (c + 1)).
        second = (setting.amount * np.outer(shares, shares) + np.diag(shares)) / (setting.amount + 1)
    else:
        kept = _KEPT * np.eye(size) + (1 - _KEPT) * shares
        easy = np.einsum("t,tc,tk->ck", shares, kept, kept)
        second = setting.amount * easy + (1 - setting.amount) * np.outer(shares, shares)
    distance = 1.0 - np.eye(size)
    if convention == "interval":
        distance = np.subtract.outer(np.arange(size), np.arange(size)) ** 2.0
    chance = np.outer(shares, shares)
    if name == "Gwet's AC1":
        return float(1 - (second * distance).sum() / (1 - (1 - (shares**2).sum()) / (size - 1)))
    return float(1 - (second * distance).sum() / (chance * distance).sum())


def _simulated(random: np.random.Generator, setting: Setting) -> cs.Annotations:
    items, shares = setting.items, np.array(setting.shares)
    if setting.model == "Dirichlet":
        weight = random.standard_gamma(np.broadcast_to(setting.amount * shares, (items, len(shares)))) + 1e-300
        truth = weight / weight.sum(axis=1, keepdims=True)
    else:
        whose = random.choice(len(shares), items, p=shares)
        easy = random.random((items, 1)) < setting.amount
        truth = np.where(easy, _KEPT * np.eye(len(shares))[whose] + (1 - _KEPT) * shares, shares)
    item = np.repeat(np.arange(items), random.integers(3, 6, items))
    label = (random.random((len(item), 1)) > truth.cumsum(axis=1)[item, :-1]).sum(axis=1)
    # Who annotates an item is drawn anew for each.
    annotator = np.argsort(random.random((items, 5)), axis=1)[item, np.arange(len(item)) - np.searchsorted(item, item)]
    return cs.Annotations.from_codes(item, annotator, label, num_items=items, num_labels=len(shares))
