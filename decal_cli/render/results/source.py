"""The source that every result states: files, columns, decision, intervals, signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from decal_cli.analysis.evaluate import Evaluation, resampled_cells
from decal_cli.data import Input
from decal_cli.metrics.bootstrap import RESAMPLES
from decal_cli.numbers import percent, plain
from decal_cli.render.results.by_row import RowTaskData, row_task_data, row_task_line
from decal_cli.render.schema import Count, Ends, Inside, Limit, Positive, Share
from decal_cli.tables.population import Population
from decal_cli.task import BinaryTask, ClassDecision, Task
from decal_cli.version import SCHEMA, __version__

MAX_NAMES = 8
"""Columns of one role that are listed by name."""
Utility = Annotated[list[Ends], Limit(minItems=2)]
"""A row for each action, in it a payoff for each label."""
Signature = Annotated[str, Limit(pattern="^decal:")]


class InputData(TypedDict):
    """A file that was read; positives: null where labels are of several classes."""

    path: str
    rows: Positive
    positives: Count | None
    sha256: Annotated[str, Limit(pattern="^[0-9a-f]{64}$")]


class TaskData(TypedDict):
    """The decision; utility: a row for each action, in it the payoff at label 0 and at label 1.

    threshold, decision_threshold: null where more than two actions are ever taken. thresholds: from each on, the next
    of the actions that are taken; dominated: those that never are. names: empty where the user gave none.
    """

    threshold: Inside | None
    decision_threshold: Share | None
    u_delta: Annotated[float, Limit(exclusiveMinimum=0)]
    utility: Utility
    thresholds: Annotated[list[Inside], Limit(minItems=1)]
    names: list[str]
    dominated: list[str]


class ClassTaskData(TypedDict):
    """The decision for rows of several classes; utility: a row for each action, in it the payoff at each class."""

    actions: list[str]
    utility: list[list[float]]


class IntervalsData(TypedDict):
    """How intervals were made; null where none were asked for. cells: on how many equal-mass cells tables with more
    levels were resampled, else null.
    """

    confidence: Inside
    seed: Count
    resamples: Positive
    cells: int | None


class PopulationData(TypedDict):
    """The population that rows are counted as. prevalence: its share of labels 1; sampled: that of the rows. scores:
    whether they were moved to it.
    """

    prevalence: Inside
    sampled: Inside
    scores: Literal["moved", "kept"]


class Provenance(TypedDict):
    """What every document says; row_task: only where rows have utilities of their own; population: only where rows are
    counted as those of another; capacity: as it was given, where so many rows can be acted on only.
    """

    schema: Literal[1]
    decal: str
    signature: Signature
    inputs: Annotated[list[InputData], Limit(minItems=1)]
    columns: dict[str, str | list[str]]
    notes: list[str]
    task: TaskData | None
    class_task: NotRequired[ClassTaskData]
    row_task: NotRequired[RowTaskData]
    intervals: IntervalsData | None
    population: NotRequired[PopulationData]
    capacity: NotRequired[str]


def provenance(evaluation: Evaluation) -> Provenance:
    """Inputs, columns, notes, task, and how intervals were made."""
    document: Provenance = {
        "schema": SCHEMA,
        "decal": __version__,
        "signature": evaluation.signature,
        "inputs": [input_data(item) for item in evaluation.inputs],
        "columns": {
            role: list(names) if isinstance(names, tuple) else names for role, names in evaluation.columns.items()
        },
        "notes": list(evaluation.notes),
        "task": None if evaluation.task is None else _task(evaluation.task),
        "intervals": _intervals(evaluation),
    }
    population = evaluation.population
    if population is not None:
        document["population"] = {
            "prevalence": population.prevalence,
            "sampled": population.sampled,
            "scores": "kept" if population.kept else "moved",
        }
    if evaluation.capacity is not None:
        document["capacity"] = evaluation.capacity.text
    if evaluation.by_row is not None:
        document["row_task"] = row_task_data(evaluation.by_row)
    decision = evaluation.decision
    if decision is not None:
        rows = [list(row) for row in decision.utility]
        document["class_task"] = {"actions": list(decision.actions), "utility": rows}
    return document


def input_data(item: Input) -> InputData:
    """A file as JSON has it."""
    return {"path": item.path, "rows": item.rows, "positives": item.positives, "sha256": item.sha256}


def one_or_several(shared: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The JSON document: every report whole in itself under "reports", and the fields of an only one flat as well."""
    reports = [{**shared, **entry} for entry in entries]
    return {**(reports[0] if len(reports) == 1 else shared), "reports": reports}


