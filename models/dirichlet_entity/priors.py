"""The prior of `dirichlet-entity`: how concentrated the values of one entity's records are, field by field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from consilience.arrays import Array, Float, Int
from consilience.data.records import Records
from consilience.errors import InvalidPrior
from consilience.models.rows import numpy_of
from consilience.models.sites import Resolved


@dataclass(frozen=True, kw_only=True)
class Priors:
    """What the model believes before any record.

    Parameters
    ----------
    concentration : A, of the Dirichlet distribution of an entity's values in a field: a number; an array ``(field,)``;
        an array ``(value,)`` over the values of all fields end to end; or a function of the data that returns one of
        these. Every value of a field has the same by default, 0.25. The paper advises a small one, near zero; below
        about 0.25 coordinate ascent leaves every record alone, see `consilience.models.dirichlet_entity`.
    """

    concentration: Any | Callable[[Any], Any] = 0.25


def concentrations(resolved: Resolved) -> Float[Array, " value"]:
    """Return A of every value of every field.

    Raises
    ------
    InvalidPrior : it has another shape.
    """
    data, given = resolved.data, resolved.given.concentration
    xp = numpy_of(data.value)
    values = xp.asarray(given(data) if callable(given) else given, jnp.result_type(float))
    if values.shape == (data.num_fields,):
        values = values[field_of_value(data)]
    if values.shape not in ((), (data.num_values,)):
        raise InvalidPrior(
            f"the concentration of site 'value_share' has shape {values.shape}; give a number, one for each of the "
            f"{data.num_fields} fields, or one for each of the {data.num_values} values"
        )
    return xp.broadcast_to(values, (data.num_values,))


def field_of_value(data: Records) -> Int[Array, " value"]:
    """Return the field to which each value belongs; a field in which all is missing has none."""
    xp = numpy_of(data.first_value)
    return xp.searchsorted(data.first_value, xp.arange(data.num_values), side="right") - 1


def value_codes(data: Records) -> Int[Array, "field record"]:
    """Return the records' values as codes over all fields end to end, and the number of values where missing."""
    return numpy_of(data.value).where(data.value < 0, data.num_values, data.value + data.first_value[:-1, None])
