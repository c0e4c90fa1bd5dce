"""An evaluation as plain data: the stable, versioned JSON document at full precision, and the long CSV."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from decal_cli.analysis.evaluate import Evaluation, Report, Result, resampled_cells
from decal_cli.analysis.recommend import Verdict, ece_advice
from decal_cli.metrics.bootstrap import RESAMPLES
from decal_cli.render import rounds
from decal_cli.version import __version__

SCHEMA = 1


def document(verdict: Verdict) -> dict[str, Any]:
    """The JSON document: one report flat, several under "reports", each whole in itself."""
    evaluation = verdict.evaluation
    shared = provenance(evaluation)
    reports = [{**shared, **_report(report, verdict)} for report in evaluation.reports]
    whole = reports[0] if len(reports) == 1 else {**shared, "reports": reports}
    if verdict.gates is not None:
        whole["gates"] = [
            {
                "rule": row.rule,
                "model": row.model,
                "group": row.group,
                "value": row.value,
                "bound": row.bound,
                "passed": row.passed,
                "reason": row.reason,
            }
            for row in verdict.gates
        ]
    return whole


def render_json(verdict: Verdict) -> str:
    """Full precision, no NaN."""
    return json.dumps(document(verdict), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def render_csv(verdict: Verdict) -> str:
    """One line per model, group and metric; gates, methods tried or recommendations in rows of their own table."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if verdict.gates is not None:
        writer.writerow(["rule", "model", "group", "value", "bound", "passed", "reason"])
        for row in verdict.gates:
            passed = None if row.passed is None else str(row.passed).lower()
            writer.writerow([row.rule, row.model, row.group, row.value, row.bound, passed, row.reason])
        return out.getvalue()
    if verdict.rounds is not None:
        writer.writerows(rounds.csv_rows(verdict.rounds))
        return out.getvalue()
    if verdict.advice is not None:
        writer.writerow(["model", "group", "action", "method", "gain", "low", "high"])
        for report, advice in zip(verdict.evaluation.reports, verdict.advice, strict=True):
            ends = advice.interval or (None, None)
            writer.writerow([report.model, report.group, advice.action, advice.method, advice.gain, *ends])
        return out.getvalue()
    writer.writerow(["model", "group", "metric", "value", "low", "high", "reason"])
    for report in verdict.evaluation.reports:
        for key, result in report.results.items():
            ends = result.interval or (None, None)
            writer.writerow([report.model, report.group, key, result.value, *ends, result.reason])
    return out.getvalue()


def provenance(evaluation: Evaluation) -> dict[str, Any]:
    """What every report of an evaluation says: inputs, columns, notes, task, how intervals were made."""
    return {
        "schema": SCHEMA,
        "decal": __version__,
        "signature": evaluation.signature,
        "inputs": [
            {"path": item.path, "rows": item.rows, "positives": item.positives, "sha256": item.sha256}
            for item in evaluation.inputs
        ],
        "columns": {
            role: list(taken) if isinstance(taken, tuple) else taken for role, taken in evaluation.columns.items()
        },
        "notes": list(evaluation.notes),
        "task": _task(evaluation),
        "intervals": _intervals(evaluation),
    }


def _task(evaluation: Evaluation) -> dict[str, Any] | None:
    task = evaluation.task
    if task is None:
        return None
    return {
        "threshold": task.threshold,
        "decision_threshold": task.decision_threshold,
        "u_delta": task.u_delta,
        "utility": [list(row) for row in task.utility],
    }


def _intervals(evaluation: Evaluation) -> dict[str, Any] | None:
    plan = evaluation.plan
    if not plan.intervals:
        return None
    return {
        "confidence": plan.confidence,
        "seed": plan.seed,
        "resamples": RESAMPLES,
        "cells": resampled_cells(evaluation),
    }


def _report(report: Report, verdict: Verdict) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "model": report.model,
        "group": report.group,
        "rows": report.rows,
        "positives": report.positives,
        "dropped": report.dropped,
        "metrics": {key: _result(result) for key, result in report.results.items()},
    }
    advice = verdict.advice_for(report)
    if advice is not None:
        entry["recommendation"] = {
            "action": advice.action,
            "method": advice.method,
            "gain": advice.gain,
            "interval": _pair(advice.interval),
            "path": [
                {
                    "question": step.question,
                    "answer": step.answer,
                    "reason": step.reason,
                    "evidence": [
                        {"metric": item.metric, "value": item.value, "interval": _pair(item.interval)}
                        for item in step.evidence
                    ],
                }
                for step in advice.steps
            ],
            "next": list(advice.next_steps),
            "ece_advice": ece_advice(report),
            "fit": advice.fit,
            "rows_needed": advice.rows_needed,
        }
        if verdict.rounds is not None and report.group is None:
            entry["recommendation"]["tried"] = rounds.document(verdict.rounds[report.model])
    return entry


def _result(result: Result) -> dict[str, Any]:
    entry: dict[str, Any] = {"value": result.value, "interval": _pair(result.interval), "reason": result.reason}
    witness = result.witness
    if witness is not None:
        entry["worst_agent"] = {
            "utility": [list(row) for row in witness.utility],
            "thresholds": list(witness.thresholds),
            "two_actions": {
                "utility": [list(row) for row in witness.pasted],
                "loss": witness.loss,
                "shown_by": witness.shown_by,
            },
        }
    return entry


def _pair(interval: tuple[float, float] | None) -> list[float] | None:
    return None if interval is None else list(interval)
