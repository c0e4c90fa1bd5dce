"""What README and docs say is so: blocks are fresh, links lead somewhere, examples run, commands and files exist."""

import ast
import contextlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs import manual, pages
from tests.helpers.command import FIXTURES, ROOT, SCHEMA, Decal

PAGES = pages.written_pages(ROOT)
OTHERS = [
    *(
        ROOT / f"{name}.md"
        for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY", "simulation/RESULTS", "simulation/STUDY")
    ),
    FIXTURES / "README.md",
    FIXTURES / "papers" / "README.md",
]
"""Pages without generated blocks."""
MAX_README = 170
DESCRIBED = ("Advice", "CardAdvice", "Compared", "Fitted", "GateRow", "Planned", "Replayed")
"""Kinds of the schema, beside documents of reports, whose every field is described."""
MAKE_TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
TREE = manual.command_tree()
COMMANDS = TREE.commands
OPTIONS = {
    name: {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    | {"--help", "-h"}
    for name, command in {"": TREE, **COMMANDS}.items()
}
"""By command, '' for the whole."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


each_page = pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=name_of)


def code_blocks(page: Path, language: str) -> list[str]:
    """What stands in the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def inline_code(page: Path) -> list[str]:
    return re.findall(r"`([^`\n]+)`", prose(page))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.ci
@pytest.mark.parametrize("features", [False, pytest.param(True, marks=pytest.mark.long)])
def test_generated_blocks_are_fresh(features: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the long run those of runs on features too, which take most of the time; test_demo has README's."""
    written = {
        block["line"]: block[0].removeprefix(block["start"]).removesuffix(f"\n{block['end']}")
        for path in PAGES
        for block in pages.GENERATED.finditer(path.read_text(encoding="utf-8"))
    }
    if not features:
        printed = pages._console
        monkeypatch.setattr(pages, "_console", lambda line: written[line] if "--features" in line else printed(line))
        monkeypatch.setattr(pages, "_json_of", lambda line: {})
        picture = (ROOT / "docs" / "worth.svg").read_text(encoding="utf-8")
        monkeypatch.setattr(pages, "worth_chart", lambda report, command: picture)
    stale = [name_of(path) for path, text in pages.made_anew(ROOT).items() if path.read_text(encoding="utf-8") != text]
    assert not stale, "run: make man"


def test_readme_opens_with_the_numbers_that_stand_below() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    known = [re.search(rf"gain of {gain}: (\d+) ", text) for gain in ("recalibration", "post-training")]
    wins = re.search(r"score as it is \+(\d+)", (ROOT / "docs" / "worth.svg").read_text(encoding="utf-8"))
    said = re.search(r"wins (\d+) per 1,000\s.*may add (\d+);.*adds (\d+):", text.partition("```sh")[0], re.DOTALL)
    assert said and [each and each[1] for each in (wins, *known)] == list(said.groups())


@each_page
def test_every_block_is_generated(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(re.findall(r"^<!-- end -->$", text, re.MULTILINE)) == len(pages.GENERATED.findall(text))


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert not broken


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= MAX_README


def test_the_index_names_every_page() -> None:
    index = ROOT / "docs" / "index.md"
    named = set(re.findall(r"\]\(([\w-]+\.md)\)", index.read_text(encoding="utf-8")))
    assert named == {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}


def test_the_reading_path_of_the_site_names_every_page() -> None:
    conf = ast.parse((ROOT / "docs" / "conf.py").read_text(encoding="utf-8"))
    (path,) = (node.value for node in conf.body if isinstance(node, ast.Assign) and "READING_PATH" in ast.unparse(node))
    named = [page for pages in ast.literal_eval(path).values() for page in pages]
    files = {each.relative_to(ROOT / "docs").with_suffix("").as_posix() for each in (ROOT / "docs").rglob("*.md")}
    assert sorted(named) == sorted(files - {"index"})


def decal_lines(block: str) -> Iterator[list[str]]:
    """The decal commands of a shell block, as words."""
    for line in block.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words:
            end = next((at for at, word in enumerate(words) if word in ("|", "&&", ";")), len(words))
            if words[:1] == ["decal"] and end > 1:
                yield words[1:end]
            words = words[end + 1 :]


@each_page
def test_shell_examples_parse(page: Path) -> None:
    for block in code_blocks(page, "sh"):
        for command, *words in decal_lines(block):
            # In its own context a command would keep help options of its own.
            COMMANDS[command].make_context(command, words, parent=TREE.make_context("decal", [command]))


@each_page
def test_options_and_commands_in_the_text_exist(page: Path) -> None:
    unknown = []
    for code in inline_code(page):
        program, *words = code.split()
        if program == "decal" and words and words[0].islower():
            command = "" if words[0].startswith("-") else words[0]
            known = OPTIONS.get(command, set())
            unknown += [code for word in words if word.startswith("--") and word.split("=")[0] not in known]
            unknown += [code] if command not in OPTIONS else []
        elif program.startswith("--"):
            unknown += [code] if not any(program.strip(",") in options for options in OPTIONS.values()) else []
    assert not unknown


@each_page
def test_files_and_make_targets_in_the_text_exist(page: Path) -> None:
    folders = "|".join(path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith("."))
    paths = [code for code in inline_code(page) if re.fullmatch(rf"({folders})/[\w./-]*", code)]
    assert not [path for path in paths if not (ROOT / path).exists()]
    assert {code.split()[1] for code in inline_code(page) if code.startswith("make ")} <= MAKE_TARGETS


def program_of(page: Path) -> str:
    """The Python blocks of a page as one program; a comment behind an expression is to be its value."""
    text = "\n".join(code_blocks(page, "python"))
    for line in text.splitlines():
        expression, comment, value = line.partition("  # ")
        with contextlib.suppress(SyntaxError):
            if comment and ast.parse(expression, mode="eval"):
                text = text.replace(line, f"assert repr({expression}) == {value!r}")
    return text


@pytest.mark.ci
@pytest.mark.parametrize("page", [page for page in PAGES if code_blocks(page, "python")], ids=name_of)
def test_python_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fixtures").symlink_to(FIXTURES)
    monkeypatch.chdir(tmp_path)
    if page.name == "adding.md":  # what it declares would stay declared
        subprocess.run([sys.executable, "-c", program_of(page)], check=True)
    else:
        exec(compile(program_of(page), page.name, "exec"), {"__name__": "__main__"})


def test_the_page_on_json_names_every_field() -> None:
    page = ROOT / "docs" / "json.md"
    (block,) = code_blocks(page, "console")
    document = json.loads(block.partition("\n")[2])
    rows = re.findall(r"^\| (`.*?) \|", prose(page), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(document) <= named


def test_the_page_on_json_or_the_schema_describes_every_field_of_documents_reports_and_advice() -> None:
    on_page = set(re.findall(r"`(\w+)`", prose(ROOT / "docs" / "json.md")))
    for name, kind in SCHEMA["$defs"].items():
        if name.endswith(("One", "Several", "Report")) or name in DESCRIBED:
            described = {
                word for words in re.findall(r"((?:\w+, )*\w+):", kind["description"]) for word in words.split(", ")
            }
            assert set(kind["properties"]) <= on_page | described, name


@pytest.mark.parametrize("page", [page for page in PAGES if code_blocks(page, "toml")], ids=name_of)
def test_settings_examples_work(page: Path, decal: Decal, tmp_path: Path) -> None:
    (tmp_path / "fixtures").symlink_to(FIXTURES)
    (tmp_path / "preds.csv").write_text((FIXTURES / "binary_n2000.csv").read_text(encoding="utf-8"), encoding="utf-8")
    report = ("evaluate", "preds.csv", "--score", "p", "--label", "y", "--format", "json", "-o", "baseline.json")
    for block in code_blocks(page, "toml"):
        if "baseline" in block:
            assert decal(*report).code == 0
        (tmp_path / "decal.toml").write_text(block, encoding="utf-8")
        assert decal("gate").code in (0, 1)
