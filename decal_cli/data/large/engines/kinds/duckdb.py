"""DuckDB: a file of it, or a DuckDB in memory that reads files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from decal_cli.data.large.engines.address import Address
from decal_cli.data.large.engines.connections import Connection
from decal_cli.data.large.engines.dialects import Dialect


class DuckDB(Connection):
    """A DuckDB file, opened for reading, or a DuckDB in memory that reads files.

    Neither can load or fetch an extension, see a variable of Python, or change a setting, so that one SELECT writes
    nothing. A query of a file reads nothing else; views of the file may read other files.
    """

    name = "duckdb"
    schemes = ("duckdb",)
    form = "duckdb:FILE?table=NAME"
    modules = ("duckdb", "_duckdb")
    magic = "DuckDB", 8, b"DUCK"
    dialect = Dialect(
        "DOUBLE",
        "BIGINT",
        "VARCHAR",
        first_bits="CAST(CONCAT('0x', SUBSTR(MD5({value}), 1, 7)) AS BIGINT)",
        read_again="NOT MATERIALIZED ({})",
    )

    def __init__(self, address: Address, query: str) -> None:
        import duckdb

        in_memory = address.target == ":memory:"
        self.address = address
        if not in_memory:
            self.check_file()
        extensions = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
        self.connection = duckdb.connect(config={**extensions, "python_enable_replacements": False})
        if not in_memory:
            # To a database of its own, because one process opens no file with two configurations.
            text, path = self.dialect.text, Path(address.target)
            self.connection.execute(f"SET temp_directory = {text(f'{path}.tmp')}")
            # The file is named as DuckDB names it, but for the one name that the database in memory has.
            name = " AS memory_db" if path.name.lower().split(".")[0] == "memory" else ""
            self.connection.execute(f"ATTACH {text(str(path))}{name} (READ_ONLY)")
            attached = self.connection.execute("SELECT database_name FROM duckdb_databases() WHERE path IS NOT NULL")
            self.connection.execute(f"USE {self.dialect.name(attached.fetchall()[0][0])}")
            if query:
                self.connection.execute("SET enable_external_access = false")
        self.connection.execute("SET lock_configuration = true")

    def check(self, query: str) -> None:
        for text in self.asked_of(query):
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
            raise self.not_one_query
        return statements[0]

    def close(self) -> None:
        self.connection.close()
