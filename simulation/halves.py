"""Real sets halved: what following the advice on one half wins on the other, beside choosing by cross-validation.

`python -m simulation.halves run FOLDER .. FILE` halves each Parquet file below the folders that has a label y, features
(x* or f_*) and scores: p_* of two classes, or MODEL:CLASS of several. It appends one line of JSON for each set, score,
halving and decision (a threshold, or the price of abstaining), and goes on where it stopped. Of larger sets MAX_ROWS
rows are taken, clusters whole. `tables FILE` prints what came of it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq

from decal_cli.analysis.described import BestRecalibrator, Worth
from decal_cli.analysis.evidence import FITS, Evidence, Item
from decal_cli.analysis.flowchart import Advice, walk
from decal_cli.data import Columns, Predictions, read
from decal_cli.errors import Undefined
from decal_cli.learn.method import fit, training_rows
from decal_cli.learn.methods import METHODS
from decal_cli.learn.models import actions_taken
from decal_cli.tables.features import Features
from decal_cli.tables.rows import Rows
from decal_cli.tables.threads import one_thread
from decal_cli.task import BinaryTask, ClassDecision, ClassTask, abstaining
from simulation.advice import Estimate, advice_on, cross_validated, picked, read_lines, rival_score
from simulation.worlds import Floats

THRESHOLDS = (0.1, 0.3, 0.5)
"""Of decisions on two classes, and prices of abstaining where there are several."""
SPLITS, MAX_ROWS, LEAST, MAX_SCORES = 20, 4_000, 400, 8
MAX_CLASSES = 20
"""Of more classes scikit-learn's boosting, a rival, takes an hour a set."""
LOSS = 2.0
"""Of 1,000 at stake: what counts as a loss."""
Decision = BinaryTask | ClassDecision


def numbers_of(features: Features) -> Floats:
    """Features as scikit-learn takes them: the mean for missing numbers, an indicator for each of 30 categories."""
    means = np.nan_to_num(np.nanmean(features.numbers, axis=0)) if features.numbers.size else 0.0
    columns = [np.where(np.isnan(features.numbers), means, features.numbers)]
    for codes in features.codes.T:
        common = np.unique(codes, return_counts=True)
        kept = common[0][np.argsort(-common[1], kind="stable")[:30]]
        columns.append((codes[:, None] == kept).astype(np.float64))
    return np.hstack(columns)


def samples(folders: Sequence[Path], splits: int) -> Iterator[tuple[dict[str, Any], Predictions]]:
    """Each set, score and halving, with the rows: one score of every set, then the next one."""
    files = [(path, pq.read_schema(path).names) for folder in folders for path in sorted(folder.rglob("*.parquet"))]
    for split, place in itertools.product(range(splits), range(MAX_SCORES)):
        for path, names in files:
            features = tuple(f"{letter}*" for letter in ("x", "f_") if any(name.startswith(letter) for name in names))
            several = list(dict.fromkeys(f"{name.split(':')[0]}:*" for name in names if ":" in name))
            scores = several or [name for name in names if name.startswith("p_")]
            if "y" not in names or not features or place >= len(scores):
                continue
            score = scores[(split + place) % len(scores)]
            given = Columns(
                label="y",
                features=features,
                cluster="cluster" if "cluster" in names else None,
                missing="drop",
                score=() if several else (score,),
                proba=(score,) if several else (),
            )
            (model,) = read([str(path)], given).models
            if len(model.rows) >= LEAST and len(model.rows.classes) <= MAX_CLASSES:
                case = {"set": f"{path.parent.name}/{path.stem}", "score": score.removesuffix(":*"), "split": split}
                yield case, replace(model, rows=replace(model.rows, groups={}))


def decisions_on(rows: Rows) -> Iterator[tuple[float, ClassTask | BinaryTask, Decision]]:
    """The decisions whose gains are compared, as decal is given them and on these classes."""
    for t in THRESHOLDS:
        task = abstaining(t) if rows.classes else BinaryTask.of_threshold(t)
        yield t, task, cast(Decision, task.for_classes(rows.classes))


