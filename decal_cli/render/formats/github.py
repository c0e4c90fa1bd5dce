"""Annotations of GitHub Actions: an error or a notice for each rule."""

from __future__ import annotations

from typing import Any

from decal_cli.render.format import Format


class Github(Format):
    """An error for each rule that failed or could not be judged, a notice for the rest."""

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
