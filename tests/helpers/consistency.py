"""Does a page of `decal recommend` follow from its own numbers? A reader that knows only the JSON and the printed text.

Every sentence must be one that this reader knows, with a condition that the numbers of the JSON fulfil: a sentence that
it does not know counts as a contradiction, so that new wording needs a new condition.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

ROUNDED = 1e-12
"""Largest difference between a sum and the sum of its parts."""
RECALIBRATION, BEYOND, POST_TRAINING = "gain_recalibration", "gain_beyond", "gain_post_training"
METHOD_GAINS = {"isotonic": RECALIBRATION, "blend": POST_TRAINING}
ACTIONS = {"recalibrate": "isotonic", "post-train": "blend"}
SUBJECTS = {
    "recalibration": RECALIBRATION,
    "using the features (beyond recalibration)": BEYOND,
    "recalibration and the features together": POST_TRAINING,
}
RUNGS = {
    "always decide 0": ("eu_never",),
    "always decide 1": ("eu_always",),
    "act on the score as it is": ("expected_utility",),
    "act on the recalibrated score": ("expected_utility", RECALIBRATION),
    "act on score and features": ("expected_utility", RECALIBRATION, BEYOND),
}
NUMBER = r"(-?[\d,]*\.?\d+(?:e[-+]\d+)?)"


_LINES = re.MULTILINE | re.DOTALL


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

    def open(self, metric: str) -> bool:
        return self[metric].low <= 0 and self[metric].high > self.tolerance


def contradictions(entry: dict[str, Any], text: str) -> list[str]:
    """What one model's JSON and its printed text, unwrapped, say that does not follow from the numbers."""
    page = Page(entry)
    found = [*_chain(page), *_action(page), *_bars(page, text), *_evidence(page, text), *_counts(page, text)]
    for sentence in _sentences(page, text):
        problem = _unfounded(page, sentence)
        if problem is not None:
            found.append(f"{problem}: {sentence}")
    return found


def _chain(page: Page) -> Iterator[str]:
    total, parts = page[POST_TRAINING].value, page[RECALIBRATION].value + page[BEYOND].value
    if page.features and not abs(total - parts) <= ROUNDED:
        yield f"gains do not add up: {total} and {parts}"
    for metric in (RECALIBRATION, BEYOND, POST_TRAINING):
        measured = page[metric]
        if not math.isnan(measured.low) and not measured.low <= measured.value <= measured.high:
            yield f"{metric} lies outside its interval: {measured}"


def _action(page: Page) -> Iterator[str]:
    """The action against the gains, whatever the text says."""
    advice, clear = page.advice, [metric for metric in SUBJECTS.values() if page.clear(metric)]
    action = advice["action"]
    if action == "done" and clear:
        yield f"done beside a gain above 0: {clear}"
    if advice["method"] != ACTIONS.get(action):
        yield f"the action {action} names the method {advice['method']}"
    if action in ACTIONS:
        measured = page[METHOD_GAINS[ACTIONS[action]]]
        if advice["gain"] != measured.value or advice["interval"] != [measured.low, measured.high]:
            yield f"the gain of {action} is not the gain of the chain: {advice['gain']}, {measured.value}"
        if not any(page.clear(metric) for metric in SUBJECTS.values()):
            yield f"{action} without a gain above 0"
        own = measured.low > 0 and measured.high <= page.tolerance
        if advice["small"] != (own or advice["path"][0]["small"]):
            yield "small disagrees with the tolerance"
    constant = advice["constant"]
    best = max(page["eu_never"].value, page["eu_always"].value)
    if (constant is not None) != (best >= page["expected_utility"].value - ROUNDED):
        yield f"constant {constant} beside {best} and {page['expected_utility'].value}"


def _bars(page: Page, text: str) -> Iterator[str]:
    """The bars are the chain, and a longer bar is a larger value."""
    seen = {}
    for name, parts in RUNGS.items():
        line = re.search(rf"^ *{re.escape(name)} +{NUMBER} *(█*)", text, re.MULTILINE)
        expected = 1000 * sum(page[part].value for part in parts)
        if line is None:
            if not math.isnan(expected):
                yield f"no bar: {name}"
            continue
        if not _is(line[1], expected):
            yield f"bar {name} shows {line[1]}, not {expected}"
        seen[name] = (expected, len(line[2]))
    for one, length in seen.values():
        if any(one > other and length < shorter for other, shorter in seen.values()):
            yield "a larger value has a shorter bar"


