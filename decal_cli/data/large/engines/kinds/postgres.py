"""Postgres."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit

from decal_cli.data.large.engines.address import SECRETS, Address, parameters_of
from decal_cli.data.large.engines.connections import CONNECT_SECONDS, Connection, called, forms
from decal_cli.data.large.engines.dialects import Dialect
from decal_cli.data.large.engines.statement import types_of
from decal_cli.errors import DecalError
from decal_cli.hints import Hint


class Postgres(Connection):
    """A Postgres server: one transaction that reads one snapshot, in a session that is read-only by default."""

    name = "postgres"
    schemes = ("postgresql", "postgres")
    form = "postgresql://USER@HOST/DATABASE?table=NAME"
    modules = ("psycopg", "psycopg2", "pg8000", "postgresql")
    # EXP underflows with an error, and LN(0) is one too; CASE evaluates only the case that holds.
    dialect = Dialect(
        "DOUBLE PRECISION",
        "BIGINT",
        "TEXT",
        distinct="COUNT(DISTINCT {value})",
        first_bits="CAST(CAST(CONCAT('x', SUBSTR(MD5({value}), 1, 7)) AS BIT(28)) AS BIGINT)",
        read_again="NOT MATERIALIZED ({})",
    )

    @classmethod
    def at(cls, text: str) -> Address:
        try:
            parts = urlsplit(text)
            host, port, user, password = parts.hostname or "", parts.port, parts.username, parts.password
        except ValueError:
            raise DecalError(f"{Hint('engine')} is not a URL", f"write {forms()}") from None
        if parts.fragment or "@" in parts.path + parts.query or parts.netloc.count("@") > 1:
            # Of a password with / ? # or @ in it, the end would be taken for the host or the database.
            raise DecalError(
                f"{Hint('engine')} is not a URL",
                "write special characters of user and password as %XX, such as %40 for @ and %2F for /",
            )
        parameters = parameters_of(parts.query, cls.name)
        table = parameters.pop("table", "")
        secrets = [value for name, value in parameters.items() if name in SECRETS]
        secrets += [password, unquote(password)] if password else []
        target = urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(parameters), ""))
        where = f"{user}@{host}" if user else host
        shown = urlunsplit(("postgresql", where if port is None else f"{where}:{port}", parts.path, "", ""))
        return Address(cls.name, target, shown, table, tuple(filter(None, secrets)))

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
        if not all(map(self._prepared, self.asked_of(query))):
            raise self.not_one_query

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
