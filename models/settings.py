"""The settings of a member: one frozen record, whose fields say what is allowed and what it means.

A field is made by `setting`; its annotation is its type. Checking, the command's flags, its help and the description of
a fit all read the fields, so that a setting is written once:

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True, kw_only=True)
... class Mine(Settings):
...     reliability: float = setting(1.0, "how much an annotation is trusted", above=0.0)
>>> Mine.checked({"reliability": "3"}, "mine")
Mine(reliability=3.0)
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from consilience.deprecation import current
from consilience.errors import ConsilienceError, UnknownName, UnsupportedRequest, no_such


class _Default(enum.Enum):
    """A value of its own that stays the same one when it is copied or pickled."""

    required = enum.auto()


REQUIRED: Any = _Default.required
"""Default of a setting that the user must give."""

_KINDS = {int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a field of `Settings` declares.

    Parameters
    ----------
    name : keyword of `fit`, and with dashes the flag of the command.
    kind : type of the value: float, int or str.
    default : value when left out, or `REQUIRED`.
    help : one line for ``--help`` and for error messages.
    choices : the allowed values, where they are few.
    words : of a number: texts that may stand in its place.
    at_least, at_most, above : the smallest and the largest allowed value; a bound that is itself not allowed.
    earlier : value of fits that were saved before the setting existed, where that is not the default.
    own : a class; objects of it are taken as they are, in the place of a choice. A saved fit knows them in words only.
    sets : the prior for which this is a shorthand, and the function of the value that makes the prior; None of a
        setting of the member itself.
    """

    name: str
    kind: type
    default: Any
    help: str
    choices: tuple = ()
    words: tuple[str, ...] = ()
    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    earlier: Any = None
    own: type | None = None
    sets: tuple[str, Callable[[Any], Any]] | None = None

    def checked(self, value: Any, member: str) -> Any:
        """Return the value in the setting's type.

        Raises
        ------
        UnsupportedRequest : it is of another type, no choice, or out of bounds.
        """
        if self.own is not None and isinstance(value, self.own):
            return value
        if isinstance(value, str) and value in self.words:
            return value
        try:
            if isinstance(value, str) and "_" in value and self.kind is not str:
                raise ValueError  # Python takes 1_0 for ten
            converted = self.kind(value)
            value = value if self.kind is str else float(value)
        except (TypeError, ValueError, OverflowError):
            converted = None
        named = f"option '{self.name}' of '{member}' is"
        if converted is None or (self.kind is not str and not (math.isfinite(converted) and converted == value)):
            given = ", ".join((_KINDS[self.kind], *map(repr, self.words)))
            raise UnsupportedRequest(f"{named} {value!r}; give {given} ({self.help})")
        if self.choices and converted not in self.choices:
            raise UnsupportedRequest(f"{named} {value!r}; choose one of {', '.join(map(repr, self.choices))}")
        if self.at_least is not None and converted < self.at_least:
            raise UnsupportedRequest(f"{named} {converted!r}; it must be at least {self.at_least:g}")
        if self.at_most is not None and converted > self.at_most:
            raise UnsupportedRequest(f"{named} {converted!r}; it must be at most {self.at_most:g}")
        if self.above is not None and converted <= self.above:
            raise UnsupportedRequest(f"{named} {converted!r}; it must be above {self.above:g}")
        return converted


def setting(
    default: Any,
    help: str,
    *,
    choices: tuple = (),
    words: tuple[str, ...] = (),
    at_least: float | None = None,
    at_most: float | None = None,
    above: float | None = None,
    earlier: Any = None,
    sets: tuple[str, Callable[[Any], Any]] | None = None,
) -> Any:
    """Declare a field of `Settings`; see `Setting` for the parameters.

    A shorthand for a prior (``sets``) is None by default, and then has no part in anything.
    """
    declared = {
        "help": help, "choices": choices, "words": words, "at_least": at_least, "at_most": at_most, "above": above,
        "earlier": earlier, "sets": sets,
    }  # fmt: skip
    return dataclasses.field(default=default, metadata=declared)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Base of the settings of all members; that of a member without any."""

    @classmethod
    def fields(cls) -> tuple[Setting, ...]:
        """Return what each field declares."""
        return _fields(cls)  # type: ignore[arg-type]  # mypy takes the hash of its instances for that of the class

    @classmethod
    def checked(cls, given: Mapping[str, Any], member: str) -> Settings:
        """Make the settings of a fit from keyword arguments, defaults filled in.

        Raises
        ------
        UnknownName : there is no such setting.
        UnsupportedRequest : a value is not allowed, or a required one is missing. All that is wrong is said at once.
        """
        known = {field.name: field for field in cls.fields()}
        given = current(given, member)
        wrong: list[ConsilienceError] = [unknown_option(name, member, known) for name in given if name not in known]
        values = {}
        for name, field in known.items():
            value = given.get(name, field.default)
            try:
                if value is REQUIRED:
                    raise UnsupportedRequest(f"'{member}' needs the option '{name}': {field.help}")
                left_out = field.sets is not None and value is None
                values[name] = None if left_out else field.checked(value, member)
            except UnsupportedRequest as problem:
                wrong.append(problem)
        if wrong:
            raise type(wrong[0])("\n".join(map(str, wrong)))
        return cls(**values)

    def without_shorthands(self) -> Settings:
        """Return the settings without those that stand for priors."""
        return dataclasses.replace(self, **{field.name: None for field in self.fields() if field.sets is not None})

    def shorthands(self) -> dict[str, tuple[str, Any]]:
        """Return what was given as a shorthand: name -> (field of the priors that it sets, the prior)."""
        return {
            field.name: (field.sets[0], field.sets[1](getattr(self, field.name)))
            for field in self.fields()
            if field.sets is not None and getattr(self, field.name) is not None
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the settings of the member itself, by name; shorthands for priors are left out."""
        return {field.name: getattr(self, field.name) for field in self.fields() if field.sets is None}

    def sizes(self, data: Any) -> dict[str, int]:
        """Return the sizes of dimensions that the settings decide, such as the most clusters of a view."""
        return {}


@functools.cache
def _fields(settings: Any) -> tuple[Setting, ...]:
    hints = typing.get_type_hints(settings)
    found = []
    for field in dataclasses.fields(settings):
        parts = typing.get_args(hints[field.name]) or (hints[field.name],)
        kind = next(part for part in _KINDS if part in parts)
        own = [part for part in parts if part not in (*_KINDS, types.NoneType)]
        found.append(
            Setting(name=field.name, kind=kind, default=field.default, own=own[0] if own else None, **field.metadata)
        )
    return tuple(found)


def unknown_option(name: str, member: str, known: Iterable[str]) -> UnknownName:
    """Return what is said of an option that does not exist, with the closest one that does."""
    return no_such(f"'{member}' has no option '{name}'", name, known, f"its options: {', '.join(known) or 'none'}")
