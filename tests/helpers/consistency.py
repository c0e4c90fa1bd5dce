"""Does a page of `decal recommend` follow from its own numbers? A reader that knows only the JSON and the printed text.

Every sentence must be one that this reader knows (tests/helpers/sentences.py), with a condition that the numbers of the
JSON fulfil: a sentence that it does not know counts as a contradiction, so that new wording needs a new condition.
"""

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

from tests.helpers.page import (
    BEYOND,
    NUMBER,
    POST_TRAINING,
    RECALIBRATION,
    ROUNDED,
    SUBJECTS,
    Page,
    printed_as,
    says,
    unfounded,
)
from tests.helpers.sentences import AT_CAPACITY, SENTENCES

ACTIONS = {"recalibrate": "isotonic", "post-train": "blend"}
RUNGS = {
    "best constant action": ("expected_utility", "external_regret"),
    "never act": ("eu_never",),
    "always act": ("eu_always",),
    "score as it is": ("expected_utility",),
    "recalibrated": ("expected_utility", RECALIBRATION),
    "with features": ("expected_utility", RECALIBRATION, BEYOND),
}
COUNTED = {"score as it is": "as_is", "recalibrated": "recalibrated", "with features": "with_features"}
_LINES = re.MULTILINE | re.DOTALL


def contradictions(entry: dict[str, Any], text: str) -> list[str]:
    """What one model's JSON and its printed text, unwrapped, say that does not follow from the numbers."""
    page = Page(entry)
    found = [*_chain(page), *_action(page), *_worth(page, text), *_evidence(page, text), *_counts(page, text)]
    return found + _of_sentences(page, _sentences(page, text))


def _of_sentences(page: Page, sentences: Iterable[str]) -> list[str]:
    problems = ((unfounded(SENTENCES | AT_CAPACITY, page, each), each) for each in sentences)
    return [f"{problem}: {each}" for problem, each in problems if problem is not None]


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
    if advice["method"] != (ACTIONS | {"recalibrate": recalibrator(page)}).get(action):
        yield f"the action {action} names the method {advice['method']}"
    if action in ACTIONS:
        measured = page[page.method_gain(ACTIONS[action])]
        if advice["gain"] != measured.value or advice["interval"] != [measured.low, measured.high]:
            yield f"the gain of {action} is not the gain of the chain: {advice['gain']}, {measured.value}"
        if not any(page.clear(metric) for metric in SUBJECTS.values()):
            yield f"{action} without a gain above 0"
        own = measured.low > 0 and measured.high <= page.tolerance
        if advice["small"] != (own or advice["path"][0]["small"]):
            yield "small disagrees with the tolerance"
    constant = advice["constant"]
    lead = page["external_regret"].value
    if not math.isnan(page["eu_never"].value):
        lead = max(page["eu_never"].value, page["eu_always"].value) - page["expected_utility"].value
    if (constant is not None) != (lead >= -ROUNDED * max(1.0, abs(page["expected_utility"].value))):
        yield f"constant {constant} that is {lead} ahead"


def _rows(text: str) -> dict[str, list[str]]:
    """The numbers behind each way of acting."""
    # A table that is too wide goes on below, without the column of worths.
    worths = "\n\n".join(part for part in text.split("\n\n") if "worth" in part)
    lines = {name: re.findall(rf"^{re.escape(name)} {{2,}}(.*)$", worths, re.MULTILINE) for name in RUNGS}
    # A table of what a limited capacity leaves comes before.
    return {name: re.findall(NUMBER, of_name[-1]) for name, of_name in lines.items() if of_name}


def _size_of(text: str) -> float:
    """What amounts above a table are in."""
    head = re.search(r"worth in (million|billion)", text)
    return 1.0 if head is None else {"million": 1e6, "billion": 1e9}[head[1]]


