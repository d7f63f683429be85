"""Kept programs: whose folder is taken, which is refused, what is removed, and what is said of compilation."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import jax
import pytest

import consilience as cs
from consilience.errors import UnsupportedRequest
from consilience.inference import compilation

ANNOTATIONS = cs.Annotations.from_counts([[3, 0], [1, 2]])


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch, tmp_path):
    """Let no user's setting interfere, and leave JAX as it was."""
    from jax.experimental.compilation_cache import compilation_cache

    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = {name: getattr(jax.config, name) for name in names}
    for name in ("CONSILIENCE_COMPILATION_CACHE", "JAX_COMPILATION_CACHE_DIR", compilation._OWN_LEAST):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CONSILIENCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compilation, "_first_fit", iter([True]))
    jax.config.update(names[0], None)
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def test_programs_are_kept_after_others_were_compiled(tmp_path):
    jax.jit(lambda x: x + 1)(1.0)
    folder = cs.keep_compiled()
    assert folder == tmp_path / "cache" / "compiled"
    assert folder.stat().st_mode & 0o777 == 0o700
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.jit(lambda x: x * 3 + 7)(2.0)
    assert list(folder.glob("*-cache"))
    assert cs.keep_compiled() == folder


def test_a_folder_of_the_users_own_wins_and_one_that_is_given_wins_over_that(tmp_path, monkeypatch):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "own"))
    assert cs.keep_compiled() == tmp_path / "own"
    assert not (tmp_path / "cache").exists()
    monkeypatch.setenv(compilation._OWN_LEAST, "0.7")
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.7)
    assert cs.keep_compiled(tmp_path / "given") == tmp_path / "given"
    assert jax.config.jax_compilation_cache_dir == str(tmp_path / "given")
    assert jax.config.jax_persistent_cache_min_compile_time_secs == 0.7


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_to_which_others_may_write_is_refused(tmp_path, mode):
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(UnsupportedRequest, match="may be written to by others.*chmod 700"):
        cs.keep_compiled(folder)
    assert jax.config.jax_compilation_cache_dir is None
    folder.chmod(0o755)  # to read is harmless
    assert cs.keep_compiled(folder) == folder


def test_a_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1, raising=False)
    with pytest.raises(UnsupportedRequest, match="is another user's, and programs in it would be run as you"):
        cs.keep_compiled(tmp_path)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnsupportedRequest, match="cannot be made .*give another folder"):
        cs.keep_compiled(tmp_path / "file")


def test_what_nobody_used_for_90_days_is_removed_and_nothing_else(tmp_path):
    old, names = time.time() - 91 * 24 * 3600, ("old-cache", "old-atime", "thesis.txt", "new-cache", "read-cache")
    for name in names:
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (old, old) if name != "new-cache" else None)
    os.utime(tmp_path / "read-cache", (time.time() - 89 * 24 * 3600, old))
    cs.keep_compiled(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"thesis.txt", "new-cache", "read-cache"}


@pytest.mark.parametrize(
    ("asked", "default", "kept"),
    [
        (None, "off", None), (None, "on", "cache/compiled"), ("off", "on", None), ("OFF", "on", None),
        ("on", "off", "cache/compiled"), ("elsewhere", "off", "elsewhere"), ("", "off", None),
    ],
)  # fmt: skip
def test_the_variable_says_what_is_kept(tmp_path, monkeypatch, asked, default, kept):
    monkeypatch.chdir(tmp_path)
    if asked is not None:
        monkeypatch.setenv("CONSILIENCE_COMPILATION_CACHE", asked)
    compilation.keep_compiled_as_asked(default)
    assert jax.config.jax_compilation_cache_dir == (None if kept is None else str(tmp_path / kept))


def test_only_a_folder_that_was_asked_for_is_refused_aloud(tmp_path, monkeypatch):
    folder = tmp_path / "cache" / "compiled"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    compilation.keep_compiled_as_asked("on")
    assert jax.config.jax_compilation_cache_dir is None
    monkeypatch.setenv("CONSILIENCE_COMPILATION_CACHE", "on")
    with pytest.raises(UnsupportedRequest, match="may be written to"):
        cs.fit("majority-vote", ANNOTATIONS)


