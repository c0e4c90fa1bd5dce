"""Sentences and errors in Python's words: keywords for options, and the near match of a keyword that a verb lacks."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

from decal_cli.declarations.spec import near
from decal_cli.errors import DecalError
from decal_cli.hints import LISTENER, said, speaking_to

P = ParamSpec("P")
T = TypeVar("T")


class InputError(DecalError, ValueError):
    """A DecalError as Python users see it, who may also catch it as the ValueError that it is."""

    def __init__(self, problem: str, fix: str = "") -> None:
        with speaking_to("python"):
            super().__init__(said(problem), said(fix))


def raised(error: DecalError) -> InputError:
    """The error as Python users see it."""
    return error if isinstance(error, InputError) else InputError(*error.given)


class UnknownKeyword(TypeError):
    """A keyword that a verb lacks, with its near match."""

    def __init__(self, key: str, known: Iterable[str]) -> None:
        super().__init__(f"no argument {key!r}")
        self.key, self.known = key, list(known)


def spoken(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function name the near match of a keyword that it lacks, and raise its errors in Python's words.

    The command line calls the same functions, and hears its own words.
    """
    known = inspect.signature(function).parameters
    any_keyword = any(each.kind is each.VAR_KEYWORD for each in known.values())
    verb = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def call(*args: P.args, **given: P.kwargs) -> T:
        if LISTENER.get() == "line":
            return function(*args, **given)
        try:
            for name in () if any_keyword else given:
                if name not in known:
                    raise UnknownKeyword(name, known)
            with speaking_to("python"):
                return function(*args, **given)
        except DecalError as error:
            raise raised(error) from None
        except UnknownKeyword as error:
            choices = [each.name for each in known.values() if each.kind is not each.VAR_KEYWORD]
            listed = dict.fromkeys([*choices, *error.known])
            raise TypeError(f"{verb}() has {error}; {choices_text(error.key, listed)}") from None

    return call


def choices_text(name: str, choices: Iterable[str]) -> str:
    """The near match of a name, or all that there are."""
    listed = [choice for choice in choices if choice != "self"]
    return near(name, listed) or f"choose one of {', '.join(listed)}"


def one_of(what: str, value: Any, choices: Iterable[str]) -> str:
    """The value, which is one of these. Errors: DecalError with the near match."""
    listed = list(choices)
    if value in listed:
        return str(value)
    raise DecalError(f"{what}={value!r} is not one of {', '.join(map(repr, listed))}", near(str(value), listed))
