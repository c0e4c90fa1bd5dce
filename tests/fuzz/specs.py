"""Spellings: of metrics, methods, gate rules, thresholds, priors and decisions, whole and broken."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from decal_cli.analysis.rules import parse_rule
from decal_cli.api.asking import preferences_of
from decal_cli.api.nouns import Costs
from decal_cli.curves.grid import parse_prior, parse_thresholds
from decal_cli.declarations.spec import Spec
from decal_cli.errors import DecalError
from decal_cli.learn.methods import METHODS
from decal_cli.metrics import METRICS
from decal_cli.render.terms import StatedTerms
from decal_cli.task import parse_odds, parse_utility
from tests.fuzz.harness import decal

NUMBERS = [
    *("0", "1", "-1", "0.5", ".5", "1e-320", "5e-324", "1e15", "1e16", "1e155", "1e300", "1e999", "-1e999", "inf"),
    *("nan", "NaN", "-0", "1_0", "0x1", "٣", "1e", "9" * 400, "", " ", "4294967296", "0.9999999999999999", "1,5"),
]
NOISE = ["(", ")", ",", "=", "@", "<", ">", "<=", ">=", "\n", "\x1b[31m", "\u202e", "\ud800", "é", "baseline", ":", ";"]
ROWS = "p,y,g\n" + "".join(
    f"{(7 * k % 20) / 20},{int(7 * k % 20 > 9) ^ (k % 5 == 0)},{'ab'[k % 2]}\n" for k in range(40)
)


def number(rng: random.Random) -> str:
    """A number, or what somebody may take for one."""
    if rng.random() < 0.4:
        return rng.choice(["0.1", "0.3", "2", "5", "20"])
    return rng.choice(NUMBERS) if rng.random() < 0.7 else f"{rng.uniform(-2, 2) * 10.0 ** rng.randrange(-20, 20):.6g}"


def spec(rng: random.Random, names: Sequence[str]) -> str:
    """A name with parameters, most of which exist."""
    name = rng.choice(names)
    declared = (METRICS.get(name) or METHODS.get(name) or METRICS["ece"]).parameters
    parameters = [each.name for each in declared] or ["bins"]
    given = [f"{rng.choice(parameters)}={number(rng)}" for _ in range(rng.randrange(3))]
    return f"{name}({','.join(given)})" if given else name


def rule(rng: random.Random) -> str:
    """A gate rule."""
    side = spec(rng, list(METRICS))
    for _ in range(rng.choice([0, 0, 1, 2])):
        side = f"{rng.choice(['upper', 'lower', 'max', 'gap', 'delta'])}({side})"
    scope = rng.choice(["", "", "@group=a", "@model=p", "@group=", "@"])
    bound = rng.choice([number(rng), number(rng), f"baseline+{number(rng)}", "baseline"])
    return f"{side}{scope}{rng.choice(['<=', '<', '>=', '>', '=', '==', ''])}{bound}"


def broken(text: str, rng: random.Random) -> str:
    """The text with some of it missing, doubled or replaced."""
    for _ in range(rng.choice([0, 0, 0, 0, 1, 1, 2, 5])):
        at = rng.randrange(len(text) + 1)
        end = at + rng.randrange(6)
        text = text[:at] + rng.choice(["", rng.choice(NOISE), text[at:end] * 2]) + text[end:]
    return text


def _preferences(text: str) -> Any:
    cost, decisions, at, tolerance = (text.split("|") + ["1"] * 3)[:4]
    terms = StatedTerms(decisions=_float(decisions))
    return preferences_of(Costs([cost], satisfied_at=_float(at), tolerance=_float(tolerance)), terms)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0


SPELLINGS: list[tuple[Callable[[random.Random], str], Callable[[str], Any]]] = [
    (lambda rng: spec(rng, list(METRICS)), METRICS.parse),
    (lambda rng: spec(rng, list(METHODS)), METHODS.parse),
    (rule, parse_rule),
    (lambda rng: rng.choice([":", ","]).join(number(rng) for _ in range(3)), parse_thresholds),
    (lambda rng: f"beta:{number(rng)},{number(rng)}", parse_prior),
    (lambda rng: ";".join(f"{number(rng)},{number(rng)}" for _ in range(2)), parse_utility),
    (lambda rng: f"{number(rng)}:{number(rng)}", parse_odds),
    (
        lambda rng: "|".join([rng.choice(["", "post-train=", "x="]) + number(rng), *(number(rng) for _ in range(3))]),
        _preferences,
    ),
]
EVALUATE = ["evaluate", "rows.csv", "--no-intervals", "-m"]
SWEEP = ["sweep", "rows.csv", "--no-intervals", "--thresholds"]
LINES: list[Callable[[random.Random], list[str]]] = [
    lambda rng: ["gate", "rows.csv", "--group", "g", "-t", "0.3", "-r", broken(rule(rng), rng)],
    lambda rng: [*EVALUATE, broken(spec(rng, list(METRICS)), rng), "-t", "0.3"],
    lambda rng: [*EVALUATE, "brier", "-t", number(rng), "--seed", number(rng)],
    lambda rng: [*EVALUATE, "brier", "-t", "0.3", "--decision-threshold", number(rng)],
    lambda rng: [*EVALUATE, "expected_utility", "--cost-fp", number(rng), "--cost-fn", number(rng)],
    lambda rng: [
        "evaluate",
        "rows.csv",
        "-m",
        "brier",
        "-t",
        "0.3",
        "--confidence",
        number(rng),
        "--decision-threshold",
        number(rng),
    ],
    lambda rng: [*SWEEP, f"{number(rng)}:{number(rng)}:{number(rng)}"],
    lambda rng: [*SWEEP, "0.3", "--prior", f"beta:{number(rng)},{number(rng)}"],
    lambda rng: ["methods", broken(spec(rng, list(METHODS)), rng)],
]


def case(rng: random.Random, folder: Path) -> str:
    """One spelling is parsed, or refused in one line; now and then it goes through the whole command."""
    if rng.random() < 0.05:
        (folder / "rows.csv").write_text(ROWS)
        return decal(folder, *(text.replace("\0", "") for text in rng.choice(LINES)(rng)))
    write, parse = rng.choice(SPELLINGS)
    text = broken(write(rng), rng)
    try:
        parsed = parse(text)
    except DecalError as error:
        assert str(error).isprintable() and error.fix and len(str(error)) < 3_000, repr(str(error))
        return "refused"
    if isinstance(parsed, Spec):
        assert parse(parsed.key) == parsed, f"{text!r} is {parsed.key!r}"
    return "parsed"
