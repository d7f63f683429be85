"""Whether systems looked at the items themselves, by gold labels: on the page of labels."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import consilience as cs
from consilience.models.truth.truth import Marginals
from consilience.pages.looked import Beside, Choices, Looked, looked, looked_blocks
from consilience.pages.one_gold_label import _by_systems

ITEMS, SURE = 30, 0.7


def crowd(stated=SURE, **settings):
    """Return a fit by hand that gives label 1 of each item that probability, at any dependence; gold is 1."""
    both = np.tile([1 - stated, stated], (ITEMS, 1))
    truth = SimpleNamespace(held_out=Marginals.dense(both), probabilities_at=lambda z: Marginals.dense(
        np.clip(both + 0.05 * z * np.array([1, -1]), 0, 1)
    ))  # fmt: skip
    given = SimpleNamespace(settings=SimpleNamespace(gold="ignore"), data=SimpleNamespace(gold_codes=np.ones(ITEMS)))
    member = SimpleNamespace(density=object(), table_names=())
    return SimpleNamespace(truth=truth, resolved=given, member=member, options={}, **settings)


def says(*right):
    """Return what systems say that are right on so many items, the first ones."""
    code = np.array([(np.arange(ITEMS) < number).astype(int) for number in right])
    return Choices(tuple("abc"[: len(right)]), np.arange(ITEMS), code)


@pytest.mark.parametrize(("right", "told"), [(30, True), (29, True), (22, False), (15, False)])
def test_a_system_that_copies_is_right_as_often_as_the_fit_gives_its_labels(right, told):
    """How many is a sum of Bernoulli variables: binomial, where all are right with the same probability."""
    (found,) = looked(crowd(), says(right), ["a"], [])
    sure = [SURE - 0.05 * z for z in (0, -1.96, 1.96)]
    items = [[one] * right + [1 - one] * (ITEMS - right) for one in sure]
    assert found.all.expected[0] == pytest.approx(sum(items[0]))
    assert found.all.expected[1:] == pytest.approx((min(map(sum, items)), max(map(sum, items))))
    by_hand = []
    for own in items:
        number = np.ones(1)
        for one in own:
            number = np.convolve(number, [1 - one, one])
        by_hand.append(number[right:].sum())
    assert found.all.chance == pytest.approx((by_hand[0], min(by_hand), max(by_hand)))
    assert found.told is told
    if right == ITEMS:
        assert found.all.chance[0] == pytest.approx(stats.binom.sf(ITEMS - 1, ITEMS, SURE))


def test_labels_that_nobody_gave_are_left_out_as_well():
    (found,) = looked(crowd(), says(30), ["a"], [3, 4])
    assert (found.all.items, found.named.items, found.named.right) == (30, 28, 28)
    assert looked(crowd(), says(30), ["a"], [])[0].named is None


def test_what_holds_of_each_system_is_said():
    """Of one it is open, and of another gold labels do not show it."""
    named = beside(0.2)._replace(items=29)
    found = [Looked(name, beside(chance), named, 0.025) for name, chance in (("a", 0.015), ("b", 0.04), ("c", 0.5))]
    said, _ = looked_blocks(found, DOUBT)
    assert said.startswith("Whether “a” looked at the items itself is open: ")
    assert said.endswith(f" gave are right. Gold labels do not show it of “b” and “c”. {DOUBT}")


def test_several_systems_are_tested_as_several():
    found = looked(crowd(), says(30, 29, 20), ["a", "b"], [])
    assert [one.name for one in found] == ["a", "b"]
    assert [one.level for one in found] == pytest.approx([0.025] * 2)


def test_nothing_is_tested_of_few_labels_or_without_a_range_of_the_dependence():
    fit = crowd()
    assert looked(fit, None, ["a"], []) == ()
    few = Choices(("a",), np.arange(19), np.ones((1, 19), int))
    assert looked(fit, few, ["a"], []) == ()
    fit.truth.probabilities_at = None
    assert looked(fit, says(30), ["a"], []) == ()


DOUBT = "On gold items the certainties hold up (27 right, 25.4 expected)."


def beside(chance):
    return Beside(27, 30, (22.5, 20.1, 23.9), (chance / 3, chance / 9, chance))


@pytest.mark.parametrize(
    ("chance", "without", "end"),
    [
        (0.015, None, "suggest that “a” looked at the items itself, if the probabilities of the fit are right and "
         "these items are a random sample. They do not show how independent its errors are.{}"),
        (0.015, 0.02, "They do not show how independent its errors are.{}"),
        (0.015, 0.2, "Whether “a” looked at the items itself is open: gold labels suggest it only if the "
         "probabilities of the fit are right and if the gold labels that no annotator gave are right.{}"),
        (0.2, 0.2, "Gold labels do not show whether the systems looked at the items themselves."),
    ],
)  # fmt: skip
@pytest.mark.parametrize("doubt", ["", DOUBT])
def test_what_gold_labels_tell_is_said_no_surer_than_it_is(chance, without, end, doubt):
    named = None if without is None else beside(without)._replace(items=29)
    one = Looked("a", beside(chance), named, 0.05)
    said, tested = looked_blocks([one], doubt)
    (rule, table) = tested.blocks
    # The page has the whole rule, by which what it says can be read from the table.
    rows = ["its whole range of p is below 0.05", "its whole range of p is below the limit in both rows."]
    assert [one in rule for one in rows] == [without is None, without is not None]
    assert ("If that is so in the first row only, it is open; otherwise gold labels do not show it." in rule) is (
        without is not None
    )
    assert said.endswith(end.format(f" {doubt}" if doubt else ""))
    assert len(set(table.frame.columns)) == 7
    assert {"range of expected", "range of p"} < set(table.frame.columns)
    rows = table.frame.to_numpy().tolist()
    assert rows[0][:5] == ["a", "all, 30", 27, "22.5", "20.1 to 23.9"]
    assert rows[0][6].endswith(f" to {chance:.3f}")
    assert [row[1] for row in rows[1:]] == ["those that an annotator gave, 29"] * (without is not None)
    assert looked_blocks([]) == []


@pytest.mark.parametrize(
    ("right", "said"),
    [
        ([1], " (“a” gives it)"), ([0], " (“a” does not give it either)"),
        ([1, 1], " (both systems give it)"), ([1, 0], " (1 of 2 systems gives it)"),
        ([0, 0], " (none of 2 systems gives it either)"), ([1, 1, 1], " (all 3 systems give it)"),
    ],
)  # fmt: skip
def test_systems_that_give_a_label_that_no_annotator_gave_are_counted(right, said):
    assert _by_systems(says(*right), 0, 1) == said
    assert _by_systems(says(*right), ITEMS, 1) == ""


def test_a_page_says_whether_gold_labels_tell_of_an_own_look(tmp_path):
    """One that is right where the annotators are not looked itself, and one that repeats their vote did not."""
    random = np.random.default_rng(2)
    gold = random.integers(0, 3, 150)
    said = np.where(random.random((150, 5)) < 0.55, gold[:, None], random.integers(0, 3, (150, 5)))
    item, who = np.indices(said.shape)
    known = np.where(np.arange(150) < 60, gold, -1)
    data = cs.Annotations.from_codes(item.ravel(), who.ravel(), said.ravel(), gold=known)
    fit = cs.fit("one-coin", data, draws=200)
    vote = (said[:, :, None] == np.arange(3)).sum(axis=1).argmax(axis=1)
    systems = {
        name: {"item": list(range(150)), "class": own.tolist()} for name, own in (("knows", gold), ("copies", vote))
    }
    text = cs.report(fit, systems, path=tmp_path / "page.html").read_text(encoding="utf-8")
    told = re.search(r"Gold labels suggest that ([^,]*) looked at the items itself, if the", text)[1]
    assert told == "“knows”"
    assert "dependence ρ of annotators" in text
