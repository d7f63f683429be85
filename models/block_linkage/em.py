"""Block-exact linkage with hyperparameters by EM: candidates, components, EM on a sample, then all components once.

1. Candidates are the pairs with log odds above ``-threshold`` under rough starting values, joined with some slack.
2. The parts that they connect, none too large, are enumerated: all partitions of each, exactly.
3. EM runs on a sample of components; records alone are counted exactly. First as it is; then, if the pairs that were
   found look as the model predicts, with its statistics completed by the pairs that the threshold hides.
4. If some log odds may have risen by more than the slack, the join is repeated.
5. Parts are made anew under the learned values, and all are enumerated.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jax.sharding import Mesh

from consilience.arrays import Array, Bool, Float, Int
from consilience.data.records import Records
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.densities import (
    FREE_SIZES,
    for_candidates,
    log_base,
    log_of_alone,
    log_of_apart,
    log_of_values,
    log_prior,
    shares_of,
    size_shares,
    starting_parameters,
    value_counts_of,
)  # fmt: skip
from consilience.models.block_linkage.enumeration import (
    enumerate_blocks,
    gather_values,
    pairs_within,
    size_terms,
)
from consilience.models.block_linkage.field_weights import dependence_weights, field_powers
from consilience.models.block_linkage.full_pass import enumerate_all, log_odds_at
from consilience.models.block_linkage.hash_ranges import JoinRule
from consilience.models.block_linkage.hidden_links import FoundShare, found_share
from consilience.models.block_linkage.join import (
    CandidatePairs,
    join,
    join_rule,
    pair_log_odds,
    prior_log_odds,
)
from consilience.models.block_linkage.labels import check_labels, pair_terms_of, with_labels
from consilience.models.block_linkage.large_parts import (
    DrawnStatistics,
    LargeParts,
    Rows,
    closure_of,
    collapsed,
    divided,
)
from consilience.models.block_linkage.likelihoods import Likelihood
from consilience.models.block_linkage.linkage import Group, Linkage, flatten
from consilience.models.block_linkage.misfit import (
    LEAST_LINKS,
    MOST_DISAGREEMENT,
    Misfit,
    log_odds_of,
    misfit,
    nearest_values,
)
from consilience.models.block_linkage.parameters import Parameters
from consilience.models.block_linkage.parts import Parts, parts_of
from consilience.models.block_linkage.priors import Hyperprior
from consilience.models.block_linkage.repeats import Alike, alike_apart
from consilience.models.block_linkage.similar import for_data
from consilience.models.block_linkage.workers import Workers
from consilience.models.posterior import Estimate
from consilience.models.sites import Resolved

SLACK = 2.0
"""How much further than the threshold the join looks, so that candidates last while hyperparameters change."""

_TOLERANCE = 5e-4  # of the distortion of each field and the share of each size
_TOLERANCE_OF_DRAWS = 1e-2  # the same, where statistics are those of draws
_MOST_PASSES = 50  # of each phase
_MOST_ROUNDS = 3  # joins
_LEAST_FOUND = 0.5  # at most as much is completed as was found
_MANY_BEYOND = 0.05  # of the records in parts too large to enumerate: then a closure, where the model does not hold
_MOST_PARTED = 0.1  # of pairs that are links for themselves, in large parts: beyond it the model does not hold


def estimate(resolved: Resolved, *, mesh: Mesh | None = None, processes: int = 1) -> Estimate:
    """Link records, with hyperparameters by EM; see `fit_em`."""
    return fit_em(resolved, mesh=mesh, processes=processes).estimate()


def fit_em(
    resolved: Resolved, *, num_sampled: int = 20_000, mesh: Mesh | None = None, processes: int = 1
) -> Linkage:
    """Link records.

    Parameters
    ----------
    resolved : records, settings and conjugate priors. Components of more than ``largest`` records are cut; above 7
        enumeration is slow. Candidates are those of the data, where these have some, in the place of the join.
    num_sampled : components that EM looks at.
    mesh : devices that enumerate, as `enumerate_blocks` takes them; NumPy where it is left out.
    processes : that search for pairs and enumerate all components in the end; every bit of the answer is the same for
        any number of them.

    Raises
    ------
    UnsupportedRequest : for less than one process, and for several ones besides devices.
    NotConjugate : for other priors than Beta, Dirichlet and Gamma distributions.
    InputError : labels put records together that the restriction keeps apart.
    """
    if processes != 1 and mesh is not None:
        raise UnsupportedRequest("components are enumerated on devices or by processes; leave out one of the two")
    with Workers(processes) as workers:
        return _fit(resolved, num_sampled=num_sampled, mesh=mesh, workers=workers)


def _fit(resolved: Resolved, *, num_sampled: int, mesh: Mesh | None, workers: Workers) -> Linkage:
    """Link records; see `fit_em`."""
    records, settings = resolved.data, resolved.settings
    check_labels(records, settings.restriction, settings.largest)
    parameters = starting_parameters(records, max(settings.largest, settings.size_limit))
    chosen = for_data(settings.likelihood, records, parameters.value_share)
    parameters = chosen.started(parameters)
    prior = Hyperprior.of(resolved.replace(given=chosen.priors(resolved.given)))
    size_limit = settings.largest
    if chosen.urn(parameters) is not None and records.labelled is None:  # labels hold in enumeration alone
        size_limit = max(settings.size_limit, settings.largest)
    least = settings.largest if size_limit > settings.largest else records.num_records
    wide = for_candidates(parameters)
    rows = collapsed(records, wide, chosen, least=least, restriction=settings.restriction)
    workers.share(value=np.asarray(rows.records.value), source=np.asarray(rows.records.source))
    powers = field_powers(settings.weights, records, chosen)
    if powers is not None:
        chosen = chosen.weighted(powers)
    given = _Given(resolved, rows, value_counts_of(records), prior, chosen, num_sampled, mesh, workers)
    learned = given.learn(parameters, settings.largest)
    if settings.weights == "auto":
        powers = dependence_weights(learned.found, records.num_fields)
        given = given._replace(likelihood=chosen.weighted(powers))
        learned = given.learn(learned.parameters, settings.largest)
    beyond = learned.beyond(rows, settings.threshold, settings.largest, size_limit)
    closed, parted = settings.decision == "closure", np.nan
    if beyond and not closed:
        drawn_from = given.learn(learned.parameters, size_limit)
        parted = drawn_from.large.parted(drawn_from.found, settings.at)
        closed = settings.decision == "auto" and parted > _MOST_PARTED
        closed = closed and beyond > _MANY_BEYOND * records.num_records
        # A closure goes by what was learned of small parts, not by a posterior that does not hold.
        learned = learned if closed else drawn_from
    found = given.linkage(learned, size_limit if beyond else settings.largest, closed=closed)
    powers = np.zeros(0) if powers is None else powers
    return found._replace(beyond=np.array(beyond), parted=np.array(parted), powers=powers)


class _Learned(NamedTuple):
    """What EM ends with: the hyperparameters, whether they hold, and the candidates with their log odds."""

    parameters: Parameters
    check: Misfit
    trace: _Trace
    rule: _Rule
    found: CandidatePairs
    large: LargeParts

    def beyond(self, rows: Rows, threshold: float, largest: int, size_limit: int) -> int:
        """Return how many records are in parts too large to enumerate, or in rows of several records."""
        above = self.found.where(self.found.log_odds > -threshold)
        parts = parts_of(above, rows.records.num_records, largest=largest, size_limit=size_limit)
        large = rows.weight > 1
        large[np.concatenate([np.zeros(0, int), *parts.large])] = True
        return int(rows.weight[large].sum())


class _Given(NamedTuple):
    """What all rounds of EM share."""

    resolved: Resolved
    rows: Rows
    counts: Int[np.ndarray, " value"]
    prior: Hyperprior
    likelihood: Likelihood
    num_sampled: int
    mesh: Mesh | None
    workers: Workers

    def learn(self, parameters: Parameters, size_limit: int) -> _Learned:
        """Find candidates and learn from their parts of at most so many rows; repeat while log odds rise."""
        settings, records, chosen = self.resolved.settings, self.rows.records, self.likelihood
        threshold, restriction, largest = settings.threshold, settings.restriction, settings.largest
        generator = np.random.default_rng(0)
        for _ in range(_MOST_ROUNDS):
            wide = for_candidates(parameters)
            rule = _Rule.of(records, wide, threshold, chosen, joined=records.candidate is None)
            found = candidates(records, wide, chosen, threshold + SLACK, restriction, self.workers)
            parts, large = divided(found, self.rows, wide, threshold, largest, size_limit, chosen, restriction)
            sample = _sample(records, parts, restriction, chosen, self.num_sampled, generator)
            sample = sample._replace(num_alone=sample.num_alone - len(large.drawn_rows))
            em = _Em(records, self.counts, sample, self.prior, chosen, rule, self.mesh, large, largest)
            parameters, check, trace = em.run(parameters)
            wide = for_candidates(parameters)
            if largest_rise(records, rule.parameters, wide, chosen) <= SLACK:
                break
        found = log_odds_at(found, records, wide, chosen, self.workers)
        return _Learned(parameters, check, trace, rule, found, large)

    def linkage(self, learned: _Learned, size_limit: int, *, closed: bool) -> Linkage:
        """Go through all parts once, or close the strong pairs."""
        settings, records, original = self.resolved.settings, self.rows.records, self.resolved.data
        threshold, restriction, chosen = settings.threshold, settings.restriction, self.likelihood
        parameters, check, trace, rule, found, _ = learned
        wide, joined = for_candidates(parameters), records.candidate is None
        above = found.where(found.log_odds > np.inf) if closed else found
        parts, large = divided(above, self.rows, wide, threshold, settings.largest, size_limit, chosen, restriction)
        groups, evidence = enumerate_all(
            records, parts, parameters, chosen.at(parameters), restriction, self.mesh, self.workers
        )
        first = np.unique(self.rows.row, return_index=True)[1].astype(np.int32)  # records are in their order
        groups = [Group(first[group.members], group.partition) for group in groups]
        drawn, of_drawn = (closure_of(found, self.rows, settings.at), 0.0) if closed else large.settle(parameters)
        evidence += of_drawn + log_base(original, parameters, chosen) + log_prior(self.prior, parameters, chosen)
        seen = rule._replace(parameters=wide).found(records, parameters, chosen)
        share = np.nan if seen is None else seen.share
        if seen is None and joined:
            share = chosen.found_share(records, wide, found, threshold)
        alike = Alike(0, 0, 0.0)
        if joined:
            alike = alike_apart(records, wide, chosen, prior_log_odds(wide), threshold, restriction)
        return Linkage(
            num_records=np.array(original.num_records),
            **flatten(groups),
            value_share=parameters.value_share,
            distortion=parameters.distortion,
            intensity=np.array(parameters.intensity),
            size_share=parameters.size_share[: settings.largest],
            evidence=np.array([*trace.evidence, evidence]),
            first_phase=np.array(trace.first_phase),
            threshold=np.array(threshold),
            found_share=np.array(share),
            disagreement=np.array(check.disagreement),
            differing=np.stack(check),
            completed=np.array(len(trace.evidence) > trace.first_phase),
            cut=np.array(parts.cut, float),
            alike=np.array(alike, float),
            class_share=parameters.class_share,
            large=drawn.record,
            large_part=drawn.part,
            drawn=drawn.cluster,
            unsettled=np.array(drawn.unsettled),
            closure=np.array(settings.at if closed else np.nan),
        )


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
    workers: Workers | None = None,
) -> CandidatePairs:  # fmt: skip
    """Join, or take the pairs that were given; leave out what is below the threshold and what may not be together."""
    if records.candidate is None:
        found = join(records, parameters, likelihood, threshold=threshold, workers=workers)
    else:
        first, second = records.candidate.T
        found = pair_log_odds(records.value, first, second, parameters, likelihood, records.first_value)
        found = found.where(found.log_odds > -threshold)
    return with_labels(found.allowed(records.source, restriction), records, parameters, likelihood)


class _Rule(NamedTuple):
    """By what rule candidates were found: log odds above ``-threshold`` under these parameters.

    ``join`` is what the join itself finds of these; None where the candidates were given.
    """

    parameters: Parameters
    threshold: float
    likelihood: Likelihood
    join: JoinRule | None

    @classmethod
    def of(
        cls, records: Records, parameters: Parameters, threshold: float, likelihood: Likelihood, *, joined: bool
    ) -> _Rule:
        """Return the rule of a join with slack, or of pairs that were given."""
        rule = join_rule(records, parameters, likelihood, threshold=threshold + SLACK) if joined else None
        return cls(parameters, threshold, likelihood, rule)

    def found(self, records: Records, parameters: Parameters, likelihood: Likelihood) -> FoundShare | None:
        """Predict what it finds and what it hides; None where the candidates were given, and where nobody knows."""
        if self.join is None or not likelihood.additive:
            return None
        return found_share(
            parameters,
            records.first_value,
            records.value,
            likelihood,
            self.threshold,
            in_force=self.parameters,
            rule=self.join,
        )

    def passes(
        self, pairs: Int[np.ndarray, "two field pair"], first_value: Int[np.ndarray, " fields_and_one"]
    ) -> Bool[np.ndarray, " pair"]:
        """Return whether it finds pairs that are given by codes into the values of all fields."""
        log_odds = log_odds_of(pairs, self.parameters, self.likelihood, first_value).log_odds
        passes = log_odds > -self.threshold
        # What is compared by similarity has a search of its own.
        if self.join is not None and type(self.likelihood).find_pairs is Likelihood.find_pairs:
            observed: Any = (pairs >= 0).all(axis=0)
            agree = observed & (pairs[0] == pairs[1])
            start = self.join.start - self.join.differ[self.join.fields] @ ~observed[self.join.fields]
            passes &= start + sum(agree[field] * self.join.gain[pairs[0, field]] for field in self.join.fields) > 0
        return passes


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


class _Sample(NamedTuple):
    """Some components. ``scale`` is how many each stands for, ``num_alone`` the number of records in none at all."""

    blocks: list[_Block]
    scale: float
    num_alone: int


def _sample(
    records: Records, parts: Parts, restriction: str, likelihood: Likelihood, number: int,
    generator: np.random.Generator,
) -> _Sample:  # fmt: skip
    """Take some of the components at random, or all where they are few."""
    counts = np.array([len(members) for members in parts.members], int)
    total = int(counts.sum())
    chosen = np.sort(generator.choice(total, number, replace=False)) if total > number else np.arange(total)
    first = np.cumsum(counts) - counts
    blocks = []
    for members, start in zip(parts.members, first, strict=True):
        own = members[chosen[(chosen >= start) & (chosen < start + len(members))] - start]
        if len(own):
            blocks.append(_block(records, own, restriction, likelihood))
    in_components = sum(members.size for members in parts.members)
    return _Sample(blocks, total / max(len(chosen), 1), records.num_records - in_components)


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


class _Trace(NamedTuple):
    """Evidence of each pass, and how many of them were in the first phase."""

    evidence: list[float]
    first_phase: int


class _Em(NamedTuple):
    """EM on a sample of components; ``value_counts`` says how many records have each value."""

    records: Records
    value_counts: Int[np.ndarray, " value"]
    sample: _Sample
    prior: Hyperprior
    likelihood: Likelihood
    rule: _Rule
    mesh: Mesh | None
    large: LargeParts
    largest: int

    def run(self, parameters: Parameters) -> tuple[Parameters, Misfit, _Trace]:
        """Maximise; complete the statistics in a second phase if the pairs found differ as the model predicts."""
        parameters, evidence = self.phase(parameters, complete=False)
        check = self.check(parameters)
        known = self.rule.join is not None and self.likelihood.additive
        if not (known and check.seen.sum() >= LEAST_LINKS and check.disagreement <= MOST_DISAGREEMENT):
            return parameters, check, _Trace(evidence, len(evidence))
        parameters, more = self.phase(parameters, complete=True)
        return parameters, check, _Trace(evidence + more, len(evidence))

    def phase(self, parameters: Parameters, *, complete: bool) -> tuple[Parameters, list[float]]:
        """Repeat until no distortion and no share of a size moves.

        The new intensity and shares raise the evidence with the prior, as EM does. The new distortion matches moments,
        and need not: without completion, a step that lowers it is taken again with the old distortion.
        """
        evidence: list[float] = []
        before, fixed = parameters, False
        for _ in range(_MOST_PASSES):
            statistics = self.statistics(parameters)
            now = log_of_values(self.value_counts, parameters) + log_of_apart(self.records, parameters)
            now += statistics.evidence + log_of_alone(self.value_counts, parameters, self.likelihood)
            now += log_prior(self.prior, parameters, self.likelihood)
            # Of draws the evidence is noise, too.
            if not complete and evidence and now < evidence[-1] and not fixed and not self.large:
                parameters, fixed = parameters._replace(distortion=before.distortion), True
                continue
            evidence.append(now)
            seen = self.rule.found(self.records, parameters, self.likelihood) if complete else None
            if seen is not None:
                statistics = _complete(statistics, seen)
            before, parameters = parameters, self.maximise(statistics, parameters)
            if fixed:
                parameters = parameters._replace(distortion=before.distortion)
            moved = np.abs(_watched(parameters) - _watched(before)).max()
            if moved < (_TOLERANCE_OF_DRAWS if self.large else _TOLERANCE):
                break
        return parameters, evidence

    def statistics(self, parameters: Parameters) -> _Statistics:
        """Enumerate the sample; what it says stands for all components."""
        largest, num_fields = self.largest, self.records.num_fields
        terms = size_terms(parameters.intensity, parameters.size_share, largest, np)
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
        if self.large:
            found = found._replace(value_share=self.entity_shares(statistics.large))
        return self.likelihood.learned(found, statistics.errors, self.prior.distortion)

    def entity_shares(self, large: DrawnStatistics) -> Float[np.ndarray, " value"]:
        """Return how common values are where those of large parts count for entities and errors, not for records."""
        codes = self.large.codes[:, self.large.drawn_rows]
        weight = np.broadcast_to(self.large.rows.weight[self.large.drawn_rows], codes.shape)
        inside = np.bincount(codes[codes >= 0], weight[codes >= 0], len(self.value_counts))
        return shares_of(self.records, self.value_counts - inside + large.values)

    def check(self, parameters: Parameters) -> Misfit:
        """Compare the pairs that were found with those that are predicted."""
        pairs, linked = [np.zeros((2, self.records.num_fields, 0), int)], [np.zeros(0)]
        for block, probability in zip(self.sample.blocks, self.statistics(parameters).linked, strict=True):
            ends = block.values[np.array(pairs_within(len(block.values)))].transpose(0, 2, 1, 3)
            pairs.append(ends.reshape(*ends.shape[:2], -1))
            linked.append(probability.ravel())
        drawn, weight = self.large.linked_pairs()
        pairs.append(drawn)
        linked.append(weight / (self.sample.scale or 1))  # of the sample, as those of small parts
        first_value = self.records.first_value
        return misfit(
            np.concatenate(pairs, axis=2), np.concatenate(linked), parameters, self.likelihood, first_value,
            lambda drawn: self.rule.passes(drawn, first_value), nearest_values(self.records),
        )  # fmt: skip


def _watched(parameters: Parameters) -> Float[np.ndarray, " number"]:
    """Return the hyperparameters that no longer move when EM ends."""
    return np.concatenate([parameters.distortion, parameters.size_share[:FREE_SIZES], parameters.class_share])


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
