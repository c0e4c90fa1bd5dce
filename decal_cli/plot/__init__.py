"""Pictures of a sweep, a study or a replay: the only room that knows matplotlib, imported when one is drawn."""

from decal_cli.plot.groups import draw_groups
from decal_cli.plot.online import draw_replay, replay_pictures
from decal_cli.plot.page import can_draw, ready
from decal_cli.plot.report import CLASS_PICTURES, draw_classes_on, planned_for, report_page, said_before
from decal_cli.plot.study import STUDY_PICTURES, draw_relation, draw_study, experiment_files, experiment_pictures
from decal_cli.plot.sweeps import PICTURES, SHARED, draw, draw_on, draw_text, pictures_of

__all__ = [
    "CLASS_PICTURES",
    "PICTURES",
    "SHARED",
    "STUDY_PICTURES",
    "can_draw",
    "draw",
    "draw_classes_on",
    "draw_groups",
    "draw_on",
    "draw_relation",
    "draw_replay",
    "draw_study",
    "draw_text",
    "experiment_files",
    "experiment_pictures",
    "pictures_of",
    "planned_for",
    "ready",
    "replay_pictures",
    "report_page",
    "said_before",
]
