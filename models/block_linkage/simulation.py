r"""Records of entities that are known: values by Zipf's law, distorted, misspelt and lost, in one or several files.

Entities have 1, 2, … records with shares :math:`\mu`, and a true value in every field: the v-th most common one with a
share :math:`\propto v^{-s}`. A record repeats the true value of a field, or with probability b shows another draw from
the same shares, which may be the true value again (hit or miss; Steorts, Hall and Fienberg 2014).

That fields err independently is what models assume. Two kinds of data break it: people who move change several fields
together, and lists that were made by distorting one field of every duplicate, such as RLdata, never change two.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Bool, Float, Int, Key
from consilience.data.codes import object_array
from consilience.data.records import Records
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.words import misspelt, words
from consilience.models.interface import Simulation
from consilience.models.sites import Resolved
from consilience.notes import Remedy

PerField = float | Sequence[float] | np.ndarray
"""One number for all fields, or one for each."""


def simulate_records(
    num_records: int = 500,
    *,
    num_entities: int | None = None,
    num_values: Sequence[int] = (150, 100, 90, 12, 31),
    exponent: PerField = 1.0,
    distortion: PerField = 0.05,
    missing: PerField = 0.0,
    size_share: Sequence[float] | np.ndarray = (0.9, 0.1),
    num_files: int = 1,
    repeats: bool = True,
    moves: float = 0.0,
    moving_fields: Sequence[str] = (),
    errors: str = "independent",
    typos: bool | Sequence[str] = False,
    seed: int = 0,
) -> Records:
    """Draw entities, and records of them with errors; who is who is known.

    A field is ``field_1``, ``field_2``, …, a file ``file_1``, …, and values are made-up words.

    Parameters
    ----------
    num_records : int, default 500
        How many; of no account where ``num_entities`` is given.
    num_entities : int, optional
        How many entities, with all of their records.
    num_values : sequence of int, optional
        How many values each field may have; one number a field.
    exponent : PerField, default 1.0
        Of Zipf's law, for all fields or for each: the v-th most common value has a share in proportion to v to minus
        this; 0 for values that are equally common.
    distortion : PerField, default 0.05
        How probably a record's field shows another draw, for all fields or for each.
    missing : PerField, default 0.0
        Share of the values that are lost, for all fields or for each.
    size_share : sequence of float or numpy.ndarray, optional
        The shares of entities with 1, 2, … records.
    num_files : int, default 1
        How many files the records come in.
    repeats : bool, default True
        Whether a file may have several records of an entity. If not, an entity has no more records than there are
        files.
    moves : float, default 0.0
        Share of the records in which all ``moving_fields`` are drawn anew together, besides other errors.
    moving_fields : sequence of str, optional
        Names of these fields.
    errors : str, default "independent"
        ``independent``, or ``one``: the first record of an entity is true, and every other one has a wrong value in
        exactly one field.
    typos : bool or sequence of str, default False
        Whether a distorted value is the true one with a typing error in one letter, not another value: in all fields or
        in none, or the names of the fields in which it is.
    seed : int, default 0
        The same one gives the same records.

    Returns
    -------
    Records
        With known entities; `write_records` writes them to CSV files. What was distorted is told by `simulate`.

    Raises
    ------
    UnsupportedRequest : numbers that do not fit together, and a field that there is not.

    Examples
    --------
    >>> import consilience as cs
    >>> records = cs.simulate_records(num_entities=20, num_files=2, seed=1)
    >>> records.num_fields, records.num_sources, len(records.entities)
    (5, 2, 20)
    """
    fields = numbered("field_", len(num_values)).tolist()
    misspelt_fields = () if isinstance(typos, bool) else tuple(typos)
    for named, could in ((moving_fields, "move"), (misspelt_fields, "be misspelt")):
        if unknown := [name for name in named if name not in fields]:
            there = ", ".join(fields)
            raise UnsupportedRequest(f"there is no field {unknown[0]!r} that could {could}; there are {there}")
    return simulate(
        seed, num_records=num_records, num_entities=num_entities, num_values=num_values, exponent=exponent,
        distortion=distortion, missing=missing, size_share=size_share, num_sources=num_files, repeats=repeats,
        moves=moves, moving_fields=[fields.index(name) for name in moving_fields], errors=errors,
        typos=typos if isinstance(typos, bool) else [name in misspelt_fields for name in fields],
    )[0]  # fmt: skip


def simulate(
    key: Key | int, *, num_records: int = 500, num_entities: int | None = None,
    num_values: Sequence[int] = (150, 100, 90, 12, 31), exponent: PerField = 1.0,
    distortion: PerField = 0.05, missing: PerField = 0.0,
    size_share: Sequence[float] | np.ndarray = (0.9, 0.1), intensity: float | None = None,
    num_sources: int = 1, repeats: bool = True,
    moves: float = 0.0, moving_fields: Sequence[int] = (), errors: str = "independent",
    typos: bool | Sequence[bool] = False,
) -> tuple[Records, dict[str, np.ndarray]]:  # fmt: skip
    """Draw entities, and records of them.

    Parameters
    ----------
    key : a key of JAX, or a whole number. The same one gives the same records in every process.
    num_records, num_entities, num_values, missing, repeats, moves : as `simulate_records` takes them.
    exponent, distortion, size_share : s, b and μ, as there. The last entity is cut where the records are enough.
    intensity : m. Where given, the number of entities is that of a Poisson distribution with this mean when it is not
        zero, and there are as many records as they have: the prior of partitions as it is, for tests of a posterior.
    num_sources : how many files the records come in.
    moving_fields : positions of the fields that move.
    errors : as there; the one field that is wrong is chosen in proportion to ``distortion``.
    typos : as there; for all fields or for each.

    Returns
    -------
    data : with known entities; fields are ``field_1``, …, files ``file_1``, ….
    values : ``distorted``, bool ``(field, record)``, where a value was drawn anew or misspelt; ``true_value``, int32
        ``(field, record)``, what the entity has there, -1 where no record shows that; ``value_share``, ``(value,)``, 0
        for texts that arise from typing errors alone; ``distortion``, ``(field,)``; ``size_share``, ``(size,)``.

    Raises
    ------
    UnsupportedRequest : numbers that do not fit together.
    """
    num_fields = len(num_values)
    exponents, rates, lost = (
        _per_field(name, given, num_fields)
        for name, given in (("exponent", exponent), ("distortion", distortion), ("missing", missing))
    )
    shares = np.asarray(size_share, float)
    _check(num_records, num_values, shares, num_sources, repeats, moving_fields, num_fields, errors)
    if intensity is not None and not 0 < intensity < np.inf:
        raise UnsupportedRequest(f"intensity is {intensity}; give the expected number of entities, above 0")
    if not 0 <= moves <= 1:
        raise UnsupportedRequest(f"moves is {moves}; give a share from 0 to 1")
    if num_entities is not None and (num_entities < 1 or intensity is not None):
        raise UnsupportedRequest(f"num_entities is {num_entities}; give 1 or more, and no intensity besides")
    of_records, *of_fields = generators(key, 1 + num_fields)
    entity, place = _entities(of_records, num_records, shares / shares.sum(), num_entities, intensity)
    num_records = len(entity)
    source = _sources(of_records, entity, place, num_sources, repeats)
    order = np.lexsort((of_records.random(num_records), source))
    entity, place, source = entity[order], place[order], source[order]
    misspelt_field = np.broadcast_to(np.asarray(typos, bool), (num_fields,))
    wrong = _errors(of_records, place, rates, errors, misspelt_field | (np.array(num_values) > 1))
    moved = of_records.random(num_records) < moves
    fields = [
        _field(
            generator, entity, _zipf(num_values[field], exponents[field]), wrong[field],
            moved & (field in moving_fields), lost[field], differ=errors == "one",
            typos=bool(misspelt_field[field]),
        )
        for field, generator in enumerate(of_fields)
    ]  # fmt: skip
    entity, _ = _in_order_of_appearance(entity, int(entity.max()) + 1)
    value = np.stack([field.value for field in fields])
    data = with_names(value, source, entity, [field.vocabulary for field in fields], num_sources)
    return data, {
        "distorted": np.stack([field.distorted for field in fields]),
        "true_value": np.stack([field.true_value for field in fields]),
        "value_share": np.concatenate([field.share for field in fields]),
        "distortion": rates, "size_share": shares / shares.sum(),
    }  # fmt: skip


def with_names(
    value: Int[np.ndarray, "field record"], source: Int[np.ndarray, " record"], entity: Int[np.ndarray, " record"],
    vocabulary: Sequence[np.ndarray], num_sources: int,
) -> Records:  # fmt: skip
    """Return records whose ids, fields, files and entities have numbers for names.

    Parameters
    ----------
    value : codes into the vocabulary of each field, -1 where missing.
    entity : 0, 1, …
    """
    (num_fields, num_records), sizes = value.shape, [len(words) for words in vocabulary]
    return Records(
        value=value.astype(np.int32), source=source.astype(np.int32),
        first_value=np.cumsum([0, *sizes]).astype(np.int32), entity=entity.astype(np.int32), num_records=num_records,
        num_fields=num_fields, num_sources=num_sources, num_values=sum(sizes), records=numbered("r", num_records),
        fields=numbered("field_", num_fields), sources=numbered("file_", num_sources),
        values=np.concatenate(vocabulary), entities=numbered("e", int(entity.max()) + 1),
    )  # fmt: skip


def numbered(stem: str, number: int) -> np.ndarray:
    """Return names that end in 1, 2, …, and begin alike."""
    return object_array(f"{stem}{place}" for place in range(1, number + 1))


def generators(key: Any, number: int) -> list[np.random.Generator]:
    """Return independent generators of random numbers, the same for a key of JAX or a whole number."""
    if isinstance(key, int | np.integer):
        entropy = np.array([key], object)
    else:
        import jax

        entropy = np.asarray(jax.random.key_data(key)).ravel()
    return [np.random.default_rng(seed) for seed in np.random.SeedSequence(entropy.tolist()).spawn(number)]


def _per_field(name: str, given: PerField, num_fields: int) -> Float[np.ndarray, " field"]:
    numbers = np.asarray(given, float)
    if numbers.shape not in ((), (num_fields,)):
        raise UnsupportedRequest(f"{name} has the shape {numbers.shape}; give one number, or {num_fields}, one a field")
    if (numbers < 0).any() or (name != "exponent" and (numbers > 1).any()):
        raise UnsupportedRequest(
            f"{name} is {given}; give {'shares from 0 to 1' if name != 'exponent' else '0 or more'}"
        )
    return np.broadcast_to(numbers, (num_fields,)).copy()


def _check(
    num_records: int, num_values: Sequence[int], size_share: np.ndarray, num_sources: int, repeats: bool,
    moving_fields: Sequence[int], num_fields: int, errors: str,
) -> None:  # fmt: skip
    if min(num_records, num_sources, *num_values, num_fields) < 1:
        raise UnsupportedRequest("give at least one record, file and field, and at least one value a field")
    if size_share.ndim != 1 or (size_share < 0).any() or not size_share.sum() > 0:
        raise UnsupportedRequest(f"size_share is {size_share}; give the shares of entities with 1, 2, … records")
    if not repeats and size_share[num_sources:].any():
        raise UnsupportedRequest(
            f"an entity may have {len(size_share)} records, one in a file, and there are {num_sources} files; give "
            "more files, fewer sizes, or repeats=True"
        )
    if any(not 0 <= field < num_fields for field in moving_fields):
        raise UnsupportedRequest(f"moving_fields are {tuple(moving_fields)}; give positions from 0 to {num_fields - 1}")
    if errors not in ("independent", "one"):
        raise UnsupportedRequest(f"errors is {errors!r}; give 'independent' or 'one'")


def _draw_data(
    key: Key | int, resolved: Resolved, sizes: Mapping[str, Any]
) -> tuple[Records, dict[str, np.ndarray]]:
    """Draw records with the given numbers; priors have no part in them."""
    return simulate(key, **sizes)


def _empty(*, num_records: int, num_entities: int | None, num_values: Sequence[int], **sizes: Any) -> Records:
    return Records.empty(num_records=num_entities or num_records, num_fields=len(num_values))


_SIZES: dict[str, Any] = {
    name: given.default for name, given in inspect.signature(simulate).parameters.items() if name != "key"
}
SIMULATION = Simulation(draw=_draw_data, empty=_empty, sizes=_SIZES)


# Which record is whose, and where -------------------------------------------------------------------------------------


def _entities(
    generator: np.random.Generator, num_records: int, size_share: Float[np.ndarray, " size"],
    num_entities: int | None, intensity: float | None,
) -> tuple[Int[np.ndarray, " record"], Int[np.ndarray, " record"]]:  # fmt: skip
    """Return the entity of each record, and its place among the entity's records."""
    number = num_entities or (num_records if intensity is None else _at_least_one(generator, intensity))
    size = 1 + _draw(generator.random(number), np.cumsum(size_share))
    first = np.cumsum(size) - size
    entity = np.repeat(np.arange(number), size)
    if num_entities is None and intensity is None:
        entity = entity[:num_records]
    return entity, np.arange(len(entity)) - first[entity]


