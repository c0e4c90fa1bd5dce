"""decal: what acting on a classifier's scores costs, what recalibration recovers, and what needs post-training."""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["Calibrator", "DecalError", "Engine", "OnlineForecaster", "__version__", "scorer"]
__all__ += ["Costs", "Data", "Decision", "Halvings", "OverTime", "Rules", "Statistics", "Terms"]
__all__ += ["apply", "compare", "evaluate", "fit", "gate", "model_card", "online", "recommend", "report", "study"]
__all__ += ["Answer", "CardAnswer", "CompareAnswer", "EvaluateAnswer", "FitAnswer", "GateAnswer", "OnlineAnswer"]
__all__ += ["RecommendAnswer", "ReportAnswer", "StudyAnswer", "SweepAnswer", "sweep"]
__all__ += ["BrierCurveDisplay", "DecisionCurveDisplay", "GainsDisplay", "GroupingDisplay", "ReliabilityDisplay"]

TYPE_CHECKING = False
"""As in typing, which takes longer to import than an impatient user takes to press Ctrl-C."""
if TYPE_CHECKING:
    from typing import Any

    from decal_cli.api.answer import (
        Answer,
        CardAnswer,
        CompareAnswer,
        EvaluateAnswer,
        FitAnswer,
        GateAnswer,
        OnlineAnswer,
        RecommendAnswer,
        ReportAnswer,
        StudyAnswer,
        SweepAnswer,
    )
    from decal_cli.api.calibrator import Calibrator, scorer
    from decal_cli.api.nouns import Costs, Data, Decision, Halvings, OverTime, Rules, Statistics, Terms
    from decal_cli.api.online import OnlineForecaster, online
    from decal_cli.api.pictures import (
        BrierCurveDisplay,
        DecisionCurveDisplay,
        GainsDisplay,
        GroupingDisplay,
        ReliabilityDisplay,
    )
    from decal_cli.api.verbs import (
        apply,
        compare,
        evaluate,
        fit,
        gate,
        model_card,
        recommend,
        report,
        study,
        sweep,
    )
    from decal_cli.data.large.engines.connections import Engine
    from decal_cli.errors import DecalError

_HOMES = {
    "api.calibrator": ("Calibrator", "scorer"),
    "api.nouns": ("Costs", "Data", "Decision", "Halvings", "OverTime", "Rules", "Statistics", "Terms"),
    "api.online": ("OnlineForecaster", "online"),
    "data.large.engines.connections": ("Engine",),
    "errors": ("DecalError",),
    "api.pictures": tuple(name for name in __all__ if name.endswith("Display")),
    "api.answer": tuple(name for name in __all__ if name.endswith("Answer")),
}
"""Where public names are defined; the others are verbs."""


def __getattr__(name: str) -> Any:
    """Load what is asked for on first use: importing the package costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'decal_cli' has no attribute {name!r}")
    import importlib

    home = next((module for module, names in _HOMES.items() if name in names), "api.verbs")
    return getattr(importlib.import_module(f"decal_cli.{home}"), name)


def __dir__() -> list[str]:
    return list(__all__)
