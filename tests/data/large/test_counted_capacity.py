"""A limited capacity, where rows were counted: the numbers are those of the rows."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

import decal_cli
from decal_cli.data.large import repeated
from decal_cli.data.large.engines import counting
from tests.helpers.agreement import Agreement, rows_of_hard_cases
from tests.helpers.command import Decal, refusal
from tests.helpers.counted_rows import with_database

ASKED: dict[str, Any] = {"label": "y", "positive": "it's", "threshold": 0.05}
FOUND = ["capture", "precision_at_capacity", "lift", "capacity_threshold"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_database(rows_of_hard_cases(800), tmp_path_factory.mktemp("capacity"))


@pytest.fixture
def both(files: Path) -> Iterator[tuple[Path, str]]:
    yield files / "preds.parquet", f"duckdb:{files}/file.db?table=preds"


def same(documents: list[dict[str, Any]]) -> None:
    result = Agreement()
    result.of(*documents)
    assert not result.apart
    assert result.n_values > 20


def test_a_sweep_over_capacities(decal: Decal, both: tuple[Path, str]) -> None:
    words = ("-s", "p", "-y", "y", "--positive", "it's", "-t", "0.05", "--capacity-range", "10:90", "--format", "json")
    same([json.loads(decal("sweep", *data, *words).out) for data in (("--engine", both[1]), (both[0],))])


def test_exported_counts_take_a_capacity() -> None:
    counts = pa.table({"score": [0.1, 0.4, 0.8], "n": [5, 3, 2], "pos": [0, 1, 1]})
    answer = decal_cli.evaluate(counts, aggregated=True, capacity=3, metrics=FOUND)
    # The two rows of .8 have a place, and one of three rows of .4: label 1 is 1 + 1/3 of 2.
    expected = [2 / 3, 4 / 9, 20 / 9, 0.4]
    assert [answer[name].value for name in FOUND] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("module", "limit", "most", "problem"),
    [
        (counting, "MAX_LEVELS", 10, "only cells of it are known"),
        (repeated, "MAX_IN_MEMORY_BYTES", 8000, "800 rows are more than memory can hold"),
    ],
)
def test_cells_and_levels_of_too_many_rows_tell_no_ranks(
    decal: Decal,
    both: tuple[Path, str],
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    limit: str,
    most: int,
    problem: str,
) -> None:
    asked = ("-s", "p", "-y", "y", "--positive", "it's", "--capacity", "5", "-t", "0.05")
    monkeypatch.setattr(module, limit, most)
    assert problem in refusal(decal("evaluate", "--engine", both[1], *asked))
