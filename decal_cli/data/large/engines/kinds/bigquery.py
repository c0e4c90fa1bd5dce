"""BigQuery."""

from decal_cli.data.large.engines.connections import Opened
from decal_cli.data.large.engines.dialects import Dialect


class BigQuery(Opened):
    """BigQuery, by a connection that its user opened."""

    name = "bigquery"
    modules = ("google", "bigquery")
    # By its documentation, and never run: NaN = NaN is false, so that IS_NAN asks. GROUP BY takes FLOAT64, and 0 and -0
    # are one group, shown as either: a score of zero is therefore written as 0. CAST takes 'inf' and 'nan' in any case.
    # What overflows or divides by zero is an error. Names in backticks have the escapes of texts. See data-types,
    # conversion_functions, mathematical_functions and lexical below
    # https://cloud.google.com/bigquery/docs/reference/standard-sql/
    dialect = Dialect(
        "FLOAT64",
        "INT64",
        "STRING",
        mark="`",
        escapes=True,
        escapes_in_names=True,
        nan="IS_NAN({value})",
        experimental=True,
    )
