"""The benchmark of anchoring: what is simulated, and what is measured of few sets."""

import numpy as np

from benchmarks.leaderboard_anchoring import SETTINGS, Setting, as_verdicts, measure, simulate


def test_systems_are_as_right_as_they_are_said_to_be():
    random = np.random.default_rng(0)
    sets = [simulate(Setting(2, 50, 0.5, 0.9), random) for _ in range(20)]
    error = np.stack([one.y.mean(axis=1) - one.population for one in sets])
    # The mean of systems in a set has the errors of the difficulty of its items in common.
    assert abs(error.mean()) < 5 * error.mean(axis=1).std(ddof=1) / np.sqrt(20)
    # The first judge calls the first system right more often than the others are, given what it is.
    liked = np.array([[(one.verdicts[0, s] - one.y[s]).mean() for s in (0, 1)] for one in sets])
    assert (liked[:, 0] > liked[:, 1]).mean() > 0.7
    verdicts = as_verdicts(sets[0])
    assert (verdicts.num_systems, verdicts.num_items, verdicts.num_annotators) == (10, 1000, 2)
    np.testing.assert_allclose(verdicts.shares()[0], sets[0].verdicts.mean(axis=0))
    assert np.isfinite(verdicts.gold).sum() == 10 * 50


def test_anchored_intervals_hold_where_those_of_judges_do_not():
    """Of 150 pairs of a set and a system: systems of a set go together, as those of fifteen sets or so."""
    rows = {row["method"]: row for row in measure(SETTINGS[1], 15)}
    assert list(rows) == ["gold only", "anchored", "anchored, latent class", "judges alone"]
    assert rows["anchored"]["coverage"] > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 15 / 3)
    assert rows["judges alone"]["coverage"] < 0.5
    assert rows["anchored"]["width"] < rows["gold only"]["width"]
    assert rows["anchored"]["RMSE"] < rows["judges alone"]["RMSE"]
    assert rows["anchored"]["as good as gold"] > 100
