"""What the flowchart looks at: gains with their intervals, costs, what is at stake and what is too small to matter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Literal

from decal_cli.declarations.defaults import CONFIDENCE
from decal_cli.declarations.document import Hidden
from decal_cli.metrics.confidence import quantile
from decal_cli.numbers import Say, per_thousand

Interval = tuple[float, float]
Answer = Literal["yes", "no", "unknown"]
Action = Literal["done", "recalibrate", "post-train", "do-not-post-train", "find-better-features", "cannot-tell"]

RECALIBRATION, BEYOND, POST_TRAINING = "gain_recalibration", "gain_beyond", "gain_post_training"
SMOOTHED = "gain_recalibration_smoothed"
OVER_CONSTANT, HEADROOM = "gain_over_constant", "utility_share"
STAKES, WORST_CASE = "utility_at_stake", "regret_grouping_worst"
UTILITY, NEW_THRESHOLD, SIGNAL = "expected_utility", "threshold_adjusted", "features_pvalue"
CONSTANTS = ("eu_never", "eu_always")
"""Expected utility of always deciding 0 and of always deciding 1, in this order."""
CONSTANT_LEAD, RANKING = "external_regret", "auc"

EVIDENCE_KEYS = (
    RECALIBRATION,
    BEYOND,
    POST_TRAINING,
    SMOOTHED,
    OVER_CONSTANT,
    HEADROOM,
    STAKES,
    WORST_CASE,
    UTILITY,
    NEW_THRESHOLD,
    SIGNAL,
    *CONSTANTS,
    CONSTANT_LEAD,
    RANKING,
)
"""Keys of the metrics that an Evidence holds."""

ROUNDING = 1e-12
"""Difference of two expected utilities, as a share of what is at stake, up to which they are the same."""
TOLERANCE = 0.05
"""Gain that is too small to matter unless the user says otherwise, as a share of what is at stake."""
SIGN_SHARE = {RECALIBRATION: 1 / 2, BEYOND: 1 / 3}
"""Share of the tolerance that a gain stays within, where there is a sign of it, if it is too small to matter; less for
the features, of which few rows teach only a part."""
MOVED_BY = 0.05
"""How far from the interval of the best threshold today's must lie to be clearly another one, in widths of it."""
CLEAR_SIGNAL = 0.001
"""P-value up to which the features clearly say more than the score."""

SHRINKAGE = 0.5
"""Standard errors that are taken off a gain before it is acted on while it is not clear: chosen in four worlds of known
truth (simulation/advice.py), and checked in four others."""
ACTED_ON = 0.5
"""Share of the default tolerance from which a gain that is not clear is acted on. A tolerance that the user gave counts
whole: the default is but a guess at what matters, and waiting for a gain as large as it costs more than acting."""
LIKELY = 0.8
"""The chance from which what is not clear is called likely."""
FITS: Mapping[Action, str] = {"recalibrate": "isotonic", "post-train": "blend"}
"""The method that each action names; `decal fit` knows it by this name, and the gains are estimates of what it wins."""
GAINS: Mapping[Action, str] = {"recalibrate": RECALIBRATION, "post-train": POST_TRAINING}


@dataclass(frozen=True)
class Item:
    """A metric with its interval; value None, and the reason, where it is undefined.

    text: how the value is written where rounding it as usual would change what it means.
    """

    metric: str
    value: float | None = None
    interval: Interval | None = None
    reason: Hidden[str | None] = None
    text: Hidden[str] = ""


@dataclass(frozen=True)
class Constant:
    """The constant decision that is worth at least as much as acting on the score.

    decision: 0 or 1, or of more than two actions the name. gain: what it is worth more, per decision; clear: whether
    its interval lies above 0. words: as advice, such as 'always act'.
    """

    decision: int | str
    gain: float
    interval: Interval | None
    words: Hidden[str] = ""

    @property
    def doing(self) -> str:
        """As what one does, such as 'always acting'."""
        adverb, verb, *name = self.words.split(" ", 2)
        return " ".join((adverb, {"act": "acting", "decide": "deciding"}[verb], *name))

    @property
    def clear(self) -> bool:
        """Whether chance does not explain that the constant decision is ahead."""
        return self.interval is not None and self.interval[0] > 0


