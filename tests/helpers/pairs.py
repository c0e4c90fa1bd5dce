"""Two scores of the same rows, as hypothesis draws them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

any_pairs = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.8, 1.0]),
        st.sampled_from([0.0, 0.05, 0.3, 0.5, 0.9, 1.0]),
        st.integers(0, 1),
        st.sampled_from([0.5, 1.0, 3.0]),
    ),
    min_size=2,
    max_size=40,
)


def pair_columns(rows: list[tuple[float, float, int, float]]) -> tuple[np.ndarray, ...]:
    a, b, label, weight = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    return a, b, label.astype(np.uint8), weight
