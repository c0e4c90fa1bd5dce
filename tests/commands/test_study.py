"""`decal study` as a user meets it: what it writes, how it goes on after it was stopped, what it refuses."""

import importlib.util
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.helpers.command import FOX, Done, run_here, start_installed, valid_json

METHODS = ("--method", "isotonic", "--method", "refit", "--thresholds", "0.1,0.2,0.3,0.4,0.6")
SEEDS = 2
PICTURES = ["recalibration.png", "post-training.png", "beyond.png", "correlations.png", "time.png"]
FILES = ["summary.md", "points.csv", "points.parquet", "summary.json", *PICTURES]
TIMED = ["summary.md", "summary.json", "time.png"]
"""Files that hold processor times, which are never the same."""
UNITS = 2 * SEEDS


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some rows and features of the shipped real data, for units that are measured quickly."""
    path = tmp_path_factory.mktemp("rows") / "some.parquet"
    columns = ["p_profanity", "p_hatesonar", "y", *(f"x{k:02}" for k in range(4))]
    pq.write_table(pq.read_table(FOX, columns=columns).slice(0, 300), path)
    return path


def line(rows: Path, folder: Path, seeds: int = SEEDS, workers: int = 1) -> tuple[object, ...]:
    """The command line of a study of two scores."""
    named = ("-s", "p_profanity", "-s", "p_hatesonar", "-y", "y", "--features", "x*", *METHODS)
    return ("study", rows, *named, "--seeds", seeds, "--workers", workers, "-o", folder)


PROFANITY = ("study", FOX, "-s", "p_profanity", "-y", "y", "--workers", "1")


@pytest.fixture(scope="module")
def undisturbed(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A study that nothing disturbed."""
    folder = tmp_path_factory.mktemp("study") / "whole"
    return folder, run_here(folder.parent, line(rows, folder))


def finished(folder: Path) -> int:
    path = folder / "units.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def same_but_for_times(one: Path, other: Path) -> None:
    for name in FILES:
        if name not in TIMED:
            assert (one / name).read_bytes() == (other / name).read_bytes(), name
    summaries = [valid_json((folder / "summary.json").read_text())["study"] for folder in (one, other)]
    assert [set(each.pop("seconds")) for each in summaries] == [{"isotonic", "refit"}] * 2
    assert summaries[0] == summaries[1]


@pytest.mark.ci
def test_it_writes_points_tables_and_pictures(undisturbed: tuple[Path, Done]) -> None:
    folder, done = undisturbed
    assert done.code == 0
    assert done.err.splitlines() == [
        f"decal: {UNITS} units to measure, 0 of them measured before",
        f"{folder}: {', '.join(FILES)}",
    ]
    assert sorted(item.name for item in folder.iterdir()) == sorted([*FILES, "units.jsonl"])
    assert done.out.startswith(f"1 file, 2 scores, 5 thresholds, {SEEDS} halvings: {5 * UNITS} points\n")
    for words in (
        "What predicts the gain of each method",
        "Calibration regret",
        "Time and gain of each method",
        "refit",
    ):
        assert words in done.out
    assert max(map(len, done.out.splitlines())) <= 100
    points = pq.read_table(folder / "points.parquet")
    assert len(points) == UNITS * 5 and {"file", "score", "gain of refit", "gain_beyond low"} <= set(
        points.column_names
    )
    assert (folder / "points.csv").read_text().count("\n") == UNITS * 5 + 1
    for name in PICTURES:
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
        assert f"]({name})" in (folder / "summary.md").read_text()
    assert valid_json((folder / "summary.json").read_text())["study"]["points"] == UNITS * 5


@pytest.mark.ci
def test_the_same_command_again_measures_nothing_and_says_the_same(rows: Path, undisturbed: tuple[Path, Done]) -> None:
    folder, done = undisturbed
    before = {name: (folder / name).read_bytes() for name in [*FILES, "units.jsonl"]}
    again = run_here(folder.parent, line(rows, folder))
    assert (again.code, again.out) == (0, done.out)
    assert again.err.splitlines()[0] == f"decal: {UNITS} units to measure, {UNITS} of them measured before"
    assert {name: (folder / name).read_bytes() for name in before} == before


@pytest.mark.ci
@pytest.mark.usefixtures("undrawn")
def test_figures_of_the_paper_get_a_page_of_their_own_and_go_with_it(
    rows: Path, undisturbed: tuple[Path, Done], tmp_path: Path
) -> None:
    folder = tmp_path / "figures"
    folder.mkdir()
    (folder / "units.jsonl").write_bytes((undisturbed[0] / "units.jsonl").read_bytes())
    assert run_here(tmp_path, (*line(rows, folder), "--figures")).code == 0
    page = (folder / "figures.md").read_text()
    pictures = sorted(path.name for path in folder.glob("*-u*.png"))
    assert len(pictures) == 22 and all(f"]({name})" in page for name in pictures), "two methods lack fig. 20"
    assert page.count("| refit |") == 4 and page.count("## r2 with the gain") == 4
    assert run_here(tmp_path, line(rows, folder)).code == 0
    assert not list(folder.glob("*-u*.png")) and not (folder / "figures.md").exists()


