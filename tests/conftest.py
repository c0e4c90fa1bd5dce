"""The command line as a fixture: quick in this process, or as it is installed."""

from pathlib import Path

import pytest

from tests.helpers.command import Decal, Done, run_here, run_installed


@pytest.fixture
def decal(tmp_path: Path) -> Decal:
    """Run the command line in an empty folder, with nothing on standard input unless given."""

    def ran(*arguments: object, stdin: bytes | None = None, cwd: Path = tmp_path, **environment: str) -> Done:
        return run_here(cwd, arguments, stdin, environment)

    return ran


@pytest.fixture
def installed(tmp_path: Path) -> Decal:
    """The same as a process of its own, through the installed entry point."""

    def ran(*arguments: object, stdin: bytes | None = None, cwd: Path = tmp_path, **environment: str) -> Done:
        return run_installed(cwd, arguments, stdin, environment)

    return ran
