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
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from consilience.arrays import Array, Float, Int, Key
from consilience.data.annotations import Annotations
from consilience.data.mentions import Mentions
from consilience.models.gold import GOLD, uses_gold
from consilience.models.interface import Model, Option
from consilience.models.truth import Entries, LabelProbabilities, LabelTruth, PointTruth

__all__ = ["MODEL", "Posterior", "RoundAccuracy", "exact", "round_accuracy", "truth", "vote_shares"]

_ROUNDS = 10


class Posterior(NamedTuple):
    """The vote.

    Parameters
    ----------
    first : int64, shape ``(item + 1,)``; the entries of item i are ``first[i]:first[i + 1]``.
    entry_class : int32, shape ``(entry,)``; the label of an entry.
    votes : float64, shape ``(entry,)``; weighted number of annotations.
    probability : float64, shape ``(entry,)``; that the label wins a random round.
    """

    first: Int[np.ndarray, " boundary"]
    entry_class: Int[np.ndarray, " entry"]
    votes: Float[np.ndarray, " entry"]
    probability: Float[np.ndarray, " entry"]


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


def exact(data: Annotations | Mentions, priors: None = None, *, gold: str, uncertainty: str) -> Posterior:
    """Count the votes; an item without any has a tie of all labels, one whose gold label is used has that one."""
    data = _annotations(data)
    entries, votes = _votes(data)
    if not uses_gold(data, gold):
        return Posterior(entries.first, entries.class_, votes, _vote_probability(entries.first, votes))
    entries, votes = _with_gold(data, entries, votes)
    known = np.asarray(data.gold)[entries.item]
    probability = np.where(known >= 0, entries.class_ == known, _vote_probability(entries.first, votes))
    return Posterior(entries.first, entries.class_, votes, probability)


# Data are frozen, and equal to themselves alone.
@functools.lru_cache(maxsize=1)
def _of_mentions(data: Mentions) -> Annotations:
    return data.to_annotations()


def _annotations(data: Annotations | Mentions) -> Annotations:
    """Return mentions as annotations: a label with its antecedent is a label like any other."""
    return _of_mentions(data) if isinstance(data, Mentions) else data


def _votes(data: Annotations) -> tuple[Entries, Float[np.ndarray, " entry"]]:
    """Return the labels that each item got, or all labels where it got none, and their votes."""
    weight = np.asarray(data.weight, float)
    cell = np.asarray(data.item, np.int64) * data.num_labels + np.asarray(data.label)
    voted = np.zeros(data.num_items, bool)
    voted[np.asarray(data.item)[weight > 0]] = True
    silent = np.flatnonzero(~voted)[:, None] * data.num_labels + np.arange(data.num_labels)
    named, position = np.unique(np.concatenate([cell[weight > 0], silent.ravel()]), return_inverse=True)
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


def truth(
    posterior: Posterior, data: Annotations | Mentions, *, key: Key, num_draws: int, gold: str, uncertainty: str
) -> LabelTruth:
    """Return the winner of random rounds, or labels drawn by the shares of the votes."""
    data = _annotations(data)
    entries = Entries(posterior.first, posterior.entry_class, data.num_labels)
    probability = posterior.probability
    if uncertainty == "shares":
        # Where the gold label is used it is certain, whatever the votes.
        decided = np.bincount(entries.item, posterior.votes, entries.num_items) == 0
        if uses_gold(data, gold):
            decided |= np.asarray(data.gold) >= 0
        probability = np.where(decided[entries.item], probability, posterior.votes)
    drawn = LabelProbabilities(entries, probability, key=key, num_draws=num_draws)
    drawn.point = PointTruth(entries, posterior.probability)
    drawn.classes = data.labels
    return drawn


def draw(
    posterior: Posterior, data: Annotations | Mentions, *, key: Key, num_draws: int, **options: Any
) -> dict[str, Array]:
    """Return the winners of random rounds, ``(draw, item)``."""
    data = _annotations(data)
    winners = posterior.entry_class[posterior.probability > 0]
    item = _items(posterior)[posterior.probability > 0]
    first, number = np.searchsorted(item, np.arange(data.num_items)), np.bincount(item, minlength=data.num_items)
    chosen = jax.random.randint(key, (num_draws, data.num_items), 0, number)
    return {"label": jnp.asarray(winners)[first + chosen]}


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
    item = _items(posterior)
    known = gold >= 0
    probability = _vote_probability(posterior.first, posterior.votes)
    right = np.bincount(item, probability * (posterior.entry_class == gold[item]), len(gold))[known]
    tied = np.bincount(item, probability > 0, len(gold))[known] > 1
    random = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    rounds = [np.mean(random.random(len(right)) < right) for _ in range(_ROUNDS)]
    return RoundAccuracy(
        items=len(right), tied=int(tied.sum()), expected=float(right.mean()),
        sd=float(np.sqrt(np.sum(right * (1 - right))) / len(right)), best_of_ten=float(max(rounds)),
    )  # fmt: skip


