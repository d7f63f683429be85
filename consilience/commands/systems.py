"""`evaluate`, `compare`, `conformal` and `report`: systems scored against a fit."""

from __future__ import annotations

import itertools
from argparse import Namespace as Arguments
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilience.commands.coreference import are_chains, read_key
from consilience.commands.files import write_csv
from consilience.commands.linkage import read_entities
from consilience.commands.reading import flags, holds_records, is_public, load, refuse_views
from consilience.commands.results import score_row
from consilience.errors import UnsupportedRequest, WrongKind
from consilience.inference.compilation import keep_compiled_as_asked
from consilience.inference.run_folder import fit_folder
from consilience.piped import STANDARD_INPUT
from consilience.printing import columns_of, json_text, rows_of, table_text

if TYPE_CHECKING:
    from consilience.data import Predictions
    from consilience.evaluation.leaderboard import Comparison

_GIVEN_GROUP = "given the group of the top class of each draw"


def evaluate(arguments: Arguments) -> None:
    """Print one row for each system and metric."""
    refuse_views(arguments, "scores")
    policies = _policies(arguments)
    systems = _systems(arguments)
    fitted, risk = load(arguments)
    from consilience.evaluation.adjustment import SUPPOSITIONS
    from consilience.evaluation.adjustment import evaluate as score_predictions
    from consilience.models.truth.truth import KINDS

    default = {kind.name: kind.metric for kind in KINDS}
    metrics = arguments.metric or [default[next(iter(systems.values())).kind]]
    rows, groups, titles, notes = [], [], [], dict[str, None]()
    items: dict[str, Any] = {}
    both = ("ignored", "annotator")[: 2 if arguments.responses == "annotator" else 1]
    for (name, predictions), how in itertools.product(systems.items(), both):
        for metric, score in score_predictions(
            fitted, predictions, metrics, class_groups=risk, exact=arguments.exact, responses=how, **policies
        ).items():
            own = [] if risk is None else rows_of(score.by_group)
            rows.append({"system": name, "metric": metric, **({"responses": how} if both[1:] else {})})
            rows[-1] |= score_row(score) | ({"by_group": own} if own else {})
            groups += [{"system": name, "metric": metric, **row} for row in own]
            column = " ".join([*([name] if len(systems) > 1 else []), metric, *([how] if both[1:] else [])])
            items |= {score.unit: score.table_columns[score.unit], column: score.items}
            titles.append(score.title)
            rows[-1]["notes"] = list(score.notes)
            notes |= dict.fromkeys(score.notes)
    write_csv(items, arguments)
    if arguments.json:
        print(json_text(rows))
        return
    hidden = ("score", "interval", "by_group", "notes")
    print(table_text([{name: value for name, value in row.items() if name not in hidden} for row in rows], limit=None))
    for how, words in SUPPOSITIONS.items():
        if any(title.endswith(words) for title in titles):
            print(f"{how}: {words}")
    if groups:
        print(f"\n{_GIVEN_GROUP}\n{table_text(groups, limit=None)}")
    if notes:
        print("", *notes, sep="\n")


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
    refuse_views(arguments, "scores")
    policies = _policies(arguments)
    systems = _systems(arguments, arguments.names)
    fitted, risk = load(arguments)
    from consilience.evaluation.comparison import compare as rank

    metric, *others = arguments.metric or [None]
    if others:
        raise UnsupportedRequest("systems are ranked by one metric; give --metric once")
    comparison = rank(
        fitted, systems, metric, provenance=arguments.provenance, gold=arguments.gold, level=arguments.level,
        seed=arguments.seed, exact=arguments.exact, responses=arguments.responses, class_groups=risk, **policies,
    )  # fmt: skip
    print_comparison(comparison, arguments)


def print_comparison(comparison: Comparison, arguments: Arguments) -> None:
    """Print a leaderboard, how sure one may be of each pair, and what has to be known to read them."""
    write_csv(comparison.table, arguments)
    leaderboard, pairs = rows_of(comparison.table), rows_of(comparison.pairs)
    groups = {} if comparison.by_group is None else {"by_group": rows_of(comparison.by_group)}
    if arguments.json:
        print(json_text({"leaderboard": leaderboard, "pairs": pairs, "notes": list(comparison.notes), **groups}))
        return
    shown = table_text(rows_of(comparison.shown), limit=None)
    print(f"{comparison.title}, {comparison.num_items:,} {comparison.unit}s\n{shown}")
    if pairs:
        print(f"\npairs\n{table_text(pairs, limit=20)}")
    if groups:
        print(f"\n{_GIVEN_GROUP}\n{table_text(groups['by_group'], limit=None)}")
    if comparison.notes:
        print("", *comparison.notes, sep="\n")


def conformal(arguments: Arguments) -> None:
    """Print how large the sets of classes are and what they hold, and the sets of all items of the file.

    Raises
    ------
    UnsupportedRequest : the fit is not of classes, or the level no probability.
    InputError : the predictions do not exist, or are no probabilities of the items of the fit.
    InvalidFit : the folder holds no fit.
    """
    refuse_views(arguments, "scores")
    from consilience import data

    keep_compiled_as_asked("on")
    predictions = data.read_predictions(arguments.predictions, columns=arguments.columns, scores="probabilities")
    fitted, _ = load(arguments)
    import consilience as cs

    found = cs.conformal(
        fitted, predictions, level=arguments.level, score=arguments.score, missing=arguments.missing,
        unknown=arguments.unknown,
    )  # fmt: skip
    sets = columns_of(found.sets(predictions, unknown=arguments.unknown))
    write_csv({**sets, "classes": [" | ".join(one) for one in sets["classes"]]}, arguments)
    if arguments.json:
        figures = {name: getattr(found, name) for name in ("level", "score", "threshold", "coverage", "size")}
        print(json_text({**figures, "items": rows_of(sets)}))
        return
    print(f"{found!r}\n\n{table_text(sets, hint='use --json or --csv FILE')}")


