"""A leaderboard that knows what it does not know: systems compared under an uncertain truth, on a finite set of items.

Two things make a ranking of systems uncertain, and they are reported apart:

* **truth**: annotators disagree, so that every draw of the truth gives each system another score F^m (Stutz et al.
  2023). This is what is unknown of the score on *these* items;
* **items**: another benchmark of the same kind would hold other items. The Bayesian bootstrap (Rubin 1981) gives item i
  a random weight w_i, Dirichlet(1, …, 1) over the items: the posterior of the mean over the population under a
  non-informative prior.

Both together: draw m of the truth is averaged with the m-th draw of the weights. All systems see the same draws and
the same weights, so that differences between systems are paired in both. A system beats another in a draw when its
score is higher; half a win for a tie. For the score in the population the two together are conservative where the
posteriors of the items are right on average: the spread of the truth is then part of the spread between items too.

Scores of coreference are ratios of sums over documents. Documents are weighted in the place of items: the sums of each
are, before they are added and divided. Scores of partitions of records are weighted likewise, by groups of records that
neither a draw of the truth nor a system links (`consilience.evaluation.partitions`).

Where means and covariances over the truth are known in closed form, normal vectors of that covariance stand in the
place of draws of the truth.

References
----------
Rubin (1981), The Bayesian bootstrap, The Annals of Statistics 9(1).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import Float
from consilience.data.accept import as_systems
from consilience.errors import UnsupportedRequest
from consilience.evaluation.adjustment import require_exact, scoring_of
from consilience.evaluation.classes import Metric
from consilience.evaluation.engine import Bootstrap, Scoring, Sums, Totals, fold
from consilience.evaluation.independent import FEW, Moments
from consilience.evaluation.partitions import DISTANCES
from consilience.models.intervals import LEVEL, ends

# Normal vectors in the place of draws of the truth, where it has a closed form; and units that are weighted at a time.
_VECTORS, _UNITS = 20_000, 1 << 12


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """Systems ranked by a metric, with what is not known about the ranking.

    Parameters
    ----------
    systems : names, in the order in which they were given.
    title : the metric in words.
    values : float64, shape ``(system,)``; mean score over items and what the truth may be, as `evaluate` has it: in
        closed form where there is one, else over draws.
    draws : float64, shape ``(system, draw)``; scores with both sources of uncertainty.
    truth_draws, item_draws : the same with one source only.
    points : float64, shape ``(system,)``, the scores against the point estimate, or None where there is none.
    num_items : how many items every system predicted; of chains, how many documents there are; of partitions, how many
        connected groups of records.
    unit : what an item is called.
    limits : of the ends of intervals: a mean of probabilities is one itself, where a normal draw of it need not be.
    level : of the intervals.
    notes : sentences on what the figures rest on.
    ranks : whether draws tell which system is best; False where scores are an opinion, and the probabilities are NaN.

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
    limits: tuple[float, float] = (-np.inf, np.inf)
    level: float = LEVEL
    notes: tuple[str, ...] = ()
    ranks: bool = True

    @property
    def order(self) -> np.ndarray:
        """Systems from best to worst, as positions in ``systems``."""
        return np.argsort(-self.values, kind="stable")

    @property
    def table(self) -> Any:
        """Leaderboard, best first.

        Columns ``rank, system, value, sd, lower, upper`` with both sources of uncertainty, ``sd_truth`` and
        ``sd_items`` with one each, ``p_best`` and the rank and score that a point estimate of the truth would give.
        """
        import pandas

        lower, upper = np.clip(np.quantile(self.draws, ends(self.level), axis=1), *self.limits)
        columns = {
            "system": np.array(self.systems, object), "value": self.values, "sd": _sd(self.draws), "lower": lower,
            "upper": upper, "sd_truth": _sd(self.truth_draws), "sd_items": _sd(self.item_draws),
            "p_best": p_best(self.draws) if self.ranks else np.full(len(self.values), np.nan),
        }  # fmt: skip
        if self.points is not None:
            columns["point_estimate"] = self.points
            columns["rank_by_point_estimate"] = 1 + (self.points[None, :] > self.points[:, None] + 1e-12).sum(axis=1)
        ranked = {name: values[self.order] for name, values in columns.items()}
        return pandas.DataFrame({"rank": np.arange(1, len(self.systems) + 1), **ranked})

    @property
    def pairs(self) -> Any:
        """Data frame with one row for each pair of systems, the better one as ``a``.

        Columns ``a, b, difference, sd, lower, upper, sd_truth, sd_items, p_a_beats_b`` and that probability with the
        truth or the items alone uncertain.
        """
        import pandas

        rows = []
        for place, first in enumerate(self.order):
            for second in self.order[place + 1 :]:
                rows.append(self._pair(int(first), int(second)))
        return pandas.DataFrame(rows)

    def _pair(self, a: int, b: int) -> dict[str, Any]:
        both, truth, items = (draws[a] - draws[b] for draws in (self.draws, self.truth_draws, self.item_draws))
        lower, upper = np.quantile(both, ends(self.level))
        wins = [_wins(draws) if self.ranks else np.nan for draws in (both, truth, items)]
        return {
            "a": self.systems[a], "b": self.systems[b], "difference": self.values[a] - self.values[b],
            "sd": _sd(both[None])[0], "lower": lower, "upper": upper, "sd_truth": _sd(truth[None])[0],
            "sd_items": _sd(items[None])[0], "p_a_beats_b": wins[0], "p_a_beats_b_truth": wins[1],
            "p_a_beats_b_items": wins[2],
        }  # fmt: skip

    @property
    def beats(self) -> Any:
        """Data frame of P(row beats column), best first; the diagonal is NaN."""
        import pandas

        order = self.order
        difference = self.draws[order][:, None] - self.draws[order][None]
        wins = np.asarray(_wins(difference)) if self.ranks else np.full(difference.shape[:2], np.nan)
        np.fill_diagonal(wins, np.nan)
        names = [self.systems[place] for place in order]
        return pandas.DataFrame(wins, index=names, columns=names)

    def __repr__(self) -> str:
        shown = self.table[["rank", "system", "value", "lower", "upper", "sd_truth", "sd_items", "p_best"]]
        counted = f"{self.num_items:,} {self.unit}{'' if self.num_items == 1 else 's'}"
        lines = [f"{self.title}, {counted}", shown.to_string(index=False, float_format="{:.4f}".format), *self.notes]
        return "\n".join(lines)


