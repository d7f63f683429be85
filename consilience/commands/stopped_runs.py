"""How the commands that run for long speak of a run that was stopped: how to go on with it, and what is in its way."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilience.errors import InvalidFit, UnsupportedRequest
from consilience.inference.run_folder import CHECKPOINT, FIT_TEXT, holds_checkpoint
from consilience.printing import json_text

if TYPE_CHECKING:
    from consilience.inference.checkpoints import Checkpoint
    from consilience.inference.fitting import Fit

_INTERRUPTED = 130


def command_to_go_on(words: list[str]) -> str:
    """Return the command that goes on with this one."""
    return shlex.join(["consilience", *(word for word in words if word not in ("--force", "--resume")), "--resume"])


def kept_checkpoint(run: Path, *, resume: bool, force: bool) -> Checkpoint:
    """Return the checkpoint of a run, which is kept until all is written: a kill must not lose a complete run."""
    from consilience.inference.checkpoints import Checkpoint

    checkpoint = Checkpoint(run / CHECKPOINT, resume=resume, keep=True)
    if force:
        checkpoint.remove()
    return checkpoint


def after_run(fitted: Fit, run: Path, words: list[str]) -> tuple[str | None, int]:
    """Return the command that goes on with an interrupted run, None for others, and the exit code.

    Parameters
    ----------
    fitted : what the run found.
    run : the folder in which its checkpoint is, where it has one.
    words : of the command that began it.

    Raises
    ------
    UnsupportedRequest : it ended before the first draw.
    """
    go_on = command_to_go_on(words) if fitted.result == "interrupted" and holds_checkpoint(run) else None
    if fitted.is_empty:
        remedy = f"go on with: {go_on}" if go_on else fitted.message
        raise UnsupportedRequest(f"the run ended before the first draw, and nothing was written; {remedy}")
    return go_on, _INTERRUPTED if "keyboard" in fitted.message else 0


def refuse_unfinished(folder: Path, run: Path, *, resume: bool, force: bool) -> None:
    """Refuse a folder with a run that did not end, where it is not said what is to become of it.

    Parameters
    ----------
    folder : to which the command writes, as the message names it.
    run : the folder in which its checkpoint would be.
    resume, force : whether to go on with that run, or to start it again.

    Raises
    ------
    UnsupportedRequest : both are given.
    InvalidFit : the folder holds such a run, and neither is given.
    """
    if force and resume:
        raise UnsupportedRequest("--resume goes on with a run and --force starts it again; give one of them")
    if holds_checkpoint(run) and not (resume or force):
        raise InvalidFit(
            f"{folder} holds a run that did not end; give --resume to go on with it, or --force to start it again"
        )


def is_complete(run: Path, **asked: Any) -> bool:
    """Return whether a folder holds the complete fit of the run that is asked for: with --resume nothing is left to do.

    Parameters
    ----------
    run : the folder.
    asked : what decides the run, by its name in the text of the fit or among its attributes; None where it is left out.
    """
    try:
        text = json.loads((run / FIT_TEXT).read_text(encoding="utf-8"))
        known = {**text, **text["attributes"]}
    except (OSError, ValueError, KeyError, TypeError):
        return False
    alike = all(value is None or known.get(name) == value for name, value in asked.items())
    return alike and known.get("result") != "interrupted"


def say_complete(folder: Path, json_asked: bool) -> int:
    """Say that the run had ended before."""
    print(json_text({"folder": str(folder), "complete": True}) if json_asked else f"complete {folder}, as it was")
    return 0


@contextlib.contextmanager
def stoppable(run: Path, words: list[str]) -> Iterator[None]:
    """Say how to go on after Ctrl-C that leaves no fit; leave no empty folder where the run could not begin.

    Raises
    ------
    KeyboardInterrupt : as it came; with the command to go on as its text where there is a checkpoint.
    """
    try:
        yield
    except KeyboardInterrupt:
        if holds_checkpoint(run):
            raise KeyboardInterrupt(f"go on with: {command_to_go_on(words)}") from None
        raise
    finally:
        with contextlib.suppress(OSError):
            run.rmdir()
