"""ClickHouse, as the library chDB runs it, counts as DuckDB does; skipped where chDB is not installed."""

from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import decal_cli
from decal_cli.data.large.engines import DIALECTS
from decal_cli.data.large.engines.connections import Opened
from decal_cli.data.large.engines.statement import CountRequest, statement
from decal_cli.errors import DecalError
from tests.helpers.counted_rows import ENGINE_ROWS, assert_close

dbapi = pytest.importorskip("chdb.dbapi", reason="chDB is not installed (pip install chdb)")
pytestmark = pytest.mark.ci

NAME = "a `site`\\"
"""A name that needs both escapes."""
ASKED: dict[str, dict[str, Any]] = {
    "clusters": {"cluster": "c"},
    "groups": {"group": NAME, "weight": "w", "prevalence": 0.1},
    "log-odds": {"score": "lo", "logit": True},
    "features": {"features": ["x", NAME]},
    "two-models": {"score": ["p", "q"], "weight": "w"},
}


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[decal_cli.Engine, decal_cli.Engine]]:
    """The same file, asked by DuckDB and by ClickHouse."""
    path = tmp_path_factory.mktemp("clickhouse") / "preds.parquet"
    p = np.array(ENGINE_ROWS["p"])
    rng = np.random.default_rng(0)
    rows = {
        **ENGINE_ROWS,
        NAME: ENGINE_ROWS["the site"],
        "c": rng.integers(0, 90, len(p)),
        "x": rng.normal(size=len(p)),
    }
    rows["lo"] = rng.normal(size=len(p)) + np.where(p > 0.5, 1, 0)
    pq.write_table(pa.table(rows), path)
    with duckdb.connect() as known:
        opened = dbapi.connect()
        yield (
            decal_cli.Engine(known, query=f"select * from '{path}'"),
            decal_cli.Engine(opened, query=f"select * from file('{path}', Parquet)"),
        )
        opened.close()


@pytest.mark.parametrize("asked", ASKED)
def test_numbers_are_those_of_duckdb(queries: tuple[decal_cli.Engine, ...], asked: str) -> None:
    options = {"score": "p", "label": "y", "positive": "yes", "threshold": 0.3, **ASKED[asked]}
    verb = decal_cli.compare if asked == "two-models" else decal_cli.evaluate
    # Digests tell apart log-odds of which EXP gives another last bit, and reports hold digests.
    apart = dict.fromkeys(("inputs", "reports", "signature"))
    expected, got = ({**verb(engine, **options).to_dict(), **apart} for engine in queries)
    assert_close(got, expected)


def test_cells_are_those_of_duckdb(queries: tuple[decal_cli.Engine, ...]) -> None:
    def answer(engine: decal_cli.Engine) -> pa.Table:
        assert engine.query
        asked = CountRequest(("p",), "y", "", engine.query, "yes", "w", cells=True, thresholds=(0.3, 0.02), cluster="c")
        found = Opened(engine.connection, "").answer(statement(asked, DIALECTS[engine.spoken]))
        return found.sort_by([("c", "ascending"), ("cell", "ascending"), ("label", "ascending")])

    expected, got = map(answer, queries)
    assert got.column_names == expected.column_names
    for name in got.column_names:
        if name not in ("c", "bad", "value"):
            np.testing.assert_allclose(got[name].to_numpy(), expected[name].to_numpy(), rtol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    ("query", "text"),
    {
        "select '0.5?' as p, 1 as y": "Cannot parse string '0.5[?]' as Float64",
        "select nan as p, 1 as y": "score missing in 1 row",
        "select -1 as p, 1 as y": "score -1 is outside",
        "select 0.5 as p, NULL as y": "label missing in 1 row",
        "select 0.5 as p": "'y'",
        "select": "Syntax error",
    }.items(),
)
def test_what_is_wrong_is_one_line(queries: tuple[decal_cli.Engine, ...], query: str, text: str) -> None:
    with pytest.raises(DecalError, match=text):
        decal_cli.evaluate(decal_cli.Engine(queries[1].connection, query=query), score="p", label="y", threshold=0.3)
