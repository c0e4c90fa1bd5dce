"""Text for people and machines: golden files of hand-made reports, and the rules of rounding.

After a wanted change: GOLDEN=write python -m pytest tests/test_render.py, then read the difference.
"""

import os
from dataclasses import replace

import pytest

from decal_cli.analysis.evaluate import Evaluation, Plan, Report, Result
from decal_cli.analysis.flowchart import Evidence, Item, walk
from decal_cli.analysis.gate import judge, parse_rule
from decal_cli.analysis.recommend import Round, Verdict
from decal_cli.analysis.tryout import Attempt
from decal_cli.data import Input
from decal_cli.methods import parse as parse_method
from decal_cli.metrics import parse
from decal_cli.render import RENDERERS, Page, render_metric
from decal_cli.render.numbers import plain, short, span
from decal_cli.task import BinaryTask
from tests.helpers.command import GOLDEN

RESULTS = {
    "brier": Result(0.19695801, (0.18544, 0.20847)),
    "log_loss": Result(None, None, "infinite: rows with score 0 and label 1: 2"),
    "auc": Result(0.74288666, (0.7197, 0.7647)),
    "ece": Result(0.0981831, (0.0770, 0.1110)),
    "ece_null": Result(0.02396, (0.0151, 0.0348)),
    "ece_debiased": Result(0.0143573, (0.0093, 0.0195)),
    "spiegelhalter_z": Result(14.6168),
    "expected_utility": Result(-0.1343, (-0.14403, -0.12457)),
    "eu_never": Result(-0.2216, (-0.2358, -0.2072)),
    "eu_always": Result(-0.2050, (-0.2112, -0.1989)),
    "regret_calibration": Result(0.0043267, (0.0003, 0.0096)),
    "gain_recalibration": Result(-0.0033, (-0.0091, 0.0025)),
    "grouping_loss": Result(0.0144, (0.0097, 0.0191)),
    "regret_grouping": Result(0.0108, (0.0056, 0.0138)),
    "gain_beyond": Result(0.0194, (0.0078, 0.0310)),
    "gain_post_training": Result(0.0142, (0.0026, 0.0259)),
    "threshold_adjusted": Result(0.2012889),
}


def evaluation(models: list[tuple[str, str | None]]) -> Evaluation:
    plan = Plan(tuple(map(parse, RESULTS)), BinaryTask.of_costs(3, 7, 0.25))
    return Evaluation(
        plan,
        (Input("preds.parquet", 2000, 633, "ab" * 32),),
        {"score": tuple(dict.fromkeys(model for model, _ in models)), "label": "y", "features": ("x0", "x1")},
        ("label",),
        ("p_a: 3 of 2000 rows left out: score missing",),
        tuple(Report(model, group, 1997, 632, 1800, 3, True, RESULTS) for model, group in models),
    )


ONE = evaluation([("p_a", None)])
MANY = evaluation(
    [("p_a", None), ("p_a", "north"), ("p_a", "south"), ("p_longer_name", None), ("p_c", None), ("p_d", None)]
)


def advised(whole: Evaluation, **wishes: object) -> Verdict:
    items = {key: Item(key, found.value, found.interval, found.reason) for key, found in RESULTS.items()}
    evidence = Evidence(items, u_delta=10.0, rows=1997, features=True, tolerance=0.01, **wishes)
    return Verdict(whole, advice=tuple(walk(evidence) for _ in whole.reports))


def attempt(key: str, predicted: Result, achieved: Result, cost: float, seconds: float) -> Attempt:
    return Attempt(parse_method(key), predicted, achieved, cost, seconds=seconds)


def tried() -> Verdict:
    """Two rounds: stacking is best, and a recalibration may be as good; then nothing is left."""
    whole = advised(ONE, costs={"post-train": 0.001})
    assert whole.advice is not None
    recalibrated, together = RESULTS["gain_recalibration"], RESULTS["gain_post_training"]
    made = (
        attempt("stack", together, Result(0.0213, (0.0091, 0.0335)), 0.001, 0.214),
        replace(
            attempt("platt(on=p)", recalibrated, Result(0.0101, (0.0002, 0.0220)), 0.0, 0.004),
            behind=Result(0.0102, (-0.0013, 0.0217)),
        ),
        attempt("glar", together, Result(0.0004, (-0.0006, 0.0014)), 0.001, 1.31),
        attempt(
            "meta-cal", recalibrated, Result(None, None, "needs at least 10 rows that p >= .5 decides rightly"), 0, 0
        ),
    )
    again = (attempt("isotonic", recalibrated, Result(-0.002, (-0.006, 0.002)), 0.0, 0.003),)
    report = replace(ONE.reports[0], model="p_a_stack")
    rounds = (Round("p_a", made, made[0], report, whole.advice[0]), Round("p_a_stack", again))
    return replace(whole, rounds={"p_a": rounds})


