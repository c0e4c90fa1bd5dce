"""Texts in files, and texts about files: what a value says, and how an error words it on one line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from decal_cli.errors import DecalError, masked, printable

K = TypeVar("K")
V = TypeVar("V")
MAX_LISTED = 12
MISSING = (
    *("", "NA", "N/A", "n/a", "<NA>", "#N/A", "#N/A N/A", "#NA", "NULL", "Null", "null", "None", "none"),
    *("NaN", "nan", "NAN", "-NaN", "-nan", "1.#QNAN", "1.#IND", "-1.#QNAN", "-1.#IND"),
)
"""Texts that stand for a missing value."""
NO_LABEL = frozenset(MISSING) - {"None", "none"}
"""Texts that stand for a missing label: unlike in other columns, 'none' may well be a class."""
NATURAL = {"0": 0, "1": 1, "false": 0, "true": 1}
"""Labels whose meaning is plain, and the 0 or 1 that each counts as."""
NUMBER = re.compile(r"[ \t]*[+-]?((\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)[ \t]*", re.IGNORECASE | re.ASCII)
"""A text that is a number."""
_WHOLE = re.compile(r"(\+|(?P<minus>-))?0*(?P<digits>\d+)(\.0*)?", re.ASCII)
_PERCENT = re.compile(r"(?P<number>.*?)\s*(?P<sign>%|percent)?", re.IGNORECASE | re.DOTALL)


def quote(value: Any) -> str:
    """A name or value as shown: quoted, escaped, and cut when long."""
    text = repr(value) if isinstance(value, str) else str(value)
    text = masked(printable(text))
    return text if len(text) <= 60 else text[:45] + "..." + text[-10:]


def number(value: float) -> str:
    """A number as shown: short, unless short would hide why it is wrong."""
    short = f"{value:.6g}"
    return short if (0 <= float(short) <= 1) == (0 <= value <= 1) else repr(float(value))


def number_with_sign(text: str) -> tuple[float, bool] | None:
    """The number that a text is, and whether it has a percent sign, as in '90 %'; None where it is no number."""
    match = _PERCENT.fullmatch(text.strip())
    if not (match and NUMBER.fullmatch(match["number"])):
        return None
    return float(match["number"]), bool(match["sign"])


def not_a_number(place: str, text: str) -> DecalError:
    """The error for a text among numbers."""
    comma = re.fullmatch(r"\s*-?\d+,\d+\s*%?\s*", text)
    return DecalError(
        f"{place}: {quote(text)} is not a number",
        "write decimals with a point" if comma else "correct it, or name another column",
    )


def encodable(value: Any) -> Any:
    """A value as files hold it: broken Unicode, which a file's name may have, is escaped."""
    return value.encode("utf-8", errors="backslashreplace").decode() if isinstance(value, str) else value


def listed(names: Sequence[str], most: int = MAX_LISTED) -> str:
    """The first names and the last ones, where labels and scores often are, and how many there are in all."""
    shown = [quote(name)[1:-1] if name.isprintable() and name else quote(name) for name in names]
    if len(names) <= most:
        return ", ".join(shown)
    last = most // 3
    return f"{', '.join([*shown[: most - last], '...', *shown[len(names) - last :]])} ({len(names)} in all)"


def enumerated(names: Sequence[str]) -> str:
    """All of the names: 'a, b and c'."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The second items of pairs, by the first item."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The candidate spelt most like `name`, upper and lower case aside; None when nothing is near."""
    import difflib

    by_folded = {candidate.casefold(): candidate for candidate in names}
    close = difflib.get_close_matches(name.casefold(), by_folded, 1)
    return by_folded[close[0]] if close else None


def shell_word(text: str) -> str:
    """A text as a shell takes it, for commands that a fix proposes: on one line, whatever is in it."""
    if text.isprintable():
        return shlex.quote(text)

    def escaped(c: str) -> str:
        code = ord(c)
        if 0xDC80 <= code <= 0xDCFF:  # a byte of a name that is not UTF-8
            return f"\\x{code - 0xDC00:02x}"
        if c.isprintable():
            return f"\\{c}" if c in "\\'" else c
        return f"\\x{code:02x}" if code < 0x80 else f"\\U{code:08x}"

    return f"$'{''.join(map(escaped, text))}'"


def file_word(path: str) -> str:
    """A path as a shell takes it, written so that no command reads it as an option."""
    return shell_word(f"./{path}" if path.startswith("-") else path)


def first_line(error: BaseException) -> str:
    """The first line of an error's message, cut where it is long."""
    lines = str(error).strip().splitlines()
    text = masked(printable(lines[0].strip() if lines else type(error).__name__))
    return text if len(text) <= 200 else text[:197] + "..."


def value_of(scalar: Any) -> Any:
    """A pyarrow scalar as a Python value; text of a damaged file that is not UTF-8 with its bytes shown."""
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return scalar.as_buffer().to_pybytes().decode("utf-8", errors="backslashreplace")


def text_of(value: Any) -> str | None:
    """A label or group value as text, the same from every format: 1 and 1.0 are '1', True is 'true', NaN is None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="backslashreplace")
    try:
        if value != value:
            return None
        if value == value // 1:
            return str(int(value))
    except (TypeError, ArithmeticError, ValueError):
        # Dates, and numbers without an integer part to speak of.
        pass
    return str(value)


def label_text(text: str | None) -> str | None:
    """Canonical spelling of a label value: '1.0' and ' 1' are '1', 'True' is 'true'; None where it is missing."""
    if text is None or (text := text.strip()) in NO_LABEL:
        return None
    if text.lower() in ("true", "false"):
        return text.lower()
    if whole := _WHOLE.fullmatch(text):
        # Not by way of a float, which has no room for 2^64 - 1.
        return f"{'-' if whole['minus'] and whole['digits'] != '0' else ''}{whole['digits']}"
    return text_of(float(text)) if NUMBER.fullmatch(text) else text
