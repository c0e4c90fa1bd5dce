"""A verdict and its pictures as one self-contained page: no script, no network, readable on screen and on paper."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape

from decal_cli.analysis.evaluate import Report, Result
from decal_cli.analysis.flowchart import Advice
from decal_cli.analysis.recommend import Verdict
from decal_cli.metrics import METRICS, Metric, parse
from decal_cli.render.explain import facts
from decal_cli.render.numbers import DASH, short, span
from decal_cli.render.prose import (
    ACTIONS,
    constant_sentence,
    data_lines,
    ece_sentence,
    gain_sentence,
    ladder,
    unknown_lines,
    worst_lines,
)
from decal_cli.render.tables import ARROWS, undefined_reasons

_STYLE = """
:root { color-scheme: light; --line: #d5d5d5; --soft: #666; --bar: #4a6fa5; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; margin: 2rem auto; max-width: 72rem; padding: 0 1.2rem; }
h1 { font-size: 1.6rem; } h2 { margin-top: 2.4rem; border-bottom: 1px solid var(--line); } h3 { margin-bottom: .3rem; }
code { font-size: .85em; overflow-wrap: anywhere; } .soft { color: var(--soft); font-size: .9rem; }
.action { font-size: 1.15rem; font-weight: 600; margin: .2rem 0; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; }
th, td { padding: .3rem .7rem; text-align: right; vertical-align: top; }
th, td { border-bottom: 1px solid #eee; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; min-width: 15rem; max-width: 34rem; }
tr.family th { text-align: left; color: var(--soft); padding-top: 1rem; font-weight: normal; }
.ends { display: block; color: var(--soft); font-size: .82rem; }
details summary { cursor: pointer; } details p, details li { font-size: .88rem; white-space: normal; text-align: left; }
.ladder td { border: 0; padding: .1rem .7rem; } .ladder td:last-child { width: 26rem; text-align: left; }
.bar { display: inline-block; height: .8rem; background: var(--bar); }
img { max-width: 100%; height: auto; } ol > li { margin-bottom: .5rem; }
@media print { body { margin: 0; } h2 { break-after: avoid; } img, table { break-inside: avoid; } }
"""

Pictures = Mapping[str, bytes]
"""Heading to an SVG picture."""


def render_html(verdict: Verdict, pictures: Pictures) -> str:
    """The page."""
    evaluation = verdict.evaluation
    title = "decal: " + ", ".join(item.path for item in evaluation.inputs)
    parts = [
        f"<h1>{escape(title)}</h1>",
        *(f"<p>{escape(line)}</p>" for line in data_lines(evaluation)),
        *_advice(verdict),
        *_pictures(pictures),
        "<h2>Measurements</h2>",
        "<p class='soft'>Open a metric's name for its formula, range, source and how its interval is made.</p>",
        _table(evaluation.reports),
        *(f"<p>{escape(line)}</p>" for line in worst_lines(evaluation.reports)),
        *(f"<p class='soft'>{escape(line)}</p>" for line in undefined_reasons(evaluation.reports)),
        *(f"<p>{escape(line)}</p>" for line in unknown_lines(evaluation)),
        f"<p class='soft'>Signature: <code>{escape(evaluation.signature)}</code></p>",
    ]
    head = f"<meta charset='utf-8'><meta name='viewport' content='width=device-width'><title>{escape(title)}</title>"
    body = "\n".join(["<body>", *parts, "</body>"])
    return f"<!DOCTYPE html>\n<html lang='en'>\n<head>{head}<style>{_STYLE}</style></head>\n{body}\n</html>\n"


def _advice(verdict: Verdict) -> list[str]:
    if verdict.advice is None:
        return [
            "<p>No decision was named, so nothing is recommended: give --threshold, --utility, costs or --odds.</p>"
        ]
    lines = ["<h2>Recommendation</h2>"]
    for report, advice in zip(verdict.evaluation.reports, verdict.advice, strict=True):
        lines.append(f"<section><h3>{escape(_name(report))}</h3>")
        method = f" Method: {advice.method}." if advice.method else ""
        lines.append(f"<p class='action'>{escape(ACTIONS[advice.action] + method)}</p>")
        said = [gain_sentence(advice)] if advice.gain is not None else []
        said += [*advice.next_steps, *filter(None, [constant_sentence(report), ece_sentence(report, advice)])]
        lines += [f"<p>{escape(sentence)}</p>" for sentence in said]
        lines += [_ladder(report), _walk(advice), "</section>"]
    return lines


def _ladder(report: Report) -> str:
    rungs = ladder(report)
    lowest, highest = min(value for _, value in rungs), max(value for _, value in rungs)
    rows = []
    for name, value in rungs:
        length = 100 * (value - lowest) / (highest - lowest) if highest > lowest else 0.0
        bar = f"<span class='bar' style='width:{length:.1f}%'></span>"
        rows.append(f"<tr><td>{escape(name)}</td><td>{short(value, 3)}</td><td>{bar}</td></tr>")
    return f"<p>Expected utility per 1,000 decisions</p><table class='ladder'>{''.join(rows)}</table>"


def _walk(advice: Advice) -> str:
    steps = []
    for step in advice.steps:
        numbers = "".join(
            f"<li>{escape(METRICS[item.metric].title)}: "
            f"{'undefined' if item.value is None else short(item.value, 4) + ' ' + span(item.interval, 4)}</li>"
            for item in step.evidence
        )
        steps.append(f"<li><b>{escape(step.question)} {step.answer}.</b> {escape(step.reason)}<ul>{numbers}</ul></li>")
    return f"<details><summary>How this was concluded</summary><ol>{''.join(steps)}</ol></details>"


def _pictures(pictures: Pictures) -> list[str]:
    lines = []
    for name, picture in pictures.items():
        source = base64.b64encode(picture).decode("ascii")
        lines += [f"<h2>{escape(name)}</h2>", f"<img alt='{escape(name)}' src='data:image/svg+xml;base64,{source}'>"]
    return lines


def _table(reports: Sequence[Report]) -> str:
    names = "".join(f"<th>{escape(_name(report))}</th>" for report in reports)
    rows = [f"<tr><th>metric</th><th></th>{names}</tr>"]
    family = ""
    for key in reports[0].results:
        metric = parse(key).metric
        if metric.family != family:
            family = metric.family
            rows.append(f"<tr class='family'><th colspan='{len(reports) + 2}'>{family}</th></tr>")
        cells = "".join(f"<td>{_cell(report.results[key])}</td>" for report in reports)
        rows.append(f"<tr><td>{_explained(metric)}</td><td>{ARROWS[metric.better]}</td>{cells}</tr>")
    return f"<div class='wide'><table>{''.join(rows)}</table></div>"


def _explained(metric: Metric) -> str:
    text = "".join(f"<p>{escape(' '.join(part.split()))}</p>" for part in metric.text.split("\n\n"))
    listed = "".join(f"<li>{escape(name)}: {escape(said)}</li>" for name, said in facts(metric))
    summary = f"{escape(metric.title)} <code>{metric.name}</code>"
    return f"<details><summary>{summary}</summary>{text}<ul>{listed}</ul></details>"


def _cell(result: Result) -> str:
    if result.value is None:
        return f"<span title='{escape(result.reason or '')}'>{DASH}</span>"
    ends = f"<span class='ends'>{span(result.interval, 4)}</span>" if result.interval else ""
    return short(result.value, 4) + ends


def _name(report: Report) -> str:
    return report.model if report.group is None else f"{report.model}, {report.group}"
