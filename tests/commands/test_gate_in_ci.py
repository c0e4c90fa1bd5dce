"""What CI systems get of a gate: several formats in one run, JUnit by its schema, the GitHub action."""

import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.helpers.command import BINARY, DECAL, ROOT, SHELL, Decal, refusal, valid_json

SCORED = (BINARY, "--score", "p", "--label", "y", "--threshold", "0.3")
MIXED = ("--rule", "brier<=0.1", "--rule", "auc>=0.5", "--rule", "regret<=1", "--rule", "rows>=508")

JUNIT: dict[str, tuple[set[str], list[str]]] = {
    "testsuites": ({"name", "time", "tests", "failures", "disabled", "errors"}, ["testsuite"]),
    "testsuite": (
        {
            *("name", "tests", "failures", "errors", "time", "disabled", "skipped"),
            "timestamp",
            "hostname",
            "id",
            "package",
        },
        ["properties", "testcase", "system-out", "system-err"],
    ),
    "testcase": (
        {"name", "assertions", "time", "classname", "status"},
        ["skipped", "error", "failure", "system-out", "system-err"],
    ),
    "failure": ({"type", "message"}, []),
    "error": ({"type", "message"}, []),
    "system-out": (set(), []),
}
"""Attributes and children, in order, of the schema that Jenkins publishes (junit-10.xsd of its xUnit plugin)."""


def follows_the_schema(element: ElementTree.Element) -> bool:
    attributes, children = JUNIT[element.tag]
    places = [children.index(child.tag) for child in element]
    named = element.tag not in ("testsuite", "testcase") or element.get("name")
    return (
        named
        and set(element.keys()) <= attributes
        and places == sorted(places)
        and all(map(follows_the_schema, element))
    )


class TestSeveralFormats:
    def test_in_one_run(self, decal: Decal, tmp_path: Path) -> None:
        files = ("-f", "junit=out.xml", "-f", "json=out.json", "-f", "markdown=out.md", "-f", "github=out.txt")
        done = decal("gate", *SCORED, *MIXED, *files)
        assert done.code == 2 and "FAIL brier<=0.1  0.1970 [" in done.out and "PASS auc>=0.5  0.7429 [" in done.out
        suite = ElementTree.parse(tmp_path / "out.xml").getroot()
        assert follows_the_schema(suite)
        assert [suite[0].get(key) for key in ("tests", "failures", "errors")] == ["4", "1", "1"]
        assert [len(case) for case in suite[0]] == [2, 1, 1, 1]
        assert [case[0].tag for case in suite[0]] == ["failure", "system-out", "error", "system-out"]
        assert suite[0][3][0].text == "passed: 2,000: within by 1,492\nvalue: 2000.0\nbound: 508.0"
        numbers = dict(line.split(": ") for line in (suite[0][0][1].text or "").splitlines())
        assert float(numbers["low"]) < float(numbers["value"]) < float(numbers["high"]) and numbers["bound"] == "0.1"
        gates = valid_json((tmp_path / "out.json").read_text())["gates"]
        assert [gate["passed"] for gate in gates] == [False, True, None, True]
        assert "brier<=0.1" in (tmp_path / "out.md").read_text()
        assert (tmp_path / "out.txt").read_text().startswith("::")

    def test_notes_reach_every_system(self, decal: Decal, tmp_path: Path) -> None:
        (tmp_path / "rows.csv").write_text("p,y\n.2,0\n.4,\n" + ".7,1\n.3,0\n" * 20)
        files = ("-f", "junit=out.xml", "-f", "sarif=out.sarif", "-f", "github=out.txt")
        assert decal("gate", "rows.csv", "--missing", "drop", "--rule", "brier<=1", *files).code == 0
        note = "p: dropped 1 of 42 rows (missing label)"
        suite = ElementTree.parse(tmp_path / "out.xml").getroot()
        assert follows_the_schema(suite) and suite[0][-1].text == note
        (run,) = json.loads((tmp_path / "out.sarif").read_text())["runs"]
        assert run["invocations"][0]["toolExecutionNotifications"] == [{"level": "note", "message": {"text": note}}]
        assert (tmp_path / "out.txt").read_text().splitlines()[1:] == [f"::notice title=decal gate::{note}"]

    def test_a_file_that_is_read_is_not_written(self, decal: Decal, tmp_path: Path) -> None:
        (tmp_path / "rows.csv").write_bytes(BINARY.read_bytes())
        asked = ("rows.csv", "--score", "p", "--label", "y", "--rule", "brier<=1", "--format", "csv=rows.csv")
        assert "one of the files to be read" in refusal(decal("gate", *asked))


