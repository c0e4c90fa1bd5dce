"""Raw texts as a feature: the gain that is foretold on one half of the rows, and what `blend` wins on the other half.

`python -m simulation.texts --seeds 5` prints the table of docs/probe.md. The sentences are this module's own.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.learn.method import Training, fit
from decal_cli.learn.methods import METHODS
from decal_cli.metrics import Inputs, Result, measure, parse
from decal_cli.metrics.decisions import Change
from decal_cli.metrics.inputs import decisions_on
from decal_cli.tables.features import Features
from decal_cli.tables.raw_texts import RawTexts
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask

THRESHOLDS = (0.1, 0.3, 0.5)
SHIFT = 2.4
"""What a telling phrase adds to the log-odds, or takes from them."""


class Phrases(NamedTuple):
    """What sentences of a kind are made of: phrases that say nothing, and those that raise or lower the log-odds."""

    neutral: Sequence[str]
    higher: Sequence[str]
    lower: Sequence[str]
    between: str = " "


PHRASES: Mapping[str, Phrases] = {
    "tickets": Phrases(
        ("hello there", "I ordered a lamp last week", "my number is 4711", "the parcel came on Monday", "thank you",
         "it is for my sister", "please write to me", "the colour is blue", "I live in Leeds", "best regards",
         "I paid by card", "the box was open", "we met at the fair", "the shop was closed", "sorry for the late reply"),
        ("I want my money back", "a refund, please", "this is the third time I complain", "it is BROKEN!!"),
        ("it works well", "just a question", "happy with the service"),
    ),
    "Anfragen": Phrases(
        ("Guten Tag", "ich wohne in Köln", "die Tür ist grün", "mein Schlüssel liegt im Büro", "vielen Dank",
         "das Gerät steht im Flur", "bitte rufen Sie zurück", "mit freundlichen Grüßen", "es geht um Zimmer 12",
         "der Aufzug hält im dritten Stock", "wir zahlen monatlich", "am Dienstag bin ich verreist"),
        ("das Wasser läuft über", "es riecht nach Gas", "überall Schimmel", "die Heizung fällt ständig aus"),
        ("es eilt nicht", "nur zur Kenntnis", "alles läuft prima"),
    ),
    "留言": Phrases(
        ("你好", "我昨天买了一本书", "请问几点开门", "谢谢您", "我住在上海", "颜色是蓝色的", "下周再联系", "快递收到了",
         "这是送给妈妈的", "我在公司楼下", "今天下雨了", "电话打不通"),
        ("我要退款", "质量太差了", "完全不能用", "再也不买了"),
        ("非常满意", "随便问问", "用起来很好"),
        between="，",
    ),
}  # fmt: skip


class Written(NamedTuple):
    """Rows with a text each. score, label: (T,); the score knows nothing of the texts."""

    score: NDArray[np.float64]
    label: NDArray[np.float64]
    texts: list[str]

    def rows(self, which: NDArray[np.int64]) -> Training:
        """Some of them, as methods take them."""
        names = RawTexts(sorted({self.texts[k] for k in which}))
        place = {name: code for code, name in enumerate(names)}
        codes = np.array([[place[self.texts[k]]] for k in which], dtype=np.int32)
        features = Features(np.empty((len(which), 0)), codes, (names,), ("text",))
        return Training(self.score[which], self.label[which], features=features)


def written(rng: np.random.Generator, kind: str, rows: int) -> Written:
    """Rows of a kind of sentences, one in three of them with a telling phrase; or of words, with a keyword."""
    if kind == "keyword":
        return with_keyword(rng, rows)
    phrases, texts, known = PHRASES[kind], [], rng.normal(-0.5, 1, rows)
    telling = rng.choice([-1, 0, 1], rows, p=[0.2, 0.65, 0.15])
    for which in telling:
        said = list(rng.choice(phrases.neutral, rng.integers(2, 6), replace=False))
        if which:
            said.insert(
                int(rng.integers(len(said) + 1)), str(rng.choice((phrases.lower, (), phrases.higher)[which + 1]))
            )
        texts.append(phrases.between.join(said))
    return _labelled(rng, known, SHIFT * telling, texts)


def with_keyword(rng: np.random.Generator, rows: int) -> Written:
    """Texts of 6 to 23 words, drawn from 400 that say nothing; in three of ten stands one that says much."""
    letters, share = list("abcdefghijklmnoprstuvw"), 1 / np.arange(1, 401) ** 0.8
    words = ["".join(rng.choice(letters, rng.integers(3, 9))) for _ in range(len(share))]
    key, texts, known = rng.random(rows) < 0.3, [], rng.normal(size=rows)
    for has in key:
        said = list(rng.choice(words, rng.integers(6, 24), p=share / share.sum()))
        if has:
            said.insert(int(rng.integers(len(said) + 1)), "refund")
        texts.append(" ".join(said))
    return _labelled(rng, known, SHIFT * (key - 0.3), texts)


def _labelled(
    rng: np.random.Generator, known: NDArray[np.float64], more: NDArray[np.float64], texts: list[str]
) -> Written:
    label = rng.random(len(known)) < 1 / (1 + np.exp(-known - more))
    return Written(1 / (1 + np.exp(-known)), label.astype(np.float64), texts)


class Foretold(NamedTuple):
    """A gain beyond recalibration, per 1,000 decisions: foretold on one half, and what `blend` won on the other."""

    threshold: float
    told: Result
    won: float
    error: float

    @property
    def held(self) -> bool:
        """Whether the interval, widened by the error of the other half, holds what was won."""
        low, high = self.told.interval or (math.nan, math.nan)
        value = self.told.value or math.nan
        more = 1.96 * self.error
        return value - math.hypot(value - low, more) <= self.won <= value + math.hypot(high - value, more)


def foretold(data: Written, seed: int, thresholds: Sequence[float] = THRESHOLDS) -> Iterator[Foretold]:
    """One random half against the other, at each threshold."""
    order = np.random.default_rng(seed).permutation(len(data.label))
    ours, theirs = (data.rows(np.sort(half)) for half in np.array_split(order, 2))
    blend, isotonic = (fit(METHODS.parse(name), ours)(theirs) for name in ("blend", "isotonic"))
    inputs = Inputs(Rows(ours.score, ours.label, features=ours.features))
    for threshold in thresholds:
        task = BinaryTask.of_threshold(threshold)
        before, after = (decisions_on(theirs, task, applied) for applied in (isotonic, blend))
        won = Change(before, after).gain
        yield Foretold(threshold, measure(parse("gain_beyond"), inputs.at(task), 0.95), won.value, won.error)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=6000)
    given = parser.parse_args()
    print("| texts | t* | foretold | interval | won | held |\n|---|---|---|---|---|---|")
    for kind in ("keyword", *PHRASES):
        runs = [list(foretold(written(np.random.default_rng(s), kind, given.rows), s)) for s in range(given.seeds)]
        print_rows(kind, runs)


def print_rows(kind: str, runs: Sequence[Sequence[Foretold]]) -> None:
    """A row of the table for each threshold: means over the runs, and how many intervals held."""
    for each in zip(*runs, strict=True):
        ends = np.mean([one.told.interval for one in each], axis=0) * 1000
        told, won = (
            1000 * float(np.mean(values)) for values in ([one.told.value for one in each], [one.won for one in each])
        )
        held = sum(one.held for one in each)
        numbers = f"{told:.1f} | {ends[0]:.1f} to {ends[1]:.1f} | {won:.1f}"
        print(f"| {kind} | {each[0].threshold} | {numbers} | {held} of {len(each)} |", flush=True)


if __name__ == "__main__":
    main()
