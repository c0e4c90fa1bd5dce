"""Connections to engines: each answers a statement with a table, and says in one line why it cannot.

A user may have opened one: any of DB-API 2, and of ADBC, which speaks it too. Drivers are loaded when one is asked for.
Nothing is written: an engine is opened for reading, and a query of a user is one statement that reads. Nothing that is
secret is ever shown.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import unquote

from decal_cli.data.large.engines.address import Address, is_remote, parameters_of
from decal_cli.data.large.engines.dialects import Dialect
from decal_cli.data.large.engines.statement import source_of, types_of
from decal_cli.data.words import first_line
from decal_cli.errors import DecalError
from decal_cli.hints import Hint

CONNECT_SECONDS = 15
"""How long a server may take to answer that it is there."""
ENGINES: dict[str, type[Connection]] = {}
"""Every engine, by the name of its dialect and of the extra that installs its driver."""


@dataclass(frozen=True, eq=False)
class Engine:
    """Rows that an engine holds, used in place of data: the engine counts them, and no row is read.

    connection: an open connection of DB-API 2 or of ADBC, which stays open, or an address such as 'duckdb:file.db'.
    table, query: give one, the table that holds the rows or the query that returns them. dialect: that of its SQL,
    where the driver does not tell, one that `decal sql --help` lists. Errors: DecalError.
    """

    connection: Any
    table: str | None = None
    query: str | None = None
    dialect: str | None = None

    def __post_init__(self) -> None:
        if self.dialect and self.dialect not in ENGINES:
            raise DecalError(f"dialect={self.dialect!r} is not known", f"give one of {', '.join(ENGINES)}")
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
        first = [word.lower().split(".")[0].split(" ")[0] for word in words]
        known = (name for word in first for name, engine in ENGINES.items() if word in engine.modules)
        named = self.dialect or next(known, "")
        if not named:
            raise DecalError(
                f"the dialect of a connection of {type(self.connection).__module__} is not known",
                f"give dialect=, one of {', '.join(ENGINES)}",
            )
        return named


class Connection:
    """A connection to an engine, opened at an address.

    schemes: what its addresses begin with; () where it is reached by an open connection only. form: how they are
    written. modules: the first words of the modules of its drivers, and of its vendor's name in ADBC. magic: of an
    engine of files, its name, from which byte on they say so, and how. warns: whether its driver warns of nothing.
    """

    name: ClassVar[str]
    dialect: ClassVar[Dialect]
    schemes: ClassVar[tuple[str, ...]] = ()
    form: ClassVar[str] = ""
    modules: ClassVar[tuple[str, ...]]
    magic: ClassVar[tuple[str, int, bytes] | None] = None
    warns: ClassVar[bool] = False
    address: Address

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            ENGINES[cls.name] = cls

    @classmethod
    def place_and_table(cls, text: str) -> tuple[str, str]:
        """What stands in an address before ?table=NAME, and the name. Errors: DecalError."""
        place, _, query = text.partition(":")[2].partition("?")
        parameters = parameters_of(query, cls.name)
        table = parameters.pop("table", "")
        if parameters:
            raise DecalError(
                f"{Hint('engine', cls.name)}: {next(iter(parameters))!r} is not a parameter", f"write {forms()}"
            )
        return place, table

    @classmethod
    def at(cls, text: str) -> Address:
        """The address that a user writes. Errors: DecalError."""
        place, table = cls.place_and_table(text)
        path = unquote(place).removeprefix("//")
        return Address(cls.name, path or ":memory:", f"{cls.name}:{path}" if path else cls.name, table)

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

    def asked_of(self, query: str) -> tuple[str, str]:
        """A query within parentheses, where only a SELECT can stand, and by itself: it must parse as both."""
        return f"SELECT * FROM {source_of('', query, self.dialect)}", query

    @property
    def not_one_query(self) -> DecalError:
        """The error of a query that is not one statement that reads."""
        return DecalError(
            f"{self.address.shown}: {Hint('query')} is not one SELECT",
            "write one query that reads, and nothing after it",
        )

    def check_file(self) -> None:
        """Raise a DecalError where a file is no database of this engine, which might read it as something else."""
        assert self.magic
        name, at, magic = self.magic
        try:
            with open(self.address.target, "rb") as file:
                found = file.read(at + len(magic))[at:]
        except OSError as error:
            raise DecalError(f"{self.address.shown}: {error.strerror or error}", f"name a {name} file") from None
        if found != magic:
            raise DecalError(
                f"{self.address.shown} is not a {name} database", f"give a file of rows without {Hint('engine')}"
            )


def forms() -> str:
    """How addresses of engines are written."""
    *others, last = (engine.form for engine in ENGINES.values() if engine.form)
    return f"{', '.join(others)} or {last}"


def _engine_of(text: str) -> type[Connection] | None:
    scheme, colon, _ = text.partition(":")
    return next((each for each in ENGINES.values() if scheme in each.schemes), None) if colon else None


def is_address(text: str) -> bool:
    """Whether a text names an engine and not a file."""
    return _engine_of(text) is not None


def address_of(text: str) -> Address:
    """The engine that a text names. Errors: DecalError, which shows nothing of a text that is not understood."""
    engine = _engine_of(text)
    if engine is None:
        raise DecalError(f"{Hint('engine')} names no engine that decal knows", f"write {forms()}")
    return engine.at(text)


def refuse_as_file(path: str) -> None:
    """Raise a DecalError where what is given as a file is an address, but of a store."""
    if is_address(path):
        raise DecalError(f"{path} is the address of an engine, and no file", f"give it with {Hint('engine')}")
    if not is_remote(path) and re.match(r"[a-z][a-z0-9+.-]*:/", path, re.IGNORECASE):
        raise DecalError(f"{path} is an address that decal does not read", "download it, and name the file")


@contextmanager
def connected(address: Address, query: str = "") -> Iterator[Connection]:
    """The engine at an address, whose errors become DecalErrors. query: the user's, if there is one."""
    kind: Any = ENGINES[address.engine]
    quietly = warnings.catch_warnings(action="ignore") if kind.warns else nullcontext()
    try:
        with quietly, closing(kind(address, query)) as engine:
            if query:
                engine.check(query)
            yield engine
    except ImportError as error:
        # Drivers that lack something of their own name no module.
        if error.name not in (None, *kind.modules):
            raise
        lacking = f"needs {error.name}, which is not installed" if error.name else first_line(error)
        raise DecalError(f"{address.shown}: {lacking}", f"pip install 'decal[{address.engine}]'") from None
    except (DecalError, KeyboardInterrupt, MemoryError):
        raise
    except Exception as error:
        # Whatever a driver raises: each has exceptions of its own, and some raise bare ones.
        if type(error).__module__.split(".")[0] not in kind.modules:
            raise
        # gRPC tells what is wrong among other things, as details.
        details = re.search(r'details = "(.+)"', str(error))
        problem = address.public(first_line(ValueError(details[1]) if details else error)).rstrip("!.:; ")
        raise DecalError(
            f"{address.shown}: {problem}", f"check {Hint('engine')}, the table or {Hint('query')}, and the rights"
        ) from None


def called(query: str, names: Iterable[str]) -> str:
    """The first of these functions that a query calls, "" where it calls none.

    Comments and texts count as well: what a query does must not hang on how well they are told apart here.
    """
    either = "|".join(re.escape(name.replace('"', '""')) for name in sorted(names, key=len, reverse=True))
    found = re.search(rf"(?<![\w$])({either})[\"`]?\s*(\(|/\*|--)", query, re.IGNORECASE)
    return found[1] if found and either else ""


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
            # Of DuckDB it is a cursor itself, and another one sees none of its frames and temporary tables.
            own = hasattr(self.connection, "execute") and hasattr(self.connection, "fetchall")
            with nullcontext(self.connection) if own else closing(self.connection.cursor()) as cursor:
                cursor.execute(statement)
                yield cursor
        except Exception as error:
            problem = first_line(error).rstrip("!.:; ")
            raise DecalError(
                f"{self.shown}: {problem}", "check the connection, the table or query, and the rights"
            ) from None
