"""What the commands of linkage do: read tables, link their records, write who is who; score who was said to be who."""

from __future__ import annotations

import contextlib
import dataclasses
from argparse import Namespace as Arguments
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilience.commands.files import inputs_of, write_csv
from consilience.commands.fitting import precision
from consilience.commands.reading import load
from consilience.commands.results import show
from consilience.commands.stopped_runs import (
    after_run,
    is_complete,
    kept_checkpoint,
    refuse_unfinished,
    say_complete,
    stoppable,
)
from consilience.errors import InputError, InputProblem, InvalidFit, OutputRefused, UnsupportedRequest
from consilience.inference.compilation import keep_compiled_as_asked
from consilience.inference.run_folder import FIT_TEXT, check_run_folder, holds_checkpoint, holds_fit, is_free
from consilience.notes import Remedy
from consilience.output import STANDARD_OUTPUT, check_folder, check_output
from consilience.piped import STANDARD_INPUT, is_fifo
from consilience.printing import columns_of, json_text, print_notes, rows_of, table_text, write_columns

if TYPE_CHECKING:
    from consilience.data.partitions import Partition
    from consilience.inference.fitting import Fit

_LEAST_CERTAIN = 10
_MOST_LINES = 60  # of the ledger of cleaning
_WRITTEN = ("entities.csv", "pairs.csv", "entities.parquet", "pairs.parquet", "report.html")
_TABLES = (".csv", ".tsv", ".json", ".jsonl", ".parquet")


def link(arguments: Arguments) -> int:
    """Link the records of files, and write the entities, the pairs, a report and the fit to a folder.

    With --dry-run the records are read and cleaned, and nothing is linked or written.

    Raises
    ------
    InputError : there is no such file, or the tables cannot be used.
    OutputRefused : the folder cannot be written to, or a file in it must stay.
    InvalidFit : the folder holds something, and it is not said what is to become of it.
    UnsupportedRequest : flags contradict each other or the folder is not named, or the run ended before its first draw.
    KeyboardInterrupt : by hand, before the first draw; the text says how to go on, where there is a checkpoint.
    """
    if not (arguments.output or arguments.dry_run):
        text = "name the folder to write to, as in -o linked; or --dry-run says what cleaning makes of each column"
        raise UnsupportedRequest(text)
    target = None if arguments.dry_run else _link_folder(arguments)
    for source in [*arguments.files, *filter(None, [arguments.pairs, arguments.labels])]:
        if source != STANDARD_INPUT and not Path(source).exists():
            raise InputError(InputProblem("there is no such file", "check the path", file=source))
    if target is None:
        return _dry_run(arguments)
    keep_compiled_as_asked("on")
    if _is_as_asked(target, arguments):
        return say_complete(target, arguments.json)
    engine = _engine(arguments)
    from consilience.linking import link as link_records

    given = ("likelihood", "restriction", "threshold", "wide", "largest")
    options = {name: getattr(arguments, name) for name in given if getattr(arguments, name) is not None}
    run = target / "fit"
    checkpoint = kept_checkpoint(run, resume=arguments.resume, force=arguments.force)
    try:
        with precision(arguments.x64), stoppable(run, arguments.words):
            fitted = link_records(
                **_reading(arguments), pairs=arguments.pairs, labels=arguments.labels, method=arguments.method,
                draws=arguments.draws, chains=arguments.chains, warmup=arguments.warmup, seed=arguments.seed,
                time_limit=arguments.time_limit, engine=engine, checkpoint=checkpoint, **options,
            )  # fmt: skip
    finally:
        with contextlib.suppress(OSError):
            target.rmdir()  # where nothing could begin
    go_on, code = after_run(fitted, run, arguments.words)
    ending = ".csv" if arguments.engine in ("auto", "local") else ".parquet"
    _write(fitted, target, ending, force=arguments.force or holds_fit(run))
    if fitted.run is not None and fitted.result.complete:
        checkpoint.remove()
    if arguments.json:
        print(json_text({**_described(fitted, target), **({} if go_on is None else {"resume": go_on})}))
    else:
        _print(fitted, target, ending, arguments.files, go_on)
    return code


