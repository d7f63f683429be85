"""Annotations beyond the memory of one process: coded once, by DuckDB, into a folder of parts that hold some items each.

The folder holds ``part-s.parquet`` (row of the source, item within the part, annotator, label and, where there are any,
weight), ``items-s.parquet`` (id and gold label), ``annotators.parquet``, ``labels.parquet`` and ``manifest.json`` with
counts and the SHA-256 of every file. `consilience.data.coded` reads it.

What counts as what is as `Annotations.read` has it. DuckDB works within a limit of memory and puts the rest on the disk.
"""  # noqa: E501

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from consilience.data.annotations import Annotations
from consilience.data.codes import as_names, sorted_names
from consilience.data.columns import choose_columns, say_what_is_ignored
from consilience.data.files import MANIFEST, delimiter_of, digest, find_file, read_text
from consilience.data.problems import KEPT_PER_KIND, Problems, check_option, shorten, warn_input
from consilience.data.tables import column_names
from consilience.errors import OutputRefused, TooLarge, UnsupportedRequest
from consilience.notes import Remedy
from consilience.output import GENERATOR, check_folder, write_output
from consilience.spreadsheets import WRITTEN

FORMAT = 1

# White space as `str.strip` has it.
_SPACE = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + (
    "\u2028\u2029\u202f\u205f\u3000"
)
_DECIMAL = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_WHOLE = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?")


def code(
    source: str | os.PathLike | Sequence[str | os.PathLike], into: str | os.PathLike, shards: int, *,
    columns: Mapping[str, str] | None = None, labels: Any = None, missing: str = "error", duplicates: str = "keep",
    unknown: str = "error", memory: str = "1GB", force: bool = False,
) -> Path:  # fmt: skip
    r"""Code tables of annotations into a folder of parts, each with an equal number of the items.

    `consilience.read_annotations` reads the folder as it would read the tables, one after the other; each process of
    several reads its own parts by `consilience.shards`. Needs DuckDB (``pip install 'consilience[shards]'``).

    Parameters
    ----------
    source : str, path, sequence of str or path
        Path of a table in CSV, TSV or Parquet with one row per annotation, or a list of paths.
    into : str or path
        The folder, which must not exist.
    shards : int
        Number of parts, at least that of the processes that are to share them.
    columns, labels, missing, duplicates, unknown : dict of str to str, optional
        As of `read_annotations`. In Parquet, ids and labels have to be texts or whole numbers.
    memory : str, default "1GB"
        What DuckDB may use, such as "500MB"; beyond it works on the disk, in the folder.
    force : bool, default False
        Replace a folder that this function made.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    InputError : a table cannot be read, or its rows contradict each other; with file, row and column.
    OutputRefused : the folder exists.
    UnsupportedRequest : DuckDB is not installed, or there are fewer items than parts.
    TooLarge : DuckDB needs more memory.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import consilience as cs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder, "crowd.csv")
    ...     _ = table.write_text("item,annotator,label\na,Ann,yes\na,Bob,yes\nb,Ann,no\n")
    ...     cs.read_annotations(cs.code(table, Path(folder, "coded"), shards=2))
    Annotations(annotations=3, items=2, annotators=2, labels=2)
    """
    check_option("missing", missing, ("error", "drop"))
    check_option("duplicates", duplicates, ("keep", "first", "error"))
    check_option("unknown", unknown, ("error", "drop"))
    closed = None if labels is None else as_names(labels, "labels")
    if isinstance(shards, bool) or not isinstance(shards, int) or shards < 1:
        raise UnsupportedRequest(f"shards is {shards!r}; give a whole number, 1 or more")
    target = Path(into)
    _check_target(target, force)
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    building = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    building.mkdir()
    try:
        with _database(building, memory) as database:
            coder = _Coder(database, sources, columns)
            coder.check_cells()
            names = coder.number_labels(closed)
            coder.check_labels(missing, unknown)
            counts = coder.number_ids()
            coder.write_rows(duplicates)
            files, parts = coder.write_parts(building, shards, counts)
        text: dict[str, Any] = {"format": FORMAT, "generator": GENERATOR, "contract": "Annotations"}
        text |= {"counts": {**counts, "labels": len(names), "annotations": sum(part["annotations"] for part in parts)}}
        text |= {"weight": "weight" in coder.roles, "gold": "gold" in coder.roles, "groups": coder.groups}
        text |= {"shards": parts, "sha256": files}
        write_output(building / MANIFEST, lambda file: file.write(json.dumps(text, indent=1).encode()))
        if target.exists():
            shutil.rmtree(target)
        building.rename(target)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return target


