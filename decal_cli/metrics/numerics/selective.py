"""Errors among the rows that a model is surest of: the risk-coverage curve, and the noise of the area under it."""

from __future__ import annotations

import numpy as np

from decal_cli.tables.table import Floats, Table


def risk_at(t: Table, coverage: Floats) -> tuple[Floats, Floats]:
    """Share of errors among the surest rows, at each coverage in (0, 1], and effective rows that it rests on.

    t: the highest probability, counted with whether its class is the label. Rows of equal probability are taken in any
    order: the expectation over these orders counts.
    """
    n, wrong = (np.asarray(values, dtype=np.float64)[::-1] for values in (t.n, t.n - t.pos))
    squares = np.asarray(t.n2, dtype=np.float64)[::-1]
    ends = np.concatenate(([0.0], np.cumsum(n)))
    rows = np.minimum(np.asarray(coverage) * ends[-1], ends[-1])
    errors, spread = (np.interp(rows, ends, np.concatenate(([0.0], np.cumsum(values)))) for values in (wrong, squares))
    return np.clip(errors / rows, 0.0, 1.0), rows**2 / spread


def area_influence(t: Table) -> tuple[Floats, Floats]:
    """What a row adds to the area under the curve, to first order, by its level, where its class is right and wrong.

    Of AURC = E[error * -ln S], S the coverage at the row's probability: error * -ln S, less the errors of the rows that
    are no surer, each over its coverage; shape (L,) each, of mean 0 over the rows.
    """
    n, wrong = (np.asarray(values, dtype=np.float64) for values in (t.n, t.n - t.pos))
    total = float(n.sum())
    # Within a level, the mean over its rows of -ln of their coverage.
    above = np.cumsum(n[::-1])[::-1] - n
    low, high = above / total, (above + n) / total
    logs = -(high * np.log(high) - np.where(low > 0, low * np.log(np.where(low > 0, low, 1.0)), 0.0)) / (high - low) + 1
    share = wrong / total / ((low + high) / 2)
    beaten = np.cumsum(share) - share / 2
    mean = float(wrong @ logs) / total
    base = -mean - beaten + float(wrong.sum()) / total
    return base, base + logs
