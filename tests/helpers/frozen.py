"""Every number of some ninety runs as it was once, what has been changed since on purpose, and what runs print.

`python -m tests.helpers.frozen --record` records all numbers anew. Once the record is frozen, a change that is meant
gets a line in meant_differences.csv, with the number that decides in its reason and the first words of its commit;
`--meant` then keeps what these numbers are from now on.

`--texts [CASE ..]` records anew what runs print, write and draw, and lists what differs from before: read that list, as
you would read the difference of a golden file.
"""

import contextlib
import csv
import io
import math
import shlex
import sys
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import decal_cli
from tests.helpers.command import FIXTURES, ROOT, run_here, valid_json
from tests.helpers.frozen_cases import CASES, PRINTED, UNSTABLE
from tests.helpers.printed import (
    NARROW,
    Loose,
    Texts,
    files_of,
    settled,
    text_differences,
    texts_written,
    watched,
)
from tests.helpers.seeded import write_counts, write_seeded, write_tied, write_world

_FOLDER = ROOT / "tests" / "frozen"
FROZEN_RECORD = _FOLDER / "record.parquet"
MEANT = _FOLDER / "meant.parquet"
PRINTED_RECORD = _FOLDER / "printed.parquet"
LISTED = _FOLDER / "meant_differences.csv"
_ROWS = 400
RELATIVE, ABSOLUTE = 1e-9, 1e-10
"""How far a number may be from the record: sums differ in their last bits from one processor to the next."""
VOLATILE = {"decal", "signature", "sha256", "seconds", "fitted_at", "created", "versions"}
"""Keys of digests, times and versions."""

ABSENT = "(no such key)"
_ROTATING = ("csv", "html", "markdown", f"table of {NARROW}")
"""Forms of which a case of JSON keeps one."""
_MIXED = """
    CREATE TABLE mixed AS SELECT p, q, y, c, x1, p * 8 - 3 AS m, round(ln((p + .01) / (1.01 - p)), 3) AS l,
        if(c % 9 = 0, NULL, x3) AS kind, 'town ' || c % 40 AS town,
        if(y = 1, 'yes', 'no') AS word, 'row of ' || x3 || if(x2 > 0, ' with good ', ' with bad ') || 'news ' || c
        AS note FROM rows;
    COPY mixed TO '{folder}/mixed.csv';
    COPY mixed TO '{folder}/mixed.jsonl.gz' (FORMAT json, COMPRESSION gzip);
    CREATE TABLE fine AS SELECT greatest(least(p + (x1 - floor(x1)) / 90000, 1), 0) AS p,
        greatest(least(q + (x2 - floor(x2)) / 90000, 1), 0) AS q, y FROM rows
"""
"""Rows with features of every kind, and rows with several scores in a cell."""

Value = float | str | None
Leaves = dict[str, Value]
"""By key path, such as 'metrics.brier.interval.0'."""
Record = dict[str, Leaves]
"""By case."""


class Meant(NamedTuple):
    """A line of meant_differences.csv; case and key are patterns."""

    case: str
    key: str
    reason: str
    commit: str


class FrozenRun(NamedTuple):
    """What a case gives: numbers and texts of the JSON by key path, and what stands in every other form."""

    leaves: Leaves
    texts: Texts


class Difference(NamedTuple):
    case: str
    key: str
    was: Value
    now: Value

    @property
    def none(self) -> bool:
        """Whether the two are the same, but for what sums may differ by from one processor to the next."""
        if not (isinstance(self.was, float) and isinstance(self.now, float)):
            return self.was == self.now
        unstable = (
            within for case, key, within in UNSTABLE if fnmatchcase(self.case, case) and fnmatchcase(self.key, key)
        )
        return math.isclose(self.was, self.now, rel_tol=next(unstable, RELATIVE), abs_tol=ABSOLUTE)


def run_frozen_case(folder: Path, line: str) -> FrozenRun:
    """What the last command of the line gives; commands other than apply print JSON."""
    done, texts = None, {}
    for command in line.split(" && "):
        words = shlex.split(command)
        as_json = [] if words[0] == "apply" else ["--format", "json"]
        force = ["--force"] if words[0] == "fit" else []
        with watched() as seen:
            done = run_here(folder, (*words, *as_json, *force))
            texts = seen.texts()
        if done.code not in (0, 1):
            return FrozenRun({"exit": float(done.code), "refused": done.err.strip()}, {})
    assert done is not None
    # In every format they would be ten times as long, and say the same.
    left_out = {*_ROTATING} - {_ROTATING[len(line) % len(_ROTATING)]}
    texts = {name: text for name, text in texts.items() if name not in left_out}
    if done.out.startswith("{"):
        document = valid_json(done.out)
    else:
        document = [
            {key: _number_or_text(cell) for key, cell in row.items()} for row in csv.DictReader(io.StringIO(done.out))
        ]
    leaves = {"exit": float(done.code), **dict(flattened(document))}
    return FrozenRun(leaves, {"error": settled(done.err), **texts})


