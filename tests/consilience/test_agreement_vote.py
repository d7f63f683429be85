"""What a page of agreement says of a majority vote against gold labels: in all, and by how labels split."""

import numpy as np
import pytest

import consilience as cs
from consilience.pages.agreement import agreement_page, agreement_sections
from consilience.pages.agreement_next import next_steps
from consilience.pages.agreement_vote import VOTE, of_a_vote, vote_section, votes_by_split

# By item: labels of a, b and c, and the gold label; -1 where there is none.
ROWS = (
    ((4, 0, 0), 0), ((0, 4, 0), 0), ((3, 1, 0), 0), ((1, 3, 0), 1), ((2, 2, 0), 1), ((1, 1, 2), 2), ((1, 1, 2), -1),
    ((1, 0, 0), 0), ((1, 1, 1), 0),
)  # fmt: skip


def agreement(rows=ROWS, gold=True):
    counts, known = zip(*rows, strict=True)
    return cs.agreement(cs.Annotations.from_counts(counts, labels=["a", "b", "c"], gold=list(known) if gold else None))


def test_votes_are_counted_by_how_labels_split():
    votes = votes_by_split(agreement())
    assert votes.names == ("4–0", "3–1", "2–2", "2–1–1", "1–1–1")
    assert votes.items.tolist() == [2, 2, 1, 2, 1]
    assert votes.known.tolist() == [2, 2, 1, 1, 1]
    np.testing.assert_allclose(votes.right, [1, 2, 0.5, 1, 1 / 3])  # an item with one label has no vote


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (ROWS[:6], [
            "A majority vote is right on 4.5 of 6 items with a gold label, a tie counting by its share. "
            "That is 1 of 2 where all labels agree, 2 of 2 where more than half agree and 1.5 of 2 where "
            "fewer agree."
        ]),
        (ROWS[:2], ["A majority vote is right on 1 of 2 items with a gold label."]),
        (ROWS[6:7] + ROWS[:1], [
            "A majority vote is right on 1 of 1 item with a gold label."
        ]),
        (ROWS[6:7] * 2, []),
    ],
)  # fmt: skip
def test_how_often_a_vote_is_right_is_a_finding(rows, said):
    found = agreement(rows)
    assert of_a_vote(votes_by_split(found)) == said
    assert set(of_a_vote(votes_by_split(found))) <= set(agreement_page(found).findings)


def test_the_table_of_votes_adds_up_to_the_finding():
    found = agreement()
    frame = vote_section(found).blocks[-1].frame
    assert frame["vote is right on"].tolist() == ["1", "2", "0.5", "1", "0.3", "4.8"]
    assert frame["items"].tolist() == [2, 2, 1, 2, 1, 8]
    assert frame["with a gold label"].tolist() == [2, 2, 1, 1, 1, 7]
    assert "4.8 of 7 items" in of_a_vote(votes_by_split(found))[0]
    assert next_steps(found, [])[0].words.endswith("how many gold labels it gets right:")
    page = agreement_page(found)
    name = "gold labels matched by a majority vote, a tie counting by its share (34.0 to 90.6 %, 95 %)"  # of 29 / 6
    assert page.numbers[name] == "4.8 of 7"
    drawn = [text.get_text() for text in page.figure.texts]
    assert drawn[:3] == ["2 (vote right on 1 of 2)", "2 (vote right on 2 of 2)", "1 (vote right on 0.5 of 1)"]
    assert VOTE in {part.title for part in page.sections}
    assert VOTE not in {part.title for part in agreement_sections(found)}  # a page on a fit has a table of its own


def test_without_gold_labels_nothing_is_said_of_a_vote():
    page = agreement_page(agreement(gold=False))
    assert VOTE not in {part.title for part in page.sections}
    words = (*page.numbers, *page.findings, *(one.words for one in page.actions))
    assert not any("majority vote" in text for text in words)
    assert [text.get_text() for text in page.figure.texts] == ["2", "2", "1", "2", "1"]


def test_the_coefficient_to_quote_has_the_interval_of_the_first_screen_first():
    from tests.golden.cases import crowd

    found = cs.agreement(crowd().data)
    page = agreement_page(found)
    (name,) = (name for name in page.numbers if name.startswith("Krippendorff"))
    part = next(part for part in page.sections if part.title == "Corrected for chance")
    (first, second) = zip(*part.blocks[1].texts.values(), strict=True)
    assert part.blocks[1].frame["interval for"].tolist() == ["annotators like these (to quote)", "these annotators"]
    assert f" ({first[1]} to {first[2]}, 95 % with similar annotators)" in name
    assert first[0] == second[0] == page.numbers[name]
    assert float(first[1]) < float(second[1]) < float(second[2]) < float(first[2])
