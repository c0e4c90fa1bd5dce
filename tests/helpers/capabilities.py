"""Which verb takes which capabilities together, as data: how each is written, and what becomes of a run.

`python -m tests.helpers.capabilities --record` walks all pairs and keeps what came of them. `make man` puts that on the
page docs/what-goes-with-what.md. `--check` walks them and tells which are not as kept; `--triples 2500` tries as many.
"""

import csv
import itertools
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow.parquet as pq

from tests.helpers.command import FIXTURES, blank_pictures, run_here
from tests.helpers.seeded import write_counts, write_seeded

WALKED_VERBS = ("evaluate", "recommend", "recommend --try", "gate", "compare", "sweep", "report", "fit", "online")
COSTLY_VERBS = ("recommend", "recommend --try", "report")
"""A run of these takes a second."""
CAPABILITIES = (
    "weights",
    "groups",
    "clusters",
    "features",
    "two models",
    "stakes per row",
    "capacity",
    "prevalence",
    "three actions",
    "K classes",
    "counts only",
    "an engine",
)
OUTCOMES = FIXTURES / "what_goes_with_what.csv"
WORKS = "works"
N_CAPABILITY_ROWS = 60
_NAMES = ("lo", "mid", "hi")
_TABLE = "duckdb:file.db?table=rows"


class Combination(NamedTuple):
    """A verb and capabilities, in the order of CAPABILITIES."""

    verb: str
    given: tuple[str, ...]

    @property
    def meaningful(self) -> bool:
        """Rows are in an engine, or are counted in a file."""
        return not {"counts only", "an engine"} <= set(self.given)

    def words(self, folder: Path) -> list[str]:
        """The command line; a file of counts is written where there is none yet."""
        given = set(self.given)
        return [
            *_verb(self.verb, given),
            *_source(folder, self.verb, given),
            *_columns(self.verb, given),
            *_decision(given),
        ]


def every_single_and_pair() -> list[Combination]:
    singles = [Combination(verb, (one,)) for verb in WALKED_VERBS for one in CAPABILITIES]
    pairs = [Combination(verb, pair) for verb in WALKED_VERBS for pair in itertools.combinations(CAPABILITIES, 2)]
    return [each for each in singles + pairs if each.meaningful]


def random_triples(count: int, seed: int, verbs: Sequence[str] = WALKED_VERBS) -> list[Combination]:
    every = [Combination(verb, three) for verb in verbs for three in itertools.combinations(CAPABILITIES, 3)]
    return random.Random(seed).sample([each for each in every if each.meaningful], count)


def _verb(verb: str, given: Set[str]) -> list[str]:
    several = "K classes" in given
    match verb:
        case "evaluate" | "compare":
            return [verb, "-m", "brier", "-m", "expected_utility", "-m", "gain_recalibration"]
        case "recommend --try":
            methods = ["temperature" if several else "platt", *(["stack"] if "features" in given else [])]
            return ["recommend", *(word for method in methods for word in ("--method", method))]
        case "gate":
            return ["gate", "--rule", "expected_utility>=-100", "--rule", "rows>=1"]
        case "sweep":
            return ["sweep", *_varied(given)]
        case "report":
            return ["report", "-o", "report.html"]
        case "fit":
            method = "temperature" if several else "stack" if "features" in given else "platt"
            return ["fit", method, "-o", "model.json", "--force"]
        case "online":
            return ["online", "--warm-up", "20", "--method", "as-it-is", "--method", "online-platt"]
    return [verb]


def _varied(given: Set[str]) -> list[str]:
    """What the curve is over; with stakes of each row, and of the price of abstention, that is known."""
    if "three actions" in given and "stakes per row" not in given:
        return ["--vary", "treat:hi=-1:1:1" if "K classes" in given else "treat:0=-9:-1:4"]
    return [] if {"stakes per row", "K classes"} & given else ["--thresholds", ".2,.4"]


def _columns(verb: str, given: Set[str]) -> list[str]:
    models = 2 if verb == "compare" or "two models" in given else 1
    if "K classes" in given:
        words = [word for model in ("a:*", "b:*")[:models] for word in ("--proba", model)]
    else:
        words = [word for score in ("p", "q")[:models] for word in ("--score", score)]
    if "counts only" in given and "K classes" not in given:
        # Counts name their columns themselves.
        words = []
    else:
        words += ["--label", "z" if "K classes" in given else "y"]
        words += ["--weight", "w"] if "weights" in given else []
    words += ["--group", "g"] if "groups" in given else []
    words += ["--cluster", "c"] if "clusters" in given else []
    return words + (["--features", "x1", "--features", "x2"] if "features" in given else [])


def _decision(given: Set[str]) -> list[str]:
    actions, classes = 3 if "three actions" in given else 2, 3 if "K classes" in given else 2
    if "stakes per row" in given:
        stakes = _stakes(given)
        four = actions == classes == 2
        words = ["--amount", "amount", "--cost-fp-column", "alarm"] if four else ["--utility-columns", ",".join(stakes)]
    elif "three actions" in given:
        words = [
            "--utility",
            "wait,1,0,-1;test,0,1,0;treat,-1,0,1" if classes == 3 else "wait,0,-20;test,-2,-3;treat,-5,-1",
        ]
    else:
        words = ["--abstain", ".4"] if classes == 3 else ["--threshold", ".4"]
    words += ["--capacity", "10"] if "capacity" in given else []
    shares = "lo=.2,mid=.3" if classes == 3 else ".2"
    return words + (["--prevalence", shares] if "prevalence" in given else [])


