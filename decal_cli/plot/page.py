"""Panels on a page, and the page to a file, or to a notebook."""

from __future__ import annotations

import importlib.util
import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.plot.style import looks

PICTURE_FORMATS = ("png", "svg", "pdf")
WIDE, HIGH = 5.0, 4.3
"""Inches of a panel on a page."""
_ALONE = (4.6, 3.9)
"""Inches of a panel that stands alone: its text can still be read on a page as narrow as a phone."""
_PAD = 0.08
"""Inches round each panel; with half as much again matplotlib before 3.11 finds no place for the axes of two models."""
_PIXELS_PER_INCH = 96
_FINENESS = 2
"""Pixels of the picture for each pixel of a notebook's page, for screens of high resolution."""

Draw = Callable[[Any], None]
"""Draws one panel into axes."""


class Panel(NamedTuple):
    """One panel of a picture. number: of the report that it shows, None where it shows them all. high: its height."""

    number: int | None
    draw: Draw
    high: float = 1.0


def ready(path: str) -> str:
    """The format of a picture's path; a DecalError where it is none, or where matplotlib is not there to draw it."""
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in PICTURE_FORMATS:
        raise DecalError(
            f"{Hint('plot', path)}: a picture is written as png, svg or pdf", "name for example curves.png"
        )
    _need_matplotlib()
    return form


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def _need_matplotlib() -> None:
    if not can_draw():
        raise DecalError("drawing needs matplotlib, which is not installed", "pip install 'decal[plot]'")


def new_figure(wide: float, high: float, layout: Any = None) -> Any:
    """A figure that pyplot does not know. layout: matplotlib's name of one; by default that of a page."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return Figure(figsize=(wide, high), layout=layout or ConstrainedLayoutEngine(w_pad=_PAD, h_pad=_PAD))


def saved(figure: Any, form: str, dpi: int = 130, **options: Any) -> bytes:
    """The bytes of a figure: the same for the same picture."""
    out = io.BytesIO()
    # No date, no version: the same sweep gives the same bytes.
    metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[form]
    figure.savefig(out, format=form, dpi=dpi, metadata=metadata, **options)
    return out.getvalue()


def in_rows(panels: Sequence[Panel], most: int) -> list[tuple[int, Sequence[Panel]]]:
    """Panels by row, with how many fit in it."""
    return [(most, panels[start : start + most]) for start in range(0, len(panels), most)]


def figure_of(
    rows: Sequence[tuple[int, Sequence[Panel]]], wide: float = WIDE, high: float = HIGH, least: float = 1.2
) -> Any:
    """The figure of panels in rows; wide, high: of a panel; least: how many panels wide it is at least."""
    heights = [row[0].high if columns > 1 else 1.0 for columns, row in rows]
    figure = new_figure(wide * max(max(columns for columns, _ in rows), least), high * sum(heights))
    # Each row is laid out by itself: legends of one row leave no place for axes of another that begin elsewhere.
    places = figure.subfigures(len(rows), height_ratios=heights, squeeze=False)[:, 0]
    for place, (columns, row) in zip(places, rows, strict=True):
        grid = place.add_gridspec(1, columns)
        for x, panel in enumerate(row):
            panel.draw(place.add_subplot(grid[x]))
    return figure


def drawn_alone(draw: Draw, wide: float = _ALONE[0], high: float = _ALONE[1]) -> tuple[bytes, tuple[float, ...]]:
    """A panel as an SVG file of its own, on no background; and its frame, as a Picture block has it, () unless the
    panel has one pair of axes.
    """
    with looks():
        figure = new_figure(wide, high)
        draw(figure.add_subplot())
        svg = saved(figure, "svg", transparent=True)
    axes, *others = figure.axes
    box = axes.get_position()
    return svg, () if others else (box.x0, box.x1, box.y0, box.y1, *axes.get_xlim(), *axes.get_ylim())


def on_axes(axes: Any, draw: Draw) -> Any:
    """A panel in axes: those that are given, else those of a new figure. Returns the axes.

    The figure is none of pyplot's, whose state is the user's: a notebook shows it, and others save `axes.figure`.
    """
    _need_matplotlib()
    if axes is not None:
        import matplotlib

        with matplotlib.rc_context({"text.parse_math": False}):
            draw(axes)
        return axes
    with looks():
        figure = new_figure(WIDE * 1.2, HIGH, "constrained")
        axes = figure.add_subplot()
        draw(axes)
    _show_when_the_cell_ends(figure)
    return axes


def _show_when_the_cell_ends(figure: Any) -> None:
    """Show a figure below the notebook's cell that is running, with what the rest of the cell changes in it."""
    shell: Any = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if not hasattr(shell, "kernel"):
        return

    def show() -> None:
        shell.events.unregister("post_execute", show)
        from IPython.display import Image, display

        out = io.BytesIO()
        with looks():
            figure.savefig(out, format="png", dpi=_FINENESS * _PIXELS_PER_INCH)
        display(Image(out.getvalue(), width=round(figure.get_figwidth() * _PIXELS_PER_INCH)))

    shell.events.register("post_execute", show)
