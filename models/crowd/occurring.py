r"""Dawid-Skene with very many labels: of the confusion matrices only what occurs, by coordinate ascent.

Annotators times labels squared are too many numbers where there are thousands of labels. But where an item can have
only labels that somebody gave it, an annotator's row of a class is beyond its prior only at labels that she gave to
items that can have the class:

.. math::

    \Theta_{jt} \sim \mathrm{Dir}(A_t + n_{jt}), \qquad
    n_{jtl} = \sum_{n:\, j_n = j,\, l_n = l} w_n\, q_{i_n}(t), \qquad
    q_i(t) \propto 1[t \in \text{labels of } i] \exp(\mathrm{E} \log p_t + \sum_n w_n \mathrm{E} \log \Theta_{j_n t l_n}).

An *outcome* is a triple (j, t, l) that occurs, a *candidate* an item with a label that it can have. Time and memory of a
sweep are linear in the annotations times the different labels of their items, however many labels there are. The bound
is exact: what a row says of labels that do not occur is as in the prior, so that its divergence has no part of them.

An item without annotations has the prevalence, and counts for nothing.
"""  # noqa: E501

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import digamma, gammaln
from scipy.sparse import csr_array

from consilience.arrays import Array, Float, Int, Key
from consilience.errors import NotConjugate, UnsupportedRequest
from consilience.models.crowd.agreement import Parameters, ParametersOf, Quantity
from consilience.models.crowd.channel import Channel
from consilience.models.crowd.groups import counted_by_group
from consilience.models.crowd.pairs import AgreementGivenClass
from consilience.models.crowd.simplices import PREVALENCE, Tree, divergences
from consilience.models.crowd.votes import require_annotators
from consilience.models.gold import require_gold, uses_gold
from consilience.models.interface import Ascent, Terms
from consilience.models.posterior import Closed, Factor, Interval, Posterior, beta_of_moments
from consilience.models.rows import padded_rows, padded_size, ranges, sum_rows
from consilience.models.sites import Resolved

# Above, confusion matrices slow down all that is asked of them: 2^24 numbers are 128 MiB in float64.
_MOST_NUMBERS = 1 << 24


class Problem(NamedTuple):
    """What the steps read. Candidates, outcomes, rows and items are padded with what counts for nothing.

    Parameters
    ----------
    item, class_ : shape ``(candidate,)``, sorted by item.
    share : shape ``(candidate,)``; part of its item's votes, where the ascent starts; 0 of what pads.
    real : shape ``(candidate,)``; 1, and 0 of what pads.
    candidate, outcome, weight : shape ``(entry,)``; what an annotation says of a candidate of its item.
    annotator, true, label : shape ``(outcome,)``; codes.
    row : shape ``(outcome,)``; which row of which annotator.
    right : shape ``(outcome,)``; 1 where the label is the class.
    prior : concentrations of the right label and of each other label.
    prevalence : shape ``(class,)``; concentrations of the prior.
    items, rows : zeros, as many as there are.
    outcomes : how many are real.
    """

    item: Int[Array, " candidate"]
    class_: Int[Array, " candidate"]
    share: Float[Array, " candidate"]
    real: Float[Array, " candidate"]
    candidate: Int[Array, " entry"]
    outcome: Int[Array, " entry"]
    weight: Float[Array, " entry"]
    annotator: Int[Array, " outcome"]
    true: Int[Array, " outcome"]
    label: Int[Array, " outcome"]
    row: Int[Array, " outcome"]
    right: Float[Array, " outcome"]
    prior: Float[Array, 2]
    prevalence: Float[Array, " class"]
    items: Float[Array, " item"]
    rows: Float[Array, " row"]
    outcomes: Int[Array, ""]


class State(NamedTuple):
    """Where the ascent is.

    Parameters
    ----------
    tree : ``count``, expected outcomes ``(outcome,)``, and ``prevalence``, concentrations ``(class,)``.
    responsibility : shape ``(candidate,)``; probabilities.
    """

    tree: Tree
    responsibility: Float[Array, " candidate"]


def takes_occurring(resolved: Resolved) -> bool:
    """Return whether confusion matrices would hold too many numbers, and not all labels have to be possible."""
    data = resolved.data
    return data.num_annotators * data.num_labels**2 > _MOST_NUMBERS and resolved.settings.candidates != "closed"


