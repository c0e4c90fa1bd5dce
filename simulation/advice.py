"""What following the advice wins beside simple rules, in eight worlds whose truth is known.

A practitioner's rival to `decal recommend` is five lines: fit isotonic regression, Platt scaling, a logistic and a
boosted stack by cross-validation, and keep the best. Here both get the same rows, what each chooses is fitted to all of
them, and the true probabilities of fresh rows say what it wins.

The worlds come in four pairs: nothing to win, miscalibrated, features that know more, and both. A coin for each pair,
by the seed ASIDE, says which world was set aside until everything was chosen on the other one.

`python -m simulation.advice run FILE` draws samples and appends one line of JSON a sample; it goes on where it stopped.
`python -m simulation.advice tables FILE` writes a table of simulation/RESULTS.md; `seeds FILE` counts how often
the advice depends on the seed.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from decal_cli.analysis.evaluate import Plan, Report
from decal_cli.analysis.evidence import FITS, Evidence, Item
from decal_cli.analysis.flowchart import Advice, walk
from decal_cli.analysis.recommend import EVIDENCE, Preferences, recommend
from decal_cli.data import Columns, Dataset, Predictions, read
from decal_cli.learn import held_out
from decal_cli.learn.method import fit, training_rows
from decal_cli.learn.methods import METHODS
from decal_cli.tables.rows import Rows
from decal_cli.tables.threads import one_thread
from decal_cli.task import BinaryTask, ClassTask
from simulation.study import write
from simulation.worlds import Floats

PAGE = Path(__file__).parent.parent / "simulation" / "RESULTS.md"
SEED, ASIDE = 20291, 29
SAMPLES = {500: 60, 2000: 60, 10_000: 12}
"""Samples of each number of rows, in each world."""
FRESH = 10_000
"""Rows whose true probabilities judge what was fitted."""
FEATURES, FOLDS = 6, 5
RIVALS = ("isotonic", "platt", "logistic stack", "boosted stack")
CURVES = ("isotonic", "platt", "beta")
"""Methods of decal's own whose true gain is kept, whether the advice names them or not; blend's where it may win."""


@dataclass(frozen=True)
class World:
    """One world: the score knows two features; hidden moves the log-odds by the others; shown makes the score of c."""

    name: str
    threshold: float
    middle: float
    spread: float
    shown: Callable[[Floats], Floats]
    hidden: Callable[[Floats], Floats] | None = None

    @property
    def task(self) -> BinaryTask:
        """Costs that add up to 1."""
        return BinaryTask.of_threshold(self.threshold)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Rows, Floats]:
        """n rows and their true probabilities q; c, the mean of q at a score, is taken over fixed hidden features."""
        x = rng.standard_normal((n, FEATURES))
        latent = self.middle + self.spread * (x[:, 0] + x[:, 1]) / np.sqrt(2)
        q = c = expit(latent)
        if self.hidden is not None:
            nodes = np.quantile(self.hidden(np.random.default_rng(1).standard_normal((100_000, FEATURES))), _SHARES)
            q, c = expit(latent + self.hidden(x)), np.mean([expit(latent + node) for node in nodes], axis=0)
        label = (rng.random(n) < q).astype(np.uint8)
        return Rows(np.clip(self.shown(c), 0.0, 1.0), label, features=x), q


_SHARES = (np.arange(400) + 0.5) / 400

WORLDS = (
    World("calibrated", 0.3, -1.0, 1.2, lambda c: c),
    World("off, but not at t*", 0.2, -1.0, 1.2, lambda c: expit(logit(0.2) + 1.9 * (logit(c) - logit(0.2)))),
    World("shifted", 0.3, -1.0, 1.2, lambda c: expit(logit(c) + 0.8)),
    World("bent", 0.4, -0.6, 1.3, lambda c: c**0.7),
    World("linear", 0.3, -1.0, 1.0, lambda c: c, lambda x: 0.9 * (x[:, 2] + x[:, 3]) / np.sqrt(2)),
    World("subgroup", 0.35, -1.0, 1.0, lambda c: c, lambda x: np.where(x[:, 2] > 1.04, 1.6, -0.3)),
    World("product, shifted", 0.3, -1.0, 1.0, lambda c: expit(logit(c) + 0.5), lambda x: 1.2 * x[:, 2] * x[:, 3]),
    World("rare, overconfident", 0.08, -3.2, 1.0, lambda c: expit(-3.0 + 1.6 * (logit(c) + 3.0)),
          lambda x: 0.9 * (np.abs(x[:, 2]) - 0.8) + 0.5 * x[:, 3]),
)  # fmt: skip
NOTHING_TO_WIN = ("calibrated", "off, but not at t*")


def set_aside() -> tuple[str, ...]:
    """The worlds that nothing was chosen on: one of each pair, by a coin."""
    coins = np.random.default_rng(ASIDE).integers(2, size=len(WORLDS) // 2)
    return tuple(WORLDS[2 * pair + int(coin)].name for pair, coin in enumerate(coins))


class Estimate(NamedTuple):
    """A gain over leaving the score, cross-validated, and its paired standard error."""

    gain: float
    error: float


def rival_score(name: str, rows: Rows, new: Rows) -> Floats:
    """What a rival's method, fitted to rows, says of new ones: scikit-learn at its defaults.

    Of several classes isotonic regression is one class against the others, and Platt scaling a multinomial regression
    on the logarithms of the probabilities.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if name == "isotonic":
        labels = [rows.label] if not rows.classes else [rows.label == k for k in range(len(rows.classes))]
        pairs = zip(labels, rows.score.reshape(len(rows), -1).T, new.score.reshape(len(new), -1).T, strict=True)
        curves = [IsotonicRegression(out_of_bounds="clip").fit(score, y).predict(other) for y, score, other in pairs]
        return _of_sum_one(np.column_stack(curves)) if rows.classes else np.asarray(curves[0])
    columns = [
        _log_odds(each) if name != "boosted stack" else each.score.reshape(len(each), -1) for each in (rows, new)
    ]
    if name != "platt":
        columns = [np.column_stack((one, each.matrix)) for one, each in zip(columns, (rows, new), strict=True)]
    if name == "boosted stack":
        model: Any = HistGradientBoostingClassifier(random_state=0)
    else:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    chances = np.asarray(model.fit(columns[0], rows.label).predict_proba(columns[1]))
    if not rows.classes:
        return chances[:, 1]
    known = np.zeros((len(new), len(rows.classes)))
    known[:, model.classes_.astype(np.int64)] = chances
    return known


