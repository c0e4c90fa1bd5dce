"""What a format is: a class that writes what a result says, from the face of the result that it reads, on a page."""

from __future__ import annotations

import os
import re
import shutil
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TextIO, TypeVar

if TYPE_CHECKING:
    from decal_cli.render.blocks import Block, Movable

Face = Literal["blocks", "data", "rows", "columns", "checks"]
"""What a result may offer: blocks to read, JSON data, rows of a CSV file, typed columns, rules with their outcomes."""

Written = TypeVar("Written")


@dataclass(frozen=True)
class Page:
    """The page results are written on. width: in columns; color: terminal colours; ascii: it takes no other signs."""

    width: int = 100
    color: bool = False
    ascii: bool = False

    @classmethod
    def of_terminal(cls, stream: TextIO) -> Page:
        """The terminal's page; 100 columns without colour where output goes elsewhere and COLUMNS says nothing."""
        color = stream.isatty() and "NO_COLOR" not in os.environ
        width = max(40, shutil.get_terminal_size((100, 24)).columns)
        return cls(width, color, ascii=not _takes(stream.encoding or "ascii", "█→–"))


def _takes(encoding: str, signs: str) -> bool:
    """Whether an encoding has these signs."""
    try:
        signs.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


class Format(ABC):
    """A format.

    name: as --format takes it. reads: the method of a result that it needs. suffix: of its files; also: others that
    they may have where the format is asked for.
    """

    name: ClassVar[str]
    reads: ClassVar[Face]
    suffix: ClassVar[str] = ""
    also: ClassVar[tuple[str, ...]] = ()
    declared: ClassVar[list[type[Format]]] = []
    """Every format that has a name."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in vars(cls):
            Format.declared.append(cls)

    def __init__(self, page: Page) -> None:
        self.page = page

    @abstractmethod
    def write(self, result: Any) -> str | bytes:
        """The result in this format; bytes where it is no text."""


def method_of(kind: type[Block]) -> str:
    """The method of a format that writes blocks of a kind: text_table, of a TextTable."""
    return re.sub("(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


class BlockFormat(Format, Generic[Written]):
    """A format that writes block by block: it has one method for each kind of block, named like it."""

    reads = "blocks"

    def block(self, block: Block) -> Written:
        """One block, by the method that bears its name."""
        return getattr(self, method_of(type(block)))(block)

    def movable(self, block: Movable) -> Written:
        """The table as it is, where nothing moves."""
        return self.block(block.table)
