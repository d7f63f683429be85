"""The tables and measures of a fit as callables that show themselves: their help, what they take, how to call them."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from consilience.models.interface import Measure, Table

_BEFORE_CHOICE = 3  # a table is made of posterior, data and truth, and then of what one chooses


class FitTable:
    """A table or a measure of a fit, to be called: ``fit.labels()``.

    Parameters
    ----------
    fit : whose it is.
    table : what the member declares of it.
    """

    def __init__(self, fit: Any, table: Table | Measure) -> None:
        self._fit, self._table = fit, table
        self.__name__ = self.__qualname__ = table.name
        self.__doc__ = _help_of(table)

    def __call__(self, *arguments: Any, **choice: Any) -> Any:
        """Return the table, or what is measured."""
        if isinstance(self._table, Table):
            return self._fit.table(self._table.name, *arguments, **choice)
        return _of_measure(self._table)(self._fit, *arguments, **choice)

    def __reduce__(self) -> Any:
        return FitTable, (self._fit, self._table)

    def __repr__(self) -> str:
        return f"fit.{self._table.name}{self.__signature__}: {self._table.help} Call it."

    def __getattr__(self, name: str) -> Any:
        if name != "__signature__":
            raise AttributeError(name)
        # Late: what measures is imported when it is asked for.
        if isinstance(self._table, Table):
            own = list(inspect.signature(self._table.make).parameters.values())[_BEFORE_CHOICE:]
            own = [one.replace(kind=one.KEYWORD_ONLY) for one in own if one.kind is not one.VAR_KEYWORD]
            return inspect.Signature(own, return_annotation="pandas.DataFrame")
        signature = inspect.signature(_of_measure(self._table))
        return signature.replace(parameters=list(signature.parameters.values())[1:])


def _of_measure(measure: Measure) -> Any:
    """Return the function of a measure: what inference may not import, a member may name."""
    module, _, name = measure.place.partition(":")
    return getattr(importlib.import_module(module), name)


def _help_of(table: Table | Measure) -> str:
    if not table.columns:
        return table.help
    columns = "\n".join(f"{column.name} : {column.help}" if column.help else column.name for column in table.columns)
    return f"{table.help}\n\nReturns\n-------\ndata frame with the columns\n\n{columns}\n"
