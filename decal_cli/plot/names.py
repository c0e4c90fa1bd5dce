"""Names of others in pictures: short, as text and never as a formula, with what the font lacks escaped."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

from decal_cli.analysis.sweep import Sweep, Swept
from decal_cli.errors import printable

_IGNORED = "Glyph |Matplotlib currently does not support|constrained_layout not applied"
MAX_NAME = 32
"""Characters of a name in a picture."""


def with_drawable_names(sweep: Sweep, form: str) -> Sweep:
    """The sweep with the names of its models and groups as a picture of this format shows them."""

    def shown(report: Swept) -> Swept:
        group = None if report.group is None else drawable(report.group, form)
        return replace(report, model=drawable(report.model, form), group=group)

    return replace(sweep, reports=tuple(map(shown, sweep.reports)))


def drawable(name: str, form: str) -> str:
    """A name as a picture of this format shows it; what displays an SVG file brings fonts of its own."""
    text = printable(name)
    if form != "svg":
        text = "".join(c if ord(c) in _glyphs() else ascii(c)[1:-1] for c in text)
    if len(text) > MAX_NAME:
        text = f"{text[: MAX_NAME // 2]}...{text[-MAX_NAME // 4 :]}"
    # A legend does not show what begins with an underscore.
    return f" {text}" if text.startswith("_") else text


@contextmanager
def any_name() -> Iterator[None]:
    """Within it, matplotlib does not warn of characters that its own font lacks, or of names that leave no room."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_IGNORED)
        yield


@cache
def _glyphs() -> frozenset[int]:
    """What the font of the pictures can draw."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(get_font(findfont(FontProperties())).get_charmap())
