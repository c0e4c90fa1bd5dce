"""Speed and memory as ratios, all in one run: decal against numpy, pyarrow and scikit-learn on this machine.

Ratios travel between machines, seconds do not; np.sort in particular depends on the processor, so it is named.
Medians of several runs, the two sides of a ratio in turn. Options: --rows N (default 10,000,000), --runs N.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.classes import several_classes
from benchmarks.timing import Row, clock, mebibytes, paired, peak, process, seconds

BIN = Path(sys.executable).parent
FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
BARE_TYPER = (
    "import typer, rich\n"
    "app = typer.Typer()\n"
    "@app.command()\n"
    "def main(name: str = 'x', count: int = 1):\n    'Help.'\n"
    "app()\n"
)


READ_AND_SORT = """
import sys
class NoPandas:  # where pandas is installed pyarrow loads it, for a third of a second that belongs to neither side
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoPandas())
import numpy as np, pyarrow.parquet as pq
np.sort(pq.read_table({path!r})["p"].to_numpy())
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = make_data(options.rows, Path(folder))
        rows = [
            *startup(options.runs, Path(folder)),
            *in_memory(data, options.runs),
            *worst_cases(data, options.runs),
            *several_classes(options.rows, options.runs),
            *over_time(data, options.runs),
            *whole(data, options.runs),
            *kinds_of_rows(options.rows, options.runs, Path(folder)),
            *counted(data),
        ]
    print(machine(options.rows), "\n", sep="")
    print("| what | decal | against | ratio | goal |\n| --- | --- | --- | --- | --- |")
    for row in rows:
        print(f"| {row.what} | {row.ours} | {row.against} | {row.ratio:.2g} | {row.goal} |")


@dataclass(frozen=True)
class Data:
    """The large data set, in memory and on disk."""

    score: np.ndarray
    label: np.ndarray
    path: Path


