"""Valid files of every format, damaged and read: anything but a dataset or a one-line DecalError is a failure."""

import functools
import gzip
import io
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq

from decal_cli.data import Columns, NewRows, Writer, from_arrays, read
from decal_cli.errors import DecalError
from decal_cli.tables.features import Features

COLUMNS = [
    Columns(),
    Columns(missing="drop"),
    Columns(score=("p", "q"), weight="w", group=("g", "k", "b"), missing="drop"),
    Columns(score=("p*", "q"), label="y", features=("x*",)),
    Columns(score=("p",), features=("emb",), missing="drop"),
    Columns(score=("p",), features=("x1", "k"), group=("d", "t"), missing="drop"),
    Columns(score=("p",), features=("t", "g", "b", "d", "x2", "k"), missing="drop"),
    Columns(score=("p",), features=("*",)),
    Columns(label="t", positive="a", group=("y",)),
    Columns(label="k", positive="1"),
    Columns(score=("z",), label="b", logit=True),
    Columns(score=("t",), weight="p"),
    Columns(score=("nested",), label="emb", group=("nested",)),
    Columns(score=("d",), label="d"),
]
CELLS = [
    *(
        "",
        " ",
        "nan",
        "NaN",
        "inf",
        "-inf",
        "1e999",
        "-0",
        "0x1",
        "1_0",
        "½",
        "١",
        "1,5",
        "0.5",
        "1",
        "2",
        "true",
        "\0",
    ),
    *('"', '""', '"\n"', "\n", "\r", "\t", ";", "\ufeff", "\ud800", "{", "[1,2]", "null", "'", "9" * 400),
    "é" * 50,
]
TOKENS = [
    *(
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"PAR1",
        b"ARROW1",
        b"\x1f\x8b",
        b"\xff\xff\xff\xff",
        b"\n",
        b"\r",
        b'"',
        b",",
    ),
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b"NaN",
        b"1e999",
        b"\xc3",
        b"\xed\xa0\x80",
        b"-",
        b"true",
        b'"p"',
        b"p,y\n",
        b"\\ud800",
    ),
]


