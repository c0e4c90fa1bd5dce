"""Engines: the numbers are those of the rows, and what goes wrong is one line that tells no secret."""

import json
import math
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import adbc_driver_duckdb.dbapi
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import decal_cli
from decal_cli.data import reading as file_reading
from decal_cli.data.large import sampling
from decal_cli.data.large.engines import DIALECTS, counting
from decal_cli.data.large.engines.connections import address_of, connected, is_address
from decal_cli.data.large.engines.kinds.spark import check_reached
from decal_cli.data.large.engines.statement import CountRequest, statement
from decal_cli.errors import DecalError
from tests.helpers.command import Decal, refusal, valid_json
from tests.helpers.counted_rows import CREATE, ENGINE_ROWS, ENGINE_TUPLES, assert_close, reports, with_database
from tests.helpers.server import PASSWORD, Server

SAID = ("--score", "p", "--label", "y", "--threshold", "0.3")


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of an engine that holds the rows, without a table."""
    if request.param == "duckdb":
        path = tmp_path_factory.mktemp("duckdb") / "file.db"
        with duckdb.connect(path) as connection:
            connection.execute(CREATE["duckdb"])
            connection.register("rows", pa.table(ENGINE_ROWS))
            connection.execute("INSERT INTO preds SELECT * FROM rows")
        return f"duckdb:{path}"
    if request.param == "sqlite":
        path = tmp_path_factory.mktemp("sqlite") / "file.db"
        with closing(sqlite3.connect(path)) as opened, opened:
            opened.execute(CREATE["sqlite"])
            opened.executemany("INSERT INTO preds VALUES (?, ?, ?, ?, ?)", ENGINE_TUPLES)
        return f"sqlite:{path}"
    started: Server = request.getfixturevalue("server")
    with started.connect() as connection:
        # pytest sets this up again where another process has taken some of the tests between.
        connection.execute("DROP TABLE IF EXISTS preds")
        connection.execute(CREATE["postgres"])
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO preds VALUES (%s, %s, %s, %s, %s)", ENGINE_TUPLES)
    return started.address()


of_server = pytest.param("postgres", marks=pytest.mark.ci)
both = pytest.mark.parametrize("engine", ["duckdb", of_server], indirect=True)
every = pytest.mark.parametrize("engine", ["duckdb", "sqlite", of_server], indirect=True)


MEASURED = [
    word
    for name in ("brier", "log_loss", "auc", "ece", "regret_calibration", "expected_utility")
    for word in ("-m", name)
]


@every
def test_clusters_and_two_models_are_counted_in_one_pass(decal: Decal, engine: str, tmp_path: Path) -> None:
    rows = {**ENGINE_ROWS, "c": (np.array(ENGINE_ROWS["w"]) * 16).astype(int)}
    pq.write_table(pa.table(rows), tmp_path / "preds.parquet")
    query = "select *, cast(w * 16 as integer) as c from preds"
    columns = ("-s", "p", "-s", "q", "-y", "y", "--positive", "yes", "--cluster", "c", "--threshold", "0.3")
    for command in ("evaluate", "compare"):
        words = (*columns, *MEASURED, "--format", "json")
        of_file = valid_json(decal(command, tmp_path / "preds.parquet", *words).out)
        of_engine = valid_json(decal(command, "--engine", engine, "--query", query, *words).out)
        for key in ("reports",) if command == "evaluate" else ("comparison",):
            for report in (*of_file.get("reports", ()), *of_engine.get("reports", ())):
                for of_input in ("inputs", "signature", "notes"):
                    report.pop(of_input, None)
            assert_close(of_engine[key], of_file[key])


@every
def test_many_levels_come_as_cells_of_the_same_rows(decal: Decal, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """test_agreement holds their numbers against those of the rows."""
    monkeypatch.setattr(counting, "MAX_LEVELS", 500)
    words = ("evaluate", "--engine", f"{engine}?table=preds", *SAID, "--positive", "yes", "-m", "auc")
    done, document = decal.text_and_json(*words)
    assert "scores are known by cells" in done.out
    assert decal.json(*words, "--threshold", "0.44")["inputs"] == document["inputs"]
    few = "select cast(round(cast(p as numeric), 1) as double precision) as p, y from preds"
    text = decal("evaluate", "--engine", engine, "--query", few, *SAID, "--positive", "yes", "-m", "auc").out
    assert "scores are known by cells" not in text


@every
def test_provenance_names_the_engine_and_what_was_counted(decal: Decal, engine: str) -> None:
    def run(query: str) -> dict[str, Any]:
        words = ("--engine", engine, "--query", query, *SAID, "--positive", "yes", "-m", "brier", "--format", "json")
        return valid_json(decal("evaluate", *words).out)

    documents = [run(f"select * from preds {more}") for more in ("", "order by w", "where p < 0.9")]
    (first, again, less) = (document["inputs"][0] for document in documents)
    assert first["path"].startswith(engine.split("//")[0].split("?")[0][:10])
    assert (first["rows"], first["positives"]) == (len(ENGINE_ROWS["y"]), ENGINE_ROWS["y"].count("yes"))
    assert first["sha256"] == again["sha256"] != less["sha256"]
    assert PASSWORD not in json.dumps(documents) and "s3cret" not in json.dumps(documents)


@every
@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("select 1.5 as p, 'yes' as y from preds", "column 'p': score 1.5 is outside [0, 1] (1,500 such rows)"),
        ("select case when w < 1 then p end as p, y from preds", "column 'p': score missing in"),
        ("select p, case when w > 1 then y end as y from preds", "column 'y': label missing in"),
        ("select p, case when w > 3 then 'maybe' else y end as y from preds", "column 'y': label is 'no'"),
        ("select p, 'no' as y from preds", "label is never the positive value, it is 'no'"),
        ("select p from preds", "'y'"),
        ("select p, y from preds where 1 = 0", "has no rows"),
        ("select p, y from nowhere", "nowhere"),
        ("select y as p, y from preds", "no"),
        ("select 'abc' as p, y from preds", "abc"),
        ("select p, y from", "yntax"),
        ("drop table preds", "yntax"),
    ],
)
def test_bad_rows_and_queries_are_one_line(decal: Decal, engine: str, query: str, text: str) -> None:
    line = refusal(decal("evaluate", "--engine", engine, "--query", query, *SAID, "--positive", "yes"))
    assert text in line
    assert "s3cret" not in line


@every
def test_rows_with_missing_values_are_dropped_when_asked(decal: Decal, engine: str) -> None:
    query = "select case when w < 1 then p end as p, y from preds"
    words = ("--engine", engine, "--query", query, *SAID, "--positive", "yes", "--missing", "drop")
    kept = sum(w < 1 for w in ENGINE_ROWS["w"])
    out = decal("evaluate", *words, "-m", "brier").out
    assert f"p: dropped {1500 - kept:,} of 1,500 rows (missing score)" in out
    query = "select p, case when w < 1 then p end as q, y from preds"
    both_scores = ("--engine", engine, "--query", query, "-s", "p", "-s", "q", "--positive", "yes", "--missing", "drop")
    out = decal("evaluate", *both_scores, "-m", "brier").out
    assert f"q: dropped {1500 - kept:,} of 1,500 rows (missing score)" in out and ": 1,500 rows" in out


@pytest.mark.parametrize(
    ("values", "words", "text"),
    [
        ("(.2, 0), (' 8e-1', '1'), (1, 1.0), ('0', '0.0')", ("-s", "p"), "Brier score ↓ 0.0200"),
        ("(.2, 0), ('0.8x', 1)", ("-s", "p"), "column 'p': '0.8x' is not a number; give numbers, or make them"),
        ("(.2, 0), ('', 1)", ("-s", "p"), "'' is not a number"),
        ("(.2, 0), (x'00', 1)", ("-s", "p"), "is not a number"),
        ("(9, 0), ('high', 1)", ("-s", "p", "--logit"), "'high' is not a number"),
        ("(9, 0), ('high', 1)", ("-s", "q", "--weight", "p"), "column 'p': 'high' is not a number"),
        ("(.2, 0), ('0.8x', 1)", ("-s", "q", "--amount", "p", "--cost-fp", "1"), "'p': Failed to parse string: '0.8x'"),
    ],
)
def test_a_column_of_sqlite_holds_anything(
    decal: Decal, tmp_path: Path, values: str, words: tuple[str, ...], text: str
) -> None:
    with closing(sqlite3.connect(tmp_path / "file.db")) as opened, opened:
        opened.execute("CREATE TABLE preds (p, y, q DEFAULT 0.5)")
        opened.execute(f"INSERT INTO preds (p, y) VALUES {values}")
    asked = ("--engine", f"sqlite:{tmp_path}/file.db?table=preds", "-y", "y", "-m", "brier", *words)
    done = decal("evaluate", *asked)
    assert text in (done.out if "Brier" in text else refusal(done))


@every
@pytest.mark.parametrize("table", ["nope", 'preds"; drop table preds; --', "preds; drop table preds"])
def test_a_table_that_is_not_there(decal: Decal, engine: str, table: str) -> None:
    refusal(decal("evaluate", "--engine", f"{engine}?table={table.replace(';', '%3B').replace(' ', '%20')}", *SAID))
    assert decal("evaluate", "--engine", f"{engine}?table=preds", *SAID, "--positive", "yes", "-m", "brier").code == 0


@both
@pytest.mark.parametrize("weight", [(), ("--weight", "w")])
def test_the_sample_is_that_of_the_file(
    engine: str, weight: tuple[str, ...], decal: Decal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "N_SAMPLE_ROWS", 300)
    monkeypatch.setattr(file_reading, "HELD_SHARE_OF_MEMORY", 0)
    monkeypatch.setattr(file_reading, "MAX_IN_MEMORY_BYTES", 0)
    pq.write_table(pa.table(ENGINE_ROWS), tmp_path / "rows.parquet")
    named = (*SAID, "--positive", "yes", "--features", "q", "--features", "the site", *weight, *MEASURED)
    named = (*named, "--format", "json")
    of_file = decal("evaluate", tmp_path / "rows.parquet", *named)
    of_engine = decal("evaluate", "--engine", f"{engine}?table=preds", *named)
    assert of_engine.code == of_file.code == 0, of_engine.err
    notes = valid_json(of_engine.out)["notes"]
    assert any(note.startswith("a sample of 300 of 1,500 rows") for note in notes)
    assert_close(reports(of_engine), reports(of_file))


def test_an_error_names_the_extra(decal: Decal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    line = refusal(decal("evaluate", "--engine", "postgresql://host/db?table=a", *SAID))
    assert "needs psycopg, which is not installed; pip install 'decal[postgres]'" in line


def test_a_secret_is_in_no_part_of_an_address() -> None:
    address = address_of("postgresql://me:a%20b@host:99/db?table=x&sslpassword=c")
    assert (address.shown, address.table) == ("postgresql://me@host:99/db", "x")
    assert address.public("a%20b, a b, c") == "***, ***, ***"
    assert address.target == "postgresql://me:a%20b@host:99/db?sslpassword=c"
    assert is_address("postgres://host/db") and not is_address("preds.csv") and not is_address("s3://bucket/x")
    with pytest.raises(DecalError):
        address_of("preds.csv")


def test_a_server_of_spark_connect_that_does_not_answer_is_one_line() -> None:
    with pytest.raises(DecalError, match=r"^spark:sc://127\.0\.0\.1:1/: .*refused; check the host") as error:
        check_reached(address_of("spark:sc://127.0.0.1:1/;token=s3cret"))
    assert "s3cret" not in str(error.value)


@pytest.mark.ci
def test_a_wrong_password_and_a_missing_right(decal: Decal, server: Server) -> None:
    wrong = server.address("preds", password="wr0ng")
    line = refusal(decal("evaluate", "--engine", wrong, *SAID))
    assert "password authentication failed" in line and "wr0ng" not in line
    with server.connect() as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS hidden (p DOUBLE PRECISION, y INTEGER)")
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    line = refusal(decal("evaluate", "--engine", server.address("hidden", "guest", "guest"), *SAID))
    assert "permission denied for table hidden" in line


@pytest.mark.ci
@pytest.mark.parametrize("kill", ["pg_terminate_backend", "pg_cancel_backend"])
def test_a_connection_that_is_cut_is_one_line(decal: Decal, server: Server, kill: str) -> None:
    """A view ends its own connection, in the middle of the statement."""
    with server.connect() as connection:
        cuts = f"select 0.5 as p, 1 as y, {kill}(pg_backend_pid()), pg_sleep(2)"
        connection.execute(f"CREATE OR REPLACE VIEW {kill} AS SELECT p, y FROM ({cuts}) AS cut")
    line = refusal(decal("evaluate", "--engine", server.address(kill), *SAID))
    assert "terminating connection" in line or "canceling statement" in line or "closed" in line
    assert "s3cret" not in line


@pytest.mark.ci
def test_a_table_that_grows_while_it_is_read_is_read_as_it_was(server: Server) -> None:
    with server.connect() as other:
        other.execute("CREATE TABLE grows (p DOUBLE PRECISION, y INTEGER)")
        other.execute("INSERT INTO grows VALUES (0.5, 1)")
        with connected(address_of(server.address("grows"))) as engine:
            assert list(engine.types('"grows"')) == ["p", "y"]
            other.execute("INSERT INTO grows VALUES (0.7, 0)")
            asked = statement(CountRequest(("p",), "y", "grows"), DIALECTS["postgres"])
            assert engine.answer(asked)["score"].to_pylist() == [0.5]


@pytest.mark.ci
def test_an_open_connection_of_postgres_is_data(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE opened (p DOUBLE PRECISION, y TEXT, w NUMERIC)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO opened VALUES (%s, %s, %s)", [(row[0], *row[2:4]) for row in ENGINE_TUPLES])
        asked: dict[str, Any] = {"score": "p", "label": "y", "positive": "yes", "weight": "w", "metrics": "brier"}
        got = decal_cli.evaluate(decal_cli.Engine(connection, table="opened"), **asked)["brier"]
        expected = decal_cli.evaluate(pa.table(ENGINE_ROWS), **asked)["brier"]
        assert [got.value, *(got.interval or ())] == pytest.approx([expected.value, *(expected.interval or ())])
        with pytest.raises(DecalError, match='postgres: relation "nowhere" does not exist'):
            decal_cli.evaluate(decal_cli.Engine(connection, table="nowhere"), **asked)


ASKED: dict[str, Any] = {"label": "y", "threshold": 0.3, "metrics": ("brier", "auc")}
ROWS = [(at / 40, (at * 7 % 40) / 40, int(at % 3 == 0)) for at in range(40)]


class Plain:
    """A connection of a driver that nobody knows, or its cursor: what DB-API 2 asks for, and no Arrow."""

    def __init__(self, known: Any) -> None:
        self.known = known

    def cursor(self) -> "Plain":
        return Plain(self.known.cursor())

    def __getattr__(self, name: str) -> Any:
        if name not in ("description", "execute", "fetchall", "close"):
            raise AttributeError(name)
        return getattr(self.known, name)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "file.db"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE preds (p DOUBLE, q DOUBLE, y INTEGER)")
        connection.executemany("INSERT INTO preds VALUES (?, ?, ?)", ROWS)
    return path


def expected(verb: Any, database: Path, score: Any) -> Any:
    return verb(f"duckdb:{database}?table=preds", score=score, **ASKED)


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "dictionaries", "adbc", "plain", "address"])
def test_a_connection_is_data_of_every_verb(database: Path, kind: str) -> None:
    def check(connection: Any, **dialect: str) -> None:
        table = decal_cli.Engine(connection, table="preds", query=None, **dialect)
        query = decal_cli.Engine(connection, table=None, query="select * from preds where p < 2", **dialect)
        for engine in (table, query):
            one = decal_cli.evaluate(engine, score="p", **ASKED)
            assert one["auc"] == expected(decal_cli.evaluate, database, "p")["auc"]
            both = decal_cli.compare(engine, score=["p", "q"], **ASKED)
            assert both["brier"] == expected(decal_cli.compare, database, ["p", "q"])["brier"]
        with pytest.raises(DecalError, match="nowhere"):
            decal_cli.evaluate(decal_cli.Engine(connection, table="nowhere", **dialect), score="p", **ASKED)

    if kind == "duckdb":
        with duckdb.connect(database, read_only=True) as connection:
            check(connection)
            assert connection.execute("SELECT 1").fetchall() == [(1,)]  # it stays open
    elif kind in ("sqlite", "dictionaries"):
        with closing(sqlite3.connect(":memory:")) as opened:
            opened.execute("CREATE TABLE preds (p, q, y)")
            opened.executemany("INSERT INTO preds VALUES (?, ?, ?)", ROWS)
            if kind == "dictionaries":
                opened.row_factory = lambda cursor, row: dict(
                    zip([of[0] for of in cursor.description], row, strict=True)
                )
            check(opened)
    elif kind == "adbc":
        with adbc_driver_duckdb.dbapi.connect(str(database)) as connection:
            check(connection)
    elif kind == "plain":
        with duckdb.connect(database, read_only=True) as connection:
            check(Plain(connection), dialect="duckdb")
    else:
        check(f"duckdb:{database}")


def test_what_is_no_engine_is_one_line(database: Path) -> None:
    with duckdb.connect(database, read_only=True) as connection:
        given: list[tuple[Callable[[], Any], str]] = [
            (lambda: connection, r"the data is a connection; say what to ask it: Data"),
            (lambda: decal_cli.Engine(connection), "name a table, or give query="),
            (lambda: decal_cli.Engine(Plain(connection), table="preds"), "give dialect="),
            (lambda: decal_cli.Engine(connection, table="preds", dialect="oracle"), "'oracle' is not known"),
            (lambda: decal_cli.Engine(5, table="preds"), "of type int, which has no cursor"),
        ]
        for engine, text in given:
            with pytest.raises(DecalError, match=text):
                decal_cli.evaluate(engine(), score="p", **ASKED)


@pytest.mark.ci
def test_features_of_sqlite_keep_all_their_digits(decal: Decal, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=300), rng.integers(0, 2, 300)
    p = np.round(rng.random(300), 2)
    pq.write_table(pa.table({"p": p, "y": y, "x": x}), tmp_path / "rows.parquet")
    with closing(sqlite3.connect(tmp_path / "rows.db")) as opened, opened:
        opened.execute("CREATE TABLE preds (p REAL, y INTEGER, x REAL)")
        opened.executemany("INSERT INTO preds VALUES (?, ?, ?)", zip(p.tolist(), y.tolist(), x.tolist(), strict=True))
    asked = (*SAID, "--features", "x", "-m", "grouping_loss", "-m", "gain_beyond")
    of_file = decal.json("evaluate", "rows.parquet", *asked)
    of_engine = decal.json("evaluate", "--engine", "sqlite:rows.db?table=preds", *asked)
    assert of_engine["metrics"] == of_file["metrics"]


@pytest.mark.ci
def test_features_of_time_are_dates_from_an_engine_too(decal: Decal, tmp_path: Path) -> None:
    """DuckDB, as Postgres, writes an instant with a time zone as 2026-01-17 01:00:00+00."""
    rng = np.random.default_rng(0)
    whole = pa.array(rng.integers(0, 86_400_000_000, 300))
    columns = {"p": np.round(rng.random(300), 2), "y": rng.integers(0, 2, 300)}
    columns |= {"x1": whole.cast(pa.timestamp("us", "UTC")), "x2": whole.cast(pa.time64("us"))}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    asked = (*SAID, "--features", "x*", "-m", "grouping_loss", "-m", "gain_beyond")
    of_file = decal.json("evaluate", "rows.parquet", *asked)
    of_engine = decal.json("evaluate", "--engine", "duckdb:", "--query", "select * from 'rows.parquet'", *asked)
    assert of_engine["notes"] == of_file["notes"] == ["features: 2 dates"]
    assert of_engine["metrics"] == of_file["metrics"]


@pytest.mark.parametrize("option", ["--score", "--features", "--group", "--weight"])
@pytest.mark.parametrize(("value", "kind"), [("[p, 1 - p]", "DOUBLE[]"), ("{'a': p}", "STRUCT(a DOUBLE)")])
def test_a_column_of_lists_or_structures_is_one_line(
    decal: Decal, tmp_path: Path, option: str, value: str, kind: str
) -> None:
    with duckdb.connect(tmp_path / "file.db") as connection:
        connection.execute("CREATE TABLE rows AS SELECT k / 50.0::DOUBLE AS p, k % 2 AS y FROM range(50) r(k)")
        connection.execute(f"CREATE TABLE t AS SELECT *, {value} AS l FROM rows")
    scored = ("--score", "p") if option != "--score" else ()
    line = refusal(decal("evaluate", "--engine", f"duckdb:{tmp_path}/file.db?table=t", *scored, option, "l", "-y", "y"))
    assert f"column 'l' holds lists or structures ({kind}); name a column of plain values" in line


def test_rows_that_lack_something_are_dropped_as_from_a_file(decal: Decal, tmp_path: Path) -> None:
    """A row that lacks both counts as without a label; the label of one that lacks another value is known."""
    rng = np.random.default_rng(0)
    p, x, w = rng.random(400).round(3), rng.normal(size=400), rng.integers(1, 5, 400).astype(float)
    y = (rng.random(400) < p).astype(float)
    p[::7], y[::5], w[::11] = math.nan, math.nan, math.nan
    columns = {"p": p, "y": y, "x": x, "w": w}
    table = pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})
    folder = with_database(table, tmp_path)
    with closing(sqlite3.connect(tmp_path / "file.sqlite")) as opened, opened:
        opened.execute("CREATE TABLE preds (p REAL, y INTEGER, x REAL, w REAL)")
        opened.executemany("INSERT INTO preds VALUES (?, ?, ?, ?)", zip(*table.to_pydict().values(), strict=True))
    for more in ((), ("--features", "x")):
        asked = (*SAID, "--weight", "w", "--missing", "drop", *more, "-m", "brier", "-m", "gain_recalibration")
        expected = decal.json("evaluate", folder / "preds.parquet", *asked)
        assert (
            "p: dropped 151 of 400 rows (missing label: 80, missing score: 46, missing weight: 25)" in expected["notes"]
        )
        for engine in ("duckdb:file.db", "sqlite:file.sqlite"):
            got = decal.json("evaluate", "--engine", f"{engine.replace(':', f':{tmp_path}/')}?table=preds", *asked)
            assert_close(got["metrics"], expected["metrics"])
            for key in ("rows", "positives"):
                assert got["inputs"][0][key] == expected["inputs"][0][key]
