"""The formats, one file each and nothing else: a file put here is a format that every fitting command offers."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from decal_cli.errors import DecalError
from decal_cli.render.format import Face, Format

if TYPE_CHECKING:
    from decal_cli.render.page import Page

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


def suffixes(faces: Collection[Face]) -> dict[str, str]:
    """Of these formats, by the suffix that their files have."""
    return {FORMATS[name].suffix: name for name in offered(faces) if FORMATS[name].suffix}


def check_format(name: str, faces: Collection[Face], what: str) -> str:
    """The name of a format that is offered; a DecalError lists those that are. what: whose result it is."""
    names = offered(faces)
    if name not in names:
        raise DecalError(f"{what} does not write the format {name!r}", f"choose one of {', '.join(names)}")
    return name


def write(result: Any, name: str, page: Page) -> str | bytes:
    """A result in the format of this name."""
    faces = [each.reads for each in FORMATS.values() if hasattr(result, each.reads)]
    return FORMATS[check_format(name, faces, "this result")](page).write(result)
