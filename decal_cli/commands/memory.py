"""Memory that must be there before anything is computed."""

from __future__ import annotations

import mmap
import os
import resource

from decal_cli.errors import DecalError

N_BYTES = 1 << 30
"""Addresses that the libraries take to be loaded, for threads and for first products of matrices."""
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Every other thread would take addresses of its own, the more of them the more processors there are."""
SIDE = 128
"""Of matrices whose product makes OpenBLAS take memory."""


def reserve() -> None:
    """Where memory is limited, make numpy's OpenBLAS and scipy's take their part, before anything else does.

    Finding none later, OpenBLAS ends the process: with code 1, that of a failed gate, or as Ctrl-C does.

    Errors: DecalError where there is too little.
    """
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return
    try:
        mmap.mmap(-1, N_BYTES).close()
    except OSError:
        raise DecalError(
            f"there is not enough memory: the limit is {limit >> 20:,} MiB (ulimit -v)",
            f"give it {(N_BYTES >> 20) + 128:,} MiB, most of which is never filled",
        ) from None
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    # Late: OpenBLAS counts its threads when it is loaded, and most machines need none of this.
    import numpy as np
    from scipy.linalg.blas import dgemm

    ones = np.ones((SIDE, SIDE))
    np.matmul(ones, ones)
    dgemm(1.0, ones, ones)
