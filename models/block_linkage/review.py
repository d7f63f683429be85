"""Pairs for a person to decide, and what a threshold on the probability of a pair would give.

By default these are the pairs in doubt, which teach most. Of a number of pairs half are the most uncertain ones. The
other half is drawn from all other candidates, equally many of each tenth of probability as far as there are, so that it
says how right the probabilities are: a pair that was drawn stands for as many as its tenth has for each that was drawn,
the others for themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from consilience.arrays import Float, Int
from consilience.data.codes import object_array
from consilience.data.pair_labels import read_pair_labels
from consilience.data.records import Records
from consilience.errors import UnsupportedRequest
from consilience.models.interface import Column, Measure, Table
from consilience.models.posterior import Posterior
from consilience.models.sites import Resolved
from consilience.models.truth.partitions import IN_DOUBT, Pairs, PartitionTruth

if TYPE_CHECKING:
    import pandas

_TENTHS = 10
_THRESHOLDS = np.array([0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999])


def review(
    posterior: Posterior, resolved: Resolved, truth: PartitionTruth, *, number: int | None = None, seed: int = 0
) -> dict[str, np.ndarray]:
    """Return pairs of records for a person to decide, with the values of both and an empty column ``answer``.

    Fill in same or different (or together, apart, 1, 0), and give the table to ``link`` as ``labels``, or to
    ``calibration``. Without a number these are all pairs in doubt (probability above 0.02 and below 0.99). Of a number
    the first half are the most uncertain pairs, and the other half is ``sampled`` from all other candidates, which
    ``calibration`` needs; ``weight`` says for how many of them a pair stands. Pairs that have an answer already are
    left out. Values stand in columns ``a.field`` and ``b.field``.

    Parameters
    ----------
    number : of pairs; those in doubt by default.
    seed : of the draw.

    Raises
    ------
    UnsupportedRequest : ``number`` is no whole number above 0.
    """
    if number is not None and (not isinstance(number, int | np.integer) or number < 1):
        raise UnsupportedRequest(f"number={number!r} pairs cannot be reviewed; give a whole number above 0")
    found = truth.pairs()
    if resolved.data.labelled is not None:
        one, other = np.asarray(resolved.data.labelled).T
        new = Pairs(one, other, np.ones(len(one))).of(found.first, found.second) == 0
        found = Pairs(found.first[new], found.second[new], found.probability[new])
    order = np.argsort(np.abs(found.probability - 0.5), kind="stable")
    if number is None:
        low, high = IN_DOUBT
        uncertain = order[(found.probability[order] > low) & (found.probability[order] < high)]
        drawn, weight = order[:0], np.zeros(0)
    else:
        uncertain, others = np.split(order, [-(-min(number, len(order)) // 2)])
        drawn, weight = _stratified(others, found.probability, number - len(uncertain), np.random.default_rng(seed))
    chosen = np.concatenate([uncertain, drawn])
    first, second = found.first[chosen], found.second[chosen]
    return {
        "record_a": first, "record_b": second, "probability": found.probability[chosen],
        **_values(resolved.data, first, second),
        "answer": object_array([""] * len(chosen)),
        # All candidates are as good as a draw.
        "sampled": (np.arange(len(chosen)) >= len(uncertain)) | (len(chosen) == len(order)),
        "weight": np.concatenate([np.ones(len(uncertain)), weight]),
    }  # fmt: skip


def _stratified(
    among: Int[np.ndarray, " pair"], probability: Float[np.ndarray, " every"], number: int,
    generator: np.random.Generator,
) -> tuple[Int[np.ndarray, " drawn"], Float[np.ndarray, " drawn"]]:  # fmt: skip
    """Draw equally many pairs of each tenth of probability, as far as it has some; the most probable first."""
    tenth = np.minimum((probability[among] * _TENTHS).astype(int), _TENTHS - 1)
    has = np.bincount(tenth, minlength=_TENTHS)
    takes, left = np.zeros(_TENTHS, int), min(number, len(among))
    while left:  # one more of each tenth that has one
        takers = np.flatnonzero(takes < has)[::-1][:left]
        takes[takers] += 1
        left -= len(takers)
    drawn = [
        np.sort(generator.choice(np.flatnonzero(tenth == one), takes[one], replace=False))
        for one in range(_TENTHS)[::-1]
        if takes[one]
    ]
    place = np.concatenate([np.zeros(0, int), *drawn])
    return among[place], (has / np.maximum(takes, 1))[tenth[place]]


def _values(data: Records, first: Int[np.ndarray, " pair"], second: Int[np.ndarray, " pair"]) -> dict[str, np.ndarray]:
    """Return the values of both records of each pair side by side; none of records that have no texts."""
    if data.values is None or data.fields is None:
        return {}
    texts = np.append(np.asarray(data.values, object), [""])
    columns: dict[str, np.ndarray] = {}
    for field, codes, start in zip(data.fields, np.asarray(data.value), data.first_value, strict=False):
        place = np.where(codes >= 0, codes + start, -1)
        columns |= {f"a.{field}": texts[place[first]], f"b.{field}": texts[place[second]]}
    return columns


def thresholds(fit: Any, labels: Any = None) -> pandas.DataFrame:
    """Say what would come out if the pairs above a threshold were linked, and all that they connect.

    Parameters
    ----------
    fit : a fit of records.
    labels : answers to pairs, as `review` asks for them; precision and recall are then those of the labels, by their
        weights. Without labels they are what the model expects, of all links among the candidates.

    Returns
    -------
    data frame : ``threshold`` (probability), ``pairs`` that reach it, ``clusters`` that these connect (records alone
        count), and ``precision`` and ``recall`` of the pairs; NaN where no pair, or no label, is there to tell.

    Raises
    ------
    InputError : the labels cannot be read.
    UnsupportedRequest : all labels were chosen because they were uncertain, or the fit used them.

    Examples
    --------
    >>> import consilience as cs
    >>> fit = cs.fit("block-linkage", cs.simulate_records(40, seed=1))
    >>> table = fit.thresholds()
    >>> table.loc[table["threshold"] == 0.5, ["pairs", "clusters"]].values.tolist()
    [[1, 39]]
    """
    import pandas

    found, number = fit.truth.pairs(), fit.truth.num_units
    probability, weight, right = found.probability, np.ones(len(found.first)), found.probability
    if labels is not None:
        answers = read_pair_labels(labels, fit.data.records, fit.data.sources)
        answers.check_as_test(fit.data.labelled)
        probability = found.of(answers.first, answers.second)
        weight, right = answers.weight, answers.together.astype(float)
    rows = []
    for threshold in _THRESHOLDS.tolist():
        linked, above = found.probability >= threshold, probability >= threshold
        graph = coo_array((np.ones(linked.sum()), (found.first[linked], found.second[linked])), shape=(number, number))
        hits = float(weight[above] @ right[above])
        shares = (_share(hits, float(whole)) for whole in (weight[above].sum(), weight @ right))
        rows.append((threshold, int(linked.sum()), connected_components(graph, directed=False)[0], *shares))
    return pandas.DataFrame(rows, columns=["threshold", "pairs", "clusters", "precision", "recall"])


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else np.nan


REVIEW = Table(
    name="review",
    help="Pairs of records for a person to decide: those in doubt, or the most uncertain ones and some at random.",
    columns=(
        Column("record_a", "record"), Column("record_b", "record"), Column("probability"),
        Column("answer", help="empty; write same or different"),
        Column("sampled", help="whether the pair was drawn from all candidates"),
        Column("weight", help="for how many candidates it stands"),
    ),
    make=review,
)  # fmt: skip
THRESHOLDS = Measure(
    name="thresholds", help="What links above a threshold would give: pairs, clusters, precision and recall.",
    place=f"{__name__}:thresholds",
    columns=(
        Column("threshold", help="probability"), Column("pairs", help="that reach it"),
        Column("clusters", help="that these connect"), Column("precision"), Column("recall"),
    ),
)  # fmt: skip
