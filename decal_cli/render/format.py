"""What a format is: one class that writes what a result says, from the face of the result that it reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

if TYPE_CHECKING:
    from decal_cli.render import blocks as b
    from decal_cli.render.page import Page

Face = Literal["blocks", "data", "rows", "columns", "checks"]
"""What a result may offer: blocks to read, JSON data, rows of a CSV file, typed columns, rules with their outcomes."""

Written = TypeVar("Written")


class Format(ABC):
    """A format.

    name: as --format takes it. reads: the method of a result that it needs. suffix: of its files.
    """

    name: ClassVar[str]
    reads: ClassVar[Face]
    suffix: ClassVar[str] = ""
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


class BlockFormat(Format, Generic[Written]):
    """A format that writes block by block: one method for each kind of block, named like it."""

    reads = "blocks"

    def block(self, block: b.Block) -> Written:
        """One block, by the method that bears its name."""
        written: Written = getattr(self, type(block).__name__.lower())(block)
        return written

    @abstractmethod
    def source(self, block: b.Source) -> Written: ...

    @abstractmethod
    def heading(self, block: b.Heading) -> Written: ...

    @abstractmethod
    def paragraph(self, block: b.Paragraph) -> Written: ...

    @abstractmethod
    def points(self, block: b.Points) -> Written: ...

    @abstractmethod
    def notes(self, block: b.Notes) -> Written: ...

    @abstractmethod
    def table(self, block: b.Table) -> Written: ...

    @abstractmethod
    def bars(self, block: b.Bars) -> Written: ...

    @abstractmethod
    def steps(self, block: b.Steps) -> Written: ...

    @abstractmethod
    def conclusion(self, block: b.Conclusion) -> Written: ...

    @abstractmethod
    def headline(self, block: b.Headline) -> Written: ...

    @abstractmethod
    def facts(self, block: b.Facts) -> Written: ...

    @abstractmethod
    def picture(self, block: b.Picture) -> Written: ...

    @abstractmethod
    def folded(self, block: b.Folded) -> Written: ...

    @abstractmethod
    def checks(self, block: b.Checks) -> Written: ...

    @abstractmethod
    def signature(self, block: b.Signature) -> Written: ...
