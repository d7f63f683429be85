"""One pass over the draws of a truth, folded: what `evaluate`, `compare` and `certainty` share.

A metric is sums per unit and a value of sums (`consilience.evaluation.registry`). A `Scoring` yields the sums, a block
of units or of draws at a time, for all systems and metrics on the same draws; *folds* keep what is wanted of them.
Nothing of system × unit × draw outlives its block.

| fold | keeps, for each system |
|---|---|
| `Totals` | sums of all units, by draw |
| `PerUnit` | mean and variance over draws, by unit |
| `Bootstrap` | sums of units weighted by Dirichlet(1, …, 1), by replicate |
| `ByGroup` | sums by the group of the draw's top class |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Float, Int
from consilience.evaluation.independent import Moments

# Replicates of the weights of units where the truth is a point and has no draws to pair them with.
_REPLICATES = 1000

# Weights that are held at a time.
_MOST_WEIGHTS = 1 << 21


class Sums(NamedTuple):
    """What scores are made of, for some units and draws.

    Parameters
    ----------
    units, draws : which ones. Where units are scored alone a block has all draws; where together, all units.
    values : shape ``(system, part, unit, draw)``.
    top : shape ``(unit, draw)``; the top class of each draw, where units have one.
    shown : shape ``(system, row)``; summed over the draws, what a table shows of its rows where these are other than
        the units.
    """

    units: slice
    draws: slice
    values: np.ndarray
    top: Int[np.ndarray, "unit draw"] | None = None
    shown: Float[np.ndarray, "system row"] | None = None


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """How systems are scored against a truth.

    Parameters
    ----------
    blocks : makes one pass over the draws.
    values : by the name of a metric, its score from sums ``(part, …)`` and the number of units that these are of.
    title : what was measured in words, from the name of a metric, and of a system; the draws say where it is undefined.
    unit, num_units : what is weighted: item, document, connected group.
    num_draws : of the truth.
    joint : whether units are scored together, a draw at a time.
    standard : sums ``(system, part, unit)`` against what standard practice takes for the truth, or None.
    exact : computes the expectations of one metric in closed form, or returns None where there is none.
    place : shape ``(unit,)``; of the units among the rows of a table.
    rows, ids : how many rows a table of one system has, and what they are called.
    row, label : what a row and the score are called in that table.
    bounds : by the name of a metric, between what its scores lie; None where nothing bounds them. (0, 1) where absent.
    of_means : names of metrics that are of sums averaged over the draws: of calibration, whose value of one draw holds
        that draw's own noise.
    """

    blocks: Callable[[], Iterator[Sums]]
    values: Mapping[str, Callable[[np.ndarray, Any], np.ndarray]]
    title: Callable[..., str]
    unit: str
    num_units: int
    num_draws: int
    joint: bool
    standard: Callable[[], np.ndarray | None]
    exact: Callable[[], Moments | None] = lambda: None
    place: Int[np.ndarray, " unit"]
    rows: int
    ids: Any
    row: str
    label: str = "score"
    bounds: Mapping[str, tuple[float, float] | None] = field(default_factory=dict)
    of_means: frozenset[str] = frozenset()

    def value(self, name: str, sums: Float[np.ndarray, "system part ..."]) -> Float[np.ndarray, "system ..."]:
        """Return the score of a metric from sums of all units."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.values[name](np.moveaxis(sums, 1, 0), self.num_units), float)

    def by_draw(self, name: str, sums: Float[np.ndarray, "system part draw"]) -> Float[np.ndarray, "system draw"]:
        """Return the score of each draw from its sums of all units; their mean is the score.

        Of metrics in ``of_means`` the scores of draws are moved, so that their mean is the score of the mean sums.
        """
        scores = self.value(name, sums)
        if name not in self.of_means:
            return scores
        return scores + (self.value(name, sums.mean(axis=2, keepdims=True)) - scores.mean(axis=1, keepdims=True))

    def points(self, name: str) -> Float[np.ndarray, " system"] | None:
        """Return the scores against what standard practice takes for the truth."""
        sums = self.standard()
        return None if sums is None else self.value(name, sums.sum(axis=2, dtype=float))


def mean_of(part: int) -> Callable[[np.ndarray, Any], np.ndarray]:
    """Return the value of a metric that is the mean over units of one part of the sums."""
    return lambda parts, number: parts[part] / number


class Fold(ABC):
    """What keeps something of a pass."""

    @abstractmethod
    def add(self, block: Sums) -> None:
        """Take in a block."""


def fold(scoring: Scoring, *folds: Fold) -> None:
    """Make one pass over the draws."""
    for block in scoring.blocks():
        for one in folds:
            one.add(block)


class Totals(Fold):
    """Sums of all units, by draw."""

    def __init__(self, scoring: Scoring) -> None:
        self.scoring = scoring
        self.sums: Any = None

    def add(self, block: Sums) -> None:
        """Take in a block."""
        if self.sums is None:
            self.sums = np.zeros((*block.values.shape[:2], self.scoring.num_draws))
        self.sums[:, :, block.draws] += block.values.sum(axis=2, dtype=float)

    def scores(self, name: str) -> Float[np.ndarray, "system draw"]:
        """Return the score of each draw; see `Scoring.by_draw`."""
        return self.scoring.by_draw(name, self.sums)


