"""The papers line by line: its commands run and print the numbers that stand beside them, and its files are fresh."""

import csv
import json
import re
import shlex

import pytest
import sklearn

from tests.helpers.command import ROOT, Decal
from tests.helpers.paper_examples import CURVES, FILES, FOLDER, SIMULATED, written

PAGE = ROOT / "fixtures" / "papers" / "README.md"
LINES = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| place", "| ---"))
]
COMMANDS = [(line[2].strip("`"), line[4]) for line in LINES if line[2].startswith("`decal ")]


def _all(head: object, first: int, last: int) -> list[str]:
    return [f"{head}.{k}" for k in range(first, last + 1)]


def test_every_line_says_where_or_why_not() -> None:
    assert len(COMMANDS) > 40
    for line in LINES:
        assert len(line) == 6 and line[0] and line[1] and line[2], line


NUMBERED = {
    "Perez-Lebel": [*_all(3, 1, 7), *_all("B", 1, 13)],
    "Hu and Wu": [
        "1.1",
        "1.2",
        "1.3",
        *_all(2, 1, 25),
        *_all(3, 1, 11),
        *_all(4, 1, 5),
        *_all(5, 1, 6),
        *_all("A", 1, 3),
    ],
    "Kleinberg": [str(k) for k in range(1, 29)],
    "Tasche": [*_all(2, 2, 6), *_all(3, 1, 7), *_all(4, 1, 4), *_all(5, 1, 5), *_all("A", 1, 5), "B.1", "B.2"],
    "Gao": [str(k) for k in range(1, 7)],
}
"""Definitions, theorems, lemmas, remarks and examples by their numbers in the papers."""


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_numbered_item_of_the_papers_has_a_line(paper: str) -> None:
    section = next(part for part in PAGE.read_text(encoding="utf-8").split("\n## ") if part.startswith(paper))
    places = [line.split("|")[1] for line in section.splitlines() if line.startswith("| ")]
    known: set[str] = set()
    for place in places:
        known |= set(re.findall(r"(?:[A-Z]\.)?\d+(?:\.\d+)?", place))
        for first, last in re.findall(r"([A-Z\d.]+) to ([A-Z\d.]+)", place):
            (head, low), (_, high) = (("", *text.rpartition(".")[::2])[-2:] for text in (first, last))
            known |= {f"{head}.{k}".lstrip(".") for k in range(int(low), int(high) + 1)}
    assert not [number for number in NUMBERED[paper] if number not in known]


@pytest.mark.ci
@pytest.mark.parametrize(("command", "numbers"), COMMANDS, ids=lambda text: text[:90])
def test_a_command_prints_the_numbers_beside_it(command: str, numbers: str, decal: Decal) -> None:
    done = decal(*shlex.split(command)[1:], cwd=ROOT)
    assert done.code == 0, done.err
    if "kendall" in command and tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9):
        pytest.skip("it ranks probabilities of trees, which scikit-learn 1.9 grows in another way")
    words = set(re.findall(r"[-\w.]+", done.out))
    for number in re.findall(r"-?\d*\.\d+|-?\b\d+\b|vacuous", numbers):
        assert number in words, f"{number} in\n{done.out}"


def test_the_examples_are_what_the_papers_say() -> None:
    for name, lines in FILES.items():
        assert (FOLDER / f"{name}.csv").read_text(encoding="utf-8") == written(lines), name
    assert {path.stem for path in FOLDER.glob("*.csv")} == {*FILES, *SIMULATED}


def test_the_simulated_documents_are_as_often_of_the_topic_as_ten_draws_make_them() -> None:
    """10 of 29: Gao et al. 2017, table 1, has .3448 for 20 topics."""
    with (FOLDER / "gao_1.csv").open(encoding="utf-8") as file:
        rows = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]
    assert sum(row["weight"] for row in rows) == 20_000
    assert sum(row["weight"] * row["y"] for row in rows) / 20_000 == pytest.approx(10 / 29, abs=0.012)


CLOSED = {
    "optimal": (0.0588, (0.0328, 0.0417, 0.0387)),
    "naive": (0.0740, (0.0389, 0.0499, 0.0492)),
    "naive_calibrated": (0.0661, (0.0389, 0.0489, 0.0430)),
    "first_component": (0.0807, (0.0555, 0.0669, 0.0493)),
    "second_component": (0.0607, (0.0343, 0.0435, 0.0399)),
    "uncorrelated": (0.0525, (0.0282, 0.0361, 0.0347)),
}
"""Brier score, and curve at .1, .2 and .5."""


@pytest.mark.parametrize("name", CURVES)
def test_the_closed_forms_of_the_page(name: str, decal: Decal) -> None:
    """Tasche 2021, appendix D; the rows of the fixture come within half a thousandth of them."""
    brier, curve = CLOSED[name]
    assert CURVES[name].brier() == pytest.approx(brier, abs=5.1e-5)
    assert [CURVES[name].curve(t) for t in (0.1, 0.2, 0.5)] == pytest.approx(curve, abs=5.1e-5)
    rows = (FOLDER / "tasche.csv", "--weight", "weight", "-s", name, "--no-intervals", "-f", "json")
    report = json.loads(decal("evaluate", *rows, "-m", "brier").out)
    assert report["metrics"]["brier"]["value"] == pytest.approx(brier, abs=1.5e-4)
