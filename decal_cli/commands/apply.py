"""One run of `decal apply`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from decal_cli.commands.options import ApplyOptions
from decal_cli.commands.progress import progress_of
from decal_cli.commands.writing import check_new, whole_file
from decal_cli.data import Batch, Columns, NewRows, Writer, format_of
from decal_cli.errors import DecalError
from decal_cli.methods import Saved, added_columns, from_text, new_name, parse, score_rows, unseen_categories
from decal_cli.methods.predictions import DECISION, THRESHOLD


def run(options: ApplyOptions) -> None:
    """Score the rows batch by batch, and write them with what was added."""
    typed = format_of(options.output) == ".parquet"
    check_new(options.output, "output", options.force)
    saved = _read_model(options.model)
    columns = Columns(
        score=(saved.score,),
        features=saved.features,
        group=saved.groups,
        logit=saved.logit,
        missing="error" if options.missing is None else options.missing.value,
    )
    stdin = sys.stdin.buffer if options.file == "-" else None
    rows = NewRows(options.file, columns, saved.column_kinds, stdin, typed)
    fitted_on = {item["sha256"] for item in saved.fitted_on.get("inputs", ())}
    scored = unscored = unseen = 0
    added: dict[str, NDArray[Any]] = {}
    with whole_file(options.output, "output") as file, progress_of() as progress:
        writer = Writer(options.output, file)
        for batch in rows.batches():
            added = _added(saved, options, batch, rows.names)
            writer.write(batch.table, added, batch.known)
            scored += len(batch.rows)
            unscored += len(batch.known) - len(batch.rows)
            unseen += unseen_categories(saved.model, batch.rows)
            progress(f"{scored:,} rows")
        writer.close()
    unscored_text = f"; {unscored:,} rows have no new score (missing score)" if unscored else ""
    total = scored + unscored
    print(
        f"wrote {options.output}: {total:,} rows; added {_added_text(saved, list(added))}{unscored_text}",
        file=sys.stderr,
    )
    if unseen:
        print(
            f"{unseen:,} of {scored:,} rows have a category that the model was not fitted on: it counts as a rare one.",
            file=sys.stderr,
        )
    if rows.source.raw.sha256() in fitted_on:
        print(
            "The model was fitted to these rows: metrics computed on them are optimistic "
            "(`decal fit` printed held-out ones).",
            file=sys.stderr,
        )


def _read_model(path: str) -> Saved:
    try:
        return from_text(Path(path).read_bytes().decode("utf-8"), path)
    except OSError as error:
        raise DecalError(f"model file {path}: {error.strerror}", "name a file that `decal fit` wrote") from None
    except UnicodeDecodeError:
        raise DecalError(f"{path}: is not a model file (not text)", "name a file that `decal fit` wrote") from None


def _added(saved: Saved, options: ApplyOptions, batch: Batch, names: list[str]) -> dict[str, NDArray[Any]]:
    """The new columns of a batch, none of which is there already."""
    applied = score_rows(saved, batch.rows, options.model)
    of = options.name or saved.score
    added = added_columns(applied, of, options.name or new_name(saved.score, parse(saved.method)))
    for column in added:
        if column in names:
            raise DecalError(f"there is a column {column!r} already", "name the new one: --name COLUMN")
    return added


def _added_text(saved: Saved, added: list[str]) -> str:
    """Every added column with the method; where only the threshold moves, that the score does not change."""
    *others, last = added
    columns = f"{', '.join(others)} and {last}" if others else last
    if not (added[0].startswith(THRESHOLD) and last.startswith(DECISION)):
        return f"{columns} (method: {saved.method})"
    return f"{columns} (method: {saved.method}; {saved.score} does not change, {last} holds the decisions)"
