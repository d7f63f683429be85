"""The page of agreement: what a coefficient reaches by custom, and what narrower intervals take."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import consilience as cs
from consilience.evaluation.agreement.differences import Lowest, lowest_annotator
from consilience.pages.agreement import (
    _about,
    _best_number,
    _by_convention,
    _is_better,
    _more_annotators,
    _planning,
    _than,
    agreement_page,
    agreement_sections,
)
from tests.golden.cases import crowd


@pytest.mark.parametrize(
    ("alpha", "where"),
    [(-0.1, "below 0.667"), (0.6669, "below 0.667"), (0.667, "between 0.667 and 0.8"), (0.8, "0.8 or more")],
)
def test_a_value_of_alpha_stands_beside_the_convention(alpha, where):
    said = _by_convention(alpha)
    assert said.startswith(f"It is {where}: by custom 0.8 is asked for")
    assert said.endswith("that is a convention and no test.")


def test_the_tile_of_alpha_has_its_interval_and_says_whose_it_is():
    page = agreement_page(cs.agreement(crowd().data))
    (name,) = (name for name in page.numbers if name.startswith("Krippendorff"))
    found = re.match(r"Krippendorff's alpha, for annotators like these \((\S+) to (\S+), 95 %\): ", name)
    low, high = map(float, found.groups())
    assert low < float(page.numbers[name]) < high
    (said,) = (text for text in page.findings if "Krippendorff" in text)
    inside = re.search(r"like these, and between (\S+) and (\S+) for these annotators", said).groups()
    assert low < float(inside[0]) < float(inside[1]) < high
    assert "a convention and no test" in " ".join(page.findings)


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
    part = _planning(cs.agreement(cs.Annotations.from_counts(counts)))
    table = part.blocks[-1]
    assert set(table.texts["annotations per item"]) == {"4 (as now)"}
    first = table.frame.iloc[0]
    about = _about(first["more annotations in all"])
    assert part.gist == f"for these annotators {first.iloc[0]} takes about {about} more annotations, 4 of each new item"


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
    assert told.startswith(" For annotators like these it is ± 0.1; ")
    assert said in told
    assert told.endswith("about four times as many annotators, 24, and four times as many items.")
    found.two_way = SimpleNamespace(sd=0.0, item_sd=0.0, num_annotators=6)
    assert _more_annotators(found) == ""
    found.interval_of_others = None
    assert _more_annotators(found) == ""


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
    assert ("gold labels of 3 of 4 items, which agreement does not use" in said) is known
    assert ("41.7 % of their 12 annotations are the gold label (" in said) is known
    assert any("beside the gold ones" in one.words for one in page.actions) is known


def test_who_agrees_least_is_set_beside_the_others_by_differences():
    data = crowd().data
    found = cs.agreement(data)
    lowest = lowest_annotator(found.counts, data)
    (said,) = (text for text in agreement_page(found).findings if text.startswith("Who agrees least"))
    name = found.annotators()["annotator"][lowest.group]
    assert said.startswith(f"Who agrees least with the others: “{name}”, ")
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
        ((2, 5), 5, ", beyond chance lower than 2 of 5 others (“c”, “f”); from the other 3 it cannot be told apart"),
        ((1, 2, 3, 5), 5, ", beyond chance lower than 4 of 5 others; from the other it cannot be told apart"),
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
