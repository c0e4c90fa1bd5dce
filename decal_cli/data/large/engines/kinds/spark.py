"""Spark, and Databricks."""

from __future__ import annotations

import logging
import os
from typing import Any
from urllib.parse import urlsplit

from decal_cli.data.large.engines.address import SECRETS, Address
from decal_cli.data.large.engines.connections import CONNECT_SECONDS, Connection, called
from decal_cli.data.large.engines.dialects import Dialect
from decal_cli.errors import DecalError, masked
from decal_cli.hints import Hint

CONNECT_RETRIES = 4
"""Retries of Spark Connect, each after four times as long a wait as the one before: 5 seconds in all."""
CONNECT_PORT = 15002
"""The port of Spark Connect, where the address names none."""
_CALL_JAVA = ("java_method", "reflect", "try_reflect")
"""Functions of Spark that call any static method of Java."""


class Spark(Connection):
    """Spark: the session that is there, else one as spark-submit or the address configures it."""

    name = "spark"
    schemes = ("spark",)
    form = "spark:?table=NAME"
    modules = ("pyspark", "py4j", "grpc", "databricks")
    warns = True  # of versions of pandas, of which nothing is used here, and before its errors
    # NaN = NaN is true, and -0.0 and 0.0 are one group. (Spark SQL: NaN semantics.)
    dialect = Dialect(
        "DOUBLE",
        "BIGINT",
        "STRING",
        mark="`",
        escapes=True,
        first_bits="CAST(CONV(SUBSTR(MD5({value}), 1, 7), 16, 10) AS BIGINT)",
    )

    @classmethod
    def at(cls, text: str) -> Address:
        """The session that is there or as it is configured; after 'spark:' may stand a master, or sc://HOST:PORT."""
        place, table = cls.place_and_table(text)
        master, _, options = place.partition(";")
        pairs = (each.partition("=") for each in options.split(";"))
        secrets = tuple(value for name, _, value in pairs if name in SECRETS and value)
        return Address(cls.name, place, masked(f"spark:{master}") if master else "spark", table, secrets)

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
    import socket

    parts = urlsplit(address.target.partition(";")[0])
    try:
        place = (parts.hostname or "", parts.port or CONNECT_PORT)
        socket.create_connection(place, CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        raise DecalError(f"{address.shown}: {problem}", f"check the host and the port of {Hint('engine')}") from None
