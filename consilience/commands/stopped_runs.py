"""How the commands that run for long speak of a run that was stopped: how to go on with it, and what is in its way."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from consilience.errors import InvalidFit, UnsupportedRequest
from consilience.inference.run_folder import holds_checkpoint


def command_to_go_on(words: list[str]) -> str:
    """Return the command that goes on with this one."""
    return shlex.join(["consilience", *(word for word in words if word not in ("--force", "--resume")), "--resume"])


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


@contextlib.contextmanager
def stoppable(run: Path, words: list[str]) -> Iterator[None]:
    """Say how to go on after Ctrl-C outside the loop of the run; leave no empty folder where it could not begin.

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


def keep_compiled_programs() -> None:
    """Let JAX keep what it compiles for the next run: most of the time of a small fit is compilation."""
    if os.environ.get("CONSILIENCE_COMPILATION_CACHE", "").lower() == "off":
        return
    from consilience.data.catalogue import cache_folder

    folder = cache_folder() / "compiled"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        # JAX reads these when it is imported; what the user has set stays.
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
