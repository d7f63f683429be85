"""The registry: which members the zoo has, by name. A new member is one file and one line here."""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING

from consilience.errors import UnknownName

if TYPE_CHECKING:
    from consilience.models.interface import Model

__all__ = ["MEMBERS", "member", "names"]

MEMBERS: dict[str, str] = {
    "dirichlet": "consilience.models.dirichlet",
    "normal-inverse-gamma": "consilience.models.normal_inverse_gamma",
    "irn": "consilience.models.irn",
    "prirn": "consilience.models.prirn",
}
"""Name of each member and the module that holds its `MODEL`; nothing is imported before it is asked for."""


def names() -> tuple[str, ...]:
    """Return the names of all members."""
    return tuple(MEMBERS)


def member(name: str) -> Model:
    """Return the member of this name.

    Raises
    ------
    UnknownName : there is none; the text lists those that exist.
    """
    if name not in MEMBERS:
        close = difflib.get_close_matches(name, MEMBERS, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else ";"
        raise UnknownName(f"no model is called '{name}'{hint} the models are {', '.join(MEMBERS)}")
    return importlib.import_module(MEMBERS[name]).MODEL
