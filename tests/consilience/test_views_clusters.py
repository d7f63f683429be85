"""How many clusters a view may have: what pages say of it, and of what was given for it."""

from types import SimpleNamespace

import numpy as np
import pandas
import pytest

import consilience as cs
from consilience.inference.given_options import given_options, write_given
from consilience.models.expert_views.numbers import taken
from consilience.models.truth.views import Sorting, pairs_apart
from consilience.pages import views
from consilience.pages.clusters_allowed import clusters_allowed, evidence, most_otherwise
from consilience.pages.run import changed, reproduction, run_section


def compared(values, errors, apart, most=3):
    """Return as much of a fit as tells of its evidence, of 2, 3, … clusters."""
    value = np.array(values, float)
    frame = pandas.DataFrame({
        "clusters": np.arange(2, len(values) + 2), "log_evidence": value, "standard_error": errors,
        "probability": np.exp(value - np.logaddexp.reduce(value)), "pairs_apart": apart,
    })  # fmt: skip
    return SimpleNamespace(table=lambda name: frame, truth=SimpleNamespace(most_clusters=most))


@pytest.mark.parametrize(
    ("values", "errors", "apart", "said", "otherwise", "other"),
    [
        ([-90, -10, -30], [1, 1, 1], [0.2, 0, 0.1], "3 fits best (probability above 0.99)", "", 0),
        ([-90, -10, -30], [1, 1, 1], [0.2, 0, 0], "3 fits best (probability above 0.99)",
         "; 4 gives the same clusters", 0),
        ([-90, -10, -12], [0.1, 0.1, 0.1], [0.2, 0, 0], "3 and 4 all remain possible: the estimates of their evidence "
         "do not separate them. This page uses 3, which has the highest estimate",
         "; the run with 4 sorts the items into the same clusters", 0),
        ([-90, -12, -10], [0.1, 9, 9], [0.2, 0, 0], "3 and 4 all remain possible: the estimates of their evidence "
         "do not separate them. This page uses 3, the smallest number that sorts the items like 4, which has "
         "the highest estimate", "; the run with 4 sorts the items into the same clusters", 0),
        ([-90, -10, -30, -80], [1, 9, 9, 1], [0.2, 0, 0.031, 0.4], "3 and 4 all remain possible",
         "; the run with 4 sorts 3.1 % of the pairs of items differently", 4),
        ([-14, -10, -30, -22], [9, 9, 1, 9], [0.2, 0, 0.5, 0.1], "2, 3 and 5 all remain possible",
         "; the runs with 2 and 5 sort at most 20.0 % of the pairs of items differently", 2),
        ([-14, -10, -12, -11], [9, 9, 1, 9], [0.0001, 0, 0, 0], "2 to 5 all remain possible",
         "; the runs with 2, 4 and 5 sort at most 0.1 % of the pairs of items differently", 2),
    ],
)  # fmt: skip
def test_numbers_of_clusters_that_are_left_open_are_named(values, errors, apart, said, otherwise, other):
    fit = compared(values, errors, apart)
    text = clusters_allowed(fit)
    assert text.startswith(f"Among 2 to {len(values) + 1} clusters for each view, {said}")
    assert text.endswith(otherwise)
    assert "nats" not in text
    assert most_otherwise(fit) == other
    table, more = evidence(fit)  # what they say in a sentence is a finding
    first, why = more.blocks
    shown = table.frame.set_index("clusters at most")
    assert shown.loc[3, "open"] == "used"
    gap = float(shown.loc[2, "less than the highest"].split("\N{NO-BREAK SPACE}±")[0].replace("−", "-"))
    assert gap == pytest.approx(max(values) - values[0])
    most = int(np.argmax(values))
    clear = values[most] - np.array(values) > np.maximum(2 * np.hypot(errors, errors[most]), 3)
    assert (shown["open"] == "no").tolist() == clear.tolist()
    assert shown.loc[2, "pairs that differ"] == ("20.0 %" if apart[0] == 0.2 else "< 0.1 %")
    # Probabilities stand where they tell anything: of one number alone, or of small errors.
    told = bool((~clear).sum() == 1 or max(errors) < 0.2)
    assert ("probability" in shown) is told
    assert ("The errors are too large to give probabilities" in first) is not told
    assert ("uses the smallest that sorts the items" in why) is bool((~clear).sum() > 1)
    assert all(len(one.split(".")[1]) == 2 for one in table.texts.get("probability", []))


