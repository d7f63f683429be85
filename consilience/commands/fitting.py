"""`fit` and `check`: what runs inference."""

from __future__ import annotations

import contextlib
from argparse import Namespace as Arguments
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilience import models as registry
from consilience.commands import ExitCode
from consilience.commands.files import inputs_of
from consilience.commands.reading import READING, flags, is_public, load, read_data
from consilience.commands.stopped_runs import (
    after_run,
    is_complete,
    kept_checkpoint,
    refuse_unfinished,
    say_complete,
    stoppable,
)
from consilience.deprecation import current
from consilience.errors import InvalidFit, OutputRefused, UnknownName, UnsupportedRequest
from consilience.inference.compilation import keep_compiled_as_asked
from consilience.inference.given_options import given_options
from consilience.inference.run_folder import CHECKPOINT, FIT_TEXT, check_run_folder, holds_checkpoint, holds_fit
from consilience.output import is_input
from consilience.printing import counted, json_text, print_notes, rows_of

if TYPE_CHECKING:
    from consilience.inference.fitting import Fit
    from consilience.models.interface import Model


def fit(arguments: Arguments) -> int:
    """Fit a model to a file, save the fit, say what was read and found.

    Raises
    ------
    InputError : the file does not exist or cannot be used.
    WrongKind : the public data are of a kind that the model does not take.
    UnknownName : there is no such model.
    OutputRefused : the folder cannot be written to, or holds the input.
    InvalidFit : the folder holds a fit or a run that did not end, and it is not said what is to become of it.
    UnsupportedRequest : flags have no meaning for the data or contradict each other, or the run ended before its first
        draw.
    KeyboardInterrupt : by hand, before the first draw; the text says how to go on, where there is a checkpoint.
    """
    if arguments.model not in registry.MEMBERS and arguments.file in registry.MEMBERS:
        raise UnknownName(f"the model comes first: fit {arguments.file} {arguments.model}")
    takes = registry.place(arguments.model).takes
    target = _run_folder(arguments)
    keep_compiled_as_asked("on")
    # To look at the model's options takes JAX; a file may take longer still to read, and one without options does not.
    given = arguments.member_options
    options = _typed(registry.member(arguments.model), given) if given and not is_public(arguments.file) else None
    content = read_data(arguments, *takes)
    import consilience as cs

    options = _typed(registry.member(arguments.model), given) if options is None else options
    if arguments.resume and holds_fit(target) and not holds_checkpoint(target):
        if not _is_as_asked(target, arguments, content, options):
            raise InvalidFit(f"{target} holds a fit that is complete, {_OTHER}")
        return say_complete(target, arguments.json)
    checkpoint = kept_checkpoint(target, resume=arguments.resume, force=arguments.force)
    _provide_devices(arguments.devices)
    with precision(arguments.x64), stoppable(target, arguments.words):
        fitted = cs.fit(
            arguments.model, content, method=arguments.method, draws=arguments.draws, chains=arguments.chains,
            warmup=arguments.warmup, seed=arguments.seed, max_steps=arguments.max_steps, tolerance=arguments.tolerance,
            devices=arguments.devices, time_limit=arguments.time_limit, checkpoint=checkpoint, **options,
        )  # fmt: skip
    go_on, code = after_run(fitted, target, arguments.words)
    fitted.save(target, force=arguments.force or arguments.resume)
    if fitted.run is not None and fitted.result.complete:
        checkpoint.remove()
    _print_fit(fitted, target, arguments, go_on)
    return code


def update(arguments: Arguments) -> int:
    """Add a file of annotations to a saved fit, save the fit of all of them to another folder, say what was found.

    Raises
    ------
    InvalidFit : there is no fit to update, or the new folder holds one and it is not said what is to become of it.
    OutputRefused : the new folder cannot be written to, or is that of the fit.
    InputError : the file does not exist or cannot be used, or contradicts what is known.
    UnsupportedRequest : the fit is not of annotations, or the run ended before its first draw.
    """
    target = _run_folder(arguments)
    fitted, _ = load(arguments)
    from consilience.data import read_annotations

    new: Any = arguments.file
    if arguments.columns is not None:
        new = read_annotations(new, columns=arguments.columns, duplicates=arguments.duplicates)
    later = fitted.update(new, duplicates=arguments.duplicates)
    if later.is_empty:
        why = later.message or "give it more time"
        raise UnsupportedRequest(f"the run ended before the first draw, and nothing was written; {why}")
    later.save(target, force=arguments.force)
    _print_fit(later, target, arguments, None, f"{arguments.folder} and ")
    return ExitCode.interrupted if later.result == "interrupted" else ExitCode.success


def _run_folder(arguments: Arguments) -> Path:
    """Return the folder to write to; it must be new, unless it is to be replaced or gone on with."""
    target = Path(arguments.output)
    check_run_folder(arguments.output, force=arguments.force)
    for file in (FIT_TEXT, CHECKPOINT):
        if (target / file).exists() and is_input(target / file, inputs_of(arguments)):
            raise OutputRefused(f"{target / file} is an input of this command; give another folder")
    refuse_unfinished(target, target, resume=arguments.resume, force=arguments.force)
    if holds_fit(target) and not holds_checkpoint(target) and not (arguments.force or arguments.resume):
        raise InvalidFit(f"{target} holds a fit; give a new folder, or --force to replace it")
    return target


