"""A second fit, and a second simulation, of data of like size compile nothing."""

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.data.ratings import Ratings
from consilience.models import member, names
from consilience.models.plackett_luce import Priors as RankingPriors

pytestmark = [
    pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning"),
    pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning"),
]

SIZES = (2003, 1995)


def annotations(seed, num_items):
    """Return ten annotations an item of three labels, by twelve annotators or eleven."""
    random, number = np.random.default_rng(seed), 12 - seed
    truth = random.integers(0, 3, num_items)
    item, annotator = np.indices((num_items, 10)).reshape(2, -1)
    annotator = (annotator + item) % number
    label = np.where(random.random(len(item)) < 0.7, truth[item], random.integers(0, 3, len(item)))
    return cs.Annotations.from_codes(item, annotator, label, num_items=num_items, num_annotators=number, num_labels=3)


def ratings(seed, num_items):
    random = np.random.default_rng(seed)
    item, annotator = np.indices((num_items, 5)).reshape(2, -1)
    rating = random.normal(size=num_items)[item] + random.normal(size=len(item))
    return Ratings.from_codes(item, annotator, rating, num_items=num_items, num_annotators=5)


def rankings(seed, num_items):
    sizes = {"num_items": num_items // 10, "num_annotators": 3, "num_classes": 6}
    return member("plackett-luce").simulate(jax.random.key(seed), RankingPriors.exchangeable(1.0), **sizes)[0]


def records(seed, num_records):
    return cs.simulate_records(num_records // 10, num_values=(60, 40, 30, 12), missing=0.05, seed=seed)


SECOND_FITS = {
    "dirichlet": (annotations, {}), "normal-inverse-gamma": (ratings, {"threshold": 0.0}),
    "majority-vote": (annotations, {}),
    "dawid-skene": (annotations, {"method": "gibbs", "chains": 2, "warmup": 5, "draws": 10}),
    "mace": (annotations, {"method": "em"}), "one-coin": (annotations, {}), "glad": (annotations, {}),
    "irn": (rankings, {}), "prirn": (rankings, {}),
    "block-linkage": (records, {"method": "em"}), "dirichlet-entity": (records, {}),
    "hit-miss": (records, {"draws": 10, "warmup": 5}),
}  # fmt: skip
"""Data and options of each member; `test_padding` has other methods of crowds."""

BOUND_TO_SIZES = {
    "mpa": "its law is in test_padding, with labels that all items share",
    "plackett-luce": "of gibbs seven tables fall into buckets of their own; em reads the reports as they are",
    "expert-views": "its tables are not padded",
}
"""Members whose programs depend on exact sizes, or that are looked at elsewhere."""


def test_every_member_has_a_row():
    assert SECOND_FITS.keys() | BOUND_TO_SIZES.keys() == set(names())
    assert not SECOND_FITS.keys() & BOUND_TO_SIZES.keys()


@pytest.mark.parametrize("name", SECOND_FITS)
def test_a_second_fit_compiles_nothing(name, compilations):
    make, options = SECOND_FITS[name]
    first, second = (make(seed, size) for seed, size in enumerate(SIZES))
    cs.fit(name, first, progress=False, **options)
    compilations.clear()
    cs.fit(name, second, progress=False, **options)
    assert not compilations


@pytest.mark.parametrize(
    ("name", "site", "options"),
    [("dawid-skene", "label", {}), ("mace", "label", {"annotations_per_item": 4}), ("mpa", "label", {}),
     ("plackett-luce", "weight", {"priors": RankingPriors.exchangeable(1.0), "num_annotators": 2, "num_classes": 4})],
)  # fmt: skip
def test_a_second_simulation_compiles_nothing_and_draws_the_same_for_its_items(name, site, options, compilations):
    (_, many), begun = (member(name).simulate(jax.random.key(3), num_items=SIZES[0], **options), len(compilations))
    assert begun
    compilations.clear()
    _, few = member(name).simulate(jax.random.key(3), num_items=SIZES[1], **options)
    assert not compilations
    np.testing.assert_array_equal(few[site], many[site][: SIZES[1]])


@pytest.mark.parametrize("name", ["dirichlet", "normal-inverse-gamma", "hit-miss", "expert-views"])
def test_a_simulation_is_one_program_beside_the_division_of_keys(name, compilations):
    options = {"clusters": 3} if name == "expert-views" else {}
    member(name).simulate(jax.random.key(0), **options)
    programs = len(compilations)
    member(name).simulate(jax.random.key(0), **options)
    assert len(compilations) == programs
    assert programs <= 5
