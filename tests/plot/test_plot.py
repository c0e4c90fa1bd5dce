"""Pictures: files of the right type, panels that show the curves, and no matplotlib where nothing is drawn."""

import html
import itertools
import subprocess
import sys
from collections.abc import Sequence
from types import SimpleNamespace

import matplotlib
import matplotlib.figure
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PathCollection

from decal_cli.analysis.described import ActionCounts
from decal_cli.analysis.evaluate import Plan, evaluate
from decal_cli.analysis.packs import pack_named
from decal_cli.analysis.sweep import Positions, Sweep, ladder_results, swept
from decal_cli.curves.grid import Grid, parse_thresholds
from decal_cli.data import Columns, from_arrays
from decal_cli.errors import DecalError
from decal_cli.learn.regions import Curve, Regions
from decal_cli.metrics import Inputs, parse, value_of
from decal_cli.numbers import short
from decal_cli.plot import page, panels
from decal_cli.plot.groups import draw_groups
from decal_cli.plot.online import MIN_ROWS, _reliability
from decal_cli.plot.page import ready
from decal_cli.plot.panels import (
    MAX_DASHED,
    MAX_WRITTEN,
    _mark_changes,
    _reach,
    _Step,
    class_reliability,
    confusion,
    worth,
)
from decal_cli.plot.report import MAX_GROUPS, caption, said_before
from decal_cli.plot.style import COLOURS, LINES, MAX_BANDS, RC, WAY_LINES, axis_of, score_range, style_of, value_range
from decal_cli.plot.sweeps import PICTURES, SHARED, canvas, draw, draw_text, panels_of, rows_of
from decal_cli.render.format import Page
from decal_cli.render.formats.text import Text
from decal_cli.render.terms import StatedTerms
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask
from tests.helpers.command import blank_pictures
from tests.helpers.results import made_up_evaluation

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
SCORE = 1 / (1 + np.exp(-1.5 * X[:, 0]))
LABEL = (RNG.random(400) < 1 / (1 + np.exp(-X[:, 0] - np.sign(X[:, 1])))).astype(int)
GRID = Grid(parse_thresholds("0.02:0.98:0.02"))
FRAME = {"y": LABEL, "p_a": SCORE, "p_b": np.round(SCORE**2, 1)} | {f"x{k}": X[:, k] for k in range(3)}


def sweep_of(scores: tuple[str, ...] = ("p_a",), task: BinaryTask | None = None, **more: object) -> Sweep:
    data = from_arrays(FRAME, "y", columns=Columns(score=scores), **more)
    return swept(data, Plan((), task), GRID)


def figure_of(sweep: Sweep, pictures: tuple[str, ...]) -> matplotlib.figure.Figure:
    with matplotlib.rc_context(RC):
        return page.figure_of(rows_of(sweep, pictures))


@pytest.fixture(scope="module")
def one() -> Sweep:
    return sweep_of(task=BinaryTask.of_utility(((0, -7), (-3, 0))), features="x*")


@pytest.fixture(scope="module")
def two() -> Sweep:
    return sweep_of(("p_a", "p_b"))