def run_printed_case(folder: Path, line: str) -> Texts:
    """What a line leaves as it stands: its exit code, streams and files, and its last result in every format."""
    if line.startswith("python "):
        with contextlib.chdir(folder):
            try:
                answer = eval(line.removeprefix("python "), {"decal": decal_cli})
            except decal_cli.DecalError as error:
                return {"error": str(error)}
        return {"output": settled(f"{answer!r}\n{answer}"), "html": settled(answer._repr_html_())}
    before, code, out, err = files_of(folder), 0, "", ""
    with watched() as seen:
        for command in line.split(" && "):
            done = run_here(folder, shlex.split(command))
            code, out, err = done.code, f"{out}{done.out}", f"{err}{done.err}"
    texts = seen.texts()
    streams = {"exit": str(code), "output": settled(out), "error": settled(err)}
    new = {text: name for name, text in {**texts, **texts_written(folder, before), **streams}.items()}
    return {name: text for text, name in new.items() if text}


def loose_in(case: str, leaves: Leaves) -> Loose:
    """The values that the last bit of a sum moves, and by which share."""
    return [
        (value, within)
        for key, value in leaves.items()
        for of, path, within in UNSTABLE
        if isinstance(value, float) and fnmatchcase(case, of) and fnmatchcase(key, path)
    ]


def flattened(document: Any, path: str = "") -> Iterator[tuple[str, Value]]:
    """Key path and value of every number, text, truth value and null, and of every empty list and object."""
    inside = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else None
    )
    if inside is None:
        yield path[1:], document if isinstance(document, str | None) else float(document)
    elif not document:
        yield path[1:], "{}" if isinstance(document, dict) else "[]"
    else:
        for key, each in inside:
            if key not in VOLATILE:
                yield from flattened(each, f"{path}.{key}")


def write_inputs(folder: Path) -> None:
    """All files that the cases name."""
    (folder / "fixtures").symlink_to(FIXTURES)
    write_seeded(folder, _ROWS)
    write_counts(folder, "counts.parquet", ["p AS score", "g"])
    write_counts(folder, "pairs.parquet", ["p AS score_a", "q AS score_b"])
    lines = (folder / "rows.csv").read_text().splitlines(keepends=True)
    (folder / "few.csv").write_text("".join(lines[:11]))
    (folder / "first.csv").write_text("".join(lines[:201]))
    write_tied(folder / "tied.csv")
    (folder / "prior.csv").write_text("threshold,weight\n.2,1\n.4,3\n")
    for k in range(8):
        write_world(folder / f"world{k}.csv", k)
    with duckdb.connect(folder / "file.db") as connection:
        connection.execute(_MIXED.format(folder=folder))
    for name, table, more in (
        ("cells", "rows", "--score p --label y --threshold .4"),
        ("coarse", "fine", "--score p --label y --threshold .3"),
        ("coarse_pairs", "fine", "--score p --score q --pairs --label y --threshold .3"),
    ):
        statement = run_here(folder, shlex.split(f"sql --table {table} --cells {more}")).out.strip().rstrip(";")
        with duckdb.connect(folder / "file.db", read_only=True) as connection:
            connection.execute(f"COPY ({statement}) TO '{folder}/{name}.parquet' (FORMAT parquet)")


def differences(case: str, was: Leaves, now: Leaves) -> list[Difference]:
    """Where two runs are apart; a key that only one of them has is apart from ABSENT."""
    found = (Difference(case, key, was.get(key, ABSENT), now.get(key, ABSENT)) for key in {**was, **now})
    return [each for each in found if not each.none]


def truth() -> Record:
    """The record, with what is meant to differ from it put in its place."""
    meant = read_record(MEANT)
    return {case: leaves | meant.get(case, {}) for case, leaves in read_record(FROZEN_RECORD).items()}