def stopped(arguments: tuple[object, ...], folder: Path, number: int, at: int) -> tuple[int, str]:
    """Exit code and standard error of a study that gets a signal, as from a terminal, once so many units are done."""
    process = start_installed(folder.parent, *arguments)
    while finished(folder) < at and process.poll() is None:
        time.sleep(0.005)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    error = process.communicate()[1]
    return process.returncode, error


@pytest.mark.long
def test_a_study_that_is_stopped_goes_on_and_ends_as_if_it_had_not_been(rows: Path, tmp_path: Path) -> None:
    """By two processes, then by one; one that nothing disturbed writes the same."""
    folder, whole, seeds = tmp_path / "stopped", tmp_path / "whole", 5
    code, error = stopped(line(rows, folder, seeds, workers=2), folder, signal.SIGINT, 1)
    assert code == 130
    assert error.splitlines()[1:] == ["decal: interrupted; run the same command again to go on"]
    first = finished(folder)
    assert 1 <= first < 2 * seeds and [item.name for item in folder.iterdir()] == ["units.jsonl"]
    code, error = stopped(line(rows, folder, seeds), folder, signal.SIGKILL, first + 1)
    assert code == -signal.SIGKILL
    assert f"{first} of them measured before" in error
    second = finished(folder)
    assert first < second < 2 * seeds and [item.name for item in folder.iterdir()] == ["units.jsonl"]
    # What a kill in the middle of a line leaves behind.
    with (folder / "units.jsonl").open("ab") as file:
        file.write(b'{"key": "cut o')
    gone_on, undisturbed = (run_here(tmp_path, line(rows, each, seeds)) for each in (folder, whole))
    assert gone_on.code == undisturbed.code == 0
    assert f"{2 * seeds} units to measure, {second} of them measured before" in gone_on.err
    same_but_for_times(whole, folder)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["asked to end", "killed"])
def test_the_processes_of_a_study_end_with_the_one_that_started_them(
    rows: Path, tmp_path: Path, number: signal.Signals
) -> None:
    folder = tmp_path / "ended"
    process = start_installed(tmp_path, *line(rows, folder, seeds=40, workers=2))
    while finished(folder) < 1:
        time.sleep(0.005)
    process.send_signal(number)
    error = process.communicate()[1]
    if number == signal.SIGTERM:
        assert process.returncode == 130
        assert error.splitlines()[1:] == ["decal: interrupted; run the same command again to go on"]
    assert [item.name for item in folder.iterdir()] == ["units.jsonl"]
    while alive(process.pid):
        time.sleep(0.05)


@pytest.mark.usefixtures("undrawn")
def test_pictures_of_a_larger_study_go_when_a_smaller_one_takes_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    words = (*PROFANITY, "--thresholds", "0.3,0.6", "--seeds", "1", "-o", "study")
    assert run_here(tmp_path, (*words, "--method", "isotonic")).code == 0
    assert {item.name for item in folder.glob("*.png")} == {"recalibration.png", "time.png"}
    (folder / "mine.png").write_bytes(b"")
    done = run_here(tmp_path, (*words, "--method", "platt"))
    assert done.code == 0 and "Too few scores for intervals" in done.out
    assert {item.name for item in folder.glob("*.png")} == {"mine.png"}
    assert ".png" not in (folder / "summary.md").read_text()


def test_a_study_in_which_nothing_can_be_fitted_is_an_error_with_the_reasons(tmp_path: Path) -> None:
    words = ("--seeds", "1", "-o", "study", "--method", "glar", "--method", "refit")
    done = run_here(tmp_path, (*PROFANITY, *words))
    needs = "needs features: name the columns with --features"
    assert (done.code, done.out) == (2, "")
    assert f"no method could be fitted (glar, refit: {needs}); give what they need" in done.err
    assert [item.name for item in (tmp_path / "study").iterdir()] == ["units.jsonl"]


def alive(session: int) -> list[int]:
    """Processes of a session that are still running."""
    listed = subprocess.run(["ps", "-eo", "pid=,sess=,stat="], capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in listed.splitlines())
    return [int(pid) for pid, its, state in rows if int(its) == session and not state.startswith("Z")]


def test_without_features_each_method_says_once_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    words = ("--thresholds", "0.3,0.6,0.9", "--seeds", "2", "--format", "json")
    done = run_here(tmp_path, (*PROFANITY, *words))
    study = valid_json(done.out)["study"]
    assert (
        "decal: there are no pictures: matplotlib is not installed; pip install 'decal[plot]'" in done.err.splitlines()
    )
    assert not list(tmp_path.glob("decal-study/*.png"))
    assert json.loads((tmp_path / "decal-study" / "summary.json").read_text())["study"] == study
    assert set(study["seconds"]) == {
        "isotonic", "platt", "temperature", "beta", "quadratic", "spline", "histogram", "scaling-binning", "meta-cal",
        "venn-abers", "threshold",
    }  # fmt: skip
    needing = ["glar", "multicalibration", "refit", "stack", "stack-forest", "stack-boosting", "blend", "probing"]
    assert study["reasons"] == dict.fromkeys(needing, "needs features: name the columns with --features")
    text = (tmp_path / "decal-study" / "summary.md").read_text()
    assert text.count("needs features") == 1 and ", ".join(needing) in text
