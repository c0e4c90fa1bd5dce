"""One run of `decal recommend`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from decal_cli.analysis import recommend as recommending
from decal_cli.api.asking import preferences_of
from decal_cli.api.nouns import Costs, Decision, Statistics
from decal_cli.commands.common import data_of, emit, plan_of, settings_of, terms_of
from decal_cli.commands.options.common import InputOptions, OutputOptions
from decal_cli.commands.options.judging import AdviceOptions
from decal_cli.commands.progress import progress_of
from decal_cli.render.formats import format_for
from decal_cli.render.results.recommendation import Recommended
from decal_cli.render.terms import StatedTerms

if TYPE_CHECKING:
    from decal_cli.learn.method import MethodSpec


def run(
    advice: AdviceOptions,
    costs: Costs,
    terms: StatedTerms,
    source: InputOptions,
    task: Decision,
    sure: Statistics,
    out: OutputOptions,
) -> None:
    """Ask the questions, with methods fitted where that is wanted, and write the advice."""
    settings = settings_of(out)
    form = format_for(advice.format, out.output, Recommended)
    plan = plan_of((), task, sure, settings, source)
    if not plan.decides:
        raise recommending.NO_DECISION
    terms = terms_of(terms, settings)
    wanted, methods = preferences_of(costs, terms), _methods(advice.method)
    data = data_of(source, settings, out.output, None if advice.trying or methods else plan.edges)
    plan = replace(plan, choices=recommending.evidence_choices(bool(data.classes), every=form == "json"))
    with progress_of() as progress:
        if advice.trying or methods:
            recommendation = recommending.try_methods(data, plan, wanted, progress, methods)
        else:
            recommendation = recommending.recommend(data, plan, wanted, progress)
    emit(Recommended(recommendation, terms), form, out)


def _methods(texts: Sequence[str]) -> tuple[MethodSpec, ...]:
    if not texts:
        return ()
    from decal_cli.learn.methods import parse

    return tuple(map(parse, texts))
