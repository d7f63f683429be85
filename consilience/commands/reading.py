"""How the commands read: data for a model, saved fits, groups of classes."""

from __future__ import annotations

import inspect
import json
import warnings
from argparse import Namespace as Arguments
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilience import models as registry
from consilience.errors import InputError, InputProblem, InvalidFit, UnsupportedRequest, WrongKind, meant
from consilience.inference.compilation import keep_compiled_as_asked
from consilience.inference.run_folder import CHECKPOINT, FIT_TEXT, fit_folder, holds_fit
from consilience.piped import STANDARD_INPUT

if TYPE_CHECKING:
    from consilience.data import ClassMap
    from consilience.inference.fitting import Fit

READING = ("missing", "duplicates", "unknown", "antecedents", "layout", "labels", "classes", "columns")
"""The flags that say how a file is read."""

READING_BY_FIT = (
    "id", "entity", "fields", "missing_values", "features", "grades", "dont_know", "questions", "without_offsets",
)  # fmt: skip


def read_data(arguments: Arguments, *contracts: str) -> Any:
    """Read the file, or load public data of that name, as one of the contracts that the model takes.

    Raises
    ------
    InputError : the file does not exist or cannot be used.
    WrongKind : the public data are of another kind.
    UnsupportedRequest : flags have no meaning for the data.
    """
    from consilience import data
    from consilience.data.accept import choose_contract

    given = {name: getattr(arguments, name) for name in READING if name not in ("labels", "classes")}
    given |= {name: getattr(arguments, name, None) for name in READING_BY_FIT}
    given = {name: value for name, value in given.items() if value is not None}
    closed = arguments.labels or arguments.classes
    source = arguments.file
    if (column := getattr(arguments, "annotator_groups", None)) is not None:
        given["columns"] = arguments.columns = {**(arguments.columns or {}), "group": column}
    if is_public(source):
        if given or closed:
            raise UnsupportedRequest(f"{source} is public data, which is read as published; leave out {flags(given)}")
        found = data.describe(source).contract
        if found not in contracts:
            raise WrongKind(f"'{arguments.model}' takes {' or '.join(contracts)}; {source} holds {found}")
        return data.load(source)
    taken = [getattr(data, name) for name in contracts]
    contract: Any = choose_contract(source, taken, arguments.columns, arguments.layout or "long")
    known = inspect.signature(contract.read).parameters
    if closed is not None:
        as_typed = "labels" if arguments.labels else "classes"
        given[next((name for name in ("labels", "classes") if name in known), as_typed)] = closed
    if unfit := [name for name in given if name not in known]:
        columns = f"to which the columns of {source} belong"
        which = f"which '{arguments.model}' takes" if len(contracts) == 1 else columns
        raise UnsupportedRequest(f"{flags(unfit)} has no meaning for {contract.__name__}, {which}")
    return contract.read(source, **given)


def flags(names: Any) -> str:
    """Return arguments as the flags that they are."""
    return ", ".join(f"--{name.replace('_', '-')}" for name in names) or "--labels, --classes"


def is_public(source: str) -> bool:
    """Return whether a name without a file is that of public data.

    Raises
    ------
    InputError : it is neither.
    """
    if source == STANDARD_INPUT or Path(source).exists():
        return False
    from consilience import data

    if source in data.names():
        return True
    if source in registry.MEMBERS:
        problem = "this is the name of a model, and no file is called so"
        raise InputError(InputProblem(problem, "give the path of a file, or the name of public data", file=source))
    close = meant(source, data.names()).replace("mean", "mean the public data")
    remedy = f"{close} Otherwise check the path" if close else "check the path"
    raise InputError(InputProblem("there is no such file", remedy, file=source))


