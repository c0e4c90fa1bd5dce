"""One run of `decal sweep`: options and settings to curves, curves to text, data and pictures."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

from decal_cli.analysis.sweep import Sweep, swept
from decal_cli.commands.common import data_of, emit, page_of, plan_of, settings_of
from decal_cli.commands.options import InputOptions, OutputOptions, Picture, SweepOptions, TaskOptions
from decal_cli.commands.progress import progress_of
from decal_cli.commands.writing import check_writable, write_whole
from decal_cli.curves import Grid, parse_prior, parse_thresholds
from decal_cli.errors import DecalError
from decal_cli.plot import PICTURES, draw, draw_text, ready
from decal_cli.render.sweep import render_sweep, render_sweep_csv, render_sweep_json, sweep_rows

_SUFFIXES = {".json": "json", ".csv": "csv", ".parquet": "parquet"}


def sweep(source: InputOptions, task: TaskOptions, curves: SweepOptions, out: OutputOptions) -> None:
    """`decal sweep`."""
    settings = settings_of(out)
    form = _format(curves, out)
    _check_plot(curves, out, form)
    grid = Grid(parse_thresholds(curves.thresholds), None if curves.prior is None else parse_prior(curves.prior))
    plan = replace(plan_of((), task, out, settings), intervals=not curves.no_intervals)
    data = data_of(source, settings, out.output)
    with progress_of() as progress:
        result = swept(data, plan, grid, progress)
        picture = None if curves.plot in (None, "-") else draw(result, _pictures(curves), str(curves.plot))
    if picture is not None:
        write_whole(str(curves.plot), picture, "plot")
    if form == "parquet":
        write_whole(str(out.output), _parquet(result), "output")
        return
    texts = {
        "table": lambda: render_sweep(result, page_of(out), curves.all_thresholds),
        "csv": lambda: render_sweep_csv(result),
        "json": lambda: render_sweep_json(result),
    }
    text = texts[form]()
    if curves.plot == "-":
        text += "\n" + draw_text(result, _pictures(curves), page_of(out))
    emit(text, out)


def _format(curves: SweepOptions, out: OutputOptions) -> str:
    by_suffix = None if out.output is None else _SUFFIXES.get(Path(out.output).suffix.lower())
    return by_suffix or "table" if curves.format is None else curves.format.value


def _check_plot(curves: SweepOptions, out: OutputOptions, form: str) -> None:
    """Before any work is done: can the picture be drawn and written?"""
    if curves.plot is None:
        if curves.picture:
            raise DecalError("--picture names what to draw, and nothing is drawn", "give --plot FILE, or --plot -")
    elif curves.plot == "-":
        if form != "table":
            raise DecalError(f"--plot - draws below a table, and the format is {form}", "give --plot FILE")
    else:
        ready(curves.plot)
        check_writable(curves.plot, "plot")


def _pictures(curves: SweepOptions) -> tuple[str, ...]:
    asked = tuple(dict.fromkeys(picture.value for picture in curves.picture)) or ("brier", "decision")
    return PICTURES if Picture.all.value in asked else asked


def _parquet(result: Sweep) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink: Any = io.BytesIO()
    types = {"model": pa.string(), "group": pa.string(), "curve": pa.string(), "unit": pa.string()}
    columns = sweep_rows(result)
    schema = pa.schema([(name, types.get(name, pa.float64())) for name in columns])
    pq.write_table(pa.table(columns, schema=schema), sink)
    return bytes(sink.getvalue())
