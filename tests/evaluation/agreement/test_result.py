"""`consilience.agreement`: what its parts say together; each part has tests of its own."""

import numpy as np
import pandas as pd
import pytest

import consilience as cs
from consilience.cli import main
from consilience.data import Annotations
from consilience.errors import InputError, UnknownName, UnsupportedRequest
from consilience.evaluation.agreement import SCHEMES, TABLES, LabelCounts

LONG = pd.DataFrame(
    [
        (f"i{item}", f"a{annotator}", label)
        for item, labels in enumerate(["ppq", "pqq", "qq", "r", "ppp", "qrq", "pp", "rq"])
        for annotator, label in enumerate(labels)
    ],
    columns=["item", "annotator", "label"],
)


def annotations():
    return cs.read_annotations(LONG)


def test_all_layouts_agree(tmp_path):
    wide = LONG.pivot_table(index="item", columns="annotator", values="label", aggfunc="first").reset_index()
    counts = LONG.pivot_table(index="item", columns="label", aggfunc="size", fill_value=0).reset_index()
    found = []
    for layout, table in (("long", LONG), ("wide", wide), ("counts", counts)):
        table.to_csv(tmp_path / f"{layout}.csv", index=False)
        found.append(cs.agreement(tmp_path / f"{layout}.csv", read={"layout": layout}))
    pd.testing.assert_frame_equal(found[0].schemes(), found[1].schemes())
    pd.testing.assert_frame_equal(found[0].schemes(), found[2].schemes())
    pd.testing.assert_frame_equal(found[0].coefficients(), found[1].coefficients())
    assert found[0].pairs().drop(columns="items").equals(found[1].pairs().drop(columns="items"))
    with pytest.raises(InputError, match="or with layout='wide' that a column holds the labels of one annotator"):
        cs.agreement(wide)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_headline_is_its_row_among_the_schemes(scheme):
    found = cs.agreement(annotations(), weights=scheme)
    row = found.schemes().set_index("scheme").loc[scheme]
    np.testing.assert_allclose([found.value, found.sd, *found.interval], row[["value", "sd", "lower", "upper"]])
    table = found.table.dropna()
    assert found.value == pytest.approx(np.average(table["agreement"], weights=table["weight"]))
    assert found.row()["flat"] == pytest.approx(found.table["agreement"].mean())


def test_tables_bear_the_users_names():
    found = cs.agreement(annotations())
    assert found.table["item"].tolist() == [f"i{item}" for item in range(8)]
    assert found.labels()["label"].tolist() == ["p", "q", "r"]
    assert set(found.annotators()["annotator"]) == {"a0", "a1", "a2"}
    assert set(found.pairs()["annotator_a"]) | set(found.pairs()["annotator_b"]) == {"a0", "a1", "a2"}
    for name in TABLES:
        assert len(found.tabulate(name)) > 0
    with pytest.raises(UnknownName, match="no table is called 'label'; choose one of schemes, labels"):
        found.tabulate("label")


def test_counts_know_nothing_of_annotators_and_order():
    table = np.array([[3, 1], [1, 2], [0, 2]])
    item, label = np.nonzero(table)
    of_codes = cs.agreement(LabelCounts.of_codes(item, label, table[item, label]))
    found = cs.agreement(Annotations.from_counts(table))
    assert of_codes.value == found.value
    for ask, words in (
        (found.annotators, "the table of annotators needs to know who gave each label"),
        (found.pairs, "the table of pairs of annotators needs to know"),
        (found.curve, "the learning curve needs one row per annotation"),
        (found.monitor, "monitoring needs one row per annotation"),
    ):
        with pytest.raises(UnsupportedRequest, match=words):
            ask()
    with pytest.raises(UnsupportedRequest, match="annotators='random' needs to know who gave each label"):
        cs.agreement(Annotations.from_counts(table), annotators="random")


def test_random_annotators_widen_the_interval():
    rng = np.random.default_rng(0)
    num_items, num_annotators = 200, 8
    good = rng.random(num_annotators) < 0.5
    truth = rng.integers(0, 2, num_items)
    who = np.array([rng.choice(num_annotators, 3, replace=False) for _ in range(num_items)])
    right = rng.random((num_items, 3)) < np.where(good[who], 0.98, 0.6)
    label = np.where(right, truth[:, None], 1 - truth[:, None])
    data = Annotations.from_codes(np.repeat(np.arange(num_items), 3), who.ravel(), label.ravel())
    fixed, random = cs.agreement(data), cs.agreement(data, annotators="random")
    assert random.value == fixed.value
    assert random.sd == pytest.approx(fixed.two_way.sd)
    assert random.sd > 1.5 * fixed.sd
    assert random.interval[0] < fixed.interval[0] < fixed.interval[1] < random.interval[1]
    assert "items like these and annotators like these" not in repr(fixed)
    assert "items like these and annotators like these" in repr(random)


