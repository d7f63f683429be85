"""Figures of matplotlib as SVG of a page: its fonts, its colours, light and dark, and ids that clash with no others."""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ElementTree
from io import StringIO
from typing import Any, NamedTuple

from consilience.drawing import GRID, INK, PALETTE, STYLE

_OF_PAGE = {INK: "currentColor", GRID: "var(--grid)"}
_OF_PAGE |= {colour.lower(): f"var(--{name})" for name, colour in PALETTE.items()}

_SMALLEST = 0.8  # of its size, on a narrow screen: smaller texts cannot be read, and the reader scrolls instead


class Vector(NamedTuple):
    """A figure of a page.

    Parameters
    ----------
    svg : its element.
    width : as it was drawn, in CSS; the page may widen it.
    """

    svg: Any
    width: str


def svg_of(figure: Any, prefix: str) -> Vector:
    """Return a figure as SVG to be put into a page.

    Its ids get a prefix, for those of two figures would clash; fonts are left to the page, and the colours of text, of
    guiding lines and of the house become those of the page, light or dark.
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
    style = f"width: {width}; min-width: calc({_SMALLEST} * {width})"
    root.attrib.update({"role": "img", "aria-label": label, "style": style})
    return Vector(Markup(ElementTree.tostring(root, encoding="unicode")), width)  # noqa: S704


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
        value = re.sub("#[0-9a-f]{6}", lambda found: _OF_PAGE.get(found[0], found[0]), value)
    return re.sub(r"(\.\d{2})\d+", r"\1", value) if name == "d" else value
