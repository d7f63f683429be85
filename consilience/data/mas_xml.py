"""MAS-XML, the format in which the Phrase Detectives corpora keep everything that every player said.

A document is running text in XML, with a ``<W>`` for each token and a ``<ne id="ne1">`` around each markable. What
players said of a markable stands in a ``<PDante id="ne1">`` somewhere after it, one ``<anchor>`` for each answer::

    <anchor mode="a" type="DO" ante="ne1" user_id="7f2c" agree="y" />

``mode`` is ``a`` (a player's own annotation), ``v`` (the player validates the label of somebody else: ``agree`` is
``y`` or ``n``) or ``e`` (an expert's label, ``favoured="y"`` where it is the best of several). ``type`` is ``DN``,
``DO``, ``NR``, ``PR`` or, of experts, ``SE`` (the same entity as a mention that is not the nearest). ``ante`` is the
antecedent, or several with spaces between (a split antecedent); a ``PR`` may have none.

The fields are those that the corpora's READMEs and their document type ``masxmlpd.dtd`` 2.9 describe; attributes,
their values, the space between antecedents and UTF-8 are as in the exported documents that the DALI project published
with its preprocessing pipeline. These have a younger layout, which is read too: markables are ``<am id="am1"
span="w0..w1" />`` after their paragraph, and ``ante="ne1"`` means ``am1``. No complete release has been read with
this, so whatever else a file may hold is refused with its line, not guessed.

Files are not trusted: the document type is never opened, nothing is fetched, and declarations of entities are refused.
"""

from __future__ import annotations

import os
import re
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

import numpy as np

from consilience.data.cells import Table
from consilience.data.columns import all_columns
from consilience.data.files import find_file
from consilience.data.problems import Problems, warn_input
from consilience.data.tables import read_table
from consilience.errors import InputError

_KINDS = ("DN", "DO", "NR", "PR", "SE")
_TEXTS = ("mention_id", "annotator_id", "annotation", "gold", "document_id")
_ENCODINGS = ("utf-8", "utf-16", "utf-16le", "utf-16be", "iso-8859-1", "us-ascii", "ascii", "windows-1252")
_ANSWERS = {"y": True, "1": True, "true": True, "n": False, "0": False, "false": False}
_NOT_TEXT = ("header", "primaryData", "PDante")
"""Elements whose text is about the document, not of it."""

_SPAN = re.compile(r"(\S+)\.\.(\S+)")
_ENTITY_IN_TAG = re.compile(rb"<[^<>!?][^<>]*?&(?!amp;|lt;|gt;|quot;|apos;|#)([^;<>\s]*)")
_NOBODY = "nobody"
"""Annotator of the rows that only make a mention known; names of annotators that no annotation uses are left out."""


def mas_xml_table(source: Any, *, validations: str) -> Table:
    """Return files in MAS-XML as a table with the columns of `read_mentions`, a row for each markable and each answer.

    Parameters
    ----------
    source, validations : as of `read_mas_xml`.

    Raises
    ------
    InputError : with file and line of everything that is not as the head of this file says.
    """
    several, paths = _files(source)
    problems = Problems(None if several else str(paths[0]))
    rows = _Rows([str(path) for path in paths])
    left_out: Counter[str] = Counter()
    file_of_document: dict[str, Path] = {}
    for number, path in enumerate(paths):
        document = _Document(path, Problems(str(path), problems.found), validations)
        document.read()
        if document.name in file_of_document:
            message = f"{file_of_document[document.name]} is a document of the same name"
            document.problems.add(message, "rename one of the files, or leave it out", value=document.name)
        file_of_document[document.name] = path
        document.add_to(rows, number)
        left_out.update(document.left_out)
    problems.raise_any()
    if not any(rows.columns["annotation"]):
        raise problems.fail("no player annotated anything", "give files with anchors of mode a")
    # Validations alone, which are left out on request, are not worth a warning.
    if any(left_out[what] for what in left_out if what != _VALIDATIONS):
        warn_input("of the MAS-XML: " + "; ".join(f"{count:,} {what}" for what, count in left_out.items()))
    return rows.table(problems)


def _files(source: Any) -> tuple[bool, list[Path]]:
    """Return whether more than one file may be meant, and the files."""
    if isinstance(source, str | os.PathLike):
        if not os.path.isdir(source):
            return False, [_file(source)]
        found = sorted(path for path in Path(source).rglob("*.[xX][mM][lL]") if not path.name.startswith("."))
    else:
        found = [_file(path) for path in source]
        source = None
    if not found:
        problems = Problems(None if source is None else str(source))
        raise problems.fail("there is no .xml file", "give an .xml file, or a folder or list of them")
    return True, found


