"""A query of an engine reads: whatever it tries, every table, file and setting stays as it was."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from tests.helpers.command import Decal, refusal
from tests.helpers.server import PASSWORD, Server

SAID = ("--score", "p", "--label", "y", "--threshold", "0.3", "-m", "brier")
SOUND = ("select * from preds", "select p, y from preds; ", "with x as (select * from preds) select * from x -- all")
HOSTILE = {
    "ends the transaction": "select * from preds) t; commit; drop table preds; select (select 1",
    "ends it in the statement that counts": "select * from preds) t) select 1; commit; drop table preds; --",
    "closes a parenthesis": "select * from preds) t union all select * from (select .5 as p, 1 as y from preds",
    "two": "select * from preds; drop table preds",
    "two, behind a comment": "select * from preds /* ; */; delete from preds --",
    "drop": "drop table preds",
    "create": "create table made as select * from preds",
    "update": "update preds set p = 0",
    "delete in a part": "with gone as (delete from preds returning *) select * from gone",
    "insert": "insert into preds select * from preds returning *",
    "set": "set session characteristics as transaction read write",
    "begin": "begin; drop table preds; commit",
    "explain": "explain analyze delete from preds",
    "prepared": "prepare gone as delete from preds",
    "nothing": "-- nothing",
    "a parameter": "select p, y from preds where p < $1",
}
OF_DUCKDB = {
    "copies": "select * from preds) t; copy (select 1) to '{folder}/made.csv'; select (select 1",
    "copy": "copy preds to '{folder}/made.csv'",
    "attach": "attach '{folder}/made.db' as other",
    "attach behind": "select * from preds; attach '{folder}/made.db' as other",
    "install": "install httpfs",
    "load behind": "select * from preds; load httpfs",
    "pragma": "pragma enable_profiling = 'json'",
    "set": "set lock_configuration = false",
    "opens": "select * from preds; set enable_external_access = true; copy preds to '{folder}/made.csv'",
    "export": "export database '{folder}/made'",
    "call": "call force_checkpoint()",
    "a sequence": "select nextval('counter') / 10 as p, 1 as y",
    "a nested statement": "select * from query('copy (select 1) to ''{folder}/made.csv''')",
    "another file": "select length(content) / 100 as p, 1 as y from read_text('{folder}/secret.txt')",
    "another table": "select * from '{folder}/other.csv'",
    "the network": "select * from 'http://127.0.0.1:1/rows.csv'",
    "Python": "select * from address",
}
if not duckdb.__version__.startswith("1."):
    # DuckDB 1.5 ends the process when it is asked for a log file.
    OF_DUCKDB["a log file"] = (
        "select .5 as p, 1 as y from enable_logging('QueryLog', storage = 'file', storage_path = '{folder}')"
    )
OF_SQLITE = {
    "attach": "attach '{folder}/made.db' as other",
    "attach behind": "select * from preds; attach '{folder}/made.db' as other",
    "copy": "vacuum into '{folder}/made.db'",
    "pragma": "pragma journal_mode = wal",
    "pragma as a table": "select .5 as p, 1 as y from pragma_journal_mode('wal')",
    "load": "select load_extension('{folder}/made.so') as p, 1 as y",
    "explain": "explain select p, y from preds",
}
OF_POSTGRES = {
    "a large object": "select lo_export({object}, '{folder}/made.txt') / 2.0 as p, 1 as y",
    "made large": "select lo_from_bytea(0, 'x')::int * 0 + .5 as p, 1 as y",
    "a file": "select length(pg_read_file('PG_VERSION')) / 10.0 as p, 1 as y",
    "copy to": "select 1) t) to program 'touch {folder}/made.txt' --",
    "copy": "copy preds to '{folder}/made.csv'",
    "another connection": "select length(dblink_exec('{self}', 'drop table preds')) / 100.0 as p, 1 as y",
    "quoted": """select length("dblink_exec" /* ( */ ('{self}', 'drop table preds')) / 100.0 as p, 1 as y""",
    "in capitals": "select length(public.DBLINK_EXEC\n('{self}', 'drop table preds')) / 100.0 as p, 1 as y",
    "escaped": """select length(U&"dblink_e\\0078ec"('{self}', 'drop table preds')) / 100.0 as p, 1 as y""",
    "a nested statement": "select .5 p, 1 y from (select query_to_xml('select lo_unlink({object})', true, true, '')) q",
    "a setting": "select .5 as p, 1 as y where set_config('transaction_read_only', 'off', false) = 'off'",
    "a sequence": "select nextval('counter') / 10.0 as p, 1 as y",
    "others": "select pg_terminate_backend(pid)::int / 2.0 as p, 1 as y from pg_stat_activity",
    "a lock": "select p, y from preds for update",
    "a block": "do $$ begin drop table preds; end $$",
    "into": "select p, y into made from preds",
}


def named(**queries: dict[str, str]) -> list[object]:
    return [pytest.param(query, id=name) for more in queries.values() for name, query in more.items()]


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "file.db"
    (tmp_path / "secret.txt").write_text("only its length")
    (tmp_path / "other.csv").write_text("p,y\n0.5,1\n")
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE preds AS SELECT * FROM (VALUES (.2, 0), (.8, 1), (.9, 0)) AS rows(p, y)")
        connection.execute("CREATE SEQUENCE counter")
        connection.execute(f"CREATE VIEW other AS SELECT * FROM '{tmp_path}/other.csv'")
    return path


IN_MEMORY = {"copies", "copy", "attach behind", "install", "a log file", "the network", "Python"}
OF_NO_FILE = {name: query.replace("preds", "'other.csv'") for name, query in OF_DUCKDB.items() if name in IN_MEMORY}


@pytest.mark.parametrize(
    ("file", "query"),
    [
        pytest.param(file, query, id=f"{name}{'' if file else ', in memory'}")
        for file, queries in (("file.db", HOSTILE), ("file.db", OF_DUCKDB), ("", OF_NO_FILE))
        for name, query in queries.items()
    ],
)
def test_duckdb_only_reads(decal: Decal, database: Path, file: str, query: str) -> None:
    before = contents(database.parent)
    query = query.replace("{folder}", str(database.parent))
    refusal(decal("evaluate", "--engine", f"duckdb:{file}", "--query", query, *SAID, cwd=database.parent))
    assert contents(database.parent) == before


@pytest.mark.parametrize("query", named(every=HOSTILE, of_sqlite=OF_SQLITE))
def test_sqlite_only_reads(decal: Decal, tmp_path: Path, query: str) -> None:
    with closing(sqlite3.connect(tmp_path / "file.db")) as opened, opened:
        opened.execute("CREATE TABLE preds AS SELECT .2 AS p, 0 AS y UNION ALL SELECT .8, 1 UNION ALL SELECT .9, 0")
    before = contents(tmp_path)
    query = query.replace("{folder}", str(tmp_path))
    engine = ("--engine", f"sqlite:{tmp_path}/file.db")
    refusal(decal("evaluate", *engine, "--query", query, *SAID))
    assert contents(tmp_path) == before
    for query in SOUND:
        done = decal("evaluate", *engine, "--query", query, *SAID)
        assert (done.code, done.err) == (0, "")


def test_what_only_reads_is_read(decal: Decal, database: Path) -> None:
    for query in SOUND:
        done = decal("evaluate", "--engine", f"duckdb:{database}", "--query", query, *SAID)
        assert (done.code, done.err) == (0, "")
    read = ("--engine", "duckdb:", "--query", f"select * from '{database.parent}/other.csv'")
    of_view = ("--engine", f"duckdb:{database}?table=other")
    for words in (read, of_view):
        done = decal("evaluate", *words, *SAID)
        assert (done.code, done.err) == (0, "")
    refusal(decal("evaluate", "--engine", f"duckdb:{database}", "--query", "select * from other", *SAID))


@pytest.fixture(autouse=True)
def preds(request: pytest.FixtureRequest) -> None:
    """The table, where a test needs the server, as it was before."""
    if "server" in request.fixturenames:
        with request.getfixturevalue("server").connect() as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS dblink; CREATE SEQUENCE IF NOT EXISTS counter")
            connection.execute("DROP TABLE IF EXISTS preds")
            connection.execute("CREATE TABLE preds (p DOUBLE PRECISION, y INTEGER)")
            connection.execute("INSERT INTO preds VALUES (.2, 0), (.8, 1), (.9, 0)")


def state(server: Server) -> list[object]:
    """Every table and its rows, large objects, the sequence, and settings of roles."""
    asked = (
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1",
        "SELECT * FROM preds ORDER BY p",
        "SELECT count(*) FROM pg_largeobject_metadata",
        "SELECT last_value, is_called FROM counter",
        "SELECT * FROM pg_db_role_setting",
    )
    with server.connect() as connection:
        return [connection.execute(each).fetchall() for each in asked]


@pytest.mark.ci
@pytest.mark.parametrize("query", named(every=HOSTILE, of_postgres=OF_POSTGRES))
def test_postgres_only_reads(decal: Decal, server: Server, tmp_path: Path, query: str) -> None:
    """The user is a superuser, who may do all of it."""
    tmp_path.chmod(0o777)
    with server.connect() as connection:
        made = connection.execute("SELECT lo_from_bytea(0, 'kept')").fetchone()
    itself = f"host=127.0.0.1 port={server.port} user=decal password=''{PASSWORD}'' dbname=postgres"
    for name, value in {"folder": tmp_path, "object": (made or (0,))[0], "self": itself}.items():
        query = query.replace(f"{{{name}}}", str(value))
    before = state(server)
    line = refusal(decal("evaluate", "--engine", server.address(), "--query", query, *SAID))
    assert state(server) == before
    assert not list(tmp_path.glob("made*"))
    assert "s3cret" not in line


@pytest.mark.ci
def test_postgres_reads_what_reads(decal: Decal, server: Server) -> None:
    for query in (*SOUND, "select case current_setting('default_transaction_read_only') when 'on' then .5 end p, 1 y"):
        done = decal("evaluate", "--engine", server.address(), "--query", query, *SAID)
        assert (done.code, done.err) == (0, "")


@pytest.mark.ci
def test_a_view_that_writes_is_stopped_by_the_transaction(decal: Decal, server: Server) -> None:
    before = state(server)
    with server.connect() as connection:
        connection.execute("CREATE VIEW writes AS SELECT nextval('counter')::float8 / 10 AS p, 1 AS y")
    try:
        assert "read-only" in refusal(decal("evaluate", "--engine", server.address("writes"), *SAID))
    finally:
        with server.connect() as connection:
            connection.execute("DROP VIEW writes")
    assert state(server) == before


@pytest.mark.parametrize("query", ["select '\0' as p", "select '\udcff' as p"])
def test_a_query_is_text(decal: Decal, database: Path, query: str) -> None:
    assert "is not text" in refusal(decal("evaluate", "--engine", f"duckdb:{database}", "--query", query, *SAID))
