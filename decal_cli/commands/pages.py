"""The generated blocks of README and of docs: what commands print, and tables of what is declared.

A block stands between `<!-- kind -->` and `<!-- end -->`; `<!-- run: command -->` shows what the command prints.
"""

from __future__ import annotations

import ast
import csv
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from inspect import getmodule
from pathlib import Path

from decal_cli.errors import Exit

PACKAGE = Path(__file__).resolve().parents[1]
FIXTURES = PACKAGE.parent / "fixtures"


def written_pages(root: Path) -> list[Path]:
    """README and every page of docs."""
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def made_anew(root: Path) -> dict[Path, str]:
    """Every page with its generated blocks made anew; a command that stands on several pages runs once."""
    texts = {path: path.read_text(encoding="utf-8") for path in written_pages(root)}
    lines = {block["line"] for text in texts.values() for block in GENERATED.finditer(text) if block["kind"] == "run"}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        printed = dict(zip(lines, pool.map(_console, lines), strict=True))

    def made(block: re.Match[str]) -> str:
        body = printed[block["line"]] if block["kind"] == "run" else _TABLES[block["kind"]]()
        return f"{block['start']}{body}\n{block['end']}"

    return {path: GENERATED.sub(made, text) for path, text in texts.items()}


def _console(line: str) -> str:
    """A console block with what commands print, one after the other.

    They run in a folder of their own that holds the fixtures, so that what they write is gone afterwards.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "fixtures").symlink_to(FIXTURES)
        shown = [f"$ {command}\n{_printed(command, folder)}" for command in line.split(" && ")]
    return "```console\n" + "\n".join(shown) + "```"


def _printed(command: str, folder: str) -> str:
    program, *arguments = shlex.split(command)
    assert program == "decal", command
    done = subprocess.run(
        [sys.executable, "-m", "decal_cli", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={"COLUMNS": "100", "PATH": os.defpath, "PYTHONPATH": str(PACKAGE.parent)},
        check=False,
    )
    printed = done.stdout + done.stderr + (f"[exit code {done.returncode}]\n" if done.returncode else "")
    if "fixtures/" not in command:
        # The bytes of a file that was just written, and so its digest, change with the library that wrote it.
        printed = re.sub(r"\|in:[0-9a-f]{8}\b", "|in:...", printed)
    if " --try" in command:
        # Processor time differs from run to run.
        printed = re.sub(r" +\d+\.\d\d s$", lambda time: "... s".rjust(len(time[0])), printed, flags=re.MULTILINE)
    return printed


def _exits() -> str:
    return _table(["code", "meaning"], ([str(code.value), code.meaning] for code in Exit))


def _metrics() -> str:
    """A table for each family, with the sentence that its file begins with."""
    from decal_cli.metrics import METRICS

    families = dict.fromkeys(metric.family for metric in METRICS.values())
    return "\n\n".join(f"## {name}\n\n{_family(name)}" for name in families)


def _family(name: str) -> str:
    from decal_cli.metrics import METRICS
    from decal_cli.metrics.inputs import INPUT_KINDS

    metrics = [metric for metric in METRICS.values() if metric.family == name]
    rows = [
        [
            f"`{metric.name}`",
            metric.better,
            ", ".join(sorted({INPUT_KINDS[need].name for need in metric.needs if INPUT_KINDS[need].absent})),
            metric.summary,
        ]
        for metric in metrics
    ]
    module = getmodule(metrics[0].function)
    sentence = _first_line(module.__doc__ if module else None)
    return f"{sentence}\n\n{_table(['metric', 'better', 'needs', 'what it is'], rows)}"


def _intervals() -> str:
    """How each metric's interval is made; metrics whose interval is made alike share a row."""
    from decal_cli.metrics import METRICS

    alike: dict[str, list[str]] = {}
    for metric in METRICS.values():
        alike.setdefault(metric.interval_text, []).append(f"`{metric.name}`")
    return _table(["interval", "metrics"], ([text, ", ".join(names)] for text, names in alike.items()))


def _methods() -> str:
    from decal_cli.learn.methods import METHODS

    rows = ([f"`{each.name}`", each.kind, ", ".join(each.needs), each.summary] for each in METHODS.values())
    return _table(["method", "kind", "needs", "what it is"], rows)


def _forecasters() -> str:
    from decal_cli.sequential import ONLINE

    kinds = {True: "recalibrates the score", False: "predicts the base rate"}
    rows = (
        [f"`{each.name}`", kinds[each.function.needs_score], "random" * each.randomised, each.summary]
        for each in ONLINE.values()
    )
    return _table(["forecaster", "kind", "", "what it is"], rows)


def _papers() -> str:
    """The papers that are cited, with the metrics and methods that name them as their source."""
    from decal_cli.declarations.papers import PAPERS
    from decal_cli.learn.methods import METHODS
    from decal_cli.metrics import METRICS
    from decal_cli.sequential import ONLINE

    sources = [(each.name, each.source + each.interval_text) for each in METRICS.values()]
    sources += [(each.name, each.source) for each in (*METHODS.values(), *ONLINE.values())]
    rows = (
        [paper, title, ", ".join(f"`{name}`" for name, source in sources if paper in source)]
        for paper, title in PAPERS.items()
    )
    return _table(["paper", "title", "source of"], rows)


