"""What every command does: options and settings to a data set and a plan, text and bytes to their place."""

from __future__ import annotations

import importlib
import os
import stat
import sys
import threading
from collections.abc import Sequence
from typing import Any, BinaryIO, TypeVar

from decal_cli.analysis.choices import all_choices
from decal_cli.analysis.evaluate import Plan, planned
from decal_cli.api.nouns import Decision, Statistics
from decal_cli.commands.options.common import EngineOptions, InputOptions, OutputOptions
from decal_cli.commands.options.judging import MetricOptions
from decal_cli.commands.progress import reading_bar
from decal_cli.commands.settings import Settings, find_settings, working_folder
from decal_cli.data import Columns, Counting, Dataset, read
from decal_cli.data.output import check_not_read, check_writable, write_whole
from decal_cli.declarations.defaults import CONFIDENCE, SEED
from decal_cli.errors import DecalError
from decal_cli.metrics import MetricSpec, parse
from decal_cli.render.format import Page
from decal_cli.render.formats import DEFAULT, write
from decal_cli.render.terms import StatedTerms
from decal_cli.roles import ROW_UTILITIES
from decal_cli.task import ClassTask, RowTask, Task, row_task_of, task_of

T = TypeVar("T")


def settings_of(out: OutputOptions) -> Settings:
    """The settings file; and a first look at whether the output can be written, before any work is done."""
    if out.output is not None:
        check_writable(out.output, "output")
    return find_settings(working_folder())


WHOLE = ("json", "csv")
"""Formats that hold every metric unasked: who reads them picks for himself."""


def choices_of(metrics: MetricOptions, form: str) -> tuple[MetricSpec, ...]:
    """The metrics that the line names, or all of them, or none: then the command shows the main ones."""
    named = tuple(parse(text) for text in metrics.metric)
    return named or (all_choices() if metrics.all_metrics or form in WHOLE else ())


def plan_of(
    choices: Sequence[MetricSpec],
    task: Decision,
    sure: Statistics,
    settings: Settings,
    source: InputOptions | None = None,
) -> Plan:
    """What is to be computed, as the line says, else the settings, else the defaults.

    source: what is said of the columns, where they may say what decisions are worth.
    """
    confidence = first_given(sure.confidence, settings.confidence, CONFIDENCE)
    given, seed = _task(task, settings, source), first_given(sure.seed, settings.seed, SEED)
    return planned(choices, given, confidence, seed)


def first_given(*values: T | None) -> T:
    """The first value that is not None."""
    return next(value for value in values if value is not None)


def _task(task: Decision, settings: Settings, source: InputOptions | None) -> Task | ClassTask | RowTask | None:
    """The task of the line; where it names none, that of the settings."""
    spelled = _spelled(task, settings)
    if source is not None:
        # A whole task on the line is in place of the columns that the settings name.
        whole = set(spelled) - {"cost_fp", "cost_fn", "decision_threshold"} or {"cost_fp", "cost_fn"} <= set(spelled)
        columns = Columns().updated(source.named) if whole else columns_of(source, settings)
        if roles := [role for role in ROW_UTILITIES if columns.names(role)]:
            return row_task_of(roles, spelled)
    return task_of(**spelled)


def _spelled(task: Decision, settings: Settings) -> dict[str, Any]:
    on_line = task.spelled
    return on_line if set(on_line) - {"decision_threshold"} else {**settings.task, **on_line}


def costs_given(task: Decision, settings: Settings) -> bool:
    """Whether the task is spelled in costs, not in utilities."""
    return not {"cost_matrix", "cost_fp"}.isdisjoint(_spelled(task, settings))


def terms_of(terms: StatedTerms, settings: Settings) -> StatedTerms:
    """The user's terms: of the line, else of the settings."""
    on_line = {name: value for name, value in vars(terms).items() if value is not None}
    in_settings = {} if "decisions" not in on_line else {"decisions": None, "per": None}
    return StatedTerms(**{**vars(StatedTerms(**settings.terms)), **in_settings, **on_line})