def _evidence(page: Page, text: str) -> Iterator[str]:
    """Each number under a question is that of the JSON."""
    titles = {
        "gain of recalibration": RECALIBRATION,
        "gain beyond recalibration": BEYOND,
        "gain of post-training": POST_TRAINING,
    }
    for title, metric in titles.items():
        for line in re.findall(rf"^ +{title}: (.*)$", text, re.MULTILINE):
            numbers = re.findall(NUMBER, line)
            expected = [number for number in page[metric] if not math.isnan(number)]
            if len(numbers) != len(expected) or not all(map(_is, numbers, expected)):
                yield f"{title} is printed as {line}, but is {expected}"


COUNTED = {"as it is": "as_is", "recalibrated": "recalibrated", "with features": "with_features"}


def _counts(page: Page, text: str) -> Iterator[str]:
    """The table of decisions is that of the JSON, each step adds up, and what changes is what the gain says."""
    counts, threshold, u_delta = page.entry["counts"], *(page.entry["task"][key] for key in ("threshold", "u_delta"))
    total, before = counts["rows"], None
    for (name, key), gain in zip(COUNTED.items(), (None, RECALIBRATION, BEYOND), strict=True):
        now = counts[key]
        line = re.search(rf"^{name} {{2,}}(.*)$", text, re.MULTILINE)
        if (now is None) != (line is None):
            yield f"a row of counts without its numbers, or the other way round: {name}"
        if now is None or line is None:
            continue
        moved = (
            [] if now["change"] is None else [now["change"][key] for key in ("started_positive", "started_negative")]
        )
        gone = [] if now["change"] is None else [now["change"][key] for key in ("stopped_positive", "stopped_negative")]
        expected = [now[key] for key in ("acted", "true_positives", "false_positives", "false_negatives")]
        expected += [sum(rows) for rows in (moved, gone) if rows]
        printed = re.findall(NUMBER, line[1])
        if not all(_is(one, 1000 * other / total) for one, other in zip(printed, expected, strict=False)):
            yield f"counts {name} are printed as {line[1]}, but are {expected} of {total}"
        if gain is not None and before is not None:
            change = now["change"]
            won = change["true_positives"] * (1 - threshold) - change["false_positives"] * threshold
            if not abs(u_delta * won / total - page[gain].value) <= ROUNDED * max(1.0, u_delta):
                yield f"the counts win {u_delta * won / total}, {gain} is {page[gain].value}"
            for cell, other in (("true_positives", "false_negatives"), ("false_positives", "true_negatives")):
                both = before[cell] + before[other]
                after = min(max(before[cell] + change[cell], 0.0), both)
                if max(abs(now[cell] - after), abs(now[other] - (both - after))) > ROUNDED * total:
                    yield f"{cell} of {name} do not change by what is said to change"
        before = now


def _acted(page: Page, match: re.Match[str]) -> bool:
    counts = page.entry["counts"]
    return _is(match[1], 1000 * counts["as_is"]["acted"] / counts["rows"])


def _with_method(page: Page, match: re.Match[str]) -> bool:
    """The changes of the steps that lead to the method."""
    counts = page.entry["counts"]
    steps = [counts["recalibrated"]["change"]]
    steps += [counts["with_features"]["change"]] if match[1] == "blend" else []
    more = [sum(step["false_positives"] for step in steps), -sum(step["true_positives"] for step in steps)]
    printed = [0.0 if each == "as many" else _signed(each) for each in match.groups()[1:]]
    return match[1] == page.advice["method"] and all(
        abs(one - 1000 * other / counts["rows"]) <= 0.51 for one, other in zip(printed, more, strict=True)
    )


def _signed(text: str) -> float:
    number, way = text.split()
    return float(number.replace(",", "")) * (1 if way == "more" else -1)


