"""The loop of review and labels, and new records, on the command line."""

import csv
import json

import pytest

import consilience as cs
from consilience.cli import main
from tests.consilience.test_new_records import people

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with records of known entities, the run of a link, and its review."""
    place = tmp_path_factory.mktemp("review")
    records = cs.simulate_records(300, num_values=(40, 50, 30, 12), size_share=(0.7, 0.3), seed=8)
    cs.write_records(records, place / "records.csv")
    command = ["link", str(place / "records.csv"), "--entity", "entity", "-o", str(place / "linked"), "--quiet"]
    assert main(command) in (0, 3)
    assert main(["review", str(place / "linked"), "--number", "30", "-o", str(place / "doubtful.csv")]) == 0
    return place


def answered(folder):
    """Fill in the answers that are true."""
    with open(folder / "records.csv", newline="") as stream:
        entity = {row["id"]: row["entity"] for row in csv.DictReader(stream)}
    with open(folder / "doubtful.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        row["answer"] = "same" if entity[row["record_a"]] == entity[row["record_b"]] else "different"
    with open(folder / "answered.csv", "w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return rows


def test_the_loop_of_review_and_labels(folder, capsys):
    """Pairs are asked for, answered, told to the next link; the fit before is judged by them."""
    rows = answered(folder)
    assert len(rows) == 30
    assert list(rows[0])[:5] == ["record_a", "record_b", "probability", "a.field_1", "b.field_1"]
    capsys.readouterr()
    run, labels = str(folder / "linked"), str(folder / "answered.csv")
    assert main(["review", run, "--labels", labels, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sum(row["number"] for row in found) == 30
    again = str(folder / "again")
    command = ["link", str(folder / "records.csv"), "--entity", "entity", "--labels", labels, "-o", again, "--quiet"]
    assert main(command) in (0, 3)
    fit = cs.load_fit(folder / "again" / "fit")
    assert fit.attributes["labels"] == 30
    pairs = fit.pairs().set_index(["record_a", "record_b"])["probability"]
    for row in rows:
        key = (row["record_a"], row["record_b"])
        assert pairs.get(key, 0.0) == pytest.approx(float(row["answer"] == "same"))
    capsys.readouterr()
    assert main(["review", again, "--labels", labels]) == 1
    assert "the fit used 30 of these labels" in capsys.readouterr().err


def test_labels_that_contradict_each_other_are_told_by_line(folder, capsys):
    wrong = folder / "wrong.csv"
    wrong.write_text("record_a,record_b,answer\nr1,r2,same\nr2,r3,same\nr3,r1,different\n")
    command = ["link", str(folder / "records.csv"), "--labels", str(wrong), "-o", str(folder / "never"), "--quiet"]
    assert main(command) == 1
    said = capsys.readouterr().err
    assert "r3 and r1 are said to be different, and the same by line 3 (r2 – r3), line 2 (r1 – r2)" in said
    assert main([*command[:3], str(folder / "none.csv"), *command[4:]]) == 1
    assert "there is no such file" in capsys.readouterr().err


def test_new_records_of_a_file(folder, capsys):
    with open(folder / "records.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))[:2]
    new = folder / "new.csv"
    with open(new, "w", newline="") as stream:
        writer = csv.DictWriter(stream, [name for name in rows[0] if name != "entity"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(row | {"id": f"n{place}"} for place, row in enumerate(rows))
    capsys.readouterr()
    assert main(["link-new", str(folder / "linked"), str(new), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["record"] for row in found] == ["n0", "n1"]
    table = cs.load_fit(folder / "linked" / "fit").link_new(new)
    assert [row["entity"] for row in found] == table["entity"].tolist()
    assert main(["link-new", str(folder / "linked"), str(new), "-o", str(folder / "entities.csv")]) == 0
    assert (folder / "entities.csv").read_text().startswith("record,entity,probability,merged\n")


def test_other_fits_are_refused(tmp_path, capsys):
    cs.fit("majority-vote", cs.Annotations.from_counts([[3, 0], [1, 2]])).save(tmp_path / "votes")
    assert main(["review", str(tmp_path / "votes")]) == 1
    assert "links no records" in capsys.readouterr().err
    records = cs.read_records(people(12), id="person")
    cs.fit("dirichlet-entity", records).save(tmp_path / "paper")
    assert main(["link-new", str(tmp_path / "paper"), "new.csv"]) == 1
    assert "takes no new records" in capsys.readouterr().err
