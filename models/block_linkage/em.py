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
from scipy.special import expit, gammaln

from consilience.arrays import Array, Bool, Float, Int
from consilience.data.records import Records
from consilience.errors import InputError, InputProblem, UnsupportedRequest
from consilience.models.block_linkage.choice import better_of
from consilience.models.block_linkage.engines import Engine, engine_of
from consilience.models.block_linkage.enumeration import (
    enumerate_blocks,
    gather_values,
    pairs_within,
    size_terms,
)
from consilience.models.block_linkage.hidden_links import CandidateRule, FoundShare, drawn_share
from consilience.models.block_linkage.join import (
    CandidatePairs,
    join,
    pair_log_odds,
    prior_log_odds,
)
from consilience.models.block_linkage.labels import check_labels, label_log_odds, pair_terms_of, with_labels
from consilience.models.block_linkage.laplace import hyperparameter_variance
from consilience.models.block_linkage.large_parts import Drawn, DrawnStatistics, LargeParts, Rows, collapsed
from consilience.models.block_linkage.likelihoods import AUTO, LIKELIHOODS, HitMiss, Likelihood
from consilience.models.block_linkage.linkage import Group, Linkage, flatten
from consilience.models.block_linkage.misfit import Misfit, misfit, nearest_values
from consilience.models.block_linkage.parameters import Parameters
from consilience.models.block_linkage.parts import Parts, merged, parts_of
from consilience.models.block_linkage.priors import Hyperprior
from consilience.models.block_linkage.repeats import Alike, alike_apart, repeats_by_chance
from consilience.models.block_linkage.similar import TEXT, SimilarHitMiss, for_data
from consilience.models.posterior import Estimate, Posterior
from consilience.models.rows import row_blocks
from consilience.models.sites import Resolved
from consilience.notes import Remedy

SLACK = 2.0
"""How much further than the threshold the join looks, so that candidates last while hyperparameters change."""

_TOLERANCE = 5e-4  # of the distortion of each field and the share of each size
_TOLERANCE_OF_DRAWS = 1e-2  # the same, where statistics are those of draws
_LEAST_RISE = 0.01  # of the log evidence in a pass
_MOST_PASSES = 50  # of each phase
_MOST_ROUNDS = 3  # joins
_LEAST_ALONE = 0.25  # of the entities have one record, as far as candidates go
_LEAST_FOUND = 0.5  # at most as much is completed as was found
_MANY_BEYOND = 0.05  # of the records in parts too large to enumerate: then a closure, where the model does not hold
_FEW_BEYOND = 0.01  # of the records: what so few are in changes neither hyperparameters nor their variance
_MOST_PARTED = 0.1  # of pairs that are links for themselves, in large parts: beyond it the model does not hold
_FREE_SIZES = 4
_LEAST_REST = 0.1  # what the prior gives to a size without a count of its own, and to all above 4
_EXPONENTS = np.linspace(1.05, 6, 100)
_PIECE = 65_536  # components or pairs that a process goes through at a time, a multiple of what fits the cache


def estimate(resolved: Resolved, *, mesh: Mesh | None = None, engine: Any = None) -> Estimate:
    """Link records, with hyperparameters by EM; see `fit_em`."""
    return fit_em(resolved, mesh=mesh, engine=engine).estimate()


def fit_em(
    resolved: Resolved, *, num_sampled: int = 20_000, mesh: Mesh | None = None, engine: Any = None
) -> Linkage:
    """Link records.

    Parameters
    ----------
    resolved : records, settings and conjugate priors. Components of more than ``largest`` records are cut; above 7
        enumeration is slow. Candidates are those of the data, where these have some, in the place of the join.
    num_sampled : components that EM looks at.
    mesh : devices that enumerate, as `enumerate_blocks` takes them; NumPy where it is left out.
    engine : that searches for pairs and enumerates all components in the end, as `engine_of` takes it; the answer is
        the same, up to rounding.

    Raises
    ------
    UnsupportedRequest : there is no such engine, or one besides devices.
    NotConjugate : for other priors than Beta, Dirichlet and Gamma distributions.
    InputError : labels put records together that the restriction keeps apart.
    """
    tables = engine_of(engine, resolved.data.value.size)
    if tables is not None and mesh is not None:
        raise UnsupportedRequest("components are enumerated on devices or by an engine; leave out one of the two")
    return _fit(resolved, num_sampled=num_sampled, mesh=mesh, engine=tables)


