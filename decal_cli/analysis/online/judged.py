"""V-regret: what a forecaster loses to the best constant, at each threshold of a two-action agent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.analysis.online.plan import AS_IT_IS, BASE_RATE, FROZEN, OnlinePlan
from decal_cli.analysis.online.replay import Replay
from decal_cli.analysis.online.tally import Alarm, OnlineHistory, StreamClusters, Window, utility_of
from decal_cli.data.times import NS_PER_DAY
from decal_cli.declarations.document import Share
from decal_cli.metrics import Inputs, value_of
from decal_cli.metrics import parse as parse_metric
from decal_cli.metrics.confidence import quantile
from decal_cli.numbers import Interval
from decal_cli.sequential import OnlineSpec, parse
from decal_cli.sequential.forecaster import Guarantee
from decal_cli.tables.table import Floats, Table, tabulate

if TYPE_CHECKING:
    from decal_cli.analysis.online.replay import Replay


class WorstKink(NamedTuple):
    """The largest V-regret over thresholds mu, summed over rows, and the threshold that attains it."""

    regret: float
    kink: float


def worst_v_regret(prediction: Floats, label: NDArray[np.uint8]) -> WorstKink:
    """The largest sum, over thresholds mu, of what always or never acting wins over acting where p > mu.

    Payoffs are 1[act](y - mu), Kleinberg et al. 2023, (9)-(10).
    """
    return worst_v_regret_of(tabulate(prediction, label, None))


def worst_v_regret_of(table: Table) -> WorstKink:
    """The same of predictions that are counted.

    Between predictions the regret is linear in mu but for the base rate, where the better constant changes: the largest
    is at a prediction, from either side, or there.
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
    """What to do.

    method: the forecaster to use, None to keep the score; gain, interval: what it won over acting on the score as it
    is, per row, and its sequence at alpha over the number of methods compared; since: the row after which that was
    first above 0. threshold: from which score to act, where the threshold is to be moved.
    """

    action: Direction
    method: str | None = None
    gain: float | None = None
    interval: Interval | None = None
    since: int | None = None
    threshold: float | None = None


def advised(replay: Replay) -> OnlineAdvice:
    """A method is advised where its sequence is above 0 at alpha over the number of methods compared.

    The one that won most is taken. Where it is the frozen recalibration, which is one threshold for all time, the
    threshold is to be moved. Where the base rate, which looks at no score, wins as much as that, the score is worth
    nothing any more, and the model is to be retrained.
    """
    plan = replay.plan
    if plan.baseline != AS_IT_IS or not plan.candidates:
        return OnlineAdvice("keep")
    alpha = plan.alpha / len(plan.candidates)
    gains = {key: replay.tallies[key].gain(alpha) for key in plan.candidates}
    winners = {key: gain for key, (gain, interval) in gains.items() if interval is not None and interval[0] > 0}
    if BASE_RATE in replay.tallies:
        mean, interval = replay.tallies[BASE_RATE].gain(alpha)
        clear = interval is not None and interval[0] > 0
        if clear and mean >= max(gain for gain, _ in gains.values()):
            return OnlineAdvice("retrain", None, mean, interval, replay.since(BASE_RATE))
    if not winners:
        return OnlineAdvice("keep")
    best = max(winners, key=lambda key: winners[key])
    gain, interval = gains[best]
    since = replay.since(best)
    if parse(best).name == FROZEN:
        threshold = replay.forecasters[best].acts_from(plan.task.threshold)
        return OnlineAdvice("move-threshold", best, gain, interval, since, threshold)
    return OnlineAdvice("recalibrate-online", best, gain, interval, since)


LOSSES = tuple(parse_metric(name) for name in ("u_cal", "cdl", "dist_cal_lower", "dist_cal_upper"))
"""What each method's predictions are judged by, whatever the decision."""
OF_GRID = {"cdl": parse_metric("cdl(levels=exact)")}
"""Of predictions that are points of a grid: each point is a level, as it is to U-calibration."""


@dataclass(frozen=True)
class MethodReport:
    """One method over all rows.

    utility: per row. gain: over the first method, None for that: per row, or where rows are in clusters the mean over
    those; interval: its confidence sequence after the last row, None of too few clusters; since: the row after which
    that was first above 0, at alpha over the number of methods compared. worst: V-regret, a sum over rows; guarantee:
    what a theorem says, None without one, and where labels were known later than it says. losses: by the names of
    LOSSES.
    """

    spec: OnlineSpec
    utility: float
    gain: float | None
    interval: Interval | None
    since: int | None
    worst: WorstKink
    guarantee: Guarantee | None
    losses: dict[str, float]

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


