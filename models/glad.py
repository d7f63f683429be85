r"""GLAD: able annotators and easy items (Whitehill et al. 2009), on a grid.

.. math::

    p \sim \mathrm{Dir}(1, \ldots, 1), \qquad T_i \sim \mathrm{Cat}(p), \qquad
    l_n = T_{i_n} \text{ with probability } \sigma(\alpha_{j_n} b_{i_n}), \text{ else uniform over the other labels}.

| symbol | name | points of its grid |
|---|---|---|
| α | ``ability``, below zero of one who tends to be wrong | 41 from -2 to 8 |
| log b | ``log_ease``, minus the log of the difficulty | 9 from -3 to 3 |

At ability zero an annotator is right with probability 1/2, of however many labels, as published. Where the paper takes
gradient steps all updates here are sums (`consilience.models.crowd.grid_ascent`). Before any annotation the points have
those of N(2, 1.5²) and N(0, 1). From the fourth sweep on weights are learned (empirical Bayes): mean and variance of
the abilities are those of all annotators, and the weights of log b, under Dirichlet(2, …, 2), go half of the way to
their best values. `Priors` of one's own fix them; then the objective never falls, as it may where the grid ends early.

Difficult items explain much of what annotators err together: ``dependence`` is .15 by default, and .3 of other crowds.
Accuracies, and what the crowd would say again, are those on an item drawn from the data: there an annotator is a coin
(`one-coin`), right with the probability of her ability averaged over the items. Intervals are those of q alone, and too
narrow: of 240 simulated annotators (30 rows each) nominal 90 % held for .73 of abilities and .55 of accuracies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import numpyro.distributions as dist
from scipy.special import expit, softmax

from consilience.arrays import Key
from consilience.data.annotations import Annotations
from consilience.models import one_coin
from consilience.models.crowd.agreement import Parameters
from consilience.models.crowd.channel import CrowdSettings, dependence_setting
from consilience.models.crowd.density import LEAST_ITEMS, SIZES, of_size, who_labels_what
from consilience.models.crowd.grid_ascent import HIDDEN, grid_ascent_of, log_weights
from consilience.models.crowd.member import says_of
from consilience.models.crowd.pairs import AgreementGivenClass
from consilience.models.crowd.tables import Asked, tables_of
from consilience.models.crowd.truth import truth_of
from consilience.models.dirichlet import Symmetric
from consilience.models.gold import GOLD_MEASURES
from consilience.models.grids import LearnedNormal
from consilience.models.interface import Column, Model, Simulation, Table
from consilience.models.posterior import Posterior
from consilience.models.rows import padded_size
from consilience.models.sites import Resolved, Site, Sites
from consilience.models.truth.labels import LabelTruth

__all__ = ["MODEL", "Priors", "Settings", "simulate"]

# Steps of .05: with many annotations an ascent goes no further than a point where the next one is worse, and in steps
# of .25 it stayed at an ability of 0.
GRIDS = {"ability": np.linspace(-2, 8, 201), "log_ease": np.linspace(-3, 3, 9)}
_DEPENDENCE = 0.15
_SPREAD = 0.9  # of log rho between crowds, as in `consilience.models.crowd.dependence`; by glad it is .72


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


class Averaged(Parameters):
    """Annotators as coins: right as they are on an item drawn from the data."""

    has_intervals = False

    def __init__(self, posterior: Posterior, resolved: Resolved, key: Key, num_draws: int) -> None:
        super().__init__(one_coin.CHANNEL, posterior, resolved, key, num_draws)
        self.sites, self.is_closed = tuple(one_coin.MODEL.sites), False
        weight = np.asarray(posterior.log_ease.probability, float).mean(axis=0)
        self.right_by_ease = expit(GRIDS["ability"][:, None] * np.exp(GRIDS["log_ease"]))
        self.ease = weight / weight.sum()
        self.right = self.right_by_ease @ self.ease

    @functools.cached_property
    def stored(self) -> dict[str, Any]:
        """Draws of the class shares and of the probabilities of being right."""
        factors, keys, shape = self.posterior.factors, jax.random.split(self.key), (self.num_draws,)
        ability = np.asarray(factors["ability"].sample(keys[0], shape))
        prevalence = factors["prevalence"].sample(keys[1], shape)
        return {"prevalence": prevalence, "accuracy": np.interp(ability, GRIDS["ability"], self.right)}

    @property
    def mean_logs(self) -> dict[str, Any]:
        """Logarithms of the means."""
        right = np.asarray(self.posterior.ability.probability, float) @ self.right
        share = np.asarray(self.posterior.prevalence, float)
        return {"prevalence": np.log(share / share.sum()), "accuracy": np.log(np.stack([right, 1 - right], axis=1))}


    def agreement(self) -> AgreementGivenClass:
        """Return how probably pairs agree: an item that is hard for one is hard for the other."""
        right = np.asarray(self.posterior.ability.probability, float) @ self.right_by_ease
        labels = self.resolved.data.num_labels

        def of_pairs(one: np.ndarray, other: np.ndarray) -> np.ndarray:
            both, neither = right[one] * right[other], (1 - right[one]) * (1 - right[other])
            return np.repeat(((both + neither / max(labels - 1, 1)) @ self.ease)[:, None], labels, axis=1)

        return of_pairs


def _abilities(asked: Asked) -> dict[str, np.ndarray]:
    return {"ability": asked.posterior.summary("ability").mean}


def items(posterior: Posterior, resolved: Resolved, truth: LabelTruth) -> dict[str, np.ndarray]:
    """Return how difficult each item is: minus the mean of log b."""
    mean = posterior.summary("log_ease").mean
    return {"item": np.arange(len(mean)), "difficulty": -mean}


def draw_data(key: Key, resolved: Resolved, sizes: Mapping[str, Any]) -> tuple[Annotations, dict[str, np.ndarray]]:
    """Draw abilities, ease, labels and annotations; sizes and gold as for every crowd."""
    key_who, key_rest = jax.random.split(key)
    random = np.random.default_rng(np.asarray(jax.random.key_data(key_rest)))
    counts = {name: sizes[name] for name in ("num_items", "num_annotators", "num_labels")}
    num_items, num_annotators, num_labels = counts.values()
    numbers = zip(GRIDS.values(), log_weights(GRIDS, resolved), (num_annotators, num_items), strict=True)
    ability, log_ease = (random.choice(points, size, p=softmax(own)) for points, own, size in numbers)
    prevalence = random.dirichlet(resolved.concentration("prevalence"))
    true = random.choice(num_labels, num_items, p=prevalence)
    many = of_size(resolved, padded_size(num_items, LEAST_ITEMS)).data
    who = np.asarray(who_labels_what(key_who, many, sizes["annotations_per_item"]))[:num_items]
    item, annotator = np.indices(who.shape)[0].ravel(), who.ravel()
    wrong = random.random(len(item)) >= expit(ability[annotator] * np.exp(log_ease[item]))
    label = (true[item] + wrong * random.integers(1, max(num_labels, 2), len(item))) % num_labels
    gold = np.where(np.arange(num_items) % 2, true, -1) if resolved.settings.gold == "use" else None
    data = Annotations.from_codes(item, annotator, label, gold=gold, **counts)
    return data, {"prevalence": prevalence, "ability": ability, "log_ease": log_ease, "label": true}


MODEL = Model(
    name="glad", title="able annotators and easy items (GLAD), by coordinate ascent on a grid",
    paper="""@inproceedings{whitehill2009whose,
  author = {Whitehill, Jacob and Ruvolo, Paul and Wu, Tingfan and Bergsma, Jacob and Movellan, Javier}, year = {2009},
  title = {Whose vote should count more: Optimal integration of labels from labelers of unknown expertise},
  booktitle = {Advances in Neural Information Processing Systems}, volume = {22}}""",
    takes=(Annotations,), settings=Settings, priors=Priors, engines=(grid_ascent_of("glad", GRIDS),),
    sites=Sites(
        Site("prevalence", event=("class",), family=dist.Dirichlet),
        Site("ability", plates=("annotator",), family=dist.Normal),
        Site("log_ease", plates=("item",), family=dist.Normal), hidden=HIDDEN,
    ),
    truth=truth_of(Averaged, "probability", _DEPENDENCE, _SPREAD),
    tables=(
        *tables_of(Averaged, _abilities, (
            Column("ability", help="α, log odds of being right where b = 1"),)),
        Table(name="items", help="How difficult each item is.", make=items, columns=(
            Column("item", "item"), Column("difficulty", help="minus the mean of log b"))), *GOLD_MEASURES,
    ),
    says=says_of(Averaged), simulation=Simulation(draw=draw_data, empty=Annotations.empty, sizes=SIZES),
)  # fmt: skip
simulate = MODEL.simulate
