"""Labels in SQL: any spelling of two values as 0 and 1, as `data.labels` codes them."""

from __future__ import annotations

import re

from decal_cli.data.labels import NATURAL, NO_LABEL, label_text
from decal_cli.data.large.engines.dialects import Dialect
from decal_cli.data.words import quote
from decal_cli.errors import DecalError
from decal_cli.hints import Hint

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def label_of(text: str, positive: str | None, dialect: Dialect) -> str:
    """The label of a text: 1, 0, 2 for any other value, NULL where it is missing."""
    if positive is None:
        cases = [f"{text} = '1' THEN 1", f"{text} = '0' THEN 0"]  # almost all labels, so that the rest costs nothing
        cases += [f"{_is_natural(text, value, dialect)} THEN {value}" for value in (1, 0)]
    else:
        cases = [
            f"{is_positive(text, positive, dialect)} THEN 1",
            f"{_other(text, positive, dialect)} = decal_other THEN 0",
        ]
    stacked = "\n            WHEN ".join([*cases, f"{_is_missing(text, dialect)} THEN NULL"])
    return f"CASE\n            WHEN {stacked}\n            ELSE 2\n        END"


def other_label(text: str, positive: str, source: str, dialect: Dialect) -> str:
    """What must be known of all labels: the other value, decal_other, and whether the positive one is never seen.

    Errors: DecalError, where the positive one stands for a missing label.
    """
    if positive.strip() in NO_LABEL:
        raise DecalError(
            f"{Hint('positive', f'{quote(positive)}')} stands for a missing label", "name a value of the column"
        )
    one = is_positive(text, positive, dialect)
    other = (
        f"MIN(CASE WHEN {one} THEN NULL WHEN {_is_missing(text, dialect)} THEN NULL"
        f" ELSE {_other(text, positive, dialect)} END)"
    )
    natural = NATURAL.get(_canonical(positive))
    # Labels that are all 0 are labels, even if it is 1 that is named.
    allowed = "" if natural is None else f" AND {other} <> {dialect.text(str(1 - natural))}"
    never = f"CASE WHEN COUNT(CASE WHEN {one} THEN 1 END) = 0 AND {other} IS NOT NULL{allowed} THEN 1 ELSE 0 END"
    return f"    SELECT\n        {other} AS decal_other,\n        {never} AS decal_never\n    FROM {source}"


def _is_missing(text: str, dialect: Dialect) -> str:
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
