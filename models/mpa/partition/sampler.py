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

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Float, Int
from consilience.errors import UnsupportedRequest
from consilience.inference.tempering import adapted, geometric_ladder, swapped
from consilience.models.interface import Gibbs, Starts
from consilience.models.mpa.candidates import candidates_of, check_data
from consilience.models.mpa.partition import annotators, field, moves
from consilience.models.mpa.partition.state import Texts, injective, linked, recoded, texts_of
from consilience.models.mpa.partition.tables import HIDDEN, refused
from consilience.models.sites import Resolved
from consilience.models.truth.chains import NEW, follow_links, links_of

RUNGS, _LEAST = 8, 0.35
"""Of a ladder, and its last exponent."""

_CERTAIN, _RIVAL, _VISITED, _DISPUTED = 0.99, 1e-3, 0.1, 0.1
_SWEPT, _FEWEST, _MOST = 150_000, 50, 500
"""Mentions that the draws of a chain go through, unless they are many, and how many draws those may be."""

_FIRST_STEPS = 8  # of the ascent that finds where to begin
_ADAPTED, _ESTIMATED = 10, 5  # every so many sweeps of the warm-up
_SHARE = 1 / 3  # of a late estimate in the average
_LOOKED_AT, _PAIRS = 50, 20  # draws of a chain by which the most doubtful pairs are chosen, of which so many


class Problem(NamedTuple):
    """What sweeps read.

    Parameters
    ----------
    texts : mentions.
    any : whether a right annotation may name any earlier mention of the entity.
    certain : bool, shape ``(mention,)``; moved in a tenth of the sweeps, to begin with.
    weight : shape ``(candidate,)``; the score of each candidate by itself.
    rungs : how many.
    learns, estimates : whether the shared parameters are drawn, and the field is estimated.
    """

    texts: Texts
    any: bool
    certain: Any
    weight: Any
    rungs: int
    learns: bool = True
    estimates: bool = True


class Chain(NamedTuple):
    """What the next sweep needs.

    Parameters
    ----------
    place, parameters : records `state.PLACE`, shape ``(rung, mention)``, and what documents share.
    exponents : shape ``(rung,)``.
    rates : shape ``(step,)``; sum of the probabilities of swaps since the ladder was placed, of ``since`` sweeps.
    certain : bool, shape ``(mention,)``; moved in a tenth of the sweeps.
    disputed : shape ``(mention,)``; of the sweeps of the warm-up, how many left rungs that disagree on its link.
    log_likelihood : of all annotations, given the partitions of the first rung and what the sweep read.
    """

    place: Any
    parameters: annotators.Parameters
    exponents: Any
    rates: Any
    since: int
    certain: Any
    disputed: Any
    log_likelihood: float = np.nan


def first_look(texts: Texts) -> tuple[Float[np.ndarray, " candidate"], Float[np.ndarray, " candidate"]]:
    """Return score and probability of each candidate, mentions apart: errors fall on four labels alike."""
    number, row, annotator, of = len(texts.mention), texts.row_candidate, texts.row_annotator, texts.of
    right, old = np.full((texts.num_annotators, 2), 0.6), (texts.target >= 0).astype(int)
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
            hits, asked = (np.bincount(annotator, one, len(right)) for one in (own[row], is_kind))
            right[:, kind] = (hits + 1.5) / (asked + 3)
    return weight, probability


def prepare(resolved: Resolved, witness: Int[np.ndarray, " mention"] | None = None) -> Problem:
    """Return the problem of the mentions, where there is a witness with what it says, as `state.texts_of` takes it.

    Raises
    ------
    UnsupportedRequest : the data are no mentions, or a prior or a setting has no part in partitions.
    """
    if against := refused(resolved):
        raise UnsupportedRequest(*against)
    data, own = resolved.data, resolved.settings
    check_data(data, own.candidates, own.gold)
    return problem_of(texts_of(data, own.gold, witness), any_antecedent=own.antecedents == "any", rungs=int(own.rungs))


def problem_of(texts: Texts, *, any_antecedent: bool, rungs: int) -> Problem:
    """Return the problem of a partition of these mentions."""
    weight, probability = first_look(texts)
    best = np.zeros(len(texts.mention))
    np.maximum.at(best, texts.of, probability)
    certain = best > _CERTAIN
    certain[texts.target[(probability > _RIVAL) & ~certain[texts.of] & (texts.target >= 0)]] = False
    return Problem(texts, any_antecedent, certain, weight, rungs or RUNGS)