def _is_as_asked(target: Path, arguments: Arguments) -> bool:
    """Return whether a run to go on with is complete.

    Raises
    ------
    InvalidFit : a complete run is of other data or settings.
    """
    run = target / "fit"
    if not arguments.resume or not holds_fit(run) or holds_checkpoint(run):
        return False
    from consilience.linking import prepare

    records = prepare(**_reading(arguments), restriction=arguments.restriction or "none").records
    records = records if arguments.pairs is None else records.with_candidates(arguments.pairs)
    records = records if arguments.labels is None else records.with_labels(arguments.labels)
    asked = {name: getattr(arguments, name) for name in ("seed", "chains", "warmup")}
    method = None if arguments.method == "auto" else arguments.method
    if not is_complete(run, data_hash=records.fingerprint(), method=method, draws=arguments.draws, **asked):
        raise InvalidFit(f"{target} holds a run that is complete, but of other data or settings; give a new folder")
    return True


def _engine(arguments: Arguments) -> Any:
    """Return the engine of the flags, with the memory that it may take."""
    if arguments.memory is None:
        return arguments.engine
    if arguments.engine != "duckdb":
        raise UnsupportedRequest(f"{{memory}} is for DuckDB, and the engine is {arguments.engine}", Remedy("memory"))
    from consilience.models.block_linkage import engines

    return engines.duckdb(memory=arguments.memory)


def _reading(arguments: Arguments) -> dict[str, Any]:
    """Return what the flags say of reading, as `consilience.linking.prepare` takes it."""
    columns: dict[str, dict[str, str]] = {}
    for source, column, name in arguments.columns:
        columns.setdefault(source, {})[column] = name
    missing = "empty" if arguments.missing_values == ["empty"] else arguments.missing_values
    return {
        "sources": arguments.files if len(arguments.files) > 1 else arguments.files[0], "id": arguments.id,
        "fields": arguments.fields, "similar": arguments.similar, "entity": arguments.entity, "columns": columns,
        "clean": arguments.clean, "missing_values": missing,
    }  # fmt: skip


def _dry_run(arguments: Arguments) -> int:
    """Print what reading and cleaning make of the files."""
    from consilience.linking import prepare

    table = prepare(**_reading(arguments), restriction=arguments.restriction or "none")
    if arguments.json:
        print(json_text({**table.records.counts, **table.described, "cleaning": rows_of(table.described["cleaning"])}))
        return 0
    _print_read(table.described, table.records.counts, arguments.files)
    return 0


def _print_read(described: Mapping[str, Any], counts: Mapping[str, int], files: list[str]) -> None:
    """Print what was read, and what cleaning did, a line for each column of each source."""
    from consilience.linking import ledger_lines

    print(f"read     {', '.join(files)}: {counts['records']:,} records of {counts['fields']} fields")
    print(f"id       {described['id']}")
    cleaned = ledger_lines(described["cleaning"])
    for line in cleaned[:_MOST_LINES]:
        print(f"cleaned  {line}")
    if len(cleaned) > _MOST_LINES:
        print(f"cleaned  … and {len(cleaned) - _MOST_LINES:,} more columns (the table cleaning of the fit, or --json)")
    similar = described.get("similar")
    compared = f"compared for equality, but by similarity {similar}" if similar else "all compared for equality"
    print(f"fields   {described['fields']}; {compared}")
    if "left_out" in described:
        print(f"left out {described['left_out']}")


def _link_folder(arguments: Arguments) -> Path:
    """Return the folder to write to; it must be new, unless it is to be replaced or its run gone on with."""
    target = Path(arguments.output)
    run = target / "fit"
    check_folder(arguments.output)
    refuse_unfinished(target, run, resume=arguments.resume, force=arguments.force)
    # A run that was killed before its first checkpoint leaves its own folder, with nothing to go on from.
    free = not target.exists() or (target.is_dir() and {one.name for one in target.iterdir()} <= {run.name})
    taken = not (free and is_free(run))
    if taken and not (arguments.force or holds_checkpoint(run) or (arguments.resume and holds_fit(run))):
        nothing = ", with no run" if arguments.resume else ""
        raise InvalidFit(f"{target} exists{nothing}; give a new folder, or --force to replace what is in it")
    if target.exists():
        check_run_folder(run, force=arguments.force)
        for name in (*_WRITTEN, f"fit/{FIT_TEXT}"):
            # Of a run that goes on, what its first part wrote is there.
            path, force = target / name, arguments.force or holds_fit(run)
            if path.parent.exists():
                check_output(path, force=force, inputs=inputs_of(arguments))
    return target


