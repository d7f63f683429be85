"""Facts about the house: how large it is, what it promises, and where it asks "which kind are you?".

    python tests/house/house_facts.py ROOT [--json] [--check] [--places FACT]

Standard library alone. Every fact is static, read from the syntax trees; the column "goal" is that of the design.
`--check` exits with 1 where a fact with a goal misses it; `--places` lists where a fact was counted.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import statistics
import tokenize
from collections import defaultdict
from pathlib import Path

ROOMS = ("models", "inference", "evaluation", "consilience")
SUBJECTS = {
    "truth": {"truth"},
    "posterior": {"posterior"},
    "data": {"data", "contract"},
    "system": {"predictions", "system", "systems", "response", "partition", "chains", "side"},
    "fit": {"fit", "fitted", "result"},
}
# Files in which a kind is at home and may look at itself.
HOMES = ("models/truth", "models/partition.py", "models/posterior", "consilience/data/")
GOALS = {  # fact: (comparison, value)
    "raw lines, library": ("<=", 42000), "pure lines, library": ("<=", 25500), "raw lines, tests": ("<=", 27000),
    "docstring share, %": (">=", 30), "exported names": ("<=", 200), "fields of Model": ("<=", 13),
    "import circles": ("<=", 0), "kind dispatch outside home": ("<=", 12), "calls that resolve priors": ("<=", 1),
    "dispatch on truth": ("<=", 0), "dispatch on posterior": ("<=", 0),
    "**options parameters": ("<=", 0), "member names outside models": ("<=", 0),
    "remedies rewritten by regex": ("<=", 0),
    "literal 0.025": ("<=", 1), "front door without example": ("<=", 0), "raising without Raises": ("<=", 0),
    "longest function": ("<=", 70), "longest file": ("<=", 600), "Geweke harnesses in tests": ("<=", 1),
    "test names in several files": ("<=", 20), "Score and its subclasses": ("<=", 1),
    "files that write outputs": ("<=", 1),
}  # fmt: skip


class File:
    """One source file: its tree, and which of its lines are code, docstring, comment."""

    def __init__(self, path: Path, root: Path) -> None:
        self.name = path.relative_to(root).as_posix()
        self.text = path.read_text(encoding="utf-8")
        self.tree, self.lines = ast.parse(self.text), self.text.splitlines()
        self.module = _module(self.name)
        self.nodes, docs = list(ast.walk(self.tree)), set[int]()
        for node in self.nodes:
            for child in getattr(node, "body", None) if isinstance(getattr(node, "body", None), list) else ():
                if (
                    isinstance(child, ast.Expr)
                    and isinstance(child.value, ast.Constant)
                    and isinstance(child.value.value, str)
                ):
                    docs.update(range(child.lineno, child.end_lineno + 1))
        code, comments = set(), set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type == tokenize.COMMENT:
                comments.add(token.start[0])
            elif token.type not in (
                tokenize.NL,
                tokenize.NEWLINE,
                tokenize.INDENT,
                tokenize.DEDENT,
                tokenize.ENDMARKER,
            ):
                code.update(range(token.start[0], token.end[0] + 1))
        filled = {number for number, line in enumerate(self.lines, 1) if line.strip()}
        self.docs, self.code = docs & filled, (code - docs) & filled
        self.comments = comments - self.code

    def functions(self) -> list[ast.FunctionDef]:
        return [node for node in self.nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def _module(name: str) -> str:
    """Resolve the package-dir: models/mace/em.py is consilience.models.mace.em."""
    parts = name.removesuffix(".py").split("/")
    parts = parts if parts[0] in ("consilience", "tests", "benchmarks") else ["consilience", *parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def read(root: Path, room: str) -> list[File]:
    """Read the files of a room; the symlinks in consilience/ are left out."""
    found, folders = [], [root / room]
    while folders:
        for path in sorted(folders.pop().iterdir()):
            if path.is_symlink() or path.name == "__pycache__":
                continue
            if path.is_dir():
                folders.append(path)
            elif path.suffix == ".py":
                found.append(File(path, root))
    return found


def circles(files: list[File]) -> list[list[str]]:
    """Return groups of modules that import each other, functions' own imports included."""
    known, edges = {file.module for file in files}, defaultdict(set)
    for file in files:
        for node in file.nodes:
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                edges[file.module] |= {name if name in known else node.module for name in names} & known
            elif isinstance(node, ast.Import):
                edges[file.module] |= {alias.name for alias in node.names} & known
    packages = {file.module for file in files if file.name.endswith("__init__.py")}
    for module in known:  # a package and the files below it are one room: `from package import part` is no circle
        edges[module] = {
            other for other in edges[module] - {module} if not (other in packages and module.startswith(f"{other}."))
        }
    reach = {module: set(others) for module, others in edges.items()}
    for through in known:  # Warshall's closure; a few hundred modules
        for module in known:
            if through in reach.get(module, ()):
                reach[module] |= reach.get(through, set())
    groups = {frozenset(o for o in reach[m] if m in reach.get(o, ())) for m in known if m in reach.get(m, ())}
    return sorted(sorted(group) for group in groups if len(group) > 1)


