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
neither a draw of the truth nor a system links (`consilience.evaluation.partition_comparison`).

References
----------
Rubin (1981), The Bayesian bootstrap, The Annals of Statistics 9(1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import Float
from consilience.data.conll import Chains, as_chains
from consilience.data.partitions import Partition
from consilience.data.predictions import Predictions
from consilience.errors import InputError, InputProblem, UnsupportedRequest
from consilience.evaluation.adjustment import align, lifted, point_scores, truth_of
from consilience.evaluation.coreference_adjusted import sums_over_draws, title_of
from consilience.evaluation.coreference_scores import Sums, value_of
from consilience.evaluation.metrics import Metric, resolve
from consilience.evaluation.partition_comparison import system_scores
from consilience.evaluation.partition_scores import aligned_partitions, check_scores
from consilience.evaluation.partitions import DISTANCES, METRIC_FORMS
from consilience.models.truth import Truth

__all__ = ["Comparison", "compare"]

# Replicates of the item weights where the truth is a point and has no draws to pair them with.
_REPLICATES = 1000

# Kinds of systems, in words.
_CHAINS, _PARTITIONS, _CLASSES = "coreference chains", "entities of records", "classes of items"


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """Systems ranked by a metric, with what is not known about the ranking.

    Parameters
    ----------
    systems : names, in the order in which they were given.
    title : the metric in words.
    values : float64, shape ``(system,)``; mean score over items and draws, of chains over draws.
    draws : float64, shape ``(system, draw)``; scores with both sources of uncertainty.
    truth_draws, item_draws : the same with one source only.
    points : float64, shape ``(system,)``, the scores against the point estimate, or None where there is none.
    num_items : how many items every system predicted; of chains, how many documents there are; of partitions, how many
        connected groups of records.
    unit : what an item is called.
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

        lower, upper = np.quantile(self.draws, [0.025, 0.975], axis=1)
        columns = {
            "system": np.array(self.systems, object), "value": self.values, "sd": _sd(self.draws), "lower": lower,
            "upper": upper, "sd_truth": _sd(self.truth_draws), "sd_items": _sd(self.item_draws),
            "p_best": p_best(self.draws),
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
        lower, upper = np.quantile(both, [0.025, 0.975])
        return {
            "a": self.systems[a], "b": self.systems[b], "difference": self.values[a] - self.values[b],
            "sd": _sd(both[None])[0], "lower": lower, "upper": upper, "sd_truth": _sd(truth[None])[0],
            "sd_items": _sd(items[None])[0], "p_a_beats_b": _wins(both), "p_a_beats_b_truth": _wins(truth),
            "p_a_beats_b_items": _wins(items),
        }  # fmt: skip

    @property
    def beats(self) -> Any:
        """Data frame of P(row beats column), best first; the diagonal is NaN."""
        import pandas

        order = self.order
        difference = self.draws[order][:, None] - self.draws[order][None]
        wins = (difference > 0).mean(axis=-1) + 0.5 * (difference == 0).mean(axis=-1)
        np.fill_diagonal(wins, np.nan)
        names = [self.systems[place] for place in order]
        return pandas.DataFrame(wins, index=names, columns=names)

    def __repr__(self) -> str:
        shown = self.table[["rank", "system", "value", "lower", "upper", "sd_truth", "sd_items", "p_best"]]
        counted = f"{self.num_items:,} {self.unit}{'' if self.num_items == 1 else 's'}"
        return f"{self.title}, {counted}\n{shown.to_string(index=False, float_format='{:.4f}'.format)}"


def compare(
    fit: Any,
    systems: Mapping[str, Predictions | Chains | Partition],
    metric: str | Metric | None = None,
    *,
    seed: int = 0,
    missing: str = "error",
    unknown: str = "error",
    singletons: bool = True,
) -> Comparison:
    """Rank systems under the uncertainty of the truth and of the finite set of items.

    Parameters
    ----------
    fit : a fit, or a `Truth`.
    systems : predictions by name; at least one. Of classes of items, or all of them coreference chains of documents
        (`read_conll`), which need a fit of mentions with spans; documents are then weighted as items are. Or all of
        them partitions of records (`read_partition`), which need a fit of records; groups of records that nothing links
        are then weighted.
    metric : a name such as ``top-3``, or a `Metric`; ``top-1`` by default, of chains ``conll``, of partitions
        ``pairwise-f1``. See `evaluate`.
    seed : of the item weights.
    missing : ``drop`` compares on the items, or records, that every system predicted.
    unknown : ``keep`` counts predicted classes that the data do not have as wrong; records that they do not have are
        left out.
    singletons : of chains, whether entities of one mention count.
    """
    if not systems or not isinstance(systems, Mapping):
        raise UnsupportedRequest("there is no system to compare; give a dict of name: predictions")
    given: dict[str, Any] = {
        name: as_chains(system) if hasattr(system, "to_chains") else system for name, system in systems.items()
    }
    kinds = {name: _kind(system) for name, system in given.items()}
    if len(set(kinds.values())) > 1:
        listed = " and ".join(
            f"{', '.join(name for name, own in kinds.items() if own == kind)} with {kind}"
            for kind in dict.fromkeys(kinds.values())
        )
        number = "two" if len(set(kinds.values())) == 2 else "three"
        raise UnsupportedRequest(f"systems of {number} kinds cannot be compared: {listed}; compare each kind by itself")
    if _CHAINS in kinds.values():
        return _compare_chains(fit, given, metric, seed, singletons)
    if _PARTITIONS in kinds.values():
        return _compare_partitions(fit, given, metric, seed, missing, unknown)
    truth, chosen = truth_of(fit), resolve("top-1" if metric is None else metric)
    aligned = [align(truth, predictions, missing=missing, unknown=unknown) for predictions in given.values()]
    kept = np.logical_and.reduce([mask for _, mask in aligned])
    if not kept.any():
        raise InputError(InputProblem("no item has predictions of all systems", "check that their item ids agree"))
    ranked = [positions for positions, _ in aligned]
    sums = _sums(truth, ranked, chosen, kept, seed)
    points = [point_scores(truth, positions, chosen) for positions in ranked if truth.point is not None]
    return Comparison(
        systems=tuple(given), title=chosen.title, values=sums["truth"].mean(axis=1), draws=sums["both"],
        truth_draws=sums["truth"], item_draws=sums["items"], num_items=int(kept.sum()),
        points=np.array([point[kept].mean() for point in points if point is not None]) if points else None,
    )  # fmt: skip


def _kind(system: Any) -> str:
    return _CHAINS if isinstance(system, Chains) else _PARTITIONS if isinstance(system, Partition) else _CLASSES


def _sums(truth: Truth, ranked: list[np.ndarray], metric: Metric, kept: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Average the scores over items, with equal weights and with random ones, ``(system, draw)``."""
    replicates = truth.num_draws if truth.num_draws > 1 else _REPLICATES
    shape = (len(ranked), replicates)
    equal, both, items, total = (
        np.zeros((len(ranked), truth.num_draws)),
        np.zeros(shape),
        np.zeros(shape),
        np.zeros(replicates),
    )
    random = np.random.default_rng(seed)
    for block in lifted(truth, ranked, [metric]):
        scores = block.scores[0][:, kept[block.items]].astype(np.float32)
        weight = random.standard_exponential((scores.shape[1], replicates), dtype=np.float32)
        total += weight.sum(axis=0, dtype=float)
        equal += scores.sum(axis=1, dtype=float)
        mean = scores.mean(axis=2)
        # No matrix product: BLAS rounds the last rows in another way, and systems that are alike would not tie.
        items += np.einsum("si,id->sd", mean, weight, dtype=float)
        both += np.einsum("sid,id->sd", np.broadcast_to(scores, (*scores.shape[:2], replicates)), weight)
    return {"truth": equal / kept.sum(), "both": both / total, "items": items / total}


def _compare_chains(
    fit: Any, systems: Mapping[str, Chains], metric: str | Metric | None, seed: int, singletons: bool
) -> Comparison:
    """Rank systems by sums over documents, with equal weights and with random ones."""
    name = metric.name if isinstance(metric, Metric) else metric or "conll"
    found = sums_over_draws(fit, list(systems.values()), (name,), singletons=singletons)
    # Ratios are not linear: where the documents alone are uncertain, it is their sums that are averaged over draws.
    mean = [{part: values.mean(axis=1, keepdims=True) for part, values in sums.items()} for sums in found.draws]
    equal = np.ones((1, len(found.documents)))
    truth = _weighted(found.draws, equal, name)
    replicates = truth.shape[1] if truth.shape[1] > 1 else _REPLICATES
    weight = np.random.default_rng(seed).standard_exponential((replicates, len(found.documents)))
    return Comparison(
        systems=tuple(systems), title=title_of(name, singletons=singletons), values=truth.mean(axis=1),
        draws=_weighted(found.draws, weight, name), truth_draws=truth, item_draws=_weighted(mean, weight, name),
        points=_weighted(found.silver, equal, name)[:, 0], num_items=len(found.documents), unit="document",
    )  # fmt: skip


def _compare_partitions(
    fit: Any, systems: Mapping[str, Partition], metric: str | Metric | None, seed: int, missing: str, unknown: str
) -> Comparison:
    """Rank systems by sums over groups of records, with equal weights and with random ones."""
    name = metric.name if isinstance(metric, Metric) else metric or "pairwise-f1"
    check_scores([name])
    if name in DISTANCES:
        better = "of a distance less is better; compare by a score such as pairwise-f1, and evaluate distances"
        raise UnsupportedRequest(f"{name} ranks no systems: {better}")
    truth, entity = aligned_partitions(fit, list(systems.values()), missing=missing, unknown=unknown)
    found = system_scores(truth, entity, name, seed=seed, replicates=_REPLICATES)
    return Comparison(
        systems=tuple(systems), title=f"{name} ({METRIC_FORMS[name]})", values=found.truth.mean(axis=1),
        draws=found.both, truth_draws=found.truth, item_draws=found.groups, points=found.points,
        num_items=found.num_groups, unit="connected group",
    )  # fmt: skip


def _weighted(
    systems: list[Sums], weight: Float[np.ndarray, "weight_draw document"], metric: str
) -> Float[np.ndarray, "system draw"]:
    """Add up the documents of each draw with its weights, and return the score of each system."""
    added = [{part: (of_part * weight).sum(axis=-1) for part, of_part in sums.items()} for sums in systems]
    return np.stack([value_of(metric, sums) for sums in added])


def p_best(draws: Float[np.ndarray, "system draw"]) -> Float[np.ndarray, " system"]:
    """Return the share of draws in which each system is best, ``(system,)``; systems that tie share the draw."""
    best = draws == draws.max(axis=0)
    return (best / best.sum(axis=0)).mean(axis=1)


def _wins(difference: np.ndarray) -> float:
    return float((difference > 0).mean() + 0.5 * (difference == 0).mean())


def _sd(draws: np.ndarray) -> np.ndarray:
    return np.std(draws, axis=1, ddof=1) if draws.shape[1] > 1 else np.zeros(len(draws))
