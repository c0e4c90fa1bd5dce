"""Pictures of a study: drawn, the same each time, nothing cut off, every file and method named."""

from dataclasses import replace
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from decal_cli.analysis.study_summary import BASE, Summary, summarise
from decal_cli.plot.study import (
    _BY_THRESHOLD,
    STUDY_PICTURES,
    _local_lines,
    draw_study,
    experiment_files,
    experiment_pictures,
    study_figure,
)
from decal_cli.plot.style import RC
from tests.helpers.studies import STUDY_METHODS, made_up_study


@pytest.fixture(scope="module")
def summary() -> Summary:
    return summarise(made_up_study())


def laid_out(summary: Summary, picture: str) -> Any:
    """The figure, laid out."""
    with matplotlib.rc_context(RC):
        figure = study_figure(summary, picture)
        FigureCanvasAgg(figure).draw()
    return figure


def visible_texts(figure: Any) -> list[Text]:
    """All texts that are seen: ticks beyond the ends of an axis are not."""
    texts = []
    for axes in figure.axes:
        texts += [axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            texts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    for legend in figure.legends:
        texts += [legend.get_title(), *legend.get_texts()]
    return [text for text in texts if text.get_visible() and text.get_text().strip()]


@pytest.mark.parametrize("picture", ["correlations", "time"])
def test_a_picture_is_a_png_and_the_same_each_time(summary: Summary, picture: str) -> None:
    first = draw_study(summary, picture)
    assert first.startswith(b"\x89PNG")
    assert first == draw_study(summary, picture)


def test_times_of_a_fit_within_one_power_of_ten_can_be_read(summary: Summary) -> None:
    times = dict(zip(summary.seconds, np.geomspace(0.0004, 0.003, len(summary.seconds)), strict=True)) | {BASE: 0.001}
    quick = replace(summary, seconds=times)
    (axes,) = laid_out(quick, "time").axes
    low, high = axes.get_xlim()
    assert high / low < 10 and sum(low <= at <= high for at in axes.get_xticks()) >= 2


@pytest.mark.parametrize("picture", STUDY_PICTURES)
def test_nothing_is_cut_off_and_no_words_lie_on_others(summary: Summary, picture: str) -> None:
    figure = laid_out(summary, picture)
    renderer = figure.canvas.get_renderer()
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in visible_texts(figure)]
    page = figure.bbox
    for text, box in boxes:
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= page.x1 + 1 and box.y1 <= page.y1 + 1, text
    for k, (one, box) in enumerate(boxes):
        for other, another in boxes[k + 1 :]:
            wide = min(box.x1, another.x1) - max(box.x0, another.x0)
            high = min(box.y1, another.y1) - max(box.y0, another.y0)
            assert min(wide, high) <= 1, (one, other)


def test_the_legend_says_which_mark_is_which_file(summary: Summary) -> None:
    figure = laid_out(summary, "post-training")
    (legend,) = figure.legends
    named = [text.get_text() for text in legend.get_texts()]
    assert named == [*(f"file_{k}" for k in range(6)), "gain = estimate"]
    in_legend = [(line.get_color(), line.get_marker()) for line in legend.get_lines()[:6]]
    in_panel = [(line.get_color(), line.get_marker()) for line in figure.axes[0].get_lines()[1:]]
    assert in_legend == in_panel and len(set(in_legend)) == 6
    assert [axes.get_title(loc="left").split("\n")[0] for axes in figure.axes] == [
        "Gain of refit",
        "Gain of refit",
        "Gain of stack-boosting",
    ]


@pytest.mark.parametrize(("files", "last"), [(24, ["file_23"]), (40, ["file_23", "and 16 more"])])
def test_of_very_many_files_some_are_named(files: int, last: list[str]) -> None:
    figure = laid_out(summarise(made_up_study(files=files, scores=1, seeds=1)), "recalibration")
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named[23:] == [*last, "gain = estimate"]
    assert figure.axes[0].get_position().height > 0.4


@pytest.mark.parametrize("picture", ["recalibration", "beyond"])
def test_long_and_strange_names_of_files_stay_readable(summary: Summary, picture: str) -> None:
    names = ("_hidden", "cost in $ and $", "a" * 60, "b" * 31, "c", "d")
    figure = laid_out(replace(summary, points=replace(summary.points, files=names)), picture)
    named = [text.get_text().strip() for text in figure.legends[0].get_texts()]
    assert named[:2] == ["_hidden", "cost in $ and $"] and len(named) == 7
    assert figure.legends[0]._ncols == 3, "36 signs wide"
    assert not any(text.get_parse_math() for text in figure.legends[0].get_texts())
    renderer = figure.canvas.get_renderer()
    assert all(text.get_window_extent(renderer).x1 <= figure.bbox.x1 for text in visible_texts(figure))


