"""What `decal gate` passes and fails, and the exit codes that say so."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.helpers.command import BINARY, FIXTURES, FOX, Decal, refusal, valid_json
from tests.helpers.seeded import write_amounts

NAMED = (BINARY, "--score", "p", "--label", "y")
CLASSES = (FIXTURES / "multiclass_n1500_k3.csv", "--proba", "p_*", "--label", "y")
AMOUNTS = ("a.csv", "--score", "p")
OWN = ("--amount", "amount", "--cost-fp", "5")


class TestGate:
    @pytest.mark.parametrize(
        ("rules", "code"),
        [
            (["brier<=0.2"], 0),
            (["brier<=0.2", "auc>=0.9"], 1),
            (["regret<=0.02"], 2),
            (["regret<=0.02", "auc>=0.9"], 2),
            (["log_loss<=0.7", "upper(regret_calibration)<=0.02", "ece(bins=20)<=0.2"], 0),
        ],
    )
    def test_exit_codes(self, decal: Decal, rules: list[str], code: int) -> None:
        arguments = [part for rule in rules for part in ("--rule", rule)]
        assert decal("gate", *NAMED, "--threshold", "0.3", *arguments).code == code

    def test_rules_from_the_settings_and_a_baseline(self, decal: Decal, tmp_path: Path) -> None:
        assert decal("evaluate", *NAMED, "-f", "json", "-o", "report.json").code == 0
        valid_json((tmp_path / "report.json").read_text())
        (tmp_path / "decal.toml").write_text(
            'gates = ["brier<=baseline+0.001"]\nbaseline = "report.json"\nscore = "p"\nlabel = "y"\n'
        )
        assert decal("gate", BINARY).code == 0
        assert decal("gate", BINARY, "--rule", "brier<baseline").code == 1

    def test_github_junit_and_json(self, decal: Decal) -> None:
        rules = ("--rule", "brier<=0.1", "--rule", "auc>=0.5", "--rule", "regret<=1")
        github = decal("gate", *NAMED, *rules, "--format", "github").out.splitlines()
        assert github[0].startswith("::error title=decal gate brier<=0.1::")
        assert github[1].startswith("::notice ")
        assert "cannot judge" in github[2]
        began = time.perf_counter()
        suite = ElementTree.fromstring(decal("gate", *NAMED, *rules, "--format", "junit").out.encode())[0]
        assert 0 < float(suite.get("time", 0)) < time.perf_counter() - began
        assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
        gates = decal.json("gate", *NAMED, *rules)["gates"]
        assert [gate["passed"] for gate in gates] == [False, True, None]

    @pytest.mark.parametrize(
        "name",
        ["a@b", " a ", "two\nlines", 'said "so"', "a\\b", "@group=a", "a)<=0.1", ">=65", "\u00e9\u2003", "x=1, y=2"],
    )
    def test_any_group_and_model_can_be_named(self, decal: Decal, tmp_path: Path, name: str) -> None:
        """Of ten rows two are wrong in the group of that name, none in the other."""
        model = f"m{name}"
        rows = [(group, k % 2, (k + (group == name and k > 7)) % 2) for group in (name, "other") for k in range(10)]
        columns = dict(zip(("g", "y", model), map(list, zip(*rows, strict=True)), strict=True))
        pq.write_table(pa.table({**columns, "level": [0.5] * 20}), tmp_path / "rows.parquet")
        asked = ("gate", "rows.parquet", "-s", model, "-s", "level", "-y", "y", "--group", "g", "-f", "json")

        def judged(of_group: str) -> list[tuple[str, str, float]]:
            done = decal(*asked, "--rule", f"brier@group={of_group}@model={json.dumps(model)}<=0.19")
            return [(gate["model"], gate["group"], gate["value"]) for gate in valid_json(done.out)["gates"]]

        assert judged(json.dumps(name)) == judged(json.dumps(name, ensure_ascii=False)) == [(model, name, 0.2)]
        assert judged("other") == [(model, "other", 0.0)]
        # Where nothing has the name, those that there are stand there as rules take them.
        reason = valid_json(decal(*asked, "--rule", "brier@group=none<=0.2").out)["gates"][0]["reason"]
        listed = reason.partition("(there are: ")[2].removesuffix(")")
        alone = listed.removeprefix("other, ") if name > "other" else listed.removesuffix(", other")
        assert judged(alone) == [(model, name, 0.2)]

    def test_groups(self, decal: Decal) -> None:
        rules = ("--rule", "gap(brier)<=0.01", "--rule", "brier@group=B<=0.2002")
        assert decal("gate", *NAMED, "--group", "group", *rules).code == 0

    def test_no_rule_at_all(self, decal: Decal) -> None:
        assert "--rule" in refusal(decal("gate", *NAMED))

    def test_a_bug_exits_3_and_never_1(self, decal: Decal) -> None:
        code = (
            "import sys, decal_cli.api.verbs as verbs\nfrom decal_cli.commands.app import run\n"
            "def broken(*_, **more):\n    raise KeyError('surprise')\n"
            "verbs.gate = broken\nsys.exit(run(['gate', 'x.csv', '--rule', 'brier<=1']))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 3
        assert "a bug in decal" in done.stderr

    def test_what_is_not_shown_fails_or_passes_as_is_said(self, decal: Decal, tmp_path: Path) -> None:
        asked = ("gate", *NAMED, "--rule", "auc>=0.75")
        line = (
            "auc>=0.75  0.7429 [0.7198, 0.7647]: short by 0.0071; not shown with 2,000 rows, about 39,000 would show it"
        )
        assert decal(*asked).code == 1 and f"FAIL {line}\n" in decal(*asked).out
        passed = decal(*asked, "--undecided", "pass")
        assert passed.code == 0 and f"PASS {line}, and counts as passed\n" in passed.out
        (tmp_path / "decal.toml").write_text('undecided = "pass"\n')
        assert decal(*asked).code == 0 and decal(*asked, "--undecided", "fail").code == 1
        assert decal("gate", *NAMED, "--rule", "auc>=0.8").code == 1
        (tmp_path / "decal.toml").write_text('undecided = "maybe"\n')
        assert 'it must be "fail" or "pass"' in refusal(decal(*asked))

    def test_the_line_of_a_clear_failure(self, decal: Decal) -> None:
        done = decal("gate", *NAMED, "--rule", "auc>=0.8")
        assert "FAIL auc>=0.8  0.7429 [0.7198, 0.7647]: short by 0.057, and 2,000 rows show it\n" in done.out
        bare = decal("gate", *NAMED, "--rule", "auc>=0.8", "--no-intervals")
        assert "FAIL auc>=0.8  0.7429: short by 0.057\n" in bare.out


OTHER_DECISIONS = {
    "stakes": (NAMED, "expected_utility", "-t .3", "--cost-fp .3 --cost-fn .7", "--cost-fp 30 --cost-fn 70"),
    "amounts": (AMOUNTS, "expected_utility", *["--amount amount --cost-fp 5"] * 2, "--amount amount --cost-fp 6"),
    "no amounts": (AMOUNTS, "expected_utility", *["--amount amount --cost-fp 5"] * 2, "-t .3"),
    "capacity": (NAMED, "capture", *["--capacity 100"] * 2, "--capacity 200"),
    "abstention": (CLASSES, "expected_utility", *["--abstain .3"] * 2, "--abstain .2"),
}
"""Rows, a metric, and a decision as the baseline has it, in other words, and another one."""
DIFFER = {
    "stakes": "the tasks differ: ours is t* = 0.3 (utility '0,-70;-30,0'); the base",
    "amounts": "rows differ: ours are amount=amount,cost_fp=6; the baseline's are amount=amount,cost_fp=5",
    "no amounts": "rows differ: ours are the same in all rows; the baseline's are amount=amount,cost_fp=5",
    "capacity": "the capacities differ: ours is 200; the baseline's is 100",
    "abstention": "the tasks differ",
}


@pytest.mark.parametrize("case", OTHER_DECISIONS)
def test_a_baseline_of_another_decision_cannot_be_judged(decal: Decal, tmp_path: Path, case: str) -> None:
    write_amounts(tmp_path / "a.csv")
    rows, metric, before, same, other = OTHER_DECISIONS[case]
    assert decal("evaluate", *rows, *before.split(), "-m", metric, "-m", "brier", "-o", "base.json").code == 0
    rules = ("--baseline", "base.json", "-r", f"{metric}>=baseline-1e-9", "-r", "brier<=baseline")
    assert decal("gate", *rows, *same.split(), *rules).code == 0
    done = decal("gate", *rows, *other.split(), *rules)
    assert done.code == 2 and "PASS brier" in done.text and DIFFER[case] in done.text


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", '"text"', "{}", "[1]", "true"])
def test_a_baseline_that_is_no_number_cannot_be_judged_by(decal: Decal, tmp_path: Path, value: str) -> None:
    assert decal("evaluate", *NAMED, "-m", "brier", "--no-intervals", "-o", "base.json").code == 0
    path = tmp_path / "base.json"
    path.write_text(re.sub(r'("brier": \{\s*"value": )[^,]+', lambda match: match[1] + value, path.read_text()))
    done = decal("gate", *NAMED, "-r", "brier<=baseline", "--baseline", "base.json")
    assert done.code == 2 and "brier is not a number in the baseline" in done.out


@pytest.mark.parametrize(
    ("rows", "rule", "reason"),
    [
        ((*AMOUNTS, *OWN), "utility_share>=0", "all rows share"),
        ((*AMOUNTS, *OWN, "--capacity", "5"), "capacity_threshold>0.1", "cannot judge"),
        ((*AMOUNTS, "-t", "0.3", "--capacity", "5"), "value_capture>0.1", "cannot judge"),
        ((*CLASSES, "--abstain", ".3"), "positives>=3", "cannot judge"),
        ((*CLASSES, "--abstain", ".3"), "grouping_loss<=.1", "for scores of two classes"),
        ((FOX, "--score", "p_profanity", "--label", "y"), "delta(brier)<=0", "needs exactly two models"),
    ],
)
def test_what_these_rows_cannot_tell_cannot_be_judged(
    decal: Decal, tmp_path: Path, rows: tuple[object, ...], rule: str, reason: str
) -> None:
    write_amounts(tmp_path / "a.csv")
    done = decal("gate", *rows, "-r", rule)
    assert done.code == 2 and "cannot judge" in done.out and reason in done.text


def test_rules_on_the_difference_of_two_models_stand_beside_others(decal: Decal) -> None:
    rules = ("delta(brier)<=0", "upper(delta(brier))<=0.03", "upper(delta(gain_recalibration))<=1")
    words = [word for rule in rules for word in ("--rule", rule)]
    pair = (FOX, "--score", "p_profanity", "--score", "p_hatesonar", "--label", "y", "-t", "0.3")
    gates = decal.json("gate", *pair, *words)["gates"]
    assert [gate["passed"] for gate in gates] == [False, True, None]
    assert {gate["model"] for gate in gates} == {"p_hatesonar - p_profanity"}
    words = ("--rule", "delta(brier)<=0", "--rule", "delta(brier)@group=B<=0", "--rule", "brier@model=q<=0.3")
    gates = decal.json("gate", *NAMED, "--score", "q", "--group", "group", *words)["gates"]
    assert [gate["model"] for gate in gates] == ["q - p"] * 4 + ["q"] * 3 and all(gate["passed"] for gate in gates)
    assert [gate["group"] for gate in gates] == [None, "A", "B", "B", None, "A", "B"]