def _adjusted(page: Page, match: re.Match[str]) -> bool:
    counts, task = page.entry["counts"]["threshold"], page.entry["task"]
    ends = [] if match[3] is None else re.findall(NUMBER, match[3])
    return (
        _is(match[1], task["decision_threshold"])
        and match[2] == counts["adjusted"]
        and (not ends or all(map(_is, ends, counts["interval"])))
    )


def _sentences(page: Page, text: str) -> Iterator[str]:
    """Reasons, headline and what follows it, one sentence at a time."""
    advice = page.advice
    for step in advice["path"]:
        yield from _split(step["reason"])
        if step["reason"] not in text:
            yield f"(not printed) {step['reason']}"
    end = text.split("\n→ ", 1)[1].split("\n\n", 1)[0]
    for line in end.splitlines():
        yield from _split(line.strip())
    for line in re.findall(r"^(?:Always deciding|Acting on this score).*?(?=^Expected utility|^\s*$)", text, _LINES):
        yield " ".join(line.split())


def _split(text: str) -> list[str]:
    return re.split(r"(?<=\.) (?=[A-Z`])", text)


def _is(printed: str, value: float) -> bool:
    """Whether a printed number is this one, rounded to the digits that are printed."""
    mantissa, _, exponent = printed.replace(",", "").partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    slack = 0.51 * unit + 1e-9 * abs(value)
    return abs(float(printed.replace(",", "")) - value) <= slack or abs(value) >= 9999.5


def _unfounded(page: Page, sentence: str) -> str | None:
    """Why a sentence does not follow from the numbers; None where it does."""
    for pattern, holds in SENTENCES.items():
        match = re.fullmatch(pattern, sentence)
        if match is not None:
            return None if holds(page, match) else "does not follow from the numbers"
    return "a sentence that nobody checks"


Condition = Callable[[Page, "re.Match[str]"], bool]


def _limit(page: Page, match: re.Match[str], group: int = 1) -> bool:
    return _is(match[group], page.tolerance)


def _improves(page: Page, match: re.Match[str]) -> bool:
    names = [name for name in SUBJECTS if name in match[1]]
    if "recalibration and the features together" in names:
        names = ["recalibration and the features together"]
    elif "recalibration" in names and not re.search(r"(^|and )recalibration(?!\))", match[1]):
        names.remove("recalibration")
    return bool(names) and all(page.clear(SUBJECTS[name]) for name in names)


def _all_small(page: Page, match: re.Match[str]) -> bool:
    clear = [metric for metric in (RECALIBRATION, BEYOND) if page.clear(metric)] or [POST_TRAINING]
    return _limit(page, match) and all(page.at_most_small(metric) for metric in clear)


def _shares(page: Page, match: re.Match[str]) -> bool:
    share = page[RECALIBRATION].value / page[POST_TRAINING].value
    both = int(match[1]) + int(match[2])
    return both in (99, 100, 101) and abs(int(match[1]) - 100 * share) <= 1 and 0 <= share <= 1


def _expected(page: Page, match: re.Match[str]) -> bool:
    measured = page[METHOD_GAINS[match[1]]]
    per_row, low, high, thousand, low_thousand, high_thousand = match.groups()[1:]
    return all(
        _is(printed, value)
        for printed, value in (
            (per_row, measured.value),
            (low, measured.low),
            (high, measured.high),
            (thousand, 1000 * measured.value),
            (low_thousand, 1000 * measured.low),
            (high_thousand, 1000 * measured.high),
        )
    )


def _free(page: Page, match: re.Match[str]) -> bool:
    what, verb, gain, low, high = match.groups()
    interim = page.advice["interim"]
    if interim is None or not _what(page, what):
        return False
    if low is not None and not (_is(low, interim["interval"][0]) and _is(high, interim["interval"][1])):
        return False
    sure = interim["interval"] is not None and interim["interval"][0] > 0
    return _is(gain, interim["gain"]) and (verb == "wins") == sure


def _what(page: Page, what: str) -> bool:
    """'act when score >= .3' or 'always decide 1': what the JSON has as the free step."""
    interim = page.advice["interim"]
    if interim is None:
        return False
    if interim["threshold"] is None:
        return what == f"always decide {interim['decision']}"
    printed = re.fullmatch(r"act when score >= (\S+)", what)
    return printed is not None and printed[1] == interim["threshold"]


