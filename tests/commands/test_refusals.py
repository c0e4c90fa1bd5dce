"""Lines that are refused: `refusals.txt` holds them with what the one line on standard error says; nothing is written.

What stands in brackets begins each line below it. Behind `<` is what standard input holds, `=>` leads to the words.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.command import FIXTURES, Decal, refusal
from tests.helpers.seeded import write_amounts


def refused_lines() -> Iterator[tuple[str, str]]:
    beginning = ""
    for line in Path(__file__).with_name("refusals.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            beginning = line[1:-1]
        elif line:
            words, _, says = line.rpartition("=> ")
            yield f"{beginning} {words}".strip(), says


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("refused")
    (path / "fixtures").symlink_to(FIXTURES)
    (path / "empty").mkdir()
    write_amounts(path / "a.csv")
    return path


@pytest.mark.parametrize(("line", "says"), [*refused_lines()])
def test_a_line_is_refused_in_one_line(decal: Decal, folder: Path, line: str, says: str) -> None:
    words, has_input, content = line.partition(" < ")
    stdin = content.encode("latin-1").decode("unicode_escape").encode("latin-1") if has_input else None
    before = set(folder.iterdir())
    assert says in refusal(decal(*shlex.split(words), stdin=stdin, cwd=folder))
    assert set(folder.iterdir()) == before
