"""Smooth ECE: residuals smoothed by a Gaussian reflected at 0 and 1, at the width that equals the error it gives.

The reflected kernel is the heat kernel of [0, 1], so smoothing damps cosine modes: mode k by exp(-(k pi width)^2 / 2).
"""

from __future__ import annotations

import numpy as np

from decal_cli.tables.table import Floats

N_HEAT_CELLS = 1 << 16
_REACH = 8.5
"""Modes damped below exp(-_REACH^2 / 2) vanish in double precision."""
_N_MODES = 1 << 15
MIN_WIDTH = _REACH / (np.pi * _N_MODES)
_MAX_PRODUCTS = 1 << 21


def smooth_error(score: Floats, residual: Floats) -> float:
    """The width s with int |smoothed residual at width s| = s; residuals sum to the mean residual, shape (m,)."""
    modes = _modes(score, residual)
    low = high = 1.0
    at_low = at_high = _error(modes, high) - high
    while at_low < 0:
        if low == MIN_WIDTH:
            return at_low + low
        high, at_high, low = low, at_low, max(low / 4, MIN_WIDTH)
        at_low = _error(modes, low) - low
    width = low
    side = 0
    for _ in range(100 if at_low > 0 else 0):
        # The error falls with the width: false position, halving the end that stays (Illinois).
        width = (low * at_high - high * at_low) / (at_high - at_low)
        at = _error(modes, width) - width
        if abs(at) < 1e-13:
            break
        if at > 0:
            low, at_low, at_high, side = width, at, at_high / (2 if side == 1 else 1), 1
        else:
            high, at_high, at_low, side = width, at, at_low / (2 if side == -1 else 1), -1
    return width


def _modes(score: Floats, residual: Floats) -> Floats:
    """sum residual cos(k pi score), each residual shared between the two nearest points of the grid."""
    nodes = shared_by_nodes(score * N_HEAT_CELLS, residual, N_HEAT_CELLS + 1)
    return np.ascontiguousarray(np.fft.rfft(nodes, 2 * N_HEAT_CELLS).real[:_N_MODES])


def shared_by_nodes(at: Floats, values: Floats, nodes: int) -> Floats:
    """Values at positions from 0 to nodes - 1, each shared between the two nearest nodes, shape (nodes,)."""
    node = np.minimum(at.astype(np.int64), nodes - 2)
    upper = values * (at - node)
    return np.asarray(
        np.bincount(node, values - upper, minlength=nodes) + np.bincount(node + 1, upper, minlength=nodes)
    )


def _damped(modes: Floats, width: float) -> Floats:
    k = np.arange(min(int(_REACH / (np.pi * width)) + 2, len(modes)))
    return np.asarray(modes[: len(k)] * np.exp(-((k * np.pi * width) ** 2) / 2))


def _error(modes: Floats, width: float) -> float:
    """int over [0, 1] of |c_0 + 2 sum c_k cos(k pi t)|, from its zeros and its antiderivative."""
    c = _damped(modes, width)
    points = 1 << max(int(4 * len(c)).bit_length(), 8)
    values = np.fft.irfft(c, 2 * points)[: points + 1] * 2 * points
    turn = np.flatnonzero(values[1:] * values[:-1] < 0)
    if len(turn) * len(c) > _MAX_PRODUCTS:
        return _by_trapezoids(values)
    zero = (turn + values[turn] / (values[turn] - values[turn + 1])) / points
    k = np.arange(1, len(c)) * np.pi
    phase = zero[:, None] * k
    value, slope = c[0] + 2 * (np.cos(phase) @ c[1:]), -2 * (np.sin(phase) @ (c[1:] * k))
    step = np.divide(value, slope, out=np.zeros_like(value), where=slope != 0)
    zero = np.clip(zero - step, turn / points, (turn + 1) / points)
    ends = np.concatenate(([0.0], zero, [1.0]))
    integral = c[0] * ends
    integral[1:-1] += 2 * (np.sin(zero[:, None] * k) @ (c[1:] / k))
    return float(np.abs(np.diff(integral)).sum())


