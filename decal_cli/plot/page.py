"""Panels on a page, and the page to a file."""

from __future__ import annotations

import importlib.util
import io
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from decal_cli.analysis.sweep import Sweep, ladder_results
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.numbers import plain
from decal_cli.plot import panels
from decal_cli.plot.names import any_name, with_drawable_names
from decal_cli.plot.notebook import show_when_the_cell_ends
from decal_cli.plot.style import RC, below
from decal_cli.plot.waterfall import waterfall
from decal_cli.render.terms import StatedTerms
from decal_cli.task import BinaryTask, Task

PICTURES = ("brier", "decision", "roc", "reliability", "grouping", "waterfall")
SHARED = ("brier", "decision", "roc")
"""Pictures that show all models and groups in one panel."""
PICTURE_FORMATS = ("png", "svg", "pdf")
_WIDE, _HIGH = 5.0, 4.3
_MOST = 4
"""Panels in a row at most."""

_ALONE = (4.6, 3.9)
"""Inches of a panel that stands alone: its text is still read where the page is as narrow as a phone."""

_NO_MATPLOTLIB = ("drawing needs matplotlib, which is not installed", "pip install 'decal[plot]'")
PER_1000 = StatedTerms()
"""Of a sweep, which takes no terms."""

Cell = Callable[[Any], None]
Panelled = Callable[[Any], None]
"""Draws one panel into axes."""


class Alone(NamedTuple):
    """A panel as an SVG file of its own; frame: as a Picture block has it, () unless the panel has one pair of axes."""

    svg: bytes
    frame: tuple[float, ...]


class Panel(NamedTuple):
    """One panel as a picture of its own; number: of the report that it shows, None where it shows them all."""

    picture: str
    number: int | None
    drawn: Alone


def draw(sweep: Sweep, pictures: tuple[str, ...], path: str) -> bytes:
    """The pictures as one page, in the format that the path's suffix names: png, svg or pdf."""
    form = ready(path)
    import matplotlib

    with matplotlib.rc_context(RC), any_name():
        return saved(figure_of(with_drawable_names(sweep, form), pictures), form)


def draw_panels(sweep: Sweep, pictures: tuple[str, ...], terms: StatedTerms) -> Iterator[Panel]:
    """Each panel of these pictures as an SVG file of its own, on no background."""
    sweep = with_drawable_names(sweep, "svg")
    for picture in pictures:
        for number, cell in enumerate(_cells(sweep, picture, terms)):
            yield Panel(picture, None if picture in SHARED else number, _alone(cell))


def drawn_alone(panel: Panelled) -> Alone:
    """A panel as an SVG file of its own, on no background."""
    return _alone(lambda place: panel(place[0].add_subplot(place[1])))


def _alone(cell: Cell) -> Alone:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(RC), any_name():
        figure = Figure(figsize=_ALONE, layout=layout())
        cell((figure, figure.add_gridspec(1, 1)[0, 0]))
        svg = saved(figure, "svg", transparent=True)
        if len(figure.axes) > 1:
            return Alone(svg, ())
        (axes,) = figure.axes
        box = axes.get_position()
        return Alone(svg, (box.x0, box.x1, box.y0, box.y1, *axes.get_xlim(), *axes.get_ylim()))


def saved(figure: Any, form: str, **options: Any) -> bytes:
    """The bytes of a figure: the same for the same picture."""
    out = io.BytesIO()
    # No date, no version: the same sweep gives the same bytes.
    metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[form]
    figure.savefig(out, format=form, dpi=130, metadata=metadata, **options)
    return out.getvalue()


def ready(path: str) -> str:
    """The format of a picture's path; a DecalError where it is none, or where matplotlib is not there to draw it."""
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in PICTURE_FORMATS:
        raise DecalError(
            f"{Hint('plot', path)}: a picture is written as png, svg or pdf", "name for example curves.png"
        )
    if not can_draw():
        raise DecalError(*_NO_MATPLOTLIB)
    return form


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def draw_on(sweep: Sweep, picture: str, axes: Any = None, number: int = 0, terms: StatedTerms = PER_1000) -> Any:
    """One picture in axes: those that are given, else those of a new figure, which notebooks show. Returns the axes.

    number: which model and group, where the picture shows one. terms: of amounts in it.
    """
    sweep = with_drawable_names(sweep, "png")
    return on_axes(axes, lambda place: _panel(place, sweep, picture, number, terms))


def on_axes(axes: Any, panel: Panelled) -> Any:
    """A panel in axes: those that are given, else those of a new figure. Returns the axes.

    The figure is none of pyplot's, whose state is the user's: a notebook shows it, and others save `axes.figure`.
    """
    if not can_draw():
        raise DecalError(*_NO_MATPLOTLIB)
    import matplotlib
    from matplotlib.figure import Figure

    if axes is not None:
        with matplotlib.rc_context({"text.parse_math": False}):
            panel(axes)
        return axes
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(_WIDE * 1.2, _HIGH), layout="constrained")
        axes = figure.add_subplot()
        panel(axes)
    show_when_the_cell_ends(figure)
    return axes


