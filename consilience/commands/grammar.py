"""The grammar of the command line: commands, their flags, and what is said of them by ``--help``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from consilience._version import __version__
from consilience.commands import (
    agreement,
    coding,
    coreference,
    fitting,
    judging,
    linkage,
    listings,
    results,
    systems,
)
from consilience.commands.flag_types import (
    add_absent,
    by_name,
    column_of_source,
    count,
    decimals,
    listed,
    number,
    numbered,
    of_columns,
    renamed,
    seed,
    typed_fields,
    whole,
)
from consilience.commands.help import EPILOG, MODEL_EPILOG, show_what_applies
from consilience.commands.reading import READING
from consilience.deprecation import RENAMED_FLAGS


def parser(
    command: str | None = None, member_options: Sequence[str] = (), model: str | None = None
) -> argparse.ArgumentParser:
    """Return the grammar of the command line.

    Parameters
    ----------
    command, member_options : the command that is asked for, and those of its flags that the model is to judge.
    model : of which help is asked for: it then lists how its data are read, and its own options.
    """
    whole = argparse.ArgumentParser(
        prog="consilience", epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
        description="Truth that nobody observed directly, inferred with its uncertainty, and evaluation against that.",
    )  # fmt: skip
    whole.add_argument("--version", action="version", version=f"consilience {__version__}")
    shells = ("bash", "zsh", "tcsh")
    whole.add_argument("--print-completion", choices=shells, help="print what completes commands in a shell")
    subparsers = whole.add_subparsers(title="commands", metavar="COMMAND")
    for name, (build, run, line) in COMMANDS.items():
        sub = subparsers.add_parser(
            name, help=line, description=line[0].upper() + line[1:] + ".", allow_abbrev=False,
            epilog=MODEL_EPILOG.format(name) if name in FLAGS and model is None else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        build(sub)
        if name not in ("models", "cite", "simulate") and "--quiet" not in sub._option_string_actions:
            sub.add_argument("--quiet", **_FIT_FLAGS["quiet"])
        sub.set_defaults(run=run)
        for old in RENAMED_FLAGS.get(name, ()):
            sub.add_argument(f"--{old}", help=argparse.SUPPRESS)
        for option in member_options if name == command else ():
            sub.add_argument(f"--{option}", dest=f"option {option}", help=argparse.SUPPRESS)
        if name in FLAGS:
            show_what_applies(sub, model)
    return whole


# ---- the flags of each command ----

_TIME_LIMIT_HELP = (
    "stop S seconds after the fit began and keep what was finished; looked at between steps, so that compilation, or "
    "an ascent before a sampler, may take longer"
)

_FIT_FLAGS: dict[str, dict[str, Any]] = {
    "method": {"default": "auto", "help": "auto, or one of those that the model lists"},
    "draws": {"type": count, "metavar": "N", "help": "draws to keep, per chain (1000)"},
    "chains": {"type": count, "metavar": "N", "help": "chains of a sampler (4)"},
    "warmup": {"type": count, "metavar": "N", "help": "steps of a sampler before the draws (500)"},
    "max-steps": {"type": count, "metavar": "N", "help": "most steps of an optimiser"},
    "tolerance": {"type": number, "metavar": "X", "help": "convergence threshold of an optimiser"},
    "devices": {"type": count, "metavar": "N", "help": "divide items, or chains, among N GPUs or parts of the CPU (1)"},
    "time-limit": {"type": number, "metavar": "S", "help": _TIME_LIMIT_HELP},
    "seed": {"type": seed, "default": 0, "metavar": "N", "help": "the same seed gives the same numbers (0)"},
    "x64": {"action": "store_true", "help": "compute in double precision"},
    "quiet": {"action": "store_true", "help": "no progress bar"},
    "strict": {"action": "store_true", "help": "exit with 3 also where a finding is a warning"},
    "missing": {"choices": ("drop", "error"), "help": "rows without a label, rating or rank (error)"},
    "duplicates": {"choices": ("keep", "first", "error"), "help": "an annotator who reports on an item again"},
    "unknown": {"choices": ("drop", "error"), "help": "rows outside the closed list of labels (error)"},
    "antecedents": {"choices": ("drop", "error", "strict"), "help": "labels that point to no other mention (error)"},
    "layout": {"choices": ("long", "wide", "counts"), "help": "of a file of annotations (long)"},
    "labels": {"type": listed, "metavar": "A,B,…", "help": "the closed list of labels, classes"},
    "classes": {"metavar": "FILE", "help": "the same from a text file, one a line"}, "columns": {},
    "annotator-groups": {"metavar": "COLUMN", "help": "of annotations: who shares a source with the annotator (group)"},
    "id": {"metavar": "COLUMN", "help": "of records: that names each (id, record_id or rec_id)"},
    "entity": {"metavar": "COLUMN", "help": "of records: the known entity, for evaluation"},
    "fields": {"type": listed, "metavar": "A,B,…", "help": "of records: the columns to compare"},
    "features": {"metavar": "FILE", "help": "of constraints: a table of the items, described by numbers"},
    "grades": {"type": int, "metavar": "R", "help": "of constraints: answers are grades from 1, apart, to R, together"},
    "dont-know": {"choices": ("left-out", "informative"), "help": "of constraints: answers that say nothing"},
    "questions": {"choices": ("ignored", "views"), "help": "of constraints: an expert has a view of each question"},
    "without-offsets": {"action": "store_true", "default": None, "help": "of ratings: take off annotators' offsets"},
    "missing-values": {"type": listed, "metavar": "NA,…", "help": "texts for a missing value"},
    "output": {"metavar": "RUN", "required": True, "help": "new folder for the fit"},
    "force": {"action": "store_true", "help": "replace an earlier fit in that folder, or write beside what is in it"},
    "resume": {"action": "store_true", "help": "go on with the interrupted run in that folder"}, "json": {},
}
_CHECK_FLAGS: dict[str, dict[str, Any]] = {
    "method": {"help": "the hand-derived method (the first that the model lists)"},
    "draws": {**_FIT_FLAGS["draws"], "default": 1000},
    "chains": {**_FIT_FLAGS["chains"], "default": 4},
    "seed": _FIT_FLAGS["seed"],
    "replications": {"type": count, "metavar": "N", "help": "simulated truths (1000 to rank, 20000 for chains)"},
    "long": {"action": "store_true", "help": "five times as many"},
    **{name: _FIT_FLAGS[name] for name in ("x64", "quiet", *READING, "json")},
}
# The commands that name a model, which may have options of its own.
FLAGS = {"fit": _FIT_FLAGS, "check": _CHECK_FLAGS}


def _add_columns(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--columns", type=renamed, metavar="ROLE=NAME,…", help="names of columns in your file")


def _add_json(sub: argparse._ActionsContainer) -> None:
    sub.add_argument("--json", action="store_true", help="print JSON, with every row")


def _add_csv(sub: argparse.ArgumentParser, what: str = "the table of all items") -> None:
    sub.add_argument("--csv", metavar="FILE", help=f"write {what} to a CSV file; - is standard output")
    _add_force(sub)


def _add_force(sub: argparse._ActionsContainer) -> None:
    sub.add_argument("--force", action="store_true", help="replace a file that exists")


def _add_page(sub: argparse.ArgumentParser, help: str, default: str | None = None, metavar: str = "FILE") -> None:
    line = f"{help}; an earlier page is replaced, - is standard output"
    sub.add_argument("-o", "--output", default=default, metavar=metavar, help=line)
    sub.set_defaults(output_is_file=True)


def _add_run(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("folder", metavar="RUN", help="folder that `consilience fit` wrote")


def _add_scoring(sub: argparse.ArgumentParser) -> None:
    line = "top-1, top-3, set-2, ao-3, …; of probabilities log, brier, soft-f1, jsd, ece-15; of chains conll, muc, …; "
    sub.add_argument("--metric", action="append", metavar="NAME", help=line + "of records pairwise-f1, b3-f1, …")
    line = "what the column score holds: probabilities sum to 1 within an item, others only rank (ranks)"
    sub.add_argument("--scores", choices=("ranks", "probabilities"), default="ranks", help=line)
    line = "rows that repeat a class of an item (error)"
    sub.add_argument("--duplicates", choices=("first", "error"), default="error", help=line)
    lacking = "classes, or records, that the data lack (error)"
    add_absent(sub, "items, or records, without a prediction (error)", lacking)
    _add_columns(sub)


def _add_provenance(sub: argparse.ArgumentParser) -> None:
    line = "where predictions come from: annotations, independent, unknown or mixed (unknown); or A=WORD,B=WORD,…"
    sub.add_argument("--provenance", type=by_name, default="unknown", metavar="WORD", help=line)


def _add_level(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--level", type=number, default=0.95, metavar="X", help="of the intervals (0.95)")


def _add_exact(sub: argparse.ArgumentParser) -> None:
    group = sub.add_mutually_exclusive_group()
    line = "in closed form, which is the default where there is one; what has none is refused"
    group.add_argument("--exact", action="store_const", const=True, default=None, dest="exact", help=line)
    group.add_argument("--draws", action="store_const", const=False, dest="exact", help="by draws of the truth")


def _add_class_groups(sub: argparse.ArgumentParser) -> None:
    line = "groups of classes, such as risk: a file or the name of public data"
    sub.add_argument("--class-groups", metavar="FILE", help=line)


def _add_singletons(sub: argparse.ArgumentParser) -> None:
    line = "entities of one mention, in key and response (include)"
    sub.add_argument("--singletons", choices=("include", "exclude"), help=line)


def _add_responses(sub: argparse.ArgumentParser) -> None:
    line = "annotator: also the score of a system of chains that is one more annotator of the partition (ignored)"
    sub.add_argument("--responses", choices=("ignored", "annotator"), default="ignored", help=line)


def _build_chains(sub: argparse.ArgumentParser) -> None:
    _add_run(sub)
    sub.add_argument("--to", choices=("table", "conll"), default="table", help="print them, or write CoNLL (table)")
    sub.add_argument("--template", metavar="KEY", help="write its files anew, with other entities: a file or a folder")
    sub.add_argument("--draws", type=count, metavar="N", help="write N draws of the chains too")
    sub.add_argument("-o", "--output", metavar="FILE", help="file, or folder as the template (chains.conll, chains)")
    _add_json(sub)
    _add_csv(sub, "the table of all mentions")


def _build_score(sub: argparse.ArgumentParser) -> None:
    for name in ("key", "response"):
        line = f"the {name}: a CoNLL file or a folder of them{', or public data' if name == 'key' else ''}"
        sub.add_argument(name, metavar=name.upper(), help=f"{line}; or a table of records with their entities")
    _add_singletons(sub)
    _add_columns(sub)
    missing, unknown = "records of the key that the response lacks", "records of the response that the key lacks"
    add_absent(sub, f"of tables: {missing} (error)", f"of tables: {unknown}; keep leaves them out (error)")
    sub.add_argument("--documents", action="store_true", help="the F of every document")
    _add_json(sub)
    _add_csv(sub, "the table of documents, or of scores,")


def _build_link(sub: argparse.ArgumentParser) -> None:
    reading = sub.add_argument_group("what is read")
    line = "tables of records, one or several; - is standard input"
    reading.add_argument("files", nargs="+", metavar="FILE", help=line)
    reading.add_argument("--id", metavar="COLUMN", help="that names each record (id, record_id or rec_id)")
    line = "columns to compare, with their types (all that can tell entities apart)"
    reading.add_argument("--fields", type=typed_fields, metavar="A,B:date,…", help=line)
    line = "columns whose values may be nearly equal: by string (typing errors), typo (no others), number or date"
    reading.add_argument("--similar", type=of_columns, metavar="A=string,…", help=line)
    reading.add_argument("--entity", metavar="COLUMN", help="the known entity, for evaluation")
    line = "another name of a column of a source, which is called as its file; as often as needed"
    reading.add_argument(
        "--column", "--columns", dest="columns", action="append", type=column_of_source, default=[],
        metavar="SOURCE:COLUMN=NAME", help=line,
    )  # fmt: skip
    line = "texts that stand for a missing value, in place of NA, unknown, - and others; empty for the empty cell alone"
    reading.add_argument("--missing-values", type=listed, metavar="NA,…", help=line)
    line = "columns to compare as they are written, with case, accents and punctuation"
    reading.add_argument("--clean", type=of_columns, default={}, metavar="A=exact,…", help=line)
    line = "say what cleaning makes of each column, and stop there"
    reading.add_argument("--dry-run", action="store_true", help=line)
    line = "the pairs that may be linked, in columns record_a and record_b (all that are probable enough)"
    reading.add_argument("--pairs", metavar="FILE", help=line)
    line = "answers to pairs of records, as `consilience review` asks for them (none)"
    reading.add_argument("--labels", metavar="FILE", help=line)

    model = sub.add_argument_group("how it is linked")
    line = (
        "em is quick (auto takes it); gibbs and nuts take longer, and the interval that gibbs gives for the number of "
        "entities holds if the model does"
    )
    model.add_argument("--method", choices=("auto", "em", "nuts", "gibbs"), default="auto", help=line)
    line = (
        "of an entity's records, see the guide of linkage; auto takes errors by field or by "
        "record, whichever is better (auto)"
    )
    model.add_argument("--likelihood", metavar="NAME", help=line)
    restrictions = ("none", "across", "within")
    model.add_argument("--restriction", choices=restrictions, help="link only between files, or only within (none)")
    line = "pairs of records with log odds below -X are left out (4)"
    model.add_argument("--threshold", type=number, metavar="X", help=line)
    line = "the threshold of gibbs, in its place (10, or 12 where values are missing)"
    model.add_argument("--wide", type=number, metavar="X", help=line)
    line = "what goes through large tables: memory, DuckDB on disk, or Spark on a cluster; em alone (auto)"
    model.add_argument("--engine", choices=("auto", "local", "duckdb", "spark"), default="auto", help=line)
    model.add_argument("--memory", metavar="SIZE", help="that DuckDB takes at most, such as 8GB; with --engine duckdb")
    model.add_argument("--largest", type=count, metavar="N", help="records of an entity, at most (6)")
    line = "draws of partitions; of gibbs and nuts, of each of 4 chains (1000)"
    model.add_argument("--draws", type=count, default=1000, metavar="N", help=line)
    for name in ("chains", "warmup", "time-limit", "seed", "x64"):
        model.add_argument(f"--{name}", **_FIT_FLAGS[name])

    written = sub.add_argument_group("what is written")
    line = "new folder for tables, report and fit"
    written.add_argument("-o", "--output", metavar="FOLDER", help=line)
    written.add_argument("--force", action="store_true", help="replace what an earlier run wrote there")
    line = "go on with the run in that folder, of gibbs or nuts, that was interrupted or killed"
    written.add_argument("--resume", action="store_true", help=line)
    for name in ("quiet", "strict"):
        written.add_argument(f"--{name}", **_FIT_FLAGS[name])
    _add_json(written)


def _build_review(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("folder", metavar="RUN", help="folder that `consilience link` wrote")
    sub.add_argument("--number", type=count, metavar="N", help="of pairs, half of them at random (all pairs in doubt)")
    sub.add_argument("--seed", type=count, default=0, metavar="N", help="of the draw of that half (0)")
    line = "answers to pairs: how often they are the same by the probability of the fit, in the place of pairs"
    sub.add_argument("--labels", metavar="FILE", help=line)
    sub.add_argument("-o", "--output", dest="csv", metavar="FILE", help="write them to a CSV file, to be filled in")
    _add_force(sub)
    _add_json(sub)


def _build_link_new(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("folder", metavar="RUN", help="folder that `consilience link` wrote")
    sub.add_argument("files", nargs="+", metavar="FILE", help="tables of new records; - is standard input")
    sub.add_argument("--id", metavar="COLUMN", help="that names each record (as in the fit)")
    sub.add_argument("-o", "--output", dest="csv", metavar="FILE", help="write them to a CSV file")
    _add_force(sub)
    _add_json(sub)


def _build_simulate(sub: argparse.ArgumentParser) -> None:
    kinds = sub.add_subparsers(dest="what", metavar="KIND", required=True, title="what to simulate")
    line = "annotations of the mentions of a key, as a crowd would give them"
    _build_mentions(_kind_of(kinds, "mentions", line, coreference.simulate))
    line = "records of known entities with errors, in one or several CSV files with a column entity"
    _build_records(_kind_of(kinds, "records", line, linkage.simulate))


def _kind_of(kinds: Any, name: str, line: str, run: Any) -> argparse.ArgumentParser:
    kind: argparse.ArgumentParser = kinds.add_parser(
        name, help=line, description=line[0].upper() + line[1:] + ".", allow_abbrev=False
    )
    kind.set_defaults(run=run)
    kind.add_argument("--seed", type=seed, default=0, metavar="N", help="the same seed gives the same data (0)")
    _add_force(kind)
    _add_json(kind)
    return kind


def _build_mentions(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("key", metavar="KEY", help="a CoNLL file, a folder of them, or public data such as litbank")
    sub.add_argument("--scenario", choices=coreference.SCENARIOS, required=True, help="of Paun et al. (2018)")
    sub.add_argument("--profiles", metavar="FILE", help="for profiles-…: a table with the columns DO and DN")
    sub.add_argument("-o", "--output", required=True, metavar="FILE", help="new .csv or .tsv, also with .gz")
    sub.set_defaults(output_is_file=True)


def _build_records(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--records", type=count, default=500, metavar="N", help="how many records (500)")
    sub.add_argument("--entities", type=count, metavar="N", help="how many entities, with all their records, instead")
    values, line = [150, 100, 90, 12, 31], "values that each field may have (150,100,90,12,31)"
    sub.add_argument("--values", dest="num_values", type=whole, default=values, metavar="N,N,…", help=line)
    of_fields = {
        "exponent": (1.0, "of Zipf's law: 0 for values that are equally common (1)"),
        "distortion": (0.05, "how probably a field is distorted (0.05)"),
        "missing": (0.0, "share of the values that are lost (0)"),
    }
    for name, (default, line) in of_fields.items():
        line = f"{line}; for all fields or for each"
        sub.add_argument(f"--{name}", type=decimals, default=[default], metavar="X,…", help=line)
    line = "shares of entities with 1, 2, … records (0.9,0.1)"
    sub.add_argument("--sizes", dest="size_share", type=decimals, default=[0.9, 0.1], metavar="X,X,…", help=line)
    sub.add_argument("--files", dest="num_files", type=count, default=1, metavar="N", help="files they come in (1)")
    line = "no file has two records of an entity"
    sub.add_argument("--no-repeats", dest="repeats", action="store_false", help=line)
    line = "share of the records in which all moving fields are drawn anew together (0)"
    sub.add_argument("--moves", type=number, default=0.0, metavar="X", help=line)
    line = "the fields that move, such as field_4,field_5"
    sub.add_argument("--moving-fields", type=listed, default=[], metavar="A,B,…", help=line)
    line = "of fields, or exactly one in every record but an entity's first (independent)"
    sub.add_argument("--errors", choices=("independent", "one"), default="independent", help=line)
    line = "a distorted value has one wrong letter: of all fields, or of those named, such as field_1,field_2"
    sub.add_argument("--typos", type=listed, nargs="?", const=True, default=False, metavar="A,B,…", help=line)
    line = "new folder, where the files are file_1.csv, …; or, of one file, new .csv"
    sub.add_argument("-o", "--output", required=True, metavar="FOLDER", help=line)


_TABLE_HELP = "a table, - for one in CSV from standard input, or the name of public data (`consilience data list`)"


def _build_fit(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("model", metavar="MODEL", help="`consilience models` lists them")
    sub.add_argument("file", metavar="FILE", help=_TABLE_HELP)
    _add_flags(sub, _FIT_FLAGS)


def _build_check(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("model", metavar="MODEL", help="`consilience models` lists them")
    sub.add_argument("file", nargs="?", metavar="FILE", help="compare with NUTS on these data, not on simulated ones")
    _add_flags(sub, _CHECK_FLAGS)


def _add_flags(sub: argparse.ArgumentParser, flags: Mapping[str, dict[str, Any]]) -> None:
    for name, options in flags.items():
        if name == "columns":
            _add_columns(sub)
        elif name == "json":
            _add_json(sub)
        else:
            sub.add_argument(*(["-o"] if name == "output" else []), f"--{name}", **options)


def _build_code(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("files", nargs="+", metavar="INPUT", help="table of annotations in CSV, TSV or Parquet")
    sub.add_argument("--into", required=True, metavar="FOLDER", help="new folder for the parts")
    sub.add_argument("--shards", type=count, required=True, metavar="S", help="number of parts, with as many items")
    sub.add_argument("--memory", default="1GB", metavar="SIZE", help="what DuckDB may use (1GB)")
    names = ("columns", "labels", "missing", "duplicates", "unknown")
    _add_flags(sub, {name: _FIT_FLAGS[name] for name in names})
    sub.add_argument("--force", action="store_true", help="replace coded annotations in that folder")


def _build_update(sub: argparse.ArgumentParser) -> None:
    _add_run(sub)
    sub.add_argument("file", metavar="NEW", help="a table of further annotations; - is standard input")
    line = "an annotator who reports on an item again (keep)"
    sub.add_argument("--duplicates", choices=("keep", "first", "error"), default="keep", help=line)
    _add_flags(sub, {name: _FIT_FLAGS[name] for name in ("columns", "quiet", "strict", "output", "force", "json")})
    sub.set_defaults(resume=False)


def _build_certainty(sub: argparse.ArgumentParser) -> None:
    _add_run(sub)
    sub.add_argument("--top", type=count, default=1, metavar="J", help="certainty of the set of the J top classes (1)")
    _add_exact(sub)
    _add_class_groups(sub)
    line = "group of the top class or of the largest sum (top)"
    sub.add_argument("--group-rule", choices=("top", "sum"), help=line)
    sub.add_argument("--items", action="store_true", help="the table of items in place of the summary")
    _add_json(sub)
    _add_csv(sub)


def _build_next(sub: argparse.ArgumentParser) -> None:
    _add_run(sub)
    sub.add_argument("--limit", type=count, metavar="N", help="the first N items alone")
    _add_json(sub)
    _add_csv(sub)


def _build_predict(sub: argparse.ArgumentParser) -> None:
    _add_run(sub)
    sub.add_argument("features", metavar="FEATURES", help="a table of new items, with the features of the fit")
    sub.add_argument("--all-views", action="store_true", help="of views too that are probably not used")
    _add_json(sub)
    _add_csv(sub)


def _build_evaluate(sub: argparse.ArgumentParser) -> None:
    _add_run(sub)
    sub.add_argument(
        "--predictions", nargs="+", action="extend", required=True, metavar="FILE", help="one file a system"
    )
    _add_scoring(sub)
    _add_exact(sub)
    _add_singletons(sub)
    _add_responses(sub)
    _add_class_groups(sub)
    _add_json(sub)
    _add_csv(sub)


def _build_compare(sub: argparse.ArgumentParser) -> None:
    _add_run(sub)
    sub.add_argument("predictions", nargs="+", metavar="FILE", help="predictions, one file a system")
    sub.add_argument("--names", type=listed, metavar="A,B,…", help="of the systems")
    _add_provenance(sub)
    line = "use: the gold labels of some items anchor the scores; the fit must not have seen them (ignore)"
    sub.add_argument("--gold", choices=("ignore", "use"), help=line)
    _add_level(sub)
    sub.add_argument("--seed", type=seed, default=0, metavar="N", help="of the random weights of the items (0)")
    _add_scoring(sub)
    _add_exact(sub)
    _add_singletons(sub)
    _add_responses(sub)
    _add_class_groups(sub)
    _add_json(sub)
    _add_csv(sub, "the leaderboard")


def _build_conformal(sub: argparse.ArgumentParser) -> None:
    _add_run(sub)
    line = "predicted probabilities of the items of the fit, and of others that are to get sets"
    sub.add_argument("predictions", metavar="FILE", help=line)
    sub.add_argument("--level", type=number, default=0.9, metavar="X", help="how much of the truth sets hold (0.9)")
    line = "leave out classes of too small a probability, or those behind enough of it (threshold)"
    sub.add_argument("--score", choices=("threshold", "cumulative"), default="threshold", help=line)
    unknown = "items and classes that the fit lacks; such items get sets alone (error)"
    add_absent(sub, "items of the fit without a prediction (error)", unknown)
    _add_columns(sub)
    _add_json(sub)
    _add_csv(sub, "the sets of all items")


def _build_verdicts(sub: argparse.ArgumentParser) -> None:
    line = "a table with a row for each item, system and annotator (judge), with a label: right or wrong; - for CSV"
    sub.add_argument("file", metavar="FILE", help=line)
    line = "labels of some outputs, which set the scores right; a random sample (use, where there are any)"
    sub.add_argument("--gold", choices=("ignore", "use"), help=line)
    line = "beside gold labels: the mean verdict, or how probably an output is right by two classes (verdicts)"
    sub.add_argument("--anchor", choices=("verdicts", "latent-class"), default="verdicts", help=line)
    line = "items whose outputs were not all judged (error)"
    sub.add_argument("--missing", choices=("drop", "error"), default="error", help=line)
    line = "a judge who judges an output again (keep)"
    sub.add_argument("--duplicates", choices=("keep", "first", "error"), default="keep", help=line)
    _add_level(sub)
    sub.add_argument("--seed", type=seed, default=0, metavar="N", help="of the random weights of the items (0)")
    _add_columns(sub)
    _add_json(sub)
    _add_csv(sub, "the leaderboard")


def _build_report(sub: argparse.ArgumentParser) -> None:
    _add_run(sub)
    sub.add_argument("--predictions", nargs="+", action="extend", default=[], metavar="FILE", help="one file a system")
    _add_scoring(sub)
    _add_class_groups(sub)
    _add_singletons(sub)
    _add_provenance(sub)
    sub.add_argument("--title", help="of the page")
    line = "words of the documents, to show mentions in them: CoNLL files, or a table document, token, word"
    sub.add_argument("--text", nargs="+", action="extend", metavar="FILE", help=line)
    _add_page(sub, "the page (report.html)", default="report.html")
    _add_force(sub)


def _build_agreement(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("file", metavar="FILE", help="annotations, - or the name of public data; or a fit's folder")
    shown = ", ".join(agreement.AGREEMENT_TABLES)
    sub.add_argument("--table", metavar="NAME", choices=agreement.AGREEMENT_TABLES, help=f"print this table: {shown}")
    sub.add_argument("--weights", choices=agreement.WEIGHTS, help="of items, by number of annotations (annotations_m1)")
    sub.add_argument("--annotators", choices=("fixed", "random"), help="intervals for these, or any like them (fixed)")
    sub.add_argument("--first", type=count, metavar="N", help="the first N annotations of each item alone")
    _add_level(sub)
    sub.add_argument("--values", type=numbered, metavar="LABEL=X,…", help=_VALUES_HELP)
    sub.add_argument("--ordinal", action="store_true", help=_ORDINAL_HELP)
    sub.add_argument("--budget", type=count, metavar="N", help="say what N further annotations would tell alone")
    sub.add_argument("--width", type=number, metavar="X", help="say how many more items such an interval takes")
    sub.add_argument(
        "--per-item", type=count, metavar="N", help="plan with N annotations per item, beside the best number"
    )
    _add_page(sub, "write a page with figures, such as agreement.html", metavar="PAGE")
    repeats = {"choices": ("keep", "first", "error"), "help": "an annotator who labels an item again (error)"}
    _add_flags(sub, {**{name: _FIT_FLAGS[name] for name in READING}, "duplicates": repeats, "json": {}})
    _add_csv(sub, "the table that is printed")


_ORDINAL_HELP = "the labels have the order of --labels; for alpha, in --table coefficients"
_VALUES_HELP = "numbers behind the labels, for alpha on a scale, in --table coefficients; 'labels' if they are numbers"


def _build_table(sub: argparse.ArgumentParser) -> None:
    _add_run(sub)
    sub.add_argument("name", nargs="?", metavar="NAME", help="labels, means, …: `consilience models MODEL` lists them")
    _add_json(sub)
    sub.add_argument("--view", type=count, metavar="N", help="of views of experts: the rows of this view alone, from 1")
    sub.add_argument("--expert", metavar="NAME", help="of views of experts: the rows of this expert alone")
    sub.add_argument("--quiet", action="store_true", help="print no rows; with --csv")
    _add_csv(sub, "the whole table")


def _build_models(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("name", nargs="?", metavar="NAME", help="one model: its options, priors, tables, columns")
    _add_json(sub)


def _build_data(sub: argparse.ArgumentParser) -> None:
    actions = ("list", "get", "describe", "example")
    sub.add_argument("action", choices=actions, help="list, fetch or describe data; copy the sample files to a folder")
    sub.add_argument("name", nargs="?", metavar="NAME", help="of data, or of the folder (consilience-example)")
    _add_json(sub)
    _add_force(sub)


def _build_cite(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("model", metavar="MODEL")


def _build_demo(sub: argparse.ArgumentParser) -> None:
    _add_page(sub, "(consilience-demo.html)", default="consilience-demo.html")
    _add_force(sub)


COMMANDS = {
    "fit": (_build_fit, fitting.fit, "infer the truth behind the reports in a file"),
    "code": (_build_code, coding.code, "code annotations into parts that several processes can share"),
    "update": (_build_update, fitting.update, "add annotations to a fit, which goes on from where it ended"),
    "table": (_build_table, results.table, "print a table of the fit: the label of each item, and others"),
    "certainty": (_build_certainty, results.certainty, "say how certain the annotations make the truth of each item"),
    "next": (_build_next, results.next_labels, "list the items most worth another label, by the certainty it adds"),
    "predict": (_build_predict, results.predict, "predict the clusters of new items from their features"),
    "evaluate": (_build_evaluate, systems.evaluate, "score the predictions of systems against an uncertain truth"),
    "compare": (_build_compare, systems.compare, "rank systems, with how sure one may be of the ranking"),
    "conformal": (
        _build_conformal, systems.conformal, "give each item a set of classes that holds the truth as often as asked"
    ),
    "verdicts": (_build_verdicts, judging.verdicts, "rank systems by what judges say of their outputs"),
    "agreement": (
        _build_agreement, agreement.agreement, "say how often annotators agree, and how sure one may be of it"
    ),
    "chains": (_build_chains, coreference.chains, "print the coreference chains of a fit, or write them as CoNLL"),
    "score": (_build_score, coreference.score, "score a response against a key: chains, or records"),
    "link": (_build_link, linkage.link, "find the records of one or several tables that are of one entity"),
    "review": (_build_review, linkage.review, "list pairs of records for a person to decide, or judge a fit by them"),
    "link-new": (_build_link_new, linkage.link_new, "link new records with those of a fit, which stays as it is"),
    "simulate": (_build_simulate, coreference.simulate, "simulate annotations by a crowd, or records to link"),
    "report": (_build_report, systems.report, "write one HTML page about a fit and its evaluation"),
    "check": (_build_check, fitting.check, "test the hand-derived inference of a model against generic inference"),
    "models": (_build_models, listings.models, "list the models, or describe one"),
    "data": (_build_data, listings.data, "list, fetch and describe public data"),
    "cite": (_build_cite, listings.cite, "print the BibTeX entry of a model's paper"),
    "demo": (_build_demo, listings.demo, "show what the library does, without network or files, in under a minute"),
}
