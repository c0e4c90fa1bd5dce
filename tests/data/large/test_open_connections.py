"""Connections that a Python user opened, as data: DB-API 2 and ADBC."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import adbc_driver_duckdb.dbapi
import duckdb
import pytest

import decal_cli
from decal_cli.errors import DecalError

ASKED: dict[str, Any] = {"label": "y", "threshold": 0.3, "metrics": ("brier", "auc")}
ROWS = [(at / 40, (at * 7 % 40) / 40, int(at % 3 == 0)) for at in range(40)]


class Cursor:
    """What DB-API 2 asks for, and no Arrow."""

    def __init__(self, cursor: Any) -> None:
        self.cursor = cursor

    @property
    def description(self) -> Any:
        return self.cursor.description

    def execute(self, statement: str) -> None:
        self.cursor.execute(statement)

    def fetchall(self) -> Any:
        return self.cursor.fetchall()

    def close(self) -> None:
        self.cursor.close()


class Connection:
    """A connection of a driver that nobody knows."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def cursor(self) -> Cursor:
        return Cursor(self.connection.cursor())

    def close(self) -> None:
        self.connection.close()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "file.db"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE preds (p DOUBLE, q DOUBLE, y INTEGER)")
        connection.executemany("INSERT INTO preds VALUES (?, ?, ?)", ROWS)
    return path


def expected(verb: Any, database: Path, score: Any) -> Any:
    return verb(f"duckdb:{database}?table=preds", score=score, **ASKED)


@pytest.mark.parametrize("kind", ["duckdb", "adbc", "plain", "address"])
def test_a_connection_is_data_of_every_verb(database: Path, kind: str) -> None:
    def check(connection: Any, **dialect: str) -> None:
        table = decal_cli.Engine(connection, table="preds", **dialect)
        query = decal_cli.Engine(connection, query="select * from preds where p < 2", **dialect)
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
    elif kind == "adbc":
        with adbc_driver_duckdb.dbapi.connect(str(database)) as connection:
            check(connection)
    elif kind == "plain":
        with duckdb.connect(database, read_only=True) as connection:
            check(Connection(connection), dialect="duckdb")
    else:
        check(f"duckdb:{database}")


def test_what_is_no_engine_is_one_line(database: Path) -> None:
    with duckdb.connect(database, read_only=True) as connection:
        given: list[tuple[Callable[[], Any], str]] = [
            (lambda: connection, r"the data is a connection; say what to ask it: Data"),
            (lambda: decal_cli.Engine(connection), "name a table, or give query="),
            (lambda: decal_cli.Engine(Connection(connection), table="preds"), "give dialect="),
            (lambda: decal_cli.Engine(connection, table="preds", dialect="mysql"), "'mysql' is not known"),
            (lambda: decal_cli.Engine(5, table="preds"), "of type int, which has no cursor"),
        ]
        for engine, text in given:
            with pytest.raises(DecalError, match=text):
                decal_cli.evaluate(engine(), score="p", **ASKED)