def test_an_annotator_who_repeats_has_to_be_decided_on():
    with pytest.warns(UserWarning, match="1 rows have the same item and annotator"):
        data = cs.read_annotations(pd.concat([LONG, LONG.iloc[[0]].assign(label="r")]))
    words = r"1 annotations repeat an annotator on an item \(the first: annotator 'a0' on item 'i0'\)"
    with pytest.raises(UnsupportedRequest, match=words):
        cs.agreement(data)
    first, kept = cs.agreement(data, duplicates="first"), cs.agreement(data, duplicates="keep")
    assert first.value == cs.agreement(annotations()).value
    assert kept.counts.num_annotations == first.counts.num_annotations + 1


def test_a_row_that_counts_twice_is_a_repeat():
    data = annotations().replace(weight=np.where(np.arange(annotations().num_annotations) == 3, 2.0, 1.0))
    with pytest.raises(UnsupportedRequest, match="1 annotations repeat an annotator on an item .*'a0' on item 'i1'"):
        cs.agreement(data)
    assert cs.agreement(data, duplicates="first").value == cs.agreement(annotations()).value
    assert cs.agreement(data, duplicates="keep").counts.num_annotations == annotations().num_annotations + 1


def test_the_first_annotations_alone():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (300, 3))
    rows = [(item, who, row[who]) for item, row in enumerate(labels) for who in range(2 if row[0] == row[1] else 3)]
    shuffled = np.array(rows)[np.argsort(rng.random(len(rows)) + np.array(rows)[:, 1])]  # each item's in order
    found = cs.agreement(Annotations.from_codes(*shuffled.T), first=2)
    assert found.value == pytest.approx((labels[:, 0] == labels[:, 1]).mean())
    assert np.isnan(found.dependence.z)
    with pytest.raises(UnsupportedRequest, match="first is 1; give a whole number, 2 or more"):
        cs.agreement(annotations(), first=1)
    with pytest.raises(UnsupportedRequest, match="first needs one row per annotation"):
        cs.agreement(Annotations.from_counts([[2, 1]]), first=2)


def test_adjudication_is_reported_beside_the_number():
    rng = np.random.default_rng(0)
    rows = []
    for item, labels in enumerate(rng.integers(0, 2, (300, 3))):
        rows += [(item, who, labels[who]) for who in range(2 if labels[0] == labels[1] else 3)]
    found = cs.agreement(Annotations.from_codes(*np.array(rows).T), weights="edge")
    assert found.dependence.found
    assert "use flat" in repr(found)
    assert "measure the first two of every item (first=2)" in repr(found)
    assert "flat: " in repr(found)
    assert found.row()["verdict"] == str(found.dependence)


def test_agreement_of_items_with_one_annotation_is_undefined():
    found = cs.agreement(cs.read_annotations(LONG.groupby("item").head(1)))
    assert np.isnan([found.value, found.sd, *found.interval]).all()
    assert "undefined; 0 of 8 items have two annotations or more" in repr(found)
    assert found.schemes()["value"].isna().all()


def test_values_of_labels_have_to_be_numbers():
    assert "interval" not in set(cs.agreement(annotations()).coefficients()["convention"])
    scaled = cs.agreement(annotations(), values=[1.0, 2.0, 4.0]).coefficients()
    assert {"ordinal", "interval", "ratio"} <= set(scaled["convention"])
    ordered = cs.agreement(annotations(), ordinal=True).coefficients()
    assert "ordinal" in set(ordered["convention"])
    numbers = cs.read_annotations(LONG.replace({"label": {"p": "1", "q": "2", "r": "4"}}))
    same = cs.agreement(numbers, values="labels").coefficients()
    np.testing.assert_allclose(same["value"], scaled["value"])
    by_label = cs.agreement(annotations(), values={"r": 4.0, "p": 1.0, "q": 2.0}).coefficients()
    np.testing.assert_allclose(by_label["value"], scaled["value"])
    for values, words in (
        ("labels", "the labels are not numbers: p, q, r"),
        ("label", "give 'labels', or one number"),
        ([1.0], "values needs 3 finite numbers"),
        (["a", "b", "c"], "values needs 3 finite numbers"),
        ({"p": 1.0, "q": 2.0}, "values lacks r; give a number for every label"),
        ({"s": 1.0}, "values names 's'; the labels are p, q, r"),
    ):
        with pytest.raises(UnsupportedRequest, match=words):
            cs.agreement(annotations(), values=values)


@pytest.mark.parametrize(("options", "error", "words"), [
    ({"weights": "edges"}, UnknownName, "no weights are called 'edges'"),
    ({"annotators": "both"}, UnsupportedRequest, "annotators is 'both'"),
    ({"level": 95.0}, UnsupportedRequest, "level is 95.0; give a number between 0 and 1"),
])  # fmt: skip
def test_wrong_options(options, error, words):
    with pytest.raises(error, match=words):
        cs.agreement(annotations(), **options)


