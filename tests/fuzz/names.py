"""Hostile names in every place that others can name, through every command and format.

A run ends with 0, 1 or 2, never with a bug, a traceback or a warning. An error is one line. Nothing that is written
holds what a terminal, a CI system, a browser, a Markdown page or a spreadsheet would act on.
"""

import csv
import io
import json
import random
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.helpers.command import run_here
from tests.helpers.hostile import PAYLOADS, acted_on, check_text

_N_ROWS = 120


@dataclass
class _Case:
    """One run: its arguments, the files it finds, and what it writes in which format."""

    line: list[str]
    files: dict[str, bytes] = field(default_factory=dict)
    output: str | None = None
    form: str = "table"


def _columns_of(rng: random.Random, names: dict[str, str], values: list[str]) -> dict[str, list[Any]]:
    """Columns of rows in which the scores mean something; names: role -> column, values: of groups and categories."""
    chance = [rng.random() for _ in range(_N_ROWS)]
    columns = {
        "score": [min(max(p + rng.gauss(0, 0.1), 0.01), 0.99) for p in chance],
        "other": [rng.random() for _ in chance],
        "label": [int(rng.random() < p) for p in chance],
        "group": [rng.choice(values) for _ in chance],
        "feature": [rng.random() for _ in chance],
        "category": [rng.choice(values) for _ in chance],
        "id": list(range(_N_ROWS)),
    }
    return {names[role]: column for role, column in columns.items()}


def _file_of(rng: random.Random, columns: dict[str, list[Any]]) -> bytes:
    """The columns in some format; CSV and Parquet hold whole Unicode only."""
    form = rng.choice(["csv", "jsonl", "parquet"])
    texts = [*columns, *(v for column in columns.values() for v in column if isinstance(v, str))]
    if form == "jsonl" or any(not _encodable(text) for text in texts):
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    if form == "parquet":
        sink = io.BytesIO()
        pq.write_table(pa.table(columns), sink)
        return sink.getvalue()
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([columns, *zip(*columns.values(), strict=True)])
    return out.getvalue().encode()


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _names_of(rng: random.Random, payload: Callable[[], str]) -> dict[str, str]:
    """A name for each role, of which some are hostile and none is there twice."""
    plain = {"score": "p", "other": "q", "label": "y", "group": "g", "feature": "x", "category": "c", "id": "id"}
    for role in rng.sample(list(plain), rng.choice([1, 1, 2, 7])):
        name = payload()
        if name not in plain.values():
            plain[role] = name
    return plain


def _file_name(text: str, suffix: str) -> str:
    """The payload as the name of a file."""
    stem = (
        (text or "data")
        .replace("/", "_")
        .replace("\0", "_")
        .encode("utf-8", "surrogateescape" if _escapable(text) else "replace")
    )
    return stem[:240].decode("utf-8", "ignore" if not _escapable(text) else "surrogateescape") + suffix


def _escapable(text: str) -> bool:
    return all(not 0xD800 <= ord(c) <= 0xDFFF or 0xDC80 <= ord(c) <= 0xDCFF for c in text)


WRITES = {
    "evaluate": ("table", "json", "csv", "html", "markdown"),
    "recommend": ("table", "json", "csv", "html", "markdown"),
    "gate": ("table", "json", "csv", "html", "markdown", "github", "junit"),
    "compare": ("table", "json", "csv", "html", "markdown"),
    "sweep": ("table", "json", "csv", "html", "markdown", "parquet"),
    "fit": ("table",),
    "apply": ("table",),
    "report": ("html",),
    "study": ("table", "json", "csv", "html", "markdown"),
    "methods": ("table",),
    "metrics": ("table",),
}
"""Command -> the formats that it writes."""
_SLOW = ("recommend", "report", "study")
_SLOW_SHARE = 0.04
_FAST_LINES, _SLOW_LINES = (
    [(command, form) for command, forms in WRITES.items() for form in forms if (command in _SLOW) == slow]
    for slow in (False, True)
)
_SUFFIXES = {"json": ".json", "csv": ".csv", "html": ".html", "markdown": ".md", "junit": ".xml", "parquet": ".parquet"}


