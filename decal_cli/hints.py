"""Options and commands inside sentences, as data: the command line and Python each say them in their own words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

_OPEN, _COMMA, _CLOSE = "\ufdd0", "\ufdd1", "\ufdd2"
"""Characters that no text has, around a hint that is not said yet."""
_SLOT = re.compile(f"{_OPEN}([^{_CLOSE}]*){_CLOSE}")
SPELT = {"metric": "metrics", "method": "methods", "rule": "rules", "from": "log"}
"""Options that Python spells differently."""
SWITCHES = {
    "try": "methods='all'",
    "all": "metrics='all'",
    "no_intervals": "intervals=False",
} | {name: f"{name}=True" for name in ("logit", "margin", "keep_scores", "aggregated", "regimes")}
"""Options without a value, as keywords."""


@dataclass(frozen=True)
class Hint:
    """An option, and a value of it or an example of one; several where it may be repeated."""

    option: str
    value: object = ""

    @property
    def values(self) -> tuple[str, ...]:
        """Its values."""
        return tuple(map(str, self.value)) if isinstance(self.value, tuple) else (str(self.value),)

    @property
    def words(self) -> str:
        """As it is said now: '--missing drop', or in Python missing='drop'."""
        if LISTENER.get() != "python":
            flag = f"--{self.option.replace('_', '-')}"
            return " ".join(f"{flag} {value}".rstrip() for value in self.values)
        if self.option in SWITCHES:
            return SWITCHES[self.option]
        written = [_written(value) for value in self.values]
        if self.option == "output":
            return f"save({written[0]})"  # a method of the answer
        keyword = SPELT.get(self.option, self.option)
        return f"{keyword}={written[0]}" if len(written) == 1 else f"{keyword}=[{', '.join(written)}]"

    def __format__(self, spec: str) -> str:
        return _slot("option", self.option, *self.values)


@dataclass(frozen=True)
class Verb:
    """A command, with an option or the method that it is given."""

    name: str
    option: str = ""
    method: str = ""

    @property
    def words(self) -> str:
        """As it is said now: 'decal recommend --try', or in Python recommend(methods='all')."""
        option = Hint(self.option).words if self.option else ""
        if LISTENER.get() != "python":
            return " ".join(filter(None, ("decal", self.name, self.method, option)))
        return f"{self.name}({f'method={_written(self.method)}' if self.method else option})"

    def __format__(self, spec: str) -> str:
        return _slot("verb", self.name, self.option, self.method)


LISTENER: ContextVar[str] = ContextVar("listener", default="")
"""Who sentences are said to: 'python', who writes calls, 'line', who types commands and never hears of calls."""


@contextmanager
def speaking_to(listener: str) -> Iterator[None]:
    """Within it, hints are said as this listener writes them."""
    before = LISTENER.set(listener)
    try:
        yield
    finally:
        LISTENER.reset(before)


def hints_in(text: str) -> tuple[Hint | Verb, ...]:
    """The hints of a text that is not said yet."""
    return tuple(_hint(slot[1]) for slot in _SLOT.finditer(text))


def said(text: str) -> str:
    """A text with its hints in words."""
    return _SLOT.sub(lambda slot: _hint(slot[1]).words, text) if _OPEN in text else text


def renamed(text: str, old: str, new: str) -> str:
    """A text that is not said yet, with an option under another name."""
    return text.replace(_slot("option", old, "")[:-1], _slot("option", new, "")[:-1])


def _hint(slot: str) -> Hint | Verb:
    kind, name, *values = slot.split(_COMMA)
    return Verb(name, *values) if kind == "verb" else Hint(name, tuple(values))


def _slot(*parts: str) -> str:
    return f"{_OPEN}{_COMMA.join(parts)}{_CLOSE}"


def _written(value: str) -> str:
    """A value of the command line as Python has it; names in capitals stand for a value."""
    if not value or value[0] in "'<" or value.isupper():
        return value
    try:
        float(value)
    except ValueError:
        return repr(value)
    return value


NEEDS_FEATURES = f"needs features: name the columns with {Hint('features')}"
_TASK = f"{Hint('threshold')}, {Hint('utility')}, {Hint('cost_fp')}/{Hint('cost_fn')} or {Hint('odds')}"
NEEDS_TASK, GIVE_TASK = f"needs a task: {_TASK}", f"give {_TASK}"
"""What is said where a metric or a method looks at what was not given."""
