"""The generated blocks of README and of docs: what commands print, and tables of what is declared.

A block stands between `<!-- kind -->` and `<!-- end -->`; `<!-- run: command -->` shows what the command prints.
"""

from __future__ import annotations

import ast
import csv
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from decal_cli.commands.demo import SHOWN
from decal_cli.data.words import grouped
from decal_cli.declarations.papers import PAPERS
from decal_cli.errors import Exit

ROOT = Path(__file__).resolve().parents[1]
PACKAGE, FIXTURES = ROOT / "decal_cli", ROOT / "fixtures"


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

    anew = {path: GENERATED.sub(made, text) for path, text in texts.items()}
    return anew | {root / "docs" / "worth.svg": worth_chart(_json_of(SHOWN), SHOWN)}


_BAR, _LEFT, _WIDE = 30, 190, 430
"""Height of a bar and its gap, and columns of names and of bars, in the units of the picture."""


def worth_chart(report: Mapping[str, Any], command: str) -> str:
    """A bar for each way of acting: what it wins per 1,000 decisions over the better constant decision, as SVG."""
    metrics = {key: each["value"] for key, each in report["metrics"].items()}
    never, always, now = (metrics[key] for key in ("eu_never", "eu_always", "expected_utility"))
    best, at_stake = max(never, always), metrics["utility_at_stake"]
    ways = {
        "never act": never,
        "always act": always,
        "score as it is": now,
        "recalibrated score": now + metrics["gain_recalibration"],
        "score and features": now + metrics["gain_post_training"],
        "perfect knowledge": best + at_stake,
    }
    won = {name: 1000 * (value - best) for name, value in ways.items()}
    low = min(0.0, *won.values())
    scale = _WIDE / (max(won.values()) - low)
    start, high = _LEFT - low * scale, _BAR * len(won)
    lines = []
    for place, (name, value) in enumerate(won.items()):
        top, size = 34 + _BAR * place, abs(value) * scale
        left = start if value >= 0 else start - size
        fill = "#b5523b" if value < 0 else "#9aa5b1" if name == "perfect knowledge" else "#2f6f9f"
        lines += [
            f'<text x="{_LEFT - 30}" y="{top + 15}" text-anchor="end">{name}</text>',
            f'<rect x="{left:.1f}" y="{top}" width="{size:.1f}" height="20" fill="{fill}"/>',
            f'<text x="{start + max(value, 0.0) * scale + 6:.1f}" y="{top + 15}">{value:+.0f}</text>',
        ]
    title = "Won per 1,000 decisions, over the better of deciding all alike"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDE + 50} {high + 46}" role="img" '
            f'font-family="sans-serif" font-size="13">',
            f"<title>{title}: {', '.join(f'{name} {value:+.0f}' for name, value in won.items())}</title>",
            f"<desc>Made by: {command}</desc>",
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            f'<text x="12" y="20" font-weight="bold">{title}</text>',
            *lines,
            f'<line x1="{start:.1f}" y1="30" x2="{start:.1f}" y2="{high + 34}" stroke="#333333"/>',
            "</svg>\n",
        ]
    )


