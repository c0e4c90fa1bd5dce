"""Features of every kind, as a user meets them: all columns at once, in every command."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from tests.helpers.command import Decal, refusal, run_here
from tests.helpers.worlds import mixed_rows

pytestmark = pytest.mark.usefixtures("one_deal")

COLUMNS = ("--score", "p", "--label", "y", "--group", "site", "--features", "*")
TASK = ("--threshold", "0.5")


def mixed_table(size: int, seed: int, categories: int = 4) -> pa.Table:
    """Rows as a file of them holds: a score, labels, a group, and features of every kind."""
    rows, rng = mixed_rows(size, seed, categories=categories), np.random.default_rng(seed)
    features = rows.typed
    names = (*features.categories[0], None)
    known, gappy, _ = features.numbers.T
    days = pa.array(rng.integers(0, 1000, size).astype(np.int32)).cast(pa.date32())
    return pa.table(
        {
            "p": rows.score,
            "y": rows.label.astype(int),
            "site": rng.choice(["north", "south"], size).tolist(),
            "known": known,
            "gappy": pa.array(gappy, from_pandas=True),
            "empty": pa.nulls(size),
            "since": days,
            "flag": pa.array((rng.random(size) < 0.5).tolist()),
            "kind": [names[code] for code in features.codes[:, 0]],
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training file as CSV and as Parquet, new rows with a category of their own, and a model."""
    folder = tmp_path_factory.mktemp("mixed")
    table, new = mixed_table(300, 0), mixed_table(200, 1, categories=6)
    pq.write_table(table, folder / "train.parquet")
    pacsv.write_csv(table, folder / "train.csv")
    pq.write_table(new, folder / "new.parquet")
    pacsv.write_csv(new, folder / "new.csv")
    done = run_here(folder, ("fit", "stack", "train.parquet", *COLUMNS, *TASK, "-o", "model.json"))
    assert done.code == 0, done.err
    return folder


NOTE = "features: 2 numbers, 1 boolean, 1 date, 1 category, 1 only missing values; 3 columns with missing values"


@pytest.mark.parametrize(
    "command",
    [
        ("recommend", "--try", "--method", "isotonic", "--method", "stack"),
        ("sweep", "--thresholds", "0.2:0.8:0.2"),
        ("gate", "--rule", "upper(gain_beyond)<=1"),
        ("fit", "stack", "-o", "stack.json", "--test", "new.csv"),
    ],
)
def test_every_command_takes_all_columns_and_says_which_kinds(
    decal: Decal, folder: Path, command: tuple[str, ...]
) -> None:
    name, *options = command
    first = options[:1] if name == "fit" else []
    rest = options[len(first) :]
    task = () if name == "sweep" else TASK
    rest = [str(folder / each) if each == "new.csv" else each for each in rest]
    done = decal(name, *first, folder / "train.csv", *COLUMNS, *task, *rest)
    assert done.code == 0, done.err
    said = done.text
    assert NOTE in said or (name == "fit" and "200 rows of the test file" in said)


def test_apply_says_how_many_rows_have_an_unseen_category(decal: Decal, folder: Path) -> None:
    done = decal("apply", folder / "model.json", folder / "new.csv", "-o", "out.parquet")
    unseen = sum(kind in ("c00004", "c00005") for kind in pq.read_table(folder / "new.parquet")["kind"].to_pylist())
    assert f"{unseen} of 200 rows have a category that the model was not fitted on" in done.err
    again = decal("apply", folder / "model.json", folder / "train.parquet", "-o", "out.parquet", "--force")
    assert "category" not in again.err


def test_a_changed_kind_is_one_line(decal: Decal, folder: Path, tmp_path: Path) -> None:
    table = pq.read_table(folder / "new.parquet")
    at = table.column_names.index("kind")
    pq.write_table(table.set_column(at, "kind", pa.array(range(200))), tmp_path / "codes.parquet")
    fitted = ("fit", "stack", folder / "train.parquet", *COLUMNS, *TASK, "-o", "m.json", "--test", "codes.parquet")
    assert "column 'kind': holds numbers, where the training file holds categories" in refusal(decal(*fitted))
    assert not (tmp_path / "m.json").exists()
