"""The page of agreement: what a coefficient reaches by custom, and what narrower intervals take."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import consilience as cs
from consilience.evaluation.agreement.differences import Lowest, lowest_annotator
from consilience.pages.agreement import (
    _by_convention,
    _than,
    agreement_page,
    agreement_sections,
)
from consilience.pages.agreement_next import next_steps
from consilience.pages.agreement_planned import _about, _best_number, _is_better, _more_annotators, narrower, planning
from tests.golden.cases import crowd


@pytest.mark.parametrize(
    ("alpha", "where"),
    [(-0.1, "below 0.667"), (0.6669, "below 0.667"), (0.667, "between 0.667 and 0.8"), (0.8, "0.8 or more")],
)
def test_a_value_of_alpha_stands_beside_the_convention(alpha, where):
    said = _by_convention(alpha)
    assert said.startswith(f"It is {where}: ")
    assert "custom, which is no test, asks for 0.8, and for 0.667 where" in said


def test_the_tile_of_alpha_has_its_interval_and_says_whose_it_is():
    page = agreement_page(cs.agreement(crowd().data))
    (name,) = (name for name in page.numbers if name.startswith("Krippendorff"))
    found = re.match(r"Krippendorff's alpha, for annotators like these \((\S+) to (\S+), 95 %\): ", name)
    low, high = map(float, found.groups())
    assert low < float(page.numbers[name]) < high
    (said,) = (text for text in page.findings if "Krippendorff" in text)
    assert f"{page.numbers[name]} (Krippendorff's alpha: {found[1]} to {found[2]}, 95 % for annotators like" in said
    (gist,) = (part.gist for part in page.sections if part.title == "Corrected for chance")
    told = re.search(r"alpha (\S+) \[(\S+), (\S+)\] for these annotators, \[(\S+), (\S+)\] for others", gist).groups()
    assert (told[0], *told[3:]) == (page.numbers[name], found[1], found[2])  # in the same digits
    assert low < float(told[1]) < float(told[2]) < high


@pytest.mark.parametrize(("number", "text"), [(7, "7"), (424, "424"), (1696, "1,700"), (13708, "13,700")])
def test_planned_numbers_have_three_digits(number, text):
    assert _about(number) == text


def planned(optimum, lower, upper, asked=4):
    design = SimpleNamespace(per_item=asked)
    return SimpleNamespace(asked=design, optimum=optimum, optimum_lower=lower, optimum_upper=upper, level=0.95)


@pytest.mark.parametrize(
    ("plan", "better"),
    [(planned(7, 3, np.inf), False), (planned(7, 5, np.inf), True), (planned(2, 1, 3.5), True), (planned(5, 2, 9), 0)],
)
def test_another_number_of_annotations_is_planned_for_only_where_it_is_surely_better(plan, better):
    assert _is_better(plan) == better


def test_no_best_number_is_guessed_where_the_data_give_no_upper_end():
    said = _best_number(planned(7.2, 3.4, np.inf))
    assert said.endswith("with 95 % it is 3 or more, and they give no upper end.")


def test_plans_are_for_as_many_annotations_as_now():
    random = np.random.default_rng(10)
    counts = np.stack([random.multinomial(4, one) for one in random.dirichlet([0.9, 0.8, 0.8], 100)])
    found = cs.agreement(cs.Annotations.from_counts(counts))
    part = planning(found)
    table = part.blocks[-1].frame
    assert set(table["annotations per item"]) == {"4 (as now)"}
    assert set(table["interval for"]) == {"these annotators"}
    first = table.iloc[0]
    about = _about(first["more items"])
    assert part.gist == f"for these annotators {first['95 % interval']} takes about {about} more items"
    assert "Of other annotators the plan says nothing" in part.blocks[1]
    (step,) = narrower(found)
    assert step.words.endswith(f" to {first['95 % interval']}: have about {about} more items labelled")
    assert step.section == part.title


def test_plans_for_annotators_like_these_have_more_of_them_and_of_items_alike():
    """With f times as many annotators, items and annotations the variance is one f-th."""
    found = cs.agreement(crowd().data)
    low, high = found.interval_of_others
    table = planning(found).blocks[-1].frame
    rows = table[table["interval for"] == "annotators like these"]
    assert len(rows)
    for row in rows.itertuples(index=False):
        half = float(row[1].removeprefix("± "))
        times = ((high - low) / 2 / half) ** 2
        assert times > 1
        assert row[4] == np.ceil((times - 1) * found.counts.num_items)
        assert row[5] == np.ceil((times - 1) * found.counts.num_annotations)
        number = found.two_way.num_annotators
        assert row[2] == f"{_about(np.ceil(times * number))}, in place of {number}"
    (step,) = narrower(found)
    assert f"± {(high - low) / 2:.2g} now: have about {_about(3 * number)} more annotators" in step.words


@pytest.mark.parametrize(
    ("sd", "item_sd", "said"),
    [
        (0.05, 0.03, "labelled by the same 6, would leave about ± 0.08."),  # ± 0.1, of which 4/5 is of annotators
        (0.05, 0.05, "labelled by the same 6, would make that narrower too."),
    ],
)
def test_what_narrows_the_interval_for_annotators_like_these_is_said(sd, item_sd, said):
    both = SimpleNamespace(sd=sd, item_sd=item_sd, num_annotators=6)
    found = SimpleNamespace(interval_of_others=(0.5, 0.7), annotators_random=False, two_way=both)
    told = _more_annotators(found)
    assert told.startswith(" For annotators like these it is ± 0.1: ")
    assert said in told
    assert told.endswith("narrow both parts of it; the table has these.")
    found.two_way = SimpleNamespace(sd=0.0, item_sd=0.0, num_annotators=6)
    assert _more_annotators(found) == ""
    found.interval_of_others = None
    assert _more_annotators(found).startswith(" Of other annotators the plan says nothing")


def test_items_that_agree_least_stand_with_their_labels():
    counts = [[3, 0, 0]] * 3 + [[1, 2, 1], [1, 1, 1], [1, 1, 0]] + [[2, 1, 1]] * 9 + [[1, 0, 0]]
    page = agreement_page(cs.agreement(cs.Annotations.from_counts(counts, labels=["a", "b", "c"])))
    part = next(part for part in page.sections if part.title == "Items that agree least")
    assert part.gist == "of 15 items 3 have full agreement, 2 none"
    frame = part.blocks[-1].frame
    assert frame["labels"].tolist() == ["1× a, 1× b, 1× c", "1× a, 1× b", "2× b, 1× a, 1× c"] + ["2× a, 1× b, 1× c"] * 7
    assert "2 more items agree as little as the last of these" in part.blocks[0]


@pytest.mark.parametrize("known", [True, False])
def test_gold_labels_are_told_with_what_they_say_of_annotations(known):
    counts = np.array([[3, 1], [0, 4], [2, 2], [1, 3]])
    gold = [0, 0, 1, -1] if known else None
    page = agreement_page(cs.agreement(cs.Annotations.from_counts(counts, labels=["a", "b"], gold=gold)))
    said = " ".join(page.findings)
    assert page.line.startswith("4 items, ")
    assert ("not accuracy: of 12 annotations of the 3 items with a gold label 41.7 % are right (" in said) is known
    assert any("beside the 3 gold labels" in one.words for one in page.actions) is known
    assert any("give their labels in a column gold" in one.words for one in page.actions) is not known


def test_who_agrees_least_is_set_beside_the_others_by_differences():
    data = crowd().data
    found = cs.agreement(data)
    lowest = lowest_annotator(found.counts, data)
    (said,) = (text for text in agreement_page(found).findings if "agrees least with the others" in text)
    name = found.annotators()["annotator"][lowest.group]
    assert re.search(rf"“{name}” agrees least with the others, \S+ \(\S+ to \S+, 95 % for these annotators\)", said)
    assert said.endswith(f"{_than(lowest, found.annotators()['annotator'])}.")
    assert "Bonferroni" not in " ".join(agreement_page(found).findings)
    part = next(part for part in agreement_page(found).sections if part.title == "Annotators")
    told = "any is told apart by chance alone in about 5 % of such data at most (Bonferroni, "
    assert part.blocks[0].endswith(f"{told}approximate).")


@pytest.mark.parametrize(
    ("lower", "others", "said"),
    [
        ((), 1, "; that the other is higher may be chance"), ((), 5, "; that the 5 others are higher may be chance"),
        ((1,), 1, ", beyond chance lower than the other"),
        ((1, 2, 3, 4, 5), 5, ", beyond chance lower than all 5 others"),
        ((2, 5), 5, ", beyond chance lower than “c” and “f”, but not than the 3 others"),
        ((1, 2), 3, ", beyond chance lower than “b” and “c”, but not than the other"),
        ((1, 2, 3, 5), 5, ", beyond chance lower than 4 of 5 others"),
    ],
)  # fmt: skip
def test_how_many_others_agree_more_beyond_chance_is_said(lower, others, said):
    assert _than(Lowest(0, lower, others), list("abcdef")) == said


@pytest.mark.parametrize("counts", [[[3, 1], [0, 4], [2, 2], [4, 0]], [[3, 1, 0], [0, 2, 2], [9, 3, 0], [0, 0, 4]]])
def test_one_coefficient_is_to_be_quoted_and_the_others_stand_behind_it(counts):
    found = cs.agreement(cs.Annotations.from_counts(counts))
    part = next(part for part in agreement_page(found).sections if part.title == "Corrected for chance")
    quoted, others, _ = (block.frame for block in part.blocks if hasattr(block, "frame"))
    assert quoted["coefficient"].tolist() == ["Krippendorff's alpha"]
    assert "Krippendorff's alpha" not in set(others["coefficient"])
    rest = others[others["coefficient"] != "percent agreement"]["value"]
    far = abs(rest - quoted["value"].iloc[0]).max()
    assert f"are at most {far:.3f} from it here." in part.blocks[0]


@pytest.mark.parametrize(("counts", "alike"), [([[3, 1], [0, 4], [2, 2]], True), ([[3, 1], [0, 2], [9, 3]], False)])
def test_spa_is_set_beside_the_percent_agreement(counts, alike):
    found = cs.agreement(cs.Annotations.from_counts(counts))
    part = next(part for part in agreement_page(found).sections if part.title == "Agreement")
    assert re.search(r"the percent agreement, [\d.]+(; weights make no difference)? here\.", part.blocks[0])
    value = float(re.search(r"the percent agreement, ([\d.]+\d)", part.blocks[0])[1])
    assert value == pytest.approx(found.flat.value, abs=0.01)
    assert ("weights make no difference" in part.blocks[0]) is alike


def test_conventions_that_are_written_alike_are_one_row_and_each_is_named_once():
    part = next(part for part in agreement_page(cs.agreement(crowd().data)).sections if "chance" in part.title)
    _, others, _ = (block.frame for block in part.blocks if hasattr(block, "frame"))
    assert not others.drop(columns="convention").round(3).duplicated().any()
    for convention in others["convention"]:
        names = convention.split(", ")
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("gold", [[0, 1, -1], None])
def test_annotators_stand_beside_the_gold_labels_where_there_are_any(gold):
    """Two labels of each of two annotators are of items with a gold label; the third annotator has none there."""
    item, who, label = [0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 1, 2], [0, 0, 1, 0, 1, 1]
    data = cs.Annotations.from_codes(item, who, label, gold=gold, annotators=["x", "y", "z"])
    found = cs.agreement(data)
    part = next(part for part in agreement_page(found).sections if part.title == "Annotators")
    (table,) = (block for block in part.blocks if hasattr(block, "frame"))
    assert ("right by gold" in table.frame) is (gold is not None)
    if gold is not None:
        told = dict(zip(table.frame["annotator"], table.texts["right by gold"], strict=True))
        assert told == {"x": "2 of 2 [0.34, 1.00]", "y": "1 of 2 [0.09, 0.91]", "z": "–"}
    (on_a_fit,) = (part for part in agreement_sections(found) if part.title == "Annotators")
    assert all("right by gold" not in block.frame for block in on_a_fit.blocks if hasattr(block, "frame"))


@pytest.mark.parametrize(("counts", "told"), [([[3, 1], [0, 4]], False), ([[3, 1], [0, 4], [1, 0]], True)])
def test_items_with_two_annotations_are_counted_where_not_all_have_them(counts, told):
    page = agreement_page(cs.agreement(cs.Annotations.from_counts(counts)))
    assert ("items with two annotations or more" in page.numbers) is told
    assert ("averages the agreement of all 2 items" in page.sections[0].blocks[0]) is not told


def test_every_coefficient_is_explained():
    random = np.random.default_rng(0)
    for per_item in (2, 3):
        who = np.tile(np.arange(per_item), 20)
        data = cs.Annotations.from_codes(np.arange(20).repeat(per_item), who, random.integers(0, 3, len(who)))
        found = cs.agreement(data, values=[1.0, 2.0, 4.0])
        part = next(part for part in agreement_page(found).sections if part.title == "Corrected for chance")
        quoted, others, meant = (block.frame for block in part.blocks if hasattr(block, "frame"))
        assert set(meant["coefficient"]) == set(found.coefficients()["coefficient"])
        alpha = meant[meant["coefficient"] == "Krippendorff's alpha"]
        told = " ".join(alpha["what it is"])
        assert all(f"{name}: labels" in told for name in ("nominal", "ordinal", "interval", "ratio"))
        assert len(quoted) + len(others) >= len(meant)


def labelled(different, gold=30, seed=0):
    """Label 150 items, four of 12 annotators each: all right in 0.7, or half of them in 0.45 and half in 0.95."""
    random = np.random.default_rng(seed)
    who = np.concatenate([random.permutation(12)[:4] for _ in range(150)])
    item, truth = np.arange(150).repeat(4), random.integers(0, 3, 150)
    share = np.where(who < 6, 0.45, 0.95) if different else 0.7
    label = np.where(random.random(600) < share, truth[item], random.integers(0, 3, 600))
    known = np.where(np.arange(150) < gold, truth, -1) if gold else None
    return cs.Annotations.from_codes(item, who, label, gold=known)


@pytest.mark.parametrize("gold", [30, 0])
@pytest.mark.parametrize("different", [True, False])
def test_whether_annotators_differ_beyond_chance_is_a_finding(different, gold):
    found = cs.agreement(labelled(different, gold))
    said = " ".join(agreement_page(found).findings)
    assert ("Annotators differ in how often they agree, beyond chance (p < 0.001)" in said) is different
    assert ("That annotators differ in how often they agree may be chance (p = " in said) is not different
    told = re.search(r"than others, beyond chance \(p \S \S+\): the 6 who agree least on the other items in (\d+) of "
                     r"(\d+) labels, the other 6 in (\d+) of (\d+)\.", said)  # fmt: skip
    assert bool(told) is bool(different and gold)
    assert ("That some annotators are right more often than others may be chance (p = " in said) is bool(
        gold and not different
    )
    if told:
        data = found.annotations
        own = np.asarray(data.item) < gold
        right = np.asarray(data.label) == np.asarray(data.gold)[np.asarray(data.item)]
        low = np.asarray(data.annotator) < 6
        assert tuple(map(int, told.groups())) == tuple(
            int(one.sum()) for half in (low, ~low) for one in (half & own & right, half & own)
        )
    assert len(agreement_page(found).findings) <= 4
    (infer,) = (one.words for one in agreement_page(found).actions if one.words.startswith("Infer the labels"))
    assert ("the more the fewer errors they seem to make" in infer) is different


def test_next_steps_say_what_they_gain():
    """Of 9 pairs of labels that differ, 4 are of a and b; all are of three items."""
    counts = [[2, 2, 0], [0, 1, 2], [3, 0, 1]] + [[4, 0, 0]] * 9
    found = cs.agreement(cs.Annotations.from_counts(counts, labels=["a", "b", "c"]))
    steps = " ".join(one.words for one in agreement_page(found).actions)
    assert "what tells “a” from “b”: 44.4 % of all pairs of labels that differ are these two" in steps
    assert "the 10 items that agree least" in steps
    assert "that differ, 100 % are theirs" in steps
    two = cs.agreement(cs.Annotations.from_counts([[3, 1], [2, 2], [0, 4]], labels=["a", "b"]))
    assert not any("guidelines" in one.words for one in agreement_page(two).actions)
    assert next_steps(found, [])[0].command.startswith("consilience fit dirichlet labels.csv ")


def test_tables_and_figures_say_for_whom_their_intervals_are():
    page = agreement_page(cs.agreement(crowd().data))
    tables = [block for part in page.sections for block in part.blocks if hasattr(block, "frame")]
    with_ends = [table for table in tables if "95 % from" in table.frame]
    assert len(with_ends) >= 4
    assert all("these annotators" in table.caption for table in with_ends)
    random = agreement_page(cs.agreement(crowd().data, annotators="random"))
    assert "for items like these and annotators like these." in random.sections[0].blocks[0]