def _fit(resolved: Resolved, *, num_sampled: int, mesh: Mesh | None, engine: Engine | None) -> Linkage:
    """Link records; see `fit_em`."""
    records, settings, joined = resolved.data, resolved.settings, resolved.data.candidate is None
    threshold, restriction = settings.threshold, settings.restriction
    parameters = starting_parameters(records, max(settings.largest, settings.size_limit))
    chosen = for_data(settings.likelihood, records, parameters.value_share)
    parameters = chosen.started(parameters)
    prior = Hyperprior.of(resolved.replace(given=chosen.priors(resolved.given)))
    original, counts = records, _value_counts(records)
    rows, size_limit = _rows(records, parameters, chosen, settings)
    records = rows.records
    given = _Given(rows, counts, prior, chosen, num_sampled, mesh, engine)
    powers = _powers(settings.weights, original, chosen)
    if powers is not None:
        chosen = chosen.weighted(powers)
        given = given._replace(likelihood=chosen)
    learned = given.learn(parameters, resolved, settings.largest)
    if settings.weights == "auto":
        powers = dependence_weights(learned.found, records.num_fields)
        chosen = chosen.weighted(powers)
        given = given._replace(likelihood=chosen)
        learned = given.learn(learned.parameters, resolved, settings.largest)
    tried = np.zeros((0, 3))
    if settings.likelihood == AUTO and powers is None and (rows.weight == 1).all():
        learned, tried = learned.or_error_classes(resolved)
        if learned.em.likelihood is not chosen:  # error classes are enumerated, and know no large parts
            chosen, prior, size_limit = learned.em.likelihood, learned.em.prior, settings.largest
    beyond = learned.beyond(rows, threshold, settings.largest, size_limit)
    closed, parted = settings.decision == "closure", np.nan
    if beyond > _FEW_BEYOND * original.num_records and not closed:
        drawn_from = given.learn(learned.parameters, resolved, size_limit)
        parted = drawn_from.em.large.parted(drawn_from.found, settings.at)
        closed = settings.decision == "auto" and parted > _MOST_PARTED and original.labelled is None
        closed = closed and beyond > _MANY_BEYOND * original.num_records
        # A closure goes by what was learned of small parts, not by a posterior that does not hold.
        learned = learned if closed else drawn_from
    parameters, check, trace, found, em = learned
    rule, wide = em.rule, for_candidates(parameters)
    if closed:
        parts, large = _nothing(found, rows, settings.largest), None
    else:
        limit = size_limit if beyond else settings.largest
        parts, large = _parts(found, rows, wide, threshold, settings.largest, limit, chosen, restriction)
    groups, evidence = _enumerate_all(records, parts, parameters, chosen.at(parameters), restriction, mesh, engine)
    groups = _of_records(groups, rows)
    drawn, of_drawn = (_closure(found, rows, settings.at), 0.0) if large is None else large.settle(parameters)
    seen = rule._replace(parameters=wide).found(records, parameters, chosen)
    share = np.nan if seen is None else seen.share
    if seen is None and joined:
        share = chosen.found_share(records, wide, found, threshold)
        if np.isnan(share):
            share = drawn_share(records, parameters, chosen, rule, CandidateRule(wide, threshold, chosen, None))
    alike = Alike(0, 0, 0.0)
    if joined:
        alike = alike_apart(records, wide, chosen, prior_log_odds(wide), threshold, restriction)
    completed, of_classes = len(trace.evidence) > trace.first_phase, len(parameters.class_share)
    variance = np.nan
    # Of weighted fields, of a closure and of many records in large parts nobody knows it.
    knows = not closed and powers is None and beyond <= _FEW_BEYOND * original.num_records
    if joined and knows and (completed or (of_classes and check.holds)):
        variance = hyperparameter_variance(em, parameters)
    return Linkage(
        num_records=np.array(original.num_records),
        **flatten(groups),
        value_share=parameters.value_share,
        distortion=parameters.distortion,
        intensity=np.array(parameters.intensity),
        size_share=parameters.size_share[: settings.largest],
        evidence=np.array([*trace.evidence, log_base(original, parameters, chosen) + evidence + of_drawn
                           + log_prior(prior, parameters, chosen)]),
        first_phase=np.array(trace.first_phase),
        threshold=np.array(threshold),
        found_share=np.array(share),
        disagreement=np.array(check.disagreement),
        differing=np.stack(check),
        completed=np.array(completed),
        cut=np.array(parts.cut, float),
        alike=np.array(alike, float),
        class_share=parameters.class_share,
        large=drawn.record,
        large_part=drawn.part,
        drawn=drawn.cluster,
        unsettled=np.array(drawn.unsettled),
        unseen=np.array(found.unseen),
        tried=tried,
        larger_sizes=parameters.size_share[settings.largest :],
        pair_odds=np.array(parameters.pair_odds),
        closure=np.array(settings.at if closed else np.nan),
        beyond=np.array(beyond),
        parted=np.array(parted),
        powers=np.zeros(0) if powers is None else powers,
        variance=np.array(variance),
    )


