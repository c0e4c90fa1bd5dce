"""One run of `decal sql`."""

from __future__ import annotations

import sys

from decal_cli.commands.options.acting import OF_STATEMENT, SqlOptions
from decal_cli.commands.settings import find_settings, working_folder
from decal_cli.data.large.engines.dialects import DIALECTS
from decal_cli.data.large.engines.request import CountRequest
from decal_cli.data.large.engines.statement import statement
from decal_cli.errors import DecalError


def run(options: SqlOptions) -> None:
    """Print the statement."""
    dialect = DIALECTS[options.dialect]
    if options.model is not None:
        if options.named or options.cells or options.pairs or options.threshold:
            raise DecalError("--model scores rows, and nothing is counted", "give it with --table or --query alone")
        # Late: it loads all methods.
        from decal_cli.analysis.apply import read_model
        from decal_cli.learn.as_sql import scoring_statement

        text = scoring_statement(read_model(options.model), options.table, options.query, dialect)
        sys.stdout.write(f"{text};\n")
        return
    columns = find_settings(working_folder()).columns.updated(options.named)
    for role in ("score", "label"):
        if not columns.names(role):
            raise DecalError(f"the {role} column is not named", f"name it with --{role}")
    if options.threshold and not options.cells:
        raise DecalError(
            "--threshold is for --cells: without them every score is counted by itself", "drop it, or add --cells"
        )
    request = CountRequest(
        table=options.table,
        query=options.query,
        cells=options.cells,
        pairs=options.pairs,
        thresholds=tuple(options.threshold),
        **{role: getattr(columns, role) for role in OF_STATEMENT},
    )
    sys.stdout.write(statement(request, dialect) + ";\n")
