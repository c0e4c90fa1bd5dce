"""The numbers of hard cases do not depend on where rows are counted; `make agreement` asks the same of 10^6 rows."""

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.helpers.agreement import (
    KINDS,
    Agreement,
    Way,
    agreement,
    file_ways,
    of_rows,
    postgres_way,
    rows_of_hard_cases,
)

N_ROWS, N_LEVELS = 300, 30


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("agreement") / "rows.parquet"
    pq.write_table(rows_of_hard_cases(N_ROWS), path)
    return path


@pytest.fixture(scope="module")
def ways(file: Path) -> Iterator[list[Way]]:
    with ExitStack() as stack:
        yield [*file_ways(file), *stack.enter_context(postgres_way(rows_of_hard_cases(N_ROWS), file.parent))]


@pytest.mark.ci
@pytest.mark.parametrize(
    ("verb", "kind"),
    [
        *product(["gate"], KINDS),
        *(pytest.param("sweep", kind, marks=pytest.mark.long) for kind in KINDS),
        ("compare", "decimals"),
    ],
)
def test_every_way_to_count_rows_gives_their_numbers(file: Path, ways: list[Way], verb: str, kind: str) -> None:
    expected = of_rows(verb, file, KINDS[kind])
    for way in ways:
        result = agreement(way, verb, KINDS[kind], expected, N_LEVELS)
        assert not result.apart, f"{way.name}, cells: {way.cells}"
        assert result.n_values + result.n_bounded >= 5


def test_what_is_apart_is_told() -> None:
    result = Agreement()
    result.of({"value": 0.5, "interval": [0.25, 0.75]}, {"value": 0.5, "interval": [0.25, 0.75 + 1e-8]})
    assert result.apart == ["/interval[1]: 0.75 is not 0.75000001"]
    got = {"metrics": {"auc": {"value": 0.5, "within": {"bound": 0.01, "drawn": False}}}}
    result.of_cells(got, {"metrics": {"auc": {"value": 0.52}}})
    assert result.apart[1:] == ["[0]/auc: 0.5 is not within 0.01 of 0.52"]
