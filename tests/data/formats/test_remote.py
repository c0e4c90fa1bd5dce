"""Objects in a store: the numbers of files here, and nothing secret in what is said."""

import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import decal_cli
from decal_cli.data import reading
from decal_cli.data.formats import files
from decal_cli.errors import DecalError
from tests.helpers.cells import worded_rows
from tests.helpers.command import Decal, refusal
from tests.helpers.stores import google_store, object_store

ASKED = {"score": "p", "label": "y", "positive": "bad", "metrics": ("brier", "auc")}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket with one data set as a file, as gzipped CSV, and as a folder of two."""
    data = worded_rows()
    whole, objects = tmp_path / "whole.parquet", {}
    data.to_parquet(whole)
    objects["bucket/whole.parquet"] = whole.read_bytes()
    objects["bucket/rows.csv.gz"] = gzip.compress(data.to_csv(index=False).encode())
    for number, part in enumerate((data[:300], data[300:])):
        part.to_parquet(tmp_path / "part.parquet")
        objects[f"bucket/days/day={number}/part.parquet"] = (tmp_path / "part.parquet").read_bytes()
    objects["bucket/days/_SUCCESS"] = b""
    objects["bucket/text.parquet"] = b"PAR1 and nothing more, cut off in the middle"
    with object_store(objects) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "name-of-tests")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-tests")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        yield str(whole)


def same_numbers_without_secrets(here: object, there: object) -> None:
    """What a file here and an object, which are addressed so, give."""
    of_file, of_object = (decal_cli.evaluate(data, **ASKED) for data in (here, there))
    for key in ("brier", "auc"):
        assert of_object[key].value == pytest.approx(of_file[key].value, rel=1e-12)
    (item,) = of_object.to_dict()["inputs"]
    assert (item["path"], item["rows"]) == (there, 700)
    assert "secret-of-tests" not in json.dumps(of_object.to_dict())


def refused_without_secrets(path: str) -> str:
    with pytest.raises(DecalError) as error:
        decal_cli.evaluate(path, **ASKED)
    assert "secret-of-tests" not in str(error.value) and "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("name", ["whole.parquet", "rows.csv.gz", "days"])
@pytest.mark.parametrize("large", [False, True])
def test_an_object_is_read_as_a_file_is(store: str, monkeypatch: pytest.MonkeyPatch, name: str, large: bool) -> None:
    if large:
        monkeypatch.setattr(reading, "MAX_IN_MEMORY_BYTES", 0)
    same_numbers_without_secrets(store, f"s3://bucket/{name}")


def test_a_line_names_an_object_as_it_names_a_file(store: str, decal: Decal) -> None:
    asked = ("-s", "p", "-y", "y", "--positive", "bad", "-m", "brier")
    here, there = (decal.json("evaluate", path, *asked) for path in (store, "s3://bucket/whole.parquet"))
    assert there["metrics"] == here["metrics"] and there["inputs"][0]["path"] == "s3://bucket/whole.parquet"
    assert "holds credentials" in refusal(decal("evaluate", "s3://name:secret-of-tests@bucket/whole.parquet", *asked))


def test_the_path_names_groups(store: str) -> None:
    answer = decal_cli.evaluate("s3://bucket/days/", group="day", **ASKED).to_dict()
    assert [(each["group"], each["rows"]) for each in answer["reports"]] == [(None, 700), ("0", 300), ("1", 400)]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("s3://bucket/none.parquet", "s3://bucket/none.parquet: there is no such object"),
        ("s3://bucket/forbidden.parquet", "s3://bucket/forbidden.parquet cannot be read"),
        ("s3://bucket/text.parquet", "s3://bucket/text.parquet cannot be read as Parquet"),
        ("s3://name-of-tests:secret-of-tests@bucket/whole.parquet", "holds credentials"),
        ("s3://bucket/whole.parquet?secret=secret-of-tests", "holds credentials or options"),
    ],
)
def test_an_error_is_one_line_without_secrets(store: str, path: str, problem: str) -> None:
    assert problem in refused_without_secrets(path)


@pytest.mark.ci
@pytest.mark.parametrize("path", ["gs://bucket/a.parquet", "gs://tests:secret-of-tests@bucket/a.parquet"])
def test_google_without_credentials_is_one_line_soon(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A place that refuses connections, so that nothing is asked of a network.
    monkeypatch.setenv("GCE_METADATA_HOST", "127.0.0.1:1")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setattr(files, "_SECONDS", 0.5)
    started = time.monotonic()
    line = refused_without_secrets(path)
    assert "cannot be read" in line or "holds credentials" in line
    # Without a limit it waits for 15 minutes.
    assert time.monotonic() - started < 60


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


@pytest.mark.ci
@pytest.mark.parametrize("name", ["whole.parquet", "rows.csv.gz", "days/"])
def test_an_object_of_google_is_read_as_a_file_is(bucket: Path, name: str) -> None:
    same_numbers_without_secrets(bucket / name, f"gs://anonymous@bucket/{name}")


@pytest.mark.ci
@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("gs://anonymous@bucket/none.parquet", "there is no such object"),
        ("gs://anonymous@nowhere/whole.parquet", "there is no such object"),
        ("gs://anonymous@bucket/forbidden.parquet", "cannot be read"),
    ],
)
def test_what_google_refuses_is_one_line(bucket: Path, path: str, problem: str) -> None:
    line = refused_without_secrets(path)
    assert problem in line and path in line
