"""GLAD: able annotators and easy items (Whitehill et al. 2009), from its density alone, by NUTS or SVI.

Annotator j labels item i rightly with probability σ(a_j exp(s_i)), and else says each of the other labels alike; true
labels are uniform. ``ability`` a ``(annotator,)`` is below zero of one who tends to be wrong; ``log_ease`` s
``(item,)`` is minus the log of the difficulty. A weight is the power of its annotation's likelihood.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.nn import log_sigmoid, logsumexp
from scipy.special import expit

from consilience.arrays import Array, Float, Int, Key
from consilience.data import Annotations
from consilience.errors import UnsupportedRequest
from consilience.models.interface import Column, Generic, Model, Simulation, Table
from consilience.models.posterior import Posterior
from consilience.models.sites import Resolved, Site, Sites
from consilience.models.truth import LabelDraws, leading


@dataclass(frozen=True, kw_only=True)
class Priors:
    """What is believed of annotators and items: the paper's normal distributions, of mean and variance one."""

    ability: dist.Distribution | Callable[[Any], dist.Distribution] = dist.Normal(1.0, 1.0)
    log_ease: dist.Distribution | Callable[[Any], dist.Distribution] = dist.Normal(1.0, 1.0)


def per_item(values: Float[Array, " annotation"], data: Annotations) -> Float[Array, " item"]:
    """Sum over the annotations of each item, by weight."""
    return jnp.zeros(data.num_items).at[data.item].add(data.weight * values)


def log_joint(x: Float[Array, " annotation"], data: Annotations) -> Float[Array, "item label"]:
    """Return log p(label, annotations) but for Σ log σ(-x), x being ability times ease."""
    others = np.log(max(data.num_labels - 1, 1))  # log σ(x) - log σ(-x) = x: only the label that was given gains
    gains = jnp.zeros((data.num_items, data.num_labels)).at[data.item, data.label].add(data.weight * (x + others))
    return gains - np.log(data.num_labels) - per_item(jnp.full(len(data.item), others), data)[:, None]


def density(resolved: Resolved) -> None:
    """State the joint density, labels summed out."""
    data = resolved.data
    if data.num_annotators == 0:
        raise UnsupportedRequest("'glad' is about annotators, and the data do not say who gave which label")
    with numpyro.plate("annotator", data.num_annotators):
        ability = numpyro.sample("ability", resolved.prior("ability"))
    with numpyro.plate("item", data.num_items):
        ease = jnp.exp(numpyro.sample("log_ease", resolved.prior("log_ease")))
        x = ability[data.annotator] * ease[data.item]
        numpyro.factor("annotations", logsumexp(log_joint(x, data), 1) + per_item(log_sigmoid(-x), data))


def truth(posterior: Posterior, resolved: Resolved, *, key: Key, num_draws: int) -> LabelDraws:
    """Return the labels, drawn given each draw of abilities and ease."""
    return LabelDraws(draw_labels(key, posterior.draws(), resolved.data), resolved.data.num_labels)


@jax.jit
def draw_labels(key: Key, draws: Mapping[str, Array], data: Annotations) -> Int[Array, "draw item"]:
    """Draw the labels given the sites of each draw."""

    def one(given: Any) -> Array:
        x = given[1]["ability"][data.annotator] * jnp.exp(given[1]["log_ease"])[data.item]
        return jax.random.categorical(given[0], log_joint(x, data))

    return jax.lax.map(one, (jax.random.split(key, len(draws["ability"])), draws))


def labels(posterior: Posterior, resolved: Resolved, truth: LabelDraws) -> dict[str, np.ndarray]:
    """Return the most probable label of each item."""
    return leading(truth)


def annotators(posterior: Posterior, resolved: Resolved, truth: LabelDraws) -> dict[str, np.ndarray]:
    """Return how able annotators are, and how often that makes them right on the item of median ease."""
    data, able = resolved.data, posterior.summary("ability")
    right = posterior.summary(lambda own: expit(own["ability"] * np.exp(np.median(own["log_ease"], 1, keepdims=True))))
    number = np.bincount(data.annotator, data.weight, data.num_annotators)
    names = "annotator, annotations, accuracy, lower, upper, ability, ability_lower, ability_upper".split(", ")
    found = np.arange(len(number)), number, right.mean, *right[2:], able.mean, *able[2:]
    return dict(zip(names, found, strict=True))


