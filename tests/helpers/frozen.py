"""Every number of some seventy runs as it was once, and what has been changed since on purpose.

`python -m tests.helpers.frozen --record` records all anew. Once the record is frozen, a change that is meant gets a
line in meant_differences.csv, with the number that decides in its reason and the first words of its commit; `--meant`
then keeps what these numbers are from now on.
"""

import csv
import io
import json
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

from tests.helpers.command import FIXTURES, ROOT, run_here
from tests.helpers.frozen_cases import CASES, UNSTABLE
from tests.helpers.seeded import write_counts, write_seeded

_FOLDER = ROOT / "tests" / "frozen"
FROZEN_RECORD = _FOLDER / "record.parquet"
MEANT = _FOLDER / "meant.parquet"
LISTED = _FOLDER / "meant_differences.csv"
_ROWS = 400
RELATIVE, ABSOLUTE = 1e-9, 1e-10
"""How far a number may be from the record: sums differ in their last bits from one processor to the next."""
VOLATILE = {"decal", "signature", "sha256", "seconds", "fitted_at", "created", "versions"}
"""Keys of digests, times and versions."""

ABSENT = "(no such key)"

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


def run_frozen_case(folder: Path, line: str) -> Leaves:
    """What the last command of the line prints, flattened; commands other than apply print JSON."""
    done = None
    for command in line.split(" && "):
        words = shlex.split(command)
        as_json = [] if words[0] == "apply" else ["--format", "json"]
        force = ["--force"] if words[0] == "fit" else []
        done = run_here(folder, (*words, *as_json, *force))
        if done.code not in (0, 1):
            return {"exit": float(done.code), "refused": done.err.strip()}
    assert done is not None
    if done.out.startswith("{"):
        document = json.loads(done.out)
    else:
        document = [
            {key: _number_or_text(cell) for key, cell in row.items()} for row in csv.DictReader(io.StringIO(done.out))
        ]
    return {"exit": float(done.code), **dict(flattened(document))}


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
    statement = run_here(folder, tuple(shlex.split("sql --table rows --score p --label y --cells --threshold .4"))).out
    with duckdb.connect(folder / "file.db", read_only=True) as connection:
        connection.execute(f"COPY ({statement.strip().rstrip(';')}) TO '{folder}/cells.parquet' (FORMAT parquet)")


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
            now[case] = run_frozen_case(Path(name), line)
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
    print("python -m tests.helpers.frozen --record | --meant", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(record_or_check(sys.argv[1:]))
