"""`link`: what is compared, what is written, and what is refused; in Python and on the command line."""

import csv
import dataclasses
import html
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import consilience as cs
from consilience.cli import main
from consilience.errors import DiagnosticWarning, InputError, InputWarning, UnknownName, UnsupportedRequest
from consilience.evaluation.reliability import reliability_table
from consilience.figures import reliability_curve
from consilience.inference import gibbs
from consilience.models.block_linkage import simulate
from consilience.models.block_linkage.gibbs.outside import LinksOutside, outside_warning
from consilience.models.truth.partitions import Pairs
from consilience.pages.agreement_by_chance import weighed
from consilience.pages.linkage_next import next_steps
from consilience.pages.record_pairs import _groups
from consilience.pages.typing_errors import Typos

PEOPLE = {
    "person": ["a1", "a2", "a3", "b1", "b2", "b3"], "name": ["ada", "max", "eva", "ada", "max", "ida"],
    "born": ["1951-02-03", "1960-07-21", "1947-11-30", "1951-02-03", "1960-07-12", "1972-05-05"],
    "pupils": [2, 2, 2, 2, 2, 2], "visit": list(range(6)), "note": ["", "", "", "", "", ""],
    "city": ["bonn", "jena", "bonn", "bonn", "jena", "kiel"],
}  # fmt: skip


def linked(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiagnosticWarning)
        warnings.simplefilter("ignore", InputWarning)
        return cs.link(PEOPLE, id="person", **options)


def test_columns_that_can_tell_nobody_apart_are_left_out():
    fit = linked()
    assert fit.attributes["fields"] == "name (category), born (date), city (category)"
    for reason in ("pupils: the same", "visit: different in every record", "note: always missing"):
        assert reason in fit.attributes["left_out"]


def test_named_fields_are_compared_whatever_they_are():
    assert linked(fields=["name", "visit"]).data.fields.tolist() == ["name", "visit"]
    assert linked(fields={"name": "string"}).attributes["fields"] == "name (string)"