def _by_trapezoids(values: Floats) -> float:
    """Mean of |a curve| given at equally spaced points, linear between them."""
    a, b = np.abs(values[:-1]), np.abs(values[1:])
    both = np.where(a + b > 0, a + b, 1.0)
    crossing = values[:-1] * values[1:] < 0
    return float(np.where(crossing, (a * a + b * b) / both, a + b).mean()) / 2


def modes_at(score: Floats, residual: Floats, width: float) -> Floats:
    """The modes that count at this width, residuals of shape (.., m)."""
    k = np.arange(int(_REACH / (np.pi * width)) + 2)
    return np.asarray(residual @ np.cos(np.pi * score[:, None] * k))


def error_of_modes(modes: Floats, width: float | Floats) -> Floats:
    """int |smoothed residual| of draws, modes of shape (draws, k), as a mean over points."""
    damp = np.exp(-((np.arange(modes.shape[-1]) * np.pi * width) ** 2) / 2)
    points = 1 << max(int(2 * modes.shape[-1]).bit_length(), 7)
    values = np.fft.irfft(modes * damp, 2 * points)[:, : points + 1] * 2 * points
    return np.asarray(np.abs(values).mean(axis=-1))


def widths(modes: Floats, smoothed: float) -> Floats:
    """Widths that equal the errors they give, of residuals less waves that are short for this width, (worlds,)."""
    modes = modes * np.exp(-((np.arange(modes.shape[-1]) * np.pi * smoothed / 3) ** 2) / 2)
    low, high = np.zeros(len(modes)), np.ones(len(modes))
    for _ in range(24):
        middle = (low + high) / 2
        over = error_of_modes(modes, middle[:, None]) > middle
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return np.where(low > 0, high, 0.0)


_MIN_POINTS = 200
_MIN_NODES = 2000
_N_BISECTIONS = 10
_MIN_WIDTH = 0.001
_DENSITY = 1e-4
"""Added to the density of the scores at every point."""


def relplot_error(score: Floats, n: Floats, pos: Floats) -> float:
    """relplot.smECE of rows with these levels, shape (m,) each."""
    return _relplot_error(score, n, pos, _relplot_width(score, n, pos))


def _relplot_width(score: Floats, n: Floats, pos: Floats) -> float:
    wide, narrow = 1.0, 0.0
    for _ in range(_N_BISECTIONS):
        middle = (wide + narrow) / 2
        if middle < _MIN_WIDTH or middle < _relplot_error(score, n, pos, middle):
            narrow = middle
        else:
            wide = middle
    return wide


def _relplot_error(score: Floats, n: Floats, pos: Floats, width: float) -> float:
    points = np.linspace(0, 1, max(round(10 / width), _MIN_POINTS))
    residual, density = (_relplot_smoothed(score, values, points, width) for values in (n * score - pos, n * 1.0))
    return float(np.abs(residual).sum() / (density + _DENSITY).sum())


def _relplot_smoothed(score: Floats, values: Floats, points: Floats, width: float) -> Floats:
    """Values shared between two nodes each, mirrored at both ends, smoothed, and read off between nodes at points."""
    nodes = max(_MIN_NODES, round(20 / width)) // 2 + 1
    shared = shared_by_nodes(score * (nodes - 1), values, nodes)
    away = np.linspace(0, 1, nodes) - 0.5
    kernel = np.exp(-(away**2) / (2 * width**2)) / (np.sqrt(2 * np.pi) * width)
    mirrored = np.concatenate((shared[::-1][:-1], shared, shared[::-1][1:]))
    smooth = np.convolve(mirrored, kernel, "valid")[nodes // 2 : nodes // 2 + nodes]
    return np.interp(points * (nodes - 1), np.arange(nodes), smooth)