def _powers(
    weights: str | Mapping[str, float], records: Records, likelihood: Likelihood
) -> Float[np.ndarray, " field"] | None:
    """Return the power of each field that was asked for; None where none was.

    Raises
    ------
    UnsupportedRequest : the likelihood takes no weights.
    InputError : there is no such field, or a weight is not positive.
    """
    if weights == "equal":
        return None
    if not isinstance(likelihood, HitMiss) or isinstance(likelihood, SimilarHitMiss):
        text = "{weights} are of hit-miss and copies, of fields compared for equality or as texts"
        raise UnsupportedRequest(text, Remedy("weights"), Remedy("likelihood", "hit-miss"))
    if weights == "auto":
        return None
    names = [str(name) for name in (range(records.num_fields) if records.fields is None else records.fields)]
    wrong = [name for name in weights if name not in names]
    if isinstance(weights, str) or wrong or not all(0 < weight < np.inf for weight in weights.values()):
        problem = f"{{weights}} is {weights!r}; the fields that are compared are {', '.join(names)}"
        raise InputError(InputProblem(problem, 'give {weights}, or a positive number for some of them',
                                      remedies=(Remedy("weights", "auto"),)))  # fmt: skip
    return np.array([float(weights.get(name, 1.0)) for name in names])


def dependence_weights(pairs: CandidatePairs, num_fields: int) -> Float[np.ndarray, " field"]:
    """Return weights of fields that err together: 1 / (1 + the sum of the absolute correlations with the others).

    The correlations are those of disagreement among candidates, each as much of a link as it is probable for itself.

    Parameters
    ----------
    pairs : candidates.
    """
    weight = expit(pairs.log_odds)
    bits = np.arange(num_fields, dtype=np.uint64)[:, None]
    observed = (pairs.observed >> bits & 1).astype(float)
    differs = observed - (pairs.agree >> bits & 1)
    total = np.zeros(num_fields)
    for one in range(num_fields):
        for other in range(one):
            own = weight * observed[one] * observed[other]
            number = max(own.sum(), np.finfo(float).tiny)
            first, second = differs[one] - own @ differs[one] / number, differs[other] - own @ differs[other] / number
            variance = (own @ first**2) * (own @ second**2)
            correlation = abs(own @ (first * second)) / np.sqrt(variance) if variance > 0 else 0.0
            total[[one, other]] += correlation
    return 1 / (1 + total)