def _of_sum_one(chances: Floats) -> Floats:
    total = chances.sum(axis=1, keepdims=True)
    return np.divide(chances, total, out=np.full_like(chances, 1 / chances.shape[1]), where=total > 0)


def _log_odds(rows: Rows) -> Floats:
    """Of two classes, shape (T, 1); of several the logarithms, (T, K)."""
    p = np.clip(rows.score, 1e-6, 1 - 1e-6)
    return np.log(p) if rows.classes else logit(p)[:, None]


def cross_validated(rows: Rows, rng: np.random.Generator) -> dict[str, Floats]:
    """What each rival says of held-out rows."""
    fold = rng.permutation(len(rows)) % FOLDS
    found = {name: np.empty(rows.score.shape) for name in RIVALS}
    for name, score in found.items():
        for k in range(FOLDS):
            score[fold == k] = rival_score(name, rows.take(fold != k), rows.take(fold == k))
    return found


def won(rows: Rows, score: Floats, threshold: float) -> Floats:
    """What deciding by another score wins over deciding by that of the rows, by their labels, shape (T,)."""
    return (rows.label - threshold) * ((score >= threshold) * 1.0 - (rows.score >= threshold))


def estimate_of(rows: Rows, score: Floats, threshold: float) -> Estimate:
    """The mean of that, and its standard error."""
    each = won(rows, score, threshold)
    return Estimate(float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each))))


@cache
def _fresh(index: int) -> tuple[Rows, Floats]:
    return WORLDS[index].draw(FRESH, np.random.default_rng([SEED, index]))


def _model(rows: Rows) -> Predictions:
    return Predictions("model", ("score",), rows)


def advice_on(model: Predictions, task: BinaryTask | ClassTask, seed: int) -> tuple[Report, Advice]:
    """What `decal recommend` says of a model."""
    asked = tuple(choice for choice in EVIDENCE if choice.declared.takes(True)) if model.rows.classes else EVIDENCE
    return recommend(Dataset((), {}, (), (model,), ()), Plan(asked, task, seed=seed), Preferences()).advised[0]


