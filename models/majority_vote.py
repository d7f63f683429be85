r"""Majority vote: the label that most annotators gave, ties broken at random; the baseline of every crowd model.

With :math:`W_i` the labels of item i that got the most votes, one random round picks each of them with probability
:math:`1 / |W_i|`. Where the gold label is known for I items, a round is right with probability
:math:`p_i = 1[\mathrm{gold}_i \in W_i] / |W_i|`, so that its accuracy has

.. math::

    \text{mean } \frac{1}{I} \sum_i p_i, \qquad \text{standard deviation } \frac{1}{I} \sqrt{\sum_i p_i (1 - p_i)}.

Papers on crowds report the best of ten random rounds (Paun et al. 2018); the table ``accuracy`` has it under that name,
beside the expected value, which needs no luck. Where gold labels decide (``gold="use"``), it still measures the votes.

| symbol | name | shape |
|---|---|---|
| weights of the annotations, summed | ``votes`` | (entry,): each label that somebody gave the item, or all of them |
| 1 / \|W\| at the labels of W, else 0 | ``probability`` | (entry,) |

``uncertainty="ties"`` (the default) knows no other uncertainty than the ties: draws of the truth are random rounds.
``uncertainty="shares"`` takes the shares of the votes for probabilities. They are not calibrated: three annotators who
agree give probability one, whoever they are.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int, Key
from consilience.data.annotations import Annotations
from consilience.data.codes import places
from consilience.data.mentions import Mentions
from consilience.models import settings
from consilience.models.gold import GOLD_COLUMNS, GOLD_MEASURES, gold_record, gold_setting, uses_gold
from consilience.models.interface import Account, Column, Exact, Model, Table
from consilience.models.keys import folded_key
from consilience.models.posterior import Closed, Factor, Interval, Posterior, beta_interval
from consilience.models.settings import setting
from consilience.models.sites import Resolved, Site, Sites
from consilience.models.truth import Entries, LabelProbabilities, PointTruth, leading
from consilience.notes import Level, Note

__all__ = ["MODEL", "Settings"]

_ROUNDS = 10


@dataclass(frozen=True, kw_only=True)
class Settings(settings.Settings):
    """Settings of `majority-vote`; see the fields."""

    gold: str = gold_setting()
    uncertainty: str = setting(
        "ties", "what is uncertain: the winner of a tie (ties), or all labels by their shares of the votes (shares)",
        choices=("ties", "shares"),
    )  # fmt: skip


@dataclass(frozen=True)
class Winners(Factor):
    """The winner of a random round, item by item.

    Parameters
    ----------
    first : int64, shape ``(item + 1,)``; the entries of item i are ``first[i]:first[i + 1]``.
    entry_class : int32, shape ``(entry,)``; the label of an entry.
    probability : float64, shape ``(entry,)``; that the label wins.
    """

    first: Int[np.ndarray, " boundary"]
    entry_class: Int[np.ndarray, " entry"]
    probability: Float[np.ndarray, " entry"]

    @property
    def item(self) -> Int[np.ndarray, " entry"]:
        """Item of each entry."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    def sample(self, key: Key, shape: tuple[int, ...]) -> Int[Array, "*shape item"]:
        """Return the winners; those of a tie are as likely."""
        wins, num_items = self.probability > 0, len(self.first) - 1
        winners, item = self.entry_class[wins], self.item[wins]
        first, number = np.searchsorted(item, np.arange(num_items)), np.bincount(item, minlength=num_items)
        chosen = jax.random.randint(key, (*shape, num_items), 0, number)
        return jnp.asarray(winners)[first + chosen]

    def summary(self, level: float) -> Interval:
        """Return the probability that the label of an entry wins; there is nothing to say beyond it."""
        unknown = np.full(len(self.probability), np.nan)
        return Interval(self.probability, unknown, unknown, unknown)