@pytest.mark.parametrize(("suffix", "head"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_a_picture_is_of_the_type_that_its_name_says(one: Sweep, suffix: str, head: bytes) -> None:
    picture = draw(one, ("brier",), f"out.{suffix}")
    assert picture.startswith(head)
    assert picture == draw(one, ("brier",), f"out.{suffix}"), "the same each time"


def test_without_matplotlib_an_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DecalError, match=r"decal\[plot\]"):
        ready("out.png")


def test_the_lines_are_the_curves(one: Sweep) -> None:
    figure = figure_of(one, PICTURES)
    titles = {axes.get_title(loc="left"): axes for axes in figure.axes}
    lines = {line.get_label(): line for line in titles["Brier curves"].get_lines()}
    for name, (_, words) in LINES.items():
        assert lines[words].get_ydata() == pytest.approx(one.reports[0].curves[name].value)
        assert lines[words].get_xdata() == pytest.approx(GRID.thresholds)
    rate, at = one.reports[0].table.base_rate, GRID.thresholds
    constant = lines["better constant decision"].get_ydata()
    assert constant == pytest.approx(np.where(at < rate, at * (1 - rate), (1 - at) * rate))
    decision = titles["Decision curve"].get_lines()[0]
    assert decision.get_ydata() == pytest.approx(one.reports[0].curves["net_benefit"].value)
    fit = {line.get_label(): line for line in titles["Reliability: p_a"].get_lines()}["isotonic fit"]
    assert fit.get_ydata() == pytest.approx(Curve.fitted(one.reports[0].table).value)
    assert titles["Reliability: p_a"].get_ylim() == pytest.approx((-0.02, 1.02))
    assert [line.get_label() for line in titles["ROC curves"].get_lines()][1:3] == ["as it is", "calibrated: its hull"]
    loss = one.reports[0].grouping_loss
    panel = next(a for title, a in titles.items() if title.startswith("Grouping"))
    dots, bars = (
        [each for each in panel.collections if isinstance(each, of)] for of in (PathCollection, LineCollection)
    )
    assert len(bars[0].get_segments()) == 15, "a bar of the root of Vmin for each bin"
    assert loss is not None and sum(len(d.get_offsets()) for d in dots) == sum(
        int((half.n > 0).sum()) for half in one.reports[0].inputs.get(Regions).halves
    )


def test_the_waterfall_stands_on_the_metrics_of_the_users_task(one: Sweep) -> None:
    rungs = ladder_results(one.reports[0], one.head.task, one.head.plan)
    axes = figure_of(one, ("waterfall",)).axes[0]
    bars = {round(bar.get_y() + bar.get_height() / 2): bar for bar in axes.patches if hasattr(bar, "get_y")}
    assert bars[3].get_width() == pytest.approx(1000 * rungs["gain_recalibration"].value)
    now, gain, beyond = (rungs[name].value for name in ("expected_utility", "gain_recalibration", "gain_beyond"))
    # Each step starts where the last one ended, and the chain ends at the gain of post-training.
    start, width = 1000 * (now + gain), 1000 * beyond
    assert bars[4].get_x() == pytest.approx(min(start, start + width))
    assert abs(bars[4].get_width()) == pytest.approx(abs(width))
    assert start + width == pytest.approx(1000 * (now + rungs["gain_post_training"].value))
    assert "(t* = 0.3: a false alarm costs 3, a miss 7)" in axes.get_xlabel()
    # To always act is worth more than 1,000 less; all else lies within the axis, and no arrow says otherwise.
    assert [text.get_text() for text in axes.texts if set(text.get_text()) & set("→f")] == ["-3,255, off the axis"]
    assert all(axes.get_xlim()[0] < value < axes.get_xlim()[1] for line in axes.lines[1:] for value in line.get_xdata())


def test_without_features_the_waterfall_ends_where_every_label_is_known() -> None:
    swept = sweep_of(task=BinaryTask.of_utility(((0, -5), (-5, 0))))
    axes = figure_of(swept, ("waterfall",)).axes[0]
    assert not any(text.get_text().endswith("off the axis") for text in axes.texts), "constants are its lower end"
    assert axes.texts[-1].get_text() == "+1,922 →", "to know every label wins more than the axis shows"
    last = [bar for bar in axes.patches if hasattr(bar, "get_y")][-1]
    assert last.get_x() + last.get_width() == pytest.approx(0, abs=1e-9)  # right decisions cost nothing here
    written = axes.xaxis.get_major_formatter()
    assert [written(value) for value in (-1_200_000, 0.25)] == ["\N{MINUS SIGN}1,200,000", "0.25"]


def test_the_waterfall_of_a_report_speaks_in_the_users_terms(one: Sweep) -> None:
    terms = StatedTerms(unit="EUR", per="year", decisions=1e6, names=("keep", "call"))
    drawn, _ = page.drawn_alone(panels_of(one, "waterfall", terms)[0].draw)
    svg = drawn.decode()
    assert "expected utility in million EUR a year" in svg
    assert "always decide 'call'" in html.unescape(svg)
    rungs = ladder_results(one.reports[0], one.head.task, one.head.plan)
    assert short(rungs["expected_utility"].value, 3) in svg  # a million decisions, in millions


def test_reliability_marks_where_the_recalibrated_score_reaches_the_threshold(one: Sweep) -> None:
    """Perez-Lebel et al. 2025, fig. 1: t_f."""
    (line,) = (
        line
        for line in figure_of(one, ("reliability",)).axes[0].get_lines()
        if str(line.get_label()).startswith("recalibrated, t* is reached at ")
    )
    report, task = one.reports[0], one.task
    assert task is not None
    adjusted = value_of(parse("threshold_adjusted"), Inputs.of(report.table, None, task))
    assert line.get_xdata()[0] == pytest.approx(adjusted, abs=0.001)


def test_a_score_at_the_threshold_acts_before_and_after_recalibration() -> None:
    axes = matplotlib.figure.Figure().add_subplot()
    same = Curve(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    _mark_changes(axes, same, BinaryTask.of_threshold(0.5), (0.0, 1.0))
    assert axes.get_lines()[0].get_xdata()[0] == 0.5 and not axes.collections, "no decision changes"


def test_parts_of_the_score_are_drawn_from_20_rows_on() -> None:
    n = np.array([MIN_ROWS - 1, MIN_ROWS])
    every, axes = SimpleNamespace(name=lambda place, rows: "all", rows=None), matplotlib.figure.Figure().add_subplot()
    window = SimpleNamespace(place=0, rows=39, n=n, positives=n // 4, scores=n / 2)
    _reliability(axes, SimpleNamespace(windows=[window], plan=SimpleNamespace(score="p", every=every)))
    assert axes.get_lines()[1].get_xydata().tolist() == [[0.5, 0.25]]


def test_models_keep_colour_and_marker_in_every_panel(two: Sweep) -> None:
    figure = figure_of(two, PICTURES)
    for axes in figure.axes:
        for line in axes.get_lines():
            for number, report in enumerate(two.reports):
                if line.get_label() == report.name:
                    assert (line.get_color(), line.get_marker()) == style_of(number)
    brier = next(axes for axes in figure.axes if axes.get_title(loc="left") == "Brier curves")
    drawn = [line.get_ydata() for line in brier.get_lines() if len(line.get_xdata()) == len(GRID.thresholds)]
    shown = [report.curves[way].value for report in two.reports for way in ("brier", "brier_calibrated")]
    assert np.array(drawn) == pytest.approx(np.array(shown))
    assert len({style_of(number) for number in range(64)}) == 64 and style_of(8) == (COLOURS[0], style_of(1).marker)


def test_neighbouring_colours_differ_in_grey() -> None:
    grey = [np.array(matplotlib.colors.to_rgb(colour)) @ [0.299, 0.587, 0.114] for colour in COLOURS]
    assert np.abs(np.diff(grey)).min() > 0.12


@pytest.mark.ci
def test_legends_hide_no_data_and_panels_no_panels(one: Sweep, two: Sweep) -> None:
    # Of eight models, panels in rows of three stood above panels in rows of four, and all of them overlapped.
    long = {f"p_{'and_on' * 9}_{k}": SCORE for k in range(8)}
    eight = swept(
        from_arrays({"y": LABEL, **long}, "y", columns=Columns(score=tuple(long))),
        Plan((), BinaryTask.of_threshold(0.3)),
        GRID,
    )
    for sweep in (one, two, eight):
        figure = figure_of(sweep, PICTURES)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        boxes = [axes.get_window_extent(canvas.get_renderer()).padded(-1) for axes in figure.axes]
        for here, there in itertools.combinations(boxes, 2):
            assert not here.overlaps(there)
        for axes in figure.axes:
            if axes.get_legend() is not None and axes.axison:
                box = axes.get_legend().get_window_extent(canvas.get_renderer())
                assert not box.overlaps(axes.get_window_extent(canvas.get_renderer())), axes.get_title(loc="left")
                assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 and box.y0 >= 0, "cut off"


def test_of_many_groups_the_largest_have_a_colour_and_a_name() -> None:
    sweep = sweep_of(group=np.append(np.repeat(np.arange(20), 10 + np.arange(20)), np.full(10, 19)))
    for axes in figure_of(sweep, SHARED).axes:
        labels = axes.get_legend_handles_labels()[1]
        named = [label for label in labels if label.startswith("p_a")]
        assert len(named) == len(COLOURS) and "p_a" in named and "p_a, 19" in named and "p_a, 0" not in named
        assert "13 others" in labels


@pytest.mark.ci
def test_of_many_groups_no_two_share_a_colour_and_their_legend_lies_beneath_the_axis() -> None:
    """The largest, not the first, have names: two of them had one colour, and ten lines stood on the axis's name."""
    rows = np.append(np.repeat(np.arange(20), 10 + (7 * np.arange(20)) % 20), np.full(10, 19))
    sweep = sweep_of(group=np.char.add("a name that takes a line of its own ", rows.astype(str)))
    figure = figure_of(sweep, ("brier", "decision"))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    for axes in figure.axes:
        lines = axes.get_legend_handles_labels()
        named = [line.get_color() for line, label in zip(*lines, strict=True) if label.startswith("p_a")]
        assert len(named) == len(set(named)) == len(COLOURS)
        legend, name = (each.get_window_extent(canvas.get_renderer()) for each in (axes.get_legend(), axes.xaxis.label))
        assert legend.y1 <= name.y0


def test_amounts_are_in_the_terms_of_the_user(one: Sweep) -> None:
    terms = StatedTerms(unit="EUR", decisions="100000/year")
    svg = html.unescape(draw(one, ("waterfall",), "out.svg", terms).decode())
    assert "expected utility in EUR a year" in svg and "1,000 decisions" not in svg
    assert "p_a: expected utility in EUR a year" in Text(Page(100)).written(draw_text(one, ("waterfall",), 100, terms))


@pytest.mark.parametrize("picture", PICTURES)
def test_the_terminal_gets_every_picture_within_its_width(one: Sweep, two: Sweep, picture: str) -> None:
    for sweep in (one, two):
        for width in (60, 100):
            text = Text(Page(width)).written(draw_text(sweep, (picture,), width))
            assert max(map(len, text.splitlines())) <= width
            assert len(text.splitlines()) > 2 or "needs feature columns: --features" in text


@pytest.mark.parametrize(
    ("values", "low", "ends", "labels", "rows"),
    [
        ([1.3, 0.65, 0.0], 0.0, (0, 1), ("1.300", "0.600", "0.000"), range(14)),
        ([1.3, 0.65, 0.0], 0.0, (2, 5), ("1.300", "0.600", "0.000"), range(14)),
        ([2.0] * 3, 2.0, (0, 1), ("3.000", "2.462", "2.000"), [13]),
    ],
)
def test_a_picture_of_14_by_14_signs(
    values: list[float], low: float, ends: tuple[int, int], labels: tuple[str, ...], rows: Sequence[int]
) -> None:
    """A line that falls from end to end is the diagonal; of one value it lies at the bottom."""
    at = np.linspace(*ends, 3)
    shown = canvas("", [("o", "a line", at, np.array(values))], 23, low, ends=ends).lines
    named = dict(zip((0, 7, 13), labels, strict=True))
    marks = {row: f"{' ' * row}o" if len(rows) > 1 else "o" * 14 for row in rows}
    lines = [f"{named.get(row, ''):>7} │{marks.get(row, '')}" for row in range(14)]
    axis = f"{ends[0]}{at[1]:^12.4g}{ends[1]}"
    assert list(shown) == ["", *lines, f"{'':>7} └{'─' * 14}", f"{'':>9}{axis}", f"{'':>9}o a line"]


def test_a_picture_of_signs_ends_where_its_line_leaves_it() -> None:
    lines = canvas("", [("o", "", np.array([0.0, 1.0]), np.array([1.0, -1.0]))], 23, 0.0).lines[1:]
    assert [line.rfind("o") - 9 for line in lines[:14]] == [(row + 1) // 2 for row in range(14)]


def test_points_of_one_place_are_drawn_without_a_line_between_them() -> None:
    series = [("o", "", np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0]))]
    assert [line.count("o") for line in canvas("", series, 23, 0.0).lines[1:15]] == [2, *[0] * 12, 1]


@pytest.mark.parametrize(
    ("one_of", "threshold", "low"), [(2, 0.5, -0.125), (2, 0.6, -0.275), (2, 0.8, -0.5), (3, 0.5, -1 / 3)]
)
def test_a_decision_curve_is_drawn_as_far_below_zero_as_it_goes_above_at_most(
    one_of: int, threshold: float, low: float
) -> None:
    """Acting on all, a share b of label 1, is worth (b - t) / (1 - t): at these thresholds 0, -.25, -1.5 and -1 / 3."""
    rows = from_arrays(np.ones(600), np.arange(600) % one_of == 0)
    sweep = swept(rows, Plan((), None), Grid(parse_thresholds(f"0.01,{threshold}")))
    (axes,) = figure_of(sweep, ("decision",)).axes
    assert axes.get_ylim() == pytest.approx((low, 1.08 / one_of))
    assert axes.get_title(loc="left").endswith(" (cut off below)") == (threshold == 0.8)


def test_a_row_of_several_panels_is_as_high_as_they_are() -> None:
    for columns, high in ((1, 3.0), (2, 6.0)):
        panels = [page.Panel(None, lambda axes: None, 2.0)] * columns
        assert page.figure_of([(columns, panels)], 4.0, 3.0).get_size_inches().tolist() == [max(columns, 1.2) * 4, high]


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ((0.4, 0.6), (0.392, 0.608)),
        ((0.1, 0.3), (0.0, 0.308)),
        ((0.7, 0.9), (0.692, 1.0)),
        ((0.0, 0.6), (0.0, 0.624)),
        ((0.0, 0.61), (0.0, 1.0)),
        ((0.27, 0.77), (0.25, 1.0)),
        ((0.5, 0.5), (0.0, 1.0)),
    ],
)
def test_an_axis_has_a_margin_of_a_25th_and_ends_where_0_or_1_is_near(
    values: tuple[float, float], ends: tuple[float, float]
) -> None:
    assert value_range(np.array(values)) == pytest.approx(ends)


