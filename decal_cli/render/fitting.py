"""What a fitted method wins, as text; and the list of methods."""

from __future__ import annotations

import json
import os
import shlex
from typing import Any

from decal_cli.analysis.fit import Fitting, Gain, how_judged
from decal_cli.methods import METHODS, Method, note_of
from decal_cli.methods.declare import NEEDS
from decal_cli.metrics import parse
from decal_cli.render.contest import difference_cell, per_thousand
from decal_cli.render.document import provenance
from decal_cli.render.explain import explained, parameter_facts, what_it_needs
from decal_cli.render.numbers import DASH, short
from decal_cli.render.page import Page
from decal_cli.render.prose import data_lines
from decal_cli.render.tables import ARROWS, console, written

KINDS = {"recalibration": "recalibration (functions of the score)", "post-training": "post-training (on features)"}


def render_fitting(fitting: Fitting, path: str, page: Page) -> str:
    """The data, what was written, and the metrics before and after on rows that the model has not seen."""
    from rich.table import Table as RichTable
    from rich.text import Text

    target = console(page.width, page.color)
    for line in data_lines(fitting.judged):
        target.print(line, markup=False)
    target.print()
    method = fitting.chosen.method
    rows = f"{len(fitting.training.rows):,} rows"
    target.print(Text.assemble((method.title, "bold"), f" ({fitting.chosen.key}), fitted to {rows}, written to {path}"))
    note = note_of(fitting.model)
    if note is not None:
        target.print(note, markup=False)
    target.print(f"How it does, {how_judged(fitting)}:", markup=False)
    target.print()
    if fitting.gain is not None:
        for line in _gain_lines(fitting.gain):
            target.print(line, markup=False)
    if fitting.differences:
        table = RichTable(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
        table.add_column("metric", no_wrap=True)
        table.add_column("", no_wrap=True)
        for name in ("as it is", "post-trained", "difference"):
            table.add_column(name, justify="right", no_wrap=True)
        for key, found in fitting.differences.items():
            values = (DASH if side.value is None else short(side.value, 4) for side in (found.a, found.b))
            metric = parse(key).metric
            table.add_row(metric.title, ARROWS[metric.better], *values, difference_cell(found))
        target.print()
        target.print(table)
        for key, found in fitting.differences.items():
            if found.difference.reason is not None:
                target.print(f"{DASH} {key}: {found.difference.reason}", markup=False)
    else:
        target.print("The score stays as it is: only the threshold moves.", markup=False)
    target.print()
    target.print(
        f"Next: decal apply {shlex.quote(path)} NEW -o OUT adds {' and '.join(fitting.columns)} to the rows of NEW.",
        markup=False,
        soft_wrap=True,
    )
    target.print(fitting.judged.signature, markup=False, style="dim", soft_wrap=True)
    return written(target)


def _gain_lines(gain: Gain) -> list[str]:
    won = gain.after - gain.before
    return [
        "Expected utility per 1,000 decisions",
        f"   by the score as it is   {per_thousand(gain.before)}",
        f"   post-trained            {per_thousand(gain.after)}",
        f"   gain                    {per_thousand(won, gain.interval, plus=True)}",
    ]


def render_fitting_json(fitting: Fitting, path: str) -> str:
    """The same as data, at full precision."""
    gain = fitting.gain
    document: dict[str, Any] = {
        **provenance(fitting.judged),
        "fit": {
            "method": fitting.chosen.key,
            "kind": fitting.chosen.method.kind,
            "model_file": os.fspath(path),
            "column": fitting.columns[0],
            "rows": len(fitting.training.rows),
            "judged": "cross-fitted" if fitting.cross_fitted else "test",
            "seconds": fitting.seconds,
            "gain": None
            if gain is None
            else {
                "value": gain.after - gain.before,
                "interval": None if gain.interval is None else list(gain.interval),
                "before": gain.before,
                "after": gain.after,
            },
            "metrics": {
                key: {
                    "before": found.a.value,
                    "after": found.b.value,
                    "difference": found.difference.value,
                    "interval": None if found.difference.interval is None else list(found.difference.interval),
                    "reason": found.difference.reason,
                }
                for key, found in fitting.differences.items()
            },
        },
    }
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def render_methods() -> str:
    """All methods by kind, a line each."""
    wide = max(len(name) for name in METHODS) + 2
    lines: list[str] = []
    for kind, words in KINDS.items():
        lines += [""] * bool(lines) + [words]
        lines += [f"  {each.name:<{wide}}{each.title}" for each in METHODS.values() if each.kind == kind]
    return "\n".join([*lines, "", "decal methods NAME explains one.", ""])


def render_method(method: Method, page: Page) -> str:
    """One method in full."""
    facts = [
        ("kind", KINDS[method.kind]),
        ("needs", what_it_needs([NEEDS[need] for need in method.needs])),
        *([("uses", ", ".join(method.uses) + ", where they are given")] if method.uses else []),
        ("source", method.source),
    ]
    return explained(f"{method.name}: {method.title}", method.text, facts + parameter_facts(method.parameters), page)
