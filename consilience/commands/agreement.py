"""`agreement`: of annotators in a file, or as a fit implies it."""

from __future__ import annotations

import contextlib
import math
import warnings
from argparse import Namespace as Arguments
from pathlib import Path
from typing import Any

from consilience.commands.files import write_csv
from consilience.commands.reading import READING, flags, is_public, load, read_data, refuse_views
from consilience.errors import InputWarning, UnsupportedRequest
from consilience.inference.run_folder import holds_fit
from consilience.printing import json_text, rows_of, table_text

AGREEMENT_TABLES = ("schemes", "labels", "annotators", "pairs", "items", "coefficients", "curve", "monitor")
WEIGHTS = ("flat", "annotations", "annotations_m1", "edge", "inv_var", "inv_var_class", "exch")
"""Names of `consilience.evaluation.agreement`, which takes half a second to import."""

_PLAN = ("budget", "width", "per_item")


def agreement(arguments: Arguments) -> None:
    """Print how often the annotators of a file agree, or how often a fit implies it.

    Raises
    ------
    InputError : the file does not exist or cannot be used.
    WrongKind : the public data are no labels.
    UnsupportedRequest : flags have no meaning for the data or the fit, or the order of the labels is not known.
    OutputRefused : a file must not be written.
    """
    if holds_fit(Path(arguments.file)):
        _agreement_of_fit(arguments)
        return
    _require_sense(arguments)
    policy = arguments.duplicates or "error"
    arguments.model = "agreement"
    # Of files the reader names the lines; public data are read as published, and repeats are judged here.
    arguments.duplicates = None if is_public(arguments.file) else policy
    with warnings.catch_warnings():
        if arguments.duplicates is None:
            warnings.simplefilter("ignore", InputWarning)
        content = read_data(arguments, "Annotations", "Mentions")
    if hasattr(content, "to_annotations"):  # the labels of mentions, each with its antecedent
        content = content.to_annotations()
    if arguments.ordinal and not (arguments.labels or arguments.classes) and not _are_numbers(content.labels):
        words = ",".join(map(str, content.labels[:4]))
        raise UnsupportedRequest(f"--ordinal needs the order of the labels; give them in it, as --labels {words}")
    from consilience.evaluation.agreement import agreement as measure

    found = measure(
        content, arguments.weights or "annotations_m1", annotators=arguments.annotators or "fixed",
        values=arguments.values, ordinal=arguments.ordinal, level=arguments.level, duplicates=policy,
        first=arguments.first,
    )  # fmt: skip
    table = found.tabulate(arguments.table or "schemes")
    rows = rows_of(table)
    asked = {name: getattr(arguments, name) for name in _PLAN}
    plan = None if all(value is None for value in asked.values()) else found.plan(**asked)
    write_csv(table, arguments)
    if arguments.output:
        from consilience.reporting import report as write

        write(found, path=arguments.output, force=arguments.force)
    if arguments.json:
        planned = {} if plan is None else {"plan": {"words": str(plan), **_nested(plan)}}
        print(json_text(rows if arguments.table else {**found.row(), "schemes": rows, **planned}))
        return
    if not arguments.table:
        print(f"{found!r}" + ("\n" if found.num_usable else ""))
    if found.hardly_equal and not arguments.table:
        print("all coefficients: --table coefficients --values labels; by the weights of items: --table schemes")
    elif arguments.table or found.num_usable:
        print(table_text(rows, limit=20 if arguments.table else None, hint="use --json or --csv FILE"))
    for note in found.notes if arguments.table == "coefficients" else ():
        print(f"\n{note.words('flags')}")
    for line in [] if plan is None else ["", *str(plan).splitlines()]:
        print(line)
    if arguments.output:
        print(f"\nwritten  {arguments.output}")


def _nested(record: Any) -> dict[str, Any]:
    """Return a named tuple, and those within it, as dicts."""
    return {name: _nested(value) if hasattr(value, "_asdict") else value for name, value in record._asdict().items()}


def _are_numbers(labels: Any) -> bool:
    with contextlib.suppress(ValueError):
        return all(math.isfinite(float(label)) for label in labels)
    return False


def _require_sense(arguments: Arguments) -> None:
    """Refuse flags that would be dropped in silence."""
    if arguments.table not in (None, "schemes") and arguments.annotators == "random":
        raise UnsupportedRequest(
            f"--table {arguments.table} has intervals for these annotators only; leave out --annotators random"
        )
    if arguments.table and any(getattr(arguments, name) is not None for name in _PLAN):
        raise UnsupportedRequest("a plan stands under the summary; leave out --table")


def _agreement_of_fit(arguments: Arguments) -> None:
    """Print the agreement that a fit implies."""
    taken = ("table", "annotators", "first", "values", "ordinal", *_PLAN, "output", *READING)
    if unfit := [name for name in taken if getattr(arguments, name)]:
        named = flags(name.replace("_", "-") for name in unfit)
        raise UnsupportedRequest(f"{named} has no meaning for a fit; give the table of annotations")
    arguments.folder = arguments.file
    refuse_views(arguments, "agreement")
    fitted, _ = load(arguments)
    from consilience.evaluation.agreement import agreement as measure

    found = measure(fitted, arguments.weights or "annotations_m1", level=arguments.level)
    write_csv(found.table, arguments)
    print(json_text(found.row()) if arguments.json else found)
