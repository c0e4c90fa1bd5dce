"""What every command does: options and settings to a data set and a plan, text and bytes to their place."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from decal_cli.analysis.evaluate import Plan, Progress
from decal_cli.commands.options import InputOptions, OutputOptions, TaskOptions
from decal_cli.commands.settings import Settings, find_settings
from decal_cli.data import Columns, Dataset, read
from decal_cli.errors import DecalError
from decal_cli.metrics import Choice
from decal_cli.render import Page
from decal_cli.task import BinaryTask, task_of


def settings_of(out: OutputOptions) -> Settings:
    """The settings file; and a first look at whether the output can be written, before any work is done."""
    if out.output is not None:
        check_writable(out.output, "output")
    return find_settings(Path.cwd())


def check_writable(path: str, what: str) -> None:
    """Raise a DecalError where a file cannot be written."""
    if path in ("", "-"):
        raise DecalError(f"{what} {path!r} is not the name of a file", "name one, such as -o result.txt")
    folder = Path(path).parent
    if Path(path).is_dir():
        raise DecalError(f"{what} {path} is a directory", "name a file")
    if not folder.is_dir():
        raise DecalError(f"{what} {path}: there is no folder {folder}", "create it, or write elsewhere")
    if not os.access(folder, os.W_OK):
        raise DecalError(f"{what} {path}: folder {folder} is not writable", "write elsewhere")


def plan_of(choices: Sequence[Choice], task: TaskOptions, out: OutputOptions, settings: Settings) -> Plan:
    confidence = out.confidence if out.confidence is not None else settings.confidence
    seed = out.seed if out.seed is not None else settings.seed
    return Plan(
        tuple(choices),
        _task(task, settings),
        0.95 if confidence is None else confidence,
        0 if seed is None else seed,
    )


def _task(task: TaskOptions, settings: Settings) -> BinaryTask | None:
    """The task of the line; where it names none, that of the settings."""
    on_line = {name: value for name, value in vars(task).items() if value is not None}
    if set(on_line) - {"decision_threshold"}:
        return task_of(**on_line)
    return task_of(**{**settings.task, **on_line})


def columns_of(source: InputOptions, settings: Settings) -> Columns:
    """The columns of the line; where it names none, those of the settings."""
    chosen = settings.columns
    return Columns(
        score=tuple(source.score) or chosen.score,
        label=source.label or chosen.label,
        weight=source.weight or chosen.weight,
        group=tuple(source.group) or chosen.group,
        features=tuple(source.features) or chosen.features,
        positive=source.positive if source.positive is not None else chosen.positive,
        logit=source.logit or chosen.logit,
        missing=chosen.missing if source.missing is None else source.missing.value,
    )


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


def load_ahead(choices: Sequence[Choice]) -> None:
    """Import what these metrics import late, while files are read: that needs the other processor."""
    modules = {choice.metric.loads for choice in choices} - {""}
    if modules:
        threading.Thread(target=lambda: [importlib.import_module(name) for name in modules], daemon=True).start()


def check_not_read(output: str | None, paths: Sequence[str]) -> None:
    """Raise a DecalError where a result would take the place of what it is made from."""
    if output is None or not os.path.exists(output):
        return
    for path in paths:
        if os.path.exists(path) and os.path.samefile(path, output):
            raise DecalError(f"output {output}: is one of the files to be read", "write elsewhere")


def data_of(source: InputOptions, settings: Settings, output: str | None = None) -> Dataset:
    """What the line and the settings say is to be read; output: where the result goes."""
    paths, stdin = inputs_of(source, settings, output)
    return read(paths, columns_of(source, settings), stdin)


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


def page_of(out: OutputOptions) -> Page:
    return Page() if out.output is not None else Page.of_terminal(sys.stdout)


def emit(text: str, out: OutputOptions) -> None:
    """To standard output, or to the file in one step."""
    if out.output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    write_whole(out.output, text.encode("utf-8"), "output")


def check_new(path: str, what: str, force: bool) -> None:
    """Before any work is done: the file can be written, and is not there yet unless it may be written over."""
    check_writable(path, what)
    if os.path.lexists(path) and not force:
        raise DecalError(f"{what} {path}: is there already", "add --force to write over it, or name another file")


def write_whole(path: str, content: bytes, what: str) -> None:
    """A file in one step: a reader never sees half of it."""
    with whole_file(path, what) as file:
        file.write(content)


@contextlib.contextmanager
def whole_file(path: str, what: str) -> Iterator[BinaryIO]:
    """A file to write into, which takes its place in one step at the end, and is gone where something fails."""
    target = Path(path)
    try:
        with _ending_cleanly():
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
            try:
                with os.fdopen(handle, "wb") as file:
                    yield file
                mask = os.umask(0)
                os.umask(mask)
                os.chmod(name, 0o666 & ~mask)
                os.replace(name, target)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name)
                raise
    except OSError as error:
        raise DecalError(f"{what} {path}: {error.strerror}", "write elsewhere") from None


@contextlib.contextmanager
def _ending_cleanly() -> Iterator[None]:
    """A request to end (SIGTERM, a closed terminal) acts as an interrupt: what was begun is taken away."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    heeded = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, interrupt) for each in heeded}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextlib.contextmanager
def progress_of() -> Iterator[Progress]:
    """A spinner with what is being computed, on a terminal; silent elsewhere."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("evaluating") as status:
        yield lambda text: status.update(f"evaluating {text}")
