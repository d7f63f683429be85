"""What was run: the end of the page of every fit, with how it went and the lines that do it again."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from consilience.inference.fitting import Fit
from consilience.inference.results import Result
from consilience.inference.stored_priors import describe_priors, stored_priors
from consilience.models import MEMBERS
from consilience.models.interface import Exact
from consilience.notes import Level
from consilience.pages import Alert, Code, Section


def run_section(fit: Fit, systems: Mapping[str, Any]) -> Section:
    """Return the section on what was run, with the lines that do it again for these systems."""
    import pandas

    # What was found stands under the table, in sentences.
    described = {name: value for name, value in fit.describe().items() if name != "notes"}
    described = {name.replace("_", " "): _setting(value) for name, value in described.items()}
    table = pandas.DataFrame({"what": list(described), "value": list(described.values())})
    return Section(
        "What was run",
        [table, _diagnosis(fit), "To reproduce it:", Code(_reproduction(fit, systems)),
         *(["Please cite:", Code(fit.member.paper)] if fit.member.paper else [])],
    )  # fmt: skip


def _setting(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


_ENDINGS = {
    Result.interrupted: "The run was interrupted before its end.",
    Result.max_steps: "The run ended at its largest number of steps, before it had converged.",
    Result.nonfinite: "The run broke down: it came to a number that is not finite.",
}


def alerts(fit: Fit) -> list[Alert]:
    """Return what stands above everything else on the page of a fit whose numbers are not to be trusted."""
    texts = [f"{_capital(text)}." for text in _said(fit, Level.error)]
    # A sampler that was left to draw all its steps ends so too, and nothing is wrong with that.
    if fit.result in _ENDINGS and not (fit.result == Result.max_steps and fit.has_draws):
        texts.insert(0, _ENDINGS[fit.result])
    poor = [Alert("Read this first: the fit behind this page is poor.", texts)] if texts else []
    # Warnings that have a title are for the head of a page.
    warned = [note for note in fit.findings() if note.level is Level.warning and note.title]
    return poor + [Alert(note.title, [f"{_capital(note.words())}."], Level.warning) for note in warned]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _diagnosis(fit: Fit) -> str:
    notes = [*_said(fit, Level.warning), *_said(fit, Level.note)]
    return " ".join([_how_it_ended(fit), *(f"Of this fit: {note}." for note in notes)])


def _said(fit: Fit, level: Level) -> list[str]:
    return [note.words() for note in fit.findings() if note.level is level]


def _how_it_ended(fit: Fit) -> str:
    if fit.method == "exact":
        return "The posterior is exact: there is no chain and no optimiser whose convergence could be in doubt."
    problems = _said(fit, Level.error)
    if problems:
        return "Diagnostics: " + "; ".join(problems) + "."
    if isinstance(fit.member.engine(fit.method), Exact):
        return f"The estimate was computed directly, with the result “{fit.result}”, and nothing of it is poor."
    if fit.run is None:
        return "The steps of the run are not stored with a fit; what was poor was said when it was fitted."
    if fit.method == "cavi":
        return (
            "The posterior is approximated by independent factors, whose spread is as a rule too small; "
            f"{fit.run.steps:,} sweeps raised the bound until it stood still. A sampler of the same model shows how "
            "much that matters."
        )
    return f"The run ended with the result “{fit.result}”, and none of its diagnostics is poor."


def _reproduction(fit: Fit, systems: Mapping[str, Any]) -> str:
    before = _own_priors(fit)
    driver = {name: fit.attributes[name] for name in ("chains", "warmup", "max_steps") if name in fit.attributes}
    given = [f"{name}={value!r}" for name, value in (driver | fit.options).items()]
    given = ["priors=priors"] * bool(before) + [f"method={fit.method!r}", f"draws={fit.draws}", *given]
    run = f"{', '.join(given)}, seed={fit.seed})"
    data_hash = f"# {type(fit.data).__name__}, hash {fit.attributes.get('data_hash', '')[:12]}…"
    if "fields" in fit.attributes:  # as `link` leaves them
        made = f"fit = cs.link({_linked_from(fit)}, {run}  {data_hash}"
    else:
        model = repr(fit.member.name) if fit.member.name in MEMBERS else fit.member.name
        read = f"data = cs.{fit.data.reader or 'load'}({fit.data.read_from})"
        made = f"{read}  {data_hash}\nfit = cs.fit({model}, data, {run}"
    return f"{before}{made}\ncs.report(fit{', predictions' if systems else ''}, path='report.html')"


def _linked_from(fit: Fit) -> str:
    """Return what `link` was given of the data, as it wrote it down."""
    data: Any = fit.data
    sources = ", ".join(f"{str(name)!r}: …" for name in data.sources)
    kinds = {name: _kinds(fit.attributes[name]) for name in ("fields", "similar") if name in fit.attributes}
    named = fit.attributes.get("id", "id")
    given = {} if named == "id" or ", " in named else {"id": named}
    read = {name: fit.attributes[name] for name in ("columns", "missing_values") if name in fit.attributes}
    listed = [f"{{{sources}}}", *(f"{name}={value!r}" for name, value in (given | kinds | read).items())]
    if own := fit.attributes.get("clean"):  # a function is known by its name
        hows = (f"{field!r}: {repr(how) if how == 'exact' else how}" for field, how in own.items())
        listed.append(f"clean={{{', '.join(hows)}}}")
    listed += ["entity=…"] * (data.entity is not None) + ["pairs=…"] * (data.candidate is not None)
    return ", ".join(listed)


def _kinds(words: str) -> dict[str, str]:
    """Return what `link` wrote down as "name (string), born (date)"."""
    return dict(re.findall(r"(.+?) \(([\w:]+)\)(?:, |$)", words))


def _own_priors(fit: Fit) -> str:
    """Return the lines that make priors other than the member's; of what no line can make, the words alone."""
    words, kind = fit.describe()["priors"], fit.member.priors
    if kind is None or words == describe_priors(kind()):
        return ""
    default, stored = stored_priors(kind()), stored_priors(fit.priors)
    given = {} if fit.priors is None else vars(fit.priors)
    changed = {name: value for name, value in given.items() if name not in stored or stored[name] != default.get(name)}
    if not changed or not stored.keys() >= changed.keys():
        return f"priors = …  # {words}\n"
    classes = {kind, *(type(value) for value in changed.values() if dataclasses.is_dataclass(value))}
    imports = sorted(f"from {one.__module__} import {one.__name__}\n" for one in classes)
    settings = ", ".join(f"{name}={value!r}" for name, value in changed.items())
    return f"{''.join(imports)}priors = {kind.__name__}({settings})\n"
