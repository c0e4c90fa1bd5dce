"""Connections that a Python user opened: any of DB-API 2, and of ADBC, which speaks it too."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

from decal_cli.data.large.engines.aggregate import types_of
from decal_cli.data.large.engines.dialects import DIALECTS
from decal_cli.data.words import first_line
from decal_cli.errors import DecalError

_DIALECTS = {
    **{name: name for name in DIALECTS},
    **dict.fromkeys(("psycopg", "psycopg2", "pg8000", "postgresql"), "postgres"),
    "_duckdb": "duckdb",
    "google": "bigquery",
    "databricks": "spark",
}
"""By the first word of a driver's module, or of what ADBC calls the vendor."""


@dataclass(frozen=True, eq=False)
class Engine:
    """Rows that an engine holds, in the place of data: it counts them, and no row is read.

    connection: an open connection of DB-API 2 or of ADBC, which stays open, or an address such as 'duckdb:file.db'.
    table, query: one of them, the table that holds the rows or the query that gives them. dialect: of its SQL, where
    the driver does not tell: duckdb, postgres, bigquery, snowflake or spark. Errors: DecalError.
    """

    connection: Any
    table: str | None = None
    query: str | None = None
    dialect: str | None = None

    def __post_init__(self) -> None:
        if self.dialect is not None and self.dialect not in DIALECTS:
            raise DecalError(f"dialect={self.dialect!r} is not known", f"give one of {', '.join(DIALECTS)}")
        if not isinstance(self.connection, str) and not hasattr(self.connection, "cursor"):
            raise DecalError(
                f"connection= is of type {type(self.connection).__name__}, which has no cursor",
                "give an open connection of DB-API 2 or ADBC, or an address such as 'duckdb:file.db'",
            )

    @property
    def spoken(self) -> str:
        """The dialect. Errors: DecalError, where none is named and the driver is not known."""
        named = self.dialect or _dialect_of(self.connection)
        if named is None:
            raise DecalError(
                f"the dialect of a connection of {type(self.connection).__module__} is not known",
                f"give dialect=, one of {', '.join(DIALECTS)}",
            )
        return named


def _dialect_of(connection: Any) -> str | None:
    words = [type(connection).__module__]
    if hasattr(connection, "adbc_get_info"):
        words.insert(0, str(connection.adbc_get_info().get("vendor_name")))
    known = (_DIALECTS.get(word.lower().split(".")[0].split(" ")[0]) for word in words)
    return next((name for name in known if name is not None), None)


class Opened:
    """A connection that its user opened, and will close."""

    def __init__(self, connection: Any, shown: str) -> None:
        self.connection = connection
        self.shown = shown

    def names(self, source: str) -> list[str]:
        """The columns of what stands after FROM."""
        with closing(self._asked(f"SELECT * FROM {source} LIMIT 0")) as cursor:
            return [each[0] for each in cursor.description or ()]

    def types(self, source: str) -> dict[str, str]:
        """Nothing: drivers tell types of columns each in a way of their own."""
        return {}

    def answer(self, statement: str) -> Any:
        """The result of a statement as a pyarrow Table, its columns of the types of an aggregate."""
        with closing(self._asked(statement)) as cursor:
            try:
                if hasattr(cursor, "fetch_arrow_table"):
                    return cursor.fetch_arrow_table()
                names, rows = [each[0] for each in cursor.description], cursor.fetchall()
            except Exception as error:
                raise self._refused(error) from None
        return _as_table(names, rows)

    def _asked(self, statement: str) -> Any:
        cursor = self.connection.cursor()
        try:
            cursor.execute(statement)
        except Exception as error:
            # Whatever a driver raises: each has exceptions of its own.
            cursor.close()
            raise self._refused(error) from None
        return cursor

    def _refused(self, error: Exception) -> DecalError:
        problem = first_line(error).rstrip("!.:; ")
        return DecalError(f"{self.shown}: {problem}", "check the connection, the table or query, and the rights")


def _as_table(names: list[str], rows: list[Any]) -> Any:
    """Rows of Python values as a pyarrow Table."""
    import pyarrow as pa

    kinds = types_of(names)
    as_python = {"float64": float, "int64": int, "string": str}
    columns = {}
    for at, name in enumerate(names):
        read = as_python[kinds[name]]
        values = [None if row[at] is None else read(row[at]) for row in rows]
        columns[name] = pa.array(values, getattr(pa, kinds[name])())
    return pa.table(columns)