class _Learned(NamedTuple):
    """What EM ends with: the hyperparameters, whether they hold, the candidates with their log odds, and how."""

    parameters: Parameters
    check: Misfit
    trace: _Trace
    found: CandidatePairs
    em: _Em

    def beyond(self, rows: Rows, threshold: float, largest: int, size_limit: int) -> int:
        """Return how many records are in parts too large to enumerate, or in rows of several records."""
        above = self.found.where(self.found.log_odds > -threshold)
        parts = parts_of(above, rows.records.num_records, largest=largest, size_limit=size_limit)
        large = rows.weight > 1
        large[np.concatenate([np.zeros(0, int), *parts.large])] = True
        return int(rows.weight[large].sum())

    def or_error_classes(self, resolved: Resolved) -> tuple[_Learned, Float[np.ndarray, "tried 3"]]:
        """Return it, or what is learned under error classes where these fit better; see `better_of`."""
        em, (parameters, check, trace), tried = better_of(self.em, self[:3], resolved)
        if em is self.em:
            return self, tried
        found = _at(self.found, em.records, for_candidates(parameters), em.likelihood)
        return _Learned(parameters, check, trace, found, em), tried


class _Given(NamedTuple):
    """What all rounds of EM share."""

    rows: Rows
    counts: Int[np.ndarray, " value"]
    prior: Hyperprior
    likelihood: Likelihood
    num_sampled: int
    mesh: Mesh | None
    engine: Engine | None

    def learn(self, parameters: Parameters, resolved: Resolved, size_limit: int) -> _Learned:
        """Find candidates and learn from their parts of at most so many rows; repeat while log odds rise."""
        settings, records, chosen = resolved.settings, self.rows.records, self.likelihood
        threshold, restriction, largest = settings.threshold, settings.restriction, settings.largest
        for _ in range(_MOST_ROUNDS):
            wide = for_candidates(parameters)
            rule = CandidateRule.of(records, wide, threshold, chosen, slack=SLACK)
            found = candidates(records, wide, chosen, threshold + SLACK, restriction, self.engine)
            parts, large = _parts(found, self.rows, wide, threshold, largest, size_limit, chosen, restriction)
            sample = _sample(records, parts, restriction, chosen, self.num_sampled)
            sample = sample._replace(num_alone=sample.num_alone - len(large.drawn_rows))
            em = _Em(records, self.counts, sample, self.prior, chosen, rule, self.mesh, large, largest)
            parameters, check, trace = em.run(parameters)
            wide = for_candidates(parameters)
            if largest_rise(records, rule.parameters, wide, chosen) <= SLACK:
                break
        return _Learned(parameters, check, trace, _at(found, records, wide, chosen), em)


def _nothing(found: CandidatePairs, rows: Rows, largest: int) -> Parts:
    """Return no parts."""
    return parts_of(found.where(np.zeros(len(found.first), bool)), rows.records.num_records, largest=largest,
                    size_limit=largest)  # fmt: skip


def _closed(found: CandidatePairs, rows: Rows, at: float) -> Int[np.ndarray, " record"]:
    """Return the set of each record in the transitive closure of the pairs with log odds above ``at``."""
    strong = found.where(found.log_odds > at)
    number = rows.records.num_records
    part = merged(strong.first, strong.second, np.arange(len(strong.first)), np.full(len(strong.first), number), number)
    return part[rows.row]


def _closure(found: CandidatePairs, rows: Rows, at: float) -> Drawn:
    """Return this closure as one draw."""
    part = _closed(found, rows, at)
    record = np.flatnonzero(np.bincount(part)[part] > 1)
    return Drawn(record, part[record], part[record][None].astype(int), 0)


