r"""GLAD: able annotators and easy items (Whitehill et al. 2009), on a grid.

.. math::

    p \sim \mathrm{Dir}(1, …, 1), \qquad T_i \sim \mathrm{Cat}(p), \qquad
    l_n = T_{i_n} \text{ with probability } \sigma(\alpha_{j_n} b_{i_n}), \text{ else uniform over the other labels}.

| symbol | name | points of its grid |
|---|---|---|
| α | ``ability``, below zero of one who tends to be wrong | 41 from -2 to 8 |
| log b | ``log_ease``, minus the log of the difficulty | 9 from -3 to 3 |

At ability zero an annotator is right with probability 1/2, of however many labels, as published. The paper takes
gradient steps; on a grid all updates are sums (`consilience.models.crowd.grid_ascent`). The weights of the points before
any annotation are those of normal distributions, N(2, 1.5²) and N(0, 1), and are learned from the fourth sweep on
(empirical Bayes): of the abilities mean and variance, which are set to those of all annotators, and of log b each weight,
under Dirichlet(2, …, 2), half of the way at a time. `Priors` of one's own fix them, and then the objective never falls;
with learned abilities it may, by what the ends of their grid cut off.

That items differ in difficulty explains much of what annotators err together, so that ``dependence`` is .15 by default
where other crowds have .3. Accuracies, the crowd and what it would say again are those of an item drawn from the data:
there an annotator is a coin (`one-coin`), right with the probability of her ability averaged over the items' ease.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from scipy.special import expit

from consilience.arrays import Float, Key
from consilience.data.annotations import Annotations
from consilience.errors import UnsupportedRequest
from consilience.models import one_coin
from consilience.models.crowd import grid_ascent
from consilience.models.crowd.agreement import Parameters
from consilience.models.crowd.channel import CrowdSettings, dependence_setting
from consilience.models.crowd.density import SIZES, who_labels_what
from consilience.models.crowd.gate import signal, signal_notes
from consilience.models.crowd.tables import Asked, tables_of
from consilience.models.crowd.truth import truth_of
from consilience.models.crowd.votes import require_annotators, votes_of
from consilience.models.dirichlet import Symmetric
from consilience.models.grids import LearnedNormal, OnGrid, normal_log_weights
from consilience.models.interface import Account, Ascent, Column, Model, Simulation, Table
from consilience.models.intervals import LEVEL
from consilience.models.label_tables import INTERVAL
from consilience.models.posterior import Closed, Posterior
from consilience.models.sites import Resolved, Site, Sites
from consilience.models.truth.labels import LabelTruth
from consilience.notes import Note

__all__ = ["MODEL", "Priors", "Settings", "simulate"]

GRIDS = {"ability": np.linspace(-2, 8, 41), "log_ease": np.linspace(-3, 3, 9)}
_DEPENDENCE = 0.15


@dataclass(frozen=True, kw_only=True)
class Settings(CrowdSettings):
    """Settings of `glad`; see the fields."""

    dependence: float | str = dependence_setting(_DEPENDENCE)


@dataclass(frozen=True, kw_only=True)
class Priors:
    """``prevalence``, event shape ``(class,)``; ``ability`` and ``log_ease``, a normal distribution for all of them."""

    prevalence: dist.Distribution | Callable[[Any], dist.Distribution] = Symmetric(1.0)
    ability: dist.Distribution | Callable[[Any], dist.Distribution] = LearnedNormal(2.0, 1.5)
    log_ease: dist.Distribution | Callable[[Any], dist.Distribution] = LearnedNormal(0.0, 1.0)


def log_weights(site: str, resolved: Resolved) -> Float[np.ndarray, " point"]:
    """Return the log probabilities of the points of a grid under its prior."""
    return np.asarray(normal_log_weights(GRIDS[site], *resolved.concentration(site)), jnp.result_type(float))


def prepare(resolved: Resolved) -> grid_ascent.Problem:
    """Collect what the steps read, on the host."""
    data = resolved.data
    if data.num_labels < 2:
        raise UnsupportedRequest("'glad' needs 2 labels or more; the data have one")
    require_annotators(data, "glad", data.num_items * data.num_labels * len(GRIDS["log_ease"]))
    dtype = jnp.result_type(float)
    return grid_ascent.Problem(
        votes_of(resolved), resolved.concentration("prevalence").astype(dtype),
        *(points.astype(dtype) for points in GRIDS.values()), tuple(log_weights(site, resolved) for site in GRIDS),
        np.array([isinstance(getattr(resolved.given, site), LearnedNormal) for site in GRIDS]),
    )  # fmt: skip


def finish(values: dict[str, Any], resolved: Resolved) -> Closed:
    """Return the posterior."""
    factors = {site: OnGrid(points.astype(values[site].dtype), values[site]) for site, points in GRIDS.items()}
    hidden = {name: values[name] for name in HIDDEN}
    return Closed({"prevalence": dist.Dirichlet(values["prevalence"]), **factors}, hidden)


class Averaged(Parameters):
    """Annotators as coins: right as they are on an item drawn from the data."""

    def __init__(self, posterior: Posterior, resolved: Resolved, key: Key, num_draws: int) -> None:
        super().__init__(one_coin.CHANNEL, posterior, resolved, key, num_draws)
        self.sites, self.is_closed = tuple(one_coin.MODEL.sites), False
        weight = np.asarray(posterior.log_ease.probability, float).mean(axis=0)
        self.right = expit(GRIDS["ability"][:, None] * np.exp(GRIDS["log_ease"])) @ (weight / weight.sum())

    @functools.cached_property
    def stored(self) -> dict[str, Any]:
        """Draws of the class shares and of the probabilities of being right."""
        assert isinstance(self.posterior, Closed)
        keys, shape = jax.random.split(self.key), (self.num_draws,)
        ability = np.asarray(self.posterior.factors["ability"].sample(keys[0], shape))
        prevalence = self.posterior.factors["prevalence"].sample(keys[1], shape)
        return {"prevalence": prevalence, "accuracy": np.interp(ability, GRIDS["ability"], self.right)}

    @property
    def mean_logs(self) -> dict[str, Any]:
        """Logarithms of the means."""
        right = np.asarray(self.posterior.ability.probability, float) @ self.right
        share = np.asarray(self.posterior.prevalence, float)
        return {"prevalence": np.log(share / share.sum()), "accuracy": np.log(np.stack([right, 1 - right], axis=1))}


def _abilities(asked: Asked) -> dict[str, np.ndarray]:
    found = asked.posterior.summary("ability", level=asked.level)
    return {"ability": found.mean, "ability_lower": found.lower, "ability_upper": found.upper}


def items(
    posterior: Posterior, resolved: Resolved, truth: LabelTruth, level: float = LEVEL
) -> dict[str, np.ndarray]:
    """Return how difficult each item is: minus the mean of log b, and an interval.

    Parameters
    ----------
    level : probability of the intervals.
    """
    found = posterior.summary("log_ease", level=level)
    return {"item": np.arange(len(found.mean)), "difficulty": -found.mean, "lower": -found.upper, "upper": -found.lower}


def draw_data(key: Key, resolved: Resolved, sizes: Mapping[str, Any]) -> tuple[Annotations, dict[str, np.ndarray]]:
    """Draw abilities, ease, labels and annotations; sizes and gold as for every crowd."""
    key_who, key_rest = jax.random.split(key)
    random = np.random.default_rng(np.asarray(jax.random.key_data(key_rest)))
    counts = {name: sizes[name] for name in ("num_items", "num_annotators", "num_labels")}
    num_items, num_annotators, num_labels = counts.values()
    weight = {site: np.exp(log_weights(site, resolved).astype(float)) for site in GRIDS}
    ability, log_ease = (
        random.choice(GRIDS[site], number, p=weight[site] / weight[site].sum())
        for site, number in zip(GRIDS, (num_annotators, num_items), strict=True)
    )
    prevalence = random.dirichlet(resolved.concentration("prevalence"))
    true = random.choice(num_labels, num_items, p=prevalence)
    item, annotator = who_labels_what(key_who, sizes)
    wrong = random.random(len(item)) >= expit(ability[annotator] * np.exp(log_ease[item]))
    label = (true[item] + wrong * random.integers(1, max(num_labels, 2), len(item))) % num_labels
    gold = np.where(np.arange(num_items) % 2, true, -1) if resolved.settings.gold == "use" else None
    data = Annotations.from_codes(item, annotator, label, gold=gold, **counts)
    return data, {"prevalence": prevalence, "ability": ability, "log_ease": log_ease, "label": true}


def says(account: Account) -> Iterator[Note]:
    """Yield what the agreement of the annotators says."""
    data = account.resolved.data
    yield from signal_notes(signal(data), data.annotators)


HIDDEN = {"probability": ("item", "class"), "prior.ability": ("ability_point",), "prior.log_ease": ("ease_point",)}

MODEL = Model(
    name="glad", title="able annotators and easy items (GLAD), by coordinate ascent on a grid",
    paper="""@inproceedings{whitehill2009whose,
  author = {Whitehill, Jacob and Ruvolo, Paul and Wu, Tingfan and Bergsma, Jacob and Movellan, Javier}, year = {2009},
  title = {Whose vote should count more: Optimal integration of labels from labelers of unknown expertise},
  booktitle = {Advances in Neural Information Processing Systems}, volume = {22}}""",
    takes=(Annotations,), settings=Settings, priors=Priors,
    sites=Sites(
        Site("prevalence", event=("class",), family=dist.Dirichlet),
        Site("ability", plates=("annotator",), family=dist.Normal),
        Site("log_ease", plates=("item",), family=dist.Normal), hidden=HIDDEN,
    ),
    engines=(
        Ascent(
            name="cavi", prepare=prepare, start=grid_ascent.start, step=grid_ascent.step, sites=grid_ascent.sites,
            finish=finish, shard=grid_ascent.shard, lengths=grid_ascent.real_lengths,
            moved=lambda before, after: jnp.abs(after.probability - before.probability).max(),
        ),
    ),
    truth=truth_of(Averaged, "probability", _DEPENDENCE),
    tables=(
        *tables_of(
            Averaged, _abilities,
            (
                Column("ability", help="α, the log odds of being right on an item of ease one"),
                Column("ability_lower", help="end of its central interval"), Column("ability_upper", help="its other end"),
            ),
        ),
        Table(
            name="items", help="How difficult each item is.", make=items,
            columns=(Column("item", "item"), Column("difficulty", help="minus the mean of log b"), *INTERVAL),
        ),
    ),
    says=says, simulation=Simulation(draw=draw_data, empty=Annotations.empty, sizes=SIZES),
)  # fmt: skip
simulate = MODEL.simulate
