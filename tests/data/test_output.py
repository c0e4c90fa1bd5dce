"""Files written in one step, and what is left of them when a run is stopped."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from decal_cli.data.output import whole_file

WATCHED = ("output.py", "signals.py", "contextlib.py")
"""The modules that are at work while a file is written."""


class Stopper:
    """Sends this process Ctrl-C before the given instruction of the watched modules, counted from 0."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        if not frame.f_code.co_filename.endswith(WATCHED):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.left -= 1
            if self.left == -1:
                signal.raise_signal(signal.SIGINT)
        return self


@pytest.fixture
def _ctrl_c() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, however the tests were started."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def stopped_at(instruction: int, path: Path) -> bool:
    """Write a file and stop at this instruction; whether it came to that."""
    stopper, before = Stopper(instruction), sys.gettrace()
    try:
        sys.settrace(stopper)
        with whole_file(str(path), "output") as file:
            file.write(b"new")
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return stopper.left < 0


# A run that is stopped ends; it need not close the file first.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("_ctrl_c")
def test_a_stop_at_any_instruction_leaves_the_old_file_or_the_new_one_and_nothing_else(tmp_path: Path) -> None:
    path, instruction, seen = tmp_path / "out.txt", 0, set()
    while True:
        path.write_text("old")
        stopped = stopped_at(instruction, path)
        assert os.listdir(tmp_path) == ["out.txt"], f"stopped at instruction {instruction}"
        seen.add((stopped, path.read_text()))
        if not stopped:
            break
        instruction += 1
    assert seen == {(True, "old"), (True, "new"), (False, "new")}
