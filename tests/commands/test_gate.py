"""Names, baselines and settings of `decal gate`; answers.txt has what passes and fails, with the exit codes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.helpers.command import BINARY, FIXTURES, Decal, refusal, valid_json
from tests.helpers.seeded import write_amounts

NAMED = (BINARY, "--score", "p", "--label", "y")
CLASSES = (FIXTURES / "multiclass_n1500_k3.csv", "--proba", "p_*", "--label", "y")
AMOUNTS = ("a.csv", "--score", "p")


class TestGate:
    @pytest.mark.ci
    def test_rules_from_the_settings_and_a_baseline(self, decal: Decal, tmp_path: Path) -> None:
        assert decal("evaluate", *NAMED, "-f", "json", "-o", "report.json").code == 0
        valid_json((tmp_path / "report.json").read_text())
        (tmp_path / "decal.toml").write_text(
            'gates = ["brier<=baseline+0.001"]\nbaseline = "report.json"\nscore = "p"\nlabel = "y"\n'
        )
        assert decal("gate", BINARY).code == 0
        assert decal("gate", BINARY, "--rule", "brier<baseline").code == 1

    def test_every_model_has_the_clusters_of_its_own_rows(self, decal: Decal, tmp_path: Path) -> None:
        rng = np.random.default_rng(3)
        cluster = np.repeat(np.arange(60), 5)
        y = (rng.uniform(size=300) < np.repeat(rng.uniform(size=60), 5)).astype(int)
        a = np.clip(0.3 + 0.2 * y + rng.normal(scale=0.2, size=300), 0, 1)
        columns = {"y": y, "a": a, "b": np.where(cluster < 30, a, np.nan), "cluster": cluster}
        pq.write_table(pa.table({**columns, "g": ["x", "z"] * 150}), tmp_path / "rows.parquet")
        asked = ("gate", "rows.parquet", "-y", "y", "--cluster", "cluster", "--group", "g", "--missing", "drop")
        asked += ("--rule", "brier<=0.2", "--rule", "gap(brier)<=0.04")

        def lines(*models: str) -> list[str]:
            named = (word for model in models for word in ("-s", model))
            found = [line.replace(" [a]", "") for line in decal(*asked, *named).out.splitlines()]
            return [line for line in found if line[:4] in ("PASS", "FAIL") and "[b" not in line]

        assert any("clusters" in line for line in lines("a"))
        assert lines("a", "b") == lines("a")

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
        ungrouped = [word for word in asked if word not in ("--group", "g")]
        reason = valid_json(decal(*ungrouped, "--rule", "brier@group=none<=0.2").out)["gates"][0]["reason"]
        assert reason == "no group 'none' since no column of groups is named with --group"

    def test_a_bug_exits_3_and_never_1(self, decal: Decal) -> None:
        code = (
            "import sys, decal_cli.api.verbs as verbs\nfrom decal_cli.commands.app import run\n"
            "def broken(*_, **more):\n    raise KeyError('surprise')\n"
            "verbs.gate = broken\nsys.exit(run(['gate', 'x.csv', '--rule', 'brier<=1']))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 3
        assert "a bug in decal" in done.stderr

    def test_settings_say_what_becomes_of_what_is_not_shown(self, decal: Decal, tmp_path: Path) -> None:
        asked = ("gate", *NAMED, "--rule", "auc>=0.75")
        (tmp_path / "decal.toml").write_text('undecided = "pass"\n')
        assert decal(*asked).code == 0 and decal(*asked, "--undecided", "fail").code == 1
        (tmp_path / "decal.toml").write_text('undecided = "maybe"\n')
        assert 'it must be "fail" or "pass"' in refusal(decal(*asked))


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
