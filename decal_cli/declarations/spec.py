"""Names with parameters as a user writes them: 'ece(bins=20)', 'platt(on=p)'. The parameters come from a signature."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

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

    @property
    def shown(self) -> str:
        """With its default, where that does not depend on the rows or the task."""
        return self.name if self.default is None else f"{self.name}={self.default}"

    def parse(self, text: str) -> Any:
        """The value that the user wrote, or a DecalError that lists what is possible."""
        if self.choices:
            if text in self.choices:
                return text
            raise DecalError(f"{self.name}={text} is not one of {', '.join(self.choices)}", "choose one of them")
        if self.kind is str:
            return text
        fix = f"{self.name}: {self.text}"
        try:
            value = self.kind(text)
        except ValueError:
            raise DecalError(f"{self.name}={text} is not a number", fix) from None
        low, high = self.limits
        if value != self.default and not low < value < high:
            span = f"above {low:g} and below {high:g}"
            if self.kind is int:
                span = f"a whole number from {low + 1:,} to {high - 1:,}"
            raise DecalError(f"{self.name}={text} is not {span}", fix)
        return value


def parameters_of(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The keyword-only parameters of a function; help text, choices and limits stand in their annotations."""
    hints = get_type_hints(function, include_extras=True)
    signature = inspect.signature(function).parameters.values()
    return tuple(_parameter(p, hints[p.name]) for p in signature if p.kind is p.KEYWORD_ONLY)


def _parameter(parameter: inspect.Parameter, hint: Any) -> Parameter:
    kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if get_origin(kind) is UnionType:  # None beside a type: the default depends on what the function is given
        kind = next(each for each in get_args(kind) if each is not NoneType)
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    text = next((note for note in notes if isinstance(note, str)), "")
    limits = next((note for note in notes if isinstance(note, Between)), ANY)
    return Parameter(parameter.name, parameter.default, str if choices else kind, choices, text, limits)


@dataclass(frozen=True)
class Declaration:
    """What is declared by a function: a metric or a method. Its docstring is what a user reads."""

    name: str
    title: str
    source: str
    function: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    home: ClassVar[str]
    """The module that declares all of this kind, and whose `parse` finds them."""

    def __reduce__(self) -> tuple[Any, ...]:
        # By name: many functions of declarations are none that another process could find.
        return _declared, (self.home, self.name)

    @property
    def summary(self) -> str:
        """The first docstring line: the sentence the user sees."""
        return self.text.splitlines()[0]

    @cached_property
    def text(self) -> str:
        """The whole docstring."""
        return docstring(self.function)


def _declared(home: str, name: str) -> Declaration:
    """The declaration of this name in that module."""
    found: Declaration = import_module(home).parse(name).declared
    return found


@cache
def docstring(function: Callable[..., Any]) -> str:
    """A function's docstring, without indentation; '' for none.

    It is read from the source where the interpreter strips it (PYTHONOPTIMIZE=2).
    """
    if function.__doc__ is not None:
        return inspect.getdoc(function) or ""
    import ast
    import textwrap

    try:
        source = inspect.getsource(function)
    except OSError:
        return ""
    node = ast.parse(textwrap.dedent(source)).body[0]
    return (ast.get_docstring(node) if isinstance(node, ast.FunctionDef | ast.ClassDef) else None) or ""


D = TypeVar("D", bound=Declaration)


@dataclass(frozen=True)
class Spec(Generic[D]):
    """A metric or a method with its parameters, as a user names it: 'ece(bins=20)', 'platt(on=p)'.

    given: the parameters that differ from their defaults, in the order in which they are declared.
    """

    declared: D
    given: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """The name without parameters."""
        return self.declared.name

    @cached_property
    def key(self) -> str:
        """The name plus the parameters that differ from their defaults; parses back to this."""
        given = ",".join(f"{name}={value}" for name, value in self.given)
        return f"{self.name}({given})" if given else self.name

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Every parameter with its value."""
        return {each.name: each.default for each in self.declared.parameters} | dict(self.given)


_CALL = re.compile(r"\s*(?P<name>[A-Za-z_][\w-]*)\s*(?:\((?P<arguments>[^()]*)\))?\s*")


class Registry(dict[str, D]):
    """Everything declared of one kind by name, in the order of declaration.

    noun: what one is called. also: other names that some are known by.
    """

    def __init__(self, noun: str, example: str, **also: str) -> None:
        super().__init__()
        self.noun = noun
        self.example = example
        self.also = also

    def add(self, declared: D) -> None:
        """Declare one more."""
        if declared.name in self:
            raise ValueError(f"{self.noun} {declared.name} is declared twice")
        self[declared.name] = declared

    def named(self, name: str) -> D:
        """The one of this name, or a DecalError with the nearest names."""
        name = self.also.get(name, name)
        if name in self:
            return self[name]
        raise DecalError(
            f"there is no {self.noun} {name!r}", near(name, self) or f"`decal {self.noun}s` lists them all"
        )

    def specs(self) -> tuple[Spec[D], ...]:
        """All of them at their defaults."""
        return tuple(map(Spec, self.values()))

    def parse(self, text: str) -> Spec[D]:
        """'ece(bins=20)' -> Spec; a DecalError names the near match or the parameters there are."""
        match = _CALL.fullmatch(text)
        if match is None:
            fix = f"write a name, or name(parameter=value): '{self.example}'"
            raise DecalError(f"{self.noun} {text!r} does not parse", fix)
        declared = self.named(match["name"])
        known = {parameter.name: parameter for parameter in declared.parameters}
        given: dict[str, Any] = {}
        for part in filter(str.strip, (match["arguments"] or "").split(",")):
            key, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals or key not in known:
                listed = ", ".join(each.shown for each in declared.parameters) or "none"
                raise DecalError(f"{declared.name} has no parameter {part.strip()!r}", f"its parameters: {listed}")
            if key in given:
                raise DecalError(f"{declared.name}: {key} is given twice", "keep one")
            given[key] = known[key].parse(value)
        changed = (each for each in declared.parameters if given.get(each.name, each.default) != each.default)
        return Spec(declared, tuple((each.name, given[each.name]) for each in changed))


def split_names(text: str) -> list[str]:
    """'ece(bins=20), auc' as its two names: at commas outside brackets."""
    return [each.strip() for each in re.split(r",(?![^()]*\))", text)]


def near(name: str, names: Iterable[str]) -> str:
    """'did you mean ...?' for a name that is not among these; empty where none is close."""
    import difflib

    by_letters = {each.casefold(): each for each in names}
    begun = [each for each in by_letters if len(name) > 2 and each.startswith(name.casefold())]
    close = begun[:3] or difflib.get_close_matches(name.casefold(), by_letters, n=3, cutoff=0.6)
    matches = [by_letters[each] for each in close if name.casefold() not in by_letters or each == name.casefold()]
    return f"did you mean {' or '.join(matches)}?" if matches else ""
