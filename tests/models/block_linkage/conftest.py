"""Records drawn from the model."""

import numpy as np
import pytest

from consilience.models.block_linkage import MODEL, entity_interval, linking
from tests.models.records import records_of


def _shares(number, exponent):
    weight = np.arange(1, number + 1) ** -float(exponent)
    return weight / weight.sum()


@pytest.fixture
def simulate():
    """Return a function that draws records of entities with one, two or three of them."""

    def draw(
        number, *, numbers=(300, 800, 90, 12, 28, 100), exponents=(1, 0.9, 0.1, 0, 0, 0.6), distortion=0.05,
        size_share=(0.75, 0.19, 0.06), missing=0.0, one_error=False, seed=0,
    ):  # fmt: skip
        generator = np.random.default_rng(seed)
        sizes = generator.choice(len(size_share), number, p=size_share) + 1
        sizes = sizes[: np.searchsorted(np.cumsum(sizes), number)]
        entity = generator.permutation(np.repeat(np.arange(len(sizes)), sizes))
        columns = []
        for values, exponent in zip(numbers, exponents, strict=True):
            share = _shares(values, exponent)
            true = generator.choice(values, len(sizes), p=share)[entity]
            other = generator.choice(values, len(entity), p=share)
            columns.append(true if one_error else np.where(generator.random(len(entity)) < distortion, other, true))
        value = np.stack(columns)
        if one_error:
            again = np.setdiff1d(np.arange(len(entity)), np.unique(entity, return_index=True)[1])
            field = generator.integers(len(numbers), size=len(again))
            value[field, again] = (value[field, again] + 1) % np.array(numbers)[field]
        value = np.where(generator.random(value.shape) < missing, -1, value)
        return coded(value, entity=entity)

    return draw


@pytest.fixture(scope="session")
def fit_em():
    """Return a function that links records by EM, by hit-miss where nothing else is said."""

    def fit(records, priors=None, *, num_sampled=20_000, mesh=None, engine=None, **settings):
        resolved = MODEL.resolve(records, priors, {"likelihood": "hit-miss", **settings})
        return linking.fit_em(resolved, num_sampled=num_sampled, mesh=mesh, engine=engine)

    return fit


@pytest.fixture
def number_by_em(monkeypatch):
    """Let the number of entities come from EM, as of data that are too large for a Gibbs run."""
    monkeypatch.setattr(entity_interval, "MOST_RECORDS", 0)


@pytest.fixture
def make_records():
    """Return a function that makes records of integers, -1 where missing."""
    return coded


def coded(value, *, entity=None, source=None):
    lengths, codes = [], []
    for column in np.asarray(value):
        names, code = np.unique(column, return_inverse=True)
        codes.append(code - (names[0] < 0))
        lengths.append(len(names) - int(names[0] < 0))
    entity = None if entity is None else entity.astype(np.int32)
    return records_of(codes, lengths, source=source, entity=entity)
