"""The replay: every method predicts every row from the labels that were known, and all of it is counted."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.analysis.online.plan import AS_IT_IS, OnlinePlan
from decal_cli.analysis.online.tally import (
    MAX_LATEST,
    MAX_POINTS,
    Alarm,
    ClusterTally,
    Latest,
    OnlineHistory,
    StreamClusters,
    Tally,
    WaitingRows,
    Window,
    add_to_windows,
    check_windows,
    digests_of,
)
from decal_cli.data import Stream
from decal_cli.data.times import MAX_NS, MAX_NUMBER
from decal_cli.data.words import quote
from decal_cli.documents import consistent
from decal_cli.errors import DecalError
from decal_cli.limits import MAX_ROWS_OVER_TIME
from decal_cli.sequential import Forecaster, forecaster_of
from decal_cli.sequential.alarm import MAX_LOG_E, CalibrationAlarm, ClusterAlarm, DelayedAlarm, first_alarm
from decal_cli.sequential.differences import Runs
from decal_cli.sequential.forecaster import Inside
from decal_cli.sequential.resumable import Resumable
from decal_cli.tables.table import Floats, Ints

BLOCK_ROWS = 1 << 16
"""Rows that are replayed at once: memory does not grow with the stream."""
Predictions = dict[str, Floats]
EProcess = CalibrationAlarm | ClusterAlarm | DelayedAlarm


class Replay(Resumable):
    """Rows so far. It goes on with further rows, or from its state, and ends the same however the stream is cut.

    prompt: whether every label was known before the next row. clusters: None where rows are independent. files: digests
    of the files that it took, which are no part of its state.
    """

    clusters: StreamClusters | None
    rows: int
    positives: int
    prompt: bool
    first_time: Any
    last_time: Any
    warm: list[int]
    log_e: float
    alarm: Alarm | None
    start_times: dict[int, Any]
    held: WaitingRows
    forecasters: dict[str, Forecaster]
    tallies: dict[str, Tally]
    latest: Latest
    e_process: EProcess
    windows: list[Window]
    course: OnlineHistory

    def __init__(self, plan: OnlinePlan) -> None:
        self.plan = plan
        self.forecasters = self._fresh()
        dtype: Any = np.int64 if plan.clock in ("dates", "rows") else np.float64
        times = np.empty(0, dtype), np.empty(0, dtype)
        self.held = WaitingRows(np.empty(0), np.empty(0, np.uint8), *times, np.empty(0, object))
        self.rows = self.positives = 0
        self.prompt = True
        self.first_time = self.last_time = None
        self.warm = [0, 0]
        keys = [spec.key for spec in plan.methods]
        alpha = plan.alpha / max(len(plan.candidates), 1)
        self.clusters = clusters = None if plan.cluster is None else StreamClusters()
        self.tallies = {
            key: Tally(plan.task, alpha) if clusters is None else ClusterTally(plan.task, alpha, clusters)
            for key in keys
        }
        self.windows, self.course = [], OnlineHistory(keys[1:])
        self.log_e = 0.0
        kind = DelayedAlarm if plan.delay.late else ClusterAlarm if plan.cluster else CalibrationAlarm
        self.e_process = kind()
        self.alarm, self.start_times = None, {}
        self.latest = Latest(dtype)
        self.files: tuple[str, ...] = ()

    def _fresh(self) -> dict[str, Forecaster]:
        plan, grouped = self.plan, self.plan.group is not None
        return {
            spec.key: forecaster_of(spec, plan.seed, plan.horizon, groups=grouped and spec.key != AS_IT_IS)
            for spec in plan.methods
        }

    def advance(self, stream: Stream) -> Predictions:
        """Predict and learn the rows whose labels are known. The predictions of every method, shape (labelled,)."""
        pieces = []
        for start in range(0, stream.labelled, BLOCK_ROWS):
            part = slice(start, min(start + BLOCK_ROWS, stream.labelled))
            rows, cluster = self._part(stream, part), None if stream.cluster is None else stream.cluster[part]
            before = len(self.held.label)
            predictions, known = self._predicted(rows, self.forecasters, before + len(rows.label), cluster)
            self.prompt = self.prompt and bool((known == before + np.arange(len(known))).all())
            self._count(rows, predictions, known + self.rows - before, cluster)
            self.held = self.held.then(rows).rest(int(known[-1]))
            pieces.append(predictions)
        return {key: np.concatenate([np.empty(0), *(piece[key] for piece in pieces)]) for key in self.forecasters}

    def close(self) -> None:
        """No rows follow: the latest cluster is over. Errors: DecalError, where it is the only one."""
        if self.clusters is None or self.clusters.open is None:
            return
        if len(self.clusters.size) < 2:
            raise DecalError(
                f"column {quote(self.plan.cluster)}: the cluster of every row is {quote(*self.clusters.numbers)}",
                "name the column of what was sampled independently, such as the patient",
            )
        before, size = self.e_process, self.clusters.close()
        for tally in self.tallies.values():
            assert isinstance(tally, ClusterTally)  # as the rows are in clusters
            tally.close(size, self.rows)
        if isinstance(before, ClusterAlarm) and self.plan.score is not None:
            self.log_e = before.close(size)
            if self.alarm is None and self.log_e >= -np.log(self.plan.alpha):
                self._raise(before, self.rows, self.last_time)
        self.windows[-1].log_e = self.log_e

    @property
    def at_all_times(self) -> bool:
        """Whether intervals and the e-value hold after every row at once, or every cluster."""
        return self.clusters is None or self.clusters.apart is None

    @property
    def e_value(self) -> float | None:
        """The e-value after the last row, or 1 over the p-value where labels come late.

        None without a score, and where rows of a cluster come apart.
        """
        return math.exp(self.log_e) if self.plan.score is not None and self.at_all_times else None

    def since(self, method: str) -> int | None:
        """The row after which a method's sequence was first above 0; None where there is no such sequence."""
        return self.tallies[method].since if self.at_all_times else None

    def accounts(self) -> dict[str, float]:
        """How far from calibration all rows are at most, per row, by the account of each forecaster that keeps one."""
        accounts = {}
        for key, forecaster in self.forecasters.items():
            if forecaster.account() is not None:
                informed: Any = copy.deepcopy(forecaster)
                group = [self.held.group.tolist()] if isinstance(informed, Inside) else []
                for row in zip(self.held.score.tolist(), self.held.label.tolist(), *group, strict=True):
                    informed.learn_one(*row)
                accounts[key] = informed.account() / self.rows
        return accounts

    def ahead(self, stream: Stream) -> Predictions:
        """The predictions of the rows of a stream whose labels are not known yet; nothing is learned or counted."""
        forecasters = self._fresh()
        for key, forecaster in forecasters.items():
            forecaster.restore(self.forecasters[key].state())
        part = slice(stream.labelled, len(stream))
        cluster = None if stream.cluster is None else stream.cluster[part]
        return self._predicted(self._part(stream, part), forecasters, len(self.held.label), cluster)[0]

    def _part(self, stream: Stream, part: slice) -> WaitingRows:
        """Some rows of a stream."""
        count = part.stop - part.start
        score = np.zeros(count) if stream.score is None else stream.score[part].astype(np.float64)
        time = self.rows + np.arange(count) if stream.clock == "rows" else stream.time[part]
        arrival = time if stream.arrival is None else stream.arrival[part]
        group = np.full(count, "") if stream.group is None else stream.group[part]
        return WaitingRows(score, stream.label[part], time, arrival, group.astype(object))

    def _predicted(
        self, rows: WaitingRows, forecasters: Mapping[str, Forecaster], most: int, cluster: NDArray[Any] | None
    ) -> tuple[Predictions, Ints]:
        """What each predicts, from at most so many of the labels that are held; and from how many, row by row.

        Labels of a cluster are known when it is over: a row says nothing of others that are not independent of it.
        """
        both = self.held.then(rows)
        before = len(self.held.label)
        known = np.minimum(self.plan.delay.known(both.time, both.arrival, self.plan.clock)[before:], most)
        if self.clusters is not None and cluster is not None:
            runs = self.clusters.runs_of(cluster, self.rows)
            known = np.minimum(known, runs.first[runs.of_row] - (self.rows - before))
        predictions = {}
        for key, each in forecasters.items():
            group = [both.group.tolist()] if isinstance(each, Inside) else []
            predictions[key] = each.replay(both.score, both.label, known, *group)
        return predictions, known

    def _count(self, rows: WaitingRows, predictions: Predictions, known: Ints, cluster: NDArray[Any] | None) -> None:
        task, plan, label = self.plan.task, self.plan, rows.label
        within = None if self.clusters is None or cluster is None else self.clusters.advance(cluster, self.rows)
        acts = {
            key: each >= (task.decision_threshold if key == AS_IT_IS else task.threshold)
            for key, each in predictions.items()
        }
        first = plan.baseline
        sums = {
            key: self.tallies[key].advance(each, acts[key], acts[first], label, within)
            for key, each in predictions.items()
        }
        log_e = self._bet(predictions[first], rows, known, None if within is None else within.runs)
        places = plan.every.places(rows.time, self.rows)
        add_to_windows(self.windows, places, self.rows, rows.time, predictions[first], label, acts, log_e)
        del sums[first]
        self.course.advance(self.rows + 1, rows.time, log_e, sums)
        self._remember(rows, cluster)
        warm = label[: max(plan.warm_up - self.rows, 0)]
        self.warm = [self.warm[0] + len(warm), self.warm[1] + int(warm.sum())]
        self.rows, self.positives = self.rows + len(label), self.positives + int(label.sum())
        self.log_e = float(log_e[-1])
        self.first_time = rows.time[0].item() if self.first_time is None else self.first_time
        self.last_time = rows.time[-1].item()

    def _remember(self, rows: WaitingRows, cluster: NDArray[Any] | None) -> None:
        """What the latest rows are, so that they are known when they come again."""
        last = slice(-MAX_LATEST, None)
        group = None if self.plan.group is None else rows.group[last]
        digest = digests_of(rows.score[last], rows.label[last], group, None if cluster is None else cluster[last])
        self.latest.then(np.zeros_like(rows.time[last]) if self.plan.clock == "rows" else rows.time[last], digest)

    def _bet(self, score: Floats, rows: WaitingRows, known: Ints, runs: Runs | None) -> Floats:
        """log of the e-process after each of the rows, up to the alarm first, where it is raised there.

        Without a score there is nothing to bet against: the share of label 1 so far is nobody's claim.
        """
        if self.plan.score is None:
            return np.zeros(len(score))
        before = copy.deepcopy(self.e_process)
        log_e = _advanced(self.e_process, score, rows.label, known, runs)
        at = first_alarm(log_e, self.plan.alpha) if self.alarm is None else None
        if at is not None:
            seen = slice(at + 1)
            _advanced(before, score[seen], rows.label[seen], known[seen], None if runs is None else runs.up_to(at + 1))
            self._remember_starts(before, rows)
            self._raise(before, self.rows + at + 1, rows.time[at].item())
        self._remember_starts(self.e_process, rows)
        return log_e

    def _raise(self, e_process: EProcess, row: int, time: Any) -> None:
        """The alarm, after this row, from 1."""
        start = e_process.likely_start()
        self.alarm = Alarm(row, time, start + 1, self.start_times[start])

    def _remember_starts(self, e_process: EProcess, rows: WaitingRows) -> None:
        """The times of the rows that an alarm may name as its start."""
        leaders = e_process.rows_of_starts()
        here = {
            row: rows.time[row - self.rows].item() for row in leaders if self.rows <= row < self.rows + len(rows.time)
        }
        self.start_times = {row: time for row, time in (self.start_times | here).items() if row in leaders}

    def state(self) -> dict[str, Any]:
        """All of it, as JSON; the plan is not part of it."""
        state = super().state() | {"start_times": [[row, self.start_times[row]] for row in sorted(self.start_times)]}
        return {name: each for name, each in state.items() if each is not None or name != "clusters"}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there. Errors: KeyError, IndexError, TypeError or ValueError, where it is no state."""
        super().restore({"clusters": None, **state})

    def _are_times(self, *times: Any) -> bool:
        """Whether a state may hold these times."""
        kind, most = (float, MAX_NUMBER) if self.plan.clock == "numbers" else (int, MAX_NS)
        return all(type(each) is kind and abs(each) <= most for each in times)

    def _check(self) -> None:
        """Raise a ValueError where the parts of a state contradict each other."""
        held, scored = self.held, self.plan.score is not None
        times = [self.first_time, self.last_time, *self.start_times.values(), *self.course.time]
        times += [] if self.alarm is None else [self.alarm.time, self.alarm.start_time]
        consistent(self._are_times(*times, *(window.time for window in self.windows)))
        if len({len(each) for each in vars(held).values()}) != 1:
            raise ValueError("a row that is held lacks a value")
        check_windows(self.windows, self.tallies.keys(), self.rows)
        starts = self.e_process.rows_of_starts() if scored else set()
        consistent(
            0 < self.rows <= MAX_ROWS_OVER_TIME,
            0 <= self.positives <= self.rows,
            self.first_time <= self.last_time,
            len(self.warm) == 2 and self.warm[0] == min(self.rows, self.plan.warm_up),
            0 <= self.warm[-1] <= min(self.warm[0], self.positives),
            -math.log(self.rows + 2) - 1e-6 <= self.log_e <= MAX_LOG_E if scored else self.log_e == 0,
            all(tally.difference.rows == self.rows for tally in self.tallies.values()),
            all(int(tally.cells.positives.sum()) == self.positives for tally in self.tallies.values()),
            self.clusters is None or sum(self.clusters.size) == self.rows,
            isinstance(self.e_process, ClusterAlarm) or self.e_process.rows == self.rows * scored,
            starts == self.start_times.keys() and all(0 <= row < self.rows for row in starts),
            self.alarm is None or (scored and 0 < self.alarm.start <= self.alarm.row <= self.rows),
            len(held.label) <= self.rows and (held.label <= 1).all(),
            ((held.score >= 0) & (held.score <= 1)).all() and (np.diff(held.time) >= 0).all(),
            not len(held.time) or held.time[-1] <= self.last_time,
            all(isinstance(each, str) for each in held.group),
            len(self.latest.time) == min(self.rows, MAX_LATEST),
            len(self.course.row) == self.rows // self.course.stride <= MAX_POINTS,
            (np.diff(self.latest.time) >= 0).all(),
            all(each.parts for each in self.forecasters.values() if isinstance(each, Inside)),
            all(each.awaits(held.score, held.group) for each in self.forecasters.values()),
        )
        self._check_windows()

    def _check_windows(self) -> None:
        """The same of windows, decisions and the course: what is counted twice is counted alike."""
        plan, task = self.plan, self.plan.task
        row = np.array(self.course.row) + 1
        consistent((np.abs(self.course.log_e) <= MAX_LOG_E).all())
        for totals, squares in zip(self.course.total.values(), self.course.squares.values(), strict=True):
            consistent((np.abs(totals) <= task.u_delta * row).all(), (np.array(squares) <= 4 * row).all())
            consistent((np.array(squares) >= 0).all())
        first = self.tallies[plan.baseline].acts
        for window in self.windows:
            at = np.array([window.time])
            least = -math.log(window.row + window.rows + 2) - 1e-6 if plan.score is not None else 0.0
            consistent(window.place == plan.every.places(at, window.row)[0], least <= window.log_e <= MAX_LOG_E)
        consistent(self.windows[-1].log_e == self.log_e)
        for key, tally in self.tallies.items():
            on_1, on_0 = (mine - theirs for mine, theirs in zip(tally.acts, first, strict=True))
            total = task.u_delta * (on_1 * (1 - task.threshold) - on_0 * task.threshold)
            consistent(abs(tally.difference.total - total) <= 1e-6 * task.u_delta * self.rows)
            if self.windows[0].row == 0:
                of_windows = np.sum([window.acts[key] for window in self.windows], axis=0)
                consistent(of_windows.tolist() == tally.acts)


def _advanced(e_process: EProcess, score: Floats, label: NDArray[np.uint8], known: Ints, runs: Runs | None) -> Floats:
    """log of the e-process after each of the next rows; where labels come late, log of 1 over the p-value."""
    if isinstance(e_process, DelayedAlarm):
        return e_process.advance(score, label, known)
    if isinstance(e_process, ClusterAlarm):
        assert runs is not None  # rows are in clusters
        return e_process.advance(score, label, runs)
    return e_process.advance(score, label)


def predicted_columns(
    stream: Stream, plan: OnlinePlan, predictions: Predictions, ahead: Predictions
) -> dict[str, NDArray[Any]]:
    """Columns of the rows of a stream: number, time, score, label, masked where it is not known, and predictions."""
    numbers = np.arange(len(stream)) if stream.row_numbers is None else stream.row_numbers
    columns: dict[str, NDArray[Any]] = {"row": numbers + 1}
    if stream.clock != "rows":
        columns[str(stream.columns["time"])] = stream.time.astype("M8[ns]") if stream.clock == "dates" else stream.time
    if plan.score is not None and stream.score is not None:
        columns[plan.score] = stream.score
    if plan.group is not None and stream.group is not None:
        columns[plan.group] = stream.group
    unknown = np.arange(len(stream)) >= stream.labelled
    columns[str(stream.columns["label"])] = np.ma.masked_array(stream.label, unknown)
    for spec in plan.methods:
        if spec.key != AS_IT_IS:
            columns[predicted_name(plan, spec.key)] = np.concatenate([predictions[spec.key], ahead[spec.key]])
    return columns


def predicted_name(plan: OnlinePlan, method: str) -> str:
    """What the column of a method's predictions is called."""
    return f"{plan.score or 'p'}_{method.replace('-', '_')}"