def _ece(page: Page, match: re.Match[str]) -> bool:
    ece, null, verb = match[1], match[2], match[3]
    gain = page[RECALIBRATION]
    if not (_is(ece, page["ece"].value) and _is(null, page["ece_null"].value)):
        return False
    if not all(map(_is, re.findall(NUMBER, match[4]), (x for x in gain if not math.isnan(x)))):
        return False
    expected = "wins" if gain.low > 0 else "loses: its gain is" if gain.high <= 0 else "may win or lose: its gain is"
    return verb == expected


def _better_constant(page: Page, decision: str) -> bool:
    never, always = page["eu_never"].value, page["eu_always"].value
    return int(decision) == (1 if always > never else 0)


def _beats(page: Page, match: re.Match[str]) -> bool:
    decision, constant, now, doubt = match.groups()
    lead = page["external_regret"]
    best = max(page["eu_never"].value, page["eu_always"].value)
    printed = _is(constant, 1000 * best) and _is(now, 1000 * page["expected_utility"].value)
    if constant == now:
        return False
    return printed and lead.value > 0 and _better_constant(page, decision) and (doubt is None) == (lead.low > 0)


def _ties(page: Page, match: re.Match[str]) -> bool:
    same = abs(page["external_regret"].value) <= ROUNDED
    return same and _better_constant(page, match[1]) and _is(match[2], 1000 * page["expected_utility"].value)


def _leaning(page: Page, match: re.Match[str]) -> bool:
    method, gain = match.groups()
    wanted = page[METHOD_GAINS[method]].value
    other = page[POST_TRAINING if METHOD_GAINS[method] == RECALIBRATION else RECALIBRATION].value
    return _is(gain, wanted) and wanted > 0 and not other > wanted


def _nothing_wins(page: Page, _: re.Match[str]) -> bool:
    """No method wins more than what is free."""
    free = max(page["external_regret"].value, 0.0) + ROUNDED
    return max(_or_zero(page[RECALIBRATION].value), _or_zero(page[POST_TRAINING].value)) <= free


def _wins_more(page: Page, match: re.Match[str]) -> bool:
    interim = page.advice["interim"]
    return interim is not None and _is(match[1], page[POST_TRAINING].value - interim["gain"])


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _no_better(page: Page, _: re.Match[str]) -> bool:
    share = page.entry["metrics"]["utility_share"]["value"]
    over = page["gain_over_constant"]
    return share is None or (over.low <= 0 and over.high <= page.tolerance)


def _action_is(*actions: str) -> Condition:
    return lambda page, _: page.advice["action"] in actions


def _always(_: Page, __: re.Match[str]) -> bool:
    return True


