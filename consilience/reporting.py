"""`report`: one HTML file that says how far the ground truth can be trusted and what follows for the systems."""

from __future__ import annotations

import dataclasses
import inspect
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from consilience.data.accept import as_class_map, named_systems
from consilience.deprecation import renamed
from consilience.errors import UnsupportedRequest
from consilience.evaluation.agreement import Agreement
from consilience.evaluation.classes import Metric
from consilience.inference.fitting import Fit
from consilience.models.truth.truth import CHAINS, CLASSES, PARTITION, VIEWS
from consilience.output import check_output
from consilience.pages import Section, write_page
from consilience.pages.agreement import agreement_page
from consilience.pages.classes import classes_page
from consilience.pages.linkage import linkage_page
from consilience.pages.run import alerts, findings, name_of, run_section
from consilience.pages.views import views_page


@renamed
def report(
    fit: Fit | Agreement,
    predictions: Any = None,
    *,
    path: str | os.PathLike = "report.html",
    metric: str | Metric | Sequence[str | Metric] | None = None,
    class_groups: Any = None,
    title: str | None = None,
    sections: Sequence[Section] = (),
    missing: str = "error",
    unknown: str = "error",
    singletons: bool = True,
    provenance: str | Mapping[str, str] = "unknown",
    text: Any = None,
    force: bool = False,
) -> Path:
    """Write a report on a fit, and on systems evaluated against it, as one self-contained HTML file.

    Parameters
    ----------
    fit : Fit or Agreement
        Of `consilience.fit`; or of `consilience.agreement`, for a page on the agreement of annotators alone.
    predictions : Predictions, or what is read as such, optional
        Of one system, as `evaluate` takes it, or of several in a dict by name; classes of items, coreference chains, or
        of linked records partitions (`read_partition`).
    path : str or path, default "report.html"
        File to write; it appears when it is complete, in place of an earlier page of ours; ``-`` is standard output.
    metric : str, Metric, sequence of str or Metric, optional
        What the systems are compared by. A list gives all metrics to report, the first one for the leaderboard; by
        default they follow from the length of the predictions.
    class_groups : ClassMap or source of one, optional
        Groups of classes, such as risk categories, as a `ClassMap` or what `read_class_map` reads.
    title : str, optional
        Of the page.
    sections : sequence of Section, optional
        Further parts, before the last one.
    missing, unknown : str
        Items without a prediction and predicted classes that the data lack; see `evaluate`.
    singletons : bool, default True
        Of chains, whether entities of one mention count.
    provenance : str or dict of str to str, default "unknown"
        Where predictions of classes come from; see `compare`.
    text : table, path or sequence of path, optional
        Of coreference, the words of the documents: a table with the columns document, token and word, or one or several
        CoNLL files. Mentions need ``start`` and ``end``; without words the page shows their ids.
    force : bool, default False
        Replace a file that exists also where it is no page of ours.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    OutputRefused : before any work, where the file must not be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import consilience as cs
    >>> found = cs.agreement(cs.Annotations.from_counts([[3, 0], [1, 2]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = cs.report(found, path=Path(folder, "agreement.html"))
    ...     path.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    check_output(path, force=force)
    if isinstance(fit, Agreement):
        if predictions is not None or class_groups is not None:
            raise UnsupportedRequest("systems are scored against the truth of a fit; report a fit")
        page = agreement_page(fit)
        page = dataclasses.replace(page, sections=[*page.sections, *sections])
    else:
        systems, risk = named_systems(fit, predictions), as_class_map(fit, class_groups)
        given: dict[str, Any] = {
            "metric": metric, "missing": missing, "unknown": unknown, "singletons": singletons,
            "provenance": provenance, "text": text,
        }  # fmt: skip
        page = PAGES[fit.truth.kind.name](fit, systems, risk=risk, **given)
        asked = _asked(given | {"class_groups": class_groups, "title": title})
        page = dataclasses.replace(
            page, title=f"{page.title}{name_of(fit)}",
            alerts=alerts(fit, page.alerts),
            findings=list(dict.fromkeys([*page.findings, *findings(fit)])),
            sections=[*page.sections, *sections, run_section(fit, systems, page.method, asked)],
            run=shlex.quote(fit.folder) if fit.folder else "",
        )  # fmt: skip
    return write_page(dataclasses.replace(page, title=title or page.title), path, force=force)


def _asked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a report that are not its defaults."""
    defaults = {name: one.default for name, one in inspect.signature(report).parameters.items()}
    return {
        name: value for name, value in given.items()
        if value is not defaults[name] and not (isinstance(value, str | bool) and value == defaults[name])
    }  # fmt: skip


PAGES = {
    CLASSES.name: classes_page, CHAINS.name: classes_page, PARTITION.name: linkage_page, VIEWS.name: views_page,
}  # fmt: skip
"""What makes the page of each kind of truth."""
