"""P(class k leads) under a Dirichlet posterior, exactly: a one-dimensional integral per item instead of draws.

A Dirichlet vector is a normalised vector of independent Gamma(a_k) variables, so

    P(argmax = k) = ∫ f_k(x) ∏_{j≠k} F_j(x) dx,

with their densities f and distribution functions F. In u = log x the integrand is smooth and falls off exponentially
on the left and doubly exponentially on the right, where the trapezoidal rule converges geometrically. Done on the
host in float64: the error is about 1e-13, and 1e-10 in the sum over 10^7 classes that nobody named.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from consilience.arrays import Float, Int
from consilience.models.rows import ranges
from consilience.models.special import STIRLING_SERIES

_LOG_NEGLIGIBLE = -40.0  # e^-40 is 4e-18: what the cut tails may hold.
_LOG_SMALL = -36.0  # below e^-36, F(x) is x^a / Gamma(a + 1) to the last bit.
_BLOCK_NODES = 2_000_000


def top_probabilities(
    first: Int[np.ndarray, " boundary"], concentration: Float[np.ndarray, " entry"], unnamed: float, num_classes: int
) -> tuple[Float[np.ndarray, " entry"], Float[np.ndarray, " item"]]:
    """Return the probability of leading for every entry, and for each unnamed class of every item.

    Parameters
    ----------
    first : int, shape ``(item + 1,)``; the entries of item i are ``first[i]:first[i + 1]``.
    concentration : float64, shape ``(entry,)``, positive.
    unnamed : concentration of each class that is not an entry; 0 where those classes have no mass.
    num_classes : how many classes there are.

    Returns
    -------
    entry : float64, shape ``(entry,)``.
    unnamed : float64, shape ``(item,)``; the probability of each single unnamed class.
    """
    counts = np.diff(first)
    num_unnamed = (num_classes - counts) * (unnamed > 0)
    item = np.repeat(np.arange(len(counts)), counts)
    lower, upper, nodes = _grid(item, concentration, unnamed, num_unnamed)
    entry_result, unnamed_result = np.zeros(len(concentration)), np.zeros(len(counts))
    for num_nodes in np.unique(nodes):
        chosen = np.flatnonzero(nodes == num_nodes)
        cuts = np.cumsum((counts[chosen] + 1) * num_nodes) // _BLOCK_NODES
        for items in np.split(chosen, np.flatnonzero(np.diff(cuts)) + 1):
            slots = np.repeat(first[items], counts[items]) + ranges(counts[items])
            results = _integrate(
                np.repeat(np.arange(len(items)), counts[items]), concentration[slots], unnamed, num_unnamed[items],
                lower[items], upper[items], int(num_nodes),
            )  # fmt: skip
            entry_result[slots], unnamed_result[items] = results
    return np.minimum(entry_result, 1.0), np.minimum(unnamed_result, 1.0)  # rounding may exceed one


def _grid(
    item: np.ndarray, concentration: np.ndarray, unnamed: float, num_unnamed: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Range in log x and number of nodes for each item."""
    num_items = len(num_unnamed)
    total = np.bincount(item, concentration, num_items) + num_unnamed * unnamed
    # F_k(x) <= x^a / Gamma(a + 1) bounds P(all below x), hence what lies to the left.
    log_factorials = np.bincount(item, special.gammaln(concentration + 1), num_items).astype(float)
    if unnamed > 0:
        log_factorials += num_unnamed * special.gammaln(unnamed + 1)
    total = np.where(total > 0, total, 1.0)
    largest = np.full(num_items, max(unnamed, 1e-3))
    np.maximum.at(largest, item, concentration)
    upper = np.log(largest + 10 * np.sqrt(largest) + 45)
    # Wider than the integrand ever is, but it cannot lead anywhere else than near its own mode.
    lower = np.minimum((_LOG_NEGLIGIBLE + log_factorials) / total, np.log(largest) - 0.5)
    lower = np.maximum(lower, _LOG_SMALL)
    step = np.minimum(0.15, 0.4 / np.sqrt(largest))
    # The largest of many alike has a sharper distribution than each of them; for two the step above is fine enough.
    counts = np.bincount(item, minlength=num_items)
    for alike, number in ((largest, counts), (unnamed, num_unnamed)) if unnamed > 0 else ((largest, counts),):
        step = np.minimum(step, 0.35 / np.maximum(1.0, _sharpness(alike, number / 2)))
    nodes = 2 ** np.ceil(np.log2((upper - lower) / step + 2)).astype(int)
    return lower, upper, nodes


