"""The page of agreement: what a coefficient reaches by custom, and what narrower intervals take."""

import re
from types import SimpleNamespace

import numpy as np
import pandas
import pytest

import consilience as cs
from consilience.evaluation.agreement.differences import Lowest, lowest_annotator
from consilience.evaluation.agreement.meeting import labels_that_meet
from consilience.pages.agreement import _sorted_by_item, _than, agreement_page, agreement_sections
from consilience.pages.agreement_first import by_convention, how_items_split, splits, verdict
from consilience.pages.agreement_next import next_steps
from consilience.pages.agreement_planned import _about, _best_number, _is_better, _more_annotators, narrower, planning
from consilience.rounding import within
from tests.golden.cases import crowd


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        ((0.38, 0.2, 0.57), "Do not use single labels as truth: annotators agree too little. Krippendorff's"),
        ((0.6, 0.5, 0.7), "It is unclear whether single labels are reliable enough: Krippendorff's alpha is 0.60"),
        ((0.7, 0.5, 0.9), "It is unclear whether single labels are reliable enough: "),
        ((0.75, 0.68, 0.81), "By convention single labels allow tentative conclusions: "),
        ((0.9, 0.85, 0.95), "By convention annotators agree well enough: "),
    ],
)
def test_the_verdict_is_no_surer_than_the_interval_of_alpha(interval, said):
    assert verdict(*interval).startswith(said)


@pytest.mark.parametrize(
    ("value", "said"),
    [("0.38", "Agreement is 0.38 of the way from chance to full: that is Krippendorff's alpha. By convention it"),
     ("−0.10", "Annotators agree less than by chance. By convention")],
)  # fmt: skip
def test_a_value_of_alpha_stands_beside_the_convention(value, said):
    assert by_convention(value).startswith(said)


def test_the_tile_of_alpha_has_its_interval_and_says_whose_it_is():
    page = agreement_page(cs.agreement(crowd().data))
    (name,) = (name for name in page.numbers if name.startswith("Krippendorff"))
    found = re.match(r"Krippendorff's alpha \((\S+) to (\S+), 95 % with similar annotators\); ", name)
    low, high = map(float, found.groups())
    assert low < float(page.numbers[name]) < high
    assert f"Krippendorff's alpha is {page.numbers[name]}" in page.verdict
    (gist,) = (part.gist for part in page.sections if part.title == "Corrected for chance")
    told = re.search(r"alpha (\S+) \[(\S+), (\S+)\] for these annotators, \[(\S+), (\S+)\] for others", gist).groups()
    assert (told[0], *told[3:]) == (page.numbers[name], found[1], found[2])  # in the same digits
    assert low < float(told[1]) < float(told[2]) < high


def test_which_interval_to_quote_is_said_first():
    found = cs.agreement(crowd().data)
    first = agreement_page(found).findings[0]
    _, low, high = within(found.value, *found.interval_of_others)
    own = [f"{end:.{len(low) - 2}f}" for end in found.interval]  # in the same digits
    number = found.two_way.num_annotators
    value = within(found.value, *found.interval_of_others)[0]
    assert first.endswith(f"To say how often two annotators agree, quote {value} ({low} to {high}, 95 %).")
    (tile,) = (name for name in agreement_page(found).numbers if name.startswith("agreement (SPA"))
    assert tile.endswith(
        f": {low} to {high} (95 %) if you hired similar annotators; {own[0]} to {own[1]} if you keep these {number}"
    )
    alone = cs.agreement(cs.Annotations.from_counts([[3, 1], [0, 4], [2, 2], [4, 0]]))
    assert re.search(r"The interval is \S+ to \S+ \(95 % for these annotators\)\.$", agreement_page(alone).findings[0])


@pytest.mark.parametrize(
    ("counts", "names", "items"),
    [
        ([[4, 0, 0], [0, 4, 0], [3, 1, 0], [0, 2, 2], [1, 2, 1], [1, 0, 0]],
         ("4–0", "3–1", "2–2", "2–1–1"), [2, 1, 1, 1]),
        ([[number + 1, number, 0] for number in range(1, 10)] + [[2, 2, 0], [5, 0, 0]],
         ("all the same", "more than half the same", "no label has more than half"), [1, 9, 1]),
    ],
)  # fmt: skip
def test_items_are_counted_by_how_their_labels_split(counts, names, items):
    found = cs.agreement(cs.Annotations.from_counts(counts))
    told = splits(found)
    assert told.names == names
    assert told.items.tolist() == items
    drawn = agreement_page(found).figure
    assert sorted(bar.get_width() for bar in drawn.patches) == sorted(items)