class RoundAccuracy(NamedTuple):
    """Accuracy of majority vote where ties are broken at random.

    Parameters
    ----------
    items : how many items have a gold label.
    tied : how many of them are tied.
    expected, sd : of one random round.
    best_of_ten : the best of ten random rounds.
    """

    items: int
    tied: int
    expected: float
    sd: float
    best_of_ten: float


def exact(resolved: Resolved) -> Closed:
    """Count the votes; an item without any has a tie of all labels, one whose gold label is used has that one."""
    data = as_annotations(resolved.data)
    entries, votes = _votes(data)
    if uses_gold(data, resolved.settings.gold):
        entries, votes = _with_gold(data, entries, votes)
        known = np.asarray(data.gold)[entries.item]
        probability = np.where(known >= 0, entries.class_ == known, _vote_probability(entries.first, votes))
    else:
        probability = _vote_probability(entries.first, votes)
    return Closed({"label": Winners(entries.first, entries.class_, probability)}, {"votes": votes})


# Data are frozen, and equal to themselves alone.
@functools.lru_cache(maxsize=1)
def _of_mentions(data: Mentions) -> Annotations:
    return data.to_annotations()


def as_annotations(data: Annotations | Mentions) -> Annotations:
    """Return mentions as annotations: a label with its antecedent is a label like any other."""
    return _of_mentions(data) if isinstance(data, Mentions) else data


def _votes(data: Annotations) -> tuple[Entries, Float[np.ndarray, " entry"]]:
    """Return the labels that each item got, or all labels where it got none, and their votes."""
    weight = np.asarray(data.weight, float)
    cell = np.asarray(data.item, np.int64) * data.num_labels + np.asarray(data.label)
    voted = np.zeros(data.num_items, bool)
    voted[np.asarray(data.item)[weight > 0]] = True
    silent = np.flatnonzero(~voted)[:, None] * data.num_labels + np.arange(data.num_labels)
    named, position = places(np.concatenate([cell[weight > 0], silent.ravel()]))
    votes = np.bincount(position[: np.count_nonzero(weight)], weight[weight > 0], len(named)).astype(float)
    item, label = np.divmod(named, data.num_labels)
    return Entries.of(item, label, data.num_items, data.num_labels), votes


def _vote_probability(
    first: Int[np.ndarray, " boundary"], votes: Float[np.ndarray, " entry"]
) -> Float[np.ndarray, " entry"]:
    """Return how probably a label wins by votes; sums of weights that differ by rounding errors only are equal."""
    number = np.diff(first)
    top = votes >= np.repeat(np.maximum.reduceat(votes, first[:-1]) * (1 - 1e-9), number)
    return top / np.repeat(np.add.reduceat(top, first[:-1], dtype=float), number)


def _with_gold(
    data: Annotations, entries: Entries, votes: Float[np.ndarray, " entry"]
) -> tuple[Entries, Float[np.ndarray, " candidate"]]:
    """Add the known gold labels that nobody gave, without votes."""
    gold = np.asarray(data.gold)
    known = np.flatnonzero(gold >= 0)
    cell = entries.item * data.num_labels + entries.class_
    every = np.union1d(cell, known * data.num_labels + gold[known])
    new_votes = np.zeros(len(every))
    new_votes[np.searchsorted(every, cell)] = votes
    return Entries.of(*np.divmod(every, data.num_labels), data.num_items, data.num_labels), new_votes


def truth(posterior: Posterior, resolved: Resolved, *, key: Key, num_draws: int) -> LabelProbabilities:
    """Return the winner of random rounds, or labels drawn by the shares of the votes."""
    data, winners = as_annotations(resolved.data), posterior.label
    entries, probability = Entries(winners.first, winners.entry_class, data.num_labels), winners.probability
    if resolved.settings.uncertainty == "shares":
        # Where the gold label is used it is certain, whatever the votes.
        decided = np.bincount(entries.item, posterior.votes, entries.num_items) == 0
        if uses_gold(data, resolved.settings.gold):
            decided |= np.asarray(data.gold) >= 0
        probability = np.where(decided[entries.item], probability, posterior.votes)
    drawn = LabelProbabilities(entries, probability, key=key, num_draws=num_draws)
    drawn.point = PointTruth(entries, winners.probability)
    drawn.ids = {"item": data.items, "class": data.labels}  # of mentions these are other ids than the data have
    return drawn


