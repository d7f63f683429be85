"""Error classes: explicit sums over heads and classes, bounds of pairs, EM, the NumPyro model, and RLdata500."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import consilience as cs
from consilience.data import read_records
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.em import log_base
from consilience.models.block_linkage.enumeration import enumerate_blocks, gather_values, size_terms
from consilience.models.block_linkage.error_classes import ErrorClasses
from consilience.models.block_linkage.join import join, pair_log_odds
from consilience.models.block_linkage.likelihoods import LIKELIHOODS, HitMiss
from consilience.models.block_linkage.model import linkable, log_density
from consilience.models.block_linkage.parameters import Parameters
from consilience.models.block_linkage.priors import Priors, RareDistortion
from consilience.models.block_linkage.simulation import simulate_records
from consilience.models.block_linkage.starting import record_shares
from tests.models.records import german_names, given_head, log_sum_over_partitions, probability_of_classes

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")

SHARE = np.array([0.6, 0.3, 0.1, 0.7, 0.3, 0.5, 0.3, 0.2])
FIRST_VALUE = np.array([0, 3, 5, 8])
DISTORTION, CLASS_SHARE = np.array([0.2, 0.35, 0.6]), np.array([0.25, 0.6, 0.15])
VALUES = np.array([[0, 3, 5], [0, 4, 5], [2, -1, 6], [0, 3, -1], [1, 4, 7]])


def parameters(sizes=(0.7, 0.2, 0.1)):
    return Parameters(SHARE, DISTORTION, 4.0, np.array(sizes), CLASS_SHARE)


FIELD = np.repeat([0, 1, 2], [3, 2, 3])


def summed(records):
    """Return the likelihood of records of an entity relative to the records apart, by the sum over heads."""
    codes = np.array(records)
    whole = probability_of_classes(codes, field=FIELD, share=SHARE, distortion=DISTORTION, class_share=CLASS_SHARE)
    return whole / np.prod(SHARE[codes[codes >= 0]])


def marginals(values, xp=np, dtype=float):
    own = values.T[:, :, None].transpose(1, 0, 2)
    share = xp.asarray(np.append(SHARE, 1)[own], dtype)
    program = functools.partial(ErrorClasses(xp.asarray(CLASS_SHARE, dtype)).log_marginals, xp=xp)
    return (program if xp is np else jax.jit(program))(own, share, xp.asarray(DISTORTION, dtype))[:, 0]


def test_records_are_distributions_given_the_head():
    for head in ([0, 3, 5], [2, 4, 7]):
        whole = sum(
            given_head(record, head, FIELD, SHARE, DISTORTION)
            for record in itertools.product(range(3), range(3, 5), range(5, 8))
        )
        np.testing.assert_allclose(whole, 1, rtol=1e-12)


def test_marginals_are_sums_over_heads_and_classes():
    found = marginals(VALUES)
    for subset in range(1, 2 ** len(VALUES)):
        chosen = [record for place, record in enumerate(VALUES) if subset >> place & 1]
        np.testing.assert_allclose(found[subset], np.log(summed(chosen)), atol=1e-10)
    assert found[0] == 0


@pytest.mark.parametrize(("double", "tolerance"), [(True, 1e-12), (False, 2e-6)])
def test_jax_and_numpy_have_the_same_error_classes(double, tolerance):
    expected = marginals(VALUES)
    with jax.enable_x64(double):
        found = marginals(VALUES, jnp, jnp.result_type(float))
    np.testing.assert_allclose(found, expected, atol=tolerance)


def test_terms_of_fields_bound_pairs():
    every = [*itertools.product(range(-1, 3), [-1, 3, 4], [-1, 5, 6, 7])]
    pairs = np.array([*itertools.combinations_with_replacement(every, 2)]).transpose(1, 2, 0)
    agree, differ = LIKELIHOODS["error-classes"].pair_terms(parameters(), FIRST_VALUE)
    observed = (pairs >= 0).all(axis=0)
    bound = np.where(observed, np.where(pairs[0] == pairs[1], np.append(agree, 0)[pairs[0]], differ[:, None]), 0)
    found = ErrorClasses(CLASS_SHARE).log_pairs(pairs, parameters())
    assert (found <= bound.sum(axis=0) + 1e-12).all()
    assert (found > bound.sum(axis=0) - 1e-6).any()


def test_statistics_are_derivatives_of_the_evidence():
    members = np.array([[0, 1, 2], [1, 3, 4]])
    values = VALUES[members].transpose(1, 2, 0)
    terms = size_terms(4.0, np.array([0.7, 0.2, 0.1]), 3, np)

    def evidence(class_share, distortion):
        found = enumerate_blocks(
            values, SHARE, np.asarray(distortion), terms, ErrorClasses(np.asarray(class_share)), dtype=np.float64
        )
        return found.log_evidence.sum(), found.partition

    partition = evidence(CLASS_SHARE, DISTORTION)[1]
    found = ErrorClasses().error_statistics(values, parameters(), partition)
    step = 1e-6
    for place in range(3):
        more = CLASS_SHARE * np.exp(step * (np.arange(3) == place))
        less = CLASS_SHARE * np.exp(-step * (np.arange(3) == place))
        slope = (evidence(more, DISTORTION)[0] - evidence(less, DISTORTION)[0]) / (2 * step)
        np.testing.assert_allclose(found[place], slope, rtol=1e-6)
        # By the logit of b, the slope is the number of distortions less what is expected of so many values.
        b = DISTORTION[place]
        nudge = step * (np.arange(3) == place) * b * (1 - b)
        more, less = (evidence(CLASS_SHARE, DISTORTION + one)[0] for one in (nudge, -nudge))
        slope = (more - less) / (2 * step)
        distorted, true = found[3 + place], found[6 + place]
        np.testing.assert_allclose(distorted - b * (distorted + true), slope, rtol=1e-5)


def test_the_model_sums_over_all_partitions():
    table = {"id": range(4), **{f"f{field}": [str(value) for value in VALUES[:4, field]] for field in range(3)}}
    records = read_records(table, missing_values=["-1"])
    share, sizes, number = record_shares(records), np.array([0.7, 0.2, 0.1]), records.num_records
    values = gather_values(records.value, records.first_value, np.arange(number)[None])
    log_cluster = ErrorClasses(CLASS_SHARE).log_marginals(values, np.append(share, 1)[values], DISTORTION, np)[:, 0]
    expected = log_sum_over_partitions(log_cluster, size_terms(5.0, sizes, number, np))
    expected += log_base(records, Parameters(share, DISTORTION, 5.0, sizes))
    with jax.enable_x64(True):
        given = [jnp.asarray(one, float) for one in (share, DISTORTION, sizes, 5.0, CLASS_SHARE)]
        found = float(log_density(linkable(records, likelihood="error-classes"), *given, likelihood="error-classes"))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.fixture(scope="module")
def copied():
    """Return records of which every duplicate has exactly one error."""
    return simulate_records(
        2000, num_values=(300, 400, 90, 12, 28), distortion=0.06, size_share=(0.9, 0.1), errors="one", seed=2
    )


def test_every_pass_raises_the_evidence(copied, fit_em):
    posterior = fit_em(copied, likelihood="error-classes", num_sampled=10**9)
    assert (np.diff(posterior.evidence[: int(posterior.first_phase)]) >= 0).all()
    assert posterior.class_share[1] > 0.9
    assert np.isclose(posterior.class_share.sum(), 1)


def test_the_evidence_tells_which_errors_there_are(copied, fit_em):
    independent = simulate_records(
        2000, num_values=(300, 400, 90, 12, 28), distortion=0.06, size_share=(0.9, 0.1), seed=2
    )
    gains = [
        fit_em(one, likelihood="error-classes").evidence[-1] - fit_em(one).evidence[-1] for one in (copied, independent)
    ]
    assert gains[0] > 50
    assert gains[1] < 10


@pytest.mark.filterwarnings("ignore:the model does not hold")
@pytest.mark.parametrize("seed", range(3))
def test_errors_of_their_own_are_told_from_errors_by_field(seed, number_by_em):
    sizes = {"num_values": (200, 400, 80, 12, 28), "size_share": (0.75, 0.19, 0.06)}
    records = simulate_records(num_entities=400, errors="one", seed=seed, **sizes)
    by_field, by_class = (cs.fit("block-linkage", records, likelihood=name) for name in ("hit-miss", "error-classes"))
    assert by_class.elbo[-1] > by_field.elbo[-1] + 40
    assert by_field.truth.doubt
    assert not by_class.truth.doubt
    low, high = by_class.num_entities().interval
    assert low <= 400 <= high
    assert "class_share" in by_class.samples(5)


def test_the_join_loses_nothing(copied, fit_em):
    posterior = fit_em(copied, likelihood="error-classes")
    likelihood = LIKELIHOODS["error-classes"]
    first, second = (place.astype(np.int32) for place in np.triu_indices(copied.num_records, 1))
    every = pair_log_odds(copied.value, first, second, posterior.parameters(), likelihood, copied.first_value)
    found = join(copied, posterior.parameters(), likelihood, threshold=2.0)
    np.testing.assert_array_equal(np.stack(found[:2]), np.stack(every.where(every.log_odds > -2)[:2]))


def test_the_prior_of_distortion_is_that_of_many_errors():
    likelihood = LIKELIHOODS["error-classes"]
    assert likelihood.priors(Priors()).distortion == RareDistortion(2.0, 4.0)
    for given in (RareDistortion(1.0, 20.0), RareDistortion([1, 1], [9, 9]), RareDistortion(np.ones(2), np.ones(2))):
        assert likelihood.priors(Priors(distortion=given)).distortion is given


@pytest.mark.slow
def test_nuts_samples_the_classes(copied):
    some = copied.entity < 60
    fields = {name: copied.column(name)[some] for name in copied.fields}
    records = read_records({"id": np.arange(some.sum()), **fields})
    given = {"method": "nuts", "draws": 100, "chains": 2, "warmup": 100}
    fit = cs.fit("block-linkage", records, likelihood="error-classes", **given)
    share = fit.samples()["class_share"]
    np.testing.assert_allclose(share.sum(axis=-1), 1, atol=1e-5)
    assert share.std() > 0


class Strict(HitMiss):
    """A likelihood of a reader's own: a pair that differs in a field pays for it once more."""

    additive = False

    def __init__(self, price):
        self.price = price

    def log_marginals(self, values, share, distortion, xp):
        found = super().log_marginals(values, share, distortion, xp)
        return xp.where(found < 0, found * self.price, found)


