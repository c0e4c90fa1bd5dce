"""The decision task: a utility matrix with a row for each action, its thresholds, and every spelling of it."""

from decal_cli.task.actions import (
    ABSTAIN,
    MAX_DIGITS,
    BinaryTask,
    ClassDecision,
    Matrix,
    Task,
    UtilityRows,
    need_two_actions,
    task_of_rows,
)
from decal_cli.task.by_row import RowTask, row_task_of
from decal_cli.task.classes import ClassTask
from decal_cli.task.spelling import SPELLINGS, parse_odds, parse_utility, task_of, utility_text
from decal_cli.task.varied import (
    CAPACITY,
    PREVALENCE,
    TaskSeries,
    Varied,
    by_entry,
    by_factor,
    by_prevalence,
    by_price,
    parse_capacities,
    parse_prevalences,
    parse_varied,
    stepped,
)

Decision = Task | ClassDecision | RowTask
"""Of scores of two classes; of several classes, which are known; or with utilities of each row."""
GivenDecision = Task | ClassTask | RowTask
"""The same before it is known which classes the rows are of."""

__all__ = [
    "ABSTAIN",
    "CAPACITY",
    "MAX_DIGITS",
    "PREVALENCE",
    "SPELLINGS",
    "BinaryTask",
    "ClassDecision",
    "ClassTask",
    "Decision",
    "GivenDecision",
    "Matrix",
    "RowTask",
    "Task",
    "TaskSeries",
    "UtilityRows",
    "Varied",
    "by_entry",
    "by_factor",
    "by_prevalence",
    "by_price",
    "need_two_actions",
    "parse_capacities",
    "parse_odds",
    "parse_prevalences",
    "parse_utility",
    "parse_varied",
    "row_task_of",
    "stepped",
    "task_of",
    "task_of_rows",
    "utility_text",
]
