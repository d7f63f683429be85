"""The documentation site: ``sphinx-build -W --keep-going -b html docs site``; nothing it shows loads from a network.

Three kinds of pages are made here rather than written: one a member, from the registry; one a benchmark, around the
recorded results; and the gallery of figures. Formulas become MathML by docutils, without a script.
"""

from __future__ import annotations

import dataclasses
import html
import inspect
import re
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

import consilience
from consilience import models
from consilience.models.settings import REQUIRED

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import gallery  # noqa: E402

project, author = "Consilience", "The Consilience authors"
copyright = author  # noqa: A001
version = release = consilience.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.viewcode", "numpydoc"]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
default_role = "py:obj"
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}  # autosummary writes pages of the first kind

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_output_stderr = "remove"  # paths of the machine, and warnings that the text speaks of
nb_execution_cache_path = str(HERE / "_build" / "notebooks")

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_validation_checks = {"GL03", "SS03", "PR01", "PR02", "PR04", "PR07", "RT01", "RT03", "EX01"}
# The contract is of the front door; what stands behind it, as methods do, is described, and not held to every heading.
# The constructors of estimators are signatures of what `fit` and the settings of a model document.
numpydoc_validation_exclude = {
    r"^consilience\.(data|engines|models|inference|evaluation)\b", r"^consilience\.\w+\.",
    r"^consilience\.(DawidSkene|Dirichlet|GLAD|Linker|MACE|MPA|MajorityVote|OneCoin|PlackettLuce)$",
}

html_theme = "pydata_sphinx_theme"
html_title = "Consilience"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False, "footer_end": []}
html_sidebars = dict.fromkeys(("gallery", "limitations"), [])  # nothing is below them
html_math_renderer = "mathml"

log = logging.getLogger(__name__)


# ---- formulas


def mathml(translator, node, block: bool) -> None:
    """Write a formula as MathML, with its source as text for readers that do not know MathML."""
    text = node.astext()
    try:
        made = tex2mathml(text, as_block=block)
    except MathError as error:
        log.warning("formula does not convert: %s: %s", error, text, location=node)
        raise nodes.SkipNode from error
    spoken = html.escape(" ".join(text.split()), quote=True)
    made = re.sub(r"<math\b", lambda found: f'<math alttext="{spoken}"', made, count=1)
    translator.body.append(f'<div class="math">{made}</div>\n' if block else made)
    raise nodes.SkipNode


# ---- tables in docstrings


def rst_tables(app, what, name, of, options, lines: list[str]) -> None:
    """Turn Markdown tables, which read well in source, into those of reStructuredText."""
    made: list[str] = []
    for line in lines:
        if set(line) <= set("|- ") and line.startswith("|-"):
            continue
        if not line.startswith("| "):
            made.append(line)
        elif not made or not made[-1].startswith("     - "):
            made += ["", ".. list-table::", "   :header-rows: 1", "", *row(line)]
        else:
            made += row(line)
    lines[:] = made


def errors_below(app, what, name, of, options, lines: list[str]) -> None:
    """Let what an error is raised for stand below its name, where it is text; beside it, it would be a type."""
    made: list[str] = []
    inside = False
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if set(after) == {"-"}:
            inside = line == "Raises"
        found = re.fullmatch(r"([\w, ]+) : (\S.*)", line) if inside else None
        made += [line] if found is None else [found[1], f"    {found[2]}"]
    lines[:] = made


def row(line: str) -> list[str]:
    """Return a row of a table as items of a list."""
    cells = [one.strip() for one in line.strip()[1:-1].split(" | ")]
    return [f"   * - {cells[0]}", *(f"     - {one}" for one in cells[1:])]


# ---- pages that are made


def cell(text: object) -> str:
    """Return a text for one cell of a table."""
    return " ".join(str(text).split()).replace("|", "\\|")


def listed(choices: tuple) -> str:
    """Return choices in brackets, or nothing of none."""
    return f" ({', '.join(map(str, choices))})" if choices else ""


