"""Gate outcomes in the formats that CI systems read."""

from __future__ import annotations

from xml.etree import ElementTree

from decal_cli.analysis.gate import GateRow
from decal_cli.analysis.recommend import Verdict
from decal_cli.render.numbers import plain


def finding(row: GateRow) -> str:
    """The value a rule met, or why it cannot be judged."""
    if row.passed is None or row.value is None:
        return f"cannot judge: {row.reason}"
    bound = "" if row.bound is None or "baseline" not in row.rule else f" (bound {plain(row.bound)})"
    return plain(row.value) + bound


def sentence(row: GateRow) -> str:
    """What one gate row says, in one line."""
    words = {True: "passed: ", False: "failed: ", None: ""}
    return words[row.passed] + finding(row)


def place(row: GateRow) -> str:
    """The model and group a row speaks of."""
    return ", ".join(part for part in (row.model, row.group) if part)


def render_github(verdict: Verdict) -> str:
    """GitHub workflow commands: an error for each rule that failed or could not be judged, a notice for the rest."""
    lines = []
    for row in verdict.gates or ():
        level = "notice" if row.passed else "error"
        title = _escaped_property(f"decal gate {row.rule}")
        lines.append(f"::{level} title={title}::{_escaped(' '.join(filter(None, (place(row), sentence(row)))))}")
    return "".join(f"{line}\n" for line in lines)


def render_junit(verdict: Verdict) -> str:
    """JUnit XML: a test case for each rule and report, a failure where it failed, an error where it is undefined."""
    rows = verdict.gates or ()
    suite = ElementTree.Element(
        "testsuite",
        name="decal gate",
        tests=str(len(rows)),
        failures=str(sum(row.passed is False for row in rows)),
        errors=str(sum(row.passed is None for row in rows)),
    )
    for row in rows:
        case = ElementTree.SubElement(suite, "testcase", classname=place(row) or "decal", name=row.rule)
        if not row.passed:
            kind = "error" if row.passed is None else "failure"
            ElementTree.SubElement(case, kind, message=sentence(row))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
