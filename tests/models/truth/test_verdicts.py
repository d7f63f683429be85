"""Two classes behind verdicts: a loop over single verdicts says the same, and biases are learned."""

import numpy as np
import pytest
from scipy import special

from consilience.data import Verdicts
from consilience.errors import UnsupportedRequest
from consilience.models.truth.verdicts import probability_of_right


def simulated_verdicts(seed=0, systems=3, items=60, judges=3, gold=20):
    random = np.random.default_rng(seed)
    right = random.random((systems, items)) < np.linspace(0.5, 0.8, systems)[:, None]
    chance = np.where(right[None], 0.85, 0.25) * np.ones((judges, 1, 1))
    chance[0] = 0.5  # one guesses
    said = random.random((judges, systems, items)) < chance
    judge, system, item = (axis.ravel() for axis in np.indices(said.shape))
    known = np.full(right.shape, np.nan)
    known[:, :gold] = right[:, :gold]
    return Verdicts.from_codes(item, system, judge, said.ravel().astype(float), gold=known), right


def by_loops(verdicts):
    """EM as the module states it, verdict by verdict."""
    systems, items, judges = verdicts.num_systems, verdicts.num_items, verdicts.num_annotators
    rows = list(zip(verdicts.system, verdicts.item, verdicts.annotator, verdicts.label, strict=True))
    said = [[[v for s, i, _, v in rows if (s, i) == (a, b)] for b in range(items)] for a in range(systems)]
    p = np.array([[0.1 + 0.8 * np.mean(each) for each in own] for own in said])
    for _ in range(25):
        known = np.where(np.isnan(verdicts.gold), p, verdicts.gold)
        rates = []
        for side in (1, 0):
            hits, cases = np.zeros((systems, judges)), np.zeros((systems, judges))
            for s, i, j, v in rows:
                mass = known[s, i] if side else 1 - known[s, i]
                hits[s, j] += mass * (v == side)
                cases[s, j] += mass
            pooled = (hits.sum(0) + 1) / (cases.sum(0) + 2)
            rates.append((hits + 10 * pooled) / (cases + 10))
        share = (known.sum(1) + 1) / (items + 2)
        logit = np.repeat(special.logit(share)[:, None], items, axis=1)
        for s, i, j, v in rows:
            a, b = rates[0][s, j], rates[1][s, j]
            logit[s, i] += np.log(a / (1 - b)) if v else np.log((1 - a) / b)
        p = special.expit(logit)
    return p


def test_em_is_that_of_loops():
    verdicts, _ = simulated_verdicts(items=25, gold=10)
    keep = np.arange(verdicts.num_verdicts) % 7 != 3  # judges need not see all
    some = Verdicts.from_codes(
        verdicts.item[keep], verdicts.system[keep], verdicts.annotator[keep], verdicts.label[keep], gold=verdicts.gold
    )
    np.testing.assert_allclose(probability_of_right(some), by_loops(some), rtol=1e-9)


def test_classes_see_through_a_judge_who_guesses():
    verdicts, right = simulated_verdicts(items=400, gold=50)
    share = verdicts.shares()[0]
    assert np.square(probability_of_right(verdicts) - right).mean() < 0.8 * np.square(share - right).mean()


@pytest.mark.parametrize(("judges", "label"), [([0, 0], [1, 0]), ([0, 1], [1, 0.5])])
def test_one_judge_or_half_a_verdict_has_no_classes(judges, label):
    with pytest.raises(UnsupportedRequest, match="anchor='latent-class' needs two judges or more"):
        probability_of_right(Verdicts.from_codes([0, 1], [0, 0], judges, label))
