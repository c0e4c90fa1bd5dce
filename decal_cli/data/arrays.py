"""Arrays, mappings and data frames -> Dataset, with the checks that files get."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from decal_cli.data.dataset import Dataset, as_used, chosen_columns, dataset
from decal_cli.data.formats.files import Held, RawData, Source, translated
from decal_cli.data.large.aggregates import aggregates
from decal_cli.data.stream import Stream, stream_of
from decal_cli.data.unused import with_unused
from decal_cli.data.words import quote, text_of
from decal_cli.errors import DecalError
from decal_cli.roles import ROLES, Columns, several

SHOWN = "the data"


def from_arrays(
    data_or_score: Any,
    label: Any = None,
    *,
    columns: Columns = Columns(),  # noqa: B008  (frozen)
    **roles: Any,
) -> Dataset:
    """Check arrays, or a table, as `read` checks files.

    data_or_score: (T,) scores, (T, K) of K > 2 classes in sorted order, or a mapping or data frame (pandas, polars,
    also lazy, pyarrow). Where label is an array, the columns of these are scores, each one model; else roles are looked
    up in it by `columns` and the usual names.
    label, and others of one column: (T,) or a name. Of several, such as group=: (T,), a mapping or frame of such, or
    names; features= also (T, d). Errors: DecalError.
    """
    if unknown := sorted(roles.keys() - ROLES.keys()):
        raise TypeError(f"unexpected argument {unknown[0]!r}")
    table, columns = _gathered(data_or_score, {"label": label, **roles}, columns)
    if is_table(data_or_score) and label is not None and not isinstance(label, str) and not columns.score:
        columns = replace(columns, score=tuple(_columns_of(data_or_score, "data")))
    if not table:
        raise DecalError(f"{SHOWN} has no columns", "give scores and labels")
    source = ArraySource(table)
    if columns.aggregated:
        return as_used(aggregates([source.only(source.names)], columns), columns)
    chosen = chosen_columns([source], columns)
    held = source.only(dict.fromkeys((*chosen.read, *chosen.features, *chosen.names("time"))))
    return as_used(with_unused(dataset([held], chosen), [source], chosen), columns)


def stream_from_arrays(
    data_or_score: Any,
    label: Any,
    columns: Columns,
    arrival: str = "",
    with_score: bool | None = None,
    **roles: Any,
) -> Stream:
    """Check arrays, or the columns of a table, as `read_stream` checks files.

    time, group and cluster among the roles: (T,), or the name of a column. Errors: DecalError.
    """
    table, columns = _gathered(data_or_score, {"label": label, **roles}, columns)
    source = ArraySource(table)
    return stream_of([source.only(source.names)], columns, arrival, with_score)


def _gathered(data_or_score: Any, given: Mapping[str, Any], columns: Columns) -> tuple[dict[str, Any], Columns]:
    """All columns by name, and which of them play the roles that are given."""
    _check_indexes({"score": data_or_score, **given})
    table: dict[str, Any] = {}
    if is_table(data_or_score):
        table.update(_columns_of(data_or_score, "data"))
    elif given["label"] is not None and getattr(data_or_score, "ndim", 1) == 2 and data_or_score.shape[1] > 2:
        table |= {name: _column(each, "score") for name, each in class_columns(data_or_score, given["label"]).items()}
        columns = replace(columns, proba=("p:*",))
    else:
        table["score"] = _column(data_or_score, "score")
        columns = replace(columns, score=("score",))
        if given["label"] is None:
            raise DecalError("scores without labels", "give label=, of shape (T,), after the scores")
    for role, value in given.items():
        if value is None:
            continue
        if role in ROLES and several(role):
            columns = columns.updated({role: _several(table, value, role)})
            continue
        name = value if isinstance(value, str) else _add(table, {role: _column(value, role)})[0]
        columns = columns.updated({role: name} if role in ROLES else {})
    return table, columns


def class_columns(scores: Any, label: Any) -> dict[str, Any]:
    """The columns 'p:CLASS' of scores, shape (T, K), in the sorted order of the K labels, as scikit-learn has them.

    Errors: DecalError, where the labels, shape (T,), have another number of values: which of them lacks is not known.
    """
    found = [each for each in _column(label, "label").unique().drop_null().to_pylist() if each == each]
    if len(found) != scores.shape[1]:
        raise DecalError(
            f"scores have shape {scores.shape}, and the labels have {len(found)} different values",
            "give a frame with a column for each class, such as 'p:cat', and proba='p:*'",
        )
    # An array of numpy would show what stands behind a mask.
    values = np.ma.filled(scores.astype(float), np.nan) if isinstance(scores, np.ma.MaskedArray) else np.asarray(scores)
    return {f"p:{text_of(name)}": column for name, column in zip(sorted(found), values.T, strict=True)}


def _check_indexes(given: Mapping[str, Any]) -> None:
    """Raise a DecalError where rows of pandas are named, and not in one order.

    Taken in order, rows would be paired that pandas keeps apart; paired by name, those would be that were meant in
    order, such as labels of a shuffled split beside new scores. Nothing tells which of the two it is.
    """
    apart = (value.items() if isinstance(value, Mapping) else [(name, value)] for name, value in given.items())
    parts = [each for of_value in apart for each in of_value]
    indexes = [(str(name), part.index) for name, part in parts if hasattr(getattr(part, "index", None), "equals")]
    for name, index in indexes[1:]:
        first, its_index = indexes[0]
        if len(index) == len(its_index) and not index.equals(its_index):
            raise DecalError(
                f"{SHOWN}: the index of {quote(name)} is not that of {quote(first)}",
                "give .to_numpy() of each where they are in one order, or bring one into the order of the other with "
                ".loc[other.index]",
            )


def is_table(value: Any) -> bool:
    """Whether a value has columns: a mapping, or a frame that speaks the Arrow or the interchange protocol."""
    if isinstance(value, Mapping) or is_lazy(value):
        return True
    # A Series or a chunked array speaks Arrow too, but has no columns.
    named = hasattr(value, "columns") or hasattr(value, "column_names")
    return named and (hasattr(value, "__arrow_c_stream__") or hasattr(value, "__dataframe__"))


def is_lazy(value: Any) -> bool:
    """Whether a value is a frame of polars whose columns are yet to be computed."""
    return hasattr(value, "collect_schema") and hasattr(value, "collect")


class _Uncollected(NamedTuple):
    """A column of a lazy frame, which is computed where it is used."""

    frame: Any
    name: str


def _columns_of(value: Any, role: str) -> dict[str, Any]:
    import pyarrow as pa

    if isinstance(value, Mapping):
        return {str(name): _column(column, str(name)) for name, column in value.items()}
    if is_lazy(value):
        with translated(SHOWN, f"a table ({role})"):
            return {name: _Uncollected(value, name) for name in value.collect_schema().names()}
    names = [str(name) for name in getattr(value, "column_names", None) or value.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DecalError(f"{SHOWN}: duplicate column {quote(twice)}", "rename one of the two")
    with translated(SHOWN, f"a table ({role})"):
        try:
            if hasattr(value, "__arrow_c_stream__"):
                table = pa.table(value)
            else:
                from pyarrow.interchange import from_dataframe

                table = from_dataframe(value)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            if not hasattr(value, "items"):
                raise
            # Objects of several types stand in a column of pandas.
            return {str(name): _column(column, str(name)) for name, column in value.items()}
    return {name: table.column(name) for name in table.column_names}


UTILITIES = ("tn", "fn", "fp", "tp")
"""What the utilities of labels 0 and 1 without and with an action are called, in their order."""


def _several(table: dict[str, Any], given: Any, role: str) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,)
    if is_table(given):
        columns = _columns_of(given, role)
        ordered = UTILITIES if role == "utility_columns" and {*columns} == {*UTILITIES} else columns
        return _add(table, {name: columns[name] for name in ordered})
    if isinstance(given, (list, tuple)) and given and all(isinstance(g, str) for g in given):
        # As many texts as rows may be the values of a group; features are numbers. Those of a lazy frame are unknown.
        rows = {len(each) for each in table.values() if not isinstance(each, _Uncollected)}
        known = all(g in table for g in given) and (isinstance(given, tuple) or not rows)
        if known or (rows and len(given) not in rows) or ROLES[role].read_as != "texts":
            return tuple(given)
    if role == "features" and not hasattr(given, "__arrow_c_stream__"):
        with translated(SHOWN, f"column {quote(role)}"):
            array = np.asarray(given)
        if array.ndim == 2 and array.dtype.kind in "OU":
            return _add(table, {f"{role}[{k}]": _column(column, f"{role}[{k}]") for k, column in enumerate(array.T)})
    if role == "utility_columns":
        # A table of numbers, or a list of columns.
        each = given.T if getattr(given, "ndim", 1) == 2 else given
        return _add(table, {f"{role}[{k}]": _column(column, f"{role}[{k}]") for k, column in enumerate(each)})
    return _add(table, {role: _column(given, role)})


def _add(table: dict[str, Any], new: dict[str, Any]) -> tuple[str, ...]:
    for name in new:
        if name in table:
            raise DecalError(f"{SHOWN}: duplicate column {quote(name)}", "rename one of the two")
    table.update(new)
    return tuple(new)


def _column(value: Any, name: str) -> Any:
    """One column as a pyarrow array, (T, d) as a column of lists; zero-copy for numpy numbers."""
    import pyarrow as pa

    if isinstance(value, np.ma.MaskedArray):
        kind, missing = (float, np.nan) if value.dtype.kind in "fiu" else (object, np.array(None))
        value = np.where(np.ma.getmaskarray(value), missing, value.data.astype(kind))
    with translated(SHOWN, f"column {quote(name)}"):
        if isinstance(value, (pa.Array, pa.ChunkedArray)):
            return value
        if hasattr(value, "__arrow_c_stream__"):
            try:
                return pa.chunked_array(value)
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                return _objects(value)
        if hasattr(value, "__arrow_c_array__") or type(value).__module__.split(".")[0] == "pandas":
            return _objects(value)
        if isinstance(value, (list, tuple)) and not any(isinstance(v, (list, tuple, np.ndarray)) for v in value):
            return _objects(value)
        array = np.asarray(value)
        if array.ndim == 2 and name == "features" and array.dtype.kind in "fiub" and array.shape[1]:
            array = array.astype(np.uint8) if array.dtype.kind == "b" else array
            return pa.FixedSizeListArray.from_arrays(_numbers(array.ravel()), array.shape[1])
        if array.ndim == 2 and name == "score":
            fix = "give one dimension, such as predict_proba(X)[:, 1]"
            several = "of several classes give an array of numpy, and labels after it"
            raise DecalError(f"scores have shape {array.shape}", fix if array.shape[1] <= 2 else several)
        if array.ndim == 0:
            fix = "give the path of a file, a frame, or (scores, labels)"
            raise DecalError(f"{SHOWN}, column {quote(name)} is one value, of type {type(value).__name__}", fix)
        if array.ndim != 1:
            fix = "give numbers, or a frame with a column for each" if name == "features" else "give one dimension"
            raise DecalError(f"{SHOWN}, column {quote(name)} has shape {array.shape}", fix)
        return _numbers(array) if array.dtype.kind in "fiu" else _objects(array)


def _objects(values: Any) -> Any:
    """Values of any type as a pyarrow array, NaN among others as missing; of several types as texts."""
    import pyarrow as pa

    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        texts = [value if isinstance(value, (list, tuple, dict, np.ndarray)) else text_of(value) for value in values]
        return pa.array(texts, pa.string())


def _numbers(array: np.ndarray) -> Any:
    """A view of numpy numbers; pa.array() would import pandas to look at them."""
    import pyarrow as pa

    if array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    return pa.Array.from_buffers(pa.from_numpy_dtype(array.dtype), array.size, [None, pa.py_buffer(array)])


def rows_in_memory(data: Any, names: tuple[str, ...]) -> Held:
    """The columns of a frame or mapping that a model looks at, as rows to be scored."""
    source = ArraySource(_columns_of(data, "data"))
    used = tuple(name for name in dict.fromkeys(names) if name in source.names)
    found = source.only(used)
    found.names = list(used) if len(used) == len(set(names)) else source.names
    return found


def column_names(data: Any) -> list[str]:
    """The columns of a frame or mapping."""
    return list(_columns_of(data, "data"))


class ArraySource(Source):
    """Columns in memory, of which only those that are asked for are looked at."""

    shown = SHOWN

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.columns, self.names = columns, list(columns)

    def load(self, wanted: Iterable[str]) -> Any:
        """pyarrow table with these columns, all of one length; each lazy frame is computed once."""
        import pyarrow as pa

        table = {name: self.columns[name] for name in wanted}
        waiting = {name: each for name, each in table.items() if isinstance(each, _Uncollected)}
        for frame in {id(each.frame): each.frame for each in waiting.values()}.values():
            names = [name for name, each in waiting.items() if each.frame is frame]
            with translated(SHOWN, "a lazy frame"):
                computed = frame.select([waiting[name].name for name in names]).collect()
            table |= zip(names, _columns_of(computed, "data").values(), strict=True)
        first, count = next(((name, len(column)) for name, column in table.items()), ("", 0))
        for name, column in table.items():
            if len(column) != count:
                raise DecalError(
                    f"{SHOWN}: {quote(name)} has {len(column)} rows and {quote(first)} {count}",
                    "give arrays of one length",
                )
        with translated(SHOWN, "a table"):
            return pa.table(table)

    def only(self, names: Iterable[str]) -> Held:
        """What is in these columns, with a digest."""
        table = self.load(names)
        return Held(SHOWN, table, RawData("<arrays>", partial(table_digest, table)))


def table_digest(table: Any) -> str:
    """Hex digest of a pyarrow table, in Arrow's own encoding."""
    import pyarrow as pa

    digest = hashlib.sha256()
    with pa.ipc.new_stream(pa.PythonFile(_Hashing(digest), mode="w"), table.schema.remove_metadata()) as sink:
        sink.write_table(table.replace_schema_metadata(None), max_chunksize=1 << 16)
    return digest.hexdigest()


class _Hashing(io.RawIOBase):
    """A file that only feeds a digest."""

    def __init__(self, digest: Any) -> None:
        self.digest, self.at = digest, 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.digest.update(data)
        self.at += len(data)
        return len(data)

    def tell(self) -> int:
        return self.at
