"""Spark in local mode counts as the reader of files does; skipped where there is no Java or no pyspark."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import decal_cli
from decal_cli.data import reading
from decal_cli.data.large import sampling
from decal_cli.data.large.engines import DIALECTS
from decal_cli.data.large.engines.connections import address_of, connected
from decal_cli.data.large.engines.statement import CountRequest, statement
from tests.helpers.command import Decal, refusal

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'decal[spark]')")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("there is no Java", allow_module_level=True)

pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def preds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file of rows, and a session that knows it as the view preds."""
    from pyspark.sql import SparkSession

    rng = np.random.default_rng(5)
    p = np.where(rng.random(600) < 0.5, np.round(rng.random(600), 1), rng.random(600))
    p[:5] = [-0.0, 0.0, 1.0, 1e-12, 1e-9]
    label = np.where(rng.random(600) < p, "it's", "no").astype(object)
    label[:5] = ["no", "no", "it's", "no", "no"]
    columns: dict[str, Any] = {"p": p, "q": p**2, "y": label, "w": rng.integers(1, 9, 600) / 4}
    columns["a `site`"] = np.array(["a", "b\\"])[rng.integers(0, 2, 600)]
    path = tmp_path_factory.mktemp("spark") / "preds.parquet"
    pq.write_table(pa.table(columns), path)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.log.level", "OFF").config("spark.sql.shuffle.partitions", "1")
    try:
        session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    except Exception as error:
        pytest.skip(f"Spark does not start here, maybe for another version of Java: {error}")
    session.read.parquet(str(path)).createOrReplaceTempView("preds")
    yield path
    session.stop()