SENTENCES: dict[str, Condition] = {
    # Question 1
    r"On held-out rows, (.*) improves? utility: the interval lies above 0\.": _improves,
    rf"The gain is small: at most {NUMBER} per decision, the tolerance\.": _all_small,
    rf"Neither recalibration nor the features would win more than {NUMBER} per decision, the tolerance\.": (
        lambda page, match: _limit(page, match) and page.at_most_small(RECALIBRATION) and page.at_most_small(BEYOND)
    ),
    rf"Recalibration would win at most {NUMBER} per decision, the tolerance, and features no more even in the worst "
    r"case\.": (
        lambda page, match: (
            _limit(page, match) and page.at_most_small(RECALIBRATION) and page.at_most_small("regret_grouping_worst")
        )
    ),
    r"The gain of (.*) is unknown: it .*": lambda page, match: math.isnan(page[SUBJECTS[match[1]]].low),
    rf"The gain of (.*) is at most {NUMBER} per decision, the tolerance\.": (
        lambda page, match: _limit(page, match, 2) and page.at_most_small(SUBJECTS[match[1]])
    ),
    rf"The gain of (.*) could be 0 or more than {NUMBER} per decision, the tolerance: there are too few "
    r"rows to tell\.": (lambda page, match: _limit(page, match, 2) and page.open(SUBJECTS[match[1]])),
    r"What features would add to the score is unknown: none were named\.": lambda page, _: not page.features,
    # Question 2
    r"Neither cause is clear alone, only both together: a method that removes both is needed\.": (
        lambda page, _: page.clear(POST_TRAINING) and not page.clear(RECALIBRATION) and not page.clear(BEYOND)
    ),
    rf"Recalibration wins at most {NUMBER} per decision, the tolerance; using the features wins on top of it\.": (
        lambda page, match: _limit(page, match) and page.at_most_small(RECALIBRATION) and page.clear(BEYOND)
    ),
    r"Using the features clearly wins; whether recalibration alone wins is unknown\.": (
        lambda page, _: page.clear(BEYOND) and page.open(RECALIBRATION)
    ),
    r"Recalibration has (\d+)% of the estimated gain, the features (\d+)%\.": _shares,
    rf"The features add only a small gain: at most {NUMBER} per decision, the tolerance\.": (
        lambda page, match: (
            _limit(page, match)
            and page.clear(RECALIBRATION)
            and page.clear(BEYOND)
            and page.at_most_small(BEYOND)
            and not page.at_most_small(RECALIBRATION)
        )
    ),
    r"Only in part: the features clearly add to what recalibration wins\.": (
        lambda page, _: page.clear(RECALIBRATION) and page.clear(BEYOND)
    ),
    rf"Beyond recalibration, the features win at most {NUMBER} per decision, the tolerance\.": (
        lambda page, match: (
            _limit(page, match) and page.clear(RECALIBRATION) and page.at_most_small(BEYOND) and not page.clear(BEYOND)
        )
    ),
    r"Recalibration wins; what features would add is unknown: none were named\.": (
        lambda page, _: page.clear(RECALIBRATION) and not page.features
    ),
    r"Recalibration wins, and it is the cheaper step; whether the features add to it is unknown\.": (
        lambda page, _: page.clear(RECALIBRATION) and not page.clear(BEYOND) and not page.at_most_small(BEYOND)
    ),
    r"Even after recalibration, the score decides no better at any threshold than a constant decision\.": _no_better,
    # Questions 3 and 4, without costs and wishes
    r"No --cost given: compare this gain with your cost\.": _always,
    r"No --satisfied-at given: compare this utility with what you need\.": _always,
    # The action
    r"Post-train on the features with blend\.": _action_is("post-train"),
    r"Post-train on the features with blend: the gain is clear but small\.": (
        lambda page, _: page.advice["action"] == "post-train" and page.advice["small"]
    ),
    r"Recalibrate with isotonic\.": _action_is("recalibrate"),
    r"Recalibrate with isotonic: the gain is clear but small\.": (
        lambda page, _: page.advice["action"] == "recalibrate" and page.advice["small"]
    ),
    r"Done: use the model as it is\.": (
        lambda page, _: page.advice["action"] == "done" and page["external_regret"].value < 0
    ),
    r"Nothing to fit: post-training would win nothing that matters, and always deciding (\d) is worth "
    r"(more|as much)\.": (
        lambda page, match: (
            page.advice["action"] == "done"
            and _better_constant(page, match[1])
            and (match[2] == "more") == (page["external_regret"].value > 0)
        )
    ),
    r"Find better features; until then always decide (\d)\.": (
        lambda page, match: (
            page.advice["action"] == "find-better-features"
            and page["external_regret"].value >= -ROUNDED
            and _better_constant(page, match[1])
        )
    ),
    r"Find better features: post-training cannot win what is missing\.": _action_is("find-better-features"),
    r"Cannot tell yet\.": _action_is("cannot-tell"),
    # Decisions counted
    rf"Acts on {NUMBER} of 1,000\.": _acted,
    rf"With (\w+): (as many|{NUMBER[1:-1]} (?:more|fewer)) false positives, "
    rf"(as many|{NUMBER[1:-1]} (?:more|fewer)) misses\.": _with_method,
    rf"Threshold on the score: {NUMBER} in use; from (\S+)(?: \[(.*)\])? on, it decides as the recalibrated score "
    r"does\.": _adjusted,
    rf"Threshold on the score: {NUMBER} in use; no recalibrated score reaches t\* = .*\.": (
        lambda page, match: page.entry["counts"]["threshold"]["adjusted"] is None
    ),
    # What to expect, and what to do
    rf"Expected gain of (\w+): {NUMBER} utility per decision \({NUMBER} to {NUMBER}\), {NUMBER} per 1,000 decisions "
    rf"\({NUMBER} to {NUMBER}\)\.": _expected,
    rf"Free step(?: until then)?: (.*), which (wins|may win) {NUMBER} per decision(?: \({NUMBER} to {NUMBER}\))?\.": (
        _free
    ),
    rf"Fitting blend wins {NUMBER} more\.": _wins_more,
    r"By the estimates, the constant decision wins as much as post-training or more, and it is free\.": (
        lambda page, _: page[POST_TRAINING].value <= page["external_regret"].value
    ),
    r"For this decision alone the same gain is free, without a new model: (.*)\.": (
        lambda page, match: page.advice["action"] == "recalibrate" and _what(page, match[1])
    ),
    r"`decal fit (\w+)` fits it and evaluates it on held-out rows\.": (
        lambda page, match: page.advice["method"] == match[1]
    ),
    r"`decal recommend --try` fits the methods, compares them on held-out rows and starts over with the best one\.": (
        _always
    ),
    r"About ([\d,]+) rows like these would settle .*\.": (
        lambda page, match: int(match[1].replace(",", "")) > page.entry["rows"]
    ),
    rf"If you must decide now: fit (\w+), which by the estimates wins {NUMBER} per decision\.": _leaning,
    r"If you must decide now: always decide (\d); by the estimates no method wins more\.": (
        lambda page, match: (
            _better_constant(page, match[1])
            and page["external_regret"].value >= -ROUNDED
            and _nothing_wins(page, match)
        )
    ),
    r"If you must decide now: leave the model as it is; by the estimates no method wins anything\.": _nothing_wins,
    rf"If you must decide now: leave the model as it is; recalibration would add at most {NUMBER} per decision, the "
    r"tolerance\.": lambda page, match: _limit(page, match) and page[RECALIBRATION].value <= page.tolerance,
    rf"If you must decide now: always decide (\d); recalibration would add at most {NUMBER} per decision, the "
    r"tolerance\.": (
        lambda page, match: (
            _better_constant(page, match[1])
            and _limit(page, match, 2)
            and (math.isnan(page["utility_share"].value) or page["gain_over_constant"].value <= page.tolerance)
        )
    ),
    r"Name the feature columns \(--features\).*": lambda page, _: not page.features,
    r"The score ranks backwards: higher scores go with fewer positives \(AUC below \.5\)\.": (
        lambda page, _: page["auc"].high < 0.5
    ),
    r"Check the label column, --positive and the direction of the score\.": lambda page, _: page["auc"].high < 0.5,
    r"Always decide (\d) until a model beats it\.": lambda page, match: _better_constant(page, match[1]),
    r"Whether a model on the features beats it is unknown: there are too few rows to tell\.": (
        lambda page, _: not page.clear(BEYOND) and not page.at_most_small(BEYOND)
    ),
    r"Find features that separate the outcomes better, train a new model, and start over with it\.": (
        _action_is("find-better-features")
    ),
    rf"ECE is {NUMBER} for every t\* \(a calibrated model would show {NUMBER}\); at this t\*, recalibration "
    r"(wins|loses: its gain is|may win or lose: its gain is) (.*)\.": _ece,
    r"ECE alone would leave the model as it is\.": lambda page, _: page.advice["ece_advice"] == "leave",
    r"ECE alone would advise recalibration: .*\.": lambda page, _: page.advice["ece_advice"] == "recalibrate",
    # A constant decision that is ahead
    rf"Always deciding (\d) is worth more than acting on this score: {NUMBER} against {NUMBER} per 1,000 decisions"
    r"(, though chance could explain the difference)?\.": _beats,
    rf"Acting on this score is worth no more than always deciding (\d): both are worth {NUMBER} per "
    r"1,000 decisions\.": _ties,
}
"""The sentences of a page without costs, each with what must hold of the numbers."""
