"""Gate rules: the judgement, shapes of a baseline, and that what cannot be judged never passes."""

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from decal_cli.analysis.baseline import Baseline, baseline_of
from decal_cli.analysis.evaluate import MetricReport, Result
from decal_cli.analysis.gate import GateRow, judge, outcome, with_verdicts
from decal_cli.analysis.rules import parse_rule
from decal_cli.data import Input
from decal_cli.errors import DecalError, Exit, Undefined
from decal_cli.metrics import parse
from decal_cli.task import BinaryTask, ClassDecision
from tests.helpers.command import Decal


def test_parameters_and_scopes_of_a_rule_parse() -> None:
    rule = parse_rule("upper(ece(bins=20, strategy=width)@model=p_a@group=B) <= 0.05")
    assert (rule.over, rule.choice.key, rule.number) == ("upper", "ece(bins=20,strategy=width)", 0.05)
    assert rule.scope == (("model", "p_a"), ("group", "B"))
    with pytest.raises(DecalError, match="does not parse"):
        parse_rule("")


def report(model: str = "p", group: str | None = None, **results: Result) -> MetricReport:
    return MetricReport(model, group, 100, 40, results)


FULL = report(brier=Result(0.2, (0.15, 0.25)), auc=Result(None, None, "needs both classes"), c_bound=Result(0.3))


def earlier(task: BinaryTask | None = None, **models: dict[str, float | None]) -> Baseline:
    """A baseline of the values of these models, as its JSON report holds them."""
    named = {
        name: {key: {"value": value, "reason": "why"} for key, value in values.items()}
        for name, values in models.items()
    }
    reports = [{"model": name, "group": None, "metrics": metrics} for name, metrics in named.items()]
    held = None if task is None else {"utility": task.utility, "decision_threshold": task.decision_threshold}
    return baseline_of({"schema": 1, "task": held, "inputs": [], "reports": reports}, "report.json")


def passed(rule: str, *reports: MetricReport, baseline: object = None) -> list[bool | None]:
    return [row.passed for row in with_verdicts(judge([parse_rule(rule)], reports or [FULL], baseline), "fail")]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("brier<=0.2", True),
        ("brier<0.2", False),
        ("brier >= .2", True),
        ("brier>0.2", False),
        ("upper(brier)<=0.25", True),
        ("upper(brier)<=0.2", False),
        ("lower(brier)>=0.15", True),
        ("brier<=2e-1", True),
        ("auc>=0.5", None),
        ("upper(auc)<=1", None),
        ("upper(c_bound)<=1", None),
    ],
)
def test_a_rule_judges_the_point_or_an_end_of_the_interval(rule: str, expected: bool | None) -> None:
    assert passed(rule) == [expected]


def test_a_rule_applies_to_every_report_and_scopes_restrict_it() -> None:
    reports = [report("a", None, brier=Result(0.1)), report("b", None, brier=Result(0.3))]
    assert passed("brier<=0.2", *reports) == [True, False]
    assert passed("brier@model=a<=0.2", *reports) == [True]
    (row,) = judge([parse_rule("brier@model=c<=0.2")], reports)
    assert row.answer == "cannot judge"
    assert "a, b" in (row.reason or "")


def test_max_and_gap_go_over_groups() -> None:
    whole = report("p", None, brier=Result(0.9))
    groups = [report("p", "A", brier=Result(0.1)), report("p", "B", brier=Result(0.25))]
    assert passed("max(brier)<=0.25", whole, *groups) == [True]
    gaps = [report("p", None, brier=Result(0.15, (0.01, 0.29)))]
    (row,) = judge([parse_rule("gap(brier)<=0.1")], [whole, *groups], None, {"gap": gaps})
    assert (row.value, row.answer) == (0.15, "not shown")
    assert passed("gap(brier)<=0.1", whole) == [None]
    with pytest.raises(DecalError, match="compares all groups"):
        parse_rule("gap(brier@group=A)<=0.1")
    undefined = report("p", "C", brier=Result(None, None, "no rows"))
    assert passed("max(brier)<=1", whole, *groups, undefined) == [None]


def test_a_baseline_is_met_up_to_its_tolerance() -> None:
    baseline = earlier(old_name={"brier": 0.196, "auc": None})
    assert passed("brier<=baseline+0.005", baseline=baseline) == [True]
    assert passed("brier<=baseline + 0.003", baseline=baseline) == [False]
    assert passed("brier<=baseline", baseline=baseline) == [False]
    assert passed("c_bound<=baseline", baseline=baseline) == [None]
    with pytest.raises(DecalError, match="--baseline"):
        passed("brier<=baseline")


