"""A replay, judged: what each forecaster is worth, what is advised, and gate rules that may be asked at any time.

rule    = side op number
side    = [lower | upper] ( gain ) | gain | e_calibration | rows
gain    = gain | gain@method=NAME
op      = <= | < | >= | >

e_calibration is the e-value after the last row, or 1 over the p-value where labels come late.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from decal_cli.analysis.gate import ANSWERS, GateRow
from decal_cli.analysis.online.plan import AS_IT_IS, BASE_RATE, FROZEN
from decal_cli.analysis.online.replay import Replay, utility_of
from decal_cli.analysis.rules import OPERATORS, OVER_TIME
from decal_cli.data.times import NS_PER_DAY
from decal_cli.declarations.document import Hidden, Positive, Share, Words
from decal_cli.errors import DecalError
from decal_cli.metrics import Inputs, value_of
from decal_cli.metrics import parse as parse_metric
from decal_cli.metrics.confidence import quantile
from decal_cli.numbers import Interval, bounds
from decal_cli.sequential import OnlineSpec, parse
from decal_cli.sequential.forecasters import Guarantee
from decal_cli.tables.table import Table


class WorstKink(NamedTuple):
    """The largest V-regret over thresholds mu, summed over rows, and the threshold that attains it."""

    regret: float
    kink: float


def worst_v_regret(table: Table) -> WorstKink:
    """The largest sum, over thresholds mu, of what always or never acting wins over acting where p > mu.

    Payoffs are 1[act](y - mu), Kleinberg et al. 2023, (9)-(10). Between predictions the regret is linear in mu but for
    the base rate, where the better constant changes: the largest is at a prediction, from either side, or there.
    """
    p = table.score
    rows, positives = float(table.n.sum()), float(table.pos.sum())
    mu = np.concatenate((p, [positives / rows, 0.0, 1.0]))
    n_before, pos_before = (np.concatenate(([0.0], np.cumsum(each, dtype=float))) for each in (table.n, table.pos))
    of_sides = []
    # Just above a prediction its rows do not act; just below they do.
    for side in ("right", "left"):
        first = np.searchsorted(p, mu, side=side)
        acted = (positives - pos_before[first]) - mu * (rows - n_before[first])
        of_sides.append(np.maximum(positives - mu * rows, 0.0) - acted)
    regret = np.maximum(*of_sides)
    worst = int(regret.argmax())
    return WorstKink(float(regret[worst]), float(mu[worst]))


Direction = Literal["keep", "move-threshold", "recalibrate-online", "retrain"]
"""What may be advised."""


@dataclass(frozen=True)
class OnlineAdvice:
    """What to do now. gain, interval: per decision. since: the row after which that was first clear. threshold: to act
    from, where it is to be moved. cost_a_day: of not doing it, null where time is no date.
    """

    action: Direction
    method: str | None = None
    gain: float | None = None
    interval: Interval | None = None
    since: Positive | None = None
    threshold: Share | None = None
    cost_a_day: float | None = None


def advised(replay: Replay) -> OnlineAdvice:
    """A method is advised where its sequence is above 0 at alpha over the number of methods compared.

    The one that won most is taken. If it is the frozen recalibration, the threshold is to be moved. If the base rate,
    which looks at no score, wins as much, the model is retrained. With the action come its gain per row over the score
    as it is, its sequence, and the row after which that was first above 0.
    """
    plan = replay.plan
    if plan.baseline != AS_IT_IS or not plan.candidates:
        return OnlineAdvice("keep")
    alpha = plan.alpha / len(plan.candidates)
    keys = [key for key in replay.tallies if key in (*plan.candidates, BASE_RATE)]
    gains = {key: replay.tallies[key].gain(alpha) for key in keys}
    clear = {key: gain for key, (gain, interval) in gains.items() if bounds(interval)[0] > 0}

    def over(action: Direction, best: str, method: str | None, threshold: float | None = None) -> OnlineAdvice:
        return OnlineAdvice(action, method, *gains[best], replay.since(best), threshold)

    if BASE_RATE in clear and clear[BASE_RATE] >= max(gains[key][0] for key in plan.candidates):
        return over("retrain", BASE_RATE, None)
    winners = [key for key in plan.candidates if key in clear]
    if not winners:
        return OnlineAdvice("keep")
    best = max(winners, key=lambda key: clear[key])
    if parse(best).name == FROZEN:
        return over("move-threshold", best, best, replay.forecasters[best].acts_from(plan.task.threshold))
    return over("recalibrate-online", best, best)


LOSSES = tuple(parse_metric(name) for name in ("u_cal", "cdl", "dist_cal_lower", "dist_cal_upper"))
"""What each method's predictions are judged by, whatever the decision: fields of MethodOverTime."""
OF_GRID = {"cdl": parse_metric("cdl(levels=exact)")}
"""Metrics in place of those in LOSSES for predictions on a grid: each point is a level, as in U-calibration."""