def _check_target(target: Path, force: bool) -> None:
    check_folder(target)
    try:
        str(target.absolute()).encode()
    except UnicodeEncodeError:
        raise OutputRefused(f"{str(target)!r} is no text, as DuckDB takes paths; give another path") from None
    if not target.exists():
        return
    if not (target / MANIFEST).is_file() and any(target.iterdir()):
        raise OutputRefused(f"{target} exists and holds something else; give a new folder")
    if not force and any(target.iterdir()):
        raise OutputRefused(
            f"{target} holds coded annotations; give a new folder, or {{force}} to replace them", Remedy("force", True)
        )


@contextlib.contextmanager
def _database(folder: Path, memory: str) -> Iterator[Any]:
    """Open a DuckDB database in a folder, which is empty of it afterwards."""
    duckdb = imported_duckdb()
    file, spilled = folder / "coding.duckdb", folder / "spilled"
    database = None
    try:
        database = duckdb.connect(str(file))
        try:
            database.execute(f"SET memory_limit = {_quoted(memory)}")
        except duckdb.Error as error:
            raise UnsupportedRequest(f"memory is {memory!r} ({_first_line(error)}); give such as '2GB'") from None
        database.execute(f"SET temp_directory = {_quoted(spilled)}")
        yield database
    except duckdb.OutOfMemoryException as error:
        text = f"DuckDB needs more than {memory} of memory ({_first_line(error)}); give more by {{memory}}"
        raise TooLarge(text, Remedy("memory")) from None
    except duckdb.IOException as error:  # a full disk
        raise OutputRefused(f"{folder.parent} cannot be written to ({_first_line(error)}); make room") from None
    finally:
        if database is not None:
            database.close()
        shutil.rmtree(spilled, ignore_errors=True)
        file.unlink(missing_ok=True)


def imported_duckdb() -> Any:
    """Return the module.

    Raises
    ------
    UnsupportedRequest : it is not installed.
    """
    try:
        import duckdb
    except ImportError:
        text = "coded annotations need the package duckdb; install it with: pip install 'consilience[shards]'"
        raise UnsupportedRequest(text) from None
    return duckdb


