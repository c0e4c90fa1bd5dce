"""Do the tests notice a fault of one line? `python -m tests.helpers.mutants [COUNT [SEED]]` seeds faults and says.

Each fault is put into a copy of the project. First the tests that mirror the file run, then those that guard all of
it: the loop over rows, limits, lines that are refused or answered, and the frozen record of numbers and texts. Last
come all tests that import the package of the file.
"""

import ast
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.helpers.command import ROOT

WANTED_SHARE = 0.95
GUARDS = ["tests/test_row_oracle.py", "tests/test_limits.py", "tests/commands/test_lines.py", "tests/test_frozen.py"]
GUARDS += ["-m", ""]
"""Numbers of the frozen record, and its texts, which are compared in CI alone."""
_LONGEST = 600
"""Seconds of processor time that ten files of tests may take; a fault that makes them run on is noticed."""
_SWAPPED = {ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")}
_SIGNS = {ast.Add: ("+", "-"), ast.Sub: ("-", "+")}


class Fault(NamedTuple):
    """A line of a file, and what stands in its place."""

    path: Path
    line: int
    before: str
    after: str
    kind: str

    def put(self, root: Path) -> None:
        file = root / self.path
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        lines[self.line - 1] = self.after + "\n"
        file.write_text("".join(lines), encoding="utf-8")


def faults_in(path: Path, text: str) -> Iterator[Fault]:
    """Every fault that one line of a function allows; annotations and errors that are raised are let alone."""
    lines = [line.encode() for line in text.splitlines()]
    for function in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)):
        for node in (inner for statement in function.body for inner in _reached(statement)):
            for kind, line, start, end, instead in _edits(node, lines):
                raw = lines[line - 1]
                after = raw[:start] + instead.encode() + raw[end:]
                yield Fault(path, line, raw.decode(), after.decode(), kind)


