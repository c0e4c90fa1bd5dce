"""Snowflake."""

from decal_cli.data.large.engines.connections import Opened
from decal_cli.data.large.engines.dialects import Dialect


class Snowflake(Opened):
    """Snowflake, by a connection that its user opened."""

    name = "snowflake"
    modules = ("snowflake",)
    # Never run. A double quote in a name is written twice: https://docs.snowflake.com/en/sql-reference/identifiers-syntax.
    # That 'NaN' = 'NaN' is true, as in DuckDB, Postgres and Spark, and that a backslash escapes in texts, is what other
    # tools assume that write its SQL.
    dialect = Dialect("DOUBLE", "BIGINT", "VARCHAR", escapes=True, experimental=True)