_OTHER = "but of other data or settings; give a new folder, or --force to replace it"


def _is_as_asked(target: Path, arguments: Arguments, content: Any, options: Mapping[str, Any]) -> bool:
    """Return whether the complete fit of a folder is of these data and settings."""
    from consilience.inference.stored_priors import describe_priors

    resolved = registry.member(arguments.model).resolve(content, None, options)
    limits = {name: getattr(arguments, name) for name in ("draws", "chains", "warmup", "max_steps", "tolerance")}
    return is_complete(
        target, model=arguments.model, seed=arguments.seed, **limits, data_hash=resolved.data.fingerprint(),
        method=None if arguments.method == "auto" else arguments.method, options=resolved.settings.as_dict(),
        priors=describe_priors(resolved.given),
    )  # fmt: skip


def _typed(member: Model, given: Mapping[str, str]) -> dict[str, Any]:
    """Check the model's own settings, which came as text."""
    options = current({name.replace("-", "_"): value for name, value in given.items()}, member.name)
    checked = member.settings.checked(options, member.name)
    return {name: getattr(checked, name) for name in options}


def _provide_devices(number: int | None) -> None:
    """Let JAX see that many devices also where there are no GPUs; it looks for devices at their first use."""
    if number is None:
        return
    if number < 1:
        raise UnsupportedRequest(f"--devices is {number}; give 1 or more")
    import jax

    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", number)


def precision(double: bool) -> Any:
    """Return a context in which JAX computes in double precision, if that is asked for."""
    if not double:
        return contextlib.nullcontext()
    import jax

    return jax.enable_x64(True)


def _print_fit(fitted: Fit, target: Path, arguments: Arguments, go_on: str | None, beside: str = "") -> None:
    described = fitted.describe()
    sizes = fitted.data.counts
    if arguments.json:
        resume = {} if go_on is None else {"resume": go_on}
        calibrated = _calibration(fitted)
        print(json_text({"folder": str(target), "file": arguments.file, **sizes, **described, **calibrated, **resume}))
        return
    if fitted.headline:
        print(fitted.headline)
    options = "".join(f", {name} {value}" for name, value in given_options(fitted).items())
    options += "".join(
        f"; chosen: {name} {value}" for name, value in fitted.options.items() if value != given_options(fitted)[name]
    )
    read = ", ".join(counted(size, name) for name, size in sizes.items())
    print(f"read     {beside}{arguments.file}: {read}{fitted.data.changed_in_words}")
    print(f"model    {fitted.member.name}: {fitted.member.title}{options}")
    print(f"method   {fitted.method}, {fitted.reason}")
    ended = " (every step was run)" if fitted.result == "max_steps" and fitted.elbo is None else ""
    print(f"result   {fitted.result}{ended} in {described['seconds']:,.2f} s")
    if "worst_r_hat" in described:
        kept = min(draws.shape[1] for draws in fitted.samples().values())
        asked = "" if kept == fitted.draws else f" ({fitted.draws:,} were asked for)"
        print(
            f"chains   {described['chains']} of {kept:,} draws{asked}; "
            f"of {described.get('diagnosed', 'all quantities')}, largest R-hat "
            f"{described['worst_r_hat']:.3f}, fewest effective draws {described['fewest_effective_draws']:,.0f}"
        )
    if "num_views" in fitted.member.measure_names:
        print(f"views    {fitted.measure('num_views')}")
    print_notes(fitted.findings())
    print(f"saved    {target}")
    if go_on is not None:
        print(f"resume   {go_on}")
    print(f"\nnext     consilience {fitted.data.command} {target}\n         consilience report {target} -o report.html")


def _calibration(fitted: Fit) -> dict[str, Any]:
    """Return how a fit stands beside gold labels, where there are any that it did not use."""
    if "calibration_score" not in fitted.member.measure_names:
        return {}
    with contextlib.suppress(UnsupportedRequest):
        return {"calibration": fitted.measure("calibration_score")._asdict()}
    return {}


def check(arguments: Arguments) -> int:
    """Test the hand-derived inference of a model, and say what each test found.

    Raises
    ------
    InputError : the file does not exist or cannot be used.
    UnknownName : there is no such model or setting.
    UnsupportedRequest : flags say how to read a file, and there is none, or they have no meaning for it.
    """
    takes = registry.place(arguments.model).takes
    reading = [name for name in READING if getattr(arguments, name)]
    if arguments.file is None and reading:
        raise UnsupportedRequest(f"{flags(reading)} says how to read a file, and none is given")
    keep_compiled_as_asked("on")
    content = None if arguments.file is None else read_data(arguments, *takes)
    options = _typed(registry.member(arguments.model), arguments.member_options)
    import consilience as cs

    with precision(arguments.x64):
        found = cs.check(
            arguments.model, content, method=arguments.method, draws=arguments.draws, chains=arguments.chains,
            seed=arguments.seed, replications=arguments.replications, quick=not arguments.long, **options,
        )  # fmt: skip
    described = {"model": found.model, "method": found.method, "passed": found.passed}
    described |= {"inconclusive": found.inconclusive, "checks": rows_of(found.table)}
    print(json_text(described) if arguments.json else found)
    return 0 if found.passed else ExitCode.poor
