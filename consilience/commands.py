"""What each command does: read, call the library, print.

Every function takes the parsed arguments. Input is looked at in the order of what it costs: names, folders and files
first, then the content of files, and only then JAX.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import inspect
import itertools
import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilience import coreference_commands
from consilience import models as registry
from consilience.command_outputs import inputs_of
from consilience.coreference_commands import are_chains, read_key
from consilience.errors import (
    InputError,
    InputProblem,
    InputWarning,
    InvalidFit,
    OutputRefused,
    UnknownName,
    UnsupportedRequest,
    WrongKind,
)
from consilience.inference.run_folder import (
    CHECKPOINT,
    FIT_TEXT,
    check_run_folder,
    fit_folder,
    holds_checkpoint,
    holds_fit,
)
from consilience.linkage_commands import contract_of, holds_records, read_entities
from consilience.output import is_input
from consilience.printing import (
    Columns,
    Rows,
    columns_of,
    json_text,
    print_notes,
    rows_of,
    table_text,
    write_columns,
    write_csv,
)
from consilience.stopped_runs import command_to_go_on, keep_compiled_programs, refuse_unfinished, stoppable

if TYPE_CHECKING:
    from consilience.data import ClassMap, Predictions
    from consilience.data.contract import Contract
    from consilience.inference.fitting import Fit
    from consilience.models.interface import Model

Arguments = argparse.Namespace

READING = ("missing", "duplicates", "unknown", "antecedents", "layout", "labels", "classes", "columns")
"""The flags that say how a file is read."""

# Items that are shown as the least certain ones.
_LEAST = 10

_READING_RECORDS = ("id", "entity", "fields", "missing_values")
_READING_CONSTRAINTS = ("features",)

AGREEMENT_TABLES = ("schemes", "labels", "annotators", "pairs", "items", "coefficients", "curve", "monitor")
WEIGHTS = ("flat", "annotations", "annotations_m1", "edge", "inv_var", "inv_var_class", "exch")
"""Names of `consilience.evaluation.agreement`, which takes half a second to import."""

_POOR, _INTERRUPTED = 3, 130
_MOST_FILES = 6


# ---- fit ----


def fit(arguments: Arguments) -> int:
    """Fit a model to a file, save the fit, say what was read and found.

    Raises
    ------
    InputError : the file does not exist or cannot be used.
    WrongKind : the public data are of a kind that the model does not take.
    OutputRefused : the folder cannot be written to, or holds the input.
    InvalidFit : the folder holds a fit or a run that did not end, and it is not said what is to become of it.
    UnsupportedRequest : flags have no meaning for the data or contradict each other, or the run ended before its first
        draw.
    KeyboardInterrupt : by hand, before the first draw; the text says how to go on.
    """
    takes = registry.place(arguments.model).takes
    target = _run_folder(arguments)
    keep_compiled_programs()
    # To look at the model's options takes JAX; a file may take longer still to read, and one without options does not.
    given = arguments.member_options
    options = _typed(registry.member(arguments.model), given) if given and not _is_public(arguments.file) else None
    content = _read(arguments, *takes)
    import consilience as cs
    from consilience.inference.checkpoints import Checkpoint

    options = _typed(registry.member(arguments.model), given) if options is None else options
    # Kept until the fit is saved: a kill in between must not lose a complete run.
    checkpoint = Checkpoint(target / CHECKPOINT, resume=arguments.resume, keep=True)
    if arguments.force:
        checkpoint.remove()
    _provide_devices(arguments.devices)
    with _precision(arguments.x64), stoppable(target, arguments.words):
        fitted = cs.fit(
            arguments.model, content, method=arguments.method, draws=arguments.draws, chains=arguments.chains,
            warmup=arguments.warmup, seed=arguments.seed, max_steps=arguments.max_steps, tolerance=arguments.tolerance,
            devices=arguments.devices, time_limit=arguments.time_limit, checkpoint=checkpoint,
            progress=False if arguments.quiet else None, **options,
        )  # fmt: skip
    by_hand = "keyboard" in fitted.message
    go_on = command_to_go_on(arguments.words) if fitted.result == "interrupted" else None
    if fitted.is_empty:
        if by_hand:
            raise KeyboardInterrupt(f"go on with: {go_on}")
        remedy = f"go on with: {go_on}" if go_on else fitted.message
        raise UnsupportedRequest(f"the run ended before the first draw, and no fit was written; {remedy}")
    fitted.save(target, force=arguments.force)
    if fitted.run is not None and fitted.result.complete:
        checkpoint.remove()
    _print_fit(fitted, target, arguments, go_on)
    return _INTERRUPTED if by_hand else 0


def _run_folder(arguments: Arguments) -> Path:
    """Return the folder to write to; it must be new, unless it is to be replaced or gone on with."""
    target = Path(arguments.output)
    check_run_folder(arguments.output, force=arguments.force)
    for file in (FIT_TEXT, CHECKPOINT):
        if (target / file).exists() and is_input(target / file, inputs_of(arguments)):
            raise OutputRefused(f"{target / file} is an input of this command; give another folder")
    refuse_unfinished(target, target, resume=arguments.resume, force=arguments.force)
    if holds_fit(target) and not holds_checkpoint(target) and not arguments.force:
        nothing = " that is complete" if arguments.resume else ""
        raise InvalidFit(f"{target} holds a fit{nothing}; give a new folder, or --force to replace it")
    return target


def _read(arguments: Arguments, *contracts: str) -> Any:
    """Read the file, or load public data of that name, as one of the contracts that the model takes."""
    from consilience import data
    from consilience.data.accept import choose_contract

    given = {name: getattr(arguments, name) for name in READING if name not in ("labels", "classes")}
    given |= {name: getattr(arguments, name, None) for name in (*_READING_RECORDS, *_READING_CONSTRAINTS)}
    given = {name: value for name, value in given.items() if value is not None}
    closed = arguments.labels or arguments.classes
    source = arguments.file
    if _is_public(source):
        if given or closed:
            raise UnsupportedRequest(f"{source} is public data, which is read as published; leave out {_flags(given)}")
        found = data.describe(source).contract
        if found not in contracts:
            raise WrongKind(f"'{arguments.model}' takes {' or '.join(contracts)}; {source} holds {found}")
        return data.load(source)
    # Of the layouts without a column of labels there is but one contract.
    taken = [getattr(data, name) for name in (contracts if arguments.layout in (None, "long") else contracts[:1])]
    contract: Any = choose_contract(source, taken, arguments.columns)
    known = inspect.signature(contract.read).parameters
    if closed is not None:
        as_typed = "labels" if arguments.labels else "classes"
        given[next((name for name in ("labels", "classes") if name in known), as_typed)] = closed
    if unfit := [name for name in given if name not in known]:
        columns = f"to which the columns of {source} belong"
        which = f"which '{arguments.model}' takes" if len(contracts) == 1 else columns
        raise UnsupportedRequest(f"{_flags(unfit)} has no meaning for {contract.__name__}, {which}")
    return contract.read(source, **given)


def _flags(names: Any) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names) or "--labels, --classes"


def _is_public(source: str) -> bool:
    """Return whether a name without a file is that of public data; complain when it is neither."""
    if Path(source).exists():
        return False
    from consilience import data

    if source in data.names():
        return True
    close = difflib.get_close_matches(source, data.names(), n=1)
    hint = f"did you mean the public data '{close[0]}'? Otherwise " if close else ""
    raise InputError(InputProblem("there is no such file", f"{hint}check the path", file=source))


def _typed(member: Model, given: Mapping[str, str]) -> dict[str, Any]:
    """Check the model's own settings, which came as text."""
    options = {name.replace("-", "_"): value for name, value in given.items()}
    checked = member.settings.checked(options, member.name)
    return {name: getattr(checked, name) for name in options}


