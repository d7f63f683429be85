"""The prior of partitions in which records of one source are apart: by hand, by brute force, and as sweeps draw it."""

import itertools

import numpy as np
import pytest
from scipy.special import betaln, comb, gammaln

from consilience.models.block_linkage.by_source import draw_share, elementary, log_factors, most_probable
from consilience.models.block_linkage.gibbs import sampler
from consilience.models.block_linkage.gibbs.problem import LinkProblem


@pytest.mark.parametrize("share", [(0.5, 0.5), (0.7, 0.2, 0.1), (0.4, 0.3, 0.2, 0.1)])
def test_polynomials_are_sums_of_products(share):
    degrees = range(len(share) + 1)
    expected = [sum(np.prod(one) for one in itertools.combinations(share, degree)) for degree in degrees]
    np.testing.assert_allclose(elementary(np.array(share)), expected)


def test_of_two_equal_sources_a_link_counts_twice():
    np.testing.assert_allclose(log_factors(np.array([0.5, 0.5]), 4), [0, np.log(2), 0, 0], atol=1e-12)
    np.testing.assert_array_equal(log_factors(np.zeros(0), 2), [0, 0])


def test_shares_of_three_sources_are_drawn_as_they_are_distributed():
    """Against sums over a grid of the simplex: 9 entities of one record, 5 of two and 2 of three."""
    cluster = np.repeat(np.arange(16), [1] * 9 + [2] * 5 + [3] * 2)
    source = np.repeat([0, 1, 2], [12, 8, 5])
    grid = np.linspace(0, 1, 401)[1:-1]
    share = np.stack(np.meshgrid(grid, grid, indexing="ij"))[:, grid[:, None] + grid < 1 - 1e-9]
    share = np.vstack([share, 1 - share.sum(axis=0)])
    pairs = share.sum(axis=0) ** 2 - (share**2).sum(axis=0)
    log_density = np.array([12, 8, 5]) @ np.log(share) - 5 * np.log(pairs / 2) - 2 * np.log(share.prod(axis=0))
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    random, draws = np.random.default_rng(0), [np.full(3, 1 / 3)]
    for _ in range(4_000):
        draws.append(draw_share(random, draws[-1], cluster, source))
    mean = share @ weight
    np.testing.assert_allclose(np.mean(draws, axis=0), mean, atol=0.01)
    np.testing.assert_allclose(np.std(draws, axis=0), np.sqrt(share**2 @ weight - mean**2), atol=0.005)


def test_shares_of_three_sources_are_the_most_probable_ones():
    records, sizes = np.array([30, 20, 9]), np.array([0, 25, 11, 4])

    def log_density(share):
        return np.sum((records + 1) * np.log(share)) - np.sum(sizes[1:] * np.log(elementary(share)[1:]))

    best = most_probable(records, sizes)
    assert best.sum() == pytest.approx(1)
    random = np.random.default_rng(0)
    for _ in range(200):
        other = best * np.exp(0.05 * random.standard_normal(3))
        assert log_density(other / other.sum()) <= log_density(best) + 1e-9


def test_files_that_the_largest_one_contains_keep_their_shares():
    """Of single records all are of one file: without the record more of each the shares of the others would vanish."""
    share = most_probable(np.array([100, 30, 20]), np.array([0, 60, 30, 10]))
    assert share.min() > 0.005


def test_sweeps_draw_links_between_two_sources_as_often_as_brute_force_has_them():
    """Records without values are together as the prior has it: sums over all m, μ and φ are known."""
    first, second = 4, 3
    number, pairs = first + second, np.arange(4)
    shape, rate, sizes = 4.0, 1.0, np.array([3.0, 2.0])
    source = np.repeat([0, 1], [first, second]).astype(np.int32)
    neighbours = [np.delete(np.arange(number), one) for one in range(number)]
    problem = LinkProblem(
        value=np.full((number, 1), -1, np.int32), field=np.zeros(2, np.int32), source=source,
        first_neighbour=np.arange(number + 1) * (number - 1),
        neighbour=np.concatenate(neighbours).astype(np.int32), value_concentration=np.array(1.0),
        num_sources=2, distortion=np.array([[1.0, 9.0]]), intensity=np.array([shape, rate]), size_share=sizes,
    )  # fmt: skip
    entities, alone = number - pairs, np.array([number - 2 * pairs, pairs])
    log_weight = gammaln(shape + entities) - (shape + entities) * np.log(rate + 1)
    log_weight += gammaln(sizes[:, None] + alone).sum(axis=0) - gammaln(sizes.sum() + entities)
    log_weight += betaln(first - pairs + 1, second - pairs + 1)  # 2! of a size, and 1/2 of which record is whose
    ways = comb(first, pairs) * comb(second, pairs) * np.exp(gammaln(pairs + 1))
    expected = ways * np.exp(log_weight - log_weight.max())
    expected /= expected.sum()
    random = np.random.default_rng(1)
    state, found = sampler.start(random, problem), np.zeros(4)
    for _ in range(6_000):
        state = sampler.sweep(random, state, problem)
        found[number - len(np.unique(state.cluster))] += 1
    np.testing.assert_allclose(found / found.sum(), expected, atol=0.03)
    without = ways * np.exp(log_weight - betaln(first - pairs + 1, second - pairs + 1) + np.log(2) * pairs)
    assert np.abs(without / without.sum() - expected).max() > 0.1  # as if records of one source could be together
