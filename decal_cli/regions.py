"""Regions: bins of the score times leaves of honest trees on the features."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Regions:
    """To be filled by its own commit."""