def sample(world: World, n: int, number: int) -> dict[str, Any]:
    """One line of results. Gains are per decision, over leaving the score as it is."""
    index = WORLDS.index(world)
    rng = np.random.default_rng([SEED, index, n, number])
    rows, _ = world.draw(n, rng)
    (fresh, q), t = _fresh(index), world.threshold

    def true_gain(score: Floats) -> float:
        return float(np.mean((q - t) * ((score >= t) * 1.0 - (fresh.score >= t))))

    rivals = {name: true_gain(rival_score(name, rows, fresh)) for name in RIVALS}
    report, advice = advice_on(_model(rows), world.task, number)
    training = training_rows(_model(rows), world.task, number)
    may_win = ("blend",) if (report.results["gain_post_training"].value or 0.0) > 0 else ()
    fitted = {name: fit(METHODS.parse(name), training) for name in (*CURVES, *may_win)}
    return {
        "world": world.name, "n": n, "sample": number,
        "stakes": float(min(q.mean() * (1 - t), (1 - q.mean()) * t)),
        "oracle": true_gain(q), "rivals": rivals, 
        "cv": {name: estimate_of(rows, score, t) for name, score in cross_validated(rows, rng).items()}, 
        "decal": {name: true_gain(each(fresh).score) for name, each in fitted.items()},
        "calibrators": Counter(held_out.of_table(rows.table, number).chosen),
        "named": advice.act_now.method, "gain": advice.act_now.gain, "action": advice.action,
        "certainty": advice.certainty, "chance": advice.act_now.chance,
        "items": {key: [each.value, each.interval] for key, each in report.results.items()},
    }  # fmt: skip


