"""Figures in a notebook, which pyplot does not know of and so nobody else shows."""

from __future__ import annotations

import io
import sys
from typing import Any

from decal_cli.plot.style import RC

_PIXELS_PER_INCH = 96
_FINENESS = 2
"""Pixels of the picture in one of the page, for screens that are fine."""


def show_when_the_cell_ends(figure: Any) -> None:
    """Show a figure below the cell that is running, with what the rest of the cell changes in it; nothing elsewhere."""
    shell: Any = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if not hasattr(shell, "kernel"):
        return

    def show() -> None:
        shell.events.unregister("post_execute", show)
        import matplotlib
        from IPython.display import Image, display

        out = io.BytesIO()
        with matplotlib.rc_context(RC):
            figure.savefig(out, format="png", dpi=_FINENESS * _PIXELS_PER_INCH)
        display(Image(out.getvalue(), width=round(figure.get_figwidth() * _PIXELS_PER_INCH)))

    shell.events.register("post_execute", show)