def test_a_baseline_of_several_models_is_matched_by_model_and_group() -> None:
    baseline = earlier(p={"brier": 0.1}, q={"brier": 0.3})
    reports = [report("p", None, brier=Result(0.2)), report("q", None, brier=Result(0.2))]
    assert passed("brier<=baseline", *reports, baseline=baseline) == [False, True]


def test_the_difference_of_two_models_is_judged_on_its_own_reports() -> None:
    apart = [report("q - p", None, brier=Result(-0.01, (-0.03, 0.01))), report("q - p", "B", brier=Result(0.02))]
    models = [report("p", None, brier=Result(0.2)), report("q", None, brier=Result(0.19))]

    def judged(rule: str) -> list[bool | None]:
        return [row.passed for row in with_verdicts(judge([parse_rule(rule)], models, None, {"delta": apart}), "fail")]

    assert judged("delta(brier)<=0") == [True, False]
    assert judged("delta(brier)@group=B<=0") == [False]
    assert judged("upper(delta(brier))<=0") == [False, None]
    assert judged("lower( delta( brier ) )>=-0.05") == [True, None]
    assert judged("brier<=0.195") == [False, True]


def test_without_two_models_a_difference_cannot_be_judged() -> None:
    (row,) = judge([parse_rule("delta(brier)<=0")], [FULL])
    assert row.answer == "cannot judge"
    assert "exactly two models, --score A --score B; there is 1: p" in (row.reason or "")
    assert outcome([row]) is Exit.CANNOT_JUDGE


UNIT = BinaryTask.of_threshold(0.3)


@pytest.mark.parametrize(
    ("rule", "task", "says"),
    [
        ("regret_calibration<=baseline", BinaryTask.of_costs(3, 7), "utility '0,-7;-3,0'"),
        ("regret_calibration<=baseline", BinaryTask.of_threshold(0.5), "the tasks differ: ours is t* = 0.5 (utility"),
        ("regret_calibration<=baseline", BinaryTask.of_threshold(0.3, 0.5), "decided at 0.5"),
        ("regret_calibration<=baseline", None, "ours is none; the baseline's is t* = 0.3"),
        ("accuracy<=baseline", BinaryTask.of_threshold(0.5), "the tasks differ"),
        ("accuracy<=baseline", BinaryTask.of_costs(3, 7), None),
        ("regret_calibration<=baseline", BinaryTask.of_costs(0.3, 0.7), None),
        ("brier<=baseline", BinaryTask.of_threshold(0.5), None),
    ],
)
def test_a_baseline_of_another_task_cannot_be_judged(rule: str, task: BinaryTask | None, says: str | None) -> None:
    now = report(regret_calibration=Result(0.2), accuracy=Result(0.2), brier=Result(0.2))
    baseline = earlier(UNIT, p={"regret_calibration": 0.3, "accuracy": 0.3, "brier": 0.3})
    (row,) = judge([parse_rule(rule)], [now], baseline, task=task)
    assert row.answer == ("cannot judge" if says else "passed")
    assert says is None or says in (row.reason or "")


@pytest.mark.parametrize(
    ("utility", "actions", "says"),
    [
        (
            [[1, 0, 0], [0, 1, 0], [0.5, 0, 0.8]],
            "abc",
            "ours is one where c is worth 0.7 in class 3; the baseline's is one",
        ),
        (
            [[1, 0, 0], [0, 1, 0], [0.5, 0, 0.7]],
            "abd",
            "ours is of the actions a, b, c; the baseline's is of the actions a",
        ),
        ([[1, 0], [0, 1]], "ab", "ours is of 3 actions and 3 classes; the baseline's is of 2 actions and 2 classes"),
    ],
)
def test_two_tasks_of_several_classes_are_told_apart_by_what_differs(utility: Any, actions: str, says: str) -> None:
    held = {"schema": 1, "task": None, "class_task": {"utility": utility, "actions": [*actions]}, "inputs": []}
    kept = baseline_of({**held, "reports": [{"model": "p", "group": None, "metrics": {}}]}, "report.json")
    ours = ClassDecision(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.5, 0.0, 0.7)), ("a", "b", "c"))
    (row,) = judge([parse_rule("expected_utility>=baseline")], [report(expected_utility=Result(0.5))], kept, task=ours)
    assert row.answer == "cannot judge" and says in (row.reason or "")


