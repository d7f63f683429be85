"""What `consilience.check` found: its tests, and their figures beside the bars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.printing import rows_of, table_text

Findings = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """One of the tests.

    Parameters
    ----------
    name : of the test.
    findings : one row for each figure: ``figure, value, bar, passed, at``; the last names the worst quantity. Against
        NUTS also ``short``: whether the bar was missed by NUTS alone, whose draws are too few to say more.
    skipped : why it was not run; None where it was.
    details : data frame with a row for each quantity or function; None where it was skipped.
    """

    name: str
    findings: Findings = ()
    skipped: str | None = None
    details: Any = None

    @property
    def passed(self) -> bool:
        """Whether every figure met its bar; a test that was skipped does not fail."""
        return all(row["passed"] for row in self.findings)

    @property
    def inconclusive(self) -> bool:
        """Whether no bar was missed but by NUTS, whose draws are too few."""
        return not self.passed and all(row["passed"] or row.get("short") for row in self.findings)


@dataclass(frozen=True, kw_only=True, eq=False)
class Check:
    """What the tests of a member found; prints itself.

    Parameters
    ----------
    model, method : str
        The member and its hand-derived method; ``density`` where it has none.
    parts : tuple[Part, ...]
        The tests, also those that were skipped.

    Examples
    --------
    >>> import dataclasses
    >>> import consilience as cs
    >>> from consilience.models import dirichlet
    >>> member = dataclasses.replace(dirichlet.MODEL, engines=dirichlet.MODEL.engines[:1])
    >>> found = cs.check(member, replications=100)
    >>> found.model, found.method, found.passed
    ('dirichlet', 'exact', True)
    >>> [part.name for part in found.parts if part.skipped is None]
    ['calibration']
    """

    model: str
    method: str
    parts: tuple[Part, ...]

    @property
    def passed(self) -> bool:
        """Whether every test that was run met its bars."""
        return all(part.passed for part in self.parts)

    @property
    def inconclusive(self) -> bool:
        """Whether no test failed, and one was compared with draws of NUTS that are too few."""
        return not self.passed and all(part.passed or part.inconclusive for part in self.parts)

    @property
    def table(self) -> Any:
        """Data frame with the columns ``check, figure, value, bar, at, result``."""
        import pandas

        rows: list[dict[str, Any]] = []
        for part in self.parts:
            if part.skipped is not None:
                rows.append({"check": part.name, "figure": part.skipped, "value": np.nan, "bar": "", "at": "",
                             "result": "skipped"})  # fmt: skip
            for finding in part.findings:
                missed = "inconclusive" if part.inconclusive else "FAILED"
                result = "passed" if finding["passed"] else missed
                figures = {name: finding[name] for name in ("figure", "value", "bar", "at")}
                rows.append({"check": part.name, **figures, "result": result})
        return pandas.DataFrame(rows)

    def __repr__(self) -> str:
        short = [part.name for part in self.parts if part.inconclusive]
        failed = [part.name for part in self.parts if not (part.passed or part.inconclusive)]
        run = sum(part.skipped is None for part in self.parts)
        verdict = f"failed: {', '.join(failed)}" if failed else f"passed {run - len(short)} of {run} checks"
        if short:
            verdict += f"; inconclusive: {', '.join(short)}, as the run of NUTS was too short; ask for more draws"
        return f"{self.model} by {self.method}: {verdict}\n{table_text(rows_of(self.table), limit=None, widest=None)}"
