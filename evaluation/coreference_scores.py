"""Scores of a response against a key, as the official scorer gives them: `score_coreference`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import Float
from consilience.data.conll import Chains, as_chains
from consilience.errors import UnknownName, UnsupportedRequest
from consilience.evaluation.coreference import CONLL, METRICS, Share, overlap, share, sums
from consilience.evaluation.coreference_matching import Matching, match, of_rows

__all__ = [
    "METRIC_FORMS",
    "CoreferenceScores",
    "Sums",
    "is_coreference_metric",
    "metrics_in",
    "score_coreference",
    "sums_of_documents",
    "value_of",
]

Sums = dict[str, np.ndarray]
"""For each score what its recall and precision are ratios of, ``(part, …)``."""

METRIC_FORMS = {
    "conll": "mean F of MUC, B³ and CEAF-e",
    **{name: f"F of {name.upper()}" for name in METRICS},
    "non-referring": "F of mentions that refer to nothing",
}
"""Names of scores for `evaluate`; all but the first also with ``-recall`` or ``-precision`` behind."""

_ALL = (*METRICS, "non-referring")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CoreferenceScores:
    """How well the entities of a response agree with those of a key.

    Parameters
    ----------
    sums : for each score the numerator and the denominator of recall, and of precision, float64,
        ``(part, document)``; of BLANC those of links and those of pairs that do not corefer.
    documents : names of the key's documents.
    singletons : whether entities of one mention were counted.
    """

    sums: Sums
    documents: Any
    singletons: bool

    def __getitem__(self, metric: str) -> Share:
        """Return recall, precision and F of one score: ``scores["muc"].f1``."""
        if metric not in self.sums:
            raise UnknownName(f"no coreference score is called {metric!r}; there are {', '.join(self.sums)}")
        return Share(*(one.item() for one in share(metric, self.sums[metric].sum(axis=1, keepdims=True))))

    @property
    def conll(self) -> float:
        """The mean F of MUC, B³ and CEAF-e."""
        return float(np.mean([self[metric].f1 for metric in CONLL]))

    @property
    def table(self) -> Any:
        """Data frame with one row a score: ``score, recall, precision, f1``, and for CoNLL the last alone."""
        import pandas

        rows = [{"score": metric, **self[metric]._asdict()} for metric in self.sums if self._told(metric)]
        nothing = float("nan")
        rows.append({"score": "conll", "recall": nothing, "precision": nothing, "f1": self.conll})
        return pandas.DataFrame(rows)

    @property
    def by_document(self) -> Any:
        """Data frame with one row a document: ``document``, the F of each score, and ``conll``."""
        import pandas

        columns = {metric: share(metric, values).f1 for metric, values in self.sums.items() if self._told(metric)}
        return pandas.DataFrame(
            {"document": np.asarray(self.documents), **columns, "conll": value_of("conll", self.sums)}
        )

    def _told(self, metric: str) -> bool:
        return metric != "non-referring" or bool(self.sums[metric].any())

    def __repr__(self) -> str:
        of_all = self.sums["mentions"].sum(axis=1)
        counted = "included" if self.singletons else "excluded"
        lines = [
            f"{len(self.documents):,} documents; {of_all[1]:,.0f} mentions of the key and {of_all[3]:,.0f} of the "
            f"response, {of_all[0]:,.0f} in common; singletons {counted}",
            f"{'':14}{'recall':>9}{'precision':>11}{'F1':>9}",
        ]
        for metric in filter(self._told, self.sums):
            found = self[metric]
            lines.append(f"{metric:14}{found.recall:9.2%}{found.precision:11.2%}{found.f1:9.2%}")
        return "\n".join([*lines, f"{'conll':14}{'':20}{self.conll:9.2%}"])


def score_coreference(key: Any, response: Any, *, singletons: bool = True) -> CoreferenceScores:
    """Score the entities of a response against those of a key.

    Parameters
    ----------
    key, response : as `read_conll` returns them, or `SilverChains`; documents are matched by name, and mentions by
        their spans.
    singletons : False leaves out entities of one mention, on both sides.

    Returns
    -------
    CoreferenceScores : recall, precision and F of mentions, MUC, B³, CEAF-e, CEAF-m, BLANC and LEA, the CoNLL average,
        and those of mentions that refer to nothing, matched by exact span. Numerators and denominators are summed over
        documents before they are divided. See `consilience.evaluation.coreference` for definitions and sources.

    Raises
    ------
    InputError : the files have no document in common.
    UnsupportedRequest : something else than chains is given.
    """
    key, response = as_chains(key), as_chains(response)
    if not isinstance(singletons, bool):
        raise UnsupportedRequest(f"singletons is {singletons!r}; give True or False")
    rows = match(key, response)
    entity = np.asarray(key.entity)[None]
    found = sums_of_documents(entity, response, rows, key.num_documents, _ALL, singletons=singletons)
    return CoreferenceScores(
        sums={metric: values[:, 0] for metric, values in found.items()}, documents=key.documents, singletons=singletons
    )


def sums_of_documents(
    entity: np.ndarray, response: Chains, rows: Matching, num_documents: int, metrics: tuple[str, ...], *,
    singletons: bool,
) -> Sums:  # fmt: skip
    """Return the sums of scores for each draw of the key's entities and each document, ``(part, draw, document)``.

    Parameters
    ----------
    entity : shape ``(draw, mention)``; entities of the key's mentions, -1 where one refers to nothing.
    response, rows : the response, and which of its mentions are the key's.
    num_documents : of the key.
    metrics : names of scores.
    """
    sides = of_rows(entity, rows.key), of_rows(np.asarray(response.entity)[None], rows.response)
    # A row without mentions in the last document keeps that document's place.
    document = np.append(rows.document, num_documents - 1)
    of_key, of_response = (np.pad(side, ((0, 0), (0, 1)), constant_values=-1) for side in sides)
    twin = None if rows.twin is None else np.append(rows.twin, len(rows.twin))
    found = overlap(of_key, of_response, document, singletons=singletons, by_document=True, twin=twin)
    result = {metric: sums(found, metric) for metric in metrics if metric != "non-referring"}
    if "non-referring" in metrics:
        one, other = ((place >= 0) & (side < 0) for place, side in zip((rows.key, rows.response), sides, strict=True))
        both, one, other = (
            _counts(chosen, rows.document, num_documents) for chosen in (one & other, one, other | np.zeros_like(one))
        )
        result["non-referring"] = np.stack([both, one, both, other])
    shape = (len(entity), num_documents)
    return {metric: values.reshape(len(values), *shape) for metric, values in result.items()}


def _counts(chosen: np.ndarray, document: np.ndarray, num_documents: int) -> Float[np.ndarray, " unit"]:
    cell = np.arange(len(chosen))[:, None] * num_documents + document
    return np.bincount(cell[chosen], minlength=len(chosen) * num_documents).astype(float)


# One number of many sums ----------------------------------------------------------------------------------------------


def is_coreference_metric(name: Any) -> bool:
    """Return whether a name is that of a score of coreference."""
    return isinstance(name, str) and (name == "conll" or _split(name)[0] in _ALL)


def value_of(name: str, of_sums: Mapping[str, np.ndarray]) -> Float[np.ndarray, "*units"]:
    """Return the score of a name from sums ``(part, …)``."""
    if name == "conll":
        return np.mean([share(metric, of_sums[metric]).f1 for metric in CONLL], axis=0)
    metric, of = _split(name)
    return getattr(share(metric, of_sums[metric]), of)


def metrics_in(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the scores whose sums are needed.

    Raises
    ------
    UnknownName : the text lists the names.
    """
    for name in names:
        if not is_coreference_metric(name):
            forms = "\n".join(f"  {form:14} {line}" for form, line in METRIC_FORMS.items())
            raise UnknownName(
                f"no score of coreference is called {name!r}; there are these, all but the first also with -recall or "
                f"-precision behind:\n{forms}"
            )
    return tuple(dict.fromkeys(one for name in names for one in (CONLL if name == "conll" else _split(name)[:1])))


@functools.cache
def _split(name: str) -> tuple[str, str]:
    """Return the score and which of its numbers a name means."""
    for of in ("recall", "precision"):
        if name.endswith(f"-{of}"):
            return name.removesuffix(f"-{of}"), of
    return name, "f1"
