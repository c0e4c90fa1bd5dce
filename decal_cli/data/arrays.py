"""Arrays, mappings and data frames -> Dataset, with the checks that files get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from decal_cli.data.capacity import as_used
from decal_cli.data.classes import by_usual_names
from decal_cli.data.columns import choose
from decal_cli.data.dataset import Dataset, dataset
from decal_cli.data.formats.files import translated
from decal_cli.data.formats.sources import OwnOrigin
from decal_cli.data.labels import label_text
from decal_cli.data.large.aggregates import aggregates
from decal_cli.data.stream import Stream, StreamColumns, stream_of
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
    """Check arrays, or the columns of a table, as `read` checks files.

    data_or_score: (T,) scores, or a mapping or data frame (pandas, polars, also lazy, pyarrow). With label given as an
    array its columns are scores, each one model (those of columns.score, if named); else all roles are looked up in it
    by `columns` and the usual names. label: (T,) or the name of a column; so are the other roles of one column, such as
    weight=. A role of several, such as group=, takes (T,), a mapping or frame of such, or column name(s); features=
    also (T, d). Errors: DecalError.
    """
    if unknown := sorted(roles.keys() - ROLES.keys()):
        raise TypeError(f"unexpected argument {unknown[0]!r}")
    _check_indexes({"score": data_or_score, "label": label, **roles})
    table: dict[str, Any] = {}
    if is_table(data_or_score):
        table.update(_columns_of(data_or_score, "data"))
        if label is not None and not isinstance(label, str) and not columns.score:
            columns = replace(columns, score=tuple(table))
    else:
        table["score"] = _column(data_or_score, "score")
        columns = replace(columns, score=("score",))
        if label is None:
            raise DecalError("scores without labels", "give label=, of shape (T,), after the scores")
    for role, given in {"label": label, **roles}.items():
        if given is not None:
            names = _several(table, given, role) if several(role) else _one(table, given, role)
            columns = columns.updated({role: names})
    if columns.aggregated:
        counted = aggregates([_table_source(_collected(table, tuple(table)), tuple(table))], columns)
        return as_used(counted, columns)
    return as_used(dataset([_source(table, columns)], columns), columns)


def stream_from_arrays(
    data_or_score: Any,
    label: Any = None,
    *,
    columns: Columns,
    beside: StreamColumns,
    time: Any = None,
    group: Any = None,
    cluster: Any = None,
) -> Stream:
    """Check arrays, or the columns of a table, as `read_stream` checks files.

    time, group, cluster: (T,), or the name of a column. Errors: DecalError.
    """
    _check_indexes({"score": data_or_score, "label": label, "time": time, "group": group, "cluster": cluster})
    table: dict[str, Any] = {}
    if is_table(data_or_score):
        table.update(_columns_of(data_or_score, "data"))
    else:
        table["score"] = _column(data_or_score, "score")
        columns = replace(columns, score=("score",))
    if label is not None:
        columns = replace(columns, label=_one(table, label, "label"))
    if time is not None:
        beside = replace(beside, time=_one(table, time, "time"))
    if group is not None:
        columns = replace(columns, group=(_one(table, group, "group"),))
    if cluster is not None:
        columns = replace(columns, cluster=_one(table, cluster, "cluster"))
    return stream_of([_table_source(_collected(table, tuple(table)), tuple(table))], columns, beside)


def _check_indexes(given: Mapping[str, Any]) -> None:
    """Raise a DecalError where rows of pandas are named, and not in one order.

    Taken in order, rows would be paired that pandas keeps apart; paired by name, those would be that were meant in
    order, such as labels of a shuffled split beside new scores. Nothing tells which of the two it is.
    """
    indexes = list(_indexes(given))
    for name, index in indexes[1:]:
        first, its_index = indexes[0]
        if len(index) == len(its_index) and not index.equals(its_index):
            raise DecalError(
                f"{SHOWN}: the index of {quote(name)} is not that of {quote(first)}",
                "give .to_numpy() of each where they are in one order, or bring one into the order of the other with "
                ".loc[other.index]",
            )


def _indexes(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        for each, part in value.items() if isinstance(value, Mapping) else [(name, value)]:
            index = getattr(part, "index", None)
            if hasattr(index, "equals"):
                yield str(each), index


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
            table = pa.table(value) if hasattr(value, "__arrow_c_stream__") else _interchanged(value)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            if not hasattr(value, "items"):
                raise
            # Objects of several types stand in a column of pandas.
            return {str(name): _column(column, str(name)) for name, column in value.items()}
    return {name: table.column(name) for name in table.column_names}


def _interchanged(value: Any) -> Any:
    from pyarrow.interchange import from_dataframe

    return from_dataframe(value)


def _one(table: dict[str, Any], given: Any, role: str) -> str:
    return given if isinstance(given, str) else _add(table, {role: _column(given, role)})[0]


def _several(table: dict[str, Any], given: Any, role: str) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,)
    if is_table(given):
        return _add(table, _columns_of(given, role))
    # A list of texts may be the values of a group; features are numbers.
    texts = ROLES[role].read_as == "texts"
    if isinstance(given, (list, tuple)) and given and not texts and all(isinstance(g, str) for g in given):
        return tuple(given)
    if isinstance(given, tuple) and all(isinstance(g, str) and g in table for g in given):
        return given
    if role == "features" and not hasattr(given, "__arrow_c_stream__"):
        with translated(SHOWN, f"column {quote(role)}"):
            array = np.asarray(given)
        if array.ndim == 2 and array.dtype.kind in "OU":
            return _add(table, {f"{role}[{k}]": _column(column, f"{role}[{k}]") for k, column in enumerate(array.T)})
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
        if array.ndim == 2 and name == "features" and array.dtype.kind in "fiu" and array.shape[1]:
            return pa.FixedSizeListArray.from_arrays(_numbers(array.ravel()), array.shape[1])
        if array.ndim == 2 and name == "score":
            one = "give one dimension, such as predict_proba(X)[:, 1]"
            several = "for several classes give a frame with a column for each, such as 'p:cat', and proba='p:*'"
            raise DecalError(f"scores have shape {array.shape}", one if array.shape[1] <= 2 else several)
        if array.ndim != 1:
            raise DecalError(f"{SHOWN}, column {quote(name)}: has shape {array.shape}", "give one dimension")
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


def _source(table: dict[str, Any], columns: Columns) -> ArraySource:
    if not table:
        raise DecalError(f"{SHOWN}: has no columns", "give scores and labels")

    def labels_of(name: str) -> set[str]:
        values = table[name]
        texts = [] if isinstance(values, _Uncollected) else values.unique().to_pylist()
        return {label for value in texts if (label := label_text(text_of(value))) is not None}

    columns = by_usual_names(list(table), columns, labels_of)
    chosen = choose(list(table), columns, SHOWN)
    used = tuple(dict.fromkeys((*chosen.numbers, *chosen.texts, *chosen.features)))
    return _table_source(_collected(table, used), used)


def _table_source(table: dict[str, Any], used: tuple[str, ...]) -> ArraySource:
    """The used columns of a table, all of one length."""
    import pyarrow as pa

    lengths = {name: len(column) for name, column in table.items() if not isinstance(column, _Uncollected)}
    first, count = next(iter(lengths.items()))
    for name, length in lengths.items():
        if length != count:
            raise DecalError(
                f"{SHOWN}: {quote(name)} has {length} rows and {quote(first)} {count}", "give arrays of one length"
            )
    with translated(SHOWN, "a table"):
        return ArraySource(list(table), pa.table({name: table[name] for name in used}))


def _collected(table: dict[str, Any], used: tuple[str, ...]) -> dict[str, Any]:
    """The table with the used columns of lazy frames, each frame computed once."""
    waiting = {name: table[name] for name in used if isinstance(table[name], _Uncollected)}
    frames = {id(each.frame): each.frame for each in waiting.values()}
    for key, frame in frames.items():
        names = [name for name, each in waiting.items() if id(each.frame) == key]
        with translated(SHOWN, "a lazy frame"):
            computed = frame.select([waiting[name].name for name in names]).collect()
        table = {**table, **dict(zip(names, _columns_of(computed, "data").values(), strict=True))}
    return table


def rows_in_memory(data: Any, names: tuple[str, ...]) -> ArraySource:
    """The columns of a frame or mapping that a model looks at, as rows to be scored."""
    import pyarrow as pa

    table = _columns_of(data, "data")
    used = tuple(name for name in dict.fromkeys(names) if name in table)
    table = _collected(table, used)
    lengths = sorted({len(table[name]) for name in used})
    if len(lengths) > 1:
        raise DecalError(f"{SHOWN}: columns have {lengths[0]} and {lengths[-1]} rows", "give arrays of one length")
    shown = list(used) if len(used) == len(set(names)) else list(table)
    with translated(SHOWN, "a table"):
        return ArraySource(shown, pa.table({name: table[name] for name in used}))


def column_names(data: Any) -> list[str]:
    """The columns of a frame or mapping."""
    return list(_columns_of(data, "data"))


class ArraySource(OwnOrigin):
    """Columns in memory; of those not used only the names are kept."""

    def __init__(self, names: list[str], table: Any) -> None:
        super().__init__(SHOWN, table, "<arrays>")
        self.names = names

    def sha256(self) -> str:
        """Hex digest of the used columns."""
        return table_digest(self.table)


def table_digest(table: Any) -> str:
    """Hex digest of a pyarrow table, in Arrow's own encoding."""
    import hashlib

    import pyarrow as pa

    digest = hashlib.sha256()
    with pa.ipc.new_stream(pa.PythonFile(_Hashing(digest), mode="w"), table.schema.remove_metadata()) as sink:
        sink.write_table(table.replace_schema_metadata(None), max_chunksize=1 << 16)
    return digest.hexdigest()


class _Hashing:
    """A file that only feeds a digest."""

    closed = False

    def __init__(self, digest: Any) -> None:
        self.digest = digest
        self.at = 0

    def write(self, data: Any) -> int:
        self.digest.update(data)
        self.at += len(data)
        return len(data)

    def tell(self) -> int:
        return self.at

    def flush(self) -> None: ...

    def close(self) -> None: ...
