"""What there is: models, public data, citations and the demonstration."""

from __future__ import annotations

import itertools
from argparse import Namespace as Arguments
from typing import TYPE_CHECKING, Any

from consilience import models as registry
from consilience.errors import UnknownName
from consilience.inference.compilation import keep_compiled_as_asked
from consilience.printing import Rows, json_text, table_text

if TYPE_CHECKING:
    from consilience.data.contract import Contract
    from consilience.models.interface import Model

_MOST_FILES = 6


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
            "name": one.name, "data": ", ".join(contract.__name__ for contract in one.takes),
            "methods": ", ".join(one.methods), "title": one.title,
        }
        for one in members
    ]  # fmt: skip
    print(json_text(rows) if arguments.json else _wide_text(rows, "consilience models NAME describes one"))


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
        "tables": [*member.table_names, *member.measured_tables],
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
    """List, fetch or describe public data, or write the sample files.

    Raises
    ------
    OutputRefused : a sample file is there already, and ``--force`` is not given.
    UnknownName : no data set is named, or there is none of this name.
    DataUnavailable : it cannot be fetched, or its checksum differs.
    """
    from consilience.data import catalogue
    from consilience.data.samples import write_samples

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
    if arguments.action == "example":
        folder = arguments.name or "consilience-example"
        paths = write_samples(folder, force=arguments.force)
        listed = json_text({"folder": folder, "files": list(paths)})
        print(listed if arguments.json else "\n".join(map(str, paths.values())))
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
    keep_compiled_as_asked("on")
    from consilience.demo import run

    run(arguments.output, force=arguments.force)
