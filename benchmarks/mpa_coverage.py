"""Whether scores against a crowd's chains are as uncertain as they say: part of the benchmark `mpa`.

On simulated annotations the true chains are known. A response has one true score, against them, and one score for each
draw of the chains of a fit. The middle 90 % of the draws' scores should hold the true score in 90 % of the cases, whole
data sets and single documents alike. Two responses are scored. The silver chains of the fit come from the crowd alone,
so that they test what the fit believes of the chains. The chains of a system have never seen the crowd, and agree with
the truth where the crowd errs: they know something that no fit of the crowd can know, and score better against the
truth than against draws even of a fit that is right.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.recording import grouped
from consilience.data import Mentions
from consilience.data.conll import Chains
from consilience.evaluation.chains import spans_of, value_of
from consilience.evaluation.coreference_scores import score_coreference
from consilience.evaluation.registry import METRICS
from consilience.evaluation.silver import silver_chains
from consilience.models.truth.chains import NEW, follow_links

SILVER, SYSTEM = "silver chains", "system"
"""The responses: chains of the fit's own most probable links, and chains that do not come from the crowd."""

_INTERVAL = (0.05, 0.95)
_MOVED = 0.1    # share of the system's links


def system_links(mentions: Mentions, seed: int, moved: float = _MOVED) -> np.ndarray:
    """Return the true links with some moved at random; see `moved_links`."""
    return moved_links(mentions, np.array(mentions.gold_antecedent), seed, moved)


def moved_links(mentions: Mentions, links: np.ndarray, seed: int, moved: float) -> np.ndarray:
    """Return links with some moved at random, as `follow_links` takes them.

    Parameters
    ----------
    mentions : in the order of their documents.
    moved : share of mentions. Each of these goes to any mention before it in its document, or begins an entity, with
        equal probabilities; some stay where they were by chance.
    """
    random = np.random.default_rng([seed, mentions.num_mentions])
    links = links.copy()
    document = np.asarray(mentions.document)
    chosen = np.flatnonzero(random.random(len(links)) < moved)
    first = np.searchsorted(document, document[chosen])
    # One before the first mention of the document stands for a new entity.
    target = random.integers(first - 1, chosen)
    links[chosen] = np.where(target < first, NEW, target)
    return links


def coverage(fit: Any, seed: int) -> list[dict[str, Any]]:
    """Return a row for each response, with and without entities of one mention.

    Parameters
    ----------
    fit : of simulated mentions, with gold labels and spans.
    seed : of the system's chains.

    Returns
    -------
    Rows with the true CoNLL score, the mean over draws and its interval in per cent, whether the interval holds the
    true score, and of the documents: how many per cent of the intervals hold the true score, and in how many it lies
    below and above.
    """
    mentions: Mentions = fit.data
    links = np.stack([np.asarray(mentions.gold_antecedent), system_links(mentions, seed)])
    truth, system = (spans_of(mentions, entity) for entity in follow_links(links))
    responses = {SILVER: silver_chains(fit).to_chains(), SYSTEM: system}
    rows = []
    for singletons in (False, True):
        for name, response in responses.items():
            found = covered(truth, response, fit.truth, singletons)
            rows.append({"response": name, "singletons": singletons, **found})
    return rows


def _drawn_scores(labels: Any, response: Chains, singletons: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the CoNLL score of all documents ``(draw,)`` and of each ``(draw, document)`` over draws of the chains."""
    scoring = METRICS["chains"](labels.read_as("chains"), [response], ["conll"], singletons=singletons)
    sums = np.concatenate([block.values for block in scoring.blocks()], axis=3)
    whole = scoring.widened(scoring.value("conll", sums.sum(axis=2)))[0]
    return whole, scoring.value("conll", sums)[0].T


def covered(truth: Chains, response: Chains, labels: Any, singletons: bool) -> dict[str, Any]:
    """Return the true score of a response, and what intervals over draws of the labels of mentions hold."""
    whole, of_documents = _drawn_scores(labels, response, singletons)
    true = score_coreference(truth, response, singletons=singletons)
    low, high = np.quantile(whole, _INTERVAL)
    true_of_documents = value_of("conll", true.sums)
    lows, highs = np.quantile(of_documents, _INTERVAL, axis=0)
    below, above = true_of_documents < lows, true_of_documents > highs
    return {
        "true": 100 * true.conll, "UA": 100 * float(whole.mean()), "low": 100 * float(low), "high": 100 * float(high),
        "covered": bool(low <= true.conll <= high), "documents": len(lows),
        "documents covered": 100 * float(np.mean(~below & ~above)), "documents below": 100 * float(below.mean()),
        "documents above": 100 * float(above.mean()), "true of documents": 100 * float(true_of_documents.mean()),
        "UA of documents": 100 * float(of_documents.mean()),
    }  # fmt: skip


def calibration(fit: Any) -> dict[str, float]:
    """Return how many labels are right and how probable the fit has them, in per cent; and how links hang together.

    'Shared' is the share of links whose antecedent has another link too, in per cent; among the true ones there are
    none, since each goes to the nearest mention of the entity. 'Squares' is the sum of squared sizes of entities, which
    is the smaller the more the mentions of long entities are scattered. Of draws these are means.
    """
    mentions: Mentions = fit.data
    lead, chains = fit.truth.lead, fit.truth.read_as("chains")
    labels = chains.labels
    links = {
        "true": np.asarray(mentions.gold_antecedent)[None], "silver": labels.antecedent[lead.label][None],
        "draws": chains.links[chains.drawn],
    }  # fmt: skip
    return {
        "labels right": 100 * float((lead.label == labels.gold).mean()),
        "mean probability": 100 * float(lead.probability.mean()),
        **{f"shared, {name}": 100 * _shared(of) for name, of in links.items()},
        **{f"squares, {name}": _squares(follow_links(of)) for name, of in links.items()},
    }


def _shared(links: np.ndarray) -> float:
    """Return the share of links whose antecedent has another link too, the mean over draws ``(draw, mention)``."""
    shares = []
    for of_draw in links:
        number = np.bincount(of_draw[of_draw >= 0], minlength=1)
        shares.append(number[number > 1].sum() / max(number.sum(), 1))
    return float(np.mean(shares))


def _squares(entity: np.ndarray) -> float:
    """Return the sum of squared sizes of entities, the mean over draws ``(draw, mention)``."""
    return float(np.mean([np.sum(np.bincount(of_draw[of_draw >= 0]) ** 2.0) for of_draw in entity]))


def coverage_means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each scenario, fit, response and count of singletons: means over seeds."""
    names = ("scenario", "fit", "response", "singletons")
    means = ("documents covered", "documents below", "documents above", "true", "UA", "true of documents",
             "UA of documents")  # fmt: skip
    table = []
    for group, of_group in grouped(rows, names).items():
        covered = sum(row["covered"] for row in of_group)
        table.append(
            dict(zip(names, group, strict=True))
            | {"sets covered": f"{covered} of {len(of_group)}"}
            | {name: float(np.mean([row[name] for row in of_group])) for name in means}
            | {"width": float(np.mean([row["high"] - row["low"] for row in of_group]))}
        )
    return table
