"""Formats of rules with their outcomes, for CI systems: annotations of GitHub Actions, JUnit XML, and SARIF."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from decal_cli.render.format import Format
from decal_cli.version import __version__

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class Github(Format):
    """Annotations of GitHub Actions: an error, a warning or a notice for each rule, and each note."""

    name = "github"
    reads = "checks"

    def write(self, result: Any) -> str:
        lines = []
        for check in result.checks():
            level = "error" if not check.passed else "warning" if check.answer == "not shown" else "notice"
            message = _escaped(f"{check.place} {check.sentence}".lstrip())
            title = _escaped(f"{result.suite} {check.rule}").replace(":", "%3A").replace(",", "%2C")
            lines.append(f"::{level} title={title}::{message}\n")
        lines += [f"::notice title={result.suite}::{_escaped(note)}\n" for note in result.notes]
        return "".join(lines)


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


class JUnit(Format):
    """JUnit XML, which CI systems show as tests: the outcome of each rule, with its numbers."""

    name = "junit"
    reads = "checks"
    suffix = ".xml"

    def write(self, result: Any) -> str:
        from xml.etree import ElementTree

        checks = result.checks()
        root = ElementTree.Element("testsuites")
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=result.suite,
            tests=str(len(checks)),
            failures=str(sum(check.passed is False for check in checks)),
            errors=str(sum(check.passed is None for check in checks)),
            time=f"{result.seconds:.3f}",
        )
        for check in checks:
            case = ElementTree.SubElement(suite, "testcase", classname=check.place or "decal", name=check.rule)
            if not check.passed:
                kind = "error" if check.passed is None else "failure"
                ElementTree.SubElement(case, kind, type=check.answer, message=check.sentence)
            said = [check.sentence] if check.passed else []
            if said or check.numbers:
                said += [f"{name}: {value!r}" for name, value in check.numbers]
                ElementTree.SubElement(case, "system-out").text = "\n".join(said)
        if result.notes:
            ElementTree.SubElement(suite, "system-out").text = "\n".join(result.notes)
        ElementTree.indent(root)
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


class Sarif(Format):
    """SARIF 2.1.0, which code scanning reads: a result for each rule, of kind pass, open or fail."""

    name = "sarif"
    reads = "checks"
    suffix = ".sarif"
    also = (".json",)

    def write(self, result: Any) -> str:
        import json

        checks = result.checks()
        rules = [*dict.fromkeys(check.rule for check in checks)]
        driver = {"name": "decal", "version": __version__, "rules": [{"id": rule} for rule in rules]}
        results = [self._result(check, rules.index(check.rule)) for check in checks]
        run: dict[str, Any] = {"tool": {"driver": driver}, "results": results}
        if result.notes:
            notes = [{"level": "note", "message": {"text": note}} for note in result.notes]
            run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": notes}]
        log = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
        return json.dumps(log, indent=2, ensure_ascii=False) + "\n"

    @staticmethod
    def _result(check: Any, index: int) -> dict[str, Any]:
        # Only what is of kind fail has a level.
        kind = "fail" if not check.passed else "open" if check.answer == "not shown" else "pass"
        where: dict[str, Any] = {"logicalLocations": [{"name": check.place}]} if check.place else {}
        if check.file:
            # Code scanning shows no result without a file.
            where["physicalLocation"] = {"artifactLocation": {"uri": quote(check.file)}}
        return {
            "ruleId": check.rule,
            "ruleIndex": index,
            "kind": kind,
            "level": "error" if kind == "fail" else "none",
            "message": {"text": check.sentence},
            **({"locations": [where]} if where else {}),
            "properties": {"answer": check.answer, **dict(check.numbers)},
        }
