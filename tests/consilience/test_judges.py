"""The page on LLM judges: every figure that it states is what the library says of its data."""

import re
import warnings
from pathlib import Path

import pandas
import pytest
from scipy import stats

import consilience as cs
from consilience.cli import main
from consilience.notes import Level

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "judges.md"
JUDGES = ["strict", "lenient", "careful", "lenient-2"]


@pytest.fixture(scope="module")
def page():
    """What the code of the page makes."""
    made = {"__name__": "judges"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for code in re.findall(r"^```python(?: alert)?\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
            exec(compile(code, str(PAGE), "exec"), made)
    return made


def rows_of(heading):
    """Return the rows of the table of the page whose first columns are headed so, without the line below the heads."""
    lines = PAGE.read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(heading)) + 2
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            return rows
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    raise AssertionError(heading)


def interval(cell):
    return [float(end) for end in cell.split("–")]


def test_judges_are_wrong_together_and_the_fit_is_sure(page):
    fit = page["fit"]
    assert "certainty 0.961 (under independence 0.993); right 0.950 of 40 gold items" in str(fit)
    assert float(fit.elbo[-1]) == pytest.approx(-582.911, abs=0.001)
    assert fit.signal.z == pytest.approx(24.5, abs=0.05)
    assert (fit.dependence.source, fit.dependence.gold_items) == ("gold", 40)
    assert fit.dependence.rho == pytest.approx(0.32, abs=0.005)
    assert page["share_right"](fit) == pytest.approx((0.857, 0.842), abs=5e-4)
    found = fit.calibration_score()
    assert (found.items, found.right) == (40, 0.95)


def test_judges_who_look_for_themselves_alert(page):
    errors = [note for note in page["fit"].findings() if note.level == Level.error]
    assert [note.text for note in errors] == [
        "strict and careful agree more than the model can explain (.79, expected .65): some annotators do not work "
        "independently"
    ]
    pairs = page["fit"].annotator_pairs()
    assert pairs["z"].abs()[1:].max() <= 1.02
    for stated, (_, row) in zip(rows_of("| annotator_a | annotator_b | items"), pairs.iterrows(), strict=True):
        assert stated[:2] == [row["annotator_a"], row["annotator_b"]]
        assert [float(cell) for cell in stated[2:6]] == pytest.approx(row[2:6].astype(float), abs=5e-4)
        assert float(stated[6]) == pytest.approx(row["z"], abs=0.005)


def test_gold_records_of_judges_contradict_the_model(page):
    record = page["record"].set_index("annotator")
    assert record.index[record["conflict"]].tolist() == ["strict", "lenient"]
    for judge, accuracy, model, right, gold, conflict in rows_of("| annotator | accuracy by the model"):
        row = record.loc[judge]
        assert float(accuracy) == pytest.approx(row["accuracy"], abs=5e-4)
        # Ends are quantiles of 200 imputations.
        assert interval(model) == pytest.approx(row[["lower", "upper"]].astype(float), abs=0.012)
        assert float(right) == row["gold_right"]
        exact = stats.beta.ppf([0.025, 0.975], 1 + float(right), 1 + 40 - float(right))
        assert interval(gold) == pytest.approx(exact, abs=5e-4)
        assert (conflict == "yes") == row["conflict"]
    bias = page["fit"].bias().set_index(["annotator", "label"])["bias"].xs("1", level="label")
    assert bias[JUDGES[:3]].tolist() == pytest.approx([-0.196, 0.024, -0.080], abs=5e-4)


def test_groupings_of_judges_as_stated(page):
    found = page["fit"].groupings()
    for stated, (_, row) in zip(rows_of("| annotator_a | annotator_b | worst_z"), found.iterrows(), strict=True):
        assert stated[:2] == [row["annotator_a"], row["annotator_b"]]
        assert float(stated[2]) == pytest.approx(row["worst_z"], abs=0.005)
        assert [float(cell) for cell in stated[3:]] == pytest.approx([row["log_score"], row["right"]], abs=5e-4)


def test_a_known_family_of_judges_is_cured(page):
    grouped = page["grouped"]
    assert "certainty 0.927 (under independence 0.956); right 0.975 of 40 gold items" in str(grouped)
    assert page["share_right"](grouped) == pytest.approx((0.950, 0.946), abs=5e-4)
    assert not grouped.findings()
    table, true = page["table"], {judge: (said == page["good"]).mean() for judge, said in page["judges"].items()}
    for judge, number, accuracy, ends, right, bias, z, group, truth in rows_of("| judge | annotations"):
        row = table.loc[judge]
        numbers = [row["annotations"], row["gold_right"]]
        assert [float(number), float(right)] == numbers
        assert [float(accuracy), float(bias)] == pytest.approx([row["accuracy"], row["bias_1"]], abs=5e-4)
        assert interval(ends) == pytest.approx([row["lower"], row["upper"]], abs=0.012)
        assert row["lower"] < true[judge] < row["upper"]
        assert float(z) == pytest.approx(row["agreement_z"], abs=0.05)
        assert float(truth) == pytest.approx(true[judge], abs=5e-4)
        assert group == ("" if pandas.isna(row["group"]) else row["group"])
    confusion = grouped.confusion().set_index(["annotator", "true_label", "label"]).xs("1", level="label")
    for judge, of_bad, bad_ends, of_good, good_ends in rows_of("| judge | says 1 of a bad answer | 95 %"):
        for said, ends, true_label in ((of_bad, bad_ends, "0"), (of_good, good_ends, "1")):
            row = confusion.loc[(judge, true_label)]
            assert float(said) == pytest.approx(row["probability"], abs=5e-4)
            assert interval(ends) == pytest.approx([row["lower"], row["upper"]], abs=0.015)


@pytest.mark.filterwarnings("ignore")
def test_what_else_is_tried_on_the_judges(page):
    right = page["share_right"]
    assert right(cs.fit("majority-vote", page["annotations"])) == pytest.approx((0.933, 0.927), abs=5e-4)
    assert right(cs.fit("dawid-skene", page["annotations"], gold="use"))[1] == pytest.approx(0.842, abs=5e-4)
    assert right(cs.fit("majority-vote", page["five"]))[1] == pytest.approx(0.869, abs=5e-4)
    assert right(cs.fit("dawid-skene", page["five"]))[1] == pytest.approx(0.862, abs=5e-4)


def test_the_command_ends_with_3_for_judges_and_reads_their_groups(page, tmp_path, capsys):
    families = page["annotations"]["annotator"].map(page["families"]).fillna("")
    page["annotations"].assign(family=families).to_csv(tmp_path / "judges.csv", index=False)
    fitted = ["fit", "dawid-skene", str(tmp_path / "judges.csv"), "-o"]
    assert main([*fitted, str(tmp_path / "alone")]) == 3
    assert main([*fitted, str(tmp_path / "families"), "--annotator-groups", "family"]) == 0
    assert capsys.readouterr().out.count("right 0.9") == 2
