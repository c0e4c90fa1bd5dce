"""Files that a run writes: checked before any work is done, written in one step."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from decal_cli.commands.signals import ending_as_interrupt
from decal_cli.errors import DecalError


def check_writable(path: str, what: str) -> None:
    """Raise a DecalError where a file cannot be written."""
    if path in ("", "-"):
        raise DecalError(f"{what} {path!r} is not the name of a file", "name one, such as -o result.txt")
    folder = Path(path).parent
    if Path(path).is_dir():
        raise DecalError(f"{what} {path} is a directory", "name a file")
    if not folder.is_dir():
        raise DecalError(f"{what} {path}: there is no folder {folder}", "create it, or write elsewhere")
    if not os.access(folder, os.W_OK):
        raise DecalError(f"{what} {path}: folder {folder} is not writable", "write elsewhere")


def check_not_read(output: str | None, paths: Sequence[str]) -> None:
    """Raise a DecalError where a result would take the place of what it is made from."""
    if output is None or not os.path.exists(output):
        return
    for path in paths:
        if os.path.exists(path) and os.path.samefile(path, output):
            raise DecalError(f"output {output}: is one of the files to be read", "write elsewhere")


def check_new(path: str, what: str, force: bool) -> None:
    """Before any work is done: the file can be written, and is not there yet unless it may be written over."""
    check_writable(path, what)
    if os.path.lexists(path) and not force:
        raise DecalError(f"{what} {path}: is there already", "add --force to write over it, or name another file")


def write_whole(path: str, content: bytes, what: str) -> None:
    """A file in one step: a reader never sees half of it."""
    with whole_file(path, what) as file:
        file.write(content)


@contextmanager
def whole_file(path: str, what: str) -> Iterator[BinaryIO]:
    """A file to write into, which takes its place in one step at the end, and is gone where something fails."""
    target = Path(path)
    try:
        with ending_as_interrupt():
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
            try:
                with os.fdopen(handle, "wb") as file:
                    yield file
                mask = os.umask(0)
                os.umask(mask)
                os.chmod(name, 0o666 & ~mask)
                os.replace(name, target)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(name)
                raise
    except OSError as error:
        raise DecalError(f"{what} {path}: {error.strerror}", "write elsewhere") from None