def _sharpness(
    concentration: Float[np.ndarray, " item"] | float, number: Float[np.ndarray, " item"]
) -> Float[np.ndarray, " item"]:
    """Return the inverse width in log x of the largest of many gammas: x times their hazard where it is 1 / number."""
    number = np.maximum(number, 1.0)
    x = np.maximum(special.gammainccinv(concentration, 1 / number), np.finfo(float).tiny)
    return number * np.exp(concentration * np.log(x) - x - special.gammaln(concentration))


def _integrate(
    item: np.ndarray, concentration: np.ndarray, unnamed: float, num_unnamed: np.ndarray,
    lower: np.ndarray, upper: np.ndarray, num_nodes: int,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Apply the trapezoidal rule to a block of items with the same number of nodes."""
    fraction = np.linspace(0.0, 1.0, num_nodes)
    u = lower[:, None] + (upper - lower)[:, None] * fraction
    log_cdf = _log_cdf(concentration[:, None], u[item])
    log_product = np.zeros_like(u)
    np.add.at(log_product, item, log_cdf)
    if unnamed > 0:
        log_cdf_unnamed = _log_cdf(unnamed, u)
        log_product += num_unnamed[:, None] * log_cdf_unnamed
    width = (upper - lower) / (num_nodes - 1)
    weight = np.repeat(width[:, None], num_nodes, axis=1)
    # To the left of the grid every integrand is proportional to e^(total u): the nodes there are a geometric series.
    total = np.bincount(item, concentration, len(width)) + num_unnamed * unnamed
    with np.errstate(divide="ignore", over="ignore"):
        weight[:, 0] += np.where(total > 0, width / np.expm1(total * width), 0.0)
    entry = _leads(concentration[:, None], u[item], log_product[item], log_cdf, weight[item])
    rest = np.zeros(len(num_unnamed))
    if unnamed > 0:
        rest = _leads(unnamed, u, log_product, log_cdf_unnamed, weight)
    return entry, np.where(num_unnamed > 0, rest, 0.0)


def _log_cdf(concentration: np.ndarray | float, u: np.ndarray) -> np.ndarray:
    """Log of the Gamma distribution function at x = e^u; by its leading term where x is so small that F underflows."""
    leading = concentration * u - special.gammaln(np.asarray(concentration) + 1)
    with np.errstate(divide="ignore"):
        direct = np.log(special.gammainc(concentration, np.exp(u)))
    return np.where(u <= _LOG_SMALL, leading, direct)


def _leads(
    concentration: np.ndarray | float, u: np.ndarray, log_product: np.ndarray, log_cdf: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Sum over the nodes, with their weights, of f_k(x) x ∏_{j≠k} F_j(x)."""
    with np.errstate(invalid="ignore"):
        terms = np.exp(_log_density(np.asarray(concentration), u) + log_product - log_cdf)
    # Where F_k itself underflows its density does too: such a node holds nothing.
    return np.where(np.isfinite(log_cdf), terms * weight, 0.0).sum(axis=-1)


def _log_density(concentration: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Log of f(x) x at x = e^u, f the Gamma density, around its mode: a log x, x and log Γ(a) nearly cancel."""
    excess = (np.exp(u) - concentration) / concentration
    with np.errstate(divide="ignore"):
        log_ratio = np.log1p(excess, out=u - np.log(concentration), where=concentration >= 10)
    main = (concentration - 0.5) * np.log(concentration) - concentration + np.log(2 * np.pi) / 2
    series = np.polyval(STIRLING_SERIES, concentration**-2.0) / concentration
    beyond = np.where(concentration < 10, special.gammaln(concentration) - main, series)
    return concentration * (log_ratio - excess) + np.log(concentration / (2 * np.pi)) / 2 - beyond