def _parts(
    found: CandidatePairs, rows: Rows, parameters: Parameters, threshold: float, largest: int, size_limit: int,
    likelihood: Likelihood, restriction: str,
) -> tuple[Parts, LargeParts]:  # fmt: skip
    """Return the parts of the pairs above the threshold: those to enumerate, and those to draw from."""
    # A row of n records enters as n members: its prior odds are those of joining an entity of n.
    heavy = np.flatnonzero((rows.weight[found.first] > 1) | (rows.weight[found.second] > 1))
    term = size_terms(parameters.intensity, parameters.size_share, len(parameters.size_share), np)
    most = len(parameters.size_share) // 2
    one, other = (np.minimum(rows.weight[rank[heavy]], most) for rank in (found.first, found.second))
    log_odds = found.log_odds.copy()
    log_odds[heavy] += term[one + other] - term[one] - term[other] - term[2]
    found = found._replace(log_odds=log_odds)
    above = found.where(found.log_odds > -threshold)
    parts = parts_of(above, rows.records.num_records, largest=largest, size_limit=size_limit)
    large = LargeParts(rows, parts, above, likelihood, restriction, size_limit)
    return parts._replace(members=large.members), large


def for_candidates(parameters: Parameters) -> Parameters:
    """Return hyperparameters to find candidates with: as if some entities had a single record.

    Where none has, as in two lists of the same people, two records alone are next to impossible, the log odds of every
    pair are beyond all thresholds, and everything would be a candidate. And where entities are large, next to none has
    two records; the prior odds of a pair are then those of any two records of one entity.
    """
    share = parameters.size_share.copy()
    share[0] = max(share[0], _LEAST_ALONE)
    share[1] = max(share[1], parameters.pair_odds * parameters.intensity * share[0] ** 2 / 2)
    return parameters._replace(size_share=share / share.sum())


def starting_parameters(records: Records, largest: int) -> Parameters:
    """Return values to start from: b = .05, nine in ten entities with one record, nine entities to ten records.

    Fields that are nearly unique and repeat by chance start at b = .5: with .05 each would part the records of nearly
    every entity, and what parts records before anything is learned is never learned.
    """
    share = record_shares(records)
    if records.similar is not None and (np.asarray(records.similar) == TEXT).any():
        # Records of an entity repeat its texts, so that their number says how large it is, not how common they are.
        share = _shares(records, np.ones(records.num_values))
    size_share = 0.9 * 0.1 ** np.arange(largest)
    if largest > _FREE_SIZES:
        tail = np.arange(_FREE_SIZES + 1, largest + 1) ** -2.0
        size_share[_FREE_SIZES:] = 0.1**_FREE_SIZES * tail / tail.sum()
    return Parameters(
        share,
        np.where(repeats_by_chance(records), 0.5, 0.05),
        max(0.9 * records.num_records, 1.0),
        size_share / size_share.sum(),
    )


def size_shares(
    counts: Float[np.ndarray, " size"], prior: Float[np.ndarray, " prior_size"]
) -> Float[np.ndarray, " size"]:
    """Return the shares of sizes: of 1 to 4 records each its own, above them t s^-γ with the rest t of the mass.

    A share of its own for every size would be next to nothing for sizes that nobody has seen yet, and an entity of 40
    records could never pass through 39. The exponent γ is the most probable one under Gamma(2, 1), from 1.05 to 6.

    Parameters
    ----------
    counts : expected numbers of entities.
    prior : Dirichlet counts; those above 4 are of the rest.
    """
    free = min(_FREE_SIZES, len(counts))
    own = counts[:free] + np.append(prior, np.full(free, _LEAST_REST))[:free]
    if len(counts) == free:
        return own / own.sum()
    rest = counts[free:].sum() + max(prior[free:].sum(), _LEAST_REST)
    size, exponent = np.arange(free + 1, len(counts) + 1), _EXPONENTS[:, None]
    total = np.power(size, -exponent).sum(axis=1)
    log_posterior = -_EXPONENTS * (counts[free:] @ np.log(size)) - counts[free:].sum() * np.log(total)
    best = int(np.argmax(log_posterior + np.log(_EXPONENTS) - _EXPONENTS))
    tail = rest * size ** -_EXPONENTS[best] / total[best]
    return np.concatenate([own, tail]) / (own.sum() + rest)


def record_shares(records: Records) -> Float[np.ndarray, " value"]:
    """Return how common each value is among the records that have the field; a value of none counts half."""
    return _shares(records, _value_counts(records))


