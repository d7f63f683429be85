"""What was run: the end of the page of every fit, with how it went and the lines that do it again."""

from __future__ import annotations

import dataclasses
import datetime
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from consilience.inference.fitting import ASKED, Fit
from consilience.inference.given_options import given_options, is_given
from consilience.inference.posterior import poor_diagnostics
from consilience.inference.results import Result
from consilience.inference.stored_priors import describe_priors, priors_in_words, stored_priors
from consilience.models import MEMBERS
from consilience.models.crowd.gate import BY_CHANCE
from consilience.models.interface import Exact
from consilience.models.rating_gaps import OFFSETS
from consilience.models.truth.against_gold import CALIBRATION
from consilience.notes import IN_DETAILS, Level, Note
from consilience.pages import Alert, Code, Section, Table, capital
from consilience.pages.gold_chains import right_by_annotator
from consilience.printing import counted
from consilience.rounding import written


def run_section(
    fit: Fit, systems: Mapping[str, Any], method: str = "", asked: Mapping[str, Any] | None = None
) -> Section:  # fmt: skip
    """Return the section on what was run, with lines that do it again.

    Parameters
    ----------
    fit, systems : of the page.
    method : words on the method.
    asked : what the page was asked for otherwise, by the names that `report` has for it.
    """
    import pandas

    rows = [*_computed(fit), *_circumstances(fit)]
    table = pandas.DataFrame(rows, columns=["what", "value", IN_CODE])
    blocks: list[Any] = [Table(table, "The run and its settings.")]
    if "link" in fit.posterior.hidden:  # whole chains have no priors of the member's
        beliefs = pandas.DataFrame(fit.truth.beliefs.items(), columns=["of", "belief"])
        blocks.append(Table(beliefs, "What the model believed before any data (priors)."))
    elif fit.priors is not None:
        caption, idle = _caption_of_priors(fit), fit.resolved.idle_priors
        said = priors_in_words(fit.priors).items()
        # The name of a function of the library is no code that anyone types: what it believes stands beside it.
        own = [
            (_PRIORS.get(name, _spaced(name)), belief, "" if code.isidentifier() else code)
            for name, (belief, code) in said if name not in idle
        ]  # fmt: skip
        together = fit.truth.dependence
        if together is not None and (belief := together.prior_in_words):
            own.append(("dependence ρ of annotators", belief, ""))
        blocks.append(Table(pandas.DataFrame(own, columns=["of", "belief", IN_CODE]), caption))
    blocks += [_diagnosis(fit), *[method] * bool(method)]
    blocks += [f"To reproduce it{_of_memory(fit)}:", Code(reproduction(fit, systems, asked), "To reproduce it")]
    if fit.member.paper and not is_counted(fit):  # to count votes is nobody's model
        blocks += ["Please cite:", Code(fit.member.paper, "To cite it")]
    gist = f"{fit.member.name} by {METHODS.get(fit.method, fit.method)}, seed {fit.seed}"
    return Section("What was run", blocks, gist)


def _caption_of_priors(fit: Fit) -> str:
    if not (learned := fit.resolved.learned_priors):
        return "What the model believed before any data (priors)."
    which = "set" if learned >= {*priors_in_words(fit.priors)} else f"of {' and '.join(sorted(learned))} set"
    return f"What the model expects (priors), {which} from the same data."


def _of_memory(fit: Fit) -> str:
    """Say what … stands for in the lines that do it again; empty where they name a file."""
    if fit.attributes.get("data_file") or "fields" in fit.attributes or "…" not in fit.data.read_from:
        return ""
    return "; the data were given in memory, and … stands for them"


IN_CODE = "in code"

METHODS = {
    "em": "EM", "cavi": "coordinate ascent", "gibbs": "Gibbs sampling", "nuts": "NUTS", "exact": "exact computation",
    "svi": "stochastic variational inference",
}  # fmt: skip
"""Methods as readers know them, by their names in code."""

_WORDS = {
    "seed": "random seed", "draws": "draws kept", "warmup": "warm-up of each run, thrown away",
    "chains": "runs of the sampler (chains)", "max_steps": "most steps",
    "tolerance": "change of the objective below which it ends", "seconds": "time, seconds",
    "worst_r_hat": "largest R-hat (1 where runs agree)", "k_hat": "Pareto k-hat (poor above 0.7)",
    "diagnosed": "diagnostics are of", "id": "column that names records", "dtype": "precision of numbers",
}  # fmt: skip
"""What is known of a run, where its name with spaces does not say what it is."""

