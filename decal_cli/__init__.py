"""decal: what acting on a classifier's scores costs, what recalibration recovers, and what needs post-training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Answer", "DecalError", "__version__", "evaluate", "recommend"]

if TYPE_CHECKING:
    from decal_cli.api import Answer, evaluate, recommend
    from decal_cli.errors import DecalError


def __getattr__(name: str) -> Any:
    """Load the API on first use: importing the package costs nothing."""
    if name in ("Answer", "evaluate", "recommend"):
        from decal_cli import api

        return getattr(api, name)
    if name == "DecalError":
        from decal_cli.errors import DecalError

        return DecalError
    raise AttributeError(f"module 'decal_cli' has no attribute {name!r}")
