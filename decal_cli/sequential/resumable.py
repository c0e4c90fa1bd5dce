"""What goes on from a state: each class names the attributes that are its state, and how JSON gives them back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from decal_cli.tables.table import Floats, Ints

Kept = Mapping[str, Callable[[Any], Any]]
"""The names of attributes, and what reads each from JSON."""


class Resumable:
    """An object whose state is the attributes that KEPT names, each with what reads it from JSON.

    An attribute that is resumable itself goes on in place; what reads it is not asked.
    """

    KEPT: ClassVar[Kept] = {}

    def state(self) -> dict[str, Any]:
        """What it knows, apart from what it was made with, as JSON holds it: of bounded size."""
        return {name: plain(getattr(self, name)) for name in self.KEPT}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from such a state. Errors: KeyError, IndexError, TypeError or ValueError, where it is none."""
        for name, read in self.KEPT.items():
            held = getattr(self, name)
            if isinstance(held, Resumable):
                held.restore(state[name])
            else:
                setattr(self, name, read(state[name]))
        self._check()

    def _check(self) -> None:
        """Raise a ValueError where the parts of a state contradict each other."""


def plain(value: Any) -> Any:
    """A value as JSON; -inf, the logarithm of nothing, as None."""
    if isinstance(value, Resumable):
        return value.state()
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, str) or not isinstance(value, (Sequence, float)):
        return value
    if isinstance(value, float):
        return None if value == -np.inf else value
    return [plain(each) for each in value]


def whole_or_none(value: Any) -> int | None:
    """A whole number, where there is one."""
    return None if value is None else int(value)


def wholes(values: Sequence[Any]) -> list[int]:
    """A list of whole numbers."""
    return [int(each) for each in values]


def int_array(values: Sequence[Any]) -> Ints:
    """Whole numbers, shape (k,)."""
    return np.array(values, dtype=np.int64)


def float_array(values: Sequence[Any]) -> Floats:
    """Numbers, shape (k,)."""
    return np.array(values, dtype=float)


def log_array(values: Sequence[Any]) -> Floats:
    """Logarithms, shape (k,); None for that of nothing."""
    return np.array([-np.inf if each is None else each for each in values])