def test_an_axis_of_scores_leaves_out_a_50th_of_the_rows_at_either_end() -> None:
    for score, n, ends in (
        ((0.05, 0.4, 0.6, 0.95), (1, 99, 99, 1), (0.392, 0.608)),
        ((0.4, 0.6), (9, 1), (0.392, 0.608)),
    ):
        rows = np.repeat(score, n)
        assert score_range([Rows(rows, rows > 0.5).table], ()) == pytest.approx(ends)


def test_bars_of_scores_fill_their_axis() -> None:
    sweep = swept(from_arrays(0.4 + 0.2 * SCORE, LABEL), Plan((), None), GRID)
    strip = figure_of(sweep, ("reliability",)).axes[1]
    left, right = strip.get_xlim()
    assert left > 0 and sum(bar.get_width() for bar in strip.patches) == pytest.approx(2 * (right - left))
    shown = np.mean((5 * left - 2 <= SCORE) & (5 * right - 2 >= SCORE))
    assert sum(bar.get_height() for bar in strip.patches) == pytest.approx(shown)


@pytest.mark.parametrize(
    ("thresholds", "ends"),
    [("0.3:0.7:0.1", (0.3, 0.7)), ("0.02:0.98:0.02", (0.0, 1.0)), ("0.01,0.93", (0.01, 0.93)), ("0.4", (0.0, 1.0))],
)
def test_an_axis_of_thresholds_is_all_of_it_where_they_almost_are(thresholds: str, ends: tuple[float, float]) -> None:
    assert axis_of(SimpleNamespace(grid=Grid(parse_thresholds(thresholds)))) == pytest.approx(ends)