def _shares(records: Records, counts: Any) -> Float[np.ndarray, " value"]:
    number = np.maximum(counts, 0.5)
    lengths = np.diff(records.first_value)
    field = np.repeat(np.arange(records.num_fields), lengths)
    return number / np.bincount(field, number, records.num_fields)[field]


def hyperparameters(
    posterior: Posterior, data: Records
) -> tuple[Float[np.ndarray, " value"], Float[np.ndarray, " field"]]:
    """Return θ and b: the estimates, or means of draws."""
    draws = posterior.draws()
    share = posterior.hidden.get("value_share", draws.get("value_share"))
    if share is None:
        share = record_shares(data)
    elif "value_share" in draws:
        share = share.mean(axis=0)
    return np.asarray(share, float), np.asarray(draws["distortion"], float).mean(axis=0)


def log_base(records: Records, parameters: Parameters, likelihood: Likelihood = LIKELIHOODS["hit-miss"]) -> float:
    """Return the log probability of the records, their number, and all of them apart."""
    counts = _value_counts(records)
    alone = _log_values(counts, parameters) + _log_alone(counts, parameters, likelihood)
    return alone + _log_apart(records, parameters)


def _value_counts(records: Records) -> Int[np.ndarray, " value"]:
    """Return how many records have each value."""
    counts = [
        np.bincount(column + 1, minlength=length + 1)[1:]
        for column, length in zip(records.value, np.diff(records.first_value), strict=True)
    ]
    return np.concatenate([np.zeros(0, int), *counts])


def _log_values(counts: Int[np.ndarray, " value"], parameters: Parameters) -> float:
    return float(counts @ np.log(parameters.value_share))


def _log_alone(counts: Int[np.ndarray, " value"], parameters: Parameters, likelihood: Likelihood) -> float:
    return float(np.sum(counts * likelihood.log_alone(parameters.distortion, np)))


def _log_apart(records: Records, parameters: Parameters) -> float:
    number = records.num_records
    alone = np.log(parameters.intensity * parameters.size_share[0])
    return float(number * alone - parameters.intensity - gammaln(number + 1))


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
        found = join(records, parameters, likelihood, threshold=threshold, engine=engine)
    else:
        first, second = records.candidate.T
        found = pair_log_odds(records.value, first, second, parameters, likelihood, records.first_value)
        found = found.where(found.log_odds > -threshold)
    return with_labels(found.allowed(records.source, restriction), records, parameters, likelihood)


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
    records: Records, parts: Parts, restriction: str, likelihood: Likelihood, number: int
) -> _Sample:
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
    return _Sample(blocks, total / max(len(chosen), 1), records.num_records - in_components)


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
    rule: CandidateRule
    mesh: Mesh | None
    large: LargeParts
    largest: int

    def run(self, parameters: Parameters) -> tuple[Parameters, Misfit, _Trace]:
        """Maximise; complete the statistics in a second phase if the pairs found differ as the model predicts."""
        parameters, evidence = self.phase(parameters, complete=False)
        check = self.check(parameters)
        known = self.rule.join is not None and self.likelihood.additive
        if not (known and check.holds):
            return parameters, check, _Trace(evidence, len(evidence))
        parameters, more = self.phase(parameters, complete=True)
        return parameters, check, _Trace(evidence + more, len(evidence))

    def phase(
        self, parameters: Parameters, *, complete: bool, most: int = _MOST_PASSES
    ) -> tuple[Parameters, list[float]]:
        """Repeat until no distortion and no share of a size moves, or so many times at most.

        The new intensity and shares raise the evidence with the prior, as EM does. The new distortion matches moments,
        and need not: without completion, a step that lowers it is taken again with the old distortion.
        """
        evidence: list[float] = []
        before, fixed = parameters, False
        for _ in range(most):
            statistics = self.statistics(parameters)
            now = _log_values(self.value_counts, parameters) + _log_apart(self.records, parameters)
            now += statistics.evidence + _log_alone(self.value_counts, parameters, self.likelihood)
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
            # Those of error classes move on for dozens of passes that gain next to nothing.
            slow = len(parameters.class_share) and len(evidence) > 1 and evidence[-1] - evidence[-2] < _LEAST_RISE
            moved = np.abs(_watched(parameters) - _watched(before)).max()
            if slow or moved < (_TOLERANCE_OF_DRAWS if self.large else _TOLERANCE):
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
        return _shares(self.records, self.value_counts - inside + large.values)

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
        parameters = parameters._replace(size_share=parameters.size_share[: self.largest])  # of what is enumerated
        return misfit(
            np.concatenate(pairs, axis=2), np.concatenate(linked), parameters, self.likelihood, first_value,
            lambda drawn: self.rule.passes(drawn, first_value), nearest_values(self.records),
        )  # fmt: skip


