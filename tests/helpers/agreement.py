"""One data set of hard cases, judged in memory and in every other way that decal takes rows: do the numbers agree?

`make agreement` runs it with 10^6 rows, which takes about an hour; tests run it with few rows.
"""

import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

import decal_cli
from decal_cli.data import reading as file_reading
from decal_cli.data.large.engines import DIALECTS, counting
from decal_cli.data.large.engines.statement import CountRequest, statement
from decal_cli.tables import estimate
from decal_cli.tables.aggregated import COUNTS_HAVE_NONE, NEEDS_ROWS
from tests.helpers.server import programs, running

VALUES, INTERVALS, NEAR_ZERO = 1e-12, 1e-9, 1e-14
"""How far numbers may be apart: relatively, and absolutely."""
THRESHOLD = 0.05
POSTGRES_TYPES = (
    "p DOUBLE PRECISION, q DOUBLE PRECISION, y TEXT, d NUMERIC(9, 6), e NUMERIC(9, 6), w DOUBLE PRECISION, s TEXT, "
    "c INTEGER, m DOUBLE PRECISION"
)
_LABELLED = {"label": "y", "positive": "it's"}
_GROUPED = {"score": ["p", "q"], **_LABELLED, "group": "s"}
KINDS: dict[str, dict[str, Any]] = {
    "rows": _GROUPED,
    "weights": {**_GROUPED, "weight": "w"},
    "clusters": {**_GROUPED, "cluster": "c"},
    "weights and clusters": {**_GROUPED, "weight": "w", "cluster": "c"},
    "decimals": {"score": ["d", "e"], **_LABELLED},
    "missing scores": {"score": ["m", "q"], **_LABELLED, "missing": "drop"},
}
"""What is asked about the same rows."""
GATED_RULES = ["upper(brier)<=.2", "auc>=.6", "gap(ece)<=.5", "log_loss<=1", "expected_utility>=-1", "net_benefit>=-1"]
VERBS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "evaluate": (decal_cli.evaluate, {"threshold": THRESHOLD}),
    "recommend": (decal_cli.recommend, {"threshold": THRESHOLD}),
    "gate": (decal_cli.gate, {"threshold": THRESHOLD, "rules": GATED_RULES}),
    "sweep": (decal_cli.sweep, {"thresholds": [0.01, THRESHOLD, 0.2]}),
    "compare": (decal_cli.compare, {"threshold": THRESHOLD}),
}
OF_INTERVALS = ("interval", "low", "high", "band", "by_chance", "p_value", "change")
"""Of intervals, and of the few rows that are decided otherwise: a difference of sums over all."""
SUMS = ("brier", "log_loss", "observed_expected")
EXACT_IN_CELLS = (*SUMS, "expected_utility", "net_benefit", "utility_at_stake")
"""With their intervals, where the thresholds of the decision are edges of cells."""
SUMS_OF_CLUSTERS = 5e-3
"""How far intervals of sums, by their width, and drawn nulls may be off where clusters are counted by coarse cells."""
FOR_WANT_OF_ROWS = (NEEDS_ROWS, COUNTS_HAVE_NONE, "Name the feature columns of rows")
"""What is said where counts are known, and not rows."""
APART = {"inputs", "signature", "notes", "columns", "model", "models"}
"""Parts of a document that say where rows were counted."""