def test_the_axis_of_gains_shows_what_lies_within_its_width() -> None:
    limit = _Step("every label known", 0.5, 1.5, None, {}, estimated=False)
    assert _reach(0.0, [1.0, -1.0], [limit]) == (-1.0, 2.0)
    assert _reach(0.0, [1.0, -1.1], [limit._replace(gain=1.6)]) == (0.0, 1.0)
    assert _reach(0.2, [0.2, -0.5], [limit._replace(start=0.2, gain=0.0, estimated=True)]) == (0.0, 0.4)
    assert _reach(0.2, [0.1], [limit._replace(start=0.2, gain=0.2, interval=(0.1, 0.3), estimated=True)]) == (0.1, 0.5)


@pytest.mark.parametrize(
    ("classes", "size"),
    [(2, 8), (4, 8), (5, 8), (6, 6), (8, 6), (9, 5), (10, 5), (11, 5), (MAX_WRITTEN, 5), (MAX_WRITTEN + 1, None)],
)
def test_cells_of_more_classes_are_written_smaller_and_of_very_many_not_at_all(classes: int, size: int | None) -> None:
    names, axes = tuple(map(str, range(classes))), matplotlib.figure.Figure().add_subplot()
    rows, utility = (tuple(map(tuple, each)) for each in (np.ones((classes, classes)), np.eye(classes)))
    confusion(axes, ActionCounts(names, names, rows, utility), "m")
    written = [(text.get_fontsize(), text.get_text()) for text in axes.texts]
    lost = f"1\n-{short(1000 / classes**2, 1)}"
    expected = [(size, "1" if k % (classes + 1) == 0 else lost) for k in range(classes**2)]
    assert written == (expected if size is not None else [])
    ticks = [(each.get_rotation(), each.get_fontsize()) for each in axes.get_xticklabels()]
    assert ticks == [(90.0 if classes > 4 else 0.0, 8 if classes <= 10 else 6)] * classes


