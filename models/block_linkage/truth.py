"""Which records belong together, from the partitions of small components: exact where that is possible, else draws."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.special import ndtri

from consilience.arrays import Array, Float, Int, Key
from consilience.models.block_linkage.entity_interval import disagree, interval_of_entities
from consilience.models.block_linkage.enumeration import (
    first_places,
    links_of_partitions,
    pair_probabilities,
    pairs_within,
    partition_clusters,
    subset_probabilities,
    subset_sizes,
)
from consilience.models.block_linkage.likelihood import Likelihood
from consilience.models.block_linkage.linkage import Group, Linkage
from consilience.models.block_linkage.model import Linkable, enumerate_linkable, members_by_size
from consilience.models.block_linkage.near_misses import NearMiss, near_misses
from consilience.models.block_linkage.overlap import overlap_doubt
from consilience.models.rows import row_blocks
from consilience.models.sites import Resolved
from consilience.models.truth.partitions import (
    FEW_FOUND,
    CountedClusters,
    DrawnPartitions,
    MatchingSets,
    Pairs,
    PartitionTruth,
    first_members,
)

_BLOCK = 1 << 18  # random numbers at a time, so that they stay in the processor's cache
_MOST_COMPARED = 255  # ends with which every number is compared; more are searched


class LargeDraws(DrawnPartitions):
    """Draws of the partitions of large parts, which are independent of each other.

    Parameters
    ----------
    cluster : integers, shape ``(draw, large_member)``; equal where records are together.
    part : shape ``(large_member,)``; the part of each.
    """

    def __init__(self, cluster: Int[np.ndarray, "draw large_member"], part: Int[np.ndarray, " large_member"]) -> None:
        super().__init__(cluster)
        self.part = part

    def estimate(self) -> Int[np.ndarray, " large_member"]:
        """Return for each part the draw that agrees best with all; see `DrawnPartitions.estimate`."""
        draw, pair = self._together()
        _, place, number = np.unique(pair, return_inverse=True, return_counts=True)
        num_parts = int(self.part.max(initial=-1)) + 1
        cell = draw * num_parts + self.part[pair // max(self.num_units, 1)]
        gain = np.bincount(cell, 2 * number[place] / self.num_draws - 1, self.num_draws * num_parts)
        best = gain.reshape(self.num_draws, num_parts).argmax(axis=0)
        return self.cluster[best[self.part], np.arange(self.num_units)]


class BlockPartition(PartitionTruth):
    """Partitions of independent components with known probabilities; every other record is alone.

    The partitions of parts too large to enumerate are draws, and what is said of their records is a mean over these.

    Parameters
    ----------
    posterior : what EM ended with.
    key, num_draws : the draws are a function of these, so that every pass sees the same ones.
    records : the user's ids in code order.
    resolved : what was fitted, where the number of entities may be sampled; see `interval_of_entities`.
    """

    links_alone = True

    def __init__(
        self, posterior: Linkage, *, key: Key, num_draws: int, records: Any = None, resolved: Resolved | None = None
    ) -> None:
        self.posterior, self.key, self.num_draws, self.resolved = posterior, key, num_draws, resolved
        self.ids = {} if records is None else {"record": records}
        self.num_units = int(posterior.num_records)
        self.found_share = float(posterior.found_share)
        self.large = np.asarray(posterior.large)
        self.drawn = LargeDraws(np.asarray(posterior.drawn), np.asarray(posterior.large_part))
        misfit = posterior.misfit()
        twice = "" if resolved is None else overlap_doubt(resolved.data)
        self.doubt = "; ".join(filter(None, [misfit.words if misfit.fails else "", twice]))
        if len(posterior.tried) and len(posterior.class_share):
            self.basis = f"error classes; by hit-miss, which does not hold, {posterior.tried[0, 2]:,.0f}"
        if len(posterior.powers):
            self.doubt = "weighted fields, not a posterior"
        if not np.isnan(posterior.closure):
            self.no_interval = "a closure of pairs has none"

    def _of_large(self, draws: Int[np.ndarray, " draw"]) -> Int[np.ndarray, " draw"]:
        """Return which of the kept draws of large parts belongs to each draw."""
        return draws % self.drawn.num_draws

    def clusters(self, draws: slice = slice(None)) -> Int[np.ndarray, "draw record"]:
        """Draw the partition of each component, by the inverse of the distribution function."""
        number = np.arange(self.num_draws)[draws]
        cluster = np.tile(np.arange(self.num_units, dtype=np.int32), (len(number), 1))
        for rows in row_blocks(len(number), len(self.posterior.first), _BLOCK):
            uniform = self._uniform(number[rows])
            for (group, components), ends in zip(self._groups, self._ends, strict=True):
                drawn = _by_sizes(group.members.shape[1])[_places(uniform[:, components], ends)]
                cluster[rows, group.members] = _first_records(group.members, drawn)
        cluster[:, self.large] = self.large[self.drawn.cluster[self._of_large(number)]]
        return cluster

    def pairs(self) -> Pairs:
        """Return the exact probabilities of all pairs within components, and those of large parts by their draws."""
        large = self.drawn.pairs()
        ends = [self.large[np.stack([large.first, large.second])].astype(np.int32)]
        probabilities = [large.probability]
        for group, _ in self._groups:
            of_size = np.array(pairs_within(group.members.shape[1]))
            ends.append(group.members[:, of_size].transpose(1, 0, 2).reshape(2, -1))
            probabilities.append(pair_probabilities(_normal(group).T, group.members.shape[1]).T.ravel())
        # The rows of a sparse matrix are sorted, and making it takes less time than a sort.
        entries = (np.concatenate(probabilities), np.concatenate(ends, axis=1))
        matrix = coo_array(entries, shape=(self.num_units, self.num_units)).tocsr()
        first = np.repeat(np.arange(self.num_units, dtype=np.int32), np.diff(matrix.indptr))
        return Pairs(first, matrix.indices.astype(np.int32, copy=False), matrix.data)

    def estimate(self) -> Int[np.ndarray, " record"]:
        """Return the most probable partition."""
        cluster = np.arange(self.num_units, dtype=np.int32)
        for group in self.posterior.pieces():
            cluster[group.members] = _first_records(group.members, group.partition.argmax(axis=1))
        cluster[self.large] = self.large[self.drawn.estimate()]
        return cluster

    @functools.cached_property
    def _clusters_by_size(self) -> Int[np.ndarray, "draw size"]:
        members = [group.members for group, _ in self._groups]
        kinds = [(np.zeros(len(own), int), subset_sizes(own.shape[1])[None]) for own in members]
        largest = max((own.shape[1] for own in members), default=1)
        number = self._clusters_by_kind(kinds, largest + 1)[:, 1:]
        number[:, 0] += self.num_units - sum(own.size for own in members) - len(self.large)
        if not len(self.large):
            return number
        large = self.drawn.clusters_by_size()[self._of_large(np.arange(self.num_draws))]
        longest = max(number.shape[1], large.shape[1])
        number, large = (np.pad(one, ((0, 0), (0, longest - one.shape[1]))) for one in (number, large))
        return number + large

    def clusters_by_source(
        self, source: Int[np.ndarray, " record"]
    ) -> tuple[Int[np.ndarray, " pattern"], Int[np.ndarray, "draw pattern"]]:
        """Count without building the draws; see `PartitionTruth.clusters_by_source`."""
        bit = 1 << source.astype(np.int64)
        alone = np.ones(self.num_units, bool)
        alone[self.large] = False
        of_large, large = self.drawn.clusters_by_source(source[self.large]) if len(self.large) else (bit[:0], None)
        found = []
        for group, _ in self._groups:
            alone[group.members] = False
            of_class, class_ = np.unique(bit[group.members], axis=0, return_inverse=True)
            found.append((class_.ravel(), _unions(of_class)))
        # The empty set of no source is first.
        patterns = np.unique(np.concatenate([[0], bit[alone], of_large, *(unions.ravel() for _, unions in found)]))
        kinds = [(class_, np.searchsorted(patterns, unions)) for class_, unions in found]
        numbers = self._clusters_by_kind(kinds, len(patterns))
        numbers += np.bincount(np.searchsorted(patterns, bit[alone]), minlength=len(patterns))
        if large is not None:
            numbers[:, np.searchsorted(patterns, of_large)] += large[self._of_large(np.arange(self.num_draws))]
        return patterns[1:], numbers[:, 1:]

    def _clusters_by_kind(
        self, kinds: list[tuple[np.ndarray, np.ndarray]], number: int
    ) -> Int[np.ndarray, "draw kind"]:
        """Count the clusters in components by kind: of each draw, how many of its partitions have which clusters.

        Parameters
        ----------
        kinds : for each group, ``(component,)``, the class of every component; and, ``(class, subset)``, of each class
            the kind of every subset of its records, 0 where that is none, as for the empty set.
        number : of kinds.
        """
        counters = [_Counter.of(ends, *own, number) for ends, own in zip(self._ends, kinds, strict=True)]
        total = np.zeros((self.num_draws, number), int)
        for rows in row_blocks(self.num_draws, len(self.posterior.first), _BLOCK):
            uniform = self._uniform(np.arange(self.num_draws)[rows])
            for (_, components), counter in zip(self._groups, counters, strict=True):
                total[rows] += counter.numbers(uniform[:, components])
        return total

    def num_clusters_moments(self) -> tuple[float, float]:
        """Return mean and variance of the number of clusters, given the hyperparameters; of small parts exactly."""
        return self._moments

    @functools.cached_property
    def _moments(self) -> tuple[float, float]:
        large = self.drawn.num_clusters() if len(self.large) else np.zeros(1)
        mean, variance = float(self.num_units - len(self.large) + large.mean()), float(large.var())
        for group in self.posterior.pieces():
            fewer, probability = links_of_partitions(group.members.shape[1]), _normal(group)
            own = probability @ fewer
            mean -= float(own.sum())
            variance += float((probability @ fewer**2 - own**2).sum())
        return mean, variance

    def corrected_num_clusters(self) -> float:
        """Return the expected number of clusters if the pairs that the threshold hides were known to be linked.

        Not a number where the model does not fit well enough to tell how many are hidden, or candidates were given.
        """
        if not self.posterior.tells_hidden():
            return np.nan
        share = float(self.posterior.found_share)
        counts = self.size_counts()
        pairs = counts[1] if len(counts) > 1 else 0.0
        return self.num_clusters_moments()[0] - float(pairs) * (1 - share) / share

    def size_counts(self) -> Float[np.ndarray, " size"]:
        """Return the expected number of clusters of 1, 2, … records; of small parts exactly."""
        return self._size_counts

    @functools.cached_property
    def _size_counts(self) -> Float[np.ndarray, " size"]:
        groups = self._groups
        of_large = self.drawn.size_counts() if len(self.large) else np.zeros(0)
        largest = max([1, len(of_large), *(group.members.shape[1] for group, _ in groups)])
        counts = np.zeros(largest + 1)
        counts[1 : len(of_large) + 1] = of_large
        counts[1] += self.num_units - len(self.large) - sum(group.members.size for group, _ in groups)
        for group in self.posterior.pieces():
            size = group.members.shape[1]
            probability = subset_probabilities(_normal(group).T, size).sum(axis=1)
            counts += np.bincount(subset_sizes(size), probability, largest + 1)
        return counts[1:]

    def counted(self) -> CountedClusters:
        """Return the number of clusters with the doubt about all that EM has fixed, where that is known.

        It comes from a short Gibbs run, made at the first call and kept, of data that are not too large; else, and
        where that finds other links than EM, from Laplace's method. Where nobody knows what the threshold hides, it is
        the number of the links alone.
        """
        return self._counted

    @functools.cached_property
    def _counted(self) -> CountedClusters:
        quiet = self.no_interval or self.doubt or self.found_share < FEW_FOUND
        found = None if quiet else self._of_gibbs()
        # The estimate is that of EM: an interval of other links says nothing of it.
        if found is None or disagree(found.number, (self.num_clusters_moments()[0], self.corrected_num_clusters())):
            doubt = "" if found is None else f"too sure, since by Gibbs sampling there are {found.number.mean():,.0f}"
            found = (self._of_laplace() or super().counted())._replace(doubt=doubt)
        if not found.doubt and self.near_misses:
            return found._replace(doubt="too high, since typing errors hide links")
        return found

    @functools.cached_property
    def near_misses(self) -> list[NearMiss]:
        """The fields in which typing errors hide links, found once; none where nobody knows the records."""
        return [] if self.resolved is None else near_misses(self.posterior, self.resolved.data)

    def _of_gibbs(self) -> CountedClusters | None:
        if self.resolved is None or self.posterior.links_nothing():
            return None
        seed = np.asarray(jax.random.key_data(self.key))
        larger = float(self.size_counts()[self.resolved.settings.largest :].sum())
        found = interval_of_entities(self.resolved, self.posterior, self.estimate(), larger, seed)
        if found is None:
            return None
        errors = self.basis or ("error classes" if len(self.posterior.class_share) else "independent errors")
        return found._replace(basis=f"{errors}; {found.basis}")

    def _of_laplace(self) -> CountedClusters | None:
        """To each draw of the links add a normal number, of the variance that `laplace` has besides."""
        hidden = self.num_clusters_moments()[0] - self.corrected_num_clusters()
        variance = hidden + float(self.posterior.variance)
        if np.isnan(variance):
            return None
        # The quantiles of the normal distribution in random order, which have next to no error of their own.
        place = (np.random.default_rng(0).permutation(self.num_draws) + 0.5) / self.num_draws
        number = self.num_clusters() - hidden + np.sqrt(variance) * ndtri(place)
        basis = "; ".join(part for part in ("Laplace's method after EM", self.basis) if part)
        return CountedClusters(np.rint(number).astype(int), self.size_counts(), False, basis)

    def cluster_probability(self, cluster: Int[np.ndarray, " record"]) -> Float[np.ndarray, " record"]:
        """Return for each record how probably its cluster in a partition is exactly one cluster.

        Parameters
        ----------
        cluster : of any partition, such as an `estimate`; equal where records are together.
        """
        first = first_members(cluster)
        number = np.bincount(first, minlength=self.num_units)[first]
        probability = (number == 1).astype(float)
        for group in self.posterior.pieces():
            size = group.members.shape[1]
            own = first[group.members]
            subset = (own[:, :, None] == own[:, None]) @ (1 << np.arange(size))
            exactly = np.take_along_axis(subset_probabilities(_normal(group).T, size).T, subset, axis=1)
            # A cluster that reaches out of the component is none.
            probability[group.members] = exactly * (subset_sizes(size)[subset] == number[group.members])
        if len(self.large):
            own = first_members(first[self.large])
            inside = np.bincount(own, minlength=len(own))[own] == number[self.large]
            probability[self.large] = self.drawn.cluster_probability(own) * inside
        return probability

    def set_probability(
        self, first: Int[np.ndarray, " sets_and_one"], member: Int[np.ndarray, " member"]
    ) -> Float[np.ndarray, " set"]:
        """Return how probably each set of records is exactly one cluster; in small parts exactly."""
        component, place = self._places
        length, head = np.diff(first), component[member[first[:-1]]]
        of_large = np.full(self.num_units, -1)
        of_large[self.large] = np.arange(len(self.large))
        drawn = np.flatnonzero(np.logical_and.reduceat(of_large[member] >= 0, first[:-1]))
        within = np.logical_and.reduceat(component[member] == np.repeat(head, length), first[:-1])
        subset = np.bitwise_or.reduceat(1 << place[member], first[:-1])
        probability = ((head < 0) & (length == 1)).astype(float)
        if len(drawn):
            own = np.concatenate([of_large[member[first[place] : first[place + 1]]] for place in drawn])
            probability[drawn] = self.drawn.set_probability(np.append(0, np.cumsum(length[drawn])), own)
        for group, components in self._groups:
            own = np.flatnonzero(within & (head >= components.start) & (head < components.stop))
            chosen = Group(*(values[head[own] - components.start] for values in group))
            of_subset = subset_probabilities(_normal(chosen).T, group.members.shape[1])
            probability[own] = of_subset[subset[own], np.arange(len(own))]
        return probability

    def entropy(self) -> Float[np.ndarray, " record"]:
        """Return for each record the entropy, in nats, of the set that is its cluster: how doubtful it is."""
        entropy = np.zeros(self.num_units)
        for group, _ in self._groups:
            size = group.members.shape[1]
            probability = subset_probabilities(_normal(group).T, size)
            terms = -probability * np.log(np.where(probability > 0, probability, 1))
            within = np.arange(2**size) >> np.arange(size)[:, None] & 1
            entropy[group.members] = np.einsum("rs,sc->cr", within, terms)
        if len(self.large):
            entropy[self.large] = self.drawn.entropy()
        return entropy

    def matching_sets(self) -> MatchingSets:
        """Return the most probable maximal matching set of every record."""
        lengths, probability = np.ones(self.num_units, int), np.ones(self.num_units)
        best = self._best_subsets()
        for group, subset, of_subset in best:
            lengths[group.members] = subset_sizes(group.members.shape[1])[subset]
            probability[group.members] = of_subset
        large = self.drawn.matching_sets() if len(self.large) else None
        if large is not None:
            lengths[self.large], probability[self.large] = np.diff(large.first), large.probability
        first = np.concatenate([[0], np.cumsum(lengths)])
        member = np.repeat(np.arange(self.num_units, dtype=np.int32), lengths)
        for group, subset, _ in best:
            belongs = (subset[..., None] >> np.arange(group.members.shape[1]) & 1).astype(bool)
            place = first[group.members][..., None] + np.cumsum(belongs, axis=2) - 1
            others = np.broadcast_to(group.members[:, None], belongs.shape)
            member[place[belongs]] = others[belongs]
        if large is not None:
            length = np.diff(large.first)
            start = np.repeat(first[self.large] - large.first[:-1], length)
            member[start + np.arange(len(large.member))] = self.large[large.member]
        return MatchingSets(first, member, probability)

    def shared_matching_sets(self) -> Int[np.ndarray, " record"]:
        """Return the partition that links two records if and only if they have the same most probable matching set."""
        cluster = np.arange(self.num_units, dtype=np.int32)
        for group, subset, _ in self._best_subsets():
            place = (subset[:, :, None] == subset[:, None]).argmax(axis=2)
            cluster[group.members] = np.take_along_axis(group.members, place, axis=1)
        if len(self.large):
            cluster[self.large] = self.large[self.drawn.shared_matching_sets()]
        return cluster

    @functools.cached_property
    def _groups(self) -> list[tuple[Group, slice]]:
        """Return the groups of components and where they are among all."""
        groups = self.posterior.groups()
        stops = np.cumsum([len(group.members) for group in groups])
        return [
            (group, slice(int(stop) - len(group.members), int(stop))) for group, stop in zip(groups, stops, strict=True)
        ]

    @functools.cached_property
    def _places(self) -> tuple[Int[np.ndarray, " record"], Int[np.ndarray, " record"]]:
        """Return the component of each record, -1 where it is alone, and its place there."""
        start, member = np.asarray(self.posterior.first), np.asarray(self.posterior.member)
        component, place = np.full(self.num_units, -1), np.zeros(self.num_units, int)
        component[member] = np.repeat(np.arange(len(start) - 1), np.diff(start))
        place[member] = np.arange(len(member)) - start[component[member]]
        return component, place

    @functools.cached_property
    def _ends(self) -> list[Float[np.ndarray, "partition component"]]:
        """Return the distribution functions of the components of each group, without the last value, which is one.

        Partitions are in the order of `_by_sizes`. Single precision, as the numbers that are drawn.
        """
        ends = []
        for group, _ in self._groups:
            order = _by_sizes(group.members.shape[1])[:-1]
            ends.append(np.ascontiguousarray(np.cumsum(_normal(group)[:, order], axis=1).T, np.float32))
        return ends

    def _uniform(self, draws: Int[np.ndarray, " draw"]) -> Float[np.ndarray, "draw component"]:
        """Return the random numbers of some draws: one stream of them, a part for each draw."""
        number = len(self.posterior.first) - 1
        if not len(draws):
            return np.zeros((0, number), np.float32)
        pairs_of_words = -(-number // 2)
        stream = np.random.PCG64(jax.random.key_data(self.key).tolist())
        stream.advance(int(draws.min()) * pairs_of_words)
        shape = (int(draws.max() - draws.min()) + 1, 2 * pairs_of_words)
        uniform = np.random.Generator(stream).random(shape, np.float32)
        every = len(uniform) == len(draws)
        return uniform[:, :number] if every else uniform[draws - draws.min(), :number]

    def _best_subsets(self) -> list[tuple[Group, np.ndarray, np.ndarray]]:
        """Return for each record of each component the subset with it that is most probably one cluster."""
        found = []
        for group, _ in self._groups:
            size = group.members.shape[1]
            probability = subset_probabilities(_normal(group).T, size).T
            within = np.arange(2**size) >> np.arange(size)[:, None] & 1
            of_record = np.where(within, probability[:, None], -1)
            found.append((group, of_record.argmax(axis=2), of_record.max(axis=2)))
        return found


class DrawnLinkage(DrawnPartitions):
    """Stored partitions of draws of the hyperparameters, and what their candidates leave out.

    Parameters
    ----------
    cluster : integers, shape ``(draw, record)``; as `drawn_partitions` returns them.
    threshold : candidates are pairs with log odds above minus this.
    found_share : of all links, those that are expected among the candidates; nan where these were given.
    cut, alike : as in `Linkable`.
    """

    def __init__(
        self, cluster: Int[np.ndarray, "draw record"], *, threshold: float, found_share: float,
        cut: Float[np.ndarray, " 5"], alike: Float[np.ndarray, " 3"],
    ) -> None:  # fmt: skip
        super().__init__(cluster)
        self.threshold, self.found_share, self.cut, self.alike = threshold, found_share, cut, alike

    @property
    def given_up(self) -> DrawnLinkage:
        """What was cut to make the groups small."""
        return self

    def expected_outside(self) -> dict[str, tuple[float, str]]:
        """Return what is expected of the pairs that could not be linked: nobody knows."""
        return {}


def drawn_partitions(
    data: Linkable, sites: Mapping[str, Any], *, likelihood: str | Likelihood, key: Key
) -> Int[np.ndarray, "draw record"]:
    """Draw a partition given each draw of the hyperparameters.

    Parameters
    ----------
    data : the records with their components.
    sites : draws ``(draw, …)`` of the model's sites.
    likelihood : a name in `LIKELIHOODS`, or one of your own.
    key : of the draws.

    Returns
    -------
    Clusters, each the code of its first record.
    """
    num_draws = len(sites["distortion"])
    share = sites.get("value_share", np.broadcast_to(data.share, (num_draws, len(data.share))))
    given = [share, *(sites[name] for name in ("distortion", "size_share", "intensity"))]
    given += [sites.get(name) for name in ("class_share", "source_share")]
    hyperparameters = tuple(None if one is None else jnp.asarray(one, jnp.result_type(float)) for one in given)
    cluster = np.tile(np.arange(data.num_records, dtype=np.int32), (num_draws, 1))
    several = [members for members in members_by_size(data) if len(members)]
    for members, chosen in zip(several, _drawn(key, hyperparameters, data, likelihood), strict=True):
        cluster[:, members] = _first_records(np.asarray(members), np.asarray(chosen))
    return cluster


@functools.partial(jax.jit, static_argnames="likelihood")
def _drawn(key: Key, hyperparameters: tuple[Array | None, ...], data: Linkable, likelihood: Any) -> list[Array]:
    """Draw the number of the partition of every component, ``(draw, component)`` of each size."""

    def one(draw: tuple[Any, ...]) -> list[Array]:
        own_key, share, distortion, size_share, intensity, *rest = draw
        every = enumerate_linkable(data, share, distortion, size_share, intensity, likelihood, *rest)
        return [
            jax.random.categorical(jax.random.fold_in(own_key, size), jnp.log(found.partition), axis=0)
            for size, found in enumerate(every)
        ]

    keys = jax.random.split(key, len(jax.tree.leaves(hyperparameters)[0]))
    return jax.lax.map(one, (keys, *hyperparameters))


def _normal(group: Group) -> Float[np.ndarray, "component partition"]:
    """Return the probabilities of partitions in double precision; they add up to one."""
    probability = group.partition.astype(float)
    return probability / probability.sum(axis=1, keepdims=True)


@functools.cache
def _by_sizes(num_records: int) -> Int[np.ndarray, " partition"]:
    """Return the partitions in an order in which those whose clusters have the same sizes follow one another."""
    return np.lexsort(np.sort(subset_sizes(num_records)[partition_clusters(num_records)], axis=1).T)


def _unions(bits: Int[np.ndarray, "class record"]) -> Int[np.ndarray, "class subset"]:
    """Return the bits that the records of every subset have together."""
    unions = np.zeros((len(bits), 1), bits.dtype)
    for own in bits.T:
        unions = np.concatenate([unions, unions | own[:, None]], axis=1)
    return unions


class _Counter(NamedTuple):
    """Counts what the partitions drawn of the components of a group consist of.

    Parameters
    ----------
    ends : values of the distribution functions where clusters of another kind begin, in some class.
    first_cell : the first cell of the class of each component; a class has a cell for each place between such ends.
    kinds : sparse; how many clusters of each kind the partitions of a cell have.
    """

    ends: Float[np.ndarray, "end component"]
    first_cell: Int[np.ndarray, " component"]
    kinds: csr_array

    @classmethod
    def of(
        cls,
        ends: Float[np.ndarray, "partition component"],
        class_: Int[np.ndarray, " component"],
        kind: Int[np.ndarray, "class subset"],
        number: int,
    ) -> _Counter:
        """Join partitions that follow one another and have clusters of the same kinds in every class."""
        size = int(kind.shape[1]).bit_length() - 1
        kinds = np.sort(kind[:, partition_clusters(size)[_by_sizes(size)]], axis=2)
        change = np.flatnonzero((kinds[:, 1:] != kinds[:, :-1]).any(axis=(0, 2)))
        kinds = kinds[:, np.append(change, kinds.shape[1] - 1)].reshape(-1, size)
        cell, place = np.nonzero(kinds)
        shape = (len(kinds), number)
        table = csr_array((np.ones(len(cell), int), (cell, kinds[cell, place])), shape=shape)
        return cls(ends[change], class_ * (len(change) + 1), table)

    def numbers(self, uniform: Float[np.ndarray, "draw component"]) -> Int[np.ndarray, "draw kind"]:
        """Return the numbers of clusters by kind."""
        num_draws, num_cells = len(uniform), self.kinds.shape[0]
        if num_cells == len(self.ends) + 1:  # of a single class: count who has reached each end
            counts = [np.add.reduce(uniform >= end, axis=1, dtype=np.int32) for end in self.ends]
            reached = np.stack([np.full(num_draws, uniform.shape[1]), *counts, np.zeros(num_draws, int)], axis=1)
            return (reached[:, :-1] - reached[:, 1:]) @ self.kinds
        cell = _places(uniform, self.ends) + self.first_cell + np.arange(num_draws)[:, None] * num_cells
        number = np.bincount(cell.ravel(), minlength=num_draws * num_cells)
        return number.reshape(num_draws, num_cells) @ self.kinds


def _places(uniform: Float[np.ndarray, "draw component"], ends: Float[np.ndarray, "end component"]) -> np.ndarray:
    """Return how many ends each random number has reached, whole numbers ``(draw, component)``."""
    if len(ends) > _MOST_COMPARED:
        return _places_by_halves(uniform, ends)
    place = np.zeros(uniform.shape, np.min_scalar_type(len(ends)))
    for end in ends:
        place += uniform >= end
    return place


def _places_by_halves(
    uniform: Float[np.ndarray, "draw component"], ends: Float[np.ndarray, "end component"]
) -> Int[np.ndarray, "draw component"]:
    """Return the same for many ends by halving their number again and again."""
    place, component = np.zeros(uniform.shape, int), np.arange(ends.shape[1])
    for step in 1 << np.arange(len(ends).bit_length())[::-1]:
        further = np.minimum(place + step, len(ends))
        place = np.where(uniform >= ends[further - 1, component], further, place)
    return place


def _first_records(members: np.ndarray, partition: np.ndarray) -> np.ndarray:
    """Return the first record of the cluster of each record, ``(…, component, record)``."""
    place = first_places(members.shape[1])[partition]
    return np.take_along_axis(np.broadcast_to(members, place.shape), place, axis=-1)
