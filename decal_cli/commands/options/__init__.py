"""Every option of the command line, declared once: parser, help, completion and man pages read it from here."""

from decal_cli.commands.options.acting import ApplyOptions, FitOptions, StudyOptions
from decal_cli.commands.options.choices import FitFormat, Format, GateFormat, Missing, Picture, SweepFormat
from decal_cli.commands.options.common import FORMATS, InputOptions, OutputOptions, SeedOptions, TaskOptions
from decal_cli.commands.options.flat import flat
from decal_cli.commands.options.judging import (
    AdviceOptions,
    CompareOptions,
    GateOptions,
    ReportOptions,
    SweepOptions,
    WishOptions,
)

__all__ = [
    "FORMATS",
    "AdviceOptions",
    "ApplyOptions",
    "CompareOptions",
    "FitFormat",
    "FitOptions",
    "Format",
    "GateFormat",
    "GateOptions",
    "InputOptions",
    "Missing",
    "OutputOptions",
    "Picture",
    "ReportOptions",
    "SeedOptions",
    "StudyOptions",
    "SweepFormat",
    "SweepOptions",
    "TaskOptions",
    "WishOptions",
    "flat",
]
