"""Quotes in a CSV file that swallow its rows: one that is never closed, or two that stand rows apart."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO

import numpy as np

from decal_cli.data.words import NUMBER
from decal_cli.errors import DecalError

CHUNK_SIZE = 1 << 20


def check_quotes(shown: str, reopen: Callable[[], BinaryIO], delimiter: str, header: str, n_rows: int) -> None:
    """Raise a DecalError where a quote hides rows of a file, which takes a closer look only where there are quotes.

    reopen: gives the file's decompressed bytes; header: its text up to the end of the header; n_rows: how many rows it
    was read as.
    """
    with reopen() as stream:
        if not any(b'"' in chunk for chunk in _chunks(stream)):
            return
    with reopen() as stream:
        n_lines, last = _lines(stream)
    n_header = sum(1 for line in re.split("[\r\n]", header) if line)
    if n_rows == n_lines - n_header and not _ends_open(last, delimiter, False):
        return
    with io.TextIOWrapper(reopen(), encoding="latin-1", newline=None) as text:
        _check_rows(shown, text, delimiter)


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(CHUNK_SIZE):
        yield chunk


def _lines(stream: BinaryIO) -> tuple[int, str]:
    """How many lines are not empty, and the last of them."""
    count, last, ended = 0, b"", True
    for chunk in _chunks(stream):
        values = np.frombuffer(chunk, dtype=np.uint8)
        ends = (values == ord("\n")) | (values == ord("\r"))
        starts = ~ends
        starts[1:] &= ends[:-1]
        starts[0] &= ended
        ended = bool(ends[-1])
        at = np.flatnonzero(starts)
        count += len(at)
        last = chunk[int(at[-1]) :] if len(at) else last + chunk
    return count, last.decode("latin-1")


def _check_rows(shown: str, text: io.TextIOWrapper, delimiter: str) -> None:
    """Read line by line: whether quotes are open, where they opened, and whether lines within them look like rows."""
    opened = n_alike = width = 0
    places: list[int] = []
    for number, line in enumerate(text, 1):
        was_open, is_open = opened > 0, _ends_open(line, delimiter, opened > 0)
        cells = [cell.strip(' "\n') for cell in line.split(delimiter)]
        if not was_open and not is_open and line != "\n":
            width = len(cells)
            places = [at for at, cell in enumerate(cells) if NUMBER.fullmatch(cell)] or places
        elif was_open or is_open:
            n_alike += bool(places) and len(cells) == width and all(NUMBER.fullmatch(cells[at]) for at in places)
        if n_alike > 1 and not is_open:
            raise DecalError(
                f"{shown}, line {opened}: a quote opens there and closes on line {number}, around what looks like rows",
                "close or double the quote; a cell that does hold such lines can be given in Parquet",
            )
        if is_open != was_open:
            opened = number if is_open else 0
        if not is_open:
            n_alike = 0
    if opened:
        raise DecalError(
            f"{shown}, line {opened}: a quote opens there and is never closed", "close it, or copy the file again"
        )


def _ends_open(line: str, delimiter: str, is_open: bool) -> bool:
    """Whether a line ends within quotes; is_open: whether it begins within some."""
    at = 0
    if not is_open and line.startswith('"'):
        is_open, at = True, 1
    while True:
        if is_open:
            at = line.find('"', at)
            if at < 0:
                return True
            is_open = line.startswith('"', at + 1)
            at += 2 if is_open else 1
        else:
            at = line.find(f'{delimiter}"', at) + 2
            if at < 2:
                return False
            is_open = True
