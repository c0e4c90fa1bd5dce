"""One run of `decal gate`."""

from __future__ import annotations

from dataclasses import replace

from decal_cli.analysis import gate as gating
from decal_cli.analysis.baseline import read_baseline
from decal_cli.commands.common import data_of, emit, plan_of, settings_of
from decal_cli.commands.options import GateOptions, InputOptions, OutputOptions, TaskOptions
from decal_cli.commands.progress import progress_of
from decal_cli.errors import DecalError, Exit
from decal_cli.render.formats import format_for
from decal_cli.render.results.gates import Gated


def run(gates: GateOptions, source: InputOptions, task: TaskOptions, out: OutputOptions) -> Exit:
    """Judge every rule, write the outcome, and return the exit code."""
    settings = settings_of(out)
    form = format_for(gates.format, out.output, Gated)
    texts = gates.rule or list(settings.gates)
    if not texts:
        raise DecalError("there is no rule to judge by", "give --rule 'regret<=0.02', or gates = [..] in decal.toml")
    rules = [gating.parse_rule(text) for text in texts]
    path = gates.baseline or settings.baseline
    baseline = None if path is None else read_baseline(path)
    choices = tuple(dict.fromkeys(rule.choice for rule in rules))
    plan = replace(plan_of(choices, task, out, settings), intervals=any(rule.needs_interval for rule in rules))
    data = data_of(source, settings, out.output)
    with progress_of() as progress:
        result = gating.gate(data, plan, rules, baseline, progress)
    emit(Gated(result), form, out)
    return gating.outcome(result.rows)