def test_a_likelihood_of_ones_own(copied, tmp_path):
    plain, same, strict = (
        cs.fit("block-linkage", copied, likelihood=one) for one in ("hit-miss", Strict(1.0), Strict(2.0))
    )
    assert strict.options["likelihood"].price == 2.0
    assert strict.pairs()["probability"].sum() <= same.pairs()["probability"].sum()
    assert abs(same.posterior.found_share - plain.posterior.found_share) < 0.02  # by pairs that are drawn
    strict.save(tmp_path / "fit")
    again = cs.load_fit(tmp_path / "fit")
    assert again.options["likelihood"] == "Strict(price=2.0)"
    assert again.pairs().equals(strict.pairs())
    with pytest.raises(UnsupportedRequest, match="choose one of 'auto', 'hit-miss'"):
        cs.fit("block-linkage", copied, likelihood="strict")
    # What is not additive is not completed by hidden links, which is all that may tell the two apart.
    assert abs(plain.num_entities().value - same.num_entities().value) < 5


@pytest.mark.public_data
def test_german_names_have_error_classes(data_folder, fit_em):
    records = german_names(data_folder)
    posterior = fit_em(records, likelihood="error-classes")
    assert posterior.evidence[-1] > fit_em(records).evidence[-1] + 10
    assert posterior.class_share[1] > 0.85