def pair(interval: tuple[float, float] | None) -> list[float] | None:
    """An interval as JSON has it."""
    return None if interval is None else list(interval)


def _task(task: Task) -> TaskData:
    two = task.two_actions
    return {
        "threshold": None if two is None else two.threshold,
        "decision_threshold": None if two is None else two.decision_threshold,
        "u_delta": task.u_delta,
        "utility": [list(row) for row in task.utility],
        "thresholds": list(task.thresholds),
        "names": list(task.names),
        "dominated": list(task.dominated),
    }


def _intervals(evaluation: Evaluation) -> IntervalsData | None:
    plan = evaluation.plan
    if not plan.intervals:
        return None
    cells = resampled_cells(evaluation)
    return {"confidence": plan.confidence, "seed": plan.seed, "resamples": RESAMPLES, "cells": cells}


def title_of(evaluation: Evaluation) -> str:
    """The title of a page."""
    return "decal: " + ", ".join(item.path for item in evaluation.inputs)


def source_lines(evaluation: Evaluation) -> list[str]:
    """What was read, which columns were taken, and the decision."""
    lines = [f"{item.path}: {item.rows:,} rows{_positives(item)}" for item in evaluation.inputs]
    columns = []
    for role, names in evaluation.columns.items():
        listed = names if isinstance(names, str) else _listed(names)
        columns.append(f"{role} {listed}{' (found by its usual name)' if role in evaluation.guessed else ''}")
    lines += ["; ".join(columns)] if columns else []
    lines += [task_line(evaluation.task)] if evaluation.task else []
    lines += [row_task_line(evaluation.by_row)] if evaluation.by_row else []
    lines += [_class_line(evaluation.decision)] if evaluation.decision else []
    lines += [_population_line(evaluation.population)] if evaluation.population else []
    lines += [_capacity_line(evaluation)] if evaluation.capacity else []
    return lines + list(evaluation.notes)


def _capacity_line(evaluation: Evaluation) -> str:
    """Which rows are acted on, in words."""
    assert evaluation.capacity is not None  # asked where there is one
    per = f" for each value of {evaluation.columns['per']}" if "per" in evaluation.columns else ""
    task = evaluation.plan.binary
    below = "" if task is None else f"; a row below {plain(task.decision_threshold)} is not, even if places are free"
    first = "with the highest scores" if evaluation.by_row is None else "where acting is expected to win most"
    return f"capacity {evaluation.capacity.text}{per}: the rows {first} are acted on{below}"


def _population_line(population: Population) -> str:
    """Where decisions are made, in words."""
    scores = "scores are kept as they are" if population.kept else "scores are moved to it"
    sampled, prevalence = percent(population.sampled), percent(population.prevalence)
    return f"rows, {sampled} positive, are counted as a population with {prevalence} positive; {scores}"


def _positives(item: Input) -> str:
    if item.positives is None:
        return ""
    return f", {item.positives:,} positive ({100 * item.positives / item.rows:.1f} %)"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= MAX_NAMES else f"{names[0]} … {names[-1]} ({len(names)} columns)"


def _class_line(decision: ClassDecision) -> str:
    """A task of several classes in words."""
    actions = ", ".join(decision.actions) if len(decision.actions) <= MAX_NAMES else f"{len(decision.actions)} actions"
    return f"the action worth most by the probabilities, of: {actions}"


def task_line(task: Task) -> str:
    """The decision in words."""
    rows = zip(task.names or ("",) * len(task.utility), task.utility, strict=True)
    utilities = "; ".join(f"{name} {plain(u0)}, {plain(u1)}".strip() for name, (u0, u1) in rows)
    never = f"; never best: {', '.join(task.dominated)}" if task.dominated else ""
    return f"{_acts(task)}{never}; utilities {utilities} (u_delta = {plain(task.u_delta)})"


def _acts(task: Task) -> str:
    """Which action is taken at which scores."""
    if isinstance(task, BinaryTask):
        at, best = plain(task.decision_threshold), plain(task.threshold)
        act = task.names[1] if task.names else "act"
        return f"{act} when score >= {at} (t*)" if at == best else f"{act} when score >= {at} (t* = {best})"
    first, *later = (f"{'' if task.names else 'action '}{task.actions[action]}" for action in task.envelope)
    starts = [f"{name} when score >= {plain(at)}" for name, at in zip(later, task.thresholds, strict=True)]
    return f"{first}; {'; '.join(starts)}"
