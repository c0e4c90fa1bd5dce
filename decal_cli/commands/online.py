"""One run of `decal online`."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import PurePath

from decal_cli.analysis.evaluate import Plan
from decal_cli.analysis.gate import outcome
from decal_cli.analysis.online import (
    Delay,
    OnlineRule,
    Period,
    Replay,
    check_same,
    online_plan,
    replay_of,
)
from decal_cli.api.asking import asked
from decal_cli.api.nouns import Data, Decision, OverTime, Statistics
from decal_cli.api.online import KeptState, online, replayed
from decal_cli.commands.line import GivenOptions
from decal_cli.commands.options import OnlineOptions, OutputOptions
from decal_cli.commands.writing import check_plot, emit, pictures_possible
from decal_cli.data import as_parquet
from decal_cli.data.output import check_writable, only_run, write_whole
from decal_cli.documents import read_document
from decal_cli.errors import DecalError, Exit
from decal_cli.plot import draw_replay, replay_pictures
from decal_cli.render.formats import format_for, offered

PREDICTIONS = ".parquet"
"""The suffix of a file of predictions."""


def run(
    decision: Decision,
    over_time: OverTime,
    options: OnlineOptions,
    data: Data,
    statistics: Statistics,
    out: OutputOptions,
    said: GivenOptions,
) -> Exit:
    """Replay a stream, write what it comes to, and return the exit code of the rules."""
    began = time.perf_counter()
    to_file = out.output is not None and PurePath(out.output).suffix.lower() == PREDICTIONS
    to_page = replace(out, output=None) if to_file else out
    form = format_for(options.format, to_page.output, ("blocks", "data", "rows", "checks"))
    if form in offered(["checks"]) and not options.rule:
        raise DecalError(f"--format {form} writes rules, and there is none", "give --rule 'e_calibration<20'")
    check_plot(options.plot)
    if options.state is None:
        if options.skip_known:
            raise DecalError("--skip-known speaks of the rows that a state has", "give --state too, or leave it out")
        answer = online(data, decision, over_time=over_time, rules=options.rule, statistics=statistics)
    else:
        check_writable(options.state, "state")
        with only_run(options.state, "state"):
            given = asked(data, decision, statistics, {}, over_time)
            rules = [OnlineRule.parse(text) for text in options.rule]
            begun = _begun(options.state, over_time, given.plan, said) if os.path.exists(options.state) else None
            answer = replayed(given, rules, KeptState(options.state, begun, options.skip_known))
    result = answer.result
    result.seconds = time.perf_counter() - began
    if to_file and out.output is not None:
        write_whole(out.output, as_parquet(answer.predicted), "output")
    if options.plot is not None:
        write_whole(options.plot, draw_replay(result.judged, options.plot), "plot")
    result.drawings = replay_pictures(result.judged) if form == "html" and pictures_possible() else ()
    emit(result, form, to_page)
    return outcome(result.gates)


def _begun(state: str, over_time: OverTime, plan: Plan, said: GivenOptions) -> Replay:
    """The replay that the state file holds. Errors: DecalError, where the line says another."""
    replay = replay_of(read_document(state, f"state {state}", "name another file"), state)
    delay, every, methods = over_time.delay, over_time.every, list(over_time.methods)
    given = {
        "task": plan.two_actions("online"),
        **{name: said[name][0] for name in ("score", "group") if name in said},
        **{name: said.get(name) for name in ("cluster", "time", "warm_up", "horizon", "seed", "confidence", "logit")},
        "delay": None if delay is None else Delay.parse(str(delay)),
        "every": None if every is None else Period.parse(str(every)),
        "methods": online_plan(methods, replay.plan.warm_up, replay.plan).methods if methods else None,
    }
    check_same(replay.plan, {name: value for name, value in given.items() if value is not None}, state)
    return replay