def test_what_cannot_be_linked():
    with pytest.raises(UnknownName, match="the type of field 'name' is 'text'; give one of string"):
        cs.link(PEOPLE, id="person", fields={"name": "text"})
    with pytest.raises(InputError, match="no source has this column"):
        cs.link(PEOPLE, id="person", fields=["nome"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        with pytest.raises(UnsupportedRequest, match="no column can tell entities apart"):
            cs.link({"id": ["a", "b", "c"], "x": ["1", "1", "1"]})
    with pytest.raises(InputError, match="there is no such record"):
        linked(pairs={"record_a": ["a1"], "record_b": ["a9"]})


def test_one_record_is_nothing_to_link():
    with pytest.raises(InputError, match="one record only, and none to link it with; give at least two"):
        cs.link({"id": ["a"], "name": ["ada"]})


def test_of_few_records_nothing_is_said_of_large_entities():
    """The prior alone says that a share of the entities is as large as can be."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = cs.link({"id": list("abcd"), "name": ["ada", "ada", "max", "max"], "city": ["x", "x", "y", "y"]})
    assert not any("raise {largest}" in note.text for note in fit.findings())


def test_entities_larger_than_what_is_enumerated():
    table = {"id": range(120), "name": [f"n{number // 6}" for number in range(120)]}
    table |= {"born": table["name"], "city": table["name"], "street": table["name"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiagnosticWarning)
        fit = cs.link(table, largest=3)
    assert fit.entities().groupby("entity").size().tolist() == [6] * 20


GOOD = "id,name,city\na,Ada,Bonn\nb,Ada,Bonn\nc,Max,Jena\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD + "a,Eva,Kiel\n", "people.csv, line 5, column 'id': an earlier record of this source has the same id"),
        (GOOD + "e,Eva\n", "people.csv, line 5: the row has 2 cells where the header has 3 (value 'e,Eva'); add or"),
        (GOOD.replace("Bonn", "Köln").encode("latin-1"), "people.csv, line 2: byte 8 of the line is not UTF-8 text"),
        (GOOD.encode("utf-16"), "people.csv, line 1: byte 1 of the line is not UTF-8 text (value '0xff'); save"),
        ("", "people.csv: the file is empty; check that this is the file you meant"),
        ("id,name,city\n", "people.csv: the table has no rows; check that"),
        ("id,name,city\na,Ada,Bonn\n", "there is one record only"),
        (GOOD.replace("id", "person"), "people.csv, column 'id': there is no column 'id' or 'record_id' or 'rec_id'"),
        (GOOD.replace("id", "person"), "say which column names the records, as in --id person"),
        (GOOD.replace("b,", ","), "people.csv, line 3, column 'id': the id is empty (value ''); fill it in"),
        ("id,name\na,\nb,\n", "every value of name is missing; name other columns in --fields"),
        ("id,name\na,x\nb,x\nc,x\n", "no column can tell entities apart: each is constant"),
    ],
)
def test_files_that_cannot_be_linked(tmp_path, monkeypatch, refused, content, message):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in " ".join(refused("link", "people.csv", "-o", "out").split())
    assert not Path("out").exists()


def test_a_byte_order_mark_and_columns_that_say_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = "id,name,city,kind,note\na,Ada,Bonn,p,\nb,Ada,Bonn,p,\nc,Max,Jena,p,\n"
    Path("people.csv").write_text(text, encoding="utf-8-sig")
    assert main(["link", "people.csv", "-o", "out"]) == 3  # too few records to link any
    shown = capsys.readouterr()
    assert "no two records were linked" in shown.err
    assert "left out kind: the same in every record; note: always missing" in shown.out


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with two files of records, and what the command wrote for them."""
    folder = tmp_path_factory.mktemp("link")
    records, _ = simulate(1, num_records=120, num_values=(40, 50, 30), size_share=(0.7, 0.3), num_sources=2)
    cs.write_records(records, folder)
    files = sorted(map(str, folder.glob("*.csv")))
    words = ["link", *files, "--entity", "entity", "--draws", "50", "-o", str(folder / "out")]
    assert main(words) in (0, 3)
    return folder


def test_what_the_command_writes(folder):
    with (folder / "out/entities.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 120
    assert set(rows[0]) == {"record", "entity", "certainty", "file", "original_id"}
    with (folder / "out/pairs.csv").open(newline="") as stream:
        assert set(next(csv.DictReader(stream))) == {"record_a", "record_b", "probability"}
    page = (folder / "out/report.html").read_text()
    for words in ("Clusters", "Links made and missed", "Review list", "Between files"):
        assert words in page
    for words in ("Against the known entities", "What was run"):
        assert words in page
    fit = cs.load_fit(folder / "out/fit")
    assert len(fit.entities()) == 120
    # Of 120 records too few are linked to tell whether the model fits: nothing is corrected, and the page says so.
    assert "not known" in page
    shown = html.unescape(page).replace("\u00a0", " ")
    assert all(note.words()[1:] in shown for note in fit.findings())
    scores = cs.score_partition(fit, fit.data)
    by_known = re.search(r"By the known entities, which the fit did not use, (\S+) % \[.*?\] of .*? and (\S+) %", shown)
    wanted = [100 * scores[f"pairwise-{one}"] for one in ("precision", "recall")]
    assert [float(one) for one in by_known.groups()] == pytest.approx(wanted, abs=0.05)
    call = "cs.link({'file_1': 'file_1.csv', 'file_2': 'file_2.csv'}, fields={'field_1': 'category', "
    assert call in html.unescape(page)
    assert "--similar field_1=string,field_2=string" in re.sub(r"<[^>]+>", "", page)
    none = Typos(0, 0, ())
    similar = dataclasses.replace(fit, attributes=fit.attributes | {"similar": "field_1 (string)"})
    assert len(next_steps(similar, weighed(similar), none)) == len(next_steps(fit, weighed(fit), none)) - 1
    for words in ("The interval holds ", "links among the compared pairs", "≠ "):
        assert words in page


def test_a_page_with_systems(folder, systems, printed):
    page = folder / "systems.html"
    words = ["report", folder / "out", "--predictions", systems["true"], systems["alone"]]
    printed(*words, "--metric", "pairwise-f1", "--metric", "b3-f1", "-o", page)
    assert "Scores of systems" in page.read_text()
    score = cs.evaluate(cs.load_fit(folder / "out/fit"), cs.read_partition(systems["true"]), metric="b3-f1")
    assert f"{score.value:.4f}" in page.read_text()
    with pytest.raises(UnsupportedRequest, match="a system is expected, as .* read_partition return it.*this is list"):
        cs.report(cs.load_fit(folder / "out/fit"), {"one": [1, 2]}, path=page)
    classes = cs.read_predictions({"item": ["a"], "label": ["x"]})
    with pytest.raises(UnsupportedRequest, match="systems that link records are partitions"):
        cs.report(cs.load_fit(folder / "out/fit"), {"one": classes}, path=page)


def test_known_pairs_of_given_candidates(tmp_path, monkeypatch, capsys):
    """Of pairs that were given a share is of all among them; and nothing is said twice."""
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", "records", "--records", "60", "--values", "9,8,7", "--sizes", "0,1", "-o", "a.csv"]) == 0
    records = cs.read_records("a.csv", entity="entity")
    order = np.argsort(records.entity, kind="stable")
    rows = [f"{one},{other}" for one, other in records.records[order].reshape(-1, 2)]
    Path("pairs.csv").write_text("\n".join(["record_a,record_b", *rows]))
    assert main(["link", "a.csv", "--entity", "entity", "--pairs", "pairs.csv", "-o", "out"]) in (0, 3)
    shown = capsys.readouterr()
    assert "links among the pairs given" in shown.out
    warned = [line.removeprefix("warning: ") for line in shown.err.splitlines()]
    assert not any(line in shown.out for line in warned)
    assert "among the pairs given" in Path("out/report.html").read_text()


def test_what_is_doubtful_and_not_shown_is_counted():
    pairs = Pairs(np.array([0, 0, 3, 5], np.int32), np.array([1, 2, 4, 6], np.int32), np.array([0.4, 0.6, 0.5, 0.01]))
    groups, left_out = _groups(pairs, np.array([2, 0, 3, 4, 6]), 7)
    assert groups == [[(2, 1.0), (0, 0.6)], [(3, 1.0), (4, 0.5)], [(6, 1.0), (5, 0.01)]]
    assert left_out == 0
    sure = Pairs(np.array([0, 0, 0], np.int32), np.array([1, 2, 3], np.int32), np.array([0.9985, 0.011, 0.004]))
    assert _groups(sure, np.array([0]), 4) == ([[(0, 1.0), (1, 0.9985), (2, 0.011)]], 0)
    many = Pairs(np.arange(0, 60, 2, dtype=np.int32), np.arange(1, 60, 2, dtype=np.int32), np.full(30, 0.5))
    groups, left_out = _groups(many, np.arange(60), 60)
    assert (len(groups), left_out) == (20, 10)


def test_bars_of_shares_end_where_shares_do():
    table = reliability_table(np.repeat([0.1, 0.9], [2, 3]), np.repeat([False, True], [2, 3]))
    (bars,) = reliability_curve(table, "Pairs", "stated", "seen").collections
    ends = np.concatenate([path.vertices[:, 1] for path in bars.get_paths()])
    assert (ends.min(), ends.max()) == (0, 1)


def test_the_tables_of_the_saved_fit(folder, printed):
    rows = json.loads(printed("table", folder / "out/fit", "patterns", "--json"))
    assert {row["sources"] for row in rows} <= {"file_1", "file_2", "file_1 + file_2"}


@pytest.fixture(scope="module")
def systems(folder):
    """Write what two systems say, and the truth, beside the fit."""
    records = cs.load_fit(folder / "out/fit").data
    entity = records.entity.tolist()
    for name, of_record in (("true", entity), ("alone", records.records.tolist()), ("few", entity[:9])):
        with (folder / f"{name}.table.csv").open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerows([("record", "entity"), *zip(records.records[: len(of_record)], of_record, strict=True)])
    return {name: str(folder / f"{name}.table.csv") for name in ("true", "alone", "few")}


def test_systems_of_records_are_compared(folder, systems, printed):
    words = ["compare", folder / "out/fit", systems["true"], systems["alone"]]
    found = json.loads(printed(*words, "--json"))
    fit = cs.load_fit(folder / "out/fit")
    expected = cs.compare(fit, {name: cs.read_partition(systems[name]) for name in ("true", "alone")})
    assert [row["value"] for row in found["leaderboard"]] == expected.table["value"].tolist()
    assert found["pairs"][0]["p_a_beats_b"] == expected.pairs["p_a_beats_b"][0]
    shown = printed(*words, "--metric", "b3-precision")
    assert shown.startswith("b3-precision (mean share")
    assert "connected groups" in shown


def test_systems_of_one_file_name_are_called_after_their_folders(folder, tmp_path, printed):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/entities.csv").write_bytes((folder / "out/entities.csv").read_bytes())
    words = ["compare", folder / "out", folder / "out/entities.csv", tmp_path / "other/entities.csv", "--json"]
    found = json.loads(printed(*words))
    assert [row["system"] for row in found["leaderboard"]] == ["out", "other"]


def test_systems_are_scored(folder, systems, printed):
    words = ["evaluate", folder / "out/fit", "--predictions", systems["true"]]
    (row,) = json.loads(printed(*words, "--json"))
    assert (row["system"], row["metric"]) == ("true", "pairwise-f1")
    metrics = ["--metric", "b3-precision", "--metric", "pairwise-recall"]
    rows = json.loads(printed(*words, *metrics, "--json"))
    assert [one["metric"] for one in rows] == ["b3-precision", "pairwise-recall"]
    few = ["evaluate", folder / "out/fit", "--predictions", systems["few"]]
    assert json.loads(printed(*few, "--missing", "drop", "--json"))[0]["records"] == 9


def test_one_partition_against_another(folder, systems, printed, tmp_path):
    assert "pairwise      100.00%    100.00%    100.00%" in printed("score", systems["true"], systems["true"])
    found = json.loads(printed("score", systems["true"], systems["alone"], "--json"))
    scores = {row["score"]: row["value"] for row in found["scores"]}
    assert scores["pairwise-f1"] == 0
    assert scores["pairwise-precision"] is None
    renamed = tmp_path / "renamed.csv"
    renamed.write_text(Path(systems["true"]).read_text().replace("record,entity", "person,who"))
    table = tmp_path / "scores.csv"
    words = ["score", renamed, systems["alone"], "--columns", "record=person,entity=who", "--csv", table]
    assert "120 records" in printed(*words)
    assert len(table.read_text().splitlines()) == 1 + len(found["scores"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compare", "out/fit", "true.table.csv", "--metric", "top-1"], "no metric is called 'top-1' for records"),
        (["compare", "out/fit", "true.table.csv", "--metric", "merge-pairs"], "merge-pairs ranks no systems"),
        (["compare", "out/fit", "few.table.csv"], "111 records of the data have no entity"),
        (["evaluate", "out/fit", "--predictions", "true.table.csv", "--singletons", "exclude"], "entities of records"),
        (["score", "true.table.csv", "few.table.csv"], "111 records of the data have no entity"),
        (["score", "true.table.csv", "true.table.csv", "--documents"], "say something of chains; these are tables"),
        (["link", "file_1.csv", "-o", "out"], "out exists; give a new folder, or --force"),
        (["link", "file_9.csv", "-o", "new"], "there is no such file"),
        (["link", "file_1.csv", "--id", "person", "-o", "new"], "there is no column 'person'"),
        (["link", "file_1.csv", "--fields", "nome", "-o", "new"], "no source has this column"),
        (["link", "file_1.csv", "--pairs", "none.csv", "-o", "new"], "there is no such file"),
        (["link", "file_1.csv", "--resume", "--force", "-o", "new"], "give one of them"),
        (["link", "file_1.csv", "--resume", "-o", "out"], "complete, but of other data or settings"),
    ],
)
def test_what_the_commands_of_linkage_refuse(folder, systems, monkeypatch, refused, words, message):
    monkeypatch.chdir(folder)
    assert message in refused(*words)
    assert not (folder / "new").exists()


def test_a_warning_names_the_flag_that_helps():
    assert outside_warning(LinksOutside(3.0, 0.9), 1.0, 8.0)[0].words("flags").endswith("; raise --wide, now 8")


# ---- runs that are stopped ----

_GIBBS = ["--method", "gibbs", "--draws", "30", "--quiet"]


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Return the file of a few records, and the folder of a run on it that nothing stopped."""
    path = tmp_path_factory.mktemp("records")
    simulated = cs.simulate_records(num_entities=30, num_values=(20, 15, 6), seed=1)
    cs.write_records(simulated, path / "records.csv")
    assert main(["link", str(path / "records.csv"), "-o", str(path / "whole"), *_GIBBS]) in (0, 3)
    return path


def assert_same_run(one, other):
    first, second = (cs.load_fit(folder / "fit") for folder in (one, other))
    assert first.method == second.method == "gibbs"
    drawn, again = first.posterior.draws(), second.posterior.draws()
    assert drawn.keys() == again.keys()
    for site, draws in drawn.items():
        assert draws.tobytes() == again[site].tobytes()
    for name in ("entities.csv", "pairs.csv"):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    assert not (other / "fit" / "checkpoint").exists()


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
@pytest.mark.parametrize("last_step", [100, 510])
def test_ctrl_c_keeps_what_was_drawn_and_says_how_to_go_on(records, tmp_path, capsys, monkeypatch, last_step):
    """In the warm-up of 500 sweeps nothing is written but the checkpoint; after it, what was drawn."""
    words = ["link", str(records / "records.csv"), "-o", str(tmp_path / "linked"), *_GIBBS]
    original = gibbs.run_gibbs

    def stopping(*given, **options):
        def interrupt(steps, _):
            if steps >= last_step:
                raise KeyboardInterrupt

        return original(*given, **options | {"progress": interrupt})

    with monkeypatch.context() as patch:
        patch.setattr("consilience.inference.gibbs.run_gibbs", stopping)
        assert main(words) == 130
    shown = capsys.readouterr()
    said = shown.err.partition("go on with: ")[2] if last_step < 500 else shown.out.partition("resume   ")[2]
    command = shlex.split(said)
    assert command == ["consilience", *words, "--resume"]
    assert (tmp_path / "linked" / "entities.csv").exists() == (last_step > 500)
    assert main(words) == 1
    assert "holds a run that did not end; give --resume to go on with it" in capsys.readouterr().err
    assert main(command[1:]) in (0, 3)
    assert_same_run(records / "whole", tmp_path / "linked")
    assert main(command[1:]) == 0
    assert "complete" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", ["SIGKILL", "SIGINT"])
@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_a_process_that_is_stopped_goes_on_to_the_same_bits(records, tmp_path, number):
    words = ["link", str(records / "records.csv"), "-o", str(tmp_path / "linked"), *_GIBBS]
    # A shell starts what it runs in the background with SIGINT ignored, and that is inherited.
    earlier = signal.signal(signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen([sys.executable, "-m", "consilience", *words], stderr=subprocess.PIPE)
    signal.signal(signal.SIGINT, earlier)
    while process.poll() is None and not (tmp_path / "linked/fit/checkpoint/checkpoint.json").exists():
        time.sleep(0.01)
    process.send_signal(signal.Signals[number])
    errors = process.communicate()[1].decode()
    assert process.returncode == (-signal.SIGKILL if number == "SIGKILL" else 130), errors
    assert main([*words, "--resume"]) in (0, 3)
    assert_same_run(records / "whole", tmp_path / "linked")


@pytest.mark.parametrize("resumed", [[], ["--resume"]])
def test_a_run_that_is_killed_before_its_first_checkpoint_can_begin_again(records, tmp_path, resumed):
    words = ["link", str(records / "records.csv"), "-o", str(tmp_path / "linked"), "--quiet", *resumed]
    (tmp_path / "linked/fit/checkpoint").mkdir(parents=True)
    (tmp_path / "linked/fit/checkpoint/lock").touch()
    assert main(words) in (0, 3)
    shutil.copytree(records / "whole/fit", tmp_path / "other/fit")
    words[3] = str(tmp_path / "other")
    assert main(words) == 1  # for it holds another fit


def test_a_run_that_is_killed_while_results_are_written_loses_nothing(records, tmp_path, monkeypatch):
    words = ["link", str(records / "records.csv"), "-o", str(tmp_path / "linked"), *_GIBBS]

    class Killed(BaseException):
        pass

    def killed(*given, **options):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("consilience.reporting.report", killed)
        with pytest.raises(Killed):
            main(words)
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sweeps = []
        patch.setattr("consilience.inference.loop._leading_true", lambda flags: sweeps.append(flags) or len(flags))
        assert main([*words, "--resume"]) in (0, 3)
        assert not sweeps  # the run was complete
    assert_same_run(records / "whole", tmp_path / "linked")
