"""What to do where the model expects too many dates to be equal by chance: lines that part them, and a command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from consilience.pages import Action, Code
from consilience.pages.agreement_by_chance import Weighed
from consilience.printing import joined

_PARTS = ("year", "month", "day")


def split_dates(fit: Any, own: Weighed, kinds: Mapping[str, str]) -> list[Action]:
    """Return the advice to split dates into their parts, where the model expects too many to be equal by chance.

    Parameters
    ----------
    fit : of records.
    own : what fields weigh.
    kinds : the types of the fields.
    """
    dates = dates_to_split(own, kinds)
    if not dates:
        return []
    named = joined([f"“{date}”" for date in dates])
    gain = "so that the model learns how often dates are equal by chance"
    if _orders(fit, dates):
        words = f"Split {named} into year, month and day with the code under Match weights, {gain}"
    else:
        words = f"Put year, month and day of {named} into separate columns and link on these, {gain}"
    return [Action(words, section="Match weights")]


def in_parts(fit: Any, own: Weighed, kinds: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the files that those lines write, and the option that names their fields; None where there are no lines.

    For the parameters see `split_dates`.
    """
    dates = dates_to_split(own, kinds)
    if not dates or not (files := _orders(fit, dates)):
        return None
    fields = [part for kind in kinds for part in ([f"{kind}_{one}" for one in _PARTS] if kind in dates else [kind])]
    return " ".join(shlex.quote(_in_parts(file)) for file in files), f" --fields {shlex.quote(','.join(fields))}"


def lines_that_split(fit: Any, own: Weighed, kinds: Mapping[str, str]) -> list[Any]:
    """Return the lines of Python that write the parts of such dates; nothing where the files are not known as CSV."""
    dates = dates_to_split(own, kinds)
    if not dates or not (files := _orders(fit, dates)):
        return []
    text = (
        "import pandas\n"
        "from consilience.data.cleaning import date_of\n\n"
        f"for file, orders in {files!r}.items():\n"
        "    table = pandas.read_csv(file, dtype=str)\n"
        "    for name, order in orders.items():\n"
        "        dates = [date_of(text.strip(), order) for text in table.pop(name).fillna('')]\n"
        f"        for part in {list(_PARTS)!r}:\n"
        "            table[f'{name}_{part}'] = [getattr(date, part, '') for date in dates]\n"
        "    table.to_csv(file.removesuffix('.csv') + '-parts.csv', index=False)\n"
    )
    return [f"These lines write {joined(map(_in_parts, files))}, with a column for each part:", Code(text, "Parts")]


def dates_to_split(own: Weighed, kinds: Mapping[str, str]) -> list[str]:
    """Return the dates that the model expects to be equal by chance far too often."""
    return [one.field for one in own.overstated if kinds.get(one.field) == "date"]


def _orders(fit: Any, dates: list[str]) -> dict[str, dict[str, str]]:
    """Return the files, and in which order each of some columns of them has dates, as the ledger of cleaning has it.

    Empty where a file is no CSV, or calls its columns otherwise than the fit.
    """
    files, given = fit.attributes.get("files", []), fit.attributes
    if "cleaning" not in given or "columns" in given or not all(file.endswith(".csv") for file in files):
        return {}
    rows = list(zip(*(given["cleaning"][name] for name in ("column", "source", "order")), strict=True))
    return {
        file: {column: order for column, own, order in rows if column in dates and str(own) == source}
        for file, source in zip(files, map(str, fit.data.sources), strict=False)
    }


def _in_parts(file: str) -> str:
    return f"{file.removesuffix('.csv')}-parts.csv"
