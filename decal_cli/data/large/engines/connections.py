"""Connections to engines: each answers a statement with a table, and says in one line why it cannot.

A user may have opened one: any of DB-API 2, and of ADBC, which speaks it too. Drivers are loaded when one is asked for.
Nothing is written: an engine is opened for reading, and a query of a user is one statement that reads. Nothing that is
secret is ever shown.
"""

from __future__ import annotations

import io
import logging
import os
import re
import socket
import warnings
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from decal_cli.data.formats.sources import DATABASES
from decal_cli.data.large.engines.address import Address
from decal_cli.data.large.engines.dialects import DIALECTS
from decal_cli.data.large.engines.statement import source_of, types_of
from decal_cli.data.words import first_line
from decal_cli.errors import DecalError
from decal_cli.hints import Hint

CONNECT_SECONDS = 15
"""How long a server may take to answer that it is there."""
CONNECT_RETRIES = 4
"""Retries of Spark Connect, each after four times as long a wait as the one before: 5 seconds in all."""
CONNECT_PORT = 15002
"""The port of Spark Connect, where the address names none."""
_CALL_JAVA = ("java_method", "reflect", "try_reflect")
"""Functions of Spark that call any static method of Java."""
_DIALECTS = {
    **{name: name for name in DIALECTS},
    **dict.fromkeys(("psycopg", "psycopg2", "pg8000", "postgresql"), "postgres"),
    **dict.fromkeys(("pymysql", "mysqldb", "mariadb"), "mysql"),
    "_duckdb": "duckdb",
    "sqlite3": "sqlite",
    "google": "bigquery",
    "databricks": "spark",
}
"""The dialect by the first word of a driver's module, or of the vendor's name in ADBC."""


@dataclass(frozen=True, eq=False)
class Engine:
    """Rows that an engine holds, used in place of data: the engine counts them, and no row is read.

    connection: an open connection of DB-API 2 or of ADBC, which stays open, or an address such as 'duckdb:file.db'.
    table, query: give one, the table that holds the rows or the query that returns them. dialect: that of its SQL,
    where the driver does not tell: duckdb, postgres, bigquery, snowflake, spark, sqlite or mysql. Errors: DecalError.
    """

    connection: Any
    table: str | None = None
    query: str | None = None
    dialect: str | None = None

    def __post_init__(self) -> None:
        if self.dialect and self.dialect not in DIALECTS:
            raise DecalError(f"dialect={self.dialect!r} is not known", f"give one of {', '.join(DIALECTS)}")
        if not isinstance(self.connection, str) and not hasattr(self.connection, "cursor"):
            raise DecalError(
                f"connection= is of type {type(self.connection).__name__}, which has no cursor",
                "give an open connection of DB-API 2 or ADBC, or an address such as 'duckdb:file.db'",
            )

    @property
    def spoken(self) -> str:
        """The dialect. Errors: DecalError, where none is named and the driver is not known."""
        words = [type(self.connection).__module__]
        if hasattr(self.connection, "adbc_get_info"):
            words.insert(0, str(self.connection.adbc_get_info().get("vendor_name")))
        known = (_DIALECTS.get(word.lower().split(".")[0].split(" ")[0]) for word in words)
        named = self.dialect or next(filter(None, known), "")
        if not named:
            raise DecalError(
                f"the dialect of a connection of {type(self.connection).__module__} is not known",
                f"give dialect=, one of {', '.join(DIALECTS)}",
            )
        return named


class Connection:
    """A connection to an engine."""

    def check(self, query: str) -> None:
        """Raise a DecalError where a query of the user is not one statement that reads; nothing of it is run."""

    def types(self, source: str) -> dict[str, str]:
        """The columns of what stands after FROM, and what the engine calls their types, '' where it does not tell."""
        raise NotImplementedError

    def answer(self, statement: str) -> Any:
        """The result of a statement as a pyarrow Table, its columns of the types of an aggregate."""
        raise NotImplementedError

    def close(self) -> None:
        """Leave the engine."""


