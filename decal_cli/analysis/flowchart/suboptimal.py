"""Question 1 of the flowchart: is there anything to win?"""

from __future__ import annotations

from decal_cli.analysis.flowchart.advice import Step
from decal_cli.analysis.flowchart.evidence import (
    BEYOND,
    NEW_THRESHOLD,
    POST_TRAINING,
    RECALIBRATION,
    SIGNAL,
    SMOOTHED,
    WORST_CASE,
    Answer,
    Evidence,
)
from decal_cli.numbers import PER_DECISION, alike, plain

_SUBJECT = {
    RECALIBRATION: "recalibration",
    BEYOND: "using the features (beyond recalibration)",
    POST_TRAINING: "recalibration and the features together",
}
_SIGNS = {RECALIBRATION: NEW_THRESHOLD, BEYOND: SIGNAL}
"""What may show that there is such a gain before its interval does."""


def suboptimal(evidence: Evidence) -> Step:
    """Question 1, regret > 0."""
    gains = {metric: evidence.gain(metric) for metric in (RECALIBRATION, BEYOND, POST_TRAINING)}
    shown = [RECALIBRATION, BEYOND, POST_TRAINING] if evidence.features else [RECALIBRATION, WORST_CASE]
    clear = [metric for metric in (RECALIBRATION, BEYOND) if gains[metric] == "yes"]
    if not clear and gains[POST_TRAINING] == "yes":
        clear = [POST_TRAINING]
    answer: Answer
    if clear:
        answer = "yes"
    elif gains[RECALIBRATION] == "no" and (gains[BEYOND] == "no" or _harmless(evidence)):
        answer = "no"
    else:
        answer = "unknown"
    small = bool(clear) and all(evidence.small(metric) for metric in clear)
    reason = _clear_reason(evidence, clear, small) if clear else _other_reason(evidence, answer)
    question = "Does acting on the score lose utility that post-training can win?"
    if answer == "unknown":
        shown += [sign for metric, sign in _SIGNS.items() if _held_back(evidence, metric)]
        if evidence.smooths:
            shown.insert(1, SMOOTHED)
    # Several classes have no worst case.
    items = tuple(evidence.item(metric) for metric in shown if metric in evidence.items or metric != WORST_CASE)
    return Step(question, answer, reason, items, small)


def _harmless(evidence: Evidence) -> bool:
    """Whether even the worst case of what features could win lies within the tolerance."""
    interval = evidence.item(WORST_CASE).interval
    return not evidence.features and interval is not None and interval[1] <= evidence.tolerated


def _clear_reason(evidence: Evidence, clear: list[str], small: bool) -> str:
    subjects = " and ".join(_SUBJECT[metric] for metric in clear)
    verb = "improve" if len(clear) > 1 or clear == [POST_TRAINING] else "improves"
    text = f"On held-out rows, {subjects} {verb} utility: the interval lies above 0."
    return f"{text} The gain is small: at most {limit_text(evidence)}, the tolerance." if small else text


def _other_reason(evidence: Evidence, answer: Answer) -> str:
    limit = limit_text(evidence)
    if answer == "no" and evidence.features:
        return f"Neither recalibration nor the features would win more than {limit}, the tolerance."
    if answer == "no":
        return f"Recalibration would win at most {limit}, the tolerance, and features no more even in the worst case."
    return " ".join(_doubts(evidence, limit))


def _doubts(evidence: Evidence, limit: str) -> list[str]:
    """Why it is unknown whether there is anything to win, a sentence for each gain."""
    sentences = []
    for metric in (RECALIBRATION, BEYOND) if evidence.features else (RECALIBRATION,):
        item, subject = evidence.item(metric), _SUBJECT[metric]
        if item.interval is None:
            sentences.append(f"The gain of {subject} is unknown: it {item.reason or 'has no interval'}.")
        elif item.interval[1] <= evidence.tolerated:
            sentence = f"The gain of {subject} is at most {limit}, the tolerance"
            sentences.append(sentence + (_but(evidence, metric) if _held_back(evidence, metric) else "."))
        else:
            sentences.append(
                f"The gain of {subject} could be 0 or more than {limit}, the tolerance: there are too few rows to tell."
            )
    if not evidence.features:
        sentences.append("What features would add to the score is unknown: none were named.")
    return sentences


def _held_back(evidence: Evidence, metric: str) -> bool:
    """Whether only a sign of this gain keeps it from being too small to matter."""
    interval = evidence.item(metric).interval
    return evidence.gain(metric) == "unknown" and interval is not None and interval[1] <= evidence.tolerated


def _but(evidence: Evidence, metric: str) -> str:
    if metric == BEYOND:
        p_value = evidence.item(SIGNAL).value or 0.0
        what = f"the features clearly say more than the score (p-value {p_value:.2g})"
    else:
        interval = evidence.item(NEW_THRESHOLD).interval or (0.0, 1.0)
        low, high, now = alike((*interval, evidence.acts_from or 0.0))
        what = f"the best threshold to act from, {low} to {high}, is clearly not {now}"
    return f", by these rows. But {what}, and more rows may show more to win."


def limit_text(evidence: Evidence) -> str:
    """The tolerance as it stands in a sentence."""
    return f"{plain(evidence.tolerated)} {PER_DECISION}"
