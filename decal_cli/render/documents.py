"""The JSON schema of everything that decal prints, from what each result declares of its data."""

from __future__ import annotations

import json

from decal_cli.render.results.comparison import ComparedData
from decal_cli.render.results.evaluation import EvaluatedData, ReportsData
from decal_cli.render.results.fitting import FittedData
from decal_cli.render.results.gates import GatedData, GatedReportsData
from decal_cli.render.results.online import ReplayedData
from decal_cli.render.results.recommendation import AdvisedReportsData, RecommendedData
from decal_cli.render.results.study import StudiedData
from decal_cli.render.results.sweep import CurvesData, SweptReportsData
from decal_cli.render.results.varied import VariedCurvesData, VariedReportsData
from decal_cli.render.schema import schema_of
from decal_cli.version import SCHEMA

DOCUMENTS: tuple[type, ...] = (
    *(EvaluatedData, ReportsData),
    *(RecommendedData, AdvisedReportsData),
    *(GatedData, GatedReportsData),
    ComparedData,
    *(CurvesData, SweptReportsData),
    *(VariedCurvesData, VariedReportsData),
    FittedData,
    ReplayedData,
    StudiedData,
)


def schema_text() -> str:
    """The file `report.schema.json`."""
    title = f"decal report, schema {SCHEMA}"
    description = (
        "What `decal evaluate|recommend|gate|compare|sweep|fit|study|online --format json` print. Models and groups "
        "stand under reports, each whole in itself; the fields of an only one are flat as well. Numbers are at full "
        "precision; an undefined one is null with its reason."
    )
    return json.dumps(schema_of(title, description, DOCUMENTS), indent=2) + "\n"
