"""What help says: own options first, defaults from the values themselves, and examples that run."""

import re
import shlex
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from decal_cli.api.nouns import rule_names
from decal_cli.commands import help
from decal_cli.declarations import defaults
from decal_cli.errors import Exit
from decal_cli.learn.methods import METHODS
from decal_cli.metrics import METRICS
from decal_cli.render.results.explained import method_explained, online_explained
from decal_cli.sequential import ONLINE
from docs import manual, pages
from docs.manual import command_tree
from docs.schema import schema_text
from tests.helpers.command import BINARY, DECAL, FIXTURES, FOX, ROOT, Decal, run_here, run_installed
from tests.helpers.results import as_text

COMMANDS = command_tree().commands
FIRST = dict.fromkeys(COMMANDS, "Decision") | dict.fromkeys(("demo", "methods", "metrics"), "Arguments")
FIRST |= {"sql": "Statement", "apply": "Input"}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_screen_begins_with_the_decision_and_says_how_many_more_options_there_are(
    decal: Decal, name: str
) -> None:
    whole, brief = (decal(name, option, COLUMNS="100").out for option in ("--help-all", "--help"))
    n_brief, n_whole = (len(re.findall(r"^  -", text, re.MULTILINE)) for text in (brief, whole))
    assert len(brief.splitlines()) <= 60 and n_brief <= 24
    headings = re.findall(r"^(\w[\w -]*?)(?: \(.*\))?:$", brief, re.MULTILINE)
    assert headings[:2] == ["Example" if len(help.examples(COMMANDS[name])) == 1 else "Examples", FIRST[name]]
    shared = [heading for heading in headings if heading in help.SHARED]
    assert shared == sorted(shared, key=help.SHARED.index)
    options = {flag for each in COMMANDS[name].params for flag in each.opts if flag.startswith("-")}
    assert options <= set(re.findall(r"--?[a-z][a-z-]*", whole)) and not re.search(r"\w-$", whole + brief, re.MULTILINE)
    more = re.search(r"^(\d+) more options: decal (\w+) --help-all, or man decal-\2$", brief, re.MULTILINE)
    assert n_whole - n_brief == (0 if more is None else int(more[1]))


def test_the_left_column_is_as_wide_as_the_longest_that_it_can_hold() -> None:
    """What is longer stands on a line of its own."""
    most = help.MAX_LEFT
    for sizes, width in (((9, 7), 9), ((9, most), most), ((9, most + 1), 9)):
        formatter = Mock(section=lambda title: nullcontext(), current_indent=2, width=60)
        help.write_sections(formatter, {"A": [("x" * size, "text") for size in sizes]})
        written = "".join(call.args[0] for call in formatter.write.call_args_list).splitlines()
        (first, second), alone = sizes, [f"  {'x' * (most + 1)}"] * (sizes[1] > most)
        last = "" if alone else "x" * second
        assert written == [f"  {'x' * first:{width}}  text", *alone, f"  {last:{width}}  text"]


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
    table = pacsv.read_csv(FIXTURES / "binary_n2000.csv").slice(0, 100)
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
    fit = "fit isotonic calibration.parquet --score p --label y --threshold 0.3 -o model.json"
    assert run_here(path, tuple(fit.split())).code == 0
    return path


OF_COMMANDS = [help.examples(command) for command in (command_tree(), *COMMANDS.values())]
EXAMPLES = [example for examples in OF_COMMANDS for example in examples]


@pytest.mark.ci
@pytest.mark.usefixtures("undrawn", "one_deal", "few_samples")
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run(decal: Decal, folder: Path, example: str) -> None:
    first, *words = shlex.split(example)
    assert first == "decal" and all(OF_COMMANDS)
    if words[0] == "study":
        words += ["--seeds", "1", "--workers", "1", "--thresholds", "0.3", "--method", "isotonic"]
    if words[0] == "fit":
        words.append("--force")
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
        "print('built', *[name for name, each in COMMANDS.data.items() if 'built' in vars(each)])"
    )
    for words, built in ((["--help"], "built"), (["metrics", "--help"], "built metrics")):
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == built


@pytest.mark.parametrize("arguments", [("gate", "--help"), ("metrics", "brier")], ids=str)
def test_explanations_survive_an_interpreter_that_strips_them(installed: Decal, arguments: tuple) -> None:
    assert installed(*arguments, PYTHONOPTIMIZE="2") == installed(*arguments)


FIT = ("fit", "threshold", BINARY, "-s", "p", "-y", "y", "-t", "0.3", "-o", "model.json")