def won_by(rows: Rows, score: Floats, decision: Decision) -> Floats:
    """What deciding by another score wins over deciding by that of the rows, by their labels, shape (T,)."""
    then, now = (actions_taken(each, decision, at_best=True) for each in (score, rows.score))
    worth, label = np.array(decision.undominated), rows.label.astype(np.int64)
    return worth[then, label] - worth[now, label]


def at_stake(rows: Rows, decision: Decision) -> float:
    """What perfect decisions are worth more than the best constant one, per decision."""
    worth = np.array(decision.undominated)[:, rows.label.astype(np.int64)]
    return float(worth.max(axis=0).mean() - worth.mean(axis=1).max())


def lines_of(case: dict[str, Any], model: Predictions) -> Iterator[dict[str, Any]]:
    """A line for each decision; gains are per decision, over leaving the score as it is, on the other half."""
    rows = model.rows
    rng = np.random.default_rng([case["split"], len(rows)])
    place = rows.places(rng)
    ours = [rows.take((place < MAX_ROWS) & (place % 2 == half)) for half in (0, 1)]
    table = numbers_of(rows.typed)
    theirs = [replace(each, features=table[(place < MAX_ROWS) & (place % 2 == half)], cluster=None)
              for half, each in enumerate(ours)]  # fmt: skip
    held_out = cross_validated(theirs[0], rng)
    final = {name: rival_score(name, *theirs) for name in held_out}
    fitted: dict[str, Floats] = {}
    half = replace(model, rows=ours[0])
    for t, task, decision in decisions_on(rows):
        report, advice = advice_on(half, task, case["split"])
        worth, best = report.find(Worth), report.find(BestRecalibrator)
        named = (best.method if best else FITS["recalibrate"], "blend")
        for name in set(named) - set(fitted):
            fitted[name] = fit(METHODS.parse(name), training_rows(half, decision, case["split"]))(ours[1]).score
        each = {name: won_by(theirs[0], score, decision) for name, score in held_out.items()}
        choice = picked({name: Estimate(float(won.mean()), 0.0) for name, won in each.items()})

        def wins(score: Floats, decision: Decision = decision) -> float:
            return float(won_by(ours[1], score, decision).mean())

        yield case | {
            "t": t, "stakes": at_stake(ours[1], decision), "rows": report.rows, "recalibrator": named[0],
            "acts_from": task.decision_threshold if isinstance(task, BinaryTask) else None,
            "best_constant": worth.action if worth else None,
            "picked": choice, "certainty": advice.certainty, "named": advice.act_now.method,
            "won": {name: wins(fitted[name]) for name in named}, "constants": constants(ours[1], decision),
            "cv": 0.0 if choice is None else wins(final[choice]), "stack": wins(final["boosted stack"]),
            "predicted": report.results["gain_post_training"].value,
            "items": {key: [each.value, each.interval] for key, each in report.results.items()},
        }  # fmt: skip


def constants(rows: Rows, decision: Decision) -> dict[str, float]:
    """What each constant decision wins over deciding by the score, by its name or number."""
    names = decision.taken if isinstance(decision, ClassDecision) else ("0", "1")
    worth, label = np.array(decision.undominated), rows.label.astype(np.int64)
    now = worth[actions_taken(rows.score, decision, at_best=True), label]
    return {name: float((each[label] - now).mean()) for name, each in zip(names, worth, strict=True)}


def advised(line: dict[str, Any]) -> Advice:
    """What today's rules say of what was measured on one half."""
    items = {key: Item(key, value, interval and tuple(interval)) for key, (value, interval) in line["items"].items()}
    fits = {**FITS, "recalibrate": line["recalibrator"]}
    return walk(Evidence(items, line["rows"], True, acts_from=line["acts_from"], best_constant=line["best_constant"],
                         fits=fits))  # fmt: skip


