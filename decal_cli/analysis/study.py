"""A study measured: of each file, score and seed, estimates from one half of the rows, and gains on the other.

Everything is per unit of u_delta. Tasks are thresholds, as in Perez-Lebel et al. 2025: U = [[1, 0], [0, 1/t* - 1]], so
that u_delta is 1/t*; or, of several classes or of more than two actions, tasks by name.
"""

from __future__ import annotations

import functools
import hashlib
import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from decal_cli.analysis.evidence import (
    BEYOND,
    EVIDENCE_KEYS,
    NEW_THRESHOLD,
    OVER_CONSTANT,
    POST_TRAINING,
    RECALIBRATION,
)
from decal_cli.data import Columns, Dataset, Predictions, columns_in, in_lists, read
from decal_cli.declarations.defaults import CONFIDENCE
from decal_cli.documents import digest_of, json_of
from decal_cli.errors import DecalError, Undefined, printable
from decal_cli.hints import Hint
from decal_cli.learn.method import MethodSpec, Training, fit_each, missing, training_rows
from decal_cli.learn.methods import METHODS, methods_for_two
from decal_cli.learn.models import Model
from decal_cli.learn.probe import Recalibrated
from decal_cli.learn.regions import build_regions
from decal_cli.limits import MAX_LINE_BYTES
from decal_cli.metrics import Inputs, MetricSpec, parse
from decal_cli.metrics import measure as measure_metric
from decal_cli.metrics.decisions import Decisions
from decal_cli.metrics.inputs import decisions_on
from decal_cli.numbers import many
from decal_cli.tables.threads import one_thread
from decal_cli.tables.units import Estimate
from decal_cli.task import BinaryTask, ClassDecision, ClassTask, Task
from decal_cli.version import __version__

CHOSEN = "chosen"
"""The scaling that cross-fitting on the fit half chooses among those that `gain_recalibration` tries."""
PRICES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
MISSED, TIMES = 4, 10.0
"""Classes, the first ones, whose misses are made dearer, and by how much."""
OF_CLASSES = tuple(
    parse(name) for name in ("ece_top", "ece_top_debiased", "ece_classwise", "brier", "log_loss", "auc", "accuracy")
)
"""Metrics of several classes that are the same for every task."""
OF_NAMED_TASKS = tuple(
    parse(name) for name in (RECALIBRATION, BEYOND, POST_TRAINING, OVER_CONSTANT, "regret_calibration", "swap_regret")
)


@dataclass(frozen=True)
class NamedTask:
    """A task of a study. given: as the user spells it; missed: else, the class whose misses cost TIMES as much."""

    name: str
    given: Task | ClassTask | None = None
    missed: int | None = None

    def of(self, classes: Sequence[str]) -> Task | ClassDecision:
        """The task for these classes: by default an action for each, of which the right one is worth most."""
        if isinstance(self.given, Task):
            return self.given
        if self.given is not None:
            return self.given.for_classes(classes)
        cost = 1.0 - np.eye(len(classes))
        if self.missed is not None:
            cost[:, self.missed] *= TIMES
        return ClassDecision(tuple(map(tuple, (0.0 - cost).tolist())), tuple(classes))


BY_DEFAULT = (
    NamedTask("accuracy"),
    *(NamedTask(f"abstain {price:g}", ClassTask(abstain=price)) for price in PRICES),
    *(NamedTask(f"misses of class {k + 1} x {TIMES:g}", missed=k) for k in range(MISSED)),
)
"""The tasks of a study of several classes, where the user names none."""


def tasks_named(task: Task | ClassTask | None) -> tuple[NamedTask, ...]:
    """The one task that the user names, if any. Errors: DecalError, for two actions, which thresholds are for."""
    if task is None:
        return ()
    if isinstance(task, Task) and task.two_actions is not None:
        at = task.two_actions.threshold
        raise DecalError("a task of two actions is studied by its t*", f"give {Hint('thresholds', f'{at:g}')}")
    price = task.abstain if isinstance(task, ClassTask) else None
    return (NamedTask("your task" if price is None else f"abstain {price:g}", task),)


