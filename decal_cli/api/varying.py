"""A sweep in which a number of the task varies, from the keywords of the verb."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decal_cli.analysis.capacities import capacity_series, largest, sweep_capacities
from decal_cli.analysis.varied import series_for, sweep_tasks
from decal_cli.api.answer import VariedAnswer
from decal_cli.api.inputs import capacity_text, terms_of
from decal_cli.api.question import Question
from decal_cli.render.results.varied import VariedCurves
from decal_cli.task import CAPACITY, parse_varied


def varied_answer(question: Question, asked: Mapping[str, Any]) -> VariedAnswer:
    """What decisions are worth at each value of vary=, by default of the price of abstention."""
    plan = question.plan.for_rows(question.data)
    varied = None if asked["vary"] is None else parse_varied(asked["vary"])
    if varied is not None and varied.name == CAPACITY:
        own = None if asked["own"] is None else capacity_text(asked["own"])
        series = capacity_series(question.data, plan, varied, own)
        sweep = sweep_capacities(question.data, plan, series)
    else:
        costs = asked["cost_matrix"] is not None or asked["cost_fp"] is not None
        series = series_for(question.data, plan, varied, costs)
        sweep = sweep_tasks(question.data, plan, series)
    return VariedAnswer(VariedCurves(sweep, terms=terms_of(asked)), question.library)


def limited(asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keywords, where capacities vary with the largest one as the capacity, and the user's own as own."""
    varied = None if asked["vary"] is None else parse_varied(asked["vary"])
    if varied is None or varied.name != CAPACITY:
        return asked
    return {**asked, "own": asked["capacity"], "capacity": largest(varied)}