def _watched(parameters: Parameters) -> Float[np.ndarray, " number"]:
    """Return the hyperparameters that no longer move when EM ends."""
    return np.concatenate([parameters.distortion, parameters.size_share[:_FREE_SIZES], parameters.class_share])


def log_prior(
    prior: Hyperprior, parameters: Parameters, likelihood: Likelihood = LIKELIHOODS["hit-miss"]
) -> float:
    """Return the log density of the priors of log m, of the logits of b and of those of μ, up to a constant."""
    b, (shape, rate) = parameters.distortion, prior.intensity
    of_distortion = prior.distortion[:, 0] * np.log(b) + prior.distortion[:, 1] * np.log1p(-b)
    free = min(_FREE_SIZES, len(prior.size_share))
    share = np.append(parameters.size_share[:free], max(parameters.size_share[free:].sum(), np.finfo(float).tiny))
    of_sizes = np.append(prior.size_share[:free], max(prior.size_share[free:].sum(), _LEAST_REST)) * np.log(share)
    of_intensity = shape * np.log(parameters.intensity) - rate * parameters.intensity
    return float(of_distortion.sum() + of_sizes.sum() + of_intensity) + likelihood.log_prior(parameters)


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


def _at(found: CandidatePairs, records: Records, parameters: Parameters, likelihood: Likelihood) -> CandidatePairs:
    """Return candidates with their log odds under other hyperparameters."""
    log_odds = np.zeros(len(found.first))
    for rows in row_blocks(len(log_odds), 1, _PIECE):
        ends = found.first[rows], found.second[rows]
        log_odds[rows] = pair_log_odds(records.value, *ends, parameters, likelihood, records.first_value).log_odds
    return found._replace(log_odds=log_odds + label_log_odds(records, found.first, found.second))


def parts_under(
    records: Records, parameters: Parameters, likelihood: Likelihood, settings: Any
) -> Int[np.ndarray, " record"]:
    """Return the part of each record, named by its lowest one, under hyperparameters that are known."""
    rows, found = _found_under(records, parameters, likelihood, settings)
    part = np.arange(rows.records.num_records)
    if settings.decision == "closure":
        return _closed(found, rows, settings.at)
    parts, large = _parts_under(found, rows, parameters, likelihood, settings)
    for members in (*parts.members, *(one.rows[None] for one in large.parts)):
        part[members] = members[:, :1]
    return np.unique(rows.row, return_index=True)[1][part[rows.row]]


def _found_under(
    records: Records, parameters: Parameters, likelihood: Likelihood, settings: Any
) -> tuple[Rows, CandidatePairs]:
    rows, _ = _rows(records, parameters, likelihood, settings)
    wide, threshold = for_candidates(parameters), settings.threshold + SLACK
    return rows, candidates(rows.records, wide, likelihood, threshold, settings.restriction)


def _parts_under(
    found: CandidatePairs, rows: Rows, parameters: Parameters, likelihood: Likelihood, settings: Any
) -> tuple[Parts, LargeParts]:
    limit = _size_limit(rows.records, parameters, likelihood, settings)
    own = (settings.threshold, settings.largest, limit, likelihood, settings.restriction)
    return _parts(found, rows, for_candidates(parameters), *own)


