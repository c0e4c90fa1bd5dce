"""Which column plays which role, as the user named them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Columns:
    """The columns a user named; None and () mean: find it by its usual names, or do without.

    score and features take names and globs ('p_*'); several scores are several models; features may also be one
    list-valued (embedding) column. positive is the label value that counts as 1. logit: scores are log-odds.
    """

    score: tuple[str, ...] = ()
    label: str | None = None
    weight: str | None = None
    group: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    positive: str | None = None
    logit: bool = False
    missing: Literal["error", "drop"] = "error"
