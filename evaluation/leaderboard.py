"""A leaderboard: systems ranked by a metric, with what is not known about the ranking."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from consilience.evaluation.readings import Readings, range_text, told, wins
from consilience.evaluation.scores import effective_draws, monte_carlo_errors
from consilience.models.intervals import LEVEL, ends
from consilience.notebook import html
from consilience.rounding import span

# Monte Carlo errors of probabilities above this are told.
_LOOSE = 0.01

_ENDS = ("p_best_lower", "p_best_upper")


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """Systems ranked by a metric, with what is not known about the ranking.

    Parameters
    ----------
    systems : tuple[str, ...]
        Names, in the order in which they were given.
    title : str
        The metric in words.
    values : float64, shape ``(system,)``
        Mean score over items and what the truth may be, as `evaluate` has it: as the annotators alone have it.
    draws : float64, shape ``(system, draw)``
        Scores in the population of items, as the annotators alone have them.
    truth_draws : numpy.ndarray
        Those of these items alone; the truth is uncertain.
    item_draws : numpy.ndarray
        Those of the population with the items alone uncertain.
    points : float64, shape ``(system,)``
        The scores against the point estimate, or None where there is none.
    num_items : int
        How many items every system predicted; of chains, how many documents there are; of partitions, how many
        connected groups of records.
    unit : str, default "item"
        What an item is called.
    shared_draws : numpy.ndarray, optional
        Deviations of the draws that come of what items share, such as the errors of annotators; None where they share
        nothing.
    provenance : tuple[str, ...], optional
        Of each system, one of `consilience.evaluation.readings.PROVENANCES`, or any where gold labels make the values
        right whatever it is; annotations where nothing is said.
    own_values, own_draws : numpy.ndarray, optional
        Shapes ``(reading, system)`` and ``(reading, system, draw)``; with an own look counted, from the lower reading
        to the upper. None where it is not.
    alone : shape ``(system,)``
        The scores as annotators or judges alone have them, where the values are others.
    ranked : bool, default True
        Whether there is a best one: verdicts without gold labels rank nothing.
    digits : int, default 2
        Of P(best) where it is printed.
    mcse : shape ``(system,)``
        Monte Carlo errors of the values; by default those of independent draws of the truth.
    num_chains : int, default 1
        Of the draws of the truth.
    limits : tuple[float, float], optional
        Of the ends of intervals.
    level : float, default 0.95
        Of the intervals.
    notes : tuple[str, ...], optional
        What has to be known to read the table, in sentences.
    by_group : pandas.DataFrame, optional
        With groups of classes: of each system, by ``group``, the columns of `Score.by_group`.

    Examples
    --------
    >>> import numpy as np
    >>> import consilience as cs
    >>> draws = np.array([[0.9, 0.8, 0.7, 0.8], [0.7, 0.6, 0.8, 0.7]])
    >>> ranked = cs.Comparison(
    ...     systems=("ours", "theirs"), title="top-1 accuracy", values=draws.mean(axis=1), draws=draws,
    ...     truth_draws=draws, item_draws=draws, points=None, num_items=10,
    ... )
    >>> ranked.table[["rank", "system", "p_best"]]
       rank  system  p_best
    0     1    ours    0.75
    1     2  theirs    0.25
    """

    systems: tuple[str, ...]
    title: str
    values: np.ndarray
    draws: np.ndarray
    truth_draws: np.ndarray
    item_draws: np.ndarray
    points: np.ndarray | None
    num_items: int
    unit: str = "item"
    shared_draws: np.ndarray | None = None
    provenance: tuple[str, ...] = ()
    own_values: np.ndarray | None = None
    own_draws: np.ndarray | None = None
    alone: np.ndarray | None = None
    ranked: bool = True
    digits: int = 2
    mcse: np.ndarray | None = None
    num_chains: int = 1
    limits: tuple[float, float] = (-np.inf, np.inf)
    level: float = LEVEL
    notes: tuple[str, ...] = ()
    by_group: Any = None

    @functools.cached_property
    def readings(self) -> Readings:
        """The scores under each reading of where predictions come from."""
        own = self.own_draws is not None
        values, draws = (
            np.concatenate([alone[None], more]) if own else alone[None]
            for alone, more in ((self.values, self.own_values), (self.draws, self.own_draws))
        )
        return Readings(values, draws, self.provenance or ("annotations",) * len(self.systems))

    @property
    def order(self) -> np.ndarray:
        """Systems from best to worst, as positions in ``systems``."""
        return np.argsort(-self.readings.value, kind="stable")

    @functools.cached_property
    def table(self) -> Any:
        """Leaderboard, best first.

        Columns ``rank, system, provenance``; ``value``, by which they are ordered: the middle of the lowest and the
        highest reading (printed are the two ends); its Monte Carlo error ``mcse``, ``sd``; ``lower, upper``, from the
        lowest end of a reading to the highest; ``sd_truth`` on these items, ``sd_items`` and ``sd_shared``, what each
        source of uncertainty makes; ``value_alone`` and ``value_own_look``, as annotators alone have it and with an own
        look counted (the middle of its readings), NaN where it is not; ``p_best``, the probability to be the best
        system, NaN where it is a range, as the readings put it further apart than 0.05: take its ends
        ``p_best_lower, p_best_upper``, which are there always, with their Monte Carlo error ``p_best_mcse``; and the
        score and rank that a point estimate of the truth would give.
        """
        import pandas

        number, readings = len(self.systems), self.readings
        lower, upper = np.clip(readings.interval(self.level), *self.limits)
        low, high, error = readings.p_best() if self.ranked else np.full((3, number), np.nan)
        columns = {
            "system": np.array(self.systems, object), "provenance": np.array(readings.provenance, object),
            "value": readings.value,
            "mcse": monte_carlo_errors(self.truth_draws) if self.mcse is None else self.mcse,
            "sd": _sd(np.stack([readings.first(a) for a in range(number)])), "lower": lower, "upper": upper,
            "sd_truth": _sd(self.truth_draws), "sd_items": _sd(self.item_draws), "sd_shared": _sd(self._shared),
            "value_alone": self.values if self.alone is None else self.alone,
            "value_own_look": readings.own_range.sum(axis=0) / 2,
            "p_best": told(low, high), "p_best_lower": low, "p_best_upper": high,
            "p_best_mcse": error,
        }  # fmt: skip
        if self.points is not None:
            columns["point_estimate"] = self.points
            columns["rank_by_point_estimate"] = 1 + (self.points[None, :] > self.points[:, None] + 1e-12).sum(axis=1)
        ranked = {name: values[self.order] for name, values in columns.items()}
        return pandas.DataFrame({"rank": np.arange(1, number + 1), **ranked})

    @functools.cached_property
    def pairs(self) -> Any:
        """Data frame with one row for each pair of systems, the better one as ``a``.

        Columns ``a, b, difference, sd, lower, upper``; ``sd_truth, sd_items, sd_shared`` as in `table`;
        ``p_a_beats_b``, NaN where readings put it further apart than 0.05, between ``p_a_beats_b_lower`` and
        ``p_a_beats_b_upper``; and as annotators alone have it, that probability with the truth or the items alone
        uncertain.
        """
        import pandas

        return pandas.DataFrame([self._pair(int(a), int(b)) for a, b in itertools.combinations(self.order, 2)])

    def _pair(self, a: int, b: int) -> dict[str, Any]:
        truth, items, shared = (draws[a] - draws[b] for draws in (self.truth_draws, self.item_draws, self._shared))
        both = self.readings.differences(a, b)
        lower, upper = np.quantile(both, ends(self.level), axis=1)
        one, *others = (wins(own) if self.ranked else np.full(own.shape[:-1], np.nan) for own in (both, truth, items))
        low, high = one.min(), one.max()
        return {
            "a": self.systems[a], "b": self.systems[b], "difference": self.readings.value[a] - self.readings.value[b],
            "sd": _sd((self.readings.first(a) - self.readings.first(b))[None])[0], "lower": lower.min(),
            "upper": upper.max(), "sd_truth": _sd(truth[None])[0], "sd_items": _sd(items[None])[0],
            "sd_shared": _sd(shared[None])[0], "p_a_beats_b": float(told(low, high)), "p_a_beats_b_lower": low,
            "p_a_beats_b_upper": high, "p_a_beats_b_truth": float(others[0]), "p_a_beats_b_items": float(others[1]),
        }  # fmt: skip

    @property
    def beats(self) -> Any:
        """Data frame of P(row beats column), best first; NaN on the diagonal and where readings put it far apart."""
        import pandas

        found = pandas.DataFrame(np.nan, index=self.table["system"], columns=self.table["system"].to_list())
        for row in self.pairs.itertuples():
            found.loc[row.a, row.b], found.loc[row.b, row.a] = row.p_a_beats_b, 1 - row.p_a_beats_b
        return found.rename_axis(None)

    @property
    def _shared(self) -> np.ndarray:
        return np.zeros((len(self.systems), 2)) if self.shared_draws is None else self.shared_draws

    @property
    def shown(self) -> Any:
        """The columns of `table` that are printed; ``value`` and ``p_best`` are ranges where readings differ."""
        table, own = self.table, self.own_draws is not None
        columns = ["rank", "system", *(["provenance"] if own else []), "value", "lower", "upper"]
        columns += ["value_alone", "value_own_look"] if own else ["sd_truth", "sd_items", "sd_shared"]
        columns += [] if self.points is None else ["point_estimate", "rank_by_point_estimate"]
        shown = table[columns].copy()
        if own:
            shown["value"], shown["value_own_look"] = self.value_texts(4), self.own_texts(4)
        if self.ranked:
            shown.insert(columns.index("upper") + 1, "p_best", self.p_best_texts)
        return shown

    def value_texts(self, digits: int) -> list[str]:
        """Return the scores as they are printed, best first: from the lowest to the highest reading."""
        return [span(low, high, digits) for low, high in self.readings.range[:, self.order].T.tolist()]

    def own_texts(self, digits: int) -> list[str]:
        """Return the scores with an own look likewise, – where it does not count."""
        ends_ = self.readings.own_range[:, self.order].T.tolist()
        return [span(low, high, digits) if np.isfinite(low) else "–" for low, high in ends_]

    @property
    def p_best_texts(self) -> list[str]:
        """P(best) as it is printed, best first: a number, or a range where readings put it far apart."""
        return [self.probability_text(*ends) for ends in zip(*map(self.table.get, _ENDS), strict=True)]

    def probability_text(self, low: float, high: float) -> str:
        """Return a probability that was counted among the draws as it is printed: `p_best_texts`, or of a pair."""
        return range_text(low, high, self.digits, self.effective_draws)

    @functools.cached_property
    def effective_draws(self) -> float:
        """How many independent draws stand behind P(best): the fewest of what the first has more than another."""
        truth = self.truth_draws[self.order]
        return float(np.nanmin([self.draws.shape[1], *effective_draws(truth[:1] - truth[1:], self.num_chains)]))

    def of_these(self) -> Comparison:
        """Return the comparison on these units alone, where what is uncertain is their truth."""
        return replace(self, draws=self.truth_draws)

    @property
    def takes_for_copies(self) -> bool:
        """Whether systems of unknown provenance are scored as made from the annotations, having no other reading."""
        return self.own_draws is None and "unknown" in self.provenance and self.truth_draws.shape[1] > 1

    def _repr_html_(self) -> str:
        return html(self.title, self.notes, self.shown, "comparison.table, .pairs")

    def __repr__(self) -> str:
        counted = f"{self.num_items:,} {self.unit}{'' if self.num_items == 1 else 's'}"
        written = self.shown.to_string(index=False, float_format="{:.4f}".format)
        error = self.table["p_best_mcse"].max()
        loose = [f"Monte Carlo error of P(best): up to {error:.2f}"] if error > _LOOSE else []
        return "\n".join([f"{self.title}, {counted}", written, *loose, *self.notes])


def _sd(draws: np.ndarray) -> np.ndarray:
    return np.std(draws, axis=1, ddof=1) if draws.shape[1] > 1 else np.zeros(len(draws))