def _write(fitted: Fit, target: Path, ending: str, *, force: bool) -> None:
    from consilience.reporting import report

    target.mkdir(exist_ok=True)
    for name in ("entities", "pairs"):
        write_columns(fitted.table_columns(name), target / f"{name}{ending}", force=force)
    fitted.save(target / "fit", force=force)
    report(dataclasses.replace(fitted, folder=str(target)), path=target / "report.html", force=force)


def _described(fitted: Fit, target: Path) -> dict[str, Any]:
    from consilience.evaluation.partition_scores import expected_scores, num_entities

    number, expected = num_entities(fitted), expected_scores(fitted)
    low, high = number.interval
    lost = fitted.table("loss").set_index("quantity")["value"]
    return {
        "folder": str(target), **fitted.data.counts, "entities": number.value, "sd": number.sd,
        "interval": None if number.no_interval else [low, high], "interval_of_links_alone": number.links_alone,
        "basis": number.basis, "doubt": number.doubt,
        "expected_precision": expected.precision, "expected_recall": expected.recall,
        **{name: lost[name] for name in ("found_share", "entities_corrected", "disagreement") if name in lost},
        "cleaning": rows_of(fitted.attributes["cleaning"]), **fitted.describe(),
    }  # fmt: skip


def _print(fitted: Fit, target: Path, ending: str, files: list[str], go_on: str | None) -> None:
    from consilience.evaluation.partition_scores import num_entities
    from consilience.pages.linkage import expected_words
    from consilience.pages.record_pairs import DOUBTFUL, doubtful_records

    _print_read(fitted.attributes, fitted.data.counts, files)
    if "labels" in fitted.attributes:
        print(f"labels   answers to {fitted.attributes['labels']:,} pairs")
    options = "".join(f", {name} {value}" for name, value in fitted.options.items())
    print(f"model    {fitted.member.name}: {fitted.member.title}{options}")
    print(f"result   {fitted.result} in {fitted.attributes['seconds']:,.2f} s")
    print(f"entities {num_entities(fitted)}")
    if words := expected_words(fitted):
        print(f"pairs    the model expects {words}")
    print_notes(fitted.findings())
    doubtful = doubtful_records(fitted)
    if len(doubtful):
        entities = fitted.table_columns("entities")
        shown = {name: entities[name][doubtful] for name in ("record", "entity", "certainty")}
        print(f"\nrecords whose entity has a certainty below {DOUBTFUL}, the least certain first")
        print(table_text(shown, _LEAST_CERTAIN, hint="see the report"))
    print(f"\nwritten  {target}/entities{ending}, {target}/pairs{ending}, {target}/report.html, {target}/fit")
    if go_on is not None:
        print(f"resume   {go_on}")


def review(arguments: Arguments) -> None:
    """Print pairs of records for a person to decide; or, of answers, how often pairs are the same.

    Raises
    ------
    InputError : the answers cannot be read.
    InvalidFit : the folder holds no fit.
    UnsupportedRequest : the fit is none of linkage, or the answers say nothing of it.
    """
    fitted = _linked(arguments)
    if arguments.labels is None:
        show(fitted.table_columns("review", number=arguments.number, seed=arguments.seed), arguments)
    elif "calibration" not in fitted.member.measure_names:
        raise UnsupportedRequest(f"a fit by '{fitted.member.name}' is not judged by labels of pairs")
    else:
        show(columns_of(fitted.measure("calibration", arguments.labels)), arguments)


