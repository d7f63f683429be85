"""Scores of a response against a key, as the official scorer gives them: `score_coreference`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.data.conll import as_chains
from consilience.errors import UnknownName, UnsupportedRequest
from consilience.evaluation.chains import BASES, DocumentSums, Share, share, sums_of_documents, value_of
from consilience.evaluation.coreference_matching import match

_ALL = (*BASES, "non-referring")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CoreferenceScores:
    """How well the entities of a response agree with those of a key.

    Parameters
    ----------
    sums : DocumentSums
        For each score the numerator and the denominator of recall, and of precision, float64, ``(part, document)``; of
        BLANC those of links and those of pairs that do not corefer.
    documents : sequence
        Names of the key's documents.
    singletons : bool
        Whether entities of one mention were counted.

    Examples
    --------
    >>> import consilience as cs
    >>> spans = {"document": [0, 0, 0], "start": [0, 3, 5], "end": [1, 3, 5], "documents": ["news"]}
    >>> key = cs.Chains.from_spans(entity=[0, 0, 1], **spans)
    >>> scores = cs.score_coreference(key, key)
    >>> scores.conll
    1.0
    """

    sums: DocumentSums
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
        of_all = {base: values.sum(axis=1, keepdims=True) for base, values in self.sums.items()}
        return float(value_of("conll", of_all)[0])

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
    key, response : jax.Array
        As `read_conll` returns them, paths that it reads, or `SilverChains`; documents are matched by name, and
        mentions by their spans.
    singletons : bool, default True
        False leaves out entities of one mention, on both sides.

    Returns
    -------
    CoreferenceScores
        Recall, precision and F of mentions, MUC, B³, CEAF-e, CEAF-m, BLANC and LEA, the CoNLL average, and those of
        mentions that refer to nothing, matched by exact span. Numerators and denominators are summed over documents
        before they are divided. See `consilience.evaluation.chains` for definitions and sources.

    Raises
    ------
    InputError : the files have no document in common.
    UnsupportedRequest : something else than chains is given.

    Examples
    --------
    >>> import consilience as cs
    >>> spans = {"document": [0, 0, 0], "start": [0, 3, 5], "end": [1, 3, 5], "documents": ["news"]}
    >>> key = cs.Chains.from_spans(entity=[0, 0, 1], **spans)
    >>> response = cs.Chains.from_spans(entity=[0, 0, 0], **spans)
    >>> scores = cs.score_coreference(key, response)
    >>> scores.table.set_index("score").loc["muc", ["recall", "precision"]].tolist()
    [1.0, 0.5]
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
