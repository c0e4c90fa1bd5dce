"""Settings, utilities and priors: files that people write, with anything in them."""

import json
import random
from pathlib import Path
from typing import Any

from tests.fuzz.harness import decal
from tests.fuzz.specs import NOISE, ROWS, broken, number, rule

KEYS = [
    *("input", "score", "label", "weight", "group", "features", "positive", "logit", "missing", "task", "gates"),
    *("confidence", "seed", "baseline", "nonsense", "threshold"),
]
DEEP = ["[" * 2_000 + "]" * 2_000, "a" + ".a" * 5_000 + " = 1", "{a=" * 500 + "1" + "}" * 500, "9" * 5_000]
WHOLE = 'input = "rows.csv"\nscore = "p"\nlabel = "y"\ngates = ["brier<=0.4"]\nseed = 1\n[task]\nthreshold = 0.3\n'


def value(rng: random.Random) -> str:
    """A TOML value of some type."""
    texts = ["rows.csv", "p", "y", "g", "*", "a\x1b", "\u202e", "", "x" * 5_000, "drop", "rows*.csv", "u.json"]
    choices: list[Any] = [*texts, True, [], ["p", "y"], [1], [[1, 0], [0, 1]], {"threshold": 0.3}, {}]
    if rng.random() < 0.3:
        return number(rng)
    return rng.choice(DEEP) if rng.random() < 0.1 else json.dumps(rng.choice(choices)).replace(": ", " = ")


def settings(rng: random.Random) -> str:
    """A settings file: the usual one with a few lines changed or broken."""
    lines = WHOLE.splitlines()
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        at = rng.randrange(len(lines))
        key = rng.choice(KEYS)
        line = rng.choice(
            [f"{key} = {value(rng)}", f"[{key}]", f"[[{key}.{key}]]", rng.choice(DEEP), rng.choice(NOISE)]
        )
        lines[at : at + rng.randrange(2)] = [line]
    return broken("\n".join(lines), rng)


def _document(rng: random.Random) -> str:
    cells = [number(rng) for _ in range(4)]
    choices = [
        f"[[{cells[0]}, {cells[1]}], [{cells[2]}, {cells[3]}]]",
        f'{{"utility": [[{cells[0]}, {cells[1]}], [{cells[2]}, {cells[3]}]]}}',
        f"utility = [[{cells[0]}, {cells[1]}], [{cells[2]}, {cells[3]}]]",
        f"{cells[0]},{cells[1]}\n{cells[2]},{cells[3]}\n",
        f"threshold,weight\n0.3,{cells[0]}\n{cells[1]},1\n",
        f'{{"0.3": {cells[0]}, "{cells[1]}": 2}}',
        "[" * rng.choice([3, 70, 20_000]),
        "\0" * 100,
    ]
    return broken(rng.choice(choices), rng)


def case(rng: random.Random, folder: Path) -> str:
    """One run in a folder of such files."""
    (folder / "rows.csv").write_text(ROWS)
    name = rng.choice(["decal.toml", "decal.toml", "pyproject.toml"])
    text = settings(rng) if rng.random() < 0.7 else WHOLE
    if name == "pyproject.toml":
        text = "[tool.decal]\n" + text.replace("[task]", "[tool.decal.task]")
    (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
    suffix = rng.choice(["json", "toml", "csv"])
    (folder / f"u.{suffix}").write_bytes(_document(rng).encode("utf-8", "surrogatepass"))
    line = rng.choice(
        [
            ["gate"],
            ["gate", "-r", rule(rng)],
            ["evaluate", "-m", "brier", "--no-intervals"],
            ["evaluate", "rows.csv", "-m", "expected_utility", "--utility", f"u.{suffix}", "--no-intervals"],
            ["sweep", "rows.csv", "--prior", f"u.{suffix}", "--thresholds", "0.3", "--no-intervals"],
        ]
    )
    return decal(folder, *line)
