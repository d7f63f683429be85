r"""The sampler of partitions: tempered moves in every document, then what documents share.

Every document has replicas on rungs of one ladder (`consilience.inference.tempering`), whose exponents are on the whole
weight of a partition, prior and annotations. A sweep moves mentions on all rungs, exchanges the states of neighbouring
rungs document by document, and draws the shared parameters from the first rung alone. Mentions that are certain, and
that no rival has as a candidate, are moved in a tenth of the sweeps; from half of the warm-up on these are the mentions
whose links the colder half of the rungs agreed on.

While it warms up the ladder is placed so that all neighbours exchange equally often, and the parameters of the field
are estimated (`field.estimated`); then both stand.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Float, Int
from consilience.data.mentions import MENTION_TYPES
from consilience.errors import UnsupportedRequest
from consilience.inference.tempering import adapted, geometric_ladder, swapped
from consilience.models.interface import Gibbs, Starts
from consilience.models.mpa.candidates import candidates_of, check_data
from consilience.models.mpa.partition import field, moves, profiles
from consilience.models.mpa.partition.annotations import FOUND
from consilience.models.mpa.partition.state import State, Texts, injective, known_links, linked, recoded, texts_of
from consilience.models.mpa.partition.tables import HIDDEN, refused
from consilience.models.sites import Resolved
from consilience.models.truth.chains import NEW, follow_links

WARMUP, DRAWS = 50, 50      # of each of two chains
RUNGS, _LEAST = 8, 0.35
"""Of a ladder, and its last exponent."""

_CERTAIN, _RIVAL, _VISITED, _DISPUTED = 0.99, 1e-3, 0.1, 0.1
_FIRST_STEPS = 8  # of the ascent that finds where to begin
_ADAPTED, _ESTIMATED = 10, 5  # every so many sweeps of the warm-up
_SHARE = 1 / 3  # of a late estimate in the average
_LOOKED_AT, _PAIRS = 50, 20  # draws of a chain by which the most doubtful pairs are chosen, of which so many


class Problem(NamedTuple):
    """What sweeps read.

    Parameters
    ----------
    texts, there : mentions, and the bins that errors may be in.
    any : whether a right annotation may name any earlier mention of the entity.
    certain : bool, shape ``(mention,)``; moved in a tenth of the sweeps, to begin with.
    weight : shape ``(candidate,)``; the score of each candidate by itself.
    known : links of mentions that are fixed.
    num_annotators, rungs : sizes.
    learns : whether the shared parameters are drawn; in tests they are held.
    """

    texts: Texts
    there: Any
    any: bool
    certain: Any
    weight: Any
    known: Any
    num_annotators: int
    rungs: int
    learns: bool = True


class Chain(NamedTuple):
    """What the next sweep needs.

    Parameters
    ----------
    state, parameters : partitions of all rungs, and what documents share.
    exponents : shape ``(rung,)``.
    replica : int, shape ``(rung, document)``; which replica stands on each rung.
    rates : shape ``(step,)``; sum of the probabilities of swaps since the ladder was placed, of ``since`` sweeps.
    certain : bool, shape ``(mention,)``; moved in a tenth of the sweeps.
    disputed : shape ``(mention,)``; of the sweeps of the warm-up, how many left rungs that disagree on its link.
    log_likelihood : of all annotations, given the partitions of the first rung and what the sweep read.
    """

    state: State
    parameters: profiles.Parameters
    exponents: Any
    replica: Any
    rates: Any
    since: int
    certain: Any
    disputed: Any
    log_likelihood: float = np.nan


class Work(NamedTuple):
    """Memory of the moves.

    Parameters
    ----------
    choice : int64, shape ``(choice, 4)``; `moves` says of what.
    weight : shape ``(choice,)``.
    seen : int64, shape ``(mention,)``; which choice an entity is, -1 of none.
    none : no records.
    """

    choice: Any
    weight: Any
    seen: Any
    none: Any


def work_of(texts: Texts) -> Work:
    """Return memory for the mention with most choices."""
    own = texts.mention
    most = int((own["end"] - own["begin"] + own["last_namer"] - own["first_namer"]).max(initial=0)) + 8
    return Work(np.zeros((most, 4), np.int64), np.zeros(most), np.full(len(own), -1), np.zeros(0, FOUND))


def first_look(
    texts: Texts, num_annotators: int
) -> tuple[Float[np.ndarray, " candidate"], Float[np.ndarray, " candidate"]]:
    """Return score and probability of each candidate, mentions apart: errors fall on four labels alike."""
    number, row, annotator = len(texts.mention), texts.row_candidate, texts.row_annotator
    of, right = texts.of, np.full((num_annotators, 2), 0.6)
    old = (texts.target >= 0).astype(int)
    if not len(of):
        return np.zeros(0), np.zeros(0)
    first = np.flatnonzero(np.diff(of, prepend=-1))
    sizes = np.diff(np.append(first, len(of)))
    for _ in range(_FIRST_STEPS):
        gain = np.log(4 * right / (1 - right))
        weight = np.bincount(row, gain[annotator, old[row]], len(of))
        probability = np.exp(weight - np.repeat(np.maximum.reduceat(weight, first), sizes))
        probability /= np.repeat(np.add.reduceat(probability, first), sizes)
        for kind in (0, 1):
            own = probability * (old == kind)
            is_kind = np.bincount(of, own, number)[of[row]]
            hits = np.bincount(annotator, own[row], num_annotators)
            right[:, kind] = (hits + 1.5) / (np.bincount(annotator, is_kind, num_annotators) + 3)
    return weight, probability


def prepare(resolved: Resolved) -> Problem:
    """Return the problem of the mentions.

    Raises
    ------
    UnsupportedRequest : the data are no mentions, or a prior or a setting has no part in partitions.
    """
    data, own = resolved.data, resolved.settings
    if against := refused(resolved):
        raise UnsupportedRequest(*against)
    check_data(data, own.candidates, own.gold)
    return _problem(resolved)


def _problem(resolved: Resolved, witness: Int[np.ndarray, " mention"] | None = None) -> Problem:
    data, own = resolved.data, resolved.settings
    texts = texts_of(data, own.gold, witness)
    known = known_links(data, texts) if own.gold == "use" else np.full(data.num_mentions, NEW)
    return problem_of(
        texts, data.num_annotators, known, any_antecedent=own.antecedents == "any", rungs=int(own.rungs)
    )  # fmt: skip


def problem_of(
    texts: Texts, num_annotators: int, known: Int[np.ndarray, " mention"], *, any_antecedent: bool, rungs: int
) -> Problem:
    """Return the problem of a partition of these mentions."""
    weight, probability = first_look(texts, num_annotators)
    of, best = np.asarray(texts.of), np.zeros(len(texts.mention))
    np.maximum.at(best, of, probability)
    certain = best > _CERTAIN
    rival = (probability > _RIVAL) & ~certain[of] & (texts.target >= 0)
    certain[texts.target[rival]] = False
    there = profiles.possible_bins(texts)
    return Problem(texts, there, any_antecedent, certain, weight, known, num_annotators, rungs or RUNGS)


def start(random: np.random.Generator, problem: Problem, chain: int = 0) -> Chain:
    """Start at the best links of which no two go to one mention, or at links drawn by what labels say."""
    weight, texts = problem.weight, problem.texts
    if chain % 2:
        weight = weight + random.gumbel(size=len(weight))
    weight = np.where(texts.target > texts.of, -np.inf, weight)
    return begun(problem, injective(weight, texts.of, texts.target, problem.known, texts.mention["fixed"] > 0))


def begun(problem: Problem, link: Int[np.ndarray, " mention"]) -> Chain:
    """Return a chain whose replicas all have these links."""
    texts, rungs = problem.texts, problem.rungs
    state = linked(np.tile(link, (rungs, 1)), texts)
    parameters = profiles.first_parameters(texts, problem.num_annotators, problem.any)
    replica = np.tile(np.arange(rungs)[:, None], (1, state.entities.shape[1]))
    ladder = geometric_ladder(rungs, last=_LEAST, least=_LEAST ** ((rungs - 2) / max(rungs - 1, 1)))
    return Chain(state, parameters, ladder, replica, np.zeros(rungs - 1), 0, problem.certain, np.zeros(len(link)))


def sweep(random: np.random.Generator, chain: Chain, problem: Problem) -> Chain:
    """Move all mentions on all rungs, exchange rungs, draw what documents share."""
    texts, parameters = problem.texts, chain.parameters
    state = State(*(array.copy() for array in chain.state))
    known, number = profiles.given(parameters, texts, problem.any), len(texts.mention)
    visited = random.permutation(np.flatnonzero(~chain.certain | (random.random(number) < _VISITED)))
    rungs, documents = state.entities.shape
    exponents, work = np.tile(chain.exponents[:, None], (1, documents)), work_of(texts)
    moves.sweep(random, visited, exponents, *state, known, work)
    energy = np.empty(exponents.shape)
    moves.energies(state.place, texts.first, known, work.none, energy)
    order, rate = swapped(random.random((rungs - 1, documents)), chain.exponents, energy)
    state = _exchanged(state, order, texts.mention["document"])
    replica = np.take_along_axis(chain.replica, order, axis=0)
    found, place = np.zeros(len(texts.target), FOUND), state.place[:1].copy()
    moves.energies(place, texts.first, known, found, energy[:1])
    prior = sum(moves.log_prior(place[0], *ends, known) for ends in itertools.pairwise(texts.first))
    if problem.learns:
        counts = profiles.counted(state, found, texts, known, parameters.sensitivity.shape)
        parameters = profiles.drawn(random, parameters, counts, problem.there, problem.any)
    return chain._replace(
        state=state, parameters=parameters, replica=replica, rates=chain.rates + rate.mean(axis=1),
        since=chain.since + 1, log_likelihood=energy[0].sum() - prior,
    )  # fmt: skip


def warmed(chain: Chain, problem: Problem, done: int, warmup: int) -> Chain:
    """Place the ladder, and estimate the field, after some of the sweeps of the warm-up.

    The first estimates are from partitions far from where they will be; later ones are averaged.
    """
    if not problem.learns:
        return chain
    if done % _ESTIMATED == 0 or done == warmup:
        parameters, random = chain.parameters, np.random.default_rng(done)
        estimate, share = field.estimated(random, parameters.field, chain.state, problem.texts), _SHARE
        if done < warmup / 4:
            share = 1.0
        own = parameters.field + share * (estimate - parameters.field)
        chain = chain._replace(parameters=parameters._replace(field=own))
    return _placed(chain, done, warmup)


def _placed(chain: Chain, done: int, warmup: int) -> Chain:
    """Place the ladder, and say which mentions are certain, after some of the sweeps of the warm-up."""
    link, half = chain.state.place["link"], warmup // 2
    disputed = chain.disputed + (link[: len(link) // 2 + 1] != link[0]).any(axis=0)
    chain = chain._replace(disputed=np.zeros(len(disputed)) if done == half else disputed)
    if done in (half, warmup) and len(link) > 1:
        chain = chain._replace(certain=disputed < _DISPUTED * half)
    if (done % _ADAPTED == 0 or done == warmup) and len(chain.rates) and chain.since:
        ladder = adapted(chain.exponents, chain.rates / chain.since)
        chain = chain._replace(exponents=ladder, rates=np.zeros_like(chain.rates), since=0)
    return chain


def _exchanged(state: State, order: Int[np.ndarray, "rung document"], document: Int[np.ndarray, " mention"]) -> State:
    """Return the states of rungs in another order, document by document."""
    place = np.take_along_axis(state.place, order[:, document], axis=0)
    return State(place, np.take_along_axis(state.entities, order, axis=0))


# ---- what is kept ----


def sites(chain: Chain, problem: Problem) -> dict[str, Any]:
    """Return the profiles, in all types of mentions, and what `hidden` takes out: links are of the first rung."""
    texts, parameters = problem.texts, chain.parameters
    link = np.empty(len(texts.mention), np.int32)
    link[texts.order] = recoded(chain.state.place["link"][0], texts.order)
    sensitivity = parameters.sensitivity[:, [0, 1, -1, -1]]
    if parameters.sensitivity.shape[1] == 2:
        sensitivity[:, 2:] = 0.5                            # nothing is known of what does not occur
    rate = chain.rates / max(chain.since, 1)
    return {
        "sensitivity": sensitivity, "link": link, "field": parameters.field, "nearest": parameters.nearest,
        "popularity": parameters.base.sum(axis=1)[:2], "swap_rate": rate.min() if len(rate) else np.ones(()),
        "log_likelihood": chain.log_likelihood,
    }  # fmt: skip


def hidden(samples: dict[str, Any], resolved: Resolved) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the sites, with what tells whether chains agree, whatever entities are called; and the rest."""
    link, named = samples["link"], candidates_of(resolved.data, "observed", "ignore")
    labels = resolved.data.label_codes()
    aim = np.where(labels.type == MENTION_TYPES.index("DO"), labels.antecedent, -1)[named.label]
    one, other = named.item[aim >= 0], aim[aim >= 0]
    entity = follow_links(link.reshape(-1, link.shape[2])).reshape(link.shape)
    some = entity[:, :: max(link.shape[1] // _LOOKED_AT, 1)].reshape(-1, link.shape[2])
    share = (some[:, one] == some[:, other]).mean(axis=0) if len(some) else np.zeros(len(one))
    doubtful = np.flatnonzero((share > 0) & (share < 1))
    chosen = np.sort(doubtful[np.argsort(np.abs(share[doubtful] - 0.5), kind="stable")[:_PAIRS]])
    sites = {name: samples[name] for name in ("sensitivity", "log_likelihood")}
    sites["num_entities"] = (link == NEW).sum(axis=2).astype(float)
    sites["together"] = (entity[:, :, one[chosen]] == entity[:, :, other[chosen]]).astype(float)
    return sites, {name: samples[name] for name in HIDDEN}


def witnessed(known: Mapping[str, Any], resolved: Resolved, witness: Int[np.ndarray, " mention"], seed: int) -> Any:
    """Draw links again with a system as one more annotator, from the last draws of a fit, half as many.

    Parameters
    ----------
    known : what the posterior of the fit holds beside its sites.
    witness : what the system says of each mention, as `state.texts_of` takes it.

    Returns
    -------
    links as `sites` returns them, ``(chain, draw, mention)``.
    """
    problem, last, found = _problem(resolved, witness), np.asarray(known["link"]), []
    draws, order = max(last.shape[1] // 2, 1), problem.texts.order
    warmup = max(draws // 2, 1)
    for number, ended in enumerate(last[:, -1]):
        random = np.random.default_rng([seed, number])
        chain = begun(problem, recoded(ended[order], np.argsort(order)))
        learned = np.asarray(known["field"])[number].mean(axis=0)
        chain = chain._replace(parameters=chain.parameters._replace(field=learned))
        for done in range(warmup + draws):
            chain = sweep(random, chain, problem)
            if done < warmup:
                chain = _placed(chain, done + 1, warmup)
            else:
                found.append(sites(chain, problem)["link"])
    return np.stack(found).reshape(len(last), draws, -1)


def starts(resolved: Resolved) -> Starts:
    """Return two chains of a few draws: a draw is a partition of all documents."""
    return Starts(draws=DRAWS, chains=2, warmup=WARMUP, words=("best links", "drawn links"))


SAMPLER = Gibbs(
    prepare=prepare, start=start, sweep=sweep, sites=sites, host=True, warmed=warmed, hidden=hidden, starts=starts
)  # fmt: skip
