"""Two scores of the same rows, as hypothesis draws them."""

import numpy as np
from hypothesis import strategies as st

from decal_cli.metrics import Inputs, MetricSpec, paired
from decal_cli.tables.estimate import MeanEstimate
from decal_cli.tables.pairs import PairTable
from decal_cli.task import Task

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


def difference_of(spec: MetricSpec, pairs: PairTable, task: Task | None = None) -> MeanEstimate | None:
    """B - A of a metric by its influence, and its error; None where it has none."""
    a, b = paired.of_pairs(Inputs.of(task), Inputs.of(task), pairs)
    apart = paired.difference(spec, a, b, pairs)
    return None if apart is None else MeanEstimate(apart.value, apart.error)
