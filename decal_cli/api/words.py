"""Sentences and errors in Python's words: keywords for options, and the near match of a keyword that a verb lacks."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

from decal_cli.declarations.spec import near
from decal_cli.errors import DecalError

P = ParamSpec("P")
T = TypeVar("T")

SPELT = {"metric": "metrics", "method": "methods", "rule": "rules"}
"""Options that Python spells differently."""
WHOLE = {
    "--logit": "logit=True",
    "--margin": "margin=True",
    "--keep-scores": "keep_scores=True",
    "--aggregated": "aggregated=True",
    "--try": "methods='all'",
    "--no-intervals": "intervals=False",
}
"""Options without a value."""
VERBS = "evaluate|recommend|gate|compare|sweep|report|fit|apply|study|online"
_VALUE = r"'[^']*'|<\w+>|[A-Z]+\b|drop\b|error\b|[^\s,;:/]*[\d._][^\s,;]*[^\s,;:.)]|\d"
_LABEL = r"(?<=--positive )(?!and\b|or\b)[^\s,;]+"
"""A label, which may be any word."""
_OPTION = re.compile(rf"--([a-z]+(?:-[a-z]+)*)(?:[ =](?P<value>{_VALUE}|{_LABEL}))?")
_REPEATED = re.compile(r"\b(\w+)=('[^']*'|[A-Z]+\b),? \1=('[^']*'|[A-Z]+\b)")
_FIT = re.compile(r"`?decal fit (?!needs\b)([a-z][\w-]*)`?")
_CALL = re.compile(rf"`decal ({VERBS}) ([^` ]+=[^`]*)`")
_COMMAND = re.compile(rf"`decal ({VERBS})`|\bdecal ({VERBS})\b(?! -)")


class InputError(DecalError, ValueError):
    """A DecalError as Python users see it, who may also catch it as the ValueError that it is."""


def in_python(text: str) -> str:
    """A sentence with options as keywords: `--missing drop` is `missing='drop'`."""
    text = _OPTION.sub(_keyword, text)
    text = _REPEATED.sub(r"\1=[\2, \3]", text)
    text = _FIT.sub(r"fit(method='\1')", text)
    text = _CALL.sub(lambda match: f"{match[1]}({match[2].replace(' ', ', ')})", text)
    return _COMMAND.sub(lambda match: f"{match[1] or match[2]}()", text)


def _keyword(match: re.Match[str]) -> str:
    if match[0] in WHOLE:
        return WHOLE[match[0]]
    name = match[1].replace("-", "_")
    return f"{SPELT.get(name, name)}={_written(match['value'] or '')}"


def _written(value: str) -> str:
    """A value of the command line as Python has it; names in capitals stand for a value."""
    if not value or value[0] in "'<" or value.isupper():
        return value
    try:
        float(value)
    except ValueError:
        return repr(value)
    return value


def raised(error: DecalError) -> InputError:
    """The error as Python users see it."""
    if isinstance(error, InputError):
        return error
    return InputError(in_python(error.problem), in_python(error.fix))


class UnknownKeyword(TypeError):
    """A keyword that a verb lacks, with its near match."""

    def __init__(self, key: str, known: Iterable[str]) -> None:
        super().__init__(f"no argument {key!r}")
        self.key, self.known = key, list(known)


def spoken(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function name the near match of a keyword that it lacks, and raise its errors in Python's words."""
    known = inspect.signature(function).parameters
    any_keyword = any(each.kind is each.VAR_KEYWORD for each in known.values())
    verb = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def call(*args: P.args, **given: P.kwargs) -> T:
        try:
            for name in () if any_keyword else given:
                if name not in known:
                    raise UnknownKeyword(name, known)
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