@pytest.mark.parametrize(
    "line", [("gate", "--rule", "brier<=1"), ("online", "--rule", "rows>=1", "--method", "as-it-is")]
)
def test_a_suite_has_the_name_and_the_time_of_its_run(decal: Decal, line: tuple[str, ...]) -> None:
    began = time.perf_counter()
    (suite,) = ElementTree.fromstring(decal(*line, *SCORED, "-f", "junit").out)
    assert 0 < float(suite.get("time", "0")) < time.perf_counter() - began
    assert suite.get("name") == f"decal {line[0]}"
    assert decal(*line, *SCORED, "-f", "github").out.startswith(f"::notice title=decal {line[0]} {line[2]}::")


def test_a_baseline_is_written_where_every_rule_passes(decal: Decal, tmp_path: Path) -> None:
    failed = decal("gate", *SCORED, "--rule", "brier<=0.1", "--write-baseline", "base.json")
    assert failed.code == 1 and "base.json is not written" in failed.err and not (tmp_path / "base.json").exists()
    assert decal("gate", *SCORED, "--rule", "brier<=0.2", "--write-baseline", "base.json").code == 0
    valid_json((tmp_path / "base.json").read_text())
    assert decal("gate", *SCORED, "--rule", "brier<=baseline", "--baseline", "base.json").code == 0
    assert decal("gate", *SCORED, "--rule", "brier<baseline", "--baseline", "base.json").code == 1