def test_payoffs_that_differ_by_rounding_are_of_one_task() -> None:
    def asked(payoff: float, first: str = "a") -> ClassDecision:
        return ClassDecision(((1.0, 0.0, 0.0), (payoff, payoff, payoff)), (first, "abstain"))

    kept = replace(earlier(p={"expected_utility": 0.5}), task=asked(1 - 0.9))
    rules, now = [parse_rule("expected_utility>=baseline")], [report(expected_utility=Result(0.5))]
    answers = [judge(rules, now, kept, task=task)[0].answer for task in (asked(0.1), asked(0.1, "b"), asked(0.1001))]
    assert answers == ["passed", "cannot judge", "cannot judge"]


@pytest.mark.parametrize("utility", [[], [[1, 0, 0], [0, 1]], [[1]], "abc", [1, 2]])
def test_a_baseline_whose_utility_is_no_matrix_is_refused(utility: Any) -> None:
    task = {"utility": utility, "actions": ["a", "b"]}
    with pytest.raises(DecalError, match="lacks its metrics"):
        baseline_of({"schema": 1, "task": None, "class_task": task, "inputs": [], "reports": []}, "report.json")


def test_a_baseline_of_other_parameters_cannot_be_judged() -> None:
    now = report(ece=Result(0.1))
    for key, given in (("ece(bins=20)", {}), ("ece", {"parameters": {"bins": 20, "strategy": "mass"}})):
        document = {
            **{"schema": 1, "task": None, "inputs": [], "model": "p", "group": None},
            "metrics": {key: {"value": 0.2, **given}},
        }
        (row,) = judge([parse_rule("ece<=baseline")], [now], baseline_of(document, "report.json"))
        assert row.answer == "cannot judge"
        assert row.reason == (
            "the parameters differ: ours is ece(bins=15, strategy=mass); the baseline's is ece(bins=20, strategy=mass)"
        )


def test_a_baseline_of_another_schema_cannot_be_judged() -> None:
    rules = [parse_rule("brier<=baseline"), parse_rule("brier<=0.2")]
    compared, absolute = judge(rules, [FULL], baseline_of({"schema": 2, "anything": "else"}, "report.json"))
    assert (compared.answer, compared.reason) == ("cannot judge", "the schemas differ: ours is 1; the baseline's is 2")
    assert absolute.answer == "passed"


def test_a_baseline_of_other_data_is_named() -> None:
    ours, theirs = Input("new.csv", 100, 40, "a" * 64), Input("old.csv", 90, 30, "b" * 64)
    assert not Baseline("r.json", "", inputs=(ours,)).note([ours])
    (line,) = Baseline("r.json", "", inputs=(theirs,)).note([ours])
    assert line == "baseline r.json was computed on other data: old.csv (90 rows, 30 positive)"
    (line,) = Baseline("r.json", "", inputs=(replace(ours, sha256="c" * 64),)).note([ours])
    assert line == "baseline r.json was computed on other contents of new.csv (100 rows, 40 positive)"


def test_earlier_scores_of_the_same_rows_are_no_other_data(decal: Decal, tmp_path: Path) -> None:
    rows = [(0.2, 0.1, 0), (0.7, 0.8, 1), (0.4, 0.6, 1), (0.3, 0.4, 0)] * 20
    for name, kept in (("old.csv", rows), ("fewer.csv", rows[4:])):
        (tmp_path / name).write_text("p,y\n" + "".join(f"{old},{label}\n" for old, _, label in kept))
    (tmp_path / "new.csv").write_text("p,y\n" + "".join(f"{new},{label}\n" for _, new, label in rows))
    rules = ("-r", "brier<=baseline", "-r", "drop(brier)<=0")
    assert "other data" not in decal("gate", "new.csv", "--baseline", "old.csv", *rules).out
    apart = decal("gate", "new.csv", "--baseline", "fewer.csv", *rules).out
    assert "was computed on other data" in apart and "drop(..) is not paired" in apart
    unused = decal("gate", "new.csv", "--baseline", "old.csv", "-r", "brier<=0.5").out
    assert "no rule compares with baseline old.csv" in unused and "no rule compares" not in apart


def test_a_compressed_report_is_named_as_such(decal: Decal, tmp_path: Path) -> None:
    (tmp_path / "old.json.gz").write_bytes(gzip.compress(b"{}", mtime=0))
    (tmp_path / "new.csv").write_text("p,y\n0.2,0\n0.7,1\n")
    refused = decal("gate", "new.csv", "-r", "drop(auc)<=0", "--baseline", "old.json.gz")
    assert refused.code == 2 and "baseline old.json.gz is compressed with gzip: decompress it" in refused.err