def two_concentrations(resolved: Resolved) -> tuple[float, float]:
    """Return the concentrations of the right label and of each other label.

    Raises
    ------
    NotConjugate : the prior tells more labels apart.
    """
    number = resolved.data.num_labels
    found = np.broadcast_to(resolved.concentration("confusion"), (number, number))
    right, other = found.diagonal(), found.copy()
    np.fill_diagonal(other, found[0, -1])
    if np.ptp(right) or np.ptp(other):
        raise NotConjugate(
            f"confusion matrices of {number:,} labels are held by what occurs, and their prior has one concentration "
            "for right labels and one for all others, as `Diagonal` and `Symmetric` have"
        )
    return float(right[0]), float(found[0, -1])


def _candidates(resolved: Resolved) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return item, class and votes of what items can have: labels that were given, or a known gold label."""
    data, number = resolved.data, resolved.data.num_labels
    item, label, weight = (np.asarray(column) for column in (data.item, data.label, data.weight))
    given = weight > 0
    pair, place = np.unique(item[given].astype(np.int64) * number + label[given], return_inverse=True)
    votes = np.bincount(place, weight[given], len(pair))
    if uses_gold(data, resolved.settings.gold):
        gold = np.asarray(data.gold)
        known, free = np.flatnonzero(gold >= 0), gold[pair // number] < 0
        pair = np.concatenate([pair[free], known * number + gold[known]])
        votes = np.concatenate([votes[free], np.ones(len(known))])
        order = np.argsort(pair, kind="stable")
        pair, votes = pair[order], votes[order]
    return pair // number, pair % number, votes


def _prepare(resolved: Resolved) -> Problem:
    """List candidates, outcomes and what annotations say of candidates; on the host."""
    require_gold(resolved)
    require_annotators(resolved.data, "dawid-skene", resolved.data.num_labels**2)
    data, dtype = counted_by_group(resolved).data, np.dtype(jnp.result_type(float))
    number = data.num_labels
    item, class_, votes = _candidates(resolved)
    share = votes / np.bincount(item, votes, data.num_items)[item]
    size = np.bincount(item, minlength=data.num_items)
    first = np.cumsum(size) - size
    counted = np.flatnonzero(np.asarray(data.weight) > 0)
    who, what, of_item = (np.asarray(column)[counted] for column in (data.annotator, data.label, data.item))
    each = size[of_item]
    entry = np.repeat(np.arange(len(counted)), each)
    candidate = np.repeat(first[of_item], each) + ranges(each)
    row_code = who[entry].astype(np.int64) * number + class_[candidate]
    code, outcome = np.unique(row_code * number + what[entry], return_inverse=True)
    rows, row = np.unique(code // number, return_inverse=True)
    # One unit more of each is what padding points at.
    sizes = {name: padded_size(one + 1) for name, one in (
        ("items", data.num_items), ("candidates", len(item)), ("outcomes", len(code)), ("rows", len(rows)),
    )}  # fmt: skip
    num_entries = padded_size(len(entry))

    def padded(values: Any, size: int, fill: Any = 0) -> np.ndarray:
        kind = dtype if np.asarray(values).dtype.kind == "f" else np.int32
        return padded_rows(np.asarray(values).astype(kind), size, fill)

    return Problem(
        item=padded(item, sizes["candidates"], sizes["items"] - 1), class_=padded(class_, sizes["candidates"]),
        share=padded(share, sizes["candidates"]), real=padded(np.ones(len(item)), sizes["candidates"]),
        candidate=padded(candidate, num_entries, sizes["candidates"] - 1),
        outcome=padded(outcome, num_entries, sizes["outcomes"] - 1),
        weight=padded(np.asarray(data.weight, float)[counted][entry], num_entries),
        annotator=padded(code // number**2, sizes["outcomes"]), true=padded(code // number % number, sizes["outcomes"]),
        label=padded(code % number, sizes["outcomes"]), row=padded(row, sizes["outcomes"], sizes["rows"] - 1),
        right=padded((code // number % number == code % number).astype(float), sizes["outcomes"]),
        prior=np.array(two_concentrations(resolved), dtype),
        prevalence=resolved.concentration(PREVALENCE).astype(dtype),
        items=np.zeros(sizes["items"], dtype), rows=np.zeros(sizes["rows"], dtype),
        outcomes=np.asarray(len(code), np.int32),
    )  # fmt: skip


def _add(place: Array, values: Array, zeros: Array) -> Array:
    """Sum values by place."""
    return sum_rows(lambda rows: rows, (place, values), zeros.shape, zeros.dtype)


def _updated(responsibility: Array, problem: Problem) -> State:
    """Return the state whose parameters are the best for probabilities of the candidates."""
    said = problem.weight * responsibility[problem.candidate]
    count = _add(problem.outcome, said, jnp.zeros_like(problem.right))
    of_class = _add(problem.class_, responsibility, jnp.zeros_like(problem.prevalence))
    return State({"count": count, PREVALENCE: problem.prevalence + of_class}, responsibility)


def _start(key: Key | None, problem: Problem, **total: Any) -> State:
    """Return the state after the vote shares."""
    return _updated(jnp.asarray(problem.share), problem)


def _step(state: State, problem: Problem, **total: Any) -> tuple[State, Terms]:
    """Update the labels given the parameters, and the parameters given the labels."""
    problem = Problem(*map(jnp.asarray, problem))
    count, prevalence = state.tree["count"], state.tree[PREVALENCE]
    right, wrong = problem.prior
    prior = jnp.where(problem.right > 0, right, wrong)
    whole = right + (len(prevalence) - 1) * wrong
    of_row = _add(problem.row, count, problem.rows)
    logs = digamma(prior + count) - digamma(whole + of_row)[problem.row]
    log_prevalence = digamma(prevalence) - digamma(prevalence.sum())
    said = problem.weight * logs[problem.outcome]
    joint = _add(problem.candidate, said, jnp.zeros_like(problem.real)) + log_prevalence[problem.class_]
    highest = jnp.full_like(problem.items, -jnp.inf).at[problem.item].max(joint)
    highest = jnp.where(jnp.isfinite(highest), highest, 0.0)
    above = problem.real * jnp.exp(joint - highest[problem.item])
    sums = _add(problem.item, above, problem.items)
    evidence = jnp.where(sums > 0, jnp.log(jnp.where(sums > 0, sums, 1.0)) + highest, 0.0)
    responsibility = above / jnp.where(sums > 0, sums, 1.0)[problem.item]
    # The divergences of the rows from their prior, to which labels that do not occur add nothing.
    by_outcome = gammaln(prior) - gammaln(prior + count) + count * logs
    by_row = gammaln(whole + of_row) - gammaln(whole)
    of_prevalence = divergences(*({PREVALENCE: own} for own in (prevalence, problem.prevalence, log_prevalence)))
    shared = jnp.concatenate([-by_outcome, -by_row, -of_prevalence[PREVALENCE][None]])
    return _updated(responsibility, problem), Terms(evidence, shared)


def _sites(state: State, problem: Problem, **total: Any) -> dict[str, Array]:
    """Return the tree and the probabilities, with the codes of candidates and outcomes."""
    codes = {name: getattr(problem, name) for name in ("item", "class_", "annotator", "true", "label")}
    return {**state.tree, "responsibility": state.responsibility, **codes}


def _finish(values: dict[str, Any], resolved: Resolved) -> Closed:
    right, wrong = two_concentrations(resolved)
    data = resolved.data
    rows = OccurringRows(
        annotator=values["annotator"], true=values["true"], label=values["label"], count=values["count"],
        diagonal=right, other=wrong, num_annotators=data.num_annotators, num_labels=data.num_labels,
    )  # fmt: skip
    prevalence = np.asarray(values[PREVALENCE])
    probability = np.zeros((data.num_items, data.num_labels), prevalence.dtype)
    probability[values["item"], values["class_"]] = values["responsibility"]
    probability[~probability.any(axis=1)] = prevalence / prevalence.sum()
    factors = {PREVALENCE: dist.Dirichlet(prevalence), "confusion": rows}
    return Closed(factors, {"responsibility": probability})


def _begun(problem: Problem, ended: Mapping[str, Any]) -> Problem:
    """Return the problem of an ascent that starts where an earlier one ended, and at the votes of new items."""
    real = problem.real > 0
    known = np.nan_to_num(ended["responsibility"])[problem.item[real], problem.class_[real]]
    sums = np.bincount(problem.item[real], known, len(problem.items))[problem.item[real]]
    share = problem.share.copy()
    share[real] = np.where(sums > 0, known / np.where(sums > 0, sums, 1.0), share[real])
    return problem._replace(share=share)


def with_occurring(dense: Ascent) -> Ascent:
    """Return coordinate ascent with confusion matrices, or with what occurs of them where they would not fit.

    Parameters
    ----------
    dense : with confusion matrices; its state has a ``tree`` and a ``responsibility`` too.

    Raises
    ------
    UnsupportedRequest : by what divides the data, where what occurs is held.
    """

    def shard(problem: Any, number: int) -> Any:
        if isinstance(problem, Problem):
            raise UnsupportedRequest(
                "of so many labels coordinate ascent runs on one device; leave out devices= and distributed="
            )
        assert dense.shard is not None
        return dense.shard(problem, number)

    def lengths(problem: Any) -> Mapping[str, int]:
        if not isinstance(problem, Problem):
            assert dense.lengths is not None
            return dense.lengths(problem)
        candidates, outcomes = int(problem.real.sum()), int(problem.outcomes)
        return dict.fromkeys(("item", "class_", "responsibility"), candidates) | dict.fromkeys(
            ("annotator", "true", "label", "count"), outcomes
        )

    def begin_from(problem: Any, ended: Mapping[str, Any]) -> Any:
        assert dense.begin_from is not None
        return (_begun if isinstance(problem, Problem) else dense.begin_from)(problem, ended)

    def either(of_dense: Any, occurring: Any) -> Any:
        def chosen(first: Any, problem: Any, **total: Any) -> Any:
            return (occurring if isinstance(problem, Problem) else of_dense)(first, problem, **total)

        return chosen

    return dataclasses.replace(
        dense, shard=shard, lengths=lengths, begin_from=begin_from,
        prepare=lambda resolved: (_prepare if takes_occurring(resolved) else dense.prepare)(resolved),
        start=either(dense.start, _start), step=either(dense.step, _step), sites=either(dense.sites, _sites),
        finish=lambda values, resolved: (_finish if "count" in values else dense.finish)(values, resolved),
    )  # fmt: skip


# ---- what is asked of them


@dataclass(frozen=True)
class OccurringRows(Factor):
    """Dirichlet distributions of the rows of confusion matrices, by the labels that occur in each.

    Parameters
    ----------
    annotator, true, label : shape ``(outcome,)``; codes, in this order.
    count : shape ``(outcome,)``; how often it is expected.
    diagonal, other : concentrations of the prior, of the right label and of each other label.
    num_annotators, num_labels : how many there are.
    """

    annotator: Int[Array, " outcome"]
    true: Int[Array, " outcome"]
    label: Int[Array, " outcome"]
    count: Float[Array, " outcome"]
    diagonal: float
    other: float
    num_annotators: int
    num_labels: int

    def by_row(self, values: Float[Array, " outcome"]) -> Float[np.ndarray, "annotator class"]:
        """Sum numbers of outcomes by the rows of all annotators."""
        row = np.asarray(self.annotator, np.int64) * self.num_labels + self.true
        shape = self.num_annotators, self.num_labels
        return np.bincount(row, np.asarray(values), shape[0] * shape[1]).reshape(shape)

    @functools.cached_property
    def counts(self) -> Float[np.ndarray, "annotator class"]:
        """How many of an annotator's annotations are expected to be of items of each class."""
        return self.by_row(self.count)

    @functools.cached_property
    def total(self) -> Float[np.ndarray, "annotator class"]:
        """The concentrations of all labels of a row together."""
        return self.diagonal + (self.num_labels - 1) * self.other + self.counts

    @property
    def concentration(self) -> Float[np.ndarray, " outcome"]:
        """The concentration of each outcome."""
        return np.where(self.true == self.label, self.diagonal, self.other) + np.asarray(self.count, float)

    def sample(self, key: Key, shape: tuple[int, ...]) -> Any:
        """Return draws of the probabilities of outcomes, ``(*shape, outcome)``, each as if it were alone."""
        rest = self.total[self.annotator, self.true] - self.concentration
        return jax.random.beta(key, self.concentration, rest, (*shape, len(self.count)))

    def summary(self, level: float) -> Interval:
        """Return the summary of the probability of each outcome."""
        total = self.total[self.annotator, self.true]
        mean = self.concentration / total
        return beta_of_moments(mean, mean * (1 - mean) / (total + 1), level)

    def right(self) -> Float[np.ndarray, "annotator class"]:
        """Return how probably each annotator is right about each class."""
        hits = np.where(self.true == self.label, self.count, 0.0)
        return (self.diagonal + self.by_row(hits)) / self.total

    def average(self, share: Float[Array, " annotator"]) -> Float[np.ndarray, "class label"]:
        """Return the probabilities of labels of an annotator who is taken by these shares."""
        share = np.asarray(share, float)
        of_prior = (share[:, None] / self.total).sum(axis=0)
        found = np.repeat(self.other * of_prior[:, None], self.num_labels, axis=1)
        found[np.diag_indices(self.num_labels)] += (self.diagonal - self.other) * of_prior
        part = share[self.annotator] * self.count / self.total[self.annotator, self.true]
        np.add.at(found, (np.asarray(self.true), np.asarray(self.label)), part)
        return found

    def agreement(
        self, one: Int[np.ndarray, " pair"], other: Int[np.ndarray, " pair"]
    ) -> Float[np.ndarray, "pair class"]:
        """Return how probably two annotators give an item of each class the same label."""
        cell = np.asarray(self.true, np.int64) * self.num_labels + self.label
        shape = self.num_annotators, self.num_labels**2
        counts = csr_array((np.asarray(self.count, float), (np.asarray(self.annotator), cell)), shape=shape)
        both = counts[one].multiply(counts[other]).tocoo()
        place = both.row.astype(np.int64) * self.num_labels + both.col // self.num_labels
        met = np.bincount(place, both.data, len(one) * self.num_labels).reshape(len(one), self.num_labels)
        hits = self.by_row(np.where(self.true == self.label, self.count, 0.0))
        of_prior = self.diagonal**2 + (self.num_labels - 1) * self.other**2
        with_prior = self.other * self.counts + (self.diagonal - self.other) * hits
        return (of_prior + with_prior[one] + with_prior[other] + met) / (self.total[one] * self.total[other])