def round_accuracy(posterior: Posterior, gold: Int[np.ndarray, " item"], key: Key) -> RoundAccuracy:
    """Return the expected accuracy of majority vote, and the best of ten random rounds.

    The votes alone count, also where gold labels decided: these would only be compared with themselves.

    Parameters
    ----------
    posterior : the votes.
    gold : shape ``(item,)``; the known label or -1.
    key : of the random rounds.
    """
    gold = np.asarray(gold)
    item = posterior.label.item
    known = gold >= 0
    probability = _vote_probability(posterior.label.first, posterior.votes)
    right = np.bincount(item, probability * (posterior.label.entry_class == gold[item]), len(gold))[known]
    tied = np.bincount(item, probability > 0, len(gold))[known] > 1
    random = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    rounds = [np.mean(random.random(len(right)) < right) for _ in range(_ROUNDS)]
    return RoundAccuracy(
        items=len(right), tied=int(tied.sum()), expected=float(right.mean()),
        sd=float(np.sqrt(np.sum(right * (1 - right))) / len(right)), best_of_ten=float(max(rounds)),
    )  # fmt: skip


def says(account: Account) -> Iterable[Note]:
    """Say that votes are no probabilities: a label that won by 3 to 1 is stated like one that all gave."""
    winners = account.posterior.label
    tied = int((np.bincount(winners.item, winners.probability > 0) > 1).sum())
    if account.resolved.settings.uncertainty == "shares":
        what = "shares of votes are taken for probabilities, and annotators who agree make 1, whoever they are"
    else:
        what = (
            f"only ties ({tied:,} of {len(winners.first) - 1:,} items) are left open; every other winner counts as "
            "certain, however narrowly it won. Scores of systems by the vote alone are off where the wrong label won, "
            "and their intervals are too narrow"
        )
    title = "A vote does not say how sure it is."
    model = "mpa" if account.resolved.data.unit == "mention" else "dawid-skene"
    yield Note(Level.note, f"a vote does not say how sure it is: {what}", title=title, model=model)


# ---- tables ----


def labels(posterior: Posterior, resolved: Resolved, truth: LabelProbabilities) -> dict[str, np.ndarray]:
    """Return the winner of each item, of tied ones the lowest code, with its share of the votes."""
    data = as_annotations(resolved.data)
    table, shares = leading(truth), vote_shares(posterior)
    cell = posterior.label.item * data.num_labels + posterior.label.entry_class
    return {**table, "share": shares[np.searchsorted(cell, table["item"] * data.num_labels + table["label"])]}


def shares(posterior: Posterior, resolved: Resolved, truth: LabelProbabilities) -> dict[str, np.ndarray]:
    """Return the votes for each label of each item, most votes first."""
    item, share = posterior.label.item, vote_shares(posterior)
    order = np.lexsort((posterior.label.entry_class, -posterior.votes, item))
    columns = {"item": item, "label": posterior.label.entry_class, "votes": posterior.votes, "share": share}
    return {name: values[order] for name, values in columns.items()}


