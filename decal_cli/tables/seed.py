"""Where random numbers start."""

from __future__ import annotations

import zlib
from typing import NamedTuple

import numpy as np


class Seed(NamedTuple):
    """The same seed and purpose give the same random numbers, whatever else is computed, in any process."""

    value: int = 0

    def generator(self, purpose: str) -> np.random.Generator:
        """A generator for one purpose: purposes do not share their random numbers."""
        return np.random.default_rng([self.value, zlib.crc32(purpose.encode())])