def _provide_devices(number: int | None) -> None:
    """Let JAX see that many devices also where there are no GPUs; it looks for devices at their first use."""
    if number is None:
        return
    if number < 1:
        raise UnsupportedRequest(f"--devices is {number}; give 1 or more")
    import jax

    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", number)


def _precision(double: bool) -> Any:
    if not double:
        return contextlib.nullcontext()
    import jax

    return jax.enable_x64(True)


def _print_fit(fitted: Fit, target: Path, arguments: Arguments, go_on: str | None) -> None:
    described = fitted.describe()
    sizes = fitted.data.counts
    if arguments.json:
        resume = {} if go_on is None else {"resume": go_on}
        print(json_text({"folder": str(target), "file": arguments.file, **sizes, **described, **resume}))
        return
    options = "".join(f", {name} {value}" for name, value in fitted.options.items())
    print(f"read     {arguments.file}: {', '.join(_counted(size, name) for name, size in sizes.items())}")
    print(f"model    {fitted.member.name}: {fitted.member.title}{options}")
    print(f"method   {fitted.method}, {fitted.reason}")
    ended = " (every step was run)" if fitted.result == "max_steps" and fitted.elbo is None else ""
    print(f"result   {fitted.result}{ended} in {described['seconds']:,.2f} s")
    if "worst_r_hat" in described:
        kept = min(draws.shape[1] for draws in fitted.samples().values())
        asked = "" if kept == fitted.draws else f" ({fitted.draws:,} were asked for)"
        print(
            f"chains   {described['chains']} of {kept:,} draws{asked}; of all quantities, largest R-hat "
            f"{described['worst_r_hat']:.3f}, fewest effective draws {described['fewest_effective_draws']:,.0f}"
        )
    if "num_views" in fitted.member.measure_names:
        print(f"views    {fitted.measure('num_views')}")
    print_notes(fitted.findings())
    print(f"saved    {target}")
    if go_on is not None:
        print(f"resume   {go_on}")
    look = "table" if {"entities", "views"} & set(fitted.member.table_names) else "certainty"
    look = "chains" if hasattr(fitted.data, "num_mentions") else look
    print(f"\nnext     consilience {look} {target}\n         consilience report {target} -o report.html")


