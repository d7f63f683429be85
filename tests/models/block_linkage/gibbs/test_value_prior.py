"""The concentration of values: the most probable one, as NumPyro has the distribution of their counts."""

import numpy as np
import numpyro.distributions as dist
import pytest

from consilience.models.block_linkage.gibbs.value_prior import most_probable_concentration


def field_of(counts):
    return np.repeat(np.arange(len(counts)), counts)


@pytest.mark.parametrize("counts", [[40, 3, 2, 1, 1, 0, 0], [9, 11, 8, 13], [1, 1, 1, 2, 1, 1, 1, 1, 5]])
def test_no_other_concentration_is_more_probable(counts):
    found = most_probable_concentration(field_of(counts)[None], np.array([0, len(counts)]))
    assert found.shape == (len(counts),)

    def log_probability(concentration):
        distribution = dist.DirichletMultinomial(np.full(len(counts), concentration), sum(counts))
        return float(distribution.log_prob(np.array(counts)))

    best = log_probability(found[0])
    assert all(log_probability(other) < best + 1e-4 for other in np.geomspace(0.05, 100, 60))


@pytest.mark.parametrize("concentration", [0.2, 0.8, 5.0])
def test_what_values_were_drawn_with_is_found(concentration):
    random = np.random.default_rng(0)
    share = random.dirichlet(np.full(400, concentration))
    found = most_probable_concentration(random.choice(400, (1, 20_000), p=share), np.array([0, 400]))
    assert found[0] == pytest.approx(concentration, rel=0.2)


def test_each_field_has_its_own_and_missing_values_say_nothing():
    one, other = field_of([40, 3, 2, 1, 1]), field_of([12, 12, 12, 11])
    both = most_probable_concentration(np.stack([one, other]), np.array([0, 5, 9]))
    assert both[0] < 1 < both[-1]
    assert len(set(both[:5])) == len(set(both[5:])) == 1
    gaps = np.concatenate([one, np.full(30, -1)])
    assert most_probable_concentration(gaps[None], np.array([0, 5]))[0] == both[0]


def test_extremes_stay_within_bounds():
    only = most_probable_concentration(np.zeros((1, 20), np.int32), np.array([0, 1]))
    equal = most_probable_concentration(np.arange(50)[None], np.array([0, 50]))
    empty = most_probable_concentration(np.full((1, 3), -1), np.array([0, 0]))
    assert 0.05 <= only[0] <= 100
    assert 50 < equal[0] <= 100
    assert empty.shape == (0,)