def rows_of_hard_cases(count: int) -> pa.Table:
    """Ties, -0.0, 0 and 1, rare positives, weights, labels as words, decimals, clusters, and scores that are missing.

    Groups have a quote in their name, or no name.
    """
    rng = np.random.default_rng(11)
    p = np.where(rng.random(count) < 0.5, np.round(rng.beta(1, 20, count), 3), rng.beta(1, 20, count))
    few = max(count // 1000, 2)
    p[: 3 * few] = np.repeat([-0.0, 0.0, 1.0], few)
    label = rng.random(count) < p
    q = np.round(np.abs(p) ** 0.9, 4)
    decimals = (pa.array(np.round(np.abs(each), 6)).cast(pa.decimal128(9, 6)) for each in (p, q))
    columns = {"p": p, "q": q, "y": np.where(label, "it's", "no"), **dict(zip("de", decimals, strict=True))}
    columns["w"] = np.round(rng.lognormal(0, 1, count) + 0.01, 3)
    columns["s"] = np.array(["a", "it's", "ü", ""])[rng.integers(0, 4, count)]
    columns["c"] = rng.integers(0, max(count // 8, 2), count)
    return pa.table(columns | {"m": pa.array(p, mask=rng.random(count) < 0.1)})


@dataclass(frozen=True)
class Way:
    """One way to hand over rows. cells: whether scores are counted in cells; data: of a verb and what is asked."""

    name: str
    cells: bool
    data: Callable[[str, Mapping[str, Any]], tuple[Any, dict[str, Any]]]


@dataclass
class Agreement:
    """How many numbers were compared exactly, how many within bounds, and the places where they are too far apart."""

    n_values: int = 0
    n_bounded: int = 0
    apart: list[str] = field(default_factory=list)

    def of(self, got: Any, expected: Any, place: str = "", limit: float = VALUES) -> None:
        """Compare two documents, or parts of them."""
        if isinstance(expected, dict):
            if not isinstance(got, dict) or got.keys() - APART != expected.keys() - APART:
                self.apart.append(f"{place}: other keys")
                return
            if got.get("reason") == NEEDS_ROWS and expected["value"] is None:
                return
            for key in expected.keys() - APART:
                self.of(got[key], expected[key], f"{place}/{key}", INTERVALS if key in OF_INTERVALS else limit)
        elif isinstance(expected, list) and isinstance(got, list) and len(got) == len(expected):
            for at, (one, other) in enumerate(zip(got, expected, strict=True)):
                self.of(one, other, f"{place}[{at}]", limit)
        elif isinstance(expected, float) and isinstance(got, (int, float)):
            self.n_values += 1
            off = abs(got - expected)
            if off > NEAR_ZERO and off > limit * max(abs(expected), NEAR_ZERO):
                self.apart.append(f"{place}: {got!r} is not {expected!r}")
        elif got != expected and not str(got).startswith(FOR_WANT_OF_ROWS):
            self.apart.append(f"{place}: {got!r:.60} is not {expected!r:.60}")

    def of_cells(self, got: dict[str, Any], expected: dict[str, Any]) -> None:
        """Compare the metrics of two documents; the first is made of cells, and says how far each may be off."""
        if "comparison" in got:
            pairs = zip(*(each["comparison"]["contests"] for each in (got, expected)), strict=True)
        else:
            pairs = zip(*(each.get("reports", [each]) for each in (got, expected)), strict=True)
        for at, (of_cells, of_rows) in enumerate(pairs):
            near = (*SUMS, "ece_null") if "clusters" in of_rows else ()
            for key, curve in of_cells.get("sweep", {}).get("curves", {}).items():
                if key in EXACT_IN_CELLS and key not in near:
                    self.of(curve, of_rows["sweep"]["curves"][key], f"[{at}]/{key}")
            for key, metric in of_cells.get("metrics", {}).items():
                place, exact = f"[{at}]/{key}", key in EXACT_IN_CELLS
                self._of_cell_metric(metric, of_rows["metrics"][key], place, exact, key in near)

    def _of_cell_metric(
        self, metric: dict[str, Any], other: dict[str, Any], place: str, exact: bool, near: bool
    ) -> None:
        within = metric.get("within") or {"bound": 0.0, "drawn": False}
        of_pair, of_rows = metric.get("difference", metric), other.get("difference", other)
        ends, expected = np.array([each.get("interval") or (0.0, 0.0) for each in (metric, other)])
        if exact and near and np.abs(ends - expected).max() <= SUMS_OF_CLUSTERS * np.ptp(expected):
            metric = {**metric, "interval": other["interval"]}
        if exact:
            assert not within["bound"], place
            self.of({**metric, "within": None}, {**other, "within": None}, place)
        elif of_pair["value"] is None or within["drawn"]:
            return
        elif not within["bound"]:
            self.of(of_pair["value"], of_rows["value"], place, SUMS_OF_CLUSTERS if near else VALUES)
        else:
            self.n_bounded += 1
            if not abs(of_pair["value"] - of_rows["value"]) <= within["bound"] + VALUES:
                self.apart.append(f"{place}: {of_pair['value']} is not within {within['bound']} of {of_rows['value']}")


def judged(verb: str, data: Any, asked: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The document that a verb gives."""
    call, options = VERBS[verb]
    if verb != "compare" and "score" in asked:
        asked = {**asked, "score": asked["score"][0]}
    document: dict[str, Any] = call(data, **asked, **options, **more).to_dict()
    return document


def file_ways(path: Path) -> Iterator[Way]:
    """Files that are counted while they are read. An engine of SQL that is a file, and what anyone exports of it."""
    as_csv = path.with_name("preds.csv")
    pacsv.write_csv(pq.read_table(path), as_csv)
    for name, file in (("parquet", path), ("csv", as_csv)):
        for cells in (False, True):
            yield Way(name, cells, lambda verb, asked, file=file: (file, dict(asked)))
    database = path.with_name("rows.db")
    with duckdb.connect(database) as connection:
        connection.execute(f"CREATE TABLE preds AS SELECT * FROM '{path}'")
    yield from engine_ways("duckdb", f"duckdb:{database}?table=preds")
    with closing(sqlite3.connect(path.with_name("rows.sqlite"))) as connection, connection:
        connection.execute(
            "CREATE TABLE preds (p REAL, q REAL, y TEXT, d NUMERIC, e TEXT, w REAL, s TEXT, c INTEGER, m REAL)"
        )
        # SQLite has no decimals: they are numbers, or texts.
        rows = zip(*(column.to_pylist() for column in pq.read_table(path).columns), strict=True)
        given = ([str(value) if isinstance(value, Decimal) else value for value in row] for row in rows)
        connection.executemany("INSERT INTO preds VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", given)
    yield from engine_ways("sqlite", f"sqlite:{path.with_name('rows.sqlite')}?table=preds")

    def exported(form: str, cells: bool) -> Callable[[str, Mapping[str, Any]], tuple[Any, dict[str, Any]]]:
        def export(verb: str, asked: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
            scores = tuple(asked["score"] if verb == "compare" else asked["score"][:1])
            groups = (asked["group"],) if "group" in asked else ()
            request = CountRequest(
                scores,
                asked["label"],
                "preds",
                "",
                asked["positive"],
                asked.get("weight", ""),
                groups,
                cells=cells,
                thresholds=(0.01, THRESHOLD, 0.2) if cells else (),
                cluster=asked.get("cluster", ""),
                pairs=verb == "compare",
            )
            counts = path.with_name(f"counts.{form}")
            with duckdb.connect(database, read_only=True) as connection:
                connection.execute(f"COPY ({statement(request, DIALECTS['duckdb'])}) TO '{counts}'")
            kept = {key: asked[key] for key in ("group", "cluster", "missing") if key in asked}
            return counts, {"aggregated": True, **kept}

        return export

    yield Way("exported", False, exported("csv", False))
    yield Way("exported", True, exported("parquet", True))


def engine_ways(name: str, address: str) -> Iterator[Way]:
    """An engine, counting scores and counting cells."""
    for cells in (False, True):
        yield Way(name, cells, lambda verb, asked: (address, dict(asked)))


@contextmanager
def postgres_way(rows: pa.Table, folder: Path) -> Iterator[Iterator[Way]]:
    """A server that holds the rows; no way where there is none."""
    programs_folder = programs()
    if programs_folder is None:
        yield iter(())
        return
    with running(programs_folder) as server:
        path = folder / "rows.csv"
        pacsv.write_csv(rows, path, pacsv.WriteOptions(include_header=False))
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE preds ({POSTGRES_TYPES})".encode())
            with (
                cursor.copy("COPY preds FROM STDIN (FORMAT csv, FORCE_NOT_NULL (s))") as copy,
                open(path, "rb") as file,
            ):
                while piece := file.read(1 << 20):
                    copy.write(piece)
        yield engine_ways("postgres", server.address("preds"))


@contextmanager
def spark_way(path: Path) -> Iterator[Iterator[Way]]:
    """A session of Spark that knows the rows; no way where there is no Java or no pyspark."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        yield iter(())
        return
    if shutil.which("java") is None:
        yield iter(())
        return
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.log.level", "OFF").config("spark.sql.shuffle.partitions", "4")
    session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    session.read.parquet(str(path)).createOrReplaceTempView("preds")
    try:
        yield engine_ways("spark", "spark:?table=preds")
    finally:
        session.stop()


def of_rows(verb: str, path: Path, asked: Mapping[str, Any]) -> dict[bool, dict[str, Any]]:
    """What rows in memory tell, by whether it is to be compared with what cells tell."""
    found = {}
    for cells in (False, True):
        with without_missed_rows(asked, cells):
            found[cells] = judged(verb, path, asked)
    return found


def without_missed_rows(asked: Mapping[str, Any], cells: bool) -> AbstractContextManager[Any]:
    """Errors without rows that could have been missed, which cells of clusters know only nearly."""
    return patch.object(estimate, "MISSED_ROWS", 0.0) if cells and "cluster" in asked else nullcontext()


@contextmanager
def limits_of(way: Way, n_levels: int) -> Iterator[None]:
    """Files are counted, and cells take the place of more than so many scores."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(file_reading, "MAX_IN_MEMORY_BYTES", 0))
        stack.enter_context(patch.object(file_reading, "HELD_SHARE_OF_MEMORY", 0))
        if way.cells:
            stack.enter_context(patch.object(counting, "MAX_LEVELS", n_levels))
            stack.enter_context(patch.object(counting, "MAX_CLUSTER_COUNTS", n_levels))
        yield


def agreement(
    way: Way, verb: str, asked: Mapping[str, Any], expected: dict[bool, dict[str, Any]], n_levels: int
) -> Agreement:
    """How far the document of a verb is from that of the rows in memory."""
    result = Agreement()
    with limits_of(way, n_levels), without_missed_rows(asked, way.cells):
        data, options = way.data(verb, asked)
        got = judged(verb, data, options)
    (result.of_cells if way.cells else result.of)(got, expected[way.cells])
    return result


def all_agree(count: int) -> int:
    """Print a line for each way, kind of rows and verb; 1 where one is too far off."""
    n_apart = 0
    with tempfile.TemporaryDirectory(prefix="decal-agreement-") as name, ExitStack() as stack:
        rows, path = rows_of_hard_cases(count), Path(name) / "rows.parquet"
        pq.write_table(rows, path)
        ways = [*file_ways(path), *stack.enter_context(postgres_way(rows, path.parent))]
        ways += stack.enter_context(spark_way(path))
        for kind, asked in KINDS.items():
            for verb in VERBS:
                expected = of_rows(verb, path, asked)
                for way in ways:
                    if way.cells and verb == "compare" and "cluster" in asked and way.name not in ("parquet", "csv"):
                        continue  # Cells of two scores do not hold clusters, of which files are sampled.
                    started = process_time()
                    result = agreement(way, verb, asked, expected, count // 1000)
                    seconds, counted = process_time() - started, "cells" if way.cells else "scores"
                    line = f"{kind:9}{verb:10}{way.name:9}{counted:7}{result.n_values:6} numbers, {result.n_bounded:3}"
                    line += f" within bounds; {len(result.apart)} apart; {seconds:.1f} s"
                    print(line, *result.apart[:8], sep="\n    ", flush=True)
                    n_apart += len(result.apart)
    return min(n_apart, 1)


if __name__ == "__main__":
    sys.exit(all_agree(int(sys.argv[1]) if len(sys.argv) > 1 else 10**6))
