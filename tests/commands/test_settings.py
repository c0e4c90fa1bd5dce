"""Settings files: where they are looked for, what they may say, and how a mistake in one is reported."""

from pathlib import Path

import pytest

from decal_cli.commands.settings import Settings, find_settings
from decal_cli.errors import DecalError
from tests.helpers.command import BINARY, Decal, refusal

FULL = """
input = ["preds.csv", "more/*.csv", "-"]
score = "p_*"
label = "y"
weight = "w"
group = ["site", "sex"]
features = ["x*"]
positive = 1
logit = true
missing = "drop"
gates = ["regret<=0.02"]
confidence = 0.9
seed = 3
baseline = "base.json"
[task]
threshold = 0.3
utility = "costs.json"
"""


def settle(folder: Path, text: str, name: str = "decal.toml") -> Settings:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return find_settings(folder)


def test_no_file_is_empty_settings(tmp_path: Path) -> None:
    assert find_settings(tmp_path) == {}


def test_everything_that_can_be_said(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    for name in ("b.csv", "a.csv"):
        (tmp_path / "more" / name).touch()
    assert settle(tmp_path, FULL) == {
        "input": [*(str(tmp_path / n) for n in ("preds.csv", "more/a.csv", "more/b.csv")), "-"],
        "score": ("p_*",),
        "label": "y",
        "weight": "w",
        "group": ("site", "sex"),
        "features": ("x*",),
        "positive": "1",
        "logit": True,
        "missing": "drop",
        "threshold": 0.3,
        "utility": str(tmp_path / "costs.json"),
        "rule": ("regret<=0.02",),
        "confidence": 0.9,
        "seed": 3,
        "baseline": str(tmp_path / "base.json"),
    }


def test_pyproject_has_the_same_keys_under_tool_decal(tmp_path: Path) -> None:
    text = "[tool.decal]\nlabel = 'y'\n[tool.decal.task]\nutility = [[0, -1], [-2, 0]]\n"
    got = settle(tmp_path, text, "pyproject.toml")
    assert got == {"label": "y", "utility": [[0.0, -1.0], [-2.0, 0.0]]}


def test_decal_toml_wins_and_the_nearest_folder_wins(tmp_path: Path) -> None:
    settle(tmp_path, "label = 'parent'")
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "pyproject.toml").write_text("[tool.other]\nx = 'decal'\n", encoding="utf-8")
    assert find_settings(inner)["label"] == "parent", "a pyproject.toml without [tool.decal] is passed over"
    settle(inner, "[tool.decal]\nlabel = 'project'", "pyproject.toml")
    assert find_settings(inner)["label"] == "project"
    assert settle(inner, "label = 'own'")["label"] == "own"


def test_paths_are_short_where_the_user_stands_and_open_from_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(tmp_path, "input = 'preds.csv'")
    (tmp_path / "preds.csv").touch()
    monkeypatch.chdir(tmp_path)
    assert find_settings(Path())["input"] == ["preds.csv"]
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert Path(find_settings(Path())["input"][0]).samefile(tmp_path / "preds.csv")


