"""Finished units on disk, one per line, so that a stopped study resumes where it was."""

from __future__ import annotations

import functools
import hashlib
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from decal_cli.analysis.study.points import ESTIMATES, FEWEST, Record, Setting, Unit, is_record, measure
from decal_cli.data import Columns, Dataset, columns_in, read
from decal_cli.documents import json_of
from decal_cli.errors import DecalError, printable
from decal_cli.hints import Hint, Verb
from decal_cli.limits import MAX_LINE_BYTES
from decal_cli.roles import ROW_UTILITIES, ROW_UTILITIES_FIX
from decal_cli.version import __version__

NAME = "units.jsonl"
RECORD_VERSION = 2
"""Of what a record holds."""


def key_of(unit: Unit, digest: str, columns: object, setting: Setting) -> str:
    """A hash of all that a unit's record depends on: the file's bytes, the columns, the plan, the version."""
    parts = [
        __version__,
        RECORD_VERSION,
        digest,
        unit.score,
        unit.seed,
        repr(columns),
        setting.thresholds,
        [chosen.key for chosen in setting.methods],
        setting.confidence,
        ESTIMATES,
        *map(repr, setting.tasks),
    ]
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()


class Store:
    """Records by key, in a file that only grows; a last line that was cut off is dropped.

    A missing folder is created. Errors: DecalError where that fails.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DecalError(f"{folder}: {error.strerror}", "name another folder") from None
        self.path = folder / NAME
        self.records: dict[str, Record] = {}
        whole = 0
        if self.path.exists():
            with self.path.open("rb") as file:
                while line := file.readline(MAX_LINE_BYTES):
                    entry = _entry(line)
                    if entry is None:
                        break
                    self.records[entry["key"]] = entry["record"]
                    whole += len(line)
            # New lines follow the last whole line, not a half one.
            os.truncate(self.path, whole)

    def add(self, key: str, record: Record) -> None:
        """Write one finished unit and flush it to the disk."""
        self.records[key] = record
        # Bytes of a name that are not UTF-8 have no place in JSON; who reads a record knows the file that it is of.
        written = {name: printable(value) if name == "file" else value for name, value in record.items()}
        line = json.dumps({"key": key, "record": written}, allow_nan=False).encode() + b"\n"
        try:
            with self.path.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise DecalError(f"{self.path}: {error.strerror}", "make room, then run the same command again") from None


def _entry(line: bytes) -> Mapping[str, Any] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        entry = json_of(line.decode(), NAME, "")
    except (DecalError, UnicodeDecodeError):
        return None
    whole = isinstance(entry, dict) and isinstance(entry.get("key"), str) and isinstance(entry.get("record"), dict)
    return entry if whole else None


def folder_of(path: str) -> Path:
    """The folder of a study. Errors: DecalError where it is a file, or holds other files."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise DecalError(f"{path}: is a file", "name a folder for the study: -o FOLDER")
    names = sorted(item.name for item in folder.iterdir()) if folder.exists() else []
    if names and NAME not in names:
        raise DecalError(f"{path}: holds files, and no study ({names[0]}, ...)", "name a new folder: -o FOLDER")
    return folder


