"""The sentences on a limited capacity, each with what must hold of the numbers."""

import re
from collections.abc import Callable
from typing import Any

from tests.helpers.page import NUMBER, ROUNDED, Page, printed_as

_SPAN = rf"\[{NUMBER}, {NUMBER}\]"
_DOUBTFUL = rf"its gain is {NUMBER} {_SPAN} per 1,000 decisions, which chance could explain"
_CLEAR = rf"it (wins|loses) {NUMBER} {_SPAN} per 1,000 decisions"
_ORDER = rf"Recalibration keeps the order of the scores, and changes only which of them reach {NUMBER}"
_BEST = r"Of the post-trained scores, (.+?) is worth most"
_OTHER_ORDER = r"Recalibration by (\S+) changes what acting is expected to win, and so the order"
_MORE = "per 1,000 decisions with these places; no method can win more"
_PERFECT = r"A perfect ranking, by the labels, would win"
Holds = Callable[[Page, "re.Match[str]"], bool]


def _scores(page: Page) -> dict[str, dict[str, Any]]:
    return {each["method"] or "as it is": each for each in page.entry["at_capacity"]}


def _changes_nothing(page: Page, match: re.Match[str]) -> bool:
    return printed_as(match[1], page.entry["task"]["threshold"]) and _scores(page)["isotonic"]["gain"] == 0


def _is_best(page: Page, method: str, kind: str = "post-training") -> bool:
    others = {name: each["gain"] for name, each in _scores(page).items() if each["kind"] == kind}
    return others[method] == max(gain for gain in others.values() if gain is not None)


def _limit(page: Page, match: re.Match[str]) -> bool:
    """What the limit costs or wins."""
    now, unlimited = _scores(page)["as it is"]["utility"], page["expected_utility"].value
    apart = unlimited - now if match[1] == "costs" else now - unlimited
    return page.entry["places"]["full"] > 0 and apart >= 0 and printed_as(match[2], 1000 * apart)


def _free(page: Page, match: re.Match[str]) -> bool:
    return page.entry["places"]["full"] == 0 and abs(
        _scores(page)["as it is"]["utility"] - page["expected_utility"].value
    ) < ROUNDED * max(1.0, abs(page["expected_utility"].value))


def _perfect(page: Page, match: re.Match[str]) -> bool:
    """It is the most that any of the scores wins."""
    score = _scores(page)["perfect ranking"]
    most = max(each["gain"] for each in _scores(page).values() if each["gain"] is not None)
    numbers = zip(match.groups(), (score["gain"], *score["interval"]), strict=True)
    return bool(score["gain"] >= most - ROUNDED) and all(printed_as(one, 1000 * two) for one, two in numbers)


def _doubtful(score: dict[str, Any], numbers: tuple[str, ...]) -> bool:
    low, high = score["interval"]
    return low <= 0 <= high and all(
        printed_as(printed, 1000 * value) for printed, value in zip(numbers, (score["gain"], low, high), strict=True)
    )


def _clear(score: dict[str, Any], way: str, numbers: tuple[str, ...]) -> bool:
    low, high = score["interval"]
    sign = 1 if way == "wins" else -1
    ends = sorted((sign * low, sign * high))
    return ends[0] > 0 and all(
        printed_as(printed, 1000 * value) for printed, value in zip(numbers, (sign * score["gain"], *ends), strict=True)
    )


def _keeps_the_score(page: Page, match: re.Match[str]) -> bool:
    return match[1] == page.entry["capacity"] and page.entry["ranks_now"] == {"method": None, "gain": 0, "chance": None}


def _another_order(page: Page, match: re.Match[str]) -> bool:
    now, score = page.entry["ranks_now"], _scores(page)[match[2]]
    numbers = zip(match.groups()[2:], (score["gain"], *score["interval"]), strict=True)
    named = match[1] == page.entry["capacity"] and match[2] == now["method"] and now["gain"] == score["gain"] > 0
    return named and all(printed_as(one, 1000 * two) for one, two in numbers)


def _chance(page: Page, match: re.Match[str]) -> bool:
    """It is 97.5 % or more where the interval lies above 0, and more than half where the gain does."""
    now = page.entry["ranks_now"]
    low, high = _scores(page)[now["method"]]["interval"]
    said = {"over 99": now["chance"] >= 0.995}.get(match[1], match[1] == f"{100 * now['chance']:.0f}")
    return said and now["chance"] > 0.5 and ((low > 0) == (now["chance"] > 0.975) or low == high)


AT_CAPACITY: dict[str, Holds] = {
    r"At capacity (\S+), act on the rows that the score puts first: no method is sure enough to win more\.": (
        _keeps_the_score
    ),
    rf"At capacity (\S+), act on the rows that (\S+) puts first: wins {NUMBER} \[{NUMBER}, {NUMBER}\] "
    r"per 1,000 decisions over the order of the score\.": _another_order,
    r"The chance that this wins anything is (over 99|\d+) %\.": _chance,
    r"At capacity (\S+)\.": lambda page, match: match[1] == page.entry["capacity"],
    r"All else on this page is of decisions without this limit\.": lambda page, _: True,
    rf"The limit (costs|wins) {NUMBER} per 1,000 decisions\.": _limit,
    r"Every row that would be acted on has a place, so that the limit changes nothing\.": _free,
    rf"{_PERFECT} {NUMBER} {_SPAN} {_MORE}\.": _perfect,
    rf"{_OTHER_ORDER}: {_DOUBTFUL}\.": (
        lambda page, match: (
            _is_best(page, match[1], "recalibration") and _doubtful(_scores(page)[match[1]], match.groups()[1:])
        )
    ),
    rf"{_OTHER_ORDER}: {_CLEAR}\.": (
        lambda page, match: (
            _is_best(page, match[1], "recalibration") and _clear(_scores(page)[match[1]], match[2], match.groups()[2:])
        )
    ),
    r"What features would win with these places is unknown\.": (
        lambda page, _: (
            page.entry["task"] is None
            and all(each["gain"] is None for each in _scores(page).values() if each["kind"] == "post-training")
        )
    ),
    rf"{_ORDER}: on the rows with a place, that changes nothing\.": _changes_nothing,
    rf"{_ORDER}: {_DOUBTFUL}\.": (
        lambda page, match: (
            printed_as(match[1], page.entry["task"]["threshold"])
            and _doubtful(_scores(page)["isotonic"], match.groups()[1:])
        )
    ),
    rf"{_ORDER}: {_CLEAR}\.": (
        lambda page, match: (
            printed_as(match[1], page.entry["task"]["threshold"])
            and _clear(_scores(page)["isotonic"], match[2], match.groups()[2:])
        )
    ),
    rf"{_BEST}: {_DOUBTFUL}\.": (
        lambda page, match: _is_best(page, match[1]) and _doubtful(_scores(page)[match[1]], match.groups()[1:])
    ),
    rf"{_BEST}: {_CLEAR}\.": (
        lambda page, match: _is_best(page, match[1]) and _clear(_scores(page)[match[1]], match[2], match.groups()[2:])
    ),
    r"Only another order, such as one that features give, finds other rows\.": (
        lambda page, _: all(each["gain"] is None for each in _scores(page).values() if each["kind"] == "post-training")
    ),
}
"""Of a page in which so many rows can be acted on only."""
