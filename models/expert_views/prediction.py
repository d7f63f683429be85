"""Which clusters items are in that nobody judged, from their features alone: the mean over draws of the weights.

References
----------
Chang, Chen, Cho, Castaldi, Silverman and Dy (2017), ICML, supplement: 100 draws.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from consilience.arrays import Float
from consilience.data.constraints import Constraints, read_features
from consilience.errors import InputError, InputProblem, UnsupportedRequest
from consilience.models.expert_views.priors import linear


def predict(fit: Any, features: Any, *, all_views: bool = False) -> Any:
    """Predict the clusters of items that the fit has not seen.

    Parameters
    ----------
    fit : of expert-views.
    features : a table with a column item and the columns of numbers that the fit knows, in any order, in the same
        units.
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

    items, values = new_items(features, fit.data)
    truth = fit.truth
    views = np.arange(truth.most_views) if all_views else truth.used_views()
    probability = truth.memberships(truth.standardised(values))[:, views]
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
