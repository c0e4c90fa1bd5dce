"""The page results are written on: its width, and whether it has colour."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TextIO


@dataclass(frozen=True)
class Page:
    """width in columns; color: terminal colours."""

    width: int = 100
    color: bool = False

    @classmethod
    def of_terminal(cls, stream: TextIO) -> Page:
        """The terminal's page; 100 columns without colour where output goes elsewhere and COLUMNS says nothing."""
        color = stream.isatty() and "NO_COLOR" not in os.environ
        return cls(width=max(40, shutil.get_terminal_size((100, 24)).columns), color=color)