def _file(source: Any) -> Path:
    path, _ = find_file(source, (".xml",))
    if path.suffix.lower() == ".gz":
        raise Problems(str(path)).fail("compressed XML is not read", "decompress it first")
    return path


_HIDDEN = "hidden markables were left out"
_TO_HIDDEN = "labels that point to a hidden markable were left out"
_SEVERAL = "labels with several antecedents were left out"
_SAME_ENTITY = "answers of type SE were left out"
_DISAGREE = "gold labels on which experts differ were taken for unknown"
_REFUSED = "annotations with agree=n were left out"
_EDITED = "markables have a span corrected by characters, and kept their tokens"
_NAMELESS = "markables without an id were left out"
_VALIDATIONS = "validations were left out (validations='ignore')"


class _Rows:
    """The rows of a table of mentions, and where each comes from."""

    def __init__(self, files: Sequence[str]) -> None:
        self.files = files
        self.columns: dict[str, list[str]] = {role: [] for role in _TEXTS}
        self.numbers: dict[str, array[int]] = {role: array("i") for role in ("start", "end", "file", "line")}

    def add(self, texts: tuple[str, ...], numbers: tuple[int, ...]) -> None:
        for values, text in zip(self.columns.values(), texts, strict=True):
            values.append(sys.intern(text))
        for counts, number in zip(self.numbers.values(), numbers, strict=True):
            counts.append(number)

    def table(self, problems: Problems) -> Table:
        """Return the rows as a table, whose gold column is there only if some gold label is known."""
        columns = {**self.columns, "start": self.numbers["start"], "end": self.numbers["end"]}
        if not any(self.columns["gold"]):
            del columns["gold"]
        table = read_table(columns, all_columns)
        lines = np.asarray(self.numbers["line"])
        files = self.numbers["file"]
        return _PlacedTable(table.columns, table.num_rows, problems, "line {}", lines, self.files, files)


@dataclass
class _PlacedTable(Table):
    """A table of which each row is a line of a file of its own.

    Parameters
    ----------
    files : paths.
    file_of_row : shape ``(row,)``; position in ``files``.
    """

    files: Sequence[str] = field(default_factory=list)
    file_of_row: Sequence[int] = field(default_factory=list)

    def place(self, row: int) -> str:
        """Return the line, and the file where there are several."""
        line = super().place(row)
        return line if self.problems.file else f"{self.files[self.file_of_row[row]]}, {line}"


class _Position(NamedTuple):
    """How much of the text was read."""

    tokens: int
    words: int


class _Markable(NamedTuple):
    """A markable: its line, and what was read before it began and when it ended."""

    line: int
    begin: _Position
    end: _Position


class _Anchor(NamedTuple):
    """An answer: of which markable, where it stands, and what it says."""

    markable: str
    line: int
    mode: str
    kind: str
    antecedents: list[str]
    user: str
    favoured: bool


