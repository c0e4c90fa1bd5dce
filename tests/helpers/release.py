"""`make release-check`: build decal as a release is built, and run it from each archive alone.

`python -m tests.helpers.release` prints a line for each step and ends in 1 where one fails. With --tests, the tests run
from the sdist with the oldest and with the newest libraries; without, a few of them do.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = PROJECT["version"]
VERSION_PLACES = {
    "decal_cli/__init__.py": '__version__ = "{}"',
    "decal_cli/version.py": '__version__ = "{}"',
    "recipe/recipe.yaml": '  version: "{}"',
    "CITATION.cff": "version: {}",
    "CHANGELOG.md": "## {}",
}
"""Where the version of pyproject.toml stands too, as a line."""
MAX_WHEEL = 1_200_000
A_FEW = [
    "tests/commands/test_demo.py",
    "tests/commands/test_gate.py",
    "tests/api",
    "tests/learn",
    "tests/test_frozen.py",
]
"""Tests that touch every library which decal needs."""
KEPT = ("HOME", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
"""What installers need to reach their registry, beside the settings of pip and uv; a run of decal gets none of it."""


class StepFailed(Exception):
    """A step that does not hold, and why."""


def bare(folder: Path) -> dict[str, str]:
    """The environment of a user who has set nothing."""
    return {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}


def call(*words: str | Path, folder: Path, env: dict[str, str] | None = None, codes: tuple[int, ...] = (0,)) -> str:
    """What a command prints. Errors: StepFailed, with its last lines, where it ends in another code."""
    installing = {k: v for k, v in os.environ.items() if k in KEPT or k.startswith(("PIP_", "UV_"))}
    environment = {**bare(folder), **installing} if env is None else env
    done = subprocess.run(
        list(map(str, words)), cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode not in codes:
        raise StepFailed(f"{' '.join(map(str, words))}: {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def versions() -> str:
    """The version that stands in every place. Errors: StepFailed, where one has another, or a page names another."""
    for place, line in VERSION_PLACES.items():
        if f"\n{line.format(VERSION)}\n" not in (CHECKOUT / place).read_text(encoding="utf-8"):
            raise StepFailed(f"{VERSION} is not the version of {place}")
    for page in ("README.md", "docs/gates.md"):
        named = re.findall(r"(?:decal==|decal@v|rev: v)([\d.]*\d)", (CHECKOUT / page).read_text(encoding="utf-8"))
        if set(named) != {VERSION}:
            raise StepFailed(f"{page} names {sorted(set(named))} and not {VERSION}")
    return VERSION


def archives(work: Path, tools: Path) -> tuple[Path, Path]:
    """An sdist of what git has, and the wheel that is built from it; twice, byte for byte the same."""
    listed = call("git", "ls-files", "-z", folder=CHECKOUT).split("\0")[:-1]
    digests: list[dict[str, str]] = []
    for attempt in ("first", "second"):
        source, out = work / attempt / "source", work / attempt / "out"
        for name in listed:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, source / name)
        epoch = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
        call(tools / "python", "-m", "build", "--outdir", out, source, folder=work, env=epoch)
        digests.append({path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in out.iterdir()})
    if digests[0] != digests[1]:
        raise StepFailed(f"two builds differ: {digests}")
    sdist, wheel = out / f"decal-{VERSION}.tar.gz", out / f"decal-{VERSION}-py3-none-any.whl"
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    if missing := set(listed) - inside:
        raise StepFailed(f"the sdist lacks {sorted(missing)}")
    if wheel.stat().st_size > MAX_WHEEL:
        raise StepFailed(f"the wheel has {wheel.stat().st_size:,} bytes, more than {MAX_WHEEL:,}")
    call(tools / "twine", "check", "--strict", sdist, wheel, folder=work)
    return sdist, wheel


def environment(work: Path, tools: Path, name: str, what: str, *options: str) -> Path:
    """The programs of a new environment in which an archive is installed; uv trusts whom the system trusts, as pip."""
    call(sys.executable, "-m", "venv", "--without-pip", work / name, folder=work)
    python = work / name / "bin" / "python"
    call(tools / "uv", "pip", "install", "--quiet", "--system-certs", "--python", python, *options, what, folder=work)
    return work / name / "bin"


def wheel_alone(work: Path, tools: Path, wheel: Path) -> str:
    """Demo, gate and report in an empty folder and an empty environment."""
    bin = environment(work, tools, "alone", f"{wheel}[plot]")
    folder = work / "user"
    folder.mkdir()
    user = bare(folder)
    shown = call(bin / "decal", "demo", folder=folder, env=user)
    rows = ("fixtures/fox_news.parquet", "--score", "p_hatesonar", "--label", "y", "--threshold", "0.3")
    call(bin / "decal", "gate", *rows, "--rule", "gain_recalibration<=0.01", folder=folder, env=user)
    call(bin / "decal", "gate", *rows, "--rule", "auc>=0.8", folder=folder, env=user, codes=(1,))
    call(bin / "decal", "report", *rows, "-o", "report.html", folder=folder, env=user)
    page = (folder / "report.html").read_text(encoding="utf-8")
    if "<svg" not in page and "data:image/" not in page:
        raise StepFailed("the report has no pictures")
    version = call(bin / "python", "-m", "decal_cli", "--version", folder=folder, env=user)
    return f"{version.strip()}; demo prints {len(shown.splitlines())} lines; report has {len(page):,} bytes"


def tests_pass(work: Path, tools: Path, sdist: Path, name: str, every: bool, *options: str) -> str:
    """The tests of the sdist, run where it was unpacked, with what `options` choose of the libraries."""
    shutil.unpack_archive(sdist, work / name)  # with no filter, which Python has from 3.11.4 on: it was built above
    folder = work / name / f"decal-{VERSION}"
    bin = environment(work, tools, f"{name}-libraries", f"{folder}[dev]", *options, "--editable")
    chosen = [] if every else A_FEW
    return call(bin / "python", "-m", "pytest", *chosen, folder=folder, env=bare(work)).splitlines()[-1]


def walk(arguments: list[str]) -> int:
    """Walk the list; 1 where a step fails."""
    every = "--tests" in arguments
    with tempfile.TemporaryDirectory(prefix="decal-release-") as place:
        work, tools = Path(place), Path(place, "tools", "bin")
        call(sys.executable, "-m", "venv", tools.parent, folder=work)
        call(tools / "python", "-m", "pip", "install", "--quiet", "build", "twine", "uv", folder=work)
        built: list[Path] = []

        def build() -> str:
            built.extend(archives(work, tools))
            sizes = ", ".join(f"{path.name} {path.stat().st_size:,} bytes" for path in built)
            return f"{sizes}; the same twice; twine check --strict passes"

        steps: dict[str, Callable[[], str]] = {
            "one version": versions,
            "sdist and wheel": build,
            "from the wheel alone": lambda: wheel_alone(work, tools, built[1]),
            "oldest libraries": lambda: tests_pass(
                work, tools, built[0], "oldest", every, "--resolution", "lowest-direct"
            ),
            "newest libraries": lambda: tests_pass(work, tools, built[0], "newest", every),
        }
        for name, step in steps.items():
            try:
                print(f"{name}: {step()}", flush=True)
            except StepFailed as error:
                print(f"{name}: FAILED: {error}", flush=True)
                return 1
    if "OWNER" in PROJECT["urls"]["Source"]:
        print("by hand: name the owner of the repository in place of OWNER (git grep OWNER/decal), then tag and upload")
    return 0


if __name__ == "__main__":
    sys.exit(walk(sys.argv[1:]))
