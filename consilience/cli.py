"""The command `consilience`: its words, its exit codes, and how it speaks of errors and warnings.

What it understands is in `consilience.commands.grammar`, what it does beside that. Neither imports JAX, pandas or even
NumPy before the input has been looked at, so that `--help` and a wrong file name answer at once.
"""

from __future__ import annotations

import _thread
import argparse
import os
import re
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from consilience.commands import ExitCode
from consilience.commands.files import checked_outputs, piped_inputs
from consilience.commands.grammar import COMMANDS, FLAGS, parser
from consilience.commands.help import completion, known_options
from consilience.deprecation import RENAMED, RENAMED_FLAGS, current
from consilience.errors import ConsilienceError, ConsilienceWarning, DiagnosticWarning, no_such
from consilience.inference.compilation import whole_compilations
from consilience.printing import printable
from consilience.progress import showing

_SOON = 0.05  # seconds
# How XLA says that there is no more memory, and the loader of libraries.
_OF_MEMORY = ("RESOURCE_EXHAUSTED", "failed to map segment", "cannot allocate memory", "Cannot allocate memory")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; tracebacks are for bugs only.

    Parameters
    ----------
    argv : the words after `consilience`; those of the process by default.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        arguments = _parse(words)
    except SystemExit as end:
        return int(end.code or 0)
    except ConsilienceError as error:
        return _fail(error.words("flags"))
    for stream in (sys.stdout, sys.stderr):
        # Names of files need not be text, and not every terminal knows all letters. Notebooks have other streams.
        if getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    with _spoken_warnings(strict=getattr(arguments, "strict", False)) as poor:
        try:
            _take_old_flags(arguments, words)
            quiet = False if getattr(arguments, "quiet", False) else None
            with showing(quiet), _kept_interrupts(), checked_outputs(arguments), piped_inputs(arguments):
                code = arguments.run(arguments)
            sys.stdout.flush()
        except ConsilienceError as error:
            return _fail(error.words("flags"))
        except BrokenPipeError:
            # The reader has seen enough, as in `| head`. Python would complain again when it closes stdout.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return ExitCode.success
        except (MemoryError, RuntimeError, ImportError) as error:
            if not isinstance(error, MemoryError) and not any(one in str(error) for one in _OF_MEMORY):
                raise
            return _fail("there is not enough memory; give fewer rows or draws, or a machine with more")
        except OSError as error:
            return _fail(f"{error.filename or ''}: {error.strerror or error}".removeprefix(": "))
        except KeyboardInterrupt as stop:
            print("; ".join(["interrupted", *map(str, stop.args)]), file=sys.stderr)
            return ExitCode.interrupted
    return code or (ExitCode.poor if poor else ExitCode.success)


@contextmanager
def _kept_interrupts() -> Iterator[None]:
    """Raise Ctrl-C again where it came in a destructor or a callback, out of which Python lets no error.

    It also waits for the end of a compilation.
    """
    before, again = sys.unraisablehook, list[threading.Timer]()

    def keep(lost: Any) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            before(lost)
            return
        again.append(threading.Timer(_SOON, _thread.interrupt_main))  # at once it would come in here
        again[-1].daemon = True
        again[-1].start()

    sys.unraisablehook = keep
    try:
        with whole_compilations():
            yield
    finally:
        sys.unraisablehook = before
        for timer in again:
            timer.cancel()


def _fail(message: str) -> int:
    print(f"error: {printable(message)}", file=sys.stderr)
    return ExitCode.error


