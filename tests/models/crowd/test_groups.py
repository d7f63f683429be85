"""Groups of annotators: whose rows count as one, and what reading and moving them keeps."""

import dataclasses

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience.data import Annotations
from consilience.errors import InputError, UnknownName
from consilience.models.crowd.groups import group_weights

FINGERPRINT_1979 = "4d8e73814209ad67fdcd420a8568c265aec55fcbdac062d3c01bd7d0f95f61df"

ROWS = {
    "item": ["a", "a", "a", "b", "b", "c"],
    "annotator": ["lenient", "copy", "strict", "copy", "strict", "lenient"],
    "label": ["yes", "yes", "no", "no", "no", "yes"],
    "group": ["L", "L", "", "", "", "L"],
}


def test_members_of_an_item_count_as_one():
    data = Annotations.from_codes(
        [0, 0, 0, 0, 1, 1, 2, 2, 2], [0, 1, 2, 3, 0, 3, 0, 0, 1], [0] * 9, weight=[1, 2, 1, 1, 1, 4, 1, 1, 0],
        num_annotators=4,
    )  # fmt: skip
    # Item 0 has two members of the first group and one of the second; item 1 one of each. On item 2 the first member
    # speaks twice, and is one; the other has weight zero there, and is nobody.
    found = group_weights(data, np.array([0, 0, 1, -1]))
    assert found.tolist() == [1 / 2, 1, 1, 1, 1, 4, 1, 1, 0]


def test_without_groups_weights_stay():
    data = Annotations.from_codes([0, 0, 1], [0, 1, 1], [0, 1, 1], weight=[1, 0.5, 3])
    assert group_weights(data, np.array([-1, -1])).tolist() == [1, 0.5, 3]
    assert group_weights(data, np.array([0, 1])).tolist() == [1, 0.5, 3]
    assert group_weights(Annotations.from_counts([[2, 1]]), np.array([], int)).tolist() == [2, 1]


annotation = st.tuples(st.integers(0, 4), st.integers(0, 5), st.integers(0, 1))


@settings(max_examples=50, deadline=None)
@given(st.lists(annotation, min_size=1, max_size=40, unique=True))
def test_a_group_has_the_weight_of_one_member(rows):
    item, annotator, label = map(list, zip(*rows, strict=True))
    data = Annotations.from_codes(item, annotator, label, num_items=5, num_annotators=6, num_labels=2)
    groups = np.array([0, 0, 0, 1, 1, -1])
    found = group_weights(data, groups)
    for one in range(5):
        for group in (0, 1):
            rows_of = [row for row in range(len(item)) if item[row] == one and groups[annotator[row]] == group]
            members = {annotator[row] for row in rows_of}
            # Of members who speak once each the sum is one; each row has the part that her group has.
            assert found[rows_of] == pytest.approx([1 / len(members)] * len(rows_of) if rows_of else [])
    assert found[np.array(annotator) == 5].tolist() == [1.0] * annotator.count(5)


def test_copies_are_one_vote():
    # Three copies against one who agrees with another: as votes with weights the copies lose.
    data = Annotations.from_codes([0] * 5, range(5), [0, 0, 0, 1, 1])
    weight = group_weights(data, np.array([0, 0, 0, -1, -1]))
    assert np.bincount(data.label, weight) == pytest.approx([1, 2])


# ---- by name ----


def test_groups_by_name():
    annotators = ["lenient", "copy", "strict", "careful"]
    data = cs.Annotations.from_codes([0, 0, 0, 0], [0, 1, 2, 3], [0, 0, 1, 1], annotators=annotators)
    found = data.grouped({"copy": "L", "lenient": "L", "strict": "S"})
    assert (found.group.tolist(), found.groups.tolist()) == ([0, 0, 1, -1], ["L", "S"])
    assert found.problem() is None
    with pytest.raises(UnknownName, match="'nobody'"):
        data.grouped({"nobody": "L"})