def test_apply_writes_to_standard_output(decal: Decal, tmp_path: Path) -> None:
    printed = decal(*FIT).out.split("Act when score >= ")[1].split()[0].rstrip(".")
    assert printed in (tmp_path / "model.json").read_text()
    assert decal("apply", "model.json", BINARY, "-o", "scored.csv").code == 0
    done = run_installed(tmp_path, ("apply", "model.json", BINARY, "-o", "-"), None, {})
    assert done.code == 0 and done.out == (tmp_path / "scored.csv").read_text()
    assert "wrote standard output: 2,000 rows" in done.err
    (tmp_path / "bad.csv").write_text("p,y\n0.5,1\n7,0\n")
    bad = run_installed(tmp_path, ("apply", "model.json", "bad.csv", "-o", "-"), None, {})
    assert bad.code == 2 and bad.out == ""


def test_rules_and_columns_complete(tmp_path: Path) -> None:
    assert rule_names("posi") == ["positives"] and "brier" in rule_names("bri")
    assert rule_names("gain_recal") == ["gain_recalibration"]
    words = f"decal evaluate {FOX} --score p_s"
    told = {"_DECAL_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "4"}
    assert run_installed(tmp_path, (), None, told).out.split() == ["p_svm_waseem"]
    # A name with a space, as the shell writes it, and a quote that is still open.
    (tmp_path / "my file.csv").write_text("p_mine,y\n0.5,1\n")
    for words in (r"decal evaluate my\ file.csv --score ", "decal evaluate 'my file.csv' --score 'p"):
        assert "p_mine" in run_installed(tmp_path, (), None, told | {"COMP_WORDS": words}).out.split()
    assert DECAL.exists()


@pytest.mark.parametrize("name", METHODS)
def test_each_method_is_explained(name: str) -> None:
    text = as_text(method_explained(METHODS[name]))
    assert text.startswith(f"{name}: {METHODS[name].title}\n")
    for words in ("kind ", "needs ", "source "):
        assert f"\n{words}" in text
    for parameter in METHODS[name].parameters:
        assert f"\n{parameter.shown} " in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("name", ONLINE)
def test_each_forecaster_over_time_is_explained(name: str) -> None:
    text = as_text(online_explained(ONLINE[name]))
    assert text.startswith(f"{name}: {ONLINE[name].title}\n")
    assert ("\nrandom " in text) == (name in ("hedge", "ftpl", "cdl-algorithm"))
    for words in ("kind ", "needs ", "source ", "bins=0 "):
        assert f"\n{words}" in text


def test_help_sends_nobody_to_an_option_that_the_command_lacks(decal: Decal) -> None:
    assert "A total --cost is spread" in " ".join(decal("recommend", "--help-all").text.split())
    for verb in ("online", "sweep", "compare"):
        assert "--cost is" not in " ".join(decal(verb, "--help-all").text.split())
    study = COMMANDS["study"]
    offered = {flag for each in study.params for flag in each.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", " ".join(each.help for each in study.params))) <= offered


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_of_a_range_where_one_may_be_given(name: str) -> None:
    assert any("may be a range" in each.help for each in COMMANDS[name].params) == (name == "recommend")


def test_man_pages_name_the_settings_file_and_a_failed_gate_where_there_are_such() -> None:
    pages = manual.man_pages()
    unset = {f"decal-{name}.1" for name in ("apply", "demo", "methods", "metrics", "plan")}
    assert {name for name, text in pages.items() if ".SH FILES\n.TP\n.B decal.toml\n" not in text} == unset
    judging = {"decal.1", "decal-gate.1", "decal-online.1"}
    assert {name for name, text in pages.items() if "a gate failed" in text} == judging


def test_man_pages_and_the_schema_are_fresh_and_complete() -> None:
    assert (ROOT / "decal_cli" / "report.schema.json").read_text(encoding="utf-8") == schema_text()
    pages = manual.man_pages()
    on_disk = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "man").glob("*.1")}
    assert on_disk == pages
    assert "reader sees" not in pages["decal.1"]
    for option in ("\\-\\-threshold", "\\-\\-features", "\\-\\-metric", "\\-\\-no\\-intervals"):
        assert option in pages["decal-evaluate.1"]
    for name in METRICS:
        assert f".B {name}".replace("-", "\\-") in pages["decal-metrics.1"]


def test_a_stale_page_fails_the_check(tmp_path: Path, monkeypatch) -> None:
    for folder in ("man", "decal_cli", "docs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "README.md").write_text("<!-- exits -->\nold\n<!-- end -->\n")
    monkeypatch.setattr(manual, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "_json_of", lambda line: {})
    monkeypatch.setattr(pages, "worth_chart", lambda report, command: "<svg/>")
    assert manual.main(["--check"]) == 1
    assert "old" in (tmp_path / "README.md").read_text()
    assert manual.main([]) == 0
    assert manual.main(["--check"]) == 0
    assert "| 3 | a bug in decal" in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize("name", COMMANDS)
def test_abstention_is_offered_only_where_probabilities_of_classes_are(name: str) -> None:
    options = {flag for each in COMMANDS[name].params for flag in each.opts}
    assert "--abstain" not in options or "--proba" in options
