"""Error classes as an option of the sampler: through fit, refused, what it says of itself, and its checks."""

import numpy as np
import pytest
from scipy import stats

import consilience as cs
from consilience.models.block_linkage import MODEL
from consilience.models.block_linkage.error_classes import ErrorClasses
from consilience.models.block_linkage.gibbs.outside import links_outside
from consilience.models.block_linkage.gibbs.sampler import prepare
from consilience.models.block_linkage.gibbs.truth import DrawnLinks
from consilience.models.truth.partitions import first_members
from tests.models.class_records import draw_class_records
from tests.models.records import linked_in

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")


@pytest.fixture(scope="module")
def copied():
    """Return records of which every duplicate has exactly one error."""
    return cs.simulate_records(
        250, num_values=(60, 80, 40, 12), size_share=(0.75, 0.25), distortion=0.05, errors="one", seed=4
    )


def quietly(records, **settings):
    return cs.fit("block-linkage", records, method="gibbs", chains=2, **{"warmup": 100, "draws": 250} | settings)


@pytest.fixture(scope="module")
def fitted(copied):
    return quietly(copied, likelihood="error-classes")


def test_sites_label_and_tables(fitted, copied):
    assert fitted.posterior.class_share.shape == (500, 3)
    np.testing.assert_allclose(fitted.posterior.class_share.sum(axis=-1), 1, rtol=1e-5)
    assert fitted.posterior.class_share[..., 1].mean() > 0.7
    count = fitted.num_entities()
    assert count.basis.startswith("error classes; pairs with log odds above −10")
    assert "class_share[error_class=1]" in fitted.summary()["quantity"].tolist()
    for name in ("entities", "fields", "loss", "canonical"):
        assert len(fitted.table(name)), name
    true = len(np.unique(copied.entity))
    assert count.interval[0] <= true <= count.interval[1]


def test_the_check_says_which_likelihood_to_try(fitted, copied):
    """Quiet under error classes; under hit-miss it names these."""
    assert not fitted.truth.misfit.fails
    assert not any("does not hold" in note.text for note in fitted.findings())
    wrong = quietly(copied)
    (said,) = [note.words() for note in wrong.findings() if "the model does not hold" in note.text]
    assert "try likelihood='error-classes'" in said


def test_what_it_takes(copied):
    problem = prepare(MODEL.resolve(copied, None, {"likelihood": ErrorClasses()}))
    np.testing.assert_array_equal(problem.distortion, [[2, 4]] * 4)
    np.testing.assert_array_equal(problem.class_share, [1, 1, 1])
    plain = prepare(MODEL.resolve(copied))
    assert plain.class_share is None
    np.testing.assert_array_equal(plain.neighbour, problem.neighbour)


# ---- records drawn anew ----

SHARE = np.array([0.5, 0.3, 0.2, 0.6, 0.4])
FIRST, RATE, CLASSES = np.array([0, 3, 5]), np.array([0.3, 0.7]), np.array([0.2, 0.5, 0.3])


@pytest.mark.parametrize("lost", [(), ((0, 0),), ((1, 1),)], ids=["all", "of one record", "of the other"])
def test_records_are_as_probable_as_the_likelihood_says(lost):
    """All pairs of records, drawn and by the formula."""
    number = 60_000
    shown = np.zeros((2, 2 * number), int)
    for field, place in lost:
        shown[field, place::2] = -1
    entity = np.repeat(np.arange(number), 2)
    drawn = draw_class_records(np.random.default_rng(0), entity, shown, FIRST, SHARE, RATE, CLASSES)
    first, second = drawn[:, ::2], drawn[:, 1::2]
    kinds, counts = np.unique(np.concatenate([first, second]), axis=1, return_counts=True)
    values = kinds.reshape(2, 2, -1)                  # record, field, kind
    table = np.append(SHARE, 1)
    together = ErrorClasses(CLASSES).log_marginals(values, table[values], RATE, np)[3]
    exact = np.exp(together) * table[values].prod(axis=(0, 1))
    np.testing.assert_allclose(exact.sum(), 1, atol=1e-9)
    assert (np.abs(counts / number - exact) < 5 * np.sqrt(exact * (1 - exact) / number)).all()


