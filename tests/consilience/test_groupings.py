"""Pairs of annotators tried as one source: four judges of whom one is a copy."""

import warnings

import numpy as np
import pandas
import pytest

import consilience as cs
from consilience.errors import TooLarge, UnsupportedRequest

TRUE_CONFUSION = {"strict": (0.05, 0.75), "lenient": (0.40, 0.96), "careful": (0.12, 0.90)}


@pytest.fixture(scope="module")
def judges():
    """300 items by three judges and a copy of one of them; gold labels of 40 (specification of crowds, section 6)."""
    random = np.random.default_rng(2026)
    true, labels = random.random(300) < 0.6, {}
    for name, (of_zero, of_one) in TRUE_CONFUSION.items():
        labels[name] = random.random(300) < np.where(true, of_one, of_zero)
    copied = random.random(300) < 0.8
    other = random.random(300) < np.where(true, 0.96, 0.40)
    labels["lenient-2"] = np.where(copied, labels["lenient"], other)
    gold = np.full(300, "", object)
    known = random.permutation(300)[:40]
    gold[known] = true[known].astype(int).astype(str)
    return pandas.concat(
        pandas.DataFrame({"item": np.arange(300), "annotator": name, "label": own.astype(int), "gold": gold})
        for name, own in labels.items()
    )


def fitted(*given, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cs.fit(*given, **more)


def test_groupings_of_four_judges(judges):
    fit = fitted("dawid-skene", judges)
    found = fit.groupings()
    assert found.columns.tolist() == ["annotator_a", "annotator_b", "worst_z", "log_score", "right"]
    pairs = list(zip(found["annotator_a"], found["annotator_b"], strict=True))
    assert pairs[:2] == [("lenient", "lenient-2"), ("strict", "careful")]
    assert found["worst_z"][:2].round(2).tolist() == [0.40, 0.68]
    assert found["worst_z"][2:].round(2).between(5.62, 5.80).all()
    # The labels cannot tell the first two apart; gold labels can.
    assert found["log_score"].idxmin() == found["right"].idxmax() == 0
    # It proposes, and applies nothing.
    assert fit.data.group is None
    by_hand = fitted("dawid-skene", judges, annotator_groups={"lenient": "L", "lenient-2": "L"})
    assert found["right"][0] == by_hand.calibration_score().right
    assert found["log_score"][0] == pytest.approx(by_hand.calibration_score().log_score, abs=1e-6)


def test_groups_of_the_data_stay_in_groupings(judges):
    fit = fitted("dawid-skene", judges, annotator_groups={"lenient": "L", "lenient-2": "L"})
    found = fit.groupings().set_index(["annotator_a", "annotator_b"])
    assert ("lenient", "lenient-2") not in found.index
    assert len(found) == 5
    # Either of the two brings the other along.
    assert found["worst_z"]["lenient", "careful"] == found["worst_z"]["careful", "lenient-2"]
    assert (found["worst_z"] < 2).all()


def test_groupings_by_the_method_and_settings_of_the_fit(judges):
    fit = fitted("one-coin", judges.drop(columns="gold"), method="cavi", dependence=0.0)
    found = fit.groupings()
    assert found["log_score"].isna().all()
    assert found["right"].isna().all()
    assert set(zip(found["annotator_a"][:2], found["annotator_b"][:2], strict=True)) == {
        ("strict", "careful"), ("lenient", "lenient-2"),
    }  # fmt: skip


def test_groupings_need_three_annotators_and_take_ten(judges):
    two = fitted("dawid-skene", judges[judges["annotator"].isin(["strict", "lenient"])])
    with pytest.raises(UnsupportedRequest, match="three annotators apart are needed"):
        two.groupings()
    many = pandas.concat(judges[:30].assign(annotator=str(number)) for number in range(11))
    with pytest.raises(TooLarge, match="11 annotators make 55 pairs"):
        fitted("dawid-skene", many).groupings()