def _counted(size: int, plural: str) -> str:
    singular = plural.removesuffix("es") if plural.endswith("sses") else plural.removesuffix("s")
    return f"{size:,} {singular if size == 1 else plural}"


# ---- what one does with a fit ----


def _say_if_poor(fitted: Fit, folder: Path) -> None:
    """Repeat what `fit` said of the run, from what is stored: what follows is no better than the fit."""
    from consilience.inference.posterior import LEAST_ESS, MOST_R_HAT

    known = fitted.attributes
    poor = [f"its result is {fitted.result}"] if not fitted.result.complete else []
    if known.get("worst_r_hat", 1.0) > MOST_R_HAT:
        poor.append(f"its largest R-hat is {known['worst_r_hat']:.2f}")
    if known.get("fewest_effective_draws", LEAST_ESS) < LEAST_ESS:
        poor.append(f"a quantity has {known['fewest_effective_draws']:.0f} effective draws only")
    if poor:
        from consilience.errors import ConsilienceWarning

        warnings.warn(f"the fit in {folder} is poor: {'; '.join(poor)}", ConsilienceWarning, stacklevel=2)


def table(arguments: Arguments) -> None:
    """Print one of the model's tables; the first one when none is named."""
    fitted, _ = _load(arguments)
    name = arguments.name or next(iter(fitted.member.table_names))
    columns = fitted.table_columns(name)
    columns = columns if arguments.view is None else _of_view(columns, name, arguments.view)
    _write_items(columns, arguments)
    _print_table(columns, arguments)


def _print_table(columns: Columns, arguments: Arguments) -> None:
    """Print the first rows of a table, or all of it as JSON."""
    print(json_text(rows_of(columns)) if arguments.json else table_text(columns, hint="use --json or --csv FILE"))


def _of_view(columns: dict[str, Any], name: str, view: int) -> dict[str, Any]:
    """Return the rows of one view."""
    if "view" not in columns:
        raise UnsupportedRequest(f"the table '{name}' has no column 'view'; leave out --view")
    chosen = columns["view"] == view
    if not chosen.any():
        known = ", ".join(map(str, sorted(set(columns["view"].tolist())))) or "none"
        raise UnsupportedRequest(f"the table '{name}' has no view {view}; it has {known}")
    return {column: values[chosen] for column, values in columns.items()}


