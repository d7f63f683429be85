"""Help that names what applies, completion, numbers as they are usually written, and bars that end at 100 %."""

import io
import subprocess
import sys
import warnings

import pytest

from consilience import models
from consilience.cli import main
from consilience.commands import grammar
from consilience.commands.help import known_options
from consilience.errors import ConsilienceWarning, DiagnosticWarning, InputWarning
from consilience.progress import Steps


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


def test_a_bar_of_a_run_that_converged_ends_at_its_last_step(monkeypatch):
    shown = io.StringIO()
    shown.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", shown)
    for converged in (True, False):
        bar = Steps(10000, "cavi")
        bar.to(20)
        bar.close(converged=converged)
    first, second = shown.getvalue().rstrip("\n").split("\n")
    assert "100%" in first
    assert "20/20" in first
    assert "converged" in first
    assert "20/10000" in second