@contextmanager
def connected(address: Address, query: str = "") -> Iterator[Connection]:
    """The engine at an address, whose errors become DecalErrors. query: the user's, if there is one."""
    # Spark warns of versions of pandas, of which nothing is used here, and before its errors.
    quietly = warnings.catch_warnings(action="ignore") if address.engine == "spark" else nullcontext()
    try:
        with quietly, closing(_ENGINES[address.engine](address, query)) as engine:
            if query:
                engine.check(query)
            yield engine
    except ImportError as error:
        # Drivers that lack something of their own name no module.
        if error.name not in (None, "psycopg", "pyspark"):
            raise
        lacking = f"needs {error.name}, which is not installed" if error.name else first_line(error)
        raise DecalError(f"{address.shown}: {lacking}", f"pip install 'decal[{address.engine}]'") from None
    except (DecalError, KeyboardInterrupt, MemoryError):
        raise
    except Exception as error:
        # Whatever a driver raises: each has exceptions of its own, and some raise bare ones.
        if not type(error).__module__.startswith(
            ("duckdb", "_duckdb", "sqlite3", "psycopg", "pyspark", "py4j", "grpc")
        ):
            raise
        # gRPC tells what is wrong among other things, as details.
        details = re.search(r'details = "(.+)"', str(error))
        problem = address.public(first_line(ValueError(details[1]) if details else error)).rstrip("!.:; ")
        raise DecalError(
            f"{address.shown}: {problem}", f"check {Hint('engine')}, the table or {Hint('query')}, and the rights"
        ) from None


def _asked_of(query: str, address: Address) -> tuple[str, str]:
    """A query within parentheses, where only a SELECT can stand, and by itself: it must parse as both."""
    return f"SELECT * FROM {source_of('', query, DIALECTS[address.engine])}", query


def _not_one_query(address: Address) -> DecalError:
    return DecalError(
        f"{address.shown}: {Hint('query')} is not one SELECT", "write one query that reads, and nothing after it"
    )


def called(query: str, names: Iterable[str]) -> str:
    """The first of these functions that a query calls, "" where it calls none.

    Comments and texts count as well: what a query does must not hang on how well they are told apart here.
    """
    either = "|".join(re.escape(name.replace('"', '""')) for name in sorted(names, key=len, reverse=True))
    found = re.search(rf"(?<![\w$])({either})[\"`]?\s*(\(|/\*|--)", query, re.IGNORECASE)
    return found[1] if found and either else ""


def _check_file(address: Address, engine: str) -> None:
    """Raise a DecalError where a file is no database of this engine, which might read it as something else."""
    name, at, magic = DATABASES[engine]
    try:
        with open(address.target, "rb") as file:
            found = file.read(at + len(magic))[at:]
    except OSError as error:
        raise DecalError(f"{address.shown}: {error.strerror or error}", f"name a {name} file") from None
    if found != magic:
        raise DecalError(f"{address.shown} is not a {name} database", f"give a file of rows without {Hint('engine')}")


