"""What results say as data: the types of their keys, from which JSON and its schema follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

T = TypeVar("T")


class Limit:
    """What a value keeps to, in the words of JSON Schema: Annotated[int, Limit(minimum=0)]."""

    def __init__(self, **keywords: Any) -> None:
        self.keywords = keywords


@dataclass(frozen=True)
class Said:
    """How a field is said. hidden: not at all; absent: there is no such key where it is None, or empty text, or
    an empty tuple.

    kind: its type in JSON, where that is not its own.
    """

    hidden: bool = False
    absent: bool = False
    kind: Any = None


Hidden = Annotated[T, Said(hidden=True)]
Absent = Annotated[T, Said(absent=True)]
Count = Annotated[int, Limit(minimum=0)]
Positive = Annotated[int, Limit(minimum=1)]
Share = Annotated[float, Limit(minimum=0, maximum=1)]
Inside = Annotated[float, Limit(exclusiveMinimum=0, exclusiveMaximum=1)]
Size = Annotated[float, Limit(minimum=0)]
Above = Annotated[float, Limit(exclusiveMinimum=0)]
Some = Annotated[list[T], Limit(minItems=1)]
Two = Annotated[list[T], Limit(minItems=2, maxItems=2)]
Words = Annotated[str, Limit(minLength=1)]
Names = tuple[str, ...]
Known = Annotated[float, Said(kind=float | None)]
"""A number that is NaN, and null in JSON, where it does not exist."""
Numbers = list[float | None]
"""In JSON, an array of numbers of which some may not exist."""


def as_key(function: Callable[..., T]) -> Callable[..., T]:
    """Below @property: it is a key of what the result says, after the fields."""
    function.__dict__["is_key"] = True
    return function