def test_the_first_fit_reads_the_variable_before_jax_is_imported(tmp_path):
    code = (
        "import sys, consilience as cs; cs.keep_compiled(sys.argv[1]); assert 'jax' not in sys.modules; "
        "cs.fit('dawid-skene', cs.load('dawid-skene-1979'), method='em', progress=False)"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "kept")], check=True)
    assert any(path.name.startswith("jit_advance") for path in (tmp_path / "kept").glob("*-cache"))


def test_the_first_fit_keeps_programs_unless_told_not_to(tmp_path, monkeypatch):
    monkeypatch.setattr(compilation, "_first_fit", iter([True, True]))
    monkeypatch.setenv("CONSILIENCE_COMPILATION_CACHE", "off")
    compilation.keep_compiled_at_first_fit()
    assert jax.config.jax_compilation_cache_dir is None
    monkeypatch.delenv("CONSILIENCE_COMPILATION_CACHE")
    compilation.keep_compiled_at_first_fit()
    assert jax.config.jax_compilation_cache_dir == str(tmp_path / "cache" / "compiled")
    jax.config.update("jax_compilation_cache_dir", None)
    compilation.keep_compiled_at_first_fit()
    assert jax.config.jax_compilation_cache_dir is None


@pytest.mark.parametrize("more", [0, 1])
def test_programs_are_let_go_of_where_the_process_holds_too_many(tmp_path, monkeypatch, more):
    """Mappings are looked at after some new programs, which include those found on disk."""
    cleared, maps = [], tmp_path / "maps"
    maps.write_bytes(b"mapping\n" * (compilation._MOST_MAPPINGS + more))
    monkeypatch.setattr(jax, "clear_caches", lambda: cleared.append(True))
    monkeypatch.setattr(compilation, "_MAPPINGS", maps)
    compilation.forget_programs()
    monkeypatch.setattr(compilation, "_new_programs", [0])
    monkeypatch.setattr(compilation, "_LOOKED_AFTER", 2)
    for new in (1, 2):
        compilation.forget_programs()
        assert not cleared
        jax.jit(lambda x, new=new: x * new + 0.5).lower(jax.ShapeDtypeStruct((), "float32")).compile()
    cs.fit("majority-vote", ANNOTATIONS)
    assert len(cleared) == more
    assert compilation._new_programs[0] < 2
    monkeypatch.setattr(compilation, "_MAPPINGS", tmp_path / "none")
    compilation.forget_programs()


def test_an_option_that_xla_does_not_know_is_left_out(monkeypatch):
    compilation.quick_options.cache_clear()
    monkeypatch.setattr(compilation, "_QUICK", {"xla_cpu_no_such_option": False})
    try:
        assert compilation.quick_options() == {}
    finally:
        compilation.quick_options.cache_clear()


def test_ctrl_c_waits_for_the_end_of_a_compilation(monkeypatch):
    """One that JAX leaves goes on in a thread, and Python ends with a segmentation fault where it ends meanwhile."""
    from jax._src import compiler

    original, ended = compiler.backend_compile_and_load, []

    def interrupted(*words, **options):
        if not ended:
            threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]).start()
        program = original(*words, **options)
        ended.append(time.monotonic() - began)
        return program

    def long(x):
        for _ in range(400):
            x = jax.numpy.sin(x) @ x
        return x

    def compiled_and_waited_for():
        jax.jit(long).lower(jax.ShapeDtypeStruct((4, 4), "float32")).compile()
        for _ in range(200):
            time.sleep(0.01)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(compiler, "backend_compile_and_load", interrupted)
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt), compilation.whole_compilations():
            compiled_and_waited_for()
        assert ended
        assert ended[0] > 0.2  # long enough for Ctrl-C to come within
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with pytest.raises(KeyboardInterrupt), compilation.whole_compilations():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_that_waits_comes_at_the_latest_with_the_end_of_the_fit(monkeypatch):
    monkeypatch.setattr(compilation, "_compiles", lambda frame: True)
    before, done = signal.signal(signal.SIGINT, signal.default_int_handler), []
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(pytest.raises(KeyboardInterrupt))
            stack.enter_context(compilation.whole_compilations())
            signal.raise_signal(signal.SIGINT)
            stack.callback(done.append, True)
        assert done
    finally:
        signal.signal(signal.SIGINT, before)
