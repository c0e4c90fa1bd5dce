"""What can go wrong, as types: bad input, a number that does not exist, an interrupt; and the exit codes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum

from decal_cli.hints import Hint, hints_in, said

_COMMAND = re.compile(r"^\s*::|##(?=[A-Za-z]*\[)")
"""What CI systems take for a command of their own, wherever it stands in a log or where it begins a line."""
_ADDRESS = re.compile(r"(?<![\w+.-])(?:postgres(?:ql)?:/*|[A-Za-z][\w+.-]*:/+)", re.IGNORECASE)
"""The beginning of an address of a database or of the web."""
_USER = re.compile(r"[^\s:/@]*")
_PORT = re.compile(r"\d+(?![\w%])")
_WORD = re.compile(r"\S*")
_PARAMETER = re.compile(
    r"([?&;][\w.-]*(?:passw(?:or)?d|pwd|token|secret|signature|sig|key)=|(?<![\w.-])(?:ssl)?password=)"
    r"[^&;\s]*[^&;\s'\":,]",
    re.IGNORECASE,
)
"""A secret among the parameters of an address, or in a connection string."""


class DecalError(Exception):
    """Input or usage that cannot be worked with; printed as one line, exit code 2.

    `problem` says what was wrong and where (file, column, row, the value found), `fix` what to do about it; `hints`
    are the options in them, `about` those whose value is wrong. Whatever they quote is escaped here, so that the error
    stays one line, and secrets of addresses in it are masked.
    """

    def __init__(self, problem: str, fix: str = "") -> None:
        self.given = problem, fix
        self.hints = hints_in(problem) + hints_in(fix)
        self.about = {hint.option for hint in hints_in(problem) if isinstance(hint, Hint)}
        super().__init__(self.problem)

    @property
    def problem(self) -> str:
        """What was wrong, in the words of the command line or of Python."""
        return masked(printable(said(self.given[0])))

    @property
    def fix(self) -> str:
        """What to do about it."""
        return masked(printable(said(self.given[1])))

    def __str__(self) -> str:
        return f"{self.problem}; {self.fix}" if self.fix else self.problem


class Undefined(Exception):
    """A number that does not exist for this table; never a value, never a pass, always with its reason."""

    def __init__(self, reason: str) -> None:
        self.reason = said(reason)
        super().__init__(self.reason)


class Interrupted(Exception):
    """An interrupted run that can be resumed; the message says how."""


class Exit(IntEnum):
    """Exit codes of every command, each with one line for man pages and the README."""

    meaning: str

    OK = 0, "judged, and every gate passed (or there was none)"
    GATE_FAILED = 1, "judged, and a gate failed"
    CANNOT_JUDGE = 2, "could not judge: usage, bad input, or an undefined metric under a gate"
    BUG = 3, "a bug in decal; please report it"
    INTERRUPTED = 130, "interrupted (Ctrl-C), or asked to end (SIGTERM) while it wrote"
    """128 plus the number of the signal, as shells have it."""
    ENDED = 143, "asked to end (SIGTERM) before it wrote"
    """What a shell shows of a process that SIGTERM ends; decal itself returns INTERRUPTED where it can undo work."""

    def __new__(cls, code: int, meaning: str) -> Exit:
        made = int.__new__(cls, code)
        made._value_, made.meaning = code, meaning
        return made


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


def masked(line: str) -> str:
    """The line without the secrets of addresses in it: passwords, tokens and keys, however badly they are written.

    Where it cannot be told where a password ends, all up to the last @ of the line goes. Lines are masked before they
    are cut.
    """
    if ":" in line:
        line = "".join(_without_passwords(line))
    return _PARAMETER.sub(r"\1***", line) if "=" in line else line


def _without_passwords(line: str) -> Iterator[str]:
    """Pieces of the line, without passwords. The time grows with its length alone, since names in it may be long."""
    at = shown = word_ends = 0
    last = line.rfind("@")
    while address := _ADDRESS.search(line, at):
        at = start = address.end()
        word_ends = _match_end(_WORD, line, max(start, word_ends))
        user = _match_end(_USER, line, start)
        secret = user + 1
        at_follows = last >= secret
        if line[user:secret] == ":" and (at_follows or not _PORT.match(line, secret)):
            ends = last if at_follows else word_ends
        else:
            # A web address may have a token for a user, and a user may have a slash.
            secret, ends = start, line.rfind("@", start, word_ends)
            if ":" not in line[start:ends] and not address[0].lower().startswith("http"):
                continue
        if ends > secret:
            yield f"{line[shown:secret]}***"
            at = shown = ends
    yield line[shown:]


def _match_end(pattern: re.Pattern[str], line: str, start: int) -> int:
    found = pattern.match(line, start)
    return start if found is None else found.end()


def inert(line: str) -> str:
    """A line in which no CI system finds a command, such as ::error:: or ##[error]: its last sign is escaped."""
    if "::" not in line and "##" not in line:
        return line
    return _COMMAND.sub(lambda command: f"{command[0][:-1]}\\x{ord(command[0][-1]):02x}", line)
