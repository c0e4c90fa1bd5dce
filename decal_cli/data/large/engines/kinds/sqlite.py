"""SQLite."""

from __future__ import annotations

from pathlib import Path

from decal_cli.data.large.engines.address import Address
from decal_cli.data.large.engines.connections import Opened
from decal_cli.data.large.engines.dialects import Dialect


class SQLite(Opened):
    """A file of SQLite, opened for reading; it lets nothing through but what one SELECT reads of it."""

    name = "sqlite"
    schemes = ("sqlite",)
    form = "sqlite:FILE?table=NAME"
    modules = ("sqlite3", "sqlite")
    magic = "SQLite", 0, b"SQLite format 3\0"
    # Values have types, and columns have none. CAST makes 0 of a text that is no number; compared, it is above all
    # numbers. A name in double quotes that no column has would be a text.
    dialect = Dialect(
        "REAL",
        "INTEGER",
        "TEXT",
        mark="`",
        nan="1 = 0",
        cast="CASE WHEN CAST({value} AS NUMERIC) = {value} THEN CAST({value} AS {double}) ELSE {value} END",
        infinity="9e999",
        least="MIN",
        greatest="MAX",
        # CAST writes a number with 15 digits, of which some have 17.
        exact_text="CASE WHEN TYPEOF({value}) <> 'real' OR CAST(CAST({value} AS {varchar}) AS REAL) = {value}"
        " THEN CAST({value} AS {varchar}) ELSE PRINTF('%!.17g', {value}) END",
        distinct="COUNT(DISTINCT {value})",
        written="MATERIALIZED ({})",
    )

    def __init__(self, address: Address, query: str) -> None:
        import sqlite3

        self.address = address
        self.check_file()
        path = Path(address.target).absolute().as_uri()
        super().__init__(sqlite3.connect(f"{path}?mode=ro", uri=True), address.shown)
        reads = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
        self.connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in reads else sqlite3.SQLITE_DENY)

    def check(self, query: str) -> None:
        for text in self.asked_of(query):
            with self._asked(f"EXPLAIN {text}"):
                pass

    def close(self) -> None:
        self.connection.close()
