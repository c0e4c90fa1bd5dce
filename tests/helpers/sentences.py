"""The sentences of a page of advice, each with what must hold of the numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from decal_cli.analysis.flowchart.evidence import MIN_ISOTONIC_ROWS
from tests.helpers.page import (
    BEYOND,
    METHOD_GAINS,
    NUMBER,
    POST_TRAINING,
    RECALIBRATION,
    ROUNDED,
    SUBJECTS,
    Page,
    printed_as,
)

Condition = Callable[[Page, "re.Match[str]"], bool]


def _limit(page: Page, match: re.Match[str], group: int = 1) -> bool:
    return printed_as(match[group], page.tolerance)


def _acted(page: Page, match: re.Match[str]) -> bool:
    counts = page.entry["counts"]
    return printed_as(match[1], 1000 * counts["as_is"]["acted"] / counts["rows"])


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
        printed_as(match[1], task["decision_threshold"])
        and match[2] == counts["adjusted"]
        and (not ends or all(map(printed_as, ends, counts["interval"])))
    )


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
        printed_as(printed, value)
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
    if low is not None and not (printed_as(low, interim["interval"][0]) and printed_as(high, interim["interval"][1])):
        return False
    sure = interim["interval"] is not None and interim["interval"][0] > 0
    return printed_as(gain, interim["gain"]) and (verb == "wins") == sure


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
    if not (printed_as(ece, page["ece"].value) and printed_as(null, page["ece_null"].value)):
        return False
    if not all(map(printed_as, re.findall(NUMBER, match[4]), (x for x in gain if not math.isnan(x)))):
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
    printed = printed_as(constant, 1000 * best) and printed_as(now, 1000 * page["expected_utility"].value)
    if constant == now:
        return False
    return printed and lead.value > 0 and _better_constant(page, decision) and (doubt is None) == (lead.low > 0)


def _ties(page: Page, match: re.Match[str]) -> bool:
    same = abs(page["external_regret"].value) <= ROUNDED
    return same and _better_constant(page, match[1]) and printed_as(match[2], 1000 * page["expected_utility"].value)


def _leaning(page: Page, match: re.Match[str]) -> bool:
    method, gain = match.groups()
    wanted = page[METHOD_GAINS[method]].value
    return printed_as(gain, wanted) and wanted > 0 and page.advice["act_now"]["method"] == method


def _now(page: Page, match: re.Match[str]) -> bool:
    """The action, the method, and the amount where it is in utility per 1,000 decisions."""
    now = page.advice["act_now"]
    said = match[4].startswith("utility per 1,000") is False or printed_as(match[3], 1000 * now["gain"])
    return (match[1], match[2]) == (now["action"], now["method"]) and said


def _percent_of(chance: float) -> str:
    if 0.005 <= chance < 0.995:
        return f"{100 * chance:.0f}"
    return "under 1" if chance < 0.5 else "over 99"


def _leaning_gain(page: Page, match: re.Match[str]) -> float:
    """The gain of the method that is named, where its amount is right; else NaN."""
    wanted = page[METHOD_GAINS[match[1]]].value
    return wanted if printed_as(match[2], wanted) else math.nan


def _nothing_wins(page: Page, _: re.Match[str]) -> bool:
    """No method wins more than what is free."""
    free = max(page["external_regret"].value, 0.0) + ROUNDED
    return max(_or_zero(page[RECALIBRATION].value), _or_zero(page[POST_TRAINING].value)) <= free


def _wins_more(page: Page, match: re.Match[str]) -> bool:
    interim = page.advice["interim"]
    return interim is not None and printed_as(match[1], page[POST_TRAINING].value - interim["gain"])


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


AMOUNT = f"{NUMBER} utility per decision"
SENTENCES: dict[str, Condition] = {
    # Question 1
    r"On held-out rows, (.*) improves? utility: the interval lies above 0\.": _improves,
    rf"The gain is small: at most {AMOUNT}, the tolerance\.": _all_small,
    rf"Neither recalibration nor the features would win more than {AMOUNT}, the tolerance\.": (
        lambda page, match: _limit(page, match) and page.negligible(RECALIBRATION) and page.negligible(BEYOND)
    ),
    rf"Recalibration would win at most {AMOUNT}, the tolerance, and features no more even in the worst "
    r"case\.": (
        lambda page, match: (
            _limit(page, match) and page.negligible(RECALIBRATION) and page.at_most_small("regret_grouping_worst")
        )
    ),
    r"The gain of (.*) is unknown: it .*": lambda page, match: math.isnan(page[SUBJECTS[match[1]]].low),
    rf"The gain of (.*) is at most {AMOUNT}, the tolerance\.": (
        lambda page, match: _limit(page, match, 2) and page.negligible(SUBJECTS[match[1]])
    ),
    rf"The gain of (.*) is at most {AMOUNT}, the tolerance, by these rows\.": (
        lambda page, match: _limit(page, match, 2) and page.held_back(SUBJECTS[match[1]])
    ),
    rf"But the best threshold to act from, {NUMBER} to {NUMBER}, is clearly not {NUMBER}, and more rows may show "
    r"more to win\.": (
        lambda page, match: (
            page.held_back(RECALIBRATION)
            and all(map(printed_as, match.groups()[:2], page["threshold_adjusted"][1:]))
            and printed_as(match[3], page.entry["task"]["decision_threshold"])
        )
    ),
    rf"But the features clearly say more than the score \(p-value {NUMBER}\), and more rows may show more to win\.": (
        lambda page, match: page.held_back(BEYOND) and printed_as(match[1], page["features_pvalue"].value)
    ),
    rf"The gain of (.*) could be 0 or more than {AMOUNT}, the tolerance: there are too few "
    r"rows to tell\.": (lambda page, match: _limit(page, match, 2) and page.open(SUBJECTS[match[1]])),
    r"What features would add to the score is unknown: none were named\.": lambda page, _: not page.features,
    # Question 2
    r"Neither cause is clear alone, only both together: a method that removes both is needed\.": (
        lambda page, _: page.clear(POST_TRAINING) and not page.clear(RECALIBRATION) and not page.clear(BEYOND)
    ),
    rf"Recalibration wins at most {AMOUNT}, the tolerance; using the features wins on top of it\.": (
        lambda page, match: _limit(page, match) and page.negligible(RECALIBRATION) and page.clear(BEYOND)
    ),
    r"Using the features clearly wins; whether recalibration alone wins is unknown\.": (
        lambda page, _: page.clear(BEYOND) and (page.open(RECALIBRATION) or page.held_back(RECALIBRATION))
    ),
    r"Recalibration has (\d+)% of the estimated gain, the features (\d+)%\.": _shares,
    rf"The features add only a small gain: at most {AMOUNT}, the tolerance\.": (
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
    r"Only in part: the features clearly say more than the score, and by the estimate they win on top of it\.": (
        lambda page, _: (
            page.informative()
            and page.clear(RECALIBRATION)
            and page.clear(POST_TRAINING)
            and not page.clear(BEYOND)
            and page[BEYOND].value > page.tolerance / 2
        )
    ),
    rf"Beyond recalibration, the features win at most {AMOUNT}, the tolerance\.": (
        lambda page, match: (
            _limit(page, match) and page.clear(RECALIBRATION) and page.negligible(BEYOND) and not page.clear(BEYOND)
        )
    ),
    r"Recalibration wins; what features would add is unknown: none were named\.": (
        lambda page, _: page.clear(RECALIBRATION) and not page.features
    ),
    r"Recalibration wins, and it is the cheaper step; whether the features add to it is unknown\.": (
        lambda page, _: page.clear(RECALIBRATION) and not page.clear(BEYOND) and not page.negligible(BEYOND)
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
    # What to do now
    r"use the model as it is\.": lambda page, _: page.advice["act_now"]["action"] == "done",
    r"always decide (\d)\.": (
        lambda page, match: (
            page.advice["act_now"]["action"] == "done"
            and page["external_regret"].value > 0
            and _better_constant(page, match[1])
        )
    ),
    rf"(recalibrate|post-train) (?:on the features )?with (\w+), which is expected to win {NUMBER} (.*)\.": _now,
    r"The chance that (?:it wins anything|no method wins more than the tolerance).* is (over 99|under 1|\d+) %\.": (
        lambda page, match: match[1] == _percent_of(page.advice["act_now"]["chance"])
    ),
    r"That is likely, but not clear\.": lambda page, _: page.advice["certainty"] == "likely",
    r"That is open: see what would settle it\.": lambda page, _: page.advice["certainty"] == "open",
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
    rf"Expected gain of (\w+): {AMOUNT} \({NUMBER} to {NUMBER}\), {NUMBER} per 1,000 decisions "
    rf"\({NUMBER} to {NUMBER}\)\.": _expected,
    rf"Free step(?: until then)?: (.*), which (wins|may win) {AMOUNT}(?: \({NUMBER} to {NUMBER}\))?\.": (_free),
    rf"Fitting blend wins {NUMBER} more\.": _wins_more,
    r"By the estimates, the constant decision wins as much as post-training or more, and it is free\.": (
        lambda page, _: page[POST_TRAINING].value <= page["external_regret"].value
    ),
    r"For this decision alone the same gain is free, without a new model: (.*)\.": (
        lambda page, match: page.advice["action"] == "recalibrate" and _what(page, match[1])
    ),
    r"`decal fit auto` takes a curve with few parameters where that predicts these few rows better\.": (
        lambda page, m: page.entry["rows"] < MIN_ISOTONIC_ROWS and page.advice["method"] == "isotonic"
    ),
    r"`decal fit (\w+)` fits it and evaluates it on held-out rows\.": (
        lambda page, match: page.advice["method"] == match[1]
    ),
    r"`decal recommend --try` fits the methods, compares them on held-out rows and starts over with the best one\.": (
        _always
    ),
    r"About ([\d,]+) rows like these show .* in 4 of 5 cases\.": (
        lambda page, match: int(match[1].replace(",", "")) > page.entry["rows"]
    ),
    rf"If you must decide now: fit (\w+), which by the estimates wins {AMOUNT}\.": _leaning,
    r"If you must decide now: always decide (\d); by the estimates no method wins more\.": (
        lambda page, match: (
            _better_constant(page, match[1])
            and page["external_regret"].value >= -ROUNDED
            and _nothing_wins(page, match)
        )
    ),
    r"If you must decide now: leave the model as it is; by the estimates no method wins anything\.": _nothing_wins,
    rf"If you must decide now: (?:leave the model as it is|always decide \S+); (\S+) wins {AMOUNT} by the estimates, "
    rf"less than {AMOUNT}, the tolerance\.": (
        lambda page, match: _leaning_gain(page, match) < page.tolerance and _limit(page, match, 3)
    ),
    rf"If you must decide now: (?:leave the model as it is|always decide \S+); (\S+) wins {AMOUNT} by the estimates, "
    r"and chance could explain that easily\.": lambda page, match: _leaning_gain(page, match) >= page.tolerance,
    rf"If you must decide now: leave the model as it is; recalibration would add at most {AMOUNT}, the "
    r"tolerance\.": lambda page, match: _limit(page, match) and page[RECALIBRATION].value <= page.tolerance,
    rf"If you must decide now: always decide (\d); recalibration would add at most {AMOUNT}, the "
    r"tolerance\.": (
        lambda page, match: (
            _better_constant(page, match[1])
            and _limit(page, match, 2)
            and (math.isnan(page["utility_share"].value) or page["gain_over_constant"].value <= page.tolerance)
        )
    ),
    r"(Name the feature columns|Give rows instead of counts, and name their feature columns) \(--features\).*": (
        lambda page, _: not page.features
    ),
    r"The score ranks backwards: higher scores go with fewer positives \(AUC below \.5\)\.": (
        lambda page, _: page["auc"].high < 0.5
    ),
    r"Check the label column, --positive and the direction of the score\.": lambda page, _: page["auc"].high < 0.5,
    r"Always decide (\d) until a model beats it\.": lambda page, match: _better_constant(page, match[1]),
    r"Whether a model on the features beats it is unknown: there are too few rows to tell\.": (
        lambda page, _: not page.clear(BEYOND) and not page.negligible(BEYOND)
    ),
    r"Find features that separate the outcomes better, train a new model, and start over with it\.": (
        _action_is("find-better-features")
    ),
    rf"ECE is {NUMBER} for any decision \(a calibrated model would show {NUMBER}\); for this one, recalibration "
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
