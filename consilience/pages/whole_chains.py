"""What a report says of whole chains: how probably exactly these mentions are one entity, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Bool, Float, Int
from consilience.evaluation.silver import SilverChains
from consilience.models.diagnostics import convergence
from consilience.models.truth.truth import CHAINS, Clusters, Ranked
from consilience.pages import SURE, Section, Table
from consilience.pages.close_calls import called, close_calls, half_width
from consilience.printing import counted
from consilience.rounding import probability, reaches

_MOST_NAMED = 8  # mentions of a chain
_MOST_DECIDED = 20  # mentions, the least certain ones
_LEAST_GAIN = 0.01  # of the probability of a chain
_ROUNDING = 1e-9  # of a certainty
_EXACTLY = "probability of exactly these"


class Whole(NamedTuple):
    """How probable chains are as a whole, an entry each.

    Parameters
    ----------
    probability : the share of draws in which exactly the mentions of the chain are one entity.
    draws : how many independent ones that was counted among at least.
    num_draws : how many there are.
    """

    probability: Float[np.ndarray, " entity"]
    draws: Float[np.ndarray, " entity"]
    num_draws: int

    @property
    def sure(self) -> Bool[np.ndarray, " entity"]:
        """Which chains are as probable as what counts as sure."""
        return reaches(self.probability, SURE)

    @property
    def close(self) -> Bool[np.ndarray, " entity"]:
        """Which chains other draws may put on the other side of that."""
        return close_calls(self.probability, self.draws)

    @property
    def unsure(self) -> int:
        """How many are less probable."""
        return int((~self.sure).sum())


def of_whole_chains(truth: Any, chains: SilverChains, draws: float) -> Whole:
    """Return how probable chains are as a whole.

    Parameters
    ----------
    truth : draws of labels of mentions, which knows of how many runs of a sampler they are.
    chains : of the most probable links.
    draws : how many independent ones the draws are worth at least, of what was diagnosed.
    """
    exact = exactly_these(truth.read_as(CHAINS.name), chains.entity)
    share, worth = exact.mean(axis=0), np.full(exact.shape[1], draws)
    open_ = np.flatnonzero((share > 0) & (share < 1))
    if len(open_):
        by_run = exact[:, open_].reshape(truth.num_chains, -1, len(open_)).astype(float)
        worth[open_] = np.fmin(draws, convergence(by_run).ess_bulk)
    return Whole(share, worth, len(exact))


def exactly_these(truth: Any, entity: Int[np.ndarray, " mention"]) -> Bool[np.ndarray, "draw entity"]:
    """Return in which draws the mentions of each entity, and no others, are one.

    Parameters
    ----------
    truth : draws of chains.
    entity : codes from 0, -1 where a mention refers to nothing.
    """
    placed = np.flatnonzero(entity >= 0)
    own = entity[placed]
    size, first = np.bincount(own), placed[np.unique(own, return_index=True)[1]]
    exact = np.zeros((truth.num_draws, len(size)), bool)
    for block in truth.blocks(Clusters()):
        for place, drawn in enumerate(np.asarray(block.values), block.draws.start):
            code = drawn[first]  # in this draw, of the first mention of each
            together = np.bincount(own, drawn[placed] == code[own], len(size)) == size
            of_code = np.bincount(drawn[drawn >= 0], minlength=1)
            exact[place] = (code >= 0) & together & (of_code[np.maximum(code, 0)] == size)
    return exact


class Decided(NamedTuple):
    """A mention to decide, and how probable its chain is before, and after if the label it has proves right."""

    mention: int
    before: float
    after: float

    def words(self, name: str) -> str:
        """Say what deciding the mention of that name may gain."""
        return (
            f". If the label of “{name}” proves right, the probability of its whole chain rises from {self.before:.2f} "
            f"to {self.after:.2f}"
        )


def best_to_decide(truth: Any, chains: SilverChains, certainty: Float[np.ndarray, " mention"]) -> Decided | None:
    """Return the uncertain mention whose label, if it proves right, makes its chain most probable; None of none.

    Parameters
    ----------
    truth : draws of labels of mentions.
    chains : of the most probable links.
    certainty : of the leading label of each mention.
    """
    open_ = np.flatnonzero((certainty < SURE) & (chains.entity >= 0) & (chains.probability >= certainty - _ROUNDING))
    open_ = open_[np.argsort(certainty[open_], kind="stable")][:_MOST_DECIDED]
    if not len(open_):
        return None
    exact, found = exactly_these(truth.read_as(CHAINS.name), chains.entity), []
    for block in truth.blocks(Ranked(1)):
        first = block.units.start
        for mention in open_[(open_ >= first) & (open_ < block.units.stop)].tolist():
            same = np.asarray(block.real[mention - first, :, 0]) == chains.label[mention]
            own = exact[:, chains.entity[mention]]
            found.append(Decided(mention, float(own.mean()), float(own[same].mean()) if same.any() else 0.0))
    best = max(found, key=lambda one: one.after - one.before)
    return best if best.after - best.before >= _LEAST_GAIN else None


def numbers_in_text(chains: SilverChains) -> Int[np.ndarray, " entity"]:
    """Return the number that each chain of two mentions or more has in the text of its document; 0 of a single one."""
    document, placed = np.asarray(chains.data.document), np.flatnonzero(chains.entity >= 0)
    size = np.bincount(chains.entity[placed])
    of = np.zeros(len(size), int)
    of[chains.entity[placed]] = document[placed]
    found = np.zeros(len(size), int)
    for code in np.unique(of):
        own = np.flatnonzero((of == code) & (size > 1))
        found[own] = np.arange(len(own)) + 1
    return found


def whole_chains(
    named: Any, chains: SilverChains, whole: Whole, digits: int, gold: Sequence[str] = (), every: str = "",
    *, few: bool = False,
) -> Section:  # fmt: skip
    """Tabulate the chains of the text, the least probable ones first.

    Parameters
    ----------
    named : the truth, as `worded` writes it.
    chains : that the text shows.
    whole : how probable they are.
    digits : of these, after the point.
    gold : how the nearest gold chain differs from each, where gold chains are known.
    every : how many of all are gold chains, in words.
    few : whether the page says elsewhere how many draws there are, as they are few.
    """
    import pandas

    data, names = chains.data, named.names()
    document = np.asarray(data.document)
    titles = [str(one) for one in (range(data.num_documents) if data.documents is None else data.documents)]
    members = np.split(np.argsort(chains.entity, kind="stable"), np.cumsum(np.bincount(chains.entity + 1))[:-1])[1:]
    first = np.array([document[own[0]] for own in members], int)
    place = numbers_in_text(chains)
    order = np.argsort(whole.probability, kind="stable")
    frame = pandas.DataFrame({
        "chain": place[order], "document": [titles[code] for code in first[order]],
        "mentions": [_listed(names[members[one]]) for one in order], "number": [len(members[one]) for one in order],
        _EXACTLY: whole.probability[order],
    })  # fmt: skip
    if gold:
        frame["nearest gold chain"] = [gold[one] for one in order]
    frame = frame.drop(columns="document") if data.num_documents == 1 else frame
    words = (
        "The probability of a chain is the share of posterior draws in which exactly its mentions form one chain. One "
        "wrong link makes another chain, so a long chain is less probable than its links."
    )
    if np.isfinite(fewest := float(whole.draws.min(initial=whole.num_draws))):
        worth = f", which count as {fewest:,.0f} independent ones or more" if fewest < whole.num_draws else ""
        rests = f" It rests on {whole.num_draws:,} draws{worth}; ± is the error that this leaves (95 %)."
        words += " ± is the error that the number of draws leaves (95 %)." if few else rests
    if gold:
        words += f"{every} The last column shows how the nearest gold chain differs from each, if it does."
    numbers = zip(whole.probability[order].tolist(), whole.draws[order].tolist(), strict=True)
    texts = {"chain": [str(one or "–") for one in place[order].tolist()]}
    texts |= {_EXACTLY: [_with_error(one, digits, draws) for one, draws in numbers]}
    table = Table(frame, "Chains, least probable first.", texts=texts)
    gist = f"{whole.unsure:,} of {counted(len(members), 'chains')} have a probability below {SURE}"
    gist += called(int(whole.close.sum()))
    return Section("Chains", [words, table], gist)


def _with_error(share: float, digits: int, draws: float) -> str:
    """Write a share of draws with the error that they leave; a bound alone where all draws but a few say the same."""
    text = probability(share, digits, draws)
    if text[0] in "<>" or not np.isfinite(draws):
        return text
    return f"{text} ± {half_width(share, draws):.{digits}f}".replace(" ", "\N{NO-BREAK SPACE}")


def _listed(names: Any) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join([*map(str, names[:_MOST_NAMED]), *[f"and {more:,} more"] * (more > 0)])
