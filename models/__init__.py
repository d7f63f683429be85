"""The registry: which members the zoo has, by name. A new member is one file and one line here."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, NamedTuple

from consilience.errors import no_such

if TYPE_CHECKING:
    from consilience.models.interface import Model

__all__ = ["MEMBERS", "MemberPlace", "member", "names", "place"]


class MemberPlace(NamedTuple):
    """Where a member is, known without importing it.

    Parameters
    ----------
    module : the module that holds its `MODEL`.
    takes : names of the contracts that it takes, so that the command reads a file before it imports JAX.
    """

    module: str
    takes: tuple[str, ...]


MEMBERS: dict[str, MemberPlace] = {
    "dirichlet": MemberPlace("consilience.models.dirichlet", ("Annotations",)),
    "normal-inverse-gamma": MemberPlace("consilience.models.normal_inverse_gamma", ("Ratings",)),
    "majority-vote": MemberPlace("consilience.models.majority_vote", ("Annotations", "Mentions")),
    "dawid-skene": MemberPlace("consilience.models.dawid_skene", ("Annotations",)),
    "mace": MemberPlace("consilience.models.mace", ("Annotations",)),
    "one-coin": MemberPlace("consilience.models.one_coin", ("Annotations",)),
    "glad": MemberPlace("consilience.models.glad", ("Annotations",)),
    "mpa": MemberPlace("consilience.models.mpa", ("Annotations", "Mentions")),
    "irn": MemberPlace("consilience.models.irn", ("Rankings",)),
    "prirn": MemberPlace("consilience.models.prirn", ("Rankings",)),
    "plackett-luce": MemberPlace("consilience.models.plackett_luce", ("Rankings",)),
    "block-linkage": MemberPlace("consilience.models.block_linkage", ("Records",)),
    "dirichlet-entity": MemberPlace("consilience.models.dirichlet_entity", ("Records",)),
    "hit-miss": MemberPlace("consilience.models.hit_miss", ("Records",)),
    "expert-views": MemberPlace("consilience.models.expert_views", ("Constraints",)),
}
"""Every member by name; nothing is imported before it is asked for."""

FIRST = {True: "dawid-skene", False: "dirichlet"}
"""The member to begin with for annotations, by whether it is known who gave them."""

OF_RATINGS = "normal-inverse-gamma"
"""The member for ratings."""


def names() -> tuple[str, ...]:
    """Return the names of all members."""
    return tuple(MEMBERS)


def place(name: str) -> MemberPlace:
    """Return where the member of this name is.

    Raises
    ------
    UnknownName : there is none; the text lists those that exist.
    """
    if name not in MEMBERS:
        raise no_such(f"no model is called '{name}'", name, MEMBERS, f"the models are {', '.join(MEMBERS)}")
    return MEMBERS[name]


def member(name: str) -> Model:
    """Return the member of this name; raises `UnknownName` as `place` does."""
    return importlib.import_module(place(name).module).MODEL
