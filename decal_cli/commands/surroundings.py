"""What a run takes of its surroundings before anything is computed: memory, and a folder for matplotlib."""

from __future__ import annotations

import logging
import mmap
import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from decal_cli.errors import DecalError

N_BYTES = 1 << 30
"""Addresses that the libraries take to be loaded, for threads and for first products of matrices."""
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Every other thread would take addresses of its own, the more of them the more processors there are."""
SIDE = 128
"""Of matrices whose product makes OpenBLAS take memory."""


FOLDER = "MPLCONFIGDIR"
"""Where matplotlib keeps its settings and its list of fonts."""


@contextmanager
def prepared() -> Iterator[None]:
    """Within it, there is memory, and matplotlib leaves the user's home and standard error alone."""
    _reserve()
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    if FOLDER in os.environ:
        yield
        return
    # Matplotlib makes it where something is drawn: other runs leave nothing behind, however they end.
    folder = os.path.join(tempfile.gettempdir(), f"decal-{os.urandom(8).hex()}")
    os.environ[FOLDER] = folder
    try:
        yield
    finally:
        del os.environ[FOLDER]
        shutil.rmtree(folder, ignore_errors=True)


def _reserve() -> None:
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
