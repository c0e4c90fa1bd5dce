"""The benchmark, on few rows: every line of its table comes out. Its ratios are for many rows on an idle machine."""

import subprocess
import sys
from pathlib import Path

import pytest

LINES = (
    "`decal --help`",
    "`decal evaluate --help`",
    "500-row CSV evaluated, with intervals",
    "tabulate",
    "a 99-point sweep of 1,000 rows, from rows",
    "auc, from rows",
    "log_loss, from rows",
    "isotonic fit, from rows",
    "cdl and u_cal, tabulated",
    "sm_cal on its grid, tabulated",
    "sm_cal, exact, of 1,000 levels",
    "cdl of 99 levels",
    "default table of 1,000 rows x 10 classes, with intervals",
    "auc, 1,000 rows x 10 classes",
    "auc_pairs, 1,000 rows x 10 classes",
    "log_loss, 1,000 rows x 10 classes",
    "brier, 1,000 rows x 10 classes",
    "u_cal of 3 classes, 100 levels",
    "cdl(levels=exact) of 3 classes, 100 levels",
    "u_cal of 3 classes, cells of 1,000 rows",
    "cdl of 3 classes, cells of 1,000 rows",
    "hedge, 1,000 rows",
    "ftpl, 1,000 rows",
    "rolling-isotonic, 1,000 rows",
    "cdl-algorithm, 1,000 rows",
    "what a forecaster keeps of 200 rows",
    "default table, with a threshold and intervals, whole process",
    "every metric, JSON, with a threshold and intervals, whole process",
    "its peak memory",
    "the same above what imports take",
    "default table of 1,000 rows in 10 clusters, whole process",
    "default table of 1,000 rows with a cost of a miss of their own, whole process",
    "20 x that file, in cells, whole process",
    "20 x that file, in cells, whole process: peak memory",
)


@pytest.mark.ci
def test_every_line_of_the_benchmark_comes_out() -> None:
    line = [sys.executable, "-m", "benchmarks.run", "--rows", "1000", "--runs", "1"]
    run = subprocess.run(line, cwd=Path(__file__).parent.parent, check=True, capture_output=True, text=True)
    cells = [each.strip("| ").split(" | ") for each in run.stdout.splitlines() if each.startswith("| ")][2:]
    ratios = {what.partition(" (most")[0]: float(ratio) for what, _, _, ratio, _ in cells}
    assert set(LINES) <= ratios.keys()
    assert all(0 < ratio < float("inf") for ratio in ratios.values())
