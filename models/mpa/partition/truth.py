"""What the draws of partitions say: labels, chains, a partition."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from consilience.arrays import Float, Int
from consilience.errors import InputError, InputProblem
from consilience.models.mpa.candidates import candidates_of
from consilience.models.mpa.partition.annotators import beliefs
from consilience.models.mpa.partition.state import injective, label_code, label_of
from consilience.models.rows import row_blocks
from consilience.models.sites import Resolved
from consilience.models.truth.chains import NEW, LabelChains
from consilience.models.truth.labels import LabelDraws
from consilience.models.truth.partitions import DrawnPartitions
from consilience.models.truth.truth import CHAINS, PARTITION, Block, Clusters, Question, Truth

_MOST_ROWS = 1 << 21    # of draws and candidates, at a time


class PartitionLabels(LabelDraws):
    """Labels of mentions in draws of partitions: the nearest earlier mention of the entity, or that it is new.

    Attributes
    ----------
    known, resolved : what the posterior holds beside its sites, and how the model was resolved.
    candidates : the pairs of mentions and labels that somebody gave.
    probability : shape ``(pair,)``; of the label.
    phi : shape ``(pair,)``; that the label is true of the mention: that the two are of one entity, whether or not
        another mention of it is nearer.
    """

    def __init__(
        self, known: Mapping[str, Any], resolved: Resolved, link: Int[np.ndarray, "chain draw mention"] | None = None
    ) -> None:
        link, data = np.asarray(known["link"] if link is None else link), resolved.data
        # A silver link that is taken leaves its mention new.
        self.of_mentions = data.label_codes(label_of(np.append(np.unique(link), NEW)))
        self.codes = label_code(self.of_mentions.type, self.of_mentions.antecedent)
        super().__init__(self.coded(link.reshape(-1, link.shape[-1])), len(self.of_mentions.names))
        self.num_chains, self.known, self.resolved, self.mentions = len(link), known, resolved, data
        self.ids = {"item": data.mentions, "class": self.of_mentions.names}
        self.candidates = candidates_of(data, "observed", resolved.settings.gold)
        self.beliefs = beliefs(resolved.settings.antecedents == "any")

    def witnessed(self, witness: Int[np.ndarray, " mention"]) -> PartitionLabels:
        """Return labels of draws of which a system is one more annotator: it errs by itself, to any label alike.

        Parameters
        ----------
        witness : the nearest earlier mention of the entity of each, -1 where it is the first, -2 where the system says
            nothing of it.

        Raises
        ------
        InputError : it names a mention that is not of the same document.
        """
        data: Any = self.mentions
        document, linked = np.asarray(data.document), np.flatnonzero(witness >= 0)
        for mention in linked[document[linked] != document[witness[linked]]]:
            one, other = (
                f"“{data.mentions[place]}” of document “{data.documents[document[place]]}”"
                for place in (mention, witness[mention])
            )
            remedy = "give entities of different documents different names"
            raise InputError(InputProblem(f"the system links mention {one} to {other}", remedy))
        from consilience.models.mpa.partition.sampler import witnessed

        return PartitionLabels(self.known, self.resolved, witnessed(self.known, self.resolved, witness, 0))

    def coded(self, link: Int[np.ndarray, "*shape"]) -> Int[np.ndarray, "*shape"]:
        """Return the labels of links."""
        order = np.argsort(self.codes)
        return order[np.searchsorted(self.codes[order], link)]

    def read_as(self, kind: str, **which: Any) -> Truth:
        """Return the draws as chains, or as a partition in which what refers to nothing is alone."""
        if kind in (CHAINS.name, PARTITION.name):
            return self.chains if kind == CHAINS.name else self.partition
        return super().read_as(kind, **which)

    @functools.cached_property
    def chains(self) -> PartitionChains:
        """The entities of each draw."""
        assert self.mentions is not None
        return PartitionChains(self, self.mentions, self.of_mentions)

    @functools.cached_property
    def partition(self) -> DrawnPartitions:
        """The partition of each draw."""
        entity = self.chains.entities
        alone = entity.max(initial=-1) + 1 + np.arange(self.num_units)
        return DrawnPartitions(np.where(entity < 0, alone, entity))

    def clusters(self, draws: slice = slice(None)) -> Int[np.ndarray, "draw mention"]:
        """Return who is together in some draws, each entity named by its first mention."""
        return self.partition.clusters(draws)

    def pairs(self) -> Any:
        """Return how often each pair of mentions is of one entity."""
        return self.partition.pairs()

    @functools.cached_property
    def probability(self) -> Float[np.ndarray, " pair"]:
        """How often each candidate is the label."""
        item, label = self.candidates.item, self.candidates.label
        return self._share(lambda draws: self.draws[draws][:, item] == label, len(item))

    @functools.cached_property
    def phi(self) -> Float[np.ndarray, " pair"]:
        """How often each candidate is true of its mention."""
        aim = self.chains.links[self.candidates.label]
        return np.where(aim < 0, self.probability, self.together(self.candidates.item, np.maximum(aim, 0)))

    def together(
        self, one: Int[np.ndarray, " pair"], other: Int[np.ndarray, " pair"]
    ) -> Float[np.ndarray, " pair"]:
        """Return how often mentions are of one entity."""
        entity = self.chains.entities
        return self._share(
            lambda draws: (entity[draws][:, one] == entity[draws][:, other]) & (entity[draws][:, one] >= 0), len(one)
        )

    def _share(self, true: Callable[[slice], np.ndarray], number: int) -> Float[np.ndarray, " pair"]:
        """Return how often so many things are true, of which a function says so in some draws, ``(draw, pair)``."""
        total = np.zeros(number)
        for draws in row_blocks(self.num_draws, number, _MOST_ROWS):
            total += true(draws).sum(axis=0)
        return total / self.num_draws


class PartitionChains(LabelChains):
    """The chains of draws of partitions."""

    def blocks(self, question: Question) -> Iterator[Block]:
        """Yield the entities of all mentions and draws."""
        if not self.answers(question):
            yield from super().blocks(question)
        yield Block(slice(0, self.num_units), slice(0, self.num_draws), self.entities)

    @functools.cached_property
    def entities(self) -> Int[np.ndarray, "draw mention"]:
        """The entity of each mention in each draw, -1 where it refers to nothing."""
        return np.concatenate([block.values for block in super().blocks(Clusters())])

    @functools.cached_property
    def silver(self) -> tuple[Int[np.ndarray, " mention"], Float[np.ndarray, " mention"]]:
        """The most probable labels, of which no two point to one mention; and how probable each is."""
        found = self.of.label_probabilities()
        link = injective(found.probability, found.unit, self.of.codes[found.code], self.num_units)
        label = self.of.coded(link).astype(np.int32)
        return label, self.probability_of(label)

    def together(self, entity: Int[np.ndarray, " mention"], label: Int[np.ndarray, " mention"]) -> np.ndarray:
        """Return of each mention how probably mentions that its entity links are of one: the mean over its links."""
        aim = self.links[label]
        linked = np.flatnonzero(aim >= 0)
        often = self.of.together(linked, aim[linked])
        number = int(entity.max(initial=-1)) + 1
        with np.errstate(invalid="ignore"):
            mean = np.bincount(entity[linked], often, number) / np.bincount(entity[linked], minlength=number)
        return np.append(mean, np.nan)[entity]
