"""Forged states of `decal online`: one value of a true state is another one, and its checksum is made anew."""

import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from decal_cli.documents import canonical_json, digest_of
from tests.fuzz.harness import decal
from tests.helpers.stream import stream_columns, write_stream

ROWS, LATER = 160, 240
LINE = ("-s", "p", "-y", "y", "-t", ".5", "--warm-up", "50", "--every", "20", "--horizon", "300")
TIME = ("--time", "t")
SOME = ("--method", "hedge(bins=2)", "--method", "rolling-isotonic(window=60)", "--method", "online-platt")
KINDS: dict[str, tuple[str, ...]] = {
    "plain": TIME,
    "no time": ("--delay", "5"),
    "delay": (*TIME, "--delay", "3d", "--method", "online-platt"),
    "groups": (*TIME, "--group", "site", *SOME, "--method", "almost-one-step-ahead", "--method", "cdl-algorithm"),
    "clusters": (*TIME, "--cluster", "game", "--method", "hedge(bins=2)"),
    "clusters, late": (*TIME, "--cluster", "game", "--delay", "1d", *SOME),
}
ABSENT, TWICE, SHORTER = object(), object(), object()
"""A value is left out; a list is repeated; its last one is left out."""
OTHERS: list[Any] = [None, True, "x", "", -1, 0, 1, 2.5, 10**6, 2**63, 10**400, 1e308, -1e308, [], {}, [1], [[]], ["x"]]
Keys = tuple[str | int, ...]


def write_rows(path: Path, start: int, end: int) -> None:
    """Some rows of a stream with groups and clusters."""
    columns = stream_columns(LATER)
    columns |= {"site": ["a", "b"] * (LATER // 2), "game": [f"game {row // 6}" for row in range(LATER)]}
    write_stream(path, columns, start, end)


@cache
def true_state(kind: str) -> str:
    """A state of some rows, without its checksum."""
    with TemporaryDirectory() as folder:
        write_rows(Path(folder, "first.csv"), 0, ROWS)
        assert decal(Path(folder), "online", "first.csv", *LINE, *KINDS[kind], "--state", "state.json") == "exit 0"
        document = json.loads(Path(folder, "state.json").read_text())
    del document["sha256"]
    return json.dumps(document)


def places(value: Any, keys: Keys = ()) -> Iterator[Keys]:
    """Where the values of a document stand; of a list the first, the middle and the last one."""
    if keys:
        yield keys
    inside = list(value) if isinstance(value, dict) else []
    if isinstance(value, list) and value:
        inside = sorted({0, len(value) // 2, len(value) - 1})
    for key in inside:
        yield from places(value[key], (*keys, key))


def value_at(document: Any, keys: Keys) -> Any:
    """The value at a place."""
    for key in keys:
        document = document[key]
    return document


def forged_state(document: Any, keys: Keys, value: Any) -> str:
    """The text of a state with another value there, and a checksum that fits."""
    document = json.loads(json.dumps(document))
    around, last = value_at(document, keys[:-1]), keys[-1]
    if value is ABSENT:
        del around[last]
    else:
        around[last] = 2 * around[last] if value is TWICE else around[last][:-1] if value is SHORTER else value
    return canonical_json({**document, "sha256": digest_of(document)})


def case(rng: random.Random, folder: Path) -> str:
    """A run that goes on from such a state."""
    kind = rng.choice(list(KINDS))
    document = json.loads(true_state(kind))
    keys = rng.choice(list(places(document)))
    was = value_at(document, keys)
    others = [*OTHERS, ABSENT, *((TWICE, SHORTER) if isinstance(was, list) and was else ())]
    if isinstance(was, int | float):
        others += [was + 1, -was - 1, 1.5 * was]
    other = rng.choice([each for each in others if repr(each) != repr(was)])
    (folder / "state.json").write_text(forged_state(document, keys, other))
    write_rows(folder / "later.csv", ROWS, LATER)
    more = rng.choice([(), ("-f", "json"), ("-r", "e_calibration<20")])
    return decal(folder, "online", "later.csv", "-y", "y", "--state", "state.json", *more)