@dataclass(frozen=True)
class MethodOverTime:
    """One forecaster. utility: per decision; gain: over the first of them, null for that, with its confidence sequence
    after the last row, null of too few clusters; since: the row after which that, at alpha over the number of methods
    compared, was above 0. In clusters, gain is the mean over those.
    worst_v_regret: per row, at the threshold worst_kink. guarantee: of a theorem, null without one.
    """

    spec: Hidden[OnlineSpec]
    method: Words
    randomised: bool
    utility: float
    gain: float | None
    interval: Interval | None
    since: Positive | None
    worst_v_regret: float
    worst_kink: Share
    guarantee: Guarantee | None
    u_cal: float
    cdl: float
    dist_cal_lower: float
    dist_cal_upper: float

    @property
    def title(self) -> str:
        """For users, with the parameters that differ from their defaults."""
        given = ", ".join(f"{name}={value}" for name, value in self.spec.given)
        return f"{self.spec.declared.title} ({given})" if given else self.spec.declared.title


@dataclass(frozen=True)
class PriorShift:
    """The share of label 1 of the warm-up and of the latest window.

    threshold: from which score to act, if that is all that changed and the score was right in the warm-up; None where
    chance may have made the difference, as it may where rows are in clusters.
    """

    before: Share
    now: Share
    threshold: Share | None


class Judged:
    """A replay of at least one row, judged.

    rows_per_day: None where time is no date. prompt: whether every label was known before the next row, informed:
    whether any was. log_e: of the e-process, or of 1 over the p-value where labels come late. has_e_value: whether
    there is evidence against the score. prior_shift: None until the warm-up is over. clusters: None where rows are
    independent.
    """

    def __init__(self, replay: Replay) -> None:
        plan = self.plan = replay.plan
        self.rows, self.positives, self.log_e, self.course = replay.rows, replay.positives, replay.log_e, replay.course
        self.first_time, self.last_time = replay.first_time, replay.last_time
        self.windows, self.clusters = tuple(replay.windows), replay.clusters
        self.prompt, self.at_all_times, self.informed = replay.prompt, replay.at_all_times, replay.informed
        self.has_e_value = replay.e_value is not None
        self.alarm = replay.alarm if self.has_e_value else None
        dated = plan.clock == "dates" and self.last_time > self.first_time
        self.rows_per_day = self.rows / ((self.last_time - self.first_time) / NS_PER_DAY) if dated else None
        accounts = replay.accounts()
        self.methods = tuple(_method(spec, replay, accounts.get(spec.key, math.inf)) for spec in plan.methods)
        self.prior_shift, self.advice = _prior_shift(replay), advised(replay)
        if self.advice.gain is not None and self.rows_per_day is not None:
            self.advice = replace(self.advice, cost_a_day=self.advice.gain * self.rows_per_day)

    @property
    def p_value(self) -> float | None:
        """The p-value, valid at any time, that the score is calibrated; None unless labels come late."""
        return math.exp(-self.log_e) if self.plan.delay.late and self.has_e_value else None

    def report(self, key: str) -> MethodOverTime:
        """The method of this name."""
        return next(each for each in self.methods if each.method == key)