def compare(
    fit: Any,
    systems: Mapping[str, Any],
    metric: str | Metric | None = None,
    *,
    seed: int = 0,
    missing: str = "error",
    unknown: str = "error",
    singletons: bool = True,
    exact: bool | None = None,
) -> Comparison:
    """Rank systems under the uncertainty of the truth and of the finite set of items.

    Parameters
    ----------
    fit : a fit, or a `Truth`.
    systems : predictions by name, at least one, each as `evaluate` takes it. Of classes of items, or all of them
        coreference chains of documents (`read_conll`), which need a fit of mentions with spans; documents are then
        weighted as items are. Or all of them partitions of records (`read_partition`), which need a fit of records;
        groups of records that nothing links are then weighted.
    metric : a name such as ``top-3``, or a `Metric`; ``top-1`` by default, of chains ``conll``, of partitions
        ``pairwise-f1``. See `evaluate`.
    seed : of the item weights.
    missing : ``drop`` compares on the items, or records, that every system predicted.
    unknown : ``keep`` counts predicted classes that the data do not have as wrong; records that they do not have are
        left out.
    singletons : of chains, whether entities of one mention count.
    exact : by default means over the truth are taken in closed form where there is one, as in `evaluate`, and from
        1,000 items on, whose mean is as good as normal, covariances too, so that nothing is drawn; True takes both of
        any number and refuses what has none; False takes draws.

    Returns
    -------
    Comparison

    Raises
    ------
    UnsupportedRequest : systems of several kinds, a metric that ranks nothing, or no closed form where it is asked for.

    Examples
    --------
    >>> import consilience as cs
    >>> labels = cs.Annotations.from_counts([[3, 0], [1, 2]], labels=["no", "yes"])
    >>> ours = cs.Predictions.from_lists([["no"], ["yes"]], classes=["no", "yes"])
    >>> theirs = cs.Predictions.from_lists([["yes"], ["yes"]], classes=["no", "yes"])
    >>> ranked = cs.compare(cs.fit("dirichlet", labels), {"theirs": theirs, "ours": ours})
    >>> ranked.table["system"].tolist()
    ['ours', 'theirs']
    """
    given = as_systems(fit, systems)
    _require_one_kind({name: system.kind for name, system in given.items()})
    _, scoring, name = scoring_of(
        fit, list(given.values()), metric, missing=missing, unknown=unknown, singletons=singletons, groups=True
    )
    if name in DISTANCES:
        better = "of a distance less is better; compare by a score such as pairwise-f1, and evaluate distances"
        raise UnsupportedRequest(f"{name} ranks no systems: {better}")
    moments = None if exact is False else scoring.exact()
    if exact:
        require_exact(moments, name)
    if moments is not None and (exact or scoring.num_units >= FEW):
        draws = _in_closed_form(scoring, moments, name, seed)
    else:
        draws = _drawn(scoring, name, seed)
        draws |= {} if moments is None else {"values": moments.unit.mean(axis=1)}  # as `evaluate` has them
    return Comparison(
        systems=tuple(given), title=scoring.title(name), **draws, points=scoring.points(name),
        num_items=scoring.num_units, unit=scoring.unit,
    )  # fmt: skip