def _at_least_one(generator: np.random.Generator, intensity: float) -> int:
    """Draw from a Poisson distribution what is not zero."""
    from scipy import stats  # as long to import as JAX

    none = np.exp(-intensity)
    return int(max(stats.poisson.ppf(none + (1 - none) * generator.random(), intensity), 1))


def _sources(
    generator: np.random.Generator, entity: np.ndarray, place: np.ndarray, num_sources: int, repeats: bool
) -> Int[np.ndarray, " record"]:
    if repeats:
        return generator.integers(0, num_sources, len(entity))
    ordered = generator.random((int(entity.max()) + 1, num_sources)).argsort(axis=1)
    return ordered[entity, place]


def _errors(
    generator: np.random.Generator, place: np.ndarray, rates: np.ndarray, errors: str, possible: np.ndarray
) -> Bool[np.ndarray, "field record"]:
    """Return which values are distorted; ``possible`` says which fields have another value to show."""
    num_fields, num_records = len(rates), len(place)
    if errors == "independent":
        return generator.random((num_fields, num_records)) < rates[:, None]
    weight = rates * possible
    if not weight.any():
        text = "{errors} needs a field of several values with a distortion above 0"
        raise UnsupportedRequest(text, Remedy("errors", "one"))
    chosen = _draw(generator.random(num_records), np.cumsum(weight / weight.sum()))
    return (np.arange(num_fields)[:, None] == chosen) & (place > 0)


