"""What trying the methods showed: a table a round, and the flowchart entered again with the best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypedDict

from decal_cli.analysis.flowchart import Advice
from decal_cli.analysis.recommend import Round
from decal_cli.analysis.tryout import Trial
from decal_cli.data.words import shell_word
from decal_cli.metrics import Result
from decal_cli.numbers import DASH
from decal_cli.render.blocks import Block, Cell, Column, Conclusion, Notes, Paragraph, Row, Table
from decal_cli.render.cells import per_thousand, words
from decal_cli.render.results.source import pair
from decal_cli.render.schema import Ends
from decal_cli.tables.resample import FOLDS


class GainData(TypedDict):
    """Utility per decision with its interval; value null, and the reason, where it cannot be told."""

    value: float | None
    interval: Ends | None
    reason: str | None


class TrialData(TypedDict):
    """A method tried. behind: what it leaves behind the best one after costs, with the paired interval; null where it
    was not fitted.
    """

    method: str
    kind: Literal["recalibration", "post-training"]
    predicted: GainData
    achieved: GainData
    cost: float
    net: float | None
    behind: GainData | None
    seconds: float


class RoundData(TypedDict):
    """The methods tried on one score, the best first; the action that follows with the best one's score."""

    score: str
    attempts: list[TrialData]
    best: str | None
    action: str | None


def round_blocks(rounds: Sequence[Round]) -> Iterator[Block]:
    """Each round: what was tried on which score, what each method won, and what follows."""
    for number, each in enumerate(rounds, 1):
        yield Paragraph(_intro(number, each))
        yield trial_table(each)
        reasons = tuple(_reasons(each))
        if reasons:
            yield Notes(reasons, quiet=True, close=True)
        yield Conclusion("", tuple(_conclusion(rounds, number)))


def _intro(number: int, each: Round) -> str:
    which = "Tried on" if number == 1 else "Started over with"
    return (
        f"{which} {each.score}, cross-fitted in {FOLDS} folds: each gain is on held-out rows, in utility per 1,000 "
        "decisions over acting on this score as it is. Predicted: the expected gain of its kind, before any fit."
    )


def trial_table(each: Round) -> Table:
    """The methods, the best first; gains are per 1,000 decisions."""
    costly = any(trial.cost for trial in each.trials)
    columns = (
        Column("method", words=True),
        Column("kind", words=True, drops=2),
        Column("predicted"),
        Column("achieved"),
        Column("after cost", drops=0 if costly else 2),
        Column("processor", drops=1),
    )
    rows = (Row(_cells(trial, costly), chosen=trial is each.best) for trial in each.trials)
    return Table(columns, tuple(rows), picks=True)


def _cells(trial: Trial, costly: bool) -> tuple[Cell, ...]:
    net = trial.net if costly else None
    return (
        words(trial.chosen.key),
        words(trial.chosen.declared.kind),
        _gain(trial.predicted),
        _gain(trial.achieved),
        words("") if net is None else per_thousand(net),
        words(f"{trial.seconds:.2f} s"),
    )


def _gain(result: Result) -> Cell:
    return words(DASH) if result.value is None else per_thousand(result.value, result.interval)


def _reasons(each: Round) -> Iterator[str]:
    """Why a method was not tried to the end."""
    keys: dict[str, list[str]] = {}
    for trial in each.trials:
        if trial.achieved.reason is not None:
            keys.setdefault(trial.achieved.reason, []).append(trial.chosen.key)
    for reason, methods in keys.items():
        yield f"{DASH} {', '.join(methods)}: {reason}"


def _conclusion(rounds: Sequence[Round], number: int) -> Iterator[str]:
    """What follows from a round: the flowchart's new answer, or that nothing is left to win."""
    each = rounds[number - 1]
    if each.best is None or each.advice is None or each.report is None:
        if all(trial.achieved.value is None for trial in each.trials):
            yield "No method could be fitted to these rows, so their gains are unknown."
            return
        yield "No method wins anything on held-out rows: " + (
            f"stay with {each.score}." if number > 1 else "keep the score as it is."
        )
        return
    n_tried = sum(trial.achieved.value is not None for trial in each.trials)
    if number == 1 and n_tried > 1:
        yield (
            f"The best of {n_tried} looks a little better than it is, because the same rows chose it: evaluate it on "
            f"new rows before you use it (decal fit {shell_word(each.best.chosen.key)} --test FILE)."
        )
    cheaper = _as_good(each)
    if cheaper is not None and cheaper.behind is not None:
        behind = per_thousand(cheaper.behind.value or 0.0, cheaper.behind.interval).text
        after = " after costs" if any(trial.cost for trial in each.trials) else ""
        yield (
            f"{cheaper.chosen.key} needs only the score and may be as good: on the same rows it wins {behind} less "
            f"per 1,000 decisions{after}."
        )
    headline = each.advice.headline
    yield f"Starting over with {each.report.model}: {headline[:1].lower()}{headline[1:]} {_why(each.advice)}"
    if number == len(rounds) and each.advice.action in ("recalibrate", "post-train"):
        yield "Stopped: the remaining gains are within noise, or need other features."


def _why(advice: Advice) -> str:
    """The reason that the action goes by: what there is to win, or where that does not pay, the cost."""
    priced = [step.reason for step in advice.steps if step.question.endswith("worth its cost?")]
    return priced[-1] if advice.action == "do-not-post-train" and priced else advice.steps[0].reason


def _as_good(each: Round) -> Trial | None:
    """The best recalibration where a costlier kind was best, and on the same rows the difference may be nothing."""
    best = each.best
    if best is None or best.chosen.declared.kind == "recalibration":
        return None
    other = next((t for t in each.trials if t.chosen.declared.kind == "recalibration" and (t.net or 0) > 0), None)
    if other is None or other.behind is None or other.behind.interval is None:
        return None
    return other if other.behind.interval[0] <= 0 else None


def round_rows(rounds: Mapping[str, Sequence[Round]]) -> Iterator[list[Any]]:
    """A heading, and a row for each method tried: by model, and by the score it was tried on."""
    head = [
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
    ]
    yield [*head, "cost", "net", "seconds", "reason"]
    for model, of_model in rounds.items():
        for each in of_model:
            for trial in each.trials:
                predicted, achieved = trial.predicted, trial.achieved
                first = [model, each.score, trial.chosen.key, trial.chosen.declared.kind]
                gains = [predicted.value, *(predicted.interval or (None, None))]
                gains += [achieved.value, *(achieved.interval or (None, None))]
                yield [*first, *gains, trial.cost, trial.net, trial.seconds, achieved.reason]


def round_data(rounds: Sequence[Round]) -> list[RoundData]:
    """The rounds as JSON has them."""
    return [
        {
            "score": each.score,
            "attempts": [_trial_data(trial) for trial in each.trials],
            "best": None if each.best is None else each.best.chosen.key,
            "action": None if each.advice is None else each.advice.action,
        }
        for each in rounds
    ]


def _trial_data(trial: Trial) -> TrialData:
    return {
        "method": trial.chosen.key,
        "kind": trial.chosen.declared.kind,
        "predicted": _gain_data(trial.predicted),
        "achieved": _gain_data(trial.achieved),
        "cost": trial.cost,
        "net": trial.net,
        "behind": None if trial.behind is None else _gain_data(trial.behind),
        "seconds": trial.seconds,
    }


def _gain_data(result: Result) -> GainData:
    return {"value": result.value, "interval": pair(result.interval), "reason": result.reason}
