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

from consilience.arrays import Float, Int
from consilience.data.records import Records
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.choice import better_of
from consilience.models.block_linkage.em import (
    Em,
    Trace,
    candidates,
    largest_rise,
    log_base,
    log_prior,
    sample_of,
)
from consilience.models.block_linkage.engines import Engine, engine_of
from consilience.models.block_linkage.enumeration import (
    enumerate_blocks,
    gather_values,
    terms_under,
)
from consilience.models.block_linkage.field_weights import dependence_weights, powers_of
from consilience.models.block_linkage.hidden_links import CandidateRule, drawn_share
from consilience.models.block_linkage.join import (
    CandidatePairs,
    pair_log_odds,
    prior_log_odds,
)
from consilience.models.block_linkage.labels import check_labels, label_log_odds, pair_terms_of
from consilience.models.block_linkage.laplace import hyperparameter_variance
from consilience.models.block_linkage.large_parts import Drawn, LargeParts, Rows, collapsed, divided
from consilience.models.block_linkage.likelihoods import AUTO, Likelihood
from consilience.models.block_linkage.linkage import Group, Linkage, flatten
from consilience.models.block_linkage.misfit import Misfit
from consilience.models.block_linkage.parameters import Parameters
from consilience.models.block_linkage.parts import Parts, merged, parts_of
from consilience.models.block_linkage.priors import Hyperprior
from consilience.models.block_linkage.repeats import Alike, alike_apart
from consilience.models.block_linkage.similar import for_data
from consilience.models.block_linkage.starting import (
    for_candidates,
    source_counts,
    starting_parameters,
    value_counts,
)
from consilience.models.posterior import Estimate
from consilience.models.rows import row_blocks
from consilience.models.sites import Resolved
from consilience.progress import steps

SLACK = 2.0
"""How much further than the threshold the join looks, so that candidates last while hyperparameters change."""

_MOST_ROUNDS = 3  # joins
_MANY_BEYOND = 0.05  # of the records in parts too large to enumerate: then a closure, where the model does not hold
_FEW_BEYOND = 0.01  # of the records: what so few are in changes neither hyperparameters nor their variance
_MOST_PARTED = 0.1  # of pairs that are links for themselves, in large parts: beyond it the model does not hold
_PIECE = 65_536  # components or pairs that a process goes through at a time, a multiple of what fits the cache


def engine_for(engine: Any, data: Records) -> Any:
    """Return the engine for records, as `engine_of` does, or "local"."""
    return engine_of(engine, data.value.size) or "local"


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
    original, settings = resolved.data, resolved.settings
    taken = _decided(resolved, num_sampled, mesh, engine)
    (parameters, check, trace, found, em), rows = taken.learned, taken.rows
    records, chosen = rows.records, em.likelihood
    if taken.closed:
        parts, drawn, of_drawn = _nothing(found, rows, settings.largest), _closure(found, rows, settings.at), 0.0
    else:
        parts, large = taken.divided
        drawn, of_drawn = large.settle(parameters)
    at = chosen.at(parameters)
    groups, evidence = _enumerate_all(records, parts, parameters, at, settings.restriction, mesh, engine)
    evidence += log_base(original, parameters, chosen) + of_drawn + log_prior(em.prior, parameters, chosen)
    share, alike = _seen(taken, settings)
    completed, of_classes = len(trace.evidence) > trace.first_phase, len(parameters.class_share)
    variance = np.nan
    # Of weighted fields, of a closure and of many records in large parts nobody knows it.
    knows = not taken.closed and not len(taken.powers) and taken.beyond <= _FEW_BEYOND * original.num_records
    if original.candidate is None and knows and (completed or (of_classes and check.holds)):
        variance = hyperparameter_variance(em, parameters)
    return Linkage(
        num_records=np.array(original.num_records), **flatten(_of_records(groups, rows)),
        value_share=parameters.value_share, distortion=parameters.distortion,
        intensity=np.array(parameters.intensity), size_share=parameters.size_share[: settings.largest],
        evidence=np.array([*trace.evidence, evidence]), first_phase=np.array(trace.first_phase),
        threshold=np.array(settings.threshold), found_share=np.array(share),
        disagreement=np.array(check.disagreement), differing=np.stack(check), completed=np.array(completed),
        cut=np.array(parts.cut, float), alike=np.array(alike, float), class_share=parameters.class_share,
        source_share=parameters.source_share,
        large=drawn.record, large_part=drawn.part, drawn=drawn.cluster, unsettled=np.array(drawn.unsettled),
        unseen=np.array(found.unseen), tried=taken.tried, larger_sizes=parameters.size_share[settings.largest :],
        pair_odds=np.array(parameters.pair_odds), closure=np.array(settings.at if taken.closed else np.nan),
        beyond=np.array(taken.beyond), parted=np.array(taken.parted), powers=taken.powers, variance=np.array(variance),
    )  # fmt: skip