def test_how_items_split_is_a_finding():
    found = cs.agreement(cs.Annotations.from_counts([[4, 0, 0], [0, 4, 0], [3, 1, 0], [2, 2, 0], [1, 2, 1]]))
    assert how_items_split(found) == "On 2 of 5 items all labels are the same; on 2 no label has more than half."
    assert how_items_split(found) in agreement_page(found).findings


def meeting(confused, seed=0):
    """Label 200 items of four labels; annotators who err draw by frequency, or give b for a and a for b."""
    random = np.random.default_rng(seed)
    truth, shape = random.integers(0, 4, 200), (200, 4)
    other = np.where(truth < 2, 1 - truth, truth)[:, None] if confused else random.integers(0, 4, shape)
    label = np.where(random.random(shape) < 0.6, truth[:, None], other)
    item, who = np.arange(200).repeat(4), np.tile(np.arange(4), 200)
    return cs.agreement(cs.Annotations.from_codes(item, who, label.ravel(), labels=list("abcd"), gold=truth))


@pytest.mark.parametrize("confused", [True, False])
def test_labels_are_to_be_told_apart_only_where_they_meet_beyond_chance(confused):
    found = meeting(confused)
    met = labels_that_meet(found.counts)
    entries = found.counts.entries
    given = np.zeros((200, 4))
    given[entries.item, entries.label] = entries.number
    both = np.triu(given.T @ given, 1)
    share = given.sum(axis=0) / given.sum()
    by_frequency = np.triu(np.outer(share, share), 1)
    np.testing.assert_allclose(met.share, both[met.first, met.second] / both.sum())
    np.testing.assert_allclose(met.by_frequency, (by_frequency / by_frequency.sum())[met.first, met.second])
    steps = [one for one in agreement_page(found).actions if one.words.startswith("Say in the guidelines")]
    assert len(steps) == confused
    part = next(part for part in agreement_page(found).sections if part.title == "Agreement by label")
    tables = [block for block in part.blocks if hasattr(block, "frame")]
    if confused:
        assert steps[0].words.startswith("Say in the guidelines what tells “a” from “b”: 100 % of the pairs of labels")
        assert steps[0].section == part.title
        missed = tables[-1].frame.set_index(["gold label", "label given"])["annotations"]
        assert sorted(missed.index) == [("a", "b"), ("b", "a")]
        assert missed.sum() == given.sum() - sum(given[np.arange(200), np.asarray(found.annotations.gold)])
    else:
        told = " ".join(block for block in part.blocks if isinstance(block, str))
        assert "No two labels meet more often than by frequency beyond chance." in told
        assert len(tables[1].frame) == 6


@pytest.mark.parametrize(
    ("names", "item", "is_sorted"),
    [
        (["p1", "p2", "p10"], [0, 0, 1, 1, 2, 2], True), (["p1", "p10", "p2"], [0, 0, 1, 1, 2, 2], True),
        (["p7", "p2", "p10"], [0, 0, 1, 1, 2, 2], False), (["p1", "p2", "p10"], [0, 1, 2, 0, 1, 2], False),
    ],
)  # fmt: skip
def test_rows_that_are_sorted_by_item_did_not_arrive_so(names, item, is_sorted):
    data = cs.Annotations.from_codes(item, [0, 1, 0, 1, 0, 1], [0, 1, 0, 0, 1, 1], items=names)
    assert _sorted_by_item(data) is is_sorted


def test_the_arrival_is_left_out_where_rows_are_sorted_by_item():
    data = crowd().data
    order = np.random.default_rng(0).permutation(len(data.item))
    mixed = data.replace(**{name: np.asarray(getattr(data, name))[order] for name in ("item", "annotator", "label")})
    shown = ["As annotations arrived" in {part.title for part in agreement_page(cs.agreement(one)).sections}
             for one in (mixed, data)]  # fmt: skip
    assert shown == [True, False]


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
    assert said == (
        "Collect at least 3 annotations of each new item: with fewer, the same number of annotations in all gives a "
        "wider interval of the agreement (95 % sure)."
    )
    least = _best_number(planned(7.2, 2.1, np.inf))  # of one annotation there is no agreement
    assert least.startswith("Collect at least 2 annotations of each new item, as agreement takes 2. Whether more of ")
    assert least.endswith(" cannot be told from these data.")


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
    cost = _about(first["more annotations in all"])
    assert step.words.startswith(f"Collect about {cost} more annotations, on {about} more items, to narrow the ")
    assert step.words.endswith(f" to {first['95 % interval']}")
    assert step.section == part.title


