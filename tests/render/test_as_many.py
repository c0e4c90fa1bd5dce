"""What is shown up to so many: as many as the limit are shown like few, one more is not. The limits are moved."""

from pathlib import Path
from typing import Any

import pytest

from decal_cli.plot import groups, panels, style, sweeps
from decal_cli.render.results import comparison, evaluation, opening, sections, source, sweep
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
    (sweep, "MAX_SHOWN", 7, "sweep rows.csv -s p -y y --no-intervals --thresholds .01,.2,.3,.4,.5,.6,.99"),
    (style, "MAX_BANDS", 2, "sweep rows.csv -s p -s q -y y --thresholds .2,.4 --plot a.svg --picture decision"),
    (panels, "MAX_DASHED", 2, f"sweep {TWO} --thresholds .2,.4 --plot a.svg --picture brier"),
    (groups, "MAX_DRAWN", 2, "evaluate rows.csv -s p -y y --no-intervals --group g --pack fairness -t .4 --plot a.svg"),
    (sweeps, "_MAX_SHARES", 2, "sweep rows.csv -s p -y y --capacity-range 10:20:5 --plot a.svg --picture actions"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("rows")
    write_seeded(made, 120)
    return made


@pytest.mark.parametrize(
    ("module", "name", "many", "line"), LIMITS, ids=lambda value: getattr(value, "__name__", value)
)
def test_as_many_as_the_limit_are_shown_as_if_there_were_none(
    module: Any, name: str, many: int, line: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(most: int) -> dict[str, str]:
        monkeypatch.setattr(module, name, most)
        return run_printed_case(folder, line)

    assert shown(many) == shown(10**6) != shown(many - 1)