def report(arguments: Arguments) -> None:
    """Write the HTML report."""
    if arguments.predictions:
        refuse_views(arguments, "scores")
    policies = _policies(arguments)
    systems = _systems(arguments)
    fitted, risk = load(arguments)
    import consilience as cs

    text = arguments.text[0] if arguments.text and len(arguments.text) == 1 else arguments.text
    cs.report(
        fitted, systems or None, path=arguments.output, metric=arguments.metric, class_groups=risk,
        title=arguments.title, provenance=arguments.provenance, text=text, force=arguments.force, **policies,
    )  # fmt: skip
    print(f"wrote {arguments.output}")


def _kind(arguments: Arguments) -> str:
    """Return of what the predictions are: records where the fit is of records, chains, or items."""
    if holds_records(fit_folder(arguments.folder)):
        return "records"
    return "chains" if are_chains(arguments.predictions, arguments.metric or ()) else "items"


def _policies(arguments: Arguments) -> dict[str, Any]:
    """Return what the flags say of items and classes, of records, or of chains."""
    kind = _kind(arguments)
    if kind != "items" and arguments.duplicates != "error":
        raise UnsupportedRequest(f"--duplicates says something of classes of items; the predictions are {kind}")
    if kind != "items" and arguments.scores != "ranks":
        raise UnsupportedRequest(f"--scores says something of classes of items; the predictions are {kind}")
    if kind != "chains":
        if arguments.singletons is not None:
            what = {"items": "classes of items", "records": "entities of records"}[kind]
            raise UnsupportedRequest(f"--singletons says something of chains; the predictions are {what}")
        return {"missing": arguments.missing, "unknown": arguments.unknown}
    if unfit := [name for name in ("missing", "unknown") if getattr(arguments, name) != "error"]:
        raise UnsupportedRequest(f"{flags(unfit)} has no meaning for chains")
    return {"singletons": arguments.singletons != "exclude"}


def _systems(arguments: Arguments, names: list[str] | None = None) -> dict[str, Any]:
    """Read the predictions of each system, named after its file unless names are given."""
    found: list[tuple[str, Any]] = []
    files = arguments.predictions
    if files:
        keep_compiled_as_asked("on")
    kind = _kind(arguments)
    for source in files:
        if kind == "items":
            found += _predictions(source, arguments)
        else:
            system = read_key(source) if kind == "chains" else read_entities(source, arguments)
            found.append((_called(source), system))
    if names is not None and len(names) != len(found):
        raise UnsupportedRequest(f"--names gives {len(names)} names for {len(found)} systems")
    labels = names or _told_apart(files, [name for name, _ in found])
    if twice := {name for name in labels if labels.count(name) > 1}:
        remedy = "give other --names" if hasattr(arguments, "names") else "rename the files"
        raise UnsupportedRequest(f"more than one system is called {', '.join(sorted(twice))}; {remedy}")
    systems = dict(zip(labels, (system for _, system in found), strict=True))
    if kind == "chains":
        return systems
    from consilience.data.contract import named_after

    return {label: named_after(system.replace(name=label), system.file) for label, system in systems.items()}


def _called(source: str) -> str:
    return "standard input" if source == STANDARD_INPUT else Path(source).name.split(".")[0]


def _told_apart(files: list[str], names: list[str]) -> list[str]:
    """Name systems whose files are called alike, as those of several runs, after their folders where that helps."""
    if len(files) != len(names):  # of public data, which hold several systems
        return names
    folders = [Path(source).resolve().parent.name for source in files]
    apart = [folder if names.count(name) > 1 else name for folder, name in zip(folders, names, strict=True)]
    return apart if len(set(apart)) == len(apart) else names


def _columns(source: str, arguments: Arguments) -> dict[str, str] | None:
    """Return the names of columns that a file has, of those that are given for all files; what none has stays."""
    if not arguments.columns or len(arguments.predictions) == 1:
        return arguments.columns
    from consilience.data.tables import column_names

    files = [file for file in arguments.predictions if not is_public(file)]
    own, others = (
        {name.casefold() for file in some for name in column_names(file)}
        for some in ([source], [file for file in files if file != source])
    )
    foreign = others - own
    return {role: name for role, name in arguments.columns.items() if name.casefold() not in foreign} or None


def _predictions(source: str, arguments: Arguments) -> list[tuple[str, Predictions]]:
    from consilience import data

    if not is_public(source):
        system = data.read_predictions(
            source, columns=_columns(source, arguments), missing=arguments.missing, duplicates=arguments.duplicates,
            scores=arguments.scores,
        )  # fmt: skip
        return [(_called(source), system)]
    if arguments.scores != "ranks":
        raise UnsupportedRequest(f"{source} is public data, which is read as published; leave out --scores")
    loaded = data.load(source) if "Predictions" in data.describe(source).contract else None
    if loaded is None:
        raise WrongKind(f"{source} holds no predictions, but {data.describe(source).contract}")
    return list(loaded.items())