def recalibrator(page: Page) -> str:
    """The method that recalibrates: of several classes one of the scalings; few rows may have a logistic curve."""
    if page.entry.get("by_class") is not None:
        return str(page.advice["method"] or "isotonic")
    named = {page.advice["method"], page.advice["act_now"]["method"]}
    return "platt" if page.entry["rows"] < 1000 and "platt" in named else "isotonic"


def _worth(page: Page, text: str) -> Iterator[str]:
    """What each way of acting is worth is the chain."""
    rows = _rows(text)
    for name, parts in RUNGS.items():
        expected = 1000 * sum(page[part].value for part in parts)
        if name == "best constant action" and not math.isnan(page["eu_never"].value):
            continue
        if (name in rows) == math.isnan(expected):
            yield f"a row without its number, or the other way round: {name}"
        elif name in rows and not printed_as(rows[name][0], expected / _size_of(text)):
            yield f"{name} is worth {rows[name][0]}, not {expected}"


def _evidence(page: Page, text: str) -> Iterator[str]:
    """Each number under a question is that of the JSON."""
    titles = {
        "gain of recalibration": RECALIBRATION,
        "gain beyond recalibration": BEYOND,
        "gain of post-training": POST_TRAINING,
    }
    for title, metric in titles.items():
        for line in re.findall(rf"^ +{title}: (.*)$", text, re.MULTILINE):
            expected = [number for number in page[metric] if not math.isnan(number)]
            if not says(line, *expected):
                yield f"{title} is printed as {line}, but is {expected}"


def _counts(page: Page, text: str) -> Iterator[str]:
    """The table of decisions is that of the JSON, each step adds up, and what changes is what the gain says."""
    counts = page.entry["counts"]
    if counts is None:
        return
    shared = page.entry["task"] is not None
    threshold, u_delta = (page.entry["task"][key] for key in ("threshold", "u_delta")) if shared else (0.0, 0.0)
    total, before = counts["rows"], None
    rows = _rows(text)
    for (name, key), gain in zip(COUNTED.items(), (None, RECALIBRATION, BEYOND), strict=True):
        now = counts[key]
        if now is None:
            continue
        expected = [1000 * now[cell] / total for cell in ("acted", "false_positives", "false_negatives")]
        if not all(map(printed_as, rows.get(name, ["", "-1"])[1:], expected)):
            yield f"counts {name} are printed as {rows.get(name)}, but are {expected}"
        if gain is not None and before is not None and shared:
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
    """What is said first, the costs, reasons, and what follows, one sentence at a time."""
    flat = " ".join(text.split())
    for step in page.advice["path"]:
        yield from _split(step["reason"])
        if f"{step['number']}. {step['question']} {step['answer']}" not in flat or step["reason"] not in flat:
            yield f"(not printed) {step['reason']}"
    first, *others = re.findall(r"^→ (.*?)(?=^\s*$)", text, _LINES)
    if others:
        yield f"(said {1 + len(others)} times) what to do now"
    yield from _split(re.sub(r"Without the limit of \S+: ", "", " ".join(first.split())))
    end = re.split(r"^\d\. ", text, flags=re.MULTILINE)[-1].split("\n\n")[1]
    yield from _split(" ".join(end.split()))
    yield from re.findall(r"A false alarm \(.*?\d\.(?= |$)", flat)
    yield from _on_capacity(text)


def _on_capacity(text: str) -> Iterator[str]:
    for line in re.findall(r"^(?:→ )?At capacity .*?(?=Without the limit|^\s*$)", text, _LINES):
        yield from _split(" ".join(line.removeprefix("→ ").split()))


def capacity_contradictions(entry: dict[str, Any], text: str) -> list[str]:
    """What is said of a limited capacity that does not follow, on any page; at least one sentence is said."""
    page, sentences = Page(entry), list(_on_capacity(text))
    return _of_sentences(page, sentences) if sentences else ["nothing is said of the capacity"]


def _split(text: str) -> list[str]:
    return re.split(r"(?<=\.) (?=[A-Z`])", text.strip())
