"""Gold labels as an option: one behaviour in every member that has it."""

import pytest

import consilience as cs
from consilience.errors import UnsupportedRequest
from consilience.models import member, names, place

OF_ANNOTATIONS = [member(name) for name in names() if "Annotations" in place(name).takes]
MEMBERS = [one.name for one in OF_ANNOTATIONS if "gold" in {field.name for field in one.settings.fields()}]


def test_members_share_the_option():
    assert {"dawid-skene", "mace", "majority-vote", "mpa"} <= set(MEMBERS)


@pytest.mark.parametrize("name", MEMBERS)
def test_gold_labels_that_the_data_lack_are_refused(name):
    data = cs.Annotations.from_codes([0, 0, 1], [0, 1, 0], [0, 1, 1])
    with pytest.raises(UnsupportedRequest, match="these have none; use gold='ignore'"):
        cs.fit(name, data, gold="use")