def seeds(rng: np.random.Generator) -> dict[str, bytes]:
    """Small valid files, one of each format and encoding."""
    n = 40
    p = rng.random(n)
    holes = np.where(rng.random(n) < 0.1, np.nan, p)
    table = pa.table(
        {
            "p": p,
            "q": pa.array(holes, from_pandas=True),
            "z": rng.normal(size=n).astype(np.float32),
            "y": pa.array(rng.integers(0, 2, n), pa.int8()),
            "w": rng.random(n) + 0.1,
            "g": pa.array(rng.choice(["a", "b", "ü"], n).tolist()).dictionary_encode(),
            "k": rng.integers(1, 3, n),
            "b": pa.array((rng.random(n) < 0.5).tolist()),
            "t": rng.choice(["a", "b,c"], n).tolist(),
            "d": pa.array(rng.integers(0, 3, n).astype(np.int32)).cast(pa.date32()),
            "x1": rng.normal(size=n),
            "x2": pa.array([None if v < 0.1 else v for v in rng.random(n)], pa.float32()),
            "emb": pa.array(rng.random((n, 3)).tolist(), pa.list_(pa.float32())),
            "nested": pa.array([{"a": 1}] * n),
        }
    )
    flat = table.drop_columns(["emb", "nested"])
    files: dict[str, bytes] = {}

    def put(name: str, write: Any, what: pa.Table = table) -> None:
        sink = io.BytesIO()
        write(what, sink)
        files[name] = sink.getvalue()

    def ipc(new: Any, **options: Any) -> Any:
        def write(what: pa.Table, sink: Any) -> None:
            with new(sink, what.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
                writer.write_table(what, max_chunksize=16)

        return write

    put("parquet", lambda t, s: pq.write_table(t, s, row_group_size=16))
    put("parquet-plain", lambda t, s: pq.write_table(t, s, use_dictionary=False, compression="none"))
    put("parquet-v2", lambda t, s: pq.write_table(t, s, data_page_version="2.0", compression="gzip"))
    put("parquet-small", pq.write_table, table.select(["p", "y"]))
    put("feather", lambda t, s: feather.write_feather(t, s, chunksize=16))
    put("arrow-file", ipc(pa.ipc.new_file))
    put("arrow-stream", ipc(pa.ipc.new_stream))
    put("arrow-stream-zstd", ipc(pa.ipc.new_stream, compression="zstd"))
    put("csv", pacsv.write_csv, flat)
    put("csv-semicolon", lambda t, s: pacsv.write_csv(t, s, pacsv.WriteOptions(delimiter=";")), flat)
    rows = [{k: str(v) if k == "d" else v for k, v in row.items()} for row in table.to_pylist()]
    files["jsonl"] = "".join(json.dumps(row) + "\n" for row in rows).encode()
    files["jsonl-small"] = "".join(json.dumps({"p": r["p"], "y": r["y"]}) + "\n" for r in rows).encode()
    for name in ("csv", "jsonl", "parquet-small", "arrow-stream"):
        files[name + ".gz"] = gzip.compress(files[name])
    return files


def mutated(content: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """One to a few random damages."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(8):
            case 0:
                for _ in range(rng.choice([1, 1, 4, 32])):
                    if data:
                        data[rng.randrange(len(data))] = rng.randrange(256)
            case 1:
                if data:
                    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            case 2:
                del data[at:]
            case 3:
                del data[at : at + rng.randrange(1, 64)]
            case 4:
                data[at:at] = rng.choice(TOKENS) * rng.choice([1, 1, 3])
            case 5:
                other = rng.choice(others)
                cut = rng.randrange(len(other) + 1)
                data[at:] = other[cut:]
            case 6:
                end = at + rng.randrange(1, 64)
                data[at:at] = data[at:end]
            case 7:
                data[at : at + 8] = rng.choice([0, 1, 2**31 - 1, 2**32, 2**63 - 1, 2**64 - 1]).to_bytes(8, "little")
    return bytes(data)


def odd_cells(content: bytes, rng: random.Random) -> bytes:
    """A CSV in which some cells, header included, hold odd texts, unquoted or quoted."""
    lines = content.decode().split("\n")
    for _ in range(rng.choice([1, 1, 2, 10])):
        at = rng.randrange(len(lines))
        cells = lines[at].split(",")
        cell = rng.choice(CELLS)
        cells[rng.randrange(len(cells))] = '"' + cell.replace('"', '""') + '"' if rng.random() < 0.5 else cell
        lines[at] = ",".join(cells)
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def odd_values(content: bytes, rng: random.Random) -> bytes:
    """JSON Lines in which some values are odd."""
    lines = content.decode().splitlines()
    values = [None, True, [], [1, "a"], {"a": 1}, "x", "", "\ud800", 10**400, -1, 1.5, 2**70, [[1]], [None], "1"]
    for _ in range(rng.choice([1, 1, 2, 10])):
        at = rng.randrange(len(lines))
        row = json.loads(lines[at])
        row[rng.choice([*row, "new"])] = rng.choice(values)
        lines[at] = json.dumps(row)
    return "\n".join(lines).encode()


def attempt(content: bytes, path: Path, columns: Columns, way: int) -> str:
    """Read in one of several ways; the outcome in a word. Raises what ought not to be raised."""
    try:
        if way == 0:
            data = read([str(path)], Columns(score=columns.score, label=columns.label, positive=columns.positive))
        elif way == 1:
            data = read(["-"], columns, io.BytesIO(content))
        elif way == 2:
            data = read([str(path), str(path)], columns)
        else:
            data = read([str(path)], columns)
        for model in data.models:
            rows = model.rows
            assert len(rows) == len(rows.label) > 0 and rows.label.max() <= 1
            assert rows.score.min() >= 0 and rows.score.max() <= 1
            assert rows.weight is None or (len(rows.weight) == len(rows) and rows.weight.min() > 0)
            if rows.features is not None:
                features = rows.typed
                assert len(features) == len(rows) and not np.isinf(features.numbers).any()
                assert features.numbers.shape[1] + features.codes.shape[1] == len(features.kinds)
                assert all(
                    -1 <= codes.min() <= codes.max() < max(1, len(names)) for codes, names in columns_of(features)
                )
        assert all(note.isprintable() for note in data.notes)
        return "read"
    except DecalError as error:
        text = str(error)
        assert text.isprintable() and "Traceback" not in text, f"not one line: {text!r}"
        assert error.fix, f"says not what to do: {text!r}"
        assert len(text) < 2_000, f"a long line: {text!r}"
        return "refused"


def columns_of(features: Features) -> Any:
    return zip(features.codes.T, features.categories, strict=True)


STREAMED: list[tuple[Columns, tuple[Any, ...]]] = [
    (Columns(score=("p",)), ()),
    (Columns(score=("q",), missing="drop"), ()),
    (Columns(score=("p",), features=("x1", "k"), group=("g", "b")), ("number", "number")),
    (Columns(score=("q",), features=("x2", "w"), group=("t",), missing="drop"), ("missing", "number")),
    (Columns(score=("p",), features=("emb",), missing="drop"), ("number",) * 3),
    (Columns(score=("p",), features=("t", "b", "d", "x1", "g")), ("category", "boolean", "date", "number", "category")),
    (Columns(score=("z",), logit=True), ()),
]
"""What a model may ask of new rows, and of what kind the columns of its features are."""


def streamed(path: Path, rng: random.Random) -> str:
    """Read as rows to be scored, every column, and written again; the outcome in a word."""
    columns, kinds = rng.choice(STREAMED)
    try:
        writer = Writer(f"out{rng.choice(['.csv', '.parquet'])}", io.BytesIO())
        rows = NewRows(str(path), columns, kinds, None)
        for batch in rows.batches():
            assert len(batch.known) == batch.table.num_rows and int(batch.known.sum()) == len(batch.rows)
            score = batch.rows.score
            assert not len(score) or 0 <= score.min() <= score.max() <= 1
            assert len(batch.rows.typed) == len(score) and batch.rows.typed.kinds == kinds
            writer.write(batch.table, {"new score": score}, batch.known)
        writer.close()
        return "streamed"
    except DecalError as error:
        assert str(error).isprintable() and error.fix, f"not one line: {str(error)!r}"
        return "refused"


@functools.cache
def whole_files(seed: int) -> dict[str, bytes]:
    """The files of one seed."""
    return seeds(np.random.default_rng(seed))


def case(rng: random.Random, folder: Path) -> str:
    """One damaged file, read in one of several ways; now and then odd arrays."""
    files = whole_files(rng.randrange(8))
    name = rng.choice(list(files))
    content = files[name]
    if name == "csv" and rng.random() < 0.7:
        content = odd_cells(content, rng)
    elif name.startswith("jsonl") and not name.endswith(".gz") and rng.random() < 0.5:
        content = odd_values(content, rng)
    elif name.endswith(".gz") and rng.random() < 0.5:
        content = gzip.compress(mutated(gzip.decompress(content), list(files.values()), rng))
    else:
        content = mutated(content, list(files.values()), rng)
    path = folder / "case"
    path.write_bytes(content)
    way = rng.randrange(100)
    if way < 2:
        return arrays(rng)
    return attempt(content, path, rng.choice(COLUMNS), way % 6) if way < 75 else streamed(path, rng)


def arrays(rng: random.Random) -> str:
    """The Python API on odd arguments."""
    odd: list[Any] = [
        None,
        [],
        [0.5],
        [0.5, 0.2],
        [0, 1],
        "p",
        ["a", "b"],
        [None, 1],
        [[1, 2], [3, 4]],
        {},
        {"p": [1]},
        3,
    ]
    odd += [
        np.zeros((2, 2)),
        np.array([0.5, np.nan]),
        np.array(["a", "b"]),
        np.array([1j, 2]),
        object(),
        b"x",
        [{}, []],
    ]
    try:
        from_arrays(rng.choice(odd), rng.choice(odd), weight=rng.choice(odd), features=rng.choice(odd))
    except DecalError as error:
        assert str(error).isprintable()
    return "arrays"