class _Document:
    """Reads one file, event by event."""

    def __init__(self, path: Path, problems: Problems, validations: str) -> None:
        self.path, self.problems, self.validations = path, problems, validations
        self.name = path.stem.removesuffix("-game")
        self.left_out: Counter[str] = Counter()
        self._markables: dict[str, _Markable] = {}
        self._spans: list[tuple[str, int, str]] = []
        self._hidden: set[str] = set()
        self._anchors: list[_Anchor] = []
        self._asked: list[tuple[str, int]] = []
        self._tokens, self._words, self._silent, self._depth = 0, 0, 0, 0
        self._token_of_id: dict[str, int] = {}
        self._open: list[tuple[str, int, _Position]] = []
        self._text: list[str] = []

    def read(self) -> None:
        """Parse the file, and note what is wrong with it."""
        try:
            content = self.path.read_bytes()
        except OSError as error:
            message = f"the file cannot be read ({error.strerror or error})"
            raise self.problems.fail(message, "check its permissions") from None
        if not content.strip():
            raise self.problems.fail("the file is empty", "check that this is the file you meant")
        self._parser = self._make_parser()
        try:
            self._parser.Parse(content, True)
        except expat.ExpatError as error:
            message = f"this is not well-formed XML: {expat.ErrorString(error.code)}"
            place = f"line {error.lineno}, character {error.offset + 1}"
            raise self.problems.fail(message, "correct it, or get the file again", row=place) from None
        # Expat passes over these in silence where there is a document type that it was not to open.
        if entity := _ENTITY_IN_TAG.search(content):
            line = content.count(b"\n", 0, entity.start(1)) + 1
            raise self._unknown_entity(entity[1].decode(errors="replace"), line)
        self._resolve_spans()
        if not self._markables and not self.problems.found:
            self.problems.add("the file has no markable", "check that it is MAS-XML, with elements <ne id=…>")

    # ---- parsing ----

    def _make_parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate()
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        # Without this an unknown entity is an error that does not say which one.
        parser.UseForeignDTD(True)
        # Defaults from a document type could make every element as long as its writer likes.
        parser.specified_attributes = True
        parser.XmlDeclHandler = self._declaration
        parser.EntityDeclHandler = self._entity_declaration
        parser.ExternalEntityRefHandler = self._external_entity
        parser.SkippedEntityHandler = self._skipped_entity
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text.append
        return parser

    def _line(self) -> int:
        return int(self._parser.CurrentLineNumber)

    def _problem(self, message: str, remedy: str, line: int, value: object = None) -> None:
        self.problems.add(message, remedy, row=f"line {line}", value=value)

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() not in _ENCODINGS:
            message = "the file is in an encoding that is not read here"
            raise self.problems.fail(message, "save it as UTF-8", row=f"line {self._line()}", value=encoding)

    def _entity_declaration(self, name: str, *_: Any) -> None:
        message = "the file declares an entity, which could stand for any amount of text, or for another file"
        remedy = "write out what it stands for, and delete the declaration"
        raise self.problems.fail(message, remedy, row=f"line {self._line()}", value=name)

    def _external_entity(self, *_: Any) -> int:
        raise self.problems.fail("the file refers to another file", "include it", row=f"line {self._line()}")

    def _skipped_entity(self, name: str, _: Any) -> None:
        raise self._unknown_entity(name, self._line())

    def _unknown_entity(self, name: str, line: int) -> InputError:
        message = "the entity is not known, because the document type is not opened"
        return self.problems.fail(message, "write the character itself", row=f"line {line}", value=f"&{name};")

    def _position(self) -> _Position:
        """Return how much of the text was read; words end at tags."""
        if self._text:
            if not self._silent:
                self._words += len("".join(self._text).split())
            self._text.clear()
        return _Position(self._tokens, self._words)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        position = self._position()
        self._depth += 1
        if self._depth == 1:
            self.name = attributes.get("id", "").strip() or self.name
        self._silent += name in _NOT_TEXT
        if name == "W":
            self._token_of_id[attributes.get("id", "")] = self._tokens
            self._tokens += 1
        elif name == "ne":
            self._open.append((_identity(attributes), self._line(), position))
        elif name == "am":
            self._spans.append((_identity(attributes), self._line(), attributes.get("span", "")))
        elif name == "PDante":
            self._ask(attributes)
        elif name == "anchor":
            self._answer({key: value.strip() for key, value in attributes.items()})

    def _end(self, name: str) -> None:
        position = self._position()
        self._depth -= 1
        self._silent -= name in _NOT_TEXT
        if name == "ne":
            identity, line, begin = self._open.pop()
            self._add_markable(identity, _Markable(line, begin, position))

    def _add_markable(self, identity: str, markable: _Markable) -> None:
        if not identity:
            self.left_out[_NAMELESS] += 1
        elif identity in self._markables:
            message = f"the markable on line {self._markables[identity].line} has the same id"
            self._problem(message, "give each markable an id of its own", markable.line, identity)
        else:
            self._markables[identity] = markable

    def _resolve_spans(self) -> None:
        """Find the tokens of markables that stand outside of the text."""
        for identity, line, span in self._spans:
            ends = _SPAN.fullmatch(span.strip())
            first, last = (self._token_of_id.get(end) for end in (ends.groups() if ends else ("", "")))
            if first is None or last is None:
                message = "the span of a markable is the ids of its first and last <W>, such as w3..w5"
                self._problem(message, "correct it", line, span)
            else:
                self._add_markable(identity, _Markable(line, _Position(first, 0), _Position(last + 1, 0)))

    def _ask(self, attributes: dict[str, str]) -> None:
        """Note of which markable the following answers are."""
        identity = _identity(attributes)
        self._asked.append((identity, self._line()))
        visibility = attributes.get("visibility", "").strip()
        if visibility == "hidden":
            self._hidden.add(identity)
        elif visibility not in ("", "visible"):
            message = "the visibility of a markable is hidden, or not given"
            self._problem(message, "correct it", self._line(), visibility)
        self.left_out[_EDITED] += bool(attributes.get("start_chr") or attributes.get("end_chr"))

    def _answer(self, attributes: dict[str, str]) -> None:
        """Note an answer that counts."""
        line, mode, kind = self._line(), attributes.get("mode", ""), attributes.get("type", "")
        if not self._asked:
            return self._problem("an anchor stands outside of <PDante>", "correct it", line)
        if mode not in ("a", "v", "e"):
            message = "the mode of an anchor is a (annotation), v (validation) or e (expert), written as an attribute"
            return self._problem(message, "correct it", line, mode)
        if kind not in _KINDS:
            message = "the type of an anchor is DN, DO, NR, PR or SE, written as an attribute"
            return self._problem(message, "correct it", line, kind)
        if kind == "SE":
            self.left_out[_SAME_ENTITY] += 1
        elif mode == "v" and self.validations == "ignore":
            self.left_out[_VALIDATIONS] += 1
        elif self._counts(mode, attributes, line):
            ante = attributes.get("ante", "")
            if (kind == "DO" and not ante) or (kind in ("DN", "NR") and ante) or re.search(r"[(),;|]", ante):
                message = "DO has an antecedent (several with spaces between), PR may have one, and DN and NR have none"
                return self._problem(message, "correct type or ante", line, f"{kind} {ante}".strip())
            favoured = attributes.get("favoured", "").lower() == "y"
            markable, user = self._asked[-1][0], attributes.get("user_id", "")
            self._anchors.append(_Anchor(markable, line, mode, kind, ante.split(), user, favoured))
        return None

    def _counts(self, mode: str, attributes: dict[str, str], line: int) -> bool:
        """Return whether an answer is one for the label that it names; note what is wrong with it."""
        if mode == "e":
            favoured = attributes.get("favoured", "")
            if favoured.lower() not in ("", "y", "n"):
                self._problem("favoured is y, n or empty", "correct it", line, favoured)
            return True
        if not attributes.get("user_id"):
            self._problem("the anchor has no user_id", "add it as an attribute: who answered", line)
        given = attributes.get("agree", "" if mode == "v" else "y")
        agrees = _ANSWERS.get(given.lower())
        if agrees is None:
            self._problem("agree is y or n", "correct it", line, given)
        if agrees is False and mode == "a":
            self.left_out[_REFUSED] += 1
        return agrees is True

    # ---- what was read ----

    def add_to(self, rows: _Rows, number: int) -> None:
        """Add a row for each markable, each gold label and each annotation."""
        for identity, line in self._asked:
            if identity not in self._markables:
                self._problem("there is no markable of this id", "correct the id of <PDante>", line, identity)
        counted = "tokens" if self._tokens else "words"
        spans = {
            identity: (getattr(markable.begin, counted), getattr(markable.end, counted) - 1)
            for identity, markable in self._markables.items()
            if identity not in self._hidden
        }
        self.left_out[_HIDDEN] += len(self._markables) - len(spans)

        def add(identity: str, line: int, annotator: str, annotation: str, gold: str) -> None:
            rows.add((identity, annotator, annotation, gold, self.name), (*spans[identity], number, line))

        # In the order of the text, longer ones first.
        for identity, (start, end) in sorted(spans.items(), key=lambda item: (item[1][0], -item[1][1])):
            line = self._markables[identity].line
            if start > end:
                self._problem("the markable has no token", "put its text inside of it", line, identity)
            add(identity, line, _NOBODY, "", "")
        answers = [anchor for anchor in self._anchors if anchor.markable in spans]
        for anchor in self._experts(answers):
            add(anchor.markable, anchor.line, _NOBODY, "", self._label(anchor))
        for anchor in answers:
            if anchor.mode != "e" and (label := self._label(anchor)):
                add(anchor.markable, anchor.line, anchor.user or _NOBODY, label, "")

    def _experts(self, answers: Iterable[_Anchor]) -> Iterable[_Anchor]:
        """Return the one expert's answer of each mention on whose label there is no doubt."""
        by_mention: dict[str, list[_Anchor]] = {}
        for anchor in answers:
            if anchor.mode == "e":
                by_mention.setdefault(anchor.markable, []).append(anchor)
        for given in by_mention.values():
            best = [anchor for anchor in given if anchor.favoured] or given
            if len({(anchor.kind, *sorted(anchor.antecedents)) for anchor in best}) == 1:
                yield best[0]
            else:
                self.left_out[_DISAGREE] += 1

    def _label(self, anchor: _Anchor) -> str:
        """Return the label as tables write it; nothing where it is to be left out."""
        if len(anchor.antecedents) > 1:
            self.left_out[_SEVERAL] += 1
            return ""
        if not anchor.antecedents:
            return anchor.kind
        if anchor.antecedents[0] in self._hidden:
            self.left_out[_TO_HIDDEN] += 1
            return ""
        return f"{anchor.kind}({anchor.antecedents[0]})"


def _identity(attributes: dict[str, str]) -> str:
    """Return the id of a markable; the younger layout calls am1 what its antecedents call ne1."""
    return re.sub(r"^am(?=\d)", "ne", attributes.get("id", "").strip())
