"""Does a page of `decal recommend` follow from its own numbers? A reader that knows only the JSON and the printed text.

Every sentence must be one that this reader knows (tests/helpers/sentences.py), with a condition that the numbers of the
JSON fulfil: a sentence that it does not know counts as a contradiction, so that new wording needs a new condition.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from tests.helpers.capacity_sentences import AT_CAPACITY
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
from tests.helpers.sentences import SENTENCES

ACTIONS = {"recalibrate": "isotonic", "post-train": "blend"}
RUNGS = {
    "always decide 0": ("eu_never",),
    "always decide 1": ("eu_always",),
    "act on the score as it is": ("expected_utility",),
    "act on the recalibrated score": ("expected_utility", RECALIBRATION),
    "act on score and features": ("expected_utility", RECALIBRATION, BEYOND),
}
COUNTED = {"as it is": "as_is", "recalibrated": "recalibrated", "with features": "with_features"}
_LINES = re.MULTILINE | re.DOTALL


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
        if not printed_as(line[1], expected):
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
            if len(numbers) != len(expected) or not all(map(printed_as, numbers, expected)):
                yield f"{title} is printed as {line}, but is {expected}"


def _counts(page: Page, text: str) -> Iterator[str]:
    """The table of decisions is that of the JSON, each step adds up, and what changes is what the gain says."""
    counts, threshold, u_delta = page.entry["counts"], *(page.entry["task"][key] for key in ("threshold", "u_delta"))
    total, before = counts["rows"], None
    text = text[text.find("\nDecisions, of ") :]
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
        if not all(printed_as(one, 1000 * other / total) for one, other in zip(printed, expected, strict=False)):
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
    now = re.findall(r"^Now: (.*?)(?=^\s*$)", text, _LINES)
    if len(now) != 1:
        yield f"(said {len(now)} times) what to do now"
    for line in now:
        yield from _split(" ".join(line.split()))
    yield from _on_capacity(text)


def _on_capacity(text: str) -> Iterator[str]:
    for line in re.findall(r"^At capacity .*?(?=^\s*$)", text, _LINES):
        yield from _split(" ".join(line.split()))


def capacity_contradictions(entry: dict[str, Any], text: str) -> list[str]:
    """What is said of a limited capacity that does not follow, on any page; at least one sentence is said."""
    page, sentences = Page(entry), list(_on_capacity(text))
    problems = {sentence: _unfounded(page, sentence) for sentence in sentences}
    unfounded = [f"{problem}: {sentence}" for sentence, problem in problems.items() if problem is not None]
    return unfounded if sentences else ["nothing is said of the capacity"]


def _split(text: str) -> list[str]:
    return re.split(r"(?<=\.) (?=[A-Z`])", text)


def _unfounded(page: Page, sentence: str) -> str | None:
    """Why a sentence does not follow from the numbers; None where it does."""
    for pattern, holds in (SENTENCES | AT_CAPACITY).items():
        match = re.fullmatch(pattern, sentence)
        if match is not None:
            return None if holds(page, match) else "does not follow from the numbers"
    return "a sentence that nobody checks"
