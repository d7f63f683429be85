"""Entities of documents, and CoNLL files of them: the format of the shared tasks of 2011 and 2012.

A file has one line for each token, an empty line between sentences, and brackets in the last column: ``(0`` where a
mention of entity 0 begins, ``0)`` where it ends, ``(0)`` for a mention of one token, ``|`` or nothing between several,
and ``-``, ``_`` or ``*`` where there is none. ``#begin document NAME`` and ``#end document`` enclose a document.
"""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from consilience.data.codes import object_array
from consilience.data.contract import Contract, array, ids, size
from consilience.data.tables import Problems, find_file, read_text

__all__ = ["Chains", "read_conll"]

_BRACKET = re.compile(r"\(([^()|]+)\)|\(([^()|]+)|([^()|]+)\)")
_NOTHING = ("-", "_", "*")
_ENDINGS = (".conll", ".key", ".response", ".txt", ".v4_gold_conll", ".v4_auto_conll")


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Chains(Contract):
    """Mentions and the entities that they are of; made by `read_conll` or `from_spans`.

    Parameters
    ----------
    document, start, end : int32, shape ``(mention,)``; code of the document, and first and last token, counted from 0
        in the document. Mentions are sorted by these, longer ones first.
    entity : int32, shape ``(mention,)``; entities of different documents have different codes. -1 for a markable that
        refers to nothing, such as the "it" of "it rains".
    num_mentions, num_documents, num_entities : sizes.
    documents, entities : object arrays of names in code order; ``None`` in a copy that went through JAX.
    """

    document: Any = array()
    start: Any = array()
    end: Any = array()
    entity: Any = array()
    num_mentions: int = size()
    num_documents: int = size()
    num_entities: int = size()
    documents: Any = ids()
    entities: Any = ids()

    @classmethod
    def from_spans(
        cls, document: np.ndarray, start: np.ndarray, end: np.ndarray, entity: np.ndarray, *,
        documents: Any, entities: Any = None,
    ) -> Self:  # fmt: skip
        """Take mentions in any order.

        Parameters
        ----------
        document : codes into ``documents``.
        start, end : first and last token of each mention.
        entity : codes into ``entities``, -1 where the mention refers to nothing.
        documents, entities : names in code order; of entities the codes as texts where absent. A name may occur in
            several documents, for different codes.
        """
        order = np.lexsort((entity, -np.asarray(end), start, document))
        document, start, end, entity = (
            np.asarray(values, np.int32)[order] for values in (document, start, end, entity)
        )
        size = int(entity.max(initial=-1)) + 1 if entities is None else len(entities)
        return cls(
            document=document, start=start, end=end, entity=entity,
            num_mentions=len(entity), num_documents=len(documents), num_entities=size,
            documents=object_array(documents),
            entities=object_array(map(str, range(size)) if entities is None else entities),
        )  # fmt: skip


_Mention = tuple[int, int, int, tuple[int, str]]  # document, first token, minus the last one, entity


def read_conll(source: Any) -> Chains:
    """Read the entities of a CoNLL file.

    Parameters
    ----------
    source : path of a file, also with ``.gz``.

    Returns
    -------
    chains : documents in the order of the file. A span that stands in the file twice is kept twice.

    Raises
    ------
    InputError : with the line of each bracket that has no partner, and of documents that do not end.
    """
    path, _ = find_file(source, _ENDINGS)
    problems = Problems(str(path))
    documents, mentions = read_text(path, problems, lambda stream: _parse(stream, problems))
    problems.raise_any()
    if not documents:
        raise problems.fail("there is no line '#begin document'", "check that this is a CoNLL file")
    entities = {name: code for code, name in enumerate(sorted({mention[3] for mention in mentions}))}
    columns = np.array([(*mention[:3], entities[mention[3]]) for mention in mentions], np.int32).reshape(-1, 4)
    document, start, negative, entity = columns.T
    return Chains.from_spans(
        document, start, -negative, entity, documents=documents, entities=[name for _, name in entities]
    )


def _parse(stream: Iterator[str], problems: Problems) -> tuple[list[str], list[_Mention]]:
    """Return the names of the documents, and the mentions."""
    documents: list[str] = []
    mentions: list[_Mention] = []
    inside, token = False, 0
    open_at: dict[str, list[tuple[int, int]]] = defaultdict(list)
    line = 0
    for line, text in enumerate(stream, 1):
        content = text.strip()
        if content.startswith("#begin document"):
            if inside:
                problems.add("a document begins before the last one ends", "add #end document", row=f"line {line}")
            documents.append(content.removeprefix("#begin document").strip())
            inside, token = True, 0
            open_at.clear()
        elif content.startswith("#end document"):
            _report_open(open_at, problems)
            inside = False
        elif content and not content.startswith("#"):
            if not inside:
                problems.add("a token stands outside of documents", "add #begin document", row=f"line {line}")
                break
            cell = content.split()[-1]
            if cell not in _NOTHING:
                mentions += _mentions(cell, len(documents) - 1, token, line, open_at, problems)
            token += 1
    if inside:
        problems.add("the last document does not end", "add #end document", row=f"line {line}")
        _report_open(open_at, problems)
    return documents, mentions


def _mentions(
    cell: str, document: int, token: int, line: int, open_at: dict[str, list[tuple[int, int]]], problems: Problems
) -> Iterator[_Mention]:
    """Yield the mentions that end at a token; remember those that begin."""
    position = 0
    for bracket in _BRACKET.finditer(cell):
        if cell[position : bracket.start()].strip("|"):
            break
        position = bracket.end()
        single, begins, ends = bracket.groups()
        if single is not None:
            yield document, token, -token, (document, single)
        elif begins is not None:
            open_at[begins].append((token, line))
        elif open_at[ends]:
            start, _ = open_at[ends].pop()
            yield document, start, -token, (document, ends)
        else:
            place = {"row": f"line {line}", "value": f"{ends})"}
            problems.add(f"a mention of entity {ends} ends that never began", "add its opening bracket", **place)
    if cell[position:].strip("|"):
        remedy = "write (entity, entity) or (entity), with | between several, or - where there is none"
        problems.add("this is no column of brackets", remedy, row=f"line {line}", value=cell)


def _report_open(open_at: dict[str, list[tuple[int, int]]], problems: Problems) -> None:
    for entity, places in open_at.items():
        for _, line in places:
            place = {"row": f"line {line}", "value": f"({entity}"}
            problems.add(f"a mention of entity {entity} begins here and never ends", "add its closing bracket", **place)
    open_at.clear()
