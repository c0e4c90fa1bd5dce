"""The house as one can see it: imports run one way, nothing heavy loads for --help, tests share helpers and not
each other."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from decal_cli.commands.app import COMMANDS

PACKAGE = Path(__file__).parent.parent / "decal_cli"
ROOMS = [
    *("hints", "errors", "limits", "numbers", "version"),
    "documents",
    *("declarations", "task", "roles"),
    "tables",
    "data",
    "learn",
    "metrics",
    "curves",
    "sequential",
    "analysis",
    "render",
    *("plot", "api"),
    *("commands", "integrations"),
]
"""From the bottom up: a room imports only from rooms before it."""
HEAVY = ["numpy", "pandas", "scipy", "pyarrow", "sklearn", "rich", "matplotlib", "pydantic"]
LEANS_ON_THE_ONE_ABOVE = re.compile(r"(The same|That of|Those|Of|It|They|Whose)\b")
SOURCES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted(Path(__file__).parent.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_modules(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom):
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return names


def imported_rooms(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imported_modules(path) if name.startswith("decal_cli.")}


def test_a_room_imports_only_rooms_below_it() -> None:
    rank = {room: place for place, room in enumerate(ROOMS)}
    inside = [path for path in SOURCES if not path.name.startswith("__") or path.parent != PACKAGE]
    unknown = {room_of(path) for path in inside} - set(rank)
    assert not unknown, f"add to ROOMS and to the map in docs: {unknown}"
    upward = [
        f"{path.relative_to(PACKAGE)} imports {room}"
        for path in inside
        for room in imported_rooms(path) - {room_of(path)}
        if rank[room] >= rank[room_of(path)]
    ]
    assert not upward


def test_no_class_name_has_two_meanings() -> None:
    names = Counter(node.name for path in SOURCES for node in tree_of(path).body if isinstance(node, ast.ClassDef))
    assert not [name for name, times in names.items() if times > 1]


def docstrings_of(path: Path) -> Iterator[tuple[int, str]]:
    """The line and the text of every docstring and of every string below an attribute."""
    for node in ast.walk(tree_of(path)):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            match statement:
                case ast.Expr(ast.Constant(str(text))):
                    yield statement.lineno, text.strip()


def test_a_docstring_says_what_it_is_about() -> None:
    assert not [
        f"{path.relative_to(PACKAGE)}:{line}: {text.splitlines()[0]}"
        for path in SOURCES
        for line, text in docstrings_of(path)
        if LEANS_ON_THE_ONE_ABOVE.match(text)
    ]


def loaded_by(*lines: list[str]) -> list[str]:
    code = (
        "import sys\nfrom decal_cli.commands.app import run\n"
        f"code = max(run(line) for line in {lines!r})\n"
        f"print('LOADED', *[name for name in {HEAVY} if name in sys.modules], file=sys.stderr)\nsys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stderr.splitlines()[-1].split()[1:]


def test_help_loads_nothing_heavy() -> None:
    """Typer loads rich to write help, and pydantic where an option that is not given is None."""
    assert loaded_by(["--help"], *([name, "--help"] for name in COMMANDS)) == []


def test_a_small_csv_is_evaluated_without_pandas_scipy_or_scikit_learn() -> None:
    fixture = str(PACKAGE.parent / "fixtures" / "binary_n2000.csv")
    loaded = loaded_by(["evaluate", fixture, "--score", "p", "--label", "y", "--threshold", "0.3"])
    assert set(loaded) <= {"numpy", "pyarrow", "rich", "pydantic"}


def test_no_test_module_imports_another() -> None:
    assert not [
        f"{path.name} imports {name}"
        for path in TESTS
        for name in imported_modules(path)
        if name.startswith("tests.") and not name.startswith(("tests.helpers.", "tests.fuzz"))
    ]


def public_names(path: Path) -> set[str]:
    """Functions, classes and constants of a module, without the tests."""
    names: set[str] = set()
    for node in tree_of(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return {name for name in names if not name.startswith(("_", "test_", "Test"))}


def test_the_name_of_a_helper_means_one_thing_in_all_tests() -> None:
    homes: dict[str, list[str]] = {}
    for path in TESTS:
        for name in public_names(path):
            homes.setdefault(name, []).append(path.relative_to(PACKAGE.parent).as_posix())
    assert not {name: paths for name, paths in homes.items() if len(paths) > 1 and "tests/helpers/" in str(paths)}
