"""Settings of a project folder: `[tool.decal]` of pyproject.toml, or decal.toml."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from decal_cli.data.words import nearest, quote, text_of
from decal_cli.declarations.defaults import CONFIDENCE
from decal_cli.declarations.option import keys_of
from decal_cli.documents import read_document, toml_of
from decal_cli.errors import DecalError
from decal_cli.limits import MAX_SETTINGS_BYTES
from decal_cli.render.terms import StatedTerms
from decal_cli.roles import DECLARATIONS, DEFAULTS, ROLES, several
from decal_cli.task import SPELLINGS

JUDGING: dict[str, tuple[str, ...]] = {"undecided": ("fail", "pass")}
"""Keys that say how rules are judged, each with its values."""
TERM_KEYS = tuple(keys_of(StatedTerms))
"""The keys that say in which terms results are written."""


@dataclass(frozen=True)
class Settings:
    """What a settings file says; all empty when there is none.

    path: the file, or None. input: paths as they are to be opened. columns: by key, what is said
    of them. task: the spellings that are set. gates: rules,
    unparsed. baseline: path to a JSON report. judging: by key of JUDGING. terms: those of TERM_KEYS that are set.
    """

    path: Path | None = None
    input: tuple[str, ...] = ()
    columns: dict[str, Any] = field(default_factory=dict)
    task: dict[str, Any] = field(default_factory=dict)
    gates: tuple[str, ...] = ()
    confidence: float | None = None
    seed: int | None = None
    baseline: str | None = None
    judging: dict[str, Any] = field(default_factory=dict)
    terms: dict[str, Any] = field(default_factory=dict)


def working_folder() -> Path:
    """The working directory. Errors: DecalError where it was deleted."""
    try:
        return Path.cwd()
    except OSError as error:
        raise DecalError(f"the working directory: {error.strerror}", "change to one that is there") from None


def find_settings(start: Path) -> Settings:
    """Settings of the folder `start` or of its nearest parent that has any; decal.toml wins over pyproject.toml.

    Errors: DecalError for TOML that does not parse, an unknown key, or a value of the wrong type.
    """
    absolute = start.resolve()
    for folder in (absolute, *absolute.parents):
        # Paths stay short and relative where the user works in the folder itself.
        base = start / os.path.relpath(folder, absolute)
        settings = base / "decal.toml"
        if settings.is_file():
            return _settings(settings, _parse(settings))
        project = base / "pyproject.toml"
        if project.is_file() and (table := _project_table(project)) is not None:
            return _settings(project, table)
    return Settings()


def _project_table(path: Path) -> Mapping[str, Any] | None:
    try:
        # A broken pyproject.toml that has nothing to do with decal is somebody else's problem.
        with path.open("rb") as file:
            if b"decal" not in file.read(MAX_SETTINGS_BYTES):
                return None
    except OSError:
        return None
    tool = _parse(path).get("tool", {})
    if not isinstance(tool, dict) or "decal" not in tool:
        return None
    table = tool["decal"]
    if not isinstance(table, dict):
        raise DecalError(f"{path}: tool.decal is {quote(table)}", "make it a table: [tool.decal]")
    return table


def _parse(path: Path) -> dict[str, Any]:
    fix = "correct the settings file"
    return toml_of(read_document(str(path), str(path), fix, MAX_SETTINGS_BYTES), str(path), fix)


def _settings(path: Path, table: Mapping[str, Any]) -> Settings:
    return _Reader(path).settings(table)


_TOP_KEYS = ("input", *DECLARATIONS, "task", "gates", "confidence", "seed", "baseline", *JUDGING, *TERM_KEYS)


@dataclass(frozen=True)
class _Reader:
    """Checks one settings file, key by key."""

    path: Path

    def settings(self, table: Mapping[str, Any]) -> Settings:
        self._known(table, _TOP_KEYS, "")
        task = table.get("task", {})
        if not isinstance(task, dict):
            raise self._wrong("task", task, "a table, such as task = {threshold = 0.3}")
        baseline = self._name("baseline", table["baseline"]) if "baseline" in table else None
        return Settings(
            path=self.path,
            input=tuple(p for name in self._names("input", table.get("input", [])) for p in self._files(name)),
            columns={key: self._column(key, table[key]) for key in DECLARATIONS if key in table},
            task=self._task(task),
            gates=self._names("gates", table.get("gates", [])),
            confidence=self._confidence(table["confidence"]) if "confidence" in table else None,
            seed=self._seed(table["seed"]) if "seed" in table else None,
            baseline=None if baseline is None else self._beside(baseline),
            judging={key: self._choice(key, table[key], JUDGING[key]) for key in JUDGING if key in table},
            terms={key: self._term(key, table[key]) for key in TERM_KEYS if key in table},
        )

    def _term(self, key: str, value: Any) -> Any:
        if key == "decisions":
            return value if isinstance(value, str) else self._number(key, value)
        return self._names(key, value) if isinstance(value, list) else self._name(key, value)

    def _column(self, key: str, value: Any) -> Any:
        """The value of a key about the columns, of the type that its declaration has."""
        if choices := DECLARATIONS[key].choices:
            return self._choice(key, value, choices)
        if isinstance(DEFAULTS[key], bool):
            return self._flag(key, value)
        if several(key):
            return self._names(key, value)
        return self._name(key, value) if key in ROLES else self._value(key, value)

    def _task(self, table: Mapping[str, Any]) -> dict[str, Any]:
        self._known(table, SPELLINGS, "task.")
        task: dict[str, Any] = {}
        for key, value in table.items():
            if key in ("utility", "cost_matrix"):
                task[key] = self._utility(key, value)
            elif key == "odds":
                task[key] = self._name("task.odds", value)
            else:
                task[key] = self._number(f"task.{key}", value)
        return task

    def _utility(self, key: str, value: Any) -> Any:
        if isinstance(value, str):
            return self._beside(value) if value.lower().endswith((".json", ".toml", ".csv")) else value
        rows = list(value.values()) if isinstance(value, dict) else value
        several = isinstance(rows, list) and len(rows) >= 2
        if several and all(isinstance(row, list) and len(row) >= 2 and all(map(_is_number, row)) for row in rows):
            return value
        expected = 'a text "u00,u01;u10,u11", a file name, [[u00, u01], [u10, u11]] or {wait = [u00, u01], ...}'
        raise self._wrong(f"task.{key}", value, expected)

    def _known(self, table: Mapping[str, Any], keys: tuple[str, ...], prefix: str) -> None:
        for key in table:
            if key in keys:
                continue
            if not prefix and key in SPELLINGS:
                fix = f"it belongs to the task: task = {{{key} = ...}}"
            elif near := nearest(key.replace("-", "_"), keys):
                fix = f"did you mean {near!r}?"
            else:
                fix = "the keys are " + ", ".join(keys)
            raise DecalError(f"{self.path}: unknown key {quote(prefix + key)}", fix)

    def _wrong(self, key: str, value: Any, expected: str) -> DecalError:
        return DecalError(f"{self.path}: {key} is {quote(value)}", f"it must be {expected}")

    def _name(self, key: str, value: Any) -> str:
        if not isinstance(value, str) or not value:
            raise self._wrong(key, value, "a text")
        return value

    def _names(self, key: str, value: Any) -> tuple[str, ...]:
        if isinstance(value, str) and value:
            return (value,)
        if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
            raise self._wrong(key, value, "a text or a list of texts")
        return tuple(value)

    def _value(self, key: str, value: Any) -> str:
        text = text_of(value) if isinstance(value, (bool, int, float)) else None
        return self._name(key, value) if text is None else text

    def _flag(self, key: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self._wrong(key, value, "true or false")
        return value

    def _choice(self, key: str, value: Any, choices: tuple[str, ...]) -> str:
        if value not in choices:
            raise self._wrong(key, value, " or ".join(f'"{choice}"' for choice in choices))
        return str(value)

    def _number(self, key: str, value: Any) -> float:
        if not _is_number(value):
            raise self._wrong(key, value, "a number")
        return float(value)

    def _confidence(self, value: Any) -> float:
        if not _is_number(value) or not 0 < value < 1:
            raise self._wrong("confidence", value, f"a number between 0 and 1, such as {CONFIDENCE}")
        return float(value)

    def _seed(self, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self._wrong("seed", value, "a whole number, 0 or more")
        return value

    def _beside(self, name: str) -> str:
        return str(self.path.parent / name)

    def _files(self, name: str) -> list[str]:
        if name == "-":
            return [name]
        path = self.path.parent / name
        if any(c in name for c in "*?[") and not path.exists():
            import glob

            # Nothing expands a glob that stands in a file; no match is left for `read` to report.
            if matches := sorted(glob.glob(name, root_dir=self.path.parent)):
                return [self._beside(match) for match in matches]
        return [str(path)]


def _is_number(value: Any) -> bool:
    """Finite int or float; TOML also knows inf and nan, and true is an int to Python."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300
