"""What the result of a statement holds: an aggregate, which `decal evaluate FILE --aggregated` reads.

Columns, in this order:

- the columns of groups, and that of clusters, as texts, under their own names;
- `model`, the name of the score column, where there are several; of pairs `model_a` and `model_b`, of A and of B;
- levels, one row for each (groups, cluster, model, score): `score`, `n`, `pos`, and where weighted `n2`, `pos2` (sums
  of squared weights; n and pos are then sums of weights) and `rows`, `rows_pos` (numbers of rows); levels of pairs have
  `score_a` and `score_b`;
- or cells, one row for each (groups, model, cell, label): `cell`, `low`, `high`, `label`, `rows`, `n`, `s1` to `s4`,
  `l1`, `l2`, where weighted `n2`, `q1` to `q4`, `k1`, `k2`, and `min_score`, `max_score`, the least and the greatest
  score of these rows. n = sum w, s_k = sum w s^k, l_k = sum w loss^k with the log loss of the row, and n2, q_k, k_k the
  same with w^2. cell = floor(65536 s) + how many of the thresholds s reaches: it grows with the score, and every
  threshold is an edge. low and high are the edges of the cell, and s < high unless both are 1. l1 and l2 are Infinity
  where a score of 0 or 1 is wrong;
- with clusters, cells are followed by the same of each cluster, in coarse cells: `by_cluster` is 1 there, and 0, with
  NULL for the cluster, in the cells themselves;
- or cells of pairs, one row for each (groups, cell of A, cell of B, label): the same for each side, as `cell_a`, `s1_a`
  and so on, of 256 cells a side; and `d1`, `d2`, sums of what the squared loss of B is above that of A and of its
  square, `e1`, `e2` the same of the log loss (0 where one of the two is infinite), and where weighted `g1`, `g2`, `f1`,
  `f2` the same with w^2;
- `bad` and `value`. In rows that count scores they are NULL. What is wrong with other rows is counted by rows of its
  own, where the score or the cell is NULL: `bad` is one of the texts in `checks.PROBLEMS`, `value` an example, and
  `rows`, or without weights in levels `n`, how many they are. `checks.sound` takes them out, or raises the error.
"""

from __future__ import annotations

from collections.abc import Sequence

SIDES = ("_a", "_b")
"""What the names of the columns of A and of B end with."""
OF_COUNTS = ("n", "pos", "n2", "pos2", "rows", "rows_pos")
SUMS = ("s1", "s2", "s3", "s4", "l1", "l2")
"""Of powers of the score, of the log loss and of its square."""
SQUARES = ("q1", "q2", "q3", "q4", "k1", "k2")
"""The same with squared weights."""
DIFFERENCES, SQUARED_DIFFERENCES = ("d1", "d2", "e1", "e2"), ("g1", "g2", "f1", "f2")
"""Of pairs; the latter with squared weights."""
ENDS = ("min_score", "max_score")
"""The least and the greatest score of a cell's rows."""
BY_CLUSTER = "by_cluster"
"""1 where rows are those of one cluster in a coarse cell, and are counted by cells too; else 0."""
LEVEL_COLUMNS = ("score", *OF_COUNTS)
CELL_COLUMNS = ("cell", "low", "high", "label", "rows", "n", *SUMS, "n2", *SQUARES, *ENDS, BY_CLUSTER)
PAIR_COLUMNS = (
    *(f"{name}{side}" for name in ("score", "cell", "low", "high", *SUMS, *SQUARES) for side in SIDES),
    *DIFFERENCES,
    *SQUARED_DIFFERENCES,
)
NUMBERS = frozenset({*LEVEL_COLUMNS, *CELL_COLUMNS, *PAIR_COLUMNS})
RESERVED = NUMBERS | {"model", *(f"model{side}" for side in SIDES), "bad", "value"}
"""Names of columns of an aggregate, which no column of groups can have."""


def has_cells(names: Sequence[str]) -> bool:
    """Whether an aggregate of these columns holds cells, and not levels."""
    return "cell" in names or f"cell{SIDES[0]}" in names


def has_pairs(names: Sequence[str]) -> bool:
    """Whether an aggregate of these columns counts rows by the scores of two models."""
    return any(f"{name}{SIDES[0]}" in names for name in ("score", "cell"))


def types_of(names: Sequence[str]) -> dict[str, str]:
    """The types of the columns of an aggregate, as Arrow calls them."""
    whole = {"cell", "label", "rows", "rows_pos", BY_CLUSTER, *(f"cell{side}" for side in SIDES)}
    if not has_cells(names) and "n2" not in names:
        whole |= {"n", "pos"}
    return {name: "string" if name not in NUMBERS else "int64" if name in whole else "float64" for name in names}
