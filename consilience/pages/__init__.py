"""Pages: one self-contained HTML file each, made of sections of text, tables and figures.

A page needs nothing but itself: figures are inline SVG, styles are inline, there are no scripts, and a policy in its
head forbids the browser to fetch anything. All text is escaped by the template engine.
"""

from __future__ import annotations

import os
import re
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from consilience.drawing import GRID, INK, STYLE
from consilience.errors import UnsupportedRequest
from consilience.notes import Level
from consilience.output import GENERATOR, check_output, write_output


@dataclass(frozen=True)
class Code:
    """Text to be shown as it is, in a fixed-width face."""

    text: str


@dataclass(frozen=True)
class Alert:
    """What a reader must know before anything else, as a box.

    Parameters
    ----------
    title : one line.
    texts : a paragraph each.
    level : red for an error, amber for a warning.
    """

    title: str
    texts: Sequence[str]
    level: Level = Level.error


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Parameters
    ----------
    title : heading.
    blocks : what is under it, in order: a text is a paragraph (``markupsafe.Markup`` stays as it is, anything else
        is escaped), a data frame a table (``attrs["numbers"]`` names columns of numbers that are written as texts), a
        matplotlib Figure or Axes a figure, a list of those a row of figures, a dict a row of named key figures, a
        `Code` code, an `Alert` a box.
    """

    title: str
    blocks: Sequence[Any] = ()


Page = tuple[str, Sequence[Any], Sequence[Section]]
"""Title, what stands above all else, and the sections."""


def write_page(
    title: str, lead: Any, sections: Sequence[Section], path: str | os.PathLike, *, force: bool = False
) -> Path:
    """Write a self-contained HTML page.

    Parameters
    ----------
    title : of the page.
    lead : a block, or a list of blocks, above the first section; see `Section`.
    sections : parts of the page.
    path, force : see `consilience.output.write_output`; a page of ours is replaced.

    Returns
    -------
    The path that was written.

    Raises
    ------
    OutputRefused : where the file must not be written.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    check_output(path, force=force)
    environment = Environment(
        loader=PackageLoader("consilience"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    figures_so_far = _Counter()
    above = lead if isinstance(lead, list) else [lead]
    html = environment.get_template("report.html").render(
        title=title,
        generator=GENERATOR,
        lead=[_rendered(block, figures_so_far) for block in above],
        sections=[
            {"title": part.title, "blocks": [_rendered(block, figures_so_far) for block in part.blocks]}
            for part in sections
        ],
    )
    return write_output(path, lambda stream: stream.write(html.encode(errors="replace")), force=force)


# Blocks ---------------------------------------------------------------------------------------------------------------


class _Counter:
    """Numbers the figures of a page."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self) -> int:
        self.number += 1
        return self.number


def _rendered(block: Any, count: _Counter) -> dict[str, Any]:
    """Turn a block into what the template expects."""
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    if isinstance(block, str):
        return {"kind": "text", "text": block}
    if isinstance(block, Alert):
        return {"kind": "alert", "title": block.title, "texts": list(block.texts), "level": block.level.name}
    if isinstance(block, Code):
        return {"kind": "code", "text": block.text}
    if isinstance(block, pandas.DataFrame):
        return {"kind": "table", **_table(block)}
    if isinstance(block, Axes | Figure):
        return _rendered([block], count)
    if isinstance(block, Mapping):
        return {"kind": "facts", "facts": [(str(name), _text(value)) for name, value in block.items()]}
    if isinstance(block, list | tuple):
        drawn = [one.figure if isinstance(one, Axes) else one for one in block]
        return {"kind": "figures", "figures": [_svg(figure, f"f{count()}-") for figure in drawn]}
    raise UnsupportedRequest(
        f"a block is {type(block).__name__}; give a text, a data frame, a figure, a list of figures, a dict, Code or "
        "Alert"
    )


def _table(frame: Any) -> dict[str, Any]:
    columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
    written = frame.attrs.get("numbers", ())
    numeric = [column.dtype.kind in "iufb" or column.name in written for column in columns]
    rows = zip(*([_text(value) for value in column] for column in columns), strict=True)
    return {"columns": [str(name) for name in frame.columns], "numeric": numeric, "rows": list(rows)}


def _text(value: Any) -> str:
    """Write a value as tables show it: four digits after the point where it is below a hundred, thousands apart."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, float | np.floating):
        digits = 4 if abs(float(value)) < 100 else 1
        return f"{value:,.{digits}f}" if np.isfinite(value) else "–" if np.isnan(value) else str(value)
    return "–" if value is None else str(value)


def _svg(figure: Any, prefix: str) -> Any:
    """Return a figure as SVG to be put into a page.

    Its ids get a prefix, for those of two figures would clash; fonts are left to the page, and the colours of text
    and of guiding lines become those of the page, light or dark.
    """
    import matplotlib
    from markupsafe import Markup

    buffer = StringIO()
    settings = {**STYLE, "svg.hashsalt": prefix, "font.family": "sans-serif"}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # The reader's fonts, not those of this machine, will show the text.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        _lay_out(figure)
        figure.canvas.print_figure(buffer, format="svg", dpi=160, metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(buffer.getvalue())
    label = " ".join(axes.get_title(loc="left") for axes in figure.axes).strip()
    _adapt(root, prefix)
    width, _ = root.attrib.pop("width"), root.attrib.pop("height")
    root.attrib.update({"role": "img", "aria-label": label, "style": f"width: {width}"})
    return Markup(ElementTree.tostring(root, encoding="unicode"))  # noqa: S704


def _lay_out(figure: Any) -> None:
    """Place what is in a figure once and for all: to save it would else draw the whole of it a second time for that."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    layout = figure.get_layout_engine()
    if layout is not None:
        FigureCanvasSVG(figure)  # in whose units texts are measured
        figure.set_dpi(FigureCanvasSVG.fixed_dpi)
        layout.execute(figure)
        figure.set_layout_engine(None)


def _adapt(element: ElementTree.Element, prefix: str) -> None:
    """Adapt an element of an SVG and all that it holds to the page, in place."""
    element.tag = element.tag.rpartition("}")[2]
    for name, value in list(element.attrib.items()):
        del element.attrib[name]
        element.attrib[name.rpartition("}")[2]] = _adapted(name.rpartition("}")[2], value, prefix)
    for child in list(element):
        if child.tag.rpartition("}")[2] in ("metadata", "style"):
            element.remove(child)
        else:
            _adapt(child, prefix)


def _adapted(name: str, value: str, prefix: str) -> str:
    if name == "id":
        return prefix + value
    if name == "href":
        return f"#{prefix}{value[1:]}" if value.startswith("#") else "".join(value.split())
    value = value.replace("url(#", f"url(#{prefix}")
    if name == "style":
        value = re.sub(r"font-family: [^;]*;? ?", "", value)
        value = value.replace(INK, "currentColor").replace(GRID, "var(--grid)")
    return re.sub(r"(\.\d{2})\d+", r"\1", value) if name == "d" else value
