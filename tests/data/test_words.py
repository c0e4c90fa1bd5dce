"""Texts about files."""

import subprocess

import pytest

from decal_cli.data.words import file_word, shell_word


@pytest.mark.parametrize(
    "name", ["plain", "a b", "it's", "$(x)", "`x`", "\x1b[31m\n", "ü\u202e", "\\'\t", "a\udcffb", "\x9b"]
)
def test_a_shell_reads_the_word_as_the_text(name: str) -> None:
    word = shell_word(name)
    assert word.isprintable()
    read = subprocess.run(
        ["bash", "-c", f"printf %s {word}"], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    )
    assert read.stdout.decode("utf-8", "surrogateescape") == name


def test_a_path_is_no_option() -> None:
    assert (file_word("-o"), file_word("a.csv")) == ("./-o", "a.csv")