Done = Callable[[int, int, int], None]
"""Called with the progress: units done, of how many, and how many of them were done before."""
_ONE_EACH = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Every process computes on one thread, because the processes share the processors already."""


@dataclass(frozen=True)
class Study:
    """The records of all units, in the order of files, scores and seeds; notes: what was dropped, and why."""

    records: tuple[Record, ...]
    notes: tuple[str, ...]
    setting: Setting


def run(
    paths: Sequence[str],
    columns: Columns,
    setting: Setting,
    seeds: Sequence[int],
    folder: Path,
    workers: int,
    done: Done = lambda finished, total, before: None,
) -> Study:
    """Measure every score of every file under every seed, except the units that the folder already holds.

    Errors: DecalError for a file that cannot be read, before anything is measured.
    """
    if amounts := [role for role in ROW_UTILITIES if columns.names(role)]:
        raise DecalError(
            f"{Verb('study')} varies one threshold, and {Hint(amounts[0])} gives each row its own",
            ROW_UTILITIES_FIX,
        )
    _read.cache_clear()
    units, digests, notes, setting = _units(paths, columns, setting, seeds)
    store = Store(folder)
    waiting = [(unit, key) for unit, key in units if not is_record(store.records.get(key, {}), unit, setting)]
    before = len(units) - len(waiting)
    done(before, len(units), before)
    for count, (key, record) in enumerate(_measured(waiting, columns, setting, digests, workers), before + 1):
        store.add(key, record)
        done(count, len(units), before)
    # A file measured under another name is the same file.
    records = tuple({**store.records[key], "file": unit.file} for unit, key in units)
    return Study(records, tuple(notes), setting)


def _units(
    paths: Sequence[str], columns: Columns, setting: Setting, seeds: Sequence[int]
) -> tuple[list[tuple[Unit, str]], dict[str, str], list[str], Setting]:
    """All units with their keys, the digests of the files, notes on what is dropped, and the setting for these rows."""
    units, digests, notes = [], {}, []
    several: bool | None = None
    for path in paths:
        present, absent = _scores_in(path, columns)
        if absent:
            notes.append(f"{path}: skipped {', '.join(absent)}, which it lacks")
        if absent and not present.score and not present.proba:
            continue
        data = read([path], present)
        data.need_rows("study")
        data.need_no_limit("study")
        digests[path] = data.inputs[0].sha256
        if several is None:
            several, setting = bool(data.classes), setting.for_rows(bool(data.classes), path)
        elif several != bool(data.classes):
            raise DecalError(
                f"{path}: rows are of {'two' if several else 'several'} classes, and those of other files are not",
                "study files of two classes, and those of several, in two runs",
            )
        for model in data.models:
            rows, positives = len(model.rows), model.rows.positives
            if rows < FEWEST or (not several and (positives < 2 or positives > rows - 2)):
                of_them = "" if several else f", {positives} of them positive"
                notes.append(f"{path}, {model.name}: dropped, too few rows: {rows}{of_them}")
                continue
            for seed in seeds:
                unit = Unit(path, model.name, seed)
                units.append((unit, key_of(unit, digests[path], columns, setting)))
        notes += [f"{path}: {note}" for note in data.notes]
    if not units and not digests:
        read([paths[0]], columns)  # which says what it lacks
    if not units:
        raise DecalError("there is nothing to study", f"give files of at least {FEWEST} rows with both labels")
    return units, digests, notes, setting


def _scores_in(path: str, columns: Columns) -> tuple[Columns, list[str]]:
    """The columns with those scores, or patterns of class probabilities, that a file has; and those that it lacks."""
    named = (*columns.score, *columns.proba)
    names = columns_in(path) if named else []
    present = [each for each in named if each in names or any(fnmatchcase(name, each) for name in names)]
    score, proba = (tuple(each for each in given if each in present) for given in (columns.score, columns.proba))
    return replace(columns, score=score, proba=proba), [each for each in named if each not in present]


def _measured(
    waiting: Sequence[tuple[Unit, str]], columns: Columns, setting: Setting, digests: dict[str, str], workers: int
) -> Iterator[tuple[str, Record]]:
    """Keys and records as they are finished."""
    work = functools.partial(_measure, columns, setting, digests)
    if workers == 1 or len(waiting) < 2:
        for unit, key in waiting:
            yield key, work(unit)
        return
    with _single_threads():
        # A fresh interpreter each: threads of the reading library do not survive a fork.
        context = multiprocessing.get_context("spawn")
        others = multiprocessing.active_children()
        pool = ProcessPoolExecutor(min(workers, len(waiting)), mp_context=context, initializer=_end_with_parent)
        try:
            futures: dict[Future[Record], str] = {pool.submit(work, unit): key for unit, key in waiting}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise DecalError(
                "a process of the study was killed, perhaps because memory ran out",
                f"run the same command again: it resumes from here; {Hint('workers', '1')} needs less memory",
            ) from None
        except BaseException:
            for process in multiprocessing.active_children():
                if process not in others:
                    process.terminate()
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _single_threads() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in _ONE_EACH}
    os.environ.update(dict.fromkeys(_ONE_EACH, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


def _end_with_parent() -> None:
    """In a process of its own: the parent handles an interrupt, and without the parent this process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _measure(columns: Columns, setting: Setting, digests: dict[str, str], unit: Unit) -> Record:
    """In a process of its own. Errors: DecalError, where the file is not the one that the unit is of."""
    data = _read(unit.file, _scores_in(unit.file, columns)[0])
    if data.inputs[0].sha256 != digests[unit.file]:
        raise DecalError(f"{unit.file}: changed while it was studied", "run again when nothing writes to it")
    return measure(unit, next(model for model in data.models if model.name == unit.score), setting)


@functools.lru_cache(maxsize=2)
def _read(path: str, columns: Columns) -> Dataset:
    return read([path], columns)
