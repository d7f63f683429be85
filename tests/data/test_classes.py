"""Class maps: groups, scores, order of classes."""

import pytest

from consilience.data import ClassMap, read_class_map
from consilience.errors import InputError

TABLE = {"condition": ["wart", "mole", "melanoma"], "risk": [0, 1, 10]}


def test_groups_that_are_numbers_are_scores():
    risk = read_class_map(TABLE)
    assert risk.classes.tolist() == ["wart", "mole", "melanoma"]
    assert risk.groups.tolist() == ["0", "1", "10"]
    assert risk.group.tolist() == [0, 1, 2]
    assert risk.score.tolist() == [0, 1, 10]


def test_text_groups_have_no_score():
    assert read_class_map(TABLE | {"risk": ["low", "low", "1"]}).score is None


def test_classes_order_the_map():
    risk = read_class_map(TABLE, classes=["melanoma", "wart"])
    assert risk.group.tolist() == [2, 0]
    assert (risk.num_classes, risk.num_groups) == (2, 3)
    with pytest.raises(InputError, match="column 'class': the map has no group for this class.*'nevus'"):
        read_class_map(TABLE, classes=["nevus", "wart"])


def test_lines(tmp_path):
    path = tmp_path / "risks.txt"
    path.write_text("2\n0\n10\n\n")
    risk = read_class_map(path, classes=["a", "b", "c"])
    assert risk.groups.tolist() == ["0", "2", "10"]
    assert risk.group.tolist() == [1, 0, 2]
    for classes, match in ((None, "pass classes="), (["a"], "1 lines are expected, not 3")):
        with pytest.raises(InputError, match=match):
            read_class_map(path, classes=classes)


def test_a_class_may_repeat_but_not_contradict_itself():
    assert read_class_map({"class": ["a", "a"], "group": [1, 1]}).num_classes == 1
    with pytest.raises(InputError, match=r"row 1 .*column 'group': an earlier row puts the same class.*'2'"):
        read_class_map({"class": ["a", "a"], "group": [1, 2]})


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"group": []}, "no classes"),
        ({"group": [0, 1], "classes": ["a"]}, "2 groups but 1 classes"),
        ({"group": [0, 2], "groups": ["x", "y"]}, "column 'group'"),
        ({"group": [0], "score": [1, 2]}, "1 finite scores"),
        ({"group": [0], "score": [float("nan")]}, "1 finite scores"),
    ],
)
def test_codes_that_are_no_class_maps_are_refused(options, match):
    with pytest.raises(InputError, match=match):
        ClassMap.from_codes(**options)


def test_from_codes_scores():
    assert ClassMap.from_codes([0, 1]).score is None
    assert ClassMap.from_codes([0, 1], groups=["0.5", "2"]).score.tolist() == [0.5, 2]
    assert ClassMap.from_codes([0, 1], groups=["low", "high"], score=[1, 3]).score.tolist() == [1, 3]