def test_what_ways_win_is_drawn_from_one_end_of_the_axis_to_the_other() -> None:
    sweep = swept(from_arrays(SCORE, LABEL), Plan((), None), Grid(parse_thresholds("0.2:0.6:0.1")))
    left, right = 0.2, 0.6
    for _ in range(2):
        axes, none = matplotlib.figure.Figure().add_subplot(), np.zeros(7)
        at = np.array([left / 2, left, *np.linspace(left, right, 5)[1:-1], right, (1 + right) / 2])
        worth(axes, sweep, [Positions(at, 1.0, 1.0, none, none, none, None, None)], 1.0, "")
        left, right = axes.get_xlim()
    assert 0 < left < right < 1
    assert WAY_LINES["recalibrate"][1] not in [line.get_label() for line in axes.lines], "nothing is recalibrated"
    assert {tuple(line.get_xdata()) for line in axes.lines if len(line.get_xdata()) > 2} == {tuple(at[1:-1])}


def test_groups_lie_below_each_other_and_models_beside_each_other() -> None:
    """Of two models and two groups, the marks are 0.3 apart, around the place of each group."""
    data = from_arrays(
        FRAME | {"g": np.where(X[:, 2] > 0, "a", "b")}, "y", columns=Columns(score=("p_a", "p_b"), group=("g",))
    )
    pack, figures = pack_named("fairness"), []
    evaluation = evaluate(data, Plan(pack.choices, BinaryTask.of_threshold(0.4)), pack=pack)
    with blank_pictures(figures.append):
        draw_groups(evaluation, pack, "groups.svg")
    first, second = figures[0].axes[:2]
    assert first.get_position().x1 < second.get_position().x0 and first.get_ylim() == (1.5, -0.5)
    drawn = [line for line in first.get_lines() if len(line.get_xdata()) and line.get_linestyle() != ":"]
    heights = np.repeat([-0.15, 0.85, 0.15, 1.15], 2)
    assert np.array([[*line.get_ydata()][:1] + [*line.get_ydata()][-1:] for line in drawn]) == pytest.approx(
        np.array([heights] * 2).T
    )


