"""Where random numbers start."""

from __future__ import annotations

import zlib
from typing import NamedTuple

import numpy as np


class Seed(NamedTuple):
    """A seed: with a purpose it gives the same random numbers in any process, whatever else is computed."""

    value: int = 0

    def generator(self, purpose: str) -> np.random.Generator:
        """A generator for one purpose: purposes do not share their random numbers."""
        return np.random.default_rng([self.value, zlib.crc32(purpose.encode())])
