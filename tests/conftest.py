"""What many tests need: the fixtures, and the command as it is installed."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.command import DECAL, FIXTURES, Done


@pytest.fixture
def fixtures() -> Path:
    return FIXTURES


@pytest.fixture
def decal(tmp_path: Path) -> Callable[..., Done]:
    """Run the installed command in an empty folder, with nothing on standard input unless given."""

    def run(*arguments: object, stdin: bytes | None = None, cwd: Path = tmp_path, **environment: str) -> Done:
        source = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
        done = subprocess.run(
            [str(DECAL), *map(str, arguments)],
            capture_output=True,
            cwd=cwd,
            env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", **environment},
            check=False,
            **source,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
