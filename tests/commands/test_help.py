"""What help says: own options first, defaults from the values themselves, and examples that run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from decal_cli.commands import help
from decal_cli.commands.manual import command_tree
from decal_cli.declarations import defaults
from decal_cli.errors import Exit
from decal_cli.roles import DECLARATIONS
from decal_cli.task import SPELLINGS
from tests.helpers.command import FIXTURES, Decal

COMMANDS = command_tree().commands
FIRST = dict.fromkeys(COMMANDS, "Decision") | {
    "sql": "Statement",
    "apply": "Input",
    "demo": "Arguments",
    "methods": "Arguments",
    "metrics": "Arguments",
}


def headings_of(text: str) -> list[str]:
    return re.findall(r"^(\w[\w -]*?)(?: \(.*\))?:$", text, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_screen_and_begins_with_the_decision(decal: Decal, name: str) -> None:
    text = decal(name, "--help", COLUMNS="100").out
    assert len(text.splitlines()) <= 60 and len(re.findall(r"^  -", text, re.MULTILINE)) <= 24
    headings = headings_of(text)
    assert headings[:2] == ["Example" if len(help.examples(COMMANDS[name])) == 1 else "Examples", FIRST[name]]
    shared = [heading for heading in headings if heading in help.SHARED]
    assert shared == sorted(shared, key=help.SHARED.index)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_all_has_every_option_and_help_says_how_many_more_there_are(decal: Decal, name: str) -> None:
    whole, brief = (decal(name, option, COLUMNS="100").out for option in ("--help-all", "--help"))
    options = {flag for each in COMMANDS[name].params for flag in each.opts if flag.startswith("-")}
    assert options <= set(re.findall(r"--?[a-z][a-z-]*", whole))
    more = re.search(r"^  (\d+) more options: decal (\w+) --help-all, or man decal-\2$", brief, re.MULTILINE)
    n_shown = [len(re.findall(r"^  -", text, re.MULTILINE)) for text in (whole, brief)]
    assert n_shown[0] - n_shown[1] == (0 if more is None else int(more[1]))


def test_help_says_what_is_required_and_what_is_found(decal: Decal) -> None:
    text = decal("recommend", "--help", COLUMNS="100").out
    assert (
        "Decision (one of these, or none where costs are not known):" in text and "found by their usual names" in text
    )
    assert "Decision:" in decal("evaluate", "--help").out


@pytest.mark.parametrize("name", COMMANDS)
def test_usage_names_what_a_command_cannot_do_without(name: str) -> None:
    expected = {
        "fit": ["METHOD", "[FILE]...", "-o MODEL", "[OPTIONS]"],
        "apply": ["MODEL", "FILE", "-o OUT", "[OPTIONS]"],
        "plan": ["[OPTIONS]"],
        "sql": ["[OPTIONS]"],
        "demo": ["[FOLDER]", "[OPTIONS]"],
        "methods": ["[NAME]", "[OPTIONS]"],
        "metrics": ["[NAME]", "[OPTIONS]"],
    }
    assert help.usage(COMMANDS[name]) == expected.get(name, ["[FILE]...", "[OPTIONS]"])


def test_a_default_is_the_value_itself(decal: Decal) -> None:
    evaluate, sweep, study = (decal(name, "--help-all").text for name in ("evaluate", "sweep", "study"))
    assert f"Confidence level of the intervals. [default: {defaults.CONFIDENCE}]" in evaluate
    assert f"Seed of folds and resamples. [default: {defaults.SEED}]" in evaluate
    assert f"[default: {defaults.SWEEP_THRESHOLDS}]" in sweep
    assert f"[default: {defaults.STUDY_THRESHOLDS}]" in study
    assert f"(seeds 0 to N - 1). [default: {defaults.N_STUDY_SEEDS}]" in study


def test_every_declaration_of_columns_and_task_is_an_option() -> None:
    options = {option for parameter in COMMANDS["evaluate"].params for option in parameter.opts}
    assert {f"--{name.replace('_', '-')}" for name in (*DECLARATIONS, *SPELLINGS)} <= options
    assert {each.flag for each in DECLARATIONS.values() if each.flag} <= options


def test_help_of_decal_lists_commands_with_a_whole_sentence_and_exit_codes(decal: Decal) -> None:
    text = decal("--help").text
    for name, command in COMMANDS.items():
        assert f" {name} {help.summary(command)}" in text
    for code in Exit:
        assert f" {code.value} {code.meaning}" in text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the examples name."""
    path = tmp_path_factory.mktemp("examples")
    table = pacsv.read_csv(FIXTURES / "binary_n2000.csv").slice(0, 200)
    score = table["p"].to_numpy()
    columns = {name: table[name] for name in ("y", "x1")}
    columns |= {"p_old": score, "p_new": score**1.3, "site": table["group"]}
    for name in ("a", "b"):
        pq.write_table(pa.table(columns), path / f"{name}.parquet")
    for name in ("preds", "calibration", "new"):
        pq.write_table(pa.table({**columns, "p": score}), path / f"{name}.parquet")
    # Each knows what the other does not, so that their curves clearly cross.
    chance = np.arange(400) % 4 / 4 + 0.125
    label = (np.arange(400) // 4 % 8 < 8 * chance).astype(int)
    for name, known in (("old", chance > 0.5), ("new", chance < 0.5)):
        rows = pa.table({"id": np.arange(400), "p": np.where(known, chance, (chance > 0.5) / 2 + 0.25), "y": label})
        pacsv.write_csv(rows, path / f"{name}.csv")
    return path


EXAMPLES = [example for command in (command_tree(), *COMMANDS.values()) for example in help.examples(command)]


def test_every_command_has_an_example() -> None:
    assert all(help.examples(command) for command in (command_tree(), *COMMANDS.values()))


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run(decal: Decal, folder: Path, example: str) -> None:
    first, *words = shlex.split(example)
    assert first == "decal"
    if words[0] == "study":
        words += ["--seeds", "1", "--workers", "1", "--thresholds", "0.3", "--method", "isotonic"]
    done = decal(*words, cwd=folder)
    assert done.code in ((0, 1) if words[0] == "gate" else (0,)), done.err
    assert done.out or "-o" in words


@pytest.mark.parametrize(
    ("shell", "words", "expected"),
    [
        ("bash", "decal evaluate --metric ec", "ece"),
        ("zsh", "decal recommend --method iso", "isotonic"),
        ("fish", "decal fit au", "auto"),
        ("zsh", "decal ev", "evaluate"),
        ("bash", "decal evaluate --missing d", "drop"),
    ],
)
def test_shells_complete_commands_options_and_names(decal: Decal, shell: str, words: str, expected: str) -> None:
    environment = {"_DECAL_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": words}
    environment |= {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    environment |= {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert expected in decal(**environment).out


def test_the_help_of_decal_builds_no_command_and_a_run_builds_its_own() -> None:
    code = (
        "import sys\nfrom decal_cli.commands.app import run\nfrom decal_cli.commands.tree import COMMANDS\n"
        "run(sys.argv[1:])\n"
        "print('built', *[name for name, each in COMMANDS.declared.items() if 'built' in vars(each)])"
    )
    for words, built in ((["--help"], "built"), (["metrics", "--help"], "built metrics")):
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == built


@pytest.mark.parametrize("arguments", [("gate", "--help"), ("metrics", "brier")], ids=str)
def test_explanations_survive_an_interpreter_that_strips_them(installed: Decal, arguments: tuple) -> None:
    assert installed(*arguments, PYTHONOPTIMIZE="2") == installed(*arguments)
