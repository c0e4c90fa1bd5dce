"""What is computed of a table once, and kept with it: metrics that share a pass over it share its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class Remembering:
    """A table that keeps what was computed of it."""

    @cached_property
    def _kept(self) -> dict[object, Any]:
        return {}

    def cached(self, key: object, compute: Callable[[Self], T]) -> T:
        """compute(self), computed once under this key."""
        if key not in self._kept:
            self._kept[key] = compute(self)
        return self._kept[key]

    def __getstate__(self) -> dict[str, Any]:
        # What is kept can be computed again, and its keys are functions that no other process could find.
        return {name: value for name, value in vars(self).items() if name != "_kept"}


R = TypeVar("R", bound=Remembering)


def once(function: Callable[Concatenate[R, P], T]) -> Callable[Concatenate[R, P], T]:
    """A function of a table, and of what else can be a key, that is computed once for each table."""

    @wraps(function)
    def kept(table: R, *given: P.args, **named: P.kwargs) -> T:
        return table.cached((function, given, *named.items()), lambda table: function(table, *given, **named))

    return kept


K = TypeVar("K")


class OnDemand(Mapping[K, T]):
    """A value for each of these keys, computed when it is first asked for."""

    def __init__(self, keys: Iterable[K], of: Callable[[K], T]) -> None:
        self._known: dict[K, T | None] = dict.fromkeys(keys)
        self._of = of

    def __getitem__(self, key: K) -> T:
        value = self._known[key]
        if value is None:
            value = self._known[key] = self._of(key)
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, ({**self},)

    def __contains__(self, key: object) -> bool:
        return key in self._known

    def __iter__(self) -> Iterator[K]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)