def member_page(name: str) -> str:
    """Return the page of a member: what its module says, and its settings and tables."""
    member, module = models.member(name), models.place(name).module
    contracts = ", ".join(f"`{one.__name__}`" for one in member.takes)
    settings = [
        f"| `{one.name}` | {one.kind.__name__} | {'required' if one.default is REQUIRED else f'`{one.default}`'} | "
        f"{cell(one.help + listed(one.choices))} |"
        for one in member.settings.fields()
    ]  # fmt: skip
    tables = [f"| `fit.{one.name}()` | {cell(one.help)} |" for one in member.tables]
    parts = [
        f"# {name}", f"{member.title[0].upper()}{member.title[1:]}. Takes {contracts}; methods "
        f"{', '.join(f'`{one}`' for one in member.methods)}, of which the first is the default.",
        f"```{{eval-rst}}\n.. automodule:: {module}\n```",
    ]  # fmt: skip
    if settings:
        parts += ["## Settings", "\n".join(["| setting | type | default | meaning |", "|---|---|---|---|", *settings])]
    if tables:
        parts += ["## Tables of a fit", "\n".join(["| table | what it holds |", "|---|---|", *tables])]
    if dataclasses.is_dataclass(member.priors) and dataclasses.fields(member.priors):
        home = inspect.getmodule(member.priors).__name__
        parts += ["## Priors", f"```{{eval-rst}}\n.. autoclass:: {home}.{member.priors.__name__}\n   :no-index:\n```"]
    if member.paper:
        parts += ["## Paper", f"```bibtex\n{inspect.cleandoc(member.paper)}\n```"]
    return "\n\n".join(parts) + "\n"


def benchmark_page(results: Path) -> str:
    """Return the page that shows recorded results, its pictures and links as the results have them."""
    home = results.relative_to(HERE.parent)
    return f"```{{include}} ../../{home}\n:relative-images:\n:relative-docs: ../../benchmarks\n```\n"


def write_pages(app) -> None:
    """Write the pages that are made, and leave alone those that stand already as they would be written."""
    results = sorted((HERE.parent / "benchmarks" / "results").glob("*/results.md"))
    made = {HERE / "api" / "models" / f"{name}.md": member_page(name) for name in models.names()}
    made |= {HERE / "benchmarks" / f"{one.parent.name}.md": benchmark_page(one) for one in results}
    made |= {HERE / "gallery.md": gallery.page(HERE / "_build" / "gallery")}
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def link_results(app, docname: str, source: list[str]) -> None:
    """Let links to recorded results, which lead to a file of the checkout, lead to its page."""
    up = "../" * docname.count("/")
    source[0] = re.sub(r"\((?:\.\./)+benchmarks/results/([\w-]+)/results\.md", rf"({up}benchmarks/\1.md", source[0])


def check_index(app) -> None:
    """Warn of names of the front door that the index of the reference leaves out, or has twice."""
    listed = re.findall(r"^   (\w+)$", (HERE / "api" / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    expected = [name for name in consilience.__all__ if name != "__version__"]
    for name in sorted(set(listed) ^ set(expected)) + sorted({one for one in listed if listed.count(one) > 1}):
        log.warning("docs/api/index.md should list '%s' once, if consilience.__all__ has it", name)


def check_described(app, env) -> None:
    """Warn of names of the front door whose page in the reference does not describe them."""
    described = env.get_domain("py").objects
    for name in consilience.__all__:
        if name != "__version__" and f"consilience.{name}" not in described:
            log.warning("no page describes 'consilience.%s'", name)


def setup(app) -> None:
    """Register what is above."""
    app.add_html_math_renderer(
        "mathml",
        (lambda self, node: mathml(self, node, False), None),
        (lambda self, node: mathml(self, node, True), None),
    )
    app.connect("builder-inited", check_index)
    app.connect("builder-inited", write_pages, priority=100)
    app.connect("source-read", link_results)
    app.connect("env-updated", check_described)
    app.connect("autodoc-process-docstring", errors_below, priority=400)  # before they are read
    app.connect("autodoc-process-docstring", rst_tables)
