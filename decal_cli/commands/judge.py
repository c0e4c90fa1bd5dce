"""One run of `decal evaluate`, `recommend`, `gate` or `metrics`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from decal_cli.analysis import evaluate as evaluating
from decal_cli.analysis import gate as gating
from decal_cli.analysis import recommend as recommending
from decal_cli.analysis.evaluate import all_choices, shown_choices
from decal_cli.analysis.gate import Baseline, baseline_of, outcome, parse_rule
from decal_cli.commands.common import WHOLE, data_of, emit, load_ahead, plan_of, preferences_of, settings_of
from decal_cli.commands.options import (
    AdviceOptions,
    GateOptions,
    InputOptions,
    OutputOptions,
    ReportOptions,
    TaskOptions,
)
from decal_cli.commands.progress import progress_of
from decal_cli.errors import DecalError, Exit
from decal_cli.metrics import parse
from decal_cli.render.results.evaluation import Evaluated
from decal_cli.render.results.explained import metric_explained, metric_list
from decal_cli.render.results.gates import Gated
from decal_cli.render.results.recommendation import Recommended

if TYPE_CHECKING:
    from decal_cli.methods import MethodSpec


def evaluate(source: InputOptions, task: TaskOptions, report: ReportOptions, out: OutputOptions) -> None:
    """`decal evaluate`."""
    settings = settings_of(out)
    everything = report.all_metrics or report.format in WHOLE
    chosen = tuple(parse(text) for text in report.metric)
    plan = replace(plan_of(chosen, task, out, settings), intervals=not report.no_intervals)
    load_ahead(chosen or (all_choices() if everything else ()))
    data = data_of(source, settings, out.output)
    plan = replace(plan, choices=chosen or (all_choices() if everything else shown_choices(data)))
    with progress_of() as progress:
        evaluation = evaluating.evaluate(data, plan, progress)
    emit(Evaluated(evaluation), report.format, out)


def recommend(source: InputOptions, task: TaskOptions, preferences: AdviceOptions, out: OutputOptions) -> None:
    """`decal recommend`."""
    settings = settings_of(out)
    choices = all_choices() if preferences.format == "json" else recommending.EVIDENCE
    plan = plan_of(choices, task, out, settings)
    if plan.task is None:
        raise DecalError(
            "a recommendation needs the decision it is for",
            "give --threshold, --utility, --cost-fp/--cost-fn or --odds, or a task in decal.toml",
        )
    wanted = preferences_of(preferences)
    methods = _methods(preferences.method)
    data = data_of(source, settings, out.output)
    with progress_of() as progress:
        if preferences.trying or methods:
            recommendation = recommending.try_methods(data, plan, wanted, progress, methods)
        else:
            recommendation = recommending.recommend(data, plan, wanted, progress)
    emit(Recommended(recommendation), preferences.format, out)


def _methods(texts: Sequence[str]) -> tuple[MethodSpec, ...]:
    if not texts:
        return ()
    from decal_cli.methods import parse as parse_method

    return tuple(map(parse_method, texts))


def gate(source: InputOptions, task: TaskOptions, gates: GateOptions, out: OutputOptions) -> Exit:
    """`decal gate`; returns the exit code."""
    settings = settings_of(out)
    texts = gates.rule or list(settings.gates)
    if not texts:
        raise DecalError("there is no rule to judge by", "give --rule 'regret<=0.02', or gates = [..] in decal.toml")
    rules = [parse_rule(text) for text in texts]
    baseline = _baseline(gates.baseline or settings.baseline)
    choices = tuple(dict.fromkeys(rule.choice for rule in rules))
    plan = replace(plan_of(choices, task, out, settings), intervals=any(rule.needs_interval for rule in rules))
    data = data_of(source, settings, out.output)
    with progress_of() as progress:
        result = gating.gate(data, plan, rules, baseline, progress)
    emit(Gated(result), gates.format, out)
    return outcome(result.rows)


def explain(name: str | None) -> None:
    """`decal metrics`."""
    emit(metric_list() if name is None else metric_explained(parse(name).declared))


def _baseline(path: str | None) -> Baseline | None:
    if path is None:
        return None
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise DecalError(f"baseline {path}: {error.strerror}", "name a JSON report that decal wrote") from None
    except ValueError:
        raise DecalError(
            f"baseline {path} is not JSON", "write it with: decal evaluate --format json -o FILE"
        ) from None
    return baseline_of(document, path)
