"""What trying the methods showed: a table a round, and the flowchart entered again with the best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from decal_cli.analysis.flowchart import Advice
from decal_cli.analysis.recommend import Round
from decal_cli.analysis.tryout import Attempt
from decal_cli.render.contest import per_thousand
from decal_cli.render.numbers import DASH
from decal_cli.render.prose import ACTIONS
from decal_cli.tables.table import FOLDS

HEADINGS = ("method", "kind", "predicted", "achieved", "after cost", "processor")
"""Of the table of attempts; gains are per 1,000 decisions."""


def intro(number: int, found: Round) -> str:
    """What the table shows."""
    which = "Tried on" if number == 1 else "Started over with"
    return (
        f"{which} {found.score}, cross-fitted on {FOLDS} folds, so on rows that no model had seen: utility won per "
        "1,000 decisions over acting on this score as it is. Predicted: of the kind, before anything was fitted."
    )


def rows(found: Round) -> list[list[str]]:
    """Cells of the table of attempts, best first."""
    costly = any(attempt.cost for attempt in found.attempts)
    return [_row(attempt, attempt is found.best, costly) for attempt in found.attempts]


def _row(attempt: Attempt, chosen: bool, costly: bool) -> list[str]:
    predicted, achieved = attempt.predicted, attempt.achieved
    return [
        ("→ " if chosen else "  ") + attempt.chosen.key,
        attempt.chosen.method.kind,
        DASH if predicted.value is None else per_thousand(predicted.value, predicted.interval),
        DASH if achieved.value is None else per_thousand(achieved.value, achieved.interval),
        per_thousand(attempt.net) if costly and attempt.net is not None else "",
        f"{attempt.seconds:.2f} s",
    ]


def reasons(found: Round) -> Iterator[str]:
    """Why a method was not tried to the end."""
    told: dict[str, list[str]] = {}
    for attempt in found.attempts:
        if attempt.achieved.reason is not None:
            told.setdefault(attempt.achieved.reason, []).append(attempt.chosen.key)
    for reason, keys in told.items():
        yield f"{DASH} {', '.join(keys)}: {reason}"


def conclusion(rounds: Sequence[Round], number: int) -> Iterator[str]:
    """What follows from a round: the flowchart's new answer, or that nothing is left to win."""
    found = rounds[number - 1]
    if found.best is None or found.advice is None or found.report is None:
        if all(attempt.achieved.value is None for attempt in found.attempts):
            yield "No method could be tried on these rows, so nothing is said of what one would win."
            return
        yield "No method wins anything on rows held out: " + (
            f"stay with {found.score}." if number > 1 else "keep the score as it is."
        )
        return
    tried = sum(attempt.achieved.value is not None for attempt in found.attempts)
    if number == 1 and tried > 1:
        yield (
            f"The best of {tried} looks somewhat better than it is, since the same rows chose it: before it decides, "
            f"judge it on rows of their own (decal fit {found.best.chosen.key} --test FILE)."
        )
    cheaper = _as_good(found)
    if cheaper is not None:
        yield (
            f"{cheaper.chosen.key} is a function of the score alone and may be as good: on the same rows it wins "
            f"{_fewer(cheaper)} less per 1,000 decisions{_after(found)}."
        )
    action = ACTIONS[found.advice.action]
    yield f"Starting over with {found.report.model}: {action[:1].lower()}{action[1:]} {_why(found.advice)}"
    if number == len(rounds) and found.advice.action in ("recalibrate", "post-train"):
        yield "Here the trying ends; what is left is within the error of these rows, or needs other features."


def _why(advice: Advice) -> str:
    """The reason that the action goes by: what there is to win, or where that does not pay, the cost."""
    priced = [step.reason for step in advice.steps if step.question.endswith("worth its cost?")]
    return priced[-1] if advice.action == "do-not-post-train" and priced else advice.steps[0].reason


def _as_good(found: Round) -> Attempt | None:
    """The best recalibration where a costlier kind was best, and on the same rows the difference may be nothing."""
    best = found.best
    if best is None or best.chosen.method.kind == "recalibration":
        return None
    other = next((a for a in found.attempts if a.chosen.method.kind == "recalibration" and (a.net or 0) > 0), None)
    if other is None or other.behind is None or other.behind.interval is None:
        return None
    return other if other.behind.interval[0] <= 0 else None


def _fewer(attempt: Attempt) -> str:
    return "" if attempt.behind is None else per_thousand(attempt.behind.value or 0.0, attempt.behind.interval)


def _after(found: Round) -> str:
    return " after costs" if any(attempt.cost for attempt in found.attempts) else ""


def csv_rows(found: Mapping[str, Sequence[Round]]) -> Iterator[list[Any]]:
    """A heading, and a line for each method tried: by model, and by the score it was tried on."""
    yield [
        "model",
        "score",
        "method",
        "kind",
        "predicted",
        "predicted_low",
        "predicted_high",
        "achieved",
        "low",
        "high",
        "cost",
        "net",
        "seconds",
        "reason",
    ]
    for model, each in found.items():
        for one in each:
            for attempt in one.attempts:
                predicted, achieved = attempt.predicted, attempt.achieved
                first = [model, one.score, attempt.chosen.key, attempt.chosen.method.kind]
                gains = [predicted.value, *(predicted.interval or ("", ""))]
                gains += [achieved.value, *(achieved.interval or ("", ""))]
                yield [*first, *gains, attempt.cost, attempt.net, attempt.seconds, achieved.reason]


def document(rounds: Sequence[Round]) -> list[dict[str, Any]]:
    """The rounds as data."""
    return [
        {
            "score": found.score,
            "attempts": [_attempt(attempt) for attempt in found.attempts],
            "best": None if found.best is None else found.best.chosen.key,
            "action": None if found.advice is None else found.advice.action,
        }
        for found in rounds
    ]


def _attempt(attempt: Attempt) -> dict[str, Any]:
    def result(value: Any) -> dict[str, Any]:
        interval = None if value.interval is None else list(value.interval)
        return {"value": value.value, "interval": interval, "reason": value.reason}

    return {
        "method": attempt.chosen.key,
        "kind": attempt.chosen.method.kind,
        "predicted": result(attempt.predicted),
        "achieved": result(attempt.achieved),
        "cost": attempt.cost,
        "net": attempt.net,
        "behind": None if attempt.behind is None else result(attempt.behind),
        "seconds": attempt.seconds,
    }
