"""Dialects of SQL: how each spells types, names, texts and labels. Nothing of a user enters a statement but by here.

Any spelling of two labels is 0 and 1, as `data.labels` codes them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from decal_cli.data.words import NATURAL, NO_LABEL, label_text, quote
from decal_cli.errors import DecalError
from decal_cli.hints import Hint

_PART = r'"(?:[^"]|"")+"|[^".]+'
"""A name of a table's: in quotes where it has a point itself."""


@dataclass(frozen=True)
class Dialect:
    """What differs between engines.

    mark: around a name. escapes: whether a backslash escapes. nan: whether a number is NaN. cast: a value as a number,
    else an error or what no score can be. infinity: above all scores and weights. least, greatest: of two numbers.
    collation: tells texts apart. exact_text: a value as the text that gives it back. distinct: counts values roughly.
    first_bits: 28 of the MD5 of a text; empty where no rows are drawn. written, read_again: parts used more than once.
    experimental: no server has run it.
    """

    double: str
    integer: str
    varchar: str
    mark: str = '"'
    escapes: bool = False
    escapes_in_names: bool = False
    nan: str = "{value} = CAST('NaN' AS {double})"
    cast: str = "CAST({value} AS {double})"
    infinity: str = "CAST('inf' AS {double})"
    least: str = "LEAST"
    greatest: str = "GREATEST"
    collation: str = ""
    exact_text: str = "CAST({value} AS {varchar})"
    distinct: str = "APPROX_COUNT_DISTINCT({value})"
    first_bits: str = ""
    written: str = "({})"
    read_again: str = ""
    experimental: bool = False

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
        if not re.fullmatch(rf"({_PART})(\.({_PART}))*", text):
            raise DecalError(f"{text!r} is not the name of a table", 'write table, schema.table or "my.table"')
        parts = re.findall(_PART, text)
        return ".".join(self.name(each[1:-1].replace('""', '"') if each[0] == '"' else each) for each in parts)

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
        endless = self.infinity.format(double=self.double)
        return text.replace("inf", endless) if "inf" in text else text if "e" in text else f"{text}e0"

    def as_double(self, value: str) -> str:
        return self.cast.format(value=value, double=self.double)

    def as_integer(self, value: str) -> str:
        return f"CAST({value} AS {self.integer})"

    def as_text(self, value: str) -> str:
        return f"CAST({value} AS {self.varchar}){self.collation}"

    def as_exact_text(self, value: str) -> str:
        """A value of any type as the text that gives it back."""
        return self.exact_text.format(value=value, varchar=self.varchar) + self.collation

    def is_nan(self, value: str) -> str:
        return self.nan.format(value=value, double=self.double)


_WHOLE = re.compile(r"u?(tiny|small|big|huge)?int(eger|\d*)|long|short|byte", re.IGNORECASE)


_NESTED = re.compile(r".*\]|(struct|map|union|list|array|row)\b.*", re.IGNORECASE | re.DOTALL)


def is_nested(kind: str) -> bool:
    """Whether a type, as an engine calls it, is one of lists or structures."""
    return bool(_NESTED.fullmatch(kind))


def is_whole(kind: str) -> bool:
    """Whether a type, as an engine calls it, is one of whole numbers."""
    return bool(_WHOLE.fullmatch(kind))


_MAX_EXPONENT = 700.0
"""Beyond it 1 / (1 + exp(-x)) is 0 or 1 to 300 digits, and some engines refuse exp(x)."""


def logistic(exponent: str, dialect: Dialect) -> str:
    """The probability of log-odds."""
    most = dialect.number(_MAX_EXPONENT)
    return f"1 / (1 + EXP(-{dialect.least}({dialect.greatest}({exponent}, -{most}), {most})))"


def _one_line(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r")


_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def label_of(text: str, positive: str, dialect: Dialect) -> str:
    """The label of a text: 1, 0, 2 for any other value, NULL where it is missing."""
    if not positive:
        cases = [f"{text} = '1' THEN 1", f"{text} = '0' THEN 0"]  # almost all labels, so that the rest costs nothing
        cases += [f"{_is_natural(text, value, dialect)} THEN {value}" for value in (1, 0)]
    else:
        cases = [
            f"{is_positive(text, positive, dialect)} THEN 1",
            f"{_other(text, positive, dialect)} = decal_other THEN 0",
        ]
    stacked = "\n            WHEN ".join([*cases, f"{is_missing(text, dialect)} THEN NULL"])
    return f"CASE\n            WHEN {stacked}\n            ELSE 2\n        END"


def other_label(text: str, positive: str, source: str, dialect: Dialect) -> str:
    """The query on all labels that gives the other value, decal_other, and whether the positive one never occurs.

    Errors: DecalError, where the positive one stands for a missing label.
    """
    if positive.strip() in NO_LABEL:
        raise DecalError(
            f"{Hint('positive', f'{quote(positive)}')} stands for a missing label", "name a value of the column"
        )
    one = is_positive(text, positive, dialect)
    other = (
        f"MIN(CASE WHEN {one} THEN NULL WHEN {is_missing(text, dialect)} THEN NULL"
        f" ELSE {_other(text, positive, dialect)} END)"
    )
    natural = NATURAL.get(_canonical(positive))
    # Labels that are all 0 are labels, even if it is 1 that is named.
    allowed = "" if natural is None else f" AND {other} <> {dialect.text(str(1 - natural))}"
    never = f"CASE WHEN COUNT(CASE WHEN {one} THEN 1 END) = 0 AND {other} IS NOT NULL{allowed} THEN 1 ELSE 0 END"
    return f"    SELECT\n        {other} AS decal_other,\n        {never} AS decal_never\n    FROM {source}"


def is_missing(text: str, dialect: Dialect) -> str:
    words = ", ".join(dialect.text(word) for word in sorted(NO_LABEL))
    return f"{text} IS NULL OR {text} IN ({words})"


def _canonical(positive: str) -> str:
    return label_text(positive) or positive


def is_positive(text: str, positive: str, dialect: Dialect) -> str:
    """Whether a text is the positive label."""
    positive = _canonical(positive)
    if positive in NATURAL:
        return _is_natural(text, NATURAL[positive], dialect)
    return _is_number(text, positive, dialect) if _NUMBER.fullmatch(positive) else f"{text} = {dialect.text(positive)}"


def _other(text: str, positive: str, dialect: Dialect) -> str:
    """A label that is not the positive one; where that is 0 or 1, all spellings of the other are one."""
    natural = NATURAL.get(_canonical(positive))
    if natural is None:
        return text
    one_text = dialect.text(str(1 - natural))
    return f"CASE WHEN {_is_natural(text, 1 - natural, dialect)} THEN {one_text} ELSE {text} END"


def _is_natural(text: str, value: int, dialect: Dialect) -> str:
    return f"{_is_number(text, str(value), dialect)} OR LOWER({text}) = {dialect.text('true' if value else 'false')}"


def _is_number(text: str, number: str, dialect: Dialect) -> str:
    """Whether a text is this number, however many zeros stand after its point."""
    start = number if "." in number else f"{number}."
    zeros = f"REPLACE(SUBSTR({text}, {len(start) + 1}), '0', '') = ''"
    return f"{text} = {dialect.text(number)} OR {text} LIKE {dialect.text(start + '%')} AND {zeros}"
