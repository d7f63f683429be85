"""`consilience update`: annotations added to a saved fit."""

import json

import pandas
import pytest

import consilience as cs
from consilience.cli import main


@pytest.fixture(scope="module")
def table():
    data = cs.load("dawid-skene-1979")
    rows = pandas.DataFrame({
        "item": data.items[data.item], "annotator": data.annotators[data.annotator], "label": data.labels[data.label],
    })  # fmt: skip
    return rows.drop_duplicates(["item", "annotator"])


def test_a_fit_is_updated_by_a_file(table, tmp_path, capsys):
    rows = table
    cs.fit("dawid-skene", rows[:-10], tolerance=1e-6).save(tmp_path / "run")
    rows[-10:].rename(columns={"label": "verdict"}).to_csv(tmp_path / "new.csv", index=False)
    names = [str(tmp_path / name) for name in ("run", "new.csv", "later")]
    assert main(["update", *names[:2], "-o", names[2], "--columns", "label=verdict", "--quiet", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["annotations"], printed["start"]) == (len(rows), "the labels of an earlier fit")
    fresh = cs.fit("dawid-skene", rows, tolerance=1e-6)
    later = cs.load_fit(names[2])
    assert later.data.fingerprint() == fresh.data.fingerprint()
    assert abs(later.probabilities()["probability"] - fresh.probabilities()["probability"]).max() <= 2e-3
    # A fit is not replaced by its own update, nor another one without a word.
    assert main(["update", *names[:2], "-o", names[0], "--columns", "label=verdict", "--force"]) == 1
    assert main(["update", *names[:2], "-o", names[2], "--columns", "label=verdict"]) == 1
    assert "--force to replace it" in capsys.readouterr().err
