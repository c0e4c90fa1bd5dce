"""What a metric may ask for, declared once, and how each kind of it is made from rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.hints import NEEDS_FEATURES, NEEDS_TASK, Hint
from decal_cli.learn.class_folds import ClassProbed, Recalibrated, build_class_probe, build_recalibrated
from decal_cli.learn.held_out import ByAmount, build_by_amount
from decal_cli.learn.probe import Probed, build_probe
from decal_cli.learn.regions import Regions, build_regions
from decal_cli.metrics.decisions import Acting, Change, Decisions
from decal_cli.metrics.held_out import Featured, Recalibrating
from decal_cli.metrics.numerics.at_capacity import (
    AtCapacity,
    RowsAtCapacity,
    StakesAtCapacity,
    TaskAtCapacity,
    WorthAtCapacity,
)
from decal_cli.metrics.numerics.label_shift import ReferenceScores
from decal_cli.metrics.regret_cells import ClassRegrets, Regrets, ScoreRegrets, regrets_of_rows
from decal_cli.tables.aggregated import NEEDS_ROWS
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.row_utilities import RowStakes, RowUtilities, utilities_of
from decal_cli.tables.rows import Rows
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import Table
from decal_cli.task import BinaryTask, RowTask, Task
from decal_cli.task.classes import ABSTAIN, ClassDecision


class InputKind(NamedTuple):
    """One kind of input, which a metric asks for by annotating a parameter with its type.

    name: what the user gives for it. absent: why a metric is undefined where the user did not give it; empty where it
    is always there. build: makes it of what the user gave, None where that is not enough; Undefined, with its reason,
    where what was given is of another kind.
    """

    name: str
    absent: str
    build: Callable[[Inputs], Any]


OF_TASK = (Task, RowStakes, RowUtilities, ByAmount, WorthAtCapacity, Decisions, Change, Regrets)
"""Kinds that are others where the task, or the table, is another."""


class Inputs:
    """What metrics are computed from. Each kind of input is built when a metric first asks for it, and kept."""

    def __init__(
        self,
        rows: Rows | None = None,
        task: Task | None = None,
        seed: int = 0,
        class_decision: ClassDecision | None = None,
        row_task: RowTask | None = None,
    ) -> None:
        self.rows = rows
        self.task = task
        self.seed = seed
        self.class_decision = class_decision
        self.row_task = row_task
        self._built: dict[type, Any] = {}
        self._others: Inputs | None = None

    @property
    def of_classes(self) -> bool:
        """Whether the rows have a probability for each of several classes."""
        return ClassTable in self._built or (self.rows is not None and bool(self.rows.classes))

    @classmethod
    def of(cls, *inputs: object, seed: int = 0) -> Inputs:
        """Inputs that are there already, such as a table; None counts as not given."""
        return cls(seed=seed).having(*inputs)

    def having(self, *inputs: object) -> Inputs:
        """These in place of their kind; all other kinds are shared with the inputs as they were."""
        tasks = [value for value in inputs if isinstance(value, Task)]
        by_row = [value for value in inputs if isinstance(value, RowTask)]
        task, row_task = tasks[0] if tasks else self.task, by_row[0] if by_row else self.row_task
        others = Inputs(self.rows, task, self.seed, self.class_decision, row_task)
        built = (value for value in inputs if value is not None and not isinstance(value, (Task, RowTask)))
        bases = (Table, RowStakes)
        others._built = {next((k for k in bases if isinstance(value, k)), type(value)): value for value in built}
        others._others = self
        return others

    def of_rows(self, rows: Rows) -> Inputs:
        """Other rows, of which the same is asked."""
        return Inputs(rows, self.task, self.seed, self.class_decision, self.row_task)

    def get(self, kind: type) -> Any:
        """The input of this kind, None where the user did not give what it is made from."""
        if kind not in self._built:
            source = self if self._others is None or issubclass(kind, OF_TASK) else self._others
            self._built[kind] = INPUT_KINDS[kind].build(self) if source is self else source.get(kind)
        return self._built[kind]

    @property
    def table(self) -> Table | None:
        """The table, where rows are of two classes and there is one."""
        return None if self.of_classes else self.get(Table)

    def all_of(self, kinds: Sequence[type]) -> list[Any]:
        """The inputs of these kinds; Undefined says what the user did not give."""
        inputs = []
        for kind in kinds:
            inputs.append(self.get(kind))
            if inputs[-1] is None:
                raise Undefined(self._absent(kind))
        return inputs

    def _absent(self, kind: type) -> str:
        reason = INPUT_KINDS[kind].absent
        return NEEDS_ROWS if reason == NEEDS_FEATURES and self.rows is not None and self.rows.counted else reason


def _need_two_classes(inputs: Inputs) -> None:
    if inputs.of_classes:
        raise Undefined("is for scores of two classes")


def _of_features(build: Callable[..., Any]) -> InputKind:
    def from_rows(inputs: Inputs) -> Any:
        _need_two_classes(inputs)
        if inputs.rows is None or inputs.rows.features is None:
            return None
        return build(inputs.rows, seed=inputs.seed)

    return InputKind("features", NEEDS_FEATURES, from_rows)


def _recalibrated(inputs: Inputs) -> Recalibrated | None:
    if not inputs.of_classes or inputs.rows is None:
        return None
    return build_recalibrated(inputs.rows, seed=inputs.seed)


def _class_probed(inputs: Inputs) -> ClassProbed | None:
    if not inputs.of_classes or inputs.rows is None or inputs.rows.features is None:
        return None
    return build_class_probe(inputs.rows, inputs.get(Recalibrated), seed=inputs.seed)


NO_CLASSES = f"needs a probability for each of several classes: {Hint('proba')}"


def _table(inputs: Inputs) -> Table | None:
    _need_two_classes(inputs)
    return None if inputs.rows is None else inputs.rows.table


def _two_actions(inputs: Inputs) -> BinaryTask | None:
    task = inputs.task
    if task is not None and task.two_actions is None:
        raise Undefined(f"needs a task of two actions, and this one has {len(task.envelope)}")
    return None if task is None else task.two_actions


def _decisions(inputs: Inputs) -> Decisions | None:
    if inputs.row_task is not None:
        stakes: RowStakes | None = inputs.get(RowStakes)
        return None if stakes is None else Decisions.of_rows(stakes).with_unseen()
    if inputs.of_classes:
        c, decision = inputs.all_of((ClassTable, ClassDecision))
        return Decisions.of_classes(c, decision).with_unseen()
    t, task = inputs.get(Table), inputs.task
    return None if t is None or task is None else Decisions.of_table(t, task)


def _regrets(inputs: Inputs) -> Regrets | None:
    if inputs.row_task is not None:
        stakes: RowStakes | None = inputs.get(RowStakes)
        return None if stakes is None else regrets_of_rows(stakes)
    return inputs.all_of((ClassRegrets if inputs.of_classes else ScoreRegrets,))[0]


def _score_regrets(inputs: Inputs) -> ScoreRegrets | None:
    _need_two_classes(inputs)
    t, task = inputs.get(Table), inputs.task
    return None if t is None or task is None else ScoreRegrets(t, task)


def _acting(inputs: Inputs) -> Acting | None:
    _need_two_classes(inputs)
    decisions: Decisions | None = inputs.get(Decisions)
    return None if decisions is None else Acting.of(decisions)


def _at_capacity(inputs: Inputs) -> AtCapacity | None:
    _need_two_classes(inputs)
    rows = inputs.rows
    return None if rows is None or rows.listed is None else AtCapacity(rows, rows.listed)


NO_UTILITIES = (
    f"needs utilities of each row: {Hint('amount')}, {Hint('cost_fn_column')}, "
    f"{Hint('cost_fp_column')} or {Hint('utility_columns')}"
)


def _row_stakes(inputs: Inputs) -> RowStakes | None:
    """Of the rows in an order that depends on their content alone, as folds of them need it."""
    task = inputs.row_task
    if inputs.rows is None or task is None:
        return None
    # Folds of several classes know the order of content themselves.
    return row_stakes(inputs.rows if inputs.of_classes else inputs.rows.in_order(), task)


def _row_utilities(inputs: Inputs) -> RowUtilities | None:
    stakes: RowStakes | None = inputs.get(RowStakes)
    if stakes is not None and not isinstance(stakes, RowUtilities):
        raise Undefined("needs two actions and labels 0 and 1")
    return stakes


def row_stakes(rows: Rows, task: RowTask) -> RowStakes:
    """The utilities of rows, in their order."""
    utility = utilities_of(rows.amounts, task.cost_fp, task.cost_fn, task.factor, max(len(rows.classes), 2))
    # Rows of two classes that are written as such have probabilities, not a score.
    two = utility.shape[:2] == (2, 2) and not rows.classes
    return RowUtilities(rows, utility) if two else RowStakes(rows, utility)


def shared_stakes(rows: Rows, task: Task | ClassDecision) -> RowStakes:
    """The utilities of a task on rows."""
    if isinstance(task, Task):
        return RowStakes(rows, np.array(task.undominated))
    return RowStakes(rows, np.array(task.utility), needs_place(task))


def needs_place(decision: ClassDecision) -> tuple[int, ...]:
    """The actions that need a place, where there are so many: to abstain, if one may; () for all but the first."""
    reviewed = decision.actions[-1] == ABSTAIN and len(decision.actions) == len(decision.utility[0]) + 1
    return (len(decision.utility) - 1,) if reviewed else ()


def worth_at_capacity(rows: Rows, task: Task | ClassDecision | RowTask) -> WorthAtCapacity:
    """What the places of rows, which have lists, are worth."""
    assert rows.listed is not None  # as it says
    if isinstance(task, Task) and task.two_actions is not None:
        return TaskAtCapacity(AtCapacity(rows, rows.listed), task.two_actions)
    of_all = rows.listed.lists.rows
    if isinstance(task, RowTask):
        stakes, whole = row_stakes(rows, task), row_stakes(of_all, task)
        if isinstance(stakes, RowUtilities) and isinstance(whole, RowUtilities):
            return RowsAtCapacity(stakes, rows.listed, whole)
        return StakesAtCapacity(stakes, rows.listed, whole)
    return StakesAtCapacity(shared_stakes(rows, task), rows.listed, shared_stakes(of_all, task))


def _rows_at_capacity(inputs: Inputs) -> RowsAtCapacity | None:
    if inputs.row_task is None:
        return None
    worth: WorthAtCapacity | None = inputs.get(WorthAtCapacity)
    if worth is not None and not isinstance(worth, RowsAtCapacity):
        raise Undefined("needs utilities of each row, of two actions and labels 0 and 1")
    return worth


def _worth_at_capacity(inputs: Inputs) -> WorthAtCapacity | None:
    rows = inputs.rows
    if rows is None or rows.listed is None:
        return None
    task = inputs.row_task or (inputs.get(ClassDecision) if inputs.of_classes else inputs.task)
    if task is None:
        raise Undefined(INPUT_KINDS[ClassDecision if inputs.of_classes else Task].absent)
    # Two models that are compared have their utilities given, on rows in one order.
    return worth_at_capacity(inputs.get(RowStakes).rows if isinstance(task, RowTask) else rows, task)


def _recalibrating(inputs: Inputs) -> Recalibrating | None:
    stakes = _stakes(inputs)
    if stakes is None:
        return None
    if inputs.of_classes:
        recalibrated = inputs.all_of((Recalibrated,))[0]
        return Recalibrating.of_classes(_plain_decisions(inputs, stakes), stakes, recalibrated)
    if isinstance(stakes, RowStakes):
        return Recalibrating.of_rows(stakes, inputs.seed)
    t = inputs.get(Table)
    return None if t is None else Recalibrating.of_table(t, stakes, inputs.seed)


def _featured(inputs: Inputs) -> Featured | None:
    stakes = _stakes(inputs)
    if stakes is None:
        return None
    if inputs.of_classes:
        learned = inputs.all_of((Recalibrated, ClassProbed))
        return Featured.of_classes(_plain_decisions(inputs, stakes), stakes, *learned)
    return Featured.of_scores(inputs.all_of((Probed,))[0], stakes)


def _stakes(inputs: Inputs) -> Any:
    """The task, of whichever kind; None where there is none."""
    if inputs.row_task is not None:
        return inputs.get(RowStakes)
    return inputs.all_of((ClassTable, ClassDecision))[1] if inputs.of_classes else inputs.task


def _plain_decisions(inputs: Inputs, stakes: RowStakes | ClassDecision) -> Decisions:
    """The decisions on rows of several classes, and no row that could have been missed."""
    if isinstance(stakes, RowStakes):
        return Decisions.of_rows(stakes)
    return Decisions.of_classes(inputs.get(ClassTable), stakes)


def _by_amount(inputs: Inputs) -> ByAmount | None:
    utilities: RowUtilities | None = inputs.get(RowUtilities)
    return None if utilities is None else build_by_amount(utilities, seed=inputs.seed)


INPUT_KINDS: dict[type, InputKind] = {
    Table: InputKind("table", "", _table),
    ClassTable: InputKind(
        "class probabilities",
        NO_CLASSES,
        lambda inputs: inputs.rows.class_table if inputs.of_classes and inputs.rows is not None else None,
    ),
    ClassDecision: InputKind(
        "task of classes",
        f"needs a task: {Hint('utility')} with a column for each class, or {Hint('abstain')}",
        lambda inputs: inputs.class_decision,
    ),
    Recalibrated: InputKind("class probabilities", NO_CLASSES, _recalibrated),
    ClassProbed: InputKind("features", NEEDS_FEATURES, _class_probed),
    Task: InputKind("task", NEEDS_TASK, lambda inputs: inputs.task),
    BinaryTask: InputKind("task of two actions", NEEDS_TASK, _two_actions),
    Decisions: InputKind("task", NEEDS_TASK, _decisions),
    Regrets: InputKind("task", NEEDS_TASK, _regrets),
    ScoreRegrets: InputKind("task", NEEDS_TASK, _score_regrets),
    ClassRegrets: InputKind(
        "task of classes", NO_CLASSES, lambda inputs: ClassRegrets(*inputs.all_of((ClassTable, ClassDecision)))
    ),
    Acting: InputKind("task of two actions", NEEDS_TASK, _acting),
    AtCapacity: InputKind("capacity", f"needs a capacity: {Hint('capacity')}", _at_capacity),
    WorthAtCapacity: InputKind("capacity", f"needs a capacity: {Hint('capacity')}", _worth_at_capacity),
    ReferenceScores: InputKind("reference", f"needs a reference: evaluate {Hint('reference')}", lambda inputs: None),
    RowStakes: InputKind("utilities of each row", NO_UTILITIES, _row_stakes),
    RowUtilities: InputKind("utilities of each row", NO_UTILITIES, _row_utilities),
    RowsAtCapacity: InputKind(
        "utilities of each row and a capacity",
        f"needs utilities of each row and a capacity: {Hint('capacity')}, and {Hint('amount')} or other columns "
        "of them",
        _rows_at_capacity,
    ),
    Recalibrating: InputKind("task", NEEDS_TASK, _recalibrating),
    Featured: InputKind("task and features", NEEDS_TASK, _featured),
    ByAmount: InputKind("utilities of each row", NO_UTILITIES, _by_amount),
    Seed: InputKind("seed", "", lambda inputs: Seed(inputs.seed)),
    Regions: _of_features(build_regions),
    Probed: _of_features(build_probe),
}