def reason_of(case: str, key: str, listed: list[Meant]) -> Meant | None:
    """The first line of the list that speaks of this number."""
    return next((one for one in listed if fnmatchcase(case, one.case) and fnmatchcase(key, one.key)), None)


def meant_differences() -> list[Meant]:
    with LISTED.open(encoding="utf-8", newline="") as file:
        return [Meant(**row) for row in csv.DictReader(file)]


def read_record(path: Path) -> Record:
    record: Record = {}
    for row in pq.read_table(path).to_pylist():
        record.setdefault(row["case"], {})[row["key"]] = row["text"] if row["number"] is None else row["number"]
    return record


def write_record(path: Path, record: Record) -> None:
    rows = [(case, key, value) for case, leaves in record.items() for key, value in leaves.items()]
    columns = {
        "case": [case for case, _, _ in rows],
        "key": [key for _, key, _ in rows],
        "number": pa.array([value if isinstance(value, float) else None for _, _, value in rows], pa.float64()),
        "text": pa.array([value if isinstance(value, str) else None for _, _, value in rows], pa.string()),
    }
    path.parent.mkdir(exist_ok=True)
    pq.write_table(
        pa.table(columns), path, compression="zstd", compression_level=19, use_dictionary=["case", "key", "text"]
    )


def read_texts() -> dict[str, Texts]:
    texts: dict[str, Texts] = {}
    for row in pq.read_table(PRINTED_RECORD).to_pylist():
        texts.setdefault(row["case"], {})[row["name"]] = row["text"]
    return texts


def write_texts(record: dict[str, Texts]) -> None:
    rows = [(case, name, text) for case, texts in record.items() for name, text in texts.items()]
    columns = dict(zip(("case", "name", "text"), map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), PRINTED_RECORD, compression="zstd", compression_level=19, use_dictionary=["case"])


def record_texts(cases: list[str]) -> None:
    """Keep what these cases, or all, print from now on, with a line on standard output for all that differs."""
    was = read_texts() if PRINTED_RECORD.exists() else {}
    now: dict[str, Texts] = {}
    with tempfile.TemporaryDirectory() as name:
        write_inputs(Path(name))
        for case in (*CASES, *PRINTED):
            if cases and case not in cases and case in was:
                now[case] = was[case]
                continue
            start = process_time()
            run = run_frozen_case(Path(name), CASES[case]).texts if case in CASES else None
            now[case] = run_printed_case(Path(name), PRINTED[case]) if run is None else run
            print(f"{process_time() - start:5.2f} s  {case}", file=sys.stderr)
            for line in text_differences(was[case], now[case]) if case in was else ["is new"]:
                print(f"{case}: {line[:1000]}")
    write_texts(now)


def _number_or_text(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell


def run_all() -> Record:
    """All cases, with a line on standard error for each."""
    with tempfile.TemporaryDirectory() as name:
        write_inputs(Path(name))
        now: Record = {}
        for case, line in CASES.items():
            start = process_time()
            now[case] = run_frozen_case(Path(name), line).leaves
            print(f"{process_time() - start:5.2f} s  {len(now[case]):5} values  {case}", file=sys.stderr)
            assert "refused" not in now[case], (case, now[case])
    return now


def record_what_is_meant(now: Record) -> list[Difference]:
    """Keep the numbers that the list speaks of as they are now; returned are those that it does not speak of."""
    was, listed = read_record(FROZEN_RECORD), meant_differences()
    found = [each for case in was for each in differences(case, was[case], now[case])]
    meant: Record = {}
    for each in found:
        if reason_of(each.case, each.key, listed):
            meant.setdefault(each.case, {})[each.key] = each.now
    write_record(MEANT, meant)
    return [each for each in found if not reason_of(each.case, each.key, listed)]


def record_or_check(arguments: list[str]) -> int:
    if arguments == ["--record"]:
        assert not meant_differences(), "the record is frozen: there are meant differences from it"
        write_record(FROZEN_RECORD, run_all())
        write_record(MEANT, {})
        return 0
    if arguments == ["--meant"]:
        unlisted = record_what_is_meant(run_all())
        for each in unlisted:
            print(f"not in {LISTED.name}: {each.case}: {each.key}: was {each.was}, now {each.now}")
        return int(bool(unlisted))
    if arguments[:1] == ["--texts"]:
        record_texts(arguments[1:])
        return 0
    print(f"{__doc__}\npython -m tests.helpers.frozen --record | --meant | --texts [CASE ..]", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(record_or_check(sys.argv[1:]))