def _case_of(rng: random.Random, command: str, form: str) -> _Case:
    """A run of this command in which one to a few of the names are hostile."""

    def payload() -> str:
        return rng.choice(PAYLOADS) if rng.random() < 0.9 else rng.choice(PAYLOADS) + rng.choice(PAYLOADS)

    if command in ("methods", "metrics"):
        return _Case([command, payload()])
    names = _names_of(rng, payload)
    values = [payload(), payload()] if rng.random() < 0.7 else ["a", "b"]
    name = _file_name(payload(), rng.choice(["", ".csv", ".parquet"])) if rng.random() < 0.5 else "data"
    case = _Case([], {name: _file_of(rng, _columns_of(rng, names, values))}, form=form)
    path = name if rng.random() < 0.3 else f"./{name}"
    score = [f"--score={names['score']}", *([f"--score={names['other']}"] * (command == "compare"))]
    source = [*score, f"--label={names['label']}"]
    if rng.random() < 0.6 and command not in ("fit", "study"):
        source.append(f"--group={names['group']}")
    if command in ("recommend", "report", "study") or rng.random() < 0.3:
        source += [f"--features={names['feature']}", f"--features={names['category']}"]
    if rng.random() < 0.15:
        source[rng.randrange(len(source))] += rng.choice(PAYLOADS)
    if "\0" in "".join([path, *source]):
        # No command line can hold it; a settings file can.
        source = [text.replace("\0", "") for text in source]
    more = _more(rng, command, payload, case)
    if rng.random() < 0.15:
        case.files[rng.choice(["decal.toml", "pyproject.toml"])] = _settings_of(rng, payload)
    if form != "table" and command != "report":
        more.append(f"--format={form}")
    if command == "report" or form == "parquet" or (rng.random() < 0.3 and command not in ("study", "fit", "apply")):
        case.output = _file_name(payload(), _SUFFIXES.get(form, ".txt"))
        more.append(f"--output=./{case.output}")
    case.line = [text.replace("\0", "") for text in _line(rng, command, path, source, more, case, payload)]
    return case


def _line(
    rng: random.Random, command: str, path: str, source: list[str], more: list[str], case: _Case, payload: Any
) -> list[str]:
    if command == "fit":
        method = (
            rng.choice(["platt", "isotonic", "glar", "stack", "multicalibration"]) if rng.random() < 0.9 else payload()
        )
        return ["fit", *source, *more, f"--output=./{_file_name(payload(), '.json')}", "--", method, path]
    if command == "apply":
        case.files["model.json"] = _model_file(rng, source, path, case)
        named = [f"--name={payload()}"] if rng.random() < 0.6 else []
        return [
            "apply",
            *named,
            f"--output=./{_file_name(payload(), rng.choice(['.csv', '.parquet']))}",
            "model.json",
            path,
        ]
    if command == "study":
        fast = ["--method=platt", "--method=isotonic", "--seeds=1", "--workers=1", "--thresholds=0.3,0.5"]
        return ["study", *source, *more, *fast, f"--output=./{_file_name(payload(), '')}", "--", path]
    return [command, *source, *more, "--", path]


def _more(rng: random.Random, command: str, payload: Callable[[], str], case: _Case) -> list[str]:
    """Options, some of them hostile."""
    odd = rng.random() < 0.25
    more = []
    if command in ("evaluate", "compare", "sweep"):
        more.append("--no-intervals")
    if command in ("evaluate", "compare"):
        more.append(f"--metric={payload() if odd else 'brier'}")
    if command in ("recommend", "gate", "fit", "report"):
        more.append(f"--threshold={payload() if odd and rng.random() < 0.3 else '0.3'}")
    if command == "recommend" and rng.random() < 0.2:
        more.append(f"--method={payload() if odd else 'platt'}")
    if command == "sweep":
        more.append(f"--thresholds={payload() if odd else '0.2:0.8:0.2'}")
        if "table" in case.form and rng.random() < 0.3:
            more.append("--plot=-")
    if command == "gate":
        rules = ["brier<=0.9", "brier<=0", f"brier@group={payload()}<=0.9", f"brier@model={payload()}<=0.9", payload()]
        rules += ["brier<=baseline+0.1"] * 2
        more += [f"--rule={rng.choice(rules)}" for _ in range(rng.choice([1, 2]))]
        if "baseline" in "".join(more):
            more.append("--baseline=base.json")
            case.files["base.json"] = _baseline_of(rng, payload)
    if odd and rng.random() < 0.2:
        more.append(
            f"--{rng.choice(['positive', 'utility', 'odds', 'seed', 'missing', 'weight', 'confidence'])}={payload()}"
        )
    if rng.random() < 0.03:
        more.append(payload())
    return more


