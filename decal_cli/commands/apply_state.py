"""One run of `decal apply` with a state of `decal online`: rows whose labels are not known yet."""

from __future__ import annotations

import sys

import numpy as np

from decal_cli.analysis.online import Replay, check_goes_on, predicted_name
from decal_cli.analysis.online.plan import AS_IT_IS
from decal_cli.commands.options.acting import ApplyOptions
from decal_cli.commands.streams import say
from decal_cli.data import Columns, NewRows, Stream, Writer, format_of, read_times
from decal_cli.data.output import standard_output, whole_file
from decal_cli.data.writing import STANDARD_OUTPUT
from decal_cli.errors import DecalError


def apply_state(options: ApplyOptions, replay: Replay) -> None:
    """Score rows that come after those of a state by all of its forecasters; the state stays as it is."""
    plan = replay.plan
    columns = Columns(
        score=() if plan.score is None else (plan.score,),
        group=tuple(name for name in (plan.group, plan.cluster) if name is not None),
        logit=plan.logit,
        missing="drop" if options.missing == "drop" else "error",
    )
    stdin = sys.stdin.buffer if options.file == "-" else None
    rows = NewRows(options.file, columns, (), stdin, format_of(options.output) == ".parquet")
    names = _names(options, replay, rows.names)
    stream, batches = _stream(rows, replay)
    check_goes_on(replay, stream, options.model)
    predictions = replay.ahead(stream)
    to_stdout = options.output == STANDARD_OUTPUT
    with standard_output() if to_stdout else whole_file(options.output, "output") as file:
        writer, first = Writer(options.output, file), 0
        for batch in batches:
            end = first + len(batch.rows)
            added = {name: predictions[method][first:end] for method, name in names.items()}
            writer.write(batch.table, added, batch.known)
            first = end
        writer.close()
    total = sum(len(batch.known) for batch in batches)
    unscored = f"; {total - first:,} rows have no prediction (missing score)" if total > first else ""
    where = "standard output" if to_stdout else options.output
    say(f"wrote {where}: {total:,} rows; added {', '.join(names.values())} after {replay.rows:,} rows{unscored}")


def _names(options: ApplyOptions, replay: Replay, columns: list[str]) -> dict[str, str]:
    """What the column of each forecaster's predictions is called."""
    methods = [spec.key for spec in replay.plan.methods if spec.key != AS_IT_IS]
    if options.name is not None and len(methods) > 1:
        raise DecalError(f"--name names one column, and the state has {len(methods)} forecasters", "leave --name out")
    names = {method: options.name or predicted_name(replay.plan, method) for method in methods}
    for name in names.values():
        if name in columns:
            raise DecalError(f"there is a column {name!r} already", "rename it in the file")
    return names


def _stream(rows: NewRows, replay: Replay) -> tuple[Stream, list]:
    """The rows without labels, and the batches that they came in."""
    plan = replay.plan
    batches = list(rows.batches())
    known = np.concatenate([batch.known for batch in batches])
    time, clock = np.arange(len(known)), plan.clock
    if plan.time is not None:
        time, clock = read_times(rows.source, plan.time)
    group, cluster = (
        None if name is None else np.concatenate([batch.rows.groups[name] for batch in batches])
        for name in (plan.group, plan.cluster)
    )
    score = np.concatenate([batch.rows.score for batch in batches])
    label = np.zeros(len(score), dtype=np.uint8)
    return Stream((), {}, (), (), clock, score, label, 0, time[known], group=group, cluster=cluster), batches
