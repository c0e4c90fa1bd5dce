"""One run of `decal online`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath

from decal_cli.analysis.evaluate import Evaluation, Plan
from decal_cli.analysis.online import (
    Delay,
    OnlinePlan,
    Period,
    Replay,
    judged,
    needs_score,
    online_plan,
    predicted_columns,
    unasked_period,
)
from decal_cli.commands.common import emit, first_given, inputs_of, plan_of, settings_of, terms_of
from decal_cli.commands.options import OnlineOptions, OutputOptions, StreamOptions, TaskOptions
from decal_cli.commands.options.acting import OF_STREAM
from decal_cli.commands.progress import progress_of
from decal_cli.commands.settings import Settings
from decal_cli.data import Columns, Stream, StreamColumns, as_parquet, read_stream
from decal_cli.data.output import write_whole
from decal_cli.declarations.defaults import WARM_UP
from decal_cli.errors import DecalError
from decal_cli.render.formats import format_for
from decal_cli.render.results.online import Replayed
from decal_cli.sequential import parse
from decal_cli.task import BinaryTask

PREDICTIONS = ".parquet"
"""The suffix of a file of predictions."""


def run(over_time: OnlineOptions, source: StreamOptions, task: TaskOptions, out: OutputOptions) -> None:
    """Replay a stream, and write what it comes to."""
    settings = settings_of(out)
    to_file = out.output is not None and PurePath(out.output).suffix.lower() == PREDICTIONS
    form = format_for(over_time.format, None if to_file else out.output, Replayed)
    plan, terms = plan_of((), task, out, settings), terms_of(over_time, settings)
    decision = plan.two_actions("online")
    if decision is None:
        raise DecalError(
            "a replay needs the decision it is for", "give --threshold, --utility, --cost-fp/--cost-fn or --odds"
        )
    delay = Delay.parse(over_time.delay or "0")
    specs = [parse(text) for text in over_time.method]
    scoreless = bool(specs) and not any(map(needs_score, specs))
    columns = _columns(source, settings)
    beside = StreamColumns(over_time.time, delay.column, False if scoreless and not columns.score else None)
    paths, stdin = inputs_of(source, settings, out.output)
    with progress_of() as progress:
        progress("the stream")
        stream = read_stream(paths, columns, beside, stdin)
        replay = Replay(_plan(over_time, stream, decision, delay, plan))
        predictions = replay.advance(stream)
    if to_file and out.output is not None:
        ahead = replay.ahead(stream)
        columns_of_rows = predicted_columns(stream, replay.plan, predictions, ahead)
        write_whole(out.output, as_parquet(columns_of_rows), "output")
        out = replace(out, output=None)
    result = judged(replay)
    evaluation = Evaluation(plan, stream.inputs, stream.columns, stream.guessed, stream.notes, ())
    emit(Replayed(result, evaluation, terms), form, out)


def _columns(source: StreamOptions, settings: Settings) -> Columns:
    """The columns of the line, else of the settings, as far as a stream has them."""
    known = {name: getattr(settings.columns, name) for name in OF_STREAM}
    return Columns(**known | source.named)


def _plan(options: OnlineOptions, stream: Stream, task: BinaryTask, delay: Delay, plan: Plan) -> OnlinePlan:
    """What is replayed."""
    every = unasked_period(stream.time, stream.clock) if options.every is None else Period.parse(options.every)
    score = str(stream.columns["score"][0]) if stream.score is not None else None
    start = OnlinePlan(
        task=task,
        methods=(),
        clock=stream.clock,
        score=score,
        delay=delay,
        every=every,
        horizon=options.horizon,
        seed=plan.seed,
        confidence=plan.confidence,
    )
    return online_plan(options.method, first_given(options.warm_up, WARM_UP), start)