EVEN = 0.5
"""The score from which accuracy decides 1, whatever t*."""
OF_SCORES = tuple(parse(name) for name in ("ece", "mce", "rmsce", "cl", "brier", "auc", "accuracy"))
"""Metrics of other tools: the same at every t*."""
PLUG_IN = ("regret_calibration", "grouping_loss", "regret_grouping", "regret")
"""The estimates that [R] proposes."""
PREDICTORS = ("regret_calibration", "regret_grouping", "regret", *(choice.key for choice in OF_SCORES))
"""What [R] holds against the gains, in its figures 4b, 5b and 6b; accuracy is in its figure 12."""
OF_TASKS = tuple(parse(name) for name in dict.fromkeys((*EVIDENCE_KEYS, *PLUG_IN)))
ESTIMATES = tuple(dict.fromkeys(choice.key for choice in (*OF_TASKS, *OF_SCORES)))
WITH_INTERVALS = (RECALIBRATION, BEYOND, POST_TRAINING, OVER_CONSTANT, NEW_THRESHOLD)
"""Estimates whose interval is kept: the advice rests on no other, and some take longer than all else together."""
FEWEST = 100
"""Rows below which a score of a file is skipped: its halves are too small."""


@dataclass(frozen=True)
class Unit:
    """What is halved: file and score by name, and the seed of the halving."""

    file: str
    score: str
    seed: int


@dataclass(frozen=True)
class Setting:
    """What is measured of every unit. methods: () for all that rows allow."""

    thresholds: tuple[float, ...]
    methods: tuple[MethodSpec, ...]
    confidence: float = CONFIDENCE
    tasks: tuple[NamedTask, ...] = ()
    """Tasks in place of thresholds, for several classes or more than two actions."""

    def for_rows(self, of_classes: bool, path: str) -> Setting:
        """This setting, with the default tasks and methods for these rows where none are named. Errors: DecalError."""
        if of_classes != any(not isinstance(task.given, Task) for task in self.tasks) and self.tasks:
            raise DecalError(
                f"{path}: {'rows are of several classes' if of_classes else 'scores are of two classes'}, and the task"
                " is not",
                "give a task of these classes, or none",
            )
        tasks = self.tasks or (BY_DEFAULT if of_classes else ())
        of_kind = tuple(spec for spec in METHODS.specs() if of_classes and spec.declared.of_classes)
        return replace(self, tasks=tasks, methods=self.methods or of_kind or methods_for_two())


Record = dict[str, Any]
"""One unit as plain data: see `measure`."""


def task_of(threshold: float) -> BinaryTask:
    """The task of Perez-Lebel et al. 2025, app. C.3, with this t*."""
    return BinaryTask.of_utility(((1.0, 0.0), (0.0, 1.0 / threshold - 1.0)))


def measure(unit: Unit, model: Predictions, setting: Setting) -> Record:
    """Estimates and gains of one unit at every threshold, or for every task by name, JSON-ready.

    {"file", "score", "seed", "rows", "seconds": {method: s}, "reasons": {method: why it has no gain},
    "points": [{"threshold", "estimates": {metric: [value, low, high]}, "gains": {method: gain or null}, "constants":
    [gain of always deciding 0, of always deciding 1]}]}; values are null where undefined, low and high where it is not
    among WITH_INTERVALS. Points of a task by name have "task" beside a threshold of null, and no constants.
    """
    # What methods import is not to count as the time of the first that does, and its threads can be limited.
    import sklearn.ensemble
    import sklearn.linear_model
    import sklearn.tree  # noqa: F401

    # Sums come out the same in any process, and processor time is not that of threads that wait for each other.
    with one_thread():
        rows = training_rows(model, None, unit.seed)
        fit, test = _halves(rows, unit.seed)
        if setting.tasks:
            there = (task for task in setting.tasks if task.missed is None or task.missed < len(rows.classes))
            named = {task.name: task.of(rows.classes) for task in there}
            points: list[Record] = [{"threshold": None, "task": name} for name in named]
            tasks: list[Task | ClassDecision] = list(named.values())
        else:
            points, tasks = [{"threshold": t} for t in setting.thresholds], [task_of(t) for t in setting.thresholds]
        record: Record = {
            **vars(unit),
            "rows": len(rows),
            "positives": 0.0 if rows.classes else float(rows.label.sum()),
            "seconds": {},
            "reasons": {},
            "points": points,
        }
        inputs = Inputs(fit, seed=unit.seed)
        models = _fitted(record, fit, inputs, setting.methods, tasks)
        _add_estimates(points, fit, inputs, tasks, setting)
        _add_gains(points, models, test, tasks)
    return record