_IN_WORDS = {"chains": "coreference chains", "partition": "entities of records", "classes": "classes of items"}


def _require_one_kind(kinds: Mapping[str, str]) -> None:
    if len(set(kinds.values())) > 1:
        listed = " and ".join(
            f"{', '.join(name for name, own in kinds.items() if own == kind)} with {_IN_WORDS[kind]}"
            for kind in dict.fromkeys(kinds.values())
        )
        number = "two" if len(set(kinds.values())) == 2 else "three"
        raise UnsupportedRequest(f"systems of {number} kinds cannot be compared: {listed}; compare each kind by itself")


def _drawn(scoring: Scoring, name: str, seed: int) -> dict[str, Any]:
    """Return scores with one source of uncertainty or both, from draws of the truth."""
    totals, bootstrap = Totals(scoring), Bootstrap(scoring, seed)
    fold(scoring, totals, bootstrap)
    truth = totals.scores(name)
    defined = np.isfinite(truth).all(axis=0)
    if not defined.any():
        raise UnsupportedRequest(f"{name} is undefined for one of the systems in every draw; choose another metric")
    both = bootstrap.scores(name)
    return {
        "values": truth[:, defined].mean(axis=1), "draws": both[:, defined] if both.shape == truth.shape else both,
        "truth_draws": truth[:, defined], "item_draws": bootstrap.unit_scores(name),
    }  # fmt: skip


def _in_closed_form(scoring: Scoring, moments: Moments, name: str, seed: int) -> dict[str, Any]:
    """Return the same from means and covariances: normal vectors in the place of draws of the truth.

    The weights of the items are those of the bootstrap. Given them the covariance over the truth is that of a weighted
    mean, which on average is :math:`2 I / (I + 1)` times that of the mean of I items: weights differ.
    """
    number = scoring.num_units
    bootstrap = Bootstrap(dataclasses.replace(scoring, num_draws=1), seed)
    for start in range(0, number, _UNITS):
        units = slice(start, min(start + _UNITS, number))
        bootstrap.add(Sums(units, slice(0, 1), moments.unit[:, None, units, None]))
    items, values = bootstrap.unit_scores(name), moments.unit.mean(axis=1)
    noise = _normal_vectors(moments.covariance)
    resampled = np.take(items, np.arange(_VECTORS) % items.shape[1], axis=1)
    both = resampled + noise * np.sqrt(2 * number / (number + 1))
    return {
        "values": values, "draws": both, "truth_draws": values[:, None] + noise, "item_draws": items,
        "limits": (0.0, 1.0),
    }  # fmt: skip


def _normal_vectors(covariance: Float[np.ndarray, "system system"]) -> Float[np.ndarray, "system vector"]:
    """Draw normal vectors of a covariance, always the same ones; systems that are alike get the same numbers."""
    variance = np.diag(covariance)
    apart = variance[:, None] + variance[None] - 2 * covariance
    alike = (apart <= 1e-12 * (variance[:, None] + variance[None])).argmax(axis=1)  # the first that is alike
    value, vector = np.linalg.eigh(covariance)
    root = vector * np.sqrt(np.maximum(value, 0.0))
    normal = np.random.default_rng(0).standard_normal((len(covariance), _VECTORS))
    return (root @ normal)[alike]


def p_best(draws: Float[np.ndarray, "system draw"]) -> Float[np.ndarray, " system"]:
    """Return the share of draws in which each system is best, ``(system,)``; systems that tie share the draw."""
    best = draws == draws.max(axis=0)
    return (best / best.sum(axis=0)).mean(axis=1)


def _wins(difference: Float[np.ndarray, "*pair draw"]) -> Any:
    """Return the share of draws in which the first one is better, a tie counting half."""
    return (difference > 0).mean(axis=-1) + 0.5 * (difference == 0).mean(axis=-1)


def _sd(draws: np.ndarray) -> np.ndarray:
    return np.std(draws, axis=1, ddof=1) if draws.shape[1] > 1 else np.zeros(len(draws))