def linked_under(records: Records, parameters: Parameters, likelihood: Likelihood, settings: Any) -> Linkage:
    """Link records under hyperparameters that are known, as the last pass of EM does; nothing is learned.

    Parameters
    ----------
    likelihood : as `for_data` returns it.
    settings : those of block-linkage; the decision is "closure", or anything else for the posterior.
    """
    rows, found = _found_under(records, parameters, likelihood, settings)
    if settings.decision == "closure":
        parts, drawn, of_drawn = _nothing(found, rows, settings.largest), _closure(found, rows, settings.at), 0.0
    else:
        parts, large = _parts_under(found, rows, parameters, likelihood, settings)
        drawn, of_drawn = large.settle(parameters)
    groups, evidence = _enumerate_all(
        rows.records, parts, parameters, likelihood.at(parameters), settings.restriction, None, None
    )
    unknown = np.array(np.nan)
    return Linkage(
        num_records=np.array(records.num_records), **flatten(_of_records(groups, rows)),
        value_share=parameters.value_share, distortion=parameters.distortion,
        intensity=np.array(parameters.intensity), size_share=parameters.size_share[: settings.largest],
        evidence=np.array([evidence + of_drawn]), first_phase=np.array(0),
        threshold=np.array(settings.threshold), found_share=unknown, disagreement=unknown, completed=np.array(False),
        cut=np.array(parts.cut, float), alike=np.zeros(3), class_share=parameters.class_share, large=drawn.record,
        large_part=drawn.part, drawn=drawn.cluster, unsettled=np.array(drawn.unsettled),
        differing=np.zeros((2, records.num_fields + 1)),
    )  # fmt: skip


def _size_limit(records: Records, parameters: Parameters, likelihood: Likelihood, settings: Any) -> int:
    """Return how large parts may be: likelihoods without an urn are of enumeration alone."""
    if likelihood.urn(parameters) is not None:
        return max(settings.size_limit, settings.largest)
    return settings.largest


def _rows(records: Records, parameters: Parameters, likelihood: Likelihood, settings: Any) -> tuple[Rows, int]:
    """Return the records, those of many equal ones as one row; and how large parts may be."""
    size_limit = _size_limit(records, parameters, likelihood, settings)
    check_labels(
        records, settings.restriction, size_limit,
        "largest" if likelihood.urn(parameters) is None else "size_limit", closure=settings.decision == "closure",
    )  # fmt: skip
    least = settings.largest if size_limit > settings.largest else records.num_records
    wide = for_candidates(parameters)
    return collapsed(records, wide, likelihood, least=least, restriction=settings.restriction), size_limit


def _of_records(groups: list[Group], rows: Rows) -> list[Group]:
    """Return groups of rows as those of records."""
    first = np.unique(rows.row, return_index=True)[1].astype(np.int32)  # records are in their order
    return [Group(first[group.members], group.partition) for group in groups]


def _enumerate_all(
    records: Records, parts: Parts, parameters: Parameters, likelihood: Likelihood, restriction: str,
    mesh: Mesh | None, engine: Engine | None,
) -> tuple[list[Group], float]:  # fmt: skip
    """Enumerate all components; return their partitions and the log evidence, relative to all records apart."""
    groups: list[Group] = []
    evidence = 0.0
    for members in parts.members:
        partitions = []
        terms = size_terms(parameters.intensity, parameters.size_share, members.shape[1], np)
        for rows in row_blocks(len(members), 1, _PIECE):
            values = gather_values(records.value, records.first_value, members[rows])
            given = values, parameters.value_share, parameters.distortion, terms, likelihood
            pair_terms = pair_terms_of(records, members[rows], restriction)
            if engine is None:
                found = enumerate_blocks(*given, pair_terms, mesh=mesh)
                partition, log_evidence = np.ascontiguousarray(found.partition.T), np.asarray(found.log_evidence)
            else:
                from consilience.models.block_linkage.engines.stages import partitions as by_engine

                partition, log_evidence = by_engine(engine, *given, pair_terms)
            partitions.append(partition)
            evidence += float(log_evidence.sum(dtype=float))
        if partitions:
            groups.append(Group(members, np.concatenate(partitions)))
    return groups, evidence
