"""The first screen of a page of linked records: what the links may be used for, their table, and where they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from consilience import linkage_figures
from consilience.models.truth.partitions import pairs_together
from consilience.pages import MOST_ROWS, Section, Table
from consilience.pages.record_pairs import near_cut, value_of
from consilience.pages.run import METHODS, today
from consilience.printing import counted, joined

_ENDINGS = (".csv", ".parquet")


def line_of_links(fit: Any) -> str:
    """Return the line under the title: what was linked, by what, and where the result stands."""
    data = fit.data
    files = f" in {counted(data.num_sources, 'files')}" if data.num_sources > 1 else ""
    fields = f" on {counted(data.num_fields, 'fields')}"
    how = f"model {fit.member.name}, by {METHODS.get(fit.method, fit.method)}"
    return f"{counted(data.num_records, 'records')}{files}, compared{fields} · {how} · {today()}"


def written_files(fit: Any) -> list[str]:
    """Return the files of entities and of pairs that stand beside the page, where the command wrote them."""
    if not fit.folder:
        return []
    every = [Path(fit.folder, f"{name}{ending}") for name in ("entities", "pairs") for ending in _ENDINGS]
    return [str(file) for file in every if file.exists()]


def links_section(fit: Any) -> Section | None:
    """Tabulate the links, the least certain first, and say where they stand."""
    import pandas

    data = fit.data
    one, other = np.divmod(pairs_together(np.asarray(fit.truth.estimate())), data.num_records)
    if not len(one):
        return None
    chance = fit.truth.pairs().of(one, other)
    order = np.argsort(chance, kind="stable")[:MOST_ROWS]
    rows = [
        (data.records[a], data.records[b], own, _differences(data, a, b))
        for a, b, own in zip(one[order].tolist(), other[order].tolist(), chance[order].tolist(), strict=True)
    ]
    frame = pandas.DataFrame(rows, columns=["record", "linked with", "probability", "differs in"])
    texts = {"probability": [near_cut(own) for own in frame["probability"]]}
    table = Table(frame, "Links, least probable first.", of="pairs", texts=texts, total=len(one))
    number = counted(len(one), "links")
    files = written_files(fit)
    if files:
        said = f"{joined(files)} {'contains' if len(files) == 1 else 'contain'} the result"
        words = (
            f"The result is in {joined(files)}: the entity of each record with its certainty, and the compared pairs "
            "of records with their probability."
        )
        return Section("Links", [words, table], f"{number}; {said}")
    words = "“consilience table RUN entities --csv entities.csv” writes the entity of each record with its certainty."
    return Section("Links", [words, table], number)


def _differences(data: Any, one: int, other: int) -> str:
    """Say in which fields two records differ, with both values."""
    pairs = [(str(name), value_of(data, place, one), value_of(data, place, other))
             for place, name in enumerate(data.fields)]  # fmt: skip
    return "; ".join(f"{name}: {a} | {b}" for name, a, b in pairs if a and b and a != b)


def first_figure(fit: Any) -> Any:
    """Draw how many pairs have which probability, linked and not; nothing where none has any."""
    pairs, estimate = fit.truth.pairs(), np.asarray(fit.truth.estimate())
    if not len(pairs.probability):
        return None
    joined_ = estimate[pairs.first] == estimate[pairs.second]
    return linkage_figures.pairs_by_probability(np.asarray(pairs.probability), joined_)
