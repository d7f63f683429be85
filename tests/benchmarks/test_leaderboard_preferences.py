"""The benchmark of annotators with preferences: what is simulated, and what a few sets show."""

import numpy as np
import pytest

from benchmarks.leaderboard_preferences import Setting, preferences, simulate


@pytest.mark.parametrize(("preference", "repeats"), [(0.0, False), (3.0, True)])
def test_who_prefers_a_class_ranks_it_first_on_every_item(preference, repeats):
    rankings, true = simulate(Setting(400, 6, preference), np.random.default_rng(0))
    assert (rankings.num_items, rankings.num_annotators, rankings.num_classes) == (400, 6, 5)
    code = np.asarray(rankings.entry_class)[np.asarray(rankings.entry)]
    first = np.asarray(rankings.block) == 0
    who = np.asarray(rankings.report_annotator)[np.asarray(rankings.report)[first]]
    shares = np.stack([np.bincount(code[first][who == one], minlength=5) / (who == one).sum() for one in range(6)])
    assert (shares.max() > 0.4) == repeats
    assert len(true) == 400


def test_lists_have_the_same_rankings_and_do_not_say_who_gave_them():
    named, lists = (simulate(Setting(20, 6, 1.0), np.random.default_rng(1), named=one)[0] for one in (True, False))
    for field in ("report_item", "entry_class", "entry", "block"):
        np.testing.assert_array_equal(*(np.asarray(getattr(one, field)) for one in (named, lists)))
    assert lists.num_annotators == 5


def test_the_jackknife_makes_intervals_wider():
    row = preferences(Setting(60, 6, 1.0), 2)
    assert row["with: width"] > 1.02 * row["without: width"]
    assert row["sets"] == 2
