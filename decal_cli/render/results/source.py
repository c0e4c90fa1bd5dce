"""The source that every result states: files, columns, decision, intervals, signature."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import methodcaller
from typing import Annotated, Any, Literal, TypeVar

from decal_cli.analysis.described import ByRow
from decal_cli.analysis.evaluate import CAPACITY_FAMILIES, Evaluation, Report, known_in, resampled_cells
from decal_cli.data import Input
from decal_cli.data.words import grouped
from decal_cli.declarations.document import Above, Absent, Count, Inside, Limit, Positive, Share, Some
from decal_cli.hints import Hint, said
from decal_cli.metrics import parse
from decal_cli.metrics.confidence import RESAMPLES
from decal_cli.numbers import Interval, many, plain, shares_text
from decal_cli.render.blocks import Block, Blocks, Lines, Signature
from decal_cli.render.schema import Document, View, of
from decal_cli.render.terms import PLAIN, StatedTerms
from decal_cli.task import ABSTAIN, BinaryTask, ClassDecision, Task
from decal_cli.version import SCHEMA, __version__

MAX_GROUPS = 100
"""Groups of one model that a table shows."""
N_WORST = 20
"""How many groups of a model are shown, where there are more than MAX_GROUPS."""
IN_FULL = f"{Hint('format', 'json')} or csv"
T = TypeVar("T")
Order = tuple[Callable[[T], Any], str]
"""What groups are sorted by, the worst first, and the same in words."""
MAX_NAMES = 8
"""Columns of one role, or classes, that are listed by name."""


class TaskData(View):
    """The decision; utility: a row for each action, in it the payoff at label 0 and at label 1.

    threshold, decision_threshold: null where more than two actions are ever taken. thresholds: from each on, the next
    of the actions that are taken; dominated: those that never are. names: empty where the user gave none.
    """

    threshold: Inside | None = of("two_actions.threshold")
    decision_threshold: Share | None = of("two_actions.decision_threshold")
    u_delta: Above
    utility: Annotated[list[Interval], Limit(minItems=2)]
    thresholds: Some[Inside]
    names: list[str]
    dominated: list[str]


class ClassTaskData(View):
    """The decision for rows of several classes; utility: a row for each action, in it the payoff at each class."""

    actions: list[str]
    utility: list[list[float]]


class RowTaskData(View):
    """Utilities that differ from row to row. columns: their names by role. cost_fp, cost_fn: of every row, null where a
    column says it. u_delta: the mean over rows. thresholds: the lowest, the median and the highest t* between 0 and 1,
    null where there is none. never, always: rows on which acting never, or always, pays. least_amount: the cost of a
    miss from which acting on every row wins most on these rows, null where that never wins.
    """

    columns: dict[str, list[str]]
    cost_fp: float | None = of("task.cost_fp")
    cost_fn: float | None = of("task.cost_fn")
    u_delta: float
    thresholds: Annotated[list[Inside], Limit(minItems=3, maxItems=3)] | None
    never: Count
    always: Count
    least_amount: float | None


class IntervalsData(View):
    """How intervals were made; null where none were asked for. cells: on how many equal-mass cells tables with more
    levels were resampled, else null.
    """

    confidence: Inside = of("plan.confidence")
    seed: Count = of("plan.seed")
    resamples: Positive = of(lambda *_: RESAMPLES)
    cells: int | None = of(lambda evaluation, *_: resampled_cells(each.levels for each in evaluation.reports))


class PopulationData(View):
    """The population that rows are counted as. prevalence: its share of labels 1, of several classes that of each;
    sampled: that of the rows. scores: whether they were moved to it.
    """

    prevalence: Inside | dict[str, Inside]
    sampled: Inside | dict[str, Inside]
    scores: Literal["moved", "kept"] = of(lambda population, *_: "kept" if population.kept else "moved")


class Provenance(View):
    """What every document says; row_task: only where rows have utilities of their own; population: only where rows are
    counted as those of another; capacity: as it was given, where so many rows can be acted on only.
    """

    schema: Literal[1] = of(lambda *_: SCHEMA)
    decal: str = of(lambda *_: __version__)
    signature: Annotated[str, Limit(pattern="^decal:")]
    inputs: Some[Input]
    columns: dict[str, str | list[str]]
    notes: list[str]
    task: TaskData | None
    intervals: IntervalsData | None = of(lambda evaluation, *_: evaluation if evaluation.plan.intervals else None)
    population: Absent[PopulationData | None]
    capacity: Absent[str | None] = of("capacity.text")
    row_task: Absent[RowTaskData | None] = of("by_row")
    class_task: Absent[ClassTaskData | None] = of("decision")


def one_or_several(shared: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> Document:
    """The JSON document: every report whole in itself under "reports", and the fields of an only one flat as well."""
    reports = [{**shared, **entry} for entry in entries]
    return {**(reports[0] if len(reports) == 1 else shared), "reports": reports}


def ends_of(estimate: Any) -> Sequence[float | None]:
    """The ends of its interval, for two cells of CSV."""
    return estimate.interval or (None, None)


class WrittenResult:
    """What a command returns, for formats to write.

    evaluation: what it rests on. terms: how amounts are written. drawing: pictures in characters to put below. seconds:
    how long it took. apart: the signature stands apart from what is above it.
    """

    drawing: Sequence[Block] = ()
    seconds = 0.0
    apart = False

    def __init__(self, evaluation: Evaluation, terms: StatedTerms = PLAIN) -> None:
        self.evaluation = evaluation
        self.terms = terms
        self.title = "decal: " + ", ".join(item.path for item in evaluation.inputs)

    @property
    def signature(self) -> str:
        """What one must know to reproduce it."""
        return self.evaluation.signature

    @abstractmethod
    def sections(self) -> Blocks:
        """What it says, in reading order."""

    def blocks(self) -> Blocks:
        """All that it says, and how to reproduce it."""
        yield from self.sections()
        yield Signature(self.signature, close=not self.apart)
        yield from self.drawing


def source_lines(evaluation: Evaluation, actions: Sequence[str] | None = None) -> Lines:
    """What was read, which columns were taken, and the decision; actions: names that the user gave them."""
    for item in evaluation.inputs:
        positives = item.positives
        labels, share = item.rows - item.unlabelled, ""
        if positives is not None and labels:
            of = f" of {labels:,} with a label" if item.unlabelled else ""
            share = f", {positives:,} positive{of} ({100 * positives / labels:.1f} %)"
        yield f"{item.path}: {many(item.rows, 'row')}{share}"
    if evaluation.columns:
        yield "; ".join(
            f"{role} {listed(names)}{' (found by its usual name)' if role in evaluation.guessed else ''}"
            for role, names in evaluation.columns.items()
        )
    task, population = evaluation.task, evaluation.population
    if actions and isinstance(task, BinaryTask):
        task = replace(task, names=tuple(actions))
    if task is not None:
        yield task_line(task)
    if evaluation.by_row is not None:
        yield row_task_line(evaluation.by_row)
    if evaluation.decision is not None:
        yield _class_line(evaluation.decision)
    if population is not None:
        scores = "scores are kept as they are" if population.kept else "scores are moved to it"
        here, there = map(shares_text, (population.sampled, population.prevalence))
        yield f"rows, {here}, are counted as a population with {there}; {scores}"
    if evaluation.limit:
        yield _capacity_line(evaluation)
    yield from evaluation.notes


def _capacity_line(evaluation: Evaluation) -> str:
    """Which rows are acted on, in words."""
    task, text = evaluation.plan.binary, f"capacity {evaluation.limit}"
    limited = limited_actions(evaluation)
    if limited is not None:
        return f"{text}: so many rows can get {limited}, those where that is expected to win most"
    below = "" if task is None else f"; a row below {plain(task.decision_threshold)} is not, even if places are free"
    first = "where acting is expected to win most" if evaluation.plan.by_row else "with the highest scores"
    return f"{text}: the rows {first} are acted on{below}"


def without_limit_lines(evaluation: Evaluation, keys: Iterable[str]) -> Lines:
    """Which of these metrics are of decisions without the limit, where so many rows can be acted on only."""
    if not evaluation.limit:
        return
    metrics = {key: parse(key).declared for key in keys}
    limited = [key for key, each in metrics.items() if each.family in CAPACITY_FAMILIES]
    by_row, classes = evaluation.plan.by_row, evaluation.reports[0].of_classes
    others = [key for key, each in metrics.items() if key not in limited and each.on(classes, by_row).decides]
    if others:
        but = f", but for {', '.join(limited)}" if limited else ""
        which = ", ".join(others) if len(others) <= MAX_NAMES else f"metrics that depend on the decision{but}"
        yield f"{which}: of decisions without the limit of {evaluation.limit}"


def limited_actions(evaluation: Evaluation) -> str | None:
    """The actions that need a place, in words; None where there are two actions for labels 0 and 1."""
    task, decision, by_row = evaluation.plan.task, evaluation.decision, evaluation.by_row
    if decision is not None:
        limited = decision.limited
        return f"{decision.actions[limited[0]]!r}" if limited else f"another action than {decision.actions[0]!r}"
    if "proba" in evaluation.columns and by_row is None:
        return repr(ABSTAIN)  # whose price varies
    if task is not None and task.two_actions is None:
        return f"another action than {task.taken[0]!r}"
    return None if by_row is None or by_row.to_act_or_not else "another action than the first"


def listed(names: str | Sequence[str]) -> str:
    """Columns of a role, by name where they are few."""
    if isinstance(names, str):
        return names
    return ", ".join(names) if len(names) <= MAX_NAMES else f"{names[0]} … {names[-1]} ({len(names)} columns)"


def _class_line(decision: ClassDecision) -> str:
    """A task of several classes in words."""
    actions = ", ".join(decision.actions) if len(decision.actions) <= MAX_NAMES else f"{len(decision.actions)} actions"
    worth = class_payoffs(decision)
    return f"the action worth most by the probabilities, of: {actions}{f'; {worth}' if worth else ''}"


def class_payoffs(decision: ClassDecision) -> str:
    """What actions on several classes are worth, in words; '' where that is a table."""
    classes = len(decision.utility[0])
    own = {row[k] for k, row in enumerate(decision.utility[:classes])}
    others = {row[j] for k, row in enumerate(decision.utility[:classes]) for j in range(classes) if j != k}
    more = decision.utility[classes:]
    if len(own) != 1 or len(others) != 1 or len(decision.utility) < classes or any(len(set(row)) > 1 for row in more):
        return ""
    named = [f"{name} {plain(row[0])}" for name, row in zip(decision.actions[classes:], more, strict=True)]
    return ", ".join([f"the right class is worth {plain(*own)}, a wrong one {plain(*others)}", *named])


def task_line(task: Task) -> str:
    """The decision in words."""
    never = f"; never {', '.join(task.dominated)}" if task.dominated else ""
    return f"{_acts(task)}{never}: {payoffs(task)}"


def payoffs(task: Task) -> str:
    """What the actions win or cost, in words."""
    if isinstance(task, BinaryTask) and task.utility[0][0] == task.utility[1][1] == 0 and not task.names:
        return "a false alarm costs {}, a miss {}".format(*map(plain, task.costs))
    rows = zip(task.actions, task.utility, strict=True)
    return "; ".join(f"{name} is worth {plain(u0)} at label 0, {plain(u1)} at label 1" for name, (u0, u1) in rows)


def _acts(task: Task) -> str:
    """Which action is taken at which scores."""
    if isinstance(task, BinaryTask):
        at, best = plain(task.decision_threshold), plain(task.threshold)
        act = task.names[1] if task.names else "act"
        return f"{act} when score >= {at} (t*)" if at == best else f"{act} when score >= {at} (t* = {best})"
    first, *later = (f"{'' if task.names else 'action '}{action}" for action in task.taken)
    starts = [f"{name} when score >= {plain(at)}" for name, at in zip(later, task.thresholds, strict=True)]
    return f"{first}; {'; '.join(starts)}"


def _rows_where(what: str, count: int) -> str:
    return f"; {many(count, 'row')} where {what}" if count else ""


def row_task_line(by_row: ByRow) -> str:
    """Utilities of rows in words."""
    if not by_row.to_act_or_not:
        actions, classes = by_row.shape
        rows = _rows_where("one action is best whatever the class", by_row.never + by_row.always)
        said = f"the action worth most by the score and the utilities of the row, of {actions} at {classes} classes"
        return f"{said}{rows} (mean u_delta = {plain(by_row.u_delta)})"
    thresholds, follows = "no row has a threshold between 0 and 1", "from its four utilities"
    if by_row.thresholds is not None:
        low, middle, high = map(plain, by_row.thresholds)
        thresholds = f"t* from {low} to {high}, median {middle}"
    if "utility_columns" not in by_row.columns:
        alarm, miss = costs_of_rows(by_row)
        follows = f"{alarm} / ({alarm} + {miss})"
    never, always = _rows_where("acting never pays", by_row.never), _rows_where("acting always pays", by_row.always)
    said = f"act when score >= t* of the row, {follows}: {thresholds}{never}{always}"
    return f"{said} (mean u_delta = {plain(by_row.u_delta)})"


def costs_of_rows(by_row: ByRow, price: Callable[[float], str] = plain) -> tuple[str, str]:
    """What a false alarm and a miss cost: a column, or what all rows share as `price` writes it."""
    columns, task = by_row.columns, by_row.task
    alarm, miss = columns.get("cost_fp_column"), columns.get("amount") or columns.get("cost_fn_column")
    return alarm[0] if alarm else price(task.cost_fp or 0.0), miss[0] if miss else price(task.cost_fn or 0.0)


def worst_of_each(
    results: Sequence[Any],
    order_of: Callable[[Sequence[Any]], Order[Any] | None],
    whose: Callable[[Any], str] = lambda result: str(result.model),
    in_full: str = IN_FULL,
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """The results of each model with all its groups, or with the worst where a table cannot show all; and notes.

    Results on all rows stay. order_of: the order of many groups of one model; None keeps all of them. whose: the model,
    or what else a result belongs to. in_full: what shows all groups.
    """
    shown: list[Any] = []
    notes: list[str] = []
    for name, of_name in grouped((whose(result), result) for result in results).items():
        groups = [result for result in of_name if result.group is not None]
        order = order_of(groups) if len(groups) > MAX_GROUPS else None
        if order is None:
            shown += of_name
            continue
        place, by = order
        shown += [result for result in of_name if result.group is None] + sorted(groups, key=place)[:N_WORST]
        notes.append(
            f"{name + ': ' if name else ''}the table shows the {N_WORST} worst of {len(groups):,} groups by {by};"
            f" {said(in_full)} has all of them"
        )
    return tuple(shown), tuple(notes)


def lowest_first(value: float | None) -> tuple[bool, float]:
    """To sort by; what has no value comes last."""
    return value is None, value or 0.0


def shortened(evaluation: Evaluation, in_full: str = IN_FULL) -> Evaluation:
    """With the worst groups of a model that has more than a table shows, worst first, and a note about the rest."""
    reports, notes = worst_of_each(evaluation.reports, _by_metric, in_full=in_full)
    return evaluation if not notes else replace(evaluation, reports=reports, notes=(*evaluation.notes, *notes))


def _by_metric(reports: Sequence[Report]) -> Order[Report] | None:
    """By what acting on the score loses, else by the first metric that has a best."""
    for key in known_in(reports, ("regret", "regret_calibration", *reports[0].results)):
        metric = parse(key).declared
        if metric.better in ("lower", "higher"):
            return worst_first(key, methodcaller("value", key)), metric.title
    return None


def worst_first(key: str, value_of: Callable[[Any], float | None]) -> Callable[[Any], Any]:
    """To sort by a metric."""
    higher = parse(key).declared.better == "higher"

    def place(result: Any) -> tuple[bool, float]:
        missing, value = lowest_first(value_of(result))
        return missing, value if higher else -value

    return place