def test_bins_of_which_one_half_of_the_rows_has_none_are_drawn() -> None:
    frame = {name: each[:12] for name, each in FRAME.items()}
    data = from_arrays(frame, "y", columns=Columns(score=("p_a",)), features="x*")
    few = swept(data, Plan((), None), GRID)
    (regions,) = (report.inputs.get(Regions) for report in few.reports)
    assert any((half.n == 0).any() for half in regions.halves)
    figure_of(few, ("grouping",))
    assert draw_text(few, ("grouping",), 80)


def test_bins_whose_rows_are_not_known_to_differ_are_not_marked_where_any_difference_would_change_decisions() -> None:
    frame = {"p": np.repeat(np.linspace(0.1, 0.9, 12), 2), "y": np.tile([0, 1], 12), "x": X[:24, 1]}
    data = from_arrays(frame, "y", columns=Columns(score=("p",)), features="x")
    (panel,) = figure_of(swept(data, Plan((), BinaryTask.of_threshold(0.5)), GRID), ("grouping",)).axes
    words = panel.get_legend_handles_labels()[1]
    assert "may differ so far without another decision" in words and "rows differ more" not in words


def test_only_what_loses_by_miscalibration_has_an_area_of_it(one: Sweep) -> None:
    constant = swept(from_arrays(np.full(400, LABEL.mean()), LABEL), Plan((), None), GRID)
    for sweep, n in ((one, 1), (constant, 0)):
        _, labels = figure_of(sweep, ("brier",)).axes[0].get_legend_handles_labels()
        assert labels.count("miscalibration") == n


