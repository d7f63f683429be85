"""Silver chains: coreference chains from a posterior over antecedents, the most likely ones and draws of them.

The silver chains take the most probable label of each mention (Paun et al. 2018, section 5.3); how labels make chains
says `consilience.models.truth.chains`. Of a posterior of partitions no two mentions have one antecedent: of several
that claim it the most probable keeps it, and the others take what is next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.data.conll import Chains
from consilience.data.mentions import MentionLabels, Mentions
from consilience.errors import UnknownName
from consilience.evaluation.chains import spans_of
from consilience.models.truth import CHAINS, truth_of


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SilverChains:
    """Chains of mentions, with the links that make them.

    Parameters
    ----------
    data : Mentions
        The annotated mentions.
    labels : MentionLabels
        What the codes of labels stand for.
    label : numpy.ndarray
        Int, shape ``(mention,)``; code of the label that was taken.
    probability : float64, shape ``(mention,)``
        Of that label.
    entity : int64, shape ``(mention,)``
        -1 where the mention refers to nothing.
    together : float64, shape ``(mention,)``
        How probably mentions that a link of the entity joins are of one entity, the mean over its links, NaN where it
        has none; None of a fit whose posterior is of links and not of chains.

    Examples
    --------
    >>> import consilience as cs
    >>> mentions = cs.read_mentions(
    ...     {"mention_id": ["m1", "m2"], "annotator_id": ["Ann", "Ann"], "annotation": ["DN", "DO(m1)"]}
    ... )
    >>> silver = cs.silver_chains(cs.fit("majority-vote", mentions))
    >>> silver.table[["mention", "label"]].values.tolist()
    [['m1', 'DN'], ['m2', 'DO(m1)']]
    >>> silver.num_entities
    1
    """

    data: Mentions
    labels: MentionLabels
    label: np.ndarray
    probability: np.ndarray
    entity: np.ndarray
    together: np.ndarray | None = None

    @property
    def num_entities(self) -> int:
        """How many entities there are."""
        return int(self.entity.max(initial=-1)) + 1

    @property
    def table(self) -> Any:
        """Data frame with one row a mention.

        Columns ``document, mention, label, probability, entity`` (missing where the mention refers to nothing); of a
        posterior of partitions also ``together``, and where the data have them ``start`` and ``end``. Entities are
        numbered from 1 in the order of their first mentions.
        """
        import pandas

        data = self.data
        documents, mentions = np.asarray(data.documents, object), np.asarray(data.mentions, object)
        columns = {
            "document": documents[np.asarray(data.document)], "mention": mentions,
            "label": np.asarray(self.labels.names, object)[self.label], "probability": self.probability,
            "entity": pandas.array(np.where(self.entity < 0, 0, self.entity + 1), dtype="Int64"),
        }  # fmt: skip
        if self.together is not None:
            columns["together"] = self.together
        if data.start is not None:
            columns |= {"start": np.asarray(data.start), "end": np.asarray(data.end)}
        frame = pandas.DataFrame(columns)
        frame.loc[self.entity < 0, "entity"] = pandas.NA
        return frame

    def to_chains(self) -> Chains:
        """Return the entities with their spans, to write as CoNLL (`write_conll`) or to score.

        Raises
        ------
        UnsupportedRequest : the mentions have no spans.
        """
        return spans_of(self.data, self.entity)

    def __repr__(self) -> str:
        nothing = int(np.sum(self.entity < 0))
        return (
            f"SilverChains({len(self.entity):,} mentions, {self.num_entities:,} entities, "
            f"{nothing:,} mentions that refer to nothing)"
        )


def silver_chains(fit: Any, *, draw: int | None = None) -> SilverChains:
    """Return the chains of a fit of mentions.

    Parameters
    ----------
    fit : Fit
        Of `mpa`, `majority-vote` or another model of `Mentions`.
    draw : int, optional
        Number of a draw of the posterior, from 0, whose chaining to return; by default every mention has its most
        probable label.

    Returns
    -------
    SilverChains
        The links and entities, in ``table``; ``to_chains()`` writes and scores them.

    Raises
    ------
    UnsupportedRequest : the fit is not one of mentions.
    UnknownName : there is no such draw.

    Examples
    --------
    >>> import consilience as cs
    >>> mentions = cs.read_mentions(
    ...     {"mention_id": ["m1", "m2"], "annotator_id": ["Ann", "Ann"], "annotation": ["DN", "DO(m1)"]}
    ... )
    >>> cs.silver_chains(cs.fit("majority-vote", mentions))
    SilverChains(2 mentions, 1 entities, 0 mentions that refer to nothing)
    """
    truth: Any = truth_of(fit).read_as(CHAINS.name)
    label, probability = truth.silver
    if draw is not None:
        if not 0 <= draw < truth.num_draws:
            raise UnknownName(f"there is no draw {draw}; there are {truth.num_draws:,}, counted from 0")
        label = truth.drawn[draw]
        probability = truth.probability_of(label)
    entity = truth.chains_of(label)
    return SilverChains(
        data=truth.data, labels=truth.labels, label=label, probability=probability, entity=entity,
        together=truth.together(entity, label),
    )  # fmt: skip