def _json_of(line: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "fixtures").symlink_to(FIXTURES)
        document: dict[str, Any] = json.loads(_printed(f"{line} --format json", folder))
    return document


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
        env={"COLUMNS": "100", "PATH": os.defpath, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    printed = done.stdout + done.stderr + (f"[exit code {done.returncode}]\n" if done.returncode else "")
    if "fixtures/" not in command:
        # The bytes of a file that was just written, and so its digest, change with the library that wrote it.
        printed = re.sub(r"\|in:[0-9a-f]{8}\b", "|in:...", printed)
    # No page hangs on how long a run took.
    printed = re.sub(r' time="[0-9.]+"', ' time="..."', printed)
    if " --try" in command:
        # Processor time differs from run to run.
        printed = re.sub(r" +\d+\.\d\d s$", lambda time: "... s".rjust(len(time[0])), printed, flags=re.MULTILINE)
    return printed


_ARROWS = {"higher": " ↑", "lower": " ↓", "zero": " → 0", "one": " → 1"}


def _metrics() -> str:
    """A list for each family: its sentence, what all of it needs, and its metrics."""
    from decal_cli.metrics import METRICS
    from decal_cli.metrics.declare import FAMILIES
    from decal_cli.metrics.inputs import INPUT_KINDS

    families: dict[str, dict[str, Any]] = {}
    for name, metric in METRICS.items():
        families.setdefault(metric.family, {})[name] = metric
    parts = []
    for family, metrics in families.items():
        needs = {
            name: ", ".join(sorted({INPUT_KINDS[need].name for need in metric.needs if INPUT_KINDS[need].absent}))
            for name, metric in metrics.items()
        }
        shared = next(iter(needs.values())) if len(set(needs.values())) == 1 else ""
        lines = [f"## {family}", "", FAMILIES[family] + (f" Needs: {shared}." if shared else ""), ""]
        for name, metric in metrics.items():
            own = f" ({needs[name]})" if needs[name] and not shared else ""
            if not name.endswith("_null"):
                lines.append(f"- `{name}`{_ARROWS.get(metric.better, '')}{own}: {metric.summary}")
        if nulls := ", ".join(f"`{name}`" for name in metrics if name.endswith("_null")):
            lines.append(
                f"- {nulls}: what chance alone shows of it, for a perfectly calibrated model with these scores."
            )
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _methods() -> str:
    """A list for each kind."""
    from decal_cli.learn.method import Method
    from decal_cli.learn.methods import METHODS

    def line(each: Method) -> str:
        besides = [need for need in each.needs if need != "features"]
        needs = f" (needs {', '.join(besides)})" if besides else ""
        return f"- `{each.name}`{needs}: {each.summary}"

    kinds = grouped((each.kind, line(each)) for each in METHODS.values())
    return "\n\n".join(f"## {kind.capitalize()}\n\n" + "\n".join(lines) for kind, lines in kinds.items())


def _forecasters() -> str:
    """A list of those that recalibrate the score, and one of those that predict the base rate."""
    from decal_cli.sequential import ONLINE

    lines = {
        needed: "\n".join(
            f"- `{each.name}`{' (random)' * each.randomised}: {each.summary}"
            for each in ONLINE.values()
            if each.function.needs_score == needed
        )
        for needed in (True, False)
    }
    return f"They recalibrate the score:\n\n{lines[True]}\n\nThey predict the base rate:\n\n{lines[False]}"


def _formats() -> str:
    """What --format takes, and by which commands."""
    from typer.main import get_command

    from decal_cli.commands.app import app
    from decal_cli.render.formats import FORMATS

    commands = get_command(app).commands.values()  # type: ignore[attr-defined]
    choices = {each.name: option.metavar for each in commands for option in each.params if option.name == "format"}
    printing = [command for command, names in choices.items() if "table" in (names or "").split("|")]
    rows = []
    for name, declared in FORMATS.items():
        takers = [command for command, names in choices.items() if name in (names or "").split("|")]
        missing = [command for command in printing if command not in takers]
        few = len(takers) <= len(missing)
        named = ", ".join(f"`{each}`" for each in (takers if few else missing))
        rows.append(
            [f"`{name}`", _first_line(declared.__doc__), named if few else f"all but {named}" if named else "all"]
        )
    return _table(["format", "what it is", "commands"], rows)


def _pairs() -> str:
    """What each verb refuses: a capability with whatever else, or two that it takes by themselves; and why."""
    with (FIXTURES / "what_goes_with_what.csv").open(encoding="utf-8", newline="") as file:
        outcomes = {(row["verb"], row["first"], row["second"]): row["outcome"] for row in csv.DictReader(file)}
    refused = {key: reason for key, reason in outcomes.items() if reason != "works"}
    verbs = grouped(
        ((" + ".join(filter(None, (first, second))), reason.partition(" (Poss")[0]), verb)
        for (verb, first, second), reason in refused.items()
        if not second or ((verb, first, "") not in refused and (verb, second, "") not in refused)
    )
    whats = grouped(
        ((", ".join(named), re.sub("^no such option: .*", "no such option", why)), what)
        for (what, why), named in verbs.items()
    )
    return _table(["verb", "refuses", "the answer"], ([by, ", ".join(what), why] for (by, why), what in whats.items()))


def _rooms() -> str:
    """The rooms from the top floor down, each with the sentence that it begins with.

    A room is a file or a folder directly in the package. It stands on the floor above all that it imports.
    """
    rooms = {path.stem: path for path in PACKAGE.glob("[!_]*.py")}
    rooms |= {path.parent.name: path.parent for path in PACKAGE.glob("*/__init__.py")}
    files = {name: [path] if path.is_file() else sorted(path.rglob("*.py")) for name, path in rooms.items()}
    texts = {name: [path.read_text(encoding="utf-8") for path in paths] for name, paths in files.items()}
    imports = {
        name: set(re.findall(r"^ *from decal_cli\.(\w+)", "\n".join(each), re.M)) for name, each in texts.items()
    }

    @cache
    def floor(name: str) -> int:
        return max((floor(other) + 1 for other in imports[name] - {name}), default=0)

    rows = (
        [str(floor(name)), f"[`{name}`](../decal_cli/{rooms[name].name})", _first_line(ast.get_docstring(tree))]
        for name in sorted(rooms, key=lambda name: (-floor(name), name))
        for tree in [ast.parse(texts[name][0])]
    )
    return _table(["floor", "room", "what it is for"], rows)


def _first_line(text: str | None) -> str:
    return text.splitlines()[0] if text else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in lines)


_TABLES: dict[str, Callable[[], str]] = {
    "exits": lambda: _table(["code", "meaning"], ([str(code.value), code.meaning] for code in Exit)),
    "formats": _formats,
    "methods": _methods,
    "forecasters": _forecasters,
    "metrics": _metrics,
    "pairs": _pairs,
    "papers": lambda: "\n".join(f"- {paper}: {title}" for paper, title in PAPERS.items()),
    "rooms": _rooms,
}
"""What makes each kind of block that is not a run."""
GENERATED = re.compile(
    rf"(?P<start><!-- (?P<kind>run|{'|'.join(_TABLES)})(?:: (?P<line>.*?))? -->\n).*?(?P<end><!-- end -->)", re.DOTALL
)