# ---- tables ----


def labels(posterior: Posterior, data: Annotations | Mentions, truth: LabelTruth) -> dict[str, np.ndarray]:
    """Table of the winner of each item, of tied ones the lowest code, with its share of the votes."""
    data = _annotations(data)
    table, shares = truth.leading(), vote_shares(posterior)
    cell = _items(posterior) * data.num_labels + posterior.entry_class
    return {**table, "share": shares[np.searchsorted(cell, table["item"] * data.num_labels + table["label"])]}


def shares(posterior: Posterior, data: Annotations | Mentions, truth: LabelTruth) -> dict[str, np.ndarray]:
    """Table of the votes for each label of each item, most votes first."""
    item, share = _items(posterior), vote_shares(posterior)
    order = np.lexsort((posterior.entry_class, -posterior.votes, item))
    columns = {"item": item, "label": posterior.entry_class, "votes": posterior.votes, "share": share}
    return {name: values[order] for name, values in columns.items()}


def annotators(posterior: Posterior, data: Annotations | Mentions, truth: LabelTruth) -> dict[str, np.ndarray]:
    """Table of how often each annotator gave the label that won, expected over ties, with a 95 % interval (Jeffreys).

    The annotator's own votes are among those that decide, so that this is too high where few annotate an item. Where
    gold labels are used, these are the ones that won. An annotator without annotations has neither value nor interval.
    """
    data = _annotations(data)
    cell = _items(posterior) * data.num_labels + posterior.entry_class
    given = np.asarray(data.item, np.int64) * data.num_labels + np.asarray(data.label)
    place = np.minimum(np.searchsorted(cell, given), len(cell) - 1)  # labels of weight zero have no entry
    weight, annotator = np.asarray(data.weight, float), np.asarray(data.annotator)
    won = weight * posterior.probability[place]
    named = annotator >= 0
    count, right = (np.bincount(annotator[named], values[named], data.num_annotators) for values in (weight, won))
    known = np.where(count > 0, count, np.nan)
    lower, upper = (stats.beta.ppf(level, right + 0.5, known - right + 0.5) for level in (0.025, 0.975))
    return {
        "annotator": np.arange(data.num_annotators), "annotations": count, "accuracy": right / known,
        "lower": lower, "upper": upper,
    }  # fmt: skip


def accuracy(posterior: Posterior, data: Annotations | Mentions, truth: LabelTruth) -> dict[str, np.ndarray]:
    """Table of one row, the `RoundAccuracy`; of no row where the data have no gold labels."""
    data = _annotations(data)
    if data.gold is None or not np.any(np.asarray(data.gold) >= 0):
        return {name: np.zeros(0) for name in RoundAccuracy._fields}
    assert isinstance(truth, LabelProbabilities)
    found = round_accuracy(posterior, data.gold, jax.random.fold_in(truth.key, 1))
    return {name: np.array([value]) for name, value in found._asdict().items()}


def vote_shares(posterior: Posterior) -> Float[np.ndarray, " entry"]:
    """Return the share of its item's votes of each entry; zero where there are none."""
    item = _items(posterior)
    total = np.bincount(item, posterior.votes, len(posterior.first) - 1)[item]
    return np.divide(posterior.votes, total, out=np.zeros(len(total)), where=total > 0)


def _items(posterior: Posterior) -> Int[np.ndarray, " entry"]:
    return np.repeat(np.arange(len(posterior.first) - 1), np.diff(posterior.first))


MODEL = Model(
    name="majority-vote",
    title="the label that most annotators gave, ties at random, a point estimate",
    citation="""@inproceedings{paun2018probabilistic,
  title     = {A Probabilistic Annotation Model for Crowdsourcing Coreference},
  author    = {Paun, Silviu and Chamberlain, Jon and Kruschwitz, Udo and Yu, Juntao and Poesio, Massimo},
  booktitle = {Proceedings of the 2018 Conference on Empirical Methods in Natural Language Processing},
  pages     = {1926--1937},
  year      = {2018}
}""",
    data=Annotations,
    also=(Mentions,),
    methods=("exact",),
    options=(
        GOLD,
        Option(
            name="uncertainty", kind=str, default="ties", choices=("ties", "shares"),
            help="what is uncertain: the winner of a tie (ties), or all labels by their shares of the votes (shares)",
        ),
    ),
    posterior=Posterior,
    exact=exact,
    draw=draw,
    truth=truth,
    tables={"labels": labels, "shares": shares, "annotators": annotators, "accuracy": accuracy},
    dims={"label": ("item",)},
)  # fmt: skip