def test_tables_are_read(tmp_path):
    LONG.to_csv(tmp_path / "long.csv", index=False)
    expected = cs.agreement(annotations())
    for source in (LONG, tmp_path / "long.csv", str(tmp_path / "long.csv"), LONG.to_dict("list")):
        pd.testing.assert_frame_equal(cs.agreement(source).schemes(), expected.schemes())
    with pytest.raises(UnsupportedRequest, match="of annotations or of a fit, not of int"):
        cs.agreement(3)
    with pytest.raises(UnsupportedRequest, match="the agreement of Rankings is not that of labels"):
        cs.agreement(cs.load("stutz-2023-cases"))
    with pytest.raises(UnsupportedRequest, match="columns={'label': 'rating'} and values='labels', for Krippendorff"):
        cs.agreement(cs.Ratings.from_codes(item=[0, 0], annotator=[0, 1], rating=[1.5, 2.0]))


def test_shares_are_for_one_scheme():
    found = cs.agreement(annotations(), weights="inv_var_class", shares=[0.5, 0.25, 0.25])
    assert found.value != cs.agreement(annotations(), weights="inv_var_class").value
    for options in ({"weights": "edge", "shares": [0.5, 0.25, 0.25]}, {"weights": "inv_var_class", "shares": [1.0]}):
        with pytest.raises(UnsupportedRequest, match="shares are those of the 3 classes"):
            cs.agreement(annotations(), **options)


def test_a_fit_implies_an_agreement():
    fit = cs.fit("dirichlet", annotations(), draws=400)
    found = cs.agreement(fit, weights="edge")
    assert found.observed == pytest.approx(cs.agreement(annotations(), weights="edge").value)
    assert found.scheme == "edge"
    assert found.interval[0] < found.value < found.interval[1]
    assert found.table["item"].tolist() == [f"i{item}" for item in range(8)]


@pytest.mark.parametrize(("options", "error", "words"), [
    ({"annotators": "random", "values": "labels"}, UnsupportedRequest, "no meaning for a fit: annotators, values;"),
    ({"level": 95.0}, UnsupportedRequest, "level is 95.0; give a number between 0 and 1"),
    ({"weights": "edges"}, UnknownName, "no weights are called 'edges'"),
])  # fmt: skip
def test_wrong_options_for_a_fit(options, error, words):
    truth = cs.fit("dirichlet", annotations(), draws=2).truth
    with pytest.raises(error, match=words):
        cs.agreement(truth, **options)


def test_a_fit_to_weights_that_are_no_numbers_of_annotations_is_not_checked():
    data = annotations().replace(weight=np.full(annotations().num_annotations, 0.5))
    found = cs.agreement(cs.fit("dirichlet", data, draws=50))
    assert 0 < found.value < 1
    assert not len(found.predictive)
    with pytest.raises(UnsupportedRequest, match="no meaning for a fit: first, duplicates"):
        cs.agreement(cs.fit("dirichlet", data, draws=50), first=2, duplicates="first")


def test_pairs_of_those_who_share_most_are_rows_of_all_pairs():
    random = np.random.default_rng(1)
    data = cs.Annotations.from_codes(
        np.repeat(np.arange(80), 3), np.concatenate([random.choice(6, 3, replace=False) for _ in range(80)]),
        random.integers(0, 3, 240),
    )  # fmt: skip
    found = cs.agreement(data)
    every, some = found.pairs(), found.pairs(most=3)
    both = np.concatenate([every["annotator_a"], every["annotator_b"]]).astype(int)
    most = np.argsort(-np.bincount(both, np.tile(every["items"], 2)), kind="stable")[:3]
    kept = every["annotator_a"].astype(int).isin(most) & every["annotator_b"].astype(int).isin(most)
    assert some.attrs["annotators"] == 6
    assert len(some) == 3
    assert every[kept].reset_index(drop=True).equals(some)


def measures(places):
    """Return annotations that are numbers near those of their items, rounded to so many places."""
    random = np.random.default_rng(0)
    item, annotator = np.indices((30, 3)).reshape(2, -1)
    value = (50 + 10 * random.normal(size=30)[item] + 3 * random.normal(size=len(item))).round(places)
    return {"item": item, "annotator": annotator, "label": value.astype(str)}


@pytest.mark.parametrize(
    ("places", "values", "first"),
    [
        (3, "labels", "Krippendorff's alpha, interval scale: 0.8834 ± 0.0342, 95 % in [0.7463, 0.9222]\nthe labels"),
        (3, None, "the labels are numbers with 90 values, which hardly ever are equal: values='labels' measures"),
        (-1, "labels", "sparse probability of agreement"),
    ],
)
def test_numbers_that_hardly_ever_are_equal_lead_with_alpha(places, values, first, tmp_path, capsys):
    table = measures(places)
    found = cs.agreement(table, values=values)
    assert repr(found).startswith(first)
    alpha = found.coefficients().query("convention == 'interval'")["value"].tolist()
    assert alpha == pytest.approx([found.alpha_of_numbers.value] if values else [])
    pd.DataFrame(table).to_csv(tmp_path / "labels.csv", index=False)
    assert main(["agreement", str(tmp_path / "labels.csv"), *(["--values", values] if values else [])]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(first)
    assert ("inv_var_class" in printed) == (places < 0)
    page = cs.report(found, path=tmp_path / "page.html").read_text(encoding="utf-8")
    assert ("which hardly ever are equal" in page) == (places > 0)
    assert ("Krippendorff&#39;s alpha is 0.88" in page) == (places > 0 and values is not None)