class PerUnit(Fold):
    """Mean and variance over draws of the score of each unit by itself, for one metric; linear in units.

    Of a metric in `Scoring.of_means` it is the score of the unit's mean sums, without variance.
    """

    def __init__(self, scoring: Scoring, name: str) -> None:
        self.scoring, self.name = scoring, name
        self._first: Any = None
        self._shown: Any = 0.0

    def add(self, block: Sums) -> None:
        """Take in a block."""
        if block.shown is not None:
            self._shown = self._shown + block.shown
            return
        sums = block.values
        if self.name in self.scoring.of_means:  # a block has all draws of its units
            sums = np.broadcast_to(sums.mean(axis=3, keepdims=True), sums.shape)
        values = np.asarray(self.scoring.values[self.name](np.moveaxis(sums, 1, 0), 1), float)
        if self._first is None:
            self._first, self._second = (np.zeros((len(values), self.scoring.num_units)) for _ in range(2))
        self._first[:, block.units] += values.sum(axis=2)
        self._second[:, block.units] += np.square(values).sum(axis=2)

    @property
    def mean(self) -> Float[np.ndarray, "system unit"]:
        """The mean over draws."""
        return self._first / self.scoring.num_draws

    @property
    def variance(self) -> Float[np.ndarray, "system unit"]:
        """The variance over draws; zeros of a single one."""
        number = self.scoring.num_draws
        return np.maximum(self._second / number - self.mean**2, 0) * number / max(number - 1, 1)

    def rows(self) -> Float[np.ndarray, "system row"]:
        """Return the means as rows of a table; NaN where there is no unit."""
        if self._first is None:
            return np.asarray(self._shown / self.scoring.num_draws)
        found = np.full((len(self._first), self.scoring.rows), np.nan)
        found[:, self.scoring.place] = self.mean
        return found


class Bootstrap(Fold):
    """Sums of units weighted by Dirichlet(1, …, 1), the Bayesian bootstrap (Rubin 1981): one for all kinds.

    Weights are consumed in the order of the blocks, unit by unit where units are scored alone and draw by draw where
    together, so that no result depends on the size of blocks; all systems share them. There is a replicate for each
    draw, or a fixed number where there is only one.
    """

    def __init__(self, scoring: Scoring, seed: int = 0) -> None:
        self.scoring, self.seed = scoring, seed
        self.number = scoring.num_draws if scoring.num_draws > 1 else _REPLICATES
        self._random = np.random.default_rng(seed)
        self._both: Any = None

    def add(self, block: Sums) -> None:
        """Take in a block."""
        if self._both is None:
            systems, parts = block.values.shape[:2]
            self._both = np.zeros((systems, parts, self.number))
            self._units = np.zeros((systems, parts, self.scoring.num_units if self.scoring.joint else self.number))
            self._weight = np.zeros(self.number)
        if self.scoring.joint:
            self._add_draws(block)
        else:
            self._add_units(block)

    def _add_units(self, block: Sums) -> None:
        values = block.values.astype(np.float32)
        weight = self._random.standard_exponential((values.shape[2], self.number), dtype=np.float32)
        self._weight += weight.sum(axis=0, dtype=float)
        # No matrix product: BLAS rounds the last rows in another way, and systems that are alike would not tie.
        self._units += np.einsum("spi,id->spd", values.mean(axis=3), weight, dtype=float)
        if self.scoring.num_draws > 1:
            self._both += np.einsum("spid,id->spd", values, weight)

    def _add_draws(self, block: Sums) -> None:
        values = np.asarray(block.values, float)
        self._units += values.sum(axis=3)
        if self.scoring.num_draws > 1:
            weight = _weights(self._random, values.shape[3], values.shape[2])
            self._both[:, :, block.draws] += np.einsum("spud,du->spd", values, weight)

    def scores(self, name: str) -> Float[np.ndarray, "system replicate"]:
        """Return the scores with both the truth and the units uncertain."""
        if self.scoring.num_draws == 1:
            return self.unit_scores(name)
        both = self._both if self.scoring.joint else self._both / (self._weight / self.scoring.num_units)
        return self.scoring.value(name, both)

    def unit_scores(self, name: str) -> Float[np.ndarray, "system replicate"]:
        """Return the scores with the units alone uncertain: of sums that are averaged over draws, as ratios are not."""
        if not self.scoring.joint:
            return self.scoring.value(name, self._units / (self._weight / self.scoring.num_units))
        mean, random = self._units / self.scoring.num_draws, np.random.default_rng(self.seed)
        rows = max(_MOST_WEIGHTS // max(self.scoring.num_units, 1), 1)
        parts = [
            np.einsum("spu,nu->spn", mean, _weights(random, min(rows, self.number - start), mean.shape[2]))
            for start in range(0, self.number, rows)
        ]
        return self.scoring.value(name, np.concatenate(parts, axis=2))


def _weights(random: np.random.Generator, number: int, num_units: int) -> Float[np.ndarray, "replicate unit"]:
    weight = random.standard_exponential((number, num_units))
    return weight / weight.mean(axis=1, keepdims=True)


class ByGroup(Fold):
    """Sums by the group of the draw's top class, of the first system, for one metric that is a mean over units.

    Parameters
    ----------
    scoring, name : what is scored.
    group : shape ``(class,)``.
    num_groups : how many there are.
    """

    def __init__(self, scoring: Scoring, name: str, group: Int[np.ndarray, " class"], num_groups: int) -> None:
        self.scoring, self.name, self.group = scoring, name, group
        self.hits, self.cases = (np.zeros((num_groups, scoring.num_draws)) for _ in range(2))

    def add(self, block: Sums) -> None:
        """Take in a block."""
        scores = np.asarray(self.scoring.values[self.name](np.moveaxis(block.values, 1, 0), 1), float)[0]
        of_draw = self.group[block.top]
        for number in range(len(self.cases)):
            member = of_draw == number
            self.cases[number] += member.sum(axis=0)
            self.hits[number] += (scores * member).sum(axis=0)
