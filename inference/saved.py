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
from pathlib import Path
from typing import Any

import numpy as np

import consilience.data as contracts
from consilience._version import __version__
from consilience.data.contract import Contract
from consilience.errors import InvalidFit
from consilience.inference.durable import digest, text_digest, write_arrays, write_text
from consilience.inference.fitting import Fit, as_member, is_direct
from consilience.inference.generic import GenericRun
from consilience.inference.results import Result
from consilience.inference.run_folder import ARRAYS, FIT_TEXT, PARTIAL, holds_fit, is_free
from consilience.inference.stored_priors import restored_priors, stored_priors
from consilience.models import names
from consilience.models.interface import Model

__all__ = ["FORMAT", "load_fit", "save"]

FORMAT = 2
"""Version of the folder's layout; raised when an older library could misread a newer folder."""


def save(fit: Fit, path: str | os.PathLike) -> None:
    """Write a fit to a folder, in place of an earlier fit there; other files in the folder stay.

    Raises
    ------
    InvalidFit : the folder exists and is something else; it is left alone.
    """
    target = Path(path)
    if not holds_fit(target) and not is_free(target):
        raise InvalidFit(f"{target} exists and is not a saved fit; give a new folder")
    target.mkdir(parents=True, exist_ok=True)
    name = f"arrays-{secrets.token_hex(4)}.npz"
    try:
        sha256 = write_arrays(target / name, _arrays(fit))
        text = {"format": FORMAT, "arrays": name, "arrays_sha256": sha256, "contract": type(fit.data).__name__}
        text |= {"sizes": _sizes(fit.data), "model": fit.member.name, "options": _options(fit), "seed": int(fit.seed)}
        text |= {"method": fit.method, "reason": fit.reason, "result": str(fit.result), "draws": int(fit.draws)}
        text |= {"attributes": {**fit.attributes, "priors": fit.describe()["priors"]}, "run": _run_text(fit.run)}
        text |= {"priors": stored_priors(fit.priors)}
        write_text(target / FIT_TEXT, {**text, "text_sha256": text_digest(text)})
    except BaseException:
        with contextlib.suppress(OSError):
            target.rmdir()  # made here, unless something is in it
        raise
    for file in target.iterdir():
        if file.name != name and ARRAYS.fullmatch(file.name.removesuffix(PARTIAL)):
            file.unlink()  # of the earlier fit, or of a save that was killed


def load_fit(path: str | os.PathLike, *, model: Model | Callable | None = None, truth: Callable | None = None) -> Fit:
    """Read a fit from a folder.

    Parameters
    ----------
    path : the folder.
    model, truth : for a fit of your own NumPyro function, the same as were given to `fit`; inference is not repeated.

    Raises
    ------
    InvalidFit : the folder is missing, torn, changed since it was written, or of a later version.
    """
    folder = Path(path)
    text = _read_text(folder)
    arrays_file = folder / text["arrays"]
    if digest(arrays_file) != text["arrays_sha256"]:
        raise InvalidFit(f"{arrays_file} was changed or torn after it was written; fit again")
    try:
        with np.load(arrays_file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        data = _data(text, arrays)
        member = _member(folder, text["model"], model, truth)
        posterior = _posterior(member, text["method"], _part(arrays, "posterior"))
        result = Result(text["result"])
        run = _run(text["run"], arrays, posterior, result)
        # A fit of before the priors were stored has them in words.
        priors = restored_priors(text.get("priors", {}), text["attributes"].get("priors", ""), member.priors)
    except (KeyError, TypeError, ValueError, AttributeError, zipfile.BadZipFile) as problem:
        raise InvalidFit(f"{folder}: the saved fit is not complete ({problem!r}); fit again") from problem
    if data.fingerprint() != text["attributes"]["data_hash"]:
        raise InvalidFit(f"{folder}: its data are not those that were fitted; fit again")
    return Fit(
        member=member, data=data, priors=priors, options=text["options"], method=text["method"], reason=text["reason"],
        seed=text["seed"], draws=text["draws"], posterior=posterior, result=result, run=run,
        attributes=text["attributes"],
    )  # fmt: skip


def _arrays(fit: Fit) -> dict[str, np.ndarray]:
    data, posterior = fit.data, fit.posterior
    arrays = {f"data.{name}": np.asarray(getattr(data, name)) for name in data.names("array") if _has(data, name)}
    # Ids are text: an object array would need a pickle.
    arrays |= {
        f"ids.{name}": np.asarray(getattr(data, name), dtype=str) for name in data.names("ids") if _has(data, name)
    }
    sites = posterior if isinstance(posterior, Mapping) else posterior._asdict()
    arrays |= {f"posterior.{name}": np.asarray(values) for name, values in sites.items()}
    if fit.run is not None:
        arrays |= {f"stats.{name}": values for name, values in fit.run.stats.items()}
        arrays |= {} if fit.run.elbo is None else {"elbo": fit.run.elbo}
    return arrays


def _has(data: Contract, name: str) -> bool:
    return getattr(data, name) is not None


def _options(fit: Fit) -> dict[str, Any]:
    """Return the options; objects of a reader's own in words."""
    plain = (str, int, float, bool, type(None))
    return {name: value if isinstance(value, plain) else repr(value) for name, value in fit.options.items()}


def _sizes(data: Contract) -> dict[str, int]:
    return {name: int(getattr(data, name)) for name in data.names("size")}


def _run_text(run: GenericRun | None) -> dict[str, Any] | None:
    if run is None:
        return None
    return {"steps": run.steps, "seconds": run.seconds, "message": run.message, "k_hat": run.k_hat}


def _read_text(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise InvalidFit(f"{folder} is not a folder; give the folder that `fit … -o` or fit.save() wrote")
    try:
        text = json.loads((folder / FIT_TEXT).read_text(encoding="utf-8"))
        version = text["format"]
    except FileNotFoundError:
        raise InvalidFit(f"{folder} has no fit.json; it is not a saved fit") from None
    except (ValueError, KeyError, TypeError):
        raise InvalidFit(f"{folder}/fit.json is torn or not a saved fit; fit again") from None
    if version != FORMAT:
        writer = text.get("attributes", {}).get("library_version")
        raise InvalidFit(
            f"{folder} has format {version}, written by consilience {writer}; this is consilience {__version__}, "
            f"which reads format {FORMAT}"
        )
    if text.pop("text_sha256", None) != text_digest(text):
        raise InvalidFit(f"{folder}: fit.json was changed or torn after it was written; fit again")
    if not (folder / str(text.get("arrays"))).is_file():
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
    ids = {name: values.astype(object) for name, values in _part(arrays, "ids").items()}
    return kind(**_part(arrays, "data"), **text["sizes"], **ids)


def _posterior(member: Any, method: str, stored: dict[str, np.ndarray]) -> Any:
    return member.posterior(**stored) if method == "cavi" or is_direct(member, method) else stored


def _run(
    text: dict[str, Any] | None, arrays: dict[str, np.ndarray], posterior: Any, result: Result
) -> GenericRun | None:
    if text is None:
        return None
    samples = posterior if isinstance(posterior, dict) else {}
    stats, elbo = _part(arrays, "stats"), arrays.get("elbo")
    return GenericRun(samples, stats, result, text["steps"], text["seconds"], text["message"], elbo, text["k_hat"])
