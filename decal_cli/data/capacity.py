"""The capacity of acting on the rows of a data set, as the user gives it."""

from __future__ import annotations

import math
from dataclasses import replace

from decal_cli.data.dataset import Dataset
from decal_cli.data.population import in_population
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.roles import Columns
from decal_cli.tables.aggregated import Aggregated
from decal_cli.tables.cells import CellTable
from decal_cli.tables.listed import Capacity

_EXAMPLE = "give for example 50/1000, 0.05 or 200"


def as_used(dataset: Dataset, columns: Columns) -> Dataset:
    """The data set in the user's population, and with the user's capacity. Errors: DecalError."""
    return _with_capacity(in_population(dataset, columns), columns)


def _with_capacity(dataset: Dataset, columns: Columns) -> Dataset:
    if columns.capacity is None:
        return dataset
    capacity = parse_capacity(columns.capacity)
    rows = min(len(model.rows) for model in dataset.models)
    counts = dataset.models[0].rows
    if isinstance(counts, Aggregated):
        cells = isinstance(counts.table, CellTable)
        problem = "only cells of it are known" if cells else f"{rows:,} rows are more than memory can hold"
        raise DecalError(
            f"{Hint('capacity')} ranks rows by their score, and {problem}",
            f"round the scores, or draw a sample of rows, in {Hint('query')}; or give a file of rows",
        )
    if columns.per is None and capacity.among is None and capacity.places > rows:
        raise DecalError(
            f"{Hint('capacity', capacity.text)} is more than the {rows:,} rows",
            f"give a smaller count or a share, or the column of days with {Hint('per')}",
        )
    return replace(dataset, capacity=capacity)


def parse_capacity(text: str) -> Capacity:
    """'50/1000', '0.05' or '200'. Errors: DecalError."""
    parts, shown = text.split("/"), f"{Hint('capacity', text)}"
    try:
        places, *among = (float(part) for part in parts)
    except ValueError:
        raise DecalError(f"{shown} is not a count or a share", _EXAMPLE) from None
    if len(among) > 1 or not all(math.isfinite(each) for each in (places, *among)):
        raise DecalError(f"{shown} is not a count or a share", _EXAMPLE)
    if places <= 0 or (among and among[0] <= 0):
        raise DecalError(f"{shown} is not positive", _EXAMPLE)
    if among:
        if places > among[0]:
            raise DecalError(f"{shown} is more than all rows", _EXAMPLE)
        return Capacity(text, places, among[0])
    if places < 1:
        return Capacity(text, places, 1.0)
    if places != int(places):
        raise DecalError(f"{shown} is neither a whole count nor a share below 1", _EXAMPLE)
    return Capacity(text, places)