# Values ---------------------------------------------------------------------------------------------------------------


class _Field(NamedTuple):
    """One field: codes of values and of true ones, what was distorted, the texts, and how common each is."""

    value: np.ndarray
    true_value: np.ndarray
    distorted: np.ndarray
    vocabulary: np.ndarray
    share: np.ndarray


def _field(
    generator: np.random.Generator, entity: Int[np.ndarray, " record"], share: Float[np.ndarray, " value"],
    wrong: Bool[np.ndarray, " record"], moved: Bool[np.ndarray, " record"], missing: float, *,
    differ: bool, typos: bool,
) -> _Field:  # fmt: skip
    """Draw one field.

    Parameters
    ----------
    wrong, moved : records whose value is distorted, and whose value is drawn anew because the entity moved.
    differ : whether a distorted value has to be another one.
    """
    cumulative, num_records = np.cumsum(share), len(entity)
    true_value = _draw(generator.random(int(entity.max()) + 1), cumulative)[entity]
    uniform = generator.random(num_records)
    value = np.where(moved, _draw(generator.random(num_records), cumulative), true_value)
    texts = words(len(share))
    if typos:
        errors = np.flatnonzero(wrong)
        texts, code = np.unique(np.concatenate([texts, misspelt(generator, texts[value[errors]])]), return_inverse=True)
        of_word, value = code[: len(share)], code[value]
        value[errors] = code[len(share) :]
        share = np.bincount(of_word, share, len(texts))
        true_value = of_word[true_value]
    elif differ:
        value = np.where(wrong, _draw_another(uniform, value, share, cumulative), value)
    else:
        value = np.where(wrong, _draw(uniform, cumulative), value)
    value = np.where(generator.random(num_records) < missing, -1, value)
    codes, order = _in_order_of_appearance(value, len(texts))
    position = np.full(len(texts), -1, np.int32)
    position[order] = np.arange(len(order))
    return _Field(codes, position[true_value], wrong | moved, texts[order].astype(object), share[order])


