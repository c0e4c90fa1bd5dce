"""`decal demo` writes the file of README's examples and prints what README shows."""

from pathlib import Path

import sklearn

from decal_cli.commands.demo import FILE
from tests.helpers.command import FIXTURES, ROOT, Decal, refusal


def test_it_writes_the_file_and_prints_what_readme_shows(decal: Decal, tmp_path: Path) -> None:
    first, again = decal("demo", COLUMNS="100"), decal("demo", COLUMNS="100")
    assert first.code == 0 and again.out == first.out
    assert "→ Post-train on the features with" in first.out
    if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9):  # boosted trees of older versions are others
        assert f"```console\n{first.out}```" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert (tmp_path / "fixtures" / FILE).read_bytes() == (FIXTURES / FILE).read_bytes()


def test_a_file_of_the_users_is_left_as_it_is(decal: Decal, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / FILE).write_text("p,y\n")
    assert "another file than that of the example" in refusal(decal("demo", "mine"))
    assert "name another one" in refusal(decal("demo", f"mine/{FILE}"))