ONE, TWO, SWAPPED = ([0, 0, 0, 0], [0, 0, 1, 1], [1, 1, 0, 0])


@pytest.mark.parametrize(
    ("value", "error", "labels", "number"),
    [
        ([-90, -12, -10], [0.1, 9, 9], [ONE, TWO, SWAPPED], 3),      # they sort alike: the fewest
        ([-12, -11, -10], [9, 9, 9], [ONE, TWO, SWAPPED], 3),        # of those that sort as the highest does
        ([-12, -11, -10], [9, 9, 9], [TWO, ONE, TWO], 2),
        ([-90, -16, -10], [0.1, 0.1, 0.1], [ONE, TWO, TWO], 4),      # told apart
        ([-90, -12.9, -10], [0.1, 0.1, 0.1], [ONE, TWO, TWO], 3),    # by less than 3 nats
        ([-10, -12, -12], [9, 9, 9], [ONE, TWO, TWO], 2),            # the highest has the fewest
    ],
)  # fmt: skip
def test_the_fewest_clusters_are_taken_that_sort_as_the_highest_estimate_does(value, error, labels, number):
    sorted_by = [Sorting(np.zeros(3, int), np.array([label])) for label in labels]
    assert 2 + taken(np.array(value, float), np.array(error, float), sorted_by) == number


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        (([0, 0], [[0, 0, 1, 1]]), ([0, 0], [[1, 1, 0, 0]]), 0),
        (([0, 0], [[0, 0, 1, 1]]), ([0, 0], [[0, 0, 0, 1]]), 3 / 6),
        (([0, 0], [[0, 0, 0, 0]]), ([0, 0], [[0, 1, 2, 3]]), 1),
        # Views may have other numbers; two of three experts agree, and the third sorts a pair otherwise.
        (([0, 0, 1], [[0, 0, 1, 1], [0, 0, 1, 2]]), ([1, 1, 0], [[0, 1, 2, 3], [0, 0, 2, 2]]), 1 / 6 / 3),
    ],
)
def test_pairs_that_two_fits_sort_otherwise_are_counted_by_expert(one, other, share):
    first, second = (Sorting(np.array(view), np.array(label)) for view, label in (one, other))
    assert pairs_apart(first, second) == pytest.approx(share)
    assert pairs_apart(second, first) == pytest.approx(share)


def test_what_was_given_is_what_reproduces_a_fit_that_was_chosen_among_several():
    labels = cs.Annotations.from_counts([[3, 0], [1, 2]])
    plain = cs.fit("majority-vote", labels)
    assert "  # " not in reproduction(plain, {}).splitlines()[3]
    settings = {**plain.options, "uncertainty": "auto"}
    write_given(SimpleNamespace(settings=SimpleNamespace(as_dict=lambda: settings)), plain)
    assert given_options(plain) == settings
    assert changed(plain)["uncertainty"] == "auto"
    taken = plain.options["uncertainty"]
    assert reproduction(plain, {}).splitlines()[3].endswith(f"  # 'auto' chose uncertainty={taken!r}")
    assert "uncertainty='auto'" in reproduction(plain, {})
    rows = run_section(plain, {}).blocks[0].frame.set_index("what")
    assert rows.loc["uncertainty", "value"].startswith(f"auto: {taken} was chosen")
    assert not [name for name in rows.index if name.startswith("given")]


@pytest.mark.parametrize(("rows", "priors", "offered"), [(1, "", True), (1, "priors = …", False), (0, "", False)])
def test_numbers_of_clusters_are_compared_by_a_command_where_one_can(monkeypatch, rows, priors, offered):
    """A chain without tempering has no evidence, and no command knows priors of one's own."""
    fit = SimpleNamespace(method="gibbs", table=lambda name: range(rows))
    monkeypatch.setattr(views, "own_priors", lambda fit: priors)
    monkeypatch.setattr(views, "_again", lambda fit, **given: f"fit --clusters {given['clusters']}")
    assert [one.command for one in views._other_clusters(fit)] == ["fit --clusters auto -o compared"] * offered