def start(random: np.random.Generator, problem: Problem, chain: int = 0) -> Chain:
    """Start at the best links of which no two go to one mention, or at links drawn by what labels say."""
    weight, texts = problem.weight, problem.texts
    if chain % 2:
        weight = weight + random.gumbel(size=len(weight))
    fixed, back = np.flatnonzero(texts.mention["fixed"]), texts.target <= texts.of
    weight = np.append(np.full(len(fixed), np.inf), weight[back])
    of, target = np.append(fixed, texts.of[back]), np.append(texts.known[fixed], texts.target[back])
    return begun(problem, injective(weight, of, target, len(texts.known)))


def begun(problem: Problem, link: Int[np.ndarray, " mention"]) -> Chain:
    """Return a chain whose replicas all have these links."""
    texts, rungs = problem.texts, problem.rungs
    parameters = annotators.first_parameters(texts, problem.any)
    ladder = geometric_ladder(rungs, last=_LEAST, least=_LEAST ** ((rungs - 2) / max(rungs - 1, 1)))
    place = np.tile(linked(link, texts), (rungs, 1))
    return Chain(place, parameters, ladder, np.zeros(rungs - 1), 0, problem.certain, np.zeros(len(link)))


def sweep(random: np.random.Generator, chain: Chain, problem: Problem) -> Chain:
    """Move all mentions on all rungs, exchange rungs, draw what documents share."""
    texts, parameters, place = problem.texts, chain.parameters, chain.place.copy()
    known = annotators.given(parameters, texts, problem.any)
    visited = random.permutation(np.flatnonzero(~chain.certain | (random.random(len(chain.certain)) < _VISITED)))
    moves.sweep(random, visited[texts.mention["fixed"][visited] == 0], chain.exponents, place, known)
    prior, likelihood = np.empty((2, len(place), len(texts.first) - 1))
    moves.weigh(place, known, prior, likelihood)
    order, rate = swapped(random.random((len(place) - 1, prior.shape[1])), chain.exponents, prior + likelihood)
    place = np.take_along_axis(place, order[:, texts.mention["document"]], axis=0)
    moves.weigh(place[:1], known, prior, likelihood)
    if problem.learns:
        parameters = annotators.drawn(random, parameters, place[0], texts, known)
    return chain._replace(
        place=place, parameters=parameters, rates=chain.rates + rate.mean(axis=1), since=chain.since + 1,
        log_likelihood=likelihood[0].sum(),
    )  # fmt: skip


def warmed(chain: Chain, problem: Problem, done: int, warmup: int) -> Chain:
    """Estimate the field, place the ladder, and say which mentions are certain, after some sweeps of the warm-up.

    The first estimates are from partitions far from where they will be; later ones are averaged.
    """
    if not problem.learns:
        return chain
    if problem.estimates and (done % _ESTIMATED == 0 or done == warmup):
        own, random = chain.parameters.field, np.random.default_rng(done)
        estimate = field.estimated(random, own, chain.place[0], problem.texts)
        own = own + (1.0 if done < warmup / 4 else _SHARE) * (estimate - own)
        chain = chain._replace(parameters=chain.parameters._replace(field=own))
    link, half = chain.place["link"], warmup // 2
    disputed = chain.disputed + (link[: len(link) // 2 + 1] != link[0]).any(axis=0)
    chain = chain._replace(disputed=np.zeros(len(disputed)) if done == half else disputed)
    if done in (half, warmup) and len(link) > 1:
        chain = chain._replace(certain=disputed < _DISPUTED * half)
    if (done % _ADAPTED == 0 or done == warmup) and len(chain.rates) and chain.since:
        ladder = adapted(chain.exponents, chain.rates / chain.since)
        chain = chain._replace(exponents=ladder, rates=np.zeros_like(chain.rates), since=0)
    return chain


def sites(chain: Chain, problem: Problem) -> dict[str, Any]:
    """Return the profiles, in all types of mentions, and what `hidden` takes out: links are of the first rung."""
    texts, parameters = problem.texts, chain.parameters
    link = np.empty(len(texts.mention), np.int32)
    link[texts.order] = recoded(chain.place["link"][0], texts.order)
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
    aim = links_of(resolved.data.label_codes())[named.label]
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
    problem, last, found = prepare(resolved, witness)._replace(estimates=False), np.asarray(known["link"]), []
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
                chain = warmed(chain, problem, done + 1, warmup)
            else:
                found.append(sites(chain, problem)["link"])
    return np.stack(found).reshape(len(last), draws, -1)


def starts(resolved: Resolved) -> Starts:
    """Return two chains of 50 to 500 draws: a draw is a partition of all documents, and takes its time."""
    draws = int(np.clip(_SWEPT // max(resolved.data.num_mentions, 1), _FEWEST, _MOST))
    return Starts(draws=draws, chains=2, warmup=max(draws // 2, _FEWEST), words=("best links", "drawn links"))


SAMPLER = Gibbs(
    prepare=prepare, start=start, sweep=sweep, sites=sites, host=True, warmed=warmed, hidden=hidden,
    starts=starts,
)  # fmt: skip
