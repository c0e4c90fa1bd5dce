"""Random worlds, judged by decal and by the row-by-row oracle: `python -m tests.helpers.oracle_worlds` judges 2,000."""

import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any

import decal_cli
from decal_cli.errors import DecalError
from tests.helpers.row_oracle import Payoff, Row, RowWorld, oracle_values

WITHIN = 1e-10


def random_world(rng: Random) -> RowWorld:
    """5 to 40 rows with many ties, K in 2..4, A in 2..4, and any of what a world may have besides."""
    classes, actions = rng.choice([2, 2, 2, 3, 4]), rng.choice([2, 2, 3, 4])
    shared = rng.random() < 0.6
    two = classes == actions == 2
    payoff = random_payoff(rng, actions, classes)
    weighted, grouped = rng.random() < 0.5, rng.random() < 0.3
    # Stakes of a row multiply its score: sixteenths keep ties of such products exact in binary, too.
    parts = 16 if not shared else rng.choice([10, 20])
    rows = [
        Row(
            random_score(rng, classes, parts),
            rng.randrange(classes),
            payoff if shared else random_payoff(rng, actions, classes, shared),
            Fraction(rng.randint(1, 12), 4) if weighted else Fraction(1),
            rng.choice("ab") if grouped else "",
        )
        for _ in range(rng.randint(5, 40))
    ]
    # Shares in parts of a prime, so that no moved score ties but for rounding.
    cuts = [0, *sorted(rng.sample(range(1, 23), classes - 1)), 23]
    shares = tuple(Fraction(high - low, 23) for low, high in itertools.pairwise(cuts))
    return RowWorld(
        rows,
        prevalence=shares if rng.random() < 0.25 and len({r.label for r in rows}) == classes else None,
        capacity=rng.randint(1, len(rows)) if rng.random() < 0.25 else None,
        decision_threshold=Fraction(rng.randint(1, 9), 10) if two and shared and rng.random() < 0.2 else None,
        shared=shared,
    )


def random_payoff(rng: Random, actions: int, classes: int, shared: bool = True) -> Payoff:
    """Where all rows share it, the first action is right for label 0 and the last for label 1: none always wins.

    In a row of its own any action may always win, as long as acting wins more at label 1 than at label 0.
    """
    lines = [[Fraction(rng.randint(-9, 9)) for _ in range(classes)] for _ in range(actions)]
    if classes == 2 and shared:
        lines[0] = [Fraction(rng.randint(5, 9)), Fraction(-rng.randint(5, 9))]
        lines[-1] = [Fraction(-rng.randint(1, 9)), Fraction(rng.randint(-4, 9))]
    elif classes == actions == 2 and lines[0][0] - lines[1][0] + lines[1][1] - lines[0][1] <= 0:
        return random_payoff(rng, actions, classes, shared)
    return lines


def random_score(rng: Random, classes: int, parts: int) -> tuple[Fraction, ...]:
    cuts = sorted(rng.randint(0, parts) for _ in range(classes - 1))
    return tuple(Fraction(b - a, parts) for a, b in zip([0, *cuts], [*cuts, parts], strict=True))


def asked(world: RowWorld) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """The world as a frame, and what else decal_cli.evaluate is told."""
    rows, given = world.rows, {}
    classes, actions = len(rows[0].score), len(rows[0].payoff)
    frame: dict[str, list[Any]] = {"y": [str(row.label) for row in rows], "w": [float(row.weight) for row in rows]}
    if classes == 2:
        frame["p"] = [float(row.score[1]) for row in rows]
        given |= {"score": "p", "positive": "1"}
    else:
        frame |= {f"m:{k}": [float(row.score[k]) for row in rows] for k in range(classes)}
        given |= {"proba": "m:*"}
    if world.shared:
        given["utility"] = [[float(u) for u in line] for line in rows[0].payoff]
    else:
        names = [f"u{a}{k}" for a in range(actions) for k in range(classes)]
        for at, name in enumerate(names):
            frame[name] = [float(row.payoff[at // classes][at % classes]) for row in rows]
        given["utility_columns"] = names
    if len({row.weight for row in rows}) > 1:
        given["weight"] = "w"
    if any(row.group for row in rows):
        frame["g"] = [row.group for row in rows]
        given["group"] = "g"
    if world.prevalence is not None:
        shares = [float(share) for share in world.prevalence]
        given["prevalence"] = shares[1] if classes == 2 else {str(k): share for k, share in enumerate(shares)}
    if world.decision_threshold is not None:
        given["decision_threshold"] = float(world.decision_threshold)
    if world.capacity is not None:
        given["capacity"] = world.capacity
    return frame, given


def gaps(world: RowWorld, reasons: Counter[str]) -> Iterator[str]:
    """Where decal and the oracle are apart; what decal does not define though it exists is counted by its reason.

    Raises DecalError where decal refuses the world.
    """
    frame, given = asked(world)
    truths = {None: oracle_values(world)}
    answer = decal_cli.evaluate(frame, label="y", **given, metrics=list(truths[None]), intervals=False)
    truths |= {name: oracle_values(world, name) for name in sorted({row.group for row in world.rows} - {""})}
    reports = {report["group"]: report for report in answer.to_dict()["reports"]}
    assert reports.keys() == truths.keys()
    for group, truth in truths.items():
        for metric, value in truth.items():
            got = reports[group]["metrics"][metric]
            if got["value"] is None and value is not None:
                reasons[got["reason"]] += 1
            elif value is None or got["value"] is None:
                if got["value"] != value:
                    yield f"{metric} of group {group} is {got['value']} where there is none"
            elif abs(got["value"] - value) > WITHIN * max(1, abs(value)):
                yield f"{metric} of group {group} is {got['value']}, not {float(value)}"


@dataclass
class Judged:
    agreed: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    undefined: Counter[str] = field(default_factory=Counter)
    apart: list[str] = field(default_factory=list)


def judge(worlds: int, seed: int) -> Judged:
    """Refusals are counted by what is common to their lines."""
    rng, judged = Random(seed), Judged()
    for at in range(worlds):
        world = random_world(rng)
        try:
            found = list(gaps(world, judged.undefined))
        except DecalError as error:
            judged.refused[common(str(error))] += 1
            continue
        judged.agreed += not found
        judged.apart += [f"world {at} of seed {seed}: {each}" for each in found]
    return judged


def common(line: str) -> str:
    """A line without its names and numbers."""
    return re.sub(r"'[^']*'|\([^)]*\)|\d+", "..", line)


def judge_many(arguments: list[str]) -> int:
    judged = judge(int(arguments[0]) if arguments else 2000, seed=int(arguments[1]) if arguments[1:] else 1)
    print(f"{judged.agreed} worlds agree to {WITHIN}")
    for title, counts in (("worlds refused", judged.refused), ("values undefined", judged.undefined)):
        print(f"{counts.total()} {title}", *(f"{number:7} {line}" for line, number in counts.most_common()), sep="\n")
    print(f"{len(judged.apart)} values are apart", *judged.apart[:40], sep="\n")
    return int(bool(judged.apart))


if __name__ == "__main__":
    sys.exit(judge_many(sys.argv[1:]))