def test_plans_for_annotators_like_these_have_more_of_them_and_of_items_alike(monkeypatch):
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
    with monkeypatch.context() as higher:
        higher.setattr(type(found), "alpha_interval_of_others", (0.5, 0.7))
        (step,) = narrower(found)
    cost = _about(3 * found.counts.num_annotations)
    assert step.words.startswith(f"Collect about {cost} more annotations, by {_about(3 * number)} more annotators on ")
    assert step.words.endswith(f" to halve the interval (now ± {(high - low) / 2:.2g})")
    (instead,) = narrower(found)
    assert found.alpha_interval_of_others[1] < 0.667
    assert instead.words.endswith("More annotations will not raise alpha; they only make it more exact")
    assert not instead.section
    assert agreement_page(found).actions[-1] == instead


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


@pytest.mark.parametrize(
    ("tied", "shown", "named"),
    [(2, 10, "10 items with the lowest"), (24, 24, "24 items with the lowest"), (60, 50, "50 of the 60 items that")],
)
def test_all_items_that_tie_as_lowest_are_shown(tied, shown, named):
    counts = [[3, 0, 0]] * 9 + [[1, 2, 1]] * tied + [[2, 1, 0]] * 9
    page = agreement_page(cs.agreement(cs.Annotations.from_counts(counts, labels=["a", "b", "c"])))
    part = next(part for part in page.sections if part.title == "Items that agree least")
    assert part.gist == f"of {18 + tied} items {tied} have the least, 0.167"
    tables = [one for block in part.blocks for one in getattr(block, "blocks", [block]) if hasattr(one, "frame")]
    assert len(tables[0].frame) == min(shown, 10)
    frame = pandas.concat([one.frame for one in tables])
    lowest = min(tied, shown)
    assert frame["labels"].tolist() == ["2× b, 1× a, 1× c"] * lowest + ["2× a, 1× b"] * (shown - lowest)
    assert (" as little as the last of these" in part.blocks[0]) is (tied != 24)
    (step,) = (one for one in page.actions if one.section == part.title)
    assert step.words.startswith(f"Look at the {named}")
    assert "unclear in them" not in step.words


@pytest.mark.parametrize("known", [True, False])
def test_gold_labels_are_told_with_what_they_say_of_annotations(known):
    counts = np.array([[3, 1], [0, 4], [2, 2], [1, 3]])
    gold = [0, 0, 1, -1] if known else None
    page = agreement_page(cs.agreement(cs.Annotations.from_counts(counts, labels=["a", "b"], gold=gold)))
    said = " ".join(page.findings)
    assert page.line.startswith("4 items, ")
    assert ("41.7 % of 12 single labels of the items with a gold label are right (" in said) is known
    assert any("its report says how many gold labels it gets right" in one.words for one in page.actions) is known
    assert ("right on 1.5 of 3 items with a gold label, a tie counting by its share." in said) is known
    assert any("give their labels in a column gold" in one.words for one in page.actions) is not known


def test_who_agrees_least_is_set_beside_the_others_by_differences():
    data = crowd().data
    found = cs.agreement(data)
    lowest = lowest_annotator(found.counts, data)
    (said,) = (text for text in agreement_page(found).findings if "agrees least with the others" in text)
    name = found.annotators()["annotator"][lowest.group]
    told = _than(lowest, found.annotators()["annotator"])
    assert re.search(rf"“{name}” agrees least with the others, \S+ \(\S+ to \S+, 95 %\)", said)
    assert said.endswith(f"{told.partition(', but')[0]}.")
    assert "Bonferroni" not in " ".join(agreement_page(found).findings)
    part = next(part for part in agreement_page(found).sections if part.title == "Annotators")
    assert part.gist.endswith(told)
    assert told not in part.blocks[0]  # once, in the heading
    how = "were alike, any two would be told apart in about 5 % of such data at most (Bonferroni, "
    assert part.blocks[0].endswith(f"{how}approximate).")


@pytest.mark.parametrize(
    ("lower", "others", "said"),
    [
        ((), 1, "; that the other is higher may be chance"), ((), 5, "; that the 5 others are higher may be chance"),
        ((1,), 1, ", clearly lower than the other"),
        ((1, 2, 3, 4, 5), 5, ", clearly lower than all 5 others"),
        ((2, 5), 5, ", clearly lower than “c” and “f”, but not than the 3 others"),
        ((1, 2), 3, ", clearly lower than “b” and “c”, but not than the other"),
        ((1, 2, 3, 5), 5, ", clearly lower than 4 of 5 others"),
    ],
)  # fmt: skip
def test_how_many_others_agree_more_beyond_chance_is_said(lower, others, said):
    assert _than(Lowest(0, lower, others), list("abcdef")) == said


