"""What results are made of before a format writes them: blocks that say what they mean and nothing of how they look.

A result yields blocks in reading order. A format has one method for each of them (`formats.declare.BlockFormat`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, dataclass_transform

from decal_cli.errors import printable

Tone = Literal["", "good", "doubtful"]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Shown:
    """What is made of text, which is escaped when it is made: no block holds what a terminal or a CI system acts on.

    Every subclass is a frozen data class.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(frozen=True)(cls)

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            shown = _shown(value)
            if shown is not value:
                object.__setattr__(self, name, shown)


def _shown(value: Any) -> Any:
    """A text, escaped, and a tuple of several; the same object where there is nothing to escape."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, bytes | Mapping) or not isinstance(value, Iterable):
        return value
    whole = tuple(value)
    parts = tuple(map(_shown, whole))
    return whole if all(part is old for part, old in zip(parts, whole, strict=True)) else parts


class Block(Shown):
    """close: it belongs to the block before it, so that no blank line comes between them."""

    close: bool = field(default=False, kw_only=True)


Blocks = Iterator[Block]
Lines = Iterator[str]


class Heading(Block):
    """What the blocks below speak of: a part of the page (level 1), or a model and group (level 2).

    summary: what they come to, in a word.
    """

    text: str
    summary: str = ""
    level: int = 2


class Paragraph(Block):
    """Running text; strong: words before it that stand out."""

    text: str
    strong: str = ""


class Points(Block):
    """Sentences, each after the words that say what it is about."""

    items: Iterable[tuple[str, str]]


class Notes(Block):
    """Lines about what stands above. quiet: small print. copy: they are there to be copied, so that none is broken."""

    lines: Iterable[str]
    quiet: bool = False
    copy: bool = False


class Cell(Shown):
    """A cell of a table.

    parts: what it says, in pieces that may stand on a line each. short: the same beside short headings. fewer: the same
    with fewer decimals. code: how the user writes what it names, and parameters: the part of that which the name does
    not say. details: blocks that explain it. reason: why it is empty.
    """

    parts: tuple[str, ...]
    short: tuple[str, ...] = ()
    fewer: tuple[str, ...] = ()
    tone: Tone = ""
    code: str = ""
    parameters: str = ""
    details: Callable[[], tuple[Block, ...]] | None = None
    reason: str = ""

    @property
    def text(self) -> str:
        """All of it on one line."""
        return " ".join(self.parts)


class Column(Shown):
    """A column of a table.

    under: a second line of the heading. words: text rather than numbers. breaks: characters after which the heading may
    be broken, the widest first. short: a heading to use where there is little room. drops: where there is too little
    room, columns of 1 are dropped first, then those of 2. wraps: its text may go on in the next line; most: it does so
    after so many characters.
    """

    heading: str
    under: str = ""
    words: bool = False
    breaks: tuple[int, ...] = ()
    short: str = ""
    drops: int = 0
    wraps: bool = False
    most: int | None = None

    @property
    def name(self) -> str:
        """The heading on one line."""
        return ", ".join(filter(None, (self.heading, self.under)))


class Row(Shown):
    """A row of a table.

    section: rows that follow each other in one section stand below its name. chosen: it is the one that was picked.
    empty: it says only that there is nothing to say. apart: it does not belong to the rows above. key: what a script
    knows it by.
    """

    cells: tuple[Cell, ...]
    section: str = ""
    chosen: bool = False
    empty: bool = False
    apart: bool = False
    key: str = ""


class TextTable(Block):
    """A table.

    title, caption: what it shows. keys: so many columns name the rows, and are repeated where the others do not fit
    beside each other; 0 where a table is not to be split. stacked: intervals stand below their values. dense: its
    columns stand close together. picks: one of its rows may be chosen. beside: where there is room, its sections stand
    side by side, each with its name above; of names and values.
    """

    columns: Sequence[Column]
    rows: Sequence[Row]
    title: str = ""
    caption: str = ""
    keys: int = 0
    stacked: bool = False
    dense: bool = False
    picks: bool = False
    beside: bool = False


class Movable(Block):
    """A table whose numbers a reader moves with sliders, where a script may run.

    names: of its sections. data: what the script needs to know, of `analysis.sweep`.
    """

    table: TextTable
    names: Sequence[str]
    data: Mapping[str, Any]


class Bars(Block):
    """Named values as bars; names, values: what these are, as headings."""

    title: str
    names: str
    values: str
    items: Iterable[Bar]


class Bar(Shown):
    """One bar; text: its value as written; share: of the longest possible bar, in [-1, 1]; below 0 to the left."""

    name: str
    text: str
    share: float


class AnsweredQuestions(Block):
    """Questions with their answers, one after the other, and the numbers each rests on."""

    items: Iterable[AnsweredQuestion]


class AnsweredQuestion(Shown):
    """One question; number: by which the documentation calls it, and which several may share."""

    question: str
    answer: str
    reason: str
    evidence: Iterable[str]
    number: int


class Conclusion(Block):
    """What follows from all that; then sentences on it."""

    text: str
    sentences: Iterable[str] = ()


class Headline(Block):
    """What a page comes to: a sentence, the number it rests on, and the words that say what that number is."""

    text: str
    number: str
    words: str


class Facts(Block):
    """Names, and beside each what is said of it; groups: a heading ('' for none) and its facts."""

    groups: Iterable[tuple[str, Iterable[tuple[str, str]]]]


class Picture(Block):
    """A picture: an SVG file's bytes, or a name of a file beside the page, or lines of characters.

    caption: what it shows, or what to see in it below a title. finding: what it comes to, for those who do not see it.
    kind: of picture. frame: where its axes are, as shares of its width and height from the lower left corner (left,
    right, bottom, top), and their ends (x, then y); () where nothing moves in it.
    """

    caption: str
    title: str = ""
    svg: bytes = b""
    file: str = ""
    lines: tuple[str, ...] = ()
    finding: str = ""
    frame: tuple[float, ...] = ()
    kind: str = ""


class Folded(Block):
    """Blocks that a reader opens to see."""

    summary: str
    blocks: Iterable[Block]


class Check(Shown):
    """A rule, and whether it holds; None where that cannot be judged. place: its model and group.

    answer: passed, failed, or not shown, which counts as one of the two. numbers: of the outcome, in full.
    file: the first of those that the rows come from.
    """

    rule: str
    place: str
    passed: bool | None
    outcome: str
    answer: str = "cannot judge"
    numbers: tuple[tuple[str, float], ...] = ()
    file: str = ""

    @property
    def sentence(self) -> str:
        """What came of it, in one line."""
        if self.passed is None:
            return self.outcome
        return f"{self.answer}: {self.outcome}"


class Checks(Block):
    """Rules with their outcomes; places: whether there is more than one place."""

    items: Iterable[Check]
    places: bool = False


class Signature(Block):
    """What one must know to reproduce the result, on one line."""

    text: str