def load(arguments: Arguments) -> tuple[Fit, ClassMap | None]:
    """Load the fit, and the class map where there is one.

    Raises
    ------
    InvalidFit : the folder holds no fit, or a run that did not end.
    WrongKind : public data hold no class map.
    """
    folder, source = fit_folder(arguments.folder), getattr(arguments, "class_groups", None)
    if not holds_fit(folder):
        if (folder / CHECKPOINT).is_dir():  # which a kill may have left before anything was in it
            raise InvalidFit(
                f"{folder} holds a run that did not end; give its command again, with --resume, to go on with it"
            )
        what = "has no fit.json; it is not a saved fit" if folder.is_dir() else "is not a folder"
        raise InvalidFit(f"{folder} {what}; give the folder that `consilience fit … -o` wrote")
    keep_compiled_as_asked("on")
    from consilience.data.accept import as_class_map, lists_groups

    risk = source if source is None or lists_groups(source) else _class_map(source)
    from consilience.inference.loading import load_fit

    fitted = load_fit(folder)
    _say_if_poor(fitted, folder)
    return fitted, as_class_map(fitted, risk)


def _class_map(source: str) -> ClassMap:
    from consilience import data

    if not is_public(source):
        return data.read_class_map(source)
    if data.describe(source).contract != "ClassMap":
        raise WrongKind(f"{source} is no class map, but {data.describe(source).contract}")
    return data.load(source)


def _say_if_poor(fitted: Fit, folder: Path) -> None:
    """Repeat what `fit` said of the run, from what is stored: what follows is no better than the fit."""
    from consilience.inference.posterior import POOR_ESS, POOR_R_HAT

    known = fitted.attributes
    poor = [f"its result is {fitted.result}"] if not fitted.result.complete else []
    if known.get("worst_r_hat", 1.0) > POOR_R_HAT:
        poor.append(f"its largest R-hat is {known['worst_r_hat']:.2f}")
    if known.get("fewest_effective_draws", POOR_ESS) < POOR_ESS:
        poor.append(f"a quantity has {int(known['fewest_effective_draws'])} effective draws only")
    if poor:
        from consilience.errors import ConsilienceWarning

        warnings.warn(f"the fit in {folder} is poor: {'; '.join(poor)}", ConsilienceWarning, stacklevel=2)


def contract_of(folder: Path) -> str | None:
    """Return of what data a folder holds a saved fit; None where it holds none, or a torn one."""
    if not holds_fit(folder):
        return None
    try:
        found = json.loads((folder / FIT_TEXT).read_text(encoding="utf-8")).get("contract")
    except (OSError, ValueError, AttributeError):
        return None  # that it is torn is said where it is loaded
    return found if isinstance(found, str) else None


def holds_records(folder: Path) -> bool:
    """Return whether a folder holds a saved fit of records."""
    return contract_of(folder) == "Records"


_OF_VIEWS = {
    "certainty": "`consilience table {run} views` has the probability of each item's cluster in each view",
    "next": "`consilience table {run} questions` lists the pairs most worth an answer",
    "chains": "`consilience table {run} views` prints the clusters of each view",
    "agreement": "`consilience table {run} same_view` says how probably two experts share a view",
    "scores": (
        "write the clusters of one by `consilience table {run} views --view N --csv view.csv`, and compare them by "
        "`consilience score KEY view.csv --columns record=item`"
    ),
}  # fmt: skip


def refuse_views(arguments: Arguments, command: str) -> None:
    """Say what serves in the place of a command for one truth of the items; views have several clusterings.

    Raises
    ------
    UnsupportedRequest : the fit is of views.
    InvalidFit : a file stands where the folder of a fit is expected.
    """
    folder = fit_folder(arguments.folder)
    if folder.is_file():  # before anything else is looked at: the arguments may be swapped
        raise InvalidFit(f"{folder} is not a folder; the first argument is that which `consilience fit … -o` wrote")
    if contract_of(folder) == "Constraints":
        what = f"{folder} holds views of experts, several clusterings and not one truth"
        raise UnsupportedRequest(f"{what}; {_OF_VIEWS[command].format(run=folder)}")