class DuckDB(Connection):
    """A DuckDB file, opened for reading, or a DuckDB in memory that reads files.

    Neither can load or fetch an extension, see a variable of Python, or change a setting, so that one SELECT writes
    nothing. A query of a file reads nothing else; views of the file may read other files.
    """

    def __init__(self, address: Address, query: str) -> None:
        import duckdb

        in_memory = address.target == ":memory:"
        if not in_memory:
            _check_file(address, "duckdb")
        self.address = address
        extensions = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
        self.connection = duckdb.connect(config={**extensions, "python_enable_replacements": False})
        if not in_memory:
            # To a database of its own, because one process opens no file with two configurations.
            text, path = DIALECTS["duckdb"].text, Path(address.target)
            self.connection.execute(f"SET temp_directory = {text(f'{path}.tmp')}")
            # The file is named as DuckDB names it, but for the one name that the database in memory has.
            name = " AS memory_db" if path.name.lower().split(".")[0] == "memory" else ""
            self.connection.execute(f"ATTACH {text(str(path))}{name} (READ_ONLY)")
            attached = self.connection.execute("SELECT database_name FROM duckdb_databases() WHERE path IS NOT NULL")
            self.connection.execute(f"USE {DIALECTS['duckdb'].name(attached.fetchall()[0][0])}")
            if query:
                self.connection.execute("SET enable_external_access = false")
        self.connection.execute("SET lock_configuration = true")

    def check(self, query: str) -> None:
        for text in _asked_of(query, self.address):
            self._select(text)

    def types(self, source: str) -> dict[str, str]:
        empty = self.connection.sql(self._select(f"SELECT * FROM {source} LIMIT 0"))
        return {name: str(kind) for name, kind in zip(empty.columns, empty.types, strict=True)}

    def answer(self, statement: str) -> Any:
        return self.connection.sql(self._select(statement)).to_arrow_table()

    def _select(self, text: str) -> Any:
        """The one statement that a text is, as DuckDB parses it. Errors: DecalError."""
        import duckdb

        statements = self.connection.extract_statements(text)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise _not_one_query(self.address)
        return statements[0]

    def close(self) -> None:
        self.connection.close()


class Postgres(Connection):
    """A Postgres server: one transaction that reads one snapshot, in a session that is read-only by default."""

    def __init__(self, address: Address, query: str) -> None:
        import psycopg

        asked = psycopg.conninfo.conninfo_to_dict(address.target).get("options") or os.environ.get("PGOPTIONS", "")
        self.address = address
        self.connection = psycopg.connect(
            address.target,
            connect_timeout=CONNECT_SECONDS,
            application_name="decal",
            options=f"{asked} -c default_transaction_read_only=on",
        )
        self.connection.read_only = True
        self.connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ

    def check(self, query: str) -> None:
        """Raise a DecalError where a query calls a function that can act: read-only transactions do not stop them all.

        lo_export writes a file, dblink connects. Postgres marks all that can act as volatile; so it does functions that
        give other rows each time.
        """
        if re.search(r'u&"', query, re.IGNORECASE):
            raise DecalError(f'{self.address.shown}: {Hint("query")} has a name in U&"..."', "write the name as it is")
        with self._asked("SELECT DISTINCT proname FROM pg_catalog.pg_proc WHERE provolatile = 'v'") as cursor:
            name = called(query, [name for (name,) in cursor])
        if name:
            raise DecalError(
                f"{self.address.shown}: {Hint('query')} calls {name}, a volatile function, which a read-only "
                "query may not",
                "leave it out, declare it STABLE where it is yours, or name a view of the query as the table",
            )
        if not all(map(self._prepared, _asked_of(query, self.address))):
            raise _not_one_query(self.address)

    def types(self, source: str) -> dict[str, str]:
        with self._asked(f"SELECT * FROM {source} LIMIT 0") as cursor:
            known = self.connection.adapters.types
            codes = {each.name: each.type_code for each in cursor.description or ()}
            return {name: kind.name if (kind := known.get(code)) else "unknown" for name, code in codes.items()}

    @contextmanager
    def _asked(self, statement: str) -> Iterator[Any]:
        """A cursor after a statement; of binary results the protocol takes one statement only."""
        with self.connection.cursor(binary=True) as cursor:
            yield cursor.execute(statement.encode())

    def _prepared(self, statement: str) -> int:
        """The columns of a statement that the server prepares: it takes one only, and nothing is run."""
        import psycopg

        server = self.connection.pgconn
        for result in (server.prepare(b"", statement.encode()), server.describe_prepared(b"")):
            if result.status != psycopg.pq.ExecStatus.COMMAND_OK:
                raise psycopg.ProgrammingError(result.get_error_message())
        return result.nfields

    def answer(self, statement: str) -> Any:
        import pyarrow as pa
        import pyarrow.csv as pacsv

        content = io.BytesIO()
        export = f"COPY (\n{statement}\n) TO STDOUT (FORMAT csv, HEADER)"
        # What copies sends its statement in the protocol that takes several.
        self._prepared(export)
        with self.connection.cursor() as cursor, cursor.copy(export.encode()) as copy:
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


