"""The registry: which members the zoo has, by name. A new member is one file and one line here."""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING, NamedTuple

from consilience.errors import UnknownName

if TYPE_CHECKING:
    from consilience.models.interface import Model

__all__ = ["MEMBERS", "Entry", "entry", "member", "names"]


class Entry(NamedTuple):
    """Where a member is, known without importing it.

    Parameters
    ----------
    module : the module that holds its `MODEL`.
    data : name of the contract that it takes, so that the command reads a file before it imports JAX.
    also : names of other contracts that it takes.
    """

    module: str
    data: str
    also: tuple[str, ...] = ()


MEMBERS: dict[str, Entry] = {
    "dirichlet": Entry("consilience.models.dirichlet", "Annotations"),
    "normal-inverse-gamma": Entry("consilience.models.normal_inverse_gamma", "Ratings"),
    "majority-vote": Entry("consilience.models.majority_vote", "Annotations", also=("Mentions",)),
    "dawid-skene": Entry("consilience.models.dawid_skene", "Annotations"),
    "mace": Entry("consilience.models.mace", "Annotations"),
    "mpa": Entry("consilience.models.mpa", "Annotations", also=("Mentions",)),
    "irn": Entry("consilience.models.irn", "Rankings"),
    "prirn": Entry("consilience.models.prirn", "Rankings"),
    "plackett-luce": Entry("consilience.models.plackett_luce", "Rankings"),
    "block-linkage": Entry("consilience.models.block_linkage", "Records"),
    "dirichlet-entity": Entry("consilience.models.dirichlet_entity", "Records"),
    "hit-miss": Entry("consilience.models.hit_miss", "Records"),
    "expert-views": Entry("consilience.models.expert_views", "Constraints"),
}
"""Every member by name; nothing is imported before it is asked for."""


def names() -> tuple[str, ...]:
    """Return the names of all members."""
    return tuple(MEMBERS)


def entry(name: str) -> Entry:
    """Return where the member of this name is.

    Raises
    ------
    UnknownName : there is none; the text lists those that exist.
    """
    if name not in MEMBERS:
        close = difflib.get_close_matches(name, MEMBERS, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else ";"
        raise UnknownName(f"no model is called '{name}'{hint} the models are {', '.join(MEMBERS)}")
    return MEMBERS[name]


def member(name: str) -> Model:
    """Return the member of this name; raises `UnknownName` as `entry` does."""
    return importlib.import_module(entry(name).module).MODEL
