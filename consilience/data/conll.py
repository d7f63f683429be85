"""Entities of documents, and CoNLL files of them.

Two formats are read, and told apart by the line ``# global.columns``, which only the second has:

* CoNLL-2012, of the shared tasks of 2011 and 2012. A file has one line for each token, an empty line between
  sentences, and brackets in the last column: ``(0`` where a mention of entity 0 begins, ``0)`` where it ends, ``(0)``
  for a mention of one token, ``|`` or nothing between several, and ``-``, ``_`` or ``*`` where there is none (or
  nothing after a tab). ``#begin document NAME`` and ``#end document`` enclose a document; the name is all that follows,
  the part included. A document without a name, as in OntoGUM, takes that of its file.
* CoNLL-UA, of Universal Anaphora: see `consilience.data.conll_ua`.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from consilience.data.codes import object_array
from consilience.data.conll_text import (
    ENDINGS_IN_FOLDERS,
    Cell,
    ConllText,
    Document,
    Mention,
    ending_of,
    find_conll_files,
)
from consilience.data.conll_ua import COLUMNS_LINE, parse_conll_ua
from consilience.data.contract import Contract, array, ids, of_file, size
from consilience.data.files import read_text
from consilience.data.problems import Problems, warn_input
from consilience.errors import InputError, InputProblem, UnsupportedRequest

NOTHING = ("-", "_", "*")
_BEGIN = re.compile(r"#\s*begin document\b(.*)")
_END = re.compile(r"#\s*end document\b.*")
BRACKET = re.compile(r"\(([^()|]+)\)|\(([^()|]+)|([^()|]+)\)")


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Chains(Contract):
    """Mentions and the entities that they are of; made by `read_conll` or `from_spans`.

    Parameters
    ----------
    document, start, end : int32, shape ``(mention,)``
        Code of the document, and first and last token, counted from 0 in the document. Mentions are sorted by these,
        longer ones first.
    entity : int32, shape ``(mention,)``
        Entities of different documents have different codes. Of a file they are in the order in which they appear. -1
        for a markable that refers to nothing, such as the "it" of "it rains".
    num_mentions, num_documents, num_entities : int
        sizes.
    documents, entities : sequence, optional
        Object arrays of names in code order; ``None`` in a copy that went through JAX.

    Examples
    --------
    >>> import consilience as cs
    >>> chains = cs.Chains.from_spans(
    ...     document=[0, 0, 0], start=[0, 3, 5], end=[1, 3, 5], entity=[0, 0, 1], documents=["news"]
    ... )
    >>> chains
    Chains(mentions=3, documents=1, entities=2)
    >>> chains.entity.tolist()
    [0, 0, 1]
    """

    reader = "read_conll"
    kind: ClassVar[str] = "chains"

    document: Any = array()
    start: Any = array()
    end: Any = array()
    entity: Any = array()
    num_mentions: int = size()
    num_documents: int = size()
    num_entities: int = size()
    documents: Any = ids("document")
    entities: Any = ids("entity")

    def _table(self, rows: slice = slice(None)) -> dict[str, np.ndarray]:
        found = {name: np.asarray(getattr(self, name))[rows] for name in ("document", "start", "end", "entity")}
        return {name: self._called(values, name) for name, values in found.items()}

    @classmethod
    def from_spans(
        cls, document: np.ndarray, start: np.ndarray, end: np.ndarray, entity: np.ndarray, *,
        documents: Any, entities: Any = None,
    ) -> Self:  # fmt: skip
        """Take mentions in any order.

        Parameters
        ----------
        document : numpy.ndarray
            Codes into ``documents``.
        start, end : numpy.ndarray
            First and last token of each mention.
        entity : numpy.ndarray
            Codes into ``entities``, -1 where the mention refers to nothing.
        documents, entities : sequence
            Names in code order; of entities the codes as texts where absent. A name may occur in several documents, for
            different codes.
        """
        lengths = {len(column) for column in (document, start, end, entity)}
        if len(lengths) > 1:
            message = "every mention needs a document, a first and a last token and an entity"
            raise Problems("the spans").fail(message, "give arrays of one length")
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

    @classmethod
    @of_file
    def read(cls, source: Any) -> Chains:
        r"""Read the entities of CoNLL files.

        Parameters
        ----------
        source : path, data frame, dict of columns or list of rows
            Path of a file, also with ``.gz``; a folder, of which every file with a CoNLL ending but ``.txt`` is read,
            in the order of the names; or a list of paths of files. Files may be CoNLL-2012 or CoNLL-UA.

        Returns
        -------
        chains
            Documents in the order of the files and in them. A span that stands in a file twice is kept twice.
            Non-referring markables of CoNLL-UA have the entity -1.

        Raises
        ------
        InputError : with file and line of each bracket that has no partner, of documents that do not end, that have no
            name, or whose name occurs twice; and where a folder has no CoNLL file.

        Warns
        -----
        InputWarning : counting what chains cannot hold: zero anaphora, markables of several parts, split antecedents.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import consilience as cs
        >>> lines = ["#begin document news", "news 0 (0", "news 1 0)", "news 2 (0)|(1)", "#end document", ""]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "news.conll")
        ...     _ = path.write_text("\n".join(lines))
        ...     chains = cs.read_conll(path)
        >>> chains
        Chains(mentions=3, documents=1, entities=2)
        >>> chains.start.tolist(), chains.end.tolist()
        ([0, 2, 2], [1, 2, 2])
        """
        places: dict[str, str] = {}
        mentions: list[Mention] = []
        left_out: Counter[str] = Counter()
        found: list[InputProblem] = []
        for path in find_conll_files(source):
            text, problems = _read(path)
            first = len(places)
            for document in text.documents:
                if document.name in places:
                    message = f"the document {document.name!r} occurs twice; it began before in {places[document.name]}"
                    problems.add(message, "rename or leave out one of the two", row=f"line {document.line}")
                places.setdefault(document.name, f"{path}, line {document.line}")
            mentions += [one._replace(document=first + one.document) for one in text.mentions]
            left_out.update(text.left_out)
            found += problems.found
        if found:
            raise InputError(found)
        if left_out.total():
            counts = ", ".join(f"{count:,} {what}" for what, count in left_out.items() if count)
            warn_input(f"chains hold whole spans of tokens and one entity for each; left out: {counts}")
        return _chains(mentions, list(places))

    @classmethod
    def recognises(cls, source: Any) -> bool:
        """Return whether a source is the path of a file with a CoNLL ending, or of a folder."""
        if not isinstance(source, str | os.PathLike):
            return False
        return os.path.isdir(source) or ending_of(Path(source)) in ENDINGS_IN_FOLDERS


read_conll = Chains.read


def as_chains(given: Any) -> Chains:
    """Return chains, also of what can be made into them, or of a path from which they are read.

    Raises
    ------
    UnsupportedRequest : it is something else.
    """
    if isinstance(given, Chains):
        return given
    if isinstance(given, str | os.PathLike):
        return Chains.read(given)
    if hasattr(given, "to_chains"):
        return given.to_chains()
    raise UnsupportedRequest(
        f"coreference chains are expected, as read_conll returns them; this is {type(given).__name__}"
    )


def _read(path: Path) -> tuple[ConllText, Problems]:
    problems = Problems(str(path))
    name = name_of(path)
    text = read_text(path, problems, lambda stream: parse_conll(list(stream), problems, cells=False, name=name))
    if not text.documents and not problems.found:
        first = "#begin document" if text.columns is None else "# newdoc id = NAME"
        raise problems.fail(f"there is no line '{first}'", "check that this is a CoNLL file")
    return text, problems


def _chains(mentions: list[Mention], documents: list[str]) -> Chains:
    """Return mentions as codes, those of entities in the order in which the official scorer meets them."""
    seen: dict[tuple[int, str], tuple[int, bool, int]] = {}
    for one in mentions:
        if one.entity is not None:
            # Of the brackets in a cell, those of mentions of one token are read first.
            met, name = (one.start, one.end > one.start, one.place), (one.document, one.entity)
            seen[name] = min(met, seen.get(name, met))
    names = sorted(seen, key=lambda name: (name[0], seen[name]))
    codes = {name: code for code, name in enumerate(names)}
    entity = np.array([codes.get((one.document, one.entity or ""), -1) for one in mentions], np.int32)
    document, start, end = np.array([one[:3] for one in mentions], np.int32).reshape(-1, 3).T
    return Chains.from_spans(document, start, end, entity, documents=documents, entities=[name for _, name in names])


def name_of(path: Path) -> str:
    """Return the name of a document that has none: that of its file, without what says which kind of file it is."""
    return path.name.removesuffix(".gz").rsplit(".", 1)[0]


def parse_conll(lines: Sequence[str], problems: Problems, *, cells: bool = True, name: str = "") -> ConllText:
    """Return what a text in one of the formats holds; add what is wrong with it to the problems.

    Parameters
    ----------
    lines, problems : the text, and where to say what is wrong.
    cells : whether those of CoNLL-2012 are wanted too, which takes half of the time.
    name : of a document without one, as OntoGUM has them; of several in a file the later ones are numbered.

    Raises
    ------
    InputError : it is a CorefUD file, or its columns are not those of CoNLL-UA.
    """
    for number, line in enumerate(lines, 1):
        content = line.strip()
        if COLUMNS_LINE.fullmatch(content):
            return parse_conll_ua(lines, problems)
        if re.match(r"#\s*global\.Entity\b", content):
            message = "this is a CorefUD file, with entities in the column MISC, and no CoNLL-UA file"
            remedy = "convert it to CoNLL-2012 or CoNLL-UA"
            raise problems.fail(message, remedy, row=f"line {number}")
        if content and (not content.startswith("#") or _BEGIN.fullmatch(content)):
            break
    return _parse_2012(lines, problems, cells, name)


# ---- CoNLL-2012 ----


def _parse_2012(lines: Sequence[str], problems: Problems, cells: bool, file: str) -> ConllText:
    text, nameless = ConllText(), 0
    inside, token, line = False, 0, 0
    open_at: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for line, row in enumerate(lines, 1):
        content = row.strip()
        if content.startswith("#"):
            if begin := _BEGIN.fullmatch(content):
                if inside:
                    problems.add("a document begins before the last one ends", "add #end document", row=f"line {line}")
                    _report_open(open_at, problems)
                name = begin[1].strip()
                if not name and file:
                    nameless += 1
                    name = file if nameless == 1 else f"{file}/{nameless}"
                elif not name:
                    problems.add("the document has no name", "write #begin document NAME", row=f"line {line}")
                text.documents.append(Document(name, line))
                inside, token = True, 0
            elif _END.fullmatch(content):
                _report_open(open_at, problems)
                inside = False
        elif content:
            if not inside:
                problems.add("a token stands outside of documents", "add #begin document", row=f"line {line}")
                break
            document = len(text.documents) - 1
            start, stop = _find_cell(row)
            cell = row[start:stop]
            if cells:
                text.cells.append(Cell(line - 1, start, stop, document, token))
            if cell and cell not in NOTHING:
                text.mentions += _mentions(cell, document, token, line, open_at, problems)
            token += 1
    if inside:
        problems.add("the last document does not end", "add #end document", row=f"line {line}")
        _report_open(open_at, problems)
    return text


def _find_cell(row: str) -> tuple[int, int]:
    """Return where the last cell stands; after a tab it may be empty, unless there are brackets before that tab."""
    filled = row.rstrip()
    cell = filled.rsplit(None, 1)[-1]
    after_tab = row.rfind("\t") + 1
    if after_tab > len(filled) and not {"(", ")"} & set(cell):
        return after_tab, after_tab
    return len(filled) - len(cell), len(filled)


def _mentions(
    cell: str, document: int, token: int, line: int, open_at: dict[str, list[tuple[int, int, int]]], problems: Problems
) -> Iterator[Mention]:
    """Yield the mentions that end at a token; remember those that begin."""
    position = 0
    for bracket in BRACKET.finditer(cell):
        if cell[position : bracket.start()].strip("|"):
            break
        position = bracket.end()
        single, begins, ends = bracket.groups()
        if single is not None:
            yield Mention(document, token, token, single, position)
        elif begins is not None:
            open_at[begins].append((token, line, position))
        elif open_at[ends]:
            start, _, place_of_start = open_at[ends].pop()
            yield Mention(document, start, token, ends, place_of_start)
        else:
            place = {"row": f"line {line}", "value": f"{ends})"}
            problems.add(f"a mention of entity {ends} ends that never began", "add its opening bracket", **place)
    if cell[position:].strip("|"):
        remedy = "write (entity, entity) or (entity), with | between several, or - where there is none"
        problems.add("this is no column of brackets", remedy, row=f"line {line}", value=cell)


def _report_open(open_at: dict[str, list[tuple[int, int, int]]], problems: Problems) -> None:
    for entity, places in open_at.items():
        for _, line, _ in places:
            place = {"row": f"line {line}", "value": f"({entity}"}
            problems.add(f"a mention of entity {entity} begins here and never ends", "add its closing bracket", **place)
    open_at.clear()