def by_advice(line: dict[str, Any]) -> float:
    """What the first line of the advice wins: a method, a constant decision, or the score as it is."""
    advice = advised(line)
    if advice.act_now.method is not None:
        return float(line["won"][advice.act_now.method])
    constant = advice.constant
    return float(line["constants"][str(constant.decision)]) if constant is not None and constant.gain > 0 else 0.0


def run(folders: Sequence[Path], file: Path, splits: int) -> None:
    """Append the lines that the file does not hold."""
    done = {(each["set"], each["score"], each["split"]) for each in read_lines(file)} if file.exists() else set()
    for case, model in samples(folders, splits):
        if tuple(case.values()) in done:
            continue
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = list(lines_of(case, model))
            except (Undefined, ValueError) as problem:
                print(case, problem, flush=True)
                continue
        with file.open("a", encoding="utf-8") as out:
            out.writelines(json.dumps(line) + "\n" for line in found)


SHOWN: dict[str, Callable[[dict[str, Any]], float]] = {
    "decal": by_advice,
    "cv": itemgetter("cv"),
    "predicted": itemgetter("predicted"),
    "blend": lambda line: float(line["won"]["blend"]),
}
"""What is compared, by line."""


def tables(lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Markdown: by kind of set, what each way to act wins per 1,000 at stake, and how gains were foretold.

    Standard errors and intervals are over pairs of set and score, whose points share rows. r2 of means: each pair's
    means over its halvings, threshold by threshold, so that the noise of one half of the rows is less.
    """
    yield (
        "| sets | points | decal | choose by CV | decal less CV | decal loses over 2 | CV loses over 2 "
        "| r2 | slope | r2 of means |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    kinds = sorted({line["set"].split("/")[0] for line in lines})
    for kind, within in (*((kind, [kind]) for kind in kinds), ("all but text", set(kinds) - {"text"}), ("all", kinds)):
        of_kind = [line for line in lines if line["set"].split("/")[0] in within and line["predicted"] is not None]
        if not of_kind:
            continue
        share = {key: np.array([1000 * of(line) / line["stakes"] for line in of_kind]) for key, of in SHOWN.items()}
        pairs = np.unique([f"{line['set']} {line['score']}" for line in of_kind], return_inverse=True)[1]
        less = np.bincount(pairs, share["decal"] - share["cv"]) / np.bincount(pairs)
        half = 1.96 * less.std(ddof=1) / np.sqrt(len(less)) if len(less) > 1 else np.nan
        r2 = np.corrcoef(share["predicted"], share["blend"])[0, 1] ** 2
        of_pair = np.unique([f"{line['set']} {line['score']} {line['t']}" for line in of_kind], return_inverse=True)[1]
        means = [np.bincount(of_pair, share[key]) / np.bincount(of_pair) for key in ("predicted", "blend")]
        slope = np.polyfit(share["predicted"], share["blend"], 1)[0]
        lost = [100 * float(np.mean(share[key] < -LOSS)) for key in ("decal", "cv")]
        yield (
            f"| {kind} | {len(of_kind)} | {share['decal'].mean():.1f} | {share['cv'].mean():.1f} "
            f"| {less.mean():.1f} [{less.mean() - half:.1f}, {less.mean() + half:.1f}] "
            f"| {lost[0]:.1f} % | {lost[1]:.1f} % | {r2:.2f} | {slope:.2f} "
            f"| {np.corrcoef(np.array(means))[0, 1] ** 2:.2f} |"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Halve sets, or print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "tables"))
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--splits", type=int, default=SPLITS)
    given = parser.parse_args(arguments)
    if given.what == "run":
        run(given.paths[:-1], given.paths[-1], given.splits)
    else:
        print("\n".join(tables(read_lines(*given.paths))))


if __name__ == "__main__":
    main()
