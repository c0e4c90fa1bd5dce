"""Connections to engines: each answers a statement with a table, and says in one line why it cannot.

Drivers are loaded when one is asked for. Nothing is written, and nothing that is secret is ever shown.
"""

from __future__ import annotations

import io
import logging
import os
import re
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Protocol
from urllib.parse import urlsplit

from decal_cli.data.large.engines.address import Address
from decal_cli.data.large.engines.aggregate import types_of
from decal_cli.data.words import first_line
from decal_cli.errors import DecalError

CONNECT_SECONDS = 15
"""How long a server may take to answer that it is there."""
CONNECT_RETRIES = 4
"""Of Spark Connect, each after four times as long as the one before: 5 seconds in all."""
CONNECT_PORT = 15002
"""Of Spark Connect, where the address names none."""


class Connection(Protocol):
    """An engine that is connected to."""

    def names(self, source: str) -> list[str]:
        """The columns of what stands after FROM."""

    def types(self, source: str) -> dict[str, str]:
        """What the engine calls the type of each column of what stands after FROM."""

    def answer(self, statement: str) -> Any:
        """The result of a statement as a pyarrow Table, its columns of the types of an aggregate."""


class Closing(Connection, Protocol):
    """One that decal opened, and closes."""

    def close(self) -> None: ...


@contextmanager
def connected(address: Address) -> Iterator[Connection]:
    """The engine at an address, whose errors are lines. Errors: DecalError."""
    connect, extra = _ENGINES[address.engine]
    try:
        with closing(connect(address)) as engine:
            yield engine
    except ImportError as error:
        # Drivers that lack something of their own name no module.
        if error.name not in (None, "duckdb", "psycopg", "pyspark"):
            raise
        lacking = first_line(error) if error.name is None else f"needs {error.name}, which is not installed"
        raise DecalError(f"{address.shown}: {lacking}", f"pip install 'decal[{extra}]'") from None
    except (DecalError, KeyboardInterrupt, MemoryError):
        raise
    except Exception as error:
        # Whatever a driver raises: each has exceptions of its own, and some raise bare ones.
        if not type(error).__module__.startswith(("duckdb", "_duckdb", "psycopg", "pyspark", "py4j", "grpc")):
            raise
        problem = address.public(_problem(error)).rstrip("!.:; ")
        raise DecalError(
            f"{address.shown}: {problem}", "check --engine, the table or --query, and the rights"
        ) from None


def _problem(error: Exception) -> str:
    """What is wrong, in one line: gRPC tells it among others, as details."""
    details = re.search(r'details = "(.+)"', str(error))
    return first_line(ValueError(details[1])) if details else first_line(error)


class DuckDB:
    """A DuckDB file, opened for reading, or a DuckDB in memory that reads files."""

    def __init__(self, address: Address) -> None:
        import duckdb

        in_memory = address.target == ":memory:"
        if not in_memory:
            _check_database(address)
        self.connection = duckdb.connect(address.target, read_only=not in_memory)

    def names(self, source: str) -> list[str]:
        return list(self.types(source))

    def types(self, source: str) -> dict[str, str]:
        empty = self.connection.sql(f"SELECT * FROM {source} LIMIT 0")
        return {name: str(kind) for name, kind in zip(empty.columns, empty.types, strict=True)}

    def answer(self, statement: str) -> Any:
        return self.connection.sql(statement).to_arrow_table()

    def close(self) -> None:
        self.connection.close()


def _check_database(address: Address) -> None:
    """Raise a DecalError where a file is no database: what DuckDB does with it depends on what it is."""
    try:
        with open(address.target, "rb") as file:
            magic = file.read(12)[8:]
    except OSError as error:
        raise DecalError(f"{address.shown}: {error.strerror or error}", "name a DuckDB file") from None
    if magic != b"DUCK":
        raise DecalError(f"{address.shown}: is not a DuckDB database", "give a file of rows without --engine")


