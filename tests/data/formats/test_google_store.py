"""Objects of Google's store, from a server here: the numbers of files, and nothing secret in what is said."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import decal_cli as decal
from decal_cli.errors import DecalError
from tests.helpers.cells import worded_rows
from tests.helpers.google_store import google_store

ASKED = {"score": "p", "label": "y", "positive": "bad", "metrics": ("brier", "auc")}


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder whose files are the objects of a bucket."""
    data, folder = worded_rows(), tmp_path_factory.mktemp("google") / "bucket"
    (folder / "days/day=0").mkdir(parents=True)
    (folder / "days/day=1").mkdir()
    data.to_parquet(folder / "whole.parquet")
    data[:300].to_parquet(folder / "days/day=0/part.parquet")
    data[300:].to_parquet(folder / "days/day=1/part.parquet")
    (folder / "rows.csv.gz").write_bytes(gzip.compress(data.to_csv(index=False).encode()))
    (folder / "forbidden.parquet").write_bytes(b"PAR1")
    with google_store(folder.parent) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOUD_STORAGE_EMULATOR_ENDPOINT", address)
        patch.setenv("GOOGLE_TOKEN_OF_TESTS", "secret-of-tests")
        yield folder


@pytest.mark.parametrize("name", ["whole.parquet", "rows.csv.gz", "days/"])
def test_an_object_of_google_is_read_as_a_file_is(bucket: Path, name: str) -> None:
    here, there = (decal.evaluate(path, **ASKED) for path in (bucket / name, f"gs://anonymous@bucket/{name}"))
    for key in ("brier", "auc"):
        assert there[key].value == pytest.approx(here[key].value, rel=1e-12)
    (item,) = there.to_dict()["inputs"]
    assert (item["path"], item["rows"]) == (f"gs://anonymous@bucket/{name}", 700)
    assert "secret-of-tests" not in json.dumps(there.to_dict())


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("gs://anonymous@bucket/none.parquet", "there is no such object"),
        ("gs://anonymous@nowhere/whole.parquet", "there is no such object"),
        ("gs://anonymous@bucket/forbidden.parquet", "cannot be read"),
    ],
)
def test_what_google_refuses_is_one_line(bucket: Path, path: str, problem: str) -> None:
    with pytest.raises(DecalError) as error:
        decal.evaluate(path, **ASKED)
    assert problem in str(error.value) and path in str(error.value)
    assert "secret-of-tests" not in str(error.value) and "\n" not in str(error.value)
