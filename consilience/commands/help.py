"""What help and completion say of models, without JAX: `.ci/stubs` writes what is known of them to options.json."""

from __future__ import annotations

import argparse
import importlib.resources
import json
from collections.abc import Iterator
from typing import Any

from consilience.commands.reading import READING, READING_BY_FIT
from consilience.errors import NotInstalled

EPILOG = """\
exit codes:
  0    done
  1    your input or request; the message says what to do
  2    not understood
  3    done and written, and a finding is an error; a check that failed
  130  interrupted by Ctrl-C; a fit writes what it had, and goes on when its command is given again with --resume

environment:
  CONSILIENCE_DATA               folder of public data that are already stored
  CONSILIENCE_CACHE              folder for downloads and compiled programs
  CONSILIENCE_COMPILATION_CACHE  "off" keeps no compiled programs between runs; or a folder for them
"""

MODEL_EPILOG = """\
How files are read, and a model's own options, such as --reliability 20 or --threshold 0, are given in the same way;
`consilience {} MODEL --help` lists those that apply.
"""

_METAVARS = {"int": "N", "float": "X", "str": "WORD"}
_OF_READING = (*READING, "annotator_groups", *READING_BY_FIT)


def show_what_applies(sub: argparse.ArgumentParser, model: str | None) -> None:
    """Hide flags of reading that a model does not know, and show its own options; of no model, hide all of them."""
    about = {} if model is None else known_options()[model]
    known = {"labels": "classes", "classes": "labels"}
    reading = {name for one in about.get("reading", ()) for name in (one, known.get(one, one))}
    reading |= {"annotator_groups"} if "group" in reading else set()
    for action in sub._actions:
        if action.dest in _OF_READING and action.dest not in reading:
            action.help = argparse.SUPPRESS
        if action.dest == "method" and about:
            action.help = f"auto, {', '.join(about['methods'])} (auto, which is the first that suits the data)"
    if about.get("options"):
        own = sub.add_argument_group(f"options of {model}")
        for one in about["options"]:
            if f"--{one['name']}" in sub._option_string_actions:
                continue  # a flag of reading has this name, and means it
            default = "required" if one["required"] else one["default"]
            choices = f": {', '.join(map(str, one['choices']))}" if one["choices"] else ""
            text = f"{one['help']}{choices}{'' if default is None else f' ({default})'}".replace("%", "%%")
            own.add_argument(f"--{one['name'].replace('_', '-')}", metavar=_METAVARS[one["type"]], help=text)


def known_options() -> dict[str, Any]:
    """Return what is known of each model without JAX; `.ci/stubs` writes it."""
    return json.loads(importlib.resources.files("consilience").joinpath("options.json").read_text(encoding="utf-8"))


def completion(whole: argparse.ArgumentParser, shell: str) -> str:
    """Return the script that completes commands, flags, choices and names of models in a shell.

    Raises
    ------
    NotInstalled : shtab is not.
    """
    try:
        import shtab
    except ImportError:
        text = "completion is written by shtab, which is not installed; pip install 'consilience[completion]'"
        raise NotInstalled(text) from None
    for sub in _subparsers(whole):
        for action in sub._actions:
            if action.dest == "model":
                action.choices = list(known_options())
            elif action.metavar in ("FILE", "RUN", "NEW", "KEY", "RESPONSE", "FEATURES", "FOLDER", "PAGE", "INPUT"):
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    return str(shtab.complete(whole, shell))


def _subparsers(whole: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in whole._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield sub
                yield from _subparsers(sub)
