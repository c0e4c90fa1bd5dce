"""The formats: what a file put here declares, every fitting command offers."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection, Sequence
from pathlib import PurePath
from typing import Any

from decal_cli.errors import DecalError
from decal_cli.render.format import Face, Format, Page

DEFAULT = "table"


def _registered() -> dict[str, type[Format]]:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return {each.name: each for each in sorted(Format.declared, key=lambda each: (each.name != DEFAULT, each.name))}


FORMATS: dict[str, type[Format]] = _registered()
"""Every format by name, the default first."""


def offered(faces: Collection[Face]) -> list[str]:
    """The names of the formats that a result with these faces can be written in."""
    return [name for name, each in FORMATS.items() if each.reads in faces]


def suffixes(names: Collection[str]) -> str:
    """The endings of the files of these formats, as they are listed: '.csv, .html'."""
    return ", ".join(each for each in (FORMATS[name].suffix for name in names) if each)


def format_for(
    asked: str | None, path: str | None, names: Sequence[str], what: str = "output", beside: str = ""
) -> str:
    """One of these formats: as asked, else by the ending of its file; the first where no file or ending says another.

    A DecalError where these two contradict each other, or the ending alone decides and is that of none of them. beside:
    an ending of something else that the command writes.
    """
    end = "" if path is None else PurePath(path).suffix.lower()
    by_suffix = next((name for name, each in FORMATS.items() if each.suffix == end), None) if end else None
    # A file of text may hold any format that is asked for.
    if not end or (asked and (by_suffix in (None, DEFAULT) or end in FORMATS[asked].also)):
        return asked or names[0]
    if asked not in (None, by_suffix):
        fix = f"name a file that ends in {FORMATS[asked].suffix}" if FORMATS[asked].suffix else "keep one of the two"
        raise DecalError(f"{what} {path} ends in {end}, which is {by_suffix}, and the format is {asked}", fix)
    if by_suffix is None or by_suffix not in names:
        ends = ", ".join(filter(None, (suffixes(names), beside)))
        fix = f"end it in one of {ends}" if "," in ends else f"end it in {ends}"
        raise DecalError(f"{what} {path}: this result cannot be written as {end}", fix)
    return by_suffix


def faces_of(result: object) -> list[Face]:
    """What a result, or a kind of result, offers to formats."""
    return [each for each in dict.fromkeys(form.reads for form in FORMATS.values()) if hasattr(result, each)]


def check_format(name: str, faces: Collection[Face], what: str) -> str:
    """The name of a format that is offered; a DecalError lists those that are. what: whose result it is."""
    names = offered(faces)
    if name not in names:
        raise DecalError(f"{what} does not write the format {name!r}", f"choose one of {', '.join(names)}")
    return name


def as_bytes(result: Any, name: str) -> bytes:
    """What a file of this format holds of a result."""
    content = write(result, name, Page())
    return content.encode("utf-8", errors="backslashreplace") if isinstance(content, str) else content


def write(result: Any, name: str, page: Page) -> str | bytes:
    """A result in the format of this name."""
    return FORMATS[check_format(name, faces_of(result), "this result")](page).write(result)