def _stakes(given: Set[str]) -> list[str]:
    """The columns that say what decisions on each row are worth."""
    actions, classes = 3 if "three actions" in given else 2, 3 if "K classes" in given else 2
    if actions == classes == 2:
        return ["amount", "alarm"]
    return [f"u{a}{k}" for a in range(actions) for k in range(classes)]


def _source(folder: Path, verb: str, given: Set[str]) -> list[str]:
    if "an engine" in given:
        return ["--engine", _TABLE]
    return [_counts(folder, verb, given), "--aggregated"] if "counts only" in given else ["rows.csv"]


def _counts(folder: Path, verb: str, given: Set[str]) -> str:
    """A file of counts with all columns that are asked about, as decal or anyone's GROUP BY writes it."""
    columns = {"groups": ["g"], "clusters": ["c"], "stakes per row": _stakes(given)}
    others = [name for capability, names in columns.items() if capability in given for name in names]
    weighted = "weights" in given
    if "K classes" in given:
        # Rows as they are, and how many there are of each.
        form, by = "several", [f'"{model}:{k}"' for model in "ab" for k in _NAMES] + ["z"]
        others, weighted = [*others, *(["w"] if weighted else [])], False
    elif verb == "compare":
        form, by = "pairs", ["p AS score_a", "q AS score_b"]
    else:
        form, by = "models" if "two models" in given else "scores", ["p AS score"]
    path = folder / f"{'-'.join((form, *others, *['weighted'] * weighted))}.parquet"
    if not path.exists():
        write_counts(folder, path.name, by + others, None if form == "several" else "y", weighted)
        if form == "models":
            write_counts(folder, "q.parquet", ["q AS score", *others], weighted=weighted)
            named = f"SELECT 'p' AS model, * FROM '{path}' UNION ALL SELECT 'q', * FROM '{folder}/q.parquet'"
            with duckdb.connect() as connection:
                both = connection.sql(named).to_arrow_table()
            pq.write_table(both, path)
    return path.name


def outcome(folder: Path, combination: Combination) -> str:
    """WORKS, the line of a refusal, or what a crash left on standard error (which is no line of decal's)."""
    as_json = [] if combination.verb == "report" else ["--format", "json"]
    with blank_pictures():
        done = run_here(folder, (*combination.words(folder), *as_json))
    if done.code in (0, 1):
        return WORKS
    lines = done.err.strip().splitlines()
    if done.code == 2 and len(lines) == 1 and lines[0].startswith("decal: "):
        return lines[0].removeprefix("decal: ")
    return f"CRASH exit {done.code}: {done.err[-400:]}"


def read_outcomes() -> dict[Combination, str]:
    with OUTCOMES.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        Combination(row["verb"], tuple(filter(None, (row["first"], row["second"])))): row["outcome"] for row in rows
    }


def walked(combinations: list[Combination]) -> Iterator[tuple[Combination, str]]:
    with tempfile.TemporaryDirectory() as name:
        write_seeded(Path(name), N_CAPABILITY_ROWS, utilities=True)
        for each in combinations:
            yield each, outcome(Path(name), each)


def walk_or_try(arguments: list[str]) -> int:
    if arguments == ["--record"]:
        found = dict(walked(every_single_and_pair()))
        with OUTCOMES.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("verb", "first", "second", "outcome"))
            writer.writerows((each.verb, *(*each.given, "")[:2], came) for each, came in found.items())
    elif arguments == ["--check"]:
        listed = read_outcomes()
        found = dict(walked(list(listed)))
        changed = {each: came for each, came in found.items() if came != listed[each]}
        print(*(f"{each}: was {listed[each]}, is {came}" for each, came in changed.items()), sep="\n")
        return int(bool(changed))
    elif arguments[:1] == ["--triples"]:
        found = dict(walked(random_triples(int(arguments[1]), seed=int(arguments[2]) if arguments[2:] else 0)))
    else:
        print("python -m tests.helpers.capabilities --record | --check | --triples COUNT [SEED]", file=sys.stderr)
        return 2
    for verb in WALKED_VERBS:
        mine = [came for each, came in found.items() if each.verb == verb]
        print(f"{verb}: {mine.count(WORKS)} work, {len(mine) - mine.count(WORKS)} do not")
    crashed = [
        f"{each.verb} with {', '.join(each.given)}: {came}" for each, came in found.items() if came.startswith("CRASH")
    ]
    refused = Counter(re.sub(r"'[^']*'|\d+", "..", came) for came in found.values() if came != WORKS)
    print(*(f"{number:5} {line}" for line, number in refused.most_common()), *crashed, sep="\n")
    return int(bool(crashed))


if __name__ == "__main__":
    sys.exit(walk_or_try(sys.argv[1:]))
