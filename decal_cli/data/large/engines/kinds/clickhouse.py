"""ClickHouse."""

from decal_cli.data.large.engines.connections import Opened
from decal_cli.data.large.engines.dialects import Dialect


class ClickHouse(Opened):
    """ClickHouse, by a connection that its user opened."""

    name = "clickhouse"
    modules = ("clickhouse_connect", "clickhouse_driver", "chdb")
    # A type holds no NULL unless it says so. CAST makes NULL of a text that is no number, and toFloat64 an error. NaN
    # is not equal to NaN.
    dialect = Dialect(
        "Nullable(Float64)",
        "Nullable(Int64)",
        "Nullable(String)",
        mark="`",
        escapes=True,
        escapes_in_names=True,
        nan="isNaN({value})",
        cast="toFloat64({value})",
        distinct="uniq({value})",
    )
