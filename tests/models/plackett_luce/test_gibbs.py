"""The Gibbs sampler of Plackett-Luce against exact posteriors and importance sampling."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import consilience as cs
from consilience.errors import NotConjugate
from consilience.inference.gibbs import run_gibbs
from consilience.models.diagnostics import convergence
from consilience.models.plackett_luce import MODEL
from consilience.models.plackett_luce import layout as layout_module
from consilience.models.plackett_luce.gibbs import GIBBS
from consilience.models.plackett_luce.priors import OneClass, Priors
from tests.models.plackett_luce.reports import rankings

ONE_LABEL_EACH = [[[0]], [[0]], [[1]]]
P1 = [[[0, 1], [2]], [[1]]]
P2 = [[[0], [1, 2]], [[1, 2, 3]], [[4], [0]]]
P3 = [[[0, 1, 2, 3], [4]], [[5], [0, 1]]]
P4 = [[[0, 1, 2], [3]], [[0, 1], [2, 3]], [[3]]]
P5 = [[[0, 1], [2]], [[1]], [[2, 0, 1]]]
P6 = [[[0, 1, 2, 3, 4]], [[5], [4, 3, 2]]]
LOWER_TIE = [[[0], [1, 2, 3]], [[0], [4]], [[0], [2], [1]]]
TIE_OF_THREE = [[[0, 1, 2], [3]]]
Q1 = [[[0, 1]], [[1], [0]]]
Q2 = [[[0], [1]], [[1], [2]], [[0, 2]]]
NUM_COPIES, NUM_SWEEPS = 2500, 60


def problem_of(data, priors, reliability=1.0, **settings):
    return GIBBS.prepare(MODEL.resolve(data, priors, {"reliability": reliability, **settings}))


@jax.jit
def run(key, problem):
    """Return the sites of the last sweeps of one chain, after 40 that are dropped."""

    def step(state, key):
        state = GIBBS.sweep(key, state, problem)
        return state, GIBBS.sites(state, problem)

    state = GIBBS.start(jax.random.fold_in(key, 0), problem)
    drawn = jax.lax.scan(step, state, jax.random.split(key, 40 + NUM_SWEEPS))[1]
    return jax.tree.map(lambda site: site[40:], drawn)


def copies_of_posteriors(cases, num_classes, priors=None, reliability=1.0):
    """Sample many copies of each case, independent chains all.

    Returns
    -------
    shape ``(case, copy, sweep, class + 1)``: shares of the classes, and last the other.
    """
    data = rankings([case for case in cases for _ in range(NUM_COPIES)], num_classes)
    problem = problem_of(data, priors or Priors.exchangeable(1.0), reliability)
    padded = run(jax.random.key(0), problem)
    drawn = {site: np.asarray(padded[site])[:, :length] for site, length in GIBBS.lengths(problem).items()}
    shares = np.zeros((NUM_SWEEPS, data.num_items, num_classes + 1))
    shares[:, data.entry_item, data.entry_class] = drawn["plausibility"]
    shares[:, :, -1] = drawn["other"]
    assert np.abs(shares.sum(axis=2) - 1).max() < 1e-5
    return np.moveaxis(shares, 0, 1).reshape(len(cases), NUM_COPIES, NUM_SWEEPS, num_classes + 1)


def assert_mean(values, expected, error=0.0):
    """Compare the mean over copies with the truth, in standard errors of the independent copies."""
    copies = values.mean(axis=1)
    own = copies.std(axis=0, ddof=1) / np.sqrt(len(copies))
    assert np.all(np.abs(copies.mean(axis=0) - expected) <= 5 * np.hypot(own, error) + 1e-6)


def functions(share):
    """Return what posteriors are compared by: shares, their squares, and which class leads."""
    leads = np.arange(share.shape[-1]) == share.argmax(axis=-1)[..., None]
    return np.concatenate([share, share**2, leads], axis=-1)


def log_likelihood(case, weight):
    """Sum over the orders of ties by the recursion over subsets; weights ``(draw, class)``."""
    total = np.zeros(len(weight))
    for report in case:
        below = list(range(weight.shape[1]))
        for block in report:
            below = [code for code in below if code not in block]
            if not below:
                break
            rest = weight[:, below].sum(axis=1)
            orders = {frozenset(): np.ones(len(weight))}
            for size in range(1, len(block) + 1):
                for subset in map(frozenset, itertools.combinations(block, size)):
                    rate = rest + weight[:, sorted(subset)].sum(axis=1)
                    orders[subset] = sum(orders[subset - {code}] for code in subset) / rate
            total += np.log(weight[:, block]).sum(axis=1) + np.log(orders[frozenset(block)])
    return total


def assert_by_importance(share, case, reliability=1.0, num_draws=200_000):
    """Compare draws ``(copy, sweep, class + 1)`` with weighted draws from Gamma(1, 1) priors of all classes."""
    weight = np.random.default_rng(0).gamma(1.0, size=(num_draws, share.shape[-1] - 1))
    log_weight = reliability * log_likelihood(case, weight)
    importance = np.exp(log_weight - log_weight.max())
    importance /= importance.sum()
    assert 1 / np.sum(importance**2) > 1000
    weight /= weight.sum(axis=1, keepdims=True)
    has_row = share.any(axis=(0, 1))
    other = weight[:, ~has_row[:-1]].sum(axis=1, keepdims=True)
    values = functions(np.concatenate([weight[:, has_row[:-1]], other], axis=1))
    mean = importance @ values
    error = np.sqrt(importance**2 @ (values - mean) ** 2)
    assert_mean(functions(share[..., [*np.flatnonzero(has_row[:-1]), -1]]), mean, error)


# ---- exact posteriors ----


@pytest.mark.parametrize("x64", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_exact_means(x64):
    """All on four classes; where fewer are meant, the other has the weight of one class."""
    renamed = [[[3, 1], [0]], [[1]]]  # P1
    with jax.enable_x64(x64):
        share = copies_of_posteriors([P1, Q1, ONE_LABEL_EACH, renamed, P4, P4[::-1], [[]]], 4, Priors())
        assert run(jax.random.key(0), problem_of(rankings([P1], 4), Priors()))["other"].dtype == jnp.result_type(float)
    p1 = np.array([10, 16, 6, 3]) / 35
    assert_mean(share[0], [p1[0], p1[1], p1[2], 0, p1[3]])
    assert_mean(share[1], [0.35958134, 0.53424098, 0, 0, 0.10617768])
    assert_mean(share[2], [1 / 2, 1 / 3, 0, 0, 1 / 6])
    assert_mean(share[3], [p1[2], p1[1], 0, p1[0], p1[3]])
    assert_mean(share[4], [0.33142124, 0.33142124, 0.18340419, 0.15375332, 0])
    assert_mean(share[5], [0.33142124, 0.33142124, 0.18340419, 0.15375332, 0])
    assert np.all(share[6] == [0, 0, 0, 0, 1])


def test_exact_means_at_any_whole_reliability():
    """P1 by quadrature over the simplex of its four classes; a tie of three on five classes by importance sampling."""
    programs = run._cache_size()
    for reliability in (1.0, 2.0, 3.0, 16.0):
        share = copies_of_posteriors([P1, TIE_OF_THREE], 5, Priors(), reliability)
        assert_mean(share[0][..., [0, 1, 2, 5]], by_quadrature(reliability))
        if reliability <= 2:
            assert_by_importance(share[1], TIE_OF_THREE, reliability)
    assert run._cache_size() <= programs + 1  # one program serves all


def by_quadrature(reliability, num_nodes=160):
    """Return the mean shares of {0,1} > {2} and {1} with a prior of one on three classes and one other."""
    node, weight = np.polynomial.legendre.leggauss(num_nodes)
    node, weight = (node + 1) / 2, weight / 2
    first, second, third = np.meshgrid(node, node, node, indexing="ij")
    # Sticks: the shares of a simplex of four, and the Jacobian.
    shares = np.stack([first, (1 - first) * second, (1 - first) * (1 - second) * third])
    shares = np.concatenate([shares, 1 - shares.sum(axis=0, keepdims=True)])
    measure = np.einsum("i,j,k->ijk", weight, weight, weight) * (1 - first) ** 2 * (1 - second)
    a, b, c, rest = shares
    likelihood = a * b * (1 / (1 - a) + 1 / (1 - b)) * c / (c + rest) * b
    posterior = measure * likelihood**reliability
    return (posterior * shares).sum(axis=(1, 2, 3)) / posterior.sum()


def test_the_quadrature():
    np.testing.assert_allclose(by_quadrature(1.0), np.array([10, 16, 6, 3]) / 35, atol=1e-4)
    np.testing.assert_allclose(by_quadrature(16.0), [0.13056, 0.85466, 0.01396, 0.00082], atol=1e-4)


def test_exact_means_of_a_tie_of_all_but_one():
    assert_mean(copies_of_posteriors([Q2], 3)[0], [0.36974249, 0.32730687, 0.30295064, 0])


def test_any_reliability_without_ties():
    """One label each is the Dirichlet model exactly; for stages there is importance sampling."""
    labels, stages = [[[0]], [[0]], [[0]], [[2]], [[2]], [[3]]], [[[0], [1]], [[1], [2], [0]], [[0]]]
    programs = run._cache_size()
    for reliability in (0.5, 1.0, 2.5):
        share = copies_of_posteriors([labels, stages], 5, Priors.exchangeable(1.0), reliability)
        concentration = np.array([1, 0, 1, 1, 0, 2]) + reliability * np.array([3, 0, 2, 1, 0, 0])
        for k in np.flatnonzero(concentration):
            marginal = stats.beta(concentration[k], concentration.sum() - concentration[k])
            assert stats.kstest(share[0, :, -1, k], marginal.cdf).pvalue > 1e-6
            assert_mean(share[0, :, :, k], marginal.mean())
        assert_by_importance(share[1], stages, reliability)
    assert run._cache_size() <= programs + 1  # one program serves all


def test_sparse_priors_do_not_tie():
    """A last block of everything counts no class: the weights are those of the prior."""
    data = rankings([[[[0, 1, 2, 3]]]] * NUM_COPIES, 4)
    problem = problem_of(data, Priors.exchangeable(1 / 419))
    state = jax.jit(GIBBS.sweep)(jax.random.key(1), GIBBS.start(jax.random.key(0), problem), problem)
    log_share = np.asarray(state.log_share)[: data.num_entries].reshape(-1, 4)
    assert np.isfinite(log_share).all()
    assert len(np.unique(log_share)) > 0.7 * log_share.size  # all but the leading ones, whose shares are one
    assert log_share.min() < -1000
    assert stats.chisquare(np.bincount(log_share.argmax(axis=1), minlength=4)).pvalue > 1e-6


def test_the_rate_has_no_part():
    data = rankings([P1, P5], 8)
    one, other = (
        problem_of(data, Priors(weight=dist.Gamma(2.0, rate), other=dist.Gamma(0.5, rate))) for rate in (1.0, 7.0)
    )
    assert all(map(np.array_equal, jax.tree.leaves(one), jax.tree.leaves(other)))


# ---- importance sampling ----


@pytest.mark.slow
def test_unnamed_classes_in_one_weight_or_each_in_its_own():
    """A report of one block of everything says nothing, but names every class."""
    everything = [list(range(8))]
    share = copies_of_posteriors([P2, P3, P5, P6, LOWER_TIE, [*P3, everything], [*P5, everything]], 8)
    for drawn, case in zip(share, [P2, P3, P5, P6, LOWER_TIE, P3, P5], strict=True):
        assert_by_importance(drawn, case)
    assert share[:5, ..., -1].all()
    assert not share[5:, ..., -1].any()


@pytest.mark.slow
def test_copies_of_reports_with_ties():
    share = copies_of_posteriors([P2, P3], 6, reliability=3.0)
    assert_by_importance(share[0], P2, reliability=3.0, num_draws=800_000)
    assert_by_importance(share[1], P3, reliability=3.0, num_draws=800_000)


# ---- laws ----


def test_reliability_two_is_every_report_twice():
    """The tables are those of one copy, and counts are twice as large."""
    cases = [P1, P2, P3, P5, P6, Q1, Q2]
    once = problem_of(rankings(cases, 8), Priors.exchangeable(0.5), 2.0)
    twice = problem_of(rankings([[*case, *case] for case in cases], 8), Priors.exchangeable(0.5))
    assert (once.reliability, twice.reliability) == (2.0, 1.0)
    for name in ("entry_item", "has_other", "race", "runner", "pair_races"):
        assert np.array_equal(getattr(once.tables, name), getattr(twice.tables, name))
    for name in ("wins", "stages", "pair_count"):
        assert np.array_equal(2 * getattr(once.tables, name), getattr(twice.tables, name))
    assert np.array_equal(once.shape, twice.shape)

    def ties(tables):
        real = tables.tied_row >= 0
        members = np.split(tables.tied_entry[real], np.flatnonzero(np.diff(tables.tied[real])) + 1)
        below = tables.tie_below[: len(members)]
        return sorted((int(below), *entries.tolist()) for below, entries in zip(below, members, strict=True))

    assert sorted(2 * ties(once.tables)) == ties(twice.tables)
    assert len(ties(once.tables)) == 5


EVERY_KIND = [P1, P2, P3, P4, P5, P6, LOWER_TIE, Q1, Q2, [[]], ONE_LABEL_EACH]


def test_padding_changes_no_draw(monkeypatch):
    """Nothing but the length of sums differs; chaos in floats would show after more sweeps."""
    data = rankings(EVERY_KIND * 3, 8)
    drawn = []
    with jax.enable_x64(True):
        for pad in (1, 7):
            monkeypatch.setattr(layout_module, "padded_size", lambda number, pad=pad: int(number) + pad)
            problem = problem_of(data, Priors.exchangeable(0.7), 3.0)
            fitted = run_gibbs(GIBBS, problem, key=jax.random.key(3), draws=15, chains=2, warmup=5)
            drawn.append(fitted.samples)
    for site, (shape, one) in {name: (values.shape, values) for name, values in drawn[0].items()}.items():
        assert shape == (2, 15, getattr(data, {"plausibility": "num_entries", "other": "num_items"}[site]))
        np.testing.assert_allclose(drawn[1][site], one, rtol=1e-12, atol=1e-12)


def test_data_of_like_size_and_all_reliabilities_share_a_program():
    """Three data sets, of 74 to 77 cases, and reliabilities from 1 to 16."""
    sizes = [EVERY_KIND * 6 + [P1] * extra for extra in (8, 10, 11)]
    problems = [problem_of(rankings(cases, 8), Priors(), gamma) for cases in sizes for gamma in (1.0, 2.0, 10.0, 16.0)]
    sweep, moved = jax.jit(lambda *given: GIBBS.sweep(*given)), []
    for problem in problems:
        moved.append(sweep(jax.random.key(1), GIBBS.start(jax.random.key(0), problem), problem))
    assert sweep._cache_size() == 1
    assert all(np.isfinite(state.last).all() for state in moved)


def test_reports_that_say_nothing():
    problem = problem_of(rankings([P4], 4), Priors())
    for silent in ([], [[2, 0, 1, 3]]):
        other = problem_of(rankings([[*P4, silent]], 4), Priors())
        assert all(map(np.array_equal, jax.tree.leaves(problem), jax.tree.leaves(other)))


def test_chains_start_apart():
    problem = problem_of(rankings([P5] * 500, 8), Priors.exchangeable(0.01))
    start = jax.vmap(GIBBS.start, (0, None))(jax.random.split(jax.random.key(0), 4), problem)
    shares = np.asarray(jax.vmap(GIBBS.sites, (0, None))(start, problem)["plausibility"])
    assert np.abs(np.corrcoef(shares.reshape(4, -1))[np.triu_indices(4, 1)]).max() < 0.2


# ---- parts and refusals ----


def test_a_large_reliability_with_pairs():
    """As certain as a thousand copies of each report make it, by quadrature over the shares of three classes."""
    reliability = 1000.0
    data = rankings([[[[0, 1]], [[2, 0]], [[1, 2]], [[0, 1]]]] * 200, 3)
    problem = problem_of(data, Priors.exchangeable(1.0), reliability)
    drawn = run_gibbs(GIBBS, problem, key=jax.random.key(0), draws=200, chains=2, warmup=300).samples["plausibility"]
    share = np.moveaxis(drawn.reshape(2, 200, 200, 3), 2, 0).reshape(200, 400, 3)
    axis = (np.arange(1500) + 0.5) / 1500
    first, second = np.meshgrid(axis, axis, indexing="ij")
    inside = first + second < 1
    points = np.stack([first, second, 1 - first - second], axis=-1)[inside]

    def pair(one, other):
        return np.log(points[:, one] * points[:, other] * (1 / (1 - points[:, one]) + 1 / (1 - points[:, other])))

    log_density = reliability * (2 * pair(0, 1) + pair(0, 2) + pair(1, 2))
    weight = np.exp(log_density - log_density.max())
    mean, power = weight @ points / weight.sum(), np.array([1, 2, 4])[:, None]
    moments = weight @ ((points - mean) ** power[:, None]).reshape(3, *points.shape) / weight.sum()
    for number, expected in zip(power[:, 0], moments, strict=True):
        values = (share - mean) ** number / np.sqrt(moments[1]) ** number
        assert_mean(values, expected / np.sqrt(moments[1]) ** number)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"tempering": "power"}, "tempering='power'"),
        ({"reliability": 1.5}, "reliability=1.5: 1 of 1 items have tied classes, such as '0'"),
        ({"reliability": 0.5, "case": [[[0], [1, 2]], [[3]]]}, "reliability=0.5: 1 of 1 items"),
        ({"priors": Priors(weight=dist.LogNormal(0.0, 1.0))}, "Gamma"),
        ({"priors": Priors(weight=OneClass(1.0), other=dist.Gamma(1.0, 2.0))}, "rate"),
    ],
)
def test_where_the_updates_do_not_hold(options, reason):
    given = {"case": P3, "priors": Priors()} | options
    with pytest.raises(NotConjugate, match=reason):
        problem_of(rankings([given.pop("case")], 7), **given)


def test_a_fractional_reliability_needs_no_ties():
    """A tie with nothing below it is certain, and none; an error names one of the others, and their number."""
    certain = [[[0], [1, 2]], [[1]]]
    assert problem_of(rankings([certain], 3), Priors(), 0.5).tables.stages.tolist() == [2.0, 0.0]
    data = rankings([certain, P1, certain, Q1], 3)
    with pytest.raises(NotConjugate, match=f"2 of 4 items have tied classes, such as '{data.items[1]}'"):
        problem_of(data, Priors(), 0.5)


@pytest.mark.slow
@pytest.mark.public_data
@pytest.mark.parametrize(("reliability", "most_above"), [(1.0, 0.002), (10.0, 0.02)])
def test_dermatology_converges(data_folder, reliability, most_above):
    data = cs.load("dermatology-ddx")
    problem = problem_of(data, Priors(), reliability)
    drawn = run_gibbs(GIBBS, problem, key=jax.random.key(0), progress=False).samples
    worst = convergence(drawn["other"]).r_hat
    np.maximum.at(worst, data.entry_item, convergence(drawn["plausibility"]).r_hat)
    assert np.mean(worst > 1.01) < most_above
    assert worst.max() < 1.05