def test_of_many_classes_those_with_the_largest_error_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panels, "MAX_NAMED", 1)
    label, axes = np.repeat([0, 1, 2], (40, 20, 40)), matplotlib.figure.Figure().add_subplot()
    class_reliability(axes, ClassTable(np.tile([0.5, 0.3, 0.2], (100, 1)), label, None, ("a", "b", "c")), "m")
    assert axes.get_legend_handles_labels()[1] == ["c", "top class", "2 classes with less ECE"]


@pytest.mark.parametrize(
    ("kind", "words", "most"),
    [
        ("brier", "hatched area", 1),
        ("brier", "a dashed one", MAX_DASHED),
        ("worth", "the dashed one", 1),
        ("worth", "dashed ones", MAX_DASHED),
        ("capacity", "95 %", MAX_BANDS),
    ],
)
def test_a_caption_names_what_is_drawn_of_so_many_models_at_most(kind: str, words: str, most: int) -> None:
    few, many = (caption(kind, made_up_evaluation([(f"m{k}", None) for k in range(n)])) for n in (most, most + 1))
    assert words in few and words not in many and "are your thresholds" not in few


def test_a_report_of_many_groups_says_that_it_takes_long() -> None:
    for n, begins in ((MAX_GROUPS, ""), (MAX_GROUPS + 1, f"{MAX_GROUPS + 1:,} groups: ")):
        rows = from_arrays(np.full(n, 0.5), np.arange(n) % 2, group=np.arange(n).astype(str))
        assert said_before(rows).partition("a report")[0] == begins


@pytest.mark.ci
def test_nothing_but_a_picture_loads_matplotlib() -> None:
    code = (
        "import sys\nfrom decal_cli.commands.app import run\n"
        "run(['sweep', 'fixtures/binary_n2000.csv', '--score', 'p', '--label', 'y', '--no-intervals', '--plot', '-'])\n"
        "run(['sweep', '--help'])\n"
        "sys.exit('matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.ci
@pytest.mark.parametrize("form", ["png", "svg", pytest.param("pdf", marks=pytest.mark.long)])
def test_names_are_text_and_no_formulas(form: str) -> None:
    """Warnings are errors here: of characters that the font lacks, of axes that a name has pushed off the page."""
    names = ("$25_to_$50", "$$\\frac{", "_hidden", "中文\ufffe", "\x1b[31m\n", "a" * 5_000)
    scores = {name: np.clip(SCORE + k / 100, 0, 1) for k, name in enumerate(names)}
    sweep = swept(from_arrays(scores, LABEL), Plan((), None), Grid(parse_thresholds("0.1:0.9:0.2")))
    content = draw(sweep, ("brier", "decision", "waterfall"), f"curves.{form}")
    if form == "svg":
        text = content.decode()
        assert "$25_to_$50" in text and "\\x1b[31m\\n" in text and "_hidden" in text and "中文\\ufffe" in text
        assert "a" * 100 not in text