@dataclass(frozen=True)
class Evidence:
    """All that the flowchart looks at. Utilities, tolerance and costs are per decision, in the user's unit.

    items: by metric, EVIDENCE_KEYS; a missing one counts as undefined. costs: by action, "recalibrate" and
    "post-train". satisfied_at: the expected utility that is good enough. features: whether the user named any.
    acts_from: the score from which decisions are 1 now; None where it is not looked at. say: how amounts are written;
    names: of the decisions 0 and 1, () where the user gave none. unlearnable: the features of which nothing can be
    learned as they are.
    """

    items: Mapping[str, Item]
    rows: int
    features: bool
    tolerance: float | None = None
    costs: Mapping[str, float] = field(default_factory=dict)
    satisfied_at: float | None = None
    acts_from: float | None = None
    counted: bool = False
    """Whether rows were counted before, so that no feature of them can be named."""
    best_constant: str | None = None
    """The name of the best constant action, where there are more than two."""
    confidence: float = CONFIDENCE
    """That of the intervals."""
    fits: Mapping[Action, str] = field(default_factory=lambda: FITS)
    """The method that each action names on these rows."""
    say: Say = per_thousand
    names: Sequence[str] = ()
    unlearnable: Sequence[str] = ()

    @property
    def stakes(self) -> float:
        """What perfect decisions are worth more than the better constant one, per decision."""
        return self.item(STAKES).value or 0.0

    @property
    def tolerated(self) -> float:
        """The gain per decision that is too small to matter: the user's, or TOLERANCE of what is at stake."""
        return TOLERANCE * self.stakes if self.tolerance is None else self.tolerance

    def item(self, metric: str) -> Item:
        """The metric; undefined where it was not computed."""
        return self.items.get(metric, Item(metric, reason="was not computed"))

    def gain(self, metric: str) -> Answer:
        """Whether there is such a gain: clearly above 0, clearly too small to matter, or neither."""
        interval = self.item(metric).interval
        if interval is None:
            return "unknown"
        if interval[0] > 0:
            return "yes"
        return "no" if interval[1] <= self.limit(metric) else "unknown"

    def limit(self, metric: str) -> float:
        """What the interval of a gain must stay within if the gain is too small to matter.

        Less than the tolerance where there is a sign of the gain: then it is not 0, and more rows would win more of it.
        """
        sign = (metric == RECALIBRATION and self.moved) or (metric == BEYOND and self.informative)
        return SIGN_SHARE[metric] * self.tolerated if sign else self.tolerated

    @property
    def moved(self) -> bool:
        """Whether the threshold that recalibration would act from is clearly another one than that of now."""
        interval = self.item(NEW_THRESHOLD).interval
        if self.acts_from is None or interval is None:
            return False
        low, high = interval
        beyond = MOVED_BY * (high - low)
        return not low - beyond <= self.acts_from <= high + beyond

    @property
    def informative(self) -> bool:
        """Whether the features clearly say something about the label beyond the score."""
        p_value = self.item(SIGNAL).value
        return p_value is not None and p_value <= CLEAR_SIGNAL

    @property
    def promising(self) -> bool:
        """Whether the features clearly say more than the score, and by the estimates win what matters on top of it."""
        beyond = self.item(BEYOND).value
        matters = beyond is not None and beyond > self.tolerated / 2
        return matters and self.informative and self.gain(POST_TRAINING) == "yes"

    def small(self, metric: str) -> bool:
        """Whether a gain is clearly above 0 and clearly within the tolerance."""
        interval = self.item(metric).interval
        return interval is not None and interval[0] > 0 and interval[1] <= self.tolerated

    @property
    def smooths(self) -> bool:
        """Whether costs are compared with smoothed gains."""
        return bool(self.costs) and self.item(SMOOTHED).value is not None

    def expected(self, action: Action) -> float | None:
        """The gain that an action is chosen by: where it has a cost, smoothed, but within the interval of the gain."""
        item, smoothed, held_out = (self.item(metric) for metric in (GAINS[action], SMOOTHED, RECALIBRATION))
        if action not in self.costs or item.interval is None or smoothed.value is None or held_out.value is None:
            return item.value
        low, high = item.interval
        return min(max((item.value or 0.0) + smoothed.value - held_out.value, low), high)

    def net(self, action: Action) -> float | None:
        """The expected gain of an action less its cost (0 where none was given); None where it is undefined."""
        value = self.expected(action)
        return None if value is None else value - self.costs.get(action, 0.0)

    @property
    def best(self) -> Action:
        """The action with the largest estimated gain after its cost; "done" where none beats what is free."""
        gains = {action: net for action in GAINS if (net := self.net(action)) is not None and net > self.free}
        return max(gains, key=lambda action: gains[action], default="done")

    def chance(self, action: Action, above: float) -> float | None:
        """The probability that an action wins more than this after its cost, by the error of its gain."""
        net, error = self.net(action), self.error(action)
        if net is None or error is None:
            return None
        return NormalDist().cdf((net - above) / error) if error > 0 else float(net > above)

    def error(self, action: Action) -> float | None:
        """The standard error of the gain of an action; None where it has no interval."""
        interval = self.item(GAINS[action]).interval
        return None if interval is None else self._error_of(interval)

    def shrunken(self, action: Action) -> float:
        """The gain of an action after its cost, less SHRINKAGE standard errors; -inf where it is undefined."""
        net, error = self.net(action), self.error(action)
        return -math.inf if net is None or error is None else net - SHRINKAGE * error

    @property
    def now(self) -> Action:
        """The action to take where waiting is no choice: the one with the largest shrunken gain, if that matters.

        The gain of a constant decision is shrunken too: that it is free does not make it surer. Where the user gave
        costs, the best buy by the estimates, which are smoothed then.
        """
        if self.costs:
            return self.best
        best, constant = max(GAINS, key=self.shrunken), self.constant
        matters = (self.net(best) or 0.0) - self.free >= self.acted_on
        if constant is None:
            matters, instead = matters or self.gain(GAINS[best]) == "yes", 0.0
        else:
            instead = max(constant.gain - SHRINKAGE * self._error_of(constant.interval), 0.0)
        return best if matters and self.shrunken(best) > instead else "done"

    @property
    def acted_on(self) -> float:
        """The gain per decision, beyond what is free, from which what is not clear is acted on."""
        return ACTED_ON * self.tolerated if self.tolerance is None else self.tolerance

    def _error_of(self, interval: Interval | None) -> float:
        """The standard error that an interval is made of; 0 where there is none."""
        return 0.0 if interval is None else (interval[1] - interval[0]) / (2 * quantile(self.confidence))

    @property
    def free(self) -> float:
        """What the better constant decision wins over acting on the score; 0 where the score is ahead."""
        return 0.0 if self.constant is None else self.constant.gain

    @property
    def outdone(self) -> bool:
        """Whether by the estimates post-training wins no more than a constant decision."""
        gain = self.item(POST_TRAINING).value
        return self.constant is not None and gain is not None and gain <= self.free

    @property
    def constant(self) -> Constant | None:
        """The better constant decision, where acting on the score is worth no more than it."""
        lead = self.item(CONSTANT_LEAD)
        decision = self._constant_decision
        same = ROUNDING * self.stakes
        if lead.value is None or lead.value < -same or decision is None:
            return None
        return Constant(decision, lead.value if lead.value > same else 0.0, lead.interval, self._words(decision))

    def _words(self, decision: int | str) -> str:
        """What always deciding the same is called."""
        if isinstance(decision, str) or self.names:
            return f"always decide '{decision if isinstance(decision, str) else self.names[decision]}'"
        return "always act" if decision else "never act"

    @property
    def _constant_decision(self) -> int | str | None:
        never, always = (self.item(metric).value for metric in CONSTANTS)
        if never is None or always is None:
            return self.best_constant
        return 1 if always > never else 0

    @property
    def useless(self) -> bool:
        """Whether no threshold on the score beats the better constant decision, for this task."""
        if self.item(UTILITY).value is None or self.item(OVER_CONSTANT).value is None:
            return False
        # Several classes have no such share.
        impossible = HEADROOM in self.items and self.item(HEADROOM).value is None
        return impossible or self.gain(OVER_CONSTANT) == "no"

    @property
    def backwards(self) -> bool:
        """Whether higher scores clearly mean fewer positives."""
        interval = self.item(RANKING).interval
        return interval is not None and interval[1] < 0.5

    @property
    def share_of_recalibration(self) -> tuple[float, Interval] | None:
        """The share of the whole gain that recalibration alone wins, with its interval within 0 and 1.

        By the delta method for independent parts; None where a part is undefined or negative.
        """
        one, other = self.item(RECALIBRATION), self.item(BEYOND)
        if one.value is None or other.value is None or one.interval is None or other.interval is None:
            return None
        both = one.value + other.value
        if min(one.value, other.value) < 0 or both <= 0:
            return None
        widths = ((item.interval[1] - item.interval[0]) / 2 for item in (one, other) if item.interval is not None)
        share, (of_one, of_other) = one.value / both, widths
        half = math.hypot(other.value * of_one, one.value * of_other) / both**2
        return share, (max(share - half, 0.0), min(share + half, 1.0))