RULES = [parse_rule(text) for text in ("brier<=0.2", "upper(ece)<=0.1", "log_loss<=1", "lower(auc)>=0.7")]
GATED = Verdict(MANY, gates=judge(RULES, MANY.reports[:2]))
CASES = {
    "evaluate_one_100.txt": (Verdict(ONE), "table", Page(100)),
    "evaluate_many_100.txt": (Verdict(MANY), "table", Page(100)),
    "evaluate_many_200.txt": (Verdict(MANY), "table", Page(200)),
    "evaluate_many.md": (Verdict(MANY), "markdown", Page()),
    "evaluate_one.json": (Verdict(ONE), "json", Page()),
    "evaluate_many.csv": (Verdict(MANY), "csv", Page()),
    "recommend_one.txt": (advised(ONE, costs={"post-train": 0.001}), "table", Page(100)),
    "recommend_many.txt": (advised(MANY), "table", Page(100)),
    "recommend_one.md": (advised(ONE), "markdown", Page()),
    "recommend_many.csv": (advised(MANY), "csv", Page()),
    "recommend_one.json": (advised(ONE), "json", Page()),
    "tried.txt": (tried(), "table", Page(100)),
    "tried.md": (tried(), "markdown", Page()),
    "tried.json": (tried(), "json", Page()),
    "tried.csv": (tried(), "csv", Page()),
    "gate.txt": (GATED, "table", Page(100)),
    "gate.md": (GATED, "markdown", Page()),
    "gate.csv": (GATED, "csv", Page()),
    "gate_github.txt": (GATED, "github", Page()),
    "gate_junit.xml": (GATED, "junit", Page()),
}


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    verdict, form, page = CASES[name]
    text = RENDERERS[form](verdict, page)
    path = GOLDEN / name
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_tables_stay_within_the_page() -> None:
    for width in (60, 80, 100, 120, 200):
        text = RENDERERS["table"](Verdict(MANY), Page(width))
        assert max(len(line) for line in text.splitlines() if not line.startswith("decal:")) <= width


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (0.19698, 4, ".1970"),
        (-0.00331, 4, "-.0033"),
        (-0.00001, 4, ".0000"),
        (1.0, 4, "1.0000"),
        (14.6168, 4, "14.62"),
        (123456.7, 4, "123,457"),
        (-0.99999, 3, "-1.000"),
        (0.0, 3, ".000"),
    ],
)
def test_short_numbers(value: float, decimals: int, text: str) -> None:
    assert short(value, decimals) == text


def test_spans_and_plain_numbers() -> None:
    assert span((-0.01, 0.25), 3) == "[-.010, .250]"
    assert span(None, 3) == ""
    assert [plain(value) for value in (0.0, 0.034761, 12345.6, -0.5)] == ["0", "0.03476", "12,346", "-0.5"]


def test_colour_only_where_it_is_wanted() -> None:
    assert "\x1b[" not in RENDERERS["table"](Verdict(ONE), Page(100))
    assert "\x1b[" in RENDERERS["table"](Verdict(ONE), Page(100, color=True))


def test_a_metric_is_explained_in_full() -> None:
    text = render_metric(parse("ece").metric, Page(80))
    for words in ("ece: ", "bins=15", "strategy=mass", "mass, width", "lower is better", "interval", "source"):
        assert words in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_value_outside_its_interval_is_explained() -> None:
    assert "corrected for that" not in RENDERERS["table"](Verdict(ONE), Page(100))
    results = {**RESULTS, "ece": Result(0.02, (0.0, 0.01))}
    moved = Verdict(replace(ONE, reports=(replace(ONE.reports[0], results=results),)))
    for form in ("table", "markdown"):
        text = " ".join(RENDERERS[form](moved, Page(100)).split())
        assert "Noise alone moves ECE; the interval is corrected for that, and so need not hold the value." in text
