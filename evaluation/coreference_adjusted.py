"""Coreference scores against a crowd: any score of `coreference`, lifted over draws of the chains.

Each draw of the posterior is a key of its own, against which the response is scored; the score is the mean over draws,
and its interval says what the annotations leave open. The entities of a draw are scored as a whole, so that a link that
two draws disagree on counts with all that it connects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.data.conll import Chains
from consilience.evaluation.chains import follow_links
from consilience.evaluation.coreference_matching import Matching, match
from consilience.evaluation.coreference_scores import METRIC_FORMS, Sums, metrics_in, sums_of_documents, value_of
from consilience.evaluation.scores import Score
from consilience.evaluation.silver import drawn_links, mentions_of, silver_chains, spans_of

__all__ = ["DrawnSums", "evaluate_chains", "sums_over_draws", "title_of"]

# Mentions of all draws that are scored at a time.
_MOST_ROWS = 1 << 21


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ChainScore(Score):
    """A coreference score under uncertain chains; its table has a row for each document.

    The value is that of all documents together, which is not the mean of those of single documents.
    """

    unit: str = "document"

    @property
    def value(self) -> float:
        """Mean over draws."""
        return float(self.draws.mean())


@dataclass(frozen=True, kw_only=True)
class DrawnSums:
    """What the scores of responses are ratios of, for each draw and document.

    Parameters
    ----------
    draws : for each response the sums of each score, ``(part, draw, document)``.
    silver : the same against the most likely chains, as one draw.
    documents : names.
    """

    draws: list[Sums]
    silver: list[Sums]
    documents: Any


def sums_over_draws(
    fit: Any, responses: Sequence[Chains], metrics: tuple[str, ...], *, singletons: bool = True
) -> DrawnSums:
    """Score responses against all draws of the chains of a fit.

    Parameters
    ----------
    fit : a fit of mentions with spans.
    responses : of systems.
    metrics : names of scores, those that are made of others too.
    singletons : whether entities of one mention count.

    Raises
    ------
    UnsupportedRequest : the fit is not one of mentions, or the mentions have no spans.
    InputError : a response has no document in common with the mentions.
    """
    needed = metrics_in(metrics)
    data, _, _ = mentions_of(fit)
    # `from_spans` sorts the mentions: the codes of entities say where each of them went.
    key = spans_of(data, np.arange(data.num_mentions))
    rows = [match(key, response) for response in responses]

    def scored(entity: np.ndarray, response: Chains, row: Matching) -> Sums:
        sorted_entity = entity[:, np.asarray(key.entity)]
        return sums_of_documents(sorted_entity, response, row, key.num_documents, needed, singletons=singletons)

    found: list[list[Sums]] = [[] for _ in responses]
    links = drawn_links(fit)
    for block in _blocks(*links.shape):
        entity = follow_links(links[block])
        for place, (response, row) in enumerate(zip(responses, rows, strict=True)):
            found[place].append(scored(entity, response, row))
    silver = silver_chains(fit).entity[None]
    return DrawnSums(
        draws=[{one: np.concatenate([part[one] for part in parts], axis=1) for one in needed} for parts in found],
        silver=[scored(silver, response, row) for response, row in zip(responses, rows, strict=True)],
        documents=key.documents,
    )


def evaluate_chains(
    fit: Any, responses: Sequence[Chains], metrics: Sequence[str] = ("conll",), *, singletons: bool = True
) -> list[dict[str, ChainScore]]:
    """Score the entities of responses against the same draws of a fit, by metric; see `consilience.evaluate`."""
    found = sums_over_draws(fit, responses, tuple(metrics), singletons=singletons)
    return [
        {
            metric: ChainScore(
                title=title_of(metric, singletons=singletons), items=value_of(metric, of_draws).mean(axis=0),
                draws=value_of(metric, _added(of_draws)), point=value_of(metric, _added(silver)).item(),
                ids=found.documents,
            )
            for metric in metrics
        }
        for of_draws, silver in zip(found.draws, found.silver, strict=True)
    ]  # fmt: skip


def title_of(metric: str, *, singletons: bool) -> str:
    """Return what a score is called in words."""
    counted = "" if singletons else ", singletons excluded"
    base = metric.removesuffix("-recall").removesuffix("-precision")
    title = f"{metric}, {METRIC_FORMS[base]}" if base == metric else f"{base} {metric.removeprefix(f'{base}-')}"
    return f"{title}{counted}"


def _added(of_sums: Mapping[str, np.ndarray]) -> Sums:
    """Add up the documents."""
    return {metric: values.sum(axis=-1) for metric, values in of_sums.items()}


def _blocks(num_draws: int, num_mentions: int) -> Iterator[slice]:
    size = max(_MOST_ROWS // max(num_mentions, 1), 1)
    for start in range(0, num_draws, size):
        yield slice(start, start + size)