_OF_VIEWS = {
    "certainty": "`consilience table {run} views` has the probability of each item's cluster in each view",
    "next": "`consilience table {run} questions` lists the pairs most worth an answer",
    "chains": "`consilience table {run} views` prints the clusters of each view",
    "agreement": "`consilience table {run} same_view` says how probably two experts share a view",
    "scores": (
        "write the clusters of one by `consilience table {run} views --view N --csv view.csv`, and compare them by "
        "`consilience score KEY view.csv --columns record=item`"
    ),
}  # fmt: skip


def _refuse_views(arguments: Arguments, command: str) -> None:
    """Say what serves in the place of a command for one truth of the items; views have several clusterings."""
    folder = fit_folder(arguments.folder)
    if contract_of(folder) == "Constraints":
        what = f"{folder} holds views of experts, several clusterings and not one truth"
        raise UnsupportedRequest(f"{what}; {_OF_VIEWS[command].format(run=folder)}")


def certainty(arguments: Arguments) -> None:
    """Print the certainty of the data set, and the items that are least certain."""
    _refuse_views(arguments, "certainty")
    fitted, risk = _load(arguments)
    from consilience.evaluation.certainties import certainty as measure

    score = measure(fitted, top=arguments.top, classes_to=risk, by=arguments.by, exact=arguments.exact)
    items = score.table_columns
    _write_items(items, arguments)
    summary = {**_score_row(score), "below_0.99": int((score.items < 0.99).sum())}
    summary["below_0.9"] = int((score.items < 0.9).sum())
    if arguments.json:
        print(json_text(rows_of(items) if arguments.items else summary))
    elif arguments.items:
        print(table_text(items, hint="use --json or --csv FILE"))
    else:
        print(f"{score!r}")
        print(f"{summary['below_0.99']:,} items below 0.99, {summary['below_0.9']:,} below 0.9")
        print("\nthe least certain items")
        import numpy as np

        least = np.argsort(score.items, kind="stable")[:_LEAST]
        shown = {name: values[least] for name, values in items.items()}
        print(table_text(shown, hint="use --items --json or --csv FILE", number=len(score.items)))


def next_labels(arguments: Arguments) -> None:
    """Print the items most worth another label."""
    _refuse_views(arguments, "next")
    fitted, _ = _load(arguments)
    from consilience.evaluation.another_label import next_labels as rank

    columns = columns_of(rank(fitted, limit=arguments.limit))
    _write_items(columns, arguments)
    _print_table(columns, arguments)


def evaluate(arguments: Arguments) -> None:
    """Print one row for each system and metric."""
    _refuse_views(arguments, "scores")
    policies = _policies(arguments)
    systems = _systems(arguments)
    fitted, risk = _load(arguments)
    from consilience.evaluation.adjustment import evaluate as score_predictions

    metrics = arguments.metric or [_default_metric(arguments)]
    rows, groups = [], []
    items: dict[str, Any] = {}
    for name, predictions in systems.items():
        for metric, score in score_predictions(
            fitted, predictions, metrics, by=risk, exact=arguments.exact, **policies
        ).items():
            own = [] if risk is None else rows_of(score.by_group)
            rows.append({"system": name, "metric": metric, **_score_row(score)})
            rows[-1] |= {"by_group": own} if own else {}
            groups += [{"system": name, "metric": metric, **row} for row in own]
            column = metric if len(systems) == 1 else f"{name} {metric}"
            items |= {score.unit: score.table_columns[score.unit], column: score.items}
    _write_items(items, arguments)
    if arguments.json:
        print(json_text(rows))
        return
    hidden = ("score", "interval", "by_group")
    print(table_text([{name: value for name, value in row.items() if name not in hidden} for row in rows], limit=None))
    if groups:
        print(f"\ngiven the group of the top class of each draw\n{table_text(groups, limit=None)}")


