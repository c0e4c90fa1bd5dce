"""Settings of a project folder: `[tool.decal]` of pyproject.toml, or decal.toml."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from decal_cli.api.nouns import Decision, Rules
from decal_cli.data.words import nearest, quote, text_of
from decal_cli.declarations.defaults import CONFIDENCE
from decal_cli.declarations.option import options_of
from decal_cli.documents import read_document, toml_of
from decal_cli.errors import DecalError
from decal_cli.limits import MAX_SETTINGS_BYTES
from decal_cli.render.terms import StatedTerms
from decal_cli.roles import DECLARATIONS, Columns, Role
from decal_cli.task import SPELLINGS


class Settings(dict[str, Any]):
    """What a settings file says, by the key that the command line has for it; of `input` paths as they are opened."""

    path: Path | None = None

    @contextmanager
    def blamed(self, line: Mapping[str, Any]) -> Iterator[None]:
        """Within it, an error about an option that these settings have, and the line does not, names their file."""
        try:
            yield
        except DecalError as error:
            if error.about.isdisjoint(self.keys() - line.keys()):
                raise
            problem, fix = error.given
            raise DecalError(f"{self.path}: {problem}", fix) from None


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
            return _said(settings, _parse(settings))
        project = base / "pyproject.toml"
        if project.is_file() and (table := _project_table(project)) is not None:
            return _said(project, table)
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


class _Kind(NamedTuple):
    """What a value must be: the test, its words, and how the value is kept."""

    test: Callable[[Any], bool]
    words: str
    kept: Callable[[Any], Any] = lambda value: value


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_number(value: Any) -> bool:
    """Finite int or float; TOML also knows inf and nan, and true is an int to Python."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300


def _is_matrix(value: Any) -> bool:
    rows = list(value.values()) if isinstance(value, dict) else value
    several_rows = isinstance(rows, list) and len(rows) >= 2
    return several_rows and all(isinstance(row, list) and len(row) >= 2 and all(map(_is_number, row)) for row in rows)


TEXT = _Kind(_is_text, "a non-empty text")
TEXTS = _Kind(
    lambda value: _is_text(value) or (isinstance(value, list) and all(map(_is_text, value))),
    "a non-empty text or a list of them",
    lambda value: (value,) if isinstance(value, str) else tuple(value),
)
VALUE = _Kind(
    lambda value: isinstance(value, (bool, int, float, str)) and bool(text_of(value)), "a non-empty text", text_of
)
MATRIX = _Kind(
    lambda value: isinstance(value, str) or _is_matrix(value),
    'a text "u00,u01;u10,u11", a file name, [[u00, u01], [u10, u11]] or {wait = [u00, u01], ...}',
)
_OF_TYPES = {
    bool: _Kind(lambda value: isinstance(value, bool), "true or false"),
    float: _Kind(_is_number, "a number", float),
    list[str]: TEXTS,
}
_OF_KEYS = {
    **dict.fromkeys(("input", "gates"), TEXTS),
    **dict.fromkeys(("baseline", "odds", "unit"), TEXT),
    **dict.fromkeys(("utility", "cost_matrix"), MATRIX),
    "task": _Kind(lambda value: isinstance(value, dict), "a table, such as task = {threshold = 0.3}"),
    "confidence": _Kind(
        lambda value: _is_number(value) and 0 < value < 1, f"a number between 0 and 1, such as {CONFIDENCE}", float
    ),
    "seed": _Kind(lambda value: type(value) is int and value >= 0, "a whole number, 0 or more"),
    "decisions": _Kind(lambda value: isinstance(value, str) or _is_number(value), "a number"),
    "names": TEXTS._replace(kept=lambda value: value),
}
"""Kinds of values that the types of declarations do not tell."""
_OPTIONS = {key: each for noun in (Rules, StatedTerms, Decision, Columns) for key, each in options_of(noun).items()}


def _kind(key: str) -> _Kind:
    """What a value must be under a key: as it is listed, else of the type that its declaration has."""
    if key in _OF_KEYS:
        return _OF_KEYS[key]
    option = _OPTIONS[key]
    if choices := option.choices:
        return _Kind(lambda value: value in choices, " or ".join(f'"{choice}"' for choice in choices))
    return _OF_TYPES.get(option.kind) or (TEXT if isinstance(option, Role) else VALUE)


_TASK = {key: _kind(key) for key in SPELLINGS}
_TOP = {key: _kind(key) for key in ("input", *DECLARATIONS, "task", "gates", "confidence", "seed", "baseline")}
_TOP |= {key: _kind(key) for key in ("undecided", "anytime", "family", *options_of(StatedTerms))}


def _said(path: Path, table: Mapping[str, Any]) -> Settings:
    """What a settings file says, checked key by key."""
    said = _read(path, table, _TOP)
    said |= _read(path, said.pop("task", {}), _TASK, "task.")
    for key in ("utility", "cost_matrix", "baseline"):
        is_file = key == "baseline" or str(said.get(key)).lower().endswith((".json", ".toml", ".csv"))
        if key in said and is_file:
            said[key] = str(path.parent / said[key])
    if "input" in said:
        said["input"] = [found for name in said["input"] for found in _files(path.parent, name)]
    settings = Settings({"rule" if key == "gates" else key: value for key, value in said.items()})
    settings.path = path
    return settings


def _read(path: Path, table: Mapping[str, Any], kinds: Mapping[str, _Kind], prefix: str = "") -> dict[str, Any]:
    """The values of a table. Errors: DecalError for an unknown key, or a value that is none of the key's."""
    for key in table:
        if key in kinds:
            continue
        name = key.replace("-", "_")
        if not prefix and name in SPELLINGS:
            fix = f"it belongs to the task: task = {{{name} = ...}}"
        elif near := nearest(name, tuple(kinds)):
            fix = f"did you mean {near!r}?"
        else:
            fix = "the keys are " + ", ".join(kinds)
        raise DecalError(f"{path}: unknown key {quote(prefix + key)}", fix)
    for key, value in table.items():
        if not kinds[key].test(value):
            raise DecalError(f"{path}: {prefix}{key} is {quote(value)}", f"it must be {kinds[key].words}")
    return {key: kind.kept(table[key]) for key, kind in kinds.items() if key in table}


def _files(folder: Path, name: str) -> list[str]:
    """The files of a name, beside the settings."""
    if name == "-":
        return [name]
    if any(c in name for c in "*?[") and not (folder / name).exists():
        import glob

        # Nothing expands a glob that stands in a file; no match is left for `read` to report.
        if matches := sorted(glob.glob(name, root_dir=folder)):
            return [str(folder / match) for match in matches]
    return [str(folder / name)]
