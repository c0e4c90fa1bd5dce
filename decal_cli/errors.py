"""What can go wrong, as types: bad input, a number that does not exist, an interrupt; and the exit codes."""

import re
from enum import IntEnum

_COMMAND = re.compile(r"^\s*::|##(?=[A-Za-z]*\[)")
"""What CI systems take for a command of their own, wherever it stands in a log or where it begins a line."""


class DecalError(Exception):
    """Input or usage that cannot be worked with; printed as one line, exit code 2.

    `problem` says what was wrong and where (file, column, row, the value found), `fix` what to do about it. Whatever
    they quote is escaped here, so that the error stays one line.
    """

    def __init__(self, problem: str, fix: str = "") -> None:
        self.problem = printable(problem)
        self.fix = printable(fix)
        super().__init__(self.problem)

    def __str__(self) -> str:
        return f"{self.problem}; {self.fix}" if self.fix else self.problem


class Undefined(Exception):
    """A number that does not exist for this table; never a value, never a pass, always with its reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Interrupted(Exception):
    """An interrupted run that can be resumed; the message says how."""


class Exit(IntEnum):
    """Exit codes of every command."""

    OK = 0
    GATE_FAILED = 1
    CANNOT_JUDGE = 2
    BUG = 3
    INTERRUPTED = 130
    """128 plus the number of the signal, as shells have it."""
    ENDED = 143
    """What a shell shows of a process that SIGTERM ends; decal itself returns INTERRUPTED where it can undo work."""

    @property
    def meaning(self) -> str:
        """One line for man pages and the README."""
        return {
            Exit.OK: "judged, and every gate passed (or there was none)",
            Exit.GATE_FAILED: "judged, and a gate failed",
            Exit.CANNOT_JUDGE: "could not judge: usage, bad input, or an undefined metric under a gate",
            Exit.BUG: "a bug in decal; please report it",
            Exit.INTERRUPTED: "interrupted (Ctrl-C), or asked to end (SIGTERM) while it wrote",
            Exit.ENDED: "asked to end (SIGTERM) before it wrote",
        }[self]


def out_of_memory(error: BaseException) -> bool:
    """Whether there was too little memory, which libraries say in ways of their own."""
    words = (
        "Cannot allocate memory",
        "failed to map segment",
        "Resource temporarily unavailable",
        "can't start new thread",
    )
    return isinstance(error, MemoryError) or any(each in str(error) for each in words)


def printable(text: str) -> str:
    """The text of others as it is shown, on one line and with nothing in it that a terminal or a CI system acts on.

    Whatever does not print is escaped as Python does: newlines, controls, bidirectional overrides, broken Unicode.
    """
    text = inert(text)
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def inert(line: str) -> str:
    """A line in which no CI system finds a command, such as ::error:: or ##[error]: its last sign is escaped."""
    if "::" not in line and "##" not in line:
        return line
    return _COMMAND.sub(lambda command: f"{command[0][:-1]}\\x{ord(command[0][-1]):02x}", line)