def compare(arguments: Arguments) -> None:
    """Print the leaderboard and how sure one may be of each pair.

    Raises
    ------
    UnsupportedRequest : the fit is of views, flags have no meaning for the predictions, names do not fit the systems,
        or there are several metrics.
    WrongKind : public data hold no predictions.
    InputError : a file of predictions does not exist or cannot be used.
    InvalidFit : the folder holds no fit.
    """
    _refuse_views(arguments, "scores")
    policies = _policies(arguments)
    systems = _systems(arguments, arguments.names)
    fitted, _ = _load(arguments)
    from consilience.evaluation.comparison import compare as rank

    metrics = arguments.metric or [_default_metric(arguments)]
    if len(metrics) > 1:
        raise UnsupportedRequest("systems are ranked by one metric; give --metric once")
    comparison = rank(fitted, systems, metrics[0], seed=arguments.seed, exact=arguments.exact, **policies)
    leaderboard, pairs = rows_of(comparison.table), rows_of(comparison.pairs)
    if arguments.json:
        print(json_text({"leaderboard": leaderboard, "pairs": pairs}))
        return
    print(f"{comparison.title}, {comparison.num_items:,} {comparison.unit}s\n{table_text(leaderboard, limit=None)}")
    if pairs:
        print(f"\npairs\n{table_text(pairs, limit=20)}")


def report(arguments: Arguments) -> None:
    """Write the HTML report."""
    if arguments.predictions:
        _refuse_views(arguments, "scores")
    policies = _policies(arguments)
    systems = _systems(arguments)
    fitted, risk = _load(arguments)
    import consilience as cs

    cs.report(
        fitted, systems or None, path=arguments.output, metric=arguments.metric, risk=risk, title=arguments.title,
        force=arguments.force, **policies,
    )  # fmt: skip
    print(f"wrote {arguments.output}")


def _kind(arguments: Arguments) -> str:
    """Return of what the predictions are: records where the fit is of records, chains, or items."""
    if holds_records(fit_folder(arguments.folder)):
        return "records"
    return "chains" if are_chains(arguments.predictions, getattr(arguments, "metric", None) or ()) else "items"


def _default_metric(arguments: Arguments) -> str:
    return {"records": "pairwise-f1", "chains": "conll", "items": "top-1"}[_kind(arguments)]


def _policies(arguments: Arguments) -> dict[str, Any]:
    """Return what the flags say of items and classes, of records, or of chains."""
    kind = _kind(arguments)
    if kind != "chains":
        if arguments.singletons is not None:
            what = {"items": "classes of items", "records": "entities of records"}[kind]
            raise UnsupportedRequest(f"--singletons says something of chains; the predictions are {what}")
        return {"missing": arguments.missing, "unknown": arguments.unknown}
    if unfit := [name for name in ("missing", "unknown") if getattr(arguments, name) != "error"]:
        raise UnsupportedRequest(f"{_flags(unfit)} has no meaning for chains")
    return {"singletons": arguments.singletons != "exclude"}


def predict(arguments: Arguments) -> None:
    """Print the clusters of items that nobody judged.

    Raises
    ------
    InputError : the features cannot be used.
    InvalidFit : the folder holds no fit.
    UnsupportedRequest : the model predicts nothing from features.
    """
    from consilience.data.constraints import read_features

    read_features(arguments.features)  # before JAX is imported
    fitted, _ = _load(arguments)
    if "predict" not in fitted.member.measure_names:
        raise UnsupportedRequest(f"'{fitted.member.name}' predicts nothing from features; a fit of constraints does")
    choice = {"rule": arguments.rule, "all_views": arguments.all_views}
    columns = columns_of(fitted.measure("predict", arguments.features, **choice))
    _write_items(columns, arguments)
    _print_table(columns, arguments)


def chains(arguments: Arguments) -> None:
    """Print or write the chains of a fit of mentions."""
    _refuse_views(arguments, "chains")
    fitted, _ = _load(arguments)
    coreference_commands.chains(arguments, fitted)


