"""Model files, baselines and records of a study with anything in them and the checksum that belongs to it."""

import copy
import functools
import json
import random
from pathlib import Path
from typing import Any

from decal_cli.analysis.study import NAME, Store, Study, Unit, is_record, measure, summarise
from decal_cli.errors import DecalError
from decal_cli.learn.method import fit
from decal_cli.learn.methods import parse
from decal_cli.learn.model_file import Saved, to_text
from decal_cli.render.results.study import Studied
from tests.fuzz.harness import decal
from tests.helpers.model_files import with_checksum
from tests.helpers.results import as_text
from tests.helpers.studies import study_predictions, study_setting
from tests.helpers.training import FIFTH, random_training

ODD: list[Any] = [
    *(
        None,
        True,
        -1,
        0,
        1,
        2**31,
        2**63,
        10**30,
        1e-320,
        1e300,
        -0.5,
        0.5,
        1.5,
        "",
        "p",
        "a\x1b[31m",
        "\u202e",
        "x" * 3_000,
    ),
    *(
        [],
        {},
        [[]],
        [0.5, 0.5],
        {"number": "inf"},
        {"number": "nan"},
        {"float64": [0.5]},
        {"int32": [-1, 0, 1]},
        {"text": ["a"]},
    ),
    *({"float64": "AAAA", "shape": [1]}, {"model": "Curve"}, [1, 2, 3] * 100),
]
KEYS = [
    "isotonic",
    "platt",
    "venn-abers",
    "histogram(bins=3)",
    "threshold",
    "glar(r=-1)",
    "multicalibration",
    "stack-forest(trees=2)",
    "probing(probes=3)",
    "meta-cal",
]
SETTING = study_setting("isotonic")
UNIT = Unit("a.csv", "p", 0)
ROWS = "p,y,x1,x2,x3,site\n" + "".join(f"{k / 30},{k % 2},{k},{-k},1,s{k % 3}\n" for k in range(30))


@functools.cache
def _models() -> tuple[dict[str, Any], ...]:
    rows = random_training(120, seed=3)
    names = ("x1", "x2", "x3")
    made = (Saved(key, fit(parse(key), rows), "p", names, 3, ("number",) * 3, ("site",), task=FIFTH) for key in KEYS)
    return tuple(json.loads(to_text(each)) for each in made)


@functools.cache
def _record() -> dict[str, Any]:
    return json.loads(json.dumps(measure(UNIT, study_predictions(120), SETTING)))


def places(document: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where values stand in a document: keys and numbers from the outside in."""
    if isinstance(document, dict):
        inner = document.items()
    elif isinstance(document, list):
        inner = enumerate(document)
    else:
        return [way]
    return [way, *(place for key, value in inner for place in places(value, (*way, key)))]


def changed(document: Any, others: list[Any], rng: random.Random) -> Any:
    """A copy with one to a few values replaced, removed, doubled or put elsewhere."""
    document = copy.deepcopy(document)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        inside = [place for place in places(document) if place]
        if not inside:
            return {"new": copy.deepcopy(rng.choice(ODD))}
        *way, last = rng.choice(inside)
        holder = document
        for key in way:
            holder = holder[key]
        other = rng.choice(others)
        for key in rng.choice(places(other)):
            other = other[key]
        match rng.randrange(6):
            case 0 | 1 | 2:
                holder[last] = copy.deepcopy(rng.choice(ODD))
            case 3:
                holder[last] = copy.deepcopy(other)
            case 4:
                del holder[last]
            case 5:
                old = holder[last]
                holder[last] = (
                    old * 2 if isinstance(old, (list, str)) else {**old, "new": 1} if isinstance(old, dict) else [old]
                )
    return document


def model(rng: random.Random, folder: Path) -> str:
    """A model file is applied, or refused before anything is written."""
    document = changed(rng.choice(_models()), list(_models()), rng)
    document.pop("sha256", None)
    (folder / "m.json").write_text(with_checksum(document) if rng.random() < 0.95 else json.dumps(document))
    (folder / "rows.csv").write_text(ROWS)
    outcome = decal(folder, "apply", "m.json", "rows.csv", "-o", "out.csv")
    left = sorted(path.name for path in folder.iterdir())
    assert left == (["m.json", "out.csv", "rows.csv"] if outcome == "exit 0" else ["m.json", "rows.csv"]), left
    return f"model: {outcome}"


@functools.cache
def _report(folder: str) -> dict[str, Any]:
    path = Path(folder) / "b.json"
    assert (
        decal(
            Path(folder),
            "evaluate",
            "rows.csv",
            "-s",
            "p",
            "-y",
            "y",
            "-t",
            "0.3",
            "-m",
            "brier",
            "-m",
            "expected_utility",
            "-o",
            str(path),
        )
        == "exit 0"
    )
    return json.loads(path.read_text())


def baseline(rng: random.Random, folder: Path) -> str:
    """A gate against a baseline judges, or cannot."""
    (folder / "rows.csv").write_text(ROWS)
    if not _BASELINE:
        _BASELINE.append(_report(str(folder)))
    (folder / "b.json").write_text(json.dumps(changed(_BASELINE[0], _BASELINE, rng)))
    rule = rng.choice(["brier<=baseline+0.1", "expected_utility>=baseline-0.1"])
    return "baseline: " + decal(
        folder, "gate", "rows.csv", "-s", "p", "-y", "y", "-t", "0.3", "-r", rule, "--baseline", "b.json"
    )


_BASELINE: list[dict[str, Any]] = []


def state(rng: random.Random, folder: Path) -> str:
    """Records of a study are what `measure` gives, or are measured again."""
    entry = changed({"key": "k", "record": _record()}, [_record()], rng)
    (folder / NAME).write_text(json.dumps(entry) + "\n")
    record = Store(folder).records.get("k", {})
    if not is_record(record, UNIT, SETTING):
        return "state: measured again"
    try:
        as_text(Studied(summarise(Study(({**record, "file": UNIT.file},), (), SETTING))))
    except DecalError as error:
        assert str(error).isprintable() and error.fix
    return "state: taken"


def case(rng: random.Random, folder: Path) -> str:
    """One file of one of the three kinds."""
    return rng.choice([model, model, baseline, state])(rng, folder)
