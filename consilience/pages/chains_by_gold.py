"""What a report says of chains beside the chains that gold labels make."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from consilience.evaluation.silver import SilverChains
from consilience.models.truth.against_gold import unused_gold
from consilience.models.truth.chains import follow_links, links_of
from consilience.pages import SURE, by_document
from consilience.pages.whole_chains import Whole
from consilience.printing import counted
from consilience.rounding import within

_MOST_NAMED = 4  # mentions by which chains differ


class ChainsByGold(NamedTuple):
    """Chains beside the gold chains, an entry each.

    Parameters
    ----------
    known : whether all mentions of the document have a gold label.
    same : whether exactly the mentions of the chain are one gold chain.
    told : that in words, and by which mentions the nearest gold chain differs.
    document : that it is of.
    """

    known: np.ndarray
    same: np.ndarray
    told: list[str]
    document: np.ndarray

    def right(self, which: np.ndarray) -> tuple[int, int]:
        """Return how many of some chains are exactly right, and of how many that is known."""
        return int(self.same[which & self.known].sum()), int((which & self.known).sum())

    def finding(self, whole: Whole) -> list[str]:
        """Say how many of the chains that are sure are exactly right; nothing where there are none."""
        right, number = self.right(whole.sure)
        if not number:
            return []
        own = whole.sure & self.known
        _, low, high = within(right / number, *by_document.share_interval(self.same[own], self.document[own]))
        expected = float(whole.probability[own].sum())
        several = len(np.unique(self.document[own])) >= by_document.LEAST
        share = f"The share of right chains is {low} to {high} (95 %), allowing for chains that share a document." if (
            several
        ) else (
            f"If chains were independent, the share of right chains would be {low} to {high} (95 %); the true interval "
            "is wider, because chains in one document depend on each other."
        )  # fmt: skip
        return [
            f"Of the {counted(number, 'chains')} with a probability of {SURE:g} or more, {_are_gold(right)}; the model "
            f"expected {expected:.1f}. {share}"
        ]

    @property
    def every(self) -> str:
        """Say how many of all chains are gold chains."""
        right, number = self.right(np.ones(len(self.same), bool))
        return f" Of {'the one chain' if number == 1 else f'all {number:,} chains'}, {_are_gold(right)}."

    def clause(self, whole: Whole) -> str:
        """Say the same in a clause, behind how many chains are sure."""
        right, number = self.right(whole.sure)
        which = "these" if number == whole.sure.sum() else f"the {number:,} of these that have gold labels"
        return f", and {_are_gold(right, of=f' of {which}')}" if number else ""


def chains_by_gold(fit: Any, named: Any, chains: SilverChains) -> ChainsByGold | None:
    """Return chains beside those of gold labels that the fit did not use; None where no document has all of them.

    Parameters
    ----------
    fit : of mentions.
    named : its truth, as `worded` writes it.
    chains : that the page shows.
    """
    data, codes = fit.data, unused_gold(fit.resolved)
    if codes is None:
        return None
    document, names = np.asarray(data.document), named.names()
    known = np.bincount(document, codes < 0, data.num_documents) == 0
    links = np.where(codes >= 0, links_of(data.label_codes())[np.maximum(codes, 0)], -1)
    gold = follow_links(links[None])[0]
    order = np.argsort(gold, kind="stable")
    starts = np.searchsorted(gold[order], np.arange(gold.max(initial=-1) + 2))
    members = np.split(np.argsort(chains.entity, kind="stable"), np.cumsum(np.bincount(chains.entity + 1))[:-1])[1:]
    found: list[tuple[bool, bool, str]] = []
    for own in members:
        if not known[document[own[0]]]:
            found.append((False, False, ""))
            continue
        of_gold = gold[own][gold[own] >= 0]
        if not len(of_gold):
            found.append((True, False, "none: refers to nothing"))
            continue
        code, times = np.unique(of_gold, return_counts=True)
        nearest = int(code[times.argmax()])
        true = order[starts[nearest] : starts[nearest + 1]]
        apart = _differs(names, np.setdiff1d(true, own), np.setdiff1d(own, true))
        found.append((True, not apart, apart or "the same"))
    is_known, same, told = zip(*found, strict=True) if found else ((), (), ())
    if not any(is_known):
        return None
    where = np.array([document[own[0]] for own in members], int)
    return ChainsByGold(np.array(is_known, bool), np.array(same, bool), list(told), where)


def _are_gold(number: int, of: str = "") -> str:
    return f"1{of} is exactly a gold chain" if number == 1 else f"{number:,}{of} are exactly gold chains"


def _differs(names: np.ndarray, more: np.ndarray, less: np.ndarray) -> str:
    """Say which mentions a gold chain has more than a chain, and which less; empty of the same ones."""
    parts = (f"{word} {_listed(names[own])}" for word, own in (("also", more), ("without", less)) if len(own))
    return "; ".join(parts)


def _listed(names: np.ndarray) -> str:
    if len(names) <= _MOST_NAMED:
        return ", ".join(map(str, names))
    return f"{', '.join(map(str, names[:_MOST_NAMED]))} and {counted(len(names) - _MOST_NAMED, 'more mentions')}"