def _panel(axes: Any, sweep: Sweep, picture: str, number: int, terms: StatedTerms) -> None:
    if picture == "brier":
        panels.brier(axes, sweep)
    elif picture == "decision":
        panels.decision(axes, sweep)
    elif picture == "roc":
        panels.roc(axes, sweep)
    elif picture == "grouping":
        panels.grouping(axes, sweep, number)
    elif picture == "reliability":
        panels.reliability_curve(axes, sweep, number)
        axes.set_xlabel("score")
        below(axes)
    else:
        report, task = sweep.reports[number], task_or_middle(sweep)
        results = ladder_results(report, task, sweep.head.plan)
        waterfall(axes, report.name, number, results, worded(task), terms)


def layout() -> Any:
    """How panels share the room of a page."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12)


def task_or_middle(sweep: Sweep) -> Task:
    """The decision the waterfall shows: the user's, or that of the middle threshold."""
    at = sweep.grid.thresholds
    return sweep.head.plan.task or BinaryTask.of_threshold(float(at[len(at) // 2]))


def worded(task: Task) -> str:
    """The decision of a waterfall, in a few characters."""
    at = f"t* = {', '.join(f'{at:.4g}' for at in task.thresholds)}"
    if not isinstance(task, BinaryTask):
        return at
    (u00, u01), (u10, u11) = task.utility
    return f"{at}: a false alarm costs {plain(u00 - u10)}, a miss {plain(u11 - u01)}"


def figure_of(sweep: Sweep, pictures: tuple[str, ...]) -> Any:
    """The figure: curves of all models in one panel each, then for each picture a panel a model and group."""
    from matplotlib.figure import Figure

    rows = _rows(sweep, pictures)
    widest = max(columns for columns, _ in rows)
    heights = [1.25 if row[0].__name__ == "stripped" and columns > 1 else 1.0 for columns, row in rows]
    units = math.lcm(*(columns for columns, _ in rows))
    figure = Figure(figsize=(_WIDE * max(widest, 1.2), _HIGH * sum(heights)), layout=layout())
    grid = figure.add_gridspec(len(rows), units, height_ratios=heights)
    for y, (columns, row) in enumerate(rows):
        wide = units // columns
        for x, cell in enumerate(row):
            cell((figure, grid[y, x * wide : (x + 1) * wide]))
    return figure


def _rows(sweep: Sweep, pictures: tuple[str, ...]) -> list[tuple[int, list[Cell]]]:
    """Panels by row, with how many fit in it: of one model all of them, of several each picture in rows of its own."""
    shared = [cell for picture in pictures if picture in SHARED for cell in _cells(sweep, picture)]
    own = [_cells(sweep, picture) for picture in pictures if picture not in SHARED]
    if len(sweep.reports) == 1:
        everything = [*shared, *(cell for cells in own for cell in cells)]
        return _chunks(everything, len(everything) if len(everything) < 4 else 2 if len(everything) == 4 else 3)
    most = math.ceil(len(sweep.reports) / math.ceil(len(sweep.reports) / _MOST))
    return [*_chunks(shared, max(len(shared), 1)), *(row for cells in own for row in _chunks(cells, most))]


def _chunks(cells: list[Cell], size: int) -> list[tuple[int, list[Cell]]]:
    return [(size, cells[start : start + size]) for start in range(0, len(cells), size)]


def _cells(sweep: Sweep, picture: str, terms: StatedTerms = PER_1000) -> list[Cell]:
    def one(panel: Callable[..., None], *more: Any) -> Cell:
        return lambda place: panel(place[0].add_subplot(place[1]), *more)

    if picture == "brier":
        return [one(panels.brier, sweep)]
    if picture == "decision":
        return [one(panels.decision, sweep)]
    if picture == "roc":
        return [one(panels.roc, sweep)]
    numbers = range(len(sweep.reports))
    if picture == "reliability":
        return [_with_strip(sweep, number) for number in numbers]
    if picture == "grouping":
        return [one(panels.grouping, sweep, number) for number in numbers]
    task = task_or_middle(sweep)
    rungs = [ladder_results(report, task, sweep.head.plan) for report in sweep.reports]
    return [one(waterfall, sweep.reports[n].name, n, rungs[n], worded(task), terms) for n in numbers]


def _with_strip(sweep: Sweep, number: int) -> Cell:
    def stripped(place: Any) -> None:
        figure, where = place
        parts = where.subgridspec(3, 1, height_ratios=(4, 1, 0.75), hspace=0.03)
        panels.reliability([figure.add_subplot(part) for part in parts], sweep, number)

    return stripped
