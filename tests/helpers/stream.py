"""Streams for tests: rows in the order of time, made from a seed."""

from pathlib import Path

import numpy as np

N_STREAM_ROWS = 1500
FIRST_DAY = np.datetime64("2024-01-01")


def stream_columns(rows: int = N_STREAM_ROWS, shift: float = 1.0, seed: int = 5) -> dict[str, list[str]]:
    """Columns t (five rows a day), p and y; from the middle on the log-odds of y are above those of p by `shift`."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(-0.5, 1.2, rows)
    later = np.arange(rows) >= rows // 2
    truth = 1 / (1 + np.exp(-(logit + shift * later)))
    score = (1 / (1 + np.exp(-logit))).round(4)
    label = (rng.random(rows) < truth).astype(int)
    days = FIRST_DAY + np.arange(rows) // 5
    return {"t": [str(day) for day in days], "p": [str(each) for each in score], "y": [str(each) for each in label]}


def write_stream(path: Path, columns: dict[str, list[str]], start: int = 0, end: int | None = None) -> Path:
    """Rows start to end of these columns as a CSV file."""
    rows = list(zip(*columns.values(), strict=True))[start:end]
    path.write_text("".join(",".join(row) + "\n" for row in [tuple(columns), *rows]))
    return path


ON_LINE = ("--score", "p", "--label", "y", "--time", "t", "--threshold", "0.5", "--warm-up", "200")
