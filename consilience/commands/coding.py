"""`code`: annotations coded into a folder of parts."""

from __future__ import annotations

from argparse import Namespace as Arguments


def code(arguments: Arguments) -> None:
    """Code the tables, and say where the parts are.

    Raises
    ------
    InputError : a table cannot be used.
    OutputRefused : the folder exists.
    """
    from consilience.data.coding import code as write

    names = ("columns", "labels", "missing", "duplicates", "unknown")
    given = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    folder = write(
        arguments.files, arguments.into, arguments.shards, memory=arguments.memory, force=arguments.force, **given
    )
    print(f"{folder}: {arguments.shards} parts")
