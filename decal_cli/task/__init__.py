"""The decision task: a utility matrix with a row for each action, its thresholds, and every spelling of it."""

from decal_cli.task.actions import (
    ABSTAIN,
    MAX_DIGITS,
    BinaryTask,
    ClassDecision,
    ClassTask,
    Decision,
    GivenDecision,
    RowTask,
    Task,
    UtilityRows,
    class_task,
    constant_words,
    few_names,
    need_two_actions,
    task_of_rows,
)
from decal_cli.task.spelling import SPELLINGS, abstaining, parse_odds, parse_utility, row_task_of, task_of, utility_text
from decal_cli.task.varied import (
    CAPACITY,
    PREVALENCE,
    TaskSeries,
    Varied,
    by_entry,
    by_factor,
    by_prevalence,
    by_price,
    parse_varied,
    stepped,
)
