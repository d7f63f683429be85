"""Saved fits: a folder with ``fit.json``, what was run, and ``arrays-….npz``, the data and the posterior.

``fit.json`` names its arrays and is written last, in place of an earlier one: at any moment the folder holds the
earlier fit or the new one, whole. Nothing in it is executed on loading: no pickles. A torn, corrupt or foreign folder
is refused with the reason.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import consilience.data as contracts
from consilience._version import __version__
from consilience.data.codes import object_array
from consilience.data.contract import Contract
from consilience.data.files import digest
from consilience.deprecation import as_saved
from consilience.errors import InvalidFit, OutputRefused, UnknownName, UnsupportedRequest
from consilience.inference.durable import text_digest, write_arrays, write_text
from consilience.inference.generic import GenericRun
from consilience.inference.own_model import as_member
from consilience.inference.results import Result
from consilience.inference.run_folder import (
    ARRAYS,
    FIT_TEXT,
    check_run_folder,
    holds_fit,
    is_array_file,
    is_free,
    is_ours,
    labels_file,
)
from consilience.inference.saved_parts import joined, save_parts
from consilience.inference.stored_posterior import (
    earlier_posterior,
    posterior_arrays,
    posterior_problem,
    restored_posterior,
)
from consilience.inference.stored_priors import restored_priors, stored_priors
from consilience.models import names
from consilience.models.interface import Model
from consilience.models.settings import Settings
from consilience.models.sites import Resolved
from consilience.notes import Level, Note, Remedy
from consilience.output import GENERATOR, made_for

FORMAT = 3
"""Version of the folder's layout; raised when an older library could misread a newer folder.

2 : ids are texts of fixed width, so that one long id makes all of them long; read by `_from_format_2`.
3 : ids of one kind are one text in UTF-8, and the length of each in characters. The posterior is one of the three forms
    of `consilience.models.posterior`; in format 2 it was a record of arrays, which `earlier_posterior` reads.