def _reached(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, but for functions of its own, which come by themselves."""
    if isinstance(node, ast.Raise | ast.Assert | ast.FunctionDef | ast.ClassDef | ast.JoinedStr):
        return
    yield node
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in ("annotation", "returns"):
                yield from _reached(child)


def _edits(node: Any, lines: list[bytes]) -> Iterator[tuple[str, int, int, int, str]]:
    """Kind, line, columns, and what stands between these columns instead."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPPED:
        yield from _swapped("comparison", node.left, node.comparators[0], lines, _SWAPPED[type(node.ops[0])])
    elif isinstance(node, ast.BinOp):
        if type(node.op) in _SIGNS and not isinstance(node.left, ast.Constant | ast.JoinedStr):
            yield from _swapped("sign", node.left, node.right, lines, _SIGNS[type(node.op)])
        for one, other in ((node.left, node.right), (node.right, node.left)):
            weight = isinstance(node.op, ast.Mult) and "weight" in ast.unparse(one)
            if weight and node.lineno == node.end_lineno:
                kept = f"({lines[node.lineno - 1][other.col_offset : other.end_col_offset].decode()})"
                yield "dropped weight", node.lineno, node.col_offset, node.end_col_offset, kept
            if isinstance(node.op, ast.Add | ast.Sub) and isinstance(one, ast.Constant) and type(one.value) is int:
                yield "off by one", one.lineno, one.col_offset, one.end_col_offset, str(one.value + 1)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
        yield "sign", node.lineno, node.col_offset, node.col_offset + 1, "+"


def _swapped(
    kind: str, left: Any, right: Any, lines: list[bytes], swap: tuple[str, str]
) -> Iterator[tuple[str, int, int, int, str]]:
    """Another operator between two expressions on one line."""
    between = lines[right.lineno - 1][left.end_col_offset : right.col_offset].decode()
    if left.end_lineno == right.lineno and between.count(swap[0]) == 1:
        yield kind, right.lineno, left.end_col_offset, right.col_offset, between.replace(*swap)


@cache
def _faults_by_room() -> dict[str, list[Fault]]:
    """Room -> faults, each once."""
    by_room: dict[str, list[Fault]] = {}
    for file in sorted((ROOT / "decal_cli").rglob("*.py")):
        path = file.relative_to(ROOT)
        for fault in faults_in(path, file.read_text(encoding="utf-8")):
            by_room.setdefault(path.parts[1], []).append(fault)
    return {room: [*dict.fromkeys(faults)] for room, faults in by_room.items()}


def chosen_faults(count: int, seed: int) -> list[Fault]:
    """Of as many rooms as there are, kinds alike often, none twice."""
    rng, left = random.Random(seed), {room: [*faults] for room, faults in _faults_by_room().items() if len(faults) >= 5}
    chosen: list[Fault] = []
    while any(left.values()) and len(chosen) < count:
        for room in rng.sample(sorted(left), len(left)):
            kinds = sorted({fault.kind for fault in left[room]})
            if kinds:
                kind = rng.choice(kinds)
                chosen.append(rng.choice([fault for fault in left[room] if fault.kind == kind]))
                left[room].remove(chosen[-1])
    return chosen[:count]


def mirrors(path: Path) -> list[str]:
    """Test files of the same name in the same room, and those that import the module; else the tests of the room."""
    module, package, name = _names(path)
    imported = rf"from {module} import|import {module}\b|from {package} import .*\b{name}\b"
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    name_of_room = path.parts[1].removesuffix(".py")
    room = [file for file in tests if {name_of_room, f"test_{name_of_room}.py"} & {*file.relative_to(ROOT).parts}]
    found = [file.relative_to(ROOT).as_posix() for file in room if file.stem == f"test_{path.stem}"]
    return [*dict.fromkeys(found + _matching(imported))] or [file.relative_to(ROOT).as_posix() for file in room]


def users(path: Path) -> list[str]:
    """Other test files that import the package, which hands on what the module defines."""
    _, package, _ = _names(path)
    return [file for file in _matching(rf"from {package} import") if file not in mirrors(path)]


def _names(path: Path) -> tuple[str, str, str]:
    """Module, its package, and its own name."""
    module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    return module, *module.rpartition(".")[::2]


def _matching(line: str) -> list[str]:
    """Test files with a line that begins like this."""
    begins = re.compile(rf"^\s*({line})", re.MULTILINE)
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    return [file.relative_to(ROOT).as_posix() for file in tests if begins.search(file.read_text(encoding="utf-8"))]


def first_failure(root: Path, tests: list[str]) -> str | None:
    """The test that notices, if any does."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "--no-header", "-p", "no:cacheprovider"]
    # As CI does, unless the tests say which.
    command += ["-m", "not long", *tests]
    # Threads of linear algebra wait for each other where other programs run.
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    seconds = _LONGEST * (1 + len(tests) // 10)
    limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))  # noqa: E731
    ended = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, preexec_fn=limit)
    if ended.returncode < 0:
        return "tests that do not end"
    if ended.returncode == 0:
        return None
    return next(iter(re.findall(r"^(?:FAILED|ERROR) (\S+)", ended.stdout, re.MULTILINE)), "no test could start")


def seed_faults(arguments: list[str]) -> int:
    count, seed = (*map(int, arguments), *(40, 0)[len(arguments) :])
    caught = 0
    for fault in chosen_faults(count, seed):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder, "project")
            shutil.copytree(
                ROOT, root, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", "build")
            )
            fault.put(root)
            # Whatever notices is found soon mostly; what none of these notices meets all tests.
            runs = (mirrors(fault.path), GUARDS, users(fault.path), _matching(""))
            by = next(filter(None, (first_failure(root, tests) for tests in runs if tests)), None)
        caught += by is not None
        said = f"caught by {by}" if by else "NOT CAUGHT"
        print(
            f"{said}: {fault.path}:{fault.line}, {fault.kind}\n- {fault.before.strip()}\n+ {fault.after.strip()}",
            flush=True,
        )
    print(f"{caught} of {count} caught")
    return int(caught < WANTED_SHARE * count)


if __name__ == "__main__":
    sys.exit(seed_faults(sys.argv[1:]))
