"""One pass over the draws of a truth, folded: what `evaluate`, `compare` and `certainty` share.

A metric is sums per unit and a value of sums (`consilience.evaluation.registry`). A `Scoring` yields the sums, a block
of units or of draws at a time, for all systems and metrics on the same draws; *folds* keep what is wanted of them.
Nothing of system × unit × draw outlives its block.

| fold | keeps, for each system |
|---|---|
| `Totals` | sums of all units, by draw |
| `unit_sums.UnitSums` | these, means over draws by unit, and what covariance over draws units have of their own |
| `PerUnit` | mean and variance over draws, by unit |
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
from consilience.models.truth.truth import Marginals
from consilience.progress import steps

BATCHES = 20
"""Of draws; their means tell the Monte Carlo error of a mean."""


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


def parts_alike(
    mean: Float[np.ndarray, "system part"], score: Float[np.ndarray, "system replicate"]
) -> Float[np.ndarray, "system part replicate"]:
    """Return the sums of a unit of a given score where a score is the mean of a part."""
    return np.repeat(score[:, None], mean.shape[1], axis=1)


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
    mean_given : computes the mean over units of a metric, ``(system,)``, from the distribution of each unit's label;
        None where that does not tell it.
    first_choice : of a metric that asks whether the first choice is right, that of each system: codes
        ``(system, unit)``, below 0 where it is no class of the truth.
    independent : whether units share no parameters, so that those of one tell nothing of another.
    widening : of deviations of draws from their mean, a factor: units are wrong together more than draws show.
    assumes : what intervals assume, in words.
    bounds : by the name of a metric, what a score lies between; (0, 1) where nothing is said, None without bounds.
    pseudo : the sums ``(system, part, replicate)`` of a unit that is like the mean of all, ``(system, part)``, but has
        a given score, ``(system, replicate)``.
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
    mean_given: Callable[[Marginals], np.ndarray] | None = None
    first_choice: Int[np.ndarray, "system unit"] | None = None
    independent: bool = False
    widening: float = 1.0
    assumes: tuple[str, ...] = ()
    bounds: Mapping[str, tuple[float, float] | None] = field(default_factory=dict)
    pseudo: Callable[[np.ndarray, np.ndarray], np.ndarray] = parts_alike
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

    def widened(self, draws: Float[np.ndarray, "system draw"]) -> Float[np.ndarray, "system draw"]:
        """Return draws of scores that are as far apart as the errors of units together make them."""
        mean = draws.mean(axis=1, keepdims=True)
        return draws if self.widening == 1 else mean + self.widening * (draws - mean)

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
    """Make one pass over the draws; of one that takes long there is a bar."""
    total, unit = (scoring.num_draws, "draw") if scoring.joint else (scoring.num_units, scoring.unit)
    with steps(total, "scoring", unit) as bar:
        for block in scoring.blocks():
            for one in folds:
                one.add(block)
            bar.to((block.draws if scoring.joint else block.units).stop)


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
        self._batches: Any = None
        self._shown: Any = 0.0
        # Consecutive draws make a batch: chains follow one another, so that a batch is of one chain or nearly so.
        self._batch = np.arange(scoring.num_draws) * min(BATCHES, scoring.num_draws) // scoring.num_draws

    def add(self, block: Sums) -> None:
        """Take in a block."""
        batch, first = np.unique(self._batch[block.draws], return_index=True)
        if block.shown is not None:
            self._shown = self._shown + block.shown
            return
        sums = block.values
        if self.name in self.scoring.of_means:  # a block has all draws of its units
            sums = np.broadcast_to(sums.mean(axis=3, keepdims=True), sums.shape)
        values = np.asarray(self.scoring.values[self.name](np.moveaxis(sums, 1, 0), 1), float)
        if self._batches is None:
            self._batches = np.zeros((len(values), self.scoring.num_units, self._batch[-1] + 1))
            self._second = np.zeros(self._batches.shape[:2])
        self._batches[:, block.units, batch[0] : batch[-1] + 1] += np.add.reduceat(values, first, axis=2)
        self._second[:, block.units] += np.square(values).sum(axis=2)

    @property
    def mean(self) -> Float[np.ndarray, "system unit"]:
        """The mean over draws."""
        return self._batches.sum(axis=2) / self.scoring.num_draws

    @property
    def variance(self) -> Float[np.ndarray, "system unit"]:
        """The variance over draws; zeros of a single one."""
        number = self.scoring.num_draws
        return np.maximum(self._second / number - self.mean**2, 0) * number / max(number - 1, 1)

    @property
    def mcse(self) -> Float[np.ndarray, "system unit"]:
        """The Monte Carlo error of the mean, from the means of batches of draws; 0 of a single draw."""
        size = np.bincount(self._batch)
        means = self._batches / size
        number = len(size)
        with np.errstate(invalid="ignore"):  # a score may be minus infinity
            return np.sqrt(means.var(axis=2, ddof=1) / number) if number > 1 else np.zeros(means.shape[:2])

    def rows(self) -> Float[np.ndarray, "system row"]:
        """Return the means as rows of a table; NaN where there is no unit."""
        return self._as_rows(self.mean) if self._batches is not None else self._shown / self.scoring.num_draws

    def mcse_rows(self) -> Float[np.ndarray, "system row"] | None:
        """Return the Monte Carlo errors likewise; None where the rows are other than the units."""
        return None if self._batches is None else self._as_rows(self.mcse)

    def _as_rows(self, of_units: Float[np.ndarray, "system unit"]) -> Float[np.ndarray, "system row"]:
        found = np.full((len(of_units), self.scoring.rows), np.nan)
        found[:, self.scoring.place] = of_units
        return found


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