"""

_KINDS_OF_TEXT = {
    "model": str, "method": str, "reason": str, "options": dict, "attributes": dict, "seed": int, "draws": int,
}  # fmt: skip

# Options of earlier versions that told how a result is computed, not which.
_GONE = ("links", "moves")

# What reading a file raises where parts are missing, or are of another kind.
_TORN = (KeyError, TypeError, ValueError, AttributeError, EOFError, MemoryError, zipfile.BadZipFile)


def save(fit: Any, path: str | os.PathLike, *, force: bool = False) -> None:
    """Write a fit to a folder; other files in the folder stay.

    A fit that is there is replaced where it is the same, or the same run when it was interrupted.

    Parameters
    ----------
    fit : a `consilience.inference.result.Fit`, which imports this module.
    path : of the folder; that in which it is has to exist.
    force : write also to a folder that holds another fit, which is replaced, or something else, which stays.

    Raises
    ------
    OutputRefused : the folder cannot be made, or holds another fit or something else; it is left alone.
    """
    target = Path(path)

    def prepare() -> None:
        check_run_folder(target, force=force)
        if not (force or not holds_fit(target) or _is_of_same_run(fit, target)):
            raise OutputRefused(
                f"{target} holds another fit; give a new folder, or {{force}} to replace it", Remedy("force", True)
            )
        target.mkdir(exist_ok=True)

    def finish(more: dict[str, Any]) -> None:
        _write(fit, target, is_ours(target) or is_free(target), force, more)

    if fit.data.is_whole:
        prepare()
        finish({})
    else:
        save_parts(fit, target, prepare, finish)


def _is_of_same_run(fit: Any, folder: Path) -> bool:
    """Return whether the fit in a folder is this one, or what its run had when it was interrupted."""
    try:
        text = _read_text(folder)
        told = {"contract": type(fit.data).__name__, "model": fit.member.name, "options": _options(fit)}
        told |= {name: getattr(fit, name) for name in ("method", "seed", "draws")}
        told |= {"data_hash": fit.attributes["data_hash"], "priors": fit.describe()["priors"]}
        stored_text = {**text["attributes"], **text, "priors": text["attributes"]["priors"]}
        if any(stored_text[name] != value for name, value in told.items()):
            return False
        if text["result"] == Result.interrupted:
            return fit.run is not None and fit.run.steps >= text["run"]["steps"]
        with np.load(folder / text["arrays"], allow_pickle=False) as stored:
            return _equal_arrays({name: stored[name] for name in stored.files}, _arrays(fit))
    except (*_TORN, InvalidFit):
        return False


def _equal_arrays(some: Mapping[str, np.ndarray], others: Mapping[str, np.ndarray]) -> bool:
    same = some.keys() == others.keys() and all(some[name].dtype == others[name].dtype for name in some)
    return same and all(some[name].tobytes() == others[name].tobytes() for name in some)


def _write(fit: Any, target: Path, ours: bool, force: bool, more: dict[str, Any]) -> None:
    """Write the arrays, then the text with more entries, and remove those of an earlier fit."""
    name = f"arrays-{secrets.token_hex(4)}.npz"
    try:
        sha256 = write_arrays(target / name, _arrays(fit))
        text = {"format": FORMAT, "generator": GENERATOR, "arrays": name, "arrays_sha256": sha256}
        text |= {"contract": type(fit.data).__name__}
        text |= {"sizes": _sizes(fit.data), "model": fit.member.name, "options": _options(fit), "seed": int(fit.seed)}
        text |= {"method": fit.method, "reason": fit.reason, "result": str(fit.result), "draws": int(fit.draws)}
        text |= {"attributes": {**fit.attributes, "priors": fit.describe()["priors"]}, "run": _run_text(fit)}
        text |= {"priors": stored_priors(fit.priors), "notes": [_note_text(note) for note in fit.findings()]}
        text |= {"posterior": fit.posterior.text, **more}
        if more:
            del text["notes"]  # of one process; the whole is asked when it is loaded
        write_text(target / FIT_TEXT, {**text, "text_sha256": text_digest(text)}, force=force or ours)
    except BaseException:
        with contextlib.suppress(OSError):
            target.rmdir()  # made here, unless something is in it
        raise
    for file in target.iterdir() if ours else ():
        whole = made_for(file.name)
        kept = {name, *map(labels_file, range(len(more.get("labels_sha256", ()))))}
        if file.name not in kept and (whole == FIT_TEXT or is_array_file(whole or file.name)):
            file.unlink()  # of the earlier fit, or of a save that was killed


def read(
    path: str | os.PathLike, model: Model | Callable | None, truth: Callable | None
) -> tuple[dict[str, Any], list[Note]]:
    """Read the fields of a `Fit` from a folder, and what one of an earlier version said of its priors.

    Parameters
    ----------
    path, model, truth : see `consilience.inference.loading.load_fit`.

    Raises
    ------
    InvalidFit : the folder is missing, torn, changed since it was written, or of a later version.
    """
    folder = Path(path)
    text = _read_text(folder)
    arrays_file = folder / text["arrays"]
    if digest(arrays_file) != text.get("arrays_sha256"):
        raise InvalidFit(f"{arrays_file} was changed or torn after it was written; fit again")
    try:
        with np.load(arrays_file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        if text["format"] == 2:
            arrays = _from_format_2(arrays)
        if "shards" in text:
            data, found = joined(folder, text)
            arrays |= {f"posterior.hidden.{name}": values for name, values in found.items()}
            text["attributes"]["data_hash"] = data.fingerprint()
        else:
            data = _data(text, arrays)
        if problem := data.problem() or _problem_of_text(text):
            raise InvalidFit(f"{folder}: the saved fit cannot be right, because {problem}; fit again")
        options = {name: value for name, value in text["options"].items() if name not in _GONE}
        text["options"] = as_saved(options, text["model"])
        member = _member(folder, text["model"], model, truth)
        if text["method"] not in member.methods:
            raise ValueError(f"'{member.name}' has no method '{text['method']}'")
        # A fit of before the priors were stored has them in words.
        priors = restored_priors(text.get("priors", {}), text["attributes"].get("priors", ""), member.priors)
        resolved = Resolved(data, _settings(member, text["options"]), priors, member.sites)
        earlier = earlier_settings(member, text["options"])
        own = _part(arrays, "posterior")
        if text["format"] == 2:
            posterior = earlier_posterior(member, text["method"], own, resolved)
        else:
            posterior = restored_posterior(text["posterior"], own)
        if problem := posterior_problem(posterior, data, member.sites):
            raise InvalidFit(f"{folder}: the saved fit cannot be right, because {problem}; fit again")
        result = Result(text["result"])
        run = _run(text["run"], arrays, result)
        # One of before notes were stored is asked anew, and has what it said of its priors among the attributes.
        said = tuple(map(_note, text["notes"])) if "notes" in text else None
        advice = text["attributes"].pop("advice", [])
    except _TORN as problem:
        raise InvalidFit(f"{folder}: the saved fit is not complete ({problem!r}); fit again") from problem
    except (UnknownName, UnsupportedRequest) as problem:
        raise InvalidFit(f"{folder}: the saved fit cannot be read, because {problem}; fit again") from problem
    if data.fingerprint() != text["attributes"].get("data_hash"):
        raise InvalidFit(f"{folder}: its data are not those that were fitted; fit again")
    fields = {name: text[name] for name in ("method", "reason", "seed", "draws", "attributes")}
    fields |= {"member": member, "resolved": resolved, "posterior": posterior, "result": result, "run": run}
    forgotten = list(advice) if said is None and priors is None else []
    if earlier:
        had = ", ".join(f"{name}={value!r}" for name, value in earlier.items())
        forgotten.append(f"this fit was saved by an earlier version, and has {had} as it had")
    return {**fields, "said": said}, [Note(Level.note, one) for one in forgotten]


def _note_text(note: Note) -> dict[str, Any]:
    remedies = [
        {"argument": remedy.argument, **({} if remedy.value is ... else {"value": remedy.value})}
        for remedy in note.remedies
    ]
    named = {name: getattr(note, name) for name in ("text", "title", "model", "about")}
    return {"level": note.level.name, "remedies": remedies, **named}


def _note(text: Mapping[str, Any]) -> Note:
    remedies = tuple(Remedy(**remedy) for remedy in text["remedies"])
    return Note(
        Level[text["level"]], text["text"], remedies, text["title"], text.get("model", ""), text.get("about", "")
    )


def _arrays(fit: Any) -> dict[str, np.ndarray]:
    data = fit.data
    if not data.is_whole:
        return {f"posterior.{name}": values for name, values in posterior_arrays(fit.posterior).items()
                if name.removeprefix("hidden.") not in fit.hidden_of_items} | _run_arrays(fit)
    arrays = {f"data.{name}": np.asarray(getattr(data, name)) for name in data.names("array") if _has(data, name)}
    for name in data.names("ids"):
        if _has(data, name):
            arrays |= _stored_ids(f"ids.{name}", getattr(data, name))
    arrays |= {f"posterior.{name}": values for name, values in posterior_arrays(fit.posterior).items()}
    return arrays | _run_arrays(fit)


def _run_arrays(fit: Any) -> dict[str, np.ndarray]:
    if fit.run is None:
        return {}
    elbo = {} if fit.run.elbo is None else {"elbo": fit.run.elbo}
    return {f"stats.{name}": values for name, values in fit.run.stats.items()} | elbo


def _stored_ids(place: str, ids: Any) -> dict[str, np.ndarray]:
    """Return ids as one text and the number of characters of each: texts of fixed width would all be the longest."""
    texts = list(map(str, ids))
    text = "".join(texts).encode("utf-8")
    return {
        f"{place}.text": np.frombuffer(text, np.uint8),
        f"{place}.lengths": np.fromiter(map(len, texts), np.int64, len(texts)),
    }


def _read_ids(arrays: Mapping[str, np.ndarray], place: str) -> list[str]:
    text = arrays[f"{place}.text"].astype(np.uint8, casting="safe").tobytes().decode("utf-8")
    lengths = arrays[f"{place}.lengths"].astype(np.int64, casting="safe")
    if lengths.ndim != 1 or (lengths < 0).any() or lengths.sum() != len(text):
        raise ValueError(f"the lengths of {place} are not those of its text")
    ends = np.cumsum(lengths).tolist()
    return [text[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]


def _from_format_2(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays as they would be stored today."""
    now = {name: values for name, values in arrays.items() if not name.startswith("ids.")}
    for place in arrays.keys() - now.keys():
        now |= _stored_ids(place, arrays[place])
    return now