def items(posterior: Posterior, resolved: Resolved, truth: LabelDraws) -> dict[str, np.ndarray]:
    """Return the difficulty of each item: of the log its mean and interval, on the scale of the paper."""
    mean, _, lower, upper = posterior.summary("log_ease")
    found = {"difficulty": np.exp(-mean), "lower": np.exp(-upper), "upper": np.exp(-lower)}
    return {"item": np.arange(resolved.data.num_items)} | found


INTERVAL = Column("lower", help="end of the central 95 % interval"), Column("upper", help="its other end")
TABLES = (
    Table(name="labels", help="The most probable label of each item.", make=labels, columns=(
        Column("item", "item"), Column("label", "class"), Column("probability", help="of the label"),
        Column("certainty", help="the same"))),
    Table(name="annotators", help="How able each annotator is.", make=annotators, columns=(
        Column("annotator", "annotator"), Column("annotations", help="sum of weights"),
        Column("accuracy", help="on the item of median ease"), *INTERVAL,
        Column("ability", help="a, the log-odds at ease one"), Column("ability_lower", help="end of its interval"),
        Column("ability_upper", help="its other end"))),
    Table(name="difficulties", help="How difficult each item is.", make=items, columns=(
        Column("item", "item"), Column("difficulty", help="exp(-s), by the mean of s"), *INTERVAL)),
)  # fmt: skip


def draw_data(key: Key, resolved: Resolved, sizes: Mapping[str, Any]) -> tuple[Annotations, dict[str, np.ndarray]]:
    """Draw abilities, ease and labels from the prior, and of every annotator a label for every item."""
    keys, shape = jax.random.split(key, 4), (sizes["num_items"], sizes["num_annotators"])
    ability = np.asarray(resolved.prior("ability").expand(shape[1:]).sample(keys[0]))
    log_ease = np.asarray(resolved.prior("log_ease").expand(shape[:1]).sample(keys[1]))
    label = np.asarray(jax.random.randint(keys[2], shape[:1], 0, sizes["num_labels"]))
    random = np.random.default_rng(np.asarray(jax.random.key_data(keys[3])))
    wrong = random.random(shape) >= expit(ability * np.exp(log_ease)[:, None])
    said = (label[:, None] + wrong * random.integers(1, max(sizes["num_labels"], 2), shape)) % sizes["num_labels"]
    item, annotator = np.indices(shape).reshape(2, -1)
    data = Annotations.from_codes(item, annotator, np.asarray(said).ravel(), **sizes)
    return data, {"ability": ability, "log_ease": log_ease, "label": label}


MODEL = Model(
    name="glad",
    title="able annotators and easy items (GLAD)",
    paper="""@inproceedings{whitehill2009whose,
  author = {Whitehill, Jacob and Ruvolo, Paul and Wu, Tingfan and Bergsma, Jacob and Movellan, Javier}, year = {2009},
  title = {Whose vote should count more: Optimal integration of labels from labelers of unknown expertise},
  booktitle = {Advances in Neural Information Processing Systems}, volume = {22}}""",
    takes=(Annotations,), priors=Priors, density=density, truth=truth, tables=TABLES,
    sites=Sites(
        Site("ability", plates=("annotator",), family=dist.Normal, prior_plates=("annotator",)),
        Site("log_ease", plates=("item",), family=dist.Normal, prior_plates=("item",)),
    ),
    engines=(Generic(name="nuts"), Generic(name="svi")),
    simulation=Simulation(
        draw=draw_data, empty=Annotations.empty, sizes={"num_items": 100, "num_annotators": 10, "num_labels": 3}
    ),
)  # fmt: skip
model, simulate = MODEL.model, MODEL.simulate