def _root(node: ast.expr) -> str:
    """Return the last name of a chain: `fit.truth` is about the truth."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def dispatch(files: list[File]) -> dict[str, list[str]]:
    """Return the places that ask an object which kind it is, by what they ask."""
    found: dict[str, list[str]] = defaultdict(list)
    for file in files:
        if file.name.startswith(HOMES):
            continue
        for node in file.nodes:
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) >= 2):
                continue
            asks = node.func.id
            if asks in ("isinstance", "hasattr") or (asks == "getattr" and len(node.args) == 3):
                for subject, names in SUBJECTS.items():
                    if _root(node.args[0]).lstrip("_") in names:
                        found[subject].append(f"{file.name}:{node.lineno} {asks}({ast.unparse(node.args[0])}, …)")
    return found


def prior_calls(files: list[File]) -> list[str]:
    """Return call sites, outside of priors.py, of functions that end in `checked_prior`."""
    calls = {
        node.name: {_root(c.func) for c in ast.walk(node) if isinstance(c, ast.Call)}
        for f in files
        for node in f.functions()
    }
    resolving = {"checked_prior"}
    homes = {node.name for f in files if re.search(r"priors?\.py$", f.name) for node in f.functions()}
    while grown := {name for name in homes & set(calls) if calls[name] & resolving} - resolving:
        resolving |= grown
    return [
        f"{f.name}:{c.lineno} {_root(c.func)}" for f in files if not re.search(r"priors?\.py$", f.name)
        for c in f.nodes if isinstance(c, ast.Call) and _root(c.func) in resolving
    ]  # fmt: skip


def exported(file: File) -> list[str]:
    """Return the names of `__all__`; of the lazy front door, the strings of its table too."""
    tables = {_root(node.targets[0]): node.value for node in file.tree.body if isinstance(node, ast.Assign)}
    values = [tables[name] for name in ("__all__", "_HOME") if name in tables]
    values = [part for value in values for part in (value.values if isinstance(value, ast.Dict) else [value])]
    return [
        c.value for value in values for c in ast.walk(value) if isinstance(c, ast.Constant) and isinstance(c.value, str)
    ]


def _has_example(node: ast.FunctionDef | ast.ClassDef) -> bool:
    return ">>>" in (ast.get_docstring(node) or "")


def front_door(files: list[File]) -> list[str]:
    """Return the public names of `consilience` whose docstring has no example."""
    door = next(file for file in files if file.name == "consilience/__init__.py")
    table = next(n.value for n in door.tree.body if isinstance(n, ast.Assign) and _root(n.targets[0]) == "_HOME")
    names = {c.value for values in table.values for c in ast.walk(values) if isinstance(c, ast.Constant)}
    classes = [node for file in files for node in file.tree.body if isinstance(node, ast.ClassDef)]
    functions = [node for file in files for node in file.tree.body if isinstance(node, ast.FunctionDef)]
    shown = {node.name for node in (*classes, *functions) if _has_example(node)}
    methods = {
        f"{one.name}.{node.name}"
        for one in classes for node in one.body if isinstance(node, ast.FunctionDef) and _has_example(node)
    }  # fmt: skip
    # A name may be a method of a class: `read_annotations = Annotations.read`.
    shown |= {
        _root(node.targets[0])
        for file in files
        for node in file.tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.value) in methods
    }
    # A name may be a package, of which each function says how it is called.
    shown |= {
        file.name.split("/")[-2]
        for file in files
        if file.name.endswith("__init__.py")
        and any(isinstance(node, ast.FunctionDef) and _has_example(node) for node in file.tree.body)
    }
    return sorted(names - shown)


def gather(root: Path) -> tuple[list[tuple[str, int, int, int]], dict[str, object], dict[str, list[str]]]:
    rooms = {room: read(root, room) for room in (*ROOMS, "benchmarks", "tests") if (root / room).is_dir()}
    library = [file for room in ROOMS for file in rooms[room]]
    folders: dict[str, list[File]] = defaultdict(list)
    for room, files in rooms.items():
        for file in files:
            parts = file.name.split("/")
            folders["/".join(parts[:2]) if len(parts) > 2 and room not in ("tests", "benchmarks") else room].append(
                file
            )
    sizes = [
        (name, len(fs), sum(len(f.lines) for f in fs), sum(len(f.code) for f in fs))
        for name, fs in sorted(folders.items())
    ]
    kinds, places = dispatch(library), {}
    functions = sorted(
        (
            (len((f.code | f.comments) & set(range(n.lineno, n.end_lineno + 1))), f"{f.name}:{n.lineno} {n.name}")
            for f in library
            for n in f.functions()
        ),
        reverse=True,
    )
    long_files = sorted(((len(f.lines), f.name) for f in library), reverse=True)
    members = {
        m for f in library if f.name == "models/__init__.py" for m in re.findall(r'"([a-z]+(?:-[a-z]+)+)"', f.text)
    }
    places["kind dispatch outside home"] = [place for found in kinds.values() for place in found]
    places["import circles"] = [" - ".join(group) for group in circles(library)]
    places["calls that resolve priors"] = prior_calls(library)
    places["**options parameters"] = [
        f"{f.name}:{n.lineno} {n.name}"
        for f in library
        for n in f.functions()
        if n.args.kwarg and n.args.kwarg.arg == "options"
    ]
    # A likelihood may be called as a member is: values that an option may have name no member.
    values = {
        id(value)
        for f in rooms["consilience"] for c in f.nodes if isinstance(c, ast.keyword) and c.arg == "choices"
        for value in ast.walk(c.value)
    }  # fmt: skip
    places["member names outside models"] = [
        f"{f.name}:{c.lineno} {c.value[:60]!r}"
        for room in ("inference", "evaluation", "consilience") for f in rooms[room]
        for c in f.nodes if isinstance(c, ast.Constant) and isinstance(c.value, str) and c.lineno not in f.docs
        and any(re.search(rf"(?<![\w-]){m}(?![\w-])", c.value) for m in members)
        and "demo" not in f.name and "catalogue" not in f.name and id(c) not in values
    ]  # fmt: skip
    places["remedies rewritten by regex"] = [
        f"{f.name}:{c.lineno}"
        for f in rooms["consilience"]
        if re.match(r"consilience/(cli|\w*commands)", f.name)
        for c in f.nodes
        if isinstance(c, ast.Call) and ast.unparse(c.func) == "re.sub"
    ]
    places["literal 0.025"] = [
        f"{f.name}:{c.lineno}"
        for f in library
        for c in f.nodes
        if isinstance(c, ast.Constant) and c.value in (0.025, 0.975)
    ]
    places["front door without example"] = front_door(library)
    public = [
        (f, n) for f in library for n in f.tree.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")
    ]
    raising = [(f, n) for f, n in public if any(isinstance(x, ast.Raise) and x.exc for x in ast.walk(n))]
    places["raising without Raises"] = [
        f"{f.name}:{n.lineno} {n.name}" for f, n in raising if "raise" not in (ast.get_docstring(n) or "").lower()
    ]
    for fact, longest in (("longest function", functions), ("longest file", long_files)):
        places[fact] = [f"{place} ({number})" for number, place in longest[:10]]
    harness = re.compile(r"geweke|mutant|joint.distribution", re.IGNORECASE)
    places["Geweke harnesses in tests"] = [
        f.name for f in rooms["tests"] if f.name.startswith(("tests/models", "tests/laws")) and harness.search(f.text)
    ]
    named: dict[str, set[str]] = defaultdict(set)
    for f in rooms["tests"]:
        for n in f.functions():
            if n.name.startswith("test_"):
                named[n.name].add(f.name)
    places["test names in several files"] = sorted(name for name, files in named.items() if len(files) > 1)
    classes = [(f, n) for f in library for n in f.tree.body if isinstance(n, ast.ClassDef)]
    places["Score and its subclasses"] = [
        f"{f.name}:{n.lineno} {n.name}"
        for f, n in classes
        if n.name == "Score" or any(_root(b).endswith("Score") for b in n.bases)
    ]
    places["files that write outputs"] = sorted(
        {
            f.name
            for f in rooms["consilience"]
            for c in f.nodes
            if isinstance(c, ast.Call)
            and _root(c.func) in ("write_text", "write_bytes", "replace", "savefig", "to_csv")
            and not (_root(c.func) == "replace" and not ast.unparse(c.func).startswith("os."))
        }
    )
    code, docs, comments = (
        sum(len(part) for part in parts) for parts in zip(*((f.code, f.docs, f.comments) for f in library), strict=True)
    )
    facts: dict[str, object] = {
        "raw lines, library": sum(len(f.lines) for f in library), "pure lines, library": code,
        "raw lines, tests": sum(len(f.lines) for f in rooms["tests"]),
        "docstring share, %": round(100 * docs / (code + docs + comments)),
        "comments per 100 lines": round(100 * comments / code, 1),
        "exported names": sum(len(exported(f)) for f in library),
        "modules with __all__": sum(bool(exported(f)) for f in library),
        "fields of Model": sum(
            isinstance(s, ast.AnnAssign) for f, n in classes if n.name == "Model" and "/interface" in f.name
            for s in n.body
        ),
        **{name: len(found) for name, found in places.items()},
        "longest function": functions[0][0], "longest file": long_files[0][0],
        "median function": statistics.median(n for n, _ in functions),
        "median file": statistics.median(len(f.lines) for f in library),
        "public functions that raise": len(raising),
        **{f"dispatch on {subject}": len(kinds.get(subject, ())) for subject in SUBJECTS},
    }  # fmt: skip
    return sizes, facts, places


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=Path)
    for flag in ("--json", "--check"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--places", metavar="FACT")
    asked = parser.parse_args()
    sizes, facts, places = gather(asked.root)
    if asked.places:
        return print("\n".join(places.get(asked.places, []))) or 0
    missed = {n for n, (sign, goal) in GOALS.items() if not (facts[n] <= goal if sign == "<=" else facts[n] >= goal)}
    if asked.json:
        print(json.dumps({"folders": sizes, "facts": facts, "missed": sorted(missed)}, indent=1))
    else:
        print(f"{'folder':34}{'files':>7}{'raw':>9}{'pure':>9}")
        print("\n".join(f"{name:34}{number:7,}{raw:9,}{pure:9,}" for name, number, raw, pure in sizes))
        print(f"\n{'fact':34}{'today':>9}{'goal':>10}")
        for name, value in facts.items():
            sign, goal = GOALS.get(name, ("", ""))
            print(f"{name:34}{value:>9}{f'{sign} {goal}' if sign else '':>10}{'  missed' if name in missed else ''}")
    return int(bool(missed) and asked.check)


if __name__ == "__main__":
    raise SystemExit(main())