def _has(data: Contract, name: str) -> bool:
    return getattr(data, name) is not None


def _options(fit: Any) -> dict[str, Any]:
    """Return the options; objects of a reader's own in words."""
    plain = (str, int, float, bool, type(None))
    return {name: value if isinstance(value, plain) else repr(value) for name, value in fit.options.items()}


def _sizes(data: Contract) -> dict[str, int]:
    return {name: int(size) for name in data.names("size") if (size := getattr(data, name)) is not None}


def _run_text(fit: Any) -> dict[str, Any] | None:
    if fit.run is None:
        return None
    run = fit.run
    return {"steps": run.steps, "seconds": run.seconds, "message": run.message, "k_hat": fit.known_k_hat}


def _read_text(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise InvalidFit(f"{folder} is not a folder; give the folder that `fit … -o` or fit.save() wrote")
    if not holds_fit(folder):
        raise InvalidFit(f"{folder} has no fit.json; it is not a saved fit")
    try:
        text = json.loads((folder / FIT_TEXT).read_text(encoding="utf-8"))
        version = text["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InvalidFit(f"{folder}/fit.json is torn or not a saved fit; fit again") from None
    if version not in (2, FORMAT) or type(version) is not int:
        attributes = text.get("attributes")
        writer = attributes.get("library_version") if isinstance(attributes, dict) else None
        newer = "; update consilience, or fit again" if type(version) is int and version > FORMAT else "; fit again"
        raise InvalidFit(
            f"{folder} has format {version}, written by consilience {writer}; this is consilience {__version__}, "
            f"which reads formats 2 to {FORMAT}{newer}"
        )
    if text.pop("text_sha256", None) != text_digest(text):
        raise InvalidFit(f"{folder}: fit.json was changed or torn after it was written; fit again")
    arrays = str(text.get("arrays"))
    if not ARRAYS.fullmatch(arrays):
        raise InvalidFit(f"{folder}: fit.json names '{arrays}', which no fit calls its arrays; fit again")
    if not (folder / arrays).is_file():
        raise InvalidFit(f"{folder} lacks the arrays of the fit; it is not complete, fit again")
    return text


def _part(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(f"{prefix}."): values for name, values in arrays.items() if name.startswith(f"{prefix}.")}


def _member(folder: Path, name: str, model: Any, truth: Callable | None) -> Model:
    """Return the member that was fitted; a function of the user's own cannot be stored and has to be given again."""
    if model is None and name not in names():
        raise InvalidFit(f"{folder} holds a fit of '{name}', which is no model of the zoo; pass it again with model=")
    member = as_member(name if model is None else model, truth)
    if member.name != name:
        raise InvalidFit(f"{folder} holds a fit of '{name}', not of '{member.name}'; pass the model that was fitted")
    return member


def _data(text: dict[str, Any], arrays: dict[str, np.ndarray]) -> Contract:
    kind = getattr(contracts, text["contract"])
    if not (isinstance(kind, type) and issubclass(kind, Contract)):
        raise TypeError(f"{text['contract']} is no kind of data")
    names = [name for name in kind.names("ids") if f"ids.{name}.text" in arrays]
    ids = {name: object_array(_read_ids(arrays, f"ids.{name}")) for name in names}
    return kind(**_part(arrays, "data"), **text["sizes"], **ids)


def _problem_of_text(text: Mapping[str, Any]) -> str | None:
    """Return in words what a text of a fit cannot say; None where it can all be so."""
    for name, kind in _KINDS_OF_TEXT.items():
        if type(text[name]) is not kind:
            return f"'{name}' is {text[name]!r}, which is no {kind.__name__}"
    for name, least in (("draws", 1), ("seed", 0)):
        if text[name] < least:
            return f"'{name}' is {text[name]}, less than {least}"
        if text[name] >= 1 << 63:
            return f"'{name}' is {text[name]}, and no number of 64 bits"
    return None


def earlier_settings(member: Model, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a fit had, by name, that was saved before these settings existed."""
    fields = member.settings.fields()
    return {one.name: one.earlier for one in fields if one.earlier is not None and one.name not in stored}


def _settings(member: Model, stored: Mapping[str, Any]) -> Settings:
    """Return the settings; what was an object of a reader's own is there in words."""
    in_words = {
        field.name for field in member.settings.fields()
        if field.own is not None and isinstance(stored.get(field.name), str)
    }  # fmt: skip
    given = {**earlier_settings(member, stored), **stored}
    checked = member.settings.checked({name: one for name, one in given.items() if name not in in_words}, member.name)
    return replace(checked, **{name: stored[name] for name in in_words})


def _run(text: dict[str, Any] | None, arrays: dict[str, np.ndarray], result: Result) -> GenericRun | None:
    if text is None:
        return None
    kinds = (("steps", int), ("seconds", int | float), ("message", str), ("k_hat", int | float | None))
    for name, kind in kinds:
        if not isinstance(text[name], kind):
            raise TypeError(f"'{name}' of the run is {text[name]!r}")
    stats, elbo = _part(arrays, "stats"), arrays.get("elbo")
    return GenericRun({}, stats, result, text["steps"], text["seconds"], text["message"], elbo, text["k_hat"])
