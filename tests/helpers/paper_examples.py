"""The examples of the papers as rows: what fixtures/papers holds, and closed forms to hold decal against.

`python -m tests.helpers.paper_examples` writes the files.
"""

import csv
import io
import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from tests.helpers.command import FIXTURES

FOLDER = FIXTURES / "papers"
Lines = list[tuple[object, ...]]


def _repeated(*levels: tuple[float, int, int]) -> Lines:
    """A header, and for each score its rows of label 1 and of label 0."""
    rows: Lines = [("p", "y")]
    for score, ones, zeros in levels:
        rows += [(score, 1)] * ones + [(score, 0)] * zeros
    return rows


def kleinberg_3() -> Lines:
    """Ex. 3 with T = 2,000: the mean of the outcomes so far; 1 in the first half, 0 in the second."""
    half = 1000
    first = [(1.0, 1)] * half
    return [("p", "y"), *first, *((round(half / (half + k), 6), 0) for k in range(half))]


class Binormal(NamedTuple):
    """A score 1 / (1 + exp(a s + b)) of a statistic s, normal in both classes with these means and this spread."""

    a: float
    b: float
    mean0: float
    mean1: float
    spread: float

    def score(self, s: np.ndarray) -> np.ndarray:
        return np.asarray(1 / (1 + np.exp(self.a * s + self.b)))

    def curve(self, t: float) -> float:
        """The Brier curve, Tasche 2021, appendix D."""
        cut = (math.log((1 - t) / t) - self.b) / self.a
        missed, clear = (NormalDist(mean, self.spread).cdf(cut) for mean in (self.mean1, self.mean0))
        return (1 - t) * PRIOR * missed + t * (1 - PRIOR) * (1 - clear)

    def brier(self) -> float:
        """Twice the area below it, by the midpoint rule on 20,000 thresholds."""
        return 2 * float(np.mean([self.curve((i + 0.5) / 20_000) for i in range(20_000)]))


PRIOR, _MU1, _MU2, _RHO = 0.1, 1.0, 1.75, 0.75
_ODDS = math.log((1 - PRIOR) / PRIOR)


def _full(rho: float) -> Binormal:
    nu1, nu2 = _MU1 - rho * _MU2, _MU2 - rho * _MU1
    offset = 0.5 / (1 - rho**2) * (_MU1**2 - 2 * rho * _MU1 * _MU2 + _MU2**2) + _ODDS
    spread = math.sqrt(nu2**2 + 2 * rho * nu1 * nu2 + nu1**2)
    return Binormal(-1 / (1 - rho**2), offset, 0.0, _MU1 * nu1 + _MU2 * nu2, spread)


def _naive(a: float, b: float) -> Binormal:
    squares = _MU1**2 + _MU2**2
    return Binormal(a, b, 0.0, squares, math.sqrt(squares + 2 * _RHO * _MU1 * _MU2))


_NAIVE = _naive(-1.0, (_MU1**2 + _MU2**2) / 2 + _ODDS)
_SHRUNK = _NAIVE.mean1 / _NAIVE.spread**2
CURVES = {
    "optimal": _full(_RHO),
    "naive": _NAIVE,
    "naive_calibrated": _naive(-_SHRUNK, _SHRUNK * _NAIVE.mean1 / 2 + _ODDS),
    "first_component": Binormal(-_MU1, _MU1**2 / 2 + _ODDS, 0.0, _MU1, 1.0),
    "second_component": Binormal(-_MU2, _MU2**2 / 2 + _ODDS, 0.0, _MU2, 1.0),
    "uncorrelated": _full(0.0),
}
"""The curves of Tasche 2021: figure 1 (the first four) and figure 2 (the last three)."""


def tasche() -> Lines:
    """Tasche 2021, figs. 1 and 2: 400 quantiles of every score in each class; a row of label 0 weighs nine."""
    quantiles = [(i + 0.5) / 400 for i in range(400)]
    rows: Lines = [(*CURVES, "y", "weight")]
    for label in (0, 1):
        columns = []
        for of in CURVES.values():
            law = NormalDist((of.mean0, of.mean1)[label], of.spread)
            columns.append(of.score(np.array([law.inv_cdf(u) for u in quantiles])))
        rows += [(*(f"{p:.6g}" for p in each), label, (9, 1)[label]) for each in np.column_stack(columns)]
    return rows


