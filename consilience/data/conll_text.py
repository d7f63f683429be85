"""What the CoNLL formats share: which files are read, and what is found in the text of one."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from consilience.data.files import find_file
from consilience.data.problems import Problems

ENDINGS = (
    ".conll", ".key", ".response", ".txt", ".v4_gold_conll", ".v4_auto_conll", ".conllua", ".conllup", ".conllu",
)  # fmt: skip
ENDINGS_IN_FOLDERS = tuple(ending for ending in ENDINGS if ending != ".txt")
"""Endings that say by themselves that a file is CoNLL; README.txt and its like are none."""


_NAME = re.compile(r"\(?(?:[^()]*/)?([^()/;]+)\)?(?:;\s*part\s+(\d+))?")


class Document(NamedTuple):
    """A document of a file: its name, and the line that says so, counted from 1."""

    name: str
    line: int


class Mention(NamedTuple):
    """A span of tokens of a document, which is counted from 0 in its file; no entity where it refers to nothing.

    ``place`` is that of the opening bracket in its cell of CoNLL-2012.
    """

    document: int
    start: int
    end: int
    entity: str | None
    place: int = 0


class Cell(NamedTuple):
    """Where the coreference column of a row stands: the line (from 0) and its characters, and of which token it is."""

    line: int
    start: int
    stop: int
    document: int
    token: int | None   # None for an empty node, which is no token


@dataclass
class ConllText:
    """What one file holds.

    Parameters
    ----------
    documents, mentions, cells : in the order of the file.
    columns : names of the columns of a CoNLL-UA file; None in CoNLL-2012.
    markables : the id and the attribute Min of each markable of a CoNLL-UA file, by document, start and end.
    markable_ids : all ids by document, also those of markables that were left out.
    left_out : how many markables of which kind are not among the mentions.
    """

    documents: list[Document] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    columns: list[str] | None = None
    markables: dict[tuple[int, int, int], list[tuple[str, str | None]]] = field(default_factory=dict)
    markable_ids: dict[int, set[str]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)


def ending_of(path: Path) -> str:
    """Return the ending of a file's name in small letters, without ``.gz``."""
    plain = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return plain.suffix.lower()


def find_conll_files(source: Any) -> list[Path]:
    """Return the files that a path, a folder, or a list of paths stands for.

    Raises
    ------
    InputError : there is no such file, the folder cannot be read or has none, or the list is empty.
    """
    if isinstance(source, list | tuple):
        if not source:
            raise Problems(None).fail("the list of files is empty", "give the path of at least one file")
        return [find_file(one, ENDINGS)[0] for one in source]
    folder = Path(source)
    if not folder.is_dir():
        return [find_file(source, ENDINGS)[0]]
    problems = Problems(str(folder))
    try:
        found = sorted((Path(entry.path) for entry in os.scandir(folder) if entry.is_file()), key=lambda one: one.name)
    except OSError as error:
        raise problems.fail(f"the folder cannot be read ({error.strerror or error})", "check its permissions") from None
    files = [path for path in found if not path.name.startswith(".") and ending_of(path) in ENDINGS_IN_FOLDERS]
    if not files:
        endings = ", ".join(ENDINGS_IN_FOLDERS)
        raise problems.fail("there is no CoNLL file in this folder", f"give a folder with files ending in {endings}")
    return files


def match_documents(names: Iterable[str], known: Iterable[str]) -> list[int]:
    """Return for each name the code of the same document among known names, -1 where there is none.

    Names are the same where they are equal. A document that is not found so is looked for by the name of its file
    alone, since a key calls ``(wiki/Anna_Lee); part 000`` what other files of a corpus call ``Anna_Lee``; that has to
    be the plain name of one document on either side.
    """
    names, known = list(names), list(known)
    exact = {name: code for code, name in enumerate(known)}
    codes = [exact.get(name, -1) for name in names]
    taken = set(codes)
    left = Counter(_plain(name) for name, code in zip(names, codes, strict=True) if code < 0)
    free: dict[str, list[int]] = {}
    for code, name in enumerate(known):
        if code not in taken:
            free.setdefault(_plain(name), []).append(code)
    for place, name in enumerate(names):
        candidates = free.get(_plain(name), [])
        if codes[place] < 0 and len(candidates) == 1 and left[_plain(name)] == 1:
            codes[place] = candidates[0]
    return codes


def _plain(name: str) -> str:
    """Return the name without brackets, folders and the number of a first part."""
    match = _NAME.fullmatch(name)
    return name if match is None else match[1] + ("" if int(match[2] or 0) == 0 else f" part {match[2]}")
