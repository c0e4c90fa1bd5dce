"""Limits, moved to how many there are: as many as a limit are shown, or reckoned with, as if there were none.

One more than the most is not, nor is one fewer than the fewest.
"""

from pathlib import Path
from typing import Any

import pytest

from decal_cli.analysis import sweep as swept
from decal_cli.commands import help
from decal_cli.data import check
from decal_cli.learn import held_out, method
from decal_cli.metrics import paired
from decal_cli.metrics.families import ranking, smooth
from decal_cli.plot import groups, panels, style, sweeps
from decal_cli.render.formats import html
from decal_cli.render.results import advised, card, comparison, evaluation, opening, sections, source, sweep
from decal_cli.tables import classes
from tests.helpers.frozen import run_printed_case
from tests.helpers.seeded import write_seeded

TWO, CLASSES = "rows.csv -s p -s q -y y --no-intervals", "rows.csv --proba a:* -y z --no-intervals"
SIX = "--utility '1,0,0;0,1,0;0,0,1;.7,.7,.5;.7,.4,.8;.2,.8,.8'"
LIMITS = [
    (sections, "MAX_CLASSES_SHOWN", 3, f"evaluate {CLASSES} -m brier"),
    (sections, "MAX_ACROSS", 3, f"evaluate {CLASSES} {SIX} -m brier"),
    (evaluation, "MAX_PASTED", 6, "evaluate rows.csv -s p -y y --no-intervals -m cdl"),
    (evaluation, "MAX_PLACES", 3, "evaluate rows.csv -s p -y y --no-intervals --group g -m brier -m grouping_loss"),
    (opening, "MAX_NAMED", 2, f"evaluate {TWO} -t .02"),
    (source, "MAX_NAMES", 6, f"evaluate {CLASSES} {SIX} -m brier"),
    (source, "MAX_NAMES", 3, "evaluate rows.csv -s p -y y --no-intervals --features x1,x2,amount -m brier"),
    (source, "MAX_GROUPS", 2, "evaluate rows.csv -s p -y y --no-intervals --group g -m brier"),
    (comparison, "MAX_GROUPS", 2, f"compare {TWO} --group g -m brier"),
    (comparison, "MAX_RANGES", 1, f"compare {TWO} -m brier"),
    (comparison, "MAX_PAIRS", 3, f"compare {CLASSES} --proba b:* --abstain .4 -m brier"),
    (sections, "MAX_PAIRS", 3, "evaluate rows.csv -s p -y y --no-intervals --group g --pack fairness -t .4"),
    (advised, "MAX_ACTIONS", 6, f"recommend rows.csv --proba a:* -y z {SIX}"),
    (card, "MAX_NAMES", 3, "report rows.csv --proba a:* -y z --abstain .4 --card"),
    (html, "MAX_BESIDE", 3, "evaluate rows.csv -s p -y y --no-intervals -m brier -m auc"),
    (sweep, "MAX_SHOWN", 7, "sweep rows.csv -s p -y y --no-intervals --thresholds .01,.2,.3,.4,.5,.6,.99"),
    (style, "MAX_BANDS", 2, "sweep rows.csv -s p -s q -y y --thresholds .2,.4 --plot a.svg --picture decision"),
    (panels, "MAX_NAMED", 3, f"sweep {CLASSES} --vary abstain=.1,.5 --plot a.svg --picture reliability"),
    (panels, "MAX_DASHED", 2, f"sweep {TWO} --thresholds .2,.4 --plot a.svg --picture brier"),
    (groups, "MAX_DRAWN", 2, "evaluate rows.csv -s p -y y --no-intervals --group g --pack fairness -t .4 --plot a.svg"),
    (sweeps, "_MAX_SHARES", 2, "sweep rows.csv -s p -y y --vary capacity=10:20:5 --plot a.svg --picture actions"),
    # So many options has plan, and so many signs the longest of demo.
    (help, "MAX_BRIEF", 24, "plan --help"),
    (help, "MAX_LEFT", 10, "demo --help"),
    # There are 120 rows, 49 of label 1, 66 levels of p, 3 classes, and 1 row of most probabilities of classes.
    (check, "MOST_LABELS", 3, "evaluate rows.csv -s p -y z"),
    (classes, "MIN_LEVEL_ROWS", 1, f"evaluate {CLASSES} -m cal_l1"),
    (held_out, "FEWEST_ROWS", 120, "evaluate rows.csv -s p -y y -t .4 -m gain_recalibration"),
    (method, "FEWEST_ROWS", 60, "fit platt rows.csv -s p -y y -o m.json --force"),
    (paired, "FEWEST_ROWS", 120, "compare rows.csv -s p -s q -y y -m brier"),
    (ranking, "FEW", 49, "evaluate rows.csv -s p -y y -m auc"),
    (smooth, "MAX_CUTS", 66, "evaluate rows.csv -s p -y y -m dist_cal_upper --no-intervals"),
    (smooth, "_MAX_EXACT", 66, "evaluate rows.csv -s p -y y -m sm_cal -m dist_cal_upper --no-intervals"),
    (swept, "FEWEST_ROWS", 120, f"sweep {TWO} --thresholds .2,.4"),
    (
        swept,
        "MAX_SHARES",
        3,
        "sweep rows.csv -s p -y y --utility '0,-9;-2,-3;-5,-1' --vary 2:0=-7:-1:3 --no-intervals",
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("rows")
    write_seeded(made, 120)
    return made


@pytest.mark.ci
@pytest.mark.parametrize(
    ("module", "name", "many", "line"), LIMITS, ids=lambda value: getattr(value, "__name__", value)
)
def test_as_many_as_the_limit_are_taken_as_if_there_were_none(
    module: Any, name: str, many: int, line: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(most: int) -> dict[str, str]:
        monkeypatch.setattr(module, name, most)
        return run_printed_case(folder, line)

    none, beyond = (0, many + 1) if name.startswith(("MIN", "FEW")) else (10**6, many - 1)
    assert shown(many) == shown(none) != shown(beyond)
