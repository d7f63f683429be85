"""Names that were given up: keywords, flags and options of saved fits, with those that took their place.

An old keyword or flag works until version `GONE`, with a warning; saved fits load for good, and say nothing.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from consilience.errors import ConsilienceDeprecationWarning, UnsupportedRequest
from consilience.notes import Remedy

GONE = "0.3"
"""The version that knows none of the old names."""

RENAMED: Mapping[str, Mapping[str, str]] = {
    # Function or model -> old keyword -> new one; options of models are flags, too.
    "certainty": {"classes_to": "class_groups", "by": "group_rule"},
    "evaluate": {"by": "class_groups"},
    "expected_risk": {"risk": "class_groups"},
    "report": {"risk": "class_groups"},
    "sweep": {"risk": "class_groups"},
    "irn": {"weights": "rank_weights"},
    "prirn": {"weights": "rank_weights"},
}

RENAMED_FLAGS: Mapping[str, Mapping[str, str]] = {
    # Command -> old flag -> new one, as arguments.
    "certainty": {"map": "class_groups", "by": "group_rule"},
    "evaluate": {"map": "class_groups"},
    "report": {"map": "class_groups"},
}

_Parameters = ParamSpec("_Parameters")
_Returned = TypeVar("_Returned")


def renamed(function: Callable[_Parameters, _Returned]) -> Callable[_Parameters, _Returned]:
    """Let a function take the old names of its keywords."""

    @functools.wraps(function)
    def call(*arguments: Any, **given: Any) -> Any:
        return function(*arguments, **current(given, function.__name__, stacklevel=3))

    return call


def current(
    given: Mapping[str, Any], whose: str, stacklevel: int = 2, table: Mapping[str, Mapping[str, str]] = RENAMED
) -> dict[str, Any]:
    """Return keywords under their new names, and warn of the old ones.

    Parameters
    ----------
    given : by name.
    whose : function, model or command.
    stacklevel : of the warning.
    table : of old names and new ones.

    Raises
    ------
    UnsupportedRequest : both names of one keyword are given.
    """
    names = table.get(whose, {})
    found = dict(given)
    for old in names.keys() & given.keys():
        new = names[old]
        if new in found:
            text = f"{{{new}}} and {{{old}}} are one thing under two names; leave out {{{old}}}"
            raise UnsupportedRequest(text, Remedy(new), Remedy(old))
        text = f"{{{old}}} is called {{{new}}} now; the old name works until version {GONE}"
        remedies = (Remedy(old), Remedy(new))
        warnings.warn(ConsilienceDeprecationWarning(text, *remedies), stacklevel=stacklevel)
        found[new] = found.pop(old)
    return found


def as_saved(options: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return the options of a saved fit under their names of now."""
    names = RENAMED.get(model, {})
    return {names.get(name, name): value for name, value in options.items()}
