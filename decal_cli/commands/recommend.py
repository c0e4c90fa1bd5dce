"""One run of `decal recommend`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from decal_cli.analysis import recommend as recommending
from decal_cli.analysis.evaluate import all_choices
from decal_cli.commands.common import data_of, emit, plan_of, preferences_of, settings_of, terms_of
from decal_cli.commands.options import AdviceOptions, InputOptions, OutputOptions, TaskOptions
from decal_cli.commands.progress import progress_of
from decal_cli.errors import DecalError
from decal_cli.render.formats import format_for
from decal_cli.render.results.recommendation import Recommended

if TYPE_CHECKING:
    from decal_cli.methods import MethodSpec


def run(preferences: AdviceOptions, source: InputOptions, task: TaskOptions, out: OutputOptions) -> None:
    """Ask the questions, with methods fitted where that is wanted, and write the advice."""
    settings = settings_of(out)
    form = format_for(preferences.format, out.output, Recommended)
    choices = all_choices() if form == "json" else recommending.EVIDENCE
    plan = plan_of(choices, task, out, settings)
    plan = replace(plan, task=plan.two_actions("recommend"))
    if plan.task is None:
        raise DecalError(
            "a recommendation needs the decision it is for",
            "give --threshold, --utility, --cost-fp/--cost-fn or --odds, or a task in decal.toml",
        )
    wanted, terms = preferences_of(preferences, settings), terms_of(preferences, settings)
    methods = _methods(preferences.method)
    data = data_of(source, settings, out.output)
    with progress_of() as progress:
        if preferences.trying or methods:
            recommendation = recommending.try_methods(data, plan, wanted, progress, methods)
        else:
            recommendation = recommending.recommend(data, plan, wanted, progress)
    emit(Recommended(recommendation, terms), form, out)


def _methods(texts: Sequence[str]) -> tuple[MethodSpec, ...]:
    if not texts:
        return ()
    from decal_cli.methods import parse

    return tuple(map(parse, texts))