def _method(spec: OnlineSpec, replay: Replay, account: float) -> MethodOverTime:
    """account: what the forecaster itself says that the distance to calibration is at most."""
    tally = replay.tallies[spec.key]
    table = tally.cells.table()
    gain, interval = (None, None) if spec.key == replay.plan.baseline else tally.gain(replay.plan.alpha)
    inputs = Inputs.of(table)
    of_grid = OF_GRID if spec.declared.function.on_grid else {}
    losses = {loss.key: value_of(of_grid.get(loss.key, loss), inputs) for loss in LOSSES}
    losses["dist_cal_upper"] = max(losses["dist_cal_lower"], min(losses["dist_cal_upper"], account))
    worst = worst_v_regret(table)
    # A theorem speaks of labels that are known before the next row.
    guarantee = replay.forecasters[spec.key].guarantee(replay.rows) if replay.prompt else None
    return MethodOverTime(
        spec,
        spec.key,
        spec.declared.randomised,
        utility_of(replay.rows, replay.positives, tally.acts, replay.plan.task),
        gain,
        interval,
        replay.since(spec.key),
        worst.regret / replay.rows,
        worst.kink,
        guarantee,
        **losses,
    )


def _prior_shift(replay: Replay) -> PriorShift | None:
    rows, positives = replay.warm
    # The latest window has none of the rows that it is compared with.
    if rows < replay.plan.warm_up or sum(each.rows for each in replay.windows[:-1]) < rows:
        return None
    latest = replay.windows[-1]
    before, now = positives / rows, latest.base_rate
    error = math.sqrt(before * (1 - before) / rows + now * (1 - now) / latest.rows)
    certain = min(before, 1 - before, now, 1 - now) <= 0
    if replay.clusters is not None or certain or abs(now - before) <= quantile(replay.plan.confidence) * error:
        return PriorShift(before, now, None)
    t = replay.plan.task.threshold
    odds = t / (1 - t) * before / (1 - before) * (1 - now) / now
    return PriorShift(before, now, odds / (1 + odds))


MEASURES = (*OVER_TIME, "rows")
"""What a rule over time may be about."""
_RULE = re.compile(
    r"(?:(?P<end>lower|upper)\s*\(\s*)?(?P<measure>[a-z_]+)\s*(?:@\s*method\s*=\s*(?P<method>[^()<>]+(?:\([^()]*\))?))?"
    r"\s*(?P<close>\))?\s*(?P<operator><=|>=|<|>)\s*(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
)
_EXAMPLE = "write for example 'e_calibration<20', 'lower(gain)<0.01' or 'upper(gain@method=online-platt)>=0'"


# The gain of a rule is what a method won over the first one, per decision, with the ends of its confidence sequence.
# Without a name it is the gain of the recalibrator whose lower end is highest, at the level that allows for looking at
# all of them.
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
    rows, name = [], replay.plan.score or replay.plan.baseline
    for rule in rules:
        value = _value(rule, replay)
        passed = None if value is None else OPERATORS[rule.operator](value, rule.number)
        why = _lacking(rule, replay) if value is None else None
        rows.append(GateRow(rule.text, name, None, value, rule.number, passed, why, ANSWERS[passed]))
    return tuple(rows)


def _lacking(rule: OnlineRule, replay: Replay) -> str:
    """Why a rule has no value."""
    if replay.plan.score is None:
        return "there is no score"
    if rule.measure == "e_calibration":
        come_apart = "rows of a cluster come apart, and no e-value holds then"
        return "the rows end before any label enters the p-value" if replay.at_all_times else come_apart
    if replay.clusters is not None and replay.plan.candidates:
        return "there are too few clusters for an interval"
    return "no recalibrator without random numbers was replayed"


def _value(rule: OnlineRule, replay: Replay) -> float | None:
    if rule.measure == "rows":
        return float(replay.rows)
    if rule.measure == "e_calibration":
        return replay.e_value
    plan = replay.plan
    if rule.method and rule.method not in replay.course.total:
        raise DecalError(
            f"rule {rule.text!r}: {rule.method} is not among the forecasters",
            f"name one of {', '.join(replay.course.total)}",
        )
    methods = (rule.method,) if rule.method else plan.candidates
    if not methods:
        return None
    gains = [replay.tallies[key].gain(plan.alpha / len(methods)) for key in methods]
    gain, ends = max(gains, key=lambda each: bounds(each[1])[0])
    if not rule.end:
        return gain
    return None if ends is None else ends[rule.end == "upper"]