_PRIORS = {"size_share": "shares of entities with 1, 2, … records"}
"""What a prior is of, where its name with spaces does not say it."""

_GIVEN = ("seed", "draws", "chains", "warmup", "max_steps", "tolerance", "accelerate")
_SOFTWARE = ("library", "library_version", "jax_version", "numpyro_version", "backend")


def _computed(fit: Fit) -> list[tuple[str, str, str]]:
    """Return what was computed and how: what it is, its value, and how code says it."""
    helps = {one.name: one.metadata.get("help", "") for one in dataclasses.fields(fit.resolved.settings)}
    ended = str(fit.result).replace(Result.max_steps, "every step was run")
    method = METHODS.get(fit.method, fit.method)
    rows = [
        ("model", fit.member.title, repr(fit.member.name)), ("method", f"{method} ({fit.reason})", repr(fit.method)),
        *[("result", ended, "")] * (ended != Result.converged or not isinstance(fit.member.engine(fit.method), Exact)),
    ]  # fmt: skip
    for name, value in changed(fit).items():
        meant = f" ({helps[name]})" if helps.get(name) else ""
        taken = "" if value == fit.options[name] else f": {_setting(fit.options[name])} was chosen"
        rows.append((_spaced(name), f"{_setting(value)}{taken}{meant}", f"{name}={value!r}"))
    return rows


def _circumstances(fit: Fit) -> list[tuple[str, str, str]]:
    """Return with what it was computed, and how long it took and how well it went."""
    told = {"files", "fields_given", "notes", "reason", "model", "method", "result", "priors", "data_hash", *_SOFTWARE}
    found = {
        name: value for name, value in fit.describe().items()
        if name not in told and not name.startswith("option_") and not is_given(name)
    }
    draws = f"{_WORDS['draws']} of each run of the sampler" if "chains" in found else _WORDS["draws"]
    words = _WORDS | {"draws": "random rounds, in which ties are decided" if is_vote(fit) else draws}
    rows = [
        (words.get(name, _spaced(name)), _setting(value), f"{name}={value!r}" if name in _GIVEN else "")
        for name, value in found.items()
    ]
    version = fit.attributes.get
    software = f"consilience {version('library_version')}, JAX {version('jax_version')}, NumPyro "
    software += f"{version('numpyro_version')}, on {version('backend', '').upper()}"
    return [*rows, ("software", software, ""), ("hash of the data", f"{version('data_hash', '')[:12]}…", "")]


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def changed(fit: Fit) -> dict[str, Any]:
    """Return the options that are not at their default, as they were given."""
    usual = {one.name: one.default for one in dataclasses.fields(fit.resolved.settings)}
    given = given_options(fit).items()
    return {name: value for name, value in given if name not in usual or value != usual[name]}


_USUAL = {"method": None, "seed": 0, "draws": 1_000, "chains": 4, "warmup": 500}
"""How a fit is made where nothing is given."""


def driven(fit: Fit) -> dict[str, Any]:
    """Return what a line that makes a fit again gives of method, seed and draws: what is not usual."""
    of_sampler = {name: fit.attributes[name] for name in ("chains", "warmup") if name in fit.attributes}
    method = fit.method if fit.reason == ASKED else None
    given = {"method": method, "seed": fit.seed, "draws": fit.draws} | of_sampler
    return {name: value for name, value in given.items() if value not in (_USUAL[name], None)}


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return written(value, ",.4g" if isinstance(value, float) else ",") if isinstance(value, int | float) else str(value)


_MOST_NAMED = 3  # files in a title
# Sizes by other names, and of no reader's count.
_CALLED, _UNTOLD = {"reports": "rankings", "constraints": "answers"}, {"rows", "entries"}

_BETWEEN = {"items": " of ", "mentions": " of ", "annotators": " by ", "documents": " in "}  # sizes

# What is asked of data, in a newcomer's words.
_ASKED = {
    "vote": "the label that most annotators gave each item",
    "report": "how plausible each class is for each item (0 to 1; over all classes the sum is 1)",
    "annotation": "what label each item has, and how sure that is",
    "rating": "the mean of each item, and on which side of {threshold:g} it lies",
    "mention": "which mentions (words or phrases) refer to the same thing and so form one chain",
}  # fmt: skip

_STANDS_FOR = {"prirn": "probabilistic inverse rank normalisation"}

_ENDINGS = {
    Result.interrupted: "The run was interrupted before its end.",
    Result.max_steps: "The run ended at its largest number of steps, before it had converged.",
    Result.nonfinite: "The run broke down: it came to a number that is not finite.",
}


