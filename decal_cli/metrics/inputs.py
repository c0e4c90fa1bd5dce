"""What metrics are asked of: rows, a decision on them, and a seed. Their parts are made when one asks for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from decal_cli.errors import Undefined
from decal_cli.hints import NEEDS_FEATURES, NEEDS_TASK, Hint
from decal_cli.learn.forward import Forward
from decal_cli.learn.held_out import FlagByCost, build_by_amount
from decal_cli.learn.models import Applied, actions_taken
from decal_cli.learn.probe import ClassProbed, Probed, Recalibrated, build_class_probe, build_probe, build_recalibrated
from decal_cli.learn.regions import Regions, build_regions
from decal_cli.metrics.at_capacity import AtCapacity, RowsAtCapacity, WorthAtCapacity
from decal_cli.metrics.decisions import Acting, Change, Decisions, Featured, Recalibrating
from decal_cli.metrics.label_shift import ReferenceScores
from decal_cli.metrics.regret_cells import ClassRegrets, Regrets, RowRegrets, ScoreRegrets
from decal_cli.tables.aggregated import COUNTS_HAVE_NONE, NEEDS_ROWS
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.row_utilities import RowStakes, RowUtilities, utilities_of
from decal_cli.tables.rows import Rows
from decal_cli.tables.seed import Seed
from decal_cli.tables.selection import Selection
from decal_cli.tables.table import ONE_LABEL, Table
from decal_cli.tables.utilities import Utilities
from decal_cli.task import BinaryTask, ClassDecision, Decision, RowTask, Task


class InputKind(NamedTuple):
    """What a metric asks for by annotating a parameter with its type.

    name: what the user gives for it. absent: why a metric is undefined where the user did not give it; empty where it
    is always there. make: makes it. decides: whether it has to be made anew for another decision, or another table.
    """

    name: str
    absent: str
    make: Callable[[Inputs], Any]
    decides: bool = False


T = TypeVar("T")
C = TypeVar("C", bound=Change)
OF_CLASSES = ClassTable, ClassDecision
NOT_OF_SCORES = "is for scores of two classes"
NO_CLASSES = f"needs a probability for each of several classes: {Hint('proba')}"
NEEDS_CLASS_TASK = f"needs a task: {Hint('utility')} with a column for each class, or {Hint('abstain')}"
NO_CAPACITY = f"needs a capacity: {Hint('capacity')}"
NO_TIME = f"needs the time of rows: {Hint('time').words}"
NO_REFERENCE = f"needs a reference: evaluate {Hint('reference')}"
NO_ROWS_AT_CAPACITY = (
    f"needs utilities of each row and a capacity: {Hint('capacity')}, and {Hint('amount')} or other columns of them"
)
NO_UTILITIES = (
    f"needs utilities of each row: {Hint('amount')}, {Hint('cost_fn_column')}, "
    f"{Hint('cost_fp_column')} or {Hint('utility_columns')}"
)


class Inputs:
    """Rows, None where only parts of them are there; the decision on them, None where there is none; and a seed."""

    def __init__(self, rows: Rows | None = None, decision: Decision | None = None, seed: int = 0) -> None:
        self.rows = rows
        self.decision = decision
        self.seed = seed
        self._made: dict[type, Any] = {}
        self._locks: dict[type, threading.RLock] = {}
        self._source = self

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_locks": {}}

    @classmethod
    def of(cls, *parts: object, seed: int = 0) -> Inputs:
        """Parts that are there already, such as a table, and a decision on them; None counts as not given."""
        return cls(seed=seed).override(*parts)

    def at(self, decision: Decision | None) -> Inputs:
        """These inputs with another decision; all that does not depend on it is shared."""
        return self._sharing(
            decision, {kind: made for kind, made in self._made.items() if not INPUT_KINDS[kind].decides}
        )

    def override(self, *parts: object) -> Inputs:
        """These inputs with other parts of the same kinds; what follows from a table is made anew, the rest shared."""
        decision = next((part for part in parts if isinstance(part, Decision)), self.decision)
        given = [part for part in parts if part is not None and not isinstance(part, Decision)]
        kinds = (next((base for base in (Table, RowStakes) if isinstance(part, base)), type(part)) for part in given)
        return self._sharing(decision, dict(zip(kinds, given, strict=True)))

    def _sharing(self, decision: Decision | None, made: dict[type, Any]) -> Inputs:
        others = Inputs(self.rows, decision, self.seed)
        others._made, others._source = made, self
        return others

    @property
    def of_classes(self) -> bool:
        """Whether the rows have a probability for each of several classes."""
        if self._source is not self:
            return ClassTable in self._made or self._source.of_classes
        return self.rows is not None and bool(self.rows.classes)

    @property
    def by_row(self) -> bool:
        """Whether every row has utilities of its own."""
        return isinstance(self.decision, RowTask)

    @property
    def in_time(self) -> bool:
        """Whether fits learn from earlier rows only."""
        return self.rows is not None and self.rows.in_time

    @property
    def task(self) -> Task | None:
        """The decision, where it is one on scores of two classes that all rows share."""
        return self.decision if isinstance(self.decision, Task) else None

    def get(self, kind: type[T]) -> T:
        """The part of this kind. Errors: Undefined, with what the user did not give, or why there is none."""
        # Two threads that measure ask for the same parts: the later one waits until the part is made.
        with self._locks.setdefault(kind, threading.RLock()):
            if kind not in self._made:
                part = INPUT_KINDS[kind]
                source = self if part.decides else self._source
                self._made[kind] = part.make(self) if source is self else source.get(kind)
            return self._made[kind]

    def find(self, kind: type[T]) -> T | None:
        """The part of this kind; None where there is none."""
        try:
            return self.get(kind)
        except Undefined:
            return None

    def all_of(self, kinds: Sequence[type]) -> list[Any]:
        """The parts of these kinds. Errors: Undefined."""
        return [self.get(kind) for kind in kinds]

    @property
    def table(self) -> Table | None:
        """The table, where rows are of two classes and there is one."""
        return None if self.of_classes else self.find(Table)

    def rows_or(self, reason: str, there: bool = True) -> Rows:
        """The rows. Errors: Undefined, with this reason, where they are not there, or are not these."""
        if self.rows is None or not there:
            raise Undefined(reason)
        return self.rows

    def of_scores(self, reason: str = NEEDS_ROWS) -> Rows:
        """Rows of two classes, each with a score. Errors: Undefined, with this reason where there are no rows."""
        if self.of_classes:
            raise Undefined(NOT_OF_SCORES)
        return self.rows_or(reason)

    @property
    def of_several(self) -> Rows:
        """Rows with probabilities of several classes. Errors: Undefined."""
        return self.rows_or(NO_CLASSES, self.of_classes)

    @property
    def stakes(self) -> Any:
        """What decisions are worth, of whichever kind. Errors: Undefined, where there is no decision on these rows."""
        if self.by_row and self.rows is None and RowStakes not in self._made:
            raise Undefined(NEEDS_TASK)
        if self.by_row:
            return self.get(RowStakes)
        if self.of_classes:
            return self.all_of(OF_CLASSES)[1]
        return self.get(Task)


def _featured(rows: Rows) -> Rows:
    if not rows.has_features:
        raise Undefined(COUNTS_HAVE_NONE if rows.counted else NEEDS_FEATURES)
    return rows


def _scored_features(q: Inputs) -> Rows:
    return _featured(q.of_scores(NEEDS_FEATURES))


def _decision(q: Inputs, kind: type[T], absent: str) -> T:
    if not isinstance(q.decision, kind):
        raise Undefined(absent)
    return q.decision


def _two_actions(q: Inputs) -> BinaryTask:
    task = q.get(Task)
    if task.two_actions is None:
        raise Undefined(f"needs a task of two actions, and this one has {len(task.envelope)}")
    return task.two_actions


def _row_stakes(q: Inputs) -> RowStakes:
    """Stakes of the rows in an order that depends on their content alone, as folds of them need it."""
    task, rows = _decision(q, RowTask, NO_UTILITIES), q.rows_or(NO_UTILITIES)
    # Folds of several classes know the order of content themselves.
    return row_stakes(rows if q.of_classes else rows.in_order(), task)


def _row_utilities(q: Inputs) -> RowUtilities:
    stakes = q.get(RowStakes)
    if not isinstance(stakes, RowUtilities):
        raise Undefined("needs two actions and labels 0 and 1")
    return stakes


def _each_row(q: Inputs) -> Decisions:
    """The decisions with a unit for each row, and no units for a row that could have been missed."""
    return Decisions.of_rows(q.stakes) if q.by_row else Decisions.of_classes(*q.all_of(OF_CLASSES))


def _decisions(q: Inputs) -> Decisions:
    stakes = q.stakes
    return Decisions.of_table(q.get(Table), stakes) if isinstance(stakes, Task) else _each_row(q).with_unseen()


def _regrets(q: Inputs) -> Regrets:
    if q.by_row:
        rows = q.stakes.rows
        return ClassRegrets(rows.class_table, q.stakes) if rows.classes else RowRegrets(q.stakes)
    return q.get(ClassRegrets) if q.of_classes else q.get(ScoreRegrets)


def _forward(q: Inputs) -> Forward:
    """The fits to earlier rows, on the rows in the order that their stakes have."""
    rows = q.rows_or(NO_TIME, q.in_time)
    return Forward(rows if q.of_classes else rows.in_order(), q.seed)


def _learned(make: Callable[[Inputs, Any], C], q: Inputs) -> C:
    """A change for these stakes. Errors: Undefined, where rows of one label teach nothing but which action pays."""
    change = make(q, q.stakes)
    label = change.before.units.label
    if label.min() == label.max():
        raise Undefined(ONE_LABEL)
    return change


def _recalibrating(q: Inputs, stakes: Any) -> Recalibrating:
    if q.in_time:
        return Recalibrating.forward(q.get(Forward), stakes)
    if q.of_classes:
        return Recalibrating.of_classes(_each_row(q), stakes, q.get(Recalibrated))
    return Recalibrating.of_rows(stakes, q.seed) if q.by_row else Recalibrating.of_table(q.get(Table), stakes, q.seed)


def _using_features(q: Inputs, stakes: Any) -> Featured:
    if q.in_time:
        _featured(q.get(Forward).rows)
        return Featured.forward(q.get(Forward), stakes)
    if q.of_classes:
        return Featured.of_classes(_each_row(q), stakes, *q.all_of((Recalibrated, ClassProbed)))
    return Featured.of_scores(q.get(Probed), stakes)


def _with_lists(rows: Rows, reason: str = NO_CAPACITY) -> tuple[Rows, Selection]:
    if rows.selection is None:
        raise Undefined(reason)
    return rows, rows.selection


def _worth_at_capacity(q: Inputs) -> WorthAtCapacity:
    rows, _ = _with_lists(q.rows_or(NO_CAPACITY))
    if isinstance(q.decision, RowTask):
        # Two models that are compared have their utilities given, on rows in one order.
        return worth_at_capacity(q.get(RowStakes).rows, q.decision)
    return worth_at_capacity(rows, q.get(ClassDecision) if q.of_classes else q.get(Task))


def _rows_at_capacity(q: Inputs) -> RowsAtCapacity:
    _with_lists(q.rows_or(NO_ROWS_AT_CAPACITY, q.by_row), NO_ROWS_AT_CAPACITY)
    worth = q.get(WorthAtCapacity)
    if not isinstance(worth, RowsAtCapacity):
        raise Undefined("needs utilities of each row, of two actions and labels 0 and 1")
    return worth


def _acting(q: Inputs) -> Acting:
    if q.of_classes:
        raise Undefined(NOT_OF_SCORES)
    return Acting.of(q.get(Decisions))


def _reference(q: Inputs) -> ReferenceScores:
    raise Undefined(NO_REFERENCE)


INPUT_KINDS: dict[type, InputKind] = {
    Seed: InputKind("seed", "", lambda q: Seed(q.seed)),
    Table: InputKind("table", "", lambda q: q.of_scores().table),
    ClassTable: InputKind("class probabilities", NO_CLASSES, lambda q: q.of_several.class_table),
    Recalibrated: InputKind("class probabilities", NO_CLASSES, lambda q: build_recalibrated(q.of_several, seed=q.seed)),
    ClassProbed: InputKind(
        "features",
        NEEDS_FEATURES,
        lambda q: build_class_probe(_featured(q.of_several), q.get(Recalibrated), seed=q.seed),
    ),
    Forward: InputKind("time", NO_TIME, _forward),
    Regions: InputKind("features", NEEDS_FEATURES, lambda q: build_regions(_scored_features(q), seed=q.seed)),
    Probed: InputKind("features", NEEDS_FEATURES, lambda q: build_probe(_scored_features(q), seed=q.seed)),
    ReferenceScores: InputKind("reference", NO_REFERENCE, _reference),
    AtCapacity: InputKind("capacity", NO_CAPACITY, lambda q: AtCapacity(*_with_lists(q.of_scores(NO_CAPACITY)))),
    Task: InputKind("task", NEEDS_TASK, lambda q: _decision(q, Task, NEEDS_TASK), True),
    BinaryTask: InputKind("task of two actions", NEEDS_TASK, _two_actions, True),
    ClassDecision: InputKind(
        "task of classes", NEEDS_CLASS_TASK, lambda q: _decision(q, ClassDecision, NEEDS_CLASS_TASK), True
    ),
    RowStakes: InputKind("utilities of each row", NO_UTILITIES, _row_stakes, True),
    RowUtilities: InputKind("utilities of each row", NO_UTILITIES, _row_utilities, True),
    FlagByCost: InputKind(
        "utilities of each row", NO_UTILITIES, lambda q: build_by_amount(q.get(RowUtilities), seed=q.seed), True
    ),
    Decisions: InputKind("task", NEEDS_TASK, _decisions, True),
    Acting: InputKind("task of two actions", NEEDS_TASK, _acting, True),
    Regrets: InputKind("task", NEEDS_TASK, _regrets, True),
    ScoreRegrets: InputKind("task", NEEDS_TASK, lambda q: ScoreRegrets(*q.all_of((Table, Task))), True),
    ClassRegrets: InputKind("task of classes", NO_CLASSES, lambda q: ClassRegrets(*q.all_of(OF_CLASSES)), True),
    Recalibrating: InputKind("task", NEEDS_TASK, partial(_learned, _recalibrating), True),
    Featured: InputKind(
        "task and features", f"{NEEDS_TASK}; {NEEDS_FEATURES}", partial(_learned, _using_features), True
    ),
    WorthAtCapacity: InputKind("capacity", NO_CAPACITY, _worth_at_capacity, True),
    RowsAtCapacity: InputKind("utilities of each row and a capacity", NO_ROWS_AT_CAPACITY, _rows_at_capacity, True),
}
"""What a metric may ask for, by the type of its parameter."""


def row_stakes(rows: Rows, task: RowTask) -> RowStakes:
    """The utilities of rows, in their order."""
    utility = utilities_of(rows.amounts, task.cost_fp, task.cost_fn, task.factor, max(len(rows.classes), 2))
    # Rows of two classes that are written as such have probabilities, not a score.
    two = (len(utility), utility.classes) == (2, 2) and not rows.classes
    return RowUtilities(rows, utility) if two else RowStakes(rows, utility)


def stakes_on(rows: Rows, decision: Decision) -> RowStakes:
    """What each action is worth on rows, by a decision of whichever kind."""
    if isinstance(decision, RowTask):
        return row_stakes(rows, decision)
    return RowStakes(rows, Utilities.of(decision.undominated), decision.limited)


def decisions_on(rows: Rows, decision: Decision, applied: Applied | None = None) -> Decisions:
    """Decisions on rows by their score, or by what a model says of them. A unit is a row.

    Errors: Undefined, where the model moves one threshold of all rows, and each row has its own.
    """
    if not isinstance(decision, RowTask):
        action = actions_taken(rows.score, decision) if applied is None else applied.acts(decision)
        return Decisions(rows.units, Utilities.of(decision.undominated), action)
    if applied is not None and applied.threshold is not None:
        raise Undefined("moves one threshold of all rows, and here each row has its own")
    return Decisions.of_rows(row_stakes(rows, decision), None if applied is None else applied.score)


def worth_at_capacity(rows: Rows, decision: Decision) -> WorthAtCapacity:
    """What the places of rows, which have lists, are worth."""
    assert rows.selection is not None  # as it says
    both, two = (rows, rows.selection.lists.rows), decision.two_actions if isinstance(decision, Task) else None
    if two is not None:
        stakes, whole = (RowStakes(each, Utilities.of(two.utility)) for each in both)
    else:
        stakes, whole = (stakes_on(each, decision) for each in both)
    if isinstance(stakes, RowUtilities) and isinstance(whole, RowUtilities):
        return RowsAtCapacity(stakes, rows.selection, whole)
    return WorthAtCapacity(stakes, rows.selection, whole)
