"""Metrics by name: one table for each kind of truth, in which every metric is registered once.

A metric stands where its function is: ``@metric("b3-f1", kind=PARTITION, line="F1 of B³")``. In a name k, j and b
stand for numbers: ``top-k`` is a form, of which ``top-3`` is one. `METRICS` has, for each kind, the forms and what
scores systems by them: ``METRICS[kind](truth, systems, metrics)`` is a `consilience.evaluation.engine.Scoring`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from consilience.errors import UnknownName, UnsupportedRequest, meant
from consilience.evaluation.engine import Scoring
from consilience.models.truth import Truth
from consilience.models.truth.truth import KINDS, Kind

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Form:
    """A metric, or a family of them with numbers in their names.

    Parameters
    ----------
    name : with k, j and b in the place of numbers.
    line : what it stands for.
    function : makes the metric from these numbers; where there are none, what is registered.
    more : what else its kind wants to know.
    listed : whether it is among those that are listed.
    """

    name: str
    line: str
    function: Callable[..., Any]
    more: Mapping[str, Any] = field(default_factory=dict)
    listed: bool = True

    def sizes(self, name: str) -> list[int] | None:
        """Return the numbers in a name of this form; None for another name."""
        match = re.fullmatch(re.sub(r"\b[kjb]\b", r"([1-9][0-9]*)", self.name), name, flags=re.ASCII)
        sizes = [int(size) for size in match.groups()] if match else []
        # Sizes come as k, j: more target classes than places could never all be found.
        return sizes if match and sizes == sorted(sizes, reverse=True) else None


class Metrics:
    """The metrics of one kind of truth.

    Parameters
    ----------
    kind : of the truth.
    """

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.forms: dict[str, Form] = {}
        self.maker: Callable[..., Scoring] | None = None
        self.form_of = functools.cache(self._form_of)

    def __call__(self, truth: Truth, systems: Sequence[Any], metrics: Sequence[Any], **settings: Any) -> Scoring:
        """Score systems by metrics of this kind."""
        if self.maker is None:
            raise UnsupportedRequest(f"there are no scores of {self.kind.name}; read the truth as another kind")
        return self.maker(truth, systems, metrics, **settings)

    @property
    def lines(self) -> dict[str, str]:
        """What each form stands for, in one line."""
        return {name: form.line for name, form in self.forms.items() if form.listed}

    def known(self, name: str) -> bool:
        """Return whether there is a metric of this name."""
        return any(form.sizes(name) is not None for form in self.forms.values())

    def _form_of(self, name: str) -> tuple[Form, tuple[int, ...]]:
        """Return the form of a name, and the numbers in it.

        Raises
        ------
        UnknownName : the text lists the forms.
        """
        for form in self.forms.values():
            sizes = form.sizes(name)
            if sizes is not None:
                return form, tuple(sizes)
        width = max(map(len, self.lines), default=0) + 2
        forms = "\n".join(f"  {form:{width}}{line}" for form, line in self.lines.items())
        others = [f"{one.kind.unit}s" for one in METRICS.values() if one is not self and one.known(name)]
        near = meant(name, self.forms)
        hint = f", but for {' and '.join(others)}" if others else near and f" ({near})"
        numbers = " with numbers for k, j and b, 1 or more" if "top-k" in self.forms else ""
        raise UnknownName(
            f"no metric is called {name!r} for {self.kind.unit}s{hint}; write one of these{numbers}:\n{forms}"
        )


METRICS = {kind.name: Metrics(kind) for kind in KINDS}
"""The metrics of each kind."""


def metric(
    form: str, *, kind: Kind, line: str, listed: bool = True, **more: Any
) -> Callable[[_Function], _Function]:
    """Register a function as a metric, or as what makes those of a form."""

    def register(function: _Function) -> _Function:
        METRICS[kind.name].forms[form] = Form(form, line, function, more, listed)
        return function

    return register


def scores(kind: Kind) -> Callable[[_Function], _Function]:
    """Register a function as what scores systems of a kind."""

    def register(function: _Function) -> _Function:
        METRICS[kind.name].maker = function
        return function

    return register