class Postgres:
    """A Postgres server: one transaction that reads one snapshot."""

    def __init__(self, address: Address) -> None:
        import psycopg

        self.connection = psycopg.connect(address.target, connect_timeout=CONNECT_SECONDS, application_name="decal")
        self.connection.read_only = True
        self.connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ

    def names(self, source: str) -> list[str]:
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {source} LIMIT 0".encode())
            return [each.name for each in cursor.description or ()]

    def types(self, source: str) -> dict[str, str]:
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {source} LIMIT 0".encode())
            known = self.connection.adapters.types
            codes = {each.name: each.type_code for each in cursor.description or ()}
            return {name: "unknown" if (kind := known.get(code)) is None else kind.name for name, code in codes.items()}

    def answer(self, statement: str) -> Any:
        import pyarrow as pa
        import pyarrow.csv as pacsv

        content = io.BytesIO()
        export = f"COPY (\n{statement}\n) TO STDOUT (FORMAT csv, HEADER)".encode()
        with self.connection.cursor() as cursor, cursor.copy(export) as copy:
            for piece in copy:
                content.write(piece)
        content.seek(0)
        names = pacsv.open_csv(content).schema.names
        content.seek(0)
        convert = pacsv.ConvertOptions(
            column_types={name: getattr(pa, kind)() for name, kind in types_of(names).items()},
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        )
        parse = pacsv.ParseOptions(newlines_in_values=True)
        return pacsv.read_csv(content, parse_options=parse, convert_options=convert)

    def close(self) -> None:
        self.connection.close()


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the warnings of Spark: of versions of pandas, of which nothing is used here, and before its errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Spark:
    """Spark: the session that is there, else one as spark-submit or the address configures it."""

    def __init__(self, address: Address) -> None:
        with _quietly():
            from pyspark.sql import SparkSession

            session = SparkSession.getActiveSession()
        # It writes a stack for every statement that cannot be run; the error says the same in one line.
        self.logger = logging.getLogger("SQLQueryContextLogger")
        self.logged, self.logger.disabled = self.logger.disabled, True
        self.started = session is None
        if session is None:
            if address.target.startswith("sc:"):
                session = _remote(address)
            else:
                builder = SparkSession.builder.appName("decal").config("spark.log.level", "OFF")
                session = (builder.master(address.target) if address.target else builder).getOrCreate()
        self.session = session

    def names(self, source: str) -> list[str]:
        return list(self.types(source))

    def types(self, source: str) -> dict[str, str]:
        with _quietly():
            return dict(self.session.sql(f"SELECT * FROM {source} LIMIT 0").dtypes)

    def answer(self, statement: str) -> Any:
        with _quietly():
            return self.session.sql(statement).toArrow()

    def close(self) -> None:
        self.logger.disabled = self.logged
        if self.started:
            with _quietly():
                self.session.stop()


def _remote(address: Address) -> Any:
    """A session of Spark Connect that gives up after seconds, where a server does not answer or goes away."""
    check_reached(address)
    # Its C library writes lines of its own beside the error.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    with _quietly():
        from pyspark.sql.connect.client.retries import DefaultPolicy
        from pyspark.sql.connect.session import SparkSession

        session = SparkSession(address.target)
        session.client.set_retry_policies([DefaultPolicy(max_retries=CONNECT_RETRIES)])
    return session


def check_reached(address: Address) -> None:
    """Raise a DecalError where no server listens."""
    parts = urlsplit(address.target.partition(";")[0])
    try:
        place = (parts.hostname or "", parts.port or CONNECT_PORT)
        socket.create_connection(place, CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise DecalError(f"{address.shown}: {problem}", "check the host and the port of --engine") from None


_ENGINES: dict[str, tuple[Callable[[Address], Closing], str]] = {
    "duckdb": (DuckDB, "duckdb"),
    "postgres": (Postgres, "postgres"),
    "spark": (Spark, "spark"),
}
"""By dialect, how to connect, and the extra that installs the driver."""
