"""Options of the commands that judge: evaluate, recommend, gate, compare, sweep, report."""

from __future__ import annotations

from decal_cli.api.nouns import Data, same
from decal_cli.commands.options.choices import PICTURES, method_names, metric_names, pack_names, rule_names
from decal_cli.commands.options.common import STATISTICS
from decal_cli.commands.options.formats import format_option
from decal_cli.declarations.defaults import SWEEP_THRESHOLDS
from decal_cli.declarations.option import option, options

PLOT = "Draw the curves into this .png, .svg or .pdf file; - draws them in the terminal."
NO_INTERVALS = "Compute no intervals, which is faster."


@options("Metrics")
class MetricOptions:
    """Which metrics, with intervals or not, and in which format."""

    metric: list[str] = option(
        "Report only this metric, such as 'ece(bins=20)'. Repeatable; `decal metrics` lists them.",
        [],
        "-m",
        metavar="METRIC",
        complete=metric_names,
        brief="Report only this metric, such as 'ece(bins=20)'. Repeatable.",
    )
    all_metrics: bool = option("Show every metric in the table, not only the main ones.", False, key="all", brief=True)
    no_intervals: bool = option(NO_INTERVALS, False, panel=STATISTICS)
    format: str | None = format_option("blocks", "data", "rows")


@options("Metrics")
class EvaluateOptions(MetricOptions):
    """The same, the measures of a field, and whether the bins of the score are shown."""

    pack: str | None = option(
        "The measures of a field under its own names: clinical, credit or fairness (which compares the groups of "
        "--group).",
        metavar="FIELD",
        complete=pack_names,
        brief="The measures of a field: clinical, credit or fairness.",
    )
    plot: str | None = option(
        "With --pack fairness: draw the measures of every group into this .png, .svg or .pdf file.", metavar="FILE"
    )
    reference: str | None = same(Data, "reference")
    regimes: bool = option(
        "Show each bin of the score, and whether miscalibration or grouping loses more utility there.", False
    )


@options("Comparison")
class CompareOptions:
    """Which rows belong together, and what is written of the two models."""

    id: str | None = same(Data, "id")
    write_splice: str | None = option(
        "Write the spliced scores, row by row, to this .csv or .parquet file.", metavar="FILE"
    )
    plot: str | None = option(PLOT, metavar="FILE")
    force: bool = option("Overwrite the file of --write-splice if it exists.", False)


@options("Methods")
class AdviceOptions:
    """Whether methods are tried, and how the advice is written."""

    trying: bool = option(
        "Fit the methods by cross-fitting, show what each gains, and repeat the questions with the best one.",
        False,
        key="try",
        brief="Fit the methods by cross-fitting, and show what each gains.",
    )
    method: list[str] = option(
        "Try only this method, such as isotonic or 'platt(on=p)'. Repeatable; implies --try.",
        [],
        metavar="METHOD",
        complete=method_names,
        shown="every method that the columns allow",
        brief="Try only this method, such as isotonic. Repeatable; implies --try.",
    )
    format: str | None = format_option("blocks", "data", "rows")


@options("Gate")
class GateOptions:
    """What must hold."""

    rule: list[str] = option(
        "Rule that must hold, such as 'regret<=0.02', 'upper(ece(bins=20))<=0.05', 'rows>=500' or "
        "'brier@group=B<=0.2'. A name with @, spaces at its ends or new lines stands in quotes, as in JSON: "
        "'brier@group=\"a@b\"<=0.2'. Repeatable.",
        [],
        "-r",
        metavar="RULE",
        complete=rule_names,
        brief="Rule that must hold, such as 'regret<=0.02'. Repeatable.",
    )
    baseline: str | None = option(
        "JSON report of an earlier model, for rules such as 'brier<=baseline+0.005'.", metavar="REPORT", brief=True
    )
    write_baseline: str | None = option(
        "Write the metrics as a JSON report, a baseline for later runs, if every rule passes.",
        metavar="REPORT",
        brief=True,
    )
    format: list[str] = format_option(
        "blocks",
        "data",
        "rows",
        "checks",
        text="Format of the result; junit=FILE writes this format into a file. Repeatable.",
        several=True,
    )


@options("Curves")
class SweepOptions:
    """Which thresholds, and what is written and drawn of them."""

    thresholds: str = option(
        "Thresholds t*: start:end:step, or a list such as 0.1,0.3,0.5.", SWEEP_THRESHOLDS, metavar="GRID", brief=True
    )
    prior: str | None = option(
        "How often each t* occurs: beta:A,B, or a CSV or JSON file of thresholds and weights. "
        "Adds the expectation of every curve.",
        metavar="PRIOR",
    )
    prevalence_range: str | None = option(
        "Shares of labels 1 where decisions are made, LOW:HIGH[:STEP]: what the decision is worth at each, with the "
        "scores moved to it and kept.",
        metavar="RANGE",
    )
    capacity_range: str | None = option(
        "Capacities LOW:HIGH[:STEP], shares such as 0.01:0.2 or counts such as 50:500: at each, what acting on the "
        "highest scores is worth, and how many of label 1 it finds.",
        metavar="RANGE",
    )
    vary: str | None = option(
        "Vary a number of the task in place of t*: 'ACTION:CLASS=LOW:HIGH[:STEP]', an entry of --utility or "
        "--cost-matrix, or 'abstain=LOW:HIGH[:STEP]', the price of abstention with --proba, or with --amount "
        "'cost-fp=LOW:HIGH', how many times what a false positive costs today.",
        metavar="WHAT=RANGE",
        shown="t*; with --proba the price of abstention, with --amount cost-fp",
        brief="Vary a number of the task, 'ACTION:CLASS=LOW:HIGH', in place of t*.",
    )
    plot: str | None = option(PLOT, metavar="FILE", brief=True)
    picture: list[str] = option(
        "What to draw; waterfall needs a decision, such as --threshold. With --vary or --proba: utility, actions, "
        "risk-coverage or reliability. Repeatable.",
        [],
        choices=PICTURES,
        shown="brier and decision; utility and actions",
    )
    all_thresholds: bool = option("Show every threshold in the table, not only some.", False, key="all")
    no_intervals: bool = option(NO_INTERVALS, False, panel=STATISTICS)
    format: str | None = format_option("blocks", "data", "rows", "columns")
