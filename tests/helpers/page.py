"""The JSON of a page of advice as numbers, and numbers as they are printed."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

ROUNDED = 1e-12
"""Largest difference between a sum and the sum of its parts."""
RECALIBRATION, BEYOND, POST_TRAINING = "gain_recalibration", "gain_beyond", "gain_post_training"
SUBJECTS = {
    "recalibration": RECALIBRATION,
    "using the features on top of recalibration": BEYOND,
    "both together": POST_TRAINING,
}
"""Gains, by what the sentences call them."""
NUMBER = r"(-?[\d,]*\.?\d+(?:e[-+]\d+)?)"
SIGN_SHARE = {RECALIBRATION: 1 / 2, BEYOND: 1 / 3}
MOVED_BY, CLEAR_SIGNAL = 0.05, 0.001
"""Share of the tolerance within which a gain does not matter where there is a sign of it; and what a sign is."""


class Number(NamedTuple):
    """A metric of the JSON; low and high are NaN where it has no interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Page:
    """The JSON of one model: an entry of "reports", or the document itself."""

    entry: dict[str, Any]

    @property
    def advice(self) -> dict[str, Any]:
        return self.entry["recommendation"]

    def method_gain(self, method: str) -> str:
        """The gain of a method; of several classes, any scaling is a recalibration."""
        return POST_TRAINING if method == "blend" else RECALIBRATION

    @property
    def tolerance(self) -> float:
        return float(self.advice["tolerance"])

    def __getitem__(self, metric: str) -> Number:
        result = self.entry["metrics"].get(metric) or {}
        value = result.get("value")
        low, high = result.get("interval") or (math.nan, math.nan)
        return Number(math.nan if value is None else value, low, high)

    @property
    def features(self) -> bool:
        return not math.isnan(self[BEYOND].value) or not math.isnan(self[BEYOND].low)

    def clear(self, metric: str) -> bool:
        return self[metric].low > 0

    def at_most_small(self, metric: str) -> bool:
        return self[metric].high <= self.tolerance

    def moved(self) -> bool:
        """Whether the best threshold is clearly not the one that decisions act from."""
        if self.entry["task"] is None or self.entry["task"]["decision_threshold"] is None:
            return False
        best, now = self["threshold_adjusted"], self.entry["task"]["decision_threshold"]
        slack = MOVED_BY * (best.high - best.low)
        return now < best.low - slack or now > best.high + slack

    def informative(self) -> bool:
        """Whether the features clearly say more than the score."""
        return self["features_pvalue"].value <= CLEAR_SIGNAL

    def sign(self, metric: str) -> bool:
        """Whether there is a sign of this gain besides its interval."""
        return (metric == RECALIBRATION and self.moved()) or (metric == BEYOND and self.informative())

    def negligible(self, metric: str) -> bool:
        """Whether the interval of a gain ends where it no longer matters."""
        return self[metric].high <= self.tolerance * (SIGN_SHARE[metric] if self.sign(metric) else 1)

    def open(self, metric: str) -> bool:
        """Whether the interval holds 0 and reaches above the tolerance."""
        return self[metric].low <= 0 and self[metric].high > self.tolerance

    def held_back(self, metric: str) -> bool:
        """Whether a sign alone keeps the gain from being too small to matter."""
        return self[metric].low <= 0 and self.at_most_small(metric) and not self.negligible(metric)


def printed_as(printed: str, value: float) -> bool:
    """Whether a printed number is this one, rounded to the digits that are printed."""
    mantissa, _, exponent = printed.replace(",", "").partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    slack = 0.51 * unit + 1e-9 * abs(value)
    return abs(float(printed.replace(",", "")) - value) <= slack or abs(value) >= 9999.5