class Spark(Connection):
    """Spark: the session that is there, else one as spark-submit or the address configures it."""

    def __init__(self, address: Address, query: str) -> None:
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
        self.address = address

    def check(self, query: str) -> None:
        """Raise a DecalError where the query is not one SELECT, as Spark parses it, alone and in parentheses."""
        name = called(query, _CALL_JAVA)
        if name:
            raise DecalError(
                f"{self.address.shown}: {Hint('query')} calls {name}, which runs methods of Java", "leave it out"
            )

    def types(self, source: str) -> dict[str, str]:
        return dict(self.session.sql(f"SELECT * FROM {source} LIMIT 0").dtypes)

    def answer(self, statement: str) -> Any:
        return self.session.sql(statement).toArrow()

    def close(self) -> None:
        self.logger.disabled = self.logged
        if self.started:
            self.session.stop()


def _remote(address: Address) -> Any:
    """A session of Spark Connect that gives up after seconds, where a server does not answer or goes away."""
    check_reached(address)
    # Its C library writes lines of its own beside the error.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
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
        problem = getattr(error, "strerror", None) or error
        raise DecalError(f"{address.shown}: {problem}", f"check the host and the port of {Hint('engine')}") from None


class Opened(Connection):
    """A connection that its user opened, and will close."""

    def __init__(self, connection: Any, shown: str) -> None:
        self.connection = connection
        self.shown = shown

    def types(self, source: str) -> dict[str, str]:
        """The names of columns without types, which each driver tells in its own way."""
        with self._asked(f"SELECT * FROM {source} LIMIT 0") as cursor:
            return dict.fromkeys((each[0] for each in cursor.description or ()), "")

    def answer(self, statement: str) -> Any:
        import pyarrow as pa

        with self._asked(statement) as cursor:
            if hasattr(cursor, "fetch_arrow_table"):
                # DuckDB 1.5 has both, and warns of this one.
                return getattr(cursor, "to_arrow_table", cursor.fetch_arrow_table)()
            names, rows = [each[0] for each in cursor.description], cursor.fetchall()
            # Some drivers hand over rows as dictionaries, if asked to.
            rows = [[*row.values()] if isinstance(row, dict) else row for row in rows]
        as_python, columns = {"float64": float, "int64": int, "string": str}, {}
        for at, (name, kind) in enumerate(types_of(names).items()):
            values = [None if row[at] is None else as_python[kind](row[at]) for row in rows]
            columns[name] = pa.array(values, getattr(pa, kind)())
        return pa.table(columns)

    @contextmanager
    def _asked(self, statement: str) -> Iterator[Any]:
        """A cursor after a statement. Errors: DecalError, for whatever a driver raises: each has its own exceptions."""
        try:
            with closing(self.connection.cursor()) as cursor:
                cursor.execute(statement)
                yield cursor
        except Exception as error:
            problem = first_line(error).rstrip("!.:; ")
            raise DecalError(
                f"{self.shown}: {problem}", "check the connection, the table or query, and the rights"
            ) from None


class SQLite(Opened):
    """A file of SQLite, opened for reading; it lets nothing through but what one SELECT reads of it."""

    def __init__(self, address: Address, query: str) -> None:
        import sqlite3

        _check_file(address, "sqlite")
        path = Path(address.target).absolute().as_uri()
        super().__init__(sqlite3.connect(f"{path}?mode=ro", uri=True), address.shown)
        self.address = address
        reads = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
        self.connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in reads else sqlite3.SQLITE_DENY)

    def check(self, query: str) -> None:
        for text in _asked_of(query, self.address):
            with self._asked(f"EXPLAIN {text}"):
                pass

    def close(self) -> None:
        self.connection.close()


_ENGINES = {"duckdb": DuckDB, "sqlite": SQLite, "postgres": Postgres, "spark": Spark}
"""The connection of each dialect, whose name is also that of the extra that installs its driver."""
