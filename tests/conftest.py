"""What every test shares: tests on outside data are deselected where it is not at hand, and the summary says so."""

import gc
import importlib.metadata
import os
import stat
import sys
import tempfile
from pathlib import Path

import hypothesis
import pytest

# The benchmarks are a package of the checkout that is never installed.
sys.path.append(str(Path(__file__).parents[1]))

_FOLDERS = {"public_data": "CONSILIENCE_DATA", "oracles": "CONSILIENCE_ORACLES"}
_LEFT_OUT = pytest.StashKey[list[str]]()

# The first call of a test compiles, and a busy machine takes its time: how long an example takes says nothing.
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")


def _at_hand(variable):
    folder = os.environ.get(variable)
    if folder and not Path(folder).is_dir():
        raise pytest.UsageError(f"{variable}={folder} is not a folder")
    return bool(folder)


def pytest_configure(config):
    """Compile in a hurry, here and in processes that tests start: most of the time of tests on small data is compiling.

    Tests of the slow set have more to compute; with them programs are what users run.
    """
    os.environ.setdefault("CONSILIENCE_COMPILATION_CACHE", "off")  # no test writes to the user's folder
    _share_programs(config)
    if config.option.markexpr == "not slow":
        os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
        if "jax" in sys.modules:
            sys.modules["jax"].config.update("jax_disable_most_optimizations", True)
        # Its older way to compile loops takes half the time. XLA ends the process for an option that it does not know,
        # so that this is for the versions that were looked at.
        version = tuple(int(part) for part in importlib.metadata.version("jaxlib").split(".")[:2])
        if (0, 8) <= version <= (0, 10):
            os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")


def _share_programs(config):
    """Let the processes that run tests find on disk what one of them has compiled."""
    if "JAX_COMPILATION_CACHE_DIR" in os.environ or not config.getoption("numprocesses", None):
        return
    folder = tempfile.TemporaryDirectory(prefix="consilience-tests-", ignore_cleanup_errors=True)
    config.add_cleanup(folder.cleanup)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = folder.name
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"


def pytest_collection_finish():
    """Spare what is there before the first test from collections of garbage, which took six per cent of the time."""
    gc.freeze()
    gc.set_threshold(50_000, *gc.get_threshold()[1:])


def _mark_long(items):
    """Mark the tests of `LONG` as slow."""
    from tests.long import LONG

    for item in items:
        cases = LONG.get(item.nodeid.split("::")[0].removeprefix("tests/"), {}).get(getattr(item, "originalname", None))
        if cases is not None and (not cases or item.callspec.id in cases):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(tryfirst=True)  # before the slow ones are left out
def pytest_collection_modifyitems(config, items):
    _mark_long(items)
    left_out = []
    for marker, variable in _FOLDERS.items():
        if not _at_hand(variable):
            without = [item for item in items if item.get_closest_marker(marker)]
            if without:
                items[:] = [item for item in items if not item.get_closest_marker(marker)]
                config.hook.pytest_deselected(items=without)
                left_out.append(f"{len(without)} tests marked {marker} were left out: {variable} is not set")
    config.stash[_LEFT_OUT] = left_out
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = left_out


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take what a process left out, which is the same for all, to where the summary is written."""
    node.config.stash[_LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", [])


def pytest_terminal_summary(terminalreporter, config):
    for line in config.stash.get(_LEFT_OUT, []):
        terminalreporter.write_line(line)


@pytest.fixture(autouse=True)
def _forget_too_many_programs():
    """What a fit does, for tests without one."""
    yield
    if "jax" in sys.modules:
        from consilience.inference.compilation import forget_programs

        forget_programs()


@pytest.fixture
def compilations(monkeypatch):
    """Return a list that grows with every program that XLA compiles, while no fit lets go of those of tests before."""
    import jax

    from consilience.inference import compilation

    monkeypatch.setattr(compilation, "_MOST_MAPPINGS", 2 * compilation._MOST_MAPPINGS)
    events = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, duration, **details: events.append(event) if "backend_compile" in event else None
    )
    jax.jit(lambda x: x + 1)(jax.numpy.arange(7)).block_until_ready()
    assert events, "jax no longer reports compilations under this name"
    return events


@pytest.fixture
def double_precision():
    """Compute in double precision for the time of a test."""
    import jax

    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def exact_sizes():
    """Problems of the size of their data, for tests that count; that padding changes nothing is a law of its own."""
    from consilience.models.rows import padding

    with padding(False):
        yield


@pytest.fixture
def data_folder():
    """Return the folder of public data that CONSILIENCE_DATA names."""
    return Path(os.environ["CONSILIENCE_DATA"])


@pytest.fixture
def oracles_folder():
    """Return the folder of stored outputs of peers that CONSILIENCE_ORACLES names."""
    return Path(os.environ["CONSILIENCE_ORACLES"])


@pytest.fixture
def everything():
    """Return a function that tells all that is in a folder: names, kinds, permissions, links to a file, contents."""

    def everything(folder):
        found = {}
        for path in sorted(folder.rglob("*")):
            about = path.lstat()
            regular = stat.S_ISREG(about.st_mode)
            found[path.relative_to(folder)] = (about.st_mode, about.st_nlink, path.read_bytes() if regular else None)
        return found

    return everything
