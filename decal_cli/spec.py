"""Names with parameters as a user writes them: 'ece(bins=20)', 'platt(on=p)'. The parameters come from a signature."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from decal_cli.errors import DecalError


class Between(NamedTuple):
    """The open interval that a parameter lies in; its default may lie on the end."""

    low: float
    high: float


ANY = Between(-math.inf, math.inf)
COUNT = Between(0, 100_001)
"""A number of bins."""
Bins = Annotated[int, "number of equal-mass bins", COUNT]


@dataclass(frozen=True)
class Parameter:
    """One keyword parameter, as the user writes it in 'ece(bins=20)'."""

    name: str
    default: Any
    kind: type
    choices: tuple[str, ...]
    text: str
    limits: Between = ANY

    def parse(self, text: str) -> Any:
        """The value that the user wrote, or a DecalError that lists what is possible."""
        if self.choices:
            if text in self.choices:
                return text
            raise DecalError(f"{self.name}={text} is not one of {', '.join(self.choices)}", "choose one of them")
        try:
            value = self.kind(text)
        except ValueError:
            raise DecalError(f"{self.name}={text} is not a number", f"give {self.text}") from None
        if value != self.default and not self.limits.low < value < self.limits.high:
            low, high = self.limits
            raise DecalError(f"{self.name}={text} is not between {low:g} and {high:g}", f"give {self.text}")
        return value


def parameters_of(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The keyword-only parameters of a function; help text, choices and limits stand in their annotations."""
    hints = get_type_hints(function, include_extras=True)
    signature = inspect.signature(function).parameters.values()
    return tuple(_parameter(p, hints[p.name]) for p in signature if p.kind is p.KEYWORD_ONLY)


def _parameter(parameter: inspect.Parameter, hint: Any) -> Parameter:
    kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    text = next((note for note in notes if isinstance(note, str)), "")
    limits = next((note for note in notes if isinstance(note, Between)), ANY)
    return Parameter(parameter.name, parameter.default, str if choices else kind, choices, text, limits)


class Described:
    """Something declared by a function, whose docstring is what a user reads."""

    function: Callable[..., Any]

    @property
    def summary(self) -> str:
        """The first docstring line: the sentence the user sees."""
        return self.text.splitlines()[0]

    @cached_property
    def text(self) -> str:
        """The whole docstring."""
        return inspect.getdoc(self.function) or ""


class Declared(NamedTuple):
    """What a name in a call stands for, as far as parsing it goes."""

    name: str
    parameters: tuple[Parameter, ...]


_CALL = re.compile(r"\s*(?P<name>[A-Za-z_][\w-]*)\s*(?:\((?P<arguments>[^()]*)\))?\s*")
Given = tuple[tuple[str, Any], ...]


def parse_call(text: str, noun: str, example: str, find: Callable[[str], Declared]) -> tuple[str, Given]:
    """'ece(bins=20)' -> ('ece', (('bins', 20),)): the name and what differs from its defaults.

    find: the declaration of a name, or a DecalError. Errors: DecalError, which says what is possible.
    """
    match = _CALL.fullmatch(text)
    if match is None:
        raise DecalError(f"{noun} {text!r} does not parse", f"write a name, or name(parameter=value): '{example}'")
    name, parameters = find(match["name"])
    known = {parameter.name: parameter for parameter in parameters}
    given: dict[str, Any] = {}
    for part in filter(str.strip, (match["arguments"] or "").split(",")):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key not in known:
            listed = ", ".join(f"{p.name}={p.default}" for p in parameters) or "none"
            raise DecalError(f"{name} has no parameter {part.strip()!r}", f"its parameters: {listed}")
        if key in given:
            raise DecalError(f"{name}: {key} is given twice", "keep one")
        given[key] = known[key].parse(value)
    return name, tuple((p.name, given[p.name]) for p in parameters if p.name in given and given[p.name] != p.default)


def written(name: str, given: Given) -> str:
    """The call that parses back to these."""
    return f"{name}({','.join(f'{key}={value}' for key, value in given)})" if given else name


def near(name: str, names: Sequence[str] | Mapping[str, Any]) -> str:
    """'did you mean ...?' for a name that is not among these; empty where none is close."""
    import difflib

    matches = difflib.get_close_matches(name, list(names), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(matches)}?" if matches else ""
