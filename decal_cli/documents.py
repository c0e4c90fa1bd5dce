"""Documents such as settings, models, states and baselines: read and parsed within limits, or one line; and sealed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, get_args, get_origin

from decal_cli.errors import DecalError
from decal_cli.limits import MAX_DEPTH, MAX_DOCUMENT_BYTES, MAX_VALUES, MIB

_KEY = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w-]){_KEY}(?:[ \t]*+\.[ \t]*+{_KEY}){{{MAX_DEPTH}}}")
"""A dotted key of more parts than tables may be nested."""


def read_document(path: str, place: str, fix: str, most: int = MAX_DOCUMENT_BYTES) -> str:
    """The text of a UTF-8 file; place: the file as errors name it, fix: what they say to do. Errors: DecalError."""
    with _refused(place, fix):
        try:
            with open(path, "rb") as file:
                content, longer = file.read(most), file.read(1)
            if longer:
                raise DecalError(
                    f"{place} holds more than {most // MIB} MiB, the most that decal reads of such a file", fix
                )
            return content.decode("utf-8-sig")
        except OSError as error:
            raise DecalError(f"{place}: {error.strerror or error}", fix) from None
        except UnicodeDecodeError:
            what = "is compressed with gzip: decompress it" if content.startswith(b"\x1f\x8b") else "is not UTF-8 text"
            raise DecalError(f"{place} {what}", fix) from None


def json_of(text: str, place: str, fix: str, constants: bool = False) -> Any:
    """What a JSON text holds; constants: whether NaN and Infinity are numbers. Errors: DecalError."""
    n_values = text.count(",") + text.count("[") + text.count("{")
    if n_values > MAX_VALUES:
        raise DecalError(f"{place} holds more than {MAX_VALUES:,} values, the most that decal reads of one file", fix)
    with _refused(place, fix):
        try:
            return _shallow(json.loads(text, parse_constant=None if constants else _no_constant))
        except ValueError as error:
            raise DecalError(f"{place} is not JSON ({_json_reason(error)})", fix) from None


def toml_of(text: str, place: str, fix: str) -> dict[str, Any]:
    """What a TOML text holds. Errors: DecalError."""
    import tomllib

    with _refused(place, fix):
        # The parser's time and memory grow with the square of a key's parts.
        if _LONG_KEY.search(text):
            raise RecursionError
        try:
            return _shallow(tomllib.loads(text))
        except ValueError as error:
            raise DecalError(f"{place} is not valid TOML: {' '.join(str(error).split())}", fix) from None


@contextmanager
def _refused(place: str, fix: str) -> Iterator[None]:
    """What cannot be parsed is a DecalError, which names the place."""
    try:
        yield
    except RecursionError:
        deep = f"lists, objects or keys are nested deeper than {MAX_DEPTH}"
        raise DecalError(f"{place}: {deep}", fix) from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")


def _json_reason(error: ValueError) -> str:
    """Where the text is at fault; Python's refusal of very long numbers comes without a place."""
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    return "a number of thousands of digits" if "digits" in str(error) else str(error)


def _shallow(document: Any) -> Any:
    """The document. Errors: RecursionError, where lists and objects are nested deeper than decal follows them."""
    level = [document]
    for _ in range(MAX_DEPTH + 1):
        nested = (each for each in level if isinstance(each, (dict, list)))
        level = [item for each in nested for item in (each.values() if isinstance(each, dict) else each)]
    if level:
        raise RecursionError
    return document


def canonical_json(document: Any, indent: int = 0) -> str:
    """JSON with one key a line; a list of plain values stays on one. The same document gives the same bytes."""
    items = []
    begins, ends = "{}"
    if isinstance(document, Mapping):
        items = [f"{json.dumps(str(key))}: {canonical_json(item, indent + 1)}" for key, item in document.items()]
    # Long lists of numbers are seen at a glance.
    elif isinstance(document, list) and any(issubclass(kind, (Mapping, list)) for kind in set(map(type, document))):
        items = [canonical_json(item, indent + 1) for item in document]
        begins, ends = "[]"
    if items:
        pad = "\n" + "  " * indent
        body = f"{begins}{pad}  {f',{pad}  '.join(items)}{pad}{ends}"
    else:
        body = json.dumps(document, ensure_ascii=False, allow_nan=False)
    return body if indent else f"{body}\n"


def spelled_out(hint: Any) -> Any:
    """The type behind a name: from NumPy 2.5 on `NDArray[...]` is a name of its own, and no longer an array's type."""
    name = get_origin(hint)
    return name.__value__[get_args(hint)] if hasattr(name, "__value__") else hint


def consistent(*conditions: object) -> None:
    """Raise a ValueError where one of them does not hold: what a document says cannot all be true."""
    if not all(map(bool, conditions)):
        raise ValueError("its numbers contradict each other")


def digest_of(document: Mapping[str, Any]) -> str:
    """The SHA-256 of its canonical text, which tells accidents and edits, not forgery."""
    return hashlib.sha256(canonical_json(document).encode()).hexdigest()
