"""What a sweep returns of any kind: settings of how it is written, and its points as one long table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

from decal_cli.analysis.evaluate import Evaluation
from decal_cli.render.blocks import Block
from decal_cli.render.results.source import title_of
from decal_cli.render.terms import Terms


class WithHead(Protocol):
    """A result that says where its rows come from."""

    @property
    def head(self) -> Evaluation: ...


S = TypeVar("S", bound=WithHead)


class LongTable(ABC, Generic[S]):
    """A sweep, for formats to write.

    at: what the column of places is called. everything: every place in the tables, not a choice. drawing: pictures in
    characters to put below. terms: how amounts are written.
    """

    at: str

    def __init__(
        self, sweep: S, everything: bool = False, drawing: tuple[Block, ...] = (), terms: Terms | None = None
    ) -> None:
        self.sweep = sweep
        self.everything = everything
        self.drawing = drawing
        self.terms = terms or Terms()

    @property
    def title(self) -> str:
        """Of a page."""
        return title_of(self.sweep.head)

    @property
    def kinds(self) -> dict[str, type]:
        """The columns, with what they hold."""
        names = {"model": str, "group": str, "curve": str, self.at: float}
        return {**names, "value": float, "low": float, "high": float, "unit": str}

    def rows(self) -> Iterator[list[Any]]:
        """One row per model, group, curve and place."""
        yield list(self.kinds)
        yield from self._points()

    def columns(self) -> dict[str, tuple[type, list[Any]]]:
        """The same as typed columns."""
        columns = zip(*self._points(), strict=True)
        return {name: (kind, list(values)) for (name, kind), values in zip(self.kinds.items(), columns, strict=True)}

    @abstractmethod
    def _points(self) -> Iterator[list[Any]]:
        """The rows below the names of the columns."""
