"""The Python API: evaluate and recommend, on arrays and data frames."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from decal_cli.analysis import evaluate as evaluating
from decal_cli.analysis import recommend as recommending
from decal_cli.analysis.evaluate import Plan, Report, all_choices
from decal_cli.analysis.flowchart import Advice
from decal_cli.data import Columns, Dataset, from_arrays
from decal_cli.data.words import text_of
from decal_cli.declarations.defaults import CONFIDENCE, SEED
from decal_cli.errors import DecalError
from decal_cli.metrics import Result, parse
from decal_cli.render.formats import write
from decal_cli.render.page import Page
from decal_cli.render.results.evaluation import Evaluated
from decal_cli.render.results.recommendation import Recommended
from decal_cli.roles import DECLARATIONS, DEFAULTS, ROLES
from decal_cli.task import SPELLINGS, BinaryTask, task_of


@dataclass(frozen=True, eq=False)
class Answer:
    """What a verb returned: results by key, the advice where it was asked for, and the forms the command writes."""

    result: Evaluated | Recommended

    @property
    def reports(self) -> tuple[Report, ...]:
        """One report for each model and group."""
        return self.result.evaluation.reports

    @property
    def advice(self) -> Advice:
        """The advice on the only report, or on the first of several (`result.recommendation.advice` has them all)."""
        if not isinstance(self.result, Recommended):
            raise DecalError("no advice was asked for", "call recommend()")
        return self.result.recommendation.advice[0]

    def __getitem__(self, key: str) -> Result:
        """The result of a metric, by its JSON key, of the only report (several: use `reports`)."""
        if len(self.reports) != 1:
            raise DecalError(f"there are {len(self.reports)} reports", "pick one: answer.reports[0].results[key]")
        return self.reports[0].results[key]

    def to_dict(self) -> dict[str, Any]:
        """The JSON document as plain data."""
        return self.result.data()

    def to_text(self, format: str = "table", width: int = 100) -> str:
        """The text the command would print: table, csv, html, json or markdown."""
        return str(write(self.result, format, Page(width=width)))

    def __str__(self) -> str:
        return self.to_text()


def evaluate(
    data: Any,
    label: Any = None,
    *,
    metrics: Sequence[str] = (),
    confidence: float = CONFIDENCE,
    seed: int = SEED,
    intervals: bool = True,
    **given: Any,
) -> Answer:
    """Measure scores against labels.

    data: scores, shape (T,) in [0, 1], with `label` of shape (T,); or a data frame (pandas, polars, pyarrow, or a
    mapping of arrays), where `score`, `label`, `weight`, `group` and `features` then name columns as on the command
    line. With arrays, `weight`, `group` (or a mapping of names to arrays) and `features`, shape (T, d), are arrays too.
    The task is given as threshold=, utility=, cost_fp= and cost_fn=, or odds=; also decision_threshold=.
    metrics: keys such as 'ece(bins=20)', by default all. Raises DecalError for what cannot be evaluated.

    >>> answer = evaluate([0.2, 0.8, 0.6, 0.1], [0, 1, 1, 0], threshold=0.5)
    >>> answer["brier"].value
    0.0625
    """
    dataset, task = _inputs(data, label, given)
    choices = tuple(parse(text) for text in metrics) or all_choices()
    return Answer(Evaluated(evaluating.evaluate(dataset, Plan(choices, task, confidence, seed, intervals))))


def recommend(
    data: Any,
    label: Any = None,
    *,
    cost: float | Mapping[str, float] | None = None,
    satisfied_at: float | None = None,
    tolerance: float | None = None,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
    **given: Any,
) -> Answer:
    """Walk from "is this model suboptimal for my decision?" to an action, a method and its gain.

    data, label and the task as for `evaluate`; a task is required. cost: utility per decision that post-training
    costs, or {'recalibrate': .., 'post-train': ..}; satisfied_at: expected utility that is good enough; tolerance:
    regret per decision too small to matter.
    """
    dataset, task = _inputs(data, label, given)
    if task is None:
        raise DecalError("a recommendation needs the decision it is for", "give threshold=, utility=, costs or odds=")
    costs = {} if cost is None else cost if isinstance(cost, Mapping) else dict.fromkeys(recommending.COSTED, cost)
    preferences = recommending.Preferences.parse(
        [f"{name}={value}" for name, value in costs.items()], None, satisfied_at, tolerance
    )
    plan = Plan(all_choices(), task, confidence, seed)
    return Answer(Recommended(recommending.recommend(dataset, plan, preferences)))


_NAMED = ("score", *(name for name in DECLARATIONS if name not in ROLES))
"""What names columns or says how they are read; the other roles may be arrays too."""


def _inputs(data: Any, label: Any, given: dict[str, Any]) -> tuple[Dataset, BinaryTask | None]:
    if unknown := sorted(given.keys() - _keywords().keys()):
        raise TypeError(f"unexpected argument {unknown[0]!r}")
    task = task_of(**{name: given[name] for name in SPELLINGS if name in given})
    named = {name: given[name] for name in _NAMED if name in given}
    if "score" in named:
        named["score"] = (named["score"],) if isinstance(named["score"], str) else tuple(named["score"])
    named["positive"] = text_of(named.get("positive"))
    roles = {name: given[name] for name in ROLES if name in given and name not in named}
    return from_arrays(data, label, columns=Columns(**named), **roles), task


def _keywords() -> dict[str, Any]:
    """What every function here takes of columns and task beside the labels, with what holds where it is not given."""
    columns = {name: default for name, default in DEFAULTS.items() if name != "label"}
    return columns | dict.fromkeys(SPELLINGS)


def _say_keywords(function: Callable[..., Any]) -> None:
    """Let help() and completion show the keywords of columns and task one by one."""
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in _keywords().items()
    ]
    function.__signature__ = signature.replace(parameters=[*own, *shared])  # type: ignore[attr-defined]


_say_keywords(evaluate)
_say_keywords(recommend)
