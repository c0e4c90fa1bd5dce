"""Files with every column that a verb can take, made from a seed: rows, their counts, and a DuckDB database of them."""

from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

_CLASSES = ("lo", "mid", "hi")


def seeded_columns(rows: int, seed: int = 7) -> dict[str, list[float] | list[int] | list[str]]:
    """Two scores with ties, the probabilities of three classes by two models, and all else that a column may stand for.

    Everything is rounded, so that no last bit of a processor decides anything.
    """
    rng = np.random.default_rng(seed)
    known, missed = rng.normal(size=(2, rows))
    chance = _logistic(0.9 * known + 0.9 * np.sign(missed) - 0.4)
    share = np.exp(np.column_stack((0.9 * known, 0.5 * missed, -0.6 * known)))
    share /= share.sum(axis=1, keepdims=True)
    label = (rng.random(rows) < chance).astype(int)
    several = (rng.random(rows)[:, None] > share.cumsum(axis=1)[:, :-1]).sum(axis=1)
    columns = {
        "p": np.round(_logistic(1.5 * known), 2),
        "q": np.round(_logistic(0.6 * known + 0.5 * np.sign(missed)), 2),
        "y": label,
        "z": np.array(_CLASSES)[several],
        "w": rng.integers(8, 33, rows) / 16,
        "g": np.array(["n", "s"])[rng.integers(0, 2, rows)],
        "c": rng.integers(0, max(rows // 6, 2), rows),
        "day": np.arange(rows) // max(rows // 5, 1),
        "x1": np.round(known, 2),
        "x2": np.round(missed, 2),
        "x3": np.array(["red", "green", "blue"])[rng.integers(0, 3, rows)],
        "amount": rng.integers(1, 6, rows),
        "alarm": rng.integers(1, 4, rows) / 2,
        "tn": np.zeros(rows, int),
        "fn": -rng.integers(1, 5, rows),
        "fp": -rng.integers(1, 4, rows),
        "tp": rng.integers(0, 3, rows),
    }
    for model, power in (("a", 1.0), ("b", 1.7)):
        wide = share**power / (share**power).sum(axis=1, keepdims=True)
        first, second = np.round(wide[:, 0], 4), np.round(wide[:, 1], 4)
        each = (first, second, np.round(1 - first - second, 4))
        columns |= {f"{model}:{name}": each[k] for k, name in enumerate(_CLASSES)}
    return {name: column.tolist() for name, column in columns.items()}


def utility_columns(rows: int, seed: int = 7) -> dict[str, list[int]]:
    """What each of three actions is worth in each of three classes, row by row: u00, u01 and so on."""
    rng = np.random.default_rng(seed)
    return {f"u{a}{k}": (rng.integers(-4, 1, rows) + 5 * (a == k)).tolist() for a in range(3) for k in range(3)}


def write_seeded(folder: Path, rows: int, seed: int = 7, utilities: bool = False) -> None:
    """The rows as rows.csv, rows.parquet and table `rows` of file.db; with utilities also the columns of these."""
    table = pa.table(seeded_columns(rows, seed) | (utility_columns(rows) if utilities else {}))
    pacsv.write_csv(table, folder / "rows.csv")
    pq.write_table(table, folder / "rows.parquet")
    with duckdb.connect(folder / "file.db") as connection:
        connection.execute(f"CREATE TABLE rows AS SELECT * FROM '{folder}/rows.parquet'")


def write_counts(folder: Path, name: str, by: Sequence[str], label: str | None = "y", weighted: bool = False) -> None:
    """A file of the rows counted by these columns, as anyone's GROUP BY gives them; SQL names a column `old AS new`.

    label: the column of labels, None where it is among those that are counted by.
    """
    keys = ", ".join(str(at + 1) for at in range(len(by)))
    counts = "count(*) AS n" if label is None else f"count(*) AS n, sum({label})::BIGINT AS pos"
    if weighted:
        counts = (
            f"sum(w) AS n, sum(w * {label}) AS pos, sum(w * w) AS n2, sum(w * w * {label}) AS pos2, "
            f'count(*) AS "rows", sum({label})::BIGINT AS rows_pos'
        )
    query = f"SELECT {', '.join(by)}, {counts} FROM rows GROUP BY {keys} ORDER BY {keys}"
    with duckdb.connect(folder / "file.db", read_only=True) as connection:
        connection.execute(f"COPY ({query}) TO '{folder / name}' (FORMAT parquet)")


def write_world(path: Path, seed: int) -> None:
    """Calibrated, distorted, backward or useless scores, rare or common labels, and a useful feature or none."""
    rng = np.random.default_rng(seed)
    rows = int(rng.choice([150, 400, 900]))
    features = np.round(rng.normal(size=(rows, 2)), 2)
    signal = rng.choice([-1.0, 0.0, 1.0, 2.0]) * features[:, 0] + rng.choice([-4.0, -1.0, 0.0])
    chance = _logistic(signal + rng.choice([0.0, 1.5]) * features[:, 1])
    label = (rng.random(rows) < chance).astype(int)
    label[:2] = 0, 1
    score = np.round(_logistic(rng.choice([0.5, 1.0, 2.0]) * signal), 3)
    pacsv.write_csv(pa.table({"p": score, "y": label, "x0": features[:, 0], "x1": features[:, 1]}), path)


def write_tied(path: Path) -> None:
    """32 rows of scores in quarters: half of them at 1/2, a copy, a constant, one that is the label, and one label.

    Groups differ in nothing, and so do two of the classes on every other row; sums are exact, and often equal.
    """
    lines = ["p,copy,still,sure,y,one,g,c,w,amount,a:u,a:v,a:w,z"]
    for k in range(32):
        half = k // 2  # the same in both groups
        y = int(half % 4 in (1, 2) or half % 16 == 15)
        p = (0, 0.5, 0.5, 1, 0.25, 0.5, 0.75, 0.5)[half % 8]
        a = ((0.5, 0.5, 0), (0.25, 0.25, 0.5), (1, 0, 0), (0, 0.5, 0.5))[half % 4]
        lines.append(
            ",".join(
                map(str, (p, p, 0.5, y, y, 1, "ns"[k % 2], k // 4, 1 + k % 2, 1, *a, "uvw"[(half + half // 4) % 3]))
            )
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _logistic(logit: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-logit))


def write_amounts(path: Path) -> None:
    """400 rows of two scores that are too bold, what is lost by each decision, and utilities that say the same."""
    rng = np.random.default_rng(3)
    lines = ["p,q,y,amount,fee,tn,fn,fp,tp,site"]
    for k in range(400):
        z = rng.normal()
        y, amount, fee = int(rng.random() < 1 / (1 + np.exp(1 - z))), rng.lognormal(3, 1), 1 + rng.random()
        p, q = 1 / (1 + np.exp(1 - 2 * z)), 1 / (1 + np.exp(1 - z - rng.normal()))
        lines.append(f"{p:.4f},{q:.4f},{y},{amount:.2f},{fee:.2f},0,{-amount:.2f},{-fee:.2f},0,{k % 80}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_visits(path: Path, patients: int, visits: int) -> None:
    """Visits of patients that go right or wrong together, and two scores."""
    rng = np.random.default_rng(patients)
    unit = np.repeat(np.arange(patients), visits)
    p = np.round(_logistic(rng.normal(size=len(unit))), 3)
    y = (rng.random(len(unit)) < _logistic(3 * p - 1.5 + 2 * rng.normal(size=patients)[unit])).astype(int)
    q = np.round(np.clip(p + rng.normal(size=len(unit)) / 10, 0, 1), 3)
    rows = (f"a{g},{a},{b},{label}" for g, a, b, label in zip(unit, p, q, y, strict=True))
    path.write_text("\n".join(["patient,p,q,y", *rows]) + "\n", encoding="utf-8")
