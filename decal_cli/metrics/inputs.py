"""What a metric may ask for, declared once, and how each kind of it is made from rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from decal_cli.errors import Undefined
from decal_cli.hints import NEEDS_FEATURES, NEEDS_TASK, Hint
from decal_cli.learn.class_folds import ClassProbed, Recalibrated, build_class_probe, build_recalibrated
from decal_cli.learn.held_out import ByAmount, build_by_amount
from decal_cli.learn.probe import Probed, build_probe
from decal_cli.learn.regions import Regions, build_regions
from decal_cli.metrics.decisions import Acting, Change, Decisions
from decal_cli.metrics.held_out import Featured, Recalibrating
from decal_cli.metrics.numerics.at_capacity import AtCapacity, RowsAtCapacity, TaskAtCapacity, WorthAtCapacity
from decal_cli.metrics.numerics.label_shift import ReferenceScores
from decal_cli.metrics.regret_cells import ClassRegrets, Regrets, ScoreRegrets, StakesRegrets
from decal_cli.tables.aggregated import NEEDS_ROWS
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.row_utilities import RowUtilities, utilities_of
from decal_cli.tables.rows import Rows
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import Table
from decal_cli.task import BinaryTask, RowTask, Task
from decal_cli.task.classes import ClassDecision


class InputKind(NamedTuple):
    """One kind of input, which a metric asks for by annotating a parameter with its type.

    name: what the user gives for it. absent: why a metric is undefined where the user did not give it; empty where it
    is always there. build: makes it of what the user gave, None where that is not enough; Undefined, with its reason,
    where what was given is of another kind.
    """

    name: str
    absent: str
    build: Callable[[Inputs], Any]


OF_TASK = (Task, RowUtilities, ByAmount, WorthAtCapacity, Decisions, Change, Regrets)
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
        others._built = {Table if isinstance(value, Table) else type(value): value for value in built}
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
        utilities: RowUtilities | None = inputs.get(RowUtilities)
        return None if utilities is None else Decisions.of_rows(utilities).with_unseen()
    if inputs.of_classes:
        c, decision = inputs.all_of((ClassTable, ClassDecision))
        return Decisions.of_classes(c, decision).with_unseen()
    t, task = inputs.get(Table), inputs.task
    return None if t is None or task is None else Decisions.of_table(t, task)


def _regrets(inputs: Inputs) -> Regrets | None:
    if inputs.row_task is not None:
        utilities: RowUtilities | None = inputs.get(RowUtilities)
        return None if utilities is None else StakesRegrets(utilities)
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


def _row_utilities(inputs: Inputs) -> RowUtilities | None:
    """Of the rows in an order that depends on their content alone, as folds of them need it."""
    task = inputs.row_task
    if inputs.rows is None or task is None:
        return None
    return row_utilities(inputs.rows.in_order(), task)


def row_utilities(rows: Rows, task: RowTask) -> RowUtilities:
    """The utilities of rows, in their order."""
    return RowUtilities(rows, utilities_of(rows.amounts, task.cost_fp, task.cost_fn, task.factor))


def rows_at_capacity(utilities: RowUtilities, task: RowTask) -> RowsAtCapacity | None:
    """The same where so many of the rows can be acted on only; None where there is no limit."""
    listed = utilities.rows.listed
    return None if listed is None else RowsAtCapacity(utilities, listed, row_utilities(listed.lists.rows, task))


def _rows_at_capacity(inputs: Inputs) -> RowsAtCapacity | None:
    utilities: RowUtilities | None = inputs.get(RowUtilities)
    return None if utilities is None or inputs.row_task is None else rows_at_capacity(utilities, inputs.row_task)


def _worth_at_capacity(inputs: Inputs) -> WorthAtCapacity | None:
    if inputs.row_task is not None:
        of_rows: RowsAtCapacity | None = inputs.get(RowsAtCapacity)
        return of_rows
    at, task = inputs.all_of((AtCapacity, BinaryTask))
    return TaskAtCapacity(at, task)


def _recalibrating(inputs: Inputs) -> Recalibrating | None:
    if inputs.row_task is not None:
        utilities: RowUtilities | None = inputs.get(RowUtilities)
        return None if utilities is None else Recalibrating.of_rows(utilities, inputs.seed)
    if inputs.of_classes:
        c, decision, recalibrated = inputs.all_of((ClassTable, ClassDecision, Recalibrated))
        return Recalibrating.of_classes(Decisions.of_classes(c, decision), decision, recalibrated)
    t, task = inputs.get(Table), inputs.task
    return None if t is None or task is None else Recalibrating.of_table(t, task, inputs.seed)


def _featured(inputs: Inputs) -> Featured | None:
    if inputs.of_classes:
        c, decision, *learned = inputs.all_of((ClassTable, ClassDecision, Recalibrated, ClassProbed))
        return Featured.of_classes(Decisions.of_classes(c, decision), decision, *learned)
    stakes = inputs.task if inputs.row_task is None else inputs.get(RowUtilities)
    return None if stakes is None else Featured.of_scores(inputs.all_of((Probed,))[0], stakes)


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
