"""Of many groups, a table shows the worst and says where the rest is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from decal_cli.analysis.evaluate import Evaluation, Report
from decal_cli.metrics import parse

MAX_GROUPS = 100
"""Groups of one model that a table shows."""
N_WORST = 20
"""Of more groups, so many are shown."""


def shortened(evaluation: Evaluation) -> Evaluation:
    """With the worst groups of a model that has more than a table shows, worst first, and a note about the rest."""
    reports: list[Report] = []
    notes: list[str] = []
    for model in dict.fromkeys(report.model for report in evaluation.reports):
        of_model = [report for report in evaluation.reports if report.model == model]
        groups = [report for report in of_model if report.group is not None]
        key = None if len(groups) <= MAX_GROUPS else _judged_by(groups)
        if key is None:
            reports += of_model
            continue
        worst = sorted(groups, key=lambda report: _badness(report, key))[:N_WORST]
        reports += [report for report in of_model if report.group is None] + worst
        notes.append(
            f"{model}: the table shows the {N_WORST} worst of {len(groups):,} groups by {parse(key).declared.title};"
            " --format json or csv has all of them"
        )
    return evaluation if not notes else replace(evaluation, reports=tuple(reports), notes=(*evaluation.notes, *notes))


def _judged_by(reports: Sequence[Report]) -> str | None:
    """The metric that says which groups are worst: what acting on the score loses, else the first that has a best."""
    defined = [
        key
        for key in reports[0].results
        if parse(key).declared.better in ("lower", "higher") and any(r.results[key].value is not None for r in reports)
    ]
    return next((key for key in ("regret", "regret_calibration") if key in defined), next(iter(defined), None))


def _badness(report: Report, key: str) -> tuple[bool, float]:
    """To sort by, the worst first; what has no value comes last."""
    value = report.results[key].value
    sign = -1 if parse(key).declared.better == "lower" else 1
    return value is None, sign * (value or 0.0)
