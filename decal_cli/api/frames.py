"""Results as frames, and columns added to frames: pandas, polars or pyarrow, whichever the user works with."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import DecalError

Library = Literal["pandas", "polars", "pyarrow"]
LIBRARIES: tuple[Library, ...] = ("pandas", "polars", "pyarrow")
_WINS = ("wins", "wins_low", "wins_high")
NUMBERS = frozenset(
    ("value", "low", "high", "gain", "bound", "a", "b", "difference", "threshold", "before", "after", "seconds", *_WINS)
)
"""Columns of results that hold numbers, whether or not any row has one."""


def library_of(data: Any) -> Library:
    """The library that a frame is of; where the data is none, pandas if it is installed."""
    home = type(data).__module__.split(".")[0]
    if home in LIBRARIES:
        return home
    return "pandas" if importlib.util.find_spec("pandas") else "pyarrow"


def frame_of(rows: Iterable[Sequence[Any]], library: Library) -> Any:
    """Rows, of which the first names the columns, as a frame of this library."""
    import pyarrow as pa

    names, *lines = rows
    columns = zip(*lines, strict=True) if lines else ([] for _ in names)
    typed = {}
    for name, each in zip(names, columns, strict=True):
        values = list(each)
        kind = pa.float64() if name in NUMBERS else pa.string() if all(value is None for value in values) else None
        typed[name] = pa.array(values, kind)
    return in_library(pa.table(typed), library)


def in_library(table: Any, library: Library) -> Any:
    """A table of pyarrow as a frame of this library."""
    if library == "pyarrow":
        return table
    if not importlib.util.find_spec(library):
        raise DecalError(f"{library} is not installed", "install it, or take to_frame('pyarrow')")
    if library == "pandas":
        return table.to_pandas()
    import polars

    return polars.from_arrow(table)


def with_columns(data: Any, added: Mapping[str, NDArray[Any]], known: NDArray[np.bool_]) -> Any:
    """The rows with further columns, in a frame of its own library, a mapping as a dict.

    added: name -> values of the rows in `known`; the others get NaN, or null where the library has it.
    """
    columns = dict(added)
    if not known.all():
        for name, values in added.items():
            columns[name] = np.full(len(known), np.nan)
            columns[name][known] = values
    home = type(data).__module__.split(".")[0]
    if isinstance(data, Mapping):
        return {**data, **columns}
    if home == "pandas":
        return data.assign(**columns)
    if home == "polars":
        import polars

        series = [polars.Series(name, values, nan_to_null=True) for name, values in columns.items()]
        return data.with_columns(series)
    import pyarrow as pa

    table = data if isinstance(data, pa.Table) else pa.table(data)
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values, mask=~known))
    return table
