"""A sweep in which a number of the task varies, from the keywords of the verb."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decal_cli.analysis.varied import series_for, sweep_tasks
from decal_cli.api.answer import Question, VariedAnswer
from decal_cli.api.inputs import terms_of
from decal_cli.render.results.varied import VariedCurves
from decal_cli.task import parse_varied


def varied_answer(question: Question, asked: Mapping[str, Any]) -> VariedAnswer:
    """What decisions are worth at each value of vary=, by default of the price of abstention."""
    varied = None if asked["vary"] is None else parse_varied(asked["vary"])
    costs = asked["cost_matrix"] is not None or asked["cost_fp"] is not None
    series = series_for(question.data, question.plan, varied, costs)
    return VariedAnswer(
        VariedCurves(sweep_tasks(question.data, question.plan, series), terms=terms_of(asked)), question.library
    )
