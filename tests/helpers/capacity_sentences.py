"""The sentences on a limited capacity, each with what must hold of the numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.helpers.page import NUMBER, Page, printed_as

_SPAN = rf"\[{NUMBER}, {NUMBER}\]"
_DOUBTFUL = rf"its gain is {NUMBER} {_SPAN} utility per 1,000 decisions, which chance could explain"
_CLEAR = rf"it (wins|loses) {NUMBER} {_SPAN} utility per 1,000 decisions"
_ORDER = rf"Recalibration keeps the order of the scores, and changes only which of them reach {NUMBER}"
_BEST = r"Of the scores in another order, (.+?) is worth most"
Holds = Callable[[Page, "re.Match[str]"], bool]


def _scores(page: Page) -> dict[str, dict[str, Any]]:
    return {each["method"] or "as it is": each for each in page.entry["at_capacity"]}


def _changes_nothing(page: Page, match: re.Match[str]) -> bool:
    return printed_as(match[1], page.entry["task"]["threshold"]) and _scores(page)["isotonic"]["gain"] == 0


def _is_best(page: Page, method: str) -> bool:
    others = {name: each["gain"] for name, each in _scores(page).items() if each["kind"] == "post-training"}
    return others[method] == max(gain for gain in others.values() if gain is not None)


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


AT_CAPACITY: dict[str, Holds] = {
    r"At capacity (\S+)\.": lambda page, match: match[1] == page.entry["capacity"],
    r"Questions, counts and gains above are for decisions without this limit\.": lambda page, _: True,
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
