"""Smooth ECE as relplot 1.0.3 computes it, on its grids, to compare numbers with that package.

It differs from the definition (heat.py) in three ways. The width is the upper end of ten bisections of [0, 1], a
multiple of 1/1024. The integral is a mean over 200 points or a few more, the ends counting as much as the others. The
kernel is cut half the unit interval away and taken at nodes about half a thousandth apart.
"""

from __future__ import annotations

import numpy as np

from decal_cli.metrics.numerics.heat import shared_by_nodes
from decal_cli.tables.table import Floats

_MIN_POINTS = 200
_MIN_NODES = 2000
_N_BISECTIONS = 10
_MIN_WIDTH = 0.001
_DENSITY = 1e-4
"""Added to the density of the scores at every point."""


def smooth_error(score: Floats, n: Floats, pos: Floats) -> float:
    """relplot.smECE of rows with these levels, shape (m,) each."""
    return _error(score, n, pos, _width(score, n, pos))


def _width(score: Floats, n: Floats, pos: Floats) -> float:
    wide, narrow = 1.0, 0.0
    for _ in range(_N_BISECTIONS):
        middle = (wide + narrow) / 2
        if middle < _MIN_WIDTH or middle < _error(score, n, pos, middle):
            narrow = middle
        else:
            wide = middle
    return wide


def _error(score: Floats, n: Floats, pos: Floats, width: float) -> float:
    points = np.linspace(0, 1, max(round(10 / width), _MIN_POINTS))
    residual, density = (_smoothed(score, values, points, width) for values in (n * score - pos, n * 1.0))
    return float(np.abs(residual).sum() / (density + _DENSITY).sum())


def _smoothed(score: Floats, values: Floats, points: Floats, width: float) -> Floats:
    """Values shared between two nodes each, mirrored at both ends, smoothed, and read off between nodes at points."""
    nodes = max(_MIN_NODES, round(20 / width)) // 2 + 1
    shared = shared_by_nodes(score * (nodes - 1), values, nodes)
    away = np.linspace(0, 1, nodes) - 0.5
    kernel = np.exp(-(away**2) / (2 * width**2)) / (np.sqrt(2 * np.pi) * width)
    mirrored = np.concatenate((shared[::-1][:-1], shared, shared[::-1][1:]))
    smooth = np.convolve(mirrored, kernel, "valid")[nodes // 2 : nodes // 2 + nodes]
    return np.interp(points * (nodes - 1), np.arange(nodes), smooth)
