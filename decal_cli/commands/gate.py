"""One run of `decal gate`."""

from __future__ import annotations

from dataclasses import replace

from decal_cli.analysis import gate as gating
from decal_cli.analysis.baseline import read_baseline
from decal_cli.api.nouns import Decision, Statistics
from decal_cli.commands.common import as_bytes, data_of, emit, plan_of, settings_of
from decal_cli.commands.options.common import InputOptions, OutputOptions
from decal_cli.commands.options.judging import GateOptions
from decal_cli.commands.progress import progress_of
from decal_cli.commands.streams import say
from decal_cli.data.output import check_not_read, check_writable, write_all
from decal_cli.errors import DecalError, Exit
from decal_cli.render.formats import format_for
from decal_cli.render.results.evaluation import Evaluated
from decal_cli.render.results.gates import Gated


def run(gates: GateOptions, source: InputOptions, task: Decision, sure: Statistics, out: OutputOptions) -> Exit:
    """Judge every rule, write the outcome, and return the exit code."""
    settings = settings_of(out)
    form, files = _forms(gates, out)
    texts = gates.rule or list(settings.gates)
    if not texts:
        raise DecalError("there is no rule to judge by", "give --rule 'regret<=0.02', or gates = [..] in decal.toml")
    rules = [gating.parse_rule(text) for text in texts]
    path = gates.baseline or settings.baseline
    baseline = None if path is None else read_baseline(path)
    plan = plan_of(gating.choices_of(rules), task, sure, settings, source)
    plan = replace(plan, intervals=any(rule.needs_interval for rule in rules))
    apart = any(rule.delta for rule in rules)
    data = data_of(source, settings, out.output, plan.edges, pairs=apart)
    for path in (*files, gates.write_baseline):
        check_not_read(path, [item.path for item in data.inputs])
    with progress_of() as progress:
        result = gating.gate(data, plan, rules, baseline, progress)
    code, written = gating.outcome(result.rows), Gated(result)
    contents = {path: as_bytes(written, name) for path, name in files.items()}
    if gates.write_baseline is not None and code is Exit.OK:
        contents[gates.write_baseline] = as_bytes(Evaluated(result.evaluation), "json")
    write_all(contents, "output")
    if gates.write_baseline is not None and code is not Exit.OK:
        say(f"decal: baseline {gates.write_baseline} is not written: not every rule passed")
    emit(written, form, out)
    return code


def _forms(gates: GateOptions, out: OutputOptions) -> tuple[str, dict[str, str]]:
    """The format of standard output or --output, and by path the formats of further files."""
    files: dict[str, str] = {}
    alone = []
    if gates.write_baseline is not None:
        check_writable(gates.write_baseline, "baseline")
    for text in gates.format:
        name, equals, path = text.partition("=")
        if not equals:
            alone.append(name)
            continue
        check_writable(path, f"--format {name}")
        if path in (*files, out.output, gates.write_baseline):
            raise DecalError(f"--format {text}: {path} is named twice", "name a file of its own for each format")
        files[path] = format_for(name, path, Gated)
    if len(alone) > 1:
        raise DecalError(f"several formats for one output: {', '.join(alone)}", f"give files: --format {alone[1]}=FILE")
    return format_for(alone[0] if alone else None, out.output, Gated), files
