"""Compiled programs kept between runs: most of the time of a small first fit is compilation."""

from __future__ import annotations

import _thread
import contextlib
import functools
import gc
import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from consilience.errors import UnsupportedRequest

RUN_ONCE: dict[str, Any] = {"xla_backend_optimization_level": 0}
"""Options of JAX for a program that runs once: it compiles in half the time, and runs for four times as long."""

# The newer emitters of XLA (jax 0.10) take 1.3 to 1.9 times as long to make programs that compute the same bits in 5 to
# 25 % less time, which a small run never gets back.
_QUICK: dict[str, Any] = {"xla_cpu_use_fusion_emitters": False}

_VARIABLE = "CONSILIENCE_COMPILATION_CACHE"
_OWN_FOLDER, _OWN_LEAST = "JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"
# What takes less time to compile, in seconds, is not kept.
_LEAST = 0.02
_DAYS_UNUSED = 90
# JAX's names of the files that it keeps; a folder of the user's may hold others.
_KEPT = ("*-cache", "*-atime")
_first_fit = iter([True])

# XLA maps memory for each program, some hundred times, and Linux allows a process 65,530 mappings: beyond, XLA crashes.
# A fit of a new size takes five programs or so, and 230 mappings with 10 MB.
_MAPPINGS, _MOST_MAPPINGS = Path("/proc/self/maps"), 25_000
_LOOKED_AFTER = 20  # programs: to count mappings takes milliseconds
_new_programs = [0]
_SOON = 0.05  # seconds


def keep_compiled(folder: str | os.PathLike | None = None) -> Path:
    """Keep compiled programs for later runs, which then need not compile them again.

    The setting is JAX's own and holds for everything that this process compiles from now on. The first fit does the
    same, unless JAX has a folder or the variable ``CONSILIENCE_COMPILATION_CACHE`` is "off"; it may be a folder, too.

    Parameters
    ----------
    folder : str or path, optional
        Where; by default the folder that JAX was told by the user, else one in the cache folder of the library.
        Programs in it are executed, so that nobody else may be able to write to it. Those unused for 90 days are
        removed.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    UnsupportedRequest : the folder cannot be made, is another user's, or may be written to by others.

    Examples
    --------
    >>> import consilience as cs
    >>> folder = cs.keep_compiled()  # doctest: +SKIP
    """
    jax = sys.modules.get("jax")
    own = os.environ.get(_OWN_FOLDER) if jax is None else jax.config.jax_compilation_cache_dir
    if folder is None and own:
        return Path(own)
    from consilience.data.catalogue import cache_folder  # it takes NumPy, and the grammar none

    chosen = _safe(cache_folder() / "compiled" if folder is None else Path(folder).expanduser().resolve())
    _remove_unused(chosen)
    if jax is None:  # it reads these when it is imported
        os.environ[_OWN_FOLDER] = str(chosen)
        os.environ.setdefault(_OWN_LEAST, str(_LEAST))
        return chosen
    from jax.experimental.compilation_cache import compilation_cache

    jax.config.update("jax_compilation_cache_dir", str(chosen))
    if _OWN_LEAST not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _LEAST)
    compilation_cache.reset_cache()  # JAX looks once only whether there is a folder
    return chosen


def keep_compiled_as_asked(default: str = "off") -> None:
    """Do what the variable ``CONSILIENCE_COMPILATION_CACHE`` says: "on", "off" or a folder.

    Parameters
    ----------
    default : what it says where it is not set, in which case a folder that will not do is no error.

    Raises
    ------
    UnsupportedRequest : the folder that it asks for will not do; see `keep_compiled`.
    """
    asked = os.environ.get(_VARIABLE, "")
    word = (asked or default).lower()
    if word == "off":
        return
    with contextlib.nullcontext() if asked else contextlib.suppress(UnsupportedRequest):
        keep_compiled(None if word == "on" else asked)


@functools.cache
def quick_options() -> dict[str, Any]:
    """Return options of JAX for a program that runs for less time than it compiles; none that XLA does not know."""
    import jax

    try:
        jax.jit(lambda: 0).lower().compile(compiler_options=_QUICK)
    except jax.errors.JaxRuntimeError:
        return {}
    return _QUICK


def keep_compiled_at_first_fit() -> None:
    """At the first fit of a process keep compiled programs, unless the user said where to, or not to.

    This is the one setting of JAX that the library changes by itself, where there is none.
    """
    if next(_first_fit, False):
        keep_compiled_as_asked("on")


def forget_programs() -> None:
    """Let go of all compiled programs where this process holds so many that a few hundred more would end it.

    What is needed again is compiled again, or comes from the folder of `keep_compiled`. Programs of the user are let go
    of too, as JAX does not tell them apart.
    """
    jax = sys.modules.get("jax")
    if jax is None or not _MAPPINGS.exists():
        return
    _count_programs()
    if _new_programs[0] < _LOOKED_AFTER:
        return
    _new_programs[0] = 0
    if _MAPPINGS.read_bytes().count(b"\n") > _MOST_MAPPINGS:
        jax.clear_caches()
        gc.collect()


@functools.cache
def _count_programs() -> None:
    """Count what JAX compiles from now on, or finds on disk."""
    import jax

    def count(event: str, duration_secs: float, **details: Any) -> None:
        _new_programs[0] += "backend_compile" in event

    jax.monitoring.register_event_duration_secs_listener(count)


@contextlib.contextmanager
def whole_compilations() -> Iterator[None]:
    """Let Ctrl-C wait for the end of a compilation.

    JAX would leave it at once, and XLA go on with it in a thread of its own; Python, where it ends meanwhile, crashes.
    """
    answer = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(answer):
        yield
        return
    again = list[threading.Timer]()

    def wait(number: int, frame: FrameType | None) -> None:
        while again:
            again.pop().cancel()
        if not _compiles(frame):
            answer(number, frame)
            return
        again.append(threading.Timer(_SOON, _thread.interrupt_main))
        again[-1].daemon = True
        again[-1].start()

    signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, answer)
        if again:
            again.pop().cancel()
            signal.raise_signal(signal.SIGINT)


def _compiles(frame: FrameType | None) -> bool:
    """Return whether a frame is within the module of JAX that calls XLA to compile."""
    while frame is not None:
        if frame.f_globals.get("__name__") == "jax._src.compiler":
            return True
        frame = frame.f_back
    return False


def _safe(folder: Path) -> Path:
    """Return a folder to which nobody else can write, made where there is none."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as problem:
        raise UnsupportedRequest(f"{folder} cannot be made ({problem.strerror}); give another folder") from problem
    owner = getattr(os, "getuid", lambda: found.st_uid)()
    why = "is another user's" if found.st_uid != owner else "may be written to by others"
    if found.st_uid != owner or (os.name == "posix" and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        raise UnsupportedRequest(
            f"{folder} {why}, and programs in it would be run as you; give another folder, or chmod 700 your own"
        )
    return folder


def _remove_unused(folder: Path) -> None:
    """Remove programs that nobody has used for long; another process may do the same at once."""
    oldest = time.time() - _DAYS_UNUSED * 24 * 3600
    for kept in (one for pattern in _KEPT for one in folder.glob(pattern)):
        with contextlib.suppress(OSError):
            found = kept.stat()
            if max(found.st_atime, found.st_mtime) < oldest:
                kept.unlink()
