"""Formats of rules with their outcomes, for CI systems: annotations of GitHub Actions, and JUnit XML."""

from __future__ import annotations

from typing import Any

from decal_cli.render.format import Format


class Github(Format):
    """Annotations of GitHub Actions: an error or a notice for each rule."""

    name = "github"
    reads = "checks"

    def write(self, result: Any) -> str:
        lines = []
        for check in result.checks():
            level = "notice" if check.passed else "error"
            message = _escaped(" ".join(filter(None, (check.place, check.sentence))))
            lines.append(f"::{level} title={_escaped_property(f'decal gate {check.rule}')}::{message}\n")
        return "".join(lines)


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


class JUnit(Format):
    """JUnit XML, which CI systems show as tests."""

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