def run(path: Path, worlds: Sequence[str], most: int) -> None:
    """Append the samples that the file does not hold, the first samples of all cells first.

    Cells of fewer samples have every number of a regular spacing, so that all cells fill up at the same pace.
    """
    done = {(each["world"], each["n"], each["sample"]) for each in read_lines(path)} if path.exists() else set()
    for number in range(min(most, max(SAMPLES.values()))):
        for world in WORLDS:
            for n, samples in SAMPLES.items():
                turn = number % (max(SAMPLES.values()) // samples) == 0
                if world.name not in worlds or not turn or (world.name, n, number) in done:
                    continue
                began = time.process_time()
                with warnings.catch_warnings(), one_thread():
                    warnings.simplefilter("ignore")
                    line = sample(world, n, number)
                with path.open("a", encoding="utf-8") as file:
                    print(json.dumps(line | {"seconds": round(time.process_time() - began, 2)}), file=file)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of results."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


Line = Mapping[str, Any]
"""A line of results."""


def advised(line: Line) -> str | None:
    """The method that today's rules name on what was measured on a sample; None: leave the score."""
    items = {key: Item(key, value, interval and tuple(interval)) for key, (value, interval) in line["items"].items()}
    curve = held_out.method_of(list(Counter(line["calibrators"]).elements()), line["n"])
    (threshold,) = (world.threshold for world in WORLDS if world.name == line["world"])
    fits = {**FITS, "recalibrate": curve}
    return walk(Evidence(items, line["n"], True, acts_from=threshold, fits=fits)).act_now.method


def by_advice(line: Line) -> float:
    """What following `act_now` wins, per 1,000 decisions."""
    method = advised(line)
    return 0.0 if method is None else 1000 * line["decal"][method]


def picked(cv: Mapping[str, Sequence[float]], less: float = 0.0) -> str | None:
    """The rival of the largest cross-validated gain, less so many standard errors; None where that is not above 0."""
    best, (gain, error) = max(cv.items(), key=lambda each: each[1][0] - less * each[1][1])
    return best if gain > less * error else None


def by_cross_validation(line: Line, less: float) -> float:
    """What the rival that is picked wins, per 1,000 decisions."""
    best = picked(line["cv"], less)
    return 0.0 if best is None else 1000 * line["rivals"][best]


CHOICES: dict[str, Callable[[Line], float]] = {
    **{name: partial(lambda name, line: 1000 * line["rivals"][name], name) for name in RIVALS},
    "choose by CV": partial(by_cross_validation, less=0),
    "CV less 1 s.e.": partial(by_cross_validation, less=1),
    "CV less 2 s.e.": partial(by_cross_validation, less=2),
    "decal": by_advice,
}


def tables(lines: Sequence[Line], worlds: Sequence[str]) -> Iterator[str]:
    """Markdown: a row for each cell, and the means over cells, with standard errors; per 1,000 decisions."""
    cells = {(world, n): [line for line in lines if (line["world"], line["n"]) == (world, n)]
             for world in worlds for n in SAMPLES}  # fmt: skip
    won = {
        cell: {name: np.array([choice(line) for line in of_cell]) for name, choice in CHOICES.items()}
        for cell, of_cell in cells.items() if len(of_cell) > 1
    }  # fmt: skip
    yield "| world | rows | samples | at stake | best possible | " + " | ".join(CHOICES) + " |"
    yield "|---" * (5 + len(CHOICES)) + "|"
    for cell, of_cell in won.items():
        line = cells[cell][0]
        first = (*cell[:1], f"{cell[1]:,}", str(len(cells[cell])), f"{1000 * line['stakes']:.0f}",
                 f"{1000 * line['oracle']:.1f}")  # fmt: skip
        yield "| " + " | ".join((*first, *(_with_error(each.mean(), _error(each)) for each in of_cell.values()))) + " |"
    yield "| mean |  |  |  |  | " + " | ".join(_over_cells(won, name, None) for name in CHOICES) + " |"
    yield "| decal's less |  |  |  |  | " + " | ".join(_over_cells(won, "decal", name) for name in CHOICES) + " |"


def _over_cells(won: Mapping[Any, Mapping[str, Floats]], name: str, less: str | None) -> str:
    """The mean over cells, or that of the paired difference."""
    each = [of_cell[name] - (0.0 if less is None else of_cell[less]) for of_cell in won.values()]
    error = np.sqrt(sum(_error(one) ** 2 for one in each)) / len(each)
    return _with_error(float(np.mean([one.mean() for one in each])), error)


def _error(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _with_error(value: float, error: float) -> str:
    return f"{value + 0:.1f} ({error:.1f})"


SEEDS = 6
"""Seeds of decal's own random numbers by which each case of `seeds` is advised."""


def cases() -> Iterator[tuple[str, Rows, BinaryTask]]:
    """Fifty sets of rows with a decision: two samples of two sizes of each world, and the fixtures at three costs."""
    for index, world in enumerate(WORLDS):
        for n, number in ((500, 0), (500, 1), (500, 2), (2000, 0), (2000, 1)):
            yield (
                f"{world.name}, {n}, {number}",
                world.draw(n, np.random.default_rng([SEED, index, n, number]))[0],
                world.task,
            )
    folder = Path(__file__).parent.parent / "fixtures"
    for file, score, features in (("binary_n2000.csv", "p", "x*"), ("fox_news.parquet", "p_hatesonar", "x*")):
        data = read([str(folder / file)], Columns(score=(score,), label="y", features=(features,)))
        for threshold in (0.05, 0.1, 0.3, 0.5, 0.7):
            yield f"{file}, {threshold}", data.models[0].rows, BinaryTask.of_threshold(threshold)


def seeds(path: Path) -> None:
    """Append the advice on each case by each seed, of those that the file does not hold."""
    done = {each["case"] for each in read_lines(path)} if path.exists() else set()
    for case, rows, task in cases():
        if case not in done:
            with one_thread():
                all_of = [advice_on(_model(rows), task, seed)[1] for seed in range(SEEDS)]
            line = {"case": case, "action": [each.act_now.action for each in all_of],
                    "certainty": [each.certainty for each in all_of]}  # fmt: skip
            with path.open("a", encoding="utf-8") as file:
                print(json.dumps(line), file=file)


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw samples, or write the table of those drawn into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "tables", "seeds"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--aside", action="store_true", help="the worlds that were set aside, in place of the others")
    parser.add_argument("--samples", type=int, default=max(SAMPLES.values()), help="of each cell, at most")
    given = parser.parse_args(arguments)
    worlds = [world.name for world in WORLDS if (world.name in set_aside()) == given.aside]
    if given.what == "run":
        run(given.file, worlds, given.samples)
    elif given.what == "seeds":
        seeds(given.file)
    else:
        write(PAGE, "aside" if given.aside else "tuned", tables(read_lines(given.file), worlds), "advice")


if __name__ == "__main__":
    main()