def test_every_method_is_named_with_its_time(summary: Summary) -> None:
    figure = laid_out(summary, "time")
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert [name.split(",")[0] for name in named] == list(STUDY_METHODS)
    assert named[0] == "isotonic, 1.0 ms" and named[-1] == "blend, 0.12 s"
    gains, base, (axes,) = summary.points.gains, summary.points.gains["isotonic"], figure.axes
    for k, name in enumerate(STUDY_METHODS):
        mean, error = summary.points.mean(1000 * (gains[name] - base))
        line, mark = axes.get_lines()[2 * k : 2 * k + 2]
        assert [*line.get_ydata(), *mark.get_ydata()] == pytest.approx([mean - 2 * error, mean + 2 * error, mean])


def test_lines_of_correlations_are_their_intervals(summary: Summary) -> None:
    first, second, *_ = laid_out(summary, "correlations").axes
    for axes, target in ((first, "isotonic"), (second, "refit")):
        drawn = [each[:, 0] for each in axes.containers[0][2][0].get_segments()]
        ends = [of.interval for (_, gain), of in summary.relations.items() if gain == target]
        assert len(drawn) > 5 and np.sort(drawn, axis=0) == pytest.approx(np.sort(ends, axis=0))


ONE_SCORE = {"files": 1, "scores": 1, "seeds": 1}


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("given", "drawn"),
    [
        ({"methods": ("isotonic", "platt")}, ["recalibration", "correlations", "time"]),
        ({"methods": ("platt",)}, []),
        (ONE_SCORE, [picture for picture in STUDY_PICTURES if picture != "correlations"]),
    ],
    ids=["two methods", "one that wins nothing", "one score"],
)
def test_what_there_is_not_enough_for_is_not_drawn(given: dict[str, Any], drawn: list[str]) -> None:
    few = summarise(made_up_study(**given))
    assert [picture for picture in STUDY_PICTURES if draw_study(few, picture) is not None] == drawn
    if given == ONE_SCORE:
        titles = [axes.get_title(loc="left") for axes in laid_out(few, "recalibration").axes]
        assert titles == ["Gain of isotonic"] * 2, "three points have no correlation"


@pytest.mark.long
def test_the_figures_of_the_paper_are_drawn_in_both_units(summary: Summary) -> None:
    drawn = list(experiment_pictures(summary))
    assert [name for name, _, _ in drawn] == experiment_files()
    assert all(png.startswith(b"\x89PNG") for _, _, png in drawn)
    captions = " ".join(caption for _, caption, _ in drawn)
    for figure in ("4b, 5b and 6b", *(f"fig. {k}" for k in range(9, 18)), "18 and 19", "fig. 20"):
        assert captions.count(f"{figure};") == 2


@pytest.mark.usefixtures("undrawn")
def test_figures_without_their_methods_are_not_drawn() -> None:
    none = [name for name, _, _ in experiment_pictures(summarise(made_up_study(methods=("platt",))))]
    assert not any(name.startswith(("by-", "against-regret-u")) for name in none)


@pytest.mark.usefixtures("undrawn")
def test_lines_along_thresholds_are_mean_gains_beyond_isotonic_regression(summary: Summary) -> None:
    points = summary.points
    lines = {line.get_label(): line for axes in _BY_THRESHOLD(points, {}).axes for line in axes.get_lines()}
    for method in set(points.gains) - {"isotonic"}:
        more, line = points.gains[method] - points.gains["isotonic"], lines[method]
        for t, mean in zip(line.get_xdata(), line.get_ydata(), strict=True):
            assert mean == pytest.approx(np.nanmean(more[points.threshold == t]))


@pytest.mark.parametrize("power", [1, 6])
def test_local_lines_are_fits_to_the_nearest_fifth_by_tricube_weights(power: int) -> None:
    """Two groups of points: at the lower end of the upper one the line of a convex course leaves the points around."""
    x = np.random.default_rng(0).random(50) * 0.3 + np.repeat([0, 0.7], 25)
    at, values = _local_lines(x, x**power)
    outside = []
    for place, value in zip(at, values, strict=True):
        far = np.abs(x - place)
        width = np.sort(far)[9]
        line = np.polyfit(x, x**power, 1, w=np.clip(1 - (far / width) ** 3, 0, None) ** 1.5)
        near, fitted = (x**power)[far < width], np.polyval(line, place)
        assert value == pytest.approx(np.clip(fitted, near.min(), near.max()), abs=1e-9)
        outside += [place] if abs(value - fitted) > 1e-9 else []
    assert outside == [] if power == 1 else min(x[x > 0.5]) in outside
