"""The conda recipe and the Dockerfile say what pyproject.toml does, and the image has what the wheel is built from."""

import re
import tomllib

from decal_cli.commands.demo import FILE
from tests.helpers.command import ROOT
from tests.helpers.release import PROJECT, versions

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RECIPE = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
CONDA_NAMES = {"duckdb": "python-duckdb"}
"""Where conda-forge calls a package otherwise."""


def listed(heading: str) -> list[str]:
    """The entries of a list of the recipe."""
    found = re.search(rf"^ +{heading}:\n((?: +- .*\n)+)", RECIPE, re.MULTILINE)
    assert found is not None
    return re.findall(r"- (.*)", found[1])


def spaced(requirement: str) -> str:
    name, version = re.fullmatch(r"([a-z-]+)(>=.*)", requirement.lower()).groups()  # type: ignore[union-attr]
    return f"{CONDA_NAMES.get(name, name)} {version}"


def test_there_is_one_version() -> None:
    assert versions() == PROJECT["version"]


def test_the_recipe_needs_what_the_project_needs() -> None:
    assert f'python_min: "{PROJECT["requires-python"].removeprefix(">=")}"' in RECIPE
    assert sorted(listed("run")) == sorted(["python >=${{ python_min }}", *map(spaced, PROJECT["dependencies"])])
    assert set(map(spaced, PYPROJECT["build-system"]["requires"])) <= set(listed("host"))
    assert listed("entry_points") == [f"{name} = {what}" for name, what in PROJECT["scripts"].items()]


def test_an_installed_package_brings_every_page_the_licence_and_the_file_of_the_demo() -> None:
    wheel = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["shared-data"] == {"man": "share/man/man1"}
    assert wheel["force-include"] == {f"fixtures/{FILE}": f"decal_cli/fixtures/{FILE}"}
    assert PROJECT["license"] == "BSD-3-Clause"
    assert all((ROOT / name).is_file() for name in PROJECT["license-files"])


def test_the_image_is_small_and_runs_without_rights() -> None:
    """As hadolint has it: DL3006, DL3042, DL3002, DL3066, DL3025."""
    froms = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert froms and all(re.fullmatch(r"python:3\.\d+-slim", each) for each in froms)
    assert all(
        "--no-cache-dir" in line for line in DOCKERFILE.splitlines() if re.search(r"\bpip (install|wheel)\b", line)
    )
    users = re.findall(r"^USER (\S+)", DOCKERFILE, re.MULTILINE)
    assert users and users[-1].isdigit() and int(users[-1]) > 0
    assert '\nENTRYPOINT ["decal"]\n' in DOCKERFILE


def test_the_image_is_built_from_all_that_a_wheel_holds() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    wheel = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*wheel["packages"], *wheel["shared-data"], *wheel["force-include"], *PROJECT["license-files"]}
    assert kept == needed | {"README.md", "pyproject.toml"}
