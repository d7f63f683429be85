"""Gold labels as an option: one behaviour in every member that has it."""

import pytest

import consilience as cs
from consilience.errors import UnsupportedRequest
from consilience.models import member, names
from consilience.models.gold import GOLD

MEMBERS = [name for name in names() if GOLD in member(name).options]


def test_members_share_the_option():
    assert {"dawid-skene", "mace", "majority-vote"} <= set(MEMBERS)


@pytest.mark.parametrize("name", MEMBERS)
def test_gold_labels_that_the_data_lack_are_refused(name):
    data = cs.Annotations.from_codes([0, 0, 1], [0, 1, 0], [0, 1, 1])
    with pytest.raises(UnsupportedRequest, match="these have none; use gold='ignore'"):
        cs.fit(name, data, gold="use")