def test_a_broken_pyproject_of_another_project_is_not_ours_to_report(tmp_path: Path) -> None:
    assert settle(tmp_path, "[tool", "pyproject.toml") == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("scores = 'p'", ["unknown key 'scores'", "did you mean 'score'?"]),
        ("zzz = 1", ["unknown key 'zzz'", "the keys are input"]),
        ("threshold = 0.3", ["unknown key 'threshold'", "task = {threshold"]),
        ("cost-fp = 1", ["unknown key 'cost-fp'", "it belongs to the task: task = {cost_fp = ...}"]),
        ("[task]\ntreshold = 0.3", ["unknown key 'task.treshold'", "did you mean 'threshold'?"]),
        ("task = 0.3", ["task is 0.3", "a table"]),
        ("[task]\nthreshold = '0.3'", ["task.threshold is '0.3'", "a number"]),
        ("[task]\nthreshold = nan", ["task.threshold is nan", "a number"]),
        ("[task]\nutility = [1, 2]", ["task.utility is [1, 2]", "u00,u01;u10,u11"]),
        ("[task]\nodds = 19", ["task.odds is 19", "a non-empty text"]),
        ("score = 3", ["score is 3", "a non-empty text or a list of them"]),
        ("group = ['a', 1]", ["group is ['a', 1]"]),
        ("label = ['y']", ["label is ['y']", "a non-empty text"]),
        ("weight = ''", ["weight is ''", "a non-empty text"]),
        ("logit = 'yes'", ["logit is 'yes'", "true or false"]),
        ("missing = 'skip'", ["missing is 'skip'", '"drop"']),
        ("confidence = 95", ["confidence is 95", "0.95"]),
        ("seed = true", ["seed is True", "whole number"]),
        ("seed = -1", ["seed is -1"]),
        ("positive = []", ["positive is []"]),
        ("label = \nseed = 1", ["is not valid TOML", "line 1"]),
        ("a = 1\na = 2", ["is not valid TOML"]),
    ],
)
def test_a_mistake_is_one_line_with_file_key_value_and_what_is_expected(
    tmp_path: Path, text: str, words: list[str]
) -> None:
    with pytest.raises(DecalError) as caught:
        settle(tmp_path, text)
    line = str(caught.value)
    assert "\n" not in line
    assert str(tmp_path / "decal.toml") in line
    for word in words:
        assert word in line


def test_bad_bytes_and_a_wrong_tool_table(tmp_path: Path) -> None:
    (tmp_path / "decal.toml").write_bytes(b"label = '\xff'")
    with pytest.raises(DecalError, match="not UTF-8"):
        find_settings(tmp_path)
    (tmp_path / "decal.toml").unlink()
    with pytest.raises(DecalError, match=r"tool.decal is 3"):
        settle(tmp_path, "[tool]\ndecal = 3", "pyproject.toml")


def test_positive_is_text_whatever_toml_type_it_has(tmp_path: Path) -> None:
    for toml, text in [("2", "2"), ("true", "true"), ("1.0", "1"), ("'spam'", "spam")]:
        assert settle(tmp_path, f"positive = {toml}")["positive"] == text


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("task = {threshold = 1.3}", (), "decal.toml: threshold 1.3 is not inside (0, 1)"),
        ("task = {cost_fp = 1}", (), "decal.toml: one cost alone does not make a task"),
        ("task = {abstain = 0.2}", (), "decal.toml: the task has a utility for each of several classes"),
        ("task = {utility = [[0, 1], [1, 0]]}", (), "decal.toml: utility '0,1;1,0' has u_delta = -2"),
        ("task = {threshold = 1.3}", ("-t", "1.4"), "decal: threshold 1.4 is not inside (0, 1)"),
        ('capacity = "-1"', (), "decal.toml: --capacity -1 is not positive"),
        ('capacity = "-1"', ("--capacity", "-2"), "decal: --capacity -2 is not positive"),
        ('prevalence = "2"', (), "decal.toml: --prevalence 2 is not a share"),
    ],
)
def test_a_mistake_that_is_found_later_names_the_file_too(
    decal: Decal, tmp_path: Path, text: str, line: tuple[str, ...], says: str
) -> None:
    (tmp_path / "decal.toml").write_text(text)
    error = refusal(decal("evaluate", BINARY, "-s", "p", "-y", "y", *line))
    assert says in error and error.count("decal.toml") == says.count("decal.toml")


def test_a_stream_takes_those_settings_that_it_has_options_for(decal: Decal, tmp_path: Path) -> None:
    (tmp_path / "decal.toml").write_text('score = "p"\nlabel = "y"\nfeatures = "x?"\n[task]\nthreshold = 0.3\n')
    done = decal("online", BINARY, "--method", "online-platt", cwd=tmp_path)
    assert done.code == 0 and "features" not in done.out, done.err
    assert "features x1, x2, x3" in decal("evaluate", BINARY, cwd=tmp_path).out
