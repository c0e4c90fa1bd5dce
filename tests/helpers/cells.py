"""Cells of scores as a GROUP BY gives them, for tests: made by pandas, as far from the package as can be."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd


def cells_of(
    score: Any,
    label: Any,
    weight: Any = None,
    thresholds: Sequence[float] = (),
    groups: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """One row for each group, cell and label: cell = floor(65,536 s) + how many thresholds s reaches."""
    score, label = np.asarray(score) + 0.0, np.asarray(label)
    cell = np.floor(score * 65536).astype(int) + sum((score >= t).astype(int) for t in thresholds)
    low = np.sort(np.concatenate((np.arange(65537) / 65536, list(thresholds))))
    high = np.append(low[1:], 1.0)
    with np.errstate(divide="ignore"):
        loss = np.where(label == 1, -np.log(score), -np.log1p(-score))
    keys = {**(groups or {}), "cell": cell, "low": low[cell], "high": high[cell], "label": label}
    sums: dict[str, Any] = {"rows": np.ones(len(score), dtype=int)}
    for names, w in ((("n", "s", "l"), weight), (("n2", "q", "k"), None if weight is None else weight**2)):
        if w is None and names[0] == "n2":
            continue
        w = np.ones(len(score)) if w is None else w
        sums[names[0]] = w
        sums |= {f"{names[1]}{k}": w * score**k for k in range(1, 5)}
        sums |= {f"{names[2]}{k}": w * loss**k for k in (1, 2)}
    cells = pd.DataFrame({**keys, **sums, "score": score}).groupby(list(keys), as_index=False)
    ends = {f"{end}_score": cells["score"].agg(end)["score"] for end in ("min", "max")}
    return cells[list(sums)].sum().assign(**ends)


def worded_rows(seed: int = 0, count: int = 700) -> pd.DataFrame:
    """Scores with ties, 0, -0 and 1, two models, labels as words, weights, and a group with missing values."""
    rng = np.random.default_rng(seed)
    score = np.where(rng.random(count) < 0.5, np.round(rng.random(count), 2), rng.random(count))
    label = rng.random(count) < score**1.3
    score[:4], label[:4] = (-0.0, 0.0, 1.0, 1.0), (False, False, True, True)
    words = np.where(label, "bad", "good")
    site = rng.choice(["a", "b", None], count)
    return pd.DataFrame({"p": score, "q": score**2, "y": words, "w": rng.exponential(2, count) + 0.1, "site": site})
