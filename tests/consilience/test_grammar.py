"""Help that names what applies, completion, numbers as they are usually written, and bars that end at 100 %."""

import contextlib
import gzip
import hashlib
import io
import subprocess
import sys
import warnings
from types import SimpleNamespace

import pytest

import consilience as cs
from consilience import models, progress
from consilience.cli import main
from consilience.commands import grammar
from consilience.commands.help import known_options
from consilience.data import catalogue
from consilience.errors import ConsilienceWarning, DiagnosticWarning, InputWarning
from consilience.progress import Steps, showing


@pytest.mark.parametrize("name", models.names())
def test_help_of_a_model_has_its_options_and_how_its_data_are_read(capsys, name):
    assert main(["fit", name, "--help"]) == 0
    shown = capsys.readouterr().out
    about = known_options()[name]
    for one in about["options"]:
        assert f"--{one['name'].replace('_', '-')} " in shown
    for flag, of in (("--antecedents", "antecedents"), ("--layout", "layout"), ("--features", "features")):
        assert (flag in shown) == (of in about["reading"])


@pytest.mark.parametrize("text", ["name=string,born=date", "name:string, born:date"])
def test_columns_and_their_words_are_written_with_either_sign(text):
    expected = {"name": "string", "born": "date"}
    asked = grammar.parser("link").parse_args(["link", "x.csv", "--similar", text, "--clean", text, "--fields", text])
    assert (asked.similar, asked.clean, asked.fields) == (expected, expected, expected)


def test_help_of_fit_alone_has_no_flags_of_reading(capsys):
    assert main(["fit", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--draws" in shown
    assert not any(flag in shown for flag in ("--missing", "--layout", "--entity", "--antecedents"))


def test_no_help_imports_jax():
    code = (
        "import sys; from consilience.cli import main\n"
        "for words in (['--help'], ['fit', '--help'], ['fit', 'mpa', '--help'], ['--print-completion', 'bash']):\n"
        "    main(words)\n"
        "print(sorted({'jax', 'numpy', 'pandas'} & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr == "[]\n"


@pytest.mark.parametrize(
    ("category", "plain", "strict"), [(ConsilienceWarning, 0, 3), (DiagnosticWarning, 3, 3), (InputWarning, 0, 0)]
)
def test_warnings_of_a_fit_end_with_3_if_that_is_asked_for(capsys, monkeypatch, category, plain, strict):
    def warn(arguments):
        warnings.warn(category("poor"), stacklevel=1)

    build, _, line = grammar.COMMANDS["fit"]
    monkeypatch.setitem(grammar.COMMANDS, "fit", (build, warn, line))
    words = ["fit", "dirichlet", "labels.csv", "-o", "run"]
    assert main(words) == plain
    assert main([*words, "--strict"]) == strict
    assert capsys.readouterr().err.count("warning: poor") == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_knows_commands_flags_and_models(capsys, shell):
    assert main(["--print-completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(word in script for word in ("agreement", "class-groups", "dawid-skene"))


def test_completion_says_what_is_not_installed(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["--print-completion", "bash"]) == 1
    assert "pip install 'consilience[completion]'" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--draws", "--chains", "--tolerance", "--time-limit", "--seed"])
@pytest.mark.parametrize("value", ["1_0", "nan", "inf", "1e400", "٣", "9" * 40])
def test_numbers_are_plain_decimals(capsys, flag, value):
    if value == "9" * 40 and flag in ("--tolerance", "--time-limit"):
        return  # a large number, and a decimal one
    assert main(["fit", "dirichlet", "labels.csv", "-o", "run", flag, value]) == 2
    assert "give a " in capsys.readouterr().err


@pytest.fixture
def terminal(monkeypatch):
    """Return what a terminal shows, where bars do not wait for a second."""
    shown = io.StringIO()
    shown.isatty = lambda: True
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=shown))
    monkeypatch.setattr(progress, "_SECONDS", 0.0)
    return shown


def test_a_bar_of_a_run_that_converged_ends_at_its_last_step(terminal):
    for converged in (True, False):
        bar = Steps(10000, "cavi")
        bar.to(20)
        bar.close(converged=converged)
    first, second = terminal.getvalue().rstrip("\n").split("\n")
    assert "100%" in first
    assert "20/20" in first
    assert "converged" in first
    assert "20/10000" in second


def _reading(folder):
    with gzip.open(folder / "a.csv.gz", "wt") as file:
        file.write("item,annotator,label\na,b,c\na,d,c\n")
    cs.read_annotations(folder / "a.csv.gz")


def _scoring(folder):
    fit = cs.fit("dirichlet", cs.Annotations.from_counts([[3, 0], [1, 2]], labels=["no", "yes"]), draws=5)
    cs.evaluate(fit, {"0": "no", "1": "yes"}, exact=False)


def _linking(folder):
    people = {"name": list("AABBCDEF"), "town": list("UUBBUBUB"), "born": [80, 80, 75, 75, 90, 91, 60, 44]}
    cs.link({"id": list("abcdefgh"), **people})


def _report(folder):
    cs.report(cs.agreement(cs.Annotations.from_counts([[3, 0], [1, 2]])), path=folder / "page.html")


def _download(folder):
    file = catalogue.PublicFile("a.txt", "of/us", "0" * 40, "a.txt", hashlib.sha256(b"abc").hexdigest())
    catalogue._download(file, folder / "a.txt")


@pytest.mark.parametrize(
    ("work", "names"),
    [
        (_reading, ["reading a.csv.gz"]), (_scoring, ["scoring"]), (_report, ["report"]),
        (_linking, ["joining records", "em", "enumerating"]), (_download, ["downloading a.txt"]),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
def test_what_takes_long_has_a_bar_that_ends_at_100_percent(work, names, terminal, tmp_path, monkeypatch):
    reply = io.BytesIO(b"abc")
    reply.headers = {"Content-Length": "3"}
    monkeypatch.setattr("urllib.request.urlopen", lambda address, timeout: reply)
    work(tmp_path)
    ended = {line.split(":")[0]: line.split("\r")[-1] for line in terminal.getvalue().rstrip("\n").split("\n")}
    ended = {name.split("\r")[-1]: line for name, line in ended.items()}
    assert ended.keys() >= set(names)
    assert all("100%" in line for line in ended.values()), ended


def test_no_bar_is_shown_elsewhere_or_where_none_is_wanted(terminal, tmp_path, capsys):
    with showing(False):
        _reading(tmp_path)
        cs.fit("dirichlet", tmp_path / "a.csv.gz")
    cs.fit("dirichlet", tmp_path / "a.csv.gz", progress=False)
    (tmp_path / "p.csv").write_text("item,label\na,c\n")
    assert main(["fit", "dirichlet", str(tmp_path / "a.csv.gz"), "-o", str(tmp_path / "run"), "--quiet"]) == 0
    assert main(["evaluate", str(tmp_path / "run"), "--predictions", str(tmp_path / "p.csv"), "--quiet"]) == 0
    assert terminal.getvalue() == ""
    terminal.isatty = lambda: False
    _reading(tmp_path)
    assert terminal.getvalue() == ""


def test_an_error_ends_a_bar_where_it_is(terminal):
    with contextlib.suppress(ZeroDivisionError), progress.steps(10, "work") as bar:
        bar.to(3)
        raise ZeroDivisionError
    assert "3/10" in terminal.getvalue()
    assert "10/10" not in terminal.getvalue()
