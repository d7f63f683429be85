"""Simulated records: what was asked for, the same in every process, and read back as they were written."""

import subprocess
import sys

import jax
import numpy as np
import pytest

from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.simulation import simulate, simulate_records


def near(count, number, share):
    """Whether a count of independent events is within five of its standard deviations."""
    return abs(count - number * share) <= 5 * np.sqrt(number * share * (1 - share)) + 1e-9


def entity_sizes(data):
    return np.bincount(data.entity)


def test_the_records_asked_for():
    data, values = simulate(0, num_records=1234, num_values=(50, 7), num_sources=3)
    assert (data.num_records, data.num_fields, data.num_sources) == (1234, 2, 3)
    assert data.value.shape == (2, 1234)
    assert data.value.dtype == data.entity.dtype == data.source.dtype == data.first_value.dtype == np.int32
    assert (np.diff(data.source) >= 0).all()
    assert len(set(data.records)) == 1234
    assert data.num_values == len(data.values) == data.first_value[-1] == len(values["value_share"])
    assert values["distorted"].shape == values["true_value"].shape == (2, 1234)
    assert set(np.unique(data.value[0])) == set(range(len(data.vocabulary("field_1"))))
    assert len(entity_sizes(data)) == len(data.entities)


def test_exact_repeats_where_nothing_is_distorted():
    data, values = simulate(1, num_records=300, distortion=0.0, size_share=(0.0, 1.0))
    assert (entity_sizes(data)[:-1] == 2).all()
    for field in data.value:
        by_entity = np.full(len(data.entities), -1)
        by_entity[data.entity] = field
        assert (field == by_entity[data.entity]).all()
    assert not values["distorted"].any()
    assert (values["true_value"] == data.value).all()


def test_shares():
    number = 20_000
    data, values = simulate(
        2, num_records=number, num_values=(40, 5), exponent=(1.0, 0.0), distortion=(0.3, 0.1), missing=(0.2, 0.0),
        size_share=(0.6, 0.3, 0.1), num_sources=2,
    )  # fmt: skip
    sizes = np.bincount(entity_sizes(data), minlength=4)[1:]
    assert len(sizes) == 3
    assert all(near(count, sizes.sum(), share) for count, share in zip(sizes, (0.6, 0.3, 0.1), strict=True))
    for field, (rate, lost) in enumerate(((0.3, 0.2), (0.1, 0.0))):
        assert near(values["distorted"][field].sum(), number, rate)
        assert near((data.value[field] < 0).sum(), number, lost)
    assert near((data.source == 0).sum(), number, 0.5)
    # One record an entity, so that values are independent.
    data, values = simulate(3, num_records=number, num_values=(40,), exponent=1.0, distortion=0.5, size_share=(1.0,))
    expected = np.sort(1 / np.arange(1, 41))[::-1] / np.sum(1 / np.arange(1, 41))
    assert sorted(values["value_share"], reverse=True) == pytest.approx(expected)
    counts = np.bincount(data.value[0])
    assert all(near(count, number, share) for count, share in zip(counts, values["value_share"], strict=True))


def test_a_miss_may_be_a_hit():
    data, values = simulate(4, num_records=20_000, num_values=(4,), exponent=0.0, distortion=1.0, size_share=(1.0,))
    assert near((data.value[0] == values["true_value"][0]).sum(), 20_000, 0.25)


@pytest.mark.parametrize("typos", [False, True])
def test_one_error_in_every_duplicate(typos):
    data, values = simulate(
        5, num_records=5000, num_values=(9, 1, 5), exponent=1.5, distortion=(0.2, 0.2, 0.1), size_share=(0.5, 0.3, 0.2),
        errors="one", typos=typos,
    )  # fmt: skip
    wrong = (data.value != values["true_value"]).sum(axis=0)
    assert (values["distorted"].sum(axis=0) == wrong).all()
    right = np.bincount(data.entity, wrong == 0)
    assert (right[:-1] == 1).all()
    assert right[-1] <= 1
    assert wrong.max() == 1
    by_field, errors = values["distorted"].sum(axis=1), wrong.sum()
    weights = np.array([0.2, 0.2 * typos, 0.1])
    assert all(near(n, errors, share) for n, share in zip(by_field, weights / weights.sum(), strict=True))


def test_another_value_in_proportion_to_its_share():
    data, values = simulate(6, num_records=30_000, num_values=(4,), exponent=1.0, size_share=(0.0, 1.0), errors="one")
    share = values["value_share"]
    wrong = values["distorted"][0]
    for true in range(4):
        shown = data.value[0][wrong & (values["true_value"][0] == true)]
        for other in set(range(4)) - {true}:
            assert near((shown == other).sum(), len(shown), share[other] / (1 - share[true]))


