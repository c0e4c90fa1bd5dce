"""Where a result goes: files in one step, links and devices through, whatever the name and whoever was killed."""

import fcntl
import json
import os
import stat
import threading
from pathlib import Path

import pytest

from decal_cli.data.output import LEFTOVER
from tests.helpers.command import BINARY, Decal, refusal, valid_json

LINE = ("evaluate", BINARY, "-s", "p", "-y", "y", "-m", "brier", "-f", "json")


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", ".", "-t", "0.3"),
        ("evaluate", BINARY, "-t", "0.3", "--reference", "rows.csv"),
        ("plan", "-t", "0.3", "--pilot", "rows.csv", "--rule", "brier<=0.3"),
        ("gate", BINARY, "-t", "0.3", "--baseline", "rows.csv", "--rule", "drop(brier)<=0.3"),
    ],
    ids=["folder", "reference", "pilot", "baseline"],
)
def test_no_result_takes_the_place_of_what_is_read(decal: Decal, tmp_path: Path, words: tuple) -> None:
    (tmp_path / "rows.csv").write_bytes(BINARY.read_bytes())
    done = decal(*words, "-s", "p", "-y", "y", "-o", "rows.csv")
    assert "rows.csv is one of the files to be read" in refusal(done)
    assert (tmp_path / "rows.csv").read_bytes() == BINARY.read_bytes()


def test_a_result_is_written_again_where_no_row_is_read(decal: Decal, tmp_path: Path) -> None:
    """Hidden folders within the folder of the rows are not read."""
    (tmp_path / "rows.csv").write_bytes(BINARY.read_bytes())
    for name in ("_out", ".out"):
        (tmp_path / name).mkdir()
        for _ in range(2):
            assert decal("evaluate", ".", "-s", "p", "-y", "y", "-m", "brier", "-o", f"{name}/r.json").code == 0


def test_a_link_stays_and_its_target_is_written(decal: Decal, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link.json").symlink_to("there/target.json")
    for _ in range(2):
        assert decal(*LINE, "-o", "link.json").code == 0
        assert (tmp_path / "link.json").is_symlink()
        valid_json((tmp_path / "there" / "target.json").read_text())
    (tmp_path / "dangling.json").symlink_to("nowhere/target.json")
    assert "nowhere" in refusal(decal(*LINE, "-o", "dangling.json"))


def test_a_pipe_is_written_through(decal: Decal, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    texts: list[str] = []
    reader = threading.Thread(target=lambda: texts.append((tmp_path / "pipe.json").read_text()))
    reader.start()
    assert decal(*LINE, "-o", "pipe.json").code == 0
    reader.join()
    valid_json(texts[0])
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe.json").st_mode)


def test_devices_stay_devices(decal: Decal, tmp_path: Path) -> None:
    (tmp_path / "null.json").symlink_to(os.devnull)
    for name in (os.devnull, "null.json"):
        assert decal(*LINE, "-o", name).code == 0
        assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert decal("fit", "isotonic", BINARY, "-s", "p", "-y", "y", "-t", "0.3", "-o", os.devnull).code == 0
    full = decal(*LINE, "-o", "/dev/full")
    assert "No space left on device" in refusal(full)


@pytest.mark.ci
def test_the_files_of_standard_output_are_written_through(installed: Decal) -> None:
    for name in ("/dev/stdout", "/dev/fd/1"):
        valid_json(installed(*LINE, "-o", name).out)
    assert os.path.islink("/dev/stdout")


@pytest.mark.parametrize("mode", [None, 0o600, 0o640, 0o755])
def test_the_mode_of_a_file_is_kept_and_that_of_a_new_one_is_as_usual(
    decal: Decal, tmp_path: Path, mode: int | None
) -> None:
    path = tmp_path / "out.json"
    if mode is None:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    else:
        path.write_text("before")
        path.chmod(mode)
    assert decal(*LINE, "-o", "out.json").code == 0
    assert stat.S_IMODE(path.stat().st_mode) == mode
    valid_json(path.read_text())


def test_names_may_be_as_long_as_names_can_be(decal: Decal, tmp_path: Path) -> None:
    name = "x" * 250 + ".json"
    assert decal(*LINE, "-o", name).code == 0
    assert os.listdir(tmp_path) == [name]


def test_what_a_killed_run_left_is_removed_and_what_another_run_writes_is_not(decal: Decal, tmp_path: Path) -> None:
    left, written, other = (tmp_path / name for name in ("one".join(LEFTOVER), "two".join(LEFTOVER), ".decal-notes"))
    for path in (left, written, other):
        path.write_text("half")
    with written.open("rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert decal(*LINE, "-o", "out.json").code == 0
    assert set(os.listdir(tmp_path)) == {"out.json", written.name, other.name}


ROWS = [(0.1, 0), (0.9, 1), (0.4, 0), (0.7, 1)]


@pytest.mark.parametrize("large", [2**64 - 1, 2**53 + 1, -(2**63), 10**25 + 1])
@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_a_large_label_is_named_as_it_is(decal: Decal, tmp_path: Path, large: int, kind: str) -> None:
    rows = [{"p": p, "y": large if y else large - 1} for p, y in ROWS]
    lines = {"jsonl": map(json.dumps, rows), "csv": ["p,y", *(f"{row['p']},{row['y']}" for row in rows)]}[kind]
    (tmp_path / f"rows.{kind}").write_text("\n".join(lines) + "\n")
    done = decal("evaluate", f"rows.{kind}")
    assert done.code == 2 and str(large) in done.err and str(large - 1) in done.err
    done = decal("evaluate", f"rows.{kind}", f"--positive={large}", "-m", "auc", "-f", "json")
    report = json.loads(done.out)["reports"][0]
    assert (report["positives"], report["metrics"]["auc"]["value"]) == (2, 1)


@pytest.mark.parametrize("name", ["\x85", "a\x85", "\xa0b", "\u2028"])
def test_a_column_keeps_a_name_that_unicode_calls_space(decal: Decal, tmp_path: Path, name: str) -> None:
    """Blanks around a name in a header go; U+0085 is one of the characters that Python strips as well."""
    rows = [{name: p, "y": y} for p, y in ROWS]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    (tmp_path / "rows.csv").write_text(f" {name}\t,y \n" + "".join(f"{p},{y}\n" for p, y in ROWS))
    (tmp_path / "quoted.csv").write_text(f'"{name}",y\n' + "".join(f'"{p}",{y}\n' for p, y in ROWS))
    for file in ("rows.jsonl", "rows.csv", "quoted.csv"):
        done = decal("evaluate", file, "--score", name, "--label", "y", "-m", "auc", "-f", "json")
        assert json.loads(done.out)["reports"][0]["model"] == name, file
