"""The words of documents, to show mentions in their text."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from consilience.data.columns import Column, choose_columns
from consilience.data.conll import name_of, parse_conll
from consilience.data.conll_text import ENDINGS_IN_FOLDERS, ending_of, find_conll_files
from consilience.data.files import read_text
from consilience.data.problems import Problems
from consilience.data.tables import read_table

_COLUMNS = (
    Column("document", ("document_id", "doc_id"), "document", "the document"),
    Column("token", help="its number, counted from 0"),
    Column("word", ("form", "text"), help="the token"),
)
_WORD = 3  # the column of CoNLL-2012


def read_words(source: Any) -> dict[str, list[str]]:
    """Read the words of documents.

    Parameters
    ----------
    source : CoNLL files, as `read_conll` takes them, or a table with the columns document, token and word.

    Returns
    -------
    The words of each document, by its name; an empty one for a token that the table leaves out.

    Raises
    ------
    InputError : the source cannot be read.

    Examples
    --------
    >>> read_words({"document": ["d", "d"], "token": [1, 0], "word": ["there", "Hello"]})
    {'d': ['Hello', 'there']}
    """
    listed = isinstance(source, list | tuple) and not any(isinstance(one, Mapping) for one in source)
    if listed or (isinstance(source, str | os.PathLike) and (
        Path(source).is_dir() or ending_of(Path(source)) in ENDINGS_IN_FOLDERS
    )):  # fmt: skip
        found: dict[str, list[str]] = {}
        for path in find_conll_files(source):
            found |= _of_file(path)
        return found
    table = read_table(source, choose_columns(_COLUMNS))
    token = table.numbers("token")
    (document, documents), (word, words) = (table.texts(name, required=True) for name in ("document", "word"))
    table.problems.raise_any()
    found = {name: [] for name in documents}
    for name, place, code in zip(document.tolist(), token.astype(int).tolist(), word.tolist(), strict=True):
        own = found[documents[name]]
        own += [""] * (place + 1 - len(own))
        own[place] = words[code]
    return found


def _of_file(path: Path) -> dict[str, list[str]]:
    problems = Problems(str(path))
    lines: list[str] = read_text(path, problems, list)
    text = parse_conll(lines, problems, name=name_of(path))
    column = _WORD if text.columns is None else [name.lower() for name in text.columns].index("form")
    found: dict[str, list[str]] = {one.name: [] for one in text.documents}
    for cell in text.cells:
        if cell.token is not None:
            cells = lines[cell.line].split("\t" if "\t" in lines[cell.line] else None)
            found[text.documents[cell.document].name].append(cells[min(column, len(cells) - 1)].strip())
    return found