def _load(arguments: Arguments) -> tuple[Fit, ClassMap | None]:
    """Load the fit, and the class map where there is one."""
    folder, source = fit_folder(arguments.folder), getattr(arguments, "map", None)
    if not holds_fit(folder):
        if holds_checkpoint(folder):
            raise InvalidFit(
                f"{folder} holds a run that did not end; give its command again, with --resume, to go on with it"
            )
        what = "has no fit.json; it is not a saved fit" if folder.is_dir() else "is not a folder"
        raise InvalidFit(f"{folder} {what}; give the folder that `consilience fit … -o` wrote")
    keep_compiled_programs()
    listed = source is not None and source.endswith((".txt", ".txt.gz"))
    risk = None if source is None or (listed and not _is_public(source)) else _class_map(source)
    from consilience.inference.result import load_fit

    fitted = load_fit(folder)
    _say_if_poor(fitted, folder)
    if listed and risk is None:
        from consilience.data import read_class_map

        # One group a line: it is the fit that knows the classes and their order.
        risk = read_class_map(source, classes=fitted.truth.ids.get("class"))
    return fitted, risk


def _class_map(source: str) -> ClassMap:
    from consilience import data

    if not _is_public(source):
        return data.read_class_map(source)
    if data.describe(source).contract != "ClassMap":
        raise WrongKind(f"{source} is no class map, but {data.describe(source).contract}")
    return data.load(source)


def _systems(arguments: Arguments, names: list[str] | None = None) -> dict[str, Any]:
    """Read the predictions of each system, named after its file unless names are given."""
    found: list[tuple[str, Any]] = []
    files = arguments.predictions
    if files:
        keep_compiled_programs()
    kind = _kind(arguments)
    for source in files:
        if kind == "items":
            found += _predictions(source, arguments)
        else:
            system = read_key(source) if kind == "chains" else read_entities(source, arguments)
            found.append((Path(source).name.split(".")[0], system))
    if names is not None and len(names) != len(found):
        raise UnsupportedRequest(f"--names gives {len(names)} names for {len(found)} systems")
    labels = names or _told_apart(files, [name for name, _ in found])
    if twice := {name for name in labels if labels.count(name) > 1}:
        remedy = "give other --names" if hasattr(arguments, "names") else "rename the files"
        raise UnsupportedRequest(f"more than one system is called {', '.join(sorted(twice))}; {remedy}")
    systems = dict(zip(labels, (system for _, system in found), strict=True))
    return systems if kind == "chains" else {label: system.replace(name=label) for label, system in systems.items()}


def _told_apart(files: list[str], names: list[str]) -> list[str]:
    """Name systems whose files are called alike, as those of several runs, after their folders where that helps."""
    if len(files) != len(names):  # of public data, which hold several systems
        return names
    folders = [Path(source).resolve().parent.name for source in files]
    apart = [folder if names.count(name) > 1 else name for folder, name in zip(folders, names, strict=True)]
    return apart if len(set(apart)) == len(apart) else names


def _predictions(source: str, arguments: Arguments) -> list[tuple[str, Predictions]]:
    from consilience import data

    if not _is_public(source):
        missing = getattr(arguments, "missing", "error")
        system = data.read_predictions(source, columns=arguments.columns, missing=missing)
        return [(str(system.name), system)]
    loaded = data.load(source) if "Predictions" in data.describe(source).contract else None
    if loaded is None:
        raise WrongKind(f"{source} holds no predictions, but {data.describe(source).contract}")
    return list(loaded.items())


def _score_row(score: Any) -> dict[str, Any]:
    row = score.row()
    return {**row, "interval": [row["lower"], row["upper"]]}


def _write_items(items: Columns, arguments: Arguments) -> None:
    if arguments.csv:
        write_columns(items, arguments.csv, force=arguments.force)


# ---- agreement ----


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
    arguments.duplicates = policy if Path(arguments.file).exists() else None
    with warnings.catch_warnings():
        if arguments.duplicates is None:
            warnings.simplefilter("ignore", InputWarning)
        content = _read(arguments, "Annotations", "Mentions")
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
    rows = _agreement_rows(found, arguments)
    plan = _agreement_plan(found, arguments)
    if arguments.csv:
        write_csv(rows, arguments.csv, force=arguments.force)
    if arguments.output:
        from consilience.reporting import report as write

        write(found, path=arguments.output, force=arguments.force)
    if arguments.json:
        planned = {} if plan is None else {"plan": {"words": str(plan), **_nested(plan)}}
        print(json_text(rows if arguments.table else {**found.row(), "schemes": rows, **planned}))
        return
    if not arguments.table:
        print(f"{found!r}" + ("\n" if found.num_usable else ""))
    if arguments.table or found.num_usable:
        print(table_text(rows, limit=20 if arguments.table else None, hint="use --json or --csv FILE"))
    for line in [] if plan is None else ["", *str(plan).splitlines()]:
        print(line)
    if arguments.output:
        print(f"\nwritten  {arguments.output}")


