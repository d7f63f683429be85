"""What the tests of the command share: one way to run it, and no compiled programs left behind."""

import io
import sys

import pytest

from consilience.cli import main


@pytest.fixture(autouse=True, scope="module")
def _no_compilation_cache():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONSILIENCE_COMPILATION_CACHE", "off")
        yield


@pytest.fixture
def run(capsys, monkeypatch):
    """Return a function that runs the command and returns its exit code, output and errors.

    ``piped`` is the text of standard input.
    """

    def run(*words, piped=""):
        capsys.readouterr()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped.encode())))
        code = main([str(word) for word in words])
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return code, shown.out, shown.err

    return run


@pytest.fixture
def printed(run):
    """Return a function that runs the command, which is to succeed, and returns what it prints."""

    def printed(*words, may_be_poor=False):
        code, shown, errors = run(*words)
        # Crowds of tests are small, and what the gate says of them is no failure of the command.
        poor = may_be_poor or "the annotators agree" in errors
        assert code == 0 or (poor and code == 3), errors
        return shown

    return printed


@pytest.fixture
def refused(run):
    """Return a function that runs the command, which is to refuse, and returns its errors."""

    def refused(*words):
        code, _, errors = run(*words)
        assert code == 1
        return errors

    return refused
