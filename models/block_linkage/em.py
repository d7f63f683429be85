"""EM on a sample of components: expected statistics by enumeration, or draws, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jax.sharding import Mesh
from scipy.special import gammaln

from consilience.arrays import Array, Bool, Float, Int
from consilience.data.records import Records
from consilience.models.block_linkage.by_source import most_probable
from consilience.models.block_linkage.engines import Engine
from consilience.models.block_linkage.enumeration import (
    enumerate_blocks,
    gather_values,
    pairs_within,
    terms_under,
)
from consilience.models.block_linkage.hidden_links import CandidateRule, FoundShare
from consilience.models.block_linkage.join import (
    CandidatePairs,
    join,
    pair_log_odds,
    prior_log_odds,
)
from consilience.models.block_linkage.keys import JoinRule
from consilience.models.block_linkage.labels import pair_terms_of, with_labels
from consilience.models.block_linkage.large_parts import DrawnStatistics, LargeParts
from consilience.models.block_linkage.likelihoods import LIKELIHOODS, Likelihood
from consilience.models.block_linkage.misfit import Misfit, misfit, nearest_values
from consilience.models.block_linkage.parameters import Parameters
from consilience.models.block_linkage.parts import Parts
from consilience.models.block_linkage.priors import Hyperprior
from consilience.models.block_linkage.starting import (
    FREE_SIZES,
    LEAST_REST,
    shares_of,
    size_shares,
    source_counts,
    value_counts,
)
from consilience.progress import Steps

_TOLERANCE = 5e-4  # of the distortion of each field and the share of each size
_TOLERANCE_OF_DRAWS = 1e-2  # the same, where statistics are those of draws
_LEAST_RISE = 0.01  # of the log evidence in a pass
_MOST_PASSES = 50  # of each phase
_LEAST_FOUND = 0.5  # at most as much is completed as was found


def log_base(records: Records, parameters: Parameters, likelihood: Likelihood = LIKELIHOODS["hit-miss"]) -> float:
    """Return the log probability of the records, their number, and all of them apart."""
    counts = value_counts(records)
    alone = _log_values(counts, parameters) + _log_alone(counts, parameters, likelihood)
    return alone + _log_apart(records.num_records, source_counts(records), parameters)


def _log_values(counts: Int[np.ndarray, " value"], parameters: Parameters) -> float:
    return float(counts @ np.log(parameters.value_share))


def _log_alone(counts: Int[np.ndarray, " value"], parameters: Parameters, likelihood: Likelihood) -> float:
    return float(np.sum(counts * likelihood.log_alone(parameters.distortion, np)))


def _log_apart(number: int, by_source: Int[np.ndarray, " source"], parameters: Parameters) -> float:
    share = parameters.source_share
    alone = np.log(parameters.intensity * parameters.size_share[0])
    of_sources = by_source @ np.log(share) if len(share) else 0.0
    return float(number * alone - parameters.intensity - gammaln(number + 1) + of_sources)


def largest_rise(records: Records, before: Parameters, after: Parameters, likelihood: Likelihood) -> float:
    """Return by how much the log odds of a pair can at most have risen."""
    agree, differ = (
        new - old
        for new, old in zip(
            likelihood.pair_terms(after, records.first_value),
            likelihood.pair_terms(before, records.first_value),
            strict=True,
        )
    )
    lengths = np.diff(records.first_value)
    rise = np.where(lengths > 1, differ, -np.inf)
    starts = records.first_value[:-1][lengths > 0]
    if len(starts):
        rise[lengths > 0] = np.maximum(rise[lengths > 0], np.maximum.reduceat(agree, starts))
    missing = (records.value < 0).any(axis=1)
    return prior_log_odds(after) - prior_log_odds(before) + float(np.where(missing, np.maximum(rise, 0), rise).sum())


def candidates(
    records: Records, parameters: Parameters, likelihood: Likelihood, threshold: float, restriction: str,
    engine: Engine | None = None,
) -> CandidatePairs:  # fmt: skip
    """Join, or take the pairs that were given; leave out what is below the threshold and what may not be together."""
    if records.candidate is None:
        search = None if engine is None else _search(engine, records, parameters, likelihood, threshold)
        found = join(records, parameters, likelihood, threshold=threshold, search=search)
    else:
        first, second = records.candidate.T
        found = pair_log_odds(records.value, first, second, parameters, likelihood, records.first_value)
        found = found.where(found.log_odds > -threshold)
    return with_labels(found.allowed(records.source, restriction), records, parameters, likelihood)


def _search(
    engine: Engine, records: Records, parameters: Parameters, likelihood: Likelihood, threshold: float
) -> Callable[[JoinRule], CandidatePairs]:
    from consilience.models.block_linkage.engines.stages import candidates as found_by

    given = (parameters, likelihood, records.first_value, threshold)
    return lambda rule: found_by(engine, records.value, rule, *given)


class _Block(NamedTuple):
    """Components of one size, with what EM asks of their pairs.

    Parameters
    ----------
    values, conflict : as `enumerate_blocks` takes them.
    agree, observed : shape ``(pair, field, component)``; whether two records agree, and whether both have the field.
    candidates : as the likelihood returns them.
    """

    values: Int[np.ndarray, "member field component"]
    conflict: Bool[Array, "member member component"] | None
    agree: Float[np.ndarray, "pair field component"]
    observed: Float[np.ndarray, "pair field component"]
    candidates: Any


class Sample(NamedTuple):
    """Some components. ``scale`` is how many each stands for, ``num_alone`` the number of records in none at all."""

    blocks: list[_Block]
    scale: float
    num_alone: int


def sample_of(
    records: Records, parts: Parts, restriction: str, likelihood: Likelihood, number: int
) -> Sample:
    """Take some of the components, or all where they are few; the same ones whoever found them, in whatever order."""
    counts = np.array([len(members) for members in parts.members], int)
    rank = _hashed(np.concatenate([np.zeros(0, np.int32), *(members[:, 0] for members in parts.members)]))
    total = len(rank)
    chosen = np.sort(np.argsort(rank, kind="stable")[:number])
    first = np.cumsum(counts) - counts
    blocks = []
    for members, start in zip(parts.members, first, strict=True):
        own = members[chosen[(chosen >= start) & (chosen < start + len(members))] - start]
        if len(own):
            blocks.append(_block(records, own, restriction, likelihood))
    in_components = sum(members.size for members in parts.members)
    return Sample(blocks, total / max(len(chosen), 1), records.num_records - in_components)


def _hashed(number: Int[np.ndarray, " place"]) -> np.ndarray:
    """Return a number of 64 bits for each, as if at random: SplitMix64 (Steele, Lea and Flood 2014)."""
    mixed = (number.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return mixed ^ mixed >> np.uint64(31)


def _block(records: Records, members: np.ndarray, restriction: str, likelihood: Likelihood) -> _Block:
    values = gather_values(records.value, records.first_value, members)
    first, second = pairs_within(members.shape[1])
    observed = (values[first] >= 0) & (values[second] >= 0)
    agree = observed & (values[first] == values[second])
    conflict = pair_terms_of(records, members, restriction)
    return _Block(values, conflict, agree.astype(float), observed.astype(float), likelihood.candidates(values))


class _Statistics(NamedTuple):
    """Expected statistics of all components.

    Parameters
    ----------
    agree, observed : shape ``(field,)``; pairs of one entity that agree, and that both have the field.
    sizes : shape ``(size,)``; entities by their number of records.
    evidence : of the linkage, relative to all records apart.
    linked : of each block, shape ``(pair, component)``; how probably pairs are of one entity.
    errors : as the likelihood counts them.
    large : of the parts that are drawn; their evidence counts above, too.
    """

    agree: Float[np.ndarray, " field"]
    observed: Float[np.ndarray, " field"]
    sizes: Float[np.ndarray, " size"]
    evidence: float
    linked: list[Any]
    errors: Float[np.ndarray, " statistic"]
    large: DrawnStatistics


class Trace(NamedTuple):
    """Evidence of each pass, and how many of them were in the first phase."""

    evidence: list[float]
    first_phase: int


class Em(NamedTuple):
    """EM on a sample of components; the counts say how many records have each value, and each source."""

    records: Records
    value_counts: Int[np.ndarray, " value"]
    source_counts: Int[np.ndarray, " source"]
    sample: Sample
    prior: Hyperprior
    likelihood: Likelihood
    rule: CandidateRule
    mesh: Mesh | None
    large: LargeParts
    largest: int

    def run(self, parameters: Parameters) -> tuple[Parameters, Misfit, Trace]:
        """Maximise; complete the statistics in a second phase if the pairs found differ as the model predicts."""
        parameters, evidence = self.phase(parameters, complete=False)
        statistics = self.statistics(parameters)
        check = self.check(parameters, statistics)
        known = self.rule.join is not None and self.likelihood.additive
        if not (known and check.holds):
            return parameters, check, Trace(evidence, len(evidence))
        parameters, more = self.phase(parameters, complete=True, statistics=statistics)
        return parameters, check, Trace(evidence + more, len(evidence))

    def phase(
        self, parameters: Parameters, *, complete: bool, statistics: _Statistics | None = None, most: int = _MOST_PASSES
    ) -> tuple[Parameters, list[float]]:
        """Repeat until no distortion and no share of a size moves, or so many times at most.

        The new intensity and shares raise the evidence with the prior, as EM does. The new distortion matches moments,
        and need not: without completion, a step that lowers it is taken again with the old distortion.

        Parameters
        ----------
        statistics : under the first hyperparameters, where they are known.
        """
        evidence: list[float] = []
        before, fixed = parameters, False
        bar = Steps(most, "em", late=True)
        for step in range(most):
            bar.to(step)
            statistics = statistics or self.statistics(parameters)
            now = _log_values(self.value_counts, parameters)
            now += _log_apart(self.records.num_records, self.source_counts, parameters)
            now += statistics.evidence + _log_alone(self.value_counts, parameters, self.likelihood)
            now += log_prior(self.prior, parameters, self.likelihood)
            # Of draws the evidence is noise, too.
            if not complete and evidence and now < evidence[-1] and not fixed and not self.large:
                parameters, fixed, statistics = parameters._replace(distortion=before.distortion), True, None
                continue
            evidence.append(now)
            seen = self.rule.found(self.records, parameters, self.likelihood) if complete else None
            if seen is not None:
                statistics = _complete(statistics, seen)
            before, parameters, statistics = parameters, self.maximise(statistics, parameters), None
            if fixed:
                parameters = parameters._replace(distortion=before.distortion)
            # Those of error classes move on for dozens of passes that gain next to nothing.
            slow = len(parameters.class_share) and len(evidence) > 1 and evidence[-1] - evidence[-2] < _LEAST_RISE
            moved = np.abs(_watched(parameters) - _watched(before)).max()
            if slow or moved < (_TOLERANCE_OF_DRAWS if self.large else _TOLERANCE):
                break
        bar.close(converged=step + 1 < most)
        return parameters, evidence

    def statistics(self, parameters: Parameters) -> _Statistics:
        """Enumerate the sample; what it says stands for all components."""
        largest, num_fields = self.largest, self.records.num_fields
        terms = terms_under(parameters, largest)
        agree, observed, linked = np.zeros(num_fields), np.zeros(num_fields), []
        sizes, evidence, likelihood = np.zeros(largest), 0.0, self.likelihood.at(parameters)
        errors = likelihood.error_statistics(np.full((2, num_fields, 0), -1), parameters, np.zeros((2, 0)))
        for block in self.sample.blocks:
            found = enumerate_blocks(
                block.values, parameters.value_share, parameters.distortion, terms, likelihood, block.conflict,
                block.candidates, mesh=self.mesh,
            )  # fmt: skip
            pair = found.pair.astype(float)
            agree += np.einsum("pc,pfc->f", pair, block.agree)
            observed += np.einsum("pc,pfc->f", pair, block.observed)
            linked.append(pair)
            sizes[: len(found.sizes)] += found.sizes.sum(axis=1, dtype=float)
            evidence += float(found.log_evidence.sum(dtype=float))
            errors += likelihood.error_statistics(block.values, parameters, np.asarray(found.partition))
        scale = self.sample.scale
        sizes *= scale
        sizes[0] += self.sample.num_alone
        large = self.large.statistics(parameters)
        evidence = evidence * scale + float(large.evidence)
        return _Statistics(agree * scale, observed * scale, sizes, evidence, linked, errors * scale, large)

    def maximise(self, statistics: _Statistics, parameters: Parameters) -> Parameters:
        """Return the hyperparameters that the statistics and the priors suggest.

        With ρ the share of pairs that agree in a field and s the chance that two values agree, the distortion solves
        (1 - b)² = (ρ - s) / (1 - s). The prior counts as so many records, those in clusters of at least two.
        """
        field = np.repeat(np.arange(self.records.num_fields), np.diff(self.records.first_value))
        by_chance = np.bincount(field, parameters.value_share**2, self.records.num_fields)
        rate = statistics.agree / np.maximum(statistics.observed, np.finfo(float).tiny)
        both_right = self.likelihood.both_true(rate, by_chance)
        size = np.arange(1, len(statistics.sizes) + 1)
        num_pairs = statistics.sizes @ (size * (size - 1) / 2)
        linked = statistics.sizes[1:] @ size[1:]
        num_records = statistics.observed * linked / np.maximum(num_pairs, np.finfo(float).tiny)
        distorted = num_records * (1 - np.sqrt(both_right)) + self.prior.distortion[:, 0] + statistics.large.distorted
        num_records += statistics.large.drawn
        sizes = np.zeros(max(len(parameters.size_share), len(statistics.large.sizes)))
        sizes[: len(statistics.sizes)] += statistics.sizes
        sizes[: len(statistics.large.sizes)] += statistics.large.sizes
        shape, rate = self.prior.intensity
        number = np.arange(1, len(sizes) + 1)
        found = parameters._replace(
            distortion=distorted / (num_records + self.prior.distortion.sum(axis=1)),
            intensity=(shape + sizes.sum()) / (rate + 1),
            size_share=size_shares(sizes, self.prior.size_share),
            pair_odds=float(sizes @ (number * (number - 1))) / max(float(sizes @ number), 1.0) ** 2,
        )
        if len(parameters.source_share):
            found = found._replace(source_share=most_probable(self.source_counts, np.append(0, sizes)))
        if self.large:
            found = found._replace(value_share=self.entity_shares(statistics.large))
        return self.likelihood.learned(found, statistics.errors, self.prior.distortion)

    def entity_shares(self, large: DrawnStatistics) -> Float[np.ndarray, " value"]:
        """Return how common values are where those of large parts count for entities and errors, not for records."""
        codes = self.large.codes
        weight = np.broadcast_to(self.large.weight, codes.shape)
        inside = np.bincount(codes[codes >= 0], weight[codes >= 0], len(self.value_counts))
        return shares_of(self.records, self.value_counts - inside + large.values)

    def check(self, parameters: Parameters, statistics: _Statistics) -> Misfit:
        """Compare the pairs that were found with those that are predicted."""
        pairs, linked = [np.zeros((2, self.records.num_fields, 0), int)], [np.zeros(0)]
        for block, probability in zip(self.sample.blocks, statistics.linked, strict=True):
            ends = block.values[np.array(pairs_within(len(block.values)))].transpose(0, 2, 1, 3)
            pairs.append(ends.reshape(*ends.shape[:2], -1))
            linked.append(probability.ravel())
        drawn, weight = self.large.linked_pairs()
        pairs.append(drawn)
        linked.append(weight / (self.sample.scale or 1))  # of the sample, as those of small parts
        first_value = self.records.first_value
        parameters = parameters._replace(size_share=parameters.size_share[: self.largest])  # of what is enumerated
        return misfit(
            np.concatenate(pairs, axis=2), np.concatenate(linked), parameters, self.likelihood, first_value,
            lambda drawn: self.rule.passes(drawn, first_value), nearest_values(self.records),
        )  # fmt: skip


def _watched(parameters: Parameters) -> Float[np.ndarray, " number"]:
    """Return the hyperparameters that no longer move when EM ends."""
    sizes, of_records = parameters.size_share[:FREE_SIZES], (parameters.class_share, parameters.source_share)
    return np.concatenate([parameters.distortion, sizes, *of_records])


def log_prior(
    prior: Hyperprior, parameters: Parameters, likelihood: Likelihood = LIKELIHOODS["hit-miss"]
) -> float:
    """Return the log density of the priors of log m, and of the logits of b, of μ and of φ, up to a constant."""
    b, (shape, rate) = parameters.distortion, prior.intensity
    of_distortion = prior.distortion[:, 0] * np.log(b) + prior.distortion[:, 1] * np.log1p(-b)
    free = min(FREE_SIZES, len(prior.size_share))
    share = np.append(parameters.size_share[:free], max(parameters.size_share[free:].sum(), np.finfo(float).tiny))
    of_sizes = np.append(prior.size_share[:free], max(prior.size_share[free:].sum(), LEAST_REST)) * np.log(share)
    of_intensity = shape * np.log(parameters.intensity) - rate * parameters.intensity
    of_sources = np.log(parameters.source_share).sum()
    return float(of_distortion.sum() + of_sizes.sum() + of_intensity + of_sources) + likelihood.log_prior(parameters)


def _complete(statistics: _Statistics, seen: FoundShare) -> _Statistics:
    """Add the pairs that the threshold hides, as entities of two records."""
    more = (1 - seen.share) / max(seen.share, _LEAST_FOUND)
    has = seen.both_observed > 0
    pairs = more * (statistics.observed[has] / seen.both_observed[has]).mean() if has.any() else 0.0
    sizes = statistics.sizes.copy()
    sizes[1] += more * statistics.sizes[1]
    sizes[0] -= 2 * more * statistics.sizes[1]
    return statistics._replace(
        agree=statistics.agree + pairs * seen.agree,
        observed=statistics.observed + pairs * seen.observed,
        sizes=np.maximum(sizes, 0),
    )