def _agreement_rows(found: Any, arguments: Arguments) -> Rows:
    return rows_of(found.tabulate(arguments.table or "schemes"))


def _agreement_plan(found: Any, arguments: Arguments) -> Any:
    asked = {name: getattr(arguments, name) for name in ("budget", "width", "per_item")}
    return None if all(value is None for value in asked.values()) else found.plan(**asked)


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
    if arguments.table and any(getattr(arguments, name) is not None for name in ("budget", "width", "per_item")):
        raise UnsupportedRequest("a plan stands under the summary; leave out --table")


def _agreement_of_fit(arguments: Arguments) -> None:
    """Print the agreement that a fit implies."""
    taken = ("table", "annotators", "first", "values", "ordinal", "budget", "width", "per_item", "output", *READING)
    if unfit := [name for name in taken if getattr(arguments, name)]:
        named = _flags(name.replace("_", "-") for name in unfit)
        raise UnsupportedRequest(f"{named} has no meaning for a fit; give the table of annotations")
    arguments.folder = arguments.file
    _refuse_views(arguments, "agreement")
    fitted, _ = _load(arguments)
    from consilience.evaluation.agreement import agreement as measure

    found = measure(fitted, arguments.weights or "annotations_m1", level=arguments.level)
    if arguments.csv:
        write_csv(rows_of(found.table), arguments.csv, force=arguments.force)
    print(json_text(found.row()) if arguments.json else found)


# ---- is it right ----


def check(arguments: Arguments) -> int:
    """Test the hand-derived inference of a model, and say what each test found.

    Raises
    ------
    InputError : the file does not exist or cannot be used.
    UnknownName : there is no such model or setting.
    UnsupportedRequest : flags say how to read a file, and there is none, or they have no meaning for it.
    """
    takes = registry.place(arguments.model).takes
    reading = [name for name in READING if getattr(arguments, name)]
    if arguments.file is None and reading:
        raise UnsupportedRequest(f"{_flags(reading)} says how to read a file, and none is given")
    keep_compiled_programs()
    content = None if arguments.file is None else _read(arguments, *takes)
    options = _typed(registry.member(arguments.model), arguments.member_options)
    import consilience as cs

    with _precision(arguments.x64):
        found = cs.check(
            arguments.model, content, method=arguments.method, draws=arguments.draws, chains=arguments.chains,
            seed=arguments.seed, replications=arguments.replications, quick=not arguments.long,
            progress=False if arguments.quiet else None, **options,
        )  # fmt: skip
    described = {"model": found.model, "method": found.method, "passed": found.passed, "checks": rows_of(found.table)}
    print(json_text(described) if arguments.json else found)
    return 0 if found.passed else _POOR


# ---- what there is ----


def models(arguments: Arguments) -> None:
    """List the models, or describe one."""
    if arguments.name is not None:
        registry.place(arguments.name)
        description = _description(registry.member(arguments.name))
        print(json_text(description) if arguments.json else _description_text(description))
        return
    members = [registry.member(name) for name in registry.names()]
    rows = [
        {
            "name": one.name, "data": ", ".join(_contracts(one)), "methods": ", ".join(one.methods),
            "title": one.title,
        }
        for one in members
    ]  # fmt: skip
    print(json_text(rows) if arguments.json else _wide_text(rows, "consilience models NAME describes one"))


def _contracts(member: Model) -> list[str]:
    return [contract.__name__ for contract in member.takes]


def _wide_text(rows: Rows, hint: str) -> str:
    return f"{table_text(rows, limit=None, widest=None)}\n\n{hint}"


