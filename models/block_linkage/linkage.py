"""What block-linkage ends with: the partitions of every small component and their probabilities, as flat arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Bool, Float, Int
from consilience.models.block_linkage.enumeration import set_partitions
from consilience.models.block_linkage.misfit import Misfit
from consilience.models.block_linkage.parameters import Parameters
from consilience.models.posterior import Estimate, Posterior
from consilience.models.rows import row_blocks

_PIECE = 1 << 20  # probabilities of partitions
_SITES = ("distortion", "size_share", "intensity", "class_share", "source_share")


class Group(NamedTuple):
    """Components with the same number of records.

    Parameters
    ----------
    members : int32, shape ``(component, record)``; codes of records, increasing.
    partition : float32, shape ``(component, partition)``; probabilities, in the order of `set_partitions`.
    """

    members: Int[np.ndarray, "component record"]
    partition: Float[np.ndarray, "component partition"]


class Linkage(NamedTuple):
    """Linkage given point estimates of the hyperparameters; records in no component are alone.

    Parameters
    ----------
    num_records : int.
    first : integers, shape ``(component + 1,)``; where the records of each component begin in `member`. Components are
        ordered by their number of records.
    member : int32; codes of records.
    first_partition : integers, shape ``(component + 1,)``; where the partitions of each begin in `probability`.
    probability : float32; of all partitions of a component, in the order of `set_partitions`.
    value_share, distortion, intensity, size_share : the hyperparameters; see `Parameters`.
    evidence : float64, shape ``(pass,)``; log probability of records and number of records, summed over all partitions
        that join candidates only, a lower bound, and the log density of the priors, up to a constant. Of each pass of
        EM on a sample, then of the last pass on everything.
    first_phase : int; how many of these passes came before statistics were completed.
    threshold : float; the candidates were pairs with log odds above minus this.
    found_share : float; the share of true pairs that pass the threshold, as the model predicts it; nan where the
        candidates were given.
    disagreement : float; total variation between the numbers of fields in which linked pairs differ and those that the
        model predicts, as in `Misfit`; nan where nothing is linked.
    differing : float64, shape ``(2, field + 1)``; these numbers among the components that EM looked at, and the shares
        that the model predicts.
    completed : bool; whether the statistics were completed by the pairs that the threshold hides. Only where the
        disagreement is small.
    cut : float64, shape ``(5,)``; what was cut from components too large to enumerate, as in `Cut`.
    class_share, source_share : float64, shapes ``(class,)`` and ``(source,)``; hyperparameters of error classes and of
        records that are apart by source, see `Parameters`.
    tried : float64, shape ``(likelihood, 3)``; log evidence, disagreement and expected number of entities of hit-miss
        and of error classes, as in `choice`; nothing where no more than one likelihood was tried.
    larger_sizes : float64, shape ``(larger_size,)``; shares of the sizes above those of ``size_share``.
    pair_odds : as in `Parameters`.
    variance : float64; of the number of entities, by that of the hyperparameters, as in `laplace`; nan where nobody
        knows how many links the threshold hides.
    alike : float64, shape ``(3,)``; records that are the same as others and no candidates, as in `Alike`.
    large, large_part : codes of the records whose partition is drawn, increasing, and the part of each.
    drawn : integers, shape ``(kept_draw, large_member)``; equal in a draw where these records are together.
    unsettled : parts of these whose two chains did not agree.
    unseen : int; pairs at most that agree in what more than 1,000 records have, and were not looked at; see `keys`.
    closure : the log odds above which pairs were joined, as one draw; nan where the partition is that of the posterior.
    beyond : records in parts too large to enumerate.
    parted : of pairs in large parts with log odds above the setting ``at``, the share that draws have apart.
    powers : weights of the fields; none where all count fully.
    """

    num_records: Int[np.ndarray, ""]
    first: Int[np.ndarray, " components_and_one"]
    member: Int[np.ndarray, " member"]
    first_partition: Int[np.ndarray, " components_and_one"]
    probability: Float[np.ndarray, " partition"]
    value_share: Float[np.ndarray, " value"]
    distortion: Float[np.ndarray, " field"]
    intensity: Float[np.ndarray, ""]
    size_share: Float[np.ndarray, " size"]
    evidence: Float[np.ndarray, " pass"]
    first_phase: Int[np.ndarray, ""]
    threshold: Float[np.ndarray, ""]
    found_share: Float[np.ndarray, ""]
    disagreement: Float[np.ndarray, ""]
    completed: Bool[np.ndarray, ""]
    cut: Float[np.ndarray, " 5"]
    alike: Float[np.ndarray, " 3"]
    class_share: Float[np.ndarray, " class"] = np.zeros(0)
    source_share: Float[np.ndarray, " source"] = np.zeros(0)
    differing: Float[np.ndarray, "2 fields_and_one"] = np.zeros((2, 1))
    large: Int[np.ndarray, " large_member"] = np.zeros(0, int)
    large_part: Int[np.ndarray, " large_member"] = np.zeros(0, int)
    drawn: Int[np.ndarray, "kept_draw large_member"] = np.zeros((1, 0), int)
    unsettled: Int[np.ndarray, ""] = np.zeros((), int)
    tried: Float[np.ndarray, "likelihood 3"] = np.zeros((0, 3))
    unseen: Int[np.ndarray, ""] = np.array(0)
    larger_sizes: Float[np.ndarray, " larger_size"] = np.zeros(0)
    pair_odds: Float[np.ndarray, ""] = np.zeros(())
    closure: Float[np.ndarray, ""] = np.array(np.nan)
    beyond: Int[np.ndarray, ""] = np.zeros((), int)
    parted: Float[np.ndarray, ""] = np.array(np.nan)
    powers: Float[np.ndarray, " weighted_field"] = np.zeros(0)
    variance: Float[np.ndarray, ""] = np.array(np.nan)

    @classmethod
    def of(cls, posterior: Posterior) -> Linkage:
        """Return what is in the posterior of a fit by EM."""
        names = (*posterior.sites, *posterior.hidden)
        return cls(**{name: getattr(posterior, name) for name in cls._fields if name in names})

    def estimate(self) -> Estimate:
        """Return the posterior: the hyperparameters of the NumPyro model are its sites, all else is hidden."""
        sites = [name for name in _SITES if np.size(getattr(self, name))]
        rest = {name: values for name, values in self._asdict().items() if name not in sites}
        return Estimate({name: getattr(self, name) for name in sites}, rest)

    def misfit(self) -> Misfit:
        """Return how linked pairs differ, and how the model predicts it."""
        return Misfit(*self.differing)

    def tells_hidden(self) -> bool:
        """Return whether the links that the threshold hides can be counted: the model holds, and says how many."""
        of_classes = len(self.class_share) and not np.isnan(self.found_share)
        return bool(self.completed or (of_classes and self.misfit().holds))

    def parameters(self) -> Parameters:
        """Return the hyperparameters."""
        return Parameters(
            self.value_share, self.distortion, float(self.intensity), self.size_share, self.class_share,
            self.source_share,
        )  # fmt: skip

    def all_parameters(self) -> Parameters:
        """Return the hyperparameters, those of large entities too."""
        sizes = np.concatenate([self.size_share, self.larger_sizes])
        return self.parameters()._replace(size_share=sizes, pair_odds=float(self.pair_odds))

    def links_nothing(self) -> bool:
        """Return whether the most probable partition leaves every record alone."""
        for group in self.groups():
            apart = set_partitions(group.members.shape[1]).max(axis=1) == group.members.shape[1] - 1
            if not apart[group.partition.argmax(axis=1)].all():
                return False
        return not any(len(np.unique(draw)) < len(draw) for draw in np.asarray(self.drawn))

    def groups(self) -> list[Group]:
        """Return the components by their number of records; views."""
        size = np.diff(self.first)
        found = []
        for number in np.unique(size):
            start, stop = np.searchsorted(size, [number, number + 1])
            partitions = self.probability[self.first_partition[start] : self.first_partition[stop]]
            found.append(
                Group(
                    self.member[self.first[start] : self.first[stop]].reshape(-1, number),
                    partitions.reshape(-1, len(set_partitions(int(number)))),
                )
            )
        return found

    def pieces(self) -> Iterator[Group]:
        """Yield the same in pieces, so that what is computed of them in double precision is never that of all."""
        for members, partition in self.groups():
            blocks = row_blocks(len(partition), partition.shape[1], _PIECE)
            yield from (Group(members[rows], partition[rows]) for rows in blocks)


def flatten(groups: list[Group]) -> dict[str, Any]:
    """Return `Linkage.first`, ``member``, ``first_partition`` and ``probability`` of groups by increasing size."""

    def starts(lengths: list[int]) -> np.ndarray:
        every = np.repeat(np.array(lengths, int), [len(group.members) for group in groups])
        return np.concatenate([np.zeros(1, int), np.cumsum(every)])

    return {
        "first": starts([group.members.shape[1] for group in groups]),
        "member": np.concatenate([np.zeros(0, np.int32), *(group.members.ravel() for group in groups)]),
        "first_partition": starts([group.partition.shape[1] for group in groups]),
        "probability": np.concatenate([np.zeros(0, np.float32), *(group.partition.ravel() for group in groups)]),
    }
