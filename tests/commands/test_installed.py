"""The installed command in a process of its own: entry point, pipes, exit codes, and the same answer as in-process."""

import subprocess
import sys

import pytest

from tests.helpers.command import BINARY, DECAL, SHELL, Decal, refusal

TINY = b"p,y\n0.1,0\n0.9,1\n0.4,0\n0.6,1\n0.3,1\n0.2,0\n"
NAMED = (BINARY, "--score", "p", "--label", "y")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("evaluate", *NAMED, "--metric", "brier", "--format", "json"), 0),
        (("gate", *NAMED, "--rule", "auc>=0.9"), 1),
        (("gate", *NAMED, "--rule", "regret<=0.02"), 2),
        (("evaluate", "nowhere.csv"), 2),
        (("evaluate", "--no-such-option"), 2),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else str(value),
)
def test_a_process_answers_as_a_call_does(
    decal: Decal, installed: Decal, arguments: tuple[object, ...], code: int
) -> None:
    ended = installed(*arguments)
    assert ended.code == code
    assert ended == decal(*arguments)


def test_python_m_decal_cli_is_the_command() -> None:
    called = [[sys.executable, "-m", "decal_cli"], [str(DECAL)]]
    first, second = (subprocess.run([*line, "--version"], capture_output=True, text=True, env=SHELL) for line in called)
    assert first.stdout == second.stdout and first.stdout.startswith("decal 0.")


def test_rows_come_from_a_pipe_without_being_asked_for(installed: Decal) -> None:
    ended = installed("evaluate", "--metric", "brier", stdin=TINY)
    assert ended.code == 0 and "score p (found by its usual name)" in ended.out
    assert "\x1b[" not in ended.out, "no colour where it is piped"


def test_nothing_piped_in_is_nothing_to_read(installed: Decal) -> None:
    assert "there is nothing to read" in refusal(installed("evaluate"))