@dataclass(frozen=True, eq=False)
class Judged:
    """A replay, judged.

    rows_per_day: None where time is no date. prompt: whether every label was known before the next row. log_e: of the
    e-process, or of 1 over the p-value where labels come late. prior_shift: None until the warm-up is over. clusters:
    None where rows are independent.
    """

    plan: OnlinePlan
    rows: int
    positives: int
    first_time: Any
    last_time: Any
    rows_per_day: float | None
    methods: tuple[MethodReport, ...]
    windows: tuple[Window, ...]
    course: OnlineHistory
    log_e: float
    alarm: Alarm | None
    prior_shift: PriorShift | None
    advice: OnlineAdvice
    prompt: bool = True
    clusters: StreamClusters | None = None

    @property
    def at_all_times(self) -> bool:
        """Whether intervals and the e-value hold after every row at once, or every cluster."""
        return self.clusters is None or self.clusters.apart is None

    @property
    def p_value(self) -> float | None:
        """Of the hypothesis that the score is calibrated, whenever one looks; None unless labels come late."""
        return math.exp(-self.log_e) if self.plan.delay.late and self.has_e_value else None

    @property
    def has_e_value(self) -> bool:
        """Whether there is evidence against the score."""
        return self.plan.score is not None and self.at_all_times

    def report(self, key: str) -> MethodReport:
        """The method of this name."""
        return next(each for each in self.methods if each.spec.key == key)


def judged(replay: Replay) -> Judged:
    """Judge what was replayed so far, which is at least one row."""
    plan = replay.plan
    accounts = replay.accounts()
    methods = tuple(_method(spec, replay, accounts.get(spec.key, math.inf)) for spec in plan.methods)
    days = None
    if plan.clock == "dates" and replay.last_time > replay.first_time:
        days = (replay.last_time - replay.first_time) / NS_PER_DAY
    return Judged(
        plan=plan,
        rows=replay.rows,
        positives=replay.positives,
        first_time=replay.first_time,
        last_time=replay.last_time,
        rows_per_day=None if days is None else replay.rows / days,
        methods=methods,
        windows=tuple(replay.windows),
        course=replay.course,
        log_e=replay.log_e,
        alarm=replay.alarm if replay.e_value is not None else None,
        prior_shift=_prior_shift(replay),
        advice=advised(replay),
        prompt=replay.prompt,
        clusters=replay.clusters,
    )


def _method(spec: OnlineSpec, replay: Replay, account: float) -> MethodReport:
    """account: what the forecaster itself says that the distance to calibration is at most."""
    tally = replay.tallies[spec.key]
    table = tally.cells.table()
    gain, interval = (None, None) if spec.key == replay.plan.baseline else tally.gain(replay.plan.alpha)
    inputs = Inputs.of(table)
    measured = {loss.key: (OF_GRID.get(loss.key, loss) if _on_grid(spec) else loss) for loss in LOSSES}
    losses = {key: value_of(loss, inputs) for key, loss in measured.items()}
    losses["dist_cal_upper"] = max(losses["dist_cal_lower"], min(losses["dist_cal_upper"], account))
    return MethodReport(
        spec=spec,
        utility=utility_of(replay.rows, replay.positives, tally.acts, replay.plan.task),
        gain=gain,
        interval=interval,
        since=replay.since(spec.key),
        worst=worst_v_regret_of(table),
        guarantee=replay.forecasters[spec.key].guarantee(replay.rows) if replay.prompt else None,
        losses=losses,
    )


def _on_grid(spec: OnlineSpec) -> bool:
    return spec.declared.function.on_grid


def _prior_shift(replay: Replay) -> PriorShift | None:
    rows, positives = replay.warm
    if rows < replay.plan.warm_up or not replay.windows:
        return None
    latest = replay.windows[-1]
    before, now = positives / rows, latest.base_rate
    error = math.sqrt(before * (1 - before) / rows + now * (1 - now) / latest.rows)
    if replay.clusters is not None or not (
        0 < before < 1 and 0 < now < 1 and abs(now - before) > quantile(replay.plan.confidence) * error
    ):
        return PriorShift(before, now, None)
    t = replay.plan.task.threshold
    odds = t / (1 - t) * before / (1 - before) * (1 - now) / now
    return PriorShift(before, now, odds / (1 + odds))
