"""CoNLL-UA: the format of Universal Anaphora, in which a markable may refer to nothing.

A line ``# global.columns = ID FORM … IDENTITY BRIDGING …`` names the columns, ``# newdoc id = NAME`` begins a document.
The column IDENTITY has ``(EntityID=1|MarkableID=markable_2|Min=3,4|SemType=dn`` where a markable begins, ``)`` where
it ends, both together for a markable of one token, and ``_`` where there is nothing. Several stand without a separator,
ends first. What is read is what the scorer of Universal Anaphora reads (Yu and others 2022), and in the same way:

* ``)`` ends the markable that began last. Markables that cross each other end by name, as in ``markable_2)``; the
  scorer reads that with its option ``--allow-boundary-crossing``.
* An EntityID that ends in ``-Pseudo`` is of a markable that refers to nothing. SemType and the column REFERENCE play no
  part. Every such markable counts, also where several share an EntityID.
* Rows whose ID has a point (5.1) are empty nodes and no tokens. Markables of them (zero anaphora) are left out and
  counted in a warning.
* A MarkableID that stands in several places is a markable of several parts. Chains are of spans: these markables are
  left out and counted in a warning.
* ElementOf says that a markable is one of several antecedents of a plural. The markable is read, the statement is left
  out and counted in a warning.
* The columns are separated by tabs or by spaces. The last one may be missing from a row, as in files of the shared
  tasks of 2021 and 2022.

No file of a corpus was at hand: the test cases of the scorer, and programs that read the corpora of the shared tasks,
are what this rests on. What only the drafts of the format have is refused with its line: multiword tokens (1-2),
objects of a visual situation (ID 0), ``@`` between markables, and other ways to write ``-Pseudo``, EntityID and
MarkableID.

The compact format of CorefUD, which writes ``Entity=`` into the column MISC, is another one and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from consilience.data.conll_text import Cell, ConllText, Document, Mention
from consilience.data.problems import Problems

COLUMNS_LINE = re.compile(r"#\s*global\.columns\s*=(.*)")
NON_REFERRING = "-Pseudo"
_NEW_DOCUMENT = re.compile(r"#\s*newdoc\b(?:\s+id\s*=)?(.*)")
_BRACKET = re.compile(r"\(([^()]*)(\)?)|([^()]*)\)")
_NOTHING = ("_", "")
_TOKEN = re.compile(r"0*[1-9]\d*", re.ASCII)
_EMPTY_NODE = re.compile(r"\d+\.\d+", re.ASCII)


@dataclass
class _Part:
    """A markable, or one of its parts."""

    markable: str
    entity: str
    minimum: str | None
    start: int
    line: int
    end: int = -1


@dataclass
class _OpenDocument:
    """What was met since the document began: all parts, those that have not ended, and ids at empty nodes."""

    number_of_tokens: int = 0
    parts: list[_Part] = field(default_factory=list)
    open: list[_Part] = field(default_factory=list)
    empty_node_ids: set[str] = field(default_factory=set)


def parse_conll_ua(lines: Sequence[str], problems: Problems) -> ConllText:
    """Return the documents, mentions and cells of a CoNLL-UA text; add what is wrong with it to the problems."""
    return _Parser(problems).parse(lines)


class _Parser:
    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.text = ConllText()
        self.id_column = self.identity_column = 0
        self.document: _OpenDocument | None = None

    def parse(self, lines: Sequence[str]) -> ConllText:
        for number, line in enumerate(lines, 1):
            content = line.strip()
            if content.startswith("#"):
                self._read_comment(content, number)
            elif content and not self._read_row(line, number):
                break
        self._end_document()
        return self.text

    # ---- comments ----

    def _read_comment(self, content: str, number: int) -> None:
        if columns := COLUMNS_LINE.fullmatch(content):
            self._read_columns(columns[1].split(), number)
        elif new := _NEW_DOCUMENT.fullmatch(content):
            self._end_document()
            name = new[1].strip()
            if not name:
                self._add(number, "the document has no name", "write # newdoc id = NAME")
            self.text.documents.append(Document(name, number))
            self.document = _OpenDocument()

    def _read_columns(self, names: list[str], number: int) -> None:
        if self.text.columns not in (None, names):
            raise self.problems.fail(
                "the columns change within the file", "write one file for each", row=f"line {number}"
            )
        for name in ("ID", "IDENTITY"):
            if names.count(name) != 1:
                message = f"global.columns has to name the column {name} once"
                remedy = "give a CoNLL-UA file; one of CorefUD, with entities in the column MISC, is not read"
                raise self.problems.fail(message, remedy, row=f"line {number}")
        self.text.columns = names
        self.id_column, self.identity_column = names.index("ID"), names.index("IDENTITY")

    # ---- rows ----

    def _read_row(self, line: str, number: int) -> bool:
        """Read a row; return whether reading can go on."""
        if self.document is None:
            self._add(number, "a token stands outside of documents", "write # newdoc id = NAME before it")
            return False
        places = self._places(line)
        if places is None:
            expected = len(self.text.columns or ())
            found = line.count("\t") + 1 if "\t" in line.strip() else len(line.split())
            message = f"the row has {found} columns where global.columns names {expected}"
            self._add(number, message, "write one cell for each column, _ where there is nothing")
            return True
        (id_start, id_stop), (start, stop) = places[self.id_column], places[self.identity_column]
        token_id, cell = line[id_start:id_stop], line[start:stop]
        token = None
        if _TOKEN.fullmatch(token_id):
            token = self.document.number_of_tokens
            self._read_cell(cell, token, self.document, number)
            self.document.number_of_tokens += 1
        elif _EMPTY_NODE.fullmatch(token_id):
            self._read_empty_node(cell, self.document, number)
        else:
            message = "this ID is neither a token's (1) nor an empty node's (1.1)"
            self._add(number, message, "leave out multiword tokens and objects of a visual situation", token_id)
            return True
        self.text.cells.append(Cell(number - 1, start, stop, len(self.text.documents) - 1, token))
        return True

    def _places(self, line: str) -> list[tuple[int, int]] | None:
        """Return where the cells of a row stand, None where their number is wrong."""
        expected = len(self.text.columns or ())
        for places in (_cells_by_tabs(line), _cells_by_spaces(line)):
            if len(places) == expected or len(places) == expected - 1 > self.identity_column:
                return places
        return None

    def _read_cell(self, cell: str, token: int, document: _OpenDocument, number: int) -> None:
        if cell in _NOTHING:
            return
        position = 0
        for bracket in _BRACKET.finditer(cell):
            if bracket.start() > position:
                break
            position = bracket.end()
            attributes, closed, name = bracket.groups()
            if attributes is None:
                self._close(name, token, document, number)
            elif part := self._read_attributes(attributes, token, number):
                document.parts.append(part)
                if closed:
                    part.end = token
                else:
                    document.open.append(part)
        if position < len(cell):
            remedy = "write (EntityID=…|MarkableID=…, then ) where the markable ends, or _ where there is nothing"
            self._add(number, "this is no list of markables", remedy, cell)

    def _read_attributes(self, text: str, token: int, number: int) -> _Part | None:
        pairs = [pair.split("=", 1) for pair in text.split("|")]
        values = dict(pair for pair in pairs if len(pair) == 2 and all(pair))
        if len(values) < len(pairs) or text.endswith("@"):
            self._add(number, "this is no list of attributes", "write NAME=VALUE|NAME=VALUE|…, each once", text)
            return None
        if missing := [name for name in ("EntityID", "MarkableID") if name not in values]:
            self._add(number, f"a markable has no {' and no '.join(missing)}", "write both, spelled like this", text)
            return None
        entity = values["EntityID"]
        if "pseudo" in entity.removesuffix(NON_REFERRING).lower():
            message = "it is not clear whether this markable refers"
            self._add(number, message, f"write EntityID=NAME{NON_REFERRING} for one that does not", entity)
            return None
        self.text.left_out["split antecedents (ElementOf)"] += "ElementOf" in values
        return _Part(values["MarkableID"], entity, values.get("Min"), token, number)

    def _close(self, name: str, token: int, document: _OpenDocument, number: int) -> None:
        for place in reversed(range(len(document.open))):
            if name in ("", document.open[place].markable):
                document.open.pop(place).end = token
                return
        what = f"markable {name}" if name else "a markable"
        self._add(number, f"{what} ends that never began", "add its opening bracket", f"{name})")

    def _read_empty_node(self, cell: str, document: _OpenDocument, number: int) -> None:
        if cell in _NOTHING:
            return
        if re.fullmatch(r"(\([^()]+\))+", cell):
            self.text.left_out["markables of empty nodes"] += cell.count("(")
            document.empty_node_ids.update(re.findall(r"MarkableID=([^()|]+)", cell))
        else:
            remedy = "let markables of several tokens begin and end at tokens"
            self._add(number, "only a whole markable can stand at an empty node", remedy, cell)

    # ---- documents ----

    def _end_document(self) -> None:
        if self.document is None:
            return
        for part in self.document.open:
            message = f"markable {part.markable} begins here and never ends"
            self._add(part.line, message, "add its closing bracket")
        parts: dict[str, list[_Part]] = {}
        for part in self.document.parts:
            parts.setdefault(part.markable, []).append(part)
        number = len(self.text.documents) - 1
        self.text.markable_ids[number] = self.document.empty_node_ids | parts.keys()
        for markable, own in parts.items():
            if len({part.entity for part in own}) > 1:
                message = f"the parts of markable {markable} have different entities"
                self._add(own[-1].line, message, "give each markable another MarkableID")
            elif len(own) > 1:
                self.text.left_out["markables of several parts"] += 1
            else:
                self._add_mention(number, own[0])
        self.document = None

    def _add_mention(self, document: int, part: _Part) -> None:
        entity = None if part.entity.endswith(NON_REFERRING) else part.entity
        self.text.mentions.append(Mention(document, part.start, part.end, entity))
        of_span = self.text.markables.setdefault((document, part.start, part.end), [])
        of_span.append((part.markable, part.minimum))

    def _add(self, line: int, message: str, remedy: str, value: str | None = None) -> None:
        self.problems.add(message, remedy, row=f"line {line}", value=value)


def _cells_by_tabs(line: str) -> list[tuple[int, int]]:
    """Return where the cells of a line stand, without the white space around them; cells may be empty."""
    found = []
    position = 0
    for text in line.rstrip("\r\n").split("\t"):
        start = position + len(text) - len(text.lstrip())
        found.append((start, start + len(text.strip())))
        position += len(text) + 1
    return found


def _cells_by_spaces(line: str) -> list[tuple[int, int]]:
    return [cell.span() for cell in re.finditer(r"\S+", line)]
