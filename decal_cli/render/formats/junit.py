"""JUnit XML, which CI systems show as tests."""

from __future__ import annotations

from typing import Any

from decal_cli.render.format import Format


class JUnit(Format):
    """A test case for each rule and place: a failure where it failed, an error where it cannot be judged."""

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
            name="decal gate",
            tests=str(len(checks)),
            failures=str(sum(check.passed is False for check in checks)),
            errors=str(sum(check.passed is None for check in checks)),
        )
        for check in checks:
            case = ElementTree.SubElement(suite, "testcase", classname=check.place or "decal", name=check.rule)
            if check.passed:
                ElementTree.SubElement(case, "system-out").text = check.sentence
            else:
                kind = "error" if check.passed is None else "failure"
                ElementTree.SubElement(case, kind, message=check.sentence)
        ElementTree.indent(root)
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"