def parsed_yaml(lines: list[str], indent: int = 0) -> Any:
    """The YAML that action.yml uses: mappings, lists of mappings, texts, and blocks after a bar."""
    if lines and lines[0][indent:].startswith("- "):
        items: list[list[str]] = []
        for line in lines:
            if line[indent:].startswith("- "):
                items.append([])
            items[-1].append(line.replace("- ", "  ", 1) if line[indent:].startswith("- ") else line)
        return [parsed_yaml(item, indent + 2) for item in items]
    mapping: dict[str, Any] = {}
    starts = [k for k, line in enumerate(lines) if line.strip() and not line[indent:].startswith(" ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        key, _, value = lines[start].strip().partition(":")
        inside = [line for line in lines[start + 1 : end] if line.strip()]
        if value.strip() == "|":
            deep = len(inside[0]) - len(inside[0].lstrip())
            mapping[key] = "\n".join(line[deep:] for line in inside) + "\n"
        else:
            mapping[key] = parsed_yaml(inside, len(inside[0]) - len(inside[0].lstrip())) if inside else value.strip()
    return mapping


ACTION = parsed_yaml((ROOT / "action.yml").read_text(encoding="utf-8").splitlines())


class TestTheAction:
    def test_it_has_the_structure_of_a_composite_action(self) -> None:
        """The rules of github-action.json of SchemaStore that concern what is written here."""
        assert (
            {"name", "description", "runs"}
            <= set(ACTION)
            <= {"name", "author", "description", "inputs", "outputs", "runs", "branding"}
        )
        assert set(ACTION["branding"]) == {"icon", "color"}
        for each in ACTION["inputs"].values():
            assert "description" in each and set(each) <= {"description", "deprecationMessage", "required", "default"}
        assert all(set(each) == {"description", "value"} for each in ACTION["outputs"].values())
        assert set(ACTION["runs"]) == {"using", "steps"} and ACTION["runs"]["using"] == "composite"
        for step in ACTION["runs"]["steps"]:
            if "uses" in step:
                assert set(step) == {"name", "uses", "with"} and re.fullmatch(r"[\w/-]+@v\d+", step["uses"])
                continue
            assert {"run", "shell"} <= set(step) <= {"run", "shell", "id", "name", "env", "if", "working-directory"}
            assert "${{" not in step["run"], "inputs reach the shell by its environment only"

    def test_every_input_is_used(self) -> None:
        used = re.findall(r"inputs\.(\w+)", json.dumps(ACTION["runs"]))
        assert sorted(used) == sorted(ACTION["inputs"])

    @pytest.mark.parametrize(("rules", "code"), [("brier<=0.2\nrows>=500\n", 0), ("brier<=0.1\n\nrows>=500", 1)])
    def test_its_script_judges(self, tmp_path: Path, rules: str, code: int) -> None:
        done = self.run_script(tmp_path, rules)
        assert done.returncode == code, done.stderr
        assert done.stdout.count("title=decal gate") == 2
        assert "brier<=0." in (tmp_path / "summary").read_text()

    @pytest.mark.parametrize(
        ("rules", "arguments", "says"),
        [
            ("brierr<=0.2", "", "did you mean brier"),
            ("brier<=0.2", "--threshold=3", "threshold"),
            ("brier<=0.2", "--no-such-option", "could not begin"),
            ("brier<=0.2", "--help", "could not begin"),
            ('brier<=0.2"; touch pwned; $(touch pwned) `touch pwned`', "", "brier<=0.2"),
            ("::error::brier<=0.2", "", "rule"),
        ],
    )
    def test_what_cannot_be_judged_leaves_an_error_a_summary_and_a_file(
        self, tmp_path: Path, rules: str, arguments: str, says: str
    ) -> None:
        done = self.run_script(tmp_path, rules, arguments)
        assert done.returncode == 2
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("::error title=decal gate")]
        summary = (tmp_path / "summary").read_text()
        (case,) = ElementTree.parse(tmp_path / "gate.xml").getroot()[0]
        (result,) = json.loads((tmp_path / "sarif" / "gate.sarif").read_text())["runs"][0]["results"]
        message = case[0].get("message", "")
        assert all(says in text for text in (line, summary, message, result["message"]["text"]))
        assert not (tmp_path / "pwned").exists()

    @pytest.mark.parametrize(
        ("junit", "says"),
        [("gate.xml\nevil=1", "one file"), ("", "one file"), (".", "written"), ("rows", "to be read")],
    )
    def test_a_name_that_no_output_can_have_is_refused(self, tmp_path: Path, junit: str, says: str) -> None:
        (tmp_path / "rows").symlink_to(BINARY)
        done = self.run_script(tmp_path, "brier<=0.2", junit=junit)
        assert done.returncode == 2 and not (tmp_path / "output").exists() and BINARY.exists()
        assert says in (tmp_path / "summary").read_text() and says in done.stdout.partition("::error ")[2]

    @pytest.mark.parametrize(
        "more", [{"DECAL_COMMENT": "-c.md"}, {"GITHUB_STEP_SUMMARY": "", "GITHUB_OUTPUT": ""}], ids=["dash", "no files"]
    )
    def test_what_passes_passes_whatever_files_are_called_and_the_runner_keeps(
        self, tmp_path: Path, more: dict[str, str]
    ) -> None:
        done = self.run_script(tmp_path, "brier<=0.2", **more)
        assert (done.returncode, done.stderr) == (0, "")

    def run_script(
        self, tmp_path: Path, rules: str, arguments: str = "", junit: str = "gate.xml", **more: str
    ) -> subprocess.CompletedProcess[str]:
        """The step of the action that judges, as a runner runs it; what it writes follows the schemas."""
        (step,) = [each for each in ACTION["runs"]["steps"] if each.get("id") == "gate"]
        given = {
            "DECAL_FILES": str(BINARY),
            "DECAL_RULES": rules,
            "DECAL_ARGUMENTS": arguments or "--score=p\n--label=y\n--threshold=0.3",
            "DECAL_JUNIT": junit,
            "DECAL_SARIF": "sarif/gate.sarif",
            "DECAL_COMMENT": "gate.md",
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
            **more,
        }
        assert set(step["env"]) == {name for name in given if name.startswith("DECAL")}
        path = f"{DECAL.parent}{os.pathsep}{SHELL['PATH']}"
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=tmp_path,
            env={**SHELL, **given, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        if (tmp_path / "output").exists():
            written = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
            assert written == {"junit": "gate.xml", "sarif": "sarif/gate.sarif", "comment": given["DECAL_COMMENT"]}
            assert follows_the_schema(ElementTree.parse(tmp_path / "gate.xml").getroot())
            assert (tmp_path / given["DECAL_COMMENT"]).read_text() == (tmp_path / "summary").read_text()
        return done