def records_of_classes(make_records, seed, *, number=1200, num_values=(100, 80, 40, 12, 20), missing=0.0):
    """Return records of entities of one or two, and what they were drawn from."""
    generator = np.random.default_rng(seed)
    size = generator.choice([1, 2], number, p=[0.7, 0.3])
    entity = np.repeat(np.arange(number), size)[:number]
    share = np.concatenate([generator.dirichlet(np.ones(values)) for values in num_values])
    first = np.cumsum((0, *num_values))
    rate, classes = np.full(len(num_values), 0.5), np.array([0.2, 0.4, 0.4])
    shown = -(generator.random((len(num_values), number)) < missing).astype(int)
    value = draw_class_records(generator, entity, shown, first, share, rate, classes)
    used = [np.unique(row[row >= 0]) for row in value]
    records = make_records(value, entity=entity)
    return records, {"value_share": share[np.concatenate(used)], "distortion": rate, "class_share": classes}


def test_as_many_links_outside_as_there_are(make_records):
    expected, found = 0.0, 0
    for seed, missing in enumerate((0.0, 0.1, 0.0, 0.1)):
        records, values = records_of_classes(make_records, seed, missing=missing)
        cluster, outside = linked_in(records, 8.0)
        draws = {site: np.asarray(value)[None] for site, value in (values | {"cluster": cluster}).items()}
        expected += links_outside(draws, records, 8.0).number
        found += outside
    assert found > 30
    assert abs(found - expected) < 5 * np.sqrt(found + expected)


def test_the_misfit_of_draws_where_the_model_holds_and_where_it_does_not(make_records):
    """Under error classes it is small; under hit-miss, at its best with as many errors, most sets say so."""
    held, refused = [], 0
    for seed in range(12):
        records, values = records_of_classes(make_records, seed, number=600, num_values=(60, 40, 30, 12))
        one = values | {"cluster": first_members(np.asarray(records.entity)), "size_share": np.array([0.7, 0.3])}
        draws = {site: np.broadcast_to(value, (3, *np.shape(value))) for site, value in one.items()}
        held.append(DrawnLinks(draws, records, threshold=30.0).misfit.disagreement)
        del draws["class_share"]
        draws["distortion"] = np.full((3, 4), 0.18)
        refused += DrawnLinks(draws, records, threshold=30.0).misfit.fails
    assert np.mean(held) < 0.08
    assert refused >= 6


def test_the_misfit_of_draws_by_hand(make_records):
    """Two pairs of three draws: one differs in two fields that both have, the other, of one draw alone, in none."""
    records = make_records([[0, 1, 0, 0, 1], [0, 1, 0, -1, 1], [0, 0, 1, 1, 1]])
    one = {"value_share": np.full(6, 0.5), "distortion": np.full(3, 0.2), "intensity": np.array(1.0)}
    draws = {site: np.broadcast_to(value, (3, *value.shape)) for site, value in one.items()}
    draws["cluster"] = np.array([[0, 0, 2, 2, 4], [0, 0, 2, 3, 4], [0, 0, 2, 3, 4]])
    found = DrawnLinks(draws, records, threshold=30.0).misfit
    np.testing.assert_allclose(found.seen, [1 / 3, 0, 1, 0])
    # A pair differs in a field that both have if one is distorted at least, and then in half of the cases.
    differs = (1 - 0.8**2) / 2
    exact = 0.75 * stats.binom(3, differs).pmf(range(4)) + 0.25 * stats.binom(2, differs).pmf(range(4))
    np.testing.assert_allclose(found.expected, exact, atol=5 * np.sqrt(0.25 / 1000))
    draws["cluster"] = np.tile(np.arange(5), (3, 1))
    nothing = DrawnLinks(draws, records, threshold=30.0).misfit
    assert not nothing.holds
    assert not nothing.fails
