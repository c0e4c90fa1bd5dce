"""What goes on from a state: the attributes that a class annotates are its state, and their types read it from JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

import numpy as np

from decal_cli.documents import spelled_out


class Resumable:
    """An object whose state is the attributes that its class annotates, other than class variables.

    Their types are numbers, text, None, arrays, lists, tuples, deques and dicts, dataclasses and named tuples of these,
    and what is resumable itself, which goes on in place.
    """

    def state(self) -> dict[str, Any]:
        """What it knows, apart from what it was made with, as JSON holds it: of bounded size."""
        return {name: plain(getattr(self, name)) for name in _kept(type(self))}  # type: ignore[arg-type]

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from such a state. Errors: KeyError, IndexError, TypeError or ValueError, where it is none."""
        for name, hint in _kept(type(self)).items():  # type: ignore[arg-type]
            setattr(self, name, read(hint, state[name], getattr(self, name)))
        self._check()

    def _check(self) -> None:
        """Raise a ValueError where the parts of a state contradict each other."""


@cache
def _kept(cls: Any) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {name: hint for name, hint in hints.items() if ClassVar not in (hint, get_origin(hint))}


def plain(value: Any) -> Any:
    """A value as JSON; -inf, the logarithm of nothing, as None; what has numbers as keys as pairs in their order."""
    if isinstance(value, float):
        return None if value == -np.inf else value
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, Resumable):
        return value.state()
    if dataclasses.is_dataclass(value):
        return {item.name: plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        if value and all(isinstance(key, int) for key in value):
            return [[key, plain(value[key])] for key in sorted(value)]
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, Sequence) else value


def read(hint: Any, value: Any, held: Any = None) -> Any:
    """The value of this type that `plain` wrote as `value`. Errors: as for `Resumable.restore`.

    held: what stands in its place now: an array keeps the type of its numbers, and what is resumable goes on.
    """
    hint = spelled_out(hint)
    origin, args = get_origin(hint), get_args(hint)
    if isinstance(held, Resumable):
        held.restore(value)
        return held
    if hint is Any:
        return value
    if origin is UnionType:
        return None if value is None else read(args[0], value, held)
    if origin is np.ndarray:
        dtype = held.dtype if isinstance(held, np.ndarray) else np.dtype(get_args(args[1])[0])
        return np.array([-np.inf if each is None else each for each in value], dtype)
    if origin is dict:
        return _read_dict(args, value, held)
    if origin is not None:
        before = held if held is not None and len(held) == len(value) else [None] * len(value)
        return origin(read(args[0], *pair) for pair in zip(value, before, strict=True))
    if dataclasses.is_dataclass(hint):
        hints = get_type_hints(hint)
        return hint(**{name: read(each, value[name], getattr(held, name, None)) for name, each in hints.items()})  # type: ignore[operator]
    if issubclass(hint, tuple):
        return hint(*(read(*pair) for pair in zip(get_type_hints(hint).values(), value, strict=True)))
    return hint(value)


def _read_dict(args: tuple[Any, ...], value: Any, held: Any) -> dict[Any, Any]:
    key_of, hint = args
    if held and isinstance(next(iter(held.values())), Resumable) and value.keys() != held.keys():
        raise ValueError("it has other methods")
    pairs = value.items() if isinstance(value, Mapping) else value
    return {key_of(key): read(hint, each, (held or {}).get(key)) for key, each in pairs}