def link_new(arguments: Arguments) -> None:
    """Print which entities new records are of.

    Raises
    ------
    InputError : the tables cannot be read, or name records that the fit has.
    InvalidFit : the folder holds no fit.
    UnsupportedRequest : the fit is none that takes new records.
    """
    fitted = _linked(arguments)
    if "link_new" not in fitted.member.measure_names:
        raise UnsupportedRequest(f"a fit by '{fitted.member.name}' takes no new records; link all again")
    files = arguments.files if len(arguments.files) > 1 else arguments.files[0]
    show(columns_of(fitted.measure("link_new", files, id=arguments.id)), arguments)


def _linked(arguments: Arguments) -> Fit:
    """Load a fit of records, from its folder or from that of a run of `link`."""
    fitted, _ = load(arguments)
    if "review" not in fitted.member.table_names:
        raise UnsupportedRequest(f"{arguments.folder} holds a fit by '{fitted.member.name}', which links no records")
    return fitted


def simulate(arguments: Arguments) -> None:
    """Write records of entities that are known, as CSV files with a column of entities.

    Raises
    ------
    OutputRefused : the file or the folder must not be written.
    UnsupportedRequest : no records can be made of these numbers.
    """
    target = arguments.output
    to_file = target == STANDARD_OUTPUT or target.lower().endswith(".csv")
    check_output(target, force=arguments.force) if to_file else check_folder(target)
    if not to_file and Path(target).is_dir() and any(Path(target).iterdir()) and not arguments.force:
        text = f"{target} exists; give a new folder, or {{force}} to replace what is in it"
        raise OutputRefused(text, Remedy("force", True))
    from consilience.data import write_records
    from consilience.models.block_linkage.simulation import simulate_records

    names = ("num_values", "size_share", "num_files", "repeats", "moves", "moving_fields", "errors", "typos", "seed")
    given: dict[str, Any] = {name: getattr(arguments, name) for name in names}
    given |= {name: _one_or_each(getattr(arguments, name)) for name in ("exponent", "distortion", "missing")}
    records = simulate_records(arguments.records, num_entities=arguments.entities, **given)
    files = [str(path) for path in write_records(records, target, force=arguments.force).values()]
    entities = len(set(records.entity.tolist()))
    if arguments.json:
        print(json_text({"files": files, "seed": arguments.seed, **records.counts, "entities": entities}))
        return
    sizes = f"{records.num_records:,} records of {entities:,} entities, {records.num_fields} fields"
    print(f"made     {sizes}, seed {arguments.seed}\nsaved    {', '.join(files)}")
    print(f"\nnext     consilience link {' '.join(files)} --entity entity -o linked")


def _one_or_each(numbers: list[float]) -> float | list[float]:
    return numbers[0] if len(numbers) == 1 else numbers


def are_entities(*sources: str) -> bool:
    """Return whether files may say of which entity each record is: whether they are tables."""
    return all(
        source == STANDARD_INPUT
        or is_fifo(source)
        or (Path(source).is_file() and source.lower().removesuffix(".gz").endswith(_TABLES))
        for source in sources
    )


def read_entities(source: str, arguments: Arguments) -> Partition:
    """Read which records a system says are of one entity, as the flags of scoring have it."""
    from consilience.data import read_partition

    return read_partition(source, columns=arguments.columns, missing=arguments.missing)


def score(arguments: Arguments) -> None:
    """Print the scores of one partition of records against another."""
    from consilience.data import read_partition
    from consilience.evaluation.partition_scores import score_partition

    key, response = (
        read_partition(source, columns=_own_columns(source, arguments.columns))
        for source in (arguments.key, arguments.response)
    )
    found = score_partition(response, key, missing=arguments.missing, unknown=arguments.unknown)
    rows = rows_of(found.table)
    write_csv(found.table, arguments)
    described = {"key": arguments.key, "response": arguments.response}
    print(json_text({**described, "scores": rows}) if arguments.json else found)


def _own_columns(source: str, columns: dict[str, str] | None) -> dict[str, str] | None:
    """Return the names of columns if the file has them: of two files one may need no names."""
    from consilience.data.columns import all_columns
    from consilience.data.tables import read_table

    if not columns:
        return None
    known = set(read_table(source, all_columns).columns)
    return columns if known.issuperset(columns.values()) else None
