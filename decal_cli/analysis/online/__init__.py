"""Over time: rows in order, forecasters that never look ahead, and what acting on them is worth."""

from decal_cli.analysis.online.judged import Direction, Judged, MethodReport, OnlineRule, PriorShift, judge_online
from decal_cli.analysis.online.plan import Delay, Period, online_plan
from decal_cli.analysis.online.replay import Replay, StreamClusters, Window, predicted_columns, predicted_name
from decal_cli.analysis.online.state_file import (
    OnlineRequest,
    check_goes_on,
    check_same,
    is_state,
    replay_of,
    state_text,
    unknown_rows,
)

__all__ = [
    "Delay",
    "Direction",
    "Judged",
    "MethodReport",
    "OnlineRequest",
    "OnlineRule",
    "Period",
    "PriorShift",
    "Replay",
    "StreamClusters",
    "Window",
    "check_goes_on",
    "check_same",
    "is_state",
    "judge_online",
    "online_plan",
    "predicted_columns",
    "predicted_name",
    "replay_of",
    "state_text",
    "unknown_rows",
]
