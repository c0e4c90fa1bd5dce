"""What the flowchart looks at: estimates with their intervals, costs, and what follows from these before any question.

A gain exists ("yes") where its interval lies above 0. It does not matter ("no") where its interval does not lie above 0
and reaches above it by no more than the tolerance. Otherwise it is unknown. Gains are of held-out rows: plug-in regrets
are positive by noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import Literal

from decal_cli.data.words import listed
from decal_cli.declarations.defaults import CONFIDENCE
from decal_cli.declarations.document import Hidden
from decal_cli.hints import Hint, said
from decal_cli.metrics.confidence import INDEPENDENT, Clustering, quantile
from decal_cli.numbers import Interval, Say, bounds, per_thousand
from decal_cli.task import constant_words

Answer = Literal["yes", "no", "unknown"]
Action = Literal["done", "recalibrate", "post-train", "do-not-post-train", "find-better-features", "cannot-tell"]

RECALIBRATION, BEYOND, POST_TRAINING = "gain_recalibration", "gain_beyond", "gain_post_training"
OVER_CONSTANT, HEADROOM = "gain_over_constant", "utility_share"
STAKES, WORST_CASE = "utility_at_stake", "regret_grouping_worst"
UTILITY, NEW_THRESHOLD, SIGNAL = "expected_utility", "threshold_adjusted", "features_pvalue"
CONSTANTS = ("eu_never", "eu_always")
"""Expected utility of always deciding 0 and of always deciding 1, in this order."""
CONSTANT_LEAD, RANKING = "external_regret", "auc"

EVIDENCE_KEYS = (
    *(RECALIBRATION, BEYOND, POST_TRAINING, OVER_CONSTANT, HEADROOM, STAKES, WORST_CASE),
    *(UTILITY, NEW_THRESHOLD, SIGNAL, *CONSTANTS, CONSTANT_LEAD, RANKING),
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

    @property
    def clear(self) -> bool:
        """Whether its interval lies above 0."""
        return bounds(self.interval)[0] > 0

    @property
    def most(self) -> float:
        """The upper end of its interval; infinity where it has none."""
        return bounds(self.interval)[1]

    @property
    def missing(self) -> str:
        """Why it, or its interval, is unknown."""
        return self.reason or "has no interval"


@dataclass(frozen=True)
class Constant:
    """The constant decision that is worth at least as much as acting on the score.

    decision: 0 or 1, or of more than two actions the name. gain: what it is worth more, per decision. called: the
    decision, by its name if it has one.
    """

    decision: int | str
    gain: float
    interval: Interval | None
    called: Hidden[int | str] = 0

    @property
    def words(self) -> str:
        """As advice, such as 'always act'."""
        return constant_words(self.called)

    @property
    def doing(self) -> str:
        """As what one does, such as 'always acting'."""
        return constant_words(self.called, doing=True)


# Where there is a sign of the gain (the best threshold is clearly another one, or the features clearly say more than
# the score), it does not matter within half, or a third, of the tolerance only. Where the user gave costs, an interval
# that cannot tell a gain from its cost does not stop the walk: the action with the largest estimated gain after its
# cost is taken, because waiting has a price as well. Where question 1 says no, a cost changes nothing.
@dataclass(frozen=True)
class Evidence:
    """All that the flowchart looks at. Utilities, tolerance and costs are per decision, in the user's unit.

    items: by metric, EVIDENCE_KEYS; a missing one is undefined. costs, fits: cost and method by action. satisfied_at:
    the expected utility that is enough. features: whether any are named; unlearnable: those that teach nothing.
    acts_from: the score from which decisions are 1 now, if looked at. counted: whether rows were counted before.
    clusters: that the rows come in.
    best_constant: its name, of three or more actions. say: writes amounts. names: of decisions 0 and 1.
    """

    items: Mapping[str, Item]
    rows: int
    features: bool
    tolerance: float | None = None
    costs: Mapping[str, float] = field(default_factory=dict)
    satisfied_at: float | None = None
    acts_from: float | None = None
    counted: bool = False
    best_constant: str | None = None
    confidence: float = CONFIDENCE
    fits: Mapping[Action, str] = field(default_factory=lambda: FITS)
    say: Say = per_thousand
    names: Sequence[str] = ()
    unlearnable: Sequence[str] = ()
    clusters: Clustering = INDEPENDENT

    @property
    def stakes(self) -> float:
        """What perfect decisions are worth more than the better constant one, per decision."""
        return self.item(STAKES).value or 0.0

    @property
    def tolerated(self) -> float:
        """The gain per decision that is too small to matter: the user's, or TOLERANCE of what is at stake."""
        return TOLERANCE * self.stakes if self.tolerance is None else self.tolerance

    @property
    def acted_on(self) -> float:
        """The gain per decision, beyond what is free, from which what is not clear is acted on."""
        return ACTED_ON * self.tolerated if self.tolerance is None else self.tolerance

    def item(self, metric: str) -> Item:
        """The metric; undefined where it was not computed."""
        return self.items.get(metric, Item(metric, reason="was not computed"))

    def gain(self, metric: str) -> Answer:
        """Whether there is such a gain: clearly above 0, clearly too small to matter, or neither."""
        item = self.item(metric)
        return "yes" if item.clear else "no" if item.most <= self.limit(metric) else "unknown"

    def limit(self, metric: str) -> float:
        """What the interval of a gain must stay within if the gain is too small to matter.

        Less than the tolerance where there is a sign of the gain: then it is not 0, and more rows would win more of it.
        """
        sign = (metric == RECALIBRATION and self._moved) or (metric == BEYOND and self.informative)
        return SIGN_SHARE[metric] * self.tolerated if sign else self.tolerated

    @property
    def _moved(self) -> bool:
        """Whether the threshold that recalibration would act from is clearly another one than that of now."""
        low, high = bounds(self.item(NEW_THRESHOLD).interval)
        beyond = MOVED_BY * (high - low)
        return self.acts_from is not None and not low - beyond <= self.acts_from <= high + beyond

    @property
    def informative(self) -> bool:
        """Whether the features clearly say something about the label beyond the score."""
        chance = self.item(SIGNAL).value
        return chance is not None and chance <= CLEAR_SIGNAL

    def small(self, metric: str) -> bool:
        """Whether a gain is clearly above 0 and clearly within the tolerance."""
        item = self.item(metric)
        return item.clear and item.most <= self.tolerated

    def held_back(self, metric: str) -> bool:
        """Whether only a sign of this gain keeps it from being too small to matter."""
        return self.gain(metric) == "unknown" and self.item(metric).most <= self.tolerated

    @property
    def costs_known(self) -> bool:
        """Whether the cost of each action is given."""
        return set(self.costs) >= set(GAINS)

    def net(self, action: Action) -> float | None:
        """The estimated gain of an action less its cost (0 where none was given); None where it is undefined."""
        value = self.item(GAINS[action]).value
        return None if value is None else value - self.costs.get(action, 0.0)

    @property
    def best(self) -> Action:
        """The action with the largest estimated gain after its cost; "done" where none beats what is free."""
        return max(filter(self.ahead, GAINS), key=lambda action: self.net(action) or 0.0, default="done")

    def ahead(self, action: Action) -> bool:
        """Whether an action is estimated to win more, after its cost, than what is free."""
        net = self.net(action)
        return net is not None and net > self.free + ROUNDING * self.stakes

    def chance(self, action: Action, more: float = 0.0) -> float | None:
        """The probability that an action wins more than this beyond what is free, after its cost, by its error."""
        net, interval = self.net(action), self.item(GAINS[action]).interval
        if net is None or interval is None:
            return None
        ahead, error = net - self.free - more, self._error(interval)
        if self.free > 0 and (over := self.item(OVER_CONSTANT).interval) is not None:
            # The error of what the constant decision wins over the score is no part of how far a method is ahead of it.
            beyond = self.item(BEYOND).interval if action == "post-train" else None
            error = math.hypot(self._error(over), self._error(beyond))
        return NormalDist().cdf(ahead / error) if error > 0 else float(ahead > 0)

    def shrunken(self, action: Action) -> float:
        """The gain of an action after its cost, less SHRINKAGE standard errors; -inf where it is undefined."""
        net, interval = self.net(action), self.item(GAINS[action]).interval
        return -math.inf if net is None or interval is None else net - SHRINKAGE * self._error(interval)

    def _error(self, interval: Interval | None) -> float:
        """The standard error that an interval is made of; 0 where there is none."""
        return 0.0 if interval is None else (interval[1] - interval[0]) / (2 * quantile(self.confidence))

    @property
    def now(self) -> Action:
        """The action to take where waiting is no choice: the one with the largest shrunken gain, if that matters.

        The gain of a constant decision is shrunken too: that it is free does not make it surer.
        """
        best = max(GAINS, key=self.shrunken)
        return best if self.worthwhile(best) else "done"

    def worthwhile(self, action: Action) -> bool:
        """Whether an action that is not clear is worth taking: it matters, and beats a constant one."""
        constant, instead = self.constant, 0.0
        matters = (self.net(action) or 0.0) - self.free >= self.acted_on
        if constant is None:
            matters = matters or self.gain(GAINS[action]) == "yes"
        else:
            instead = max(constant.gain - SHRINKAGE * self._error(constant.interval), 0.0)
        return matters and self.shrunken(action) > instead

    @property
    def free(self) -> float:
        """What the better constant decision wins over acting on the score; 0 where the score is ahead."""
        return 0.0 if self.constant is None else self.constant.gain

    @cached_property
    def constant(self) -> Constant | None:
        """The better constant decision, where acting on the score is worth no more than it."""
        lead, same = self.item(CONSTANT_LEAD), ROUNDING * self.stakes
        never, always = (self.item(metric).value for metric in CONSTANTS)
        decision = self.best_constant if never is None or always is None else int(always > never + same)
        if lead.value is None or lead.value < -same or decision is None:
            return None
        called = self.names[decision] if self.names and isinstance(decision, int) else decision
        return Constant(decision, lead.value if lead.value > same else 0.0, lead.interval, called)

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
        """Whether higher scores clearly go with fewer positives."""
        auc = self.item(RANKING).interval
        return auc is not None and auc[1] < 0.5

    @property
    def too_dear(self) -> bool:
        """Whether post-training wins at most, after its cost, what is free."""
        cost, gain = self.costs.get("post-train"), self.item(POST_TRAINING).interval
        return cost is not None and gain is not None and gain[1] - cost <= self.free

    @property
    def adds_nothing(self) -> bool:
        """Whether recalibration is the best buy by the estimates, and yet no better than a constant decision."""
        return self.best == "recalibrate" and self.useless

    def at_most(self, metric: str) -> str:
        """The end of the interval of a gain, in words."""
        interval = self.item(metric).interval or (0.0, 0.0)
        return f"at most {self.say(interval[1], like=interval)}" if interval[1] > 0 else "nothing"

    def to_collect(self, rows: int, like: str = "") -> str:
        """Rows to collect, in words, with the clusters that they come in."""
        return f"{rows:,} rows{like}{self.clusters.words(rows, self.rows)}"

    @property
    def not_learned(self) -> Iterator[str]:
        """What is said of features of which nothing can be learned as they are."""
        if self.unlearnable:
            names = listed(self.unlearnable)
            yield f"Nothing can be learned from {names} in this form; what it stands for may add to the score."

    @property
    def name_features(self) -> str:
        """How features are named."""
        of_rows = " of rows, in files or in an engine" if self.counted else ""
        return said(f"Name the feature columns{of_rows} ({Hint('features')})")
