"""Verdicts as text, one function a format; rounding and colour live here."""

from __future__ import annotations

from collections.abc import Callable

from decal_cli.analysis.recommend import Verdict
from decal_cli.render.ci import render_github, render_junit
from decal_cli.render.compare import COMPARE_RENDERERS
from decal_cli.render.document import document, render_csv, render_json
from decal_cli.render.explain import render_metric, render_metrics
from decal_cli.render.markdown import render_markdown
from decal_cli.render.page import Page
from decal_cli.render.terminal import render_table

RENDERERS: dict[str, Callable[[Verdict, Page], str]] = {
    "table": render_table,
    "json": lambda verdict, page: render_json(verdict),
    "markdown": render_markdown,
    "csv": lambda verdict, page: render_csv(verdict),
    "github": lambda verdict, page: render_github(verdict),
    "junit": lambda verdict, page: render_junit(verdict),
}

__all__ = ["COMPARE_RENDERERS", "RENDERERS", "Page", "document", "render_metric", "render_metrics"]
