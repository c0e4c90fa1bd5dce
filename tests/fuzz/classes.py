"""Probabilities of several classes: rows, tasks and command lines, sound and broken."""

import random
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.harness import decal
from tests.fuzz.specs import broken, number

CLASSES = ("a", "b", "c c", "d:e", "1")
ODD = ("", "nan", "inf", "-0.1", "1.1", "1e-320", "1e300", "x", "0.3333", "NA", "-0")
LABELS = ("", "A", "a ", "2", "1.0", "nan", "\u202e", "b;c")
VERBS = ("evaluate", "evaluate", "recommend", "gate", "compare", "sweep", "sweep", "fit")
FORMATS = ("table", "json", "csv", "markdown", "html")


def rows(rng: random.Random, classes: tuple[str, ...], models: str) -> str:
    """A CSV file of probabilities, most of it sound."""
    head = ["y", "w", "g", "x1", "x2", *(f"{m}:{k}" for m in models for k in classes)]
    lines = [head]
    wild, sharp = rng.choice([0.0, 0.0, 0.0, 0.0, 0.01, 0.3]), rng.choice([0, 1, 1, 3, 30])
    for _ in range(rng.choice([0, 1, 3, 12, 25, 25, 60, 60, 120, 120])):
        label = rng.choice(classes)
        cells = [label, str(rng.choice([1, 1, 0.5, 3])), rng.choice("uv"), f"{rng.gauss(0, 1):.4f}", rng.choice("pqr")]
        for _ in models:
            raw = [rng.random() ** sharp + (rng.random() if k == label else 0) + 1e-9 for k in classes]
            kind = rng.random()
            if kind < 0.15:
                sure = rng.choice(classes)
                raw = [float(k == sure) for k in classes] if kind < 0.1 else [1.0] * len(classes)
            total = sum(raw) or 1.0
            cells += [repr(p / total) for p in raw]
        lines.append([rng.choice(ODD) if rng.random() < wild else cell for cell in cells])
        if rng.random() < wild:
            lines[-1][0] = rng.choice(LABELS)
    if rng.random() < 0.03:
        lines[0][rng.randrange(len(head))] = rng.choice(["", "y", "m:", "m:*"])
    return "\n".join(",".join(line) for line in lines) + "\n"


def utility(rng: random.Random, classes: tuple[str, ...]) -> str:
    """A utility with a column for each class, or for about as many."""
    width = len(classes) + rng.choice([*[0] * 12, 1, -1])
    names = rng.random() < 0.5
    lines = []
    for a in range(rng.choice([1, 2, *[3] * 4, *[len(classes)] * 4])):
        cells = [number(rng) if rng.random() < 0.01 else str(rng.randint(-9, 9)) for _ in range(width)]
        lines.append([f"do{a}"] * names + cells)
    if names and rng.random() < 0.3:
        lines.insert(0, [""] * names + list(classes))
    return ";".join(map(",".join, lines))


def task(rng: random.Random, classes: tuple[str, ...]) -> list[str]:
    """The options of a decision, maybe of none."""
    kinds: list[Callable[[], list[str]]] = [
        lambda: [],
        lambda: ["--abstain", number(rng) if rng.random() < 0.2 else f"{rng.random():.3f}"],
        lambda: ["--abstain", "0.3"],
        lambda: ["--utility", broken(utility(rng, classes), rng)],
        lambda: ["--cost-matrix", utility(rng, classes)],
        lambda: ["--threshold", "0.3"],
    ]
    return rng.choice(kinds)()


def varied(rng: random.Random, classes: tuple[str, ...]) -> list[str]:
    """What varies in a sweep."""
    if rng.random() < 0.5:
        return []
    what = rng.choice(["abstain", f"{rng.choice(classes)}:{rng.choice(classes)}", "do0:a", ":", ""])
    ends = rng.choice(["0.1:0.4", "0,0.5", "1:9:4", f"{number(rng)}:{number(rng)}", number(rng)])
    return ["--vary", broken(f"{what}={ends}", rng)]


def case(rng: random.Random, folder: Path) -> str:
    """One command on one file."""
    classes = CLASSES[: rng.choice([2, 3, 3, 3, 5])]
    verb = rng.choice(VERBS)
    models = "mn" if verb == "compare" or rng.random() < 0.2 else "m"
    (folder / "r.csv").write_text(rows(rng, classes, models), encoding="utf-8")
    line = [verb, *(["temperature"] if verb == "fit" else []), "r.csv", "-y", "y"]
    line += [part for model in models for part in ("--proba", f"{model}:*")]
    line += task(rng, classes)
    line += rng.choice([[], [], ["--weight", "w"], ["--group", "g"], ["--missing", "drop"], ["--features", "x*"]])
    if verb == "gate":
        line += ["-r", rng.choice(["brier<=1", "upper(aurc)<=0.4", "lower(gain_recalibration)<=0.1", "rows>=9"])]
    if verb == "fit":
        line += ["-o", "m.json"]
    elif verb == "sweep":
        line += varied(rng, classes) + rng.choice([[], [], ["--plot", "-"], ["--no-intervals"]])
    if verb != "fit":
        line += ["--format", rng.choice(FORMATS)] if rng.random() < 0.5 else []
    return decal(folder, *line)
