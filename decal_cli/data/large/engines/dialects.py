"""Dialects of SQL: how each spells types, names and texts. Nothing of a user enters a statement but through here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from decal_cli.errors import DecalError

_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


@dataclass(frozen=True)
class Dialect:
    """What differs between engines.

    mark: what stands around a name. escapes: whether a backslash in a text or between backticks escapes what follows.
    nan: the condition that a number is NaN. distinct: about how many distinct values a column has. first_bits: 28
    of the MD5 of a text, as a whole number; empty where no rows are drawn. read_again: what keeps a part of a statement
    from being written down where it is read twice. overflows: whether a product that is too large is an error.
    """

    double: str
    integer: str
    varchar: str
    mark: str = '"'
    escapes: bool = False
    escapes_in_names: bool = False
    nan: str = "{value} = CAST('NaN' AS {double})"

    distinct: str = "APPROX_COUNT_DISTINCT({value})"
    first_bits: str = ""
    read_again: str = ""
    overflows: bool = False

    def name(self, text: str) -> str:
        """A name of a column or table, quoted. Errors: DecalError, where no name can be so."""
        if not text or "\0" in text:
            raise DecalError(f"{text!r} is not a name of a column or table", "correct it")
        if self.escapes_in_names:
            text = text.replace("\\", "\\\\").replace(self.mark, f"\\{self.mark}")
            return f"{self.mark}{_one_line(text)}{self.mark}"
        return f"{self.mark}{text.replace(self.mark, self.mark * 2)}{self.mark}"

    def table(self, text: str) -> str:
        """'schema.table' as quoted names; a part that has a point itself stands in double quotes."""
        parts, at = [], 0
        while True:
            part = _PART.match(text, at)
            if part is None:
                raise DecalError(f"{text!r} is not the name of a table", 'write table, schema.table or "my.table"')
            parts.append(part[1].replace('""', '"') if part[1] is not None else part[2])
            at = part.end()
            if at == len(text):
                return ".".join(map(self.name, parts))
            if text[at] != ".":
                raise DecalError(f"{text!r} is not the name of a table", 'write table, schema.table or "my.table"')
            at += 1

    def text(self, text: str) -> str:
        """A text as a literal."""
        if "\0" in text:
            raise DecalError(f"{text!r} cannot be written in SQL", "correct it")
        if not self.escapes:
            return "'" + text.replace("'", "''") + "'"
        return "'" + _one_line(text.replace("\\", "\\\\").replace("'", "\\'")) + "'"

    def number(self, value: float) -> str:
        """A float64 to the last bit, and no decimal."""
        text = repr(float(value))
        return f"CAST('{text}' AS {self.double})" if "n" in text else text if "e" in text else f"{text}e0"

    def as_double(self, value: str) -> str:
        return f"CAST({value} AS {self.double})"

    def as_integer(self, value: str) -> str:
        return f"CAST({value} AS {self.integer})"

    def as_text(self, value: str) -> str:
        return f"CAST({value} AS {self.varchar})"

    def is_nan(self, value: str) -> str:
        return self.nan.format(value=value, double=self.double)


_WHOLE = re.compile(r"u?(tiny|small|big|huge)?int(eger|\d*)|long|short|byte", re.IGNORECASE)


def is_whole(kind: str) -> bool:
    """Whether a type, as an engine calls it, is one of whole numbers."""
    return _WHOLE.fullmatch(kind) is not None


_MAX_EXPONENT = 700.0
"""Beyond it 1 / (1 + exp(-x)) is 0 or 1 to 300 digits, and some engines refuse exp(x)."""


def logistic(exponent: str, dialect: Dialect) -> str:
    """The probability of log-odds."""
    most = dialect.number(_MAX_EXPONENT)
    return f"1 / (1 + EXP(-LEAST(GREATEST({exponent}, -{most}), {most})))"


def _one_line(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r")


DIALECTS = {
    "duckdb": Dialect(
        "DOUBLE",
        "BIGINT",
        "VARCHAR",
        first_bits="CAST(CONCAT('0x', SUBSTR(MD5({value}), 1, 7)) AS BIGINT)",
        read_again="NOT MATERIALIZED ",
    ),
    # EXP underflows with an error, and LN(0) is one too; CASE evaluates only the case that holds.
    "postgres": Dialect(
        "DOUBLE PRECISION",
        "BIGINT",
        "TEXT",
        distinct="COUNT(DISTINCT {value})",
        first_bits="CAST(CAST(CONCAT('x', SUBSTR(MD5({value}), 1, 7)) AS BIT(28)) AS BIGINT)",
        read_again="NOT MATERIALIZED ",
        overflows=True,
    ),
    # By its documentation, and never run: NaN = NaN is false, so that IS_NAN asks. GROUP BY takes FLOAT64, and 0 and -0
    # are one group, shown as either: a score of zero is therefore written as 0. CAST takes 'inf' and 'nan' in any case.
    # What overflows or divides by zero is an error. Names in backticks have the escapes of texts. See data-types,
    # conversion_functions, mathematical_functions and lexical below
    # https://cloud.google.com/bigquery/docs/reference/standard-sql/
    "bigquery": Dialect(
        "FLOAT64",
        "INT64",
        "STRING",
        mark="`",
        escapes=True,
        escapes_in_names=True,
        nan="IS_NAN({value})",
        overflows=True,
    ),
    # Never run. A double quote in a name is written twice: https://docs.snowflake.com/en/sql-reference/identifiers-syntax.
    # That 'NaN' = 'NaN' is true, as in DuckDB, Postgres and Spark, and that a backslash escapes in texts, is what other
    # tools assume that write its SQL.
    "snowflake": Dialect("DOUBLE", "BIGINT", "VARCHAR", escapes=True),
    # NaN = NaN is true, and -0.0 and 0.0 are one group. (Spark SQL: NaN semantics.)
    "spark": Dialect(
        "DOUBLE",
        "BIGINT",
        "STRING",
        mark="`",
        escapes=True,
        first_bits="CAST(CONV(SUBSTR(MD5({value}), 1, 7), 16, 10) AS BIGINT)",
    ),
}
"""The dialects, by the names that users give."""