def test_typing_errors():
    data, values = simulate(7, num_records=2000, num_values=(50, 20), distortion=0.3, size_share=(0.2, 0.8), typos=True)
    for field in range(2):
        wrong = values["distorted"][field]
        assert (data.value[field] != values["true_value"][field])[wrong].all()
        assert (data.value[field] == values["true_value"][field])[~wrong].all()
        of_field = slice(*data.first_value[field : field + 2])
        vocabulary, share = data.values[of_field], values["value_share"][of_field]
        assert len(set(vocabulary)) == len(vocabulary)
        # A true word has six letters and a share; what no entity has, has none.
        assert {len(word) for word in vocabulary[share > 0]} == {6}
        shown = wrong & (values["true_value"][field] >= 0)
        lengths = np.array([len(word) for word in vocabulary])
        change = lengths[data.value[field]][shown] - lengths[values["true_value"][field]][shown]
        assert set(change.tolist()) == {-1, 0, 1}


def test_typing_errors_in_some_fields():
    records = simulate_records(500, num_values=(90, 90), distortion=0.2, typos=["field_1"])
    lengths = [{len(word) for word in records.vocabulary(field)} for field in ("field_1", "field_2")]
    assert lengths == [{5, 6, 7}, {6}]
    with pytest.raises(UnsupportedRequest, match=r"'name' that could be misspelt; there are field_1, field_2"):
        simulate_records(num_values=(9, 9), typos=["name"])


def test_people_who_move_change_several_fields_together():
    data, values = simulate(
        8, num_records=20_000, num_values=(1000,) * 3, exponent=0.0, distortion=0.0, moves=0.1, moving_fields=(0, 2)
    )
    first, other, third = values["distorted"]
    assert (first == third).all()
    assert not other.any()
    assert near(first.sum(), 20_000, 0.1)
    shown = (values["true_value"][0] >= 0) & first
    assert near((data.value[0] == values["true_value"][0])[shown].sum(), shown.sum(), 0.001)


@pytest.mark.parametrize("repeats", [True, False])
def test_files(repeats):
    data, _ = simulate(9, num_records=6000, size_share=(0.4, 0.3, 0.3), num_sources=3, repeats=repeats)
    same_file = np.bincount(data.entity * 3 + data.source).max()
    assert same_file == (3 if repeats else 1)
    sizes = np.bincount(data.source)
    assert all(abs(size - 2000) < 5 * np.sqrt(6000 * 2 / 9) for size in sizes)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"num_records": 0}, "at least one record"),
        ({"num_values": ()}, "at least one"),
        ({"distortion": (0.1, 0.2)}, r"distortion has the shape \(2,\); give one number, or 5"),
        ({"missing": 1.5}, "missing is 1.5; give shares"),
        ({"exponent": -1.0}, "exponent is -1.0; give 0 or more"),
        ({"size_share": (0.0,)}, "size_share is"),
        ({"repeats": False}, "an entity may have 2 records, one in a file, and there are 1 files"),
        ({"moving_fields": (5,)}, "moving_fields are .* from 0 to 4"),
        ({"errors": "two"}, "errors is 'two'; give 'independent' or 'one'"),
        ({"errors": "one", "num_values": (1, 1)}, "errors='one' needs a field of several values"),
    ],
)
def test_numbers_that_cannot_be_simulated(options, match):
    with pytest.raises(UnsupportedRequest, match=match):
        simulate(0, **options)


def test_no_duplicate_at_all():
    data, values = simulate(0, num_records=1)
    assert (data.num_records, len(data.entities)) == (1, 1)
    assert values["true_value"].shape == (5, 1)


PRINT = (
    "from consilience.models.block_linkage.simulation import simulate as s; print(s(5, typos=True)[0].fingerprint())"
)


def test_the_same_in_every_process():
    data, _ = simulate(5, typos=True)
    printed = subprocess.run([sys.executable, "-c", PRINT], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == data.fingerprint()
    assert simulate(6, typos=True)[0].fingerprint() != data.fingerprint()


def test_keys_of_jax():
    first, second = (simulate(jax.random.key(5))[0].fingerprint() for _ in range(2))
    assert first == second != simulate(jax.random.key(6))[0].fingerprint()


def test_a_number_of_entities_that_is_drawn():
    counts = []
    for seed in range(300):
        data, _ = simulate(seed, num_values=(5,), intensity=4.0, size_share=(0.5, 0.5))
        sizes = entity_sizes(data)
        assert data.num_records == sizes.sum() == data.value.shape[1]
        counts.append((len(sizes), data.num_records))
    entities, records = np.array(counts).T
    # A Poisson distribution without its zero.
    mean = 4 / (1 - np.exp(-4))
    assert abs(entities.mean() - mean) < 5 * np.sqrt(mean * (5 - mean) / 300)
    assert entities.min() >= 1
    assert abs((records / entities).mean() - 1.5) < 5 * 0.5 / np.sqrt(300)
    with pytest.raises(UnsupportedRequest, match="intensity is 0"):
        simulate(0, intensity=0.0)
