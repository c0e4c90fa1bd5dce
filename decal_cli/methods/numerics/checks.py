"""What the numbers of a model must be: a model file may come from anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.table import Floats

ROUNDING = 1e-9


def need(condition: bool, reason: str) -> None:
    """Raise a ValueError with the reason where the condition does not hold."""
    if not condition:
        raise ValueError(reason)


def is_finite(values: Any) -> bool:
    """Whether every number is finite."""
    return bool(np.isfinite(values).all())


def is_increasing(values: Floats) -> bool:
    """Whether finite numbers, shape (k,), never fall, but for rounding."""
    return values.ndim == 1 and is_finite(values) and bool((np.diff(values) >= -ROUNDING).all())


def are_probabilities(values: Floats) -> bool:
    """Whether numbers lie in [0, 1], but for rounding."""
    return bool(((values >= -ROUNDING) & (values <= 1 + ROUNDING)).all())


def are_places(values: NDArray[Any], first: int, count: int) -> bool:
    """Whether whole numbers, shape (k,), lie in [first, count)."""
    return values.ndim == 1 and bool(((values >= first) & (values < count)).all())
