"""Progress of what takes long: a bar on stderr, only where that is a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

_SECONDS = 1.0
_shown: ContextVar[bool | None] = ContextVar("shown", default=None)


@contextlib.contextmanager
def showing(progress: Any) -> Iterator[None]:
    """Show bars or none for as long as this lasts.

    Parameters
    ----------
    progress : as `fit` takes it; a function of the user's takes the place of all bars, and None leaves it as it is.
    """
    before = _shown.set(_shown.get() if progress is None else progress is True)
    try:
        yield
    finally:
        _shown.reset(before)


class Steps:
    """A bar of steps.

    Parameters
    ----------
    total : of the steps, at most; None where nobody knows.
    what : the name before the bar.
    done : of them before.
    unit : what one of them is called; "B" for bytes.
    shown : whether there is a bar; None as `showing` has it, and then where stderr is a terminal.
    late : whether it is there after a second only, as of what is mostly quick.
    """

    def __init__(
        self, total: int | None, what: str, *, done: int = 0, unit: str = "step", shown: bool | None = None,
        late: bool = False,
    ) -> None:  # fmt: skip
        self._bar: Any = None
        shown = _shown.get() if shown is None else shown
        if sys.stderr.isatty() if shown is None else shown:
            from tqdm import tqdm

            self._bar = tqdm(
                total=total, initial=done, desc=what or None, unit=unit, file=sys.stderr,
                delay=_SECONDS if late else 0.0, unit_scale=unit == "B",
            )  # fmt: skip

    def to(self, done: int) -> None:
        """Say how many steps are done."""
        if self._bar is not None and done > self._bar.n:
            self._bar.update(done - self._bar.n)

    def close(self, *, converged: bool = False) -> None:
        """End the bar, at 100 % where the run converged before its last step."""
        if self._bar is None:
            return
        if converged:
            self._bar.total = self._bar.n
            self._bar.set_postfix_str("converged", refresh=False)
        self._bar.close()


@contextlib.contextmanager
def steps(total: int | None, what: str, unit: str = "step") -> Iterator[Steps]:
    """Show a bar after a second; it ends at 100 %, but where an error ends it.

    Parameters
    ----------
    total, what, unit : as of `Steps`.
    """
    bar = Steps(total, what, unit=unit, late=True, shown=False if total == 0 else None)
    try:
        yield bar
        bar.to(total or 0)
    finally:
        bar.close()
