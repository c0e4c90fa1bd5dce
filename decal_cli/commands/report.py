"""One run of `decal report`."""

from __future__ import annotations

from decal_cli.api.asking import preferences_of
from decal_cli.api.nouns import Costs, Decision, Statistics
from decal_cli.commands.common import data_of, emit, plan_of, settings_of, terms_of
from decal_cli.commands.options.common import InputOptions, OutputOptions
from decal_cli.commands.plotting import pictures_possible
from decal_cli.commands.progress import progress_of
from decal_cli.commands.streams import say
from decal_cli.errors import DecalError
from decal_cli.plot import planned_for, report_page, said_before
from decal_cli.render.formats import format_for
from decal_cli.render.results.page import ReportPage
from decal_cli.render.terms import StatedTerms


def run(
    costs: Costs, terms: StatedTerms, source: InputOptions, task: Decision, sure: Statistics, out: OutputOptions
) -> None:
    """Measure, recommend and draw, and write one page."""
    if out.output is None:
        raise DecalError("the report needs a file to be written to", "name it: -o report.html")
    settings = settings_of(out)
    form = format_for("html", out.output, ReportPage)
    plan = plan_of((), task, sure, settings, source)
    terms = terms_of(terms, settings)
    wanted = preferences_of(costs, terms)
    data = data_of(source, settings, out.output, plan.edges)
    plan = planned_for(data, plan)
    pictures_possible()
    if long := said_before(data):
        say(f"decal: {long}")
    with progress_of() as progress:
        page = report_page(data, plan, wanted, progress, terms)
    emit(page, form, out)
