"""The JSON of a page of advice as numbers, numbers as they are printed, and sentences that follow from them."""

import math
import re
from collections.abc import Callable, Mapping
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
NUMBER = r"-?[\d,]*\.?\d+(?:e[-+]\d+)?"
AMOUNT = rf"{NUMBER}(?: \[{NUMBER}, {NUMBER}\])?(?: million| billion)? per 1,000 decisions"
"""An amount, perhaps with its interval."""
CONSTANT = r"(?i:always act(?:ing)?|never act(?:ing)?|always decid(?:e|ing) '[^']*')"
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


def says(text: str, *values: float) -> bool:
    """Whether an amount is these values, times 1,000; the value lies within the ends as they are printed."""
    numbers = re.findall(NUMBER, text.replace("per 1,000 decisions", ""))
    printed = [float(number.replace(",", "")) for number in numbers]
    inside = len(printed) < 3 or printed[1] <= printed[0] <= printed[2]
    size = 1e9 if " billion " in text else 1e6 if " million " in text else 1.0
    known = [1000 * value / size for value in values if not math.isnan(value)]
    return inside and len(numbers) == len(known) and all(map(printed_as, numbers, known))


def _at_most(page: Page, words: str, metric: str) -> bool:
    """'at most 5 per 1,000 decisions': the upper end of the interval; 'nothing', where that is not above 0."""
    high = page[metric].high
    return high <= 0 if words == "nothing" else high > 0 and says(words.removeprefix("at most "), high)


def _better_constant(page: Page, words: str, _: str) -> bool:
    never, always = page["eu_never"].value, page["eu_always"].value
    if math.isnan(never):
        decision = page.advice["constant"]["decision"]
        return words.lower() in (f"always {verb} '{decision}'" for verb in ("decide", "deciding"))
    return words.lower() in (("always act", "always acting") if always > never else ("never act", "never acting"))


def _limit(entry: dict[str, Any]) -> str:
    """The capacity, and the column whose values have it each."""
    per = entry["columns"].get("per")
    return entry["capacity"] + (f" for each value of {per}" if per else "")


def _is_chance(text: str, value: float) -> bool:
    """Whether a p-value is written as it is, below .0001 as no more than that."""
    return (text == "< 0.0001") == (value < 1e-4) and (value < 1e-4 or printed_as(text, value))


_SLOTS: dict[str, tuple[str, Callable[[Page, str, str], bool]]] = {
    "gain": (AMOUNT, lambda page, text, metric: says(text, *page[metric])),
    "worth": (AMOUNT, lambda page, text, metric: says(text, page[metric].value)),
    "most": (rf"at most {AMOUNT}|nothing", _at_most),
    "tolerance": (AMOUNT, lambda page, text, _: says(text, page.tolerance)),
    "subject": ("|".join([*SUBJECTS][:2]), lambda page, text, _: True),
    "Subject": ("|".join(each.capitalize() for each in [*SUBJECTS][:2]), lambda page, text, _: True),
    "constant": (CONSTANT, _better_constant),
    "number": (NUMBER, lambda page, text, metric: printed_as(text, page[metric].value)),
    "chance": (rf"< 0\.0001|{NUMBER}", lambda page, text, metric: _is_chance(text, page[metric].value)),
    "low": (NUMBER, lambda page, text, metric: printed_as(text, page[metric].low)),
    "high": (NUMBER, lambda page, text, metric: printed_as(text, page[metric].high)),
    "task": (NUMBER, lambda page, text, key: printed_as(text, page.entry["task"][key])),
    "capacity": (r"\S+(?: for each value of \S+)?", lambda page, text, _: text == _limit(page.entry)),
    "N": (NUMBER, lambda page, text, _: True),
    "amount": (AMOUNT, lambda page, text, _: True),
}
"""What stands for a part of a sentence: a pattern, and whether such a part is what the JSON has of its argument."""
Condition = Callable[[Page, "re.Match[str]"], bool]


class Sentence:
    """A form of sentences: in `It wins <gain auc>` the amount is to be what the metric is; and what else must hold."""

    def __init__(self, form: str, condition: Condition) -> None:
        self.slots: list[tuple[str, str, str]] = []
        self.pattern = re.compile(re.sub(r"(?<!\?P)<(\w+)(?: (\w+))?>", self._slot, form))
        self.condition = condition

    def _slot(self, found: re.Match[str]) -> str:
        group = "subject" if found[1].lower() == "subject" else f"slot{len(self.slots)}"
        self.slots.append((group, found[1], found[2] or ""))
        return f"(?P<{group}>{_SLOTS[found[1]][0]})"

    def follows(self, page: Page, match: re.Match[str]) -> bool:
        filled = (_SLOTS[kind][1](page, match[group], _metric(match, argument)) for group, kind, argument in self.slots)
        return all(filled) and self.condition(page, match)


def _metric(match: re.Match[str], name: str) -> str:
    """The metric of this name; `subject` is the one that the sentence speaks of."""
    return SUBJECTS[match["subject"].lower()] if name == "subject" else name


def unfounded(sentences: Mapping[str, Condition], page: Page, text: str) -> str | None:
    """Why a sentence does not follow from the numbers, by the first form that it has; None where it does."""
    for each in (Sentence(form, condition) for form, condition in sentences.items()):
        match = each.pattern.fullmatch(text)
        if match is not None:
            return None if each.follows(page, match) else "does not follow from the numbers"
    return "a sentence that nobody checks"


def always(_: Page, __: re.Match[str]) -> bool:
    return True


def all_hold(*conditions: Condition) -> Condition:
    return lambda page, match: all(condition(page, match) for condition in conditions)


def no(condition: Callable[..., Condition], *metrics: str) -> Condition:
    """None of the metrics is so."""
    return lambda page, match: not any(condition(each)(page, match) for each in metrics)


def _so(judgement: Callable[[Page, str], bool]) -> Callable[..., Condition]:
    """Conditions that all of some metrics are so."""
    return lambda *metrics: lambda page, match: all(judgement(page, _metric(match, each)) for each in metrics)


clear, negligible, small = _so(Page.clear), _so(Page.negligible), _so(Page.at_most_small)
is_open, held_back = _so(Page.open), _so(Page.held_back)
unknown = _so(lambda page, metric: math.isnan(page[metric].low))