def alerts(fit: Fit, more: Sequence[Alert] = ()) -> list[Alert]:
    """Return what stands above everything else on a page: errors, then warnings; a box for each heading or cause.

    Parameters
    ----------
    fit : what the page is about.
    more : what the page itself says.
    """
    notes = _told(fit)
    parts = [
        Alert(note.heading, [text for text in [_sentence(note)] if text], max(Level.warning, note.level), note.about)
        for note in sorted(notes, key=lambda one: not one.title) if note.title or note.level is Level.warning
    ]  # fmt: skip
    joined: dict[str, list[Alert]] = {}
    for one in (*parts, *more):
        joined.setdefault(one.about or one.title, []).append(one)
    boxes = [_one_box(own) for own in joined.values()]
    texts = [f"{capital(note.words())}." for note in notes if note.level is Level.error and not note.title]
    # A sampler that was left to draw all its steps ends so too, and nothing is wrong with that.
    if fit.result in _ENDINGS and not (fit.result == Result.max_steps and fit.has_draws):
        texts.insert(0, _ENDINGS[fit.result])
    if texts:
        boxes.append(Alert("Read this first: the fit behind this page is poor.", texts, Level.error))
    return sorted(boxes, key=lambda box: -box.level)


def _one_box(alerts: Sequence[Alert]) -> Alert:
    """Put alerts into the box of the first; another title than its own stands before the text."""
    title = alerts[0].title
    texts = [f"{one.title} {text}" if one.title != title else text for one in alerts for text in one.texts or [""]]
    return Alert(title, [text for text in texts if text], max(one.level for one in alerts))


def _sentence(note: Note) -> str:
    """Write a note under its heading, which it need not say again; empty where that says all."""
    said, words = note.heading.rstrip(".").lower(), note.words()
    rest = words[len(said) :].removeprefix(": ") if words.lower().startswith(said) else words
    return f"{capital(rest)}." if rest else ""


def _told(fit: Fit) -> list[Note]:
    """Return what a page tells of a fit: of a vote nothing about certainties, which it has none of but in name.

    What offsets of annotators do, pages of ratings say in words of their own, as they correct for them.
    """
    left_out = {OFFSETS, *([CALIBRATION] if is_vote(fit) else [])}
    return [note for note in fit.findings() if note.about not in left_out]


def findings(fit: Fit) -> list[str]:
    """Return what else a fit says, in sentences."""
    notes = [
        note for note in fit.findings() if note.level is Level.note and not note.title and note.about != IN_DETAILS
    ]  # fmt: skip
    return [_with_gold(fit, note.words()) for note in notes]


def _with_gold(fit: Fit, text: str) -> str:
    """Write a note as a sentence; of annotators who may agree by chance with what gold labels say of them."""
    return f"{capital(text)}.{right_by_annotator(fit, _who(text).split(', ')) if _is_by_chance(text) else ''}"


def _who(text: str) -> str:
    """Return the names in a note on annotators who may agree by chance."""
    before, after = BY_CHANCE
    return text.removeprefix(before).rpartition(after)[0]


def _is_by_chance(text: str) -> bool:
    return text.startswith(BY_CHANCE[0]) and BY_CHANCE[1] in text


def without_evidence(fit: Fit) -> tuple[list[str], str]:
    """Return what a fit says of annotators who may agree with others by chance, in a sentence, and who these are."""
    texts = [text for note in fit.findings() if _is_by_chance(text := note.words())]
    return [_with_gold(fit, text) for text in texts], ", ".join(map(_who, texts))


def has_first_screen(fit: Fit) -> bool:
    """Return whether a page is of labels, of a vote or of rankings, which begin with what is said of systems."""
    return fit.data.rows == "report" or (fit.data.rows == "annotation" and fit.data.unit == "item")


def is_counted(fit: Fit) -> bool:
    """Return whether labels were counted and not modelled, so that nothing says how sure they are."""
    return fit.member.density is None and "shares" in fit.member.table_names


def is_vote(fit: Fit) -> bool:
    """Return whether they were, and the winner of each count is taken for certain: not its share for a probability."""
    return is_counted(fit) and fit.options.get("uncertainty") != "shares"


TOO_LITTLE_SPREAD = "coordinate ascent underestimates uncertainty"
"""Why intervals of it contain the truth less often than they are meant to."""


def is_approximate(fit: Fit) -> bool:
    """Return whether intervals are of coordinate ascent, and so hold less than they are meant to."""
    return fit.method == "cavi"


def fit_word(fit: Fit) -> str:
    """Return what a fit is called: nothing is fitted by a vote."""
    return "vote" if is_vote(fit) else "fit"