def test_undefined_wins_over_failed_wins_over_passed() -> None:
    def row(passed: bool | None) -> GateRow:
        return GateRow("r", "p", None, 0.0, 0.0, passed)

    assert outcome([row(True), row(True)]) is Exit.OK
    assert outcome([row(True), row(False)]) is Exit.GATE_FAILED
    assert outcome([row(False), row(None), row(True)]) is Exit.CANNOT_JUDGE


NOISY_REPORT = report(brier=Result(0.2, (0.15, 0.25)), auc=Result(0.7, (0.6, 0.8)))


@pytest.mark.parametrize(
    ("rule", "answer", "shown", "distance"),
    [
        ("brier<=0.3", "passed", True, 0.1),
        ("brier<=0.22", "passed", False, 0.02),
        ("brier<=0.18", "not shown", False, -0.02),
        ("brier<=0.1", "failed", True, -0.1),
        ("upper(brier)<=0.3", "passed", True, 0.05),
        ("upper(brier)<=0.22", "not shown", False, -0.03),
        ("upper(brier)<=0.18", "not shown", False, -0.07),
        ("upper(brier)<=0.1", "failed", True, -0.15),
        ("auc>=0.75", "not shown", False, -0.05),
        ("lower(auc)>0.5", "passed", True, 0.1),
        ("auc>0.8", "failed", True, -0.1),
        ("auc>=0.8", "not shown", False, -0.1),
    ],
)
def test_a_rule_has_three_answers(rule: str, answer: str, shown: bool, distance: float) -> None:
    for undecided in ("fail", "pass"):
        (row,) = with_verdicts(judge([parse_rule(rule)], [NOISY_REPORT]), undecided)
        assert (row.answer, row.shown, row.distance) == (answer, shown, pytest.approx(distance))
        assert row.passed is (answer == "passed" or (answer == "not shown" and undecided == "pass"))
        assert (row.rows_needed is None) == (shown or row.estimate == row.bound)


def test_the_rows_that_would_show_it_show_it_in_4_of_5_samples() -> None:
    """Of a mean of 1 with standard deviation 10, against the bound 1.5: (1.96 + .84)^2 (10 / .5)^2 = 3,140 rows."""
    half = 1.959964 * 10 / 100**0.5
    measured = report(brier=Result(1.0, (1 - half, 1 + half)))
    for rule in ("brier>=1.5", "lower(brier)>=1.5", "upper(brier)<=1.5"):
        (row,) = judge([parse_rule(rule)], [measured])
        assert (row.answer, row.rows_needed) == ("not shown", 3200)


def test_without_an_interval_there_are_two_answers() -> None:
    answers = [judge([parse_rule(f"c_bound<={bound}")], [FULL])[0] for bound in (0.4, 0.2)]
    assert [(row.answer, row.shown, row.rows_needed) for row in answers] == [
        ("passed", None, None),
        ("failed", None, None),
    ]
    of_rows = judge([parse_rule("rows>=120")], [FULL])[0]
    assert (of_rows.answer, of_rows.distance) == ("failed", -20)


REPORT: dict[str, Any] = {
    "schema": 1,
    "task": None,
    "inputs": [{"path": "a.csv", "rows": 3, "positives": 1, "sha256": "ab"}],
    "model": "p",
    "group": None,
    "metrics": {"brier": {"value": 0.2, "parameters": {}}},
}


CHANGES = [
    *({"metrics": metrics} for metrics in (["brier"], {"brier": "low"}, {"brier": {}})),
    {"metrics": {"brier": {"value": 0.2, "parameters": True}}},
    *({"inputs": [each]} for each in (3, {"path": "a.csv"}, {**REPORT["inputs"][0], "rows": 1e999})),
    *({"task": {"utility": True}}, {"reports": 3}, {"model": ["p"], "group": ["a"]}),
]


@pytest.mark.parametrize(
    "document",
    [
        *(None, [], {}, {"schema": "1"}, {"schema": 1}, {"schema": 1, "model": "p"}),
        *({**REPORT, **change} for change in CHANGES),
    ],
    ids=str,
)
def test_a_foreign_baseline_is_refused(document: object) -> None:
    assert baseline_of(REPORT, "b.json").metrics
    with pytest.raises(DecalError, match=r"b\.json|utility"):
        baseline_of(document, "b.json")


@pytest.mark.parametrize("interval", [3, "ab", [1], [0.1, "x"]], ids=str)
def test_an_interval_that_is_none_cannot_be_judged(interval: object) -> None:
    metrics = {"brier": {"value": 0.2, "parameters": {}, "interval": interval}}
    baseline = baseline_of({**REPORT, "metrics": metrics}, "b.json")
    with pytest.raises(Undefined, match="brier is not a number in the baseline"):
        baseline.result_of(parse("brier"), "p", None, None)