def _settings_of(rng: random.Random, payload: Callable[[], str]) -> bytes:
    """A settings file with hostile keys and values."""
    keys = ["score", "label", "group", "input", "gates", "baseline", "positive", "features", payload()]
    lines = [f"{_toml(rng.choice(keys))} = {_toml(payload())}" for _ in range(rng.choice([1, 1, 2]))]
    return "\n".join(["[tool.decal]", *lines] if rng.random() < 0.5 else lines).encode("utf-8", "surrogatepass")


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=not _encodable(text) or len(text) % 2 == 0)


def _baseline_of(rng: random.Random, payload: Callable[[], str]) -> bytes:
    """A report as a baseline, in which something is hostile."""
    metrics = {"brier": {"value": 0.2, "interval": None, "reason": None, "parameters": {}}}
    report: dict[str, Any] = {"schema": 1, "model": "p", "group": None, "rows": 60, "task": None, "metrics": metrics}
    match rng.randrange(5):
        case 0:
            report[rng.choice(list(report))] = payload()
        case 1:
            metrics["brier"][rng.choice(list(metrics["brier"]))] = payload()
        case 2:
            report["metrics"] = {payload(): metrics["brier"]}
        case 3:
            report = {"schema": 1, "reports": [{**report, "model": payload(), "group": payload()}]}
    return json.dumps(report).encode()


def _model_file(rng: random.Random, source: list[str], path: str, case: _Case) -> bytes:
    """A model fitted to the rows of the case, or what is not one."""
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder), case.files)
        fitting = [text for text in source if not text.startswith("--group")]
        done = run_here(Path(folder), ("fit", *fitting, "--output=model.json", "--", "platt", path))
        written = Path(folder) / "model.json"
        content = written.read_bytes() if done.code == 0 else b"{}"
    if rng.random() < 0.2:
        return content.replace(b"platt", json.dumps(rng.choice(PAYLOADS))[1:-1].encode())
    return content


def _write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).write_bytes(content)


def _outcome_of(case: _Case, folder: Path) -> str:
    """Run it; the outcome in a word. Raises what ought not to happen."""
    _write(folder, case.files)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = run_here(folder, tuple(case.line))
    command = case.line[0]
    assert done.code in ((0, 1, 2) if command == "gate" else (0, 2)), done
    said = done.err.removesuffix("\n").split("\n") if done.err else []
    assert all(line.isprintable() and not acted_on(line) for line in said), done.err
    if "--help" in case.line:
        return "help"
    said = [line for line in said if command != "study" or not line.endswith("of them measured before")]
    if done.code == 2 and said:
        assert len(said) == 1 and said[0].startswith("decal: "), done.err
        assert len(said[0]) < 12_000, len(said[0])
        return "refused"
    assert not said or command in ("apply", "study"), done.err
    content = done.out
    if case.output is not None and command not in ("apply", "fit"):
        assert not content, content
        content = (folder / case.output).read_bytes().decode() if case.form != "parquet" else ""
    elif case.form == "parquet":
        content = ""
    check_text(content, case.form)
    if command == "study":
        written = folder / str(case.line[-3].removeprefix("--output=./"))
        for name, form in (("summary.md", "markdown"), ("points.csv", "csv"), ("summary.json", "json")):
            check_text((written / name).read_bytes().decode(), form)
    return "written"


def case(rng: random.Random, folder: Path) -> str:
    """A run of one command in a folder in which others chose some of the names; of those that take a second, few."""
    lines = _SLOW_LINES if rng.random() < _SLOW_SHARE else _FAST_LINES
    command, form = rng.choice(lines)
    run = _case_of(rng, command, form)
    try:
        return f"{command} {_outcome_of(run, folder)}"
    except Exception as error:
        error.add_note(f"{form}: {run.line!r}")
        raise
