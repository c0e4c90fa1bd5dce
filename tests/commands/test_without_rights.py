"""A user without rights: what cannot be read or written is one line and code 2."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.command import BINARY, DECAL, SHELL, Done, refusal

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
"""How root becomes somebody else; others have no rights to begin with."""


def ran(folder: Path, *arguments: str) -> Done:
    done = subprocess.run(
        [*NOBODY, str(DECAL), *arguments], cwd=folder, capture_output=True, text=True, check=False, env=SHELL
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that anybody may write to, with files and folders in it that nobody may read or write."""
    if NOBODY and not shutil.which("setpriv"):
        pytest.skip("cannot change user")
    place = Path(tempfile.mkdtemp())
    place.chmod(0o777)
    if ran(place, "--version").code != 0:
        pytest.skip("another user cannot run it here")
    for name in ("rows.csv", "unreadable.csv", "hidden/rows.csv", "fixed/rows.csv", "fixed.json"):
        path = place / name
        path.parent.mkdir(exist_ok=True)
        shutil.copy(BINARY, path)
        path.chmod(0o644)
    for name, mode in (("unreadable.csv", 0), ("hidden", 0), ("fixed", 0o555), ("fixed.json", 0o444)):
        (place / name).chmod(mode)
    yield place
    for name in ("hidden", "fixed"):
        (place / name).chmod(0o755)
    shutil.rmtree(place)


NAMED = ("-s", "p", "-y", "y")


@pytest.mark.ci
@pytest.mark.parametrize(
    ("line", "says"),
    [
        (("evaluate", "unreadable.csv", *NAMED), "unreadable.csv cannot be opened (Permission denied)"),
        (("evaluate", "hidden/rows.csv", *NAMED), "hidden/rows.csv cannot be opened (Permission denied)"),
        (("evaluate", "rows.csv", *NAMED, "-o", "fixed/x.json"), "folder fixed is not writable"),
        (("evaluate", "rows.csv", *NAMED, "-o", "fixed.json"), "fixed.json is not writable"),
        (("evaluate", "rows.csv", *NAMED, "-o", "hidden/x.json"), "hidden/x.json: Permission denied"),
        (
            ("gate", "rows.csv", *NAMED, "-r", "brier<=1", "--baseline", "unreadable.csv"),
            "unreadable.csv cannot be opened",
        ),
        (("apply", "unreadable.csv", "rows.csv", "-o", "o.csv"), "model file unreadable.csv: Permission denied"),
        (("study", "rows.csv", *NAMED, "-o", "fixed/study"), "fixed/study: Permission denied"),
        (("evaluate", "rows.csv", *NAMED, "--utility", "unreadable.csv"), "utility file unreadable.csv"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_read_or_written_is_one_line(folder: Path, line: tuple[str, ...], says: str) -> None:
    before = sorted(os.listdir(folder))
    assert says in refusal(ran(folder, *line))
    assert sorted(os.listdir(folder)) == before, "something was left behind"


def test_such_a_user_reads_and_writes_elsewhere(folder: Path) -> None:
    done = ran(folder, "evaluate", "fixed/rows.csv", *NAMED, "-m", "brier", "--no-intervals", "-o", "out.json")
    assert (done.code, done.err) == (0, "")
    (folder / "out.json").unlink()