def _columns() -> str:
    """What may be said of the columns: the option, which is also the key of a settings file."""
    from decal_cli.roles import DECLARATIONS, Role

    rows = []
    for name, declared in DECLARATIONS.items():
        usual = declared.usual if isinstance(declared, Role) else ()
        option = ", ".join(filter(None, (declared.flag, f"--{name.replace('_', '-')}")))
        rows.append([f"`{option}`", declared.help, ", ".join(f"`{each}`" for each in usual)])
    return _table(["option", "what it names", "found by itself where it is called"], rows)


def _formats() -> str:
    """What --format takes, and by which commands."""
    from typer.main import get_command

    from decal_cli.commands.app import app
    from decal_cli.render.formats import FORMATS

    commands = get_command(app).commands.values()  # type: ignore[attr-defined]
    choices = {each.name: option.metavar for each in commands for option in each.params if option.name == "format"}
    rows = []
    for name, declared in FORMATS.items():
        takers = [command for command, names in choices.items() if name in (names or "").split("|")]
        what = _first_line(declared.__doc__)
        rows.append([f"`{name}`", what, ", ".join(f"`{each}`" for each in takers)])
    return _table(["format", "what it is", "commands"], rows)


def _pairs() -> str:
    """A row for each capability and for each two of them, a column for each verb; refusals by number, listed below."""
    with (FIXTURES / "what_goes_with_what.csv").open(encoding="utf-8", newline="") as file:
        outcomes = {(row["verb"], row["first"], row["second"]): row["outcome"] for row in csv.DictReader(file)}
    verbs = list(dict.fromkeys(verb for verb, _, _ in outcomes))
    pairs = list(dict.fromkeys((first, second) for _, first, second in outcomes))
    reasons = list(dict.fromkeys(outcome for outcome in outcomes.values() if outcome != "works"))

    def cell(verb: str, pair: tuple[str, str]) -> str:
        outcome = outcomes[verb, pair[0], pair[1]]
        return "yes" if outcome == "works" else f"{reasons.index(outcome) + 1}"

    rows = ([" + ".join(filter(None, pair)), *(cell(verb, pair) for verb in verbs)] for pair in pairs)
    counts = (sum(outcomes[verb, first, second] == "works" for first, second in pairs) for verb in verbs)
    table = _table(["", *verbs], [*rows, [f"of {len(pairs)}", *map(str, counts)]])
    return "\n".join([table, "", *(f"{at}. {reason}" for at, reason in enumerate(reasons, 1))])


def _rooms() -> str:
    """The rooms from the top floor down, each with the sentence that it begins with."""
    floors = _floors()
    rows = (
        [str(floors[name]), f"[`{name}`](../decal_cli/{path.name})", _docstring(path)]
        for name, path in sorted(_room_paths().items(), key=lambda room: (-floors[room[0]], room[0]))
    )
    return _table(["floor", "room", "what it is for"], rows)


def _room_paths() -> dict[str, Path]:
    """A room is a file or a folder directly in the package."""
    files = {path.stem: path for path in PACKAGE.glob("[!_]*.py")}
    return files | {path.parent.name: path.parent for path in PACKAGE.glob("*/__init__.py")}


def _floors() -> dict[str, int]:
    """Room -> 0 where it imports no other, else one more than the highest room that it imports."""
    imports = {name: _imports(path) - {name} for name, path in _room_paths().items()}

    @cache
    def floor(name: str) -> int:
        return max((floor(other) + 1 for other in imports[name]), default=0)

    return {name: floor(name) for name in imports}


def _imports(room: Path) -> set[str]:
    files = [room] if room.is_file() else list(room.rglob("*.py"))
    names: set[str] = set()
    for node in (node for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))):
        if isinstance(node, ast.ImportFrom):
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return {name.split(".")[1] for name in names if name.startswith("decal_cli.")} & set(_room_paths())


def _docstring(room: Path) -> str:
    path = room if room.is_file() else room / "__init__.py"
    return _first_line(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))))


def _first_line(text: str | None) -> str:
    return text.splitlines()[0] if text else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in lines)


_TABLES: dict[str, Callable[[], str]] = {
    "columns": _columns,
    "exits": _exits,
    "formats": _formats,
    "intervals": _intervals,
    "methods": _methods,
    "forecasters": _forecasters,
    "metrics": _metrics,
    "pairs": _pairs,
    "papers": _papers,
    "rooms": _rooms,
}
"""What makes each kind of block that is not a run."""
GENERATED = re.compile(
    rf"(?P<start><!-- (?P<kind>run|{'|'.join(_TABLES)})(?:: (?P<line>.*?))? -->\n).*?(?P<end><!-- end -->)", re.DOTALL
)
