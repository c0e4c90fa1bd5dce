"""decal: what acting on a classifier's scores costs, what recalibration recovers, and what needs post-training."""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = [
    "Answer",
    "BrierCurveDisplay",
    "Calibrator",
    "CardAnswer",
    "CompareAnswer",
    "Costs",
    "Data",
    "DecalError",
    "Decision",
    "DecisionCurveDisplay",
    "Engine",
    "EvaluateAnswer",
    "FitAnswer",
    "GainsDisplay",
    "GateAnswer",
    "GroupingDisplay",
    "Halvings",
    "OnlineAnswer",
    "OnlineForecaster",
    "OverTime",
    "RecommendAnswer",
    "ReliabilityDisplay",
    "ReportAnswer",
    "Rules",
    "Statistics",
    "StudyAnswer",
    "SweepAnswer",
    "Terms",
    "__version__",
    "apply",
    "compare",
    "evaluate",
    "fit",
    "gate",
    "model_card",
    "online",
    "recommend",
    "report",
    "scorer",
    "study",
    "sweep",
]

TYPE_CHECKING = False
"""As in typing, which takes longer to import than an impatient user takes to press Ctrl-C."""
if TYPE_CHECKING:
    from typing import Any

    from decal_cli.api.acting import FitAnswer, StudyAnswer, apply, fit, study
    from decal_cli.api.answer import (
        Answer,
        CardAnswer,
        CompareAnswer,
        EvaluateAnswer,
        GateAnswer,
        RecommendAnswer,
        ReportAnswer,
        SweepAnswer,
    )
    from decal_cli.api.calibrator import Calibrator
    from decal_cli.api.nouns import Costs, Data, Decision, Halvings, OverTime, Rules, Statistics, Terms
    from decal_cli.api.online import OnlineAnswer, OnlineForecaster, online
    from decal_cli.api.pictures import (
        BrierCurveDisplay,
        DecisionCurveDisplay,
        GainsDisplay,
        GroupingDisplay,
        ReliabilityDisplay,
    )
    from decal_cli.api.scoring import scorer
    from decal_cli.api.verbs import compare, evaluate, gate, model_card, recommend, report, sweep
    from decal_cli.data.large.engines.connections import Engine
    from decal_cli.errors import DecalError

_HOMES = {
    "errors": ("DecalError",),
    "data.large.engines.connections": ("Engine",),
    "api.nouns": ("Costs", "Data", "Decision", "Halvings", "OverTime", "Rules", "Statistics", "Terms"),
    "api.verbs": ("compare", "evaluate", "gate", "model_card", "recommend", "report", "sweep"),
    "api.acting": ("FitAnswer", "StudyAnswer", "apply", "fit", "study"),
    "api.calibrator": ("Calibrator",),
    "api.scoring": ("scorer",),
    "api.online": ("OnlineAnswer", "OnlineForecaster", "online"),
    "api.pictures": tuple(name for name in __all__ if name.endswith("Display")),
    "api.answer": tuple(name for name in __all__ if name.endswith("Answer")),
}
"""Where each public name is defined."""


def __getattr__(name: str) -> Any:
    """Load what is asked for on first use: importing the package costs nothing."""
    for module, names in _HOMES.items():
        if name in names:
            import importlib

            return getattr(importlib.import_module(f"decal_cli.{module}"), name)
    raise AttributeError(f"module 'decal_cli' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