def name_of(fit: Fit) -> str:
    """Return what stands behind the title of a page: the names of the files that the data are of, where known."""
    named = list(fit.data.parts) or [os.path.basename(fit.attributes.get("data_file", ""))]
    return f", from {' and '.join(named)}" if named[0] and len(named) <= _MOST_NAMED else ""


def line_of(fit: Fit, *, corrected: bool = False) -> str:
    """Return the line under the title of a page: what went in and what is said of it, model and method, date.

    Parameters
    ----------
    fit : of the page.
    corrected : whether the page is about ratings from which the offsets of annotators were taken off.
    """
    counts = {name.replace("_", " "): size for name, size in fit.data.counts.items() if size and name not in _UNTOLD}
    named = {name: counted(size, _CALLED.get(name, name)) for name, size in counts.items()}
    method = METHODS.get(fit.method, fit.method)
    if (asked := "vote" if is_counted(fit) else "mention" if fit.data.unit == "mention" else fit.data.rows) in _ASKED:
        words = _ASKED[asked].format(threshold=fit.options.get("threshold", 0))
        stands = f"{_STANDS_FOR[fit.member.name]}: " if fit.member.name in _STANDS_FOR else ""
        called = f"model {fit.member.name} ({stands}{re.split('[:,]', fit.member.title)[0]})"
        how = "its posterior computed exactly" if fit.method == "exact" else f"by {method}"
        how = "computed exactly after removing the offsets of annotators" if corrected else how
        how = "" if is_counted(fit) else f" · {called}, {how}"
        from_ = "".join(f"{_BETWEEN.get(name, ', ')}{one}" for name, one in named.items()).removeprefix(", ")
        if fit.data.rows == "annotation" and fit.data.unit == "item" and fit.data.gold_codes is not None:
            gold = int((np.asarray(fit.data.gold_codes) >= 0).sum())
            from_ += f", and {counted(gold, 'gold labels')} (which the data give as right)" * bool(gold)
        from_ += fit.data.changed_in_words
        return f"From {from_}: {words}{how} · {today()}"
    return f"{', '.join(named.values())} · {fit.member.name} ({fit.member.title}), method {method} · {today()}"


def today() -> str:
    """Return the date as pages write it."""
    now = datetime.date.today()
    return f"{now.day} {now:%B %Y}"


def _diagnosis(fit: Fit) -> str:
    boxes = [note.words() for note in fit.findings() if note.title] if is_counted(fit) else []  # above all sections
    notes = [one for one in (*_said(fit, Level.warning), *_said(fit, Level.note)) if one not in boxes]
    return " ".join([_how_it_ended(fit), *(f"{capital(note)}." for note in notes)])


def _said(fit: Fit, level: Level) -> list[str]:
    return [note.words() for note in _told(fit) if note.level is level]


def _how_it_ended(fit: Fit) -> str:
    if is_counted(fit):
        return "The votes were counted: there is no posterior, and nothing of the annotators is modelled."
    if fit.method == "exact":
        given = "exact given priors that were set from the same data" if fit.resolved.learned_priors else "exact"
        return f"The posterior of the fit is {given}: nothing iterative could have failed to converge."
    problems = _said(fit, Level.error)
    if problems:
        return "Diagnostics: " + "; ".join(problems) + "."
    # What is doubtful, by a warning or in a box of its own, follows in words.
    doubtful = any(note.level > Level.note or note.title for note in _told(fit))
    doubtful |= bool(poor_diagnostics(fit.worst, fit.run))
    if isinstance(fit.member.engine(fit.method), Exact):
        computed = f"The estimate was computed directly, with the result “{fit.result}”"
        return f"{computed}{'' if doubtful else ', and nothing of it is poor'}."
    if fit.run is None:
        return "The steps of the run are not stored with a fit; what was poor was said when it was fitted."
    if fit.method == "cavi":
        return (
            "The posterior is approximated by independent factors, whose spread is as a rule too small; "
            f"{fit.run.steps:,} sweeps raised the bound until it stood still. A sampler of the same model shows how "
            "much that matters."
        )
    ended = "drew all its steps" if fit.result == Result.max_steps else f"ended with the result “{fit.result}”"
    return f"The run {ended}{'' if doubtful else ', and no diagnostic of its draws is poor'}."


_UNWRITTEN = {"text": "the words of the documents", "class_groups": "the groups of classes", "metric": "the metrics"}


