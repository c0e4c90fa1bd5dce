"""Finished units on disk, one per line, so that a stopped study resumes where it was."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from decal_cli.analysis.study.points import ESTIMATES, Record, Setting, Unit
from decal_cli.documents import json_of
from decal_cli.errors import DecalError, printable
from decal_cli.limits import MAX_LINE_BYTES
from decal_cli.version import __version__

NAME = "units.jsonl"
RECORD_VERSION = 2
"""Of what a record holds."""


def key_of(unit: Unit, digest: str, columns: object, setting: Setting) -> str:
    """A hash of all that a unit's record depends on: the file's bytes, the columns, the plan, the version."""
    parts = [
        __version__,
        RECORD_VERSION,
        digest,
        unit.score,
        unit.seed,
        repr(columns),
        setting.thresholds,
        [chosen.key for chosen in setting.methods],
        setting.confidence,
        ESTIMATES,
        *map(repr, setting.tasks),
    ]
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()


class Store:
    """Records by key, in a file that only grows; a last line that was cut off is dropped.

    A missing folder is created. Errors: DecalError where that fails.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DecalError(f"{folder}: {error.strerror}", "name another folder") from None
        self.path = folder / NAME
        self.records: dict[str, Record] = {}
        whole = 0
        if self.path.exists():
            with self.path.open("rb") as file:
                while line := file.readline(MAX_LINE_BYTES):
                    entry = _entry(line)
                    if entry is None:
                        break
                    self.records[entry["key"]] = entry["record"]
                    whole += len(line)
            # New lines follow the last whole line, not a half one.
            os.truncate(self.path, whole)

    def add(self, key: str, record: Record) -> None:
        """Write one finished unit and flush it to the disk."""
        self.records[key] = record
        # Bytes of a name that are not UTF-8 have no place in JSON; who reads a record knows the file that it is of.
        written = {name: printable(value) if name == "file" else value for name, value in record.items()}
        line = json.dumps({"key": key, "record": written}, allow_nan=False).encode() + b"\n"
        try:
            with self.path.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise DecalError(f"{self.path}: {error.strerror}", "make room, then run the same command again") from None


def _entry(line: bytes) -> Mapping[str, Any] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        entry = json_of(line.decode(), NAME, "")
    except (DecalError, UnicodeDecodeError):
        return None
    whole = isinstance(entry, dict) and isinstance(entry.get("key"), str) and isinstance(entry.get("record"), dict)
    return entry if whole else None


def folder_of(path: str) -> Path:
    """The folder of a study. Errors: DecalError where it is a file, or holds other files."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise DecalError(f"{path}: is a file", "name a folder for the study: -o FOLDER")
    names = sorted(item.name for item in folder.iterdir()) if folder.exists() else []
    if names and NAME not in names:
        raise DecalError(f"{path}: holds files, and no study ({names[0]}, ...)", "name a new folder: -o FOLDER")
    return folder
