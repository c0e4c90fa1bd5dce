"""Gate rules over time: alarms that may be looked at after every row.

rule    = side op number
side    = [lower | upper] ( gain ) | gain | e_calibration | rows
gain    = gain | gain@method=NAME
op      = <= | < | >= | >

e_calibration is the e-value after the last row, or 1 over the p-value where labels come late. gain is what a method won
over the first one, per decision, with the ends of its confidence sequence; without a name it is that of the
recalibrator whose lower end is highest, at the level that allows for looking at all of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from decal_cli.analysis.gate import ANSWERS, OPERATORS, OVER_TIME, GateRow
from decal_cli.analysis.online.replay import Replay
from decal_cli.errors import DecalError

MEASURES = (*OVER_TIME, "rows")
"""What a rule over time may be about."""
_RULE = re.compile(
    r"(?:(?P<end>lower|upper)\s*\(\s*)?(?P<measure>[a-z_]+)\s*(?:@\s*method\s*=\s*(?P<method>[^()<>]+(?:\([^()]*\))?))?"
    r"\s*(?P<close>\))?\s*(?P<operator><=|>=|<|>)\s*(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
)
_EXAMPLE = "write for example 'e_calibration<20', 'lower(gain)<0.01' or 'upper(gain@method=online-platt)>=0'"


@dataclass(frozen=True)
class OnlineRule:
    """One rule. end: 'lower', 'upper', or '' for the value. method: whose gain; '' for the best recalibrator's."""

    text: str
    end: str
    measure: str
    method: str
    operator: str
    number: float

    @classmethod
    def parse(cls, text: str) -> OnlineRule:
        """A rule as the user writes it. Errors: DecalError."""
        match = _RULE.fullmatch(text.strip())
        if match is None or bool(match["end"]) != bool(match["close"]):
            raise DecalError(f"rule {text!r} does not parse", _EXAMPLE)
        measure = match["measure"]
        if measure not in MEASURES:
            raise DecalError(f"rule {text!r}: over time there is no {measure}, only {', '.join(MEASURES)}", _EXAMPLE)
        if measure != "gain" and (match["end"] or match["method"]):
            raise DecalError(f"rule {text!r}: {measure} goes without {match['end'] or '@method'}", _EXAMPLE)
        number = float(match["number"])
        if not math.isfinite(number):
            raise DecalError(f"rule {text!r}: the bound is infinite", _EXAMPLE)
        method = (match["method"] or "").strip()
        return cls(text.strip(), match["end"] or "", measure, method, match["operator"], number)


def judge_online(rules: Sequence[OnlineRule], replay: Replay) -> tuple[GateRow, ...]:
    """What comes of every rule. Errors: DecalError, where it names a method that is not replayed."""
    return tuple(_judged(rule, replay) for rule in rules)


def _judged(rule: OnlineRule, replay: Replay) -> GateRow:
    name = replay.plan.score or replay.plan.baseline
    value = _value(rule, replay)
    if value is None:
        return GateRow(rule.text, name, None, None, rule.number, None, _lacking(rule, replay))
    passed = OPERATORS[rule.operator](value, rule.number)
    return GateRow(rule.text, name, None, value, rule.number, passed, answer=ANSWERS[passed])


def _lacking(rule: OnlineRule, replay: Replay) -> str:
    """Why a rule has no value."""
    if replay.plan.score is None:
        return "there is no score"
    if rule.measure == "e_calibration" and replay.clusters is not None:
        return "rows of a cluster come apart, and no e-value holds then"
    if replay.clusters is not None and replay.plan.candidates:
        return "there are too few clusters for an interval"
    return "no recalibrator was replayed"


def _value(rule: OnlineRule, replay: Replay) -> float | None:
    if rule.measure == "rows":
        return float(replay.rows)
    if rule.measure == "e_calibration":
        return replay.e_value
    plan = replay.plan
    if rule.method:
        if rule.method not in replay.course.total:
            raise DecalError(
                f"rule {rule.text!r}: {rule.method} is not among the forecasters",
                f"name one of {', '.join(replay.course.total)}",
            )
        gain, ends = replay.tallies[rule.method].gain(plan.alpha)
    elif not plan.candidates:
        return None
    else:
        alpha = plan.alpha / len(plan.candidates)
        gains = [replay.tallies[key].gain(alpha) for key in plan.candidates]
        gain, ends = max(gains, key=lambda each: -math.inf if each[1] is None else each[1][0])
    if not rule.end:
        return gain
    return None if ends is None else ends[rule.end == "upper"]
