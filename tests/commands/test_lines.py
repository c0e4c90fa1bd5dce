"""The command line as data: `answers.txt` has lines and what they print, `refusals.txt` lines and why they are refused.

What stands in brackets begins each line below it, and behind ` < ` is what standard input holds. The words of a refusal
are in its one line on standard error, and nothing is written. Those of an answer stand below its line, in the order in
which they come, on standard output, on standard error and in the files that it writes; `!` leads to words that come
nowhere, and `exit` to a code that is not 0.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.command import BINARY, FIXTURES, Decal, Done, few_rows, refusal, run_here, valid_json
from tests.helpers.seeded import write_amounts, write_seeded, write_visits
from tests.helpers.stream import stream_columns, write_stream


def lines_of(name: str) -> Iterator[tuple[str, str]]:
    """Lines of a file of lines, each with what stands behind its arrow and below it."""
    beginning, line, words = "", "", ""
    for each in [*Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines(), "[]"]:
        if each.startswith("  "):
            words += f"{each.strip()}\n"
            continue
        if line or words:
            yield f"{beginning} {line}".strip(), words
        line, words = "", ""
        if each.startswith("["):
            beginning = each[1:-1]
        elif each:
            line, _, words = each.rpartition("=> ") if "=> " in each else (each, "", "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the lines name."""
    path = few_rows(tmp_path_factory.mktemp("lines"))
    (path / "few.csv").write_bytes((path / "rows.csv").read_bytes())
    write_seeded(path, 200)
    (path / "fixtures").symlink_to(FIXTURES)
    (path / "empty").mkdir()
    (path / "parts").mkdir()
    (path / "parts" / "a.csv").write_bytes((path / "rows.csv").read_bytes())
    (path / "parts" / "_b.csv").write_bytes((path / "rows.csv").read_bytes())
    write_amounts(path / "a.csv")
    alike = (f"{k % 10 / 10},{int(k % 7 < 3)},4" for k in range(60))
    (path / "alike.csv").write_text("\n".join(["p,y,amount", *alike]))
    lacking = (f"{k / 60},{'' if k == 7 else k / 70},{k % 3 > 0:d}" for k in range(60))
    (path / "lacking.csv").write_text("\n".join(["p,q,y", *lacking]))
    for name, patients, visits in (("visits", 60, 6), ("few_patients", 12, 6), ("fewer_patients", 4, 30)):
        write_visits(path / f"{name}.csv", patients, visits)
    games = {"game": [f"game {row // 10}" for row in range(1500)], "back": [f"game {row % 50}" for row in range(1500)]}
    write_stream(path / "stream.csv", stream_columns() | games)
    write_stream(path / "calm.csv", stream_columns(shift=0.0))
    write_stream(path / "wrong.csv", {"p": ["0.01"] * 900, "y": ["1"] * 900})
    for method, rows in (("isotonic", (BINARY,)), ("stack", ("rows.csv", "--features", "x*"))):
        assert run_here(path, ("fit", method, *rows, "-s", "p", "-y", "y", "-o", f"{method}.json")).code == 0
    return path


def ran(decal: Decal, line: str, folder: Path) -> Done:
    words, has_input, content = line.partition(" < ")
    stdin = content.encode("latin-1").decode("unicode_escape").encode("latin-1") if has_input else None
    return decal(*shlex.split(words), stdin=stdin, cwd=folder)


@pytest.mark.parametrize(("line", "says"), [*lines_of("refusals.txt")])
def test_a_line_is_refused_in_one_line(decal: Decal, folder: Path, line: str, says: str) -> None:
    before = set(folder.iterdir())
    error = refusal(ran(decal, line, folder))
    assert says in error and "s3cret" not in error.replace('"s3cret"', ""), error
    assert set(folder.iterdir()) == before


@pytest.mark.usefixtures("undrawn", "one_deal", "few_samples")
@pytest.mark.parametrize(("line", "says"), [pytest.param(*each, id=each[0]) for each in lines_of("answers.txt")])
def test_a_line_is_answered(decal: Decal, folder: Path, tmp_path: Path, line: str, says: str) -> None:
    for each in folder.iterdir():
        (tmp_path / each.name).symlink_to(each)
    done = ran(decal, line, tmp_path)
    assert f"exit {done.code}" in (says or "exit 0").splitlines() or (done.code == 0 and "exit " not in says), done.err
    if "-f json" in line:
        valid_json(done.out)
    elif not re.search("^gate| -f| --all| --card", line):
        assert all(len(each) <= 100 for each in done.out.splitlines())
    pages = (re.sub(r"<[^<>]+>", " ", each.read_text()) for each in tmp_path.glob("*.html"))
    told = " ".join("\n".join((done.out, done.err, *pages)).split())
    at = 0
    for words in says.splitlines():
        if words.startswith("!"):
            assert words[1:].strip() not in told
        elif not words.startswith("exit "):
            assert words in told[at:], f"{words}\nis not in\n{told[at:]}"
            at = told.index(words, at) + len(words)