def _description(member: Model) -> dict[str, Any]:
    from consilience.inference.stored_priors import describe_priors
    from consilience.models.settings import REQUIRED

    options = [
        {
            "option": option.name, "type": option.kind.__name__,
            "default": "the prior's" if option.sets else "required" if option.default is REQUIRED else option.default,
            "choices": list(option.choices), "help": option.help,
        }
        for option in member.settings.fields()
    ]  # fmt: skip
    tables = {contract.__name__: _columns(contract) for contract in member.takes}
    return {
        "name": member.name, "title": member.title, "data": tables,
        "methods": list(member.methods), "options": options,
        "priors": None if member.priors is None else describe_priors(member.priors()),
        "tables": list(member.table_names),
    }  # fmt: skip


def _columns(contract: type[Contract]) -> Rows:
    rows: Rows = [
        {
            "column": f"{column.name} (optional)" if column.optional else column.name,
            "also_called": list(column.aliases), "help": column.help,
        }
        for column in contract.columns
    ]  # fmt: skip
    others = [{"column": contract.other_columns, "also_called": [], "help": ""}] if contract.other_columns else []
    return [*rows, *others]


def _description_text(description: dict[str, Any]) -> str:
    options = [{**row, "option": f"--{row['option'].replace('_', '-')}"} for row in description["options"]]
    shown = [
        {**{name: value for name, value in row.items() if name != "choices"}, "help": _help(row)} for row in options
    ]
    return "\n".join(
        [
            f"{description['name']}: {description['title']}\n",
            f"methods  {', '.join(description['methods'])} (the first is the default)",
            f"priors   {description['priors'] or 'none'}",
            f"tables   {', '.join(f'fit.{name}()' for name in description['tables'])}",
            *itertools.starmap(_columns_text, description["data"].items()),
            "options",
            _indented(table_text(shown, limit=None, widest=None)) if shown else "  none",
        ]
    )


def _columns_text(contract: str, columns: Rows) -> str:
    shown = [{**row, "also_called": ", ".join(row["also_called"])} for row in columns]
    table = table_text(shown, limit=None, widest=None)
    return f"data     {contract}, a table with these columns in any order\n{_indented(table)}"


def _help(row: dict[str, Any]) -> str:
    return row["help"] + (f" ({', '.join(map(str, row['choices']))})" if row["choices"] else "")


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def data(arguments: Arguments) -> None:
    """List, fetch or describe public data.

    Raises
    ------
    UnknownName : no data set is named, or there is none of this name.
    DataUnavailable : it cannot be fetched, or its checksum differs.
    """
    from consilience.data import catalogue

    if arguments.action == "list":
        rows = [
            {
                "name": one.name, "contract": one.contract, "stored": _where(one.name), "licence": one.licence,
                "title": one.title,
            }
            for one in catalogue.DATA_SETS
        ]  # fmt: skip
        hint = "consilience fit MODEL NAME reads one by its name"
        print(json_text(rows) if arguments.json else _wide_text(rows, hint))
        return
    if arguments.name is None:
        raise UnknownName(f"say which data set; there are {', '.join(catalogue.names())}")
    one = catalogue.describe(arguments.name)
    if arguments.action == "get":
        folder = catalogue.get(one.name)
        print(json_text({"name": one.name, "folder": str(folder)}) if arguments.json else folder)
        return
    described = {"name": one.name, "title": one.title, "contract": one.contract, "stored": _where(one.name)}
    described |= {"licence": one.licence, "citation": one.citation}
    files = [{"path": file.path, "address": file.address, "sha256": file.sha256} for file in one.files]
    if arguments.json:
        print(json_text({**described, "files": files}))
        return
    print("\n".join(f"{name:9}{value}" for name, value in described.items()))
    shown = files[:_MOST_FILES]
    print("\n".join(f"file     {file['path']}\n         {file['address']}" for file in shown))
    if len(files) > len(shown):
        print(f"… and {len(files) - len(shown):,} more files (use --json)")


def _where(name: str) -> str:
    from consilience.data import catalogue

    if not catalogue.describe(name).files:
        return "shipped"
    return "yes" if catalogue.stored(name) else "no"


def cite(arguments: Arguments) -> None:
    """Print a BibTeX entry."""
    print(registry.member(arguments.model).paper)


def demo(arguments: Arguments) -> None:
    """Run the demonstration."""
    keep_compiled_programs()
    from consilience.demo import run

    run(arguments.output, force=arguments.force)
