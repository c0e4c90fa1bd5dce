"""A replay as JSON has it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from decal_cli.analysis.evaluate import Evaluation
from decal_cli.analysis.gate import GateRow
from decal_cli.analysis.online import Direction, Judged, MethodReport, StreamClusters, Window
from decal_cli.analysis.online.judged import LOSSES
from decal_cli.data import shown_time
from decal_cli.render.results.gates import GateData, gate_data
from decal_cli.render.results.source import Provenance, pair, provenance
from decal_cli.render.schema import Count, Ends, Inside, Limit, Positive, Share, Size, Words


class ReplayedPlanData(TypedDict):
    """How rows were replayed. delay, every: as on the command line; horizon: null where it is not known."""

    time: str | None
    delay: Words
    every: Words
    warm_up: Positive
    horizon: Positive | None
    confidence: Inside
    seed: Count


class GuaranteeData(TypedDict):
    """What a theorem says. metric: v_regret, cdl or dist_cal; bound: per row; holds: of what it is the bound."""

    metric: Literal["v_regret", "cdl", "dist_cal"]
    bound: Size
    holds: Words


class ClustersOverTimeData(TypedDict):
    """The clusters of the rows. apart_at: the row at which one first came back after others: intervals are then of
    one look, and there is no e-value; null where the rows of each follow each other.
    """

    clusters: Positive
    apart_at: Positive | None


class MethodOverTimeData(TypedDict):
    """One forecaster. utility: per decision; gain: over the first of them, null for that, with its confidence sequence
    after the last row, null of too few clusters; since: the row after which that, at alpha over the number of methods
    compared, was above 0. In clusters, gain is the mean over those.
    worst_v_regret: per row, at the threshold worst_kink. guarantee: of a theorem, null without one.
    """

    method: Words
    randomised: bool
    utility: float
    gain: float | None
    interval: Ends | None
    since: Positive | None
    worst_v_regret: float
    worst_kink: Share
    guarantee: GuaranteeData | None
    u_cal: float
    cdl: float
    dist_cal_lower: float
    dist_cal_upper: float


class WindowData(TypedDict):
    """One window: utilities per decision by method, and the decimal logarithm of the e-process after its last row (of 1
    over the p-value where labels come late); null where rows of a cluster come apart.
    """

    window: Words
    first_row: Positive
    first_time: str
    rows: Positive
    base_rate: Share
    mean_score: Share
    utility: dict[str, float]
    log10_e: float | None


class AlarmData(TypedDict):
    """The row after which the e-process, or 1 over the p-value, reached 1/alpha, and the row where what it found likely
    began.
    """

    row: Positive
    time: str
    likely_since_row: Positive
    likely_since_time: str


class PriorShiftData(TypedDict):
    """The share of label 1 in the warm-up and in the latest window. threshold: from which score to act, if that is all
    that changed; null where chance may have made the difference.
    """

    before: Share
    now: Share
    threshold: Share | None


class OnlineAdviceData(TypedDict):
    """What to do now. cost_a_day: of not doing it, null where time is no date."""

    action: Direction
    method: str | None
    gain: float | None
    interval: Ends | None
    since: Positive | None
    threshold: Share | None
    cost_a_day: float | None


class ReplayedData(Provenance):
    """What `decal online` prints. rows, positives: of all rows so far whose labels are known. log10_e: of the e-process
    (of 1 over p_value where labels come late). p_value: that the score is calibrated, whenever one looks; null where
    there is an e-value.
    """

    rows: Positive
    positives: Count
    first_time: str
    last_time: str
    replay: ReplayedPlanData
    methods: Annotated[list[MethodOverTimeData], Limit(minItems=1)]
    windows: Annotated[list[WindowData], Limit(minItems=1)]
    clusters: NotRequired[ClustersOverTimeData]
    log10_e: float | None
    p_value: Share | None
    alarm: AlarmData | None
    prior_shift: PriorShiftData | None
    advice: OnlineAdviceData
    gates: list[GateData]


def replayed_data(judged: Judged, evaluation: Evaluation, gates: Sequence[GateRow]) -> dict[str, Any]:
    """ReplayedData."""
    plan = judged.plan
    return {
        **provenance(evaluation),
        "intervals": None,
        "rows": judged.rows,
        "positives": judged.positives,
        "first_time": shown(judged, judged.first_time),
        "last_time": shown(judged, judged.last_time),
        "replay": {
            "time": evaluation.columns.get("time"),
            "delay": plan.delay.text,
            "every": plan.every.text,
            "warm_up": plan.warm_up,
            "horizon": plan.horizon,
            "confidence": plan.confidence,
            "seed": plan.seed,
        },
        "methods": [_method_data(judged, each) for each in judged.methods],
        "windows": [window_data(judged, each) for each in judged.windows],
        **({} if judged.clusters is None else {"clusters": _clusters_data(judged.clusters)}),
        "log10_e": _log10(judged, judged.log_e),
        "p_value": judged.p_value,
        "alarm": _alarm_data(judged),
        "prior_shift": None if judged.prior_shift is None else vars(judged.prior_shift),
        "advice": _advice_data(judged),
        "gates": [gate_data(row) for row in gates],
    }


def shown(judged: Judged, time: Any) -> str:
    """A time in words."""
    return shown_time(time, judged.plan.clock)


def _method_data(judged: Judged, each: MethodReport) -> dict[str, Any]:
    return {
        "method": each.spec.key,
        "randomised": each.spec.declared.randomised,
        "utility": each.utility,
        "gain": each.gain,
        "interval": pair(each.interval),
        "since": each.since,
        "worst_v_regret": each.worst.regret / judged.rows,
        "worst_kink": each.worst.kink,
        "guarantee": None if each.guarantee is None else each.guarantee._asdict(),
        **{loss.key: each.losses[loss.key] for loss in LOSSES},
    }


def window_data(judged: Judged, window: Window) -> dict[str, Any]:
    """One window as JSON has it."""
    plan = judged.plan
    return {
        "window": plan.every.name(window.place),
        "first_row": window.row + 1,
        "first_time": shown(judged, window.time),
        "rows": window.rows,
        "base_rate": window.base_rate,
        "mean_score": window.mean_score,
        "utility": {spec.key: window.utility(spec.key, plan.task) for spec in plan.methods},
        "log10_e": _log10(judged, window.log_e),
    }


def _log10(judged: Judged, log_e: float) -> float | None:
    return log_e / math.log(10) if judged.at_all_times else None


def _clusters_data(clusters: StreamClusters) -> ClustersOverTimeData:
    return {"clusters": len(clusters.size), "apart_at": None if clusters.apart is None else clusters.apart.row}


def _alarm_data(judged: Judged) -> dict[str, Any] | None:
    alarm = judged.alarm
    if alarm is None:
        return None
    return {
        "row": alarm.row,
        "time": shown(judged, alarm.time),
        "likely_since_row": alarm.start,
        "likely_since_time": shown(judged, alarm.start_time),
    }


def _advice_data(judged: Judged) -> dict[str, Any]:
    advice = judged.advice
    a_day = None if advice.gain is None or judged.rows_per_day is None else advice.gain * judged.rows_per_day
    return {
        "action": advice.action,
        "method": advice.method,
        "gain": advice.gain,
        "interval": pair(advice.interval),
        "since": advice.since,
        "threshold": advice.threshold,
        "cost_a_day": a_day,
    }
