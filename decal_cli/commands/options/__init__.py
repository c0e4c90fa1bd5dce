"""Every option of the command line, declared once: parser, help, completion and man pages read it from here."""

from decal_cli.commands.options.acting import (
    OF_STATEMENT,
    ApplyOptions,
    FitOptions,
    OnlineOptions,
    SqlOptions,
    StreamOptions,
    StudyOptions,
)
from decal_cli.commands.options.choices import Missing, PictureName
from decal_cli.commands.options.common import (
    INPUT_FORMATS,
    AmountOptions,
    EngineOptions,
    InputOptions,
    OutputOptions,
    SeedOptions,
    TaskOptions,
    TermsOptions,
)
from decal_cli.commands.options.explaining import MethodName, MetricName
from decal_cli.commands.options.judging import (
    AdviceOptions,
    CompareOptions,
    EvaluateOptions,
    GateOptions,
    MetricOptions,
    PreferenceOptions,
    SweepOptions,
)

__all__ = [
    "INPUT_FORMATS",
    "OF_STATEMENT",
    "AdviceOptions",
    "AmountOptions",
    "ApplyOptions",
    "CompareOptions",
    "EngineOptions",
    "EvaluateOptions",
    "FitOptions",
    "GateOptions",
    "InputOptions",
    "MethodName",
    "MetricName",
    "MetricOptions",
    "Missing",
    "OnlineOptions",
    "OutputOptions",
    "PictureName",
    "PreferenceOptions",
    "SeedOptions",
    "SqlOptions",
    "StreamOptions",
    "StudyOptions",
    "SweepOptions",
    "TaskOptions",
    "TermsOptions",
]
