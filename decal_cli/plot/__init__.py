"""Pictures of a sweep; matplotlib is imported only when one is drawn."""

from decal_cli.plot.page import PICTURES, draw, ready
from decal_cli.plot.text import draw_text

__all__ = ["PICTURES", "draw", "draw_text", "ready"]
