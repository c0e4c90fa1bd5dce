"""The house as one can see it: imports run one way, nothing heavy loads for --help, files stay small."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "decal_cli"
ROOMS = [
    {"errors"},
    {"task", "settings", "isotonic", "draw", "calls"},
    {"read", "table"},
    {"crossfit", "regions", "pairs"},
    {"probe"},
    {"metrics", "crossings"},
    {"bootstrap", "splice", "posttrain"},
    {"curves"},
    {"report"},
    {"flowchart", "gates", "comparison", "sweep"},
    {"trials"},
    {"verdict", "fitting", "study"},
    {"render"},
    {"plot"},
    {"options", "api"},
    {"session"},
    {"cli"},
    {"manual"},
]
RANK = {room: rank for rank, rooms in enumerate(ROOMS) for room in rooms}
HEAVY = ["numpy", "pandas", "scipy", "pyarrow", "sklearn", "rich", "matplotlib"]


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "decal_cli":
                names.update(f"decal_cli.{alias.name}" for alias in node.names)
            else:
                names.add(node.module)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    rooms = {name.split(".")[1] for name in names if name.startswith("decal_cli.")}
    return rooms & set(RANK)


SOURCES = [path for path in sorted(PACKAGE.rglob("*.py")) if not path.name.startswith("__") or path.parent != PACKAGE]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_imports_only_rooms_to_its_left(path: Path) -> None:
    own = room_of(path)
    assert own in RANK, f"{own} is not on the map: add it to ROOMS and to README's map"
    for other in imported_rooms(path) - {own}:
        assert RANK[other] < RANK[own], f"{own} imports {other}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_fits_on_a_few_screens(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


def loaded_by(arguments: list[str]) -> list[str]:
    code = (
        "import sys\nfrom decal_cli.cli import run\n"
        f"code = run({arguments!r})\n"
        f"print('LOADED', *[name for name in {HEAVY} if name in sys.modules], file=sys.stderr)\nsys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stderr.splitlines()[-1].split()[1:]


def test_help_loads_nothing_heavy() -> None:
    assert loaded_by(["--help"]) == []
    assert loaded_by(["evaluate", "--help"]) == []


def test_a_small_csv_is_evaluated_without_pandas_scipy_or_scikit_learn() -> None:
    fixture = str(PACKAGE.parent / "fixtures" / "binary_n2000.csv")
    loaded = loaded_by(["evaluate", fixture, "--score", "p", "--label", "y", "--threshold", "0.3"])
    assert set(loaded) <= {"numpy", "pyarrow", "rich"}


def test_the_readme_shows_the_rooms() -> None:
    readme = (PACKAGE.parent / "README.md").read_text()
    for room in RANK:
        assert f"  {room}" in readme, f"{room} is missing in README's map"
