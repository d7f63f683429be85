"""Records drawn from the model of error classes, given who is together."""

from __future__ import annotations

import numpy as np

from consilience.arrays import Float, Int


def draw_class_records(
    generator: np.random.Generator, entity: Int[np.ndarray, " record"], shown: Int[np.ndarray, "field record"],
    first_value: Int[np.ndarray, " fields_and_one"], share: Float[np.ndarray, " value"],
    distortion: Float[np.ndarray, " field"], class_share: Float[np.ndarray, " class"],
) -> Int[np.ndarray, "field record"]:  # fmt: skip
    """Draw heads, classes, errors and values of records.

    Parameters
    ----------
    entity : from zero, without gaps.
    shown : negative where a value is missing, and missing it will be.
    first_value : where the values of each field begin.
    share, distortion, class_share : θ, b and π.

    Returns
    -------
    Codes into the values of all fields, -1 where missing.
    """
    number, num_fields = len(entity), len(shown)
    head = _heads(generator, entity)
    kind = np.searchsorted(np.cumsum(class_share)[:-1], generator.random(number), side="right")
    wrong = generator.integers(num_fields, size=number)
    again = np.full(shown.shape, -1, shown.dtype)
    for field, (begin, end) in enumerate(zip(first_value, first_value[1:], strict=False)):
        if end == begin:
            continue
        last = np.cumsum(share[begin:end])
        own, other = (_draw(last, generator.random(number) * last[-1]) for _ in range(2))
        true, has_true = own[head], shown[field, head] >= 0
        another = _draw_another(last, true, generator.random(number))
        value = np.where((kind == 1) & (wrong == field), another, true)
        value = np.where((kind == 2) & (generator.random(number) < distortion[field]), other, value)
        value = np.where(has_true & (head != np.arange(number)), value, own)
        again[field] = np.where(shown[field] < 0, -1, begin + value)
    return again


def _heads(generator: np.random.Generator, entity: Int[np.ndarray, " record"]) -> Int[np.ndarray, " record"]:
    """Return the head of each record's entity, any of its records."""
    order = generator.permutation(len(entity))
    head = np.empty(int(entity.max(initial=-1)) + 1, int)
    head[entity[order]] = order             # the last one that is written stays
    return head[entity]


def _draw(last: Float[np.ndarray, " value"], uniform: Float[np.ndarray, " record"]) -> Int[np.ndarray, " record"]:
    """Return the values in whose part of the whole the numbers are."""
    return np.minimum(np.searchsorted(last, uniform, side="right"), len(last) - 1)


def _draw_another(
    last: Float[np.ndarray, " value"], true: Int[np.ndarray, " record"], uniform: Float[np.ndarray, " record"]
) -> Int[np.ndarray, " record"]:
    """Draw a value that is not the true one; of a field with one value alone, that."""
    before = np.where(true > 0, last[true - 1], 0)
    own = last[true] - before
    rest = uniform * (last[-1] - own)
    return _draw(last, np.where(rest < before, rest, rest + own))
