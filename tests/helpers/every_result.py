"""One result of every command that prints one, small and made up."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from decal_cli.analysis.compare import compare
from decal_cli.analysis.described import ReliabilityBin
from decal_cli.analysis.evaluate import Plan
from decal_cli.analysis.fit import fit
from decal_cli.analysis.gate import GateOutcome, judge, with_verdicts
from decal_cli.analysis.rules import parse_rule
from decal_cli.analysis.study_summary import summarise
from decal_cli.analysis.sweep import swept
from decal_cli.curves.grid import Grid, parse_prior, parse_thresholds
from decal_cli.data import Dataset, from_arrays
from decal_cli.learn.methods import parse as parse_method
from decal_cli.metrics import parse
from decal_cli.render.results.card import Card
from decal_cli.render.results.comparison import Compared
from decal_cli.render.results.evaluation import Evaluated
from decal_cli.render.results.fitting import FittedPage
from decal_cli.render.results.gates import Gated
from decal_cli.render.results.recommendation import Recommended
from decal_cli.render.results.study import Studied
from decal_cli.render.results.sweep import Curves
from decal_cli.task import BinaryTask
from tests.helpers.results import SIX_REPORTS, two_rounds
from tests.helpers.studies import made_up_study

SMALL_PLAN = Plan((parse("brier"), parse("log_loss"), parse("ece(bins=20)")), BinaryTask.of_threshold(0.3))


def crossing_models(*names: str) -> Dataset:
    """Scores of which each is better at some thresholds, in two groups."""
    rng = np.random.default_rng(0)
    chance = rng.random(400)
    label = (rng.random(400) < chance).astype(np.uint8)
    noisy = (np.clip(chance + rng.normal(0, 0.2 * (k + 1), 400), 0.01, 0.99) for k in range(len(names)))
    return from_arrays(dict(zip(names, noisy, strict=True)), label, group=rng.choice(["n", "s"], 400))


_RULES = ("brier<=0.2", "upper(ece)<=0.1", "log_loss<=1")
_GRID = Grid(parse_thresholds("0.1:0.9:0.2"), parse_prior("beta:2,8"))
_BINS = [[ReliabilityBin(0.1, 0.2, 1997.0, 0.15, 0.3, (0.28, 0.32))]]
_MADE: dict[str, Callable[[], Any]] = {
    "evaluate": lambda: Evaluated(SIX_REPORTS),
    "recommend": lambda: Recommended(two_rounds()),
    "gate": lambda: Gated(
        GateOutcome(SIX_REPORTS, with_verdicts(judge([*map(parse_rule, _RULES)], SIX_REPORTS.reports[:2]), "fail"))
    ),
    "compare": lambda: Compared(compare(crossing_models("p_a", "p_b"), SMALL_PLAN)),
    "sweep": lambda: Curves(swept(crossing_models("p"), SMALL_PLAN, _GRID)),
    "fit": lambda: FittedPage(fit(crossing_models("p"), SMALL_PLAN, parse_method("platt")), "model.json"),
    "study": lambda: Studied(summarise(made_up_study())),
    "card": lambda: Card(two_rounds(), _BINS),
}
RESULT_NAMES = tuple(_MADE)
"""The commands that have one."""


@cache
def result_of(command: str) -> Any:
    """Made when a test first asks: that of `sweep` takes seconds."""
    return _MADE[command]()
