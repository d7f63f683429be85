"""The code that every fit carries: how its run ended. A result is never a shrug."""

from __future__ import annotations

import enum


class Result(enum.StrEnum):
    """How a run ended; a string, so that it prints, saves and compares as its name."""

    converged = "converged"
    """The convergence rule of the method held (or the method is exact)."""
    max_steps = "max_steps"
    """Every step that was asked for was run. The normal end of a sampler, which R-hat and ESS then judge; an optimiser
    that ends so was still moving, or too noisy to tell."""
    nonfinite = "nonfinite"
    """A number stopped being finite; the message names the step, and the last finite state was kept."""
    interrupted = "interrupted"
    """The keyboard or the time limit ended the run; what was finished by then was kept."""

    @property
    def complete(self) -> bool:
        """Whether the run came to its end, so that there is nothing to go on with."""
        return self in (Result.converged, Result.max_steps)
