"""The prior predictive: views, clusters, experts and their answers, drawn from the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers

from consilience.arrays import Array, Float, Int, Key
from consilience.data.codes import names_or_codes
from consilience.data.constraints import Constraints
from consilience.models.expert_views.canonical import view_weights
from consilience.models.expert_views.judgements import standard_of, standardised
from consilience.models.expert_views.likelihood import answer_table, answering, own_view
from consilience.models.expert_views.priors import link_of, weight_prior
from consilience.models.sites import Resolved


def constraints_of(
    expert: np.ndarray, item_a: np.ndarray, item_b: np.ndarray, together: np.ndarray, feature: np.ndarray,
    num_experts: int, **answers: Any,
) -> Constraints:  # fmt: skip
    """Return answers and features as constraints, with numbers as ids.

    Parameters
    ----------
    answers : ``num_grades``, ``num_blanks`` and ``order`` of `Constraints`, where answers are not yes and no.
    """
    num_items, num_features = feature.shape
    return Constraints(
        expert=np.asarray(expert, np.int32), item_a=np.asarray(item_a, np.int32), item_b=np.asarray(item_b, np.int32),
        together=np.asarray(together, np.int32), feature=np.asarray(feature, float), num_constraints=len(expert),
        num_experts=num_experts, num_items=num_items, num_features=num_features,
        experts=names_or_codes(None, num_experts, "experts"), items=names_or_codes(None, num_items, "items"),
        features=names_or_codes(None, num_features, "features"), **answers,
    )  # fmt: skip


def draw_data(
    key: Key, resolved: Resolved, sizes: Mapping[str, Any], values: Mapping[str, Any] | None = None
) -> tuple[Constraints, dict[str, np.ndarray]]:
    """Draw views, clusters, experts and their answers from the prior, for random features and pairs.

    Every expert judges pairs of his own.

    Parameters
    ----------
    sizes : ``num_items, num_experts, num_features``, and ``num_pairs`` that an expert judges, each once; no more than
        there are. ``num_grades`` (2), ``num_blanks`` (1 where an expert may not know), and in how many ways pairs are
        shown, ``num_orders`` (1).
    values : true values as this function returns them: keep them, and draw the answers alone anew.

    Returns
    -------
    data : with features that are standardised.
    values : ``stick`` ``(view - 1,)``, ``view_of_expert`` ``(expert,)``, what experts of this kind have, such as
        ``sensitivity`` and ``specificity`` ``(expert,)`` or ``(expert, view)``, ``weight`` ``(view, …)``, ``cluster``
        ``(view, item)``; and what is given: ``feature`` ``(item, feature)``, ``item_a``, ``item_b`` ``(expert, pair)``
        and, of pairs shown in two ways, ``order``.
    """
    key_values, key_priors, key_answers = jax.random.split(key, 3)
    if values is None:
        random = _generator(key_values)
        feature = random.standard_normal((sizes["num_items"], sizes["num_features"]))
        feature = standardised(feature, standard_of(feature))[:, :-1]
        item_a, item_b = _random_pairs(random, sizes["num_items"], sizes["num_experts"], sizes["num_pairs"])
        order = random.integers(2, size=item_a.shape) if sizes["num_orders"] > 1 else None
        given = constraints_of(
            np.empty(0), item_a[:0, 0], item_b[:0, 0], np.empty(0), feature, sizes["num_experts"],
            **_answers(sizes, order if order is None else order[:0, 0]),
        )  # fmt: skip
        drawn = _from_the_prior(random, key_priors, resolved.replace(data=given))
        values = {**drawn, "feature": feature, "item_a": item_a, "item_b": item_b}
        values |= {} if order is None else {"order": order}
    values = {name: np.asarray(value) for name, value in values.items()}
    view, cluster = values["view_of_expert"], values["cluster"]
    size = values["item_a"].shape[1]
    expert = np.repeat(np.arange(len(view)), size)
    item_a, item_b = values["item_a"].ravel(), values["item_b"].ravel()
    together = cluster[view[expert], item_a] == cluster[view[expert], item_b]
    answers = _answers(sizes, values["order"].ravel() if "order" in values else None)
    data = constraints_of(expert, item_a, item_b, together, values["feature"], len(view), **answers)
    apart, so = (own_view(part, view)[expert] for part in answering(values, resolved.replace(data=data)))
    probability = np.exp(np.where(together[:, None], so, apart))
    shape = (len(expert), data.num_orders, data.num_answers)
    of_order = probability.reshape(shape)[np.arange(len(expert)), 0 if data.order is None else data.order]
    uniform = _generator(key_answers).random((len(expert), 1))
    # From the last answer down, as yes and no are drawn: yes where the number is below its probability.
    answer = data.num_answers - 1 - (uniform >= of_order[:, :0:-1].cumsum(axis=1)).sum(axis=1)
    return data.replace(together=answer.astype(np.int32)), values


def _answers(sizes: Mapping[str, Any], order: Any) -> dict[str, Any]:
    """Return of which kind the answers are, as `Constraints` has it."""
    grades, blanks = sizes["num_grades"], sizes["num_blanks"]
    known = {} if (grades, blanks) == (2, 0) else {"num_grades": grades, "num_blanks": blanks}
    return known | ({} if order is None else {"order": np.asarray(order, np.int32)})


def _generator(key: Key) -> np.random.Generator:
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


def _from_the_prior(random: np.random.Generator, key: Key, resolved: Resolved) -> dict[str, np.ndarray]:
    """Draw the sites of the model; the data say how many experts there are, and have the features."""
    data, given, views = resolved.data, resolved.given, resolved.size("view")
    stick = random.beta(1.0, given.concentration, views - 1)
    view = random.choice(views, data.num_experts, p=view_weights(stick))
    drawn, logits = jax.tree.map(np.asarray, _experts_and_weights(key, resolved))
    cluster = (logits + random.gumbel(size=logits.shape)).argmax(axis=-1)
    return {"stick": stick, "view_of_expert": view, **drawn, "cluster": cluster}


@jax.jit
def _experts_and_weights(key: Key, resolved: Resolved) -> tuple[dict[str, Array], Float[Array, "view item cluster"]]:
    """Draw what is true of experts, and the weights; return them, and the logits of the clusters."""
    data, by_view, views = resolved.data, resolved.settings.experts == "per-view", resolved.size("view")
    names = answer_table(resolved).sites
    key_weight, *keys = jax.random.split(key, max(3, 1 + len(names)))
    shape = (views, data.num_experts) if by_view else (data.num_experts,)
    drawn = {}
    for site, key_site in zip(names, keys, strict=False):
        key_prior, key_draw = jax.random.split(key_site)
        with handlers.seed(rng_seed=key_prior):  # priors may draw parameters of their own
            prior = resolved.prior(site)
        value = prior.expand(shape).sample(key_draw)
        drawn[site] = value.swapaxes(0, 1) if by_view else value
    inputs = jnp.concatenate([jnp.asarray(data.feature), jnp.ones((data.num_items, 1))], axis=1)
    drawn["weight"] = weight_prior(resolved, inputs.shape[1]).sample(key_weight, (views,))
    return drawn, jax.vmap(link_of(resolved.given), (0, None))(drawn["weight"], inputs)


def _random_pairs(
    random: np.random.Generator, num_items: int, num_experts: int, num_pairs: int
) -> tuple[Int[np.ndarray, "expert pair"], Int[np.ndarray, "expert pair"]]:
    """Return the items of the pairs that each expert judges, all sets being as likely."""
    total = num_items * (num_items - 1) // 2
    pair = _different(random, num_experts, min(num_pairs, total), total)
    # Pair p of the list (0, 1), (0, 2), (1, 2), (0, 3), … has the second item that p >= second (second - 1) / 2 says.
    second = np.floor((1 + np.sqrt(1 + 8.0 * pair)) / 2).astype(np.int64)
    second -= pair < second * (second - 1) // 2
    first = pair - second * (second - 1) // 2
    return first, second


def _different(random: np.random.Generator, rows: int, size: int, total: int) -> Int[np.ndarray, "row number"]:
    """Draw different numbers below ``total`` in each row, without listing all."""
    chosen = np.empty(0, np.int64)
    while len(chosen) < rows * size:
        missing = size - np.bincount(chosen // total, minlength=rows)
        row = np.repeat(np.arange(rows), missing)
        chosen = np.union1d(chosen, row * total + random.integers(total, size=len(row)))
    return chosen.reshape(rows, size) % total
