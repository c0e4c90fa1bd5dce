"""One run of `decal methods`."""

from __future__ import annotations

from decal_cli.commands.common import emit
from decal_cli.methods import named
from decal_cli.render.results.methods import method_explained, method_list


def run(name: str | None) -> None:
    """List the post-training methods, or explain the one of this name."""
    emit(method_list() if name is None else method_explained(named(name)))
