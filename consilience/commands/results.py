"""What one asks of a saved fit: its tables, certainties, chains, and predictions for new items."""

from __future__ import annotations

from argparse import Namespace as Arguments
from typing import Any

from consilience.commands.files import write_csv
from consilience.commands.reading import load, refuse_views
from consilience.errors import UnsupportedRequest
from consilience.printing import Columns, columns_of, json_text, numbered, rows_of, table_text

# Items that are shown as the least certain ones.
_LEAST = 10


def table(arguments: Arguments) -> None:
    """Print one of the model's tables; the first one when none is named."""
    fitted, _ = load(arguments)
    name = arguments.name or next(iter(fitted.member.table_names))
    columns = fitted.table_columns(name)
    columns = columns if arguments.view is None else _of_view(columns, name, arguments.view)
    columns = columns if arguments.expert is None else _of_expert(columns, name, arguments.expert)
    show(columns, arguments, of_views="num_views" in fitted.member.measure_names)


def show(columns: Columns, arguments: Arguments, *, of_views: bool = False) -> None:
    """Print the first rows of a table, or all of it as JSON, and write it where that is asked for.

    Views and clusters of experts have numbers, from 1, as on pages; in Python they are codes, from 0.
    """
    coded = [name for name in ("view", "cluster") if of_views and name in columns]
    if of_views:
        columns = {_numbered_share(name): numbered(own) if name in coded else own for name, own in columns.items()}
    write_csv(columns, arguments)
    if getattr(arguments, "quiet", False):
        return
    if arguments.json:
        print(json_text(rows_of(columns)))
        return
    print(table_text(columns, hint="use --json or --csv FILE"))
    if coded:
        print(f"\n{' and '.join(coded)}: numbered from {numbered(0)}; in Python from 0")


def _numbered_share(name: str) -> str:
    """Return the name of a column, of the share of a cluster by the number of the cluster."""
    code = name.removeprefix("p_")
    return f"p_{numbered(int(code))}" if name != code and code.isdigit() else name


def _of_expert(columns: dict[str, Any], name: str, expert: str) -> dict[str, Any]:
    """Return the rows of one expert."""
    if "expert" not in columns:
        raise UnsupportedRequest(f"the table '{name}' has no column 'expert'; leave out --expert")
    chosen = columns["expert"].astype(str) == expert
    if not chosen.any():
        known = ", ".join(sorted(set(columns["expert"].astype(str)))) or "none"
        raise UnsupportedRequest(f"the table '{name}' has no rows of '{expert}'; it has those of {known}")
    return {column: values[chosen] for column, values in columns.items()}


def _of_view(columns: dict[str, Any], name: str, view: int) -> dict[str, Any]:
    """Return the rows of one view."""
    if "view" not in columns:
        raise UnsupportedRequest(f"the table '{name}' has no column 'view'; leave out --view")
    number = numbered(columns["view"])
    chosen = number == view
    if not chosen.any():
        known = ", ".join(map(str, sorted(set(number.tolist())))) or "none"
        raise UnsupportedRequest(f"the table '{name}' has no view {view}; it has {known}")
    return {column: values[chosen] for column, values in columns.items()}


def certainty(arguments: Arguments) -> None:
    """Print the certainty of the data set, and the items that are least certain."""
    refuse_views(arguments, "certainty")
    fitted, risk = load(arguments)
    from consilience.evaluation.certainties import certainty as measure

    rule = arguments.group_rule or "top"
    score = measure(fitted, top=arguments.top, class_groups=risk, group_rule=rule, exact=arguments.exact)
    items = score.table_columns
    write_csv(items, arguments)
    summary = {**score_row(score), "below_0.99": int((score.items < 0.99).sum())}
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
    refuse_views(arguments, "next")
    fitted, _ = load(arguments)
    from consilience.evaluation.another_label import next_labels as rank

    columns = columns_of(rank(fitted, limit=arguments.limit))
    show(columns, arguments)


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
    fitted, _ = load(arguments)
    if "predict" not in fitted.member.measure_names:
        raise UnsupportedRequest(f"'{fitted.member.name}' predicts nothing from features; a fit of constraints does")
    choice = {"all_views": arguments.all_views}
    columns = columns_of(fitted.measure("predict", arguments.features, **choice))
    show(columns, arguments, of_views=True)


def score_row(score: Any) -> dict[str, Any]:
    """Return a score as a row, its interval in one place too."""
    row = score.row()
    return {**row, "interval": [row["lower"], row["upper"]]}
