"""The measures of every group side by side, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from decal_cli.analysis.evaluate import Evaluation, known_in
from decal_cli.analysis.packs import Pack
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.plot.page import new_figure, ready, saved
from decal_cli.plot.style import drawable, looks, style_of

MAX_DRAWN = 40
"""Most groups that one picture can show."""
_ACROSS = 3
"""Most panels in a row, one for each measure."""


def draw_groups(evaluation: Evaluation, pack: Pack, path: str) -> bytes:
    """A panel for each measure: a line for each group, and the value of all rows as a vertical one.

    The format is that of the path's suffix: png, svg or pdf. Errors: DecalError, for another one, or too many groups.
    """
    form = ready(path)
    groups = list(dict.fromkeys(report.group for report in evaluation.reports if report.group is not None))
    if len(groups) > MAX_DRAWN:
        raise DecalError(
            f"{Hint('plot')} shows at most {MAX_DRAWN} groups, and there are {len(groups)}", "name fewer groups"
        )
    reports, models = evaluation.reports, evaluation.models
    measures = known_in(reports, pack.measures)
    down = math.ceil(len(measures) / _ACROSS)
    rows = {report.group: f"{report.rows:,} rows" for report in reports}
    high = 1.3 + 0.24 * len(groups) * max(len(models) / 2, 1)
    with looks():
        figure = new_figure(3.9 * _ACROSS, high * down + 0.4)
        for number, key in enumerate(measures):
            axes = figure.add_subplot(down, _ACROSS, number + 1)
            _panel(axes, evaluation, key, groups, models)
            axes.set_title(pack.measures[key])
            labels = [f"{drawable(group, form)} ({rows[group]})" for group in groups] if number % _ACROSS == 0 else []
            axes.set_yticks(range(len(groups)), labels or [""] * len(groups))
        handles, labels = figure.axes[0].get_legend_handles_labels()
        if len(models) == 1:
            handles, labels = handles[-1:], labels[-1:]
        figure.legend(handles, [drawable(name, form) for name in labels], loc="outside lower center", ncols=4)
        return saved(figure, form)


def _panel(axes: Any, evaluation: Evaluation, key: str, groups: list[str], models: Sequence[str]) -> None:
    for number, model in enumerate(models):
        colour, marker = style_of(number)
        known = {report.group: report.known(key) for report in evaluation.reports if report.model == model}
        overall = known[None]
        if overall is not None:
            axes.axvline(overall.value, color=colour, linewidth=1, linestyle=":")
        shift = (number - (len(models) - 1) / 2) * 0.6 / len(models)
        for at, group in enumerate(groups):
            estimate = known.get(group)
            if estimate is not None:
                if estimate.interval is not None:
                    axes.plot(estimate.interval, (at + shift, at + shift), color=colour, linewidth=1.4)
                axes.plot([estimate.value], [at + shift], color=colour, marker=marker, markersize=5)
        axes.plot([], [], color=colour, marker=marker, label=model)
    axes.plot([], [], color="0.4", linewidth=1, linestyle=":", label="all rows")
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.locator_params(axis="x", nbins=5)
