"""One run of `decal study`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from decal_cli.analysis import study as studies
from decal_cli.analysis.evaluate import Plan
from decal_cli.analysis.study import Setting, Summary
from decal_cli.analysis.study.columns import columns_of as point_columns
from decal_cli.analysis.study.store import folder_of
from decal_cli.api.asking import thresholds_text
from decal_cli.api.nouns import Decision, Halvings, Statistics
from decal_cli.commands.common import columns_of, emit, first_given
from decal_cli.commands.options.acting import StudyOptions
from decal_cli.commands.options.common import InputOptions
from decal_cli.commands.plotting import pictures_possible
from decal_cli.commands.progress import progress_bar
from decal_cli.commands.settings import find_settings, working_folder
from decal_cli.commands.streams import say
from decal_cli.curves import parse_thresholds
from decal_cli.data import as_file
from decal_cli.data.output import write_whole
from decal_cli.data.signals import ending_as_interrupt
from decal_cli.declarations.defaults import CONFIDENCE, STUDY_THRESHOLDS
from decal_cli.errors import DecalError, Interrupted
from decal_cli.learn.methods import parse
from decal_cli.plot import STUDY_PICTURES, draw_study, experiment_files, experiment_pictures
from decal_cli.render.format import Page
from decal_cli.render.formats.data import Csv, Json
from decal_cli.render.formats.markdown import Markdown
from decal_cli.render.results.study import Experiment, Studied
from decal_cli.task import task_of

FIGURES_PAGE = "figures.md"


def run(options: StudyOptions, halvings: Halvings, source: InputOptions, task: Decision, sure: Statistics) -> None:
    """Measure every unit that is not measured yet, and write points, tables and pictures."""
    settings = find_settings(working_folder())
    paths = list(dict.fromkeys(source.files or settings.input))
    if not paths or "-" in paths:
        raise DecalError("a study needs files by name", "name them: decal study a.parquet b.parquet --score 'p_*'")
    if halvings.seeds < 1:
        raise DecalError(f"--seeds {halvings.seeds} is not positive", "give how often every file is halved")
    if halvings.workers is not None and halvings.workers < 1:
        raise DecalError(f"--workers {halvings.workers} is not positive", "give a number of processes")
    methods = tuple(dict.fromkeys(map(parse, options.method)))
    thresholds = tuple(float(t) for t in parse_thresholds(thresholds_text(halvings.thresholds)))
    one = task_of(**task.spelled)
    tasks = studies.tasks_named(one)
    if one is not None and thresholds_text(halvings.thresholds) != STUDY_THRESHOLDS:
        raise DecalError("--thresholds and a task are both given", "keep one of them")
    confidence = first_given(sure.confidence, settings.confidence, CONFIDENCE)
    setting = Setting(thresholds, methods, Plan((), confidence=confidence).confidence, tasks)
    folder = folder_of(os.fspath(halvings.folder))
    workers = halvings.workers or os.cpu_count() or 1
    try:
        with ending_as_interrupt(), progress_bar() as count:
            columns, seeds = columns_of(source, settings), range(halvings.seeds)
            result = studies.run(paths, columns, setting, seeds, folder, workers, count)
            summary = studies.summarise(result)
    except KeyboardInterrupt:
        raise Interrupted("run the same command again to go on") from None
    for note in result.notes:
        say(f"decal: {note}")
    by_task = summary.points.task is not None
    if options.figures and by_task:
        say("decal: no figures.md: the experiment is over t*, and this study is over tasks")
    written = _write(folder, summary, options.figures and not by_task)
    emit(Studied(summary), options.format)
    say(f"{folder}: {', '.join(written)}")


def _write(folder: Path, summary: Summary, figures: bool) -> list[str]:
    """All files of a study but its units, each in one step; their names. Pictures of an older one are removed."""
    files = {
        "points.csv": Csv(Page()).write(Studied(summary)).encode(),
        "points.parquet": as_file("points.parquet", point_columns(summary.points)),
        "summary.json": Json(Page()).write(Studied(summary)).encode(),
    }
    pictures: dict[str, bytes] = {}
    if pictures_possible():
        by_name = {name: draw_study(summary, name) for name in STUDY_PICTURES}
        pictures = {f"{name}.png": picture for name, picture in by_name.items() if picture is not None}
        if figures:
            files |= _figures(summary)
    captions = {name: STUDY_PICTURES[name.removesuffix(".png")] for name in pictures}
    files = {"summary.md": Markdown(Page()).document(Studied(summary, captions)).encode(), **files, **pictures}
    known = [*(f"{name}.png" for name in STUDY_PICTURES), FIGURES_PAGE, *experiment_files()]
    _remove([folder / name for name in known if name not in files])
    for name, content in files.items():
        write_whole(str(folder / name), content, "file")
    return list(files)


def _figures(summary: Summary) -> dict[str, bytes]:
    """The page of the experiment of Perez-Lebel et al. 2025, and its pictures."""
    drawn = list(experiment_pictures(summary))
    page = Experiment(summary, {name: caption for name, caption, _ in drawn})
    return {FIGURES_PAGE: Markdown(Page()).document(page).encode(), **{name: png for name, _, png in drawn}}


def _remove(stale: Sequence[Path]) -> None:
    for path in stale:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise DecalError(f"{path}: {error.strerror}", "remove it, it is of an older study") from None