def columns_of(source: InputOptions, settings: Settings) -> Columns:
    """The columns of the line; where it names none, those of the settings. Errors: DecalError for --per alone."""
    columns = settings.columns.updated(source.named)
    if columns.capacity is not None:
        return columns
    if "per" in source.named or (columns.per is not None and "decisions" in settings.terms):
        raise DecalError(
            f"--per {columns.per} is the column of days of a capacity",
            "give --capacity too; decisions a year are --decisions 100000/year",
        )
    return columns.updated({"per": None})


def inputs_of(source: InputOptions, settings: Settings, output: str | None = None) -> tuple[list[str], BinaryIO | None]:
    """The files of the line, else what is piped in, else those of the settings; and standard input where it is read.

    output: where the result goes, which must not be one of them.
    """
    if source.files:
        check_not_read(output, source.files)
        return source.files, sys.stdin.buffer if "-" in source.files else None
    piped = _piped()
    if piped is not None:
        return ["-"], piped
    if settings.input:
        check_not_read(output, settings.input)
        return list(settings.input), None
    raise DecalError(
        "there is nothing to read: no file is named, nothing is piped in, and no settings file names an input",
        'try: decal evaluate preds.csv, or: cat preds.csv | decal evaluate, or: input = "preds.csv" in decal.toml',
    )


def load_ahead(choices: Sequence[MetricSpec]) -> None:
    """Import what these metrics import late, while files are read: that needs the other processor."""
    modules = {choice.declared.loads for choice in choices} - {""}
    if modules:
        threading.Thread(target=lambda: [importlib.import_module(name) for name in modules], daemon=True).start()


def counted_by_engine(
    source: InputOptions, settings: Settings, edges: Sequence[float], pairs: bool = False
) -> Dataset | None:
    """The rows of the engine that the line names, if any. pairs: whether they are counted by two scores at once."""
    if not isinstance(source, EngineOptions) or (source.engine is None and source.query is None):
        return None
    if source.files or source.engine is None:
        raise DecalError("rows come from files or from one engine", "give files, or --engine without files")
    # Late: most runs read files.
    from decal_cli.data.large.engines.reading import read_engine

    return read_engine(source.engine, columns_of(source, settings), source.query, tuple(edges), pairs)


def data_of(
    source: InputOptions,
    settings: Settings,
    output: str | None = None,
    edges: Sequence[float] | None = None,
    pairs: bool = False,
) -> Dataset:
    """What the line and the settings say is to be read; output: where the result goes.

    edges: thresholds of the decisions, of a command for which counts of rows will do; else None. pairs: whether rows
    are counted by two scores at once, where two are named.
    """
    counted = counted_by_engine(source, settings, edges or (), pairs)
    if counted is not None:
        return counted
    paths, stdin = inputs_of(source, settings, output)
    if edges is None:
        return read(paths, columns_of(source, settings), stdin, sampled=not pairs)
    with reading_bar() as progress:
        return read(paths, columns_of(source, settings), stdin, Counting(tuple(edges), progress, pairs), not pairs)


def _piped() -> BinaryIO | None:
    """Standard input where something is piped or redirected into it; None at a terminal or where it is empty."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return None
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)):
        return None
    stream: Any = sys.stdin.buffer
    return stream if stream.peek(1) else None


def emit(result: Any, name: str = DEFAULT, out: OutputOptions | None = None) -> None:
    """A result in the format of this name: to standard output, or to the file in one step."""
    if out is not None and out.output is not None:
        write_whole(out.output, as_bytes(result, name), "output")
        return
    content = write(result, name, page_of(out))
    if isinstance(content, str):
        sys.stdout.write(content)
        sys.stdout.flush()
    else:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def as_bytes(result: Any, name: str) -> bytes:
    """What a file of this format holds of a result."""
    content = write(result, name, Page())
    return content.encode("utf-8", errors="backslashreplace") if isinstance(content, str) else content


def page_of(out: OutputOptions | None) -> Page:
    """The page of the terminal, or of a file."""
    return Page.of_terminal(sys.stdout) if out is None or out.output is None else Page()
