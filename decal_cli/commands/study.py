"""One run of `decal study`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from decal_cli.analysis.study_summary import Summary
from decal_cli.analysis.study_summary import columns_of as point_columns
from decal_cli.api.nouns import Data, Decision, Halvings, Statistics
from decal_cli.api.verbs import study
from decal_cli.commands.streams import say
from decal_cli.commands.writing import emit, pictures_possible
from decal_cli.data import as_file
from decal_cli.data.output import ending_as_interrupt, write_whole
from decal_cli.errors import DecalError, Interrupted
from decal_cli.plot.study import STUDY_PICTURES, draw_study, experiment_files, experiment_pictures
from decal_cli.render.format import Page
from decal_cli.render.formats import as_bytes
from decal_cli.render.formats.markdown import Markdown
from decal_cli.render.results.study import Experiment, Studied

FIGURES_PAGE = "figures.md"


def run(
    data: Data,
    decision: Decision,
    statistics: Statistics,
    halvings: Halvings,
    methods: list[str],
    figures: bool,
    form: str,
) -> None:
    """Measure every unit that is not measured yet, and write points, tables and pictures."""
    workers = (os.cpu_count() or 1) if halvings.workers is None else halvings.workers
    halvings = replace(halvings, workers=workers)
    try:
        with ending_as_interrupt():
            answer = study(data, decision, methods=methods, halvings=halvings, statistics=statistics)
    except KeyboardInterrupt:
        raise Interrupted("run the same command again to go on") from None
    for note in answer.notes:
        say(f"decal: {note}")
    summary, folder = answer.summary, Path(os.fspath(halvings.folder))
    by_task = summary.points.over_tasks
    if figures and by_task:
        say("decal: no figures.md: the experiment is over t*, and this study is over tasks")
    written = _write(folder, summary, figures and not by_task)
    emit(Studied(summary), form)
    say(f"{folder}: {', '.join(written)}")


def _write(folder: Path, summary: Summary, figures: bool) -> list[str]:
    """All files of a study but its units, each in one step; their names. Pictures of an older one are removed."""
    pictures: dict[str, bytes] = {}
    on_page: dict[str, bytes] = {}
    if pictures_possible():
        drawn = {name: draw_study(summary, name) for name in STUDY_PICTURES}
        pictures = {f"{name}.png": picture for name, picture in drawn.items() if picture}
        if figures:
            # The experiment of Perez-Lebel et al. 2025.
            panels = list(experiment_pictures(summary))
            page = Experiment(summary, {name: caption for name, caption, _ in panels})
            on_page = {FIGURES_PAGE: _page(page), **{name: png for name, _, png in panels}}
    captions = {name: STUDY_PICTURES[name.removesuffix(".png")] for name in pictures}
    files = {
        "summary.md": _page(Studied(summary, captions)),
        "points.csv": as_bytes(Studied(summary), "csv"),
        "points.parquet": as_file("points.parquet", point_columns(summary.points)),
        "summary.json": as_bytes(Studied(summary), "json"),
        **on_page,
        **pictures,
    }
    for name in {FIGURES_PAGE, *(f"{name}.png" for name in STUDY_PICTURES), *experiment_files()} - files.keys():
        stale = folder / name
        try:
            stale.unlink(missing_ok=True)
        except OSError as error:
            raise DecalError(f"{stale}: {error.strerror}", "remove it, it is of an older study") from None
    for name, content in files.items():
        write_whole(str(folder / name), content, "file")
    return list(files)


def _page(result: Any) -> bytes:
    return Markdown(Page()).document(result).encode()