class _Decision(NamedTuple):
    """What EM is to end with.

    Parameters
    ----------
    learned, rows : by what, and of which rows.
    divided : their parts, to enumerate and to draw from.
    powers : weights of the fields; none where all count fully.
    tried : as in `Linkage`.
    beyond : records in parts too large to enumerate.
    closed : whether strong pairs are joined, and nothing is enumerated or drawn.
    parted : the share of strong pairs in large parts that draws have apart.
    """

    learned: _Learned
    rows: Rows
    divided: tuple[Parts, LargeParts]
    powers: Float[np.ndarray, " weighted_field"]
    tried: Float[np.ndarray, "tried 3"]
    beyond: int
    closed: bool
    parted: float


def _decided(resolved: Resolved, num_sampled: int, mesh: Mesh | None, engine: Engine | None) -> _Decision:
    """Learn from small parts; choose likelihood and weights; then look at large parts, or at none."""
    original, settings = resolved.data, resolved.settings
    parameters = starting_parameters(original, max(settings.largest, settings.size_limit), settings.restriction)
    chosen = for_data(settings.likelihood, original, parameters.value_share)
    parameters = chosen.started(parameters)
    prior = Hyperprior.of(resolved.replace(given=chosen.priors(resolved.given)))
    rows, size_limit = _rows(original, parameters, chosen, settings)
    powers = powers_of(settings.weights, original, chosen)
    chosen = chosen.weighted(powers) if len(powers) else chosen
    given = _Given(rows, value_counts(original), source_counts(original), prior, chosen, num_sampled, mesh, engine)
    learned = given.learn(parameters, resolved, settings.largest)
    if settings.weights == "auto":
        powers = dependence_weights(learned.found, rows.records.value)
        given = given._replace(likelihood=chosen.weighted(powers))
        learned = given.learn(learned.parameters, resolved, settings.largest)
    tried = np.zeros((0, 3))
    if settings.likelihood == AUTO and not len(powers) and (rows.weight == 1).all():
        learned, tried = learned.or_error_classes(resolved)
        if learned.em.likelihood is not chosen:  # error classes are enumerated, and know no large parts
            size_limit = settings.largest
    parts, large = learned.divided(rows, settings, size_limit)
    drawn = rows.weight > 1
    drawn[np.concatenate([np.zeros(0, int), *parts.large])] = True
    beyond = int(rows.weight[drawn].sum())
    closed, parted = settings.decision == "closure", np.nan
    if beyond > _FEW_BEYOND * original.num_records and not closed:
        drawn_from = given.learn(learned.parameters, resolved, size_limit)
        parted = drawn_from.em.large.parted(drawn_from.found, settings.at)
        closed = settings.decision == "auto" and parted > _MOST_PARTED and original.labelled is None
        closed = closed and beyond > _MANY_BEYOND * original.num_records
        # A closure goes by what was learned of small parts, not by a posterior that does not hold.
        if not closed:
            learned, (parts, large) = drawn_from, drawn_from.divided(rows, settings, size_limit)
    return _Decision(learned, rows, (parts, large), powers, tried, beyond, closed, parted)


