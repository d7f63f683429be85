r"""Which clusters items are in that nobody judged, from their features alone.

The weights of a view are uncertain, and the probability of a cluster is a mean over them. Under coordinate ascent the
logits of one item are independent normal variables, :math:`l_k \sim N(x^T \mu_k, (x^2)^T \sigma_k^2)`, so that the mean
is taken over these few numbers in the place of all weights: at 128 points of a scrambled Sobol sequence, the same for
all items, or, of two clusters, whose difference alone matters, at the 64 points of Gauss and Hermite. The paper's rule,
the mean over 100 draws of the weights, is ``rule="draws"``. After sampling, the mean is over the draws there are.

References
----------
Chang, Chen, Cho, Castaldi, Silverman and Dy (2017), ICML, supplement: the 100 draws.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from consilience.arrays import Float, Int
from consilience.data.constraints import Constraints, read_features
from consilience.errors import InputError, InputProblem, UnknownName, UnsupportedRequest
from consilience.models.expert_views.priors import linear
from consilience.models.rows import row_blocks

RULES = ("quadrature", "draws")
"""How the mean over the weights of a coordinate ascent is taken."""

_DRAWS = 100
_LOG2_POINTS, _HERMITE_POINTS = 7, 64
_BLOCK = 1 << 21      # Numbers that are held at a time.
_MOST_DRAWS = 1000    # Of a sampler's draws so many are used, evenly spread.


def predict(fit: Any, features: Any, *, rule: str = "quadrature", all_views: bool = False) -> Any:
    """Predict the clusters of items that the fit has not seen.

    Parameters
    ----------
    fit : of expert-views.
    features : a table with a column item and the columns of numbers that the fit knows, in any order, in the same
        units.
    rule : ``quadrature``, or ``draws``, the paper's; see `RULES`. After sampling the draws of the fit are all there is.
    all_views : whether to predict for views too that no expert is likely to hold. Their clusters mean nothing, however
        probable they are.

    Returns
    -------
    Data frame with a row for each item and view: ``item, view, cluster, probability`` of that cluster and ``entropy``
    in nats, then ``p_0``, ``p_1``, …, the probabilities of all clusters. Of all views there is ``used`` as well, after
    ``view``: how probably some expert holds it.

    Raises
    ------
    InputError : columns are missing or unknown, or hold no numbers; the message names them.
    """
    import pandas

    if rule not in RULES:
        raise UnknownName(f"rule is {rule!r}; choose one of {', '.join(map(repr, RULES))}")
    items, values = new_items(features, fit.data)
    truth = fit.truth
    views = np.arange(truth.most_views) if all_views else truth.used_views()
    probability = truth.memberships(truth.standardised(values), rule)[:, views]
    flat = probability.reshape(-1, probability.shape[2])
    used = {"used": np.tile(truth.used_probability, len(items))} if all_views else {}
    return pandas.DataFrame({
        "item": np.repeat(np.asarray(items, object), len(views)), "view": np.tile(views, len(items)), **used,
        "cluster": flat.argmax(axis=1), "probability": flat.max(axis=1), "entropy": special.entr(flat).sum(axis=1),
        **{f"p_{cluster}": flat[:, cluster] for cluster in range(flat.shape[1])},
    })  # fmt: skip


def new_items(source: Any, data: Constraints) -> tuple[list[str], Float[np.ndarray, "item feature"]]:
    """Read a table of features, and bring its columns into the order of the data that were fitted.

    Raises
    ------
    InputError : columns are missing or unknown.
    """
    if data.num_features == 0:
        raise UnsupportedRequest("the fit knows no features, so that nothing tells new items apart; fit with features=")
    items, names, values = read_features(source)
    known = [str(name) for name in data.features]
    where = str(source) if isinstance(source, str) else None
    problems = [
        InputProblem(f"the features {what}: {', '.join(map(repr, listed[:10]))}", remedy, file=where)
        for what, remedy, listed in (
            ("of the fit are not all here", "add these columns", [name for name in known if name not in names]),
            ("are not those of the fit", "leave out these columns", [name for name in names if name not in known]),
        )
        if listed
    ]  # fmt: skip
    if problems:
        raise InputError(problems)
    return items, values[:, [names.index(name) for name in known]]


def expected_memberships(
    mean: Float[np.ndarray, "view column cluster"], variance: Float[np.ndarray, "view column cluster"],
    feature: Float[np.ndarray, "item column"], rule: str = "quadrature", seed: int = 0,
) -> Float[np.ndarray, "item view cluster"]:  # fmt: skip
    """Return the probability of each cluster, averaged over independent normal weights.

    Parameters
    ----------
    mean, variance : of the weights.
    feature : standardised, with a last column of ones.
    rule : see `RULES`.
    seed : of the draws.
    """
    if rule == "draws":
        noise = np.random.default_rng(seed).standard_normal((_DRAWS, *mean.shape))
        place = np.broadcast_to(np.arange(mean.shape[2]), (_DRAWS, mean.shape[0], mean.shape[2]))
        return drawn_memberships(mean + np.sqrt(variance) * noise, place, feature, linear)
    num_views, _, num_clusters = mean.shape
    average = _over_difference if num_clusters == 2 else _over_logits
    found = np.empty((len(feature), num_views, num_clusters))
    for rows in row_blocks(len(feature), num_views * num_clusters * 2**_LOG2_POINTS, _BLOCK):
        middle = np.einsum("nd,vdk->nvk", feature[rows], mean)
        spread = np.sqrt(np.einsum("nd,vdk->nvk", feature[rows] ** 2, variance))
        found[rows] = average(middle, spread)
    return found


def drawn_memberships(
    weight: Float[np.ndarray, "draw view *event"], place: Int[np.ndarray, "draw view cluster"],
    feature: Float[np.ndarray, "item column"], link: Callable[[Any, Any], Any],
) -> Float[np.ndarray, "item view cluster"]:  # fmt: skip
    """Return the probability of each cluster, averaged over draws of the weights.

    Parameters
    ----------
    weight : of each view.
    place : of each draw and view, the number under which the cluster goes that comes at each place.
    feature : standardised, with a last column of ones.
    link : from the weights of a view to logits.
    """
    chosen = np.unique(np.linspace(0, len(weight) - 1, min(len(weight), _MOST_DRAWS)).round().astype(int))
    weight, place = np.asarray(weight)[chosen], place[chosen]
    num_draws, num_views, num_clusters = place.shape
    total = np.zeros((num_views, len(feature), num_clusters))
    for rows in row_blocks(num_draws, total.size, _BLOCK):
        share = memberships(weight[rows].reshape(-1, *weight.shape[2:]), feature, link)
        share = share.reshape(-1, num_views, len(feature), num_clusters)
        total += np.take_along_axis(share, place[rows, :, None], axis=3).sum(axis=0)
    return total.swapaxes(0, 1) / num_draws


def memberships(
    weight: Float[np.ndarray, "row ..."], feature: Float[np.ndarray, "item column"], link: Callable[[Any, Any], Any]
) -> Float[np.ndarray, "row item cluster"]:
    """Return the probability of each cluster given weights."""
    if link is linear:  # without compiling anything
        return special.softmax(np.asarray(feature, float) @ np.asarray(weight, float), axis=-1)
    of_rows = _compiled(link)(jnp.asarray(weight), jnp.asarray(feature, jnp.result_type(float)))
    return special.softmax(np.asarray(of_rows, float), axis=-1)


@functools.lru_cache(maxsize=8)
def _compiled(link: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return jax.jit(jax.vmap(link, (0, None)))


def _over_logits(middle: np.ndarray, spread: np.ndarray) -> Float[np.ndarray, "item view cluster"]:
    point = _sobol(middle.shape[2])
    return np.asarray(special.softmax(middle[..., None, :] + spread[..., None, :] * point, axis=-1).mean(axis=2))


def _over_difference(middle: np.ndarray, spread: np.ndarray) -> Float[np.ndarray, "item view cluster"]:
    """Average over the difference of the logits of two clusters, which alone matters."""
    point, weight = np.polynomial.hermite_e.hermegauss(_HERMITE_POINTS)
    difference = (middle[..., 1] - middle[..., 0])[..., None] + np.hypot(*np.moveaxis(spread, -1, 0))[..., None] * point
    share = np.stack([special.expit(-difference), special.expit(difference)], axis=-2)
    return np.asarray(share @ (weight / weight.sum()))


@functools.lru_cache(maxsize=8)
def _sobol(num_clusters: int) -> np.ndarray:
    """Return points that fill the standard normal distribution evenly, ``(point, cluster)``."""
    from scipy.stats import qmc  # as long to import as JAX

    return special.ndtri(qmc.Sobol(num_clusters, scramble=True, seed=0).random_base2(_LOG2_POINTS))