@pytest.mark.parametrize("counts", [[[3, 1], [0, 4], [2, 2], [4, 0]], [[3, 1, 0], [0, 2, 2], [9, 3, 0], [0, 0, 4]]])
def test_one_coefficient_is_to_be_quoted_and_the_others_stand_behind_it(counts):
    found = cs.agreement(cs.Annotations.from_counts(counts))
    part = next(part for part in agreement_page(found).sections if part.title == "Corrected for chance")
    quoted, others, _ = (block.frame for block in part.blocks if hasattr(block, "frame"))
    assert "Krippendorff's alpha" in part.blocks[1].caption
    assert "Krippendorff's alpha" not in set(others["coefficient"])
    rest = others[others["coefficient"] != "percent agreement"]["value"]
    far = abs(rest - quoted["alpha"].iloc[0]).max()
    assert f"differ from it by at most {far:.3f} here." in part.blocks[0]


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
        assert {name: text.replace("\N{NO-BREAK SPACE}", " ") for name, text in told.items()} == {
            "x": "2 of 2 [0.34, 1.00]", "y": "1 of 2 [0.09, 0.91]", "z": "–",
        }  # fmt: skip
        assert table.frame.columns[1] == "right by gold"  # on a phone the first two are seen
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
        *_, meant = (block.frame for block in part.blocks if hasattr(block, "frame"))
        assert set(meant["coefficient"]) == set(found.coefficients()["coefficient"])
        alpha = meant[meant["coefficient"] == "Krippendorff's alpha"]
        told = " ".join(alpha["what it is"])
        assert all(f"{name}: labels" in told for name in ("nominal", "ordinal", "interval", "ratio"))
        assert sum("hance agreement is" in text for text in meant["what it is"]) == len(meant) - 1


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
    halves = r"the 6 who agree least on the other items \(([^)]*)\) have (\d+) of (\d+) labels right, the other 6 have "
    halves += r"(\d+) of (\d+)\. Krippendorff's alpha is (\S+) among the former and (\S+) among the latter \(chosen by "
    told = re.search(halves, said)
    assert bool(told) is bool(different and gold)
    assert ("That some annotators are right more often may be chance (p = " in said) is bool(
        gold and not different
    )
    if told:
        data = found.annotations
        own = np.asarray(data.item) < gold
        right = np.asarray(data.label) == np.asarray(data.gold)[np.asarray(data.item)]
        low = np.asarray(data.annotator) < 6
        assert re.findall(r"\d+", told[1]) == [*"012345"]
        for place, half in ((6, low), (7, ~low)):
            columns = (np.asarray(one)[half] for one in (data.item, data.annotator, data.label))
            alone = cs.Annotations.from_codes(*columns)
            table = cs.agreement(alone).coefficients().set_index("coefficient")
            assert float(told[place]) == pytest.approx(table.loc["Krippendorff's alpha", "value"], abs=0.0051)
        steps = [one.words for one in agreement_page(found).actions]
        assert "Review the labels of 0, 1, 2, 3, 4 and 5 first, the half who agree least with the others" in steps
        assert tuple(map(int, told.groups()[1:5])) == tuple(
            int(one.sum()) for half in (low, ~low) for one in (half & own & right, half & own)
        )
    assert len(agreement_page(found).findings) <= 4
    (infer,) = (one.words for one in agreement_page(found).actions if one.words.startswith("Infer the labels"))
    assert ("more weight to annotators who seem to make fewer errors" in infer) is different


def test_next_steps_say_what_they_gain():
    """All pairs of labels that differ are of three items: too few to say which labels are confused."""
    counts = [[2, 2, 0], [0, 1, 2], [3, 0, 1]] + [[4, 0, 0]] * 9
    found = cs.agreement(cs.Annotations.from_counts(counts, labels=["a", "b", "c"]))
    steps = " ".join(one.words for one in agreement_page(found).actions)
    assert "guidelines" not in steps
    share = "they account for 100 % of all disagreements between two labels"
    assert f"the 10 items with the lowest agreement: {share}" in steps
    two = cs.agreement(cs.Annotations.from_counts([[3, 1], [2, 2], [0, 4]], labels=["a", "b"]))
    assert not any("guidelines" in one.words for one in agreement_page(two).actions)
    assert next_steps(found, [])[0].command.startswith("consilience fit dirichlet labels.csv ")


def test_tables_and_figures_say_for_whom_their_intervals_are():
    page = agreement_page(cs.agreement(crowd().data))
    tables = [block for part in page.sections for block in part.blocks if hasattr(block, "frame")]
    with_ends = [table for table in tables if "95 % from" in table.frame]
    assert len(with_ends) >= 4
    assert all("these annotators" in f"{table.caption}{table.frame.get('interval for', '')}" for table in with_ends)
    random = agreement_page(cs.agreement(crowd().data, annotators="random"))
    told = "The 95 % interval is for items like these and annotators like these."
    assert told in random.sections[0].blocks[0]