def _zipf(number: int, exponent: float) -> Float[np.ndarray, " value"]:
    weight = np.arange(1, number + 1) ** -float(exponent)
    return weight / weight.sum()


def _draw(uniform: np.ndarray, cumulative: Float[np.ndarray, " value"]) -> Int[np.ndarray, " number"]:
    """Turn uniform numbers into codes with the given cumulative shares."""
    return np.searchsorted(cumulative[:-1], uniform, side="right")


def _draw_another(
    uniform: np.ndarray, value: np.ndarray, share: np.ndarray, cumulative: np.ndarray
) -> Int[np.ndarray, " record"]:
    """Draw values in proportion to their shares, but not the one that is there."""
    scaled = uniform * (1 - share[value])
    before = cumulative[value] - share[value]
    drawn = _draw(np.where(scaled < before, scaled, scaled + share[value]), cumulative)
    # Rounding at a border may give the value itself: its neighbour is as good.
    neighbour = np.where(value + 1 < len(share), value + 1, value - 1)
    return np.where(drawn == value, neighbour, drawn)


def _in_order_of_appearance(
    codes: Int[np.ndarray, " record"], number: int
) -> tuple[Int[np.ndarray, " record"], Int[np.ndarray, " used"]]:
    """Return codes in the order of their first appearance, as readers give them, int32; and the old code of each."""
    first = np.full(number + 1, len(codes))
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # the last one that is written stays
    used = np.flatnonzero(first[:number] < len(codes))
    order = used[np.argsort(first[used])]
    position = np.full(number + 1, -1, np.int32)
    position[order] = np.arange(len(order))
    return position[codes], order