class _Coder:
    """The tables of annotations in a database, and what is done with them in turn.

    Parameters
    ----------
    database : an open connection.
    sources : paths of the tables.
    columns : role to column name.
    """

    def __init__(self, database: Any, sources: Sequence[str | os.PathLike], columns: Mapping[str, str] | None) -> None:
        self.database = database
        self.groups: list[str] | None = None
        self.files: list[tuple[int, str, dict[str, str]]] = []  # first row, file and its columns by role
        choose = choose_columns(Annotations.columns, columns)
        self.roles: list[str] = []
        for source in sources:
            path, ending = find_file(source, (".csv", ".tsv", ".parquet"))
            problems = Problems(str(path))
            names = column_names(source)
            chosen = choose(names, problems)
            if self.files and list(chosen) != self.roles:
                listed = ", ".join(self.roles)
                remedy = "give tables with the same columns"
                raise problems.fail(f"the columns are those of {', '.join(chosen)}; the first file's {listed}", remedy)
            self.roles = list(chosen)
            columns_of_roles = {role: names[place] for role, place in chosen.items()}
            say_what_is_ignored(names, columns_of_roles)
            self.files.append((self._number("raw") if self.files else 0, str(path), columns_of_roles))
            self._add(path, ending, names, chosen, problems)
        if not self._number("raw"):
            raise Problems(self.files[0][1]).fail("the table has no rows", "check that this is the file you meant")

    def _number(self, table: str) -> int:
        return int(self._all(f"SELECT count(*) FROM {table}")[0][0])

    def _all(self, query: str) -> list[tuple[Any, ...]]:
        return self.database.execute(query).fetchall()

    def _add(self, path: Path, ending: str, names: list[str], chosen: Mapping[str, int], problems: Problems) -> None:
        """Append a file to the table of all rows, ids and labels as texts without white space around them."""
        duckdb = imported_duckdb()
        if set("*?[") & set(str(path)):
            raise problems.fail("DuckDB takes * ? [ in a path for a pattern", "rename the file or its folder")
        numbered, from_text = [f"c{place}" for place in range(len(names))], ending != ".parquet"
        if not from_text:
            read = f"read_parquet({_quoted(path)}, hive_partitioning = false) AS found({', '.join(numbered)})"
        else:
            mark = delimiter_of(read_text(path, problems, lambda stream: stream.readline()), ending)
            texts = ", ".join(f"{name}: 'VARCHAR'" for name in numbered)
            read = (
                f"read_csv({_quoted(path)}, auto_detect = false, header = true, delim = {_quoted(mark)}, quote = '\"', "
                f"escape = '\"', nullstr = '', strict_mode = true, columns = {{{texts}}})"
            )
        try:
            types = {name: kind for name, kind, *_ in self._all(f"DESCRIBE SELECT * FROM {read}")}
            cells = ", ".join(
                f"{_cell(role, numbered[at], types[numbered[at]], names[at], problems, from_text=from_text)} "
                f"AS {_named(role)}"
                for role, at in chosen.items()
            )
            into = "INSERT INTO raw" if self.files[1:] else "CREATE TABLE raw AS"
            self.database.execute(f"{into} SELECT {cells} FROM {read}")
        except (duckdb.OutOfMemoryException, duckdb.IOException):
            raise
        except duckdb.Error as error:
            line = re.search(r"Error on Line: (\d+)", str(error))
            kept = [text for text in str(error).splitlines()[1:3] if not text.startswith("Original Line")]
            reason = shorten(kept[0] if line and kept else _first_line(error))
            row = f"line {line[1]}" if line else None
            remedy = "correct the file, or write it again as CSV in UTF-8"
            raise problems.fail(f"this cannot be read as a table ({reason})", remedy, row=row) from None

    def _flag(self, where: str, role: str, message: str, remedy: str, *remedies: Remedy, table: str = "raw") -> None:
        """Raise the same problem for every row for which a condition holds, with the value that stands there.

        Raises
        ------
        InputError : there are such rows.
        """
        query = f"FROM {table} WHERE {where}"
        number = self._all(f"SELECT count(*) {query}")[0][0]
        if not number:
            return
        place = "rowid" if table == "raw" else "place"
        listed = self._all(f"SELECT {place}, {_named(role)} {query} ORDER BY 1 LIMIT {KEPT_PER_KIND}")
        problems = Problems(None)
        for row, value in listed:
            first, problems.file, columns = next(one for one in reversed(self.files) if one[0] <= row)
            at = f"row {row - first} (counted from 0)"
            problems.add(message, remedy, *remedies, row=at, column=columns[role], value=value)
        if number > KEPT_PER_KIND:
            problems.add(f"{message}: {number - KEPT_PER_KIND:,} further rows", remedy, *remedies)
        problems.raise_any()

    def check_cells(self) -> None:
        """Refuse rows without item or annotator, texts that are none, and weights that are no numbers."""
        for role in self.roles:
            if role != "weight":
                nul = f"contains({_named(role)}, chr(0))"
                self._flag(nul, role, "the text holds a NUL character", "write a plain text or number there")
        for role in ("item", "annotator"):
            self._flag(f"{_named(role)} IS NULL", role, f"the {role} is empty", "fill it in or delete the row")
        if "weight" in self.roles:
            self._flag("weight IS NULL", "weight", "the weight is empty", "fill it in; 1 counts the row once")
            given = "TRY_CAST(weight AS DOUBLE)"
            refused = f"NOT (regexp_full_match(weight, {_quoted(_DECIMAL)}) AND isfinite({given}) AND {given} >= 0)"
            remedy = "write a finite number with a decimal point, such as 0.5"
            self._flag(refused, "weight", "a finite weight, not negative, is expected", remedy)

    def number_labels(self, closed: list[str] | None) -> list[str]:
        """Make the table of labels, in the order of the reader, and return them."""
        given = "label" if "gold" not in self.roles else "unnest([label, gold])"
        found = [text for (text,) in self._all(f"SELECT DISTINCT {given} AS one FROM raw") if text is not None]
        names = closed or sorted_names(found)
        table = "CREATE TABLE labels AS SELECT unnest(range(len($1::VARCHAR[]))) AS code, unnest($1::VARCHAR[]) AS id"
        self.database.execute(table, [names])
        return names

    def check_labels(self, missing: str, unknown: str) -> None:
        """Refuse or leave out rows whose label is empty or not in the list; refuse gold labels that are not."""
        outside = "{0} IS NOT NULL AND {0} NOT IN (SELECT id FROM labels)"
        if missing == "error":
            remedy = "fill it in, or pass {missing} to leave such rows out"
            self._flag("label IS NULL", "label", "the label is empty", remedy, Remedy("missing", "drop"))
        elif number := self._number("raw WHERE label IS NULL"):
            warn_input(f"{number:,} rows without a label were left out ({{missing}})", Remedy("missing", "drop"))
        named = Remedy("labels"), Remedy("unknown", "drop")
        if unknown == "error":
            remedy = "correct it, add it to the list, or pass {unknown} to leave such rows out"
            self._flag(outside.format("label"), "label", "this label is not in {labels}", remedy, *named)
        elif number := self._number(f"raw WHERE {outside.format('label')}"):
            warn_input(f"{number:,} rows with a label outside {{labels}} were left out ({{unknown}})", *named)
        if "gold" in self.roles:
            remedy = "correct it or add it to the list"
            text = "this gold label is not in {labels}"
            self._flag(outside.format("gold"), "gold", text, remedy, Remedy("labels"))

    def number_ids(self) -> dict[str, int]:
        """Make the tables of items and annotators, by first appearance; return how many of either some row is of.

        Raises
        ------
        InputError : gold labels or groups contradict each other, or no row is left.
        """
        kept = "bool_or(label IN (SELECT id FROM labels))"
        for role, told in (("item", "gold"), ("annotator", "group")):
            first = f", arg_min({_named(told)}, rowid) AS told" if told in self.roles else ""
            self.database.execute(
                f"CREATE TABLE {role}s AS SELECT * EXCLUDE (used, first), "
                f"CASE WHEN used THEN sum(used::INT) OVER (ORDER BY first) - 1 END::BIGINT AS code FROM "
                f"(SELECT {role} AS id, min(rowid) AS first, {kept} AS used{first} FROM raw GROUP BY {role})"
            )
            if not first:
                continue
            joined = f"(SELECT raw.rowid AS place, raw.*, told FROM raw JOIN {role}s ON raw.{role} = {role}s.id)"
            message = f"this {told}{' label' if told == 'gold' else ''} contradicts an earlier row of the same {role}"
            remedy = f"keep one {told} for each {role}"
            self._flag(f"{_named(told)} <> told", told, message, remedy, table=joined)
        if "group" in self.roles:
            query = "SELECT grp FROM raw WHERE grp IS NOT NULL GROUP BY grp ORDER BY min(rowid)"
            self.groups = [text for (text,) in self._all(query)]
        counts = {f"{role}s": self._number(f"{role}s WHERE code IS NOT NULL") for role in ("item", "annotator")}
        if not counts["items"]:
            text = "check the file and the policies for missing and unknown values"
            raise Problems(self.files[0][1]).fail("no usable row is left", text)
        if max(counts["annotators"], self._number("labels")) >= 1 << 31:
            raise TooLarge("codes of annotators and labels are whole numbers of 32 bits, and there are more of them")
        return counts

    def write_rows(self, duplicates: str) -> None:
        """Make the table of coded rows, and refuse, leave out or count those of an annotator who labels an item again.

        Raises
        ------
        InputError : rows repeat that may not.
        """
        weight = ", CAST(weight AS DOUBLE) AS weight" if "weight" in self.roles else ""
        self.database.execute(
            f"CREATE TABLE coded AS SELECT raw.rowid AS place, items.code AS item, "
            f"annotators.code::INTEGER AS annotator, labels.code::INTEGER AS label{weight} FROM raw "
            "JOIN items ON raw.item = items.id JOIN annotators ON raw.annotator = annotators.id "
            "JOIN labels ON raw.label = labels.id"
        )
        different = self._all("SELECT count(*) FROM (SELECT DISTINCT item, annotator FROM coded)")[0][0]
        number = self._number("coded") - different
        if not number:
            return
        again = (
            "SELECT place FROM (SELECT place, row_number() OVER (PARTITION BY item, annotator ORDER BY place) AS turn "
            "FROM coded) WHERE turn > 1"
        )
        if duplicates == "error":
            remedy = "delete all but one row, or pass {duplicates}"
            text = "an earlier row has the same item and annotator"
            self._flag(f"rowid IN ({again})", "item", text, remedy, Remedy("duplicates", "first"))
        if duplicates == "first":
            self.database.execute(f"DELETE FROM coded WHERE place IN ({again})")
        done = "all were counted" if duplicates == "keep" else "the first of each was kept"
        text = f"{number:,} rows have the same item and annotator as an earlier row; {done} ({{duplicates}})"
        warn_input(text, Remedy("duplicates", duplicates))

    def write_parts(
        self, folder: Path, shards: int, counts: Mapping[str, int]
    ) -> tuple[dict[str, str], list[dict[str, int]]]:
        """Write all files; return the SHA-256 of each, and how many items and annotations each part has.

        Raises
        ------
        UnsupportedRequest : there are fewer items than parts.
        """
        number = counts["items"]
        if shards > number:
            raise UnsupportedRequest(f"there are {number:,} items; give {{shards}}, no more", Remedy("shards"))
        first = [number * shard // shards for shard in range(shards + 1)]
        weight = ", weight" if "weight" in self.roles else ""
        digests: dict[str, str] = {}

        def write(name: str, query: str) -> int:
            path = folder / name
            done = self._all(f"COPY ({query}) TO {_quoted(path)} (FORMAT parquet, COMPRESSION zstd)")
            digests[name] = digest(path)
            return int(done[0][0])

        # Once in the order of the parts, so that none of them goes through all rows.
        part = f"((item + 1) * {shards} - 1) // {number}"
        self.database.execute(f"CREATE TABLE sorted AS SELECT * FROM coded ORDER BY {part}, place")
        self.database.execute("DROP TABLE coded")
        gold = "coalesce((SELECT code FROM labels WHERE id = told), -1)::INTEGER" if "gold" in self.roles else "-1"
        parts = []
        for shard, (begin, end) in enumerate(zip(first, first[1:], strict=False)):
            within = f">= {begin} AND {{0}} < {end}"
            rows = (
                f"SELECT place AS row, (item - {begin})::INTEGER AS item, annotator, label{weight} FROM sorted "
                f"WHERE item {within.format('item')} ORDER BY place"
            )
            items = f"SELECT id, {gold} AS gold FROM items WHERE code {within.format('code')} ORDER BY code"
            written = write(f"part-{shard}.parquet", rows)
            parts.append({"items": write(f"items-{shard}.parquet", items), "annotations": written})
        told = "told" if "group" in self.roles else "NULL::VARCHAR"
        known = f"SELECT id, {told} AS \"group\" FROM annotators WHERE code IS NOT NULL ORDER BY code"
        write("annotators.parquet", known)
        write("labels.parquet", "SELECT id FROM labels ORDER BY code")
        return digests, parts


def _cell(role: str, column: str, kind: str, name: str, problems: Problems, *, from_text: bool) -> str:
    """Return what a cell of a column is as text, in SQL.

    Raises
    ------
    InputError : the column holds what the reader and DuckDB would write differently.
    """
    is_text = kind == "VARCHAR" or kind.startswith("ENUM")
    is_number = kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL")
    if not (is_text or _WHOLE.fullmatch(kind) or (role == "weight" and is_number)):
        remedy = "write it as texts or whole numbers" + (", or as numbers" if role == "weight" else "")
        raise problems.fail(f"a column of {kind} cannot be coded", remedy, column=name)
    text = f"CAST({column} AS VARCHAR)"
    if from_text:
        written = f"starts_with({column}, {_quoted(chr(39))}) AND regexp_matches({column}, {_quoted(WRITTEN)})"
        text = f"CASE WHEN {written} THEN substr({column}, 2) ELSE {column} END"
    return f"nullif(trim({text}, {_quoted(_SPACE)}), '')"


def _named(role: str) -> str:
    return "grp" if role == "group" else role


def _quoted(text: object) -> str:
    return "'" + str(text).replace("'", "''") + "'"


def _first_line(error: Exception) -> str:
    return shorten(str(error).splitlines()[0])
