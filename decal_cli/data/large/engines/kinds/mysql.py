"""MySQL, and MariaDB."""

from decal_cli.data.large.engines.connections import Opened
from decal_cli.data.large.engines.dialects import Dialect


class MySQL(Opened):
    """MySQL, and MariaDB, by a connection that its user opened."""

    name = "mysql"
    modules = ("mysql", "pymysql", "mysqldb", "mariadb")
    # CAST makes 0 of a text that is no number, and EXP(999) is an error. In most collations 'a' is 'A'. No
    # number is infinite: where a score is certain and wrong, the square of its loss is an error. A part with a LIMIT is
    # computed by itself.
    dialect = Dialect(
        "DOUBLE",
        "SIGNED",
        "CHAR CHARACTER SET utf8mb4",
        mark="`",
        escapes=True,
        nan="1 = 0",
        cast="CASE WHEN CAST({value} AS CHAR) REGEXP '^ *[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)? *$'"
        " THEN CAST({value} AS {double}) ELSE EXP(999 + LENGTH(CONCAT({value}, ' is no number'))) END",
        infinity="1.7976931348623157e308",
        collation=" COLLATE utf8mb4_bin",
        distinct="COUNT(DISTINCT {value})",
        written="({}    LIMIT 9223372036854775807\n)",
    )
