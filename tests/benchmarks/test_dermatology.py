import numpy as np
import pytest

import consilience as cs
from benchmarks import __main__ as command
from benchmarks import cifar10h
from benchmarks.dermatology import MODELS, PRINTED, VARIANTS, only, read_scores
from benchmarks.dermatology_figures import annotators_per_case, by_risk, conditions_per_case
from consilience.data import Annotations, Rankings
from consilience.errors import InputError


@pytest.fixture
def cases():
    return Rankings.from_nested({"0": {"A": [["a"], ["b"]]}, "1": {"A": [["b"]], "B": [["c"]]}})


def test_scores_of_a_file_become_predictions(cases, tmp_path):
    path = tmp_path / "system0.txt"
    np.savetxt(path, [[0.1, 0.7, 0.2], [0.5, 0.1, 0.4]])
    predictions = read_scores(path, cases)
    assert predictions.name == "system0"
    np.testing.assert_array_equal(predictions.ranked, [[1, 2, 0], [0, 2, 1]])


def test_files_of_another_shape_are_refused(cases, tmp_path):
    path = tmp_path / "wrong.txt"
    np.savetxt(path, np.ones((3, 3)))
    with pytest.raises(InputError, match=r"2 rows of 3 numbers are expected.*3 rows of 3"):
        read_scores(path, cases)
    path.write_text("not a number\n")
    with pytest.raises(InputError, match="2 rows of 3 numbers are expected"):
        read_scores(path, cases)
    with pytest.raises(InputError, match="not found"):
        read_scores(tmp_path / "absent.txt", cases)


def test_original_labels_are_predictions():
    images = Annotations.from_counts([[3, 1], [0, 2]], labels=("cat", "dog"), gold=[1, 1])
    fit = cs.fit("dirichlet", images)
    assert cs.evaluate(fit, cifar10h.original_labels(images)).point == 0.5


def test_some_cases_alone():
    nested = {"0": {"A": [["a"], ["b"]]}, "1": {"A": [["b"]], "B": []}, "2": {"B": [["c", "a"]], "A": [["b"]]}}
    cases = Rankings.from_nested(nested)
    alone = only(cases, ["2", "1"])
    expected = Rankings.from_nested({case: nested[case] for case in "12"}, classes=list("abc"))
    assert alone.counts == expected.counts
    assert alone.items.tolist() == ["1", "2"]
    for name in ("report", "block", "entry", "entry_item", "entry_class"):
        np.testing.assert_array_equal(getattr(alone, name), getattr(expected, name))


def test_every_variant_is_complete():
    for name, variant in VARIANTS.items():
        assert variant.medium in variant.reliabilities, name
        assert len(variant.prototype) == len(variant.paper) == len(PRINTED), name
    assert {name for names in MODELS.values() for name in names} == set(VARIANTS)


@pytest.mark.public_data
def test_annotators_and_conditions_by_risk():
    cases, risk = cs.load("dermatology-ddx"), cs.load("dermatology-ddx-risk")
    groups = by_risk(cases, risk, "equation-14")
    assert [int(chosen.sum()) for chosen in groups.values()] == [1139, 665, 143]
    means = [(annotators_per_case(cases)[c].mean(), conditions_per_case(cases)[c].mean()) for c in groups.values()]
    np.testing.assert_allclose(means, [(5.21, 3.75), (4.56, 4.27), (4.47, 4.10)], atol=0.005)


@pytest.mark.public_data
def test_wrong_predictions_end_the_command_before_it_computes(tmp_path, capsys):
    path = tmp_path / "scores.txt"
    np.savetxt(path, np.ones((2, 2)))
    assert command.main(["dermatology", "--predictions", str(path), "--output", str(tmp_path / "out")]) == 1
    assert "1947 rows of 419 numbers are expected" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