def gao_1() -> Lines:
    """Gao et al. 2017, ex. 1 and table 1: logistic regression on the words of 20,000 documents of 20 topics.

    Words follow 1/rank in a random order for each topic; label 1 where the topic is among ten draws from the mixture.
    Scores are those of the rows that it learned from, rounded to .001, with how often each occurs.
    """
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    words, topics, documents = 1000, 20, 20_000
    frequency = 1 / np.arange(1, words + 1) / (1 / np.arange(1, words + 1)).sum()
    of_topic = np.array([frequency[rng.permutation(words)] for _ in range(topics)])
    mixture = rng.dirichlet(np.ones(topics), documents)
    counts = np.vstack([rng.multinomial(200, part @ of_topic) for part in np.array_split(mixture, 10)])
    label = (rng.random(documents) < 1 - (1 - mixture[:, 0]) ** 10).astype(int)
    model = LogisticRegression(C=1e6, max_iter=200).fit(counts, label)
    cells = np.column_stack((np.rint(1000 * model.predict_proba(counts)[:, 1]).astype(int), label))
    each, often = np.unique(cells, axis=0, return_counts=True)
    rows = zip(each.tolist(), often.tolist(), strict=True)
    return [("p", "y", "weight"), *((score / 1000, y, n) for (score, y), n in rows)]


EPOCHS_18 = [
    (0, (1, 0, 2)), (0, (2, 0, 1)), (0, (2, 0, 1)), (1, (1, 2, 0)), (1, (1, 2, 0)), (1, (2, 1, 0)),
    (2, (0, 1, 2)), (2, (0, 1, 2)), (2, (0, 2, 1)),
]  # fmt: skip
"""Kleinberg et al. 2023, theorem 18, table 1: the class of each epoch, and its forecast in thirds."""


def kleinberg_18() -> Lines:
    """Theorem 18: each class alone is calibrated, the three together are not."""
    return [("p_1", "p_2", "p_3", "y"), *((a / 3, b / 3, c / 3, label + 1) for label, (a, b, c) in EPOCHS_18)]


FILES: dict[str, Lines] = {
    # Hu and Wu 2024, ex. 1.1: .4 where 20 % are 1, .6 where 80 % are; ex. 1.2: the same, calibrated.
    "hu_wu_1_1": _repeated((0.4, 10, 40), (0.6, 40, 10)),
    "hu_wu_1_2": _repeated((0.2, 10, 40), (0.8, 40, 10)),
    # Ex. 4.2a: always 1, always forecast as 1 - eps, eps = .01.
    "hu_wu_4_2a": _repeated((0.99, 50, 0)),
    # Ex. 4.2b with T = 100: in period i, i of 10 rows are 1, and the forecast is (i + 1) / 10.
    "hu_wu_4_2b": _repeated(*(((i + 1) / 10, i, 10 - i) for i in range(10))),
    # Ex. 4.3b: sure halves, forecast as 1/2 plus and minus eps; ex. 4.5: as 3/4 and 1/4.
    "hu_wu_4_3b": _repeated((0.49, 0, 50), (0.51, 50, 0)),
    "hu_wu_4_5": _repeated((0.25, 0, 50), (0.75, 50, 0)),
    # Kleinberg et al. 2023, ex. 1 and thm. 4: every forecast is 0 or 1, and one in five is wrong; ex. 2: none is.
    "kleinberg_1": _repeated((0.0, 10, 40), (1.0, 40, 10)),
    "kleinberg_2": _repeated((0.0, 0, 50), (1.0, 50, 0)),
    "kleinberg_3": kleinberg_3(),
    "kleinberg_18": kleinberg_18(),
    "tasche": tasche(),
}
SIMULATED: dict[str, Callable[[], Lines]] = {"gao_1": gao_1}
"""Not to the last digit the same on every machine."""


def written(lines: Lines) -> str:
    """As a CSV file."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, lines in (FILES | {name: make() for name, make in SIMULATED.items()}).items():
        (FOLDER / f"{name}.csv").write_text(written(lines), encoding="utf-8")