def _plain(name: str, value: Any) -> Any:
    """Return an argument as a line of Python can write it: no data, but for who comes from where."""
    if name == "provenance" or isinstance(value, str | bool):
        return value
    several = list(value) if isinstance(value, list | tuple) else [value]
    if not all(isinstance(one, str | os.PathLike) for one in several):
        return None
    paths = [os.fspath(one) for one in several]
    return paths if isinstance(value, list | tuple) else paths[0]


def reproduction(fit: Fit, systems: Mapping[str, Any], asked: Mapping[str, Any] | None = None) -> str:
    """Return the lines of Python that make a fit and its page again; for the parameters see `run_section`."""
    given = ""
    if systems:
        files = [f"{name!r}: {system.file!r}" for name, system in systems.items() if system.file]
        own = f"{{{', '.join(files)}}}" if len(files) == len(systems) else "…  # those of this page, by name"
        given = f"predictions = {own}\n"
    plain = {name: _plain(name, value) for name, value in (asked or {}).items()}
    for name in (one for one, value in plain.items() if value is None):
        given += f"{name} = …  # {_UNWRITTEN.get(name, 'as given')}\n"
    options = "".join(f", {name}={name if value is None else repr(value)}" for name, value in plain.items())
    report = f"cs.report(fit{', predictions' if systems else ''}, path='report.html'{options})"
    return f"import consilience as cs\n\n{fitting_lines(fit)}\n{given}{report}"


def fitting_lines(fit: Fit) -> str:
    """Return the lines of Python that make a fit again: its priors where they are own, its data, and itself, a line."""
    before = own_priors(fit)
    driver = {name: fit.attributes[name] for name in ("chains", "warmup", "max_steps") if name in fit.attributes}
    given = [f"{name}={value!r}" for name, value in (driver | changed(fit)).items()]
    given = ["priors=priors"] * bool(before) + [f"method={fit.method!r}", f"draws={fit.draws}", *given]
    run = f"{', '.join(given)}, seed={fit.seed})"
    data_hash = f"# {type(fit.data).__name__}, hash {fit.attributes.get('data_hash', '')[:12]}…"
    if "fields" in fit.attributes:  # as `link` leaves them
        made = f"fit = cs.link({_linked_from(fit)}, {run}  {data_hash}"
    else:
        model = repr(fit.member.name) if fit.member.name in MEMBERS else fit.member.name
        file = fit.attributes.get("data_file")
        source = fit.data.read_from.replace("…", repr(file), 1) if file else fit.data.read_from
        if beside := fit.attributes.get("features_file"):
            source = source.replace("features=…", f"features={beside!r}")
        read = f"data = cs.{fit.data.reader or 'load'}({source}){fit.data.after_reading}"
        made = f"{read}  {data_hash}\nfit = cs.fit({model}, data, {run}{_chosen(fit)}"
    return f"{before}{made}"


def _chosen(fit: Fit) -> str:
    """Say which settings comparing fits chose, as a comment; empty where all were given."""
    given = given_options(fit)
    chosen = [f"{given[name]!r} chose {name}={one!r}" for name, one in fit.options.items() if one != given[name]]
    return f"  # {', '.join(chosen)}" if chosen else ""


def _linked_from(fit: Fit) -> str:
    """Return what `link` was given of the data, as it wrote it down."""
    data: Any = fit.data
    files = [*map(repr, fit.attributes.get("files", []))] or ["…"] * len(data.sources)
    sources = ", ".join(f"{str(name)!r}: {file}" for name, file in zip(data.sources, files, strict=True))
    kinds = {name: kinds_of(fit.attributes[name]) for name in ("fields", "similar") if name in fit.attributes}
    named = fit.attributes.get("id", "id")
    given = {} if named == "id" or ", " in named else {"id": named}
    read = {name: fit.attributes[name] for name in ("columns", "missing_values") if name in fit.attributes}
    listed = [f"{{{sources}}}", *(f"{name}={value!r}" for name, value in (given | kinds | read).items())]
    if own := fit.attributes.get("clean"):  # a function is known by its name
        hows = (f"{field!r}: {repr(how) if how == 'exact' else how}" for field, how in own.items())
        listed.append(f"clean={{{', '.join(hows)}}}")
    listed += ["entity=…"] * (data.entity is not None) + ["pairs=…"] * (data.candidate is not None)
    return ", ".join(listed)


def kinds_of(words: str) -> dict[str, str]:
    """Return what `link` wrote down as "name (string), born (date)"."""
    return dict(re.findall(r"(.+?) \(([\w:]+)\)(?:, |$)", words))


def own_priors(fit: Fit) -> str:
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