def _halves(rows: Training, seed: int) -> tuple[Training, Training]:
    """The rows to fit and to test, clusters whole; the same ones whatever the order of the file."""
    rows = rows.in_order()
    rng = np.random.default_rng([seed, len(rows)])
    if rows.unit is None:
        half = rng.permutation(len(rows))
        return rows.take(half[: len(half) // 2]), rows.take(half[len(half) // 2 :])
    second = rows.folds(rng, 2) == 1
    return rows.take(~second), rows.take(second)


def _add_estimates(points: list[Record], fit: Training, inputs: Inputs, tasks: Sequence[Any], setting: Setting) -> None:
    """What the fit half alone says of each task, by metric: value, low and high."""
    of_tasks, of_all, at_any = OF_NAMED_TASKS, OF_CLASSES if fit.classes else (), inputs
    if not setting.tasks:
        # The intervals of the grouping loss, which take trees on fewer rows, are not asked for.
        regions = build_regions(fit, seed=fit.seed, loss_only=True) if fit.has_features else None
        inputs = inputs.override(regions)
        of_tasks, of_all, at_any = OF_TASKS, OF_SCORES, inputs.at(task_of(EVEN))

    def estimate(spec: MetricSpec, inputs: Inputs, u_delta: float = 1.0) -> list[float | None]:
        """Value, low and high, in units of u_delta where the metric is a utility."""
        unit = u_delta if spec.declared.bounds_in_u_delta else 1.0
        result = measure_metric(
            spec, inputs, fit.adjusted_confidence(setting.confidence) if spec.name in WITH_INTERVALS else None
        )
        return [None if each is None else each / unit for each in (result.value, *(result.interval or (None, None)))]

    shared = {spec.key: estimate(spec, at_any) for spec in of_all}
    for point, task in zip(points, tasks, strict=True):
        # A table of its own, so that what it keeps of one task is gone with the next.
        at = inputs.at(task).override(replace(fit.class_table)) if fit.classes else inputs.at(task)
        point["estimates"] = {spec.key: estimate(spec, at, task.u_delta) for spec in of_tasks} | shared


def _fitted(
    record: Record, fit: Training, inputs: Inputs, methods: Sequence[MethodSpec], tasks: Sequence[Task | ClassDecision]
) -> dict[str, list[Model]]:
    """The models of each method, one for each task; its processor time, or why it was not fitted, goes to the record.

    There is one for all tasks, unless it needs the task. Of several classes, CHOSEN is fitted too.
    """
    models: dict[str, list[Model]] = {}
    binary = [task if isinstance(task, BinaryTask) else None for task in tasks]

    def each(spec: MethodSpec) -> list[Model]:
        if reason := missing(spec, replace(fit, task=binary[0])):
            raise Undefined(reason)
        if "task" in spec.declared.needs:
            return fit_each(spec, fit, binary)
        return fit_each(spec, fit, [None]) * len(tasks)

    def chosen() -> list[Model]:
        name = inputs.get(Recalibrated).chosen
        return models.get(name) or each(METHODS.parse(name))

    fits = {spec.key: partial(each, spec) for spec in methods} | ({CHOSEN: partial(chosen)} if fit.classes else {})
    for name, fitted in fits.items():
        before = time.process_time()
        try:
            models[name] = fitted()
            record["seconds"][name] = time.process_time() - before
        except Undefined as undefined:
            record["reasons"][name] = undefined.reason
    return models


def _add_gains(
    points: list[Record], models: Mapping[str, list[Model]], test: Training, tasks: Sequence[Task | ClassDecision]
) -> None:
    """What methods, and always deciding the same, win on the test half, in units of u_delta."""
    as_is = [decisions_on(test, task) for task in tasks]

    def gain(utility: Estimate, now: Decisions, task: Task | ClassDecision) -> float:
        return (utility.value - now.utility.value) / task.u_delta

    for point, task, now in zip(points, tasks, as_is, strict=True):
        constants = (0, 1) if point["threshold"] is not None else ()
        point |= {"gains": {}, "constants": [gain(now.constant(action), now, task) for action in constants]}
    for name, of_tasks in models.items():
        applied = {}
        for point, task, now, model in zip(points, tasks, as_is, of_tasks, strict=True):
            if id(model) not in applied:
                applied[id(model)] = model(test)
            point["gains"][name] = gain(decisions_on(test, task, applied[id(model)]).utility, now, task)


NAME = "units.jsonl"
RECORD_VERSION = 2
"""The version of the records of a study."""


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
    return digest_of({"parts": parts})


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
                    # What was changed since it was written is measured again.
                    if entry.pop("sha256", None) == _sealed(entry):
                        self.records[entry["key"]] = entry["record"]
                    whole += len(line)
            # New lines follow the last whole line, not a half one.
            os.truncate(self.path, whole)

    def add(self, key: str, record: Record) -> None:
        """Write one finished unit and flush it to the disk."""
        self.records[key] = record
        # Bytes of a name that are not UTF-8 have no place in JSON; who reads a record knows the file that it is of.
        written = {name: printable(value) if name == "file" else value for name, value in record.items()}
        entry = {"key": key, "record": written}
        line = json.dumps({**entry, "sha256": _sealed(entry)}, allow_nan=False).encode() + b"\n"
        try:
            with self.path.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise DecalError(f"{self.path}: {error.strerror}", "make room, then run the same command again") from None


def _sealed(entry: Record) -> str:
    """The SHA-256 of a line without it, of which there may be many thousands."""
    return hashlib.sha256(json.dumps(entry).encode()).hexdigest()


def _entry(line: bytes) -> Record | None:
    if not line.endswith(b"\n"):
        return None
    try:
        entry = json_of(line.decode(), NAME, "")
    except (DecalError, UnicodeDecodeError):
        return None
    return entry if isinstance(entry, dict) and {"key", "record"} <= entry.keys() else None


def folder_of(path: str) -> Path:
    """The folder of a study. Errors: DecalError where it is a file, or holds other files."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise DecalError(f"{path} is a file", "name a folder for the study: -o FOLDER")
    names = sorted(item.name for item in folder.iterdir()) if folder.exists() else []
    if names and NAME not in names:
        raise DecalError(f"{path} holds files, and no study ({names[0]}, ...)", "name a new folder: -o FOLDER")
    return folder


Done = Callable[[int, int, int], None]
"""Called with the progress: units done, of how many, and how many of them were done before."""


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
    _read.cache_clear()
    units, digests, notes, setting = _units(paths, columns, setting, seeds)
    store = Store(folder)
    waiting = [(unit, key) for unit, key in units if key not in store.records]
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
    several = None
    for path in paths:
        present, absent = _scores_in(path, columns)
        if absent:
            notes.append(f"{path}: skipped {', '.join(absent)}, which it lacks")
        if absent and not present.score and not present.proba:
            continue
        data = read([path], present)
        data.need_rows("study")
        data.need_no_limit("study")
        data.need_no_time("study")
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
                few = "rows" if rows < FEWEST else "rows with label 1" if positives < 2 else "rows with label 0"
                of_them = "" if several else f", {positives:,} of them with label 1"
                notes.append(f"{path}, {model.name}: dropped, too few {few}: {many(rows, 'row')}{of_them}")
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
    names = columns_in(path) if columns.score or columns.proba else []
    score = tuple(in_lists(columns.score, names))
    given = dict.fromkeys((*score, *columns.proba))
    absent = [each for each in given if not any(each == name or fnmatchcase(name, each) for name in names)]
    score, proba = (tuple(each for each in of if each not in absent) for of in (score, columns.proba))
    return replace(columns, score=score, proba=proba), absent


def _measured(
    waiting: Sequence[tuple[Unit, str]], columns: Columns, setting: Setting, digests: dict[str, str], workers: int
) -> Iterator[tuple[str, Record]]:
    """Keys and records as they are finished."""
    work = functools.partial(_measure, columns, setting, digests)
    if workers == 1 or len(waiting) < 2:
        for unit, key in waiting:
            yield key, work(unit)
        return
    # A fresh interpreter each: threads of the reading library do not survive a fork.
    context = multiprocessing.get_context("spawn")
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(min(workers, len(waiting)), mp_context=context, initializer=_end_with_parent)
    try:
        futures = {pool.submit(work, unit): key for unit, key in waiting}
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
