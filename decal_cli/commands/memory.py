"""Memory that must be there before anything is computed."""

from __future__ import annotations

import mmap
import resource

import numpy as np

N_BYTES = 128 << 20
"""What OpenBLAS takes for its first product, and some."""
SIDE = 128
"""Of matrices whose product takes it."""


def reserve() -> None:
    """Where memory is limited, make OpenBLAS take its part: finding none later, it ends the process with code 1.

    Errors: OSError where there is too little.
    """
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        mmap.mmap(-1, N_BYTES).close()
        ones = np.ones((SIDE, SIDE))
        np.matmul(ones, ones)
