"""Entities into CoNLL files, with the tokens of a template where there is one.

What is written is read back by `read_conll` as it was, and by the scorers of the two formats.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import numpy as np

from consilience.data.conll import BRACKET, NOTHING, Chains, as_chains, name_of, parse_conll
from consilience.data.conll_text import ENDINGS, ConllText, ending_of, find_conll_files, match_documents
from consilience.data.conll_ua import NON_REFERRING
from consilience.data.files import read_text
from consilience.data.problems import Problems, check_option, warn_input
from consilience.errors import InputError, InputProblem
from consilience.output import STANDARD_OUTPUT, check_folder, check_output, write_folder, write_output

_INTEGER = re.compile(r"0|[1-9]\d*", re.ASCII)
_NO_NAMES = "chains that went through JAX have no names; give those that a reader made"

_Span = tuple[int, int, str | None]     # first and last token, entity (None where it refers to nothing)


def write_conll(
    chains: Any, path: str | os.PathLike, *, template: str | os.PathLike | None = None, crossing: str = "error",
    force: bool = False,
) -> None:  # fmt: skip
    """Write entities to a CoNLL file, or to a folder of them.

    Parameters
    ----------
    chains : sequence
        `Chains` or `SilverChains`. Entities keep their names where those of a document are whole numbers; elsewhere
        they are numbered from 0 in the order of their first mention.
    path : str or path
        The file, also with ``.gz``, or ``-`` for standard output; the folder, where the template is one.
    template : str or path, optional
        A CoNLL-2012 or CoNLL-UA file with the same documents, or a folder of such files; then files of the same names
        are written. Every byte stays but those of the coreference column, and there a cell of CoNLL-2012 whose brackets
        do not change. Markables of CoNLL-UA keep the MarkableID and Min that the template has for the span; SemType and
        ElementOf, which say something of the template's entities, are not written. Without a template the file is
        CoNLL-2012 with three columns, for scorers, which read the last one: the document, the number of the token, the
        brackets; it has the tokens up to the last one in a mention.
    crossing : str, default "error"
        "error", or "drop" to leave out of two mentions of an entity that cross or touch, which CoNLL-2012 cannot tell
        from nested ones, the one that begins later, and warn.
    force : bool, default False
        Replace files that exist, but never those of the template.

    Raises
    ------
    InputError
        If a document of the chains is not in the template, or is shorter there; if two mentions of an entity cross or
        touch in CoNLL-2012, where they cannot be told from nested ones; if a name cannot stand in a file; or if a file
        cannot be read. Nothing is written then.
    OutputRefused
        If a file must not be written.

    Warns
    -----
    InputWarning : counting documents of the template that the chains do not have, which get no mentions, and mentions
        that refer to nothing, for which CoNLL-2012 has no sign.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import consilience as cs
    >>> chains = cs.Chains.from_spans(document=[0, 0], start=[0, 3], end=[1, 3], entity=[0, 0], documents=["news"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "news.conll")
    ...     cs.write_conll(chains, path)
    ...     lines = path.read_text().splitlines()
    >>> [line.split() for line in lines[1:-1]]
    [['news', '0', '(0'], ['news', '1', '0)'], ['news', '2', '-'], ['news', '3', '(0)']]
    """
    check_option("crossing", crossing, ("error", "drop"))
    dropped: list[_Span] | None = [] if crossing == "drop" else None
    target = Path(path)
    into_folder = template is not None and Path(template).is_dir()
    inputs = [] if template is None else find_conll_files(template)
    sources = {target / one.name if into_folder else target: one for one in inputs}
    if into_folder:
        check_folder(target)
    if not into_folder or target.is_dir():
        for one in sources if into_folder else (path,):
            check_output(one, force=force, inputs=inputs)
    spans = _spans_by_document(as_chains(chains))
    if template is None:
        _check_file(target)
        contents = {target: _without_template(spans, dropped)}
    else:
        for one in sources:
            _check_file(one)
        contents = _with_templates(spans, sources, str(template), dropped)
    if dropped:
        number = f"{len(dropped):,} mention{'' if len(dropped) == 1 else 's'}"
        warn_input(f"CoNLL-2012 cannot tell mentions of one entity that cross or touch apart; left out: {number}")
    if into_folder:
        files = {one.name: _write(content, one) for one, content in contents.items()}
        write_folder(target, files, force=force, inputs=inputs)
    else:
        write_output(path, _write(contents[target], target), force=force, inputs=inputs)


# ---- what to write ----


def _spans_by_document(chains: Chains) -> dict[str, list[_Span]]:
    """Return the mentions of each document, in the order of `Chains`."""
    problems = Problems("the chains")
    if chains.documents is None or chains.entities is None:
        raise problems.fail("the documents and entities have no names", _NO_NAMES)
    documents = [str(name) for name in chains.documents]
    for name in documents:
        if not name or name != name.strip() or not _is_writable(name):
            problems.add("this name of a document cannot stand in a CoNLL file", "name it in one line", value=name)
    if len(set(documents)) < len(documents):
        problems.add("two documents have the same name", "give each another name")
    rows: list[list[tuple[int, int, int]]] = [[] for _ in documents]
    columns = (np.asarray(column).tolist() for column in (chains.document, chains.start, chains.end, chains.entity))
    for document, start, end, entity in zip(*columns, strict=True):
        if not 0 <= start <= end:
            message = f"a mention of the document {documents[document]!r} has no tokens"
            problems.add(message, "count tokens from 0, and the last one in", value=(start, end))
        rows[document].append((start, end, entity))
    problems.raise_any()
    return {name: _named(own, chains.entities) for name, own in zip(documents, rows, strict=True)}


def _is_writable(name: str) -> bool:
    with contextlib.suppress(UnicodeEncodeError):
        name.encode()
        return not {"\r", "\n"} & set(name)
    return False


def _named(mentions: Sequence[tuple[int, int, int]], entities: np.ndarray) -> list[_Span]:
    codes = list(dict.fromkeys(entity for _, _, entity in mentions if entity >= 0))
    names = [str(entities[code]) for code in codes]
    if len(set(names)) < len(names) or not all(map(_INTEGER.fullmatch, names)):
        names = list(map(str, range(len(codes))))
    by_code: dict[int, str | None] = dict(zip(codes, names, strict=True))
    return [(start, end, by_code.get(entity)) for start, end, entity in mentions]


def _crossing(spans: Iterable[_Span], *, touching: bool) -> tuple[_Span, _Span] | None:
    """Return two spans of which one begins within the other and ends beyond it, if there are any.

    Parameters
    ----------
    touching : whether to begin at the other's last token counts.
    """
    around: list[_Span] = []    # the spans around the present one, outer ones first
    for span in sorted(spans, key=lambda one: (one[0], -one[1])):
        while around and around[-1][1] < span[0] + (not touching):
            around.pop()
        if around and around[-1][1] < span[1]:
            return around[-1], span
        around.append(span)
    return None


# ---- CoNLL-2012 ----


def _brackets_2012(
    document: str, spans: Sequence[_Span], problems: Problems, dropped: list[_Span] | None
) -> dict[int, list[str]]:
    """Return the brackets of each token: ends, inner ones first, then beginnings, outer ones first, then whole ones."""
    if dropped is None:
        _check_entities(document, spans, problems)
    else:
        spans = _without_crossing(spans, dropped)
    referring = [(start, end, entity) for start, end, entity in spans if entity is not None]
    brackets: dict[int, list[str]] = {}
    for _, end, entity in sorted((span for span in referring if span[0] < span[1]), key=lambda one: -one[0]):
        brackets.setdefault(end, []).append(f"{entity})")
    for start, end, entity in sorted(referring, key=lambda one: -one[1]):
        brackets.setdefault(start, []).append(f"({entity}" if start < end else f"({entity})")
    return brackets


def _by_entity(spans: Sequence[_Span]) -> dict[str, list[_Span]]:
    """Return the mentions of each entity; those that refer to nothing are of none."""
    found: dict[str, list[_Span]] = {}
    for span in spans:
        if span[2] is not None:
            found.setdefault(span[2], []).append(span)
    return found


def _check_entities(document: str, spans: Sequence[_Span], problems: Problems) -> None:
    for entity, own in _by_entity(spans).items():
        if found := _crossing(own, touching=True):
            (first, last, _), (other, end, _) = found
            message = (
                f"mentions of entity {entity} in the document {document!r} cross or touch, "
                f"which CoNLL-2012 cannot tell from nested ones: tokens {first} to {last}, and {other} to {end}"
            )
            problems.add(message, "leave out one of them")


def _without_crossing(spans: Sequence[_Span], dropped: list[_Span]) -> list[_Span]:
    """Leave out of mentions of one entity that cross or touch those that begin later; add them to the dropped ones."""
    lost: set[_Span] = set()
    for own in _by_entity(spans).values():
        while found := _crossing(own, touching=True):
            own.remove(found[1])
            lost.add(found[1])
            dropped.append(found[1])
    return [span for span in spans if span not in lost]


def _without_template(spans: dict[str, list[_Span]], dropped: list[_Span] | None) -> bytes:
    problems = Problems("the chains")
    lines = []
    for document, own in spans.items():
        brackets = _brackets_2012(document, own, problems, dropped)
        if document.startswith("#"):
            remedy = "name the document otherwise, or give a template"
            problems.add("rows that begin with # are comments in CoNLL-2012", remedy, value=document)
        lines.append(f"#begin document {document}")
        for token in range(max(brackets, default=-1) + 1):
            lines.append(f"{document}\t{token}\t{'|'.join(brackets.get(token, NOTHING[:1]))}")
        lines.append("#end document")
    problems.raise_any()
    _warn_of_non_referring(spans.values())
    return "".join(f"{line}\n" for line in lines).encode()


def _cells_2012(
    text: ConllText, lines: Sequence[str], spans: Sequence[Sequence[_Span]], problems: Problems,
    dropped: list[_Span] | None,
) -> list[str]:  # fmt: skip
    """Return the new text of every cell."""
    brackets = [
        _brackets_2012(document.name, own, problems, dropped)
        for document, own in zip(text.documents, spans, strict=True)
    ]
    old = [lines[cell.line][cell.start : cell.stop] for cell in text.cells]
    nothing = next((cell for cell in old if not cell or cell in NOTHING), NOTHING[0])
    new = []
    for place, cell in zip(text.cells, old, strict=True):
        wanted = brackets[place.document].get(place.token, [])  # type: ignore[arg-type]  # only CoNLL-UA has no token
        before = [bracket.group() for bracket in BRACKET.finditer(cell)]
        if sorted(before) == sorted(wanted):
            new.append(cell)
        else:
            new.append("|".join(wanted) or nothing)
    return new


# ---- CoNLL-UA ----


def _cells_ua(text: ConllText, spans: Sequence[Sequence[_Span]]) -> list[str]:
    """Return the new text of every cell; in a file with markables that cross, all of them end by name."""
    by_name = any(_crossing(own, touching=False) for own in spans)
    brackets = [_brackets_ua(text, document, own, by_name) for document, own in enumerate(spans)]
    return [
        "_" if place.token is None else brackets[place.document].get(place.token, "_") for place in text.cells
    ]


def _brackets_ua(text: ConllText, document: int, spans: Sequence[_Span], by_name: bool) -> dict[int, str]:
    """Return the cell of each token: ends first, then beginnings, outer ones first."""
    ends: dict[int, str] = {}
    begins: dict[int, str] = {}
    for (start, end, entity), attributes in zip(spans, _attributes(text, document, spans), strict=True):
        begins[start] = begins.get(start, "") + f"({'|'.join([f'EntityID={entity}', *attributes])}"
        if start == end:
            begins[start] += ")"
        else:
            name = attributes[0].removeprefix("MarkableID=") if by_name else ""
            ends[end] = f"{ends.get(end, '')}{name})"
    return {token: ends.get(token, "") + begins.get(token, "") for token in ends.keys() | begins.keys()}


def _attributes(text: ConllText, document: int, spans: Sequence[_Span]) -> list[list[str]]:
    """Return MarkableID and Min of each span: the template's where it has the span, else an id that is free there."""
    unused: dict[tuple[int, int], list[tuple[str, str | None]]] = {}
    taken = text.markable_ids.get(document, set())
    free = (name for name in map("markable_{}".format, itertools.count(1)) if name not in taken)
    attributes = []
    for start, end, _ in spans:
        of_span = unused.setdefault((start, end), list(text.markables.get((document, start, end), [])))
        markable, minimum = of_span.pop(0) if of_span else (next(free), None)
        attributes.append([f"MarkableID={markable}"] + ([] if minimum is None else [f"Min={minimum}"]))
    return attributes


def _with_pseudo_entities(spans: Sequence[_Span]) -> list[_Span]:
    """Give every mention that refers to nothing an entity of its own, numbered after the others."""
    numbers = itertools.count(1 + max((int(entity) for _, _, entity in spans if entity is not None), default=0))
    return [
        (start, end, f"{next(numbers)}{NON_REFERRING}" if entity is None else entity) for start, end, entity in spans
    ]


# ---- templates ----


def _with_templates(
    spans: dict[str, list[_Span]], sources: dict[Path, Path], template: str, dropped: list[_Span] | None
) -> dict[Path, bytes]:
    """Return the new content of every file."""
    found: list[InputProblem] = []
    places: dict[str, Path] = {}
    contents = {}
    silent = []
    templates = {source: _read_template(source, Problems(str(source))) for source in sources.values()}
    known = [document.name for _, _, text in templates.values() for document in text.documents]
    codes = match_documents(spans, known)
    spans = {known[code] if code >= 0 else name: own for code, (name, own) in zip(codes, spans.items(), strict=True)}
    for target, source in sources.items():
        problems = Problems(str(source))
        mark, lines, text = templates[source]
        for document in text.documents:
            if document.name in places:
                message = f"the document {document.name!r} is also in {places[document.name]}"
                problems.add(message, "leave one of the two out of the template", row=f"line {document.line}")
            places.setdefault(document.name, source)
        own = [spans.get(document.name, []) for document in text.documents]
        _check_lengths(text, own, problems)
        if text.columns is None:
            cells = _cells_2012(text, lines, own, problems, dropped)
            silent += own
        else:
            cells = _cells_ua(text, [_with_pseudo_entities(one) for one in own])
        contents[target] = mark + _replace(lines, text, cells).encode()
        found += problems.found
    missed = [name for name in spans if name not in places]
    if len(missed) == len(spans):
        message = "the template has no document of the chains"
        found.append(InputProblem(message, "give one with the same documents, named alike", template, value=missed[0]))
    if found:
        raise InputError(found)
    _warn_of_non_referring(silent)
    if missed:
        counts = f"{len(missed):,} of {len(spans):,} documents of the chains"
        warn_input(f"{counts} are not in the template, and were not written")
    if absent := places.keys() - spans.keys():
        counts = f"{len(absent):,} of {len(places):,} documents of the template"
        warn_input(f"{counts} are not among those of the chains, and get no mentions")
    return contents


def _read_template(path: Path, problems: Problems) -> tuple[bytes, list[str], ConllText]:
    """Return the byte order mark (or nothing), the lines with their ends, and what they hold."""

    def read(stream: IO[str]) -> tuple[bytes, list[str]]:
        raw = cast(BinaryIO, stream.buffer)  # type: ignore[attr-defined]
        mark = codecs.BOM_UTF8 if raw.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8 else b""
        raw.seek(0)
        return mark, list(stream)

    mark, lines = read_text(path, problems, read)
    text = parse_conll(lines, problems, name=name_of(path))
    problems.raise_any()
    return mark, lines, text


def _check_lengths(text: ConllText, spans: Sequence[Sequence[_Span]], problems: Problems) -> None:
    tokens = Counter(cell.document for cell in text.cells if cell.token is not None)
    for number, own in enumerate(spans):
        last = max((end for _, end, _ in own), default=-1)
        if last >= tokens[number]:
            document = text.documents[number]
            lengths = f"{tokens[number]:,} tokens here, and a mention up to token {last:,}"
            message = f"the document {document.name!r} has {lengths}"
            remedy = "give the template that the mentions were made from; tokens are counted from 0"
            problems.add(message, remedy, row=f"line {document.line}")


def _replace(lines: list[str], text: ConllText, cells: Sequence[str]) -> str:
    new = list(lines)
    for place, cell in zip(text.cells, cells, strict=True):
        line = lines[place.line]
        new[place.line] = line[: place.start] + cell + line[place.stop :]
    return "".join(new)


def _warn_of_non_referring(spans: Iterable[Sequence[_Span]]) -> None:
    if count := sum(entity is None for own in spans for _, _, entity in own):
        number = f"{count:,} mention{'' if count == 1 else 's'}"
        warn_input(f"CoNLL-2012 has no sign for mentions that refer to nothing; left out: {number}")


# ---- files ----


def _check_file(target: Path) -> None:
    problems = Problems(str(target))
    if os.fspath(target) != STANDARD_OUTPUT and ending_of(target) not in ENDINGS:
        message = f"files ending in '{ending_of(target)}' are not read as CoNLL files"
        raise problems.fail(message, f"give a name ending in {', '.join(ENDINGS)}")


def _write(content: bytes, target: Path) -> Callable[[BinaryIO], Any]:
    return lambda stream: stream.write(gzip.compress(content, mtime=0) if target.suffix.lower() == ".gz" else content)
