"""Model files and baselines with anything in them and the checksum that belongs to it, and records of a study."""

import copy
import functools
import json
import random
import tempfile
from pathlib import Path
from typing import Any

from decal_cli.analysis.study import NAME, Store, Unit, measure
from decal_cli.learn.method import fit
from decal_cli.learn.methods import parse
from decal_cli.learn.model_file import Saved, to_text
from tests.fuzz.harness import decal
from tests.fuzz.readers import mutated
from tests.helpers.model_files import with_checksum
from tests.helpers.studies import study_predictions, study_setting
from tests.helpers.training import FIFTH, random_training

ODD: list[Any] = [
    *(None, True, -1, 0, 1, 2**31, 2**63, 10**30, 1e-320, 1e300, -0.5, 0.5, 1.5),
    *("", "p", "a\x1b[31m", "\u202e", "x" * 3_000),
    *([], {}, [[]], [0.5, 0.5], {"number": "inf"}, {"number": "nan"}, {"float64": [0.5]}, {"int32": [-1, 0, 1]}),
    *({"text": ["a"]}, {"float64": "AAAA", "shape": [1]}, {"model": "Curve"}, [1, 2, 3] * 100),
]
KEYS = [
    *("isotonic", "platt", "venn-abers", "histogram(bins=3)", "threshold", "glar(r=-1)", "multicalibration"),
    *("stack-forest(trees=2)", "probing(probes=3)", "meta-cal"),
]
NAMED = ("rows.csv", "-s", "p", "-y", "y", "-t", "0.3")
SETTING = study_setting("isotonic")
UNIT = Unit("a.csv", "p", 0)
ROWS = "p,y,x1,x2,x3,site\n" + "".join(f"{k / 30},{k % 2},{k},{-k},1,s{k % 3}\n" for k in range(30))


@functools.cache
def _models() -> tuple[dict[str, Any], ...]:
    rows = random_training(120, seed=3)
    names = ("x1", "x2", "x3")
    made = (Saved(key, fit(parse(key), rows), "p", names, 3, ("number",) * 3, ("site",), task=FIFTH) for key in KEYS)
    documents = [json.loads(to_text(each)) for each in made]
    return tuple({key: value for key, value in each.items() if key != "sha256"} for each in documents)


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
                more = {**old, "new": 1} if isinstance(old, dict) else [old]
                holder[last] = old * 2 if isinstance(old, list | str) else more
    return document


def model(rng: random.Random, folder: Path) -> str:
    """A model file is applied, or refused before anything is written; one that was damaged is refused."""
    sound = rng.choice(_models())
    whole = with_checksum(sound).encode()
    if damaged := rng.random() < 0.1:
        content = mutated(whole, [whole], rng)
    else:
        document = changed(sound, list(_models()), rng)
        content = (with_checksum(document) if rng.random() < 0.95 else json.dumps(document)).encode()
    (folder / "m.json").write_bytes(content)
    (folder / "rows.csv").write_text(ROWS)
    outcome = decal(folder, "apply", "m.json", "rows.csv", "-o", "out.csv")
    assert not (damaged and outcome == "exit 0" and content != whole), "a damaged model file was taken"
    left = sorted(path.name for path in folder.iterdir())
    assert left == (["m.json", "out.csv", "rows.csv"] if outcome == "exit 0" else ["m.json", "rows.csv"]), left
    return f"model: {outcome}"


@functools.cache
def _report() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "rows.csv").write_text(ROWS)
        chosen = ("-m", "brier", "-m", "expected_utility", "-o", "b.json")
        assert decal(Path(folder), "evaluate", *NAMED, *chosen) == "exit 0"
        return json.loads(Path(folder, "b.json").read_text())


def baseline(rng: random.Random, folder: Path) -> str:
    """A gate against a baseline judges, or cannot."""
    (folder / "rows.csv").write_text(ROWS)
    (folder / "b.json").write_text(json.dumps(changed(_report(), [_report()], rng)))
    rule = rng.choice(["brier<=baseline+0.1", "expected_utility>=baseline-0.1"])
    return "baseline: " + decal(folder, "gate", *NAMED, "-r", rule, "--baseline", "b.json")


def state(rng: random.Random, folder: Path) -> str:
    """Records of a study are what was written, or are measured again."""
    Store(folder).add("k", _record())
    entry = json.loads((folder / NAME).read_text())
    (folder / NAME).write_text(json.dumps(changed(entry, [_record()], rng)) + "\n")
    record = Store(folder).records.get("k")
    if record is None:
        return "state: measured again"
    assert record == _record()
    return "state: taken"


def case(rng: random.Random, folder: Path) -> str:
    """One file of one of the three kinds."""
    return rng.choice([model, model, baseline, state])(rng, folder)