class OccurringParameters(Parameters):
    """The parameters of a crowd of which what occurs is known: their means, without intervals or draws.

    Where labels are thousands, a row of a confusion matrix has few annotations and is mostly prior. The probabilities
    of the labels of an item compare such rows and are sound; how often an annotator is right on any item is not.
    """

    has_intervals, is_listed = False, True

    @property
    def num_annotators(self) -> int:
        """How many annotators there are: no program is asked, and none pad."""
        return self.resolved.data.num_annotators

    @property
    def rows(self) -> OccurringRows:
        """The confusion matrices."""
        return self.posterior.value("confusion")

    def mean(self, quantity: Quantity, *given: Any) -> Any:
        """Return the posterior mean of a quantity that is linear in each simplex."""
        prevalence = np.asarray(self.posterior.value(PREVALENCE), float)
        return np.asarray(quantity(self.rows, np.log(prevalence / prevalence.sum()), *given), float)

    def agreement(self) -> AgreementGivenClass:
        """Return the function of how probably pairs of annotators agree."""
        return self.rows.agreement

    def confusion(self, annotators: Int[np.ndarray, " chosen"]) -> dict[str, np.ndarray]:
        """Return the table of the outcomes of some annotators."""
        rows = self.rows
        kept = np.isin(rows.annotator, annotators) & (np.asarray(rows.count) > 0)
        who, true = np.asarray(rows.annotator)[kept], np.asarray(rows.true)[kept]
        return {
            "annotator": who, "true_label": true, "label": np.asarray(rows.label)[kept],
            **_without_intervals((rows.concentration / rows.total[rows.annotator, rows.true])[kept]),
        }  # fmt: skip

    def crowd(self, share: Float[np.ndarray, " annotator"]) -> dict[str, np.ndarray]:
        """Return the table of the pairs of labels that occur, for an annotator who is taken by these shares."""
        rows = self.rows
        cell = np.unique(np.asarray(rows.true, np.int64) * rows.num_labels + rows.label)
        true, label = cell // rows.num_labels, cell % rows.num_labels
        probability = rows.average(share)[true, label]
        return {
            "true_label": true, "label": label,
            **_without_intervals(probability),
        }  # fmt: skip


def _without_intervals(probability: Float[np.ndarray, " row"]) -> dict[str, np.ndarray]:
    unknown = np.full(len(probability), np.nan)
    return {"probability": probability, "lower": unknown, "upper": unknown}


def parameters_of(channel: Channel) -> ParametersOf:
    """Return what makes the parameters of a fit, by what its posterior holds of the confusion matrices."""

    def made(posterior: Posterior, *given: Any) -> Parameters:
        occurring = posterior.form == "closed" and isinstance(posterior.value("confusion"), OccurringRows)
        return (OccurringParameters if occurring else Parameters)(channel, posterior, *given)

    return made
