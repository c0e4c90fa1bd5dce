"""The command line: run in this process or as it is installed, and what every run must keep to."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import jsonschema
import pytest

from decal_cli.commands import writing
from decal_cli.commands.app import run
from decal_cli.render.format import Page
from decal_cli.render.formats import write

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
FOX = FIXTURES / "fox_news.parquet"
BINARY = FIXTURES / "binary_n2000.csv"
GOLDEN = ROOT / "tests" / "golden"
DECAL = Path(sys.executable).with_name("decal")
SCHEMA = json.loads((ROOT / "decal_cli" / "report.schema.json").read_text(encoding="utf-8"))
SHELL = MappingProxyType({"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8"})
"""All that a process started here is given: what CI images set beside it, such as PYTHONUNBUFFERED, no user has."""
_VALIDATOR = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)


@dataclass(frozen=True)
class Done:
    """What a run of the command left behind."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """The output as if no line of it were broken."""
        return " ".join(self.out.split())


@dataclass(frozen=True)
class Decal:
    """The command line in a folder, with nothing on standard input unless given."""

    run: Callable[[Path, tuple[object, ...], bytes | None, Mapping[str, str]], Done]
    folder: Path

    def __call__(
        self, *arguments: object, stdin: bytes | None = None, cwd: Path | None = None, **environment: str
    ) -> Done:
        return self.run(cwd or self.folder, arguments, stdin, environment)

    def json(self, *arguments: object, **more: Any) -> dict[str, Any]:
        """What it prints with --format json."""
        return valid_json(self(*arguments, "--format", "json", **more).out)

    def text_and_json(self, *arguments: object, **more: Any) -> tuple[Done, dict[str, Any]]:
        """A run, and what JSON says of the result that it prints: half the time of two runs."""
        with patch.object(writing, "write", wraps=write) as written:
            done = self(*arguments, **more)
        return done, valid_json(str(write(written.call_args.args[0], "json", Page())))


def run_here(
    folder: Path,
    arguments: tuple[object, ...],
    stdin: bytes | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Done:
    """Run the command line in this process, which saves the start of another one."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, _readable(stdin) as source:
        patch.chdir(folder)
        for name, value in _surroundings(environment).items():
            patch.setenv(name, value)
        for name, stream in (("stdin", source), ("stdout", out), ("stderr", err)):
            patch.setattr(sys, name, stream)
        code = run([*map(str, arguments)])
    return Done(int(code), _text(out), _text(err))


def run_installed(
    folder: Path, arguments: tuple[object, ...], stdin: bytes | None, environment: Mapping[str, str]
) -> Done:
    """Run the installed entry point in a process of its own, with pipes on all sides."""
    ended = subprocess.run(
        [str(DECAL), *map(str, arguments)],
        capture_output=True,
        cwd=folder,
        env={**SHELL, **_surroundings(environment)},
        check=False,
        **({"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}),
    )
    return Done(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


def start_installed(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    """Start the installed entry point in a session of its own, where signals end it even if they do not end us."""

    def heed_signals() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    return subprocess.Popen(
        [str(DECAL), *map(str, arguments)],
        cwd=folder,
        env=SHELL,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_signals,
    )


def _surroundings(environment: Mapping[str, str]) -> dict[str, str]:
    return {"COLUMNS": "100", "NO_COLOR": "1", **environment}


@contextlib.contextmanager
def _readable(content: bytes | None) -> Iterator[io.TextIOWrapper]:
    """A file to stand for standard input; None: nothing can be read from it."""
    with open(os.devnull, "rb") if content is None else tempfile.TemporaryFile() as file:
        if content is not None:
            file.write(content)
            file.seek(0)
        yield io.TextIOWrapper(file, encoding="utf-8")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode()


@contextlib.contextmanager
def blank_pictures(look: Callable[[Any], None] = lambda figure: None) -> Iterator[None]:
    """Within it, pictures are empty: one takes longer to draw than all else on a page. look: is handed each figure."""

    def blank(figure: object, file: Any, **_: object) -> None:
        look(figure)
        content = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"></svg>'
        if isinstance(file, str | os.PathLike):
            Path(file).write_bytes(content)
        else:
            file.write(content.decode() if isinstance(file, io.TextIOBase) else content)

    with patch("matplotlib.figure.Figure.savefig", blank):
        yield


def few_rows(folder: Path, rows: int = 500) -> Path:
    """The folder, with so many of the shipped rows as rows.csv: a page of all of them takes long."""
    (folder / "rows.csv").write_text("".join(BINARY.read_text().splitlines(keepends=True)[: rows + 1]))
    return folder


def valid_json(text: str) -> dict[str, Any]:
    """Parse JSON strictly and hold it against the shipped schema."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in JSON")

    document = json.loads(text, parse_constant=refuse)
    json.dumps(document, ensure_ascii=False).encode()  # whole characters only: other parsers refuse half of a pair
    _VALIDATOR.validate(document)
    return document


def refusal(done: Done) -> str:
    """The single line that bad input gets, with nothing on standard output and exit code 2."""
    assert done.code == 2, done
    assert done.out == ""
    assert "Traceback" not in done.err
    assert len(done.err.strip().splitlines()) == 1, done.err
    assert done.err.startswith("decal: ")
    return done.err
