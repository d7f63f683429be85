"""Annotated mentions as a table that `read_mentions` reads."""

from __future__ import annotations

import contextlib
import csv
import gzip
import os
from pathlib import Path
from typing import BinaryIO

import numpy as np

from consilience.data.mentions import Mentions
from consilience.data.mentions_table import table_of
from consilience.data.problems import warn_input
from consilience.errors import UnsupportedRequest
from consilience.output import STANDARD_OUTPUT, text_stream, write_output
from consilience.spreadsheets import as_written

_DELIMITERS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}


def write_mentions(mentions: Mentions, path: str | os.PathLike, *, force: bool = False) -> None:
    """Write annotated mentions as a table that `read_mentions` reads.

    Parameters
    ----------
    mentions : Mentions
        With or without gold labels and positions. Annotations are written in their order: what is read has the same
        codes if mentions, annotators and documents are coded in the order of their first annotations, as those are that
        were read from a whole table, or simulated. Mentions without annotations, and documents that have no others,
        cannot be written; a warning counts them.
    path : str or path
        Ending in ``.csv`` or ``.tsv``, perhaps with ``.gz``; or ``-`` for standard output, as CSV. The file appears
        when it is complete.
    force : bool, default False
        Replace a file that exists.

    Raises
    ------
    UnsupportedRequest : for other endings, and where an annotation points to a mention whose id has brackets or is
        empty, which could not be read again.
    OutputRefused : where the file must not be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import consilience as cs
    >>> mentions = cs.read_mentions(
    ...     {"mention_id": ["m1", "m2"], "annotator_id": ["Ann", "Ann"], "annotation": ["DN", "DO(m1)"]}
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "mentions.csv")
    ...     cs.write_mentions(mentions, path)
    ...     print(path.read_text().strip())
    mention_id,annotator_id,annotation,document_id
    m1,Ann,DN,document
    m2,Ann,DO(m1),document
    """
    name = "-.csv" if os.fspath(path) == STANDARD_OUTPUT else Path(path).name
    ending = next((ending for ending in _DELIMITERS if name.lower().endswith(ending)), "")
    if not ending:
        raise UnsupportedRequest(f"'{name}' cannot be written; end it in {', '.join(_DELIMITERS)}")
    table = table_of(mentions)
    rows = zip(*table.values(), strict=True)
    without = mentions.num_mentions - len(np.unique(mentions.mention))
    if without:
        warn_input(f"{without:,} mentions without annotations were not written: a row holds an annotation")

    def write(stream: BinaryIO) -> None:
        with contextlib.ExitStack() as stack:
            if ending.endswith(".gz"):
                # No name and no time of the file: the same mentions are the same bytes.
                stream = stack.enter_context(gzip.GzipFile("", "wb", 6, stream, 0))  # type: ignore[assignment]
            writer = csv.writer(stack.enter_context(text_stream(stream)), delimiter=_DELIMITERS[ending])
            writer.writerow(table)
            writer.writerows([as_written(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)

    write_output(path, write, force=force)
