"""The evidence by draws with a sure grouping, against enumeration, and its parts one by one."""

import itertools

import numpy as np
import pytest
from scipy.special import betaln

import consilience as cs
from consilience.models.bridging import log_integral
from consilience.models.expert_views import evidence, gibbs, pinned
from consilience.models.expert_views.priors import PAPER_PRIORS, Priors
from consilience.models.expert_views.simulation import constraints_of
from tests.models.expert_views.test_gibbs import LINKS, OWN_PRIORS, brute_force, integrated
from tests.models.expert_views.worked import FEATURE, OPTIONS

pytestmark = pytest.mark.filterwarnings("ignore:the runs of the sampler differ", "ignore:few effective draws")

SHORT = {"progress": False, "draws": 200, "warmup": 100, **OPTIONS}


def repeated(name, times):
    """Return the worked example with every answer given several times, so that clusters are sure."""
    data = LINKS[name]
    columns = [np.tile(np.asarray(getattr(data, one)), times) for one in ("expert", "item_a", "item_b", "together")]
    kind = {} if data.num_grades is None else {"num_grades": data.num_grades, "num_blanks": data.num_blanks}
    kind |= {} if data.order is None else {"order": np.tile(data.order, times)}
    return constraints_of(*columns, FEATURE, data.num_experts, **kind)


@pytest.mark.parametrize(("name", "experts"), [
    ("two answers", "two-coin"), ("two answers", "symmetric"), ("two answers", "per-view"), ("grades", "two-coin"),
    ("don't know", "symmetric"), ("orders", "two-coin"), ("questions", "two-coin"),
])  # fmt: skip
def test_the_evidence_is_that_of_all_clusterings_and_groupings(name, experts):
    """Within five standard errors, and .1 for what so few draws never visit."""
    data = repeated(name, 4)
    exact = brute_force(integrated(), data, "symmetric" if experts == "symmetric" else "two-coin").total
    fit = cs.fit("expert-views", data, PAPER_PRIORS, experts=experts, **SHORT)
    value, error = pinned.log_evidence(fit.posterior.draws(), gibbs.prepare(fit.resolved))
    assert abs(value - exact) < 5 * error + 0.1
    assert error < 0.3


def test_that_of_spammers_is_that_of_a_long_ladder():
    data = repeated("two answers", 4)
    fit = cs.fit("expert-views", data, experts="spammer", rungs=12, **{**SHORT, "draws": 1000})
    value, error = pinned.log_evidence(fit.posterior.draws(), gibbs.prepare(fit.resolved))
    row = fit.evidence().iloc[0]
    assert row["standard_error"] < 0.1
    assert abs(value - row["log_evidence"]) < 4 * np.hypot(error, row["standard_error"]) + 0.1


def test_there_is_none_without_a_sure_grouping_or_where_clusters_are_more_than_names(monkeypatch):
    fit = cs.fit("expert-views", LINKS["two answers"], PAPER_PRIORS, **{**SHORT, "warmup": 20, "draws": 20})
    draws, problem = fit.posterior.draws(), gibbs.prepare(fit.resolved)
    assert pinned.log_evidence(draws, problem) is not None
    for limit, value in (("_LEAST_SHARE", 1.1), ("_MOST_CLUSTERS", 1), ("_MOST_WAYS", 1)):
        with monkeypatch.context() as patch:
            patch.setattr(pinned, limit, value)
            assert pinned.log_evidence(draws, problem) is None
    own = gibbs.prepare(fit.resolved.replace(given=OWN_PRIORS))
    assert pinned.log_evidence(draws, own) is None


@pytest.mark.parametrize(("views", "experts", "concentration"), [(3, 4, 1.3), (2, 5, 0.4), (1, 3, 1.0), (4, 4, 2.0)])
def test_groupings_have_the_prior_of_all_views_that_they_may_have(views, experts, concentration):
    total: dict[tuple[int, ...], float] = {}
    for choice in itertools.product(range(views), repeat=experts):
        size = np.bincount(choice, minlength=views)
        later = size[::-1].cumsum()[::-1] - size
        value = sum(betaln(1 + size[:-1], concentration + later[:-1]) - betaln(1, concentration))
        total.setdefault(tuple(choice.index(one) for one in choice), -np.inf)
        total[tuple(choice.index(one) for one in choice)] = np.logaddexp(
            total[tuple(choice.index(one) for one in choice)], value
        )
    for grouping, value in total.items():
        sizes = np.unique(grouping, return_counts=True)[1]
        assert pinned.log_prior(sizes, views, concentration) == pytest.approx(value)
    assert np.logaddexp.reduce([*total.values()]) == pytest.approx(0)


def test_a_numbering_has_its_part_of_all():
    random = np.random.default_rng(0)
    cluster, log_share = random.integers(4, size=(5, 6)), np.log(random.dirichlet(np.ones(4), 6).T)
    held = [
        log_share[np.array(order)[cluster], np.arange(6)].sum(axis=1) for order in itertools.permutations(range(4))
    ]  # the first is the numbering as it stands
    found = pinned.log_part_of_numbering(cluster, log_share)
    np.testing.assert_allclose(found, held[0] - np.logaddexp.reduce(held))


def test_a_bridge_finds_the_integral_of_what_is_no_normal_density():
    random = np.random.default_rng(1)
    draws = random.gumbel(size=(4000, 3))  # of density exp(-x - exp(-x))
    value, error = log_integral(random, draws, lambda x: 2.5 - (x + np.exp(-x)).sum(axis=1))
    assert abs(value - 2.5) < 4 * error < 0.2
    stuck = log_integral(random, np.zeros((100, 2)), lambda x: -(x**2).sum(axis=1))
    assert np.isnan(stuck[0])
    assert stuck[1] == np.inf


@pytest.mark.parametrize(("value", "error", "found"), [
    ((-10.0, -10.2), (0.1, 0.1), (-10.1, 0.1 / 2**0.5)),    # they agree
    ((-10.0, -30.0), (0.1, 0.1), (-10.0, 0.1)),             # one missed the better mode
    ((-10.0, -10.2), (np.inf, np.inf), (-10.0, np.inf)),    # too few draws for errors
    ((-10.0, -12.0), (3.0, 0.1), (-11.998, 0.1)),           # the surer one counts more
    ((np.nan, -12.0), (np.inf, 0.1), (-12.0, 0.1)),         # of one nothing is known
])  # fmt: skip
def test_of_ladders_that_differ_the_higher_one_is_taken(value, error, found):
    assert evidence._highest(np.array(value), np.array(error)) == pytest.approx(found, abs=1e-3)


def test_the_estimate_with_the_smaller_error_is_taken(monkeypatch):
    fit_with = {}
    for name, error in (("by the draws", 0.01), ("by the ladders", 99.0)):
        monkeypatch.setattr(pinned, "log_evidence", lambda *_, error=error: (-123.0, error))
        fit = cs.fit("expert-views", LINKS["two answers"], Priors(), **{**SHORT, "warmup": 20, "draws": 40})
        fit_with[name] = fit.evidence()["log_evidence"][0]
    assert fit_with["by the draws"] == -123
    assert fit_with["by the ladders"] != -123