# ---- the column ----


def test_groups_are_read():
    data = cs.read_annotations(ROWS)
    # A row may leave the group of its annotator empty.
    assert data.group.tolist() == [0, 0, -1]
    assert data.groups.tolist() == ["L"]
    assert data.ids["group"].tolist() == ["L"]
    assert data.problem() is None
    assert group_weights(data, data.group).tolist() == [1 / 2, 1 / 2, 1, 1, 1, 1]
    named = {("family" if name == "group" else name): values for name, values in ROWS.items()}
    assert cs.read_annotations(named).group is None
    assert cs.read_annotations(named, columns={"group": "family"}).group.tolist() == [0, 0, -1]


def test_groups_that_contradict_each_other_are_an_error():
    rows = {**ROWS, "group": ["L", "L", "", "S", "", "L"]}
    with pytest.raises(InputError) as raised:
        cs.read_annotations(rows)
    (problem,) = raised.value.problems
    assert (problem.column, problem.value) == ("group", "S")
    assert str(problem).startswith("the dict of columns, row 3 (counted from 0), column 'group': this group contra")


@pytest.mark.filterwarnings("ignore::consilience.errors.InputWarning")
def test_groups_stay_with_their_annotators():
    data = cs.read_annotations({**ROWS, "group": ["L", "M", "S", "", "", ""]})
    moved = data.renamed("annotator", [2, 0, 1])
    of = {name: data.groups[code] for name, code in zip(data.annotators, data.group, strict=True)}
    assert {name: moved.groups[code] for name, code in zip(moved.annotators, moved.group, strict=True)} == of
    assert data.renamed("group", [1, 2, 0]).group.tolist() == [1, 2, 0]
    assert data.reordered([5, 4, 3, 2, 1, 0]).group.tolist() == data.group.tolist()
    # Rows that are left out take their annotator along, and the groups of the others stay.
    dropped = cs.read_annotations(
        {**ROWS, "label": ["", "yes", "no", "no", "no", ""], "group": ["L", "M", "S", "", "", ""]}, missing="drop"
    )
    assert dropped.annotators.tolist() == ["copy", "strict"]
    assert [dropped.groups[code] for code in dropped.group] == ["M", "S"]
    through = jax.tree.map(np.asarray, data)
    assert through.group.tolist() == data.group.tolist()
    assert through.groups is None


@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
def test_a_saved_fit_keeps_groups(tmp_path):
    fit = cs.fit("majority-vote", cs.read_annotations(ROWS))
    fit.save(tmp_path / "fit")
    loaded = cs.load_fit(tmp_path / "fit").data
    assert loaded.group.tolist() == [0, 0, -1]
    assert loaded.groups.tolist() == ["L"]
    assert loaded.fingerprint() == fit.data.fingerprint()


def test_fingerprints_tell_groups_and_are_as_before_without_them():
    with_group = cs.read_annotations(ROWS)
    without = cs.read_annotations({name: values for name, values in ROWS.items() if name != "group"})
    assert with_group.fingerprint() != without.fingerprint()
    assert with_group.replace(group=None, groups=None).fingerprint() == without.fingerprint()
    # That of the table of 1979 before annotations had groups.
    assert cs.load("dawid-skene-1979").fingerprint() == FINGERPRINT_1979
    later = {field.name for field in dataclasses.fields(without) if field.metadata.get("later")}
    assert later == {"group", "groups"}


@pytest.mark.parametrize(
    ("group", "groups", "message"),
    [
        ([0], None, "group has 1 entries for 2 annotators"),
        ([0, 2], ["L", "M"], "codes from -1 to 1 are expected"),
        ([0, -2], None, "codes from -1 "),
    ],
)
def test_codes_of_groups_are_checked(group, groups, message):
    with pytest.raises(InputError, match=message):
        Annotations.from_codes([0, 0], [0, 1], [0, 1], group=group, groups=groups)