def annotators(posterior: Posterior, resolved: Resolved, truth: LabelProbabilities) -> dict[str, np.ndarray]:
    """Return how often each annotator gave the label that won, expected over ties, with a 95 % interval (Jeffreys).

    The annotator's own votes are among those that decide, so that this is too high where few annotate an item. Where
    gold labels are used, these are the ones that won. An annotator without annotations has neither value nor interval.
    """
    data = as_annotations(resolved.data)
    cell = posterior.label.item * data.num_labels + posterior.label.entry_class
    given = np.asarray(data.item, np.int64) * data.num_labels + np.asarray(data.label)
    place = np.minimum(np.searchsorted(cell, given), len(cell) - 1)  # labels of weight zero have no entry
    weight, annotator = np.asarray(data.weight, float), np.asarray(data.annotator)
    won = weight * posterior.label.probability[place]
    named = annotator >= 0
    count, right = (np.bincount(annotator[named], values[named], data.num_annotators) for values in (weight, won))
    known = np.where(count > 0, count, np.nan)
    found = beta_interval(right + 0.5, known - right + 0.5)
    return {
        "annotator": np.arange(data.num_annotators), "annotations": count, "accuracy": right / known,
        "lower": found.lower, "upper": found.upper, **gold_record(data),
    }  # fmt: skip


def accuracy(posterior: Posterior, resolved: Resolved, truth: LabelProbabilities) -> dict[str, np.ndarray]:
    """Return one row, the `RoundAccuracy`; of no row where the data have no gold labels."""
    data = as_annotations(resolved.data)
    if data.gold is None or not np.any(np.asarray(data.gold) >= 0):
        return {name: np.zeros(0) for name in RoundAccuracy._fields}
    found = round_accuracy(posterior, data.gold, folded_key(truth.key, 1))
    return {name: np.array([value]) for name, value in found._asdict().items()}


def vote_shares(posterior: Posterior) -> Float[np.ndarray, " entry"]:
    """Return the share of its item's votes of each entry; zero where there are none."""
    item = posterior.label.item
    total = np.bincount(item, posterior.votes, len(posterior.label.first) - 1)[item]
    return np.divide(posterior.votes, total, out=np.zeros(len(total)), where=total > 0)


TABLES = (
    Table(
        name="labels", help="The winner of each item, of tied ones the lowest code.", make=labels,
        columns=(
            Column("item", "item"), Column("label", "class"), Column("probability", help="that the label wins"),
            Column("certainty", help="the same"), Column("share", help="of the votes of the item"),
        ),
    ),
    Table(
        name="shares", help="The votes for each label of each item, most votes first.", make=shares,
        columns=(
            Column("item", "item"), Column("label", "class"), Column("votes", help="sum of weights"),
            Column("share", help="of the votes of the item"),
        ),
    ),
    Table(
        name="annotators", help="How often each annotator gave the label that won.", make=annotators,
        columns=(
            Column("annotator", "annotator"), Column("annotations", help="sum of weights"),
            Column("accuracy", help="share of labels that won"),
            Column("lower", help="end of the central 95 % interval (Jeffreys)"), Column("upper", help="its other end"),
            *GOLD_COLUMNS,
        ),
    ),
    Table(
        name="accuracy", help="Accuracy of majority vote against gold labels, ties broken at random.", make=accuracy,
        columns=tuple(map(Column, RoundAccuracy._fields)),
    ),
)  # fmt: skip

MODEL = Model(
    name="majority-vote",
    title="the label that most annotators gave, ties at random, a point estimate",
    paper="""@inproceedings{paun2018probabilistic,
  title     = {A Probabilistic Annotation Model for Crowdsourcing Coreference},
  author    = {Paun, Silviu and Chamberlain, Jon and Kruschwitz, Udo and Yu, Juntao and Poesio, Massimo},
  booktitle = {Proceedings of the 2018 Conference on Empirical Methods in Natural Language Processing},
  pages     = {1926--1937},
  year      = {2018}
}""",
    takes=(Annotations, Mentions),
    settings=Settings,
    sites=Sites(Site("label", plates=("item",)), hidden={"votes": ("entry",)}),
    engines=(Exact(solve=exact),),
    truth=truth,
    tables=(*TABLES, *GOLD_MEASURES),
    says=says,
)
