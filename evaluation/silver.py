"""Silver chains: coreference chains from a posterior over antecedents, the most likely ones and draws of them.

Any posterior over the labels of `Mentions` will do. A mention whose label is ``DO(m)`` is linked to m, ``DN`` begins an
entity, and ``NR`` refers to nothing; nor does a property, ``PR(m)``, which is said of m and no mention of it. Chains
are the mentions that links connect (`consilience.evaluation.chains`). The silver chains take the most probable label of
each mention (Paun et al. 2018, section 5.3); each draw of the labels gives a whole chaining of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import Float, Int
from consilience.data.conll import Chains
from consilience.data.mentions import MENTION_TYPES, MentionLabels, Mentions
from consilience.errors import UnknownName, UnsupportedRequest
from consilience.evaluation.chains import NEW, NOTHING, follow_links
from consilience.models.truth import LabelTruth

__all__ = ["SilverChains", "drawn_links", "mentions_of", "silver_chains", "spans_of"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SilverChains:
    """Chains of mentions, with the links that make them.

    Parameters
    ----------
    data : the annotated mentions.
    labels : what the codes of labels stand for.
    label : int, shape ``(mention,)``; code of the label that was taken.
    probability : float64, shape ``(mention,)``; of that label.
    entity : int64, shape ``(mention,)``; -1 where the mention refers to nothing.
    """

    data: Mentions
    labels: MentionLabels
    label: np.ndarray
    probability: np.ndarray
    entity: np.ndarray

    @property
    def num_entities(self) -> int:
        """How many entities there are."""
        return int(self.entity.max(initial=-1)) + 1

    @property
    def table(self) -> Any:
        """Data frame with one row a mention.

        Columns ``document, mention, label, probability, entity`` (missing where the mention refers to nothing) and,
        where the data have them, ``start`` and ``end``. Entities are numbered from 1 in the order of their first
        mentions.
        """
        import pandas

        data = self.data
        documents, mentions = np.asarray(data.documents, object), np.asarray(data.mentions, object)
        columns = {
            "document": documents[np.asarray(data.document)], "mention": mentions,
            "label": np.asarray(self.labels.names, object)[self.label], "probability": self.probability,
            "entity": pandas.array(np.where(self.entity < 0, 0, self.entity + 1), dtype="Int64"),
        }  # fmt: skip
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
    fit : of `mpa`, `majority-vote` or another model of `Mentions`.
    draw : number of a draw of the posterior, from 0, whose chaining to return; by default every mention has its most
        probable label.

    Raises
    ------
    UnsupportedRequest : the fit is not one of mentions.
    UnknownName : there is no such draw.
    """
    data, labels, truth = mentions_of(fit)
    table = truth.leading()
    label, probability = np.asarray(table["label"]), np.asarray(table["probability"])
    if draw is not None:
        if not 0 <= draw < truth.num_draws:
            raise UnknownName(f"there is no draw {draw}; there are {truth.num_draws:,}, counted from 0")
        label = _drawn_labels(truth)[draw]
        probability = _probability_of(truth, label)
    entity = follow_links(_links(labels)[label][None])[0]
    return SilverChains(data=data, labels=labels, label=label, probability=probability, entity=entity)


def drawn_links(fit: Any) -> Int[np.ndarray, "draw mention"]:
    """Return what each mention is linked to in each draw of the posterior, as `follow_links` takes it.

    Raises
    ------
    UnsupportedRequest : the fit is not one of mentions.
    """
    _, labels, truth = mentions_of(fit)
    return _links(labels)[_drawn_labels(truth)]


def mentions_of(fit: Any) -> tuple[Mentions, MentionLabels, LabelTruth]:
    """Return what a fit of mentions knows.

    Raises
    ------
    UnsupportedRequest : the fit is not one of mentions.
    """
    data = getattr(fit, "data", None)
    if not isinstance(data, Mentions):
        raise UnsupportedRequest(
            "chains need a fit of mentions, whose labels say what each mention goes back to; read the file by "
            "read_mentions and fit mpa or majority-vote"
        )
    labels, truth = data.label_codes(), fit.truth
    if not isinstance(truth, LabelTruth) or truth.num_classes != len(labels.names):
        raise UnsupportedRequest("the truth of this fit is not one label of mentions for each item")
    return data, labels, truth


def spans_of(data: Mentions, entity: Int[np.ndarray, " mention"]) -> Chains:
    """Return the entities of mentions with their spans.

    Raises
    ------
    UnsupportedRequest : the mentions have no spans.
    """
    if data.start is None:
        raise UnsupportedRequest(
            "the mentions have no places in their documents; give the columns document_id, start and end (first and "
            "last token of the mention, counted from 0 in the document) and fit again"
        )
    return Chains.from_spans(data.document, data.start, data.end, entity, documents=data.documents)


def _links(labels: MentionLabels) -> Int[np.ndarray, " label"]:
    """Return what each label points to, as `follow_links` takes it."""
    old, new = (labels.type == MENTION_TYPES.index(name) for name in ("DO", "DN"))
    return np.where(old, labels.antecedent, np.where(new, NEW, NOTHING)).astype(np.int32)


def _drawn_labels(truth: LabelTruth) -> Int[np.ndarray, "draw mention"]:
    return np.concatenate([np.asarray(block.values)[: block.num_items] for block in truth.labels()]).T


def _probability_of(truth: LabelTruth, label: np.ndarray) -> Float[np.ndarray, " mention"]:
    entries, probability = truth.label_probabilities()
    own = entries.class_ == label[entries.item]
    result = np.zeros(len(label))
    result[entries.item[own]] = probability[own]
    return result