def make_data(rows: int, folder: Path) -> Data:
    """Overconfident continuous scores, every one distinct."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(7)
    score = rng.beta(0.7, 1.6, rows)
    label = (rng.random(rows) < 0.1 + 0.7 * score).astype(np.int8)
    path = folder / "large.parquet"
    pq.write_table(pa.table({"p": score, "y": label}), path)
    return Data(score, label, path)


def startup(runs: int, folder: Path) -> list[Row]:
    """Start-up of the command line, and one small file."""
    bare = folder / "bare.py"
    bare.write_text(BARE_TYPER)
    small = folder / "small.csv"
    small.write_text("".join((FIXTURES / "binary_n2000.csv").read_text().splitlines(keepends=True)[:501]))
    python, decal = sys.executable, str(BIN / "decal")
    pairs = [
        (
            "`decal --help`",
            [decal, "--help"],
            "a bare Typer app with rich, `--help`",
            [python, str(bare), "--help"],
            "1.5",
        ),
        (
            "`decal evaluate --help`",
            [decal, "evaluate", "--help"],
            "the same app's only command, `--help`",
            [python, str(bare), "--help"],
            "1.3",
        ),
        (
            "500-row CSV evaluated, with intervals",
            [decal, "evaluate", str(small), "--score", "p", "--label", "y", "--threshold", "0.3"],
            '`python -c "import numpy, pyarrow.parquet"`',
            [python, "-c", "import numpy, pyarrow.parquet"],
            "4",
        ),
    ]
    rows = []
    for what, ours, against, theirs, goal in pairs:
        a, b = paired(lambda ours=ours: process(ours), lambda theirs=theirs: process(theirs), 2 * runs - 1)
        rows.append(Row(what, seconds(a), f"{against}: {seconds(b)}", a / b, f"≤ {goal}"))
    return rows


def in_memory(data: Data, runs: int) -> list[Row]:
    """Single steps against the library function a user would call."""
    from sklearn.isotonic import IsotonicRegression
    from sklearn.metrics import log_loss, roc_auc_score

    from decal_cli.metrics import Inputs, parse, value_of
    from decal_cli.tables.table import tabulate

    score, label = data.score, data.label
    a, b = paired(lambda: tabulate(score, label), lambda: np.sort(score), runs)
    rows = [Row("tabulate", seconds(a), f"`np.sort` of the scores: {seconds(b)}", a / b, "≤ 2")]

    rows.append(swept(score[: 10**6], label[: 10**6], runs))

    def metric(name: str) -> Callable[[], object]:
        return lambda: value_of(parse(name), Inputs.of(tabulate(score, label)))

    peers: list[tuple[str, Callable[[], object], str, Callable[[], object]]] = [
        ("auc, from rows", metric("auc"), "scikit-learn roc_auc_score", lambda: roc_auc_score(label, score)),
        ("log_loss, from rows", metric("log_loss"), "scikit-learn log_loss", lambda: log_loss(label, score)),
        (
            "isotonic fit, from rows",
            lambda: tabulate(score, label).isotonic,
            "scikit-learn IsotonicRegression.fit",
            lambda: IsotonicRegression().fit(score, label),
        ),
    ]
    for what, ours, against, theirs in peers:
        a, b = paired(ours, theirs, max(1, runs // 2))
        rows.append(Row(what, seconds(a), f"{against}: {seconds(b)}", a / b, "< 1"))
    return rows


def swept(score: np.ndarray, label: np.ndarray, runs: int) -> Row:
    """Every curve at 99 thresholds, with intervals and the honest gain, from rows."""
    from decal_cli.curves.battery import curves_of
    from decal_cli.curves.grid import Grid, parse_thresholds
    from decal_cli.tables.table import tabulate

    grid = Grid(parse_thresholds("0.01:0.99:0.01"))
    a, b = paired(lambda: curves_of(tabulate(score, label), None, grid), lambda: np.sort(score), runs)
    what = f"a 99-point sweep of {len(score):,} rows, from rows"
    return Row(what, seconds(a), f"`np.sort` of their scores: {seconds(b)}", a / b, "≤ 6")


def worst_cases(data: Data, runs: int) -> list[Row]:
    """Losses of the worst decision maker and smooth calibration, against sorting and against a linear program."""
    from decal_cli.metrics import Inputs, parse, value_of
    from decal_cli.tables.table import Table, tabulate

    def values(table: Table, *names: str) -> None:
        for name in names:
            value_of(parse(name), Inputs.of(table))

    def fresh(table: Table) -> Table:
        return Table(table.score, table.n, table.pos)  # nothing remembered from the run before

    score, label = data.score, data.label
    table, some = tabulate(score, label), tabulate(score[:100_000], label[:100_000])
    rows = []
    for what, ours, sorted_scores, goal in (
        ("cdl and u_cal, tabulated", lambda: values(fresh(table), "cdl", "u_cal"), score, 4),
        ("sm_cal on its grid, tabulated", lambda: values(fresh(table), "sm_cal"), score, 1),
        (f"sm_cal, exact, of {len(some):,} levels", lambda: values(fresh(some), "sm_cal"), score[:100_000], 60),
    ):
        a, b = paired(ours, lambda sorted_scores=sorted_scores: np.sort(sorted_scores), 2 * runs - 1)
        rows.append(Row(what, seconds(a), f"`np.sort` of the scores: {seconds(b)}", a / b, f"≤ {goal}"))
    sys.path.insert(0, str(FIXTURES.parent))
    from tests.metrics.test_agents import cdl_program

    few = tabulate(np.round(score[:5000], 2), label[:5000])
    a, b = clock(lambda: [values(fresh(few), "cdl") for _ in range(100)]) / 100, clock(lambda: cdl_program(few))
    rows.append(
        Row(f"cdl of {len(few)} levels", seconds(a), f"all-pairs linear program: {seconds(b)}", a / b, "≤ 0.001")
    )
    return rows


def over_time(data: Data, runs: int) -> list[Row]:
    """Forecasters over time: replays in processor time, and what they keep of a stream of ten times the rows."""
    import json

    from decal_cli.analysis.online.plan import known_after_rows
    from decal_cli.sequential import ONLINE, forecaster_of, parse

    def replay(method: str, rows: int, horizon: int | None = None) -> int:
        forecaster = forecaster_of(parse(method), 1, horizon)
        forecaster.replay(data.score[:rows], data.label[:rows].astype(np.uint8), known_after_rows(rows, 0))
        return len(json.dumps(forecaster.state()))

    rows, many, some = [], min(10**6, len(data.score)), min(10**5, len(data.score))
    for method in ("hedge", "ftpl"):
        a, b = paired(
            lambda method=method: replay(method, many, many), lambda: np.sort(data.score[:many]), 2 * runs - 1
        )
        rows.append(Row(f"{method}, {many:,} rows", seconds(a), f"`np.sort` of as many: {seconds(b)}", a / b, "≤ 5"))
    for method, limit in (("rolling-isotonic", 5), ("cdl-algorithm", 10)):
        a = min(clock(lambda method=method: replay(method, some, some)) for _ in range(2))
        rows.append(Row(f"{method}, {some:,} rows", seconds(a), f"{limit} s", a / limit, "≤ 1"))
    # The grids of these two grow as sqrt(T).
    methods = [method for method in ONLINE if method not in ("cdl-algorithm", "almost-one-step-ahead")]
    longer, shorter = many // 5, many // 50
    kept = {method: (replay(method, longer), replay(method, shorter)) for method in methods}
    method, (a, b) = max(kept.items(), key=lambda item: item[1][0] / item[1][1])
    what = f"what a forecaster keeps of {longer:,} rows (most: `{method}`)"
    rows.append(Row(what, f"{a:,} bytes", f"of {shorter:,} rows: {b:,} bytes", a / b, "≤ 1.1"))
    return rows


def whole(data: Data, runs: int) -> list[Row]:
    """Whole processes on the large Parquet file: time and memory."""
    decal, python, path = str(BIN / "decal"), sys.executable, str(data.path)
    default = [decal, "evaluate", path, "--threshold", "0.3"]
    every = [*default, "--format", "json"]
    peer = [python, "-c", READ_AND_SORT.format(path=path)]
    rows = []
    for what, ours, goal in (("default table", default, 3), ("every metric, JSON", every, 4)):
        a, b = paired(lambda ours=ours: process(ours), lambda: process(peer), runs)
        against = f"a process that reads with pyarrow and sorts: {seconds(b)}"
        named = f"{what}, with a threshold and intervals, whole process"
        rows.append(Row(named, seconds(a), against, a / b, f"≤ {goal}"))
    base = peak(
        [python, "-c", "import numpy, pyarrow.parquet, pyarrow.csv, scipy.optimize, decal_cli.analysis.evaluate"]
    )
    full = peak(every)
    rows.append(Row("its peak memory", mebibytes(full), "1.5 GiB", full / (1.5 * 2**30), "≤ 1"))
    above = full - base
    limit = f"300 MiB (imports alone: {mebibytes(base)})"
    rows.append(Row("the same above what imports take", mebibytes(above), limit, above / (300 * 2**20), "≤ 1"))
    return rows


def kinds_of_rows(rows: int, runs: int, folder: Path) -> list[Row]:
    """Whole processes on rows in clusters of a hundred, or with costs of their own, and without saying so."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, path = np.random.default_rng(7), str(folder / "kinds.parquet")
    score = rng.beta(0.7, 1.6, rows)
    label, cost = (rng.random(rows) < 0.1 + 0.7 * score).astype(np.int8), np.round(rng.lognormal(3, 1, rows), 2)
    pq.write_table(pa.table({"p": score, "y": label, "c": rng.integers(rows // 100, size=rows), "cost": cost}), path)
    default = [str(BIN / "decal"), "evaluate", path, "--score", "p", "--label", "y"]
    plain, shown = [*default, "--threshold", "0.3"], []
    for what, ours, goal in (
        (f"in {rows // 100:,} clusters", [*plain, "--cluster", "c"], 4),
        ("with a cost of a miss of their own", [*default, "--cost-fn-column", "cost", "--cost-fp", "10"], 6),
    ):
        a, b = paired(lambda ours=ours: process(ours), lambda: process(plain), runs)
        named = f"default table of {rows:,} rows {what}, whole process"
        shown.append(Row(named, seconds(a), f"without: {seconds(b)}", a / b, f"≤ {goal}"))
    return shown


BY_CELL = """
import sys, duckdb
rows = "SELECT p, y, CASE WHEN y = 1 THEN -ln(p) ELSE -ln(1 - p) END AS l FROM read_parquet($1)"
sums = "count(*), sum(p), sum(p * p), sum(p * p * p), sum(p * p * p * p), sum(l), sum(l * l), min(p), max(p)"
cell = "CAST(floor(p * 65536) AS BIGINT) + CAST(p >= 0.3 AS INTEGER)"
duckdb.execute(f"SELECT {cell}, y, {sums} FROM ({rows}) GROUP BY ALL", [sys.argv[1:]]).fetchall()
"""
N_COPIES = 20
"""Of the large file: together they are more than is held in memory."""


def counted(data: Data) -> list[Row]:
    """Files larger than memory, all of one content, in cells; DuckDB, where it is installed, groups the same files."""
    paths = [str(data.path.with_stem(f"copy{k}")) for k in range(N_COPIES)]
    for path in paths:
        os.link(data.path, path)
    ours = [str(BIN / "decal"), "evaluate", *paths, "--threshold", "0.3"]
    theirs = [sys.executable, "-c", BY_CELL, *paths]
    memory = peak(ours)
    what = f"{N_COPIES} x that file, in cells, whole process"
    rows = [Row(f"{what}: peak memory", mebibytes(memory), "600 MiB", memory / (600 * 2**20), "≤ 1")]
    if importlib.util.find_spec("duckdb") is not None:
        a, b = clock(lambda: process(ours)), clock(lambda: process(theirs))
        rows.insert(0, Row(what, seconds(a), f"DuckDB, GROUP BY of the same cells: {seconds(b)}", a / b, "≤ 1.5"))
    return rows


def machine(rows: int) -> str:
    """The processor, and the versions that matter."""
    import pyarrow
    import sklearn

    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = lines[0] if lines else model
        wide = "AVX-512" if "avx512f" in info.read_text() else "no AVX-512"
        model += f" ({wide})"
    return (
        f"{rows:,} rows; {os.cpu_count()} cores of {model}; Python {platform.python_version()}, "
        f"numpy {np.__version__}, pyarrow {pyarrow.__version__}, scikit-learn {sklearn.__version__}"
    )


if __name__ == "__main__":
    main()
