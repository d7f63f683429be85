"""The page of agreement: what a coefficient reaches by custom, and what narrower intervals take."""

import re

import numpy as np
import pytest

import consilience as cs
from consilience.pages.agreement import _about, _by_convention, _planning, agreement_page
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
    low, high = map(float, re.search(r"\((\S+) to (\S+), 95 %, for these annotators\)", name).groups())
    assert low < float(page.numbers[name]) < high
    assert "a convention and no test" in " ".join(page.findings)


@pytest.mark.parametrize(("number", "text"), [(7, "7"), (424, "424"), (1696, "1,700"), (13708, "13,700")])
def test_planned_numbers_have_three_digits(number, text):
    assert _about(number) == text


def test_the_cheaper_number_of_annotations_is_named_for_each_width():
    random = np.random.default_rng(10)
    counts = np.stack([random.multinomial(4, one) for one in random.dirichlet([0.9, 0.8, 0.8], 100)])
    part = _planning(cs.agreement(cs.Annotations.from_counts(counts)))
    table, text = part.blocks[-1], part.blocks[-2]
    frame, width = table.frame, table.frame.columns[0]
    cheapest = frame.loc[frame.groupby(width, sort=False)["more annotations in all"].idxmin()]
    named = ", ".join(f"{row['annotations per item']} for {row[width]}" for _, row in cheapest.iterrows())
    assert cheapest["annotations per item"].nunique() > 1  # else the test tells nothing
    assert text.endswith(f"The cheaper number is {named}.")
    first = cheapest.iloc[0]
    about = _about(first["more annotations in all"])
    assert part.gist == (
        f"for these annotators {first[width]} takes about {about} more annotations, "
        f"{first['annotations per item']} of each new item"
    )
