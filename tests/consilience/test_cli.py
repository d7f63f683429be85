"""The command: what it prints, writes and returns. Fits are made once and shared."""

import csv
import io
import json
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pandas
import pytest

import consilience as cs
from consilience.cli import ExitCode, main
from consilience.commands.grammar import COMMANDS
from consilience.data.accept import DATA
from consilience.errors import DiagnosticWarning, NonFinite
from consilience.inference import loop
from consilience.models import MEMBERS, member


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a file of each kind, a fit of labels and one of rankings."""
    folder = tmp_path_factory.mktemp("cli")
    rows = [f"{item},{annotator},{label}" for item, labels in _LABELS.items() for annotator, label in enumerate(labels)]
    (folder / "labels.csv").write_text("\n".join(["item,annotator,label", *rows]))
    (folder / "right.csv").write_text("item,label\n" + "\n".join(f"{item},cat" for item in _LABELS))
    (folder / "wrong.csv").write_text("item,label\n" + "\n".join(f"{item},dog" for item in _LABELS))
    (folder / "groups.csv").write_text("class,group\ncat,pet\ndog,pet\nowl,bird\n")
    (folder / "groups.txt").write_text("pet\npet\nbird\n")
    assert main(["fit", "dirichlet", str(folder / "labels.csv"), "-o", str(folder / "run"), "--draws", "200"]) == 0
    assert main(["fit", "prirn", "stutz-2023-cases", "-o", str(folder / "cases"), "--draws", "200"]) == 0
    return folder


_LABELS = {"i1": ("cat", "cat", "cat"), "i2": ("cat", "dog", "cat"), "i3": ("owl", "cat", "dog"), "i4": ("cat", "cat")}


# ---- usage ----


def test_help_and_version_succeed(run, printed):
    shown = printed("--help")
    assert "130  interrupted" in shown
    assert all(f"\n    {name}" in shown for name in ("fit", "certainty", "evaluate", "compare", "report", "demo"))
    assert run("--version")[:2] == (0, f"consilience {cs.__version__}\n")


@pytest.mark.parametrize("words", [(), ("fti", "x"), ("fit", "dirichlet"), ("certainty", "run", "--group-rule", "x")])
def test_what_cannot_be_understood_is_a_usage_error(run, words):
    assert run(*words)[0] == ExitCode.usage


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("certianty", "run"), "did you mean 'certainty'?"),
        (("fit", "dawid-skene", "x.csv", "-o", "r", "--column", "item=id"), "'--column'; did you mean '--columns'?"),
        (("certainty", "run", "--jsno"), "usage: consilience certainty"),
        (("certainty", "run", "--jsno"), "there is no flag '--jsno'; did you mean '--json'?"),
        (("fit", "dawid-skene", "x.csv", "-o", "r", "--metod", "em"), "did you mean '--method'?"),
        (("fit", "dawid-skene", "x.csv", "-o", "r", "--dependense=1"), "did you mean '--dependence'?"),
        (("fit", "dawid-skene", "x.csv", "-o", "r", "--reliability", "3"), "'dawid-skene' has no flag '--reliability'"),
        (("fit", "--reliabilty", "3", "dirichlet", "x.csv", "-o", "r"), "did you mean '--reliability'?"),
    ],
)
def test_a_close_name_is_suggested(run, words, message):
    code, _, errors = run(*words)
    assert (code, message in errors) == (ExitCode.usage, True)


# ---- fit ----


def test_a_fit_says_what_was_read_and_can_be_loaded(folder, run, tmp_path):
    code, shown, errors = run("fit", "dirichlet", folder / "labels.csv", "-o", tmp_path / "run", "--alpha", "0.5")
    assert (code, errors) == (0, "")
    assert "11 annotations, 4 items, 3 annotators, 3 labels" in shown
    assert "exact, the first that the model lists" in shown
    assert "converged" in shown
    assert f"consilience certainty {tmp_path / 'run'}" in shown
    expected = cs.fit("dirichlet", cs.read_annotations(folder / "labels.csv"), alpha=0.5)
    loaded, expected = (fit.posterior.plausibility for fit in (cs.load_fit(tmp_path / "run"), expected))
    np.testing.assert_array_equal(loaded.concentration, expected.concentration)


def test_json_of_a_fit_describes_what_was_run(run, tmp_path):
    words = ("--reliability=30", "--rank-weights", "published-code", "--seed", "7", "--json")
    code, shown, _ = run("fit", "prirn", "stutz-2023-cases", "-o", tmp_path / "run", *words)
    described = json.loads(shown)
    assert code == 0
    assert described["option_reliability"] == 30.0
    assert described["option_rank_weights"] == "published-code"
    assert described["seed"] == 7
    assert described["items"] == 3
    assert described["data_hash"] == cs.load("stutz-2023-cases").fingerprint()


def test_options_of_the_model_may_stand_anywhere_and_be_negative(run, tmp_path):
    (tmp_path / "r.csv").write_text("item,annotator,rating\na,1,-2.5\na,2,-2\nb,1,1\nb,2,0.5\n")
    code, _, _ = run("fit", "--threshold", "-1", "normal-inverse-gamma", tmp_path / "r.csv", "-o", tmp_path / "run")
    assert code == 0
    assert cs.load_fit(tmp_path / "run").options["threshold"] == -1.0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--reliability", "much"), "give a number"),
        (("--reliability", "0"), "must be above 0"),
        (("--alpha", "small"), "give a number"),
        (("--method", "gibs"), "no method is called 'gibs'"),
        (("--labels", "cat,dog"), "column 'label': this label is not in --labels (value 'owl')"),
        (("--columns", "label=lable"), "lable"),
    ],
)
def test_wrong_requests_are_errors_without_traceback(folder, run, tmp_path, words, message):
    code, shown, errors = run("fit", "dirichlet", folder / "labels.csv", "-o", tmp_path / "run", *words)
    assert (code, shown) == (ExitCode.error, "")
    assert errors.startswith("error: ")
    assert message in errors
    assert not (tmp_path / "run").exists()


def test_errors_name_file_line_and_column_and_speak_in_flags(refused, tmp_path):
    (tmp_path / "bad.csv").write_text("item,annotator,label\na,1,x\na,2,\n")
    errors = refused("fit", "dirichlet", tmp_path / "bad.csv", "-o", tmp_path / "run")
    assert f"{tmp_path / 'bad.csv'}, line 3, column 'label': the label is empty" in errors
    assert "pass --missing drop" in errors


def test_repairs_are_warned_of_in_one_line_each(run, tmp_path):
    (tmp_path / "bad.csv").write_text("item,annotator,label\na,1,x\na,2,\na,1,y\n")
    code, _, errors = run("fit", "dirichlet", tmp_path / "bad.csv", "-o", tmp_path / "run", "--missing", "drop")
    assert code == 0
    assert [line.split(" ")[0] for line in errors.splitlines()] == ["warning:", "warning:"]


def test_flags_of_reading_reach_the_reader(run, tmp_path):
    (tmp_path / "wide.csv").write_text("pic;r1;r2\na;x;y\nb;x;\n")
    (tmp_path / "closed.txt").write_text("y\nx\nz\n")
    words = ("--layout", "wide", "--columns", "item=pic", "--classes", tmp_path / "closed.txt")
    assert run("fit", "dirichlet", tmp_path / "wide.csv", "-o", tmp_path / "run", *words)[0] == 0
    data = cs.load_fit(tmp_path / "run").data
    assert (list(data.items), list(data.labels)) == (["a", "b"], ["y", "x", "z"])


def test_a_flag_that_the_data_do_not_have_is_refused(refused, tmp_path):
    (tmp_path / "r.csv").write_text("item,annotator,rating\na,1,1\n")
    words = ("--layout", "wide", "--threshold", "0")
    errors = refused("fit", "normal-inverse-gamma", tmp_path / "r.csv", "-o", tmp_path / "run", *words)
    assert "--layout has no meaning for Ratings" in errors


def test_public_data_are_not_to_be_read_otherwise(refused, tmp_path):
    errors = refused("fit", "dirichlet", "dawid-skene-1979", "-o", tmp_path / "run", "--missing", "drop")
    assert "leave out --missing" in errors


def test_an_earlier_fit_is_replaced_by_force_only(run, refused, tmp_path):
    words = ("fit", "dirichlet", "dawid-skene-1979", "-o", tmp_path / "run", "--reliability")
    assert run(*words, "1")[0] == 0
    assert "--force" in refused(*words, "2")
    assert cs.load_fit(tmp_path / "run").options["reliability"] == 1.0
    assert run(*words, "2", "--force")[0] == 0
    assert cs.load_fit(tmp_path / "run").options["reliability"] == 2.0


def test_what_else_is_in_a_folder_is_never_replaced(run, refused, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    errors = refused("fit", "dirichlet", "dawid-skene-1979", "-o", tmp_path)
    assert "is not a saved fit; give a new folder, or --force to write a fit beside what is in it" in errors
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    assert run("fit", "dirichlet", "dawid-skene-1979", "-o", tmp_path, "--force")[0] == 0
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_poor_diagnostics_are_told_by_the_exit_code_and_the_fit_is_kept(folder, run, tmp_path):
    words = ("--method", "nuts", "--draws", "30", "--warmup", "5", "--chains", "1", "--quiet")
    code, shown, errors = run("fit", "dirichlet", folder / "labels.csv", "-o", tmp_path / "run", *words)
    assert code == ExitCode.poor
    assert "few effective draws" in errors
    assert "nuts, asked for" in shown
    assert cs.load_fit(tmp_path / "run").method == "nuts"


def test_ctrl_c_ends_with_130(folder, run, tmp_path, monkeypatch):
    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(cs, "fit", interrupt)
    code, shown, errors = run("fit", "dirichlet", folder / "labels.csv", "-o", tmp_path / "run")
    assert (code, shown, errors) == (ExitCode.interrupted, "", "interrupted\n")


def test_ctrl_c_before_the_first_step_offers_nothing_to_go_on_with(folder, run, tmp_path, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "_to_host", interrupt)
    code, shown, errors = run("fit", "dirichlet", folder / "labels.csv", "-o", tmp_path / "run", "--method", "nuts")
    assert (code, shown, errors) == (ExitCode.interrupted, "", "interrupted\n")
    assert not (tmp_path / "run").exists()


_NUTS = ("--method", "nuts", "--draws", "30", "--warmup", "5", "--chains", "1")


@pytest.fixture
def fit_stops(monkeypatch):
    """Return a function that lets Ctrl-C come at a step of the fits from then on; None: not at all."""
    original = cs.fit

    def stop_at(step):
        def interrupt(steps, _):
            if steps >= step:
                raise KeyboardInterrupt

        stopped = {} if step is None else {"progress": interrupt}
        monkeypatch.setattr(cs, "fit", lambda *args, **options: original(*args, **(options | stopped)))

    return stop_at


def uninterrupted(folder, **options):
    return cs.fit("dirichlet", cs.read_annotations(folder / "labels.csv"), method="nuts", **options)


def assert_same_draws(path, expected):
    np.testing.assert_array_equal(cs.load_fit(path).posterior.plausibility, expected.posterior.plausibility)


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
@pytest.mark.parametrize("last_step", [1, 20])
def test_ctrl_c_keeps_what_a_sampler_has_drawn_and_resume_goes_on(folder, run, refused, tmp_path, fit_stops, last_step):
    target = tmp_path / "a run"
    words = ("fit", "dirichlet", folder / "labels.csv", "-o", target, *_NUTS)
    fit_stops(last_step)
    code, shown, errors = run(*words)
    assert code == ExitCode.interrupted
    # Within the warm-up there is no draw to keep, but there is a run to go on with.
    assert (target / "fit.json").exists() == (last_step > 5)
    said = shown.partition("resume   ")[2].splitlines()[0] if last_step > 5 else errors.partition("go on with: ")[2]
    command = shlex.split(said)
    assert command == ["consilience", *map(str, words), "--resume"]
    if last_step > 5:
        assert cs.load_fit(target).result == "interrupted"

    errors = refused(*words)
    assert "--resume" in errors
    assert "--force" in errors

    fit_stops(last_step + 6)
    assert run(*command[1:])[0] == ExitCode.interrupted
    fit_stops(None)
    code, shown, _ = run(*command[1:], "--json")
    assert code in (ExitCode.success, ExitCode.poor)
    assert json.loads(shown)["resumed_at_step"] >= last_step + 6
    assert "resume" not in json.loads(shown)
    assert_same_draws(target, uninterrupted(folder, draws=30, warmup=5, chains=1))
    assert not (target / "checkpoint").exists()

    assert run(*command[1:])[:2] == (ExitCode.success, f"complete {target}, as it was\n")
    for other in (("--seed", "9"), ("--reliability", "3")):
        assert "complete, but of other data or settings" in refused(*command[1:], *other)


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_a_time_limit_before_the_first_draw_leaves_a_run_to_resume(folder, run, tmp_path):
    words = ("fit", "dirichlet", folder / "labels.csv", "-o", tmp_path / "run", *_NUTS)
    code, shown, errors = run(*words, "--time-limit", "0")
    assert (code, shown) == (ExitCode.error, "")
    assert "before the first draw" in errors
    assert "--time-limit 0 --resume" in errors
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["checkpoint"]
    assert run(*words, "--resume")[0] in (ExitCode.success, ExitCode.poor)
    assert_same_draws(tmp_path / "run", uninterrupted(folder, draws=30, warmup=5, chains=1))


def test_a_run_is_gone_on_with_as_it_was_or_started_again(folder, run, refused, tmp_path, fit_stops):
    words = ("fit", "dirichlet", folder / "labels.csv", "-o", tmp_path / "run", *_NUTS)
    assert run(*words, "--resume", "--time-limit", "0")[0] == ExitCode.error  # nothing there yet: a fresh start
    kept = (tmp_path / "run" / "checkpoint" / "checkpoint.json").read_text()
    for wrong, message in (
        (("--seed", "1"), "seed 1 here, 0 in the checkpoint"),
        (("--alpha", "0.5"), "priors"),
        (("--x64",), "precision float64 here, float32 in the checkpoint"),
        (("--force",), "give one of them"),
    ):
        assert message in refused(*words, "--resume", *wrong)
        assert (tmp_path / "run" / "checkpoint" / "checkpoint.json").read_text() == kept
    fit_stops(1)
    code, _, errors = run(*words, "--force", "--seed", "1")
    assert code == ExitCode.interrupted
    assert "--force" not in errors
    fit_stops(None)
    assert run(*words, "--resume", "--seed", "1")[0] in (ExitCode.success, ExitCode.poor)
    assert cs.load_fit(tmp_path / "run").seed == 1


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_a_run_that_was_complete_is_not_lost_before_it_is_saved(folder, run, tmp_path, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    words = ("fit", "dirichlet", folder / "labels.csv", "-o", tmp_path / "run", *_NUTS)
    with monkeypatch.context() as patch:
        patch.setattr("consilience.inference.fitting.Fit.findings", interrupt)
        code, _, errors = run(*words)
    assert code == ExitCode.interrupted
    assert errors == f"interrupted; go on with: {shlex.join(['consilience', *map(str, words), '--resume'])}\n"
    code, shown, _ = run(*words, "--resume", "--json")
    assert code in (ExitCode.success, ExitCode.poor)
    assert json.loads(shown)["resumed_at_step"] == 35
    assert_same_draws(tmp_path / "run", uninterrupted(folder, draws=30, warmup=5, chains=1))


def test_a_run_that_cannot_begin_leaves_no_folder(folder, run, tmp_path, monkeypatch):
    import consilience.inference.nuts as nuts

    def fail(*args, **options):
        raise NonFinite("no start")

    monkeypatch.setattr(nuts, "run_nuts", fail)
    code, _, errors = run("fit", "dirichlet", folder / "labels.csv", "-o", tmp_path / "run", *_NUTS)
    assert (code, errors) == (ExitCode.error, "error: no start\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", ["SIGKILL", "SIGINT"])
@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_a_process_that_is_stopped_can_be_resumed(folder, run, tmp_path, number):
    settings = {"draws": 10000, "warmup": 5, "chains": 1}
    words = ["fit", "dirichlet", folder / "labels.csv", "-o", tmp_path / "run", "--method", "nuts", "--quiet"]
    words = [str(word) for word in (*words, *(f"--{name}={value}" for name, value in settings.items()))]
    # A shell starts what it runs in the background with SIGINT ignored, and that is inherited.
    earlier = signal.signal(signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen([sys.executable, "-m", "consilience", *words], stderr=subprocess.PIPE)
    signal.signal(signal.SIGINT, earlier)
    while process.poll() is None and not (tmp_path / "run" / "checkpoint" / "checkpoint.json").exists():
        time.sleep(0.01)
    process.send_signal(signal.Signals[number])
    errors = process.communicate()[1].decode()
    assert process.returncode == (-signal.SIGKILL if number == "SIGKILL" else ExitCode.interrupted), errors
    code, shown, _ = run(*words, "--resume", "--json")
    assert code in (ExitCode.success, ExitCode.poor)
    assert 0 < json.loads(shown)["resumed_at_step"] < 10005
    assert_same_draws(tmp_path / "run", uninterrupted(folder, **settings))


def test_double_precision_is_for_this_fit_alone(folder, run, tmp_path, monkeypatch):
    import jax

    seen, original = [], cs.fit
    monkeypatch.setattr(cs, "fit", lambda *args, **options: seen.append(_precision()) or original(*args, **options))
    words = ("fit", "dirichlet", folder / "labels.csv", "-o")
    assert run(*words, tmp_path / "single")[0] == run(*words, tmp_path / "double", "--x64")[0] == 0
    assert seen == [np.float32, np.float64]
    assert _precision() == np.float32
    assert not jax.config.jax_enable_x64


def _precision():
    import jax

    return jax.numpy.ones(1).dtype


# ---- what one does with a fit ----


def test_tables_are_those_of_the_fit(folder, run, printed, tmp_path):
    expected = cs.load_fit(folder / "run").labels()
    shown = printed("table", folder / "run", "--json", "--csv", tmp_path / "labels.csv")
    pandas.testing.assert_frame_equal(pandas.DataFrame(json.loads(shown)), expected, check_dtype=False)
    assert len(pandas.read_csv(tmp_path / "labels.csv")) == len(expected)
    code, _, errors = run("table", folder / "run", "annotators")
    assert code == 1
    assert "it has labels" in errors


def test_certainty_is_that_of_the_library(folder, run):
    expected = cs.certainty(cs.load_fit(folder / "run"), top=2)
    code, shown, _ = run("certainty", folder / "run", "--top", "2", "--json")
    row = json.loads(shown)
    assert code == 0
    assert row["value"] == expected.value
    assert row["sd"] == expected.sd
    assert row["interval"] == list(expected.interval)
    assert row["below_0.9"] == (expected.items < 0.9).sum()


def test_certainty_shows_the_least_certain_items_first(folder, run):
    code, shown, _ = run("certainty", folder / "run", "--exact")
    rows = shown.partition("the least certain items\n")[2].splitlines()
    assert code == 0
    assert rows[0].split() == ["item", "classes", "certainty"]
    assert rows[1].startswith("i3")
    assert "below 0.99" in shown


def test_items_as_json_and_csv_have_the_columns_of_the_table(folder, run, tmp_path):
    table = cs.certainty(cs.load_fit(folder / "run")).table
    _, shown, _ = run("certainty", folder / "run", "--items", "--json", "--csv", tmp_path / "items.csv")
    assert json.loads(shown) == table.to_dict("records")
    pandas.testing.assert_frame_equal(pandas.read_csv(tmp_path / "items.csv"), table, check_dtype=False)


@pytest.mark.parametrize("groups", ["groups.csv", "groups.txt"])
@pytest.mark.parametrize("by", ["top", "sum"])
def test_certainty_after_mapping_classes(folder, run, groups, by):
    fit = cs.load_fit(folder / "run")
    risk = cs.read_class_map(folder / "groups.csv")
    _, shown, _ = run("certainty", folder / "run", "--class-groups", folder / groups, "--group-rule", by, "--json")
    assert json.loads(shown)["value"] == cs.certainty(fit, class_groups=risk, group_rule=by).value


def test_evaluation_has_a_row_for_each_system_and_metric(folder, run, tmp_path):
    fit = cs.load_fit(folder / "run")
    files = (folder / "right.csv", folder / "wrong.csv")
    words = ("--metric", "top-1", "--metric", "set-1", "--csv", tmp_path / "items.csv", "--json")
    code, shown, _ = run("evaluate", folder / "run", "--predictions", *files, *words)
    rows = json.loads(shown)
    assert code == 0
    assert [(row["system"], row["metric"]) for row in rows] == [
        ("right", "top-1"), ("right", "set-1"), ("wrong", "top-1"), ("wrong", "set-1"),
    ]  # fmt: skip
    expected = cs.evaluate(fit, cs.read_predictions(files[0]), "top-1")
    assert rows[0]["value"] == expected.value
    assert rows[0]["point_estimate"] == expected.point
    assert set(expected.row()) < set(rows[0])
    assert rows[0]["notes"] == list(expected.notes)
    assert "whether the system looked at the items itself" in rows[0]["notes"][0]
    with open(tmp_path / "items.csv", newline="") as file:
        items = list(csv.DictReader(file))
    assert list(items[0]) == ["item", "right top-1", "right set-1", "wrong top-1", "wrong set-1"]
    np.testing.assert_allclose([float(row["right top-1"]) for row in items], expected.items)


def test_columns_are_of_the_files_that_have_them(folder, run, tmp_path):
    (tmp_path / "said.csv").write_text((folder / "right.csv").read_text().replace("label", "said", 1))
    files = (tmp_path / "said.csv", folder / "wrong.csv")
    assert run("evaluate", folder / "run", "--predictions", *files, "--columns", "class=said")[0] == 0
    code, _, errors = run("evaluate", folder / "run", "--predictions", *files, "--columns", "class=sayd")
    assert (code, "there is no column 'sayd'" in errors) == (1, True)


def test_evaluation_by_group_adds_its_table(folder, run):
    words = ("evaluate", folder / "run", "--predictions", folder / "right.csv", "--class-groups", folder / "groups.csv")
    fit, risk = cs.load_fit(folder / "run"), cs.read_class_map(folder / "groups.csv")
    expected = cs.evaluate(fit, cs.read_predictions(folder / "right.csv"), class_groups=risk).by_group
    groups = json.loads(run(*words, "--json")[1])[0]["by_group"]
    assert [row["group"] for row in groups] == list(expected["group"])
    # The point estimate may put no item into a group: not a number is null.
    assert [row["value_by_point_estimate"] for row in groups] == [
        None if np.isnan(value) else value for value in expected["value_by_point_estimate"]
    ]
    assert "given the group of the top class" in run(*words)[1]

    words = ("compare", folder / "run", folder / "right.csv", folder / "wrong.csv", *words[4:])
    groups = json.loads(run(*words, "--json")[1])["by_group"]
    expected_rows = [(system, group) for system in ("right", "wrong") for group in risk.groups]
    assert [(row["system"], row["group"]) for row in groups] == expected_rows
    assert [row["value"] for row in groups[: len(expected)]] == expected["value"].tolist()
    assert "given the group of the top class" in run(*words)[1]


def test_missing_predictions_are_an_error_until_dropped(folder, printed, refused):
    words = ("evaluate", folder / "cases", "--predictions", "stutz-2023-predictions", "--metric", "top-3")
    assert "pass --missing drop" in refused(*words)
    shown = printed(*words, "--missing", "drop")
    assert [line.split()[0] for line in shown.splitlines()[:4]] == ["system", "A", "B", "D"]
    assert shown.splitlines()[5].startswith("Not in this interval: whether the system looked at the items itself")


def test_comparison_has_the_leaderboard_and_the_pairs(folder, run):
    files = {"good": folder / "right.csv", "bad": folder / "wrong.csv"}
    systems = {name: cs.read_predictions(file) for name, file in files.items()}
    expected = cs.compare(cs.load_fit(folder / "run"), systems)
    code, shown, _ = run("compare", folder / "run", *files.values(), "--names", "good,bad", "--json")
    found = json.loads(shown)
    assert code == 0
    assert found["leaderboard"] == expected.table.to_dict("records")
    assert found["pairs"] == expected.pairs.to_dict("records")
    assert "p_best" in run("compare", folder / "run", *files.values())[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("compare", "run", "right.csv", "right.csv"), "more than one system is called right; give other --names"),
        (("compare", "run", "right.csv", "--names", "a,b"), "gives 2 names for 1 systems"),
        (("compare", "run", "right.csv", "--metric", "top-1", "--metric", "top-2"), "give --metric once"),
        (("compare", "run", "right.csv", "--metric", "best"), "no metric is called 'best'"),
        (("evaluate", "run", "--predictions", "cifar10h"), "holds no predictions"),
        (("certainty", "run", "--class-groups", "cifar10h"), "is no class map"),
        (("certainty", "run", "--top", "9"), "from 1 to 3"),
        (("certainty", "labels.csv"), "is not a folder"),
        (("certainty", "."), "has no fit.json"),
        (("certainty", "run", "--csv", "no/such/folder.csv"), "because no/such is not a folder"),
    ],
)
def test_errors_after_the_fit(folder, run, monkeypatch, words, message):
    monkeypatch.chdir(folder)
    code, shown, errors = run(*words)
    assert (code, shown) == (ExitCode.error, "")
    assert message in errors


@pytest.mark.parametrize("given", [("--predictions", "{}/right.csv", "{}/wrong.csv"),
                                   ("--predictions", "{}/right.csv", "--predictions", "{}/wrong.csv")])  # fmt: skip
def test_a_report_is_written(folder, run, tmp_path, given):
    words = (*(one.format(folder) for one in given), "--metric", "top-1", "--title", "Pets")
    code, shown, _ = run("report", folder / "run", *words, "-o", tmp_path / "r.html")
    assert (code, shown) == (0, f"wrote {tmp_path / 'r.html'}\n")
    page = (tmp_path / "r.html").read_text()
    assert "<title>Pets" in page
    assert all(f"<td>{name}</td>" in page for name in ("right", "wrong"))


# ---- what there is ----


def test_models_are_listed_with_their_contract(run):
    code, shown, _ = run("models", "--json")
    rows = json.loads(shown)
    assert code == 0
    assert [row["name"] for row in rows] == list(MEMBERS)
    assert all(name in run("models")[1] for name in MEMBERS)


@pytest.mark.parametrize("name", MEMBERS)
def test_a_model_is_described_by_what_it_declares(run, printed, name):
    shown = printed("models", name)
    assert all(
        f"--{option.name.replace('_', '-')}" in shown and option.help in shown
        for option in member(name).settings.fields()
    )
    described = json.loads(run("models", name, "--json")[1])
    assert described["methods"] == list(member(name).methods)
    assert described["tables"] == [*member(name).table_names, *member(name).measured_tables]


@pytest.mark.parametrize("name", MEMBERS)
def test_the_registry_tells_the_contract_that_the_member_declares(name):
    assert list(MEMBERS[name].takes) == [contract.__name__ for contract in member(name).takes]
    assert all(contract.columns and contract.reader for contract in member(name).takes)


def test_what_a_contract_is_looked_at_by_is_a_command():
    assert {contract.command for contract in DATA} <= set(COMMANDS)


def test_the_papers_are_cited(run):
    assert run("cite", "prirn")[1].startswith("@article{stutz2023evaluating")
    assert run("cite", "prin")[0] == ExitCode.error


def test_public_data_are_listed_described_and_found(run, refused, tmp_path, monkeypatch):
    monkeypatch.delenv("CONSILIENCE_DATA", raising=False)
    monkeypatch.setenv("CONSILIENCE_CACHE", str(tmp_path))
    stored = {row["name"]: row["stored"] for row in json.loads(run("data", "list", "--json")[1])}
    assert stored["dawid-skene-1979"] == "shipped"
    assert stored["cifar10h"] == "no"
    assert "Peterson" in run("data", "describe", "cifar10h")[1]
    assert "Peterson" in json.loads(run("data", "describe", "cifar10h", "--json")[1])["citation"]
    assert "cifar10h" in run("data", "list")[1]
    assert "say which data set" in refused("data", "get")


def test_nothing_but_warnings_of_ours_decides_the_exit_code(run, monkeypatch):
    import warnings

    def warn(arguments):
        warnings.warn("the chains\n  disagree", DiagnosticWarning, stacklevel=1)

    monkeypatch.setitem(COMMANDS, "cite", (*COMMANDS["cite"][:1], warn, "x"))
    assert run("cite", "irn") == (ExitCode.poor, "", "warning: the chains disagree\n")


def test_a_reader_who_has_seen_enough_is_no_error():
    code = (
        "import sys, io, os; from consilience.cli import main\n"
        "r, w = os.pipe(); os.close(r); os.dup2(w, 1)\n"
        "sys.exit(main(['data', 'list']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_module_is_the_command():
    words = [sys.executable, "-m", "consilience", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == f"consilience {cs.__version__}\n"


# ---- printing ----


def test_tables_are_aligned_short_and_say_what_they_leave_out():
    from consilience.printing import table_text

    rows = [{"name": "a" * 80, "value": 1 / 3, "none": None}, {"name": "b", "value": float("nan"), "none": None}]
    lines = table_text([*rows, *rows], limit=2).splitlines()
    assert lines[0].split() == ["name", "value"]
    assert lines[1].endswith("…  0.3333")
    assert lines[3] == "… and 2 more (use --json)"
    assert table_text([]) == "(no rows)"


def test_json_knows_no_nan():
    from consilience.printing import json_text

    value = {"a": np.float32("nan"), "b": [np.int64(3), float("inf")], "c": np.array([1.5, np.nan]), "d": True}
    assert json.loads(json_text(value)) == {"a": None, "b": [3, None], "c": [1.5, None], "d": True}


def test_csv_leaves_unknown_numbers_empty(tmp_path):
    from consilience.printing import write_columns

    write_columns(pandas.DataFrame({"item": ["a,b", "c"], "x": [0.1, float("nan")]}), tmp_path / "t.csv")
    rows = list(csv.reader(io.StringIO((tmp_path / "t.csv").read_text())))
    assert rows == [["item", "x"], ["a,b", "0.1"], ["c", ""]]


def test_columns_are_written_part_by_part(tmp_path, monkeypatch):
    from consilience import printing

    values = {"item": ["a,b", 'c"d', "é"], "x": [0.1, np.nan, np.inf], "n": [1, 2, 3], "known": [True, False, True]}
    frame = pandas.DataFrame({**values, "y": [0.5, 1e-30, 2], "other": np.array(["a", None, 1.5], object)})
    monkeypatch.setattr(printing, "_ROWS", 2)
    printing.write_columns({name: frame[name].to_numpy() for name in frame}, tmp_path / "columns.csv")
    printing.write_columns(frame, tmp_path / "frame.csv")
    expected = 'item,x,n,known,y,other\r\n"a,b",0.1,1,True,0.5,a\r\n"c""d",,2,False,1e-30,\r\né,,3,True,2.0,1.5\r\n'
    assert (tmp_path / "columns.csv").read_bytes() == (tmp_path / "frame.csv").read_bytes() == expected.encode()