def _seen(taken: _Decision, settings: Any) -> tuple[float, Alike]:
    """Return the share of links that is found, as far as anybody knows, and who is too like others to be looked at."""
    parameters, _, _, found, em = taken.learned
    records, chosen, wide = taken.rows.records, em.likelihood, for_candidates(parameters)
    seen = em.rule._replace(parameters=wide).found(records, parameters, chosen)
    if records.candidate is not None:
        return np.nan if seen is None else seen.share, Alike(0, 0, 0.0)
    alike = alike_apart(records, wide, chosen, prior_log_odds(wide), settings.threshold, settings.restriction)
    if seen is not None:
        return seen.share, alike
    share = chosen.found_share(records, wide, found, settings.threshold)
    if np.isnan(share):
        rule = CandidateRule(wide, settings.threshold, chosen, None)
        share = drawn_share(records, parameters, chosen, em.rule, rule)
    return share, alike


class _Learned(NamedTuple):
    """What EM ends with: the hyperparameters, whether they hold, the candidates with their log odds, and how."""

    parameters: Parameters
    check: Misfit
    trace: Trace
    found: CandidatePairs
    em: Em

    def divided(self, rows: Rows, settings: Any, size_limit: int) -> tuple[Parts, LargeParts]:
        """Return the parts of the candidates under what was learned; see the function of this name."""
        own = (settings.threshold, settings.largest, size_limit, self.em.likelihood, settings.restriction)
        return divided(self.found, rows, for_candidates(self.parameters), *own)

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
    by_source: Int[np.ndarray, " source"]
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
            parts, large = divided(found, self.rows, wide, threshold, largest, size_limit, chosen, restriction)
            sample = sample_of(records, parts, restriction, chosen, self.num_sampled)
            sample = sample._replace(num_alone=sample.num_alone - len(large.drawn_rows))
            em = Em(records, self.counts, self.by_source, sample, self.prior, chosen, rule, self.mesh, large, largest)
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


def parts_under(
    records: Records, parameters: Parameters, likelihood: Likelihood, settings: Any
) -> Int[np.ndarray, " record"]:
    """Return the part of each record, named by its lowest one, under hyperparameters that are known."""
    rows, found = _found_under(records, parameters, likelihood, settings)
    part = np.arange(rows.records.num_records)
    if settings.decision == "closure":
        return _closed(found, rows, settings.at)
    parts, large = _parts_under(found, rows, parameters, likelihood, settings)
    for members in (*parts.members, *(own[None] for own in large.parts)):
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
    return divided(found, rows, for_candidates(parameters), *own)


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
        cut=np.array(parts.cut, float), alike=np.zeros(3), class_share=parameters.class_share,
        source_share=parameters.source_share, large=drawn.record,
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
    if len(rows.weight) == len(rows.row):
        return groups
    first = np.unique(rows.row, return_index=True)[1].astype(np.int32)  # records are in their order
    return [Group(first[group.members], group.partition) for group in groups]


def _enumerate_all(
    records: Records, parts: Parts, parameters: Parameters, likelihood: Likelihood, restriction: str,
    mesh: Mesh | None, engine: Engine | None,
) -> tuple[list[Group], float]:  # fmt: skip
    """Enumerate all components; return their partitions and the log evidence, relative to all records apart."""
    groups: list[Group] = []
    evidence, done = 0.0, 0
    with steps(sum(map(len, parts.members)), "enumerating", "part") as bar:
        for members in parts.members:
            partitions = []
            terms = terms_under(parameters, members.shape[1])
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
                done += len(partition)
                bar.to(done)
            if partitions:
                groups.append(Group(members, np.concatenate(partitions)))
    return groups, evidence


def _at(found: CandidatePairs, records: Records, parameters: Parameters, likelihood: Likelihood) -> CandidatePairs:
    """Return candidates with their log odds under other hyperparameters."""
    log_odds = np.zeros(len(found.first))
    for rows in row_blocks(len(log_odds), 1, _PIECE):
        ends = found.first[rows], found.second[rows]
        log_odds[rows] = pair_log_odds(records.value, *ends, parameters, likelihood, records.first_value).log_odds
    return found._replace(log_odds=log_odds + label_log_odds(records, found.first, found.second))
