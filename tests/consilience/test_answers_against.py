"""Whose answers go against the clusters."""

import numpy as np
import pandas
import pytest

from consilience.pages.answers_against import by_expert, most_contrary, table_by_expert, tile_of_most


@pytest.mark.parametrize(
    ("contrary", "answers", "told"),
    [
        ([6, 12, 37, 9], [150] * 4, "c gave 37 of the 64 answers that contradict the "
         "clusters (24.7 % of this expert's answers; the other experts: 6.0 %)"),
        ([6, 12, 16, 9], [150] * 4, ""),  # more than the others, and by chance
        ([0, 0, 1, 0], [150, 150, 2, 150], ""),  # a half of two answers
        ([0, 0, 0, 0], [150] * 4, ""),
        ([37], [150], ""),
    ],
)
def test_who_contradicts_the_others_more_than_by_chance_is_named(contrary, answers, told):
    names = list("abcd")[: len(answers)]
    experts = pandas.DataFrame({"expert": names, "answers": answers})
    found = by_expert(experts, pandas.DataFrame({"expert": np.repeat(names, contrary)}))
    assert most_contrary(found) == told
    assert found.set_index("expert").loc[names, "against the clusters"].tolist() == contrary
    assert bool(table_by_expert(found)) is (len(answers) > 1)


def test_the_tile_is_of_the_largest_share_and_not_of_the_largest_number():
    experts = pandas.DataFrame({"expert": list("ab"), "answers": [200, 40]})
    frame = by_expert(experts, pandas.DataFrame({"expert": list("a" * 20 + "b" * 10)}))
    ((name, value),) = tile_of_most(frame).items()
    assert value == "25.0 %"
    assert name.startswith("of b's answers contradict the clusters (")
    assert name.endswith("14.2 to 40.2 %, 95 %, if the clusters are right)")  # Wilson's, by hand
    assert tile_of_most(frame[:1]) == {}
