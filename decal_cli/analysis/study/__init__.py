"""Do the estimates predict the gains? Many files, scores, thresholds and methods, half to fit and half to test."""

from decal_cli.analysis.study.points import Setting, Unit, measure, tasks_named
from decal_cli.analysis.study.run import Study, run
from decal_cli.analysis.study.summary import Summary, summarise

__all__ = ["Setting", "Study", "Summary", "Unit", "measure", "run", "summarise", "tasks_named"]