def numbers_are_those_of_the_file(decal: Decal, preds: Path) -> None:
    columns = "-s p -s q -y y --positive it's --weight w -t 0.3 -m brier -m log_loss -m auc -m expected_utility"
    options = (*columns.split(), "--group", "a `site`", "--format", "csv")
    of_file = decal("evaluate", preds, *options)
    of_engine = decal("evaluate", "--engine", "spark:?table=preds", *options)
    assert of_engine.code == of_file.code == 0, of_engine.err
    expected, got = ([line.split(",") for line in each.out.splitlines()] for each in (of_file, of_engine))
    assert len(got) == len(expected) > 20
    for mine, theirs in zip(got, expected, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert a == b or float(a) == pytest.approx(float(b), rel=1e-12, abs=1e-14)


def pairs_and_clusters_are_those_of_the_file(preds: Path) -> None:
    asked: dict[str, Any] = {"score": ["p", "q"], "label": "y", "positive": "it's", "threshold": 0.3}
    asked |= {"metrics": ["brier", "auc"], "cluster": "w"}
    got, expected = (decal_cli.compare(data, **asked) for data in ("spark:?table=preds", preds))
    for name in ("brier", "auc"):
        assert got[name].value == pytest.approx(expected[name].value, rel=1e-12)
        assert got[name].interval == pytest.approx(expected[name].interval, rel=1e-9)


def cells_are_those_of_duckdb(preds: Path) -> None:
    import duckdb

    def asked(engine: str) -> str:
        table = CountRequest(("p",), "y", "preds", None, "it's", "w", cells=True, thresholds=(0.3, 0.02))
        return statement(table, DIALECTS[engine])

    with connected(address_of("spark:")) as engine:
        got = engine.answer(asked("spark")).sort_by([("cell", "ascending"), ("label", "ascending")])
    with duckdb.connect() as connection:
        connection.register("preds", pq.read_table(preds))
        expected = connection.sql(asked("duckdb")).to_arrow_table()
    expected = expected.sort_by([("cell", "ascending"), ("label", "ascending")])
    assert got.column_names == expected.column_names
    for name in got.column_names[:-2]:
        np.testing.assert_allclose(got[name].to_numpy(), expected[name].to_numpy(), rtol=1e-12, atol=0, err_msg=name)


def refuses_in_one_line(decal: Decal) -> None:
    for words, text in (
        (("--engine", "spark:?table=nope"), "TABLE_OR_VIEW_NOT_FOUND"),
        (("--engine", "spark:", "--query", "select p, 'x' as y from preds"), "label is 'x'"),
        (("--engine", "spark:", "--query", "selec p, y from preds"), "PARSE_SYNTAX_ERROR"),
    ):
        assert text in refusal(decal("evaluate", *words, "-s", "p", "-y", "y"))


def a_query_only_reads(decal: Decal, folder: Path) -> None:
    """Every one of these fails, and leaves the view and the folder as they were."""
    before = sorted(folder.rglob("*"))
    java = "select length(java_method('java.lang.System', 'setProperty', 'decal', 'x')) / 2 as p, 1 as y"
    for query in (
        "drop view preds",
        "select p, y from preds; drop view preds",
        "select p, y from preds) t; drop view preds; select (select 1",
        "select p, y from preds /* ; */; drop view preds --",
        f"insert overwrite directory '{folder}/made' using csv select 1",
        f"from preds insert overwrite directory '{folder}/made' using csv select p",
        f"select p, y from preds) t) from t insert overwrite directory '{folder}/made' using csv select 1 --",
        "execute immediate 'drop view preds'",
        "begin drop view preds; end",
        "explain select p, y from preds",
        "set spark.sql.ansi.enabled = false",
        "cache table preds",
        f"create table made using csv location '{folder}/made' as select p from preds",
        java,
        java.replace("java_method(", "system.builtin.`reflect` /* */ ("),
        java.replace("java_method(", "TRY_REFLECT\n("),
    ):
        refusal(decal("evaluate", "--engine", "spark:", "--query", query, "-s", "p", "-y", "y"))
    words = ("--engine", "spark:", "--query", "select p, y from preds", "-s", "p", "-y", "y", "--positive", "it's")
    assert decal("evaluate", *words).code == 0
    assert sorted(folder.rglob("*")) == before


def a_frame_is_counted_by_spark(preds: Path) -> None:
    from pyspark.sql import SparkSession

    options: dict[str, Any] = {"score": "p", "label": "y", "positive": "it's", "metrics": ["brier", "auc"]}
    frame = SparkSession.builder.getOrCreate().read.parquet(str(preds))
    got = decal_cli.evaluate(frame, **options)
    expected = decal_cli.evaluate(str(preds), **options)
    assert got.to_dict()["inputs"][0]["path"] == "spark?table=frame"
    for name in ("brier", "auc"):
        assert got[name].value == pytest.approx(expected[name].value, rel=1e-12)
    with pytest.raises(decal_cli.DecalError, match="frame, column 'p': score 5 is outside"):
        decal_cli.evaluate(frame.selectExpr("p + 5 as p", "y").limit(1), **options)


def sample_is_that_of_the_file(preds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "N_SAMPLE_ROWS", 150)
    monkeypatch.setattr(reading, "HELD_SHARE_OF_MEMORY", 0)
    monkeypatch.setattr(reading, "MAX_IN_MEMORY_BYTES", 0)
    asked: dict[str, Any] = {"score": "p", "label": "y", "positive": "it's", "metrics": ("brier", "auc")}
    asked["features"] = ["q", "w", "a `site`"]
    of_file, of_engine = (decal_cli.evaluate(data, **asked) for data in (preds, "spark:?table=preds"))
    for key in ("brier", "auc"):
        assert of_engine[key].value == pytest.approx(of_file[key].value, rel=1e-12)
    assert any(each.startswith("a sample of 150 of 600") for each in of_engine.to_dict()["notes"])


def test_spark_counts_as_others_do(decal: Decal, preds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One test, since a session takes long to start."""
    numbers_are_those_of_the_file(decal, preds)
    pairs_and_clusters_are_those_of_the_file(preds)
    cells_are_those_of_duckdb(preds)
    refuses_in_one_line(decal)
    a_query_only_reads(decal, preds.parent)
    a_frame_is_counted_by_spark(preds)
    sample_is_that_of_the_file(preds, monkeypatch)
