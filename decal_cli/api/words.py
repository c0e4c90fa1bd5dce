"""Who calls a verb: Python, with errors in its words, or the command line, with its own words and what it shows."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any, BinaryIO, NamedTuple, ParamSpec, TypeVar

from decal_cli.declarations.spec import near
from decal_cli.errors import DecalError
from decal_cli.hints import LISTENER, said, speaking_to

P = ParamSpec("P")
T = TypeVar("T")
Progress = Callable[[str], None]
"""Takes what is being computed."""
RowsRead = Callable[[int, int | None], None]
"""Takes how many rows are read, and how many there are, None where that is not known."""
Count = Callable[[int, int, int], None]
"""Takes how many units are finished, how many there are, and how many were finished before the run."""


class Around(NamedTuple):
    """What the command line has around a call of a verb: where Python calls it, nothing is shown.

    stdin: what the path - stands for. computing, reading, counting: show what is computed, how many rows are read and
    how many units are finished. say: a line for the user before something that takes long. rows: whether rows are
    needed where counts would do; every: whether every metric is written beside an advice.
    """

    stdin: BinaryIO | None = None
    computing: Callable[[], AbstractContextManager[Progress]] = lambda: nullcontext(lambda text: None)
    reading: Callable[[], AbstractContextManager[RowsRead]] = lambda: nullcontext(lambda rows, total: None)
    counting: Callable[[], AbstractContextManager[Count]] = lambda: nullcontext(lambda finished, total, before: None)
    say: Callable[[str], None] = lambda text: None
    rows: bool = False
    every: bool = False


VERB: ContextVar[str] = ContextVar("verb", default="")
"""The verb that Python called last; empty on the command line, which has no options of other verbs."""
AROUND: ContextVar[Around] = ContextVar("around", default=Around())  # noqa: B039  # which never changes


def computing() -> AbstractContextManager[Progress]:
    """Within it, what is computed may be shown."""
    return AROUND.get().computing()


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
        # In pytest an error of the user's input points to the user's own line.
        __tracebackhide__ = True
        if LISTENER.get() == "line":
            return function(*args, **given)
        import numpy as np

        try:
            for name in () if any_keyword else given:
                if name not in known:
                    raise UnknownKeyword(name, known)
            token = VERB.set(verb)
            try:
                # Numbers may be too small to hold, also where the caller wants errors of those.
                with speaking_to("python"), np.errstate(under="ignore"):
                    return function(*args, **given)
            finally:
                VERB.reset(token)
        except DecalError as error:
            raise raised(error) from None
        except UnknownKeyword as error:
            choices = [each.name for each in known.values() if each.kind is not each.VAR_KEYWORD]
            listed = [choice for choice in dict.fromkeys([*choices, *error.known]) if choice != "self"]
            meant = near(error.key, listed) or f"choose one of {', '.join(listed)}"
            raise TypeError(f"{verb}() has {error}; {meant}") from None

    return call


def one_of(what: str, value: Any, choices: Iterable[str]) -> str:
    """The value, which is one of these. Errors: DecalError with the near match."""
    listed = list(choices)
    if value in listed:
        return str(value)
    raise DecalError(f"{what}={value!r} is not one of {', '.join(map(repr, listed))}", near(str(value), listed))
