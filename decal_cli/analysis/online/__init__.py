"""Over time: rows in order, forecasters that never look ahead, and what acting on them is worth."""

from decal_cli.analysis.online.judged import (
    Judged,
    MethodOverTime,
    OnlineAdvice,
    OnlineRule,
    PriorShift,
    judge_online,
)
from decal_cli.analysis.online.plan import Delay, OnlinePlan, Period, needs_score, online_plan, unasked_period
from decal_cli.analysis.online.replay import Replay, StreamClusters, Window, predicted_columns, predicted_name
from decal_cli.analysis.online.state_file import (
    check_goes_on,
    check_same,
    is_state,
    replay_of,
    state_text,
    unknown_rows,
)

__all__ = [
    "Delay",
    "Judged",
    "MethodOverTime",
    "OnlineAdvice",
    "OnlinePlan",
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
    "needs_score",
    "online_plan",
    "predicted_columns",
    "predicted_name",
    "replay_of",
    "state_text",
    "unasked_period",
    "unknown_rows",
]