@contextmanager
def _spoken_warnings(*, strict: bool) -> Iterator[list[str]]:
    """Print warnings as one line each; yield those that say that diagnostics are poor, or that a fit warns of at all.

    Parameters
    ----------
    strict : whether warnings of a fit count; those of input and of old names never do.
    """
    poor: list[str] = []

    def speak(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        words = message.words("flags") if isinstance(message, ConsilienceWarning) else str(message)
        text = " ".join(words.split())
        print(f"warning: {printable(text)}", file=sys.stderr)
        if issubclass(category, DiagnosticWarning) or (strict and category is ConsilienceWarning):
            poor.append(text)

    with warnings.catch_warnings():
        warnings.simplefilter("always", ConsilienceWarning)
        warnings.showwarning = speak
        yield poor


def _take_old_flags(arguments: argparse.Namespace, words: list[str]) -> None:
    """Put what was given by a flag's old name where its new name has it."""
    command = next(word for word in words if not word.startswith("-"))
    names = RENAMED_FLAGS.get(command, {})
    given = {name: getattr(arguments, name) for pair in names.items() for name in pair}
    given = {name: value for name, value in given.items() if value is not None}
    vars(arguments).update(current(given, command, table=RENAMED_FLAGS))


def _parse(words: list[str]) -> argparse.Namespace:
    completed = bool(words) and words[0].startswith("--print-completion")
    command = None if completed else next((word for word in words if not word.startswith("-")), None)
    options = _unknown_options(words, FLAGS[command]) if command in FLAGS else []
    of_models = _options_of_models() if options else {}
    every = {option for own in of_models.values() for option in own}
    # A flag of no model is not taken for one with a value, which might be the next word.
    whole = parser(command, [option for option in options if option in every], _helped_model(words, command))
    if command is not None and command not in COMMANDS:
        listed = f"the commands are {', '.join(COMMANDS)}"
        whole.error(str(no_such(f"no command is called '{command}'", command, COMMANDS, listed)))
    arguments, unknown = whole.parse_known_args(words)
    if command in COMMANDS:
        given = [option for option in options if getattr(arguments, f"option {option}", None) is not None]
        own = of_models.get(getattr(arguments, "model", ""), every)
        if foreign := [f"--{option}" for option in given if option not in own]:
            _refuse(whole, command, f"'{arguments.model}' has", foreign, own)
        if unknown:
            _refuse(whole, command, "there is", unknown, own)
    if arguments.print_completion:
        print(completion(parser(), arguments.print_completion))
        raise SystemExit(ExitCode.success)
    if command is None:
        whole.print_help()
        raise SystemExit(ExitCode.usage)
    arguments.words = words
    if command in FLAGS:
        arguments.member_options = {option: getattr(arguments, f"option {option}") for option in given}
    return arguments


def _options_of_models() -> dict[str, list[str]]:
    """Return the flags that each model has of its own, old names too, as `.ci/stubs` wrote them."""
    names = {model: [one["name"] for one in known["options"]] for model, known in known_options().items()}
    return {model: [name.replace("_", "-") for name in (*own, *RENAMED.get(model, ()))] for model, own in names.items()}


def _refuse(
    whole: argparse.ArgumentParser, command: str, whose: str, words: list[str], own: Iterable[str]
) -> NoReturn:
    """Exit with the usage of the command, as words are left over: the nearest flag may have been meant."""
    choices = next(action.choices for action in whole._actions if isinstance(action, argparse._SubParsersAction))
    sub: argparse.ArgumentParser = dict(choices or ())[command]
    flag = next((word.split("=")[0] for word in words if word.startswith("-")), None)
    if flag is None:
        sub.error(f"there is no place for {' '.join(words)}")
    # Help hides the flags that do not suit all models, such as those of reading; an error may mean them.
    shown = [f"--{name}" for name in (*own, *FLAGS.get(command, ()))]
    shown += [name for name, one in sub._option_string_actions.items() if one.help != argparse.SUPPRESS]
    sub.error(str(no_such(f"{whose} no flag '{flag}'", flag, shown, f"`{sub.prog} --help` lists them")))


def _helped_model(words: list[str], command: str | None) -> str | None:
    """Return the model of whose flags help is asked for; None of another word, or without one."""
    if command not in FLAGS or not {"-h", "--help"}.intersection(words):
        return None
    named = [word for word in words if not word.startswith("-")]
    return next((word for word in named[1:2] if word in known_options()), None)


def _unknown_options(words: list[str], flags: Mapping[str, Any]) -> list[str]:
    """Return the flags that the command does not know: the model's own, which only its module can tell."""
    named = dict.fromkeys(word.removeprefix("--").split("=")[0] for word in words if re.match(r"--\w", word))
    known = {"help", "version", *flags}
    return [name for name in named if name not in known]
